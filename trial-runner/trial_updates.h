/* What a trial tells of its updates, where the strategy has a "consistency" (strategy/consistency.h), from the worker's
 * lines. All is of measured rounds: an iteration of such a trial is a round of so many applied updates as there are
 * workers, whoever they came from.
 * Units: microseconds (_us). */
#ifndef TRIAL_RUNNER_TRIAL_UPDATES_H
#define TRIAL_RUNNER_TRIAL_UPDATES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TRIAL_DELAYS = 64 };

struct trial_update_worker {
    uint32_t iterations; /* that it computed, also those that warm up */
    double mean_us;      /* from one to the next */
};

/* Of a server that died, and the replica that went on. */
struct trial_takeover {
    bool given;
    double silent_us, took_us;              /* until the server was taken for dead; then until the replica served */
    double server_updates, replica_updates; /* in the newest model that a worker had, and in the replica's */
    double divergence, bound; /* of these models at most, and of any; in norms of a typical update, as the next */
    double distance;          /* of their weights; NAN where nothing is learned */
    double recovered;         /* updates that the workers sent the replica then */
    double unordered;         /* those of them of which the replica did not know the order */
    double compared;          /* models that workers had, which the replica came by, and found equal */
};

struct trial_updates {
    double useful;          /* applied updates */
    double summed;          /* those of them that came in sums of an aggregator */
    double passed;          /* models that workers got from another worker's node */
    double dropped, late;   /* those that were not: by the scheduler, at the worker; by a server, over the bound */
    double copies;          /* updates that a replica was sent */
    double divergence_most; /* of the replica, in norms of a typical update */
    double window_us;       /* in which they came */
    double delay_mean, delay_variance, delay_largest; /* of applied updates */
    /* How many had delay 0, 1, ..., TRIAL_DELAYS - 1 or more; of several messages, the updates of each. */
    double of_delay[TRIAL_DELAYS];
    uint32_t n_workers;
    struct trial_update_worker *workers; /* [n_workers], by device */
    struct trial_takeover takeover;
};

/* NULL when memory is out. */
struct trial_updates *trial_updates_new(uint32_t n_workers);
void trial_updates_free(struct trial_updates *updates); /* NULL is allowed */

/* Take the line if its event is one of updates; a line that makes no sense changes nothing. */
void trial_updates_take(struct trial_updates *updates, const char *event, const cJSON *line);

/* Add the member "updates" with all but the workers: {"useful", "dropped", "late", "summed", "passed", "copies",
 * "divergence_most", "dropped_share", "useful_per_s", "window_us", "delay_mean", "delay_variance", "delay_largest",
 * "delays": [...]}, which trial_updates_take reads again as an event of that name. Returns the member; NULL when memory
 * is out. */
cJSON *trial_updates_write(const struct trial_updates *updates, cJSON *to);

/* Add the member "takeover" with all of it. False when memory is out. */
bool trial_takeover_write(const struct trial_takeover *takeover, cJSON *to);

/* Useful updates a second, the time between two of them, and the share of updates that were dropped or late; 0 of
 * none. */
double trial_updates_rate(const struct trial_updates *updates);
double trial_updates_each_us(const struct trial_updates *updates);
double trial_updates_dropped(const struct trial_updates *updates);

#endif
