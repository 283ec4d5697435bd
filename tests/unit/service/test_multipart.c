/* Bodies of several parts, as browsers and curl send them, and such as nobody should send. */
#include <string.h>

#include "service/http/transport/multipart.h"
#include "tests/support/check.h"

#define PART(file) "--b\r\nContent-Disposition: form-data; name=\"trace\"; filename=\"" file "\"\r\nX: y\r\n\r\n"
#define TEN        "bbbbbbbbbb"

static struct arena arena;
static struct part *parts;
static size_t n_parts;
static struct error err;

static enum status read_text(const char *type, const char *body) {
    return multipart_read(type, body, strlen(body), 3, &arena, &parts, &n_parts, &err);
}

static int finish(void **state) {
    (void)state;
    arena_release(&arena);
    return 0;
}

static void parts_have_names_and_bytes(void **state) {
    (void)state;
    assert_ok(read_text("multipart/form-data; boundary=b",
                        PART("a.json") "one\r\ntwo\r\n" PART(
                            "b; c.json") "\r\n--b\r\n"
                                         "content-disposition: form-data; name=x\r\n\r\nlast\r\n--b--\r\n"));
    assert_int_equal(n_parts, 3);
    assert_string_equal(parts[0].file, "a.json");
    assert_int_equal(parts[0].n, 8);
    assert_memory_equal(parts[0].text, "one\r\ntwo", 8);
    assert_string_equal(parts[1].file, "b; c.json");
    assert_int_equal(parts[1].n, 0);
    assert_string_equal(parts[2].name, "x");
    assert_string_equal(parts[2].file, "");
    assert_memory_equal(parts[2].text, "last", 4);
}

static void a_boundary_may_stand_in_quotes(void **state) {
    (void)state;
    assert_ok(read_text("multipart/form-data; charset=utf-8; Boundary=\"b\"", "--b--\r\n"));
    assert_int_equal(n_parts, 0);
}

static void what_is_broken_is_refused_with_words(void **state) {
    (void)state;
    static const char type[] = "multipart/form-data; boundary=b";
    static const struct {
        const char *type, *body, *part;
    } cases[] = {
        {"multipart/form-data", "--b--", "names no boundary"},
        {"multipart/form-data; boundary=", "--b--", "names no boundary"},
        {"multipart/form-data; boundary=" TEN TEN TEN TEN TEN TEN TEN "b", "--b--", "of 1 to 70 characters"},
        {type, "", "does not begin with its boundary"},
        {type, "--a--\r\n", "does not begin with its boundary"},
        {type, "--b\r\nContent-Disposition: form-data; name=\"t\"\r\n", "ends within a part's headers"},
        {type, PART("a") "[]", "ends within a part; was all of it sent?"},
        {type, PART("a") "[]\r\n--bc", "something stands behind a boundary"},
        {type, "--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--", "a part has no name"},
        {type, PART("a") "\r\n" PART("a") "\r\n" PART("a") "\r\n" PART("a") "\r\n--b--", "more than 3 parts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].part);
        assert_true(read_text(cases[i].type, cases[i].body) != ST_OK);
        assert_contains(err.message, cases[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(parts_have_names_and_bytes, finish),
        cmocka_unit_test_teardown(a_boundary_may_stand_in_quotes, finish),
        cmocka_unit_test_teardown(what_is_broken_is_refused_with_words, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
