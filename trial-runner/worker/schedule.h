/* Which ready message goes next, and whether the credit lets it: the plan's order, without communication.
 *
 * fifo and preemptive: strictly in the plan's order; a later message never overtakes one that is not ready yet.
 * priority: the lowest of those that are ready. When the one whose turn it is does not fit, nothing goes. */
#ifndef TRIAL_RUNNER_WORKER_SCHEDULE_H
#define TRIAL_RUNNER_WORKER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"

struct schedule {
    const struct plan *plan;
    uint64_t *ready; /* one bit a message */
    uint32_t n_ready, next;
    uint64_t in_flight_bytes;
    uint32_t in_flight;
};

void schedule_init(struct schedule *schedule, const struct plan *plan);
void schedule_ready(struct schedule *schedule, uint32_t message);

/* The message that goes now, its credit taken; false when there is none. */
bool schedule_next(struct schedule *schedule, uint32_t *message);

/* Take the credit of a message that another rank has decided on, or return one's credit. */
void schedule_take(struct schedule *schedule, uint32_t message);
void schedule_return(struct schedule *schedule, uint32_t message);

void schedule_release(struct schedule *schedule);

#endif
