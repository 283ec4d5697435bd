/* Trials: a row from the moment one is queued or begun, and its states until it ends. Each has a random uid beside the
 * row number, so that it is the same trial in every file it is merged into. A state changes only along
 * waiting -> running -> complete, or from either of the first two to an end without a result; and back from running to
 * waiting when a lease runs out (leases.c). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "dataset/audiences_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

static const char *const words[] = {
#define X(constant, word) #word,
    RECORD_STATE_TABLE(X)
#undef X
};

const char *record_state_word(enum record_state state) {
    return words[state];
}

bool record_state_parse(const char *word, enum record_state *out) {
    for (size_t i = 0; i < RECORD_STATE_COUNT; i++)
        if (!strcmp(word, words[i])) {
            *out = (enum record_state)i;
            return true;
        }
    return false;
}

/* 48 bits of milliseconds and 80 random ones, as in RFC 9562's version 7 without its marks: uids of one time lie
 * together in their index, which makes a million of them cheap to add. */
enum status make_uid(char out[UID_ROOM], struct error *err) {
    unsigned char bytes[16];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, ST_ENVIRONMENT, "no random numbers: %s", strerror(errno));
    for (unsigned i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    out[32] = '\0';
    return ST_OK;
}

/* The number 0 becomes the next one of the session. The row 0 stands for an object that is not here: its foreign key
 * refuses it. */
static const char insert_trial[] =
    "INSERT INTO trials (uid, session, number, round, model, cluster, strategy, proposer, runner, predicted_us, seed,"
    "                     state, queued, started, team, shared)"
    " VALUES (?1, ?2,"
    "         CASE WHEN ?2 IS NULL THEN NULL"
    "              WHEN ?3 > 0 THEN ?3"
    "              ELSE (SELECT coalesce(max(number), 0) + 1 FROM trials WHERE session = ?2) END,"
    "         ?4,"
    "         coalesce((SELECT row FROM models WHERE id = ?5), 0),"
    "         coalesce((SELECT row FROM clusters WHERE id = ?6), 0),"
    "         coalesce((SELECT row FROM strategies WHERE id = ?7), 0),"
    "         ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
    "         coalesce(?15, (SELECT team FROM sessions WHERE id = ?2)),"
    "         coalesce(?16, (SELECT shared FROM sessions WHERE id = ?2), '*'))"
    " RETURNING id";

/* A trial that begins gives its team a name for its strategy: ?1 the trial, ?2 the name, ?3 now. Those that share the
 * trial see the strategy already (rule 4 of names_internal.h), so the holding itself is shared with nobody. */
static const char hold_strategy[] = "INSERT INTO holdings (kind, object, team, name, shared, created)"
                                    " SELECT 'strategy', strategy, team, ?2, '', ?3"
                                    " FROM trials"
                                    " WHERE id = ?1 AND team IS NOT NULL"
                                    " ON CONFLICT DO NOTHING";

static enum status insert(struct store *store, const struct new_trial *r, const char *uid, const char *now,
                          int64_t *trial, struct error *err) {
    const char *state = words[r->waiting ? RECORD_WAITING : RECORD_RUNNING];
    enum status status = sql_insert(
        store, insert_trial,
        SQL_VALUES(sql_text(uid), sql_text(r->session), sql_integer((int64_t)r->number), sql_integer((int64_t)r->round),
                   sql_text(r->model), sql_text(r->cluster), sql_text(r->strategy), sql_text(r->proposer),
                   sql_text(r->runner), sql_real(r->predicted_us), sql_integer((int64_t)r->seed), sql_text(state),
                   sql_text(now), sql_text(r->waiting ? NULL : now), sql_text(r->team), sql_text(r->shared)),
        trial, err);
    if (status)
        return status;
    status = audiences_add(store, *trial, *trial, err);
    if (status || !r->strategy_name)
        return status;
    return sql_run(store, hold_strategy, SQL_VALUES(sql_integer(*trial), sql_text(r->strategy_name), sql_text(now)),
                   err);
}

enum status store_trial_begin(struct store *store, const struct new_trial *request, int64_t *trial, struct error *err) {
    char now[32], uid[UID_ROOM];
    clock_utc(now, sizeof now);
    enum status status = check_team(request->team, request->shared, err);
    if (!status)
        status = make_uid(uid, err);
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    int64_t row = 0;
    status = store_end(store, insert(store, request, uid, now, &row, err), err);
    if (!status)
        *trial = row;
    return status;
}

enum status column_state(struct sql_statement *stmt, int i, int64_t trial, enum record_state *out, struct error *err) {
    const char *word = sql_column_text(stmt, i);
    if (!word)
        return error_no_memory(err);
    if (!record_state_parse(word, out))
        return error_set(err, ST_INVALID, "trial %lld: no such state: %.40s", (long long)trial, word);
    return ST_OK;
}

static const char select_state[] = "SELECT state"
                                   " FROM trials"
                                   " WHERE id = ?";

static enum status read_state(struct store *store, int64_t trial, enum record_state *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, select_state, SQL_VALUES(sql_integer(trial)), &stmt, &row, err);
    if (status)
        return status;
    if (!row)
        return error_at(err, ST_NOT_FOUND, store->path, "no trial %lld", (long long)trial);
    status = column_state(stmt, 0, trial, out, err);
    sql_reset(stmt);
    return status;
}

/* The trial must be in state `a` or `b`. */
static enum status expect_state(struct store *store, int64_t trial, enum record_state a, enum record_state b,
                                struct error *err) {
    enum record_state state = a;
    enum status status = read_state(store, trial, &state, err);
    if (!status && state != a && state != b)
        status = error_at(err, ST_CONFLICT, store->path, "trial %lld is %s, not %s", (long long)trial, words[state],
                          words[b]);
    return status;
}

static const char set_runner[] = "UPDATE trials"
                                 " SET runner = ?2"
                                 " WHERE id = ?1 AND ended IS NULL";

enum status store_trial_ran_by(struct store *store, int64_t trial, const char *runner, struct error *err) {
    enum status status = sql_run(store, set_runner, SQL_VALUES(sql_integer(trial), sql_text(runner)), err);
    if (!status && sql_changes(store) == 0)
        status = error_at(err, ST_NOT_FOUND, store->path, "no trial %lld that runs", (long long)trial);
    return status;
}

enum status check_times(size_t n, const double *times_us, struct error *err) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(times_us[i]) || times_us[i] <= 0)
            return error_set(err, ST_INVALID, "iteration %zu: a time is positive and finite, not %g µs", i,
                             times_us[i]);
    return ST_OK;
}

static enum status check_result(const struct finished_trial *result, struct error *err) {
    if (result->n_iterations == 0)
        return error_set(err, ST_INVALID, "a complete trial has at least one iteration");
    return check_times(result->n_iterations, result->iterations_us, err);
}

static const char insert_iteration[] = "INSERT INTO iterations (trial, number, time_us)"
                                       " VALUES (?, ?, ?)";

static enum status insert_together(struct store *store, int64_t trial, size_t n, const double *times_us,
                                   struct error *err) {
    enum { ROOM = 26 };
    char *text = malloc(n * ROOM + 1), *end = text;
    if (!text)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        end += snprintf(end, ROOM, i ? " %.17g" : "%.17g", times_us[i]);
    enum status status =
        sql_run(store, store->engine->add_iterations, SQL_VALUES(sql_integer(trial), sql_text(text)), err);
    free(text);
    return status;
}

enum status insert_iterations(struct store *store, int64_t trial, size_t n, const double *times_us, struct error *err) {
    enum status status = ST_OK;
    if (n && store->engine->add_iterations)
        return insert_together(store, trial, n, times_us, err);
    for (size_t i = 0; i < n && !status; i++)
        status = sql_run(store, insert_iteration,
                         SQL_VALUES(sql_integer(trial), sql_integer((int64_t)i), sql_real(times_us[i])), err);
    return status;
}

/* An environment that is not clean is made clean, so that no measurement is lost because of the name of its machine. */
static enum status put_environment(struct store *store, const char *json, struct id *out, struct error *err) {
    char *cleaned = NULL;
    enum status status = validate_clean_environment(json, &cleaned, err);
    if (!status)
        status = object_read_id("environment", cleaned ? cleaned : json, out, err);
    if (!status)
        status = object_put(store, STORE_ENVIRONMENT, out, "environment", cleaned ? cleaned : json, NULL, NULL, err);
    free(cleaned);
    return status;
}

static const char complete_trial[] = "UPDATE trials"
                                     " SET state = 'complete', mean_us = ?2, median_us = ?3, low_us = ?4, high_us = ?5,"
                                     "     environment = coalesce((SELECT row FROM environments WHERE id = ?6), 0),"
                                     "     ended = ?7, n_iterations = ?8, lease_until = NULL, lease_us = NULL"
                                     " WHERE id = ?1";

static enum status complete(struct store *store, int64_t trial, const struct finished_trial *result,
                            struct error *err) {
    struct id environment;
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = expect_state(store, trial, RECORD_RUNNING, RECORD_RUNNING, err);
    if (!status)
        status = put_environment(store, result->environment, &environment, err);
    if (!status)
        status = sql_run(store, complete_trial,
                         SQL_VALUES(sql_integer(trial), sql_real(result->mean_us), sql_real(result->median_us),
                                    sql_real(result->low_us), sql_real(result->high_us), sql_text(environment.hex),
                                    sql_text(now), sql_integer((int64_t)result->n_iterations)),
                         err);
    return !status ? insert_iterations(store, trial, result->n_iterations, result->iterations_us, err) : status;
}

enum status store_trial_finish(struct store *store, int64_t trial, const struct finished_trial *result,
                               struct error *err) {
    enum status status = check_result(result, err);
    if (!status)
        status = store_begin(store, err);
    return !status ? store_end(store, complete(store, trial, result, err), err) : status;
}

static const char fail_trial[] =
    "UPDATE trials"
    " SET state = ?2, reason = reason_kept(?3), ended = ?4, lease_until = NULL, lease_us = NULL"
    " WHERE id = ?1";

static enum status end_without_result(struct store *store, int64_t trial, enum record_state state, const char *reason,
                                      struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = expect_state(store, trial, RECORD_WAITING, RECORD_RUNNING, err);
    if (status)
        return status;
    return sql_run(store, fail_trial,
                   SQL_VALUES(sql_integer(trial), sql_text(words[state]), sql_text(reason), sql_text(now)), err);
}

enum status store_trial_fail(struct store *store, int64_t trial, enum record_state state, const char *reason,
                             struct error *err) {
    if (state != RECORD_FAILED && state != RECORD_INFEASIBLE && state != RECORD_CANCELLED)
        return error_set(err, ST_CONFLICT, "a trial cannot fail into the state %s", words[state]);
    enum status status = store_begin(store, err);
    return !status ? store_end(store, end_without_result(store, trial, state, reason, err), err) : status;
}
