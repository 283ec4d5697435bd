/* Connections and their absolute deadlines. libmicrohttpd's timeout is of inactivity: a client that sends a byte now
 * and then holds a connection for ever. So one thread looks at all connections four times a second, and whenever a
 * client leaves an event stream. It shuts down the socket of a connection that is in one phase for too long; the
 * library then sees the end and cleans up. The deadlines are shorter while most connections are taken. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "service/http/transport/server_internal.h"

enum { TICK_MS = 250 };
static const double STREAM_STALL_US = 60e6;
/* How long answers may still be sent when the server ends, and how long all that takes at most. */
static const double LAST_WORDS_US = 0.1e6, END_US = 1e6, END_POLL_US = 2e3;
/* Deadlines while the server is crowded: until the headers of a request are whole, and of a connection that is idle
 * after a request. */
static const double CROWDED_S = 0.4, CROWDED_IDLE_S = 5;

static void cut(struct peer *peer);

/* With the mutex held. The library counts whole addresses only, and it refuses before this. */
static bool has_too_many(const struct server *server, const struct subnet *subnet) {
    unsigned n = 0;
    for (const struct peer *peer = server->peers; peer; peer = peer->next)
        n += subnet_same(&peer->subnet, subnet);
    return n > server->options.connections_per_address;
}

static struct peer *peer_open(struct server *server, struct MHD_Connection *connection) {
    struct peer *peer = calloc(1, sizeof *peer);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!peer)
        return NULL;
    peer->fd = info ? info->connect_fd : -1;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr)
        subnet_of(info->client_addr, &peer->subnet);
    peer_enter(peer, PEER_IDLE);
    pthread_mutex_lock(&server->peers_mutex);
    peer->next = server->peers;
    peer->back = &server->peers;
    if (peer->next)
        peer->next->back = &peer->next;
    server->peers = peer;
    server->n_peers++;
    if (has_too_many(server, &peer->subnet))
        cut(peer);
    pthread_mutex_unlock(&server->peers_mutex);
    metrics_add(server->metrics, METRICS_CONNECTIONS, 1);
    return peer;
}

static void peer_close(struct server *server, struct peer *peer) {
    pthread_mutex_lock(&server->peers_mutex);
    *peer->back = peer->next;
    if (peer->next)
        peer->next->back = peer->back;
    server->n_peers--;
    pthread_mutex_unlock(&server->peers_mutex);
    metrics_add(server->metrics, METRICS_CONNECTIONS, -1);
    free(peer);
}

static void offer_certificate(struct server *server, struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (server->certificates && info && info->tls_session)
        certificates_offer(server->certificates, info->tls_session);
}

void peers_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                  enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        offer_certificate(context, connection);
        *socket_context = peer_open(context, connection);
    } else if (*socket_context) {
        exchange_abandon(context, ((struct peer *)*socket_context)->exchange);
        peer_close(context, *socket_context);
        *socket_context = NULL;
    }
}

struct peer *peer_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void peer_enter(struct peer *peer, enum peer_phase phase) {
    const double now = clock_now_us();
    atomic_store(&peer->since_us, now);
    if (phase == PEER_BODY)
        atomic_store(&peer->request_us, now);
    atomic_store(&peer->phase, phase);
}

void peer_works(struct server *server, struct peer *peer, struct work *work) {
    pthread_mutex_lock(&server->peers_mutex);
    peer->work = work;
    pthread_mutex_unlock(&server->peers_mutex);
}

void peers_stop_work(struct server *server) {
    pthread_mutex_lock(&server->peers_mutex);
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        if (peer->work)
            work_stop(peer->work, WORK_STOPPED);
    pthread_mutex_unlock(&server->peers_mutex);
}

/* With the mutex held. Three quarters of all connections are taken: those that say nothing keep others out. */
static bool is_crowded(const struct server *server) {
    return 4 * (uint64_t)server->n_peers > 3 * (uint64_t)server->options.connections;
}

/* How long ago its deadline was, negative while there is time. */
static double overdue_us(const struct server_options *o, bool crowded, struct peer *peer, double now) {
    const double age = now - atomic_load(&peer->since_us), request = now - atomic_load(&peer->request_us);
    switch (atomic_load(&peer->phase)) {
    case PEER_IDLE:
        return age - 1e6 * (peer->served ? (crowded ? CROWDED_IDLE_S : o->idle_s) : crowded ? CROWDED_S : o->headers_s);
    case PEER_HEADERS:
        return age - 1e6 * (crowded ? CROWDED_S : o->headers_s);
    case PEER_BODY:
        return fmax(age - 1e6 * o->body_s, request - 1e6 * o->request_s);
    case PEER_ANSWER:
        return request - 1e6 * o->request_s;
    default:
        return -1;
    }
}

/* The peer's client closed before the request was whole. The library misses an end that arrives together with the last
 * bytes.
 */
static bool has_left(struct peer *peer) {
    char byte;
    const enum peer_phase phase = atomic_load(&peer->phase);
    return (phase == PEER_IDLE || phase == PEER_HEADERS || phase == PEER_BODY) &&
           recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The peer's client will send nothing more, while its request is worked on. As other servers do, we take that for
 * leaving: one that still waits for the answer does not close its side before. */
static bool has_left_work(const struct peer *peer) {
    struct pollfd poller = {.fd = peer->fd, .events = POLLRDHUP};
    return peer->work && poll(&poller, 1, 0) > 0 && poller.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Cut a connection. Call with the mutex held. */
static void cut(struct peer *peer) {
    shutdown(peer->fd, SHUT_RDWR);
    peer->is_cut = true;
    if (peer->work)
        work_stop(peer->work, WORK_LEFT);
}

/* With the mutex held. A peer that was cut before is shut down again, in case the library missed the first time. While
 * the server halts, peers_end closes all connections. A closed connection looks as if its client had left, so while the
 * server halts this function does not look for such clients. */
static void cut_overdue(struct server *server) {
    const double now = clock_now_us();
    const bool crowded = is_crowded(server), halts = atomic_load(&server->halting);
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        if (!peer->is_cut && overdue_us(&server->options, crowded, peer, now) > 0) {
            cut(peer);
            metrics_increment(server->metrics, METRICS_DEADLINES);
        } else if (peer->is_cut || (!halts && (has_left(peer) || has_left_work(peer)))) {
            cut(peer);
        }
}

enum MHD_Result peers_admit(void *context, const struct sockaddr *address, socklen_t n) {
    (void)address, (void)n;
    const struct server *server = context;
    return atomic_load(&server->halting) ? MHD_NO : MHD_YES;
}

/* False: there is none. */
static bool shut_down_all(struct server *server, int how) {
    pthread_mutex_lock(&server->peers_mutex);
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        shutdown(peer->fd, how);
    const bool any = server->peers;
    pthread_mutex_unlock(&server->peers_mutex);
    return any;
}

void peers_end(struct server *server) {
    const double start = clock_now_us();
    double us = 0;
    while (us < END_US && shut_down_all(server, us < LAST_WORDS_US ? SHUT_RD : SHUT_RDWR)) {
        clock_sleep_us(END_POLL_US);
        us = clock_now_us() - start;
    }
}

/* Until the next look is due, or a client has left its stream. False: the server ends. */
static bool wait_for_tick(struct server *server) {
    struct epoll_event events[64];
    const int n = epoll_wait(server->streams.alarm, events, sizeof events / sizeof *events, TICK_MS);
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr == server)
            return false;
    return true;
}

void *peers_watch(void *context) {
    struct server *server = context;
    while (wait_for_tick(server)) {
        pthread_mutex_lock(&server->peers_mutex);
        cut_overdue(server);
        pthread_mutex_unlock(&server->peers_mutex);
        streams_tick(&server->streams, 1e6 * server->options.heartbeat_s, STREAM_STALL_US);
    }
    return NULL;
}
