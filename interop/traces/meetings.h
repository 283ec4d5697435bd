/* Which collectives of several ranks' traces are one and the same, when its last rank came, and what it cost from then
 * on: a single rank's trace shows how long that rank waited and sent, but not how much of it was waiting.
 *
 * Collectives of one process group and sequence number belong together; without such numbers those of the same
 * operation and bytes that are the k-th in a step. The clocks of hosts need not agree: where no rank is done before the
 * last has begun, all are done at about the same time, and that is how clocks are compared.
 * Units: microseconds. Threads: one at a time. */
#ifndef INTEROP_TRACES_MEETINGS_H
#define INTEROP_TRACES_MEETINGS_H

#include "base/statistics.h"
#include "interop/traces/rank_trace.h"

/* Beside less computing than this share of its time a message counts as undisturbed. */
#define MEETING_MOST_BESIDE 0.1

/* One collective that at least two traces have. */
struct meeting {
    const struct rank_collective *first; /* one of them: operation, group, bytes */
    uint32_t devices;                    /* in the group */
    size_t n;                            /* traces that have it */
    size_t last;                         /* the trace of the rank that came last */
    double gap_us;                       /* from the last but one rank's coming to the last's */
    double cost_us; /* from the last one's coming to the end; if messages of others moved too, its share of the time for
                       which any moved, by bytes; NAN: some bytes are not known */
    bool alone;     /* no other messages of these ranks moved meanwhile */
    double beside;  /* the share of that time for which the ranks computed, on average */
};

/* What one operation of one size costs among so many devices: over the meetings that were alone and whose `beside` is
 * below MEETING_MOST_BESIDE; if there are none, over those that were alone, or else over all. */
struct cost_point {
    const char *operation;
    uint32_t devices;
    uint64_t bytes;
    struct summary time_us;
    size_t n_left_out; /* meetings that time_us is not over */
    bool alone;        /* those of time_us were */
    double beside;     /* mean of meeting.beside over those of time_us */
};

struct meetings {
    struct meeting *items;
    size_t n;
    struct cost_point *points; /* by operation, devices, bytes; only where the traces have all ranks and the bytes */
    size_t n_points;
    size_t n_unmatched; /* collectives that no other trace has, or not the one that has most of their group's */
    size_t n_partial;   /* meetings of which some ranks' traces are missing */
    bool one_clock;     /* all ranks that met are on one host */
    double clock_us;    /* by so much ends differ from a common end in the median, once clocks are compared */
};

/* Find the meetings of n traces, and complete their collectives [O(collectives log collectives), and for each group the
 * product of its ranks and n]. Fails: ST_NO_MEMORY, ST_CANCELLED (base/work.h). */
enum status meetings_find(size_t n, struct rank_trace *traces, struct meetings *out, struct error *err);
void meetings_release(struct meetings *meetings);

#endif
