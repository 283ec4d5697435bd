/* Texts grow by doubling. An object's name is looked up first, because SQLite can walk an index in order for `model =
 * ?` but must sort for `model IN (SELECT ...)`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "dataset/names_internal.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

void select_add(struct select *select, const char *text) {
    const size_t n = strlen(text), need = select->length + n + 1;
    if (!GROW(&select->sql, &select->room, need)) {
        select->no_memory = true;
        return;
    }
    memcpy(select->sql + select->length, text, n + 1);
    select->length += n;
}

bool select_value(struct select *select, struct sql_value value) {
    if (!GROW(&select->values, &select->values_room, select->n + 1)) {
        select->no_memory = true;
        return false;
    }
    select->values[select->n++] = value;
    return true;
}

void select_bind(struct select *select, struct sql_value value) {
    char number[24];
    if (!select_value(select, value))
        return;
    snprintf(number, sizeof number, "?%zu", select->n);
    select_add(select, number);
}

void select_add_with(struct select *select, const char *text, struct sql_value value) {
    char number[24];
    if (strchr(text, '@') && !select_value(select, value))
        return;
    snprintf(number, sizeof number, "?%zu", select->n);
    for (const char *at; (at = strchr(text, '@')); text = at + 1) {
        const char *part = arena_copy(&select->texts, text, (size_t)(at - text));
        select->no_memory = select->no_memory || !part;
        select_add(select, part ? part : "");
        select_add(select, number);
    }
    select_add(select, text);
}

void select_release(struct select *select) {
    free(select->sql);
    free(select->values);
    arena_release(&select->texts);
}

enum status select_prepare(struct store *store, const struct select *select, struct sql_statement **out,
                           struct error *err) {
    struct sql_statement *stmt = NULL;
    if (select->no_memory)
        return error_no_memory(err);
    enum status status = sql_prepare(store, select->sql, &stmt, err);
    if (!status)
        status = sql_bind(store, stmt, select->n, select->values, err);
    if (status) {
        sql_finalize(stmt);
        return status;
    }
    *out = stmt;
    return ST_OK;
}

bool object_is_prefix(const char *word) {
    const size_t n = strlen(word);
    return n >= OBJECT_PREFIX_MIN && n <= ID_LENGTH && strspn(word, "0123456789abcdef") == n;
}

/* Write the character that comes after the one of n bytes at `c`, and a 0; false where that is the last of all. */
static bool next_character(const char *c, size_t n, char out[5]) {
    uint32_t x = (unsigned char)c[0] & (n == 1 ? 0x7fu : 0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        x = x << 6 | ((unsigned char)c[i] & 0x3f);
    x = x == 0xd7ff ? 0xe000 : x + 1; /* between the two are surrogates */
    const size_t more = x < 0x80 ? 0 : x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, x >>= 6)
        out[i] = (char)(0x80 | (x & 0x3f));
    out[0] = (char)(more ? (0xff00u >> (more + 1) & 0xff) | x : x);
    out[more + 1] = '\0';
    return more < 3 || (unsigned char)out[0] < 0xf4 || (unsigned char)out[1] < 0x90;
}

/* Where the last character begins; `text` is not empty. What is no UTF-8 counts as characters of one byte. */
static size_t last_character(const char *text, size_t n, bool *valid) {
    size_t at = 0, length;
    *valid = true;
    for (;; at += length) {
        length = utf8_length(text + at, n - at);
        *valid = *valid && length;
        length = length ? length : 1;
        if (at + length >= n)
            return at;
    }
}

/* PostgreSQL takes only valid texts, so that whole characters are counted up, as bytes order like characters. */
const char *select_prefix_end(struct select *select, const char *text) {
    const size_t n = strlen(text);
    char next[5];
    bool valid;
    if (!n)
        return NULL;
    const size_t at = last_character(text, n, &valid);
    const char *before = arena_copy(&select->texts, text, at), *end;
    if (before && valid && !next_character(text + at, n - at, next) && at)
        return select_prefix_end(select, before);
    if (!valid)
        snprintf(next, sizeof next, "%c", (unsigned char)text[at] + 1); /* no byte of UTF-8 is 255 */
    end = before ? arena_printf(&select->texts, "%s%s", before, next) : NULL;
    select->no_memory = select->no_memory || !end;
    return end;
}

/* A condition: `column` is `word` or, with an `end`, it is from `word` up to but not `end`. */
static void add_text_is(struct select *select, const char *column, const char *word, const char *end) {
    select_add(select, column);
    select_add(select, end ? " >= " : " = ");
    select_bind(select, sql_text(word));
    if (!end)
        return;
    select_add(select, " AND ");
    select_add(select, column);
    select_add(select, " < ");
    select_bind(select, sql_text(end));
}

/* Strategies that some team calls by this name, where the viewer may know that name. */
static void add_told(struct select *select, const char *word, const char *end) {
    select_add(select, " UNION SELECT h.object FROM holdings h WHERE h.kind = 'strategy' AND ");
    add_text_is(select, "h.name", word, end);
    if (select->viewer)
        select_add_with(select, " AND " IS_TOLD("h", "@", "false"), sql_text(select->viewer));
}

/* "(SELECT o.row FROM models o WHERE o.name = ?1 UNION SELECT row FROM models WHERE id >= ?2 AND id < ?3)". The names
 * of models and clusters are part of their contents, so they are the same for all viewers. With `end`, see
 * add_text_is. */
static void add_rows(struct select *select, enum store_kind kind, const char *word, const char *end) {
    select_add(select, "(SELECT o.row FROM ");
    select_add(select, object_table(kind));
    select_add(select, " o WHERE ");
    add_text_is(select, "o.name", word, end);
    if (kind == STORE_STRATEGY && select->viewer)
        select_add(select, " AND NOT " IS_HELD("'strategy'", "o.row"));
    if (kind == STORE_STRATEGY)
        add_told(select, word, end);
    if (end || object_is_prefix(word)) {
        select_add(select, " UNION SELECT row FROM ");
        select_add(select, object_table(kind));
        select_add(select, " WHERE ");
        add_text_is(select, "id", word, end ? end : select_prefix_end(select, word));
    }
    select_add(select, ")");
}

static void add_column(struct select *select, const char *column) {
    select_add(select, "t.");
    select_add(select, column);
}

/* How many fit, at most two, and the row of the first. */
static enum status look_up(struct store *store, const char *viewer, enum store_kind kind, const char *word,
                           int64_t *first, unsigned *n, struct error *err) {
    struct select rows = {.viewer = viewer};
    struct sql_statement *stmt = NULL;
    bool row = true;
    select_add(&rows, "SELECT * FROM ");
    add_rows(&rows, kind, word, NULL);
    select_add(&rows, " r LIMIT 2");
    enum status status = select_prepare(store, &rows, &stmt, err);
    for (*n = 0; !status; ++*n) {
        status = sql_next(store, stmt, &row, err);
        if (status || !row)
            break;
        if (*n == 0)
            *first = sql_column_integer(stmt, 0);
    }
    sql_finalize(stmt);
    select_release(&rows);
    return status;
}

static void pin(struct select *select, enum store_kind kind, int64_t row) {
    if (kind == STORE_MODEL) {
        select->pins.columns |= UINT32_C(1) << FILTER_model;
        select->pins.model = row;
    } else if (kind == STORE_CLUSTER) {
        select->pins.columns |= UINT32_C(1) << FILTER_cluster;
        select->pins.cluster = row;
    } else if (kind == STORE_STRATEGY) {
        select->pins.columns |= UINT32_C(1) << FILTER_strategy;
    }
}

void select_pin_median(struct select *select, double least_us, double most_us) {
    struct pins *pins = &select->pins;
    pins->least_us = fmax(pins->least_us, least_us);
    if (most_us != 0)
        pins->most_us = pins->most_us != 0 ? fmin(pins->most_us, most_us) : most_us;
}

enum status select_object(struct store *store, struct select *select, enum store_kind kind, const char *column,
                          const char *word, bool negated, struct error *err) {
    int64_t first = 0;
    unsigned n = 2;
    enum status status = store ? look_up(store, select->viewer, kind, word, &first, &n, err) : ST_OK;
    if (status)
        return status;
    if (n < 2 && !negated)
        pin(select, kind, n ? first : -1);
    if (n == 0) {
        select_add(select, negated ? "true" : "false");
        return ST_OK;
    }
    add_column(select, column);
    if (n > 1) {
        select_add(select, negated ? " NOT IN " : " IN ");
        add_rows(select, kind, word, NULL);
        return ST_OK;
    }
    select_add(select, negated ? " <> " : " = ");
    select_bind(select, sql_integer(first));
    return ST_OK;
}

void select_objects_like(struct select *select, enum store_kind kind, const char *column, const char *word,
                         bool negated) {
    if (!*word) {
        select_add(select, negated ? "false" : "true");
        return;
    }
    add_column(select, column);
    select_add(select, negated ? " NOT IN " : " IN ");
    add_rows(select, kind, word, select_prefix_end(select, word));
}
