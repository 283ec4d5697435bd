/* Streams of events that outlive their connections: whoever is cut comes back with the id of the last event it has. The
 * service sends a comment every 15 seconds, so silence for three times as long is a dead connection. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/client/client.h"
#include "cli/client/client_internal.h"
#include "cli/client/refusal.h"

static const long SILENCE_S = 45;

struct listening {
    CURL *handle;
    struct event_parser parser;
    bool heard; /* an event, on this connection */
    client_listener *listener;
    void *context;
    char *body; /* of an answer that is no stream */
    size_t n_body;
    enum status status; /* of the parser */
    struct error *err;
};

static bool on_event(void *context, const struct client_event *event) {
    struct listening *l = context;
    l->heard = true;
    return l->listener(l->context, event);
}

static long http_status(CURL *handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t keep_body(struct listening *l, const char *bytes, size_t n) {
    enum { MOST = 64 << 10 };
    if (l->n_body + n > MOST)
        return 0;
    char *body = realloc(l->body, l->n_body + n);
    if (!body)
        return 0;
    memcpy(body + l->n_body, bytes, n);
    l->body = body;
    l->n_body += n;
    return n;
}

static size_t on_bytes(char *bytes, size_t one, size_t n, void *context) {
    struct listening *l = context;
    if (http_status(l->handle) != 200)
        return keep_body(l, bytes, one * n);
    l->status = event_parser_feed(&l->parser, bytes, one * n, l->err);
    return l->status || l->parser.stopped ? 0 : one * n;
}

static CURLcode stream(struct client *c, struct listening *l, struct curl_slist *headers) {
    CURL *h = c->stream;
    CURLcode code = curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    code = code ? code : curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
    code = code ? code : curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, SILENCE_S);
    code = code ? code : curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_bytes);
    code = code ? code : curl_easy_setopt(h, CURLOPT_WRITEDATA, (void *)l);
    return code ? code : curl_easy_perform(h);
}

/* Listen on one connection until it ends. */
static enum status listen_once(struct client *c, const char *path, struct listening *l, CURLcode *code,
                               char reason[CURL_ERROR_SIZE], struct error *err) {
    bool whole = true;
    enum status st = client_prepare(c, c->stream, path, 0, reason, err);
    if (st)
        return st;
    struct curl_slist *headers = client_header(NULL, &whole, "Accept", "text/event-stream");
    if (*l->parser.id)
        headers = client_header(headers, &whole, "Last-Event-ID", l->parser.id);
    if (*c->authorization)
        headers = client_header(headers, &whole, "Authorization", c->authorization);
    free(l->body);
    l->body = NULL;
    l->n_body = 0;
    l->heard = false;
    if (whole)
        *code = stream(c, l, headers);
    curl_slist_free_all(headers);
    event_parser_cut(&l->parser);
    return whole ? l->status : error_no_memory(err);
}

/* Whether a stream that ended too early may be begun again. */
static bool may_go_on(CURLcode code, long status) {
    return client_try_ending(code, status) != TRY_DONE || (!code && status == 200);
}

static enum status give_up(struct client *c, const struct listening *l, CURLcode code, const char *reason,
                           unsigned tries, struct error *err) {
    const long status = http_status(c->stream);
    cJSON *json = NULL;
    if (code || status == 200)
        return client_no_answer(c, code, code ? reason : "the stream of events ends at once", tries, err);
    if (l->n_body && json_parse(l->body, l->n_body, "answer", &json, NULL))
        json = NULL;
    enum status st = client_refused(c->url, status, json, err);
    cJSON_Delete(json);
    return st;
}

enum status client_listen(struct client *c, const char *path, const char *last_id, unsigned tries,
                          client_listener *listener, void *context, struct error *err) {
    struct listening l = {.handle = c->stream, .listener = listener, .context = context, .err = err};
    char reason[CURL_ERROR_SIZE];
    enum status st = ST_OK;
    event_parser_init(&l.parser, last_id, on_event, &l);
    for (unsigned failed = 0; !st && !l.parser.stopped;) {
        CURLcode code = CURLE_OK;
        st = listen_once(c, path, &l, &code, reason, err);
        if (st || l.parser.stopped)
            break;
        failed = l.heard ? 1 : failed + 1;
        if (code == CURLE_ABORTED_BY_CALLBACK || !may_go_on(code, http_status(c->stream)) || (tries && failed >= tries))
            st = give_up(c, &l, code, reason, failed, err);
        else
            st = client_pause(c, retry_backoff(&c->rng, failed), err);
    }
    event_parser_release(&l.parser);
    free(l.body);
    return st;
}
