/* The bench that a service offers before a session's first trial (service/hub.h), run here.
 * Units: microseconds (_us), seconds (_s). */
#ifndef CLI_AGENT_BENCH_H
#define CLI_AGENT_BENCH_H

#include "cli/agent_trial.h"

/* What this agent has measured last: good for every session on that cluster. */
struct agent_measured {
    char of[ID_LENGTH + 1]; /* id of the description that was measured; empty: none yet */
    cJSON *json;            /* the same with the figures; cJSON_Delete */
};

/* Measure the place's cluster within about `limit_us`, unless *kept has its figures, and send them as `attempt`. A
 * bench that fails is told to the service, and the session goes on without. Fails: ST_CANCELLED (interrupted: the bench
 * is given back), as client_call. */
enum status agent_bench_run(const struct agent_place *place, uint64_t attempt, double limit_us,
                            struct agent_measured *kept, struct error *err);

#endif
