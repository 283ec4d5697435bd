/* Features of a trial are made once and kept: they are those of the cluster as described, which is what the ranker was
 * trained on. */
#include "tuner/learn/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status learner_init(struct learner *out, const struct ranker *from, const struct model *model,
                         const struct cluster *cluster, uint64_t seed, struct error *err) {
    *out = (struct learner){.from = from, .seed = seed};
    if (!from)
        return ST_OK;
    enum status st = predictor_init(&out->described, model, cluster, err);
    out->described.brief = true;
    return st;
}

void learner_release(struct learner *l) {
    if (!l->from)
        return;
    learner_end(l);
    for (size_t i = 0; i < l->n_features; i++)
        features_release(&l->features[i]);
    free(l->features);
    free(l->trials);
    ranker_free(l->tuned);
    predictor_release(&l->described);
    *l = (struct learner){0};
}

/* Describe the trials that were not described before. */
static enum status describe_new(struct learner *l) {
    struct features *features = realloc(l->features, (l->n ? l->n : 1) * sizeof *features);
    if (!features)
        return ST_NO_MEMORY;
    l->features = features;
    for (; l->n_features < l->n; l->n_features++) {
        struct features *f = &l->features[l->n_features];
        *f = (struct features){0};
        if (predictor_features(&l->described, l->trials[l->n_features].strategy, f, NULL, NULL))
            *f = (struct features){0};
    }
    return ST_OK;
}

static void *train(void *context) {
    struct learner *l = context;
    struct ranker *tuned;
    struct ranker_options options = ranker_default_options(ranker_kind_of(l->from));
    struct ranker_example *examples = calloc(l->n + 1, sizeof *examples);
    size_t n = 0;
    options.seed = l->seed;
    options.validation = 0;
    options.members = 1; /* with eight, training would take the cores that a trial runs on */
    options.cancel = l->cancel;
    if (!examples || describe_new(l)) {
        free(examples);
        return NULL;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->features[i].n_shards && isfinite(l->trials[i].us))
            examples[n++] = (struct ranker_example){&l->features[i], l->trials[i].us, 0};
    if (n >= LEARNER_LEAST && !ranker_fine_tune(l->from, &options, n, examples, &tuned, NULL, NULL)) {
        ranker_free(l->tuned);
        l->tuned = tuned;
    }
    free(examples);
    return NULL;
}

enum status learner_begin(struct learner *l, size_t n, const struct learner_trial *trials, struct error *err) {
    if (!l->from || n < LEARNER_LEAST)
        return ST_OK;
    learner_end(l);
    struct learner_trial *copy = realloc(l->trials, n * sizeof *copy);
    if (!copy)
        return error_no_memory(err);
    memcpy(copy, trials, n * sizeof *copy);
    l->trials = copy;
    l->n = n;
    l->running = !pthread_create(&l->thread, NULL, train, l);
    if (!l->running)
        train(l);
    return ST_OK;
}

void learner_end(struct learner *l) {
    if (!l->running)
        return;
    pthread_join(l->thread, NULL);
    l->running = false;
}

const struct ranker *learner_ranker(const struct learner *l) {
    return l->tuned ? l->tuned : l->from;
}
