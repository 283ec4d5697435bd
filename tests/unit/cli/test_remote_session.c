/* A session that a service does not run by itself is opened for agents; nothing else that it refuses leads to that. */
#include "cli/remote_session.h"
#include "cli/session_findings.h"
#include "tests/unit/cli/scripted_service.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SESSION                                                                                                        \
    "{\"id\":\"s1\",\"mode\":\"ask\",\"state\":\"running\",\"budget\":{\"trials\":3},\"model\":{\"id\":\"" ID          \
    "\"},\"cluster\":{\"id\":\"" ID "\"}}"

static enum status open_at(const struct script *s, struct remote_session *out, struct error *why) {
    struct error err;
    struct client *client;
    const struct client_options options = {.url = s->url};
    const struct inputs inputs = {.model.id = {ID}, .cluster.id = {ID}};
    const struct tune_options tune = tune_default_options();
    assert_ok(client_open(&options, &client, &err));
    const enum status st = remote_session_open(client, &inputs, &tune, "none", NULL, out, why);
    client_close(client);
    return st;
}

static void without_a_launcher_agents_run_the_trials(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct remote_session session;
    START(s, PROBLEM("409 No", "no-launcher", ""), OK(SESSION));
    assert_ok(open_at(&s, &session, &err));
    script_end(&s);
    assert_contains(s.requests[0], "\"mode\":\"own\"");
    assert_contains(s.requests[1], "\"mode\":\"ask\"");
    assert_false(session.own);
}

static void another_conflict_is_an_error(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct remote_session session;
    START(s, PROBLEM("409 No", "conflict", ""));
    assert_fails(open_at(&s, &session, &err), ST_CONFLICT, "no luck");
    script_end(&s);
}

static enum status answer_at(const struct script *s, struct outcome *out, struct error *why) {
    struct error err;
    struct client *client;
    const struct client_options options = {.url = s->url};
    const struct inputs inputs = {.model.id = {ID}, .cluster.id = {ID}};
    const struct remote_session session = {.id = "s1", .state = "done", .reason = "the time is used up"};
    assert_ok(client_open(&options, &client, &err));
    const enum status st = remote_session_answer(client, &session, &inputs, out, why);
    client_close(client);
    return st;
}

static void an_answer_is_one_request(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct outcome o;
    START(s,
          OK("{\"session\":\"s1\",\"trials\":2,\"lower_bound_us\":7,\"overlap\":true,\"gap\":0.5,\"strategies\":[{"
             "\"strategy\":\"" ID "\",\"name\":\"guided-2\",\"proposer\":\"guided\",\"trials\":1,\"complete\":1,"
             "\"final\":false,\"measured_us\":9,\"low_us\":8,\"high_us\":10,\"iterations\":5}],"
             "\"best\":{\"strategy\":\"" ID "\"},\"accuracy\":{\"strategies\":0},\"knobs\":[{\"name\":\"a new one\"}],"
             "\"proposers\":[{\"name\":\"guided\",\"trials\":1,\"wins\":1}]}"));
    assert_ok(answer_at(&s, &o, &err));
    script_end(&s);
    assert_contains(s.requests[0], "GET /api/v1/sessions/s1/outcome ");
    assert_int_equal(o.ended, 2);
    assert_int_equal(o.stop, TUNE_STOP_TIME);
    assert_string_equal(o.rows[o.best].name, "guided-2");
    assert_int_equal(o.rows[o.best].measured.n, 5);
    outcome_release(&o);
}

/* The session's export is what a service of before has as well. */
static void a_service_of_before_is_asked_for_the_records(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct outcome o;
    START(s, PROBLEM("404 No", "not-found", ""), OK(SESSION), ANSWER("200 OK", "", "application/jsonl", ""));
    assert_fails(answer_at(&s, &o, &err), ST_INFEASIBLE, "session s1 is done, and no trial of it completed");
    script_end(&s);
    assert_contains(s.requests[1], "GET /api/v1/sessions/s1 ");
    assert_contains(s.requests[2], "GET /api/v1/sessions/s1/export?format=jsonl");
}

#define SHOWN                                                                                                          \
    "{\"id\":\"s1\",\"mode\":\"ask\",\"state\":\"paused\",\"reason\":\"lunch\",\"seed\":7,\"budget\":{\"trials\":3},"  \
    "\"team\":\"red\",\"shared\":[\"blue\"],\"started\":\"2026-11-21T08:41:17.123Z\",\"trials\":2,\"complete\":1,"     \
    "\"model\":{\"id\":\"" ID "\",\"name\":\"m\"},\"cluster\":{\"id\":\"" ID "\",\"name\":\"c\"}}"

static enum status show_at(const struct script *s, struct findings *out, struct error *err) {
    return session_findings_there(&(struct remote_options){.server = s->url}, "s1", FINDINGS_FIGURES, out, err);
}

static void a_session_is_shown_by_what_it_is_and_what_came_of_it(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct findings f;
    START(
        s, OK(SHOWN),
        OK("{\"session\":\"s1\",\"trials\":1,\"lower_bound_us\":7,\"overlap\":false,\"strategies\":[{\"strategy\":\"" ID
           "\",\"name\":\"wfbp\",\"trials\":2,\"complete\":0,\"final\":false,\"state\":\"running\"}],"
           "\"accuracy\":{\"strategies\":0},\"knobs\":[],\"proposers\":[],\"strategy\":{\"left\":\"unread\"}}"));
    assert_ok(show_at(&s, &f, &err));
    script_end(&s);
    assert_contains(s.requests[1], "GET /api/v1/sessions/s1/outcome ");
    const struct stored_session *about = &f.outcome.session;
    assert_int_equal(about->state, STORED_SESSION_PAUSED);
    assert_int_equal(about->mode, STORED_SESSION_ASK);
    assert_string_equal(about->reason, "lunch");
    assert_string_equal(about->team, "red");
    assert_string_equal(about->shared, "|blue|");
    assert_string_equal(f.model.name, "m");
    assert_string_equal(f.cluster.id.hex, ID);
    assert_null(about->ended);
    assert_true(about->seed == 7 && about->trials == 2 && about->complete == 1 && f.outcome.budget_trials == 3);
    assert_true(f.outcome.best == SIZE_MAX && f.outcome.rows[0].state == RECORD_RUNNING);
    findings_release(&f);
}

static void a_state_that_only_a_newer_service_has_is_said(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct findings f;
    START(s,
          OK("{\"id\":\"s1\",\"mode\":\"ask\",\"state\":\"frozen\",\"shared\":\"team\",\"model\":{\"id\":\"" ID
             "\"},\"cluster\":{\"id\":\"" ID "\"}}"),
          OK("{\"session\":\"s1\",\"trials\":0,\"lower_bound_us\":7,\"overlap\":true,\"strategies\":[],\"accuracy\":{"
             "\"strategies\":0},\"knobs\":[],\"proposers\":[]}"));
    assert_fails(show_at(&s, &f, &err), ST_UNREACHABLE, "session s1 is \"frozen\", a state that");
    script_end(&s);
}

static void to_show_it_a_service_of_before_is_asked_for_the_records(void **state) {
    (void)state;
    struct error err;
    struct script s;
    struct findings f;
    START(s, OK(SHOWN), PROBLEM("404 No", "not-found", ""), OK(SHOWN), ANSWER("200 OK", "", "application/jsonl", ""));
    assert_fails(show_at(&s, &f, &err), ST_NOT_FOUND, "session s1 is paused, and has no trial yet");
    script_end(&s);
    assert_contains(s.requests[3], "GET /api/v1/sessions/s1/export?format=jsonl");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_launcher_agents_run_the_trials),
        cmocka_unit_test(another_conflict_is_an_error),
        cmocka_unit_test(an_answer_is_one_request),
        cmocka_unit_test(a_service_of_before_is_asked_for_the_records),
        cmocka_unit_test(a_session_is_shown_by_what_it_is_and_what_came_of_it),
        cmocka_unit_test(a_state_that_only_a_newer_service_has_is_said),
        cmocka_unit_test(to_show_it_a_service_of_before_is_asked_for_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
