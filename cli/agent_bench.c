/* See agent_bench.h. */
#include "cli/agent_bench.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "trial-runner/bench.h"

static const double TRY_US = 60e6, LAST_TRY_US = 10e6;

/* POST bench:verb; deletes `body`. */
static enum status say(const struct agent_place *place, uint64_t attempt, const char *verb, cJSON *body, bool whole,
                       cJSON **answer, struct error *err) {
    char path[128], key[160];
    snprintf(path, sizeof path, "/api/v1/sessions/%s/bench:%s", place->session, verb);
    snprintf(key, sizeof key, "%s/bench/%lu/%s", place->session, (unsigned long)attempt, verb);
    const struct client_request request = {.method = "POST",
                                           .path = path,
                                           .body = body,
                                           .key = key,
                                           .deadline_us = *place->interrupted ? LAST_TRY_US : TRY_US};
    whole = whole && cJSON_AddStringToObject(body, "client", place->name) &&
            cJSON_AddNumberToObject(body, "attempt", (double)attempt);
    enum status st = whole ? client_call(place->client, &request, answer, err) : error_no_memory(err);
    cJSON_Delete(body);
    if (st != ST_CONFLICT && st != ST_NOT_FOUND)
        return st;
    log_warn("the bench of session %s was not taken: %s", place->session, ERROR_TEXT(err));
    return ST_OK;
}

static enum status measure(const struct agent_place *place, double limit_us, struct agent_measured *kept,
                           struct error *err) {
    const struct cluster *cluster = &place->inputs->cluster;
    const struct bench_options options = {
        .launcher = place->runner->place, .time_limit_s = limit_us / 1e6, .cancel = place->interrupted};
    struct bench_findings findings;
    cJSON *json = cluster_write(cluster), *measured = NULL;
    if (!json)
        return error_no_memory(err);
    log_info("%s was never measured: that comes first (about %.0f s; --bench 0s leaves it out)", cluster->name,
             limit_us / 1e6);
    enum status st = bench_run(json, cluster->name, &options, &measured, &findings, err);
    cJSON_Delete(json);
    if (st)
        return st;
    cJSON_Delete(kept->json);
    kept->json = measured;
    snprintf(kept->of, sizeof kept->of, "%s", cluster->id.hex);
    return ST_OK;
}

/* The bench ended with *err: another agent may try where this one was interrupted. */
static enum status give_up(const struct agent_place *place, uint64_t attempt, enum status why, struct error *err) {
    struct error lost;
    char reason[ERROR_TEXT_ROOM];
    cJSON *body = cJSON_CreateObject(), *answer = NULL;
    error_text(err, reason);
    text_clean(reason);
    const bool whole = body && cJSON_AddStringToObject(body, "reason", reason) &&
                       (why != ST_CANCELLED || cJSON_AddTrueToObject(body, "again"));
    const enum status told = say(place, attempt, "fail", body, whole, &answer, &lost);
    cJSON_Delete(answer);
    if (why == ST_CANCELLED || why == ST_NO_MEMORY)
        return why;
    log_warn("%s could not be measured, and is predicted by what is typical: %s", place->inputs->cluster.name, reason);
    return told ? error_pass(err, &lost) : ST_OK;
}

enum status agent_bench_run(const struct agent_place *place, uint64_t attempt, double limit_us,
                            struct agent_measured *kept, struct error *err) {
    const char *name = place->inputs->cluster.name;
    cJSON *answer = NULL;
    enum status st = ST_OK;
    if (strcmp(kept->of, place->inputs->cluster.id.hex) != 0)
        st = measure(place, limit_us, kept, err);
    if (st)
        return give_up(place, attempt, st, err);
    cJSON *body = cJSON_CreateObject();
    const bool whole = cJSON_AddItemReferenceToObject(body, "cluster", kept->json);
    st = say(place, attempt, "complete", body, whole, &answer, err);
    if (st == ST_INVALID) /* the service knows better what it takes */
        return give_up(place, attempt, st, err);
    if (!st && answer)
        log_info("%s: measured; %s", name,
                 cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "used"))
                     ? "the session predicts by it"
                     : "the session began without or has ended; later ones get it");
    cJSON_Delete(answer);
    return st;
}
