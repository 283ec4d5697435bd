/* Canonical, pretty and one-line JSON, and numbers in their shortest form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check.h"

static cJSON *parsed(const char *text) {
    struct error err = {0};
    cJSON *tree = NULL;
    assert_ok(json_parse(text, strlen(text), "x", &tree, &err));
    return tree;
}

static void written(char *(*write)(const cJSON *), const char *from, const char *want) {
    cJSON *tree = parsed(from);
    char *text = write(tree);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
    cJSON_Delete(tree);
}

static void number_is(double x, const char *want) {
    char out[32];
    json_format_number(x, out);
    assert_string_equal(out, want);
}

static void numbers_have_their_shortest_form(void **state) {
    (void)state;
    number_is(0, "0");
    number_is(-0.0, "0");
    number_is(312, "312");
    number_is(-17, "-17");
    number_is(0.1, "0.1");
    number_is(1.0 / 3, "0.3333333333333333");
    number_is(0x1p53, "9007199254740992");
    number_is(1e15, "1000000000000000");
    number_is(1e22, "1e22");
    number_is(1.5e300, "1.5e300");
    number_is(1e-7, "1e-7");
    number_is(5e-324, "5e-324");
    number_is(0.1 + 0.2, "0.30000000000000004");
    number_is(INFINITY, "null");
    number_is(NAN, "null");
}

static void every_number_reads_back_the_same(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = rng_next(&rng);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x))
            continue;
        char out[32];
        json_format_number(x, out);
        assert_true(strtod(out, NULL) == x);
        assert_true(strlen(out) <= 24);
    }
}

/* Written without a thought: all numbers of digits tried in turn. */
static void shortest(double x, char *out) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            return;
    }
}

/* A number as people and measurements have it: few digits, many, or the neighbour of one with few. */
static double likely_number(struct rng *rng) {
    const double scale = pow(10, (double)rng_below(rng, 24) - 8), x = (double)rng_below(rng, 1000000) * scale;
    switch (rng_below(rng, 4)) {
    case 0:
        return x / 1000;
    case 1:
        return nextafter(x / 1000, rng_below(rng, 2) ? INFINITY : 0);
    case 2:
        return ldexp(1, (int)rng_below(rng, 120) - 60) * (double)(1 + rng_below(rng, 3));
    default:
        return rng_uniform(rng) * scale;
    }
}

static void no_number_is_longer_than_it_must_be(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 50000; i++) {
        char got[32], want[32];
        const double x = likely_number(&rng);
        if (fabs(x) <= 0x1p53 && x == floor(x))
            continue;
        json_format_number(x, got);
        shortest(x, want);
        assert_true(strtod(got, NULL) == x);
        const size_t digits = strspn(want, "0123456789.");
        assert_int_equal(strspn(got, "0123456789."), digits);
        assert_memory_equal(got, want, digits);
    }
}

static void canonical_text_sorts_members_by_bytes_and_drops_blanks(void **state) {
    (void)state;
    written(json_canonical,
            " { \"b\" : [ 1.0 , 2e2, { \"z\":null , \"y\":true } ], \"a\":\"x\", \"B\":{}, \"\\u00b5\":[] } ",
            "{\"B\":{},\"a\":\"x\",\"b\":[1,200,{\"y\":true,\"z\":null}],\"\xc2\xb5\":[]}");
}

static void strings_are_escaped_only_where_needed(void **state) {
    (void)state;
    written(json_line, "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u20ac\"]",
            "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\xe2\x82\xac\"]");
}

static void one_line_text_keeps_the_order_of_members(void **state) {
    (void)state;
    written(json_line, "{\"b\":1,\"a\":[ ],\"c\":\"\"}", "{\"b\":1,\"a\":[],\"c\":\"\"}");
}

static void an_unknown_number_adds_nothing(void **state) {
    (void)state;
    cJSON *json = cJSON_CreateObject();
    assert_true(json_add_known(json, "known", 0.5));
    assert_true(json_add_known(json, "unknown", NAN));
    char *text = json_line(json);
    assert_string_equal(text, "{\"known\":0.5}");
    free(text);
    cJSON_Delete(json);
}

static void pretty_text_keeps_short_parts_on_one_line(void **state) {
    (void)state;
    written(json_pretty, "{\"a\":1,\"b\":[1,2]}", "{\"a\": 1, \"b\": [1, 2]}");
    written(
        json_pretty,
        "{\"schema\":\"syncopate.model/"
        "1\",\"variables\":[{\"name\":\"a-rather-long-name-of-a-variable\",\"shape\":[64,3]},"
        "{\"name\":\"b\"}],\"none\":[]}",
        "{\n  \"schema\": \"syncopate.model/1\",\n"
        "  \"variables\": [{\"name\": \"a-rather-long-name-of-a-variable\", \"shape\": [64, 3]}, {\"name\": \"b\"}],\n"
        "  \"none\": []\n}");
}

static size_t longest_line(const char *text) {
    size_t longest = 0;
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, "\n");
        longest = n > longest ? n : longest;
        p += n + (p[n] == '\n');
    }
    return longest;
}

static cJSON *random_tree(struct rng *rng, int depth) {
    const uint64_t kind = rng_below(rng, depth > 0 ? 5 : 3);
    if (kind == 0)
        return cJSON_CreateNumber(rng_log_between(rng, 1e-9, 1e9));
    if (kind == 1)
        return cJSON_CreateString(rng_below(rng, 2) ? "text" : "");
    if (kind == 2)
        return cJSON_CreateBool(rng_below(rng, 2) == 0);
    cJSON *node = kind == 3 ? cJSON_CreateArray() : cJSON_CreateObject();
    const uint64_t n = rng_below(rng, 9);
    for (uint64_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "m%llu", (unsigned long long)i);
        cJSON *child = random_tree(rng, depth - 1);
        if (kind == 3)
            cJSON_AddItemToArray(node, child);
        else
            cJSON_AddItemToObject(node, name, child);
    }
    return node;
}

static void pretty_text_of_random_trees_reads_back_and_stays_narrow(void **state) {
    (void)state;
    struct rng rng;
    struct error err = {0};
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 300; i++) {
        cJSON *tree = random_tree(&rng, 6), *again = NULL;
        char *pretty = json_pretty(tree), *canonical = json_canonical(tree);
        assert_true(longest_line(pretty) <= 110);
        assert_ok(json_parse(pretty, strlen(pretty), "pretty", &again, &err));
        char *canonical_again = json_canonical(again);
        assert_string_equal(canonical, canonical_again);
        free(pretty);
        free(canonical);
        free(canonical_again);
        cJSON_Delete(tree);
        cJSON_Delete(again);
    }
}

static void a_value_beyond_the_width_is_still_written(void **state) {
    (void)state;
    cJSON *tree = cJSON_CreateNumber(7);
    for (int i = 0; i < 60; i++) {
        cJSON *outer = cJSON_CreateArray();
        cJSON_AddItemToArray(outer, tree);
        cJSON_AddItemToArray(outer, cJSON_CreateString("a text that is long enough for no line to hold it all"));
        tree = outer;
    }
    char *pretty = json_pretty(tree);
    assert_contains(pretty, "7,\n");
    free(pretty);
    cJSON_Delete(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_their_shortest_form),
        cmocka_unit_test(every_number_reads_back_the_same),
        cmocka_unit_test(no_number_is_longer_than_it_must_be),
        cmocka_unit_test(canonical_text_sorts_members_by_bytes_and_drops_blanks),
        cmocka_unit_test(strings_are_escaped_only_where_needed),
        cmocka_unit_test(one_line_text_keeps_the_order_of_members),
        cmocka_unit_test(an_unknown_number_adds_nothing),
        cmocka_unit_test(pretty_text_keeps_short_parts_on_one_line),
        cmocka_unit_test(pretty_text_of_random_trees_reads_back_and_stays_narrow),
        cmocka_unit_test(a_value_beyond_the_width_is_still_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
