/* One sweep after another, each over one value; figures that stay as they are take no sweep, so that the cluster keeps
 * what was measured on it. */
#include "tuner/predict/what_if.h"

#include <math.h>

static uint64_t working_nodes(const struct cluster *cluster) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        n += cluster->nodes[i].devices > 0;
    return n;
}

static bool rates_are(const struct cluster *cluster, double gbit_per_s) {
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].nic_gbit_per_s != gbit_per_s)
            return false;
    return true;
}

struct what_if what_if_of(const struct model *model, const struct cluster *cluster) {
    struct what_if out = {INFINITY, working_nodes(cluster), model->batch_per_device};
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        out.gbit_per_s = fmin(out.gbit_per_s, cluster->nodes[i].nic_gbit_per_s);
    return out;
}

static bool changes_axis(const struct what_if *w, enum sweep_axis axis, const struct model *model,
                         const struct cluster *cluster) {
    switch (axis) {
    case SWEEP_WORKERS:
        return w->nodes > 0 && w->nodes != working_nodes(cluster);
    case SWEEP_BANDWIDTH:
        return w->gbit_per_s > 0 && !rates_are(cluster, w->gbit_per_s);
    default:
        return w->batch > 0 && w->batch != model->batch_per_device;
    }
}

bool what_if_changes(const struct what_if *w, const struct model *model, const struct cluster *cluster) {
    for (enum sweep_axis axis = 0; axis < SWEEP_AXES; axis++)
        if (changes_axis(w, axis, model, cluster))
            return true;
    return false;
}

bool what_if_drops_measurements(const struct what_if *w, const struct model *model, const struct cluster *cluster) {
    for (enum sweep_axis axis = 0; axis < SWEEP_AXES; axis++) {
        const struct sweep sweep = {.axis = axis};
        if (changes_axis(w, axis, model, cluster) && sweep_drops_measurements(&sweep, ALGORITHM_auto, cluster))
            return true;
    }
    return false;
}

/* The devices of so many nodes, when those with devices are taken again and again from the first. */
static double devices_of(const struct cluster *cluster, uint64_t nodes) {
    uint64_t devices = 0;
    while (nodes > 0)
        for (uint32_t i = 0; i < cluster->n_nodes && nodes > 0; i++) {
            devices += cluster->nodes[i].devices;
            nodes -= cluster->nodes[i].devices > 0;
        }
    return (double)devices;
}

static enum status check(const struct what_if *w, struct error *err) {
    if (w->gbit_per_s != 0 && !(w->gbit_per_s >= WHAT_IF_LEAST_RATE && w->gbit_per_s <= WHAT_IF_MOST_RATE))
        return error_set(err, ST_USAGE, "gbit_per_s: %g is not from %g to %g", w->gbit_per_s, WHAT_IF_LEAST_RATE,
                         WHAT_IF_MOST_RATE);
    if (w->nodes > WHAT_IF_MOST_NODES)
        return error_set(err, ST_USAGE, "nodes: at most %d", WHAT_IF_MOST_NODES);
    if (w->batch != 0 && !(w->batch >= WHAT_IF_LEAST_BATCH && w->batch <= WHAT_IF_MOST_BATCH))
        return error_set(err, ST_USAGE, "batch: %g is not from %g to %g", w->batch, WHAT_IF_LEAST_BATCH,
                         WHAT_IF_MOST_BATCH);
    return ST_OK;
}

enum status what_if_apply(const struct what_if *w, const struct model *model, const struct cluster *cluster,
                          struct sweep_point *out, struct error *err) {
    enum status st = check(w, err);
    if (st)
        return st;
    if (!working_nodes(cluster))
        return error_set(err, ST_INVALID, "%s has no device", cluster->name);
    /* A sweep over the batch that the model has copies both. */
    struct sweep same = {.axis = SWEEP_BATCH, .n = 1};
    struct sweep_point point;
    st = sweep_apply(&same, model->batch_per_device, ALGORITHM_auto, model, cluster, &point, err);
    for (enum sweep_axis axis = 0; axis < SWEEP_AXES && !st; axis++) {
        const struct sweep sweep = {.axis = axis, .n = 1};
        const double values[SWEEP_AXES] = {[SWEEP_WORKERS] = devices_of(cluster, w->nodes),
                                           [SWEEP_BANDWIDTH] = w->gbit_per_s,
                                           [SWEEP_BATCH] = w->batch};
        struct sweep_point next;
        if (!changes_axis(w, axis, model, cluster))
            continue;
        st = sweep_apply(&sweep, values[axis], ALGORITHM_auto, &point.model, &point.cluster, &next, err);
        sweep_point_release(&point);
        if (!st)
            point = next;
    }
    if (!st)
        *out = point;
    return st;
}
