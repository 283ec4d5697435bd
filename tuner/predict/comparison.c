/* One prediction by the timeline for each baseline (in weather more), uncorrected, and two solutions of a one-machine
 * problem. */
#include "tuner/predict/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulator/bound.h"
#include "simulator/tuned.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/one_machine.h"
#include "strategy/memory.h"
#include "tuner/predict/predictor.h"

static enum status predict_round(struct predictor *p, const struct strategy *strategy, struct comparison_row *out,
                                 struct error *err) {
    struct expectation expected;
    enum status st = predictor_round(p, strategy, &expected, &out->updates, err);
    if (st)
        return st;
    out->iteration_us = expected.mean_us;
    if (p->weather)
        out->expected = expected;
    return ST_OK;
}

/* What some row does that not every strategy may. */
struct done {
    enum in_parts in_parts;
    enum lossiness lossy;
};

static enum status predict(struct predictor *p, const struct strategy *strategy, struct comparison_row *out,
                           struct done *done, struct error *err) {
    struct outlook outlook = {0};
    enum status st;
    out->has_updates = !consistency_is_plain(&strategy->consistency);
    if (out->has_updates)
        return predict_round(p, strategy, out, err);
    st = p->weather ? predictor_outlook(p, strategy, &outlook, err) : predictor_run(p, strategy, &outlook.quiet, err);
    if (st)
        return st;
    done->in_parts = outlook.quiet.in_parts > done->in_parts ? outlook.quiet.in_parts : done->in_parts;
    done->lossy = outlook.quiet.lossy > done->lossy ? outlook.quiet.lossy : done->lossy;
    out->iteration_us = outlook.quiet.iteration_us;
    out->expected = outlook.expected;
    return ST_OK;
}

/* What the strategy that was just predicted needs; without a budget the predictor does not ask. */
static enum status note_memory(const struct predictor *p, struct comparison_row *out, struct error *err) {
    struct memory memory;
    out->peak_bytes = p->peak_bytes;
    out->over = p->over;
    if (p->memory_bytes || out->has_updates || isnan(out->iteration_us))
        return ST_OK;
    enum status st = memory_of_plan(&p->plan, &memory, err);
    if (!st)
        out->peak_bytes = memory.peak_bytes;
    return st;
}

/* A row for the baseline, or else for the given strategy. */
static enum status add_row(struct predictor *p, const struct baseline *baseline, const struct strategy *given,
                           struct comparison *c, struct done *done, struct error *err) {
    struct comparison_row *row = &c->rows[c->n];
    struct strategy built = {0};
    *row = (struct comparison_row){.baseline = baseline, .iteration_us = NAN};
    snprintf(row->name, sizeof row->name, "%s", baseline ? baseline->name : given->name);
    enum status st = baseline ? tuned_build(baseline, p->model, p->cluster, &built, err) : ST_OK;
    if (!st) {
        const struct strategy *strategy = baseline ? &built : given;
        row->id = strategy->id;
        row->n_groups = strategy->n_groups;
        st = predict(p, strategy, row, done, err);
        const enum status noted = note_memory(p, row, err);
        st = st ? st : noted;
    }
    strategy_release(&built);
    if (!st && !row->has_updates && (c->fastest == SIZE_MAX || comparison_us(c, c->n) < comparison_us(c, c->fastest)))
        c->fastest = c->n;
    c->n++;
    return st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
}

static enum status fill_rows(struct predictor *p, size_t n_more, const struct strategy *more, struct comparison *c,
                             struct done *done, struct error *err) {
    size_t n;
    const struct baseline *baselines = baselines_list(&n);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++)
        st = add_row(p, &baselines[i], NULL, c, done, err);
    for (size_t i = 0; i < n_more && !st; i++)
        st = add_row(p, NULL, &more[i], c, done, err);
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
    enum status st = gradients && jobs && scratch ? gradients_list(model, scale, WITH_UPDATES, gradients, err)
                                                  : error_no_memory(err);
    for (uint32_t i = 0; i < model->n_operators; i++)
        compute += scale * model->operators[i].time_us;
    compute += scale * model->update_us;
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

enum status comparison_run(const struct model *model, const struct cluster *cluster, size_t n_more,
                           const struct strategy *more, uint64_t memory_bytes, struct comparison *out,
                           struct error *err) {
    size_t n;
    struct predictor predictor;
    struct bound bound;
    struct done done = {IN_PARTS_none, LOSSY_none};
    baselines_list(&n);
    struct comparison c = {
        .rows = calloc(n + n_more, sizeof *c.rows), .in_weather = cluster->variability.given, .fastest = SIZE_MAX};
    if (!c.rows)
        return error_no_memory(err);
    enum status st = cluster->variability.given ? predictor_init_in_weather(&predictor, model, cluster, 1, err)
                                                : predictor_init(&predictor, model, cluster, err);
    if (st) {
        free(c.rows);
        return st;
    }
    predictor_set_memory(&predictor, memory_bytes);
    c.memory_bytes = predictor.memory_bytes;
    st = fill_rows(&predictor, n_more, more, &c, &done, err);
    if (!st)
        st = bound_of_micro_batches(model, &predictor.cost, done.lossy, done.in_parts, 1, &bound, err);
    if (!st)
        st = all_reduce_floor(model, &predictor.cost, &c.all_reduce_us, err);
    predictor_release(&predictor);
    if (st) {
        free(c.rows);
        return st;
    }
    c.lower_bound_us = bound.iteration_us;
    c.all_reduce_us = fmax(c.all_reduce_us, c.lower_bound_us); /* which holds for all-reduces too */
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

size_t comparison_points(const struct comparison *c, struct front_point *out) {
    size_t n = 0;
    for (size_t r = 0; r < c->n; r++) {
        const struct comparison_row *row = &c->rows[r];
        if (row->peak_bytes > 0 && !row->over && !row->has_updates && !isnan(row->iteration_us))
            out[n++] = (struct front_point){.strategy = row->name,
                                            .id = row->id.hex,
                                            .n_groups = row->n_groups,
                                            .bytes = row->peak_bytes,
                                            .iteration_us = comparison_us(c, r)};
    }
    front_sort(n, out);
    return n;
}

double comparison_gap(const struct comparison *c) {
    return c->fastest == SIZE_MAX ? NAN : c->rows[c->fastest].iteration_us / c->lower_bound_us - 1;
}
