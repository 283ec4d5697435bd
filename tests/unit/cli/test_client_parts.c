/* The parts of the client that need no network: when to try again, events from bytes, and where a token may lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/client/event_parser.h"
#include "cli/client/retry.h"
#include "cli/client/token.h"
#include "cli/remote_query.h"
#include "dataset/filter.h"
#include "tests/support/check.h"

/* ---- retry ---- */

static void waits_double_up_to_a_limit_and_differ(void **state) {
    (void)state;
    struct rng rng;
    double longest = 0, shortest = 1e12;
    rng_seed(&rng, test_seed());
    for (unsigned n = 1; n < 40; n++) {
        const double most = n < 7 ? 0.2e6 * (double)(1u << (n - 1)) : 10e6;
        for (int i = 0; i < 20; i++) {
            const double wait = retry_backoff(&rng, n);
            assert_true(wait >= most / 2 && wait <= most);
            longest = n > 7 && wait > longest ? wait : longest;
            shortest = n > 7 && wait < shortest ? wait : shortest;
        }
    }
    assert_true(longest - shortest > 2e6);
}

static void only_what_did_nothing_or_may_be_repeated_is_tried_again(void **state) {
    (void)state;
    for (int ending = TRY_DONE; ending <= TRY_UNCERTAIN; ending++)
        for (int repeatable = 0; repeatable < 2; repeatable++) {
            struct retry retry = {.deadline_us = 1e9, .repeatable = repeatable};
            rng_seed(&retry.rng, 1);
            const bool again = retry_wait(&retry, (enum try_ending)ending, 0, 0) >= 0;
            assert_int_equal(again, ending != TRY_DONE && (ending != TRY_UNCERTAIN || repeatable));
        }
}

static void tries_and_deadline_end_it(void **state) {
    (void)state;
    struct retry retry = {.deadline_us = 100e6, .most = 3, .repeatable = true};
    rng_seed(&retry.rng, 1);
    assert_true(retry_wait(&retry, TRY_REFUSED, 0, 0) >= 0);
    assert_true(retry_wait(&retry, TRY_REFUSED, 5e6, 1e6) >= 5e6);
    assert_true(retry_wait(&retry, TRY_REFUSED, 0, 2e6) < 0);
    struct retry late = {.deadline_us = 10e6, .repeatable = true};
    rng_seed(&late.rng, 1);
    assert_true(retry_wait(&late, TRY_UNSENT, 11e6, 0) < 0);
    assert_true(retry_wait(&late, TRY_UNSENT, 0, 10e6) < 0);
}

/* ---- events ---- */

struct heard {
    char text[4096];
    size_t n, most;
};

static bool hear(void *context, const struct client_event *e) {
    struct heard *h = context;
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "[%s|%s|%s]", e->id, e->kind, e->data);
    return ++h->n != h->most;
}

/* Fed in pieces of 1 to `most` bytes. */
static void feed(const char *bytes, size_t most, struct rng *rng, struct heard *out) {
    struct event_parser parser;
    struct error err;
    const size_t n = strlen(bytes);
    *out = (struct heard){.most = out->most};
    event_parser_init(&parser, "0", hear, out);
    for (size_t i = 0; i < n;) {
        size_t piece = 1 + (size_t)rng_below(rng, most);
        piece = piece < n - i ? piece : n - i;
        assert_ok(event_parser_feed(&parser, bytes + i, piece, &err));
        i += piece;
    }
    event_parser_release(&parser);
}

static const char stream[] = "\xef\xbb\xbf: hello\n\nid: 1\nevent: trial\ndata: {\"a\":1}\n\n"
                             "data: no kind\r\n\r\nid:2\rdata:a\rdata: b\r\rretry: 10\nunknown: x\nid\ndata\n\n"
                             "event: nothing\n\nid: 9\ndata:  two blanks: and colons\n\ndata: not ended";
static const char events[] = "[1|trial|{\"a\":1}][1|message|no kind][2|message|a\nb][|message|]"
                             "[9|message| two blanks: and colons]";

static void events_are_the_same_however_the_bytes_are_cut(void **state) {
    (void)state;
    struct rng rng;
    struct heard heard = {.most = 0};
    rng_seed(&rng, test_seed());
    feed(stream, sizeof stream, &rng, &heard);
    assert_string_equal(heard.text, events);
    for (int i = 0; i < 200; i++) {
        feed(stream + 3, 1 + (size_t)i % 20, &rng, &heard);
        assert_string_equal(heard.text, events);
    }
}

static void who_has_enough_hears_no_more(void **state) {
    (void)state;
    struct rng rng;
    struct heard heard = {.most = 2};
    rng_seed(&rng, test_seed());
    feed(stream, sizeof stream, &rng, &heard);
    assert_int_equal(heard.n, 2);
}

static void half_an_event_is_forgotten_when_the_stream_is_cut(void **state) {
    (void)state;
    struct event_parser parser;
    struct error err;
    struct heard heard = {.most = 0};
    static const char half[] = "id: 3\ndata: x\n\nevent: half\ndata: o", rest[] = "data: whole\n\n";
    event_parser_init(&parser, NULL, hear, &heard);
    assert_ok(event_parser_feed(&parser, half, sizeof half - 1, &err));
    event_parser_cut(&parser);
    assert_ok(event_parser_feed(&parser, rest, sizeof rest - 1, &err));
    assert_string_equal(heard.text, "[3|message|x][3|message|whole]");
    event_parser_release(&parser);
}

static void an_endless_line_is_refused(void **state) {
    (void)state;
    struct event_parser parser;
    struct error err;
    struct heard heard = {.most = 0};
    enum { CHUNK = 1 << 20 };
    char *chunk = malloc(CHUNK);
    assert_non_null(chunk);
    memset(chunk, 'x', CHUNK);
    event_parser_init(&parser, NULL, hear, &heard);
    for (size_t i = 0; i < EVENT_MOST_BYTES / CHUNK; i++)
        assert_ok(event_parser_feed(&parser, chunk, CHUNK, &err));
    assert_fails(event_parser_feed(&parser, chunk, CHUNK, &err), ST_TOO_LARGE, "bytes");
    event_parser_release(&parser);
    free(chunk);
}

/* ---- tokens ---- */

static void a_token_file_is_for_its_owner_alone(void **state) {
    (void)state;
    struct error err;
    char token[CLIENT_TOKEN_ROOM];
    const char *path = test_file("token", "syn_ab_cd\n");
    static const mode_t bad[] = {0640, 0604, 0660, 0644, 0610};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(chmod(path, bad[i]), 0);
        assert_fails(client_token(path, token, &err), ST_ENVIRONMENT, "chmod 600");
    }
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(client_token(path, token, &err));
    assert_string_equal(token, "syn_ab_cd");
    assert_fails(client_token(test_dir(), token, &err), ST_ENVIRONMENT, "plain file");
    assert_fails(client_token("/nonexistent/token", token, &err), ST_NOT_FOUND, "/nonexistent/token");
}

static void what_is_no_token_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n", "two words\n", "tab\there\n", "caf\xc3\xa9\n"};
    struct error err;
    char token[CLIENT_TOKEN_ROOM], lengthy[1024];
    memset(lengthy, 'x', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = test_file("bad", texts[i]);
        assert_int_equal(chmod(path, 0600), 0);
        assert_fails(client_token(path, token, &err), ST_INVALID, "token");
    }
    const char *path = test_file("long", lengthy);
    assert_int_equal(chmod(path, 0600), 0);
    assert_fails(client_token(path, token, &err), ST_INVALID, "no token");
}

static void without_a_file_the_environment_has_it(void **state) {
    (void)state;
    struct error err;
    char token[CLIENT_TOKEN_ROOM];
    unsetenv("SYNCOPATE_TOKEN");
    assert_ok(client_token(NULL, token, &err));
    assert_string_equal(token, "");
    setenv("SYNCOPATE_TOKEN", "syn_x_y", 1);
    assert_ok(client_token(NULL, token, &err));
    assert_string_equal(token, "syn_x_y");
    setenv("SYNCOPATE_TOKEN", "a b", 1);
    assert_fails(client_token(NULL, token, &err), ST_INVALID, "SYNCOPATE_TOKEN");
    unsetenv("SYNCOPATE_TOKEN");
}

/* ---- queries ---- */

static void a_query_becomes_a_filter_that_is_one(void **state) {
    (void)state;
    struct error err;
    struct arena arena = {0};
    const enum record_state complete = RECORD_COMPLETE;
    const char *filter;
    const struct query query = {.model = "a \"b\" \\ c",
                                .state = &complete,
                                .until = "2026-11-21",
                                .max_measured_us = 90000.5,
                                .filter = "proposer = wfbp OR round = 0"};
    assert_ok(remote_query_filter(&query, &arena, &filter, &err));
    assert_string_equal(filter,
                        "model = \"a \\\"b\\\" \\\\ c\" AND state = \"complete\" AND queued < \"2026-11-21\" AND "
                        "measured_us <= 90000.5 AND (proposer = wfbp OR round = 0)");
    assert_ok(filter_check(filter, &err));
    assert_ok(remote_query_filter(&(struct query){.filter = "round = 0"}, &arena, &filter, &err));
    assert_string_equal(filter, "round = 0");
    assert_ok(remote_query_filter(&(struct query){0}, &arena, &filter, &err));
    assert_string_equal(filter, "");
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_a_limit_and_differ),
        cmocka_unit_test(only_what_did_nothing_or_may_be_repeated_is_tried_again),
        cmocka_unit_test(tries_and_deadline_end_it),
        cmocka_unit_test(events_are_the_same_however_the_bytes_are_cut),
        cmocka_unit_test(who_has_enough_hears_no_more),
        cmocka_unit_test(half_an_event_is_forgotten_when_the_stream_is_cut),
        cmocka_unit_test(an_endless_line_is_refused),
        cmocka_unit_test(a_token_file_is_for_its_owner_alone),
        cmocka_unit_test(what_is_no_token_is_refused),
        cmocka_unit_test(without_a_file_the_environment_has_it),
        cmocka_unit_test(a_query_becomes_a_filter_that_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
