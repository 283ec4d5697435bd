/* What `tune` prints of a session, what the service's routes say of it and what the report says of it agree. */
#define WORLD_NODES "2"
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/tuning_output.h"
#include "report/report.h"
#include "tests/unit/service/http_site.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/tune.h"

enum { SESSIONS = 4, MOST_TEXT = 1 << 16 };

struct unreliable {
    struct world *world;
    struct rng rng;
};

/* One trial in five fails. */
static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    struct unreliable *u = context;
    if (rng_below(&u->rng, 5))
        return simulated_run(u->world, order, out, err);
    *out = (struct tune_outcome){.state = RECORD_FAILED, .reason = "the network is down"};
    return ST_OK;
}

/* What tune --json prints of a random session in the site's dataset. */
static cJSON *tune(struct world *w, const char *dataset, struct rng *rng) {
    static char text[MOST_TEXT];
    struct error err;
    struct store *store;
    struct outcome outcome;
    cJSON *json;
    struct unreliable u = {.world = w};
    const struct tune_runner runner = {"simulated", &u, run};
    struct tune_options o = tune_default_options();
    rng_seed(&u.rng, rng_below(rng, 1000));
    w->gives_up = rng_below(rng, 2);
    o.trials = 12 + rng_below(rng, 20);
    o.kept.final_rounds = rng_below(rng, 4);
    o.seed = rng_below(rng, 1000);
    o.kept.trial_us = 1e6;
    o.evaluations = 120;
    assert_ok(store_open(dataset, STORE_READ_WRITE, &store, &err));
    assert_ok(tune_run(store, &w->model, &w->cluster, &runner, &o, NULL, &outcome, &err));
    store_close(store);
    fflush(stdout);
    FILE *to = tmpfile();
    const int kept = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(to), STDOUT_FILENO) >= 0);
    assert_ok(tuning_print_json(&outcome, &err));
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    fclose(to);
    outcome_release(&outcome);
    read_text(text, &json);
    return json;
}

static cJSON *ask(const struct site *site, const char *headers, const char *session, const char *what) {
    char path[160];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/%s", session, what);
    return reply_json(site_ask(site, "GET", path, headers, NULL), 200);
}

static const cJSON *member(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static void expect_same_number(const cJSON *a, const cJSON *b, const char *key) {
    const cJSON *x = member(a, key), *y = member(b, key);
    assert_int_equal(cJSON_IsNumber(x), cJSON_IsNumber(y));
    if (cJSON_IsNumber(x))
        assert_close(x->valuedouble, y->valuedouble, 0);
}

static void expect_same_best(const cJSON *a, const char *id_of_a, const cJSON *b, const char *id_of_b) {
    static const char *const keys[] = {"measured_us", "low_us", "high_us"};
    assert_string_equal(member(member(a, "best"), id_of_a)->valuestring,
                        member(member(b, "best"), id_of_b)->valuestring);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        expect_same_number(member(a, "best"), member(b, "best"), keys[i]);
}

static void expect_report(const struct site *site, const char *session, const cJSON *printed) {
    struct error err;
    struct store *store;
    struct findings f;
    char *text, time[32];
    size_t length;
    assert_ok(access_read(site->service->access, &store, &err));
    assert_ok(findings_gather(store, session, FINDINGS_FIGURES, &f, &err));
    assert_ok(report_write(&f, "", &text, &length, &err));
    const struct outcome *o = &f.outcome;
    assert_string_equal(o->rows[o->best].strategy, member(member(printed, "best"), "strategy")->valuestring);
    assert_contains(text, o->rows[o->best].name);
    assert_contains(text, units_format_time(member(member(printed, "best"), "measured_us")->valuedouble, time, 32));
    free(text);
    findings_release(&f);
}

static void tune_the_routes_and_the_report_say_the_same(void **state) {
    for (uint64_t number = 0; number < SESSIONS; number++) {
        static const char *const keys[] = {"trials", "speedup", "lower_bound_us", "gap"};
        struct rng rng;
        struct site site = {0};
        char name[32], headers[128];
        char secret[TOKEN_LENGTH + 1];
        rng_split(&rng, test_seed(), number);
        snprintf(name, sizeof name, "views%lu", (unsigned long)number);
        snprintf(site.dataset, sizeof site.dataset, "%s/%s.db", test_dir(), name);
        cJSON *printed = tune(*state, site.dataset, &rng);
        const struct token token = {.name = "reader", .principal = {.team = "readers", .role = ROLE_READ}};
        site_token(&site, &token, secret);
        snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", secret);
        site_start(&site, name);
        const char *session = member(printed, "session")->valuestring;
        cJSON *outcome = ask(&site, headers, session, "outcome"), *best = ask(&site, headers, session, "best");
        cJSON *importance = ask(&site, headers, session, "importance");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            expect_same_number(printed, outcome, keys[i]);
            expect_same_number(outcome, best, keys[i]);
        }
        expect_same_best(printed, "strategy", outcome, "strategy");
        expect_same_best(outcome, "strategy", best, "strategy_id");
        assert_true(cJSON_Compare(member(outcome, "strategy"), member(best, "strategy"), true));
        assert_true(cJSON_Compare(member(outcome, "knobs"), member(importance, "knobs"), true));
        assert_true(cJSON_Compare(member(outcome, "proposers"), member(importance, "proposers"), true));
        expect_report(&site, session, printed);
        site_stop(&site);
        cJSON_Delete(printed);
        cJSON_Delete(outcome);
        cJSON_Delete(best);
        cJSON_Delete(importance);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tune_the_routes_and_the_report_say_the_same, world_set_up, world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
