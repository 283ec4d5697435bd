/* SQLite as the engine of a dataset: results become a status and one line that names the file and says what to do. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/work.h"
#include "dataset/engine_internal.h"
#include "dataset/schema_internal.h"
#include "dataset/sharing.h"
#include "dataset/sqlite_internal.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

struct statement {
    struct sql_statement common;
    sqlite3_stmt *stmt;
};

static sqlite3_stmt *stmt_of(struct sql_statement *statement) {
    return ((struct statement *)statement)->stmt;
}

static enum status constraint(sqlite3 *db, int code, const char *path, struct error *err) {
    switch (code) {
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return error_at(err, ST_NOT_FOUND, path,
                        "a model, cluster, strategy, environment or session that this refers to is not there");
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
        return error_at(err, ST_CONFLICT, path, "there already: %s", sqlite3_errmsg(db));
    default:
        /* sql_check_json has seen every text, and json_valid() also says no when memory is out. */
        if (strstr(sqlite3_errmsg(db), "json_valid"))
            return error_no_memory(err);
        return error_at(err, ST_INVALID, path, "refused by a rule of the dataset: %s", sqlite3_errmsg(db));
    }
}

enum status sqlite_fail(sqlite3 *db, int code, const char *path, struct error *err) {
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return error_no_memory(err);
    case SQLITE_FULL:
        return error_at(err, ST_ENVIRONMENT, path, "the disk is full; nothing of this step was written");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_at(err, ST_ENVIRONMENT, path, "read-only for this user");
    case SQLITE_CANTOPEN:
        return error_at(err, ST_ENVIRONMENT, path, "cannot be opened: %s", sqlite3_errmsg(db));
    case SQLITE_NOTADB:
        return error_at(err, ST_INVALID, path, "not a dataset (no SQLite file)");
    case SQLITE_CORRUPT:
        return error_at(err, ST_INVALID, path, "damaged (%s); restore it from a backup", sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_at(err, ST_CONFLICT, path, "another program holds it locked; try again");
    case SQLITE_INTERRUPT:
        return error_at(err, ST_TIMEOUT, path, "it took too long");
    case SQLITE_CONSTRAINT:
        return constraint(db, code, path, err);
    default:
        return error_at(err, ST_ENVIRONMENT, path, "%s (SQLite %d)", sqlite3_errmsg(db), code);
    }
}

static enum status fail(struct store *store, struct error *err) {
    return sqlite_fail(store->db, sqlite3_extended_errcode(store->db), store->path, err);
}

static enum status run_texts(struct store *store, const char *sql, int64_t *changed, struct error *err) {
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(store, err);
    *changed = sqlite3_changes64(store->db);
    return ST_OK;
}

static enum status prepare(struct store *store, const char *sql, bool kept, struct sql_statement **out,
                           struct error *err) {
    struct statement *statement = sqlite3_malloc64(sizeof *statement); /* where the rest of it lies too */
    if (!statement)
        return error_no_memory(err);
    if (sqlite3_prepare_v3(store->db, sql, -1, kept ? SQLITE_PREPARE_PERSISTENT : 0, &statement->stmt, NULL) !=
        SQLITE_OK) {
        sqlite3_free(statement);
        return fail(store, err);
    }
    statement->common = (struct sql_statement){.store = store, .sql = sqlite3_sql(statement->stmt)};
    *out = &statement->common;
    return ST_OK;
}

static void finalize(struct sql_statement *statement) {
    if (statement)
        sqlite3_finalize(stmt_of(statement));
    sqlite3_free(statement);
}

static int bind_one(sqlite3_stmt *stmt, int i, const struct sql_value *value) {
    switch (value->type) {
    case SQL_INTEGER:
        return sqlite3_bind_int64(stmt, i, value->integer);
    case SQL_NO_INTEGER:
        return sqlite3_bind_null(stmt, i);
    case SQL_REAL:
        return sqlite3_bind_double(stmt, i, value->real); /* which binds NaN as NULL */
    case SQL_BLOB:
        return sqlite3_bind_blob64(stmt, i, value->text, (sqlite3_uint64)value->integer, SQLITE_STATIC);
    default:
        return sqlite3_bind_text(stmt, i, value->text, -1, SQLITE_STATIC);
    }
}

static enum status bind(struct sql_statement *statement, size_t first, size_t n, const struct sql_value *values,
                        struct error *err) {
    for (size_t i = 0; i < n; i++)
        if (bind_one(stmt_of(statement), (int)(first + i), &values[i]) != SQLITE_OK)
            return fail(statement->store, err);
    return ST_OK;
}

static enum status step(struct sql_statement *statement, bool *row, int64_t *changed, struct error *err) {
    sqlite3_stmt *stmt = stmt_of(statement);
    const int code = sqlite3_step(stmt);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return fail(statement->store, err);
    *row = code == SQLITE_ROW;
    if (!*row && !sqlite3_stmt_readonly(stmt))
        *changed = sqlite3_changes64(statement->store->db);
    return ST_OK;
}

static void reset(struct sql_statement *statement) {
    sqlite3_reset(stmt_of(statement));
}

static int64_t integer_at(struct sql_statement *statement, int i) {
    return sqlite3_column_int64(stmt_of(statement), i);
}

static double real_at(struct sql_statement *statement, int i) {
    return sqlite3_column_double(stmt_of(statement), i);
}

static bool is_null(struct sql_statement *statement, int i) {
    return sqlite3_column_type(stmt_of(statement), i) == SQLITE_NULL;
}

static const char *text_at(struct sql_statement *statement, int i, size_t *bytes) {
    const char *text = (const char *)sqlite3_column_text(stmt_of(statement), i);
    *bytes = (size_t)sqlite3_column_bytes(stmt_of(statement), i);
    if (text || is_null(statement, i) || sqlite3_errcode(statement->store->db) == SQLITE_NOMEM)
        return text;
    return ""; /* an empty blob */
}

static int columns(struct sql_statement *statement) {
    return sqlite3_column_count(stmt_of(statement));
}

static const char *name_of(struct sql_statement *statement, int i) {
    return sqlite3_column_name(stmt_of(statement), i);
}

static int64_t total_changes(const struct store *store) {
    return sqlite3_total_changes64(store->db);
}

static bool in_transaction(const struct store *store) {
    return !sqlite3_get_autocommit(store->db);
}

/* SQLite calls this every LOOK_AROUND instructions, about every 0.1 ms. */
enum { LOOK_AROUND = 10000 };
static int is_late(void *deadline_us) {
    return clock_now_us() > *(const double *)deadline_us || work_check(NULL);
}

static void hurry(struct store *store, const double *deadline_us) {
    sqlite3_progress_handler(store->db, deadline_us ? LOOK_AROUND : 0, deadline_us ? is_late : NULL,
                             (void *)(uintptr_t)deadline_us);
}

static const char count_pages[] = "PRAGMA page_count";

static const char count_free_pages[] = "PRAGMA freelist_count";

static const char page_size[] = "PRAGMA page_size";

static enum status size_of(struct store *store, int64_t *bytes, struct error *err) {
    int64_t pages = 0, unused = 0, size = 0;
    enum status status = sql_first_integer(store, count_pages, 0, NULL, &pages, err);
    if (!status)
        status = sql_first_integer(store, count_free_pages, 0, NULL, &unused, err);
    if (!status)
        status = sql_first_integer(store, page_size, 0, NULL, &size, err);
    if (!status)
        *bytes = (pages - unused) * size;
    return status;
}

const struct engine sqlite_engine = {
    .begin_writing = "BEGIN IMMEDIATE",
    .begin_reading = "BEGIN",
    .check_pages = "PRAGMA integrity_check",
    .check_references = "PRAGMA foreign_key_check",
    .audiences = schema_audiences,
    .merges_medians = true,
    .size = size_of,
    .exec = run_texts,
    .prepare = prepare,
    .bind = bind,
    .step = step,
    .reset = reset,
    .finalize = finalize,
    .integer = integer_at,
    .real = real_at,
    .text = text_at,
    .is_null = is_null,
    .columns = columns,
    .name = name_of,
    .total_changes = total_changes,
    .in_transaction = in_transaction,
    .hurry = hurry,
};

char *sqlite_uri(const char *file, bool immutable) {
    static const char tail[] = "?mode=ro", frozen[] = "&immutable=1";
    char *uri = malloc(sizeof "file:" + 3 * strlen(file) + sizeof tail + sizeof frozen);
    if (!uri)
        return NULL;
    char *at = stpcpy(uri, "file:");
    for (const unsigned char *c = (const unsigned char *)file; *c; c++)
        if (strchr("?#%", *c) || *c <= ' ')
            at += sprintf(at, "%%%02X", *c);
        else
            *at++ = (char)*c;
    at = stpcpy(at, tail);
    if (immutable)
        stpcpy(at, frozen);
    return uri;
}

/* shared_narrow(a, b) */
static void narrow(sqlite3_context *to, int n, sqlite3_value **values) {
    (void)n;
    const char *a = (const char *)sqlite3_value_text(values[0]), *b = (const char *)sqlite3_value_text(values[1]);
    a = a ? a : "*";
    b = b ? b : "*";
    char *text = sqlite3_malloc64(strlen(a) + strlen(b) + 1);
    if (!text) {
        sqlite3_result_error_nomem(to);
        return;
    }
    shared_narrow(a, b, text);
    sqlite3_result_text(to, text, -1, sqlite3_free);
}

/* reason_kept(text) */
static void keep_reason(sqlite3_context *to, int n, sqlite3_value **values) {
    (void)n;
    const char *reason = (const char *)sqlite3_value_text(values[0]);
    char *text = reason ? sqlite3_mprintf("%s", reason) : NULL;
    if (reason && !text) {
        sqlite3_result_error_nomem(to);
        return;
    }
    if (text)
        validate_reason(text);
    sqlite3_result_text(to, text, -1, sqlite3_free);
}

int sqlite_add_functions(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int code = sqlite3_create_function_v2(db, "shared_narrow", 2, flags, NULL, narrow, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(db, "reason_kept", 1, flags, NULL, keep_reason, NULL, NULL, NULL);
    return code;
}
