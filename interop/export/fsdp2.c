/* PyTorch's fully_shard (FSDP2), for syncopate_torch.fsdp.apply (interop/pytorch/syncopate_torch/fsdp.py):
 *
 *   {"strategy": ID, "forward_prefetch": n, "backward_prefetch": n, "shard_ranks": n,
 *    "groups": [{"reshard_after_forward": true, "param_dtype": "bf16", "reduce_dtype": "f32",
 *                "variables": [NAME, ...]}]}
 *
 * "shard_ranks" is there where the parameters have replicas, and "reshard_after_forward" may be a number of devices.
 * "param_dtype" and "reduce_dtype" are there where the group is gathered or summed in another type than the model's:
 * both, since fully_shard sums in the first where only that is said. With several micro-batches there is
 * "accumulation": {"micro_batches": n, "synchronize": "last" or "each"}.
 *
 * Groups are in the order in which the forward pass first reads them, the variables of a group in the model's order.
 *
 * fully_shard takes modules, and with a module all variables of its own. The name of such a variable is the module's
 * name, a point and a last word. So where a strategy parts the variables of one module, they all go where the first of
 * them is, and the form notes the loss "groups".
 *
 * What a strategy does not shard is sharded all the same, and noted. Its parameters stay gathered from the forward to
 * the backward pass. Halves of an all-reduce (ZeRO-1 and 2) are then the same messages: a reduce-scatter after the
 * backward pass of a group, and an all-gather before its forward pass. */
#include "interop/export/fsdp2.h"

#include <stdlib.h>
#include <string.h>

#include "interop/export/export_internal.h"

/* A variable, and the module that it is of: the name up to the last point. */
struct place {
    const char *name;
    size_t module;     /* its length */
    uint32_t variable; /* in the model's order */
};

static int compare_modules(const struct place *a, const struct place *b) {
    const int order = memcmp(a->name, b->name, a->module < b->module ? a->module : b->module);
    return order ? order : (a->module > b->module) - (a->module < b->module);
}

static int by_module(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    const int order = compare_modules(x, y);
    return order ? order : (x->variable > y->variable) - (x->variable < y->variable);
}

/* The output projection of nn.MultiheadAttention is never called, so its variables count as the attention's own. */
size_t fsdp2_module_length(struct form *f, const char *name) {
    static const char projection[] = ".out_proj", *const beside[] = {".in_proj_weight", ".q_proj_weight"};
    const char *point = strrchr(name, '.');
    const size_t n = point ? (size_t)(point - name) : 0, tail = sizeof projection - 1;
    if (n <= tail || memcmp(point - tail, projection, tail) != 0)
        return n;
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        const char *other = arena_printf(f->arena, "%.*s%s", (int)(n - tail), name, beside[i]);
        f->no_memory |= !other;
        if (other && model_find_variable(f->model, other) >= 0)
            return n - tail;
    }
    return n;
}

/* The variables, those of a module one after another; NULL (remembered) when memory is out. */
static const struct place *sort_by_module(struct form *f) {
    const struct model *m = f->model;
    struct place *places = arena_alloc(f->arena, m->n_variables, sizeof *places);
    f->no_memory |= !places;
    for (uint32_t v = 0; v < m->n_variables && places; v++) {
        const char *name = m->variables[v].name;
        places[v] = (struct place){name, fsdp2_module_length(f, name), v};
    }
    if (places)
        qsort(places, m->n_variables, sizeof *places, by_module);
    return places;
}

/* The group of each variable, what is served in one behind the others; NULL (remembered) when memory is out. */
static const uint32_t *groups_of_whole_modules(struct form *f) {
    const struct strategy *s = f->strategy;
    const struct place *places = sort_by_module(f);
    uint32_t *group = arena_alloc(f->arena, s->n_variables, sizeof *group), parted = 0, last_parted = UINT32_MAX;
    f->no_memory |= !group;
    for (uint32_t v = 0; v < s->n_variables && group; v++)
        group[v] = s->variables[v].kind == SYNC_PARAMETER_SERVER ? s->n_groups : s->variables[v].group;
    for (uint32_t i = 1, first = 0; i < s->n_variables && group && places; i++) {
        if (compare_modules(&places[first], &places[i]))
            first = i;
        const uint32_t own = group[places[i].variable], common = group[places[first].variable];
        parted += own != common && last_parted != first;
        last_parted = own != common ? first : last_parted;
        group[places[i].variable] = common;
    }
    if (parted)
        form_note(f, EXPORT_LOSS_GROUPS,
                  "fully_shard takes a module's own variables together, and those of %u module%s are in several groups",
                  parted, parted == 1 ? "" : "s");
    return places ? group : NULL;
}

/* ---- the file ---- */

/* A group of the file. */
struct wrapped {
    uint32_t needed; /* the first forward operator that reads one of its variables */
    uint32_t group;
    cJSON *json;
};

static int by_need(const void *a, const void *b) {
    const struct wrapped *x = a, *y = b;
    return x->needed != y->needed ? (x->needed > y->needed) - (x->needed < y->needed)
                                  : (x->group > y->group) - (x->group < y->group);
}

static bool stays_gathered(const struct strategy *s, uint32_t g) {
    return g == s->n_groups || s->groups[g].sharded != SHARDED_parameters || s->groups[g].keeps_gathered;
}

static bool add_reshard(const struct strategy *s, uint32_t g, cJSON *json) {
    static const char name[] = "reshard_after_forward";
    const uint32_t ranks = stays_gathered(s, g) ? 0 : s->groups[g].reshard_ranks;
    return ranks ? cJSON_AddNumberToObject(json, name, ranks)
                 : cJSON_AddBoolToObject(json, name, !stays_gathered(s, g));
}

/* Its variables have the type of variable v. */
static bool add_types(const struct form *f, uint32_t g, uint32_t v, cJSON *json) {
    const struct group *group = g < f->strategy->n_groups ? &f->strategy->groups[g] : NULL;
    const enum dtype own = f->model->variables[v].dtype;
    if (!group || (!group->gathered_as && !group->summed_as))
        return true;
    return (!group->gathered_as ||
            cJSON_AddStringToObject(json, "param_dtype", dtype_name(carried_dtype(group->gathered_as, own)))) &&
           cJSON_AddStringToObject(json, "reduce_dtype", dtype_name(carried_dtype(group->summed_as, own)));
}

/* Add variable v; makes the group's JSON with the first one. */
static bool add_variable(const struct form *f, struct wrapped *to, uint32_t v) {
    cJSON *names = cJSON_GetObjectItem(to->json, "variables");
    if (!to->json) {
        to->json = cJSON_CreateObject();
        if (!add_reshard(f->strategy, to->group, to->json) || !add_types(f, to->group, v, to->json))
            return false;
        names = cJSON_AddArrayToObject(to->json, "variables");
    }
    cJSON *name = cJSON_CreateString(f->model->variables[v].name);
    if (names && name && cJSON_AddItemToArray(names, name))
        return true;
    cJSON_Delete(name);
    return false;
}

/* Fill `list` with the groups that have variables, and set *n. False when memory is out. */
static bool add_groups(struct form *f, cJSON *list, uint32_t *n) {
    const uint32_t room = f->strategy->n_groups + 1;
    const uint32_t *first = form_first_reads(f), *group = groups_of_whole_modules(f);
    struct wrapped *all = arena_alloc(f->arena, room, sizeof *all);
    bool whole = list && first && group && all;
    for (uint32_t g = 0; g < room && whole; g++)
        all[g] = (struct wrapped){.needed = UINT32_MAX, .group = g};
    for (uint32_t v = 0; v < f->model->n_variables && whole; v++) {
        struct wrapped *to = &all[group[v]];
        to->needed = first[v] < to->needed ? first[v] : to->needed;
        whole = add_variable(f, to, v);
    }
    if (all)
        qsort(all, room, sizeof *all, by_need);
    *n = 0;
    for (uint32_t g = 0; g < room && all; g++) {
        if (!all[g].json)
            continue;
        if (whole && cJSON_AddItemToArray(list, all[g].json))
            ++*n;
        else
            cJSON_Delete(all[g].json);
    }
    return whole;
}

uint32_t fsdp2_prefetch(uint32_t depth, uint32_t n) {
    return depth < n ? depth : n;
}

static bool add_accumulation(cJSON *json, const struct strategy *s) {
    if (s->micro_batches == 1)
        return true;
    cJSON *accumulation = cJSON_AddObjectToObject(json, "accumulation");
    return accumulation && cJSON_AddNumberToObject(accumulation, "micro_batches", s->micro_batches) &&
           cJSON_AddStringToObject(accumulation, "synchronize", synchronize_name(s->synchronize));
}

/* ---- what is sharded that was not ---- */

static void note_unsharded(struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t plain = 0, halves = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        const enum sharded sharded =
            sync->kind == SYNC_ALL_REDUCE ? s->groups[sync->group].sharded : SHARDED_parameters;
        plain += sharded == SHARDED_none;
        halves += sharded == SHARDED_optimizer || sharded == SHARDED_gradients;
    }
    if (plain)
        form_note(f, EXPORT_LOSS_ALL_REDUCE,
                  "%u of %u variables%s are all-reduced, and their parameters would be sharded", plain, s->n_variables,
                  form_which(f, 1u << SHARDED_none, plain));
    if (f->n_served)
        form_note(f, EXPORT_LOSS_PARAMETER_SERVER, "%u of %u variables are served and would be sharded", f->n_served,
                  s->n_variables);
    if (halves)
        form_note(f, EXPORT_LOSS_SHARDED, "the parameters of %u of %u variables%s are whole, and would be sharded",
                  halves, s->n_variables, form_which(f, 1u << SHARDED_optimizer | 1u << SHARDED_gradients, halves));
}

cJSON *fsdp2_groups(struct form *f, unsigned can, uint32_t *n) {
    cJSON *groups = cJSON_CreateArray();
    if (!add_groups(f, groups, n)) {
        f->no_memory = true;
        cJSON_Delete(groups);
        groups = NULL;
    }
    note_unsharded(f);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_KEEP_PARTS | CAN_REPLICATE | CAN_RESHARD | can);
    return groups;
}

enum status export_fsdp2(struct form *f, struct error *err) {
    (void)err;
    const struct strategy *s = f->strategy;
    uint32_t n = 0;
    cJSON *json = cJSON_CreateObject(), *groups = fsdp2_groups(f, CAN_ACCUMULATE | CAN_CARRY, &n);
    const bool whole = cJSON_AddStringToObject(json, "strategy", s->id.hex) &&
                       cJSON_AddNumberToObject(json, "forward_prefetch", fsdp2_prefetch(s->forward_prefetch, n)) &&
                       cJSON_AddNumberToObject(json, "backward_prefetch", fsdp2_prefetch(s->backward_prefetch, n)) &&
                       (!s->shard_ranks || cJSON_AddNumberToObject(json, "shard_ranks", s->shard_ranks)) &&
                       add_accumulation(json, s);
    const bool added = groups && cJSON_AddItemToObject(json, "groups", groups);
    if (!added)
        cJSON_Delete(groups);
    form_add_json(f, "fsdp2.json", json, whole && added);
    return ST_OK;
}
