/* Real runs for the commands: a runner's name from the command line, made into what a session calls. */
#ifndef TUNER_RUNNERS_H
#define TUNER_RUNNERS_H

#include <signal.h>
#include <stdint.h>

#include "base/error.h"
#include "trial-runner/trial.h"
#include "tuner/trials.h"

struct runner {
    struct trial_runner place;
    const struct model *model;
    const struct cluster *cluster;
    const volatile sig_atomic_t *cancel;
    struct trial_result last;                                            /* what the session's outcome borrows */
    void (*on_iteration)(void *context, uint32_t index, double time_us); /* as in trial_request; NULL, both */
    void (*on_interval)(void *context, const struct trial_interval *interval);
    void *context;
};

/* `word` is lab, local or mpirun; `hosts` a host file for mpirun, or NULL. Says at once what is missing for it here.
 * Fails: ST_USAGE, ST_ENVIRONMENT. */
enum status runner_init(struct runner *out, const char *word, const char *hosts, const struct model *model,
                        const struct cluster *cluster, const volatile sig_atomic_t *cancel, struct error *err);
void runner_release(struct runner *runner);

/* The set of 1u << ALGORITHM_... that the worker program can execute. */
uint32_t runner_algorithms(const struct runner *runner);

struct tune_runner runner_for_session(struct runner *runner); /* borrows */

#endif
