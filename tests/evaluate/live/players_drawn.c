/* See players.h. Strategies drawn by AutoSync's constraints (space_sample_guided): bred from the fastest tried; or
 * chosen as in AutoSync §3.2, for a low predicted rank and little likeness to what was tried. AutoSync's predictions
 * come from the closed form of §3.1.1 at first, then from a recurrent network trained on the play's trials by equation
 * 3, anew every RETRAIN trials. The network sees no timeline. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "simulator/closed_form.h"
#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/live/players.h"
#include "tests/support/tuner/selection.h"
#include "tuner/search/genetic.h"

enum { FIRST_BRED = 8, BLIND_DRAWN = 32, DRAWN = 256, FIRST_TRAINED = 5, RETRAIN = 5 };
static const double LIKENESS = 0.3; /* what a wholly new strategy is worth, in ranks */

struct state {
    struct stage *stage;
    uint64_t seed;
    struct rng rng;
    size_t n;
    const struct strategy *tried[PLAY_TRIALS];
    double us[PLAY_TRIALS];
    struct features features[PLAY_TRIALS]; /* AutoSync's */
    struct ranker *ranker;
    size_t trained; /* on so many trials */
};

static void *drawn_open(const struct player *player, struct stage *stage, uint64_t seed) {
    struct state *s = allocate_heap(1, sizeof *s);
    (void)player;
    s->stage = stage;
    s->seed = seed;
    rng_split(&s->rng, seed, stage->number);
    return s;
}

static void drawn_tell(void *state, const struct strategy *strategy, double us) {
    struct state *s = state;
    s->tried[s->n] = strategy;
    s->us[s->n++] = us;
}

static void drawn_close(void *state) {
    struct state *s = state;
    for (size_t i = 0; i < s->n; i++)
        features_release(&s->features[i]);
    ranker_free(s->ranker);
    free(s);
}

static void draw(struct state *s, struct strategy *out) {
    struct error err;
    check(space_sample_guided(&s->stage->space, &s->rng, out, &err), &err);
}

/* ---- genetic ---- */

static void genetic_ask(void *state, struct strategy *out) {
    const struct genetic_options options = genetic_default_options();
    struct genetic_parent parents[PLAY_TRIALS];
    struct state *s = state;
    struct error err;
    size_t made;
    if (s->n < FIRST_BRED) {
        draw(s, out);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        parents[i] = (struct genetic_parent){s->tried[i], s->us[i]};
    check(genetic_propose(&s->stage->space, &options, s->n, parents, &s->rng, 1, out, &made, &err), &err);
}

const struct player player_genetic = {.name = "genetic",
                                      .words = "8 drawn by AutoSync's constraints, then children of the fastest tried",
                                      .open = drawn_open,
                                      .ask = genetic_ask,
                                      .tell = drawn_tell,
                                      .close = drawn_close};

/* ---- AutoSync ---- */

/* Of candidates[n] the one with the least score, likeness to what was tried weighed in; the others are released. */
static void choose(const struct state *s, size_t n, struct strategy *candidates, const double *scores, double weight,
                   struct strategy *out) {
    const struct strategy *items[DRAWN + PLAY_TRIALS];
    const struct selection_strategies context = {&s->stage->space, items};
    const struct selection selection = {n, s->n, scores, weight, selection_similarity_of_strategies, &context};
    size_t chosen, count;
    struct error err;
    for (size_t i = 0; i < n; i++)
        items[i] = &candidates[i];
    for (size_t i = 0; i < s->n; i++)
        items[n + i] = s->tried[i];
    check(selection_choose(&selection, 1, &chosen, &count, &err), &err);
    for (size_t i = 0; i < n; i++)
        if (i != chosen)
            strategy_release(&candidates[i]);
    *out = candidates[chosen];
}

static void blind_ask(void *state, struct strategy *out) {
    const double scores[BLIND_DRAWN] = {0};
    struct strategy candidates[BLIND_DRAWN];
    struct state *s = state;
    for (size_t i = 0; i < BLIND_DRAWN; i++)
        draw(s, &candidates[i]);
    choose(s, BLIND_DRAWN, candidates, scores, 1, out);
}

const struct player player_autosync_blind = {.name = "AutoSync, no ranker",
                                             .words = "the most unlike of 32 drawn",
                                             .open = drawn_open,
                                             .ask = blind_ask,
                                             .tell = drawn_tell,
                                             .close = drawn_close};

/* What AutoSync's network sees: no timeline ever ran. */
static void describe(const struct stage *stage, const struct strategy *strategy, const struct plan *plan,
                     struct features *out) {
    const struct timeline_terms none = {.iteration_us = 1};
    struct error err;
    check(features_of(strategy, plan, &stage->predictor.cost, &none, out, &err), &err);
}

static double score_of(const struct state *s, const struct strategy *strategy) {
    const struct domain *d = s->stage->domain;
    struct plan plan;
    struct prediction p;
    struct features features;
    struct error err;
    double score;
    check(plan_lower(&d->model, &d->cluster, strategy, &plan, &err), &err);
    if (s->ranker) {
        describe(s->stage, strategy, &plan, &features);
        check(ranker_score(s->ranker, &features, &score, &err), &err);
        features_release(&features);
    } else {
        check(closed_form_run(&plan, &s->stage->predictor.cost, &p, &err), &err);
        score = p.iteration_us;
    }
    plan_release(&plan);
    return score;
}

static void retrain(struct state *s) {
    struct ranker_options options = ranker_default_options(RANKER_rnn);
    struct ranker_example examples[PLAY_TRIALS];
    struct error err;
    size_t n = 0;
    options.residual = false;
    options.seed = s->seed;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->us[i]))
            examples[n++] = (struct ranker_example){&s->features[i], s->us[i], 0};
    s->trained = s->n;
    if (n < FIRST_TRAINED)
        return;
    ranker_free(s->ranker);
    s->ranker = NULL;
    check(ranker_train(&options, n, examples, &s->ranker, NULL, &err), &err);
}

static void autosync_ask(void *state, struct strategy *out) {
    struct state *s = state;
    struct strategy candidates[DRAWN];
    double scores[DRAWN], ranks[DRAWN];
    struct error err;
    if (s->n >= FIRST_TRAINED && s->n >= s->trained + RETRAIN)
        retrain(s);
    for (size_t i = 0; i < DRAWN; i++) {
        draw(s, &candidates[i]);
        scores[i] = score_of(s, &candidates[i]);
    }
    check(selection_ranks(DRAWN, scores, ranks, &err), &err);
    choose(s, DRAWN, candidates, ranks, LIKENESS, out);
}

static void autosync_tell(void *state, const struct strategy *strategy, double us) {
    struct state *s = state;
    const struct domain *d = s->stage->domain;
    struct plan plan;
    struct error err;
    check(plan_lower(&d->model, &d->cluster, strategy, &plan, &err), &err);
    describe(s->stage, strategy, &plan, &s->features[s->n]);
    plan_release(&plan);
    drawn_tell(state, strategy, us);
}

const struct player player_autosync = {.name = "AutoSync",
                                       .words = "of 256 drawn, by the closed form, from 5 trials on by a network",
                                       .open = drawn_open,
                                       .ask = autosync_ask,
                                       .tell = autosync_tell,
                                       .close = drawn_close};
