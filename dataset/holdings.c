/* The table of audiences (schema.c, audiences.c) says who may see an object. So whether a team may see it takes two
 * look-ups, however many trials are about it. Cost: O(log n). Looking up the beginning of an id, or a name, also takes
 * a step for each id or name that matches. */
#include "dataset/holdings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/names_internal.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

/* Parameters of every statement here: ?1 an id or a word, ?2 the asker's team, ?3 whether everything is seen, ?4 in
 * searches the team whose things are looked at. */
#define IS_SEEN(kind, row) "(?3 <> 0 OR " HAS_REASON("'" kind "'", row, "?2") ")"
#define IS_OWN(kind, row)                                                                                              \
    "EXISTS (SELECT 1 FROM audiences a WHERE a.kind = '" kind "' AND a.audience = ?4 AND a.object = " row              \
    " AND a.own > 0)"

/* A team that names_internal.h gives a name for the object may see it. */
#define SHOWN(table, kind, more)                                                                                       \
    "SELECT o.id, " TOLD_NAME("'" kind "'") more                                                                       \
        " FROM " table                                                                                                 \
        " o" JOIN_NAMER("'" kind "'", "?2", "?3 <> 0",                                                                 \
                        "NULL") " WHERE o.id = ?1 AND (n.team IS NOT NULL OR " IS_SEEN(kind, "o.row") ")"

static const char *const gets[] = {
#define X(constant, table, word) SHOWN(#table, #word, ", " TOLD_CREATED("'" #word "'") ", o.content"),
    STORE_KIND_TABLE(X)
#undef X
};

/* The same where the asker's team holds the object, or no team does, which is so for most (rules 1 and 5 of
 * names_internal.h); no row otherwise. The whole rule has a dozen subqueries, and PostgreSQL sets up each of them
 * before it runs any. */
static const char *const plain_gets[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT o.id, coalesce(n.name, o.name), coalesce(n.created, o.created), o.content"                                 \
    " FROM " #table " o LEFT JOIN holdings n ON n.kind = '" #word "' AND n.object = o.row AND n.team = ?2"             \
    " WHERE o.id = ?1 AND (n.team IS NOT NULL OR (NOT " IS_HELD("'" #word "'", "o.row") " AND " IS_SEEN(#word,         \
                                                                                                        "o.row") "))",
    STORE_KIND_TABLE(X)
#undef X
};

/* Without the columns that lie behind the content in the file: to reach them SQLite would read all of the content. */
static const char *const names[] = {
#define X(constant, table, word) SHOWN(#table, #word, ""),
    STORE_KIND_TABLE(X)
#undef X
};

static const char *const asks[] = {
#define X(constant, table, word) "SELECT o.row FROM " #table " o WHERE o.id = ?1 AND " IS_SEEN(#word, "o.row"),
    STORE_KIND_TABLE(X)
#undef X
};

/* ?1 is a JSON array of ids. */
static const char *const asks_many[] = {
#define X(constant, table, word)                                                                                       \
    "SELECT (SELECT o.row FROM " #table                                                                                \
    " o WHERE o.id = k.value AND " IS_SEEN(#word, "o.row") ")"                                                         \
                                                           " FROM json_each(?1) k ORDER BY k.key",
    STORE_KIND_TABLE(X)
#undef X
};

/* ---- holding ---- */

enum status holding_put(struct store *store, enum store_kind kind, const char *id, const char *team, const char *name,
                        const char *shared, struct error *err) {
    return holding_put_at(store, kind, id, team, name, shared, NULL, err);
}

static const char insert_holding[] = "INSERT INTO holdings (kind, object, team, name, shared, created)"
                                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
                                     " ON CONFLICT DO NOTHING";

static const char share_holding[] = "UPDATE holdings"
                                    " SET shared = ?4, name = CASE shared WHEN '' THEN ?5 ELSE name END,"
                                    "     created = CASE shared WHEN '' THEN ?6 ELSE created END"
                                    " WHERE kind = ?1 AND object = ?2 AND team = ?3"
                                    "   AND (shared <> ?4 OR (shared = '' AND name <> ?5))";

enum status holding_put_at(struct store *store, enum store_kind kind, const char *id, const char *team,
                           const char *name, const char *shared, const char *created, struct error *err) {
    char now[32];
    int64_t row;
    clock_utc(now, sizeof now);
    enum status status = check_team(team, shared, err);
    if (!status)
        status = object_row(store, kind, id, &row, err);
    if (!status && !row)
        status = no_object(store, kind, id, err);
    if (status)
        return status;
    const struct sql_value word = sql_text(object_word(kind)), held = sql_integer(row),
                           who = sql_text(team ? team : ""), seen = sql_text(shared ? shared : "*");
    const struct sql_value called = sql_text(name), when = sql_text(created ? created : now);
    uint64_t added;
    status = sql_step(store, insert_holding, SQL_VALUES(word, held, who, called, seen, when), &added, err);
    if (status || added)
        return status;
    return sql_step(store, share_holding, SQL_VALUES(word, held, who, seen, called, when), NULL, err);
}

static enum status make(struct store *store, enum store_kind kind, const struct id *id, const char *content,
                        const char *team, const char *name, const char *shared, struct error *err) {
    enum status status = object_put(store, kind, id, name, content, NULL, NULL, err);
    return !status ? holding_put(store, kind, id->hex, team, name, shared, err) : status;
}

enum status holding_make(struct store *store, enum store_kind kind, const struct id *id, const char *content,
                         const char *team, const char *name, const char *shared, struct error *err) {
    enum status status = store_begin(store, err);
    return !status ? store_end(store, make(store, kind, id, content, team, name, shared, err), err) : status;
}

/* ---- one that is seen ---- */

static const char *team_of(const struct viewer *asker) {
    return asker && asker->team ? asker->team : "";
}

static bool sees_all(const struct viewer *asker) {
    return !asker || asker->sees_all;
}

/* *stmt is at its row. `first` (may be NULL) is a statement that is enough where it has a row. */
static enum status start_seen(struct store *store, enum store_kind kind, const char *first, const char *sql,
                              const char *id, const struct viewer *asker, struct sql_statement **stmt,
                              struct error *err) {
    const struct sql_value values[] = {sql_text(id), sql_text(team_of(asker)), sql_integer(sees_all(asker))};
    bool row = false;
    enum status status = first ? sql_first(store, first, 3, values, stmt, &row, err) : ST_OK;
    if (!status && !row)
        status = sql_first(store, sql, 3, values, stmt, &row, err);
    if (!status && !row)
        status = no_object(store, kind, id, err);
    return status;
}

enum status seen_get(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct arena *arena, struct stored_object *out, struct error *err) {
    struct sql_statement *stmt;
    if (!asker)
        return store_get(store, kind, id, arena, out, err);
    enum status status = start_seen(store, kind, plain_gets[kind], gets[kind], id, asker, &stmt, err);
    if (status)
        return status;
    status = object_read(stmt, true, arena, out, err);
    sql_reset(stmt);
    return status;
}

enum status seen_name(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                      struct arena *arena, const char **name, struct error *err) {
    struct sql_statement *stmt;
    enum status status = start_seen(store, kind, NULL, names[kind], id, asker, &stmt, err);
    if (status)
        return status;
    status = sql_copy_text(stmt, 1, arena, name, err);
    sql_reset(stmt);
    return status;
}

enum status seen_row(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     int64_t *row, struct error *err) {
    struct sql_statement *stmt;
    enum status status;
    if (sees_all(asker)) {
        status = object_row(store, kind, id, row, err);
        return !status && !*row ? no_object(store, kind, id, err) : status;
    }
    status = start_seen(store, kind, NULL, asks[kind], id, asker, &stmt, err);
    if (status)
        return status;
    *row = sql_column_integer(stmt, 0);
    sql_reset(stmt);
    return ST_OK;
}

static char *ids_json(size_t n, const char *const *ids) {
    char *text = malloc(n * (ID_LENGTH + 3) + 3), *to = text;
    if (!text)
        return NULL;
    *to++ = '[';
    for (size_t i = 0; i < n; i++)
        to += sprintf(to, i ? ",\"%s\"" : "\"%s\"", ids[i] ? ids[i] : "");
    memcpy(to, "]", 2);
    return text;
}

enum status seen_rows(struct store *store, enum store_kind kind, size_t n, const char *const *ids,
                      const struct viewer *asker, int64_t *rows, struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    char *text = ids_json(n, ids);
    if (!text)
        return error_no_memory(err);
    memset(rows, 0, n * sizeof *rows);
    enum status status =
        sql_start(store, asks_many[kind],
                  SQL_VALUES(sql_text(text), sql_text(team_of(asker)), sql_integer(sees_all(asker))), &stmt, err);
    for (size_t i = 0; !status && row; i++) {
        status = sql_next(store, stmt, &row, err);
        if (!status && row && i < n)
            rows[i] = sql_column_integer(stmt, 0);
    }
    free(text);
    return status;
}

enum status seen_has(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct error *err) {
    int64_t row;
    return seen_row(store, kind, id, asker, &row, err);
}

/* ---- searching ---- */

/* Ways to find an object by what somebody typed. */
enum search_step { SEARCH_DIGITS, SEARCH_HELD, SEARCH_SHARED, SEARCH_UNHELD, SEARCH_COUNT };

struct search {
    struct store *store;
    enum store_kind kind;
    const char *word;
    const struct viewer *asker;
    struct id id;
    bool found, several;
};

/* The first row's id, and whether there was a second. */
static enum status take_first(struct search *s, struct sql_statement *stmt, struct error *err) {
    enum status status = sql_next(s->store, stmt, &s->found, err);
    if (status || !s->found)
        return status;
    const char *id = sql_column_text(stmt, 0);
    if (!id)
        return error_no_memory(err);
    snprintf(s->id.hex, sizeof s->id.hex, "%s", id);
    return sql_next(s->store, stmt, &s->several, err);
}

/* Where ?4 is NULL, whose things they are does not matter. */
#define OF_OWNER(kind, row) "(?4 IS NULL OR " IS_OWN(kind, row) ")"

/* 'g' comes after every hex digit */
#define BY_DIGITS(table, kind)                                                                                         \
    "SELECT o.id FROM " table                                                                                          \
    " o WHERE o.id >= ?1 AND o.id < ?1 || 'g' AND " OF_OWNER(kind, "o.row") " AND " IS_SEEN(kind, "o.row") " LIMIT 2"
#define HELD(table, kind, which)                                                                                       \
    "SELECT o.id FROM holdings h JOIN " table " o ON o.row = h.object WHERE h.kind = '" kind                           \
    "' AND h.name = ?1 AND " which " ORDER BY h.created DESC, o.row DESC LIMIT 1"
#define UNHELD(table, kind)                                                                                            \
    "SELECT o.id FROM " table                                                                                          \
    " o WHERE o.name = ?1 AND (?3 <> 0 OR NOT " IS_HELD("'" kind "'", "o.row") ") AND " OF_OWNER(                      \
        kind, "o.row") " AND " IS_SEEN(kind, "o.row") " ORDER BY o.row DESC LIMIT 1"

static const char *const searches[SEARCH_COUNT][STORE_KIND_COUNT] = {
#define X(constant, table, word) [constant] = BY_DIGITS(#table, #word),
    [SEARCH_DIGITS] = {STORE_KIND_TABLE(X)},
#undef X
#define X(constant, table, word) [constant] = HELD(#table, #word, "h.team = ?4 AND " IS_SEEN(#word, "o.row")),
    [SEARCH_HELD] = {STORE_KIND_TABLE(X)},
#undef X
#define X(constant, table, word) [constant] = HELD(#table, #word, IS_TOLD("h", "?2", "?3 <> 0")),
    [SEARCH_SHARED] = {STORE_KIND_TABLE(X)},
#undef X
#define X(constant, table, word) [constant] = UNHELD(#table, #word),
    [SEARCH_UNHELD] = {STORE_KIND_TABLE(X)},
#undef X
};

/* `owner` is whose things are looked at; NULL: anybody's. What is shared is not asked for by owner. */
static enum status look(struct search *s, enum search_step which, const char *owner, struct error *err) {
    struct sql_statement *stmt;
    const struct sql_value values[] = {sql_text(s->word), sql_text(team_of(s->asker)), sql_integer(sees_all(s->asker)),
                                       sql_text(owner)};
    if (s->found)
        return ST_OK;
    enum status status =
        sql_start(s->store, searches[which][s->kind], which == SEARCH_SHARED ? 3 : 4, values, &stmt, err);
    if (status)
        return status;
    status = take_first(s, stmt, err);
    sql_reset(stmt);
    return status;
}

static enum status find_by_digits(struct search *s, struct error *err) {
    enum status status = ST_OK;
    if (!object_is_prefix(s->word))
        return ST_OK;
    if (*team_of(s->asker))
        status = look(s, SEARCH_DIGITS, team_of(s->asker), err);
    if (!status && s->asker)
        status = look(s, SEARCH_DIGITS, "", err);
    return !status ? look(s, SEARCH_DIGITS, NULL, err) : status;
}

static enum status find_by_name(struct search *s, struct error *err) {
    const char *const owners[] = {team_of(s->asker), ""};
    enum status status = ST_OK;
    for (size_t i = *owners[0] ? 0 : 1; i < 2 && s->asker && !status; i++) {
        status = look(s, SEARCH_HELD, owners[i], err);
        if (!status)
            status = look(s, SEARCH_UNHELD, owners[i], err);
    }
    if (!status && s->asker)
        status = look(s, SEARCH_SHARED, NULL, err);
    if (!status)
        status = look(s, SEARCH_UNHELD, NULL, err);
    return !status && !s->asker ? look(s, SEARCH_SHARED, NULL, err) : status;
}

enum status seen_find(struct store *store, enum store_kind kind, const char *word, const struct viewer *asker,
                      struct id *out, struct error *err) {
    struct search s = {.store = store, .kind = kind, .word = word, .asker = asker};
    enum status status = find_by_digits(&s, err);
    const bool digits = s.found;
    if (!status)
        status = find_by_name(&s, err);
    if (status)
        return status;
    if (!s.found)
        return error_at(err, ST_NOT_FOUND, store->path, "no %s called or numbered \"%s\"", object_word(kind), word);
    if (digits && s.several)
        return error_at(err, ST_USAGE, store->path, "several %s begin with %s; give more digits", object_table(kind),
                        word);
    *out = s.id;
    return ST_OK;
}
