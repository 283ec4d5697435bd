/* Run one program to its end: its output line by line, a time limit, cancellation, and nothing left behind.
 *
 * Between the caller and the program stands a guard, a forked process that adopts whatever the program starts (also
 * what the program daemonized) and kills it all when the program ends, when the caller stops the run, and when the
 * caller dies, even by SIGKILL. It needs no privileges. A hook lets the program start elsewhere: the lab uses it to
 * enter namespaces of its own.
 * Units: seconds (_s).
 * Threads: any number of runs at a time, each blocking its own thread. */
#ifndef TRIAL_RUNNER_PROCESS_H
#define TRIAL_RUNNER_PROCESS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR };

enum process_ending {
    PROCESS_EXITED,    /* by itself: exit_code */
    PROCESS_SIGNALLED, /* by a signal that we did not send: signal */
    PROCESS_TIMED_OUT, /* timeout_s passed */
    PROCESS_SILENT,    /* no line on standard output within first_line_timeout_s */
    PROCESS_STOPPED,   /* on_line or on_tick returned false */
    PROCESS_CANCELLED  /* *cancel became non-zero */
};

enum {
    PROCESS_LINE_MAX = 1 << 20, /* bytes of a line that are kept; the rest of a longer one is dropped */
    PROCESS_LAST_WORDS = 400    /* bytes of the end of standard error that are kept for the reason */
};

struct process_hook {
    /* In the guard, before it forks the child. NULL: nothing to do. */
    enum status (*before_fork)(void *context, struct error *err);
    /* In the child, before it executes the program, standard streams in place. It may fork and return only in the
     * process that is to become the program; the other then passes that one's wait status to process_report. */
    enum status (*in_child)(void *context, struct error *err);
    void *context;
};

struct process_options {
    const char *const *argv;        /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const *environment; /* NULL-terminated "NAME=value", on top of the caller's; NULL: none */
    const char *directory;          /* NULL: the caller's */
    const struct process_hook *hook;
    bool scratch;                 /* give it a TMPDIR of its own, removed afterwards */
    const int *hold;              /* a descriptor that stays open until all has ended, whatever ends the caller; NULL */
    double timeout_s;             /* 0: no limit */
    bool timeout_from_first_line; /* timeout_s begins with the first line on standard output; before it, no limit */
    double grace_s;               /* > 0: a stopped program and its process group get SIGTERM, and this long to end */
    double first_line_timeout_s;  /* 0: no limit */
    const atomic_int *cancel;
    /* Called in the caller's thread; `line` has no line end, n bytes and a NUL. False stops the program. */
    bool (*on_line)(void *context, enum process_stream stream, const char *line, size_t n);
    bool (*on_tick)(void *context); /* some 20 times a second, and once at the end; false stops the program. NULL */
    void *context;
};

struct process_result {
    enum process_ending ending;
    int exit_code; /* PROCESS_EXITED */
    int signal;    /* PROCESS_SIGNALLED */
    double wall_s;
    double first_line_s; /* until the first line on standard output; < 0 when there was none */
    char last_words[PROCESS_LAST_WORDS + 1];
};

/* Run it; standard input is empty. On return every process that it started is dead and reaped.
 * ST_OK means that it ran; *out says how it ended. Fails: ST_NOT_FOUND (no such program), ST_ENVIRONMENT, ST_NO_MEMORY,
 * or what the hook says. */
enum status process_run(const struct process_options *options, struct process_result *out, struct error *err);

/* ST_OK for exit code 0. Otherwise one sentence with the reason and the last words, and ST_TRIAL, ST_TIMEOUT or
 * ST_CANCELLED. */
enum status process_judge(const struct process_result *result, const char *what, struct error *err);

/* For hooks: tell the caller of process_run how the program ended. */
void process_report(int wait_status);

#endif
