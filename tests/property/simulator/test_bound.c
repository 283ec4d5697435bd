/* The lower bound against what the timeline predicts for random strategies, and Jackson's rule against its own
 * characterisation and against every order of unit pieces. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "simulator/bound.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"
#include "strategy/exact/one_machine.h"
#include "strategy/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"

enum { INSTANCES = 900, STRATEGIES = 16, SETS = 2000, SMALL = 5 };

struct tally {
    int tuples, settled, tight;
    double closest;
};

static void check_strategy(struct timeline *tl, const struct model *model, const struct cost *cost,
                           const struct bound *bound, const struct strategy *strategy, struct tally *tally) {
    struct error err;
    struct plan plan;
    struct prediction p;
    assert_ok(plan_lower(model, cost->cluster, strategy, &plan, &err));
    assert_ok(timeline_run(tl, &plan, cost, NULL, &p, &err));
    /* An average over a few iterations that go on differing may lie below by what its two ends differ. */
    double slack = p.converged ? 1e-9 : 0.01;
    if (!(bound->iteration_us <= p.iteration_us * (1 + slack) + 1e-6))
        printf("tuple %d: bound %.6f (compute %.6f, volume %.6f, windows %.6f) above prediction %.6f of %s\n",
               tally->tuples, bound->iteration_us, bound->compute_us, bound->volume_us, bound->windows_us,
               p.iteration_us, strategy->name);
    assert_true(bound->iteration_us <= p.iteration_us * (1 + slack) + 1e-6);
    tally->tuples++;
    tally->settled += p.converged;
    if (p.iteration_us > bound->compute_us * 1.01) {
        tally->closest = fmax(tally->closest, bound->iteration_us / p.iteration_us);
        tally->tight += bound->iteration_us > 0.9 * p.iteration_us;
    }
    plan_release(&plan);
}

/* Ideal constants make the bound as tight as it gets. */
static void make_ideal(struct rng *rng, struct cluster *cluster) {
    if (rng_below(rng, 2))
        cluster->runtime = (struct runtime){.goodput = cluster->runtime.goodput};
}

static void check_instance(struct timeline *tl, struct rng *rng, struct tally *tally) {
    struct error err;
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct bound bound;
    struct space space;
    struct space_options options = space_default_options();
    size_t n_baselines;
    const struct baseline *baselines = baselines_list(&n_baselines);
    assert_ok(random_model(rng, &model, &err));
    assert_ok(random_cluster(rng, &cluster, &err));
    make_ideal(rng, &cluster);
    assert_ok(cost_init(&cost, &cluster, &err));
    assert_ok(bound_iteration(&model, &cost, &bound, &err));
    assert_ok(space_init(&space, &model, &cluster, &options, &err));
    for (size_t i = 0; i < STRATEGIES + n_baselines; i++) {
        struct strategy strategy;
        if (i >= STRATEGIES)
            assert_ok(baselines_build(&baselines[i - STRATEGIES], &model, &cluster, &strategy, &err));
        else if (i % 2)
            assert_ok(space_sample_guided(&space, rng, &strategy, &err));
        else
            assert_ok(space_sample_uniform(&space, rng, &strategy, &err));
        check_strategy(tl, &model, &cost, &bound, &strategy, tally);
        strategy_release(&strategy);
    }
    space_release(&space);
    cost_release(&cost);
    cluster_release(&cluster);
    model_release(&model);
}

static void no_strategy_is_predicted_below_the_bound(void **state) {
    (void)state;
    struct timeline *tl = timeline_new();
    struct tally tally = {0};
    for (int i = 0; i < INSTANCES; i++) {
        struct rng rng;
        rng_split(&rng, test_seed(), (uint64_t)i);
        check_instance(tl, &rng, &tally);
    }
    printf("%d tuples, %d settled; where communication shows, %d within 10%% of the bound, the closest at %.4f of it\n",
           tally.tuples, tally.settled, tally.tight, tally.closest);
    assert_true(tally.tuples >= 20000);
    assert_true(tally.tight > 0);
    timeline_free(tl);
}

/* max over sets S of min release + sum of work + min tail (Carlier 1982). */
static double best_set(uint32_t n, const struct job *jobs) {
    double best = 0;
    for (uint32_t set = 1; set < 1u << n; set++) {
        double release = INFINITY, work = 0, tail = INFINITY;
        for (uint32_t j = 0; j < n; j++)
            if (set >> j & 1) {
                release = fmin(release, jobs[j].release);
                work += jobs[j].work;
                tail = fmin(tail, jobs[j].tail);
            }
        best = fmax(best, release + work + tail);
    }
    return best;
}

static void jacksons_rule_meets_the_worst_set_of_jobs(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 1u << 20);
    for (int i = 0; i < SETS; i++) {
        uint32_t n = 1 + (uint32_t)rng_below(&rng, 10), scratch[10];
        struct job jobs[10];
        for (uint32_t j = 0; j < n; j++)
            jobs[j] = (struct job){rng_between(&rng, 0, 20), rng_below(&rng, 5) ? rng_between(&rng, 0, 5) : 0,
                                   rng_between(&rng, 0, 20)};
        double want = best_set(n, jobs);
        assert_close(one_machine_value(n, jobs, scratch), want, 1e-12);
    }
}

/* The best of all preemptive schedules of whole numbers, a unit of time at a time. */
static int best_schedule(uint32_t n, const struct job *jobs, int *left, int now) {
    int best = 1 << 20;
    bool idle = true, any = false;
    for (uint32_t j = 0; j < n; j++)
        any |= left[j] > 0;
    if (!any)
        return 0;
    for (uint32_t j = 0; j < n; j++) {
        if (left[j] == 0 || jobs[j].release > now)
            continue;
        idle = false;
        int end = --left[j] == 0 ? now + 1 + (int)jobs[j].tail : 0;
        int rest = best_schedule(n, jobs, left, now + 1);
        left[j]++;
        end = end > rest ? end : rest;
        best = end < best ? end : best;
    }
    return idle ? best_schedule(n, jobs, left, now + 1) : best;
}

static void jacksons_rule_meets_every_schedule_of_small_instances(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 1u << 21);
    for (int i = 0; i < 300; i++) {
        uint32_t n = 1 + (uint32_t)rng_below(&rng, 4), scratch[SMALL];
        int left[SMALL];
        struct job jobs[SMALL];
        for (uint32_t j = 0; j < n; j++) {
            left[j] = 1 + (int)rng_below(&rng, 2);
            jobs[j] = (struct job){(double)rng_below(&rng, 6), left[j], (double)rng_below(&rng, 8)};
        }
        int want = best_schedule(n, jobs, left, 0);
        assert_close(one_machine_value(n, jobs, scratch), want, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_strategy_is_predicted_below_the_bound),
        cmocka_unit_test(jacksons_rule_meets_the_worst_set_of_jobs),
        cmocka_unit_test(jacksons_rule_meets_every_schedule_of_small_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
