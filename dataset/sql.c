/* SQLite's interface in the terms of this program: values are bound from arrays, results become a status and one line
 * that names the file and says what to do. Kept statements stand in a hash table with linear probing, whose keys are
 * the addresses of their texts. Cost: one look-up a statement. */
#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json.h"
#include "dataset/audiences_internal.h"
#include "dataset/sharing.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

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

enum status sql_fail(sqlite3 *db, int code, const char *path, struct error *err) {
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
    return sql_fail(store->db, sqlite3_extended_errcode(store->db), store->path, err);
}

enum status sql_exec(struct store *store, const char *sql, struct error *err) {
    store->written = -1;
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? ST_OK : fail(store, err);
}

enum status sql_check_json(const char *text, const char *name, struct error *err) {
    cJSON *json = NULL;
    enum status status = json_parse(text, strlen(text), name, &json, err);
    cJSON_Delete(json);
    return status;
}

enum status sql_prepare(struct store *store, const char *sql, sqlite3_stmt **out, struct error *err) {
    return sqlite3_prepare_v2(store->db, sql, -1, out, NULL) == SQLITE_OK ? ST_OK : fail(store, err);
}

static int bind_one(sqlite3_stmt *stmt, int i, const struct sql_value *value) {
    switch (value->type) {
    case SQL_INTEGER:
        return sqlite3_bind_int64(stmt, i, value->integer);
    case SQL_REAL:
        return sqlite3_bind_double(stmt, i, value->real); /* which binds NaN as NULL */
    case SQL_BLOB:
        return sqlite3_bind_blob64(stmt, i, value->text, (sqlite3_uint64)value->integer, SQLITE_STATIC);
    default:
        return sqlite3_bind_text(stmt, i, value->text, -1, SQLITE_STATIC);
    }
}

enum status sql_bind(struct store *store, sqlite3_stmt *stmt, size_t n, const struct sql_value *values,
                     struct error *err) {
    for (size_t i = 0; i < n; i++)
        if (bind_one(stmt, (int)i + 1, &values[i]) != SQLITE_OK)
            return fail(store, err);
    return ST_OK;
}

/* ---- statements that are kept ---- */

struct kept_statement {
    const char *sql; /* NULL: a free place */
    sqlite3_stmt *stmt;
};

/* The place of `sql`, or the free one that it would take. `room` is a power of two, and some places are free. */
static struct kept_statement *place_of(struct kept_statement *kept, size_t room, const char *sql) {
    size_t i = (size_t)((uintptr_t)sql * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);
    while (kept[i].sql && kept[i].sql != sql)
        i = (i + 1) & (room - 1);
    return &kept[i];
}

static bool grow_kept(struct store *store) {
    const size_t room = store->kept_room ? 2 * store->kept_room : 64;
    struct kept_statement *kept = calloc(room, sizeof *kept);
    if (!kept)
        return false;
    for (size_t i = 0; i < store->kept_room; i++)
        if (store->kept[i].sql)
            *place_of(kept, room, store->kept[i].sql) = store->kept[i];
    free(store->kept);
    store->kept = kept;
    store->kept_room = room;
    return true;
}

static sqlite3_stmt *find_kept(const struct store *store, const char *sql) {
    sqlite3_stmt *stmt = store->kept_room ? place_of(store->kept, store->kept_room, sql)->stmt : NULL;
    assert(!stmt || !strcmp(sqlite3_sql(stmt), sql)); /* else the text was not static */
    return stmt;
}

static enum status keep(struct store *store, const char *sql, sqlite3_stmt **out, struct error *err) {
    if (2 * (store->n_kept + 1) > store->kept_room && !grow_kept(store))
        return error_no_memory(err);
    if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
        return fail(store, err);
    *place_of(store->kept, store->kept_room, sql) = (struct kept_statement){sql, *out};
    store->n_kept++;
    return ST_OK;
}

enum status sql_start(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      sqlite3_stmt **out, struct error *err) {
    sqlite3_stmt *stmt = find_kept(store, sql);
    enum status status = stmt ? ST_OK : keep(store, sql, &stmt, err);
    if (status)
        return status;
    sqlite3_reset(stmt);
    status = sql_bind(store, stmt, n, values, err);
    if (!status)
        *out = stmt;
    return status;
}

void sql_forget(struct store *store) {
    for (size_t i = 0; i < store->kept_room; i++)
        sqlite3_finalize(store->kept[i].stmt);
    free(store->kept);
    store->kept = NULL;
    store->n_kept = store->kept_room = 0;
}

/* Count the rows that a statement added to the dataset for good, for usage.c. Rows of tables that hold only counters
 * are charged to nobody. */
static void count_inserted(struct store *store, sqlite3_stmt *stmt) {
    static const char insert[] = "INSERT INTO ";
    static const char *const kept_apart[] = {"usage", "audiences", "pruned_events"};
    const char *sql = sqlite3_sql(stmt);
    if (*sql != 'I' && *sql != 'D')
        return;
    const bool into = !strncmp(sql, insert, sizeof insert - 1);
    for (size_t i = 0; i < sizeof kept_apart / sizeof *kept_apart && into; i++)
        if (!strncmp(sql + sizeof insert - 1, kept_apart[i], strlen(kept_apart[i])))
            return;
    store->inserted += *sql == 'I' ? sqlite3_changes64(store->db) : -sqlite3_changes64(store->db);
}

enum status sql_next(struct store *store, sqlite3_stmt *stmt, bool *row, struct error *err) {
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        *row = true;
        return ST_OK;
    }
    enum status status = code == SQLITE_DONE ? ST_OK : fail(store, err);
    sqlite3_reset(stmt);
    if (!status && !sqlite3_stmt_readonly(stmt))
        count_inserted(store, stmt);
    if (!status)
        *row = false;
    return status;
}

enum status sql_run(struct store *store, const char *sql, size_t n, const struct sql_value *values, struct error *err) {
    sqlite3_stmt *stmt;
    enum status status = sql_start(store, sql, n, values, &stmt, err);
    bool row = true;
    while (!status && row)
        status = sql_next(store, stmt, &row, err);
    return status;
}

enum status sql_first(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      sqlite3_stmt **out, bool *row, struct error *err) {
    enum status status = sql_start(store, sql, n, values, out, err);
    return !status ? sql_next(store, *out, row, err) : status;
}

enum status sql_first_integer(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              int64_t *out, struct error *err) {
    sqlite3_stmt *stmt;
    bool row;
    enum status status = sql_first(store, sql, n, values, &stmt, &row, err);
    if (status)
        return status;
    *out = row ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return ST_OK;
}

/* ---- transactions ---- */

static const char begin_writing[] = "BEGIN IMMEDIATE";
static const char begin_reading[] = "BEGIN";
static const char commit[] = "COMMIT";
static const char rollback[] = "ROLLBACK";
static const char save[] = "SAVEPOINT step";
static const char release[] = "RELEASE step";
static const char undo[] = "ROLLBACK TO step";

/* ROLLBACK is prepared before BEGIN, so that a transaction can be left when memory is out. ROLLBACK can then fail only
 * where SQLite must prepare it anew after a change of the schema; the next begin() rolls back first. */
static enum status begin(struct store *store, const char *way_in, struct error *err) {
    sqlite3_stmt *unused;
    enum status status = sql_start(store, rollback, 0, NULL, &unused, err);
    if (!status && !sqlite3_get_autocommit(store->db))
        status = sql_run(store, rollback, 0, NULL, err);
    return !status ? sql_run(store, way_in, 0, NULL, err) : status;
}

/* An error such as a full disk undoes the whole transaction, whatever savepoints it has. */
static enum status undone(const struct store *store, struct error *err) {
    return error_at(err, ST_ENVIRONMENT, store->path, "the transaction was undone by an earlier failure in it");
}

static enum status begin_outer(struct store *store, struct error *err) {
    store->bare = 0;
    store->written = sqlite3_total_changes64(store->db);
    return begin(store, begin_writing, err);
}

/* A savepoint makes SQLite copy every page that changes after it, which for a batch is most pages. The first inner step
 * needs none: to undo it is to begin the whole transaction again. */
static enum status begin_inner(struct store *store, struct error *err) {
    sqlite3_stmt *unused;
    if (sqlite3_get_autocommit(store->db))
        return undone(store, err);
    if (store->depth == store->bare + 1 && store->written == sqlite3_total_changes64(store->db)) {
        store->bare++;
        return ST_OK;
    }
    enum status status = sql_start(store, undo, 0, NULL, &unused, err);
    if (!status)
        status = sql_start(store, release, 0, NULL, &unused, err);
    return !status ? sql_run(store, save, 0, NULL, err) : status;
}

enum status store_begin(struct store *store, struct error *err) {
    enum status status;
    if (store->read_only)
        return error_at(err, ST_CONFLICT, store->path, "opened for reading only");
    if (store->depth > 0)
        status = begin_inner(store, err);
    else if (store->reading)
        status = error_at(err, ST_CONFLICT, store->path, "a write inside another step");
    else
        status = begin_outer(store, err);
    store->depth += !status;
    return status;
}

/* store->depth no longer counts this step. */
static enum status end_inner(struct store *store, enum status status, struct error *err) {
    const bool bare = store->bare == store->depth;
    store->bare -= bare;
    if (sqlite3_get_autocommit(store->db))
        return !status ? undone(store, err) : status;
    if (bare && status && !sql_run(store, rollback, 0, NULL, NULL) && !sql_run(store, begin_writing, 0, NULL, NULL))
        store->written = sqlite3_total_changes64(store->db);
    if (bare)
        return status;
    if (status)
        sql_run(store, undo, 0, NULL, NULL);
    const enum status released = sql_run(store, release, 0, NULL, !status ? err : NULL);
    return !status ? released : status;
}

static enum status end_outer(struct store *store, enum status status, struct error *err) {
    if (!status)
        status = sqlite3_get_autocommit(store->db) ? undone(store, err) : sql_run(store, commit, 0, NULL, err);
    /* Some failures have rolled back already. */
    if (status && !sqlite3_get_autocommit(store->db))
        sql_run(store, rollback, 0, NULL, NULL);
    return status;
}

enum status store_end(struct store *store, enum status status, struct error *err) {
    status = --store->depth > 0 ? end_inner(store, status, err) : end_outer(store, status, err);
    if (status)
        audiences_forget(store);
    return status;
}

enum status sql_step(struct store *store, const char *sql, size_t n_values, const struct sql_value *values, uint64_t *n,
                     struct error *err) {
    uint64_t changed = 0;
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = sql_run(store, sql, n_values, values, err);
    if (!status)
        changed = (uint64_t)sql_changes(store);
    status = store_end(store, status, err);
    if (!status && n)
        *n = changed;
    return status;
}

enum status store_begin_read(struct store *store, bool *began, struct error *err) {
    *began = false;
    if (store->reading || store->depth > 0)
        return ST_OK;
    enum status status = begin(store, begin_reading, err);
    *began = store->reading = !status;
    return status;
}

void store_end_read(struct store *store, bool began) {
    if (!began)
        return;
    sql_run(store, rollback, 0, NULL, NULL);
    store->reading = false;
}

int64_t sql_changes(const struct store *store) {
    return sqlite3_changes64(store->db);
}

enum status sql_copy_text(sqlite3_stmt *stmt, int i, struct arena *arena, const char **out, struct error *err) {
    if (sqlite3_column_type(stmt, i) == SQLITE_NULL) {
        *out = NULL;
        return ST_OK;
    }
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    char *copy = text ? arena_copy(arena, text, (size_t)sqlite3_column_bytes(stmt, i)) : NULL;
    if (!copy)
        return error_no_memory(err);
    *out = copy;
    return ST_OK;
}

/* Chunks of rows on the heap, then one array in the arena: nothing in an arena is ever freed alone. */
enum status sql_collect(struct store *store, sqlite3_stmt *stmt, sql_read_row *read, size_t size, struct arena *arena,
                        size_t *n, void **out, struct error *err) {
    char *rows = NULL;
    size_t count = 0, room = 0;
    bool row = true;
    enum status status = ST_OK;
    while (!status) {
        status = sql_next(store, stmt, &row, err);
        if (status || !row)
            break;
        if (!grow_array(&rows, &room, count + 1, size)) {
            status = error_no_memory(err);
            break;
        }
        memset(rows + count * size, 0, size);
        status = read(stmt, arena, rows + count * size, err);
        count += !status;
    }
    sqlite3_reset(stmt);
    void *array = !status ? arena_alloc(arena, count, size) : NULL;
    if (!status && !array)
        status = error_no_memory(err);
    if (!status) {
        if (count)
            memcpy(array, rows, count * size);
        *n = count;
        *out = array;
    }
    free(rows);
    return status;
}

double sql_column_real(sqlite3_stmt *stmt, int i) {
    return sqlite3_column_type(stmt, i) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, i);
}

char *sql_uri(const char *file, bool immutable) {
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

int sql_add_functions(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int code = sqlite3_create_function_v2(db, "shared_narrow", 2, flags, NULL, narrow, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(db, "reason_kept", 1, flags, NULL, keep_reason, NULL, NULL, NULL);
    return code;
}
