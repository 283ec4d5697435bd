/* A model on a cluster with other figures: the rate of every NIC, the number of nodes, the batch of a device. Each
 * figure changes as in a sweep (sweep.h says what a change means); several can change at once. */
#ifndef TUNER_PREDICT_WHAT_IF_H
#define TUNER_PREDICT_WHAT_IF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tuner/predict/sweep.h"

/* 0: as it is. */
struct what_if {
    double gbit_per_s; /* of every NIC */
    uint64_t nodes;    /* with devices */
    double batch;      /* samples that a device takes in an iteration */
};

enum { WHAT_IF_MOST_NODES = 1024 };
#define WHAT_IF_LEAST_RATE  1e-3
#define WHAT_IF_MOST_RATE   1e6
#define WHAT_IF_LEAST_BATCH 1e-3
#define WHAT_IF_MOST_BATCH  1e6

/* The figures as the model and the cluster have them; the rate is that of the slowest NIC. */
struct what_if what_if_of(const struct model *model, const struct cluster *cluster);

/* Whether it changes anything. A rate changes something where NICs have different rates, too. */
bool what_if_changes(const struct what_if *what_if, const struct model *model, const struct cluster *cluster);

/* Whether measured curves of the cluster are left out, because they hold for its own network alone. */
bool what_if_drops_measurements(const struct what_if *what_if, const struct model *model,
                                const struct cluster *cluster);

/* The model and the cluster with these figures; what is not changed is a copy. Release with sweep_point_release. Fails:
 * ST_USAGE (a figure is out of its range), and as sweep_apply. */
enum status what_if_apply(const struct what_if *what_if, const struct model *model, const struct cluster *cluster,
                          struct sweep_point *out, struct error *err);

#endif
