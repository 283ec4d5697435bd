/* See bayes.h. Points under way, and points that this call has suggested already, become beliefs of the model (Kriging
 * believer): their expected values count as measured, so a new point must improve on them and is not chosen near
 * them. */
#include "tuner/search/bayes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/acquisition.h"
#include "tuner/search/bayes_climb.h"

enum { DESIGN_TRIES = 4096 };

struct bayes {
    struct bayes_options options;
    struct bayes_space space;
    struct arena memory;  /* of space */
    struct arena scratch; /* of one call */
    struct gp *gp;
};

/* One call's history as rows. */
struct records {
    size_t n, n_pending, n_seen, room;
    double *rows;              /* (n + room) x columns: trials, then what is pending, then what is suggested */
    double *y, *prior, *noise; /* n */
    double *mean;              /* n, posterior */
    double *seen;              /* values: own trials, pending, suggested */
    double *x;                 /* dimensions, scratch */
    bool all_elsewhere;
};

enum status bayes_new(size_t n, const struct bayes_dimension *dimensions, const struct bayes_options *options,
                      struct bayes **out, struct error *err) {
    struct bayes *b = calloc(1, sizeof *b);
    if (!b)
        return error_no_memory(err);
    enum status st = bayes_space_init(&b->space, n, dimensions, &b->memory, err);
    if (!st)
        st = gp_new(b->space.columns, b->space.input_of, &b->gp, err);
    if (st) {
        bayes_free(b);
        return st;
    }
    b->options = *options;
    if (!b->options.first)
        b->options.first = options->prior ? 3 : n + 1;
    *out = b;
    return ST_OK;
}

void bayes_free(struct bayes *b) {
    if (!b)
        return;
    arena_release(&b->memory);
    arena_release(&b->scratch);
    gp_free(b->gp);
    free(b);
}

/* ---- history ---- */

static enum status records_alloc(struct bayes *b, const struct bayes_history *h, size_t q, struct records *r,
                                 struct error *err) {
    size_t d = b->space.dimensions;
    if (h->n > GP_MOST || h->n_pending > GP_MOST || q > GP_MOST || h->n + h->n_pending + q > GP_MOST)
        return error_set(err, ST_TOO_LARGE, "%zu trials, %zu under way and %zu wanted are more than %d", h->n,
                         h->n_pending, q, GP_MOST);
    *r = (struct records){.n = h->n, .n_pending = h->n_pending, .room = h->n_pending + q, .all_elsewhere = true};
    arena_clear(&b->scratch);
    r->rows = arena_alloc(&b->scratch, (r->n + r->room) * b->space.columns, sizeof(double));
    r->y = arena_alloc(&b->scratch, 4 * r->n, sizeof(double));
    r->seen = arena_alloc(&b->scratch, (r->n + r->room + 1) * d, sizeof(double));
    if (!r->rows || !r->y || !r->seen)
        return error_no_memory(err);
    r->prior = r->y + r->n;
    r->noise = r->prior + r->n;
    r->mean = r->noise + r->n;
    r->x = r->seen + (r->n + r->room) * d;
    return ST_OK;
}

static void see(const struct bayes *b, struct records *r, const double *x) {
    memcpy(r->seen + r->n_seen++ * b->space.dimensions, x, b->space.dimensions * sizeof *x);
}

static enum status read_trial(const struct bayes *b, const struct bayes_trial *t, size_t i, struct records *r,
                              struct error *err) {
    enum status st = bayes_space_encode(&b->space, t->x, r->rows + i * b->space.columns, err);
    if (st) {
        error_prefix(err, st, "trial %zu", i);
        return st;
    }
    r->y[i] = t->y;
    r->noise[i] = t->noise;
    r->prior[i] = b->options.prior ? b->options.prior(b->options.context, t->x) : 0;
    if (!isfinite(t->y) || !isfinite(r->prior[i]) || !(t->noise >= 0 && isfinite(t->noise)))
        return error_set(err, ST_INVALID,
                         "trial %zu: value %g, prior %g, noise variance %g: must be finite, and the last "
                         "at least 0",
                         i, t->y, r->prior[i], t->noise);
    r->all_elsewhere &= t->elsewhere;
    if (!t->elsewhere)
        see(b, r, t->x);
    return ST_OK;
}

static enum status records_read(struct bayes *b, const struct bayes_history *h, size_t q, struct records *r,
                                struct error *err) {
    enum status st = records_alloc(b, h, q, r, err);
    for (size_t i = 0; i < h->n && !st; i++)
        st = read_trial(b, &h->trials[i], i, r, err);
    for (size_t i = 0; i < h->n_pending && !st; i++) {
        const double *x = h->pending + i * b->space.dimensions;
        st = bayes_space_encode(&b->space, x, r->rows + (h->n + i) * b->space.columns, err);
        if (st)
            error_prefix(err, st, "point %zu under way", i);
        else
            see(b, r, x);
    }
    return st;
}

static struct bayes_climb climb_of(const struct bayes *b, const struct records *r, uint64_t stream) {
    struct rng rng;
    rng_split(&rng, b->options.seed, stream);
    return (struct bayes_climb){.space = &b->space,
                                .gp = b->gp,
                                .prior = b->options.prior,
                                .context = b->options.context,
                                .n_seen = r->n_seen,
                                .seen = r->seen,
                                .seed = rng_next(&rng)};
}

/* ---- first points ---- */

static double distance(size_t columns, const double *a, const double *b) {
    double sum = 0;
    for (size_t c = 0; c < columns; c++)
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sqrt(sum);
}

/* Find the point with the best prior among those at least `apart` from every known point. */
static bool best_apart(const struct bayes *b, const struct bayes_climb *climb, const struct records *r, size_t known,
                       double apart, const double *rows, const double *prior, double *row) {
    size_t columns = b->space.columns, best = BAYES_SPREAD;
    for (size_t i = 0; i < BAYES_SPREAD; i++) {
        const double *at = rows + i * columns;
        double nearest = INFINITY;
        for (size_t k = 0; k < known; k++)
            nearest = fmin(nearest, distance(columns, at, r->rows + k * columns));
        if (prior[i] < INFINITY && nearest >= apart && !bayes_climb_seen(climb, at, r->x) &&
            (best == BAYES_SPREAD || prior[i] < prior[best]))
            best = i;
    }
    if (best < BAYES_SPREAD)
        memcpy(row, rows + best * columns, columns * sizeof *row);
    return best < BAYES_SPREAD;
}

static enum status design_by_prior(struct bayes *b, const struct bayes_climb *climb, const struct records *r,
                                   size_t known, bool *found, double *row, struct error *err) {
    double *rows = arena_alloc(&b->scratch, BAYES_SPREAD * b->space.columns, sizeof(double));
    double *prior = arena_alloc(&b->scratch, BAYES_SPREAD, sizeof(double));
    if (!rows || !prior)
        return error_no_memory(err);
    bayes_space_spread(&b->space, climb->seed, 0, BAYES_SPREAD, rows);
    enum status st = bayes_climb_priors(climb, BAYES_SPREAD, rows, r->x, prior, err);
    *found = false;
    double apart = 0.3 * sqrt((double)b->space.dimensions);
    while (!st && !*found && apart > 1e-3) {
        *found = best_apart(b, climb, r, known, apart, rows, prior, row);
        apart /= 2;
    }
    return st;
}

/* Item `index` of the even sequence, or the next that has not been seen. */
static bool design_evenly(const struct bayes *b, const struct bayes_climb *climb, size_t index, double *scratch,
                          double *row) {
    for (size_t i = 0; i < DESIGN_TRIES; i++) {
        bayes_space_spread(&b->space, climb->seed, index + i, 1, row);
        if (!bayes_climb_seen(climb, row, scratch))
            return true;
    }
    double size = bayes_space_size(&b->space);
    for (size_t i = 0; size <= DESIGN_TRIES && i < (size_t)size; i++) {
        bayes_space_at(&b->space, i, row);
        if (!bayes_climb_seen(climb, row, scratch))
            return true;
    }
    return false;
}

static enum status next_design(struct bayes *b, const struct records *r, size_t k, bool *found, double *row,
                               struct error *err) {
    struct bayes_climb climb = climb_of(b, r, 0);
    size_t known = r->n + r->n_pending + k;
    *found = false;
    if (b->options.prior) {
        enum status st = design_by_prior(b, &climb, r, known, found, row, err);
        if (st || *found)
            return st;
    }
    *found = design_evenly(b, &climb, r->n_seen, r->x, row);
    return ST_OK;
}

/* ---- modelled points ---- */

/* The least posterior mean: of the trials that count here, or of all when none does. */
static size_t best_trial(const struct bayes_history *h, const struct records *r) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < h->n; i++)
        if ((r->all_elsewhere || !h->trials[i].elsewhere) && (best == SIZE_MAX || r->mean[i] < r->mean[best]))
            best = i;
    return best;
}

static enum status fit(struct bayes *b, struct records *r, struct error *err) {
    gp_forget(b->gp);
    enum status st = gp_fit(
        b->gp,
        &(struct gp_data){.n = r->n, .x = r->rows, .y = r->y, .prior = r->prior, .noise = r->noise, .room = r->room},
        err);
    if (!st)
        gp_observed_means(b->gp, r->mean);
    return st;
}

/* Add the row as a belief; if its mean is the best, later points must improve on it. *log_ei is the row's, before
 * that. */
static enum status believe(struct bayes *b, struct records *r, const double *row, double *best, double *log_ei,
                           struct error *err) {
    double mean, variance, prior = 0;
    if (b->options.prior) {
        bayes_space_decode(&b->space, row, r->x);
        prior = b->options.prior(b->options.context, r->x);
    }
    gp_predict(b->gp, 1, row, &prior, &mean, &variance);
    *log_ei = acquisition_log_ei(*best, mean, sqrt(variance));
    if (mean < *best)
        *best = mean;
    return gp_believe(b->gp, row, err);
}

/* The rows of the trials with the least means, best first: where to look closely. */
static size_t list_near(const struct bayes *b, const struct records *r, double *near, size_t most) {
    size_t n = 0, columns = b->space.columns;
    double last = -INFINITY;
    while (n < most) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < r->n; i++)
            if (r->mean[i] > last && (best == SIZE_MAX || r->mean[i] < r->mean[best]))
                best = i;
        if (best == SIZE_MAX)
            break;
        last = r->mean[best];
        memcpy(near + n++ * columns, r->rows + best * columns, columns * sizeof *near);
    }
    return n;
}

/* ---- suggestions ---- */

/* The q suggested points, and the state in which they are chosen. */
struct suggestions {
    bool modelled;
    double best, log_ei; /* best: to improve on; log_ei: of the first point */
    double *near;        /* rows */
    size_t n_near;
};

enum { NEAR = 4 };

static enum status prepare(struct bayes *b, const struct bayes_history *h, struct records *r, struct suggestions *s,
                           struct error *err) {
    enum status st = ST_OK;
    double log_ei;
    *s = (struct suggestions){.modelled = h->n >= b->options.first && h->n > 0};
    if (!s->modelled)
        return ST_OK;
    if (!(s->near = arena_alloc(&b->scratch, NEAR * b->space.columns, sizeof(double))))
        return error_no_memory(err);
    if ((st = fit(b, r, err)))
        return st;
    s->best = r->mean[best_trial(h, r)];
    s->n_near = list_near(b, r, s->near, NEAR);
    for (size_t i = 0; i < h->n_pending && !st; i++)
        st = believe(b, r, r->rows + (h->n + i) * b->space.columns, &s->best, &log_ei, err);
    return st;
}

static enum status next_modelled(struct bayes *b, struct records *r, struct suggestions *s, size_t k, bool *found,
                                 double *row, struct error *err) {
    double log_ei;
    struct bayes_climb climb = climb_of(b, r, 1 + r->n + r->n_pending + k);
    climb.best = s->best;
    climb.n_near = s->n_near;
    climb.near = s->near;
    enum status st = bayes_climb(&climb, &b->scratch, found, row, err);
    if (!st && *found)
        st = believe(b, r, row, &s->best, &log_ei, err);
    if (!st && *found && k == 0)
        s->log_ei = log_ei;
    return st;
}

enum status bayes_suggest(struct bayes *b, const struct bayes_history *h, size_t q, double *x,
                          struct bayes_advice *advice, struct error *err) {
    struct records r;
    struct suggestions s;
    size_t k = 0;
    bool found = true;
    enum status st;
    if ((st = records_read(b, h, q, &r, err)) || (st = prepare(b, h, &r, &s, err)))
        return st;
    double best = s.best;
    for (; k < q; k++) {
        double *row = r.rows + (r.n + r.n_pending + k) * b->space.columns, *at = x + k * b->space.dimensions;
        st = s.modelled ? next_modelled(b, &r, &s, k, &found, row, err) : next_design(b, &r, k, &found, row, err);
        if (st)
            return st;
        if (!found)
            break;
        bayes_space_decode(&b->space, row, at);
        see(b, &r, at);
    }
    double gain = k == 0 ? 0 : s.modelled ? exp(s.log_ei) : INFINITY;
    *advice = (struct bayes_advice){k, s.modelled, gain, gain > 0 ? gain / fabs(best) : 0};
    return ST_OK;
}
