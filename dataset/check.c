/* All checks read one state of the file. SQLite leaves out the tables' CHECK rules where it opened a file for reading
 * only (seen with 3.40), so they are all checked here once more. Cost: O(bytes) for the pages and hashes, O(n log n)
 * for the medians. */
#include "dataset/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/statistics.h"
#include "base/text.h"
#include "dataset/engine_internal.h"
#include "dataset/query.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

enum { STAMP_MAX = 64 };

struct check {
    struct store *store;
    check_visit *visit;
    void *context;
    struct check_report report;
};

__attribute__((format(printf, 2, 3))) static void problem(struct check *check, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    check->report.problems++;
    if (check->visit)
        check->visit(check->context, line);
}

static const char *column_text(struct sql_statement *stmt, int i) {
    const char *text = sql_column_text(stmt, i);
    return text ? text : "";
}

/* Run `sql` and hand each row to `look`. */
static enum status each_row(struct check *check, const char *sql,
                            enum status (*look)(struct check *, struct sql_statement *, struct error *),
                            struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    enum status status = sql_prepare(check->store, sql, &stmt, err);
    if (status)
        return status;
    while (!status) {
        status = sql_next(check->store, stmt, &row, err);
        if (status || !row)
            break;
        status = look(check, stmt, err);
    }
    sql_finalize(stmt);
    return status;
}

/* Read a row of SQLite's integrity check. The row is one finding, except that the findings about pages come together in
 * one row: a heading in asterisks, then a line for each. Code 7 means that memory is out and says nothing about the
 * file. A failed CHECK is passed over, since json_valid() also fails without memory: `rules` below finds the rows that
 * break a rule. */
static enum status look_at_integrity(struct check *check, struct sql_statement *stmt, struct error *err) {
    const char *line = column_text(stmt, 0);
    if (strstr(line, "error code=7") || strstr(line, "error code 7"))
        return error_no_memory(err);
    while (*line && strcmp(line, "ok") != 0) {
        const size_t n = strcspn(line, "\n");
        if (strncmp(line, "***", 3) != 0 && strncmp(line, "CHECK", 5) != 0)
            problem(check, "file: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return ST_OK;
}

static enum status look_at_reference(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    problem(check, "%s: row %lld refers to a missing row of %s", column_text(stmt, 0),
            (long long)sql_column_integer(stmt, 1), column_text(stmt, 2));
    return ST_OK;
}

/* Parsed here, because json_valid() also says no when memory is out. */
static enum status check_json(struct check *check, const char *name, const char *text, struct error *err) {
    struct error why = {0};
    enum status status = sql_check_json(text, name, &why);
    if (status == ST_NO_MEMORY)
        return error_no_memory(err);
    if (status)
        problem(check, "%s", ERROR_TEXT(&why));
    return ST_OK;
}

/* Report what is wrong with an object; that memory is out is an error instead. */
static enum status tell(struct check *check, const char *what, const struct error *why, struct error *err) {
    if (why->status == ST_NO_MEMORY)
        return error_no_memory(err);
    problem(check, "%s: %s", what, ERROR_TEXT(why));
    return ST_OK;
}

/* Whether the content is an object of its kind. */
static enum status look_into(struct check *check, struct sql_statement *stmt, const char *content, struct error *err) {
    const enum store_kind kind = (enum store_kind)sql_column_integer(stmt, 3);
    struct error why = {0};
    cJSON *json = NULL;
    char what[64];
    snprintf(what, sizeof what, "%s %.12s", column_text(stmt, 2), column_text(stmt, 0));
    enum status status = json_parse(content, strlen(content), "content", &json, &why);
    if (!status)
        status = validate_object(kind, column_text(stmt, 4), json, &why);
    cJSON_Delete(json);
    return !status ? ST_OK : tell(check, what, &why, err);
}

/* Columns id, content, word of the kind, kind, name. */
static enum status look_at_object(struct check *check, struct sql_statement *stmt, struct error *err) {
    struct id id;
    size_t bytes;
    const char *content = sql_column_bytes(stmt, 1, &bytes), *stated = column_text(stmt, 0);
    if (!content)
        return error_no_memory(err);
    enum status status = id_of(content, bytes, &id, err);
    if (status)
        return status;
    check->report.objects++;
    if (!strcmp(id.hex, stated))
        return look_into(check, stmt, content, err);
    problem(check, "%s %.12s: its content was changed (its hash is %.12s)", column_text(stmt, 2), stated, id.hex);
    return check_json(check, stated, content, err);
}

static enum status check_objects(struct check *check, struct error *err) {
    enum status status = ST_OK;
    for (enum store_kind kind = 0; kind < STORE_KIND_COUNT && !status; kind++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT id, content, '%s', %d, name FROM %s", object_word(kind), (int)kind,
                 object_table(kind));
        status = each_row(check, sql, look_at_object, err);
    }
    return status;
}

static void look_at_names(struct check *check, const struct record *record) {
    const char *const stamps[] = {record->queued, record->started, record->ended};
    struct error why = {0};
    if (validate_record(record, &why))
        problem(check, "trial %lld: %s", (long long)record->trial, ERROR_TEXT(&why));
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        if (stamps[i] && !text_is_name(stamps[i], STAMP_MAX))
            problem(check, "trial %lld: its time is no time: %.80s", (long long)record->trial, stamps[i]);
}

static enum status look_at_trial(void *context, const struct record *record, struct error *err) {
    struct check *check = context;
    const size_t n = record->n_iterations;
    check->report.trials++;
    check->report.iterations += n;
    look_at_names(check, record);
    if (record->state != RECORD_COMPLETE) {
        if (n)
            problem(check, "trial %lld: %s, but has %zu iterations", (long long)record->trial,
                    record_state_word(record->state), n);
        return ST_OK;
    }
    if (n == 0)
        return ST_OK; /* as imported, or `rules` says so */
    double *times = malloc(n * sizeof *times);
    if (!times)
        return error_no_memory(err);
    memcpy(times, record->iterations_us, n * sizeof *times);
    const double middle = median_of(n, times);
    free(times);
    if (fabs(middle - record->median_us) > 1e-9 * middle)
        problem(check, "trial %lld: states a median of %.17g µs, its iterations have %.17g µs",
                (long long)record->trial, record->median_us, middle);
    return ST_OK;
}

static enum status look_at_gap(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    problem(check, "trial %lld: iterations are missing among its %lld", (long long)sql_column_integer(stmt, 0),
            (long long)sql_column_integer(stmt, 1));
    return ST_OK;
}

static enum status look_at_stray(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    problem(check, "trial %lld: of another model or cluster than its session %s",
            (long long)sql_column_integer(stmt, 0), column_text(stmt, 1));
    return ST_OK;
}

/* Each statement gives one line for every row that breaks a rule. */
static const char *const rules[] = {
    "SELECT 'trial ' || id || ': its state is ' || state || ', which its values contradict'"
    " FROM trials"
    " WHERE state NOT IN ('waiting', 'running', 'complete', 'failed', 'infeasible', 'cancelled')"
    "    OR (state = 'complete') <> (median_us IS NOT NULL AND mean_us IS NOT NULL AND environment IS NOT NULL)"
    "    OR (state IN ('failed', 'infeasible', 'cancelled')) <> (reason IS NOT NULL)"
    "    OR (state IN ('waiting', 'running')) <> (ended IS NULL)",

    "SELECT 'trial ' || id || ': its interval does not hold its median'"
    " FROM trials"
    " WHERE low_us > median_us OR high_us < median_us",

    "SELECT 'trial ' || id || ': a time that is not positive'"
    " FROM trials"
    " WHERE predicted_us <= 0 OR mean_us <= 0 OR median_us <= 0",

    "SELECT 'trial ' || id || ': complete, but has no iterations'"
    " FROM trials t"
    " WHERE state = 'complete' AND coalesce(n_iterations, 1) > 0"
    "   AND NOT EXISTS (SELECT 1 FROM iterations i WHERE i.trial = t.id)",

    "SELECT 'trial ' || id || ': a lease belongs to a client and a running trial'"
    " FROM trials"
    " WHERE (lease_until IS NULL) <> (lease_us IS NULL)"
    "    OR lease_us <= 0"
    "    OR (lease_until IS NOT NULL AND (state <> 'running' OR client IS NULL))"
    "    OR attempt < 1",

    "SELECT 'trial ' || id || ': a session and a number belong together'"
    " FROM trials"
    " WHERE (session IS NULL) <> (number IS NULL) OR number <= 0 OR round < 0",

    "SELECT 'trial ' || trial || ': an iteration whose time is not positive'"
    " FROM iterations"
    " WHERE time_us <= 0",

    "SELECT 'session ' || id || ': its state is ' || state || ', which its values contradict'"
    " FROM sessions"
    " WHERE state NOT IN ('running', 'done', 'stopped', 'failed', 'paused', 'cancelled')"
    "    OR (state IN ('running', 'paused')) <> (ended IS NULL)"
    "    OR mode NOT IN ('own', 'ask')"
    "    OR id = ''",

    "SELECT 'operation ' || id || ': its state is ' || state || ', which its values contradict'"
    " FROM operations"
    " WHERE state NOT IN ('running', 'done', 'failed') OR (state = 'running') <> (ended IS NULL)",
};

static enum status look_at_line(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    problem(check, "%s", column_text(stmt, 0));
    return ST_OK;
}

/* Columns what it is, text. */
static enum status look_at_json(struct check *check, struct sql_statement *stmt, struct error *err) {
    return check_json(check, column_text(stmt, 0), column_text(stmt, 1), err);
}

static const char texts[] = "SELECT 'session ' || id || ': budget', budget FROM sessions UNION ALL"
                            " SELECT 'session ' || id || ': options', options FROM sessions UNION ALL"
                            " SELECT 'event ' || id, content FROM events UNION ALL"
                            " SELECT 'operation ' || id || ': request', request FROM operations UNION ALL"
                            " SELECT 'operation ' || id || ': result', result FROM operations WHERE result IS NOT NULL";

/* Columns id, origin. */
static enum status look_at_session(struct check *check, struct sql_statement *stmt, struct error *err) {
    struct error why = {0};
    (void)err;
    enum status status = validate_session_id(column_text(stmt, 0), &why);
    if (!status)
        status = validate_name("origin", sql_column_text(stmt, 1), VALID_ORIGIN_MAX, &why);
    if (status)
        problem(check, "session %s: %s", column_text(stmt, 0), ERROR_TEXT(&why));
    return ST_OK;
}

/* Columns what it is, stamp. */
static enum status look_at_stamp(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    if (!text_is_name(column_text(stmt, 1), STAMP_MAX))
        problem(check, "%s: its time is no time: %.80s", column_text(stmt, 0), column_text(stmt, 1));
    return ST_OK;
}

/* The stamps of trials are checked with the trials. */
static const char stamps[] = "SELECT 'session ' || id, started FROM sessions UNION ALL"
                             " SELECT 'session ' || id, ended FROM sessions WHERE ended IS NOT NULL UNION ALL"
                             " SELECT 'model ' || substr(id, 1, 12), created FROM models UNION ALL"
                             " SELECT 'cluster ' || substr(id, 1, 12), created FROM clusters UNION ALL"
                             " SELECT 'strategy ' || substr(id, 1, 12), created FROM strategies UNION ALL"
                             " SELECT 'environment ' || substr(id, 1, 12), created FROM environments UNION ALL"
                             " SELECT 'ranker ' || substr(id, 1, 12), created FROM rankers";

/* Columns what it is, team, shared. */
static enum status look_at_sharing(struct check *check, struct sql_statement *stmt, struct error *err) {
    struct error why = {0};
    (void)err;
    if (check_team(sql_column_text(stmt, 1), sql_column_text(stmt, 2), &why))
        problem(check, "%s: %s", column_text(stmt, 0), ERROR_TEXT(&why));
    return ST_OK;
}

/* Most trials have neither. */
static const char sharing[] =
    "SELECT 'trial ' || id, team, shared FROM trials WHERE team IS NOT NULL OR shared <> '*' UNION ALL"
    " SELECT 'session ' || id, team, shared FROM sessions WHERE team IS NOT NULL OR shared <> '*'";

/* Columns what it is, team, shared, name, created, whether the object is here, whether it was created in the future.
 * The newest holding decides what a name means, so a future stamp would win for ever. */
static enum status look_at_holding(struct check *check, struct sql_statement *stmt, struct error *err) {
    struct error why = {0};
    const char *what = column_text(stmt, 0), *team = column_text(stmt, 1);
    enum status status = check_team(*team ? team : NULL, column_text(stmt, 2), &why);
    (void)err;
    if (!status)
        status = validate_name("name", column_text(stmt, 3), VALID_NAME_MAX, &why);
    if (!status && (!text_is_name(column_text(stmt, 4), STAMP_MAX) || sql_column_integer(stmt, 6)))
        status = error_set(&why, ST_INVALID, "its time is no time, or lies in the future: %.80s", column_text(stmt, 4));
    if (!status && !sql_column_integer(stmt, 5))
        status = error_set(&why, ST_INVALID, "no such object is here");
    if (status)
        problem(check, "%s: %s", what, ERROR_TEXT(&why));
    return ST_OK;
}

static const char holdings[] = "SELECT 'holding of ' || kind || ' ' || object, team, shared, name, created, CASE kind"
#define X(constant, table, word) " WHEN '" #word "' THEN EXISTS (SELECT 1 FROM " #table " WHERE row = object)"
    STORE_KIND_TABLE(X)
#undef X
        " END, created > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day') FROM holdings";

static enum status check_rules(struct check *check, struct error *err) {
    enum status status = each_row(check, texts, look_at_json, err);
    if (!status)
        status = each_row(check, sharing, look_at_sharing, err);
    if (!status)
        status = each_row(check, holdings, look_at_holding, err);
    if (!status)
        status = each_row(check, "SELECT id, origin FROM sessions", look_at_session, err);
    if (!status)
        status = each_row(check, stamps, look_at_stamp, err);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !status; i++)
        status = each_row(check, rules[i], look_at_line, err);
    return status;
}

static enum status look_at_audiences(struct check *check, struct sql_statement *stmt, struct error *err) {
    (void)err;
    check->report.audiences = (uint64_t)sql_column_integer(stmt, 0);
    if (check->report.audiences)
        problem(check,
                "%llu rows of audiences, which say what teams may see, do not agree with trials, sessions and holdings;"
                " merge this file into a new one, which counts them anew",
                (unsigned long long)check->report.audiences);
    return ST_OK;
}

/* A row with no reasons is as good as none. Checked only in a file without other problems, because a wrong row makes
 * these counts wrong too. */
static enum status check_audiences(struct check *check, struct error *err) {
    char sql[4096];
    if (check->report.problems)
        return ST_OK;
    snprintf(sql, sizeof sql,
             "WITH kept AS (SELECT * FROM audiences WHERE reasons <> 0), due AS (%s)"
             " SELECT count(*) FROM (SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM due) a"
             " UNION ALL SELECT * FROM (SELECT * FROM due EXCEPT SELECT * FROM kept) b) c",
             check->store->engine->audiences);
    return each_row(check, sql, look_at_audiences, err);
}

static enum status check_all(struct check *check, struct error *err) {
    const struct engine *engine = check->store->engine;
    enum status status = ST_OK;
    if (engine->check_pages)
        status = each_row(check, engine->check_pages, look_at_integrity, err);
    if (!status && engine->check_references)
        status = each_row(check, engine->check_references, look_at_reference, err);
    if (!status)
        status = check_objects(check, err);
    if (!status)
        status = check_rules(check, err);
    if (!status)
        status = query_run(check->store, &(struct query){.iterations = true}, look_at_trial, check, err);
    if (!status)
        status = each_row(check,
                          "SELECT i.trial, count(*) FROM iterations i JOIN trials t ON t.id = i.trial GROUP BY "
                          "i.trial, t.n_iterations"
                          " HAVING min(i.number) <> 0 OR max(i.number) <> count(*) - 1"
                          " OR count(*) <> coalesce(t.n_iterations, count(*))",
                          look_at_gap, err);
    if (!status)
        status = each_row(check,
                          "SELECT t.id, s.id FROM trials t JOIN sessions s ON s.id = t.session"
                          " WHERE t.model <> coalesce((SELECT row FROM models WHERE id = s.model), 0)"
                          " OR t.cluster <> coalesce((SELECT row FROM clusters WHERE id = s.cluster), 0)",
                          look_at_stray, err);
    return !status ? check_audiences(check, err) : status;
}

enum status check_run(struct store *store, check_visit *visit, void *context, struct check_report *out,
                      struct error *err) {
    struct check check = {.store = store, .visit = visit, .context = context};
    bool began;
    enum status status = store_begin_read(store, &began, err);
    if (status)
        return status;
    status = check_all(&check, err);
    store_end_read(store, began);
    /* Damage that SQLite's check has found also makes it impossible to read the rows after it. */
    if (status == ST_INVALID && check.report.problems > 0)
        status = ST_OK;
    if (!status)
        *out = check.report;
    return status;
}
