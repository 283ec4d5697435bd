/* Streams of events (events.h): a response whose bytes come from a callback, and a connection that sleeps while there
 * are none. Falling asleep and waking are both decided under the streams' mutex, so no wake-up is lost.
 *
 * The library does not look at a sleeping connection, so one whose client has left would count against its address
 * until the next heartbeat fails. The streams' alarm rings when a client closes, and the watchman ends its stream. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/http/transport/server_internal.h"

enum { BLOCK_BYTES = 16 << 10 };
static const double DOUBT_US = 1e6;
static const char heartbeat[] = ":\n\n";

/* Wake the stream. Call with the mutex held. */
static void wake(struct stream *s) {
    if (!s->asleep)
        return;
    s->asleep = false;
    MHD_resume_connection(s->connection);
}

void events_publish(struct event_streams *streams, const char *topic) {
    pthread_mutex_lock(&streams->mutex);
    for (struct stream *s = streams->first; s; s = s->next)
        if (!strcmp(s->source->topic, topic)) {
            s->news = true;
            wake(s);
        }
    pthread_mutex_unlock(&streams->mutex);
}

void streams_close(struct event_streams *streams) {
    pthread_mutex_lock(&streams->mutex);
    streams->closing = true;
    for (struct stream *s = streams->first; s; s = s->next) {
        s->closing = true;
        wake(s);
    }
    pthread_mutex_unlock(&streams->mutex);
}

/* Whether the client has closed the connection, also when requests that it sent behind this one have not been read. */
static bool has_left(const struct stream *s) {
    struct pollfd at = {.fd = s->peer->fd, .events = POLLRDHUP};
    return poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void streams_tick(struct event_streams *streams, double heartbeat_us, double stall_us) {
    const double now = clock_now_us();
    pthread_mutex_lock(&streams->mutex);
    const bool doubt = now - streams->doubted_us >= DOUBT_US;
    streams->doubted_us = doubt ? now : streams->doubted_us;
    for (struct stream *s = streams->first; s; s = s->next) {
        s->doubt = s->doubt || doubt;
        if (!s->closing && has_left(s)) {
            shutdown(s->peer->fd, SHUT_RDWR);
            s->closing = true;
            wake(s);
        } else if (s->asleep && now - s->quiet_us >= heartbeat_us) {
            s->heartbeat = true;
            wake(s);
        } else if (!s->asleep && now - s->called_us >= stall_us) {
            shutdown(s->peer->fd, SHUT_RDWR);
            s->called_us = now;
            metrics_increment(streams->metrics, METRICS_DEADLINES);
        } else if (doubt) {
            wake(s);
        }
    }
    pthread_mutex_unlock(&streams->mutex);
}

static ssize_t give_bytes(struct stream *s, char *to, size_t most) {
    size_t n = s->text.n - s->sent < most ? s->text.n - s->sent : most;
    memcpy(to, s->text.text + s->sent, n);
    s->sent += n;
    s->exchange->response.n += n;
    if (s->sent == s->text.n)
        s->sent = s->text.n = 0;
    return (ssize_t)n;
}

static bool append_heartbeat(struct stream *s) {
    if (s->text.capacity - s->text.n < sizeof heartbeat) {
        char *text = realloc(s->text.text, s->text.n + sizeof heartbeat);
        if (!text)
            return false;
        s->text.text = text;
        s->text.capacity = s->text.n + sizeof heartbeat;
    }
    memcpy(s->text.text + s->text.n, heartbeat, sizeof heartbeat - 1);
    s->text.n += sizeof heartbeat - 1;
    return true;
}

static void read_news(struct stream *s) {
    struct error err = {0};
    bool more = false;
    if (s->source->read(s->source->context, &s->text, &more, &s->ended, &err)) {
        log_error("events of %s: %s", s->source->topic, ERROR_TEXT(&err));
        s->ended = true;
    }
    if (!more)
        return;
    pthread_mutex_lock(&s->streams->mutex);
    s->news = true;
    pthread_mutex_unlock(&s->streams->mutex);
}

/* Find what there is to do next, or put the stream to sleep. */
static bool next_step(struct stream *s, bool *news, bool *beat, bool *doubt) {
    pthread_mutex_lock(&s->streams->mutex);
    s->called_us = clock_now_us();
    *news = s->news;
    *beat = s->heartbeat;
    *doubt = s->doubt || *news;
    s->ended = s->ended || s->closing;
    s->news = s->heartbeat = s->doubt = false;
    const bool idle = !*doubt && !*beat && !s->ended;
    if (idle) {
        s->asleep = true;
        MHD_suspend_connection(s->connection);
    } else if (*news || *beat) {
        s->quiet_us = s->called_us;
    }
    pthread_mutex_unlock(&s->streams->mutex);
    return !idle;
}

static ssize_t on_read(void *context, uint64_t position, char *to, size_t most) {
    (void)position;
    struct stream *s = context;
    for (;;) {
        bool news, beat, doubt;
        if (s->text.n > s->sent)
            return give_bytes(s, to, most);
        if (s->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!next_step(s, &news, &beat, &doubt))
            return 0;
        if (doubt && !s->ended && s->source->allowed && !s->source->allowed(s->source->context))
            s->ended = true;
        else if (news && !s->ended)
            read_news(s);
        else if (beat && !append_heartbeat(s))
            s->ended = true;
    }
}

static void on_free(void *context) {
    struct stream *s = context;
    pthread_mutex_lock(&s->streams->mutex);
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    pthread_mutex_unlock(&s->streams->mutex);
    metrics_add(s->streams->metrics, METRICS_STREAMS, -1);
    event_source_free(s->source);
    free(s->text.text);
    free(s);
}

/* Ring once when the client closes; the watchman's next look finds those that could not be registered. */
static void set_alarm(struct event_streams *streams, int fd) {
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT};
    if (epoll_ctl(streams->alarm, EPOLL_CTL_ADD, fd, &event))
        epoll_ctl(streams->alarm, EPOLL_CTL_MOD, fd, &event); /* it had another stream before */
}

static const char media[] = "text/event-stream";

void stream_head(struct response *rs) {
    event_source_free(rs->source);
    rs->source = NULL;
    rs->content_type = media;
}

struct MHD_Response *stream_response(struct exchange *x) {
    struct event_streams *streams = &x->server->streams;
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct stream){
        .streams = streams, .exchange = x, .connection = x->connection, .peer = x->peer, .source = x->response.source};
    s->news = true;
    s->quiet_us = s->called_us = clock_now_us();
    pthread_mutex_lock(&streams->mutex);
    s->closing = streams->closing;
    s->next = streams->first;
    s->back = &streams->first;
    if (s->next)
        s->next->back = &s->next;
    streams->first = s;
    pthread_mutex_unlock(&streams->mutex);
    set_alarm(streams, x->peer->fd);
    metrics_add(streams->metrics, METRICS_STREAMS, 1);
    x->response.source = NULL;
    x->response.content_type = media;
    peer_enter(x->peer, PEER_STREAM);
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, s, on_free);
    if (!r)
        on_free(s);
    return r;
}
