/* SQL in the terms of this folder, whatever the engine. Values are bound from arrays. Results become a status and one
 * line that names the file and says what to do.
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

struct sql_statement;
struct store;

/* A value to bind. */
struct sql_value {
    enum { SQL_INTEGER, SQL_NO_INTEGER, SQL_REAL, SQL_TEXT, SQL_BLOB, SQL_INTEGERS } type;
    int64_t integer; /* of a blob: its length; of an array: how many */
    double real;
    const char *text;
    const int64_t *integers;
};
static inline struct sql_value sql_integer(int64_t x) {
    return (struct sql_value){.type = SQL_INTEGER, .integer = x};
}
static inline struct sql_value sql_no_integer(void) { /* NULL in a column of integers */
    return (struct sql_value){.type = SQL_NO_INTEGER};
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
static inline struct sql_value sql_integers(size_t n, const int64_t *x) { /* an array, which SQLite does not have */
    return (struct sql_value){.type = SQL_INTEGERS, .integers = x, .integer = (int64_t)n};
}
/* Makes two arguments of a list of values: how many there are, and a pointer to the first. */
#define SQL_VALUES(...)                                                                                                \
    sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value), (const struct sql_value[]) {           \
        __VA_ARGS__                                                                                                    \
    }

/* ---- statements that are kept ---- */

/* The statement of the static text `sql`, bound and ready for sql_next. The bound texts must live until it is reset. */
enum status sql_start(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sql_statement **out, struct error *err);

/* *row says whether there is one; after the last, and after a failure, the statement is reset. */
enum status sql_next(struct store *store, struct sql_statement *stmt, bool *row, struct error *err);

/* A statement without rows, from start to end. */
enum status sql_run(struct store *store, const char *sql, size_t n, const struct sql_value *values, struct error *err);

/* The same as a step of its own; *n (may be NULL) is how many rows it changed. */
enum status sql_step(struct store *store, const char *sql, size_t n_values, const struct sql_value *values, uint64_t *n,
                     struct error *err);

/* A statement "INSERT ... RETURNING" of at most one row; *row (may be NULL) is the first column, 0 where none was
 * inserted. */
enum status sql_insert(struct store *store, const char *sql, size_t n, const struct sql_value *values, int64_t *row,
                       struct error *err);

/* `sql` is "INSERT INTO table (id, ...) VALUES (...) ON CONFLICT ... DO NOTHING" of one row with n numbered parameters,
 * of which ?1 is the id. Insert rows, in order: row i has the values from values[i * n] on, and inserted[i] says
 * whether it was not there. No row may read what another one wrote, because an engine may insert several at once; their
 * texts must live until this returns. *done is how many are in; after a failure the next one was refused. */
enum status sql_insert_each(struct store *store, const char *sql, size_t rows, size_t n, const struct sql_value *values,
                            bool *inserted, size_t *done, struct error *err);

/* The first row of a statement. Where *row says that there is one, *out is at it until it is reset. */
enum status sql_first(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sql_statement **out, bool *row, struct error *err);

/* The first column of a statement's first row; 0 where there is no row. */
enum status sql_first_integer(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              int64_t *out, struct error *err);

/* Finalize them all, before the database is closed. */
void sql_forget(struct store *store);

/* ---- others ---- */

/* A statement of this call alone; finalize with sql_finalize. */
enum status sql_prepare(struct store *store, const char *sql, struct sql_statement **out, struct error *err);
enum status sql_bind(struct store *store, struct sql_statement *stmt, size_t n, const struct sql_value *values,
                     struct error *err);

/* Value `i`, from 1, anew, of a statement that was reset; the others stay. */
enum status sql_bind_again(struct store *store, struct sql_statement *stmt, size_t i, struct sql_value value,
                           struct error *err);

/* Run texts without results, one or several. */
enum status sql_exec(struct store *store, const char *sql, struct error *err);

/* ---- rows ---- */

/* Rows of one statement, gathered into an array in an arena: `read` fills the zeroed element from the statement. */
typedef enum status sql_read_row(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err);
enum status sql_collect(struct store *store, struct sql_statement *stmt, sql_read_row *read, size_t size,
                        struct arena *arena, size_t *n, void **out, struct error *err);

/* After the last row that is wanted. */
void sql_reset(struct sql_statement *stmt);
void sql_finalize(struct sql_statement *stmt); /* NULL is allowed */

/* Columns from 0. A text lives until the next row; it is NULL where the column is, and where memory is out. */
int64_t sql_column_integer(struct sql_statement *stmt, int i); /* 0 where the column is NULL */
double sql_column_real(struct sql_statement *stmt, int i);     /* NaN where the column is NULL */
const char *sql_column_text(struct sql_statement *stmt, int i);
const char *sql_column_bytes(struct sql_statement *stmt, int i, size_t *n);
bool sql_column_is_null(struct sql_statement *stmt, int i);
int sql_column_count(struct sql_statement *stmt);
const char *sql_column_name(struct sql_statement *stmt, int i);

/* Column `i`, copied; *out is NULL where the column is. Of bytes, *n is how many. */
enum status sql_copy_text(struct sql_statement *stmt, int i, struct arena *arena, const char **out, struct error *err);
enum status sql_copy_bytes(struct sql_statement *stmt, int i, struct arena *arena, size_t *n, const char **out,
                           struct error *err);

/* How many rows the last statement changed that changes any, and all statements of this connection. */
int64_t sql_changes(const struct store *store);
int64_t sql_total_changes(const struct store *store);

/* From *deadline_us on (base/clock.h) statements fail with ST_TIMEOUT, and where work_check fails. NULL ends that. */
void sql_hurry(struct store *store, const double *deadline_us);

/* How many rows a list may have: `limit`, 0 being all. */
static inline int64_t sql_limit(size_t limit) {
    return limit && limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

/* A text that a column of JSON may hold; `name` stands for it in messages. Fails: ST_INVALID. */
enum status sql_check_json(const char *text, const char *name, struct error *err);

#endif
