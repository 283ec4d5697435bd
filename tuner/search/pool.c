/* See pool.h. */
#include "tuner/search/pool.h"

#include <math.h>
#include <string.h>

/* One strategy may not use up a step. */
enum { MOST_EVENTS = 750000 };

/* The first iterations start from an empty network, and may take some percent longer than the later ones. */
static const double SLOW_START = 1.1;

enum status pool_evaluate(struct pool *pool, const struct strategy *strategy, double enough_us, double *us,
                          struct error *err) {
    struct predictor *predictor = pool->predictor;
    struct prediction prediction = {0};
    predictor->enough_us = isfinite(enough_us) ? SLOW_START * enough_us : 0;
    predictor->most_events = MOST_EVENTS;
    predictor->glance = true;
    enum status st = predictor_run(predictor, strategy, &prediction, err);
    predictor->enough_us = 0;
    predictor->most_events = 0;
    predictor->glance = false;
    *us = st ? INFINITY : prediction.iteration_us;
    pool->evaluations++;
    pool->work += strategy->n_variables + (st == ST_TOO_LARGE ? MOST_EVENTS : (double)prediction.events);
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

bool pool_knows(const struct pool *pool, const struct id *id) {
    for (size_t i = 0; i < pool->n_tried; i++)
        if (!memcmp(&pool->tried[i].strategy->id, id, sizeof *id))
            return true;
    for (int p = 0; p < PROPOSER_COUNT; p++)
        for (size_t i = 0; i < pool->lists[p].n; i++)
            if (!memcmp(&pool->lists[p].items[i].strategy.id, id, sizeof *id))
                return true;
    return false;
}

void pool_add(struct pool *pool, struct strategy *strategy, double us) {
    struct list *list = &pool->lists[pool->proposer];
    bool full = list->n == PROPOSER_CANDIDATES;
    if (!isfinite(us) || (full && us >= list->items[PROPOSER_CANDIDATES - 1].us) || pool_knows(pool, &strategy->id)) {
        strategy_release(strategy);
        return;
    }
    if (full)
        strategy_release(&list->items[--list->n].strategy);
    size_t i = list->n++;
    for (; i && list->items[i - 1].us > us; i--)
        list->items[i] = list->items[i - 1];
    list->items[i] = (struct candidate){*strategy, proposer_name(pool->proposer), us};
}

enum status pool_offer(struct pool *pool, struct strategy *strategy, double *out_us, struct error *err) {
    const struct list *list = &pool->lists[pool->proposer];
    bool full = list->n == PROPOSER_CANDIDATES;
    double us;
    enum status st = pool_evaluate(pool, strategy, full ? list->items[PROPOSER_CANDIDATES - 1].us : INFINITY, &us, err);
    if (st) {
        strategy_release(strategy);
        return st;
    }
    pool_add(pool, strategy, us);
    if (out_us)
        *out_us = us;
    return ST_OK;
}

bool pool_has_left(const struct pool *pool) {
    return pool->work < pool->most_work;
}

const struct tried *tried_next_fastest(size_t n, const struct tried *tried, double last) {
    const struct tried *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (isfinite(tried[i].us) && tried[i].us > last && (!best || tried[i].us < best->us))
            best = &tried[i];
    return best;
}

const struct tried *pool_next_measured(const struct pool *pool, double last) {
    const struct tried *now = tried_next_fastest(pool->n_tried, pool->tried, last);
    const struct tried *earlier = tried_next_fastest(pool->context->n_earlier, pool->context->earlier, last);
    return !now || (earlier && earlier->us < now->us) ? earlier : now;
}
