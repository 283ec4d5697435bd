/* Run a plan for real: replay the compute, move every byte, time the iterations.
 *
 * Compute is a clock: a step ends at max(end of the step before, its gate opened) + step_us * compute_scale. The clock
 * decides, not the moment at which the program looks, so that delays of polling do not add up. On a GPU a step that
 * waits for messages is timed from its start. An iteration's time is that between the starts of two successive forward
 * passes on device 0. Gates wait for messages to which every device adds, so no device gets more than about an
 * iteration ahead of another, and over a run all take the same time. */
#ifndef TRIAL_RUNNER_WORKER_EXECUTE_H
#define TRIAL_RUNNER_WORKER_EXECUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/training.h"
#include "trial-runner/worker/world.h"

/* Failures on purpose, for tests of what the trial does then. */
enum execute_fault { FAULT_NONE, FAULT_SUM, FAULT_KILL, FAULT_HANG };

struct execute_options {
    uint32_t iterations, warmup;
    bool trace, verify, report;       /* report: JSON lines from device 0 */
    bool time_messages;               /* as the result's messages_us says */
    enum execute_fault fault;         /* strikes on the last device at the second iteration */
    uint64_t weather;                 /* seed of the weather (strategy/weather.h) in which devices compute; 0: none */
    struct training_options training; /* what workers learn; by MPI alone */
};

struct execute_result {
    double *time_us;  /* [iterations], for the caller to free; device 0's clock */
    uint64_t checked; /* sampled sums found right, over all devices */
    /* Of the device that has most: bytes of buffers that were in use at once, and by how much its process grew at most
     * in the run, which the library's own buffers are part of. On a GPU: the buffers of the whole run, and how much
     * less of its memory is left, without gradients and variables. 0 where they are not measured; on device 0 only. */
    uint64_t buffers_bytes, grown_bytes;
    double compute_us; /* median over iterations of what the operators took on device 0; 0 where it is not measured */
    /* [iterations], for the caller to free: from the start of the first message to the end of the last one on this
     * device, which sees a message start when its own gradient is there. NULL unless time_messages. */
    double *messages_us;
};

/* Collective over all ranks. *out is written on workers; checked on device 0 only. A wrong sum ends the job. */
void execute_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out);

#endif
