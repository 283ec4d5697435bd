/* docs/features.md has the tables of features: the test writes the page anew and compares. After a change of the
 * tables, SYNCOPATE_WRITE_FEATURES=docs/features.md build/release/tests/unit/featurize/test_documented writes the page;
 * run it in the project's root. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "featurize/features.h"
#include "tests/support/check.h"
#include "tests/support/feature_columns.h"

static const char INTRODUCTION[] =
    "# Features\n"
    "\n"
    "What a learned ranker reads of a strategy lowered onto a model and a cluster: `features_of` in\n"
    "`featurize/features.h`. The tables are those of `featurize/features_table.h`; a test compares the two.\n"
    "\n"
    "Units: \"log2 u\" is log2(1 + x) of an x in u. \"log2 ratio\" is log2((1 + a) / (1 + b)) of a over b. The meaning "
    "of a plain\n"
    "\"log2\" stands in its row. A share lies in [0, 1], a flag is 0 or 1. Shares \"of bytes\" weigh variables by the "
    "bytes of their\n"
    "gradients before encoding and compaction; \"of bytes sent\" weighs messages by their bytes. A feature of "
    "something that the\n"
    "strategy does not have is 0. Times are those of a device of compute_scale 1, except those of the timeline and of "
    "the closed\n"
    "form. Nothing is normalised here: each ranker normalises by the means and deviations of its own training "
    "examples.\n";

static const char GRAPH[] =
    "\n"
    "## The variable graph\n"
    "\n"
    "Shape: pairs of places (from, to), from < to, in the sequence of variables, sorted, none twice. A producer is a\n"
    "backward operator that makes gradients. Its variables form a chain. An edge leads from the last variable of a\n"
    "producer to the first of another if a path of backward operators between them passes no third producer. Of the\n"
    "producers that lead to one, the 8 latest count.\n";

static void write_rows(FILE *out, size_t n, const struct feature_column *columns, int kind) {
    fprintf(out, "\n| place | name | unit | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < n; i++)
        if (kind < 0 || (int)GLOBAL_KINDS[i] == kind)
            fprintf(out, "| %zu | %s | %s | %s |\n", i, columns[i].name, columns[i].unit, columns[i].words);
}

static void write_page(FILE *out) {
    fputs(INTRODUCTION, out);
    fprintf(out, "\n## The global vector\n\nShape: %d numbers.\n", (int)FEATURE_GLOBAL_COUNT);
#define X(name, words)                                                                                                 \
    fprintf(out, "\n### %s: %s\n", #name, words);                                                                      \
    write_rows(out, FEATURE_GLOBAL_COUNT, GLOBAL_COLUMNS, FEATURE_KIND_##name);
    FEATURE_KIND_TABLE(X)
#undef X
    fprintf(
        out,
        "\n## The rows of shards\n\nShape: rows x %d, by readiness of their variables. If no column tells two shards "
        "of a variable apart,\nthey share a row, and a weight counts them. \"ps\" is 0 for all-reduced shards, "
        "\"cc\" for those under a\nparameter server.\n",
        (int)FEATURE_SHARD_COUNT);
    write_rows(out, FEATURE_SHARD_COUNT, SHARD_COLUMNS, -1);
    fputs(GRAPH, out);
}

static char *read_all(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    if (!file)
        fail_msg("%s is missing: run this test from the project's root, or write it as its source says", path);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void the_page_says_what_the_tables_say(void **state) {
    (void)state;
    char *want = NULL, *have = read_all("docs/features.md");
    size_t n = 0;
    FILE *out = open_memstream(&want, &n);
    assert_non_null(out);
    write_page(out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(have, want);
    free(have);
    free(want);
}

static void no_two_features_share_a_name(void **state) {
    (void)state;
    for (size_t i = 0; i < FEATURE_GLOBAL_COUNT; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(feature_global_name(i), feature_global_name(j));
    for (size_t i = 0; i < FEATURE_SHARD_COUNT; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(feature_shard_name(i), feature_shard_name(j));
}

int main(void) {
    const char *path = getenv("SYNCOPATE_WRITE_FEATURES");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (out) {
        write_page(out);
        return fclose(out) ? 1 : 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_says_what_the_tables_say),
        cmocka_unit_test(no_two_features_share_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
