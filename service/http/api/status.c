/* The handlers of /healthz, /readyz, /metrics and /openapi.json. */
#include <stdio.h>
#include <stdlib.h>

#include "base/stream.h"
#include "base/version.h"
#include "dataset/events.h"
#include "service/http/api/api.h"
#include "service/http/transport/server.h"

static enum status say_healthy(struct response *rs, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool whole = root && cJSON_AddStringToObject(root, "status", "ok") &&
                 cJSON_AddStringToObject(root, "version", SYNCOPATE_VERSION);
    return response_json(rs, 200, root, whole, err);
}

enum status api_healthz(struct request *rq, struct response *rs, struct error *err) {
    (void)rq;
    return say_healthy(rs, err);
}

enum status api_readyz(struct request *rq, struct response *rs, struct error *err) {
    struct store *store;
    int64_t newest;
    if (server_draining(rq->server))
        return problem_fail(err, PROBLEM_DRAINING, "the service is stopping");
    char why[TOKENS_WHY_MAX];
    if (tokens_unreadable(rq->service->tokens, why)) /* the log says why */
        return problem_fail(err, PROBLEM_TOKENS_UNREADABLE, PROBLEM_TOKENS_DETAIL);
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = event_last(store, NULL, &newest, err); /* any read shows that the file answers */
    return st ? st : say_healthy(rs, err);
}

enum status api_metrics(struct request *rq, struct response *rs, struct error *err) {
    char *text;
    size_t n;
    FILE *to = stream_open(&text, &n);
    if (!to)
        return error_no_memory(err);
    metrics_write(server_metrics(rq->server), to);
    metrics_write_held(server_memory_held(rq->server), to);
    metrics_write_service(rq->service, rq->principal.role == ROLE_ADMIN ? NULL : rq->principal.team, to);
    enum status st = stream_close(to, ST_OK, &text, err);
    if (st)
        return st;
    rs->owned = text;
    response_bytes(rs, 200, rq->route->media, text, n);
    return ST_OK;
}

enum status api_openapi(struct request *rq, struct response *rs, struct error *err) {
    (void)err;
    size_t n;
    const char *text = server_openapi(rq->server, &n, &rs->etag);
    rs->cache_control = "no-cache";
    response_bytes(rs, 200, "application/json", text, n);
    return ST_OK;
}
