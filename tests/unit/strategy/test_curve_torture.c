/* Every allocation of a curve fails once. */
#include "strategy/cost/curve.h"
#include "tests/support/check.h"
#include "tests/support/torture.h"

static enum status build(void *arg, struct error *err) {
    const double bytes[] = {1, 2, 3}, time_us[] = {3, 2, 4};
    const struct curve_table tables[] = {{2, bytes, time_us}, {3, bytes, time_us}};
    struct arena arena = {0};
    struct curve curve;
    (void)arg;
    enum status status = curve_init(&curve, 2, tables, 0, &arena, err);
    arena_release(&arena);
    return status;
}

static void a_curve_without_memory_is_refused_and_leaks_nothing(void **state) {
    (void)state;
    assert_true(torture(build, NULL) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_curve_without_memory_is_refused_and_leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
