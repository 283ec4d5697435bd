/* Lines come from processes that we started, but what they say is checked as far as it could do harm here. */
#include "trial-runner/trial_updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct trial_updates *trial_updates_new(uint32_t n_workers) {
    struct trial_updates *updates = calloc(1, sizeof *updates);
    if (!updates)
        return NULL;
    updates->n_workers = n_workers;
    updates->workers = calloc(n_workers ? n_workers : 1, sizeof *updates->workers);
    if (updates->workers)
        return updates;
    free(updates);
    return NULL;
}

void trial_updates_free(struct trial_updates *updates) {
    if (!updates)
        return;
    free(updates->workers);
    free(updates);
}

/* The member's number where it is one and not below 0; else 0. */
static double number(const cJSON *line, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : 0;
}

static void take_counts(struct trial_updates *updates, const cJSON *line) {
    const cJSON *count;
    size_t d = 0;
    updates->useful = number(line, "useful");
    updates->dropped = number(line, "dropped");
    updates->late = number(line, "late");
    updates->summed = number(line, "summed");
    updates->passed = number(line, "passed");
    updates->copies = number(line, "copies");
    updates->divergence_most = number(line, "divergence_most");
    updates->window_us = number(line, "window_us");
    updates->delay_mean = number(line, "delay_mean");
    updates->delay_variance = number(line, "delay_variance");
    updates->delay_largest = number(line, "delay_largest");
    cJSON_ArrayForEach(count, cJSON_GetObjectItemCaseSensitive(line, "delays")) {
        if (d < TRIAL_DELAYS && cJSON_IsNumber(count))
            updates->of_delay[d++] = fmax(count->valuedouble, 0);
    }
}

static void take_worker(struct trial_updates *updates, const cJSON *line) {
    const double device = number(line, "device"), iterations = number(line, "iterations");
    if (device < updates->n_workers && iterations <= UINT32_MAX)
        updates->workers[(uint32_t)device] =
            (struct trial_update_worker){.iterations = (uint32_t)iterations, .mean_us = number(line, "mean_us")};
}

static double number_or_nan(const cJSON *line, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void take_takeover(struct trial_updates *updates, const cJSON *line) {
    updates->takeover = (struct trial_takeover){.given = true,
                                                .silent_us = number(line, "silent_us"),
                                                .took_us = number(line, "took_us"),
                                                .server_updates = number(line, "server_updates"),
                                                .replica_updates = number(line, "replica_updates"),
                                                .divergence = number(line, "divergence"),
                                                .bound = number(line, "bound"),
                                                .distance = number_or_nan(line, "distance"),
                                                .recovered = number(line, "recovered"),
                                                .unordered = number(line, "unordered"),
                                                .compared = number(line, "compared")};
}

void trial_updates_take(struct trial_updates *updates, const char *event, const cJSON *line) {
    if (strcmp(event, "updates") == 0)
        take_counts(updates, line);
    else if (strcmp(event, "worker") == 0)
        take_worker(updates, line);
    else if (strcmp(event, "takeover") == 0)
        take_takeover(updates, line);
}

cJSON *trial_updates_write(const struct trial_updates *u, cJSON *to) {
    int n = TRIAL_DELAYS;
    while (n > 0 && u->of_delay[n - 1] <= 0)
        n--;
    cJSON *json = cJSON_AddObjectToObject(to, "updates");
    const bool whole =
        json && cJSON_AddNumberToObject(json, "useful", u->useful) &&
        cJSON_AddNumberToObject(json, "dropped", u->dropped) && cJSON_AddNumberToObject(json, "late", u->late) &&
        cJSON_AddNumberToObject(json, "summed", u->summed) && cJSON_AddNumberToObject(json, "passed", u->passed) &&
        cJSON_AddNumberToObject(json, "copies", u->copies) &&
        cJSON_AddNumberToObject(json, "divergence_most", u->divergence_most) &&
        cJSON_AddNumberToObject(json, "dropped_share", trial_updates_dropped(u)) &&
        cJSON_AddNumberToObject(json, "useful_per_s", trial_updates_rate(u)) &&
        cJSON_AddNumberToObject(json, "window_us", u->window_us) &&
        cJSON_AddNumberToObject(json, "delay_mean", u->delay_mean) &&
        cJSON_AddNumberToObject(json, "delay_variance", u->delay_variance) &&
        cJSON_AddNumberToObject(json, "delay_largest", u->delay_largest) &&
        cJSON_AddItemToObject(json, "delays", cJSON_CreateDoubleArray(u->of_delay, n));
    return whole ? json : NULL;
}

bool trial_takeover_write(const struct trial_takeover *t, cJSON *to) {
    cJSON *json = cJSON_AddObjectToObject(to, "takeover");
    return json && cJSON_AddNumberToObject(json, "silent_us", t->silent_us) &&
           cJSON_AddNumberToObject(json, "took_us", t->took_us) &&
           cJSON_AddNumberToObject(json, "server_updates", t->server_updates) &&
           cJSON_AddNumberToObject(json, "replica_updates", t->replica_updates) &&
           cJSON_AddNumberToObject(json, "divergence", t->divergence) &&
           cJSON_AddNumberToObject(json, "bound", t->bound) && json_add_known(json, "distance", t->distance) &&
           cJSON_AddNumberToObject(json, "recovered", t->recovered) &&
           cJSON_AddNumberToObject(json, "unordered", t->unordered) &&
           cJSON_AddNumberToObject(json, "compared", t->compared);
}

double trial_updates_rate(const struct trial_updates *updates) {
    return updates->window_us > 0 ? updates->useful / updates->window_us * 1e6 : 0;
}

double trial_updates_each_us(const struct trial_updates *updates) {
    return updates->useful > 0 ? updates->window_us / updates->useful : 0;
}

double trial_updates_dropped(const struct trial_updates *updates) {
    const double lost = updates->dropped + updates->late, all = updates->useful + lost;
    return all > 0 ? lost / all : 0;
}
