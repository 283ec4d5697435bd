/* Every filter keeps what fits and only that, in the order asked for; both export formats read back. */
#include <cjson/cJSON.h>

#include "dataset/export.h"
#include "dataset/ingest.h"
#include "dataset/query.h"
#include "tests/unit/dataset/fixture.h"

static struct store *store;
static struct fixture f;
static struct id other_strategy;

/* Trial k of the session "s" or, when odd, on its own: medians 100, 110, ... 190, the last two without a result. */
static int set_up(void **state) {
    (void)state;
    struct error err = {0};
    store = must_open(dataset_path("query.db"), STORE_READ_WRITE);
    f = put_fixture(store);
    other_strategy = must_put(store, STORE_STRATEGY, "tuned", "{\"groups\":[0],\"schema\":\"syncopate.strategy/1\"}");
    must_begin_session(store, &f, "s", 1);
    for (int k = 0; k < 12; k++) {
        struct new_trial request = request_of(&f, k % 2 ? NULL : "s");
        request.predicted_us = k % 3 ? 200.0 - 10 * k : (double)NAN;
        request.runner = k < 6 ? "lab" : "local";
        request.proposer = k % 4 ? "genetic" : "horovod";
        if (k >= 6)
            request.strategy = other_strategy.hex;
        const int64_t trial = must_begin_trial(store, &request);
        if (k < 10)
            assert_ok(finish_trial(store, trial, 100 + 10 * k, &err));
        else if (k == 10)
            assert_ok(store_trial_fail(store, trial, RECORD_FAILED, "rank 3 said \"no\",\nand left", &err));
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_close(store);
    return 0;
}

/* The trials that fit, as a text of their row numbers. */
static const char *rows_of(struct query query) {
    static char text[256];
    struct error err = {0};
    struct arena arena = {0};
    struct record *records;
    size_t n, length = 0;
    uint64_t count;
    assert_ok(query_collect(store, &query, &arena, &n, &records, &err));
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i ? " " : "", (long long)records[i].trial);
    arena_release(&arena);
    assert_ok(query_count(store, &query, &count, &err));
    if (!query.limit && !query.offset)
        assert_int_equal(count, n);
    return text;
}

static void without_a_filter_all_come_in_the_order_recorded(void **state) {
    (void)state;
    assert_string_equal(rows_of((struct query){0}), "1 2 3 4 5 6 7 8 9 10 11 12");
    assert_string_equal(rows_of((struct query){.descending = true, .limit = 3}), "12 11 10");
    assert_string_equal(rows_of((struct query){.limit = 2, .offset = 4}), "5 6");
}

static void each_filter_keeps_what_fits(void **state) {
    (void)state;
    const enum record_state failed = RECORD_FAILED, running = RECORD_RUNNING;
    assert_string_equal(rows_of((struct query){.session = "s"}), "1 3 5 7 9 11");
    assert_string_equal(rows_of((struct query){.runner = "local"}), "7 8 9 10 11 12");
    assert_string_equal(rows_of((struct query){.proposer = "horovod"}), "1 5 9");
    assert_string_equal(rows_of((struct query){.state = &failed}), "11");
    assert_string_equal(rows_of((struct query){.state = &running}), "12");
    assert_string_equal(rows_of((struct query){.min_measured_us = 120, .max_measured_us = 140}), "3 4 5");
    assert_string_equal(rows_of((struct query){.max_predicted_us = 120}), "9 11 12");
    assert_string_equal(rows_of((struct query){.min_predicted_us = 180}), "2 3");
    assert_string_equal(rows_of((struct query){.session = "s", .runner = "lab", .min_measured_us = 111}), "3 5");
    assert_string_equal(rows_of((struct query){.session = "S"}), "");
    assert_string_equal(rows_of((struct query){.session = "s", .number = 4}), "7");
    assert_string_equal(rows_of((struct query){.session = "s", .number = 7}), "");
}

static void objects_are_named_or_given_by_the_start_of_their_id(void **state) {
    (void)state;
    char prefix[ID_SHORT + 1];
    snprintf(prefix, sizeof prefix, "%.*s", ID_SHORT, other_strategy.hex);
    assert_string_equal(rows_of((struct query){.strategy = "wfbp"}), "1 2 3 4 5 6");
    assert_string_equal(rows_of((struct query){.strategy = prefix}), "7 8 9 10 11 12");
    assert_string_equal(rows_of((struct query){.strategy = other_strategy.hex, .session = "s"}), "7 9 11");
    assert_string_equal(rows_of((struct query){.model = "tiny", .cluster = f.cluster.hex, .limit = 1}), "1");
    assert_string_equal(rows_of((struct query){.model = "huge"}), "");
    assert_string_equal(rows_of((struct query){.model = "' OR 1 --"}), "");
}

static void stamps_are_compared_by_their_beginnings(void **state) {
    (void)state;
    assert_string_equal(rows_of((struct query){.since = "2020", .limit = 1}), "1");
    assert_string_equal(rows_of((struct query){.until = "2020"}), "");
    assert_string_equal(rows_of((struct query){.since = "9999-01-01"}), "");
    assert_string_equal(rows_of((struct query){.until = "9999-01-01", .limit = 1}), "1");
}

static void an_order_puts_missing_values_last(void **state) {
    (void)state;
    assert_string_equal(rows_of((struct query){.order = QUERY_BY_measured, .descending = true}),
                        "10 9 8 7 6 5 4 3 2 1 12 11");
    assert_string_equal(rows_of((struct query){.order = QUERY_BY_predicted, .session = "s"}), "11 9 5 3 1 7");
    enum query_order order;
    assert_true(query_order_parse("measured", &order) && order == QUERY_BY_measured);
    assert_false(query_order_parse("mesured", &order));
}

static void a_record_has_everything_that_was_given(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct record *r;
    size_t n;
    assert_ok(query_collect(store, &(struct query){.limit = 1, .offset = 2, .iterations = true}, &arena, &n, &r, &err));
    assert_string_equal(r->model_name, "tiny");
    assert_string_equal(r->cluster_name, "pair");
    assert_string_equal(r->strategy_name, "wfbp");
    assert_string_equal(r->environment_json, "{\"host\":\"here\"}");
    assert_int_equal(r->number, 2);
    assert_true(r->seed == UINT64_MAX);
    assert_true(r->predicted_us == 180 && r->median_us == 120 && r->low_us == 119 && r->high_us == 122);
    assert_int_equal(r->n_iterations, 3);
    assert_true(r->iterations_us[0] == 122 && r->iterations_us[1] == 119 && r->iterations_us[2] == 120);
    assert_null(r->reason);
    arena_release(&arena);
}

static enum status stop_at_two(void *context, const struct record *record, struct error *err) {
    int *seen = context;
    (void)record;
    return ++*seen == 2 ? error_set(err, ST_CANCELLED, "enough") : ST_OK;
}

static void a_visitor_can_stop_the_query(void **state) {
    (void)state;
    struct error err = {0};
    int seen = 0;
    assert_fails(query_run(store, &(struct query){0}, stop_at_two, &seen, &err), ST_CANCELLED, "enough");
    assert_int_equal(seen, 2);
    must_put(store, STORE_RANKER, "the store still writes", "{}");
}

static enum status count_visits(void *context, const struct record *record, struct error *err) {
    (void)record, (void)err;
    ++*(int *)context;
    return ST_OK;
}

static void a_query_that_takes_too_long_ends_and_the_next_one_is_whole(void **state) {
    enum { N = 3000 };
    static struct record records[N];
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct store *large = must_open(dataset_path("large.db"), STORE_READ_WRITE);
    const struct fixture g = put_fixture(large);
    int seen = 0;
    for (int i = 0; i < N; i++)
        records[i] = (struct record){.model = g.model.hex,
                                     .cluster = g.cluster.hex,
                                     .strategy = g.strategy.hex,
                                     .state = RECORD_COMPLETE,
                                     .proposer = "sampler",
                                     .runner = "lab",
                                     .predicted_us = 1 + i * 7919 % N,
                                     .mean_us = 5,
                                     .median_us = 5,
                                     .low_us = (double)NAN,
                                     .high_us = (double)NAN};
    assert_ok(store_trials_import(large, N, records, NULL, &report, &err));
    struct query query = {.order = QUERY_BY_predicted, .limit = 10, .patience_us = 0.001};
    assert_fails(query_run(large, &query, count_visits, &seen, &err), ST_TIMEOUT, "too long");
    assert_int_equal(seen, 0); /* all are sorted before the first */
    query.patience_us = 0;
    assert_ok(query_run(large, &query, count_visits, &seen, &err));
    query.patience_us = 60e6;
    assert_ok(query_run(large, &query, count_visits, &seen, &err));
    assert_int_equal(seen, 20);
    store_close(large);
}

static char *export_text(enum export_format format, const struct query *query, uint64_t *n) {
    struct error err = {0};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    assert_ok(export_run(store, query, format, out, n, &err));
    fclose(out);
    return text;
}

static void csv_quotes_as_rfc_4180_says(void **state) {
    (void)state;
    uint64_t n;
    const enum record_state failed = RECORD_FAILED;
    char *text = export_text(EXPORT_CSV, &(struct query){.state = &failed}, &n);
    assert_int_equal(n, 1);
    assert_contains(text, ",reason,environment,iterations_us,team,shared,attempt,client\r\n");
    assert_contains(text, ",\"rank 3 said \"\"no\"\", and left\",,,,all,1,\r\n");
    assert_contains(text, ",18446744073709551615,failed,100,,,,,");
    free(text);
    text = export_text(EXPORT_CSV, &(struct query){.limit = 1, .offset = 1, .iterations = true}, NULL);
    assert_contains(text, ",112 109 110,,all,1,\r\n");
    free(text);
}

/* Fields of a CSV line, quotes aside. */
static int fields(const char *line) {
    int n = 1;
    bool quoted = false;
    for (; *line && (quoted || *line != '\r'); line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

static void every_csv_line_has_every_column(void **state) {
    (void)state;
    char *text = export_text(EXPORT_CSV, &(struct query){.iterations = true}, NULL);
    int lines = 0;
    for (const char *line = text; *line; lines++) {
        assert_int_equal(fields(line), 30);
        line = strstr(line, "\r\n") + 2;
    }
    assert_int_equal(lines, 13);
    free(text);
}

static void every_json_line_is_one_object(void **state) {
    (void)state;
    uint64_t n;
    char *text = export_text(EXPORT_JSON_LINES, &(struct query){.iterations = true}, &n);
    assert_int_equal(n, 12);
    int seen = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, seen++) {
        *end = '\0';
        cJSON *json = cJSON_Parse(line);
        assert_non_null(json);
        assert_string_equal(cJSON_GetObjectItem(json, "schema")->valuestring, "syncopate.record/1");
        const cJSON *times = cJSON_GetObjectItem(json, "iterations_us");
        assert_int_equal(cJSON_GetArraySize(times), seen < 10 ? 3 : 0);
        assert_int_equal(cJSON_HasObjectItem(json, "session"), seen % 2 == 0);
        if (seen == 10)
            assert_string_equal(cJSON_GetObjectItem(json, "reason")->valuestring, "rank 3 said \"no\", and left");
        if (seen < 10)
            assert_string_equal(
                cJSON_GetObjectItem(cJSON_GetObjectItem(json, "environment_details"), "host")->valuestring, "here");
        cJSON_Delete(json);
    }
    assert_int_equal(seen, 12);
    free(text);
}

static void an_export_to_a_full_device_fails(void **state) {
    (void)state;
    struct error err = {0};
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    assert_fails(export_run(store, &(struct query){0}, EXPORT_CSV, full, NULL, &err), ST_ENVIRONMENT, "No space");
    fclose(full);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_filter_all_come_in_the_order_recorded),
        cmocka_unit_test(each_filter_keeps_what_fits),
        cmocka_unit_test(objects_are_named_or_given_by_the_start_of_their_id),
        cmocka_unit_test(stamps_are_compared_by_their_beginnings),
        cmocka_unit_test(an_order_puts_missing_values_last),
        cmocka_unit_test(a_record_has_everything_that_was_given),
        cmocka_unit_test(a_visitor_can_stop_the_query),
        cmocka_unit_test(a_query_that_takes_too_long_ends_and_the_next_one_is_whole),
        cmocka_unit_test(csv_quotes_as_rfc_4180_says),
        cmocka_unit_test(every_csv_line_has_every_column),
        cmocka_unit_test(every_json_line_is_one_object),
        cmocka_unit_test(an_export_to_a_full_device_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
