/* Files that are written whole or not at all.
 *
 * A file is written under another name beside it, put on disk, and renamed: whoever reads it meanwhile, or after a
 * crash, finds the old content or the new. A write that fails leaves the old file, and no temporary one.
 * Threads: any; of two who write one file the later one wins. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Write n bytes to `path`; "-" is standard output. An existing file keeps its mode, and a symbolic link stays one. A
 * pipe or device is written to, never replaced. Fails: ST_ENVIRONMENT. */
enum status file_write(const char *path, size_t n, const char *bytes, struct error *err);

/* The same, for a file that only its owner may read. Callers must write one after another. Fails: ST_ENVIRONMENT, also
 * when the new content is there but a crash may bring the old content back. The error says so. */
enum status file_write_private(const char *path, size_t n, const char *bytes, struct error *err);

#endif
