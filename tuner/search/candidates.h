/* Candidates for the next trial: four proposers, each drawing and improving against the predictor.
 *
 * What a proposer may spend is a share of the evaluations: the more its trials have won so far, the more it gets
 * (proposers_judge). Each hands on its few best that are new; which of all of them is tried is for proposals.h. */
#ifndef TUNER_SEARCH_CANDIDATES_H
#define TUNER_SEARCH_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/starts.h"

/* X(name, what it does) */
#define PROPOSER_TABLE(X)                                                                                              \
    X(guided, "draws by AutoSync's constraints, then climbs from the best drawn")                                      \
    X(neighbour, "climbs from the best measured")                                                                      \
    X(genetic, "crosses the best measured and the best proposed")                                                      \
    X(knobs, "a handful of sizes for the whole model: fusion, partition, credit, servers")

enum proposer {
#define X(name, words) PROPOSER_##name,
    PROPOSER_TABLE(X)
#undef X
        PROPOSER_COUNT
};
const char *proposer_name(enum proposer proposer);
const char *proposer_words(enum proposer proposer);

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
#define PROPOSER_LEAST 0.1
void proposers_judge(size_t n, const struct tried *tried, struct proposer_score out[PROPOSER_COUNT]);

struct candidate {
    struct strategy strategy;
    const char *proposer; /* a proposer's name, or a baseline's */
    double us;            /* predicted, with few passes; of an earlier one measured */
};

enum {
    CANDIDATES_EACH = 12,
    CANDIDATES_STARTS = 24,
    CANDIDATES_EARLIER = 8,
    CANDIDATES_MOST = CANDIDATES_EACH * PROPOSER_COUNT + CANDIDATES_STARTS + CANDIDATES_EARLIER
};

struct candidates {
    size_t n;
    struct candidate items[CANDIDATES_MOST]; /* no two alike, none of them tried */
};

/* What a search works on; all borrowed. */
struct search_context {
    const struct space *space;
    struct predictor *predictor;
    const struct starts *starts;
    /* Measured here before this session: climbed from and crossed, and the fastest are candidates once more. */
    size_t n_earlier;
    const struct tried *earlier;
};

/* How many strategies one step evaluates for this model: fewer for large ones, so that proposing takes about a second.
 */
size_t candidates_evaluations(const struct model *model);

/* What the proposers make, those of the starts (the first CANDIDATES_STARTS) and of the fastest earlier ones
 * (CANDIDATES_EARLIER, proposer "earlier") that were not tried in this session. The same arguments and state of rng
 * give the same candidates. Fails: ST_NO_MEMORY, and what predictions fail with beyond ST_INFEASIBLE and ST_TOO_LARGE.
 * Release with candidates_release. */
enum status candidates_make(const struct search_context *context, size_t evaluations, size_t n,
                            const struct tried *tried, struct rng *rng, struct candidates *out, struct error *err);
void candidates_release(struct candidates *candidates);

#endif
