/* A session whose trials others run, without a service. Any number of processes on this machine ask for trials and
 * report them, one process at a time. Between calls the session is in the dataset alone.
 *
 * Each call waits until it may write to the file, and reads the session anew from its records.
 * assignments.h says who has which trial. No process runs all the time, so leases end by the wall clock: a clock that
 * is set forward by more than a lease ends it. Units: microseconds. Threads: each call belongs to its thread. */
#ifndef TUNER_SESSION_ASKING_H
#define TUNER_SESSION_ASKING_H

#include <stdatomic.h>

#include "base/error.h"
#include "dataset/store.h"
#include "tuner/learn/rankers.h"
#include "tuner/session/assignments.h"
#include "tuner/session/session.h"

/* Open a dataset that is there for writing, as soon as nobody else has it. Fails: ST_CONFLICT when somebody still has
 * it after patience_us, ST_CANCELLED, ST_NOT_FOUND, as store_open. */
enum status asking_open(const char *path, double patience_us, const atomic_int *cancel, struct store **out,
                        struct error *err);

/* As store_session_get; the message for a session that is not there names the command that lists them. */
enum status asking_find(struct store *store, const char *session, struct arena *arena, struct stored_session *out,
                        struct error *err);

/* The caller's function that finds the limits of a session's job (struct session_options), to which the search keeps.
 * *limits stays the caller's to release; a function that leaves it as it is sets no limits. */
typedef enum status asking_limits(void *context, const struct job_options *job, const struct export_limits **limits,
                                  struct error *err);

/* A session with what it is about, as the dataset has it now. */
struct asking {
    struct store *store;
    struct model model;
    struct cluster cluster;
    struct stored_ranker ranker;
    struct tune_options options;
    struct session *engine;
    struct arena arena; /* texts of the options and of `stored` */
    struct stored_session stored;
    enum session_step step; /* why no more than n were given: see session_suggest */
    size_t n;
    struct assignment trials[ASSIGNMENTS_MOST]; /* that were taken */
    struct assignments waiting;                 /* that can be taken */
};

/* End the leases of a session that have run out. */
enum status asking_expire(struct store *store, const char *session, struct error *err);

/* Read it as it is. `limits` may be NULL. Release with asking_release; {0} is allowed. Fails: ST_NOT_FOUND, ST_CONFLICT
 * (a session whose own process runs the trials), as session_resume. */
enum status asking_load(struct asking *out, struct store *store, const char *session, asking_limits *limits,
                        void *context, struct error *err);
void asking_release(struct asking *asking);

/* Take up to `count` trials for `client`, for `lease_us`: those that came back, then new ones, which may take a second
 * each to suggest. trials[0..n) are written when this returns; a session that is over is marked so. Fails: ST_CONFLICT
 * (it has ended or is paused), as session_suggest and the store. */
enum status asking_take(struct asking *asking, const char *client, size_t count, double lease_us, struct error *err);

/* How many samples an iteration of the session's job takes on all devices, as job_samples. Fails: ST_NOT_FOUND. */
enum status asking_samples(struct store *store, const char *session, double *out, struct error *err);

/* The lease lasts lease_us from now; `until` has room for 32. Fails: ST_NOT_FOUND (no such session or trial),
 * ST_CONFLICT (it has ended, its lease had run out, or somebody else has it: the message says which, and until
 * when). */
enum status asking_renew(struct store *store, const struct holder *holder, double lease_us, char *until,
                         struct error *err);

/* The trial has ended. Fails as asking_renew, and ST_INVALID when it is complete with fewer than JOB_LEAST iterations:
 * this is the rule for jobs of the user (trial-runner/job.h says why). */
enum status asking_end(struct store *store, const struct holder *holder, const struct tune_outcome *outcome,
                       struct error *err);

#endif
