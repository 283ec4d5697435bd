/* A trial: one real run of a strategy, and its result.
 *
 * The worker program lowers the strategy and executes the plan; the trial starts it, keeps every measured iteration's
 * time and ends it when asked, when its time is up, or when it is clearly too slow to matter. Whatever happens, no
 * process, namespace or file is left.
 * Units: microseconds (_us), seconds (_s).
 * Threads: each trial belongs to its thread. */
#ifndef TRIAL_RUNNER_TRIAL_H
#define TRIAL_RUNNER_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"
#include "trial-runner/launch.h"
#include "trial-runner/training.h"
#include "trial-runner/trial_training.h"
#include "trial-runner/trial_updates.h"

/* How a trial ended. */
enum trial_ending {
    TRIAL_COMPLETE,
    TRIAL_STOPPED_EARLY, /* slower than stop_if_slower_than_us; its times are kept */
    TRIAL_INFEASIBLE,    /* this strategy cannot run here */
    TRIAL_FAILED,        /* crash, hang, time limit, wrong sum */
    TRIAL_CANCELLED,
};

enum { TRIAL_HOPELESS_AFTER = 3 }; /* iterations, all slower than the bound */

/* What device 0 did in a measured iteration: a step of the plan, or a message from its start to its sum being there.
 * Of a message whose pull had a turn (plan->pulls_by_priority) also when its server announced the sum and when the pull
 * started; else 0. Times from the start of the run. */
struct trial_interval {
    bool message;
    uint32_t iteration, index; /* index: of the step or the message */
    double start_us, sum_us, pull_us, end_us;
};

struct trial_request {
    const struct model *model;
    const struct cluster *cluster;
    const struct strategy *strategy;
    struct launcher launcher;
    uint32_t iterations, warmup;
    uint64_t number;               /* within a session, for the log's name; 0: none */
    double time_limit_s;           /* of the whole trial; 0: none */
    double stop_if_slower_than_us; /* 0: never */
    const atomic_int *cancel;
    void (*on_iteration)(void *context, uint32_t index, double time_us);       /* may be NULL */
    void (*on_interval)(void *context, const struct trial_interval *interval); /* after the run; NULL: not traced */
    void *context;
    const char *fault;                /* worker's --fault, for tests; NULL */
    uint64_t weather;                 /* seed of the cluster's weather, in the lab, and of the batches; 0: none */
    struct training_options training; /* what workers learn; by the MPI worker alone */
};

struct trial_result {
    enum trial_ending ending;
    uint32_t n;       /* measured iterations, also of trials that did not complete */
    double *time_us;  /* [n] */
    double median_us; /* 0 when n = 0 */
    uint64_t checked; /* sampled sums found right */
    /* Of the device that has most: bytes of message buffers in use at once, and by how much its process grew; 0: not
     * measured. */
    uint64_t buffers_bytes, grown_bytes;
    struct trial_updates *updates; /* where the strategy has a "consistency"; else NULL */
    struct trial_training training;
    double wall_s;
    char *environment; /* JSON: MPI, ranks, host, kernel, processor, runner; the weather, and "updates" of
                          trial_updates_write, where there are any; NULL when no worker came up */
    char reason[512];  /* why it is not complete; "" when it is */
};

/* Whether this launcher can play the cluster's weather: only a lab can change its NICs, and only where no link has a
 * queue of its own. Fails: ST_INVALID. */
enum status trial_check_weather(const struct cluster *cluster, const struct launcher *launcher, struct error *err);

/* ST_OK means that *out says what happened, also where the trial failed. Fails: ST_NOT_FOUND (worker program, mpirun),
 * ST_ENVIRONMENT, ST_INVALID (the strategy breaks a rule, or a lab cannot be like this cluster), ST_NO_MEMORY. None of
 * these is a result of the trial. Release with trial_result_release. */
enum status trial_run(const struct trial_request *request, struct trial_result *out, struct error *err);
void trial_result_release(struct trial_result *result);

/* Set median_us from the times. Fails: ST_NO_MEMORY. */
enum status trial_find_median(struct trial_result *result, struct error *err);

#endif
