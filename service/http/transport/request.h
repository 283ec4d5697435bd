/* What a handler sees of a request. Everything has been checked by then: the route, the token and its role, the rate,
 * the names of query parameters, the content type, and that the body is JSON unless the route has ROUTE_FORM or
 * ROUTE_UPLOAD. */
#ifndef SERVICE_HTTP_TRANSPORT_REQUEST_H
#define SERVICE_HTTP_TRANSPORT_REQUEST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/work.h"
#include "dataset/holdings.h"
#include "service/http/transport/events.h"
#include "service/http/transport/response.h"
#include "service/service.h"

struct route;
struct hub_session;
struct server;

enum { REQUEST_ID_LENGTH = 16, REQUEST_MAX_PARAMETERS = 4, REQUEST_MAX_QUERY = 32 };

struct field {
    const char *name, *value;
};

struct request {
    struct arena arena; /* of this request; released when the answer was sent */
    struct service *service;
    struct event_streams *events; /* for events_publish */
    struct server *server;
    const struct route *route;
    char id[REQUEST_ID_LENGTH + 1];
    const char *method, *path; /* the path as sent, without the query */
    char address[48];          /* the peer's */
    bool loopback;
    struct principal principal;
    size_t n_parameters, n_query;
    struct field parameters[REQUEST_MAX_PARAMETERS]; /* of the path, decoded */
    struct field query[REQUEST_MAX_QUERY];           /* decoded; each name once */
    /* Headers, NULL when absent. */
    const char *authorization, *content_type, *content_encoding, *if_match, *if_none_match, *idempotency_key,
        *last_event_id, *origin, *host, *accept, *cookie;
    bool forwarded;   /* a proxy says that it passed this on, or may have: HTTP/1.0, which nginx speaks unless told */
    const char *body; /* as sent */
    size_t body_bytes;
    cJSON *json;           /* the body, where it is JSON */
    struct id fingerprint; /* of method, path and body, when there is an Idempotency-Key */
    bool unwritten;        /* the disk refused what it would have changed */
    struct work work;      /* what its handler does: bounded, and over when the client leaves or the service stops */
    uint64_t charged;      /* bytes that are counted for it (memory.h) */
    bool heavy;            /* its handler runs where computing is done */
    /* A handler that returns with one of these answered nothing, and is called again: */
    bool wants_heavy;         /* where computing is done */
    struct hub_session *busy; /* when this session is free; the handler keeps one more reference of it */
};

/* The handler answered nothing and is to be called again. */
bool request_is_again(const struct request *request);

/* A parameter of the path that the route's pattern has. */
const char *request_parameter(const struct request *request, const char *name);

/* A query parameter or NULL; as a number, *out staying as it is when absent. Fails: ST_USAGE. */
const char *request_query(const struct request *request, const char *name);
enum status request_query_integer(const struct request *request, const char *name, uint64_t min, uint64_t max,
                                  uint64_t *out, struct error *err);
enum status request_query_bool(const struct request *request, const char *name, bool *out, struct error *err);

/* The body's root, the document PROBLEM_BODY. */
struct json_at request_body(const struct request *request);

/* Make *err say that it is about item i of the body's array `list`. Returns `status`. */
enum status request_fail_item(const struct request *request, const char *list, size_t i, enum status status,
                              struct error *err);

/* The asker, as look-ups in the dataset need it; borrows from the request. */
struct viewer request_asker(const struct request *request);

/* Whose trials and sessions are seen: the team; NULL of an administrator, who sees all. */
const char *request_viewer(const struct request *request);

/* This thread's read-only store. */
enum status request_reader(struct request *request, struct store **out, struct error *err);

/* Have an effect on the dataset: `effect` runs in one transaction of the one writer, together with the audit row and,
 * if the client sent an Idempotency-Key, its stored answer; it should be brief and fill in *response, which is {0}
 * then. It may run in another thread while this one waits, and a second time after an undone first one. When it fails,
 * nothing is written. A key that was used before is answered from the store and `effect` not
 * run. Call events_publish afterwards, when the effect can be seen. Fails: what `effect` fails with, and as the store.
 */
typedef enum status request_effect(struct request *request, struct store *store, void *context,
                                   struct response *response, struct error *err);
enum status request_commit(struct request *request, request_effect *effect, void *context, struct response *response,
                           struct error *err);

/* Whether this is what If-Match and If-None-Match may say: "*", or entity tags in their quotes, commas between (RFC
 * 9110 section 13.1). */
bool request_etags_valid(const char *header);

/* True when the client has this entity tag already (If-None-Match); dispatch then answers 304. */
bool request_has_etag(const struct request *request, const char *etag);

/* If-Match holds for this entity tag, or the client sent none. */
bool request_matches(const struct request *request, const char *etag);

/* The error of a request that needs more memory than it may have; the argument is its limit in MiB. */
#define REQUEST_TOO_MUCH_MEMORY                                                                                        \
    "this needs more than %llu MiB of memory; a smaller model, cluster, list or trace would fit"

/* Count `bytes` more for this request until it ends. False: the response says that they are too many, or too many now.
 */
bool request_charge(struct request *request, uint64_t bytes, struct response *response);

void request_release(struct request *request);

#endif
