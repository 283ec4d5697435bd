/* The order by median across models and clusters. An index of all medians would cost one more changed page of the file
 * for every trial that comes in, so there is none. Instead the trials of each pair of a model and a cluster, which an
 * index has in order, are merged by a heap (Knuth, The Art of Computer Programming 3, 5.4.1). A pair's trials are read
 * a few at a time, more each time, from the index alone. Cost: a search a pair, and O(log pairs) a trial. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

enum { FIRST = 1, MOST = 128 };

/* One pair's trials from where it was last read; `at` is the next of n. */
struct run {
    int64_t model, cluster;
    struct median_place *places;
    size_t at, n, room; /* `room` is also how many were asked for */
};

struct fastest {
    struct store *store;
    bool descending;
    double last_us;   /* medians beyond this one are left out */
    struct run *heap; /* the run whose next place is the first is heap[0] */
    size_t n, room;
};

static bool precedes(const struct fastest *f, const struct median_place *a, const struct median_place *b) {
    const bool before = a->key != b->key ? a->key < b->key : a->trial < b->trial;
    return before != f->descending;
}

static bool run_precedes(const struct fastest *f, size_t i, size_t k) {
    const struct run *a = &f->heap[i], *b = &f->heap[k];
    return precedes(f, &a->places[a->at], &b->places[b->at]);
}

static void swap(struct fastest *f, size_t i, size_t k) {
    const struct run run = f->heap[i];
    f->heap[i] = f->heap[k];
    f->heap[k] = run;
}

static void sift_down(struct fastest *f, size_t i) {
    for (;;) {
        const size_t left = 2 * i + 1, right = left + 1;
        size_t first = i;
        if (left < f->n && run_precedes(f, left, first))
            first = left;
        if (right < f->n && run_precedes(f, right, first))
            first = right;
        if (first == i)
            return;
        swap(f, i, first);
        i = first;
    }
}

static const char fastest_trials[] =
    "SELECT id, median_us"
    " FROM trials"
    " WHERE model = ?1 AND cluster = ?2 AND median_us BETWEEN ?3 AND ?6 AND (median_us > ?3 OR id > ?4)"
    " ORDER BY median_us, id"
    " LIMIT ?5";

static const char slowest_trials[] =
    "SELECT id, median_us"
    " FROM trials"
    " WHERE model = ?1 AND cluster = ?2 AND median_us BETWEEN ?6 AND ?3 AND (median_us < ?3 OR id < ?4)"
    " ORDER BY median_us DESC, id DESC"
    " LIMIT ?5";

/* The pair's next places, behind `from`. */
static enum status fill(struct fastest *f, struct run *run, const struct median_place *from, struct error *err) {
    const struct median_place behind = *from; /* a copy: *from may lie in the array that realloc moves */
    const size_t room = run->room == 0 ? FIRST : run->room < MOST ? 8 * run->room : run->room;
    struct median_place *places = realloc(run->places, room * sizeof *places);
    struct sql_statement *stmt;
    bool row = true;
    if (!places)
        return error_no_memory(err);
    run->places = places;
    run->room = room;
    run->at = run->n = 0;
    enum status status =
        sql_start(f->store, f->descending ? slowest_trials : fastest_trials,
                  SQL_VALUES(sql_integer(run->model), sql_integer(run->cluster), sql_real(behind.key),
                             sql_integer(behind.trial), sql_integer((int64_t)room), sql_real(f->last_us)),
                  &stmt, err);
    while (!status) {
        status = sql_next(f->store, stmt, &row, err);
        if (status || !row)
            break;
        run->places[run->n++] =
            (struct median_place){.key = sql_column_real(stmt, 1), .trial = sql_column_integer(stmt, 0)};
        if (run->n == room) {
            sql_reset(stmt);
            break;
        }
    }
    return status;
}

/* Take up a pair, unless it has no trial behind `from`. */
static enum status add_pair(struct fastest *f, int64_t model, int64_t cluster, const struct median_place *from,
                            struct error *err) {
    if (!GROW(&f->heap, &f->room, f->n + 1))
        return error_no_memory(err);
    struct run run = {.model = model, .cluster = cluster};
    enum status status = fill(f, &run, from, err);
    if (status || run.n == 0)
        free(run.places);
    else
        f->heap[f->n++] = run;
    return status;
}

/* The next pair is looked for in two parts, because (model, cluster) > (?1, ?2) would walk over all trials of this
 * pair. */
static const char next_of_pairs[] =
    "SELECT *"
    " FROM (SELECT model, cluster FROM trials WHERE model = ?1 AND cluster > ?2 ORDER BY cluster LIMIT 1)"
    " UNION ALL"
    " SELECT *"
    " FROM (SELECT model, cluster FROM trials WHERE model > ?1 ORDER BY model, cluster LIMIT 1)"
    " LIMIT 1";

/* The pair behind (*model, *cluster) becomes these; *found says whether there was one. */
static enum status next_pair(struct store *store, int64_t *model, int64_t *cluster, bool *found, struct error *err) {
    struct sql_statement *stmt;
    enum status status =
        sql_first(store, next_of_pairs, SQL_VALUES(sql_integer(*model), sql_integer(*cluster)), &stmt, found, err);
    if (status || !*found)
        return status;
    *model = sql_column_integer(stmt, 0);
    *cluster = sql_column_integer(stmt, 1);
    sql_reset(stmt);
    return ST_OK;
}

void fastest_free(struct fastest *f) {
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        free(f->heap[i].places);
    free(f->heap);
    free(f);
}

/* The place just before the first median within the bounds. */
static struct median_place first_place(const struct fastest *f, double least_us, double most_us) {
    return f->descending ? (struct median_place){most_us, INT64_MAX} : (struct median_place){least_us, INT64_MIN};
}

static enum status add_pairs(struct fastest *f, const struct pins *within, const struct median_place *from,
                             struct error *err) {
    const int64_t model = within->model, cluster = within->cluster;
    int64_t m = model ? model - 1 : INT64_MIN, c = model ? INT64_MAX : INT64_MIN;
    bool found;
    enum status status = next_pair(f->store, &m, &c, &found, err);
    while (!status && found && (!model || m == model)) {
        if (!cluster || c == cluster)
            status = add_pair(f, m, c, from, err);
        if (!status)
            status = next_pair(f->store, &m, &c, &found, err);
    }
    return status;
}

enum status fastest_new(struct store *store, bool descending, const struct median_place *after,
                        const struct pins *within, struct fastest **out, struct error *err) {
    const double most_us = within->most_us != 0 ? within->most_us : DBL_MAX;
    struct fastest *f = calloc(1, sizeof *f);
    if (!f)
        return error_no_memory(err);
    f->store = store;
    f->descending = descending;
    f->last_us = descending ? within->least_us : most_us;
    const struct median_place start = first_place(f, within->least_us, most_us);
    enum status status = add_pairs(f, within, after ? after : &start, err);
    if (status) {
        fastest_free(f);
        return status;
    }
    for (size_t i = f->n / 2; i-- > 0;)
        sift_down(f, i);
    *out = f;
    return ST_OK;
}

enum status fastest_next(struct fastest *f, struct median_place *out, struct error *err) {
    *out = (struct median_place){0};
    if (f->n == 0)
        return ST_OK;
    struct run *run = &f->heap[0];
    const struct median_place place = run->places[run->at++];
    enum status status = ST_OK;
    if (run->at == run->n && run->n == run->room)
        status = fill(f, run, &place, err);
    else if (run->at == run->n)
        run->n = run->at = 0;
    if (status)
        return status;
    if (run->n == 0) {
        free(run->places);
        f->heap[0] = f->heap[--f->n];
    }
    sift_down(f, 0);
    *out = place;
    return ST_OK;
}
