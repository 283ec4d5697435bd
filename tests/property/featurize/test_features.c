/* Properties of features of any strategy at all on random models and clusters, measured and handmade ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "featurize/features.h"
#include "strategy/space/ready_order.h"
#include "tests/support/check.h"
#include "tests/support/feature_columns.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"

enum { INSTANCES = 400 };

struct instance {
    struct rng rng;
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct strategy strategy;
    struct plan plan;
    struct features features;
};

static const struct timeline_terms TERMS = {
    .iteration_us = 5000, .compute_us = 3000, .exposed_us = 2000, .busy_us = 4000, .queue_us = 700};

static void describe(struct instance *in) {
    struct error err = {0};
    assert_ok(plan_lower(&in->model, &in->cluster, &in->strategy, &in->plan, &err));
    assert_ok(features_of(&in->strategy, &in->plan, &in->cost, &TERMS, &in->features, &err));
}

enum { ONE_MICRO_BATCH, ANY_MICRO_BATCHES };

static void open_on(struct instance *in, uint64_t stream, int micro_batches, struct cluster *cluster) {
    struct error err = {0};
    rng_split(&in->rng, test_seed(), stream);
    assert_ok(random_updated_model(&in->rng, &in->model, &err));
    if (cluster)
        in->cluster = *cluster;
    else
        assert_ok(random_cluster(&in->rng, &in->cluster, &err));
    assert_ok(cost_init(&in->cost, &in->cluster, &err));
    assert_ok(any_strategy(&in->rng, &in->model, &in->cluster, &in->strategy, &err));
    if (micro_batches == ANY_MICRO_BATCHES && stream % 2)
        any_accumulation(&in->rng, &in->strategy);
    assert_ok(strategy_seal(&in->strategy, &in->model, &in->cluster, &err));
    describe(in);
}

static void instance_open(struct instance *in, uint64_t stream) {
    open_on(in, stream, ONE_MICRO_BATCH, NULL);
}

static void instance_close(struct instance *in) {
    features_release(&in->features);
    plan_release(&in->plan);
    strategy_release(&in->strategy);
    cost_release(&in->cost);
    cluster_release(&in->cluster);
    model_release(&in->model);
}

static double shard(const struct features *f, size_t row, enum feature_shard column) {
    return f->shards[row * FEATURE_SHARD_COUNT + column];
}

/* x of a log2(1 + x). */
static double count_of(double feature) {
    return exp2(feature) - 1;
}

static void check_range(const char *unit, const char *name, double value) {
    bool good = isfinite(value) && fabs(value) < 100;
    if (strcmp(unit, "share") == 0)
        good = good && value >= 0 && value <= 1 + 1e-9;
    else if (strcmp(unit, "flag") == 0)
        good = value == 0 || value == 1;
    else if (strcmp(unit, "log2 ratio") != 0 && strcmp(unit, "log2") != 0)
        good = good && value >= 0;
    if (!good)
        fail_msg("%s is %g %s", name, value, unit);
}

static void every_number_is_finite_and_in_its_range(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        open_on(&in, i, ANY_MICRO_BATCHES, NULL);
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            check_range(GLOBAL_COLUMNS[k].unit, feature_global_name(k), in.features.global[k]);
        for (size_t row = 0; row < in.features.n_shards; row++)
            for (size_t k = 0; k < FEATURE_SHARD_COUNT; k++)
                check_range(SHARD_COLUMNS[k].unit, feature_shard_name(k),
                            shard(&in.features, row, (enum feature_shard)k));
        instance_close(&in);
    }
}

/* Rows come by place, each variable's weights are its shards, and no two rows of a variable are equal, unless shards
 * are in different groups. */
static void check_rows(const struct instance *in, const uint32_t *order) {
    const struct features *f = &in->features;
    uint64_t partitions = 0;
    size_t row = 0;
    assert_int_equal(f->n_variables, in->model.n_variables);
    for (uint32_t place = 0; place < f->n_variables; place++) {
        size_t first = row;
        double weight = 0;
        for (; row < f->n_shards && f->variable[row] == place; row++) {
            weight += f->weight[row];
            for (size_t other = first; other < row && !in->strategy.variables[order[place]].each; other++)
                assert_memory_not_equal(f->shards + other * FEATURE_SHARD_COUNT, f->shards + row * FEATURE_SHARD_COUNT,
                                        FEATURE_SHARD_COUNT * sizeof *f->shards);
        }
        assert_true(weight == in->strategy.variables[order[place]].shards);
        partitions += in->strategy.variables[order[place]].shards;
    }
    assert_true(row == f->n_shards);
    assert_true(partitions == f->partitions);
}

static void rows_stand_for_every_shard_once(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        instance_open(&in, i);
        uint32_t *order = calloc(in.model.n_variables, sizeof *order);
        assert_non_null(order);
        assert_ok(ready_order(&in.model, order, &err));
        check_rows(&in, order);
        free(order);
        instance_close(&in);
    }
}

/* Over all shards the terms add up to the plan: its bytes, its all-reduces and what they cost, of all micro-batches. */
static void rows_add_up_to_the_plan(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        open_on(&in, i, ANY_MICRO_BATCHES, NULL);
        const struct features *f = &in.features;
        double bytes = 0, startup = 0, transfer = 0, messages = 0;
        for (size_t row = 0; row < f->n_shards; row++) {
            bytes += f->weight[row] * count_of(shard(f, row, FEATURE_SHARD_log2_bytes));
            startup += f->weight[row] * count_of(shard(f, row, FEATURE_SHARD_log2_cc_startup_us));
            transfer += f->weight[row] * count_of(shard(f, row, FEATURE_SHARD_log2_cc_transfer_us));
            messages += f->weight[row] * count_of(shard(f, row, FEATURE_SHARD_log2_cc_messages));
        }
        assert_close(bytes * (in.plan.sums_each ? in.plan.micro_batches : 1), (double)in.plan.bytes, 1e-6);
        assert_close(1 + startup, 1 + count_of(f->global[FEATURE_GLOBAL_log2_startup_us]), 1e-6);
        assert_close(1 + transfer, 1 + count_of(f->global[FEATURE_GLOBAL_log2_transfer_us]), 1e-6);
        assert_close(1 + messages, 1 + count_of(f->global[FEATURE_GLOBAL_log2_all_reduces]), 1e-6);
        instance_close(&in);
    }
}

static double sum_of(const struct features *f, enum feature_global first, enum feature_global last) {
    double sum = 0;
    for (size_t k = first; k <= (size_t)last; k++)
        sum += f->global[k];
    return sum;
}

/* The part of the bytes that is gathered: no share and no flag of its own. */
static double gathered_share(const struct instance *in) {
    double gathered = 0, all = 0;
    for (uint32_t v = 0; v < in->strategy.n_variables; v++) {
        const struct variable *variable = &in->model.variables[v];
        const struct variable_sync *sync = &in->strategy.variables[v];
        const double bytes = (double)variable->bytes;
        for (uint32_t k = 0; k < sync_parts(sync); k++) {
            const struct variable_sync *part = sync_part(sync, k);
            const double rows = sync->each ? (double)variable->shape[sync->axis] : 1;
            const double own = sync->each ? (double)plan_shard_rows(variable->shape[sync->axis], sync->shards, k) : 1;
            const bool grouped = part->kind == SYNC_ALL_REDUCE;
            gathered +=
                grouped && in->strategy.groups[part->group].algorithm == ALGORITHM_all_gather ? bytes * own / rows : 0;
        }
        all += bytes;
    }
    return gathered / all;
}

/* An encoder has no flag of its own. */
static bool any_encoder(const struct instance *in) {
    bool any = false;
    for (uint32_t m = 0; m < in->plan.n_messages; m++)
        any |= in->plan.messages[m].encoder != ENCODING_none;
    return any;
}

static void choices_of_one_kind_add_up(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        instance_open(&in, i);
        const struct features *f = &in.features;
        const double *g = f->global;
        assert_close(g[FEATURE_GLOBAL_server_share] + g[FEATURE_GLOBAL_all_reduce_share], 1, 1e-9);
        const double gathered = gathered_share(&in);
        assert_close(1 + gathered + sum_of(f, FEATURE_GLOBAL_share_auto, FEATURE_GLOBAL_share_hierarchical),
                     1 + g[FEATURE_GLOBAL_all_reduce_share], 1e-9);
        assert_close(sum_of(f, FEATURE_GLOBAL_fifo, FEATURE_GLOBAL_preemptive), 1, 0);
        double messages = 0;
        for (size_t k = FEATURE_GLOBAL_log2_messages_1k; k <= FEATURE_GLOBAL_log2_messages_larger; k++)
            messages += count_of(g[k]);
        assert_close(messages, in.plan.n_messages, 1e-6);
        for (size_t row = 0; row < f->n_shards; row++) {
            double algorithms = 0, encodings = 0;
            for (int k = FEATURE_SHARD_algorithm_auto; k <= FEATURE_SHARD_algorithm_hierarchical; k++)
                algorithms += shard(f, row, (enum feature_shard)k);
            for (int k = FEATURE_SHARD_encoding_none; k <= FEATURE_SHARD_encoding_bf16; k++)
                encodings += shard(f, row, (enum feature_shard)k);
            const double kinds = algorithms + shard(f, row, FEATURE_SHARD_server);
            assert_true(kinds == 1 || (gathered > 0 && kinds == 0));
            assert_true(encodings == 1 || (any_encoder(&in) && encodings == 0));
        }
        instance_close(&in);
    }
}

/* Number the groups anew, without sealing, which would number them back. */
static void renumber(struct instance *in, const struct strategy *from) {
    struct error err;
    struct strategy *s = &in->strategy;
    assert_ok(strategy_copy(from, "renumbered", s, &err));
    uint32_t *to = calloc(s->n_groups + 1u, sizeof *to);
    assert_non_null(to);
    for (uint32_t g = 0; g < s->n_groups; g++)
        to[g] = g;
    rng_shuffle(&in->rng, s->n_groups, to);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[to[g]] = from->groups[g];
        s->groups[to[g]].id = to[g];
    }
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (sync_part(&s->variables[v], k)->kind == SYNC_ALL_REDUCE)
                sync_edit_part(&s->variables[v], k)->group = to[sync_part(&s->variables[v], k)->group];
    for (uint32_t i = 0; i < s->n_slices; i++)
        s->slices[i].group = to[s->slices[i].group];
    free(to);
}

static void knobs_do_not_depend_on_the_numbers_of_groups(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        instance_open(&in, i);
        struct strategy original = in.strategy;
        struct features before = in.features;
        plan_release(&in.plan);
        renumber(&in, &original);
        describe(&in);
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            if (is_knob(k))
                assert_close(in.features.global[k], before.global[k], 1e-9);
        features_release(&before);
        strategy_release(&original);
        instance_close(&in);
    }
}

static bool is_kept(const struct strategy *s, uint32_t v, bool *sharded) {
    const struct variable_sync *sync = &s->variables[v];
    const struct group *group = sync->kind == SYNC_ALL_REDUCE ? &s->groups[sync->group] : NULL;
    *sharded = sync->shards == 1 && group && group->sharded == SHARDED_parameters && !group->partition_bytes;
    return group && group->keeps_gathered;
}

/* All travels in the model's types. */
static void carry_as_own(struct instance *in) {
    for (uint32_t g = 0; g < in->strategy.n_groups; g++)
        in->strategy.groups[g].gathered_as = in->strategy.groups[g].summed_as = CARRIED_own;
    features_release(&in->features);
    plan_release(&in->plan);
    describe(in);
}

/* Without partitions a variable whose parameters are sharded is in two messages, or three if it is gathered again. Its
 * gradient waits for the others of its group as it would in an all-reduce, and it is needed when its first reader
 * comes, as without the barrier. */
static void sharded_parameters_are_in_three_messages(void **state) {
    (void)state;
    struct error err;
    int rows = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        instance_open(&in, i);
        carry_as_own(&in);
        uint32_t *order = calloc(in.model.n_variables, sizeof *order);
        assert_ok(ready_order(&in.model, order, &err));
        struct strategy sharded = in.strategy;
        struct features before = in.features;
        plan_release(&in.plan);
        assert_ok(strategy_copy(&sharded, "whole", &in.strategy, &err));
        for (uint32_t g = 0; g < in.strategy.n_groups; g++)
            in.strategy.groups[g].sharded = SHARDED_none;
        in.strategy.shard_ranks = 0;
        in.strategy.forward_prefetch = in.strategy.backward_prefetch = 1;
        in.strategy.cross_iteration = true;
        describe(&in);
        for (size_t row = 0, other = 0; row < before.n_shards; row++) {
            bool is_sharded;
            const bool kept = is_kept(&sharded, order[before.variable[row]], &is_sharded);
            while (in.features.variable[other] < before.variable[row])
                other++;
            if (!is_sharded)
                continue;
            rows++;
            assert_close(count_of(shard(&before, row, FEATURE_SHARD_log2_messages)), kept ? 2 : 3, 1e-9);
            assert_true(shard(&before, row, FEATURE_SHARD_wait_share) >=
                        shard(&in.features, other, FEATURE_SHARD_wait_share) - 1e-9);
            assert_close(shard(&before, row, FEATURE_SHARD_gate_share),
                         shard(&in.features, other, FEATURE_SHARD_gate_share), 1e-9);
        }
        free(order);
        features_release(&before);
        strategy_release(&sharded);
        instance_close(&in);
    }
    printf("%d rows of sharded parameters\n", rows);
    assert_true(rows > 3);
}

/* Every rate of the description twice as high. */
static void double_rates(cJSON *json) {
    cJSON *item, *nic;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "nodes")) {
        nic = cJSON_GetObjectItem(item, "nic_gbit_per_s");
        cJSON_SetNumberHelper(nic, 2 * nic->valuedouble);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "links")) {
        nic = cJSON_GetObjectItem(item, "gbit_per_s");
        cJSON_SetNumberHelper(nic, 2 * nic->valuedouble);
    }
}

static void twice_the_rate_is_half_the_transfer_of_a_served_shard(void **state) {
    (void)state;
    struct error err;
    size_t compared = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance slow, fast;
        struct cluster clusters[2];
        struct rng rng;
        rng_split(&rng, test_seed(), INSTANCES + i);
        cJSON *json = random_cluster_json(&rng);
        cJSON_DeleteItemFromObject(json, "transport");
        cJSON_AddStringToObject(json, "transport", "ideal"); /* TCP has a limit of its own */
        assert_ok(cluster_read(json, "slow", &clusters[0], &err));
        double_rates(json);
        assert_ok(cluster_read(json, "fast", &clusters[1], &err));
        cJSON_Delete(json);
        open_on(&slow, i, ANY_MICRO_BATCHES, &clusters[0]);
        open_on(&fast, i, ANY_MICRO_BATCHES, &clusters[1]);
        assert_int_equal(slow.features.n_shards, fast.features.n_shards);
        for (size_t row = 0; row < slow.features.n_shards; row++) {
            double before = count_of(shard(&slow.features, row, FEATURE_SHARD_log2_ps_transfer_us));
            double after = count_of(shard(&fast.features, row, FEATURE_SHARD_log2_ps_transfer_us));
            assert_close(1 + before / 2, 1 + after, 1e-9);
            compared += before > 0;
        }
        instance_close(&slow);
        instance_close(&fast);
    }
    assert_true(compared > INSTANCES);
}

/* ---- the graph, found by walking every path ---- */

struct graph {
    const struct model *model;
    uint32_t *first, *last; /* places of an operator's variables */
    bool *seen;
};

/* Mark the producers that lead to the operator without another in between. */
static void mark(struct graph *graph, uint32_t at, bool *producers) {
    const struct operator* op = & graph->model->operators[at];
    for (uint32_t i = 0; i < op->n_after; i++) {
        uint32_t before = op->after[i];
        if (graph->seen[before])
            continue;
        graph->seen[before] = true;
        if (graph->model->operators[before].n_produces)
            producers[before] = true;
        else
            mark(graph, before, producers);
    }
}

/* Whether the edge (from, to) should be there. */
static bool leads(const struct graph *graph, const bool *producers, uint32_t to_operator, uint32_t from, uint32_t to) {
    if (to != graph->first[to_operator])
        return from + 1 == to;
    uint32_t later = 0;
    bool is = false;
    for (uint32_t op = 0; op < graph->model->n_operators; op++) {
        is |= producers[op] && graph->last[op] == from;
        later += producers[op] && graph->last[op] > from;
    }
    return is && later < FEATURE_FAN_IN;
}

static void check_target(struct graph *graph, const struct features *f, uint32_t to_operator, bool *table) {
    uint32_t n = f->n_variables, n_operators = graph->model->n_operators;
    bool *producers = calloc(n_operators, sizeof *producers);
    assert_non_null(producers);
    memset(graph->seen, 0, n_operators * sizeof *graph->seen);
    mark(graph, to_operator, producers);
    for (uint32_t to = graph->first[to_operator]; to <= graph->last[to_operator]; to++)
        for (uint32_t from = 0; from < n; from++)
            assert_int_equal(table[(size_t)from * n + to], leads(graph, producers, to_operator, from, to));
    free(producers);
}

static bool *edge_table(const struct features *f) {
    uint32_t n = f->n_variables;
    bool *table = calloc((size_t)n * n, sizeof *table);
    assert_non_null(table);
    for (size_t i = 0; i < f->n_edges; i++) {
        const struct feature_edge *e = &f->edges[i];
        assert_true(e->from < e->to && e->to < n);
        assert_true(!i || e[-1].from < e->from || (e[-1].from == e->from && e[-1].to < e->to));
        table[(size_t)e->from * n + e->to] = true;
    }
    return table;
}

static void edges_are_the_paths_between_producers(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct instance in;
        instance_open(&in, i);
        size_t n = in.model.n_operators, n_variables = in.model.n_variables;
        uint32_t *memory = calloc(2 * n + n_variables, sizeof *memory);
        struct graph graph = {&in.model, memory, memory + n, calloc(n, sizeof(bool))};
        assert_true(memory && graph.seen);
        assert_ok(ready_order(&in.model, memory + 2 * n, &err));
        for (uint32_t place = (uint32_t)n_variables; place-- > 0;)
            graph.first[in.model.variables[memory[2 * n + place]].producer] = place;
        for (uint32_t place = 0; place < n_variables; place++)
            graph.last[in.model.variables[memory[2 * n + place]].producer] = place;
        bool *table = edge_table(&in.features);
        for (uint32_t op = 0; op < n; op++)
            if (in.model.operators[op].n_produces)
                check_target(&graph, &in.features, op, table);
        free(table);
        free(graph.seen);
        free(memory);
        instance_close(&in);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_finite_and_in_its_range),
        cmocka_unit_test(rows_stand_for_every_shard_once),
        cmocka_unit_test(rows_add_up_to_the_plan),
        cmocka_unit_test(choices_of_one_kind_add_up),
        cmocka_unit_test(knobs_do_not_depend_on_the_numbers_of_groups),
        cmocka_unit_test(sharded_parameters_are_in_three_messages),
        cmocka_unit_test(twice_the_rate_is_half_the_transfer_of_a_served_shard),
        cmocka_unit_test(edges_are_the_paths_between_producers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
