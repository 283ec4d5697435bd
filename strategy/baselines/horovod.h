/* Horovod's fusion for any threshold and cycle: the baseline uses Horovod's defaults, an exporter works out the
 * thresholds that make given groups. */
#ifndef STRATEGY_BASELINES_HOROVOD_H
#define STRATEGY_BASELINES_HOROVOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

#define HOROVOD_FUSION_BYTES (UINT64_C(128) << 20)
#define HOROVOD_CYCLE_US     1000.0

/* The cycles that are tried: the default, and others of the autotuner's range of 1 to 100 ms. */
enum { HOROVOD_CYCLES = 5 };
extern const double horovod_cycles_us[HOROVOD_CYCLES];

/* Gradients in the order of readiness, and the cycle that takes each. */
struct horovod_queue {
    const struct model *model;
    uint32_t n; /* model->n_variables */
    uint32_t n_devices;
    uint32_t *variable;
    double *cycle;
};

/* Fails: ST_NO_MEMORY. */
enum status horovod_queue_fill(const struct model *model, const struct cluster *cluster, double cycle_us,
                               struct arena *arena, struct horovod_queue *out, struct error *err);

/* What a gradient counts against the threshold: its bytes, or gathered the touched rows of all devices. */
uint64_t horovod_counted_bytes(const struct horovod_queue *queue, uint32_t variable, bool gathered);

/* The strategy of a threshold and a cycle, sealed. Fails: ST_NO_MEMORY. */
enum status horovod_build(const struct model *model, const struct cluster *cluster, uint64_t fusion_bytes,
                          double cycle_us, struct strategy *out, struct error *err);

#endif
