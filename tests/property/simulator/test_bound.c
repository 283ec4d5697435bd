/* The lower bound against what the timeline predicts for random strategies, and its figures by hand.
 *
 * docs/lower-bound.md: compute and windows are below every prediction, for the mean over iterations that go on
 * differing too, and so they are held to it strictly. The volume is below the period of a schedule that repeats:
 * strictly below a prediction that converged; else it is held to the whole run, in which n volumes must pass before
 * every node begins iteration n. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "simulator/bound.h"
#include "simulator/timeline.h"
#include "simulator/tuned.h"
#include "strategy/baselines/baselines.h"
#include "strategy/memory.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"
#include "tests/support/strategy/random_instances.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 450 };
#else
enum { INSTANCES = 80 };
#endif
enum { SAMPLES = 18, PREEMPTIVE = 4, STEPS = 16, TUPLES = 50 * INSTANCES };
enum { MOST_NODES = 8, MOST_PUSHES = 600, MOST_ROUNDS = TIMELINE_MAX_PASSES + 4 };

struct tally {
    int tuples, settled, barriers, served, gathered, preemptive, sharded, replicas, accumulated, both, left_out, tight,
        again;
    double closest, closest_barrier, closest_again;
};

struct instance {
    struct timeline *tl;
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct bound bound[IN_PARTS_COUNT];
    struct space space;
    struct tally *tally;
};

/* ---- the whole run, for schedules that do not repeat ---- */

struct run {
    uint32_t home; /* the step after every gate and before every gradient; all nodes begin it at time 0 */
    uint32_t begun[MOST_NODES];
    double last_us[MOST_ROUNDS]; /* when the last node began its iteration n */
};

static void note_begin(void *context, const struct interval *interval) {
    struct run *run = context;
    if (interval->kind != INTERVAL_COMPUTE || interval->index != run->home)
        return;
    uint32_t round = run->begun[interval->node]++;
    assert_true(round < MOST_ROUNDS);
    run->last_us[round] = fmax(run->last_us[round], interval->start_us);
}

static void check_whole_run(struct instance *in, const struct plan *plan) {
    struct error err;
    struct prediction p;
    struct run run = {0};
    uint32_t rounds = UINT32_MAX;
    if (plan->ends_in_update)
        run.home = plan->n_steps - 1;
    for (uint32_t m = 0; m < plan->n_messages && !plan->ends_in_update; m++)
        run.home = plan_step_in_pass(plan, plan->messages[m].gate) > run.home
                       ? plan_step_in_pass(plan, plan->messages[m].gate)
                       : run.home;
    struct timeline_options options = {.record = note_begin, .context = &run};
    assert_ok(timeline_run(in->tl, plan, &in->cost, &options, &p, &err));
    for (uint32_t i = 0; i < in->cost.n_workers; i++) {
        uint32_t begun = run.begun[in->cost.workers[i]]; /* of all-reduces alone one node stands for all */
        rounds = begun > 0 && begun < rounds ? begun : rounds;
    }
    assert_true(rounds > 1);
    assert_true((rounds - 1) * in->bound[0].volume_us <= run.last_us[rounds - 1] * (1 + 1e-9));
}

/* ---- one strategy ---- */

static bool is_below(double bound_us, const struct prediction *p) {
    return bound_us <= p->iteration_us * (1 + 1e-9) + 1e-6;
}

static bool gathers(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->n_messages; i++)
        if (plan->messages[i].kind == SYNC_ALL_REDUCE && plan->messages[i].algorithm == ALGORITHM_all_gather)
            return true;
    return false;
}

static void note_gap(struct tally *tally, const struct bound *bound, const struct prediction *p, bool barrier) {
    double us = barrier ? bound->barrier_us : bound->iteration_us, *closest = &tally->closest;
    if (barrier)
        closest = &tally->closest_barrier;
    if (p->iteration_us <= bound->compute_us * 1.01)
        return;
    *closest = fmax(*closest, us / p->iteration_us);
    tally->tight += us > 0.9 * p->iteration_us;
}

/* Thousands of pushes take a timeline seconds to settle. */
static bool is_long(const struct instance *in, const struct plan *plan) {
    return plan->any_server && (uint64_t)plan->n_messages * in->cost.n_workers > MOST_PUSHES;
}

/* Of how many devices each has an equal part of what is synchronized so, between its passes. */
static uint32_t ranks_between_passes(const struct instance *in, const struct strategy *s,
                                     const struct variable_sync *sync) {
    const struct group *g = &s->groups[sync->group];
    if (sync->kind != SYNC_ALL_REDUCE || g->sharded != SHARDED_parameters || g->keeps_gathered)
        return 1;
    return g->reshard_ranks > 0 ? g->reshard_ranks : s->shard_ranks > 0 ? s->shard_ranks : in->cluster.n_devices;
}

/* Bytes of parameters that a device has between its passes, or more where a variable's shards go their own ways. */
static uint64_t held_between_passes(const struct instance *in, const struct strategy *s) {
    double held = 0;
    for (uint32_t v = 0; v < in->model.n_variables; v++) {
        uint32_t least = UINT32_MAX;
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const uint32_t ranks = ranks_between_passes(in, s, sync_part(&s->variables[v], k));
            least = ranks < least ? ranks : least;
        }
        held += (double)in->model.variables[v].bytes / least;
    }
    return (uint64_t)ceil(held);
}

/* And of activations, and of states what each device has of them. */
static uint64_t held_beside(const struct instance *in) {
    double bytes = 0;
    for (uint32_t i = 0; i < in->model.n_operators; i++)
        bytes += in->model.operators[i].backward ? 0 : (double)in->model.operators[i].activation_bytes;
    for (uint32_t v = 0; v < in->model.n_variables; v++)
        bytes +=
            (double)optimizer_bytes(&in->model.optimizer, &in->model.variables[v], in->model.variables[v].elements) /
            in->cluster.n_devices;
    return (uint64_t)ceil(bytes);
}

/* Where the device has no more room than that, a schedule that repeats moves so much more. */
static void check_budget(struct instance *in, const struct strategy *s, const struct plan *plan,
                         const struct prediction *p) {
    struct error err;
    struct bound bound;
    struct memory memory;
    if (p->lossy != LOSSY_none)
        return;
    assert_ok(memory_of_plan(plan, &memory, &err));
    const uint64_t between = held_between_passes(in, s) + held_beside(in),
                   room = between < memory.peak_bytes ? between : memory.peak_bytes;
    assert_ok(bound_of_micro_batches(&in->model, &in->cost, LOSSY_none, p->in_parts, s->micro_batches, &bound, &err));
    const double any_us = bound.iteration_us;
    bound_within(&bound, &in->model, &in->cost, room);
    if (!is_below(bound.iteration_us, p))
        printf("%s: %.6f within its memory above prediction %.6f\n", s->name, bound.iteration_us, p->iteration_us);
    assert_true(is_below(bound.iteration_us, p));
    if (bound.iteration_us <= any_us)
        return;
    in->tally->again++;
    in->tally->closest_again = fmax(in->tally->closest_again, bound.iteration_us / p->iteration_us);
}

/* How far above its bound the strategy is, as a ratio (a microsecond on both sides, since a bound may be 0); INFINITY
 * when it is left out. */
static double check_strategy(struct instance *in, const struct strategy *strategy) {
    struct error err;
    struct plan plan;
    struct prediction p;
    assert_ok(plan_lower(&in->model, &in->cluster, strategy, &plan, &err));
    const struct bound *b = &in->bound[plan.in_parts];
    if (is_long(in, &plan)) {
        in->tally->left_out++;
        plan_release(&plan);
        return INFINITY;
    }
    assert_ok(timeline_run(in->tl, &plan, &in->cost, NULL, &p, &err));
    bool barrier = !strategy->cross_iteration && !plan.ends_in_update;
    double windows = barrier ? b->barrier_windows_us : b->windows_us;
    bool below = is_below(b->compute_us, &p) && is_below(windows, &p) && (!p.converged || is_below(b->volume_us, &p));
    if (!below)
        printf("tuple %d: compute %.6f, volume %.6f, windows %.6f above prediction %.6f of %s%s%s\n", in->tally->tuples,
               b->compute_us, b->volume_us, windows, p.iteration_us, strategy->name, barrier ? ", barrier" : "",
               p.converged ? "" : ", not converged");
    assert_true(below);
    if (p.converged)
        check_budget(in, strategy, &plan, &p);
    if (p.converged)
        note_gap(in->tally, b, &p, barrier);
    else
        check_whole_run(in, &plan);
    in->tally->tuples++;
    in->tally->settled += p.converged;
    in->tally->barriers += barrier;
    in->tally->served += plan.any_server;
    in->tally->gathered += gathers(&plan);
    in->tally->preemptive += plan.policy == POLICY_preemptive;
    in->tally->sharded += plan.ends_in_update;
    in->tally->replicas += plan.n_replicas > 0;
    plan_release(&plan);
    return (p.iteration_us + 1) / ((barrier ? b->barrier_us : b->iteration_us) + 1);
}

/* ---- one instance ---- */

static void replace_number(cJSON *object, const char *key, double value) {
    cJSON_DeleteItemFromObject(object, key);
    assert_non_null(cJSON_AddNumberToObject(object, key, value));
}

/* No latency and no processor time: there a bound is as tight as it gets. */
static void make_ideal(cJSON *cluster) {
    cJSON *node;
    cJSON_DeleteItemFromObject(cluster, "runtime");
    cJSON_DeleteItemFromObject(cluster, "transport");
    assert_non_null(cJSON_AddStringToObject(cluster, "transport", "ideal"));
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(cluster, "nodes")) replace_number(node, "nic_latency_us", 0);
}

/* All nodes alike, spare ones but for their devices. */
static void make_even(cJSON *cluster, struct rng *rng) {
    double rate = rng_log_between(rng, 0.1, 100);
    cJSON *node;
    cJSON_DeleteItemFromObject(cluster, "links");
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(cluster, "nodes")) {
        replace_number(node, "nic_gbit_per_s", rate);
        replace_number(node, "compute_scale", 1);
    }
}

static void add_push(cJSON *list, double bytes, double us) {
    cJSON *push = cJSON_CreateObject();
    assert_true(cJSON_AddItemToArray(list, push) && cJSON_AddStringToObject(push, "operation", "push") &&
                cJSON_AddNumberToObject(push, "devices", 2) && cJSON_AddNumberToObject(push, "bytes", bytes) &&
                cJSON_AddNumberToObject(push, "time_us", us));
}

/* Two pushes that show that NICs save up. */
static void make_bursty(cJSON *cluster, struct rng *rng) {
    cJSON_DeleteItemFromObject(cluster, "measurements");
    cJSON *list = cJSON_AddArrayToObject(cluster, "measurements");
    add_push(list, 1, 1);
    add_push(list, 2 + floor(rng_log_between(rng, 1, 1e7)), 1);
}

/* One node whose devices have links of their own. */
static void make_alone(cJSON *cluster, struct rng *rng) {
    cJSON *nodes = cJSON_GetObjectItem(cluster, "nodes");
    while (cJSON_GetArraySize(nodes) > 1)
        cJSON_DeleteItemFromArray(nodes, 1);
    cJSON *node = cJSON_GetArrayItem(nodes, 0);
    replace_number(node, "devices", (double)(1 + rng_below(rng, 8)));
    replace_number(node, "count", 1);
    replace_number(node, "device_link_gbyte_per_s", rng_log_between(rng, 0.01, 100));
    cJSON_DeleteItemFromObject(cluster, "links");
    cJSON_DeleteItemFromObject(cluster, "measurements");
}

/* Latencies that are long beside the transfers. */
static void make_slow_to_start(cJSON *cluster, struct rng *rng) {
    static const char *const FIGURES[] = {"message_us", "push_us", "coordination_us"};
    cJSON *node, *runtime = cJSON_GetObjectItem(cluster, "runtime");
    if (!runtime)
        runtime = cJSON_AddObjectToObject(cluster, "runtime");
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        if (rng_below(rng, 2))
            replace_number(runtime, FIGURES[i], rng_log_between(rng, 1, 1e4));
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(cluster, "nodes"))
        replace_number(node, "nic_latency_us", rng_log_between(rng, 1, 1e4));
}

/* Curves of one half of a ring or of both, faster than all-reduces or slower. */
static void measure_halves(struct cluster *cluster, struct rng *rng) {
    const uint32_t n = cluster->n_measurements, halves = 1 + (uint32_t)rng_below(rng, 2);
    struct measurement *all = arena_alloc(&cluster->arena, n + 4, sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = cluster->measurements[i];
    cluster->measurements = all;
    for (uint32_t h = 0; h < halves; h++) {
        const double startup_us = rng_log_between(rng, 1, 1e3), per_byte_us = rng_log_between(rng, 1e-6, 1e-2);
        for (double bytes = 1000; bytes <= 1e6; bytes *= 1000)
            all[cluster->n_measurements++] =
                (struct measurement){.operation = h ? OPERATION_all_gather : OPERATION_reduce_scatter,
                                     .devices = cluster->n_devices,
                                     .bytes = (uint64_t)bytes,
                                     .time_us = startup_us + per_byte_us * bytes};
    }
}

static void draw_cluster(struct rng *rng, struct cluster *out) {
    struct error err;
    cJSON *json = random_cluster_json(rng);
    if (rng_below(rng, 2))
        make_ideal(json);
    if (rng_below(rng, 4) == 0)
        make_even(json, rng);
    if (rng_below(rng, 5) == 0)
        make_bursty(json, rng);
    if (rng_below(rng, 8) == 0)
        make_alone(json, rng);
    if (rng_below(rng, 3) == 0)
        make_slow_to_start(json, rng);
    assert_ok(cluster_read(json, "random cluster", out, &err));
    cJSON_Delete(json);
    if (out->n_devices > 1 && rng_below(rng, 4) == 0)
        measure_halves(out, rng);
}

static void check_baselines(struct instance *in) {
    struct error err;
    size_t n;
    const struct baseline *rows = baselines_list(&n);
    for (size_t i = 0; i < n; i++) {
        struct strategy strategy;
        assert_ok(tuned_build(&rows[i], &in->model, &in->cluster, &strategy, &err));
        check_strategy(in, &strategy);
        strategy_release(&strategy);
    }
}

/* Encodings move fewer bytes than any bound that keeps the arithmetic can ask for. */
static bool is_encoded(const struct strategy *strategy) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]); k++)
            if (sync_part(&strategy->variables[v], k)->encoding != ENCODING_none)
                return true;
    return false;
}

static void check_preemptive(struct instance *in, struct rng *rng) {
    struct error err;
    for (int i = 0; i < PREEMPTIVE; i++) {
        struct strategy strategy;
        assert_ok(random_preemptive(rng, &in->model, &in->cluster, &strategy, &err));
        if (!is_encoded(&strategy))
            check_strategy(in, &strategy);
        strategy_release(&strategy);
    }
}

/* The same strategy with several micro-batches, and their bound. */
static void check_accumulated(struct instance *in, struct rng *rng, const struct strategy *one) {
    struct error err;
    struct strategy s;
    struct bound before[IN_PARTS_COUNT];
    memcpy(before, in->bound, sizeof before);
    if (is_encoded(one))
        return;
    assert_ok(strategy_copy(one, "accumulated", &s, &err));
    s.micro_batches = 2 + (uint32_t)rng_below(rng, 3);
    if (rng_below(rng, 2))
        s.synchronize = s.shard_ranks ? SYNCHRONIZE_each_all_reduce_last : SYNCHRONIZE_each;
    assert_ok(strategy_seal(&s, &in->model, &in->cluster, &err));
    for (uint32_t in_parts = 0; in_parts < IN_PARTS_COUNT; in_parts++)
        assert_ok(bound_of_micro_batches(&in->model, &in->cost, LOSSY_none, (enum in_parts)in_parts, s.micro_batches,
                                         &in->bound[in_parts], &err));
    check_strategy(in, &s);
    in->tally->accumulated++;
    in->tally->both += s.shard_ranks > 0;
    memcpy(in->bound, before, sizeof before);
    strategy_release(&s);
}

/* Replicas of shards among any number of devices that divides them all, and parts among fewer between the passes. */
static void draw_replicas(struct rng *rng, uint32_t n_devices, struct strategy *s) {
    uint32_t ranks = 1 + (uint32_t)rng_below(rng, n_devices), kept = 1 + (uint32_t)rng_below(rng, n_devices);
    while (n_devices % ranks > 0)
        ranks--;
    s->shard_ranks = ranks > 1 && rng_below(rng, 3) ? ranks : 0;
    while ((s->shard_ranks ? s->shard_ranks : n_devices) % kept > 0)
        kept--;
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].sharded == SHARDED_parameters && rng_below(rng, 3) == 0)
            s->groups[g].reshard_ranks = kept;
}

/* The same strategy with its all-reduces sharded, where they may be; parameters with any prefetch, some kept. */
static void check_sharded(struct instance *in, struct rng *rng, const struct strategy *whole, enum sharded sharded) {
    struct error err;
    struct strategy s;
    bool any = false;
    if (whole->policy == POLICY_preemptive || is_encoded(whole))
        return;
    assert_ok(strategy_copy(whole, sharded_name(sharded), &s, &err));
    for (uint32_t g = 0; g < s.n_groups; g++)
        if (s.groups[g].algorithm == ALGORITHM_auto || s.groups[g].algorithm == ALGORITHM_ring) {
            s.groups[g].sharded = rng_below(rng, 8) ? sharded : SHARDED_none;
            s.groups[g].keeps_gathered = rng_below(rng, 2);
            any = true;
        }
    const uint32_t n = strategy_sharded_parameters(&s);
    if (n > 0) {
        s.policy = POLICY_fifo;
        s.cross_iteration = false;
        s.forward_prefetch = (uint32_t)rng_below(rng, n + 1);
        s.backward_prefetch = (uint32_t)rng_below(rng, n + 1);
        draw_replicas(rng, in->cluster.n_devices, &s);
    }
    if (any) {
        assert_ok(strategy_seal(&s, &in->model, &in->cluster, &err));
        check_strategy(in, &s);
        if (rng_below(rng, 4) == 0)
            check_accumulated(in, rng, &s);
    }
    strategy_release(&s);
}

/* Random strategies, and from the one nearest to the bound a few steps that get nearer. */
static void check_samples(struct instance *in, struct rng *rng) {
    struct error err;
    struct strategy best = {0}, strategy;
    double nearest = INFINITY;
    for (int i = 0; i < SAMPLES || (i < SAMPLES + STEPS && isfinite(nearest)); i++) {
        enum status st = i >= SAMPLES ? space_neighbour(&in->space, &best, rng, &strategy, &err)
                         : i % 2      ? space_sample_guided(&in->space, rng, &strategy, &err)
                                      : space_sample_uniform(&in->space, rng, &strategy, &err);
        if (i >= SAMPLES && st == ST_INFEASIBLE)
            break;
        assert_ok(st);
        check_sharded(in, rng, &strategy, SHARDED_optimizer);
        if (i % 2)
            check_sharded(in, rng, &strategy, SHARDED_parameters);
        if (i % 4 == 0)
            check_accumulated(in, rng, &strategy);
        double ratio = check_strategy(in, &strategy);
        struct strategy *worse = ratio < nearest ? &best : &strategy;
        strategy_release(worse);
        if (worse == &best)
            best = strategy;
        nearest = fmin(nearest, ratio);
    }
    strategy_release(&best);
}

static void draw_model(struct rng *rng, struct model *out) {
    struct error err;
    cJSON *json = random_model_json(rng);
    random_memory(rng, json);
    assert_ok(model_read(json, "random model", out, &err));
    cJSON_Delete(json);
}

static void check_instance(struct timeline *tl, struct rng *rng, struct tally *tally) {
    struct error err;
    struct instance in = {.tl = tl, .tally = tally};
    struct space_options options = space_default_options();
    options.max_shards = 8; /* a timeline's time goes with the number of messages */
    options.min_partition_bytes = 1 << 18;
    draw_model(rng, &in.model);
    draw_cluster(rng, &in.cluster);
    assert_ok(cost_init(&in.cost, &in.cluster, &err));
    const enum lossiness lossy =
        rng_below(rng, 3) ? LOSSY_none : 1 + (enum lossiness)rng_below(rng, LOSSINESS_COUNT - 1);
    for (uint32_t e = 0; e < ENCODING_COUNT; e++)
        if (encoding_lossiness((enum encoding)e) <= lossy)
            options.encodings |= 1u << e;
    for (uint32_t in_parts = 0; in_parts < IN_PARTS_COUNT; in_parts++) {
        assert_ok(bound_iteration(&in.model, &in.cost, lossy, (enum in_parts)in_parts, &in.bound[in_parts], &err));
        assert_true(in_parts == 0 || in.bound[in_parts].iteration_us <= in.bound[in_parts - 1].iteration_us);
    }
    assert_ok(space_init(&in.space, &in.model, &in.cluster, &options, &err));
    check_baselines(&in);
    check_preemptive(&in, rng);
    check_samples(&in, rng);
    space_release(&in.space);
    cost_release(&in.cost);
    cluster_release(&in.cluster);
    model_release(&in.model);
}

static void no_strategy_is_predicted_below_the_bound(void **state) {
    (void)state;
    struct timeline *tl = timeline_new();
    struct tally t = {0};
    assert_non_null(tl);
    for (int i = 0; i < INSTANCES; i++) {
        struct rng rng;
        rng_split(&rng, test_seed(), (uint64_t)i);
        check_instance(tl, &rng, &t);
    }
    printf("%d tuples (%d with too many pushes left out), %d settled, %d with the barrier, %d with servers, %d "
           "with gathers, %d preemptive, %d with sharded parameters, %d of them with replicas, %d with several "
           "micro-batches, %d of them with replicas; where communication shows, %d "
           "within 10%% of the bound, the closest at %.4f of it, with the barrier at %.4f; %d that gather again, the "
           "closest at %.4f of the bound within its memory\n",
           t.tuples, t.left_out, t.settled, t.barriers, t.served, t.gathered, t.preemptive, t.sharded, t.replicas,
           t.accumulated, t.both, t.tight, t.closest, t.closest_barrier, t.again, t.closest_again);
    assert_true(t.tuples >= TUPLES);
    assert_true(t.again > 0 && t.tight > 0 && t.barriers > 0 && t.gathered > 0 && t.preemptive > 0 &&
                t.sharded > TUPLES / 50 && t.replicas > TUPLES / 200 && t.accumulated > TUPLES / 50 && t.both > 0 &&
                t.settled < t.tuples);
    timeline_free(tl);
}

/* ---- figures by hand: gradients of 10^6 bytes, 1000 us through a NIC ---- */

/* Two layers: the gradient of b is ready after 200 us, that of a after 500; computation after them 300 and 400 us. */
static const char *const LAYERS =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[250000],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[250000],\"dtype\":\"f32\"}],"
    "\"layers\":["
    "{\"name\":\"one\",\"forward_us\":100,\"backward_us\":300,\"variables\":[\"a\"]},"
    "{\"name\":\"two\",\"forward_us\":300,\"backward_us\":200,\"variables\":[\"b\"]}]}";

static void read_layers(struct model *out) {
    struct error err;
    cJSON *json = cJSON_Parse(LAYERS);
    assert_non_null(json);
    assert_ok(model_read(json, "m", out, &err));
    cJSON_Delete(json);
}

static struct bound bound_of(struct handmade *h) {
    struct error err;
    struct model model;
    struct cost cost;
    struct bound bound;
    read_layers(&model);
    handmade_number_devices(h);
    assert_ok(cost_init(&cost, &h->cluster, &err));
    assert_ok(bound_iteration(&model, &cost, LOSSY_none, IN_PARTS_none, &bound, &err));
    cost_release(&cost);
    model_release(&model);
    return bound;
}

/* A double tree moves each byte once. b begins at 200 us, a goes in between at 500, and at 2200 b is through with 300
 * us left; with the barrier 400 are left in any order. */
static void even_nodes_send_every_gradient_once_in_its_window(void **state) {
    (void)state;
    struct handmade h;
    for (uint32_t n = 2; n <= HANDMADE_NODES; n++) {
        handmade_cluster(&h, n);
        struct bound bound = bound_of(&h);
        assert_close(bound.compute_us, 900, 1e-12);
        assert_close(bound.iteration_us, 200 + 2000 + 300, 1e-12);
        assert_close(bound.barrier_us, 200 + 2000 + 400, 1e-12);
    }
}

static void two_double_trees_behind_the_barrier_meet_the_bound(void **state) {
    (void)state;
    struct error err;
    struct handmade h;
    struct model model;
    struct cost cost;
    struct strategy strategy;
    struct plan plan;
    struct prediction p;
    struct timeline *tl = timeline_new();
    handmade_cluster(&h, 5);
    handmade_number_devices(&h);
    read_layers(&model);
    assert_ok(strategy_init(&strategy, "two", &model, 2, &err));
    strategy.groups[0].algorithm = strategy.groups[1].algorithm = ALGORITHM_double_tree;
    strategy.variables[1].group = 1;
    assert_ok(strategy_seal(&strategy, &model, &h.cluster, &err));
    assert_ok(cost_init(&cost, &h.cluster, &err));
    assert_ok(plan_lower(&model, &h.cluster, &strategy, &plan, &err));
    assert_ok(timeline_run(tl, &plan, &cost, NULL, &p, &err));
    assert_close(p.iteration_us, bound_of(&h).barrier_us, 1e-12);
    timeline_free(tl);
    plan_release(&plan);
    cost_release(&cost);
    strategy_release(&strategy);
    model_release(&model);
}

static double iteration_us(const struct handmade *h, const struct model *model, struct strategy *strategy) {
    struct error err;
    struct cost cost;
    struct plan plan;
    struct prediction p;
    struct timeline *tl = timeline_new();
    assert_ok(strategy_seal(strategy, model, &h->cluster, &err));
    assert_ok(cost_init(&cost, &h->cluster, &err));
    assert_ok(plan_lower(model, &h->cluster, strategy, &plan, &err));
    assert_ok(timeline_run(tl, &plan, &cost, NULL, &p, &err));
    timeline_free(tl);
    plan_release(&plan);
    cost_release(&cost);
    return p.iteration_us;
}

/* An all-reduce starts up in 200 us, half of one in 100. The network moves bytes from 200 + 100 us on, when the sum of
 * b has started up, and without a gap: b's all-gather starts up while the sum of a moves, and a's while b's moves. Both
 * are through after 2000 us, and the forward pass follows. */
static void halves_lose_half_a_start_up(void **state) {
    (void)state;
    struct error err;
    struct handmade h;
    struct model model;
    struct strategy strategy;
    handmade_cluster(&h, 2);
    handmade_fix(&h, 200, 0.001);
    h.nodes[0].nic_latency_us = h.nodes[1].nic_latency_us = 1000; /* pushes are no way out */
    const struct bound bound = bound_of(&h);
    read_layers(&model);
    assert_ok(strategy_init(&strategy, "halves", &model, 2, &err));
    strategy.variables[1].group = 1;
    strategy.policy = POLICY_priority;
    strategy.groups[0].sharded = strategy.groups[1].sharded = SHARDED_optimizer;
    const double us = iteration_us(&h, &model, &strategy);
    assert_close(us, 200 + 100 + 2000 + 400, 1e-12);
    assert_close(bound.barrier_us, us, 1e-12);
    strategy_release(&strategy);
    model_release(&model);
}

/* Without start-ups, 500 us for half of an all-reduce, one group ahead, one message at a time. The forward pass gathers
 * a until 500 and b until 1000, and ends at 1300. What was gathered is kept. The sums follow from 1500 to 2500: with
 * the barrier before the forward pass, both gradients would need 2000 us before it. */
static void sharded_parameters_undercut_the_bound_for_the_barrier(void **state) {
    (void)state;
    struct error err;
    struct handmade h;
    struct model model;
    struct strategy strategy;
    handmade_cluster(&h, 2);
    handmade_fix(&h, 0, 0.001);
    const struct bound bound = bound_of(&h);
    read_layers(&model);
    assert_ok(strategy_init(&strategy, "sharded", &model, 2, &err));
    strategy.variables[1].group = 1;
    strategy.credit_bytes = 0;
    for (uint32_t g = 0; g < 2; g++) {
        strategy.groups[g].sharded = SHARDED_parameters;
        strategy.groups[g].keeps_gathered = true;
    }
    const double us = iteration_us(&h, &model, &strategy);
    assert_close(us, 2500, 1e-12);
    assert_close(bound.iteration_us, 2500, 1e-12);
    assert_close(bound.barrier_us, 2600, 1e-12);
    strategy_release(&strategy);
    model_release(&model);
}

/* Of two nodes the one that begins last sends every byte: as a push, or to the other that pulls it. */
static void two_nodes_need_every_byte_in_one_window(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 2);
    handmade_fix(&h, 0, 1);
    assert_close(bound_of(&h).windows_us, 200 + 2000 + 300, 1e-12);
}

/* Beside the copy that each node sends in its own window, 5 of 8 that share the serving are sent or taken in before or
 * after it: half of them counts. */
static void many_nodes_count_half_of_what_they_serve(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 8);
    handmade_fix(&h, 0, 1);
    assert_close(bound_of(&h).windows_us, 200 + 2000 * 1.5 * 7 / 8 + 300, 1e-12);
}

/* A straggler among five: its own window is 3/2 as long, and 1/4 of the difference to the others is lost. */
static void stragglers_stretch_their_windows(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 5);
    h.nodes[3].compute_scale = 1.5;
    struct bound bound = bound_of(&h);
    assert_close(bound.compute_us, 900 * 1.5, 1e-12);
    assert_close(bound.windows_us, (1.5 - 0.5 / 4) * (200 + 300) + 2000, 1e-12);
}

/* Where all-reduces are dear, 4 nodes that share the serving send 2 * 3/4 of each byte; k = 4 spare ones leave 1, and 2
 * spare ones 6 / (4 + 2 * 2/4). */
static void spare_nodes_lower_the_volume(void **state) {
    (void)state;
    static const struct {
        uint32_t spare;
        double us;
    } rows[] = {{0, 3000}, {2, 2400}, {4, 2000}, {8, 2000}};
    struct handmade h;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        handmade_cluster(&h, 4 + rows[i].spare);
        handmade_fix(&h, 0, 1);
        for (uint32_t k = 4; k < 4 + rows[i].spare; k++)
            h.nodes[k].devices = 0;
        assert_close(bound_of(&h).volume_us, rows[i].us, 1e-12);
    }
}

/* As above, and the latency of a push, or the start-up of half an all-reduce where that is less. Of 8 nodes servers are
 * dearer by 312 us, yet some shard may be served at no latency. */
static void latencies_count_once_a_window(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 2);
    handmade_fix(&h, 400, 0.001);
    h.nodes[0].nic_latency_us = h.nodes[1].nic_latency_us = 100;
    assert_close(bound_of(&h).windows_us, 200 + 2000 + 300 + 100, 1e-12);
    handmade_fix(&h, 60, 0.001);
    assert_close(bound_of(&h).windows_us, 200 + 2000 + 300 + 30, 1e-12);
    handmade_cluster(&h, 8);
    handmade_fix(&h, 200, 0.001);
    assert_close(bound_of(&h).windows_us, 200 + 2000 + 300, 1e-12);
    h.cluster.runtime.message_us = 50;
    assert_close(bound_of(&h).windows_us, 200 + 2000 + 300 + 50, 1e-12);
}

/* Four devices on a link of 1000 bytes a microsecond: 1000 us by all-reduce, half of 4000 by servers, so 1 / (1/1000 +
 * 1/2000) of both. */
static void devices_of_one_node_share_its_link(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 1);
    h.nodes[0].devices = 4;
    h.nodes[0].device_link_gbyte_per_s = 1;
    assert_close(bound_of(&h).windows_us, 200 + 2 * 2000.0 / 3 + 300, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_strategy_is_predicted_below_the_bound),
        cmocka_unit_test(even_nodes_send_every_gradient_once_in_its_window),
        cmocka_unit_test(two_double_trees_behind_the_barrier_meet_the_bound),
        cmocka_unit_test(halves_lose_half_a_start_up),
        cmocka_unit_test(sharded_parameters_undercut_the_bound_for_the_barrier),
        cmocka_unit_test(two_nodes_need_every_byte_in_one_window),
        cmocka_unit_test(many_nodes_count_half_of_what_they_serve),
        cmocka_unit_test(stragglers_stretch_their_windows),
        cmocka_unit_test(spare_nodes_lower_the_volume),
        cmocka_unit_test(latencies_count_once_a_window),
        cmocka_unit_test(devices_of_one_node_share_its_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
