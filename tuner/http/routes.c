/* See routes.h. Matching compares the path with every row, segment by segment: under 100 rows of under 8 segments,
 * which is less than a microsecond. */
#include "tuner/http/routes.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tuner/http/api.h"

#define CREATED "200 201"
#define HTML    "text/html; charset=utf-8"

enum { FORM_BYTES = 4 << 10, BODY_BYTES = 64 << 10 };

enum {
    PAGE = ROUTE_HIDDEN | ROUTE_PAGE | ROUTE_SLOW,
    FORM = PAGE | ROUTE_FORM,
    ASSET = ROUTE_HIDDEN | ROUTE_CONDITIONAL,
    GOES_ON = ROUTE_KEYED | ROUTE_SLOW | ROUTE_GOES_ON,
    STEER = GOES_ON | ROUTE_IF_MATCH,
};

static const struct route routes[] = {
    {"GET", "/healthz", ROLE_NONE, ROUTE_WHILE_DRAINING, "", NULL, "Health", NULL, "200", "", "", api_healthz,
     "Whether the process runs"},
    {"GET", "/readyz", ROLE_NONE, ROUTE_WHILE_DRAINING, "", NULL, "Health", NULL, "200", "",
     "draining tokens-unreadable", api_readyz,
     "Whether it takes requests: its dataset can be read and it is not stopping"},
    {"GET", "/metrics", ROLE_READ, ROUTE_WHILE_DRAINING, "", NULL, NULL, "text/plain; version=0.0.4; charset=utf-8",
     "200", "", "", api_metrics, "What the service counts, for Prometheus"},
    {"GET", "/openapi.json", ROLE_NONE, ROUTE_CONDITIONAL, "", NULL, "OpenApi", NULL, "200", "", "", api_openapi,
     "This description of the service"},

    {"GET", "/api/v1/models", ROLE_READ, 0, "name order page_size page_token", NULL, "ObjectList", NULL, "200", "", "",
     api_models_list, "Models, oldest first"},
    {"POST", "/api/v1/models", ROLE_SUBMIT, ROUTE_KEYED | ROUTE_SLOW | ROUTE_BULK, "", "Model", "Object", NULL, CREATED,
     "Location", "invalid", api_models_create, "Put a model; the same one again is the same resource"},
    {"GET", "/api/v1/models/{id}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Model", NULL, "200", "", "not-found",
     api_models_get, "A model's description"},
    {"GET", "/api/v1/clusters", ROLE_READ, 0, "name order page_size page_token", NULL, "ObjectList", NULL, "200", "",
     "", api_clusters_list, "Clusters, oldest first"},
    {"POST", "/api/v1/clusters", ROLE_SUBMIT, ROUTE_KEYED | ROUTE_SLOW | ROUTE_BULK, "", "Cluster", "Object", NULL,
     CREATED, "Location", "invalid", api_clusters_create, "Put a cluster; the same one again is the same resource"},
    {"GET", "/api/v1/clusters/{id}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Cluster", NULL, "200", "", "not-found",
     api_clusters_get, "A cluster's description"},
    {"GET", "/api/v1/strategies", ROLE_READ, 0, "name order page_size page_token", NULL, "ObjectList", NULL, "200", "",
     "", api_strategies_list, "Strategies, oldest first"},
    {"POST", "/api/v1/strategies", ROLE_SUBMIT, ROUTE_KEYED | ROUTE_HEAVY | ROUTE_BULK, "", "NewStrategy", "Object",
     NULL, CREATED, "Location", "invalid not-found", api_strategies_create, "Put a strategy for a model and a cluster"},
    {"GET", "/api/v1/strategies/{id}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Strategy", NULL, "200", "", "not-found",
     api_strategies_get, "A strategy's description"},

    {"POST", "/api/v1/predictions", ROLE_READ, ROUTE_HEAVY | ROUTE_BULK, "", "PredictionRequest", "PredictionResponse",
     NULL, "200", "", "invalid not-found infeasible too-large", api_predictions_create,
     "Predict strategies for a model on a cluster, fastest first"},

    {"GET", "/api/v1/sessions", ROLE_READ, 0, "state team page_size page_token", NULL, "SessionList", NULL, "200", "",
     "", api_sessions_list, "Sessions, newest first"},
    {"POST", "/api/v1/sessions", ROLE_RUN, ROUTE_KEYED | ROUTE_HEAVY, "", "NewSession", "Session", NULL, "201",
     "Location ETag?", "invalid not-found conflict infeasible quota-exceeded", api_sessions_create,
     "Open a tuning session"},
    {"GET", "/api/v1/sessions/{session}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Session", NULL, "200", "",
     "not-found", api_sessions_get, "A session: state, budget, how far it is"},
    {"PATCH", "/api/v1/sessions/{session}", ROLE_RUN, ROUTE_KEYED | ROUTE_IF_MATCH | ROUTE_SLOW, "", "SessionChange",
     "Session", NULL, "200", "", "invalid not-found conflict quota-exceeded", api_sessions_patch,
     "Change a session's budget or who sees it"},
    {"POST", "/api/v1/sessions/{session}:pause", ROLE_RUN, STEER, "", NULL, "Session", NULL, "200", "",
     "not-found conflict", api_sessions_pause, "Suggest no more trials until it is resumed"},
    {"POST", "/api/v1/sessions/{session}:resume", ROLE_RUN, ROUTE_KEYED | ROUTE_IF_MATCH | ROUTE_SLOW, "", NULL,
     "Session", NULL, "200", "", "not-found conflict", api_sessions_resume, "Go on with a paused session"},
    {"POST", "/api/v1/sessions/{session}:stop", ROLE_RUN, STEER, "", NULL, "Session", NULL, "200", "",
     "not-found conflict", api_sessions_stop, "End it; what was found so far is its answer"},
    {"POST", "/api/v1/sessions/{session}:cancel", ROLE_RUN, STEER, "", NULL, "Session", NULL, "200", "",
     "not-found conflict", api_sessions_cancel, "End it as a mistake"},
    {"GET", "/api/v1/sessions/{session}/best", ROLE_READ, ROUTE_HEAVY, "", NULL, "Best", NULL, "200", "",
     "not-found conflict invalid", api_sessions_best,
     "The best strategy so far, and how much better it is than the best baseline"},
    {"GET", "/api/v1/sessions/{session}/importance", ROLE_READ, ROUTE_HEAVY, "", NULL, "Importance", NULL, "200", "",
     "not-found conflict invalid", api_sessions_importance,
     "Which knobs mattered, and which proposers earned their trials"},
    {"GET", "/api/v1/sessions/{session}/export", ROLE_READ, ROUTE_HEAVY, "format strict page_size page_token", NULL,
     "Export", "text/csv; charset=utf-8; header=present|application/jsonl|text/plain; charset=utf-8", "200",
     "Content-Disposition Next-Page-Token? Not-Expressed?", "not-found conflict invalid infeasible not-expressed",
     api_sessions_export,
     "The best strategy so far as a file, also for a framework, where the header Not-Expressed lists what its form "
     "cannot say; or the trials, where the header Next-Page-Token has the next page's token"},
    {"GET", "/api/v1/sessions/{session}/events", ROLE_READ, ROUTE_STREAM, "", NULL, NULL, "text/event-stream", "200",
     "", "not-found", api_sessions_events, "What happens in a session, as it happens; Last-Event-ID goes on after one"},
    {"GET", "/api/v1/sessions/{session}/trials", ROLE_READ, 0, "iterations page_size page_token", NULL, "RecordList",
     NULL, "200", "", "not-found", api_trials_list, "A session's trials by number"},
    {"GET", "/api/v1/sessions/{session}/trials/{number}", ROLE_READ, 0, "", NULL, "Record", NULL, "200", "",
     "not-found", api_trials_get, "A trial with its iterations"},
    {"POST", "/api/v1/sessions/{session}/trials", ROLE_RUN, ROUTE_KEYED | ROUTE_SLOW | ROUTE_BULK, "", "TrialBatch",
     "BatchResult", NULL, CREATED, "", "invalid not-found conflict quota-exceeded", api_trials_import,
     "Put trials that ended elsewhere into a session, all or none; its search learns from them"},
    {"POST", "/api/v1/sessions/{session}/trials:suggest", ROLE_RUN, ROUTE_KEYED | ROUTE_HEAVY, "", "SuggestRequest",
     "Suggestions", NULL, "200", "", "invalid not-found conflict quota-exceeded", api_trials_suggest,
     "Take trials to run, under a lease"},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:heartbeat", ROLE_RUN, GOES_ON | ROUTE_LEASE, "", "Heartbeat",
     "Turn", NULL, "200", "", "invalid not-found stale-attempt", api_trials_heartbeat,
     "The trial still runs: renew its lease"},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:report", ROLE_RUN, GOES_ON | ROUTE_LEASE | ROUTE_BULK, "",
     "Report", "Turn", NULL, "200", "", "invalid not-found stale-attempt", api_trials_report,
     "Times so far; is the trial worth going on with?"},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:complete", ROLE_RUN, GOES_ON | ROUTE_BULK, "", "Completion",
     "Record", NULL, "200", "", "invalid not-found stale-attempt", api_trials_complete,
     "The trial has ended: its iterations"},
    {"POST", "/api/v1/sessions/{session}/trials/{number}:fail", ROLE_RUN, GOES_ON, "", "Failure", "Record", NULL, "200",
     "", "invalid not-found stale-attempt", api_trials_fail, "The trial went wrong"},

    {"GET", "/api/v1/records", ROLE_READ, ROUTE_SLOW, "filter order iterations format references page_size page_token",
     NULL, "RecordList", "text/csv; charset=utf-8; header=present|application/jsonl", "200", "Next-Page-Token?",
     "timeout", api_records_list,
     "Everybody's trials that fit a filter; as CSV or JSON Lines the header Next-Page-Token has the token"},
    {"GET", "/api/v1/records/{uid}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Record", NULL, "200", "", "not-found",
     api_records_get, "A trial with its iterations"},
    {"PATCH", "/api/v1/records/{uid}", ROLE_SUBMIT, ROUTE_KEYED | ROUTE_IF_MATCH | ROUTE_SLOW, "", "RecordChange",
     "Record", NULL, "200", "", "invalid not-found conflict", api_records_patch,
     "Change who sees a trial of one's team that is of no session"},
    {"POST", "/api/v1/records:batchCreate", ROLE_SUBMIT, ROUTE_KEYED | ROUTE_SLOW | ROUTE_BULK, "", "RecordBatch",
     "BatchResult", NULL, CREATED, "", "invalid not-found conflict quota-exceeded", api_records_create,
     "Put trials that ended elsewhere, all or none; one that is there already is counted as a duplicate"},

    {"POST", "/api/v1/records:import", ROLE_ADMIN, ROUTE_KEYED | ROUTE_SLOW | ROUTE_BULK, "", "LineBatch",
     "LineBatchResult", NULL, CREATED, "", "invalid not-found conflict quota-exceeded", api_records_import,
     "Put what another dataset exported, all or none, with its teams, sessions and numbers; repetitions add nothing"},

    {"GET", "/api/v1/rankers", ROLE_READ, 0, "name order page_size page_token", NULL, "ObjectList", NULL, "200", "", "",
     api_rankers_list, "Learned rankers, oldest first"},
    {"POST", "/api/v1/rankers", ROLE_RUN, ROUTE_KEYED | ROUTE_SLOW, "", "NewRanker", "Operation", NULL, "202",
     "Location Retry-After?", "invalid", api_rankers_create, "Train a ranker on recorded trials"},
    {"GET", "/api/v1/rankers/{id}", ROLE_READ, ROUTE_CONDITIONAL, "", NULL, "Ranker", NULL, "200", "", "not-found",
     api_rankers_get, "What a ranker was trained on, and how well it did"},
    {"GET", "/api/v1/operations", ROLE_READ, 0, "page_size page_token", NULL, "OperationList", NULL, "200", "", "",
     api_operations_list, "Long work, newest first"},
    {"GET", "/api/v1/operations/{operation}", ROLE_READ, 0, "", NULL, "Operation", NULL, "200", "Retry-After?",
     "not-found", api_operations_get, "How a piece of long work stands; its result when it is done"},

    {"GET", "/", ROLE_READ, PAGE, "page_token", NULL, NULL, HTML, "200", "", "", page_home, "Sessions"},
    {"POST", "/sessions", ROLE_RUN, FORM | ROUTE_HEAVY, "", NULL, NULL, HTML, "303", "Location",
     "invalid not-found conflict infeasible", page_home_open, "Open a session"},
    {"GET", "/sessions/{session}", ROLE_READ, PAGE | ROUTE_HEAVY, "", NULL, NULL, HTML, "200", "", "not-found",
     page_session, "A session: its answer, trials and lessons"},
    {"GET", "/sessions/{session}/whole", ROLE_READ, PAGE | ROUTE_HEAVY, "", NULL, NULL, HTML, "200", "", "not-found",
     page_session_whole, "The same with all that must be simulated, however long it takes"},
    {"GET", "/sessions/{session}/live", ROLE_READ, PAGE | ROUTE_HEAVY, "", NULL, NULL, HTML, "200", "", "not-found",
     page_session_live, "What changes of that page while the session runs"},
    {"POST", "/sessions/{session}/steer", ROLE_RUN, FORM | ROUTE_GOES_ON, "", NULL, NULL, HTML, "303", "Location",
     "invalid not-found conflict", page_session_steer, "Pause, resume, stop or cancel a session"},
    {"GET", "/strategies/{id}", ROLE_READ, PAGE | ROUTE_HEAVY, "model cluster", NULL, NULL, HTML, "200", "",
     "not-found invalid", page_strategy, "A strategy: what it does, and when"},
    {"GET", "/compare", ROLE_READ, PAGE | ROUTE_HEAVY, "a b model cluster", NULL, NULL, HTML, "200", "",
     "not-found invalid", page_compare, "Two strategies on one time axis"},
    {"GET", "/dataset", ROLE_READ, PAGE, "filter order page_token", NULL, NULL, HTML, "200", "", "timeout",
     page_dataset, "Everybody's trials"},
    {"GET", "/models", ROLE_READ, PAGE, "page_token", NULL, NULL, HTML, "200", "", "", page_models, "Models"},
    {"GET", "/clusters", ROLE_READ, PAGE, "page_token", NULL, NULL, HTML, "200", "", "", page_clusters, "Clusters"},
    {"GET", "/sign-in", ROLE_NONE, PAGE, "", NULL, NULL, HTML, "303", "Location", "unauthorized", page_sign_in,
     "A form for a token"},
    {"POST", "/sign-in", ROLE_NONE, FORM, "", NULL, NULL, HTML, "303", "Location Set-Cookie",
     "unauthorized tokens-unreadable", page_sign_in_send, "Sign a browser in with a token"},
    {"POST", "/sign-out", ROLE_NONE, FORM, "", NULL, NULL, HTML, "303", "Location Set-Cookie", "", page_sign_out,
     "Sign the browser out"},
    {"GET", "/problems/{code}", ROLE_NONE, PAGE, "", NULL, NULL, HTML, "200", "", "not-found", page_problem_kind,
     "What a code of a problem means"},
    {"GET", "/assets/page.css", ROLE_NONE, ASSET, "", NULL, NULL, "text/css; charset=utf-8", "200", "", "", page_style,
     "The pages' style sheet"},
    {"GET", "/assets/page.js", ROLE_NONE, ASSET, "", NULL, NULL, "text/javascript; charset=utf-8", "200", "", "",
     page_script, "What keeps pages up to date"},
    {"GET", "/favicon.ico", ROLE_NONE, ASSET, "", NULL, NULL, "image/svg+xml", "200", "", "", page_icon,
     "The pages' icon"},
};

const struct route *routes_list(size_t *n) {
    *n = sizeof routes / sizeof *routes;
    return routes;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

const char *routes_decode(struct arena *arena, const char *text, size_t n) {
    char *out = arena_alloc(arena, n + 1, 1);
    size_t k = 0;
    for (size_t i = 0; out && i < n; i++) {
        if (text[i] != '%') {
            out[k++] = text[i];
            continue;
        }
        int high = i + 2 < n ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low < 0)
            return NULL;
        out[k++] = (char)(16 * high + low);
        i += 2;
    }
    return out && text_is_clean(out, k) ? out : NULL;
}

bool routes_has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* One segment of a pattern against one of a path: "{name}", "{name}:verb" or the words themselves. */
static enum route_match match_segment(const char *pattern, size_t np, const char *path, size_t n,
                                      struct request *request) {
    if (*pattern != '{')
        return np == n && !memcmp(pattern, path, n) ? ROUTE_FOUND : ROUTE_NO_PATH;
    const char *close = memchr(pattern, '}', np);
    const size_t name = (size_t)(close - pattern) - 1, tail = np - name - 2;
    if (n <= tail || memcmp(path + n - tail, close + 1, tail) || memchr(path, ':', n - tail))
        return ROUTE_NO_PATH;
    struct field *field = &request->parameters[request->n_parameters++];
    field->name = arena_copy(&request->arena, pattern + 1, name);
    field->value = routes_decode(&request->arena, path, n - tail);
    return field->name && field->value && *field->value ? ROUTE_FOUND : ROUTE_BAD_PATH;
}

static enum route_match match_path(const char *pattern, const char *path, struct request *request) {
    request->n_parameters = 0;
    while (*pattern == '/' && *path == '/') {
        const size_t np = strcspn(++pattern, "/"), n = strcspn(++path, "/");
        enum route_match match = np && n   ? match_segment(pattern, np, path, n, request)
                                 : np == n ? ROUTE_FOUND
                                           : ROUTE_NO_PATH;
        if (match != ROUTE_FOUND)
            return match;
        pattern += np;
        path += n;
    }
    return !*pattern && !*path ? ROUTE_FOUND : ROUTE_NO_PATH;
}

enum route_match routes_match(const struct route *table, size_t n_routes, const char *method, const char *path,
                              struct request *request, const struct route **out, char *allow, size_t n) {
    const char *wanted = strcmp(method, "HEAD") ? method : "GET";
    size_t used = 0;
    enum route_match result = ROUTE_NO_PATH;
    allow[0] = '\0';
    for (size_t i = 0; i < n_routes; i++) {
        enum route_match match = match_path(table[i].pattern, path, request);
        if (match == ROUTE_BAD_PATH)
            return match;
        if (match != ROUTE_FOUND)
            continue;
        if (!strcmp(table[i].method, wanted)) {
            *out = &table[i];
            return ROUTE_FOUND;
        }
        result = ROUTE_NO_METHOD;
        if (used < n)
            used += (size_t)snprintf(allow + used, n - used, "%s%s", used ? ", " : "", table[i].method);
    }
    return result;
}

uint64_t routes_body_bytes(const struct route *route, uint64_t most) {
    const uint64_t bytes = route->flags & ROUTE_BULK ? most : route->flags & ROUTE_FORM ? FORM_BYTES : BODY_BYTES;
    return bytes < most ? bytes : most;
}

void routes_problems(const struct route *route, bool out[PROBLEM_COUNT]) {
    for (size_t i = 0; i < PROBLEM_COUNT; i++)
        out[i] = i != PROBLEM_NONE && routes_has_word(route->problems, problem_code((enum problem)i));
    out[PROBLEM_BAD_REQUEST] = out[PROBLEM_BAD_FRAMING] = out[PROBLEM_BAD_PARAMETER] = true;
    out[PROBLEM_HEADERS_TOO_LARGE] = out[PROBLEM_INTERNAL] = out[PROBLEM_STORAGE] = true;
    out[PROBLEM_OVERLOADED] = true;
    if (route->role != ROLE_NONE)
        out[PROBLEM_UNAUTHORIZED] = out[PROBLEM_TOKENS_UNREADABLE] = out[PROBLEM_FORBIDDEN] =
            out[PROBLEM_RATE_LIMITED] = true;
    if (!(route->flags & ROUTE_WHILE_DRAINING))
        out[PROBLEM_DRAINING] = true;
    if (route->flags & ROUTE_SLOW)
        out[PROBLEM_RATE_LIMITED] = true;
    if ((route->flags & ROUTE_HEAVY) == ROUTE_HEAVY)
        out[PROBLEM_TOO_LARGE] = true;
    if (route->flags & (ROUTE_IF_MATCH | ROUTE_CONDITIONAL))
        out[PROBLEM_PRECONDITION_FAILED] = true;
    if (route->flags & ROUTE_KEYED)
        out[PROBLEM_IDEMPOTENCY_MISMATCH] = true;
    if (route->flags & ROUTE_KEYED && !(route->flags & ROUTE_GOES_ON))
        out[PROBLEM_QUOTA] = true;
    if (strcmp(route->method, "GET"))
        out[PROBLEM_CROSS_ORIGIN] = out[PROBLEM_TOO_LARGE] = true;
    if (route->request)
        out[PROBLEM_BAD_JSON] = out[PROBLEM_UNSUPPORTED_MEDIA_TYPE] = out[PROBLEM_INVALID] = true;
}

/* Of a good answer. A repeated one is told by its body and "href" alone, so it has no entity tag. */
static enum header_duty good_header(const struct route *route, enum header header) {
    char maybe[64];
    if (routes_has_word(route->headers, header_name(header)))
        return HEADER_ALWAYS;
    snprintf(maybe, sizeof maybe, "%s?", header_name(header));
    if (routes_has_word(route->headers, maybe))
        return HEADER_MAYBE;
    if (header == HEADER_IDEMPOTENT_REPLAYED)
        return route->flags & ROUTE_KEYED ? HEADER_MAYBE : HEADER_NEVER;
    if (header != HEADER_ETAG || !(route->flags & (ROUTE_CONDITIONAL | ROUTE_IF_MATCH)))
        return HEADER_NEVER;
    return route->flags & ROUTE_KEYED ? HEADER_MAYBE : HEADER_ALWAYS;
}

enum header_duty routes_header(const struct route *route, unsigned status, enum header header) {
    const enum header_duty everywhere = header_everywhere(header);
    if (everywhere != HEADER_NEVER)
        return everywhere;
    if (status < 400)
        return good_header(route, header);
    const bool told = header == HEADER_WWW_AUTHENTICATE ? status == 401
                      : header == HEADER_RETRY_AFTER    ? status == 429 || status == 503
                                                        : false;
    return told ? HEADER_ALWAYS : HEADER_NEVER;
}
