/* What the server's sources share. Only they include microhttpd.h. */
#ifndef SERVICE_HTTP_TRANSPORT_SERVER_INTERNAL_H
#define SERVICE_HTTP_TRANSPORT_SERVER_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "service/http/transport/certificates.h"
#include "service/http/transport/memory.h"
#include "service/http/transport/server.h"
#include "service/http/transport/subnet.h"
#include "service/http/transport/upload.h"
#include "service/hub.h"

/* Where a connection is; each has its deadline. */
enum peer_phase {
    PEER_IDLE,    /* between requests, or before the first byte */
    PEER_HEADERS, /* the request line is here */
    PEER_BODY,
    PEER_ANSWER, /* being worked on, or being sent */
    PEER_STREAM,
};

/* A connection. All peers of a server are in a list, under its `peers_mutex`. A socket is shut down under that mutex
 * too, and only while its peer is in the list: so its descriptor is not yet another connection's. */
struct peer {
    struct peer *next, **back;
    int fd;      /* open as long as this is in the list */
    bool is_cut; /* it was shut down, under peers_mutex */
    struct subnet subnet;
    _Atomic enum peer_phase phase;
    _Atomic double since_us;   /* when the phase began */
    _Atomic double request_us; /* when the request's headers were complete */
    atomic_bool served;        /* it has had a request: the first one must come sooner */
    struct exchange *exchange; /* that has not ended; of the connection's thread */
    struct work *work;         /* of its request on the pools, under peers_mutex: ended when the client leaves */
};

/* A request from its first line to its last byte. */
struct exchange {
    struct request request;
    struct response response;
    struct server *server;
    struct MHD_Connection *connection;
    struct peer *peer;
    const char *target; /* where the library has what `uri` is a copy of */
    char *uri;
    enum { EXCHANGE_NEW, EXCHANGE_BODY, EXCHANGE_WORKING, EXCHANGE_READY, EXCHANGE_SENT } phase;
    bool refused, close, slept;
    char *body;
    size_t body_capacity;
    struct upload upload; /* the body in place of `body`, where the route is ROUTE_UPLOAD */
    struct thread_pool_job job;
    struct hub_waiter waiter;
    struct hub_session *waits_on; /* the session, one reference of which is ours */
    struct hub_session *turn;     /* the session that called us, likewise, until the next one is called */
    double started_us;
};

/* An open stream of events. */
struct stream {
    struct stream *next, **back;
    struct event_streams *streams;
    struct exchange *exchange;
    struct MHD_Connection *connection;
    struct peer *peer;
    struct event_source *source;
    struct event_text text;
    size_t sent;
    bool news, heartbeat, doubt, closing, asleep; /* under the streams' mutex; doubt: ask whether it is still allowed */
    bool ended;
    double quiet_us;  /* since when nothing was sent, under the mutex */
    double called_us; /* when the library last asked for bytes, under the mutex */
};

struct event_streams {
    pthread_mutex_t mutex;
    struct stream *first;
    int alarm; /* an epoll: the watchman waits on it for clients that leave a stream, and for the server's end */
    struct metrics *metrics;
    double doubted_us; /* when all streams were last asked whether they are still allowed */
    bool closing;
};

struct server {
    struct server_options options;
    const struct server_handlers *handlers;
    struct service *service;
    struct MHD_Daemon *daemon;
    struct metrics *metrics;
    struct thread_pool *pool;  /* what is short: reading and writing the dataset */
    struct thread_pool *heavy; /* what computes */
    struct memory *memory;
    struct memory *uploads; /* how much of the disk they take, as memory.h counts */
    struct event_streams streams;
    pthread_mutex_t peers_mutex;
    struct peer *peers;
    unsigned n_peers;
    pthread_t watchman;
    bool watching;                 /* its thread was started */
    int stopping;                  /* an eventfd: it is to end */
    atomic_bool draining, halting; /* halting: nothing more goes to the pools */
    atomic_int in_flight, asleep;  /* exchanges; of these suspended */
    atomic_int waking;             /* threads that are resuming one */
    int listener;
    char url[128];
    struct certificates *certificates; /* NULL: without TLS */
    char *openapi;
    size_t openapi_bytes;
    struct id openapi_id;
};

/* peers.c: connections and their deadlines. */
void peers_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                  enum MHD_ConnectionNotificationCode code);
struct peer *peer_of(struct MHD_Connection *connection);
void peer_enter(struct peer *peer, enum peer_phase phase);
void *peers_watch(void *server); /* the watchman's thread */
/* From now on `work` (NULL: nothing) is what the peer's request does. */
void peer_works(struct server *server, struct peer *peer, struct work *work);
/* The service stops: everything on the pools ends at its next check. */
void peers_stop_work(struct server *server);
/* Whether a connection is taken: not any more once the server halts. */
enum MHD_Result peers_admit(void *server, const struct sockaddr *address, socklen_t n);
/* Close every connection. Those that wait for their client are closed at once, those that are being answered a little
 * later. Returns when the library has let go of all of them, or after a second. Call it when no thread of the pools
 * works for any of them. */
void peers_end(struct server *server);

/* exchange.c: libmicrohttpd's calls about one request. */
void *exchange_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result exchange_continue(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **context);
void exchange_end(void *server, struct MHD_Connection *connection, void **context,
                  enum MHD_RequestTerminationCode code);
/* For some request lines that it refuses, the library begins an exchange and never ends it. This ends it, when the
 * connection closes. */
void exchange_abandon(struct server *server, struct exchange *exchange);

/* server_lifetime.c: how many of one team's requests may wait in a pool. */
size_t server_queue_share(const struct server *server);

/* stream.c: event sources as responses. */
struct MHD_Response *stream_response(struct exchange *exchange);
void stream_head(struct response *response); /* the answer to HEAD for a stream: its type, and no events */
void streams_close(struct event_streams *streams);
/* End the streams whose client has left, wake who is due a heartbeat, shut down who has not taken anything for
 * `stall_us`. */
void streams_tick(struct event_streams *streams, double heartbeat_us, double stall_us);

#endif
