/* Teams while things change: a stream of events ends when its listener may no longer hear it, a change is made only to
 * what the client looked at, and who sees what is said in one form. */
#include "tests/unit/service/http_site.h"

static struct site site;
static char admin[TOKEN_LENGTH + 1], red[TOKEN_LENGTH + 1], blue[TOKEN_LENGTH + 1];
static char session[128], record[128];

/* `more` are header lines with their ends, or "". */
static struct reply *ask_with(const char *token, const char *method, const char *path, const char *more,
                              const char *body) {
    char headers[400];
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n%s", token, more);
    return site_ask(&site, method, path, headers, body);
}

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    return ask_with(token, method, path, "", body);
}

static void make_token(const char *name, const char *team, enum role role, const char *expires, char *secret) {
    struct token wanted = {.principal = {.role = role}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    snprintf(wanted.expires, sizeof wanted.expires, "%s", expires);
    site_token(&site, &wanted, secret);
}

/* A session of team red that blue may see, and a trial of red's that is of no session. */
static void put_things(void) {
    assert_int_equal(ask_as(admin, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(ask_as(admin, "POST", "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    cJSON *json =
        reply_json(ask_as(red, "POST", "/api/v1/sessions",
                          "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":"
                          "20},\"shared\":[\"blue\"]}"),
                   201);
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "href")->valuestring);
    cJSON_Delete(json);
    json = reply_json(
        ask_as(red, "POST", "/api/v1/strategies", "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"wfbp\"}"),
        201);
    char body[512];
    snprintf(body, sizeof body,
             "{\"shared\":[\"blue\",\"green\"],\"records\":[{\"uid\":\"u1\",\"model\":\"toy\",\"cluster\":\"four\","
             "\"strategy\":\"%s\",\"proposer\":\"wfbp\",\"runner\":\"mpirun\",\"iterations_us\":[9,9]}]}",
             cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
    cJSON_Delete(json);
    assert_int_equal(ask_as(red, "POST", "/api/v1/records:batchCreate", body)->status, 201);
    snprintf(record, sizeof record, "/api/v1/records/u1");
}

static int set_up(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "shared-%d", number++);
    site = (struct site){0};
    site_place(&site, name);
    make_token("admin", "core", ROLE_ADMIN, "", admin);
    make_token("red", "red", ROLE_RUN, "", red);
    make_token("blue", "blue", ROLE_RUN, "", blue);
    site_start(&site, name);
    put_things();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

/* ---- listening ---- */

/* A stream of the session's events on which its first event has come. */
static int listen_with(const char *header) {
    char head[512], text[4096];
    const int fd = site_connect(&site);
    snprintf(head, sizeof head, "GET %s/events HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", session, header);
    site_say(fd, head);
    site_hear(fd, "\nevent: ", 5, text, sizeof text, NULL);
    assert_contains(text, "\nevent: ");
    return fd;
}

static int listen_as(const char *token) {
    char header[200];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    return listen_with(header);
}

/* The stream's last chunk comes within two seconds, and without the event of the change. */
static void assert_ends(int fd) {
    char text[4096];
    const double begun = clock_now_us();
    site_hear(fd, "0\r\n\r\n", 4, text, sizeof text, NULL);
    assert_contains(text, "0\r\n\r\n");
    assert_null(strstr(text, "event: shared"));
    assert_true(clock_now_us() - begun < 2.5e6);
    close(fd);
}

static void a_stream_ends_when_its_listener_may_see_the_session_no_more(void **state) {
    (void)state;
    char text[4096];
    const int watcher = listen_as(blue), owner = listen_as(red);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"team\"}")->status, 200);
    assert_ends(watcher);
    site_hear(owner, "event: shared", 4, text, sizeof text, NULL);
    assert_contains(text, "event: shared");
    assert_problem(ask_as(blue, "GET", session, NULL), 404, "not-found");
    close(owner);
}

static void a_stream_goes_on_while_its_listener_may_see_the_session(void **state) {
    (void)state;
    char text[4096];
    const int watcher = listen_as(blue);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"all\"}")->status, 200);
    site_hear(watcher, "0\r\n\r\n", 1.6, text, sizeof text, NULL); /* past the next doubt */
    assert_contains(text, "event: shared");
    assert_null(strstr(text, "0\r\n\r\n"));
    close(watcher);
}

static void a_stream_ends_when_its_token_is_revoked(void **state) {
    (void)state;
    struct error err;
    char path[600];
    const int watcher = listen_as(blue);
    site_tokens(&site, path);
    assert_ok(tokens_revoke(path, "blue", &err));
    assert_ends(watcher);
}

static struct reply *send_page_form(const char *path, const char *cookie, const char *form) {
    char headers[400];
    snprintf(headers, sizeof headers, "%sOrigin: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n", cookie,
             server_url(site.server));
    return site_ask(&site, "POST", path, headers, form);
}

static void a_stream_ends_when_its_listener_signs_out(void **state) {
    (void)state;
    char form[200], cookie[200];
    snprintf(form, sizeof form, "token=%s", blue);
    const char *set = reply_header(send_page_form("/sign-in", "", form), "Set-Cookie");
    assert_non_null(set);
    snprintf(cookie, sizeof cookie, "Cookie: %.*s\r\n", (int)strcspn(set, ";"), set);
    const int watcher = listen_with(cookie), other = listen_as(blue);
    assert_int_equal(send_page_form("/sign-out", cookie, "")->status, 303);
    assert_ends(watcher);
    char text[4096];
    site_hear(other, "0\r\n\r\n", 1.6, text, sizeof text, NULL);
    assert_null(strstr(text, "0\r\n\r\n")); /* whose token is good goes on */
    close(other);
}

static void a_stream_ends_when_its_token_expires(void **state) {
    (void)state;
    char brief[TOKEN_LENGTH + 1], now[32], end[32];
    clock_utc(now, sizeof now);
    clock_utc_after(1.2e6, end, sizeof end);
    assert_true(strcmp(now, end) < 0);
    make_token("brief", "blue", ROLE_READ, end, brief);
    for (int i = 0; i < 20 && ask_as(brief, "GET", session, NULL)->status == 401; i++)
        usleep(50000); /* until the service has read the file again */
    assert_ends(listen_as(brief));
}

/* ---- preconditions ---- */

static void assert_tag(const struct reply *reply, char header[80], const char *name) {
    const char *tag = reply_header(reply, "ETag");
    assert_non_null(tag);
    snprintf(header, 80, "%s: %.60s\r\n", name, tag);
}

static void a_trial_is_changed_only_as_it_was_looked_at(void **state) {
    (void)state;
    char match[80], none[80];
    struct reply *first = ask_as(red, "GET", record, NULL);
    assert_int_equal(first->status, 200);
    assert_tag(first, match, "If-Match");
    assert_tag(first, none, "If-None-Match");
    assert_int_equal(ask_with(red, "GET", record, none, NULL)->status, 304);
    assert_int_equal(ask_with(red, "GET", record, match, NULL)->status, 200);
    assert_int_equal(ask_with(red, "PATCH", record, match, "{\"shared\":\"team\"}")->status, 200);
    assert_problem(ask_with(red, "PATCH", record, match, "{\"shared\":\"all\"}"), 412, "precondition-failed");
    assert_problem(ask_with(red, "GET", record, match, NULL), 412, "precondition-failed");
    assert_problem(ask_as(blue, "GET", record, NULL), 404, "not-found"); /* the second did nothing */
    assert_int_equal(ask_with(red, "PATCH", record, "If-Match: *\r\n", "{\"shared\":\"all\"}")->status, 200);
}

static void a_precondition_is_never_passed_over(void **state) {
    (void)state;
    static const char match[] = "If-Match: \"0000000000000000\"\r\n";
    const struct {
        const char *method, *tail, *body;
    } without_tags[] = {{"POST", "/trials:suggest", "{\"client\":\"c\"}"},
                        {"POST", "/trials", "{\"trials\":[]}"},
                        {"GET", "/trials", NULL},
                        {"GET", "/best", NULL}};
    char path[200];
    for (size_t i = 0; i < sizeof without_tags / sizeof *without_tags; i++) {
        snprintf(path, sizeof path, "%s%s", session, without_tags[i].tail);
        assert_problem(ask_with(red, without_tags[i].method, path, match, without_tags[i].body), 400, "bad-request");
    }
    snprintf(path, sizeof path, "%s/trials?page_size=9", session);
    cJSON *json = reply_json(ask_as(red, "GET", path, NULL), 200);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items")), 0);
    cJSON_Delete(json);
    assert_problem(ask_with(red, "PATCH", session, "If-None-Match: *\r\n", "{\"shared\":\"all\"}"), 400, "bad-request");
    assert_problem(ask_with(red, "GET", session, match, NULL), 412, "precondition-failed");
}

static void an_entity_tag_without_its_quotes_is_told(void **state) {
    (void)state;
    static const char *const bad[] = {"0000000000000000", "\"a\", b", "\"a\" \"b\"", "\"a",
                                      "*, \"a\"",         ",",        "\"a b\"",     "w/\"a\""};
    static const char *const good[] = {"\"a\"", "\"a\" , W/\"b\"", ",\"a\",", "\"\"", "\"a,b\""};
    char header[80];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(header, sizeof header, "If-Match: %s\r\n", bad[i]);
        assert_problem(ask_with(red, "PATCH", session, header, "{\"shared\":\"all\"}"), 400, "bad-request");
        assert_problem(ask_with(red, "GET", session, header, NULL), 400, "bad-request");
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", bad[i]);
        assert_problem(ask_with(red, "GET", session, header, NULL), 400, "bad-request");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(header, sizeof header, "If-Match: %s\r\n", good[i]);
        assert_problem(ask_with(red, "PATCH", session, header, "{\"shared\":\"all\"}"), 412, "precondition-failed");
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", good[i]);
        assert_int_equal(ask_with(red, "GET", session, header, NULL)->status, 200);
    }
    assert_int_equal(ask_with(red, "GET", session, "If-None-Match: *\r\n", NULL)->status, 304);
}

static void a_change_under_a_key_is_made_once(void **state) {
    (void)state;
    static const char key[] = "Idempotency-Key: k\r\n";
    assert_int_equal(ask_with(red, "PATCH", session, key, "{\"shared\":\"team\"}")->status, 200);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"all\"}")->status, 200);
    const struct reply *again = ask_with(red, "PATCH", session, key, "{\"shared\":\"team\"}");
    assert_string_equal(reply_header(again, "Idempotent-Replayed"), "true");
    assert_contains(again->body, "\"shared\":\"team\"");
    assert_contains(ask_as(red, "GET", session, NULL)->body, "\"shared\":\"all\"");
    assert_problem(ask_with(red, "PATCH", session, key, "{\"shared\":\"all\"}"), 422, "idempotency-mismatch");
    assert_problem(ask_with(red, "PATCH", record, key, "{\"shared\":\"team\"}"), 422, "idempotency-mismatch");
    assert_int_equal(ask_with(red, "PATCH", record, "Idempotency-Key: r\r\n", "{\"shared\":\"team\"}")->status, 200);
    assert_string_equal(reply_header(ask_with(red, "PATCH", record, "Idempotency-Key: r\r\n", "{\"shared\":\"team\"}"),
                                     "Idempotent-Replayed"),
                        "true");
}

/* ---- what is said about it ---- */

static void whom_it_is_shared_with_is_all_team_or_teams(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"null", "must be \\\"all\\\", \\\"team\\\" or a list of teams"},
                                         {"{}", "must be \\\"all\\\", \\\"team\\\" or a list of teams"},
                                         {"\"red\"", "must be \\\"all\\\", \\\"team\\\" or a list of teams"},
                                         {"[\"all\"]", "stands alone"},
                                         {"[\"blue\",\"team\"]", "stands alone"},
                                         {"[\"a b\"]", "is no team"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"shared\":%s}", bad[i][0]);
        const struct reply *r = ask_as(red, "PATCH", session, body);
        assert_problem(r, 422, "invalid");
        assert_contains(r->body, bad[i][1]);
    }
}

/* What came after `last` of the session's events, until `part` came. */
static void hear_events(const char *part, char *text, size_t n) {
    char head[512];
    const int fd = site_connect(&site);
    snprintf(head, sizeof head, "GET %s/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n",
             session, red);
    site_say(fd, head);
    site_hear(fd, part, 5, text, n, NULL);
    close(fd);
}

static void sharing_that_stays_as_it_is_is_no_event(void **state) {
    (void)state;
    char text[8192];
    static const char *const bodies[] = {
        "{\"shared\":[\"blue\"]}", "{\"shared\":[\"green\",\"blue\"]}", "{\"shared\":[\"blue\",\"green\"]}",
        "{\"budget\":{\"trials\":20},\"shared\":[\"green\",\"blue\"]}", "{\"shared\":\"team\"}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_int_equal(ask_as(red, "PATCH", session, bodies[i])->status, 200);
    hear_events("\"shared\":\"team\"", text, sizeof text);
    const char *first = strstr(text, "event: shared");
    assert_non_null(first);
    assert_contains(first, "[\"green\",\"blue\"]");
    const char *second = strstr(first + 1, "event: shared");
    assert_non_null(second);
    assert_contains(second, "\"shared\":\"team\"");
    assert_null(strstr(second + 1, "event: shared"));
}

static void the_type_of_every_problem_leads_to_a_page(void **state) {
    (void)state;
    for (enum problem p = PROBLEM_NONE + 1; p < PROBLEM_COUNT; p++) {
        char path[80];
        snprintf(path, sizeof path, "/problems/%s", problem_code(p));
        const struct reply *reply = site_get(&site, path);
        assert_int_equal(reply->status, 200);
        assert_contains(reply->body, problem_code(p));
    }
    assert_int_equal(site_get(&site, "/problems/none")->status, 404);
    assert_int_equal(site_get(&site, "/problems/nonsense")->status, 404);
}

static void commands_to_type_have_the_header_where_there_are_tokens(void **state) {
    (void)state;
    static const char *const pages[] = {"/models", "/clusters"};
    for (size_t i = 0; i < 2; i++)
        assert_contains(ask_as(red, "GET", pages[i], NULL)->body, "Authorization: Bearer $TOKEN");
    struct site open = {.service_options.open = true};
    site_start(&open, "without-tokens");
    assert_null(strstr(site_get(&open, "/models")->body, "Authorization"));
    site_stop(&open);
}

static void a_budget_that_stays_as_it_is_is_no_event(void **state) {
    (void)state;
    char text[8192];
    static const int budgets[] = {20, 21, 21};
    for (int i = 0; i < 3; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"budget\":{\"trials\":%d}}", budgets[i]);
        assert_int_equal(ask_as(red, "PATCH", session, body)->status, 200);
    }
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"all\"}")->status, 200); /* the last event */
    hear_events("event: shared", text, sizeof text);
    const char *first = strstr(text, "event: budget");
    assert_non_null(first);
    assert_null(strstr(first + 1, "event: budget"));
    assert_contains(first, "\"trials\":21");
}

static void a_change_of_the_budget_keeps_what_it_does_not_say(void **state) {
    (void)state;
    static const char *const changes[] = {"{\"gap\":0.2}", "{\"time_us\":1e9}", "{\"trials\":25}"};
    char body[64];
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        snprintf(body, sizeof body, "{\"budget\":%s}", changes[i]);
        assert_int_equal(ask_as(red, "PATCH", session, body)->status, 200);
    }
    cJSON *json = reply_json(ask_as(red, "GET", session, NULL), 200);
    const cJSON *budget = cJSON_GetObjectItemCaseSensitive(json, "budget");
    assert_close(cJSON_GetObjectItemCaseSensitive(budget, "gap")->valuedouble, 0.2, 1e-12);
    assert_close(cJSON_GetObjectItemCaseSensitive(budget, "time_us")->valuedouble, 1e9, 1e-12);
    assert_close(cJSON_GetObjectItemCaseSensitive(budget, "trials")->valuedouble, 25, 1e-12);
    cJSON_Delete(json);
    assert_problem(ask_as(red, "PATCH", session, "{\"budget\":{\"gap\":101}}"), 422, "invalid");
    assert_int_equal(ask_as(red, "PATCH", session, "{\"budget\":{\"trials\":0}}")->status, 200); /* the time is left */
    assert_problem(ask_as(red, "PATCH", session, "{\"budget\":{\"time_us\":0}}"), 422, "invalid");
}

/* The line of the record as another dataset would have exported it, with this uid. */
static cJSON *import_body(const char *uid) {
    char *line = strdup(ask_as(admin, "GET", record, NULL)->body);
    char *at = strstr(line, "\"uid\":\"u1\"");
    memcpy(at + 7, uid, 2);
    cJSON *root = cJSON_CreateObject(), *lines = cJSON_AddArrayToObject(root, "lines");
    cJSON_AddItemToArray(lines, cJSON_CreateString(line));
    free(line);
    return root;
}

static struct reply *import_as(const char *token, const char *uid) {
    cJSON *body = import_body(uid);
    char *text = cJSON_PrintUnformatted(body);
    struct reply *reply = ask_as(token, "POST", "/api/v1/records:import", text);
    cJSON_free(text);
    cJSON_Delete(body);
    return reply;
}

static void trials_that_are_imported_count_for_the_day(void **state) {
    (void)state;
    struct token wanted = {.principal = {.role = ROLE_ADMIN, .team = "core", .trials_per_day = 1}, .name = "few"};
    char few[TOKEN_LENGTH + 1];
    site_token(&site, &wanted, few);
    for (int i = 0; i < 20 && ask_as(few, "GET", record, NULL)->status == 401; i++)
        usleep(50000);                                   /* until the service has read the file again */
    assert_int_equal(import_as(few, "u1")->status, 200); /* is here already */
    assert_int_equal(import_as(few, "u2")->status, 201);
    assert_problem(import_as(few, "u3"), 429, "quota-exceeded");
    assert_problem(ask_as(admin, "GET", "/api/v1/records/u3", NULL), 404, "not-found");
    assert_int_equal(import_as(admin, "u3")->status, 201);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEAMS(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEAMS(a_stream_ends_when_its_listener_may_see_the_session_no_more),
        TEAMS(a_stream_goes_on_while_its_listener_may_see_the_session),
        TEAMS(a_stream_ends_when_its_token_is_revoked),
        TEAMS(a_stream_ends_when_its_listener_signs_out),
        TEAMS(a_stream_ends_when_its_token_expires),
        TEAMS(a_trial_is_changed_only_as_it_was_looked_at),
        TEAMS(a_precondition_is_never_passed_over),
        TEAMS(the_type_of_every_problem_leads_to_a_page),
        TEAMS(commands_to_type_have_the_header_where_there_are_tokens),
        TEAMS(a_budget_that_stays_as_it_is_is_no_event),
        TEAMS(a_change_of_the_budget_keeps_what_it_does_not_say),
        TEAMS(sharing_that_stays_as_it_is_is_no_event),
        TEAMS(whom_it_is_shared_with_is_all_team_or_teams),
        TEAMS(an_entity_tag_without_its_quotes_is_told),
        TEAMS(a_change_under_a_key_is_made_once),
        TEAMS(trials_that_are_imported_count_for_the_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
