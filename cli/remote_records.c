/* See remote_records.h. */
#include "cli/remote_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/remote.h"
#include "dataset/sharing.h"

static const char *text_or_null(const cJSON *json, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

static enum status read_iterations(const cJSON *json, struct arena *arena, struct record *r, struct error *err) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "iterations_us"), *item;
    double *times = arena_alloc(arena, (size_t)cJSON_GetArraySize(list), sizeof *times);
    if (!times)
        return error_no_memory(err);
    cJSON_ArrayForEach(item, list) times[r->n_iterations++] = item->valuedouble;
    r->iterations_us = times;
    return ST_OK;
}

static enum status read_environment(const cJSON *json, struct arena *arena, struct record *r, struct error *err) {
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(json, "environment_details");
    char *text = details ? json_line(details) : NULL;
    r->environment_json = text ? arena_strdup(arena, text) : NULL;
    free(text);
    return details && !r->environment_json ? error_no_memory(err) : ST_OK;
}

enum status remote_record(const cJSON *json, struct arena *arena, struct record *out, struct error *err) {
    struct record r = {.trial = (int64_t)remote_count(json, "trial"),
                       .uid = text_or_null(json, "uid"),
                       .session = text_or_null(json, "session"),
                       .number = remote_count(json, "number"),
                       .round = remote_count(json, "round"),
                       .seed = remote_count(json, "seed"),
                       .model = remote_text(json, "model"),
                       .model_name = remote_text(json, "model_name"),
                       .cluster = remote_text(json, "cluster"),
                       .cluster_name = remote_text(json, "cluster_name"),
                       .strategy = remote_text(json, "strategy"),
                       .strategy_name = remote_text(json, "strategy_name"),
                       .proposer = text_or_null(json, "proposer"),
                       .runner = text_or_null(json, "runner"),
                       .reason = text_or_null(json, "reason"),
                       .queued = text_or_null(json, "queued"),
                       .started = text_or_null(json, "started"),
                       .ended = text_or_null(json, "ended"),
                       .predicted_us = remote_number(json, "predicted_us"),
                       .mean_us = remote_number(json, "mean_us"),
                       .median_us = remote_number(json, "median_us"),
                       .low_us = remote_number(json, "low_us"),
                       .high_us = remote_number(json, "high_us"),
                       .environment = text_or_null(json, "environment"),
                       .team = text_or_null(json, "team"),
                       .attempt = remote_count(json, "attempt"),
                       .client = text_or_null(json, "client")};
    const cJSON *shared = cJSON_GetObjectItemCaseSensitive(json, "shared");
    if (!record_state_parse(remote_text(json, "state"), &r.state) || strlen(r.strategy) != ID_LENGTH)
        return error_set(err, ST_UNREACHABLE, "the service's answer is no trial: it speaks another version");
    enum status st = read_iterations(json, arena, &r, err);
    if (!st)
        st = read_environment(json, arena, &r, err);
    if (!st && shared && shared_read(shared, arena, &r.shared, err))
        return error_set(err, ST_UNREACHABLE, "the service's answer is no trial: it speaks another version");
    if (!st)
        *out = r;
    return st;
}

static enum status page(struct client *client, const char *path, const char *token, cJSON **out, struct error *err) {
    char *escaped = client_escape(client, token);
    enum status st = escaped ? remote_get(client, out, err, "%s%s%s", path, *token ? "&page_token=" : "", escaped)
                             : error_no_memory(err);
    free(escaped);
    return st;
}

enum status remote_each(struct client *client, const char *path, remote_visit *visit, void *context,
                        struct error *err) {
    cJSON *answer = NULL, *next;
    enum status st = page(client, path, "", &answer, err);
    for (bool done = false; !st && !done;) {
        const cJSON *items = cJSON_GetObjectItemCaseSensitive(answer, "items"), *item;
        cJSON_ArrayForEach(item, items) {
            if (!st && !done)
                st = visit(context, item, &done, err);
        }
        const char *token = remote_text(answer, "next_page_token");
        done = done || !*token;
        if (st || done)
            break;
        st = page(client, path, token, &next, err);
        if (!st) {
            cJSON_Delete(answer);
            answer = next;
        }
    }
    cJSON_Delete(answer);
    return st;
}

enum status remote_pages_next(struct remote_pages *p, struct client_text *out, struct error *err) {
    char *escaped = client_escape(p->client, p->token), *path = NULL;
    enum status st = escaped ? ST_TOO_LARGE : error_no_memory(err);
    while (st == ST_TOO_LARGE && p->size) {
        if (asprintf(&path, "%s&page_size=%zu%s%s", p->path, p->size, *escaped ? "&page_token=" : "", escaped) < 0) {
            st = error_no_memory(err);
            break;
        }
        st = client_text(p->client, path, p->media, out, err);
        p->size = st == ST_TOO_LARGE ? p->size / 4 : p->size;
        free(path);
    }
    if (!st)
        memcpy(p->token, out->next_page, sizeof p->token);
    free(escaped);
    return st;
}
