/* What was measured live: a file of JSON Lines, one a trial, written as the trial ends.
 *
 *     {"domain":"decoder-four","method":"grid","seed":1,"trial":7,"strategy":"<id>","iterations":12,"us":61234.5}
 *
 * `us` is the median, absent when the trial did not complete. Repeats of good strategies have the method "repeat", the
 * round as seed and their place in it as trial. Functions end the program when something fails. Threads: one. */
#ifndef TESTS_EVALUATE_LIVE_RECORDS_H
#define TESTS_EVALUATE_LIVE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define RECORDS_REPEAT "repeat"

struct live_record {
    const char *domain, *method;
    uint64_t seed, trial; /* from 1 */
    const char *strategy; /* its whole id */
    uint64_t iterations;
    double us; /* INFINITY: did not complete */
};

struct records {
    struct arena arena;
    size_t n, capacity;
    struct live_record *items; /* in the order of the file */
    int file;                  /* -1: read only */
};

/* Read all of `path`; with `append` it is made when it is not there, and a last line that a killed program left
 * unfinished is cut off. Release with records_release. */
void records_open(struct records *records, const char *path, bool append);
void records_release(struct records *records);

/* NULL when there is none. A repeat is found by its strategy, since what is repeated grows with the plays. */
const struct live_record *records_find(const struct records *records, const char *domain, const char *method,
                                       uint64_t seed, uint64_t trial);
const struct live_record *records_find_repeat(const struct records *records, const char *domain, uint64_t round,
                                              const char *strategy);

/* Into the file and the list; texts are copied. */
void records_append(struct records *records, const struct live_record *record);

#endif
