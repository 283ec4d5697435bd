/* The command tables as a walk shows them, and what is made of them. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "tests/support/check.h"

/* ---- the walk ---- */

struct seen {
    size_t n;
    char names[128][64];
};

static void see(const struct command_page *page, void *context) {
    struct seen *seen = context;
    assert_true(seen->n < 128);
    snprintf(seen->names[seen->n++], sizeof seen->names[0], "%.*s", options_name_length(page->line->usage),
             page->line->usage);
}

static size_t place_of(const struct seen *seen, const char *name) {
    for (size_t i = 0; i < seen->n; i++)
        if (!strcmp(seen->names[i], name))
            return i;
    fail_msg("the walk has not been at \"%s\"", name);
    return 0;
}

static void a_walk_goes_from_the_program_to_its_groups_to_their_commands(void **state) {
    (void)state;
    static struct seen seen;
    commands_walk(see, &seen);
    assert_int_equal(place_of(&seen, ""), 0);
    assert_int_equal(place_of(&seen, "tune"), 1);
    assert_int_equal(place_of(&seen, "dataset query"), place_of(&seen, "dataset") + 1);
    assert_int_equal(place_of(&seen, "serve token"), place_of(&seen, "serve") + 1);
    assert_int_equal(place_of(&seen, "serve token create"), place_of(&seen, "serve token") + 1);
    for (size_t i = 0; i < seen.n; i++)
        assert_int_equal(place_of(&seen, seen.names[i]), i);
}

/* A command's name is that of what lists it, and a word that stands in its rows. */
static void check_place(const struct command_page *page, void *context) {
    (void)context;
    const struct command_line *line = page->line, *parent = page->parent;
    if (!parent) {
        assert_int_equal(options_name_length(line->usage), 0);
        return;
    }
    const int n = options_name_length(parent->usage), all = options_name_length(line->usage);
    const char *own = line->usage + n + (n > 0);
    const size_t length = (size_t)(line->usage + all - own);
    assert_memory_equal(line->usage, parent->usage, (size_t)n);
    for (const struct command *row = parent->commands; row->name; row++)
        if (strlen(row->name) == length && !memcmp(row->name, own, length)) {
            assert_string_equal(row->summary, page->summary);
            return;
        }
    fail_msg("\"%s\" is listed nowhere", line->usage);
}

static void every_usage_line_begins_with_the_place_of_its_command(void **state) {
    (void)state;
    commands_walk(check_place, NULL);
}

static void commands_parse_again_after_a_walk(void **state) {
    (void)state;
    static struct seen seen;
    uint64_t n = 0;
    const struct option options[] = {{"n", OPTION_INTEGER, &n, "N", "a number"}, {0}};
    const struct command_line line = {.usage = "x", .about = "", .options = options};
    char *words[] = {"x", "--n", "7", NULL};
    struct arguments arguments;
    struct error err;
    commands_walk(see, &seen);
    assert_int_equal(options_parse(&line, 3, words, &arguments, &err), ST_OK);
    assert_int_equal(n, 7);
}

/* ---- the tables ---- */

static void check_option(const struct option *o, const struct option *all) {
    assert_true(*o->name && strspn(o->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(o->name));
    assert_true((o->kind == OPTION_FLAG) == !o->argument);
    assert_true(*o->help && o->help[strlen(o->help) - 1] != '.');
    for (const struct option *other = all; other != o; other++)
        assert_string_not_equal(other->name, o->name);
    if (!o->argument)
        return;
    assert_null(strpbrk(o->argument, " '\"\t\n"));
    if (strchr(o->argument, '|')) {
        assert_true(islower((unsigned char)o->argument[0]));
        assert_null(strstr(o->argument, "||"));
        assert_int_not_equal(o->argument[strlen(o->argument) - 1], '|');
    }
}

static void check_options(const struct command_page *page, void *context) {
    size_t *n = context;
    for (const struct option *o = page->line->options; o->kind != OPTION_END; o++, ++*n)
        check_option(o, page->line->options);
}

static void option_tables_keep_to_their_rules(void **state) {
    (void)state;
    size_t n = 0;
    commands_walk(check_options, &n);
    assert_true(n > 150);
}

static void a_command_ends_where_its_arguments_begin(void **state) {
    (void)state;
    assert_int_equal(options_name_length("COMMAND [options]"), 0);
    assert_int_equal(options_name_length("doctor"), 6);
    assert_int_equal(options_name_length("train-ranker [options]"), 12);
    assert_int_equal(options_name_length("dataset merge OTHER"), 13);
    assert_int_equal(options_name_length("agent --server URL"), 5);
    assert_int_equal(options_name_length("dataset show (model|cluster) [ID]"), 12);
}

static void a_variable_is_named_after_its_option(void **state) {
    (void)state;
    char name[32];
    options_variable("trial-time", name, sizeof name);
    assert_string_equal(name, "SYNCOPATE_TRIAL_TIME");
    options_variable("trial-time", name, 14);
    assert_string_equal(name, "SYNCOPATE_TRI");
}

/* ---- manual pages ---- */

static char *page_of(size_t n, const char *const *words) {
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_int_equal(manual_write(n, words, to, &err), ST_OK);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* Only requests that we mean, only escapes that we mean, and no font that goes on past its line. */
static void check_line(const char *line) {
    static const char *const requests[] = {".TH ", ".SH ", ".TP", ".PP", ".nf", ".fi", ".nh", ".ad l"};
    static const char *const escapes[] = {"\\fB", "\\fI",  "\\fR",  "\\-",   "\\e",  "\\&",
                                          "\\:",  "\\(aq", "\\(ga", "\\(ti", "\\(ha"};
    bool known = *line != '.', plain = true;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        known = known || !strncmp(line, requests[i], strlen(requests[i]));
    if (!known || *line == '\'')
        fail_msg("a request by accident: %s", line);
    for (const char *c = strchr(line, '\\'); c; c = strchr(c + 2, '\\')) {
        bool meant = false;
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            meant = meant || !strncmp(c, escapes[i], strlen(escapes[i]));
        if (!meant)
            fail_msg("an escape by accident: %s", c);
        plain = c[1] == 'f' ? c[2] == 'R' : plain;
    }
    if (!plain)
        fail_msg("a font that does not end: %s", line);
}

static void check_page(const char *name) {
    char copy[64];
    const char *words[8];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", name);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    char *page = page_of(n, words), *rest = page;
    assert_memory_equal(page, ".TH \"SYNCOPATE", 14);
    for (char *line; (line = strsep(&rest, "\n"));)
        check_line(line);
    free(page);
}

static void pages_ask_nothing_of_roff_by_accident(void **state) {
    (void)state;
    static struct seen seen;
    commands_walk(see, &seen);
    for (size_t i = 0; i < seen.n; i++)
        check_page(seen.names[i]);
}

static void a_page_says_what_the_table_says(void **state) {
    (void)state;
    static const char *const words[] = {"dataset", "query"};
    char *page = page_of(2, words);
    assert_non_null(strstr(page, "\nsyncopate\\-dataset\\-query \\- print trials, by any filter\n"));
    assert_non_null(strstr(page, "\n\\fBsyncopate\\fR \\fBdataset\\fR \\fBquery\\fR"));
    assert_non_null(strstr(
        page, ".TP\n\\fB\\-\\-order\\fR \\fIrecorded|\\:number|\\:predicted|\\:measured\\fR\nWhat they are sorted by"));
    assert_non_null(strstr(page, "SYNCOPATE_FASTER_THAN"));
    assert_non_null(strstr(page, "  syncopate dataset query \\-\\-model resnet18"));
    assert_non_null(strstr(page, "\\fBsyncopate\\-dataset\\fR(1)"));
    assert_null(strstr(page, "\\fBsyncopate\\-dataset\\-query\\fR(1)"));
    free(page);
}

static void no_page_is_half_written_for_no_command(void **state) {
    (void)state;
    static const char *const words[] = {"dataset", "quer"};
    char text[16] = "as before";
    struct error err;
    FILE *to = fmemopen(text, sizeof text, "r+");
    assert_int_equal(manual_write(2, words, to, &err), ST_USAGE);
    assert_int_equal(ftell(to), 0);
    fclose(to);
    assert_string_equal(text, "as before");
}

static void only_shells_that_are_known_are_completed(void **state) {
    (void)state;
    struct error err;
    assert_int_equal(completion_write("sh", stdout, &err), ST_USAGE);
    assert_non_null(strstr(ERROR_TEXT(&err), "bash, zsh"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_goes_from_the_program_to_its_groups_to_their_commands),
        cmocka_unit_test(every_usage_line_begins_with_the_place_of_its_command),
        cmocka_unit_test(commands_parse_again_after_a_walk),
        cmocka_unit_test(option_tables_keep_to_their_rules),
        cmocka_unit_test(a_command_ends_where_its_arguments_begin),
        cmocka_unit_test(a_variable_is_named_after_its_option),
        cmocka_unit_test(pages_ask_nothing_of_roff_by_accident),
        cmocka_unit_test(a_page_says_what_the_table_says),
        cmocka_unit_test(no_page_is_half_written_for_no_command),
        cmocka_unit_test(only_shells_that_are_known_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
