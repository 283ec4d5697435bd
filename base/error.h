/* Status codes and the error that carries one to whoever decides what to do about it.
 *
 * A function that can fail returns an enum status and takes a caller-owned struct error as its last parameter. The
 * first to detect a failure fills it: what was wrong, where (file, JSON pointer) and what to do. Callers pass it on
 * unchanged. Outputs are written only on ST_OK. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* X(name, word for people and programs, HTTP status, exit code) */
#define STATUS_TABLE(X)                                                                                                \
    X(ST_OK, "ok", 200, 0)                                                                                             \
    X(ST_USAGE, "usage", 400, 2)             /* a command line or request that makes no sense */                       \
    X(ST_INVALID, "invalid", 422, 2)         /* a description that breaks a rule */                                    \
    X(ST_NOT_FOUND, "not-found", 404, 2)     /* a file, record or name that is not there */                            \
    X(ST_TOO_LARGE, "too-large", 413, 2)     /* input over a stated limit */                                           \
    X(ST_INFEASIBLE, "infeasible", 422, 3)   /* well-formed, but cannot run on this cluster or with this runner */     \
    X(ST_CONFLICT, "conflict", 409, 1)       /* the state does not allow it */                                         \
    X(ST_ENVIRONMENT, "environment", 500, 1) /* no root, no mpirun, disk full, read-only file */                       \
    X(ST_TRIAL, "trial-failed", 502, 1)      /* a real run crashed, hung or computed a wrong sum */                    \
    X(ST_TIMEOUT, "timeout", 504, 1)         /* a deadline passed */                                                   \
    X(ST_NUMERIC, "numeric", 500, 1)         /* a solver could not answer */                                           \
    X(ST_NO_MEMORY, "no-memory", 507, 1)                                                                               \
    X(ST_UNREACHABLE, "unreachable", 503, 4) /* a service does not answer or refuses */                                \
    X(ST_CANCELLED, "cancelled", 499, 130)   /* the user interrupted */

enum status {
#define X(name, word, http, exit_code) name,
    STATUS_TABLE(X)
#undef X
};

struct error {
    enum status status;
    char message[512];
};

/* Fill *err (may be NULL) and return `status`, so that a failure is one line: return error_set(err, ST_..., "..."). */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the message of *err (may be NULL), where the caller knows a place that the detector could not.
 * Returns `status`. */
enum status error_prefix(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum status error_no_memory(struct error *err);

/* The static analyzer sees one source at a time and would have to suppose that these may return ST_OK. */
#ifdef __clang_analyzer__
#define error_set(err, status, ...) ((void)error_set(err, status, __VA_ARGS__), (status))
#define error_no_memory(err)        ((void)error_no_memory(err), ST_NO_MEMORY)
#endif

const char *status_word(enum status status);
int status_exit_code(enum status status);
int status_http_code(enum status status);

#endif
