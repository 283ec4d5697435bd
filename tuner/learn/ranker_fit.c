/* Held out examples are drawn within each domain, so that every domain has examples to train on, at least two, and
 * examples to judge by. */
#include "tuner/learn/ranker_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "simulator/learned/pairwise_accuracy.h"

enum { HOLD_OUT_STREAM = 0x4e1d, LEAST_TRAINED = 2 };

/* Places of examples, both lists in rising order of domains. */
struct split {
    size_t n_trained, n_held_out;
    uint32_t *trained, *held_out;
};

static size_t held_out_of(size_t n, double share) {
    const size_t held_out = (size_t)(share * (double)n + 0.5);
    const size_t most = n > LEAST_TRAINED ? n - LEAST_TRAINED : 0;
    return held_out < most ? held_out : most;
}

static enum status split_examples(const struct examples *e, const struct ranker_fit_options *o, struct arena *arena,
                                  struct split *out, struct error *err) {
    struct split s = {.trained = arena_alloc(arena, e->n, sizeof *s.trained),
                      .held_out = arena_alloc(arena, e->n, sizeof *s.held_out)};
    uint32_t *places = arena_alloc(arena, e->n, sizeof *places);
    if (!s.trained || !s.held_out || !places)
        return error_no_memory(err);
    for (size_t i = 0; i < e->n; i++)
        places[i] = (uint32_t)i;
    for (size_t d = 0; d < e->n_domains; d++) {
        const struct domain *domain = &e->domains[d];
        const size_t k = held_out_of(domain->n, o->held_out);
        uint32_t *own = places + domain->first;
        struct rng rng;
        rng_split(&rng, o->training.seed, HOLD_OUT_STREAM + d);
        if (k)
            rng_shuffle(&rng, domain->n, own);
        memcpy(s.held_out + s.n_held_out, own, k * sizeof *own);
        memcpy(s.trained + s.n_trained, own + k, (domain->n - k) * sizeof *own);
        s.n_held_out += k;
        s.n_trained += domain->n - k;
    }
    *out = s;
    return ST_OK;
}

static enum status check_split(const struct examples *e, const struct ranker_fit_options *o, const struct split *s,
                               struct error *err) {
    size_t most = 0;
    for (size_t d = 0; d < e->n_domains; d++)
        most = e->domains[d].n > most ? e->domains[d].n : most;
    if (most < LEAST_TRAINED)
        return error_set(err, ST_INVALID,
                         "%zu strategies were measured, no two of them on one model and cluster; a ranker learns from "
                         "pairs: measure more there (\"syncopate collect\" does)",
                         e->n);
    if (o->held_out > 0 && !s->n_held_out)
        return error_set(err, ST_INVALID,
                         "%g of at most %zu strategies a domain leaves none to hold out beside the %d that training "
                         "needs; hold out a larger share, or none",
                         o->held_out, most, LEAST_TRAINED);
    return ST_OK;
}

static enum status train(const struct examples *e, const struct ranker_fit_options *o, const struct split *split,
                         struct ranker_fit *out, struct error *err) {
    struct ranker_example *examples = arena_alloc(&out->arena, split->n_trained, sizeof *examples);
    if (!examples)
        return error_no_memory(err);
    for (size_t i = 0; i < split->n_trained; i++)
        examples[i] = e->examples[split->trained[i]];
    if (o->from)
        return ranker_fine_tune(o->from->ranker, &o->training, split->n_trained, examples, &out->ranker, &out->report,
                                err);
    return ranker_train(&o->training, split->n_trained, examples, &out->ranker, &out->report, err);
}

/* ---- judging ---- */

struct verdicts {
    double *us, *score, *timeline;
    uint32_t *domain;
};

static enum status score_places(const struct examples *e, const struct ranker *ranker, size_t n, const uint32_t *places,
                                struct verdicts *v, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        const struct ranker_example *example = &e->examples[places[i]];
        v->us[i] = example->us;
        v->timeline[i] = example->features->timeline_us;
        v->domain[i] = example->domain;
        st = ranker_score(ranker, example->features, &v->score[i], err);
    }
    return st;
}

static void judge_range(const struct verdicts *v, size_t first, size_t n, struct ranker_judgement *out) {
    out->ranker_accuracy = pairwise_accuracy(n, v->us + first, v->score + first, v->domain + first);
    out->timeline_accuracy = pairwise_accuracy(n, v->us + first, v->timeline + first, v->domain + first);
}

static void count_examples(const struct examples *e, size_t n, const uint32_t *places, bool held_out,
                           struct ranker_fit *fit) {
    for (size_t i = 0; i < n; i++) {
        struct ranker_judgement *of = &fit->domains[e->examples[places[i]].domain];
        *(held_out ? &of->held_out : &of->trained) += 1;
    }
    *(held_out ? &fit->all.held_out : &fit->all.trained) = n;
}

static enum status judge(const struct examples *e, const struct split *split, struct ranker_fit *fit,
                         struct error *err) {
    const bool held_out = split->n_held_out;
    const size_t n = held_out ? split->n_held_out : split->n_trained;
    const uint32_t *places = held_out ? split->held_out : split->trained;
    struct verdicts v = {arena_alloc(&fit->arena, n, sizeof(double)), arena_alloc(&fit->arena, n, sizeof(double)),
                         arena_alloc(&fit->arena, n, sizeof(double)), arena_alloc(&fit->arena, n, sizeof(uint32_t))};
    fit->domains = arena_alloc(&fit->arena, e->n_domains, sizeof *fit->domains);
    if (!v.us || !v.score || !v.timeline || !v.domain || !fit->domains)
        return error_no_memory(err);
    count_examples(e, split->n_trained, split->trained, false, fit);
    count_examples(e, split->n_held_out, split->held_out, true, fit);
    enum status st = score_places(e, fit->ranker, n, places, &v, err);
    if (st)
        return st;
    judge_range(&v, 0, n, &fit->all);
    for (size_t d = 0, first = 0; d < e->n_domains; d++) {
        struct ranker_judgement *domain = &fit->domains[d];
        const size_t own = held_out ? domain->held_out : domain->trained;
        judge_range(&v, first, own, domain);
        first += own;
    }
    return ST_OK;
}

static enum status describe_origin(const struct examples *e, const struct ranker_fit_options *o,
                                   const struct split *split, struct ranker_fit *fit, struct error *err) {
    enum status st = ranker_origin_of(e, split->n_trained, split->trained, &fit->arena, &fit->origin, err);
    if (st)
        return st;
    fit->origin.from = o->from ? o->from->id.hex : NULL;
    fit->origin.n_held_out = split->n_held_out;
    fit->origin.held_out_accuracy = split->n_held_out ? fit->all.ranker_accuracy : NAN;
    fit->origin.timeline_accuracy = fit->all.timeline_accuracy;
    return ST_OK;
}

enum status ranker_fit_run(const struct examples *e, const struct ranker_fit_options *o, struct ranker_fit *out,
                           struct error *err) {
    struct ranker_fit fit = {.ranker = NULL};
    struct split split = {.n_trained = 0};
    enum status st = split_examples(e, o, &fit.arena, &split, err);
    if (!st)
        st = check_split(e, o, &split, err);
    if (!st)
        st = train(e, o, &split, &fit, err);
    if (!st)
        st = judge(e, &split, &fit, err);
    if (!st)
        st = describe_origin(e, o, &split, &fit, err);
    if (st)
        ranker_fit_release(&fit);
    else
        *out = fit;
    return st;
}

void ranker_fit_name(const struct ranker_fit *fit, char *out, size_t n) {
    const char *kind = ranker_kind_name(ranker_kind_of(fit->ranker));
    const struct ranker_origin *o = &fit->origin;
    if (o->n_domains == 1)
        snprintf(out, n, "%s-%.60s-%.60s", kind, o->domains->model_name, o->domains->cluster_name);
    else
        snprintf(out, n, "%s-%zu-domains", kind, o->n_domains);
}

void ranker_fit_release(struct ranker_fit *fit) {
    ranker_free(fit->ranker);
    arena_release(&fit->arena);
    *fit = (struct ranker_fit){.ranker = NULL};
}
