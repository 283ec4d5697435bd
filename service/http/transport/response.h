/* What a handler answers: a status, headers and a body, or a stream of events.
 *
 * A response is {0} when the handler gets it, and {0} means 200 without a body. Texts are borrowed: from the request's
 * arena, or from what lives as long as the service. */
#ifndef SERVICE_HTTP_TRANSPORT_RESPONSE_H
#define SERVICE_HTTP_TRANSPORT_RESPONSE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "service/http/transport/events.h"
#include "service/http/transport/headers.h"
#include "service/http/transport/problem.h"

enum { RESPONSE_MAX_HEADERS = 8 };

struct response_header {
    enum header header;
    const char *value;
};

struct response {
    unsigned status; /* 0: 200 */
    const char *content_type;
    const char *body;
    size_t n;
    void *owned;               /* malloc'd memory behind `body`, freed when it was sent; or NULL */
    const char *etag;          /* without quotes; If-None-Match is answered from it */
    const char *cache_control; /* NULL: no-store */
    size_t n_headers;
    struct response_header headers[RESPONSE_MAX_HEADERS];
    enum problem problem;        /* PROBLEM_NONE but for problems; the body is then written by dispatch */
    const char *problem_detail;  /* in the arena */
    const char *problem_pointer; /* a JSON pointer into the body, or NULL */
    size_t n_losses;
    const struct problem_loss *losses; /* in the arena */
    struct event_source *source;       /* a stream of events instead of a body; taken */
};

/* Answer with `json`, which is taken; `whole` says that every member could be added. Fails: ST_NO_MEMORY. */
enum status response_json(struct response *response, unsigned status, cJSON *json, bool whole, struct error *err);

/* Answer with n bytes that live long enough. */
void response_bytes(struct response *response, unsigned status, const char *content_type, const char *body, size_t n);

/* One more header; a ninth is left out and asserted against. */
void response_header(struct response *response, enum header header, const char *value);

/* The value of a header that it has already, borrowed, or NULL. */
const char *response_header_value(const struct response *response, enum header header);

/* Answer with a problem, before a handler is asked or after: handlers fail with problem_fail. */
void response_problem(struct response *response, struct arena *arena, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Forget what was answered so far and free what it owns. */
void response_clear(struct response *response);

#endif
