/* What shows an object to whom is in the table of audiences (schema.c, audiences.c), so that whether a team may see
 * something is two look-ups, however many trials are about it. Cost: O(log n), and for the beginning of an id
 * and for a name as many steps as there are such ids and names. */
#include "dataset/holdings.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/select_internal.h"

/* Parameters of every statement here: ?1 an id or a word, ?2 the asker's team, ?3 whether everything is seen, ?4 in
 * searches the team whose things are looked at. */
#define IS_SEEN(kind, row)                                                                                             \
    "(?3 OR EXISTS (SELECT 1 FROM audiences a WHERE a.kind = '" kind                                                   \
    "' AND a.audience IN ('*', ?2) AND a.object = " row " AND a.reasons > 0))"
#define IS_OWN(kind, row)                                                                                              \
    "EXISTS (SELECT 1 FROM audiences a WHERE a.kind = '" kind "' AND a.audience = ?4 AND a.object = " row              \
    " AND a.own > 0)"
#define SHOWN_NAME(kind, row)                                                                                          \
    "coalesce((SELECT h.name FROM holdings h WHERE h.kind = '" kind "' AND h.object = " row " AND h.team = ?2),"       \
    " (SELECT h.name FROM holdings h WHERE h.kind = '" kind "' AND h.object = " row                                    \
    " AND h.shared = '*' ORDER BY h.team <> '', h.created LIMIT 1), o.name)"

/* When the asker's team put it, so that nobody learns when another did. */
#define SHOWN_CREATED(kind, row)                                                                                       \
    "coalesce((SELECT h.created FROM holdings h WHERE h.kind = '" kind "' AND h.object = " row                         \
    " AND h.team = ?2), o.created)"

static const char *const gets[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id, " SHOWN_NAME(#word, "o.row") ", " SHOWN_CREATED(                                                     \
        #word, "o.row") ", o.content FROM " #table " o WHERE o.id = ?1 AND " IS_SEEN(#word, "o.row"),
    STORE_KIND_TABLE(X)
#undef X
};

static const char *const asks[] = {
#define X(constant, table, word) "SELECT o.row FROM " #table " o WHERE o.id = ?1 AND " IS_SEEN(#word, "o.row"),
    STORE_KIND_TABLE(X)
#undef X
};

/* ---- holding ---- */

enum status holding_put(struct store *store, enum store_kind kind, const char *id, const char *team, const char *name,
                        const char *shared, struct error *err) {
    char now[32];
    int64_t row;
    clock_utc(now, sizeof now);
    enum status status = check_team(team, shared, err);
    if (status == ST_OK)
        status = object_row(store, kind, id, &row, err);
    if (status == ST_OK && !row)
        status = error_set(err, ST_NOT_FOUND, "%s: no %s %.12s", store->path, object_word(kind), id);
    if (status != ST_OK)
        return status;
    return sql_step(store, SQL_HOLDING_PUT,
                    SQL_VALUES(sql_text(object_word(kind)), sql_integer(row), sql_text(team ? team : ""),
                               sql_text(name), sql_text(shared ? shared : "*"), sql_text(now)),
                    NULL, err);
}

enum status holding_make(struct store *store, enum store_kind kind, const char *team, const char *name,
                         const char *content, const char *shared, struct id *id, struct error *err) {
    struct id made;
    enum status status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    status = object_put(store, kind, name, content, NULL, &made, NULL, err);
    if (status == ST_OK)
        status = holding_put(store, kind, made.hex, team, name, shared, err);
    status = store_end(store, status, err);
    if (status == ST_OK && id)
        *id = made;
    return status;
}

/* ---- one that is seen ---- */

static const char *team_of(const struct viewer *asker) {
    return asker && asker->team ? asker->team : "";
}

static bool sees_all(const struct viewer *asker) {
    return !asker || asker->sees_all;
}

/* *stmt is at its row. */
static enum status start_seen(struct store *store, enum store_kind kind, sqlite3_stmt **kept, const char *sql,
                              const char *id, const struct viewer *asker, sqlite3_stmt **stmt, struct error *err) {
    bool row;
    enum status status = sql_start_kept(
        store, kept, sql, SQL_VALUES(sql_text(id), sql_text(team_of(asker)), sql_integer(sees_all(asker))), stmt, err);
    if (status == ST_OK)
        status = sql_next(store, *stmt, &row, err);
    if (status == ST_OK && !row)
        status = no_object(store, kind, id, err);
    return status;
}

enum status seen_get(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct arena *arena, struct stored_object *out, struct error *err) {
    sqlite3_stmt *stmt;
    if (!asker)
        return store_get(store, kind, id, arena, out, err);
    enum status status = start_seen(store, kind, &store->object_shown[kind], gets[kind], id, asker, &stmt, err);
    if (status != ST_OK)
        return status;
    status = object_read(stmt, true, arena, out, err);
    sqlite3_reset(stmt);
    return status;
}

enum status seen_row(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     int64_t *row, struct error *err) {
    sqlite3_stmt *stmt;
    enum status status;
    if (sees_all(asker)) {
        status = object_row(store, kind, id, row, err);
        return status == ST_OK && !*row ? no_object(store, kind, id, err) : status;
    }
    status = start_seen(store, kind, &store->object_seen[kind], asks[kind], id, asker, &stmt, err);
    if (status != ST_OK)
        return status;
    *row = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return ST_OK;
}

enum status seen_has(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct error *err) {
    int64_t row;
    return seen_row(store, kind, id, asker, &row, err);
}

/* ---- searching ---- */

struct search {
    struct store *store;
    enum store_kind kind;
    const char *word;
    const struct viewer *asker;
    struct id id;
    bool found, several;
};

/* The first row's id, and whether there was a second. */
static enum status take_first(struct search *s, sqlite3_stmt *stmt, struct error *err) {
    enum status status = sql_next(s->store, stmt, &s->found, err);
    if (status != ST_OK || !s->found)
        return status;
    const char *id = (const char *)sqlite3_column_text(stmt, 0);
    if (!id)
        return error_no_memory(err);
    snprintf(s->id.hex, sizeof s->id.hex, "%s", id);
    return sql_next(s->store, stmt, &s->several, err);
}

/* `owner` is whose things are looked at, NULL where the statement has no ?4. */
static enum status look(struct search *s, const char *const *ways, const char *owner, struct error *err) {
    sqlite3_stmt *stmt = NULL;
    const struct sql_value values[] = {sql_text(s->word), sql_text(team_of(s->asker)), sql_integer(sees_all(s->asker)),
                                       sql_text(owner)};
    if (s->found)
        return ST_OK;
    enum status status = sql_prepare(s->store, ways[s->kind], &stmt, err);
    if (status == ST_OK)
        status = sql_bind(s->store, stmt, owner ? 4 : 3, values, err);
    if (status == ST_OK)
        status = take_first(s, stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* g is behind f */
static const char *const prefix_own[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM " #table                                                                                         \
    " o WHERE o.id >= ?1 AND o.id < ?1 || 'g' AND " IS_OWN(#word, "o.row") " AND " IS_SEEN(#word, "o.row") " LIMIT 2",
    STORE_KIND_TABLE(X)
#undef X
};
static const char *const prefix_any[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM " #table " o WHERE o.id >= ?1 AND o.id < ?1 || 'g' AND " IS_SEEN(#word, "o.row") " LIMIT 2",
    STORE_KIND_TABLE(X)
#undef X
};
static const char *const name_held[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM holdings h JOIN " #table " o ON o.row = h.object WHERE h.kind = '" #word                         \
    "' AND h.team = ?4 AND h.name = ?1 AND " IS_SEEN(#word, "o.row") " ORDER BY h.created DESC, o.row DESC LIMIT 1",
    STORE_KIND_TABLE(X)
#undef X
};
static const char *const name_made[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM " #table                                                                                         \
    " o WHERE o.name = ?1 AND " IS_OWN(#word, "o.row") " AND " IS_SEEN(#word, "o.row") " ORDER BY o.row DESC LIMIT 1",
    STORE_KIND_TABLE(X)
#undef X
};
static const char *const name_shared[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM holdings h JOIN " #table " o ON o.row = h.object WHERE h.kind = '" #word                         \
    "' AND h.name = ?1 AND (?3 OR h.shared = '*' OR instr(h.shared, '|' || ?2 || '|') > 0)"                            \
    " ORDER BY h.created DESC, o.row DESC LIMIT 1",
    STORE_KIND_TABLE(X)
#undef X
};
static const char *const name_any[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id FROM " #table " o WHERE o.name = ?1 AND " IS_SEEN(#word, "o.row") " ORDER BY o.row DESC LIMIT 1",
    STORE_KIND_TABLE(X)
#undef X
};

static enum status find_by_digits(struct search *s, struct error *err) {
    enum status status = ST_OK;
    if (!object_is_prefix(s->word))
        return ST_OK;
    if (*team_of(s->asker))
        status = look(s, prefix_own, team_of(s->asker), err);
    if (status == ST_OK && s->asker)
        status = look(s, prefix_own, "", err);
    return status == ST_OK ? look(s, prefix_any, NULL, err) : status;
}

static enum status find_by_name(struct search *s, struct error *err) {
    const char *const owners[] = {team_of(s->asker), ""};
    enum status status = ST_OK;
    for (size_t i = *owners[0] ? 0 : 1; i < 2 && s->asker && status == ST_OK; i++) {
        status = look(s, name_held, owners[i], err);
        if (status == ST_OK)
            status = look(s, name_made, owners[i], err);
    }
    if (status == ST_OK && s->asker)
        status = look(s, name_shared, NULL, err);
    if (status == ST_OK)
        status = look(s, name_any, NULL, err);
    return status == ST_OK && !s->asker ? look(s, name_shared, NULL, err) : status;
}

enum status seen_find(struct store *store, enum store_kind kind, const char *word, const struct viewer *asker,
                      struct id *out, struct error *err) {
    struct search s = {.store = store, .kind = kind, .word = word, .asker = asker};
    enum status status = find_by_digits(&s, err);
    const bool digits = s.found;
    if (status == ST_OK)
        status = find_by_name(&s, err);
    if (status != ST_OK)
        return status;
    if (!s.found)
        return error_set(err, ST_NOT_FOUND, "%s: no %s called or numbered \"%s\"", store->path, object_word(kind),
                         word);
    if (digits && s.several)
        return error_set(err, ST_USAGE, "%s: several %s begin with %s; give more digits", store->path,
                         object_table(kind), word);
    *out = s.id;
    return ST_OK;
}
