/* See remote.h. */
#include "cli/remote.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/client/token.h"

/* ---- the connection ---- */

/* Plain HTTP to another machine. */
static bool crosses_in_the_clear(const char *url) {
    static const char *const local[] = {"http://127.", "http://localhost", "http://[::1]"};
    if (strncmp(url, "http://", 7) != 0)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (!strncmp(url, local[i], strlen(local[i])))
            return false;
    return true;
}

static void warn_once(const char *url) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        log_warn("the token goes to %.200s unencrypted; use https", url);
}

enum status remote_open(const struct remote_options *o, unsigned tries, const atomic_int *cancel, struct client **out,
                        struct error *err) {
    char token[CLIENT_TOKEN_ROOM];
    enum status st = client_token(o->token_file, token, err);
    if (st)
        return st;
    const struct client_options options = {
        .url = o->server, .token = token, .ca_file = o->ca_file, .proxy = o->proxy, .tries = tries, .cancel = cancel};
    st = client_open(&options, out, err);
    if (!st && *token && crosses_in_the_clear(o->server))
        warn_once(o->server);
    explicit_bzero(token, sizeof token);
    return st;
}

enum status remote_required(const struct remote_options *options, const char *command, struct error *err) {
    if (options->server)
        return ST_OK;
    return error_set(err, ST_USAGE, "%s is about a service: say which with --server URL or SYNCOPATE_SERVER", command);
}

static bool says(const char *variable, const char *value) {
    const char *text = getenv(variable);
    return text && !strcmp(text, value);
}

enum status remote_or_here(const struct remote_options *o, const char *dataset, struct error *err) {
    if (!o->server || !dataset)
        return ST_OK;
    if (says("SYNCOPATE_SERVER", o->server) && says("SYNCOPATE_DATASET", dataset))
        return error_set(err, ST_USAGE,
                         "SYNCOPATE_SERVER=%.80s and SYNCOPATE_DATASET=%.80s are both set: unset one, or say --server "
                         "or --dataset here",
                         o->server, dataset);
    return error_set(err, ST_USAGE, "--dataset is a file here, and the service has its own: drop one of the two");
}

enum status remote_get(struct client *client, cJSON **out, struct error *err, const char *format, ...) {
    char *path;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&path, format, arguments);
    va_end(arguments);
    if (n < 0)
        return error_no_memory(err);
    const struct client_request request = {.method = "GET", .path = path};
    enum status st = client_call(client, &request, out, err);
    free(path);
    return st;
}

enum status remote_post(struct client *client, const char *path, cJSON *body, bool whole, cJSON **out,
                        struct error *err) {
    const struct client_request request = {.method = "POST", .path = path, .body = body};
    enum status st = whole ? client_call(client, &request, out, err) : error_no_memory(err);
    cJSON_Delete(body);
    return st;
}

/* ---- answers ---- */

const char *remote_text(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

double remote_number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

uint64_t remote_count(const cJSON *object, const char *key) {
    const double x = remote_number(object, key);
    return x >= 0 && x < 0x1p63 ? (uint64_t)x : 0;
}

/* ---- descriptions ---- */

/* What models and clusters have in common here; `out` is a struct model or a struct cluster. */
struct kind {
    const char *folder;
    enum status (*read)(const cJSON *json, void *out, struct error *err);
    enum status (*read_file)(const char *path, void *out, struct error *err);
    cJSON *(*write)(const void *object);
    void (*release)(void *object);
};

static enum status read_model(const cJSON *json, void *out, struct error *err) {
    return model_read(json, "answer", out, err);
}
static enum status read_model_file(const char *path, void *out, struct error *err) {
    return model_read_file(path, out, err);
}
static cJSON *write_model(const void *model) {
    return model_write(model);
}
static void release_model(void *model) {
    model_release(model);
}
static enum status read_cluster(const cJSON *json, void *out, struct error *err) {
    return cluster_read(json, "answer", out, err);
}
static enum status read_cluster_file(const char *path, void *out, struct error *err) {
    return cluster_read_file(path, out, err);
}
static cJSON *write_cluster(const void *cluster) {
    return cluster_write(cluster);
}
static void release_cluster(void *cluster) {
    cluster_release(cluster);
}

static const struct kind models = {"models", read_model, read_model_file, write_model, release_model};
static const struct kind clusters = {"clusters", read_cluster, read_cluster_file, write_cluster, release_cluster};

/* Fetch the object that the service calls `word`. */
static enum status fetch(struct client *client, const struct kind *kind, const char *word, void *out,
                         struct error *err) {
    cJSON *json = NULL;
    char *escaped = client_escape(client, word);
    if (!escaped)
        return error_no_memory(err);
    enum status st = remote_get(client, &json, err, "/api/v1/%s/%s", kind->folder, escaped);
    if (!st)
        st = kind->read(json, out, err);
    cJSON_Delete(json);
    free(escaped);
    return st;
}

static enum status send_file(struct client *client, const struct kind *kind, const char *path, void *out,
                             struct error *err) {
    char collection[32];
    cJSON *answer = NULL;
    enum status st = kind->read_file(path, out, err);
    if (st)
        return st;
    snprintf(collection, sizeof collection, "/api/v1/%s", kind->folder);
    cJSON *json = kind->write(out);
    st = remote_post(client, collection, json, json != NULL, &answer, err);
    cJSON_Delete(answer);
    if (st)
        kind->release(out);
    return st;
}

static enum status describe(struct client *client, const struct kind *kind, const char *word, void *out,
                            struct error *err) {
    char path[4096];
    struct error shipped;
    const bool named = strcmp(word, "-") != 0 && !strchr(word, '/') && access(word, F_OK);
    enum status st = named ? fetch(client, kind, word, out, err) : ST_NOT_FOUND;
    if (st != ST_NOT_FOUND)
        return st;
    if (inputs_find(word, kind->folder, path, sizeof path, &shipped))
        return named ? st : error_set(err, shipped.status, "%s", shipped.message);
    return send_file(client, kind, path, out, err);
}

static enum status both(struct client *client, const char *model, const char *cluster,
                        enum status (*get)(struct client *, const struct kind *, const char *, void *, struct error *),
                        struct inputs *out, struct error *err) {
    out->model_path[0] = out->cluster_path[0] = 0;
    enum status st = get(client, &models, model, &out->model, err);
    if (st)
        return st;
    st = get(client, &clusters, cluster, &out->cluster, err);
    if (st)
        model_release(&out->model);
    return st;
}

enum status remote_inputs(struct client *client, const char *model, const char *cluster, struct inputs *out,
                          struct error *err) {
    return both(client, model, cluster, describe, out, err);
}

enum status remote_inputs_of_ids(struct client *client, const char *model, const char *cluster, struct inputs *out,
                                 struct error *err) {
    return both(client, model, cluster, fetch, out, err);
}
