/* Which candidates are worth a trial: a prior from the simulator and a learned ranker, corrected by the trials here.
 *
 * The logarithm of a strategy's time is taken to be prior(x) + g(x) + noise, where prior is the learned ranker's
 * prediction (or the timeline's, without one) and g a Gaussian process over the strategy's sketch
 * (tuner/search/sketch.h), fitted to the trials of this domain. Candidates are compared by log expected improvement,
 * less a penalty for likeness to what was tried (AutoSync §3.2); when several are wanted, each is chosen as if those
 * before it had measured as expected. With fewer than ADVISOR_LEAST trials the order is the prior's, less the same
 * penalty.
 * Units: microseconds; deviations and gains are of logarithms, so 0.02 is 2%. Threads: one at a time. */
#ifndef TUNER_SEARCH_ADVISOR_H
#define TUNER_SEARCH_ADVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "featurize/features.h"
#include "simulator/learned/ranker.h"

struct advisor_options {
    const struct ranker *ranker; /* residual; borrowed; NULL: the timeline is the prior */
    bool process;                /* false: the prior alone decides */
    double diversity;            /* weight of likeness, in units of the logarithm of time; 100 times that in log EI */
};
enum { ADVISOR_LEAST = 4 };
struct advisor_options advisor_default_options(void);

struct advisor_observation {
    const struct features *features;
    double us; /* INFINITY: did not complete; it counts as twice the slowest */
};

struct advice {
    double mean_us;   /* posterior median of the time */
    double deviation; /* of its logarithm; NaN when the prior decides */
    double score;     /* what was compared; the higher, the sooner */
};

/* Judge n candidates after n_observed trials, and choose `wanted` of them (no more than n): their places into order[],
 * the first to be tried first. out[n] may be NULL. *gain is the largest expected improvement of all candidates,
 * relative to the best so far, for a session that stops when little is to be gained; INFINITY while the prior decides;
 * may be NULL. Fails: ST_INVALID (n or wanted 0), ST_NUMERIC, ST_NO_MEMORY. O(n_observed^3 + n n_observed (n_observed +
 * wanted)). */
enum status advisor_rank(const struct advisor_options *options, size_t n_observed,
                         const struct advisor_observation *observed, size_t n, const struct features *const *candidates,
                         size_t wanted, size_t *order, struct advice *out, double *gain, struct error *err);

#endif
