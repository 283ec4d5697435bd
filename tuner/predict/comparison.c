/* One prediction by the timeline for each baseline (in weather more), uncorrected, and two solutions of a one-machine
 * problem. */
#include "tuner/predict/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "simulator/bound.h"
#include "simulator/tuned.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/one_machine.h"
#include "tuner/predict/predictor.h"

static enum status predict(struct predictor *predictor, const struct baseline *baseline, struct comparison_row *out,
                           struct error *err) {
    struct strategy strategy;
    struct outlook outlook = {0};
    *out = (struct comparison_row){.baseline = baseline, .iteration_us = NAN};
    enum status st = tuned_build(baseline, predictor->model, predictor->cluster, &strategy, err);
    if (!st) {
        st = predictor->weather ? predictor_outlook(predictor, &strategy, &outlook, err)
                                : predictor_run(predictor, &strategy, &outlook.quiet, err);
        if (!st) {
            out->iteration_us = outlook.quiet.iteration_us;
            out->expected = outlook.expected;
        }
        strategy_release(&strategy);
    }
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

static enum status fill_rows(struct predictor *predictor, struct comparison *c, struct error *err) {
    size_t n;
    const struct baseline *baselines = baselines_list(&n);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        st = predict(predictor, &baselines[i], &c->rows[c->n++], err);
        if (!isnan(c->rows[i].iteration_us) &&
            (c->fastest == SIZE_MAX || comparison_us(c, i) < comparison_us(c, c->fastest)))
            c->fastest = i;
    }
    return st;
}

/* The optimum of Jackson's preemptive one-machine problem with all gradients as jobs, at the best time a byte of any
 * algorithm. It spans the start of the backward pass to the end of the next forward pass, which is the period. */
static enum status all_reduce_floor(const struct model *model, const struct cost *cost, double *out,
                                    struct error *err) {
    size_t n = model->n_variables;
    double scale = cost->cluster->nodes[cost->slowest].compute_scale, compute = 0;
    struct gradient *gradients = calloc(n + 1, sizeof *gradients);
    struct machine_job *jobs = calloc(n + 1, sizeof *jobs);
    uint32_t *scratch = calloc(n + 1, sizeof *scratch);
    enum status st = gradients && jobs && scratch ? gradients_list(model, scale, gradients, err) : error_no_memory(err);
    for (uint32_t i = 0; i < model->n_operators; i++)
        compute += scale * model->operators[i].time_us;
    for (size_t i = 0; i < n && !st; i++)
        jobs[i] = (struct machine_job){gradients[i].ready_us,
                                       all_reduce_least_per_byte_us(&cost->all_reduce) * (double)gradients[i].bytes,
                                       gradients[i].tail_us};
    if (!st)
        *out = cost->cluster->n_devices < 2 ? compute : fmax(compute, one_machine_value(n, jobs, scratch));
    free(gradients);
    free(jobs);
    free(scratch);
    return st;
}

enum status comparison_run(const struct model *model, const struct cluster *cluster, struct comparison *out,
                           struct error *err) {
    size_t n;
    struct predictor predictor;
    struct bound bound;
    baselines_list(&n);
    struct comparison c = {
        .rows = calloc(n, sizeof *c.rows), .in_weather = cluster->variability.given, .fastest = SIZE_MAX};
    if (!c.rows)
        return error_no_memory(err);
    enum status st = cluster->variability.given ? predictor_init_in_weather(&predictor, model, cluster, 1, err)
                                                : predictor_init(&predictor, model, cluster, err);
    if (st) {
        free(c.rows);
        return st;
    }
    st = fill_rows(&predictor, &c, err);
    if (!st)
        st = bound_iteration(model, &predictor.cost, false, &bound, err);
    if (!st)
        st = all_reduce_floor(model, &predictor.cost, &c.all_reduce_us, err);
    predictor_release(&predictor);
    if (st) {
        free(c.rows);
        return st;
    }
    c.lower_bound_us = bound.iteration_us;
    *out = c;
    return ST_OK;
}

void comparison_release(struct comparison *comparison) {
    free(comparison->rows);
    *comparison = (struct comparison){0};
}

double comparison_us(const struct comparison *c, size_t row) {
    const struct comparison_row *r = &c->rows[row];
    return c->in_weather && !isnan(r->iteration_us) ? r->expected.mean_us : r->iteration_us;
}

double comparison_gap(const struct comparison *c) {
    return c->fastest == SIZE_MAX ? NAN : c->rows[c->fastest].iteration_us / c->lower_bound_us - 1;
}
