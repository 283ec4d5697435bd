/* See refusal.h. */
#include "cli/client/refusal.h"

#include <stdio.h>
#include <string.h>

static enum status status_of(long http, const char *code) {
    switch (http) {
    case 400:
    case 405:
    case 415:
        return ST_USAGE;
    case 404:
        return ST_NOT_FOUND;
    case 409:
    case 412:
    case 428:
        return ST_CONFLICT;
    case 413:
        return ST_TOO_LARGE;
    case 422:
        return !strcmp(code, "infeasible") ? ST_INFEASIBLE : ST_INVALID;
    default:
        return ST_UNREACHABLE;
    }
}

static const char *text_of(const cJSON *json, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    return text ? text : "";
}

/* The JSON pointer of the first of the problem's errors: which part of the request's body is wrong. */
static const char *pointer_of(const cJSON *json) {
    return text_of(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "errors"), 0), "pointer");
}

enum status client_refused(const char *service, long http, const cJSON *json, struct error *err) {
    const char *code = text_of(json, "code"), *id = text_of(json, "request_id"), *pointer = pointer_of(json);
    const char *detail = text_of(json, "detail");
    const enum status st = *code || http == 413 ? status_of(http, code) : ST_UNREACHABLE;
    if (!*code)
        return error_set(err, st, "%.200s answered with HTTP status %ld, and not as a syncopate service does", service,
                         http);
    error_set(err, st, "%.120s: %s%s%.250s (%ld %s, request %.40s)%s", service, pointer, *pointer ? ": " : "", detail,
              http, code, id, http == 401 ? "; give --token-file FILE or set SYNCOPATE_TOKEN" : "");
    return error_code(err, st, code);
}
