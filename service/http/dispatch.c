/* See dispatch.h. The order of the checks tells an unknown client as little as possible: first the path, which is
 * public, then the token, the role and the rate, and last the request itself. */
#include "service/http/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/log.h"
#include "dataset/requests.h"
#include "dataset/usage.h"
#include "service/http/api/quotas.h"
#include "service/http/pages/page.h"
#include "service/http/transport/cookies.h"
#include "service/http/transport/server.h"

enum { MAX_KEY = 255 };
static const char needs_body[] = "this needs a body";

/* Who asks. */

static bool bearer(const struct request *rq, char secret[TOKEN_LENGTH + 1]) {
    static const char scheme[] = "Bearer ";
    const char *text = rq->authorization;
    if (strncasecmp(text, scheme, sizeof scheme - 1))
        return false;
    text += sizeof scheme - 1;
    text += strspn(text, " ");
    return snprintf(secret, TOKEN_LENGTH + 1, "%s", text) == TOKEN_LENGTH;
}

/* Names of this machine only: a page elsewhere whose name was made to point here (DNS rebinding) has another. */
static bool host_is_local(const struct request *rq) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; rq->host && i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (!strncasecmp(rq->host, names[i], n) && (!rq->host[n] || rq->host[n] == ':'))
            return true;
    }
    return false;
}

static bool authenticate(struct request *rq) {
    char secret[TOKEN_LENGTH + 1], value[SIGN_IN_LENGTH + 1];
    if (rq->authorization)
        return bearer(rq, secret) && tokens_check(rq->service->tokens, secret, &rq->principal);
    if (cookie_read(rq, value))
        return cookie_principal(rq, &rq->principal);
    if (!rq->service->open || !rq->loopback || rq->forwarded || !host_is_local(rq))
        return false;
    rq->principal = (struct principal){.team = "local", .role = ROLE_ADMIN};
    return true;
}

/* True: the request has a token or a cookie, and the file of tokens cannot be read. The answer is then 503 and not 401,
 * since a client repeats a request after 503 and gives up after 401. */
static bool cannot_tell(struct request *rq) {
    char value[SIGN_IN_LENGTH + 1], why[TOKENS_WHY_MAX];
    return (rq->authorization || cookie_read(rq, value)) && tokens_unreadable(rq->service->tokens, why);
}

static bool authorize(struct request *rq, struct response *rs) {
    const enum role least = rq->route->role;
    unsigned wait_s = 1;
    bool known = authenticate(rq);
    if (least == ROLE_NONE)
        return true;
    if (!known && cannot_tell(rq)) {
        response_problem(rs, &rq->arena, PROBLEM_TOKENS_UNREADABLE, PROBLEM_TOKENS_DETAIL);
    } else if (!known) {
        response_header(rs, HEADER_WWW_AUTHENTICATE, "Bearer realm=\"syncopate\"");
        response_problem(rs, &rq->arena, PROBLEM_UNAUTHORIZED,
                         rq->authorization ? "the token is unknown, revoked or expired"
                                           : "send a token: Authorization: Bearer syn_...");
    } else if (rq->principal.role < least) {
        response_problem(rs, &rq->arena, PROBLEM_FORBIDDEN, "the token's role is %s, and this needs %s",
                         role_word(rq->principal.role), role_word(least));
    } else if (!tokens_spend(rq->service->tokens, &rq->principal, &wait_s)) {
        char *text = arena_printf(&rq->arena, "%u", wait_s);
        response_header(rs, HEADER_RETRY_AFTER, text ? text : "1");
        response_problem(rs, &rq->arena, PROBLEM_RATE_LIMITED, "this token may make %g requests a second",
                         rq->principal.requests_per_s);
    }
    return !rs->problem;
}

/* What is asked. */

static bool find_route(struct request *rq, const char *path, struct response *rs) {
    size_t n;
    const struct route *routes = server_routes(rq->server, &n);
    char allow[128], *copy;
    switch (route_match(routes, n, rq->method, path, rq, &rq->route, allow, sizeof allow)) {
    case ROUTE_FOUND:
        return true;
    case ROUTE_NO_PATH:
        response_problem(rs, &rq->arena, PROBLEM_NOT_FOUND, "nothing is served at this path; /openapi.json lists all");
        return false;
    case ROUTE_BAD_PATH:
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST, "the path has a bad escape or an empty name");
        return false;
    default:
        copy = arena_strdup(&rq->arena, allow);
        response_header(rs, HEADER_ALLOW, copy ? copy : "GET");
        response_problem(rs, &rq->arena, PROBLEM_METHOD_NOT_ALLOWED, "%.32s is not served here, only %s", rq->method,
                         allow);
        return false;
    }
}

/* Add one name=value of the query. A '+' is a blank, as forms send it. */
static bool add_query(struct request *rq, char *pair, struct response *rs) {
    for (char *c = pair; *c; c++)
        *c = *c == '+' ? ' ' : *c;
    const size_t name = strcspn(pair, "=");
    struct field f = {route_decode(&rq->arena, pair, name), route_decode(&rq->arena, pair + name + (pair[name] == '='),
                                                                         strlen(pair + name + (pair[name] == '=')))};
    if (!f.name || !f.value)
        response_problem(rs, &rq->arena, PROBLEM_BAD_PARAMETER, "a query parameter has a bad escape or is no text");
    else if (!*f.name || strchr(f.name, ' ') || !route_has_word(rq->route->query, f.name))
        response_problem(rs, &rq->arena, PROBLEM_BAD_PARAMETER, "there is no query parameter \"%.64s\" here%s%s",
                         f.name, *rq->route->query ? "; known: " : "", rq->route->query);
    else if (request_query(rq, f.name))
        response_problem(rs, &rq->arena, PROBLEM_BAD_PARAMETER, "query parameter %s: given twice", f.name);
    else if (rq->n_query < REQUEST_MAX_QUERY)
        rq->query[rq->n_query++] = f;
    return !rs->problem;
}

static bool parse_query(struct request *rq, const char *text, struct response *rs) {
    char *copy = arena_strdup(&rq->arena, text), *rest = NULL;
    if (!copy) {
        response_problem(rs, &rq->arena, PROBLEM_STORAGE, "out of memory");
        return false;
    }
    for (char *pair = strtok_r(copy, "&", &rest); pair; pair = strtok_r(NULL, "&", &rest))
        if (!add_query(rq, pair, rs))
            return false;
    return true;
}

/* "http://host:port" against the Host header. Programs send no Origin; pages of other sites send theirs. */
static bool origin_is_ours(const struct request *rq) {
    const char *authority = rq->origin ? strstr(rq->origin, "://") : NULL;
    return !rq->origin || (authority && rq->host && !strcasecmp(authority + 3, rq->host));
}

static bool media_is_json(const char *type) {
    static const char json[] = "application/json";
    if (!type || strncasecmp(type, json, sizeof json - 1))
        return false;
    type += sizeof json - 1;
    type += strspn(type, " \t");
    if (!*type)
        return true;
    if (*type++ != ';')
        return false;
    type += strspn(type, " \t");
    return !strcasecmp(type, "charset=utf-8") || !strcasecmp(type, "charset=\"utf-8\"");
}

static bool media_is(const char *type, const char *wanted) {
    return type && !strncasecmp(type, wanted, strlen(wanted));
}

static const char *form_media(const struct route *route) {
    return route->flags & ROUTE_UPLOAD ? "multipart/form-data" : "application/x-www-form-urlencoded";
}

/* Check that a form comes from our pages. Browsers send its Origin, and what sends none is no browser. */
static void check_form(struct request *rq, bool has_body, struct response *rs) {
    const char *form = form_media(rq->route);
    if (!rq->origin || !origin_is_ours(rq))
        response_problem(rs, &rq->arena, PROBLEM_CROSS_ORIGIN, "this is for the forms of this service's pages");
    else if (has_body && !media_is(rq->content_type, form))
        response_problem(rs, &rq->arena, PROBLEM_UNSUPPORTED_MEDIA_TYPE, "send Content-Type: %s", form);
}

static bool key_is_valid(const char *key) {
    size_t n = strlen(key);
    for (const char *c = key; *c; c++)
        if (*c < 0x21 || *c > 0x7e)
            return false;
    return n >= 1 && n <= MAX_KEY;
}

/* A precondition holds, fails or is refused (RFC 9110 section 13.1). It is never ignored: its sender relies on it. */
static void check_preconditions(struct request *rq, bool safe, struct response *rs) {
    const char *bad = rq->if_match && !request_etags_valid(rq->if_match)             ? "If-Match"
                      : rq->if_none_match && !request_etags_valid(rq->if_none_match) ? "If-None-Match"
                                                                                     : NULL;
    if (bad)
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST,
                         "%s: must be * or entity tags as ETag has them, each in double quotes", bad);
    else if (rq->if_match && !(rq->route->flags & (ROUTE_CONDITIONAL | ROUTE_IF_MATCH)))
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST, "If-Match: this has no entity tag; leave it out");
    else if (rq->if_none_match && !safe)
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST, "If-None-Match: only a GET takes it; leave it out");
}

/* Refuse a key where it would have no effect, since its sender relies on it. Forms are not checked: browsers send no
 * key with them. */
static void check_key(struct request *rq, struct response *rs) {
    if (!rq->idempotency_key)
        return;
    if (!(rq->route->flags & ROUTE_KEYED))
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST,
                         "Idempotency-Key: this changes nothing, however often it is asked; leave it out");
    else if (!key_is_valid(rq->idempotency_key))
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST, "Idempotency-Key: 1 to %d visible ASCII characters",
                         MAX_KEY);
}

static bool check_headers(struct request *rq, bool has_body, struct response *rs) {
    const struct route *route = rq->route;
    bool safe = !strcmp(route->method, "GET");
    if (route->flags & ROUTE_FORM)
        check_form(rq, has_body, rs);
    else if (!safe && !origin_is_ours(rq))
        response_problem(rs, &rq->arena, PROBLEM_CROSS_ORIGIN, "a page of another origin may not change anything here");
    else if (has_body && !route->request)
        response_problem(rs, &rq->arena, PROBLEM_BAD_REQUEST, "this takes no body");
    else if (has_body && rq->content_encoding && strcasecmp(rq->content_encoding, "identity") != 0)
        response_problem(rs, &rq->arena, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                         "send the body as it is, without Content-Encoding");
    else if (has_body && route->flags & ROUTE_UPLOAD && !media_is(rq->content_type, form_media(route)))
        response_problem(rs, &rq->arena, PROBLEM_UNSUPPORTED_MEDIA_TYPE, "send Content-Type: %s, as curl -F does",
                         form_media(route));
    else if (has_body && !(route->flags & ROUTE_UPLOAD) && !media_is_json(rq->content_type))
        response_problem(rs, &rq->arena, PROBLEM_UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json");
    else if (!has_body && route->request)
        response_problem(rs, &rq->arena, route->flags & ROUTE_UPLOAD ? PROBLEM_BAD_REQUEST : PROBLEM_BAD_JSON, "%s",
                         needs_body);
    else
        check_key(rq, rs);
    if (!rs->problem && !(route->flags & ROUTE_FORM))
        check_preconditions(rq, safe, rs);
    return !rs->problem;
}

bool dispatch_admit(struct request *rq, const char *uri, bool has_body, struct response *rs) {
    const size_t n = strcspn(uri, "?");
    char *path = arena_copy(&rq->arena, uri, n);
    rq->path = path ? path : "";
    if (!path) {
        response_problem(rs, &rq->arena, PROBLEM_STORAGE, "out of memory");
        return false;
    }
    if (!find_route(rq, path, rs))
        return false;
    if (server_draining(rq->server) && !(rq->route->flags & ROUTE_WHILE_DRAINING)) {
        response_problem(rs, &rq->arena, PROBLEM_DRAINING, "the service is stopping; try again soon");
        return false;
    }
    return authorize(rq, rs) && parse_query(rq, uri[n] ? uri + n + 1 : "", rs) && check_headers(rq, has_body, rs);
}

/* The body. */

/* Out of memory only because of this request's own limit: the request is too large. */
static bool is_too_large(const struct request *rq, const struct error *err) {
    return err->status == ST_NO_MEMORY && atomic_load(&rq->work.starved);
}

/* Forget the response that a handler began, except what explains its failure. */
static void begin_again(struct response *rs) {
    const char *when = response_header_value(rs, HEADER_RETRY_AFTER);
    const size_t n = rs->n_losses;
    const struct problem_loss *losses = rs->losses;
    response_clear(rs);
    rs->n_losses = n;
    rs->losses = losses;
    if (when)
        response_header(rs, HEADER_RETRY_AFTER, when);
}

/* Answer with the problem that *err is. */
static void fail(struct request *rq, struct response *rs, const struct error *err) {
    enum problem problem = rq->unwritten ? PROBLEM_STORAGE : problem_of(err);
    char detail[ERROR_TEXT_ROOM];
    begin_again(rs);
    if (is_too_large(rq, err)) {
        response_problem(rs, &rq->arena, PROBLEM_TOO_LARGE, REQUEST_TOO_MUCH_MEMORY,
                         (unsigned long long)rq->work.limit_bytes >> 20);
        return;
    }
    if (err->status == ST_CANCELLED && atomic_load(&rq->work.end) == WORK_SPENT) {
        response_problem(
            rs, &rq->arena, PROBLEM_TOO_LARGE,
            "this takes more than the %g s of processor time that a request may have; ask for less at once",
            rq->work.limit_us / 1e6);
        return;
    }
    if (err->status == ST_CANCELLED) { /* the service stops, or the client has left */
        response_problem(rs, &rq->arena, problem, "%s", ERROR_TEXT(err));
        return;
    }
    if (problem_status(problem) >= 500 && !*err->code) { /* what is wrong here is not for clients to read */
        log_error("request %s: %s", rq->id, ERROR_TEXT(err));
        response_problem(rs, &rq->arena, problem, "the service could not do it; its log says why under request %s",
                         rq->id);
        return;
    }
    if (problem == PROBLEM_DATABASE_AWAY) { /* its words name hosts and users */
        log_error("request %s: %s", rq->id, ERROR_TEXT(err));
        response_problem(rs, &rq->arena, problem,
                         "the dataset's database does not answer, and what was asked is not acknowledged; try again");
        return;
    }
    struct error said = *err;
    access_hide_path(rq->service->access, &said);
    const char *pointer = problem_pointer(&said);
    response_problem(rs, &rq->arena, problem, "%s", problem_detail(&said, detail));
    rs->problem_pointer = pointer ? arena_strdup(&rq->arena, pointer) : NULL;
    if (pointer && !rs->problem_pointer)
        response_problem(rs, &rq->arena, PROBLEM_STORAGE, "out of memory");
}

static bool parse_body(struct request *rq, struct response *rs) {
    struct error err = {0};
    if (!rq->route->request || rq->route->flags & ROUTE_UPLOAD)
        return true;
    if (!rq->body_bytes) { /* chunks were announced, and none came */
        response_problem(rs, &rq->arena, PROBLEM_BAD_JSON, "%s", needs_body);
        return false;
    }
    if (rq->json) /* the handler is called again */
        return true;
    if (!request_charge(rq, json_count_values(rq->body, rq->body_bytes) * (uint64_t)JSON_VALUE_BYTES, rs))
        return false;
    if (!json_parse(rq->body, rq->body_bytes, "body", &rq->json, &err))
        return true;
    fail(rq, rs, &err);
    if (err.status == ST_INVALID)
        rs->problem = PROBLEM_BAD_JSON;
    return false;
}

/* Idempotency. */

/* Method, path and body, hashed. */
static enum status fingerprint(const struct request *rq, struct id *out, struct error *err) {
    const size_t head = strlen(rq->method) + strlen(rq->path) + 2;
    char *text = malloc(head + rq->body_bytes + 1);
    if (!text)
        return error_no_memory(err);
    snprintf(text, head + 1, "%s %s\n", rq->method, rq->path);
    if (rq->body_bytes)
        memcpy(text + head, rq->body, rq->body_bytes);
    enum status st = id_of(text, head + rq->body_bytes, out, err);
    free(text);
    return st;
}

static bool has_key(const struct request *rq) {
    return rq->idempotency_key && rq->route->flags & ROUTE_KEYED;
}

/* Whose key it is: "token@team", since the team is credited when the answer is deleted (dataset/requests.c). */
static const char *key_owner(struct request *rq) {
    return arena_printf(&rq->arena, "%s@%s", rq->principal.token, rq->principal.team);
}

/* Headers are not kept with an answer. Location comes from "href" in its body. */
static enum status repeat_location(struct request *rq, const struct stored_response *found, struct response *rs,
                                   struct error *err) {
    if (route_header(rq->route, (unsigned)found->status, HEADER_LOCATION) == HEADER_NEVER)
        return ST_OK;
    cJSON *json = cJSON_ParseWithLength(found->body, found->length);
    const char *href = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "href"));
    const char *copy = href ? arena_strdup(&rq->arena, href) : NULL;
    const bool lost = href && !copy;
    cJSON_Delete(json);
    if (copy)
        response_header(rs, HEADER_LOCATION, copy);
    return lost ? error_no_memory(err) : ST_OK;
}

/* *known: the key was used, and *rs is what it was answered. Fails: PROBLEM_IDEMPOTENCY_MISMATCH. */
static enum status replay(struct request *rq, struct store *store, const struct id *print, struct response *rs,
                          bool *known, struct error *err) {
    enum response_match match;
    struct stored_response found;
    const char *owner = key_owner(rq), *key = rq->idempotency_key;
    enum status st =
        owner ? response_find(store, owner, key, print->hex, &rq->arena, &match, &found, err) : error_no_memory(err);
    if (st)
        return st;
    *known = match != RESPONSE_NEW;
    if (match == RESPONSE_OTHER)
        return problem_fail(err, PROBLEM_IDEMPOTENCY_MISMATCH,
                            "the Idempotency-Key was used with another method, path or body");
    if (match == RESPONSE_SAME) {
        response_bytes(rs, (unsigned)found.status, found.content_type, found.body, found.length);
        response_header(rs, HEADER_IDEMPOTENT_REPLAYED, "true");
        return repeat_location(rq, &found, rs, err);
    }
    return ST_OK;
}

static enum status replay_early(struct request *rq, struct response *rs, bool *known, struct error *err) {
    struct store *store;
    *known = false;
    if (!has_key(rq))
        return ST_OK;
    enum status st = fingerprint(rq, &rq->fingerprint, err);
    if (!st)
        st = request_reader(rq, &store, err);
    return st ? st : replay(rq, store, &rq->fingerprint, rs, known, err);
}

static enum status run(struct request *rq, struct response *rs, struct error *err) {
    bool known = false;
    enum status st = work_check(err); /* it may have waited until nobody wants it */
    if (st || !parse_body(rq, rs))
        return st;
    st = replay_early(rq, rs, &known, err);
    return st || known ? st : rq->route->handler(rq, rs, err);
}

void dispatch_run(struct request *rq, struct response *rs) {
    struct error err = {0};
    work_enter(rq->route->flags & ROUTE_SLOW ? &rq->work : NULL);
    const enum status st = run(rq, rs, &err);
    if (st)
        fail(rq, rs, &err);
    work_leave();
}

struct commit {
    struct request *rq;
    request_effect *effect;
    void *context;
    struct response *rs;
};

static enum status keep_answer(const struct commit *c, struct store *store, struct error *err) {
    const struct stored_response answer = {.status = (int)(c->rs->status ? c->rs->status : 200),
                                           .content_type = c->rs->content_type ? c->rs->content_type : "",
                                           .body = c->rs->body ? c->rs->body : "",
                                           .length = c->rs->n};
    const char *owner = key_owner(c->rq);
    if (!owner)
        return error_no_memory(err);
    return response_put(store, owner, c->rq->idempotency_key, c->rq->fingerprint.hex, &answer, err);
}

static enum status audit(const struct commit *c, struct store *store, struct error *err) {
    const struct principal *p = &c->rq->principal;
    const struct audit_entry entry = {.token = *p->token ? p->token : NULL,
                                      .team = *p->team ? p->team : NULL,
                                      .address = c->rq->address,
                                      .method = c->rq->method,
                                      .path = c->rq->path,
                                      .status = (int)(c->rs->status ? c->rs->status : 200),
                                      .request_id = c->rq->id};
    return audit_add(store, &entry, err);
}

static enum status commit_step(void *context, struct store *store, struct error *err) {
    struct commit *c = context;
    struct usage_mark mark;
    bool known = false;
    response_clear(c->rs);
    enum status st = has_key(c->rq) ? replay(c->rq, store, &c->rq->fingerprint, c->rs, &known, err) : ST_OK;
    if (st || known)
        return st;
    st = request_has_room(c->rq, store, c->rs, err);
    if (!st)
        st = usage_mark(store, &mark, err);
    if (!st)
        st = c->effect(c->rq, store, c->context, c->rs, err);
    if (st || !usage_changed(store, &mark)) /* no change: no audit, and no stored answer is needed */
        return st;
    if (!(c->rq->route->flags & ROUTE_LEASE))
        st = audit(c, store, err);
    if (!st && has_key(c->rq))
        st = keep_answer(c, store, err);
    return st ? st : usage_add(store, &mark, c->rq->principal.team, err);
}

enum status request_commit(struct request *rq, request_effect *effect, void *context, struct response *rs,
                           struct error *err) {
    struct commit commit = {rq, effect, context, rs};
    enum status st = access_write(rq->service->access, commit_step, &commit, err);
    rq->unwritten = st == ST_ENVIRONMENT && (!err || strcmp(err->code, STORE_AWAY) != 0);
    return st;
}

/* The answer. */

/* Programs do not ask for text/html; browsers do, also for a path where nothing is. What lies under /api/ always
 * answers programs, as /openapi.json says. */
static bool is_for_people(const struct request *rq) {
    if (rq->route)
        return rq->route->flags & ROUTE_PAGE;
    return strncmp(rq->path, "/api/", 5) != 0 && rq->accept && strstr(rq->accept, "text/html");
}

/* Add Retry-After to 429 and 503. */
static void say_when(struct response *rs) {
    const unsigned status = problem_status(rs->problem);
    if ((status == 429 || status == 503) && !response_header_value(rs, HEADER_RETRY_AFTER))
        response_header(rs, HEADER_RETRY_AFTER, rs->problem == PROBLEM_DRAINING ? "5" : "1");
}

static void write_problem(struct request *rq, struct response *rs) {
    static const char no_memory[] =
        "{\"type\":\"/problems/insufficient-storage\",\"title\":\"Memory or disk is full, or the disk "
        "refuses\",\"status\":507,"
        "\"detail\":\"out of memory\",\"code\":\"insufficient-storage\",\"request_id\":\"\"}";
    static const char type[] = "application/problem+json";
    say_when(rs);
    if (is_for_people(rq) && !page_problem(rq, rs, NULL))
        return;
    free(rs->owned);
    const struct problem_details details = {rs->problem, rs->problem_detail, rs->problem_pointer, rs->n_losses,
                                            rs->losses};
    rs->owned = problem_text(&details, rq->id);
    if (rs->owned)
        response_bytes(rs, problem_status(rs->problem), type, rs->owned, strlen(rs->owned));
    else
        response_bytes(rs, problem_status(PROBLEM_STORAGE), type, no_memory, sizeof no_memory - 1);
    rs->etag = rs->cache_control = NULL;
    event_source_free(rs->source);
    rs->source = NULL;
}

void dispatch_finish(struct request *rq, struct response *rs) {
    const bool tagged = rs->etag && !rs->problem && (!rs->status || rs->status == 200) && rq->route &&
                        !strcmp(rq->route->method, "GET");
    if (tagged && !request_matches(rq, rs->etag))
        response_problem(rs, &rq->arena, PROBLEM_PRECONDITION_FAILED, "its entity tag is \"%s\"", rs->etag);
    if (rs->problem)
        write_problem(rq, rs);
    rs->status = rs->status ? rs->status : 200;
    if (tagged && rs->status == 200 && request_has_etag(rq, rs->etag)) {
        rs->status = 304;
        rs->body = NULL;
        rs->n = 0;
    }
}
