/* The options of commands that run the user's own job as the trial, and what is made of them. */
#ifndef CLI_JOB_OPTIONS_H
#define CLI_JOB_OPTIONS_H

#include "base/error.h"
#include "cli/inputs.h"
#include "interop/export/limits.h"
#include "trial-runner/job.h"
#include "tuner/session/runners.h"

#define JOB_LIMIT_OPTIONS(j)                                                                                           \
    {"export-to", OPTION_TEXT, &(j).export_to, "FORM,...",                                                             \
     "try only what these forms of \"strategy export\" express fully (default: those of --export-env; else all)"},     \
    {                                                                                                                  \
        "accept", OPTION_TEXT, &(j).accept, "LOSS,...",                                                                \
            "what these forms cannot express and the job does by itself, such as groups,partition"                     \
    }

/* How iteration times are found in a text. `where` names the text in the help, such as "its output". */
#define JOB_TIMES_OPTIONS(p, u, where)                                                                                 \
    {"pattern", OPTION_TEXT, &(p), "REGEX",                                                                            \
     "an iteration's time in a line of " where ", the number in ( and ) (default: JSON lines)"},                       \
    {                                                                                                                  \
        "unit", OPTION_TEXT, &(u), "s|ms|us|samples/s", "of that number (default: the unit written after it)"          \
    }

#define JOB_OPTIONS(j)                                                                                                 \
    {"command", OPTION_TEXT, &(j).command, "COMMAND",                                                                  \
     "run this for each trial, in place of a runner: your own job, which trains with the strategy that it is given"},  \
        JOB_TIMES_OPTIONS((j).pattern, (j).unit, "its output"),                                                        \
        {"export-env", OPTION_TEXT, &(j).export_env, "FORM,...",                                                       \
         "set the variables of these forms in its environment: horovod, byteps, bytescheduler, nccl"},                 \
        {"time-limit", OPTION_TIME, &(j).time_limit_us, "T",                                                           \
         "a command that takes longer has failed (default 10m and ten times what its iterations should take)"},        \
        {"label", OPTION_TEXT, &(j).label, "TEXT", "what records call the command (default: its program's name)"},     \
        {"publish-command", OPTION_FLAG, &(j).publish, NULL,                                                           \
         "put the command's whole text into records, for all who may read them (default: the label alone)"},           \
        JOB_LIMIT_OPTIONS(j)

/* The unit of a pattern's number; left alone without one. Fails: ST_USAGE (no such unit, or no pattern). */
enum status job_unit_read(const char *unit, const char *pattern, enum job_unit *out, struct error *err);

/* Whether typed options go together. The options of an earlier session are not checked again. Fails: ST_USAGE. */
enum status job_options_check(const struct job_options *options, struct error *err);

/* What the options mean; borrows them. */
struct job_setup {
    struct job job;
    struct export_limits limits; /* n = 0: none */
};

/* Fails: ST_USAGE. Release with job_setup_release; {0} is allowed. */
enum status job_setup_init(struct job_setup *out, const struct job_options *options, const struct inputs *inputs,
                           struct error *err);
void job_setup_release(struct job_setup *setup);

/* The job, or without one the runner of that name. What is missing for it, a folder for logs as well, is said at once.
 * `setup` goes with the runner and is released after it. Fails: ST_USAGE, as runner_init. */
enum status job_runner_init(struct job_setup *setup, const struct job_options *options,
                            const struct runner_options *runner, const struct inputs *inputs, const atomic_int *cancel,
                            struct runner *out, struct error *err);

#endif
