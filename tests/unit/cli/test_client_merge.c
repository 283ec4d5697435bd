/* A dataset here and a service's, brought together: what went to a service comes back as it was, to the byte, whatever
 * its texts and numbers; what is refused changes nothing; and a fetch that was cut goes on. */
#include <dirent.h>
#include <math.h>

#include "base/rng.h"
#include "cli/remote_merge.h"
#include "cli/remote_query.h"
#include "dataset/export.h"
#include "service/tokens.h"
#include "tests/support/dataset/put.h"
#include "tests/unit/cli/scripted_service.h"
#include "tests/unit/service/http_site.h"

enum { STRATEGIES = 90, SESSIONS = 4 };

static struct rng rng;
static struct id model, cluster, strategies[STRATEGIES];
static char session_ids[SESSIONS][32];

/* ---- datasets ---- */

static const char *path_of(const char *name) {
    static char paths[8][256];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_dir(), name);
    return path;
}

static struct store *open_store(const char *name, enum store_mode mode) {
    struct error err = {0};
    struct store *store = NULL;
    assert_ok(store_open(path_of(name), mode, &store, &err));
    return store;
}

static void put_objects(struct store *store) {
    struct error err = {0};
    assert_ok(put_object(store, STORE_MODEL,
                         "m\xc3\xb6"
                         "del \"1\"",
                         "{\"schema\":\"syncopate.model/1\",\"name\":\"m\\u00f6del\",\"batch_per_device\":1.0,"
                         "\"variables\":[{\"name\":\"w\",\"shape\":[4],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l\","
                         "\"forward_us\":2.50,\"backward_us\":0.125e3,\"variables\":[\"w\"]}]}",
                         &model, &err));
    assert_ok(put_object(store, STORE_CLUSTER, "pair",
                         "{\"schema\":\"syncopate.cluster/1\",\"name\":\"p\\u00e4ir\",\"nodes\":[{\"name\":\"n\","
                         "\"count\":2,\"nic_gbit_per_s\":1,\"nic_latency_us\":5}]}",
                         &cluster, &err));
    for (int i = 0; i < STRATEGIES; i++) {
        char content[64], name[32];
        snprintf(content, sizeof content, "{\"groups\":[%d],\"schema\":\"syncopate.strategy/1\"}", i);
        snprintf(name, sizeof name, "s,%d", i);
        assert_ok(put_object(store, STORE_STRATEGY, name, content, &strategies[i], &err));
    }
}

static void begin_session(struct store *store, const char *id, bool ends) {
    struct error err = {0};
    const struct stored_session session = {.id = id,
                                           .model = model.hex,
                                           .cluster = cluster.hex,
                                           .seed = rng_next(&rng) | UINT64_C(1) << 63,
                                           .budget = "{\"trials\": 9}",
                                           .options = "{\"b\":[1,{\"seed\":7}],\"a\":\",}\"}",
                                           .team = "red",
                                           .shared = rng_below(&rng, 2) ? "|blue|" : "",
                                           .mode = STORED_SESSION_ASK};
    assert_ok(store_session_begin(store, &session, &err));
    if (ends)
        assert_ok(store_session_update(store, id, STORED_SESSION_STOPPED, "\"enough\"\nof it", &err));
}

static void random_record(struct record *r, double times[16], char uid[64]) {
    static const char *const shared[] = {"*", "", "|red|blue|", NULL};
    *r = (struct record){.seed = rng_next(&rng), .round = rng_below(&rng, 3), .attempt = 1 + rng_below(&rng, 3)};
    r->state = (enum record_state)((int)RECORD_COMPLETE + (int)rng_below(&rng, 4));
    r->session = rng_below(&rng, 3) ? session_ids[rng_below(&rng, SESSIONS)] : NULL;
    r->model = model.hex;
    r->cluster = cluster.hex;
    r->strategy = strategies[rng_below(&rng, STRATEGIES)].hex;
    r->proposer = rng_below(&rng, 2) ? "with \"quotes\", commas, and = signs" : "\xc3\xa9t\xc3\xa9";
    r->runner = "lab";
    r->reason = r->state == RECORD_COMPLETE ? NULL : "line 1\nline 2 \\ \"x\"";
    r->started = rng_below(&rng, 2) ? "2026-11-21T08:41:17.123Z" : NULL;
    r->predicted_us = rng_below(&rng, 2) ? rng_log_between(&rng, 1e-3, 1e9) : (double)NAN;
    r->mean_us = r->median_us = r->low_us = r->high_us = (double)NAN;
    r->client = rng_below(&rng, 2) ? "host-7 \"a\"" : NULL;
    r->team = rng_below(&rng, 2) ? "blue" : NULL;
    r->shared = r->team ? shared[rng_below(&rng, 4)] : NULL;
    r->environment_json = rng_below(&rng, 2) ? "{\"host\":\"n1\",\"cpu\":1.50}" : NULL;
    if (r->state == RECORD_COMPLETE && rng_below(&rng, 4)) {
        r->n_iterations = 1 + rng_below(&rng, 16);
        for (size_t i = 0; i < r->n_iterations; i++)
            times[i] = rng_log_between(&rng, 1e-2, 1e9);
        r->iterations_us = times;
    } else if (r->state == RECORD_COMPLETE) {
        r->mean_us = rng_log_between(&rng, 1, 1e9);
        r->median_us = r->mean_us * 0.9;
    }
    if (rng_below(&rng, 4) == 0) { /* as other programs may name them */
        snprintf(uid, 64, "odd \"%08lx\" \\ name", (unsigned long)(rng_next(&rng) >> 32));
        r->uid = uid;
    }
}

/* Trials of four sessions and of none, mixed. */
static void fill(struct store *store, size_t n) {
    struct error err = {0};
    put_objects(store);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(session_ids[i], sizeof session_ids[i], "red-%d", i);
        begin_session(store, session_ids[i], true);
    }
    for (size_t i = 0; i < n; i++) {
        struct record record;
        struct import_report report = {0};
        double times[16];
        char uid[64];
        random_record(&record, times, uid);
        assert_ok(store_trials_import(store, 1, &record, NULL, &report, &err));
    }
}

static char *export_of(struct store *store, bool references) {
    struct error err = {0};
    char *text = NULL;
    size_t n;
    const struct query query = {.iterations = true};
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    if (references)
        assert_ok(export_references(store, &query, out, &err));
    assert_ok(export_run(store, &query, EXPORT_JSON_LINES, out, NULL, &err));
    fclose(out);
    return text;
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in the order of their bytes: objects may stand in another order. */
static char *sorted(char *text) {
    char **lines = calloc(strlen(text) + 1, sizeof *lines), *out = calloc(strlen(text) + 2, 1), *rest = NULL,
         *end = out;
    size_t n = 0;
    assert_true(lines && out);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, compare_lines);
    for (size_t i = 0; i < n; i++)
        end = stpcpy(stpcpy(end, lines[i]), "\n");
    free(lines);
    free(text);
    return out;
}

static void assert_same_datasets(struct store *a, struct store *b) {
    char *first = export_of(a, false), *second = export_of(b, false);
    assert_string_equal(first, second);
    free(first);
    free(second);
    first = sorted(export_of(a, true));
    second = sorted(export_of(b, true));
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* ---- services ---- */

static struct site site;
static struct client *client;

static int set_up(void **state) {
    static int number;
    struct error err = {0};
    char name[32];
    (void)state;
    rng_seed(&rng, test_seed());
    snprintf(name, sizeof name, "service-%d", number++);
    site = (struct site){.service_options.open = true};
    site_start(&site, name);
    assert_ok(client_open(&(struct client_options){.url = server_url(site.server), .tries = 2}, &client, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    client_close(client);
    site_stop(&site);
    return 0;
}

static void push(struct store *store, struct import_counts *counts) {
    struct error err = {0};
    assert_ok(remote_push(client, store, counts, &err));
}

static void pull(const char *name, struct merge_report *report) {
    struct error err = {0};
    assert_ok(remote_pull(client, path_of(name), NULL, NULL, report, &err));
}

/* Files whose names begin so. */
static int files_like(const char *name) {
    DIR *folder = opendir(test_dir());
    int n = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        n += !strncmp(entry->d_name, name, strlen(name));
    closedir(folder);
    return n;
}

/* ---- round trips ---- */

static void a_dataset_comes_back_from_a_service_as_it_was(void **state) {
    (void)state;
    enum { TRIALS = 1300 }; /* more than a page */
    struct import_counts counts;
    struct merge_report report;
    struct store *a = open_store("there.db", STORE_READ_WRITE);
    fill(a, TRIALS);
    push(a, &counts);
    assert_int_equal(counts.trials, TRIALS);
    assert_int_equal(counts.sessions, SESSIONS);
    assert_int_equal(counts.objects, 2 + STRATEGIES);
    pull("back.db", &report);
    assert_int_equal(report.trials, TRIALS);
    struct store *b = open_store("back.db", STORE_READ_ONLY);
    assert_same_datasets(a, b);
    store_close(a);
    store_close(b);
    assert_int_equal(files_like("back.db.from"), 0);
}

static void doing_it_again_adds_nothing(void **state) {
    (void)state;
    struct import_counts counts;
    struct merge_report report;
    struct store *a = open_store("twice.db", STORE_READ_WRITE);
    fill(a, 100);
    push(a, &counts);
    push(a, &counts);
    assert_true(!counts.trials && !counts.objects && !counts.sessions);
    assert_true(counts.duplicates >= 100 + SESSIONS + 2);
    store_close(a);
    pull("twice-back.db", &report);
    assert_int_equal(report.trials, 100);
    pull("twice-back.db", &report);
    assert_true(!report.trials && !report.objects && !report.sessions && !report.updated);
}

/* What the service has comes out of it as out of a file. */
static void assert_same_export(struct store *store, const struct query *query, enum export_format format) {
    struct error err = {0};
    char *here = NULL, *there = NULL;
    size_t n_here, n_there;
    uint64_t n = 0, m = 0;
    FILE *out = open_memstream(&here, &n_here);
    assert_ok(export_run(store, query, format, out, &n, &err));
    fclose(out);
    out = open_memstream(&there, &n_there);
    assert_ok(remote_query_export(client, query, format, false, out, &m, &err));
    fclose(out);
    assert_string_equal(here, there);
    assert_true(n == m && (n || query->offset));
    free(here);
    free(there);
}

static void an_export_of_a_service_is_that_of_its_dataset(void **state) {
    (void)state;
    struct import_counts counts;
    struct store *a = open_store("exported.db", STORE_READ_WRITE);
    fill(a, 1100);
    push(a, &counts);
    const struct query queries[] = {{.iterations = true},
                                    {.limit = 7, .offset = 3},
                                    {.limit = 1050, .offset = 20, .iterations = true},
                                    {.order = QUERY_BY_measured, .descending = true, .limit = 40},
                                    {.session = session_ids[1], .max_measured_us = 1e6},
                                    {.offset = 5000}};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        assert_same_export(a, &queries[i], EXPORT_JSON_LINES);
        assert_same_export(a, &queries[i], EXPORT_CSV);
    }
    store_close(a);
}

static void an_export_with_references_is_imported_elsewhere(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    const struct import_options keep = {.keep_rows = true};
    char *text = NULL;
    size_t n;
    uint64_t trials;
    struct store *a = open_store("referring.db", STORE_READ_WRITE), *b = open_store("referred.db", STORE_READ_WRITE);
    fill(a, 1050);
    char *lines = export_of(a, true);
    FILE *in = fmemopen(lines, strlen(lines), "r");
    assert_ok(remote_import(client, in, "lines", &counts, &err));
    fclose(in);
    free(lines);
    assert_int_equal(counts.trials, 1050);
    FILE *out = open_memstream(&text, &n);
    assert_ok(
        remote_query_export(client, &(struct query){.iterations = true}, EXPORT_JSON_LINES, true, out, &trials, &err));
    fclose(out);
    assert_int_equal(trials, 1050);
    in = fmemopen(text, n, "r");
    assert_ok(import_run(b, in, "text", &keep, &counts, &err));
    fclose(in);
    assert_int_equal(counts.duplicates, 0); /* each line once */
    assert_same_datasets(a, b);
    free(text);
    store_close(a);
    store_close(b);
}

/* 18 MiB of lines, and a request may have 16. */
static void what_is_too_large_for_a_request_comes_in_several(void **state) {
    (void)state;
    enum { TRIALS = 6, BYTES = 3 << 20 };
    struct error err = {0};
    struct import_counts counts;
    struct import_report report;
    struct merge_report merged;
    char *reason = malloc(BYTES + 1);
    struct store *a = open_store("large.db", STORE_READ_WRITE);
    put_objects(a);
    memset(reason, 'x', BYTES);
    reason[BYTES] = 0;
    for (int i = 0; i < TRIALS; i++) {
        const struct record record = {.model = model.hex,
                                      .cluster = cluster.hex,
                                      .strategy = strategies[i].hex,
                                      .proposer = "p",
                                      .runner = "lab",
                                      .state = RECORD_FAILED,
                                      .reason = reason,
                                      .predicted_us = NAN,
                                      .mean_us = NAN,
                                      .median_us = NAN,
                                      .low_us = NAN,
                                      .high_us = NAN};
        assert_ok(store_trials_import(a, 1, &record, NULL, &report, &err));
    }
    free(reason);
    push(a, &counts);
    assert_int_equal(counts.trials, TRIALS);
    pull("large-back.db", &merged);
    struct store *b = open_store("large-back.db", STORE_READ_ONLY);
    assert_same_datasets(a, b);
    store_close(a);
    store_close(b);
}

/* ---- sessions that have not ended ---- */

static struct record plain_record(const char *session, const char *uid, double median_us) {
    return (struct record){.uid = uid,
                           .session = session,
                           .model = model.hex,
                           .cluster = cluster.hex,
                           .strategy = strategies[0].hex,
                           .proposer = "p",
                           .runner = "lab",
                           .state = RECORD_COMPLETE,
                           .predicted_us = NAN,
                           .mean_us = median_us,
                           .median_us = median_us,
                           .low_us = NAN,
                           .high_us = NAN};
}

static void add_record(struct store *store, const char *session, const char *uid, double median_us) {
    struct error err = {0};
    struct import_report report;
    const struct record record = plain_record(session, uid, median_us);
    assert_ok(store_trials_import(store, 1, &record, NULL, &report, &err));
}

static void sessions_that_have_not_ended_are_not_sent(void **state) {
    (void)state;
    struct import_counts counts;
    struct store *a = open_store("unfinished.db", STORE_READ_WRITE);
    put_objects(a);
    begin_session(a, "open", false);
    begin_session(a, "over", true);
    add_record(a, "open", "u1", 5);
    add_record(a, "over", "u2", 6);
    add_record(a, NULL, "u3", 7);
    push(a, &counts);
    assert_int_equal(counts.trials, 2);
    assert_int_equal(counts.sessions, 1);
    assert_int_equal(counts.unfinished, 1);
    store_close(a);
}

static void an_open_session_comes_as_far_as_it_is_and_later_the_rest(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct arena arena = {0};
    struct stored_session session;
    client_close(client);
    site_stop(&site);
    struct store *a = open_store("live.db", STORE_READ_WRITE);
    put_objects(a);
    begin_session(a, "live", false);
    add_record(a, "live", "u1", 5);
    store_close(a);
    for (int round = 0; round < 2; round++) {
        site = (struct site){.service_options.open = true};
        site_start(&site, "live");
        assert_ok(client_open(&(struct client_options){.url = server_url(site.server), .tries = 2}, &client, &err));
        pull("mirror.db", &report);
        assert_int_equal(report.trials, 1);
        assert_int_equal(report.sessions, !round);
        assert_int_equal(report.updated, round);
        if (round)
            break;
        client_close(client);
        site_stop(&site);
        a = open_store("live.db", STORE_READ_WRITE);
        add_record(a, "live", "u2", 6);
        assert_ok(store_session_update(a, "live", STORED_SESSION_DONE, "done", &err));
        store_close(a);
    }
    struct store *b = open_store("mirror.db", STORE_READ_ONLY);
    assert_ok(store_session_get(b, "live", &arena, &session, &err));
    assert_int_equal(session.state, STORED_SESSION_DONE);
    assert_int_equal(session.trials, 2);
    arena_release(&arena);
    store_close(b);
}

/* ---- what is refused ---- */

static void keep_conflict(void *context, const struct merge_conflict *conflict) {
    char *text = context;
    snprintf(text + strlen(text), 512 - strlen(text), "%s: %s, %s; ", conflict->what, conflict->ours, conflict->theirs);
}

static void a_conflict_is_told_and_changes_nothing(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    struct merge_report report;
    char told[512] = "";
    struct store *a = open_store("theirs.db", STORE_READ_WRITE), *b = open_store("ours.db", STORE_READ_WRITE);
    put_objects(a);
    put_objects(b);
    add_record(a, NULL, "same", 5);
    add_record(a, NULL, "new", 6);
    add_record(b, NULL, "same", 7);
    push(a, &counts);
    char *before = export_of(b, true);
    assert_fails(remote_push(client, b, &counts, &err), ST_CONFLICT, "uid same is here with another");
    assert_int_equal(counts.trials, 0);
    store_close(a);
    store_close(b);
    assert_fails(remote_pull(client, path_of("ours.db"), keep_conflict, told, &report, &err), ST_CONFLICT, "uid same");
    assert_contains(told, "uid same: trial 1 (complete, median 7");
    assert_null(strstr(told, "new"));
    b = open_store("ours.db", STORE_READ_ONLY);
    char *after = export_of(b, true);
    assert_string_equal(before, after);
    free(before);
    free(after);
    store_close(b);
    assert_int_equal(files_like("ours.db.from"), 0);
}

#define SESSION_LINE(id, state)                                                                                        \
    "{\\\"schema\\\":\\\"syncopate.session/1\\\",\\\"id\\\":\\\"" id "\\\",\\\"state\\\":\\\"" state "\\\"}"
#define LINES(lines) "{\"lines\":[" lines "]}"

static void lines_that_may_not_be_imported_are_named(void **state) {
    (void)state;
    static const struct {
        const char *body, *code, *part;
        int status;
    } rows[] = {
        {LINES("\"{}\",\"nonsense\""), "invalid", "\"pointer\":\"/lines/0\"", 422},
        {LINES("7"), "invalid", "\"pointer\":\"/lines/0\"", 422},
        {LINES("\"a\\nb\""), "invalid", "must be one line", 422},
        {LINES(""), "invalid", "\"pointer\":\"/lines\"", 422},
        {LINES("\"" SESSION_LINE("x", "paused") "\""), "invalid", "session x has not ended", 422},
        {LINES("\"{\\\"schema\\\":\\\"syncopate.object/1\\\",\\\"kind\\\":\\\"model\\\",\\\"name\\\":\\\"m\\\","
               "\\\"content\\\":{\\\"schema\\\":\\\"syncopate.model/1\\\",\\\"name\\\":\\\"m\\\",\\\"batch_per_d"
               "evice\\\":1,\\\"variables\\\":[{\\\"name\\\":\\\"w\\\",\\\"shape\\\":[4],\\\"dtype\\\":\\\"f32\\\"}],"
               "\\\"layer"
               "s\\\":[{\\\"name\\\":\\\"l\\\",\\\"forward_us\\\":1,\\\"backward_us\\\":1,\\\"variables\\\":[\\\"w\\\"]"
               "}]}}\",\"{\\\"schema\\\":\\\"syncopate.record/9\\\"}\""),
         "invalid", "\"pointer\":\"/lines/1\"", 422},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reply *reply = site_post(&site, "/api/v1/records:import", rows[i].body);
        assert_problem(reply, rows[i].status, rows[i].code);
        assert_contains(reply->body, rows[i].part);
    }
    assert_contains(site_get(&site, "/api/v1/models")->body, "\"items\":[]"); /* all or nothing */
    assert_int_equal(site_get(&site, "/api/v1/records?references=true")->status, 400);
}

static void trials_of_a_session_that_is_open_there_are_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct import_counts counts;
    client_close(client);
    site_stop(&site);
    struct store *a = open_store("busy.db", STORE_READ_WRITE);
    put_objects(a);
    begin_session(a, "busy", false);
    store_close(a);
    site = (struct site){.service_options.open = true};
    site_start(&site, "busy");
    assert_ok(client_open(&(struct client_options){.url = server_url(site.server)}, &client, &err));
    struct store *b = open_store("finished.db", STORE_READ_WRITE);
    put_objects(b);
    begin_session(b, "busy", true);
    add_record(b, "busy", "u1", 5);
    assert_fails(remote_push(client, b, &counts, &err), ST_CONFLICT, "session busy is open here");
    store_close(b);
}

static void only_an_administrator_may_send_what_others_measured(void **state) {
    (void)state;
    struct error err = {0};
    char name[] = "guarded", path[600], header[200], secret[TOKEN_LENGTH + 1];
    struct token made, wanted = {.name = "r", .principal = {.team = "red", .role = ROLE_RUN}};
    struct site guarded = {0};
    snprintf(path, sizeof path, "%s/%s.db.tokens", test_dir(), name);
    assert_ok(tokens_create(path, &wanted, &made, secret, &err));
    site_start(&guarded, name);
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", secret);
    assert_problem(site_ask(&guarded, "POST", "/api/v1/records:import", header, LINES("\"{}\"")), 403, "forbidden");
    site_stop(&guarded);
}

/* ---- fetches that are cut ---- */

#define OBJECT_LINE(kind, name, content)                                                                               \
    "{\"schema\":\"syncopate.object/1\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"content\":" content "}\n"
#define A_MODEL                                                                                                        \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":[{\"name\":\"w\",\"sh"      \
    "ape\":[4],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l\",\"forward_us\":1,\"backward_us\":1,\"variables\":["     \
    "\"w\"]}]}"
#define A_CLUSTER                                                                                                      \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":"                                         \
    "\"n\",\"count\":2,\"nic_gbit_per_s\":1,\"nic_latency_us\":5}]}"
#define A_STRATEGY  "{\"schema\":\"syncopate.strategy/1\"}"
#define MODEL_ID    "3fc0db18ff74d307dc78f10e8e4894995b84faae72e11a7cc975d7f6b7854930"
#define CLUSTER_ID  "a21e3c78c6bd2779764846f72a1abbdcb51a1b7f3863779fb271bad7fcdce3a7"
#define STRATEGY_ID "540869794359118b2e3201646e2008d371dd751833764b8810e990d32d5001cb"
#define RECORD_LINE(uid)                                                                                               \
    OBJECT_LINE("model", "m", A_MODEL)                                                                                 \
    OBJECT_LINE("cluster", "c", A_CLUSTER)                                                                             \
    OBJECT_LINE("strategy", "s", A_STRATEGY)                                                                           \
    "{\"schema\":\"syncopate.record/1\",\"uid\":\"" uid "\",\"model\":\"" MODEL_ID "\",\"cluster\":\"" CLUSTER_ID      \
    "\",\"strategy\":\"" STRATEGY_ID                                                                                   \
    "\",\"proposer\":\"p\",\"runner\":\"lab\",\"state\":\"failed\",\"reason\":\"x\"}\n"
#define PAGE(more, lines) ANSWER("200 OK", more, "application/jsonl", lines)

/* A pull from a service that answers as the script says. */
static enum status pull_scripted(const char *url, const char *name, struct merge_report *report, struct error *err) {
    struct client *c;
    assert_int_equal(client_open(&(struct client_options){.url = url, .tries = 1}, &c, err), ST_OK);
    enum status st = remote_pull(c, path_of(name), NULL, NULL, report, err);
    client_close(c);
    return st;
}

static void what_was_fetched_before_a_cut_is_not_fetched_again(void **state) {
    (void)state;
    struct error err = {0};
    struct script s;
    struct merge_report report;
    START(s, PAGE("Next-Page-Token: two/2\r\n", RECORD_LINE("u1")), NULL, PAGE("", RECORD_LINE("u2")));
    assert_fails(pull_scripted(s.url, "cut.db", &report, &err), ST_UNREACHABLE, s.url);
    assert_int_equal(access(path_of("cut.db"), F_OK), -1); /* nothing that looks like a dataset of ours */
    assert_true(files_like("cut.db.from") > 0);
    assert_ok(pull_scripted(s.url, "cut.db", &report, &err));
    script_end(&s);
    assert_int_equal(report.trials, 2);
    assert_null(strstr(s.requests[0], "page_token="));
    assert_contains(s.requests[1], "&page_token=two%2F2 ");
    assert_contains(s.requests[2], "&page_token=two%2F2 ");
    assert_int_equal(files_like("cut.db.from"), 0);
}

static void a_place_that_the_service_forgot_is_no_obstacle(void **state) {
    (void)state;
    struct error err = {0};
    struct script s;
    struct merge_report report;
    START(s, PAGE("Next-Page-Token: old\r\n", RECORD_LINE("u1")), NULL, PROBLEM("400 No", "bad-parameter", ""),
          PAGE("Next-Page-Token: new\r\n", RECORD_LINE("u1")), PAGE("", RECORD_LINE("u2")));
    assert_fails(pull_scripted(s.url, "forgot.db", &report, &err), ST_UNREACHABLE, s.url);
    assert_ok(pull_scripted(s.url, "forgot.db", &report, &err));
    script_end(&s);
    assert_int_equal(report.trials, 2);
    assert_null(strstr(s.requests[3], "page_token="));
    assert_contains(s.requests[4], "page_token=new ");
}

static void what_is_no_export_is_refused_and_forgotten(void **state) {
    (void)state;
    static const struct {
        const char *answer, *part;
        enum status status;
    } rows[] = {
        {ANSWER("200 OK", "", "text/html", "<html>sign in</html>"), "is it a syncopate service", ST_UNREACHABLE},
        {PAGE("", "{\"schema\":\"syncopate.record/9\"}\n"), "imports no syncopate.record/9", ST_INVALID},
        {PAGE("", "{\"schema\":\"syncopate.rec"), "line 1", ST_INVALID},
        {PROBLEM("403 No", "forbidden", ""), "403 forbidden", ST_UNREACHABLE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        struct script s;
        struct merge_report report;
        START(s, rows[i].answer);
        assert_fails(pull_scripted(s.url, "refused.db", &report, &err), rows[i].status, rows[i].part);
        script_end(&s);
        assert_int_equal(access(path_of("refused.db"), F_OK), -1);
        assert_int_equal(files_like("refused.db.from"), 0);
    }
}

#define WITH_SERVICE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVICE(a_dataset_comes_back_from_a_service_as_it_was),
        WITH_SERVICE(doing_it_again_adds_nothing),
        WITH_SERVICE(an_export_of_a_service_is_that_of_its_dataset),
        WITH_SERVICE(an_export_with_references_is_imported_elsewhere),
        WITH_SERVICE(what_is_too_large_for_a_request_comes_in_several),
        WITH_SERVICE(sessions_that_have_not_ended_are_not_sent),
        WITH_SERVICE(an_open_session_comes_as_far_as_it_is_and_later_the_rest),
        WITH_SERVICE(a_conflict_is_told_and_changes_nothing),
        WITH_SERVICE(lines_that_may_not_be_imported_are_named),
        WITH_SERVICE(trials_of_a_session_that_is_open_there_are_refused),
        WITH_SERVICE(only_an_administrator_may_send_what_others_measured),
        cmocka_unit_test(what_was_fetched_before_a_cut_is_not_fetched_again),
        cmocka_unit_test(a_place_that_the_service_forgot_is_no_obstacle),
        cmocka_unit_test(what_is_no_export_is_refused_and_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
