/* See page.h. */
#include "service/http/pages/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "service/http/pages/pages.h"
#include "service/http/transport/cookies.h"
#include "service/http/transport/route.h"
#include "service/http/transport/server.h"

enum { CHOICES = 200 };

/* Pages may use nothing inline and nothing from other sites. */
static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                             "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/* ---- the frame ---- */

static void navigation(struct request *rq, struct markup *m, enum page_place place) {
    static const struct {
        const char *words, *path;
    } places[] = {[PAGE_SESSIONS] = {"Sessions", "/"},      [PAGE_DATASET] = {"Dataset", "/dataset"},
                  [PAGE_MODELS] = {"Models", "/models"},    [PAGE_CLUSTERS] = {"Clusters", "/clusters"},
                  [PAGE_WHAT_IF] = {"What if", "/what-if"}, [PAGE_ADVICE] = {"Advice", "/advice"},
                  [PAGE_TRACES] = {"Traces", "/traces"}};
    char value[SIGN_IN_LENGTH + 1];
    html_begin(m, "nav", "places");
    markup_attribute(m, "aria-label", "Pages");
    html_leaff(m, "b", NULL, "syncopate");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        markup_begin(m, "a");
        markup_attribute(m, "href", places[i].path);
        if (i == (size_t)place)
            markup_attribute(m, "aria-current", "page");
        markup_text(m, places[i].words);
        markup_end(m);
    }
    if (cookie_read(rq, value) && !rq->authorization && *rq->principal.token) {
        page_form_begin(m, "post", "/sign-out", "away");
        html_leaff(m, "span", "soft", "%s, %s", rq->principal.team, role_word(rq->principal.role));
        page_button(m, "Sign out", NULL, NULL);
        markup_end(m);
    }
    markup_end(m);
}

void page_begin(struct request *rq, struct markup *m, const char *title, enum page_place place) {
    char whole[256];
    snprintf(whole, sizeof whole, "%.220s – syncopate", title);
    html_page_open(m, whole, "/assets/page.css");
    html_begin(m, "a", "skip");
    markup_attribute(m, "href", "#content");
    markup_text(m, "To the content");
    markup_end(m);
    navigation(rq, m, place);
    html_begin(m, "p", "unseen"); /* what page.js says to those who do not see what it changes */
    markup_attribute(m, "id", "said");
    markup_attribute(m, "role", "status");
    markup_end(m);
    markup_begin(m, "main");
    markup_attribute(m, "id", "content");
    markup_attribute(m, "tabindex", "-1");
}

static void page_end(struct markup *m) {
    markup_begin(m, "script");
    markup_attribute(m, "src", "/assets/page.js");
    markup_attribute(m, "defer", "");
    markup_end(m);
    html_page_end(m);
}

enum status page_answer(struct request *rq, struct markup *m, unsigned status, struct response *rs, struct error *err) {
    (void)rq;
    char *text;
    size_t n;
    page_end(m);
    enum status st = markup_take(m, &text, &n, err);
    if (st)
        return st;
    free(rs->owned);
    rs->owned = text;
    response_bytes(rs, status, "text/html; charset=utf-8", text, n);
    response_header(rs, HEADER_CONTENT_SECURITY_POLICY, policy);
    /* Browsers send Origin with a form to this service, and to no other. */
    response_header(rs, HEADER_REFERRER_POLICY, "same-origin");
    return ST_OK;
}

enum status page_redirect(struct response *rs, const char *path) {
    rs->status = 303;
    response_header(rs, HEADER_LOCATION, path);
    return ST_OK;
}

/* ---- problems ---- */

static void sign_in_form(struct request *rq, struct markup *m) {
    const bool back = !strcmp(rq->method, "GET");
    markup_leaf(m, "h1", "Sign in");
    markup_leaf(m, "p",
                "This service wants to know who asks. Paste a token. It is not kept: the browser stays signed in "
                "until you sign out, for 12 hours without use, and for a week at most.");
    page_form_begin(m, "post", "/sign-in", "fields");
    page_hidden(m, "to", back && strcmp(rq->path, "/sign-in") ? rq->path : "/");
    page_label_begin(m, "Token");
    html_begin(m, "input", NULL);
    markup_attribute(m, "name", "token");
    markup_attribute(m, "type", "password");
    markup_attribute(m, "autocomplete", "current-password");
    markup_attribute(m, "required", "");
    markup_attribute(m, "autofocus", "");
    markup_end(m);
    markup_end(m);
    page_button(m, "Sign in", NULL, NULL);
    markup_end(m);
    html_begin(m, "p", "soft");
    markup_text(m, "Whoever runs the service makes tokens, on its machine:");
    markup_end(m);
    html_command(m, "syncopate serve token create NAME --role run --dataset FILE");
}

enum status page_problem(struct request *rq, struct response *rs, struct error *err) {
    struct markup m = {0};
    char value[SIGN_IN_LENGTH + 1];
    const enum problem problem = rs->problem;
    const char *detail = rs->problem_detail ? rs->problem_detail : problem_title(problem);
    const bool unknown = problem == PROBLEM_UNAUTHORIZED;
    page_begin(rq, &m, unknown ? "Sign in" : problem_title(problem), PAGE_ELSEWHERE);
    if (unknown && !strcmp(rq->method, "POST") && !strcmp(rq->path, "/sign-in"))
        html_leaff(&m, "p", "trouble", "The token is unknown, revoked or expired.");
    else if (unknown && cookie_read(rq, value))
        html_leaff(&m, "p", "trouble",
                   "You are signed out: it was long ago, your token is revoked or expired, or the service restarted.");
    if (unknown) {
        sign_in_form(rq, &m);
    } else {
        markup_leaf(&m, "h1", problem_title(problem));
        html_leaff(&m, "p", "trouble", "%s", detail);
        html_leaff(&m, "p", "soft", "%s, request %s", problem_code(problem), rq->id);
        markup_begin(&m, "p");
        page_link(&m, "To the sessions", "/");
        markup_end(&m);
    }
    return page_answer(rq, &m, problem_status(problem), rs, err);
}

/* What the type of a problem leads to (RFC 9457 section 3.1.1). */
enum status page_problem_kind(struct request *rq, struct response *rs, struct error *err) {
    const char *code = request_parameter(rq, "code");
    struct markup m = {0};
    enum problem problem = PROBLEM_NONE + 1;
    while (problem < PROBLEM_COUNT && strcmp(problem_code(problem), code) != 0)
        problem++;
    if (problem == PROBLEM_COUNT)
        return error_set(err, ST_NOT_FOUND, "there is no problem %.60s", code);
    page_begin(rq, &m, problem_title(problem), PAGE_ELSEWHERE);
    markup_leaf(&m, "h1", problem_title(problem));
    html_leaff(&m, "p", NULL, "HTTP status %u, code %s.", problem_status(problem), problem_code(problem));
    markup_leaf(
        &m, "p",
        "The detail of a problem says what was wrong with one request. If the service failed, its log says more, "
        "under the request's id.");
    return page_answer(rq, &m, 200, rs, err);
}

/* ---- parts ---- */

const char *page_escape(struct request *rq, const char *text) {
    char *out = arena_alloc(&rq->arena, 3 * strlen(text) + 1, 1), *to = out;
    for (; out && *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c))
            *to++ = (char)c;
        else
            to += sprintf(to, "%%%02X", c);
    }
    return out ? out : "";
}

void page_link(struct markup *m, const char *text, const char *format, ...) {
    char href[16384]; /* a filter of 4096 bytes, escaped, fits */
    va_list values;
    va_start(values, format);
    vsnprintf(href, sizeof href, format, values);
    va_end(values);
    markup_begin(m, "a");
    markup_attribute(m, "href", href);
    markup_text(m, text);
    markup_end(m);
}

void page_form_begin(struct markup *m, const char *method, const char *path, const char *class) {
    html_begin(m, "form", class);
    markup_attribute(m, "method", method);
    markup_attribute(m, "action", path);
}

void page_hidden(struct markup *m, const char *name, const char *value) {
    markup_begin(m, "input");
    markup_attribute(m, "type", "hidden");
    markup_attribute(m, "name", name);
    markup_attribute(m, "value", value);
    markup_end(m);
}

void page_button(struct markup *m, const char *text, const char *name, const char *value) {
    markup_begin(m, "button");
    if (name) {
        markup_attribute(m, "name", name);
        markup_attribute(m, "value", value);
    }
    markup_text(m, text);
    markup_end(m);
}

void page_label_begin(struct markup *m, const char *text) {
    markup_begin(m, "label");
    markup_leaf(m, "span", text);
}

void page_option(struct markup *m, const char *value, const char *text, bool chosen) {
    markup_begin(m, "option");
    markup_attribute(m, "value", value);
    if (chosen)
        markup_attribute(m, "selected", "");
    markup_text(m, text);
    markup_end(m);
}

enum status page_choices_read(struct request *rq, enum store_kind kind, struct page_choices *out, struct error *err) {
    const struct viewer asker = request_asker(rq);
    const struct object_list list = {.kind = kind, .descending = true, .asker = &asker};
    struct store *store;
    char next[PAGE_CURSOR_ROOM];
    enum status st = request_reader(rq, &store, err);
    return st ? st : page_objects(store, &list, NULL, CHOICES, &rq->arena, &out->n, &out->objects, next, err);
}

void page_choice(struct markup *m, const char *label, const char *name, const struct page_choices *from,
                 const char *chosen) {
    page_label_begin(m, label);
    markup_begin(m, "select");
    markup_attribute(m, "name", name);
    for (size_t i = 0; i < from->n; i++)
        page_option(m, from->objects[i].id.hex, from->objects[i].name,
                    chosen && !strcmp(chosen, from->objects[i].id.hex));
    markup_end(m);
    markup_end(m);
}

enum status page_domain_form_begin(struct request *rq, struct markup *m, const char *action, const char *model,
                                   const char *cluster, bool *begun, struct error *err) {
    struct page_choices models, clusters;
    enum status st = page_choices_read(rq, STORE_MODEL, &models, err);
    if (!st)
        st = page_choices_read(rq, STORE_CLUSTER, &clusters, err);
    if (st)
        return st;
    *begun = models.n && clusters.n;
    if (!*begun) {
        markup_leaf(
            m, "p",
            "An answer needs a model and a cluster, and there are none yet: the first page says how to put some.");
        return ST_OK;
    }
    page_form_begin(m, "get", action, "fields unified");
    page_choice(m, "Model", "model", &models, model);
    page_choice(m, "Cluster", "cluster", &clusters, cluster);
    return ST_OK;
}

const char *page_stamp(const char *stamp, char out[32]) {
    if (stamp && strlen(stamp) >= 16)
        snprintf(out, 32, "%.10s %.5s", stamp, stamp + 11);
    else
        snprintf(out, 32, "%.31s", stamp ? stamp : "");
    return out;
}

/* A Host that could not be pasted into a shell is not repeated. */
const char *page_origin(struct request *rq) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    const char *url = server_url(rq->server);
    if (!rq->host || !*rq->host || rq->host[strspn(rq->host, plain)])
        return url;
    const char *text = arena_printf(&rq->arena, "%.*s://%s", (int)strcspn(url, ":"), url, rq->host);
    return text ? text : url;
}

const char *page_curl(const struct request *rq) {
    return *rq->principal.token ? "curl -H \"Authorization: Bearer $TOKEN\"" : "curl";
}

const char *page_name(struct request *rq, struct store *store, enum store_kind kind, const char *id) {
    const struct viewer asker = request_asker(rq);
    const char *name;
    if (!seen_name(store, kind, id, &asker, &rq->arena, &name, NULL) && *name)
        return name;
    const char *digits = arena_printf(&rq->arena, "%.12s", id);
    return digits ? digits : "";
}

/* ---- questions and forms ---- */

enum status page_query_number(struct request *rq, const char *name, double missing, double least, double *out,
                              struct error *err) {
    const char *text = request_query(rq, name);
    char *end = NULL;
    *out = text ? strtod(text, &end) : missing;
    if (text && (!*text || *end || !(*out >= least) || !isfinite(*out)))
        return error_set(err, ST_USAGE, "%s: \"%.40s\" is no number from %g on", name, text, least);
    return ST_OK;
}

/* name=value pairs with '&' between, '+' for a blank (application/x-www-form-urlencoded). */
const char *form_field(struct request *rq, const char *name) {
    const char *at = rq->body, *end = rq->body + rq->body_bytes;
    const size_t n = strlen(name);
    while (at && at < end) {
        const char *stop = memchr(at, '&', (size_t)(end - at));
        stop = stop ? stop : end;
        if ((size_t)(stop - at) > n && !memcmp(at, name, n) && at[n] == '=') {
            char *value = arena_copy(&rq->arena, at + n + 1, (size_t)(stop - at) - n - 1);
            for (char *c = value; c && *c; c++)
                *c = *c == '+' ? ' ' : *c;
            return value ? route_decode(&rq->arena, value, (size_t)(stop - at) - n - 1) : NULL;
        }
        at = stop + 1;
    }
    return NULL;
}
