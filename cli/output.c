/* See output.h. */
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"

enum status output_line(cJSON *json, bool whole, struct error *err) {
    char *text = whole ? json_line(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    text_print(stdout, "%s\n", text);
    free(text);
    return ST_OK;
}
