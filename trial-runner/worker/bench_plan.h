/* Plans that the bench runs: a number of all-reduces, one after the other or at once, with or without compute beside
 * them.
 *
 * All gradients are ready when an iteration begins; then comes the compute, which waits for no message, in one step.
 * The next iteration begins when both have ended. */
#ifndef TRIAL_RUNNER_WORKER_BENCH_PLAN_H
#define TRIAL_RUNNER_WORKER_BENCH_PLAN_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"
#include "trial-runner/worker/world.h"

enum { BENCH_PLAN_WARMUP = 2 }; /* iterations that do not count */

struct bench_plan_shape {
    uint32_t messages; /* at least 1 */
    uint64_t bytes;    /* of each; a multiple of 4 */
    double compute_us;
    enum algorithm algorithm;
    enum encoding encoding; /* of all of them; the encoder's usual figure */
    enum policy policy;
    uint64_t credit_bytes;
};

struct bench_plan {
    struct model model;
    struct strategy strategy;
    struct plan plan;
};

/* Fails: ST_NO_MEMORY, and as plan_lower. */
enum status bench_plan_init(struct bench_plan *plan, const struct cluster *cluster,
                            const struct bench_plan_shape *shape, struct error *err);
void bench_plan_release(struct bench_plan *plan);

/* Median times over the iterations, after BENCH_PLAN_WARMUP others, of the plan of that shape. Collective over
 * the workers. messages_us: see execute.h; NULL is allowed. Fails: as bench_plan_init. */
enum status bench_plan_time(const struct world *world, const struct bench_plan_shape *shape, uint32_t iterations,
                            double *iteration_us, double *messages_us, struct error *err);

#endif
