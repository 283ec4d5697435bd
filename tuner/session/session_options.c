/* The members that are texts stand in tables, so that reading and writing name each of them once. */
#include "tuner/session/session_options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/json.h"

static const double MOST = 1e300; /* of any number */

/* ---- JSON ---- */

/* Parse one of the session's texts. The caller deletes *json; name[96] gets the text's name for messages. */
static enum status parse(const char *text, const struct stored_session *session, const char *what, char name[96],
                         cJSON **json, struct error *err) {
    snprintf(name, 96, "session %s, %s", session->id, what);
    *json = cJSON_Parse(text);
    if (*json && cJSON_IsObject(*json))
        return ST_OK;
    cJSON_Delete(*json);
    return error_at(err, ST_INVALID, name, "damaged: it is no JSON object");
}

static enum status get_count(const struct json_at *at, const char *key, uint64_t *out, struct error *err) {
    double number = 0;
    enum status st = json_get_number(at, key, JSON_OPTIONAL, 0, 0x1p63, &number, err);
    *out = (uint64_t)number;
    return st;
}

static enum status get_number(const struct json_at *at, const char *key, double *out, struct error *err) {
    *out = 0;
    return json_get_number(at, key, JSON_OPTIONAL, 0, MOST, out, err);
}

/* A text member, borrowed; NULL where it is absent. It may hold any text: a command may have several lines. */
static enum status get_text(const struct json_at *at, const char *key, const char **out, struct error *err) {
    struct json_at child;
    *out = NULL;
    if (!json_has(at, key, &child))
        return ST_OK;
    if (!cJSON_IsString(child.node))
        return json_fail(&child, err, "must be a text");
    *out = child.node->valuestring;
    return ST_OK;
}

/* Add or replace a member. `value` NULL: memory was out when it was made. */
static bool set_member(cJSON *object, const char *key, cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (value && cJSON_AddItemToObject(object, key, value))
        return true;
    cJSON_Delete(value);
    return false;
}

static bool set_number(cJSON *object, const char *key, double value) {
    return set_member(object, key, cJSON_CreateNumber(value));
}

/* Begin the object to write into: the text until now, or a new object; NULL when memory is out. */
static cJSON *begin(const char *before) {
    return before ? cJSON_Parse(before) : cJSON_CreateObject();
}

/* The object's text, malloc'd; deletes the object. */
static char *end(cJSON *object, bool whole) {
    char *text = whole ? json_line(object) : NULL;
    cJSON_Delete(object);
    return text;
}

/* ---- the budget ---- */

enum status session_budget_read(const struct stored_session *session, struct session_budget *out, struct error *err) {
    struct session_budget b = {0};
    const char *resumed = NULL;
    char name[96];
    cJSON *json;
    enum status st = parse(session->budget, session, "budget", name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, name);
    st = get_count(&root, "trials", &b.trials, err);
    if (!st)
        st = get_number(&root, "time_us", &b.time_us, err);
    if (!st)
        st = get_number(&root, "gap", &b.gap, err);
    if (!st)
        st = get_number(&root, "used_us", &b.used_us, err);
    if (!st)
        st = get_text(&root, "resumed", &resumed, err);
    snprintf(b.resumed, sizeof b.resumed, "%s", resumed ? resumed : "");
    cJSON_Delete(json);
    if (!st)
        *out = b;
    return st;
}

char *session_budget_write(const struct session_budget *b, const char *before) {
    cJSON *json = begin(before);
    const bool whole = json && set_number(json, "trials", (double)b->trials) &&
                       set_number(json, "time_us", b->time_us) && set_number(json, "gap", b->gap) &&
                       set_number(json, "used_us", b->used_us) &&
                       (!*b->resumed || set_member(json, "resumed", cJSON_CreateString(b->resumed)));
    return end(json, whole);
}

bool session_budget_is_limited(const struct session_budget *b) {
    return b->trials || b->time_us > 0;
}

/* ---- the options ---- */

/* Members that are texts: of the options themselves, of "launch" and of "job". */
struct text_member {
    const char *key;
    size_t offset; /* in struct session_options */
};
#define MEMBER(field)                                                                                                  \
    { #field, offsetof(struct session_options, field) }
#define LAUNCH(field)                                                                                                  \
    { #field, offsetof(struct session_options, launch.field) }
#define JOB(field)                                                                                                     \
    { #field, offsetof(struct session_options, job.field) }
static const struct text_member own_texts[] = {
    LAUNCH(runner), MEMBER(ranker), MEMBER(algorithms), LAUNCH(hosts), MEMBER(bench_client), MEMBER(bench_until), {0}};
static const struct text_member launch_texts[] = {LAUNCH(worker),         LAUNCH(partition), LAUNCH(account),
                                                  LAUNCH(launch_options), LAUNCH(pass),      {0}};
static const struct text_member job_texts[] = {
    JOB(command), JOB(pattern), JOB(unit), JOB(export_env), JOB(export_to), JOB(accept), JOB(label), JOB(logs), {0}};

static const char **text_at(struct session_options *o, const struct text_member *member) {
    return (const char **)((char *)o + member->offset);
}

static const char *text_of(const struct session_options *o, const struct text_member *member) {
    return *(const char *const *)((const char *)o + member->offset);
}

static enum status get_texts(const struct json_at *at, const struct text_member *members, struct arena *arena,
                             struct session_options *o, struct error *err) {
    for (const struct text_member *m = members; m->key; m++) {
        const char *text;
        enum status st = get_text(at, m->key, &text, err);
        if (st)
            return st;
        *text_at(o, m) = text ? arena_strdup(arena, text) : NULL;
        if (text && !*text_at(o, m))
            return error_no_memory(err);
    }
    return ST_OK;
}

/* The member's place; its node is NULL where it is not there. */
static enum status get_object(const struct json_at *at, const char *key, struct json_at *out, struct error *err) {
    if (!json_has(at, key, out)) {
        *out = (struct json_at){.parent = at, .key = key};
        return ST_OK;
    }
    return cJSON_IsObject(out->node) ? ST_OK : json_fail(out, err, "must be an object");
}

static enum status read_launch(const struct json_at *root, struct arena *arena, struct session_options *o,
                               struct error *err) {
    struct json_at launch;
    enum status st = get_object(root, "launch", &launch, err);
    if (st || !launch.node)
        return st;
    st = get_texts(&launch, launch_texts, arena, o, err);
    return st ? st : json_get_bool(&launch, "share_gpu", JSON_OPTIONAL, &o->launch.share_gpu, err);
}

static enum status read_job(const struct json_at *root, struct arena *arena, struct session_options *o,
                            struct error *err) {
    struct json_at job;
    enum status st = get_object(root, "job", &job, err);
    if (st || !job.node)
        return st;
    st = get_texts(&job, job_texts, arena, o, err);
    if (!st)
        st = json_get_bool(&job, "publish", JSON_OPTIONAL, &o->job.publish, err);
    return st ? st : get_number(&job, "time_limit_us", &o->job.time_limit_us, err);
}

static enum status read_options(const struct json_at *root, struct arena *arena, struct session_options *o,
                                struct error *err) {
    size_t sharded = SHARDED_none;
    enum status st = get_count(root, "final_rounds", &o->final_rounds, err);
    if (!st)
        st = get_number(root, "trial_us", &o->trial_us, err);
    if (!st)
        st = get_number(root, "least_gain", &o->least_gain, err);
    if (!st)
        st = get_count(root, "earlier", &o->earlier, err);
    if (!st)
        st = get_count(root, "weather", &o->weather, err);
    if (!st)
        st = json_get_bool(root, "allow_lossy", JSON_OPTIONAL, &o->allow_lossy, err);
    if (!st)
        st = json_get_word(root, "allow_sharded", JSON_OPTIONAL, sharded_words, &sharded, err);
    o->allow_sharded = (enum sharded)sharded;
    if (!st)
        st = get_count(root, "allow_stale", &o->allow_stale, err);
    if (!st)
        st = get_count(root, "memory_bytes", &o->memory_bytes, err);
    if (!st)
        st = get_count(root, "bench_attempt", &o->bench_attempt, err);
    if (!st)
        st = json_get_bool(root, "bench_over", JSON_OPTIONAL, &o->bench_over, err);
    if (!st)
        st = json_get_bool(root, "served", JSON_OPTIONAL, &o->served, err);
    if (!st)
        st = get_texts(root, own_texts, arena, o, err);
    if (!st)
        st = read_launch(root, arena, o, err);
    return st ? st : read_job(root, arena, o, err);
}

enum status session_options_read(const struct stored_session *session, struct arena *arena, struct session_options *out,
                                 struct error *err) {
    struct session_options o = {0};
    char name[96];
    cJSON *json;
    enum status st = parse(session->options, session, "options", name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, name);
    st = read_options(&root, arena, &o, err);
    cJSON_Delete(json);
    if (!st)
        *out = o;
    return st;
}

/* Add the member where it is true; remove it where it is false. */
static bool set_flag(cJSON *object, const char *key, bool value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return !value || cJSON_AddTrueToObject(object, key);
}

static bool set_texts(cJSON *object, const struct text_member *members, const struct session_options *o) {
    bool whole = true;
    for (const struct text_member *m = members; m->key && whole; m++) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, m->key);
        whole = !text_of(o, m) || cJSON_AddStringToObject(object, m->key, text_of(o, m));
    }
    return whole;
}

/* Add or replace an object; an empty one is left out. `whole` as for end. */
static bool set_object(cJSON *object, const char *key, cJSON *member, bool whole) {
    if (whole && cJSON_GetArraySize(member))
        return set_member(object, key, member);
    cJSON_Delete(member);
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return whole;
}

static bool set_launch(cJSON *object, const struct session_options *o) {
    cJSON *launch = cJSON_CreateObject();
    const bool whole =
        launch && set_flag(launch, "share_gpu", o->launch.share_gpu) && set_texts(launch, launch_texts, o);
    return set_object(object, "launch", launch, whole);
}

static bool set_job(cJSON *object, const struct session_options *o) {
    cJSON *job = cJSON_CreateObject();
    const bool whole = job && set_texts(job, job_texts, o) && set_flag(job, "publish", o->job.publish) &&
                       (!(o->job.time_limit_us > 0) || set_number(job, "time_limit_us", o->job.time_limit_us));
    return set_object(object, "job", job, whole);
}

/* A count that few sessions have; the member is left out where it is 0. */
static bool set_count(cJSON *object, const char *key, uint64_t count) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return !count || set_number(object, key, (double)count);
}

static bool set_sharded(cJSON *object, enum sharded sharded) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, "allow_sharded");
    return !sharded || cJSON_AddStringToObject(object, "allow_sharded", sharded_name(sharded));
}

char *session_options_write(const struct session_options *o, const char *before) {
    cJSON *json = begin(before);
    const bool whole =
        json && set_number(json, "final_rounds", (double)o->final_rounds) &&
        set_number(json, "trial_us", o->trial_us) && set_number(json, "least_gain", o->least_gain) &&
        set_number(json, "earlier", (double)o->earlier) && set_count(json, "weather", o->weather) &&
        set_count(json, "allow_stale", o->allow_stale) && set_count(json, "memory_bytes", o->memory_bytes) &&
        set_sharded(json, o->allow_sharded) && set_count(json, "bench_attempt", o->bench_attempt) &&
        set_flag(json, "bench_over", o->bench_over) && set_flag(json, "allow_lossy", o->allow_lossy) &&
        set_flag(json, "served", o->served) && set_texts(json, own_texts, o) && set_launch(json, o) && set_job(json, o);
    return end(json, whole);
}
