/* See starts.h. Only model and cluster decide the order, so a resumed session gets the same list. */
#include "tuner/search/starts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
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

/* *fits: whether this baseline, which no session tries by itself, would be possible. One that is over the memory counts
 * for the predictor's least_bytes. */
static enum status look(struct predictor *predictor, const struct baseline *row, bool *fits, struct error *err) {
    struct strategy strategy;
    struct prediction ignored;
    *fits = false;
    enum status st = tuned_build(row, predictor->model, predictor->cluster, &strategy, err);
    if (st)
        return st == ST_INFEASIBLE ? ST_OK : st;
    if (consistency_is_plain(&strategy.consistency)) {
        st = predictor_run(predictor, &strategy, &ignored, err);
        *fits = !st;
    }
    strategy_release(&strategy);
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

/* Baselines that are built only by name are looked at too, since halves share the optimizer's states out. */
enum status starts_check_memory(const struct starts *starts, struct predictor *predictor, struct error *err) {
    size_t n;
    const struct baseline *rows = baselines_by_name(&n);
    char have[32], least[32];
    units_format_bytes(predictor->memory_bytes, have, sizeof have);
    if (starts->n > 0 || predictor->least_bytes == 0)
        return ST_OK;
    for (size_t i = 0; i < n; i++) {
        bool fits;
        enum status st = look(predictor, &rows[i], &fits, err);
        if (st)
            return st;
        if (fits)
            return error_set(err, ST_INFEASIBLE,
                             "nothing that is tried fits into %s on a device; %s does, with %s, but is not searched",
                             have, rows[i].name, units_format_bytes(predictor->peak_bytes, least, sizeof least));
    }
    return error_set(err, ST_INFEASIBLE, "nothing fits into %s on a device: the least that any needs is %s", have,
                     units_format_bytes(predictor->least_bytes, least, sizeof least));
}

void starts_release(struct starts *starts) {
    for (size_t i = 0; i < starts->n; i++)
        strategy_release(&starts->items[i].strategy);
    free(starts->items);
    *starts = (struct starts){0};
}
