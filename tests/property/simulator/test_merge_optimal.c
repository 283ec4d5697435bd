/* The best merge groups where they are run: the timeline's iteration is what the exact program says it is, and no cut
 * of the same chain, a published one or any other, is faster. On the way, the line of a parameter server's two phases
 * is what the timeline takes for one message. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cost/line.h"
#include "strategy/exact/merge.h"
#include "tests/support/check.h"
#include "tests/support/strategy/lone_messages.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/strategy/server_line.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 1500 };
#else
enum { INSTANCES = 400 };
#endif
enum { SMALL = 8, MOST = 3000 };

struct world {
    struct model model;
    struct cluster cluster;
    struct cost cost;
    double scale;
    struct gradient gradients[MOST];
    struct timeline *timeline;
};

static void world_open(struct rng *rng, struct world *w) {
    struct error err;
    assert_ok(random_model(rng, &w->model, &err));
    assert_ok(random_cluster(rng, &w->cluster, &err));
    w->model.update_us = w->model.n_variables % 2 ? w->model.forward_us / 3 : 0;
    assert_true(w->model.n_variables <= MOST);
    if (rng_below(rng, 2))
        w->cluster.runtime = (struct runtime){.goodput = 1};
    assert_ok(cost_init(&w->cost, &w->cluster, &err));
    lone_messages_save_nothing(&w->cost);
    w->scale = w->cluster.nodes[w->cost.slowest].compute_scale;
    assert_ok(gradients_list(&w->model, w->scale, WITH_UPDATES, w->gradients, &err));
}

static void world_close(struct world *w) {
    cost_release(&w->cost);
    cluster_release(&w->cluster);
    model_release(&w->model);
}

static double simulated_us(struct world *w, const struct strategy *strategy) {
    return lone_messages_us(w->timeline, &w->model, &w->cost, strategy);
}

static double copy_us(const void *context, uint64_t bytes, uint32_t n) {
    const struct cost *cost = context;
    return n > 1 ? (double)bytes / cost->copy_bytes_per_us : 0;
}

static double group_us(const void *context, uint64_t bytes, uint32_t n) {
    const struct cost *cost = context;
    struct all_reduce_cost c = all_reduce_cost(&cost->all_reduce, ALGORITHM_auto, bytes);
    return cost->runtime.message_us + c.startup_us + c.transfer_us + copy_us(context, bytes, n);
}

static double floor_us(const void *context, uint64_t bytes, uint32_t n) {
    return cost_all_reduce_floor_us(context, bytes) + copy_us(context, bytes, n);
}

/* Communication starts with the backward pass and ends with it at the earliest. */
static double iteration_us(const struct world *w, double communication_us) {
    return w->scale * (w->model.forward_us + w->model.update_us) +
           fmax(w->scale * w->model.backward_us, communication_us);
}

static void build(struct world *w, const char *name, struct strategy *out) {
    struct error err;
    assert_ok(baselines_build(baselines_find(name), &w->model, &w->cluster, out, &err));
}

/* The cut that a strategy makes; false when its groups are not runs of the chain, or one is gathered. */
static bool cut_of(const struct world *w, const struct strategy *s, uint32_t *ends, struct merge *out) {
    uint64_t seen[MOST] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->model.n_variables; i++) {
        uint32_t group = s->variables[w->gradients[i].variable].group;
        bool first = i == 0 || group != s->variables[w->gradients[i - 1].variable].group;
        if ((first && seen[group]++) || s->groups[group].algorithm == ALGORITHM_all_gather)
            return false;
        if (first && i)
            ends[n++] = i;
    }
    ends[n++] = w->model.n_variables;
    *out = (struct merge){n, ends};
    return true;
}

/* Every cut that keeps dtypes apart, run by the timeline. */
static double least_of_all_cuts(struct world *w) {
    uint32_t n = w->model.n_variables;
    double least = INFINITY;
    assert_in_range(n, 1, SMALL);
    for (uint32_t cuts = 0; cuts < (1u << n) / 2; cuts++) {
        struct error err;
        struct strategy s;
        bool allowed = true;
        assert_ok(strategy_init(&s, "cut", &w->model, n, &err));
        s.credit_bytes = 0;
        for (uint32_t i = 0, group = 0; i < n; i++) {
            bool joined = i && !(cuts >> (i - 1) & 1);
            allowed &= !joined || w->gradients[i].dtype == w->gradients[i - 1].dtype;
            group += i && !joined;
            s.variables[w->gradients[i].variable].group = group;
        }
        if (allowed) {
            assert_ok(strategy_seal(&s, &w->model, &w->cluster, &err));
            least = fmin(least, simulated_us(w, &s));
        }
        strategy_release(&s);
    }
    return least;
}

struct tally {
    int contiguous, faster, all_cuts;
};

static void check_against_baselines(struct world *w, double best_us, struct tally *tally) {
    static const char *const names[] = {"wfbp", "single", "mg-wfbp", "horovod", "pytorch-ddp"};
    struct merge_cost cost = {group_us, copy_us, floor_us, &w->cost};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct strategy s;
        struct merge merge;
        uint32_t ends[MOST];
        build(w, names[i], &s);
        double us = simulated_us(w, &s);
        if (cut_of(w, &s, ends, &merge)) {
            assert_close(us, iteration_us(w, merge_end_us(&merge, w->gradients, &cost)), 1e-9);
            assert_true(best_us <= us * (1 + 1e-9));
            tally->contiguous++;
            tally->faster += best_us < us * (1 - 1e-6);
        }
        strategy_release(&s);
    }
}

static void merge_optimal_is_what_its_program_says_and_no_cut_is_faster(void **state) {
    struct arena arena = {0};
    struct world w = {.timeline = timeline_new()};
    struct tally tally = {0};
    struct rng rng;
    struct error err;
    (void)state;
    assert_non_null(w.timeline);
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        struct strategy s;
        struct merge merge;
        world_open(&rng, &w);
        struct merge_cost cost = {group_us, copy_us, floor_us, &w.cost};
        assert_ok(baseline_merge_optimal(&w.model, &w.cost, &s, &err));
        assert_ok(merge_by_cost(w.model.n_variables, w.gradients, &cost, &arena, &merge, &err));
        double us = simulated_us(&w, &s);
        assert_close(us, iteration_us(&w, merge_end_us(&merge, w.gradients, &cost)), 1e-9);
        check_against_baselines(&w, us, &tally);
        if (w.model.n_variables <= SMALL) {
            assert_close(us, least_of_all_cuts(&w), 1e-9);
            tally.all_cuts++;
        }
        strategy_release(&s);
        world_close(&w);
        arena_clear(&arena);
    }
    printf("%d contiguous baselines, %d of them slower; %d models against all cuts\n", tally.contiguous, tally.faster,
           tally.all_cuts);
    assert_true(tally.all_cuts > INSTANCES / 10 && tally.faster > 0);
    timeline_free(w.timeline);
    arena_release(&arena);
}

/* ---- past the reach of the quadratic program ---- */

enum { LAYERS = 3000 };

static void read_long_chain(struct rng *rng, struct model *out) {
    struct error err;
    cJSON *model = cJSON_CreateObject();
    cJSON_AddStringToObject(model, "schema", "syncopate.model/1");
    cJSON_AddStringToObject(model, "name", "thousands");
    cJSON_AddNumberToObject(model, "batch_per_device", 1);
    cJSON *variables = cJSON_AddArrayToObject(model, "variables"), *layers = cJSON_AddArrayToObject(model, "layers");
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        cJSON *variable = cJSON_CreateObject(), *layer = cJSON_CreateObject();
        double elements = 1 + (double)rng_below(rng, 200000);
        snprintf(name, sizeof name, "v%d", i);
        cJSON_AddItemToArray(variables, variable);
        cJSON_AddStringToObject(variable, "name", name);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(variable, "shape"), cJSON_CreateNumber(elements));
        cJSON_AddItemToArray(layers, layer);
        cJSON_AddStringToObject(layer, "name", name);
        cJSON_AddNumberToObject(layer, "forward_us", 50);
        cJSON_AddNumberToObject(layer, "backward_us", rng_log_between(rng, 10, 2000));
        cJSON_AddItemToArray(cJSON_AddArrayToObject(layer, "variables"), cJSON_CreateString(name));
    }
    assert_ok(model_read(model, "model", out, &err));
    cJSON_Delete(model);
}

static void read_copying_cluster(struct cluster *out) {
    static const char text[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\","
                               "\"count\":16,\"nic_gbit_per_s\":10,\"nic_latency_us\":20}],"
                               "\"runtime\":{\"message_us\":30,\"copy_gbyte_per_s\":40}}";
    struct error err;
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", out, &err));
    cJSON_Delete(json);
}

static void thousands_of_gradients_are_merged_for_the_earliest_end_of_the_last_message(void **state) {
    static const char *const names[] = {"merge-optimal", "mg-wfbp", "wfbp", "single"};
    struct world w = {.timeline = timeline_new()};
    struct rng rng;
    struct error err;
    double end_us[4];
    (void)state;
    rng_seed(&rng, test_seed() + 2);
    read_long_chain(&rng, &w.model);
    read_copying_cluster(&w.cluster);
    assert_ok(cost_init(&w.cost, &w.cluster, &err));
    assert_ok(gradients_list(&w.model, w.scale = 1, WITH_UPDATES, w.gradients, &err));
    for (int i = 0; i < 4; i++) {
        struct strategy s;
        struct merge merge;
        uint32_t ends[MOST];
        build(&w, names[i], &s);
        assert_true(cut_of(&w, &s, ends, &merge));
        end_us[i] = merge_end_us(&merge, w.gradients, &(struct merge_cost){group_us, NULL, floor_us, &w.cost});
        assert_true(end_us[0] <= end_us[i] * (1 + 1e-9));
        double usable = merge_end_us(&merge, w.gradients, &(struct merge_cost){group_us, copy_us, floor_us, &w.cost});
        assert_close(simulated_us(&w, &s), iteration_us(&w, usable), 1e-9);
        strategy_release(&s);
    }
    printf("%d variables: merge-optimal %.0f us, mg-wfbp %.0f, wfbp %.0f, single %.0f\n", LAYERS, end_us[0], end_us[1],
           end_us[2], end_us[3]);
    world_close(&w);
    timeline_free(w.timeline);
}

/* ---- a server ---- */

/* One variable, all of it on the first node. */
static void check_server_line(struct world *w, bool exact) {
    struct strategy s;
    build(w, "ps", &s);
    w->cost.eager_bytes = INFINITY;
    w->cost.burst_bytes = 0;
    struct cost_line line = cost_line_push_pull(&w->cost, 0);
    double bytes = (double)plan_gradient_bytes(&s, &w->model.variables[0], &s.variables[0]);
    double us = iteration_us(w, w->gradients[0].ready_us + line.startup_us + line.per_byte_us * bytes);
    double simulated = simulated_us(w, &s);
    assert_true(simulated <= us * (1 + 1e-9));
    if (exact)
        assert_close(simulated, us, 1e-9);
    strategy_release(&s);
}

/* A server of its own, and workers that are alike. */
static void make_alike(struct rng *rng, struct world *w) {
    struct error err;
    struct node *nodes = arena_alloc(&w->cluster.arena, w->cluster.n_nodes, sizeof *nodes);
    assert_non_null(nodes);
    memcpy(nodes, w->cluster.nodes, w->cluster.n_nodes * sizeof *nodes);
    nodes[0].devices = 0;
    nodes[1].devices = 1 + (uint32_t)rng_below(rng, 4);
    for (uint32_t i = 2; i < w->cluster.n_nodes; i++)
        nodes[i] = nodes[1];
    w->cluster.nodes = nodes;
    w->cluster.n_links = 0;
    w->cluster.n_devices = nodes[1].devices * (w->cluster.n_nodes - 1);
    cost_release(&w->cost);
    assert_ok(cost_init(&w->cost, &w->cluster, &err));
    w->scale = nodes[1].compute_scale;
    assert_ok(gradients_list(&w->model, w->scale, WITH_UPDATES, w->gradients, &err));
}

static void lone_push_and_pull_take_their_line(void **state) {
    struct world w = {.timeline = timeline_new()};
    struct rng rng;
    int any = 0, alike = 0;
    (void)state;
    assert_non_null(w.timeline);
    rng_seed(&rng, test_seed() + 1);
    for (int i = 0; i < 2 * INSTANCES; i++) {
        world_open(&rng, &w);
        if (w.model.n_variables == 1) {
            check_server_line(&w, false);
            any++;
            if (w.cluster.n_nodes > 1) {
                make_alike(&rng, &w);
                check_server_line(&w, true);
                alike++;
            }
        }
        world_close(&w);
    }
    printf("%d lone messages through a server, %d more between nodes that are alike\n", any, alike);
    assert_true(alike > 0);
    timeline_free(w.timeline);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_optimal_is_what_its_program_says_and_no_cut_is_faster),
        cmocka_unit_test(thousands_of_gradients_are_merged_for_the_earliest_end_of_the_last_message),
        cmocka_unit_test(lone_push_and_pull_take_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
