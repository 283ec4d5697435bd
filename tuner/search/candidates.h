/* Candidates for the next trial: five proposers, each drawing and improving against the predictor.
 *
 * What a proposer may spend is a share of the evaluations: the more its trials have won so far, the more it gets
 * (proposers_judge). Evaluations that one does not use go to those after it. Each proposer gives its few best new
 * strategies; proposals.h chooses the one that is tried. */
#ifndef TUNER_SEARCH_CANDIDATES_H
#define TUNER_SEARCH_CANDIDATES_H

#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/model.h"
#include "tuner/search/proposers.h"

enum {
    CANDIDATES_STARTS = 24,
    CANDIDATES_EARLIER = 8,
    CANDIDATES_MOST = PROPOSER_CANDIDATES * PROPOSER_COUNT + CANDIDATES_STARTS + CANDIDATES_EARLIER
};

struct candidates {
    size_t n;
    struct candidate items[CANDIDATES_MOST]; /* no two alike, none of them tried */
};

/* How many strategies one step evaluates for this model: fewer for large ones, so that proposing takes about a second.
 */
size_t candidates_evaluations(const struct model *model);

/* The candidates: what the proposers make, the first CANDIDATES_STARTS starts, and the CANDIDATES_EARLIER fastest
 * earlier strategies (proposer "earlier"), without those that were tried in this session. The same arguments and state
 * of rng give the same candidates. Fails: ST_NO_MEMORY, and as predictions, except for ST_INFEASIBLE and ST_TOO_LARGE.
 * Release with candidates_release. */
enum status candidates_make(const struct search_context *context, size_t evaluations, size_t n,
                            const struct tried *tried, struct rng *rng, struct candidates *out, struct error *err);
void candidates_release(struct candidates *candidates);

#endif
