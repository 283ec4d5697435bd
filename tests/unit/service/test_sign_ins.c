/* Browsers that are signed in: for how long, how many, and that what is kept is no token. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "service/sign_ins.h"
#include "tests/support/check.h"

static const double HOUR_US = 3600e6;
static const char alice[] = "aaaaaaaaaaaa", bob[] = "bbbbbbbbbbbb";

static void begin(struct sign_ins *s, const char *token, char value[SIGN_IN_LENGTH + 1]) {
    struct error err;
    assert_ok(sign_ins_begin(s, token, value, &err));
}

static void a_sign_in_is_its_tokens_until_it_ends(void **state) {
    (void)state;
    struct sign_ins *s = sign_ins_new(HOUR_US, HOUR_US);
    char first[SIGN_IN_LENGTH + 1], second[SIGN_IN_LENGTH + 1], token[TOKEN_ID_LENGTH + 1];
    begin(s, alice, first);
    begin(s, bob, second);
    assert_string_not_equal(first, second);
    assert_true(sign_ins_find(s, first, token));
    assert_string_equal(token, alice);
    assert_true(sign_ins_find(s, second, token));
    assert_string_equal(token, bob);
    sign_ins_end(s, first);
    sign_ins_end(s, first);
    sign_ins_end(s, "x");
    assert_false(sign_ins_find(s, first, token));
    assert_true(sign_ins_find(s, second, token));
    sign_ins_free(s);
}

static void any_other_value_is_nobodys(void **state) {
    (void)state;
    struct sign_ins *s = sign_ins_new(HOUR_US, HOUR_US);
    char value[SIGN_IN_LENGTH + 1], token[TOKEN_ID_LENGTH + 1];
    begin(s, alice, value);
    assert_int_equal(strspn(value, "0123456789abcdef"), SIGN_IN_LENGTH);
    for (size_t i = 0; i < SIGN_IN_LENGTH; i++) {
        const char kept = value[i];
        value[i] = kept == '0' ? '1' : '0';
        assert_false(sign_ins_find(s, value, token));
        value[i] = kept;
    }
    assert_false(sign_ins_find(s, "", token));
    value[SIGN_IN_LENGTH - 1] = '\0';
    assert_false(sign_ins_find(s, value, token));
    sign_ins_free(s);
}

static void use_keeps_it_up_to_a_limit(void **state) {
    (void)state;
    struct sign_ins *s = sign_ins_new(400e3, 1000e3);
    char used[SIGN_IN_LENGTH + 1], left[SIGN_IN_LENGTH + 1], token[TOKEN_ID_LENGTH + 1];
    const double start = clock_now_us();
    bool good = true;
    begin(s, alice, used);
    begin(s, alice, left);
    while (good && clock_now_us() - start < 5e6) {
        good = sign_ins_find(s, used, token);
        if (good && clock_now_us() - start > 500e3)
            assert_false(sign_ins_find(s, left, token));
        clock_sleep_us(20e3);
    }
    assert_false(good); /* however often it is used */
    assert_true(clock_now_us() - start >= 1000e3);
    sign_ins_free(s);
}

static void a_token_has_so_many_and_the_stalest_makes_room(void **state) {
    (void)state;
    struct sign_ins *s = sign_ins_new(HOUR_US, HOUR_US);
    char values[SIGN_INS_PER_TOKEN + 1][SIGN_IN_LENGTH + 1], other[SIGN_IN_LENGTH + 1], token[TOKEN_ID_LENGTH + 1];
    begin(s, bob, other);
    for (size_t i = 0; i < SIGN_INS_PER_TOKEN; i++)
        begin(s, alice, values[i]);
    assert_true(sign_ins_find(s, values[0], token));
    begin(s, alice, values[SIGN_INS_PER_TOKEN]);
    assert_false(sign_ins_find(s, values[1], token));
    for (size_t i = 0; i <= SIGN_INS_PER_TOKEN; i++)
        assert_true(i == 1 || sign_ins_find(s, values[i], token));
    assert_true(sign_ins_find(s, other, token));
    sign_ins_free(s);
}

static void the_service_has_so_many_and_the_stalest_makes_room(void **state) {
    (void)state;
    struct sign_ins *s = sign_ins_new(HOUR_US, HOUR_US);
    char first[SIGN_IN_LENGTH + 1], second[SIGN_IN_LENGTH + 1], value[SIGN_IN_LENGTH + 1], token[TOKEN_ID_LENGTH + 1];
    begin(s, alice, first);
    begin(s, alice, second);
    for (int i = 2; i < SIGN_INS_MOST; i++) {
        snprintf(token, sizeof token, "%012x", i / SIGN_INS_PER_TOKEN);
        begin(s, token, value);
    }
    assert_true(sign_ins_find(s, first, token));
    begin(s, bob, value);
    assert_true(sign_ins_find(s, first, token));
    assert_false(sign_ins_find(s, second, token));
    assert_true(sign_ins_find(s, value, token));
    sign_ins_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sign_in_is_its_tokens_until_it_ends),
        cmocka_unit_test(any_other_value_is_nobodys),
        cmocka_unit_test(use_keeps_it_up_to_a_limit),
        cmocka_unit_test(a_token_has_so_many_and_the_stalest_makes_room),
        cmocka_unit_test(the_service_has_so_many_and_the_stalest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
