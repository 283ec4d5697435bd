/* See request.h. */
#include "service/http/transport/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *find_field(const struct field *fields, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(fields[i].name, name))
            return fields[i].value;
    return NULL;
}

bool request_is_again(const struct request *request) {
    return request->busy || request->wants_heavy;
}

const char *request_parameter(const struct request *request, const char *name) {
    return find_field(request->parameters, request->n_parameters, name);
}

const char *request_query(const struct request *request, const char *name) {
    return find_field(request->query, request->n_query, name);
}

enum status request_query_integer(const struct request *request, const char *name, uint64_t min, uint64_t max,
                                  uint64_t *out, struct error *err) {
    const char *text = request_query(request, name);
    if (!text)
        return ST_OK;
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
        return error_set(err, ST_USAGE, "query parameter %s: must be a whole number from %llu to %llu", name,
                         (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return ST_OK;
}

enum status request_query_bool(const struct request *request, const char *name, bool *out, struct error *err) {
    const char *text = request_query(request, name);
    if (!text)
        return ST_OK;
    if (strcmp(text, "true") && strcmp(text, "false"))
        return error_set(err, ST_USAGE, "query parameter %s: must be true or false", name);
    *out = *text == 't';
    return ST_OK;
}

struct json_at request_body(const struct request *request) {
    return json_root(request->json, PROBLEM_BODY);
}

enum status request_fail_item(const struct request *request, const char *list, size_t i, enum status status,
                              struct error *err) {
    access_hide_path(request->service->access, err);
    error_prefix(err, status, PROBLEM_BODY);
    return error_inside(err, status, "/%s/%zu", list, i);
}

struct viewer request_asker(const struct request *request) {
    return (struct viewer){request->principal.team, request->principal.role == ROLE_ADMIN};
}

const char *request_viewer(const struct request *request) {
    return request->principal.role == ROLE_ADMIN ? NULL : request->principal.team;
}

enum status request_reader(struct request *request, struct store **out, struct error *err) {
    return access_read(request->service->access, out, err);
}

bool request_etags_valid(const char *header) {
    size_t n = 0;
    if (*header == '*')
        return !header[1 + strspn(header + 1, " \t")];
    for (header += strspn(header, " \t,"); *header; n++) {
        header += strncmp(header, "W/", 2) ? 0 : 2;
        const char *end = *header == '"' ? strchr(header + 1, '"') : NULL;
        if (!end || strcspn(header + 1, " \t") < (size_t)(end - header) - 1)
            return false;
        header = end + 1 + strspn(end + 1, " \t");
        if (*header && *header != ',')
            return false;
        header += strspn(header, " \t,");
    }
    return n > 0;
}

/* Weak tags compare equal to strong ones for If-None-Match and are never equal for If-Match (RFC 9110 §13.1). */
static bool lists_etag(const char *header, const char *etag, bool weak_too) {
    const size_t n = strlen(etag);
    while (*header) {
        header += strspn(header, " \t,");
        if (*header == '*')
            return true;
        bool weak = !strncmp(header, "W/", 2);
        header += weak ? 2 : 0;
        if (*header != '"')
            return false;
        const char *end = strchr(++header, '"');
        if (!end)
            return false;
        if ((weak_too || !weak) && (size_t)(end - header) == n && !memcmp(header, etag, n))
            return true;
        header = end + 1;
    }
    return false;
}

bool request_has_etag(const struct request *request, const char *etag) {
    return request->if_none_match && lists_etag(request->if_none_match, etag, true);
}

bool request_matches(const struct request *request, const char *etag) {
    return !request->if_match || lists_etag(request->if_match, etag, false);
}

void request_release(struct request *request) {
    cJSON_Delete(request->json);
    request->json = NULL;
    arena_release(&request->arena);
}
