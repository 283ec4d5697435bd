/* Every route × every role × whose a thing is: who may do what to whose things. What is expected follows from the
 * route's role and from one rule of sharing, so a new route without an example here fails, and so does one that forgets
 * either. docs/isolation.md is the table; SYNCOPATE_WRITE_TABLES=1 writes it, without that the test holds it against
 * this. */
#include <sqlite3.h>

#include "service/http/routes.h"
#include "tests/unit/service/http_site.h"

enum whose { OWN, SHARED, HIDDEN, ABSENT, N_WHOSE };

/* What a request is about. */
enum thing { NOTHING, MODEL, CLUSTER, STRATEGY, RECORD, SESSION, TRIAL, RANKER, OPERATION, N_THINGS };
static const char *const thing_words[N_THINGS] = {"-",       "model", "cluster", "strategy", "record",
                                                  "session", "trial", "ranker",  "operation"};

/* In path and body @ is the thing's id, $ and ^ its model's and cluster's, # a number that was not used before. */
struct example {
    const char *method, *pattern;
    enum thing about;
    const char *query, *body;
    int as_absent;      /* what a thing that is not there is answered, where that is not 404 */
    int as_done;        /* what who may is answered, where the thing is in no state for it */
    bool by_team;       /* what the token's team may see counts, of an administrator's too */
    bool is_token_form; /* anybody may ask; without a token the answer is 401 with a form for one */
};

#define DONE "{\"client\":\"c\",\"attempt\":1,\"iterations_us\":[9000,9001]}"
#define UPLOAD                                                                                                         \
    "--b\r\nContent-Disposition: form-data; name=\"trace\"; filename=\"r.json\"\r\n\r\n"                               \
    "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":9}]\r\n--b--\r\n"
#define DOMAIN "\"model\":\"$\",\"cluster\":\"^\""

/* No example shares anything: an administrator's would show others what is hidden. */
static const struct example examples[] = {
    {"GET", "/healthz", NOTHING, .body = NULL},
    {"GET", "/readyz", NOTHING, .body = NULL},
    {"GET", "/metrics", NOTHING, .body = NULL},
    {"GET", "/openapi.json", NOTHING, .body = NULL},
    {"GET", "/llms.txt", NOTHING, .body = NULL},
    {"GET", "/api/v1/models", NOTHING, .body = NULL},
    {"POST", "/api/v1/models", NOTHING, .body = SITE_MODEL},
    {"GET", "/api/v1/models/{id}", MODEL, .body = NULL},
    {"GET", "/api/v1/clusters", NOTHING, .body = NULL},
    {"POST", "/api/v1/clusters", NOTHING, .body = SITE_CLUSTER},
    {"GET", "/api/v1/clusters/{id}", CLUSTER, .body = NULL},
    {"GET", "/api/v1/strategies", NOTHING, .body = NULL},
    {"POST", "/api/v1/strategies", MODEL, .body = "{\"model\":\"@\",\"cluster\":\"^\",\"baseline\":\"wfbp\"}"},
    {"POST", "/api/v1/strategies", CLUSTER, .body = "{\"model\":\"$\",\"cluster\":\"@\",\"baseline\":\"wfbp\"}"},
    {"GET", "/api/v1/strategies/{id}", STRATEGY, .body = NULL},
    {"POST", "/api/v1/predictions", MODEL, .body = "{\"model\":\"@\",\"cluster\":\"^\",\"baselines\":[\"wfbp\"]}"},
    {"POST", "/api/v1/predictions", CLUSTER, .body = "{\"model\":\"$\",\"cluster\":\"@\",\"baselines\":[\"wfbp\"]}"},
    {"POST", "/api/v1/advice", MODEL, .body = "{\"model\":\"@\",\"cluster\":\"^\"}"},
    {"POST", "/api/v1/advice", CLUSTER, .body = "{\"model\":\"$\",\"cluster\":\"@\"}"},
    {"POST", "/api/v1/explanations", NOTHING, .body = UPLOAD},
    {"GET", "/api/v1/sessions", NOTHING, .body = NULL},
    {"POST", "/api/v1/sessions", MODEL,
     .body = "{\"model\":\"@\",\"cluster\":\"^\",\"ranker\":\"none\",\"budget\":{\"trials\":2}}"},
    {"POST", "/api/v1/sessions", CLUSTER,
     .body = "{\"model\":\"$\",\"cluster\":\"@\",\"ranker\":\"none\",\"budget\":{\"trials\":2}}"},
    {"POST", "/api/v1/sessions", RANKER, .body = "{" DOMAIN ",\"ranker\":\"@\",\"budget\":{\"trials\":2}}",
     .by_team = true},
    {"GET", "/api/v1/sessions/{session}", SESSION, .body = NULL},
    {"PATCH", "/api/v1/sessions/{session}", SESSION, .body = "{\"budget\":{\"trials\":9}}"},
    {"POST", "/api/v1/sessions/{session}:pause", SESSION, .body = NULL},
    {"POST", "/api/v1/sessions/{session}:resume", SESSION, .body = NULL},
    {"POST", "/api/v1/sessions/{session}:stop", SESSION, .body = NULL},
    {"POST", "/api/v1/sessions/{session}:cancel", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/best", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/importance", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/outcome", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/export", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/events", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/trials", SESSION, .body = NULL},
    {"GET", "/api/v1/sessions/{session}/trials/{number}", TRIAL, .body = NULL},
    {"POST", "/api/v1/sessions/{session}/trials", SESSION,
     .body = "{\"trials\":[{\"strategy\":\"&\",\"proposer\":\"wfbp\",\"runner\":\"mpirun\",\"iterations_us\":[9,9]}]}"},
    {"POST", "/api/v1/sessions/{session}/trials:suggest", SESSION, .body = "{\"client\":\"c\"}"},
    {"POST", "/api/v1/sessions/{session}/bench:complete", SESSION,
     .body = "{\"client\":\"c\",\"attempt\":1,\"cluster\":" SITE_CLUSTER "}", .as_done = 422},
    {"POST", "/api/v1/sessions/{session}/bench:fail", SESSION,
     .body = "{\"client\":\"c\",\"attempt\":1,\"reason\":\"it broke\"}", .as_done = 409},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:heartbeat", TRIAL, .body = "{\"client\":\"c\",\"attempt\":1}"},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:report", TRIAL, .body = DONE},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:complete", TRIAL, .body = DONE},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:fail", TRIAL,
     .body = "{\"client\":\"c\",\"attempt\":1,\"reason\":\"it broke\"}"},
    {"GET", "/api/v1/records", NOTHING, .body = NULL},
    {"GET", "/api/v1/records/{uid}", RECORD, .body = NULL},
    {"PATCH", "/api/v1/records/{uid}", RECORD, .body = "{\"shared\":\"team\"}"},
    {"POST", "/api/v1/records:batchCreate", STRATEGY,
     .body = "{\"shared\":\"team\",\"records\":[{\"uid\":\"put-#\"," DOMAIN
             ",\"strategy\":\"@\",\"proposer\":\"wfbp\",\"runner\":\"mpirun\","
             "\"iterations_us\":[9,9]}]}"},
    {"POST", "/api/v1/records:import", NOTHING, .body = "import"},
    {"GET", "/api/v1/rankers", NOTHING, .body = NULL},
    {"POST", "/api/v1/rankers", NOTHING, .body = "{\"kind\":\"linear\",\"name\":\"another-#\"}"},
    {"GET", "/api/v1/rankers/{id}", RANKER, .body = NULL},
    {"GET", "/api/v1/operations", NOTHING, .body = NULL},
    {"GET", "/api/v1/operations/{operation}", OPERATION, .body = NULL},
    {"GET", "/", NOTHING, .body = NULL},
    {"GET", "/live", NOTHING, .body = NULL},
    {"POST", "/sessions", MODEL, .body = "model=@&cluster=^&mode=ask&trials=2", .as_absent = 422},
    {"GET", "/sessions/{session}", SESSION, .body = NULL},
    {"GET", "/sessions/{session}/whole", SESSION, .body = NULL},
    {"GET", "/sessions/{session}/live", SESSION, .body = NULL},
    {"GET", "/sessions/{session}/export", SESSION, .body = NULL},
    {"POST", "/sessions/{session}/steer", SESSION, .body = "verb=pause"},
    {"GET", "/strategies/{id}", STRATEGY, .query = "?model=$&cluster=^"},
    {"GET", "/compare", STRATEGY, .query = "?a=@&b=@&model=$&cluster=^"},
    {"GET", "/compare/sessions", SESSION, .query = "?a=@&b=@"},
    {"GET", "/what-if", MODEL, .query = "?model=@&cluster=^"},
    {"GET", "/what-if", CLUSTER, .query = "?model=$&cluster=@"},
    {"GET", "/advice", MODEL, .query = "?model=@&cluster=^"},
    {"GET", "/advice", CLUSTER, .query = "?model=$&cluster=@"},
    {"GET", "/advice/{way}", MODEL, .query = "?model=@&cluster=^"},
    {"GET", "/advice/{way}", CLUSTER, .query = "?model=$&cluster=@"},
    {"GET", "/dataset", NOTHING, .body = NULL},
    {"GET", "/traces", NOTHING, .body = NULL},
    {"POST", "/traces", NOTHING, .body = UPLOAD},
    {"GET", "/models", NOTHING, .body = NULL},
    {"GET", "/clusters", NOTHING, .body = NULL},
    {"GET", "/sign-in", NOTHING, .body = NULL, .is_token_form = true},
    {"POST", "/sign-in", NOTHING, .body = "token=~"},
    {"POST", "/sign-out", NOTHING, .body = NULL},
    {"GET", "/problems/{code}", NOTHING, .body = NULL},
    {"GET", "/assets/page.css", NOTHING, .body = NULL},
    {"GET", "/assets/page.js", NOTHING, .body = NULL},
    {"GET", "/favicon.ico", NOTHING, .body = NULL},
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples, N_ROLES = ROLE_ADMIN + 1 };

static struct site site;
static char blue[N_ROLES][TOKEN_LENGTH + 1], red[TOKEN_LENGTH + 1]; /* of ROLE_ADMIN: another team's */
static char ids[N_THINGS][N_WHOSE][96];
static unsigned counter;

/* ---- things ---- */

static struct reply *ask_as(const char *token, const char *method, const char *path, const char *body) {
    char headers[200];
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", token);
    return site_ask(&site, method, path, headers, body);
}

/* What `token` is answered with `status`; the member `name`, copied. */
static void take(const char *token, const char *path, const char *body, int status, const char *name, char out[96]) {
    cJSON *json = reply_json(ask_as(token, "POST", path, body), status);
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
    assert_true(cJSON_IsString(member));
    snprintf(out, 96, "%s", member->valuestring);
    cJSON_Delete(json);
}

static const char *owner_of(enum whose whose) {
    return whose == OWN ? blue[ROLE_RUN] : red;
}

static const char *sharing_of(enum whose whose) {
    return whose == SHARED ? "all" : "team";
}

static void open_session(enum whose whose, char out[96]) {
    char body[400];
    snprintf(body, sizeof body,
             "{\"model\":\"%s\",\"cluster\":\"%s\",\"ranker\":\"none\",\"budget\":{\"trials\":20},\"shared\":\"%s\"}",
             ids[MODEL][whose], ids[CLUSTER][whose], sharing_of(whose));
    take(owner_of(whose), "/api/v1/sessions", body, 201, "id", out);
}

/* Its next trial is client c's; the strategy's id, copied. */
static void take_trial(enum whose whose, const char *session, char strategy[96]) {
    char path[200];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    cJSON *json = reply_json(ask_as(owner_of(whose), "POST", path, "{\"client\":\"c\"}"), 200);
    const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trials")->child;
    assert_non_null(trial);
    snprintf(strategy, 96, "%s", cJSON_GetObjectItemCaseSensitive(trial, "strategy_id")->valuestring);
    cJSON_Delete(json);
}

/* A model and a cluster, which whoever puts them shows to all. */
static void put_domain(enum whose whose) {
    char body[600];
    snprintf(body, sizeof body,
             "{\"schema\":\"syncopate.model/1\",\"name\":\"model-%d\",\"batch_per_device\":%d,\"variables\":["
             "{\"name\":\"v%d\",\"shape\":[64,64],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l\",\"forward_us\":2000,"
             "\"backward_us\":4000,\"variables\":[\"v%d\"]}]}",
             whose, 8 + whose, whose, whose);
    take(owner_of(whose), "/api/v1/models", body, 201, "id", ids[MODEL][whose]);
    snprintf(body, sizeof body,
             "{\"schema\":\"syncopate.cluster/1\",\"name\":\"cluster-%d\",\"nodes\":[{\"name\":\"n\",\"count\":4,"
             "\"nic_gbit_per_s\":%d,\"nic_latency_us\":50}]}",
             whose, 1 + whose);
    take(owner_of(whose), "/api/v1/clusters", body, 201, "id", ids[CLUSTER][whose]);
}

/* Its first trial is complete, and of a strategy that nothing else is about: it names the model's variables. */
static void put_session(enum whose whose) {
    char path[200];
    open_session(whose, ids[SESSION][whose]);
    take_trial(whose, ids[SESSION][whose], ids[STRATEGY][whose]);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/1:complete", ids[SESSION][whose]);
    assert_int_equal(ask_as(owner_of(whose), "POST", path, DONE)->status, 200);
}

static void put_record(enum whose whose, char out[96]) {
    char body[700];
    snprintf(out, 96, "uid-%d-%u", whose, counter++);
    snprintf(body, sizeof body,
             "{\"shared\":\"%s\",\"records\":[{\"uid\":\"%s\",\"model\":\"%s\",\"cluster\":\"%s\",\"strategy\":\"%s\","
             "\"proposer\":\"wfbp\",\"runner\":\"mpirun\",\"iterations_us\":[9,9]}]}",
             sharing_of(whose), out, ids[MODEL][whose], ids[CLUSTER][whose], ids[STRATEGY][whose]);
    assert_int_equal(ask_as(owner_of(whose), "POST", "/api/v1/records:batchCreate", body)->status, 201);
}

/* Trials of strategies that differ, for a ranker to learn from. */
static void put_trials_to_learn(enum whose whose) {
    static const char *const baselines[] = {"wfbp", "horovod", "pytorch-ddp", "byteps", "mg-wfbp", "ps"};
    for (size_t i = 0; i < sizeof baselines / sizeof *baselines; i++) {
        char body[600], strategy[96];
        snprintf(body, sizeof body, "{\"model\":\"toy\",\"cluster\":\"four\",\"baseline\":\"%s\"}", baselines[i]);
        struct reply *reply = ask_as(owner_of(whose), "POST", "/api/v1/strategies", body);
        if (reply->status >= 400)
            continue; /* does not fit such a cluster */
        cJSON *json = reply_json(reply, reply->status);
        snprintf(strategy, sizeof strategy, "%s", cJSON_GetObjectItemCaseSensitive(json, "id")->valuestring);
        cJSON_Delete(json);
        snprintf(body, sizeof body,
                 "{\"shared\":\"team\",\"records\":[{\"model\":\"toy\",\"cluster\":\"four\",\"strategy\":\"%s\","
                 "\"proposer\":\"x\","
                 "\"runner\":\"mpirun\",\"iterations_us\":[%zu,%zu]}]}",
                 strategy, 9000 + 500 * i, 9001 + 500 * i);
        assert_int_equal(ask_as(owner_of(whose), "POST", "/api/v1/records:batchCreate", body)->status, 201);
    }
}

static void put_ranker(enum whose whose) {
    char body[400], path[200];
    assert_true(ask_as(owner_of(whose), "POST", "/api/v1/models", SITE_MODEL)->status < 300);
    assert_true(ask_as(owner_of(whose), "POST", "/api/v1/clusters", SITE_CLUSTER)->status < 300);
    put_trials_to_learn(whose);
    snprintf(body, sizeof body,
             "{\"kind\":\"linear\",\"name\":\"ranker-%d\",\"shared\":\"%s\",\"domains\":[{\"model\":\"toy\","
             "\"cluster\":\"four\",\"runner\":"
             "\"mpirun\"}]}",
             whose, sharing_of(whose));
    take(owner_of(whose), "/api/v1/rankers", body, 202, "id", ids[OPERATION][whose]);
    snprintf(path, sizeof path, "/api/v1/operations/%s", ids[OPERATION][whose]);
    for (int i = 0; i < 1000 && !*ids[RANKER][whose]; i++) {
        cJSON *json = reply_json(ask_as(owner_of(whose), "GET", path, NULL), 200);
        const cJSON *result = cJSON_GetObjectItemCaseSensitive(json, "result");
        if (cJSON_GetObjectItemCaseSensitive(json, "error"))
            fail_msg("%s", cJSON_Print(json));
        if (result)
            snprintf(ids[RANKER][whose], 96, "%s", cJSON_GetObjectItemCaseSensitive(result, "ranker")->valuestring);
        cJSON_Delete(json);
        usleep(20000);
    }
    assert_true(*ids[RANKER][whose]);
}

static void make_token(enum role role, const char *team, const char *name, char *secret) {
    struct token wanted = {.principal = {.role = role}};
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.principal.team, sizeof wanted.principal.team, "%s", team);
    site_token(&site, &wanted, secret);
}

static int set_up(void **state) {
    (void)state;
    site_place(&site, "isolation");
    for (enum role r = ROLE_READ; r <= ROLE_ADMIN; r++)
        make_token(r, r == ROLE_ADMIN ? "core" : "blue", role_word(r), blue[r]);
    make_token(ROLE_RUN, "red", "red", red);
    site_start(&site, "isolation");
    for (enum whose w = OWN; w <= HIDDEN; w++) {
        put_domain(w);
        put_session(w);
        put_record(w, ids[RECORD][w]);
        put_ranker(w);
    }
    for (enum thing t = MODEL; t < N_THINGS; t++)
        snprintf(ids[t][ABSENT], 96, t >= RECORD ? "absent" : "%064d", 7);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    site_stop(&site);
    return 0;
}

/* ---- requests ---- */

static bool changes(const struct example *e) {
    return strcmp(e->method, "GET") && (e->about == SESSION || e->about == TRIAL || e->about == RECORD);
}

/* The id that the request shall name: of a new thing where the request changes it. */
static void id_for(const struct example *e, enum whose whose, char out[96]) {
    char unused[96];
    const enum thing kept = e->about == TRIAL ? SESSION : e->about;
    snprintf(out, 96, "%s", ids[kept][whose]);
    if (whose == ABSENT || !changes(e))
        return;
    if (e->about == RECORD) {
        put_record(whose, out);
        return;
    }
    open_session(whose, out);
    if (e->about == TRIAL)
        take_trial(whose, out, unused);
    if (strstr(e->pattern, ":resume")) {
        char path[200];
        snprintf(path, sizeof path, "/api/v1/sessions/%s:pause", out);
        assert_int_equal(ask_as(owner_of(whose), "POST", path, NULL)->status, 200);
    }
}

/* @, $, ^, &, # and ~ of the text, and the {parameters} of a pattern. */
static void write_text(const char *text, bool pattern, const char *id, enum whose whose, char *out, size_t n) {
    const enum whose beside = whose == ABSENT ? OWN : whose;
    char number[16];
    size_t used = 0;
    out[0] = '\0';
    for (; *text && used + 1 < n; text++) {
        const char *put = NULL;
        snprintf(number, sizeof number, "%u", counter);
        if (pattern && *text == '{') {
            put = !strncmp(text, "{number}", 8) ? "1"
                  : !strncmp(text, "{code}", 6) ? "invalid"
                  : !strncmp(text, "{way}", 5)  ? "zero-3"
                                                : id;
            text = strchr(text, '}');
        } else {
            put = *text == '@'                      ? id
                  : *text == '$'                    ? ids[MODEL][beside]
                  : *text == '^'                    ? ids[CLUSTER][beside]
                  : *text == '&' && text[-1] == '"' ? ids[STRATEGY][beside]
                  : *text == '#'                    ? number
                  : *text == '~'                    ? blue[ROLE_READ]
                                                    : NULL;
        }
        used += (size_t)(put ? snprintf(out + used, n - used, "%s", put) : snprintf(out + used, n - used, "%c", *text));
    }
    counter++;
}

/* A trial of team blue's as an administrator takes it from one dataset to another. */
static void write_import(char *out, size_t n) {
    char path[200];
    snprintf(path, sizeof path, "/api/v1/records/%s", ids[RECORD][OWN]);
    cJSON *root = cJSON_CreateObject(), *lines = cJSON_AddArrayToObject(root, "lines");
    cJSON_AddItemToArray(lines, cJSON_CreateString(ask_as(blue[ROLE_ADMIN], "GET", path, NULL)->body));
    assert_true(cJSON_PrintPreallocated(root, out, (int)n, false));
    cJSON_Delete(root);
}

/* A stream has no end; its head is enough. */
static struct reply *ask_head(const char *path, const char *headers) {
    static struct reply reply;
    char head[1000];
    const int fd = site_connect(&site);
    snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path, headers);
    site_say(fd, head);
    site_hear(fd, "\r\n\r\n", 20, reply.text, sizeof reply.text, NULL);
    close(fd);
    site_parse(&reply);
    return &reply;
}

static struct reply *send_example(const struct example *e, enum role role, enum whose whose) {
    char id[96], path[1000], query[1000], body[8000], headers[400] = "";
    id_for(e, whose, id);
    write_text(e->pattern, true, id, whose, path, 400);
    write_text(e->query ? e->query : "", false, id, whose, query, sizeof query - strlen(path));
    strcat(path, query);
    if (e->body && !strcmp(e->body, "import"))
        write_import(body, sizeof body);
    else
        write_text(e->body ? e->body : "", false, id, whose, body, sizeof body);
    if (role != ROLE_NONE)
        snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", blue[role]);
    const bool form = strcmp(e->method, "GET") && strncmp(e->pattern, "/api/", 5);
    if (form)
        snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "Origin: %s\r\n",
                 server_url(site.server));
    if (e->body && (form || !strcmp(e->body, UPLOAD)))
        snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "Content-Type: %s\r\n",
                 strcmp(e->body, UPLOAD) ? "application/x-www-form-urlencoded" : "multipart/form-data; boundary=b");
    return strstr(e->pattern, "/events") ? ask_head(path, headers)
                                         : site_ask(&site, e->method, path, headers, e->body ? body : NULL);
}

/* ---- the rule ---- */

enum answer { DOES, NOBODY = 401, FORBIDDEN = 403, NOT_THERE = 404 };

static const struct route *route_of(const struct example *e) {
    size_t n;
    const struct route *routes = routes_list(&n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(routes[i].method, e->method) && !strcmp(routes[i].pattern, e->pattern))
            return &routes[i];
    return NULL;
}

/* First the role; then what one may not see is not there; then what one sees and is another team's stays as it is. */
static enum answer expected(const struct example *e, enum role role, enum whose whose) {
    const enum role least = route_of(e)->role;
    const enum answer not_there = e->as_absent ? (enum answer)e->as_absent : NOT_THERE;
    if (role == ROLE_NONE && (least != ROLE_NONE || e->is_token_form))
        return NOBODY;
    if (role < least)
        return FORBIDDEN;
    if (e->about == NOTHING)
        return DOES;
    if (e->by_team && role == ROLE_ADMIN) /* of team core, whose none of these is */
        return whose == SHARED ? DOES : not_there;
    if (whose == ABSENT || (whose == HIDDEN && role != ROLE_ADMIN))
        return not_there;
    return whose == SHARED && changes(e) && role != ROLE_ADMIN ? FORBIDDEN : DOES;
}

static enum answer answer_of(const struct example *e, const struct reply *reply) {
    const bool done = e->as_done ? (int)reply->status == e->as_done : reply->status >= 200 && reply->status < 400;
    return done ? DOES : (enum answer)reply->status;
}

/* Models and clusters are put for all to see; nobody shares an operation. */
static bool exists(const struct example *e, enum whose whose) {
    const bool seen_by_all = e->about == MODEL || e->about == CLUSTER, of_one = e->about == OPERATION;
    return whose == OWN || (e->about != NOTHING && !(whose == SHARED && of_one) && !(whose == HIDDEN && seen_by_all));
}

/* ---- the tests ---- */

static void every_route_has_an_example(void **state) {
    (void)state;
    size_t n;
    const struct route *routes = routes_list(&n);
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < N_EXAMPLES; k++)
            found = found || route_of(&examples[k]) == &routes[i];
        if (!found)
            fail_msg("%s %s has no example", routes[i].method, routes[i].pattern);
    }
    for (size_t k = 0; k < N_EXAMPLES; k++)
        if (!route_of(&examples[k]))
            fail_msg("%s %s is no route", examples[k].method, examples[k].pattern);
}

static unsigned check_answer(const struct example *e, enum role role, enum whose whose) {
    static const char *const whose_words[N_WHOSE] = {"own", "shared", "hidden", "absent"};
    if (!exists(e, whose))
        return 0;
    const struct reply *reply = send_example(e, role, whose);
    const enum answer said = answer_of(e, reply), wanted = expected(e, role, whose);
    if (said == wanted)
        return 0;
    print_error("%s %s, %s %s, role %s: answered %d, not %d: %.160s\n", e->method, e->pattern, whose_words[whose],
                thing_words[e->about], role_word(role), reply->status, wanted, reply->body);
    return 1;
}

static void every_answer_follows_from_the_role_and_whose_it_is(void **state) {
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < N_EXAMPLES; i++)
        for (enum role r = ROLE_NONE; r <= ROLE_ADMIN; r++)
            for (enum whose w = OWN; w < N_WHOSE; w++)
                wrong += check_answer(&examples[i], r, w);
    assert_int_equal(wrong, 0);
}

/* Lists, pages, metrics: whatever is asked without naming it. */
static void what_is_hidden_is_named_in_no_answer_to_others(void **state) {
    (void)state;
    unsigned told = 0;
    for (size_t i = 0; i < N_EXAMPLES; i++)
        for (enum role r = ROLE_NONE; r < ROLE_ADMIN; r++) {
            const struct reply *reply = send_example(&examples[i], r, OWN);
            for (enum thing t = STRATEGY; t < N_THINGS; t++)
                if (*ids[t][HIDDEN] && strstr(reply->body, ids[t][HIDDEN])) {
                    print_error("%s %s tells role %s of another team's hidden %s\n", examples[i].method,
                                examples[i].pattern, role_word(r), thing_words[t]);
                    told++;
                }
        }
    assert_int_equal(told, 0);
}

/* Refused at once, or when it comes to it. */
static void another_teams_ranker_is_nothing_to_train_on_from(void **state) {
    (void)state;
    char body[200], path[128];
    snprintf(body, sizeof body, "{\"from\":\"%s\",\"name\":\"taken\"}", ids[RANKER][HIDDEN]);
    struct reply *reply = ask_as(blue[ROLE_RUN], "POST", "/api/v1/rankers", body);
    if (reply->status == 404)
        return;
    assert_int_equal(reply->status, 202);
    snprintf(path, sizeof path, "%.127s", reply_header(reply, "Location"));
    for (int i = 0; i < 1000 && strstr(ask_as(blue[ROLE_RUN], "GET", path, NULL)->body, "\"running\""); i++)
        usleep(20000);
    assert_contains(ask_as(blue[ROLE_RUN], "GET", path, NULL)->body, "not-found");
}

/* ---- names ---- */

#define GREENS_NAME "name-of-green"
#define GREENS_TIME "2020-02-20T20:20:20"

/* What else prints names, and what finds by name. */
static const struct example names[] = {
    {"GET", "/api/v1/records", NOTHING, .query = "?page_size=1000&format=csv"},
    {"GET", "/api/v1/records", NOTHING, .query = "?page_size=1000&format=jsonl"},
    {"GET", "/api/v1/records", NOTHING, .query = "?order=measured&page_size=1000"},
    {"GET", "/api/v1/strategies", NOTHING, .query = "?page_size=1000&order=-created"},
    {"GET", "/api/v1/sessions/{session}/export", SESSION, .query = "?format=csv"},
    {"GET", "/api/v1/sessions/{session}/export", SESSION, .query = "?format=jsonl"},
    {"POST", "/api/v1/predictions", STRATEGY, .body = "{" DOMAIN ",\"strategies\":[\"@\"]}"},
    {"POST", "/api/v1/predictions", STRATEGY, .body = "{" DOMAIN ",\"strategies\":[\"@\"],\"timeline\":true}"},
    {"POST", "/api/v1/strategies", STRATEGY, .body = "{" DOMAIN ",\"strategy\":\"@\"}"},
};
static const char *const finds[] = {
    "/api/v1/records?filter=strategy+%3D+" GREENS_NAME, "/api/v1/records?filter=strategy+~+%22name-of*%22",
    "/api/v1/strategies?name=" GREENS_NAME, "/dataset?filter=strategy+%3D+" GREENS_NAME};

/* Every strategy and every description is one that team green put first and keeps for itself. */
static void let_green_be_first(void) {
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(site.dataset, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db,
                     "BEGIN IMMEDIATE; UPDATE strategies SET name = '" GREENS_NAME "', created = '" GREENS_TIME
                     ".000Z';"
                     "UPDATE models SET created = '" GREENS_TIME ".000Z';"
                     "UPDATE clusters SET created = '" GREENS_TIME ".000Z';"
                     "INSERT INTO holdings SELECT 'strategy', row, 'green', '" GREENS_NAME "', '', created"
                     " FROM strategies; COMMIT",
                     NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

static unsigned tells(const struct example *e, enum role role, enum whose whose) {
    const struct reply *reply = send_example(e, role, whose);
    if (!strstr(reply->body, GREENS_NAME) && !strstr(reply->body, GREENS_TIME))
        return 0;
    print_error("%s %s%s tells role %s what team green calls a strategy, or when it put something: %s\n", e->method,
                e->pattern, e->query ? e->query : "", role_word(role), reply->body);
    return 1;
}

static void what_a_team_calls_something_is_in_no_answer_to_others(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* it changes the file under the service */
    unsigned told = 0;
    let_green_be_first();
    for (enum role r = ROLE_READ; r < ROLE_ADMIN; r++)
        for (enum whose w = OWN; w <= SHARED; w++) {
            for (size_t i = 0; i < N_EXAMPLES; i++)
                told += tells(&examples[i], r, w);
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                told += tells(&names[i], r, w);
        }
    assert_int_equal(told, 0);
}

/* Or who guesses a name learns that it is one. */
static void nothing_is_found_by_a_name_that_another_team_keeps_for_itself(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        const struct reply *reply = ask_as(blue[ROLE_READ], "GET", finds[i], NULL);
        assert_int_equal(reply->status, 200);
        for (enum whose w = OWN; w <= SHARED; w++)
            if (strstr(reply->body, ids[STRATEGY][w]) || strstr(reply->body, ids[RECORD][w]))
                fail_msg("%s finds what is called otherwise: %s", finds[i], reply->body);
    }
}

/* ---- the table ---- */

static void write_cell(FILE *to, const struct example *e, enum role role) {
    enum answer all[N_WHOSE];
    bool same = true;
    for (enum whose w = OWN; w < N_WHOSE; w++) {
        all[w] = expected(e, role, w);
        same = same && all[w] == all[OWN];
    }
    for (enum whose w = OWN; w < (same ? SHARED : N_WHOSE); w++) {
        fprintf(to, w == OWN ? "" : " ");
        fprintf(to, !exists(e, w) ? "-" : all[w] == DOES ? "yes" : "%d", (int)all[w]);
    }
}

static void write_row(FILE *to, const struct example *e) {
    fprintf(to, "| %s %s | %s |", e->method, e->pattern, thing_words[e->about]);
    for (enum role r = ROLE_NONE; r <= ROLE_ADMIN; r++) {
        fprintf(to, " ");
        write_cell(to, e, r);
        fprintf(to, " |");
    }
    fprintf(to, "\n");
}

static char *table_text(void) {
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    fprintf(
        to,
        "# Who may do what to whose things\n\n"
        "Every route of the service, pages too, and the answer to a token of each role.\n"
        "`tests/unit/service/test_http_isolation.c` writes the table and checks every cell against a running "
        "service.\n\n"
        "- `none` is a request without a token. `read`, `submit` and `run` are tokens of one team. `admin` is "
        "an administrator.\n"
        "- \"about\" is what the request names: in its path, or in its body.\n"
        "- A cell with four words has the answers for four things: the team's **own**, another team's that is "
        "**shared** with all,\n"
        "  another team's that is **hidden** from this team, and one that is **absent**. A cell with one word "
        "says the same of all.\n"
        "- `yes`: it is done. `401`: a token is needed. `403`: the token may not. `404`: nothing is there, or "
        "nothing that this\n"
        "  team may know of; the two look the same. `-`: there is no such thing of this kind, for example no hidden "
        "model.\n"
        "- `POST /sessions` is a form. When its model or cluster is not there, it is `422` and the page says "
        "so. The `401` of\n"
        "  `GET /sign-in` is the form for a token.\n"
        "- `yes` at the two routes of a bench is `409` or `422` here: no client has the bench of these sessions.\n"
        "- A session takes only rankers that its own team may see, also when an administrator opens it.\n\n"
        "| route | about | none | read | submit | run | admin |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < N_EXAMPLES; i++)
        write_row(to, &examples[i]);
    fclose(to);
    return text;
}

static void the_documentation_has_this_table(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* which has the same, and another working folder (site_place) */
    static char kept[1 << 16];
    char *text = table_text();
    FILE *file = fopen("docs/isolation.md", getenv("SYNCOPATE_WRITE_TABLES") ? "w+" : "r");
    if (!file)
        fail_msg("docs/isolation.md cannot be opened; start this in the project's root");
    if (getenv("SYNCOPATE_WRITE_TABLES")) {
        fputs(text, file);
        rewind(file);
    }
    kept[fread(kept, 1, sizeof kept - 1, file)] = '\0';
    fclose(file);
    if (strcmp(kept, text))
        fail_msg("docs/isolation.md is another table; SYNCOPATE_WRITE_TABLES=1 and this test write it");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_has_an_example),
        cmocka_unit_test(every_answer_follows_from_the_role_and_whose_it_is),
        cmocka_unit_test(what_is_hidden_is_named_in_no_answer_to_others),
        cmocka_unit_test(another_teams_ranker_is_nothing_to_train_on_from),
        cmocka_unit_test(what_a_team_calls_something_is_in_no_answer_to_others),
        cmocka_unit_test(nothing_is_found_by_a_name_that_another_team_keeps_for_itself),
        cmocka_unit_test(the_documentation_has_this_table),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
