/* See service.h. A thread's reader hangs on a pthread key, whose destructor closes it when the thread ends. */
#include "service/service.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "dataset/events.h"
#include "dataset/requests.h"
#include "service/domains.h"
#include "service/hub.h"
#include "service/operations.h"
#include "service/sign_ins.h"

enum { DOMAINS_KEPT = 32 };
static const double DAY_US = 86400e6, SIGN_IN_IDLE_US = 12 * 3600e6, SIGN_IN_WHOLE_US = 7 * 86400e6;

enum kept { KEPT_ANSWERS, KEPT_AUDIT, KEPT_EVENTS, KEPT };

struct service {
    char *dataset;
    bool open, has_key;
    struct service_limits limits;
    double keep_us[KEPT];
    struct store *store; /* the writer's */
    struct writer *writer;
    struct tokens *tokens;
    struct quota *quota;
    struct sign_ins *sign_ins;
    struct domains *domains;
    struct hub *hub;
    struct operations *operations;
    pthread_key_t reader;
};

static void close_reader(void *store) {
    store_close(store);
}

static enum status open_tokens(struct service *s, struct error *err) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s.tokens", s->dataset) >= sizeof path)
        return error_set(err, ST_USAGE, "%.200s...: the path is too long", s->dataset);
    enum status st = tokens_open(path, &s->tokens, err);
    if (!st && !s->open && !tokens_count(s->tokens))
        return error_set(
            err, ST_USAGE,
            "%s has no tokens, so nobody could use the service; make one with \"syncopate serve token create "
            "NAME --role admin\", or serve this machine alone with --open",
            s->dataset);
    return st;
}

static enum status open_quota(struct service *s, struct error *err) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s.usage", s->dataset) >= sizeof path)
        return error_set(err, ST_USAGE, "%.200s...: the path is too long", s->dataset);
    return quota_open(path, &s->quota, err);
}

static enum status open_parts(struct service *s, double session_idle_us, struct error *err) {
    s->sign_ins = sign_ins_new(SIGN_IN_IDLE_US, SIGN_IN_WHOLE_US);
    if (!s->dataset || !s->sign_ins || !(s->domains = domains_new(DOMAINS_KEPT)))
        return error_no_memory(err);
    s->has_key = !pthread_key_create(&s->reader, close_reader);
    if (!s->has_key)
        return error_set(err, ST_ENVIRONMENT, "no more thread keys");
    enum status st = open_tokens(s, err);
    st = st ? st : open_quota(s, err);
    const mode_t mask = umask(077); /* a dataset that it makes has what teams keep to themselves */
    st = st ? st : store_open(s->dataset, STORE_READ_WRITE, &s->store, err);
    umask(mask);
    st = st ? st : writer_new(s->store, &s->writer, err);
    struct hub_options hub = hub_default_options();
    hub.idle_us = session_idle_us > 0 ? session_idle_us : hub.idle_us;
    st = st ? st : hub_open(s, &hub, &s->hub, err);
    return st ? st : operations_open(s, &s->operations, err);
}

enum status service_open(const struct service_options *options, struct service **out, struct error *err) {
    struct service *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->dataset = strdup(options->dataset);
    s->open = options->open;
    s->limits = options->limits;
    s->keep_us[KEPT_ANSWERS] = options->keep_answers_us > 0 ? options->keep_answers_us : DAY_US;
    s->keep_us[KEPT_AUDIT] = options->keep_audit_us > 0 ? options->keep_audit_us : 2 * 365 * DAY_US;
    s->keep_us[KEPT_EVENTS] = options->keep_events_us > 0 ? options->keep_events_us : INFINITY;
    enum status st = open_parts(s, options->session_idle_us, err);
    if (st) {
        service_close(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

void service_close(struct service *s) {
    if (!s)
        return;
    operations_close(s->operations);
    hub_close(s->hub);
    if (s->has_key) {
        store_close(pthread_getspecific(s->reader));
        pthread_key_delete(s->reader);
    }
    writer_free(s->writer);
    store_close(s->store);
    tokens_close(s->tokens);
    quota_close(s->quota);
    sign_ins_free(s->sign_ins);
    domains_free(s->domains);
    free(s->dataset);
    free(s);
}

const struct service_limits *service_limits(const struct service *s) {
    return &s->limits;
}

bool service_is_open(const struct service *s) {
    return s->open;
}

struct tokens *service_tokens(struct service *s) {
    return s->tokens;
}

struct quota *service_quota(struct service *s) {
    return s->quota;
}

struct sign_ins *service_sign_ins(struct service *s) {
    return s->sign_ins;
}

struct domains *service_domains(struct service *s) {
    return s->domains;
}

const char *service_dataset(const struct service *s) {
    return s->dataset;
}

void service_hide_path(const struct service *s, char *message) {
    const size_t n = strlen(s->dataset);
    char *at = strstr(message, s->dataset);
    if (at && (at == message || at[-1] == ' ') && !strncmp(at + n, ": ", 2))
        memmove(at, at + n + 2, strlen(at + n + 2) + 1);
}

struct writer *service_writer(struct service *s) {
    return s->writer;
}

enum status service_reader(struct service *s, struct store **out, struct error *err) {
    struct store *store = pthread_getspecific(s->reader);
    if (store) {
        *out = store;
        return ST_OK;
    }
    enum status st = store_open(s->dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    if (pthread_setspecific(s->reader, store)) {
        store_close(store);
        return error_no_memory(err);
    }
    *out = store;
    return ST_OK;
}

struct hub *service_hub(struct service *s) {
    return s->hub;
}

struct operations *service_operations(struct service *s) {
    return s->operations;
}

struct forgetting {
    struct service *service;
    uint64_t n;
};

/* A little at a time: others write in between, and what can be undone is in memory. */
static enum status forget(void *context, struct store *store, struct error *err) {
    static enum status (*const prune[KEPT])(struct store * store, const char *before, uint64_t *n,
                                            struct error *err) = {
        [KEPT_ANSWERS] = response_prune, [KEPT_AUDIT] = audit_prune, [KEPT_EVENTS] = event_prune};
    struct forgetting *f = context;
    enum status st = ST_OK;
    f->n = 0;
    for (enum kept kind = 0; kind < KEPT && !st; kind++) {
        char before[32];
        uint64_t n = 0;
        if (!isfinite(f->service->keep_us[kind]))
            continue;
        clock_utc_after(-f->service->keep_us[kind], before, sizeof before);
        st = prune[kind](store, before, &n, err);
        f->n += n;
    }
    return st;
}

enum status service_forget(struct service *s, bool *more, struct error *err) {
    struct forgetting f = {.service = s};
    enum status st = writer_run(s->writer, forget, &f, err);
    *more = !st && f.n;
    return st;
}
