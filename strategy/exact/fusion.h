/* Which gradients travel together, when the messages may then be preempted (PACE §V).
 *
 * Gradients stand in the order of readiness; a group is a run of them of one dtype. A group of B bytes is one job on
 * the network: work = startup + per_byte * B, release = its latest member's, tail = its longest member's. One exact
 * schedule (strategy/exact/one_machine.h) values a fusion. Two answers:
 *
 *   fusion_balanced   PACE's algorithm 1: for every number of groups R the cut whose smallest group is the largest, and
 *                     of these the R with the best schedule. Balance is a proxy: the schedule chooses R, but not where
 *                     the groups end.
 *   fusion_makespan   the cut whose schedule is the best of all 2^(n-1), a problem that the paper leaves open.
 *
 * Groups of neighbours only, as in the paper: taking a later gradient into an earlier group delays that group.
 * Units: bytes, microseconds. */
#ifndef STRATEGY_EXACT_FUSION_H
#define STRATEGY_EXACT_FUSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/line.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/one_machine.h"

/* After a failure nothing here may be read. Group k is gradients ends[k - 1] .. ends[k] - 1 (ends[-1] = 0);
 * ends[n_groups - 1] = n. */
struct fusion {
    uint32_t n_groups;
    uint32_t *ends;  /* the caller's, room for n */
    double value_us; /* last arrival plus its tail, the best over all preemptive schedules */
    bool proved;     /* fusion_makespan: no other cut has a value below (1 - 1e-9) value_us */
};

/* The jobs of a cut. O(n). */
void fusion_jobs(const struct gradient *gradients, const struct cost_line *line, uint32_t n_groups,
                 const uint32_t *ends, struct machine_job *jobs);

/* A cut of n gradients is balanced at every R up to n as long as n * n <= FUSION_CELLS, otherwise at those up to
 * FUSION_CELLS / n (the paper too gives up enumeration when n is large). */
enum { FUSION_CELLS = 1 << 20 };

/* MaxMinSize(N, R) for all R at once: the recurrence of algorithm 1 with its ties (the shortest first group). As the
 * first group gets more bytes, what is left gets fewer, so the best cut lies where the two cross. That place only moves
 * one way, which makes O(n) for each R instead of O(n * n); see fusion.c. */
struct fusion_balance {
    uint32_t n, limit;
    uint32_t *next; /* (limit + 1) x (n + 1): end of the first group of what starts at i, in R groups; 0: impossible */
    uint64_t *smallest; /* limit + 1: bytes of the smallest group when all n are cut into R; 0: impossible */
};
enum status fusion_balance_init(struct fusion_balance *balance, uint32_t n, const struct gradient *gradients,
                                struct error *err);
void fusion_balance_release(struct fusion_balance *balance);

/* The balanced cut into R groups, 1 <= R <= limit; false when there is none: more groups than gradients, or fewer
 * groups than runs of one dtype. O(R). */
bool fusion_balance_ends(const struct fusion_balance *balance, uint32_t n_groups, uint32_t *ends);

/* Algorithm 1. If several R are equally good, the least counts. Where there are more runs of one dtype than the limit
 * allows groups, every run is a group. n >= 1. O(limit * n + sum over R of R log R). Fails: ST_NO_MEMORY. */
enum status fusion_balanced(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                            struct fusion *out, struct error *err);

/* The cut with the least value. Where tails rise with readiness (as in any chain of layers: what is ready last is
 * needed first) it is exact, and each step of a bisection takes O(n * n). Otherwise it is exact as long as no more than
 * FUSION_LABELS partial cuts of each suffix must be kept; out->proved says whether that was so. Chains of more than
 * FUSION_CHAIN gradients are first coarsened, and then nothing is proved. Never worse than fusion_balanced. n >= 1.
 * Fails: ST_NO_MEMORY. */
enum { FUSION_LABELS = 64, FUSION_CHAIN = 2048 };
enum status fusion_makespan(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                            struct fusion *out, struct error *err);

#endif
