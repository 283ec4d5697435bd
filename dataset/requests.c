/* Two tables, each row written once and forgotten by its age. Cost: O(log n) a request. */
#include "dataset/requests.h"

#include <sqlite3.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

enum { TRIM_EVERY = 64, LARGE_BYTES = 64 << 10 };

static enum status read_response(sqlite3_stmt *stmt, struct arena *arena, struct stored_response *out,
                                 struct error *err) {
    struct stored_response response = {.status = sqlite3_column_int(stmt, 1)};
    enum status status = sql_copy_text(stmt, 2, arena, &response.content_type, err);
    if (status == ST_OK)
        status = sql_copy_text(stmt, 4, arena, &response.created, err);
    if (status != ST_OK)
        return status;
    const void *body = sqlite3_column_blob(stmt, 3); /* NULL when it is empty */
    response.length = (size_t)sqlite3_column_bytes(stmt, 3);
    if (!body && sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM)
        return error_no_memory(err);
    response.body = arena_copy(arena, body ? body : "", response.length);
    if (!response.body)
        return error_no_memory(err);
    *out = response;
    return ST_OK;
}

enum status response_find(struct store *store, const char *token, const char *key, const char *fingerprint,
                          struct arena *arena, enum response_match *match, struct stored_response *out,
                          struct error *err) {
    sqlite3_stmt *stmt;
    bool row;
    enum status status = sql_start(store, SQL_RESPONSE_GET, SQL_VALUES(sql_text(token), sql_text(key)), &stmt, err);
    if (status == ST_OK)
        status = sql_next(store, stmt, &row, err);
    if (status != ST_OK)
        return status;
    if (!row) {
        *match = RESPONSE_NEW;
        return ST_OK;
    }
    const char *stored = (const char *)sqlite3_column_text(stmt, 0);
    const bool same = stored && !strcmp(stored, fingerprint);
    if (!stored)
        status = error_no_memory(err);
    else if (same)
        status = read_response(stmt, arena, out, err);
    sqlite3_reset(stmt);
    if (status == ST_OK)
        *match = same ? RESPONSE_SAME : RESPONSE_OTHER;
    return status;
}

enum status response_put(struct store *store, const char *token, const char *key, const char *fingerprint,
                         const struct stored_response *response, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    status = sql_run(store, SQL_RESPONSE_INSERT,
                     SQL_VALUES(sql_text(token), sql_text(key), sql_text(fingerprint), sql_integer(response->status),
                                sql_text(response->content_type),
                                sql_blob(response->length ? response->body : "", response->length), sql_text(now)),
                     err);
    /* One in so many, and each that is large: what is over the bound by then is little. */
    if (status == ST_OK && (sqlite3_last_insert_rowid(store->db) % TRIM_EVERY == 0 || response->length > LARGE_BYTES))
        status =
            sql_run(store, SQL_RESPONSE_TRIM,
                    SQL_VALUES(sql_text(token), sql_integer(RESPONSES_MAX), sql_integer(RESPONSES_MAX_BYTES)), err);
    return store_end(store, status, err);
}

enum status response_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    status = sql_run(store, SQL_RESPONSE_CREDIT, SQL_VALUES(sql_text(before)), err);
    if (status == ST_OK)
        status = sql_step(store, SQL_RESPONSE_PRUNE, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}

enum status audit_add(struct store *store, const struct audit_entry *entry, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    return sql_step(store, SQL_AUDIT_INSERT,
                    SQL_VALUES(sql_text(now), sql_text(entry->token), sql_text(entry->team), sql_text(entry->address),
                               sql_text(entry->method), sql_text(entry->path), sql_integer(entry->status),
                               sql_text(entry->request_id)),
                    NULL, err);
}

static enum status read_entry(sqlite3_stmt *stmt, struct arena *arena, void *element, struct error *err) {
    struct audit_entry *entry = element;
    const char **const at[] = {&entry->at,     &entry->token, &entry->team, &entry->address,
                               &entry->method, &entry->path,  NULL,         &entry->request_id};
    enum status status = ST_OK;
    entry->id = sqlite3_column_int64(stmt, 0);
    entry->status = sqlite3_column_int(stmt, 7);
    for (int i = 0; i < 8 && status == ST_OK; i++)
        if (at[i])
            status = sql_copy_text(stmt, i + 1, arena, at[i], err);
    return status;
}

enum status audit_list(struct store *store, int64_t before, size_t limit, struct arena *arena, size_t *n,
                       struct audit_entry **out, struct error *err) {
    sqlite3_stmt *stmt;
    void *rows;
    enum status status =
        sql_start(store, SQL_AUDIT_LIST,
                  SQL_VALUES(sql_integer(before > 0 ? before : INT64_MAX), sql_integer(sql_limit(limit))), &stmt, err);
    if (status == ST_OK)
        status = sql_collect(store, stmt, read_entry, sizeof **out, arena, n, &rows, err);
    if (status == ST_OK)
        *out = rows;
    return status;
}

enum status audit_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    status = sql_run(store, SQL_AUDIT_CREDIT, SQL_VALUES(sql_text(before)), err);
    if (status == ST_OK)
        status = sql_step(store, SQL_AUDIT_PRUNE, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}
