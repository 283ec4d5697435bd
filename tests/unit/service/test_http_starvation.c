/* What the most expensive requests cost others: nothing that they would notice. Times are bounded generously, for slow
 * machines; that an answer comes at all, and which, is exact. */
#include <math.h>
#include <pthread.h>

#include "service/hub.h"
#include "tests/unit/service/http_site.h"

enum { VARIABLES = 250, NODES = 64, LIST = 200 };

static struct site site;
static char greedy[128], other[128]; /* headers with their tokens */

static void make_token(const char *team, char header[128]) {
    char secret[TOKEN_LENGTH + 1];
    struct token wanted = {.principal = {.role = ROLE_RUN}};
    snprintf(wanted.name, sizeof wanted.name, "%s", team);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    site_token(&site, &wanted, secret);
    snprintf(header, 128, "Authorization: Bearer %s\r\n", secret);
}

static int start(struct server_options options) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "starvation-%d", number++);
    site = (struct site){.options = options, .service_options.session_idle_us = 0.3e6};
    site_place(&site, name);
    make_token("greedy", greedy);
    make_token("other", other);
    site_start(&site, name);
    return 0;
}

static int set_up(void **state) {
    (void)state;
    return start((struct server_options){.workers = 2, .computers = 2, .compute_s = 1});
}

static int set_up_short(void **state) {
    (void)state;
    return start((struct server_options){.workers = 2, .computers = 2, .compute_s = 0.05});
}

/* A team's half of what bodies and answers may hold is 512 KiB. */
static int set_up_narrow(void **state) {
    (void)state;
    return start((struct server_options){
        .workers = 2, .computers = 2, .compute_s = 20, .memory_bytes = 4 << 20, .work_bytes = 256 << 20});
}

/* Uploads may have 2000 bytes, those of a team together as much. */
static int set_up_uploads(void **state) {
    (void)state;
    return start((struct server_options){.workers = 2, .computers = 2, .compute_s = 20, .upload_bytes = 2000});
}

static int set_up_patient(void **state) {
    (void)state;
    return start((struct server_options){.workers = 2, .computers = 2, .compute_s = 300});
}

static int tear_down(void **state) {
    (void)state;
    if (site.server)
        site_stop(&site);
    return 0;
}

static void write_model(FILE *to) {
    fputs("{\"schema\":\"syncopate.model/1\",\"name\":\"wide\",\"batch_per_device\":8,\"variables\":[", to);
    for (int i = 0; i < VARIABLES; i++)
        fprintf(to, "%s{\"name\":\"v%d\",\"shape\":[1024,256],\"dtype\":\"f32\"}", i ? "," : "", i);
    fputs("],\"layers\":[", to);
    for (int i = 0; i < VARIABLES; i++)
        fprintf(to, "%s{\"name\":\"l%d\",\"forward_us\":200,\"backward_us\":400,\"variables\":[\"v%d\"]}", i ? "," : "",
                i, i);
    fputs("]}", to);
}

static void write_cluster(FILE *to, size_t nodes) {
    fprintf(to,
            "{\"schema\":\"syncopate.cluster/1\",\"name\":\"many\",\"nodes\":[{\"name\":\"n\",\"count\":%zu,"
            "\"nic_gbit_per_s\":10,\"nic_latency_us\":20}]}",
            nodes);
}

/* `list` times the baseline for a model of VARIABLES variables on `nodes` nodes. */
static char *costly(const char *baseline, size_t list, size_t nodes) {
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    fputs("{\"model\":", to);
    write_model(to);
    fputs(",\"cluster\":", to);
    write_cluster(to, nodes);
    fputs(",\"baselines\":[", to);
    for (size_t i = 0; i < list; i++)
        fprintf(to, "%s\"%s\"", i ? "," : "", baseline);
    fputs("]}", to);
    fclose(to);
    return text;
}

/* A connection on which a request was sent. */
static int send_post(const char *path, const char *who, const char *body) {
    char head[1024];
    int fd = site_connect(&site);
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n",
             path, who, strlen(body));
    site_say(fd, head);
    site_say(fd, body);
    return fd;
}

static struct reply *hear_reply(int fd) {
    static struct reply reply;
    site_hear(fd, NULL, 60, reply.text, sizeof reply.text, NULL);
    close(fd);
    site_parse(&reply);
    return &reply;
}

/* A session on a model that is dear to think about: its path. */
static void open_costly_session(size_t nodes, char path[160]) {
    char *model = NULL, *cluster = NULL;
    size_t n;
    FILE *to = open_memstream(&model, &n);
    write_model(to);
    fclose(to);
    to = open_memstream(&cluster, &n);
    write_cluster(to, nodes);
    fclose(to);
    cJSON_Delete(reply_json(hear_reply(send_post("/api/v1/models", greedy, model)), 201));
    cJSON_Delete(reply_json(site_ask(&site, "POST", "/api/v1/clusters", greedy, cluster), 201));
    cJSON *json =
        reply_json(hear_reply(send_post("/api/v1/sessions", greedy,
                                        "{\"model\":\"wide\",\"cluster\":\"many\",\"budget\":{\"trials\":40}}")),
                   201);
    snprintf(path, 160, "%s", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "href")));
    cJSON_Delete(json);
    free(model);
    free(cluster);
}

/* The longest that the other team waits for its records and its sessions while it asks for `seconds`. */
static double longest_wait_s(double seconds) {
    const double until = clock_now_us() + seconds * 1e6;
    double longest = 0;
    while (clock_now_us() < until) {
        const double before = clock_now_us();
        assert_int_equal(site_ask(&site, "GET", "/api/v1/records", other, NULL)->status, 200);
        assert_int_equal(site_ask(&site, "GET", "/api/v1/sessions", other, NULL)->status, 200);
        longest = fmax(longest, (clock_now_us() - before) / 1e6);
        clock_sleep_us(20e3);
    }
    return longest;
}

/* A gauge of /metrics. */
static double gauge(const char *name) {
    struct reply *reply = site_ask(&site, "GET", "/metrics", other, NULL);
    char line[128];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(reply->body, line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

static void wait_for_one_in_flight(double seconds) {
    const double until = clock_now_us() + seconds * 1e6;
    while (gauge("syncopate_http_requests_in_flight") > 1 && clock_now_us() < until)
        clock_sleep_us(20e3);
    assert_true(gauge("syncopate_http_requests_in_flight") <= 1); /* which asks */
}

static void predictions_beyond_their_time_are_refused_with_what_would_fit(void **state) {
    (void)state;
    char *body = costly("byteps", LIST, NODES);
    const int fd = send_post("/api/v1/predictions", greedy, body);
    struct reply *reply = hear_reply(fd);
    assert_problem(reply, 413, "too-large");
    assert_contains(reply->body, "would fit");
    free(body);
}

/* Each computes for a second. Those in the middle leave; the last is answered all the same. */
static void one_team_s_predictions_hold_up_nobody(void **state) {
    (void)state;
    enum { AT_ONCE = 12, STAY = 4 };
    int fds[AT_ONCE];
    char *body = costly("byteps", LIST, NODES);
    for (int i = 0; i < AT_ONCE; i++)
        fds[i] = send_post("/api/v1/predictions", greedy, body);
    assert_true(longest_wait_s(3) < 5);
    for (int i = 0; i < STAY; i++)
        assert_int_equal(hear_reply(fds[i])->status, 413);
    for (int i = STAY; i < AT_ONCE - 1; i++)
        close(fds[i]);
    assert_int_equal(hear_reply(fds[AT_ONCE - 1])->status, 413);
    free(body);
}

static void work_ends_when_its_client_leaves(void **state) {
    (void)state;
    char *body = costly("byteps", LIST, NODES);
    int fds[4];
    for (int i = 0; i < 4; i++)
        fds[i] = send_post("/api/v1/predictions", greedy, body);
    clock_sleep_us(300e3);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    wait_for_one_in_flight(20);
    free(body);
}

static void stopping_ends_work(void **state) {
    (void)state;
    char *body = costly("byteps", LIST, NODES);
    int fds[4];
    for (int i = 0; i < 4; i++)
        fds[i] = send_post("/api/v1/predictions", greedy, body);
    clock_sleep_us(300e3);
    const double before = clock_now_us();
    server_stop(site.server, 0.2);
    service_close(site.service);
    site.server = NULL;
    assert_true(clock_now_us() - before < 20e6); /* all of them would take hours */
    for (int i = 0; i < 4; i++)
        assert_problem(hear_reply(fds[i]), 503, "draining");
    free(body);
}

static void a_prediction_that_needs_too_much_memory_is_told_so(void **state) {
    (void)state;
    char *body = costly("p3", 1, 4000);
    struct reply *reply = hear_reply(send_post("/api/v1/predictions", greedy, body));
    cJSON *json = reply_json(reply, 200);
    const cJSON *failure = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "failures"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(failure, "code")), "too-large");
    assert_contains(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(failure, "detail")), "MiB of memory");
    cJSON_Delete(json);
    free(body);
}

/* ---- sessions ---- */

static double wait_for_sessions_in_memory(double wanted) {
    for (int i = 0; i < 400 && fabs(gauge("syncopate_sessions_in_memory") - wanted) > 0.5; i++)
        clock_sleep_us(25e3);
    return gauge("syncopate_sessions_in_memory");
}

static void open_session(char id[64]) {
    cJSON_Delete(reply_json(site_ask(&site, "POST", "/api/v1/models", greedy, SITE_MODEL), 201));
    cJSON_Delete(reply_json(site_ask(&site, "POST", "/api/v1/clusters", greedy, SITE_CLUSTER), 201));
    cJSON *json = reply_json(site_ask(&site, "POST", "/api/v1/sessions", greedy,
                                      "{\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":40}}"),
                             201);
    snprintf(id, 64, "%s", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id")));
    cJSON_Delete(json);
}

static void a_session_that_is_busy_holds_up_nobody_and_all_who_waited_are_answered(void **state) {
    (void)state;
    enum { AT_ONCE = 16 };
    struct hub_session *live;
    struct error err = {0};
    char id[64], path[160], body[64];
    int fds[AT_ONCE];
    open_session(id);
    assert_ok(hub_find(site.service->hub, id, &live, &err));
    hub_lock(live); /* as one does that makes a suggestion */
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", id);
    for (int i = 0; i < AT_ONCE; i++) {
        snprintf(body, sizeof body, "{\"client\":\"c%d\"}", i);
        fds[i] = send_post(path, greedy, body);
    }
    assert_true(longest_wait_s(0.5) < 5);
    hub_unlock(live);
    hub_drop(live);
    for (int i = 0; i < AT_ONCE; i++) {
        cJSON *json = reply_json(hear_reply(fds[i]), 200);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "trials")), 1);
        cJSON_Delete(json);
    }
}

static void who_waits_and_leaves_takes_no_turn_from_others(void **state) {
    (void)state;
    enum { GONE = 10 };
    struct hub_session *live;
    struct error err = {0};
    char id[64], path[160];
    int fds[GONE];
    open_session(id);
    assert_ok(hub_find(site.service->hub, id, &live, &err));
    hub_lock(live);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", id);
    for (int i = 0; i < GONE; i++)
        fds[i] = send_post(path, greedy, "{\"client\":\"gone\"}");
    clock_sleep_us(300e3);
    const int alive = send_post(path, greedy, "{\"client\":\"alive\"}");
    for (int i = 0; i < GONE; i++)
        close(fds[i]);
    clock_sleep_us(1e6); /* the watchman looks four times a second */
    hub_unlock(live);    /* nothing else calls anybody: hub_start was not called */
    hub_drop(live);
    cJSON_Delete(reply_json(hear_reply(alive), 200));
}

static void a_reader_wakes_no_session_so_its_limits_spoil_none(void **state) {
    (void)state;
    char path[160], best[200], suggest[200];
    struct error err = {0};
    assert_ok(hub_start(site.service->hub, &err));
    open_costly_session(6, path);
    assert_close(wait_for_sessions_in_memory(0), 0, 0);
    snprintf(best, sizeof best, "%s/best", path);
    assert_problem(site_ask(&site, "GET", best, other, NULL), 404, "not-found"); /* no trial has completed */
    assert_close(gauge("syncopate_sessions_in_memory"), 0, 0);
    snprintf(suggest, sizeof suggest, "%s/trials:suggest", path);
    cJSON_Delete(reply_json(hear_reply(send_post(suggest, greedy, "{\"client\":\"c\"}")), 200));
    assert_problem(site_ask(&site, "GET", best, other, NULL), 404, "not-found");
}

static void what_was_changed_is_told_however_much_memory_is_held(void **state) {
    (void)state;
    enum { HELD = 400 << 10 };
    char path[160], suggest[200], head[512];
    static char piece[HELD];
    open_costly_session(4, path);
    int fd = site_connect(&site);
    snprintf(
        head, sizeof head,
        "POST /api/v1/models HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
        greedy, HELD + 1000);
    site_say(fd, head);
    memset(piece, ' ', sizeof piece);
    site_send(fd, piece, sizeof piece);
    for (int i = 0; i < 2000 && server_memory_held(site.server) < HELD; i++)
        clock_sleep_us(1000);
    assert_true(server_memory_held(site.server) >= HELD);
    snprintf(suggest, sizeof suggest, "%s/trials:suggest", path);
#ifdef NDEBUG
    struct reply *reply = hear_reply(send_post(suggest, greedy, "{\"client\":\"c\",\"count\":6}"));
    assert_true(strlen(reply->body) > 64 << 10);
#else /* slower builds would not have six ready in time */
    struct reply *reply = hear_reply(send_post(suggest, greedy, "{\"client\":\"c\",\"count\":1}"));
#endif
    cJSON_Delete(reply_json(reply, 200));
    close(fd);
}

static void who_waits_for_a_session_and_leaves_takes_no_trial(void **state) {
    (void)state;
    struct hub_session *live;
    struct error err = {0};
    char id[64], path[160];
    open_session(id);
    assert_ok(hub_find(site.service->hub, id, &live, &err));
    hub_lock(live);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", id);
    const int fd = send_post(path, greedy, "{\"client\":\"gone\"}");
    clock_sleep_us(200e3);
    close(fd);
    clock_sleep_us(1e6); /* the watchman looks four times a second */
    hub_unlock(live);
    hub_drop(live);
    wait_for_one_in_flight(20);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials", id);
    cJSON *json = reply_json(site_ask(&site, "GET", path, greedy, NULL), 200);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items")), 0);
    cJSON_Delete(json);
}

static void sessions_that_nobody_uses_leave_the_memory_and_come_back(void **state) {
    (void)state;
    char first[64], id[64], path[160];
    struct error err = {0};
    assert_ok(hub_start(site.service->hub, &err));
    open_session(first);
    for (int i = 0; i < 3; i++) { /* cancelled ones, and running ones of which no trial is out */
        cJSON *json = reply_json(site_ask(&site, "POST", "/api/v1/sessions", greedy,
                                          "{\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":40}}"),
                                 201);
        snprintf(id, sizeof id, "%s", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id")));
        cJSON_Delete(json);
        snprintf(path, sizeof path, "/api/v1/sessions/%s:cancel", id);
        if (i)
            assert_int_equal(site_ask(&site, "POST", path, greedy, NULL)->status, 200);
    }
    assert_close(wait_for_sessions_in_memory(0), 0, 0);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", first);
    assert_int_equal(site_ask(&site, "POST", path, greedy, "{\"client\":\"c\"}")->status, 200);
    clock_sleep_us(1e6);
    assert_close(wait_for_sessions_in_memory(1), 1, 0); /* its trial is out */
    snprintf(path, sizeof path, "/api/v1/sessions/%s:cancel", first);
    assert_int_equal(site_ask(&site, "POST", path, greedy, NULL)->status, 200);
    assert_close(wait_for_sessions_in_memory(0), 0, 0);
}

/* ---- memory ---- */

static void a_form_is_small_and_nobody_buffers_more(void **state) {
    (void)state;
    char text[8192];
    bool closed;
    int fd = site_connect(&site);
    site_say(
        fd,
        "POST /sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 16777216\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, &closed);
    close(fd);
    assert_contains(text, "HTTP/1.1 413 ");
    assert_true(closed);
    fd = site_connect(&site);
    site_say(
        fd,
        "POST /sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2000\r\n");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    site_say(fd, text);
    site_say(fd, "x\r\n0\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    close(fd);
    assert_contains(text, "HTTP/1.1 413 ");
}

static void small_requests_have_small_bodies(void **state) {
    (void)state;
    static char body[80 << 10];
    snprintf(body, sizeof body, "{\"client\":\"%*s\"}", (70 << 10), "x");
    assert_problem(site_ask(&site, "POST", "/api/v1/sessions/none/trials:suggest", greedy, body), 413, "too-large");
}

static void many_tiny_values_are_counted_as_what_they_become(void **state) {
    (void)state;
    const size_t n = 15 << 20;
    char *body = malloc(n + 1);
    memset(body, '0', n);
    for (size_t i = 1; i < n; i += 2)
        body[i] = ',';
    body[0] = '[';
    body[n - 1] = ']';
    body[n] = '\0';
    struct reply *reply = hear_reply(send_post("/api/v1/predictions", greedy, body));
    assert_problem(reply, 413, "too-large");
    assert_contains(reply->body, "MiB would fit");
    for (int i = 0; i < 5000 && server_memory_held(site.server); i++)
        clock_sleep_us(1000);
    assert_int_equal(server_memory_held(site.server), 0);
    free(body);
}

/* ---- uploads ---- */

enum { UPLOAD_ROOM = 4096, PADDED = 1200 };

/* A trace, padded to `padded` bytes. */
static void write_upload(int padded, char out[UPLOAD_ROOM]) {
    snprintf(out, UPLOAD_ROOM,
             "--b\r\nContent-Disposition: form-data; name=\"trace\"; filename=\"r\"\r\n\r\n%*s\r\n--b--\r\n", padded,
             "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":1,\"dur\":9}]");
}

static struct reply *upload(const char *who, int padded) {
    char headers[256], body[UPLOAD_ROOM];
    snprintf(headers, sizeof headers, "%sContent-Type: multipart/form-data; boundary=b\r\n", who);
    write_upload(padded, body);
    return site_ask(&site, "POST", "/api/v1/explanations", headers, body);
}

/* The server, which is in this process, has the file of an upload open. */
static bool upload_is_open(void) {
    char entry[32], path[512];
    for (int fd = 3; fd < 256; fd++) {
        snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(entry, path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
        const char *name = strrchr(path, '/');
        if (name && !strncmp(name, "/syncopate-", 11) && strstr(name, " (deleted)"))
            return true;
    }
    return false;
}

/* One upload of the greedy team lacks its last byte: there is no room for a second one, but for the other team's. */
static void one_team_s_uploads_leave_room_for_those_of_others(void **state) {
    (void)state;
    char head[512], body[UPLOAD_ROOM];
    int fd = site_connect(&site);
    write_upload(PADDED, body);
    snprintf(head, sizeof head,
             "POST /api/v1/explanations HTTP/1.1\r\nHost: x\r\n%sContent-Type: multipart/form-data; boundary=b\r\n"
             "Content-Length: %zu\r\n\r\n",
             greedy, strlen(body));
    site_say(fd, head);
    site_send(fd, body, strlen(body) - 1);
    for (int i = 0; i < 400 && !upload_is_open(); i++)
        clock_sleep_us(25e3);
    struct reply *reply = upload(greedy, PADDED);
    assert_problem(reply, 503, "overloaded");
    assert_contains(reply->body, "uploads take too much of the disk now");
    assert_int_equal(upload(other, PADDED)->status, 200);
    close(fd);
    reply = upload(greedy, PADDED);
    for (int i = 0; i < 200 && reply->status == 503; i++) {
        clock_sleep_us(25e3);
        reply = upload(greedy, PADDED);
    }
    assert_int_equal(reply->status, 200);
    assert_problem(upload(greedy, 2000), 413, "too-large");
}

int main(void) {
#define TEST(name, up) cmocka_unit_test_setup_teardown(name, up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(predictions_beyond_their_time_are_refused_with_what_would_fit, set_up),
        TEST(one_team_s_predictions_hold_up_nobody, set_up),
        TEST(work_ends_when_its_client_leaves, set_up_patient),
        TEST(stopping_ends_work, set_up_patient),
        TEST(a_prediction_that_needs_too_much_memory_is_told_so, set_up_patient),
        TEST(a_session_that_is_busy_holds_up_nobody_and_all_who_waited_are_answered, set_up),
        TEST(who_waits_for_a_session_and_leaves_takes_no_trial, set_up),
        TEST(who_waits_and_leaves_takes_no_turn_from_others, set_up),
        TEST(a_reader_wakes_no_session_so_its_limits_spoil_none, set_up_short),
        TEST(what_was_changed_is_told_however_much_memory_is_held, set_up_narrow),
        TEST(sessions_that_nobody_uses_leave_the_memory_and_come_back, set_up),
        TEST(a_form_is_small_and_nobody_buffers_more, set_up),
        TEST(small_requests_have_small_bodies, set_up),
        TEST(many_tiny_values_are_counted_as_what_they_become, set_up),
        TEST(one_team_s_uploads_leave_room_for_those_of_others, set_up_uploads),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
