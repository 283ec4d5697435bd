/* See methods.h. AutoSync §3.2: candidates are chosen for a low predicted rank and little likeness to each other and to
 * what was tried (tests/support/tuner/selection.h). Its predictions come from the closed form of §3.1.1 at first, then
 * from a recurrent network trained on the play's trials by equation 3, anew every RETRAIN trials. The network sees no
 * timeline. */
#include <math.h>
#include <stdlib.h>

#include "tests/evaluate/methods.h"
#include "tests/support/tuner/selection.h"

enum { RETRAIN = 5, FIRST = 5, DRAWN = 32 };
static const double LIKENESS = 0.3; /* what a wholly new strategy is worth, in ranks */

/* Candidates and then what was tried, as places in the pool. */
struct likeness {
    const struct play *play;
    const size_t *candidates;
    size_t n;
};

static enum status likeness_of(const void *context, size_t a, size_t b, double *out, struct error *err) {
    const struct likeness *in = context;
    const struct pool *pool = in->play->pool;
    const size_t other = b < in->n ? in->candidates[b] : in->play->tried[b - in->n];
    (void)err;
    *out = pool->likeness[in->candidates[a] * pool->n + other];
    return ST_OK;
}

static size_t choose(const struct play *play, size_t n, const size_t *candidates, const double *scores, double weight) {
    const struct likeness context = {play, candidates, n};
    const struct selection selection = {n, play->n_tried, scores, weight, likeness_of, &context};
    size_t chosen, count;
    struct error err;
    check(selection_choose(&selection, 1, &chosen, &count, &err), &err);
    return candidates[chosen];
}

/* The least like anything tried of DRAWN random candidates. */
static size_t blind_next(void *state, const struct method *method, struct play *play) {
    const size_t n = play->n_left < DRAWN ? play->n_left : DRAWN;
    const double scores[DRAWN] = {0};
    struct arena scratch = {0};
    size_t *left = allocate(&scratch, play->n_left, sizeof *left);
    (void)state, (void)method;
    play_untried(play, left);
    for (size_t i = 0; i < n; i++) {
        const size_t j = i + (size_t)rng_below(&play->rng, play->n_left - i), drawn = left[j];
        left[j] = left[i];
        left[i] = drawn;
    }
    const size_t pick = choose(play, n, left, scores, 1);
    arena_release(&scratch);
    return pick;
}

const struct method method_autosync_blind = {
    .name = "AutoSync, no ranker", .words = "the most unlike of 32 drawn", .chance = true, .next = blind_next};

struct autosync {
    struct ranker *ranker;
    size_t trained; /* on so many trials */
};

static void *autosync_open(const struct method *method, struct play *play) {
    struct autosync *a = calloc(1, sizeof *a);
    struct error err;
    (void)method, (void)play;
    check(a ? ST_OK : error_no_memory(&err), &err);
    return a;
}

static void retrain(struct autosync *a, const struct play *play) {
    struct ranker_options options = ranker_default_options(RANKER_rnn);
    struct arena scratch = {0};
    struct error err;
    struct ranker_example *examples = allocate(&scratch, play->n_tried, sizeof *examples);
    options.residual = false;
    options.seed = play->seed;
    for (size_t i = 0; i < play->n_tried; i++)
        examples[i] = (struct ranker_example){&play->pool->blind[play->tried[i]], play_us(play, i), 0};
    ranker_free(a->ranker);
    check(ranker_train(&options, play->n_tried, examples, &a->ranker, NULL, &err), &err);
    a->trained = play->n_tried;
    arena_release(&scratch);
}

static size_t autosync_next(void *state, const struct method *method, struct play *play) {
    struct autosync *a = state;
    struct arena scratch = {0};
    struct error err;
    size_t *left = allocate(&scratch, play->n_left, sizeof *left);
    double *scores = allocate(&scratch, 2 * play->n_left, sizeof *scores), *ranks = scores + play->n_left;
    (void)method;
    if (play->n_tried >= FIRST && play->n_tried >= a->trained + RETRAIN)
        retrain(a, play);
    play_untried(play, left);
    for (size_t i = 0; i < play->n_left; i++)
        if (a->ranker)
            check(ranker_score(a->ranker, &play->pool->blind[left[i]], &scores[i], &err), &err);
        else
            scores[i] = play->pool->closed_us[left[i]];
    check(selection_ranks(play->n_left, scores, ranks, &err), &err);
    const size_t pick = choose(play, play->n_left, left, ranks, LIKENESS);
    arena_release(&scratch);
    return pick;
}

static void autosync_close(void *state) {
    struct autosync *a = state;
    ranker_free(a->ranker);
    free(a);
}

const struct method method_autosync = {.name = "AutoSync",
                                       .words = "closed form for 5 trials, then a network trained on the trials",
                                       .chance = true,
                                       .slow = true,
                                       .open = autosync_open,
                                       .next = autosync_next,
                                       .close = autosync_close};
