/* Trials that ended elsewhere come in by batches, whole or not at all, once; and an export read into an empty dataset
 * is exported the same, byte for byte. */
#include <unistd.h>

#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/export.h"
#include "dataset/import.h"
#include "dataset/ingest.h"
#include "tests/unit/dataset/fixture.h"

static struct record finished(const struct fixture *f, const char *uid, double median_us) {
    return (struct record){.uid = uid,
                           .model = f->model.hex,
                           .cluster = f->cluster.hex,
                           .strategy = f->strategy.hex,
                           .proposer = "theirs",
                           .runner = "slurm",
                           .state = RECORD_COMPLETE,
                           .predicted_us = (double)NAN,
                           .mean_us = median_us,
                           .median_us = median_us,
                           .low_us = (double)NAN,
                           .high_us = (double)NAN,
                           .environment_json = "{\"host\":\"there\"}"};
}

static void assert_sound(struct store *store) {
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
}

static void a_batch_is_added_once(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct record *r;
    size_t n;
    struct import_report report;
    static const double times[] = {12, 10, 11, 13};
    struct store *store = must_open(dataset_path("batch.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    struct record records[4];
    for (int i = 0; i < 4; i++)
        records[i] = finished(&f, (const char *const[]){"u1", "u2", "u3", NULL}[i], 10 + i);
    records[0].session = "s";
    records[0].number = 7;
    records[1].session = "s";
    records[1].team = "red";
    records[1].shared = "|blue|";
    records[2].mean_us = records[2].median_us = (double)NAN;
    records[2].n_iterations = 4;
    records[2].iterations_us = times;
    const struct import_options options = {.team = "green"};
    assert_ok(store_trials_import(store, 4, records, &options, &report, &err));
    assert_true(report.added == 4 && report.duplicates == 0);
    assert_ok(store_trials_import(store, 3, records, &options, &report, &err));
    assert_true(report.added == 0 && report.duplicates == 3);
    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &r, &err));
    assert_int_equal(n, 4);
    assert_true(r[0].number == 7 && r[1].number == 8 && r[3].number == 0);
    assert_string_equal(r[0].team, "green");
    assert_string_equal(r[1].team, "red");
    assert_string_equal(r[1].shared, "|blue|");
    assert_string_equal(r[2].shared, "*");
    assert_true(r[2].median_us == 11.5 && r[2].mean_us == 11.5 && r[2].n_iterations == 4 && r[0].n_iterations == 0);
    assert_int_equal(strlen(r[3].uid), 32);
    assert_string_equal(r[0].environment_json, "{\"host\":\"there\"}");
    assert_sound(store);
    store_close(store);
    arena_release(&arena);
}

static void a_batch_with_one_bad_record_is_refused_whole(void **state) {
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct store *store = must_open(dataset_path("bad.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    struct record good = finished(&f, "old", 5);
    good.session = "s";
    good.number = 1;
    assert_ok(store_trials_import(store, 1, &good, NULL, &report, &err));
    for (int i = 0; i < 13; i++) {
        struct record records[3] = {finished(&f, "a", 1), finished(&f, "b", 2), finished(&f, "c", 3)};
        struct record *bad = &records[1];
        static const double no_time[] = {0}, others[] = {3, 4, 30};
        static const struct {
            enum status status;
            const char *words;
        } cases[13] = {{ST_CONFLICT, "uid old is here with another session"},
                       {ST_CONFLICT, ""},
                       {ST_NOT_FOUND, ""},
                       {ST_INVALID, "a trial that is running"},
                       {ST_INVALID, "a complete trial has a median"},
                       {ST_INVALID, "a reason belongs"},
                       {ST_INVALID, "a trial that is failed has no times"},
                       {ST_INVALID, "iteration 0"},
                       {ST_INVALID, "team"},
                       {ST_INVALID, "shared"},
                       {ST_INVALID, "a prediction is positive, and the interval"},
                       {ST_NOT_FOUND, ""},
                       {ST_INVALID, "the median is 2 us, that of the iterations 4"}};
        if (i == 0)
            bad->uid = "old";
        if (i == 1) {
            bad->session = "s";
            bad->number = 1;
        }
        if (i == 2)
            bad->strategy = f.model.hex;
        if (i == 3)
            bad->state = RECORD_RUNNING;
        if (i == 4)
            bad->median_us = (double)NAN;
        if (i == 5)
            bad->reason = "none";
        if (i == 6) {
            bad->state = RECORD_FAILED;
            bad->reason = "x";
        }
        if (i == 7) {
            bad->n_iterations = 1;
            bad->iterations_us = no_time;
        }
        bad->team = i == 8 ? "no team" : NULL;
        bad->shared = i == 9 ? "|a" : NULL;
        if (i == 10)
            bad->low_us = bad->median_us + 1;
        if (i == 11)
            bad->session = "nowhere";
        if (i == 12) {
            bad->n_iterations = 3;
            bad->iterations_us = others;
        }
        assert_fails(store_trials_import(store, 3, records, NULL, &report, &err), cases[i].status, cases[i].words);
        assert_int_equal(err.position, 2);
        assert_int_equal(count_trials(store), 1);
    }
    struct record same = good;
    same.median_us = same.mean_us = 6;
    assert_fails(store_trials_import(store, 1, &same, NULL, &report, &err), ST_CONFLICT, "another mean_us");
    store_close(store);
}

enum { MANY = 300 }; /* more than go together */

/* Records of a session of the team red, of one of blue, or of no session. Some name a number, a team, an audience. They
 * stay until the next call. */
static struct record *draw_many(struct rng *rng, const struct fixture *f) {
    static struct record records[MANY];
    static char uids[MANY][16];
    static const char *const sessions[] = {NULL, NULL, "red-1", "blue-1"}, *const teams[] = {NULL, NULL, "red",
                                                                                             "green"};
    static const char *const audiences[] = {NULL, "*", "", "|blue|red|", "|green|", "|blue|"};
    for (size_t i = 0; i < MANY; i++) {
        snprintf(uids[i], sizeof uids[i], "uid-%zu", i);
        records[i] = finished(f, uids[i], 1 + (double)rng_below(rng, 1000));
        records[i].session = sessions[rng_below(rng, 4)];
        records[i].number = records[i].session && rng_below(rng, 8) ? i + 1 : 0;
        records[i].team = teams[rng_below(rng, 4)];
        records[i].shared = audiences[rng_below(rng, 6)];
        if (rng_below(rng, 3))
            continue;
        records[i].state = RECORD_FAILED;
        records[i].reason = "it\033[31m failed";
        records[i].mean_us = records[i].median_us = (double)NAN;
    }
    return records;
}

static struct store *open_for_many(const char *name, struct fixture *f) {
    struct store *store = must_open(dataset_path(name), STORE_READ_WRITE);
    struct error err = {0};
    *f = put_fixture(store);
    for (int blue = 0; blue < 2; blue++) {
        const struct stored_session session = {.id = blue ? "blue-1" : "red-1",
                                               .model = f->model.hex,
                                               .cluster = f->cluster.hex,
                                               .seed = 1,
                                               .budget = "{}",
                                               .team = blue ? "blue" : "red",
                                               .shared = blue ? "|red|" : "*"};
        assert_ok(store_session_begin(store, &session, &err));
    }
    return store;
}

static void assert_same_trials(struct store *a, struct store *b) {
    struct error err = {0};
    struct arena arena = {0};
    struct record *x, *y;
    size_t n, m;
    assert_ok(query_collect(a, &(struct query){0}, &arena, &n, &x, &err));
    assert_ok(query_collect(b, &(struct query){0}, &arena, &m, &y, &err));
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(x[i].uid, y[i].uid);
        assert_int_equal(x[i].number, y[i].number);
        assert_true(x[i].state == y[i].state);
        assert_string_equal(x[i].team ? x[i].team : "-", y[i].team ? y[i].team : "-");
        assert_string_equal(x[i].shared, y[i].shared);
        assert_string_equal(x[i].reason ? x[i].reason : "-", y[i].reason ? y[i].reason : "-");
    }
    arena_release(&arena);
}

static void many_at_once_are_as_one_by_one(void **state) {
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct fixture f;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct store *together = open_for_many("together.db", &f), *alone = open_for_many("alone.db", &f);
    const struct record *records = draw_many(&rng, &f);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(store_trials_import(alone, 1, &records[i], NULL, &report, &err));
    for (size_t before = 0; before <= MANY; before += 50) { /* what is there already is a duplicate */
        assert_ok(store_trials_import(together, before, records, NULL, &report, &err));
        assert_true(report.added == (before ? 50 : 0) && report.duplicates == before - report.added);
    }
    assert_same_trials(together, alone);
    assert_sound(together);
    store_close(together);
    store_close(alone);
}

static void the_one_of_many_that_is_refused_is_named(void **state) {
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct fixture f;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct store *store = open_for_many("refused.db", &f);
    for (int k = 0; k < 12; k++) {
        struct record *records = draw_many(&rng, &f);
        const size_t at = rng_below(&rng, MANY);
        if (k % 3 == 0)
            records[at].strategy = f.model.hex; /* there is no such strategy */
        else if (k % 3 == 1)
            records[at].session = "nowhere";
        else
            records[at].proposer = "\033[31m";
        assert_int_not_equal(store_trials_import(store, MANY, records, NULL, &report, &err), ST_OK);
        assert_int_equal(err.position, at + 1);
        assert_int_equal(count_trials(store), 0);
    }
    store_close(store);
}

static char *export_all(struct store *store) {
    struct error err = {0};
    char *text = NULL;
    size_t length;
    const struct query query = {.iterations = true};
    FILE *out = open_memstream(&text, &length);
    assert_ok(export_references(store, &query, out, &err));
    assert_ok(export_run(store, &query, EXPORT_JSON_LINES, out, NULL, &err));
    fclose(out);
    return text;
}

static enum status import_text(struct store *store, const char *text, struct import_counts *counts, struct error *err) {
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    const struct import_options options = {.keep_rows = true};
    const enum status status = import_run(store, in, "text", &options, counts, err);
    fclose(in);
    return status;
}

/* Sessions of teams, every end that a trial can have, odd texts and odd numbers. */
static void fill(struct store *store, struct rng *rng) {
    struct error err = {0};
    const struct fixture f = put_fixture(store);
    const struct stored_session session = {.id = "red-1",
                                           .model = f.model.hex,
                                           .cluster = f.cluster.hex,
                                           .seed = UINT64_MAX - 1,
                                           .budget = "{\"trials\": 9}",
                                           .options = "{\"b\":[1,{\"seed\":7}],\"a\":\",}\"}",
                                           .team = "red",
                                           .shared = "",
                                           .mode = STORED_SESSION_ASK};
    assert_ok(store_session_begin(store, &session, &err));
    must_put_variant(store, STORE_STRATEGY, 7);
    for (int i = 0; i < 700; i++) { /* more than a batch of the import */
        struct new_trial request = request_of(&f, rng_below(rng, 2) ? session.id : NULL);
        request.seed = rng_next(rng);
        request.predicted_us = rng_below(rng, 2) ? rng_log_between(rng, 1e-3, 1e9) : (double)NAN;
        request.proposer = i % 2 ? "with \"quotes\", commas, and = signs" : "\xc3\xa9t\xc3\xa9";
        const int64_t trial = must_begin_trial(store, &request);
        if (i % 3)
            assert_ok(finish_trial(store, trial, rng_log_between(rng, 2, 1e9), &err));
        else
            assert_ok(store_trial_fail(store, trial, (enum record_state)((int)RECORD_FAILED + i % 9 / 3),
                                       "line 1\nline 2 \\ \"x\"", &err));
    }
}

static void an_export_comes_back_byte_for_byte(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    struct import_counts counts;
    rng_seed(&rng, test_seed());
    struct store *a = must_open(dataset_path("a.db"), STORE_READ_WRITE);
    struct store *b = must_open(dataset_path("b.db"), STORE_READ_WRITE);
    fill(a, &rng);
    char *first = export_all(a);
    assert_ok(import_text(b, first, &counts, &err));
    assert_true(counts.objects == 3 && counts.sessions == 1 && counts.trials == 700);
    assert_true(counts.duplicates == 0 && counts.unfinished == 0 && counts.skipped == 0);
    char *second = export_all(b);
    assert_string_equal(first, second);
    assert_sound(b);
    assert_ok(import_text(b, first, &counts, &err));
    assert_true(counts.trials == 0 && counts.objects == 0 && counts.sessions == 0 && counts.duplicates == 704);
    assert_int_equal(count_trials(b), 700);
    free(first);
    free(second);
    store_close(a);
    store_close(b);
}

static void unfinished_trials_stay_out(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    struct store *a = must_open(dataset_path("running.db"), STORE_READ_WRITE);
    struct store *b = must_open(dataset_path("fresh.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(a);
    const struct new_trial request = request_of(&f, NULL);
    must_begin_trial(a, &request);
    must_run_trial(a, &f, NULL, 5);
    char *text = export_all(a);
    assert_ok(import_text(b, text, &counts, &err));
    assert_true(counts.trials == 1 && counts.unfinished == 1);
    free(text);
    store_close(a);
    store_close(b);
}

static void a_bad_line_is_named_and_nothing_stays(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    struct store *a = must_open(dataset_path("whole.db"), STORE_READ_WRITE);
    struct store *b = must_open(dataset_path("none.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(a);
    must_run_trial(a, &f, NULL, 5);
    char *text = export_all(a), *longer = NULL;
    static const char *const cases[][2] = {
        {"{\"schema\":\"syncopate.record/1\"", "text: line 5"},
        {"{\"schema\":\"syncopate.record/2\"}", "text: line 5: this program imports no syncopate.record/2"},
        {"{\"schema\":\"syncopate.record/1\",\"colour\":1}", "/colour"},
        {"{\"schema\":\"syncopate.record/1\",\"state\":\"complete\",\"seed\":1.5}", "must be a whole number: seed"},
        {"{\"schema\":\"syncopate.record/1\",\"state\":\"won\"}", "text: line 5: no such state: won"},
        {"{\"schema\":\"syncopate.record/1\",\"state\":\"complete\"}", "text: line 5: model, cluster"},
        {"{\"schema\":\"syncopate.object/1\",\"kind\":\"model\",\"id\":\"00\",\"name\":\"m\",\"content\":{}}",
         "text: line 5: the content is not that of 00"},
        {"{\"schema\":\"syncopate.object/1\",\"kind\":\"song\",\"name\":\"m\",\"content\":{}}", "an object needs"},
        {"{\"schema\":\"syncopate.session/1\",\"id\":\"s\"}", "a session needs"},
        {"{\"schema\":\"syncopate.calibration/2\"}", "text: line 5: this program imports no syncopate.calibration/2"},
        {"[1]", "text: line 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(asprintf(&longer, "%s%s\n", text, cases[i][0]) > 0);
        const enum status status = import_text(b, longer, &counts, &err);
        assert_true(status == ST_INVALID || status == ST_NOT_FOUND);
        assert_contains(ERROR_TEXT(&err), cases[i][1]);
        assert_int_equal(count_trials(b), 0);
        free(longer);
    }
    free(text);
    store_close(a);
    store_close(b);
}

static void calibrations_of_an_older_export_are_skipped_and_counted(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    struct store *a = must_open(dataset_path("now.db"), STORE_READ_WRITE);
    struct store *b = must_open(dataset_path("then.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(a);
    must_run_trial(a, &f, NULL, 5);
    char *text = export_all(a), *longer = NULL;
    assert_true(asprintf(&longer,
                         "{\"schema\":\"syncopate.calibration/1\",\"session\":\"s\",\"after_trial\":0,\"created\":"
                         "\"2026-11-21T08:41:17.123Z\",\"content\":{\"k\": 1.5}}\n%s",
                         text) > 0);
    assert_ok(import_text(b, longer, &counts, &err));
    assert_true(counts.skipped == 1 && counts.trials == 1 && counts.objects == 3 && counts.duplicates == 0);
    free(text);
    free(longer);
    store_close(a);
    store_close(b);
}

#define EVIL "\\u001b]0;x\\u0007\\r\\n\\u009b\\u202e"
#define OBJECT(kind, name, content)                                                                                    \
    "{\"schema\":\"syncopate.object/1\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"content\":" content "}"
#define SESSION(id)                                                                                                    \
    "{\"schema\":\"syncopate.session/1\",\"id\":\"" id                                                                 \
    "\",\"model\":\"%s\",\"cluster\":\"%s\",\"seed\":1,\"budget\":{},"                                                 \
    "\"options\":{},\"state\":\"done\",\"reason\":\"a" EVIL "\",\"started\":\"2026-11-21T08:41:17.123Z\",\"ended\":"   \
    "\"2026-11-21T08:41:17.123Z\"}"
#define RECORD(uid, proposer, runner, client)                                                                          \
    "{\"schema\":\"syncopate.record/1\",\"uid\":\"" uid "\",\"model\":\"%s\",\"cluster\":\"%s\",\"strategy\":\"%s\","  \
    "\"proposer\":\"" proposer "\",\"runner\":\"" runner "\",\"client\":\"" client                                     \
    "\",\"state\":\"failed\",\"reason\":"                                                                              \
    "\"line 1\\nline 2" EVIL "\"}"

/* `line` takes the ids of the fixture. */
static enum status import_line(struct store *store, const char *line, const struct fixture *f,
                               struct import_counts *counts, struct error *err) {
    char *text = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_true(asprintf(&text, line, f->model.hex, f->cluster.hex, f->strategy.hex) > 0);
#pragma GCC diagnostic pop
    const enum status status = import_text(store, text, counts, err);
    free(text);
    return status;
}

static void an_environment_has_lines_and_tabs_and_nothing_worse(void **state) {
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct store *store = must_open(dataset_path("environments.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    struct record r = finished(&f, "u", 10);
    r.environment_json = "{\"host\":\"\\u001b]0;x\\u0007\"}";
    assert_fails(store_trials_import(store, 1, &r, NULL, &report, &err), ST_INVALID, "host: ");
    r.environment_json = "{\"a\\u202e\":1}";
    assert_fails(store_trials_import(store, 1, &r, NULL, &report, &err), ST_INVALID, "a member's name: ");
    r.environment_json = "{\"command\":\"export A=1\\n\\tif true\"}";
    assert_ok(store_trials_import(store, 1, &r, NULL, &report, &err));
    assert_sound(store);
    store_close(store);
}

/* Nobody's measurement is lost because its machine has a strange name. */
static void what_a_finished_trial_says_of_its_environment_is_cleaned(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct record *r;
    size_t n;
    struct store *store = must_open(dataset_path("cleaned.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct new_trial request = request_of(&f, NULL);
    const int64_t trial = must_begin_trial(store, &request);
    static const double times[] = {5};
    const struct finished_trial result = {.mean_us = 5,
                                          .median_us = 5,
                                          .low_us = 5,
                                          .high_us = 5,
                                          .n_iterations = 1,
                                          .iterations_us = times,
                                          .environment =
                                              "{\"a\\u001b\":[\"b\\u0007c\\n\\td\"],\"e\":0.1,\"f\":\"g\\u202e\"}"};
    assert_ok(store_trial_finish(store, trial, &result, &err));
    assert_ok(query_collect(store, &(struct query){0}, &arena, &n, &r, &err));
    assert_string_equal(r[0].environment_json, "{\"a?\":[\"b?c\\n\\td\"],\"e\":0.1,\"f\":\"g???\"}");
    assert_sound(store);
    store_close(store);
    arena_release(&arena);
}

static void what_others_named_badly_is_refused_with_its_line(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    struct store *to = must_open(dataset_path("picky.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(to);
    static const char *const cases[][2] = {
        {OBJECT("ranker", "r" EVIL, "{}"), "text: line 1: name: "},
        {OBJECT("ranker", "r", "{\"a\":[\"b" EVIL "\"]}"), "text: line 1: a text: "},
        {OBJECT("environment", "e", "{\"b" EVIL "\":1}"), "text: line 1: a member's name: "},
        {OBJECT("model", "m", "{}"), "text: line 1: content: "},
        {OBJECT("model", "m", "{\"schema\":\"syncopate.model/1\",\"name\":\"m\"}"), "text: line 1: content: "},
        {OBJECT("cluster", "c", TINY_MODEL), "text: line 1: content: "},
        {OBJECT("strategy", "s", "{\"groups\":[]}"), "text: line 1: content: "},
        {SESSION("../pwned"), "text: line 1: id: \"../pwned\" is not 1 to 63"},
        {SESSION("-o"), "text: line 1: id: "},
        {SESSION("a b"), "text: line 1: id: "},
        {SESSION("a" EVIL), "text: line 1: id: "},
        {SESSION("0123456789012345678901234567890123456789012345678901234567890123"), "text: line 1: id: "},
        {RECORD("u" EVIL, "p", "r", "c"), "text: line 1: uid: "},
        {RECORD("u", "p" EVIL, "r", "c"), "text: line 1: proposer: "},
        {RECORD("u", "p", "r" EVIL, "c"), "text: line 1: runner: "},
        {RECORD("u", "p", "r", "c" EVIL), "text: line 1: client: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(import_line(to, cases[i][0], &f, &counts, &err), ST_INVALID, cases[i][1]);
        assert_int_equal(count_trials(to), 0);
    }
    assert_sound(to);
    store_close(to);
}

static void a_session_of_others_is_foreign_and_its_reason_clean(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct import_counts counts;
    struct stored_session session;
    struct record *records;
    size_t n;
    struct store *to = must_open(dataset_path("foreign-sessions.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(to);
    must_begin_session(to, &f, "mine", 1);
    assert_ok(import_line(to, SESSION("theirs"), &f, &counts, &err));
    assert_ok(store_session_get(to, "mine", &arena, &session, &err));
    assert_null(session.origin);
    assert_ok(store_session_get(to, "theirs", &arena, &session, &err));
    assert_string_equal(session.origin, "import");
    assert_string_equal(session.reason, "a?]0;x?  ?????");
    assert_ok(store_session_adopt(to, "theirs", "{\"runner\":\"lab\"}", &err));
    assert_ok(store_session_get(to, "theirs", &arena, &session, &err));
    assert_null(session.origin);
    assert_string_equal(session.options, "{\"runner\":\"lab\"}");
    assert_fails(store_session_adopt(to, "none", "{}", &err), ST_NOT_FOUND, "no session none");
    assert_fails(store_session_adopt(to, "theirs", "{", &err), ST_INVALID, "options");
    assert_ok(import_line(to, RECORD("u", "p", "r", "c"), &f, &counts, &err));
    assert_int_equal(counts.trials, 1);
    assert_ok(import_line(to, RECORD("u", "p", "r", "c"), &f, &counts, &err)); /* again: the same, although cleaned */
    assert_true(counts.trials == 0 && counts.duplicates == 1);
    assert_ok(query_collect(to, &(struct query){0}, &arena, &n, &records, &err));
    assert_string_equal(records[0].reason, "line 1 line 2?]0;x?  ?????");
    assert_sound(to);
    store_close(to);
    arena_release(&arena);
}

/* How many trials a team may see that has none of its own. */
static uint64_t shared_with_all(struct store *store) {
    struct error err = {0};
    uint64_t n;
    assert_ok(query_count(store, &(struct query){.viewer = "nobody"}, &n, &err));
    return n;
}

/* Sharing a session anew changes every page of its trials, here 9 MB, each of which SQLite keeps to undo the step. */
static void a_step_that_changes_megabytes_is_kept_whole_or_undone_whole(void **state) {
    (void)state;
    enum { N = 6000, LONG = 1500 };
    static struct record records[N];
    static char proposer[LONG];
    struct error err = {0};
    struct import_report report;
    struct store *store = must_open(dataset_path("megabytes.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    memset(proposer, 'p', LONG - 1);
    for (int i = 0; i < N; i++) {
        records[i] = finished(&f, NULL, 1 + i);
        records[i].session = "s";
        records[i].number = (uint64_t)i + 1;
        records[i].proposer = proposer;
    }
    assert_ok(store_trials_import(store, N, records, NULL, &report, &err));
    assert_int_equal(shared_with_all(store), N);
    for (int kept = 0; kept < 2; kept++) {
        assert_ok(store_begin(store, &err));
        assert_ok(store_begin(store, &err));
        assert_ok(store_session_share(store, "s", "", &err));
        assert_int_equal(store_end(store, kept ? ST_OK : ST_CANCELLED, &err), kept ? ST_OK : ST_CANCELLED);
        must_put(store, STORE_RANKER, "beside it", kept ? "[1]" : "[0]");
        assert_ok(store_end(store, ST_OK, &err));
        assert_int_equal(shared_with_all(store), kept ? 0 : N);
        assert_sound(store);
    }
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_added_once),
        cmocka_unit_test(a_batch_with_one_bad_record_is_refused_whole),
        cmocka_unit_test(many_at_once_are_as_one_by_one),
        cmocka_unit_test(the_one_of_many_that_is_refused_is_named),
        cmocka_unit_test(calibrations_of_an_older_export_are_skipped_and_counted),
        cmocka_unit_test(an_export_comes_back_byte_for_byte),
        cmocka_unit_test(unfinished_trials_stay_out),
        cmocka_unit_test(a_bad_line_is_named_and_nothing_stays),
        cmocka_unit_test(an_environment_has_lines_and_tabs_and_nothing_worse),
        cmocka_unit_test(what_a_finished_trial_says_of_its_environment_is_cleaned),
        cmocka_unit_test(what_others_named_badly_is_refused_with_its_line),
        cmocka_unit_test(a_session_of_others_is_foreign_and_its_reason_clean),
        cmocka_unit_test(a_step_that_changes_megabytes_is_kept_whole_or_undone_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
