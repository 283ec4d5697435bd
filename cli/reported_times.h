/* Iteration times that a script reports by "session complete". The rules are those by which
 * "--command" reads the output of a job (trial-runner/job_times.h).
 *
 * On the command line they are a list, "213ms,209ms" or "2560samples/s,...". A file has JSON lines, or one such value
 * in each line. With a pattern, the file may hold any lines, and the pattern finds the number in some of them. A file
 * is read more strictly than the output of a job: without a pattern, a line that is none of these is an error. Units:
 * microseconds (_us). Threads: functions have no state. */
#ifndef CLI_REPORTED_TIMES_H
#define CLI_REPORTED_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reported_times_options {
    const char *list;           /* NULL: the file counts */
    const char *file;           /* "-": standard input */
    const char *pattern, *unit; /* of the file; NULL: none. The unit needs the pattern */
    uint64_t warmup;            /* so many times at the head of the file do not count */
    double samples;             /* of an iteration on all devices, for rates; 0: unknown */
};

/* *times_us[0..n) is malloc'd, for the caller to free. Fails: ST_USAGE, ST_NOT_FOUND (no such file), ST_ENVIRONMENT
 * (it cannot be read to its end), ST_INVALID (no time, with the file's line), ST_TOO_LARGE,
 * ST_NO_MEMORY. */
enum status reported_times_read(const struct reported_times_options *words, size_t *n, double **times_us,
                                struct error *err);

#endif
