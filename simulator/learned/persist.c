/* Rankers as canonical JSON.
 *
 * Numbers are written as the shortest decimals that read back the same, so a ranker that was read scores as the one
 * that was written, bit for bit. The names of the features are written with it: a ranker of other features would read
 * numbers that mean something else, and is refused. The seconds of the report are not written, so that the same
 * training gives the same bytes. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "simulator/learned/ranker.h"
#include "simulator/learned/ranker_internal.h"

static const char *const SCHEMA = "syncopate.ranker/1";
enum { MOST_PARAMETERS = 1 << 24, SEED_TEXT = 24 };

typedef const char *(*name_function)(size_t i);

/* ---- writing: every function returns false when memory is out ---- */

static bool add(cJSON *object, const char *key, cJSON *item) {
    return item && (cJSON_AddItemToObject(object, key, item) || (cJSON_Delete(item), false));
}

static bool add_number(cJSON *object, const char *key, double x) {
    return add(object, key, isfinite(x) ? cJSON_CreateNumber(x) : cJSON_CreateNull());
}

static bool add_numbers(cJSON *object, const char *key, size_t n, const double *x) {
    return add(object, key, cJSON_CreateDoubleArray(x, (int)n));
}

static bool add_names(cJSON *object, const char *key, size_t n, name_function name) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        cJSON *word = cJSON_CreateString(name(i));
        ok = word && cJSON_AddItemToArray(array, word);
    }
    return ok;
}

static bool write_features(const struct ranker *ranker, cJSON *root) {
    const struct normalisation *n = &ranker->normalisation;
    cJSON *features = cJSON_AddObjectToObject(root, "features");
    cJSON *normalisation = cJSON_AddObjectToObject(root, "normalisation");
    return features && normalisation && add_names(features, "global", FEATURE_GLOBAL_COUNT, feature_global_name) &&
           add_names(features, "shard", FEATURE_SHARD_COUNT, feature_shard_name) &&
           add_numbers(normalisation, "global_mean", FEATURE_GLOBAL_COUNT, n->global_mean) &&
           add_numbers(normalisation, "global_scale", FEATURE_GLOBAL_COUNT, n->global_scale) &&
           add_numbers(normalisation, "shard_mean", FEATURE_SHARD_COUNT, n->shard_mean) &&
           add_numbers(normalisation, "shard_scale", FEATURE_SHARD_COUNT, n->shard_scale);
}

static bool write_options(const struct ranker_options *o, cJSON *root) {
    cJSON *options = cJSON_AddObjectToObject(root, "options");
    char seed[SEED_TEXT];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed); /* as text: a JSON number holds 53 bits */
    return options && add(options, "seed", cJSON_CreateString(seed)) && add_number(options, "sigma_us", o->sigma_us) &&
           add_number(options, "validation", o->validation) && add_number(options, "members", o->members) &&
           add_number(options, "epochs", o->epochs) && add_number(options, "patience", o->patience) &&
           add_number(options, "learning_rate", o->learning_rate) &&
           add_number(options, "weight_decay", o->weight_decay);
}

static bool write_report(const struct ranker_report *r, cJSON *root) {
    cJSON *report = cJSON_AddObjectToObject(root, "report");
    return report && add_number(report, "epochs", r->epochs) && add_number(report, "best_epoch", r->best_epoch) &&
           add_number(report, "n_training", (double)r->n_training) &&
           add_number(report, "n_validation", (double)r->n_validation) &&
           add_number(report, "training_accuracy", r->training_accuracy) &&
           add_number(report, "validation_accuracy", r->validation_accuracy);
}

static bool write_model(const struct ranker *ranker, cJSON *root) {
    const struct neural_network *network = ranker_network(ranker->options.kind);
    if (network)
        return add_numbers(root, "parameters", network->parameters, ranker->parameters);
    return add_number(root, "leaf_scale", ranker->leaf_scale) && add(root, "trees", forest_write(&ranker->forest));
}

char *ranker_write(const struct ranker *ranker) {
    cJSON *root = cJSON_CreateObject();
    char *text = NULL;
    if (root && add(root, "schema", cJSON_CreateString(SCHEMA)) &&
        add(root, "kind", cJSON_CreateString(ranker_kind_name(ranker->options.kind))) &&
        add(root, "residual", cJSON_CreateBool(ranker->options.residual)) && add_number(root, "shift", ranker->shift) &&
        write_features(ranker, root) && write_model(ranker, root) && write_options(&ranker->options, root) &&
        write_report(&ranker->report, root))
        text = json_canonical(root);
    cJSON_Delete(root);
    return text;
}

/* ---- reading ---- */

static enum status get_number(const struct json_at *at, const char *key, double *out, struct error *err) {
    return json_get_number(at, key, JSON_REQUIRED, -DBL_MAX, DBL_MAX, out, err);
}

/* A member that is null when there was nothing to measure. */
static enum status get_accuracy(const struct json_at *at, const char *key, double *out, struct error *err) {
    struct json_at child;
    enum status status = json_member(at, key, &child, err);
    if (status)
        return status;
    *out = NAN;
    return cJSON_IsNull(child.node) ? ST_OK : json_number_at(&child, 0, 1, out, err);
}

static enum status get_numbers(const struct json_at *at, const char *key, size_t n, double *out, struct error *err) {
    struct json_at array;
    size_t found, i = 0;
    enum status status = json_array(at, key, MOST_PARAMETERS, &array, &found, err);
    if (status)
        return status;
    if (found != n)
        return json_fail(&array, err, "has %zu numbers; this version's rankers have %zu", found, n);
    for (struct json_at e = json_first(&array); e.node && !status; e = json_next(&e))
        status = json_number_at(&e, -DBL_MAX, DBL_MAX, &out[i++], err);
    return status;
}

/* The same features in the same order, or the first that differs. */
static enum status check_names(const struct json_at *at, const char *key, size_t n, name_function name,
                               struct error *err) {
    struct json_at array;
    const char *word;
    size_t found, i = 0;
    enum status status = json_array(at, key, MOST_PARAMETERS, &array, &found, err);
    if (status)
        return status;
    for (struct json_at e = json_first(&array); e.node && i < n; e = json_next(&e), i++) {
        if ((status = json_string_at(&e, &word, err)))
            return status;
        if (strcmp(word, name(i)) != 0)
            return json_fail(&e, err, "is \"%.60s\" where this version has \"%s\"; train the ranker anew", word,
                             name(i));
    }
    if (found < n)
        return json_fail(&array, err, "has no \"%s\", which this version has; train the ranker anew", name(found));
    if (found > n)
        return json_fail(&array, err, "has %zu features, this version %zu; train the ranker anew", found, n);
    return ST_OK;
}

static enum status read_features(const struct json_at *root, struct ranker *ranker, struct error *err) {
    static const char *const VIEWS[] = {"global", "shard", NULL};
    static const char *const KNOWN[] = {"global_mean", "global_scale", "shard_mean", "shard_scale", NULL};
    struct normalisation *n = &ranker->normalisation;
    struct json_at features, at;
    enum status status;
    if ((status = json_member(root, "features", &features, err)) ||
        (status = json_expect_object(&features, VIEWS, err)) ||
        (status = check_names(&features, "global", FEATURE_GLOBAL_COUNT, feature_global_name, err)) ||
        (status = check_names(&features, "shard", FEATURE_SHARD_COUNT, feature_shard_name, err)) ||
        (status = json_member(root, "normalisation", &at, err)) || (status = json_expect_object(&at, KNOWN, err)) ||
        (status = get_numbers(&at, "global_mean", FEATURE_GLOBAL_COUNT, n->global_mean, err)) ||
        (status = get_numbers(&at, "global_scale", FEATURE_GLOBAL_COUNT, n->global_scale, err)) ||
        (status = get_numbers(&at, "shard_mean", FEATURE_SHARD_COUNT, n->shard_mean, err)))
        return status;
    return get_numbers(&at, "shard_scale", FEATURE_SHARD_COUNT, n->shard_scale, err);
}

static enum status read_seed(const struct json_at *at, uint64_t *out, struct error *err) {
    struct json_at child;
    const char *text;
    char again[SEED_TEXT];
    enum status status = json_member(at, "seed", &child, err);
    if (status || (status = json_string_at(&child, &text, err)))
        return status;
    const unsigned long long seed = strtoull(text, NULL, 10);
    snprintf(again, sizeof again, "%llu", seed);
    if (strcmp(text, again) != 0)
        return json_fail(&child, err, "must be a whole number below 2^64 as text");
    *out = seed;
    return ST_OK;
}

static enum status read_options(const struct json_at *root, struct ranker_options *o, struct error *err) {
    static const char *const KNOWN[] = {"seed",     "sigma_us",      "validation",   "members", "epochs",
                                        "patience", "learning_rate", "weight_decay", NULL};
    struct json_at at;
    uint64_t epochs = 0, patience = 0, members = 1; /* an older file has no members: that is one */
    enum status status;
    if ((status = json_member(root, "options", &at, err)) || (status = json_expect_object(&at, KNOWN, err)) ||
        (status = read_seed(&at, &o->seed, err)) || (status = get_number(&at, "sigma_us", &o->sigma_us, err)) ||
        (status = get_number(&at, "validation", &o->validation, err)) ||
        (status = json_get_integer(&at, "members", JSON_OPTIONAL, 1, UINT32_MAX, &members, err)) ||
        (status = json_get_integer(&at, "epochs", JSON_REQUIRED, 1, UINT32_MAX, &epochs, err)) ||
        (status = json_get_integer(&at, "patience", JSON_REQUIRED, 1, UINT32_MAX, &patience, err)) ||
        (status = get_number(&at, "learning_rate", &o->learning_rate, err)) ||
        (status = get_number(&at, "weight_decay", &o->weight_decay, err)))
        return status;
    o->members = (uint32_t)members;
    o->epochs = (uint32_t)epochs;
    o->patience = (uint32_t)patience;
    return ST_OK;
}

static enum status read_report(const struct json_at *root, struct ranker_report *r, struct error *err) {
    static const char *const KNOWN[] = {
        "epochs", "best_epoch", "n_training", "n_validation", "training_accuracy", "validation_accuracy", NULL};
    static const uint64_t MOST = UINT64_C(1) << 53;
    struct json_at at;
    uint64_t epochs = 0, best = 0, training = 0, validation = 0;
    enum status status;
    if ((status = json_member(root, "report", &at, err)) || (status = json_expect_object(&at, KNOWN, err)) ||
        (status = json_get_integer(&at, "epochs", JSON_REQUIRED, 0, UINT32_MAX, &epochs, err)) ||
        (status = json_get_integer(&at, "best_epoch", JSON_REQUIRED, 0, UINT32_MAX, &best, err)) ||
        (status = json_get_integer(&at, "n_training", JSON_REQUIRED, 0, MOST, &training, err)) ||
        (status = json_get_integer(&at, "n_validation", JSON_REQUIRED, 0, MOST, &validation, err)) ||
        (status = get_accuracy(&at, "training_accuracy", &r->training_accuracy, err)) ||
        (status = get_accuracy(&at, "validation_accuracy", &r->validation_accuracy, err)))
        return status;
    r->epochs = (uint32_t)epochs;
    r->best_epoch = (uint32_t)best;
    r->n_training = (size_t)training;
    r->n_validation = (size_t)validation;
    return ST_OK;
}

static enum status read_model(const struct json_at *root, struct ranker *ranker, struct error *err) {
    const struct neural_network *network = ranker_network(ranker->options.kind);
    struct json_at trees;
    size_t n;
    if (network)
        return get_numbers(root, "parameters", network->parameters, ranker->parameters, err);
    enum status status = get_number(root, "leaf_scale", &ranker->leaf_scale, err);
    if (!status)
        status = json_array(root, "trees", MOST_PARAMETERS, &trees, &n, err);
    return !status ? forest_read(&trees, FEATURE_GLOBAL_COUNT, &ranker->forest, err) : status;
}

static enum status check_members(const struct json_at *root, bool trees, struct error *err) {
    static const char *const NETWORK[] = {"schema",        "kind",       "residual", "shift",  "features",
                                          "normalisation", "parameters", "options",  "report", NULL};
    static const char *const TREES[] = {"schema",     "kind",  "residual", "shift",  "features", "normalisation",
                                        "leaf_scale", "trees", "options",  "report", NULL};
    return json_expect_object(root, trees ? TREES : NETWORK, err);
}

static enum status read_kind(const struct json_at *root, enum ranker_kind *out, struct error *err) {
    static const char *const WORDS[] = {
#define X(name) #name,
        RANKER_KIND_TABLE(X)
#undef X
            NULL};
    size_t kind;
    enum status status = json_expect_schema(root, SCHEMA, err);
    if (!status)
        status = json_get_word(root, "kind", JSON_REQUIRED, WORDS, &kind, err);
    if (!status)
        *out = (enum ranker_kind)kind;
    return status;
}

static enum status read_ranker(const struct json_at *root, struct ranker **out, struct error *err) {
    enum ranker_kind kind = RANKER_linear;
    enum status status = read_kind(root, &kind, err);
    if (!status)
        status = check_members(root, ranker_network(kind) == NULL, err);
    if (status)
        return status;
    struct ranker *ranker = ranker_new(kind);
    if (!ranker)
        return error_no_memory(err);
    if ((status = json_get_bool(root, "residual", JSON_REQUIRED, &ranker->options.residual, err)) ||
        (status = get_number(root, "shift", &ranker->shift, err)) || (status = read_features(root, ranker, err)) ||
        (status = read_model(root, ranker, err)) || (status = read_options(root, &ranker->options, err)) ||
        (status = read_report(root, &ranker->report, err))) {
        ranker_free(ranker);
        return status;
    }
    *out = ranker;
    return ST_OK;
}

enum status ranker_read(const char *text, struct ranker **out, struct error *err) {
    cJSON *tree;
    enum status status = json_parse(text, strlen(text), "ranker", &tree, err);
    if (status)
        return status;
    ranker_hold_blas();
    const struct json_at root = json_root(tree, "ranker");
    status = read_ranker(&root, out, err);
    cJSON_Delete(tree);
    return status;
}
