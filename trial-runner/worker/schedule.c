/* Messages are stored in the order they go, so the ready set is a bitmap and priority is its first set bit:
 * O(messages / 64) a decision. */
#include "trial-runner/worker/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "trial-runner/worker/report.h"

void schedule_init(struct schedule *schedule, const struct plan *plan) {
    *schedule = (struct schedule){.plan = plan, .ready = report_alloc(plan->n_messages / 64 + 1, sizeof(uint64_t))};
}

void schedule_ready(struct schedule *schedule, uint32_t message) {
    schedule->ready[message / 64] |= UINT64_C(1) << message % 64;
    schedule->n_ready++;
}

static uint32_t first_ready(const struct schedule *schedule) {
    uint32_t word = 0;
    while (!schedule->ready[word])
        word++;
    return word * 64 + (uint32_t)__builtin_ctzll(schedule->ready[word]);
}

static bool is_ready(const struct schedule *schedule, uint32_t message) {
    return schedule->ready[message / 64] >> message % 64 & 1;
}

static bool fits(const struct schedule *schedule, uint64_t bytes) {
    uint64_t credit = schedule->plan->credit_bytes;
    if (schedule->in_flight == 0 || credit == CREDIT_UNLIMITED)
        return true;
    return schedule->in_flight_bytes <= credit && bytes <= credit - schedule->in_flight_bytes;
}

bool schedule_next(struct schedule *schedule, uint32_t *message) {
    if (schedule->n_ready == 0)
        return false;
    bool strict = schedule->plan->policy != POLICY_priority;
    uint32_t chosen = strict ? schedule->next : first_ready(schedule);
    if (!is_ready(schedule, chosen) || !fits(schedule, schedule->plan->messages[chosen].bytes))
        return false;
    schedule->ready[chosen / 64] &= ~(UINT64_C(1) << chosen % 64);
    schedule->n_ready--;
    schedule->next = (chosen + 1) % (schedule->plan->n_messages - schedule->plan->n_replicas);
    schedule_take(schedule, chosen);
    *message = chosen;
    return true;
}

void schedule_take(struct schedule *schedule, uint32_t message) {
    schedule->in_flight++;
    schedule->in_flight_bytes += schedule->plan->messages[message].bytes;
}

void schedule_return(struct schedule *schedule, uint32_t message) {
    assert(schedule->in_flight > 0);
    schedule->in_flight--;
    schedule->in_flight_bytes -= schedule->plan->messages[message].bytes;
}

void schedule_release(struct schedule *schedule) {
    free(schedule->ready);
    *schedule = (struct schedule){0};
}
