/* Notes about losses: one sentence each, for the properties that every exporter checks. */
#include <stdarg.h>

#include "interop/export/export_internal.h"
#include "strategy/plan.h"

void form_note(struct form *f, enum export_loss loss, const char *format, ...) {
    char text[512];
    if (f->notes[loss])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->notes[loss] = arena_strdup(f->arena, text);
    f->no_memory |= !f->notes[loss];
}

/* How many variables of a kind have a property. */
struct counts {
    uint32_t reduced_cut, served_cut, parted, encoded, each_device, shared, with_algorithm, gathered;
};

static struct counts count(struct form *f) {
    struct counts n = {0};
    const uint64_t *bytes = form_group_bytes(f);
    for (uint32_t v = 0; v < f->strategy->n_variables && bytes; v++) {
        const struct variable_sync *sync = &f->strategy->variables[v];
        const bool served = sync->kind == SYNC_PARAMETER_SERVER;
        const struct group *group = served ? NULL : &f->strategy->groups[sync->group];
        n.reduced_cut += !served && sync->shards > 1;
        n.served_cut += served && sync->shards > 1;
        const uint64_t most = served ? sync->partition_bytes : group->partition_bytes;
        n.parted += most && most < (served ? plan_shard_bytes(f->strategy, &f->model->variables[v], sync, 0)
                                           : bytes[sync->group]);
        n.encoded += sync->encoding != ENCODING_none;
        n.shared += served && sync->push;
        n.each_device += served && !sync->local_reduction;
        n.gathered += group && group->algorithm == ALGORITHM_all_gather;
        n.with_algorithm += group && group->algorithm != ALGORITHM_auto && group->algorithm != ALGORITHM_all_gather;
    }
    return n;
}

static void note_variables(struct form *f, unsigned can) {
    const uint32_t all = f->strategy->n_variables, reduced = all - f->n_served;
    const struct counts n = count(f);
    const uint32_t cut = n.served_cut + n.reduced_cut;
    if (!(can & CAN_ALL_REDUCE) && reduced)
        form_note(f, EXPORT_LOSS_ALL_REDUCE, "%u of %u variables are all-reduced and would be served", reduced, all);
    if (!(can & CAN_SERVE) && f->n_served)
        form_note(f, EXPORT_LOSS_PARAMETER_SERVER, "%u of %u variables are served and would be all-reduced",
                  f->n_served, all);
    if (!(can & CAN_SHARD) && cut)
        form_note(f, EXPORT_LOSS_SHARDS, "%u of %u variables are cut into shards and would go whole", cut, all);
    if (!(can & CAN_PARTITION) && n.parted)
        form_note(f, EXPORT_LOSS_PARTITION, "messages of %u of %u variables are cut at a largest size", n.parted, all);
    if (!(can & CAN_ENCODE) && n.encoded)
        form_note(f, EXPORT_LOSS_ENCODING, "%u of %u gradients travel in another element type", n.encoded, all);
    if (!(can & CAN_ALGORITHM) && n.with_algorithm)
        form_note(f, EXPORT_LOSS_ALGORITHM, "%u of %u variables name an all-reduce algorithm; see the nccl form",
                  n.with_algorithm, all);
    if (!(can & CAN_GATHER) && n.gathered)
        form_note(f, EXPORT_LOSS_ALGORITHM, "the touched rows of %u of %u variables are gathered by all", n.gathered,
                  all);
    if ((can & CAN_SERVE) && n.shared)
        form_note(f, EXPORT_LOSS_GROUPS, "%u of %u variables share a push with others and would go alone", n.shared,
                  all);
    if ((can & CAN_REDUCE_LOCALLY) && n.each_device)
        form_note(f, EXPORT_LOSS_LOCAL_REDUCTION, "%u of %u variables are sent by each device, not once a node",
                  n.each_device, all);
}

void form_note_rest(struct form *f, unsigned can) {
    const struct strategy *s = f->strategy;
    note_variables(f, can);
    if (s->policy == POLICY_preemptive && !(can & CAN_PREEMPT))
        form_note(f, EXPORT_LOSS_PREEMPTION, "%u slices of groups go in an order of their own", s->n_slices);
    if (s->policy == POLICY_priority && !(can & CAN_ORDER))
        form_note(f, EXPORT_LOSS_ORDER, "what the next forward pass needs first does not go first");
    const uint64_t usual = f->n_served == s->n_variables ? CREDIT_UNLIMITED : 0;
    if (s->credit_bytes != usual && !(can & CAN_CREDIT)) {
        if (s->credit_bytes == CREDIT_UNLIMITED)
            form_note(f, EXPORT_LOSS_CREDIT, "several messages may be in flight, without limit");
        else if (s->credit_bytes)
            form_note(f, EXPORT_LOSS_CREDIT, "up to %llu bytes may be in flight", (unsigned long long)s->credit_bytes);
        else
            form_note(f, EXPORT_LOSS_CREDIT, "one message may be in flight");
    }
    if (s->cross_iteration && !(can & CAN_CROSS))
        form_note(f, EXPORT_LOSS_CROSS_ITERATION,
                  "messages run on into the next forward pass, where this framework waits for all");
}
