/* See proposals.h. Every trial so far is described again for each proposal, because the predictor's corrections have
 * moved since. That costs as much as a few dozen of the 150 to 2000 predictions behind the candidates. */
#include "tuner/search/proposals.h"

#include <math.h>
#include <stdlib.h>

/* The features of what the advisor judges. */
struct described {
    size_t n_tried, n;
    struct features *features; /* the tried, then the candidates */
    struct advisor_observation *observed;
    const struct features **candidates;
    struct advice *advice;
};

static void described_release(struct described *d) {
    for (size_t i = 0; d->features && i < d->n_tried + d->n; i++)
        features_release(&d->features[i]);
    free(d->features);
    free(d->observed);
    free(d->candidates);
    free(d->advice);
}

/* Trials whose strategy cannot be predicted are left out; trials that still run count as if they had measured the
 * expected time. */
static enum status describe_tried(struct described *d, struct predictor *predictor, size_t n, const struct tried *tried,
                                  struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        struct features *f = &d->features[d->n_tried];
        st = predictor_features(predictor, tried[i].strategy, f, NULL, err);
        if (!st)
            d->observed[d->n_tried++] =
                (struct advisor_observation){f, tried[i].expected_us > 0 ? tried[i].expected_us : tried[i].us};
        if (st == ST_INFEASIBLE || st == ST_TOO_LARGE)
            st = ST_OK;
    }
    return st;
}

static enum status describe(struct described *d, const struct search_context *context, struct predictor *predictor,
                            size_t n, const struct tried *tried, const struct candidates *candidates,
                            struct error *err) {
    size_t observed = context->n_earlier + n;
    d->features = calloc(observed + candidates->n, sizeof *d->features);
    d->observed = calloc(observed + 1, sizeof *d->observed);
    d->candidates = calloc(candidates->n, sizeof *d->candidates);
    d->advice = calloc(candidates->n, sizeof *d->advice);
    if (!d->features || !d->observed || !d->candidates || !d->advice)
        return error_no_memory(err);
    enum status st = describe_tried(d, predictor, context->n_earlier, context->earlier, err);
    if (!st)
        st = describe_tried(d, predictor, n, tried, err);
    for (; d->n < candidates->n && !st; d->n++) {
        struct features *f = &d->features[d->n_tried + d->n];
        d->candidates[d->n] = f;
        st = predictor_features(predictor, &candidates->items[d->n].strategy, f, NULL, err);
        if (st)
            break;
    }
    return st;
}

/* The candidate to take out of the list. */
static enum status judge(const struct search_context *context, struct predictor *predictor,
                         const struct advisor_options *advisor, size_t n, const struct tried *tried,
                         const struct candidates *candidates, size_t *chosen, struct proposal *out, struct error *err) {
    struct described d = {0};
    bool was_brief = predictor->brief;
    predictor->brief = true;
    enum status st = describe(&d, context, predictor, n, tried, candidates, err);
    if (!st)
        st = advisor_rank(advisor, d.n_tried, d.observed, d.n, d.candidates, 1, chosen, d.advice, &out->gain, err);
    if (!st)
        out->predicted_us = d.advice[*chosen].mean_us;
    predictor->brief = was_brief;
    described_release(&d);
    return st;
}

enum status proposal_next(const struct search_context *context, struct predictor *described,
                          const struct proposal_options *options, size_t n, const struct tried *tried, struct rng *rng,
                          struct proposal *out, struct error *err) {
    struct candidates candidates;
    struct proposal proposal = {0};
    struct prediction prediction;
    struct predictor *judging = options->advisor.ranker ? described : context->predictor;
    size_t chosen = 0, evaluations = options->evaluations;
    if (!evaluations)
        evaluations = candidates_evaluations(context->space->model);
    enum status st = candidates_make(context, evaluations, n, tried, rng, &candidates, err);
    if (st)
        return st;
    if (!candidates.n)
        return error_set(err, ST_NOT_FOUND, "no candidate that was not tried before");
    st = judge(context, judging, &options->advisor, n, tried, &candidates, &chosen, &proposal, err);
    if (!st)
        st = predictor_run(context->predictor, &candidates.items[chosen].strategy, &prediction, err);
    if (!st) {
        proposal.strategy = candidates.items[chosen].strategy;
        proposal.proposer = candidates.items[chosen].proposer;
        proposal.timeline_us = prediction.iteration_us;
        candidates.items[chosen] = candidates.items[--candidates.n];
        *out = proposal;
    }
    candidates_release(&candidates);
    return st;
}
