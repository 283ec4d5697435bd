/* Random small models and clusters, written as the JSON that a user would write.
 *
 * Sizes and rates are drawn log-uniformly, so that tiny and huge tensors, fast and slow links meet in one instance.
 * Names are made from positions; the shuffled file order is what keeps the readers from relying on it. */
#include "tests/support/strategy/random_instances.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARIABLES = 40, MAX_OPERATORS = 14, MAX_NODES = 8, NAME_BYTES = 32, MAX_SLICES = 16 };

struct name {
    char text[NAME_BYTES];
};

static struct name name_of(const char *prefix, uint64_t number, const char *suffix) {
    struct name name;
    snprintf(name.text, sizeof name.text, "%s%" PRIu64 "%s", prefix, number, suffix);
    return name;
}

static bool chance(struct rng *rng, double p) {
    return rng_uniform(rng) < p;
}

static uint32_t between(struct rng *rng, uint32_t low, uint32_t high) {
    return low + (uint32_t)rng_below(rng, (uint64_t)high - low + 1);
}

static cJSON *need(cJSON *node) {
    if (!node) {
        fprintf(stderr, "random_instances: out of memory\n");
        abort();
    }
    return node;
}

static void add_name(cJSON *array, struct name name) {
    cJSON_AddItemToArray(array, need(cJSON_CreateString(name.text)));
}

/* Up to a few million elements: most axes are short, so that cutting meets sizes that do not divide. */
static cJSON *random_shape(struct rng *rng, uint64_t *first_axis) {
    cJSON *shape = need(cJSON_CreateArray());
    uint32_t rank = chance(rng, 0.05) ? 0 : between(rng, 1, 4);
    double limit = rng_log_between(rng, 1.0, 2e6);
    *first_axis = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = (uint64_t)rng_log_between(rng, 1.0, limit + 1.0);
        limit /= (double)dim;
        if (limit < 1.0) {
            limit = 1.0;
        }
        cJSON_AddItemToArray(shape, need(cJSON_CreateNumber((double)dim)));
        if (i == 0) {
            *first_axis = dim;
        }
    }
    return shape;
}

static const char *random_dtype(struct rng *rng, bool mixed) {
    static const char *const names[] = {"f32", "f16", "bf16", "f64"};
    return mixed ? names[rng_below(rng, sizeof names / sizeof names[0])] : "f32";
}

static cJSON *random_variable(struct rng *rng, uint32_t number, bool mixed) {
    cJSON *variable = need(cJSON_CreateObject());
    uint64_t rows;
    need(cJSON_AddStringToObject(variable, "name", name_of("v", number, "").text));
    cJSON_AddItemToObject(variable, "shape", random_shape(rng, &rows));
    need(cJSON_AddStringToObject(variable, "dtype", random_dtype(rng, mixed)));
    if (rows > 1 && chance(rng, 0.1)) {
        need(cJSON_AddNumberToObject(variable, "sparse_rows", (double)(1 + rng_below(rng, rows))));
    }
    return variable;
}

static double random_time(struct rng *rng) {
    return chance(rng, 0.1) ? 0.0 : rng_log_between(rng, 1.0, 1e4);
}

static uint32_t random_variables(struct rng *rng, cJSON *model) {
    uint32_t n = (uint32_t)rng_log_between(rng, 1.0, MAX_VARIABLES + 1.0);
    bool mixed = chance(rng, 0.3);
    cJSON *variables = need(cJSON_AddArrayToObject(model, "variables"));
    for (uint32_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(variables, random_variable(rng, i, mixed));
    }
    return n;
}

/* owner[i]: the layer or operator that variable i belongs to. */
static void random_owners(struct rng *rng, uint32_t n, uint32_t n_owners, uint32_t owner[MAX_VARIABLES]) {
    for (uint32_t i = 0; i < n; i++) {
        owner[i] = (uint32_t)rng_below(rng, n_owners);
    }
}

static void add_owned(cJSON *object, const char *key, uint32_t n, const uint32_t *owner, uint32_t mine) {
    cJSON *names = need(cJSON_AddArrayToObject(object, key));
    for (uint32_t i = 0; i < n; i++) {
        if (owner[i] == mine) {
            add_name(names, name_of("v", i, ""));
        }
    }
}

static void add_layers(struct rng *rng, cJSON *model, uint32_t n) {
    uint32_t n_layers = between(rng, 1, MAX_OPERATORS), owner[MAX_VARIABLES];
    random_owners(rng, n, n_layers, owner);
    cJSON *layers = need(cJSON_AddArrayToObject(model, "layers"));
    for (uint32_t i = 0; i < n_layers; i++) {
        cJSON *layer = need(cJSON_CreateObject());
        cJSON_AddItemToArray(layers, layer);
        need(cJSON_AddStringToObject(layer, "name", name_of("layer", i, "").text));
        need(cJSON_AddNumberToObject(layer, "forward_us", random_time(rng)));
        need(cJSON_AddNumberToObject(layer, "backward_us", random_time(rng)));
        add_owned(layer, "variables", n, owner, i);
    }
}

/* reads: its own variables unless they go unread, and now and then somebody else's (tied weights). */
static void add_reads(struct rng *rng, cJSON *operator, uint32_t n, const uint32_t *owner, uint32_t mine) {
    cJSON *reads = need(cJSON_AddArrayToObject(operator, "reads"));
    for (uint32_t i = 0; i < n; i++) {
        if (chance(rng, owner[i] == mine ? 0.95 : 0.02)) {
            add_name(reads, name_of("v", i, ""));
        }
    }
}

/* edge[i][j], j < i: forward operator i comes after j, and so j's gradient after i's. */
struct dag {
    uint32_t n;
    bool edge[MAX_OPERATORS][MAX_OPERATORS];
};

static struct dag random_dag(struct rng *rng) {
    struct dag dag = {.n = between(rng, 1, MAX_OPERATORS)};
    double density = rng_uniform(rng);
    for (uint32_t i = 1; i < dag.n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            dag.edge[i][j] = j + 1 == i ? chance(rng, 0.8) : chance(rng, density / i);
        }
    }
    return dag;
}

static cJSON *dag_operator(struct rng *rng, const struct dag *dag, uint32_t i, bool backward, uint32_t n,
                           const uint32_t *owner) {
    cJSON *operator= need(cJSON_CreateObject());
    need(cJSON_AddStringToObject(operator, "name", name_of("op", i, backward ? ".grad" : "").text));
    need(cJSON_AddStringToObject(operator, "phase", backward ? "backward" : "forward"));
    need(cJSON_AddNumberToObject(operator, "time_us", random_time(rng)));
    cJSON *after = need(cJSON_AddArrayToObject(operator, "after"));
    for (uint32_t j = 0; j < dag->n; j++) {
        if (backward ? dag->edge[j][i] : dag->edge[i][j]) {
            add_name(after, name_of("op", j, backward ? ".grad" : ""));
        }
    }
    if (backward) {
        add_name(after, name_of("op", i, ""));
        add_owned(operator, "produces", n, owner, i);
    } else {
        add_reads(rng, operator, n, owner, i);
    }
    return operator;
}

static void add_operators(struct rng *rng, cJSON *model, uint32_t n) {
    struct dag dag = random_dag(rng);
    uint32_t owner[MAX_VARIABLES], order[2 * MAX_OPERATORS];
    random_owners(rng, n, dag.n, owner);
    for (uint32_t i = 0; i < 2 * dag.n; i++) {
        order[i] = i;
    }
    rng_shuffle(rng, 2 * (size_t)dag.n, order);
    cJSON *operators = need(cJSON_AddArrayToObject(model, "operators"));
    for (uint32_t i = 0; i < 2 * dag.n; i++) {
        cJSON_AddItemToArray(operators, dag_operator(rng, &dag, order[i] / 2, order[i] % 2, n, owner));
    }
}

cJSON *random_model_json(struct rng *rng) {
    cJSON *model = need(cJSON_CreateObject());
    need(cJSON_AddStringToObject(model, "schema", "syncopate.model/1"));
    need(cJSON_AddStringToObject(model, "name", "random"));
    need(cJSON_AddNumberToObject(model, "batch_per_device", between(rng, 1, 64)));
    uint32_t n = random_variables(rng, model);
    if (chance(rng, 0.5)) {
        add_layers(rng, model, n);
    } else {
        add_operators(rng, model, n);
    }
    return model;
}

static cJSON *random_nodes(struct rng *rng, uint32_t entry, uint32_t count, uint32_t devices) {
    static const char *const kinds[] = {"cpu", "v100", "t4"};
    cJSON *node = need(cJSON_CreateObject());
    char prefix[] = {(char)('a' + entry), 0};
    need(cJSON_AddStringToObject(node, "name", prefix));
    need(cJSON_AddNumberToObject(node, "count", count));
    need(cJSON_AddNumberToObject(node, "devices", devices));
    need(cJSON_AddStringToObject(node, "device", kinds[rng_below(rng, 3)]));
    need(cJSON_AddNumberToObject(node, "nic_gbit_per_s", rng_log_between(rng, 0.1, 100.0)));
    need(cJSON_AddNumberToObject(node, "nic_latency_us", rng_log_between(rng, 1.0, 500.0)));
    need(cJSON_AddNumberToObject(node, "device_link_gbyte_per_s", rng_log_between(rng, 1.0, 300.0)));
    need(cJSON_AddNumberToObject(node, "compute_scale", chance(rng, 0.7) ? 1.0 : rng_between(rng, 0.5, 2.0)));
    return node;
}

/* names[i] of every node after expansion; returns how many devices there are. */
static uint32_t add_nodes(struct rng *rng, cJSON *cluster, struct name names[MAX_NODES], uint32_t *n_nodes) {
    uint32_t total = between(rng, 1, MAX_NODES), devices = 0, used = 0;
    cJSON *nodes = need(cJSON_AddArrayToObject(cluster, "nodes"));
    for (uint32_t entry = 0; used < total; entry++) {
        uint32_t count = between(rng, 1, total - used), each = between(rng, 0, 4);
        if (used + count == total && devices == 0 && each == 0) {
            each = 1;
        }
        cJSON_AddItemToArray(nodes, random_nodes(rng, entry, count, each));
        char prefix[] = {(char)('a' + entry), 0};
        for (uint32_t i = 0; i < count; i++) {
            names[used + i] = count == 1 ? (struct name){{prefix[0]}} : name_of(prefix, i + 1, "");
        }
        used += count;
        devices += count * each;
    }
    *n_nodes = total;
    return devices;
}

static void add_links(struct rng *rng, cJSON *cluster, const struct name *names, uint32_t n) {
    cJSON *links = need(cJSON_AddArrayToObject(cluster, "links"));
    for (uint32_t from = 0; from < n; from++) {
        for (uint32_t to = 0; to < n; to++) {
            if (from == to || !chance(rng, 0.2)) {
                continue;
            }
            cJSON *link = need(cJSON_CreateObject());
            cJSON_AddItemToArray(links, link);
            need(cJSON_AddStringToObject(link, "from", names[from].text));
            need(cJSON_AddStringToObject(link, "to", names[to].text));
            need(cJSON_AddNumberToObject(link, "gbit_per_s", rng_log_between(rng, 0.1, 50.0)));
        }
    }
}

/* One curve a rising size, time a + b·bytes with noise. */
static void add_curve(struct rng *rng, cJSON *list, const char *operation, const char *algorithm, uint32_t devices) {
    double startup = rng_log_between(rng, 10.0, 2000.0), per_byte = rng_log_between(rng, 1e-5, 1e-2);
    uint64_t bytes = 1024;
    for (uint32_t n = between(rng, 2, 6); n > 0; n--, bytes *= between(rng, 2, 32)) {
        cJSON *point = need(cJSON_CreateObject());
        cJSON_AddItemToArray(list, point);
        need(cJSON_AddStringToObject(point, "operation", operation));
        if (algorithm) {
            need(cJSON_AddStringToObject(point, "algorithm", algorithm));
        }
        need(cJSON_AddNumberToObject(point, "devices", devices));
        need(cJSON_AddNumberToObject(point, "bytes", (double)bytes));
        double time_us = (startup + per_byte * (double)bytes) * rng_between(rng, 0.95, 1.05);
        need(cJSON_AddNumberToObject(point, "time_us", time_us));
    }
}

static void add_costs(struct rng *rng, cJSON *cluster, uint32_t devices) {
    if (chance(rng, 0.2)) {
        cJSON *collectives = need(cJSON_AddObjectToObject(cluster, "collectives"));
        cJSON *all_reduce = need(cJSON_AddObjectToObject(collectives, "all_reduce"));
        need(cJSON_AddNumberToObject(all_reduce, "startup_us", rng_log_between(rng, 10.0, 2000.0)));
        need(cJSON_AddNumberToObject(all_reduce, "per_byte_ns", rng_log_between(rng, 0.01, 10.0)));
    }
    if (devices >= 2 && chance(rng, 0.4)) {
        cJSON *list = need(cJSON_AddArrayToObject(cluster, "measurements"));
        add_curve(rng, list, "all_reduce", chance(rng, 0.5) ? "ring" : "halving_doubling", devices);
        if (chance(rng, 0.5)) {
            add_curve(rng, list, "push", NULL, 2);
            add_curve(rng, list, "pull", NULL, 2);
        }
    }
}

static void add_runtime(struct rng *rng, cJSON *cluster) {
    cJSON *runtime = need(cJSON_AddObjectToObject(cluster, "runtime"));
    need(cJSON_AddNumberToObject(runtime, "message_us", rng_between(rng, 0.0, 50.0)));
    need(cJSON_AddNumberToObject(runtime, "push_us", rng_between(rng, 0.0, 100.0)));
    if (chance(rng, 0.5)) {
        need(cJSON_AddNumberToObject(runtime, "coordination_us", rng_between(rng, 0.0, 200.0)));
        need(cJSON_AddNumberToObject(runtime, "copy_gbyte_per_s", rng_log_between(rng, 1.0, 500.0)));
        need(cJSON_AddNumberToObject(runtime, "sum_gbyte_per_s", rng_log_between(rng, 1.0, 500.0)));
        need(cJSON_AddNumberToObject(runtime, "encode_gbyte_per_s", rng_log_between(rng, 1.0, 500.0)));
        need(cJSON_AddNumberToObject(runtime, "goodput", rng_between(rng, 0.5, 1.0)));
    }
}

cJSON *random_cluster_json(struct rng *rng) {
    struct name names[MAX_NODES] = {0};
    uint32_t n_nodes;
    cJSON *cluster = need(cJSON_CreateObject());
    need(cJSON_AddStringToObject(cluster, "schema", "syncopate.cluster/1"));
    need(cJSON_AddStringToObject(cluster, "name", "random"));
    uint32_t devices = add_nodes(rng, cluster, names, &n_nodes);
    if (chance(rng, 0.3)) {
        add_links(rng, cluster, names, n_nodes);
    }
    add_costs(rng, cluster, devices);
    if (chance(rng, 0.6)) {
        add_runtime(rng, cluster);
    }
    if (chance(rng, 0.8)) {
        enum transport transport = (enum transport)between(rng, 0, TRANSPORT_COUNT - 1);
        need(cJSON_AddStringToObject(cluster, "transport", transport_name(transport)));
    }
    return cluster;
}

static void add_optimizer(struct rng *rng, cJSON *model) {
    static const char *const words[] = {"sgd",  "momentum", "adagrad", "rmsprop",  "lion",
                                        "adam", "adamw",    "lamb",    "adafactor"};
    const char *word = words[rng_below(rng, sizeof words / sizeof *words)];
    if (chance(rng, 0.4)) {
        need(cJSON_AddStringToObject(model, "optimizer", word));
        return;
    }
    cJSON *object = need(cJSON_AddObjectToObject(model, "optimizer"));
    if (chance(rng, 0.3)) {
        need(cJSON_AddNumberToObject(object, "bytes_per_element", chance(rng, 0.5) ? 12 : rng_uniform(rng) * 16));
        return;
    }
    need(cJSON_AddStringToObject(object, "name", word));
    need(cJSON_AddBoolToObject(object, "master_copy", chance(rng, 0.7)));
}

/* The name of any backward operator. */
static const char *any_backward(struct rng *rng, const cJSON *operators) {
    for (;;) {
        const cJSON *op = cJSON_GetArrayItem(operators, (int)rng_below(rng, (uint64_t)cJSON_GetArraySize(operators)));
        if (cJSON_GetStringValue(cJSON_GetObjectItem(op, "phase"))[0] == 'b')
            return cJSON_GetStringValue(cJSON_GetObjectItem(op, "name"));
    }
}

/* The name of the first operator that waits for this one; NULL: none does. */
static const char *one_that_waits_for(const cJSON *operators, const char *name) {
    for (const cJSON *op = operators->child; op; op = op->next)
        for (const cJSON *e = cJSON_GetObjectItem(op, "after")->child; e; e = e->next)
            if (!strcmp(e->valuestring, name))
                return cJSON_GetStringValue(cJSON_GetObjectItem(op, "name"));
    return NULL;
}

/* What a backward operator computes again, sometimes, for one that runs after it. */
static void add_again(struct rng *rng, const cJSON *operators, cJSON *op, double bytes) {
    const char *user = one_that_waits_for(operators, cJSON_GetStringValue(cJSON_GetObjectItem(op, "name")));
    if (!user || bytes == 0 || !chance(rng, 0.4))
        return;
    need(cJSON_AddNumberToObject(op, "activation_bytes", bytes));
    need(cJSON_AddStringToObject(op, "kept_for", user));
}

static void add_update(struct rng *rng, cJSON *model) {
    need(cJSON_AddNumberToObject(model, "update_us", random_time(rng)));
}

static void add_temporary(struct rng *rng, const cJSON *list) {
    for (cJSON *op = list->child; op; op = op->next)
        if (chance(rng, 0.3))
            need(cJSON_AddNumberToObject(op, "temporary_bytes", (double)(uint64_t)rng_log_between(rng, 1, 1e8)));
}

void random_memory(struct rng *rng, cJSON *model) {
    cJSON *operators = cJSON_GetObjectItem(model, "operators");
    cJSON *list = operators ? operators : need(cJSON_GetObjectItem(model, "layers"));
    if (chance(rng, 0.5))
        add_temporary(rng, list);
    if (chance(rng, 0.9))
        add_optimizer(rng, model);
    if (chance(rng, 0.5))
        add_update(rng, model);
    if (chance(rng, 0.1))
        return;
    for (cJSON *op = list->child; op; op = op->next) {
        const double bytes = chance(rng, 0.1) ? 0 : (double)(uint64_t)rng_log_between(rng, 1, 1e8);
        if (operators && cJSON_GetStringValue(cJSON_GetObjectItem(op, "phase"))[0] == 'b') {
            add_again(rng, operators, op, bytes);
            continue;
        }
        need(cJSON_AddNumberToObject(op, "activation_bytes", bytes));
        if (operators && bytes > 0)
            need(cJSON_AddStringToObject(op, "kept_for", any_backward(rng, operators)));
    }
}

static enum status read_random(cJSON *json, struct model *out, struct error *err) {
    enum status status = model_read(json, "random model", out, err);
    cJSON_Delete(json);
    return status;
}

enum status random_model(struct rng *rng, struct model *out, struct error *err) {
    return read_random(random_model_json(rng), out, err);
}

enum status random_updated_model(struct rng *rng, struct model *out, struct error *err) {
    cJSON *json = random_model_json(rng);
    if (chance(rng, 0.5))
        add_update(rng, json);
    return read_random(json, out, err);
}

enum status random_cluster(struct rng *rng, struct cluster *out, struct error *err) {
    cJSON *json = random_cluster_json(rng);
    enum status status = cluster_read(json, "random cluster", out, err);
    cJSON_Delete(json);
    return status;
}

/* What a group's slices have still to take. */
struct rest {
    uint64_t elements, width;
    uint32_t slices;
};

static void measure_groups(const struct model *model, const struct strategy *s, struct rest *rest) {
    for (uint32_t v = 0; v < s->n_variables; v++) {
        struct rest *of = &rest[s->variables[v].group];
        of->width = dtype_bytes(strategy_wire_dtype(&model->variables[v], &s->variables[v]));
        of->elements += model->variables[v].elements;
    }
}

/* How many slices each group gets, as a shuffled list of groups; returns its length. */
static uint32_t deal(struct rng *rng, uint32_t n_groups, struct rest *rest, uint32_t *groups) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
        uint64_t most = rest[g].elements < MAX_SLICES ? rest[g].elements : MAX_SLICES;
        rest[g].slices = most ? (uint32_t)rng_log_between(rng, 1.0, (double)most + 1.0) : 0;
        for (uint32_t i = 0; i < rest[g].slices; i++)
            groups[n++] = g;
    }
    rng_shuffle(rng, n, groups);
    return n;
}

/* The next slice of the group: one element at least, and as many left as slices; the last takes what there is. */
static struct slice next_slice(struct rng *rng, uint32_t group, struct rest *rest) {
    uint64_t most = rest->elements - --rest->slices;
    uint64_t n = rest->slices ? (uint64_t)rng_log_between(rng, 1.0, (double)most + 1.0) : most;
    n = n < most ? n : most;
    rest->elements -= n;
    return (struct slice){group, n * rest->width};
}

enum status random_slices(struct rng *rng, const struct model *model, struct strategy *strategy, struct error *err) {
    uint32_t n_groups = strategy->n_groups;
    struct rest *rest = arena_alloc(&strategy->arena, n_groups, sizeof *rest);
    uint32_t *groups = arena_alloc(&strategy->arena, (size_t)n_groups * MAX_SLICES, sizeof *groups);
    struct slice *slices = arena_alloc(&strategy->arena, (size_t)n_groups * MAX_SLICES, sizeof *slices);
    if (!rest || !groups || !slices) {
        return error_no_memory(err);
    }
    for (uint32_t v = 0; v < strategy->n_variables; v++) {
        struct variable_sync *sync = &strategy->variables[v];
        *sync = (struct variable_sync){.shards = 1, .encoding = sync->encoding, .group = sync->group};
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        strategy->groups[g].partition_bytes = 0;
        if (strategy->groups[g].algorithm == ALGORITHM_all_gather)
            strategy->groups[g].algorithm = ALGORITHM_auto;
    }
    measure_groups(model, strategy, rest);
    strategy->policy = POLICY_preemptive;
    strategy->slices = slices;
    strategy->n_slices = deal(rng, n_groups, rest, groups);
    for (uint32_t i = 0; i < strategy->n_slices; i++) {
        slices[i] = next_slice(rng, groups[i], &rest[groups[i]]);
    }
    return ST_OK;
}

/* Groups 0..n-1 of each dtype, and a random one of its dtype's for each variable. */
static void random_groups(struct rng *rng, const struct model *model, struct strategy *s, uint32_t n) {
    for (uint32_t v = 0; v < s->n_variables; v++) {
        struct variable_sync *sync = &s->variables[v];
        if (model->variables[v].dtype == DTYPE_f32 && chance(rng, 0.1)) {
            sync->encoding = chance(rng, 0.5) ? ENCODING_f16 : ENCODING_bf16;
        }
        uint32_t dtype = strategy_wire_dtype(&model->variables[v], sync);
        sync->group = dtype * n + (uint32_t)rng_below(rng, n);
    }
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].algorithm = (enum algorithm)rng_below(rng, ALL_REDUCE_COUNT);
    }
}

enum status random_preemptive(struct rng *rng, const struct model *model, const struct cluster *cluster,
                              struct strategy *out, struct error *err) {
    struct strategy s;
    uint32_t n = between(rng, 1, 4);
    enum status status = strategy_init(&s, "preemptive", model, n * DTYPE_COUNT, err);
    if (status) {
        return status;
    }
    random_groups(rng, model, &s, n);
    s.cross_iteration = chance(rng, 0.8);
    s.credit_bytes = chance(rng, 0.3) ? CREDIT_UNLIMITED : chance(rng, 0.5) ? 0 : rng_below(rng, 1 << 24);
    status = random_slices(rng, model, &s, err);
    if (!status) {
        status = strategy_seal(&s, model, cluster, err);
    }
    if (status) {
        strategy_release(&s);
    } else {
        *out = s;
    }
    return status;
}
