/* See serve_launchers.h. A whole id and a description that lies beside the launchers' file say by themselves which
 * cluster is meant. A name does not, since whoever may submit can give it to a cluster of his own: it is resolved once,
 * and kept (service/launchers.h). */
#include "cli/serve_launchers.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/inputs.h"
#include "dataset/describe.h"
#include "service/launchers.h"
#include "tuner/session/runners.h"

/* Which cluster a launcher is for, and how it came to be that one. */
struct place {
    const char *word; /* a whole id, a name, or the path of a description */
    struct id id;
    bool pinned;      /* the name was registered before, for this cluster */
    struct id newest; /* the cluster that has the name today */
};

static enum status put_file(struct place *place, const char *path, struct store *store, struct error *err) {
    struct cluster cluster;
    enum status st = cluster_read_file(path, &cluster, err);
    if (st)
        return st;
    st = store_put_cluster(store, &cluster, err);
    place->id = cluster.id;
    cluster_release(&cluster);
    return st;
}

static enum status put_described(void *context, struct store *store, struct error *err) {
    struct place *place = context;
    return put_file(place, place->word, store, err);
}

static enum status find_whole(void *context, struct store *store, struct error *err) {
    struct place *place = context;
    snprintf(place->id.hex, sizeof place->id.hex, "%s", place->word);
    enum status st = store_has(store, STORE_CLUSTER, place->id.hex, err);
    return st ? error_prefix(err, st, "--launchers") : ST_OK;
}

/* Anybody who may submit could have made the second one, so which is meant is for the administrator to say. */
static enum status refuse_several(const struct place *place, const struct stored_object *first,
                                  const struct stored_object *second, struct error *err) {
    return error_set(
        err, ST_USAGE,
        "--launchers: several clusters are called \"%s\", %s of %s and %s of %s among them; write the whole id of the "
        "one that you mean",
        place->word, first->id.hex, first->created, second->id.hex, second->created);
}

static enum status find_alone(struct place *place, struct store *store, struct arena *arena, struct error *err) {
    size_t n;
    struct stored_object *all;
    const struct stored_object *first = NULL;
    enum status st = store_list(store, STORE_CLUSTER, arena, &n, &all, err);
    for (size_t i = 0; i < n && !st; i++) {
        if (strcmp(all[i].name, place->word) != 0)
            continue;
        if (first)
            return refuse_several(place, first, &all[i], err);
        first = &all[i];
    }
    return st ? st : store_find(store, STORE_CLUSTER, place->word, &place->id, err);
}

/* Find a cluster by a name that is not registered yet: a shipped cluster, whose name no other can take, or else the
 * only cluster of that name in the dataset. */
static enum status find_named(void *context, struct store *store, struct error *err) {
    struct place *place = context;
    struct arena arena = {0};
    char path[4096];
    if (!inputs_find(place->word, "clusters", path, sizeof path, err))
        return put_file(place, path, store, err);
    enum status st = find_alone(place, store, &arena, err);
    arena_release(&arena);
    return st;
}

static enum status find_pinned(void *context, struct store *store, struct error *err) {
    struct place *place = context;
    struct error none;
    place->newest = place->id;
    store_find(store, STORE_CLUSTER, place->word, &place->newest, &none);
    enum status st = store_has(store, STORE_CLUSTER, place->id.hex, err);
    return st ? error_prefix(err, st, "--launchers: \"%s\" is registered as a cluster that is gone", place->word)
              : ST_OK;
}

static enum status find_by_name(struct place *place, struct access *access, struct error *err) {
    const char *dataset = access_path(access);
    enum status st = launcher_pin_find(dataset, place->word, &place->pinned, &place->id, err);
    if (!st)
        st = access_write(access, place->pinned ? find_pinned : find_named, place, err);
    if (st)
        return st;
    if (place->pinned && strcmp(place->id.hex, place->newest.hex) != 0)
        log_warn("--launchers: %s is called \"%s\" too, and is newer; the launcher stays with %s", place->newest.hex,
                 place->word, place->id.hex);
    if (place->pinned)
        return ST_OK;
    log_warn("--launchers: \"%s\" is cluster %s from now on, whatever else is called so; %s.launchers keeps it",
             place->word, place->id.hex, dataset);
    return launcher_pin_add(dataset, place->word, &place->id, err);
}

static bool is_whole_id(const char *word) {
    return strlen(word) == ID_LENGTH && strspn(word, "0123456789abcdef") == ID_LENGTH;
}

/* The path of a file that the launchers' file names: it is relative to the folder of that file. */
static enum status path_beside(const char *launchers, const char *file, char *out, size_t n, struct error *err) {
    const char *slash = *file == '/' ? NULL : strrchr(launchers, '/');
    if ((size_t)snprintf(out, n, "%.*s%s", slash ? (int)(slash + 1 - launchers) : 0, launchers, file) >= n)
        return error_set(err, ST_USAGE, "%.200s...: the path is too long", file);
    return ST_OK;
}

static enum status find_place(const char *launchers, const char *cluster, const char *file, struct access *access,
                              struct place *out, struct error *err) {
    char path[4096];
    *out = (struct place){.word = cluster};
    if (!file && !strchr(cluster, '/') && !is_whole_id(cluster))
        return find_by_name(out, access, err);
    if (!file && is_whole_id(cluster))
        return access_write(access, find_whole, out, err);
    out->word = file ? path : cluster; /* paths behind "cluster" are relative to where the service was started */
    enum status st = file ? path_beside(launchers, file, path, sizeof path, err) : ST_OK;
    if (!st)
        st = access_write(access, put_described, out, err);
    out->word = NULL; /* that was `path` */
    return st;
}

struct launcher_entry {
    const char *cluster, *file, *runner, *hosts;
};

static enum status read_launcher(const struct json_at *at, struct launcher_entry *out, struct error *err) {
    static const char *const known[] = {"cluster", "file", "runner", "hosts", NULL};
    *out = (struct launcher_entry){0};
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "cluster", JSON_OPTIONAL, &out->cluster, err);
    if (!st)
        st = json_get_string(at, "file", JSON_OPTIONAL, &out->file, err);
    if (!st)
        st = json_get_string(at, "runner", JSON_REQUIRED, &out->runner, err);
    if (!st)
        st = json_get_string(at, "hosts", JSON_OPTIONAL, &out->hosts, err);
    if (!st && !out->cluster == !out->file)
        return json_fail(at, err, "must have either \"cluster\" or \"file\"");
    return st;
}

/* Fails now, and not at each trial, if no trial could run by this launcher. */
static enum status check_launcher(const struct launcher_entry *words, const char *id, struct access *access,
                                  struct error *err) {
    struct store *store;
    struct cluster cluster;
    enum launcher_kind place;
    enum status st = access_read(access, &store, err);
    if (!st)
        st = store_get_cluster(store, id, &cluster, err);
    if (st)
        return st;
    if (launcher_parse(words->runner, &place)) /* hub_register tells of the others */
        st = runner_check_hosts(place, words->hosts, &cluster, err);
    cluster_release(&cluster);
    return st;
}

static enum status register_one(const struct json_at *at, const char *path, struct access *access, struct hub *hub,
                                struct error *err) {
    struct launcher_entry words;
    struct place place;
    enum status st = read_launcher(at, &words, err);
    if (!st)
        st = find_place(path, words.cluster, words.file, access, &place, err);
    if (!st)
        st = check_launcher(&words, place.id.hex, access, err);
    if (!st)
        st = hub_register(hub, place.id.hex, words.runner, words.hosts, err);
    if (!st)
        log_info("the service runs trials of cluster %s itself, by %s", place.id.hex, words.runner);
    return st;
}

/* {"launchers":[{"file":"clusters/lab-4x1g.json","runner":"lab"}]} */
enum status serve_launchers(const char *path, struct access *access, struct hub *hub, struct error *err) {
    static const char *const known[] = {"launchers", NULL};
    cJSON *json;
    struct json_at list;
    size_t n;
    enum status st = json_read_file(path, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, path);
    st = json_expect_object(&root, known, err);
    if (!st)
        st = json_array(&root, "launchers", 1000, &list, &n, err);
    if (!st)
        for (struct json_at e = json_first(&list); !st && e.node; e = json_next(&e))
            st = register_one(&e, path, access, hub, err);
    cJSON_Delete(json);
    return st;
}
