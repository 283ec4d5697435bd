/* Which of many candidates to run: those that are predicted fast and are unlike each other and what was run already
 * (AutoSync §3.2, after AutoTVM).
 *
 * With a score (less is better) and a similarity in [0, 1], the cost of a choice is
 *     sum over the chosen, in their order, of  score + weight * (its greatest similarity to what was tried or chosen
 *     before it)
 * Scores are in the caller's scale: times over the best time, or selection_ranks of a ranker's output, of which only
 * the order means something; a weight of 0.1 then trades a tenth of the best time, or of the ranks, for being wholly
 * new. The similarity is the caller's; one for strategies is below. */
#ifndef TESTS_SUPPORT_TUNER_SELECTION_H
#define TESTS_SUPPORT_TUNER_SELECTION_H

#include <stddef.h>

#include "base/error.h"
#include "strategy/space/space.h"

/* Similarity in [0, 1] of candidate a and item b: candidate b when b is below the number of candidates, otherwise item
 * b - n_candidates of those tried. */
typedef enum status selection_similarity(const void *context, size_t a, size_t b, double *out, struct error *err);

struct selection {
    size_t n, n_tried;
    const double *scores; /* n; what is not finite is never chosen */
    double weight;        /* at least 0 */
    selection_similarity *similarity;
    const void *context;
};

/* Choose up to k candidates: chosen[k], most wanted first; *count is less than k only when fewer have finite scores.
 * Greedy: always the candidate that adds the least cost, the first of equals; then the k best scores instead, if these
 * cost less together. So k = 1 and weight = 0 are solved exactly, and the answer never costs more than the best scores
 * do. At most n·(k + n_tried) similarities, in practice far fewer: a similarity can only raise a candidate's cost, so
 * one is asked for only when a candidate may be the next choice. O(log n) beside each.
 * Fails: ST_INVALID (a negative weight), ST_NO_MEMORY, and what the similarity fails with. */
enum status selection_choose(const struct selection *selection, size_t k, size_t *chosen, size_t *count,
                             struct error *err);

/* The cost above of chosen[count], in that order. */
enum status selection_cost(const struct selection *selection, size_t count, const size_t *chosen, double *out,
                           struct error *err);

/* ranks[n] in [0, 1] for scores[n]: 0 the least, 1 the greatest, equals share their mean rank. Scores that are not
 * finite get INFINITY. Fails: ST_NO_MEMORY. O(n log n). */
enum status selection_ranks(size_t n, const double *scores, double *ranks, struct error *err);

/* Context: strategies of one space, candidates and then those tried. */
struct selection_strategies {
    const struct space *space;
    const struct strategy *const *items;
};
selection_similarity selection_similarity_of_strategies;

#endif
