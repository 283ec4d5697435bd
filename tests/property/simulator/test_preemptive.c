/* Preemptive strategies on random models and clusters: any order of slices runs to the end (plan.h says why), just as a
 * plain simulation of every node has it, and the order of fifo, written as slices, takes as long as fifo. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "simulator/timeline.h"
#include "tests/property/simulator/reference.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 2000 };
#else
enum { INSTANCES = 600 };
#endif
enum { LONG_RUN = 40 };

struct instance {
    struct rng rng;
    struct model model;
    struct cluster cluster;
    struct cost cost;
};

static void instance_open(struct instance *in, uint64_t stream, uint64_t number) {
    struct error err = {0};
    rng_split(&in->rng, test_seed() + stream, number);
    assert_ok(random_model(&in->rng, &in->model, &err));
    assert_ok(random_cluster(&in->rng, &in->cluster, &err));
    assert_ok(cost_init(&in->cost, &in->cluster, &err));
}

static void instance_close(struct instance *in) {
    cost_release(&in->cost);
    cluster_release(&in->cluster);
    model_release(&in->model);
}

static struct prediction predict(struct timeline *tl, const struct instance *in, const struct strategy *strategy,
                                 struct plan *plan) {
    struct error err = {0};
    struct prediction p;
    assert_ok(plan_relower(plan, &in->model, &in->cluster, strategy, &err));
    assert_ok(timeline_run(tl, plan, &in->cost, NULL, &p, &err));
    return p;
}

static bool fits_reference(const struct plan *plan) {
    return plan->n_messages <= REF_MESSAGES && plan->n_steps <= REF_STEPS;
}

/* All-reduces alone settle at once, so the later half of a long run has the period. */
static void check_reference(struct ref *r, const struct instance *in, const struct plan *plan, double iteration_us) {
    double longest = 0;
    int home = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        home = (int)plan->messages[m].gate > home ? (int)plan->messages[m].gate : home;
    assert_true(ref_run(r, plan, &in->cost, home, LONG_RUN, 0));
    for (int c = 0; c < r->n_nodes; c++)
        longest = fmax(longest, (r->started_us[c][LONG_RUN] - r->started_us[c][LONG_RUN / 2]) / (LONG_RUN / 2));
    if (!(fabs(iteration_us - longest) <= 1e-9 * longest + 1e-6))
        fail_msg("%.9f predicted, %.9f simulated", iteration_us, longest);
}

static void any_order_of_slices_runs_to_the_end(void **state) {
    (void)state;
    struct ref *r = malloc(sizeof *r);
    struct timeline *tl = timeline_new();
    struct plan plan = {0};
    unsigned slices = 0, compared = 0;
    assert_true(r && tl);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        struct strategy s;
        struct error err = {0};
        instance_open(&in, 0, i);
        assert_ok(random_preemptive(&in.rng, &in.model, &in.cluster, &s, &err));
        struct prediction p = predict(tl, &in, &s, &plan);
        assert_int_equal(p.messages, s.n_slices);
        assert_true(p.converged && p.iteration_us >= p.compute_us * (1 - 1e-9));
        slices += s.n_slices;
        if (i % 4 == 0 && fits_reference(&plan)) {
            check_reference(r, &in, &plan, p.iteration_us);
            compared++;
        }
        strategy_release(&s);
        instance_close(&in);
    }
    printf("# %u slices in %d strategies, %u of them simulated plainly too\n", slices, INSTANCES, compared);
    assert_true(slices > 10 * INSTANCES && compared > INSTANCES / 8);
    plan_release(&plan);
    timeline_free(tl);
    free(r);
}

/* A slice for each of the plan's messages, which are whole groups. */
static void slices_of(const struct plan *plan, struct strategy *s) {
    s->n_slices = plan->n_messages;
    s->slices = arena_alloc(&s->arena, s->n_slices, sizeof *s->slices);
    assert_non_null(s->slices);
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        uint32_t variable = plan->pieces[plan->messages[i].first_piece].variable;
        s->slices[i] = (struct slice){s->variables[variable].group, plan->messages[i].bytes};
    }
    s->policy = POLICY_preemptive;
}

static void the_order_of_fifo_as_slices_takes_as_long_as_fifo(void **state) {
    (void)state;
    struct timeline *tl = timeline_new();
    struct plan plan = {0};
    assert_non_null(tl);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        struct strategy s;
        struct error err = {0};
        instance_open(&in, 1, i);
        assert_ok(random_preemptive(&in.rng, &in.model, &in.cluster, &s, &err));
        s.policy = POLICY_fifo;
        s.n_slices = 0;
        struct prediction fifo = predict(tl, &in, &s, &plan);
        slices_of(&plan, &s);
        struct prediction sliced = predict(tl, &in, &s, &plan);
        assert_true(fifo.iteration_us == sliced.iteration_us && fifo.messages == sliced.messages);
        strategy_release(&s);
        instance_close(&in);
    }
    plan_release(&plan);
    timeline_free(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_slices_runs_to_the_end),
        cmocka_unit_test(the_order_of_fifo_as_slices_takes_as_long_as_fifo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
