/* Bytes of a file are pages in use, so that a team pays for what its rows took and not for what others freed. A page is
 * charged to the team that began it, which is fair on the average. In PostgreSQL, bytes are the values that were
 * written. Cost: one look-up, and one row, a step. */
#include "dataset/usage.h"

#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"

enum status usage_mark(struct store *store, struct usage_mark *out, struct error *err) {
    int64_t bytes = 0;
    enum status status = store->engine->size(store, &bytes, err);
    if (!status)
        *out = (struct usage_mark){sql_total_changes(store), store->inserted - store->apart_rows,
                                   bytes - store->apart_bytes};
    return status;
}

bool usage_changed(struct store *store, const struct usage_mark *since) {
    return sql_total_changes(store) != since->changes;
}

static const char add_usage[] = "INSERT INTO usage (team, rows, bytes)"
                                " VALUES (?1, max(0, ?2), ?3)"
                                " ON CONFLICT (team) DO UPDATE"
                                " SET rows = max(0, usage.rows + ?2), bytes = usage.bytes + ?3";

enum status usage_add(struct store *store, const struct usage_mark *since, const char *team, struct error *err) {
    struct usage_mark now = *since;
    enum status status = usage_mark(store, &now, err);
    const int64_t rows = now.rows - since->rows, bytes = now.bytes > since->bytes ? now.bytes - since->bytes : 0;
    if (status || (!rows && !bytes))
        return status;
    return sql_run(store, add_usage, SQL_VALUES(sql_text(team), sql_integer(rows), sql_integer(bytes)), err);
}

static const char list_usage[] = "SELECT team, rows, bytes"
                                 " FROM usage"
                                 " WHERE ?1 IS NULL OR team = ?1"
                                 " ORDER BY team";

enum status usage_get(struct store *store, const char *team, struct usage *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, list_usage, SQL_VALUES(sql_text(team)), &stmt, &row, err);
    if (status)
        return status;
    *out = (struct usage){team, row ? sql_column_integer(stmt, 1) : 0, row ? sql_column_integer(stmt, 2) : 0};
    sql_reset(stmt);
    return ST_OK;
}

static enum status read_usage(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct usage *usage = element;
    usage->rows = sql_column_integer(stmt, 1);
    usage->bytes = sql_column_integer(stmt, 2);
    return sql_copy_text(stmt, 0, arena, &usage->team, err);
}

enum status usage_list(struct store *store, const char *team, struct arena *arena, size_t *n, struct usage **out,
                       struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    enum status status = sql_start(store, list_usage, SQL_VALUES(sql_text(team)), &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_usage, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static const char count_open_sessions[] = "SELECT count(*)"
                                          " FROM sessions"
                                          " WHERE team = ? AND ended IS NULL";

enum status usage_open_sessions(struct store *store, const char *team, uint64_t *out, struct error *err) {
    int64_t n;
    enum status status = sql_first_integer(store, count_open_sessions, SQL_VALUES(sql_text(team)), &n, err);
    if (!status)
        *out = (uint64_t)n;
    return status;
}
