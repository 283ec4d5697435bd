/* Explanations in sentences and as a page: what is late, what can be won, a row for each rank. */
#include <stdlib.h>
#include <string.h>

#include "report/explained.h"
#include "tests/unit/interop/rank_traces.h"
#include "tests/unit/report/strict_xml.h"

enum { RANKS = 3 };

static struct rank_text texts[RANKS];

/* Two steps of 1 ms: 200 us of computing, which rank 1 begins `late` us later, and an all-reduce of 300 us. */
static void make(size_t ranks, int late, struct explanation *out) {
    struct source sources[RANKS];
    struct error err;
    for (int r = 0; r < (int)ranks; r++) {
        rank_begin(&texts[r], r, (int)ranks);
        for (int s = 0; s < 2; s++) {
            const double at = 1000 * s, ready = at + 200 + (r == 1 ? late : 0);
            rank_step(&texts[r], true, s, at, at + 1000);
            rank_event(&texts[r], "kernel", "gemm", 7, ready - 200, ready, "");
            rank_nccl(&texts[r], "0", (int)ranks, s, 1024, ready, at + 500 + late);
        }
        sources[r] = rank_end(&texts[r]);
    }
    assert_ok(explanation_of(ranks, sources, out, &err));
}

static int finish(void **state) {
    (void)state;
    rank_free(RANKS, texts);
    return 0;
}

static void sentences_name_the_late_rank_and_what_can_be_won(void **state) {
    (void)state;
    static const struct explained_floor floor = {true, "lab", 100};
    char out[EXPLAINED_SENTENCES][EXPLAINED_ROOM];
    struct explanation e;
    make(RANKS, 150, &e);
    assert_int_equal(explained_sentences(&e, &floor, out), 6);
    assert_string_equal(out[0], "3 ranks, 2 iterations of 1.00 ms in the mean, times of the device.");
    assert_string_equal(out[1],
                        "Clocks are compared by the ends of 2 collectives, which differ by 0 µs in the median.");
    assert_string_equal(out[2],
                        "Rank 1 is late: the others wait 150 µs of an iteration for it; it comes last to 2 of 2 "
                        "collectives, by 150 µs in the median.");
    assert_contains(out[3], "rank 1 alone");
    assert_contains(out[4], "can win at most 300 µs of an iteration (1.43 times as fast): in the other 700 µs");
    assert_string_equal(out[5],
                        "On lab no strategy can hide 100 µs of it (docs/lower-bound.md), which leaves at most 200 "
                        "µs to win.");
    explanation_release(&e);
}

static void without_a_late_rank_they_say_so(void **state) {
    (void)state;
    static const struct explained_floor none = {0};
    char out[EXPLAINED_SENTENCES][EXPLAINED_ROOM];
    struct explanation e;
    make(RANKS, 5, &e);
    assert_int_equal(explained_sentences(&e, &none, out), 4);
    assert_contains(out[2], "No rank is late");
    explanation_release(&e);
    make(1, 0, &e);
    assert_int_equal(explained_sentences(&e, &none, out), 2);
    assert_contains(out[0], "1 rank, ");
    assert_contains(out[1], "300 µs");
    explanation_release(&e);
}

static void the_page_has_a_row_for_each_rank(void **state) {
    (void)state;
    static const struct explained_floor none = {0};
    struct explanation e;
    struct error err;
    char *page;
    size_t length;
    make(RANKS, 150, &e);
    assert_ok(explained_page(&e, &none, &page, &length, &err));
    assert_int_equal(length, strlen(page));
    assert_true(expect_strict_xml(page) > 50);
    assert_int_equal(count_of(page, ">rank 0<") + count_of(page, ">rank 1<") + count_of(page, ">rank 2<"), 3);
    assert_int_equal(count_of(page, "<title>waiting for a rank: "), RANKS - 1);
    assert_int_equal(count_of(page, "<title>exposed communication: "), RANKS);
    assert_contains(page, "Rank 1 is late");
    assert_contains(page, "4096");
    free(page);
    explanation_release(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sentences_name_the_late_rank_and_what_can_be_won, finish),
        cmocka_unit_test_teardown(without_a_late_rank_they_say_so, finish),
        cmocka_unit_test_teardown(the_page_has_a_row_for_each_rank, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
