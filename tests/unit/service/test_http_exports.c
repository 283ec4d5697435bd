/* A session taken elsewhere: its pages, read into an empty dataset, are the same session again; its best strategy is a
 * file that commands read. */
#include "dataset/export.h"
#include "dataset/import.h"
#include "interop/export/export.h"
#include "service/hub.h"
#include "strategy/strategy.h"
#include "tests/unit/service/http_site.h"

enum { TRIALS = 7 };

static struct site site;
static char session[64];

static struct reply *get_of_session(const char *tail) {
    char path[400];
    snprintf(path, sizeof path, "/api/v1/sessions/%.63s%.300s", session, tail);
    return site_get(&site, path);
}

static void open_session(void) {
    assert_int_equal(site_post(&site, "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(site_post(&site, "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions",
                                       "{\"model\":\"toy\",\"cluster\":\"four\",\"seed\":9007199254740991,"
                                       "\"ranker\":\"none\",\"budget\":{\"trials\":20}}"),
                             201);
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
    cJSON_Delete(json);
}

/* Trial i fails when i is 3. */
static void run_trial(int i) {
    char path[256], body[256];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    cJSON *json = reply_json(site_post(&site, path, "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    const int number = cJSON_GetObjectItemCaseSensitive(trial, "number")->valueint;
    cJSON_Delete(json);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/%d:%s", session, number, i == 3 ? "fail" : "complete");
    if (i == 3)
        snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"reason\":\"it \\\"broke\\\"\"}");
    else
        snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[%d.25,%d]}", 9000 + 10 * i,
                 9001 + 10 * i);
    assert_int_equal(site_post(&site, path, body)->status, 200);
}

static int set_up(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "exports-%d", number++);
    site = (struct site){.service_options.open = true};
    site_start(&site, name);
    open_session();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

/* All pages of `size`, one behind the other; to be freed. */
static char *read_pages(const char *format, int size, int *pages) {
    char tail[256], token[128] = "", *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    *pages = 0;
    do {
        snprintf(tail, sizeof tail, "/export?format=%s&page_size=%d%s%s", format, size, *token ? "&page_token=" : "",
                 token);
        const struct reply *r = get_of_session(tail);
        assert_int_equal(r->status, 200);
        assert_contains(reply_header(r, "Content-Disposition"), session);
        fputs(r->body, to);
        const char *next = reply_header(r, "Next-Page-Token");
        snprintf(token, sizeof token, "%.120s", next ? next : "");
        ++*pages;
    } while (*token);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* What a dataset's own export of the session says. */
static char *export_whole(const char *dataset) {
    struct error err = {0};
    struct store *store;
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    const struct query query = {.session = session, .order = QUERY_BY_number, .iterations = true};
    assert_ok(store_open(dataset, STORE_READ_ONLY, &store, &err));
    assert_ok(export_references(store, &query, to, &err));
    assert_ok(export_run(store, &query, EXPORT_JSON_LINES, to, NULL, &err));
    store_close(store);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void import_into(const char *dataset, char *text, struct import_counts *counts) {
    struct error err = {0};
    struct store *store;
    const struct import_options options = {.keep_rows = true};
    FILE *from = fmemopen(text, strlen(text), "r");
    dataset_remove(dataset);
    assert_ok(store_open(dataset, STORE_READ_WRITE, &store, &err));
    assert_ok(import_run(store, from, "export", &options, counts, &err));
    store_close(store);
    fclose(from);
}

static void its_pages_make_the_same_session_elsewhere(void **state) {
    (void)state;
    char copy[600];
    snprintf(copy, sizeof copy, "%s", dataset_path("copy.db"));
    for (int i = 0; i < TRIALS; i++)
        run_trial(i);
    for (int size = 1; size <= TRIALS + 1; size += 3) {
        struct import_counts counts;
        int pages;
        char *text = read_pages("jsonl", size, &pages);
        assert_int_equal(pages, (TRIALS + size - 1) / size);
        import_into(copy, text, &counts);
        assert_int_equal(counts.trials, TRIALS);
        assert_int_equal(counts.sessions, 1);
        char *here = export_whole(site.dataset), *there = export_whole(copy);
        assert_string_equal(there, here);
        free(here);
        free(there);
        free(text);
    }
}

/* What another program wrote may be called anything that is clean text. */
static void a_trial_is_found_by_whatever_uid_it_came_with(void **state) {
    static const char uid[] = "run 7/b:c \\\"\xc3\xa9\\\" = 1 and as long as other programs make them, "
                              "which is more than the sixty-four bytes of ours";
    static struct site other;
    char copy[600], path[1200] = "/api/v1/records/", *text, *changed = NULL;
    struct import_counts counts;
    int pages;
    size_t n;
    (void)state;
    run_trial(0);
    text = read_pages("jsonl", 10, &pages);
    char *at = strstr(text, "\"uid\":\"");
    assert_non_null(at);
    FILE *to = open_memstream(&changed, &n);
    fprintf(to, "%.*s\"uid\":\"%s%s", (int)(at - text), text, uid, strchr(at + 7, '"'));
    assert_int_equal(fclose(to), 0);
    snprintf(copy, sizeof copy, "%s", dataset_path("odd.db"));
    import_into(copy, changed, &counts);
    free(text);
    free(changed);
    other = (struct site){.service_options.open = true};
    site_start(&other, "odd");
    for (const char *c = uid; *c; c++)
        if (*c != '\\') /* JSON's own */
            sprintf(path + strlen(path), "%%%02x", (unsigned char)*c);
    cJSON *json = reply_json(site_get(&other, path), 200);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(json, "number")->valueint, 1);
    cJSON_Delete(json);
    assert_problem(site_ask(&other, "PATCH", path, "", "{\"shared\":\"all\"}"), 409, "conflict"); /* its session's */
    site_stop(&other);
}

static void as_csv_a_page_has_its_header_and_a_line_a_trial(void **state) {
    (void)state;
    int pages;
    for (int i = 0; i < 4; i++)
        run_trial(i);
    char *text = read_pages("csv", 3, &pages);
    size_t lines = 0, headers = 0;
    for (const char *at = text; (at = strstr(at, "\r\n")); at += 2)
        lines++;
    for (const char *at = text; (at = strstr(at, "proposer,")); at++)
        headers++;
    assert_int_equal(pages, 2);
    assert_int_equal(headers, 2);
    assert_int_equal(lines, 4 + 2);
    free(text);
}

static void the_best_strategy_is_a_file_that_commands_read(void **state) {
    (void)state;
    struct error err = {0};
    struct strategy strategy;
    struct hub_session *live;
    char wanted[80];
    assert_problem(get_of_session("/export"), 404, "not-found");
    for (int i = 0; i < 3; i++)
        run_trial(i);
    cJSON *best = reply_json(get_of_session("/best"), 200), *json;
    snprintf(
        wanted, sizeof wanted, "%s",
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(best, "best"), "strategy_id")->valuestring);
    char *pretty = json_pretty(cJSON_GetObjectItemCaseSensitive(best, "strategy"));
    cJSON_Delete(best);
    const struct reply *r = get_of_session("/export?format=strategy");
    assert_int_equal(strlen(r->body), strlen(pretty) + 1);
    assert_memory_equal(r->body, pretty, strlen(pretty));
    free(pretty);
    assert_contains(reply_header(r, "Content-Disposition"), "best.json");
    assert_ok(json_parse(r->body, strlen(r->body), "best.json", &json, &err));
    assert_ok(hub_find(site.service->hub, session, &live, &err));
    assert_ok(strategy_read(json, "best.json", hub_model(live), hub_cluster(live), &strategy, &err));
    assert_string_equal(strategy.id.hex, wanted);
    hub_drop(live);
    strategy_release(&strategy);
    cJSON_Delete(json);
}

/* Of the open session's best strategy; to be released. */
static void export_best(const char *form, struct export *out) {
    struct error err = {0};
    struct outcome outcome;
    struct hub_session *live;
    struct store *store;
    assert_ok(hub_find(site.service->hub, session, &live, &err));
    const struct model *model = hub_model(live);
    const struct cluster *cluster = hub_cluster(live);
    assert_ok(access_read(site.service->access, &store, &err));
    assert_ok(outcome_gather(store, session, model, cluster, OUTCOME_STRATEGY, &outcome, &err));
    assert_ok(export_build(exporters_find(form), &outcome.strategy, model, cluster, out, &err));
    outcome_release(&outcome);
    hub_drop(live);
}

/* Canonical base64 back into bytes; the number of these. */
static size_t decode(const char *text, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (; *text; text += 4) {
        unsigned word = 0;
        int pads = 0;
        for (int i = 0; i < 4; i++) {
            const char *digit = text[i] == '=' ? digits : strchr(digits, text[i]);
            assert_non_null(digit);
            pads += text[i] == '=';
            word = word << 6 | (unsigned)(digit - digits);
        }
        for (int i = 0; i < 3 - pads; i++)
            out[n++] = (char)(word >> (16 - 8 * i) & 255);
    }
    return n;
}

static void assert_file(const cJSON *files, const struct export_file *file) {
    static char bytes[1 << 16];
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(files, file->name);
    assert_non_null(item);
    if (cJSON_IsString(item)) {
        assert_string_equal(item->valuestring, file->text);
        assert_int_equal(strlen(file->text), file->n);
        return;
    }
    assert_int_equal(decode(cJSON_GetObjectItemCaseSensitive(item, "base64")->valuestring, bytes), file->n);
    assert_memory_equal(bytes, file->text, file->n);
}

/* A refusal says why, note by note. */
static void assert_losses(const struct reply *r, const struct export *export) {
    cJSON *json = reply_json(r, 422);
    const cJSON *losses = cJSON_GetObjectItemCaseSensitive(json, "losses");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "code")->valuestring, "not-expressed");
    assert_int_equal(cJSON_GetArraySize(losses), export->n_notes);
    for (uint32_t i = 0; i < export->n_notes; i++) {
        const cJSON *loss = cJSON_GetArrayItem(losses, (int)i);
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(loss, "what")->valuestring,
                            export_loss_word(export->notes[i].loss));
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(loss, "why")->valuestring, export->notes[i].text);
    }
    cJSON_Delete(json);
}

/* The page that the session's page leads to: a problem is a page. */
static struct reply *follow_link(const char *form) {
    char path[400], link[400];
    snprintf(path, sizeof path, "/sessions/%s", session);
    snprintf(link, sizeof link, "/sessions/%s/export?format=%s", session, form);
    assert_contains(site_get(&site, path)->body, link);
    return site_get(&site, link);
}

/* A form in which the job would need other memory: the line, for programs and for people. */
static void assert_refused(const char *form, const struct export *export, const char *line) {
    char tail[80];
    snprintf(tail, sizeof tail, "/export?format=%s", form);
    assert_losses(get_of_session(tail), export);
    assert_contains(get_of_session(tail)->body, line);
    const struct reply *r = follow_link(form);
    assert_int_equal(r->status, 422);
    assert_contains(reply_header(r, "Content-Type"), "text/html");
    assert_contains(r->body, line);
    assert_contains(r->body, "</html>");
}

/* Every form, as the library writes it; and what a form cannot say is said in the header and in the object. */
static void the_best_strategy_comes_in_the_form_of_every_framework(void **state) {
    (void)state;
    size_t n, several = 0, lossy = 0;
    const struct exporter *forms = exporters_list(&n);
    assert_problem(get_of_session("/export?format=nccl"), 404, "not-found");
    for (int i = 0; i < 3; i++)
        run_trial(i);
    for (size_t i = 0; i < n; i++) {
        struct export export;
        char tail[80];
        export_best(forms[i].name, &export);
        snprintf(tail, sizeof tail, "/export?format=%s", forms[i].name);
        if (export.changes_memory) {
            assert_int_equal(strncmp(forms[i].name, "fsdp2", 5), 0);
            assert_refused(forms[i].name, &export, " would change the memory that ");
            export_release(&export);
            continue;
        }
        assert_int_equal(follow_link(forms[i].name)->status, 200);
        const struct reply *r = get_of_session(tail);
        assert_int_equal(r->status, 200);
        assert_int_equal(reply_header(r, "Not-Expressed") != NULL, export.n_notes > 0);
        if (export.n_files == 1) {
            assert_string_equal(r->body, export.files[0].text);
            char disposition[96];
            snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", export.files[0].name);
            assert_string_equal(reply_header(r, "Content-Disposition"), disposition);
        } else {
            cJSON *json = reply_json(r, 200);
            const cJSON *files = cJSON_GetObjectItemCaseSensitive(json, "files");
            assert_int_equal(cJSON_GetArraySize(files), export.n_files);
            for (uint32_t k = 0; k < export.n_files; k++)
                assert_file(files, &export.files[k]);
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "losses")), export.n_notes);
            cJSON_Delete(json);
        }
        snprintf(tail, sizeof tail, "/export?format=%s&strict=true", forms[i].name);
        if (export.n_notes)
            assert_losses(get_of_session(tail), &export);
        else
            assert_int_equal(get_of_session(tail)->status, 200);
        several += export.n_files > 1;
        lossy += export.n_notes > 0;
        export_release(&export);
    }
    assert_true(several > 0 && several < n && lossy > 0);
    assert_problem(get_of_session("/export?format=csv&strict=true"), 400, "bad-parameter");
}

/* A trial, which is fast if its strategy shards something. */
static bool run_sharding_trial(void) {
    char path[256], body[256];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    const struct reply *r = site_post(&site, path, "{\"client\":\"c\"}");
    const bool sharded = strstr(r->body, "\"sharded\":\"parameters\"") != NULL;
    cJSON *json = reply_json(r, 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/%d:complete", session,
             cJSON_GetObjectItemCaseSensitive(trial, "number")->valueint);
    cJSON_Delete(json);
    snprintf(body, sizeof body, "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[%d,%d]}", sharded ? 500 : 9000,
             sharded ? 501 : 9001);
    assert_int_equal(site_post(&site, path, body)->status, 200);
    return sharded;
}

/* Open a session and run its trials until one shards something. `more`: members of the request. */
static void find_sharded(const char *more) {
    bool sharded = false;
    char body[512];
    snprintf(body, sizeof body,
             "{\"model\":\"toy\",\"cluster\":\"four\",\"allow_sharded\":\"parameters\",\"ranker\":\"none\","
             "\"budget\":{\"trials\":40}%s}",
             more);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions", body), 201);
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "note"));
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
    cJSON_Delete(json);
    for (int i = 0; i < 40 && !sharded; i++)
        sharded = run_sharding_trial();
    assert_true(sharded);
}

/* Given out, and what is lost is told. */
static void assert_given(const char *tail) {
    const struct reply *r = get_of_session(tail);
    assert_int_equal(r->status, 200);
    assert_contains(reply_header(r, "Not-Expressed"), "sharded");
}

static void a_sharded_strategy_is_not_given_out_where_it_would_be_whole(void **state) {
    (void)state;
    find_sharded("");
    struct export export;
    export_best("horovod", &export);
    assert_true(export.changes_memory);
    assert_refused("horovod", &export, "horovod would change the memory that ");
    assert_contains(get_of_session("/export?format=horovod")->body, "forms that keep to it: ");
    assert_losses(get_of_session("/export?format=horovod&strict=true"), &export);
    export_release(&export);
    assert_int_equal(get_of_session("/export?format=xla")->status, 200);
    assert_int_equal(get_of_session("/export")->status, 200);
    assert_given("/export?format=horovod&accept=groups,sharded");
    assert_problem(get_of_session("/export?format=horovod&accept=groups"), 422, "not-expressed");
    assert_problem(get_of_session("/export?format=horovod&accept=speed"), 400, "bad-parameter");
    assert_problem(get_of_session("/export?accept=sharded"), 400, "bad-parameter");
}

#define ALL_BUT_SHARDED                                                                                                \
    "\"groups\",\"order\",\"partition\",\"algorithm\",\"encoding\",\"credit\",\"cross-iteration\",\"reshard\","        \
    "\"prefetch\",\"shards\",\"replicas\",\"parameter-server\",\"preemption\",\"accumulation\",\"placement\""

/* The session measured the strategy because its job does the rest; so it comes in these forms, and in no others. */
static void what_the_session_accepts_is_given_out(void **state) {
    (void)state;
    find_sharded(",\"export_to\":[\"horovod\",\"nccl\"],\"accept\":[\"sharded\"," ALL_BUT_SHARDED "]");
    assert_given("/export?format=horovod");
    assert_given("/export?format=horovod&strict=true");
    assert_int_equal(get_of_session("/export?format=nccl")->status, 200);
    assert_int_equal(follow_link("horovod")->status, 200);
    assert_problem(get_of_session("/export?format=byteps"), 422, "not-expressed");
    assert_given("/export?format=byteps&accept=sharded");
}

/* The page's route takes what that of the API does: its pages can be followed. */
static void the_link_of_a_page_takes_the_same_parameters(void **state) {
    (void)state;
    char path[500];
    for (int i = 0; i < 3; i++)
        run_trial(i);
    snprintf(path, sizeof path, "/sessions/%s/export?format=csv&page_size=2", session);
    const struct reply *r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    snprintf(path, sizeof path, "/sessions/%.63s/export?format=csv&page_size=2&page_token=%.300s", session,
             reply_header(r, "Next-Page-Token"));
    r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    assert_null(reply_header(r, "Next-Page-Token"));
    snprintf(path, sizeof path, "/sessions/%s/export?format=fsdp2&accept=all-reduce,parameter-server&strict=false",
             session);
    assert_int_equal(site_get(&site, path)->status, 200);
}

/* As "tune --allow-sharded" warns. */
static void a_request_to_shard_in_vain_is_noted(void **state) {
    (void)state;
    static const char *const many =
        "\"horovod\",\"tensorflow\",\"byteps\",\"bytescheduler\",\"pytorch-ddp\",\"autodist\","
        "\"nccl\",\"xla\",\"megatron\"";
    char body[1024];
    snprintf(body, sizeof body,
             "{\"model\":\"toy\",\"cluster\":\"four\",\"allow_sharded\":\"parameters\",\"ranker\":\"none\","
             "\"export_to\":[%s],\"accept\":[" ALL_BUT_SHARDED ",\"all-reduce\",\"local-reduction\"]}",
             many);
    cJSON *json = reply_json(site_post(&site, "/api/v1/sessions", body), 201);
    assert_string_equal(
        cJSON_GetObjectItemCaseSensitive(json, "note")->valuestring,
        "\"allow_sharded\" does nothing here: "
        "horovod,tensorflow,byteps,bytescheduler,pytorch-ddp,autodist,nccl,xla,megatron cannot say what "
        "is sharded");
    snprintf(session, sizeof session, "%s", cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
    cJSON_Delete(json);
    json = reply_json(get_of_session(""), 200);
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "note"));
    cJSON_Delete(json);
}

static void a_form_that_is_not_known_is_refused(void **state) {
    (void)state;
    assert_problem(get_of_session("/export?format=yaml"), 400, "bad-parameter");
    assert_problem(get_of_session("/export?format=csv&page_size=0"), 400, "bad-parameter");
    assert_problem(get_of_session("/export?format=jsonl&page_token=x"), 400, "bad-parameter");
    static const char *const one_file[] = {"/export?page_size=5", "/export?format=strategy&page_token=x",
                                           "/export?format=horovod&page_size=5"};
    for (size_t i = 0; i < sizeof one_file / sizeof *one_file; i++)
        assert_problem(get_of_session(one_file[i]), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/sessions/none/export"), 404, "not-found");
    const struct reply *r = get_of_session("/export?format=jsonl"); /* no trial yet: nothing to bring */
    assert_int_equal(r->status, 200);
    assert_string_equal(r->body, "");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(its_pages_make_the_same_session_elsewhere),
        TEST(a_trial_is_found_by_whatever_uid_it_came_with),
        TEST(as_csv_a_page_has_its_header_and_a_line_a_trial),
        TEST(the_best_strategy_is_a_file_that_commands_read),
        TEST(the_best_strategy_comes_in_the_form_of_every_framework),
        TEST(a_sharded_strategy_is_not_given_out_where_it_would_be_whole),
        TEST(what_the_session_accepts_is_given_out),
        TEST(the_link_of_a_page_takes_the_same_parameters),
        TEST(a_request_to_shard_in_vain_is_noted),
        TEST(a_form_that_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
