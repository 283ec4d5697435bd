/* A session's budget and options as the dataset keeps them: two JSON texts of its row (struct stored_session), read and
 * written here alone.
 *
 * Members that only a newer version knows are ignored when read, and kept when the text is written again.
 * Units: microseconds. */
#ifndef TUNER_SESSION_SESSION_OPTIONS_H
#define TUNER_SESSION_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "dataset/store.h"
#include "strategy/strategy.h"

struct session_budget {
    uint64_t trials;  /* 0: no limit */
    double time_us;   /* running time, without pauses between runs; 0: no limit */
    double gap;       /* stop when the best is within this of the lower bound; 0: never */
    double used_us;   /* by its runs before the last one */
    char resumed[32]; /* UTC: when the last run began; "": it is the first */
};

/* Fails: ST_INVALID, with the place. */
enum status session_budget_read(const struct stored_session *session, struct session_budget *out, struct error *err);

/* Write the budget as JSON. Unknown members of `before` (the text until now; NULL: none) are kept. malloc'd; NULL when
 * memory is out. */
char *session_budget_write(const struct session_budget *budget, const char *before);

/* False for a collection, which has no budget. */
bool session_budget_is_limited(const struct session_budget *budget);

/* How workers are started. Texts are borrowed; NULL: the default. struct launcher (trial-runner/launch.h) says what
 * they mean. */
#define RUNNER_COMMAND "command" /* the runner of struct job_options */
struct runner_options {
    const char *runner; /* "lab", "local", "mpirun", "slurm", "command" (RUNNER_COMMAND); needed */
    const char *hosts;  /* the runner's host file */
    const char *worker; /* "mpi", "nccl", or the path of a program */
    const char *partition, *account, *launch_options, *pass;
    bool share_gpu;
    const char *logs; /* a folder for what trials write; not kept here, but in struct job_options */
};

/* The user's own command in place of a worker program, and its options. Texts are borrowed; NULL: none. */
struct job_options {
    const char *command;
    const char *pattern, *unit;                  /* where its output has an iteration's time */
    const char *export_env, *export_to, *accept; /* forms of interop/export, and what they may lose */
    const char *label;                           /* what records call the command */
    bool publish;                                /* records have its whole text */
    double time_limit_us;                        /* of a trial; 0: by what is expected of it */
    const char *logs;                            /* a folder for what trials write */
};

/* What a session was opened with, beside its budget and seed. */
struct session_options {
    uint64_t final_rounds; /* repeats of each finalist */
    double trial_us;       /* how long one trial should measure; iterations follow from the prediction */
    double least_gain;     /* stop when no candidate promises to be faster by this share; 0: never */
    uint64_t weather;   /* trials run in the cluster's weather: the first in that of this seed; 0: on a quiet network */
    uint64_t earlier;   /* learn from so many trials of earlier sessions on this model and cluster; 0: from none */
    const char *ranker; /* its id in the dataset; NULL: none */
    const char *algorithms;     /* all that who runs its trials can execute (algorithms_parse); NULL: not said */
    enum sharded allow_sharded; /* the most that devices may keep a part of alone: a trainer must be able to do it */
    bool allow_lossy;           /* gradients may lose precision on their way, which changes what a model learns */
    uint64_t
        allow_stale; /* strategies of updates may be tried whose models are stale by so much: versions where a bound
                        drops what is later, iterations where workers wait (strategy/consistency.h); 0: none */
    uint64_t
        memory_bytes; /* of a device: strategies that need more are not tried; 0: what the cluster says, if it does */
    /* The bench before the first trial (service/hub.h): who has it, until when (UTC), and how often it was given out;
     * whether it is over: done, or given up. */
    const char *bench_client, *bench_until; /* NULL: nobody has it */
    uint64_t bench_attempt;
    bool bench_over;
    bool served; /* a service runs it, and goes on with it after a restart */
    struct runner_options launch;
    struct job_options job;
};

/* Members that the text lacks are zero. Texts lie in `arena`. Fails: ST_INVALID, with the place; ST_NO_MEMORY. */
enum status session_options_read(const struct stored_session *session, struct arena *arena, struct session_options *out,
                                 struct error *err);

/* As session_budget_write. */
char *session_options_write(const struct session_options *options, const char *before);

#endif
