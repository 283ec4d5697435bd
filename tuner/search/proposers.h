/* Who proposes candidates, what they work on, and how each has done. candidates.h runs them. */
#ifndef TUNER_SEARCH_PROPOSERS_H
#define TUNER_SEARCH_PROPOSERS_H

#include <stddef.h>
#include <stdint.h>

#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/starts.h"

/* X(name, what it does) */
#define PROPOSER_TABLE(X)                                                                                              \
    X(guided, "draws by AutoSync's constraints, then climbs from the best drawn")                                      \
    X(neighbour, "climbs from the best measured")                                                                      \
    X(genetic, "crosses the best measured and the best proposed")                                                      \
    X(knobs, "a handful of sizes for the whole model: fusion, partition, credit, servers")                             \
    X(bayes, "Bayesian optimization of these sizes around the fastest measured")

enum proposer {
#define X(name, words) PROPOSER_##name,
    PROPOSER_TABLE(X)
#undef X
        PROPOSER_COUNT
};
const char *proposer_name(enum proposer proposer);
const char *proposer_label(enum proposer proposer);

/* A strategy that had its trial, in the order of the trials. */
struct tried {
    const struct strategy *strategy;
    double us;            /* median; INFINITY when the trial did not complete */
    const char *proposer; /* a proposer's name, or another word */
    double expected_us;   /* of one that still runs; 0 when it has ended */
};

/* How a proposer has done. */
struct proposer_score {
    uint64_t tried, wins; /* a win is a trial that was faster than all before it */
    double share;         /* of the evaluations, now; all together 1 */
};

/* Shares go by (1 + wins) / (2 + tried), the expected chance of a win under a uniform prior, and no proposer gets less
 * than PROPOSER_LEAST. */
#define PROPOSER_LEAST 0.08
void proposers_judge(size_t n, const struct tried *tried, struct proposer_score out[PROPOSER_COUNT]);

enum { PROPOSER_CANDIDATES = 12 }; /* that each proposer gives at most */
struct candidate {
    struct strategy strategy;
    const char *proposer; /* a proposer's name, or a baseline's */
    double us;            /* predicted, with few passes; of an earlier one measured */
};

/* What a search works on; all borrowed. */
struct search_context {
    const struct space *space;
    struct predictor *predictor;
    const struct starts *starts;
    /* Strategies measured here before this session. Proposers climb from them and cross them; the fastest are
     * candidates again. */
    size_t n_earlier;
    const struct tried *earlier;
};

#endif
