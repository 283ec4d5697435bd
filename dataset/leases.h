/* Trials that a client runs for a while: taken, kept alive, given up.
 *
 *     waiting --take--> running (client, attempt, lease) --store_trial_finish or _fail--> an end
 *        ^                 |
 *        +--- expire ------+   attempt + 1; after the last attempt: cancelled, "lost: ..."
 *
 * Who reports on a trial proves that it still holds it, in the transaction of the report:
 *
 *     store_begin(store, err);
 *     status = lease_check(store, trial, client, attempt, err);     -- ST_CONFLICT: the attempt is stale
 *     if (!status)
 *         status = store_trial_finish(store, trial, &result, err);
 *     store_end(store, status, err);
 *
 * The stamp in a file is for people. When a lease ends is decided by a clock that does not jump, in the process that
 * serves it: it keeps the time since the last take or renew, and calls lease_expire. In PostgreSQL several processes
 * serve a session: stamps are of the server's clock, and whoever finds one that has passed (leases_expired) calls
 * lease_expire in the same transaction. After a restart, leases_refresh begins every lease anew with its full length,
 * so that no work is lost to a restart.
 * Units: lengths are microseconds (_us). Errors and threads as in store.h. */
#ifndef DATASET_LEASES_H
#define DATASET_LEASES_H

#include "dataset/store.h"

struct lease {
    int64_t trial;
    const char *session; /* NULL without one */
    uint64_t number;     /* within the session; 0 without one */
    const char *client;
    uint64_t attempt; /* from 1 */
    double length_us;
    const char *until; /* UTC, for people */
};

/* waiting -> running by `client` for `length_us` from now; *attempt (may be NULL) is which attempt this is. Fails:
 * ST_NOT_FOUND, ST_CONFLICT (not waiting), ST_INVALID (no client, or a length that is not positive and finite). */
enum status lease_take(struct store *store, int64_t trial, const char *client, double length_us, uint64_t *attempt,
                       struct error *err);

/* ST_OK when `client` runs the trial in this attempt. Fails: ST_NOT_FOUND, ST_CONFLICT (stale: it ended, was offered
 * again, or another client has it). */
enum status lease_check(struct store *store, int64_t trial, const char *client, uint64_t attempt, struct error *err);

/* A heartbeat: the lease lasts `length_us` from now. Fails as lease_check and lease_take. */
enum status lease_renew(struct store *store, int64_t trial, const char *client, uint64_t attempt, double length_us,
                        struct error *err);

/* The lease of this attempt has run out: running -> waiting with the next attempt, or -> cancelled when `attempt` >=
 * `max_attempts`, with the reason "lost: ...". *state (may be NULL) is the new state. Fails as lease_check, but for any
 * client. */
enum status lease_expire(struct store *store, int64_t trial, uint64_t attempt, uint64_t max_attempts,
                         enum record_state *state, struct error *err);

/* The client gives the trial back unfinished: running -> waiting, the attempt counts. Fails as lease_check. */
enum status lease_release(struct store *store, int64_t trial, const char *client, uint64_t attempt, struct error *err);

/* List all leases, or those of one session, by trial. */
enum status leases_list(struct store *store, const char *session, struct arena *arena, size_t *n, struct lease **out,
                        struct error *err);

/* List those that have run out by their stamps and the clock that all who write the dataset share. In a transaction,
 * which has asked for that clock. */
enum status leases_expired(struct store *store, const char *session, struct arena *arena, size_t *n, struct lease **out,
                           struct error *err);

/* After a restart: every lease of a running trial begins anew, with its full length; *n (may be NULL) is how many there
 * are. */
enum status leases_refresh(struct store *store, uint64_t *n, struct error *err);

#endif
