/* Gradient boosting (Friedman 2001) with XGBoost 1.7 (Chen and Guestrin 2016) and our own objective.
 *
 * XGBoost's own rank:pairwise knows neither sigma nor the Huber term nor the weights of pairs, so each round gets the
 * slopes and curvatures of simulator/learned/loss.h at the scores so far, and grows one tree. The unit of
 * a tree's leaves is the temperature: with score = base + temperature * trees and a loss summed over examples instead
 * of averaged, curvatures are of order one for each example, which is what XGBoost's regularisation is scaled for. One
 * thread and a fixed seed; the exact method looks at every split, which hundreds of examples allow. Cost a round: the
 * pairs of the chunks, and O(features examples depth) for the tree. */
#include "simulator/learned/trees.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xgboost/c_api.h>

enum { CHUNK = 128 };
static const double LEAST_CURVE = 1e-6; /* XGBoost drops examples without any */

struct boost {
    struct training *training;
    BoosterHandle booster;
    DMatrixHandle matrix, judge_matrix;
    struct arena arena, draws;
    float *slope, *curve;
};

void trees_row(const struct features *features, float out[FEATURE_GLOBAL_COUNT]) {
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        out[k] = (float)features->global[k];
}

static enum status check(int code, const char *what, struct error *err) {
    return code == 0 ? ST_OK : error_set(err, ST_NUMERIC, "XGBoost could not %s: %.300s", what, XGBGetLastError());
}

static enum status matrix_of(const struct fold *fold, struct arena *arena, DMatrixHandle *out, struct error *err) {
    float *rows = arena_alloc(arena, fold->n, FEATURE_GLOBAL_COUNT * sizeof *rows);
    if (!rows)
        return error_no_memory(err);
    for (size_t i = 0; i < fold->n; i++)
        trees_row(fold->features[i], rows + i * FEATURE_GLOBAL_COUNT);
    return check(XGDMatrixCreateFromMat_omp(rows, fold->n, FEATURE_GLOBAL_COUNT, NAN, out, 1), "take the features",
                 err);
}

static enum status set_parameters(struct boost *boost, struct error *err) {
    const struct ranker_options *options = boost->training->options;
    char seed[32], rate[32], lambda[32];
    snprintf(seed, sizeof seed, "%u", (unsigned)(options->seed % INT32_MAX));
    snprintf(rate, sizeof rate, "%.17g", boost->training->rate);
    snprintf(lambda, sizeof lambda, "%.17g", options->weight_decay);
    const char *const parameters[][2] = {
        {"booster", "gbtree"},
        {"tree_method", "exact"},
        {"nthread", "1"},
        {"verbosity", "0"},
        {"base_score", "0"},
        {"max_depth", "3"},
        {"min_child_weight", "1"},
        {"subsample", "0.8"},
        {"seed_per_iteration", "1"},
        {"seed", seed},
        {"eta", rate},
        {"lambda", lambda},
    };
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0] && !status; i++)
        status = check(XGBoosterSetParam(boost->booster, parameters[i][0], parameters[i][1]), parameters[i][0], err);
    return status;
}

static enum status boost_init(struct boost *boost, struct error *err) {
    struct sample *sample = &boost->training->sample;
    boost->slope = arena_alloc(&boost->arena, sample->training.n, sizeof *boost->slope);
    boost->curve = arena_alloc(&boost->arena, sample->training.n, sizeof *boost->curve);
    if (!boost->slope || !boost->curve)
        return error_no_memory(err);
    enum status status = matrix_of(&sample->training, &boost->arena, &boost->matrix, err);
    if (!status && sample->validation.n > 0)
        status = matrix_of(&sample->validation, &boost->arena, &boost->judge_matrix, err);
    const DMatrixHandle known[] = {boost->matrix, boost->judge_matrix};
    if (!status)
        status = check(XGBoosterCreate(known, sample->validation.n > 0 ? 2 : 1, &boost->booster), "start", err);
    if (!status)
        status = set_parameters(boost, err);
    return status;
}

static void boost_release(struct boost *boost) {
    if (boost->booster)
        XGBoosterFree(boost->booster);
    if (boost->matrix)
        XGDMatrixFree(boost->matrix);
    if (boost->judge_matrix)
        XGDMatrixFree(boost->judge_matrix);
    arena_release(&boost->draws);
    arena_release(&boost->arena);
}

static enum status score_fold(const struct boost *boost, DMatrixHandle matrix, struct fold *fold, struct error *err) {
    bst_ulong n = 0;
    const float *margin = NULL;
    if (fold->n == 0)
        return ST_OK;
    enum status status = check(XGBoosterPredict(boost->booster, matrix, 1, 0, 0, &n, &margin), "predict", err);
    if (!status && n != fold->n)
        status = error_set(err, ST_NUMERIC, "XGBoost predicted %llu rows of %zu", (unsigned long long)n, fold->n);
    for (size_t i = 0; i < fold->n && !status; i++)
        fold->score[i] = fold->base[i] + boost->training->loss.temperature * (double)margin[i];
    return status;
}

/* The loss's derivatives at the scores so far, in units of the temperature and summed over examples. */
static enum status derive(struct boost *boost, uint32_t round, struct error *err) {
    struct training *training = boost->training;
    struct fold *fold = &training->sample.training;
    const double n = (double)fold->n, unit = training->loss.temperature;
    struct rng rng;
    struct chunks chunks;
    arena_clear(&boost->draws);
    rng_split(&rng, training->options->seed, round);
    enum status status = chunks_draw(fold, CHUNK, &rng, &boost->draws, &chunks, err);
    if (status)
        return status;
    memset(fold->slope, 0, fold->n * sizeof *fold->slope);
    memset(fold->curve, 0, fold->n * sizeof *fold->curve);
    const double loss = chunks_loss(&chunks, 0, chunks.n, n, &training->loss, fold, training->sample.offset);
    if (!isfinite(loss))
        return error_set(err, ST_NUMERIC, "the training loss is not finite; lower the learning rate");
    for (size_t i = 0; i < fold->n; i++) {
        boost->slope[i] = (float)(fold->slope[i] * n * unit);
        boost->curve[i] = (float)fmax(fold->curve[i] * n * unit * unit, LEAST_CURVE);
    }
    return ST_OK;
}

static double validation_error(struct training *training) {
    sample_set_offsets(&training->sample);
    return sample_error(&training->sample, training->loss.anchor > 0);
}

static enum status grow_tree(struct boost *boost, uint32_t round, struct error *err) {
    struct sample *sample = &boost->training->sample;
    enum status status = derive(boost, round, err);
    if (!status)
        status =
            check(XGBoosterBoostOneIter(boost->booster, boost->matrix, boost->slope, boost->curve, sample->training.n),
                  "grow a tree", err);
    if (!status)
        status = score_fold(boost, boost->matrix, &sample->training, err);
    if (!status)
        status = score_fold(boost, boost->judge_matrix, &sample->validation, err);
    return status;
}

static enum status run(struct boost *boost, struct error *err) {
    struct training *training = boost->training;
    struct fold *folds[] = {&training->sample.training, &training->sample.validation};
    for (size_t f = 0; f < 2; f++)
        if (folds[f]->n > 0)
            memcpy(folds[f]->score, folds[f]->base, folds[f]->n * sizeof *folds[f]->score);
    struct judge judge = {validation_error(training)};
    for (uint32_t round = 1; round <= training->options->epochs; round++) {
        if (training_is_cancelled(training))
            return error_set(err, ST_CANCELLED, "training was cancelled in round %u", round);
        const enum status status = grow_tree(boost, round, err);
        if (status)
            return status;
        training->epochs = round;
        if (judge_is_better(&judge, validation_error(training)))
            training->best_epoch = round;
        else if (round - training->best_epoch >= training->options->patience)
            break;
    }
    return ST_OK;
}

static enum status keep(struct boost *boost, struct forest *forest, struct error *err) {
    bst_ulong n = 0;
    const char *json = NULL;
    if (boost->training->best_epoch == 0)
        return ST_OK; /* a booster that was never asked to grow has nothing to save */
    enum status status =
        check(XGBoosterSaveModelToBuffer(boost->booster, "{\"format\":\"json\"}", &n, &json), "save its trees", err);
    if (!status)
        status = forest_append_xgboost(forest, json, n, boost->training->best_epoch, FEATURE_GLOBAL_COUNT, err);
    return status;
}

enum status trees_fit(struct training *training, struct forest *forest, struct error *err) {
    struct boost boost = {.training = training};
    enum status status = boost_init(&boost, err);
    if (!status)
        status = run(&boost, err);
    if (!status)
        status = keep(&boost, forest, err);
    boost_release(&boost);
    return status;
}
