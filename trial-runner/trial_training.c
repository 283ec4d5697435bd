/* As trial_updates.c, lines are checked as far as they could do harm here. */
#include "trial-runner/trial_training.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static double number_or(const cJSON *line, const char *key, double other) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(item) ? item->valuedouble : other;
}

/* Not below 0. */
static double number(const cJSON *line, const char *key) {
    return fmax(number_or(line, key, 0), 0);
}

static void take_loss(struct trial_training *t, const cJSON *line) {
    if (t->n_losses < TRIAL_LOSSES)
        t->losses[t->n_losses++] =
            (struct trial_loss){number(line, "update"), number(line, "time_us"), number_or(line, "loss", NAN)};
}

static void take_training(struct trial_training *t, const cJSON *line) {
    t->given = true;
    t->first = number(line, "first");
    t->least = number(line, "least");
    t->target = number(line, "target");
    t->last = number_or(line, "last", NAN);
    t->reached = cJSON_HasObjectItem(line, "reached_us");
    t->reached_update = number(line, "reached_update");
    t->reached_us = number(line, "reached_us");
}

void trial_training_take(struct trial_training *training, const char *event, const cJSON *line) {
    if (strcmp(event, "loss") == 0)
        take_loss(training, line);
    else if (strcmp(event, "training") == 0)
        take_training(training, line);
}

bool trial_training_add_figures(const struct trial_training *t, cJSON *to) {
    return cJSON_AddNumberToObject(to, "first", t->first) && cJSON_AddNumberToObject(to, "least", t->least) &&
           cJSON_AddNumberToObject(to, "target", t->target) && json_add_known(to, "last", t->last) &&
           (!t->reached || (cJSON_AddNumberToObject(to, "reached_update", t->reached_update) &&
                            cJSON_AddNumberToObject(to, "reached_us", t->reached_us)));
}

bool trial_training_write(const struct trial_training *t, const struct training_options *options, double applied,
                          cJSON *to) {
    cJSON *json = cJSON_AddObjectToObject(to, "training");
    return json && cJSON_AddStringToObject(json, "task", training_name(options->task)) &&
           cJSON_AddNumberToObject(json, "rate", options->rate) &&
           cJSON_AddNumberToObject(json, "momentum", options->momentum) &&
           cJSON_AddNumberToObject(json, "updates", applied) && trial_training_add_figures(t, json);
}
