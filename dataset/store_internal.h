/* What the dataset's sources share: the open file, its prepared statements, and SQLite's results as our status. Every
 * fixed statement stands in one table here, prepared on first use and kept; they are texts of the program, so no value
 * of a user is ever pasted into SQL. */
#ifndef DATASET_STORE_INTERNAL_H
#define DATASET_STORE_INTERNAL_H

#include <math.h>

#include "dataset/lock_internal.h"
#include "dataset/store.h"

struct sqlite3;
struct sqlite3_stmt;

#define SESSION_COLUMNS                                                                                                \
    "s.id, s.model, s.cluster, s.seed, s.budget, s.options, s.state, s.reason, s.started, s.ended,"                    \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id),"                                                         \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id AND t.state = 'complete') "

/* X(name, SQL) */
#define STATEMENT_TABLE(X)                                                                                             \
    X(SQL_BEGIN, "BEGIN IMMEDIATE")                                                                                    \
    X(SQL_BEGIN_READ, "BEGIN")                                                                                         \
    X(SQL_COMMIT, "COMMIT")                                                                                            \
    X(SQL_ROLLBACK, "ROLLBACK")                                                                                        \
    X(SQL_SESSION_INSERT, "INSERT INTO sessions (id, model, cluster, seed, budget, options, state, started)"           \
                          " VALUES (?, ?, ?, ?, ?, ?, 'running', ?)")                                                  \
    X(SQL_SESSION_GET, "SELECT " SESSION_COLUMNS "FROM sessions s WHERE s.id = ?")                                     \
    X(SQL_SESSION_LIST,                                                                                                \
      "SELECT " SESSION_COLUMNS "FROM sessions s ORDER BY s.started DESC, s.id DESC LIMIT ? OFFSET ?")                 \
    X(SQL_SESSION_UPDATE, "UPDATE sessions SET state = ?2, reason = ?3, ended = ?4 WHERE id = ?1")                     \
    X(SQL_SESSION_RECONCILE,                                                                                           \
      "UPDATE trials SET state = 'cancelled', ended = ?2, reason = 'the process that ran it ended before it did'"      \
      " WHERE session = ?1 AND state = 'running'")                                                                     \
    X(SQL_CALIBRATION_PUT,                                                                                             \
      "INSERT INTO calibrations (session, after_trial, content, created) VALUES (?, ?, ?, ?)"                          \
      " ON CONFLICT (session, after_trial) DO UPDATE SET content = excluded.content, created = excluded.created")      \
    X(SQL_CALIBRATION_GET, "SELECT content, after_trial FROM calibrations WHERE session = ? AND after_trial <= ?"      \
                           " ORDER BY after_trial DESC LIMIT 1")                                                       \
    X(SQL_TRIAL_INSERT,                                                                                                \
      "INSERT INTO trials (uid, session, number, round, model, cluster, strategy, proposer, runner, predicted_us,"     \
      " seed, state, queued, started) VALUES (?1, ?2, CASE WHEN ?2 IS NULL THEN NULL WHEN ?3 > 0 THEN ?3 ELSE"         \
      " (SELECT coalesce(max(number), 0) + 1 FROM trials WHERE session = ?2) END, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"   \
      " ?12, ?13, ?14)")                                                                                               \
    X(SQL_TRIAL_STATE, "SELECT state FROM trials WHERE id = ?")                                                        \
    X(SQL_TRIAL_START, "UPDATE trials SET state = 'running', started = ?2 WHERE id = ?1")                              \
    X(SQL_TRIAL_COMPLETE,                                                                                              \
      "UPDATE trials SET state = 'complete', mean_us = ?2, median_us = ?3, low_us = ?4, high_us = ?5,"                 \
      " environment = ?6, ended = ?7 WHERE id = ?1")                                                                   \
    X(SQL_TRIAL_FAIL, "UPDATE trials SET state = ?2, reason = ?3, ended = ?4 WHERE id = ?1")                           \
    X(SQL_ITERATION_INSERT, "INSERT INTO iterations (trial, number, time_us) VALUES (?, ?, ?)")                        \
    X(SQL_ITERATION_LIST, "SELECT time_us, number FROM iterations WHERE trial = ? ORDER BY number")

enum statement {
#define X(name, sql) name,
    STATEMENT_TABLE(X)
#undef X
        STATEMENT_COUNT
};

struct store {
    struct sqlite3 *db;
    char *path; /* as the caller wrote it, for messages */
    char *file; /* absolute, without symbolic links */
    bool read_only, immutable;
    struct lock lock; /* held when not read_only */
    struct sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* A value to bind. */
struct sql_value {
    enum { SQL_INTEGER, SQL_REAL, SQL_TEXT } type;
    int64_t integer;
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
/* Two arguments: how many values, and where. */
#define SQL_VALUES(...)                                                                                                \
    sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value), (const struct sql_value[]) {           \
        __VA_ARGS__                                                                                                    \
    }

/* The failure that `db` just met, as one line about the file `path`. `code` is SQLite's extended result. */
enum status sql_fail(struct sqlite3 *db, int code, const char *path, struct error *err);

/* A text that a column of JSON may hold; `name` stands for it in messages. Fails: ST_INVALID. */
enum status sql_check_json(const char *text, const char *name, struct error *err);

/* Run texts without results, one or several. */
enum status sql_exec(struct store *store, const char *sql, struct error *err);

/* A statement of the table, bound and ready to be stepped; the texts must live until it is reset. */
enum status sql_start(struct store *store, enum statement which, size_t n, const struct sql_value *values,
                      struct sqlite3_stmt **out, struct error *err);
enum status sql_bind(struct store *store, struct sqlite3_stmt *stmt, size_t n, const struct sql_value *values,
                     struct error *err);

/* *row says whether there is one; after the last, and after a failure, the statement is reset. */
enum status sql_next(struct store *store, struct sqlite3_stmt *stmt, bool *row, struct error *err);

/* A statement without rows, from start to end. */
enum status sql_run(struct store *store, enum statement which, size_t n, const struct sql_value *values,
                    struct error *err);

/* A statement of this call alone; finalize with sqlite3_finalize. */
enum status sql_prepare(struct store *store, const char *sql, struct sqlite3_stmt **out, struct error *err);

/* One integer, the first column of the first row of `sql`. */
enum status sql_get_integer(struct store *store, const char *sql, int64_t *out, struct error *err);

/* A write transaction: sql_end commits when `status` is ST_OK and otherwise undoes everything and returns `status`. */
enum status sql_begin(struct store *store, struct error *err);
enum status sql_end(struct store *store, enum status status, struct error *err);

/* One consistent view over several reads; nests. *began goes to sql_end_read. */
enum status sql_begin_read(struct store *store, bool *began, struct error *err);
void sql_end_read(struct store *store, bool began);

/* How many rows the last statement changed. */
int64_t sql_changes(const struct store *store);

/* Column `i`, copied; *out is NULL where the column is. */
enum status sql_copy_text(struct sqlite3_stmt *stmt, int i, struct arena *arena, const char **out, struct error *err);
double sql_column_real(struct sqlite3_stmt *stmt, int i); /* NaN where the column is NULL */

/* "file:/the%20path?mode=ro" for the file of a read-only store, or any other; malloc'd, NULL when memory is out. */
char *sql_uri(const char *file, bool immutable);

/* Copy the open database to `path` (see store_backup). */
enum status backup_write(struct store *store, const char *path, struct error *err);

/* store_put without a transaction of its own. */
enum status object_put(struct store *store, enum store_kind kind, const char *name, const char *content, struct id *id,
                       struct error *err);
const char *object_table(enum store_kind kind);
const char *object_word(enum store_kind kind);

#endif
