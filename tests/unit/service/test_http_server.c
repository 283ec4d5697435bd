/* The server as seen from the wire: what it answers, what it refuses, and whom it cuts. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/unit/service/http_site.h"

/* Routes of the test alone. */

static atomic_int slow_now, slow_most, released;
static atomic_bool hold;

static void wait_until(atomic_int *value, int wanted) {
    for (int i = 0; i < 5000 && atomic_load(value) < wanted; i++)
        clock_sleep_us(1000);
}

/* Runs for `ms`, or while `hold` is set. */
static enum status slow(struct request *rq, struct response *rs, struct error *err) {
    uint64_t ms = 0;
    enum status st = request_query_integer(rq, "ms", 0, 10000, &ms, err);
    if (st)
        return st;
    int now = atomic_fetch_add(&slow_now, 1) + 1;
    if (now > atomic_load(&slow_most))
        atomic_store(&slow_most, now);
    clock_sleep_us((double)ms * 1000);
    while (atomic_load(&hold))
        clock_sleep_us(1000);
    atomic_fetch_sub(&slow_now, 1);
    response_bytes(rs, 200, "text/plain", "slow", 4);
    return ST_OK;
}

static enum status echo(struct request *rq, struct response *rs, struct error *err) {
    (void)err;
    response_bytes(rs, 200, "application/json", rq->body, rq->body_bytes);
    return ST_OK;
}

static enum status fail_inside(struct request *rq, struct response *rs, struct error *err) {
    (void)rq, (void)rs;
    return error_set(err, ST_ENVIRONMENT, "/secret/path: no room");
}

/* Events 1, 2, 3, ... up to `published`. */
static atomic_ullong published;
struct ticker {
    uint64_t last;
};

static enum status read_ticks(void *context, struct event_text *out, bool *more, bool *end, struct error *err) {
    struct ticker *t = context;
    enum status st = ST_OK;
    (void)more;
    while (!st && t->last < atomic_load(&published)) {
        char data[64];
        snprintf(data, sizeof data, "{\"n\":%llu}", (unsigned long long)++t->last);
        st = event_append(out, t->last, "tick", data, err);
    }
    *end = t->last >= 100;
    return st;
}

static void release_ticks(void *context) {
    free(context);
    atomic_fetch_add(&released, 1);
}

static enum status ticks(struct request *rq, struct response *rs, struct error *err) {
    struct ticker *t = calloc(1, sizeof *t);
    struct event_source source = {.topic = "ticks", .context = t, .read = read_ticks, .release = release_ticks};
    if (t && rq->last_event_id)
        t->last = strtoull(rq->last_event_id, NULL, 10);
    if (!t || !(rs->source = event_source_new(&source))) {
        free(t);
        return error_no_memory(err);
    }
    return ST_OK;
}

static const struct route routes[] = {
    {"GET", "/slow", ROLE_NONE, ROUTE_SLOW, "ms", NULL, NULL, "text/plain", "200", "", "", slow, "slow"},
    {"POST", "/echo", ROLE_NONE, 0, "", "OpenApi", "OpenApi", NULL, "200", "", "", echo, "echo"},
    {"GET", "/fail", ROLE_NONE, 0, "", NULL, NULL, "text/plain", "200", "", "", fail_inside, "fail"},
    {"GET", "/ticks", ROLE_NONE, ROUTE_STREAM, "", NULL, NULL, "text/event-stream", "200", "", "", ticks, "ticks"},
};

static int start(void **state, struct server_options options) {
    static struct site site;
    static int number;
    char name[32];
    snprintf(name, sizeof name, "server-%d", number++);
    site = (struct site){.service_options.open = true, .options = options};
    site.options.routes = routes;
    site.options.n_routes = sizeof routes / sizeof *routes;
    site.options.workers = options.workers ? options.workers : 3; /* of which one team may have two */
    atomic_store(&published, 0);
    atomic_store(&released, 0);
    atomic_store(&slow_most, 0);
    atomic_store(&hold, false);
    site_start(&site, name);
    *state = &site;
    return 0;
}

static int set_up(void **state) {
    return start(state, (struct server_options){.heartbeat_s = 0.3});
}

static int set_up_strict(void **state) {
    return start(state, (struct server_options){.headers_s = 0.5, .body_s = 0.5, .request_s = 1, .idle_s = 0.5});
}

static int set_up_small(void **state) {
    return start(state,
                 (struct server_options){.workers = 3, .queue = 4, .body_bytes = 1000, .connections_per_address = 12});
}

static int set_up_crowded(void **state) {
    return start(state, (struct server_options){.connections = 16, .threads = 1});
}

static int tear_down(void **state) {
    atomic_store(&hold, false);
    site_stop(*state);
    return 0;
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* Requests one after another. */

static void connections_are_kept_for_further_requests(void **state) {
    char text[8192];
    int fd = site_connect(*state);
    for (int i = 0; i < 3; i++) {
        assert_true(
            site_say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n"
                         "{\"a\":1}"));
        site_hear(fd, "{\"a\":1}", 5, text, sizeof text, NULL);
        assert_contains(text, "HTTP/1.1 200 ");
    }
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state) {
    char text[8192];
    int fd = site_connect(*state);
    site_say(
        fd, "GET /slow?ms=50 HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_int_equal(count(text, "HTTP/1.1 "), 2);
    assert_true(strstr(text, " 200 OK") && strstr(text, " 200 OK") < strstr(text, " 404 "));
    close(fd);
}

static void what_is_accepted_may_come_in_parts(void **state) {
    char text[8192];
    int fd = site_connect(*state);
    site_say(fd,
             "GET /slow?ms=1 HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, "HTTP/1.1 200 OK");
    close(fd);
}

static void chunked_bodies_arrive_whole(void **state) {
    char text[8192];
    int fd = site_connect(*state);
    site_say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
                 "Connection: close\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, "{\"a\":1}");
    close(fd);
}

static void head_is_get_without_the_body(void **state) {
    struct reply *r = site_ask(*state, "HEAD", "/slow", "", NULL);
    assert_int_equal(r->status, 200);
    assert_string_equal(reply_header(r, "Content-Length"), "4");
    assert_string_equal(r->body, "");
}

static void every_answer_carries_headers_that_keep_browsers_safe(void **state) {
    const char *paths[] = {"/slow", "/nothing", "/fail"};
    for (size_t i = 0; i < 3; i++) {
        struct reply *r = site_get(*state, paths[i]);
        assert_string_equal(reply_header(r, "X-Content-Type-Options"), "nosniff");
        assert_string_equal(reply_header(r, "Content-Security-Policy"), "default-src 'none'; frame-ancestors 'none'");
        assert_string_equal(reply_header(r, "Cache-Control"), "no-store");
        assert_int_equal(strlen(reply_header(r, "X-Request-Id")), REQUEST_ID_LENGTH);
    }
}

static void what_failed_inside_is_not_told_outside(void **state) {
    struct reply *r = site_get(*state, "/fail");
    assert_problem(r, 500, "internal");
    assert_null(strstr(r->body, "secret"));
}

/* What two readers could read differently. */

static void ambiguous_framing_is_refused_and_the_connection_closed(void **state) {
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 44\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0,0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \tchunked\x0b\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET /slow HTTP/1.1\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET /slow HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: x\r\n\r\n0\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: x\r\nContent-Length\v: 5\r\n\r\n12345",
        "GET /slow?a b HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[8192];
        bool closed;
        int fd = site_connect(*state);
        site_say(fd, heads[i]);
        site_say(fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
        site_hear(fd, NULL, 5, text, sizeof text, &closed);
        if (!closed || (!strstr(text, " 400 ") && !strstr(text, " 413 ")) ||
            strstr(text, " 404 ")) /* 404: the second was taken for a request */
            fail_msg("case %zu: %s\n-> closed %d: %s", i, heads[i], closed, text);
        close(fd);
    }
}

static struct reply *say_raw(const struct site *site, const char *bytes, size_t n) {
    static struct reply reply;
    int fd = site_connect(site);
    site_send(fd, bytes, n);
    site_hear(fd, NULL, 5, reply.text, sizeof reply.text, NULL);
    close(fd);
    site_parse(&reply);
    return &reply;
}

/* One header of n bytes. */
static struct reply *say_long(const struct site *site, size_t n) {
    static char text[32 << 10];
    const int head = snprintf(text, sizeof text, "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ");
    memset(text + head, 'a', n);
    memcpy(text + head + n, "\r\n\r\n", 4);
    return say_raw(site, text, (size_t)head + n + 4);
}

static void what_makes_no_request_is_told_as_a_problem(void **state) {
    static const char *const texts[] = {"GET /slow HTTP/1.1\r\n\r\n", "GET /slow HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n",
                                        "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "GET /slow HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_problem(say_raw(*state, texts[i], strlen(texts[i])), 400, "bad-framing");
    assert_int_equal(say_long(*state, 16000)->status, 200);
    assert_problem(say_long(*state, 16384), 431, "headers-too-large");
    assert_problem(say_long(*state, 25000), 431, "headers-too-large");
}

/* Bytes with NULs, or line ends that others read otherwise. Each is followed by a request that must not be taken for
 * one.
 */
static void what_the_library_would_pass_over_is_refused(void **state) {
#define BYTES(text)                                                                                                    \
    { text, sizeof text - 1 }
    static const struct {
        const char *text;
        size_t n;
    } heads[] = {
        BYTES("GET /slow HTTP/1.1\nHost: x\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\n\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\r\n\n"),
        BYTES("GET\0 /slow HTTP/1.1\r\nHost: x\r\n\r\n"),
        BYTES("GET /slow\0/x HTTP/1.1\r\nHost: x\r\n\r\n"),
        BYTES("GET /slow?ms=1\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\r\nX: y\0z\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\0\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\0\r\nX: y\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\rX: y\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\n\r\n"),
        BYTES("GET /slow HTTP/1.1\r\nHost: x\r\nX: \x1b[31m\r\n\r\n"),
    };
#undef BYTES
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[8192];
        bool closed;
        int fd = site_connect(*state);
        site_send(fd, heads[i].text, heads[i].n);
        site_say(fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
        site_hear(fd, NULL, 5, text, sizeof text, &closed);
        if (!closed || !strstr(text, "HTTP/1.1 400 ") || !strstr(text, "bad-framing") || strstr(text, " 404 "))
            fail_msg("case %zu -> closed %d: %s", i, closed, text);
        close(fd);
    }
}

static void what_is_unusual_and_clear_is_taken(void **state) {
    static const char *const texts[] = {
        "GET /slow?ms=1&ms=%31 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", /* 400 for the repetition alone */
        "GET /slow?ms=1 HTTP/1.1\r\nHost:x\r\nConnection:  close \t\r\nX:\r\nY: \r\nZ: a\tb\r\n\r\n",
        "GET /slow?ms=1 HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=d\r\nConnection: close\r\nAccept: \xc3\xa4\r\n\r\n",
        "GET /slow HTTP/1.0\r\n\r\n",
    };
    assert_problem(say_raw(*state, texts[0], strlen(texts[0])), 400, "bad-parameter");
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(say_raw(*state, texts[i], strlen(texts[i]))->status, 200);
}

static void head_of_a_stream_has_no_events(void **state) {
    atomic_store(&published, 3);
    struct reply *r = site_ask(*state, "HEAD", "/ticks", "", NULL);
    assert_int_equal(r->status, 200);
    assert_string_equal(reply_header(r, "Content-Type"), "text/event-stream");
    assert_string_equal(r->body, "");
    assert_int_equal(atomic_load(&released), 1);
}

/* A gauge without labels. */
static int gauge(const struct site *site, const char *name) {
    char *text = NULL, line[100];
    size_t n;
    int value = -1;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    metrics_write(server_metrics(site->server), to);
    fclose(to);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(text, line);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(line), "%d", &value), 1);
    free(text);
    return value;
}

static void wait_for_none(const struct site *site, const char *name) {
    for (int i = 0; i < 400 && gauge(site, name); i++)
        clock_sleep_us(5000);
    assert_int_equal(gauge(site, name), 0);
}

/* Ends with one line of `times` times `part`. */
static char *repeat(char *to, const char *head, const char *part, int times, const char *tail) {
    to += sprintf(to, "%s", head);
    while (times--)
        to += sprintf(to, "%s", part);
    return to + sprintf(to, "%s", tail);
}

/* Also of those that the library refuses by itself, at whatever place. */
static void what_was_refused_leaves_nothing_behind(void **state) {
    static char texts[12][70000];
    char heard[8192];
    int fds[12];
    size_t n = 0;
    repeat(texts[n++], "GET /slow?", "a=b&", 3000, " HTTP/1.1\r\nHost: x\r\n\r\n");
    repeat(texts[n++], "GET /slow?", "&", 30000, " HTTP/1.1\r\nHost: x\r\n\r\n");
    repeat(texts[n++], "GET /slow HTTP/1.1\r\nHost: x\r\n", "X: y\r\n", 3000, "\r\n");
    repeat(texts[n++], "GET /slow HTTP/1.1\r\nHost: x\r\nX: ", "y", 60000, "\r\n\r\n");
    repeat(texts[n++], "GET /", "y", 60000, " HTTP/1.1\r\n\r\n");
    repeat(texts[n++], "GET /slow HTTP/1.1\r\nHost: x\r\nCookie: ", "a=b; ", 5000, "\r\n\r\n");
    repeat(texts[n++], "GET /slow HTTP/9.9\r\nHost: x\r\n", "", 0, "\r\n");
    repeat(texts[n++], "GET /slow\r\n", "", 0, "\r\n");
    repeat(texts[n++], "GET /slow HTTP/1.1\r\nHost: x\r\nno colon\r\n", "", 0, "\r\n");
    repeat(texts[n++], "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n", "", 0, "\r\n");
    repeat(texts[n++], "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "", 0, "\r\n");
    repeat(texts[n++], "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n", "", 0,
           "\r\n");
    for (size_t i = 0; i < n; i++) {
        fds[i] = site_connect(*state);
        site_say(fds[i], texts[i]);
        site_hear(fds[i], "\r\n\r\n", 0.02, heard, sizeof heard, NULL);
    }
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    wait_for_none(*state, "syncopate_http_connections");
    wait_for_none(*state, "syncopate_http_requests_in_flight");
}

static void garbage_harms_nobody(void **state) {
    static const char *const texts[] = {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03",
                                        "GET\r\n\r\n",
                                        "GET / HTTP/9.9\r\n\r\n",
                                        "\r\n\r\n\r\n\r\n",
                                        "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "GET /\x80\xff HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
    char text[8192], many[40000];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int fd = site_connect(*state);
        site_say(fd, texts[i]);
        shutdown(fd, SHUT_WR);
        site_hear(fd, NULL, 5, text, sizeof text, NULL);
        assert_null(strstr(text, " 200 "));
        assert_null(strstr(text, " 500 "));
        close(fd);
    }
    memset(many, 'a', sizeof many);
    memcpy(many, "GET /", 5);
    int fd = site_connect(*state);
    site_send(fd, many, sizeof many);
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_null(strstr(text, " 200 "));
    close(fd);
    assert_int_equal(site_get(*state, "/slow")->status, 200);
}

static void clients_that_leave_early_leave_nothing_behind(void **state) {
    static const char *const parts[] = {
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\"",
        "GET /slow?ms=50 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n", "GET /slow", ""};
    for (size_t i = 0; i < 50; i++) {
        int fd = site_connect(*state);
        site_say(fd, parts[i % 5]);
        close(fd);
    }
    assert_int_equal(site_get(*state, "/slow")->status, 200);
}

/* Limits. */

static void who_says_nothing_leaves_soon_where_it_is_crowded(void **state) {
    enum { FEW = 8, MANY = 14 };
    int fds[MANY];
    char text[256];
    bool closed;
    for (int i = 0; i < FEW; i++)
        fds[i] = site_connect(*state);
    site_hear(fds[0], NULL, 1.5, text, sizeof text, &closed);
    assert_false(closed); /* there is room */
    for (int i = FEW; i < MANY; i++)
        fds[i] = site_connect(*state);
    site_hear(fds[0], NULL, 8, text, sizeof text, &closed); /* the usual deadline is 10 s, of which 1.5 are over */
    assert_true(closed);
    assert_int_equal(site_get(*state, "/slow")->status, 200);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

static void too_large_a_body_is_413_before_or_after_it_came(void **state) {
    char text[8192], body[4096];
    struct site *site = *state;
    memset(body, ' ', sizeof body);
    body[sizeof body - 1] = '\0';
    assert_problem(site_post(site, "/echo", body), 413, "too-large");
    int fd = site_connect(site);
    site_say(fd,
             "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, " 413 ");
    close(fd);
    fd = site_connect(site);
    site_say(fd,
             "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        site_say(fd, "400\r\n");
        site_send(fd, body, 1024);
        site_say(fd, "\r\n");
    }
    site_say(fd, "0\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, " 413 ");
    close(fd);
}

static void a_refused_body_is_not_asked_for(void **state) {
    char text[8192];
    int fd = site_connect(*state);
    site_say(fd, "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, " 404 ");
    assert_null(strstr(text, " 100 "));
    close(fd);
}

static void one_address_has_so_many_connections(void **state) {
    int fds[20], closed = 0;
    char text[64];
    for (size_t i = 0; i < 20; i++)
        fds[i] = site_connect(*state);
    for (size_t i = 0; i < 20; i++) {
        bool end;
        site_hear(fds[i], NULL, 0.05, text, sizeof text, &end);
        closed += end;
    }
    assert_int_equal(closed, 8);
    for (size_t i = 0; i < 20; i++)
        close(fds[i]);
}

/* Until `wanted` of the connections have something to read, for at most five seconds. */
static void wait_for_answers(size_t n, const int *fds, int wanted) {
    struct pollfd looks[8];
    for (size_t i = 0; i < n; i++)
        looks[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    for (int turn = 0; turn < 500 && poll(looks, n, 0) < wanted; turn++)
        clock_sleep_us(10000);
}

static void when_too_much_waits_the_rest_is_told_to_come_again(void **state) {
    int fds[6], good = 0, busy = 0;
    char text[8192];
    atomic_store(&hold, true);
    for (size_t i = 0; i < 6; i++) { /* one team has two of three threads and half of the queue; two are refused */
        fds[i] = site_connect(*state);
        site_say(fds[i], "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        if (i < 2)
            wait_until(&slow_now, (int)i + 1);
    }
    wait_for_answers(4, fds + 2, 2);
    atomic_store(&hold, false);
    for (size_t i = 0; i < 6; i++) {
        site_hear(fds[i], NULL, 5, text, sizeof text, NULL);
        busy += strstr(text, " 429 ") && strstr(text, "Retry-After: 1") && strstr(text, "\"rate-limited\"");
        good += strstr(text, " 200 ") != NULL;
    }
    for (size_t i = 0; i < 6; i++)
        close(fds[i]);
    assert_int_equal(good, 4);
    assert_int_equal(busy, 2);
}

static void slow_handlers_hold_up_nobody(void **state) {
    int fds[8];
    char text[8192];
    atomic_store(&hold, true);
    for (size_t i = 0; i < 8; i++) {
        fds[i] = site_connect(*state);
        site_say(fds[i], "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
    wait_until(&slow_now, 2);
    assert_int_equal(site_get(*state, "/nothing")->status, 404); /* while the workers are held */
    atomic_store(&hold, false);
    for (size_t i = 0; i < 8; i++) {
        site_hear(fds[i], NULL, 5, text, sizeof text, NULL);
        assert_contains(text, " 200 ");
        close(fds[i]);
    }
    assert_int_equal(atomic_load(&slow_most), 2);
}

/* Deadlines. */

struct drip {
    const char *begin;
    bool bytes; /* one every 100 ms after it */
    double least_s, most_s;
    int fd;
    double closed_s;
};

static void a_byte_now_and_then_does_not_hold_a_connection(void **state) {
    struct drip drips[] = {
        {"GET /slow HTTP/1.1\r\nHost: x\r\nA: ", true, 0.4, 2, -1, 0},
        {"", true, 0.4, 2, -1, 0},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n", true, 0.4, 2,
         -1, 0},
        {"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", false, 0.4, 2, -1, 0},
        {"GET /slow?ms=1500 HTTP/1.1\r\nHost: x\r\n\r\n", false, 0.9, 3, -1, 0},
    };
    enum { DRIPS = sizeof drips / sizeof *drips };
    const double start_us = clock_now_us();
    size_t open = DRIPS;
    for (size_t i = 0; i < DRIPS; i++) {
        drips[i].fd = site_connect(*state);
        site_say(drips[i].fd, drips[i].begin);
    }
    for (size_t round = 0; open && round < 100; round++) {
        for (size_t i = 0; i < DRIPS; i++) {
            char text[8192];
            bool closed = false;
            if (drips[i].closed_s > 0)
                continue;
            if (drips[i].bytes)
                site_say(drips[i].fd, "a");
            site_hear(drips[i].fd, NULL, 0.02, text, sizeof text, &closed);
            if (closed) {
                drips[i].closed_s = (clock_now_us() - start_us) * 1e-6;
                open--;
            }
        }
    }
    for (size_t i = 0; i < DRIPS; i++) {
        close(drips[i].fd);
        if (drips[i].closed_s < drips[i].least_s || drips[i].closed_s > drips[i].most_s)
            fail_msg("connection %zu was cut after %.2f s", i, drips[i].closed_s);
    }
}

/* Events. */

static int open_ticks(const struct site *site, const char *headers) {
    char text[256];
    int fd = site_connect(site);
    snprintf(text, sizeof text, "GET /ticks HTTP/1.1\r\nHost: x\r\n%s\r\n", headers);
    site_say(fd, text);
    return fd;
}

static void publish(const struct site *site, uint64_t upto);

static struct event_streams *hub_of_test;
static enum status keep_hub(struct request *rq, struct response *rs, struct error *err) {
    (void)err;
    hub_of_test = rq->events;
    response_bytes(rs, 200, "text/plain", "", 0);
    return ST_OK;
}

static const struct route with_hub[] = {
    {"GET", "/hub", ROLE_NONE, 0, "", NULL, NULL, "text/plain", "200", "", "", keep_hub, "hub"},
    {"GET", "/ticks", ROLE_NONE, ROUTE_STREAM, "", NULL, NULL, "text/event-stream", "200", "", "", ticks, "ticks"},
};

static int start_events(void **state, double heartbeat_s, unsigned per_address) {
    static struct site site;
    static int number;
    char name[32];
    snprintf(name, sizeof name, "events-%d", number++);
    site = (struct site){.service_options.open = true,
                         .options = {.heartbeat_s = heartbeat_s, .connections_per_address = per_address}};
    site.options.routes = with_hub;
    site.options.n_routes = 2;
    atomic_store(&published, 0);
    atomic_store(&released, 0);
    site_start(&site, name);
    site_get(&site, "/hub");
    *state = &site;
    return 0;
}

static int set_up_events(void **state) {
    return start_events(state, 0.3, 0);
}

static int set_up_few_quiet_events(void **state) {
    return start_events(state, 1000, 4);
}

static void publish(const struct site *site, uint64_t upto) {
    (void)site;
    atomic_store(&published, upto);
    events_publish(hub_of_test, "ticks");
}

static void events_arrive_when_they_are_published(void **state) {
    char text[8192];
    int fd = open_ticks(*state, "");
    site_hear(fd, "\r\n\r\n", 5, text, sizeof text, NULL);
    assert_contains(text, "Content-Type: text/event-stream");
    for (uint64_t i = 1; i <= 5; i++) {
        char part[64];
        publish(*state, i);
        snprintf(part, sizeof part, "id: %llu\nevent: tick\ndata: {\"n\":%llu}\n\n", (unsigned long long)i,
                 (unsigned long long)i);
        site_hear(fd, part, 5, text, sizeof text, NULL);
        assert_contains(text, part);
    }
    close(fd);
}

static void who_comes_again_gets_what_was_missed(void **state) {
    char text[8192];
    publish(*state, 5);
    int fd = open_ticks(*state, "Last-Event-ID: 3\r\n");
    site_hear(fd, "id: 5\n", 5, text, sizeof text, NULL);
    assert_contains(text, "id: 4\n");
    assert_null(strstr(text, "id: 3\n"));
    close(fd);
}

static void a_quiet_stream_has_a_heartbeat(void **state) {
    char text[8192];
    int fd = open_ticks(*state, "");
    site_hear(fd, ":\n\n", 5, text, sizeof text, NULL);
    assert_contains(text, ":\n\n");
    close(fd);
}

static void a_stream_whose_reader_left_is_let_go(void **state) {
    char text[8192];
    int fd = open_ticks(*state, "");
    site_hear(fd, "\r\n\r\n", 5, text, sizeof text, NULL);
    close(fd);
    wait_until(&released, 1);
    assert_int_equal(atomic_load(&released), 1);
}

/* With 4 connections allowed and no heartbeat, each of these finds the one before gone. */
static void a_client_that_reconnects_often_is_never_refused(void **state) {
    enum { TIMES = 24 };
    char text[8192];
    for (int i = 0; i < TIMES; i++) {
        int fd = open_ticks(*state, ""), more = i % 2 ? open_ticks(*state, "") : -1;
        if (i % 3 == 0)
            site_say(fd, "GET /hub HTTP/1.1\r\nHost: x\r\n\r\n"); /* which nobody reads */
        site_hear(fd, "\r\n\r\n", 5, text, sizeof text, NULL);
        if (!strstr(text, " 200 "))
            fail_msg("stream %d: \"%s\"", i, text);
        close(fd);
        if (more >= 0)
            close(more);
        clock_sleep_us(20000);
    }
    const double start = clock_now_us();
    wait_until(&released, TIMES + TIMES / 2);
    assert_int_equal(atomic_load(&released), TIMES + TIMES / 2);
    assert_true(clock_now_us() - start < 2e6);
}

static void a_stream_ends_when_its_source_does(void **state) {
    char text[16384];
    bool closed = false;
    int fd = open_ticks(*state, "Connection: close\r\n");
    publish(*state, 100);
    site_hear(fd, NULL, 5, text, sizeof text, &closed);
    assert_true(closed);
    assert_contains(text, "id: 100\n");
    assert_contains(text, "\r\n0\r\n"); /* the last chunk: it was not cut */
    close(fd);
}

static void many_streams_hear_of_one_event(void **state) {
    enum { STREAMS = 40 };
    int fds[STREAMS];
    char text[8192];
    for (size_t i = 0; i < STREAMS; i++)
        fds[i] = open_ticks(*state, "");
    publish(*state, 1);
    for (size_t i = 0; i < STREAMS; i++) {
        site_hear(fds[i], "id: 1\n", 5, text, sizeof text, NULL);
        assert_contains(text, "id: 1\n");
        close(fds[i]);
    }
}

/* Stopping. */

static void *stop_server(void *context) {
    server_drain(context);
    return NULL;
}

static void what_runs_ends_well_when_the_service_is_told_to_stop(void **state) {
    char text[8192];
    struct site *site = *state;
    pthread_t thread;
    int slow_one = site_connect(site), stream = open_ticks(site, "");
    site_say(slow_one, "GET /slow?ms=300 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(&slow_now, 1);
    site_hear(stream, "\r\n\r\n", 5, text, sizeof text, NULL);
    assert_int_equal(pthread_create(&thread, NULL, stop_server, site->server), 0);
    pthread_join(thread, NULL);
    assert_problem(site_get(site, "/slow"), 503, "draining");
    site_hear(stream, "0\r\n\r\n", 5, text, sizeof text, NULL);
    assert_contains(text, "0\r\n");
    site_hear(slow_one, "slow", 5, text, sizeof text, NULL);
    assert_contains(text, " 200 ");
    close(slow_one);
    close(stream);
}

static void stopping_with_sleeping_connections_is_clean(void **state) {
    struct site *site = *state;
    int fds[20];
    for (size_t i = 0; i < 20; i++) {
        fds[i] = i % 2 ? open_ticks(site, "") : site_connect(site);
        if (i % 2 == 0)
            site_say(fds[i], "GET /slow?ms=20 HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    site_stop(site);
    for (size_t i = 0; i < 20; i++)
        close(fds[i]);
    site->service_options.open = true;
    site_start(site, "server-again");
}

static void a_second_server_on_the_port_is_refused_with_a_reason(void **state) {
    struct error err;
    struct site *site = *state;
    struct server *other;
    struct server_options options = {.port = site_port(site)};
    assert_fails(http_start(&options, site->service, &other, &err), ST_ENVIRONMENT, "in use");
    options = (struct server_options){.host = "not-an-address"};
    assert_fails(http_start(&options, site->service, &other, &err), ST_USAGE, "no address");
    options = (struct server_options){.certificate = "/dev/null"};
    assert_fails(http_start(&options, site->service, &other, &err), ST_USAGE, "both");
    options = (struct server_options){.certificate = "/dev/null", .key = "/dev/null"};
    assert_fails(http_start(&options, site->service, &other, &err), ST_INVALID, "PEM");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(connections_are_kept_for_further_requests),
        TEST(pipelined_requests_are_answered_in_order),
        TEST(what_is_accepted_may_come_in_parts),
        TEST(chunked_bodies_arrive_whole),
        TEST(head_is_get_without_the_body),
        TEST(every_answer_carries_headers_that_keep_browsers_safe),
        TEST(what_failed_inside_is_not_told_outside),
        TEST(ambiguous_framing_is_refused_and_the_connection_closed),
        TEST(what_makes_no_request_is_told_as_a_problem),
        TEST(what_was_refused_leaves_nothing_behind),
        TEST(garbage_harms_nobody),
        TEST(clients_that_leave_early_leave_nothing_behind),
        TEST(slow_handlers_hold_up_nobody),
        TEST(what_runs_ends_well_when_the_service_is_told_to_stop),
        TEST(stopping_with_sleeping_connections_is_clean),
        TEST(a_second_server_on_the_port_is_refused_with_a_reason),
        cmocka_unit_test_setup_teardown(what_the_library_would_pass_over_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_unusual_and_clear_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(head_of_a_stream_has_no_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_byte_now_and_then_does_not_hold_a_connection, set_up_strict, tear_down),
        cmocka_unit_test_setup_teardown(who_says_nothing_leaves_soon_where_it_is_crowded, set_up_crowded, tear_down),
        cmocka_unit_test_setup_teardown(too_large_a_body_is_413_before_or_after_it_came, set_up_small, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_body_is_not_asked_for, set_up_small, tear_down),
        cmocka_unit_test_setup_teardown(one_address_has_so_many_connections, set_up_small, tear_down),
        cmocka_unit_test_setup_teardown(when_too_much_waits_the_rest_is_told_to_come_again, set_up_small, tear_down),
        cmocka_unit_test_setup_teardown(events_arrive_when_they_are_published, set_up_events, tear_down),
        cmocka_unit_test_setup_teardown(who_comes_again_gets_what_was_missed, set_up_events, tear_down),
        cmocka_unit_test_setup_teardown(a_quiet_stream_has_a_heartbeat, set_up_events, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_reconnects_often_is_never_refused, set_up_few_quiet_events,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stream_whose_reader_left_is_let_go, set_up_few_quiet_events, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_ends_when_its_source_does, set_up_events, tear_down),
        cmocka_unit_test_setup_teardown(many_streams_hear_of_one_event, set_up_events, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
