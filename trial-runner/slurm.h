/* Slurm's srun: its command line, within an allocation or with one of its own, and a run that leaves no step behind.
 *
 * srun itself starts the ranks, through PMIx. Slurm 22.05 and Open MPI 4.1, as Debian builds them, both speak PMIx.
 * PMI2 does not work there, because that Open MPI is built without it. mpirun within an allocation works too and starts
 * its daemons by srun: that is the launcher "mpirun". trial-runner/slurm.c says why each setting is there. */
#ifndef TRIAL_RUNNER_SLURM_H
#define TRIAL_RUNNER_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "trial-runner/hosts.h"
#include "trial-runner/process.h"

struct slurm_config {
    size_t n_hosts; /* tasks go host by host in this order */
    const struct host *hosts;
    bool allocated;         /* we run within an allocation (SLURM_JOB_ID) that has these hosts; else ask for one */
    unsigned gpus_per_node; /* to ask for; 0: none. Only without an allocation */
    double time_limit_s;    /* Slurm ends what is still there about a minute later; 0: none */
    const char *partition, *account; /* of an allocation of our own; NULL: Slurm's defaults */
    const char *options;             /* more words for srun, divided by white space, which override ours; NULL: none */
    const char *const *export; /* NULL-terminated variables that the ranks get, by name or as NAME=value; NULL: none */
    const char *const *argv;   /* the program and its arguments, NULL-terminated */
};

/* Are we inside an allocation? */
bool slurm_allocated(void);

/* What srun calls itself, "slurm-wlm 22.05.8", where it is installed and finds its cluster. Fails: ST_NOT_FOUND,
 * ST_ENVIRONMENT. */
enum status slurm_check(char *version, size_t n, struct error *err);

/* Can it start ranks through PMIx? */
bool slurm_has_pmix(void);

/* The command line, NULL-terminated, in the arena. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status slurm_command(const struct slurm_config *config, struct arena *arena, const char *const **out,
                          struct error *err);

/* Run that command line. options->argv, scratch, grace_s and environment are ignored. With an allocation of our own the
 * limits of *options begin with the first line: before it the job may wait in the queue, for as long as it takes.
 * Whatever ends the run, srun gets the time to end its step. Fails: as process_run. */
enum status slurm_run(const struct slurm_config *config, const char *const *command,
                      const struct process_options *options, struct process_result *out, struct error *err);

/* Where the text begins in a line of `srun --label`, "12: text"; 0 for other lines. */
size_t slurm_label_length(const char *line);

#endif
