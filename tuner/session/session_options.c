/* See session_options.h. */
#include "tuner/session/session_options.h"

#include <stdio.h>

#include "base/json.h"

static const double MOST = 1e300; /* of any number */

/* ---- JSON ---- */

/* *json is to be deleted, *name (the document's, for messages) has room for 96. */
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

/* Borrowed; NULL without the member. Any text: a command may have several lines. */
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

/* The member takes the place of one of before. A value that could not be made is NULL. */
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

/* The object that is written into; NULL when memory is out. */
static cJSON *begin(const char *before) {
    return before ? cJSON_Parse(before) : cJSON_CreateObject();
}

/* Its text; it is deleted. */
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
