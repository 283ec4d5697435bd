/* Gradients against finite differences, the least loss against a solver of another kind and a closed form, and batches.
 *
 * softmax: Newton's method by conjugate gradients on differences of gradients must end at the same loss. With loss L,
 * gradient g and penalty p, L(w) - min L <= |g|² / 2p. two-layer: the teacher's loss is 0, and no loss is below it. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/training.h"

enum { MOST = 256 };
static const enum training_task tasks[] = {TRAINING_SOFTMAX, TRAINING_TWO_LAYER};

static void init(struct training *t, enum training_task task) {
    struct error err = {0};
    assert_ok(training_init(t, task, &err));
    assert_true(t->n_weights > 0 && t->n_weights <= MOST && t->n_weights == training_weights(task));
}

static void draw_weights(const struct training *t, struct rng *rng, double *w) {
    for (uint32_t k = 0; k < t->n_weights; k++)
        w[k] = rng_normal(rng) * 0.5;
}

static void gradients_are_slopes(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 2; i++) {
        struct training t;
        double w[MOST], gradient[MOST];
        uint32_t batch[TRAINING_BATCH];
        init(&t, tasks[i]);
        draw_weights(&t, &rng, w);
        training_draw(&t, 7, 1, 2, batch);
        for (int all = 0; all < 2; all++) {
            const uint32_t *examples = all ? NULL : batch;
            training_loss(&t, TRAINING_BATCH, examples, w, gradient);
            for (uint32_t k = 0; k < t.n_weights; k++) {
                const double was = w[k], h = 1e-5;
                w[k] = was + h;
                const double above = training_loss(&t, TRAINING_BATCH, examples, w, NULL);
                w[k] = was - h;
                const double below = training_loss(&t, TRAINING_BATCH, examples, w, NULL);
                w[k] = was;
                assert_true(fabs((above - below) / (2 * h) - gradient[k]) < 1e-8);
            }
        }
        training_release(&t);
    }
}

/* With zeros every class has the same chance. */
static void the_first_loss_has_a_closed_form(void **state) {
    (void)state;
    struct training t;
    double w[MOST];
    init(&t, TRAINING_SOFTMAX);
    training_begin(&t, w);
    assert_close(training_loss(&t, 0, NULL, w, NULL), log(5), 1e-12);
    training_release(&t);
}

static double dot(uint32_t n, const double *a, const double *b) {
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* The Hessian at w times a direction, by a central difference. */
static void curve(const struct training *t, const double *w, const double *direction, double *out) {
    double moved[MOST], below[MOST];
    const double h = 1e-4 / sqrt(dot(t->n_weights, direction, direction));
    for (uint32_t k = 0; k < t->n_weights; k++)
        moved[k] = w[k] + h * direction[k];
    training_loss(t, 0, NULL, moved, out);
    for (uint32_t k = 0; k < t->n_weights; k++)
        moved[k] = w[k] - h * direction[k];
    training_loss(t, 0, NULL, moved, below);
    for (uint32_t k = 0; k < t->n_weights; k++)
        out[k] = (out[k] - below[k]) / (2 * h);
}

/* One step of Newton's method; the squared gradient before it. */
static double newton(const struct training *t, double *w) {
    double residual[MOST], direction[MOST], curved[MOST], step[MOST] = {0};
    const uint32_t n = t->n_weights;
    training_loss(t, 0, NULL, w, residual);
    const double first = dot(n, residual, residual);
    for (uint32_t k = 0; k < n; k++)
        direction[k] = residual[k] = -residual[k];
    for (double old = first; old > 1e-14 * first;) {
        curve(t, w, direction, curved);
        const double length = old / dot(n, direction, curved);
        for (uint32_t k = 0; k < n; k++) {
            step[k] += length * direction[k];
            residual[k] -= length * curved[k];
        }
        const double now = dot(n, residual, residual);
        for (uint32_t k = 0; k < n; k++)
            direction[k] = residual[k] + now / old * direction[k];
        old = now;
    }
    for (uint32_t k = 0; k < n; k++)
        w[k] += step[k];
    return first;
}

static void the_least_loss_is_that_of_another_solver(void **state) {
    (void)state;
    struct training t;
    struct error err = {0};
    double w[MOST], gradient[MOST], other[MOST], least;
    init(&t, TRAINING_SOFTMAX);
    assert_ok(training_solve(&t, w, &least, &err));
    training_loss(&t, 0, NULL, w, gradient);
    assert_true(dot(t.n_weights, gradient, gradient) / (2 * 1e-3) <= TRAINING_GAP);
    training_begin(&t, other);
    for (int i = 0; i < 12; i++)
        newton(&t, other);
    assert_true(newton(&t, other) / (2 * 1e-3) < 1e-12);
    assert_true(fabs(training_loss(&t, 0, NULL, other, NULL) - least) <= TRAINING_GAP);
    training_release(&t);
}

static void the_teacher_has_no_loss(void **state) {
    (void)state;
    struct training t;
    struct error err = {0};
    double w[MOST], gradient[MOST], least;
    init(&t, TRAINING_TWO_LAYER);
    assert_ok(training_solve(&t, w, &least, &err));
    assert_close(training_loss(&t, 0, NULL, w, gradient), 0, 0);
    assert_close(least, 0, 0);
    assert_close(dot(t.n_weights, gradient, gradient), 0, 0);
    training_begin(&t, w);
    assert_true(training_loss(&t, 0, NULL, w, NULL) > 0.1);
    training_release(&t);
}

/* A batch's gradient is the mean of its examples', and the mean over all examples is the whole one. */
static void gradients_of_parts_add_up(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 2; i++) {
        struct training t;
        double w[MOST], whole[MOST], one[MOST], sum[MOST] = {0}, losses = 0;
        init(&t, tasks[i]);
        draw_weights(&t, &rng, w);
        const double loss = training_loss(&t, 0, NULL, w, whole);
        for (uint32_t e = 0; e < t.n_examples; e++) {
            losses += training_loss(&t, 1, &e, w, one) / t.n_examples;
            for (uint32_t k = 0; k < t.n_weights; k++)
                sum[k] += one[k] / t.n_examples;
        }
        assert_close(losses, loss, 1e-10);
        for (uint32_t k = 0; k < t.n_weights; k++)
            assert_true(fabs(sum[k] - whole[k]) < 1e-10);
        training_release(&t);
    }
}

static void batches_are_functions_of_their_seed(void **state) {
    (void)state;
    struct training t;
    uint32_t a[TRAINING_BATCH], b[TRAINING_BATCH];
    init(&t, TRAINING_SOFTMAX);
    training_draw(&t, 1, 2, 3, a);
    training_draw(&t, 1, 2, 3, b);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < TRAINING_BATCH; i++)
        assert_true(a[i] < t.n_examples);
    const uint64_t others[][3] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    for (int i = 0; i < 3; i++) {
        training_draw(&t, others[i][0], (uint32_t)others[i][1], (uint32_t)others[i][2], b);
        assert_memory_not_equal(a, b, sizeof a);
    }
    training_release(&t);
}

/* Without delay both tasks reach a hundredth of the way that is left. */
static void descent_learns_both_tasks(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct training t;
        struct error err = {0};
        double w[MOST], gradient[MOST], velocity[MOST] = {0}, least;
        init(&t, tasks[i]);
        assert_ok(training_solve(&t, w, &least, &err));
        training_begin(&t, w);
        const double first = training_loss(&t, 0, NULL, w, NULL);
        double now = first;
        uint32_t n = 0;
        for (; n < 5000 && now - least > 0.01 * (first - least); n++) {
            uint32_t batch[TRAINING_BATCH];
            training_draw(&t, 1, 0, n, batch);
            training_loss(&t, TRAINING_BATCH, batch, w, gradient);
            for (uint32_t k = 0; k < t.n_weights; k++) {
                velocity[k] = 0.9 * velocity[k] - 0.05 * gradient[k];
                w[k] += velocity[k];
            }
            now = training_loss(&t, 0, NULL, w, NULL);
        }
        print_message("# %s: %u updates from %.4f to %.4f, least %.4f\n", training_name(tasks[i]), n, first, now,
                      least);
        assert_true(n < 5000);
        training_release(&t);
    }
}

static void words_name_tasks(void **state) {
    (void)state;
    enum training_task task;
    assert_true(training_parse("two-layer", &task));
    assert_int_equal(task, TRAINING_TWO_LAYER);
    assert_string_equal(training_name(TRAINING_SOFTMAX), "softmax");
    assert_false(training_parse("three-layer", &task));
    assert_int_equal(training_weights(TRAINING_NONE), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(the_first_loss_has_a_closed_form),
        cmocka_unit_test(the_least_loss_is_that_of_another_solver),
        cmocka_unit_test(the_teacher_has_no_loss),
        cmocka_unit_test(gradients_of_parts_add_up),
        cmocka_unit_test(batches_are_functions_of_their_seed),
        cmocka_unit_test(descent_learns_both_tasks),
        cmocka_unit_test(words_name_tasks),
    };
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
