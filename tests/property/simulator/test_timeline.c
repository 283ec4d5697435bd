/* The timeline on random small plans, against a plain simulation of every flow, and against itself. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/property/simulator/reference.h"
#include "tests/unit/simulator/fixture.h"
#include "tests/unit/strategy/any_strategy.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { PLANS = 600 };
#else
enum { PLANS = 150 };
#endif
enum { LONG_RUN = 50, AFTER = REF_ITERATIONS - TIMELINE_MAX_PASSES };

enum mix { ALL_REDUCE, SERVERS, BOTH, PULLS_IN_ORDER };

/* Two iterations may take the same time while ports save ever more, and some later one live on that: seen with
 * all-reduces, by up to 0.3% beside servers. */
static double slack(const struct plan *plan, const struct cost *cost) {
    if (cost->burst_bytes <= 0)
        return 1e-9;
    return !plan->any_all_reduce ? 1e-6 : plan->any_server ? 5e-3 : 1e-4;
}

static double maybe(struct rng *rng, double low, double high) {
    return rng_below(rng, 2) ? rng_between(rng, low, high) : 0;
}

/* Answers, and ports that save. Latencies are above 0 and nodes that save differ, since what comes first of two things
 * at one instant decides who goes first on a connection, and who gets what was saved. */
static void random_transport_into(struct rng *rng, struct fixture *f, bool bursts) {
    f->site.cluster.runtime.eager_bytes = rng_log_between(rng, 1, 1e6);
    f->site.cluster.runtime.push_us = rng_between(rng, 1, 40);
    if (bursts)
        handmade_burst(&f->site, rng_between(rng, 1, 60), 2 + (uint64_t)rng_log_between(rng, 1, 3e5));
}

/* Both halves of a ring, at the sizes of random_curves_into. */
static void random_halves_into(struct rng *rng, struct fixture *f, uint32_t devices, double slope) {
    struct cluster *cluster = &f->site.cluster;
    for (int i = 0; i < 4; i++) {
        uint64_t bytes = i % 2 ? 1000000 : 1000;
        double time = rng_between(rng, 10, 100) + rng_between(rng, 0.2, 1) * slope * (double)bytes;
        f->site.curves[cluster->n_measurements++] =
            (struct measurement){.operation = i < 2 ? OPERATION_reduce_scatter : OPERATION_all_gather,
                                 .devices = devices,
                                 .bytes = bytes,
                                 .time_us = time};
    }
}

/* A ring and a tree, measured at two sizes, what was measured before, and perhaps halves. */
static void random_curves_into(struct rng *rng, struct fixture *f) {
    struct cluster *cluster = &f->site.cluster;
    double slope = rng_log_between(rng, 1e-4, 0.01);
    uint32_t devices = 0, n = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        devices += cluster->nodes[i].devices;
    for (; n < 4; n++) {
        uint64_t bytes = n % 2 ? 1000000 : 1000;
        double time = rng_between(rng, 10, 100) + rng_between(rng, 0.5, 2) * slope * (double)bytes;
        f->site.curves[n] = (struct measurement){.operation = OPERATION_all_reduce,
                                                 .algorithm = n < 2 ? ALGORITHM_ring : ALGORITHM_tree,
                                                 .devices = devices,
                                                 .bytes = bytes,
                                                 .time_us = time};
    }
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        f->site.curves[n++] = cluster->measurements[i];
    cluster->measurements = f->site.curves;
    cluster->n_measurements = n;
    if (rng_below(rng, 2))
        random_halves_into(rng, f, devices, slope);
}

static void random_cluster_into(struct rng *rng, struct fixture *f, bool bursts) {
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
                                               .way_us = maybe(rng, 0, rng_below(rng, 4) ? 30 : 3000),
                                               .coordination_us = maybe(rng, 0, 60),
                                               .push_us = maybe(rng, 0, 40),
                                               .copy_gbyte_per_s = maybe(rng, 1, 4),
                                               .sum_gbyte_per_s = maybe(rng, 1, 4),
                                               .encode_gbyte_per_s = maybe(rng, 1, 4),
                                               .int8_gbyte_per_s = maybe(rng, 1, 4),
                                               .topk_gbyte_per_s = maybe(rng, 1, 4),
                                               .powersgd_gbyte_per_s = maybe(rng, 1, 4),
                                               .goodput = rng_between(rng, 0.5, 1)};
    if (rng_below(rng, 2))
        random_transport_into(rng, f, bursts && !alike);
    if (bursts && !alike && rng_below(rng, 2))
        random_curves_into(rng, f);
    if (rng_below(rng, 3) == 0) {
        f->site.cluster.in_startup = (struct interference){maybe(rng, 0.2, 1), maybe(rng, 0.2, 1), maybe(rng, 0.2, 1)};
        f->site.cluster.in_transfer = (struct interference){maybe(rng, 0.2, 1), maybe(rng, 0.2, 1), 0};
    }
    if (rng_below(rng, 3) == 0)
        f->site.cluster.transport = TRANSPORT_nccl; /* all-reduces follow one another */
    else if (rng_below(rng, 3) == 0)
        f->site.cluster.transport = TRANSPORT_gloo; /* workers serve */
    double startup = rng_between(rng, 0, 300), per_byte = rng_between(rng, 0, 0.01);
    if (rng_below(rng, 4) == 0)
        handmade_fix(&f->site, startup, per_byte);
}

/* All of it, or of several gradients a part, from twice or four times as many bytes. */
static void random_encoding_into(struct rng *rng, struct message *m) {
    m->encoded_bytes = m->n_pieces > 1 ? rng_below(rng, m->bytes + 1) : m->bytes;
    m->unencoded_bytes = m->encoded_bytes * (rng_below(rng, 2) ? 2 : 4);
}

static void random_encoder_into(struct rng *rng, struct message *m) {
    static const enum encoding all[] = {ENCODING_int8, ENCODING_topk, ENCODING_powersgd};
    m->encoder = all[rng_below(rng, 3)];
    m->encoded_bytes = m->bytes;
    m->figure = 1 + (double)rng_below(rng, 4);
    m->second_bytes = m->encoder == ENCODING_powersgd ? rng_below(rng, m->bytes + 1) : 0;
    m->unencoded_bytes = m->bytes * (rng_below(rng, 2) ? 4 : 8);
    m->algorithm = ALGORITHM_auto;
}

static void random_message_into(struct rng *rng, struct fixture *f, enum mix mix) {
    uint32_t forward = f->plan.n_forward_steps, backward = f->plan.n_steps - forward;
    uint64_t bytes = 1 + (uint64_t)rng_log_between(rng, 1, 1e6);
    uint32_t ready = forward + (uint32_t)rng_below(rng, backward), gate = (uint32_t)rng_below(rng, forward);
    struct message *m = fixture_message(f, bytes, ready, gate);
    m->n_pieces = 1 + (uint32_t)rng_below(rng, 2);
    if (rng_below(rng, 3) == 0)
        random_encoding_into(rng, m);
    m->algorithm = rng_below(rng, 3) ? (enum algorithm)rng_below(rng, ALGORITHM_COUNT) : ALGORITHM_tree;
    if (mix == ALL_REDUCE || (mix != SERVERS && rng_below(rng, mix == BOTH ? 2 : 6) == 0)) {
        if (rng_below(rng, 4) == 0)
            random_encoder_into(rng, m);
        return;
    }
    m->kind = SYNC_PARAMETER_SERVER;
    m->server = (uint32_t)rng_below(rng, f->site.cluster.n_nodes);
    m->local_reduction = rng_below(rng, 2);
}

/* All-reduces as two halves, in one plan of three. */
static void split_some(struct rng *rng, struct fixture *f) {
    const uint32_t n = rng_below(rng, 3) == 0 ? f->plan.n_messages : 0;
    for (uint32_t i = 0; i < n; i++)
        if (f->messages[i].kind == SYNC_ALL_REDUCE && !f->messages[i].encoder && rng_below(rng, 2))
            fixture_split(f, &f->messages[i],
                          f->messages[i].bytes + f->messages[i].unencoded_bytes - f->messages[i].encoded_bytes);
}

/* A gather or a sum by itself, of which one may be ready before any step and gate a later one. */
static void random_half_into(struct rng *rng, struct fixture *f) {
    const uint32_t update = f->plan.n_steps - 1, from = (uint32_t)rng_below(rng, f->plan.n_steps);
    const uint32_t gate = from + (uint32_t)rng_below(rng, f->plan.n_steps - from);
    struct message *m = fixture_half(f, rng_below(rng, 2) ? HALF_gather : HALF_scatter,
                                     1 + (uint64_t)rng_log_between(rng, 1, 1e6), from > 0 ? from - 1 : update, gate);
    m->n_pieces = 1 + (uint32_t)rng_below(rng, 2);
}

/* Sharded parameters: halves by themselves, and whatever else a plan may have, which ends before the update. */
static void shard_parameters(struct rng *rng, struct fixture *f) {
    const uint32_t update = fixture_update(f), n = 1 + (uint32_t)rng_below(rng, 8);
    for (uint32_t i = 0; i < f->plan.n_messages; i++)
        f->messages[i].gate = update;
    for (uint32_t i = 0; i < n; i++)
        random_half_into(rng, f);
}

static void order_pulls(struct fixture *f, uint64_t credit_bytes) {
    fixture_finish(f, POLICY_priority, credit_bytes);
    f->plan.pulls_by_priority = f->plan.any_server;
}

static void random_plan(struct rng *rng, struct fixture *f, enum mix mix) {
    double steps[FIXTURE_STEPS];
    uint32_t forward = 1 + (uint32_t)rng_below(rng, 5), backward = 1 + (uint32_t)rng_below(rng, 5);
    random_cluster_into(rng, f, true);
    for (uint32_t k = 0; k < forward + backward; k++)
        steps[k] = rng_below(rng, 8) ? rng_between(rng, 0, 500) : 0;
    fixture_steps(f, forward, forward + backward, steps);
    uint32_t n = 1 + (uint32_t)rng_below(rng, 12);
    for (uint32_t i = 0; i < n; i++)
        random_message_into(rng, f, mix);
    split_some(rng, f);
    const bool sharded = mix != PULLS_IN_ORDER && rng_below(rng, 4) == 0;
    if (sharded)
        shard_parameters(rng, f);
    bool barrier = !sharded && rng_below(rng, 3) == 0;
    for (uint32_t i = 0; barrier && i < f->plan.n_messages; i++)
        f->messages[i].gate = 0;
    uint64_t credit = rng_below(rng, 3) == 0 ? 0 : rng_below(rng, 2) ? CREDIT_UNLIMITED : rng_below(rng, 2000000);
    if (mix == PULLS_IN_ORDER)
        order_pulls(f, rng_below(rng, 2) ? 0 : rng_below(rng, 500000));
    else
        fixture_finish(f, sharded ? POLICY_fifo : (enum policy)rng_below(rng, POLICY_COUNT), credit);
}

/* The step at whose start nothing is in flight. */
static uint32_t home_of(const struct fixture *f) {
    uint32_t home = 0;
    if (f->plan.ends_in_update)
        return f->plan.n_steps - 1;
    for (uint32_t m = 0; m < f->plan.n_messages; m++) {
        const uint32_t gate = f->plan.messages[m].gate % (f->plan.n_steps / f->plan.micro_batches);
        home = gate > home ? gate : home;
    }
    return home;
}

/* Mean iteration of the chain that takes longest between its starts of iterations `from` and `to`. */
static double longest_mean(const struct ref *r, int from, int to) {
    double longest = 0;
    for (int c = 0; c < r->n_nodes; c++)
        longest = fmax(longest, (r->started_us[c][to] - r->started_us[c][from]) / (to - from));
    return longest;
}

/* Where iterations go on differing, rounding may decide now and then who is first on a connection. */
static double slack_of(const struct prediction *p) {
    return p->converged ? 1e-8 : 0.01; /* two iterations agree to 1e-9, and 53 of them may drift */
}

/* The timeline's own passes, one by one, and then its claim about the long run. With all-reduces alone every node of
 * the reference is compared through the slowest. */
static void compare(const struct fixture *f, struct ref *r, uint64_t number) {
    struct error err;
    struct cost cost;
    struct prediction p = fixture_predict(f, NULL);
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    int home = (int)home_of(f), passes = (int)p.passes, runs = passes;
    if (p.converged)
        runs = passes + AFTER < LONG_RUN ? LONG_RUN : passes + AFTER;
    assert_true(ref_run(r, &f->plan, &cost, home, runs, 0));
    double want = longest_mean(r, !p.converged ? 1 : passes < runs / 2 ? runs / 2 : passes, runs);
    double off = fmax(slack(&f->plan, &cost), slack_of(&p)) * want + 1e-6;
    if (!(fabs(p.iteration_us - want) <= off))
        printf("plan %llu: %.9f predicted, %.9f simulated, %u passes, %s\n", (unsigned long long)number, p.iteration_us,
               want, p.passes, p.converged ? "converged" : "not converged");
    assert_true(fabs(p.iteration_us - want) <= off);
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

/* Four variables of up to 500 KB in two layers. */
static void random_tables(struct rng *rng, struct model *model) {
    struct error err;
    char text[1024];
    int at = snprintf(text, sizeof text, "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"variables\":[");
    for (int i = 0; i < 4; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s{\"name\":\"v%d\",\"shape\":[%d,%d]}", i ? "," : "", i,
                       2 + (int)rng_below(rng, 300), 1 + (int)rng_below(rng, 400));
    snprintf(text + at, sizeof text - (size_t)at,
             "],\"layers\":[{\"name\":\"a\",\"forward_us\":%.1f,\"backward_us\":%.1f,\"variables\":[\"v0\",\"v1\"]},"
             "{\"name\":\"b\",\"forward_us\":%.1f,\"backward_us\":%.1f,\"variables\":[\"v2\",\"v3\"]}]}",
             rng_between(rng, 1, 500), rng_between(rng, 1, 500), rng_between(rng, 1, 500), rng_between(rng, 1, 500));
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    assert_ok(model_read(json, "test", model, &err));
    cJSON_Delete(json);
}

static bool any_each(const struct strategy *strategy) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        if (strategy->variables[v].each)
            return true;
    return false;
}

/* All groups that may be, so that most have replicas. */
static void shard_all(struct rng *rng, const struct cluster *cluster, struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].sharded = may_shard(s, g) ? SHARDED_parameters : SHARDED_none;
        s->groups[g].keeps_gathered = rng_below(rng, 4) == 0;
        s->groups[g].reshard_ranks = 0;
    }
    s->policy = POLICY_fifo;
    s->cross_iteration = false;
    s->forward_prefetch = s->backward_prefetch = (uint32_t)rng_below(rng, 2);
    any_replicas(rng, cluster, s);
}

static void plans_of_sharded_variables_meet_a_plain_simulation(void **state) {
    (void)state;
    struct ref *r = malloc(sizeof *r);
    struct fixture f;
    int compared = 0, sharded = 0, within = 0, replicas = 0;
    assert_non_null(r);
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        struct error err;
        struct model model;
        struct strategy strategy;
        struct plan plan;
        rng_split(&rng, test_seed() + 6, (uint64_t)i);
        random_cluster_into(&rng, &f, true);
        handmade_number_devices(&f.site);
        random_tables(&rng, &model);
        assert_ok(any_strategy(&rng, &model, &f.site.cluster, &strategy, &err));
        if (i % 6 == 0 && strategy.n_slices == 0)
            shard_all(&rng, &f.site.cluster, &strategy);
        assert_ok(strategy_seal(&strategy, &model, &f.site.cluster, &err));
        assert_ok(plan_lower(&model, &f.site.cluster, &strategy, &plan, &err));
        if ((any_each(&strategy) || plan.ends_in_update) && plan.n_messages <= REF_MESSAGES) {
            f.plan = plan;
            compare(&f, r, (uint64_t)i);
            compared++;
            sharded += plan.ends_in_update;
            replicas += plan.n_replicas > 0;
            for (uint32_t m = 0; m < plan.n_messages; m++)
                within += plan.messages[m].ranks > 0 && !message_is_of_replicas(&plan.messages[m]);
        }
        plan_release(&plan);
        strategy_release(&strategy);
        model_release(&model);
    }
    free(r);
    printf(
        "%d of %d plans, %d with sharded parameters, %d of them with replicas; %d messages within groups of devices\n",
        compared, PLANS, sharded, replicas, within);
    assert_true(compared > PLANS / 40 && sharded > 0);
    assert_true(PLANS < 600 || (replicas > 0 && within > 0)); /* a sanitizer sees few plans */
}

/* Few of the compared plans have sharded parameters, and few have sums in each micro-batch. So plans are drawn until
 * both were seen. */
static void plans_with_micro_batches_meet_a_plain_simulation(void **state) {
    (void)state;
    struct ref *r = malloc(sizeof *r);
    struct fixture f;
    int drawn = 0, compared = 0, sharded = 0, each = 0, served = 0, running_on = 0;
    assert_non_null(r);
    for (int i = 0; i < PLANS / 2 || ((sharded == 0 || each == 0) && i < 100 * PLANS); i++) {
        struct rng rng;
        struct error err;
        struct model model;
        struct strategy strategy;
        struct plan plan;
        rng_split(&rng, test_seed() + 7, (uint64_t)i);
        random_cluster_into(&rng, &f, true);
        handmade_number_devices(&f.site);
        random_tables(&rng, &model);
        assert_ok(any_strategy(&rng, &model, &f.site.cluster, &strategy, &err));
        if (i % 6 == 0 && strategy.n_slices == 0)
            shard_all(&rng, &f.site.cluster, &strategy);
        any_accumulation(&rng, &strategy);
        assert_ok(strategy_seal(&strategy, &model, &f.site.cluster, &err));
        assert_ok(plan_lower(&model, &f.site.cluster, &strategy, &plan, &err));
        if (plan.n_steps <= REF_STEPS && plan.n_messages <= REF_MESSAGES / (plan.any_server ? 2 : 1)) {
            f.plan = plan;
            compare(&f, r, (uint64_t)i);
            compared++;
            sharded += plan.ends_in_update;
            each += plan.sums_each;
            served += plan.any_server;
            running_on += plan.cross_iteration;
        }
        drawn++;
        plan_release(&plan);
        strategy_release(&strategy);
        model_release(&model);
    }
    free(r);
    printf("%d of %d plans, %d with sharded parameters, %d with servers, %d without the barrier, %d that sum each\n",
           compared, drawn, sharded, served, running_on, each);
    assert_true(compared > PLANS / 40 && sharded > 0 && each > 0 && served > 0 && running_on > 0);
    assert_true(PLANS < 600 || each > compared / 10); /* a sanitizer sees few plans */
}

static void plans_whose_pulls_wait_for_their_turn_meet_a_plain_simulation(void **state) {
    (void)state;
    compare_many(PULLS_IN_ORDER, PLANS / 2);
}

/* Drawn rates of at most the slowest NIC, which change once or twice an iteration, or slow workers, or both; in half of
 * the instances flows in the background as well, a few in an iteration. */
static void random_weather_into(struct rng *rng, struct fixture *f, struct weather_rate *rates) {
    struct variability *v = &f->site.cluster.variability;
    double slowest = INFINITY;
    *v = (struct variability){.given = true, .slow_factor = 1};
    for (uint32_t i = 0; i < f->site.cluster.n_nodes; i++)
        slowest = fmin(slowest, f->site.nodes[i].nic_gbit_per_s);
    uint64_t what = rng_below(rng, 3);
    if (what != 0) {
        rates[0] = (struct weather_rate){slowest * rng_between(rng, 0.1, 1), 0.5};
        rates[1] = (struct weather_rate){slowest, 0.5};
        v->every_us = rng_log_between(rng, 100, 5000);
        v->rates = rates;
        v->n_rates = 2;
    }
    if (what != 1) {
        v->slow_share = rng_uniform(rng);
        v->slow_factor = rng_between(rng, 1, 4);
        v->slow_for_good = rng_below(rng, 2);
    }
    if (f->site.cluster.n_nodes > 1 && rng_below(rng, 2))
        v->background = (struct background){.flows_per_s = rng_log_between(rng, 200, 5000),
                                            .mbytes = rng_log_between(rng, 0.05, 0.5) * slowest,
                                            .gbit_per_s = rng_between(rng, 0.1, 1) * slowest};
}

static double latest_start_us(const struct ref *r, int iteration) {
    double latest = 0;
    for (int c = 0; c < r->n_nodes; c++)
        latest = fmax(latest, r->started_us[c][iteration]);
    return latest;
}

/* Six iterations, each of which meets other weather. Now and then rounding decides who is first on a connection. */
static void plans_in_weather_meet_a_plain_simulation_of_every_flow(void **state) {
    (void)state;
    struct ref *r = malloc(sizeof *r);
    struct fixture f;
    struct error err;
    int off = 0;
    assert_non_null(r);
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        struct weather_rate rates[2];
        struct cost cost;
        rng_split(&rng, test_seed() + 9, (uint64_t)i);
        random_plan(&rng, &f, i % 2 ? SERVERS : BOTH);
        random_weather_into(&rng, &f, rates);
        struct prediction p = fixture_predict(
            &f, &(struct timeline_options){.weather = true, .seed = 1 + (uint64_t)i, .passes = 6, .until_us = 0});
        assert_int_equal(p.passes, 6);
        assert_ok(cost_init(&cost, &f.site.cluster, &err));
        assert_true(ref_run(r, &f.plan, &cost, (int)home_of(&f), 6, 1 + (uint64_t)i));
        double want = latest_start_us(r, 6) / 6;
        if (fabs(p.iteration_us - want) > 1e-9 * want + 1e-6) {
            printf("plan %d: %.9f predicted, %.9f simulated\n", i, p.iteration_us, want);
            off++;
        }
        cost_release(&cost);
    }
    free(r);
    assert_true(off <= PLANS / 300 + 1);
}

static bool ports_save(const struct fixture *f) {
    return f->site.cluster.n_measurements > 0;
}

/* Where ports save, iterations may go on alternating between two lengths: one in a thousand does. */
static void one_chain_and_equal_shares_agree_with_every_node_and_max_min(void **state) {
    (void)state;
    struct fixture f;
    int alternate = 0;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 1, (uint64_t)i);
        random_plan(&rng, &f, ALL_REDUCE);
        struct prediction one = fixture_predict(&f, NULL);
        struct prediction all = fixture_predict(&f, &(struct timeline_options){.every_node = true});
        alternate += !one.converged;
        assert_true(one.converged || ports_save(&f));
        assert_close(one.iteration_us, all.iteration_us, 1e-4);
    }
    assert_true(alternate <= PLANS / 300 + 1);
}

/* Workers of one to three kinds, and nodes that only serve; now and then workers serve too, or one has a link. */
static void random_alike_cluster_into(struct rng *rng, struct fixture *f) {
    struct node kinds[3];
    uint32_t n = 2 + (uint32_t)rng_below(rng, HANDMADE_NODES - 1), n_kinds = 1 + (uint32_t)rng_below(rng, 3);
    random_cluster_into(rng, f, false);
    for (uint32_t k = 0; k < n_kinds; k++) {
        kinds[k] = f->site.nodes[0];
        kinds[k].devices = 1 + (uint32_t)rng_below(rng, 3);
        kinds[k].nic_gbit_per_s = rng_between(rng, 1, 10);
        kinds[k].compute_scale = rng_between(rng, 0.8, 1.2);
    }
    for (uint32_t i = 0; i < n; i++) {
        f->site.nodes[i] = kinds[rng_below(rng, n_kinds)];
        if (i > 1 && i >= n / 2)
            f->site.nodes[i].devices = 0;
    }
    f->site.cluster.n_nodes = n;
    f->site.cluster.n_links = 0;
    if (n > 2 && rng_below(rng, 4) == 0)
        f->site.links[f->site.cluster.n_links++] = (struct link){1, n - 1, rng_between(rng, 0.5, 5)};
}

static void random_alike_plan(struct rng *rng, struct fixture *f) {
    double steps[FIXTURE_STEPS];
    uint32_t forward = 1 + (uint32_t)rng_below(rng, 5), n_steps = forward + 1 + (uint32_t)rng_below(rng, 5);
    random_alike_cluster_into(rng, f);
    for (uint32_t k = 0; k < n_steps; k++)
        steps[k] = rng_between(rng, 0, 500);
    fixture_steps(f, forward, n_steps, steps);
    uint32_t n = f->site.cluster.n_nodes, first = rng_below(rng, 3) ? n / 2 : 0;
    enum mix mix = rng_below(rng, 3) ? SERVERS : BOTH;
    for (uint64_t i = 1 + rng_below(rng, 12); i > 0; i--) {
        random_message_into(rng, f, mix);
        f->messages[f->plan.n_messages - 1].server = first + (uint32_t)rng_below(rng, n - first);
    }
    const bool sharded = rng_below(rng, 4) == 0;
    if (sharded)
        shard_parameters(rng, f);
    uint64_t credit = rng_below(rng, 3) == 0 ? 0 : rng_below(rng, 2) ? CREDIT_UNLIMITED : rng_below(rng, 2000000);
    fixture_finish(f, sharded || rng_below(rng, 2) ? POLICY_fifo : POLICY_priority, credit);
    if (!sharded && rng_below(rng, 3) == 0)
        order_pulls(f, credit);
}

static bool is_as_before(const struct prediction *a, const struct prediction *b) {
    return a->converged == b->converged &&
           fabs(a->iteration_us - b->iteration_us) <= slack_of(b) * b->iteration_us + 1e-6 &&
           fabs(a->comm_busy_us - b->comm_busy_us) <= slack_of(b) * b->comm_busy_us + 1e-6 &&
           fabs(a->queue_us - b->queue_us) <= slack_of(b) * b->queue_us + 1e-5;
}

static void alike_workers_folded_into_one_predict_what_every_node_does(void **state) {
    (void)state;
    struct fixture f;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 4, (uint64_t)i);
        random_alike_plan(&rng, &f);
        struct prediction folded = fixture_predict(&f, NULL);
        struct prediction all = fixture_predict(&f, &(struct timeline_options){.every_node = true});
        if (!f.plan.any_server)
            continue;
        if (!is_as_before(&folded, &all))
            printf("plan %d: %.9f folded, %.9f all, %u and %u passes, converged %d %d, queue %.9f %.9f\n", i,
                   folded.iteration_us, all.iteration_us, folded.passes, all.passes, folded.converged, all.converged,
                   folded.queue_us, all.queue_us);
        assert_true(is_as_before(&folded, &all));
    }
}

/* A run that may give up says what it took so far, or the very same as one that may not. The first iteration may take a
 * tenth longer than those that follow it, seldom more. */
static void a_run_gives_up_on_slow_plans_alone(void **state) {
    (void)state;
    struct fixture f;
    int gave_up = 0, too_soon = 0;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 6, (uint64_t)i);
        random_plan(&rng, &f, BOTH);
        struct prediction exact = fixture_predict(&f, NULL);
        double enough = exact.iteration_us * rng_between(&rng, 0.3, 2);
        struct prediction p = fixture_predict(&f, &(struct timeline_options){.enough_us = enough});
        if (p.converged)
            assert_true(p.iteration_us == exact.iteration_us && p.passes == exact.passes);
        if (p.converged || p.iteration_us == exact.iteration_us)
            continue;
        assert_true(p.iteration_us > enough);
        gave_up++;
        too_soon += enough > 1.1 * exact.iteration_us;
    }
    printf("%d of %d gave up, %d too soon\n", gave_up, PLANS, too_soon);
    assert_true(gave_up > PLANS / 5 && too_soon <= PLANS / 300 + 1);
}

/* Before its first event a run gives up where the load alone is too much. The true period is never shorter than that. A
 * mean of iterations that go on differing is known to a standard error of 0.5% and may be, here by four of these: with
 * 400 seeds it was so for 7 plans, by 0.37% at most, and for no plan that settled. */
static void no_iteration_is_shorter_than_the_load(void **state) {
    (void)state;
    struct fixture f;
    int half = 0, idle = 0;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 7, (uint64_t)i);
        random_plan(&rng, &f, i % 2 ? SERVERS : BOTH);
        if (!f.plan.any_server)
            continue;
        struct prediction exact = fixture_predict(&f, NULL);
        struct prediction load = fixture_predict(&f, &(struct timeline_options){.enough_us = 1e-9});
        if (load.passes > 0 &&
            load.iteration_us == exact.iteration_us) { /* no load: all stays on its node, for nothing */
            idle++;
            continue;
        }
        assert_true(!load.converged && load.passes == 0 && load.iteration_us > 0);
        if (load.iteration_us > exact.iteration_us * (exact.converged ? 1 + 1e-6 : 1.02))
            printf("plan %d: load %.9f, iteration %.9f\n", i, load.iteration_us, exact.iteration_us);
        assert_true(load.iteration_us <= exact.iteration_us * (exact.converged ? 1 + 1e-6 : 1.02));
        half += load.iteration_us > 0.5 * exact.iteration_us;
    }
    printf("the load is over half of the iteration in %d of %d plans\n", half, PLANS);
    assert_true(half > PLANS / 10 && idle < PLANS / 100);
}

/* A limit of events ends a run after a whole iteration, or says that not even one was through. */
static void a_run_ends_after_so_many_events(void **state) {
    (void)state;
    struct fixture f;
    struct error err;
    int early = 0, refused = 0;
    double worst = 0;
    for (int i = 0; i < PLANS; i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 8, (uint64_t)i);
        random_plan(&rng, &f, BOTH);
        struct prediction exact = fixture_predict(&f, NULL), p;
        struct timeline_options options = {.most_events = 1 + rng_below(&rng, exact.events)};
        enum status status = fixture_run(&f, &options, &p, &err);
        refused += status == ST_TOO_LARGE;
        if (status == ST_TOO_LARGE)
            continue;
        assert_ok(status);
        assert_true(p.passes >= 1 && p.passes <= exact.passes && p.events <= exact.events);
        early += p.passes < exact.passes;
        worst = fmax(worst, fabs(p.iteration_us / exact.iteration_us - 1));
        assert_true(!p.converged || p.iteration_us == exact.iteration_us);
    }
    printf("%d of %d ended early, off by up to %.1f%%; %d before the first iteration was through\n", early, PLANS,
           100 * worst, refused);
    assert_true(early > PLANS / 20 && refused > PLANS / 10 && worst < 1);
}

/* 12 layers of 4 to 8 MB. */
static void random_large_model(struct rng *rng, struct model *model) {
    struct error err;
    char text[4096];
    int at = snprintf(text, sizeof text,
                      "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,"
                      "\"variables\":[");
    for (int i = 0; i < 12; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s{\"name\":\"v%d\",\"shape\":[%d],\"dtype\":\"f32\"}",
                       i ? "," : "", i, 1100000 + (int)rng_below(rng, 800000));
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"layers\":[");
    for (int i = 0; i < 12; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"name\":\"l%d\",\"forward_us\":%.1f,\"backward_us\":%.1f,\"variables\":[\"v%d\"]}",
                       i ? "," : "", i, rng_between(rng, 100, 3000), rng_between(rng, 100, 6000), i);
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    assert_ok(model_read(json, "test", model, &err));
    cJSON_Delete(json);
}

/* On 8 nodes that all serve, in some 9,000 messages: more than 100,000 pushes and pulls an iteration. */
static void random_large_plan(struct rng *rng, struct handmade *site, struct model *model, struct strategy *strategy,
                              struct plan *plan) {
    static const uint32_t servers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct error err;
    random_large_model(rng, model);
    handmade_cluster(site, 8);
    handmade_number_devices(site);
    assert_ok(strategy_init(strategy, "large", model, 0, &err));
    strategy->policy = rng_below(rng, 2) ? POLICY_priority : POLICY_fifo;
    strategy->credit_bytes = rng_below(rng, 2) ? 0 : 40000;
    strategy->cross_iteration = true;
    for (uint32_t v = 0; v < model->n_variables; v++)
        strategy->variables[v] = (struct variable_sync){.kind = SYNC_PARAMETER_SERVER,
                                                        .shards = 8,
                                                        .n_servers = 8,
                                                        .servers = servers,
                                                        .local_reduction = true,
                                                        .partition_bytes = 8000};
    assert_ok(strategy_seal(strategy, model, &site->cluster, &err));
    assert_ok(plan_lower(model, &site->cluster, strategy, plan, &err));
    assert_true(plan->n_messages * 8 * 2 > 100000);
}

static double large_error(const struct plan *plan, const struct cluster *cluster) {
    struct error err;
    struct cost cost;
    struct prediction soon, late;
    struct timeline *tl = timeline_new();
    assert_non_null(tl);
    assert_ok(cost_init(&cost, cluster, &err));
    assert_ok(timeline_run(tl, plan, &cost, NULL, &soon, &err));
    assert_ok(timeline_run(tl, plan, &cost, &(struct timeline_options){.passes = 16}, &late, &err));
    cost_release(&cost);
    timeline_free(tl);
    return fabs(soon.iteration_us / late.iteration_us - 1);
}

/* Statistics, no theorem: the standard error of two iterations is small where they agree by chance. Over 36 such plans,
 * of 12 seeds, the mean of few passes was off that of 16 by 1.3% on average, in either direction, and by more than 3.2%
 * twice, by 5.4 and 7.3%, both after two such iterations; the averages of three plans went up to 3.5%. */
static void few_passes_of_a_large_plan_are_close_to_many(void **state) {
    (void)state;
    double worst = 0, sum = 0;
    enum { LARGE_PLANS = 3 };
    for (int i = 0; i < LARGE_PLANS; i++) {
        struct rng rng;
        struct handmade site;
        struct model model;
        struct strategy strategy;
        struct plan plan = {.n_steps = 0};
        rng_split(&rng, test_seed() + 5, (uint64_t)i);
        random_large_plan(&rng, &site, &model, &strategy, &plan);
        double error = large_error(&plan, &site.cluster);
        sum += error;
        worst = fmax(worst, error);
        plan_release(&plan);
        strategy_release(&strategy);
        model_release(&model);
    }
    printf("few passes against 16: off by %.2f%% on average, %.2f%% at worst\n", 100 * sum / LARGE_PLANS, 100 * worst);
    assert_true(sum / LARGE_PLANS <= 0.05);
    assert_true(worst <= 0.12);
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

/* When each node began its iterations. */
struct starts {
    uint32_t home;
    uint32_t n[HANDMADE_NODES];
    double us[HANDMADE_NODES][TIMELINE_MAX_PASSES + 1];
};

static void add_start(void *context, const struct interval *interval) {
    struct starts *starts = context;
    if (interval->kind == INTERVAL_COMPUTE && interval->index == starts->home)
        starts->us[interval->node][starts->n[interval->node]++] = interval->start_us;
}

/* The standard error of the mean of a node's iterations 1 to n, as a part of that mean, in two passes over them. */
static double relative_error(const double *start_us, uint32_t n) {
    double mean = (start_us[n + 1] - start_us[1]) / n, squares = 0;
    for (uint32_t k = 1; k <= n; k++)
        squares += pow(start_us[k + 1] - start_us[k] - mean, 2);
    return sqrt(squares / (n - 1) / n) / mean;
}

/* The fewest iterations, the very first aside, whose mean is within `error`: at least `least`, and fewer than `most`.
 */
static uint32_t iterations_needed(const double *start_us, uint32_t least, uint32_t most, double error) {
    uint32_t n = least;
    while (n < most && relative_error(start_us, n) > error)
        n++;
    return n;
}

static void check_end_of_averaging(const struct fixture *f, uint32_t *few, uint32_t *many) {
    struct starts starts = {.home = home_of(f)};
    struct timeline_options options = {.record = add_start, .context = &starts};
    struct prediction p = fixture_predict(f, &options);
    if (p.converged)
        return;
    struct error err;
    struct cost cost;
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    memset(starts.n, 0, sizeof starts.n);
    options.passes = TIMELINE_MAX_PASSES;
    fixture_predict(f, &options);
    uint32_t n = iterations_needed(starts.us[cost.slowest], 8, TIMELINE_MAX_PASSES - 2, 0.005);
    assert_true(n == TIMELINE_MAX_PASSES - 2 ? p.passes > n : p.passes == n + 1);
    double longest = 0;
    for (uint32_t i = 0; i < f->site.cluster.n_nodes && p.passes < TIMELINE_MAX_PASSES; i++)
        longest = fmax(longest, (starts.us[i][p.passes] - starts.us[i][1]) / (p.passes - 1));
    if (p.passes < TIMELINE_MAX_PASSES)
        assert_close(p.iteration_us, longest, 1e-12);
    ++*(n == 8 ? few : many);
    cost_release(&cost);
}

/* Iterations that go on differing are averaged from the second on, at least eight of them, until the standard error of
 * the slowest node's mean is half a percent; recomputed here from when that node began each. Plans are drawn until both
 * ends were seen. */
static void averaging_ends_once_the_standard_error_is_small(void **state) {
    (void)state;
    enum { MIXED_PLANS = 5 * PLANS, MOST_PLANS = 100 * MIXED_PLANS }; /* one in hundreds goes on differing */
    struct fixture f;
    uint32_t few = 0, many = 0;
    for (int i = 0; i < MIXED_PLANS || ((few == 0 || many == 0) && i < MOST_PLANS); i++) {
        struct rng rng;
        rng_split(&rng, test_seed() + 6, (uint64_t)i);
        random_plan(&rng, &f, BOTH);
        check_end_of_averaging(&f, &few, &many);
    }
    printf("averaging ended after eight iterations %u times, after more %u times\n", few, many);
    assert_true(few > 0 && many > 0);
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
        cmocka_unit_test(plans_of_sharded_variables_meet_a_plain_simulation),
        cmocka_unit_test(plans_with_micro_batches_meet_a_plain_simulation),
        cmocka_unit_test(plans_whose_pulls_wait_for_their_turn_meet_a_plain_simulation),
        cmocka_unit_test(plans_in_weather_meet_a_plain_simulation_of_every_flow),
        cmocka_unit_test(one_chain_and_equal_shares_agree_with_every_node_and_max_min),
        cmocka_unit_test(alike_workers_folded_into_one_predict_what_every_node_does),
        cmocka_unit_test(a_run_gives_up_on_slow_plans_alone),
        cmocka_unit_test(no_iteration_is_shorter_than_the_load),
        cmocka_unit_test(a_run_ends_after_so_many_events),
        cmocka_unit_test(few_passes_of_a_large_plan_are_close_to_many),
        cmocka_unit_test(most_plans_settle),
        cmocka_unit_test(averaging_ends_once_the_standard_error_is_small),
        cmocka_unit_test(passes_are_kept_within_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
