/* Traces read event by event: from memory, from a file, from both; what is refused, and where. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interop/import/text_set.h"
#include "interop/import/trace_stream.h"
#include "tests/support/check.h"
#include "tests/unit/interop/imports.h"

struct seen {
    size_t events, members;
    double sum;
    bool in_object;
    char names[200];
};

static enum status count(void *context, const char *member, const struct json_at *at, struct error *err) {
    struct seen *seen = context;
    double x = 0;
    if (member) {
        seen->members++;
        strcat(strcat(seen->names, member), " ");
        return ST_OK;
    }
    assert_int_equal(at->index, seen->events);
    seen->events++;
    seen->in_object = at->parent->parent;
    enum status st = json_get_number(at, "x", JSON_OPTIONAL, 0, 1e9, &x, err);
    seen->sum += x;
    return st;
}

static enum status stream(const char *text, struct seen *seen, struct error *err) {
    const struct source source = source_of("t.json", text);
    *seen = (struct seen){0};
    return trace_stream(&source, count, seen, err);
}

static void events_and_members_are_visited_in_order(void **state) {
    (void)state;
    struct error err;
    struct seen seen;
    assert_ok(stream("\xef\xbb\xbf {\"a\":{\"traceEvents\":[1]},\"b\":[{}],\n\"traceEvents\" : [ {\"x\":1} ,{\"x\":2,"
                     "\"n\":\"]},{\\\"\\\\\"}\n], \"c\" : -1.5e3 ,\"d\":\"}\"} \n",
                     &seen, &err));
    assert_int_equal(seen.events, 2);
    assert_close(seen.sum, 3, 1e-12);
    assert_string_equal(seen.names, "a b c d ");
    assert_true(seen.in_object);
    assert_ok(stream("[{\"x\":4},{\"x\":5}]", &seen, &err));
    assert_int_equal(seen.events, 2);
    assert_false(seen.in_object);
    assert_ok(stream("{\"traceEvents\":[]}", &seen, &err));
    assert_int_equal(seen.events, 0);
}

/* So long that events lie across the borders of what is read at once, at every offset. */
static void a_file_is_read_as_its_text_is(void **state) {
    (void)state;
    enum { EVENTS = 20000 };
    static const char *const names[] = {"", "\\\"", "]}", "[{", "\\\\", "\\\\\\\"]", ",:"};
    struct error err;
    struct seen seen;
    char *text = malloc(EVENTS * 40), *at = text;
    assert_non_null(text);
    at = stpcpy(at, "{\"traceEvents\":[");
    for (int i = 0; i < EVENTS; i++)
        at += sprintf(at, "%s{\"x\":%d,\"n\":\"%s\"}", i ? ",\n" : "", i, names[i % 7]);
    strcpy(at, "]}");
    const char *path = test_file("long.json", text);
    const struct source whole = trace_source(path);
    seen = (struct seen){0};
    assert_ok(trace_stream(&whole, count, &seen, &err));
    assert_int_equal(seen.events, EVENTS);
    assert_close(seen.sum, EVENTS / 2.0 * (EVENTS - 1), 1e-12);
    for (size_t n = 1; n < strlen(text); n += 70001) { /* the beginning is here, the rest is read */
        const struct source half = {path, text, n, true};
        seen = (struct seen){0};
        assert_ok(trace_stream(&half, count, &seen, &err));
        assert_int_equal(seen.events, EVENTS);
    }
    free(text);
}

static void refused(const char *text, const char *part) {
    struct error err;
    struct seen seen;
    assert_fails(stream(text, &seen, &err), ST_INVALID, part);
}

static void what_is_no_trace_is_refused_with_its_place(void **state) {
    (void)state;
    refused("", "t.json: line 1: the text ends inside the trace; is the file complete?");
    refused("{\"traceEvents\":[{\"x\":1},\n\n{\"x\"", "line 3: the text ends inside");
    refused("{\"traceEvents\":[{\"x\":1}", "the text ends inside");
    refused("{\"traceEvents\":[{\"x\":\"\\", "the text ends inside");
    refused("{\"traceEvents\":[\n{\"x\":1},\n\n{\"x\":\n01}]}",
            "t.json: /traceEvents/1: counted from line 4 on, line 2");
    refused("{\"traceEvents\":[{\"x\":1,\"x\":2}]}", "/traceEvents/0");
    refused("{\"traceEvents\":[{\"x\":1},]}", "line 1: a comma before a closing bracket");
    refused("{\"traceEvents\":[{\"x\":1}{}]}", "expected a comma");
    refused("{\"traceEvents\":[{\"x\":-1}]}", "/traceEvents/0/x");
    refused("{\"traceEvents\":[], \"traceEvents\":[]}", "stands twice");
    refused("{\"traceEvents\":{}}", "are a list");
    refused("{\"a\":1}", "no list \"traceEvents\"");
    refused("{a:1}", "a member name in double quotes");
    refused("{\"a\" 1}", "expected ':'");
    refused("{\"traceEvents\":[]} {", "text after the end");
    refused("3", "a trace is an object or a list");
    refused("\x1f\x8b\x08", "gunzip");
    refused("{\"traceEvents\":[]}}", "text after the end");
    refused("{\"traceEvents\":[}", "/traceEvents/0");
    struct error err;
    struct seen seen = {0};
    const struct source none = trace_source("/nowhere/at/all.json"), folder = trace_source(test_dir());
    assert_fails(trace_stream(&none, count, &seen, &err), ST_NOT_FOUND, "all.json: No such file");
    assert_fails(trace_stream(&folder, count, &seen, &err), ST_ENVIRONMENT, "cannot be read: Is a directory");
}

/* Its beginning was read, and a pipe cannot be read a second time. */
static void of_a_long_pipe_the_rest_is_lost(void **state) {
    (void)state;
    struct error err;
    struct seen seen = {0};
    char path[32];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    const struct source half = {path, "[", 1, true};
    assert_fails(trace_stream(&half, count, &seen, &err), ST_INVALID,
                 "a pipe of more than 64 MiB; give it as standard");
    close(ends[0]);
    close(ends[1]);
}

static void one_enormous_value_is_refused(void **state) {
    (void)state;
    struct error err;
    struct seen seen;
    char *text = malloc(TRACE_MAX_ITEM + 100);
    assert_non_null(text);
    strcpy(text, "{\"traceEvents\":[\"");
    const size_t n = strlen(text);
    memset(text + n, 'x', TRACE_MAX_ITEM);
    strcpy(text + n + TRACE_MAX_ITEM, "\"]}");
    assert_fails(stream(text, &seen, &err), ST_TOO_LARGE, "line 1: a value of more than 4194304 bytes");
    free(text);
}

static void a_set_keeps_each_text_once(void **state) {
    (void)state;
    struct arena arena = {0};
    struct text_set set = {.arena = &arena};
    const char *kept[1000];
    char text[20];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        kept[i] = text_set_add(&set, text);
        assert_string_equal(kept[i], text);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        assert_ptr_equal(text_set_add(&set, text), kept[i]);
    }
    assert_int_equal(set.n, 1000);
    text_set_release(&set);
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_and_members_are_visited_in_order),
        cmocka_unit_test(a_file_is_read_as_its_text_is),
        cmocka_unit_test(what_is_no_trace_is_refused_with_its_place),
        cmocka_unit_test(of_a_long_pipe_the_rest_is_lost),
        cmocka_unit_test(one_enormous_value_is_refused),
        cmocka_unit_test(a_set_keeps_each_text_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
