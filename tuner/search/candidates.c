/* See candidates.h. Each proposer keeps a short list, best predicted first. A climb offers only its end, or the list
 * would fill with the steps of one climb. Cost: `evaluations` times a lowering and a timeline. */
#include "tuner/search/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/genetic.h"
#include "tuner/search/knobs.h"
#include "tuner/search/pool.h"
#include "tuner/search/propose_bayes.h"

/* A step ends when it has cost this much, in events of the timeline: about a second. Counted and not timed, so that the
 * same seed gives the same candidates. */
static const double MOST_WORK = 1.5e7;
static const double KNOB_STEP = 0.15; /* deviation of a change along one axis of the cube of knobs */
/* A glance at a strategy in weather costs several quiet predictions, and what is chosen from is predicted longer there
 * (tuner/predict/predictor.h): with so many times fewer glances a step takes about four times as long as a quiet one.
 */
enum { IN_WEATHER = 2 };
enum { MEASURED_STARTS = 4, SAMPLED_STARTS = 4, BROOD = 8 };

size_t candidates_evaluations(const struct model *model) {
    size_t n = 200000 / (model->n_variables + 50);
    return n < 150 ? 150 : n > 2000 ? 2000 : n;
}

/* ---- climbing ---- */

/* Walk from `start` to neighbours that are predicted faster, until the steps or the work are used up. Offer the end of
 * the walk. */
static enum status climb(struct pool *pool, const struct strategy *start, size_t steps, double share, struct rng *rng,
                         struct error *err) {
    struct strategy here, next;
    double us, next_us;
    enum status st = strategy_copy(start, start->name, &here, err);
    if (st)
        return st;
    here.id = start->id;
    st = pool_evaluate(pool, &here, INFINITY, &us, err);
    double end = fmin(pool->work + share, pool->most_work);
    for (size_t i = 0; i < steps && !st && pool->work < end; i++) {
        st = space_neighbour(pool->space, &here, rng, &next, err);
        if (st == ST_INFEASIBLE) {
            st = ST_OK;
            break;
        }
        if (!st && (st = pool_evaluate(pool, &next, us, &next_us, err)))
            strategy_release(&next);
        if (st)
            break;
        bool worse = next_us > us;
        strategy_release(worse ? &next : &here);
        if (worse)
            continue;
        here = next;
        us = next_us;
    }
    if (st)
        strategy_release(&here);
    else
        pool_add(pool, &here, us);
    return st;
}

static enum status propose_neighbours(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    double share = (pool->most_work - pool->work) / MEASURED_STARTS;
    const struct tried *from = pool_next_measured(pool, -INFINITY);
    enum status st = ST_OK;
    for (size_t k = 0; k < MEASURED_STARTS && from && !st; k++) {
        st = climb(pool, from->strategy, evaluations / MEASURED_STARTS, share, rng, err);
        from = pool_next_measured(pool, from->us);
    }
    return st;
}

static enum status propose_guided(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    struct list *list = &pool->lists[PROPOSER_guided];
    struct strategy starts[SAMPLED_STARTS];
    double end = pool->most_work;
    size_t n = 0;
    enum status st = ST_OK;
    pool->most_work = (pool->work + end) / 2;
    for (size_t i = 0; i < evaluations / 2 && !st && pool_has_left(pool); i++) {
        struct strategy strategy;
        st = space_sample_guided(pool->space, rng, &strategy, err);
        if (!st)
            st = pool_offer(pool, &strategy, NULL, err);
    }
    pool->most_work = end;
    for (; n < SAMPLED_STARTS && n < list->n && !st; n++) {
        st = strategy_copy(&list->items[n].strategy, list->items[n].strategy.name, &starts[n], err);
        if (st)
            break;
        starts[n].id = list->items[n].strategy.id;
    }
    double share = (end - pool->work) / SAMPLED_STARTS;
    for (size_t i = 0; i < n; i++) {
        if (!st)
            st = climb(pool, &starts[i], evaluations / 2 / SAMPLED_STARTS, share, rng, err);
        strategy_release(&starts[i]);
    }
    return st;
}

/* ---- crossing ---- */

/* The parents, malloc'd: what was measured, and what the lists hold now. The list of Bayesian optimization is left out,
 * because sessions that crossed it too ended with slower answers. */
static struct genetic_parent *population(const struct pool *pool, size_t *n) {
    const struct search_context *c = pool->context;
    struct genetic_parent *out = calloc(pool->n_tried + c->n_earlier + CANDIDATES_MOST, sizeof *out);
    *n = 0;
    for (size_t i = 0; out && i < c->n_earlier; i++)
        out[(*n)++] = (struct genetic_parent){c->earlier[i].strategy, c->earlier[i].us};
    for (size_t i = 0; out && i < pool->n_tried; i++)
        out[(*n)++] = (struct genetic_parent){pool->tried[i].strategy, pool->tried[i].us};
    for (int p = 0; out && p < PROPOSER_COUNT; p++)
        for (size_t i = 0; p != PROPOSER_bayes && i < pool->lists[p].n; i++)
            out[(*n)++] = (struct genetic_parent){&pool->lists[p].items[i].strategy, pool->lists[p].items[i].us};
    return out;
}

static enum status propose_genetic(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    const struct genetic_options options = genetic_default_options();
    enum status st = ST_OK;
    for (size_t done = 0; done < evaluations && !st && pool_has_left(pool); done += BROOD) {
        struct strategy children[BROOD];
        size_t n, made = 0;
        struct genetic_parent *parents = population(pool, &n);
        if (!parents)
            return error_no_memory(err);
        st = genetic_propose(pool->space, &options, n, parents, rng, BROOD, children, &made, err);
        free(parents);
        if (st == ST_NOT_FOUND)
            return ST_OK;
        for (size_t i = 0; i < made && !st; i++)
            if ((st = pool_offer(pool, &children[i], NULL, err)))
                while (++i < made)
                    strategy_release(&children[i]);
    }
    return st;
}

/* ---- knobs ---- */

/* Take a step from the best point on one or two axes. */
static void step_from(const double *best, size_t d, struct rng *rng, double *u) {
    memcpy(u, best, d * sizeof *u);
    for (uint64_t steps = 1 + rng_below(rng, 2); steps; steps--) {
        size_t axis = rng_below(rng, d);
        u[axis] = fmin(fmax(u[axis] + KNOB_STEP * rng_normal(rng), 0), 1);
    }
}

/* Half of the points over the whole cube, half around the best of them. */
static enum status propose_knobs(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    struct knob_dimension dimensions[KNOB_COUNT];
    double u[KNOB_COUNT], best[KNOB_COUNT], best_us = INFINITY, us;
    size_t d = knobs_dimensions(pool->space, dimensions);
    enum status st = ST_OK;
    for (size_t i = 0; i < evaluations && d && !st && pool_has_left(pool); i++) {
        struct strategy strategy;
        if (i % 2 && isfinite(best_us))
            step_from(best, d, rng, u);
        else
            for (size_t k = 0; k < d; k++)
                u[k] = rng_uniform(rng);
        const struct knobs knobs = knobs_from_unit(pool->space, u);
        st = knobs_strategy(pool->space, &knobs, &strategy, err);
        if (!st)
            st = pool_offer(pool, &strategy, &us, err);
        if (!st && us < best_us) {
            best_us = us;
            memcpy(best, u, sizeof best);
        }
    }
    return st;
}

/* ---- all ---- */

typedef enum status propose_function(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err);

static void collect_lists(struct pool *pool, struct candidates *out) {
    out->n = 0;
    for (int p = 0; p < PROPOSER_COUNT; p++) {
        memcpy(out->items + out->n, pool->lists[p].items, pool->lists[p].n * sizeof *out->items);
        out->n += pool->lists[p].n;
    }
}

/* Add a copy of a strategy that no proposer made, unless it is known. */
static enum status add_copy(const struct pool *pool, const struct strategy *strategy, const char *proposer, double us,
                            struct candidates *out, struct error *err) {
    struct candidate *candidate = &out->items[out->n];
    bool known = pool_knows(pool, &strategy->id);
    for (size_t i = 0; i < out->n && !known; i++)
        known = !memcmp(&out->items[i].strategy.id, &strategy->id, sizeof strategy->id);
    if (known)
        return ST_OK;
    enum status st = strategy_copy(strategy, strategy->name, &candidate->strategy, err);
    if (st)
        return st;
    candidate->strategy.id = strategy->id;
    candidate->proposer = proposer;
    candidate->us = us;
    out->n++;
    return ST_OK;
}

static enum status add_known_ones(const struct pool *pool, struct candidates *out, struct error *err) {
    const struct search_context *c = pool->context;
    enum status st = ST_OK;
    for (size_t i = 0; i < c->starts->n && i < CANDIDATES_STARTS && !st; i++) {
        const struct start *start = &c->starts->items[i];
        st = add_copy(pool, &start->strategy, start->baseline->name, start->predicted_us, out, err);
    }
    const struct tried *earlier = tried_next_fastest(c->n_earlier, c->earlier, -INFINITY);
    for (size_t i = 0; i < CANDIDATES_EARLIER && earlier && !st; i++) {
        st = add_copy(pool, earlier->strategy, "earlier", earlier->us, out, err);
        earlier = tried_next_fastest(c->n_earlier, c->earlier, earlier->us);
    }
    return st;
}

/* Each proposer in turn, by its share of what those before it left. Bayesian optimization needs few predictions and
 * comes first; genetic search crosses what the others found and comes last. */
static enum status run_proposers(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    static const struct {
        enum proposer proposer;
        propose_function *propose;
    } order[] = {{PROPOSER_bayes, propose_bayes},
                 {PROPOSER_knobs, propose_knobs},
                 {PROPOSER_guided, propose_guided},
                 {PROPOSER_neighbour, propose_neighbours},
                 {PROPOSER_genetic, propose_genetic}};
    _Static_assert(sizeof order / sizeof *order == PROPOSER_COUNT, "a proposer has no place in the order");
    struct proposer_score scores[PROPOSER_COUNT];
    double share_left = 1, most_work = MOST_WORK;
    enum status st = ST_OK;
    if (pool->predictor->weather) {
        evaluations /= IN_WEATHER;
        most_work /= IN_WEATHER;
    }
    proposers_judge(pool->n_tried, pool->tried, scores);
    for (int i = 0; i < PROPOSER_COUNT && !st; i++) {
        pool->proposer = order[i].proposer;
        const double own = scores[pool->proposer].share, share = own / share_left;
        const double left = fmax((double)evaluations - (double)pool->evaluations, 0);
        share_left -= own;
        pool->most_work = pool->work + fmax(most_work - pool->work, 0) * share;
        st = order[i].propose(pool, (size_t)(left * share + 0.5), rng, err);
    }
    return st;
}

enum status candidates_make(const struct search_context *context, size_t evaluations, size_t n,
                            const struct tried *tried, struct rng *rng, struct candidates *out, struct error *err) {
    struct predictor *predictor = context->predictor;
    struct pool pool = {
        .context = context, .space = context->space, .predictor = predictor, .n_tried = n, .tried = tried};
    bool was_brief = predictor->brief;
    predictor->brief = true;
    enum status st = run_proposers(&pool, evaluations, rng, err);
    predictor->brief = was_brief;
    collect_lists(&pool, out);
    if (!st)
        st = add_known_ones(&pool, out, err);
    if (st)
        candidates_release(out);
    return st;
}

void candidates_release(struct candidates *candidates) {
    for (size_t i = 0; i < candidates->n; i++)
        strategy_release(&candidates->items[i].strategy);
    candidates->n = 0;
}
