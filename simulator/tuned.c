/* All settings of a grid, one simulation for each strategy among them: several settings may make the same one. Grids
 * are small, so none is left out: the result is the least over the grid. */
#include "simulator/tuned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/timeline.h"
#include "strategy/baselines/fsdp_optimal.h"
#include "strategy/plan.h"

struct search {
    const struct model *model;
    struct cost cost;
    struct timeline *timeline;
    struct id *seen; /* of the settings so far */
    struct strategy best;
    double best_us; /* INFINITY: no best yet */
};

static enum status predict(struct search *s, const struct strategy *strategy, double *us, struct error *err) {
    struct plan plan;
    struct prediction prediction;
    enum status st = plan_lower(s->model, s->cost.cluster, strategy, &plan, err);
    if (st)
        return st;
    st = timeline_run(s->timeline, &plan, &s->cost, NULL, &prediction, err);
    plan_release(&plan);
    if (!st)
        *us = prediction.iteration_us;
    return st;
}

static bool is_seen(const struct search *s, size_t n, const struct id *id) {
    for (size_t i = 0; i < n; i++)
        if (!memcmp(&s->seen[i], id, sizeof *id))
            return true;
    return false;
}

static enum status try_setting(struct search *s, const struct baseline_grid *grid, size_t setting, struct error *err) {
    struct strategy strategy;
    double us = INFINITY;
    enum status st = grid->build(s->model, s->cost.cluster, setting, &strategy, err);
    if (st)
        return st;
    s->seen[setting] = strategy.id;
    if (!is_seen(s, setting, &strategy.id))
        st = predict(s, &strategy, &us, err);
    if (!st && us < s->best_us) {
        if (isfinite(s->best_us))
            strategy_release(&s->best);
        s->best = strategy;
        s->best_us = us;
    } else {
        strategy_release(&strategy);
    }
    return st;
}

static enum status try_all(struct search *s, const struct baseline_grid *grid, struct error *err) {
    enum status too_large = ST_OK;
    for (size_t i = 0; i < grid->n; i++) {
        enum status st = try_setting(s, grid, i, err);
        if (st == ST_TOO_LARGE)
            too_large = st;
        else if (st)
            return st;
    }
    return isfinite(s->best_us) ? ST_OK : too_large;
}

static enum status search(const struct baseline_grid *grid, const struct model *model, const struct cluster *cluster,
                          struct strategy *out, struct error *err) {
    struct search s = {.model = model, .best_us = INFINITY};
    enum status st = cost_init(&s.cost, cluster, err);
    if (st)
        return st;
    s.timeline = timeline_new();
    s.seen = calloc(grid->n, sizeof *s.seen);
    st = s.timeline && s.seen ? try_all(&s, grid, err) : error_no_memory(err);
    timeline_free(s.timeline);
    free(s.seen);
    cost_release(&s.cost);
    if (!st)
        *out = s.best;
    else if (isfinite(s.best_us))
        strategy_release(&s.best);
    return st;
}

enum status tuned_build(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                        struct strategy *out, struct error *err) {
    if (!row->grid)
        return baselines_build(row, model, cluster, out, err);
    enum status st = search(row->grid, model, cluster, out, err);
    if (!st)
        out->name = row->name;
    return st;
}

enum status tuned_build_for(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                            uint64_t memory_bytes, struct strategy *out, struct error *err) {
    struct cost cost;
    if (row->build != baseline_fsdp_optimal || !memory_bytes)
        return tuned_build(row, model, cluster, out, err);
    enum status st = cost_init(&cost, cluster, err);
    if (st)
        return st;
    st = fsdp_optimal_nearest(model, &cost, memory_bytes, out, err);
    cost_release(&cost);
    return st;
}
