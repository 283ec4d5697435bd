/* What the dataset's sources share: the open file, its prepared statements, and SQLite's results as our status. Every
 * fixed statement stands in one table here, prepared on first use and kept; they are texts of the program, so no value
 * of a user is ever pasted into SQL. */
#ifndef DATASET_STORE_INTERNAL_H
#define DATASET_STORE_INTERNAL_H

#include <math.h>

#include "dataset/lock_internal.h"
#include "dataset/names_internal.h"
#include "dataset/store.h"

struct sqlite3;
struct sqlite3_stmt;
struct remembered;

#define SESSION_COLUMNS                                                                                                \
    "s.id, s.model, s.cluster, s.seed, s.budget, s.options, s.state, s.reason, s.started, s.ended,"                    \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id),"                                                         \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id AND t.state = 'complete'),"                                \
    " s.team, s.shared, s.mode, s.origin, s.rowid "

enum { SESSION_ROW = 16 }; /* the column of the row number */

/* The row of the object with that id; where there is none, one that no object has, which its foreign key refuses. */
#define ROW_OF(table, id) "coalesce((SELECT row FROM " table " WHERE id = " id "), 0)"

/* What a trial is about and who sees it (audiences.c). */
#define SHOWN_TRIAL "SELECT t.model, t.cluster, t.strategy, t.team, t.shared FROM trials t "

/* No trial of a strategy that `trials` has is shared with all any more. */
#define HIDE_STRATEGIES(trials)                                                                                        \
    "UPDATE audiences SET reasons = reasons - 1, trials = 0 WHERE kind = 'strategy' AND audience = '*' AND trials"     \
    " AND object IN (SELECT strategy FROM trials WHERE " trials ") AND NOT EXISTS"                                     \
    " (SELECT 1 FROM trials t WHERE t.strategy = audiences.object AND t.shared = '*')"
#define COUNT_MORE "ON CONFLICT DO UPDATE SET reasons = reasons + excluded.reasons, own = own + excluded.own"

/* A thousand events from before ?1, of sessions that have ended or are not here. */
#define OLD_EVENTS                                                                                                     \
    "SELECT e.id FROM events e WHERE e.created < ?1 AND NOT EXISTS"                                                    \
    " (SELECT 1 FROM sessions s WHERE s.id = e.session AND s.ended IS NULL) ORDER BY e.created, e.id LIMIT 1000"

/* X(name, SQL) */
#define STATEMENT_TABLE(X)                                                                                             \
    X(SQL_BEGIN, "BEGIN IMMEDIATE")                                                                                    \
    X(SQL_BEGIN_READ, "BEGIN")                                                                                         \
    X(SQL_COMMIT, "COMMIT")                                                                                            \
    X(SQL_ROLLBACK, "ROLLBACK")                                                                                        \
    X(SQL_SAVE, "SAVEPOINT step")                                                                                      \
    X(SQL_RELEASE, "RELEASE step")                                                                                     \
    X(SQL_UNDO, "ROLLBACK TO step")                                                                                    \
    X(SQL_SESSION_INSERT, "INSERT INTO sessions (id, model, cluster, seed, budget, options, state, started, team,"     \
                          " shared, mode) VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)")                           \
    X(SQL_SESSION_GET, "SELECT " SESSION_COLUMNS "FROM sessions s WHERE s.id = ?")                                     \
    X(SQL_SESSION_LIST,                                                                                                \
      "SELECT " SESSION_COLUMNS "FROM sessions s ORDER BY s.started DESC, s.rowid DESC LIMIT ? OFFSET ?")              \
    X(SQL_SESSION_COUNTS, "SELECT state, count(*) FROM sessions GROUP BY state")                                       \
    X(SQL_SESSION_UPDATE, "UPDATE sessions SET state = ?2, reason = reason_kept(?3), ended = ?4 WHERE id = ?1")        \
    X(SQL_SESSION_BUDGET, "UPDATE sessions SET budget = ?2 WHERE id = ?1")                                             \
    X(SQL_SESSION_ADOPT, "UPDATE sessions SET options = ?2, origin = NULL WHERE id = ?1")                              \
    X(SQL_SESSION_SHARED, "UPDATE sessions SET shared = ?2 WHERE id = ?1")                                             \
    X(SQL_SESSION_TRIALS, SHOWN_TRIAL "WHERE t.session = ?1 AND t.shared <> ?2")                                       \
    X(SQL_SESSION_TRIALS_SHARED, "UPDATE trials SET shared = ?2 WHERE session = ?1 AND shared <> ?2")                  \
    X(SQL_SESSION_TRIALS_HIDDEN, HIDE_STRATEGIES("session = ?1"))                                                      \
    X(SQL_TRIAL_OF_UID, SHOWN_TRIAL "WHERE t.uid = ?1 AND t.shared <> ?2")                                             \
    X(SQL_TRIAL_SHARED, "UPDATE trials SET shared = ?2 WHERE uid = ?1")                                                \
    X(SQL_TRIAL_HIDDEN, HIDE_STRATEGIES("uid = ?1"))                                                                   \
    X(SQL_AUDIENCE_COUNT,                                                                                              \
      "INSERT INTO audiences (kind, audience, object, reasons, own) VALUES (?, ?, ?, ?, ?) " COUNT_MORE)               \
    X(SQL_AUDIENCE_NOTE, "INSERT INTO audiences (kind, audience, object, reasons, own, trials)"                        \
                         " VALUES ('strategy', ?, ?, 1, ?, 1) ON CONFLICT DO UPDATE SET reasons = reasons + 1,"        \
                         " own = own + excluded.own, trials = 1 WHERE NOT trials")                                     \
    X(SQL_SESSION_RECONCILE,                                                                                           \
      "UPDATE trials SET state = 'cancelled', ended = ?2, reason = 'the process that ran it ended before it did'"      \
      " WHERE session = ?1 AND state = 'running' AND lease_until IS NULL")                                             \
    X(SQL_TRIAL_INSERT,                                                                                                \
      "INSERT INTO trials (uid, session, number, round, model, cluster, strategy, proposer, runner, predicted_us,"     \
      " seed, state, queued, started, team, shared) VALUES (?1, ?2, CASE WHEN ?2 IS NULL THEN NULL WHEN ?3 > 0"        \
      " THEN ?3 ELSE (SELECT coalesce(max(number), 0) + 1 FROM trials WHERE session = ?2) END, ?4, " ROW_OF(           \
          "models", "?5") ", " ROW_OF("clusters",                                                                      \
                                      "?6") ", " ROW_OF("strategies",                                                  \
                                                        "?7") ", ?8,"                                                  \
                                                              " ?9, ?10, ?11, ?12, ?13, ?14, coalesce(?15, (SELECT "   \
                                                              "team FROM sessions WHERE id = ?2)),"                    \
                                                              " coalesce(?16, (SELECT shared FROM sessions WHERE id "  \
                                                              "= ?2), '*'))")                                          \
    X(SQL_TRIALS_ADDED, SHOWN_TRIAL "NOT INDEXED WHERE t.id BETWEEN ?1 AND ?2")                                        \
    X(SQL_TRIAL_STATE, "SELECT state FROM trials WHERE id = ?")                                                        \
    X(SQL_TRIAL_RAN_BY, "UPDATE trials SET runner = ?2 WHERE id = ?1 AND ended IS NULL")                               \
    X(SQL_TRIAL_START, "UPDATE trials SET state = 'running', started = ?2 WHERE id = ?1")                              \
    X(SQL_TRIAL_COMPLETE,                                                                                              \
      "UPDATE trials SET state = 'complete', mean_us = ?2, median_us = ?3, low_us = ?4, high_us = ?5,"                 \
      " environment = " ROW_OF(                                                                                        \
          "environments", "?6") ", ended = ?7, n_iterations = ?8, lease_until = NULL, lease_us = NULL WHERE id = ?1")  \
    X(SQL_TRIAL_FAIL, "UPDATE trials SET state = ?2, reason = reason_kept(?3), ended = ?4, lease_until = NULL, "       \
                      "lease_us = NULL WHERE id = ?1")                                                                 \
    X(SQL_LEASE_GET, "SELECT state, client, attempt, lease_until FROM trials WHERE id = ?")                            \
    X(SQL_LEASE_TAKE, "UPDATE trials SET state = 'running', client = ?2, lease_us = ?3, lease_until = ?4,"             \
                      " started = ?5 WHERE id = ?1")                                                                   \
    X(SQL_LEASE_RENEW, "UPDATE trials SET lease_us = ?2, lease_until = ?3 WHERE id = ?1")                              \
    X(SQL_LEASE_RETURN, "UPDATE trials SET state = 'waiting', attempt = attempt + 1, client = NULL, lease_us = NULL,"  \
                        " lease_until = NULL, started = NULL WHERE id = ?1")                                           \
    X(SQL_LEASE_LIST,                                                                                                  \
      "SELECT id, session, number, client, attempt, lease_us, lease_until FROM trials"                                 \
      " WHERE state = 'running' AND lease_until IS NOT NULL AND (?1 IS NULL OR session = ?1) ORDER BY id")             \
    X(SQL_EVENT_INSERT, "INSERT INTO events (session, kind, content, created) VALUES (?, ?, ?, ?)")                    \
    X(SQL_EVENT_LIST, "SELECT id, session, kind, content, created FROM events WHERE id > ?1 ORDER BY id LIMIT ?2")     \
    X(SQL_EVENT_LIST_OF, "SELECT id, session, kind, content, created FROM events WHERE id > ?1 AND session = ?3"       \
                         " ORDER BY id LIMIT ?2")                                                                      \
    X(SQL_EVENT_LAST, "SELECT coalesce(max(id), 0) FROM events")                                                       \
    X(SQL_EVENT_LAST_OF, "SELECT coalesce(max(id), 0) FROM events WHERE session = ?")                                  \
    X(SQL_EVENT_PRUNED, "SELECT last FROM pruned_events WHERE session = ?")                                            \
    X(SQL_EVENT_NOTE,                                                                                                  \
      "INSERT INTO pruned_events (session, last) SELECT session, max(id) FROM events WHERE id IN (" OLD_EVENTS         \
      ") AND session IS NOT NULL GROUP BY session ON CONFLICT DO UPDATE SET last = excluded.last")                     \
    X(SQL_EVENT_CREDIT,                                                                                                \
      "UPDATE usage SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size) FROM (SELECT s.team AS team,"        \
      " count(*) AS n, sum(100 + length(e.content)) AS size FROM events e JOIN sessions s ON s.id = e.session"         \
      " WHERE e.id IN (" OLD_EVENTS ") GROUP BY s.team) x WHERE usage.team = x.team")                                  \
    X(SQL_EVENT_CHARGE,                                                                                                \
      "INSERT INTO usage (team, rows, bytes) SELECT team, 1, 100 + length(?2) FROM sessions WHERE id = ?1"             \
      " AND team NOT NULL ON CONFLICT DO UPDATE SET rows = rows + 1, bytes = bytes + excluded.bytes")                  \
    X(SQL_EVENT_PRUNE, "DELETE FROM events WHERE id IN (" OLD_EVENTS ")")                                              \
    X(SQL_RESPONSE_GET,                                                                                                \
      "SELECT fingerprint, status, content_type, body, created FROM idempotency WHERE token IN (?1,"                   \
      " CASE instr(?1, '@') WHEN 0 THEN ?1 WHEN 1 THEN substr(?1, 2) ELSE substr(?1, 1, instr(?1, '@') - 1) END)"      \
      " AND key = ?2")                                                                                                 \
    X(SQL_RESPONSE_INSERT, "INSERT INTO idempotency (token, key, fingerprint, status, content_type, body, created)"    \
                           " VALUES (?, ?, ?, ?, ?, ?, ?)")                                                            \
    X(SQL_RESPONSE_PRUNE,                                                                                              \
      "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency WHERE created < ? LIMIT 1000)")           \
    X(SQL_AUDIT_INSERT, "INSERT INTO audit (at, token, team, address, method, path, status, request_id)"               \
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)")                                                            \
    X(SQL_AUDIT_LIST, "SELECT id, at, token, team, address, method, path, status, request_id FROM audit"               \
                      " WHERE id < ?1 ORDER BY id DESC LIMIT ?2")                                                      \
    X(SQL_RESPONSE_TRIM,                                                                                               \
      "DELETE FROM idempotency WHERE token = ?1 AND rowid <= (SELECT rowid FROM (SELECT rowid,"                        \
      " row_number() OVER (ORDER BY rowid DESC) AS n, sum(length(body) + 200) OVER (ORDER BY rowid DESC) AS size"      \
      " FROM idempotency WHERE token = ?1) WHERE n > ?2 OR size > ?3 ORDER BY rowid DESC LIMIT 1)")                    \
    X(SQL_RESPONSE_CREDIT, /* those of before their owner named a team (dispatch.c) were never charged */              \
      "UPDATE usage SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size) FROM (SELECT"                        \
      " substr(token, instr(token, '@') + 1) AS team, count(*) AS n, sum(200 + length(body)) AS size FROM idempotency" \
      " WHERE instr(token, '@') > 0 AND rowid IN (SELECT rowid FROM idempotency WHERE created < ? LIMIT 1000)"         \
      " GROUP BY team) x WHERE usage.team = x.team")                                                                   \
    X(SQL_AUDIT_CREDIT,                                                                                                \
      "UPDATE usage SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size) FROM (SELECT team, count(*) AS n,"   \
      " sum(150 + length(path)) AS size FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? LIMIT 1000)"         \
      " GROUP BY team) x WHERE usage.team = x.team")                                                                   \
    X(SQL_PAGES, "PRAGMA page_count")                                                                                  \
    X(SQL_PAGES_FREE, "PRAGMA freelist_count")                                                                         \
    X(SQL_PAGE_SIZE, "PRAGMA page_size")                                                                               \
    X(SQL_USAGE_ADD, "INSERT INTO usage (team, rows, bytes) VALUES (?1, max(0, ?2), ?3) ON CONFLICT DO UPDATE SET"     \
                     " rows = max(0, rows + ?2), bytes = bytes + ?3")                                                  \
    X(SQL_USAGE_LIST, "SELECT team, rows, bytes FROM usage WHERE ?1 IS NULL OR team = ?1 ORDER BY team")               \
    X(SQL_USAGE_OPEN, "SELECT count(*) FROM sessions WHERE team = ? AND ended IS NULL")                                \
    X(SQL_AUDIT_PRUNE, "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? LIMIT 1000)")                 \
    X(SQL_OPERATION_INSERT, "INSERT INTO operations (id, kind, team, state, request, created)"                         \
                            " VALUES (?, ?, ?, 'running', ?, ?)")                                                      \
    X(SQL_OPERATION_END, "UPDATE operations SET state = ?2, result = ?3, ended = ?4"                                   \
                         " WHERE id = ?1 AND state = 'running'")                                                       \
    X(SQL_OPERATION_GET, "SELECT id, kind, team, state, request, result, created, ended FROM operations WHERE id = ?") \
    X(SQL_OPERATION_LIST,                                                                                              \
      "SELECT id, kind, team, state, request, result, created, ended FROM operations WHERE (?1 IS NULL OR state = ?1)" \
      " AND (?2 IS NULL OR team = ?2) AND (?3 IS NULL OR rowid < (SELECT rowid FROM operations WHERE id = ?3))"        \
      " ORDER BY rowid DESC LIMIT ?4")                                                                                 \
    X(SQL_OPERATION_RECONCILE,                                                                                         \
      "UPDATE operations SET state = 'failed', result = ?1, ended = ?2 WHERE state = 'running'")                       \
    X(SQL_SESSION_IMPORT,                                                                                              \
      "INSERT INTO sessions (id, model, cluster, seed, budget, options, state, reason, started, ended, team, shared,"  \
      " mode, origin) VALUES (?, ?, ?, ?, ?, ?, ?, reason_kept(?), ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING")     \
    X(SQL_HOLDING_PUT,                                                                                                 \
      "INSERT INTO holdings (kind, object, team, name, shared, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"               \
      " ON CONFLICT DO NOTHING")                                                                                       \
    X(SQL_HOLDING_SHARE,                                                                                               \
      "UPDATE holdings SET shared = ?4, name = iif(shared = '', ?5, name), created = iif(shared = '', ?6, created)"    \
      " WHERE kind = ?1 AND object = ?2 AND team = ?3 AND (shared <> ?4 OR (shared = '' AND name <> ?5))")             \
    X(SQL_HOLD_STRATEGIES, /* those behind a row that no trial is about */                                             \
      "INSERT INTO holdings (kind, object, team, name, shared, created) SELECT 'strategy', row, '', name, '*', "       \
      "created"                                                                                                        \
      " FROM strategies s WHERE row > ? AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.strategy = s.row)"              \
      " ON CONFLICT DO NOTHING")                                                                                       \
    X(SQL_STRATEGY_NAME, STRATEGY_NAME)                                                                                \
    X(SQL_HOLD_STRATEGY, HOLD_STRATEGY)                                                                                \
    X(SQL_HOLD_NAMED, /* a name that is the id's first digits is nobody's */                                           \
      "INSERT INTO holdings (kind, object, team, name, shared, created) SELECT 'strategy', row, ?2, ?3, '', ?4"        \
      " FROM strategies WHERE id = ?1 AND ?3 <> substr(id, 1, " NAME_DIGITS ") ON CONFLICT DO NOTHING")                \
    X(SQL_HOLD_IMPORTED, HOLD_STRATEGIES_OF_TRIALS("AND t.id > ?1 AND s.row > ?2"))                                    \
    X(SQL_TRIAL_LAST, "SELECT coalesce(max(id), 0) FROM trials")                                                       \
    X(SQL_TRIAL_IMPORT,                                                                                                \
      "INSERT INTO trials (id, uid, session, number, round, seed, model, cluster, strategy, proposer, runner, state,"  \
      " reason, queued, started, ended, predicted_us, mean_us, median_us, low_us, high_us, environment, team,"         \
      " shared, attempt, client, n_iterations) VALUES (?1, ?2, ?3, CASE WHEN ?3 IS NULL THEN NULL WHEN ?4 > 0 THEN ?4" \
      " ELSE (SELECT coalesce(max(number), 0) + 1 FROM trials WHERE session = ?3) END, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"  \
      " ?12, reason_kept(?13), ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"                                           \
      " coalesce(?23, (SELECT team FROM sessions WHERE id = ?3)),"                                                     \
      " shared_narrow(?24, (SELECT shared FROM sessions WHERE id = ?3)), ?25, ?26, ?27)"                               \
      " ON CONFLICT (uid) DO NOTHING")                                                                                 \
    X(SQL_TRIAL_SEEN, "SELECT 1 FROM trials WHERE uid = ?1 AND (shared = '*' OR team = ?2"                             \
                      " OR instr(shared, '|' || ?2 || '|') > 0)")                                                      \
    X(SQL_TRIAL_DIFFERENCE,                                                                                            \
      "SELECT CASE WHEN session IS NOT ?3 THEN 'session' WHEN ?4 > 0 AND number IS NOT ?4 THEN 'number'"               \
      " WHEN round <> ?5 THEN 'round' WHEN seed <> ?6 THEN 'seed' WHEN model <> ?7 THEN 'model'"                       \
      " WHEN cluster <> ?8 THEN 'cluster' WHEN strategy <> ?9 THEN 'strategy' WHEN proposer <> ?10 THEN 'proposer'"    \
      " WHEN runner <> ?11 THEN 'runner' WHEN state <> ?12 THEN 'state'"                                               \
      " WHEN reason_kept(reason) IS NOT reason_kept(?13) THEN 'reason'"                                                \
      " WHEN predicted_us IS NOT ?17 THEN 'predicted_us' WHEN mean_us IS NOT ?18 THEN 'mean_us'"                       \
      " WHEN median_us IS NOT ?19 THEN 'median_us' WHEN low_us IS NOT ?20 THEN 'low_us'"                               \
      " WHEN high_us IS NOT ?21 THEN 'high_us' WHEN environment IS NOT ?22 THEN 'environment' END"                     \
      " FROM trials WHERE uid = ?2")                                                                                   \
    X(SQL_PAIR_NEXT, /* (model, cluster) > (?1, ?2) would walk over all that equal them */                             \
      "SELECT * FROM (SELECT model, cluster FROM trials WHERE model = ?1 AND cluster > ?2 ORDER BY cluster LIMIT 1)"   \
      " UNION ALL SELECT * FROM (SELECT model, cluster FROM trials WHERE model > ?1 ORDER BY model, cluster LIMIT 1)"  \
      " LIMIT 1")                                                                                                      \
    X(SQL_FASTEST,                                                                                                     \
      "SELECT id, median_us FROM trials WHERE model = ?1 AND cluster = ?2 AND median_us BETWEEN ?3 AND ?6"             \
      " AND (median_us > ?3 OR id > ?4) ORDER BY median_us, id LIMIT ?5")                                              \
    X(SQL_SLOWEST,                                                                                                     \
      "SELECT id, median_us FROM trials WHERE model = ?1 AND cluster = ?2 AND median_us BETWEEN ?6 AND ?3"             \
      " AND (median_us < ?3 OR id < ?4) ORDER BY median_us DESC, id DESC LIMIT ?5")                                    \
    X(SQL_ITERATION_INSERT, "INSERT INTO iterations (trial, number, time_us) VALUES (?, ?, ?)")                        \
    X(SQL_ITERATION_LIST, "SELECT time_us, number FROM iterations WHERE trial = ? ORDER BY number")

enum statement {
#define X(name, sql) name,
    STATEMENT_TABLE(X)
#undef X
        STATEMENT_COUNT
};

/* Ways to find an object by what somebody typed (holdings.c). */
enum store_search {
    STORE_SEARCH_DIGITS,
    STORE_SEARCH_HELD,
    STORE_SEARCH_SHARED,
    STORE_SEARCH_UNHELD,
    STORE_SEARCH_COUNT
};

struct store {
    struct sqlite3 *db;
    char *path; /* as the caller wrote it, for messages */
    char *file; /* absolute, without symbolic links */
    char *copy; /* what is open in place of a file of an older schema; NULL: the file */
    bool read_only, immutable;
    unsigned depth;   /* of write steps that are open */
    unsigned bare;    /* how many of these are inner ones without a savepoint: nothing was written before them */
    int64_t written;  /* rows changed on this connection when the transaction began; -1: it may have changed more */
    int64_t inserted; /* rows of things that stay, less those deleted, on this connection (usage.c) */
    int64_t apart_rows, apart_bytes; /* of these, events: who has their session is charged for them at once */
    bool reading;                    /* between store_begin_read and store_end_read, outside a write step */
    struct lock lock;                /* held when not read_only */
    struct remembered *remembered;   /* of audiences (audiences.c); NULL until it is needed */
    struct sqlite3_stmt *statements[STATEMENT_COUNT];
    struct sqlite3_stmt *object_get[STORE_KIND_COUNT], *object_insert[STORE_KIND_COUNT], *object_row[STORE_KIND_COUNT],
        *object_seen[STORE_KIND_COUNT], *object_shown[STORE_KIND_COUNT], *object_named[STORE_KIND_COUNT],
        *object_found[STORE_SEARCH_COUNT][STORE_KIND_COUNT];
};

/* A value to bind. */
struct sql_value {
    enum { SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_BLOB } type;
    int64_t integer; /* of a blob: its length */
    double real;
    const char *text;
};
static inline struct sql_value sql_integer(int64_t x) {
    return (struct sql_value){.type = SQL_INTEGER, .integer = x};
}
static inline struct sql_value sql_real(double x) { /* NaN is NULL */
    return (struct sql_value){.type = SQL_REAL, .real = x};
}
static inline struct sql_value sql_text(const char *text) { /* NULL is NULL */
    return (struct sql_value){.type = SQL_TEXT, .text = text};
}
static inline struct sql_value sql_blob(const char *bytes, size_t n) {
    return (struct sql_value){.type = SQL_BLOB, .text = bytes, .integer = (int64_t)n};
}
/* Two arguments: how many values, and where. */
#define SQL_VALUES(...)                                                                                                \
    sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value), (const struct sql_value[]) {           \
        __VA_ARGS__                                                                                                    \
    }

/* The failure that `db` just met, as one line about the file `path`. `code` is SQLite's extended result. */
/* What our statements call beside SQLite's own functions: shared_narrow (sharing.h), where NULL is no bound, and
 * reason_kept (validate_internal.h). A result code of SQLite. */
int sql_add_functions(struct sqlite3 *db);

enum status sql_fail(struct sqlite3 *db, int code, const char *path, struct error *err);

/* A text that a column of JSON may hold; `name` stands for it in messages. Fails: ST_INVALID. */
enum status sql_check_json(const char *text, const char *name, struct error *err);

/* Run texts without results, one or several. */
enum status sql_exec(struct store *store, const char *sql, struct error *err);

/* A statement of the table, bound and ready to be stepped; the texts must live until it is reset. */
enum status sql_start(struct store *store, enum statement which, size_t n, const struct sql_value *values,
                      struct sqlite3_stmt **out, struct error *err);
enum status sql_start_kept(struct store *store, struct sqlite3_stmt **kept, const char *sql, size_t n,
                           const struct sql_value *values, struct sqlite3_stmt **out, struct error *err);
enum status sql_bind(struct store *store, struct sqlite3_stmt *stmt, size_t n, const struct sql_value *values,
                     struct error *err);

/* *row says whether there is one; after the last, and after a failure, the statement is reset. */
enum status sql_next(struct store *store, struct sqlite3_stmt *stmt, bool *row, struct error *err);

/* A statement without rows, from start to end. */
enum status sql_run(struct store *store, enum statement which, size_t n, const struct sql_value *values,
                    struct error *err);

/* NULLs are fine. Fails: ST_INVALID. */
enum status check_team(const char *team, const char *shared, struct error *err);

/* A statement of this call alone; finalize with sqlite3_finalize. */
enum status sql_prepare(struct store *store, const char *sql, struct sqlite3_stmt **out, struct error *err);

/* The first column of a statement's first row; 0 where there is no row. */
enum status sql_first_integer(struct store *store, enum statement which, size_t n, const struct sql_value *values,
                              int64_t *out, struct error *err);

/* The same of `sql`, which has a row. */
enum status sql_get_integer(struct store *store, const char *sql, int64_t *out, struct error *err);

/* One statement as one step of its own; *n (may be NULL) is how many rows it changed. */
enum status sql_step(struct store *store, enum statement which, size_t n_values, const struct sql_value *values,
                     uint64_t *n, struct error *err);

/* How many rows a list may have: `limit`, 0 being all. */
static inline int64_t sql_limit(size_t limit) {
    return limit && limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

/* Rows of one statement, gathered into an array in an arena: `read` fills the zeroed element from the statement. */
typedef enum status sql_read_row(struct sqlite3_stmt *stmt, struct arena *arena, void *element, struct error *err);
enum status sql_collect(struct store *store, struct sqlite3_stmt *stmt, sql_read_row *read, size_t size,
                        struct arena *arena, size_t *n, void **out, struct error *err);

/* How many rows the last statement changed. */
int64_t sql_changes(const struct store *store);

/* Column `i`, copied; *out is NULL where the column is. */
enum status sql_copy_text(struct sqlite3_stmt *stmt, int i, struct arena *arena, const char **out, struct error *err);
double sql_column_real(struct sqlite3_stmt *stmt, int i); /* NaN where the column is NULL */

/* "file:/the%20path?mode=ro" for the file of a read-only store, or any other; malloc'd, NULL when memory is out. */
char *sql_uri(const char *file, bool immutable);

/* Copy the open database to `path` (see store_backup); or into the empty file of that name. */
enum status backup_copy(struct store *store, const char *path, struct error *err);
enum status backup_write(struct store *store, const char *path, struct error *err);

/* The id of a text that nobody has looked at yet. Fails: ST_INVALID when it is no JSON; `name` stands for it there. */
enum status object_read_id(const char *name, const char *content, struct id *out, struct error *err);

/* Add an object without a transaction of its own. `content` is known to be JSON, and `id` to be its SHA-256: neither is
 * looked at again. `created` NULL is now. *added (may be NULL) says whether it was new. */
enum status object_put(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                       const char *content, const char *created, bool *added, struct error *err);

/* The same as a step of its own. What is new is then of no team and shared with all. */
enum status object_put_for_all(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                               const char *content, struct error *err);

/* holding_put, made at `created`; NULL is now. */
enum status holding_put_at(struct store *store, enum store_kind kind, const char *id, const char *team,
                           const char *name, const char *shared, const char *created, struct error *err);

/* A row of the columns id, name, created and, where it is asked for, content. */
enum status object_read(struct sqlite3_stmt *stmt, bool with_content, struct arena *arena, struct stored_object *out,
                        struct error *err);

/* The row that other tables know an object by, 0 when it is not here. */
enum status object_row(struct store *store, enum store_kind kind, const char *id, int64_t *out, struct error *err);

/* Column `i`, the state of `trial`. Fails: ST_INVALID. */
enum status column_state(struct sqlite3_stmt *stmt, int i, int64_t trial, enum record_state *out, struct error *err);

/* A new trial's uid, 32 hex digits. Fails: ST_ENVIRONMENT. */
enum { UID_ROOM = 33 };
enum status make_uid(char out[UID_ROOM], struct error *err);

/* Fails: ST_INVALID unless all are positive and finite. */
enum status check_times(size_t n, const double *times_us, struct error *err);
enum status insert_iterations(struct store *store, int64_t trial, size_t n, const double *times_us, struct error *err);

/* A row of SESSION_COLUMNS. */
enum status session_read(struct sqlite3_stmt *stmt, struct arena *arena, struct stored_session *out, struct error *err);
/* ST_NOT_FOUND, of an object that is not here. */
enum status no_object(const struct store *store, enum store_kind kind, const char *id, struct error *err);
const char *object_table(enum store_kind kind);
const char *object_word(enum store_kind kind);

#endif
