/* Pictures of characters: how much of a cell is filled, in both alphabets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture.h"
#include "tests/support/check.h"

enum { CELLS = 10 };

static void use(const char *all, const char *type, const char *language) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *const values[] = {all, type, language};
    for (size_t i = 0; i < 3; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
}

static void columns_grow_with_the_share(void **state) {
    (void)state;
    static const char letters[] = ".:-=+*%#";
    use("C.UTF-8", NULL, NULL);
    assert_string_equal(picture_column(0), "▁");
    assert_string_equal(picture_column(0.5), "▄");
    assert_string_equal(picture_column(1), "█");
    use("C", NULL, NULL);
    const char *last = letters;
    for (int i = 0; i <= 1000; i++) {
        const char *at = strchr(letters, *picture_column(i / 1000.0));
        assert_true(at && at >= last && at <= last + 1);
        last = at;
    }
    assert_int_equal(*last, '#');
}

static void shades_differ_in_both_alphabets(void **state) {
    (void)state;
    char letters[PICTURE_SHADES + 1] = "", blocks[PICTURE_SHADES * PICTURE_BYTES + 1] = "";
    for (unsigned i = 0; i < PICTURE_SHADES; i++) {
        use("C", NULL, NULL);
        strcat(letters, picture_shade(i));
        use("C.UTF-8", NULL, NULL);
        strcat(blocks, picture_shade(i));
    }
    assert_string_equal(letters, " .=#");
    assert_string_equal(blocks, " ░▒█");
}

static void what_is_no_share_is_cut(void **state) {
    (void)state;
    char text[CELLS * PICTURE_BYTES + 1];
    use("C", NULL, NULL);
    assert_string_equal(picture_column(-1), ".");
    assert_string_equal(picture_column(7), "#");
    assert_string_equal(picture_column(NAN), ".");
    assert_string_equal(picture_bar(NAN, CELLS, text), "          ");
    assert_string_equal(picture_bar(-1, CELLS, text), "          ");
    assert_string_equal(picture_bar(INFINITY, CELLS, text), "##########");
}

/* In eighths with blocks, in whole cells without; always so many characters. */
static void bars_are_as_long_as_their_share(void **state) {
    (void)state;
    char text[CELLS * PICTURE_BYTES + 1];
    use("C", NULL, NULL);
    assert_string_equal(picture_bar(0.34, CELLS, text), "###       ");
    use("de_DE.utf8", NULL, NULL);
    assert_string_equal(picture_bar(0.35, CELLS, text), "███▌      ");
    for (int i = 0; i <= 80; i++) {
        size_t characters = 0;
        picture_bar(i / 80.0, CELLS, text);
        for (const char *at = text; *at; at++)
            characters += (*at & 0xc0) != 0x80;
        assert_int_equal(characters, CELLS);
    }
}

static void the_locale_is_the_first_that_is_set(void **state) {
    (void)state;
    use(NULL, NULL, NULL);
    assert_string_equal(picture_column(1), "#");
    use(NULL, NULL, "en_US.UTF-8");
    assert_string_equal(picture_column(1), "█");
    use("", "C", "en_US.UTF-8"); /* an empty one is not set */
    assert_string_equal(picture_column(1), "#");
    use("C.UTF-8", "C", "C");
    assert_string_equal(picture_column(1), "█");
}

static void a_line_has_a_width_without_a_terminal(void **state) {
    (void)state;
    assert_in_range(picture_width(), 50, 240);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shades_differ_in_both_alphabets),
        cmocka_unit_test(columns_grow_with_the_share),
        cmocka_unit_test(what_is_no_share_is_cut),
        cmocka_unit_test(bars_are_as_long_as_their_share),
        cmocka_unit_test(the_locale_is_the_first_that_is_set),
        cmocka_unit_test(a_line_has_a_width_without_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
