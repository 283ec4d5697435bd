/* Start the worker program on a cluster and read its JSON lines: what trials and measurements share.
 *
 * Launchers:
 *   local    all ranks on this host; links are the host's memory: good for tests, not for figures
 *   lab      all ranks on this host, each node of the cluster with a namespace and links of its own
 *   mpirun   on the machines that the nodes' names or a host file name: by ssh, or by srun within Slurm's allocation
 *   slurm    on such machines by srun, within an allocation or with one for each run
 *
 * Ranks are numbered node by node: a node's devices and then, if it serves, one server. On other machines they get the
 * environment variables of trial-runner/passed.h.
 *
 * The worker is syncopate-worker-mpi or -nccl beside the running program, or another program that was named
 * (launcher_choose); on other machines it must lie at the same path. Device k of a node is its GPU k; with
 * `share_gpu` all are one GPU, which the worker learns from SYNCOPATE_SHARE_GPU=1.
 * Threads: each call belongs to its thread; any number at a time. */
#ifndef TRIAL_RUNNER_LAUNCH_H
#define TRIAL_RUNNER_LAUNCH_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "trial-runner/lab.h"
#include "trial-runner/process.h"
#include "trial-runner/transcript.h"

/* X(name, word) */
#define LAUNCHER_TABLE(X)                                                                                              \
    X(LAUNCHER_LOCAL, "local")                                                                                         \
    X(LAUNCHER_LAB, "lab")                                                                                             \
    X(LAUNCHER_MPIRUN, "mpirun")                                                                                       \
    X(LAUNCHER_SLURM, "slurm")

enum launcher_kind {
#define X(name, word) name,
    LAUNCHER_TABLE(X)
#undef X
};

enum trial_worker { TRIAL_WORKER_MPI, TRIAL_WORKER_NCCL };

/* Where and by what program ranks are started, and which worker they run. NULL: the default. */
struct launcher {
    enum launcher_kind kind;
    enum trial_worker worker;
    bool for_gpus;              /* nobody asked for the NCCL worker: it was chosen because the devices are GPUs */
    const char *program;        /* the worker program; NULL: that of `worker` beside the running one */
    bool share_gpu;             /* many ranks on one GPU */
    const char *host_file;      /* mpirun, slurm: a host a line, in the order of the nodes, in place of their names */
    const char *logs;           /* folder for a file a run with what the ranks said */
    const char *partition;      /* slurm, of its own allocations */
    const char *account;        /* likewise */
    const char *launch_options; /* mpirun, slurm: more options of mpirun or srun */
    const char *pass;           /* mpirun, slurm: more variables that the ranks get, divided by commas */
};

/* A word of the table above. False for another. */
bool launcher_parse(const char *word, enum launcher_kind *out);
const char *launcher_name(enum launcher_kind kind);

/* Set `worker` by the word "mpi" or "nccl", or `program` by a path; `word` NULL: what SYNCOPATE_WORKER says. Without
 * "mpi" or "nccl" the worker is NCCL in three cases: a GPU is shared; the path ends in "-nccl"; or neither a word nor a
 * path was given, mpirun or slurm start ranks on a cluster whose devices are GPUs, and the NCCL program is there. Else
 * it is MPI. Fails: ST_USAGE. */
enum status launcher_choose(struct launcher *launcher, const char *word, const struct cluster *cluster,
                            struct error *err);
const char *trial_worker_name(enum trial_worker worker);

/* The path of the worker program, in the arena. Fails: ST_NOT_FOUND, ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status launch_worker_path(const struct launcher *launcher, struct arena *arena, const char **out,
                               struct error *err);

/* The lab that is like this cluster, borrowing its names. Fails: ST_NO_MEMORY. */
enum status launch_lab_of(const struct cluster *cluster, struct arena *arena, struct lab_config *out,
                          struct error *err);

/* Where a run's input files must lie for its first rank to see them. Under slurm the folder in which the command was
 * started, if it is writable, since nodes share it more often than /tmp. In the lab /tmp where TMPDIR is in /run or
 * /dev/shm, which the lab hides. Else NULL: TMPDIR. */
const char *launch_scratch_parent(const struct launcher *launcher);

struct launch_options {
    const struct cluster *cluster;
    const bool *serves; /* [n_nodes] nodes that get a server's rank beside their devices; NULL: none */
    const struct launcher *launcher;
    const char *const *arguments; /* of the worker, NULL-terminated */
    uint64_t weather;             /* seed; 0: the lab's rates stay */
    bool survives;                /* a rank that dies does not end the others; mpirun alone can do this */
    const char *title;            /* of the log */
    uint64_t number;              /* likewise; 0: none */
    double time_limit_s;          /* 0: none. Time in a queue does not count */
    const atomic_int *cancel;
    /* One JSON object with an "event"; false ends the run. */
    bool (*on_event)(void *context, const char *event, const cJSON *line);
    void *context;
};

struct launch_result {
    struct process_result process;
    char said[256];            /* the launcher's own sentence about a rank that died; "" when it left none */
    char log[TRANSCRIPT_PATH]; /* the file with what the ranks said; "" */
};

/* Run the workers to their end. A start by mpirun that stays silent is tried a second time. ST_OK means that they ran;
 * *out says how the run ended, and no process of it is left. Fails: ST_NOT_FOUND (worker program, mpirun, srun, host
 * file), ST_ENVIRONMENT (also where hosts or Slurm refuse us, so that another run would fail too), ST_INVALID (a lab
 * cannot be like this cluster), ST_NO_MEMORY. */
enum status launch_workers(const struct launch_options *options, struct launch_result *out, struct error *err);

/* Put the log's name behind a reason in n bytes, if there is a log. */
void launch_name_log(const struct launch_result *result, char *reason, size_t n);

/* As process_judge, but with the launcher's sentence where there is one, and the name of the log. */
enum status launch_judge(const struct launch_result *result, const char *what, struct error *err);

#endif
