/* One insertion a record, and some of them at once (sql_insert_each). It inserts nothing where the uid is taken; only
 * then does a second statement look which column differs. Records of one batch mostly come from one machine and name
 * few models, clusters and strategies, so the last environment and the rows of some ids are kept for the batch. Cost:
 * O(log trials) a record and index; the sync of the one transaction is shared by all. */
#include "dataset/ingest.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/statistics.h"
#include "dataset/audiences_internal.h"
#include "dataset/sharing.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

bool record_uid_is_valid(const char *uid) {
    const size_t n = strlen(uid);
    return n >= 1 && n <= RECORD_UID_MAX &&
           strspn(uid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

enum status record_uid_make(char out[RECORD_UID_MAX + 1], struct error *err) {
    return make_uid(out, err);
}

/* A cache of the rows of objects. The last digits of an id choose its place, and a later id overwrites an earlier
 * one. */
enum { KNOWN = 512 };
struct known {
    enum store_kind kind;
    char id[ID_LENGTH + 1];
    int64_t row;
};

/* Records that are checked and wait to be inserted together. Their numbers of rows are given; those of duplicates
 * remain unused. */
enum { TOGETHER = 512, VALUES = 28 };
struct together {
    size_t n;
    struct sql_value values[TOGETHER * VALUES];
    char uids[TOGETHER][UID_ROOM]; /* that were made */
    struct times {
        size_t n;
        const double *us;
    } iterations[TOGETHER];
};

/* Who owns and who sees a session, which its trials go by. */
enum { SESSIONS = 64 };
struct known_session {
    const char *id, *team, *shared; /* team NULL: of none; both NULL: it is not here */
};

struct batch {
    struct store *store;
    const struct import_options *options;
    struct import_report report;
    char now[32];
    int64_t last_row; /* the largest row number of a trial */
    struct together *waiting;
    size_t inserted;              /* records that waited and do no more */
    const char *environment_json; /* the last one, */
    int64_t environment;          /* and its row */
    struct known known[KNOWN];
    struct known_session sessions[SESSIONS];
    struct arena arena;
};

/* Compute mean and median from the iterations where both are missing. *middle is the median of the iterations, NaN when
 * there are none. */
static enum status fill_times(struct record *r, double *middle, struct error *err) {
    const size_t n = r->n_iterations;
    *middle = NAN;
    if (n == 0)
        return ST_OK;
    double *times = malloc(n * sizeof *times), sum = 0;
    if (!times)
        return error_no_memory(err);
    memcpy(times, r->iterations_us, n * sizeof *times);
    *middle = median_of(n, times);
    for (size_t i = 0; i < n; i++)
        sum += times[i];
    free(times);
    if (isnan(r->median_us) && isnan(r->mean_us)) {
        r->mean_us = sum / (double)n;
        r->median_us = *middle;
    }
    return ST_OK;
}

static bool is_time(double us) {
    return isfinite(us) && us > 0;
}

static bool is_time_or_missing(double us) {
    return isnan(us) || is_time(us);
}

static bool is_stamp_or_missing(const char *text) {
    return !text || clock_is_utc(text);
}

static enum status check_record(const struct record *r, double middle, struct error *err) {
    const bool complete = r->state == RECORD_COMPLETE;
    if (r->state == RECORD_WAITING || r->state == RECORD_RUNNING)
        return error_set(err, ST_INVALID, "a trial that is %s cannot be imported", record_state_word(r->state));
    if (!r->model || !r->cluster || !r->strategy || !r->proposer || !r->runner)
        return error_set(err, ST_INVALID, "model, cluster, strategy, proposer and runner are needed");
    if (complete && (!is_time(r->median_us) || !is_time(r->mean_us)))
        return error_set(err, ST_INVALID, "a complete trial has a median and a mean, positive and finite");
    if (!complete && (!isnan(r->median_us) || !isnan(r->mean_us) || r->n_iterations))
        return error_set(err, ST_INVALID, "a trial that is %s has no times", record_state_word(r->state));
    if (complete == (r->reason != NULL))
        return error_set(err, ST_INVALID, "a reason belongs to every trial but complete ones");
    if (!is_time_or_missing(r->predicted_us) || r->low_us > r->median_us || r->high_us < r->median_us)
        return error_set(err, ST_INVALID, "a prediction is positive, and the interval holds the median");
    if (!is_stamp_or_missing(r->queued) || !is_stamp_or_missing(r->started) || !is_stamp_or_missing(r->ended))
        return error_set(err, ST_INVALID, "queued, started and ended are UTC, as 2026-11-21T08:41:17.123Z");
    if (r->number && !r->session)
        return error_set(err, ST_INVALID, "a number belongs to a session");
    enum status status = validate_record(r, err);
    if (!status)
        status = check_times(r->n_iterations, r->iterations_us, err);
    if (!status && fabs(r->median_us - middle) > 1e-9 * middle)
        status = error_set(err, ST_INVALID, "the median is %.9g us, that of the iterations %.9g", r->median_us, middle);
    return status;
}

static enum status put_environment(struct batch *batch, const char *json, struct error *err) {
    if (batch->environment_json && !strcmp(json, batch->environment_json))
        return ST_OK;
    struct id id;
    enum status status = validate_environment(json, err);
    if (!status)
        status = object_read_id("environment", json, &id, err);
    if (!status)
        status = object_put(batch->store, STORE_ENVIRONMENT, &id, "environment", json, NULL, NULL, err);
    if (!status)
        status = object_row(batch->store, STORE_ENVIRONMENT, id.hex, &batch->environment, err);
    batch->environment_json = !status ? json : NULL;
    return status;
}

/* 0 when the object is not here; the foreign keys refuse a 0. */
static enum status find_row(struct batch *batch, enum store_kind kind, const char *id, int64_t *out,
                            struct error *err) {
    const size_t n = strlen(id);
    *out = 0;
    if (n != ID_LENGTH)
        return ST_OK;
    unsigned place = (unsigned)kind;
    for (size_t i = n - 4; i < n; i++)
        place = 31 * place + (unsigned char)id[i];
    struct known *known = &batch->known[place % KNOWN];
    if (known->kind == kind && !strcmp(known->id, id)) {
        *out = known->row;
        return ST_OK;
    }
    enum status status = object_row(batch->store, kind, id, out, err);
    if (!status && *out) {
        *known = (struct known){.kind = kind, .row = *out};
        memcpy(known->id, id, sizeof known->id);
    }
    return status;
}

static const char trial_is_seen[] =
    "SELECT 1"
    " FROM trials"
    " WHERE uid = ?1 AND (shared = '*' OR team = ?2 OR instr(shared, '|' || ?2 || '|') > 0)";

/* Where a hidden trial has the uid, the message is always the same, also when the two trials are equal. So the asker
 * learns only that the uid is taken, and had to know the uid for that. */
static enum status refuse_hidden(struct batch *batch, const char *uid, struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    if (!batch->options->viewer)
        return ST_OK;
    enum status status = sql_first(batch->store, trial_is_seen,
                                   SQL_VALUES(sql_text(uid), sql_text(batch->options->viewer)), &stmt, &row, err);
    if (status)
        return status;
    sql_reset(stmt);
    return row ? ST_OK
               : error_set(err, ST_CONFLICT, "uid %.64s cannot be used here; leave it out, and one is made", uid);
}

/* The first column in which the trial of uid ?2 is not as the values of import_trial say. */
static const char trial_difference[] =
    "SELECT CASE WHEN session IS DISTINCT FROM ?3 THEN 'session'"
    "             WHEN ?4 > 0 AND number IS DISTINCT FROM ?4 THEN 'number'"
    "             WHEN round <> ?5 THEN 'round'"
    "             WHEN seed <> ?6 THEN 'seed'"
    "             WHEN model <> ?7 THEN 'model'"
    "             WHEN cluster <> ?8 THEN 'cluster'"
    "             WHEN strategy <> ?9 THEN 'strategy'"
    "             WHEN proposer <> ?10 THEN 'proposer'"
    "             WHEN runner <> ?11 THEN 'runner'"
    "             WHEN state <> ?12 THEN 'state'"
    "             WHEN reason_kept(reason) IS DISTINCT FROM reason_kept(?13) THEN 'reason'"
    "             WHEN predicted_us IS DISTINCT FROM ?17 THEN 'predicted_us'"
    "             WHEN mean_us IS DISTINCT FROM ?18 THEN 'mean_us'"
    "             WHEN median_us IS DISTINCT FROM ?19 THEN 'median_us'"
    "             WHEN low_us IS DISTINCT FROM ?20 THEN 'low_us'"
    "             WHEN high_us IS DISTINCT FROM ?21 THEN 'high_us'"
    "             WHEN environment IS DISTINCT FROM ?22 THEN 'environment' END"
    " FROM trials"
    " WHERE uid = ?2";

/* The uid was there. */
static enum status look_at_duplicate(struct batch *batch, const struct sql_value values[VALUES], struct error *err) {
    enum { COMPARED = 22 };
    struct sql_statement *stmt;
    bool row;
    enum status status = refuse_hidden(batch, values[1].text, err);
    if (!status)
        status = sql_first(batch->store, trial_difference, COMPARED, values, &stmt, &row, err);
    if (status)
        return status;
    const char *column = sql_column_text(stmt, 0);
    if (column)
        status = error_set(err, ST_CONFLICT, "uid %.64s is here with another %s", values[1].text, column);
    else if (!sql_column_is_null(stmt, 0))
        status = error_no_memory(err);
    sql_reset(stmt);
    batch->report.duplicates += !status;
    return status;
}

/* ?4 is the number that was given, which may be 0, and ?28 that of the row. */
static const char import_trial[] =
    "INSERT INTO trials (id, uid, session, number, round, seed, model, cluster, strategy, proposer, runner, state,"
    "                     reason, queued, started, ended, predicted_us, mean_us, median_us, low_us, high_us,"
    "                     environment, team, shared, attempt, client, n_iterations)"
    " VALUES (?1, ?2, ?3, ?28, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, reason_kept(?13), ?14, ?15, ?16, ?17, ?18, ?19, ?20,"
    "         ?21, ?22, ?23, ?24, ?25, ?26, ?27)"
    " ON CONFLICT (uid) DO NOTHING";

static const char next_number[] = "SELECT coalesce(max(number), 0) + 1"
                                  " FROM trials"
                                  " WHERE session = ?";

static const char session_owner[] = "SELECT team, shared"
                                    " FROM sessions"
                                    " WHERE id = ?";

static enum status read_session(struct batch *batch, const char *id, struct known_session *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    *out = (struct known_session){0};
    enum status status = sql_first(batch->store, session_owner, SQL_VALUES(sql_text(id)), &stmt, &row, err);
    if (status)
        return status;
    if (row) {
        status = sql_copy_text(stmt, 0, &batch->arena, &out->team, err);
        if (!status)
            status = sql_copy_text(stmt, 1, &batch->arena, &out->shared, err);
        sql_reset(stmt);
    }
    if (!status)
        out->id = id;
    return status;
}

static enum status find_session(struct batch *batch, const char *id, const struct known_session **out,
                                struct error *err) {
    unsigned place = 0;
    for (const char *at = id; *at; at++)
        place = 31 * place + (unsigned char)*at;
    struct known_session *known = &batch->sessions[place % SESSIONS];
    *out = known;
    return known->id && !strcmp(known->id, id) ? ST_OK : read_session(batch, id, known, err);
}

/* A trial belongs to its session's team unless it names one, and nobody sees it from whom the session is hidden. *team
 * and *shared are what the trial says, or NULL. */
static enum status follow_session(struct batch *batch, const char *id, const char **team, const char **shared,
                                  struct error *err) {
    const struct known_session none = {0}, *session = &none;
    enum status status = id ? find_session(batch, id, &session, err) : ST_OK;
    if (status)
        return status;
    const char *a = *shared ? *shared : "*", *b = session->shared ? session->shared : "*";
    char *both = arena_alloc(&batch->arena, strlen(a) + strlen(b) + 1, 1);
    if (!both)
        return error_no_memory(err);
    shared_narrow(a, b, both);
    *team = *team ? *team : session->team;
    *shared = both;
    return ST_OK;
}

/* Those that are not known. */
static enum status find_references(struct batch *batch, const struct record *r, struct record_rows *out,
                                   struct error *err) {
    enum status status = !out->model ? find_row(batch, STORE_MODEL, r->model, &out->model, err) : ST_OK;
    if (!status && !out->cluster)
        status = find_row(batch, STORE_CLUSTER, r->cluster, &out->cluster, err);
    if (!status && !out->strategy)
        status = find_row(batch, STORE_STRATEGY, r->strategy, &out->strategy, err);
    return status;
}

/* What became of record i of those that waited. */
static enum status take_inserted(struct batch *batch, size_t i, bool inserted, struct error *err) {
    const struct together *w = batch->waiting;
    const struct sql_value *values = &w->values[i * VALUES];
    if (!inserted)
        return look_at_duplicate(batch, values, err);
    batch->report.added++;
    return insert_iterations(batch->store, values[0].integer, w->iterations[i].n, w->iterations[i].us, err);
}

static enum status insert_waiting(struct batch *batch, struct error *err) {
    struct together *w = batch->waiting;
    bool inserted[TOGETHER];
    size_t done;
    enum status status = sql_insert_each(batch->store, import_trial, w->n, VALUES, w->values, inserted, &done, err);
    if (status)
        batch->inserted += done;
    for (size_t i = 0; i < w->n && !status; i++) {
        status = take_inserted(batch, i, inserted[i], err);
        batch->inserted += !status;
    }
    w->n = 0;
    return status;
}

/* Put it with those that wait. */
static enum status insert(struct batch *batch, const struct record *r, struct record_rows to, struct error *err) {
    struct together *w = batch->waiting;
    const struct import_options *o = batch->options;
    const bool complete = r->state == RECORD_COMPLETE, keep = o->keep_rows && r->trial > batch->last_row;
    const int64_t row = keep ? r->trial : batch->last_row + 1;
    const bool numbered = r->session && !r->number; /* by those that are there */
    const char *team = r->team ? r->team : o->team, *shared = r->shared ? r->shared : o->shared;
    int64_t number = (int64_t)r->number;
    enum status status = numbered ? insert_waiting(batch, err) : ST_OK;
    if (!status)
        status = check_team(team, shared, err);
    if (!status)
        status = follow_session(batch, r->session, &team, &shared, err);
    if (!status && numbered)
        status = sql_first_integer(batch->store, next_number, SQL_VALUES(sql_text(r->session)), &number, err);
    if (!status)
        status = find_references(batch, r, &to, err);
    if (!status && !r->uid)
        status = make_uid(w->uids[w->n], err);
    if (status)
        return status;
    const struct sql_value values[] = {sql_integer(row),
                                       sql_text(r->uid ? r->uid : w->uids[w->n]),
                                       sql_text(r->session),
                                       sql_integer((int64_t)r->number),
                                       sql_integer((int64_t)r->round),
                                       sql_integer((int64_t)r->seed),
                                       sql_integer(to.model),
                                       sql_integer(to.cluster),
                                       sql_integer(to.strategy),
                                       sql_text(r->proposer),
                                       sql_text(r->runner),
                                       sql_text(record_state_word(r->state)),
                                       sql_text(r->reason),
                                       sql_text(r->queued ? r->queued : batch->now),
                                       sql_text(r->started),
                                       sql_text(r->ended ? r->ended : batch->now),
                                       sql_real(r->predicted_us),
                                       sql_real(r->mean_us),
                                       sql_real(r->median_us),
                                       sql_real(r->low_us),
                                       sql_real(r->high_us),
                                       complete ? sql_integer(batch->environment) : sql_no_integer(),
                                       sql_text(team),
                                       sql_text(shared),
                                       sql_integer(r->attempt ? (int64_t)r->attempt : 1),
                                       sql_text(r->client),
                                       complete ? sql_integer((int64_t)r->n_iterations) : sql_no_integer(),
                                       r->session ? sql_integer(number) : sql_no_integer()};
    static_assert(sizeof values / sizeof *values == VALUES, "as import_trial has");
    memcpy(&w->values[w->n * VALUES], values, sizeof values);
    w->iterations[w->n++] = (struct times){r->n_iterations, r->iterations_us};
    batch->last_row = row;
    return w->n < TOGETHER && !numbered ? ST_OK : insert_waiting(batch, err);
}

static enum status add_record(struct batch *batch, const struct record *record, const struct record_rows *rows,
                              struct error *err) {
    struct record r = *record;
    double middle;
    enum status status = fill_times(&r, &middle, err);
    if (!status)
        status = check_record(&r, middle, err);
    if (!status && r.state == RECORD_COMPLETE)
        status = put_environment(batch, r.environment_json ? r.environment_json : "{}", err);
    return !status ? insert(batch, &r, rows ? *rows : (struct record_rows){0}, err) : status;
}

/* Where one is refused before it could wait, those that wait come first: what is refused among them is told. */
static enum status add_records(struct batch *batch, size_t n, const struct record *records, struct error *err) {
    const struct record_rows *rows = batch->options->rows;
    struct error earlier = {0};
    enum status status = ST_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = add_record(batch, &records[i], rows ? &rows[i] : NULL, err);
    const enum status waited = insert_waiting(batch, &earlier);
    if (!waited || (status && waited == ST_ENVIRONMENT))
        return status;
    if (err)
        *err = earlier;
    return waited;
}

static const char last_trial[] = "SELECT coalesce(max(id), 0)"
                                 " FROM trials";

static enum status add_batch(struct batch *batch, size_t n, const struct record *records, struct error *err) {
    enum status status = sql_first_integer(batch->store, last_trial, 0, NULL, &batch->last_row, err);
    const int64_t before = batch->last_row;
    if (!status)
        status = add_records(batch, n, records, err);
    if (status && err)
        err->position = batch->inserted < n ? batch->inserted + 1 : 0;
    if (!status && batch->report.added)
        status = audiences_add(batch->store, before + 1, batch->last_row, err);
    return status;
}

enum status store_trials_import(struct store *store, size_t n, const struct record *records,
                                const struct import_options *options, struct import_report *out, struct error *err) {
    static const struct import_options plain = {0};
    struct batch batch = {.store = store, .options = options ? options : &plain};
    clock_utc(batch.now, sizeof batch.now);
    if (!(batch.waiting = malloc(sizeof *batch.waiting)))
        return error_no_memory(err);
    batch.waiting->n = 0;
    enum status status = store_begin(store, err);
    if (!status)
        status = store_end(store, add_batch(&batch, n, records, err), err);
    arena_release(&batch.arena);
    free(batch.waiting);
    if (!status)
        *out = batch.report;
    return status;
}
