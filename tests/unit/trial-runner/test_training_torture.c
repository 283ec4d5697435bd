/* Every allocation of learning, and of what a trial tells of updates, fails once. */
#include "tests/support/check.h"
#include "tests/support/torture.h"
#include "trial-runner/training.h"
#include "trial-runner/trial_updates.h"

static enum status solve(void *arg, struct error *err) {
    struct training training;
    double weights[256], least;
    enum status status = training_init(&training, *(const enum training_task *)arg, err);
    if (status)
        return status;
    status = training_solve(&training, weights, &least, err);
    training_release(&training);
    return status;
}

static enum status make_room(void *arg, struct error *err) {
    (void)arg;
    struct trial_updates *updates = trial_updates_new(3);
    trial_updates_free(updates);
    return updates ? ST_OK : error_no_memory(err);
}

static void learning_survives_each_failed_allocation(void **state) {
    (void)state;
    enum training_task tasks[] = {TRAINING_SOFTMAX, TRAINING_TWO_LAYER};
    for (int i = 0; i < 2; i++)
        assert_int_equal(torture(solve, &tasks[i]), 3);
}

static void room_for_updates_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_int_equal(torture(make_room, NULL), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learning_survives_each_failed_allocation),
        cmocka_unit_test(room_for_updates_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
