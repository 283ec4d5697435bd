/* See load.h. A connection is idle, sending or receiving; idle ones are on a stack. Waiting is by epoll_pwait2, whose
 * time-outs are finer than a millisecond. */
#include "tests/load/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { READ_BYTES = 64 << 10, EVENTS = 64, PATIENCE_S = 30 };

/* ---- text ---- */

static void *must(void *p) {
    if (!p) {
        fputs("load: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void make_room(struct load_text *text, size_t n) {
    if (text->n + n + 1 <= text->room)
        return;
    text->room = 2 * (text->n + n + 1);
    text->bytes = must(realloc(text->bytes, text->room));
}

void load_put(struct load_text *text, const void *bytes, size_t n) {
    make_room(text, n);
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
    text->bytes[text->n] = '\0';
}

void load_printf(struct load_text *text, const char *format, ...) {
    char line[4096];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    load_put(text, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void load_text_release(struct load_text *text) {
    free(text->bytes);
    *text = (struct load_text){0};
}

void load_request(struct load_text *to, const char *method, const char *path, const char *headers, size_t n,
                  const char *body) {
    load_printf(to, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", method, path, headers);
    if (n)
        load_printf(to, "Content-Type: application/json\r\nContent-Length: %zu\r\n", n);
    load_printf(to, "\r\n");
    load_put(to, body, n);
}

/* ---- connections ---- */

struct connection {
    int fd; /* -1: closed */
    bool busy;
    double due_us;
    struct load_text out, in;
    size_t sent;
};

struct run {
    const struct load_plan *plan;
    struct load_result result;
    int epoll;
    struct connection *connections;
    unsigned *idle, n_idle, n_busy;
    double *times_ms; /* of good units */
    size_t n_times, room;
    uint64_t begun;
    double start_us;
    bool over;
};

static int connect_to(uint16_t port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int one = 1;
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) {
        fprintf(stderr, "load: cannot connect to port %u: %s\n", port, strerror(errno));
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void watch(struct run *run, unsigned i, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = i};
    epoll_ctl(run->epoll, operation, run->connections[i].fd, &event);
}

static void open_connection(struct run *run, unsigned i) {
    run->connections[i].fd = connect_to(run->plan->port);
    watch(run, i, EPOLL_CTL_ADD, EPOLLIN);
}

static void keep_time(struct run *run, double ms) {
    if (run->n_times == run->room) {
        run->room = run->room ? 2 * run->room : 4096;
        run->times_ms = must(realloc(run->times_ms, run->room * sizeof *run->times_ms));
    }
    run->times_ms[run->n_times++] = ms;
}

static void end_unit(struct run *run, unsigned i, bool good) {
    struct connection *c = &run->connections[i];
    c->busy = false;
    run->n_busy--;
    run->idle[run->n_idle++] = i;
    run->result.units += good;
    run->result.errors += !good;
    if (good)
        keep_time(run, (clock_now_us() - c->due_us) / 1e3);
}

static void lose(struct run *run, unsigned i) {
    close(run->connections[i].fd);
    open_connection(run, i);
    if (run->connections[i].busy)
        end_unit(run, i, false);
}

static void push(struct run *run, unsigned i) {
    struct connection *c = &run->connections[i];
    while (c->sent < c->out.n) {
        ssize_t done = send(c->fd, c->out.bytes + c->sent, c->out.n - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno == EAGAIN) {
            watch(run, i, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        if (done <= 0) {
            lose(run, i);
            return;
        }
        c->sent += (size_t)done;
    }
}

static void ask(struct run *run, unsigned i) {
    struct connection *c = &run->connections[i];
    c->out.n = c->in.n = c->sent = 0;
    run->plan->make(run->plan->context, i, &c->out);
    push(run, i);
}

static void begin_unit(struct run *run, double due_us) {
    const unsigned i = run->idle[--run->n_idle];
    struct connection *c = &run->connections[i];
    c->busy = true;
    c->due_us = due_us;
    run->n_busy++;
    run->begun++;
    ask(run, i);
}

/* ---- answers ---- */

/* A whole answer in n bytes: its length, and where its body is. 0: not yet. */
static size_t parse_answer(char *text, size_t n, int *status, char **body, size_t *length) {
    char *end = n ? memmem(text, n, "\r\n\r\n", 4) : NULL;
    if (!end)
        return 0;
    *end = '\0';
    *status = n > 12 ? atoi(text + 9) : 0;
    const char *at = strcasestr(text, "\r\nContent-Length:");
    *end = '\r';
    *length = at && *status != 304 ? strtoul(at + 17, NULL, 10) : 0;
    *body = end + 4;
    const size_t whole = (size_t)(*body - text) + *length;
    return whole <= n ? whole : 0;
}

static void take_answer(struct run *run, unsigned i) {
    struct connection *c = &run->connections[i];
    int status;
    char *body;
    size_t length;
    if (!parse_answer(c->in.bytes, c->in.n, &status, &body, &length))
        return;
    run->result.bytes += (double)length;
    switch (run->plan->take(run->plan->context, i, status, body, length)) {
    case LOAD_MORE:
        ask(run, i);
        break;
    case LOAD_WRONG:
        end_unit(run, i, false);
        break;
    case LOAD_OVER:
        run->over = true;
        end_unit(run, i, true);
        break;
    default:
        end_unit(run, i, true);
    }
}

static void receive(struct run *run, unsigned i) {
    struct connection *c = &run->connections[i];
    make_room(&c->in, READ_BYTES);
    ssize_t got = recv(c->fd, c->in.bytes + c->in.n, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        lose(run, i);
        return;
    }
    c->in.n += (size_t)got;
    c->in.bytes[c->in.n] = '\0';
    if (c->busy)
        take_answer(run, i);
}

/* ---- the loop ---- */

/* When the next unit is due; INFINITY: none any more, or no connection for it. */
static double next_due_us(const struct run *run) {
    const struct load_plan *plan = run->plan;
    const double now = clock_now_us(), end_us = run->start_us + plan->seconds * 1e6;
    const double due = plan->rate > 0 ? run->start_us + (double)run->begun / plan->rate * 1e6 : now;
    const bool used_up = run->over || (plan->most && run->begun >= plan->most);
    return used_up || due >= end_us || !run->n_idle ? (double)INFINITY : due;
}

static void wait_for_events(struct run *run, double until_us) {
    struct epoll_event events[EVENTS];
    const double wait_us = fmax(fmin(until_us - clock_now_us(), 1e5), 0);
    const struct timespec wait = {.tv_nsec = (long)(wait_us * 1e3)};
    const int n = epoll_pwait2(run->epoll, events, EVENTS, &wait, NULL);
    for (int k = 0; k < n; k++) {
        const unsigned i = events[k].data.u32;
        if (events[k].events & EPOLLOUT) {
            watch(run, i, EPOLL_CTL_MOD, EPOLLIN);
            push(run, i);
        }
        if (events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            receive(run, i);
    }
}

static void loop(struct run *run) {
    const double give_up_us = run->start_us + (run->plan->seconds + PATIENCE_S) * 1e6;
    for (;;) {
        double due;
        while ((due = next_due_us(run)) <= clock_now_us())
            begin_unit(run, due);
        if (isinf(due) && !run->n_busy)
            return;
        if (clock_now_us() > give_up_us) { /* what has not come by now is lost */
            run->result.errors += run->n_busy;
            return;
        }
        wait_for_events(run, due);
    }
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct run *run, double p) {
    return run->n_times ? run->times_ms[(size_t)(p * (double)(run->n_times - 1))] : (double)NAN;
}

void load_run(const struct load_plan *plan, struct load_result *out) {
    struct run run = {.plan = plan, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    run.connections = must(calloc(plan->connections, sizeof *run.connections));
    run.idle = must(calloc(plan->connections, sizeof *run.idle));
    for (unsigned i = 0; i < plan->connections; i++) {
        open_connection(&run, i);
        run.idle[run.n_idle++] = i;
    }
    run.start_us = clock_now_us();
    loop(&run);
    run.result.seconds = (clock_now_us() - run.start_us) / 1e6;
    if (run.n_times)
        qsort(run.times_ms, run.n_times, sizeof *run.times_ms, compare);
    run.result.p50_ms = quantile(&run, 0.5);
    run.result.p99_ms = quantile(&run, 0.99);
    run.result.max_ms = quantile(&run, 1);
    *out = run.result;
    for (unsigned i = 0; i < plan->connections; i++) {
        close(run.connections[i].fd);
        load_text_release(&run.connections[i].in);
        load_text_release(&run.connections[i].out);
    }
    close(run.epoll);
    free(run.connections);
    free(run.idle);
    free(run.times_ms);
}

/* ---- one ---- */

struct once {
    const struct load_text *request;
    struct load_text *body;
    int status;
};

static void make_once(void *context, unsigned connection, struct load_text *to) {
    const struct once *once = context;
    (void)connection;
    load_put(to, once->request->bytes, once->request->n);
}

static enum load_turn take_once(void *context, unsigned connection, int status, char *body, size_t n) {
    struct once *once = context;
    (void)connection;
    once->status = status;
    if (once->body)
        load_put(once->body, body, n);
    return LOAD_DONE;
}

int load_once(uint16_t port, const struct load_text *request, struct load_text *body) {
    struct once once = {.request = request, .body = body};
    struct load_result result;
    const struct load_plan plan = {.port = port,
                                   .connections = 1,
                                   .seconds = PATIENCE_S,
                                   .most = 1,
                                   .make = make_once,
                                   .take = take_once,
                                   .context = &once};
    load_run(&plan, &result);
    return once.status;
}
