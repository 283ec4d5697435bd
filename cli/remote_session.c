/* See remote_session.h: opening and following. The answer is in remote_answer.c. */
#include "cli/remote_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/remote_records.h"
#include "strategy/baselines/baselines.h"

/* ---- opening ---- */

/* A list as words with commas between; false: none. Cut where it is longer than all words of ours. */
static bool read_words(const cJSON *json, const char *key, char *out, size_t room) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, key), *item;
    size_t n = 0;
    *out = '\0';
    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsString(item) && n < room)
            n += (size_t)snprintf(out + n, room - n, "%s%s", n ? "," : "", item->valuestring);
    }
    return n > 0;
}

static void read_limits(const cJSON *json, struct export_limits *out) {
    char forms[1024], accepted[1024];
    struct error unused;
    if (!read_words(json, "export_to", forms, sizeof forms))
        return;
    (void)export_limits_parse(forms, read_words(json, "accept", accepted, sizeof accepted) ? accepted : NULL, out,
                              &unused);
}

enum status remote_session_read(const cJSON *json, struct remote_session *out, struct error *err) {
    struct remote_session s = {.own = !strcmp(remote_text(json, "mode"), "own")};
    snprintf(s.id, sizeof s.id, "%s", remote_text(json, "id"));
    snprintf(s.model, sizeof s.model, "%s", remote_text(cJSON_GetObjectItemCaseSensitive(json, "model"), "id"));
    snprintf(s.cluster, sizeof s.cluster, "%s", remote_text(cJSON_GetObjectItemCaseSensitive(json, "cluster"), "id"));
    snprintf(s.state, sizeof s.state, "%s", remote_text(json, "state"));
    snprintf(s.reason, sizeof s.reason, "%s", remote_text(json, "reason"));
    s.trials = remote_count(cJSON_GetObjectItemCaseSensitive(json, "budget"), "trials");
    read_limits(json, &s.limits);
    if (!*s.id || !*s.state || !*s.model || !*s.cluster)
        return error_set(err, ST_UNREACHABLE, "the service's answer is no session: it speaks another version");
    *out = s;
    return ST_OK;
}

bool remote_add_words(cJSON *to, const char *key, const char *words) {
    cJSON *list = words ? cJSON_AddArrayToObject(to, key) : NULL;
    bool whole = list || !words;
    for (const char *word = words; word && *word && whole;) {
        const size_t n = strcspn(word, ",");
        char *copy = strndup(word, n);
        whole = copy && cJSON_AddItemToArray(list, cJSON_CreateString(copy));
        free(copy);
        word += n + (word[n] == ',');
    }
    return whole;
}

static cJSON *new_session(const struct inputs *inputs, const struct tune_options *o, const char *ranker,
                          const char *runner, bool own, bool *whole) {
    cJSON *root = cJSON_CreateObject(), *budget = root ? cJSON_AddObjectToObject(root, "budget") : NULL;
    *whole = budget && cJSON_AddNumberToObject(budget, "trials", (double)o->trials) &&
             cJSON_AddNumberToObject(budget, "time_us", o->time_us) && cJSON_AddNumberToObject(budget, "gap", o->gap) &&
             cJSON_AddStringToObject(root, "model", inputs->model.id.hex) &&
             cJSON_AddStringToObject(root, "cluster", inputs->cluster.id.hex) &&
             cJSON_AddStringToObject(root, "mode", own ? "own" : "ask") &&
             cJSON_AddNumberToObject(root, "seed", (double)o->seed) &&
             cJSON_AddNumberToObject(root, "final_rounds", (double)o->kept.final_rounds) &&
             cJSON_AddNumberToObject(root, "trial_us", o->kept.trial_us) &&
             cJSON_AddNumberToObject(root, "least_gain", o->kept.least_gain) &&
             cJSON_AddNumberToObject(root, "earlier", (double)o->kept.earlier) &&
             (!o->kept.allow_lossy || cJSON_AddTrueToObject(root, "allow_lossy")) &&
             (!o->kept.allow_sharded ||
              cJSON_AddStringToObject(root, "allow_sharded", sharded_name(o->kept.allow_sharded))) &&
             (!o->kept.allow_stale || cJSON_AddNumberToObject(root, "allow_stale", (double)o->kept.allow_stale)) &&
             (!o->kept.memory_bytes || cJSON_AddNumberToObject(root, "memory_bytes", (double)o->kept.memory_bytes)) &&
             (!o->kept.weather || cJSON_AddTrueToObject(root, "weather")) &&
             remote_add_words(root, "export_to", o->kept.job.export_to) &&
             remote_add_words(root, "accept", o->kept.job.accept) && cJSON_AddStringToObject(root, "ranker", ranker) &&
             (!runner || cJSON_AddStringToObject(root, "runner", runner));
    return root;
}

enum status remote_session_open(struct client *client, const struct inputs *inputs, const struct tune_options *options,
                                const char *ranker, const char *runner, struct remote_session *out, struct error *err) {
    cJSON *answer = NULL;
    enum status st = ST_CONFLICT;
    bool whole;
    if (!runner) {
        cJSON *body = new_session(inputs, options, ranker, NULL, true, &whole);
        st = remote_post(client, "/api/v1/sessions", body, whole, &answer, err);
    }
    if (st == ST_CONFLICT && (runner || !strcmp(err->code, "no-launcher"))) { /* others run the trials */
        cJSON *body = new_session(inputs, options, ranker, runner, false, &whole);
        st = remote_post(client, "/api/v1/sessions", body, whole, &answer, err);
    }
    if (!st)
        st = remote_session_read(answer, out, err);
    if (!st && *remote_text(answer, "note"))
        log_warn("%s", remote_text(answer, "note"));
    cJSON_Delete(answer);
    return st;
}

enum status remote_session_find(struct client *client, const char *id, struct remote_session *out, struct error *err) {
    cJSON *answer = NULL;
    char *escaped = client_escape(client, id);
    enum status st = escaped ? remote_get(client, &answer, err, "/api/v1/sessions/%s", escaped) : error_no_memory(err);
    if (!st)
        st = remote_session_read(answer, out, err);
    cJSON_Delete(answer);
    free(escaped);
    return st;
}

/* ---- following ---- */

struct follow {
    struct client *client;
    struct remote_session *session;
    double begin_us, best_us;
    uint64_t ended; /* trials, since we look */
    enum status status;
    struct error *err;
};

static bool has_ended(const struct remote_session *s) {
    return strcmp(s->state, "running") != 0 && strcmp(s->state, "paused") != 0;
}

static enum tune_phase phase_of(const struct record *r) {
    const struct baseline *baseline = r->proposer ? baselines_find(r->proposer) : NULL;
    if (r->proposer && (!strcmp(r->proposer, OUTCOME_STALE) || !strcmp(r->proposer, OUTCOME_IN_STEP)) && !r->round)
        return TUNE_STALE;
    return r->round ? TUNE_FINAL : baseline && baseline->kind != BASELINE_EXACT ? TUNE_BASELINES : TUNE_SEARCH;
}

static double left_us(const struct follow *f, uint64_t number, double elapsed_us) {
    const uint64_t budget = f->session->trials;
    if (!budget || !f->ended || number > budget)
        return INFINITY;
    return elapsed_us / (double)f->ended * (double)(budget - number + 1);
}

/* Show a trial in one line. `ended` says that the line is about its outcome. */
static void show(struct follow *f, const struct record *r, bool ended) {
    const double elapsed_us = clock_now_us() - f->begin_us;
    const struct tune_outcome outcome = {.state = r->state, .early = trial_ended_early(r), .reason = r->reason};
    const double us = trial_weather(r) ? r->mean_us : r->median_us;
    f->ended += ended;
    if (ended && r->state == RECORD_COMPLETE && us < f->best_us)
        f->best_us = us;
    const struct tune_event event = {.phase = phase_of(r),
                                     .number = r->number,
                                     .budget = f->session->trials,
                                     .name = r->strategy_name,
                                     .proposer = r->proposer,
                                     .predicted_us = r->predicted_us,
                                     .outcome = ended ? &outcome : NULL,
                                     .median_us = us,
                                     .best_us = f->best_us,
                                     .elapsed_us = elapsed_us,
                                     .left_us = left_us(f, r->number, elapsed_us)};
    progress_listen(NULL, &event);
}

static enum status show_trial(struct follow *f, uint64_t number, bool ended) {
    struct arena arena = {0};
    struct record record;
    cJSON *json = NULL;
    enum status st =
        remote_get(f->client, &json, f->err, "/api/v1/sessions/%s/trials/%lu", f->session->id, (unsigned long)number);
    if (!st)
        st = remote_record(json, &arena, &record, f->err);
    if (!st)
        show(f, &record, ended);
    cJSON_Delete(json);
    arena_release(&arena);
    return st;
}

static bool on_event(void *context, const struct client_event *event) {
    struct follow *f = context;
    cJSON *content = cJSON_Parse(event->data);
    if (!strcmp(event->kind, "trial-taken") || !strcmp(event->kind, "trial-ended")) {
        f->status = show_trial(f, remote_count(content, "number"), !strcmp(event->kind, "trial-ended"));
    } else if (!strcmp(event->kind, "budget")) {
        f->session->trials = remote_count(content, "trials");
    } else if (!strcmp(event->kind, "session")) {
        snprintf(f->session->state, sizeof f->session->state, "%s", remote_text(content, "state"));
        snprintf(f->session->reason, sizeof f->session->reason, "%s", remote_text(content, "reason"));
    }
    cJSON_Delete(content);
    return !f->status && !has_ended(f->session);
}

enum status remote_session_follow(struct client *client, struct remote_session *session, struct error *err) {
    struct follow f = {
        .client = client, .session = session, .begin_us = clock_now_us(), .best_us = INFINITY, .err = err};
    char path[128];
    if (has_ended(session))
        return ST_OK;
    snprintf(path, sizeof path, "/api/v1/sessions/%s/events", session->id);
    enum status st = client_listen(client, path, NULL, 0, on_event, &f, err);
    progress_end();
    return f.status ? f.status : st;
}
