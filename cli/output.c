/* See output.h. */
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/stream.h"
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

enum status output_stream(FILE *to, enum status st, char **text, const size_t *n, const char *path, struct error *err) {
    st = stream_close(to, st, text, err);
    if (!st)
        st = file_write(path, *n, *text, err);
    free(*text);
    *text = NULL;
    return st;
}
