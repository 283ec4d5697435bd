/* One request as libmicrohttpd tells of it: its first line (begin), its headers, pieces of its body and a last call
 * without any (continue), and its end. An answer can be queued at the headers, which closes the connection when a body
 * is on its way, or at the last call; a refusal in between waits while the body is read and dropped.
 *
 * A slow handler suspends the connection at the last call and runs on the pool; resuming brings another call. */
#include <arpa/inet.h>
#include <ctype.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/http/transport/server_internal.h"

enum {
    DRAIN_BYTES = 64 << 10, /* a refused body up to this is read to its end, so that the connection can stay */
    TRIMMED_BYTES = 8 << 20,
    COUNTED_BYTES = 64 << 10, /* smaller bodies and answers are bounded by the number of connections */
    HEAD_BYTES = 16 << 10,    /* target and headers; below the library's limit, so that we refuse what is larger */
};

/* Random enough to tell requests apart, cheap enough for every one: a random start in each thread, then a mixed count.
 */
static void make_id(char out[REQUEST_ID_LENGTH + 1]) {
    static _Thread_local uint64_t state;
    static _Thread_local bool seeded;
    if (!seeded) {
        if (getrandom(&state, sizeof state, 0) != (ssize_t)sizeof state)
            state = (uint64_t)(uintptr_t)&state ^ (uint64_t)clock_now_us();
        seeded = true;
    }
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    for (int i = 0; i < REQUEST_ID_LENGTH; i++, z >>= 4)
        out[i] = "0123456789abcdef"[z & 15];
    out[REQUEST_ID_LENGTH] = '\0';
}

void *exchange_begin(void *context, const char *uri, struct MHD_Connection *connection) {
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->server = context;
    x->connection = connection;
    x->peer = peer_of(connection);
    x->target = uri;
    x->uri = strdup(uri);
    x->started_us = clock_now_us();
    make_id(x->request.id);
    if (!x->uri || !x->peer) {
        free(x->uri);
        free(x);
        return NULL;
    }
    x->peer->served = true;
    x->peer->exchange = x;
    peer_enter(x->peer, PEER_HEADERS);
    atomic_fetch_add(&x->server->in_flight, 1);
    metrics_add(x->server->metrics, METRICS_IN_FLIGHT, 1);
    return x;
}

/* Headers. */

struct headers {
    struct request *request;
    unsigned repeated;
    bool malformed;  /* a name that is no token, or a value with control characters */
    bool torn;       /* some bytes are in no name and no value */
    const char *end; /* where the next name would be */
    size_t bytes;
    const char *length, *encoding, *expect;
};

/* RFC 9110 §5.6.2. */
static bool is_token(const char *name, size_t n) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && (!name[i] || !strchr(others, name[i])))
            return false;
    return n > 0;
}

/* A tab may stand in a value; a CR alone would be a line's end for others (RFC 9110 §5.5). */
static bool is_value(const char *value, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            return false;
    return true;
}

static enum MHD_Result see_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_bytes,
                                  const char *value, size_t value_bytes) {
    (void)kind;
    struct headers *h = context;
    struct request *rq = h->request;
    h->bytes += name_bytes + value_bytes + 4;
    h->malformed = h->malformed || !is_token(name, name_bytes) || !is_value(value, value ? value_bytes : 0);
    h->torn = h->torn || name != h->end;
    h->end = value ? value + value_bytes + 2 : NULL;
    struct {
        const char *name, **to;
    } const once[] = {
        {"Authorization", &rq->authorization},
        {"Content-Type", &rq->content_type},
        {"Content-Encoding", &rq->content_encoding},
        {"If-Match", &rq->if_match},
        {"If-None-Match", &rq->if_none_match},
        {"Host", &rq->host},
        {"Idempotency-Key", &rq->idempotency_key},
        {"Origin", &rq->origin},
        {"Last-Event-ID", &rq->last_event_id},
        {"Accept", &rq->accept},
        {"Cookie", &rq->cookie},
        {"Expect", &h->expect},
        {"Content-Length", &h->length},
        {"Transfer-Encoding", &h->encoding},
    };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (!strcasecmp(name, once[i].name)) {
            h->repeated += *once[i].to && once[i].to != &rq->accept; /* that is a list, and may come in parts */
            *once[i].to = value ? value : "";
        }
    static const char *const by_proxies[] = {"Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"};
    for (size_t i = 0; i < sizeof by_proxies / sizeof *by_proxies; i++)
        rq->forwarded = rq->forwarded || !strcasecmp(name, by_proxies[i]);
    return MHD_YES;
}

/* libmicrohttpd 0.9.75 takes a line's end without CR, cuts a target and a value at a NUL, and joins folded lines,
 * without telling. But it leaves method, target, version, names and values in its buffer, in their order. So we look at
 * the bytes between them: only blanks, colons, CR and LF may be there. Later versions refuse these themselves. */
static bool is_library_lenient(void) {
    return !strcmp(MHD_get_version(), "0.9.75");
}

static bool is_torn(const struct exchange *x, const struct headers *h, const char *method, const char *version) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return is_library_lenient() &&
           (h->torn || !info || x->target != method + strlen(method) + 1 || version != x->target + strlen(x->uri) + 1 ||
            !h->end || h->end + 2 != method + info->header_size);
}

/* Find what two readers could take for two different requests (RFC 9112 §6.3, §11.2). NULL: nothing. */
static const char *ambiguity(const struct headers *h, const char *uri, const char *version) {
    if (h->malformed)
        return "a header's name is no token, or its value has control characters";
    if (h->torn)
        return "a line's end that is not CR LF, a NUL, or a folded line";
    if (h->repeated)
        return "a header that may come once is repeated";
    if (!h->request->host && !strcmp(version, "HTTP/1.1"))
        return "HTTP/1.1 needs a Host";
    if (strpbrk(uri, " \t"))
        return "the target has a blank";
    if (h->length && h->encoding)
        return "both Content-Length and Transfer-Encoding";
    if (h->encoding && strcasecmp(h->encoding, "chunked"))
        return "Transfer-Encoding: only chunked is known";
    if (h->encoding && strcmp(version, "HTTP/1.1"))
        return "Transfer-Encoding is of HTTP/1.1";
    if (h->length && (!*h->length || h->length[strspn(h->length, "0123456789")] || strlen(h->length) > 18))
        return "Content-Length: must be a whole number";
    return NULL;
}

static void see_address(struct exchange *x) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct request *rq = &x->request;
    if (!info || !info->client_addr)
        return;
    if (info->client_addr->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)info->client_addr)->sin6_addr;
        inet_ntop(AF_INET6, a, rq->address, sizeof rq->address);
        rq->loopback = IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
    } else {
        const struct in_addr *a = &((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr;
        inet_ntop(AF_INET, a, rq->address, sizeof rq->address);
        rq->loopback = ntohl(a->s_addr) >> 24 == 127;
    }
}

/* Memory. */

static bool take_memory(struct exchange *x, uint64_t bytes) {
    struct request *rq = &x->request;
    if (bytes && !memory_take(x->server->memory, rq->principal.team, bytes))
        return false;
    rq->charged += bytes;
    return true;
}

bool request_charge(struct request *rq, uint64_t bytes, struct response *rs) {
    struct memory *memory = rq->server->memory;
    if (bytes < COUNTED_BYTES)
        return true;
    if (bytes > memory_share(memory)) {
        response_problem(rs, &rq->arena, PROBLEM_TOO_LARGE,
                         "so many values need %llu MiB of memory; %llu MiB would fit", (unsigned long long)bytes >> 20,
                         (unsigned long long)memory_share(memory) >> 20);
        return false;
    }
    if (!memory_take(memory, rq->principal.team, bytes)) {
        metrics_increment(rq->server->metrics, METRICS_OVERLOADS);
        response_problem(rs, &rq->arena, PROBLEM_OVERLOADED, "requests hold too much memory now; try again soon");
        return false;
    }
    rq->charged += bytes;
    return true;
}

static void count_memory(struct exchange *x, uint64_t bytes) {
    if (memory_count(x->server->memory, x->request.principal.team, bytes))
        x->request.charged += bytes;
}

static void give_memory(struct exchange *x) {
    const uint64_t charged = x->request.charged;
    x->request.charged = 0;
    if (charged)
        memory_give(x->server->memory, x->request.principal.team, charged);
    if (charged > TRIMMED_BYTES)
        malloc_trim(0); /* parsed JSON is many small pieces, which the heap would keep */
}

/* Answers. */

static void add_header(struct MHD_Response *r, enum header header, const char *value) {
    MHD_add_response_header(r, header_name(header), value);
}

/* A page has a policy of its own. Browsers must not run or frame anything else that is served, nor guess its type. */
static void add_headers(struct exchange *x, struct MHD_Response *r) {
    const struct response *rs = &x->response;
    add_header(r, HEADER_REQUEST_ID, x->request.id);
    add_header(r, HEADER_X_CONTENT_TYPE_OPTIONS, "nosniff");
    if (!response_header_value(rs, HEADER_REFERRER_POLICY))
        add_header(r, HEADER_REFERRER_POLICY, "no-referrer");
    add_header(r, HEADER_CROSS_ORIGIN_RESOURCE_POLICY, "same-origin");
    if (!response_header_value(rs, HEADER_CONTENT_SECURITY_POLICY))
        add_header(r, HEADER_CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    add_header(r, HEADER_CACHE_CONTROL, rs->cache_control ? rs->cache_control : "no-store");
    if (x->server->certificates)
        add_header(r, HEADER_STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    if (rs->content_type && rs->status != 304)
        MHD_add_response_header(r, "Content-Type", rs->content_type);
    if (rs->etag) {
        char quoted[140];
        snprintf(quoted, sizeof quoted, "\"%.128s\"", rs->etag);
        add_header(r, HEADER_ETAG, quoted);
    }
    for (size_t i = 0; i < rs->n_headers; i++)
        add_header(r, rs->headers[i].header, rs->headers[i].value);
    if (x->close)
        MHD_add_response_header(r, "Connection", "close");
}

static enum MHD_Result queue_answer(struct exchange *x) {
    struct response *rs = &x->response;
    x->server->handlers->finish(&x->request, rs);
    if (rs->source && !strcmp(x->request.method, "HEAD"))
        stream_head(rs);
    if (rs->n >= COUNTED_BYTES && x->request.route && strcmp(x->request.route->method, "GET") != 0)
        count_memory(x, rs->n); /* a change that was made is answered even over the limit */
    else if (rs->n >= COUNTED_BYTES && !request_charge(&x->request, rs->n, rs))
        x->server->handlers->finish(&x->request, rs);
    struct MHD_Response *r = rs->source
                                 ? stream_response(x)
                                 : MHD_create_response_from_buffer(rs->n, (void *)rs->body, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    add_headers(x, r);
    enum MHD_Result result = MHD_queue_response(x->connection, rs->status, r);
    MHD_destroy_response(r);
    x->phase = EXCHANGE_SENT;
    return result;
}

/* Work. */

/* The library may end the exchange before its call returns here. Who stops the library waits until the call has
 * returned. */
static void resume(struct exchange *x) {
    struct server *server = x->server;
    x->phase = EXCHANGE_READY;
    atomic_fetch_add(&server->waking, 1);
    MHD_resume_connection(x->connection);
    atomic_fetch_sub(&server->waking, 1);
}

static void refuse_work(struct exchange *x, enum thread_pool_answer why) {
    struct request *rq = &x->request;
    metrics_increment(x->server->metrics, METRICS_OVERLOADS);
    if (why == POOL_OWNER_FULL)
        response_problem(&x->response, &rq->arena, PROBLEM_RATE_LIMITED,
                         "too many requests of this team wait already; %zu fit", server_queue_share(x->server));
    else
        response_problem(&x->response, &rq->arena, PROBLEM_OVERLOADED, "too much is waiting; try again soon");
    resume(x);
}

static struct thread_pool *pool_of(const struct exchange *x) {
    return x->request.heavy ? x->server->heavy : x->server->pool;
}

/* If a session called this exchange, let it call the next waiter, which would else wait for ever. */
static void pass_turn(struct exchange *x) {
    if (!x->turn)
        return;
    hub_pass(x->turn);
    hub_drop(x->turn);
    x->turn = NULL;
}

static void go_on(struct exchange *x) {
    if (thread_pool_resubmit(pool_of(x), x->request.principal.team, &x->job))
        return;
    pass_turn(x);
    refuse_work(x, POOL_FULL);
}

/* Take the request up again: the session that it waited for is free. */
static void take_up(void *context) {
    struct exchange *x = context;
    x->turn = x->waits_on;
    x->waits_on = NULL;
    go_on(x);
}

/* The exchange is not touched after it was handed on. */
static void call_again(struct exchange *x) {
    struct request *rq = &x->request;
    if (rq->busy) {
        x->waits_on = rq->busy;
        rq->busy = NULL;
        x->waiter = (struct hub_waiter){.run = take_up, .context = x};
        hub_wait(x->waits_on, &x->waiter);
    } else {
        rq->heavy = true;
        rq->wants_heavy = false;
        go_on(x);
    }
}

static void work(void *context) {
    struct exchange *x = context;
    x->server->handlers->run(&x->request, &x->response);
    pass_turn(x);
    if (request_is_again(&x->request))
        call_again(x);
    else
        resume(x);
}

/* Routes of readers and submitters get less processor time than those of runners and administrators. */
static void bound_work(struct exchange *x) {
    const struct server_options *o = &x->server->options;
    struct request *rq = &x->request;
    rq->heavy = (rq->route->flags & ROUTE_HEAVY) == ROUTE_HEAVY;
    rq->work.limit_us = 1e6 * (rq->route->role >= ROLE_RUN ? o->request_s : o->compute_s);
    rq->work.limit_bytes = o->work_bytes;
}

static void refuse_disk(struct exchange *x, const struct error *err) {
    x->refused = true;
    log_error("request %s: %s", x->request.id, ERROR_TEXT(err));
    response_problem(&x->response, &x->request.arena, PROBLEM_STORAGE,
                     "the service has no room for the upload; its log says why under request %s", x->request.id);
}

/* Run the handler: the whole request is here. */
static enum MHD_Result run(struct exchange *x) {
    struct error err;
    peer_enter(x->peer, PEER_ANSWER);
    if (upload_map(&x->upload, &err)) {
        refuse_disk(x, &err);
        return queue_answer(x);
    }
    x->request.body = x->upload.text ? x->upload.text : x->body;
    if (!(x->request.route->flags & ROUTE_SLOW)) {
        x->server->handlers->run(&x->request, &x->response);
        return queue_answer(x);
    }
    atomic_fetch_add(&x->server->asleep, 1);
    if (atomic_load(&x->server->halting)) { /* looked at after counting: who halts waits for those that are counted */
        atomic_fetch_sub(&x->server->asleep, 1);
        response_problem(&x->response, &x->request.arena, PROBLEM_DRAINING, "the service is stopping; try again soon");
        return queue_answer(x);
    }
    x->phase = EXCHANGE_WORKING;
    x->slept = true;
    bound_work(x);
    peer_works(x->server, x->peer, &x->request.work);
    MHD_suspend_connection(x->connection); /* before the worker may resume it */
    x->job = (struct thread_pool_job){.run = work, .context = x};
    const enum thread_pool_answer answer = thread_pool_submit(pool_of(x), x->request.principal.team, &x->job);
    if (answer != POOL_TAKEN)
        refuse_work(x, answer);
    return MHD_YES;
}

static enum MHD_Result refuse_at_once(struct exchange *x) {
    x->close = true;
    peer_enter(x->peer, PEER_ANSWER);
    return queue_answer(x);
}

static void copy_method(struct request *rq, const char *method) {
    const char *copy = arena_strdup(&rq->arena, method);
    rq->method = copy ? copy : "";
}

static uint64_t body_limit(const struct exchange *x) {
    if (x->request.route->flags & ROUTE_UPLOAD)
        return x->server->options.upload_bytes;
    return route_body_bytes(x->request.route, x->server->options.body_bytes);
}

static void refuse_length(struct exchange *x) {
    x->refused = true;
    response_problem(&x->response, &x->request.arena, PROBLEM_TOO_LARGE, "a body may have %llu bytes here",
                     (unsigned long long)body_limit(x));
}

static enum MHD_Result start(struct exchange *x, const char *method, const char *version) {
    struct request *rq = &x->request;
    struct headers h = {.request = rq, .end = version + strlen(version) + 2};
    copy_method(rq, method);
    rq->path = "";
    rq->service = x->server->service;
    rq->server = x->server;
    rq->events = &x->server->streams;
    see_address(x);
    rq->forwarded = strcmp(version, "HTTP/1.1") != 0;
    MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, see_header, &h);
    peer_enter(x->peer, PEER_BODY);
    x->phase = EXCHANGE_BODY;
    h.torn = is_torn(x, &h, method, version);
    const char *trouble = ambiguity(&h, x->uri, version);
    if (trouble) {
        metrics_increment(x->server->metrics, METRICS_REFUSED);
        response_problem(&x->response, &rq->arena, PROBLEM_BAD_FRAMING, "%s", trouble);
        return refuse_at_once(x);
    }
    if (h.bytes + strlen(x->uri) > HEAD_BYTES) {
        response_problem(&x->response, &rq->arena, PROBLEM_HEADERS_TOO_LARGE,
                         "a request's target and headers may have %d bytes together", HEAD_BYTES);
        return refuse_at_once(x);
    }
    const uint64_t declared = h.length ? strtoull(h.length, NULL, 10) : 0;
    x->refused = !x->server->handlers->admit(rq, x->uri, h.encoding || declared, &x->response);
    if (!x->refused && declared > body_limit(x))
        refuse_length(x);
    if (x->refused && (declared > DRAIN_BYTES || h.expect || h.encoding))
        return refuse_at_once(x);
    return MHD_YES;
}

/* Doubling, and counted: a body of many pieces may not hold what others need. */
static bool grow_body(struct exchange *x, size_t wanted) {
    size_t room = x->body_capacity ? x->body_capacity : 1024;
    while (room < wanted)
        room *= 2;
    const size_t before = x->body_capacity < COUNTED_BYTES ? 0 : x->body_capacity;
    if (room >= COUNTED_BYTES && !take_memory(x, room - before))
        return false;
    char *body = realloc(x->body, room);
    x->body = body ? body : x->body;
    x->body_capacity = body ? room : x->body_capacity;
    return body;
}

static void refuse_now(struct exchange *x, const char *why) {
    x->refused = x->close = true;
    metrics_increment(x->server->metrics, METRICS_OVERLOADS);
    response_problem(&x->response, &x->request.arena, PROBLEM_OVERLOADED, "%s; try again soon", why);
}

static void take_upload(struct exchange *x, const char *data, size_t n) {
    struct request *rq = &x->request;
    struct error err;
    if (!memory_take(x->server->uploads, rq->principal.team, n)) {
        refuse_now(x, "uploads take too much of the disk now");
        return;
    }
    rq->body_bytes += n; /* given back when the exchange ends */
    if (upload_add(&x->upload, data, n, &err)) {
        x->close = true;
        refuse_disk(x, &err);
    }
}

static void take_body(struct exchange *x, const char *data, size_t n) {
    struct request *rq = &x->request;
    if (x->refused)
        return;
    if (rq->body_bytes + n > body_limit(x)) {
        refuse_length(x);
        x->close = true;
        return;
    }
    if (rq->route->flags & ROUTE_UPLOAD) {
        take_upload(x, data, n);
        return;
    }
    if (rq->body_bytes + n > x->body_capacity && !grow_body(x, rq->body_bytes + n)) {
        refuse_now(x, "requests hold too much memory now");
        return;
    }
    memcpy(x->body + rq->body_bytes, data, n);
    rq->body_bytes += n;
}

enum MHD_Result exchange_continue(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **context) {
    (void)server, (void)connection, (void)url;
    struct exchange *x = *context;
    if (!x)
        return MHD_NO;
    switch (x->phase) {
    case EXCHANGE_NEW:
        return start(x, method, version);
    case EXCHANGE_BODY:
        if (*n) {
            take_body(x, data, *n);
            *n = 0;
            return MHD_YES;
        }
        if (!x->refused)
            return run(x);
        peer_enter(x->peer, PEER_ANSWER);
        return queue_answer(x);
    case EXCHANGE_READY:
        atomic_fetch_sub(&x->server->asleep, 1);
        x->slept = false;
        return queue_answer(x);
    default:
        return MHD_NO;
    }
}

/* Write a path for a line of the log. What is not plain ASCII becomes an escape. */
static void clean_path(const char *path, char *out, size_t n) {
    size_t k = 0;
    for (; *path && k + 4 < n; path++)
        k += (size_t)snprintf(out + k, n - k, *path > ' ' && *path < 0x7f ? "%c" : "%%%02X", (unsigned char)*path);
    out[k] = '\0';
}

static void log_access(const struct exchange *x, unsigned status, double ms) {
    const struct request *rq = &x->request;
    char path[1024];
    clean_path(x->uri, path, sizeof path);
    log_info("%s %s %s -> %u, %zu in, %zu out, %.1f ms, team %s, token %s, request %s",
             rq->address[0] ? rq->address : "-", rq->method ? rq->method : "-", path, status, rq->body_bytes,
             x->response.n, ms, rq->principal.team[0] ? rq->principal.team : "-",
             rq->principal.token[0] ? rq->principal.token : "-", rq->id);
}

static void finish(struct server *server, struct exchange *x, enum MHD_RequestTerminationCode code) {
    if (x->slept)
        atomic_fetch_sub(&server->asleep, 1);
    /* 499: the client went away before it had an answer; 400: the library refused the request's first lines. */
    const double us = clock_now_us() - x->started_us;
    const unsigned status =
        code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? x->response.status ? x->response.status : 400 : 499;
    metrics_count(server->metrics, x->request.route, status, us * 1e-6, x->request.body_bytes, x->response.n);
    metrics_add(server->metrics, METRICS_IN_FLIGHT, -1);
    if (server->options.access_log)
        log_access(x, status, us * 1e-3);
    peer_enter(x->peer, PEER_IDLE);
    x->peer->exchange = NULL;
    peer_works(server, x->peer, NULL);
    request_release(&x->request);
    response_clear(&x->response);
    free(x->body);
    upload_release(&x->upload);
    if (x->request.route && x->request.route->flags & ROUTE_UPLOAD && x->request.body_bytes)
        memory_give(server->uploads, x->request.principal.team, x->request.body_bytes);
    give_memory(x);
    free(x->uri);
    free(x);
    atomic_fetch_sub(&server->in_flight, 1);
}

void exchange_end(void *context, struct MHD_Connection *connection, void **at, enum MHD_RequestTerminationCode code) {
    (void)connection;
    struct exchange *x = *at;
    *at = NULL;
    if (x)
        finish(context, x, code);
}

void exchange_abandon(struct server *server, struct exchange *x) {
    if (x)
        finish(server, x, MHD_REQUEST_TERMINATED_CLIENT_ABORT);
}
