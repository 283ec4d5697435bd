/* Every allocation of reading and explaining traces fails once. */
#include "interop/traces/explanation.h"
#include "tests/support/torture.h"
#include "tests/unit/interop/rank_traces.h"

enum { RANKS = 3 };

static enum status explain(void *sources, struct error *err) {
    struct explanation e;
    enum time_kind cells[20];
    size_t step = 0;
    enum status st = explanation_of(RANKS, sources, &e, err);
    if (st)
        return st;
    st = explanation_typical_step(&e.traces[0], &step, err);
    if (!st)
        st = explanation_picture(&e, 1, step, 20, cells, err);
    explanation_release(&e);
    return st;
}

static void explaining_survives_every_failing_allocation(void **state) {
    (void)state;
    struct rank_text texts[RANKS] = {0};
    struct source sources[RANKS];
    for (int form = 0; form < 2; form++) {
        for (int r = 0; r < RANKS; r++) {
            rank_begin(&texts[r], r, RANKS);
            for (int s = 0; s < 2; s++) {
                rank_step(&texts[r], form, s, 1000 * s, 1000 * s + 1000);
                rank_event(&texts[r], form ? "kernel" : "cpu_op", "mm", 7, 1000 * s, 1000 * s + 200, "");
                rank_event(&texts[r], "user_annotation", "Optimizer.step#SGD.step", 1, 1000 * s + 900, 1000 * s + 999,
                           "");
                if (form)
                    rank_nccl(&texts[r], "0", RANKS, s, 10, 1000 * s + 100 + r, 1000 * s + 400);
                else
                    rank_event(&texts[r], "cpu_op", "c10d::allreduce_", 1, 1000 * s + 90, 1000 * s + 95,
                               "\"Input Dims\": [[[10]]]");
                if (!form)
                    rank_gloo(&texts[r], 10, 1000 * s + 100 + r, 1000 * s + 400);
            }
            sources[r] = rank_end(&texts[r]);
        }
        assert_true(torture(explain, sources) > 50);
    }
    for (int r = 0; r < RANKS; r++)
        free(texts[r].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(explaining_survives_every_failing_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
