/* Strict reading of JSON: what is refused, where the message points, and that good input is fast. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check.h"

static enum status parse(const char *text, cJSON **out, struct error *err) {
    return json_parse(text, strlen(text), "x.json", out, err);
}

static cJSON *parsed(const char *text) {
    struct error err = {0};
    cJSON *tree = NULL;
    assert_ok(parse(text, &tree, &err));
    assert_non_null(tree);
    return tree;
}

/* `text` is refused with a message that is exactly `message`. */
static void refused(const char *text, const char *message) {
    struct error err = {0};
    cJSON *tree = NULL;
    assert_fails(parse(text, &tree, &err), ST_INVALID, message);
    assert_string_equal(ERROR_TEXT(&err), message);
    assert_null(tree);
}

static void syntax_errors_name_line_and_column(void **state) {
    (void)state;
    refused("{\n  \"a\": 1\n  \"b\": 2\n}", "x.json: line 3, column 3: expected ',' or '}' after a member");
    refused("[1 2]", "x.json: line 1, column 4: expected ',' or ']' after an element");
    refused("{\"a\" 1}", "x.json: line 1, column 6: expected ':' after a member name");
    refused("{a: 1}", "x.json: line 1, column 2: expected a member name in double quotes");
    refused("[1,]", "x.json: line 1, column 4: a comma before ']'; remove it");
    refused("{\"a\":1,}", "x.json: line 1, column 8: a comma before '}'; remove it");
    refused("{} {}", "x.json: line 1, column 4: text after the end of the document; remove it");
    refused("", "x.json: line 1, column 1: the document is empty");
    refused("[1,", "x.json: line 1, column 4: the text ends where a value should be; is the file complete?");
    refused("[[1", "x.json: line 1, column 4: the text ends inside an array; is the file complete?");
    refused("\"abc", "x.json: line 1, column 1: a string that never ends; close it with '\"'");
    refused("[True]",
            "x.json: line 1, column 2: expected a value: an object, array, string, number, true, false or null");
}

static void columns_count_characters_and_not_bytes(void **state) {
    (void)state;
    refused("[\"\xc2\xb5\xc2\xb5\" 1]", "x.json: line 1, column 7: expected ',' or ']' after an element");
}

static void numbers_follow_the_grammar_of_json(void **state) {
    (void)state;
    refused("[01]", "x.json: line 1, column 3: a number must not begin with 0; remove it");
    refused("[1.]", "x.json: line 1, column 4: expected a digit after the decimal point");
    refused("[-.5]", "x.json: line 1, column 3: expected a digit after '-'");
    refused("[1e+]", "x.json: line 1, column 5: expected a digit in the exponent");
    refused("[1e999]", "x.json: /0: a number too large to compute with; the largest is about 1.8e308");
    refused("{\"a\":[0,{\"b\":-1e400}]}",
            "x.json: /a/1/b: a number too large to compute with; the largest is about 1.8e308");
    refused("[0.1111111111111111111111111111111111111111111111111111111111111111]",
            "x.json: line 1, column 2: a number of more than 63 characters; write fewer digits");
    cJSON *tree = parsed("[0,-0.5,1e3,1E-3,1.25e+2]");
    assert_close(cJSON_GetArrayItem(tree, 4)->valuedouble, 125, 0);
    cJSON_Delete(tree);
}

static void strings_must_be_clean_utf8(void **state) {
    (void)state;
    static const char *const bad[] = {"[\"\xff\"]",
                                      "[\"\xc3\"]",
                                      "[\"\xc0\x80\"]",
                                      "[\"\xe0\x80\xaf\"]",
                                      "[\"\xed\xa0\x80\"]",
                                      "[\"\xf0\x8f\xbf\xbf\"]",
                                      "[\"\xf4\x90\x80\x80\"]",
                                      "[\"\x80\"]",
                                      "[\"\xe2\x82\"]",
                                      NULL};
    struct error err = {0};
    cJSON *tree = NULL;
    for (size_t i = 0; bad[i]; i++)
        assert_fails(parse(bad[i], &tree, &err), ST_INVALID, "bytes that are not UTF-8");
    cJSON_Delete(parsed("[\"\xc2\xb5 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf \xed\x9f\xbf\"]"));
    refused("[\"a\tb\"]", "x.json: line 1, column 4: a control character in a string; write it as an escape");
    refused("[\"a\nb\"]", "x.json: line 1, column 4: a string must end on its line; close it with '\"'");
    refused("[\"\\u0000\"]", "x.json: line 1, column 9: \\u0000 is not allowed in strings");
    refused("[\"\\q\"]", "x.json: line 1, column 4: unknown escape; a backslash itself is written \\\\");
    assert_fails(parse("[\"\\ud800\"]", &tree, &err), ST_INVALID, "half of a surrogate pair");
    assert_fails(parse("[\"\\udc00\\ud800\"]", &tree, &err), ST_INVALID, "half of a surrogate pair");
    assert_null(tree);
}

static void control_characters_are_no_blanks(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = NULL;
    assert_fails(parse("[1,\x01 2]", &tree, &err), ST_INVALID, "expected a value");
    assert_fails(json_parse("{}\0{}", 5, "x.json", &tree, &err), ST_INVALID, "text after the end");
    cJSON_Delete(parsed(" \t\r\n{} \t\r\n"));
}

static void a_byte_order_mark_is_skipped_before_any_text(void **state) {
    (void)state;
    cJSON_Delete(parsed("\xef\xbb\xbf{\"a\":1}"));
    cJSON_Delete(parsed("\xef\xbb\xbf"
                        "7"));
    refused("\xef\xbb\xbf", "x.json: line 1, column 2: the document is empty");
}

static void nesting_ends_at_64_levels(void **state) {
    (void)state;
    char text[2 * 65 + 1] = {0};
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    cJSON_Delete(parsed(text));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    struct error err = {0};
    cJSON *tree = NULL;
    assert_fails(json_parse(text, sizeof text - 1, "x.json", &tree, &err), ST_INVALID, "nested deeper than 64 levels");
}

static void a_member_twice_is_refused_with_its_place(void **state) {
    (void)state;
    refused("{\"a\":1,\"a\":1}", "x.json: the member \"a\" is there twice; keep one");
    refused("[0,{\"s/t\":{\"~\":{\"k\":1,\"l\":2,\"k\":3}}}]",
            "x.json: /1/s~1t/~0: the member \"k\" is there twice; keep one");
    refused("{\"a\":1,\"\\u0061\":1}", "x.json: the member \"a\" is there twice; keep one");
    refused("{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"3\":1}",
            "x.json: the member \"3\" is there twice; keep one");
    cJSON_Delete(parsed("{\"a\":1,\"A\":1}"));
}

/* 100,000 objects, or one object of 100,000 members: quadratic work would take minutes. */
static void large_documents_are_read_in_linear_time(void **state) {
    (void)state;
    enum { N = 100000 };
    char *text = malloc((size_t)64 * N);
    assert_non_null(text);
    for (int many = 0; many < 2; many++) {
        size_t n = (size_t)sprintf(text, many ? "{\"a\":[" : "{\"a\":{");
        for (int i = 0; i < N; i++)
            n += (size_t)sprintf(text + n, many ? "%s{\"n\":%d,\"x\":1,\"y\":2}" : "%s\"m%d\":0", i ? "," : "", i);
        strcpy(text + n, many ? "]}" : "}}");
        const double start = computed_us();
        cJSON *tree = parsed(text);
        const struct json_at root = json_root(tree, "x.json");
        struct json_at a;
        assert_true(json_has(&root, "a", &a));
        size_t count = 0;
        for (struct json_at e = json_first(&a); e.node; e = json_next(&e))
            count += e.index == count;
        assert_int_equal(count, N);
        assert_true(computed_us() - start < 10e6);
        cJSON_Delete(tree);
    }
    free(text);
}

static void an_unknown_member_is_named_with_the_nearest_known_one(void **state) {
    (void)state;
    static const char *const known[] = {"schema", "name", "batch_per_device", "variables", NULL};
    struct error err = {0};
    cJSON *tree = parsed("{\"v\":[{\"batch_per_devcie\":1}],\"w\":{\"quite_other\":2},\"x\":[{\"Name\":1}]}");
    const struct json_at root = json_root(tree, "model.json");
    struct json_at v, w, x;
    assert_true(json_has(&root, "v", &v) && json_has(&root, "w", &w) && json_has(&root, "x", &x));
    const struct json_at e = json_first(&v), f = json_first(&x);
    assert_fails(json_expect_object(&e, known, &err), ST_INVALID, "");
    assert_string_equal(ERROR_TEXT(&err),
                        "model.json: /v/0/batch_per_devcie: unknown member \"batch_per_devcie\"; did you "
                        "mean \"batch_per_device\"? Known: schema, name, batch_per_device, variables");
    assert_fails(json_expect_object(&w, known, &err), ST_INVALID, "");
    assert_string_equal(ERROR_TEXT(&err),
                        "model.json: /w/quite_other: unknown member \"quite_other\"; Known: schema, name, "
                        "batch_per_device, variables");
    assert_fails(json_expect_object(&f, known, &err), ST_INVALID, "did you mean \"name\"?");
    assert_fails(json_expect_object(&v, known, &err), ST_INVALID, "model.json: /v: must be an object, not an array");
    const struct json_at none = json_root(NULL, "model.json");
    assert_fails(json_expect_object(&none, known, &err), ST_INVALID, "model.json: must be an object, not nothing");
    cJSON_Delete(tree);
}

static void a_schema_is_exact_and_a_newer_one_is_refused_by_name(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = parsed("[{\"schema\":\"syncopate.model/1\"},{\"schema\":\"syncopate.model/2\"},{\"schema\":"
                         "\"syncopate.cluster/1\"},{},{\"schema\":3},[],{\"schema\":\"syncopate.model/0\"},"
                         "{\"schema\":\"syncopate.model/1x\"}]");
    const struct json_at root = json_root(tree, "m.json");
    struct json_at e = json_first(&root);
    const char *schema = "syncopate.model/1";
    assert_ok(json_expect_schema(&e, schema, &err));
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID,
                 "m.json: /1/schema: \"syncopate.model/2\" is newer than this program reads (\"syncopate.model/1\")");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID,
                 "m.json: /2/schema: is \"syncopate.cluster/1\", but \"syncopate.model/1\" is needed here");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID,
                 "m.json: /3: the member \"schema\" is missing; add \"schema\": \"syncopate.model/1\"");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID, "/4/schema: must be a string, not a number");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID, "/5: must be an object");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID, "no longer read");
    e = json_next(&e);
    assert_fails(json_expect_schema(&e, schema, &err), ST_INVALID, "is needed here");
    cJSON_Delete(tree);
}

static void values_are_checked_for_type_and_range(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = parsed(
        "{\"n\":2.5,\"i\":7,\"s\":\"text\",\"e\":\"\",\"b\":true,\"z\":null,\"neg\":-1,\"big\":"
        "9007199254740992,\"max\":9007199254740991,\"c\":\"a\\u001bb\",\"c1\":\"a\\u009b\",\"rlo\":\"\\u202eb\"}");
    const struct json_at at = json_root(tree, "x");
    double x = -1;
    uint64_t i = 0;
    const char *s = NULL;
    bool b = false;
    assert_ok(json_get_number(&at, "n", JSON_REQUIRED, 0, 3, &x, &err));
    assert_close(x, 2.5, 0);
    assert_ok(json_get_integer(&at, "i", JSON_REQUIRED, 7, 7, &i, &err));
    assert_int_equal(i, 7);
    assert_ok(json_get_integer(&at, "max", JSON_REQUIRED, 0, UINT64_MAX, &i, &err));
    assert_true(i == 9007199254740991);
    assert_ok(json_get_string(&at, "s", JSON_REQUIRED, &s, &err));
    assert_string_equal(s, "text");
    assert_ok(json_get_bool(&at, "b", JSON_REQUIRED, &b, &err));
    assert_true(b);
    assert_fails(json_get_number(&at, "n", JSON_REQUIRED, 0, 2, &x, &err), ST_INVALID,
                 "x: /n: is 2.5; it must be from 0 to 2");
    assert_fails(json_get_number(&at, "neg", JSON_REQUIRED, 0, INFINITY, &x, &err), ST_INVALID,
                 "x: /neg: is -1; it must be at least 0");
    assert_fails(json_get_number(&at, "neg", JSON_REQUIRED, DBL_MIN, INFINITY, &x, &err), ST_INVALID,
                 "x: /neg: is -1; it must be above 0");
    assert_fails(json_get_number(&at, "s", JSON_REQUIRED, 0, 2, &x, &err), ST_INVALID,
                 "x: /s: must be a number, not a string");
    assert_fails(json_get_integer(&at, "n", JSON_REQUIRED, 0, 9, &i, &err), ST_INVALID, "it must be a whole number");
    assert_fails(json_get_integer(&at, "i", JSON_REQUIRED, 8, 9, &i, &err), ST_INVALID, "is 7; it must be from 8 to 9");
    assert_fails(json_get_integer(&at, "neg", JSON_REQUIRED, 0, 9, &i, &err), ST_INVALID, "is -1; it must be from 0");
    assert_fails(json_get_integer(&at, "big", JSON_REQUIRED, 0, UINT64_MAX, &i, &err), ST_INVALID,
                 "whole numbers are exact only up to 9007199254740991");
    assert_fails(json_get_string(&at, "e", JSON_REQUIRED, &s, &err), ST_INVALID, "x: /e: must not be empty");
    assert_fails(json_get_string(&at, "c", JSON_REQUIRED, &s, &err), ST_INVALID, "control character (code 27)");
    assert_fails(json_get_string(&at, "c1", JSON_REQUIRED, &s, &err), ST_INVALID,
                 "x: /c1: has a character that terminals obey (\\u009b); remove it");
    assert_fails(json_get_string(&at, "rlo", JSON_REQUIRED, &s, &err), ST_INVALID, "terminals obey (\\u202e)");
    assert_fails(json_get_bool(&at, "z", JSON_REQUIRED, &b, &err), ST_INVALID, "must be true or false, not null");
    assert_close(x, 2.5, 0); /* failures left the outputs alone */
    assert_string_equal(s, "text");
    cJSON_Delete(tree);
}

static void strings_are_at_most_4096_bytes(void **state) {
    (void)state;
    struct error err = {0};
    char text[4097 + 1];
    memset(text, 'a', sizeof text - 1);
    text[4097] = '\0';
    const char *out = NULL;
    cJSON *tree = cJSON_CreateString(text);
    struct json_at at = json_root(tree, "x");
    assert_fails(json_string_at(&at, &out, &err), ST_INVALID, "is a string of 4097 bytes; at most 4096 are allowed");
    cJSON_Delete(tree);
    text[4096] = '\0';
    tree = cJSON_CreateString(text);
    at = json_root(tree, "x");
    assert_ok(json_string_at(&at, &out, &err));
    cJSON_Delete(tree);
}

static void an_optional_member_may_be_absent_and_a_required_one_not(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = parsed("{\"deep\":[{}],\"list\":[1,2,3]}");
    const struct json_at root = json_root(tree, "x");
    struct json_at deep, list;
    size_t n = 0, word = 77;
    double x = 42;
    assert_ok(json_array(&root, "deep", 1, &deep, &n, &err));
    const struct json_at e = json_first(&deep);
    assert_ok(json_get_number(&e, "a", JSON_OPTIONAL, 0, 1, &x, &err));
    assert_close(x, 42, 0);
    assert_ok(json_get_word(&e, "a", JSON_OPTIONAL, (const char *const[]){"b", NULL}, &word, &err));
    assert_int_equal(word, 77);
    assert_fails(json_get_number(&e, "a", JSON_REQUIRED, 0, 1, &x, &err), ST_INVALID,
                 "x: /deep/0: the member \"a\" is missing; add it");
    assert_ok(json_array(&root, "list", 3, &list, &n, &err));
    assert_int_equal(n, 3);
    assert_fails(json_array(&root, "list", 2, &list, &n, &err), ST_INVALID, "has 3 elements; at most 2 are allowed");
    assert_fails(json_array(&e, "list", 2, &list, &n, &err), ST_INVALID, "the member \"list\" is missing");
    assert_fails(json_get_number(&list, "a", JSON_OPTIONAL, 0, 1, &x, &err), ST_INVALID,
                 "x: /list: must be an object with a member \"a\", not an array");
    cJSON_Delete(tree);
}

static void a_word_outside_the_list_is_answered_with_the_list(void **state) {
    (void)state;
    static const char *const algorithms[] = {"auto", "ring", "tree", NULL};
    struct error err = {0};
    cJSON *tree = parsed("{\"good\":\"tree\",\"bad\":\"rign\",\"far\":\"zzzzz\"}");
    const struct json_at root = json_root(tree, "s.json");
    size_t word = 9;
    assert_ok(json_get_word(&root, "good", JSON_REQUIRED, algorithms, &word, &err));
    assert_int_equal(word, 2);
    assert_fails(
        json_get_word(&root, "bad", JSON_REQUIRED, algorithms, &word, &err), ST_INVALID,
        "s.json: /bad: \"rign\" is not one of the known words; did you mean \"ring\"? Known: auto, ring, tree");
    assert_fails(json_get_word(&root, "far", JSON_REQUIRED, algorithms, &word, &err), ST_INVALID,
                 "\"zzzzz\" is not one of the known words; Known: auto, ring, tree");
    assert_int_equal(word, 2);
    cJSON_Delete(tree);
}

static void messages_carry_no_control_characters_and_fit_their_buffer(void **state) {
    (void)state;
    static const char *const known[] = {"a", NULL};
    struct error err = {0};
    char text[4000] = "{\"\\u001b[31mred\\n\":{\"";
    const size_t n = strlen(text);
    memset(text + n, 'k', 3000);
    strcpy(text + n + 3000, "\":1}}");
    cJSON *tree = parsed(text);
    const struct json_at root = json_root(tree, "x");
    assert_fails(json_expect_object(&root, known, &err), ST_INVALID, "x: /?[31mred : unknown member \"?[31mred \"");
    const struct json_at red = json_first(&root), long_name = json_first(&red);
    assert_fails(json_fail(&long_name, &err, "is %s", "wrong"), ST_INVALID, "kkk...: is wrong");
    assert_true(strlen(ERROR_TEXT(&err)) < 300);
    cJSON_Delete(tree);
}

static void a_file_is_read_whole_and_named_in_messages(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = NULL;
    const char *good = test_file("good.json", "{\"a\":1}\n"), *bad = test_file("bad.json", "{\"a\":1\n");
    assert_ok(json_read_file(good, &tree, &err));
    assert_int_equal(cJSON_GetArraySize(tree), 1);
    cJSON_Delete(tree);
    tree = NULL;
    assert_fails(json_read_file(bad, &tree, &err), ST_INVALID, "bad.json: line 2, column 1: the text ends inside");
    assert_fails(json_read_file("no/such.json", &tree, &err), ST_NOT_FOUND, "no/such.json: no such file");
    assert_fails(json_read_file(test_dir(), &tree, &err), ST_INVALID, "is a directory");
    assert_fails(json_read_file("/dev/zero", &tree, &err), ST_INVALID, "is a device");
    assert_null(tree);
}

static void files_and_pipes_over_the_limit_are_refused(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = NULL;
    const char *path = test_file("huge.json", "");
    assert_int_equal(truncate(path, (off_t)JSON_MAX_BYTES + 1), 0);
    assert_fails(json_read_file(path, &tree, &err), ST_TOO_LARGE, "more than 64 MiB");
    char fifo[4200];
    snprintf(fifo, sizeof fifo, "%s/fifo", test_dir());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        static char blanks[1 << 16];
        memset(blanks, ' ', sizeof blanks);
        FILE *f = fopen(fifo, "w");
        while (f && fwrite(blanks, sizeof blanks, 1, f) == 1)
            continue;
        _exit(0);
    }
    assert_fails(json_read_file(fifo, &tree, &err), ST_TOO_LARGE, "more than 64 MiB");
    waitpid(writer, NULL, 0);
    assert_null(tree);
}

static void standard_input_is_read_through_a_pipe(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        const char *parts[] = {"{\"a\":", "[1,2", ",3]}"};
        for (int i = 0; i < 3; i++) {
            clock_sleep_us(2000);
            if (write(ends[1], parts[i], strlen(parts[i])) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    const int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    struct error err = {0};
    cJSON *tree = NULL;
    const enum status status = json_read_file("-", &tree, &err);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(ends[0]);
    waitpid(writer, NULL, 0);
    assert_ok(status);
    char *line = json_line(tree);
    assert_string_equal(line, "{\"a\":[1,2,3]}");
    free(line);
    cJSON_Delete(tree);
}

/* As its description says, a character at a time. */
static size_t count_plainly(const char *text, size_t n) {
    size_t values = 1;
    bool inside = false;
    for (size_t i = 0; i < n; i++)
        if (inside && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            inside = !inside;
        else if (!inside && strchr(",[{", text[i]))
            values++;
    return values;
}

static void values_are_counted_outside_strings_alone(void **state) {
    (void)state;
    static const char some[] = "\"\"\\\\,[{a:";
    char text[24];
    struct rng rng;
    assert_int_equal(json_count_values("[1,\"a,b\",{\"c\\\\\":2,\"d\\\",\":3}]", 27), 6);
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 20000; round++) {
        const size_t n = rng_below(&rng, sizeof text);
        for (size_t i = 0; i < n; i++)
            text[i] = some[rng_below(&rng, sizeof some - 1)];
        assert_int_equal(json_count_values(text, n), count_plainly(text, n));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_errors_name_line_and_column),
        cmocka_unit_test(columns_count_characters_and_not_bytes),
        cmocka_unit_test(numbers_follow_the_grammar_of_json),
        cmocka_unit_test(strings_must_be_clean_utf8),
        cmocka_unit_test(control_characters_are_no_blanks),
        cmocka_unit_test(a_byte_order_mark_is_skipped_before_any_text),
        cmocka_unit_test(nesting_ends_at_64_levels),
        cmocka_unit_test(a_member_twice_is_refused_with_its_place),
        cmocka_unit_test(large_documents_are_read_in_linear_time),
        cmocka_unit_test(an_unknown_member_is_named_with_the_nearest_known_one),
        cmocka_unit_test(a_schema_is_exact_and_a_newer_one_is_refused_by_name),
        cmocka_unit_test(values_are_checked_for_type_and_range),
        cmocka_unit_test(strings_are_at_most_4096_bytes),
        cmocka_unit_test(an_optional_member_may_be_absent_and_a_required_one_not),
        cmocka_unit_test(a_word_outside_the_list_is_answered_with_the_list),
        cmocka_unit_test(messages_carry_no_control_characters_and_fit_their_buffer),
        cmocka_unit_test(a_file_is_read_whole_and_named_in_messages),
        cmocka_unit_test(files_and_pipes_over_the_limit_are_refused),
        cmocka_unit_test(standard_input_is_read_through_a_pipe),
        cmocka_unit_test(values_are_counted_outside_strings_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
