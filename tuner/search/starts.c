/* See starts.h. Only model and cluster decide the order, so a resumed session gets the same list. */
#include "tuner/search/starts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "interop/export/limits.h"
#include "simulator/tuned.h"

static enum sharded most_sharded(const struct strategy *s) {
    enum sharded most = SHARDED_none;
    for (uint32_t g = 0; g < s->n_groups; g++)
        most = s->groups[g].sharded > most ? s->groups[g].sharded : most;
    return most;
}

bool start_is_default(const struct start *start) {
    return start->baseline->kind == BASELINE_DEFAULT && !most_sharded(&start->strategy);
}

/* Defaults first; then by prediction, then by the table. */
static int compare(const void *a, const void *b) {
    const struct start *x = a, *y = b;
    if (start_is_default(x) != start_is_default(y))
        return start_is_default(x) ? -1 : 1;
    if (x->predicted_us != y->predicted_us)
        return x->predicted_us < y->predicted_us ? -1 : 1;
    return (x->baseline > y->baseline) - (x->baseline < y->baseline);
}

static enum status build(const struct predictor *predictor, const struct baseline *row, struct strategy *out,
                         struct error *err) {
    return tuned_build_for(row, predictor->model, predictor->cluster, predictor->memory_bytes, out, err);
}

/* Whether who runs the trials has its algorithms, as far as that is known. */
static bool can_run(const struct space *space, const struct strategy *strategy) {
    return !(strategy_algorithms(strategy) & ~space->options.algorithms);
}

static bool shards_as_permitted(const struct space *space, const struct strategy *strategy) {
    return most_sharded(strategy) > SHARDED_none && space_permits(space, strategy);
}

/* *usable is false when this baseline cannot be built for the model and cluster, or not be predicted; and of one that
 * is built only by name, when it does not shard, or more than the space permits; or when nobody could run it. */
static enum status make(struct predictor *predictor, const struct space *space, const struct baseline *row,
                        bool by_name, struct start *out, bool *usable, struct error *err) {
    struct prediction prediction;
    *usable = false;
    enum status st = build(predictor, row, &out->strategy, err);
    if (st)
        return st == ST_INFEASIBLE ? ST_OK : st;
    if (can_run(space, &out->strategy) && (!by_name || shards_as_permitted(space, &out->strategy))) {
        st = predictor_run(predictor, &out->strategy, &prediction, err);
        *usable = !st;
        out->baseline = row;
        out->predicted_us = prediction.iteration_us;
    }
    if (!*usable)
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
        bool hopeless = !known && !start_is_default(item) && item->predicted_us > STARTS_HOPELESS * least_us;
        starts->hopeless += hopeless;
        if (known || hopeless)
            strategy_release(&item->strategy);
        else
            starts->items[starts->n++] = *item;
    }
}

static bool may_shard(const struct space *space) {
    return space->options.sharded != 1u << SHARDED_none;
}

/* The usable baselines; `out` has room for all. */
static enum status make_all(struct predictor *predictor, const struct space *space, struct start *out, size_t *n,
                            struct error *err) {
    size_t n_listed, n_named;
    const struct baseline *listed = baselines_list(&n_listed), *named = baselines_by_name(&n_named);
    const size_t n_rows = n_listed + (may_shard(space) ? n_named : 0);
    enum status st = ST_OK;
    *n = 0;
    for (size_t i = 0; i < n_rows && !st; i++) {
        const bool by_name = i >= n_listed;
        bool usable;
        st = make(predictor, space, by_name ? &named[i - n_listed] : &listed[i], by_name, &out[*n], &usable, err);
        *n += usable;
    }
    return st;
}

enum status starts_list(struct predictor *predictor, const struct space *space, struct starts *out, struct error *err) {
    size_t n_listed, n_named, n = 0;
    baselines_list(&n_listed);
    baselines_by_name(&n_named);
    struct starts starts = {.items = calloc(n_listed + n_named, sizeof *starts.items)};
    double least_us = INFINITY;
    enum status st = starts.items ? make_all(predictor, space, starts.items, &n, err) : error_no_memory(err);
    if (st) {
        starts.n = n;
        starts_release(&starts);
        return st;
    }
    for (size_t i = 0; i < n; i++)
        least_us = fmin(least_us, starts.items[i].predicted_us);
    qsort(starts.items, n, sizeof *starts.items, compare);
    sift(&starts, n, least_us);
    *out = starts;
    return ST_OK;
}

/* Which of those that fit needs to shard least: what this session would have to allow. */
struct fitting {
    const char *name;
    enum sharded sharded;
    uint64_t peak_bytes;
};

/* Look at this baseline, which the session does not try. One that is over the memory counts for the predictor's
 * least_bytes. */
static enum status look(struct predictor *predictor, const struct baseline *row, struct fitting *best,
                        struct error *err) {
    struct strategy strategy;
    struct prediction ignored;
    enum status st = build(predictor, row, &strategy, err);
    if (st)
        return st == ST_INFEASIBLE ? ST_OK : st;
    const enum sharded sharded = most_sharded(&strategy);
    if (sharded && consistency_is_plain(&strategy.consistency)) {
        st = predictor_run(predictor, &strategy, &ignored, err);
        if (!st && (!best->name || sharded < best->sharded))
            *best = (struct fitting){row->name, sharded, predictor->peak_bytes};
    }
    strategy_release(&strategy);
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

enum status starts_check_memory(const struct starts *starts, struct predictor *predictor, struct error *err) {
    size_t n;
    const struct baseline *rows = baselines_by_name(&n);
    struct fitting best = {0};
    char have[64], least[32], forms[EXPORT_LIMITS_ROOM];
    units_format_budget(predictor->memory_bytes, have, sizeof have);
    if (starts->n > 0 || predictor->least_bytes == 0)
        return ST_OK;
    for (size_t i = 0; i < n; i++) {
        enum status st = look(predictor, &rows[i], &best, err);
        if (st)
            return st;
    }
    if (best.name)
        return error_set(err, ST_INFEASIBLE,
                         "nothing that is tried fits into %s on a device; %s does, with %s: --allow-sharded %s "
                         "(\"allow_sharded\": \"%s\") tries it",
                         have, best.name, units_format_bytes_finely(best.peak_bytes, least, sizeof least),
                         sharded_name(best.sharded), sharded_name(best.sharded));
    units_format_bytes_finely(predictor->least_bytes, least, sizeof least);
    if (predictor->limits)
        return error_set(err, ST_INFEASIBLE,
                         "nothing that %s can say fits into %s on a device: the least that any of it needs is %s",
                         export_limits_names(predictor->limits, forms), have, least);
    return error_set(err, ST_INFEASIBLE, "nothing fits into %s on a device: the least that any needs is %s", have,
                     least);
}

void starts_release(struct starts *starts) {
    for (size_t i = 0; i < starts->n; i++)
        strategy_release(&starts->items[i].strategy);
    free(starts->items);
    *starts = (struct starts){0};
}
