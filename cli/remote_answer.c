/* A service's session as the struct tuning that a session here ends with: rows from its trials, the choice and the
 * strategy from its /best, what the trials teach from its /importance. See remote_session.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/remote.h"
#include "cli/remote_records.h"
#include "cli/remote_session.h"
#include "strategy/baselines/baselines.h"

/* ---- trials ---- */

struct trials {
    struct arena arena;
    cJSON *kept; /* the items, which the records borrow from */
    size_t n, capacity;
    struct record *records; /* malloc'd */
};

static enum status keep_trial(void *context, const cJSON *item, bool *done, struct error *err) {
    struct trials *t = context;
    cJSON *copy = cJSON_Duplicate(item, true);
    (void)done;
    if (!copy || !cJSON_AddItemToArray(t->kept, copy)) {
        cJSON_Delete(copy);
        return error_no_memory(err);
    }
    if (!GROW(&t->records, &t->capacity, t->n + 1))
        return error_no_memory(err);
    enum status st = remote_record(copy, &t->arena, &t->records[t->n], err);
    t->n += !st;
    return st;
}

static void trials_release(struct trials *t) {
    free(t->records);
    cJSON_Delete(t->kept);
    arena_release(&t->arena);
}

static enum status fetch_trials(struct client *client, const char *session, struct trials *out, struct error *err) {
    char path[160];
    *out = (struct trials){.kept = cJSON_CreateArray()};
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials?iterations=true&page_size=1000", session);
    return out->kept ? remote_each(client, path, keep_trial, out, err) : error_no_memory(err);
}

/* ---- rows ---- */

static struct tune_row *row_of(struct tuning *t, const struct record *r) {
    for (size_t i = 0; i < t->n_rows; i++)
        if (!strcmp(t->rows[i].id.hex, r->strategy))
            return &t->rows[i];
    const struct baseline *baseline = r->proposer ? baselines_find(r->proposer) : NULL;
    struct tune_row *row = &t->rows[t->n_rows++];
    *row = (struct tune_row){.state = r->state, .predicted_us = r->predicted_us};
    row->baseline = baseline && baseline->kind != BASELINE_EXACT;
    row->proposer = row->baseline ? baseline->name : NULL;
    row->early = trial_ended_early(r);
    snprintf(row->id.hex, sizeof row->id.hex, "%s", r->strategy);
    snprintf(row->name, sizeof row->name, "%s", r->strategy_name);
    return row;
}

/* A strategy that was in the final is measured by its rounds there alone: its first trial chose it. */
static enum status measure(const struct trials *trials, struct tune_row *row, struct error *err) {
    size_t n = 0;
    enum status st = ST_OK;
    size_t *counts = calloc(trials->n, sizeof *counts);
    double **rounds = calloc(trials->n, sizeof *rounds);
    for (size_t i = 0; counts && rounds && i < trials->n; i++) {
        const struct record *r = &trials->records[i];
        if (strcmp(r->strategy, row->id.hex) != 0 || r->state != RECORD_COMPLETE || !r->n_iterations)
            continue;
        counts[n] = r->n_iterations;
        rounds[n++] = (double *)r->iterations_us;
    }
    row->final = n > 1;
    row->early = row->early && n == 1;
    row->state = n ? RECORD_COMPLETE : row->state;
    if (!counts || !rounds)
        st = error_no_memory(err);
    else if (n)
        st = summary_of_rounds(n - row->final, counts + row->final, rounds + row->final, &row->measured, err);
    free(counts);
    free(rounds);
    return st;
}

static enum status fill_rows(const struct trials *trials, struct tuning *t, struct error *err) {
    enum status st = ST_OK;
    t->rows = calloc(trials->n + 1, sizeof *t->rows);
    if (!t->rows)
        return error_no_memory(err);
    for (size_t i = 0; i < trials->n; i++) {
        const struct record *r = &trials->records[i];
        if (r->state == RECORD_WAITING || r->state == RECORD_RUNNING || r->state == RECORD_CANCELLED)
            continue;
        struct tune_row *row = row_of(t, r);
        if (r->reason && r->state != RECORD_COMPLETE)
            snprintf(row->reason, sizeof row->reason, "%s", r->reason);
    }
    for (size_t i = 0; i < t->n_rows && !st; i++)
        st = measure(trials, &t->rows[i], err);
    tuning_order_rows(t->n_rows, t->rows);
    return st;
}

/* ---- the choice ---- */

static size_t row_called(const struct tuning *t, const cJSON *measured) {
    const char *id = remote_text(measured, "strategy_id");
    for (size_t i = 0; i < t->n_rows; i++)
        if (!strcmp(t->rows[i].id.hex, id))
            return i;
    return SIZE_MAX;
}

static enum status read_best(const cJSON *json, const struct inputs *inputs, struct tuning *t, struct error *err) {
    t->trials = remote_count(json, "trials");
    t->best = row_called(t, cJSON_GetObjectItemCaseSensitive(json, "best"));
    t->best_baseline = row_called(t, cJSON_GetObjectItemCaseSensitive(json, "baseline"));
    t->speedup = remote_number(json, "speedup");
    t->overlap = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "overlap"));
    t->lower_bound_us = remote_number(json, "lower_bound_us");
    t->gap = remote_number(json, "gap");
    if (t->best == SIZE_MAX)
        return error_set(err, ST_UNREACHABLE, "the service's best strategy is none of the session's trials");
    return strategy_read(cJSON_GetObjectItemCaseSensitive(json, "strategy"), "answer", &inputs->model, &inputs->cluster,
                         &t->strategy, err);
}

static void read_importance(const cJSON *json, struct tuning *t) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "knobs")) {
        for (enum sketch_knob k = 0; k < SKETCH_KNOBS; k++)
            if (!strcmp(sketch_knob_words(k), remote_text(item, "name"))) {
                t->importance[k] = remote_number(item, "importance");
                t->has_importance = true;
            }
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "proposers")) {
        for (enum proposer p = 0; p < PROPOSER_COUNT; p++)
            if (!strcmp(proposer_name(p), remote_text(item, "name")))
                t->proposers[p] =
                    (struct proposer_score){.tried = remote_count(item, "trials"), .wins = remote_count(item, "wins")};
    }
}

static enum tune_stop stop_of(const struct remote_session *s) {
    for (int stop = 0; stop < TUNE_STOP_COUNT; stop++)
        if (!strcmp(s->reason, tune_stop_words((enum tune_stop)stop)))
            return (enum tune_stop)stop;
    return TUNE_STOP_ASKED;
}

/* /best knows no best before a trial has completed. */
static enum status fetch_best(struct client *client, const struct remote_session *s, cJSON **out, struct error *err) {
    enum status st = remote_get(client, out, err, "/api/v1/sessions/%s/best", s->id);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_INFEASIBLE, "session %s is %s, and no trial of it completed%s%s", s->id, s->state,
                         *s->reason ? ": " : "", s->reason);
    return st;
}

enum status remote_session_answer(struct client *client, const struct remote_session *s, const struct inputs *inputs,
                                  struct tuning *out, struct error *err) {
    struct tuning t = {.stop = stop_of(s)};
    struct trials trials = {0};
    cJSON *best = NULL, *importance = NULL;
    memcpy(t.session, s->id, sizeof t.session);
    enum status st = fetch_best(client, s, &best, err);
    if (!st)
        st = remote_get(client, &importance, err, "/api/v1/sessions/%s/importance", s->id);
    if (!st)
        st = fetch_trials(client, s->id, &trials, err);
    if (!st)
        st = fill_rows(&trials, &t, err);
    if (!st)
        st = read_best(best, inputs, &t, err);
    if (!st)
        read_importance(importance, &t);
    cJSON_Delete(best);
    cJSON_Delete(importance);
    trials_release(&trials);
    if (!st)
        *out = t;
    else
        free(t.rows);
    return st;
}
