/* JSON on standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"

/* Print `json` on a line of its own and delete it; `whole` says that every member could be added to it.
 * Fails: ST_NO_MEMORY when it is not whole or has no room as text; nothing is printed then. */
enum status output_line(cJSON *json, bool whole, struct error *err);

#endif
