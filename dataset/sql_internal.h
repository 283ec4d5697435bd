/* SQLite in the terms of this folder. Values are bound from arrays. Results become a status and one line that names the
 * file and says what to do.
 *
 * A fixed statement is a text beside the function that runs it: `static const char insert_event[] = "INSERT ...";`. It
 * is prepared on first use and kept with the store, found again by the address of its text. So such a text must be
 * static. Values of users are always bound, never part of a text. Texts that differ from call to call are prepared by
 * sql_prepare, and not kept. */
#ifndef DATASET_SQL_INTERNAL_H
#define DATASET_SQL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;
struct store;

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
/* Makes two arguments of a list of values: how many there are, and a pointer to the first. */
#define SQL_VALUES(...)                                                                                                \
    sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value), (const struct sql_value[]) {           \
        __VA_ARGS__                                                                                                    \
    }

/* ---- statements that are kept ---- */

/* The statement of the static text `sql`, bound and ready for sql_next. The bound texts must live until it is reset. */
enum status sql_start(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sqlite3_stmt **out, struct error *err);

/* *row says whether there is one; after the last, and after a failure, the statement is reset. */
enum status sql_next(struct store *store, struct sqlite3_stmt *stmt, bool *row, struct error *err);

/* A statement without rows, from start to end. */
enum status sql_run(struct store *store, const char *sql, size_t n, const struct sql_value *values, struct error *err);

/* The same as a step of its own; *n (may be NULL) is how many rows it changed. */
enum status sql_step(struct store *store, const char *sql, size_t n_values, const struct sql_value *values, uint64_t *n,
                     struct error *err);

/* The first row of a statement. Where *row says that there is one, *out is at it until it is reset. */
enum status sql_first(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sqlite3_stmt **out, bool *row, struct error *err);

/* The first column of a statement's first row; 0 where there is no row. */
enum status sql_first_integer(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              int64_t *out, struct error *err);

/* Finalize them all, before the database is closed. */
void sql_forget(struct store *store);

/* ---- others ---- */

/* A statement of this call alone; finalize with sqlite3_finalize. */
enum status sql_prepare(struct store *store, const char *sql, struct sqlite3_stmt **out, struct error *err);
enum status sql_bind(struct store *store, struct sqlite3_stmt *stmt, size_t n, const struct sql_value *values,
                     struct error *err);

/* Run texts without results, one or several. */
enum status sql_exec(struct store *store, const char *sql, struct error *err);

/* ---- rows ---- */

/* Rows of one statement, gathered into an array in an arena: `read` fills the zeroed element from the statement. */
typedef enum status sql_read_row(struct sqlite3_stmt *stmt, struct arena *arena, void *element, struct error *err);
enum status sql_collect(struct store *store, struct sqlite3_stmt *stmt, sql_read_row *read, size_t size,
                        struct arena *arena, size_t *n, void **out, struct error *err);

/* Column `i`, copied; *out is NULL where the column is. */
enum status sql_copy_text(struct sqlite3_stmt *stmt, int i, struct arena *arena, const char **out, struct error *err);
double sql_column_real(struct sqlite3_stmt *stmt, int i); /* NaN where the column is NULL */

/* How many rows the last statement changed. */
int64_t sql_changes(const struct store *store);

/* How many rows a list may have: `limit`, 0 being all. */
static inline int64_t sql_limit(size_t limit) {
    return limit && limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

/* ---- the database ---- */

/* The failure that `db` just met, as one line about the file `path`. `code` is SQLite's extended result. */
enum status sql_fail(struct sqlite3 *db, int code, const char *path, struct error *err);

/* What our statements call beside SQLite's own functions: shared_narrow (sharing.h), where NULL is no bound, and
 * reason_kept (validate_internal.h). Returns a result code of SQLite. */
int sql_add_functions(struct sqlite3 *db);

/* A text that a column of JSON may hold; `name` stands for it in messages. Fails: ST_INVALID. */
enum status sql_check_json(const char *text, const char *name, struct error *err);

/* "file:/the%20path?mode=ro" for the file of a read-only store, or any other; malloc'd, NULL when memory is out. */
char *sql_uri(const char *file, bool immutable);

#endif
