/* The client against a service that answers as this test says, one connection an answer: what is sent again and how,
 * what an answer becomes, and how a stream of events outlives its connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/client/client.h"
#include "tests/unit/cli/scripted_service.h"

static struct client *connect_to(const char *url, unsigned tries) {
    struct client *client;
    struct error err;
    const struct client_options options = {.url = url, .tries = tries, .token = "syn_a_b", .deadline_us = 20e6};
    assert_ok(client_open(&options, &client, &err));
    return client;
}

static enum status ask(struct client *client, const char *method, const char *path, struct error *err) {
    cJSON *answer = NULL, *body = cJSON_Parse("{\"a\":1}");
    const struct client_request request = {.method = method, .path = path, .body = strcmp(method, "GET") ? body : NULL};
    enum status st = client_call(client, &request, &answer, err);
    if (!st)
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(answer, "good")));
    cJSON_Delete(answer);
    cJSON_Delete(body);
    return st;
}

/* The value of a header in a request. */
static void header_of(const char *request, const char *name, char out[256]) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    const char *at = strcasestr(request, wanted);
    snprintf(out, 256, "%.*s", at ? (int)strcspn(at + strlen(wanted), "\r") : 0, at ? at + strlen(wanted) : "");
}

static void what_changes_nothing_is_asked_for_again_without_a_key(void **state) {
    (void)state;
    struct error err;
    struct script s;
    cJSON *out;
    char key[256];
    START(s, NULL, ANSWER("502 Bad", "", "text/html", "<p>"), OK("{\"good\":true}"));
    struct client *client = connect_to(s.url, 0);
    const struct client_request request = {.method = "POST", .path = "/x", .keyless = true};
    assert_ok(client_call(client, &request, &out, &err));
    cJSON_Delete(out);
    client_close(client);
    script_end(&s);
    for (size_t i = 0; i < s.n; i++) {
        header_of(s.requests[i], "Idempotency-Key", key);
        assert_string_equal(key, "");
    }
}

static void a_lost_answer_is_asked_for_again_under_the_same_key(void **state) {
    (void)state;
    struct error err;
    struct script s;
    char first[256], second[256], third[256], fourth[256];
    START(s, NULL, ANSWER("502 Bad", "", "text/html", "<p>"), OK("{\"good\":true}"), OK("{\"good\":true}"));
    struct client *client = connect_to(s.url, 0);
    assert_ok(ask(client, "POST", "/x", &err));
    assert_ok(ask(client, "POST", "/x", &err));
    client_close(client);
    script_end(&s);
    header_of(s.requests[0], "Idempotency-Key", first);
    header_of(s.requests[1], "Idempotency-Key", second);
    header_of(s.requests[2], "Idempotency-Key", third);
    header_of(s.requests[3], "Idempotency-Key", fourth);
    assert_int_equal(strlen(first), 32);
    assert_string_equal(first, second);
    assert_string_equal(first, third);
    assert_string_not_equal(first, fourth);
    for (size_t i = 0; i < s.n; i++) {
        assert_contains(s.requests[i], "POST /x HTTP/1.1\r\n");
        assert_contains(s.requests[i], "\r\nAuthorization: Bearer syn_a_b\r\n");
        assert_contains(s.requests[i], "\r\n\r\n{\"a\":1}");
    }
}

static void a_change_without_a_key_is_not_sent_twice(void **state) {
    (void)state;
    struct error err;
    struct script s;
    START(s, NULL);
    struct client *client = connect_to(s.url, 0);
    assert_fails(ask(client, "PATCH", "/x", &err), ST_UNREACHABLE, s.url);
    client_close(client);
    script_end(&s);
}

/* ---- whatever goes wrong ---- */

static const struct {
    const char *answer;
    bool done_nothing; /* the service says so */
} troubles[] = {
    {NULL, false},
    {"HTTP/1.1 200 O", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"good\":tr", false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"go", false},
    {ANSWER("502 Bad", "", "text/html", "<p>"), false},
    {ANSWER("504 Late", "", "text/html", "<p>"), false},
    {PROBLEM("503 Busy", "draining", ""), true},
    {PROBLEM("429 Slowly", "rate-limited", ""), true},
};
enum { TROUBLES = sizeof troubles / sizeof *troubles };

/* What a service may have done is done again only under the same key; what has no key, only when it did nothing. */
static void no_trouble_makes_a_request_count_twice(void **state) {
    (void)state;
    static const char *const methods[] = {"POST", "PATCH"};
    struct rng rng;
    char keys[2 * TROUBLES][256];
    size_t n_keys = 0;
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < 2 * TROUBLES; i++) {
        const char *method = methods[i % 2], *good = OK("{\"good\":true}");
        const bool post = i % 2 == 0, twice = rng_below(&rng, 4) == 0;
        const size_t first = i / 2, second = rng_below(&rng, TROUBLES);
        const bool again = post || troubles[first].done_nothing,
                   whole = again && (post || !twice || troubles[second].done_nothing);
        const char *answers[] = {troubles[first].answer, twice ? troubles[second].answer : good, good};
        struct error err;
        struct script s;
        script_start(&s, !again ? 1 : whole && twice ? 3 : 2, answers);
        struct client *client = connect_to(s.url, 0);
        assert_int_equal(ask(client, method, "/x", &err), whole ? ST_OK : ST_UNREACHABLE);
        client_close(client);
        script_end(&s);
        header_of(s.requests[0], "Idempotency-Key", keys[n_keys]);
        for (size_t k = 1; k < s.n; k++) {
            char key[256];
            header_of(s.requests[k], "Idempotency-Key", key);
            assert_string_equal(key, keys[n_keys]);
        }
        assert_int_equal(strlen(keys[n_keys]), post ? 32 : 0);
        for (size_t k = 0; k < n_keys; k++)
            assert_string_not_equal(keys[k], keys[n_keys]);
        n_keys += post;
    }
}

/* The deadline is of the call with all its tries; whoever asks once more brings the key that it asked under. */
static void a_service_that_stalls_is_given_up_at_the_deadline(void **state) {
    (void)state;
    struct error err;
    unsigned port;
    char url[64];
    cJSON *answer;
    int silent = listen_anywhere(&port); /* whoever connects waits */
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    struct client *client = connect_to(url, 0);
    const struct client_request request = {.method = "POST", .path = "/x", .key = "mine", .deadline_us = 0.5e6};
    const double start = clock_now_us();
    assert_fails(client_call(client, &request, &answer, &err), ST_UNREACHABLE, "");
    assert_true(clock_now_us() - start >= 0.4e6 && clock_now_us() - start < 5e6);
    assert_true(client_may_come_back(client));
    client_close(client);
    close(silent);
}

static void a_refused_change_is_sent_again(void **state) {
    (void)state;
    struct error err;
    struct script s;
    START(s, PROBLEM("429 Slowly", "rate-limited", ""), OK("{\"good\":true}"));
    struct client *client = connect_to(s.url, 0);
    assert_ok(ask(client, "PATCH", "/x", &err));
    client_close(client);
    script_end(&s);
}

static void it_waits_as_long_as_the_service_asks(void **state) {
    (void)state;
    struct error err;
    struct script s;
    START(s, PROBLEM("503 Busy", "draining", "Retry-After: 1\r\n"), OK("{\"good\":true}"));
    struct client *client = connect_to(s.url, 0);
    double start = clock_now_us();
    assert_ok(ask(client, "GET", "/x", &err));
    assert_true(clock_now_us() - start >= 1e6);
    client_close(client);
    script_end(&s);
}

static void it_does_not_wait_past_its_deadline(void **state) {
    (void)state;
    struct error err;
    struct script s;
    START(s, PROBLEM("503 Busy", "draining", "Retry-After: 1000\r\n"));
    struct client *client = connect_to(s.url, 0);
    double start = clock_now_us();
    assert_fails(ask(client, "GET", "/x", &err), ST_UNREACHABLE, "no luck");
    assert_true(clock_now_us() - start < 5e6);
    client_close(client);
    script_end(&s);
}

static void a_service_that_is_not_there_is_given_up_after_the_tries(void **state) {
    (void)state;
    struct error err;
    unsigned port;
    char url[64];
    int taken = listen_anywhere(&port); /* and closed: nobody listens */
    close(taken);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    struct client *client = connect_to(url, 3);
    assert_fails(ask(client, "POST", "/x", &err), ST_UNREACHABLE, "tried 3 times");
    assert_int_equal(client_last_status(client), 0);
    client_close(client);
}

static void a_problem_keeps_its_meaning(void **state) {
    (void)state;
    static const struct {
        const char *answer, *code;
        enum status status;
        long http;
    } rows[] = {{PROBLEM("400 Bad", "bad-parameter", ""), "bad-parameter", ST_USAGE, 400},
                {PROBLEM("401 No", "unauthorized", ""), "unauthorized", ST_UNREACHABLE, 401},
                {PROBLEM("404 No", "not-found", ""), "not-found", ST_NOT_FOUND, 404},
                {PROBLEM("409 No", "stale-attempt", ""), "stale-attempt", ST_CONFLICT, 409},
                {PROBLEM("413 No", "too-large", ""), "too-large", ST_TOO_LARGE, 413},
                {PROBLEM("422 No", "invalid", ""), "invalid", ST_INVALID, 422},
                {PROBLEM("422 No", "infeasible", ""), "infeasible", ST_INFEASIBLE, 422},
                {PROBLEM("500 No", "internal", ""), "internal", ST_UNREACHABLE, 500}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err;
        struct script s;
        START(s, rows[i].answer);
        struct client *client = connect_to(s.url, 0);
        assert_fails(ask(client, "POST", "/x", &err), rows[i].status, "no luck");
        assert_contains(ERROR_TEXT(&err), rows[i].code);
        assert_contains(ERROR_TEXT(&err), "request r7");
        assert_string_equal(err.code, rows[i].code);
        assert_int_equal(client_last_status(client), rows[i].http);
        client_close(client);
        script_end(&s);
    }
}

static void what_is_no_service_is_said_so(void **state) {
    (void)state;
    static const struct {
        const char *answer, *part;
    } rows[] = {{ANSWER("200 OK", "", "text/html", "<html>"), "is it a syncopate service"},
                {ANSWER("403 No", "", "text/html", "<html>"), "HTTP status 403"},
                {ANSWER("301 Moved", "Location: http://127.0.0.1:1/\r\n", "text/html", ""), "redirect"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err;
        struct script s;
        START(s, rows[i].answer);
        struct client *client = connect_to(s.url, 0);
        assert_fails(ask(client, "GET", "/x", &err), ST_UNREACHABLE, rows[i].part);
        client_close(client);
        script_end(&s);
    }
}

static void urls_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const char *const urls[] = {"", "localhost:8642", "ftp://host", "http://", "http:///x", "http://h?x=1"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct error err;
        struct client *client;
        assert_fails(client_open(&(struct client_options){.url = urls[i]}, &client, &err), ST_USAGE,
                     "is no service's URL");
    }
    struct error err;
    struct client *client;
    assert_fails(client_open(&(struct client_options){.url = "http://user:word@host"}, &client, &err), ST_USAGE,
                 "no user and no password");
    assert_null(strstr(ERROR_TEXT(&err), "word@"));
}

static void an_interrupt_ends_a_wait(void **state) {
    (void)state;
    struct error err;
    struct client *client;
    static atomic_int cancel = 1;
    const struct client_options options = {.url = "http://127.0.0.1:1", .cancel = &cancel};
    assert_ok(client_open(&options, &client, &err));
    assert_fails(client_pause(client, 60e6, &err), ST_CANCELLED, "interrupted");
    assert_fails(ask(client, "GET", "/x", &err), ST_CANCELLED, "interrupted");
    client_close(client);
}

static void a_proxy_is_asked_in_place_of_the_service(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct client *client;
    START(s, OK("{\"good\":true}"), OK("{\"good\":true}"));
    struct client_options options = {.url = "http://tuner.invalid:8642/prefix/", .proxy = s.url};
    assert_ok(client_open(&options, &client, &err));
    assert_ok(ask(client, "GET", "/x", &err));
    client_close(client);
    options.proxy = NULL; /* then the environment's */
    setenv("http_proxy", s.url, 1);
    assert_ok(client_open(&options, &client, &err));
    assert_ok(ask(client, "GET", "/x", &err));
    client_close(client);
    unsetenv("http_proxy");
    script_end(&s);
    for (size_t i = 0; i < s.n; i++)
        assert_contains(s.requests[i], "GET http://tuner.invalid:8642/prefix/x HTTP/1.1\r\n");
}

/* ---- events ---- */

struct heard {
    size_t n, wanted;
    char text[256];
};

static bool hear(void *context, const struct client_event *event) {
    struct heard *h = context;
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s %s %s;", event->id, event->kind, event->data);
    return ++h->n < h->wanted;
}

#define STREAM(body) ANSWER("200 OK", "", "text/event-stream", body)

static void a_stream_goes_on_after_the_last_event_when_it_is_cut(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct heard heard = {.wanted = 4};
    char id[256];
    START(s, STREAM(":\n\nid: 5\nevent: a\ndata: x\n\nid: 6\nevent: b\ndata: y\n\nid: 7\nevent: lost\nda"),
          PROBLEM("503 Busy", "draining", ""), STREAM("id: 7\nevent: c\ndata: z\n\nid: 8\nevent: d\ndata: w\n\n"));
    struct client *client = connect_to(s.url, 0);
    assert_ok(client_listen(client, "/events", "4", 0, hear, &heard, &err));
    assert_string_equal(heard.text, "5 a x;6 b y;7 c z;8 d w;");
    client_close(client);
    script_end(&s);
    header_of(s.requests[0], "Last-Event-ID", id);
    assert_string_equal(id, "4");
    for (size_t i = 1; i < s.n; i++) { /* an event that did not come whole is not counted */
        header_of(s.requests[i], "Last-Event-ID", id);
        assert_string_equal(id, "6");
    }
}

static void a_stream_that_may_not_be_heard_is_an_error(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct heard heard = {.wanted = 1};
    START(s, PROBLEM("404 No", "not-found", ""));
    struct client *client = connect_to(s.url, 0);
    assert_fails(client_listen(client, "/events", NULL, 0, hear, &heard, &err), ST_NOT_FOUND, "no luck");
    client_close(client);
    script_end(&s);
}

static void a_stream_that_always_ends_at_once_is_given_up(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct heard heard = {.wanted = 1};
    START(s, STREAM(""), STREAM(":\n\n"));
    struct client *client = connect_to(s.url, 0);
    assert_fails(client_listen(client, "/events", NULL, 2, hear, &heard, &err), ST_UNREACHABLE, "ends at once");
    client_close(client);
    script_end(&s);
}

int main(void) {
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_nothing_is_asked_for_again_without_a_key),
        cmocka_unit_test(a_lost_answer_is_asked_for_again_under_the_same_key),
        cmocka_unit_test(a_change_without_a_key_is_not_sent_twice),
        cmocka_unit_test(a_refused_change_is_sent_again),
        cmocka_unit_test(no_trouble_makes_a_request_count_twice),
        cmocka_unit_test(a_service_that_stalls_is_given_up_at_the_deadline),
        cmocka_unit_test(it_waits_as_long_as_the_service_asks),
        cmocka_unit_test(it_does_not_wait_past_its_deadline),
        cmocka_unit_test(a_service_that_is_not_there_is_given_up_after_the_tries),
        cmocka_unit_test(a_problem_keeps_its_meaning),
        cmocka_unit_test(what_is_no_service_is_said_so),
        cmocka_unit_test(urls_that_make_no_sense_are_refused),
        cmocka_unit_test(an_interrupt_ends_a_wait),
        cmocka_unit_test(a_proxy_is_asked_in_place_of_the_service),
        cmocka_unit_test(a_stream_goes_on_after_the_last_event_when_it_is_cut),
        cmocka_unit_test(a_stream_that_may_not_be_heard_is_an_error),
        cmocka_unit_test(a_stream_that_always_ends_at_once_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
