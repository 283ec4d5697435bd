/* See propose_bayes.h. Trials of strategies in the box are observations; those that still run are points under way. A
 * few points that the simulator predicts are observations too, with the variance of its error: they replace a prior
 * mean. They cost a few dozen predictions; a prior mean would cost hundreds for each suggested point. Cost: a fit of
 * the process, O(n^3). */
#include "tuner/search/propose_bayes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/bayes.h"
#include "tuner/search/knobs.h"

enum {
    SUGGESTED = 12, /* points */
    OFFERED = 4,    /* candidates: the first of these points whose strategies are new */
    PREDICTED = 32  /* points that the simulator predicts */
};
static const double PREDICTED_VARIANCE = 0.01; /* of the logarithm of a prediction over the time: off by 10% */

/* The sizes around one strategy. */
struct box {
    const struct space *space;
    double u[KNOB_COUNT];    /* where that strategy lies in the cube of all knobs */
    size_t d;                /* of that cube */
    size_t n;                /* of the box */
    size_t axis[KNOB_COUNT]; /* [n] the cube's axis of each dimension of the box */
};

/* The input of the optimizer. Rows of `x` and `pending` have box.n coordinates. */
struct observations {
    size_t n, n_pending;
    struct bayes_trial *trials;
    double *x, *pending;
};

/* ---- the box ---- */

/* Whether the size makes a difference under this architecture. */
static bool has_effect(const struct knob_dimension *d, enum knob_architecture architecture) {
    if (d->kind == KNOB_CATEGORY)
        return false;
    if (d->knob == KNOB_merge_bytes)
        return architecture != KNOB_ARCHITECTURE_server;
    if (d->knob == KNOB_served_bytes)
        return architecture == KNOB_ARCHITECTURE_large_served;
    return d->knob != KNOB_n_servers || architecture != KNOB_ARCHITECTURE_all_reduce;
}

static enum status box_around(struct box *box, const struct space *space, const struct strategy *strategy,
                              struct error *err) {
    struct knob_dimension dimensions[KNOB_COUNT];
    struct knobs knobs;
    enum status st = knobs_of(space, strategy, &knobs, err);
    if (st)
        return st;
    *box = (struct box){.space = space, .d = knobs_dimensions(space, dimensions)};
    knobs_to_unit(space, &knobs, box->u);
    const struct knobs inside = knobs_from_unit(space, box->u);
    for (size_t i = 0; i < box->d; i++)
        if (has_effect(&dimensions[i], inside.architecture))
            box->axis[box->n++] = i;
    return ST_OK;
}

/* The strategy at x[n]. */
static enum status box_strategy(const struct box *box, const double *x, struct strategy *out, struct error *err) {
    double u[KNOB_COUNT];
    memcpy(u, box->u, sizeof u);
    for (size_t k = 0; k < box->n; k++)
        u[box->axis[k]] = x[k];
    const struct knobs knobs = knobs_from_unit(box->space, u);
    return knobs_strategy(box->space, &knobs, out, err);
}

/* Find the place x[n] of the strategy in the box. *inside is false when the strategy at that place is another one. */
static enum status box_place(const struct box *box, const struct strategy *strategy, double *x, bool *inside,
                             struct error *err) {
    struct knobs knobs;
    struct strategy there;
    double u[KNOB_COUNT];
    enum status st = knobs_of(box->space, strategy, &knobs, err);
    if (st)
        return st;
    knobs_to_unit(box->space, &knobs, u);
    for (size_t k = 0; k < box->n; k++)
        x[k] = fmin(fmax(u[box->axis[k]], 0), 1);
    if ((st = box_strategy(box, x, &there, err)))
        return st;
    *inside = !memcmp(&there.id, &strategy->id, sizeof there.id);
    strategy_release(&there);
    return ST_OK;
}

/* ---- observations ---- */

static enum status observations_init(struct observations *o, const struct box *box, size_t most, struct error *err) {
    *o = (struct observations){.trials = calloc(most, sizeof *o->trials), .x = calloc(2 * most * box->n, sizeof *o->x)};
    o->pending = o->x ? o->x + most * box->n : NULL;
    return o->trials && o->x ? ST_OK : error_no_memory(err);
}

static void observations_release(struct observations *o) {
    free(o->trials);
    free(o->x);
}

/* The time that a trial which did not complete counts as: twice the slowest that did. */
static double failed_us(size_t n, const struct tried *tried) {
    double slowest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(tried[i].us))
            slowest = fmax(slowest, tried[i].us);
    return 2 * slowest;
}

/* Trials of this session, or earlier ones. */
static enum status observe(struct observations *o, const struct box *box, size_t n, const struct tried *tried,
                           bool elsewhere, struct error *err) {
    const double failed = failed_us(n, tried);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && failed > 0 && !st; i++) {
        const bool runs = tried[i].expected_us > 0;
        double *x = runs ? o->pending + o->n_pending * box->n : o->x + o->n * box->n;
        bool inside;
        st = box_place(box, tried[i].strategy, x, &inside, err);
        if (st || !inside)
            continue;
        if (runs)
            o->n_pending++;
        else
            o->trials[o->n++] = (struct bayes_trial){
                .x = x, .y = log(isfinite(tried[i].us) ? tried[i].us : failed), .elsewhere = elsewhere};
    }
    return st;
}

/* Predictions of the simulator at points drawn from the whole box. */
static enum status predict(struct pool *pool, struct observations *o, const struct box *box, size_t n, struct rng *rng,
                           struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st && pool_has_left(pool); i++) {
        double us, *x = o->x + o->n * box->n;
        struct strategy strategy;
        for (size_t k = 0; k < box->n; k++)
            x[k] = rng_uniform(rng);
        if ((st = box_strategy(box, x, &strategy, err)))
            return st;
        st = pool_evaluate(pool, &strategy, INFINITY, &us, err);
        strategy_release(&strategy);
        if (!st && isfinite(us))
            o->trials[o->n++] =
                (struct bayes_trial){.x = x, .y = log(us), .noise = PREDICTED_VARIANCE, .elsewhere = true};
    }
    return st;
}

/* ---- suggestions ---- */

static enum status suggest(const struct box *box, const struct observations *o, uint64_t seed, size_t wanted, double *x,
                           size_t *n, struct error *err) {
    struct bayes_dimension unit[KNOB_COUNT];
    struct bayes_advice advice = {0};
    struct bayes *bayes;
    const struct bayes_options options = {.seed = seed};
    const struct bayes_history history = {
        .n = o->n, .trials = o->trials, .n_pending = o->n_pending, .pending = o->pending};
    for (size_t k = 0; k < box->n; k++)
        unit[k] = (struct bayes_dimension){BAYES_LINEAR, 0, 1};
    enum status st = bayes_new(box->n, unit, &options, &bayes, err);
    if (st)
        return st;
    st = bayes_suggest(bayes, &history, wanted, x, &advice, err);
    bayes_free(bayes);
    *n = advice.n;
    return st;
}

static enum status offer_suggestions(struct pool *pool, const struct box *box, const struct observations *o,
                                     struct rng *rng, struct error *err) {
    double x[SUGGESTED * KNOB_COUNT];
    size_t n = 0;
    enum status st = suggest(box, o, rng_next(rng), SUGGESTED, x, &n, err);
    for (size_t i = 0; i < n && pool->lists[PROPOSER_bayes].n < OFFERED && !st; i++) {
        struct strategy strategy;
        st = box_strategy(box, x + i * box->n, &strategy, err);
        if (!st)
            st = pool_offer(pool, &strategy, NULL, err);
    }
    return st;
}

enum status propose_bayes(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    const struct search_context *c = pool->context;
    const struct tried *fastest = pool_next_measured(pool, -INFINITY);
    const struct strategy *start = fastest ? fastest->strategy : c->starts->n ? &c->starts->items[0].strategy : NULL;
    size_t predicted = evaluations > SUGGESTED ? evaluations - SUGGESTED : 0;
    struct observations o;
    struct box box;
    if (!start)
        return ST_OK;
    enum status st = box_around(&box, pool->space, start, err);
    if (st || !box.n)
        return st;
    st = observations_init(&o, &box, c->n_earlier + pool->n_tried + PREDICTED, err);
    if (!st)
        st = observe(&o, &box, c->n_earlier, c->earlier, true, err);
    if (!st)
        st = observe(&o, &box, pool->n_tried, pool->tried, false, err);
    if (!st)
        st = predict(pool, &o, &box, predicted < PREDICTED ? predicted : PREDICTED, rng, err);
    if (!st)
        st = offer_suggestions(pool, &box, &o, rng, err);
    observations_release(&o);
    return st;
}
