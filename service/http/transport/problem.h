/* Errors as programs and people get them: problem details (RFC 9457), application/problem+json.
 *
 *     {"type":"/problems/stale-attempt","title":"...","status":409,"detail":"...","code":"stale-attempt",
 *      "request_id":"...","errors":[{"pointer":"/variables/3","detail":"..."}],"losses":[{"what":"order","why":"..."}]}
 *
 * The code is stable and what programs should look at; the detail is for people. A struct error becomes the problem of
 * its status. */
#ifndef SERVICE_HTTP_TRANSPORT_PROBLEM_H
#define SERVICE_HTTP_TRANSPORT_PROBLEM_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* X(constant, code, HTTP status, title) */
#define PROBLEM_TABLE(X)                                                                                               \
    X(PROBLEM_NONE, "none", 200, "No problem")                                                                         \
    X(PROBLEM_BAD_REQUEST, "bad-request", 400, "The request makes no sense")                                           \
    X(PROBLEM_BAD_FRAMING, "bad-framing", 400, "The request's length or headers are ambiguous")                        \
    X(PROBLEM_BAD_PARAMETER, "bad-parameter", 400, "A query parameter is unknown, repeated or wrong")                  \
    X(PROBLEM_BAD_JSON, "bad-json", 400, "The body is not JSON")                                                       \
    X(PROBLEM_UNAUTHORIZED, "unauthorized", 401, "A valid token is needed")                                            \
    X(PROBLEM_FORBIDDEN, "forbidden", 403, "The token's role does not allow it")                                       \
    X(PROBLEM_CROSS_ORIGIN, "cross-origin", 403, "Another site's page may not do this")                                \
    X(PROBLEM_NOT_FOUND, "not-found", 404, "There is no such thing")                                                   \
    X(PROBLEM_METHOD_NOT_ALLOWED, "method-not-allowed", 405, "This cannot be done to it")                              \
    X(PROBLEM_CONFLICT, "conflict", 409, "Its state does not allow it")                                                \
    X(PROBLEM_NO_LAUNCHER, "no-launcher", 409, "The service cannot run trials on this cluster")                        \
    X(PROBLEM_STALE_ATTEMPT, "stale-attempt", 409, "The trial is no longer this client's")                             \
    X(PROBLEM_PRECONDITION_FAILED, "precondition-failed", 412, "It has changed since")                                 \
    X(PROBLEM_TOO_LARGE, "too-large", 413, "Over a stated limit")                                                      \
    X(PROBLEM_UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", 415, "Bodies of this media type are not taken here")   \
    X(PROBLEM_INVALID, "invalid", 422, "The description breaks a rule")                                                \
    X(PROBLEM_INFEASIBLE, "infeasible", 422, "It cannot run on this cluster")                                          \
    X(PROBLEM_NOT_EXPRESSED, "not-expressed", 422, "The framework's form cannot say all of it")                        \
    X(PROBLEM_IDEMPOTENCY_MISMATCH, "idempotency-mismatch", 422, "The key was used for another request")               \
    X(PROBLEM_RATE_LIMITED, "rate-limited", 429, "Too many requests")                                                  \
    X(PROBLEM_QUOTA, "quota-exceeded", 429, "A quota is used up")                                                      \
    X(PROBLEM_HEADERS_TOO_LARGE, "headers-too-large", 431, "The request's target and headers are too long")            \
    X(PROBLEM_INTERNAL, "internal", 500, "The service failed")                                                         \
    X(PROBLEM_DRAINING, "draining", 503, "The service is stopping")                                                    \
    X(PROBLEM_OVERLOADED, "overloaded", 503, "The service is busy")                                                    \
    X(PROBLEM_TOKENS_UNREADABLE, "tokens-unreadable", 503, "The service cannot read its tokens")                       \
    X(PROBLEM_DATABASE_AWAY, "database-away", 503, "The dataset's database does not answer")                           \
    X(PROBLEM_TIMEOUT, "timeout", 504, "It took too long")                                                             \
    X(PROBLEM_STORAGE, "insufficient-storage", 507, "Memory or disk is full, or the disk refuses")

enum problem {
#define X(constant, code, status, title) constant,
    PROBLEM_TABLE(X)
#undef X
        PROBLEM_COUNT
};

const char *problem_code(enum problem problem);
const char *problem_title(enum problem problem);
unsigned problem_status(enum problem problem);

/* What clients are told when the file of tokens cannot be read; the log says why. */
#define PROBLEM_TOKENS_DETAIL "the service cannot read its tokens, so it lets nobody in; its log says why"

/* The problem that a failed function's error is. */
enum problem problem_of_status(enum status status);

/* Refuse the request: fill *err with the problem's code, and return the error's status. */
enum status problem_fail(struct error *err, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The problem that answers an error: the problem of its code, or of its status where it has no code. */
enum problem problem_of(const struct error *err);

/* A part of a strategy that a framework's form cannot express. */
struct problem_loss {
    const char *what, *why; /* a word of interop/export/export.h, and a sentence */
};

struct problem_details {
    enum problem problem;
    const char *detail;  /* for people; NULL: the title */
    const char *pointer; /* a JSON pointer into the body, or NULL */
    size_t n_losses;
    const struct problem_loss *losses;
};

/* The JSON text, malloc'd; NULL when memory is out. */
char *problem_text(const struct problem_details *problem, const char *request_id);

/* The place of errors about the request's body. */
#define PROBLEM_BODY "body"

/* Where in the request's body an error is, borrowed from it; NULL: it is about something else. */
const char *problem_pointer(const struct error *err);

/* What an error says beside its place in the body, clean, into `out`, which it returns. */
char *problem_detail(const struct error *err, char out[ERROR_TEXT_ROOM]);

#endif
