/* Every allocation of a suggestion and a space fails once. */
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/landscapes.h"
#include "tests/support/torture.h"
#include "tuner/search/bayes.h"

enum { TRIALS = 6 };

static const struct bayes_dimension space[] = {{BAYES_LINEAR, -3, 3}, {BAYES_LOG2, 1, 64}, {BAYES_CATEGORICAL, 0, 2}};

static double prior(void *context, const double *x) {
    (void)context;
    return x[0] * x[0];
}

static enum status suggest(void *arg, struct error *err) {
    static const double x[TRIALS][3] = {{-3, 1, 0}, {-2, 2, 1}, {0, 4, 2}, {1, 9, 0}, {2, 33, 1}, {3, 64, 2}};
    struct bayes_trial trials[TRIALS];
    struct bayes *b = NULL;
    struct bayes_advice advice;
    double out[2 * 3];
    for (size_t i = 0; i < TRIALS; i++)
        trials[i] = (struct bayes_trial){.x = x[i], .y = x[i][0] + x[i][2]};
    struct bayes_history history = {.n = *(const size_t *)arg, .trials = trials, .n_pending = 1, .pending = x[5]};
    enum status status = bayes_new(3, space, &(struct bayes_options){.prior = prior}, &b, err);
    if (status == ST_OK)
        status = bayes_suggest(b, &history, 2, out, &advice, err);
    bayes_free(b);
    return status;
}

static void a_suggestion_survives_each_failed_allocation(void **state) {
    (void)state;
    size_t none = 0, some = 5;
    assert_true(torture(suggest, &none) >= 5);
    assert_true(torture(suggest, &some) >= 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suggestion_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
