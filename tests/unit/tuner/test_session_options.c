/* A session's budget and options: the text that datasets have, and everything that it says. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check.h"
#include "tuner/session/session_options.h"

/* As a dataset of before has them. */
static const char OF_A_COMMAND[] =
    "{\"final_rounds\":3,\"trial_us\":100000,\"runner\":\"command\",\"least_gain\":0.5,\"earlier\":120,\"weather\":3,"
    "\"allow_stale\":4,\"memory_bytes\":80000000000,\"allow_sharded\":\"gradients\",\"allow_lossy\":"
    "true,"
    "\"served\":true,"
    "\"ranker\":\"abc\",\"launch\":{},\"job\":{\"command\":\"line 1\\nline 2\",\"pattern\":\"p\",\"unit\":\"ms\","
    "\"export_env\":\"horovod\",\"export_to\":\"byteps\",\"accept\":\"groups\",\"label\":\"l\",\"logs\":\"d\","
    "\"publish\":true,\"time_limit_us\":10000000}}";
static const char OF_SLURM[] = "{\"final_rounds\":0,\"trial_us\":4e6,\"runner\":\"slurm\",\"least_gain\":0,\"earlier\":"
                               "0,\"launch\":{\"share_gpu\":true,"
                               "\"worker\":\"nccl\",\"partition\":\"gpu\",\"account\":\"a\",\"launch_options\":\"--x\","
                               "\"pass\":\"P\"},\"hosts\":\"h\"}";

static void read_options(const char *text, struct arena *arena, struct session_options *out) {
    struct error err;
    const struct stored_session session = {.id = "s1", .options = text};
    assert_ok(session_options_read(&session, arena, out, &err));
}

static void expect_same_json(const char *a, const char *b) {
    cJSON *x = cJSON_Parse(a), *y = cJSON_Parse(b);
    assert_non_null(x);
    assert_non_null(y);
    char *p = json_canonical(x), *q = json_canonical(y);
    assert_string_equal(p, q);
    free(p);
    free(q);
    cJSON_Delete(x);
    cJSON_Delete(y);
}

static void every_option_is_read(void **state) {
    (void)state;
    struct arena arena = {0};
    struct session_options o;
    read_options(OF_A_COMMAND, &arena, &o);
    assert_int_equal(o.final_rounds, 3);
    assert_close(o.trial_us, 1e5, 0);
    assert_close(o.least_gain, 0.5, 0);
    assert_int_equal(o.earlier, 120);
    assert_int_equal(o.weather, 3);
    assert_int_equal(o.allow_stale, 4);
    assert_int_equal(o.memory_bytes, 80000000000);
    assert_int_equal(o.allow_sharded, SHARDED_gradients);
    assert_true(o.allow_lossy && o.served && o.job.publish && !o.launch.share_gpu);
    assert_string_equal(o.ranker, "abc");
    assert_string_equal(o.launch.runner, "command");
    assert_true(!o.launch.hosts && !o.launch.worker && !o.launch.logs);
    assert_string_equal(o.job.command, "line 1\nline 2");
    assert_string_equal(o.job.unit, "ms");
    assert_string_equal(o.job.accept, "groups");
    assert_string_equal(o.job.logs, "d");
    assert_close(o.job.time_limit_us, 1e7, 0);
    read_options(OF_SLURM, &arena, &o);
    assert_true(o.launch.share_gpu && !o.allow_lossy && !o.allow_sharded && !o.allow_stale && !o.memory_bytes &&
                !o.served && !o.job.command && !o.ranker);
    assert_string_equal(o.launch.hosts, "h");
    assert_string_equal(o.launch.worker, "nccl");
    assert_string_equal(o.launch.pass, "P");
    arena_release(&arena);
}

/* What is empty is not written. */
static void what_is_read_is_written_as_it_was(void **state) {
    (void)state;
    struct arena arena = {0};
    struct session_options o;
    read_options(OF_SLURM, &arena, &o);
    char *text = session_options_write(&o, NULL);
    expect_same_json(text, OF_SLURM);
    free(text);
    read_options(OF_A_COMMAND, &arena, &o);
    text = session_options_write(&o, NULL);
    assert_null(strstr(text, "launch"));
    struct session_options again;
    read_options(text, &arena, &again);
    char *twice = session_options_write(&again, NULL);
    assert_string_equal(twice, text);
    free(text);
    free(twice);
    arena_release(&arena);
}

static void members_of_a_newer_version_are_passed_over_and_kept(void **state) {
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct session_options o;
    struct session_budget b;
    static const char newer[] = "{\"trial_us\":5,\"colour\":[1],\"hosts\":\"h\",\"launch\":{\"worker\":\"mpi\"}}";
    read_options(newer, &arena, &o);
    assert_close(o.trial_us, 5, 0);
    o.launch.hosts = NULL;
    o.launch.worker = NULL;
    char *text = session_options_write(&o, newer);
    expect_same_json(text, "{\"trial_us\":5,\"colour\":[1],\"final_rounds\":0,\"least_gain\":0,\"earlier\":0}");
    free(text);
    const struct stored_session session = {.id = "s1", .budget = "{\"trials\":4,\"colour\":1,\"used_us\":2.5}"};
    assert_ok(session_budget_read(&session, &b, &err));
    assert_true(b.trials == 4 && !*b.resumed && session_budget_is_limited(&b));
    strcpy(b.resumed, "2026-11-21T10:00:00.000Z");
    text = session_budget_write(&b, session.budget);
    expect_same_json(text, "{\"trials\":4,\"colour\":1,\"used_us\":2.5,\"time_us\":0,\"gap\":0,"
                           "\"resumed\":\"2026-11-21T10:00:00.000Z\"}");
    free(text);
    arena_release(&arena);
}

static void a_collection_says_nothing(void **state) {
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct session_options o;
    struct session_budget b;
    const struct stored_session session = {.id = "s1", .budget = "{}", .options = "{}"};
    assert_ok(session_budget_read(&session, &b, &err));
    assert_false(session_budget_is_limited(&b));
    read_options("{}", &arena, &o);
    assert_true(!o.launch.runner && !o.job.command && !o.final_rounds);
    arena_release(&arena);
}

static void what_is_damaged_is_said_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"[]", "session s1, options: damaged"},
                 {"{\"runner\":5}", "session s1, options: /runner: must be a text"},
                 {"{\"final_rounds\":\"3\"}", "/final_rounds"},
                 {"{\"trial_us\":-1}", "/trial_us"},
                 {"{\"served\":1}", "/served"},
                 {"{\"launch\":[]}", "/launch: must be an object"},
                 {"{\"launch\":{\"pass\":null}}", "/launch/pass: must be a text"},
                 {"{\"job\":{\"time_limit_us\":\"1\"}}", "/job/time_limit_us"},
                 {"{\"job\":{\"publish\":\"yes\"}}", "/job/publish"}};
    struct error err;
    struct arena arena = {0};
    struct session_options o;
    struct session_budget b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stored_session session = {.id = "s1", .options = cases[i].text};
        assert_fails(session_options_read(&session, &arena, &o, &err), ST_INVALID, cases[i].message);
    }
    const struct stored_session session = {.id = "s1", .budget = "{\"gap\":\"x\"}"};
    assert_fails(session_budget_read(&session, &b, &err), ST_INVALID, "session s1, budget: /gap");
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(what_is_read_is_written_as_it_was),
        cmocka_unit_test(members_of_a_newer_version_are_passed_over_and_kept),
        cmocka_unit_test(a_collection_says_nothing),
        cmocka_unit_test(what_is_damaged_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
