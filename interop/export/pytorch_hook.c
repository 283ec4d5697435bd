/* PyTorch by our own communication hook (interop/pytorch/syncopate_torch/hook.py): everything that a strategy says of
 * all-reduces but their algorithm.
 *
 *   {"strategy": ID, "policy": "priority", "credit_bytes": n, "cross_iteration": true,
 *    "groups": [{"algorithm", "partition_bytes", "encoding", "needed": k,
 *                "variables": [names in the order of readiness]}],
 *    "slices": [{"group", "bytes"}]}
 *
 * A group's "encoding", f16 or bf16, is absent where all of its gradients travel in their own type. credit_bytes is
 * absent where there is no limit, slices where the policy is not preemptive. A group's "needed" is the
 * place, among the forward operators, of the first one that reads one of its variables. Under priority the group with
 * the least "needed" goes first (strategy/plan.h). A variable that no operator reads is needed last. */
#include "interop/export/export_internal.h"

/* Takes `names`. */
static bool add_group(cJSON *groups, const struct group *like, enum encoding encoding, uint32_t needed, cJSON *names) {
    cJSON *group = cJSON_CreateObject();
    bool whole = cJSON_AddStringToObject(group, "algorithm", algorithm_name(like->algorithm)) &&
                 cJSON_AddNumberToObject(group, "partition_bytes", (double)like->partition_bytes) &&
                 (encoding == ENCODING_none || cJSON_AddStringToObject(group, "encoding", encoding_name(encoding))) &&
                 cJSON_AddNumberToObject(group, "needed", needed);
    if (!cJSON_AddItemToObject(group, "variables", names)) {
        cJSON_Delete(names);
        whole = false;
    }
    if (cJSON_AddItemToArray(groups, group))
        return whole;
    cJSON_Delete(group);
    return false;
}

/* The place of the first forward operator that reads it, by variable; NULL (remembered) when memory is out. */
static const uint32_t *first_reads(struct form *f) {
    const struct model *m = f->model;
    uint32_t *first = arena_alloc(f->arena, m->n_variables, sizeof *first);
    f->no_memory |= !first;
    for (uint32_t v = 0; v < m->n_variables && first; v++)
        first[v] = m->n_forward;
    for (uint32_t i = m->n_forward; i-- > 0 && first;) {
        const struct operator* op = & m->operators[m->order[i]];
        for (uint32_t r = 0; r < op->n_reads; r++)
            first[op->reads[r]] = i;
    }
    return first;
}

/* For each group the least value of `first` among its variables. NULL (remembered) when memory is out. */
static const uint32_t *groups_needed(struct form *f, const uint32_t *first) {
    const struct strategy *s = f->strategy;
    uint32_t *needed = arena_alloc(f->arena, s->n_groups, sizeof *needed);
    f->no_memory |= !needed;
    for (uint32_t g = 0; g < s->n_groups && needed; g++)
        needed[g] = f->model->n_forward;
    for (uint32_t v = 0; v < s->n_variables && needed; v++) {
        const uint32_t g = s->variables[v].group;
        if (s->variables[v].kind == SYNC_ALL_REDUCE && first[v] < needed[g])
            needed[g] = first[v];
    }
    return needed;
}

/* Members of a group travel alike, so that of any member that has one. */
static enum encoding group_encoding(const struct strategy *s, uint32_t g) {
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        if (sync->kind == SYNC_ALL_REDUCE && sync->group == g && sync->encoding != ENCODING_none)
            return sync->encoding;
    }
    return ENCODING_none;
}

bool form_add_exact_groups(struct form *f, cJSON *json) {
    const struct strategy *s = f->strategy;
    const uint32_t *first = first_reads(f), *needed = first ? groups_needed(f, first) : NULL;
    cJSON *lists = form_groups(f), *groups = cJSON_AddArrayToObject(json, "groups");
    bool whole = needed && lists && groups;
    for (uint32_t g = 0; g < s->n_groups && whole; g++)
        whole = add_group(groups, &s->groups[g], group_encoding(s, g), needed[g], cJSON_DetachItemFromArray(lists, 0));
    for (uint32_t v = 0; v < s->n_variables && whole; v++)
        if (s->variables[v].kind == SYNC_PARAMETER_SERVER)
            whole =
                add_group(groups, &(struct group){.partition_bytes = s->variables[v].partition_bytes},
                          s->variables[v].encoding, first[v], cJSON_CreateStringArray(&f->model->variables[v].name, 1));
    cJSON_Delete(lists);
    return whole;
}

static bool add_schedule(cJSON *json, const struct strategy *s) {
    return cJSON_AddStringToObject(json, "strategy", s->id.hex) &&
           cJSON_AddStringToObject(json, "policy", policy_name(s->policy)) &&
           (s->credit_bytes == CREDIT_UNLIMITED ||
            cJSON_AddNumberToObject(json, "credit_bytes", (double)s->credit_bytes)) &&
           cJSON_AddBoolToObject(json, "cross_iteration", s->cross_iteration);
}

static bool add_slices(cJSON *json, const struct strategy *s) {
    cJSON *slices = s->n_slices ? cJSON_AddArrayToObject(json, "slices") : NULL;
    bool whole = slices || !s->n_slices;
    for (uint32_t i = 0; i < s->n_slices && whole; i++) {
        cJSON *slice = cJSON_CreateObject();
        whole = cJSON_AddNumberToObject(slice, "group", s->slices[i].group) &&
                cJSON_AddNumberToObject(slice, "bytes", (double)s->slices[i].bytes);
        if (!cJSON_AddItemToArray(slices, slice)) {
            cJSON_Delete(slice);
            whole = false;
        }
    }
    return whole;
}

enum status export_pytorch_hook(struct form *f, struct error *err) {
    (void)err;
    cJSON *json = cJSON_CreateObject();
    const bool whole =
        json && add_schedule(json, f->strategy) && form_add_exact_groups(f, json) && add_slices(json, f->strategy);
    form_add_json(f, "pytorch-hook.json", json, whole);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_PARTITION | CAN_ORDER | CAN_CREDIT | CAN_CROSS | CAN_ENCODE | CAN_PREEMPT);
    return ST_OK;
}
