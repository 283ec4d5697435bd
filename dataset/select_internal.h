/* SQL that is put together from texts of this program, with the values beside it, to be bound. Appending returns no
 * error: a lack of memory is remembered, and select_prepare returns it. */
#ifndef DATASET_SELECT_INTERNAL_H
#define DATASET_SELECT_INTERNAL_H

#include "dataset/sql_internal.h"
#include "dataset/store.h"

struct query;

/* Columns that have the same value in every trial that fits (bits 1 << enum filter_column), and the rows of that model
 * and cluster (0: any; -1: one that is not here). */
struct pins {
    uint32_t columns;
    int64_t model, cluster;
    double least_us, most_us; /* medians are from the one to the other; 0: no such bound */
};

struct select {
    char *sql;
    size_t length, room;
    struct sql_value *values;
    size_t n, values_room;
    struct arena texts; /* of values */
    const char *viewer; /* whose names of strategies count; NULL: anybody's */
    /* Columns (bits 1 << enum filter_column) that every trial that fits has, and those that no trial that fits has. */
    uint32_t required, absent;
    struct pins pins;
    bool no_memory;
};

void select_add(struct select *select, const char *text);
void select_bind(struct select *select, struct sql_value value);  /* appends ?N */
bool select_value(struct select *select, struct sql_value value); /* appends nothing: the text has the ?N */
void select_add_with(struct select *select, const char *text, struct sql_value value); /* ?N wherever it has an @ */
void select_release(struct select *select);

enum status select_prepare(struct store *store, const struct select *select, struct sql_statement **out,
                           struct error *err);

/* A condition on `t.column`: it is an object by that name, or by the first digits of its id (PREFIX_MIN at least).
 * `negated`: it is not. One object becomes an equality, which an index can serve together with an order; with `store`
 * NULL nothing is looked up. */
enum status select_object(struct store *store, struct select *select, enum store_kind kind, const char *column,
                          const char *word, bool negated, struct error *err);

/* The same for every object whose name or id begins with `word`. */
void select_objects_like(struct select *select, enum store_kind kind, const char *column, const char *word,
                         bool negated);

/* The end of the strings that begin with `text`: they are >= text and < this. In the select's arena; NULL when memory
 * is out or `text` is empty. */
const char *select_prefix_end(struct select *select, const char *text);

enum { OBJECT_PREFIX_MIN = 4 };
bool object_is_prefix(const char *word); /* that many hex digits or more */

/* X(column of the language, what it holds, SQL) */
#define FILTER_COLUMN_TABLE(X)                                                                                         \
    X(model, OBJECT, "model")                                                                                          \
    X(cluster, OBJECT, "cluster")                                                                                      \
    X(strategy, OBJECT, "strategy")                                                                                    \
    X(session, TEXT, "t.session")                                                                                      \
    X(runner, TEXT, "t.runner")                                                                                        \
    X(proposer, TEXT, "t.proposer")                                                                                    \
    X(team, TEXT, "t.team")                                                                                            \
    X(client, TEXT, "t.client")                                                                                        \
    X(uid, TEXT, "t.uid")                                                                                              \
    X(shared, SHARED, "t.shared")                                                                                      \
    X(state, STATE, "t.state")                                                                                         \
    X(queued, STAMP, "t.queued")                                                                                       \
    X(started, STAMP, "t.started")                                                                                     \
    X(ended, STAMP, "t.ended")                                                                                         \
    X(predicted_us, NUMBER, "t.predicted_us")                                                                          \
    X(measured_us, NUMBER, "t.median_us")                                                                              \
    X(median_us, NUMBER, "t.median_us")                                                                                \
    X(mean_us, NUMBER, "t.mean_us")                                                                                    \
    X(low_us, NUMBER, "t.low_us")                                                                                      \
    X(high_us, NUMBER, "t.high_us")                                                                                    \
    X(number, NUMBER, "t.number")                                                                                      \
    X(round, NUMBER, "t.round")                                                                                        \
    X(attempt, NUMBER, "t.attempt")                                                                                    \
    X(seed, SEED, "t.seed")

enum filter_column {
#define X(name, type, sql) FILTER_##name,
    FILTER_COLUMN_TABLE(X)
#undef X
        FILTER_COLUMN_COUNT
};

/* Only trials in this state fit. Complete trials have measurements, others have none. */
void select_require_state(struct select *select, const char *state);

/* Only medians from least_us to most_us fit; 0 is no bound. */
void select_pin_median(struct select *select, double least_us, double most_us);

/* Append `text` as one condition in brackets. Fails: ST_USAGE with the place. */
enum status filter_compile(struct store *store, const char *text, struct select *select, struct error *err);

/* A place in the order by median. */
struct median_place {
    double key;
    int64_t trial;
};

/* Trials with a median in the order of their medians, over all models and clusters that the pins allow, from after
 * `after` on (NULL: from the first). All calls in one store_begin_read. fastest_next gives their places, and trial 0
 * behind the last. */
struct fastest;
enum status fastest_new(struct store *store, bool descending, const struct median_place *after,
                        const struct pins *within, struct fastest **out, struct error *err);
enum status fastest_next(struct fastest *fastest, struct median_place *out, struct error *err);
void fastest_free(struct fastest *fastest);

/* Conditions of a query on `trials t`, each beginning with " AND ". */
enum status query_conditions(struct store *store, struct select *select, const struct query *query, struct error *err);

/* What `viewer` may see of the table of trials or sessions that the SELECT calls `alias`; NULL sees all. */
void select_viewer(struct select *select, const char *alias, const char *viewer);

#endif
