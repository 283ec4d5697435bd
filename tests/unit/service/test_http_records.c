/* Records, rankers and operations over HTTP: what goes in comes back, all or nothing, pages, who sees what, trials that
 * a session is given, and work that outlives its request. */
#include <math.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/claims.h"
#include "dataset/events.h"
#include "dataset/operations.h"
#include "interop/export/limits.h"
#include "tests/support/dataset/put.h"
#include "tests/unit/service/http_site.h"

#define TRIAL "\"proposer\":\"hand\",\"runner\":\"mpirun\""

enum { STRATEGIES = 12 };

static struct site site;
static struct rng rng;
static char admin[TOKEN_LENGTH + 1], red[TOKEN_LENGTH + 1], blue[TOKEN_LENGTH + 1], looker[TOKEN_LENGTH + 1];
static char strategies[STRATEGIES][ID_LENGTH + 1];

/* ---- asking ---- */

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    char header[200] = "";
    if (token)
        snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    return site_ask(&site, method, path, header, body);
}

static double number_of(const cJSON *json, const char *key) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    assert_true(cJSON_IsNumber(node));
    return node->valuedouble;
}

static const char *text_of(const cJSON *json, const char *key) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    assert_true(cJSON_IsString(node));
    return node->valuestring;
}

static int items_of(const struct reply *reply) {
    cJSON *json = reply_json(reply, 200);
    const int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items"));
    cJSON_Delete(json);
    return n;
}

/* How many trials this token sees. */
static int count_as(const char *token) {
    return items_of(ask_as(token, "GET", "/api/v1/records?page_size=1000", NULL));
}

/* The problem is about this place of the body. */
static void assert_pointer(const struct reply *reply, const char *pointer) {
    struct error err = {0};
    cJSON *json = NULL;
    assert_ok(json_parse(reply->body, strlen(reply->body), "problem", &json, &err));
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "errors"), 0);
    assert_string_equal(text_of(first, "pointer"), pointer);
    cJSON_Delete(json);
}

/* ---- a site with a model, a cluster and strategies ---- */

static void put_objects(const char *token) {
    assert_int_equal(ask_as(token, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(ask_as(token, "POST", "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    for (int i = 0; i < STRATEGIES; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":{\"schema\":\"syncopate.strategy/1\","
                 "\"name\":\"s%d\",\"schedule\":{\"policy\":\"fifo\"},\"groups\":[{\"id\":0,\"algorithm\":\"ring\","
                 "\"partition_bytes\":%d}],\"variables\":[{\"name\":\"a\",\"sync\":{\"kind\":\"all_reduce\",\"group\":"
                 "0}},{\"name\":\"b\",\"sync\":{\"kind\":\"all_reduce\",\"group\":0}}]}}",
                 i, 4096 * (i + 1));
        cJSON *json = reply_json(ask_as(token, "POST", "/api/v1/strategies", body), 201);
        snprintf(strategies[i], sizeof strategies[i], "%s", text_of(json, "id"));
        cJSON_Delete(json);
    }
}

static int set_up_open(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "open-%d", number++);
    site = (struct site){.service_options.open = true};
    site_start(&site, name);
    put_objects(NULL);
    return 0;
}

static void make_token(const char *name, const char *team, enum role role, uint64_t trials, char *secret) {
    struct token wanted = {.principal = {.role = role, .trials_per_day = trials}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    site_token(&site, &wanted, secret);
}

static int set_up_teams(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "teams-%d", number++);
    site = (struct site){0};
    site_place(&site, name);
    make_token("admin", "core", ROLE_ADMIN, 0, admin);
    make_token("red", "red", ROLE_RUN, 0, red);
    make_token("blue", "blue", ROLE_RUN, 0, blue);
    make_token("looker", "blue", ROLE_READ, 0, looker);
    site_start(&site, name);
    put_objects(admin);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

/* ---- records to send ---- */

static void add_text(cJSON *to, const char *key, const char *text) {
    assert_non_null(cJSON_AddStringToObject(to, key, text));
}

static void add_number(cJSON *to, const char *key, double x) {
    assert_non_null(cJSON_AddNumberToObject(to, key, x));
}

static void add_stamp(cJSON *to, const char *key) {
    char stamp[32];
    snprintf(stamp, sizeof stamp, "2026-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)(1 + rng_below(&rng, 12)),
             (int)(1 + rng_below(&rng, 28)), (int)rng_below(&rng, 24), (int)rng_below(&rng, 60),
             (int)rng_below(&rng, 60), (int)rng_below(&rng, 1000));
    add_text(to, key, stamp);
}

static void add_result(cJSON *to) {
    const double us = rng_log_between(&rng, 1e3, 1e7);
    if (rng_uniform(&rng) < 0.5) {
        cJSON *list = cJSON_AddArrayToObject(to, "iterations_us");
        cJSON_AddItemToArray(list, cJSON_CreateNumber(us)); /* the median of it and of as many on each side */
        for (uint64_t i = rng_below(&rng, 3); i; i--) {
            cJSON_AddItemToArray(list, cJSON_CreateNumber(us * rng_between(&rng, 0.9, 1)));
            cJSON_AddItemToArray(list, cJSON_CreateNumber(us * rng_between(&rng, 1, 1.1)));
        }
    }
    add_number(to, "median_us", us);
    add_number(to, "mean_us", us * rng_between(&rng, 0.9, 1.1));
    if (rng_uniform(&rng) < 0.5) {
        add_number(to, "low_us", us * 0.9);
        add_number(to, "high_us", us * 1.1);
    }
    if (rng_uniform(&rng) < 0.5)
        add_text(cJSON_AddObjectToObject(to, "environment_details"), "host", "node \"17\"");
}

static cJSON *random_record(int number) {
    static const char *const ends[] = {"failed", "infeasible", "cancelled"};
    cJSON *r = cJSON_CreateObject();
    char uid[32];
    snprintf(uid, sizeof uid, "Trial.%d_x-", number);
    add_text(r, "uid", uid);
    add_text(r, "model", "toy");
    add_text(r, "cluster", "four");
    add_text(r, "strategy", strategies[rng_below(&rng, STRATEGIES)]);
    add_text(r, "proposer", rng_uniform(&rng) < 0.5 ? "neighbour" : "wfbp");
    add_text(r, "runner", "mpirun, \"patched\"");
    add_number(r, "seed", (double)(rng_next(&rng) >> 11));
    add_number(r, "round", (double)rng_below(&rng, 4));
    add_number(r, "attempt", (double)(1 + rng_below(&rng, 3)));
    if (rng_uniform(&rng) < 0.7)
        add_number(r, "predicted_us", rng_log_between(&rng, 1e3, 1e7));
    for (int i = 0; i < 3; i++)
        if (rng_uniform(&rng) < 0.7)
            add_stamp(r, (const char *const[]){"queued", "started", "ended"}[i]);
    const bool complete = rng_uniform(&rng) < 0.7;
    add_text(r, "state", complete ? "complete" : ends[rng_below(&rng, 3)]);
    if (complete)
        add_result(r);
    else
        add_text(r, "reason", "rank 3: \xc3\xa9teint, \"why\"?");
    return r;
}

/* {"records":[...]} of n random ones; the caller's. */
static cJSON *random_batch(int first, int n) {
    cJSON *body = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(body, "records");
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(list, random_record(first + i));
    return body;
}

static struct reply *send_batch(const char *token, const cJSON *body) {
    char *text = json_line(body);
    struct reply *reply = ask_as(token, "POST", "/api/v1/records:batchCreate", text);
    free(text);
    return reply;
}

static void put_random(int first, int n) {
    cJSON *body = random_batch(first, n);
    assert_int_equal(send_batch(NULL, body)->status, 201);
    cJSON_Delete(body);
}

/* A complete trial of strategy s, `tail` being further members. */
static struct reply *put_trial(const char *token, int s, double us, const char *tail) {
    char body[1024];
    snprintf(body, sizeof body,
             "{\"records\":[{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%s\"," TRIAL
             ",\"iterations_us\":[%.17g,%.17g,%.17g]}]%s}",
             strategies[s], us, us * 1.01, us * 0.99, tail);
    return ask_as(token, "POST", "/api/v1/records:batchCreate", body);
}

/* ---- what goes in comes back ---- */

static void assert_holds(const cJSON *got, const cJSON *sent) {
    const cJSON *member;
    cJSON_ArrayForEach(member, sent) {
        const char *key = member->string;
        const bool named = !strcmp(key, "model") || !strcmp(key, "cluster");
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(got, key);
        if (named)
            assert_string_equal(text_of(got, !strcmp(key, "model") ? "model_name" : "cluster_name"),
                                member->valuestring);
        else if (!cJSON_Compare(other, member, true))
            fail_msg("%s differs: sent %s, got %s", key, json_line(member), other ? json_line(other) : "nothing");
    }
}

static void a_record_comes_back_as_it_was_sent(void **state) {
    enum { N = 60 };
    (void)state;
    rng_seed(&rng, test_seed());
    cJSON *body = random_batch(0, N);
    cJSON *report = reply_json(send_batch(NULL, body), 201);
    assert_int_equal(number_of(report, "added"), N);
    assert_int_equal(number_of(report, "duplicates"), 0);
    const cJSON *sent, *uid = cJSON_GetObjectItemCaseSensitive(report, "uids")->child;
    cJSON_ArrayForEach(sent, cJSON_GetObjectItemCaseSensitive(body, "records")) {
        char path[128];
        assert_string_equal(uid->valuestring, text_of(sent, "uid"));
        snprintf(path, sizeof path, "/api/v1/records/%s", uid->valuestring);
        cJSON *got = reply_json(site_get(&site, path), 200);
        assert_holds(got, sent);
        cJSON_Delete(got);
        uid = uid->next;
    }
    cJSON_Delete(report);
    cJSON_Delete(body);
}

static void what_was_exported_can_be_sent_again(void **state) {
    (void)state;
    rng_seed(&rng, test_seed());
    put_random(0, 20);
    struct reply *lines = site_get(&site, "/api/v1/records?format=jsonl&iterations=true");
    assert_string_equal(reply_header(lines, "Content-Type"), "application/jsonl");
    cJSON *body = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(body, "records");
    char *rest = NULL;
    for (char *line = strtok_r(lines->body, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        cJSON *record = cJSON_Parse(line);
        assert_non_null(record);
        cJSON_DeleteItemFromObject(record, "team"); /* whose they are follows from the token */
        cJSON_DeleteItemFromObject(record, "shared");
        cJSON_AddItemToArray(list, record);
    }
    assert_int_equal(cJSON_GetArraySize(list), 20);
    cJSON *report = reply_json(send_batch(NULL, body), 200);
    assert_int_equal(number_of(report, "duplicates"), 20);
    assert_int_equal(number_of(report, "added"), 0);
    cJSON_Delete(report);
    cJSON_Delete(body);
}

static void a_batch_goes_in_whole_or_not_at_all(void **state) {
    static const struct {
        const char *member, *value; /* JSON; NULL: the member is missing */
        int status;
        const char *code, *pointer;
    } wrongs[] = {
        {"uid", "\"a/b\"", 422, "invalid", "/records/7/uid"},
        {"uid", "\"\"", 422, "invalid", "/records/7/uid"},
        {"model", "\"none\"", 404, "not-found", "/records/7/model"},
        {"model", NULL, 422, "invalid", "/records/7"},
        {"cluster", "3", 422, "invalid", "/records/7/cluster"},
        {"strategy", "\"00000000000000000000000000000000000000000000000000000000000000ff\"", 404, "not-found",
         "/records/7/strategy"},
        {"state", "\"running\"", 422, "invalid", "/records/7/state"},
        {"state", "\"failed\"", 422, "invalid", "/records/7"},
        {"reason", "\"why\"", 422, "invalid", "/records/7"},
        {"queued", "\"2026-11-21 10:00\"", 422, "invalid", "/records/7/queued"},
        {"started", "\"2026-02-30T10:00:00.000Z\"", 422, "invalid", "/records/7/started"},
        {"median_us", "-1", 422, "invalid", "/records/7/median_us"},
        {"median_us", NULL, 422, "invalid", "/records/7"},
        {"low_us", "1e12", 422, "invalid", "/records/7"},
        {"iterations_us", "[1,0]", 422, "invalid", "/records/7/iterations_us/1"},
        {"environment_details", "[]", 422, "invalid", "/records/7/environment_details"},
        {"schema", "\"syncopate.record/9\"", 422, "invalid", "/records/7/schema"},
        {"colour", "1", 422, "invalid", "/records/7/colour"},
        {"session", "\"s\"", 422, "invalid", "/records/7/session"},
        {"team", "\"red\"", 422, "invalid", "/records/7/team"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        cJSON *body = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(body, "records");
        for (int k = 0; k < 9; k++) {
            cJSON *r =
                cJSON_Parse("{\"model\":\"toy\",\"cluster\":\"four\"," TRIAL ",\"median_us\":1000,\"mean_us\":1001}");
            add_text(r, "strategy", strategies[k]);
            cJSON_AddItemToArray(list, r);
        }
        cJSON *bad = cJSON_GetArrayItem(list, 7);
        cJSON_DeleteItemFromObjectCaseSensitive(bad, wrongs[i].member);
        if (wrongs[i].value)
            cJSON_AddItemToObject(bad, wrongs[i].member, cJSON_Parse(wrongs[i].value));
        struct reply *r = send_batch(NULL, body);
        if (!strstr(r->body, wrongs[i].code))
            print_error("%s = %s: %s\n", wrongs[i].member, wrongs[i].value ? wrongs[i].value : "", r->body);
        assert_problem(r, wrongs[i].status, wrongs[i].code);
        assert_pointer(r, wrongs[i].pointer);
        cJSON_Delete(body);
        assert_int_equal(count_as(NULL), 0);
    }
    assert_problem(site_post(&site, "/api/v1/records:batchCreate", "{\"records\":[]}"), 422, "invalid");
    assert_problem(site_post(&site, "/api/v1/records:batchCreate", "{}"), 422, "invalid");
    char *body = malloc(70000 + 512);
    assert_non_null(body);
    sprintf(body,
            "{\"records\":[{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%s\"," TRIAL
            ",\"median_us\":1,\"mean_us\":1,\"environment_details\":{\"a\":\"%070000d\"}}]}",
            strategies[0], 0);
    struct reply *r = site_post(&site, "/api/v1/records:batchCreate", body);
    assert_problem(r, 422, "invalid");
    assert_pointer(r, "/records/0/environment_details");
    free(body);
}

static void a_uid_is_one_trial_and_no_other(void **state) {
    (void)state;
    rng_seed(&rng, test_seed());
    cJSON *body = random_batch(0, 10);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(body, "records");
    assert_int_equal(send_batch(NULL, body)->status, 201);
    assert_int_equal(send_batch(NULL, body)->status, 200);
    cJSON_AddItemToArray(list, random_record(10)); /* beside what is there, something new */
    cJSON *report = reply_json(send_batch(NULL, body), 201);
    assert_int_equal(number_of(report, "added"), 1);
    assert_int_equal(number_of(report, "duplicates"), 10);
    cJSON_Delete(report);
    cJSON_AddItemToArray(list, random_record(11));
    cJSON_ReplaceItemInObject(cJSON_GetArrayItem(list, 4), "proposer", cJSON_CreateString("another"));
    struct reply *r = send_batch(NULL, body);
    assert_problem(r, 409, "conflict");
    assert_pointer(r, "/records/4");
    cJSON_Delete(body);
    assert_int_equal(count_as(NULL), 11);
}

static void a_key_makes_a_repeated_batch_one(void **state) {
    (void)state;
    char first[512], body[1024];
    snprintf(body, sizeof body,
             "{\"records\":[{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%s\"," TRIAL
             ",\"iterations_us\":[5]}]}",
             strategies[0]); /* without a uid nothing else tells that it is the same */
    struct reply *r = site_ask(&site, "POST", "/api/v1/records:batchCreate", "Idempotency-Key: k\r\n", body);
    assert_int_equal(r->status, 201);
    snprintf(first, sizeof first, "%s", r->body);
    r = site_ask(&site, "POST", "/api/v1/records:batchCreate", "Idempotency-Key: k\r\n", body);
    assert_int_equal(r->status, 201);
    assert_string_equal(r->body, first);
    assert_string_equal(reply_header(r, "Idempotent-Replayed"), "true");
    assert_int_equal(count_as(NULL), 1);
}

/* ---- pages ---- */

/* Uids of a page in order, each with a blank; *next is the token. */
static void read_page(const char *order, const char *format, int size, char *uids, char next[80]) {
    char path[256];
    snprintf(path, sizeof path, "/api/v1/records?order=%s&format=%s&page_size=%d%s%s", order, format, size,
             *next ? "&page_token=" : "", next);
    struct reply *r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    if (!strcmp(format, "json")) {
        cJSON *json = reply_json(r, 200);
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "items"))
            strcat(strcat(uids, text_of(item, "uid")), " ");
        snprintf(next, 80, "%s", text_of(json, "next_page_token"));
        cJSON_Delete(json);
        return;
    }
    const char *token = reply_header(r, "Next-Page-Token");
    snprintf(next, 80, "%.79s", token ? token : "");
    char *rest = NULL, *line = strtok_r(r->body, "\r\n", &rest);
    const bool csv = !strcmp(format, "csv");
    if (csv) {
        assert_string_equal(reply_header(r, "Content-Type"), "text/csv; charset=utf-8; header=present");
        assert_int_equal(strncmp(line, "trial,uid,session,", 18), 0);
        line = strtok_r(NULL, "\r\n", &rest);
    }
    for (; line; line = strtok_r(NULL, "\r\n", &rest)) {
        const char *at = csv ? strchr(line, ',') + 1 : strstr(line, "\"uid\":\"") + 7;
        strcat(strncat(uids, at, strcspn(at, ",\"")), " ");
    }
}

static void pages_in_any_order_and_format_are_one_list(void **state) {
    static const char *const orders[] = {"recorded",  "-recorded",  "number",   "-number",
                                         "predicted", "-predicted", "measured", "-measured"};
    static const char *const formats[] = {"json", "csv", "jsonl"};
    enum { N = 57, ROOM = N * 16 };
    (void)state;
    rng_seed(&rng, test_seed());
    put_random(100, N);
    for (size_t o = 0; o < 8; o++) {
        char whole[ROOM] = "", next[80] = "";
        read_page(orders[o], "json", 1000, whole, next);
        assert_string_equal(next, "");
        for (size_t f = 0; f < 3; f++) {
            char pages[ROOM] = "";
            int n = 0;
            do
                read_page(orders[o], formats[f], 1 + (int)rng_below(&rng, 30), pages, next);
            while (*next && ++n < N);
            assert_string_equal(pages, whole);
        }
    }
}

static void records_that_come_meanwhile_shift_no_page(void **state) {
    enum { N = 20 };
    (void)state;
    char uids[64 * 16] = "", next[80] = "", expected[64 * 16] = "";
    rng_seed(&rng, test_seed());
    put_random(0, N);
    read_page("-recorded", "json", 1000, expected, next);
    for (int i = 0; i == 0 || *next; i++) {
        read_page("-recorded", "json", 3, uids, next);
        put_random(N + i, 1);
    }
    assert_string_equal(uids, expected);
}

static void wrong_questions_are_told_what_is_wrong(void **state) {
    (void)state;
    rng_seed(&rng, test_seed());
    put_random(0, 5);
    struct reply *r = site_get(&site, "/api/v1/records?filter=state+%3D%3D+complete");
    assert_problem(r, 400, "bad-parameter");
    assert_contains(r->body, "filter: at 8");
    assert_problem(site_get(&site, "/api/v1/records?filter=colour%3Dred"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records?order=created"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records?order="), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records?format=xml"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records?page_size=1001"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records?page_token=nonsense"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/records/none"), 404, "not-found");
    assert_problem(site_get(&site, "/api/v1/records/%22%20or%20uid%20~%20%22T"), 404, "not-found");
    char next[80] = "", uids[256] = "", path[256];
    read_page("measured", "json", 2, uids, next);
    snprintf(path, sizeof path, "/api/v1/records?order=recorded&page_token=%s", next);
    assert_problem(site_get(&site, path), 400, "bad-parameter"); /* of another order */
}

static void a_filter_finds_what_it_says(void **state) {
    (void)state;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 6; i++)
        assert_int_equal(put_trial(NULL, i % 3, 1000 * (i + 1), "")->status, 201);
    assert_int_equal(items_of(site_get(&site, "/api/v1/records?filter=measured_us+%3C+3500")), 3);
    assert_int_equal(items_of(site_get(&site, "/api/v1/records?filter=model%3Dtoy+AND+NOT+measured_us+%3C+3500")), 3);
    char path[256];
    snprintf(path, sizeof path, "/api/v1/records?filter=strategy+IN+(%.12s,%.12s)", strategies[0], strategies[1]);
    assert_int_equal(items_of(site_get(&site, path)), 4);
    assert_int_equal(items_of(site_get(&site, "/api/v1/records?filter=state%3Dfailed")), 0);
}

/* ---- teams ---- */

static void a_team_sees_its_own_and_what_is_shared_with_it(void **state) {
    (void)state;
    char path[128];
    assert_int_equal(put_trial(red, 0, 1000, "")->status, 201);
    assert_int_equal(put_trial(red, 1, 1100, ",\"shared\":[\"blue\",\"green\"]")->status, 201);
    cJSON *report = reply_json(put_trial(red, 2, 1200, ",\"shared\":\"team\""), 201);
    snprintf(path, sizeof path, "/api/v1/records/%s",
             cJSON_GetObjectItemCaseSensitive(report, "uids")->child->valuestring);
    cJSON_Delete(report);
    assert_int_equal(put_trial(blue, 3, 1300, ",\"shared\":\"team\"")->status, 201);
    assert_int_equal(count_as(red), 3);
    assert_int_equal(count_as(blue), 3);
    assert_int_equal(count_as(looker), 3);
    assert_int_equal(count_as(admin), 4);
    assert_problem(ask_as(blue, "GET", path, NULL), 404, "not-found");
    cJSON *record = reply_json(ask_as(red, "GET", path, NULL), 200);
    assert_string_equal(text_of(record, "team"), "red");
    cJSON_Delete(record);
    assert_problem(put_trial(looker, 0, 1, ""), 403, "forbidden");
    assert_problem(put_trial(red, 0, 1, ",\"shared\":\"everybody\""), 422, "invalid");
    assert_problem(put_trial(red, 0, 1, ",\"shared\":[\"a|b\"]"), 422, "invalid");
}

/* The uid of the one trial of a batch, in `path` behind /api/v1/records/. */
static void path_of_added(const struct reply *reply, char path[128]) {
    cJSON *report = reply_json(reply, 201);
    snprintf(path, 128, "/api/v1/records/%s", cJSON_GetObjectItemCaseSensitive(report, "uids")->child->valuestring);
    cJSON_Delete(report);
}

static void who_sees_a_trial_its_team_can_change(void **state) {
    (void)state;
    char path[128];
    path_of_added(put_trial(red, 2, 1200, ",\"shared\":\"team\""), path);
    assert_problem(ask_as(blue, "PATCH", path, "{\"shared\":\"all\"}"), 404, "not-found");
    cJSON *record = reply_json(ask_as(red, "PATCH", path, "{\"shared\":[\"blue\"]}"), 200);
    const cJSON *shared = cJSON_GetObjectItemCaseSensitive(record, "shared");
    assert_int_equal(cJSON_GetArraySize(shared), 1);
    assert_string_equal(shared->child->valuestring, "blue");
    cJSON_Delete(record);
    assert_int_equal(ask_as(blue, "GET", path, NULL)->status, 200);
    assert_problem(ask_as(blue, "PATCH", path, "{\"shared\":\"all\"}"), 403, "forbidden"); /* it may look */
    assert_problem(ask_as(looker, "PATCH", path, "{\"shared\":\"all\"}"), 403, "forbidden");
    cJSON_Delete(reply_json(ask_as(admin, "PATCH", path, "{\"shared\":\"team\"}"), 200));
    assert_problem(ask_as(blue, "GET", path, NULL), 404, "not-found");
    assert_problem(ask_as(red, "PATCH", path, "{}"), 422, "invalid");
    assert_problem(ask_as(red, "PATCH", path, "{\"shared\":\"all\",\"team\":\"blue\"}"), 422, "invalid");
    assert_problem(ask_as(red, "PATCH", path, "{\"shared\":[\"a b\"]}"), 422, "invalid");
    assert_problem(ask_as(red, "PATCH", "/api/v1/records/none", "{\"shared\":\"all\"}"), 404, "not-found");
}

/* A session of team red; its path. */
static void open_as_red(char path[128]) {
    cJSON *json =
        reply_json(ask_as(red, "POST", "/api/v1/sessions",
                          "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":"
                          "20},\"shared\":\"team\"}"),
                   201);
    snprintf(path, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

static void who_sees_a_session_can_be_changed_alone_and_when_it_has_ended(void **state) {
    (void)state;
    char path[128], tail[160], body[512], uid[160];
    open_as_red(path);
    snprintf(tail, sizeof tail, "%s/trials", path);
    snprintf(body, sizeof body, "{\"trials\":[{\"uid\":\"u1\",\"strategy\":\"%s\"," TRIAL ",\"iterations_us\":[9,9]}]}",
             strategies[0]);
    assert_int_equal(ask_as(red, "POST", tail, body)->status, 201);
    snprintf(uid, sizeof uid, "/api/v1/records/u1");
    assert_problem(ask_as(blue, "GET", path, NULL), 404, "not-found");
    cJSON *json = reply_json(ask_as(red, "PATCH", path, "{\"shared\":[\"blue\"]}"), 200);
    assert_int_equal(number_of(cJSON_GetObjectItemCaseSensitive(json, "budget"), "trials"), 20);
    cJSON_Delete(json);
    assert_int_equal(ask_as(blue, "GET", path, NULL)->status, 200);
    assert_int_equal(ask_as(blue, "GET", uid, NULL)->status, 200); /* and its trials */
    assert_problem(ask_as(blue, "PATCH", path, "{\"shared\":\"all\"}"), 403, "forbidden");
    assert_problem(ask_as(red, "PATCH", uid, "{\"shared\":\"all\"}"), 409, "conflict");
    snprintf(tail, sizeof tail, "%s:stop", path);
    assert_int_equal(ask_as(red, "POST", tail, NULL)->status, 200);
    assert_problem(ask_as(red, "PATCH", path, "{\"budget\":{\"trials\":30}}"), 409, "conflict");
    json = reply_json(ask_as(red, "PATCH", path, "{\"shared\":\"team\"}"), 200);
    assert_string_equal(text_of(json, "shared"), "team");
    assert_string_equal(text_of(json, "state"), "stopped");
    cJSON_Delete(json);
    assert_problem(ask_as(blue, "GET", uid, NULL), 404, "not-found");
    assert_problem(ask_as(red, "PATCH", path, "{}"), 422, "invalid");
}

/* A trial of the session at `path` that ends so; `runner` is what its client says that ran it, NULL: nothing. */
static void assert_ran_by(const char *path, const char *verb, const char *members, const char *runner,
                          const char *wanted) {
    char tail[200], body[256], said[64] = "";
    snprintf(tail, sizeof tail, "%s/trials:suggest", path);
    cJSON *json = reply_json(site_post(&site, tail, "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    snprintf(tail, sizeof tail, "%s/trials/%.0f:%s", path, number_of(trial, "number"), verb);
    cJSON_Delete(json);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,%s,\"runner\":1}", members);
    assert_problem(site_post(&site, tail, body), 422, "invalid");
    if (runner)
        snprintf(said, sizeof said, ",\"runner\":\"%s\"", runner);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,%s%s}", members, said);
    json = reply_json(site_post(&site, tail, body), 200);
    assert_string_equal(text_of(json, "runner"), wanted);
    cJSON_Delete(json);
    *strrchr(tail, ':') = '\0';
    json = reply_json(site_get(&site, tail), 200);
    assert_string_equal(text_of(json, "runner"), wanted);
    cJSON_Delete(json);
}

/* The session was opened before anybody knew who would run its trials. */
static void a_trial_says_what_ran_it(void **state) {
    (void)state;
    char path[128];
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{"
                                       "\"trials\":20}}"),
                             201);
    snprintf(path, sizeof path, "%s", text_of(json, "href"));
    cJSON_Delete(json);
    assert_ran_by(path, "complete", "\"iterations_us\":[9,9]", NULL, "ask");
    assert_ran_by(path, "complete", "\"iterations_us\":[9,9]", "lab", "lab");
    assert_ran_by(path, "fail", "\"reason\":\"it broke\"", "mpirun", "mpirun");
}

static void restart(void) {
    struct error err;
    server_stop(site.server, 5);
    service_close(site.service);
    assert_ok(service_open(&site.service_options, &site.service, &err));
    assert_ok(http_start(&site.options, site.service, &site.server, &err));
}

static int suggested_to(const char *token, const char *session, int count) {
    char path[200], body[100];
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"count\":%d}", count);
    cJSON *json = reply_json(ask_as(token, "POST", path, body), 200);
    const int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "trials"));
    cJSON_Delete(json);
    return n;
}

static void a_token_has_so_many_trials_a_day(void **state) {
    (void)state;
    char six[TOKEN_LENGTH + 1], session[128], path[200], batch[2048];
    make_token("six", "red", ROLE_RUN, 6, six);
    open_as_red(session);
    clock_sleep_us(600000); /* the service looks at its tokens again */
    assert_int_equal(put_trial(six, 0, 1000, "")->status, 201);
    assert_int_equal(suggested_to(six, session, 2), 2);
    restart();
    const int n = snprintf(batch, sizeof batch, "{\"records\":[");
    char *to = batch + n;
    for (int i = 0; i < 4; i++)
        to += sprintf(to,
                      "%s{\"uid\":\"q%d\",\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%.12s\"," TRIAL
                      ",\"iterations_us\":[9,9]}",
                      i ? "," : "", i, strategies[0]);
    strcpy(to, "]}");
    struct reply *r = ask_as(six, "POST", "/api/v1/records:batchCreate", batch); /* 3 are left */
    assert_problem(r, 429, "quota-exceeded");
    assert_in_range(atoi(reply_header(r, "Retry-After")), 86000, 86400);
    assert_problem(ask_as(red, "GET", "/api/v1/records/q0", NULL), 404, "not-found");         /* all or none */
    assert_int_equal(ask_as(red, "POST", "/api/v1/records:batchCreate", batch)->status, 201); /* who has no quota */
    assert_int_equal(ask_as(six, "POST", "/api/v1/records:batchCreate", batch)->status, 200); /* adds nothing: free */
    assert_int_equal(suggested_to(six, session, 10), 3);                                      /* as many as are left */
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    assert_problem(ask_as(six, "POST", path, "{\"client\":\"c\"}"), 429, "quota-exceeded");
    assert_problem(put_trial(six, 0, 1000, ""), 429, "quota-exceeded");
    assert_int_equal(ask_as(six, "GET", "/api/v1/records", NULL)->status, 200); /* looking is free */
    snprintf(path, sizeof path, "%s/trials/1:heartbeat", session);
    assert_int_equal(ask_as(six, "POST", path, "{\"client\":\"c\",\"attempt\":1}")->status, 200);
    restart();
    assert_problem(put_trial(six, 0, 1000, ""), 429, "quota-exceeded");
}

static void what_a_client_has_is_not_sent_again_while_it_is_there(void **state) {
    (void)state;
    char path[128], header[128];
    snprintf(path, sizeof path, "/api/v1/strategies/%s", strategies[0]);
    snprintf(header, sizeof header, "If-None-Match: \"%s\"\r\n", strategies[0]);
    struct reply *r = site_ask(&site, "GET", path, header, NULL);
    assert_int_equal(r->status, 304);
    assert_string_equal(r->body, "");
    cJSON *json = reply_json(site_get(&site, path), 200);
    assert_string_equal(text_of(json, "name"), "s0");
    cJSON_Delete(json);
    path[strlen(path) - 1] ^= 1; /* an id that nothing has */
    snprintf(header, sizeof header, "If-None-Match: \"%s\"\r\n", strrchr(path, '/') + 1);
    assert_problem(site_ask(&site, "GET", path, header, NULL), 404, "not-found");
}

/* ---- into a session ---- */

static void open_session(char path[128]) {
    cJSON *json =
        reply_json(site_post(&site, "/api/v1/sessions",
                             "{\"model\":\"toy\",\"cluster\":\"four\",\"seed\":5,\"ranker\":\"none\",\"budget\":"
                             "{\"trials\":20},\"final_rounds\":0}"),
                   201);
    snprintf(path, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

/* Take a trial; its number. */
static int take(const char *session) {
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"c\"}"), 200);
    const int number = (int)number_of(cJSON_GetObjectItemCaseSensitive(json, "trials")->child, "number");
    cJSON_Delete(json);
    return number;
}

static void finish(const char *session, int number, double us) {
    char tail[64], body[256];
    snprintf(tail, sizeof tail, "/trials/%d:complete", number);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[%g,%g]}", us, us);
    assert_int_equal(site_post_to(&site, session, tail, body)->status, 200);
}

static void write_import(int s, double us, const char *tail, char body[1024]) {
    snprintf(body, 1024,
             "{\"trials\":[{\"uid\":\"import-%d\",\"strategy\":\"%s\"," TRIAL ",\"iterations_us\":[%g,%g,%g]%s}]}", s,
             strategies[s], us, us, us, tail);
}

static struct reply *import(const char *session, int s, double us, const char *tail) {
    char body[1024];
    write_import(s, us, tail, body);
    return site_post_to(&site, session, "/trials", body);
}

static void assert_best(const char *session, const char *strategy, double us) {
    char path[256];
    snprintf(path, sizeof path, "%s/best", session);
    cJSON *json = reply_json(site_get(&site, path), 200);
    const cJSON *best = cJSON_GetObjectItemCaseSensitive(json, "best");
    assert_string_equal(text_of(best, "strategy_id"), strategy);
    assert_close(number_of(best, "measured_us"), us, 1e-12);
    cJSON_Delete(json);
}

static void a_session_learns_from_trials_that_it_is_given(void **state) {
    (void)state;
    char session[128];
    open_session(session);
    const int first = take(session), second = take(session);
    finish(session, first, 50000);
    cJSON *report = reply_json(import(session, 3, 12000, ""), 201);
    assert_int_equal(number_of(report, "added"), 1);
    cJSON_Delete(report);
    assert_best(session, strategies[3], 12000);
    assert_int_equal(import(session, 3, 12000, "")->status, 200); /* it is there */
    const int third = take(session);
    assert_int_equal(third, second + 2); /* the import has a number, too */
    finish(session, second, 60000);
    finish(session, third, 40000);
    cJSON *json = reply_json(site_get(&site, session), 200);
    assert_int_equal(number_of(json, "trials"), 4);
    assert_int_equal(number_of(json, "complete"), 4);
    cJSON_Delete(json);
    /* What it knows live is what it knows when it is read again. */
    server_stop(site.server, 5);
    service_close(site.service);
    struct error err;
    assert_ok(service_open(&site.service_options, &site.service, &err));
    assert_ok(http_start(&site.options, site.service, &site.server, &err));
    assert_best(session, strategies[3], 12000);
    assert_int_equal(take(session), third + 1);
}

/* Take the next trial and say what a run of its strategy would; whether the strategy has a consistency. */
static bool take_and_finish(const char *session, double us) {
    char tail[64], body[1024];
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    const bool stale = cJSON_HasObjectItem(cJSON_GetObjectItemCaseSensitive(trial, "strategy"), "consistency");
    snprintf(tail, sizeof tail, "/trials/%d:complete", (int)number_of(trial, "number"));
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[%g,%g]%s}", us, us,
             stale ? ",\"environment\":{\"updates\":{\"delay_mean\":1.5,\"delay_variance\":0.5,\"delay_largest\":2,"
                     "\"dropped_share\":0.1},\"training\":{\"rate\":0.03,\"momentum\":0.9,\"first\":1.6,\"least\":0.7,"
                     "\"target\":0.8,\"updates\":200,\"last\":0.75,\"reached_update\":120,\"reached_us\":4000000}}"
                   : "");
    cJSON_Delete(json);
    assert_int_equal(site_post_to(&site, session, tail, body)->status, 200);
    return stale;
}

/* The toy's variables and gradients are 557056 bytes: with as much a trial is handed out, with less none could be. */
static void a_session_keeps_to_its_memory(void **state) {
    (void)state;
    static const char *const wrong[] = {"0", "-1", "1.5", "true", "\"2\""};
    char body[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"memory_bytes\":%s}", wrong[i]);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, "/memory_bytes");
    }
    struct reply *r =
        site_post(&site, "/api/v1/sessions", "{\"model\":\"toy\",\"cluster\":\"four\",\"memory_bytes\":9}");
    assert_problem(r, 422, "infeasible");
    assert_contains(r->body, "nothing fits into 9 B on a device: the least that any needs is ");
    cJSON *json =
        reply_json(site_post(&site, "/api/v1/sessions",
                             "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":4},"
                             "\"final_rounds\":0,\"memory_bytes\":557056}"),
                   201);
    char session[128], page[160];
    assert_int_equal((int)number_of(json, "memory_bytes"), 557056);
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "allow_sharded"));
    snprintf(session, sizeof session, "%s", text_of(json, "href"));
    snprintf(page, sizeof page, "/sessions/%s", text_of(json, "id"));
    assert_contains(site_get(&site, page)->body, "memory of a device, at most");
    cJSON_Delete(json);
    for (int k = 0; k < 4; k++)
        take_and_finish(session, 40000 + k);
}

/* And goes on so after a restart. */
static void a_session_shards_where_it_is_asked_to(void **state) {
    (void)state;
    static const char *const wrong[] = {"\"batch\"", "true", "3"};
    char body[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"allow_sharded\":%s}", wrong[i]);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, "/allow_sharded");
    }
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\","
                                       "\"budget\":{\"trials\":4},\"final_rounds\":0,"
                                       "\"allow_sharded\":\"parameters\",\"allow_lossy\":true}"),
                             201);
    assert_string_equal(text_of(json, "allow_sharded"), "parameters");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "allow_lossy")));
    char session[128];
    snprintf(session, sizeof session, "%s", text_of(json, "href"));
    cJSON_Delete(json);
    for (int k = 0; k < 4; k++) {
        take_and_finish(session, 40000 + k);
        if (k == 1)
            restart();
    }
}

/* Take a trial, see that these limits let its strategy pass, and complete it. */
static void take_within(const char *session, const struct export_limits *limits) {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct error err;
    char tail[64];
    cJSON *model_json = cJSON_Parse(SITE_MODEL), *cluster_json = cJSON_Parse(SITE_CLUSTER);
    assert_ok(model_read(model_json, "model", &model, &err));
    assert_ok(cluster_read(cluster_json, "cluster", &cluster, &err));
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(trial, "strategy");
    assert_ok(strategy_read(said, "strategy", &model, &cluster, &strategy, &err));
    assert_ok(export_limits_check(limits, &strategy, &model, &cluster, &err));
    snprintf(tail, sizeof tail, "/trials/%d:complete", (int)number_of(trial, "number"));
    assert_int_equal(
        site_post_to(&site, session, tail, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[9000,9000]}")->status,
        200);
    strategy_release(&strategy);
    cluster_release(&cluster);
    model_release(&model);
    cJSON_Delete(json);
    cJSON_Delete(model_json);
    cJSON_Delete(cluster_json);
}

/* And goes on so after a restart. DDP can say two strategies of two gradients, both in one bucket or each in its own.
 */
static void a_session_tries_only_what_its_forms_can_say(void **state) {
    (void)state;
    static const struct {
        const char *members, *pointer;
    } wrong[] = {{"\"export_to\":\"horovod\"", "/export_to"},
                 {"\"export_to\":[\"hovorod\"]", "/export_to"},
                 {"\"export_to\":[]", "/export_to"},
                 {"\"export_to\":[\"nccl,horovod\"]", "/export_to/0"},
                 {"\"export_to\":[\"horovod\"],\"accept\":[\"nothing\"]", "/accept"},
                 {"\"accept\":[\"groups\"]", "/accept"}};
    char body[256], session[128];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",%s}", wrong[i].members);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, wrong[i].pointer);
    }
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\","
                                       "\"budget\":{\"trials\":6},\"final_rounds\":0,"
                                       "\"export_to\":[\"pytorch-ddp\"],\"accept\":[\"groups\"]}"),
                             201);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "export_to")->child->valuestring, "pytorch-ddp");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "accept")->child->valuestring, "groups");
    snprintf(session, sizeof session, "%s", text_of(json, "href"));
    cJSON_Delete(json);
    struct export_limits limits;
    struct error err;
    assert_ok(export_limits_parse("pytorch-ddp", "groups", &limits, &err));
    take_within(session, &limits);
    restart();
    take_within(session, &limits);
    json = reply_json(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"c\"}"), 200);
    assert_string_equal(text_of(json, "next"), "over");
    cJSON_Delete(json);
}

/* Each form is a word of its own, as it was in the request. */
static void a_session_says_in_which_forms_it_can_be_exported(void **state) {
    (void)state;
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\","
                                       "\"export_to\":[\"pytorch-ddp\",\"nccl\"]}"),
                             201);
    const cJSON *forms = cJSON_GetObjectItemCaseSensitive(json, "export_to");
    assert_int_equal(cJSON_GetArraySize(forms), 2);
    assert_string_equal(cJSON_GetArrayItem(forms, 0)->valuestring, "pytorch-ddp");
    assert_string_equal(cJSON_GetArrayItem(forms, 1)->valuestring, "nccl");
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "accept"));
    cJSON_Delete(json);
}

/* ---- what clients can execute ---- */

/* Ask for a trial as `client`, who can execute what the member `can` says. */
static cJSON *ask_able(const char *session, const char *client, const char *can) {
    char body[128];
    snprintf(body, sizeof body, "{\"client\":\"%s\",\"lease_s\":1%s}", client, can);
    return reply_json(site_post_to(&site, session, "/trials:suggest", body), 200);
}

static bool names_algorithm(const cJSON *trial, const char *algorithm) {
    const cJSON *groups =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(trial, "strategy"), "groups");
    const cJSON *group;
    bool found = false;
    cJSON_ArrayForEach(group, groups) {
        const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(group, "algorithm"));
        found |= own && !strcmp(own, algorithm);
    }
    return found;
}

static void finish_at(const char *session, const char *client, const cJSON *trial, double us) {
    char tail[64], body[128];
    snprintf(tail, sizeof tail, "/trials/%d:complete", (int)number_of(trial, "number"));
    snprintf(body, sizeof body, "{\"client\":\"%s\",\"attempt\":%d,\"iterations_us\":[%g,%g]}", client,
             (int)number_of(trial, "attempt"), us, us);
    assert_int_equal(site_post_to(&site, session, tail, body)->status, 200);
}

static void open_able(char session[128], const char *algorithms) {
    char body[256];
    snprintf(
        body, sizeof body,
        "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":60},\"final_rounds\":0%s}",
        algorithms);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions", body), 201);
    snprintf(session, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

static void abilities_are_read_with_care(void **state) {
    (void)state;
    static const struct {
        const char *list, *pointer;
    } wrong[] = {{"\"ring\"", "/algorithms"},          {"[]", "/algorithms"},
                 {"[\"rings\"]", "/algorithms"},       {"[\"all_gather\"]", "/algorithms"},
                 {"[\"ring,tree\"]", "/algorithms/0"}, {"[\"ring\",7]", "/algorithms/1"}};
    char body[256], session[128];
    open_able(session, "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"algorithms\":%s}", wrong[i].list);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, wrong[i].pointer);
        snprintf(body, sizeof body, "{\"client\":\"c\",\"algorithms\":%s}", wrong[i].list);
        r = site_post_to(&site, session, "/trials:suggest", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, wrong[i].pointer);
    }
}

/* The first of these that the trial's strategy names, or -1. */
static const char *const abilities[] = {"ring", "tree", "recursive_doubling", "halving_doubling"};
enum { ABILITIES = 4 };
static int ability_of(const cJSON *trial) {
    for (int i = 0; i < ABILITIES; i++)
        if (names_algorithm(trial, abilities[i]))
            return i;
    return -1;
}

/* "algorithms" with all of them but one (-1: with all). */
static void write_abilities(int without, char out[128]) {
    int n = snprintf(out, 128, ",\"algorithms\":[\"double_tree\"");
    for (int i = 0; i < ABILITIES; i++)
        if (i != without)
            n += snprintf(out + n, 128 - (size_t)n, ",\"%s\"", abilities[i]);
    snprintf(out + n, 128 - (size_t)n, "]");
}

/* An algorithm is tried until somebody comes who has it not; then no more, also after a restart. */
static void nothing_is_tried_that_somebody_who_asks_cannot_execute(void **state) {
    (void)state;
    char session[128], path[192], can[128];
    struct error err;
    assert_ok(hub_start(site.service->hub, &err)); /* it ends leases */
    write_abilities(-1, can);
    open_able(session, can);
    cJSON *left = NULL;
    for (int i = 0; i < 30 && !left; i++) {
        cJSON *json = ask_able(session, "all", i % 2 ? "" : can);
        cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
        assert_false(names_algorithm(trial, "hierarchical"));
        if (ability_of(trial) >= 0)
            left = cJSON_Duplicate(trial, true); /* nobody finishes it */
        else
            finish_at(session, "all", trial, 50000 - 100 * i);
        cJSON_Delete(json);
    }
    assert_non_null(left);
    const int lacks = ability_of(left);
    write_abilities(lacks, can);
    for (int i = 0; i < 8; i++) {
        if (i == 2)
            clock_sleep_us(2.5e6); /* the lease of the one that is left runs out */
        if (i == 4)
            restart();
        cJSON *json = ask_able(session, "some", i < 4 ? can : "");
        cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
        assert_false(names_algorithm(trial, abilities[lacks]));
        finish_at(session, "some", trial, 40000 - 100 * i);
        cJSON_Delete(json);
    }
    snprintf(path, sizeof path, "%s/trials/%d", session, (int)number_of(left, "number"));
    cJSON *json = reply_json(site_get(&site, path), 200);
    assert_string_equal(text_of(json, "state"), "cancelled");
    assert_string_equal(text_of(json, "reason"), "not everybody who asks for trials can execute its algorithm");
    cJSON_Delete(json);
    cJSON_Delete(left);
    char body[128];
    snprintf(body, sizeof body, "{\"client\":\"other\",\"algorithms\":[\"%s\"]}", abilities[lacks]);
    struct reply *r = site_post_to(&site, session, "/trials:suggest", body);
    assert_problem(r, 409, "conflict");
    assert_non_null(strstr(r->body, " alone, for those who asked before"));
}

static void a_session_tries_stale_models_where_it_is_asked_to(void **state) {
    (void)state;
    static const char *const wrong[] = {"0", "1001", "-1", "1.5", "true", "\"2\""};
    char body[256], path[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"allow_stale\":%s}", wrong[i]);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, "/allow_stale");
    }
    cJSON *json =
        reply_json(site_post(&site, "/api/v1/sessions",
                             "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":7},"
                             "\"final_rounds\":0,\"allow_stale\":2}"),
                   201);
    char session[128];
    snprintf(session, sizeof session, "%s", text_of(json, "href"));
    cJSON_Delete(json);
    for (int k = 0; k < 7; k++) {
        assert_int_equal(take_and_finish(session, k < 3 ? 50000 : 40000 + k), k >= 3);
        if (k == 4)
            restart(); /* in the midst of them */
    }
    snprintf(path, sizeof path, "%s/outcome", session);
    json = reply_json(site_get(&site, path), 200);
    const cJSON *stale = cJSON_GetObjectItemCaseSensitive(json, "stale");
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(stale, "training");
    assert_string_equal(text_of(json, "state"), "done");
    assert_int_equal(number_of(stale, "allowed"), 2);
    assert_close(number_of(stale, "delay_largest"), 2, 0);
    assert_close(number_of(cJSON_GetObjectItemCaseSensitive(json, "best"), "measured_us"), 50000, 1e-9);
    assert_close(number_of(cJSON_GetObjectItemCaseSensitive(stale, "speedup"), "mean"), 50000 / 40004.0, 1e-9);
    assert_close(number_of(cJSON_GetObjectItemCaseSensitive(training, "gain"), "mean"), 120 / 4 * 50000 / 4e6, 1e-9);
    assert_true(cJSON_HasObjectItem(cJSON_GetObjectItemCaseSensitive(json, "stale_strategy"), "consistency"));
    assert_false(cJSON_HasObjectItem(cJSON_GetObjectItemCaseSensitive(json, "strategy"), "consistency"));
    cJSON_Delete(json);
}

/* ---- in weather ---- */

#define STORMY                                                                                                         \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"stormy\",\"nodes\":[{\"name\":\"n\",\"count\":4,"                  \
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}],\"variability\":{\"network\":{\"every_us\":500000,\"rates\":["       \
    "{\"gbit_per_s\":0.2,\"share\":0.3},{\"gbit_per_s\":1,\"share\":0.7}]}}}"

static void weather_must_fit_the_cluster_the_ranker_and_the_runner(void **state) {
    (void)state;
    static const struct {
        const char *cluster, *rest, *pointer;
    } wrong[] = {{"stormy", "", "/cluster"},
                 {"stormy", ",\"weather\":false", "/cluster"},
                 {"stormy", ",\"weather\":1", "/weather"},
                 {"stormy", ",\"weather\":true,\"ranker\":\"nearest\"", "/ranker"},
                 {"stormy", ",\"weather\":true,\"runner\":\"local\"", "/runner"},
                 {"four", ",\"weather\":true", "/cluster"}};
    assert_int_equal(site_post(&site, "/api/v1/clusters", STORMY)->status, 201);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"%s\"%s}", wrong[i].cluster, wrong[i].rest);
        struct reply *r = site_post(&site, "/api/v1/sessions", body);
        assert_problem(r, 422, "invalid");
        assert_pointer(r, wrong[i].pointer);
    }
    assert_int_equal(items_of(site_get(&site, "/api/v1/sessions")), 0);
}

/* Open a session of 16 trials in weather 4; its path. */
static void open_in_weather(char path[128]) {
    assert_int_equal(site_post(&site, "/api/v1/clusters", STORMY)->status, 201);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"stormy\",\"weather\":true,\"seed\":4,"
                                       "\"trial_us\":100000,\"budget\":{\"trials\":16},\"final_rounds\":2}"),
                             201);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "weather")));
    snprintf(path, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

/* Report three iterations of us, us and 4 * us: their mean is twice their median. `environment` is JSON. */
static struct reply *finish_in_weather(const char *session, int number, double us, const char *environment) {
    char tail[64], body[256];
    snprintf(tail, sizeof tail, "/trials/%d:complete", number);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[%g,%g,%g],\"environment\":%s}", us,
             us, 4 * us, environment);
    return site_post_to(&site, session, tail, body);
}

/* The strategies that were suggested, in this order; one takes (10 + its place) ms. */
static struct {
    size_t n;
    char ids[16][ID_LENGTH + 1];
} suggested;

static double us_of(const char *strategy) {
    size_t place = 0;
    while (place < suggested.n && strcmp(suggested.ids[place], strategy) != 0)
        place++;
    assert_true(place < 16);
    if (place == suggested.n)
        snprintf(suggested.ids[suggested.n++], sizeof *suggested.ids, "%s", strategy);
    return 10000 + 1000 * (double)place;
}

/* Take the next trial and run it, after answers that do not say its weather. */
static void run_in_weather(const char *session) {
    static const char *const wrong[] = {
        "{}", "{\"weather\":3}", "{\"weather\":4.5}", "{\"weather\":\"4\"}", "{\"weather\":1e300}", "{\"weather\":-4}"};
    char right[64];
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    const int number = (int)number_of(trial, "number"), weather = 4 + (int)number_of(trial, "round");
    const double us = us_of(text_of(trial, "strategy_id"));
    assert_int_equal(number_of(trial, "weather"), weather);
    assert_false(cJSON_HasObjectItem(trial, "give_up_us"));
    cJSON_Delete(json);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reply *r = finish_in_weather(session, number, us, wrong[i]);
        assert_problem(r, 422, "invalid");
        assert_contains(r->body, "its environment must say so");
    }
    snprintf(right, sizeof right, "{\"weather\":%d}", weather);
    assert_int_equal(finish_in_weather(session, number, us, right)->status, 200);
}

/* The event of a trial's end tells the mean: 20 ms for the first, whose median is 10 ms, and more for others. */
static void assert_events_tell_means(const char *session) {
    struct error err;
    struct store *store;
    struct arena arena = {0};
    struct stored_event *events;
    size_t n, ends = 0;
    assert_ok(store_open(site.dataset, STORE_READ_ONLY, &store, &err));
    assert_ok(event_list(store, session, 0, 0, &arena, &n, &events, &err));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(events[i].kind, "trial-ended") != 0)
            continue;
        cJSON *json = cJSON_Parse(events[i].content);
        assert_true(number_of(json, "measured_us") >= 20000);
        ends++;
        cJSON_Delete(json);
    }
    assert_int_equal(ends, 15);
    arena_release(&arena);
    store_close(store);
}

static void a_session_in_weather_goes_by_means_of_trials_that_met_it(void **state) {
    (void)state;
    char session[128], path[256];
    suggested.n = 0;
    open_in_weather(session);
    struct reply *r = import(session, 0, 50000, "");
    assert_problem(r, 422, "invalid");
    assert_pointer(r, "/trials/0");
    assert_int_equal(import(session, 0, 50000, ",\"environment_details\":{\"weather\":4}")->status, 201);
    for (int k = 0; k < 15; k++) {
        run_in_weather(session);
        if (k == 5)
            restart();
    }
    snprintf(path, sizeof path, "%s/outcome", session);
    cJSON *json = reply_json(site_get(&site, path), 200);
    const cJSON *weather = cJSON_GetObjectItemCaseSensitive(json, "weather");
    const cJSON *best = cJSON_GetObjectItemCaseSensitive(json, "best");
    const cJSON *quiet = cJSON_GetObjectItemCaseSensitive(weather, "quiet_best");
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(weather, "loss");
    assert_string_equal(text_of(json, "state"), "done");
    assert_int_equal(number_of(weather, "seed"), 4);
    assert_string_equal(text_of(best, "strategy"), suggested.ids[0]);
    assert_close(number_of(best, "measured_us"), 2 * 10000, 1e-9);
    assert_close(number_of(best, "p95_us"), 4 * 10000, 1e-9);
    assert_int_equal(number_of(loss, "rounds"), 2);
    assert_close(number_of(loss, "mean"), us_of(text_of(quiet, "strategy")) / 10000, 1e-9);
    cJSON_Delete(json);
    assert_events_tell_means(strrchr(session, '/') + 1);
    snprintf(path, sizeof path, "/sessions/%s", strrchr(session, '/') + 1);
    assert_contains(site_get(&site, path)->body, "times are means of an iteration");
}

static void a_session_takes_only_trials_of_its_own_domain(void **state) {
    (void)state;
    char session[128], body[2048];
    open_session(session);
    assert_int_equal(site_post(&site, "/api/v1/models",
                               "{\"schema\":\"syncopate.model/1\",\"name\":\"other\",\"batch_per_device\":1,"
                               "\"variables\":[{\"name\":\"z\",\"shape\":[8,8],\"dtype\":\"f32\"}],\"layers\":[{"
                               "\"name\":\"l\",\"forward_us\":10,\"backward_us\":20,\"variables\":[\"z\"]}]}")
                         ->status,
                     201);
    cJSON *other = reply_json(
        site_post(&site, "/api/v1/strategies", "{\"model\":\"other\",\"cluster\":\"four\",\"baseline\":\"wfbp\"}"),
        201);
    snprintf(body, sizeof body,
             "{\"trials\":[{\"strategy\":\"%s\"," TRIAL ",\"iterations_us\":[9]},{\"strategy\":\"%s\"," TRIAL
             ",\"iterations_us\":[9]}]}",
             strategies[0], text_of(other, "id"));
    cJSON_Delete(other);
    struct reply *r = site_post_to(&site, session, "/trials", body);
    assert_problem(r, 422, "invalid");
    assert_pointer(r, "/trials/1");
    other = reply_json(
        site_post(&site, "/api/v1/strategies", "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"ssp\"}"), 201);
    snprintf(body, sizeof body, "{\"trials\":[{\"strategy\":\"%s\"," TRIAL ",\"iterations_us\":[9]}]}",
             text_of(other, "id"));
    cJSON_Delete(other);
    r = site_post_to(&site, session, "/trials", body);
    assert_problem(r, 422, "invalid");
    assert_contains(r->body, "has a \\\"consistency\\\"");
    r = import(session, 0, 10, ",\"model\":\"other\",\"cluster\":\"four\"");
    assert_problem(r, 422, "invalid");
    assert_pointer(r, "/trials/0");
    assert_int_equal(import(session, 0, 10, ",\"model\":\"toy\",\"cluster\":\"four\"")->status, 201);
    snprintf(body, sizeof body, "{\"trials\":[{\"strategy\":\"%s\"," TRIAL ",\"median_us\":9,\"mean_us\":9}]}",
             strategies[1]);
    assert_problem(site_post_to(&site, session, "/trials", body), 422, "invalid"); /* nothing to learn from */
    assert_int_equal(count_as(NULL), 1);
    assert_int_equal(site_post_to(&site, session, ":stop", NULL)->status, 200);
    assert_problem(import(session, 1, 10, ""), 409, "conflict");
    assert_problem(site_post(&site, "/api/v1/sessions/none/trials", body), 404, "not-found");
}

/* As another service: have a session. `after`: once the site has had it. */
static void have(struct store *store, const char *id, bool after, char name[80]) {
    struct error err = {0};
    const double until = clock_now_us() + 2e6;
    bool taken = after;
    snprintf(name, 80, "search %s", id);
    while (after && taken && clock_now_us() < until) {
        assert_ok(store_claim(store, name, 0, &taken, &err));
        if (taken)
            store_unclaim(store, name);
        clock_sleep_us(taken ? 300 : 0);
    }
    for (taken = false; !taken;)
        assert_ok(store_claim(store, name, 0, &taken, &err));
}

/* Move it to another cluster, and let it go. */
static enum status move(struct store *store, const char *id, const struct id *cluster, const char *name) {
    struct error err = {0};
    clock_sleep_us(300e3); /* the import waits for it */
    const enum status status = store_session_move(store, id, cluster->hex, &err);
    store_unclaim(store, name);
    return status;
}

static void make_cluster(double latency_us, struct id *out) {
    char body[256];
    snprintf(body, sizeof body,
             "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":4,"
             "\"nic_gbit_per_s\":1,\"nic_latency_us\":%g}]}",
             latency_us);
    cJSON *json = reply_json(site_post(&site, "/api/v1/clusters", body), 201);
    snprintf(out->hex, sizeof out->hex, "%s", text_of(json, "id"));
    cJSON_Delete(json);
}

static int send_import(const char *session) {
    char body[1024], head[512];
    write_import(0, 50, "", body);
    snprintf(head, sizeof head,
             "POST %s/trials HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             session, strlen(body));
    const int fd = site_connect(&site);
    assert_true(site_say(fd, head) && site_say(fd, body));
    return fd;
}

/* A trial is never about another cluster than its session, whichever service writes first. The session moves twice:
 * after the first time its search is to be read anew, and the request begins again. The second time may come too late,
 * after the import. */
static void a_trial_is_about_the_cluster_that_its_session_moved_to(void **state) {
    if (!test_database())
        skip(); /* a file has one service */
    (void)state;
    static char reply[1 << 16];
    struct error err = {0};
    struct check_report report;
    struct store *other;
    struct id clusters[2];
    char session[128], name[80];
    int status = 0;
    make_cluster(51, &clusters[0]);
    make_cluster(52, &clusters[1]);
    open_session(session);
    assert_ok(store_open(site.dataset, STORE_READ_WRITE, &other, &err));
    const char *id = strrchr(session, '/') + 1;
    have(other, id, false, name);
    const int fd = send_import(session);
    bool late = move(other, id, &clusters[0], name);
    have(other, id, true, name);
    late |= move(other, id, &clusters[1], name);
    site_hear(fd, NULL, 60, reply, sizeof reply, NULL);
    close(fd);
    assert_int_equal(sscanf(reply, "HTTP/1.1 %d", &status), 1);
    assert_true(status == 201 || (status == 503 && strstr(reply, "moved to another cluster") && !late));
    assert_int_equal(import(session, 0, 50, "")->status, status == 503 ? 201 : 200);
    assert_ok(check_run(other, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
    store_close(other);
}

/* ---- rankers and operations ---- */

/* Ask until the operation of this path has ended; the caller's. */
static cJSON *await(const char *token, const char *path) {
    const double until = clock_now_us() + 20e6;
    for (;;) {
        cJSON *json = reply_json(ask_as(token, "GET", path, NULL), 200);
        if (strcmp(text_of(json, "state"), "running"))
            return json;
        cJSON_Delete(json);
        assert_true(clock_now_us() < until);
        clock_sleep_us(20000);
    }
}

/* Train; the operation when it has ended, the caller's. */
static cJSON *train(const char *token, const char *body, char path[128]) {
    struct reply *r = ask_as(token, "POST", "/api/v1/rankers", body);
    const char *location = reply_header(r, "Location");
    assert_non_null(location);
    snprintf(path, 128, "%.127s", location);
    cJSON *json = reply_json(r, 202);
    assert_string_equal(text_of(json, "href"), path);
    assert_string_equal(text_of(json, "state"), "running");
    cJSON_Delete(json);
    return await(token, path);
}

static void a_ranker_is_trained_while_others_are_served(void **state) {
    (void)state;
    char path[128], href[128];
    for (int i = 0; i < STRATEGIES; i++)
        assert_int_equal(put_trial(NULL, i, 20000 - 500 * i, "")->status, 201);
    assert_int_equal(items_of(site_get(&site, "/api/v1/rankers")), 0);
    cJSON *done = train(NULL,
                        "{\"kind\":\"linear\",\"name\":\"mine\",\"held_out\":0.25,\"seed\":3,"
                        "\"domains\":[{\"model\":\"toy\",\"cluster\":\"four\",\"runner\":\"mpirun\"}]}",
                        path);
    if (strcmp(text_of(done, "state"), "done"))
        print_error("%s\n", cJSON_Print(done));
    assert_string_equal(text_of(done, "state"), "done");
    const cJSON *result = cJSON_GetObjectItemCaseSensitive(done, "result");
    assert_string_equal(text_of(result, "name"), "mine");
    assert_int_equal(number_of(result, "trials"), STRATEGIES * 3 / 4);
    snprintf(href, sizeof href, "/api/v1/rankers/%s", text_of(result, "ranker"));
    cJSON_Delete(done);
    struct reply *r = site_get(&site, href);
    cJSON *ranker = reply_json(r, 200);
    assert_string_equal(text_of(ranker, "kind"), "linear");
    assert_int_equal(number_of(ranker, "held_out"), STRATEGIES / 4);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ranker, "usable")));
    const cJSON *domain = cJSON_GetObjectItemCaseSensitive(ranker, "domains")->child;
    assert_string_equal(text_of(domain, "model"), "toy");
    cJSON_Delete(ranker);
    assert_int_equal(site_get(&site, "/api/v1/rankers/mine")->status, 200);
    assert_int_equal(items_of(site_get(&site, "/api/v1/rankers?name=mine")), 1);
    assert_problem(site_get(&site, "/api/v1/rankers/none"), 404, "not-found");
    done = train(NULL, "{\"from\":\"mine\",\"name\":\"mine-on\"}", path); /* trained on */
    assert_string_equal(text_of(done, "state"), "done");
    cJSON_Delete(done);
    assert_int_equal(items_of(site_get(&site, "/api/v1/rankers")), 2);
    assert_int_equal(items_of(site_get(&site, "/api/v1/operations")), 2);
}

static void training_that_cannot_be_is_refused_or_fails(void **state) {
    static const char *const bodies[] = {"{\"kind\":\"oracle\"}",
                                         "{\"domains\":[]}",
                                         "{\"domains\":[{}]}",
                                         "{\"domains\":[{\"model\":\"toy\"}],\"filter\":\"model=toy\"}",
                                         "{\"filter\":\"model=\"}",
                                         "{\"domains\":[{\"colour\":\"red\"}]}",
                                         "{\"held_out\":1}",
                                         "{\"from\":\"mine\",\"kind\":\"trees\"}",
                                         "{\"seed\":-1}"};
    (void)state;
    char path[128];
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_problem(site_post(&site, "/api/v1/rankers", bodies[i]), 422, "invalid");
    assert_int_equal(items_of(site_get(&site, "/api/v1/operations")), 0);
    cJSON *failed = train(NULL, "{\"filter\":\"model = toy\"}", path);
    assert_string_equal(text_of(failed, "state"), "failed");
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(failed, "error"), "code"), "not-found");
    assert_null(cJSON_GetObjectItemCaseSensitive(failed, "result"));
    cJSON_Delete(failed);
    failed = train(NULL, "{\"from\":\"nobody\"}", path);
    assert_string_equal(text_of(failed, "state"), "failed");
    cJSON_Delete(failed);
}

static void a_key_makes_a_repeated_training_one(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            site_ask(&site, "POST", "/api/v1/rankers", "Idempotency-Key: t\r\n", "{\"kind\":\"linear\"}")->status, 202);
    assert_int_equal(items_of(site_get(&site, "/api/v1/operations")), 1);
}

static void a_team_trains_on_what_it_sees_and_sees_its_operations(void **state) {
    (void)state;
    char path[128];
    for (int i = 0; i < STRATEGIES; i++)
        assert_int_equal(put_trial(red, i, 20000 - 500 * i, ",\"shared\":\"team\"")->status, 201);
    cJSON *json = train(blue, "{\"kind\":\"linear\"}", path);
    assert_string_equal(text_of(json, "state"), "failed");
    cJSON_Delete(json);
    json = train(red, "{\"kind\":\"linear\"}", path);
    assert_string_equal(text_of(json, "state"), "done");
    cJSON_Delete(json);
    assert_problem(ask_as(blue, "GET", path, NULL), 404, "not-found");
    assert_int_equal(ask_as(admin, "GET", path, NULL)->status, 200);
    assert_int_equal(items_of(ask_as(blue, "GET", "/api/v1/operations", NULL)), 1);
    assert_int_equal(items_of(ask_as(admin, "GET", "/api/v1/operations", NULL)), 2);
    assert_problem(ask_as(looker, "POST", "/api/v1/rankers", "{}"), 403, "forbidden");
    json = reply_json(ask_as(admin, "GET", "/api/v1/operations?page_size=1", NULL), 200);
    char next[128];
    snprintf(next, sizeof next, "/api/v1/operations?page_token=%s", text_of(json, "next_page_token"));
    cJSON_Delete(json);
    json = reply_json(ask_as(admin, "GET", next, NULL), 200);
    assert_string_equal(text_of(json, "next_page_token"), "");
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(json, "items")->child, "team"), "blue");
    cJSON_Delete(json);
}

/* The ranker that a new session of this token's team has taken, as the dataset says; "" none. */
static void ranker_of_session(const char *token, const char *ranker, char out[80]) {
    struct error err;
    struct store *store;
    struct stored_session stored;
    char body[400];
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":20}%s%s%s}",
             ranker ? ",\"ranker\":\"" : "", ranker ? ranker : "", ranker ? "\"" : "");
    cJSON *json = reply_json(ask_as(token, "POST", "/api/v1/sessions", body), 201);
    assert_ok(store_open(site.dataset, STORE_READ_ONLY, &store, &err));
    struct arena arena = {0};
    assert_ok(store_session_get(store, text_of(json, "id"), &arena, &stored, &err));
    cJSON *options = cJSON_Parse(stored.options);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(options, "ranker"));
    snprintf(out, 80, "%s", id ? id : "");
    cJSON_Delete(options);
    cJSON_Delete(json);
    arena_release(&arena);
    store_close(store);
}

/* The id of a ranker that red trained, `more` being members of the request. */
static void train_as_red(const char *more, char id[80]) {
    char path[128], body[160];
    snprintf(body, sizeof body, "{\"kind\":\"linear\"%s}", more);
    cJSON *json = train(red, body, path);
    snprintf(id, 80, "%s", text_of(cJSON_GetObjectItemCaseSensitive(json, "result"), "ranker"));
    cJSON_Delete(json);
}

static void a_ranker_is_its_teams_unless_it_is_shared(void **state) {
    (void)state;
    char id[80], taken[80], path[160], body[200];
    for (int i = 0; i < STRATEGIES; i++)
        assert_int_equal(put_trial(red, i, 20000 - 500 * i, "")->status, 201);
    train_as_red("", id);
    snprintf(path, sizeof path, "/api/v1/rankers/%s", id);
    assert_int_equal(ask_as(red, "GET", path, NULL)->status, 200);
    assert_int_equal(ask_as(admin, "GET", path, NULL)->status, 200);
    assert_problem(ask_as(blue, "GET", path, NULL), 404, "not-found");
    assert_int_equal(items_of(ask_as(red, "GET", "/api/v1/rankers", NULL)), 1);
    assert_int_equal(items_of(ask_as(blue, "GET", "/api/v1/rankers", NULL)), 0);
    ranker_of_session(red, NULL, taken);
    assert_string_equal(taken, id);
    ranker_of_session(blue, NULL, taken);
    assert_string_equal(taken, "");
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"%s\"}", id);
    assert_problem(ask_as(blue, "POST", "/api/v1/sessions", body), 404, "not-found");
    train_as_red(",\"shared\":[\"blue\"]", taken);
    assert_string_equal(taken, id); /* the same trials make the same one */
    assert_int_equal(ask_as(blue, "GET", path, NULL)->status, 200);
    ranker_of_session(blue, id, taken);
    assert_string_equal(taken, id);
}

/* The service, on the dataset that it had. */
static void start_again(void) {
    struct error err;
    site.service_options.access.dataset = site.dataset;
    assert_ok(service_open(&site.service_options, &site.service, &err));
    assert_ok(http_start(&site.options, site.service, &site.server, &err));
}

/* Kilobytes, the most that this process ever had in memory. */
static long peak_memory(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Each session's model has a megabyte, and the list has its name. */
static void a_list_of_sessions_reads_no_models(void **state) {
    enum { SESSIONS = 200, SIZE = 1 << 20 };
    (void)state;
    struct error err;
    struct store *store;
    struct id model, cluster;
    char *content = malloc(SIZE + 16), name[32];
    assert_non_null(content);
    site_stop(&site);
    snprintf(content, SIZE + 16, "{\"a\":\"%0*d\"}", SIZE, 0);
    assert_ok(store_open(site.dataset, STORE_READ_WRITE, &store, &err));
    assert_ok(put_object(store, STORE_MODEL, "large", content, &model, &err));
    assert_ok(put_object(store, STORE_CLUSTER, "small", "{\"a\":1}", &cluster, &err));
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(name, sizeof name, "s-%d", i);
        const struct stored_session session = {
            .id = name, .model = model.hex, .cluster = cluster.hex, .budget = "{}", .options = "{}"};
        assert_ok(store_session_begin(store, &session, &err));
    }
    store_close(store);
    free(content);
    start_again();
    const long before = peak_memory();
    cJSON *json = reply_json(site_get(&site, "/api/v1/sessions?page_size=200"), 200);
    assert_true(peak_memory() - before < SESSIONS / 4 * (SIZE / 1024));
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items");
    assert_int_equal(cJSON_GetArraySize(items), SESSIONS);
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(items->child, "model"), "name"), "large");
    cJSON_Delete(json);
}

static void what_was_running_when_the_service_died_has_failed(void **state) {
    (void)state;
    struct error err;
    struct store *store;
    char id[OPERATION_ID_ROOM], path[128];
    site_stop(&site);
    assert_ok(store_open(site.dataset, STORE_READ_WRITE, &store, &err));
    assert_ok(operation_begin(store, "train-ranker", "local", "{}", id, &err));
    store_close(store);
    start_again();
    snprintf(path, sizeof path, "/api/v1/operations/%s", id);
    cJSON *json = reply_json(site_get(&site, path), 200);
    assert_string_equal(text_of(json, "state"), "failed");
    assert_contains(text_of(cJSON_GetObjectItemCaseSensitive(json, "error"), "detail"), "the service ended");
    cJSON_Delete(json);
}

static void stopping_ends_what_runs_and_what_waits(void **state) {
    enum { N = 5 };
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct store *store;
    struct stored_operation *list;
    size_t n, failed = 0;
    for (int i = 0; i < STRATEGIES; i++)
        assert_int_equal(put_trial(NULL, i, 20000 - 500 * i, "")->status, 201);
    for (int i = 0; i < N; i++)
        assert_int_equal(site_post(&site, "/api/v1/rankers", "{\"kind\":\"gat\"}")->status, 202);
    site_stop(&site);
    assert_ok(store_open(site.dataset, STORE_READ_ONLY, &store, &err));
    assert_ok(operation_list(store, &(struct operation_query){0}, 0, &arena, &n, &list, &err));
    assert_int_equal(n, N);
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(list[i].state, OPERATION_RUNNING);
        failed += list[i].state == OPERATION_FAILED && strstr(list[i].result, "the service ended");
    }
    assert_true(failed > 0); /* the last at least: it waited */
    arena_release(&arena);
    store_close(store);
    start_again();
}

static struct reply *put_uid(const char *token, const char *uid, int us) {
    char body[600];
    snprintf(
        body, sizeof body,
        "{\"shared\":\"team\",\"records\":[{\"uid\":\"%s\",\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%s\","
        "\"proposer\":\"p\",\"runner\":\"lab\",\"iterations_us\":[%d]}]}",
        uid, strategies[0], us);
    return ask_as(token, "POST", "/api/v1/records:batchCreate", body);
}

static void a_uid_of_a_hidden_trial_tells_nothing_of_it(void **state) {
    (void)state;
    static const char words[] = "uid hidden-1 cannot be used here; leave it out, and one is made";
    assert_int_equal(put_uid(red, "hidden-1", 1000)->status, 201);
    assert_int_equal(put_uid(red, "hidden-1", 1000)->status, 200); /* its own: a duplicate */
    for (int us = 1000; us <= 1001; us++) {                        /* the same content, and other */
        struct reply *reply = put_uid(blue, "hidden-1", us);
        assert_problem(reply, 409, "conflict");
        assert_contains(reply->body, words);
        assert_null(strstr(reply->body, "_us"));
    }
    assert_int_equal(put_uid(admin, "hidden-1", 1001)->status, 409);
    assert_int_equal(put_uid(blue, "hidden-2", 1000)->status, 201);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define OPEN(name)  cmocka_unit_test_setup_teardown(name, set_up_open, tear_down)
#define TEAMS(name) cmocka_unit_test_setup_teardown(name, set_up_teams, tear_down)
        OPEN(a_record_comes_back_as_it_was_sent),
        OPEN(what_was_exported_can_be_sent_again),
        OPEN(a_batch_goes_in_whole_or_not_at_all),
        OPEN(a_uid_is_one_trial_and_no_other),
        OPEN(a_key_makes_a_repeated_batch_one),
        OPEN(pages_in_any_order_and_format_are_one_list),
        OPEN(records_that_come_meanwhile_shift_no_page),
        OPEN(wrong_questions_are_told_what_is_wrong),
        OPEN(a_filter_finds_what_it_says),
        TEAMS(a_team_sees_its_own_and_what_is_shared_with_it),
        TEAMS(a_uid_of_a_hidden_trial_tells_nothing_of_it),
        TEAMS(who_sees_a_trial_its_team_can_change),
        TEAMS(who_sees_a_session_can_be_changed_alone_and_when_it_has_ended),
        OPEN(a_trial_says_what_ran_it),
        TEAMS(a_token_has_so_many_trials_a_day),
        OPEN(what_a_client_has_is_not_sent_again_while_it_is_there),
        OPEN(a_session_learns_from_trials_that_it_is_given),
        OPEN(a_session_keeps_to_its_memory),
        OPEN(a_session_shards_where_it_is_asked_to),
        OPEN(a_session_tries_only_what_its_forms_can_say),
        OPEN(a_session_says_in_which_forms_it_can_be_exported),
        OPEN(abilities_are_read_with_care),
        OPEN(nothing_is_tried_that_somebody_who_asks_cannot_execute),
        OPEN(a_session_tries_stale_models_where_it_is_asked_to),
        OPEN(weather_must_fit_the_cluster_the_ranker_and_the_runner),
        OPEN(a_session_in_weather_goes_by_means_of_trials_that_met_it),
        OPEN(a_session_takes_only_trials_of_its_own_domain),
        OPEN(a_trial_is_about_the_cluster_that_its_session_moved_to),
        OPEN(a_ranker_is_trained_while_others_are_served),
        OPEN(training_that_cannot_be_is_refused_or_fails),
        OPEN(a_key_makes_a_repeated_training_one),
        TEAMS(a_team_trains_on_what_it_sees_and_sees_its_operations),
        TEAMS(a_ranker_is_its_teams_unless_it_is_shared),
        OPEN(a_list_of_sessions_reads_no_models),
        OPEN(what_was_running_when_the_service_died_has_failed),
        OPEN(stopping_ends_what_runs_and_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
