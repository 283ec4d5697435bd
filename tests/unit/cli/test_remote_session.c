/* A session that a service does not run by itself is opened for agents; nothing else that it refuses leads to that. */
#include "cli/remote_session.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_launcher_agents_run_the_trials),
        cmocka_unit_test(another_conflict_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
