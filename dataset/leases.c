/* Each function is one look and one update in one transaction: the look says whether the caller still holds the trial.
 * Cost: O(log trials); the lists walk the few trials that run, by the index of states. */
#include "dataset/leases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

static enum status check_length(double length_us, struct error *err) {
    if (isfinite(length_us) && length_us > 0)
        return ST_OK;
    return error_set(err, ST_INVALID, "a lease lasts a positive, finite time, not %g µs", length_us);
}

struct held {
    enum record_state state;
    char client[256];
    uint64_t attempt;
    bool leased;
};

static enum status read_held(struct sql_statement *stmt, int64_t trial, struct held *out, struct error *err) {
    const char *client = sql_column_text(stmt, 1);
    if (!client && !sql_column_is_null(stmt, 1))
        return error_no_memory(err);
    const enum status status = column_state(stmt, 0, trial, &out->state, err);
    if (status)
        return status;
    snprintf(out->client, sizeof out->client, "%s", client ? client : "");
    out->attempt = (uint64_t)sql_column_integer(stmt, 2);
    out->leased = !sql_column_is_null(stmt, 3);
    return ST_OK;
}

static const char select_lease[] = "SELECT state, client, attempt, lease_until"
                                   " FROM trials"
                                   " WHERE id = ?";

static enum status look(struct store *store, int64_t trial, struct held *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, select_lease, SQL_VALUES(sql_integer(trial)), &stmt, &row, err);
    if (status)
        return status;
    if (!row)
        return error_at(err, ST_NOT_FOUND, store->path, "no trial %lld", (long long)trial);
    status = read_held(stmt, trial, out, err);
    sql_reset(stmt);
    return status;
}

/* `client` NULL: any. */
static enum status check(struct store *store, int64_t trial, const char *client, uint64_t attempt, struct error *err) {
    struct held held;
    enum status status = look(store, trial, &held, err);
    if (status)
        return status;
    if (held.state != RECORD_RUNNING)
        return error_set(err, ST_CONFLICT, "trial %lld is %s: attempt %llu of it no longer runs", (long long)trial,
                         record_state_word(held.state), (unsigned long long)attempt);
    if (!held.leased)
        return error_set(err, ST_CONFLICT, "trial %lld runs without a lease", (long long)trial);
    if (held.attempt != attempt)
        return error_set(err, ST_CONFLICT, "trial %lld: attempt %llu was lost; attempt %llu runs", (long long)trial,
                         (unsigned long long)attempt, (unsigned long long)held.attempt);
    if (client && strcmp(client, held.client) != 0)
        return error_set(err, ST_CONFLICT, "trial %lld: client %.64s has it, not %.64s", (long long)trial, held.client,
                         client);
    return ST_OK;
}

enum status lease_check(struct store *store, int64_t trial, const char *client, uint64_t attempt, struct error *err) {
    return check(store, trial, client, attempt, err);
}

static const char take_lease[] = "UPDATE trials"
                                 " SET state = 'running', client = ?2, lease_us = ?3, lease_until = ?4, started = ?5"
                                 " WHERE id = ?1";

static enum status take(struct store *store, int64_t trial, const char *client, double length_us, uint64_t *attempt,
                        struct error *err) {
    struct held held;
    char now[32], until[32];
    clock_utc(now, sizeof now);
    store_utc_after(store, length_us, until, sizeof until);
    enum status status = look(store, trial, &held, err);
    if (status)
        return status;
    if (held.state != RECORD_WAITING)
        return error_at(err, ST_CONFLICT, store->path, "trial %lld is %s, not waiting", (long long)trial,
                        record_state_word(held.state));
    *attempt = held.attempt;
    return sql_run(
        store, take_lease,
        SQL_VALUES(sql_integer(trial), sql_text(client), sql_real(length_us), sql_text(until), sql_text(now)), err);
}

enum status lease_take(struct store *store, int64_t trial, const char *client, double length_us, uint64_t *attempt,
                       struct error *err) {
    uint64_t taken = 0;
    enum status status = check_length(length_us, err);
    if (!status && (!client || !*client || strlen(client) >= sizeof((struct held *)NULL)->client))
        status = error_set(err, ST_INVALID, "a client has a name of 1 to 255 bytes");
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    status = store_end(store, take(store, trial, client, length_us, &taken, err), err);
    if (!status && attempt)
        *attempt = taken;
    return status;
}

void store_utc_after(const struct store *store, double us, char *out, size_t n) {
    clock_utc_after(us + store->ahead_us, out, n);
}

static const char renew_lease[] = "UPDATE trials"
                                  " SET lease_us = ?2, lease_until = ?3"
                                  " WHERE id = ?1";

enum status lease_renew(struct store *store, int64_t trial, const char *client, uint64_t attempt, double length_us,
                        struct error *err) {
    char until[32];
    enum status status = check_length(length_us, err);
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    store_utc_after(store, length_us, until, sizeof until);
    status = check(store, trial, client, attempt, err);
    if (!status)
        status = sql_run(store, renew_lease, SQL_VALUES(sql_integer(trial), sql_real(length_us), sql_text(until)), err);
    return store_end(store, status, err);
}

static enum status lose(struct store *store, int64_t trial, uint64_t attempt, struct error *err) {
    char reason[96];
    snprintf(reason, sizeof reason, "lost: no word from its client in %llu attempt%s", (unsigned long long)attempt,
             attempt == 1 ? "" : "s");
    return store_trial_fail(store, trial, RECORD_CANCELLED, reason, err);
}

static const char return_trial[] =
    "UPDATE trials"
    " SET state = 'waiting', attempt = attempt + 1, client = NULL, lease_us = NULL, lease_until = NULL, started = NULL"
    " WHERE id = ?1";

enum status lease_expire(struct store *store, int64_t trial, uint64_t attempt, uint64_t max_attempts,
                         enum record_state *state, struct error *err) {
    const bool last = attempt >= max_attempts;
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = check(store, trial, NULL, attempt, err);
    if (!status)
        status =
            last ? lose(store, trial, attempt, err) : sql_run(store, return_trial, SQL_VALUES(sql_integer(trial)), err);
    status = store_end(store, status, err);
    if (!status && state)
        *state = last ? RECORD_CANCELLED : RECORD_WAITING;
    return status;
}

enum status lease_release(struct store *store, int64_t trial, const char *client, uint64_t attempt, struct error *err) {
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = check(store, trial, client, attempt, err);
    if (!status)
        status = sql_run(store, return_trial, SQL_VALUES(sql_integer(trial)), err);
    return store_end(store, status, err);
}

static enum status read_lease(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct lease *lease = element;
    lease->trial = sql_column_integer(stmt, 0);
    lease->number = (uint64_t)sql_column_integer(stmt, 2);
    lease->attempt = (uint64_t)sql_column_integer(stmt, 4);
    lease->length_us = sql_column_real(stmt, 5);
    enum status status = sql_copy_text(stmt, 1, arena, &lease->session, err);
    if (!status)
        status = sql_copy_text(stmt, 3, arena, &lease->client, err);
    return !status ? sql_copy_text(stmt, 6, arena, &lease->until, err) : status;
}

static const char list_leases[] =
    "SELECT id, session, number, client, attempt, lease_us, lease_until"
    " FROM trials"
    " WHERE state = 'running' AND lease_until IS NOT NULL AND (?1 IS NULL OR session = ?1)"
    " ORDER BY id";

enum status leases_list(struct store *store, const char *session, struct arena *arena, size_t *n, struct lease **out,
                        struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    enum status status = sql_start(store, list_leases, SQL_VALUES(sql_text(session)), &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_lease, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static const char list_expired[] = "SELECT id, session, number, client, attempt, lease_us, lease_until"
                                   " FROM trials"
                                   " WHERE state = 'running' AND lease_until < ?2 AND (?1 IS NULL OR session = ?1)"
                                   " ORDER BY id";

enum status leases_expired(struct store *store, const char *session, struct arena *arena, size_t *n, struct lease **out,
                           struct error *err) {
    struct sql_statement *stmt;
    char now[32];
    void *rows;
    store_utc_after(store, 0, now, sizeof now);
    enum status status = sql_start(store, list_expired, SQL_VALUES(sql_text(session), sql_text(now)), &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_lease, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static enum status refresh(struct store *store, size_t n, const struct lease *leases, struct error *err) {
    enum status status = ST_OK;
    for (size_t i = 0; i < n && !status; i++) {
        char until[32];
        store_utc_after(store, leases[i].length_us, until, sizeof until);
        status = sql_run(store, renew_lease,
                         SQL_VALUES(sql_integer(leases[i].trial), sql_real(leases[i].length_us), sql_text(until)), err);
    }
    return status;
}

enum status leases_refresh(struct store *store, uint64_t *n, struct error *err) {
    struct arena arena = {0};
    struct lease *leases = NULL;
    size_t found = 0;
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = leases_list(store, NULL, &arena, &found, &leases, err);
    if (!status)
        status = refresh(store, found, leases, err);
    status = store_end(store, status, err);
    arena_release(&arena);
    if (!status && n)
        *n = found;
    return status;
}
