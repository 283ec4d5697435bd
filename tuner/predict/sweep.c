/* See sweep.h. A varied description is the old one with some fields replaced, written out and read again, so that it is
 * held to every rule that a file is. O(points) to parse; to apply, what reading a description costs. */
#include "tuner/predict/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "strategy/cost/scaled_line.h"

static const struct axis {
    const char *name, *unit;
    double least, most;
    bool whole;
} axes[SWEEP_AXES] = {
    [SWEEP_WORKERS] = {"workers", "devices", 1, (double)CLUSTER_MAX_NODES *CLUSTER_MAX_DEVICES_PER_NODE, true},
    [SWEEP_BANDWIDTH] = {"bandwidth", "Gbit/s of every NIC", 1e-6, 1e6, false},
    [SWEEP_BATCH] = {"batch", "samples a device", 1e-6, 1e9, false},
};

const char *sweep_axis_name(enum sweep_axis axis) {
    return axes[axis].name;
}

const char *sweep_axis_unit(enum sweep_axis axis) {
    return axes[axis].unit;
}

/* ---- the text ---- */

/* Digits and at most one point with digits after it, so that "4..8" ends after the 4; *text moves past it. */
static bool take_number(const char **text, double *out) {
    enum { LONGEST = 32 };
    char copy[LONGEST + 1];
    size_t n = strspn(*text, "0123456789");
    if (n == 0)
        return false;
    if ((*text)[n] == '.' && strspn(*text + n + 1, "0123456789") > 0)
        n += 1 + strspn(*text + n + 1, "0123456789");
    if (n > LONGEST)
        return false;
    memcpy(copy, *text, n);
    copy[n] = '\0';
    *text += n;
    *out = strtod(copy, NULL);
    return true;
}

static enum status add_value(struct sweep *sweep, double value, struct error *err) {
    const struct axis *axis = &axes[sweep->axis];
    if (value < axis->least || value > axis->most)
        return error_set(err, ST_USAGE, "--sweep: %s %.10g is outside %.10g..%.10g", axis->name, value, axis->least,
                         axis->most);
    if (axis->whole && value != floor(value))
        return error_set(err, ST_USAGE, "--sweep: %s are whole, but %.10g comes up; choose another start or step",
                         axis->name, value);
    if (sweep->n > 0 && value <= sweep->values[sweep->n - 1])
        return error_set(err, ST_USAGE, "--sweep: %.10g after %.10g; give rising values", value,
                         sweep->values[sweep->n - 1]);
    if (sweep->n == SWEEP_MAX_POINTS)
        return error_set(err, ST_USAGE, "--sweep: more than %d values; take larger steps", SWEEP_MAX_POINTS);
    sweep->values[sweep->n++] = value;
    return ST_OK;
}

/* Add the values from `first` by `step` to `last`, which a rounding error must not miss. */
static enum status add_range(struct sweep *sweep, double first, double last, double step, struct error *err) {
    const double end = last * (1 + 1e-9);
    enum status st = ST_OK;
    if (sweep->geometric ? step <= 1 : step <= 0)
        return error_set(err, ST_USAGE,
                         "--sweep: a step of %c%.10g never arrives; give x with more than 1, or + with "
                         "more than 0",
                         sweep->geometric ? 'x' : '+', step);
    if (last < first)
        return error_set(err, ST_USAGE, "--sweep: %.10g..%.10g is empty; give the smaller value first", first, last);
    for (double value = first; value <= end && !st;) {
        st = add_value(sweep, value, err);
        value = sweep->geometric ? first * pow(step, (double)sweep->n) : first + step * (double)sweep->n;
    }
    return st;
}

static enum status bad_text(const char *text, struct error *err) {
    return error_set(err, ST_USAGE,
                     "--sweep: \"%.60s\" is not AXIS=A..BxF, AXIS=A..B+S or AXIS=A,B,C with AXIS workers, "
                     "bandwidth or batch; for example workers=4..2048x2",
                     text);
}

static enum status parse_values(const char *text, const char *whole, struct sweep *sweep, struct error *err) {
    double first, last, step;
    if (!take_number(&text, &first))
        return bad_text(whole, err);
    if (!strncmp(text, "..", 2)) {
        text += 2;
        if (!take_number(&text, &last) || (*text != 'x' && *text != '+'))
            return bad_text(whole, err);
        sweep->geometric = *text++ == 'x';
        if (!take_number(&text, &step) || *text)
            return bad_text(whole, err);
        return add_range(sweep, first, last, step, err);
    }
    enum status st = add_value(sweep, first, err);
    while (!st && *text == ',') {
        text++;
        st = take_number(&text, &first) ? add_value(sweep, first, err) : bad_text(whole, err);
    }
    return !st && *text ? bad_text(whole, err) : st;
}

enum status sweep_parse(const char *text, struct sweep *out, struct error *err) {
    struct sweep sweep = {.axis = SWEEP_WORKERS};
    size_t n = strcspn(text, "=");
    while (sweep.axis < SWEEP_AXES && (strncmp(axes[sweep.axis].name, text, n) || axes[sweep.axis].name[n]))
        sweep.axis++;
    if (sweep.axis == SWEEP_AXES || !text[n])
        return bad_text(text, err);
    enum status st = parse_values(text + n + 1, text, &sweep, err);
    if (!st)
        *out = sweep;
    return st;
}

/* ---- clusters ---- */

/* Count the nodes that have `devices` devices together, when the nodes of `cluster` with devices are taken again and
 * again from the first. Where the first node alone has more, one node like it with fewer devices is taken. */
static enum status count_workers(const struct cluster *cluster, uint32_t devices, uint32_t *n, struct error *err) {
    uint32_t below = 0, had = 0;
    *n = 0;
    while (had < devices)
        for (uint32_t i = 0; i < cluster->n_nodes && had < devices; i++) {
            below = had;
            had += cluster->nodes[i].devices;
            *n += cluster->nodes[i].devices > 0;
        }
    if (*n > CLUSTER_MAX_NODES)
        return error_set(err, ST_TOO_LARGE, "%u devices make %u nodes; at most %d", devices, *n, CLUSTER_MAX_NODES);
    if (had == devices || *n == 1)
        return ST_OK;
    return error_set(err, ST_INFEASIBLE, "workers=%u: whole nodes of %s have %u or %u devices; sweep over such numbers",
                     devices, cluster->name, below, had);
}

/* Append node `like` for the `round`th time (from 0). */
static enum status append_node(struct cluster *cluster, struct node *nodes, const struct node *like, uint32_t round,
                               struct arena *arena, struct error *err) {
    struct node *node = &nodes[cluster->n_nodes++];
    *node = *like;
    node->first_device = cluster->n_devices;
    cluster->n_devices += node->devices;
    if (round > 0)
        node->name = arena_printf(arena, "%s+%u", like->name, round);
    return node->name ? ST_OK : error_no_memory(err);
}

/* `count` nodes with devices, or without, taken in turn. */
static enum status repeat_nodes(struct cluster *out, struct node *nodes, const struct cluster *from, bool workers,
                                uint32_t count, struct arena *arena, struct error *err) {
    enum status st = ST_OK;
    for (uint32_t round = 0; count > 0 && !st; round++)
        for (uint32_t i = 0; i < from->n_nodes && count > 0 && !st; i++)
            if ((from->nodes[i].devices > 0) == workers) {
                st = append_node(out, nodes, &from->nodes[i], round, arena, err);
                count--;
            }
    return st;
}

static enum status set_workers(struct cluster *view, const struct cluster *from, uint32_t devices, struct arena *arena,
                               struct error *err) {
    uint32_t had = 0, workers;
    if (from->n_links > 0)
        return error_set(err, ST_INFEASIBLE,
                         "%s has \"links\" between its own nodes, which say nothing about more nodes; "
                         "remove them to sweep over workers",
                         from->name);
    enum status st = count_workers(from, devices, &workers, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < from->n_nodes; i++)
        had += from->nodes[i].devices > 0;
    uint64_t spare = ((uint64_t)(from->n_nodes - had) * workers + had - 1) / had;
    if (workers + spare > CLUSTER_MAX_NODES)
        return error_set(err, ST_TOO_LARGE, "%u devices make %lu nodes with their servers; at most %d", devices,
                         (unsigned long)(workers + spare), CLUSTER_MAX_NODES);
    struct node *nodes = arena_alloc(arena, workers + spare, sizeof *nodes);
    if (!nodes)
        return error_no_memory(err);
    view->nodes = nodes;
    view->n_nodes = view->n_devices = 0;
    st = repeat_nodes(view, nodes, from, true, workers, arena, err);
    if (!st && workers == 1)
        view->n_devices = nodes[0].devices = devices;
    return st ? st : repeat_nodes(view, nodes, from, false, (uint32_t)spare, arena, err);
}

/* The narrowest NIC of a node with devices, which is what an all-reduce feels. */
static double narrowest_gbit_per_s(const struct cluster *cluster) {
    double least = INFINITY;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0)
            least = fmin(least, cluster->nodes[i].nic_gbit_per_s);
    return least;
}

/* `value` is the rate in Gbit/s of every NIC, or what each rate is multiplied by. */
static enum status set_bandwidth(struct cluster *view, const struct cluster *from, double value, bool relative,
                                 struct arena *arena, struct error *err) {
    struct node *nodes = arena_alloc(arena, from->n_nodes, sizeof *nodes);
    if (!nodes)
        return error_no_memory(err);
    memcpy(nodes, from->nodes, from->n_nodes * sizeof *nodes);
    for (uint32_t i = 0; i < from->n_nodes; i++)
        nodes[i].nic_gbit_per_s = relative ? from->nodes[i].nic_gbit_per_s * value : value;
    view->nodes = nodes;
    view->all_reduce_per_byte_ns *= relative ? 1 / value : narrowest_gbit_per_s(from) / value;
    return ST_OK;
}

/* ---- weather ---- */

/* Flows of other jobs come from every node as often as they do; one node has none. */
static enum status vary_flows(struct cluster *view, const struct cluster *from, struct error *err) {
    struct variability *v = &view->variability;
    if (v->n_changes > 0 || v->background.n_flows > 0)
        return error_set(
            err, ST_INFEASIBLE,
            "%s has weather that was recorded on its own nodes, which says nothing about more nodes; sweep "
            "over bandwidth or batch",
            from->name);
    v->background.flows_per_s *= view->n_nodes > 1 ? (double)view->n_nodes / from->n_nodes : 0;
    return ST_OK;
}

/* Rates keep their share of the NIC's; flows of other jobs stay as they are. */
static enum status vary_rates(struct cluster *view, const struct cluster *from, double value, bool relative,
                              struct arena *arena, struct error *err) {
    struct variability *v = &view->variability;
    struct weather_rate *rates = arena_alloc(arena, v->n_rates, sizeof *rates);
    struct rate_change *changes = arena_alloc(arena, v->n_changes, sizeof *changes);
    double slowest = INFINITY;
    if (!rates || !changes)
        return error_no_memory(err);
    for (uint32_t i = 0; i < from->n_nodes; i++)
        slowest = fmin(slowest, from->nodes[i].nic_gbit_per_s);
    for (uint32_t i = 0; i < v->n_rates; i++) {
        rates[i] = v->rates[i];
        rates[i].gbit_per_s = relative ? rates[i].gbit_per_s * value : fmin(rates[i].gbit_per_s / slowest, 1) * value;
    }
    for (uint32_t i = 0; i < v->n_changes; i++) {
        changes[i] = v->changes[i];
        const double own = from->nodes[changes[i].node].nic_gbit_per_s;
        changes[i].gbit_per_s = fmin(changes[i].gbit_per_s / own, 1) * (relative ? own * value : value);
    }
    v->rates = rates;
    v->changes = changes;
    return ST_OK;
}

static enum status set_line(struct cluster *view, uint32_t measured_on, enum algorithm all_reduce, struct error *err) {
    struct all_reduce_line line = {view->all_reduce_startup_us, view->all_reduce_per_byte_ns / 1000};
    enum status st = ST_OK;
    if (view->fixed_all_reduce)
        st = scaled_line(line, measured_on, view->n_devices, all_reduce == ALGORITHM_auto ? ALGORITHM_ring : all_reduce,
                         &line, err);
    else
        line = all_reduce_line(view, all_reduce);
    view->fixed_all_reduce = true;
    view->all_reduce_startup_us = line.startup_us;
    view->all_reduce_per_byte_ns = line.per_byte_us * 1000;
    return st;
}

/* Cut a flow to the rate of a NIC that is slower; it takes as long as before. */
static void cut_flow(double most, double *gbit_per_s, double *mbytes) {
    if (*gbit_per_s > most) {
        *mbytes *= most / *gbit_per_s;
        *gbit_per_s = most;
    }
}

static enum status cut_flows(struct cluster *view, struct arena *arena, struct error *err) {
    struct background *b = &view->variability.background;
    struct background_flow *flows = arena_alloc(arena, b->n_flows, sizeof *flows);
    double slowest = INFINITY;
    if (!flows)
        return error_no_memory(err);
    for (uint32_t i = 0; i < view->n_nodes; i++)
        slowest = fmin(slowest, view->nodes[i].nic_gbit_per_s);
    cut_flow(slowest, &b->gbit_per_s, &b->mbytes);
    for (uint32_t i = 0; i < b->n_flows; i++) {
        flows[i] = b->flows[i];
        cut_flow(fmin(view->nodes[flows[i].from].nic_gbit_per_s, view->nodes[flows[i].to].nic_gbit_per_s),
                 &flows[i].gbit_per_s, &flows[i].mbytes);
    }
    b->flows = flows;
    return ST_OK;
}

static bool keeps(const struct sweep *sweep, enum algorithm all_reduce, const struct measurement *m) {
    if (!operation_is_one_way(m->operation) && all_reduce != ALGORITHM_auto)
        return false;
    return sweep->axis == SWEEP_BATCH || (sweep->axis == SWEEP_WORKERS && operation_is_one_way(m->operation));
}

bool sweep_drops_measurements(const struct sweep *sweep, enum algorithm all_reduce, const struct cluster *cluster) {
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        if (!keeps(sweep, all_reduce, &cluster->measurements[i]))
            return true;
    return false;
}

static enum status keep_measurements(struct cluster *view, const struct sweep *sweep, enum algorithm all_reduce,
                                     struct arena *arena, struct error *err) {
    struct measurement *kept = arena_alloc(arena, view->n_measurements, sizeof *kept);
    uint32_t n = 0;
    if (!kept)
        return error_no_memory(err);
    for (uint32_t i = 0; i < view->n_measurements; i++)
        if (keeps(sweep, all_reduce, &view->measurements[i]))
            kept[n++] = view->measurements[i];
    view->measurements = kept;
    view->n_measurements = n;
    return ST_OK;
}

static enum status reread_cluster(const struct cluster *view, struct cluster *out, struct error *err) {
    cJSON *json = cluster_write(view);
    enum status st = json ? cluster_read(json, view->name, out, err) : error_no_memory(err);
    cJSON_Delete(json);
    return st;
}

static enum status vary_cluster(const struct sweep *sweep, double value, enum algorithm all_reduce,
                                const struct cluster *from, struct cluster *out, struct error *err) {
    struct arena arena = {0};
    struct cluster view = *from;
    enum status st = keep_measurements(&view, sweep, all_reduce, &arena, err);
    if (!st && sweep->axis == SWEEP_WORKERS)
        st = set_workers(&view, from, (uint32_t)value, &arena, err);
    if (!st && sweep->axis == SWEEP_WORKERS)
        st = vary_flows(&view, from, err);
    if (!st && sweep->axis == SWEEP_BANDWIDTH)
        st = set_bandwidth(&view, from, value, sweep->relative, &arena, err);
    if (!st && sweep->axis == SWEEP_BANDWIDTH)
        st = vary_rates(&view, from, value, sweep->relative, &arena, err);
    if (!st && sweep->relative)
        st = cut_flows(&view, &arena, err);
    if (view.n_nodes == 1 && from->n_nodes > 1)
        view.fixed_all_reduce = false; /* what was measured between nodes; here no NIC is crossed */
    bool other_size = view.fixed_all_reduce && view.n_devices != from->n_devices;
    if (!st && (other_size || all_reduce != ALGORITHM_auto))
        st = set_line(&view, from->n_devices, all_reduce, err);
    if (!st)
        st = reread_cluster(&view, out, err);
    arena_release(&arena);
    return st;
}

/* ---- models ---- */

static enum status reread_model(const struct model *view, struct model *out, struct error *err) {
    cJSON *json = model_write(view);
    enum status st = json ? model_read(json, view->name, out, err) : error_no_memory(err);
    cJSON_Delete(json);
    return st;
}

static enum status vary_model(const struct sweep *sweep, double value, const struct model *from, struct model *out,
                              struct error *err) {
    struct arena arena = {0};
    struct model view = *from;
    if (sweep->axis != SWEEP_BATCH)
        return reread_model(from, out, err);
    struct operator* operators = arena_alloc(&arena, from->n_operators, sizeof *operators);
    struct variable *variables = arena_alloc(&arena, from->n_variables, sizeof *variables);
    double factor = value / from->batch_per_device;
    enum status st = operators && variables ? ST_OK : error_no_memory(err);
    for (uint32_t i = 0; i < from->n_operators && !st; i++) {
        operators[i] = from->operators[i];
        operators[i].time_us *= factor;
        operators[i].activation_bytes = (uint64_t)ceil((double)operators[i].activation_bytes * factor);
        operators[i].temporary_bytes = (uint64_t)ceil((double)operators[i].temporary_bytes * factor);
    }
    for (uint32_t i = 0; i < from->n_variables && !st; i++) {
        variables[i] = from->variables[i];
        if (variables[i].sparse_rows > 0)
            variables[i].sparse_rows =
                (uint64_t)fmin(ceil((double)variables[i].sparse_rows * factor), (double)variables[i].shape[0]);
    }
    view.operators = operators;
    view.variables = variables;
    view.batch_per_device = value;
    if (!st)
        st = reread_model(&view, out, err);
    arena_release(&arena);
    return st;
}

enum status sweep_apply(const struct sweep *sweep, double value, enum algorithm all_reduce, const struct model *model,
                        const struct cluster *cluster, struct sweep_point *out, struct error *err) {
    struct sweep_point point = {0};
    enum status st = vary_cluster(sweep, value, all_reduce, cluster, &point.cluster, err);
    if (!st)
        st = vary_model(sweep, value, model, &point.model, err);
    if (st)
        sweep_point_release(&point);
    else
        *out = point;
    return st;
}

void sweep_point_release(struct sweep_point *point) {
    model_release(&point->model);
    cluster_release(&point->cluster);
}
