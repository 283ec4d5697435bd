/* The next strategy to try: drawn and improved against the predictor, then chosen for being fast and new.
 *
 * Half of the evaluations draw guided samples (AutoSync §3.2: c_lb and c_am); the other half climb from the best of
 * these and from the best that were measured, taking each neighbour that is predicted faster. Of what was seen, the
 * choice minimizes predicted time / best predicted time + diversity * similarity to what was tried (AutoSync §3.2,
 * after AutoTVM). */
#ifndef TUNER_SEARCH_PROPOSALS_H
#define TUNER_SEARCH_PROPOSALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/space.h"
#include "tuner/predictor.h"

struct tried {
    const struct strategy *strategy;
    double us; /* median; INFINITY when the trial did not complete */
};

struct proposal {
    struct strategy strategy; /* the caller's */
    const char *proposer;     /* "guided" or "neighbour" */
    double predicted_us;
};

/* How many strategies one proposal evaluates for this model: fewer for large ones, so that proposing takes about a
 * second. */
size_t proposal_evaluations(const struct model *model);

/* Nothing in tried[0..n) is proposed again. Fails: ST_NOT_FOUND when all that was seen had been tried. */
enum status proposal_next(const struct space *space, struct predictor *predictor, size_t evaluations, double diversity,
                          size_t n, const struct tried *tried, struct rng *rng, struct proposal *out,
                          struct error *err);

#endif
