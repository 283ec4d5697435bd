/* Objects: canonical JSON under the SHA-256 of its bytes. The statements differ by their table alone, whose names come
 * from the list in store.h, never from a user. Cost: hashing is O(bytes), everything else O(log objects). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/holdings.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

static const struct {
    const char *table, *word;
} kinds[] = {
#define X(constant, table, word) {#table, #word},
    STORE_KIND_TABLE(X)
#undef X
};

const char *object_table(enum store_kind kind) {
    return kinds[kind].table;
}

const char *object_word(enum store_kind kind) {
    return kinds[kind].word;
}

static const char *const rows_of[] = {
#define X(constant, table, word) "SELECT row FROM " #table " WHERE id = ?",
    STORE_KIND_TABLE(X)
#undef X
};

enum status object_row(struct store *store, enum store_kind kind, const char *id, int64_t *out, struct error *err) {
    return sql_first_integer(store, rows_of[kind], SQL_VALUES(sql_text(id)), out, err);
}

static const char *const inserts[] = {
#define X(constant, table, word)                                                                                       \
    "INSERT INTO " #table " (id, name, content, created)"                                                              \
    " VALUES (?, ?, ?, ?)"                                                                                             \
    " ON CONFLICT (id) DO NOTHING",
    STORE_KIND_TABLE(X)
#undef X
};

enum status object_put(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                       const char *content, const char *created, bool *added, struct error *err) {
    char now[32];
    struct sql_statement *stmt;
    bool row;
    clock_utc(now, sizeof now);
    enum status status =
        sql_start(store, inserts[kind],
                  SQL_VALUES(sql_text(id->hex), sql_text(name), sql_text(content), sql_text(created ? created : now)),
                  &stmt, err);
    if (!status)
        status = sql_next(store, stmt, &row, err);
    if (!status && added)
        *added = sql_changes(store) > 0;
    return status;
}

enum status object_read_id(const char *name, const char *content, struct id *out, struct error *err) {
    enum status status = sql_check_json(content, name, err);
    return !status ? id_of(content, strlen(content), out, err) : status;
}

/* What was here has its holders already. */
static enum status put_and_hold(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                                const char *content, struct error *err) {
    bool added;
    enum status status = object_put(store, kind, id, name, content, NULL, &added, err);
    return !status && added ? holding_put(store, kind, id->hex, NULL, name, NULL, err) : status;
}

enum status object_put_for_all(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                               const char *content, struct error *err) {
    enum status status = store_begin(store, err);
    return !status ? store_end(store, put_and_hold(store, kind, id, name, content, err), err) : status;
}

enum status no_object(const struct store *store, enum store_kind kind, const char *id, struct error *err) {
    return error_at(err, ST_NOT_FOUND, store->path, "no %s %.12s", object_word(kind), id);
}

enum status object_read(struct sql_statement *stmt, bool with_content, struct arena *arena, struct stored_object *out,
                        struct error *err) {
    const char *id = sql_column_text(stmt, 0);
    struct stored_object object = {0};
    if (!id)
        return error_no_memory(err);
    snprintf(object.id.hex, sizeof object.id.hex, "%s", id);
    enum status status = sql_copy_text(stmt, 1, arena, &object.name, err);
    if (!status)
        status = sql_copy_text(stmt, 2, arena, &object.created, err);
    if (!status && with_content)
        status = sql_copy_text(stmt, 3, arena, &object.content, err);
    if (!status)
        *out = object;
    return status;
}

static const char *const gets[] = {
#define X(constant, table, word) "SELECT id, name, created, content FROM " #table " WHERE id = ?",
    STORE_KIND_TABLE(X)
#undef X
};

enum status store_get(struct store *store, enum store_kind kind, const char *id, struct arena *arena,
                      struct stored_object *out, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, gets[kind], SQL_VALUES(sql_text(id)), &stmt, &row, err);
    if (status)
        return status;
    if (!row)
        return no_object(store, kind, id, err);
    status = object_read(stmt, true, arena, out, err);
    sql_reset(stmt);
    return status;
}

enum status store_has(struct store *store, enum store_kind kind, const char *id, struct error *err) {
    return seen_has(store, kind, id, NULL, err);
}

enum status store_find(struct store *store, enum store_kind kind, const char *word, struct id *out, struct error *err) {
    return seen_find(store, kind, word, NULL, out, err);
}

static const char *const lists[] = {
#define X(constant, table, word) "SELECT id, name, created FROM " #table " ORDER BY row",
    STORE_KIND_TABLE(X)
#undef X
};

static enum status read_listed(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    return object_read(stmt, false, arena, element, err);
}

enum status store_list(struct store *store, enum store_kind kind, struct arena *arena, size_t *n,
                       struct stored_object **out, struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    enum status status = sql_start(store, lists[kind], 0, NULL, &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_listed, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}
