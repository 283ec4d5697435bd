/* Workers that send whole updates to servers, in virtual time: plans whose consistency is not plain
 * (strategy/consistency.h; MLfabric §2, §5 and §6).
 *
 * Each device is a worker: it pulls the model, computes (the plan's steps, times the node's scale and the weather), and
 * pushes its update, whole. A server applies updates one after another and counts versions. A worker asks for the model
 * when its update was applied or dropped.
 *
 * Without a scheduler transfers share the NICs as connections do. A server drops an update whose delay is above the
 * bound. Under stale_synchronous it answers a worker that has ended c iterations once the slowest has ended c - K.
 *
 * With a scheduler updates wait at their workers until the next multiple of batch_us, or until nothing else can come.
 * Those of a batch are ordered (strategy/updates/order.h), with the deadlines of the delay bound, and grouped
 * (strategy/updates/aggregate.h), on the rates that a monitor has reported and beside what is still on its way. What is
 * dropped is dropped at the worker. The others set out when it is their turn (strategy/updates/turns.h), and none of
 * them comes too late for its bound where there is one server. Pulls are batched and passed on as §10.3 has it. All
 * pass the NICs in turn, at the rates that these really have.
 *
 * With a replica the server applies updates in the order in which they were scheduled, and holds one until the replica
 * has followed to within the bound (the paper holds back the transfer of the batch's last update, §5.3). Every update
 * counts as one of norm 1.
 *
 * Synchronous: an iteration's updates make one version, and all workers then pull it.
 *
 * Nothing is random but the weather and how connections share (simulator/wire.h). Units: microseconds, bytes. Threads:
 * no state. */
#ifndef SIMULATOR_UPDATES_H
#define SIMULATOR_UPDATES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"

enum { UPDATES_DELAYS = 512, UPDATES_MAX_NODES = 512 };

/* What happened: a worker's computing, a transfer, or a port's new rate. */
enum updates_event_kind { UPDATES_COMPUTE, UPDATES_TRANSFER, UPDATES_RATE };

struct updates_event {
    enum updates_event_kind kind;
    const char *what;  /* of a transfer: "update", "sum of updates", "model", "copy", "sum of copies" */
    uint32_t worker;   /* of computing; of an update or a model, or UINT32_MAX */
    uint32_t from, to; /* nodes of a transfer; of computing and of a rate: from */
    double bytes;
    uint32_t direction; /* of a rate: enum direction (strategy/cluster.h) */
    double gbit_per_s;
    double start_us, end_us; /* of a rate: from when on */
};

struct updates_options {
    bool weather; /* of this seed; else NICs and workers are quiet */
    uint64_t seed;
    uint32_t rounds; /* of so many applied updates as there are workers; 0: UPDATES_ROUNDS. The first tenth does not
                        count */
    double until_us; /* and at least for so long */
    void (*iteration)(void *context, double us); /* for every iteration of a worker that counts; NULL: none */
    void (*record)(void *context, const struct updates_event *event); /* at its end; NULL: none */
    void *context;
};
enum { UPDATES_ROUNDS = 60 };

/* What counts. An update is a part for each server, by its share of the bytes, so numbers of updates are no whole
 * numbers where there are several servers. */
struct updates_prediction {
    uint32_t workers;
    double us;            /* simulated time */
    double applied;       /* updates */
    double dropped, late; /* by the scheduler, at the worker; by a server */
    double delay_sum, delay_squares;
    uint64_t delay_most;
    double delays[UPDATES_DELAYS]; /* updates by delay; the last: that or more */
    double iteration_sum_us;       /* of workers, from one model to the next */
    uint64_t iterations;
    double in_bytes, out_bytes, between_bytes; /* into servers, out of them, between other nodes */
    double replica_bytes;                      /* into the replica */
    double divergence_most; /* of the replica, in norms of an update: the bound of strategy/updates/replicate.h */
    uint64_t transfers, slow_transfers; /* between other nodes; those whose receiving NIC has less than half its rate */
};

/* Time in which as many updates are applied as there are workers: what an iteration is to a synchronous strategy.
 * INFINITY where none is applied. */
double updates_round_us(const struct updates_prediction *prediction);
double updates_delay_mean(const struct updates_prediction *prediction);
double updates_delay_variance(const struct updates_prediction *prediction);

/* Of all updates, those that were dropped or late; 0 of none. */
double updates_share_dropped(const struct updates_prediction *prediction);

/* Add the counts of another run of the same plan. */
void updates_prediction_add(struct updates_prediction *sum, const struct updates_prediction *more);

/* Add it to a prediction as the member "updates" (updates_json.c); false when memory is out. */
bool updates_prediction_write(const struct updates_prediction *prediction, cJSON *to);

/* Read what updates_prediction_write wrote, from the place of that member. The member does not say how many workers
 * there are, and of their iterations only the mean: out->workers is 0, out->iterations 1. Fails: ST_INVALID. */
enum status updates_prediction_read(const struct json_at *at, struct updates_prediction *out, struct error *err);

/* Fails: ST_INVALID (a plain plan), ST_TOO_LARGE (nodes), ST_NO_MEMORY, and as work_check. */
enum status updates_run(const struct plan *plan, const struct cost *cost, const struct updates_options *options,
                        struct updates_prediction *out, struct error *err);

#endif
