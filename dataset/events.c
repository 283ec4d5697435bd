/* AUTOINCREMENT remembers the largest id ever given, so that pruning does not give one a second time. Cost: O(log n) an
 * event. */
#include "dataset/events.h"

#include <sqlite3.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

/* Its session's team has it, whoever made it happen: pruning knows no more than that, and credits that team. */
static enum status charge(struct store *store, const char *session, const char *content, struct error *err) {
    const int64_t before = sqlite3_total_changes64(store->db);
    enum status status = sql_step(store, SQL_EVENT_CHARGE, SQL_VALUES(sql_text(session), sql_text(content)), NULL, err);
    if (status == ST_OK && sqlite3_total_changes64(store->db) != before) {
        store->apart_rows++;
        store->apart_bytes += 100 + (int64_t)strlen(content);
    }
    return status;
}

enum status event_add(struct store *store, const char *session, const char *kind, const char *content, int64_t *id,
                      struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = sql_check_json(content, "event", err);
    if (status == ST_OK)
        status = sql_step(store, SQL_EVENT_INSERT,
                          SQL_VALUES(sql_text(session), sql_text(kind), sql_text(content), sql_text(now)), NULL, err);
    const int64_t row = sqlite3_last_insert_rowid(store->db);
    if (status == ST_OK && session)
        status = charge(store, session, content, err);
    if (status == ST_OK && id)
        *id = row;
    return status;
}

static enum status read_event(sqlite3_stmt *stmt, struct arena *arena, void *element, struct error *err) {
    struct stored_event *event = element;
    const char **const at[] = {&event->session, &event->kind, &event->content, &event->created};
    enum status status = ST_OK;
    event->id = sqlite3_column_int64(stmt, 0);
    for (int i = 0; i < 4 && status == ST_OK; i++)
        status = sql_copy_text(stmt, i + 1, arena, at[i], err);
    return status;
}

enum status event_list(struct store *store, const char *session, int64_t after, size_t limit, struct arena *arena,
                       size_t *n, struct stored_event **out, struct error *err) {
    sqlite3_stmt *stmt;
    void *rows;
    const struct sql_value values[] = {sql_integer(after), sql_integer(sql_limit(limit)), sql_text(session)};
    enum status status =
        sql_start(store, session ? SQL_EVENT_LIST_OF : SQL_EVENT_LIST, session ? 3 : 2, values, &stmt, err);
    if (status == ST_OK)
        status = sql_collect(store, stmt, read_event, sizeof **out, arena, n, &rows, err);
    if (status == ST_OK)
        *out = rows;
    return status;
}

enum status event_last(struct store *store, const char *session, int64_t *id, struct error *err) {
    const struct sql_value value = sql_text(session);
    return sql_first_integer(store, session ? SQL_EVENT_LAST_OF : SQL_EVENT_LAST, session ? 1 : 0, &value, id, err);
}

enum status event_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    status = sql_run(store, SQL_EVENT_NOTE, SQL_VALUES(sql_text(before)), err);
    if (status == ST_OK)
        status = sql_run(store, SQL_EVENT_CREDIT, SQL_VALUES(sql_text(before)), err);
    if (status == ST_OK)
        status = sql_step(store, SQL_EVENT_PRUNE, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}

enum status event_pruned(struct store *store, const char *session, int64_t *last, struct error *err) {
    return sql_first_integer(store, SQL_EVENT_PRUNED, SQL_VALUES(sql_text(session)), last, err);
}
