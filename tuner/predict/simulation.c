/* See simulation.h. */
#include "tuner/predict/simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/stream.h"
#include "simulator/closed_form.h"
#include "simulator/trace.h"
#include "simulator/tuned.h"
#include "simulator/updates_trace.h"

enum status simulation_init(struct simulation *out, const struct model *model, const struct cluster *cluster,
                            bool autosync, struct error *err) {
    *out = (struct simulation){.model = model, .cluster = cluster, .autosync = autosync};
    enum status st = cost_init(&out->cost, cluster, err);
    if (!st)
        st = bounds_find(model, &out->cost, &out->bounds, err);
    if (!st && !(out->timeline = timeline_new()))
        st = error_no_memory(err);
    if (st) {
        simulation_release(out);
        return st;
    }
    out->bound_us = out->bounds.of[IN_PARTS_none][LOSSY_none].iteration_us;
    return ST_OK;
}

void simulation_release(struct simulation *s) {
    timeline_free(s->timeline);
    cost_release(&s->cost);
    *s = (struct simulation){0};
}

static enum status write_trace(struct simulation *s, const struct plan *plan, const char *path, struct error *err) {
    char *text;
    size_t size;
    FILE *memory = stream_open(&text, &size);
    enum status st = memory ? trace_write(memory, s->timeline, plan, &s->cost, err) : ST_OK;
    return stream_save(memory, st, &text, &size, path, err);
}

bool simulation_expects(const struct simulation *s) {
    return s->cluster->variability.given && !s->autosync;
}

/* A few rounds of the first seed. */
static enum status write_updates_trace(struct simulation *s, const struct plan *plan, const char *path,
                                       struct error *err) {
    const struct updates_options options = {.weather = s->cluster->variability.given,
                                            .seed = s->weather.first_seed > 0 ? s->weather.first_seed : 1,
                                            .rounds = UPDATES_TRACE_ROUNDS};
    char *text;
    size_t size;
    FILE *memory = stream_open(&text, &size);
    enum status st = memory ? updates_trace_write(memory, plan, &s->cost, &options, err) : ST_OK;
    return stream_save(memory, st, &text, &size, path, err);
}

/* A replica there keeps nothing safe. */
static void warn_of_replica(const struct plan *plan) {
    const struct consistency *c = &plan->consistency;
    if (c->replicated && plan->messages[0].server == c->replica)
        log_warn("the replica is on its server's node, \"%s\": both fail together",
                 plan->cluster->nodes[c->replica].name);
}

static enum status predict_updates(struct simulation *s, const struct plan *plan, const char *trace, struct row *out,
                                   struct error *err) {
    if (s->autosync)
        return error_set(err, ST_USAGE, "a strategy with \"consistency\" has no closed form: drop --model autosync");
    enum status st = expectation_run_updates(plan, &s->cost, &s->weather, &out->expected, &out->updates, err);
    if (st)
        return st;
    warn_of_replica(plan);
    out->has_updates = true;
    out->replicated = plan->consistency.replicated;
    out->prediction = (struct prediction){.iteration_us = out->expected.mean_us,
                                          .messages = plan->n_messages,
                                          .lossy = plan->lossy,
                                          .samples_per_s = plan_samples(plan) / out->expected.mean_us * 1e6};
    return trace ? write_updates_trace(s, plan, trace, err) : ST_OK;
}

static enum status predict_iterations(struct simulation *s, const struct plan *plan, const char *trace, struct row *out,
                                      struct error *err) {
    enum status st = s->autosync ? closed_form_run(plan, &s->cost, &out->prediction, err)
                                 : timeline_run(s->timeline, plan, &s->cost, NULL, &out->prediction, err);
    if (!st && simulation_expects(s))
        st = expectation_run(s->timeline, plan, &s->cost, out->prediction.iteration_us, &s->weather, &out->expected,
                             err);
    return !st && trace ? write_trace(s, plan, trace, err) : st;
}

bool simulation_tells_memory(const struct simulation *s) {
    return s->memory_bytes > 0 || s->model->knows_activations || s->model->optimizer.kind != OPTIMIZER_unknown;
}

void simulation_note_memory(const struct simulation *s, const struct memory *memory, struct row *out) {
    struct error over;
    out->memory = *memory;
    out->has_memory = true;
    out->over = memory_check(memory, s->cluster, s->memory_bytes, &over);
    if (out->over)
        snprintf(out->too_much, sizeof out->too_much, "%s", ERROR_TEXT(&over));
}

/* Of updates (strategy/consistency.h) nothing is known. */
static enum status predict_memory(const struct simulation *s, const struct plan *plan, struct row *out,
                                  struct error *err) {
    struct memory memory;
    if (!consistency_is_plain(&plan->consistency))
        return ST_OK;
    enum status st = memory_of_plan(plan, &memory, err);
    if (!st)
        simulation_note_memory(s, &memory, out);
    return st;
}

static enum status predict_strategy(struct simulation *s, const struct strategy *strategy, const char *trace,
                                    struct row *out, struct error *err) {
    struct plan plan;
    enum status st = plan_lower(s->model, s->cluster, strategy, &plan, err);
    if (st)
        return st;
    *out = (struct row){.id = strategy->id};
    st = consistency_is_plain(&plan.consistency) ? predict_iterations(s, &plan, trace, out, err)
                                                 : predict_updates(s, &plan, trace, out, err);
    if (!st)
        st = predict_memory(s, &plan, out, err);
    if (!st)
        st = bounds_of(&s->bounds, &out->prediction, out->has_memory && !out->over ? s->memory_bytes : 0,
                       &out->bound_us, err);
    plan_release(&plan);
    snprintf(out->name, sizeof out->name, "%s", strategy->name);
    return st;
}

enum status simulation_predict(struct simulation *s, const struct contender *contender, const char *trace,
                               struct row *out, struct error *err) {
    struct strategy built;
    struct row row;
    enum status st;
    if (contender->baseline) {
        st = tuned_build_for(contender->baseline, s->model, s->cluster, s->memory_bytes, &built, err);
        if (st)
            return st;
        st = predict_strategy(s, &built, trace, &row, err);
        strategy_release(&built);
    } else {
        st = predict_strategy(s, contender->strategy, trace, &row, err);
    }
    if (!st)
        *out = row;
    return st;
}

/* A strategy with updates has no iteration that a bound could hold for. */
static bool add_bound(const struct row *row, cJSON *root) {
    const double us = row->prediction.iteration_us;
    return cJSON_AddNumberToObject(root, "lower_bound_us", row->bound_us) &&
           cJSON_AddNumberToObject(root, "gap", row->bound_us > 0 ? us / row->bound_us - 1 : 0);
}

static bool add_memory(const struct simulation *s, const struct row *row, cJSON *root) {
    if (!row->has_memory || !simulation_tells_memory(s))
        return true;
    cJSON *memory = memory_write(&row->memory, s->cluster, root) ? cJSON_GetObjectItem(root, "memory") : NULL;
    return memory &&
           (s->memory_bytes == 0 || cJSON_AddNumberToObject(memory, "budget_bytes", (double)s->memory_bytes)) &&
           (!s->model->activations_estimated || cJSON_AddTrueToObject(memory, "activations_estimated")) &&
           cJSON_AddBoolToObject(memory, "fits", !row->over);
}

cJSON *simulation_json(const struct simulation *s, const struct row *row, bool *whole) {
    const struct prediction *p = &row->prediction;
    cJSON *root = cJSON_CreateObject();
    cJSON *strategy = NULL;
    *whole = root && cJSON_AddStringToObject(root, "schema", "syncopate.prediction/1") &&
             cJSON_AddStringToObject(root, "model", s->model->name) &&
             cJSON_AddStringToObject(root, "cluster", s->cluster->name) &&
             (strategy = cJSON_AddObjectToObject(root, "strategy")) &&
             cJSON_AddStringToObject(strategy, "id", row->id.hex) &&
             cJSON_AddStringToObject(strategy, "name", row->name) &&
             cJSON_AddNumberToObject(root, "iteration_us", p->iteration_us) &&
             cJSON_AddNumberToObject(root, "compute_us", p->compute_us) &&
             cJSON_AddNumberToObject(root, "exposed_us", p->exposed_us) && (row->has_updates || add_bound(row, root)) &&
             cJSON_AddNumberToObject(root, "messages", p->messages) &&
             cJSON_AddNumberToObject(root, "samples_per_s", p->samples_per_s) &&
             (!simulation_expects(s) || expectation_write(&row->expected, root)) &&
             (!row->has_updates || updates_prediction_write(&row->updates, root)) && add_memory(s, row, root);
    return root;
}
