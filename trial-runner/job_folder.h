/* What a job is given of a strategy: a folder with strategy.json and the forms of interop/export in which devices keep
 * the same parts (ddp.json, horovod.env, ...), and variables for its environment.
 * Threads: functions have no state. */
#ifndef TRIAL_RUNNER_JOB_FOLDER_H
#define TRIAL_RUNNER_JOB_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/export/limits.h"

enum { JOB_MAX_FORMS = 8, JOB_PATH = 4096 };

/* Make LOGS/trial-NUMBER, or LOGS/trial-NUMBER.2 and so on where that is there, and LOGS itself. *out is an absolute
 * path. Fails: ST_ENVIRONMENT. */
enum status job_folder_make(const char *logs, uint64_t number, char out[JOB_PATH], struct error *err);

/* Write strategy.json and the forms into it, without those in which the job would need other memory than the strategy
 * promises (export_check_memory): the job must not take these by mistake. The forms of `limits`, which have been
 * checked and may accept that, are written, and what goes beside them; NULL: none. Fails: ST_ENVIRONMENT, ST_NO_MEMORY,
 * ST_INFEASIBLE (the strategy cannot be lowered here). */
enum status job_folder_write(const char *folder, const struct export_limits *limits, const struct strategy *strategy,
                             const struct model *model, const struct cluster *cluster, struct error *err);

/* The facts that a job gets as variables. The names of the variables must not be those of options (SYNCOPATE_ and the
 * option in capitals): a syncopate command that the job calls would take them as its own options. */
struct job_facts {
    const char *folder;
    uint64_t number, iterations, warmup;
};

/* "NAME=value" texts, NULL-terminated, in the arena: SYNCOPATE_TRIAL_DIR, _STRATEGY, _TIMES, _NUMBER, _ITERATIONS and
 * _WARMUP, and what the .env files of these forms set; a value that is the name of one of their files
 * becomes its path. Fails: as job_folder_write, and ST_INFEASIBLE (a form that would not be written there). */
enum status job_environment(const struct job_facts *facts, size_t n_forms, const struct exporter *const *forms,
                            const struct export_limits *limits, const struct strategy *strategy,
                            const struct model *model, const struct cluster *cluster, struct arena *arena,
                            const char *const **out, struct error *err);

#endif
