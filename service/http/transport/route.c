/* See route.h. Matching compares the path with every row, segment by segment: under 100 rows of under 8 segments,
 * which is less than a microsecond. */
#include "service/http/transport/route.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { FORM_BYTES = 4 << 10, BODY_BYTES = 64 << 10 };

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

const char *route_decode(struct arena *arena, const char *text, size_t n) {
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

bool route_has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* Match a segment of a path with one of a pattern: "{name}", "{name}:verb" or the words themselves. */
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
    field->value = route_decode(&request->arena, path, n - tail);
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

enum route_match route_match(const struct route *table, size_t n_routes, const char *method, const char *path,
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

uint64_t route_body_bytes(const struct route *route, uint64_t most) {
    const uint64_t bytes = route->flags & ROUTE_BULK ? most : route->flags & ROUTE_FORM ? FORM_BYTES : BODY_BYTES;
    return bytes < most ? bytes : most;
}

void route_problems(const struct route *route, bool out[PROBLEM_COUNT]) {
    for (size_t i = 0; i < PROBLEM_COUNT; i++)
        out[i] = i != PROBLEM_NONE && route_has_word(route->problems, problem_code((enum problem)i));
    out[PROBLEM_BAD_REQUEST] = out[PROBLEM_BAD_FRAMING] = out[PROBLEM_BAD_PARAMETER] = true;
    out[PROBLEM_HEADERS_TOO_LARGE] = out[PROBLEM_INTERNAL] = out[PROBLEM_STORAGE] = out[PROBLEM_DATABASE_AWAY] = true;
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
        out[PROBLEM_UNSUPPORTED_MEDIA_TYPE] = out[PROBLEM_INVALID] = true;
    if (route->request && !(route->flags & ROUTE_UPLOAD))
        out[PROBLEM_BAD_JSON] = true;
}

/* Whether a good answer has the header. A repeated answer is made from the stored body and its "href", so it has no
 * entity tag. */
static enum header_duty good_header(const struct route *route, enum header header) {
    char maybe[64];
    if (route_has_word(route->headers, header_name(header)))
        return HEADER_ALWAYS;
    snprintf(maybe, sizeof maybe, "%s?", header_name(header));
    if (route_has_word(route->headers, maybe))
        return HEADER_MAYBE;
    if (header == HEADER_IDEMPOTENT_REPLAYED)
        return route->flags & ROUTE_KEYED ? HEADER_MAYBE : HEADER_NEVER;
    if (header != HEADER_ETAG || !(route->flags & (ROUTE_CONDITIONAL | ROUTE_IF_MATCH)))
        return HEADER_NEVER;
    return route->flags & ROUTE_KEYED ? HEADER_MAYBE : HEADER_ALWAYS;
}

enum header_duty route_header(const struct route *route, unsigned status, enum header header) {
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
