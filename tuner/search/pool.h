/* What the proposers share: the pool that they put candidates into. */
#ifndef TUNER_SEARCH_POOL_H
#define TUNER_SEARCH_POOL_H

#include <stdbool.h>

#include "base/error.h"
#include "tuner/search/proposers.h"

struct list {
    size_t n;
    struct candidate items[PROPOSER_CANDIDATES]; /* rising us */
};

struct pool {
    const struct search_context *context;
    const struct space *space;
    struct predictor *predictor;
    double work, most_work; /* spent, and where the current proposer ends */
    size_t evaluations;     /* so far */
    size_t n_tried;
    const struct tried *tried;
    enum proposer proposer; /* the current one */
    struct list lists[PROPOSER_COUNT];
};

/* Whether the current proposer may predict more. */
bool pool_has_left(const struct pool *pool);

/* Predicted time; INFINITY for what cannot be lowered or run. What is slower than enough_us (INFINITY: nothing) may get
 * any time above enough_us, which is found sooner. Fails: ST_NO_MEMORY and what predictions fail with beyond
 * ST_INFEASIBLE and ST_TOO_LARGE. */
enum status pool_evaluate(struct pool *pool, const struct strategy *strategy, double enough_us, double *us,
                          struct error *err);

/* Evaluate the strategy and move it into the current proposer's list, if it is new and good enough; otherwise, and on
 * failure, release it. `us` may be NULL; of what is too slow for the list it is only a lower bound. Fails: as
 * pool_evaluate. */
enum status pool_offer(struct pool *pool, struct strategy *strategy, double *us, struct error *err);

/* Whether it was tried or is in a list. */
bool pool_knows(const struct pool *pool, const struct id *id);

/* Move `strategy` with its predicted time into the current proposer's list, if it is new and good enough; otherwise
 * release it. */
void pool_add(struct pool *pool, struct strategy *strategy, double us);

/* The fastest of the n that is slower than `last`; NULL when there is none. */
const struct tried *tried_next_fastest(size_t n, const struct tried *tried, double last);

/* The fastest strategy that was measured now or earlier and is slower than `last`; NULL when there is none. */
const struct tried *pool_next_measured(const struct pool *pool, double last);

#endif
