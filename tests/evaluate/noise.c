/* How well can anything rank, when the times it is judged by are noisy themselves?
 *
 * A trial's figure is the median of its iterations. Its variance, of the logarithm, has two parts. What one run's
 * iterations show: the bootstrap, medians of RESAMPLES draws with replacement of the same iterations. And what changes
 * from run to run, which no single run shows: of the examples that were tried more than once, how much more the
 * logarithms of their medians scatter than the first part explains, pooled over the corpus; with fewer than
 * LEAST_REPEATED of these, two trials would decide, and it is left out.
 * Slow drift within a run stays unseen, so the ceilings are upper bounds.
 *
 * Of a pair with logarithms of times d apart and the variances' sum s^2, and no other knowledge, the true difference is
 * normal with mean d and deviation s. A ranker that knew the true times would agree with the measurement with
 * probability Phi(d / s), a second measurement, which has noise of its own, with Phi(d / (s sqrt 2)). A ceiling is the
 * mean over pairs. O(iterations RESAMPLES log iterations) a trial, O(1) a pair. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/statistics.h"
#include "dataset/query.h"
#include "tests/evaluate/evaluate.h"

enum { RESAMPLES = 100, LEAST_REPEATED = 10 };

/* Of an example's trials. */
struct tally {
    size_t n;
    double sum, squares; /* of log(median) */
    double within;       /* sum of what iterations show */
};

static double variance_within(const struct record *r, struct rng *rng, struct arena *scratch) {
    double *draw = allocate(scratch, r->n_iterations, sizeof *draw);
    double sum = 0, squares = 0;
    if (r->n_iterations == 0)
        return 0;
    for (size_t k = 0; k < RESAMPLES; k++) {
        for (size_t i = 0; i < r->n_iterations; i++)
            draw[i] = r->iterations_us[rng_below(rng, r->n_iterations)];
        const double x = log(median_of(r->n_iterations, draw) / r->median_us);
        sum += x;
        squares += x * x;
    }
    arena_clear(scratch);
    return fmax(0, squares / RESAMPLES - (sum / RESAMPLES) * (sum / RESAMPLES));
}

static struct tally *tally_of(const struct corpus *corpus, const struct record *r, struct tally *tallies) {
    for (size_t d = 0; d < corpus->examples.n_domains; d++) {
        const struct domain *domain = corpus_domain(corpus, d);
        if (strcmp(domain->model.id.hex, r->model) != 0 || strcmp(domain->cluster.id.hex, r->cluster) != 0)
            continue;
        for (size_t i = domain->first; i < domain->first + domain->n; i++)
            if (strcmp(corpus->examples.strategies[i].id.hex, r->strategy) == 0)
                return &tallies[i];
    }
    return NULL;
}

static double variance_between(size_t n, const struct tally *tallies, size_t *repeated) {
    double sum = 0, freedom = 0;
    *repeated = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tally *t = &tallies[i];
        const double count = (double)t->n;
        if (t->n < 2)
            continue;
        sum += (t->squares - t->sum * t->sum / count) - t->within / count * (count - 1);
        freedom += count - 1;
        ++*repeated;
    }
    return *repeated >= LEAST_REPEATED ? fmax(0, sum / freedom) : 0;
}

void noise_estimate(struct corpus *corpus, struct store *store) {
    struct error err;
    struct arena arena = {0}, scratch = {0};
    struct rng rng;
    struct record *records;
    size_t n_records;
    const size_t n = corpus->examples.n;
    const enum record_state complete = RECORD_COMPLETE;
    struct tally *tallies = allocate(&arena, n, sizeof *tallies);
    check(query_collect(store, &(struct query){.state = &complete, .iterations = true}, &arena, &n_records, &records,
                        &err),
          &err);
    rng_seed(&rng, 1);
    for (size_t i = 0; i < n_records; i++) {
        struct tally *t = tally_of(corpus, &records[i], tallies);
        const double x = log(records[i].median_us);
        if (!t)
            continue;
        t->n++;
        t->sum += x;
        t->squares += x * x;
        t->within += variance_within(&records[i], &rng, &scratch);
    }
    const double between = variance_between(n, tallies, &corpus->repeated);
    corpus->variance = allocate(&corpus->arena, n, sizeof *corpus->variance);
    for (size_t i = 0; i < n; i++) {
        const double count = fmax(1, (double)tallies[i].n);
        corpus->variance[i] = (tallies[i].within / count + between) / count;
    }
    arena_release(&scratch);
    arena_release(&arena);
}

static double normal_below(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2);
}

struct ceiling noise_ceiling(const struct corpus *corpus, struct places places) {
    double truth[MARGINS] = {0}, second[MARGINS] = {0}, pairs[MARGINS] = {0};
    struct ceiling out;
    for (size_t i = 0; i < places.n; i++) {
        for (size_t j = 0; j < places.n; j++) {
            const uint32_t a = places.place[i], b = places.place[j];
            const double fast = corpus->examples.examples[a].us, slow = corpus->examples.examples[b].us;
            const double s = sqrt(corpus->variance[a] + corpus->variance[b]), d = log(slow / fast);
            for (size_t m = 0; m < MARGINS && slow > fast * (1 + MARGIN[m]); m++) {
                pairs[m]++;
                truth[m] += s > 0 ? normal_below(d / s) : 1;
                second[m] += s > 0 ? normal_below(d / s * M_SQRT1_2) : 1;
            }
        }
    }
    for (size_t m = 0; m < MARGINS; m++) {
        out.truth.of[m] = truth[m] / pairs[m];
        out.second.of[m] = second[m] / pairs[m];
    }
    return out;
}
