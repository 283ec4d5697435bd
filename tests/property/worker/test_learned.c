/* What a server of updates learns (trial-runner/worker/mpi/learned.h) against equation 2 of MLfabric in its other form,
 * w' = w + u + momentum * (w - the weights before w), and which versions' weights are kept. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/learned.h"

enum { INSTANCES = 60, MOST_STEPS = 400, MOST_WEIGHTS = 512 };

/* A run; step s ends in a version, as several updates in one sum are several versions. */
struct plain {
    struct rng rng;
    struct training training;
    struct training_options options;
    struct learned learned;
    uint32_t n_steps;
    uint64_t version[MOST_STEPS];
    double weights[MOST_STEPS][MOST_WEIGHTS];
    double now[MOST_WEIGHTS], before[MOST_WEIGHTS]; /* as the plain reading has them */
    double own[MOST_WEIGHTS];                       /* as the server has them */
};

static void begin(struct plain *p, uint64_t number) {
    struct error err;
    memset(p, 0, sizeof *p);
    rng_seed(&p->rng, test_seed() + number);
    assert_ok(training_init(&p->training, number % 2 ? TRAINING_SOFTMAX : TRAINING_TWO_LAYER, &err));
    assert_in_range(p->training.n_weights, 1, MOST_WEIGHTS);
    p->options.momentum = number % 3 ? rng_uniform(&p->rng) * 0.95 : 0;
    const uint64_t versions = 1 + rng_below(&p->rng, number % 4 ? MOST_STEPS : 3 * LEARNED_MOST);
    learned_init(&p->learned, (struct learned_subject){&p->training, &p->options, versions, 1}, p->own);
    training_begin(&p->training, p->now);
    memcpy(p->before, p->now, sizeof p->before);
    assert_memory_equal(p->own, p->now, p->training.n_weights * sizeof(double));
}

static void end(struct plain *p) {
    learned_release(&p->learned);
    training_release(&p->training);
}

/* One to four updates make the next step, alone or as a sum. */
static void step(struct plain *p) {
    const uint32_t n = p->training.n_weights, updates = 1 + (uint32_t)rng_below(&p->rng, 4);
    double sum[MOST_WEIGHTS] = {0}, foreseen[MOST_WEIGHTS];
    for (uint32_t i = 0; i < updates; i++) {
        double update[MOST_WEIGHTS];
        for (uint32_t k = 0; k < n; k++)
            sum[k] += update[k] = rng_normal(&p->rng);
        learned_add(&p->learned, update);
    }
    for (uint32_t k = 0; k < n; k++) {
        const double next = p->now[k] + sum[k] + p->options.momentum * (p->now[k] - p->before[k]);
        p->before[k] = p->now[k];
        p->now[k] = next;
    }
    const uint64_t version = (p->n_steps ? p->version[p->n_steps - 1] : 0) + 1 + rng_below(&p->rng, 3);
    learned_so_far(&p->learned, p->own, foreseen);
    learned_apply(&p->learned, version, p->own);
    for (uint32_t k = 0; k < n; k++)
        assert_true(fabs(p->own[k] - p->now[k]) <= 1e-9 * (1 + fabs(p->now[k])) &&
                    fabs(foreseen[k] - p->own[k]) <= 1e-9);
    memcpy(p->weights[p->n_steps], p->own, n * sizeof(double));
    p->version[p->n_steps++] = version;
}

/* Row i has the weights of the first version that is at least (i + 1) * every; versions after the run have none. */
static void expect_rows(const struct plain *p) {
    const struct learned *l = &p->learned;
    const uint64_t last = p->version[p->n_steps - 1], known = last < l->of.versions ? last : l->of.versions;
    const uint64_t every = (l->of.versions + LEARNED_MOST - 1) / LEARNED_MOST;
    assert_int_equal(l->n, known / every);
    for (size_t i = 0; i < l->n; i++) {
        uint32_t s = 0;
        while (p->version[s] < (i + 1) * every)
            s++;
        assert_memory_equal(l->weights + i * p->training.n_weights, p->weights[s],
                            p->training.n_weights * sizeof(double));
        assert_true(i == 0 || l->at_us[i] >= l->at_us[i - 1]);
    }
}

static void weights_follow_equation_2_and_are_kept_by_version(void **state) {
    static struct plain p;
    size_t thinned = 0;
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        begin(&p, number);
        const uint32_t steps = 1 + (uint32_t)rng_below(&p.rng, MOST_STEPS);
        while (p.n_steps < steps)
            step(&p);
        expect_rows(&p);
        thinned += p.learned.every > 1 && p.learned.n > 0;
        end(&p);
    }
    assert_true(thinned > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_follow_equation_2_and_are_kept_by_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
