/* See openapi.h. Every helper returns NULL or false when memory is out, and one check at the end tells. */
#include "service/http/api/openapi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/version.h"
#include "service/http/api/schemas.h"

static const char json_type[] = "application/json", problem_type[] = "application/problem+json";

static bool add_reference(cJSON *to, const char *member, const char *schema) {
    char text[128];
    cJSON *object = cJSON_AddObjectToObject(to, member);
    snprintf(text, sizeof text, "#/components/schemas/%s", schema);
    return object && cJSON_AddStringToObject(object, "$ref", text);
}

/* "content": {"application/json": {"schema": ...}}; without a schema it is text. OpenAPI 3.1 has no
 * schema for the events of a stream. */
static bool add_content(cJSON *to, const char *type, const char *schema) {
    cJSON *content = cJSON_GetObjectItemCaseSensitive(to, "content");
    content = content ? content : cJSON_AddObjectToObject(to, "content");
    cJSON *media = content ? cJSON_AddObjectToObject(content, type) : NULL;
    if (!media || schema)
        return media && add_reference(media, "schema", schema);
    if (!strcmp(type, "text/event-stream"))
        return true;
    cJSON *text = cJSON_AddObjectToObject(media, "schema");
    return text && cJSON_AddStringToObject(text, "type", "string");
}

/* JSON, and the other media types of the route. */
static bool add_bodies(cJSON *to, const struct route *route) {
    bool ok = !route->response || add_content(to, json_type, route->response);
    for (const char *at = route->media; at && *at && ok; at += strspn(at, "| ")) {
        char type[128];
        const size_t n = strcspn(at, "|");
        snprintf(type, sizeof type, "%.*s", (int)n, at);
        ok = add_content(to, type, NULL);
        at += n;
    }
    return ok;
}

static bool add_parsed(cJSON *to, const char *member, const char *text) {
    cJSON *schema = schema_parse(text);
    if (schema && cJSON_AddItemToObject(to, member, schema))
        return true;
    cJSON_Delete(schema);
    return false;
}

static bool add_parameter(cJSON *list, const char *name, const char *in, const char *schema, const char *about) {
    cJSON *item = cJSON_CreateObject();
    return item && cJSON_AddItemToArray(list, item) && cJSON_AddStringToObject(item, "name", name) &&
           cJSON_AddStringToObject(item, "in", in) && cJSON_AddBoolToObject(item, "required", !strcmp(in, "path")) &&
           cJSON_AddStringToObject(item, "description", about) && add_parsed(item, "schema", schema);
}

static bool add_known(cJSON *list, const struct route *route, const char *name, size_t n, const char *in) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    const struct parameter *p = parameters_find_of(route->response, word);
    return add_parameter(list, word, in, p ? p->text : "{'type':'string'}", p ? p->about : word);
}

static bool add_request_headers(cJSON *list, const struct route *route) {
    static const char text[] = "{'type':'string'}";
    bool ok = true;
    if (route->flags & ROUTE_KEYED)
        ok = ok &&
             add_parameter(list, "Idempotency-Key", "header", "{'type':'string','minLength':1,'maxLength':255}",
                           "A key of your own: the same request under the same key is done once, and answered again");
    if (route->flags & ROUTE_CONDITIONAL)
        ok = ok && add_parameter(list, "If-None-Match", "header", text,
                                 "The entity tag of what the client has already; 304 if it has not changed");
    if (route->flags & (ROUTE_IF_MATCH | ROUTE_CONDITIONAL))
        ok = ok && add_parameter(list, "If-Match", "header", text,
                                 "The entity tag that the resource must still have; 412 if it has another");
    if (route->flags & ROUTE_STREAM)
        ok = ok && add_parameter(list, "Last-Event-ID", "header", "{'type':'string','pattern':'^[0-9]+$'}",
                                 "The last event that the client has already");
    return ok;
}

static bool add_parameters(cJSON *operation, const struct route *route) {
    cJSON *list = cJSON_AddArrayToObject(operation, "parameters");
    bool ok = list != NULL;
    for (const char *at = strchr(route->pattern, '{'); at && ok; at = strchr(at + 1, '{'))
        ok = add_known(list, route, at + 1, strcspn(at + 1, "}"), "path");
    for (const char *at = route->query; *at && ok; at += strspn(at, " ")) {
        ok = add_known(list, route, at, strcspn(at, " "), "query");
        at += strcspn(at, " ");
    }
    return ok && add_request_headers(list, route);
}

/* "ETag" of components/headers is one that is always there, "ETag.maybe" one that may be. */
static void component_of(enum header header, enum header_duty duty, char *out, size_t n) {
    snprintf(out, n, "%s%s", header_name(header), duty == HEADER_MAYBE ? ".maybe" : "");
}

static bool add_header_reference(cJSON *to, enum header header, enum header_duty duty) {
    char name[64], text[128];
    cJSON *item = cJSON_AddObjectToObject(to, header_name(header));
    component_of(header, duty, name, sizeof name);
    snprintf(text, sizeof text, "#/components/headers/%s", name);
    return item && cJSON_AddStringToObject(item, "$ref", text);
}

/* The headers of this answer, without those of every answer, which "x-headers" lists. */
static bool add_headers(cJSON *response, const struct route *route, unsigned status) {
    cJSON *headers = NULL;
    for (int i = 0; i < HEADER_COUNT; i++) {
        const enum header header = (enum header)i;
        const enum header_duty duty = route_header(route, status, header);
        if (duty == HEADER_NEVER || header_everywhere(header) != HEADER_NEVER)
            continue;
        headers = headers ? headers : cJSON_AddObjectToObject(response, "headers");
        if (!headers || !add_header_reference(headers, header, duty))
            return false;
    }
    return true;
}

static bool add_good(cJSON *responses, const struct route *route) {
    bool ok = true;
    for (const char *at = route->statuses; *at && ok; at += strspn(at, " ")) {
        char status[8];
        snprintf(status, sizeof status, "%.3s", at);
        cJSON *item = cJSON_AddObjectToObject(responses, status);
        ok = item && cJSON_AddStringToObject(item, "description", strcmp(status, "201") ? "Done" : "Created");
        if (ok && strcmp(status, "204"))
            ok = add_bodies(item, route);
        ok = ok && add_headers(item, route, (unsigned)strtoul(status, NULL, 10));
        at += strcspn(at, " ");
    }
    if (ok && route->flags & ROUTE_CONDITIONAL) {
        cJSON *item = cJSON_AddObjectToObject(responses, "304");
        ok = item && cJSON_AddStringToObject(item, "description", "Not changed") && add_headers(item, route, 304);
    }
    return ok;
}

/* Codes of one status stand in one response, as its description lists them. */
static bool add_bad(cJSON *responses, const struct route *route) {
    bool problems[PROBLEM_COUNT];
    route_problems(route, problems);
    for (size_t i = 0; i < PROBLEM_COUNT; i++) {
        char status[8], codes[512] = "";
        const unsigned number = problem_status((enum problem)i);
        snprintf(status, sizeof status, "%u", number);
        if (!problems[i] || cJSON_GetObjectItemCaseSensitive(responses, status))
            continue;
        size_t used = 0;
        for (size_t k = i; k < PROBLEM_COUNT; k++)
            if (problems[k] && problem_status((enum problem)k) == number && used < sizeof codes)
                used += (size_t)snprintf(codes + used, sizeof codes - used, "%s%s", used ? ", " : "",
                                         problem_code((enum problem)k));
        cJSON *item = cJSON_AddObjectToObject(responses, status);
        if (!item || !cJSON_AddStringToObject(item, "description", codes) ||
            !add_content(item, problem_type, "Problem") || !add_headers(item, route, number))
            return false;
    }
    return true;
}

static bool add_security(cJSON *operation, const struct route *route) {
    cJSON *list = cJSON_AddArrayToObject(operation, "security");
    if (route->role == ROLE_NONE)
        return list && cJSON_AddStringToObject(operation, "x-role", role_word(ROLE_NONE));
    cJSON *item = list ? cJSON_CreateObject() : NULL;
    return item && cJSON_AddItemToArray(list, item) && cJSON_AddArrayToObject(item, "token") &&
           cJSON_AddStringToObject(operation, "x-role", role_word(route->role));
}

/* "getApiV1ModelsId": the method and the words of the pattern. */
static void operation_id(const struct route *route, char *out, size_t n) {
    size_t k = 0;
    bool capital = false;
    for (const char *c = route->method; *c && k + 1 < n; c++)
        out[k++] = (char)(*c | 0x20);
    for (const char *c = route->pattern; *c && k + 1 < n; c++) {
        const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (letter)
            out[k++] = capital && *c >= 'a' && *c <= 'z' ? (char)(*c & ~0x20) : *c;
        capital = !letter;
    }
    out[k] = '\0';
}

static bool add_operation(cJSON *paths, const struct route *route) {
    char method[16], id[128];
    cJSON *path = cJSON_GetObjectItemCaseSensitive(paths, route->pattern);
    path = path ? path : cJSON_AddObjectToObject(paths, route->pattern);
    snprintf(method, sizeof method, "%s", route->method);
    for (char *c = method; *c; c++)
        *c = (char)(*c | 0x20);
    operation_id(route, id, sizeof id);
    cJSON *operation = path ? cJSON_AddObjectToObject(path, method) : NULL;
    bool ok = operation && cJSON_AddStringToObject(operation, "operationId", id) &&
              cJSON_AddStringToObject(operation, "summary", route->summary) && add_security(operation, route) &&
              add_parameters(operation, route);
    if (ok && route->request) {
        cJSON *body = cJSON_AddObjectToObject(operation, "requestBody");
        ok = body && cJSON_AddBoolToObject(body, "required", true) &&
             add_content(body, route->flags & ROUTE_UPLOAD ? "multipart/form-data" : json_type, route->request);
    }
    cJSON *responses = ok ? cJSON_AddObjectToObject(operation, "responses") : NULL;
    return responses && add_good(responses, route) && add_bad(responses, route);
}

static bool add_header(cJSON *to, enum header header, enum header_duty duty) {
    char name[64];
    component_of(header, duty, name, sizeof name);
    cJSON *item = cJSON_AddObjectToObject(to, name);
    return item && cJSON_AddStringToObject(item, "description", header_about(header)) &&
           cJSON_AddBoolToObject(item, "required", duty == HEADER_ALWAYS) &&
           add_parsed(item, "schema", header_schema(header));
}

/* All headers go into components/headers, those of every answer into x-headers. */
static bool add_all_headers(cJSON *root, cJSON *components) {
    cJSON *all = cJSON_AddObjectToObject(components, "headers");
    cJSON *everywhere = all ? cJSON_AddObjectToObject(root, "x-headers") : NULL;
    bool ok = everywhere != NULL;
    for (int i = 0; i < HEADER_COUNT && ok; i++) {
        const enum header header = (enum header)i;
        const enum header_duty duty = header_everywhere(header);
        if (duty != HEADER_NEVER)
            ok = add_header(all, header, duty) && add_header_reference(everywhere, header, duty);
        else
            ok = add_header(all, header, HEADER_ALWAYS) && add_header(all, header, HEADER_MAYBE);
    }
    return ok;
}

static bool add_components(cJSON *root) {
    cJSON *components = cJSON_AddObjectToObject(root, "components");
    cJSON *all = components ? cJSON_AddObjectToObject(components, "schemas") : NULL;
    size_t n;
    const struct schema *schemas = schemas_list(&n);
    bool ok = all != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = add_parsed(all, schemas[i].name, schemas[i].text);
    ok = ok && add_all_headers(root, components);
    cJSON *schemes = ok ? cJSON_AddObjectToObject(components, "securitySchemes") : NULL;
    cJSON *token = schemes ? cJSON_AddObjectToObject(schemes, "token") : NULL;
    return token && cJSON_AddStringToObject(token, "type", "http") &&
           cJSON_AddStringToObject(token, "scheme", "bearer");
}

static bool add_problems(cJSON *root) {
    cJSON *list = cJSON_AddArrayToObject(root, "x-problems");
    for (size_t i = PROBLEM_NONE + 1; list && i < PROBLEM_COUNT; i++) {
        cJSON *item = cJSON_CreateObject();
        if (!item || !cJSON_AddItemToArray(list, item) ||
            !cJSON_AddStringToObject(item, "code", problem_code((enum problem)i)) ||
            !cJSON_AddNumberToObject(item, "status", problem_status((enum problem)i)) ||
            !cJSON_AddStringToObject(item, "title", problem_title((enum problem)i)))
            return false;
    }
    return list;
}

static bool add_info(cJSON *root) {
    cJSON *info = cJSON_AddObjectToObject(root, "info");
    return info && cJSON_AddStringToObject(info, "title", "syncopate") &&
           cJSON_AddStringToObject(info, "version", SYNCOPATE_VERSION) &&
           cJSON_AddStringToObject(info, "description",
                                   "Synchronization strategies for data-parallel training: models, clusters, "
                                   "predictions, tuning sessions and everybody's measurements.");
}

enum status openapi_write(size_t n_routes, const struct route *routes, char **out, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "openapi", "3.1.0") && add_info(root);
    cJSON *paths = ok ? cJSON_AddObjectToObject(root, "paths") : NULL;
    ok = paths != NULL;
    for (size_t i = 0; i < n_routes && ok; i++)
        ok = routes[i].flags & ROUTE_HIDDEN || add_operation(paths, &routes[i]);
    ok = ok && add_components(root) && add_problems(root);
    char *text = ok ? json_line(root) : NULL;
    cJSON_Delete(root);
    if (!text)
        return error_no_memory(err);
    *out = text;
    return ST_OK;
}
