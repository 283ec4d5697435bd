/* See validate_internal.h. What is refused here was never written by these tools; a reason is a program's last words,
 * which are cleaned, because a trial should not be lost for them. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

enum status validate_name(const char *what, const char *text, size_t most, struct error *err) {
    if (!text || text_is_name(text, most))
        return ST_OK;
    const size_t n = strnlen(text, most + 1), clean = text_clean_length(text, n);
    if (clean == n)
        return error_set(err, ST_INVALID, "%s: must have 1 to %zu bytes", what, most);
    char shown[TEXT_SHOWN];
    text_show(text + clean, n - clean, shown);
    return error_set(err, ST_INVALID, "%s: \"%.100s\" has a character that terminals obey (%s)", what, text, shown);
}

enum status validate_session_id(const char *id, struct error *err) {
    return session_id_is_valid(id) ? ST_OK
                                   : error_set(err, ST_INVALID,
                                               "id: \"%.80s\" is not 1 to %d letters, digits and . _ - that begin with "
                                               "a letter or a digit",
                                               id, SESSION_ID_MAX);
}

enum status validate_record(const struct record *r, struct error *err) {
    enum status status = validate_name("uid", r->uid, VALID_UID_MAX, err);
    if (!status)
        status = validate_name("proposer", r->proposer, VALID_NAME_MAX, err);
    if (!status)
        status = validate_name("runner", r->runner, VALID_NAME_MAX, err);
    return !status ? validate_name("client", r->client, VALID_NAME_MAX, err) : status;
}

/* The first character that is not clean, nor a line end or a tab where these may be; NULL: none. */
static char *find_unclean(char *text, bool lines) {
    char *at = text + text_clean_length(text, strlen(text));
    while (lines && (*at == '\n' || *at == '\t')) {
        at++;
        at += text_clean_length(at, strlen(at));
    }
    return *at ? at : NULL;
}

static enum status check_text(const char *what, char *text, bool lines, struct error *err) {
    const char *bad = text ? find_unclean(text, lines) : NULL;
    return bad ? validate_name(what, lines ? bad : text, SIZE_MAX - 1, err) : ST_OK;
}

/* Member names and texts, at any depth. */
static enum status check_texts(const cJSON *node, bool lines, struct error *err) {
    enum status status = ST_OK;
    for (const cJSON *e = node; e && !status; e = e->next) {
        char *text = cJSON_IsString(e) ? e->valuestring : NULL;
        status = check_text("a member's name", e->string, lines, err);
        if (!status)
            status = check_text(e->string ? e->string : "a text", text, lines, err);
        if (!status && e->child)
            status = check_texts(e->child, lines, err);
    }
    return status;
}

/* The fast way for most environments: where the JSON has no escape, its texts are clean if the JSON itself is. */
static bool is_plain(const char *json) {
    return !strchr(json, '\\') && text_is_clean(json, strlen(json));
}

enum status validate_environment(const char *json, struct error *err) {
    cJSON *content = NULL;
    if (is_plain(json))
        return ST_OK;
    enum status status = json_parse(json, strlen(json), "environment", &content, err);
    if (!status)
        status = check_texts(content, true, err);
    cJSON_Delete(content);
    return status;
}

static bool clean_text(char *text) {
    char *bad = text ? find_unclean(text, true) : NULL;
    const bool any = bad;
    for (; bad; bad = find_unclean(bad, true))
        *bad = '?';
    return any;
}

static bool clean_texts(cJSON *node) {
    bool any = false;
    for (cJSON *e = node; e; e = e->next) {
        any |= clean_text(e->string);
        any |= clean_text(cJSON_IsString(e) ? e->valuestring : NULL);
        any |= clean_texts(e->child);
    }
    return any;
}

enum status validate_clean_environment(const char *json, char **out, struct error *err) {
    cJSON *content = NULL;
    char *text = NULL;
    if (is_plain(json)) {
        *out = NULL;
        return ST_OK;
    }
    enum status status = json_parse(json, strlen(json), "environment", &content, err);
    if (!status && clean_texts(content) && !(text = json_line(content)))
        status = error_no_memory(err);
    cJSON_Delete(content);
    if (!status)
        *out = text;
    return status;
}

static enum status check_model(const cJSON *content, struct error *err) {
    struct model model;
    enum status status = model_read(content, "content", &model, err);
    if (!status)
        model_release(&model);
    return status;
}

static enum status check_cluster(const cJSON *content, struct error *err) {
    struct cluster cluster;
    enum status status = cluster_read(content, "content", &cluster, err);
    if (!status)
        cluster_release(&cluster);
    return status;
}

static enum status check_strategy(const cJSON *content, struct error *err) {
    const struct json_at at = json_root(content, "content");
    return json_expect_schema(&at, "syncopate.strategy/1", err);
}

enum status validate_object(enum store_kind kind, const char *name, const cJSON *content, struct error *err) {
    enum status status = validate_name("name", name, VALID_NAME_MAX, err);
    if (!status)
        status = check_texts(content, kind == STORE_ENVIRONMENT, err);
    if (status)
        return status;
    return kind == STORE_MODEL      ? check_model(content, err)
           : kind == STORE_CLUSTER  ? check_cluster(content, err)
           : kind == STORE_STRATEGY ? check_strategy(content, err)
                                    : ST_OK;
}

void validate_reason(char *reason) {
    size_t n = strlen(reason);
    if (n > VALID_REASON_MAX) {
        for (n = VALID_REASON_MAX; n > 0 && ((unsigned char)reason[n] & 0xc0) == 0x80;)
            n--;
        reason[n] = '\0';
    }
    text_clean(reason);
}
