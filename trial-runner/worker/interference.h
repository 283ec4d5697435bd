/* Measure how computing and messages slow each other, with plans that run as in trials.
 *
 * There are two loads: small messages, which consist of their startup, and large ones, whose bytes move. Each load is
 * run alone, as computing alone, and both together, in turn, for several rounds. Computing is what a trial's computing
 * is (execute.h), and lasts longer than the messages beside it. Messages go one at a time.
 *
 * Device 0 says for each round and load {"event":"interference","part":"startup" or "transfer","operation",
 * "algorithm","devices","bytes","messages","time_us","compute_us","messages_us","both_us","beside_us"}. time_us is that
 * of one message beside computing. The others are those of an iteration that only computes, of all its messages where
 * nothing computes, of an iteration with both, and of all its messages there. An iteration with both ends when its
 * computing ends. trial-runner/shares.h makes shares of these times. */
#ifndef TRIAL_RUNNER_WORKER_INTERFERENCE_H
#define TRIAL_RUNNER_WORKER_INTERFERENCE_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "trial-runner/worker/world.h"

/* Ring all-reduces of so many bytes and the time that one is expected to take. */
struct interference_load {
    uint64_t bytes; /* 0: the load is left out */
    double us;
};

struct interference_options {
    struct interference_load small, large;
    double limit_us; /* for all of it, about */
};

/* The largest of `n` loads of rising size of which a few fit into limit_us, and which take at least twice as long as
 * the first, so that bytes moving is most of their time; .bytes = 0 where there is none. */
struct interference_load interference_large(size_t n, const struct interference_load *loads, double limit_us);

/* Collective over the workers; the options are the same on all. Fails: as bench_plan_time. */
enum status interference_measure(const struct world *world, const struct interference_options *options,
                                 struct error *err);

#endif
