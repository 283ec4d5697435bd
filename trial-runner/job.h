/* The user's own job as the trial: a command that trains with the strategy it is given and says how long its iterations
 * take.
 *
 * The command runs by /bin/sh with the folder and variables of trial-runner/job_folder.h. It should run
 * SYNCOPATE_TRIAL_WARMUP iterations that do not count and then SYNCOPATE_TRIAL_ITERATIONS that do, and tell the time of
 * each: by a line that the pattern finds; or, without a pattern, by a JSON line on standard output; or by JSON lines in
 * the file $SYNCOPATE_TRIAL_TIMES, which is read as it grows (trial-runner/job_times.h). Where both come, the first to
 * come counts. A job that goes on after the last time that is wanted is ended.
 *
 * Its exit code says how it ended. 0: complete. JOB_INFEASIBLE: this strategy cannot run there, and the last line of
 * the output says why. Any other: failed. A job that is too slow, out of time or interrupted gets SIGTERM, with its
 * process group, and JOB_GRACE_S later SIGKILL; so does whatever a job leaves running. All its output is in output.log
 * in its folder. Threads: a struct job belongs to one thread at a time. */
#ifndef TRIAL_RUNNER_JOB_H
#define TRIAL_RUNNER_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/export/limits.h"
#include "trial-runner/job_folder.h"
#include "trial-runner/job_times.h"
#include "trial-runner/trial.h"

/* A trial has at least JOB_LEAST iterations, whether --command runs it or "session complete" reports it, unless fewer
 * were asked for (a session asks for more). With one or two iterations a single disturbed one decides the median, and
 * the search would take the strategy for slow. */
enum {
    JOB_INFEASIBLE = 3, /* exit code */
    JOB_LEAST = 3,
    JOB_GRACE_S = 5,
    JOB_FINISH_S = 5 /* to end by itself after the last iteration */
};

enum { JOB_LABEL = 64 };

struct job {
    const char *command;
    const char *label; /* what records call it; NULL: its program's name */
    bool publish;      /* records have the whole command, for all who may read them; it may have keys in it */
    struct job_times times;
    size_t n_forms; /* whose variables are set in its environment */
    const struct exporter *forms[JOB_MAX_FORMS];
    struct export_limits limits; /* what these forms cannot say is infeasible; n = 0: none */
    const char *logs;            /* folder for a folder a trial; NULL: nothing is kept */
    bool heard; /* a trial gave a time: a later trial without times has failed, and the pattern is not wrong */
};

/* The base name of the program that a command starts with, behind assignments and "exec": "train.sh" of
 * "KEY=x exec ./train.sh --fast". Where only a shell could find the name in the text, the label is "command". */
void job_label(const char *command, char out[JOB_LABEL + 1]);

/* How many samples an iteration takes on all devices together, by which a rate becomes a time; 0: unknown. */
double job_samples(const struct model *model, const struct cluster *cluster);

/* As trial_run; launcher, fault and on_interval of the request do not count. Fails also with ST_NOT_FOUND when the
 * shell cannot start the command, and with ST_INVALID when the first job ended well and no time was found in what it
 * said. */
enum status job_run(struct job *job, const struct trial_request *request, uint64_t number, struct trial_result *out,
                    struct error *err);

#endif
