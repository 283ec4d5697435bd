/* The next strategy to try: of all candidates, the one that the advisor thinks most worth a trial. */
#ifndef TUNER_SEARCH_PROPOSALS_H
#define TUNER_SEARCH_PROPOSALS_H

#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/advisor.h"
#include "tuner/search/candidates.h"

struct proposal_options {
    size_t evaluations; /* predictions behind one proposal; 0: candidates_evaluations() */
    struct advisor_options advisor;
};

struct proposal {
    struct strategy strategy; /* the caller's */
    const char *proposer;     /* a proposer's name, or a baseline's */
    double timeline_us;       /* predicted by the predictor as it is corrected now */
    double predicted_us;      /* by the advisor, from that or its ranker, and all trials here */
    double gain; /* expected improvement over the best so far, relative; INFINITY while too little is known */
};

/* Nothing in tried[0..n) is proposed again. Candidates are made against the context's predictor; features come from
 * `described`, the predictor of the cluster as it is described, when there is a ranker, since that is what it was
 * trained on. Earlier measurements count in learning as the trials here do. Fails: ST_NOT_FOUND when all that was seen
 * had been tried; as candidates_make and advisor_rank. */
enum status proposal_next(const struct search_context *context, struct predictor *described,
                          const struct proposal_options *options, size_t n, const struct tried *tried, struct rng *rng,
                          struct proposal *out, struct error *err);

#endif
