/* See server.h. Stopping libmicrohttpd 0.9.75 with a suspended connection ends the process. So does stopping it while
 * it refuses a request by itself. So stopping goes in steps: no new requests, streams end, workers finish and resume
 * their connections, no new connections, all of them close, and only then the daemon ends, which has nothing left to
 * do. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/http/transport/server_internal.h"
#include "service/hub.h"

enum { BACKLOG = 1024, MEMORY_BYTES = 32 << 10, MEMORY_PIECE = 256 << 20, GIVES_WAY = 10 };
/* TLS 1.2, too, only with a key of each connection's own (ECDHE), so that recorded traffic stays secret when the
 * certificate's key is lost, and only with authenticated ciphers. */
static const char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA:+ECDHE-ECDSA:"
                                     "-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD";
static const double STOP_POLL_US = 2000, AGAIN_US = 50e3;

static void fill_defaults(struct server_options *o) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned n = cores > 0 ? (unsigned)cores : 1;
    o->host = o->host ? o->host : "127.0.0.1";
    o->threads = o->threads ? o->threads : n;
    o->workers = o->workers ? o->workers : n > 2 ? 2 * n : 4;
    o->computers = o->computers ? o->computers : n + 1;
    o->memory_bytes = o->memory_bytes ? o->memory_bytes : (uint64_t)MEMORY_PIECE * (1 + o->computers);
    o->work_bytes = o->work_bytes ? o->work_bytes : o->memory_bytes * 3 / 4 / o->computers;
    o->compute_s = o->compute_s > 0 ? o->compute_s : 20;
    o->connections = o->connections ? o->connections : 1024;
    o->connections_per_address = o->connections_per_address ? o->connections_per_address : 256;
    o->queue = o->queue ? o->queue : 256;
    o->body_bytes = o->body_bytes ? o->body_bytes : 16 << 20;
    o->upload_bytes = o->upload_bytes ? o->upload_bytes : 512 << 20;
    o->headers_s = o->headers_s > 0 ? o->headers_s : 10;
    o->body_s = o->body_s > 0 ? o->body_s : 60;
    o->request_s = o->request_s > 0 ? o->request_s : 120;
    o->idle_s = o->idle_s > 0 ? o->idle_s : 60;
    o->heartbeat_s = o->heartbeat_s > 0 ? o->heartbeat_s : EVENTS_HEARTBEAT_S;
}

static enum status bind_to(struct server *s, const struct addrinfo *at, struct error *err) {
    const int yes = 1;
    const struct server_options *o = &s->options;
    s->listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0)
        return error_set(err, ST_ENVIRONMENT, "no socket: %s", strerror(errno));
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(s->listener, at->ai_addr, at->ai_addrlen) || listen(s->listener, BACKLOG))
        return error_set(err, ST_ENVIRONMENT, "cannot listen on %s port %u: %s", o->host, o->port, strerror(errno));
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof bound;
    char port[16];
    if (getsockname(s->listener, (struct sockaddr *)&bound, &n) ||
        getnameinfo((struct sockaddr *)&bound, n, NULL, 0, port, sizeof port, NI_NUMERICSERV))
        return error_set(err, ST_ENVIRONMENT, "cannot tell the port: %s", strerror(errno));
    snprintf(s->url, sizeof s->url, at->ai_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s",
             s->certificates ? "https" : "http", o->host, port);
    return ST_OK;
}

static enum status open_listener(struct server *s, struct error *err) {
    char port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    snprintf(port, sizeof port, "%u", s->options.port);
    if (getaddrinfo(s->options.host, port, &hints, &found))
        return error_set(err, ST_USAGE, "\"%s\" is no address to listen on, like 127.0.0.1 or ::1", s->options.host);
    enum status st = bind_to(s, found, err);
    freeaddrinfo(found);
    return st;
}

static void log_library(void *context, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void log_library(void *context, const char *format, va_list args) {
    (void)context;
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    log_debug("http: %s", line);
}

/* Leave escapes as they are: route.c decodes them, strictly. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
    (void)context, (void)connection;
    return strlen(text);
}

static enum status start_daemon(struct server *s, struct error *err) {
    const struct server_options *o = &s->options;
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                           (s->certificates ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)certificates_retrieve},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_priorities},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    const int listener = fcntl(s->listener, F_DUPFD_CLOEXEC, 0); /* the library's, which closes it */
    s->daemon = MHD_start_daemon(
        flags, 0, peers_admit, s, exchange_continue, s, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_THREAD_POOL_SIZE, o->threads, MHD_OPTION_CONNECTION_LIMIT,
        o->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->connections_per_address,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_NOTIFY_CONNECTION, peers_notify, s, MHD_OPTION_NOTIFY_COMPLETED, exchange_end, s,
        MHD_OPTION_URI_LOG_CALLBACK, exchange_begin, s, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, s, MHD_OPTION_ARRAY,
        s->certificates ? tls : plain, MHD_OPTION_END);
    return s->daemon ? ST_OK : error_set(err, ST_ENVIRONMENT, "the server did not start");
}

static enum status start_watchman(struct server *s, struct error *err) {
    struct epoll_event end = {.events = EPOLLIN, .data.ptr = s};
    s->streams.alarm = epoll_create1(EPOLL_CLOEXEC);
    s->stopping = eventfd(0, EFD_CLOEXEC);
    if (s->streams.alarm < 0 || s->stopping < 0 || epoll_ctl(s->streams.alarm, EPOLL_CTL_ADD, s->stopping, &end))
        return error_set(err, ST_ENVIRONMENT, "no descriptors to watch connections with: %s", strerror(errno));
    s->watching = !pthread_create(&s->watchman, NULL, peers_watch, s);
    return s->watching ? ST_OK : error_set(err, ST_ENVIRONMENT, "no more threads");
}

size_t server_queue_share(const struct server *s) {
    return (s->options.queue + 1) / 2;
}

/* A team that asks for as much as it can leaves one thread of each pool to others. */
static bool open_pools(struct server *s) {
    const struct server_options *o = &s->options;
    const struct thread_pool_options quick = {.threads = o->workers,
                                              .share = o->workers > 1 ? o->workers - 1 : 1,
                                              .queue = o->queue,
                                              .queue_share = server_queue_share(s)};
    struct thread_pool_options heavy = quick;
    heavy.threads = o->computers;
    heavy.share = o->computers > 1 ? o->computers - 1 : 1;
    heavy.niceness = GIVES_WAY;
    s->pool = thread_pool_new(&quick);
    s->heavy = thread_pool_new(&heavy);
    return s->pool && s->heavy;
}

static enum status start_parts(struct server *s, struct error *err) {
    const struct server_options *o = &s->options;
    enum status st = ST_OK;
    if (!o->certificate != !o->key)
        return error_set(err, ST_USAGE, "TLS needs both a certificate and its key");
    if (o->key)
        st = certificates_open(o->certificate, o->key, &s->certificates, err);
    if (st)
        return st;
    s->metrics = s->streams.metrics = metrics_new(o->n_routes, o->routes);
    s->memory = memory_new(o->memory_bytes / 4);
    s->uploads = memory_new(2 * o->upload_bytes);
    if (!s->metrics || !s->memory || !s->uploads || !open_pools(s))
        return error_no_memory(err);
    st = s->handlers->describe(o->n_routes, o->routes, &s->openapi, err);
    s->openapi_bytes = st ? 0 : strlen(s->openapi);
    if (!st)
        st = id_of(s->openapi, s->openapi_bytes, &s->openapi_id, err);
    if (!st)
        st = open_listener(s, err);
    if (st)
        return st;
    st = start_watchman(s, err);
    return st ? st : start_daemon(s, err);
}

static void publish_session(void *context, const char *session) {
    struct server *s = context;
    events_publish(&s->streams, session);
}

enum status server_start(const struct server_options *options, const struct server_handlers *handlers,
                         struct service *service, struct server **out, struct error *err) {
    struct server *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->options = *options;
    s->handlers = handlers;
    s->service = service;
    s->listener = s->streams.alarm = s->stopping = -1;
    fill_defaults(&s->options);
    pthread_mutex_init(&s->peers_mutex, NULL);
    pthread_mutex_init(&s->streams.mutex, NULL);
    enum status st = start_parts(s, err);
    if (st) {
        server_stop(s, 0);
        return st;
    }
    hub_listen(service->hub, publish_session, s);
    *out = s;
    return ST_OK;
}

void server_drain(struct server *s) {
    atomic_store(&s->draining, true);
    streams_close(&s->streams);
}

/* Wait until *count is 0, for at most `patience_us`; negative is for ever. */
static void wait_for_none(atomic_int *count, double patience_us) {
    const double start = clock_now_us();
    while (atomic_load(count) > 0 && (patience_us < 0 || clock_now_us() - start < patience_us))
        clock_sleep_us(STOP_POLL_US);
}

/* While it drains, new connections are still taken, and told that the service is stopping. MHD_quiesce_daemon is not
 * for that: it races with the library's threads for the listener, and who loses ends the process (libmicrohttpd 0.9.75,
 * and since). */
static void stop_daemon(struct server *s, double patience_s) {
    wait_for_none(&s->in_flight, 1e6 * patience_s);
    streams_close(&s->streams);
    atomic_store(&s->halting, true);
    hub_halt(s->service->hub);            /* requests may wait for what a session computes */
    while (atomic_load(&s->asleep) > 0) { /* some may begin just now */
        peers_stop_work(s);
        wait_for_none(&s->asleep, AGAIN_US);
    }
    wait_for_none(&s->waking, -1);
    peers_end(s);
    MHD_stop_daemon(s->daemon);
}

static void stop_watchman(struct server *s) {
    eventfd_write(s->stopping, 1);
    pthread_join(s->watchman, NULL);
}

static void close_descriptor(int fd) {
    if (fd >= 0)
        close(fd);
}

void server_stop(struct server *s, double patience_s) {
    if (!s)
        return;
    hub_listen(s->service->hub, NULL, NULL);
    server_drain(s);
    if (s->daemon)
        stop_daemon(s, patience_s);
    if (s->watching)
        stop_watchman(s);
    close_descriptor(s->listener);
    close_descriptor(s->streams.alarm);
    close_descriptor(s->stopping);
    thread_pool_free(s->pool);
    thread_pool_free(s->heavy);
    memory_free(s->memory);
    memory_free(s->uploads);
    metrics_free(s->metrics);
    pthread_mutex_destroy(&s->streams.mutex);
    pthread_mutex_destroy(&s->peers_mutex);
    certificates_free(s->certificates);
    free(s->openapi);
    free(s);
}

enum status server_reload(struct server *s, struct error *err) {
    return s->certificates ? certificates_reload(s->certificates, err) : ST_OK;
}

bool server_is_tls(const struct server *s) {
    return s->certificates;
}

bool server_draining(const struct server *s) {
    return atomic_load(&s->draining);
}

const char *server_url(const struct server *s) {
    return s->url;
}

struct metrics *server_metrics(struct server *s) {
    return s->metrics;
}

struct thread_pool *server_pool(struct server *s) {
    return s->heavy;
}

uint64_t server_memory_held(struct server *s) {
    return memory_held(s->memory);
}

uint64_t server_upload_bytes(const struct server *s) {
    return s->options.upload_bytes;
}

const char *server_openapi(const struct server *s, size_t *n, const char **etag) {
    *n = s->openapi_bytes;
    *etag = s->openapi_id.hex;
    return s->openapi;
}

const struct route *server_routes(const struct server *s, size_t *n) {
    *n = s->options.n_routes;
    return s->options.routes;
}
