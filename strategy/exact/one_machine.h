/* One machine, jobs with release times and tails, preemption: 1 | r_j, pmtn | max(C_j + q_j).
 *
 * PACE's preemptive scheduling of all-reduces is this problem: the network is the machine, release = gradient ready,
 * tail = longest computation after the message. Jackson's rule, always the released job with the longest tail, solves
 * it exactly: the value is the maximum over sets S of jobs of min release + sum of work + min tail (Carlier, EJOR 11,
 * 1982). No linear program is needed. Units: any one unit of time. */
#ifndef STRATEGY_EXACT_ONE_MACHINE_H
#define STRATEGY_EXACT_ONE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct machine_job {
    double release, work, tail; /* none negative; work may be 0 */
};

/* The machine works on `job` from start to end. */
struct machine_slice {
    uint32_t job; /* position in the caller's jobs[] */
    double start, end;
};

/* The least possible max(completion + tail). jobs[] is sorted by release and its works are used up; scratch holds n
 * numbers. O(n log n). */
double one_machine_value(size_t n, struct machine_job *jobs, uint32_t *scratch);

/* The same, and a schedule that attains it: slices (room for 2n) in order of time, none empty, those of a job joined
 * where they touch, at most 2n - 1. Between equal tails the earlier release goes first, then the lower position.
 * Numbers that are whole give slices that are whole. scratch holds 2n numbers, copy n jobs. O(n log n). */
double one_machine_schedule(size_t n, const struct machine_job *jobs, struct machine_job *copy, uint32_t *scratch,
                            struct machine_slice *slices, size_t *n_slices);

#endif
