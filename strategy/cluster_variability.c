/* Reading, checking and writing the member "variability" of a cluster; strategy/cluster.h says what is in it. */
#include <float.h>
#include <math.h>

#include "strategy/cluster.h"
#include "strategy/cluster_internal.h"

static const double MIN_RATE = 1e-6, MAX_RATE = 1e6, MAX_TIME_US = 1e12, MAX_FACTOR = 1e3;
static const double SUM_SLACK = 1e-6;
enum { MAX_RATES = 64, MAX_CHANGES = 1000000 };

static const char *const direction_words[] = {"out", "in", NULL};
static const char *const slow_words[] = {"iteration", "run", NULL};

const char *direction_name(enum direction direction) {
    return direction_words[direction];
}

static enum status read_compute(const struct json_at *at, struct variability *out, struct error *err) {
    static const char *const known[] = {"share", "factor", "drawn_every", NULL};
    struct json_at compute;
    size_t word = 0;
    if (!json_has(at, "compute", &compute))
        return ST_OK;
    enum status st = json_expect_object(&compute, known, err);
    if (!st)
        st = json_get_number(&compute, "share", JSON_REQUIRED, 0, 1, &out->slow_share, err);
    if (!st)
        st = json_get_number(&compute, "factor", JSON_REQUIRED, 1, MAX_FACTOR, &out->slow_factor, err);
    if (!st)
        st = json_get_word(&compute, "drawn_every", JSON_OPTIONAL, slow_words, &word, err);
    out->slow_for_good = word == 1;
    return st;
}

/* A NIC gives no more than its rate, so nor may the weather. */
enum status weather_rate_read(const struct json_at *at, const struct cluster *cluster, uint32_t node, double *out,
                              struct error *err) {
    const struct node *where = &cluster->nodes[node];
    enum status st = json_get_number(at, "gbit_per_s", JSON_REQUIRED, MIN_RATE, MAX_RATE, out, err);
    if (!st && *out > where->nic_gbit_per_s)
        st = json_fail(at, err, "%g Gbit/s, but the NIC of \"%s\" has %g", *out, where->name, where->nic_gbit_per_s);
    return st;
}

enum status cluster_node_read(const struct json_at *at, const char *key, const struct cluster *cluster, uint32_t *out,
                              struct error *err) {
    const char *name;
    enum status st = json_get_string(at, key, JSON_REQUIRED, &name, err);
    int64_t node = st ? 0 : cluster_find_node(cluster, name);
    if (node < 0)
        return json_fail(at, err, "\"%s\": the cluster has no node \"%s\"", key, name);
    *out = (uint32_t)node;
    return st;
}

uint32_t cluster_slowest_nic(const struct cluster *cluster) {
    uint32_t slowest = 0;
    for (uint32_t i = 1; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].nic_gbit_per_s < cluster->nodes[slowest].nic_gbit_per_s)
            slowest = i;
    return slowest;
}

static enum status read_rates(const struct json_at *network, struct cluster *cluster, struct variability *out,
                              struct error *err) {
    static const char *const known[] = {"gbit_per_s", "share", NULL};
    struct json_at array;
    size_t n;
    double sum = 0;
    enum status st = json_array(network, "rates", MAX_RATES, &array, &n, err);
    if (!st)
        st = json_get_number(network, "every_us", JSON_REQUIRED, 1, MAX_TIME_US, &out->every_us, err);
    if (st)
        return st;
    struct weather_rate *rates = arena_alloc(&cluster->arena, n, sizeof *rates);
    if (!rates)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node && !st; e = json_next(&e)) {
        struct weather_rate *rate = &rates[e.index];
        st = json_expect_object(&e, known, err);
        if (!st)
            st = weather_rate_read(&e, cluster, cluster_slowest_nic(cluster), &rate->gbit_per_s, err);
        if (!st)
            st = json_get_number(&e, "share", JSON_REQUIRED, 0, 1, &rate->share, err);
        sum += st ? 0 : rate->share;
    }
    if (!st && fabs(sum - 1) > SUM_SLACK)
        st = json_fail(&array, err, "the shares add up to %g, not to 1", sum);
    out->rates = rates;
    out->n_rates = (uint32_t)n;
    return st;
}

static enum status read_change(const struct json_at *at, const struct cluster *cluster, double from_us, double until_us,
                               struct rate_change *out, struct error *err) {
    static const char *const known[] = {"at_us", "node", "direction", "gbit_per_s", NULL};
    size_t direction;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_number(at, "at_us", JSON_REQUIRED, 0, MAX_TIME_US, &out->at_us, err);
    if (!st && out->at_us < from_us)
        st = json_fail(at, err, "at %.0f us, but the change before it is at %.0f: sort them by time", out->at_us,
                       from_us);
    if (!st && out->at_us >= until_us)
        st = json_fail(at, err, "at %.0f us, past the trace's end (\"until_us\": %.0f)", out->at_us, until_us);
    if (!st)
        st = cluster_node_read(at, "node", cluster, &out->node, err);
    if (!st)
        st = json_get_word(at, "direction", JSON_REQUIRED, direction_words, &direction, err);
    if (!st)
        st = weather_rate_read(at, cluster, out->node, &out->gbit_per_s, err);
    out->direction = st ? DIRECTION_OUT : (enum direction)direction;
    return st;
}

static enum status read_trace(const struct json_at *network, struct cluster *cluster, struct variability *out,
                              struct error *err) {
    struct json_at array;
    size_t n;
    enum status st = json_array(network, "changes", MAX_CHANGES, &array, &n, err);
    if (!st)
        st = json_get_number(network, "until_us", JSON_REQUIRED, 1, MAX_TIME_US, &out->trace_us, err);
    if (!st && n == 0)
        st = json_fail(&array, err, "a trace without a change");
    if (st)
        return st;
    struct rate_change *changes = arena_alloc(&cluster->arena, n, sizeof *changes);
    if (!changes)
        return error_no_memory(err);
    double from_us = 0;
    for (struct json_at e = json_first(&array); e.node && !st; e = json_next(&e)) {
        st = read_change(&e, cluster, from_us, out->trace_us, &changes[e.index], err);
        from_us = st ? from_us : changes[e.index].at_us;
    }
    out->changes = changes;
    out->n_changes = (uint32_t)n;
    return st;
}

/* A lag may stand alone: for flows in the background. */
static enum status read_network(const struct json_at *at, struct cluster *cluster, struct variability *out,
                                struct error *err) {
    static const char *const drawn[] = {"every_us", "rates", "monitor_lag_us", NULL};
    static const char *const recorded[] = {"until_us", "changes", "monitor_lag_us", NULL};
    struct json_at network, inner;
    if (!json_has(at, "network", &network))
        return ST_OK;
    const bool trace = json_has(&network, "changes", &inner);
    const bool quiet = !trace && !json_has(&network, "rates", &inner) && !json_has(&network, "every_us", &inner) &&
                       json_has(&network, "monitor_lag_us", &inner);
    enum status st = json_expect_object(&network, trace ? recorded : quiet ? recorded + 2 : drawn, err);
    if (!st && !quiet)
        st = trace ? read_trace(&network, cluster, out, err) : read_rates(&network, cluster, out, err);
    if (!st)
        st = json_get_number(&network, "monitor_lag_us", JSON_OPTIONAL, 0, MAX_TIME_US, &out->monitor_lag_us, err);
    return st;
}

enum status variability_read(const struct json_at *root, struct cluster *cluster, struct variability *out,
                             struct error *err) {
    static const char *const known[] = {"compute", "network", "background", NULL};
    struct json_at at;
    *out = (struct variability){.slow_factor = 1};
    if (!json_has(root, "variability", &at))
        return ST_OK;
    out->given = true;
    enum status st = json_expect_object(&at, known, err);
    if (!st)
        st = read_compute(&at, out, err);
    if (!st)
        st = read_network(&at, cluster, out, err);
    if (!st)
        st = background_read(&at, cluster, &out->background, err);
    return st;
}

/* ---- writing ---- */

static bool write_compute(const struct variability *v, cJSON *at) {
    if (v->slow_share <= 0)
        return true;
    cJSON *object = cJSON_AddObjectToObject(at, "compute");
    return object && cJSON_AddNumberToObject(object, "share", v->slow_share) &&
           cJSON_AddNumberToObject(object, "factor", v->slow_factor) &&
           cJSON_AddStringToObject(object, "drawn_every", slow_words[v->slow_for_good]);
}

static cJSON *add_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) ? object : NULL;
}

static bool write_rates(const struct variability *v, cJSON *network) {
    cJSON *array = cJSON_AddArrayToObject(network, "rates"), *object;
    bool ok = array && cJSON_AddNumberToObject(network, "every_us", v->every_us);
    for (uint32_t i = 0; i < v->n_rates && ok; i++)
        ok = (object = add_object(array)) && cJSON_AddNumberToObject(object, "gbit_per_s", v->rates[i].gbit_per_s) &&
             cJSON_AddNumberToObject(object, "share", v->rates[i].share);
    return ok;
}

static bool write_trace(const struct cluster *cluster, const struct variability *v, cJSON *network) {
    cJSON *array = cJSON_AddArrayToObject(network, "changes"), *object;
    bool ok = array && cJSON_AddNumberToObject(network, "until_us", v->trace_us);
    for (uint32_t i = 0; i < v->n_changes && ok; i++) {
        const struct rate_change *change = &v->changes[i];
        ok = (object = add_object(array)) && cJSON_AddNumberToObject(object, "at_us", change->at_us) &&
             cJSON_AddStringToObject(object, "node", cluster->nodes[change->node].name) &&
             cJSON_AddStringToObject(object, "direction", direction_name(change->direction)) &&
             cJSON_AddNumberToObject(object, "gbit_per_s", change->gbit_per_s);
    }
    return ok;
}

bool variability_write(const struct cluster *cluster, const struct variability *v, cJSON *root) {
    if (!v->given)
        return true;
    cJSON *object = cJSON_AddObjectToObject(root, "variability");
    if (!object || !write_compute(v, object))
        return false;
    if (!background_write(cluster, &v->background, object))
        return false;
    if (v->n_rates == 0 && v->n_changes == 0 && v->monitor_lag_us <= 0)
        return true;
    cJSON *network = cJSON_AddObjectToObject(object, "network");
    return network && (v->n_rates == 0 || write_rates(v, network)) &&
           (v->n_changes == 0 || write_trace(cluster, v, network)) &&
           (v->monitor_lag_us <= 0 || cJSON_AddNumberToObject(network, "monitor_lag_us", v->monitor_lag_us));
}
