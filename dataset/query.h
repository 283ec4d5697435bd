/* Reading trials: a filter, an order, and a record for each trial that fits.
 *
 * Pages: give a limit and, from the second page on, the cursor of the last record of the page before; each page then
 * costs the same, and trials recorded meanwhile neither shift nor repeat any. Where an index gives the order, a page
 * costs O(log n + page), the last as the first:
 *
 * | narrowed by (besides anything else) | orders that an index gives |
 * |-------------------------------------|----------------------------|
 * | nothing                             | recorded                   |
 * | session                             | number                     |
 * | session and state                   | measured                   |
 * | model, cluster, team or state       | recorded                   |
 * | model and cluster                   | recorded, measured         |
 * | strategy                            | measured                   |
 *
 * In the order `measured`, a list over several models or clusters is merged from the lists of each pair (model,
 * cluster) (fastest.c): O(pairs log n) more a page, 3 ms for 600 pairs.
 *
 * Any other order first sorts what fits: cheap for a session or a strategy, seconds for a million trials.
 *
 * A condition that no index serves is tried on each trial in the order. That is cheap, unless hardly any trial fits. In
 * the order by measured time this is noticed after some thousands of trials: the rest is then read once and sorted,
 * which takes 0.1 s of processor for a million trials, where looking up each took 4 s. To be faster, every column that
 * one may ask for would need an index. */
#ifndef DATASET_QUERY_H
#define DATASET_QUERY_H

#include "dataset/store.h"

#define QUERY_ORDER_TABLE(X) X(recorded) X(number) X(predicted) X(measured)
enum query_order {
#define X(name) QUERY_BY_##name,
    QUERY_ORDER_TABLE(X)
#undef X
        QUERY_ORDER_COUNT
};

/* Every member narrows; {0} is every trial in the order they were recorded. */
struct query {
    const char *model, *cluster, *strategy; /* a name, or the first hex digits of an id */
    const char *uid, *session, *runner, *proposer;
    uint64_t number; /* of the trial within its session; 0: any */
    const enum record_state *state;
    /* UTC stamps or their beginnings ("2026-11-21"), of when the trial was queued: since <= queued < until. */
    const char *since, *until;
    /* 0 is no bound; a bound leaves out trials that have no such value. */
    double min_predicted_us, max_predicted_us, min_measured_us, max_measured_us;
    enum query_order order; /* measured: by median; trials without a value come last */
    bool descending;
    size_t limit, offset; /* limit 0 is all */
    bool iterations;      /* fill in record.iterations_us */
    const char *filter;   /* in the language of filter.h */
    const char *viewer;   /* a team: only what it may see, under the names that it sees; NULL sees all */
    const char *after;    /* a cursor: begin behind its record; `offset` counts from there */
    double patience_us;   /* give up after this long; 0: never */
};

/* A trial. Texts may be NULL where a trial has none, numbers NaN. */
struct record {
    int64_t trial;
    const char *uid;
    const char *session;
    uint64_t number, round, seed; /* number is 0 without a session */
    const char *model, *model_name, *cluster, *cluster_name, *strategy, *strategy_name;
    enum record_state state;
    const char *proposer, *runner, *reason;
    const char *queued, *started, *ended;
    double predicted_us, mean_us, median_us, low_us, high_us;
    const char *environment, *environment_json;
    size_t n_iterations;
    const double *iterations_us;
    const char *team, *shared;
    uint64_t attempt;                 /* from 1 */
    const char *client, *lease_until; /* of a trial that is leased; the client stays when it has ended */
};

/* `record` and all in it live until the function returns. It must not write to the store. Any status but ST_OK ends
 * the query and is what it returns. */
typedef enum status query_visit(void *context, const struct record *record, struct error *err);

/* All of one query sees one state of the file. Fails: what `visit` fails with, ST_USAGE (the filter, with the place),
 * ST_INVALID (`after` is a cursor of another order or other conditions), ST_TIMEOUT (patience_us), and with
 * a patience as work_check. */
enum status query_run(struct store *store, const struct query *query, query_visit *visit, void *context,
                      struct error *err);

/* How many trials fit, whatever limit and offset. */
enum status query_count(struct store *store, const struct query *query, uint64_t *out, struct error *err);

/* The records as an array in `arena`. */
enum status query_collect(struct store *store, const struct query *query, struct arena *arena, size_t *n,
                          struct record **out, struct error *err);

/* A page: as query_collect, and `next` is the cursor for the following page, empty after the last. query->limit is 1 to
 * 10,000; a page of large records ends before it has that many, with one at least. */
enum { QUERY_CURSOR_ROOM = 64, QUERY_PAGE_MAX = 10000, QUERY_PAGE_BYTES = 16 << 20 };
enum status query_page(struct store *store, const struct query *query, struct arena *arena, size_t *n,
                       struct record **out, char next[QUERY_CURSOR_ROOM], struct error *err);

/* The cursor behind `record`, which `query` gave. Fails: ST_NO_MEMORY. */
enum status query_cursor(const struct query *query, const struct record *record, char out[QUERY_CURSOR_ROOM],
                         struct error *err);

/* A session's trials by number, with their iterations: what a resumed session replays. */
enum status store_trials(struct store *store, const char *session, struct arena *arena, size_t *n, struct record **out,
                         struct error *err);

const char *query_order_name(enum query_order order);
bool query_order_parse(const char *word, enum query_order *out);

#endif
