/* The HTTP server: sockets, limits, deadlines and threads, on libmicrohttpd. Handlers never see the library.
 *
 * As many threads as cores wait on epoll, each with its own connections. A handler that may take long runs on a worker
 * pool while its connection sleeps (suspended); so do connections of event streams between events. libmicrohttpd's
 * timeout restarts with every byte, so a thread of ours cuts what is past an absolute deadline. What could be read in
 * two ways (both lengths, repeated lengths or hosts, encodings other than chunked) is refused with 400 and the
 * connection closed.
 * Threads: server_drain and server_reload from any; the rest from the one that started it. */
#ifndef SERVICE_HTTP_TRANSPORT_SERVER_H
#define SERVICE_HTTP_TRANSPORT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "service/http/transport/events.h"
#include "service/http/transport/metrics.h"
#include "service/http/transport/route.h"
#include "service/http/transport/thread_pool.h"
#include "service/service.h"

struct server; /* opaque */

/* What a server does with a request; http.c has the service's. */
struct server_handlers {
    /* Before its body is read: cut `uri` at '?', find its route, principal and query. False: *response says why not. */
    bool (*admit)(struct request *request, const char *uri, bool has_body, struct response *response);
    void (*run)(struct request *request, struct response *response);    /* parse the body, call the route's handler */
    void (*finish)(struct request *request, struct response *response); /* make the answer ready to be sent */
    /* The text of /openapi.json, malloc'd. */
    enum status (*describe)(size_t n_routes, const struct route *routes, char **out, struct error *err);
};

struct server_options {
    const char *host;                                     /* an address to listen on: "127.0.0.1", "::1", "0.0.0.0" */
    uint16_t port;                                        /* 0: any that is free; server_url tells */
    const char *certificate, *key;                        /* PEM files, both or neither: TLS 1.2 and up */
    unsigned threads, workers, computers;                 /* 0: as many as cores; twice as many, 4 at least; one more */
    unsigned connections, connections_per_address, queue; /* at most; 0: 1024, 256, 256 */
    uint64_t body_bytes;                                  /* largest body; 0: 16 MiB */
    uint64_t upload_bytes;                                /* largest upload, and half of all together; 0: 512 MiB */
    /* What requests may hold together: a quarter of it as bodies and answers, the rest while computing. 0: 256 MiB, and
     * as much again for each thread that computes. */
    uint64_t memory_bytes;
    uint64_t work_bytes; /* of these, one request while it computes; 0: what is left, divided among its threads */
    double compute_s;    /* processor time of a request that readers may make; 0: 20 */
    double headers_s, body_s, request_s, idle_s; /* deadlines; 0: 10, 60, 120, 60 */
    double heartbeat_s;                          /* of event streams; 0: EVENTS_HEARTBEAT_S */
    bool access_log;                             /* a line a request */
    const struct route *routes;                  /* must outlive the server */
    size_t n_routes;
};

/* `handlers` must outlive the server. Fails: ST_ENVIRONMENT (port taken, files), ST_INVALID (certificate),
 * ST_NO_MEMORY. */
enum status server_start(const struct server_options *options, const struct server_handlers *handlers,
                         struct service *service, struct server **out, struct error *err);
const char *server_url(const struct server *server); /* "http://127.0.0.1:8642" */

/* Read certificate and key again, from the same paths: for connections from now on. Fails as server_start; then the old
 * ones stay. */
enum status server_reload(struct server *server, struct error *err);

/* Take no new work: readyz and new requests say 503, no connection is accepted, streams end. Returns at once. */
void server_drain(struct server *server);
bool server_is_tls(const struct server *server);
bool server_draining(const struct server *server);

/* Drain, let what runs end for at most `patience_s`, then close everything and free it. NULL is allowed. */
void server_stop(struct server *server, double patience_s);

/* For handlers. */
struct metrics *server_metrics(struct server *server);
struct thread_pool *server_pool(struct server *server); /* of what computes */
uint64_t server_memory_held(struct server *server);
uint64_t server_upload_bytes(const struct server *server); /* the largest upload */
/* /openapi.json and its entity tag, as long as the server. */
const char *server_openapi(const struct server *server, size_t *n, const char **etag);
const struct route *server_routes(const struct server *server, size_t *n);

#endif
