/* Start the worker program on a cluster and read its JSON lines: what trials and measurements share.
 *
 * Runners: local starts all ranks on this host (links are the host's memory: good for tests, not for figures); lab
 * gives the cluster's nodes namespaces and links of their own on this host; mpirun starts them on the machines that the
 * cluster's nodes name, or that a host file does. The worker is SYNCOPATE_WORKER, or syncopate-worker-mpi beside the
 * running program; on other machines it must lie at the same path.
 * Threads: each call belongs to its thread; any number at a time. */
#ifndef TRIAL_RUNNER_LAUNCH_H
#define TRIAL_RUNNER_LAUNCH_H

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "trial-runner/lab.h"
#include "trial-runner/process.h"

enum trial_place { TRIAL_LOCAL, TRIAL_LAB, TRIAL_MPIRUN };

struct trial_runner {
    enum trial_place place;
    const char
        *host_file; /* TRIAL_MPIRUN: a host a line, in the order of the nodes, in place of their names; or NULL */
    const char *interface; /* TRIAL_MPIRUN: network for the traffic ("10.0.0.0/16", "eth0"); NULL: MPI's choice */
};

/* "local", "lab", "mpirun". False for another word. */
bool trial_runner_parse(const char *word, enum trial_place *out);
const char *trial_runner_name(enum trial_place place);

/* The worker program, in the arena. Fails: ST_NOT_FOUND, ST_ENVIRONMENT. */
enum status launch_worker_path(struct arena *arena, const char **out, struct error *err);

/* The lab that is like this cluster, borrowing its names. Fails: ST_NO_MEMORY. */
enum status launch_lab_of(const struct cluster *cluster, struct arena *arena, struct lab_config *out,
                          struct error *err);

struct launch_options {
    const struct cluster *cluster;
    const bool *serves; /* [n_nodes] nodes that get a server's rank beside their devices; NULL: none */
    const struct trial_runner *runner;
    const char *const *arguments; /* of the worker, NULL-terminated */
    double time_limit_s;          /* 0: none */
    const volatile sig_atomic_t *cancel;
    /* One JSON object with an "event"; false ends the run. */
    bool (*on_event)(void *context, const char *event, const cJSON *line);
    void *context;
};

/* Run the workers to their end, a silent start twice. ST_OK says that they ran, *out how it ended; nothing of them is
 * left. Fails: ST_NOT_FOUND (worker program, mpirun), ST_ENVIRONMENT, ST_INVALID (a lab cannot be like this cluster),
 * ST_NO_MEMORY. */
enum status launch_workers(const struct launch_options *options, struct process_result *out, struct error *err);

/* As process_judge, but with mpirun's own sentence about a rank that died where it left one. */
enum status launch_judge(const struct process_result *result, const char *what, struct error *err);

#endif
