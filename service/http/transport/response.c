/* See response.h. */
#include "service/http/transport/response.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum status response_json(struct response *response, unsigned status, cJSON *json, bool whole, struct error *err) {
    char *text = whole && json ? json_line(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    free(response->owned);
    response->owned = text;
    response_bytes(response, status, "application/json", text, strlen(text));
    return ST_OK;
}

void response_bytes(struct response *response, unsigned status, const char *content_type, const char *body, size_t n) {
    response->status = status;
    response->content_type = content_type;
    response->body = body;
    response->n = n;
}

void response_header(struct response *response, enum header header, const char *value) {
    assert(response->n_headers < RESPONSE_MAX_HEADERS);
    if (response->n_headers < RESPONSE_MAX_HEADERS)
        response->headers[response->n_headers++] = (struct response_header){header, value};
}

const char *response_header_value(const struct response *response, enum header header) {
    for (size_t i = 0; i < response->n_headers; i++)
        if (response->headers[i].header == header)
            return response->headers[i].value;
    return NULL;
}

void response_problem(struct response *response, struct arena *arena, enum problem problem, const char *format, ...) {
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    const char *copy = arena_strdup(arena, detail);
    response->problem = problem;
    response->problem_detail = copy ? copy : problem_title(problem);
}

void response_clear(struct response *response) {
    free(response->owned);
    event_source_free(response->source);
    *response = (struct response){0};
}
