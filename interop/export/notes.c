/* Notes about losses: one sentence each, for the properties that every exporter checks. */
#include <math.h>
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

/* Traits of variables, which some part of the variable has. */
enum trait {
    CUT,
    PARTED,
    CAST,
    CARRIED,
    ENCODED,
    EACH_DEVICE,
    SHARED,
    WITH_ALGORITHM,
    GATHERED,
    SHARDED,
    KEPT,
    TRAITS
};

static unsigned traits_of(const struct form *f, const uint64_t *group_bytes, uint32_t v, uint32_t k) {
    const struct variable_sync *sync = sync_part(&f->strategy->variables[v], k);
    const bool served = sync->kind == SYNC_PARAMETER_SERVER;
    const struct group *group = served ? NULL : &f->strategy->groups[sync->group];
    const uint64_t most = served ? sync->partition_bytes : group->partition_bytes;
    const uint64_t bytes =
        served ? plan_shard_bytes(f->strategy, &f->model->variables[v], sync, k) : group_bytes[sync->group];
    const bool gathered = group && group->algorithm == ALGORITHM_all_gather;
    return (unsigned)(sync->shards > 1) << CUT | (unsigned)(most && most < bytes) << PARTED |
           (unsigned)(sync->encoding != ENCODING_none && !encoding_is_encoder(sync->encoding)) << CAST |
           (unsigned)(group && (group->gathered_as || group->summed_as)) << CARRIED |
           (unsigned)encoding_is_encoder(sync->encoding) << ENCODED |
           (unsigned)(served && !sync->local_reduction) << EACH_DEVICE | (unsigned)(served && sync->push) << SHARED |
           (unsigned)(group && group->algorithm != ALGORITHM_auto && !gathered) << WITH_ALGORITHM |
           (unsigned)gathered << GATHERED | (unsigned)(group && group->sharded) << SHARDED |
           (unsigned)(group && group->sharded == SHARDED_parameters) << KEPT;
}

/* How many variables have each trait. */
static void count(struct form *f, uint32_t n[TRAITS]) {
    const uint64_t *bytes = form_group_bytes(f);
    for (uint32_t v = 0; v < f->strategy->n_variables && bytes; v++) {
        unsigned has = 0;
        for (uint32_t k = 0; k < sync_parts(&f->strategy->variables[v]); k++)
            has |= traits_of(f, bytes, v, k);
        for (int t = 0; t < TRAITS; t++)
            n[t] += has >> t & 1;
    }
}

void form_note_carried(struct form *f) {
    uint32_t n[TRAITS] = {0};
    count(f, n);
    form_note(f, EXPORT_LOSS_ENCODING,
              "%u of %u variables are gathered, or their gradients summed, in types that it would not use", n[CARRIED],
              f->strategy->n_variables);
}

/* `theirs`: how the form synchronizes what it cannot shard. */
static void note_sharded(struct form *f, uint32_t sharded, uint32_t kept, const char *theirs) {
    const uint32_t all = f->strategy->n_variables;
    const char *which = form_which(f, ~(1u << SHARDED_none), sharded);
    if (!kept)
        form_note(f, EXPORT_LOSS_SHARDED, "%u of %u variables%s are updated in parts and gathered, and would be %s",
                  sharded, all, which, theirs);
    else if (kept == sharded)
        form_note(f, EXPORT_LOSS_SHARDED,
                  "%u of %u variables%s are kept in parts and gathered before use, and would be whole and %s", kept,
                  all, which, theirs);
    else
        form_note(f, EXPORT_LOSS_SHARDED,
                  "%u of %u variables%s are updated in parts, and %u of these are kept in parts; all would be whole "
                  "and %s",
                  sharded, all, which, kept, theirs);
}

static void note_variables(struct form *f, unsigned can) {
    const uint32_t all = f->strategy->n_variables, reduced = all - f->n_served;
    uint32_t n[TRAITS] = {0};
    count(f, n);
    if (!(can & CAN_ALL_REDUCE) && reduced)
        form_note(f, EXPORT_LOSS_ALL_REDUCE, "%u of %u variables are all-reduced and would be served", reduced, all);
    if (!(can & CAN_SERVE) && f->n_served)
        form_note(f, EXPORT_LOSS_PARAMETER_SERVER, "%u of %u variables are served and would be all-reduced",
                  f->n_served, all);
    if (!(can & CAN_SHARD) && n[CUT])
        form_note(f, EXPORT_LOSS_SHARDS, "%u of %u variables are cut into shards and would go whole", n[CUT], all);
    if (!(can & CAN_PARTITION) && n[PARTED])
        form_note(f, EXPORT_LOSS_PARTITION, "messages of %u of %u variables are cut at a largest size", n[PARTED], all);
    if (!(can & CAN_CARRY) && n[CARRIED])
        form_note_carried(f);
    if (n[ENCODED])
        form_note(f, EXPORT_LOSS_ENCODING, "%u of %u gradients are encoded in a way that no all-reduce adds",
                  n[ENCODED], all);
    if (!(can & CAN_CAST) && n[CAST])
        form_note(f, EXPORT_LOSS_ENCODING, "%u of %u gradients travel in another element type", n[CAST], all);
    if (!(can & CAN_ALGORITHM) && n[WITH_ALGORITHM])
        form_note(f, EXPORT_LOSS_ALGORITHM, "%u of %u variables name an all-reduce algorithm; see the nccl form",
                  n[WITH_ALGORITHM], all);
    if (!(can & CAN_GATHER) && n[GATHERED])
        form_note(f, EXPORT_LOSS_ALGORITHM, "the touched rows of %u of %u variables are gathered by all", n[GATHERED],
                  all);
    if (!(can & CAN_KEEP_PARTS) && n[SHARDED])
        note_sharded(f, n[SHARDED], n[KEPT], can & CAN_ALL_REDUCE ? "all-reduced" : "served");
    if ((can & CAN_SERVE) && !(can & CAN_SHARE) && n[SHARED])
        form_note(f, EXPORT_LOSS_GROUPS, "%u of %u variables share a push with others and would go alone", n[SHARED],
                  all);
    if ((can & CAN_REDUCE_LOCALLY) && n[EACH_DEVICE])
        form_note(f, EXPORT_LOSS_LOCAL_REDUCTION, "%u of %u variables are sent by each device, not once a node",
                  n[EACH_DEVICE], all);
}

void form_note_synchronize(struct form *f, enum synchronize theirs) {
    const struct strategy *s = f->strategy;
    if (s->micro_batches > 1 && s->synchronize == SYNCHRONIZE_each_all_reduce_last && theirs == SYNCHRONIZE_each)
        form_note(f, EXPORT_LOSS_ACCUMULATION, "replicas would add their sums up in each of %u micro-batches, not once",
                  s->micro_batches);
    else if (s->micro_batches > 1 && s->synchronize != theirs)
        form_note(f, EXPORT_LOSS_ACCUMULATION, "gradients would be summed %s of %u micro-batches, not %s",
                  theirs == SYNCHRONIZE_each ? "in each" : "in the last", s->micro_batches,
                  theirs == SYNCHRONIZE_each ? "in the last alone" : "in each");
}

bool form_batches(struct form *f, enum synchronize theirs, uint64_t *micro_batch, uint64_t *global_batch) {
    const double samples = f->model->batch_per_device;
    if (f->strategy->micro_batches == 1)
        return false;
    if (samples < 1 || samples != floor(samples)) {
        form_note(f, EXPORT_LOSS_ACCUMULATION, "%u micro-batches of %g samples: whole samples are counted there",
                  f->strategy->micro_batches, samples);
        return false;
    }
    form_note_synchronize(f, theirs);
    *micro_batch = (uint64_t)samples;
    *global_batch = (uint64_t)samples * f->strategy->micro_batches * f->cluster->n_devices;
    return true;
}

void form_note_rest(struct form *f, unsigned can) {
    const struct strategy *s = f->strategy;
    note_variables(f, can);
    if (s->micro_batches > 1 && !(can & CAN_ACCUMULATE))
        form_note(f, EXPORT_LOSS_ACCUMULATION,
                  "%u micro-batches an iteration, with sums in %s, are the training loop's to make", s->micro_batches,
                  s->synchronize == SYNCHRONIZE_last ? "the last" : "each");
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
    if (s->shard_ranks && !(can & CAN_REPLICATE))
        form_note(f, EXPORT_LOSS_REPLICAS, "%u devices share the parameters, which have %u replicas", s->shard_ranks,
                  f->cluster->n_devices / s->shard_ranks);
    if (form_reshard_ranks(f) && !(can & CAN_RESHARD))
        form_note(f, EXPORT_LOSS_RESHARD,
                  "between the passes fewer devices keep the parts of some groups, and gather them again");
    if (s->cross_iteration && !(can & CAN_CROSS))
        form_note(f, EXPORT_LOSS_CROSS_ITERATION,
                  "messages run on into the next forward pass, where this framework waits for all");
}
