/* Sessions: to open, to look at, to steer. Their outcomes are in outcomes.c. The hub (service/hub.h) has the sessions.
 * What the dataset alone can answer is read from there, so that looking never waits for a session that computes. */
#include "service/http/api/sessions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/describe.h"
#include "dataset/events.h"
#include "dataset/pages.h"
#include "dataset/sharing.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"
#include "service/http/api/quotas.h"
#include "service/http/api/references.h"
#include "trial-runner/launch.h"
#include "tuner/session/session_options.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000, WORDS_MAX = 32, MOST_TRIALS = 100000, MOST_ROUNDS = 16 };
static const double MOST_BUDGET_US = 1e13, MOST_GAP = 100;

/* ---- who may ---- */

static bool is_among(const char *shared, const char *team) {
    char word[TEAM_NAME_MAX + 3];
    snprintf(word, sizeof word, "|%s|", team);
    return strstr(shared, word) != NULL;
}

bool session_may_see(const struct principal *who, const struct stored_session *session) {
    return who->role == ROLE_ADMIN || !strcmp(session->shared, "*") ||
           (session->team && !strcmp(session->team, who->team)) || is_among(session->shared, who->team);
}

static bool may_steer(const struct principal *who, const struct stored_session *session) {
    return who->role == ROLE_ADMIN || (session->team && !strcmp(session->team, who->team));
}

enum status request_session_of(struct request *rq, const char *id, struct stored_session *out, struct error *err) {
    struct store *store;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = store_session_get(store, id, &rq->arena, out, err);
    if (st == ST_NOT_FOUND || (!st && !session_may_see(&rq->principal, out)))
        return error_set(err, ST_NOT_FOUND, "there is no session %.80s", id);
    return st;
}

enum status request_session(struct request *rq, bool steer, struct stored_session *out, struct error *err) {
    enum status st = request_session_of(rq, request_parameter(rq, "session"), out, err);
    if (!st && steer && !may_steer(&rq->principal, out))
        return problem_fail(err, PROBLEM_FORBIDDEN, "session %s belongs to another team", out->id);
    return st;
}

enum status request_hub_session(struct request *rq, bool steer, struct hub_session **out, struct error *err) {
    struct stored_session stored;
    *out = NULL;
    enum status st = request_session(rq, steer, &stored, err);
    return st ? st : hub_find(rq->service->hub, stored.id, out, err);
}

/* A worker never waits for a session: others need it. */
enum status request_lock(struct request *rq, struct hub_session *live, bool search, bool *held, struct error *err) {
    *held = hub_try(live);
    if (!*held) {
        hub_keep(live);
        rq->busy = live;
        return ST_OK;
    }
    enum status st = search ? hub_search(live, err) : ST_OK;
    rq->wants_heavy = !st && !hub_is_awake(live) && !rq->heavy;
    if (!st && !rq->wants_heavy)
        st = hub_wake(live, err);
    if (st || rq->wants_heavy) {
        hub_unlock(live);
        *held = false;
    }
    return st;
}

/* ---- a session as JSON ---- */

/* The tag that If-Match compares. It changes with state, budget and sharing. */
static const char *entity_tag(struct arena *arena, const struct stored_session *s) {
    struct id id;
    char *text = arena_printf(arena, "%s %s %s %s", s->id, stored_session_state_word(s->state), s->budget, s->shared);
    return text && !id_of(text, strlen(text), &id, NULL) ? arena_printf(arena, "%.16s", id.hex) : NULL;
}

static bool add_text(cJSON *to, const char *key, const char *text) {
    return !text || cJSON_AddStringToObject(to, key, text);
}

static bool add_object(cJSON *to, struct request *rq, struct store *store, enum store_kind kind, const char *key,
                       const char *id) {
    const struct viewer asker = request_asker(rq);
    const char *name;
    cJSON *named = cJSON_AddObjectToObject(to, key);
    return named && !seen_name(store, kind, id, &asker, &rq->arena, &name, NULL) &&
           cJSON_AddStringToObject(named, "id", id) && cJSON_AddStringToObject(named, "name", name);
}

/* Zeros where it is damaged: such a session is listed too. */
static bool add_budget(cJSON *to, const struct stored_session *s) {
    struct session_budget stored = {0};
    cJSON *budget = cJSON_AddObjectToObject(to, "budget");
    if (session_budget_read(s, &stored, NULL))
        stored = (struct session_budget){0};
    return budget && cJSON_AddNumberToObject(budget, "trials", (double)stored.trials) &&
           cJSON_AddNumberToObject(budget, "time_us", stored.time_us) &&
           cJSON_AddNumberToObject(budget, "gap", stored.gap);
}

static bool add_shared(cJSON *to, const char *shared) {
    cJSON *json = shared_json(shared);
    if (json && cJSON_AddItemToObject(to, "shared", json))
        return true;
    cJSON_Delete(json);
    return false;
}

static bool add_words(cJSON *to, const char *key, const char *words) {
    cJSON *list = words ? cJSON_AddArrayToObject(to, key) : NULL;
    bool whole = !words || list;
    for (size_t n; words && *words && whole; words += n + (words[n] == ',')) {
        char word[128];
        n = strcspn(words, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        cJSON *item = cJSON_CreateString(word);
        whole = item && cJSON_AddItemToArray(list, item);
        if (!whole)
            cJSON_Delete(item);
    }
    return whole;
}

/* What the request said of weather, memory and what may be tried; nothing where its options are damaged. */
static bool add_options(cJSON *to, struct request *rq, const struct stored_session *s) {
    struct session_options kept = {0};
    if (session_options_read(s, &rq->arena, &kept, NULL))
        kept = (struct session_options){0};
    return (!kept.weather || cJSON_AddTrueToObject(to, "weather")) &&
           (!kept.memory_bytes || cJSON_AddNumberToObject(to, "memory_bytes", (double)kept.memory_bytes)) &&
           add_text(to, "allow_sharded", kept.allow_sharded ? sharded_name(kept.allow_sharded) : NULL) &&
           (!kept.allow_lossy || cJSON_AddTrueToObject(to, "allow_lossy")) &&
           (!kept.allow_stale || cJSON_AddNumberToObject(to, "allow_stale", (double)kept.allow_stale)) &&
           add_words(to, "export_to", kept.job.export_to ? kept.job.export_to : kept.job.export_env) &&
           add_words(to, "accept", kept.job.accept);
}

static bool add_session(cJSON *to, struct request *rq, struct store *store, const struct stored_session *s) {
    char href[128];
    snprintf(href, sizeof href, "/api/v1/sessions/%s", s->id);
    return cJSON_AddStringToObject(to, "id", s->id) && cJSON_AddStringToObject(to, "href", href) &&
           add_object(to, rq, store, STORE_MODEL, "model", s->model) &&
           add_object(to, rq, store, STORE_CLUSTER, "cluster", s->cluster) &&
           cJSON_AddStringToObject(to, "mode", stored_session_mode_word(s->mode)) &&
           cJSON_AddStringToObject(to, "state", stored_session_state_word(s->state)) &&
           add_text(to, "reason", s->reason) && cJSON_AddNumberToObject(to, "seed", (double)s->seed) &&
           add_budget(to, s) && add_options(to, rq, s) && add_text(to, "team", s->team) && add_shared(to, s->shared) &&
           cJSON_AddStringToObject(to, "started", s->started) && add_text(to, "ended", s->ended) &&
           cJSON_AddNumberToObject(to, "trials", (double)s->trials) &&
           cJSON_AddNumberToObject(to, "complete", (double)s->complete);
}

/* `note`: what people should know at once; or NULL. */
static enum status answer_session(struct request *rq, struct store *store, const char *id, unsigned status,
                                  const char *note, struct response *rs, struct error *err) {
    struct stored_session stored;
    enum status st = store_session_get(store, id, &rq->arena, &stored, err);
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    rs->etag = entity_tag(&rq->arena, &stored);
    rs->cache_control = "private, no-cache";
    bool whole = root && rs->etag && add_session(root, rq, store, &stored) && add_text(root, "note", note);
    return response_json(rs, status, root, whole, err);
}

/* ---- looking ---- */

static enum status list_options(struct request *rq, struct session_list *list, enum stored_session_state *state,
                                uint64_t *size, struct error *err) {
    const char *word = request_query(rq, "state");
    list->viewer = request_viewer(rq);
    list->team = request_query(rq, "team");
    if (word && !stored_session_state_parse(word, state))
        return error_set(err, ST_USAGE, "query parameter state: there is no state %.40s", word);
    if (word)
        list->state = state;
    return request_query_integer(rq, "page_size", 1, PAGE_MAX, size, err);
}

enum status api_sessions_list(struct request *rq, struct response *rs, struct error *err) {
    struct session_list list = {0};
    enum stored_session_state state;
    struct stored_session *sessions;
    struct list_answer answer;
    struct store *store;
    char next[PAGE_CURSOR_ROOM];
    uint64_t size = PAGE_SIZE;
    size_t n;
    enum status st = list_options(rq, &list, &state, &size, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (st)
        return st;
    st = page_sessions(store, &list, request_query(rq, "page_token"), (size_t)size, &rq->arena, &n, &sessions, next,
                       err);
    if (st)
        return list_fault(st, request_query(rq, "page_token"), err);
    list_begin(&answer);
    for (size_t i = 0; i < n && answer.whole; i++) {
        cJSON *item = list_add(&answer);
        answer.whole = item && add_session(item, rq, store, &sessions[i]);
    }
    const char *note =
        list_note(request_query(rq, "page_token"), list.team || list.state,
                  "no session that you may see is of this state and team; ask without state and team for all there are",
                  "there are no sessions yet that you may see; open one: POST /api/v1/sessions");
    return list_end(&answer, next, note, rs, err);
}

enum status api_sessions_get(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    struct store *store;
    enum status st = request_session(rq, false, &stored, err);
    if (!st)
        st = request_reader(rq, &store, err);
    return st ? st : answer_session(rq, store, stored.id, 200, NULL, rs, err);
}

/* ---- opening ---- */

/* A team in a list. The words "all" and "team" are no teams, unless a token has a team of that name. */
static enum status read_team(struct request *rq, const struct json_at *at, const char **team, struct error *err) {
    enum status st = json_string_at(at, team, err);
    if (!st && !team_is_valid(*team))
        st = json_fail(at, err, "is no team: 1 to 64 letters, digits, '.', '-' and '_'");
    if (!st && team_is_word(*team) && !tokens_have_team(rq->service->tokens, *team))
        st = json_fail(at, err, "is no team, but a word that stands alone: \"shared\": \"%s\"", *team);
    return st;
}

enum status request_shared(struct request *rq, const struct json_at *body, const char **out, struct error *err) {
    struct json_at at;
    *out = "*";
    if (!json_has(body, "shared", &at))
        return ST_OK;
    if (cJSON_IsString(at.node)) {
        if (strcmp(at.node->valuestring, "all") && strcmp(at.node->valuestring, "team"))
            return json_fail(&at, err, "must be \"all\", \"team\" or a list of teams");
        *out = !strcmp(at.node->valuestring, "all") ? "*" : "";
        return ST_OK;
    }
    if (!cJSON_IsArray(at.node))
        return json_fail(&at, err, "must be \"all\", \"team\" or a list of teams");
    struct json_at teams;
    size_t n;
    enum status st = json_array(body, "shared", 64, &teams, &n, err);
    if (st)
        return st;
    char *text = arena_strdup(&rq->arena, "|");
    for (struct json_at e = json_first(&teams); !st && text && e.node; e = json_next(&e)) {
        const char *team;
        st = read_team(rq, &e, &team, err);
        if (!st)
            text = arena_printf(&rq->arena, "%s%s|", text, team);
    }
    if (!st && !text)
        return error_no_memory(err);
    *out = n ? text : "";
    return st;
}

/* Read the budget into *o. What is absent stays as it was. */
static enum status read_budget(const struct json_at *budget, struct tune_options *o, struct error *err) {
    static const char *const known[] = {"trials", "time_us", "gap", NULL};
    enum status st = json_expect_object(budget, known, err);
    if (!st)
        st = json_get_integer(budget, "trials", JSON_OPTIONAL, 0, MOST_TRIALS, &o->trials, err);
    if (!st)
        st = json_get_number(budget, "time_us", JSON_OPTIONAL, 0, MOST_BUDGET_US, &o->time_us, err);
    if (!st)
        st = json_get_number(budget, "gap", JSON_OPTIONAL, 0, MOST_GAP, &o->gap, err);
    if (!st && !o->trials && !(o->time_us > 0))
        st = json_fail(budget, err, "needs trials or time_us above 0");
    return st;
}

/* A budget that gives a time and no trials does not limit the trials. */
static enum status read_new_budget(const struct json_at *body, struct tune_options *o, struct error *err) {
    struct json_at budget, time;
    if (!json_has(body, "budget", &budget))
        return ST_OK;
    if (json_has(&budget, "time_us", &time))
        o->trials = 0;
    return read_budget(&budget, o, err);
}

static enum status read_options(const struct json_at *body, struct new_session *out, struct error *err) {
    struct tune_options *o = &out->options;
    struct session_options *kept = &o->kept;
    size_t sharded = SHARDED_none;
    enum status st = read_new_budget(body, o, err);
    if (!st)
        st = json_get_integer(body, "seed", JSON_OPTIONAL, 0, 1ull << 53, &o->seed, err);
    if (!st)
        st = json_get_integer(body, "final_rounds", JSON_OPTIONAL, 0, MOST_ROUNDS, &kept->final_rounds, err);
    if (!st)
        st = json_get_number(body, "trial_us", JSON_OPTIONAL, 1e3, 3.6e9, &kept->trial_us, err);
    if (!st)
        st = json_get_number(body, "least_gain", JSON_OPTIONAL, 0, 1, &kept->least_gain, err);
    if (!st)
        st = json_get_integer(body, "earlier", JSON_OPTIONAL, 0, 10000, &kept->earlier, err);
    if (!st)
        st = json_get_bool(body, "allow_lossy", JSON_OPTIONAL, &kept->allow_lossy, err);
    if (!st)
        st = json_get_word(body, "allow_sharded", JSON_OPTIONAL, sharded_words, &sharded, err);
    kept->allow_sharded = (enum sharded)sharded;
    if (!st)
        st =
            json_get_integer(body, "allow_stale", JSON_OPTIONAL, 1, CONSISTENCY_MAX_STALENESS, &kept->allow_stale, err);
    if (!st)
        st = json_get_integer(body, "memory_bytes", JSON_OPTIONAL, 1, 1ull << 53, &kept->memory_bytes, err);
    if (!st)
        st = json_get_string(body, "ranker", JSON_OPTIONAL, &out->ranker, err);
    if (!st)
        st = json_get_string(body, "runner", JSON_OPTIONAL, &kept->launch.runner, err);
    return st;
}

/* A list of words as one text with commas between, as a command line has it; NULL where the member is absent. */
static enum status read_words(struct request *rq, const struct json_at *body, const char *key, const char **out,
                              struct error *err) {
    struct json_at list;
    size_t n;
    *out = NULL;
    if (!json_has(body, key, &list))
        return ST_OK;
    enum status st = json_array(body, key, WORDS_MAX, &list, &n, err);
    const char *text = "";
    for (struct json_at e = json_first(&list); !st && text && e.node; e = json_next(&e)) {
        const char *word;
        st = json_string_at(&e, &word, err);
        if (!st && (!*word || strchr(word, ',')))
            st = json_fail(&e, err, "must be one word");
        if (!st)
            text = arena_printf(&rq->arena, "%s%s%s", text, *text ? "," : "", word);
    }
    if (!st && !text)
        return error_no_memory(err);
    *out = st ? NULL : text;
    return st;
}

enum status request_algorithms(struct request *rq, const struct json_at *body, const char **names, uint32_t *set,
                               struct error *err) {
    struct error wrong;
    struct json_at at;
    *set = 0;
    enum status st = read_words(rq, body, "algorithms", names, err);
    if (st || !*names || !algorithms_parse(*names, set, &wrong))
        return st;
    json_has(body, "algorithms", &at);
    return json_fail(&at, err, "%s", wrong.message);
}

/* To what the session is limited so that clients can carry it out: forms of export, and what they may lose. */
static enum status read_limits(struct request *rq, const struct json_at *body, struct job_options *job,
                               struct error *err) {
    struct export_limits limits;
    struct error wrong;
    struct json_at at;
    enum status st = read_words(rq, body, "export_to", &job->export_to, err);
    if (!st)
        st = read_words(rq, body, "accept", &job->accept, err);
    if (!st && job->accept && !job->export_to) {
        json_has(body, "accept", &at);
        return json_fail(&at, err, "is what the forms of \"export_to\" may lose: name these too");
    }
    if (st || !job->export_to)
        return st;
    if (!export_limits_parse(job->export_to, job->accept, &limits, &wrong))
        return ST_OK;
    const bool forms = export_limits_parse(job->export_to, NULL, &limits, &wrong);
    json_has(body, forms ? "export_to" : "accept", &at);
    return json_fail(&at, err, "%s", wrong.message);
}

static enum status read_stored(struct request *rq, const struct json_at *body, enum store_kind kind, const char *key,
                               const char **out, struct error *err) {
    const char *word;
    struct id id;
    enum status st = json_get_string(body, key, JSON_REQUIRED, &word, err);
    if (!st)
        st = reference_id(rq, kind, word, &id, err);
    if (!st && !(*out = arena_strdup(&rq->arena, id.hex)))
        st = error_no_memory(err);
    return st;
}

/* Whether this runner can play weather. Of one that is not ours nothing is known. */
static bool may_play(const char *runner) {
    enum launcher_kind place;
    return !launcher_parse(runner, &place) || place == LAUNCHER_LAB;
}

/* Check what is said about weather against the cluster. */
static enum status check_weather(const struct json_at *body, const struct cluster *cluster, bool wanted,
                                 const struct new_session *read, struct error *err) {
    struct json_at at;
    if (!wanted && !cluster->variability.given)
        return ST_OK;
    json_has(body, "cluster", &at);
    if (!wanted)
        return json_fail(&at, err,
                         "\"%s\" has \"variability\": \"weather\":true tunes in it; for the quiet network take it out",
                         cluster->name);
    if (!cluster->variability.given)
        return json_fail(&at, err, "\"%s\" has no \"variability\", so there is no weather to tune in", cluster->name);
    if (json_has(body, "ranker", &at) && strcmp(read->ranker, "none"))
        return json_fail(&at, err, "rankers know no weather: leave it out, or say \"none\"");
    if (json_has(body, "runner", &at) && !may_play(read->options.kept.launch.runner))
        return json_fail(&at, err, "weather is played in the lab alone");
    return ST_OK;
}

/* A session is in weather because the request says so, and where it is, its trials last longer unless told. */
static enum status read_weather(struct request *rq, const struct json_at *body, struct new_session *out,
                                struct error *err) {
    struct session_options *kept = &out->options.kept;
    struct cluster cluster;
    struct json_at unused;
    struct store *store;
    bool wanted = false;
    enum status st = json_get_bool(body, "weather", JSON_OPTIONAL, &wanted, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = store_get_cluster(store, out->cluster, &cluster, err);
    if (st)
        return st;
    st = check_weather(body, &cluster, wanted, out, err);
    if (!st && wanted) {
        kept->weather = out->options.seed ? out->options.seed : 1;
        out->ranker = "none";
        if (!json_has(body, "trial_us", &unused))
            kept->trial_us = session_default_trial_us(&cluster);
    }
    cluster_release(&cluster);
    return st;
}

static enum status read_new(struct request *rq, struct new_session *out, struct error *err) {
    static const char *const known[] = {
        "model",      "cluster",      "mode",          "budget",    "seed",   "final_rounds", "trial_us",
        "least_gain", "earlier",      "ranker",        "runner",    "shared", "allow_lossy",  "allow_stale",
        "weather",    "memory_bytes", "allow_sharded", "export_to", "accept", "algorithms",   NULL};
    static const char *const modes[] = {"own", "ask", NULL};
    const struct json_at body = request_body(rq);
    size_t mode = STORED_SESSION_ASK;
    uint32_t algorithms;
    *out = (struct new_session){.options = tune_default_options(), .team = rq->principal.team};
    out->options.kept.launch.runner = "ask";
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = json_get_word(&body, "mode", JSON_OPTIONAL, modes, &mode, err);
    out->mode = (enum stored_session_mode)mode;
    if (!st)
        st = read_stored(rq, &body, STORE_MODEL, "model", &out->model, err);
    if (!st)
        st = read_stored(rq, &body, STORE_CLUSTER, "cluster", &out->cluster, err);
    if (!st)
        st = read_options(&body, out, err);
    if (!st)
        st = read_limits(rq, &body, &out->options.kept.job, err);
    if (!st)
        st = request_algorithms(rq, &body, &out->options.kept.algorithms, &algorithms, err);
    if (!st)
        st = read_weather(rq, &body, out, err);
    return st ? st : request_shared(rq, &body, &out->shared, err);
}

struct creation {
    struct hub_session *live;
    const char *note; /* NULL: none */
};

/* What of the request has no effect, so that nobody waits for it; NULL: nothing. */
static enum status note_of(struct request *rq, const struct hub_session *live, const struct new_session *wanted,
                           const char **out, struct error *err) {
    *out = NULL;
    if (!hub_shards_in_vain(live))
        return ST_OK;
    *out = arena_printf(&rq->arena, "\"allow_sharded\" does nothing here: %s cannot say what is sharded",
                        wanted->options.kept.job.export_to);
    return *out ? ST_OK : error_no_memory(err);
}

static enum status create_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                 struct error *err) {
    const struct creation *creation = context;
    struct hub_session *live = creation->live;
    enum status st = request_may_open(rq, store, rs, err);
    if (!st)
        st = hub_record(live, store, err);
    if (!st)
        st = answer_session(rq, store, hub_session_id(live), 201, creation->note, rs, err);
    char *location = st ? NULL : arena_printf(&rq->arena, "/api/v1/sessions/%s", hub_session_id(live));
    if (!st && !location)
        st = error_no_memory(err);
    if (!st)
        response_header(rs, HEADER_LOCATION, location);
    return st;
}

/* Where the service runs the trials, the session's whole budget counts against the quota of the token that opens it.
 * Where clients run them, each trial counts against the quota of the client that takes it. */
static enum status check_bound(struct request *rq, bool own, const struct tune_options *budget, struct error *err) {
    if (!own || !rq->principal.trials_per_day || budget->trials)
        return ST_OK;
    error_at(err, ST_INVALID, PROBLEM_BODY, "needs trials, since this token may have %llu trials a day",
             (unsigned long long)rq->principal.trials_per_day);
    return error_inside(err, ST_INVALID, "/budget");
}

/* *opened: it is in the dataset, and not the repetition of an earlier request. */
static enum status open_session(struct request *rq, const struct new_session *wanted, struct response *rs, bool *opened,
                                struct error *err) {
    struct hub_session *live;
    struct creation creation;
    enum status st = hub_new(rq->service->hub, wanted, &live, err);
    if (st)
        return st;
    creation.live = live;
    st = note_of(rq, live, wanted, &creation.note, err);
    if (!st)
        st = request_commit(rq, create_effect, &creation, rs, err);
    *opened = !st && *hub_session_id(live);
    if (!*opened) {
        hub_discard(live);
        return st;
    }
    hub_add(live);
    hub_drop(live);
    return ST_OK;
}

enum status api_sessions_create(struct request *rq, struct response *rs, struct error *err) {
    struct new_session wanted;
    uint64_t granted = 0;
    bool opened = false;
    enum status st = read_new(rq, &wanted, err);
    const bool own = !st && wanted.mode == STORED_SESSION_OWN;
    if (!st)
        st = check_bound(rq, own, &wanted.options, err);
    if (st)
        return st;
    if (own && !hub_has_launcher(rq->service->hub, wanted.cluster))
        return problem_fail(err, PROBLEM_NO_LAUNCHER,
                            "no launcher is registered for this cluster, so the service cannot run trials on it; "
                            "let clients run them (mode ask), or ask an administrator");
    if (own)
        st = request_reserve(rq, wanted.options.trials, wanted.options.trials, &granted, rs, err);
    if (st)
        return st;
    st = open_session(rq, &wanted, rs, &opened, err);
    request_settle(rq, granted, opened ? granted : 0);
    return st;
}

/* ---- steering ---- */

struct steer {
    struct hub_session *live;
    enum hub_verb verb;
    const struct tune_options *budget; /* instead of the verb */
    const char *shared;                /* NULL: as it is */
    bool done;                         /* and not the repetition of an earlier request */
};

/* Does If-Match hold? */
static enum status check_tag(struct request *rq, struct store *store, const char *id, struct error *err) {
    struct stored_session stored;
    enum status st = store_session_get(store, id, &rq->arena, &stored, err);
    if (st)
        return st;
    const char *etag = entity_tag(&rq->arena, &stored);
    if (!etag)
        return error_no_memory(err);
    return request_matches(rq, etag) ? ST_OK
                                     : problem_fail(err, PROBLEM_PRECONDITION_FAILED,
                                                    "session %s has changed: its entity tag is \"%s\"", id, etag);
}

/* Adds an event only if the sharing changes. */
static enum status share(struct request *rq, struct store *store, const char *id, const char *shared,
                         struct error *err) {
    struct stored_session before;
    enum status st = store_session_get(store, id, &rq->arena, &before, err);
    if (!st)
        st = store_session_share(store, id, shared, err);
    if (st || shared_same(before.shared, shared))
        return st;
    cJSON *content = cJSON_CreateObject();
    char *text = content && add_shared(content, shared) ? json_line(content) : NULL;
    st = text ? event_add(store, id, "shared", text, NULL, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(content);
    return st;
}

static enum status steer_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                struct error *err) {
    struct steer *s = context;
    const struct tune_options *b = s->budget;
    const char *id = hub_session_id(s->live);
    enum status st = check_tag(rq, store, id, err);
    if (st)
        return st;
    st = b ? hub_set_budget(s->live, store, b->trials, b->time_us, b->gap, err)
           : hub_steer(s->live, store, s->verb, err);
    if (!st && s->shared)
        st = share(rq, store, id, s->shared, err);
    if (!st)
        st = answer_session(rq, store, id, 200, NULL, rs, err);
    s->done = !st;
    return st;
}

static enum status steer(struct request *rq, struct steer *how, struct response *rs, struct error *err) {
    enum status st = request_hub_session(rq, true, &how->live, err);
    if (st || !how->live)
        return st;
    struct error behind;
    bool held;
    st = request_lock(rq, how->live, true, &held, err);
    if (!held) {
        hub_drop(how->live);
        return st;
    }
    st = request_commit(rq, steer_effect, how, rs, err);
    enum status caught = hub_catch_up(how->live, &behind);
    hub_unlock(how->live);
    hub_drop(how->live);
    return st ? st : caught ? error_pass(err, &behind) : ST_OK;
}

enum status api_sessions_pause(struct request *rq, struct response *rs, struct error *err) {
    return steer(rq, &(struct steer){.verb = HUB_PAUSE}, rs, err);
}

enum status api_sessions_resume(struct request *rq, struct response *rs, struct error *err) {
    return steer(rq, &(struct steer){.verb = HUB_RESUME}, rs, err);
}

enum status api_sessions_stop(struct request *rq, struct response *rs, struct error *err) {
    return steer(rq, &(struct steer){.verb = HUB_STOP}, rs, err);
}

enum status api_sessions_cancel(struct request *rq, struct response *rs, struct error *err) {
    return steer(rq, &(struct steer){.verb = HUB_CANCEL}, rs, err);
}

/* Who sees a session can be changed at any time, also when it has ended. Its search does not depend on it. */
struct sharing {
    const char *id, *shared;
};

static enum status share_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                struct error *err) {
    const struct sharing *s = context;
    enum status st = check_tag(rq, store, s->id, err);
    if (!st)
        st = share(rq, store, s->id, s->shared, err);
    return st ? st : answer_session(rq, store, s->id, 200, NULL, rs, err);
}

static enum status patch_sharing(struct request *rq, const char *shared, struct response *rs, struct error *err) {
    struct stored_session stored;
    enum status st = request_session(rq, true, &stored, err);
    if (st)
        return st;
    st = request_commit(rq, share_effect, &(struct sharing){stored.id, shared}, rs, err);
    if (!st)
        events_publish(rq->events, stored.id);
    return st;
}

/* Members that are left out stay. What the budget grows by counts against the quota. */
static enum status patch_budget(struct request *rq, const struct json_at *said, struct steer *how, struct response *rs,
                                struct error *err) {
    struct stored_session stored;
    uint64_t granted = 0;
    enum status st = request_session(rq, true, &stored, err);
    if (st)
        return st;
    const bool own = stored.mode == STORED_SESSION_OWN;
    struct session_budget now = {0};
    st = session_budget_read(&stored, &now, err);
    struct tune_options budget = {.trials = now.trials, .time_us = now.time_us, .gap = now.gap};
    how->budget = &budget;
    if (!st)
        st = read_budget(said, &budget, err);
    if (!st)
        st = check_bound(rq, own, &budget, err);
    const uint64_t more = own && budget.trials > now.trials ? budget.trials - now.trials : 0;
    if (!st && more)
        st = request_reserve(rq, more, more, &granted, rs, err);
    if (st)
        return st;
    st = steer(rq, how, rs, err);
    request_settle(rq, granted, how->done && !st ? granted : 0);
    return st;
}

enum status api_sessions_patch(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"budget", "shared", NULL};
    const struct json_at body = request_body(rq);
    struct steer how = {.shared = NULL};
    struct json_at budget, unused;
    enum status st = json_expect_object(&body, known, err);
    if (st)
        return st;
    const bool has_budget = json_has(&body, "budget", &budget), has_shared = json_has(&body, "shared", &unused);
    if (!has_budget && !has_shared)
        st = json_fail(&body, err, "needs a budget, or whom it is shared with");
    if (!st && has_shared)
        st = request_shared(rq, &body, &how.shared, err);
    if (st)
        return st;
    return has_budget ? patch_budget(rq, &budget, &how, rs, err) : patch_sharing(rq, how.shared, rs, err);
}
