/* See reference.h. All three are a state machine between ask and tell, O(d) a point.
 *
 * Grid: the points of level l are numbered 0 .. 3^(d·l) - 1, coordinate by coordinate in base 3^l. A point whose digits
 * are all 1 modulo 3 was there on the level before and is skipped. The step between numbers has no factor 3, so it
 * meets every point once before it comes back.
 *
 * Momentum: velocity <- 0.9 · velocity - step · gradient / (largest gradient seen in this descent). Objectives differ
 * in scale by orders of magnitude; divided by the largest, the first step has a known length and later ones shrink as
 * the slope does. A descent ends when its best value has not improved for a few steps, being stuck or left with the
 * noise alone, and on a plain, when it comes to rest there. Step and difference are the best pair of twelve on the
 * surface of (partition, credit) that the timeline predicts for the transformer on v100-16x10g. */
#include "tests/support/tuner/reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const double MOMENTUM = 0.9, STEP = 0.2, DIFFERENCE = 0.2;
enum { PATIENCE = 3 };

struct state {
    size_t d;
    struct rng rng;
    double x[REFERENCE_MAX_DIMENSIONS]; /* the point that is asked for */
    /* grid */
    uint32_t level;
    uint64_t side, points, at, step, left;
    /* momentum */
    double base[REFERENCE_MAX_DIMENSIONS], velocity[REFERENCE_MAX_DIMENSIONS], gradient[REFERENCE_MAX_DIMENSIONS];
    double base_value, best, steepest;
    size_t probe; /* 0: the base itself; i: shifted along axis i - 1 */
    int stale;    /* steps without improvement */
};

static void draw_point(struct state *s, double *x) {
    for (size_t i = 0; i < s->d; i++)
        x[i] = rng_uniform(&s->rng);
}

static void ask(void *state, double *x) {
    const struct state *s = state;
    memcpy(x, s->x, s->d * sizeof *x);
}

/* ---- random ---- */

static void random_tell(void *state, double value) {
    struct state *s = state;
    (void)value;
    draw_point(s, s->x);
}

/* ---- grid ---- */

static uint64_t power_of_three(uint64_t exponent) {
    uint64_t p = 1;
    for (; exponent; exponent--)
        p *= 3;
    return p;
}

/* The finest level that 64 bits can number is repeated from its start; nobody lives to see it. */
static void grid_start_level(struct state *s) {
    enum { MOST_DIGITS = 39 };
    if ((s->level + 1) * s->d <= MOST_DIGITS)
        s->level++;
    s->side = power_of_three(s->level);
    s->points = power_of_three(s->level * s->d);
    s->left = s->points;
    s->at = rng_below(&s->rng, s->points);
    do
        s->step = rng_below(&s->rng, s->points);
    while (s->step % 3 == 0);
}

/* Write the point that `at` numbers; false when a coarser grid has it. */
static bool grid_point(struct state *s) {
    bool coarser = s->level > 1;
    uint64_t number = s->at;
    for (size_t i = 0; i < s->d; i++) {
        uint64_t digit = number % s->side;
        number /= s->side;
        coarser = coarser && digit % 3 == 1;
        s->x[i] = ((double)digit + 0.5) / (double)s->side;
    }
    return !coarser;
}

static void grid_next(struct state *s) {
    do {
        if (!s->left)
            grid_start_level(s);
        s->at = s->at >= s->points - s->step ? s->at - (s->points - s->step) : s->at + s->step;
        s->left--;
    } while (!grid_point(s));
}

static void grid_tell(void *state, double value) {
    (void)value;
    grid_next(state);
}

/* ---- momentum ---- */

static void momentum_restart(struct state *s) {
    draw_point(s, s->base);
    memset(s->velocity, 0, sizeof s->velocity);
    s->best = INFINITY;
    s->steepest = 0;
    s->stale = 0;
    s->probe = 0;
    memcpy(s->x, s->base, sizeof s->x);
}

/* Away from the nearer wall, so that the shifted point is in the cube. */
static double shift_of(double x) {
    return x < 0.5 ? DIFFERENCE : -DIFFERENCE;
}

static void momentum_probe_next(struct state *s) {
    memcpy(s->x, s->base, sizeof s->x);
    s->x[s->probe] += shift_of(s->x[s->probe]);
    s->probe++;
}

/* The length of the next step where the slope is nothing. */
static double speed(const struct state *s) {
    double squares = 0;
    for (size_t i = 0; i < s->d; i++)
        squares += s->velocity[i] * s->velocity[i];
    return MOMENTUM * sqrt(squares);
}

/* Where there is no slope the velocity carries on, until it would not leave the probed neighbourhood. */
static void momentum_step(struct state *s) {
    double norm = 0;
    for (size_t i = 0; i < s->d; i++)
        norm += s->gradient[i] * s->gradient[i];
    norm = sqrt(norm);
    if (norm <= 0 && speed(s) < DIFFERENCE) {
        momentum_restart(s);
        return;
    }
    s->steepest = fmax(s->steepest, norm);
    for (size_t i = 0; i < s->d; i++) {
        double slope = s->steepest > 0 ? s->gradient[i] / s->steepest : 0;
        s->velocity[i] = MOMENTUM * s->velocity[i] - STEP * slope;
        double to = fmin(fmax(s->base[i] + s->velocity[i], 0), 1);
        s->velocity[i] = to - s->base[i];
        s->base[i] = to;
    }
    s->probe = 0;
    memcpy(s->x, s->base, sizeof s->x);
}

/* The value of the base: a new descent, or the end of one, or the first shifted point. */
static void momentum_tell_base(struct state *s, double value) {
    s->stale = value < s->best ? 0 : s->stale + 1;
    s->best = fmin(s->best, value);
    s->base_value = value;
    if (!isfinite(value) || s->stale >= PATIENCE)
        momentum_restart(s);
    else
        momentum_probe_next(s);
}

/* A shifted point that failed says nothing about the slope. */
static void momentum_tell(void *state, double value) {
    struct state *s = state;
    if (!s->probe) {
        momentum_tell_base(s, value);
        return;
    }
    size_t axis = s->probe - 1;
    s->gradient[axis] = isfinite(value) ? (value - s->base_value) / shift_of(s->base[axis]) : 0;
    if (s->probe < s->d)
        momentum_probe_next(s);
    else
        momentum_step(s);
}

/* ---- the table ---- */

static enum status open_state(size_t d, uint64_t seed, void (*tell)(void *, double), struct searcher *out,
                              struct error *err) {
    if (d < 1 || d > REFERENCE_MAX_DIMENSIONS)
        return error_set(err, ST_INVALID, "a search needs from 1 to %d dimensions, not %zu", REFERENCE_MAX_DIMENSIONS,
                         d);
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->d = d;
    rng_seed(&s->rng, seed);
    *out = (struct searcher){.state = s, .ask = ask, .tell = tell, .close = free};
    return ST_OK;
}

static enum status random_open(size_t d, uint64_t seed, struct searcher *out, struct error *err) {
    enum status st = open_state(d, seed, random_tell, out, err);
    if (!st)
        random_tell(out->state, 0);
    return st;
}

static enum status grid_open(size_t d, uint64_t seed, struct searcher *out, struct error *err) {
    enum status st = open_state(d, seed, grid_tell, out, err);
    if (!st)
        grid_next(out->state);
    return st;
}

static enum status momentum_open(size_t d, uint64_t seed, struct searcher *out, struct error *err) {
    enum status st = open_state(d, seed, momentum_tell, out, err);
    if (!st)
        momentum_restart(out->state);
    return st;
}

static const struct reference references[] = {
    {"random", "points uniform in the box", random_open},
    {"grid", "a grid of three points a dimension, refined by three when exhausted", grid_open},
    {"momentum", "gradient descent by finite differences with momentum, restarted when stuck", momentum_open},
};
enum { N_REFERENCES = sizeof references / sizeof references[0] };

const struct reference *reference_list(size_t *n) {
    *n = N_REFERENCES;
    return references;
}

const struct reference *reference_find(const char *name) {
    for (size_t i = 0; i < N_REFERENCES; i++)
        if (!strcmp(references[i].name, name))
            return &references[i];
    return NULL;
}
