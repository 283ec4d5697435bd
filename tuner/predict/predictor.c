/* Correcting means describing the cluster again with other figures: measured times here, all others by the factors in
 * struct cluster. So the simulator needs to know nothing of corrections. */
#include "tuner/predict/predictor.h"

#include <math.h>
#include <string.h>

#include "base/work.h"

enum { FIT_LEVELS = 4, BRIEF_PASSES = 3 };

static const double FIT_FIRST_STEP = 0.35; /* of a factor's logarithm */
static const double FIT_NOISE = 0.05;      /* deviation of one trial's log(predicted / measured) by noise alone */
static const double FIT_LARGEST = 0.5;     /* a larger residual is an outlier, and counts as this */

/* A curve's fixed part is its value at its smallest size. */
static void correct_measurements(struct measurement *to, const struct cluster *from, struct correction c) {
    double smallest = 0;
    for (uint32_t i = 0; i < from->n_measurements; i++) {
        const struct measurement *m = &from->measurements[i];
        if (!i || m[-1].operation != m->operation || m[-1].algorithm != m->algorithm || m[-1].devices != m->devices)
            smallest = m->time_us;
        double fixed = fmin(smallest, m->time_us);
        to[i] = *m;
        to[i].time_us = c.startup * fixed + c.transfer * (m->time_us - fixed);
    }
}

enum status predictor_correct(struct predictor *p, struct correction c, struct error *err) {
    const struct cluster *from = p->cluster;
    arena_clear(&p->arena);
    struct measurement *measurements = arena_alloc(&p->arena, from->n_measurements, sizeof *measurements);
    if (!measurements)
        return error_no_memory(err);
    correct_measurements(measurements, from, c);
    p->corrected = *from;
    p->corrected.measurements = measurements;
    p->corrected.all_reduce_startup_us *= c.startup;
    p->corrected.all_reduce_per_byte_ns *= c.transfer;
    p->corrected.startup = c.startup;
    p->corrected.transfer = c.transfer;
    p->correction = c;
    cost_release(&p->cost);
    return cost_init(&p->cost, &p->corrected, err);
}

enum status predictor_init(struct predictor *out, const struct model *model, const struct cluster *cluster,
                           struct error *err) {
    struct predictor p = {.model = model, .cluster = cluster};
    *out = p;
    if (cluster->variability.given)
        return error_set(
            err, ST_INVALID,
            "\"%s\" has \"variability\", which only simulate and weather know: take it out of the description",
            cluster->name);
    out->timeline = timeline_new();
    enum status st = out->timeline ? predictor_correct(out, (struct correction){1, 1}, err) : error_no_memory(err);
    if (st)
        predictor_release(out);
    return st;
}

void predictor_release(struct predictor *p) {
    plan_release(&p->plan);
    predictions_release(&p->known);
    timeline_free(p->timeline);
    cost_release(&p->cost);
    arena_release(&p->arena);
    *p = (struct predictor){0};
}

size_t predictor_bytes(const struct predictor *p) {
    return arena_bytes(&p->arena) + arena_bytes(&p->plan.arena) + timeline_bytes(p->timeline);
}

enum status predictor_run(struct predictor *p, const struct strategy *strategy, struct prediction *out,
                          struct error *err) {
    enum status st = work_check(err); /* before lowering, since a search makes thousands of predictions */
    if (!st && p->limits)
        st = export_limits_check(p->limits, strategy, p->model, p->cluster, err);
    if (!st)
        st = plan_relower(&p->plan, p->model, &p->corrected, strategy, err);
    const struct timeline_options options = {
        .max_passes = p->brief ? BRIEF_PASSES : 0, .enough_us = p->enough_us, .most_events = p->most_events};
    return st ? st : timeline_run(p->timeline, &p->plan, &p->cost, &options, out, err);
}

enum status predictor_features(struct predictor *p, const struct strategy *strategy, struct features *out,
                               struct prediction *prediction, struct error *err) {
    struct prediction here;
    enum status st = predictor_run(p, strategy, &here, err);
    if (st)
        return st;
    const struct timeline_terms terms = {.iteration_us = here.iteration_us,
                                         .compute_us = here.compute_us,
                                         .exposed_us = here.exposed_us,
                                         .busy_us = here.comm_busy_us,
                                         .queue_us = here.queue_us};
    if (prediction)
        *prediction = here;
    return features_of(strategy, &p->plan, &p->cost, &terms, out, err);
}

/* The iteration time under these factors, which the predictor already uses. */
static enum status predict_with(struct predictor *p, const double factors[2], const struct strategy *strategy,
                                double *us, struct error *err) {
    struct prediction prediction;
    if (predictions_find(&p->known, &strategy->id, factors, us))
        return ST_OK;
    enum status st = predictor_run(p, strategy, &prediction, err);
    if (st)
        return st;
    *us = prediction.iteration_us;
    predictions_keep(&p->known, &strategy->id, factors, *us);
    return ST_OK;
}

/* Minus the log of the posterior, up to a constant. */
static enum status misfit(struct predictor *p, const double factors[2], size_t n, const struct measured *measured,
                          double *out, struct error *err) {
    enum status st = predictor_correct(p, (struct correction){exp(factors[0]), exp(factors[1])}, err);
    double sum = 0;
    for (size_t i = 0; i < n && !st; i++) {
        double us = 1;
        st = predict_with(p, factors, measured[i].strategy, &us, err);
        double residual = log(us / measured[i].us);
        residual = fmin(fabs(residual), FIT_LARGEST) / FIT_NOISE;
        sum += residual * residual;
    }
    for (int k = 0; k < 2; k++)
        sum += factors[k] * factors[k] / (PREDICTOR_PRIOR * PREDICTOR_PRIOR);
    *out = sum;
    return st;
}

/* Try both directions along factor k; keep what is better. */
static enum status improve(struct predictor *p, double factors[2], int k, double step, size_t n,
                           const struct measured *measured, double *best, bool *moved, struct error *err) {
    for (int sign = -1; sign <= 1; sign += 2) {
        double value, trial[2] = {factors[0], factors[1]};
        trial[k] += sign * step;
        enum status st = misfit(p, trial, n, measured, &value, err);
        if (st)
            return st;
        if (value < *best) {
            *best = value;
            factors[k] = trial[k];
            *moved = true;
            break;
        }
    }
    return ST_OK;
}

enum status predictor_fit(struct predictor *p, size_t n, const struct measured *measured, struct error *err) {
    double factors[2] = {0, 0}, best;
    p->brief = true;
    enum status st = misfit(p, factors, n, measured, &best, err);
    double step = FIT_FIRST_STEP;
    for (int level = 0; level < FIT_LEVELS && !st;) {
        bool moved = false;
        for (int k = 0; k < 2 && !st; k++)
            st = improve(p, factors, k, step, n, measured, &best, &moved, err);
        if (!moved || fabs(factors[0]) > 3 || fabs(factors[1]) > 3) {
            level++;
            step /= 2;
        }
    }
    p->brief = false;
    return st ? st : predictor_correct(p, (struct correction){exp(factors[0]), exp(factors[1])}, err);
}
