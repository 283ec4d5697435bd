/* The views of a plan put together, and the features' names; see featurize/features.h. */
#include "featurize/features.h"

#include "featurize/features_internal.h"

static const char *const GLOBAL_NAMES[] = {
#define X(name, unit, kind, words) #name,
    FEATURE_GLOBAL_TABLE(X)
#undef X
};

static const char *const SHARD_NAMES[] = {
#define X(name, unit, words) #name,
    FEATURE_SHARD_TABLE(X)
#undef X
};

const char *feature_global_name(size_t i) {
    return GLOBAL_NAMES[i];
}

const char *feature_shard_name(size_t i) {
    return SHARD_NAMES[i];
}

static void features_of_timeline(const struct survey *s, struct features *out) {
    const struct timeline_terms *t = s->terms;
    double iteration = t->iteration_us, closed = fmax(s->compute_us, s->sync_us), exposed = fmax(0, t->exposed_us);
    out->timeline_us = iteration;
    GLOBAL(out, log2_timeline_us) = feature_log2(iteration);
    GLOBAL(out, log2_compute_us) = feature_log2(t->compute_us);
    GLOBAL(out, log2_exposed_us) = feature_log2(exposed);
    GLOBAL(out, log2_busy_us) = feature_log2(t->busy_us);
    GLOBAL(out, log2_queue_us) = feature_log2(t->queue_us);
    GLOBAL(out, compute_share) = feature_share(t->compute_us, iteration);
    GLOBAL(out, exposed_share) = feature_share(exposed, iteration);
    GLOBAL(out, busy_share) = feature_share(t->busy_us, iteration);
    GLOBAL(out, log2_queue_share) = feature_log2(feature_share(t->queue_us, iteration * s->plan->n_messages));
    GLOBAL(out, log2_timeline_over_closed) = feature_log2_ratio(iteration, closed);
    GLOBAL(out, log2_closed_sync_us) = feature_log2(s->sync_us);
    GLOBAL(out, log2_closed_form_us) = feature_log2(closed);
    GLOBAL(out, log2_sync_over_compute) = feature_log2_ratio(s->sync_us, s->compute_us);
}

static enum status fill(struct survey *s, struct features *out, struct error *err) {
    enum status status = survey_plan(s, err);
    if (!status)
        status = survey_nodes(s, out, err);
    if (!status)
        status = features_of_shards(s, out, err);
    if (!status)
        status = features_of_graph(s, out, err);
    if (status)
        return status;
    features_of_timeline(s, out);
    features_of_messages(s, out);
    features_of_knobs(s, out);
    features_of_domain(s, out);
    return ST_OK;
}

enum status features_of(const struct strategy *strategy, const struct plan *plan, const struct cost *cost,
                        const struct timeline_terms *terms, struct features *out, struct error *err) {
    struct survey survey = {.strategy = strategy, .plan = plan, .cost = cost, .terms = terms};
    struct features features = {.n_variables = plan->model->n_variables};
    enum status status = fill(&survey, &features, err);
    arena_release(&survey.arena);
    if (status)
        features_release(&features);
    else
        *out = features;
    return status;
}

void features_release(struct features *features) {
    arena_release(&features->arena);
    *features = (struct features){.n_variables = 0};
}
