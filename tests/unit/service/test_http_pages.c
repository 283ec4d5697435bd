/* The pages over HTTP: whole documents without anything inline, nothing of a user's text as markup, forms that only
 * this service's own pages can send, and cookies that only it can read. tests/http/browser.sh has them in a browser. */
#include <sys/stat.h>

#include "dataset/filter.h"
#include "tests/unit/report/strict_xml.h"
#include "tests/unit/service/http_site.h"

#define NAME "<script>alert(1)</script>&amp;\\\""
#define MODEL                                                                                                          \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"" NAME "\",\"batch_per_device\":8,\"variables\":["                   \
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,256],\"dtype\":\"f32\"}],"    \
    "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"                    \
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]}]}"
#define CLUSTER                                                                                                        \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"four\",\"nodes\":[{\"name\":\"n\",\"count\":4,"                    \
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}]}"

#define OTHER_CLUSTER                                                                                                  \
    "{\"schema\":\"syncopate.cluster/"                                                                                 \
    "1\",\"name\":\"two\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":1}]}"

static struct site site;
static char reader[TOKEN_LENGTH + 1], model[ID_LENGTH + 1], cluster[ID_LENGTH + 1], session[64];

/* ---- asking ---- */

/* The member `key` of a JSON reply, into out[n]. */
static void member_of(const struct reply *reply, const char *key, char *out, size_t n) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(reply->body, quoted);
    if (!at)
        fail_msg("no %s in %d %s", key, reply->status, reply->body);
    at += strlen(quoted);
    at += *at == '"';
    snprintf(out, n, "%.*s", (int)strcspn(at, "\",}"), at);
}

static struct reply *send_form(const char *path, const char *headers, const char *form) {
    char all[512];
    snprintf(all, sizeof all, "Content-Type: application/x-www-form-urlencoded\r\n%s", headers);
    return site_ask(&site, "POST", path, all, form);
}

/* As a page of this service sends it. */
static struct reply *send_own(const char *path, const char *form) {
    char origin[64];
    snprintf(origin, sizeof origin, "Origin: %s\r\n", server_url(site.server));
    return send_form(path, origin, form);
}

/* A whole page that a browser may only show. */
static const struct reply *get_page(const char *path, int status) {
    const struct reply *r = site_get(&site, path);
    if (r->status != status)
        print_error("%s: %s\n%s\n", path, r->head, r->body);
    assert_int_equal(r->status, status);
    assert_string_equal(reply_header(r, "Content-Type"), "text/html; charset=utf-8");
    const char *policy = reply_header(r, "Content-Security-Policy");
    assert_contains(policy, "default-src 'none'");
    assert_null(strstr(policy, "unsafe"));
    assert_true(expect_strict_xml(r->body) > 10);
    assert_null(strstr(r->body, "<style"));
    assert_null(strstr(r->body, " style="));
    assert_null(strstr(r->body, "<script>"));
    assert_int_equal(count_of(r->body, "<script"), 1); /* page.js */
    return r;
}

/* ---- a site with a model, a cluster, a session and a trial ---- */

static void put_domain(void) {
    member_of(site_post(&site, "/api/v1/models", MODEL), "id", model, sizeof model);
    member_of(site_post(&site, "/api/v1/clusters", CLUSTER), "id", cluster, sizeof cluster);
}

static void open_session(void) {
    char form[256];
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=7&mode=ask", model, cluster);
    const struct reply *r = send_own("/sessions", form);
    assert_int_equal(r->status, 303);
    assert_int_equal(sscanf(reply_header(r, "Location"), "/sessions/%60s", session), 1);
}

/* One suggested and completed; its strategy's id. */
static void run_trial(char strategy[ID_LENGTH + 1]) {
    char path[160], body[160], number[16];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    const struct reply *r = site_post(&site, path, "{\"client\":\"t\"}");
    member_of(r, "number", number, sizeof number);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/%s:complete", session, number);
    snprintf(body, sizeof body, "{\"client\":\"t\",\"attempt\":1,\"iterations_us\":[15000,15100,15050,14900]}");
    r = site_post(&site, path, body);
    assert_int_equal(r->status, 200);
    member_of(r, "strategy", strategy, ID_LENGTH + 1);
}

static int set_up(void **state) {
    (void)state;
    site = (struct site){.service_options = {.open = true}};
    site_start(&site, "pages");
    return 0;
}

static int set_up_closed(void **state) {
    (void)state;
    struct error err = {0};
    struct token token, wanted = {.name = "reader", .principal = {.team = "red", .role = ROLE_READ}};
    char path[600];
    site = (struct site){0};
    site_place(&site, "closed");
    site_tokens(&site, path);
    assert_ok(tokens_create(path, &wanted, &token, reader, &err));
    site_start(&site, "closed");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char path[600];
    site_stop(&site);
    dataset_remove(site.dataset);
    site_tokens(&site, path);
    unlink(path);
    return 0;
}

/* ---- pages ---- */

static void every_page_is_whole_and_repeats_no_markup_of_users(void **state) {
    (void)state;
    char path[512], a[ID_LENGTH + 1], b[ID_LENGTH + 1];
    const char *const plain[] = {"/", "/dataset", "/models", "/clusters"};
    for (size_t i = 0; i < 4; i++)
        get_page(plain[i], 200);
    put_domain();
    open_session();
    snprintf(path, sizeof path, "/sessions/%s", session);
    assert_contains(get_page(path, 200)->body, "trials:suggest");
    run_trial(a);
    run_trial(b);
    assert_string_not_equal(a, b);
    for (size_t i = 0; i < 3; i++)
        assert_contains(get_page(plain[i], 200)->body, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;");
    assert_contains(get_page(path, 200)->body, "2 of 7");
    assert_contains(get_page(path, 200)->body, "chart timeline"); /* so small that it is simulated at once */
    strcat(path, "/live");
    assert_null(strstr(get_page(path, 200)->body, "chart timeline"));
    assert_contains(get_page(path, 200)->body, "2 of 7");
    snprintf(path, sizeof path, "/sessions/%s/whole", session);
    assert_contains(get_page(path, 200)->body, "chart timeline");
    snprintf(path, sizeof path, "/strategies/%s", a); /* of the domain that a trial tells */
    assert_contains(get_page(path, 200)->body, "chart timeline");
    snprintf(path, sizeof path, "/compare?a=%s&b=%s&model=%s&cluster=%s", a, b, model, cluster);
    assert_contains(get_page(path, 200)->body, "What they do differently");
}

/* Who holds a lease works; a session without one waits. */
static void the_first_page_shows_what_runs_and_who_works(void **state) {
    (void)state;
    char path[160], strategy[ID_LENGTH + 1];
    put_domain();
    open_session();
    run_trial(strategy);
    const struct reply *r = get_page("/", 200);
    assert_contains(r->body, "1 session runs; 0 agents work.");
    assert_contains(r->body, "It waits for an agent: nobody works on it.");
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    site_post(&site, path, "{\"client\":\"first\"}");
    site_post(&site, path, "{\"client\":\"first\"}");
    site_post(&site, path, "{\"client\":\"second\"}");
    for (size_t i = 0; i < 2; i++) {
        r = get_page(i ? "/live" : "/", 200);
        assert_contains(r->body, "data-say=\"1 session runs; 2 agents work.\"");
        assert_contains(r->body, "2 agents work: first, second.");
        assert_contains(r->body, "1 of 7 trials");
    }
    snprintf(path, sizeof path, "/sessions/%s/steer", session);
    assert_int_equal(send_own(path, "verb=pause")->status, 303);
    assert_contains(get_page("/", 200)->body, "0 sessions run, 1 paused; 2 agents work.");
    assert_int_equal(send_own(path, "verb=stop")->status, 303);
    assert_contains(get_page("/", 200)->body, "No session runs now.");
}

/* Import a trial of a baseline into the session. */
static void import_baseline(const char *name, const char *times) {
    char path[160], body[400], id[ID_LENGTH + 1];
    snprintf(body, sizeof body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"baseline\":\"%s\"}", model, cluster, name);
    member_of(site_post(&site, "/api/v1/strategies", body), "id", id, sizeof id);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials", session);
    snprintf(body, sizeof body,
             "{\"trials\":[{\"strategy\":\"%s\",\"proposer\":\"%s\",\"runner\":\"mpirun\",\"iterations_us\":[%s]}]}",
             id, name, times);
    assert_int_equal(site_post(&site, path, body)->status, 201);
}

/* Measured against measured, measured against predicted, and within noise: each has its words. */
static void what_was_won_is_told_as_it_is_known(void **state) {
    (void)state;
    put_domain();
    assert_null(strstr(get_page("/", 200)->body, "What was won"));
    open_session();
    import_baseline("wfbp", "10000,10001,10002,10001");
    const struct reply *r = get_page("/", 200);
    assert_contains(r->body, "What was won so far");
    assert_contains(r->body, "predicted of the default");
    assert_contains(r->body, ", predicted<");
    import_baseline("pytorch-ddp", "13100,13101,13102,13101");
    r = get_page("/", 200);
    assert_contains(r->body, "<td>1.31 times as fast</td>");
    assert_contains(r->body, ", measured<");
    assert_null(strstr(r->body, ", predicted<"));
    open_session(); /* faster, and so it speaks: the default is within its noise */
    import_baseline("wfbp", "9000,9900,8000,9500,8800");
    import_baseline("pytorch-ddp", "9100,9950,8010,9500,8900");
    r = get_page("/", 200);
    assert_contains(r->body, "<td>no measurable difference</td>");
    assert_null(strstr(r->body, "1.31 times"));
    open_session(); /* faster still, by the default alone */
    import_baseline("pytorch-ddp", "7000,7001,7002,7001");
    assert_contains(get_page("/", 200)->body, "nothing: the default is the fastest that was tried");
}

static void two_sessions_stand_side_by_side(void **state) {
    (void)state;
    char path[400], first[64];
    assert_contains(get_page("/compare/sessions", 200)->body, "There are not two sessions yet.");
    put_domain();
    open_session();
    import_baseline("wfbp", "10000,10001,10002,10001");
    snprintf(first, sizeof first, "%s", session);
    open_session();
    snprintf(path, sizeof path, "/compare/sessions?a=%s&b=%s", first, session);
    assert_contains(get_page(path, 200)->body, "One of them has no complete trial yet.");
    import_baseline("pytorch-ddp", "8000,8001,8002,8001");
    const struct reply *r = get_page(path, 200);
    assert_contains(r->body, "B found what is 1.25 times as fast: 8.00 ms an iteration, and 10.0 ms in A.");
    assert_contains(r->body, "chart-progress-a");
    assert_contains(r->body, "chart-progress-b");
    assert_contains(r->body, "The two best strategies on one time axis");
    snprintf(path, sizeof path, "/compare/sessions?a=%s&b=none", first);
    assert_contains(get_page(path, 404)->body, "there is no session none");
    member_of(site_post(&site, "/api/v1/clusters", OTHER_CLUSTER), "id", cluster, sizeof cluster);
    open_session();
    snprintf(path, sizeof path, "/compare/sessions?a=%s&b=%s", first, session);
    assert_contains(get_page(path, 200)->body, "so their times do not compare");
}

/* The time of a baseline in the table of "what if": of a column, from 0. */
static double time_in(const char *body, const char *baseline, int column) {
    char cell[64], unit[8] = "";
    double x = 0;
    snprintf(cell, sizeof cell, "<td>%s</td>", baseline);
    const char *at = strstr(body, cell);
    for (int i = 0; at && i <= column; i++)
        at = strstr(at + 1, "<td class=\"n\">");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "<td class=\"n\">%lf %7[^<]", &x, unit), 2);
    return x * (!strcmp(unit, "s") ? 1e6 : !strcmp(unit, "ms") ? 1e3 : 1);
}

/* The page, the interface and closed forms agree. */
static void what_if_says_what_predictions_say(void **state) {
    (void)state;
    char path[400], body[400], us[32];
    assert_contains(get_page("/what-if", 200)->body, "there are none yet");
    put_domain();
    assert_null(strstr(get_page("/what-if", 200)->body, "data-redraws"));
    snprintf(path, sizeof path, "/what-if?model=%s&cluster=%s&gbit_per_s=4&nodes=8&batch=16", model, cluster);
    const struct reply *r = get_page(path, 200);
    const double single = time_in(r->body, "single", 0), before = time_in(r->body, "single", 1);
    assert_contains(r->body, "With NICs of 4 Gbit/s, 8 nodes and 16 samples a device, ");
    assert_null(strstr(r->body, "horovod-tuned"));
    for (size_t i = 0; i < 2; i++) {
        snprintf(body, sizeof body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"baselines\":[\"single\"]%s}", model,
                 cluster, i ? "" : ",\"what_if\":{\"gbit_per_s\":4,\"nodes\":8,\"batch\":16}");
        member_of(site_post(&site, "/api/v1/predictions", body), "iteration_us", us, sizeof us);
        assert_close(atof(us), i ? before : single, 0.006 * atof(us)); /* the page rounds */
    }
    assert_true(single > 28000); /* twice the batch is twice the 14 ms of computing */
    assert_true(before > 14000 && before < 28000);
}

static void what_is_wrong_with_figures_is_told_beside_them(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"gbit_per_s=0", "is no number from 0.001"},
                                           {"gbit_per_s=1e9", "is not from 0.001 to"},
                                           {"nodes=2.5", "must be a whole number"},
                                           {"nodes=1024", "simulates at most"},
                                           {"batch=x", "is no number"}};
    char path[400], body[400];
    put_domain();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "/what-if?model=%s&cluster=%s&%s", model, cluster, cases[i][0]);
        const struct reply *r = get_page(path, 422);
        assert_contains(r->body, cases[i][1]);
        assert_contains(r->body, "data-redraws");
    }
    get_page("/what-if?model=none&cluster=none", 404);
    static const char *const wrong[] = {"{\"nodes\":0}", "{\"gbit_per_s\":-1}", "{\"batch\":1e9}", "{\"nics\":1}", "7"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"baselines\":[\"wfbp\"],\"what_if\":%s}",
                 model, cluster, wrong[i]);
        assert_int_equal(site_post(&site, "/api/v1/predictions", body)->status, 422);
    }
}

static const char WEATHER[] =
    "{\"schema\":\"syncopate.cluster/"
    "1\",\"name\":\"stormy\",\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1}],"
    "\"variability\":{\"network\":{\"every_us\":50000,\"rates\":[{\"gbit_per_s\":0.5,\"share\":0.9},{\"gbit_per_s\":1,"
    "\"share\":0.1}]},\"compute\":{\"share\":0.5,\"factor\":3}}}";

/* Put a baseline as a strategy; its id. */
static void put_baseline(const char *name, char id[ID_LENGTH + 1]) {
    char body[256];
    snprintf(body, sizeof body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"baseline\":\"%s\"}", model, cluster, name);
    member_of(site_post(&site, "/api/v1/strategies", body), "id", id, ID_LENGTH + 1);
}

/* A strategy with updates, one without, and both: rates under the lanes, slow workers, and delays as predicted and,
 * once a trial was recorded that says so, as measured. */
static void weather_delays_and_drops_are_shown(void **state) {
    (void)state;
    char path[512], body[512], late[ID_LENGTH + 1], plain[ID_LENGTH + 1];
    put_domain();
    member_of(site_post(&site, "/api/v1/clusters", WEATHER), "id", cluster, sizeof cluster);
    put_baseline("async-ps", late);
    put_baseline("wfbp", plain);
    snprintf(path, sizeof path, "/strategies/%s?model=%s&cluster=%s", late, model, cluster);
    const struct reply *r = get_page(path, 200);
    assert_contains(r->body, "class=\"rate\"");
    assert_contains(r->body, "slowed down");
    assert_contains(r->body, "How late updates come");
    assert_contains(r->body, "no trial has measured it");
    assert_null(strstr(r->body, ", measured:"));
    snprintf(
        body, sizeof body,
        "{\"records\":[{\"model\":\"%s\",\"cluster\":\"%s\",\"strategy\":\"%s\",\"proposer\":\"user\",\"runner\":"
        "\"lab\",\"iterations_us\":[9,9],\"environment_details\":{\"updates\":{\"useful\":6,\"dropped\":2,\"delays\":"
        "[2,4]}}}]}",
        model, cluster, late);
    assert_int_equal(site_post(&site, "/api/v1/records:batchCreate", body)->status, 201);
    r = get_page(path, 200);
    assert_contains(r->body, "25.0% were dropped in 1 trial.");
    assert_contains(r->body, "delay 1, measured: 50.0%");
    snprintf(path, sizeof path, "/strategies/%s?model=%s&cluster=%s", plain, model, cluster);
    r = get_page(path, 200);
    assert_contains(r->body, "class=\"rate\"");
    assert_null(strstr(r->body, "How late updates come"));
    snprintf(path, sizeof path, "/compare?a=%s&b=%s&model=%s&cluster=%s", late, plain, model, cluster);
    r = get_page(path, 200);
    assert_int_equal(count_of(r->body, "chart-delays-1-title\""), 1);
    assert_contains(r->body, "who waits for whom");
}

/* Copy the address of the k-th link to `prefix`, from 0, with & for &amp;. */
static void link_of(const char *body, const char *prefix, int k, char *out, size_t n) {
    char start[64];
    snprintf(start, sizeof start, "href=\"%s", prefix);
    const char *at = strstr(body, start);
    while (k-- > 0 && at)
        at = strstr(at + 1, start);
    if (!at)
        fail_msg("too few links to %s in %s", prefix, body);
    at += strlen("href=\"");
    for (n--; *at && *at != '"' && n > 0; n--) {
        *out++ = *at;
        at += strncmp(at, "&amp;", 5) ? 1 : 5;
    }
    *out = '\0';
}

/* The first link is that of the fastest way, the last one that of the fastest at four times the rate. */
static void advice_leads_to_timelines(void **state) {
    (void)state;
    char path[512], way[512], fast[512];
    assert_contains(get_page("/advice", 200)->body, "there are none yet");
    put_domain();
    assert_contains(get_page("/advice", 200)->body, "name=\"memory\"");
    snprintf(path, sizeof path, "/advice?model=%s&cluster=%s&memory=1KiB,1GB", model, cluster);
    const struct reply *r = get_page(path, 200);
    assert_contains(r->body, "With 1KiB: nothing fits.");
    assert_contains(r->body, "The smallest memory at which anything fits");
    assert_contains(r->body, "the model has no &quot;optimizer&quot;");
    assert_contains(r->body, "value=\"1KiB,1GB\"");
    link_of(r->body, "/advice/", 0, way, sizeof way);
    link_of(r->body, "/advice/", (int)count_of(r->body, "href=\"/advice/") - 1, fast, sizeof fast);
    r = get_page(way, 200);
    assert_contains(r->body, "chart timeline");
    assert_contains(r->body, "a device holds at most");
    assert_contains(get_page(fast, 200)->body, "with 4 times the rate of each NIC");
}

/* Of the link at `at` its address and its words; returns what follows, NULL where there is no more. */
static const char *link_at(const char *at, char *address, char *words, size_t room) {
    const char *start = at ? strstr(at, "href=\"/advice/") : NULL, *end = start ? strstr(start, "</a>") : NULL;
    if (!end)
        return NULL;
    link_of(start, "/advice/", 0, address, room);
    start = strchr(start, '>') + 1;
    snprintf(words, room, "%.*s", (int)(end - start), start);
    return end;
}

/* The answer, the ways, the front and the other rates: each number leads to a page that says the same of it. */
static void each_number_of_an_advice_is_one_click_from_its_timeline(void **state) {
    (void)state;
    char path[512], address[512], words[512], says[640];
    size_t n = 0, in_answer = 0;
    put_domain();
    snprintf(path, sizeof path, "/advice?model=%s&cluster=%s&memory=9MB,1GB", model, cluster);
    const struct reply *r = get_page(path, 200);
    assert_contains(r->body, "id=\"chart-front-title\"");
    assert_contains(r->body, "Nothing that needs less is as fast");
    assert_contains(r->body, "With 9MB (8.583 MiB): ");
    assert_contains(r->body, "With 1GB</th>");
    char *page = strdup(r->body);
    const char *ways = strstr(page, "All ways");
    assert_non_null(page);
    for (const char *at = link_at(page, address, words, sizeof words); at;
         at = link_at(at, address, words, sizeof words)) {
        char time[64];
        const char *memory = strstr(words, ", and "), *comma = strrchr(words, ',');
        const char *start = at < ways && !memory ? comma + 2 : memory ? words : comma ? comma + 2 : words;
        snprintf(time, sizeof time, "%.*s", (int)strcspn(start, ",)"), start);
        snprintf(says, sizeof says, "predicted %s an iteration", time);
        assert_contains(get_page(address, 200)->body, says);
        in_answer += at < ways;
        n++;
    }
    assert_int_equal(in_answer, 3);
    assert_true(n > 12);
    free(page);
}

static void what_is_wrong_with_memories_is_told_beside_the_form(void **state) {
    (void)state;
    static const struct {
        const char *memory, *says;
        int status;
    } cases[] = {{"lots", "Memory: &quot;lots&quot; is not a size", 422},
                 {"24", "Memory: 24 is 24 bytes; write 24GB or 24GiB<", 422},
                 {"1GB,0", "Memory: nothing fits into 0 bytes<", 422},
                 {"1GB,2GB,3GB,4GB,5GB,6GB,7GB,8GB,9GB", "Memory: at most 8 sizes", 422}};
    char path[512];
    put_domain();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "/advice?model=%s&cluster=%s&memory=%s", model, cluster, cases[i].memory);
        const struct reply *r = get_page(path, cases[i].status);
        assert_contains(r->body, cases[i].says);
        assert_contains(r->body, "<form");
    }
    snprintf(path, sizeof path, "/advice/nobody?model=%s&cluster=%s", model, cluster);
    assert_contains(get_page(path, 404)->body, "there is no baseline");
    snprintf(path, sizeof path, "/advice/zero-3?model=%s&cluster=%s&memory=x", model, cluster);
    assert_contains(get_page(path, 400)->body, "is no number from 0 on");
    snprintf(path, sizeof path, "/advice/fsdp-optimal?model=%s&cluster=%s&memory=9", model, cluster);
    get_page(path, 422);
    assert_contains(get_page("/advice/zero-3", 400)->body, "say for what");
    get_page("/advice?model=none&cluster=none", 404);
}

static void what_is_not_there_is_told_on_a_page(void **state) {
    (void)state;
    char path[256];
    assert_contains(get_page("/sessions/none", 404)->body, "there is no session none");
    get_page("/strategies/00000000", 404);
    get_page("/compare?a=x", 400);
    put_domain();
    snprintf(path, sizeof path, "/strategies/%064d?model=%s&cluster=%s", 7, model, cluster);
    assert_contains(get_page(path, 404)->body, "there is no strategy");
    assert_contains(get_page("/dataset?colour=red", 400)->body, "colour");
}

static void where_nothing_is_people_get_a_page_and_programs_a_problem(void **state) {
    (void)state;
    static const char *const paths[] = {"/nowhere", "/sessions/%zz"};
    assert_problem(site_ask(&site, "GET", "/api/v1/nowhere", "Accept: text/html\r\n", NULL), 404, "not-found");
    assert_problem(site_ask(&site, "PATCH", "/api/v1/records/%zz", "Accept: text/html\r\n", NULL), 400, "bad-request");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const int status = i < 1 ? 404 : 400;
        const char *code = i < 1 ? "not-found" : "bad-request";
        assert_problem(site_ask(&site, "GET", paths[i], "Accept: application/json\r\n", NULL), status, code);
        assert_problem(site_get(&site, paths[i]), status, code);
        const struct reply *r =
            site_ask(&site, "GET", paths[i], "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n", NULL);
        assert_int_equal(r->status, status);
        assert_string_equal(reply_header(r, "Content-Type"), "text/html; charset=utf-8");
        assert_true(expect_strict_xml(r->body) > 10);
        assert_contains(r->body, code);
        assert_contains(r->body, "href=\"/dataset\"");
    }
}

static void the_help_of_filters_lists_every_column(void **state) {
    (void)state;
    const struct reply *r = get_page("/dataset", 200);
    assert_contains(r->body, filter_column_names);
    assert_contains(r->body, " median_us ");
}

static void a_wrong_filter_is_marked_at_its_place(void **state) {
    (void)state;
    const struct reply *r = get_page("/dataset?filter=%C3%A4%20%3D%203%20x", 400);
    assert_contains(r->body, "<pre>ä = 3 x\n^</pre>");
    /* The mark stands under the ninth character, which is the tenth byte. */
    r = get_page("/dataset?filter=uid%20%3D%20%C3%A4%20x", 400);
    assert_contains(r->body, "<pre>uid = ä x\n        ^</pre>");
    assert_contains(r->body, "value=\"uid = ä x\"");
}

static void a_page_of_trials_leads_to_the_next(void **state) {
    (void)state;
    char path[256], strategy[ID_LENGTH + 1];
    put_domain();
    open_session();
    run_trial(strategy);
    const struct reply *r = get_page("/dataset?filter=state+%3D+complete&order=measured", 200);
    assert_contains(r->body, "format=csv&amp;page_size=1000&amp;order=measured&amp;filter=state%20%3D%20complete");
    assert_null(strstr(r->body, "Next page"));
    snprintf(path, sizeof path, "/strategies/%.12s", strategy);
    assert_contains(get_page("/dataset", 200)->body, path);
}

/* ---- forms ---- */

static void a_form_of_another_origin_changes_nothing(void **state) {
    (void)state;
    char form[256];
    put_domain();
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=7&mode=ask", model, cluster);
    assert_int_equal(send_form("/sessions", "Origin: http://evil.example\r\n", form)->status, 403);
    assert_int_equal(send_form("/sessions", "Origin: null\r\n", form)->status, 403);
    assert_int_equal(send_form("/sessions", "", form)->status, 403);
    assert_null(strstr(site_get(&site, "/api/v1/sessions")->body, "\"id\""));
}

static void what_a_form_says_wrong_is_told_beside_it(void **state) {
    (void)state;
    char form[256];
    put_domain();
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=0&mode=ask", model, cluster);
    const struct reply *r = send_own("/sessions", form);
    assert_int_equal(r->status, 422);
    assert_contains(r->body, "needs trials");
    assert_contains(r->body, "value=\"0\"");
    expect_strict_xml(r->body);
    assert_int_equal(send_own("/sessions", "model=%zz&&=&cluster")->status, 422);
    assert_int_equal(send_own("/sessions", "")->status, 422);
}

#define STORMY                                                                                                         \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"stormy\",\"nodes\":[{\"name\":\"n\",\"count\":2,"                  \
    "\"nic_gbit_per_s\":1}],\"variability\":{\"compute\":{\"share\":0.1,\"factor\":3}}}"

static void a_form_asks_for_weather_where_the_cluster_has_some(void **state) {
    (void)state;
    char form[256], stormy[ID_LENGTH + 1], path[160];
    put_domain();
    member_of(site_post(&site, "/api/v1/clusters", STORMY), "id", stormy, sizeof stormy);
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=7&mode=ask&weather=yes", model, cluster);
    const struct reply *r = send_own("/sessions", form);
    assert_int_equal(r->status, 422);
    assert_contains(r->body, "has no &quot;variability&quot;");
    assert_contains(r->body, "<option value=\"yes\" selected=\"\">");
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=7&mode=ask&weather=no", model, stormy);
    assert_int_equal(send_own("/sessions", form)->status, 422);
    snprintf(form, sizeof form, "model=%s&cluster=%s&trials=7&mode=ask&weather=yes", model, stormy);
    r = send_own("/sessions", form);
    assert_int_equal(r->status, 303);
    assert_int_equal(sscanf(reply_header(r, "Location"), "/sessions/%60s", session), 1);
    snprintf(path, sizeof path, "/api/v1/sessions/%s", session);
    assert_contains(site_get(&site, path)->body, "\"weather\":true");
    snprintf(path, sizeof path, "/sessions/%s", session);
    assert_contains(get_page(path, 200)->body, "--runner lab<");
}

static void buttons_steer_a_session(void **state) {
    (void)state;
    char path[160], page[128];
    put_domain();
    open_session();
    snprintf(page, sizeof page, "/sessions/%s", session);
    snprintf(path, sizeof path, "%s/steer", page);
    const struct reply *r = send_own(path, "verb=pause");
    assert_int_equal(r->status, 303);
    assert_string_equal(reply_header(r, "Location"), page);
    assert_contains(get_page(page, 200)->body, "value=\"resume\"");
    assert_int_equal(send_own(path, "verb=pause")->status, 409);
    assert_int_equal(send_own(path, "verb=explode")->status, 422);
    assert_int_equal(send_own(path, "verb=stop")->status, 303);
    assert_null(strstr(get_page(page, 200)->body, "name=\"verb\""));
}

/* ---- signing in ---- */

static void without_a_token_a_page_is_a_form_to_sign_in(void **state) {
    (void)state;
    const struct reply *r = get_page("/dataset", 401);
    assert_contains(r->body, "name=\"token\"");
    assert_contains(r->body, "value=\"/dataset\"");
    assert_int_equal(site_get(&site, "/assets/page.css")->status, 200);
    assert_problem(site_get(&site, "/api/v1/models"), 401, "unauthorized");
}

static void signing_in_sets_a_cookie_that_no_script_reads(void **state) {
    (void)state;
    char form[200], cookie[300], out[400];
    snprintf(form, sizeof form, "to=%%2Fmodels&token=%s", reader);
    assert_int_equal(send_form("/sign-in", "Origin: http://evil.example\r\n", form)->status, 403);
    const struct reply *r = send_own("/sign-in", form);
    assert_int_equal(r->status, 303);
    assert_string_equal(reply_header(r, "Location"), "/models");
    const char *set = reply_header(r, "Set-Cookie");
    assert_contains(set, "; HttpOnly");
    assert_contains(set, "; SameSite=Strict");
    assert_contains(set, "syncopate_session=");
    assert_null(strstr(set, "syn_"));
    assert_null(strstr(set, "Secure")); /* a browser would not send it back without TLS */
    snprintf(cookie, sizeof cookie, "Cookie: %.*s\r\n", (int)strcspn(set, ";"), set);
    r = site_ask(&site, "GET", "/models", cookie, NULL);
    assert_int_equal(r->status, 200);
    assert_contains(r->body, "Sign out");
    snprintf(out, sizeof out, "%sOrigin: %s\r\n", cookie, server_url(site.server));
    assert_contains(reply_header(send_form("/sign-out", out, ""), "Set-Cookie"),
                    "syncopate_session=; Path=/; Max-Age=0");
    r = site_ask(&site, "GET", "/models", cookie, NULL); /* who kept the cookie is signed out as well */
    assert_int_equal(r->status, 401);
    assert_contains(r->body, "You are signed out");
    r = send_own("/sign-in", "token=syn_0&to=/");
    assert_int_equal(r->status, 401);
    assert_null(reply_header(r, "Set-Cookie"));
}

/* "Cookie: name=value" as a browser sends back what signing in with the token set. */
static void sign_in(const char *token, char *out, size_t n) {
    char form[200];
    snprintf(form, sizeof form, "token=%s", token);
    const char *set = reply_header(send_own("/sign-in", form), "Set-Cookie");
    assert_non_null(set);
    snprintf(out, n, "Cookie: %.*s\r\n", (int)strcspn(set, ";"), set);
}

static void a_sign_in_ends_with_its_token(void **state) {
    (void)state;
    struct error err;
    char path[600], cookie[300];
    sign_in(reader, cookie, sizeof cookie);
    assert_int_equal(site_ask(&site, "GET", "/models", cookie, NULL)->status, 200);
    site_tokens(&site, path);
    assert_ok(tokens_revoke(path, "reader", &err));
    clock_sleep_us(600e3);
    assert_int_equal(site_ask(&site, "GET", "/models", cookie, NULL)->status, 401);
}

/* What pages set before: the browser keeps it for 30 days, and is told to forget it. */
static void a_cookie_with_a_token_is_nobodys(void **state) {
    (void)state;
    char headers[400], form[200];
    snprintf(headers, sizeof headers, "Cookie: syncopate_token=%s\r\n", reader);
    assert_int_equal(site_ask(&site, "GET", "/models", headers, NULL)->status, 401);
    snprintf(headers, sizeof headers, "Cookie: syncopate_token=%s\r\nOrigin: %s\r\n", reader, server_url(site.server));
    snprintf(form, sizeof form, "token=%s", reader);
    const struct reply *r = send_form("/sign-in", headers, form);
    assert_int_equal(r->status, 303);
    assert_contains(r->head, "syncopate_token=; Path=/; Max-Age=0");
    assert_contains(r->head, "syncopate_session=");
}

/* 503 and not 401: whose token was refused gives up, and who was told to come again comes again. */
static void unreadable_tokens_let_nobody_in_and_say_so(void **state) {
    (void)state;
    char path[600], cookie[300], bearer[200];
    sign_in(reader, cookie, sizeof cookie);
    snprintf(bearer, sizeof bearer, "Authorization: Bearer %s\r\n", reader);
    site_tokens(&site, path);
    assert_int_equal(site_get(&site, "/readyz")->status, 200);
    assert_int_equal(chmod(path, 0644), 0);
    clock_sleep_us(600e3);
    assert_problem(site_ask(&site, "GET", "/api/v1/models", bearer, NULL), 503, "tokens-unreadable");
    assert_int_equal(site_ask(&site, "GET", "/models", cookie, NULL)->status, 503);
    assert_int_equal(site_get(&site, "/models")->status, 401);
    assert_problem(site_get(&site, "/readyz"), 503, "tokens-unreadable");
    assert_int_equal(send_own("/sign-in", "token=syn_x")->status, 503);
    assert_int_equal(chmod(path, 0600), 0);
    clock_sleep_us(600e3);
    assert_int_equal(site_ask(&site, "GET", "/models", cookie, NULL)->status, 200);
    assert_int_equal(site_get(&site, "/readyz")->status, 200);
}

static void signing_in_leads_nowhere_else(void **state) {
    (void)state;
    static const char *const ways[] = {"//evil.example",   "http://evil.example", "/%5Cevil.example", "/a%0d%0ab", "x",
                                       "/%09/evil.example"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char form[200];
        snprintf(form, sizeof form, "to=%s&token=%s", ways[i], reader);
        const struct reply *r = send_own("/sign-in", form);
        assert_int_equal(r->status, 303);
        assert_string_equal(reply_header(r, "Location"), "/");
    }
}

static void a_reader_sees_no_form_that_would_be_refused(void **state) {
    (void)state;
    char headers[400], cookie[300];
    sign_in(reader, cookie, sizeof cookie);
    snprintf(headers, sizeof headers, "%sOrigin: %s\r\n", cookie, server_url(site.server));
    assert_null(strstr(site_ask(&site, "GET", "/", headers, NULL)->body, "action=\"/sessions\""));
    assert_int_equal(send_form("/sessions", headers, "model=a&cluster=b&trials=1")->status, 403);
}

/* ---- assets ---- */

static void assets_are_asked_for_once(void **state) {
    (void)state;
    static const char *const paths[] = {"/assets/page.css", "/assets/page.js", "/favicon.ico"};
    static const char *const parts[] = {".places", "EventSource", "<svg"};
    for (size_t i = 0; i < 3; i++) {
        char header[1200];
        const struct reply *r = site_get(&site, paths[i]);
        assert_int_equal(r->status, 200);
        assert_contains(r->body, parts[i]);
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", reply_header(r, "ETag"));
        assert_int_equal(site_ask(&site, "GET", paths[i], header, NULL)->status, 304);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define OPEN(name)   cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define CLOSED(name) cmocka_unit_test_setup_teardown(name, set_up_closed, tear_down)
        OPEN(every_page_is_whole_and_repeats_no_markup_of_users),
        OPEN(the_first_page_shows_what_runs_and_who_works),
        OPEN(what_was_won_is_told_as_it_is_known),
        OPEN(two_sessions_stand_side_by_side),
        OPEN(what_if_says_what_predictions_say),
        OPEN(what_is_wrong_with_figures_is_told_beside_them),
        OPEN(weather_delays_and_drops_are_shown),
        OPEN(advice_leads_to_timelines),
        OPEN(each_number_of_an_advice_is_one_click_from_its_timeline),
        OPEN(what_is_wrong_with_memories_is_told_beside_the_form),
        OPEN(what_is_not_there_is_told_on_a_page),
        OPEN(where_nothing_is_people_get_a_page_and_programs_a_problem),
        OPEN(the_help_of_filters_lists_every_column),
        OPEN(a_wrong_filter_is_marked_at_its_place),
        OPEN(a_page_of_trials_leads_to_the_next),
        OPEN(a_form_of_another_origin_changes_nothing),
        OPEN(what_a_form_says_wrong_is_told_beside_it),
        OPEN(a_form_asks_for_weather_where_the_cluster_has_some),
        OPEN(buttons_steer_a_session),
        CLOSED(without_a_token_a_page_is_a_form_to_sign_in),
        CLOSED(signing_in_sets_a_cookie_that_no_script_reads),
        CLOSED(a_sign_in_ends_with_its_token),
        CLOSED(a_cookie_with_a_token_is_nobodys),
        CLOSED(unreadable_tokens_let_nobody_in_and_say_so),
        CLOSED(signing_in_leads_nowhere_else),
        CLOSED(a_reader_sees_no_form_that_would_be_refused),
        OPEN(assets_are_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
