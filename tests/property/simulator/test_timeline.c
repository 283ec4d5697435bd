/* The timeline on random small plans, against a plain simulation of every flow, and against itself. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "tests/property/simulator/reference.h"
#include "tests/unit/simulator/fixture.h"

enum { PLANS = 3000, LONG_RUN = 50 };

enum mix { ALL_REDUCE, SERVERS, BOTH };

static double maybe(struct rng *rng, double low, double high) {
    return rng_below(rng, 2) ? rng_between(rng, low, high) : 0;
}

static void random_cluster_into(struct rng *rng, struct fixture *f) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, 5);
    bool alike = rng_below(rng, 3) == 0;
    fixture_cluster(f, n);
    for (uint32_t i = 0; i < n; i++) {
        f->site.nodes[i] = (struct node){.name = "n",
                                         .devices = (uint32_t)rng_below(rng, 4),
                                         .nic_gbit_per_s = rng_between(rng, 1, 10),
                                         .nic_latency_us = maybe(rng, 0, 50),
                                         .device_link_gbyte_per_s = maybe(rng, 0.5, 5),
                                         .compute_scale = rng_below(rng, 2) ? 1 : rng_between(rng, 0.5, 2)};
        if (alike && i > 0)
            f->site.nodes[i] = f->site.nodes[0];
    }
    f->site.nodes[0].devices += f->site.nodes[0].devices == 0;
    for (uint32_t i = 0; n > 1 && i < rng_below(rng, 3); i++)
        f->site.links[f->site.cluster.n_links++] = (struct link){0, 1 + i % (n - 1), rng_between(rng, 0.5, 5)};
    if (f->site.cluster.n_links == 2 && f->site.links[0].to == f->site.links[1].to)
        f->site.cluster.n_links = 1;
    f->site.cluster.runtime = (struct runtime){.message_us = maybe(rng, 0, 20),
                                               .coordination_us = maybe(rng, 0, 60),
                                               .push_us = maybe(rng, 0, 40),
                                               .copy_gbyte_per_s = maybe(rng, 1, 4),
                                               .sum_gbyte_per_s = maybe(rng, 1, 4),
                                               .goodput = rng_between(rng, 0.5, 1)};
    double startup = rng_between(rng, 0, 300), per_byte = rng_between(rng, 0, 0.01);
    if (rng_below(rng, 4) == 0)
        handmade_fix(&f->site, startup, per_byte);
}

static void random_message_into(struct rng *rng, struct fixture *f, enum mix mix) {
    uint32_t forward = f->plan.n_forward_steps, backward = f->plan.n_steps - forward;
    uint64_t bytes = 1 + (uint64_t)rng_log_between(rng, 1, 1e6);
    uint32_t ready = forward + (uint32_t)rng_below(rng, backward), gate = (uint32_t)rng_below(rng, forward);
    struct message *m = fixture_message(f, bytes, ready, gate);
    m->n_pieces = 1 + (uint32_t)rng_below(rng, 2);
    m->algorithm = (enum algorithm)rng_below(rng, ALGORITHM_COUNT);
    if (mix == ALL_REDUCE || (mix == BOTH && rng_below(rng, 2)))
        return;
    m->kind = SYNC_PARAMETER_SERVER;
    m->server = (uint32_t)rng_below(rng, f->site.cluster.n_nodes);
    m->local_reduction = rng_below(rng, 2);
}

static void random_plan(struct rng *rng, struct fixture *f, enum mix mix) {
    double steps[FIXTURE_STEPS];
    uint32_t forward = 1 + (uint32_t)rng_below(rng, 5), backward = 1 + (uint32_t)rng_below(rng, 5);
    random_cluster_into(rng, f);
    for (uint32_t k = 0; k < forward + backward; k++)
        steps[k] = rng_below(rng, 8) ? rng_between(rng, 0, 500) : 0;
    fixture_steps(f, forward, forward + backward, steps);
    uint32_t n = 1 + (uint32_t)rng_below(rng, 12);
    for (uint32_t i = 0; i < n; i++)
        random_message_into(rng, f, mix);
    bool barrier = rng_below(rng, 3) == 0;
    for (uint32_t i = 0; barrier && i < n; i++)
        f->messages[i].gate = 0;
    uint64_t credit = rng_below(rng, 3) == 0 ? 0 : rng_below(rng, 2) ? CREDIT_UNLIMITED : rng_below(rng, 2000000);
    fixture_finish(f, rng_below(rng, 2) ? POLICY_fifo : POLICY_priority, credit);
}

static uint32_t home_of(const struct fixture *f) {
    uint32_t home = 0;
    for (uint32_t m = 0; m < f->plan.n_messages; m++)
        home = f->messages[m].gate > home ? f->messages[m].gate : home;
    return home;
}

/* Mean iteration of the chain that takes longest between its starts of iterations `from` and `to`. */
static double longest_mean(const struct ref *r, int from, int to) {
    double longest = 0;
    for (int c = 0; c < r->n_nodes; c++)
        longest = fmax(longest, (r->started_us[c][to] - r->started_us[c][from]) / (to - from));
    return longest;
}

/* The timeline's own passes, one by one, and then its claim about the long run. With all-reduces alone every node of
 * the reference is compared through the slowest. */
static void compare(const struct fixture *f, struct ref *r, uint64_t number) {
    struct error err;
    struct cost cost;
    struct prediction p = fixture_predict(f, NULL);
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    int home = (int)home_of(f), runs = p.converged && p.passes < LONG_RUN ? LONG_RUN : (int)p.passes;
    assert_true(ref_run(r, &f->plan, &cost, home, runs));
    double want = longest_mean(r, p.converged ? runs / 2 : 1, runs);
    if (!(fabs(p.iteration_us - want) <= 1e-9 * want + 1e-6))
        printf("plan %llu: %.9f predicted, %.9f simulated, %u passes, %s\n", (unsigned long long)number, p.iteration_us,
               want, p.passes, p.converged ? "converged" : "not converged");
    assert_true(fabs(p.iteration_us - want) <= 1e-9 * want + 1e-6);
    cost_release(&cost);
}

static void compare_many(enum mix mix, int plans) {
    struct ref *r = malloc(sizeof *r);
    struct fixture f;
    assert_non_null(r);
    for (int i = 0; i < plans; i++) {
        struct rng rng;
        rng_split(&rng, test_seed(), (uint64_t)i);
        random_plan(&rng, &f, mix);
        compare(&f, r, (uint64_t)i);
    }
    free(r);
}

static void all_reduce_plans_meet_a_plain_simulation_of_every_node(void **state) {
    (void)state;
    compare_many(ALL_REDUCE, PLANS);
}

static void server_plans_meet_a_plain_simulation(void **state) {
    (void)state;
    compare_many(SERVERS, PLANS / 3);
}

static void mixed_plans_meet_a_plain_simulation(void **state) {
    (void)state;
    compare_many(BOTH, PLANS / 3);
}

static void one_chain_and_equal_shares_agree_with_every_node_and_max_min(void **state) {
    (void)state;
    struct fixture f;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 1, (uint64_t)i);
        random_plan(&rng, &f, ALL_REDUCE);
        struct prediction one = fixture_predict(&f, NULL);
        struct prediction all = fixture_predict(&f, &(struct timeline_options){.every_node = true});
        assert_true(one.converged);
        assert_close(one.iteration_us, all.iteration_us, 1e-9);
    }
}

static void most_plans_settle(void **state) {
    (void)state;
    struct fixture f;
    int settled = 0, passes = 0;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 2, (uint64_t)i);
        random_plan(&rng, &f, BOTH);
        struct prediction p = fixture_predict(&f, NULL);
        settled += p.converged;
        passes += (int)p.passes;
    }
    printf("%d of %d plans with servers settled; %.1f passes on average\n", settled, PLANS, (double)passes / PLANS);
    assert_true(settled > PLANS * 9 / 10);
}

static void passes_are_kept_within_what_was_asked(void **state) {
    (void)state;
    struct fixture f;
    for (int i = 0; i < 300; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 3, (uint64_t)i);
        random_plan(&rng, &f, BOTH);
        uint32_t least = (uint32_t)rng_below(&rng, 4), most = 4 + (uint32_t)rng_below(&rng, 4);
        struct prediction p = fixture_predict(&f, &(struct timeline_options){.passes = least, .max_passes = most});
        assert_true(p.passes >= least && p.passes <= most);
        assert_true(p.iteration_us >= p.compute_us * (1 - 1e-9));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce_plans_meet_a_plain_simulation_of_every_node),
        cmocka_unit_test(server_plans_meet_a_plain_simulation),
        cmocka_unit_test(mixed_plans_meet_a_plain_simulation),
        cmocka_unit_test(one_chain_and_equal_shares_agree_with_every_node_and_max_min),
        cmocka_unit_test(most_plans_settle),
        cmocka_unit_test(passes_are_kept_within_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
