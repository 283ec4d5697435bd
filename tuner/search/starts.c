/* See starts.h. Only model and cluster decide the order, so a resumed session gets the same list. */
#include "tuner/search/starts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/tuned.h"

static bool is_default(const struct start *start) {
    return start->baseline->kind == BASELINE_DEFAULT;
}

/* Defaults first; then by prediction, then by the table. */
static int compare(const void *a, const void *b) {
    const struct start *x = a, *y = b;
    if (is_default(x) != is_default(y))
        return is_default(x) ? -1 : 1;
    if (x->predicted_us != y->predicted_us)
        return x->predicted_us < y->predicted_us ? -1 : 1;
    return (x->baseline > y->baseline) - (x->baseline < y->baseline);
}

/* *usable is false when this baseline cannot be built for the model and cluster, or not be predicted. */
static enum status make(struct predictor *predictor, const struct baseline *row, struct start *out, bool *usable,
                        struct error *err) {
    struct prediction prediction;
    *usable = false;
    enum status st = tuned_build(row, predictor->model, predictor->cluster, &out->strategy, err);
    if (st)
        return st == ST_INFEASIBLE ? ST_OK : st;
    st = predictor_run(predictor, &out->strategy, &prediction, err);
    *usable = !st;
    out->baseline = row;
    out->predicted_us = prediction.iteration_us;
    if (st)
        strategy_release(&out->strategy);
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

static bool is_known(const struct starts *starts, const struct id *id) {
    for (size_t i = 0; i < starts->n; i++)
        if (!memcmp(&starts->items[i].strategy.id, id, sizeof *id))
            return true;
    return false;
}

/* Keep items[0..n), sorted, without repetitions and hopeless ones. */
static void sift(struct starts *starts, size_t n, double least_us) {
    for (size_t i = 0; i < n; i++) {
        struct start *item = &starts->items[i];
        bool known = is_known(starts, &item->strategy.id);
        bool hopeless = !known && !is_default(item) && item->predicted_us > STARTS_HOPELESS * least_us;
        starts->hopeless += hopeless;
        if (known || hopeless)
            strategy_release(&item->strategy);
        else
            starts->items[starts->n++] = *item;
    }
}

enum status starts_list(struct predictor *predictor, struct starts *out, struct error *err) {
    size_t n_rows, n = 0;
    const struct baseline *rows = baselines_list(&n_rows);
    struct starts starts = {.items = calloc(n_rows, sizeof *starts.items)};
    double least_us = INFINITY;
    enum status st = starts.items ? ST_OK : error_no_memory(err);
    for (size_t i = 0; i < n_rows && !st; i++) {
        bool usable;
        st = make(predictor, &rows[i], &starts.items[n], &usable, err);
        if (usable)
            least_us = fmin(least_us, starts.items[n++].predicted_us);
    }
    if (st) {
        starts.n = n;
        starts_release(&starts);
        return st;
    }
    qsort(starts.items, n, sizeof *starts.items, compare);
    sift(&starts, n, least_us);
    *out = starts;
    return ST_OK;
}

void starts_release(struct starts *starts) {
    for (size_t i = 0; i < starts->n; i++)
        strategy_release(&starts->items[i].strategy);
    free(starts->items);
    *starts = (struct starts){0};
}
