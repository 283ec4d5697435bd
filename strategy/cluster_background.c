/* Reading, checking and writing the member "background" of a cluster's variability; strategy/cluster.h says what is in
 * it. */
#include "strategy/cluster.h"
#include "strategy/cluster_internal.h"
#include "strategy/weather.h"

static const double MIN_MBYTES = 1e-6, MAX_MBYTES = 1e9, MIN_FLOWS = 1e-6, MAX_FLOWS = 1e4, MAX_TIME_US = 1e12;
enum { MAX_RECORDED = 10000 };

static enum status read_drawn(const struct json_at *at, const struct cluster *cluster, struct background *out,
                              struct error *err) {
    static const char *const known[] = {"flows_per_s", "mbytes", "gbit_per_s", NULL};
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_number(at, "flows_per_s", JSON_REQUIRED, MIN_FLOWS, MAX_FLOWS, &out->flows_per_s, err);
    if (!st)
        st = json_get_number(at, "mbytes", JSON_REQUIRED, MIN_MBYTES, MAX_MBYTES, &out->mbytes, err);
    if (!st)
        st = weather_rate_read(at, cluster, cluster_slowest_nic(cluster), &out->gbit_per_s, err);
    if (st)
        return st;
    const double at_once = out->flows_per_s * background_flow_us(out->mbytes, out->gbit_per_s) / 1e6;
    return at_once <= BACKGROUND_MEAN
               ? ST_OK
               : json_fail(at, err, "%.3g flows at a time on average; at most %d", at_once, BACKGROUND_MEAN);
}

/* How many of the flows before flow i are not over when it starts. */
static uint32_t others_at_start(const struct background_flow *flows, uint32_t i) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < i; k++)
        n += flows[k].at_us + background_flow_us(flows[k].mbytes, flows[k].gbit_per_s) > flows[i].at_us;
    return n;
}

static enum status check_flow(const struct json_at *at, const struct background *b, const struct background_flow *flows,
                              uint32_t i, struct error *err) {
    const struct background_flow *flow = &flows[i];
    const double end_us = flow->at_us + background_flow_us(flow->mbytes, flow->gbit_per_s);
    if (flow->from == flow->to)
        return json_fail(at, err, "from a node to itself: it passes no NIC");
    if (i > 0 && flow->at_us < flows[i - 1].at_us)
        return json_fail(at, err, "at %.0f us, but the flow before it is at %.0f: sort them by time", flow->at_us,
                         flows[i - 1].at_us);
    if (end_us > b->trace_us)
        return json_fail(at, err, "ends at %.0f us, past the end (\"until_us\": %.0f)", end_us, b->trace_us);
    if (others_at_start(flows, i) >= BACKGROUND_MOST)
        return json_fail(at, err, "more than %d flows at a time", BACKGROUND_MOST);
    return ST_OK;
}

static enum status read_flow(const struct json_at *at, const struct cluster *cluster, struct background_flow *out,
                             struct error *err) {
    static const char *const known[] = {"at_us", "from", "to", "mbytes", "gbit_per_s", NULL};
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_number(at, "at_us", JSON_REQUIRED, 0, MAX_TIME_US, &out->at_us, err);
    if (!st)
        st = cluster_node_read(at, "from", cluster, &out->from, err);
    if (!st)
        st = cluster_node_read(at, "to", cluster, &out->to, err);
    if (!st)
        st = json_get_number(at, "mbytes", JSON_REQUIRED, MIN_MBYTES, MAX_MBYTES, &out->mbytes, err);
    if (!st)
        st = weather_rate_read(at, cluster, out->from, &out->gbit_per_s, err);
    return st ? st : weather_rate_read(at, cluster, out->to, &out->gbit_per_s, err);
}

static enum status read_recorded(const struct json_at *at, struct cluster *cluster, struct background *out,
                                 struct error *err) {
    static const char *const known[] = {"until_us", "flows", NULL};
    struct json_at array;
    size_t n;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_array(at, "flows", MAX_RECORDED, &array, &n, err);
    if (!st)
        st = json_get_number(at, "until_us", JSON_REQUIRED, 1, MAX_TIME_US, &out->trace_us, err);
    if (!st && n == 0)
        st = json_fail(&array, err, "no flow is in it");
    if (st)
        return st;
    struct background_flow *flows = arena_alloc(&cluster->arena, n, sizeof *flows);
    if (!flows)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node && !st; e = json_next(&e)) {
        st = read_flow(&e, cluster, &flows[e.index], err);
        if (!st)
            st = check_flow(&e, out, flows, (uint32_t)e.index, err);
    }
    out->flows = flows;
    out->n_flows = (uint32_t)n;
    return st;
}

enum status background_read(const struct json_at *root, struct cluster *cluster, struct background *out,
                            struct error *err) {
    struct json_at at, inner;
    if (!json_has(root, "background", &at))
        return ST_OK;
    if (cluster->n_nodes < 2)
        return json_fail(&at, err, "flows go from node to node, and the cluster has one");
    return json_has(&at, "flows", &inner) ? read_recorded(&at, cluster, out, err) : read_drawn(&at, cluster, out, err);
}

/* ---- writing ---- */

static bool write_flow(const struct cluster *cluster, const struct background_flow *flow, cJSON *object) {
    return cJSON_AddNumberToObject(object, "at_us", flow->at_us) &&
           cJSON_AddStringToObject(object, "from", cluster->nodes[flow->from].name) &&
           cJSON_AddStringToObject(object, "to", cluster->nodes[flow->to].name) &&
           cJSON_AddNumberToObject(object, "mbytes", flow->mbytes) &&
           cJSON_AddNumberToObject(object, "gbit_per_s", flow->gbit_per_s);
}

bool background_write(const struct cluster *cluster, const struct background *b, cJSON *root) {
    if (b->flows_per_s <= 0 && b->n_flows == 0)
        return true;
    cJSON *object = cJSON_AddObjectToObject(root, "background");
    if (b->flows_per_s > 0)
        return object && cJSON_AddNumberToObject(object, "flows_per_s", b->flows_per_s) &&
               cJSON_AddNumberToObject(object, "mbytes", b->mbytes) &&
               cJSON_AddNumberToObject(object, "gbit_per_s", b->gbit_per_s);
    cJSON *array = cJSON_AddArrayToObject(object, "flows");
    bool ok = array && cJSON_AddNumberToObject(object, "until_us", b->trace_us);
    for (uint32_t i = 0; i < b->n_flows && ok; i++) {
        cJSON *flow = cJSON_CreateObject();
        ok = flow && cJSON_AddItemToArray(array, flow) && write_flow(cluster, &b->flows[i], flow);
    }
    return ok;
}
