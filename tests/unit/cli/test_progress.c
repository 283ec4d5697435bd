/* The lines of a session on a terminal: whole where there is room, never wider than the terminal. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/progress.h"
#include "tests/support/check.h"

static const struct tune_outcome complete = {.state = RECORD_COMPLETE};
static const struct tune_outcome early = {.state = RECORD_COMPLETE, .early = true};
static const struct tune_outcome failed = {
    .state = RECORD_FAILED, .reason = "the workers ended before the last iteration, and nobody knows why they did so"};

static struct tune_event event_of(const char *name, const struct tune_outcome *outcome) {
    return (struct tune_event){.phase = TUNE_BASELINES,
                               .number = 12,
                               .budget = 40,
                               .name = name,
                               .proposer = "guided",
                               .predicted_us = 812.4, /* written with a letter of two bytes */
                               .outcome = outcome,
                               .median_us = 34200,
                               .best_us = 34200,
                               .elapsed_us = 60e6,
                               .left_us = 125e6,
                               .recorded = true};
}

static size_t columns_of(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void no_line_is_wider_than_the_terminal(void **state) {
    (void)state;
    static const char *const names[] = {"ps", "bytescheduler-all-reduce", "random-axis-partition-all-reduce-of-many"};
    const struct tune_outcome *const outcomes[] = {&complete, &early, &failed};
    char line[PROGRESS_LINE];
    for (size_t columns = 1; columns <= 200; columns++)
        for (size_t k = 0; k < 9; k++) {
            const struct tune_event event = event_of(names[k / 3], outcomes[k % 3]);
            progress_result(&event, columns, line);
            assert_true(columns_of(line) <= columns);
            progress_bar(&event, columns, line);
            assert_true(columns_of(line) <= columns);
        }
}

/* A name and a reason of somebody else's dataset or service. */
static void no_line_obeys_what_it_shows(void **state) {
    (void)state;
    const struct tune_outcome outcome = {.state = RECORD_FAILED,
                                         .reason = "a\x1b[2J\r\n\xc2\x9b\xe2\x80\xae"
                                                   "b"};
    const struct tune_event event = event_of("n\x1b]0;x\x07\xe2\x80\xae", &outcome);
    char line[PROGRESS_LINE];
    for (size_t columns = 20; columns <= 200; columns += 20) {
        progress_result(&event, columns, line);
        assert_true(columns_of(line) <= columns && text_is_clean(line, strlen(line)));
        progress_bar(&event, columns, line);
        assert_true(columns_of(line) <= columns && text_is_clean(line, strlen(line)));
    }
    progress_result(&event, 200, line);
    assert_contains(line, "n\\x1b]0;x\\x07\\u202e");
    assert_contains(line, "failed: a\\x1b[2J\\x0d\\x0a\\u009b\\u202eb");
}

static void eighty_columns_hold_a_result(void **state) {
    (void)state;
    const struct tune_event event = event_of("bytescheduler-all-reduce", &complete);
    char line[PROGRESS_LINE];
    progress_result(&event, 79, line);
    assert_contains(line, "  12  baselines bytescheduler-all-redu predicted ");
    assert_contains(line, " measured   34.2 ms *");
}

static void fifty_columns_hold_both_times(void **state) {
    (void)state;
    const struct tune_event event = event_of("bytescheduler-all-reduce", &complete);
    char line[PROGRESS_LINE];
    progress_result(&event, 50, line);
    assert_contains(line, "bytesched ");
    assert_contains(line, " ->   34.2 ms *");
}

static void a_wide_terminal_holds_every_word(void **state) {
    (void)state;
    struct tune_event event = event_of("bytescheduler-all-reduce", &early);
    char line[PROGRESS_LINE];
    progress_result(&event, 120, line);
    assert_contains(line, "bytescheduler-all-reduce  ");
    assert_contains(line, " *  (ended early)  (recorded)");
    event.outcome = &failed;
    progress_result(&event, 200, line);
    assert_contains(line, "failed: the workers ended before the last iteration, and nobody");
}

static void the_bar_says_where_we_are(void **state) {
    (void)state;
    const struct tune_event event = event_of("ps", NULL);
    char line[PROGRESS_LINE];
    progress_bar(&event, 79, line);
    assert_string_equal(line, "[######..............] 12/40  best 34.2 ms  2:05 left  ps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_wider_than_the_terminal), cmocka_unit_test(no_line_obeys_what_it_shows),
        cmocka_unit_test(eighty_columns_hold_a_result),       cmocka_unit_test(fifty_columns_hold_both_times),
        cmocka_unit_test(a_wide_terminal_holds_every_word),   cmocka_unit_test(the_bar_says_where_we_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
