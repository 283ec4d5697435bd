/* The order in which variables are placed on servers. */
#include <stdlib.h>

#include "base/rng.h"
#include "strategy/space/largest_first.h"
#include "tests/support/check.h"

enum { ROUNDS = 200, MOST = 40 };

/* Few different sizes, so that most have ties. */
static void the_largest_come_first_and_of_equal_ones_the_first_in_the_model(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        struct sized_variable list[MOST];
        bool seen[MOST] = {false};
        size_t n = rng_below(&rng, MOST + 1);
        for (size_t i = 0; i < n; i++)
            list[i] = (struct sized_variable){(double)rng_below(&rng, 6) * 4096, (uint32_t)i};
        for (size_t i = n; i > 1; i--) {
            size_t j = rng_below(&rng, i);
            struct sized_variable swap = list[i - 1];
            list[i - 1] = list[j];
            list[j] = swap;
        }
        largest_first(n, list);
        for (size_t i = 0; i < n; i++) {
            assert_false(seen[list[i].variable]);
            seen[list[i].variable] = true;
            assert_true(!i || list[i - 1].bytes > list[i].bytes ||
                        (list[i - 1].bytes == list[i].bytes && list[i - 1].variable < list[i].variable));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_come_first_and_of_equal_ones_the_first_in_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
