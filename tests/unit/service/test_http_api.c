/* The routes: who may, what is asked wrongly and how it is told, idempotency, entity tags, and the resources. */
#include <dlfcn.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdatomic.h>

#include "service/http/api/schemas.h"
#include "service/http/routes.h"
#include "service/prepared_domains.h"
#include "simulator/tuned.h"
#include "strategy/baselines/baselines.h"
#include "strategy/model.h"
#include "tests/unit/service/http_site.h"

/* How often a text with COUNTED in it was parsed and hashed. */
#define COUNTED "model-that-counts"
static atomic_int parses, hashes;

cJSON *cJSON_ParseWithLength(const char *text, size_t n) {
    cJSON *(*real)(const char *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "cJSON_ParseWithLength");
    atomic_fetch_add(&parses, memmem(text, n, COUNTED, strlen(COUNTED)) != NULL);
    return real(text, n);
}

int EVP_Digest(const void *data, size_t n, unsigned char *digest, unsigned *size, const EVP_MD *type, ENGINE *impl) {
    int (*real)(const void *, size_t, unsigned char *, unsigned *, const EVP_MD *, ENGINE *);
    *(void **)&real = dlsym(RTLD_NEXT, "EVP_Digest");
    atomic_fetch_add(&hashes, memmem(data, n, COUNTED, strlen(COUNTED)) != NULL);
    return real(data, n, digest, size, type, impl);
}

static struct site site;
static char admin[TOKEN_LENGTH + 1], reader[TOKEN_LENGTH + 1], limited[TOKEN_LENGTH + 1];

static void make_token(const char *name, enum role role, double rate, char *secret) {
    struct token wanted = {.principal = {.team = "core", .role = role, .requests_per_s = rate}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    site_token(&site, &wanted, secret);
}

static int set_up_open(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "open-%d", number++);
    site = (struct site){.service_options.open = true};
    site_start(&site, name);
    return 0;
}

static int set_up_closed(void **state) {
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "closed-%d", number++);
    site = (struct site){0};
    site_place(&site, name);
    make_token("admin", ROLE_ADMIN, 0, admin);
    make_token("reader", ROLE_READ, 0, reader);
    make_token("limited", ROLE_READ, 1, limited);
    site_start(&site, name);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    char header[200];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    return site_ask(&site, method, path, header, body);
}

static cJSON *parse(const struct reply *reply) {
    struct error err = {0};
    cJSON *json = NULL;
    assert_ok(json_parse(reply->body, strlen(reply->body), "reply", &json, &err));
    return json;
}

/* A string member, in a buffer of its own. */
static const char *text_of(const struct reply *reply, const char *member) {
    static char text[128];
    cJSON *json = parse(reply);
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(json, member);
    assert_true(cJSON_IsString(at));
    snprintf(text, sizeof text, "%s", at->valuestring);
    cJSON_Delete(json);
    return text;
}

/* Who may. */

static void without_a_valid_token_nothing_is_told(void **state) {
    (void)state;
    assert_problem(site_get(&site, "/api/v1/models"), 401, "unauthorized");
    assert_non_null(reply_header(site_get(&site, "/api/v1/models"), "WWW-Authenticate"));
    assert_problem(ask_as("syn_nonsense", "GET", "/api/v1/models", NULL), 401, "unauthorized");
    char other[TOKEN_LENGTH + 1];
    snprintf(other, sizeof other, "%s", admin);
    other[TOKEN_LENGTH - 1] = other[TOKEN_LENGTH - 1] == 'A' ? 'E' : 'A';
    assert_problem(ask_as(other, "GET", "/api/v1/models", NULL), 401, "unauthorized");
    assert_problem(site_ask(&site, "GET", "/api/v1/models", "Authorization: Basic YTpi\r\n", NULL), 401,
                   "unauthorized");
    assert_int_equal(ask_as(admin, "GET", "/api/v1/models", NULL)->status, 200);
    assert_int_equal(site_get(&site, "/healthz")->status, 200);
}

static void a_role_allows_what_those_before_it_do_and_no_more(void **state) {
    (void)state;
    assert_int_equal(ask_as(reader, "GET", "/api/v1/models", NULL)->status, 200);
    assert_problem(ask_as(reader, "POST", "/api/v1/models", SITE_MODEL), 403, "forbidden");
    assert_int_equal(ask_as(admin, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
}

static void who_is_signed_in_at_the_pages_may_ask_too(void **state) {
    (void)state;
    char headers[300], form[200];
    snprintf(headers, sizeof headers, "Origin: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n",
             server_url(site.server));
    snprintf(form, sizeof form, "token=%s", reader);
    const char *set = reply_header(site_ask(&site, "POST", "/sign-in", headers, form), "Set-Cookie");
    assert_non_null(set);
    snprintf(headers, sizeof headers, "Cookie: other=1; %.*s; more=2\r\n", (int)strcspn(set, ";"), set);
    assert_int_equal(site_ask(&site, "GET", "/api/v1/models", headers, NULL)->status, 200);
    assert_problem(site_ask(&site, "GET", "/api/v1/models", "Cookie: syncopate_session=x\r\n", NULL), 401,
                   "unauthorized");
}

static void a_token_that_asks_too_often_is_told_when_to_come_again(void **state) {
    (void)state;
    struct reply *r = NULL;
    for (int i = 0; i < 4; i++)
        r = ask_as(limited, "GET", "/api/v1/models", NULL);
    assert_problem(r, 429, "rate-limited");
    assert_string_equal(reply_header(r, "Retry-After"), "1");
    assert_int_equal(ask_as(reader, "GET", "/api/v1/models", NULL)->status, 200); /* nobody else is held up */
}

static void without_tokens_and_not_open_no_service_starts(void **state) {
    (void)state;
    struct error err;
    struct service *service;
    char path[600];
    snprintf(path, sizeof path, "%s", dataset_path("lonely.db"));
    assert_fails(service_open(&(struct service_options){.access.dataset = path}, &service, &err), ST_USAGE,
                 "token create");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void an_open_service_listens_to_its_own_machine_only(void **state) {
    (void)state;
    char text[8192];
    int fd = site_connect(&site);
    /* A name that an attacker made point here. */
    site_say(fd, "GET /api/v1/models HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n");
    site_hear(fd, NULL, 5, text, sizeof text, NULL);
    assert_contains(text, " 401 ");
    close(fd);
    assert_int_equal(site_get(&site, "/api/v1/models")->status, 200);
}

static void pages_of_other_origins_change_nothing(void **state) {
    (void)state;
    char ours[64];
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "Origin: http://evil.example\r\n", SITE_MODEL), 403,
                   "cross-origin");
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "Origin: null\r\n", SITE_MODEL), 403, "cross-origin");
    snprintf(ours, sizeof ours, "Origin: %s\r\n", server_url(site.server));
    assert_int_equal(site_ask(&site, "POST", "/api/v1/models", ours, SITE_MODEL)->status, 201);
}

/* What is asked wrongly. */

static void wrong_requests_are_told_what_is_wrong(void **state) {
    (void)state;
    assert_problem(site_get(&site, "/api/v1/nothing"), 404, "not-found");
    assert_problem(site_get(&site, "/api/v1/models/"), 404, "not-found");
    assert_problem(site_get(&site, "//api/v1/models"), 404, "not-found");
    assert_problem(site_get(&site, "/api/v1/models/%zz"), 400, "bad-request");
    assert_problem(site_get(&site, "/api/v1/models/%00"), 400, "bad-request");
    assert_problem(site_get(&site, "/api/v1/models/%c3%28"), 400, "bad-request");
    assert_problem(site_get(&site, "/api/v1/models?frobnicate=1"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?page_size=1&page_size=2"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?page_size=0"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?page_size=many"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?page_size=%zz"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?page_token=nonsense"), 400, "bad-parameter");
    assert_problem(site_get(&site, "/api/v1/models?order=size"), 400, "bad-parameter");
    assert_problem(site_post(&site, "/api/v1/models", "{"), 400, "bad-json");
    assert_problem(site_post(&site, "/api/v1/models", "{\"a\":1,\"a\":2}"), 400, "bad-json");
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "", NULL), 400, "bad-json");
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "Content-Type: text/plain\r\n", SITE_MODEL), 415,
                   "unsupported-media-type");
    assert_problem(site_ask(&site, "POST", "/api/v1/models",
                            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", SITE_MODEL),
                   415, "unsupported-media-type");
    assert_problem(site_ask(&site, "GET", "/api/v1/models", "", "{}"), 400, "bad-request");
    assert_problem(site_get(&site, "/api/v1/operations?page_token=zzz"), 400, "bad-parameter");
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "Idempotency-Key: a b\r\n", SITE_MODEL), 400,
                   "bad-request");
}

static void a_path_says_which_methods_it_knows(void **state) {
    (void)state;
    struct reply *r = site_ask(&site, "DELETE", "/api/v1/models", "", NULL);
    assert_problem(r, 405, "method-not-allowed");
    assert_string_equal(reply_header(r, "Allow"), "GET, POST");
    assert_problem(site_ask(&site, "OPTIONS", "/api/v1/models/abcd", "", NULL), 405, "method-not-allowed");
}

static void a_broken_rule_is_told_with_its_json_pointer(void **state) {
    (void)state;
    struct reply *r = site_post(&site, "/api/v1/models",
                                "{\"schema\":\"syncopate.model/1\",\"name\":\"x\",\"variables\":[{\"name\":\"a\","
                                "\"shape\":[0]}],\"layers\":[]}");
    assert_problem(r, 422, "invalid");
    assert_contains(r->body, "\"pointer\":\"/variables/0/shape/0\"");
    r = site_post(
        &site, "/api/v1/predictions",
        "{\"model\":{\"schema\":\"syncopate.model/1\",\"name\":\"x\",\"variables\":[]},\"cluster\":" SITE_CLUSTER
        ",\"baselines\":[\"wfbp\"]}");
    assert_problem(r, 422, "invalid");
    assert_contains(r->body, "\"pointer\":\"/model");
    r = site_post(&site, "/api/v1/models", "{\"schema\":\"syncopate.model/1\",\"name\":\"x\",\"colour\":1}");
    assert_problem(r, 422, "invalid");
    assert_contains(r->body, "/colour");
}

/* Models, clusters, strategies. */

static void the_same_model_again_is_the_same_resource(void **state) {
    (void)state;
    char id[128], path[200], header[256];
    struct reply *r = site_post(&site, "/api/v1/models", SITE_MODEL);
    assert_int_equal(r->status, 201);
    snprintf(id, sizeof id, "%s", text_of(r, "id"));
    snprintf(path, sizeof path, "/api/v1/models/%s", id);
    assert_string_equal(reply_header(r, "Location"), path);
    r = site_post(&site, "/api/v1/models", SITE_MODEL);
    assert_int_equal(r->status, 200);
    assert_string_equal(text_of(r, "id"), id);
    r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    assert_contains(reply_header(r, "Cache-Control"), "immutable");
    struct model model;
    struct error err;
    cJSON *json = parse(r);
    assert_ok(model_read(json, "reply", &model, &err));
    assert_string_equal(model.id.hex, id);
    model_release(&model);
    cJSON_Delete(json);
    snprintf(header, sizeof header, "If-None-Match: \"x\", W/\"%s\"\r\n", id);
    r = site_ask(&site, "GET", path, header, NULL);
    assert_int_equal(r->status, 304);
    assert_string_equal(r->body, "");
    path[strlen("/api/v1/models/") + 12] = '\0';
    r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    assert_null(strstr(reply_header(r, "Cache-Control"), "immutable"));
    assert_int_equal(site_get(&site, "/api/v1/models/toy")->status, 200);
    assert_problem(site_get(&site, "/api/v1/models/none"), 404, "not-found");
}

static void a_posted_model_is_parsed_once_and_hashed_once(void **state) {
    (void)state;
    static const char name[] = "\"name\":\"toy\"";
    const char *at = strstr(SITE_MODEL, name);
    char body[2048];
    snprintf(body, sizeof body, "%.*s\"name\":\"" COUNTED "\"%s", (int)(at - SITE_MODEL), SITE_MODEL,
             at + strlen(name));
    atomic_store(&parses, 0);
    atomic_store(&hashes, 0);
    assert_int_equal(site_post(&site, "/api/v1/models", body)->status, 201);
    assert_int_equal(atomic_load(&parses), 1);
    assert_int_equal(atomic_load(&hashes), 1);
}

static void lists_come_in_pages_that_miss_nothing(void **state) {
    (void)state;
    char body[1024], path[300] = "/api/v1/clusters?page_size=3";
    size_t seen = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(
            body, sizeof body,
            "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c%d\",\"nodes\":[{\"name\":\"n\",\"nic_gbit_per_s\":1}]}",
            i);
        assert_int_equal(site_post(&site, "/api/v1/clusters", body)->status, 201);
    }
    for (int pages = 0; pages < 4; pages++) {
        cJSON *json = parse(site_get(&site, path));
        const cJSON *item, *items = cJSON_GetObjectItemCaseSensitive(json, "items");
        cJSON_ArrayForEach(item, items) {
            char name[16];
            snprintf(name, sizeof name, "c%zu", seen++);
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(item, "name")->valuestring, name);
        }
        snprintf(path, sizeof path, "/api/v1/clusters?page_size=3&page_token=%s",
                 cJSON_GetObjectItemCaseSensitive(json, "next_page_token")->valuestring);
        cJSON_Delete(json);
        if (path[strlen(path) - 1] == '=')
            break;
    }
    assert_int_equal(seen, 8);
}

static void a_strategy_is_put_for_a_model_and_a_cluster(void **state) {
    (void)state;
    char id[128], body[4096], path[200];
    site_post(&site, "/api/v1/models", SITE_MODEL);
    site_post(&site, "/api/v1/clusters", SITE_CLUSTER);
    struct reply *r =
        site_post(&site, "/api/v1/strategies", "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"wfbp\"}");
    assert_int_equal(r->status, 201);
    snprintf(id, sizeof id, "%s", text_of(r, "id"));
    snprintf(path, sizeof path, "/api/v1/strategies/%s", id);
    r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    assert_string_equal(text_of(r, "name"), "wfbp");
    /* What was got can be put again, and is the same. */
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":" SITE_CLUSTER ",\"strategy\":%s}", r->body);
    r = site_post(&site, "/api/v1/strategies", body);
    assert_int_equal(r->status, 200);
    assert_string_equal(text_of(r, "id"), id);
    assert_problem(site_post(&site, "/api/v1/strategies", "{\"model\":\"toy\",\"cluster\":\"four\"}"), 422, "invalid");
    assert_problem(
        site_post(&site, "/api/v1/strategies", "{\"model\":\"none\",\"cluster\":\"four\",\"baseline\":\"wfbp\"}"), 404,
        "not-found");
}

static void a_key_makes_a_repeat_the_same_answer_and_one_effect(void **state) {
    (void)state;
    char first[4096];
    struct reply *r = site_ask(&site, "POST", "/api/v1/models", "Idempotency-Key: k-1\r\n", SITE_MODEL);
    assert_int_equal(r->status, 201);
    assert_null(reply_header(r, "Idempotent-Replayed"));
    snprintf(first, sizeof first, "%s", r->body);
    r = site_ask(&site, "POST", "/api/v1/models", "Idempotency-Key: k-1\r\n", SITE_MODEL);
    assert_int_equal(r->status, 201); /* as then, though it is there by now */
    assert_string_equal(reply_header(r, "Idempotent-Replayed"), "true");
    assert_string_equal(r->body, first);
    assert_string_equal(reply_header(r, "Location"), text_of(r, "href"));
    assert_problem(site_ask(&site, "POST", "/api/v1/clusters", "Idempotency-Key: k-1\r\n", SITE_CLUSTER), 422,
                   "idempotency-mismatch");
    assert_int_equal(site_ask(&site, "POST", "/api/v1/clusters", "Idempotency-Key: k-2\r\n", SITE_CLUSTER)->status,
                     201);
    /* A failure is not kept: mended, the same key goes on. */
    assert_problem(site_ask(&site, "POST", "/api/v1/models", "Idempotency-Key: k-3\r\n", "{}"), 422, "invalid");
    assert_int_equal(site_ask(&site, "POST", "/api/v1/models", "Idempotency-Key: k-3\r\n", SITE_MODEL)->status, 200);
}

/* Every route takes a key or refuses it, by its row; what is asked about need not be there. */
static void no_key_is_passed_over(void **state) {
    (void)state;
    size_t n, refused = 0;
    const struct route *routes = routes_list(&n);
    for (size_t i = 0; i < n; i++) {
        const struct route *r = &routes[i];
        if (r->flags & (ROUTE_HIDDEN | ROUTE_STREAM))
            continue;
        char path[256];
        size_t used = 0;
        for (const char *c = r->pattern; *c; c++)
            if (*c != '{')
                path[used++] = *c;
            else if ((c = strchr(c, '}')))
                path[used++] = '1';
        path[used] = '\0';
        const char *headers = r->flags & ROUTE_UPLOAD
                                  ? "Idempotency-Key: k\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                                  : "Idempotency-Key: k\r\n";
        const struct reply *reply = site_ask(&site, r->method, path, headers, r->request ? "{}" : NULL);
        const bool told = reply->status == 400 && strstr(reply->body, "Idempotency-Key: this changes nothing");
        if (told == ((r->flags & ROUTE_KEYED) != 0))
            fail_msg("%s %s: %s", r->method, r->pattern, reply->body);
        refused += told;
    }
    assert_in_range(refused, 10, n);
}

/* Predictions. */

static void predictions_come_fastest_first_and_agree_with_the_predictor(void **state) {
    (void)state;
    site_post(&site, "/api/v1/models", SITE_MODEL);
    site_post(&site, "/api/v1/clusters", SITE_CLUSTER);
    site_post(&site, "/api/v1/strategies", "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"single\"}");
    const char *asked = "{\"model\":\"toy\",\"cluster\":\"four\",\"strategies\":[\"single\"],"
                        "\"baselines\":[\"wfbp\",\"horovod\",\"byteps\",\"ps\"]}";
    struct reply *r = site_post(&site, "/api/v1/predictions", asked);
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    const cJSON *row, *rows = cJSON_GetObjectItemCaseSensitive(json, "predictions");
    assert_int_equal(cJSON_GetArraySize(rows), 5);
    struct error err;
    struct prepared_domain *domain;
    struct store *store;
    assert_ok(access_read(site.service->access, &store, &err));
    assert_ok(prepared_domains_take(
        site.service->domains, store,
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "model"), "id")->valuestring,
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "cluster"), "id")->valuestring, &domain,
        &err));
    double last = 0;
    cJSON_ArrayForEach(row, rows) {
        const cJSON *who = cJSON_GetObjectItemCaseSensitive(row, "strategy");
        const char *name = cJSON_GetObjectItemCaseSensitive(who, "name")->valuestring;
        const double us = cJSON_GetObjectItemCaseSensitive(row, "iteration_us")->valuedouble;
        struct strategy strategy;
        struct outlook p;
        struct updates_prediction *updates;
        assert_true(us >= last);
        last = us;
        assert_ok(tuned_build(baselines_find(name), domain->model, domain->cluster, &strategy, &err));
        assert_string_equal(strategy.id.hex, cJSON_GetObjectItemCaseSensitive(who, "id")->valuestring);
        assert_ok(prepared_domain_predict(domain, &strategy, &p, &updates, &err));
        assert_close(p.quiet.iteration_us, us, 1e-12);
        assert_null(updates);
        strategy_release(&strategy);
    }
    assert_close(cJSON_GetObjectItemCaseSensitive(json, "lower_bound_us")->valuedouble, domain->lower_bound_us, 1e-12);
    prepared_domain_drop(domain);
    cJSON_Delete(json);
    char first[8192]; /* the second time from the cache, and no different */
    snprintf(first, sizeof first, "%s", site_post(&site, "/api/v1/predictions", asked)->body);
    assert_string_equal(site_post(&site, "/api/v1/predictions", asked)->body, first);
}

/* Small messages mostly wait for their start, so large groups are faster, and take more memory. */
#define LAYERED                                                                                                        \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"layered\",\"variables\":["                                           \
    "{\"name\":\"a\",\"shape\":[1000]},{\"name\":\"b\",\"shape\":[2000]},{\"name\":\"c\",\"shape\":[3000]},"           \
    "{\"name\":\"d\",\"shape\":[4000]}],\"layers\":["                                                                  \
    "{\"name\":\"l1\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"a\"]},"                                  \
    "{\"name\":\"l2\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"b\"]},"                                  \
    "{\"name\":\"l3\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"c\"]},"                                  \
    "{\"name\":\"l4\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"d\"]}]}"

static void predict_wrapping(const char *cluster, const char *memory, double *bytes, bool *fits) {
    char body[4096];
    snprintf(body, sizeof body, "{\"model\":" LAYERED ",\"cluster\":%s,\"baselines\":[\"fsdp-optimal\"],%s}", cluster,
             memory);
    struct reply *r = site_post(&site, "/api/v1/predictions", body);
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(json, "predictions")->child;
    assert_non_null(row);
    const cJSON *told = cJSON_GetObjectItemCaseSensitive(row, "memory");
    *bytes = cJSON_GetObjectItemCaseSensitive(told, "peak_bytes")->valuedouble;
    *fits = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(told, "fits"));
    cJSON_Delete(json);
}

/* The wrapping takes what it may, and where that is too little the least that it can do with. */
static void a_predicted_wrapping_is_for_the_memory_that_is_said(void **state) {
    (void)state;
    static const char tight[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"tight\",\"nodes\":[{\"name\":\"n\","
        "\"count\":4,\"nic_gbit_per_s\":1,\"nic_latency_us\":50,\"device_memory_gbyte\":%.9f}]}";
    double any, least, got;
    char text[64], cluster[512];
    bool fits;
    predict_wrapping(SITE_CLUSTER, "\"memory\":true", &any, &fits);
    assert_true(fits);
    predict_wrapping(SITE_CLUSTER, "\"memory_bytes\":9", &least, &fits);
    assert_true(!fits && least < any);
    for (double room = least - 1; room < any; room += (any - least) / 4) {
        snprintf(text, sizeof text, "\"memory_bytes\":%.0f", floor(room));
        predict_wrapping(SITE_CLUSTER, text, &got, &fits);
        assert_true(fits == (room >= least) && got <= fmax(room, least) && got >= least);
    }
    for (int spare = -1; spare <= 1; spare += 2) {
        snprintf(cluster, sizeof cluster, tight, (least + spare) / 1e9);
        predict_wrapping(cluster, "\"memory\":true", &got, &fits);
        assert_true(fits == (spare > 0) && got == least);
    }
}

/* The toy's 278528 bytes as variables and gradients, and both in a buffer of `single`; wfbp needs no buffer. */
static void predictions_tell_memory_and_what_fits_comes_first(void **state) {
    (void)state;
    static const struct {
        const char *asked, *name;
        double peak_bytes;
        bool fits;
    } cases[] = {{"\"memory\":true", "wfbp", 557056, true},
                 {"\"memory_bytes\":600000", "wfbp", 557056, true},
                 {"\"memory_bytes\":600000", "single", 835584, false},
                 {"\"memory_bytes\":900000", "single", 835584, true},
                 {"\"memory_bytes\":9", "wfbp", 557056, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[4096];
        snprintf(body, sizeof body,
                 "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER ",\"baselines\":[\"single\",\"wfbp\"],%s}",
                 cases[i].asked);
        struct reply *r = site_post(&site, "/api/v1/predictions", body);
        assert_int_equal(r->status, 200);
        cJSON *json = parse(r), *row, *rows = cJSON_GetObjectItemCaseSensitive(json, "predictions");
        bool found = false, over = false;
        cJSON_ArrayForEach(row, rows) {
            const cJSON *memory = cJSON_GetObjectItemCaseSensitive(row, "memory"),
                        *who = cJSON_GetObjectItemCaseSensitive(row, "strategy");
            const bool fits = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(memory, "fits"));
            assert_false(over && fits);
            over = !fits;
            if (strcmp(cJSON_GetObjectItemCaseSensitive(who, "name")->valuestring, cases[i].name) != 0)
                continue;
            found = true;
            assert_int_equal(fits, cases[i].fits);
            assert_close(cJSON_GetObjectItemCaseSensitive(memory, "peak_bytes")->valuedouble, cases[i].peak_bytes, 0);
            assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(memory, "optimizer_bytes")));
        }
        assert_true(found);
        cJSON_Delete(json);
    }
}

static double number(const cJSON *object, const char *member) {
    return cJSON_GetObjectItemCaseSensitive(object, member)->valuedouble;
}

/* Among the ways are wfbp's 557056 bytes, and nobody needs as few as 9. Of what takes at most a thousandth longer than
 * the fastest the answer needs the least. */
static void advice_names_within_ties_what_needs_the_least_memory(void **state) {
    (void)state;
    struct reply *r = site_post(&site, "/api/v1/advice",
                                "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER ",\"memory_bytes\":[600000,9]}");
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r), *row;
    const cJSON *answers = cJSON_GetObjectItemCaseSensitive(json, "answers");
    assert_int_equal(cJSON_GetArraySize(answers), 2);
    assert_close(cJSON_GetObjectItemCaseSensitive(answers->child, "memory_bytes")->valuedouble, 9, 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(answers->child, "id")));
    const char *best = NULL;
    double last_us = 0, least_bytes = INFINITY, best_us = INFINITY, best_bytes = INFINITY;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "candidates")) {
        const cJSON *memory = cJSON_GetObjectItemCaseSensitive(row, "memory");
        const double us = cJSON_GetObjectItemCaseSensitive(row, "iteration_us")->valuedouble;
        const double bytes = cJSON_GetObjectItemCaseSensitive(memory, "peak_bytes")->valuedouble;
        assert_true(us >= last_us);
        best_us = bytes <= 600000 ? fmin(best_us, us) : best_us;
        if (us <= best_us * 1.001 && bytes <= 600000 && bytes < best_bytes) {
            best = cJSON_GetObjectItemCaseSensitive(row, "id")->valuestring;
            best_bytes = bytes;
        }
        last_us = us;
        least_bytes = fmin(least_bytes, bytes);
    }
    const cJSON *front = cJSON_GetObjectItemCaseSensitive(json, "front"), *point;
    assert_close(number(front->child, "peak_bytes"), least_bytes, 0);
    assert_true(cJSON_GetArraySize(front) >= 1);
    cJSON_ArrayForEach(point, front) {
        assert_true(!point->next || number(point->next, "peak_bytes") > number(point, "peak_bytes"));
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "candidates")) {
            const cJSON *memory = cJSON_GetObjectItemCaseSensitive(row, "memory");
            if (number(memory, "peak_bytes") <= number(point, "peak_bytes"))
                assert_true(number(row, "iteration_us") >= number(point, "iteration_us"));
        }
    }
    assert_non_null(best);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(answers->child->next, "id")->valuestring, best);
    assert_close(cJSON_GetObjectItemCaseSensitive(json, "smallest_memory_bytes")->valuedouble, least_bytes, 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "at_other_rates")), 5 * 2);
    cJSON_Delete(json);
}

static void advice_that_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *tail, *says;
    } cases[] = {{",\"memory_bytes\":[1,2,3,4,5,6,7,8,9]", "has 9 elements; at most 8"},
                 {",\"memory_bytes\":[\"24GB\"]", "must be a whole number, not a string"},
                 {",\"memory_bytes\":[0]", "is 0; it must be at least 1"},
                 {",\"memory_bytes\":24", "must be an array"},
                 {",\"memory\":\"24GB\"", "unknown member"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[4096];
        snprintf(body, sizeof body, "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER "%s}", cases[i].tail);
        struct reply *r = site_post(&site, "/api/v1/advice", body);
        assert_contains(r->body, cases[i].says);
        assert_problem(r, 422, "invalid");
    }
}

static void one_bad_strategy_does_not_spoil_the_others(void **state) {
    (void)state;
    struct reply *r =
        site_post(&site, "/api/v1/predictions",
                  "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER ",\"baselines\":[\"wfbp\"],\"strategies\":["
                  "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{\"policy\":\"best\"},"
                  "\"variables\":[]}]}");
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "predictions")), 1);
    const cJSON *failure = cJSON_GetObjectItemCaseSensitive(json, "failures")->child;
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(failure, "code")->valuestring, "invalid");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(failure, "pointer")->valuestring,
                        "/strategies/0/schedule/policy");
    cJSON_Delete(json);
}

static void predictions_that_make_no_sense_are_refused(void **state) {
    (void)state;
    const char *head = "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER;
    const char *tails[] = {"}",
                           ",\"strategies\":[]}",
                           ",\"baselines\":[\"nobody\"]}",
                           ",\"strategies\":[7]}",
                           ",\"strategies\":{}}",
                           ",\"baselines\":[\"wfbp\"],\"timeline\":1}",
                           ",\"baselines\":[\"wfbp\"],\"memory\":1}",
                           ",\"baselines\":[\"wfbp\"],\"memory_bytes\":0}",
                           ",\"baselines\":[\"wfbp\"],\"memory_bytes\":\"80GB\"}",
                           ",\"baselines\":[\"wfbp\"],\"colour\":1}"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char body[4096];
        snprintf(body, sizeof body, "%s%s", head, tails[i]);
        assert_problem(site_post(&site, "/api/v1/predictions", body), 422, "invalid");
    }
}

static void a_prediction_can_bring_its_timeline(void **state) {
    (void)state;
    struct reply *r = site_post(&site, "/api/v1/predictions",
                                "{\"model\":" SITE_MODEL ",\"cluster\":" SITE_CLUSTER
                                ",\"baselines\":[\"wfbp\",\"single\"],\"timeline\":true}");
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "predictions")) {
        const cJSON *trace = cJSON_GetObjectItemCaseSensitive(row, "timeline");
        assert_true(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(trace, "traceEvents")) > 4);
    }
    cJSON_Delete(json);
}

#define SITE_SHARDED                                                                                                   \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"fsdp\",\"schedule\":{\"policy\":\"fifo\","                        \
    "\"forward_prefetch\":2,\"backward_prefetch\":0},\"groups\":[{\"id\":0,\"sharded\":\"parameters\"},"               \
    "{\"id\":1,\"sharded\":\"parameters\",\"reshard_after_forward\":false}],\"variables\":["                           \
    "{\"name\":\"a\",\"sync\":{\"kind\":\"all_reduce\",\"group\":0}},"                                                 \
    "{\"name\":\"b\",\"sync\":{\"kind\":\"all_reduce\",\"group\":1}}]}"

/* What is put comes back as it was, and is predicted with its three all-gathers, two reduce-scatters and the update. */
static void sharded_parameters_are_kept_and_predicted(void **state) {
    (void)state;
    char id[128], path[200];
    int updates = 0;
    site_post(&site, "/api/v1/models", SITE_MODEL);
    site_post(&site, "/api/v1/clusters", SITE_CLUSTER);
    struct reply *r = site_post(&site, "/api/v1/strategies",
                                "{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":" SITE_SHARDED "}");
    assert_int_equal(r->status, 201);
    snprintf(id, sizeof id, "%s", text_of(r, "id"));
    snprintf(path, sizeof path, "/api/v1/strategies/%s", id);
    r = site_get(&site, path);
    assert_int_equal(r->status, 200);
    assert_contains(r->body, "\"forward_prefetch\":2");
    assert_contains(r->body, "\"backward_prefetch\":0");
    assert_contains(r->body, "\"sharded\":\"parameters\"");
    assert_contains(r->body, "\"reshard_after_forward\":false");
    r = site_post(&site, "/api/v1/predictions",
                  "{\"model\":\"toy\",\"cluster\":\"four\",\"strategies\":[\"fsdp\"],\"timeline\":true}");
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(json, "predictions")->child, *event;
    assert_non_null(row);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(row, "messages")->valueint, 5);
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(cJSON_GetObjectItem(row, "timeline"), "traceEvents")) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(event, "name");
        updates += name && strcmp(name->valuestring, "update 4") == 0;
    }
    assert_true(updates >= 4 * 2);
    cJSON_Delete(json);
}

#define SITE_WEATHER                                                                                                   \
    "{\"schema\":\"syncopate.cluster/"                                                                                 \
    "1\",\"name\":\"five\",\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1}],"                             \
    "\"variability\":{\"network\":{\"every_us\":50000,\"rates\":[{\"gbit_per_s\":0.5,\"share\":0.5},"                  \
    "{\"gbit_per_s\":1,\"share\":0.5}]}}}"

/* How many it predicts of these baselines, and all that it says of them. */
static cJSON *predicted(const char *cluster, const char *baselines, const char *more, int n) {
    char body[4096];
    snprintf(body, sizeof body, "{\"model\":" SITE_MODEL ",\"cluster\":%s,\"baselines\":[%s]%s}", cluster, baselines,
             more);
    struct reply *r = site_post(&site, "/api/v1/predictions", body);
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "predictions")), n);
    return json;
}

/* Delays and drops as they are: the counts add up, the time is that of a round, and a strategy of sums has none. */
static void strategies_with_updates_are_predicted_with_their_delays(void **state) {
    (void)state;
    const char *const clusters[] = {SITE_CLUSTER, SITE_WEATHER};
    for (int k = 0; k < 2; k++) {
        cJSON *json = predicted(clusters[k], "\"async-ps\",\"mlfabric-a\",\"wfbp\"", "", 3);
        const cJSON *row, *delay;
        size_t with = 0;
        assert_null(cJSON_GetObjectItemCaseSensitive(json, "weather"));
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "predictions")) {
            const cJSON *u = cJSON_GetObjectItemCaseSensitive(row, "updates");
            struct updates_prediction read;
            struct error err;
            double sum = 0;
            assert_true(cJSON_HasObjectItem(row, "in_weather") == (k == 1));
            assert_true(cJSON_HasObjectItem(row, "gap") == !u);
            if (!u)
                continue;
            with++;
            const struct json_at at = json_root(u, "updates");
            assert_ok(updates_prediction_read(&at, &read, &err));
            cJSON_ArrayForEach(delay, cJSON_GetObjectItemCaseSensitive(u, "delays")) sum += delay->valuedouble;
            assert_close(sum, read.applied, 1e-9);
            if (k == 0) /* in weather the mean is over seeds */
                assert_close(cJSON_GetObjectItemCaseSensitive(row, "iteration_us")->valuedouble,
                             read.us / read.applied * 4, 1e-9);
        }
        assert_int_equal(with, 2);
        cJSON_Delete(json);
    }
}

/* The timeline of updates, and the rates that NICs have meanwhile. */
static void timelines_in_weather_come_with_its_rates(void **state) {
    (void)state;
    cJSON *json = predicted(SITE_WEATHER, "\"ssp\",\"wfbp\"", ",\"timeline\":true", 2);
    const cJSON *row, *change, *weather = cJSON_GetObjectItemCaseSensitive(json, "weather");
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "predictions")) {
        const cJSON *trace = cJSON_GetObjectItemCaseSensitive(row, "timeline");
        assert_true(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(trace, "traceEvents")) > 4);
    }
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(weather, "seed")->valueint, 1);
    const double until_us = cJSON_GetObjectItemCaseSensitive(weather, "until_us")->valuedouble;
    assert_true(until_us >= 20 * 50000);
    double last = 0;
    cJSON_ArrayForEach(change, cJSON_GetObjectItemCaseSensitive(weather, "changes")) {
        const double at = cJSON_GetObjectItemCaseSensitive(change, "at_us")->valuedouble;
        const double rate = cJSON_GetObjectItemCaseSensitive(change, "gbit_per_s")->valuedouble;
        assert_true(at >= last && at < until_us && fmod(at, 50000) == 0 && (rate == 0.5 || rate == 1));
        last = at;
    }
    assert_true(last > 10 * 50000);
    cJSON_Delete(json);
}

/* The table, and what it says of itself. */

static void every_row_of_the_table_is_whole(void **state) {
    (void)state;
    size_t n, n_schemas;
    const struct route *routes = routes_list(&n);
    const struct schema *schemas = schemas_list(&n_schemas);
    char all[4096] = "";
    for (size_t i = 0; i < n_schemas; i++) {
        cJSON *json = schema_parse(schemas[i].text);
        if (!json)
            fail_msg("schema %s is no JSON", schemas[i].name);
        cJSON_Delete(json);
        strcat(strcat(all, schemas[i].name), " ");
    }
    for (size_t i = 0; i < n; i++) {
        const struct route *r = &routes[i];
        assert_true(r->handler && *r->summary && *r->statuses && *r->pattern == '/');
        assert_true(!r->request || route_has_word(all, r->request));
        assert_true(r->media || (r->response && route_has_word(all, r->response)));
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(routes[k].pattern, r->pattern) || strcmp(routes[k].method, r->method));
        char words[256], *rest = NULL;
        snprintf(words, sizeof words, "%s", r->query);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            if (!parameters_find(w))
                fail_msg("%s %s: parameter %s is not described", r->method, r->pattern, w);
        snprintf(words, sizeof words, "%s", r->headers);
        for (char *w = strtok_r(words, " ?", &rest); w; w = strtok_r(NULL, " ?", &rest)) {
            bool known = false;
            for (int h = 0; h < HEADER_COUNT; h++)
                known = known || !strcmp(header_name((enum header)h), w);
            if (!known)
                fail_msg("%s %s: there is no header %s", r->method, r->pattern, w);
        }
        snprintf(words, sizeof words, "%s", r->problems);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
            bool known = false;
            for (size_t p = 1; p < PROBLEM_COUNT; p++)
                known = known || !strcmp(problem_code((enum problem)p), w);
            if (!known)
                fail_msg("%s %s: there is no problem %s", r->method, r->pattern, w);
        }
    }
}

/* "#/components/schemas/Model" */
static void check_references(const cJSON *at, const cJSON *components) {
    for (; at; at = at->next) {
        if (at->string && !strcmp(at->string, "$ref")) {
            char kind[32] = "", name[64] = "";
            assert_int_equal(sscanf(at->valuestring, "#/components/%31[a-z]/%63s", kind, name), 2);
            if (!cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(components, kind), name))
                fail_msg("a reference to %s, which is not there", at->valuestring);
        }
        check_references(at->child, components);
    }
}

static void the_description_names_every_route_and_resolves(void **state) {
    (void)state;
    size_t n;
    const struct route *routes = routes_list(&n);
    struct reply *r = site_get(&site, "/openapi.json");
    assert_int_equal(r->status, 200);
    cJSON *json = parse(r);
    const cJSON *paths = cJSON_GetObjectItemCaseSensitive(json, "paths");
    const cJSON *components = cJSON_GetObjectItemCaseSensitive(json, "components");
    for (size_t i = 0; i < n; i++) {
        const cJSON *path = cJSON_GetObjectItemCaseSensitive(paths, routes[i].pattern);
        if (!(routes[i].flags & ROUTE_HIDDEN) && !cJSON_GetObjectItem(path, routes[i].method))
            fail_msg("%s %s is not described", routes[i].method, routes[i].pattern);
    }
    check_references(json, components);
    cJSON_Delete(json);
}

static void the_service_stops_being_ready_before_it_stops(void **state) {
    (void)state;
    assert_int_equal(site_get(&site, "/readyz")->status, 200);
    server_drain(site.server);
    assert_problem(site_get(&site, "/readyz"), 503, "draining");
    assert_int_equal(site_get(&site, "/healthz")->status, 200);
    struct reply *r = site_get(&site, "/api/v1/models");
    assert_problem(r, 503, "draining");
    assert_non_null(reply_header(r, "Retry-After"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define OPEN(name)   cmocka_unit_test_setup_teardown(name, set_up_open, tear_down)
#define CLOSED(name) cmocka_unit_test_setup_teardown(name, set_up_closed, tear_down)
        CLOSED(without_a_valid_token_nothing_is_told),
        CLOSED(a_role_allows_what_those_before_it_do_and_no_more),
        CLOSED(who_is_signed_in_at_the_pages_may_ask_too),
        CLOSED(a_token_that_asks_too_often_is_told_when_to_come_again),
        cmocka_unit_test(without_tokens_and_not_open_no_service_starts),
        OPEN(an_open_service_listens_to_its_own_machine_only),
        OPEN(pages_of_other_origins_change_nothing),
        OPEN(wrong_requests_are_told_what_is_wrong),
        OPEN(a_path_says_which_methods_it_knows),
        OPEN(a_broken_rule_is_told_with_its_json_pointer),
        OPEN(the_same_model_again_is_the_same_resource),
        OPEN(a_posted_model_is_parsed_once_and_hashed_once),
        OPEN(lists_come_in_pages_that_miss_nothing),
        OPEN(a_strategy_is_put_for_a_model_and_a_cluster),
        OPEN(a_key_makes_a_repeat_the_same_answer_and_one_effect),
        OPEN(no_key_is_passed_over),
        OPEN(predictions_come_fastest_first_and_agree_with_the_predictor),
        OPEN(predictions_tell_memory_and_what_fits_comes_first),
        OPEN(a_predicted_wrapping_is_for_the_memory_that_is_said),
        OPEN(advice_names_within_ties_what_needs_the_least_memory),
        OPEN(advice_that_makes_no_sense_is_refused),
        OPEN(one_bad_strategy_does_not_spoil_the_others),
        OPEN(strategies_with_updates_are_predicted_with_their_delays),
        OPEN(timelines_in_weather_come_with_its_rates),
        OPEN(predictions_that_make_no_sense_are_refused),
        OPEN(a_prediction_can_bring_its_timeline),
        OPEN(sharded_parameters_are_kept_and_predicted),
        cmocka_unit_test(every_row_of_the_table_is_whole),
        OPEN(the_description_names_every_route_and_resolves),
        OPEN(the_service_stops_being_ready_before_it_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
