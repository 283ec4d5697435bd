/* See session_findings.h. */
#include "cli/session_findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/remote_copy.h"
#include "cli/remote_session.h"
#include "dataset/sharing.h"

enum status session_findings_here(const char *dataset, const char *session, enum findings_depth depth,
                                  struct findings *out, struct error *err) {
    struct store *store;
    if (!store_may_be_there(dataset))
        return error_at(err, ST_NOT_FOUND, dataset, "no such dataset; --dataset names the one that the session is in");
    enum status st = store_open(dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = findings_gather(store, session, depth, out, err);
    store_close(store);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND,
                         "%s has no session %.80s; \"syncopate dataset sessions --dataset %s\" lists them", dataset,
                         session, dataset);
    return st;
}

/* ---- of a service ---- */

/* Copy a text member; *out stays as it is when the member is absent. */
static enum status copy_text(const cJSON *json, const char *key, struct arena *arena, const char **out,
                             struct error *err) {
    const char *text = remote_text(json, key);
    if (*text && !(*out = arena_strdup(arena, text)))
        return error_no_memory(err);
    return ST_OK;
}

/* Take what the service's Session says about the session. An Outcome says less about it. */
static enum status read_session(const cJSON *json, struct findings *f, struct error *err) {
    struct remote_session read;
    enum status st = remote_session_read(json, &read, err);
    if (st)
        return st;
    struct stored_session s = {.mode = read.own ? STORED_SESSION_OWN : STORED_SESSION_ASK,
                               .seed = remote_count(json, "seed"),
                               .trials = remote_count(json, "trials"),
                               .complete = remote_count(json, "complete")};
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(json, "model");
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(json, "cluster");
    const struct {
        const cJSON *from;
        const char *key, **to;
    } texts[] = {{json, "id", &s.id},           {json, "reason", &s.reason},         {json, "team", &s.team},
                 {json, "started", &s.started}, {json, "ended", &s.ended},           {model, "name", &f->model.name},
                 {model, "id", &s.model},       {cluster, "name", &f->cluster.name}, {cluster, "id", &s.cluster}};
    st = shared_read(cJSON_GetObjectItemCaseSensitive(json, "shared"), &f->arena, &s.shared, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !st; i++)
        st = copy_text(texts[i].from, texts[i].key, &f->arena, texts[i].to, err);
    if (st)
        return st;
    if (!stored_session_state_parse(read.state, &s.state))
        return error_set(err, ST_UNREACHABLE, "session %s is \"%s\", a state that this version does not know", s.id,
                         read.state);
    memcpy(f->model.id.hex, read.model, sizeof read.model);
    memcpy(f->cluster.id.hex, read.cluster, sizeof read.cluster);
    f->outcome.session = s;
    f->outcome.budget_trials = read.trials;
    return ST_OK;
}

static enum status fetch(struct client *client, const char *session, struct findings *f, struct error *err) {
    cJSON *about = NULL, *outcome = NULL;
    char *escaped = client_escape(client, session);
    enum status st = escaped ? remote_get(client, &about, err, "/api/v1/sessions/%s", escaped) : error_no_memory(err);
    if (!st)
        st = remote_get(client, &outcome, err, "/api/v1/sessions/%s/outcome", escaped);
    if (!st)
        st = outcome_read(outcome, NULL, NULL, &f->outcome, err);
    if (!st)
        st = read_session(about, f, err);
    cJSON_Delete(about);
    cJSON_Delete(outcome);
    free(escaped);
    return st;
}

static enum status gather_copy(struct client *client, const char *session, enum findings_depth depth,
                               struct findings *out, struct error *err) {
    struct store *store;
    enum status st = remote_session_copy(client, session, &store, err);
    if (st)
        return st;
    st = findings_gather(store, session, depth, out, err);
    if (!st)
        out->outcome.session.origin = NULL; /* what it says is of the copy */
    store_close(store);
    return st;
}

/* An older service has no route for outcomes; its records say the same. */
static enum status gather_there(struct client *client, const char *session, enum findings_depth depth,
                                struct findings *out, struct error *err) {
    struct findings f = {0};
    enum status st = depth == FINDINGS_FIGURES ? fetch(client, session, &f, err) : ST_NOT_FOUND;
    if (!st)
        *out = f;
    else
        findings_release(&f);
    return st == ST_NOT_FOUND ? gather_copy(client, session, depth, out, err) : st;
}

enum status session_findings_there(const struct remote_options *remote, const char *session, enum findings_depth depth,
                                   struct findings *out, struct error *err) {
    struct client *client;
    enum status st = remote_open(remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (st)
        return st;
    st = gather_there(client, session, depth, out, err);
    client_close(client);
    return st;
}
