/* See remote_predict.h. */
#include "cli/remote_predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/remote.h"

static bool add_contender(cJSON *baselines, cJSON *strategies, const struct contender *c, const struct model *model,
                          const struct cluster *cluster) {
    cJSON *item = c->baseline ? cJSON_CreateString(c->baseline->name) : strategy_write(c->strategy, model, cluster);
    return item && cJSON_AddItemToArray(c->baseline ? baselines : strategies, item);
}

static cJSON *new_request(const struct simulation *s, size_t n, const struct contender *contenders, bool timeline,
                          bool *whole) {
    const struct model *model = s->model;
    const struct cluster *cluster = s->cluster;
    cJSON *root = cJSON_CreateObject();
    cJSON *baselines = root ? cJSON_AddArrayToObject(root, "baselines") : NULL;
    cJSON *strategies = baselines ? cJSON_AddArrayToObject(root, "strategies") : NULL;
    *whole = strategies && cJSON_AddStringToObject(root, "model", model->id.hex) &&
             cJSON_AddStringToObject(root, "cluster", cluster->id.hex) &&
             cJSON_AddBoolToObject(root, "timeline", timeline) &&
             (!simulation_tells_memory(s) || cJSON_AddBoolToObject(root, "memory", true)) &&
             (s->memory_bytes == 0 || cJSON_AddNumberToObject(root, "memory_bytes", (double)s->memory_bytes));
    for (size_t i = 0; i < n && *whole; i++)
        *whole = add_contender(baselines, strategies, &contenders[i], model, cluster);
    return root;
}

static void read_expected(const cJSON *json, struct expectation *out) {
    const cJSON *expected = cJSON_GetObjectItemCaseSensitive(json, "in_weather");
    const struct json_at at = json_root(expected, "in_weather");
    if (expected && expectation_read(&at, out, NULL))
        *out = (struct expectation){0};
}

static void read_updates(const cJSON *json, const struct cluster *cluster, struct row *out) {
    const cJSON *updates = cJSON_GetObjectItemCaseSensitive(json, "updates");
    const struct json_at at = json_root(updates, "updates");
    out->has_updates = updates && !updates_prediction_read(&at, &out->updates, NULL);
    out->updates.workers = cluster->n_devices;
}

static void read_memory(const cJSON *json, const struct simulation *s, struct row *out) {
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, "memory");
    const struct json_at at = json_root(member, "memory");
    struct memory memory;
    if (member && !memory_read(&at, s->cluster, &memory, NULL))
        simulation_note_memory(s, &memory, out);
}

static void read_row(const cJSON *json, const struct simulation *s, double bound_us, struct row *out) {
    const cJSON *strategy = cJSON_GetObjectItemCaseSensitive(json, "strategy");
    *out = (struct row){.prediction = {.iteration_us = remote_number(json, "iteration_us"),
                                       .compute_us = remote_number(json, "compute_us"),
                                       .exposed_us = remote_number(json, "exposed_us"),
                                       .samples_per_s = remote_number(json, "samples_per_s"),
                                       .messages = (uint32_t)remote_count(json, "messages")}};
    out->bound_us = cJSON_HasObjectItem(json, "lower_bound_us") ? remote_number(json, "lower_bound_us") : bound_us;
    read_expected(json, &out->expected);
    read_updates(json, s->cluster, out);
    read_memory(json, s, out);
    out->replicated = out->has_updates && out->updates.replica_bytes > 0;
    snprintf(out->id.hex, sizeof out->id.hex, "%s", remote_text(strategy, "id"));
    snprintf(out->name, sizeof out->name, "%s", remote_text(strategy, "name"));
}

/* The answer is sorted by time. Here the rows get the order of the request, so that strategies with equal times are
 * shown in that order. */
static size_t read_rows(const cJSON *answer, const struct simulation *s, size_t n, const struct contender *contenders,
                        struct row *rows) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "predictions"), *item;
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        cJSON_ArrayForEach(item, list) {
            const cJSON *strategy = cJSON_GetObjectItemCaseSensitive(item, "strategy");
            if (!strcmp(remote_text(strategy, "name"), contenders[i].name)) {
                read_row(item, s, remote_number(answer, "lower_bound_us"), &rows[found++]);
                break;
            }
        }
    return found;
}

/* "/baselines/3" */
static const char *name_at(const char *pointer, size_t n, const struct contender *contenders) {
    const char *digits = strpbrk(pointer, "0123456789");
    const size_t i = digits ? strtoul(digits, NULL, 10) : n;
    return i < n ? contenders[i].name : pointer;
}

static enum status tell_failures(const cJSON *answer, size_t n, const struct contender *contenders, struct error *err) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(answer, "failures")) {
        const char *detail = remote_text(item, "detail"), *pointer = remote_text(item, "pointer");
        const bool infeasible = !strcmp(remote_text(item, "code"), "infeasible");
        if (!infeasible || n == 1)
            return error_set(err, infeasible ? ST_INFEASIBLE : ST_INVALID, "%s", detail);
        log_info("%s: %s", name_at(pointer, n, contenders), detail);
    }
    return ST_OK;
}

static enum status write_trace(const cJSON *answer, const char *path, struct error *err) {
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "predictions"), 0);
    const cJSON *timeline = cJSON_GetObjectItemCaseSensitive(first, "timeline");
    if (!timeline)
        return error_set(err, ST_UNREACHABLE, "the service's answer has no timeline");
    char *text = json_line(timeline);
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return st;
}

enum status remote_predict(struct client *client, struct simulation *s, size_t n, const struct contender *contenders,
                           const char *trace, struct row *rows, size_t *n_rows, struct error *err) {
    cJSON *answer = NULL;
    bool whole;
    cJSON *body = new_request(s, n, contenders, trace != NULL, &whole);
    const struct client_request request = {
        .method = "POST", .path = "/api/v1/predictions", .body = body, .keyless = true};
    enum status st = whole ? client_call(client, &request, &answer, err) : error_no_memory(err);
    cJSON_Delete(body);
    if (!st)
        st = tell_failures(answer, n, contenders, err);
    if (!st && trace)
        st = write_trace(answer, trace, err);
    if (!st) {
        *n_rows = read_rows(answer, s, n, contenders, rows);
        s->bound_us = remote_number(answer, "lower_bound_us");
    }
    cJSON_Delete(answer);
    return st;
}
