/* Files that are written whole or not at all, and plain ones.
 *
 * But for file_write_plain, a file is written under another name beside it, put on disk, and renamed: whoever reads it
 * meanwhile, or after a crash, finds the old content or the new. A write that fails leaves the old file, and no
 * temporary one. Threads: any; of two who write one file the later one wins. */
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

/* Write n bytes into the file `path` itself, which is made or emptied first, and do not wait for the disk: for files
 * that nobody else reads meanwhile and that need not outlast a crash. Fails: ST_ENVIRONMENT. */
enum status file_write_plain(const char *path, size_t n, const char *bytes, struct error *err);

#endif
