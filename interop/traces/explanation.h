/* Where an iteration's time went, rank by rank, from the profiler traces of all ranks.
 *
 * At each moment a rank computes; or it does not compute and a message of its own moves (exposed communication); or
 * all its collectives that are under way wait for a rank that has not come yet (waiting); or nothing of this (idle:
 * loading data, the host between two kernels, a sleep).
 * Units: microseconds. Threads: one at a time. */
#ifndef INTEROP_TRACES_EXPLANATION_H
#define INTEROP_TRACES_EXPLANATION_H

#include "interop/traces/meetings.h"

/* X(name, words) */
#define TIME_TABLE(X)                                                                                                  \
    X(compute, "compute")                                                                                              \
    X(exposed, "exposed communication")                                                                                \
    X(waiting, "waiting for a rank")                                                                                   \
    X(idle, "idle")

enum time_kind {
#define X(name, words) TIME_##name,
    TIME_TABLE(X)
#undef X
        TIME_COUNT
};

/* One rank, means over its iterations. */
struct rank_account {
    double iteration_us, us[TIME_COUNT]; /* which add up to the iteration */
    double hidden_us;                    /* of its communication: behind its computing, waiting left out */
    double held_up_us;                   /* others waited so long for it in an iteration, mean over the others */
    size_t n_met, n_last;                /* meetings in which it took part, and to which it came last */
    double gap_us;                       /* then by so much after the last but one, in the median; 0: never */
};

struct explanation {
    size_t n; /* traces, by rank */
    struct rank_trace *traces;
    struct rank_account *accounts;
    struct meetings meetings;
    struct text_set texts;
    struct arena arena;
    double iteration_us; /* mean over the ranks */
    double most_won_us;  /* of an iteration, by tuning communication alone: the busiest rank computes or idles in the
                            rest */
    bool numbered;       /* traces did not tell their ranks and were numbered in the order given */
    size_t late;         /* the rank for which others wait longest; n: none beyond what clocks can tell */
};

enum { EXPLANATION_MAX_TRACES = 4096 };

/* Read the traces (trace_source) and explain them; their names are borrowed. Zeroed where it fails. Fails: as
 * rank_trace_read; ST_INVALID (two of one rank; of different jobs). */
enum status explanation_of(size_t n, const struct source *sources, struct explanation *out, struct error *err);
void explanation_release(struct explanation *explanation);

/* What a rank does for most of each of `cells` equal parts of its step `step` (an index). */
enum status explanation_picture(const struct explanation *explanation, size_t trace, size_t step, size_t cells,
                                enum time_kind *out, struct error *err);

/* The step of the trace (an index) whose length is the median. Fails: ST_NO_MEMORY. */
enum status explanation_typical_step(const struct rank_trace *trace, size_t *out, struct error *err);

const char *time_kind_words(enum time_kind kind);

#endif
