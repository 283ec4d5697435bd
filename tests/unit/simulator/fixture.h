/* Plans and clusters made by hand for the simulator's tests: what a test does not set is zero or ideal. */
#ifndef TESTS_UNIT_SIMULATOR_FIXTURE_H
#define TESTS_UNIT_SIMULATOR_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "simulator/timeline.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

enum { FIXTURE_STEPS = 64, FIXTURE_MESSAGES = 128 };

struct fixture {
    struct handmade site;
    struct variable variable;
    struct model model;
    double step_us[FIXTURE_STEPS];
    struct message messages[FIXTURE_MESSAGES];
    struct piece pieces[FIXTURE_MESSAGES];
    uint32_t first_ready[FIXTURE_STEPS + 1], by_ready[FIXTURE_MESSAGES];
    uint32_t first_gate[FIXTURE_STEPS + 1], by_gate[FIXTURE_MESSAGES];
    struct plan plan;
};

static inline void fixture_cluster(struct fixture *f, uint32_t n) {
    *f = (struct fixture){0};
    handmade_cluster(&f->site, n);
}

static inline void fixture_steps(struct fixture *f, uint32_t n_forward, uint32_t n_steps, const double *step_us) {
    f->plan.n_forward_steps = n_forward;
    f->plan.n_steps = n_steps;
    f->plan.micro_batches = 1;
    memcpy(f->step_us, step_us, n_steps * sizeof *step_us);
}

/* After these steps parameters are updated, which takes no time; returns the step. Before fixture_finish. */
static inline uint32_t fixture_update(struct fixture *f) {
    f->plan.ends_in_update = true;
    f->step_us[f->plan.n_steps] = 0;
    return f->plan.n_steps++;
}

static inline struct message *fixture_message(struct fixture *f, uint64_t bytes, uint32_t ready, uint32_t gate) {
    struct message *message = &f->messages[f->plan.n_messages++];
    *message = (struct message){
        .bytes = bytes, .ready = ready, .gate = gate, .other = NO_MESSAGE, .n_pieces = 1, .algorithm = ALGORITHM_ring};
    return message;
}

/* An all-gather or a reduce-scatter of its own. */
static inline struct message *fixture_half(struct fixture *f, enum half half, uint64_t bytes, uint32_t ready,
                                           uint32_t gate) {
    struct message *message = fixture_message(f, bytes, ready, gate);
    message->half = half;
    return message;
}

/* Make the message the first half of an all-reduce, and add the second, of so many bytes. fixture_finish joins the
 * halves by the number that both have in `other`. */
static inline void fixture_split(struct fixture *f, struct message *first, uint64_t bytes) {
    struct message *second = fixture_message(f, bytes, first->ready, first->gate);
    first->half = HALF_scatter;
    second->half = HALF_gather;
    first->other = second->other = f->plan.n_messages;
}

static inline bool fixture_is_second(const struct message *m) {
    return m->half == HALF_gather && m->other != NO_MESSAGE;
}

/* Time is counted from where nothing is in flight: what is ready after the update comes first. */
static inline uint32_t fixture_turn(const struct plan *plan, uint32_t ready) {
    return plan->ends_in_update && ready == plan->n_steps - 1 ? 0 : ready + 1;
}

/* Under preemptive the order is the one in which the test adds the messages; so it is where all else is equal. */
static inline bool fixture_goes_before(const struct plan *plan, const struct message *a, const struct message *b,
                                       enum policy policy) {
    if (policy == POLICY_preemptive)
        return false;
    if (policy == POLICY_priority && a->gate != b->gate)
        return a->gate < b->gate;
    if (fixture_is_second(a) != fixture_is_second(b))
        return fixture_is_second(b);
    if (fixture_is_second(a) && a->gate != b->gate)
        return a->gate < b->gate;
    return fixture_turn(plan, a->ready) < fixture_turn(plan, b->ready);
}

static inline void fixture_index(uint32_t n_steps, uint32_t n, const struct message *messages, bool gates,
                                 uint32_t *first, uint32_t *by) {
    uint32_t at = 0;
    for (uint32_t k = 0; k < n_steps; k++) {
        first[k] = at;
        for (uint32_t m = 0; m < n; m++)
            if ((gates ? messages[m].gate : messages[m].ready) == k &&
                (messages[m].other == NO_MESSAGE || messages[m].half == (gates ? HALF_gather : HALF_scatter)))
                by[at++] = m;
    }
    first[n_steps] = at;
}

/* Put the messages in the plan's order and fill what follows from them. */
static inline void fixture_finish(struct fixture *f, enum policy policy, uint64_t credit_bytes) {
    struct plan *plan = &f->plan;
    handmade_number_devices(&f->site);
    for (uint32_t i = 1; i < plan->n_messages; i++)
        for (uint32_t j = i; j > 0 && fixture_goes_before(plan, &f->messages[j], &f->messages[j - 1], policy); j--) {
            struct message swapped = f->messages[j];
            f->messages[j] = f->messages[j - 1];
            f->messages[j - 1] = swapped;
        }
    uint32_t place[FIXTURE_MESSAGES + 1][2]; /* by the number of two halves: where the first and the second are */
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (f->messages[m].other != NO_MESSAGE)
            place[f->messages[m].other][f->messages[m].half == HALF_gather] = m;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (f->messages[m].other != NO_MESSAGE)
            f->messages[m].other = place[f->messages[m].other][f->messages[m].half == HALF_scatter];
    fixture_index(plan->n_steps, plan->n_messages, f->messages, false, f->first_ready, f->by_ready);
    fixture_index(plan->n_steps, plan->n_messages, f->messages, true, f->first_gate, f->by_gate);
    plan->any_all_reduce = plan->any_server = false;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        f->messages[m].first_piece = m;
        plan->any_all_reduce |= f->messages[m].kind == SYNC_ALL_REDUCE;
        plan->any_server |= f->messages[m].kind == SYNC_PARAMETER_SERVER;
    }
    f->variable.name = "w\"1";
    f->model.variables = &f->variable;
    f->model.batch_per_device = 32;
    plan->model = &f->model;
    plan->cluster = &f->site.cluster;
    plan->policy = policy;
    plan->credit_bytes = credit_bytes;
    plan->cross_iteration = !plan->ends_in_update;
    plan->step_us = f->step_us;
    plan->messages = f->messages;
    plan->pieces = f->pieces;
    plan->n_pieces = plan->n_messages;
    plan->first_ready = f->first_ready;
    plan->by_ready = f->by_ready;
    plan->first_gate = f->first_gate;
    plan->by_gate = f->by_gate;
}

static inline enum status fixture_run(const struct fixture *f, const struct timeline_options *options,
                                      struct prediction *out, struct error *err) {
    struct cost cost;
    struct timeline *tl = timeline_new();
    assert_non_null(tl);
    assert_true(cost_init(&cost, &f->site.cluster, err) == ST_OK);
    enum status status = timeline_run(tl, &f->plan, &cost, options, out, err);
    cost_release(&cost);
    timeline_free(tl);
    return status;
}

static inline struct prediction fixture_predict(const struct fixture *f, const struct timeline_options *options) {
    struct error err;
    struct prediction prediction;
    assert_ok(fixture_run(f, options, &prediction, &err));
    return prediction;
}

static inline double fixture_iteration_us(const struct fixture *f) {
    return fixture_predict(f, NULL).iteration_us;
}

#endif
