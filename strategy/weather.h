/* The weather of a cluster: how its NICs and workers vary while training runs, drawn from the member "variability" of
 * its description.
 *
 * Weather is a function of a seed: the same seed gives every strategy the same weather, whatever it asks and in
 * whatever order. The settings that the README of this folder names C1 to C3 and N1 to N3 are those of MLfabric
 * (Viswanathan and Akella 2019, section 7).
 *   compute     Each worker (device) is slowed down with probability `share`, to `factor` times its time: anew in every
 *               iteration, or for the whole run. A node waits for the slowest of its devices.
 *   network     Every `every_us` each NIC gets, independently in each direction, a rate drawn from a list. Or the rates
 *               are those of a recorded trace, which begins again when it is over.
 *   background  Flows of other jobs, from node to node. Drawn ones start as a Poisson process does, between any two
 *               nodes. Flows share a NIC by max-min, and on each NIC the job gets the share of one more flow that has
 *               no limit: beside two flows of 6 on a NIC of 10 the job gets 3.33, beside two of 1 it gets 8. The NIC's
 *               rate is that of `network`. A flow lasts as long as it would at its own rate, so the weather depends on
 *               nothing that the job does.
 * Units: microseconds, 10^9 bits a second, 10^6 bytes. Threads: plain data. */
#ifndef STRATEGY_WEATHER_H
#define STRATEGY_WEATHER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/cluster.h"

/* How many times its time a device, or a node, computes in this iteration: 1, or the slow factor. O(devices). */
double weather_device_slowness(const struct cluster *cluster, uint64_t seed, uint32_t device, uint64_t iteration);
double weather_slowness(const struct cluster *cluster, uint64_t seed, uint32_t node, uint64_t iteration);

/* Flows in the background at a time: what may be recorded, and the most that may be drawn on average, so that more than
 * the first never are. */
enum { BACKGROUND_MOST = 128, BACKGROUND_MEAN = 32 };

struct weather_flow {
    double start_us, end_us;
    uint32_t from, to; /* nodes */
    double gbit_per_s; /* the most that it takes */
};

/* How long a flow lasts. */
double background_flow_us(double mbytes, double gbit_per_s);

/* In this time so many changes can be expected; a recording shows all that it has. 0: no NIC changes. */
double weather_shows_us(const struct variability *variability, double changes);

/* Numbers in weather.gbit_per_s for each node. */
enum { WEATHER_NUMBERS = 2 * DIRECTION_COUNT };

/* The weather from time 0 on, change by change. Set the first three to begin. */
struct weather {
    const struct cluster *cluster; /* the caller's */
    uint64_t seed;                 /* the caller's */
    double *gbit_per_s; /* the caller's memory: n_nodes * WEATHER_NUMBERS. What is left at 2 * node + direction; behind
                           these the NICs' own rates */
    uint64_t n;         /* changes of these so far; with drawn rates, periods */
    struct rng rng;     /* of the flows */
    struct weather_flow coming, flows[BACKGROUND_MOST]; /* the next one; [n_flows] on their way, by rising start */
    uint32_t n_flows;
    uint64_t n_started;
};

/* The rates from time 0 on. */
void weather_begin(struct weather *weather);

/* When rates change next; INFINITY when they never do. O(flows on their way). */
double weather_next_us(const struct weather *weather);

/* Go on to the rates that hold from weather_next_us on. Drawn rates: O(nodes); a trace: O(1); with flows on their way
 * O(flows^2) more. */
void weather_advance(struct weather *weather);

/* How many changes of rates there are until then, at most. */
double weather_changes(const struct cluster *cluster, double until_us);

/* Add "until_us" and "changes", a recorded trace of it from 0 to until_us, which can stand as "network" in a
 * description (weather_json.c). False when memory is out. O(ports * changes). */
bool weather_write(const struct cluster *cluster, uint64_t seed, double until_us, cJSON *to);

/* Mean rates over n equal parts of from_us to to_us, for pictures: mean[port * n + k]. O(ports * (n + changes until
 * to_us)). Fails: ST_NO_MEMORY. */
enum status weather_means(const struct cluster *cluster, uint64_t seed, double from_us, double to_us, size_t n,
                          double *mean, struct error *err);

#endif
