/* A trial that was ended early says so in its environment. */
#include "tuner/session/trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/statistics.h"
#include "dataset/describe.h"

static const char ENDED_EARLY[] = "ended_early";
static const double MOST_SEED = 0x1p63; /* above it a number is no seed: clients write environments too */

enum status trial_record_start(struct store *store, const struct trial_start *start, int64_t *trial,
                               struct error *err) {
    const struct new_trial row = {.session = start->session,
                                  .number = start->number,
                                  .waiting = start->waiting,
                                  .round = start->round,
                                  .model = start->model->id.hex,
                                  .cluster = start->cluster->id.hex,
                                  .strategy = start->strategy->id.hex,
                                  .strategy_name = start->strategy->name,
                                  .proposer = start->proposer,
                                  .runner = start->runner,
                                  .predicted_us = start->predicted_us > 0 ? start->predicted_us : NAN,
                                  .seed = start->seed};
    enum status st = ST_OK;
    if (!start->session) /* a session put its model and cluster when it began */
        st = store_put_model(store, start->model, err);
    if (!st && !start->session)
        st = store_put_cluster(store, start->cluster, err);
    if (!st)
        st = store_put_strategy(store, start->strategy, start->model, start->cluster, err);
    return st ? st : store_trial_begin(store, &row, trial, err);
}

/* The environment as it is recorded, malloc'd; NULL when memory is out. */
static char *environment_of(const struct tune_outcome *outcome) {
    cJSON *json = cJSON_Parse(outcome->environment ? outcome->environment : "{}");
    bool whole = json && (!outcome->early || cJSON_AddTrueToObject(json, ENDED_EARLY));
    char *text = whole ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    return text;
}

enum status trial_record_end(struct store *store, int64_t trial, const struct tune_outcome *outcome,
                             struct error *err) {
    if (outcome->state != RECORD_COMPLETE)
        return store_trial_fail(store, trial, outcome->state, outcome->reason, err);
    struct summary m;
    enum status st = summary_of_copy(outcome->n, outcome->iterations_us, &m, err);
    if (st)
        return st;
    char *environment = environment_of(outcome);
    if (!environment)
        return error_no_memory(err);
    const struct finished_trial row = {.mean_us = m.mean_us,
                                       .median_us = m.median_us,
                                       .low_us = m.low_us,
                                       .high_us = m.high_us,
                                       .n_iterations = outcome->n,
                                       .iterations_us = outcome->iterations_us,
                                       .environment = environment};
    st = store_trial_finish(store, trial, &row, err);
    free(environment);
    return st;
}

bool trial_reason_is_lost(const char *reason) {
    return reason && !strncmp(reason, TRIAL_LOST, strlen(TRIAL_LOST));
}

bool trial_ended_early(const struct record *record) {
    cJSON *json = record->environment_json ? cJSON_Parse(record->environment_json) : NULL;
    bool early = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, ENDED_EARLY));
    cJSON_Delete(json);
    return early;
}

uint64_t trial_weather_said(const char *environment) {
    cJSON *json = environment ? cJSON_Parse(environment) : NULL;
    const cJSON *seed = cJSON_GetObjectItemCaseSensitive(json, "weather");
    const double said = cJSON_IsNumber(seed) ? seed->valuedouble : 0;
    const bool is_seed = said >= 1 && said <= MOST_SEED && !(fmod(said, 1) > 0);
    cJSON_Delete(json);
    return is_seed ? (uint64_t)said : 0;
}

uint64_t trial_weather(const struct record *record) {
    return trial_weather_said(record->environment_json);
}

static double figure(const cJSON *from, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

bool trial_figures_read(const struct record *record, struct trial_figures *out) {
    cJSON *json = record->environment_json ? cJSON_Parse(record->environment_json) : NULL;
    const cJSON *updates = cJSON_GetObjectItemCaseSensitive(json, "updates");
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(json, "training");
    const bool is_there = cJSON_IsObject(updates);
    if (is_there)
        *out = (struct trial_figures){.delay_mean = figure(updates, "delay_mean"),
                                      .delay_variance = figure(updates, "delay_variance"),
                                      .delay_largest = figure(updates, "delay_largest"),
                                      .dropped_share = figure(updates, "dropped_share"),
                                      .rate = figure(training, "rate"),
                                      .momentum = figure(training, "momentum"),
                                      .first = figure(training, "first"),
                                      .least = figure(training, "least"),
                                      .target = figure(training, "target"),
                                      .last = figure(training, "last"),
                                      .updates = figure(training, "updates"),
                                      .reached_update = figure(training, "reached_update"),
                                      .reached_us = figure(training, "reached_us")};
    cJSON_Delete(json);
    return is_there;
}
