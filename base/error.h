/* Status codes, and the error that says what failed.
 *
 * A function that can fail returns an enum status and takes a caller-owned struct error as its last parameter. The
 * first to detect a failure fills the error: what was wrong, where, and what to do. Callers pass the error on, and may
 * put a place before it. Only the program's edge makes a text of it: a log line, an answer, a row of the dataset.
 * Functions write their outputs only on ST_OK. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stddef.h>

/* X(name, word for people and programs, exit code). service/http/transport/problem.h has the codes of HTTP. */
#define STATUS_TABLE(X)                                                                                                \
    X(ST_OK, "ok", 0)                                                                                                  \
    X(ST_USAGE, "usage", 2)             /* a command line or request that makes no sense */                            \
    X(ST_INVALID, "invalid", 2)         /* a description that breaks a rule */                                         \
    X(ST_NOT_FOUND, "not-found", 2)     /* a file, record or name that is not there */                                 \
    X(ST_TOO_LARGE, "too-large", 2)     /* input over a stated limit */                                                \
    X(ST_INFEASIBLE, "infeasible", 3)   /* well-formed, but cannot run on this cluster or with this runner */          \
    X(ST_CONFLICT, "conflict", 1)       /* the state does not allow it */                                              \
    X(ST_ENVIRONMENT, "environment", 1) /* no root, no mpirun, disk full, read-only file */                            \
    X(ST_TRIAL, "trial-failed", 1)      /* a real run crashed, hung or computed a wrong sum */                         \
    X(ST_TIMEOUT, "timeout", 1)         /* a deadline passed */                                                        \
    X(ST_NUMERIC, "numeric", 1)         /* a numerical routine failed */                                               \
    X(ST_NO_MEMORY, "no-memory", 1)                                                                                    \
    X(ST_UNREACHABLE, "unreachable", 4) /* a service does not answer or refuses */                                     \
    X(ST_CANCELLED, "cancelled", 130)   /* the user interrupted */

enum status {
#define X(name, word, exit_code) name,
    STATUS_TABLE(X)
#undef X
};

enum { ERROR_TEXT_ROOM = 512, ERROR_POINTER_ROOM = 288, ERROR_CODE_ROOM = 24 };

struct error {
    enum status status;
    char code[ERROR_CODE_ROOM];       /* for programs, where the status says too little: "no-launcher"; or empty */
    size_t position;                  /* the line, byte or record that it is about, from 1; 0: unknown, or none */
    char place[ERROR_TEXT_ROOM];      /* the document: "cluster.json", "trace.txt:12", "body"; or empty */
    char pointer[ERROR_POINTER_ROOM]; /* a JSON pointer into the document: "/variables/3"; or empty */
    char message[ERROR_TEXT_ROOM];    /* what is wrong with it */
};

/* Fill *err and return `status`, so that a failure is one line: return error_set(err, ST_..., "...").
 * Here and below, err may be NULL, and what is too long is cut. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same about the document or file `place`. */
enum status error_at(struct error *err, enum status status, const char *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Say in which document an error is, where the caller knows it and the detector did not. If the error has a place
 * already, that place and its pointer become part of the message. Returns `status`. */
enum status error_prefix(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Give an error a word for programs. Returns `status`. */
enum status error_code(struct error *err, enum status status, const char *code);

/* Put a JSON pointer before the error's own: the detector saw a part of the document. Returns `status`. */
enum status error_inside(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* *err becomes a copy of *from. Returns its status. */
enum status error_pass(struct error *err, const struct error *from);

/* The error for people, "place: pointer: message", into `out`, which may be a part of *err. Returns `out`. */
char *error_text(const struct error *err, char out[ERROR_TEXT_ROOM]);

/* The same for one call: log_error("%s", ERROR_TEXT(&err)). The text lives until the end of the enclosing block. */
#define ERROR_TEXT(err) error_text((err), (char[ERROR_TEXT_ROOM]){0})

enum status error_no_memory(struct error *err);

/* The static analyzer sees one source at a time and would have to suppose that these may return ST_OK. */
#ifdef __clang_analyzer__
#define error_set(err, status, ...) ((void)error_set(err, status, __VA_ARGS__), (status))
#define error_at(err, status, ...)  ((void)error_at(err, status, __VA_ARGS__), (status))
#define error_no_memory(err)        ((void)error_no_memory(err), ST_NO_MEMORY)
#endif

const char *status_word(enum status status);
int status_exit_code(enum status status);

#endif
