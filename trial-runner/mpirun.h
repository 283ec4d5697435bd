/* Open MPI's mpirun: its command line for this host, a lab, or other hosts, and a start that may hang once.
 *
 * Settings are those that were seen to matter with Open MPI 4.1; trial-runner/mpirun.c says why for each. */
#ifndef TRIAL_RUNNER_MPIRUN_H
#define TRIAL_RUNNER_MPIRUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "trial-runner/hosts.h"
#include "trial-runner/lab.h"
#include "trial-runner/process.h"

enum mpirun_place { MPIRUN_LOCAL, MPIRUN_LAB, MPIRUN_HOSTS };

struct mpirun_config {
    enum mpirun_place place;
    size_t n_hosts; /* ranks go host by host in this order; MPIRUN_LOCAL adds up the slots */
    const struct host *hosts;
    const char *const *export; /* NULL-terminated variables that the ranks get too, by name or as NAME=value; or NULL */
    bool survives;             /* a rank that dies does not end the others */
    const char *options;       /* more words for mpirun, divided by white space; NULL: none */
    const char *const *argv;   /* the program and its arguments, NULL-terminated */
};

/* The command line, NULL-terminated, in the arena. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status mpirun_command(const struct mpirun_config *config, struct arena *arena, const char *const **out,
                           struct error *err);

/* Run that command line, in `lab` for MPIRUN_LAB. options->argv is ignored; options->first_line_timeout_s bounds the
 * start, and a start that stays silent for so long is tried once more. *starts (may be NULL) says how many it took.
 * Fails: as process_run and lab_run. */
enum status mpirun_run(const struct mpirun_config *config, const char *const *command, const struct lab_config *lab,
                       const struct process_options *options, struct process_result *out, unsigned *starts,
                       struct error *err);

#endif
