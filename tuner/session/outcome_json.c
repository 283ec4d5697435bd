/* An outcome as JSON, and back. Every number is written with all its digits, so what is read is what was written. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tuner/session/outcome.h"

static const double MOST = 1e300; /* of any number */

/* ---- writing ---- */

static bool add_text(cJSON *to, const char *key, const char *text) {
    return !text || cJSON_AddStringToObject(to, key, text);
}

static bool add_count(cJSON *to, const char *key, size_t count) {
    return cJSON_AddNumberToObject(to, key, (double)count) != NULL;
}

bool outcome_write_interval(const struct outcome_row *row, cJSON *to) {
    return !outcome_row_has_interval(row) || (cJSON_AddNumberToObject(to, "low_us", row->measured.low_us) &&
                                              cJSON_AddNumberToObject(to, "high_us", row->measured.high_us));
}

static bool add_measured(cJSON *to, const struct outcome_row *row) {
    return cJSON_AddNumberToObject(to, "measured_us", row->us) && outcome_write_interval(row, to) &&
           json_add_known(to, "p95_us", row->p95_us) && add_count(to, "iterations", row->measured.n);
}

/* What weather is predicted to make of it. */
static bool add_outlook(cJSON *to, const struct outcome_row *row) {
    return json_add_known(to, "quiet_us", row->quiet_us) &&
           (!row->expected.seeds || expectation_write(&row->expected, to));
}

static bool add_row(cJSON *to, const struct outcome_row *row) {
    return add_text(to, "strategy", row->strategy) && add_text(to, "name", row->name) &&
           add_text(to, "proposer", row->proposer) && add_count(to, "trials", row->trials) &&
           add_count(to, "complete", row->complete) && json_add_known(to, "predicted_us", row->predicted_us) &&
           cJSON_AddBoolToObject(to, "final", row->final) && (!row->early || cJSON_AddTrueToObject(to, "early")) &&
           (!row->measured.n || add_measured(to, row)) && add_outlook(to, row) &&
           (row->measured.n ||
            (add_text(to, "state", record_state_word(row->state)) && add_text(to, "reason", row->reason)));
}

static bool add_rows(cJSON *to, const struct outcome *o) {
    cJSON *list = cJSON_AddArrayToObject(to, "strategies");
    bool whole = list != NULL;
    for (size_t i = 0; i < o->n_rows && whole; i++) {
        cJSON *item = cJSON_CreateObject();
        whole = item && cJSON_AddItemToArray(list, item) && add_row(item, &o->rows[i]);
    }
    return whole;
}

static bool add_place(cJSON *to, const char *key, const struct outcome *o, size_t place) {
    if (place == SIZE_MAX)
        return true;
    cJSON *row = cJSON_AddObjectToObject(to, key);
    return row && add_row(row, &o->rows[place]);
}

static bool add_accuracy(cJSON *to, const struct outcome_accuracy *a) {
    cJSON *accuracy = cJSON_AddObjectToObject(to, "accuracy");
    return accuracy && add_count(accuracy, "strategies", a->n) && json_add_known(accuracy, "off", a->off) &&
           json_add_known(accuracy, "ordered", a->ordered);
}

static bool add_knobs(cJSON *to, const struct outcome *o) {
    cJSON *knobs = cJSON_AddArrayToObject(to, "knobs");
    bool whole = knobs != NULL;
    for (int k = 0; k < SKETCH_KNOBS && whole && o->has_importance; k++) {
        cJSON *knob = cJSON_CreateObject();
        whole = knob && cJSON_AddItemToArray(knobs, knob) &&
                cJSON_AddStringToObject(knob, "name", sketch_knob_label((enum sketch_knob)k)) &&
                cJSON_AddNumberToObject(knob, "importance", o->importance[k]);
    }
    return whole;
}

static bool add_proposers(cJSON *to, const struct outcome *o) {
    cJSON *proposers = cJSON_AddArrayToObject(to, "proposers");
    bool whole = proposers != NULL;
    for (int p = 0; p < PROPOSER_COUNT && whole; p++) {
        cJSON *row = cJSON_CreateObject();
        whole = row && cJSON_AddItemToArray(proposers, row) &&
                cJSON_AddStringToObject(row, "name", proposer_name((enum proposer)p)) &&
                add_count(row, "trials", o->proposers[p].tried) && add_count(row, "wins", o->proposers[p].wins);
    }
    return whole;
}

bool outcome_write_lessons(const struct outcome *o, cJSON *to) {
    return add_knobs(to, o) && add_proposers(to, o);
}

static bool add_ratio(cJSON *to, const char *key, const struct outcome_ratio *r) {
    cJSON *ratio = isnan(r->mean) ? NULL : cJSON_AddObjectToObject(to, key);
    return isnan(r->mean) ||
           (ratio && cJSON_AddNumberToObject(ratio, "mean", r->mean) && json_add_known(ratio, "low", r->low) &&
            json_add_known(ratio, "high", r->high) && add_count(ratio, "rounds", r->n));
}

bool outcome_write_weather(const struct outcome *o, cJSON *to) {
    const struct outcome_weather *w = &o->weather;
    cJSON *weather = w->seed ? cJSON_AddObjectToObject(to, "weather") : NULL;
    return !w->seed || (weather && cJSON_AddNumberToObject(weather, "seed", (double)w->seed) &&
                        add_place(weather, "quiet_best", o, w->quiet) && add_ratio(weather, "loss", &w->loss));
}

static bool add_learning(cJSON *to, const char *key, const struct outcome_learning *l) {
    cJSON *learning = cJSON_AddObjectToObject(to, key);
    return learning && add_count(learning, "trials", l->trials) && add_count(learning, "reached", l->reached) &&
           json_add_known(learning, "updates", l->updates) && json_add_known(learning, "time_us", l->us) &&
           json_add_known(learning, "last", l->last);
}

/* What workers learned, where they did. */
static bool add_training(cJSON *to, const struct outcome_stale *s) {
    cJSON *training = isnan(s->target) ? NULL : cJSON_AddObjectToObject(to, "training");
    return isnan(s->target) ||
           (training && json_add_known(training, "rate", s->rate) &&
            json_add_known(training, "momentum", s->momentum) && json_add_known(training, "first", s->first) &&
            json_add_known(training, "least", s->least) && json_add_known(training, "target", s->target) &&
            json_add_known(training, "updates", s->updates) && add_learning(training, "stale", &s->learning) &&
            add_learning(training, "synchronous", &s->in_step) && add_ratio(training, "gain", &s->gain));
}

bool outcome_write_stale(const struct outcome *o, cJSON *to) {
    const struct outcome_stale *s = &o->stale;
    cJSON *stale = s->allowed ? cJSON_AddObjectToObject(to, "stale") : NULL;
    return !s->allowed || (stale && cJSON_AddNumberToObject(stale, "allowed", (double)s->allowed) &&
                           add_place(stale, "best", o, s->best) && add_ratio(stale, "speedup", &s->speedup) &&
                           json_add_known(stale, "delay_mean", s->delay_mean) &&
                           json_add_known(stale, "delay_variance", s->delay_variance) &&
                           json_add_known(stale, "delay_largest", s->delay_largest) &&
                           json_add_known(stale, "dropped_share", s->dropped) && add_training(stale, s));
}

bool outcome_write(const struct outcome *o, cJSON *to) {
    return add_place(to, "best", o, o->best) && add_place(to, "baseline", o, o->baseline) &&
           json_add_known(to, "speedup", o->speedup) && json_add_known(to, "gap", o->gap) &&
           cJSON_AddBoolToObject(to, "overlap", o->overlap) && outcome_write_weather(o, to) &&
           outcome_write_stale(o, to) && add_rows(to, o) && add_accuracy(to, &o->accuracy);
}

/* ---- reading ---- */

static enum status copy_text(const struct json_at *at, const char *key, enum json_need need, struct arena *arena,
                             const char **out, struct error *err) {
    struct json_at child;
    *out = NULL;
    if (need == JSON_OPTIONAL && !json_has(at, key, &child))
        return ST_OK;
    enum status st = json_member(at, key, &child, err);
    if (!st && !cJSON_IsString(child.node))
        st = json_fail(&child, err, "must be a text");
    if (st)
        return st;
    *out = arena_strdup(arena, child.node->valuestring);
    return *out ? ST_OK : error_no_memory(err);
}

static enum status read_count(const struct json_at *at, const char *key, size_t *out, struct error *err) {
    uint64_t count;
    enum status st = json_get_integer(at, key, JSON_REQUIRED, 0, UINT32_MAX, &count, err);
    if (!st)
        *out = (size_t)count;
    return st;
}

/* NaN without the member. */
static enum status read_known(const struct json_at *at, const char *key, double *out, struct error *err) {
    *out = NAN;
    return json_get_number(at, key, JSON_OPTIONAL, -MOST, MOST, out, err);
}

static enum status read_measured(const struct json_at *at, struct outcome_row *row, struct error *err) {
    struct json_at child;
    struct summary *out = &row->measured;
    row->us = INFINITY;
    if (!json_has(at, "measured_us", &child))
        return ST_OK;
    enum status st = json_get_number(at, "measured_us", JSON_REQUIRED, 0, MOST, &row->us, err);
    if (!st)
        st = read_known(at, "p95_us", &row->p95_us, err);
    out->median_us = out->mean_us = out->low_us = out->high_us = row->us;
    if (!st)
        st = json_get_number(at, "low_us", JSON_OPTIONAL, 0, MOST, &out->low_us, err);
    if (!st)
        st = json_get_number(at, "high_us", JSON_OPTIONAL, 0, MOST, &out->high_us, err);
    return st ? st : read_count(at, "iterations", &out->n, err);
}

static enum status read_outlook(const struct json_at *at, struct outcome_row *row, struct error *err) {
    struct json_at weather;
    enum status st = read_known(at, "quiet_us", &row->quiet_us, err);
    if (st || !json_has(at, "in_weather", &weather))
        return st;
    return expectation_read(&weather, &row->expected, err);
}

static enum status read_state(const struct json_at *at, struct outcome_row *row, struct error *err) {
    struct json_at child;
    row->state = RECORD_COMPLETE;
    if (!json_has(at, "state", &child))
        return ST_OK;
    if (cJSON_IsString(child.node) && record_state_parse(child.node->valuestring, &row->state))
        return ST_OK;
    return json_fail(&child, err, "is no state of a trial");
}

static enum status read_row(const struct json_at *at, struct arena *arena, struct outcome_row *row, struct error *err) {
    *row = (struct outcome_row){.first_us = NAN, .p95_us = NAN, .quiet_us = NAN};
    enum status st = copy_text(at, "strategy", JSON_REQUIRED, arena, &row->strategy, err);
    if (!st)
        st = copy_text(at, "name", JSON_REQUIRED, arena, &row->name, err);
    if (!st)
        st = copy_text(at, "proposer", JSON_OPTIONAL, arena, &row->proposer, err);
    if (!st)
        st = copy_text(at, "reason", JSON_OPTIONAL, arena, &row->reason, err);
    if (!st)
        st = read_count(at, "trials", &row->trials, err);
    if (!st)
        st = read_count(at, "complete", &row->complete, err);
    if (!st)
        st = read_known(at, "predicted_us", &row->predicted_us, err);
    if (!st)
        st = json_get_bool(at, "final", JSON_REQUIRED, &row->final, err);
    if (!st)
        st = json_get_bool(at, "early", JSON_OPTIONAL, &row->early, err);
    if (!st)
        st = read_state(at, row, err);
    row->baseline = st ? NULL : outcome_baseline(row->proposer);
    row->stale = !st && row->proposer && !strcmp(row->proposer, OUTCOME_STALE);
    row->in_step = !st && row->proposer && !strcmp(row->proposer, OUTCOME_IN_STEP);
    if (!st)
        st = read_outlook(at, row, err);
    return st ? st : read_measured(at, row, err);
}

static enum status read_rows(const struct json_at *root, struct outcome *o, struct error *err) {
    struct json_at list;
    size_t n;
    enum status st = json_array(root, "strategies", UINT32_MAX, &list, &n, err);
    if (st)
        return st;
    o->rows = arena_alloc(&o->arena, n, sizeof *o->rows);
    if (!o->rows)
        return error_no_memory(err);
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
        st = read_row(&e, &o->arena, &o->rows[o->n_rows++], err);
    return st;
}

/* The row that the member `key` repeats; SIZE_MAX without the member. */
static enum status read_place(const struct json_at *root, const char *key, const struct outcome *o, size_t *out,
                              struct error *err) {
    struct json_at at;
    const char *id;
    *out = SIZE_MAX;
    if (!json_has(root, key, &at))
        return ST_OK;
    enum status st = json_get_string(&at, "strategy", JSON_REQUIRED, &id, err);
    for (size_t i = 0; i < o->n_rows && !st; i++)
        if (o->rows[i].measured.n && !strcmp(o->rows[i].strategy, id)) {
            *out = i;
            return ST_OK;
        }
    return st ? st : json_fail(&at, err, "is not one of the session's strategies that completed");
}

static enum status read_ratio(const struct json_at *at, const char *key, struct outcome_ratio *out, struct error *err) {
    struct json_at ratio;
    if (!json_has(at, key, &ratio))
        return ST_OK;
    enum status st = json_get_number(&ratio, "mean", JSON_REQUIRED, 0, MOST, &out->mean, err);
    if (!st)
        st = read_known(&ratio, "low", &out->low, err);
    if (!st)
        st = read_known(&ratio, "high", &out->high, err);
    return st ? st : read_count(&ratio, "rounds", &out->n, err);
}

static enum status read_weather(const struct json_at *root, struct outcome *o, struct error *err) {
    struct json_at weather;
    if (!json_has(root, "weather", &weather))
        return ST_OK;
    enum status st = json_get_integer(&weather, "seed", JSON_REQUIRED, 1, UINT64_MAX, &o->weather.seed, err);
    if (!st)
        st = read_place(&weather, "quiet_best", o, &o->weather.quiet, err);
    return st ? st : read_ratio(&weather, "loss", &o->weather.loss, err);
}

static enum status read_learning(const struct json_at *at, const char *key, struct outcome_learning *out,
                                 struct error *err) {
    struct json_at child;
    enum status st = json_member(at, key, &child, err);
    if (!st)
        st = read_count(&child, "trials", &out->trials, err);
    if (!st)
        st = read_count(&child, "reached", &out->reached, err);
    if (!st)
        st = read_known(&child, "updates", &out->updates, err);
    if (!st)
        st = read_known(&child, "time_us", &out->us, err);
    return st ? st : read_known(&child, "last", &out->last, err);
}

static enum status read_training(const struct json_at *stale, struct outcome_stale *s, struct error *err) {
    struct json_at at;
    if (!json_has(stale, "training", &at))
        return ST_OK;
    const struct {
        const char *key;
        double *to;
    } figures[] = {{"rate", &s->rate},   {"momentum", &s->momentum}, {"first", &s->first},
                   {"least", &s->least}, {"target", &s->target},     {"updates", &s->updates}};
    enum status st = ST_OK;
    for (size_t i = 0; i < sizeof figures / sizeof *figures && !st; i++)
        st = read_known(&at, figures[i].key, figures[i].to, err);
    if (!st)
        st = read_learning(&at, "stale", &s->learning, err);
    if (!st)
        st = read_learning(&at, "synchronous", &s->in_step, err);
    return st ? st : read_ratio(&at, "gain", &s->gain, err);
}

static enum status read_stale(const struct json_at *root, struct outcome *o, struct error *err) {
    struct outcome_stale *s = &o->stale;
    struct json_at at;
    if (!json_has(root, "stale", &at))
        return ST_OK;
    enum status st = json_get_integer(&at, "allowed", JSON_REQUIRED, 1, UINT32_MAX, &s->allowed, err);
    if (!st)
        st = read_place(&at, "best", o, &s->best, err);
    if (!st)
        st = read_ratio(&at, "speedup", &s->speedup, err);
    if (!st)
        st = read_known(&at, "delay_mean", &s->delay_mean, err);
    if (!st)
        st = read_known(&at, "delay_variance", &s->delay_variance, err);
    if (!st)
        st = read_known(&at, "delay_largest", &s->delay_largest, err);
    if (!st)
        st = read_known(&at, "dropped_share", &s->dropped, err);
    return st ? st : read_training(&at, s, err);
}

static enum status read_accuracy(const struct json_at *root, struct outcome_accuracy *out, struct error *err) {
    struct json_at at;
    enum status st = json_member(root, "accuracy", &at, err);
    if (!st)
        st = read_count(&at, "strategies", &out->n, err);
    if (!st)
        st = read_known(&at, "off", &out->off, err);
    return st ? st : read_known(&at, "ordered", &out->ordered, err);
}

/* A knob or a proposer that only a newer version has is ignored. */
static enum status read_knobs(const struct json_at *root, struct outcome *o, struct error *err) {
    struct json_at list;
    const char *name;
    size_t n;
    enum status st = json_array(root, "knobs", UINT32_MAX, &list, &n, err);
    for (struct json_at e = st ? (struct json_at){0} : json_first(&list); e.node && !st; e = json_next(&e)) {
        st = json_get_string(&e, "name", JSON_REQUIRED, &name, err);
        for (int k = 0; k < SKETCH_KNOBS && !st; k++)
            if (!strcmp(sketch_knob_label((enum sketch_knob)k), name))
                st = json_get_number(&e, "importance", JSON_REQUIRED, 0, MOST, &o->importance[k], err);
        o->has_importance = true;
    }
    return st;
}

static enum status read_score(const struct json_at *at, struct proposer_score *out, struct error *err) {
    enum status st = read_count(at, "trials", &out->tried, err);
    return st ? st : read_count(at, "wins", &out->wins, err);
}

static enum status read_proposers(const struct json_at *root, struct outcome *o, struct error *err) {
    struct json_at list;
    const char *name;
    size_t n;
    enum status st = json_array(root, "proposers", UINT32_MAX, &list, &n, err);
    for (struct json_at e = st ? (struct json_at){0} : json_first(&list); e.node && !st; e = json_next(&e)) {
        st = json_get_string(&e, "name", JSON_REQUIRED, &name, err);
        for (int p = 0; p < PROPOSER_COUNT && !st; p++)
            if (!strcmp(proposer_name((enum proposer)p), name))
                st = read_score(&e, &o->proposers[p], err);
    }
    return st;
}

static enum status read_head(const struct json_at *root, struct outcome *o, struct error *err) {
    enum status st = copy_text(root, "session", JSON_REQUIRED, &o->arena, &o->session.id, err);
    if (!st)
        st = copy_text(root, "reason", JSON_OPTIONAL, &o->arena, &o->session.reason, err);
    if (!st)
        st = read_count(root, "trials", &o->ended, err);
    o->stop = tune_stop_of(o->session.reason);
    return st ? st : json_get_number(root, "lower_bound_us", JSON_REQUIRED, 0, MOST, &o->lower_bound_us, err);
}

static enum status read_comparison(const struct json_at *root, struct outcome *o, struct error *err) {
    enum status st = read_place(root, "best", o, &o->best, err);
    if (!st)
        st = read_place(root, "baseline", o, &o->baseline, err);
    if (!st)
        st = read_known(root, "speedup", &o->speedup, err);
    if (!st)
        st = read_known(root, "gap", &o->gap, err);
    return st ? st : json_get_bool(root, "overlap", JSON_REQUIRED, &o->overlap, err);
}

static enum status read_all(const struct json_at *root, const struct model *model, const struct cluster *cluster,
                            struct outcome *o, struct error *err) {
    struct json_at strategy;
    enum status st = read_head(root, o, err);
    if (!st)
        st = read_rows(root, o, err);
    if (!st)
        st = read_comparison(root, o, err);
    if (!st)
        st = read_weather(root, o, err);
    if (!st)
        st = read_stale(root, o, err);
    if (!st)
        st = read_accuracy(root, &o->accuracy, err);
    if (!st)
        st = read_knobs(root, o, err);
    if (!st)
        st = read_proposers(root, o, err);
    if (!st && model && json_has(root, "strategy", &strategy))
        st = strategy_read(strategy.node, "strategy", model, cluster, &o->strategy, err);
    if (!st && model && json_has(root, "stale_strategy", &strategy))
        st = strategy_read(strategy.node, "stale_strategy", model, cluster, &o->stale_strategy, err);
    return st;
}

enum status outcome_read(const cJSON *json, const struct model *model, const struct cluster *cluster,
                         struct outcome *out, struct error *err) {
    struct outcome o = {.best = SIZE_MAX,
                        .baseline = SIZE_MAX,
                        .speedup_low = NAN,
                        .speedup_high = NAN,
                        .weather = OUTCOME_NO_WEATHER,
                        .stale = OUTCOME_NO_STALE};
    const struct json_at root = json_root(json, "outcome");
    enum status st = read_all(&root, model, cluster, &o, err);
    if (st)
        outcome_release(&o);
    else
        *out = o;
    return st;
}
