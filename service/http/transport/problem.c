/* See problem.h. Details of the service's own failures go only to the log; the client gets the request's id, by which
 * the log can be searched. */
#include "service/http/transport/problem.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const struct {
    const char *code, *title;
    unsigned status;
} rows[] = {
#define X(constant, code, status, title) {code, title, status},
    PROBLEM_TABLE(X)
#undef X
};

const char *problem_code(enum problem problem) {
    return rows[problem].code;
}

const char *problem_title(enum problem problem) {
    return rows[problem].title;
}

unsigned problem_status(enum problem problem) {
    return rows[problem].status;
}

enum problem problem_of_status(enum status status) {
    static const enum problem problems[] = {
        [ST_OK] = PROBLEM_NONE,
        [ST_USAGE] = PROBLEM_BAD_PARAMETER,
        [ST_INVALID] = PROBLEM_INVALID,
        [ST_NOT_FOUND] = PROBLEM_NOT_FOUND,
        [ST_TOO_LARGE] = PROBLEM_TOO_LARGE,
        [ST_INFEASIBLE] = PROBLEM_INFEASIBLE,
        [ST_CONFLICT] = PROBLEM_CONFLICT,
        [ST_ENVIRONMENT] = PROBLEM_INTERNAL,
        [ST_TRIAL] = PROBLEM_INTERNAL,
        [ST_TIMEOUT] = PROBLEM_TIMEOUT,
        [ST_NUMERIC] = PROBLEM_INTERNAL,
        [ST_NO_MEMORY] = PROBLEM_STORAGE,
        [ST_UNREACHABLE] = PROBLEM_OVERLOADED,
        [ST_CANCELLED] = PROBLEM_DRAINING,
    };
    return problems[status];
}

enum status problem_fail(struct error *err, enum problem problem, const char *format, ...) {
    char text[ERROR_TEXT_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(err, ST_UNREACHABLE, "%s", text);
    return error_code(err, ST_UNREACHABLE, problem_code(problem));
}

enum problem problem_of(const struct error *err) {
    for (enum problem p = 0; p < PROBLEM_COUNT; p++)
        if (!strcmp(rows[p].code, err->code))
            return p;
    return problem_of_status(err->status);
}

static bool add_error(cJSON *root, const char *pointer, const char *detail) {
    cJSON *errors = cJSON_AddArrayToObject(root, "errors"), *item = cJSON_CreateObject();
    if (!errors || !item || !cJSON_AddItemToArray(errors, item)) {
        cJSON_Delete(item);
        return false;
    }
    return cJSON_AddStringToObject(item, "pointer", pointer) && cJSON_AddStringToObject(item, "detail", detail);
}

static bool add_losses(cJSON *root, size_t n, const struct problem_loss *losses) {
    cJSON *list = n ? cJSON_AddArrayToObject(root, "losses") : NULL;
    bool whole = !n || list;
    for (size_t i = 0; i < n && whole; i++) {
        cJSON *item = cJSON_CreateObject();
        whole = cJSON_AddItemToArray(list, item) && cJSON_AddStringToObject(item, "what", losses[i].what) &&
                cJSON_AddStringToObject(item, "why", losses[i].why);
    }
    return whole;
}

char *problem_text(const struct problem_details *p, const char *request_id) {
    const enum problem problem = p->problem;
    char type[64], clean[1024];
    snprintf(type, sizeof type, "/problems/%s", problem_code(problem));
    snprintf(clean, sizeof clean, "%s", p->detail ? p->detail : problem_title(problem));
    text_clean(clean);
    cJSON *root = cJSON_CreateObject();
    bool whole = root && cJSON_AddStringToObject(root, "type", type) &&
                 cJSON_AddStringToObject(root, "title", problem_title(problem)) &&
                 cJSON_AddNumberToObject(root, "status", problem_status(problem)) &&
                 cJSON_AddStringToObject(root, "detail", clean) &&
                 cJSON_AddStringToObject(root, "code", problem_code(problem)) &&
                 cJSON_AddStringToObject(root, "request_id", request_id) &&
                 (!p->pointer || add_error(root, p->pointer, clean)) && add_losses(root, p->n_losses, p->losses);
    char *text = whole ? json_line(root) : NULL;
    cJSON_Delete(root);
    return text;
}

const char *problem_pointer(const struct error *err) {
    return strcmp(err->place, PROBLEM_BODY) ? NULL : err->pointer;
}

char *problem_detail(const struct error *err, char out[ERROR_TEXT_ROOM]) {
    if (problem_pointer(err))
        strcpy(out, err->message);
    else
        error_text(err, out);
    text_clean(out);
    return out;
}
