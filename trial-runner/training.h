/* What workers learn when a trial measures convergence: small problems on generated data whose least loss is known.
 *
 *   softmax    multinomial logistic regression with a quadratic penalty on all weights. The loss is strongly convex, so
 *              the least one is found by a full-batch solver to TRAINING_GAP.
 *   two-layer  a network with one hidden layer of tanh units and one output, fitted (half the mean squared error) to a
 *              smaller network of its kind. With that one's weights the loss is 0. Not convex.
 *
 * Workers draw batches of TRAINING_BATCH examples and compute gradients g; an update is u = -rate * g, and the server
 * applies w += u + momentum * (the last change of w), as in MLfabric's equations 1 and 2. The loss is that of all
 * examples. Everything is a function of the task and, for batches, of a seed. Threads: read only after init. */
#ifndef TRIAL_RUNNER_TRAINING_H
#define TRIAL_RUNNER_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"

/* X(name, word) */
#define TRAINING_TABLE(X)                                                                                              \
    X(TRAINING_NONE, "none")                                                                                           \
    X(TRAINING_SOFTMAX, "softmax")                                                                                     \
    X(TRAINING_TWO_LAYER, "two-layer")

enum training_task {
#define X(name, word) name,
    TRAINING_TABLE(X)
#undef X
};

enum { TRAINING_BATCH = 32 };
#define TRAINING_GAP 1e-10 /* the least loss is right to this */

/* False for a word that is not in the table. */
bool training_parse(const char *word, enum training_task *out);
const char *training_name(enum training_task task);

struct training_options {
    enum training_task task; /* TRAINING_NONE: nothing is learned */
    double rate, momentum;   /* rate > 0; momentum in [0, 1) */
    double target;           /* of the way from the first loss to the least: what may be left of it; in (0, 1) */
};

struct training {
    enum training_task task;
    uint32_t n_examples, n_inputs, n_hidden, n_weights; /* inputs with the constant one */
    double *inputs;                                     /* row-major n_examples × n_inputs */
    double *wanted;                                     /* [n_examples] the class, or the output */
    double *teacher;                                    /* [n_weights] of loss 0 (two-layer); else NULL */
};

/* Generate the data. Fails: ST_NO_MEMORY. Release with training_release; a zeroed struct may be released. */
enum status training_init(struct training *training, enum training_task task, struct error *err);
void training_release(struct training *training);

/* How many weights a task has; 0 for TRAINING_NONE. */
uint32_t training_weights(enum training_task task);

/* The message that carries gradients at its front: the first of the plan's largest. Updates (strategy/consistency.h)
 * carry doubles; synchronous messages carry elements of their own type, which must be f32 or f64. Fails: ST_INFEASIBLE
 * (no room), ST_INVALID (another type). */
enum status training_place(enum training_task task, const struct plan *plan, uint32_t *message, struct error *err);

/* The weights [n_weights] that training begins with. */
void training_begin(const struct training *training, double *weights);

/* The numbers of the examples in a worker's batch. */
void training_draw(const struct training *training, uint64_t seed, uint32_t worker, uint32_t iteration,
                   uint32_t batch[TRAINING_BATCH]);

/* The loss on n examples (of all, where `examples` is NULL) and its gradient [n_weights], which may be NULL.
 * O(n * n_weights). */
double training_loss(const struct training *training, size_t n, const uint32_t *examples, const double *weights,
                     double *gradient);

/* Equation 1: what the weights should change by after the worker's batch, -rate * gradient, into `change` [n_weights].
 */
void training_change(const struct training *training, double rate, uint64_t seed, uint32_t worker, uint32_t iteration,
                     const double *weights, double *change);

/* The least loss of all examples, and weights [n_weights] that have it. Fails: ST_NO_MEMORY, ST_NUMERIC (did not get
 * there). */
enum status training_solve(const struct training *training, double *weights, double *loss, struct error *err);

#endif
