/* A page begins by a search for the place that the cursor names: a row number of an object, the start and row number of
 * a session. Cost: O(log n + page). */
#include "dataset/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/names_internal.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

enum { PAGE_MAX = 10000, STAMP_ROOM = 32 };

/* A cursor is "1", 16 digits that stand for the list, 16 for the row, and a stamp or nothing. */
struct place {
    int64_t row;
    char stamp[STAMP_ROOM];
};

static enum status hash_list(char *text, char out[17], struct error *err) {
    struct id id;
    enum status status = text ? id_of(text, strlen(text), &id, err) : error_no_memory(err);
    if (!status)
        snprintf(out, 17, "%.16s", id.hex);
    return status;
}

static void write_place(const char list[17], int64_t row, const char *stamp, char out[PAGE_CURSOR_ROOM]) {
    snprintf(out, PAGE_CURSOR_ROOM, "1%s%016llx%.*s", list, (unsigned long long)row, STAMP_ROOM - 1, stamp);
}

static enum status read_place(const char *after, const char list[17], struct place *out, struct error *err) {
    char digits[17] = "";
    if (strlen(after) < 33 || after[0] != '1' || strlen(after + 33) >= sizeof out->stamp)
        return error_set(err, ST_INVALID, "page: this is no page token; take the one that the page before gave");
    if (strncmp(after + 1, list, 16) != 0)
        return error_set(err, ST_INVALID, "page: the token belongs to another list; begin at the first page again");
    memcpy(digits, after + 17, 16);
    out->row = (int64_t)strtoull(digits, NULL, 16);
    snprintf(out->stamp, sizeof out->stamp, "%s", after + 33);
    return ST_OK;
}

/* The hash of the list that `text` describes (NULL: memory is out), and the row after which the page begins, if it is
 * not the first page. */
static enum status begin_page(char *text, const char *after, size_t limit, char list[17], struct place *place,
                              struct error *err) {
    if (limit < 1 || limit > PAGE_MAX)
        return error_set(err, ST_USAGE, "page: 1 to %d rows, not %zu", PAGE_MAX, limit);
    enum status status = hash_list(text, list, err);
    return !status && after ? read_place(after, list, place, err) : status;
}

struct object_row {
    struct stored_object object;
    int64_t row;
};

static enum status read_object(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct object_row *row = element;
    const char *id = sql_column_text(stmt, 0);
    if (!id)
        return error_no_memory(err);
    snprintf(row->object.id.hex, sizeof row->object.id.hex, "%s", id);
    row->row = sql_column_integer(stmt, 3);
    enum status status = sql_copy_text(stmt, 1, arena, &row->object.name, err);
    return !status ? sql_copy_text(stmt, 2, arena, &row->object.created, err) : status;
}

static void add_behind(struct select *select, const char *column, const struct object_list *list,
                       const struct place *after) {
    if (!after)
        return;
    select_add(select, " AND ");
    select_add(select, column);
    select_add(select, list->descending ? " < " : " > ");
    select_bind(select, sql_integer(after->row));
}

static void add_order(struct select *select, const char *column, bool descending, size_t limit) {
    select_add(select, " ORDER BY ");
    select_add(select, column);
    select_add(select, descending ? " DESC LIMIT " : " LIMIT ");
    select_bind(select, sql_integer((int64_t)limit + 1));
}

/* Parts of the statements for a viewer: ?1 is the kind, ?2 the team, ?3 the name. */
#define TO_ALL  "SELECT object AS row FROM audiences WHERE kind = ?1 AND audience = '*' AND reasons > 0"
#define TO_TEAM "SELECT object FROM audiences WHERE kind = ?1 AND audience = ?2 AND reasons > 0"
#define TOLD_SO IS_TOLD("h", "?2", "false")
#define HELD_SO "SELECT h.object AS row FROM holdings h WHERE h.kind = ?1 AND h.name = ?3 AND " TOLD_SO

#define JOIN_NAME(all) JOIN_NAMER("?1", "?2", all, "NULL")
#define CALLED_SO                                                                                                      \
    "(o.row IN (SELECT object FROM holdings WHERE kind = ?1 AND name = ?3) OR (o.name = ?3 AND NOT " IS_HELD(          \
        "?1", "o.row") "))"

/* Both halves come in the order of rows, so that SQLite merges them and stops at the page's end. */
static void add_shown_rows(struct select *select, const struct object_list *list, const struct place *after) {
    select_add(select, list->name ? HELD_SO : TO_ALL);
    add_behind(select, "object", list, after);
    select_add(select, " UNION ");
    if (list->name) {
        select_add(select, "SELECT row FROM ");
        select_add(select, object_table(list->kind));
        select_add(select, " o WHERE name = ?3 AND NOT " IS_HELD("?1", "o.row"));
        select_add(select, " AND " HAS_REASON("?1", "o.row", "?2"));
    } else {
        select_add(select, TO_TEAM);
    }
    add_behind(select, list->name ? "row" : "object", list, after);
}

static void bind_asker(struct select *select, const struct object_list *list) {
    select_value(select, sql_text(object_word(list->kind)));
    select_value(select, sql_text(list->asker->team));
    select_value(select, sql_text(list->name));
}

static void add_shown_objects(struct select *select, const struct object_list *list, const struct place *after,
                              size_t limit) {
    bind_asker(select, list);
    select_add(select, "SELECT o.id, ");
    select_add(select, list->name ? "?3" : TOLD_NAME("?1"));
    select_add(select, ", " TOLD_CREATED("?1") ", o.row FROM (");
    add_shown_rows(select, list, after);
    add_order(select, "1", list->descending, limit);
    select_add(select, ") s JOIN ");
    select_add(select, object_table(list->kind));
    select_add(select, " o ON o.row = s.row" JOIN_NAME("false") " ORDER BY s.row");
    select_add(select, list->descending ? " DESC" : "");
}

static void add_all_objects(struct select *select, const struct object_list *list, const struct place *after,
                            size_t limit) {
    if (list->asker)
        bind_asker(select, list);
    select_add(select, !list->asker ? "SELECT o.id, o.name, o.created"
                       : list->name ? "SELECT o.id, ?3, " TOLD_CREATED("?1")
                                    : "SELECT o.id, " TOLD_NAME("?1") ", " TOLD_CREATED("?1"));
    select_add(select, ", o.row FROM ");
    select_add(select, object_table(list->kind));
    select_add(select, list->asker ? " o" JOIN_NAME("true") " WHERE true" : " o WHERE true");
    if (list->name && list->asker) {
        select_add(select, " AND " CALLED_SO);
    } else if (list->name) {
        select_add(select, " AND o.name = ");
        select_bind(select, sql_text(list->name));
    }
    add_behind(select, "o.row", list, after);
    add_order(select, "o.row", list->descending, limit);
}

static void add_object_list(struct select *select, const struct object_list *list, const struct place *after,
                            size_t limit) {
    if (list->asker && !list->asker->sees_all)
        add_shown_objects(select, list, after, limit);
    else
        add_all_objects(select, list, after, limit);
}

static char *describe_objects(const struct object_list *list, struct arena *arena) {
    const char *team = list->asker && !list->asker->sees_all ? list->asker->team : NULL;
    return arena_printf(arena, "%d %d %s%s%s%s", (int)list->kind, list->descending, team ? "@" : "", team ? team : "",
                        list->name ? "=" : "", list->name ? list->name : "");
}

/* Run a select that gives one row more than `limit`, and release it. *out has the first `limit` rows, of each its first
 * `item` bytes. *last is the row after which the next page begins, NULL on the last page. */
static enum status take_page(struct store *store, struct select *select, sql_read_row *read, size_t size, size_t item,
                             size_t limit, struct arena *arena, size_t *n, void **out, const void **last,
                             struct error *err) {
    struct sql_statement *stmt = NULL;
    size_t found = 0;
    void *rows = NULL;
    enum status status = select_prepare(store, select, &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read, size, arena, &found, &rows, err);
    sql_finalize(stmt);
    select_release(select);
    if (status)
        return status;
    const size_t shown = found > limit ? limit : found;
    char *items = arena_alloc(arena, shown, item);
    if (!items)
        return error_no_memory(err);
    for (size_t i = 0; i < shown; i++)
        memcpy(items + i * item, (const char *)rows + i * size, item);
    *last = found > shown ? (const char *)rows + (shown - 1) * size : NULL;
    *n = shown;
    *out = items;
    return ST_OK;
}

enum status page_objects(struct store *store, const struct object_list *list, const char *after, size_t limit,
                         struct arena *arena, size_t *n, struct stored_object **out, char next[PAGE_CURSOR_ROOM],
                         struct error *err) {
    struct select select = {0};
    struct place place;
    void *items;
    const void *row;
    char hash[17];
    enum status status = begin_page(describe_objects(list, arena), after, limit, hash, &place, err);
    if (status)
        return status;
    add_object_list(&select, list, after ? &place : NULL, limit);
    status = take_page(store, &select, read_object, sizeof(struct object_row), sizeof(struct stored_object), limit,
                       arena, n, &items, &row, err);
    if (status)
        return status;
    const struct object_row *last = row;
    next[0] = '\0';
    if (last)
        write_place(hash, last->row, "", next);
    *out = items;
    return ST_OK;
}

struct session_row {
    struct stored_session session;
    int64_t row;
};

static enum status read_session(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct session_row *row = element;
    row->row = sql_column_integer(stmt, SESSION_ROW);
    return session_read(stmt, arena, &row->session, err);
}

static void where_text(struct select *select, const char *before, const char *text) {
    if (text) {
        select_add(select, before);
        select_bind(select, sql_text(text));
    }
}

static void add_session_list(struct select *select, const struct session_list *list, const struct place *after,
                             size_t limit) {
    select_add(select, "SELECT " SESSION_COLUMNS ", s.rowid FROM sessions s WHERE true");
    where_text(select, " AND s.model = ", list->model);
    where_text(select, " AND s.cluster = ", list->cluster);
    where_text(select, " AND s.team = ", list->team);
    where_text(select, " AND s.state = ", list->state ? stored_session_state_word(*list->state) : NULL);
    where_text(select, " AND s.mode = ", list->mode ? stored_session_mode_word(*list->mode) : NULL);
    select_viewer(select, "s", list->viewer);
    if (after) {
        where_text(select, " AND s.started <= ", after->stamp);
        where_text(select, " AND (s.started < ", after->stamp);
        select_add(select, " OR s.rowid < ");
        select_bind(select, sql_integer(after->row));
        select_add(select, ")");
    }
    select_add(select, " ORDER BY s.started DESC, s.rowid DESC LIMIT ");
    select_bind(select, sql_integer((int64_t)limit + 1));
}

static char *describe(const struct session_list *list, struct arena *arena) {
    const char *const texts[] = {list->viewer, list->model, list->cluster, list->team};
    char *all =
        arena_printf(arena, "sessions %d %d", list->state ? (int)*list->state : -1, list->mode ? (int)*list->mode : -1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && all; i++)
        all = arena_printf(arena, "%s %zu:%s", all, texts[i] ? strlen(texts[i]) + 1 : 0, texts[i] ? texts[i] : "");
    return all;
}

enum status page_sessions(struct store *store, const struct session_list *list, const char *after, size_t limit,
                          struct arena *arena, size_t *n, struct stored_session **out, char next[PAGE_CURSOR_ROOM],
                          struct error *err) {
    struct select select = {0};
    struct place place;
    void *items;
    const void *row;
    char hash[17];
    enum status status = begin_page(describe(list, arena), after, limit, hash, &place, err);
    if (status)
        return status;
    add_session_list(&select, list, after ? &place : NULL, limit);
    status = take_page(store, &select, read_session, sizeof(struct session_row), sizeof(struct stored_session), limit,
                       arena, n, &items, &row, err);
    if (status)
        return status;
    const struct session_row *last = row;
    next[0] = '\0';
    if (last)
        write_place(hash, last->row, last->session.started, next);
    *out = items;
    return ST_OK;
}
