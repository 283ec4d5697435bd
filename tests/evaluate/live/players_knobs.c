/* See players.h. The box has the six knobs of the replay (pool.h), here as what a person would set, and the algorithm:
 * share of the bytes that is served (largest variables first), largest message, size of merge groups, credit, policy,
 * cross_iteration, algorithm. The strategy of a point is tuner/search/knobs.h's, served by all nodes. All of them are
 * told the logarithm of the time, and that a trial which did not complete took twice the slowest. */
#include <math.h>
#include <stdlib.h>

#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/live/players.h"
#include "tests/support/tuner/reference.h"
#include "tuner/search/bayes.h"
#include "tuner/search/knobs.h"

/* By axis of the box; the first is the share. */
static const enum knob axes[PLAYER_KNOBS] = {KNOB_architecture, KNOB_partition_bytes, KNOB_merge_bytes,
                                             KNOB_credit_bytes, KNOB_policy,          KNOB_cross_iteration,
                                             KNOB_algorithm};

/* Serve the largest variables, as many as come nearest to this share of all bytes. */
static void serve_share(const struct model *model, double share, struct knobs *knobs) {
    double nearest = share;
    knobs->architecture = KNOB_ARCHITECTURE_all_reduce;
    for (uint32_t i = 0; i < model->n_variables; i++) {
        const uint64_t least = model->variables[i].bytes;
        uint64_t served = 0;
        for (uint32_t v = 0; v < model->n_variables; v++)
            served += model->variables[v].bytes >= least ? model->variables[v].bytes : 0;
        const double distance = fabs((double)served / (double)model->bytes - share);
        if (distance >= nearest)
            continue;
        nearest = distance;
        knobs->architecture = served == model->bytes ? KNOB_ARCHITECTURE_server : KNOB_ARCHITECTURE_large_served;
        knobs->served_bytes = least;
    }
}

static void strategy_at(const struct space *space, const double x[PLAYER_KNOBS], struct strategy *out) {
    struct knob_dimension dimensions[KNOB_COUNT];
    double u[KNOB_COUNT];
    struct error err;
    const size_t n = knobs_dimensions(space, dimensions);
    for (size_t i = 0; i < n; i++) {
        u[i] = 1; /* n_servers: all */
        for (size_t k = 0; k < PLAYER_KNOBS; k++)
            if (dimensions[i].knob == axes[k])
                u[i] = x[k];
    }
    struct knobs knobs = knobs_from_unit(space, u);
    serve_share(space->model, x[0], &knobs);
    check(knobs_strategy(space, &knobs, out, &err), &err);
}

struct state {
    const struct stage *stage;
    struct searcher searcher;
    double slowest_us;
};

static struct state *new_state(const struct stage *stage) {
    struct state *s = allocate_heap(1, sizeof *s);
    *s = (struct state){.stage = stage, .slowest_us = 2 * stage->bound_us};
    return s;
}

static void knobs_ask(void *state, struct strategy *out) {
    const struct state *s = state;
    double x[PLAYER_KNOBS];
    s->searcher.ask(s->searcher.state, x);
    strategy_at(&s->stage->space, x, out);
}

static void knobs_tell(void *state, const struct strategy *strategy, double us) {
    struct state *s = state;
    (void)strategy;
    if (isfinite(us))
        s->slowest_us = fmax(s->slowest_us, us);
    s->searcher.tell(s->searcher.state, log(isfinite(us) ? us : 2 * s->slowest_us));
}

static void knobs_close(void *state) {
    struct state *s = state;
    s->searcher.close(s->searcher.state);
    free(s);
}

/* ---- random, grid, momentum ---- */

static void *reference_open(const struct player *player, struct stage *stage, uint64_t seed) {
    struct state *s = new_state(stage);
    struct error err;
    check(reference_find(player->name)->open(PLAYER_KNOBS, seed, &s->searcher, &err), &err);
    return s;
}

const struct player player_random = {.name = "random",
                                     .words = "any point of the box of 7 knobs",
                                     .open = reference_open,
                                     .ask = knobs_ask,
                                     .tell = knobs_tell,
                                     .close = knobs_close};
const struct player player_grid = {.name = "grid",
                                   .words = "a grid over the box",
                                   .open = reference_open,
                                   .ask = knobs_ask,
                                   .tell = knobs_tell,
                                   .close = knobs_close};
const struct player player_momentum = {.name = "momentum",
                                       .words = "gradient steps with momentum in the box",
                                       .open = reference_open,
                                       .ask = knobs_ask,
                                       .tell = knobs_tell,
                                       .close = knobs_close};

/* ---- Bayesian optimization ---- */

struct bayes_player {
    struct bayes *bayes;
    double x[PLAY_TRIALS][PLAYER_KNOBS]; /* values: numbers in [0, 1], categories by their place */
    struct bayes_trial trials[PLAY_TRIALS];
    size_t n;
    double choices[PLAYER_KNOBS]; /* of a category; 0: a number */
};

static void bayes_ask(void *state, double *x) {
    struct bayes_player *o = state;
    const struct bayes_history history = {.n = o->n, .trials = o->trials};
    struct bayes_advice advice;
    struct error err;
    check(bayes_suggest(o->bayes, &history, 1, o->x[o->n], &advice, &err), &err);
    for (size_t k = 0; k < PLAYER_KNOBS; k++)
        x[k] = o->choices[k] > 0 ? (o->x[o->n][k] + 0.5) / o->choices[k] : o->x[o->n][k];
}

static void bayes_tell(void *state, double value) {
    struct bayes_player *o = state;
    o->trials[o->n] = (struct bayes_trial){.x = o->x[o->n], .y = value};
    o->n++;
}

static void bayes_close(void *state) {
    struct bayes_player *o = state;
    bayes_free(o->bayes);
    free(o);
}

static void *bayes_open(const struct player *player, struct stage *stage, uint64_t seed) {
    const struct bayes_options options = {.seed = seed};
    struct bayes_dimension dimensions[PLAYER_KNOBS];
    struct knob_dimension knobs[KNOB_COUNT];
    struct state *s = new_state(stage);
    struct bayes_player *o = allocate_heap(1, sizeof *o);
    struct error err;
    (void)player;
    for (size_t k = 0; k < PLAYER_KNOBS; k++)
        dimensions[k] = (struct bayes_dimension){BAYES_LINEAR, 0, 1};
    for (size_t i = knobs_dimensions(&stage->space, knobs); i--;)
        for (size_t k = 1; k < PLAYER_KNOBS; k++)
            if (knobs[i].knob == axes[k] && knobs[i].kind == KNOB_CATEGORY) {
                o->choices[k] = knobs[i].choices;
                dimensions[k] = (struct bayes_dimension){BAYES_CATEGORICAL, 0, knobs[i].choices - 1};
            }
    check(bayes_new(PLAYER_KNOBS, dimensions, &options, &o->bayes, &err), &err);
    s->searcher = (struct searcher){.state = o, .ask = bayes_ask, .tell = bayes_tell, .close = bayes_close};
    return s;
}

const struct player player_bayes = {.name = "BO",
                                    .words = "Bayesian optimization of the box, no prior (tuner/search/bayes.h)",
                                    .open = bayes_open,
                                    .ask = knobs_ask,
                                    .tell = knobs_tell,
                                    .close = knobs_close};

/* ---- Optuna ---- */

static void *optuna_new(const struct player *player, struct stage *stage, uint64_t seed) {
    struct state *s = new_state(stage);
    (void)player;
    optuna_open(stage->optuna, PLAYER_KNOBS, seed, &s->searcher);
    return s;
}

const struct player player_optuna = {.name = "Optuna TPE",
                                     .words = "Optuna's default sampler on the box",
                                     .optuna = true,
                                     .open = optuna_new,
                                     .ask = knobs_ask,
                                     .tell = knobs_tell,
                                     .close = knobs_close};
