/* A filter becomes one SELECT whose conditions are texts of this file and whose values are bound. Prefixes of ids are
 * ranges (id >= p AND id < p || 'g'), so that every filter but runner and proposer alone finds an index. Iterations
 * come by a second statement a trial, O(log) each. */
#include "dataset/query.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/store_internal.h"

enum { MAX_VALUES = 24 };

struct select {
    char sql[4096]; /* more than every condition together */
    size_t length, n;
    struct sql_value values[MAX_VALUES];
};

static const char columns[] =
    "SELECT t.id, t.number, t.round, t.seed, t.predicted_us, t.mean_us, t.median_us, t.low_us, t.high_us, t.state,"
    " t.uid, t.session, t.model, m.name, t.cluster, c.name, t.strategy, s.name, t.proposer, t.runner, t.reason,"
    " t.queued, t.started, t.ended, t.environment, e.content"
    " FROM trials t JOIN models m ON m.id = t.model JOIN clusters c ON c.id = t.cluster"
    " JOIN strategies s ON s.id = t.strategy LEFT JOIN environments e ON e.id = t.environment WHERE true";

static const struct {
    const char *name, *column;
} orders[] = {
    {"recorded", "t.id"}, {"number", "t.number"}, {"predicted", "t.predicted_us"}, {"measured", "t.median_us"}};

const char *query_order_name(enum query_order order) {
    return orders[order].name;
}

bool query_order_parse(const char *word, enum query_order *out) {
    for (size_t i = 0; i < QUERY_ORDER_COUNT; i++)
        if (!strcmp(word, orders[i].name)) {
            *out = (enum query_order)i;
            return true;
        }
    return false;
}

static void append(struct select *select, const char *text) {
    const size_t n = strlen(text);
    if (select->length + n < sizeof select->sql) {
        memcpy(select->sql + select->length, text, n + 1);
        select->length += n;
    }
}

/* " AND text", its one ?N numbered after the values so far. */
static void where(struct select *select, const char *before, const char *after, struct sql_value value) {
    char number[16];
    select->values[select->n++] = value;
    snprintf(number, sizeof number, "?%zu", select->n);
    append(select, before);
    append(select, number);
    append(select, after);
}

static void where_text(struct select *select, const char *before, const char *text) {
    if (text)
        where(select, before, "", sql_text(text));
}

static void where_bound(struct select *select, const char *before, double bound) {
    if (bound > 0)
        where(select, before, "", sql_real(bound));
}

/* An object by name or by the beginning of its id. */
static void where_object(struct select *select, enum store_kind kind, const char *column, const char *word) {
    if (!word)
        return;
    char text[128];
    snprintf(text, sizeof text, " AND t.%s IN (SELECT id FROM %s WHERE name = ", column, object_table(kind));
    where(select, text, "", sql_text(word));
    if (*word && strspn(word, "0123456789abcdef") == strlen(word)) {
        char number[16];
        snprintf(number, sizeof number, "?%zu", select->n);
        append(select, " OR (id >= ");
        append(select, number);
        append(select, " AND id < ");
        append(select, number);
        append(select, " || 'g')");
    }
    append(select, ")");
}

static void add_conditions(struct select *select, const struct query *query) {
    where_object(select, STORE_MODEL, "model", query->model);
    where_object(select, STORE_CLUSTER, "cluster", query->cluster);
    where_object(select, STORE_STRATEGY, "strategy", query->strategy);
    where_text(select, " AND t.session = ", query->session);
    where_text(select, " AND t.runner = ", query->runner);
    where_text(select, " AND t.proposer = ", query->proposer);
    where_text(select, " AND t.state = ", query->state ? record_state_word(*query->state) : NULL);
    where_text(select, " AND t.queued >= ", query->since);
    where_text(select, " AND t.queued < ", query->until);
    where_bound(select, " AND t.predicted_us >= ", query->min_predicted_us);
    where_bound(select, " AND t.predicted_us <= ", query->max_predicted_us);
    where_bound(select, " AND t.median_us >= ", query->min_measured_us);
    where_bound(select, " AND t.median_us <= ", query->max_measured_us);
}

static void add_order(struct select *select, const struct query *query) {
    const char *way = query->descending ? " DESC" : "";
    append(select, " ORDER BY ");
    append(select, orders[query->order].column);
    append(select, way);
    if (query->order != QUERY_BY_recorded) {
        append(select, " NULLS LAST, t.id");
        append(select, way);
    }
    const size_t limit = query->limit ? query->limit : INT64_MAX;
    where(select, " LIMIT ", "", sql_integer((int64_t)limit));
    where(select, " OFFSET ", "", sql_integer((int64_t)query->offset));
}

static enum status prepare(struct store *store, const struct select *select, sqlite3_stmt **out, struct error *err) {
    sqlite3_stmt *stmt = NULL;
    enum status status = sql_prepare(store, select->sql, &stmt, err);
    if (status == ST_OK)
        status = sql_bind(store, stmt, select->n, select->values, err);
    if (status != ST_OK) {
        sqlite3_finalize(stmt);
        return status;
    }
    *out = stmt;
    return ST_OK;
}

enum { TEXTS = 16, FIRST_TEXT = 10 };

/* Where the texts of a record go, in the order of `columns`. */
static void text_places(struct record *r, const char **at[TEXTS]) {
    const char **const places[TEXTS] = {&r->uid,      &r->session,      &r->model,       &r->model_name,
                                        &r->cluster,  &r->cluster_name, &r->strategy,    &r->strategy_name,
                                        &r->proposer, &r->runner,       &r->reason,      &r->queued,
                                        &r->started,  &r->ended,        &r->environment, &r->environment_json};
    memcpy(at, places, sizeof places);
}

/* Borrowed from the statement; a text that is there and NULL means that memory is out. */
static enum status read_texts(sqlite3_stmt *stmt, struct record *r, struct error *err) {
    const char **at[TEXTS];
    text_places(r, at);
    for (int i = 0; i < TEXTS; i++) {
        *at[i] = (const char *)sqlite3_column_text(stmt, FIRST_TEXT + i);
        if (!*at[i] && sqlite3_column_type(stmt, FIRST_TEXT + i) != SQLITE_NULL)
            return error_no_memory(err);
    }
    return ST_OK;
}

static enum status read_record(sqlite3_stmt *stmt, struct record *out, struct error *err) {
    *out = (struct record){
        .trial = sqlite3_column_int64(stmt, 0),
        .number = (uint64_t)sqlite3_column_int64(stmt, 1),
        .round = (uint64_t)sqlite3_column_int64(stmt, 2),
        .seed = (uint64_t)sqlite3_column_int64(stmt, 3),
        .predicted_us = sql_column_real(stmt, 4),
        .mean_us = sql_column_real(stmt, 5),
        .median_us = sql_column_real(stmt, 6),
        .low_us = sql_column_real(stmt, 7),
        .high_us = sql_column_real(stmt, 8),
    };
    const char *state = (const char *)sqlite3_column_text(stmt, 9);
    if (!state)
        return error_no_memory(err);
    if (!record_state_parse(state, &out->state))
        return error_set(err, ST_INVALID, "trial %lld: no such state: %.40s", (long long)out->trial, state);
    return read_texts(stmt, out, err);
}

/* Times of one trial, in a buffer that grows with the longest. */
struct times {
    double *us;
    size_t n, room;
};

static enum status push_time(struct times *times, double us, struct error *err) {
    if (times->n == times->room) {
        const size_t room = times->room ? 2 * times->room : 64;
        double *grown = realloc(times->us, room * sizeof *grown);
        if (!grown)
            return error_no_memory(err);
        times->us = grown;
        times->room = room;
    }
    times->us[times->n++] = us;
    return ST_OK;
}

static enum status read_times(struct store *store, int64_t trial, struct times *times, struct error *err) {
    sqlite3_stmt *stmt;
    bool row = true;
    times->n = 0;
    enum status status = sql_start(store, SQL_ITERATION_LIST, SQL_VALUES(sql_integer(trial)), &stmt, err);
    while (status == ST_OK && row) {
        status = sql_next(store, stmt, &row, err);
        if (status == ST_OK && row)
            status = push_time(times, sqlite3_column_double(stmt, 0), err);
    }
    return status;
}

static enum status visit_rows(struct store *store, sqlite3_stmt *stmt, bool iterations, query_visit *visit,
                              void *context, struct error *err) {
    struct times times = {0};
    struct record record;
    bool row = true;
    enum status status = ST_OK;
    while (status == ST_OK) {
        status = sql_next(store, stmt, &row, err);
        if (status != ST_OK || !row)
            break;
        status = read_record(stmt, &record, err);
        if (status == ST_OK && iterations) {
            status = read_times(store, record.trial, &times, err);
            record.n_iterations = times.n;
            record.iterations_us = times.us;
        }
        if (status == ST_OK)
            status = visit(context, &record, err);
    }
    free(times.us);
    return status;
}

enum status query_run(struct store *store, const struct query *query, query_visit *visit, void *context,
                      struct error *err) {
    struct select select = {.n = 0};
    sqlite3_stmt *stmt = NULL;
    bool began;
    append(&select, columns);
    add_conditions(&select, query);
    add_order(&select, query);
    enum status status = sql_begin_read(store, &began, err);
    if (status == ST_OK)
        status = prepare(store, &select, &stmt, err);
    if (status == ST_OK)
        status = visit_rows(store, stmt, query->iterations, visit, context, err);
    sqlite3_finalize(stmt);
    sql_end_read(store, began);
    return status;
}

enum status query_count(struct store *store, const struct query *query, uint64_t *out, struct error *err) {
    struct select select = {.n = 0};
    sqlite3_stmt *stmt;
    bool row;
    append(&select, "SELECT count(*) FROM trials t WHERE true");
    add_conditions(&select, query);
    enum status status = prepare(store, &select, &stmt, err);
    if (status != ST_OK)
        return status;
    status = sql_next(store, stmt, &row, err);
    if (status == ST_OK)
        *out = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return status;
}

struct collection {
    struct arena *arena;
    struct record *records;
    size_t n, room;
};

static enum status copy_texts(struct record *r, struct arena *arena, struct error *err) {
    const char **at[TEXTS];
    text_places(r, at);
    for (int i = 0; i < TEXTS; i++)
        if (*at[i] && !(*at[i] = arena_strdup(arena, *at[i])))
            return error_no_memory(err);
    return ST_OK;
}

static enum status collect(void *context, const struct record *record, struct error *err) {
    struct collection *c = context;
    if (c->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 64;
        struct record *grown = realloc(c->records, room * sizeof *grown);
        if (!grown)
            return error_no_memory(err);
        c->records = grown;
        c->room = room;
    }
    struct record copy = *record;
    double *times = arena_alloc(c->arena, record->n_iterations, sizeof *times);
    if (!times)
        return error_no_memory(err);
    if (record->n_iterations)
        memcpy(times, record->iterations_us, record->n_iterations * sizeof *times);
    copy.iterations_us = times;
    enum status status = copy_texts(&copy, c->arena, err);
    if (status == ST_OK)
        c->records[c->n++] = copy;
    return status;
}

enum status query_collect(struct store *store, const struct query *query, struct arena *arena, size_t *n,
                          struct record **out, struct error *err) {
    struct collection c = {.arena = arena};
    enum status status = query_run(store, query, collect, &c, err);
    struct record *records = status == ST_OK ? arena_alloc(arena, c.n, sizeof *records) : NULL;
    if (status == ST_OK && !records)
        status = error_no_memory(err);
    if (status == ST_OK) {
        if (c.n)
            memcpy(records, c.records, c.n * sizeof *records);
        *n = c.n;
        *out = records;
    }
    free(c.records);
    return status;
}

enum status store_trials(struct store *store, const char *session, struct arena *arena, size_t *n, struct record **out,
                         struct error *err) {
    const struct query query = {.session = session, .order = QUERY_BY_number, .iterations = true};
    return query_collect(store, &query, arena, n, out, err);
}
