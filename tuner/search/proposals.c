/* See proposals.h. What was seen and not tried is kept in a short list, best predicted first; a climb that improves
 * replaces its own entry, so that the list holds different ideas and not the steps of one. Cost: `evaluations` times a
 * lowering and a timeline. */
#include "tuner/search/proposals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A proposal ends when it has cost this much, in messages that the timeline moved: about two seconds. Counted and not
 * timed, so that the same seed gives the same proposal. A served message is a push and a pull a node, under max-min
 * rates. */
static const double MOST_WORK = 1.5e6;
enum { SERVED_WORK = 4 };

enum { LIST_LENGTH = 24, MEASURED_STARTS = 4, SAMPLED_STARTS = 6 };

struct seen {
    struct strategy strategy;
    const char *proposer;
    double us;
};

struct pool {
    const struct space *space;
    struct predictor *predictor;
    double work, most_work; /* spent, and where the current half of the search ends */
    size_t n_tried;
    const struct tried *tried;
    size_t n;
    struct seen list[LIST_LENGTH]; /* rising us */
};

size_t proposal_evaluations(const struct model *model) {
    size_t n = 200000 / (model->n_variables + 50);
    return n < 150 ? 150 : n > 2000 ? 2000 : n;
}

/* Predicted time; INFINITY for what cannot be lowered or run. Memory failures are errors. */
static enum status evaluate(struct pool *pool, const struct strategy *strategy, double *us, struct error *err) {
    struct prediction prediction;
    enum status st = predictor_run(pool->predictor, strategy, &prediction, err);
    *us = st ? INFINITY : prediction.iteration_us;
    pool->work += strategy->n_variables;
    if (!st) {
        bool served = pool->predictor->plan.any_server;
        pool->work += (double)prediction.messages * prediction.passes *
                      (served ? SERVED_WORK * pool->space->cluster->n_nodes : 1);
    }
    return st == ST_INFEASIBLE ? ST_OK : st;
}

static bool is_known(const struct pool *pool, const struct id *id) {
    for (size_t i = 0; i < pool->n_tried; i++)
        if (!memcmp(&pool->tried[i].strategy->id, id, sizeof *id))
            return true;
    for (size_t i = 0; i < pool->n; i++)
        if (!memcmp(&pool->list[i].strategy.id, id, sizeof *id))
            return true;
    return false;
}

/* Move `strategy` into the list if it is new and good enough; otherwise release it. */
static void offer(struct pool *pool, struct strategy *strategy, const char *proposer, double us) {
    bool full = pool->n == LIST_LENGTH;
    if (!isfinite(us) || is_known(pool, &strategy->id) || (full && us >= pool->list[LIST_LENGTH - 1].us)) {
        strategy_release(strategy);
        return;
    }
    if (full)
        strategy_release(&pool->list[--pool->n].strategy);
    size_t i = pool->n++;
    for (; i && pool->list[i - 1].us > us; i--)
        pool->list[i] = pool->list[i - 1];
    pool->list[i] = (struct seen){*strategy, proposer, us};
}

static enum status sample(struct pool *pool, size_t n, struct rng *rng, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st && pool->work < pool->most_work; i++) {
        struct strategy strategy;
        double us;
        st = space_sample_guided(pool->space, rng, &strategy, err);
        if (st)
            break;
        if ((st = evaluate(pool, &strategy, &us, err)))
            strategy_release(&strategy);
        else
            offer(pool, &strategy, "guided", us);
    }
    return st;
}

/* Walk from `start`, taking each neighbour that is predicted faster, for so many steps or so much work; the end of the
 * walk is offered. */
static enum status climb(struct pool *pool, const struct strategy *start, const char *proposer, size_t steps,
                         double share, struct rng *rng, struct error *err) {
    struct strategy here, next;
    double us, next_us;
    enum status st = strategy_copy(start, start->name, &here, err);
    if (st)
        return st;
    here.id = start->id;
    st = evaluate(pool, &here, &us, err);
    double end = pool->work + share;
    for (size_t i = 0; i < steps && !st && pool->work < end; i++) {
        st = space_neighbour(pool->space, &here, rng, &next, err);
        if (st == ST_INFEASIBLE) {
            st = ST_OK;
            break;
        }
        if (!st && (st = evaluate(pool, &next, &next_us, err)))
            strategy_release(&next);
        if (st)
            break;
        if (next_us > us) {
            strategy_release(&next);
            continue;
        }
        strategy_release(&here);
        here = next;
        us = next_us;
    }
    if (st)
        strategy_release(&here);
    else
        offer(pool, &here, proposer, us);
    return st;
}

/* The fastest measured strategies that are not yet among `starts`. */
static size_t best_measured(const struct pool *pool, const struct strategy *starts[MEASURED_STARTS]) {
    size_t n = 0;
    double last = -INFINITY;
    while (n < MEASURED_STARTS) {
        const struct tried *best = NULL;
        for (size_t i = 0; i < pool->n_tried; i++) {
            const struct tried *t = &pool->tried[i];
            if (isfinite(t->us) && t->us > last && (!best || t->us < best->us))
                best = t;
        }
        if (!best)
            break;
        starts[n++] = best->strategy;
        last = best->us;
    }
    return n;
}

static enum status climb_all(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err) {
    const struct strategy *measured[MEASURED_STARTS];
    struct strategy sampled[SAMPLED_STARTS];
    size_t n_measured = best_measured(pool, measured), n_sampled = 0;
    enum status st = ST_OK;
    for (; n_sampled < SAMPLED_STARTS && n_sampled < pool->n && !st; n_sampled++) {
        const struct strategy *from = &pool->list[n_sampled].strategy;
        st = strategy_copy(from, from->name, &sampled[n_sampled], err);
        if (st)
            break;
        sampled[n_sampled].id = from->id;
    }
    size_t starts = n_measured + n_sampled, steps = starts ? evaluations / starts : 0;
    double share = starts ? MOST_WORK / 2 / (double)starts : 0;
    for (size_t i = 0; i < n_measured && !st; i++)
        st = climb(pool, measured[i], "neighbour", steps, share, rng, err);
    for (size_t i = 0; i < n_sampled; i++) {
        if (!st)
            st = climb(pool, &sampled[i], "guided", steps, share, rng, err);
        strategy_release(&sampled[i]);
    }
    return st;
}

/* The list's index with the least score. */
static enum status choose(const struct pool *pool, double diversity, size_t *out, struct error *err) {
    double least = INFINITY;
    for (size_t i = 0; i < pool->n; i++) {
        double nearest = 0, similarity;
        for (size_t t = 0; t < pool->n_tried; t++) {
            enum status st =
                space_similarity(pool->space, &pool->list[i].strategy, pool->tried[t].strategy, &similarity, err);
            if (st)
                return st;
            nearest = fmax(nearest, similarity);
        }
        double score = pool->list[i].us / pool->list[0].us + diversity * nearest;
        if (score < least) {
            least = score;
            *out = i;
        }
    }
    return ST_OK;
}

enum status proposal_next(const struct space *space, struct predictor *predictor, size_t evaluations, double diversity,
                          size_t n, const struct tried *tried, struct rng *rng, struct proposal *out,
                          struct error *err) {
    struct pool pool = {
        .space = space, .predictor = predictor, .n_tried = n, .tried = tried, .most_work = MOST_WORK / 2};
    struct prediction prediction;
    size_t chosen = 0;
    predictor->brief = true;
    enum status st = sample(&pool, evaluations / 2, rng, err);
    if (!st)
        st = climb_all(&pool, evaluations / 2, rng, err);
    if (!st && !pool.n)
        st = error_set(err, ST_NOT_FOUND, "no candidate that was not tried before");
    if (!st)
        st = choose(&pool, diversity, &chosen, err);
    predictor->brief = false;
    if (!st)
        st = predictor_run(predictor, &pool.list[chosen].strategy, &prediction, err);
    for (size_t i = 0; i < pool.n; i++) {
        if (!st && i == chosen)
            *out = (struct proposal){pool.list[i].strategy, pool.list[i].proposer, prediction.iteration_us};
        else
            strategy_release(&pool.list[i].strategy);
    }
    return st;
}
