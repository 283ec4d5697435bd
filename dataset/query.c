/* A query becomes SELECTs whose conditions are texts of this program and whose values are bound. An order by a column
 * that may be missing takes two, one for the trials that have it and one for those that do not, since an index gives
 * either in order and SQLite would sort for NULLS LAST. A cursor carries the last record's place in the order, so that
 * a page begins by a search in the index rather than by counting what is skipped. Iterations come by one more statement
 * a trial, O(log) each. */
#include "dataset/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/work.h"
#include "dataset/engine_internal.h"
#include "dataset/names_internal.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

/* The trials are the outermost loop, so that they come in the order of their index. */
static const char columns[] =
    "SELECT t.id, t.number, t.round, t.seed, t.predicted_us, t.mean_us, t.median_us, t.low_us, t.high_us, t.attempt,"
    "       t.state, t.uid, t.session, m.id, m.name, c.id, c.name, s.id, s.name, t.proposer, t.runner, t.reason,"
    "       t.queued, t.started, t.ended, e.id, e.content, t.team, t.shared, t.client, t.lease_until, t.strategy"
    " FROM trials t"
    " CROSS JOIN models m ON m.row = t.model"
    " CROSS JOIN clusters c ON c.row = t.cluster"
    " CROSS JOIN strategies s ON s.row = t.strategy"
    " LEFT JOIN environments e ON e.row = t.environment"
    " WHERE true";

static const struct {
    const char *name, *column;
    enum filter_column key; /* the column that trials may lack */
} orders[] = {{"recorded", "t.id", FILTER_COLUMN_COUNT},
              {"number", "t.number", FILTER_number},
              {"predicted", "t.predicted_us", FILTER_predicted_us},
              {"measured", "t.median_us", FILTER_measured_us}};

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

static void where(struct select *select, const char *before, struct sql_value value) {
    select_add(select, before);
    select_bind(select, value);
}

static void where_text(struct select *select, const char *before, const char *text) {
    if (text)
        where(select, before, sql_text(text));
}

static void where_bound(struct select *select, const char *before, double bound, enum filter_column column) {
    if (bound > 0) {
        where(select, before, sql_real(bound));
        select->required |= UINT32_C(1) << column;
    }
}

/* An object by name or by the beginning of its id. */
static enum status where_object(struct store *store, struct select *select, enum store_kind kind, const char *column,
                                const char *word, struct error *err) {
    if (!word)
        return ST_OK;
    select_add(select, " AND ");
    return select_object(store, select, kind, column, word, false, err);
}

/* Trials that are shared with all, the viewer's own trials, and those that are shared with it by name. */
void select_viewer(struct select *select, const char *alias, const char *viewer) {
    if (!viewer)
        return;
    const char *named = arena_printf(&select->texts, "|%s|", viewer);
    const char *begin = arena_printf(&select->texts, " AND (%s.shared = '*' OR %s.team = ", alias, alias);
    const char *middle = arena_printf(&select->texts, " OR instr(%s.shared, ", alias);
    if (!named || !begin || !middle) {
        select->no_memory = true;
        return;
    }
    where(select, begin, sql_text(viewer));
    where(select, middle, sql_text(named));
    select_add(select, ") > 0)");
}

enum status query_conditions(struct store *store, struct select *select, const struct query *query, struct error *err) {
    select->viewer = query->viewer;
    enum status status = where_object(store, select, STORE_MODEL, "model", query->model, err);
    if (!status)
        status = where_object(store, select, STORE_CLUSTER, "cluster", query->cluster, err);
    if (!status)
        status = where_object(store, select, STORE_STRATEGY, "strategy", query->strategy, err);
    where_text(select, " AND t.uid = ", query->uid);
    if (query->uid)
        select->pins.columns |= UINT32_C(1) << FILTER_uid;
    where_text(select, " AND t.session = ", query->session);
    if (query->session)
        select->pins.columns |= UINT32_C(1) << FILTER_session;
    if (query->number)
        where(select, " AND t.number = ", sql_integer((int64_t)query->number));
    where_text(select, " AND t.runner = ", query->runner);
    where_text(select, " AND t.proposer = ", query->proposer);
    where_text(select, " AND t.state = ", query->state ? record_state_word(*query->state) : NULL);
    if (query->state)
        select_require_state(select, record_state_word(*query->state));
    where_text(select, " AND t.queued >= ", query->since);
    where_text(select, " AND t.queued < ", query->until);
    where_bound(select, " AND t.predicted_us >= ", query->min_predicted_us, FILTER_predicted_us);
    where_bound(select, " AND t.predicted_us <= ", query->max_predicted_us, FILTER_predicted_us);
    where_bound(select, " AND t.median_us >= ", query->min_measured_us, FILTER_measured_us);
    where_bound(select, " AND t.median_us <= ", query->max_measured_us, FILTER_measured_us);
    select_pin_median(select, query->min_measured_us > 0 ? query->min_measured_us : 0,
                      query->max_measured_us > 0 ? query->max_measured_us : 0);
    select_viewer(select, "t", query->viewer);
    if (!status && query->filter && *query->filter) {
        select_add(select, " AND ");
        status = filter_compile(store, query->filter, select, err);
    }
    return status;
}

/* Where a page begins. */
struct cursor {
    bool missing; /* its record lacks the column of the order */
    double key;   /* the column, when it is there and the order has one */
    int64_t trial;
};

/* A hash of everything that decides which trials are in the list. */
static enum status fingerprint(const struct query *q, char out[17], struct error *err) {
    const char *const texts[] = {q->model,    q->cluster, q->strategy, q->session, q->runner,
                                 q->proposer, q->since,   q->until,    q->filter,  q->viewer};
    struct arena arena = {0};
    struct id id;
    char *all =
        arena_printf(&arena, "%d %d %d %a %a %a %a", (int)q->order, q->descending, q->state ? (int)*q->state : -1,
                     q->min_predicted_us, q->max_predicted_us, q->min_measured_us, q->max_measured_us);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && all; i++)
        all = arena_printf(&arena, "%s %zu:%s", all, texts[i] ? strlen(texts[i]) + 1 : 0, texts[i] ? texts[i] : "");
    if (all && q->uid)
        all = arena_printf(&arena, "%s uid %s", all, q->uid);
    if (all && q->number)
        all = arena_printf(&arena, "%s number %llu", all, (unsigned long long)q->number);
    enum status status = all ? id_of(all, strlen(all), &id, err) : error_no_memory(err);
    arena_release(&arena);
    if (!status)
        snprintf(out, 17, "%.16s", id.hex);
    return status;
}

/* "1" and the fingerprint, then m or k, the bits of the key and the trial, all in hex digits. */
enum status query_cursor(const struct query *query, const struct record *record, char out[QUERY_CURSOR_ROOM],
                         struct error *err) {
    const double keys[] = {[QUERY_BY_recorded] = 0,
                           [QUERY_BY_number] = record->number ? (double)record->number : (double)NAN,
                           [QUERY_BY_predicted] = record->predicted_us,
                           [QUERY_BY_measured] = record->median_us};
    const double key = keys[query->order];
    uint64_t bits = 0;
    char hash[17];
    enum status status = fingerprint(query, hash, err);
    if (status)
        return status;
    if (!isnan(key))
        memcpy(&bits, &key, sizeof bits);
    snprintf(out, QUERY_CURSOR_ROOM, "1%s%c%016llx%016llx", hash, isnan(key) ? 'm' : 'k', (unsigned long long)bits,
             (unsigned long long)record->trial);
    return ST_OK;
}

static bool read_hex(const char *text, uint64_t *out) {
    char digits[17] = "";
    memcpy(digits, text, 16);
    if (strspn(digits, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(digits, NULL, 16);
    return true;
}

static enum status read_cursor(const struct query *query, struct cursor *out, struct error *err) {
    const char *text = query->after;
    uint64_t bits, trial;
    char hash[17];
    enum status status = fingerprint(query, hash, err);
    if (status)
        return status;
    if (strlen(text) != 50 || text[0] != '1' || (text[17] != 'm' && text[17] != 'k') || !read_hex(text + 18, &bits) ||
        !read_hex(text + 34, &trial))
        return error_set(err, ST_INVALID, "page: this is no page token; take the one that the page before gave");
    if (strncmp(text + 1, hash, 16) != 0)
        return error_set(err, ST_INVALID,
                         "page: the token belongs to another filter or order; begin at the first page again");
    *out = (struct cursor){.missing = text[17] == 'm', .trial = (int64_t)trial};
    memcpy(&out->key, &bits, sizeof bits);
    return ST_OK;
}

/* Behind the cursor, in the order of trials that have the column, or of those that lack it. */
static void add_cursor(struct select *select, const struct query *query, const struct cursor *cursor, bool missing) {
    const char *sign = query->descending ? " < " : " > ";
    const bool by_trial = query->order == QUERY_BY_recorded || missing;
    if (by_trial) {
        select_add(select, " AND t.id");
        where(select, sign, sql_integer(cursor->trial));
        return;
    }
    /* The first term is what the index searches by; the second leaves out its ties up to the cursor. */
    select_add(select, " AND ");
    select_add(select, orders[query->order].column);
    where(select, query->descending ? " <= " : " >= ", sql_real(cursor->key));
    select_add(select, " AND (");
    select_add(select, orders[query->order].column);
    where(select, " <> ", sql_real(cursor->key));
    select_add(select, " OR t.id");
    where(select, sign, sql_integer(cursor->trial));
    select_add(select, ")");
}

static void add_order(struct select *select, const struct query *query, bool missing) {
    const char *way = query->descending ? " DESC" : "";
    select_add(select, " ORDER BY ");
    if (query->order != QUERY_BY_recorded && !missing) {
        select_add(select, orders[query->order].column);
        select_add(select, way);
        select_add(select, ", ");
    }
    select_add(select, "t.id");
    select_add(select, way);
}

/* The SELECT for the trials that have the column of the order, or for those that lack it. */
static enum status query_select(struct store *store, struct select *select, const struct query *query,
                                const struct cursor *cursor, bool missing, int64_t limit, struct error *err) {
    select_add(select, columns);
    enum status status = query_conditions(store, select, query, err);
    if (status)
        return status;
    if (query->order != QUERY_BY_recorded && (missing || !cursor)) {
        select_add(select, " AND ");
        select_add(select, orders[query->order].column);
        select_add(select, missing ? " IS NULL" : " IS NOT NULL");
    }
    if (cursor && cursor->missing == missing)
        add_cursor(select, query, cursor, missing);
    add_order(select, query, missing);
    where(select, " LIMIT ", sql_integer(limit));
    return ST_OK;
}

enum { TEXTS = 20, STATE = 10, FIRST_TEXT = 11, STRATEGY_ROW = FIRST_TEXT + TEXTS };

/* Where the texts of a record go, in the order of `columns`. */
static void text_places(struct record *r, const char **at[TEXTS]) {
    const char **const places[TEXTS] = {&r->uid,      &r->session,      &r->model,       &r->model_name,
                                        &r->cluster,  &r->cluster_name, &r->strategy,    &r->strategy_name,
                                        &r->proposer, &r->runner,       &r->reason,      &r->queued,
                                        &r->started,  &r->ended,        &r->environment, &r->environment_json,
                                        &r->team,     &r->shared,       &r->client,      &r->lease_until};
    memcpy(at, places, sizeof places);
}

/* Read the texts of a row, borrowed from the statement. NULL from a column that has a text means that memory is out. */
static enum status read_texts(struct sql_statement *stmt, struct record *r, struct error *err) {
    const char **at[TEXTS];
    text_places(r, at);
    for (int i = 0; i < TEXTS; i++) {
        *at[i] = sql_column_text(stmt, FIRST_TEXT + i);
        if (!*at[i] && !sql_column_is_null(stmt, FIRST_TEXT + i))
            return error_no_memory(err);
    }
    return ST_OK;
}

static enum status read_record(struct sql_statement *stmt, struct record *out, struct error *err) {
    *out = (struct record){
        .trial = sql_column_integer(stmt, 0),
        .number = (uint64_t)sql_column_integer(stmt, 1),
        .round = (uint64_t)sql_column_integer(stmt, 2),
        .seed = (uint64_t)sql_column_integer(stmt, 3),
        .predicted_us = sql_column_real(stmt, 4),
        .mean_us = sql_column_real(stmt, 5),
        .median_us = sql_column_real(stmt, 6),
        .low_us = sql_column_real(stmt, 7),
        .high_us = sql_column_real(stmt, 8),
        .attempt = (uint64_t)sql_column_integer(stmt, 9),
    };
    const enum status status = column_state(stmt, STATE, out->trial, &out->state, err);
    return !status ? read_texts(stmt, out, err) : status;
}

/* Times of one trial, in a buffer that grows with the longest. */
struct times {
    double *us;
    size_t n, room;
};

static enum status push_time(struct times *times, double us, struct error *err) {
    if (!GROW(&times->us, &times->room, times->n + 1))
        return error_no_memory(err);
    times->us[times->n++] = us;
    return ST_OK;
}

static const char list_iterations[] = "SELECT time_us, number"
                                      " FROM iterations"
                                      " WHERE trial = ?"
                                      " ORDER BY number";

static enum status read_times(struct store *store, int64_t trial, struct times *times, struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    times->n = 0;
    enum status status = sql_start(store, list_iterations, SQL_VALUES(sql_integer(trial)), &stmt, err);
    while (!status && row) {
        status = sql_next(store, stmt, &row, err);
        if (!status && row)
            status = push_time(times, sql_column_real(stmt, 0), err);
    }
    return status;
}

/* The name of a strategy, in a buffer that grows to the longest name. */
struct name {
    char *text;
    size_t room;
};

static enum status keep_name(struct name *name, const char *text, size_t n, struct error *err) {
    if (!GROW(&name->text, &name->room, n + 1))
        return error_no_memory(err);
    memcpy(name->text, text, n);
    name->text[n] = '\0';
    return ST_OK;
}

/* clang-format off */
/* The name of the strategy in row ?1 for team ?2, in a record of team ?3: no row by rule 5 of names_internal.h, NULL by
 * rule 6. Most records are the asker's own, so the first rule has a look-up of its own. */
static const char strategy_name[] =
    "SELECT coalesce((SELECT h.name " HOLDINGS_OF("'strategy'", "?1") " AND h.team = ?2),"
    "                (SELECT n.name"
    "                 FROM holdings n"
    "                 WHERE n.kind = 'strategy' AND n.object = ?1"
    "                   AND n.team = " NAMER("'strategy'", "?1", "?2", "false", "?3") "))"
    " WHERE " IS_HELD("'strategy'", "?1");
/* clang-format on */

/* The name of the strategy that the viewer sees, where a team holds it (names_internal.h). Without a viewer it is the
 * name that the record's own team sees. */
static enum status read_name(struct store *store, const char *viewer, int64_t strategy, struct record *r,
                             struct name *name, struct error *err) {
    struct sql_statement *stmt;
    bool held;
    if (!viewer && !r->team) /* no viewer and no team: the name that the strategy came with */
        return ST_OK;
    enum status status = sql_start(
        store, strategy_name, SQL_VALUES(sql_integer(strategy), sql_text(viewer ? viewer : r->team), sql_text(r->team)),
        &stmt, err);
    if (!status)
        status = sql_next(store, stmt, &held, err);
    if (status || !held)
        return status;
    const char *told = sql_column_text(stmt, 0);
    if (!told && !sql_column_is_null(stmt, 0))
        status = error_no_memory(err);
    else
        status = told ? keep_name(name, told, strlen(told), err) : keep_name(name, r->strategy, ID_SHORT, err);
    sql_reset(stmt);
    r->strategy_name = name->text;
    return status;
}

/* A query on its way. */
struct walk {
    struct store *store;
    const struct query *query;
    query_visit *visit;
    void *context;
    struct times times;
    struct name name;
    uint64_t skip;
    int64_t left; /* of the limit */
    bool all;     /* the trials that lack the column of the order have been visited too */
};

static enum status visit_rows(struct walk *walk, struct sql_statement *stmt, struct error *err) {
    struct record record;
    bool row = true;
    enum status status = ST_OK;
    while (!status) {
        status = sql_next(walk->store, stmt, &row, err);
        if (status || !row)
            break;
        if (walk->skip > 0) {
            walk->skip--;
            continue;
        }
        status = read_record(stmt, &record, err);
        if (!status)
            status = read_name(walk->store, walk->query->viewer, sql_column_integer(stmt, STRATEGY_ROW), &record,
                               &walk->name, err);
        if (!status && walk->query->iterations) {
            status = read_times(walk->store, record.trial, &walk->times, err);
            record.n_iterations = walk->times.n;
            record.iterations_us = walk->times.us;
        }
        if (!status)
            status = walk->visit(walk->context, &record, err);
        walk->left--;
    }
    return status;
}

/* Whether no trial can fit the conditions. */
static bool is_empty(const struct select *select, enum query_order order, bool missing) {
    return order != QUERY_BY_recorded && ((missing ? select->required : select->absent) >> orders[order].key & 1);
}

/* Whether few trials fit, or one index has those that fit in the order by median. */
static bool is_narrow(const struct pins *pins) {
    static const uint32_t narrow = UINT32_C(1) << FILTER_session | UINT32_C(1) << FILTER_strategy |
                                   UINT32_C(1) << FILTER_uid,
                          both = UINT32_C(1) << FILTER_model | UINT32_C(1) << FILTER_cluster;
    return (pins->columns & narrow) != 0 || (pins->columns & both) == both;
}

/* To look up one trial of the merge takes 4 us. To read the whole table takes 0.2 us a trial, and to sort the few that
 * fit takes little. So when, after TRIED_FIRST trials, fewer than one in FEW has fitted, the rest is sorted. */
enum { TRIED_FIRST = 4096, FEW = 64 };

/* Visit the trials of the merge that the statement finds to fit. *rest: hardly any fits, so the walk ended behind
 * *last, and the trials after it are to be found in another way. */
static enum status visit_merged(struct walk *walk, struct fastest *fastest, struct sql_statement *stmt, int parameter,
                                struct median_place *last, bool *rest, struct error *err) {
    const int64_t wanted = walk->left, skipped = (int64_t)walk->skip;
    struct median_place place;
    *rest = false;
    enum status status = fastest_next(fastest, &place, err);
    for (int64_t tried = 1; !status && place.trial && walk->left > 0 && !*rest; tried++) {
        status = sql_bind_again(walk->store, stmt, (size_t)parameter, sql_integer(place.trial), err);
        if (!status)
            status = visit_rows(walk, stmt, err);
        const int64_t fitted = wanted - walk->left + skipped - (int64_t)walk->skip;
        *last = place;
        *rest = tried >= TRIED_FIRST && tried > FEW * fitted && walk->left > 0;
        if (!status && !*rest)
            status = fastest_next(fastest, &place, err);
    }
    return status;
}

static int64_t limit_of(const struct walk *walk) {
    return walk->left < INT64_MAX - (int64_t)walk->skip ? walk->left + (int64_t)walk->skip : INT64_MAX;
}

/* Trials in the way that SQLite thinks best; it sorts them where no index has the order. */
static enum status walk_sorted(struct walk *walk, const struct cursor *cursor, bool missing, struct error *err) {
    struct select select = {0};
    struct sql_statement *stmt = NULL;
    enum status status = query_select(walk->store, &select, walk->query, cursor, missing, limit_of(walk), err);
    if (!status && !is_empty(&select, walk->query->order, missing))
        status = select_prepare(walk->store, &select, &stmt, err);
    if (!status && stmt)
        status = visit_rows(walk, stmt, err);
    sql_finalize(stmt);
    select_release(&select);
    return status;
}

/* Measured trials behind `last`, and those without a measurement, in one pass over the table. The + keeps SQLite from
 * using an index with the median: that would read the table's rows in a scattered order. */
static enum status walk_rest(struct walk *walk, const struct median_place *last, struct error *err) {
    struct select select = {0};
    struct sql_statement *stmt = NULL;
    const char *way = walk->query->descending ? " DESC" : "";
    select_add(&select, columns);
    enum status status = query_conditions(walk->store, &select, walk->query, err);
    where(&select, walk->query->descending ? " AND (+t.median_us < " : " AND (+t.median_us > ", sql_real(last->key));
    where(&select, " OR (+t.median_us = ", sql_real(last->key));
    where(&select, walk->query->descending ? " AND t.id < " : " AND t.id > ", sql_integer(last->trial));
    select_add(&select, ") OR +t.median_us IS NULL) ORDER BY t.median_us IS NULL, t.median_us");
    select_add(&select, way);
    select_add(&select, ", t.id");
    select_add(&select, way);
    where(&select, " LIMIT ", sql_integer(limit_of(walk)));
    if (!status)
        status = select_prepare(walk->store, &select, &stmt, err);
    if (!status)
        status = visit_rows(walk, stmt, err);
    walk->all = true;
    sql_finalize(stmt);
    select_release(&select);
    return status;
}

/* Measured trials by their median, where no index has this order. */
static enum status walk_merged(struct walk *walk, const struct cursor *cursor, struct error *err) {
    struct select select = {0};
    struct sql_statement *stmt = NULL;
    struct fastest *fastest = NULL;
    struct median_place last = cursor ? (struct median_place){cursor->key, cursor->trial} : (struct median_place){0};
    bool rest = false;
    select_add(&select, columns);
    enum status status = query_conditions(walk->store, &select, walk->query, err);
    where(&select, " AND t.id = ", sql_integer(0));
    if (!status)
        status = select_prepare(walk->store, &select, &stmt, err);
    if (!status)
        status = fastest_new(walk->store, walk->query->descending, cursor ? &last : NULL, &select.pins, &fastest, err);
    if (!status)
        status = visit_merged(walk, fastest, stmt, (int)select.n, &last, &rest, err);
    fastest_free(fastest);
    sql_finalize(stmt);
    select_release(&select);
    return !status && rest ? walk_rest(walk, &last, err) : status;
}

/* The trials that have the column of the order, or those that lack it. */
static enum status walk_part(struct walk *walk, const struct cursor *cursor, bool missing, struct error *err) {
    struct select select = {0};
    const bool by_median = walk->query->order == QUERY_BY_measured && !missing;
    enum status status = by_median ? query_conditions(walk->store, &select, walk->query, err) : ST_OK;
    if (!status && select.no_memory)
        status = error_no_memory(err);
    const bool merged = by_median && walk->store->engine->merges_medians && !is_narrow(&select.pins),
               none = by_median && is_empty(&select, QUERY_BY_measured, false);
    select_release(&select);
    if (status || none)
        return status;
    return merged ? walk_merged(walk, cursor, err) : walk_sorted(walk, cursor, missing, err);
}

static enum status walk_all(struct walk *walk, const struct cursor *cursor, struct error *err) {
    enum status status = ST_OK;
    if (!cursor || !cursor->missing)
        status = walk_part(walk, cursor, false, err);
    if (!status && walk->left > 0 && !walk->all && walk->query->order != QUERY_BY_recorded)
        status = walk_part(walk, cursor, true, err);
    return status;
}

static enum status walk_in_time(struct walk *walk, const struct cursor *cursor, struct error *err) {
    const double patience_us = walk->query->patience_us;
    const double deadline_us = clock_now_us() + patience_us;
    if (!(patience_us > 0))
        return walk_all(walk, cursor, err);
    sql_hurry(walk->store, &deadline_us);
    enum status status = walk_all(walk, cursor, err);
    sql_hurry(walk->store, NULL);
    return status == ST_TIMEOUT && work_check(NULL) ? work_check(err) : status;
}

enum status query_run(struct store *store, const struct query *query, query_visit *visit, void *context,
                      struct error *err) {
    struct walk walk = {.store = store,
                        .query = query,
                        .visit = visit,
                        .context = context,
                        .skip = query->offset,
                        .left = sql_limit(query->limit)};
    struct cursor cursor;
    bool began;
    enum status status = query->after ? read_cursor(query, &cursor, err) : ST_OK;
    if (!status)
        status = store_begin_read(store, &began, err);
    if (status)
        return status;
    status = walk_in_time(&walk, query->after ? &cursor : NULL, err);
    free(walk.times.us);
    free(walk.name.text);
    store_end_read(store, began);
    return status;
}

enum status query_count(struct store *store, const struct query *query, uint64_t *out, struct error *err) {
    struct select select = {0};
    struct sql_statement *stmt = NULL;
    bool row, began;
    enum status status = store_begin_read(store, &began, err);
    if (status)
        return status;
    select_add(&select, "SELECT count(*) FROM trials t WHERE true");
    status = query_conditions(store, &select, query, err);
    if (!status)
        status = select_prepare(store, &select, &stmt, err);
    if (!status)
        status = sql_next(store, stmt, &row, err);
    if (!status)
        *out = (uint64_t)sql_column_integer(stmt, 0);
    sql_finalize(stmt);
    select_release(&select);
    store_end_read(store, began);
    return status;
}

struct collection {
    struct arena *arena;
    struct record *records;
    size_t n, room;
    size_t bytes, most_bytes; /* of JSON, roughly; the bound (0: none), for two records or more */
    bool full;                /* one more would be too many */
};

static size_t bytes_of(const struct record *r) {
    enum { A_RECORD = 1024, A_TIME = 20 };
    return A_RECORD + A_TIME * r->n_iterations + (r->environment_json ? strlen(r->environment_json) : 0) +
           (r->reason ? strlen(r->reason) : 0);
}

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
    c->bytes += bytes_of(record);
    c->full = c->most_bytes && c->n && c->bytes > c->most_bytes;
    if (c->full)
        return error_set(err, ST_CANCELLED, "the page is full");
    if (!GROW(&c->records, &c->room, c->n + 1))
        return error_no_memory(err);
    struct record copy = *record;
    double *times = arena_alloc(c->arena, record->n_iterations, sizeof *times);
    if (!times)
        return error_no_memory(err);
    if (record->n_iterations)
        memcpy(times, record->iterations_us, record->n_iterations * sizeof *times);
    copy.iterations_us = times;
    enum status status = copy_texts(&copy, c->arena, err);
    if (!status)
        c->records[c->n++] = copy;
    return status;
}

/* The records that were collected, as an array in its arena. The collection is empty afterwards. */
static enum status hand_over(struct collection *c, enum status status, size_t *n, struct record **out,
                             struct error *err) {
    struct record *records = !status ? arena_alloc(c->arena, c->n, sizeof *records) : NULL;
    if (!status && !records)
        status = error_no_memory(err);
    if (!status) {
        if (c->n)
            memcpy(records, c->records, c->n * sizeof *records);
        *n = c->n;
        *out = records;
    }
    free(c->records);
    return status;
}

enum status query_collect(struct store *store, const struct query *query, struct arena *arena, size_t *n,
                          struct record **out, struct error *err) {
    struct collection c = {.arena = arena};
    return hand_over(&c, query_run(store, query, collect, &c, err), n, out, err);
}

enum status query_page(struct store *store, const struct query *query, struct arena *arena, size_t *n,
                       struct record **out, char next[QUERY_CURSOR_ROOM], struct error *err) {
    struct query longer = *query;
    struct collection c = {.arena = arena, .most_bytes = QUERY_PAGE_BYTES};
    struct record *records;
    size_t found;
    char cursor[QUERY_CURSOR_ROOM] = "";
    if (query->limit < 1 || query->limit > QUERY_PAGE_MAX)
        return error_set(err, ST_USAGE, "page: 1 to %d records, not %zu", QUERY_PAGE_MAX, query->limit);
    longer.limit++;
    enum status status = query_run(store, &longer, collect, &c, err);
    status = hand_over(&c, c.full ? ST_OK : status, &found, &records, err);
    if (!status && (c.full || found > query->limit)) {
        found = found > query->limit ? query->limit : found;
        status = query_cursor(query, &records[found - 1], cursor, err);
    }
    if (status)
        return status;
    memcpy(next, cursor, sizeof cursor);
    *n = found;
    *out = records;
    return ST_OK;
}

enum status store_trials(struct store *store, const char *session, struct arena *arena, size_t *n, struct record **out,
                         struct error *err) {
    const struct query query = {.session = session, .order = QUERY_BY_number, .iterations = true};
    return query_collect(store, &query, arena, n, out, err);
}
