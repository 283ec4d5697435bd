/* The solver is Nesterov's accelerated gradient descent with restarts (O'Donoghue and Candès 2015). It ends when the
 * strong convexity proves the gap: loss - least <= |gradient|² / (2 * penalty). */
#include "trial-runner/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum {
    SOFTMAX_EXAMPLES = 2000,
    SOFTMAX_INPUTS = 21,
    SOFTMAX_CLASSES = 5,
    LAYER_EXAMPLES = 1000,
    LAYER_INPUTS = 9,
    LAYER_HIDDEN = 16,
    TEACHER_HIDDEN = 3,
    DATA_SEED = 20191025,
    MOST_STEPS = 200000,
};
static const double PENALTY = 1e-3;

static const char *const words[] = {
#define X(name, word) word,
    TRAINING_TABLE(X)
#undef X
};

bool training_parse(const char *word, enum training_task *out) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) != 0)
            continue;
        *out = (enum training_task)i;
        return true;
    }
    return false;
}

const char *training_name(enum training_task task) {
    return words[task];
}

uint32_t training_weights(enum training_task task) {
    return task == TRAINING_SOFTMAX     ? SOFTMAX_CLASSES * SOFTMAX_INPUTS
           : task == TRAINING_TWO_LAYER ? LAYER_HIDDEN * (LAYER_INPUTS + 1)
                                        : 0;
}

enum status training_place(enum training_task task, const struct plan *plan, uint32_t *message, struct error *err) {
    const bool plain = consistency_is_plain(&plan->consistency);
    uint32_t largest = 0;
    while (largest + 1 < plan->n_messages &&
           (plan->messages[largest].bytes < plan->max_bytes || !message_brings_gradients(&plan->messages[largest])))
        largest++;
    const enum dtype dtype = plan->n_messages > 0 ? plan->messages[largest].dtype : DTYPE_f32;
    if (plan->ends_in_update && task)
        return error_set(err, ST_INVALID, "no device has all sums where parameters are sharded; %s needs them",
                         training_name(task));
    if (plan->micro_batches > 1 && task)
        return error_set(err, ST_INVALID,
                         "%s is learned from one batch an iteration, and the strategy has %u micro-batches",
                         training_name(task), plan->micro_batches);
    if (task && plain && plan->n_messages > 0 && plan->messages[largest].encoder)
        return error_set(err, ST_INVALID, "the largest message travels as %s; %s is learned over f32 or f64",
                         encoding_name(plan->messages[largest].encoder), training_name(task));
    const uint64_t bytes = training_weights(task) * (plain ? dtype_bytes(dtype) : sizeof(double));
    if (bytes > 0 && plain && dtype != DTYPE_f32 && dtype != DTYPE_f64)
        return error_set(err, ST_INVALID, "the largest message travels as %s; %s is learned over f32 or f64",
                         dtype_name(dtype), training_name(task));
    if (bytes > plan->max_bytes)
        return error_set(err, ST_INFEASIBLE, "the largest message has %llu bytes, and %s has %llu bytes of weights",
                         (unsigned long long)plan->max_bytes, training_name(task), (unsigned long long)bytes);
    *message = largest;
    return ST_OK;
}

/* ---- one example: its loss, and its gradient added to `gradient` unless that is NULL ---- */

static double dot(size_t n, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(size_t n, double factor, const double *from, double *to) {
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* Weights: a row of inputs for each class. */
static double softmax_example(const struct training *t, const double *x, uint32_t class, const double *w,
                              double *gradient) {
    double score[SOFTMAX_CLASSES], most = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < SOFTMAX_CLASSES; c++) {
        score[c] = dot(t->n_inputs, w + c * t->n_inputs, x);
        most = fmax(most, score[c]);
    }
    for (uint32_t c = 0; c < SOFTMAX_CLASSES; c++)
        sum += exp(score[c] - most);
    for (uint32_t c = 0; c < SOFTMAX_CLASSES && gradient; c++)
        add(t->n_inputs, exp(score[c] - most) / sum - (c == class), x, gradient + c * t->n_inputs);
    return log(sum) + most - score[class];
}

/* Weights: a row of inputs for each hidden unit, and then the weights of the units in the output. */
static double layer_example(const struct training *t, const double *x, double wanted, const double *w,
                            double *gradient) {
    const double *out = w + t->n_hidden * t->n_inputs;
    double unit[LAYER_HIDDEN], sum = 0;
    for (uint32_t h = 0; h < t->n_hidden; h++) {
        unit[h] = tanh(dot(t->n_inputs, w + h * t->n_inputs, x));
        sum += out[h] * unit[h];
    }
    const double error = sum - wanted;
    for (uint32_t h = 0; h < t->n_hidden && gradient; h++) {
        gradient[t->n_hidden * t->n_inputs + h] += error * unit[h];
        add(t->n_inputs, error * out[h] * (1 - unit[h] * unit[h]), x, gradient + h * t->n_inputs);
    }
    return error * error / 2;
}

double training_loss(const struct training *t, size_t n, const uint32_t *examples, const double *weights,
                     double *gradient) {
    const double penalty = t->task == TRAINING_SOFTMAX ? PENALTY : 0;
    double loss = 0;
    if (gradient)
        memset(gradient, 0, t->n_weights * sizeof *gradient);
    n = examples ? n : t->n_examples;
    for (size_t i = 0; i < n; i++) {
        const size_t e = examples ? examples[i] : i;
        const double *x = t->inputs + e * t->n_inputs;
        loss += t->task == TRAINING_SOFTMAX ? softmax_example(t, x, (uint32_t)t->wanted[e], weights, gradient)
                                            : layer_example(t, x, t->wanted[e], weights, gradient);
    }
    for (uint32_t k = 0; k < t->n_weights && gradient; k++)
        gradient[k] = gradient[k] / (double)n + penalty * weights[k];
    return loss / (double)n + penalty / 2 * dot(t->n_weights, weights, weights);
}

void training_change(const struct training *t, double rate, uint64_t seed, uint32_t worker, uint32_t iteration,
                     const double *weights, double *change) {
    uint32_t batch[TRAINING_BATCH];
    training_draw(t, seed, worker, iteration, batch);
    training_loss(t, TRAINING_BATCH, batch, weights, change);
    for (uint32_t k = 0; k < t->n_weights; k++)
        change[k] *= -rate;
}

/* ---- data ---- */

/* Later inputs vary less, down to a fifth, so that some weights are learned slower than others. The last input is 1. */
static void draw_inputs(struct training *t, struct rng *rng) {
    for (uint32_t e = 0; e < t->n_examples; e++) {
        double *x = t->inputs + (size_t)e * t->n_inputs;
        for (uint32_t i = 0; i + 1 < t->n_inputs; i++)
            x[i] = rng_normal(rng) * pow(0.2, (double)i / (t->n_inputs - 2));
        x[t->n_inputs - 1] = 1;
    }
}

/* Classes by chance, with the probabilities that some weights give them. */
static void draw_classes(struct training *t, struct rng *rng) {
    double w[SOFTMAX_CLASSES * SOFTMAX_INPUTS], chance[SOFTMAX_CLASSES];
    for (uint32_t k = 0; k < t->n_weights; k++)
        w[k] = rng_normal(rng);
    for (uint32_t e = 0; e < t->n_examples; e++) {
        for (uint32_t c = 0; c < SOFTMAX_CLASSES; c++)
            chance[c] = exp(dot(t->n_inputs, w + c * t->n_inputs, t->inputs + (size_t)e * t->n_inputs));
        t->wanted[e] = (double)rng_weighted(rng, SOFTMAX_CLASSES, chance);
    }
}

/* The teacher is a network of the same size whose units beyond TEACHER_HIDDEN do nothing. */
static void draw_outputs(struct training *t, struct rng *rng) {
    for (uint32_t h = 0; h < TEACHER_HIDDEN; h++) {
        for (uint32_t i = 0; i < t->n_inputs; i++)
            t->teacher[h * t->n_inputs + i] = rng_normal(rng);
        t->teacher[t->n_hidden * t->n_inputs + h] = h % 2 ? -1 : 1;
    }
    for (uint32_t e = 0; e < t->n_examples; e++) {
        const double *x = t->inputs + (size_t)e * t->n_inputs;
        t->wanted[e] = 0;
        for (uint32_t h = 0; h < t->n_hidden; h++)
            t->wanted[e] +=
                t->teacher[t->n_hidden * t->n_inputs + h] * tanh(dot(t->n_inputs, t->teacher + h * t->n_inputs, x));
    }
}

enum status training_init(struct training *t, enum training_task task, struct error *err) {
    const bool softmax = task == TRAINING_SOFTMAX;
    struct rng rng;
    *t = (struct training){.task = task, .n_weights = training_weights(task)};
    if (task == TRAINING_NONE)
        return ST_OK;
    t->n_examples = softmax ? SOFTMAX_EXAMPLES : LAYER_EXAMPLES;
    t->n_inputs = softmax ? SOFTMAX_INPUTS : LAYER_INPUTS;
    t->n_hidden = softmax ? 0 : LAYER_HIDDEN;
    t->inputs = calloc((size_t)t->n_examples * t->n_inputs, sizeof *t->inputs);
    t->wanted = calloc(t->n_examples, sizeof *t->wanted);
    t->teacher = softmax ? NULL : calloc(t->n_weights, sizeof *t->teacher);
    if (!t->inputs || !t->wanted || (!softmax && !t->teacher)) {
        training_release(t);
        return error_no_memory(err);
    }
    rng_split(&rng, DATA_SEED, task);
    draw_inputs(t, &rng);
    if (softmax)
        draw_classes(t, &rng);
    else
        draw_outputs(t, &rng);
    return ST_OK;
}

void training_release(struct training *t) {
    free(t->inputs);
    free(t->wanted);
    free(t->teacher);
    *t = (struct training){0};
}

/* Zeros for the convex task; else small numbers, as equal units would stay equal. */
void training_begin(const struct training *t, double *weights) {
    struct rng rng;
    rng_split(&rng, DATA_SEED, UINT64_C(1000) + t->task);
    for (uint32_t k = 0; k < t->n_weights; k++)
        weights[k] = t->task == TRAINING_SOFTMAX ? 0 : rng_normal(&rng) * 0.3;
}

void training_draw(const struct training *t, uint64_t seed, uint32_t worker, uint32_t iteration,
                   uint32_t batch[TRAINING_BATCH]) {
    struct rng rng;
    rng_split(&rng, seed + UINT64_C(0x9e3779b97f4a7c15) * (worker + 1), iteration);
    for (int i = 0; i < TRAINING_BATCH; i++)
        batch[i] = (uint32_t)rng_below(&rng, t->n_examples);
}

/* ---- the least loss ---- */

/* No curvature of the loss is larger: that of softmax is at most half of the inputs' second moments, whose largest
 * eigenvalue is at most their Frobenius norm. */
static double curvature(const struct training *t) {
    double squares = 0;
    for (uint32_t i = 0; i < t->n_inputs; i++)
        for (uint32_t j = 0; j < t->n_inputs; j++) {
            double moment = 0;
            for (uint32_t e = 0; e < t->n_examples; e++)
                moment += t->inputs[e * t->n_inputs + i] * t->inputs[e * t->n_inputs + j];
            squares += moment * moment / ((double)t->n_examples * t->n_examples);
        }
    return sqrt(squares) / 2 + PENALTY;
}

/* From `w`, with room for three more vectors; false when it did not get there. */
static bool descend(const struct training *t, double *w, double *room) {
    const uint32_t n = t->n_weights;
    double *ahead = room, *gradient = room + n, *before = room + 2 * (size_t)n;
    const double step = 1 / curvature(t);
    uint32_t since = 0; /* the last restart */
    memcpy(ahead, w, n * sizeof *w);
    for (int i = 0; i < MOST_STEPS; i++) {
        double uphill = 0;
        training_loss(t, 0, NULL, ahead, gradient);
        memcpy(before, w, n * sizeof *w);
        for (uint32_t k = 0; k < n; k++) {
            w[k] = ahead[k] - step * gradient[k];
            uphill += gradient[k] * (w[k] - before[k]);
        }
        if (dot(n, gradient, gradient) <= 2 * PENALTY * TRAINING_GAP) {
            memcpy(w, ahead, n * sizeof *w);
            return true;
        }
        since = uphill > 0 ? 0 : since + 1;
        for (uint32_t k = 0; k < n; k++)
            ahead[k] = w[k] + since / (since + 3.0) * (w[k] - before[k]);
    }
    return false;
}

enum status training_solve(const struct training *t, double *weights, double *loss, struct error *err) {
    bool there = true;
    if (t->teacher) {
        memcpy(weights, t->teacher, t->n_weights * sizeof *weights);
    } else {
        double *room = calloc(3 * (size_t)t->n_weights, sizeof *room);
        if (!room)
            return error_no_memory(err);
        training_begin(t, weights);
        there = descend(t, weights, room);
        free(room);
    }
    if (!there)
        return error_set(err, ST_NUMERIC, "the least loss of %s was not found in %d steps", training_name(t->task),
                         MOST_STEPS);
    *loss = training_loss(t, 0, NULL, weights, NULL);
    return ST_OK;
}
