/* Statements and transactions, whatever the engine. Kept statements stand in a hash table with linear probing, whose
 * keys are the addresses of their texts. Cost: one look-up a statement. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "dataset/audiences_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"

enum status sql_check_json(const char *text, const char *name, struct error *err) {
    cJSON *json = NULL;
    enum status status = json_parse(text, strlen(text), name, &json, err);
    cJSON_Delete(json);
    return status;
}

enum status sql_exec(struct store *store, const char *sql, struct error *err) {
    store->written = -1;
    return store->engine->exec(store, sql, &store->changes, err);
}

enum status sql_prepare(struct store *store, const char *sql, struct sql_statement **out, struct error *err) {
    return store->engine->prepare(store, sql, false, out, err);
}

enum status sql_bind(struct store *store, struct sql_statement *stmt, size_t n, const struct sql_value *values,
                     struct error *err) {
    return store->engine->bind(stmt, 1, n, values, err);
}

enum status sql_bind_again(struct store *store, struct sql_statement *stmt, size_t i, struct sql_value value,
                           struct error *err) {
    return store->engine->bind(stmt, i, 1, &value, err);
}

/* ---- statements that are kept ---- */

struct kept_statement {
    const char *sql; /* NULL: a free place */
    struct sql_statement *stmt;
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

static struct sql_statement *find_kept(const struct store *store, const char *sql) {
    struct sql_statement *stmt = store->kept_room ? place_of(store->kept, store->kept_room, sql)->stmt : NULL;
    assert(!stmt || !strcmp(stmt->sql, sql)); /* else the text was not static */
    return stmt;
}

static enum status keep(struct store *store, const char *sql, struct sql_statement **out, struct error *err) {
    if (2 * (store->n_kept + 1) > store->kept_room && !grow_kept(store))
        return error_no_memory(err);
    enum status status = store->engine->prepare(store, sql, true, out, err);
    if (status)
        return status;
    *place_of(store->kept, store->kept_room, sql) = (struct kept_statement){sql, *out};
    store->n_kept++;
    return ST_OK;
}

enum status sql_start(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sql_statement **out, struct error *err) {
    struct sql_statement *stmt = find_kept(store, sql);
    enum status status = stmt ? ST_OK : keep(store, sql, &stmt, err);
    if (status)
        return status;
    sql_reset(stmt);
    status = sql_bind(store, stmt, n, values, err);
    if (!status)
        *out = stmt;
    return status;
}

void sql_forget(struct store *store) {
    for (size_t i = 0; i < store->kept_room; i++)
        sql_finalize(store->kept[i].stmt);
    free(store->kept);
    store->kept = NULL;
    store->n_kept = store->kept_room = 0;
}

/* Count the rows that a statement added to the dataset for good, for usage.c. Rows of tables that hold only counters
 * are charged to nobody. */
static void count_inserted(struct store *store, const char *sql, int64_t changed) {
    static const char insert[] = "INSERT INTO ";
    static const char *const kept_apart[] = {"usage", "audiences", "pruned_events"};
    if (*sql != 'I' && *sql != 'D')
        return;
    const bool into = !strncmp(sql, insert, sizeof insert - 1);
    for (size_t i = 0; i < sizeof kept_apart / sizeof *kept_apart && into; i++)
        if (!strncmp(sql + sizeof insert - 1, kept_apart[i], strlen(kept_apart[i])))
            return;
    store->inserted += *sql == 'I' ? changed : -changed;
}

enum status sql_next(struct store *store, struct sql_statement *stmt, bool *row, struct error *err) {
    int64_t changed = -1;
    enum status status = store->engine->step(stmt, row, &changed, err);
    if (!status && *row)
        return ST_OK;
    sql_reset(stmt);
    if (status || changed < 0)
        return status;
    store->changes = changed;
    count_inserted(store, stmt->sql, changed);
    return ST_OK;
}

enum status sql_run(struct store *store, const char *sql, size_t n, const struct sql_value *values, struct error *err) {
    struct sql_statement *stmt;
    enum status status = sql_start(store, sql, n, values, &stmt, err);
    bool row = true;
    while (!status && row)
        status = sql_next(store, stmt, &row, err);
    return status;
}

enum status sql_insert(struct store *store, const char *sql, size_t n, const struct sql_value *values, int64_t *row,
                       struct error *err) {
    struct sql_statement *stmt;
    enum status status = sql_start(store, sql, n, values, &stmt, err);
    int64_t inserted = 0;
    bool more = true;
    while (!status && more) {
        status = sql_next(store, stmt, &more, err);
        if (!status && more)
            inserted = sql_column_integer(stmt, 0);
    }
    if (!status && row)
        *row = inserted;
    return status;
}

enum status sql_first(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                      struct sql_statement **out, bool *row, struct error *err) {
    enum status status = sql_start(store, sql, n, values, out, err);
    return !status ? sql_next(store, *out, row, err) : status;
}

enum status sql_first_integer(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              int64_t *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, sql, n, values, &stmt, &row, err);
    if (status)
        return status;
    *out = row ? sql_column_integer(stmt, 0) : 0;
    sql_reset(stmt);
    return ST_OK;
}

/* ---- transactions ---- */

static const char commit[] = "COMMIT";
static const char rollback[] = "ROLLBACK";
static const char save[] = "SAVEPOINT step";
static const char release[] = "RELEASE step";
static const char undo[] = "ROLLBACK TO step";

/* ROLLBACK is prepared before BEGIN, so that a transaction can be left when memory is out. ROLLBACK can then fail only
 * where SQLite must prepare it anew after a change of the schema; the next begin() rolls back first. */
static enum status begin(struct store *store, const char *way_in, struct error *err) {
    struct sql_statement *unused;
    enum status status = sql_start(store, rollback, 0, NULL, &unused, err);
    if (!status && store->engine->in_transaction(store))
        status = sql_run(store, rollback, 0, NULL, err);
    return !status ? sql_run(store, way_in, 0, NULL, err) : status;
}

/* An error such as a full disk undoes the whole transaction, whatever savepoints it has. */
static enum status undone(const struct store *store, struct error *err) {
    return error_at(err, ST_ENVIRONMENT, store->path, "the transaction was undone by an earlier failure in it");
}

static enum status begin_outer(struct store *store, struct error *err) {
    if (store_is_shared(store))
        audiences_forget(store); /* others may have written since the last transaction */
    store->bare = 0;
    store->written = sql_total_changes(store);
    return begin(store, store->engine->begin_writing, err);
}

/* A savepoint makes SQLite copy every page that changes after it, which for a batch is most pages. The first inner step
 * needs none: to undo it is to begin the whole transaction again. */
static enum status begin_inner(struct store *store, struct error *err) {
    struct sql_statement *unused;
    if (!store->engine->in_transaction(store))
        return undone(store, err);
    if (store->depth == store->bare + 1 && store->written == sql_total_changes(store)) {
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
    if (!store->engine->in_transaction(store))
        return !status ? undone(store, err) : status;
    if (bare && status && !sql_run(store, rollback, 0, NULL, NULL) &&
        !sql_run(store, store->engine->begin_writing, 0, NULL, NULL))
        store->written = sql_total_changes(store);
    if (bare)
        return status;
    if (status)
        sql_run(store, undo, 0, NULL, NULL);
    const enum status released = sql_run(store, release, 0, NULL, !status ? err : NULL);
    return !status ? released : status;
}

static enum status end_outer(struct store *store, enum status status, struct error *err) {
    if (!status)
        status = !store->engine->in_transaction(store) ? undone(store, err) : sql_run(store, commit, 0, NULL, err);
    /* Some failures have rolled back already. */
    if (status && store->engine->in_transaction(store))
        sql_run(store, rollback, 0, NULL, NULL);
    return status;
}

enum status store_end(struct store *store, enum status status, struct error *err) {
    status = --store->depth > 0 ? end_inner(store, status, err) : end_outer(store, status, err);
    if (status)
        audiences_forget(store);
    return status;
}

static enum status step_once(struct store *store, const char *sql, size_t n_values, const struct sql_value *values,
                             uint64_t *n, struct error *err) {
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

static const double STEP_PAUSE_US = 5e3;

void step_pause(int i) {
    if (i > 0)
        clock_sleep_us(STEP_PAUSE_US * (1 << i));
}

/* As part of a larger step it is that step that is to be tried again. */
enum status sql_step(struct store *store, const char *sql, size_t n_values, const struct sql_value *values, uint64_t *n,
                     struct error *err) {
    enum status status = ST_OK;
    for (int i = 0; i <= STEP_TRIES; i++) {
        step_pause(i);
        store->again = store->depth > 0 && store->again;
        status = step_once(store, sql, n_values, values, n, err);
        if (!status || !store->again || store->depth > 0)
            break;
    }
    return status;
}

enum status store_begin_read(struct store *store, bool *began, struct error *err) {
    *began = false;
    if (store->reading || store->depth > 0)
        return ST_OK;
    enum status status = begin(store, store->engine->begin_reading, err);
    *began = store->reading = !status;
    return status;
}

void store_end_read(struct store *store, bool began) {
    if (!began)
        return;
    sql_run(store, rollback, 0, NULL, NULL);
    store->reading = false;
}

/* ---- rows ---- */

void sql_reset(struct sql_statement *stmt) {
    stmt->store->engine->reset(stmt);
}

void sql_finalize(struct sql_statement *stmt) {
    if (stmt)
        stmt->store->engine->finalize(stmt);
}

int64_t sql_column_integer(struct sql_statement *stmt, int i) {
    return stmt->store->engine->integer(stmt, i);
}

double sql_column_real(struct sql_statement *stmt, int i) {
    return sql_column_is_null(stmt, i) ? NAN : stmt->store->engine->real(stmt, i);
}

const char *sql_column_text(struct sql_statement *stmt, int i) {
    size_t bytes;
    return stmt->store->engine->text(stmt, i, &bytes);
}

const char *sql_column_bytes(struct sql_statement *stmt, int i, size_t *n) {
    return stmt->store->engine->text(stmt, i, n);
}

bool sql_column_is_null(struct sql_statement *stmt, int i) {
    return stmt->store->engine->is_null(stmt, i);
}

int sql_column_count(struct sql_statement *stmt) {
    return stmt->store->engine->columns(stmt);
}

const char *sql_column_name(struct sql_statement *stmt, int i) {
    return stmt->store->engine->name(stmt, i);
}

enum status sql_copy_bytes(struct sql_statement *stmt, int i, struct arena *arena, size_t *n, const char **out,
                           struct error *err) {
    const bool null = sql_column_is_null(stmt, i);
    const char *text = null ? "" : stmt->store->engine->text(stmt, i, n);
    char *copy = text ? arena_copy(arena, text, null ? 0 : *n) : NULL;
    if (!copy)
        return error_no_memory(err);
    *out = null ? NULL : copy;
    return ST_OK;
}

enum status sql_copy_text(struct sql_statement *stmt, int i, struct arena *arena, const char **out, struct error *err) {
    size_t bytes;
    *out = NULL;
    return sql_column_is_null(stmt, i) ? ST_OK : sql_copy_bytes(stmt, i, arena, &bytes, out, err);
}

int64_t sql_changes(const struct store *store) {
    return store->changes;
}

int64_t sql_total_changes(const struct store *store) {
    return store->engine->total_changes(store);
}

void sql_hurry(struct store *store, const double *deadline_us) {
    store->engine->hurry(store, deadline_us);
}

/* Chunks of rows on the heap, then one array in the arena: nothing in an arena is ever freed alone. */
enum status sql_collect(struct store *store, struct sql_statement *stmt, sql_read_row *read, size_t size,
                        struct arena *arena, size_t *n, void **out, struct error *err) {
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
    sql_reset(stmt);
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
