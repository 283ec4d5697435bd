/* Many clients at once on one server in this process: they take, renew, report, abandon and end the trials of a session
 * while it is paused and resumed, looked at, followed as events, and while others are opened, stopped and cancelled.
 * Built for ThreadSanitizer too. A client's thread asserts nothing; what it found wrong is told by the main thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "service/hub.h"
#include "tests/unit/service/http_site.h"

enum { CLIENTS = 8, TRIALS = 20, ABANDONERS = 2, MOST_ACKS = 64 };

/* One request on a connection of its own; `text` is the whole answer, to be freed. */
struct answer {
    int status;
    char *text, *body;
};

static char *hear_all(int fd) {
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    ssize_t got;
    while (text && (got = recv(fd, text + used, room - used - 1, 0)) > 0) {
        used += (size_t)got;
        if (used + 1 == room)
            text = realloc(text, room *= 2);
    }
    if (text)
        text[used] = '\0';
    return text;
}

static int dial(const struct site *site) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(site_port(site))};
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof at))
        return fd;
    close(fd);
    return -1;
}

static struct answer ask(const struct site *site, const char *method, const char *path, const char *headers,
                         const char *body) {
    struct answer a = {0};
    char head[1024];
    int fd = dial(site);
    if (fd < 0)
        return a;
    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s", method, path, headers);
    if (site_say(fd, head) && (!body || site_say(fd, "Content-Type: application/json\r\n"))) {
        snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", body ? strlen(body) : 0);
        site_say(fd, head);
        if (body)
            site_say(fd, body);
        a.text = hear_all(fd);
    }
    close(fd);
    if (a.text && sscanf(a.text, "HTTP/1.1 %d", &a.status) == 1)
        a.body = strstr(a.text, "\r\n\r\n");
    a.body = a.body ? a.body + 4 : a.text;
    return a;
}

static cJSON *ask_json(const struct site *site, const char *method, const char *path, const char *headers,
                       const char *body, int *status) {
    struct answer a = ask(site, method, path, headers, body);
    cJSON *json = a.body ? cJSON_Parse(a.body) : NULL;
    *status = a.status;
    free(a.text);
    return json;
}

static double number_of(const cJSON *json, const char *member) {
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(json, member);
    return cJSON_IsNumber(at) ? at->valuedouble : -1;
}

static bool text_is(const cJSON *json, const char *member, const char *text) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, member));
    return value && !strcmp(value, text);
}

/* ---- the stage ---- */

struct ack { /* a completion that was answered with 200 */
    unsigned number, attempt;
    double first_us;
};

struct stage;
struct client {
    struct stage *stage;
    pthread_t thread;
    unsigned index;
    struct rng rng;
    bool abandons; /* its next trial */
    bool over;
    size_t n_acks;
    struct ack acks[MOST_ACKS];
    char trouble[640];
};

struct stage {
    struct site site;
    char session[64];
    atomic_bool end;
    struct client clients[CLIENTS];
    struct client steerer, looker, opener, follower;
    unsigned events;
};

/* The first thing that went wrong is kept. */
static void trouble(struct client *c, const char *what, int status, const cJSON *json) {
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    if (!*c->trouble)
        snprintf(c->trouble, sizeof c->trouble, "%.300s: %d %.300s", what, status, text ? text : "");
    free(text);
}

static void path_of(const struct client *c, unsigned number, const char *verb, char out[400]) {
    if (number)
        snprintf(out, 400, "/api/v1/sessions/%s/trials/%u:%s", c->stage->session, number, verb);
    else
        snprintf(out, 400, "/api/v1/sessions/%s%s", c->stage->session, verb);
}

/* ---- clients ---- */

/* Alive, and times so far: 409 only when the lease has run out meanwhile. */
static void tell(struct client *c, unsigned number, unsigned attempt) {
    char path[400], body[200];
    int status;
    const bool report = rng_below(&c->rng, 2);
    path_of(c, number, report ? "report" : "heartbeat", path);
    snprintf(body, sizeof body, "{\"client\":\"c%u\",\"attempt\":%u%s}", c->index, attempt,
             report ? ",\"iterations_us\":[9000,9100]" : "");
    cJSON *json = ask_json(&c->stage->site, "POST", path, "", body, &status);
    if (status != 200 && status != 409)
        trouble(c, path, status, json);
    cJSON_Delete(json);
}

/* Ended under a key, now and then twice: the repetition is answered as the first was. */
static void end(struct client *c, unsigned number, unsigned attempt) {
    char path[400], body[200], key[100];
    int status, again = 0;
    const bool fails = !rng_below(&c->rng, 10);
    const double first_us = rng_between(&c->rng, 9000, 30000);
    path_of(c, number, fails ? "fail" : "complete", path);
    if (fails)
        snprintf(body, sizeof body, "{\"client\":\"c%u\",\"attempt\":%u,\"reason\":\"it broke\"}", c->index, attempt);
    else
        snprintf(body, sizeof body, "{\"client\":\"c%u\",\"attempt\":%u,\"iterations_us\":[%.3f,%.3f,%.3f]}", c->index,
                 attempt, first_us, first_us * 1.01, first_us * 0.99);
    snprintf(key, sizeof key, "Idempotency-Key: c%u-%u-%u\r\n", c->index, number, attempt);
    cJSON *json = ask_json(&c->stage->site, "POST", path, key, body, &status);
    if (status != 200 && status != 409)
        trouble(c, path, status, json);
    if (status == 200 && !fails && c->n_acks < MOST_ACKS)
        c->acks[c->n_acks++] = (struct ack){number, attempt, first_us};
    if (status == 200 && !rng_below(&c->rng, 3)) {
        cJSON *repeated = ask_json(&c->stage->site, "POST", path, key, body, &again);
        if (again != 200 || !cJSON_Compare(json, repeated, true))
            trouble(c, "a repetition was answered otherwise", again, repeated);
        cJSON_Delete(repeated);
    }
    cJSON_Delete(json);
}

static void take_turn(struct client *c, const cJSON *trials) {
    const cJSON *trial;
    cJSON_ArrayForEach(trial, trials) {
        const unsigned number = (unsigned)number_of(trial, "number"), attempt = (unsigned)number_of(trial, "attempt");
        if (c->abandons) { /* nobody hears of it again */
            c->abandons = false;
            continue;
        }
        if (rng_below(&c->rng, 2))
            tell(c, number, attempt);
        end(c, number, attempt);
    }
}

static void *be_client(void *context) {
    struct client *c = context;
    char path[400], body[200];
    path_of(c, 0, "/trials:suggest", path);
    while (!c->over && !*c->trouble && !atomic_load(&c->stage->end)) {
        int status;
        snprintf(body, sizeof body, "{\"client\":\"c%u\",\"count\":%u,\"lease_s\":1}", c->index,
                 1 + (unsigned)rng_below(&c->rng, 2));
        cJSON *json = ask_json(&c->stage->site, "POST", path, "", body, &status);
        if (status == 200) {
            take_turn(c, cJSON_GetObjectItemCaseSensitive(json, "trials"));
            c->over = text_is(json, "next", "over");
        } else if (status == 409) { /* paused, or it has just ended */
            const char *detail = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "detail"));
            c->over = detail && strstr(detail, "is done");
        } else {
            trouble(c, path, status, json);
        }
        cJSON_Delete(json);
        usleep(2000);
    }
    return NULL;
}

/* ---- the others ---- */

/* Pauses and resumes; either may come too late, which is no failure. */
static void *be_steerer(void *context) {
    struct client *c = context;
    for (bool pause = true; !atomic_load(&c->stage->end) && !*c->trouble; pause = !pause) {
        char path[400];
        int status;
        path_of(c, 0, pause ? ":pause" : ":resume", path);
        cJSON *json = ask_json(&c->stage->site, "POST", path, "", NULL, &status);
        if (status != 200 && status != 409)
            trouble(c, path, status, json);
        cJSON_Delete(json);
        usleep(pause ? 5000 : 60000);
    }
    return NULL;
}

static void *be_looker(void *context) {
    static const char *const looks[] = {"", "/trials?iterations=true", "/best", "/importance", "/trials/1"};
    struct client *c = context;
    for (size_t i = 0; !atomic_load(&c->stage->end) && !*c->trouble; i++) {
        char path[400];
        int status;
        path_of(c, 0, looks[i % 5], path);
        if (i % 7 == 5)
            snprintf(path, sizeof path, "/metrics");
        if (i % 7 == 6)
            snprintf(path, sizeof path, "/api/v1/records?page_size=5&filter=state+%%3D+complete");
        cJSON *json = ask_json(&c->stage->site, "GET", path, "", NULL, &status);
        if (status != 200 && status != 404)
            trouble(c, path, status, json);
        cJSON_Delete(json);
        usleep(3000);
    }
    return NULL;
}

/* The first sessions are looked at again when many others have ended, so that some have left the memory. */
static void *be_opener(void *context) {
    struct client *c = context;
    char body[300];
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":5}}");
    for (unsigned i = 0; i < 24 && !atomic_load(&c->stage->end) && !*c->trouble; i++) {
        char path[400];
        int status;
        cJSON *json = ask_json(&c->stage->site, "POST", "/api/v1/sessions", "", body, &status);
        const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id"));
        if (status != 201 || !id) {
            trouble(c, "POST sessions", status, json);
        } else {
            snprintf(path, sizeof path, "/api/v1/sessions/%s:%s", id, i % 2 ? "stop" : "cancel");
            struct answer a = ask(&c->stage->site, "POST", path, "", NULL);
            if (a.status != 200)
                trouble(c, path, a.status, NULL);
            free(a.text);
        }
        cJSON_Delete(json);
    }
    return NULL;
}

/* Follow the events until the session is done, counting the ends of trials. */
static void *be_follower(void *context) {
    struct client *c = context;
    char head[300], text[1 << 16];
    int fd = dial(&c->stage->site);
    size_t used = 0;
    snprintf(head, sizeof head, "GET /api/v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
             c->stage->session);
    site_say(fd, head);
    while (used + 1 < sizeof text) {
        ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0)
            break;
        used += (size_t)got;
        text[used] = '\0';
        if (strstr(text, "\"state\":\"done\""))
            break;
    }
    close(fd);
    for (const char *at = text; used && (at = strstr(at, "event: trial-ended")); at++)
        c->stage->events++;
    return NULL;
}

/* ---- the test ---- */

static void open_session(struct stage *stage) {
    int status;
    cJSON *json;
    char body[200];
    assert_int_equal(site_post(&stage->site, "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(site_post(&stage->site, "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":%d},\"seed\":%d}",
             TRIALS, (int)(test_seed() % 1000));
    json = ask_json(&stage->site, "POST", "/api/v1/sessions", "", body, &status);
    assert_int_equal(status, 201);
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
    assert_true(cJSON_IsString(id));
    snprintf(stage->session, sizeof stage->session, "%s", id->valuestring);
    cJSON_Delete(json);
}

static void launch(struct stage *stage, struct client *c, unsigned index, void *(*run)(void *)) {
    c->stage = stage;
    c->index = index;
    rng_split(&c->rng, test_seed(), index);
    assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
}

static void join(struct client *c) {
    pthread_join(c->thread, NULL);
    if (*c->trouble)
        print_error("client %u: %s\n", c->index, c->trouble);
    assert_string_equal(c->trouble, "");
}

/* The trial that an acknowledgement was about, as the dataset has it. */
static void assert_kept(const struct stage *stage, const cJSON *items, const struct client *c, const struct ack *ack) {
    const cJSON *trial;
    char name[16];
    snprintf(name, sizeof name, "c%u", c->index);
    (void)stage;
    cJSON_ArrayForEach(trial, items) {
        if (number_of(trial, "number") != ack->number)
            continue;
        const cJSON *times = cJSON_GetObjectItemCaseSensitive(trial, "iterations_us");
        assert_true(text_is(trial, "state", "complete"));
        assert_int_equal(cJSON_GetArraySize(times), 3);
        assert_close(cJSON_GetArrayItem(times, 0)->valuedouble, ack->first_us, 1e-6);
        return;
    }
    fail_msg("trial %u, acknowledged to %s, is not there", ack->number, name);
}

/* Each acknowledged completion is there, none was acknowledged twice, and there is no other. On a machine so busy that
 * clients outlive three leases of a second, trials are lost, and rounds of the final with them. */
static void assert_books_balance(struct stage *stage) {
    char path[400];
    int status;
    size_t acks = 0, complete = 0, spent = 0, lost = 0;
    bool seen[1000] = {false};
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials?iterations=true&page_size=1000", stage->session);
    cJSON *json = ask_json(&stage->site, "GET", path, "", NULL, &status);
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items"), *trial;
    assert_int_equal(status, 200);
    for (size_t i = 0; i < CLIENTS; i++)
        for (size_t k = 0; k < stage->clients[i].n_acks; k++, acks++) {
            const struct ack *ack = &stage->clients[i].acks[k];
            assert_true(ack->number < 1000 && !seen[ack->number]);
            seen[ack->number] = true;
            assert_kept(stage, items, &stage->clients[i], ack);
        }
    cJSON_ArrayForEach(trial, items) {
        assert_false(text_is(trial, "state", "running") || text_is(trial, "state", "waiting"));
        complete += text_is(trial, "state", "complete");
        spent += !text_is(trial, "state", "cancelled");
        lost += text_is(trial, "state", "cancelled");
    }
    assert_int_equal(acks, complete);
    assert_true(lost ? spent <= TRIALS : spent == TRIALS);
    assert_int_equal(stage->events, spent);
    cJSON_Delete(json);
}

static void clients_that_come_at_once_lose_nothing_and_count_nothing_twice(void **state) {
    static struct stage stage;
    struct error err;
    (void)state;
    stage = (struct stage){.site.service_options.open = true, .site.options.workers = 4};
    site_start(&stage.site, "crowd");
    assert_ok(hub_start(stage.site.service->hub, &err));
    open_session(&stage);
    launch(&stage, &stage.follower, 100, be_follower);
    for (unsigned i = 0; i < CLIENTS; i++) {
        stage.clients[i].abandons = i < ABANDONERS;
        launch(&stage, &stage.clients[i], i, be_client);
    }
    launch(&stage, &stage.steerer, 101, be_steerer);
    launch(&stage, &stage.looker, 102, be_looker);
    launch(&stage, &stage.opener, 103, be_opener);
    for (size_t i = 0; i < CLIENTS; i++)
        join(&stage.clients[i]);
    join(&stage.follower);
    join(&stage.opener);
    atomic_store(&stage.end, true);
    join(&stage.steerer);
    join(&stage.looker);
    assert_books_balance(&stage);
    site_stop(&stage.site);
}

static void sharing_with_what_is_no_list_is_refused(void **state) {
    static struct site site;
    static const char *const wrong[] = {"1e16", "null", "{}", "[1]", "[\"a b\"]", "\"some\""};
    char body[200];
    (void)state;
    site = (struct site){.service_options.open = true};
    site_start(&site, "sharing");
    assert_int_equal(site_post(&site, "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(site_post(&site, "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"shared\":%s}", wrong[i]);
        assert_problem(site_post(&site, "/api/v1/sessions", body), 422, "invalid");
    }
    site_stop(&site);
}

/* "Not modified" is an answer to who only looks; a change under that condition is refused, and does not happen. */
static void a_change_is_not_answered_as_unmodified(void **state) {
    static struct stage stage;
    char path[200];
    (void)state;
    stage = (struct stage){.site.service_options.open = true};
    site_start(&stage.site, "modified");
    open_session(&stage);
    snprintf(path, sizeof path, "/api/v1/sessions/%s", stage.session);
    const struct reply *reply =
        site_ask(&stage.site, "PATCH", path, "If-None-Match: *\r\n", "{\"budget\":{\"trials\":9}}");
    assert_problem(reply, 400, "bad-request");
    assert_null(strstr(site_get(&stage.site, path)->body, "\"trials\":9,"));
    assert_int_equal(site_ask(&stage.site, "GET", path, "If-None-Match: *\r\n", NULL)->status, 304);
    site_stop(&stage.site);
}

/* ---- sessions of the service's own ---- */

/* A launcher that fails at once, so that a session of the service's own goes through its trials as fast as it can; with
 * a file of its name and ".slow" it takes its time. */
static int install_launcher(void **state) {
    char path[600], search[5000];
    FILE *file;
    (void)state;
    snprintf(path, sizeof path, "%s/bin", test_dir());
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(search, sizeof search, "%s:%s", path, getenv("PATH"));
    snprintf(path, sizeof path, "%s/bin/mpirun", test_dir());
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\n[ -e \"$0.slow\" ] && sleep 3\necho no network >&2\nexit 1\n", file);
    fclose(file);
    chmod(path, 0755);
    setenv("PATH", search, 1);
    setenv("SYNCOPATE_WORKER", path, 1);
    return 0;
}

/* Sessions of the service's own may run on the cluster of the site. */
static void allow_own(const struct site *site) {
    struct error err;
    struct store *store;
    struct id id;
    assert_ok(access_read(site->service->access, &store, &err));
    assert_ok(store_find(store, STORE_CLUSTER, "four", &id, &err));
    assert_ok(hub_register(site->service->hub, id.hex, "local", NULL, &err));
    assert_ok(hub_start(site->service->hub, &err));
}

static void state_of(const struct site *site, const char *id, char out[32]) {
    char path[400];
    int status;
    snprintf(path, sizeof path, "/api/v1/sessions/%s", id);
    cJSON *json = ask_json(site, "GET", path, "", NULL, &status);
    const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "state"));
    snprintf(out, 32, "%s", state ? state : "");
    cJSON_Delete(json);
}

/* Which may come when the session has ended. */
static void steer(const struct site *site, const char id[64], const char *verb) {
    char path[400];
    snprintf(path, sizeof path, "/api/v1/sessions/%.64s:%s", id, verb);
    struct answer a = ask(site, "POST", path, "", NULL);
    assert_true(a.status == 200 || a.status == 409);
    free(a.text);
}

static void own_sessions_are_steered_while_they_run(void **state) {
    static struct site site;
    static char ids[18][64];
    static const char body[] = "{\"mode\":\"own\",\"model\":\"toy\",\"cluster\":\"four\",\"budget\":{\"trials\":2}}";
    size_t n = sizeof ids / sizeof *ids;
    char word[32], path[200];
    (void)state;
    site = (struct site){.service_options.open = true, .options.workers = 4};
    site_start(&site, "own");
    assert_int_equal(site_post(&site, "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(site_post(&site, "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    assert_problem(site_post(&site, "/api/v1/sessions", body), 409, "no-launcher");
    allow_own(&site);
    for (size_t i = 0; i < n; i++) {
        int status;
        cJSON *json = ask_json(&site, "POST", "/api/v1/sessions", "", body, &status);
        assert_int_equal(status, 201);
        snprintf(ids[i], sizeof ids[i], "%s", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id")));
        cJSON_Delete(json);
        steer(&site, ids[i], i % 3 ? "pause" : "cancel");
        steer(&site, ids[i], "resume");
    }
    snprintf(path, sizeof path, "/api/v1/sessions/%.64s/trials:suggest", ids[n - 1]);
    assert_problem(site_post(&site, path, "{\"client\":\"c1\"}"), 409, "conflict"); /* its trials are not for clients */
    const double until = clock_now_us() + 60e6;
    for (size_t i = 0; i + 1 < n; i++) /* the last may still run when the service ends */
        do {
            state_of(&site, ids[i], word);
            usleep(5000);
        } while (!strcmp(word, "running") && clock_now_us() < until);
    for (size_t i = 0; i + 1 < n; i++) {
        state_of(&site, ids[i], word);
        if (i % 3)
            assert_string_equal(word, "failed"); /* no trial completed */
        else
            assert_true(!strcmp(word, "cancelled") || !strcmp(word, "failed"));
    }
    site_stop(&site);
}

static struct reply *ask_as(const struct site *site, const char *token, const char *method, const char *path,
                            const char *body) {
    char header[200];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    return site_ask(site, method, path, header, body);
}

static void a_session_of_its_own_is_charged_by_its_budget(void **state) {
    static struct site site;
    static const char path[] = "/api/v1/sessions";
    const struct token wanted = {.name = "ten", .principal = {.team = "t", .role = ROLE_RUN, .trials_per_day = 10}};
    char ten[TOKEN_LENGTH + 1], slow[600], id[64], one[128];
    (void)state;
    snprintf(slow, sizeof slow, "%s/bin/mpirun.slow", test_dir());
    fclose(fopen(slow, "w"));
    site = (struct site){0};
    site_place(&site, "charged");
    site_token(&site, &wanted, ten);
    site_start(&site, "charged");
    assert_int_equal(ask_as(&site, ten, "POST", "/api/v1/models", SITE_MODEL)->status, 201);
    assert_int_equal(ask_as(&site, ten, "POST", "/api/v1/clusters", SITE_CLUSTER)->status, 201);
    allow_own(&site);
#define OWN(budget) "{\"mode\":\"own\",\"model\":\"toy\",\"cluster\":\"four\",\"budget\":" budget "}"
    assert_problem(ask_as(&site, ten, "POST", path, OWN("{\"time_us\":1e9}")), 422, "invalid"); /* without a bound */
    assert_problem(ask_as(&site, ten, "POST", path, OWN("{\"trials\":11}")), 413, "too-large");
    struct reply *r = ask_as(&site, ten, "POST", path, OWN("{\"trials\":6}"));
    assert_int_equal(r->status, 201);
    const char *at = strstr(r->body, "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
    assert_problem(ask_as(&site, ten, "POST", path, OWN("{\"trials\":5}")), 429, "quota-exceeded");
    snprintf(one, sizeof one, "%s/%s", path, id);
    assert_problem(ask_as(&site, ten, "PATCH", one, "{\"budget\":{\"trials\":11}}"), 429, "quota-exceeded");
    assert_int_equal(ask_as(&site, ten, "PATCH", one, "{\"budget\":{\"trials\":9}}")->status, 200);
    assert_int_equal(ask_as(&site, ten, "PATCH", one, "{\"budget\":{\"trials\":8}}")->status, 200);
    char id_of_token[TOKEN_ID_LENGTH + 1];
    snprintf(id_of_token, sizeof id_of_token, "%.12s", ten + 4);
    assert_int_equal(quota_used(site.service->quota, id_of_token), 9);
    assert_int_equal(ask_as(&site, ten, "POST", path, "{\"model\":\"toy\",\"cluster\":\"four\"}")->status,
                     201); /* ask */
    assert_int_equal(quota_used(site.service->quota, id_of_token), 9);
    site_stop(&site);
    unlink(slow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_come_at_once_lose_nothing_and_count_nothing_twice),
        cmocka_unit_test(sharing_with_what_is_no_list_is_refused),
        cmocka_unit_test(a_change_is_not_answered_as_unmodified),
        cmocka_unit_test(own_sessions_are_steered_while_they_run),
        cmocka_unit_test(a_session_of_its_own_is_charged_by_its_budget),
    };
    return cmocka_run_group_tests(tests, install_launcher, NULL);
}
