/* A text becomes a file as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/stream.h"
#include "tests/support/check.h"

static void a_file_holds_what_was_written_and_nothing_for_an_empty_text(void **state) {
    (void)state;
    static const char *const texts[] = {"", "a\nb\n"};
    static const off_t sizes[] = {0, 4};
    for (size_t i = 0; i < 2; i++) {
        const char *path = test_file("out", "old text");
        struct error err = {0};
        struct stat file;
        char *text;
        size_t n;
        FILE *to = stream_open(&text, &n);
        assert_non_null(to);
        fputs(texts[i], to);
        assert_ok(stream_save(to, ST_OK, &text, &n, path, &err));
        assert_null(text);
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_size, sizes[i]);
    }
}

static void a_text_that_failed_leaves_the_file_as_it_was(void **state) {
    (void)state;
    const char *path = test_file("out", "old text");
    struct error err = {0};
    struct stat file;
    char *text;
    size_t n;
    FILE *to = stream_open(&text, &n);
    assert_non_null(to);
    fputs("half", to);
    assert_int_equal(stream_save(to, ST_INFEASIBLE, &text, &n, path, &err), ST_INFEASIBLE);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_holds_what_was_written_and_nothing_for_an_empty_text),
        cmocka_unit_test(a_text_that_failed_leaves_the_file_as_it_was),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
