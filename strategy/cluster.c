/* Reading, checking and writing cluster descriptions; their members are in strategy/cluster.h. */
#include "strategy/cluster.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster_internal.h"

static const char CLUSTER_SCHEMA[] = "syncopate.cluster/1";
static const double MIN_RATE = 1e-6, MAX_RATE = 1e6, MAX_TIME_US = 1e12, MAX_BYTES = 1e15;
static const double MIN_SHARE = 1e-3;                    /* of a speed */
static const double MIN_MEMORY = 1e-6, MAX_MEMORY = 1e9; /* 10^9 bytes */
enum { MAX_LINKS = 1000000, MAX_MEASUREMENTS = 100000 };
enum { MAX_COUNTED_NAME = 4000 }; /* base/json.h reads strings of up to 4096 bytes */

#define X(name) #name,
static const char *const algorithm_words[] = {ALGORITHM_TABLE(X) NULL};
static const char *const operation_words[] = {OPERATION_TABLE(X) NULL};
#undef X
#define X(name, word) word,
static const char *const transport_words[] = {TRANSPORT_TABLE(X) NULL};
#undef X

const char *algorithm_name(enum algorithm algorithm) {
    return algorithm_words[algorithm];
}

static enum status add_algorithm(const char *name, size_t length, uint32_t *set, struct error *err) {
    for (uint32_t a = 0; a < ALGORITHM_COUNT; a++)
        if (!strncmp(algorithm_words[a], name, length) && !algorithm_words[a][length]) {
            *set |= 1u << a;
            return ST_OK;
        }
    char known[ALGORITHMS_ROOM];
    algorithms_write((1u << ALGORITHM_COUNT) - 1, known);
    return error_set(err, ST_INVALID, "\"%.*s\" is none of %s", length < 40 ? (int)length : 40, name, known);
}

enum status algorithms_parse(const char *names, uint32_t *set, struct error *err) {
    *set = 0;
    for (const char *at = names;; at++) {
        const size_t length = strcspn(at, ",");
        const enum status st = add_algorithm(at, length, set, err);
        if (st)
            return st;
        at += length;
        if (!*at)
            break;
    }
    if (*set & ((1u << ALL_REDUCE_COUNT) - 1))
        return ST_OK;
    return error_set(err, ST_INVALID, "%s is no all-reduce; name one", names);
}

void algorithms_write(uint32_t set, char *out) {
    size_t n = 0;
    *out = '\0';
    for (uint32_t a = 0; a < ALGORITHM_COUNT; a++)
        if (set >> a & 1)
            n += (size_t)snprintf(out + n, ALGORITHMS_ROOM - n, "%s%s", n ? "," : "", algorithm_words[a]);
}

const char *operation_name(enum operation operation) {
    return operation_words[operation];
}

const char *transport_name(enum transport transport) {
    return transport_words[transport];
}

enum transport cluster_transport(const struct cluster *cluster) {
    if (cluster->transport != TRANSPORT_by_device)
        return cluster->transport;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0 && strcmp(cluster->nodes[i].device, "cpu") != 0)
            return TRANSPORT_nccl;
    return TRANSPORT_mpi;
}

static enum status read_node(const struct json_at *at, struct arena *arena, struct node *out, uint64_t *count,
                             struct error *err) {
    static const char *const known[] = {"name",
                                        "count",
                                        "devices",
                                        "device",
                                        "nic_gbit_per_s",
                                        "nic_latency_us",
                                        "device_link_gbyte_per_s",
                                        "compute_scale",
                                        "device_memory_gbyte",
                                        "memory_gbyte",
                                        NULL};
    uint64_t devices = 1;
    const char *name, *device = "gpu";
    *out = (struct node){.compute_scale = 1};
    *count = 1;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = json_get_integer(at, "count", JSON_OPTIONAL, 1, CLUSTER_MAX_NODES, count, err);
    if (!st)
        st = json_get_integer(at, "devices", JSON_OPTIONAL, 0, CLUSTER_MAX_DEVICES_PER_NODE, &devices, err);
    if (!st)
        st = json_get_string(at, "device", JSON_OPTIONAL, &device, err);
    if (!st)
        st = json_get_number(at, "nic_gbit_per_s", JSON_REQUIRED, MIN_RATE, MAX_RATE, &out->nic_gbit_per_s, err);
    if (!st)
        st = json_get_number(at, "nic_latency_us", JSON_OPTIONAL, 0, MAX_TIME_US, &out->nic_latency_us, err);
    if (!st)
        st = json_get_number(at, "device_link_gbyte_per_s", devices > 1 ? JSON_REQUIRED : JSON_OPTIONAL, MIN_RATE,
                             MAX_RATE, &out->device_link_gbyte_per_s, err);
    if (!st)
        st = json_get_number(at, "compute_scale", JSON_OPTIONAL, 1e-3, 1e3, &out->compute_scale, err);
    if (!st)
        st = json_get_number(at, "device_memory_gbyte", JSON_OPTIONAL, MIN_MEMORY, MAX_MEMORY,
                             &out->device_memory_gbyte, err);
    if (!st)
        st = json_get_number(at, "memory_gbyte", JSON_OPTIONAL, MIN_MEMORY, MAX_MEMORY, &out->memory_gbyte, err);
    if (!st && *count > 1 && strlen(name) > MAX_COUNTED_NAME)
        st = json_fail(at, err, "a name of %zu bytes; at most %d where numbers are added", strlen(name),
                       MAX_COUNTED_NAME);
    if (st)
        return st;
    out->devices = (uint32_t)devices;
    out->name = arena_strdup(arena, name);
    out->device = arena_strdup(arena, device);
    return out->name && out->device ? ST_OK : error_no_memory(err);
}

/* How many nodes the array describes, counting `count`. */
static enum status total_nodes(const struct json_at *array, uint64_t *out, struct error *err) {
    *out = 0;
    for (struct json_at e = json_first(array); e.node; e = json_next(&e)) {
        uint64_t count = 1;
        /* If this is no object, read_node refuses it later, with a better message. */
        enum status st = !cJSON_IsObject(e.node)
                             ? ST_OK
                             : json_get_integer(&e, "count", JSON_OPTIONAL, 1, CLUSTER_MAX_NODES, &count, err);
        if (st)
            return st;
        *out += count;
    }
    if (!*out)
        return json_fail(array, err, "a cluster needs at least one node");
    if (*out > CLUSTER_MAX_NODES)
        return json_fail(array, err, "more than %d nodes", CLUSTER_MAX_NODES);
    return ST_OK;
}

static enum status expand_node(struct cluster *cluster, struct node *nodes, const char **names, const struct node *like,
                               uint64_t count, struct error *err) {
    for (uint64_t k = 0; k < count; k++) {
        struct node *node = &nodes[cluster->n_nodes];
        *node = *like;
        node->first_device = cluster->n_devices;
        if (count > 1)
            node->name = arena_printf(&cluster->arena, "%s%lu", like->name, (unsigned long)(k + 1));
        if (!node->name)
            return error_no_memory(err);
        names[cluster->n_nodes++] = node->name;
        cluster->n_devices += node->devices;
    }
    return ST_OK;
}

static enum status read_nodes(struct cluster *cluster, const struct json_at *root, struct error *err) {
    struct json_at array;
    size_t n;
    uint64_t total, count;
    enum status st = json_array(root, "nodes", CLUSTER_MAX_NODES, &array, &n, err);
    if (!st)
        st = total_nodes(&array, &total, err);
    if (st)
        return st;
    struct node *nodes = arena_alloc(&cluster->arena, total, sizeof *nodes);
    const char **names = arena_alloc(&cluster->arena, total, sizeof *names);
    if (!nodes || !names)
        return error_no_memory(err);
    cluster->nodes = nodes;
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        struct node like;
        st = read_node(&e, &cluster->arena, &like, &count, err);
        if (!st)
            st = expand_node(cluster, nodes, names, &like, count, err);
        if (st)
            return st;
    }
    if (!cluster->n_devices)
        return json_fail(&array, err, "no node has a device: nothing would compute");
    int64_t duplicate;
    if (!names_build(&cluster->names, &cluster->arena, cluster->n_nodes, names, &duplicate))
        return error_no_memory(err);
    if (duplicate >= 0)
        return json_fail(&array, err, "two nodes are called \"%s\"", names[duplicate]);
    return ST_OK;
}

static enum status read_node_name(const struct cluster *cluster, const struct json_at *at, const char *key,
                                  uint32_t *out, struct error *err) {
    const char *name;
    enum status st = json_get_string(at, key, JSON_REQUIRED, &name, err);
    if (st)
        return st;
    int64_t node = cluster_find_node(cluster, name);
    if (node < 0)
        return json_fail(at, err, "\"%s\": the cluster has no node \"%s\"", key, name);
    *out = (uint32_t)node;
    return ST_OK;
}

static int compare_links(const void *a, const void *b) {
    const struct link *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static enum status read_links(struct cluster *cluster, const struct json_at *root, struct error *err) {
    static const char *const known[] = {"from", "to", "gbit_per_s", NULL};
    struct json_at array;
    size_t n;
    if (!json_has(root, "links", &array))
        return ST_OK;
    enum status st = json_array(root, "links", MAX_LINKS, &array, &n, err);
    if (st)
        return st;
    struct link *links = arena_alloc(&cluster->arena, n, sizeof *links);
    if (!links)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        struct link *link = &links[e.index];
        st = json_expect_object(&e, known, err);
        if (!st)
            st = read_node_name(cluster, &e, "from", &link->from, err);
        if (!st)
            st = read_node_name(cluster, &e, "to", &link->to, err);
        if (!st && link->from == link->to)
            st = json_fail(&e, err, "a link from a node to itself");
        if (!st)
            st = json_get_number(&e, "gbit_per_s", JSON_REQUIRED, MIN_RATE, MAX_RATE, &link->gbit_per_s, err);
        if (st)
            return st;
    }
    qsort(links, n, sizeof *links, compare_links);
    for (size_t i = 1; i < n; i++)
        if (!compare_links(&links[i - 1], &links[i]))
            return json_fail(&array, err, "two links from \"%s\" to \"%s\"", cluster->nodes[links[i].from].name,
                             cluster->nodes[links[i].to].name);
    cluster->links = links;
    cluster->n_links = (uint32_t)n;
    return ST_OK;
}

static enum status read_collectives(struct cluster *cluster, const struct json_at *root, struct error *err) {
    static const char *const known[] = {"all_reduce", NULL};
    static const char *const linear[] = {"startup_us", "per_byte_ns", NULL};
    struct json_at collectives, at;
    if (!json_has(root, "collectives", &collectives))
        return ST_OK;
    enum status st = json_expect_object(&collectives, known, err);
    if (st || !json_has(&collectives, "all_reduce", &at))
        return st;
    st = json_expect_object(&at, linear, err);
    if (!st)
        st = json_get_number(&at, "startup_us", JSON_REQUIRED, 0, MAX_TIME_US, &cluster->all_reduce_startup_us, err);
    if (!st)
        st = json_get_number(&at, "per_byte_ns", JSON_REQUIRED, 0, MAX_TIME_US, &cluster->all_reduce_per_byte_ns, err);
    cluster->fixed_all_reduce = !st;
    return st;
}

static int compare_measurements(const void *a, const void *b) {
    const struct measurement *x = a, *y = b;
    if (x->operation != y->operation)
        return x->operation < y->operation ? -1 : 1;
    if (x->algorithm != y->algorithm)
        return x->algorithm < y->algorithm ? -1 : 1;
    if (x->devices != y->devices)
        return x->devices < y->devices ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static enum status read_measurement(const struct json_at *at, struct measurement *out, struct error *err) {
    static const char *const known[] = {"operation", "algorithm", "devices", "bytes",
                                        "time_us",   "low_us",    "high_us", NULL};
    size_t operation = 0, algorithm = ALGORITHM_auto;
    uint64_t devices = 2;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_word(at, "operation", JSON_REQUIRED, operation_words, &operation, err);
    if (!st && operation != OPERATION_all_reduce && json_has(at, "algorithm", &(struct json_at){0}))
        st = json_fail(at, err, "\"algorithm\" belongs to all_reduce only");
    if (!st)
        st = json_get_word(at, "algorithm", JSON_OPTIONAL, algorithm_words, &algorithm, err);
    if (!st && algorithm >= ALL_REDUCE_COUNT)
        st = json_fail(at, err, "%s is no all-reduce; its cost follows from the ring's", algorithm_words[algorithm]);
    if (!st)
        st = json_get_integer(at, "devices",
                              operation_is_one_way((enum operation)operation) ? JSON_OPTIONAL : JSON_REQUIRED, 1,
                              CLUSTER_MAX_NODES * CLUSTER_MAX_DEVICES_PER_NODE, &devices, err);
    if (!st)
        st = json_get_integer(at, "bytes", JSON_REQUIRED, 1, UINT64_C(1) << 48, &out->bytes, err);
    if (!st)
        st = json_get_number(at, "time_us", JSON_REQUIRED, DBL_MIN, MAX_TIME_US, &out->time_us, err);
    out->low_us = out->high_us = 0;
    if (!st)
        st = json_get_number(at, "low_us", JSON_OPTIONAL, 0, out->time_us, &out->low_us, err);
    if (!st)
        st = json_get_number(at, "high_us", JSON_OPTIONAL, out->time_us, MAX_TIME_US, &out->high_us, err);
    out->operation = (enum operation)operation;
    out->algorithm = (enum algorithm)algorithm;
    out->devices = (uint32_t)devices;
    return st;
}

static enum status read_measurements(struct cluster *cluster, const struct json_at *root, struct error *err) {
    struct json_at array;
    size_t n;
    if (!json_has(root, "measurements", &array))
        return ST_OK;
    enum status st = json_array(root, "measurements", MAX_MEASUREMENTS, &array, &n, err);
    if (st)
        return st;
    struct measurement *all = arena_alloc(&cluster->arena, n, sizeof *all);
    if (!all)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e))
        if ((st = read_measurement(&e, &all[e.index], err)))
            return st;
    qsort(all, n, sizeof *all, compare_measurements);
    for (size_t i = 1; i < n; i++)
        if (!compare_measurements(&all[i - 1], &all[i]))
            return json_fail(&array, err, "%s (%s) of %lu bytes on %u devices is measured twice; keep one",
                             operation_name(all[i].operation), algorithm_name(all[i].algorithm),
                             (unsigned long)all[i].bytes, all[i].devices);
    cluster->measurements = all;
    cluster->n_measurements = (uint32_t)n;
    return ST_OK;
}

/* Name, least, most, and whether 0 is written too. */
#define RUNTIME_TABLE(X)                                                                                               \
    X(message_us, 0, MAX_TIME_US, true)                                                                                \
    X(way_us, 0, MAX_TIME_US, false)                                                                                   \
    X(coordination_us, 0, MAX_TIME_US, true)                                                                           \
    X(push_us, 0, MAX_TIME_US, true)                                                                                   \
    X(copy_gbyte_per_s, 0, MAX_RATE, true)                                                                             \
    X(sum_gbyte_per_s, 0, MAX_RATE, true)                                                                              \
    X(encode_gbyte_per_s, 0, MAX_RATE, false)                                                                          \
    X(int8_gbyte_per_s, 0, MAX_RATE, false)                                                                            \
    X(topk_gbyte_per_s, 0, MAX_RATE, false)                                                                            \
    X(powersgd_gbyte_per_s, 0, MAX_RATE, false)                                                                        \
    X(goodput, 1e-3, 1, true)                                                                                          \
    X(eager_bytes, 0, MAX_BYTES, false)

static enum status read_runtime(struct cluster *cluster, const struct json_at *root, struct error *err) {
#define X(name, least, most, always) #name,
    static const char *const known[] = {RUNTIME_TABLE(X) NULL};
#undef X
    struct runtime *out = &cluster->runtime;
    struct json_at at;
    out->goodput = 1;
    if (!json_has(root, "runtime", &at))
        return ST_OK;
    enum status st = json_expect_object(&at, known, err);
#define X(name, least, most, always)                                                                                   \
    if (!st)                                                                                                           \
        st = json_get_number(&at, #name, JSON_OPTIONAL, least, most, &out->name, err);
    RUNTIME_TABLE(X)
#undef X
    return st;
}

static enum status read_shares(const struct json_at *at, const char *key, struct interference *out, struct error *err) {
    static const char *const of_startup[] = {"compute", "traffic", "beside", NULL}, *const of_transfer[] = {
                                                                                        "compute", "traffic", NULL};
    struct json_at shares;
    if (!json_has(at, key, &shares))
        return ST_OK;
    enum status st = json_expect_object(&shares, strcmp(key, "startup") ? of_transfer : of_startup, err);
    if (!st)
        st = json_get_number(&shares, "compute", JSON_OPTIONAL, MIN_SHARE, 1, &out->compute, err);
    if (!st)
        st = json_get_number(&shares, "traffic", JSON_OPTIONAL, MIN_SHARE, 1, &out->traffic, err);
    if (!st)
        st = json_get_number(&shares, "beside", JSON_OPTIONAL, MIN_SHARE, 1, &out->beside, err);
    return st;
}

static enum status read_interference(struct cluster *cluster, const struct json_at *root, struct error *err) {
    static const char *const known[] = {"startup", "transfer", NULL};
    struct json_at at;
    if (!json_has(root, "interference", &at))
        return ST_OK;
    enum status st = json_expect_object(&at, known, err);
    if (!st)
        st = read_shares(&at, "startup", &cluster->in_startup, err);
    if (!st)
        st = read_shares(&at, "transfer", &cluster->in_transfer, err);
    return st;
}

static enum status seal(struct cluster *cluster, struct error *err) {
    cJSON *json = cluster_write(cluster);
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    enum status st = id_of(text, strlen(text), &cluster->id, err);
    free(text);
    return st;
}

static enum status read_whole(struct cluster *cluster, const struct json_at *root, struct error *err) {
    static const char *const known[] = {"schema",      "name",         "transport", "nodes",        "links",
                                        "collectives", "measurements", "runtime",   "interference", "variability",
                                        NULL};
    const char *name;
    size_t transport = TRANSPORT_by_device;
    enum status st = json_expect_schema(root, CLUSTER_SCHEMA, err);
    if (!st)
        st = json_expect_object(root, known, err);
    if (!st)
        st = json_get_string(root, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = json_get_word(root, "transport", JSON_OPTIONAL, transport_words, &transport, err);
    cluster->transport = (enum transport)transport;
    if (!st)
        st = read_nodes(cluster, root, err);
    if (!st)
        st = read_links(cluster, root, err);
    if (!st)
        st = read_collectives(cluster, root, err);
    if (!st)
        st = read_measurements(cluster, root, err);
    if (!st)
        st = read_runtime(cluster, root, err);
    if (!st)
        st = read_interference(cluster, root, err);
    if (!st)
        st = variability_read(root, cluster, &cluster->variability, err);
    if (st)
        return st;
    cluster->name = arena_strdup(&cluster->arena, name);
    return cluster->name ? seal(cluster, err) : error_no_memory(err);
}

enum status cluster_read(const cJSON *json, const char *name, struct cluster *out, struct error *err) {
    struct cluster cluster = {0};
    struct json_at root = json_root(json, name);
    enum status st = read_whole(&cluster, &root, err);
    if (st)
        cluster_release(&cluster);
    else
        *out = cluster;
    return st;
}

enum status cluster_read_file(const char *path, struct cluster *out, struct error *err) {
    cJSON *json;
    enum status st = json_read_file(path, &json, err);
    if (st)
        return st;
    st = cluster_read(json, path, out, err);
    cJSON_Delete(json);
    return st;
}

static bool add_object(cJSON *array, cJSON **out) {
    *out = cJSON_CreateObject();
    return *out && cJSON_AddItemToArray(array, *out);
}

static bool write_nodes(const struct cluster *cluster, cJSON *array) {
    bool ok = array;
    cJSON *object;
    for (uint32_t i = 0; i < cluster->n_nodes && ok; i++) {
        const struct node *node = &cluster->nodes[i];
        ok = add_object(array, &object) && cJSON_AddStringToObject(object, "name", node->name) &&
             cJSON_AddNumberToObject(object, "devices", node->devices) &&
             cJSON_AddStringToObject(object, "device", node->device) &&
             cJSON_AddNumberToObject(object, "nic_gbit_per_s", node->nic_gbit_per_s) &&
             cJSON_AddNumberToObject(object, "nic_latency_us", node->nic_latency_us) &&
             cJSON_AddNumberToObject(object, "compute_scale", node->compute_scale) &&
             (node->device_link_gbyte_per_s <= 0 ||
              cJSON_AddNumberToObject(object, "device_link_gbyte_per_s", node->device_link_gbyte_per_s)) &&
             (node->device_memory_gbyte <= 0 ||
              cJSON_AddNumberToObject(object, "device_memory_gbyte", node->device_memory_gbyte)) &&
             (node->memory_gbyte <= 0 || cJSON_AddNumberToObject(object, "memory_gbyte", node->memory_gbyte));
    }
    return ok;
}

static bool write_links(const struct cluster *cluster, cJSON *array) {
    bool ok = array;
    cJSON *object;
    for (uint32_t i = 0; i < cluster->n_links && ok; i++) {
        const struct link *link = &cluster->links[i];
        ok = add_object(array, &object) && cJSON_AddStringToObject(object, "from", cluster->nodes[link->from].name) &&
             cJSON_AddStringToObject(object, "to", cluster->nodes[link->to].name) &&
             cJSON_AddNumberToObject(object, "gbit_per_s", link->gbit_per_s);
    }
    return ok;
}

bool measurement_write(const struct measurement *m, cJSON *array) {
    cJSON *object;
    return add_object(array, &object) && cJSON_AddStringToObject(object, "operation", operation_name(m->operation)) &&
           (m->operation != OPERATION_all_reduce ||
            cJSON_AddStringToObject(object, "algorithm", algorithm_name(m->algorithm))) &&
           cJSON_AddNumberToObject(object, "devices", m->devices) &&
           cJSON_AddNumberToObject(object, "bytes", (double)m->bytes) &&
           cJSON_AddNumberToObject(object, "time_us", m->time_us) &&
           (m->low_us <= 0 || cJSON_AddNumberToObject(object, "low_us", m->low_us)) &&
           (m->high_us <= 0 || cJSON_AddNumberToObject(object, "high_us", m->high_us));
}

static bool write_measurements(const struct cluster *cluster, cJSON *array) {
    bool ok = array;
    for (uint32_t i = 0; i < cluster->n_measurements && ok; i++)
        ok = measurement_write(&cluster->measurements[i], array);
    return ok;
}

static bool write_collectives(const struct cluster *cluster, cJSON *root) {
    if (!cluster->fixed_all_reduce)
        return true;
    cJSON *collectives = cJSON_AddObjectToObject(root, "collectives");
    cJSON *linear = collectives ? cJSON_AddObjectToObject(collectives, "all_reduce") : NULL;
    return linear && cJSON_AddNumberToObject(linear, "startup_us", cluster->all_reduce_startup_us) &&
           cJSON_AddNumberToObject(linear, "per_byte_ns", cluster->all_reduce_per_byte_ns);
}

static bool write_runtime(const struct runtime *runtime, cJSON *object) {
#define X(name, least, most, always)                                                                                   \
    &&((!(always) && runtime->name == 0) || cJSON_AddNumberToObject(object, #name, runtime->name))
    return object RUNTIME_TABLE(X);
#undef X
}

static bool is_measured(const struct interference *shares) {
    return shares->compute > 0 || shares->traffic > 0 || shares->beside > 0;
}

static bool write_shares(const struct interference *shares, const char *key, cJSON *at) {
    if (!is_measured(shares))
        return true;
    cJSON *object = cJSON_AddObjectToObject(at, key);
    return object && (shares->compute <= 0 || cJSON_AddNumberToObject(object, "compute", shares->compute)) &&
           (shares->traffic <= 0 || cJSON_AddNumberToObject(object, "traffic", shares->traffic)) &&
           (shares->beside <= 0 || cJSON_AddNumberToObject(object, "beside", shares->beside));
}

/* Left out where nothing was measured, so that descriptions keep their ids. */
static bool write_interference(const struct cluster *cluster, cJSON *root) {
    const struct interference *a = &cluster->in_startup, *b = &cluster->in_transfer;
    if (!is_measured(a) && !is_measured(b))
        return true;
    cJSON *object = cJSON_AddObjectToObject(root, "interference");
    return object && write_shares(a, "startup", object) && write_shares(b, "transfer", object);
}

cJSON *cluster_write(const struct cluster *cluster) {
    cJSON *root = cJSON_CreateObject();
    if (root && cJSON_AddStringToObject(root, "schema", CLUSTER_SCHEMA) &&
        cJSON_AddStringToObject(root, "name", cluster->name) &&
        (cluster->transport == TRANSPORT_by_device ||
         cJSON_AddStringToObject(root, "transport", transport_name(cluster->transport))) &&
        write_nodes(cluster, cJSON_AddArrayToObject(root, "nodes")) &&
        (!cluster->n_links || write_links(cluster, cJSON_AddArrayToObject(root, "links"))) &&
        write_collectives(cluster, root) &&
        (!cluster->n_measurements || write_measurements(cluster, cJSON_AddArrayToObject(root, "measurements"))) &&
        write_runtime(&cluster->runtime, cJSON_AddObjectToObject(root, "runtime")) &&
        write_interference(cluster, root) && variability_write(cluster, &cluster->variability, root))
        return root;
    cJSON_Delete(root);
    return NULL;
}

bool cluster_wants_bench(const struct cluster *cluster) {
    return cluster->n_devices > 1 && !cluster->n_measurements && !cluster->fixed_all_reduce &&
           cluster->transport != TRANSPORT_ideal;
}

/* Also without "transport", which one may name and the other leave to its devices. malloc'd; NULL when memory is out.
 */
static char *write_unmeasured(const struct cluster *cluster) {
    static const char *const left_out[] = {"transport", "measurements", "runtime", "interference"};
    cJSON *json = cluster_write(cluster);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(json, left_out[i]);
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    return text;
}

enum status cluster_is_same_but_measured(const struct cluster *a, const struct cluster *b, bool *same,
                                         struct error *err) {
    char *one = write_unmeasured(a), *other = write_unmeasured(b);
    const bool whole = one && other;
    *same = whole && !strcmp(one, other) && cluster_transport(a) == cluster_transport(b);
    free(one);
    free(other);
    return whole ? ST_OK : error_no_memory(err);
}

int64_t cluster_find_node(const struct cluster *cluster, const char *name) {
    return names_find(&cluster->names, name);
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

uint32_t cluster_ranks_in_nodes(const struct cluster *cluster, uint32_t among) {
    uint32_t common = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        common = common_divisor(common, cluster->nodes[i].devices);
    return common > 1 && common < among ? common : 0;
}

uint32_t cluster_node_of_device(const struct cluster *cluster, uint32_t device) {
    uint32_t low = 0, high = cluster->n_nodes - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (cluster->nodes[middle].first_device <= device)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void cluster_release(struct cluster *cluster) {
    arena_release(&cluster->arena);
    *cluster = (struct cluster){0};
}
