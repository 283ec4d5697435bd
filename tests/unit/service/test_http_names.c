/* Names, short ids and what a list shows belong to a team: nobody takes another's, and what only a private session made
 * is not there for others. */
#include "tests/unit/service/http_site.h"

static struct site site;
static char admin[TOKEN_LENGTH + 1], red[TOKEN_LENGTH + 1], blue[TOKEN_LENGTH + 1];

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    char headers[256];
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", token);
    return site_ask(&site, method, path, headers, body);
}

static void make_token(const char *name, const char *team, enum role role, char *secret) {
    struct token wanted = {.principal = {.role = role}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    site_token(&site, &wanted, secret);
}

static int set_up(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "names-%d", number++);
    site = (struct site){0};
    site_place(&site, name);
    make_token("admin", "core", ROLE_ADMIN, admin);
    make_token("red", "red", ROLE_RUN, red);
    make_token("blue", "blue", ROLE_RUN, blue);
    site_start(&site, name);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

/* The text of a member of an answer. */
static void member(struct reply *reply, int status, const char *key, char *out, size_t n) {
    cJSON *json = reply_json(reply, status);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    assert_non_null(text);
    snprintf(out, n, "%s", text);
    cJSON_Delete(json);
}

/* A model like SITE_MODEL under another name and batch; its id. */
static void put_model(const char *token, const char *name, int batch, char id[65]) {
    char body[1024];
    snprintf(body, sizeof body,
             "{\"schema\":\"syncopate.model/1\",\"name\":\"%s\",\"batch_per_device\":%d,\"variables\":["
             "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,"
             "\"backward_us\":4000,\"variables\":[\"a\"]}]}",
             name, batch);
    member(ask_as(token, "POST", "/api/v1/models", body), 201, "id", id, 65);
}

/* Whose batch the model has that `token` gets under `word`. */
static int batch_of(const char *token, const char *word) {
    char path[160];
    snprintf(path, sizeof path, "/api/v1/models/%s", word);
    cJSON *json = reply_json(ask_as(token, "GET", path, NULL), 200);
    const int batch = cJSON_GetObjectItemCaseSensitive(json, "batch_per_device")->valueint;
    cJSON_Delete(json);
    return batch;
}

static void a_short_id_is_never_another_models_name(void **state) {
    (void)state;
    char mine[65], other[65], word[16];
    put_model(red, "mine", 1, mine);
    for (int digits = 4; digits <= 10; digits += 2) {
        snprintf(word, sizeof word, "%.*s", digits, mine);
        put_model(blue, word, 100 + digits, other);
        assert_int_equal(batch_of(red, word), 1);
        assert_int_equal(batch_of(blue, word), 1); /* a name of digits gives way to an id that blue may see */
    }
}

static void a_name_means_ones_own_before_anybody_elses(void **state) {
    (void)state;
    char id[65];
    put_model(red, "shared name", 1, id);
    put_model(blue, "shared name", 2, id);
    assert_int_equal(batch_of(red, "shared%20name"), 1);
    assert_int_equal(batch_of(blue, "shared%20name"), 2);
    put_model(red, "shared name", 3, id);
    assert_int_equal(batch_of(red, "shared%20name"), 3); /* its newest */
    assert_int_equal(batch_of(blue, "shared%20name"), 2);
}

/* ---- what only a private session made ---- */

static char session[128], strategy[65];

static void open_private_session(void) {
    assert_int_equal(ask_as(admin, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(ask_as(admin, "POST", "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    member(ask_as(red, "POST", "/api/v1/sessions",
                  "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":20},"
                  "\"shared\":\"team\"}"),
           201, "href", session, sizeof session);
    char path[160];
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    cJSON *json = reply_json(ask_as(red, "POST", path, "{\"client\":\"c\"}"), 200);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "trials"), 0);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(first, "strategy_id"));
    assert_non_null(id);
    snprintf(strategy, sizeof strategy, "%s", id);
    cJSON_Delete(json);
}

static int status_of(const char *token, const char *format, const char *word) {
    char path[200];
    snprintf(path, sizeof path, format, word);
    return ask_as(token, "GET", path, NULL)->status;
}

static bool lists(const char *token, const char *path, const char *id) {
    return strstr(ask_as(token, "GET", path, NULL)->body, id) != NULL;
}

static void assert_sees(const char *token, bool seen) {
    char few[12];
    snprintf(few, sizeof few, "%.10s", strategy);
    assert_int_equal(status_of(token, "/api/v1/strategies/%s", strategy), seen ? 200 : 404);
    assert_int_equal(status_of(token, "/api/v1/strategies/%s", few), seen ? 200 : 404);
    assert_int_equal(lists(token, "/api/v1/strategies?page_size=1000", strategy), seen);
}

static void a_strategy_that_only_a_private_session_made_is_not_there_for_others(void **state) {
    (void)state;
    open_private_session();
    assert_sees(red, true);
    assert_sees(admin, true);
    assert_sees(blue, false);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":[\"blue\",\"green\"]}")->status, 200);
    assert_sees(blue, true);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"all\"}")->status, 200);
    assert_sees(blue, true);
    assert_int_equal(ask_as(red, "PATCH", session, "{\"shared\":\"team\"}")->status, 200);
    assert_sees(blue, false);
    assert_sees(red, true);
}

/* Whether it is there already shows in no answer to who may not see it. */
static void putting_a_hidden_strategy_is_as_putting_a_new_one(void **state) {
    (void)state;
    char body[8192], path[128], id[65];
    open_private_session();
    snprintf(path, sizeof path, "/api/v1/strategies/%s", strategy);
    cJSON *json = reply_json(ask_as(red, "GET", path, NULL), 200);
    cJSON_ReplaceItemInObjectCaseSensitive(json, "name", cJSON_CreateString("found by blue"));
    char *text = cJSON_PrintUnformatted(json);
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":%s}", text);
    free(text);
    cJSON_Delete(json);
    json = reply_json(ask_as(blue, "POST", "/api/v1/strategies", body), 201);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "name")->valuestring, "found by blue");
    snprintf(id, sizeof id, "%s", cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
    cJSON_Delete(json);
    assert_string_equal(id, strategy);
    assert_int_equal(ask_as(blue, "POST", "/api/v1/strategies", body)->status, 200);
    assert_int_equal(ask_as(red, "POST", "/api/v1/strategies", body)->status, 200);
    assert_sees(blue, true);
    assert_int_equal(status_of(blue, "/api/v1/strategies/%s", "found%20by%20blue"), 200);
}

/* Pages of a list show each thing once, whatever lies between that is hidden. */
static void what_a_team_has_put_was_made_when_it_did(void **state) {
    (void)state;
    char reds[64], blues[64], seen[64];
    member(ask_as(red, "POST", "/api/v1/models", SITE_MODEL), 201, "created", reds, sizeof reds);
    usleep(20000);
    struct reply *reply = ask_as(blue, "POST", "/api/v1/models", SITE_MODEL);
    assert_true(reply->status == 200 || reply->status == 201);
    member(ask_as(blue, "POST", "/api/v1/models", SITE_MODEL), 200, "created", blues, sizeof blues);
    assert_true(strcmp(blues, reds) > 0);
    member(ask_as(red, "POST", "/api/v1/models", SITE_MODEL), 200, "created", seen, sizeof seen);
    assert_string_equal(seen, reds);
}

static void pages_of_a_list_skip_what_is_hidden(void **state) {
    (void)state;
    size_t n = 0;
    char path[400] = "/api/v1/strategies?page_size=1", next[256];
    open_private_session();
    static const char *const baselines[] = {"wfbp", "fifo", "bytescheduler"};
    for (size_t i = 0; i < 3; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"%s\"}", baselines[i]);
        const int status = ask_as(blue, "POST", "/api/v1/strategies", body)->status;
        if (status != 201) /* no such baseline, or the same as another */
            continue;
        n++;
    }
    assert_true(n >= 1);
    do {
        cJSON *json = reply_json(ask_as(blue, "GET", path, NULL), 200);
        n -= (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items"));
        snprintf(next, sizeof next, "%s",
                 cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "next_page_token")));
        cJSON_Delete(json);
        snprintf(path, sizeof path, "/api/v1/strategies?page_size=1&page_token=%s", next);
    } while (*next);
    assert_int_equal(n, 0);
}

/* A list of one name has the newest of each team's that is seen, under that name, and nothing hidden. */
static void a_list_of_one_name_has_what_is_seen(void **state) {
    (void)state;
    char mine[65], theirs[65];
    put_model(red, "one name", 1, mine);
    put_model(blue, "one name", 2, theirs);
    put_model(blue, "another", 3, theirs);
    const struct reply *reply = ask_as(red, "GET", "/api/v1/models?name=one%20name", NULL);
    assert_contains(reply->body, mine);
    assert_null(strstr(reply->body, theirs));
    cJSON *json = reply_json(ask_as(red, "GET", "/api/v1/models?name=one%20name&order=-created", NULL), 200);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items")), 2);
    cJSON_Delete(json);
    open_private_session();
    assert_false(lists(blue, "/api/v1/strategies?name=horovod", strategy));
    assert_true(lists(red, "/api/v1/strategies?name=horovod", strategy));
}

/* Of ids that another team could count through, it would find the hidden sessions. */
static void a_sessions_id_cannot_be_guessed(void **state) {
    (void)state;
    char first[128];
    open_private_session();
    snprintf(first, sizeof first, "%s", session);
    member(ask_as(red, "POST", "/api/v1/sessions",
                  "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\",\"budget\":{\"trials\":20}}"),
           201, "href", session, sizeof session);
    const char *tails[] = {strrchr(first, '-') + 1, strrchr(session, '-') + 1};
    size_t differ = 0;
    for (size_t i = 0; i < 2; i++) /* of 5 bits each */
        assert_int_equal(strspn(tails[i], "0123456789abcdefghjkmnpqrstvwxyz"), 16);
    for (size_t i = 0; i < 16; i++)
        differ += tails[0][i] != tails[1][i];
    assert_true(differ >= 8 && strlen(tails[0]) == 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_short_id_is_never_another_models_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_means_ones_own_before_anybody_elses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_strategy_that_only_a_private_session_made_is_not_there_for_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(putting_a_hidden_strategy_is_as_putting_a_new_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_of_one_name_has_what_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sessions_id_cannot_be_guessed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_team_has_put_was_made_when_it_did, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_of_a_list_skip_what_is_hidden, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
