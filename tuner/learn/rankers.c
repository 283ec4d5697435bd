/* A ranker's text is canonical JSON, and so is the object around it: taking it out and writing it canonically gives the
 * same text, so no number changes. */
#include "tuner/learn/rankers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/version.h"
#include "dataset/describe.h"

#define SCHEMA "syncopate.stored-ranker/1"

enum { MAX_DOMAINS = 100000 };

/* ---- where it comes from ---- */

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The SHA-256 over the n texts, sorted in place, each with a line end. */
static enum status hash_texts(size_t n, const char **texts, struct id *out, struct error *err) {
    size_t length = 0;
    qsort(texts, n, sizeof *texts, compare_texts);
    for (size_t i = 0; i < n; i++)
        length += strlen(texts[i]) + 1;
    char *all = malloc(length + 1), *at = all;
    if (!all)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, texts[i]);
        *at++ = '\n';
    }
    enum status st = id_of(all, length, out, err);
    free(all);
    return st;
}

static enum status hash_trials(const struct examples *e, size_t n, const uint32_t *places, uint64_t n_trials,
                               struct id *out, struct error *err) {
    const char **uids = calloc(n_trials + 1, sizeof *uids);
    if (!uids)
        return error_no_memory(err);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < e->trials[places[i]].n; t++)
            uids[k++] = e->trials[places[i]].uids[t];
    enum status st = hash_texts(k, uids, out, err);
    free(uids);
    return st;
}

static struct ranker_domain domain_row(const struct domain *d) {
    return (struct ranker_domain){.model = d->model.id.hex,
                                  .cluster = d->cluster.id.hex,
                                  .model_name = d->model.name,
                                  .cluster_name = d->cluster.name,
                                  .runner = d->runner};
}

enum status ranker_origin_of(const struct examples *e, size_t n, const uint32_t *places, struct arena *arena,
                             struct ranker_origin *out, struct error *err) {
    struct ranker_domain *rows = arena_alloc(arena, e->n_domains, sizeof *rows);
    struct ranker_origin origin = {
        .version = SYNCOPATE_VERSION, .held_out_accuracy = NAN, .timeline_accuracy = NAN, .domains = rows};
    if (!rows)
        return error_no_memory(err);
    for (size_t d = 0; d < e->n_domains; d++)
        rows[d] = domain_row(&e->domains[d]);
    for (size_t i = 0; i < n; i++) {
        struct ranker_domain *row = &rows[e->examples[places[i]].domain];
        row->strategies++;
        row->trials += e->trials[places[i]].n;
        origin.n_trials += e->trials[places[i]].n;
    }
    for (size_t d = 0; d < e->n_domains; d++)
        if (rows[d].strategies)
            rows[origin.n_domains++] = rows[d];
    enum status st = hash_trials(e, n, places, origin.n_trials, &origin.trials, err);
    if (!st)
        *out = origin;
    return st;
}

/* ---- writing ---- */

static bool add_count(cJSON *to, const char *key, uint64_t n) {
    return cJSON_AddNumberToObject(to, key, (double)n);
}

static bool add_domain(cJSON *to, const struct ranker_domain *d) {
    cJSON *row = cJSON_CreateObject();
    if (!row || !cJSON_AddItemToArray(to, row)) {
        cJSON_Delete(row);
        return false;
    }
    return cJSON_AddStringToObject(row, "model", d->model) &&
           cJSON_AddStringToObject(row, "model_name", d->model_name) &&
           cJSON_AddStringToObject(row, "cluster", d->cluster) &&
           cJSON_AddStringToObject(row, "cluster_name", d->cluster_name) &&
           (!*d->runner || cJSON_AddStringToObject(row, "runner", d->runner)) && add_count(row, "trials", d->trials) &&
           add_count(row, "strategies", d->strategies);
}

static bool add_provenance(cJSON *root, const struct ranker_origin *o) {
    cJSON *to = cJSON_AddObjectToObject(root, "provenance");
    cJSON *domains = to ? cJSON_AddArrayToObject(to, "domains") : NULL;
    bool whole = domains && cJSON_AddStringToObject(to, "version", o->version) &&
                 (!o->from || cJSON_AddStringToObject(to, "from", o->from)) && add_count(to, "trials", o->n_trials) &&
                 cJSON_AddStringToObject(to, "trials_sha256", o->trials.hex);
    for (size_t d = 0; d < o->n_domains && whole; d++)
        whole = add_domain(domains, &o->domains[d]);
    return whole;
}

static bool add_metrics(cJSON *root, const struct ranker_origin *o) {
    cJSON *to = cJSON_AddObjectToObject(root, "metrics");
    return to && add_count(to, "held_out", o->n_held_out) &&
           json_add_known(to, "held_out_accuracy", o->held_out_accuracy) &&
           json_add_known(to, "timeline_accuracy", o->timeline_accuracy);
}

/* The object's text, malloc'd; NULL when memory is out. */
static char *write_stored(const struct ranker *ranker, const struct ranker_origin *origin) {
    char *text = ranker_write(ranker), *out = NULL;
    cJSON *root = text ? cJSON_CreateObject() : NULL;
    cJSON *inner = root ? cJSON_Parse(text) : NULL;
    free(text);
    bool added = inner && cJSON_AddItemToObject(root, "ranker", inner);
    if (!added)
        cJSON_Delete(inner);
    else if (cJSON_AddStringToObject(root, "schema", SCHEMA) && add_provenance(root, origin) &&
             add_metrics(root, origin))
        out = json_canonical(root);
    cJSON_Delete(root);
    return out;
}

enum status rankers_put(struct store *store, const char *name, const struct ranker *ranker,
                        const struct ranker_origin *origin, struct id *id, struct error *err) {
    return rankers_put_for(store, NULL, NULL, name, ranker, origin, id, err);
}

enum status rankers_put_for(struct store *store, const char *team, const char *shared, const char *name,
                            const struct ranker *ranker, const struct ranker_origin *origin, struct id *id,
                            struct error *err) {
    char *text = write_stored(ranker, origin);
    struct id made;
    enum status st = text ? id_of(text, strlen(text), &made, err) : error_no_memory(err);
    if (!st)
        st = holding_make(store, STORE_RANKER, &made, text, team, name, shared, err);
    free(text);
    if (!st && id)
        *id = made;
    return st;
}

/* ---- reading ---- */

static enum status copy_text(struct arena *arena, const char **text, struct error *err) {
    *text = arena_strdup(arena, *text);
    return *text ? ST_OK : error_no_memory(err);
}

static enum status get_text(const struct json_at *at, const char *key, enum json_need need, struct arena *arena,
                            const char **out, struct error *err) {
    const char *text = *out;
    enum status st = json_get_string(at, key, need, &text, err);
    if (!st && text && !(st = copy_text(arena, &text, err)))
        *out = text;
    return st;
}

static enum status get_hash(const struct json_at *at, const char *key, struct id *out, struct error *err) {
    const char *text = NULL;
    enum status st = json_get_string(at, key, JSON_REQUIRED, &text, err);
    if (st)
        return st;
    if (strlen(text) != ID_LENGTH)
        return json_fail(at, err, "%s has %zu digits instead of %d", key, strlen(text), ID_LENGTH);
    memcpy(out->hex, text, ID_LENGTH + 1);
    return ST_OK;
}

static enum status get_count(const struct json_at *at, const char *key, uint64_t *out, struct error *err) {
    return json_get_integer(at, key, JSON_REQUIRED, 0, UINT32_MAX, out, err);
}

static enum status read_domain(const struct json_at *at, struct arena *arena, struct ranker_domain *out,
                               struct error *err) {
    static const char *const KNOWN[] = {"model",  "model_name", "cluster",    "cluster_name",
                                        "runner", "trials",     "strategies", NULL};
    enum status st;
    out->runner = "";
    if ((st = json_expect_object(at, KNOWN, err)) ||
        (st = get_text(at, "model", JSON_REQUIRED, arena, &out->model, err)) ||
        (st = get_text(at, "model_name", JSON_REQUIRED, arena, &out->model_name, err)) ||
        (st = get_text(at, "cluster", JSON_REQUIRED, arena, &out->cluster, err)) ||
        (st = get_text(at, "cluster_name", JSON_REQUIRED, arena, &out->cluster_name, err)) ||
        (st = get_text(at, "runner", JSON_OPTIONAL, arena, &out->runner, err)) ||
        (st = get_count(at, "trials", &out->trials, err)) || (st = get_count(at, "strategies", &out->strategies, err)))
        return st;
    return ST_OK;
}

static enum status read_domains(const struct json_at *at, struct arena *arena, struct ranker_origin *out,
                                struct error *err) {
    struct json_at list;
    size_t n = 0;
    enum status st = json_array(at, "domains", MAX_DOMAINS, &list, &n, err);
    struct ranker_domain *rows = st ? NULL : arena_alloc(arena, n, sizeof *rows);
    if (!st && !rows)
        st = error_no_memory(err);
    if (st)
        return st;
    size_t k = 0;
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
        st = read_domain(&e, arena, &rows[k++], err);
    out->domains = rows;
    out->n_domains = n;
    return st;
}

static enum status read_provenance(const struct json_at *root, struct arena *arena, struct ranker_origin *out,
                                   struct error *err) {
    static const char *const KNOWN[] = {"version", "from", "domains", "trials", "trials_sha256", NULL};
    struct json_at at;
    enum status st;
    if ((st = json_member(root, "provenance", &at, err)) || (st = json_expect_object(&at, KNOWN, err)) ||
        (st = get_text(&at, "version", JSON_REQUIRED, arena, &out->version, err)) ||
        (st = get_text(&at, "from", JSON_OPTIONAL, arena, &out->from, err)) ||
        (st = get_count(&at, "trials", &out->n_trials, err)) ||
        (st = get_hash(&at, "trials_sha256", &out->trials, err)) || (st = read_domains(&at, arena, out, err)))
        return st;
    return ST_OK;
}

static enum status read_metrics(const struct json_at *root, struct ranker_origin *out, struct error *err) {
    static const char *const KNOWN[] = {"held_out", "held_out_accuracy", "timeline_accuracy", NULL};
    struct json_at at;
    enum status st;
    out->held_out_accuracy = out->timeline_accuracy = NAN;
    if ((st = json_member(root, "metrics", &at, err)) || (st = json_expect_object(&at, KNOWN, err)) ||
        (st = get_count(&at, "held_out", &out->n_held_out, err)) ||
        (st = json_get_number(&at, "held_out_accuracy", JSON_OPTIONAL, 0, 1, &out->held_out_accuracy, err)) ||
        (st = json_get_number(&at, "timeline_accuracy", JSON_OPTIONAL, 0, 1, &out->timeline_accuracy, err)))
        return st;
    return ST_OK;
}

static enum status read_inner(const struct json_at *root, struct ranker **out, struct error *err) {
    struct json_at at;
    enum status st = json_member(root, "ranker", &at, err);
    if (st)
        return st;
    char *text = json_canonical(at.node);
    st = text ? ranker_read(text, out, err) : error_no_memory(err);
    free(text);
    return st;
}

static enum status read_tree(const struct json_at *root, struct stored_ranker *out, struct error *err) {
    static const char *const KNOWN[] = {"schema", "ranker", "provenance", "metrics", NULL};
    enum status st;
    if ((st = json_expect_object(root, KNOWN, err)) || (st = json_expect_schema(root, SCHEMA, err)) ||
        (st = read_provenance(root, &out->arena, &out->origin, err)) || (st = read_metrics(root, &out->origin, err)) ||
        (st = read_inner(root, &out->ranker, err)))
        return st;
    return ST_OK;
}

/* Read a stored ranker by its whole id. When this version cannot use it: ST_INVALID, and *out has what is known of it.
 * Release *out in either case. */
static enum status read_stored(struct store *store, const struct viewer *asker, const char *id,
                               struct stored_ranker *out, struct error *err) {
    struct arena arena = {0};
    struct stored_object object;
    cJSON *tree = NULL;
    *out = (struct stored_ranker){.ranker = NULL};
    enum status st = seen_get(store, STORE_RANKER, id, asker, &arena, &object, err);
    if (!st) {
        out->id = object.id;
        out->name = object.name;
        out->created = object.created;
        st = copy_text(&out->arena, &out->name, err);
    }
    if (!st)
        st = copy_text(&out->arena, &out->created, err);
    if (!st)
        st = json_parse(object.content, strlen(object.content), object.name, &tree, err);
    if (!st) {
        const struct json_at root = json_root(tree, object.name);
        st = read_tree(&root, out, err);
    }
    cJSON_Delete(tree);
    arena_release(&arena);
    return st;
}

void stored_ranker_release(struct stored_ranker *stored) {
    ranker_free(stored->ranker);
    arena_release(&stored->arena);
    *stored = (struct stored_ranker){.ranker = NULL};
}

static enum status find_stored(struct store *store, const struct viewer *asker, const char *word,
                               struct stored_ranker *out, struct error *err) {
    struct id id;
    enum status st = seen_find(store, STORE_RANKER, word, asker, &id, err);
    return st ? st : read_stored(store, asker, id.hex, out, err);
}

enum status rankers_get(struct store *store, const struct viewer *asker, const char *word, struct stored_ranker *out,
                        struct error *err) {
    struct stored_ranker stored = {.ranker = NULL};
    enum status st = find_stored(store, asker, word, &stored, err);
    if (st)
        stored_ranker_release(&stored);
    else
        *out = stored;
    return st;
}

enum status rankers_look(struct store *store, const struct viewer *asker, const char *word, struct stored_ranker *out,
                         struct error *err) {
    struct stored_ranker stored = {.ranker = NULL};
    enum status st = find_stored(store, asker, word, &stored, err);
    if (st && st != ST_INVALID) {
        stored_ranker_release(&stored);
        return st;
    }
    *out = stored;
    return ST_OK;
}

enum status rankers_list(struct store *store, const struct viewer *asker, struct stored_rankers *out,
                         struct error *err) {
    struct arena arena = {0};
    struct stored_object *objects;
    struct stored_rankers list = {.n = 0};
    size_t n = 0;
    enum status st = store_list(store, STORE_RANKER, &arena, &n, &objects, err);
    if (!st && !(list.items = calloc(n + 1, sizeof *list.items)))
        st = error_no_memory(err);
    for (size_t i = 0; i < n && !st; i++) {
        const enum status seen = read_stored(store, asker, objects[i].id.hex, &list.items[list.n], err);
        if (!seen || seen == ST_INVALID)
            list.n++;
        else
            stored_ranker_release(&list.items[list.n]);
        st = seen == ST_INVALID || seen == ST_NOT_FOUND ? ST_OK : seen;
    }
    arena_release(&arena);
    if (st)
        stored_rankers_release(&list);
    else
        *out = list;
    return st;
}

void stored_rankers_release(struct stored_rankers *list) {
    for (size_t i = 0; i < list->n; i++)
        stored_ranker_release(&list->items[i]);
    free(list->items);
    *list = (struct stored_rankers){.n = 0};
}

/* ---- described ---- */

static bool describe_domain(cJSON *to, const struct ranker_domain *d) {
    cJSON *row = cJSON_CreateObject();
    if (!row || !cJSON_AddItemToArray(to, row)) {
        cJSON_Delete(row);
        return false;
    }
    return cJSON_AddStringToObject(row, "model", d->model_name) &&
           cJSON_AddStringToObject(row, "cluster", d->cluster_name) &&
           cJSON_AddStringToObject(row, "runner", d->runner) && add_count(row, "trials", d->trials) &&
           add_count(row, "strategies", d->strategies);
}

static bool describe_training(cJSON *root, const struct ranker *ranker) {
    const struct ranker_report *report = ranker_report_of(ranker);
    return cJSON_AddStringToObject(root, "kind", ranker_kind_name(ranker_kind_of(ranker))) &&
           cJSON_AddBoolToObject(root, "residual", ranker_residual(ranker)) &&
           add_count(root, "seed", ranker_options_of(ranker)->seed) && add_count(root, "epochs", report->epochs) &&
           json_add_known(root, "training_accuracy", report->training_accuracy) &&
           json_add_known(root, "validation_accuracy", report->validation_accuracy);
}

cJSON *ranker_describe(const struct stored_ranker *stored) {
    const struct ranker_origin *o = &stored->origin;
    cJSON *root = cJSON_CreateObject();
    bool whole =
        root && cJSON_AddStringToObject(root, "schema", "syncopate.trained-ranker/1") &&
        cJSON_AddStringToObject(root, "id", stored->id.hex) && cJSON_AddStringToObject(root, "name", stored->name) &&
        cJSON_AddBoolToObject(root, "usable", stored->ranker != NULL) &&
        (!stored->ranker || describe_training(root, stored->ranker)) &&
        (!o->version || cJSON_AddStringToObject(root, "version", o->version)) &&
        (!o->from || cJSON_AddStringToObject(root, "from", o->from)) && add_count(root, "trials", o->n_trials) &&
        add_count(root, "held_out", o->n_held_out) && json_add_known(root, "held_out_accuracy", o->held_out_accuracy) &&
        json_add_known(root, "timeline_accuracy", o->timeline_accuracy);
    cJSON *domains = whole ? cJSON_AddArrayToObject(root, "domains") : NULL;
    whole = whole && domains;
    for (size_t d = 0; d < o->n_domains && whole; d++)
        whole = describe_domain(domains, &o->domains[d]);
    if (!whole) {
        cJSON_Delete(root);
        root = NULL;
    }
    return root;
}

/* ---- the nearest ---- */

/* *distance stays as it is when the dataset has no such model or cluster, or can no longer read them. */
static enum status measure(struct store *store, const struct ranker_domain *row, const struct domain *here,
                           double *distance, struct error *err) {
    struct domain there = {.n = 0};
    enum status st = store_get_model(store, row->model, &there.model, err);
    if (!st)
        st = store_get_cluster(store, row->cluster, &there.cluster, err);
    if (!st)
        *distance = fmin(*distance, domain_distance(here, &there));
    model_release(&there.model);
    cluster_release(&there.cluster);
    return st == ST_NOT_FOUND || st == ST_INVALID ? ST_OK : st;
}

static enum status find_nearest(struct store *store, const struct stored_rankers *list, const struct domain *here,
                                size_t *best, double *distance, struct error *err) {
    enum status st = ST_OK;
    *best = list->n;
    *distance = INFINITY;
    for (size_t i = 0; i < list->n && !st; i++) {
        const struct ranker_origin *origin = &list->items[i].origin;
        double nearest = INFINITY;
        bool usable = list->items[i].ranker && ranker_residual(list->items[i].ranker);
        for (size_t d = 0; d < origin->n_domains && usable && !st; d++)
            st = measure(store, &origin->domains[d], here, &nearest, err);
        if (!usable)
            continue;
        bool nearer = nearest < *distance || *best == list->n;
        if (nearer || (nearest <= *distance && origin->n_trials >= list->items[*best].origin.n_trials)) {
            *best = i;
            *distance = nearest;
        }
    }
    return st;
}

/* *n_stored: how many rankers there are, usable or not. */
static enum status nearest_of(struct store *store, const struct viewer *asker, const struct domain *here,
                              struct stored_ranker *out, double *distance, size_t *n_stored, struct error *err) {
    struct stored_rankers list;
    size_t best;
    double nearest;
    *n_stored = 0;
    enum status st = rankers_list(store, asker, &list, err);
    if (st)
        return st;
    *n_stored = list.n;
    st = find_nearest(store, &list, here, &best, &nearest, err);
    if (!st && best == list.n)
        st = error_set(err, ST_NOT_FOUND, "%s has no ranker%s", store_path(store),
                       list.n ? " that predicts times and that this version can use" : "");
    if (!st) {
        *out = list.items[best];
        list.items[best] = (struct stored_ranker){.ranker = NULL};
        if (distance)
            *distance = nearest;
    }
    stored_rankers_release(&list);
    return st;
}

enum status rankers_nearest(struct store *store, const struct viewer *asker, const struct domain *here,
                            struct stored_ranker *out, double *distance, struct error *err) {
    size_t n_stored;
    return nearest_of(store, asker, here, out, distance, &n_stored, err);
}

enum status rankers_for_session(struct store *store, const struct viewer *asker, const struct domain *here,
                                const char *word, struct stored_ranker *out, struct error *err) {
    const bool nearest = !strcmp(word, "nearest");
    *out = (struct stored_ranker){0};
    if (!strcmp(word, "none"))
        return ST_OK;
    size_t n_stored = 0;
    enum status st =
        nearest ? nearest_of(store, asker, here, out, NULL, &n_stored, err) : rankers_get(store, asker, word, out, err);
    if (nearest && st == ST_NOT_FOUND) {
        if (n_stored > 0) /* such as of other features than this version's */
            log_info("%s; the session goes on without: train one anew", err->message);
        return ST_OK;
    }
    if (st || ranker_residual(out->ranker))
        return st;
    stored_ranker_release(out);
    *out = (struct stored_ranker){0};
    return nearest ? ST_OK
                   : error_set(err, ST_USAGE, "ranker %s: it only ranks and predicts no times, which a session needs",
                               word);
}
