/* Bayesian optimization of a strategy's sizes, as ByteScheduler tunes partition and credit (§4.3): a proposer.
 *
 * The box holds the sizes of knobs.h that have an effect: fusion, partition, credit, the least served size and the
 * number of servers, so it has at most five dimensions, and a dozen trials are enough to learn from. The other knobs
 * (architecture, policy, algorithm, barrier) are those of the fastest strategy that was measured (knobs_of), or of the
 * first start before any was. */
#ifndef TUNER_SEARCH_PROPOSE_BAYES_H
#define TUNER_SEARCH_PROPOSE_BAYES_H

#include "tuner/search/pool.h"

/* Fill the pool's list of PROPOSER_bayes with at most 4 suggestions. It spends at most 44 evaluations, however many it
 * may. The same pool and state of rng give the same list. Fails: ST_NO_MEMORY, ST_NUMERIC, and what predictions fail
 * with. */
enum status propose_bayes(struct pool *pool, size_t evaluations, struct rng *rng, struct error *err);

#endif
