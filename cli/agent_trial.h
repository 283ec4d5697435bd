/* One trial of a service, run here: taken, run while its lease is kept, and its end delivered once.
 * Units: microseconds (_us). */
#ifndef CLI_AGENT_TRIAL_H
#define CLI_AGENT_TRIAL_H

#include <stdbool.h>

#include "cli/keeper.h"
#include "tuner/session/runners.h"

/* Who runs it, and on what; borrowed. */
struct agent_place {
    const struct remote_options *remote;
    struct client *client; /* must not be cut off by `interrupted` */
    const char *name, *session;
    double lease_us;
    const atomic_int *interrupted;
    const struct inputs *inputs;
    struct runner *runner;
};

/* Run a trial of the service's suggestions (one of "trials" in the answer to :suggest). The outcome is sent until the
 * service has taken it, however long the service is away. Every try has the same key, so it counts once. A trial that
 * is interrupted is given back. Fails: ST_CANCELLED (interrupted), ST_UNREACHABLE (the service will not have it),
 * ST_INVALID (its strategy), and what keeps this machine from running any trial; the trial is given back then too. */
enum status agent_trial_run(const struct agent_place *place, const cJSON *suggestion, struct error *err);

#endif
