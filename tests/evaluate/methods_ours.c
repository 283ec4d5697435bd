/* See methods.h. The advisor is the session's (tuner/search/advisor.h), and so is training on: from LEARNER_LEAST
 * trials, after each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/evaluate/methods.h"
#include "tuner/learn/learner.h"
#include "tuner/search/advisor.h"

struct state {
    struct ranker *tuned; /* NULL until enough was tried */
    struct advisor_observation *observed;
    const struct features **candidates;
    size_t *left;
};

static void *ours_open(const struct method *method, struct play *play) {
    const size_t n = play->pool->n;
    struct state *s = calloc(1, sizeof *s);
    struct error err;
    (void)method;
    check(s ? ST_OK : error_no_memory(&err), &err);
    s->observed = calloc(n, sizeof *s->observed);
    s->candidates = calloc(n, sizeof *s->candidates);
    s->left = calloc(n, sizeof *s->left);
    check(s->observed && s->candidates && s->left ? ST_OK : error_no_memory(&err), &err);
    return s;
}

static void ours_close(void *state) {
    struct state *s = state;
    ranker_free(s->tuned);
    free(s->observed);
    free(s->candidates);
    free(s->left);
    free(s);
}

static void tune(struct state *s, const struct ours *settings, struct play *play) {
    struct ranker_options options = ranker_default_options(settings->kind);
    struct arena scratch = {0};
    struct error err;
    struct ranker_example *examples = allocate(&scratch, play->n_tried, sizeof *examples);
    options.seed = play->seed;
    options.validation = 0;
    for (size_t i = 0; i < play->n_tried; i++)
        examples[i] = play->pool->examples[play->tried[i]];
    ranker_free(s->tuned);
    check(ranker_fine_tune(pool_ranker(play->pool, settings->kind), &options, play->n_tried, examples, &s->tuned, NULL,
                           &err),
          &err);
    arena_release(&scratch);
}

static const struct ranker *prior(struct state *s, const struct ours *settings, struct play *play) {
    if (!settings->ranker)
        return NULL;
    if (settings->fine_tuned && play->n_tried >= LEARNER_LEAST)
        tune(s, settings, play);
    return s->tuned ? s->tuned : pool_ranker(play->pool, settings->kind);
}

/* A framework default that is in the pool and not yet tried; SIZE_MAX: none. */
static size_t untried_baseline(const struct play *play) {
    static const char *const defaults[] = {"horovod", "pytorch-ddp"};
    for (size_t k = 0; k < sizeof defaults / sizeof *defaults; k++)
        for (size_t i = 0; i < play->pool->n; i++)
            if (!play->taken[i] && !strcmp(play->pool->strategies[i].name, defaults[k]))
                return i;
    return SIZE_MAX;
}

static const struct features *seen(const struct pool *pool, const struct ours *settings, size_t entry) {
    return settings->blind ? &pool->blind[entry] : pool->examples[entry].features;
}

size_t ours_next(void *state, const struct method *method, struct play *play, double *gain) {
    const struct ours *settings = method->settings;
    struct state *s = state;
    struct error err;
    size_t pick;
    if (settings->baselines && (pick = untried_baseline(play)) != SIZE_MAX) {
        if (gain)
            *gain = INFINITY;
        return pick;
    }
    struct advisor_options options = advisor_default_options();
    options.ranker = prior(s, settings, play);
    options.process = settings->process;
    options.diversity *= settings->diversity;
    for (size_t i = 0; i < play->n_tried; i++)
        s->observed[i] = (struct advisor_observation){seen(play->pool, settings, play->tried[i]), play_us(play, i)};
    play_untried(play, s->left);
    for (size_t i = 0; i < play->n_left; i++)
        s->candidates[i] = seen(play->pool, settings, s->left[i]);
    check(advisor_rank(&options, play->n_tried, s->observed, play->n_left, s->candidates, 1, &pick, NULL, gain, &err),
          &err);
    return s->left[pick];
}

static size_t next(void *state, const struct method *method, struct play *play) {
    return ours_next(state, method, play, NULL);
}

struct method method_ours(const char *name, const char *words, const struct ours *settings) {
    return (struct method){
        .name = name, .words = words, .settings = settings, .open = ours_open, .next = next, .close = ours_close};
}
