/* See bayes_climb.h. */
#include "tuner/search/bayes_climb.h"

#include <math.h>
#include <nlopt.h>
#include <string.h>

#include "tuner/search/acquisition.h"
#include "tuner/search/bayes_score.h"

enum {
    STARTS = 3, /* climbs */
    ROUNDS = 3, /* of continuous and discrete moves in turn */
    STEPS = 25, /* evaluations of a continuous climb by gradients */
    TRIES = 80, /* and of one without */
    NEARBY = 4  /* rows of `near` that are perturbed */
};
#define APART     0.1    /* starts differ by this much in a column */
#define PRECISION 1e-4   /* of a continuous climb, in [0, 1] */
#define LOWEST    (-1e6) /* stands for a score of -INFINITY, which optimizers cannot take */

struct sweep {
    size_t n;
    double *rows, *prior, *score;
};

/* Everything that a climb needs. */
struct state {
    const struct bayes_climb *climb;
    double *x;                                 /* dimensions */
    double *row, *mean_slope, *variance_slope; /* columns */
    double *free;                              /* the continuous columns of row */
    double best;                               /* of what the optimizer has seen, and where */
    double *at;
    struct sweep neighbours;
    nlopt_opt opt;
};

bool bayes_climb_seen(const struct bayes_climb *climb, const double *row, double *scratch) {
    size_t d = climb->space->dimensions;
    if (climb->space->continuous)
        return false;
    bayes_space_decode(climb->space, row, scratch);
    for (size_t i = 0; i < climb->n_seen; i++) {
        size_t k = 0;
        while (k < d && climb->seen[i * d + k] == scratch[k])
            k++;
        if (k == d)
            return true;
    }
    return false;
}

static enum status prior_at(const struct bayes_climb *climb, const double *row, double *scratch, double *prior,
                            struct error *err) {
    *prior = 0;
    if (climb->prior) {
        bayes_space_decode(climb->space, row, scratch);
        *prior = climb->prior(climb->context, scratch);
    }
    return isnan(*prior) ? error_set(err, ST_INVALID, "the prior at a point that may be tried is no number") : ST_OK;
}

enum status bayes_climb_priors(const struct bayes_climb *climb, size_t n, const double *rows, double *scratch,
                               double *prior, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++)
        st = prior_at(climb, rows + i * climb->space->columns, scratch, &prior[i], err);
    return st;
}

/* ---- sweep ---- */

static bool sweep_alloc(const struct bayes_space *space, size_t most, struct arena *arena, struct sweep *sweep) {
    sweep->rows = arena_alloc(arena, most * space->columns, sizeof(double));
    sweep->prior = arena_alloc(arena, most, sizeof(double));
    sweep->score = arena_alloc(arena, most, sizeof(double));
    return sweep->rows && sweep->prior && sweep->score;
}

static void sweep_whole(const struct bayes_climb *climb, struct sweep *sweep) {
    sweep->n = (size_t)bayes_space_size(climb->space);
    for (size_t i = 0; i < sweep->n; i++)
        bayes_space_at(climb->space, i, sweep->rows + i * climb->space->columns);
}

static void sweep_some(const struct bayes_climb *climb, struct sweep *sweep) {
    struct rng rng;
    size_t columns = climb->space->columns, near = climb->n_near < NEARBY ? climb->n_near : NEARBY;
    bayes_space_spread(climb->space, climb->seed, 0, BAYES_SPREAD, sweep->rows);
    sweep->n = BAYES_SPREAD;
    rng_split(&rng, climb->seed, 1);
    for (size_t i = 0; near && i < BAYES_NEAR; i++, sweep->n++)
        bayes_space_perturb(climb->space, &rng, rng_log_between(&rng, 0.003, 0.3), climb->near + i % near * columns,
                            sweep->rows + sweep->n * columns);
}

/* Priors and scores. A point that was seen scores -INFINITY. */
static enum status sweep_score(const struct bayes_climb *climb, double *scratch, struct sweep *sweep,
                               struct error *err) {
    enum status st = bayes_climb_priors(climb, sweep->n, sweep->rows, scratch, sweep->prior, err);
    if (st)
        return st;
    bayes_score(climb->gp, sweep->n, sweep->rows, sweep->prior, climb->best, sweep->score);
    for (size_t i = 0; i < sweep->n; i++)
        if (bayes_climb_seen(climb, sweep->rows + i * climb->space->columns, scratch))
            sweep->score[i] = -INFINITY;
    return ST_OK;
}

static bool differ(size_t columns, const double *a, const double *b) {
    for (size_t c = 0; c < columns; c++)
        if (fabs(a[c] - b[c]) > APART)
            return true;
    return false;
}

/* The places of the sweep's best points that are APART from each other; returns how many. */
static size_t sweep_starts(const struct bayes_climb *climb, struct sweep *sweep, size_t *starts) {
    size_t n = 0, columns = climb->space->columns;
    while (n < STARTS) {
        size_t i = bayes_choose(sweep->n, sweep->score);
        if (sweep->score[i] == -INFINITY)
            return n;
        bool apart = true;
        for (size_t s = 0; s < n; s++)
            apart &= differ(columns, sweep->rows + starts[s] * columns, sweep->rows + i * columns);
        if (apart)
            starts[n++] = i;
        sweep->score[i] = -INFINITY;
    }
    return n;
}

/* ---- climb ---- */

static void put_free(const struct bayes_space *space, const double *free, double *row) {
    for (size_t i = 0, k = 0; i < space->dimensions; i++)
        if (space->dimension[i].kind == BAYES_LINEAR || space->dimension[i].kind == BAYES_LOG2)
            row[space->first[i]] = free[k++];
}

static void take_free(const struct bayes_space *space, const double *row, double *free) {
    for (size_t i = 0, k = 0; i < space->dimensions; i++)
        if (space->dimension[i].kind == BAYES_LINEAR || space->dimension[i].kind == BAYES_LOG2)
            free[k++] = row[space->first[i]];
}

/* The score at s->row, its slopes by column into s->mean_slope. With sd' = variance' / (2 sd) and
 * z = (best - mean) / sd:  (log sd + log h(z))' = sd' / sd + (log h)'(z) (-mean' - z sd') / sd. */
static double value_at(struct state *s) {
    double mean, variance, prior;
    if (prior_at(s->climb, s->row, s->x, &prior, NULL))
        return LOWEST;
    gp_predict_slope(s->climb->gp, s->row, &mean, &variance, s->mean_slope, s->variance_slope);
    double sd = sqrt(variance), z = (s->climb->best - mean - prior) / sd;
    double noise = gp_noise(s->climb->gp);
    double value = acquisition_log_ei(s->climb->best, mean + prior, sd) + acquisition_log_taught(sd, noise);
    if (!(sd > 0) || !(value > LOWEST)) {
        memset(s->mean_slope, 0, s->climb->space->columns * sizeof *s->mean_slope);
        return LOWEST;
    }
    double slope = acquisition_log_h_slope(z), by_sd = (1 - slope * z) / sd + acquisition_log_taught_slope(sd, noise);
    for (size_t c = 0; c < s->climb->space->columns; c++)
        s->mean_slope[c] = by_sd * s->variance_slope[c] / (2 * sd) - slope * s->mean_slope[c] / sd;
    return value;
}

static double descend(unsigned n, const double *free, double *gradient, void *context) {
    struct state *s = context;
    put_free(s->climb->space, free, s->row);
    double value = value_at(s);
    if (gradient) {
        take_free(s->climb->space, s->mean_slope, gradient);
        for (unsigned i = 0; i < n; i++)
            gradient[i] = -gradient[i];
    }
    if (value > s->best) {
        s->best = value;
        memcpy(s->at, s->row, s->climb->space->columns * sizeof *s->row);
    }
    return -value;
}

/* Move s->at to the best neighbour; false when none is better. */
static bool step_discrete(struct state *s) {
    size_t columns = s->climb->space->columns;
    s->neighbours.n = bayes_space_neighbours(s->climb->space, s->at, s->neighbours.rows);
    if (!s->neighbours.n || sweep_score(s->climb, s->x, &s->neighbours, NULL))
        return false;
    size_t i = bayes_choose(s->neighbours.n, s->neighbours.score);
    if (!(s->neighbours.score[i] > s->best))
        return false;
    s->best = s->neighbours.score[i];
    memcpy(s->at, s->neighbours.rows + i * columns, columns * sizeof *s->at);
    return true;
}

static void climb_continuous(struct state *s) {
    double value;
    if (!s->opt)
        return;
    memcpy(s->row, s->at, s->climb->space->columns * sizeof *s->row);
    take_free(s->climb->space, s->at, s->free);
    nlopt_optimize(s->opt, s->free, &value); /* whatever stops it, s->at is the best point it saw */
}

/* Climb from s->at, whose value is s->best. */
static void climb_from(struct state *s) {
    for (int round = 0; round < ROUNDS; round++) {
        climb_continuous(s);
        if (!step_discrete(s))
            return;
        for (size_t i = 0; i < s->climb->space->dimensions && step_discrete(s); i++)
            ;
    }
}

static enum status state_init(struct state *s, const struct bayes_climb *climb, struct arena *arena,
                              struct error *err) {
    size_t columns = climb->space->columns, n = climb->space->continuous;
    *s = (struct state){.climb = climb, .x = arena_alloc(arena, climb->space->dimensions, sizeof(double))};
    s->row = arena_alloc(arena, 5 * columns, sizeof(double));
    if (!s->x || !s->row ||
        !sweep_alloc(climb->space, bayes_space_most_neighbours(climb->space), arena, &s->neighbours))
        return error_no_memory(err);
    s->mean_slope = s->row + columns;
    s->variance_slope = s->row + 2 * columns;
    s->free = s->row + 3 * columns;
    s->at = s->row + 4 * columns;
    if (!n)
        return ST_OK;
    if (!(s->opt = nlopt_create(climb->prior ? NLOPT_LN_SBPLX : NLOPT_LD_LBFGS, (unsigned)n)))
        return error_no_memory(err);
    nlopt_set_min_objective(s->opt, descend, s);
    nlopt_set_lower_bounds1(s->opt, 0);
    nlopt_set_upper_bounds1(s->opt, 1);
    nlopt_set_initial_step1(s->opt, APART / 2);
    nlopt_set_xtol_abs1(s->opt, PRECISION);
    nlopt_set_ftol_abs(s->opt, PRECISION);
    nlopt_set_maxeval(s->opt, climb->prior ? TRIES : STEPS);
    return ST_OK;
}

enum status bayes_climb(const struct bayes_climb *climb, struct arena *arena, bool *found, double *row,
                        struct error *err) {
    struct state s;
    struct sweep sweep;
    size_t starts[STARTS], columns = climb->space->columns;
    bool whole = bayes_space_size(climb->space) <= BAYES_WHOLE;
    if (!sweep_alloc(climb->space, whole ? BAYES_WHOLE : BAYES_SPREAD + BAYES_NEAR, arena, &sweep))
        return error_no_memory(err);
    enum status st = state_init(&s, climb, arena, err);
    if (st)
        return st;
    (whole ? sweep_whole : sweep_some)(climb, &sweep);
    if ((st = sweep_score(climb, s.x, &sweep, err)))
        goto done;
    size_t n = sweep_starts(climb, &sweep, starts);
    *found = n > 0;
    double best = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        memcpy(s.at, sweep.rows + starts[i] * columns, columns * sizeof *s.at);
        bayes_score(climb->gp, 1, s.at, &sweep.prior[starts[i]], climb->best, &s.best);
        if (!whole)
            climb_from(&s);
        if (s.best > best) {
            best = s.best;
            memcpy(row, s.at, columns * sizeof *row);
        }
    }
done:
    nlopt_destroy(s.opt);
    return st;
}
