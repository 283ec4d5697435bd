/* AUTOINCREMENT remembers the largest id ever given, so that pruning does not give one a second time. Cost: O(log n) an
 * event. */
#include "dataset/events.h"

#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

static const char charge_team[] = "INSERT INTO usage (team, rows, bytes)"
                                  " SELECT team, 1, 100 + length(?2)"
                                  " FROM sessions"
                                  " WHERE id = ?1 AND team IS NOT NULL"
                                  " ON CONFLICT (team) DO UPDATE"
                                  " SET rows = usage.rows + 1, bytes = usage.bytes + excluded.bytes";

/* An event is charged to the team of its session, whoever caused it, because pruning knows only that team and credits
 * it. */
static enum status charge(struct store *store, const char *session, const char *content, struct error *err) {
    const int64_t before = sql_total_changes(store);
    enum status status = sql_step(store, charge_team, SQL_VALUES(sql_text(session), sql_text(content)), NULL, err);
    if (!status && sql_total_changes(store) != before) {
        store->apart_rows++;
        store->apart_bytes += 100 + (int64_t)strlen(content);
    }
    return status;
}

static const char insert_event[] = "INSERT INTO events (session, kind, content, created)"
                                   " VALUES (?, ?, ?, ?)"
                                   " RETURNING id";

enum status event_add(struct store *store, const char *session, const char *kind, const char *content, int64_t *id,
                      struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = sql_check_json(content, "event", err);
    int64_t row;
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    status = sql_insert(store, insert_event,
                        SQL_VALUES(sql_text(session), sql_text(kind), sql_text(content), sql_text(now)), &row, err);
    status = store_end(store, status, err);
    if (!status && session)
        status = charge(store, session, content, err);
    if (!status && id)
        *id = row;
    return status;
}

static enum status read_event(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct stored_event *event = element;
    const char **const at[] = {&event->session, &event->kind, &event->content, &event->created};
    enum status status = ST_OK;
    event->id = sql_column_integer(stmt, 0);
    for (int i = 0; i < 4 && !status; i++)
        status = sql_copy_text(stmt, i + 1, arena, at[i], err);
    return status;
}

static const char list_events[] = "SELECT id, session, kind, content, created"
                                  " FROM events"
                                  " WHERE id > ?1"
                                  " ORDER BY id"
                                  " LIMIT ?2";

static const char list_events_of_session[] = "SELECT id, session, kind, content, created"
                                             " FROM events"
                                             " WHERE id > ?1 AND session = ?3"
                                             " ORDER BY id"
                                             " LIMIT ?2";

enum status event_list(struct store *store, const char *session, int64_t after, size_t limit, struct arena *arena,
                       size_t *n, struct stored_event **out, struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    const struct sql_value values[] = {sql_integer(after), sql_integer(sql_limit(limit)), sql_text(session)};
    enum status status =
        sql_start(store, session ? list_events_of_session : list_events, session ? 3 : 2, values, &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_event, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static const char last_event[] = "SELECT coalesce(max(id), 0)"
                                 " FROM events";

static const char last_event_of_session[] = "SELECT coalesce(max(id), 0)"
                                            " FROM events"
                                            " WHERE session = ?";

enum status event_last(struct store *store, const char *session, int64_t *id, struct error *err) {
    const struct sql_value value = sql_text(session);
    return sql_first_integer(store, session ? last_event_of_session : last_event, session ? 1 : 0, &value, id, err);
}

/* A thousand events from before ?1, of sessions that have ended or are not here. */
#define OLD_EVENTS                                                                                                     \
    "SELECT e.id FROM events e WHERE e.created < ?1"                                                                   \
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session AND s.ended IS NULL)"                            \
    " ORDER BY e.created, e.id LIMIT 1000"

static const char note_pruned[] = "INSERT INTO pruned_events (session, last)"
                                  " SELECT session, max(id)"
                                  " FROM events"
                                  " WHERE id IN (" OLD_EVENTS ") AND session IS NOT NULL"
                                  " GROUP BY session"
                                  " ON CONFLICT (session) DO UPDATE"
                                  " SET last = excluded.last";

static const char credit_teams[] = "UPDATE usage"
                                   " SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size)"
                                   " FROM (SELECT s.team AS team, count(*) AS n, sum(100 + length(e.content)) AS size"
                                   "       FROM events e JOIN sessions s ON s.id = e.session"
                                   "       WHERE e.id IN (" OLD_EVENTS ")"
                                   "       GROUP BY s.team) x"
                                   " WHERE usage.team = x.team";

static const char delete_events[] = "DELETE FROM events"
                                    " WHERE id IN (" OLD_EVENTS ")";

enum status event_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = sql_run(store, note_pruned, SQL_VALUES(sql_text(before)), err);
    if (!status)
        status = sql_run(store, credit_teams, SQL_VALUES(sql_text(before)), err);
    if (!status)
        status = sql_step(store, delete_events, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}

static const char last_pruned[] = "SELECT last"
                                  " FROM pruned_events"
                                  " WHERE session = ?";

enum status event_pruned(struct store *store, const char *session, int64_t *last, struct error *err) {
    return sql_first_integer(store, last_pruned, SQL_VALUES(sql_text(session)), last, err);
}
