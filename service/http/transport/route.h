/* A route: a method and a path, who may use it, and which function answers. And finding the route of a request. The
 * table of them all is service/http/routes.c. */
#ifndef SERVICE_HTTP_TRANSPORT_ROUTE_H
#define SERVICE_HTTP_TRANSPORT_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "service/http/transport/request.h"
#include "service/http/transport/response.h"

/* Fill in *response. An error becomes the problem of its code, or of its status where it has none (problem_of). */
typedef enum status route_handler(struct request *request, struct response *response, struct error *err);

enum route_flags {
    ROUTE_SLOW = 1,                /* runs on the worker pool, not on a connection's thread */
    ROUTE_HEAVY = 64 | ROUTE_SLOW, /* computes for long: on a pool of its own, which gives way to all else */
    ROUTE_STREAM = 2,              /* answers with an event source; no deadline */
    ROUTE_KEYED = 4,               /* a change, by request_commit(): honours Idempotency-Key, which all others refuse */
    ROUTE_CONDITIONAL = 8,         /* a GET that answers with an entity tag: honours If-None-Match and If-Match */
    ROUTE_IF_MATCH = 16,           /* a change that honours If-Match; where neither is set, a precondition is refused */
    ROUTE_WHILE_DRAINING = 32,
    ROUTE_HIDDEN = 128,   /* not in /openapi.json: pages and assets */
    ROUTE_FORM = 256,     /* its body is a form of one of our pages (form_field() in page.h) */
    ROUTE_PAGE = 512,     /* its problems are pages too */
    ROUTE_BULK = 1024,    /* its body may be as large as the server takes; that of others is small (route_body_bytes) */
    ROUTE_GOES_ON = 2048, /* goes on with a trial or ends something: allowed to a team whose room is used up */
    ROUTE_LEASE = 4096,   /* changes a lease only, again and again: leaves no audit */
    ROUTE_UPLOAD = 8192,  /* its body is multipart/form-data of any size up to server_options.upload_bytes (upload.h) */
};

struct route {
    const char *method;  /* "GET"; HEAD is GET without the body */
    const char *pattern; /* "/api/v1/sessions/{id}/trials:suggest"; a {parameter} holds no '/' and no ':' */
    enum role role;      /* the least that may; ROLE_NONE: anybody */
    unsigned flags;
    const char *query;    /* names of query parameters, blanks between (schemas.h describes each); "" for none */
    const char *request;  /* schema of the body, NULL: no body */
    const char *response; /* schema of a good answer's body as JSON; NULL: it is never JSON */
    const char *media;    /* what it can be beside JSON, '|' between media types; NULL: nothing else */
    const char *statuses; /* of good answers: "200", "200 201" */
    const char *headers;  /* of good answers, beside those that the flags bring; "Location ETag?": ETag not always */
    const char *problems; /* codes beside those that route_problems() adds, blanks between */
    route_handler *handler;
    const char *summary;
};

enum route_match { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD, ROUTE_BAD_PATH };

/* The route of `method` for the path as sent (percent-encoded); its parameters go to the request, decoded. On
 * ROUTE_NO_METHOD allow[n] says which methods would do: "GET, POST". */
enum route_match route_match(const struct route *routes, size_t n_routes, const char *method, const char *path,
                             struct request *request, const struct route **out, char *allow, size_t n);

/* How large this route's body may be, where the server takes `most`. An upload has a limit of its own. */
uint64_t route_body_bytes(const struct route *route, uint64_t most);

/* Every problem that this route can answer with: its own and those of the checks before it. */
void route_problems(const struct route *route, bool out[PROBLEM_COUNT]);

/* Whether this route's answers of `status` have a header. */
enum header_duty route_header(const struct route *route, unsigned status, enum header header);

/* %XX decoded into `arena`. NULL: bad escape, a zero byte, invalid UTF-8, or no memory. */
const char *route_decode(struct arena *arena, const char *text, size_t n);

/* Is `word` one of the blank-separated `words`? */
bool route_has_word(const char *words, const char *word);

#endif
