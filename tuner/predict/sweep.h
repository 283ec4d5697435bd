/* One figure of a model or cluster varied while the rest stays: how a strategy would scale, by simulation (MG-WFBP
 * §6.4, PACE §VI-C, ByteScheduler §6.3).
 *
 * The text is AXIS=VALUES, VALUES being A..BxF (times F from A up to B), A..B+S (plus S) or a rising list A,B,C.
 *
 *   workers    devices in all. The nodes with devices are repeated in the order of the description, each with all its
 *              devices, until the number is reached. With fewer devices than the first node has, there is one node like
 *              it with that many. Nodes without devices are repeated too, in proportion, rounded up. "collectives" is
 *              carried over by scaled_line().
 *   bandwidth  Gbit/s of every NIC. Device links and the rates of "links" stay. The slope of "collectives" is
 *              inversely proportional to the rate of the slowest NIC.
 *   batch      samples that each device takes in an iteration. Operator times and sparse_rows are proportional to it.
 *              "workers" and rates stay.
 *
 * Where a struct sweep says `relative`, values of bandwidth multiply the rate of each NIC, and flows of other jobs are
 * cut to the rate of their NICs.
 *
 * A measured curve holds for one number of devices and one network. So the axis workers drops the curves of all-reduce,
 * and the axis bandwidth drops all curves. Threads: a const struct sweep may be shared. */
#ifndef TUNER_PREDICT_SWEEP_H
#define TUNER_PREDICT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

enum sweep_axis { SWEEP_WORKERS, SWEEP_BANDWIDTH, SWEEP_BATCH, SWEEP_AXES };
enum { SWEEP_MAX_POINTS = 256 };

struct sweep {
    enum sweep_axis axis;
    bool geometric; /* A..BxF */
    bool relative;  /* no text says this */
    size_t n;
    double values[SWEEP_MAX_POINTS]; /* rising */
};

const char *sweep_axis_name(enum sweep_axis axis); /* "workers" */
const char *sweep_axis_unit(enum sweep_axis axis); /* what one of it is: "devices" */

/* Fails: ST_USAGE, with what would do. */
enum status sweep_parse(const char *text, struct sweep *out, struct error *err);

/* The model and the cluster at one value, each sealed under an id of its own. */
struct sweep_point {
    struct model model;
    struct cluster cluster;
};

/* `all_reduce`, unless auto, is the algorithm of every all-reduce: what "collectives" is carried over to, or, without
 * it, the formula of that algorithm instead of the cheapest. Release with sweep_point_release.
 * Fails: ST_INFEASIBLE (a number of devices that whole nodes cannot have, "links" when workers vary, scaled_line),
 * ST_TOO_LARGE, ST_INVALID, ST_NO_MEMORY. */
enum status sweep_apply(const struct sweep *sweep, double value, enum algorithm all_reduce, const struct model *model,
                        const struct cluster *cluster, struct sweep_point *out, struct error *err);
void sweep_point_release(struct sweep_point *point);

/* True when sweep_apply leaves out measurements that the cluster has. */
bool sweep_drops_measurements(const struct sweep *sweep, enum algorithm all_reduce, const struct cluster *cluster);

#endif
