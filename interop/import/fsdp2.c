/* fsdp2.json, the file of `strategy export --to fsdp2`, whose members interop/export/fsdp2.c describes. A member that
 * is not there means what it means to syncopate_torch.fsdp.apply: one group ahead in each pass, shards among all ranks,
 * the parameters' own types, one micro-batch. Without "reshard_after_forward" a group is freed after the forward pass,
 * but not that of the model itself, which has all variables or one whose name has no point.
 *
 * A file without losses is the strategy that it was made of. If its "strategy" is another one, that is noted. */
#include <string.h>

#include "base/json.h"
#include "interop/import/strategy_kinds.h"

bool fsdp2_is(const struct source *source) {
    return strstr(source->text, "\"groups\"") && strstr(source->text, "\"forward_prefetch\"") &&
           !strstr(source->text, "\"syncopate.strategy/");
}

struct reading {
    const struct model *model;
    struct strategy *strategy;
    bool *is_named; /* by variable */
};

/* ---- groups ---- */

static enum status read_variable(struct reading *r, const struct json_at *at, uint32_t g, uint32_t *out,
                                 struct error *err) {
    const char *name;
    enum status st = json_string_at(at, &name, err);
    if (st)
        return st;
    const int64_t v = model_find_variable(r->model, name);
    if (v < 0)
        return json_fail(at, err, "model \"%s\" has no variable \"%.60s\"", r->model->name, name);
    if (r->is_named[v])
        return json_fail(at, err, "\"%.60s\" is in two groups, or twice in one", name);
    r->is_named[v] = true;
    r->strategy->variables[v].group = g;
    *out = (uint32_t)v;
    return ST_OK;
}

/* Variables that are `own` in the model. *out stays as it is where the member is not there. */
static enum status get_type(const struct json_at *group, const char *key, enum dtype own, enum carried *out,
                            struct error *err) {
#define X(name) #name,
    static const char *const words[] = {CARRIED_TABLE(X) "f64", NULL};
#undef X
    const size_t f64 = CARRIED_COUNT - CARRIED_f32;
    struct json_at at;
    size_t word = 0;
    if (!json_has(group, key, &at))
        return ST_OK;
    enum status st = json_get_word(group, key, JSON_REQUIRED, words, &word, err);
    if (!st && word == f64 && own != DTYPE_f64)
        return json_fail(&at, err, "is f64, which no strategy says of variables that are %s", dtype_name(own));
    *out = word == f64 ? CARRIED_own : (enum carried)(CARRIED_f32 + word);
    return st;
}

/* fully_shard sums in param_dtype where it is told no more. */
static enum status read_types(const struct json_at *at, enum dtype own, struct group *group, struct error *err) {
    enum status st = get_type(at, "param_dtype", own, &group->gathered_as, err);
    group->summed_as = group->gathered_as;
    return st ? st : get_type(at, "reduce_dtype", own, &group->summed_as, err);
}

static enum status read_reshard(const struct json_at *at, bool has_root, struct group *group, struct error *err) {
    struct json_at member;
    uint64_t ranks = 0;
    bool reshards = !has_root;
    enum status st = ST_OK;
    if (json_has(at, "reshard_after_forward", &member))
        st = cJSON_IsNumber(member.node) ? json_integer_at(&member, 1, UINT32_MAX, &ranks, err)
                                         : json_bool_at(&member, &reshards, err);
    group->keeps_gathered = ranks == 1 || (ranks == 0 && !reshards);
    group->reshard_ranks = ranks > 1 ? (uint32_t)ranks : 0;
    return st;
}

static enum status read_group(struct reading *r, const struct json_at *at, uint32_t g, struct error *err) {
    static const char *const known[] = {"variables", "reshard_after_forward", "param_dtype", "reduce_dtype", NULL};
    struct group *group = &r->strategy->groups[g];
    struct json_at list;
    size_t n;
    uint32_t v = 0;
    group->sharded = SHARDED_parameters;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_array(at, "variables", r->model->n_variables, &list, &n, err);
    if (!st && n == 0)
        return json_fail(&list, err, "a group needs a variable");
    bool has_root = !st && n == r->model->n_variables;
    for (struct json_at e = st ? (struct json_at){0} : json_first(&list); e.node && !st; e = json_next(&e)) {
        st = read_variable(r, &e, g, &v, err);
        has_root |= !st && !strchr(r->model->variables[v].name, '.');
    }
    if (!st)
        st = read_types(at, r->model->variables[v].dtype, group, err);
    return st ? st : read_reshard(at, has_root, group, err);
}

static enum status read_groups(struct reading *r, const struct json_at *list, struct error *err) {
    enum status st = ST_OK;
    uint32_t g = 0;
    for (struct json_at e = json_first(list); e.node && !st; e = json_next(&e), g++)
        st = read_group(r, &e, g, err);
    for (uint32_t v = 0; v < r->model->n_variables && !st; v++)
        if (!r->is_named[v])
            return json_fail(list, err, "no group has \"%.60s\", a variable of model \"%s\"",
                             r->model->variables[v].name, r->model->name);
    return st;
}

/* ---- the rest ---- */

static enum status read_accumulation(const struct json_at *root, struct strategy *s, struct error *err) {
    static const char *const known[] = {"micro_batches", "synchronize", NULL};
#define X(name) #name,
    static const char *const words[] = {SYNCHRONIZE_TABLE(X) NULL};
#undef X
    struct json_at at;
    uint64_t n = 1;
    size_t word = SYNCHRONIZE_last;
    if (!json_has(root, "accumulation", &at))
        return ST_OK;
    enum status st = json_expect_object(&at, known, err);
    if (!st)
        st = json_get_integer(&at, "micro_batches", JSON_OPTIONAL, 1, STRATEGY_MAX_MICRO_BATCHES, &n, err);
    if (!st)
        st = json_get_word(&at, "synchronize", JSON_OPTIONAL, words, &word, err);
    s->micro_batches = (uint32_t)n;
    s->synchronize = (enum synchronize)word;
    return st;
}

static enum status read_schedule(const struct json_at *root, struct strategy *s, struct error *err) {
    uint64_t forward = 1, backward = 1, ranks = 0;
    enum status st = json_get_integer(root, "forward_prefetch", JSON_OPTIONAL, 0, s->n_groups, &forward, err);
    if (!st)
        st = json_get_integer(root, "backward_prefetch", JSON_OPTIONAL, 0, s->n_groups, &backward, err);
    if (!st)
        st = json_get_integer(root, "shard_ranks", JSON_OPTIONAL, 1, UINT32_MAX, &ranks, err);
    s->credit_bytes = 0;
    s->forward_prefetch = (uint32_t)forward;
    s->backward_prefetch = (uint32_t)backward;
    s->shard_ranks = (uint32_t)ranks;
    return st ? st : read_accumulation(root, s, err);
}

/* Into a strategy that has been begun; sealed in the end. */
static enum status read_all(const struct json_at *root, const struct json_at *groups, const struct strategy_for *wanted,
                            struct notes *notes, struct strategy *s, struct error *err) {
    struct reading r = {wanted->model, s, arena_alloc(&s->arena, s->n_variables, sizeof(bool))};
    const char *id = NULL;
    enum status st = r.is_named ? read_groups(&r, groups, err) : error_no_memory(err);
    if (!st)
        st = read_schedule(root, s, err);
    if (!st)
        st = json_get_string(root, "strategy", JSON_OPTIONAL, &id, err);
    if (st)
        return st;
    st = strategy_seal(s, wanted->model, wanted->cluster, err);
    if (st == ST_INVALID)
        return error_prefix(err, st, "%s", root->key);
    if (!st && id && strcmp(id, s->id.hex) != 0 &&
        !notes_add(
            notes,
            "the file was made of strategy %.12s, and says %.12s: it could not say all, or was for another model or "
            "cluster",
            id, s->id.hex))
        st = error_no_memory(err);
    return st;
}

enum status fsdp2_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                       struct strategy *out, struct error *err) {
    static const char *const known[] = {
        "strategy", "forward_prefetch", "backward_prefetch", "shard_ranks", "accumulation", "groups", NULL};
    cJSON *json = NULL;
    struct strategy s = {0};
    struct json_at groups;
    size_t n;
    enum status st = json_parse(source->text, source->n, source->name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, source->name);
    st = json_expect_object(&root, known, err);
    if (!st)
        st = json_array(&root, "groups", wanted->model->n_variables, &groups, &n, err);
    if (!st)
        st = strategy_init(&s, wanted->name, wanted->model, (uint32_t)n, err);
    if (!st)
        st = read_all(&root, &groups, wanted, notes, &s, err);
    if (st)
        strategy_release(&s);
    else
        *out = s;
    cJSON_Delete(json);
    return st;
}
