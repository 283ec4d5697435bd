/* Our own cluster files, to which other files add measurements; a topology or a host file adds nothing to them. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "interop/import/cluster_kinds.h"

bool cluster_file_is(const struct source *source) {
    const size_t blank = strspn(source->text, " \t\r\n");
    return source->text[blank] == '{' && strstr(source->text, "\"syncopate.cluster/");
}

enum status cluster_file_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                              struct cluster_draft *draft, struct error *err) {
    (void)settings;
    (void)notes;
    cJSON *json;
    if (draft->base)
        return error_at(err, ST_USAGE, source->name, "two cluster files; give one, and what adds to it");
    enum status st = json_parse(source->text, source->n, source->name, &json, err);
    if (st)
        return st;
    struct cluster *base = malloc(sizeof *base);
    st = base ? cluster_read(json, source->name, base, err) : error_no_memory(err);
    cJSON_Delete(json);
    if (st)
        free(base);
    else
        draft->base = base;
    return st;
}
