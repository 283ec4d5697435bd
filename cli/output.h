/* JSON on standard output, and texts that become files. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Print `json` on a line of its own and delete it; `whole` says that every member could be added to it.
 * Fails: ST_NO_MEMORY when it is not whole or has no room as text; nothing is printed then. */
enum status output_line(cJSON *json, bool whole, struct error *err);

/* Close a stream of base/stream.h, as stream_close, and write its text, of *n bytes then, to the file `path`, whole or
 * not at all. Fails: as stream_close and file_write. */
enum status output_stream(FILE *to, enum status st, char **text, const size_t *n, const char *path, struct error *err);

#endif
