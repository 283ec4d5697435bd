/* See methods.h. Grid, momentum and Bayesian optimization search the box of pool.h; children of the genetic search
 * stand for the untried entry that is most like them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/evaluate/methods.h"
#include "tests/support/feature_columns.h"
#include "tests/support/strategy/similarity.h"
#include "tests/support/tuner/reference.h"
#include "tuner/search/acquisition.h"
#include "tuner/search/bayes_score.h"
#include "tuner/search/genetic.h"

static size_t random_next(void *state, const struct method *method, struct play *play) {
    (void)state, (void)method;
    return play_random(play);
}

const struct method method_random = {.name = "random", .words = "any", .chance = true, .next = random_next};

/* ---- the searchers of reference.h ---- */

static void *reference_open(const struct method *method, struct play *play) {
    struct searcher *s = calloc(1, sizeof *s);
    struct error err;
    check(s ? ST_OK : error_no_memory(&err), &err);
    check(reference_find(method->name)->open(POOL_BOX, play->seed, s, &err), &err);
    return s;
}

/* It is told of the last entry before it is asked for the next. */
static size_t reference_next(void *state, const struct method *method, struct play *play) {
    const struct searcher *s = state;
    double x[POOL_BOX];
    (void)method;
    if (play->n_tried)
        s->tell(s->state, play_us(play, play->n_tried - 1));
    s->ask(s->state, x);
    return play_nearest(play, x);
}

static void reference_close(void *state) {
    struct searcher *s = state;
    s->close(s->state);
    free(s);
}

const struct method method_grid = {.name = "grid",
                                   .words = "grids over 6 knobs, coarse ones first",
                                   .chance = true,
                                   .open = reference_open,
                                   .next = reference_next,
                                   .close = reference_close};
const struct method method_momentum = {.name = "momentum",
                                       .words = "gradient steps with momentum over 6 knobs",
                                       .chance = true,
                                       .open = reference_open,
                                       .next = reference_next,
                                       .close = reference_close};

/* ---- genetic ---- */

enum { GENETIC_FIRST = 8 };

static size_t most_like(const struct play *play, const struct strategy *child) {
    size_t nearest = SIZE_MAX;
    double most = -1, likeness;
    struct error err;
    for (size_t i = 0; i < play->pool->n; i++) {
        if (play->taken[i])
            continue;
        check(space_similarity(&play->pool->space, child, &play->pool->strategies[i], &likeness, &err), &err);
        if (likeness > most) {
            most = likeness;
            nearest = i;
        }
    }
    return nearest;
}

static size_t genetic_next(void *state, const struct method *method, struct play *play) {
    const struct genetic_options options = genetic_default_options();
    struct arena scratch = {0};
    struct strategy child;
    struct error err;
    size_t made;
    (void)state, (void)method;
    if (play->n_tried < GENETIC_FIRST)
        return play_random(play);
    struct genetic_parent *parents = allocate(&scratch, play->n_tried, sizeof *parents);
    for (size_t i = 0; i < play->n_tried; i++)
        parents[i] = (struct genetic_parent){&play->pool->strategies[play->tried[i]], play_us(play, i)};
    check(genetic_propose(&play->pool->space, &options, play->n_tried, parents, &play->rng, 1, &child, &made, &err),
          &err);
    arena_release(&scratch);
    const size_t pick = most_like(play, &child);
    strategy_release(&child);
    return pick;
}

const struct method method_genetic = {.name = "genetic",
                                      .words = "8 at random, then children of the fastest tried",
                                      .chance = true,
                                      .next = genetic_next};

/* ---- Bayesian optimization ---- */

/* What a process sees of an entry. */
struct bayes_view {
    size_t columns, first; /* trials at random before the process is asked */
    bool one_length;       /* all columns share a length scale */
    void (*describe)(const struct pool *pool, size_t entry, double *x);
    const double *theta; /* [3] fixed parameters; NULL: fitted */
    double margin;       /* improvement that does not count */
};

static void describe_box(const struct pool *pool, size_t entry, double *x) {
    for (size_t k = 0; k < POOL_BOX; k++)
        x[k] = pool->box[entry * POOL_BOX + k];
}

/* Logarithms to base 2 over 10, as the advisor scales them. */
static void describe_knobs(const struct pool *pool, size_t entry, double *x) {
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        if (is_knob(k)) {
            const bool size = strncmp(feature_global_name(k), "log2_", 5) == 0;
            *x++ = pool->examples[entry].features->global[k] / (size ? 10 : 1);
        }
}

/* In MB. */
static void describe_sizes(const struct pool *pool, size_t entry, double *x) {
    const double *global = pool->examples[entry].features->global;
    x[0] = exp2(global[FEATURE_GLOBAL_log2_group_bytes]) / 1e6;
    x[1] = exp2(global[FEATURE_GLOBAL_log2_credit]) / 1e6;
}

static size_t count_knobs(void) {
    size_t n = 0;
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        n += is_knob(k);
    return n;
}

/* The least posterior mean of what was tried. */
static double incumbent(const struct gp *gp, size_t n, double *means) {
    double best = INFINITY;
    gp_observed_means(gp, means);
    for (size_t i = 0; i < n; i++)
        best = fmin(best, means[i]);
    return best;
}

/* Log expected improvement: a pool's entry has one recorded time, so no trial is repeated. */
static void score_plainly(struct gp *gp, size_t n, const double *rows, double best, double *score,
                          struct arena *scratch) {
    double *mean = allocate(scratch, n, sizeof *mean), *variance = allocate(scratch, n, sizeof *variance);
    gp_predict(gp, n, rows, NULL, mean, variance);
    for (size_t i = 0; i < n; i++)
        score[i] = acquisition_log_ei(best, mean[i], sqrt(variance[i]));
}

static size_t bayes_next(void *state, const struct method *method, struct play *play) {
    const struct bayes_view *view = method->settings;
    const size_t d = view->columns ? view->columns : count_knobs();
    struct arena scratch = {0};
    struct gp *gp;
    struct error err;
    (void)state;
    if (play->n_tried < view->first)
        return play_random(play);
    size_t *input_of = allocate(&scratch, d, sizeof *input_of), *left = allocate(&scratch, play->n_left, sizeof *left);
    double *x = allocate(&scratch, play->n_tried * d, sizeof *x), *y = allocate(&scratch, play->n_tried, sizeof *y);
    double *rows = allocate(&scratch, play->n_left * d, sizeof *rows);
    double *score = allocate(&scratch, play->n_left, sizeof *score);
    for (size_t i = 0; i < play->n_tried; i++) {
        view->describe(play->pool, play->tried[i], x + i * d);
        y[i] = log(play_us(play, i));
    }
    play_untried(play, left);
    for (size_t i = 0; i < play->n_left; i++)
        view->describe(play->pool, left[i], rows + i * d);
    const struct gp_data data = {.n = play->n_tried, .x = x, .y = y};
    check(gp_new(d, view->one_length ? input_of : NULL, &gp, &err), &err);
    check(view->theta ? gp_condition(gp, view->theta, &data, &err) : gp_fit(gp, &data, &err), &err);
    score_plainly(gp, play->n_left, rows, incumbent(gp, play->n_tried, y) - view->margin, score, &scratch);
    const size_t pick = left[bayes_choose(play->n_left, score)];
    gp_free(gp);
    arena_release(&scratch);
    return pick;
}

static const struct bayes_view box_view = {.columns = POOL_BOX, .first = POOL_BOX + 1, .describe = describe_box};
static const struct bayes_view knobs_view = {.first = POOL_BOX + 1, .one_length = true, .describe = describe_knobs};
/* Signal 1, noise 0.64 and one length scale of 1 for MB of either knob. */
static const double horovod_theta[] = {0, -0.4462871026, 0};
static const struct bayes_view horovod_view = {
    .columns = 2, .first = 4, .one_length = true, .describe = describe_sizes, .theta = horovod_theta, .margin = 0.01};

const struct method method_bayes = {.name = "BO, 6 knobs",
                                    .words = "a process over the box, no prior; 7 at random first",
                                    .chance = true,
                                    .settings = &box_view,
                                    .next = bayes_next};
const struct method method_bayes_wide = {.name = "BO, all knobs",
                                         .words = "the same over all knobs, one length scale",
                                         .chance = true,
                                         .settings = &knobs_view,
                                         .next = bayes_next};
const struct method method_horovod = {.name = "BO as Horovod's",
                                      .words = "fusion and credit in MB, fixed parameters",
                                      .chance = true,
                                      .settings = &horovod_view,
                                      .next = bayes_next};
