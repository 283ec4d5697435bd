/* Real runs, for commands and the service: struct runner_options becomes a struct runner, which runs each trial of a
 * session by a worker program or by the user's own command.
 * Units: microseconds (_us), seconds (_s). Threads: a struct runner belongs to one thread at a time. */
#ifndef TUNER_SESSION_RUNNERS_H
#define TUNER_SESSION_RUNNERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "trial-runner/job.h"
#include "trial-runner/trial.h"
#include "tuner/session/session_options.h"
#include "tuner/session/trials.h"

struct runner {
    struct launcher place;
    struct job *job;    /* borrowed: each trial is this command, whatever `place` is; NULL: the worker program */
    double job_limit_s; /* of each; 0: by what is expected of it */
    const struct model *model;
    const struct cluster *cluster;
    const atomic_int *cancel;
    struct training_options training;                                    /* as in trial_request */
    struct trial_result last;                                            /* what the session's outcome borrows */
    void (*on_iteration)(void *context, uint32_t index, double time_us); /* as in trial_request; NULL, both */
    void (*on_interval)(void *context, const struct trial_interval *interval);
    void *context;
};

/* What the options mean on this cluster; borrows them. Checks at once that everything it needs is here. Fails:
 * ST_USAGE, ST_INVALID, ST_NOT_FOUND, ST_ENVIRONMENT. */
enum status runner_place(const struct runner_options *options, const struct cluster *cluster, struct launcher *out,
                         struct error *err);

/* Whether the nodes' names can be hosts where they have to be: for mpirun and slurm, without a host file. Fails:
 * ST_INVALID. */
enum status runner_check_hosts(enum launcher_kind place, const char *host_file, const struct cluster *cluster,
                               struct error *err);

/* A sentence on who starts which worker program, where there was a choice; else nothing. */
void runner_tell(const struct launcher *place);

/* As runner_place. Release with runner_release. */
enum status runner_init(struct runner *out, const struct runner_options *options, const struct model *model,
                        const struct cluster *cluster, const atomic_int *cancel, struct error *err);

void runner_release(struct runner *runner);

/* What workers learn in a session's trials of updates: softmax regression, at a rate that makes a round's step the same
 * for any number of workers. */
struct training_options runner_session_training(const struct cluster *cluster);

/* Whether its workers can send whole updates (strategy/consistency.h). Fails: ST_INVALID. */
enum status runner_check_updates(const struct runner *runner, struct error *err);

/* Whether it can play the weather of its cluster. Fails: ST_INVALID. */
enum status runner_check_weather(const struct runner *runner, struct error *err);

/* The user's own command in place of the worker program; it is called RUNNER_COMMAND in records. */
void runner_init_job(struct runner *out, struct job *job, double limit_s, const struct model *model,
                     const struct cluster *cluster, const atomic_int *cancel);

/* The set of 1u << ALGORITHM_... that the worker program can execute. */
uint32_t runner_algorithms(const struct runner *runner);

struct tune_runner runner_for_session(struct runner *runner); /* borrows */

#endif
