/* PyTorch by our own communication hook (interop/pytorch/syncopate_torch/hook.py): everything that a strategy says but
 * the algorithms of all-reduces.
 *
 *   {"strategy": ID, "policy": "priority", "credit_bytes": n, "cross_iteration": true, "pulls": "priority",
 *    "node_ranks": [n, ...],
 *    "groups": [{"algorithm", "partition_bytes", "encoding", "needed": k, "sharded": "optimizer",
 *                "server": {"node", "rank": n, "local_reduction": true}, "variables": [...]}],
 *    "slices": [{"group", "bytes"}]}
 *
 * A group is what travels together: a merge group, the served variables of one push, or one served shard. Its
 * "variables" are in the order of readiness. Each is a name, or an object where only a part of the variable is meant,
 * or where touched rows alone travel:
 *   {"name", "axis": a, "from": n, "to": n, "rows": n}
 * "from" and "to" say which rows of the axis; "rows" says how many one iteration touches.
 *
 * The hook sends from rank to rank by gloo. So where devices are no CPUs, and the transport is not gloo, what the
 * strategy serves or gathers is all-reduced, each by itself, and dense.
 *
 * "server" is absent where a group is all-reduced. "rank" is the first of the node's ranks. It is absent where the node
 * has no devices, and so no rank. "node_ranks", which goes with servers, says how many ranks each node has, in the
 * order of the cluster.
 *
 * "sharded" is absent where all ranks update all of a group. The hook updates in parts, but keeps gradients and
 * parameters whole. Without a barrier it updates all groups in parts or none.
 *
 * "encoding", f16 or bf16, is absent where gradients travel in their own type. credit_bytes is absent where there is no
 * limit, pulls where they start at once, slices where the policy is not preemptive. A group's "needed" is the place,
 * among the forward operators, of the first one that reads one of its variables. Under priority the group with the
 * least "needed" goes first (strategy/plan.h). A variable that no operator reads is needed last. */
#include <string.h>

#include "interop/export/export_internal.h"
#include "strategy/plan.h"

/* What travels together, while its members are listed. */
struct bundle {
    enum algorithm algorithm;
    enum encoding encoding;
    bool in_parts; /* each rank updates a part */
    uint64_t partition_bytes;
    uint32_t needed;
    const struct variable_sync *served; /* NULL: all-reduced */
    uint32_t server;                    /* its node */
    cJSON *members;
};

/* Whether ranks can send to single other ones. */
static bool has_gloo(const struct cluster *c) {
    bool cpus = true;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        cpus &= !c->nodes[i].devices || !strcmp(c->nodes[i].device, "cpu");
    return cpus || c->transport == TRANSPORT_gloo;
}

static bool add_server(cJSON *group, const struct cluster *c, const struct bundle *b) {
    if (!b->served)
        return true;
    const struct node *node = &c->nodes[b->server];
    cJSON *server = cJSON_AddObjectToObject(group, "server");
    return cJSON_AddStringToObject(server, "node", node->name) &&
           (!node->devices || cJSON_AddNumberToObject(server, "rank", node->first_device)) &&
           cJSON_AddBoolToObject(server, "local_reduction", b->served->local_reduction);
}

/* Takes `members`. */
static bool add_group(cJSON *groups, const struct cluster *c, const struct bundle *b, cJSON *members) {
    cJSON *group = cJSON_CreateObject();
    bool whole =
        cJSON_AddStringToObject(group, "algorithm", algorithm_name(b->algorithm)) &&
        cJSON_AddNumberToObject(group, "partition_bytes", (double)b->partition_bytes) &&
        (b->encoding == ENCODING_none || cJSON_AddStringToObject(group, "encoding", encoding_name(b->encoding))) &&
        cJSON_AddNumberToObject(group, "needed", b->needed) &&
        (!b->in_parts || cJSON_AddStringToObject(group, "sharded", sharded_name(SHARDED_optimizer))) &&
        add_server(group, c, b);
    if (!cJSON_AddItemToObject(group, "variables", members)) {
        cJSON_Delete(members);
        whole = false;
    }
    if (cJSON_AddItemToArray(groups, group))
        return whole;
    cJSON_Delete(group);
    return false;
}

/* ---- members ---- */

static bool add_cut(cJSON *member, const struct variable *v, const struct variable_sync *sync, uint32_t k) {
    if (sync->shards == 1)
        return true;
    const uint64_t dim = v->shape[sync->axis];
    uint64_t from = 0;
    for (uint32_t i = 0; i < k; i++)
        from += plan_shard_rows(dim, sync->shards, i);
    return cJSON_AddNumberToObject(member, "axis", sync->axis) &&
           cJSON_AddNumberToObject(member, "from", (double)from) &&
           cJSON_AddNumberToObject(member, "to", (double)(from + plan_shard_rows(dim, sync->shards, k)));
}

/* Shard k of a variable; NULL when memory is out. */
static cJSON *new_member(const struct form *f, uint32_t variable, uint32_t k, bool gloo) {
    const struct variable *v = &f->model->variables[variable];
    const struct variable_sync *sync = sync_part(&f->strategy->variables[variable], k);
    const bool rows = gloo && strategy_moves_rows(f->strategy, v, sync);
    if (sync->shards == 1 && !rows)
        return cJSON_CreateString(v->name);
    cJSON *member = cJSON_CreateObject();
    const uint64_t touched = sync->axis == 0 ? plan_shard_rows(v->sparse_rows, sync->shards, k) : v->sparse_rows;
    if (cJSON_AddStringToObject(member, "name", v->name) && add_cut(member, v, sync, k) &&
        (!rows || cJSON_AddNumberToObject(member, "rows", (double)touched)))
        return member;
    cJSON_Delete(member);
    return NULL;
}

/* The groups of a form: merge groups, then pushes by their number, then what is served alone. */
struct bundles {
    struct bundle *all;
    uint32_t n;
    cJSON *lists; /* owns the members of all */
    bool gloo;    /* ranks can send to single other ones */
};

static uint32_t count_pushes(const struct strategy *s) {
    uint32_t most = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        most = s->variables[v].push > most ? s->variables[v].push : most;
    return most;
}

static uint64_t count_shards(const struct strategy *s) {
    uint64_t n = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        n += s->variables[v].shards;
    return n;
}

static bool updates_in_parts(const struct group *group) {
    return group->sharded == SHARDED_optimizer || group->sharded == SHARDED_gradients;
}

/* Whether the hook can: whole, dense variables, with a barrier or if all that is sent is updated so. */
static bool can_update_in_parts(const struct form *f) {
    const struct strategy *s = f->strategy;
    bool all = !f->n_served;
    for (uint32_t g = 0; g < s->n_groups; g++)
        all &= updates_in_parts(&s->groups[g]);
    bool can = all || !s->cross_iteration;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        for (uint32_t k = 0; k < sync_parts(sync); k++)
            if (sync_part(sync, k)->kind == SYNC_ALL_REDUCE && updates_in_parts(&s->groups[sync_part(sync, k)->group]))
                can &= sync->shards == 1 && !f->model->variables[v].sparse_rows;
    }
    return can;
}

static void note_sharded(struct form *f) {
    const struct strategy *s = f->strategy;
    const bool parts = can_update_in_parts(f);
    uint32_t whole = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        if (s->variables[v].kind == SYNC_ALL_REDUCE) {
            const enum sharded sharded = s->groups[s->variables[v].group].sharded;
            whole += sharded != SHARDED_none && !(parts && sharded == SHARDED_optimizer);
        }
    const unsigned lost = ~(1u << SHARDED_none | (parts ? 1u << SHARDED_optimizer : 0u));
    if (whole)
        form_note(f, EXPORT_LOSS_SHARDED,
                  parts
                      ? "the parameters or gradients of %u of %u variables%s are kept in parts, and would be whole"
                      : "the hook updates in parts dense variables that are whole, and without a barrier all or none: "
                        "%u of %u%s would be all-reduced",
                  whole, s->n_variables, form_which(f, lost, whole));
}

/* False when memory is out. */
static bool bundles_open(struct form *f, bool in_parts, struct bundles *out) {
    const struct strategy *s = f->strategy;
    const uint32_t together = s->n_groups + count_pushes(s);
    *out = (struct bundles){.all = arena_alloc(f->arena, together + count_shards(s), sizeof *out->all),
                            .n = together,
                            .lists = cJSON_CreateArray(),
                            .gloo = has_gloo(f->cluster)};
    for (uint32_t i = 0; i < together && out->all; i++)
        out->all[i] = (struct bundle){.needed = f->model->n_forward};
    for (uint32_t g = 0; g < s->n_groups && out->all; g++) {
        if (s->groups[g].algorithm != ALGORITHM_all_gather || out->gloo)
            out->all[g].algorithm = s->groups[g].algorithm;
        out->all[g].in_parts = in_parts && updates_in_parts(&s->groups[g]);
        out->all[g].partition_bytes = s->groups[g].partition_bytes;
    }
    return out->all && out->lists;
}

/* Where shard k, which is synchronized as `sync` says, belongs. */
static struct bundle *bundle_of(const struct form *f, struct bundles *in, const struct variable_sync *sync,
                                uint32_t k) {
    if (sync->kind == SYNC_ALL_REDUCE)
        return &in->all[sync->group];
    struct bundle *b = &in->all[sync->push ? f->strategy->n_groups + sync->push - 1 : in->n++];
    if (!sync->push)
        b->needed = f->model->n_forward;
    b->served = in->gloo ? sync : NULL;
    b->server = sync->servers[k % sync->n_servers];
    b->partition_bytes = sync->partition_bytes;
    return b;
}

/* False when memory is out. */
static bool append_member(struct bundles *in, struct bundle *b, cJSON *member) {
    if (!b->members) {
        b->members = cJSON_CreateArray();
        if (!cJSON_AddItemToArray(in->lists, b->members)) {
            cJSON_Delete(b->members);
            b->members = NULL;
        }
    }
    if (b->members && member && cJSON_AddItemToArray(b->members, member))
        return true;
    cJSON_Delete(member);
    return false;
}

/* False when memory is out. */
static bool list_members(struct form *f, struct bundles *in, const uint32_t *first) {
    const struct strategy *s = f->strategy;
    bool whole = true;
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const uint32_t v = f->ready[i];
        for (uint32_t k = 0; k < s->variables[v].shards && whole; k++) {
            const struct variable_sync *sync = sync_part(&s->variables[v], k);
            struct bundle *b = bundle_of(f, in, sync, k);
            b->needed = first[v] < b->needed ? first[v] : b->needed;
            if (sync->encoding != ENCODING_none && !encoding_is_encoder(sync->encoding))
                b->encoding = sync->encoding;
            whole = append_member(in, b, new_member(f, v, k, in->gloo));
        }
    }
    return whole;
}

bool form_add_exact_groups(struct form *f, cJSON *json, bool in_parts) {
    const uint32_t *first = form_first_reads(f);
    cJSON *groups = cJSON_AddArrayToObject(json, "groups");
    struct bundles in;
    bool whole =
        bundles_open(f, in_parts && can_update_in_parts(f), &in) && first && groups && list_members(f, &in, first);
    for (uint32_t i = 0; i < in.n && whole; i++)
        whole = add_group(groups, f->cluster, &in.all[i], cJSON_DetachItemViaPointer(in.lists, in.all[i].members));
    cJSON_Delete(in.lists);
    const struct cluster *c = f->cluster;
    const bool serves = f->n_served && in.gloo;
    cJSON *ranks = serves && whole ? cJSON_AddArrayToObject(json, "node_ranks") : NULL;
    for (uint32_t i = 0; i < c->n_nodes && ranks && whole; i++) {
        cJSON *n = cJSON_CreateNumber(c->nodes[i].devices);
        whole = cJSON_AddItemToArray(ranks, n);
        if (!whole)
            cJSON_Delete(n);
    }
    return whole && (ranks || !serves);
}

static bool add_schedule(cJSON *json, const struct strategy *s) {
    return cJSON_AddStringToObject(json, "strategy", s->id.hex) &&
           cJSON_AddStringToObject(json, "policy", policy_name(s->policy)) &&
           (s->credit_bytes == CREDIT_UNLIMITED ||
            cJSON_AddNumberToObject(json, "credit_bytes", (double)s->credit_bytes)) &&
           cJSON_AddBoolToObject(json, "cross_iteration", s->cross_iteration) &&
           (!strategy_orders_pulls(s) || cJSON_AddStringToObject(json, "pulls", "priority"));
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

/* Only ranks can serve, and a node without devices has none. */
static void note_nodes_without_ranks(struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        bool without = false;
        for (uint32_t k = 0; k < s->variables[v].shards; k++) {
            const struct variable_sync *sync = sync_part(&s->variables[v], k);
            without |=
                sync->kind == SYNC_PARAMETER_SERVER && !f->cluster->nodes[sync->servers[k % sync->n_servers]].devices;
        }
        n += without;
    }
    if (n)
        form_note(f, EXPORT_LOSS_PLACEMENT,
                  "%u of %u variables are served by nodes without devices, which have no rank", n, s->n_variables);
}

enum status export_pytorch_hook(struct form *f, struct error *err) {
    (void)err;
    cJSON *json = cJSON_CreateObject();
    const bool whole = json && add_schedule(json, f->strategy) && form_add_exact_groups(f, json, true) &&
                       add_slices(json, f->strategy);
    form_add_json(f, "pytorch-hook.json", json, whole);
    const bool gloo = has_gloo(f->cluster);
    if (gloo)
        note_nodes_without_ranks(f);
    note_sharded(f);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_KEEP_PARTS | CAN_SHARD | CAN_PARTITION | CAN_ORDER | CAN_CREDIT | CAN_CROSS |
                          CAN_CAST | CAN_PREEMPT | (gloo ? CAN_SERVE | CAN_SHARE | CAN_GATHER : 0));
    return ST_OK;
}
