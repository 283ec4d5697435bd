/* The weather of a cluster: how its NICs and workers vary while training runs, drawn from the member "variability" of
 * its description.
 *
 * Weather is a function of a seed: the same seed gives every strategy the same weather, whatever it asks and in
 * whatever order. The settings that the README of this folder names C1 to C3 and N1 to N3 are those of MLfabric
 * (Viswanathan and Akella 2019, section 7). compute  Each worker (device) is slowed down with probability `share`, to
 * `factor` times its time: anew in every iteration, or for the whole run. A node waits for the slowest of its devices.
 *   network  Every `every_us` each NIC gets, independently in each direction, a rate drawn from a list. Or the rates
 *            are those of a recorded trace, which begins again when it is over.
 * Units: microseconds, 10^9 bits a second. Threads: plain data. */
#ifndef STRATEGY_WEATHER_H
#define STRATEGY_WEATHER_H

#include <stdint.h>

#include "strategy/cluster.h"

/* How many times its time a device, or a node, computes in this iteration: 1, or the slow factor. O(devices). */
double weather_device_slowness(const struct cluster *cluster, uint64_t seed, uint32_t device, uint64_t iteration);
double weather_slowness(const struct cluster *cluster, uint64_t seed, uint32_t node, uint64_t iteration);

/* The weather from time 0 on, change by change. Zero `next_us` and `n` and set the first two to begin. */
struct weather {
    const struct cluster *cluster; /* the caller's */
    uint64_t seed;                 /* the caller's */
    uint64_t n;                    /* changes so far; with drawn rates, periods */
    double *gbit_per_s;            /* the caller's memory: n_nodes * DIRECTION_COUNT rates, at 2 * node + direction */
};

/* The rates from time 0 on. */
void weather_begin(struct weather *weather);

/* When rates change next; INFINITY when they never do. */
double weather_next_us(const struct weather *weather);

/* Go on to the rates that hold from weather_next_us on. Drawn rates: O(nodes); a trace: O(1). */
void weather_advance(struct weather *weather);

#endif
