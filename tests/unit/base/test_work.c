/* Work that may be ended. */
#include <pthread.h>
#include <time.h>

#include "base/arena.h"
#include "base/work.h"
#include "tests/support/check.h"

/* Use the processor until the check fails, for at most two seconds of processor time. */
static enum status spin(struct error *err) {
    enum status st = ST_OK;
    for (clock_t start = clock(); !st && clock() - start < 2 * CLOCKS_PER_SEC;)
        st = work_check(err);
    return st;
}

static void who_entered_nothing_goes_on(void **state) {
    (void)state;
    assert_null(work_current());
    assert_int_equal(work_check(NULL), ST_OK);
}

static void a_limit_of_processor_time_ends_it(void **state) {
    (void)state;
    struct error err = {0};
    struct work work = {.limit_us = 20e3};
    work_enter(&work);
    assert_ptr_equal(work_current(), &work);
    assert_fails(spin(&err), ST_CANCELLED, "more processor time");
    work_leave();
    assert_int_equal(atomic_load(&work.end), WORK_SPENT);
    assert_true(work_used_us(&work) >= 20e3);
    assert_int_equal(work_check(NULL), ST_OK);
}

static void sleeping_uses_nothing(void **state) {
    (void)state;
    struct work work = {.limit_us = 20e3};
    work_enter(&work);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    assert_int_equal(work_check(NULL), ST_OK);
    work_leave();
}

static void the_first_reason_to_stop_stays(void **state) {
    (void)state;
    struct error err = {0};
    struct work work = {0};
    work_enter(&work);
    assert_int_equal(work_check(&err), ST_OK);
    work_stop(&work, WORK_LEFT);
    work_stop(&work, WORK_STOPPED);
    assert_fails(work_check(&err), ST_CANCELLED, "has gone");
    work_leave();
}

static void *spin_in(void *work) {
    work_enter(work);
    struct error err = {0};
    const enum status st = spin(&err);
    work_leave();
    return st == ST_CANCELLED ? work : NULL;
}

static void threads_of_one_work_share_its_limit(void **state) {
    (void)state;
    struct work work = {.limit_us = 50e3};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spin_in, &work), 0);
    for (int i = 0; i < 4; i++) {
        void *ended;
        pthread_join(threads[i], &ended);
        assert_ptr_equal(ended, &work);
    }
    assert_true(work_used_us(&work) >= 50e3);
}

static void arenas_hold_no_more_than_the_work_may(void **state) {
    (void)state;
    struct work work = {.limit_bytes = 3 << 20};
    struct arena a = {0}, b = {0}, large = {0};
    work_enter(&work);
    assert_non_null(arena_alloc(&a, 2 << 20, 1));
    assert_false(atomic_load(&work.starved));
    assert_null(arena_alloc(&b, 2 << 20, 1));
    assert_null(arena_alloc(&large, SIZE_MAX / 4, 1));
    assert_true(atomic_load(&work.starved));
    arena_release(&a);
    assert_non_null(arena_alloc(&b, 2 << 20, 1));
    work_leave();
    assert_non_null(arena_alloc(&large, 8 << 20, 1)); /* without work there is no limit */
    arena_release(&b);
    arena_release(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_entered_nothing_goes_on),
        cmocka_unit_test(a_limit_of_processor_time_ends_it),
        cmocka_unit_test(sleeping_uses_nothing),
        cmocka_unit_test(the_first_reason_to_stop_stays),
        cmocka_unit_test(threads_of_one_work_share_its_limit),
        cmocka_unit_test(arenas_hold_no_more_than_the_work_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
