/* What an iteration takes in a cluster's weather (strategy/weather.h): a mean over seeds, with its interval, and how
 * long the slow iterations are. Seeds are common: two strategies that are given the same options meet the same weather.
 * Units: microseconds. */
#ifndef SIMULATOR_EXPECTATION_H
#define SIMULATOR_EXPECTATION_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "simulator/timeline.h"
#include "simulator/updates.h"

struct expectation_options {
    uint64_t first_seed; /* 0: 1 */
    uint32_t seeds;      /* this many, from first_seed on; 0: EXPECTATION_SEEDS */
    uint32_t iterations; /* simulate exactly so many iterations of each; 0: until_us counts */
    double until_us; /* simulate each for so long; 0: EXPECTATION_CHANGES changes of drawn rates or flows, or one round
                        of a recording, and at least EXPECTATION_ITERATIONS quiet iterations */
};
enum { EXPECTATION_SEEDS = 8, EXPECTATION_CHANGES = 20, EXPECTATION_ITERATIONS = 50 };

struct expectation {
    double mean_us;         /* time over iterations, of all seeds together */
    double low_us, high_us; /* 95% interval of the mean, from how the seeds differ (Student's t); of one seed, which has
                               none, the mean */
    double p95_us;          /* 95% of the iterations are shorter */
    double until_us;        /* simulated of each seed */
    uint32_t seeds;
    uint64_t iterations; /* of all seeds */
};

/* `quiet_us` is what timeline_run predicts without weather. Fails: as timeline_run, and ST_NO_MEMORY. */
enum status expectation_run(struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                            double quiet_us, const struct expectation_options *options, struct expectation *out,
                            struct error *err);

/* The same for a plan with updates (simulator/updates.h): mean_us is that of a round, p95_us of a worker's iterations;
 * the counts of all seeds go into *sum. Without weather there is one run, of options->iterations rounds. Fails: as
 * updates_run, and ST_NO_MEMORY. */
enum status expectation_run_updates(const struct plan *plan, const struct cost *cost,
                                    const struct expectation_options *options, struct expectation *out,
                                    struct updates_prediction *sum, struct error *err);

/* One seed has no interval. */
bool expectation_has_interval(const struct expectation *expected);

/* Add it to an object as the member "in_weather", without an interval where it has none; false when memory is out. */
bool expectation_write(const struct expectation *expected, cJSON *to);

/* Read what expectation_write wrote, from the place of that member. Fails: ST_INVALID. */
enum status expectation_read(const struct json_at *at, struct expectation *out, struct error *err);

#endif
