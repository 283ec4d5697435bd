/* Iteration times out of what the user's own job says: lines of its output that a pattern finds, or JSON lines.
 *
 * A pattern is a POSIX extended regular expression with one group, the number. Its unit is given, or else stands behind
 * the number in the line: "iteration 7: 12.5 ms". A rate (samples/s) becomes the time of an iteration by the samples
 * that one iteration takes. A JSON line is an object with "time_us", or with "samples_per_s". It may have
 * "iteration": then it counts only if the number is above the last one, so of several ranks that report an iteration
 * the first counts.
 * Units: microseconds (_us). Threads: a reader belongs to one thread at a time. */
#ifndef TRIAL_RUNNER_JOB_TIMES_H
#define TRIAL_RUNNER_JOB_TIMES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* X(constant, word, microseconds) */
#define JOB_UNIT_TABLE(X)                                                                                              \
    X(JOB_UNIT_SUFFIX, "", 0) /* as the line says */                                                                   \
    X(JOB_UNIT_S, "s", 1e6)                                                                                            \
    X(JOB_UNIT_MS, "ms", 1e3)                                                                                          \
    X(JOB_UNIT_US, "us", 1)                                                                                            \
    X(JOB_UNIT_RATE, "samples/s", 0)

enum job_unit {
#define X(constant, word, us) constant,
    JOB_UNIT_TABLE(X)
#undef X
};
bool job_unit_parse(const char *word, enum job_unit *out);

struct job_times {
    const char *pattern; /* borrowed; NULL: JSON lines */
    enum job_unit unit;
    double samples; /* that an iteration takes on all devices together; 0: unknown */
    regex_t regex;  /* of the pattern */
    double last;    /* "iteration" of the last JSON line that counted; < 0 before it */
    char odd[256];  /* the last line that should have been a time and was none, and why; "" */
};

/* Fails: ST_USAGE, when the pattern is no regular expression or has not exactly one group. Release with
 * job_times_release. */
enum status job_times_init(struct job_times *out, const char *pattern, enum job_unit unit, double samples,
                           struct error *err);
void job_times_release(struct job_times *times);

/* To be called before each trial. */
void job_times_begin(struct job_times *times);

/* Whether the line, of n bytes and a NUL, has a time. */
bool job_times_match(struct job_times *times, const char *line, size_t n, double *time_us);
bool job_times_json(struct job_times *times, const char *line, size_t n, double *time_us);

/* Whether the text is a time with its unit, or a rate, and nothing else: "12.3ms", "2560 samples/s". When it is not,
 * `odd` says why. */
bool job_times_value(struct job_times *times, const char *text, double *time_us);

#endif
