/* Trials by their median where hardly any fits: found otherwise than one by one (dataset/query.c), and yet the same
 * list as a sort of them all, in both directions, in pages of any size, and from any offset. */
#include "base/rng.h"
#include "dataset/ingest.h"
#include "tests/unit/dataset/fixture.h"

enum { TRIALS = 6000, MODELS = 4, CLUSTERS = 2, MEDIANS = 300, EVERY = 400 };

struct trial {
    int64_t row;
    double median_us; /* NaN: it failed */
    bool rare;
};

static struct store *store;
static struct trial trials[TRIALS];

/* Of 6000 trials on 8 pairs some 15 are rare; a tenth have failed. */
static int set_up(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    struct id models[MODELS], clusters[CLUSTERS];
    struct import_report report;
    static struct record records[TRIALS];
    rng_seed(&rng, test_seed());
    store = must_open(dataset_path("rare.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    for (int i = 0; i < MODELS + CLUSTERS; i++) {
        char content[32];
        snprintf(content, sizeof content, "{\"i\":%d}", i);
        if (i < MODELS)
            models[i] = must_put(store, STORE_MODEL, "m", content);
        else
            clusters[i - MODELS] = must_put(store, STORE_CLUSTER, "c", content);
    }
    for (int i = 0; i < TRIALS; i++) {
        struct trial *t = &trials[i];
        const bool failed = rng_below(&rng, 10) == 0;
        t->row = i + 1;
        t->rare = rng_below(&rng, EVERY) == 0 || i == TRIALS / 2;
        t->median_us = failed ? (double)NAN : 100 + (double)rng_below(&rng, MEDIANS);
        records[i] = (struct record){.model = models[rng_below(&rng, MODELS)].hex,
                                     .cluster = clusters[rng_below(&rng, CLUSTERS)].hex,
                                     .strategy = f.strategy.hex,
                                     .state = failed ? RECORD_FAILED : RECORD_COMPLETE,
                                     .reason = failed ? "x" : NULL,
                                     .proposer = t->rare ? "rare" : "usual",
                                     .runner = "lab",
                                     .predicted_us = (double)NAN,
                                     .mean_us = t->median_us,
                                     .median_us = t->median_us,
                                     .low_us = (double)NAN,
                                     .high_us = (double)NAN};
    }
    assert_ok(store_trials_import(store, TRIALS, records, NULL, &report, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_close(store);
    return 0;
}

static bool backwards;

/* Those without a measurement come last, whichever way. */
static int compare(const void *a, const void *b) {
    const struct trial *x = a, *y = b;
    if (isnan(x->median_us) != isnan(y->median_us))
        return isnan(x->median_us) ? 1 : -1;
    const int by_median = isnan(x->median_us) ? 0 : (x->median_us > y->median_us) - (x->median_us < y->median_us);
    const int way = by_median ? by_median : x->row < y->row ? -1 : 1;
    return backwards ? -way : way;
}

static size_t sorted(bool all, struct trial *out) {
    size_t n = 0;
    for (int i = 0; i < TRIALS; i++)
        if (all || trials[i].rare)
            out[n++] = trials[i];
    qsort(out, n, sizeof *out, compare);
    return n;
}

static void compare_lists(struct query query, size_t n, const struct trial *wanted) {
    static const size_t sizes[] = {1, 4, 5000};
    struct error err = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct arena arena = {0};
        struct record *page;
        size_t m, seen = 0;
        char next[QUERY_CURSOR_ROOM], after[QUERY_CURSOR_ROOM];
        query.limit = sizes[s];
        query.after = NULL;
        do {
            assert_ok(query_page(store, &query, &arena, &m, &page, next, &err));
            for (size_t i = 0; i < m; i++)
                assert_int_equal(page[i].trial, wanted[seen++].row);
            memcpy(after, next, sizeof after);
            query.after = after;
        } while (*next);
        assert_int_equal(seen, n);
        arena_release(&arena);
    }
}

static void hardly_any_that_fit_come_in_the_same_order(void **state) {
    (void)state;
    static struct trial wanted[TRIALS];
    for (int way = 0; way < 2; way++) {
        backwards = way;
        const struct query query = {.order = QUERY_BY_measured, .descending = way, .filter = "proposer = rare"};
        compare_lists(query, sorted(false, wanted), wanted);
    }
}

static void an_offset_counts_those_that_fit(void **state) {
    (void)state;
    static struct trial wanted[TRIALS];
    struct error err = {0};
    backwards = false;
    const size_t n = sorted(false, wanted);
    for (size_t offset = 0; offset <= n; offset++) {
        struct arena arena = {0};
        struct record *records;
        size_t m;
        const struct query query = {
            .order = QUERY_BY_measured, .filter = "proposer = rare", .offset = offset, .limit = 3};
        assert_ok(query_collect(store, &query, &arena, &m, &records, &err));
        assert_int_equal(m, n - offset < 3 ? n - offset : 3);
        for (size_t i = 0; i < m; i++)
            assert_int_equal(records[i].trial, wanted[offset + i].row);
        arena_release(&arena);
    }
}

static void none_that_fit_are_found_to_be_none(void **state) {
    (void)state;
    compare_lists((struct query){.order = QUERY_BY_measured, .filter = "proposer = nobody"}, 0, NULL);
    compare_lists((struct query){.order = QUERY_BY_measured, .filter = "proposer = nobody AND state = complete"}, 0,
                  NULL);
}

static void all_that_fit_come_in_the_same_order(void **state) {
    (void)state;
    static struct trial wanted[TRIALS];
    struct error err = {0};
    struct arena arena = {0};
    struct record *records;
    size_t m;
    backwards = true;
    const size_t n = sorted(true, wanted);
    const struct query query = {.order = QUERY_BY_measured, .descending = true, .filter = "runner = lab"};
    assert_ok(query_collect(store, &query, &arena, &m, &records, &err));
    assert_int_equal(m, n);
    for (size_t i = 0; i < m; i++)
        assert_int_equal(records[i].trial, wanted[i].row);
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardly_any_that_fit_come_in_the_same_order),
        cmocka_unit_test(an_offset_counts_those_that_fit),
        cmocka_unit_test(none_that_fit_are_found_to_be_none),
        cmocka_unit_test(all_that_fit_come_in_the_same_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
