/* The headers of answers. What is sent has a row here, so that /openapi.json can say which answers have which
 * (route_header() in route.h); HTTP's own (Content-Type, Content-Length, Date, Connection) need none. */
#ifndef SERVICE_HTTP_TRANSPORT_HEADERS_H
#define SERVICE_HTTP_TRANSPORT_HEADERS_H

#include <stdbool.h>

/* X(constant, name, JSON Schema as in schemas.h, what it says) */
#define HEADER_TABLE(X)                                                                                                \
    X(HEADER_ALLOW, "Allow", "{'type':'string'}", "The methods that the path has")                                     \
    X(HEADER_CACHE_CONTROL, "Cache-Control", "{'type':'string'}", "Who may keep the answer, and for how long")         \
    X(HEADER_CONTENT_DISPOSITION, "Content-Disposition", "{'type':'string','pattern':'^attachment; filename='}",       \
      "What a browser should save it as")                                                                              \
    X(HEADER_CONTENT_SECURITY_POLICY, "Content-Security-Policy", "{'type':'string'}", "What a page may load and run")  \
    X(HEADER_CROSS_ORIGIN_RESOURCE_POLICY, "Cross-Origin-Resource-Policy", "{'const':'same-origin'}",                  \
      "No other site's page may have it")                                                                              \
    X(HEADER_ETAG, "ETag", "{'type':'string','pattern':'^\\\\x22[0-9a-f]+\\\\x22$'}",                                  \
      "Its entity tag, for If-Match and If-None-Match")                                                                \
    X(HEADER_IDEMPOTENT_REPLAYED, "Idempotent-Replayed", "{'const':'true'}",                                           \
      "The Idempotency-Key was used before, and this is what was answered then")                                       \
    X(HEADER_LOCATION, "Location", "{'type':'string','pattern':'^/'}", "The path of what was made")                    \
    X(HEADER_NEXT_PAGE_TOKEN, "Next-Page-Token", "{'type':'string','minLength':1}",                                    \
      "page_token of the next page; absent on the last page")                                                          \
    X(HEADER_NOTE, "Note", "{'type':'string','minLength':1}", "Of CSV or JSON Lines without trials: why, what to do")  \
    X(HEADER_NOT_EXPRESSED, "Not-Expressed", "{'type':'string','minLength':1}",                                        \
      "What the framework's form cannot express, commas between; absent when it expresses all")                        \
    X(HEADER_REFERRER_POLICY, "Referrer-Policy", "{'enum':['no-referrer','same-origin']}",                             \
      "To which sites a browser tells this address")                                                                   \
    X(HEADER_REQUEST_ID, "X-Request-Id", "{'type':'string','pattern':'^[0-9a-f]{16}$'}",                               \
      "What the service's log calls this request")                                                                     \
    X(HEADER_RETRY_AFTER, "Retry-After", "{'type':'integer','minimum':1}", "Seconds after which to ask again")         \
    X(HEADER_SET_COOKIE, "Set-Cookie", "{'type':'string'}", "Who is signed in at the pages")                           \
    X(HEADER_STRICT_TRANSPORT_SECURITY, "Strict-Transport-Security", "{'type':'string'}",                              \
      "Only over TLS: use TLS alone from now on")                                                                      \
    X(HEADER_WWW_AUTHENTICATE, "WWW-Authenticate", "{'type':'string'}", "How to authenticate")                         \
    X(HEADER_X_CONTENT_TYPE_OPTIONS, "X-Content-Type-Options", "{'const':'nosniff'}",                                  \
      "Browsers must not guess another type")

enum header {
#define X(constant, name, schema, about) constant,
    HEADER_TABLE(X)
#undef X
        HEADER_COUNT
};

const char *header_name(enum header header);
const char *header_schema(enum header header);
const char *header_about(enum header header);

/* Whether an answer has it. */
enum header_duty { HEADER_NEVER, HEADER_MAYBE, HEADER_ALWAYS };

/* Whether the answers of every route have it. HEADER_NEVER: the route decides (route_header). */
enum header_duty header_everywhere(enum header header);

#endif
