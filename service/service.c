/* See service.h. */
#include "service/service.h"

#include <stdio.h>
#include <stdlib.h>

#include "dataset/store.h"

enum { DOMAINS_KEPT = 32 };
static const double SIGN_IN_IDLE_US = 12 * 3600e6, SIGN_IN_WHOLE_US = 7 * 86400e6;

static enum status open_tokens(struct service *s, const char *dataset, struct error *err) {
    char path[4096];
    enum status st = store_beside(dataset, "tokens", path, sizeof path, err);
    if (!st)
        st = tokens_open(path, &s->tokens, err);
    if (!st && !s->open && !tokens_count(s->tokens))
        return error_set(
            err, ST_USAGE,
            "%s has no tokens, so nobody could use the service; make one with \"syncopate serve token create "
            "NAME --role admin\", or serve this machine alone with --open",
            dataset);
    return st;
}

static enum status open_quota(struct service *s, const char *dataset, struct error *err) {
    char path[4096];
    enum status st = store_beside(dataset, "usage", path, sizeof path, err);
    return st ? st : quota_open(path, &s->quota, err);
}

static enum status open_parts(struct service *s, const struct service_options *options, struct error *err) {
    struct hub_options hub = hub_default_options();
    hub.idle_us = options->session_idle_us > 0 ? options->session_idle_us : hub.idle_us;
    s->sign_ins = sign_ins_new(SIGN_IN_IDLE_US, SIGN_IN_WHOLE_US);
    s->domains = prepared_domains_new(DOMAINS_KEPT);
    if (!s->sign_ins || !s->domains)
        return error_no_memory(err);
    enum status st = open_tokens(s, options->access.dataset, err);
    if (!st)
        st = open_quota(s, options->access.dataset, err);
    if (!st)
        st = access_open(&options->access, &s->access, err);
    if (!st)
        st = hub_open(s->access, &hub, &s->hub, err);
    return st ? st : operation_queue_open(s->access, &s->operations, err);
}

enum status service_open(const struct service_options *options, struct service **out, struct error *err) {
    struct service *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->open = options->open;
    s->limits = options->limits;
    enum status st = open_parts(s, options, err);
    if (st)
        service_close(s);
    else
        *out = s;
    return st;
}

void service_close(struct service *s) {
    if (!s)
        return;
    operation_queue_close(s->operations);
    hub_close(s->hub);
    access_close(s->access);
    tokens_close(s->tokens);
    quota_close(s->quota);
    sign_ins_free(s->sign_ins);
    prepared_domains_free(s->domains);
    free(s);
}
