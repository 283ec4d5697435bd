/* The bench that a session offers before its first trial: to whom, for how long, and what its figures change. */
#include "dataset/check.h"
#include "tests/unit/service/http_site.h"

static struct site site;
static char unmeasured[65]; /* the cluster four */
static char *figures;       /* a bench of it: every all-reduce takes long */

#define NEW_SESSION                                                                                                    \
    "{\"model\":\"toy\",\"cluster\":\"%s\",\"seed\":5,\"ranker\":\"none\",\"budget\":{\"trials\":9},"                  \
    "\"final_rounds\":0%s}"
#define POINTS                                                                                                         \
    "[{\"operation\":\"all_reduce\",\"devices\":4,\"bytes\":4096,\"time_us\":9000},"                                   \
    "{\"operation\":\"all_reduce\",\"devices\":4,\"bytes\":16777216,\"time_us\":900000}]"
#define CAN(client) "{\"client\":\"" client "\",\"bench_s\":60}"

static const char *text_of(const cJSON *json, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    return text ? text : "";
}

static double number_of(const cJSON *json, const char *key) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

/* SITE_CLUSTER with measurements; or with another NIC or transport (its own is "nccl"). */
static char *write_figures(double nic, const char *transport, const char *measurements) {
    cJSON *json = cJSON_Parse(SITE_CLUSTER);
    cJSON *node = cJSON_GetObjectItemCaseSensitive(json, "nodes")->child;
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(node, "nic_gbit_per_s"), nic);
    cJSON_AddItemToObject(json, "measurements", cJSON_Parse(measurements));
    cJSON_AddStringToObject(json, "transport", transport);
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

static void start_again(void) {
    struct error err;
    assert_ok(service_open(&site.service_options, &site.service, &err));
    assert_ok(http_start(&site.options, site.service, &site.server, &err));
}

static int set_up(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "bench-%d", number++);
    site = (struct site){.service_options.open = true};
    site_start(&site, name);
    assert_int_equal(site_post(&site, "/api/v1/models", SITE_MODEL)->status, 201);
    cJSON *json = reply_json(site_post(&site, "/api/v1/clusters", SITE_CLUSTER), 201);
    snprintf(unmeasured, sizeof unmeasured, "%s", text_of(json, "id"));
    cJSON_Delete(json);
    figures = write_figures(1, "nccl", POINTS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    cJSON_free(figures);
    return 0;
}

static void open_session(const char *cluster, const char *more, char path[128]) {
    char body[512];
    snprintf(body, sizeof body, NEW_SESSION, cluster, more);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions", body), 201);
    snprintf(path, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

/* What :suggest says is next. */
static void assert_next(const char *session, const char *body, const char *next, double attempt) {
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", body), 200);
    const cJSON *bench = cJSON_GetObjectItemCaseSensitive(json, "bench");
    assert_string_equal(text_of(json, "next"), next);
    assert_int_equal(bench != NULL, attempt > 0);
    if (bench)
        assert_close(number_of(bench, "attempt"), attempt, 0);
    cJSON_Delete(json);
}

/* One who says that this is the same request as before. */
static void ask_under_a_key(const char *session, double attempt) {
    char path[200];
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    cJSON *json = reply_json(site_ask(&site, "POST", path, "Idempotency-Key: one\r\n", CAN("a")), 200);
    const cJSON *bench = cJSON_GetObjectItemCaseSensitive(json, "bench");
    assert_close(number_of(bench, "attempt"), attempt, 0);
    cJSON_Delete(json);
}

/* The predicted time of a first trial, which is one of the same baseline in every session. */
static double first_prediction(const char *session) {
    cJSON *json = reply_json(site_post_to(&site, session, "/trials:suggest", CAN("first")), 200);
    assert_string_equal(text_of(json, "next"), "trials");
    const double us = number_of(cJSON_GetObjectItemCaseSensitive(json, "trials")->child, "predicted_us");
    cJSON_Delete(json);
    return us;
}

static struct reply *complete(const char *session, const char *client, int attempt, const char *cluster) {
    static char body[4096];
    snprintf(body, sizeof body, "{\"client\":\"%s\",\"attempt\":%d,\"cluster\":%s}", client, attempt, cluster);
    return site_post_to(&site, session, "/bench:complete", body);
}

static struct reply *give_up(const char *session, const char *client, int attempt, const char *more) {
    char body[256];
    snprintf(body, sizeof body, "{\"client\":\"%s\",\"attempt\":%d,\"reason\":\"it broke\"%s}", client, attempt, more);
    return site_post_to(&site, session, "/bench:fail", body);
}

static void cluster_of(const char *session, char id[65]) {
    cJSON *json = reply_json(site_get(&site, session), 200);
    snprintf(id, 65, "%s", text_of(cJSON_GetObjectItemCaseSensitive(json, "cluster"), "id"));
    cJSON_Delete(json);
}

/* Whether a reply says that the session is about the measured cluster from now on. */
static void assert_used(struct reply *reply, bool used, char id[65]) {
    cJSON *json = reply_json(reply, 200);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "used")), used);
    if (id)
        snprintf(id, 65, "%s", text_of(json, "cluster"));
    cJSON_Delete(json);
}

static void assert_whole(void) {
    struct error err;
    struct store *store;
    struct check_report report;
    assert_ok(store_open(site.dataset, STORE_READ_ONLY, &store, &err));
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems + report.audiences, 0);
    store_close(store);
}

static void its_figures_are_what_the_session_predicts_by(void **state) {
    (void)state;
    char session[128], direct[128], bare[128], id[65], now[65];
    open_session("four", "", bare);
    open_session("four", "", session);
    ask_under_a_key(session, 1);
    ask_under_a_key(session, 1); /* its answer was lost */
    assert_next(session, CAN("b"), "wait", 0);
    assert_used(complete(session, "a", 1, figures), true, id);
    assert_problem(complete(session, "a", 1, figures), 409, "stale-attempt");
    cluster_of(session, now);
    assert_string_equal(now, id);
    open_session(id, "", direct);
    const double us = first_prediction(direct); /* of a session that knew it from the beginning: no bench */
    assert_next(bare, "{\"client\":\"c\"}", "trials", 0);
    site_stop(&site);
    assert_whole();
    start_again();
    assert_close(first_prediction(session), us, 1e-12);
    cluster_of(bare, now);
    assert_string_not_equal(now, id);
}

static void who_cannot_measure_gets_trials_and_the_session_stays(void **state) {
    (void)state;
    char session[128], before[65], after[65];
    open_session("four", "", session);
    cluster_of(session, before);
    assert_next(session, CAN("a"), "bench", 1);
    assert_next(session, "{\"client\":\"b\"}", "trials", 0);
    assert_next(session, CAN("c"), "trials", 0); /* it began without */
    assert_used(complete(session, "a", 1, figures), false, after);
    assert_string_equal(after, "");
    cluster_of(session, after);
    assert_string_equal(after, before);
    open_session("four", "", session); /* nothing was kept */
    assert_next(session, CAN("a"), "bench", 1);
    assert_used(complete(session, "a", 1, figures), true, after);
    open_session("four", "", session); /* its name now means the newest, which is measured */
    assert_next(session, CAN("a"), "trials", 0);
}

static void a_lost_one_is_offered_again_and_then_no_more(void **state) {
    (void)state;
    char session[128];
    open_session("four", "", session);
    assert_next(session, "{\"client\":\"a\",\"bench_s\":1}", "bench", 1);
    clock_sleep_us(1.2e6);
    assert_next(session, CAN("b"), "bench", 2);
    assert_problem(complete(session, "a", 1, figures), 409, "stale-attempt");
    assert_problem(give_up(session, "a", 1, ""), 409, "stale-attempt");
    assert_used(give_up(session, "b", 2, ",\"again\":true"), false, NULL);
    assert_next(session, CAN("c"), "bench", 3);
    assert_used(give_up(session, "c", 3, ",\"again\":true"), false, NULL);
    assert_next(session, CAN("a"), "trials", 0);
}

static void who_takes_it_again_uses_up_its_attempts(void **state) {
    (void)state;
    char session[128];
    open_session("four", "", session);
    for (int i = 1; i <= 3; i++)
        assert_next(session, CAN("a"), "bench", i);
    assert_problem(complete(session, "a", 2, figures), 409, "stale-attempt");
    assert_next(session, CAN("b"), "wait", 0);
    assert_next(session, CAN("a"), "trials", 0);
}

static void a_session_that_has_ended_keeps_its_cluster(void **state) {
    (void)state;
    static const struct {
        const char *verb;
        bool used;
    } ends[] = {{":cancel", false}, {":stop", false}, {":pause", true}};
    char session[128], before[65], after[65], id[65];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        open_session("four", "", session);
        cluster_of(session, before);
        assert_next(session, CAN("a"), "bench", 1);
        assert_int_equal(site_post_to(&site, session, ends[i].verb, NULL)->status, 200);
        assert_used(complete(session, "a", 1, figures), ends[i].used, id);
        cluster_of(session, after);
        assert_string_equal(after, ends[i].used ? id : before);
    }
}

static void a_bench_takes_no_time_of_the_budget(void **state) {
    (void)state;
    char session[128], tail[64];
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"ranker\":\"none\","
                                       "\"budget\":{\"time_us\":2000000},\"final_rounds\":0}"),
                             201);
    snprintf(session, sizeof session, "%s", text_of(json, "href"));
    cJSON_Delete(json);
    assert_next(session, CAN("a"), "bench", 1);
    clock_sleep_us(2.1e6);
    assert_used(give_up(session, "a", 1, ""), false, NULL);
    json = reply_json(site_post_to(&site, session, "/trials:suggest", CAN("a")), 200);
    const double number = number_of(cJSON_GetObjectItemCaseSensitive(json, "trials")->child, "number");
    cJSON_Delete(json);
    snprintf(tail, sizeof tail, "/trials/%.0f:complete", number);
    const char *times = "{\"client\":\"a\",\"attempt\":1,\"iterations_us\":[900,900,900,900,900]}";
    assert_int_equal(site_post_to(&site, session, tail, times)->status, 200);
    assert_next(session, CAN("a"), "trials", 0); /* which nobody gets whose time is used up */
}

static void one_that_failed_is_not_offered_again(void **state) {
    (void)state;
    char session[128];
    open_session("four", "", session);
    assert_next(session, CAN("a"), "bench", 1);
    assert_used(give_up(session, "a", 1, ""), false, NULL);
    assert_next(session, CAN("b"), "trials", 0);
}

static void only_figures_of_the_sessions_cluster_are_taken(void **state) {
    (void)state;
    char session[128], *other = write_figures(2, "nccl", POINTS), *elsewhere = write_figures(1, "mpi", POINTS),
                       *none = write_figures(1, "nccl", "[]"), *ideal = write_figures(1, "ideal", "[]");
    open_session("four", "", session);
    assert_next(session, CAN("a"), "bench", 1);
    const char *const wrong[] = {other, elsewhere, none, ideal, "{}", "7"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reply *r = complete(session, "a", 1, wrong[i]);
        assert_problem(r, 422, "invalid");
        assert_non_null(strstr(r->body, "cluster"));
    }
    assert_problem(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"a\",\"bench_s\":0}"), 422, "invalid");
    assert_problem(site_post_to(&site, session, "/trials:suggest", "{\"client\":\"a\",\"bench_s\":3601}"), 422,
                   "invalid");
    assert_used(complete(session, "a", 1, figures), true, NULL); /* it is still the client's */
    cJSON_free(other);
    cJSON_free(elsewhere);
    cJSON_free(ideal);
    cJSON_free(none);
}

static void one_device_has_nothing_to_measure(void **state) {
    (void)state;
    char session[128];
    assert_int_equal(site_post(&site, "/api/v1/clusters",
                               "{\"schema\":\"syncopate.cluster/1\",\"name\":\"alone\",\"nodes\":[{\"name\":\"n\","
                               "\"nic_gbit_per_s\":1}]}")
                         ->status,
                     201);
    open_session("alone", "", session);
    assert_next(session, CAN("a"), "trials", 0);
}

static struct reply *ask_as(const char *secret, const char *method, const char *path, const char *body) {
    char head[128];
    snprintf(head, sizeof head, "Authorization: Bearer %s\r\n", secret);
    return site_ask(&site, method, path, head, body);
}

static void read_session(const char *secret, const char *cluster, const char *shared, char session[128]) {
    char body[512], more[64];
    snprintf(more, sizeof more, ",\"shared\":\"%s\"", shared);
    snprintf(body, sizeof body, NEW_SESSION, cluster, more);
    cJSON *json = reply_json(ask_as(secret, "POST", "/api/v1/sessions", body), 201);
    snprintf(session, 128, "%s", text_of(json, "href"));
    cJSON_Delete(json);
}

/* What is next for this client of a session. */
static void assert_next_as(const char *secret, const char *session, const char *next) {
    char path[200];
    snprintf(path, sizeof path, "%s/trials:suggest", session);
    cJSON *json = reply_json(ask_as(secret, "POST", path, CAN("a")), 200);
    assert_string_equal(text_of(json, "next"), next);
    cJSON_Delete(json);
}

/* The measured description is the session's team's own: another team sees it with the session, if at all, and calls
 * nothing by its name. */
static void another_team_sees_it_with_the_session_alone(void **state) {
    (void)state;
    char secrets[2][TOKEN_LENGTH + 1], session[128], later[128], path[200], body[4096], id[65];
    static const char *const teams[] = {"red", "blue"}, *const shared[] = {"team", "all"};
    for (size_t i = 0; i < 2; i++) {
        struct token wanted = {.principal = {.role = ROLE_RUN}};
        snprintf(wanted.name, sizeof wanted.name, "%s", teams[i]);
        snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", teams[i]);
        site_token(&site, &wanted, secrets[i]);
    }
    clock_sleep_us(1.2e6); /* the service sees the tokens */
    for (size_t i = 0; i < 2; i++) {
        read_session(secrets[0], unmeasured, shared[i], session);
        assert_next_as(secrets[0], session, "bench");
        snprintf(path, sizeof path, "%s/bench:complete", session);
        snprintf(body, sizeof body, "{\"client\":\"a\",\"attempt\":1,\"cluster\":%s}", figures);
        assert_int_not_equal(ask_as(secrets[1], "POST", path, body)->status, 200);
        assert_used(ask_as(secrets[0], "POST", path, body), true, id);
        snprintf(path, sizeof path, "/api/v1/clusters/%s", id);
        assert_int_equal(ask_as(secrets[0], "GET", path, NULL)->status, 200);
        assert_int_equal(ask_as(secrets[1], "GET", path, NULL)->status, i ? 200 : 404);
        read_session(secrets[1], "four", "team", later);
        assert_next_as(secrets[1], later, "bench");
        read_session(secrets[0], "four", "team", later);
        assert_next_as(secrets[0], later, "trials");
    }
    assert_int_equal(ask_as(secrets[0], "PATCH", session, "{\"shared\":\"team\"}")->status, 200);
    assert_problem(ask_as(secrets[1], "GET", path, NULL), 404, "not-found");
    site_stop(&site);
    assert_whole(); /* also who may see what */
    start_again();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(its_figures_are_what_the_session_predicts_by),
        TEST(who_cannot_measure_gets_trials_and_the_session_stays),
        TEST(a_lost_one_is_offered_again_and_then_no_more),
        TEST(who_takes_it_again_uses_up_its_attempts),
        TEST(a_session_that_has_ended_keeps_its_cluster),
        TEST(a_bench_takes_no_time_of_the_budget),
        TEST(one_that_failed_is_not_offered_again),
        TEST(only_figures_of_the_sessions_cluster_are_taken),
        TEST(one_device_has_nothing_to_measure),
        TEST(another_team_sees_it_with_the_session_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
