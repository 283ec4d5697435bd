/* See surfaces.h. A surface is predicted once, 9,409 nodes twice at about 150 us each; then a value is a look-up, and
 * the least of the truth is exact. */
#include "tests/evaluate/surfaces.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "strategy/baselines/baselines.h"
#include "tests/evaluate/evaluate.h"
#include "tuner/predict/predictor.h"

enum { NODES = SURFACE_SIDE * SURFACE_SIDE };

static const double LOWEST_BYTES = 64 << 10, OCTAVES = 12;
static const struct correction TRUTH = {.startup = 1.8, .transfer = 1.25};

void surface_of_landscape(struct surface *out, const struct landscape *landscape) {
    *out = (struct surface){.n = landscape->n, .least = landscape->least, .landscape = landscape};
    snprintf(out->name, sizeof out->name, "%s", landscape->name);
}

static uint64_t node_bytes(size_t i) {
    return (uint64_t)(LOWEST_BYTES * exp2(OCTAVES * (double)i / (SURFACE_SIDE - 1)));
}

/* A partition is whole elements of four bytes. */
static void predict_nodes(struct predictor *p, struct strategy *s, double *us) {
    struct prediction prediction;
    struct error err;
    for (size_t i = 0; i < NODES; i++) {
        for (uint32_t g = 0; g < s->n_groups; g++)
            s->groups[g].partition_bytes = node_bytes(i / SURFACE_SIDE) / 4 * 4;
        s->credit_bytes = node_bytes(i % SURFACE_SIDE);
        check(predictor_run(p, s, &prediction, &err), &err);
        us[i] = prediction.iteration_us;
    }
}

static size_t least_of(const double *us) {
    size_t least = 0;
    for (size_t i = 1; i < NODES; i++)
        if (us[i] < us[least])
            least = i;
    return least;
}

static double *new_nodes(void) {
    struct error err;
    double *us = malloc(NODES * sizeof *us);
    check(us ? ST_OK : error_no_memory(&err), &err);
    return us;
}

static void predict_surface(struct surface *out, const struct model *model, const struct cluster *cluster) {
    struct strategy strategy;
    struct predictor predictor;
    struct error err;
    check(baselines_build(baselines_find("bytescheduler-all-reduce"), model, cluster, &strategy, &err), &err);
    check(predictor_init(&predictor, model, cluster, &err), &err);
    predictor.brief = true;
    predict_nodes(&predictor, &strategy, out->belief);
    check(predictor_correct(&predictor, TRUTH, &err), &err);
    predict_nodes(&predictor, &strategy, out->truth);
    predictor_release(&predictor);
    strategy_release(&strategy);
}

void surface_of_model(struct surface *out, const char *name) {
    struct model model;
    struct cluster cluster;
    struct error err;
    char path[128];
    snprintf(path, sizeof path, "examples/models/%s.json", name);
    check(model_read_file(path, &model, &err), &err);
    check(cluster_read_file("examples/clusters/v100-16x10g.json", &cluster, &err), &err);
    *out = (struct surface){.n = 2, .is_ratio = true, .truth = new_nodes(), .belief = new_nodes()};
    snprintf(out->name, sizeof out->name, "partition and credit of %s", name);
    predict_surface(out, &model, &cluster);
    out->least = out->truth[least_of(out->truth)];
    cluster_release(&cluster);
    model_release(&model);
}

void surface_release(struct surface *surface) {
    free(surface->truth);
    free(surface->belief);
}

static size_t nearest_node(const double *u) {
    const double last = SURFACE_SIDE - 1;
    const size_t partition = (size_t)lround(fmin(fmax(u[0], 0), 1) * last);
    return partition * SURFACE_SIDE + (size_t)lround(fmin(fmax(u[1], 0), 1) * last);
}

double surface_at(const struct surface *surface, const double *u) {
    double x[SURFACE_DIMENSIONS];
    if (!surface->landscape)
        return surface->truth[nearest_node(u)];
    for (size_t k = 0; k < surface->n; k++) {
        const struct bayes_dimension *box = &surface->landscape->dimensions[k];
        x[k] = box->low + u[k] * (box->high - box->low);
    }
    return surface->landscape->at(x);
}

double surface_prior(void *context, const double *u) {
    const struct surface *surface = context;
    return log(surface->belief[nearest_node(u)]);
}

double surface_regret(const struct surface *surface, double value) {
    return surface->is_ratio ? value / surface->least - 1 : value - surface->least;
}

double surface_belief_regret(const struct surface *surface) {
    return surface_regret(surface, surface->truth[least_of(surface->belief)]);
}

double surface_share_within(const struct surface *surface, double regret) {
    size_t n = 0;
    for (size_t i = 0; i < NODES; i++)
        n += surface_regret(surface, surface->truth[i]) <= regret;
    return (double)n / NODES;
}
