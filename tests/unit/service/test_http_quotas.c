/* What a team may leave in the dataset: repetitions leave nothing, open sessions, rows and bytes have a bound, and what
 * is old is forgotten as the administrator says, and said to be. */

#include "dataset/events.h"
#include "dataset/sql_internal.h"
#include "tests/unit/service/http_site.h"

static struct site site;
static char admin[TOKEN_LENGTH + 1], red[TOKEN_LENGTH + 1], blue[TOKEN_LENGTH + 1];

static struct reply *ask_with(const char *token, const char *method, const char *path, const char *more,
                              const char *body) {
    char headers[400];
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n%s", token, more);
    return site_ask(&site, method, path, headers, body);
}

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    return ask_with(token, method, path, "", body);
}

static void make_token(const char *name, const char *team, enum role role, char *secret) {
    struct token wanted = {.principal = {.role = role}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    site_token(&site, &wanted, secret);
}

static void start(struct service_options options) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "quotas-%d", number++);
    site = (struct site){.service_options = options};
    site_place(&site, name);
    make_token("admin", "core", ROLE_ADMIN, admin);
    make_token("red", "red", ROLE_RUN, red);
    make_token("blue", "blue", ROLE_RUN, blue);
    site_start(&site, name);
    assert_int_equal(ask_as(admin, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(ask_as(admin, "POST", "/api/v1/clusters", SITE_CLUSTER)->status, 201);
}

/* The first column of the first row. */
static int64_t count(const char *sql) {
    struct error err;
    struct store *store;
    int64_t n;
    assert_ok(store_open(site.dataset, STORE_READ_ONLY, &store, &err));
    assert_ok(sql_first_integer(store, sql, 0, NULL, &n, &err));
    store_close(store);
    return n;
}

static void a_repetition_that_changes_nothing_leaves_nothing(void **state) {
    (void)state;
    start((struct service_options){0});
    assert_int_equal(ask_as(red, "POST", "/api/v1/models", SITE_MODEL)->status, 200); /* red holds it from now on */
    const int64_t audits = count("SELECT count(*) FROM audit");
    for (int i = 0; i < 50; i++) {
        char key[64];
        snprintf(key, sizeof key, "Idempotency-Key: key-%d\r\n", i);
        assert_int_equal(ask_with(red, "POST", "/api/v1/models", key, SITE_MODEL)->status, 200);
    }
    assert_int_equal(count("SELECT count(*) FROM audit"), audits);
    assert_int_equal(count("SELECT count(*) FROM idempotency"), 0);
    site_stop(&site);
}

static struct reply *open_session(const char *token) {
    return ask_as(token, "POST", "/api/v1/sessions",
                  "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":20}}");
}

static void a_team_has_so_many_sessions_open(void **state) {
    (void)state;
    char path[200];
    start((struct service_options){.limits.sessions = 2});
    cJSON *json = reply_json(open_session(red), 201);
    snprintf(path, sizeof path, "%s:cancel", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    assert_int_equal(open_session(red)->status, 201);
    struct reply *reply = open_session(red);
    assert_problem(reply, 429, "quota-exceeded");
    assert_contains(reply->head, "Retry-After: 60");
    assert_int_equal(count("SELECT count(*) FROM sessions"), 2);
    assert_int_equal(open_session(blue)->status, 201);
    assert_int_equal(ask_as(red, "POST", path, NULL)->status, 200);
    assert_int_equal(open_session(red)->status, 201);
    assert_problem(open_session(red), 429, "quota-exceeded");
    site_stop(&site);
}

/* Models of another name until one is refused; how many were taken. */
static int put_until_refused(const char *token, size_t blanks) {
    static char body[1 << 16];
    for (int i = 0; i < 2000; i++) {
        snprintf(body, sizeof body,
                 "{\"schema\":\"syncopate.model/1\",\"name\":\"m%d\",\"batch_per_device\":8,\"variables\":["
                 "{\"name\":\"%0*d\",\"shape\":[64,64],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l1\","
                 "\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"%0*d\"]}]}",
                 i, (int)blanks, i, (int)blanks, i);
        struct reply *reply = ask_as(token, "POST", "/api/v1/models", body);
        if (reply->status == 201)
            continue;
        assert_problem(reply, 429, "quota-exceeded");
        assert_contains(reply->head, "Retry-After: 3600");
        return i;
    }
    return -1;
}

static void a_team_writes_so_many_rows_and_may_still_end_what_it_began(void **state) {
    (void)state;
    char session[128], path[200], body[160];
    start((struct service_options){.limits.rows = 200});
    cJSON *json = reply_json(open_session(red), 201);
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    json = reply_json(ask_as(red, "POST", path, "{\"client\":\"c\"}"), 200);
    cJSON_Delete(json);
    const int taken = put_until_refused(red, 4);
    assert_in_range(taken, 10, 100);
    assert_problem(ask_as(red, "POST", path, "{\"client\":\"c\"}"), 429, "quota-exceeded");
    snprintf(path, sizeof path, "%s/trials/1:complete", session);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[9,9,9]}");
    assert_int_equal(ask_as(red, "POST", path, body)->status, 200);
    snprintf(path, sizeof path, "%s:cancel", session);
    assert_int_equal(ask_as(red, "POST", path, NULL)->status, 200);
    assert_int_equal(open_session(blue)->status, 201);
    assert_int_equal(ask_as(red, "GET", session, NULL)->status, 200);
    const struct reply *reply = ask_as(red, "GET", "/metrics", NULL);
    assert_contains(reply->body, "syncopate_team_rows{team=\"red\"} ");
    assert_null(strstr(reply->body, "team=\"blue\""));
    assert_contains(ask_as(admin, "GET", "/metrics", NULL)->body, "syncopate_team_rows{team=\"blue\"} ");
    site_stop(&site);
}

static int64_t rows_of(const char *team) {
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT coalesce(sum(rows), 0) FROM usage WHERE team = '%s'", team);
    return count(sql);
}

/* A job that renews its lease for a month fills nothing. */
static void heartbeats_leave_nothing_and_cost_nothing(void **state) {
    (void)state;
    char session[128], path[200];
    start((struct service_options){0});
    cJSON *json = reply_json(open_session(red), 201);
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    assert_int_equal(ask_as(red, "POST", path, "{\"client\":\"c\"}")->status, 200);
    const int64_t rows = rows_of("red"), audits = count("SELECT count(*) FROM audit");
    snprintf(path, sizeof path, "%s/trials/1:heartbeat", session);
    for (int i = 0; i < 50; i++)
        assert_int_equal(ask_as(red, "POST", path, "{\"client\":\"c\",\"attempt\":1}")->status, 200);
    assert_int_equal(rows_of("red"), rows);
    assert_int_equal(count("SELECT count(*) FROM audit"), audits);
    site_stop(&site);
}

/* Rows of a team and what it is charged, to the row: a session and its first event, an audit, an answer. */
static void what_stays_is_charged_and_credited_to_the_row(void **state) {
    (void)state;
    struct error err;
    char path[200];
    start((struct service_options){.access = {.keep_events_us = 1, .keep_audit_us = 1, .keep_answers_us = 1}});
    static const char body[] = "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":9}}";
    cJSON *json = reply_json(ask_with(red, "POST", "/api/v1/sessions", "Idempotency-Key: k\r\n", body), 201);
    snprintf(path, sizeof path, "%s:cancel", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    const int64_t of_session = count("SELECT count(*) FROM sessions");
    assert_int_equal(rows_of("red"), of_session + count("SELECT count(*) FROM events") + 2);
    assert_int_equal(ask_with(red, "POST", path, "Idempotency-Key: l\r\n", NULL)->status, 200);
    assert_int_equal(rows_of("red"), of_session + count("SELECT count(*) FROM events") + 4);
    usleep(5000);
    bool left;
    assert_ok(access_forget(site.service->access, &left, &err));
    assert_int_equal(count("SELECT count(*) FROM idempotency") + count("SELECT count(*) FROM events"), 0);
    assert_int_equal(rows_of("red"), of_session);
    site_stop(&site);
}

/* Many names for what others put would fill the disk as well. */
static void a_teams_own_name_for_what_is_here_is_charged(void **state) {
    (void)state;
    static const char body[] = "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"wfbp\"}";
    start((struct service_options){.limits.rows = 2});
    assert_int_equal(ask_as(admin, "POST", "/api/v1/strategies", body)->status, 201);
    assert_int_equal(rows_of("blue"), 0);
    assert_int_equal(ask_as(blue, "POST", "/api/v1/strategies", body)->status, 200);
    assert_int_equal(rows_of("blue"), 2); /* the holding, its audit */
    assert_true(ask_as(blue, "POST", "/api/v1/models", SITE_MODEL)->status >= 400);
    assert_int_equal(rows_of("blue"), 2);
    site_stop(&site);
}

static void a_ranker_is_charged_to_the_team_that_asked_for_it(void **state) {
    (void)state;
    char body[400];
    static const char *const baselines[] = {"horovod", "wfbp", "pytorch-ddp", "p3"};
    start((struct service_options){0});
    for (int i = 0; i < 12; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"%s\"}", baselines[i % 4]);
        struct reply *reply = ask_as(red, "POST", "/api/v1/strategies", body);
        assert_true(reply->status == 200 || reply->status == 201);
        cJSON *json = reply_json(reply, reply->status);
        snprintf(body, sizeof body,
                 "{\"records\":[{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%.64s\",\"proposer\":\"p\","
                 "\"runner\":\"lab\",\"iterations_us\":[%d]}]}",
                 cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring, 9000 + 100 * i);
        cJSON_Delete(json);
        assert_int_equal(ask_as(red, "POST", "/api/v1/records:batchCreate", body)->status, 201);
    }
    const int64_t rows = rows_of("red");
    assert_int_equal(ask_as(red, "POST", "/api/v1/rankers", "{\"kind\":\"linear\"}")->status, 202);
    for (int i = 0; i < 400 && count("SELECT count(*) FROM operations WHERE state = 'running'"); i++)
        usleep(20000);
    assert_int_equal(count("SELECT count(*) FROM operations WHERE state = 'done'"), 1);
    assert_int_equal(count("SELECT count(*) FROM rankers"), 1);
    assert_int_equal(rows_of("red") - rows, 4); /* the operation, its audit, the ranker, the name */
    site_stop(&site);
}

static void a_team_makes_the_file_grow_so_much(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    start((struct service_options){.limits.bytes = 1 << 20});
    const int64_t before = count("PRAGMA page_count");
    const int taken = put_until_refused(red, 4000); /* some 8 kB each */
    assert_in_range(taken, 50, 130);
    const int64_t grown = (count("PRAGMA page_count") - before) * 4096;
    assert_in_range(grown, 1 << 20, (1 << 20) + (1 << 17));
    assert_in_range(count("SELECT bytes FROM usage WHERE team = 'red'"), 1 << 20, grown);
    assert_int_equal(open_session(blue)->status, 201);
    site_stop(&site);
}

static void what_is_old_is_forgotten_and_said_to_be(void **state) {
    (void)state;
    struct error err;
    char session[128], path[200], head[400], text[4096];
    start((struct service_options){.access = {.keep_events_us = 1, .keep_audit_us = 1, .keep_answers_us = 1}});
    cJSON *json = reply_json(open_session(red), 201);
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    json = reply_json(open_session(red), 201); /* which stays open, with its events */
    cJSON_Delete(json);
    snprintf(path, sizeof path, "%s:cancel", session);
    assert_int_equal(ask_with(red, "POST", path, "Idempotency-Key: k\r\n", NULL)->status, 200);
    const int64_t rows = count("SELECT rows FROM usage WHERE team = 'red'");
    assert_int_equal(count("SELECT count(*) FROM events"), 3);
    const int64_t last =
        count("SELECT max(e.id) FROM events e JOIN sessions s ON s.id = e.session WHERE s.ended IS NOT NULL");
    usleep(5000);
    bool more;
    assert_ok(access_forget(site.service->access, &more, &err));
    assert_true(more); /* there was something */
    assert_ok(access_forget(site.service->access, &more, &err));
    assert_false(more);
    assert_int_equal(count("SELECT count(*) FROM events"), 1);
    assert_int_equal(count("SELECT count(*) FROM audit"), 0);
    assert_int_equal(count("SELECT count(*) FROM idempotency"), 0);
    assert_true(count("SELECT rows FROM usage WHERE team = 'red'") < rows);
    const int fd = site_connect(&site);
    snprintf(head, sizeof head,
             "GET %s/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nLast-Event-ID: 1\r\n\r\n",
             session, red);
    site_say(fd, head);
    site_hear(fd, "\nevent: pruned", 5, text, sizeof text, NULL);
    snprintf(head, sizeof head, "{\"after\":1,\"up_to\":%lld}", (long long)last);
    site_hear(fd, head, 5, text + strlen(text), sizeof text - strlen(text), NULL);
    assert_contains(text, head);
    close(fd);
    site_stop(&site);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repetition_that_changes_nothing_leaves_nothing),
        cmocka_unit_test(a_team_has_so_many_sessions_open),
        cmocka_unit_test(a_team_writes_so_many_rows_and_may_still_end_what_it_began),
        cmocka_unit_test(heartbeats_leave_nothing_and_cost_nothing),
        cmocka_unit_test(what_stays_is_charged_and_credited_to_the_row),
        cmocka_unit_test(a_teams_own_name_for_what_is_here_is_charged),
        cmocka_unit_test(a_ranker_is_charged_to_the_team_that_asked_for_it),
        cmocka_unit_test(a_team_makes_the_file_grow_so_much),
        cmocka_unit_test(what_is_old_is_forgotten_and_said_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
