/* The NCCL tuner plugin as NCCL meets it: opened by dlopen, both symbols looked up, then init, questions, the end. Each
 * answer is held against a lookup in the table and a cost table in which one entry may have changed. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "interop/export/nccl/table.h"
#include "interop/export/nccl/tuner.h"
#include "tests/support/check.h"

enum { ALGORITHMS = 7, PROTOCOLS = 3, IGNORED = -1 };

static void *library;
static const struct tuner_v4 *v4;
static const struct tuner_v5 *v5;

/* Beside this program: OUT/tests/unit/strategy/x and OUT/lib. */
static int open_library(void **state) {
    char path[PATH_MAX + 64];
    (void)state;
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    assert_true(n > 0);
    path[n] = 0;
    for (int i = 0; i < 4; i++)
        *strrchr(path, '/') = 0;
    strcat(path, "/lib/libnccl-tuner-syncopate.so");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        print_error("%s\n", dlerror());
    assert_non_null(library);
    v4 = dlsym(library, "ncclTunerPlugin_v4");
    v5 = dlsym(library, "ncclTunerPlugin_v5");
    return 0;
}

static int close_library(void **state) {
    (void)state;
    return dlclose(library);
}

/* NCCL's log. */
static uint32_t n_warnings, n_lines;
static char last_warning[512];

static void take_log(enum tuner_log_level level, unsigned long subsystems, const char *file, int line,
                     const char *format, ...) {
    va_list args;
    assert_int_equal(subsystems, TUNER_LOG_TUNING);
    assert_non_null(file);
    assert_true(line > 0);
    n_lines++;
    if (level != TUNER_LOG_WARN)
        return;
    n_warnings++;
    va_start(args, format);
    vsnprintf(last_warning, sizeof last_warning, format, args);
    va_end(args);
}

static int ask(void *context, int collective, uint64_t bytes, float *costs, int *channels) {
    return v4->ask(context, collective, bytes, 1, (float **)(void *)costs, ALGORITHMS, PROTOCOLS, 0, channels);
}

static void both_versions_are_there_under_their_names(void **state) {
    (void)state;
    assert_non_null(v4);
    assert_non_null(v5);
    assert_string_equal(v4->name, "syncopate");
    assert_string_equal(v5->name, "syncopate");
    assert_null(dlsym(library, "nccl_table_read"));
    assert_null(dlsym(library, "error_set"));
}

static void wanted_pair_costs_nothing_and_the_rest_stays(void **state) {
    (void)state;
    void *context = NULL;
    setenv("SYNCOPATE_NCCL_TABLE", test_file("t.csv", "allreduce,100,200,tree,ll128,12,2,8\n"), 1);
    n_lines = n_warnings = 0;
    assert_int_equal(v5->init(&context, 7, 8, 2, take_log, NULL, NULL), TUNER_SUCCESS);
    assert_non_null(context);
    assert_int_equal(n_warnings, 0);
    assert_int_equal(n_lines, 1);
    float costs[ALGORITHMS][PROTOCOLS] = {{5, 6, 7}, {1, 2, 3}};
    int channels = 4;
    assert_int_equal(ask(context, NCCL_TABLE_allreduce, 150, &costs[0][0], &channels), TUNER_SUCCESS);
    assert_int_equal(channels, 12);
    const float want[ALGORITHMS][PROTOCOLS] = {{5, 0, 7}, {1, 2, 3}};
    assert_memory_equal(costs, want, sizeof want);
    assert_int_equal(v5->finalize(context), TUNER_SUCCESS);
}

static void rows_of_other_communicators_do_not_count(void **state) {
    (void)state;
    void *context = NULL;
    setenv("SYNCOPATE_NCCL_TABLE", test_file("t.csv", "allreduce,0,200,tree,any,12,2,8\n"), 1);
    assert_int_equal(v4->init(8, 1, take_log, &context), TUNER_SUCCESS);
    float costs[ALGORITHMS][PROTOCOLS] = {{5, 6, 7}}, want[ALGORITHMS][PROTOCOLS] = {{5, 6, 7}};
    int channels = 4;
    assert_int_equal(ask(context, NCCL_TABLE_allreduce, 150, &costs[0][0], &channels), TUNER_SUCCESS);
    assert_memory_equal(costs, want, sizeof want);
    assert_int_equal(channels, 4);
    assert_int_equal(v4->destroy(context), TUNER_SUCCESS);
}

static void smaller_cost_tables_are_not_overrun(void **state) {
    (void)state;
    void *context = NULL;
    setenv("SYNCOPATE_NCCL_TABLE",
           test_file("t.csv", "allreduce,0,9,pat,any,-1,-1,-1\nallreduce,10,19,ring,simple,-1,-1,-1\n"), 1);
    assert_int_equal(v4->init(8, 1, NULL, &context), TUNER_SUCCESS);
    float *costs = calloc(2 * 2, sizeof *costs); /* exactly, so that a sanitizer sees one too far */
    assert_non_null(costs);
    for (int i = 0; i < 4; i++)
        costs[i] = 1;
    int channels = 4;
    for (uint64_t bytes = 0; bytes < 20; bytes += 10)
        assert_int_equal(v4->ask(context, NCCL_TABLE_allreduce, bytes, 1, (float **)(void *)costs, 2, 2, 0, &channels),
                         TUNER_SUCCESS);
    for (int i = 0; i < 4; i++)
        assert_true(costs[i] >= 1 && costs[i] <= 1);
    free(costs);
    assert_int_equal(v4->destroy(context), TUNER_SUCCESS);
}

/* Also: before any other test, since the warning comes once a process. */
static void bad_table_is_one_warning_and_no_failure(void **state) {
    (void)state;
    void *context[3];
    setenv("SYNCOPATE_NCCL_TABLE", test_file("bad.csv", "allreduce,0,1,rings,any,-1,-1,-1\n"), 1);
    n_warnings = 0;
    for (int i = 0; i < 3; i++) {
        context[i] = &context[i];
        assert_int_equal(v4->init(8, 2, take_log, &context[i]), TUNER_SUCCESS);
        assert_null(context[i]);
    }
    assert_int_equal(n_warnings, 1);
    assert_contains(last_warning, "bad.csv:1: algorithm \"rings\"");
    assert_contains(last_warning, "NCCL decides alone");
    unsetenv("SYNCOPATE_NCCL_TABLE");
    assert_int_equal(v5->init(&context[0], 1, 8, 2, take_log, NULL, NULL), TUNER_SUCCESS);
    assert_int_equal(n_warnings, 1);
    float costs[ALGORITHMS][PROTOCOLS] = {{5, 6, 7}}, want[ALGORITHMS][PROTOCOLS] = {{5, 6, 7}};
    int channels = 4;
    assert_int_equal(ask(context[0], NCCL_TABLE_allreduce, 1, &costs[0][0], &channels), TUNER_SUCCESS);
    assert_memory_equal(costs, want, sizeof want);
    assert_int_equal(v4->destroy(context[0]), TUNER_SUCCESS);
}

/* ---- random tables ---- */

static void write_random_table(struct rng *rng) {
    static const char *const algorithms[] = {"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                             "nvls_tree", "pat"};
    static const char *const protocols[] = {"any", "ll", "ll128", "simple"};
    static const char *const collectives[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
    char text[4096];
    size_t n = 0;
    for (uint64_t rows = rng_below(rng, 20); rows-- > 0;) {
        const unsigned low = (unsigned)rng_below(rng, 90);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s,%u,%u,%s,%s,%d,%d,%d\n", collectives[rng_below(rng, 5)],
                              low, low + (unsigned)rng_below(rng, 60), algorithms[rng_below(rng, ALGORITHMS)],
                              protocols[rng_below(rng, 4)], rng_below(rng, 2) ? -1 : 1 + (int)rng_below(rng, 32),
                              rng_below(rng, 2) ? -1 : 2, rng_below(rng, 2) ? -1 : 8);
    }
    text[n] = 0;
    setenv("SYNCOPATE_NCCL_TABLE", test_file("random.csv", text), 1);
}

static void fill_costs(struct rng *rng, float *costs) {
    for (int i = 0; i < ALGORITHMS * PROTOCOLS; i++)
        costs[i] = rng_below(rng, 4) ? (float)rng_between(rng, 1, 100) : IGNORED;
}

/* What the row asks for, done plainly; true when it changed something. */
static bool apply(const struct nccl_row *row, float *costs, int *channels) {
    int best = -1;
    for (int p = 0; row && p < PROTOCOLS; p++) {
        const float cost = costs[row->algorithm * PROTOCOLS + p];
        const bool wanted = row->protocol < 0 || row->protocol == p;
        if (wanted && cost >= 0 && (best < 0 || cost < costs[row->algorithm * PROTOCOLS + best]))
            best = p;
    }
    if (best < 0)
        return false;
    costs[row->algorithm * PROTOCOLS + best] = 0;
    *channels = row->channels > 0 ? row->channels : *channels;
    return true;
}

static void random_tables_change_what_a_plain_lookup_says_and_nothing_else(void **state) {
    (void)state;
    struct rng rng;
    struct error err = {0};
    uint32_t changed = 0, asked = 0;
    for (uint64_t i = 0; i < 400; i++) {
        struct nccl_table table;
        void *context = NULL;
        rng_split(&rng, test_seed(), i);
        write_random_table(&rng);
        assert_ok(nccl_table_read_file(getenv("SYNCOPATE_NCCL_TABLE"), &table, &err));
        assert_int_equal(rng_below(&rng, 2) ? v4->init(8, 2, take_log, &context)
                                            : v5->init(&context, i, 8, 2, take_log, NULL, NULL),
                         TUNER_SUCCESS);
        for (int k = 0; k < 40; k++, asked++) {
            float costs[ALGORITHMS * PROTOCOLS], want[ALGORITHMS * PROTOCOLS];
            int channels = 3, want_channels = 3;
            const int collective = (int)rng_below(&rng, 8);
            const uint64_t bytes = rng_below(&rng, 160);
            fill_costs(&rng, costs);
            memcpy(want, costs, sizeof costs);
            changed += apply(nccl_table_find(&table, collective, bytes, 2, 8), want, &want_channels);
            assert_int_equal(ask(context, collective, bytes, costs, &channels), TUNER_SUCCESS);
            assert_memory_equal(costs, want, sizeof want);
            assert_int_equal(channels, want_channels);
        }
        assert_int_equal(v4->destroy(context), TUNER_SUCCESS);
        nccl_table_release(&table);
    }
    assert_in_range(changed, asked / 20, asked - asked / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_are_there_under_their_names),
        cmocka_unit_test(bad_table_is_one_warning_and_no_failure),
        cmocka_unit_test(wanted_pair_costs_nothing_and_the_rest_stays),
        cmocka_unit_test(rows_of_other_communicators_do_not_count),
        cmocka_unit_test(smaller_cost_tables_are_not_overrun),
        cmocka_unit_test(random_tables_change_what_a_plain_lookup_says_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
