/* What every unit test includes: cmocka, and assertions that say more than cmocka's.
 *
 * assert_ok and assert_fails expect a `struct error err` in scope, the one that the expression fills. */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

/* cmocka.h needs the others before it. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"

/* |a - b| <= relative * max(|a|, |b|); equal values, infinities too, are close, NaN is close to nothing. cmocka's own
 * assert_float_equal compares floats. */
#define assert_close(a, b, relative) check_close((a), (b), (relative), #a, #b, __FILE__, __LINE__)

/* The status is ST_OK; otherwise the message is shown. */
#define assert_ok(expression) check_ok((expression), &err, #expression, __FILE__, __LINE__)

/* The status is `want`, err.status too, and ERROR_TEXT(&err) contains `part`. */
#define assert_fails(expression, want, part)                                                                           \
    check_fails((expression), (want), &err, (part), #expression, __FILE__, __LINE__)

/* `text` contains `part`. */
#define assert_contains(text, part) check_contains((text), (part), __FILE__, __LINE__)

/* The seed of random tests: SYNCOPATE_TEST_SEED, or a fixed one. Printed once, so that a failure can be repeated. */
uint64_t test_seed(void);

/* A directory of this process, removed with all that is in it when the process ends. */
const char *test_dir(void);

/* Write `text` to the file `name` in test_dir(); its path, valid until the process ends. */
const char *test_file(const char *name, const char *text);

/* The processor time that this process has taken, in microseconds. A test that others starve is not slow. */
double computed_us(void);

/* Whether this machine lets us have what a lab is made of: namespaces, a pair of interfaces, a shaper. Asked of the
 * system's own tools and not of our lab: where they can and the lab cannot, tests must fail. */
bool test_lab_possible(void);

void check_close(double a, double b, double relative, const char *a_text, const char *b_text, const char *file,
                 int line);
void check_ok(enum status status, const struct error *err, const char *expression, const char *file, int line);
void check_fails(enum status status, enum status want, const struct error *err, const char *part,
                 const char *expression, const char *file, int line);
void check_contains(const char *text, const char *part, const char *file, int line);

#endif
