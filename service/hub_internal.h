/* What the hub's sources share: hub_sessions.c keeps the sessions, hub_trials.c serves their trials, hub_own.c runs
 * those that the service runs itself. */
#ifndef SERVICE_HUB_INTERNAL_H
#define SERVICE_HUB_INTERNAL_H

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/work.h"
#include "service/hub.h"
#include "tuner/learn/rankers.h"

struct hub_session {
    struct hub *hub;
    struct hub_session *next;
    unsigned references; /* guarded by the hub's mutex, as is `next` */
    pthread_mutex_t mutex;
    double used_us;          /* when it was last given back, by clock_now_us; guarded by the hub's mutex */
    pthread_mutex_t waiting; /* its holder waits for nothing else */
    struct hub_waiter *first_waiter, **last_waiter;
    uint64_t changes;     /* under `waiting`, as are the waiters: how often the session has changed */
    pthread_cond_t awake; /* `changes` has grown, or the session's thread is to end */
    struct work work;     /* what its own thread does */
    char id[64];
    char *team, *shared, *runner, *hosts; /* NULL: none */
    char *export_to, *accept;             /* as in struct job_options */
    char *algorithms;                     /* as in struct session_options */
    struct export_limits limits;          /* what they mean; n = 0: none */
    enum stored_session_mode mode;
    enum stored_session_state state;
    bool described; /* model and cluster are there */
    struct model model;
    struct cluster cluster;
    struct stored_ranker ranker;
    struct tune_options options;
    struct session *engine;  /* NULL until it is needed */
    bool searches;           /* no other service does, until it is unlocked */
    bool behind;             /* another service took trials that the engine does not know */
    struct assignments open; /* with the engine; deadlines by clock_boot_us, INFINITY for the service's own */
    bool has_thread;         /* own sessions */
    bool called;             /* another service wrote about it; guarded by the hub's mutex */
    bool thread_ended;       /* the thread touches the session no more; guarded by the hub's mutex */
    pthread_t thread;
    atomic_int cancel; /* read without the mutex: hub_session_cancel and hub_session_is_cancelled */
};

struct cluster_launcher {
    char cluster[65], *runner, *hosts;
};

struct hub {
    struct access *access;
    struct hub_options options;
    pthread_mutex_t mutex;
    struct hub_session *first;
    size_t n_launchers;
    struct cluster_launcher *launchers;
    pthread_mutex_t machine; /* one own trial at a time: they would disturb each other */
    pthread_mutex_t listening;
    void (*changed)(void *context, const char *session);
    void *context;
    atomic_uint_fast64_t ends[HUB_ENDS];
    int64_t last_event;  /* that was looked at, where others write the dataset too */
    bool was_away;       /* the database, at the last look */
    double take_over_us; /* when to look next for sessions that no service runs, by clock_now_us */
    bool closing;        /* guarded by `mutex` */
    pthread_cond_t wake;
    bool has_thread;
    pthread_t thread; /* ends leases */
    struct work work; /* what that thread does */
};

static inline void hub_session_cancel(struct hub_session *session) {
    session->cancel = 1;
    work_stop(&session->work, WORK_STOPPED);
}

static inline bool hub_session_is_cancelled(struct hub_session *session) {
    return session->cancel;
}

/* Run `step` in a transaction of the one writer; in whatever thread, so it must not use this thread's reader. */
enum status hub_commit(struct hub *hub, write_step *step, void *context, struct error *err);

/* The session has changed: wakes its own thread. */
void hub_stir(struct hub_session *session);

/* Give up the lock until the session changes, for at most `patience_us`, or until its thread is to end. Locked before
 * and after. */
void hub_sleep(struct hub_session *session, double patience_us);

/* Add an event about the session: `kind`, and the JSON object `content`, which is freed. `whole` says that all its
 * members could be added. In a transaction. Fails: ST_NO_MEMORY (also when not `whole`), as the store. */
enum status hub_tell(struct hub_session *session, struct store *store, const char *kind, cJSON *content, bool whole,
                     struct error *err);

/* Write the session's state and an event that says so. `reason` may be NULL. In a transaction. */
enum status hub_set_state(struct hub_session *session, struct store *store, enum stored_session_state state,
                          const char *reason, struct error *err);

void hub_notify(struct hub_session *session);

/* Claim the session, whose trials this service runs from now on. Fails: ST_CONFLICT (another service runs it). */
enum status hub_claim(struct hub *hub, const char *id, struct error *err);

/* See what other services did. Locked. */
enum status hub_look(struct hub_session *session, struct error *err);
void hub_end_search(struct hub_session *session);

/* The session is about this cluster now. Its engine leaves the memory. Locked. Fails: as the store. */
enum status hub_follow_cluster(struct hub_session *session, struct store *store, const char *cluster,
                               struct error *err);

/* Forget the engine, which hub_wake makes again from the records. Locked. */
void hub_forget_engine(struct hub_session *session);

/* Give back those whose lease ran out. Locked. */
enum status hub_expire(struct hub_session *session, struct error *err);

/* The same by the stamps in the dataset, for all sessions: where several services serve it. */
enum status hub_expire_all(struct hub *hub, struct error *err);

/* Fails when another service gave the session trials that its engine does not know. Call it in a transaction. Fails:
 * PROBLEM "overloaded", as the store. */
enum status hub_check_whole(struct hub_session *session, struct store *store, struct error *err);

/* The thread of a session that the service runs itself. Locked. */
#define HUB_NO_LAUNCHER "no launcher is registered for its cluster, so the service cannot run its trials"
enum status hub_own_start(struct hub_session *session, struct error *err);
void hub_own_stop(struct hub_session *session); /* and wait; not locked */

/* Put what the session's launcher can do into the options. Fails: ST_CONFLICT (its cluster is no longer registered). */
enum status hub_own_options(struct hub_session *session, struct error *err);
const struct cluster_launcher *hub_launcher(struct hub *hub, const char *cluster);

double clock_boot_us(void);

#endif
