/* The sessions that the service serves: who runs which trial, and until when.
 *
 * A session's engine (tuner/session/session.h) decides what to try; clients take trials under a lease, renew it by
 * heartbeats, and report times. The dataset is the truth: every change is written there first, in the caller's
 * transaction, and the session in memory then catches up from what is written (hub_catch_up). So a crash, a failed
 * commit or a repeated request leaves nothing to mend, and a session that is not in memory is read again from its
 * records.
 *
 * A client's change is made in three steps, so that it shares its transaction with the answer that is kept for
 * repetitions of the request: hub_lock or hub_try; the change, between store_begin and store_end; hub_catch_up and
 * hub_unlock, whether it was committed or not. Whoever holds a session must not wait for another one. Units:
 * microseconds. Threads: any; what takes a locked session says so. */
#ifndef SERVICE_HUB_H
#define SERVICE_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"
#include "service/access.h"
#include "tuner/session/assignments.h"
#include "tuner/session/session.h"

struct hub;         /* opaque */
struct hub_session; /* a session in it */

struct hub_options {
    double lease_us; /* when a client asks for none */
    double idle_us;  /* how long a session stays in memory that nobody uses and of which no client has a trial */
};
struct hub_options hub_default_options(void);

/* Then hub_register for each launcher, then hub_start. Fails: ST_NO_MEMORY. */
enum status hub_open(struct access *access, const struct hub_options *options, struct hub **out, struct error *err);

/* Call changed(context, id) from now on when something was written about a session; NULL: no more. It may be called in
 * any thread, also while a session is locked, and must not come back to the hub. */
void hub_listen(struct hub *hub, void (*changed)(void *context, const char *session), void *context);

/* Every running lease begins anew, and sessions that the service was running itself go on. Fails: as the store. */
enum status hub_start(struct hub *hub, struct error *err);

/* The service stops: own trials and what the sessions' threads compute end soon. Then hub_close. */
void hub_halt(struct hub *hub);

/* Own trials are given back, to be run when the service is up again. NULL is allowed. */
void hub_close(struct hub *hub);

/* How trials of sessions have ended since the service started. A trial counts when the hub reads its end. */
enum hub_end { HUB_COMPLETE, HUB_FAILED, HUB_INFEASIBLE, HUB_CANCELLED, HUB_LOST, HUB_RETURNED, HUB_ENDS };
/* HUB_RETURNED counts trials that were given back, or whose lease ran out, and that were offered again. Threads: any.
 */
void hub_ends(struct hub *hub, uint64_t counts[HUB_ENDS]);

/* How many sessions are in memory. Threads: any. */
size_t hub_in_memory(struct hub *hub);

/* Register a launcher: on `cluster`, a whole id, the service may run trials itself, by `runner` and on `hosts`. The
 * texts are copied. Fails: ST_USAGE (no such runner, no whole id), ST_NO_MEMORY. */
enum status hub_register(struct hub *hub, const char *cluster, const char *runner, const char *hosts,
                         struct error *err);
/* Whether a launcher is registered for the cluster (a whole id). */
bool hub_has_launcher(struct hub *hub, const char *cluster);

/* A new session. hub_new may take a second and writes nothing; hub_record writes it, in the caller's transaction; then
 * hub_add, or hub_discard when nothing was written. The texts of `options` are borrowed for the call. */
struct new_session {
    const char *model, *cluster; /* whole ids */
    const char *ranker;          /* a name or id, "none", or NULL: the nearest domain's */
    const char *team, *shared;
    enum stored_session_mode mode; /* own: hub_has_launcher must hold */
    /* trials, time_us, gap, seed, final_rounds, trial_us, least_gain, earlier, allow_lossy, allow_sharded,
     * allow_stale, weather, memory_bytes, algorithms, job.export_to, job.accept */
    struct tune_options options;
};
enum status hub_new(struct hub *hub, const struct new_session *request, struct hub_session **out, struct error *err);
enum status hub_record(struct hub_session *session, struct store *store, struct error *err);
void hub_add(struct hub_session *session); /* then hub_drop */
void hub_discard(struct hub_session *session);
const char *hub_session_id(const struct hub_session *session);
bool hub_shards_in_vain(const struct hub_session *session); /* session_shards_in_vain; of a new one */
bool hub_is_own(const struct hub_session *session);         /* the service runs its trials, clients do not */

/* The seed of the weather of its first trials; 0: it is on a quiet network. It is awake. */
uint64_t hub_weather(const struct hub_session *session);

/* A session by its whole id, in memory from now on; give it back with hub_drop. Fails: ST_NOT_FOUND. */
enum status hub_find(struct hub *hub, const char *id, struct hub_session **out, struct error *err);
void hub_drop(struct hub_session *session); /* NULL is allowed */

void hub_keep(struct hub_session *session); /* one more reference, to be given back by one more hub_drop */

/* Lock it if nobody else has it. A thread that must not wait calls hub_wait after false, and does something else. */
bool hub_try(struct hub_session *session);

/* Wait until the session is free, and lock it: for threads that have nothing else to do. */
void hub_lock(struct hub_session *session);
void hub_unlock(struct hub_session *session);

/* Whether its engine is in memory; and read it from its records where it is not, which may take seconds. Locked. Fails:
 * as the store. */
bool hub_is_awake(const struct hub_session *session);
enum status hub_wake(struct hub_session *session, struct error *err);

/* Have run(context) called once, in any thread, when the lock is given up, to try again. If nobody has the lock, run is
 * called at once. The caller keeps `waiter` and its reference to the session until then; run may give the session back.
 */
struct hub_waiter {
    void (*run)(void *context);
    void *context;
    struct hub_waiter *next; /* the hub's */
};
void hub_wait(struct hub_session *session, struct hub_waiter *waiter);

/* To be called by a waiter that was called and is through with the session, or does not take it: calls the next waiter.
 */
void hub_pass(struct hub_session *session);

/* Bring the locked session up to what the dataset says of it and of its trials. Its engine leaves the memory where the
 * session is about another cluster now; hub_wake reads it again. Fails: as the store; it may then be called again. */
enum status hub_catch_up(struct hub_session *session, struct error *err);

/* Before anything is suggested or steered: where several services serve the dataset, the locked session is this one's
 * alone until it is unlocked, and what others did to it is seen. If they took trials, its engine leaves the memory, and
 * hub_wake reads it again. Fails: PROBLEM_OVERLOADED (another service has it for long), as hub_catch_up. */
enum status hub_search(struct hub_session *session, struct error *err);

/* Who is going to ask for trials can execute `algorithms` alone, a set of 1u << ALGORITHM_...: from now on the session
 * tries nothing else, also after a restart, and hub_make_ready cancels what waits for somebody who can do more. Its
 * engine may leave the memory. Locked, after hub_search. Fails: ST_CONFLICT (nothing is left that all who asked can
 * execute), as the store. */
enum status hub_narrow(struct hub_session *session, uint32_t algorithms, struct error *err);

/* Make sure that up to `count` trials can be taken; *ready is how many can, and *step says why there are not more.
 * Takes a second for each new one. Locked. Fails: ST_CONFLICT (the session has ended, or is paused), as
 * session_suggest. */
enum status hub_make_ready(struct hub_session *session, size_t count, size_t *ready, enum session_step *step,
                           struct error *err);

/* Before its first trial a session whose cluster nobody measured (cluster_wants_bench) offers a bench to clients that
 * can measure. It is given out as a trial is, under a lease; what is measured becomes a description of the same
 * cluster, and the session is about that one from then on. After ASSIGNMENT_ATTEMPTS attempts it is given up. Clients
 * that cannot measure get trials meanwhile, and with the first trial the session keeps its cluster. All locked, after
 * hub_search; take and end in a transaction, and then hub_catch_up. */
#define HUB_BENCH_MOST_US 3600e6 /* of its lease */
enum hub_bench { HUB_BENCH_NONE, HUB_BENCH_YOURS, HUB_BENCH_ELSEWHERE };
enum status hub_bench_look(struct hub_session *session, const char *client, enum hub_bench *out, struct error *err);
enum status hub_bench_take(struct hub_session *session, struct store *store, const char *client, double lease_us,
                           uint64_t *attempt, struct error *err);

/* How it ended. *used: the session is about the measured description now. Fails: ST_CONFLICT (the client does not have
 * it in this attempt), as the store. */
struct hub_bench_end {
    const char *client;
    uint64_t attempt;
    const struct cluster *measured; /* of the session's cluster but for what is measured; NULL: there is none */
    const char *reason;             /* why; with `measured` NULL */
    bool again;                     /* given back: others may try */
};
enum status hub_bench_end(struct hub_session *session, struct store *store, const struct hub_bench_end *end, bool *used,
                          struct error *err);

/* Write that `client` takes up to `count` of the trials that are ready, as assignments_take; lease_us 0 is the hub's.
 * Locked, in a transaction. */
enum status hub_take(struct hub_session *session, struct store *store, const char *client, size_t count,
                     double lease_us, struct assignment taken[ASSIGNMENTS_MOST], size_t *n, struct error *err);

/* To be called when the transaction of hub_take is committed. Locked. */
void hub_taken(struct hub_session *session, size_t n, const struct assignment *taken);

/* Renew the lease of a client's trial; lease_us 0: with the length that it had. Locked, in a transaction. Fails: as
 * assignment_check, of which holder->session and holder->row are the hub's to fill in. */
enum status hub_renew(struct hub_session *session, struct store *store, const struct holder *holder, double lease_us,
                      double *length_us, struct error *err);

/* Judge the times so far: *stop is true when the trial is too slow to matter and should end. Locked. Fails as
 * hub_renew. */
enum status hub_judge(struct hub_session *session, struct store *store, const struct holder *holder, size_t n,
                      const double *iterations_us, bool *stop, struct error *err);

/* The trial has ended; `runner` as in assignment_end. Locked, in a transaction. Fails as hub_renew, ST_INVALID (its
 * environment does not say that it ran in the weather that it was suggested for). */
enum status hub_end_trial(struct hub_session *session, struct store *store, const struct holder *holder,
                          const char *runner, const struct tune_outcome *outcome, struct error *err);

/* Trials of the session that ended elsewhere (dataset/ingest.h). hub_can_import first: it fails with ST_CONFLICT when
 * the session has ended; hub_tell_import in the transaction that adds them; then hub_learn_imported, by which the
 * search learns them. They count as the session's trials. Locked. */
enum status hub_can_import(const struct hub_session *session, struct error *err);
enum status hub_tell_import(struct hub_session *session, struct store *store, uint64_t added, struct error *err);
enum status hub_learn_imported(struct hub_session *session, struct error *err);

/* Steering. Locked, in a transaction; stop and cancel also end its trials. Fails: ST_CONFLICT (the state does not allow
 * it, or a budget is below what was spent). */
enum hub_verb { HUB_PAUSE, HUB_RESUME, HUB_STOP, HUB_CANCEL };
enum status hub_steer(struct hub_session *session, struct store *store, enum hub_verb verb, struct error *err);
enum status hub_set_budget(struct hub_session *session, struct store *store, uint64_t trials, double time_us,
                           double gap, struct error *err);

/* The session's model and its cluster, borrowed while it is locked. */
const struct model *hub_model(const struct hub_session *session);
const struct cluster *hub_cluster(const struct hub_session *session);

#endif
