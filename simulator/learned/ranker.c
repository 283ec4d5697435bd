/* Making, training and asking rankers.
 *
 * Training is the same for all kinds, and for trees the same for each member: split the examples, normalise, set what
 * the score starts from, fit, then score both folds with the result, exactly as a reader of the saved ranker would. The
 * score of a residual ranker starts from log(timeline_us) + `shift`. The shift is the mean error of that start over
 * domains: the error that all domains share needs no learning, and weight decay cannot pull it to zero. Training a
 * ranker further starts from its own scores in the same way. */
#include "simulator/learned/ranker.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/clock.h"
#include "simulator/learned/pairwise_accuracy.h"
#include "simulator/learned/ranker_internal.h"
#include "simulator/learned/training.h"
#include "simulator/learned/trees.h"

enum { INIT_STREAM = 0x1417, MEMBER_SEED = 0x9e3779b9 };

/* Scores are logarithms, so 0.1 is a difference of ten per cent: one that a ranker should be sure of. */
static const double TEMPERATURE = 0.1;
/* Trials of one strategy differ by about this share. */
static const double NOISE = 0.01;
/* Weight of the Huber term beside the ranking loss: enough to hold scores to the scale of times. */
static const double ANCHOR = 0.3;
/* In further training the old ranker counts as this many examples: with n new examples the steps are multiplied by n /
 * (n + FORMER). With full steps ten examples of a new domain spoil an order that hundreds have taught. */
static const double FORMER = 200;

static const struct neural_network *const NETWORKS[RANKER_KIND_COUNT] = {
    [RANKER_linear] = &network_linear,
    [RANKER_rnn] = &network_rnn,
    [RANKER_gat] = &network_gat,
};

const struct neural_network *ranker_network(enum ranker_kind kind) {
    return NETWORKS[kind];
}

static void hold_blas(void) {
    openblas_set_num_threads(1);
}

void ranker_hold_blas(void) {
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, hold_blas);
}

struct ranker *ranker_new(enum ranker_kind kind) {
    struct ranker *ranker = calloc(1, sizeof *ranker);
    if (!ranker)
        return NULL;
    ranker->options.kind = kind;
    if (NETWORKS[kind] && !(ranker->parameters = calloc(NETWORKS[kind]->parameters, sizeof(double)))) {
        free(ranker);
        return NULL;
    }
    return ranker;
}

void ranker_free(struct ranker *ranker) {
    if (!ranker)
        return;
    forest_release(&ranker->forest);
    free(ranker->parameters);
    free(ranker);
}

enum ranker_kind ranker_kind_of(const struct ranker *ranker) {
    return ranker->options.kind;
}

bool ranker_residual(const struct ranker *ranker) {
    return ranker->options.residual;
}

const struct ranker_options *ranker_options_of(const struct ranker *ranker) {
    return &ranker->options;
}

const struct ranker_report *ranker_report_of(const struct ranker *ranker) {
    return &ranker->report;
}

/* ---- scoring ---- */

static enum status run_network(const struct ranker *ranker, const struct features *features, double *score,
                               struct error *err) {
    const struct neural_network *network = NETWORKS[ranker->options.kind];
    struct arena input_arena = {0}, scratch = {0};
    struct network_input input;
    void *state;
    enum status status =
        normalise(&ranker->normalisation, features, ranker->options.kind != RANKER_linear, &input_arena, &input, err);
    if (!status)
        status = network->forward(ranker->parameters, &input, &scratch, &state, score, err);
    arena_release(&scratch);
    arena_release(&input_arena);
    return status;
}

static double run_forest(const struct ranker *ranker, const struct features *features) {
    float row[FEATURE_GLOBAL_COUNT];
    trees_row(features, row);
    return ranker->leaf_scale * (double)forest_score(&ranker->forest, row);
}

static enum status check_timeline(const struct features *features, struct error *err) {
    if (features->timeline_us > 0 && isfinite(features->timeline_us))
        return ST_OK;
    return error_set(err, ST_INVALID, "the timeline's prediction is %g us; a residual ranker needs a positive time",
                     features->timeline_us);
}

/* The score without the kind's own part. */
static double start_of(const struct ranker *ranker, const struct features *features) {
    return (ranker->options.residual ? log(features->timeline_us) : 0) + ranker->shift;
}

enum status ranker_score(const struct ranker *ranker, const struct features *features, double *out, struct error *err) {
    enum status status = ranker->options.residual ? check_timeline(features, err) : ST_OK;
    double own = 0;
    if (status)
        return status;
    if (NETWORKS[ranker->options.kind])
        status = run_network(ranker, features, &own, err);
    else
        own = run_forest(ranker, features);
    if (!status)
        *out = start_of(ranker, features) + own;
    return status;
}

/* ---- training ---- */

/* fold.score: the score before training. fold.base: the part of it that training does not change. For a network that is
 * the score without the network's output; for trees it is the whole score, since new trees are added to the old. */
static enum status set_base(const struct ranker *ranker, struct fold *fold, struct error *err) {
    const bool network = NETWORKS[ranker->options.kind] != NULL;
    enum status status = ST_OK;
    for (size_t i = 0; i < fold->n && !status; i++) {
        status = ranker_score(ranker, fold->features[i], &fold->score[i], err);
        fold->base[i] = network && !status ? start_of(ranker, fold->features[i]) : fold->score[i];
    }
    return status;
}

static void shift_fold(struct fold *fold, double by) {
    for (size_t i = 0; i < fold->n; i++)
        fold->base[i] += by;
}

/* What the scores start from, and the shift that makes them right on average. */
static enum status set_start(struct ranker *ranker, struct sample *sample, struct error *err) {
    enum status status = set_base(ranker, &sample->training, err);
    if (!status)
        status = set_base(ranker, &sample->validation, err);
    if (status || !ranker->options.residual)
        return status;
    const double bias = fold_bias(&sample->training);
    ranker->shift -= bias;
    shift_fold(&sample->training, -bias);
    shift_fold(&sample->validation, -bias);
    return ST_OK;
}

static enum status accuracy(const struct ranker *ranker, struct fold *fold, double *out, struct error *err) {
    enum status status = ST_OK;
    for (size_t i = 0; i < fold->n && !status; i++)
        status = ranker_score(ranker, fold->features[i], &fold->score[i], err);
    if (!status)
        *out = pairwise_accuracy(fold->n, fold->us, fold->score, fold->group);
    return status;
}

/* -0 and 0 score alike but are not written alike. */
static void drop_negative_zeros(size_t n, double *x) {
    for (size_t i = 0; i < n; i++)
        x[i] += 0.0;
}

static enum status fit(struct ranker *ranker, struct training *training, bool goes_on, struct error *err) {
    const struct neural_network *network = NETWORKS[ranker->options.kind];
    struct sample *sample = &training->sample;
    enum status status = set_start(ranker, sample, err);
    if (status)
        return status;
    if (network)
        status = network_fit(network, &ranker->normalisation, training, goes_on, ranker->parameters, err);
    else
        status = trees_fit(training, &ranker->forest, err);
    if (network)
        drop_negative_zeros(network->parameters, ranker->parameters);
    ranker->report = (struct ranker_report){.epochs = training->epochs,
                                            .best_epoch = training->best_epoch,
                                            .n_training = sample->training.n,
                                            .n_validation = sample->validation.n};
    if (!status)
        status = accuracy(ranker, &sample->training, &ranker->report.training_accuracy, err);
    if (!status)
        status = accuracy(ranker, &sample->validation, &ranker->report.validation_accuracy, err);
    return status;
}

static enum status prepare(struct ranker *ranker, const struct ranker *from, const struct fold *training,
                           struct error *err) {
    const struct neural_network *network = NETWORKS[ranker->options.kind];
    struct rng rng;
    ranker->leaf_scale = TEMPERATURE;
    if (!from) {
        normalisation_fit(training->n, training->features, &ranker->normalisation);
        rng_split(&rng, ranker->options.seed, INIT_STREAM);
        if (network)
            network->init(ranker->parameters, &rng);
        return ST_OK;
    }
    ranker->normalisation = from->normalisation;
    ranker->shift = from->shift;
    if (network) {
        memcpy(ranker->parameters, from->parameters, network->parameters * sizeof(double));
        return ST_OK;
    }
    ranker->leaf_scale = from->leaf_scale;
    return forest_copy(&from->forest, &ranker->forest, err);
}

static enum status train(struct ranker *ranker, const struct ranker *from, const struct ranker_options *options,
                         size_t n, const struct ranker_example *examples, struct error *err) {
    struct training training = {.options = options};
    enum status status = sample_init(&training.sample, n, examples, options->validation, options->seed, err);
    if (status)
        return status;
    const double fresh = (double)training.sample.training.n;
    training.rate = options->learning_rate * (from ? fresh / (fresh + FORMER) : 1);
    status = prepare(ranker, from, &training.sample.training, err);
    training.loss = (struct loss){.sigma_us = options->sigma_us,
                                  .temperature = ranker->leaf_scale,
                                  .noise = NOISE,
                                  .anchor = ranker->options.residual ? ANCHOR : 0};
    if (!status)
        status = fit(ranker, &training, from != NULL, err);
    sample_release(&training.sample);
    return status;
}

/* ---- members ---- */

/* Add a member's own trees, its shift and its report to *ranker, each as its share of the whole. */
static enum status add_member(struct ranker *ranker, const struct ranker *member, size_t former, double share,
                              struct error *err) {
    struct ranker_report *sum = &ranker->report;
    const struct ranker_report *its = &member->report;
    ranker->leaf_scale = member->leaf_scale;
    ranker->shift += share * member->shift;
    sum->epochs = its->epochs > sum->epochs ? its->epochs : sum->epochs;
    sum->best_epoch = its->best_epoch > sum->best_epoch ? its->best_epoch : sum->best_epoch;
    sum->n_training = its->n_training;
    sum->n_validation = its->n_validation;
    sum->training_accuracy += share * its->training_accuracy;
    sum->validation_accuracy += share * its->validation_accuracy;
    return forest_append_scaled(&ranker->forest, &member->forest, former, (float)share, err);
}

static enum status train_member(const struct ranker *ranker, const struct ranker *from, uint64_t number, size_t n,
                                const struct ranker_example *examples, const atomic_int *cancel, struct ranker **out,
                                struct error *err) {
    struct ranker *member = ranker_new(ranker->options.kind);
    if (!member)
        return error_no_memory(err);
    member->options = ranker->options;
    struct ranker_options options = ranker->options;
    options.seed += number * MEMBER_SEED;
    options.cancel = cancel;
    const enum status status = train(member, from, &options, n, examples, err);
    if (!status)
        *out = member;
    else
        ranker_free(member);
    return status;
}

/* Boosted trees are the mean of members that differ in the examples that stop them and those that grow each tree:
 * bagging (Breiman 1996), which averages out the chance of a single draw. On four recorded domains it raised the
 * accuracy by 0.5 points, more than other depths, rates and penalties did. */
static enum status train_members(struct ranker *ranker, const struct ranker *from, const struct ranker_options *options,
                                 size_t n, const struct ranker_example *examples, struct error *err) {
    const size_t former = from ? from->forest.n_trees : 0;
    enum status status = from ? forest_copy(&from->forest, &ranker->forest, err) : ST_OK;
    for (uint64_t k = 0; k < options->members && !status; k++) {
        struct ranker *member = NULL;
        status = train_member(ranker, from, k, n, examples, options->cancel, &member, err);
        if (status)
            break;
        if (k == 0)
            ranker->normalisation = member->normalisation;
        status = add_member(ranker, member, former, 1.0 / options->members, err);
        ranker_free(member);
    }
    return status;
}

static enum status train_from(const struct ranker *from, const struct ranker_options *options, size_t n,
                              const struct ranker_example *examples, struct ranker **out, struct ranker_report *report,
                              struct error *err) {
    const double start_us = clock_now_us();
    enum status status = ranker_check_options(options, err);
    if (status)
        return status;
    ranker_hold_blas();
    struct ranker *ranker = ranker_new(from ? from->options.kind : options->kind);
    if (!ranker)
        return error_no_memory(err);
    const enum ranker_kind kind = ranker->options.kind;
    ranker->options = *options;
    ranker->options.kind = kind;
    ranker->options.residual = from ? from->options.residual : options->residual;
    ranker->options.cancel = NULL;
    status = NETWORKS[kind] ? train(ranker, from, options, n, examples, err)
                            : train_members(ranker, from, options, n, examples, err);
    if (status) {
        ranker_free(ranker);
        return status;
    }
    if (report) {
        *report = ranker->report;
        report->seconds = (clock_now_us() - start_us) * 1e-6;
    }
    *out = ranker;
    return ST_OK;
}

enum status ranker_train(const struct ranker_options *options, size_t n, const struct ranker_example *examples,
                         struct ranker **out, struct ranker_report *report, struct error *err) {
    return train_from(NULL, options, n, examples, out, report, err);
}

enum status ranker_fine_tune(const struct ranker *from, const struct ranker_options *options, size_t n,
                             const struct ranker_example *examples, struct ranker **out, struct ranker_report *report,
                             struct error *err) {
    return train_from(from, options, n, examples, out, report, err);
}
