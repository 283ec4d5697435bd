/* A strategy beside the one that a form's settings make: what differs is what the form cannot say. Whoever works the
 * settings out need not be right, since what they make is built by the baseline's own code. */
#include <string.h>

#include "base/units.h"
#include "interop/export/export.h"
#include "interop/export/export_internal.h"
#include "strategy/memory.h"
#include "strategy/plan.h"

static const struct group *group_of(const struct strategy *s, uint32_t v) {
    return &s->groups[s->variables[v].group];
}

static bool is_reduced(const struct form *f, uint32_t v) {
    return f->strategy->variables[v].kind == SYNC_ALL_REDUCE;
}

bool form_same_groups(struct form *f, const struct strategy *made) {
    const struct strategy *s = f->strategy;
    uint32_t *theirs = arena_alloc(f->arena, s->n_groups, sizeof *theirs),
             *ours = arena_alloc(f->arena, made->n_groups, sizeof *ours);
    f->no_memory |= !theirs || !ours;
    if (!theirs || !ours)
        return false;
    memset(theirs, 0xff, s->n_groups * sizeof *theirs);
    memset(ours, 0xff, made->n_groups * sizeof *ours);
    for (uint32_t v = 0; v < s->n_variables; v++) {
        if (!is_reduced(f, v))
            continue;
        const uint32_t a = s->variables[v].group, b = made->variables[v].group;
        theirs[a] = theirs[a] == UINT32_MAX ? b : theirs[a];
        ours[b] = ours[b] == UINT32_MAX ? a : ours[b];
        if (theirs[a] != b || ours[b] != a)
            return false;
    }
    return true;
}

enum sharded form_sharded(const struct form *f) {
    enum sharded most = SHARDED_none;
    for (uint32_t g = 0; g < f->strategy->n_groups; g++)
        most = f->strategy->groups[g].sharded > most ? f->strategy->groups[g].sharded : most;
    return most;
}

bool form_carried(const struct form *f, enum carried *gathered, enum carried *summed) {
    const struct group *first = NULL;
    *gathered = *summed = CARRIED_own;
    for (uint32_t g = 0; g < f->strategy->n_groups; g++) {
        const struct group *group = &f->strategy->groups[g];
        if (group->sharded != SHARDED_parameters)
            continue;
        first = first ? first : group;
        if (group->gathered_as != first->gathered_as || group->summed_as != first->summed_as)
            return false;
    }
    *gathered = first ? first->gathered_as : CARRIED_own;
    *summed = first ? first->summed_as : CARRIED_own;
    return true;
}

enum dtype form_sharded_dtype(const struct form *f) {
    enum dtype common = DTYPE_COUNT;
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        const enum dtype own = f->model->variables[v].dtype;
        if (!is_reduced(f, v) || group_of(f->strategy, v)->sharded != SHARDED_parameters)
            continue;
        if (common != DTYPE_COUNT && own != common)
            return DTYPE_COUNT;
        common = own;
    }
    return common;
}

uint32_t form_reshard_ranks(const struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t ranks = 0, n = 0;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        if (s->groups[g].sharded != SHARDED_parameters || s->groups[g].keeps_gathered)
            continue;
        if (n++ > 0 && s->groups[g].reshard_ranks != ranks)
            return UINT32_MAX;
        ranks = s->groups[g].reshard_ranks;
    }
    return ranks;
}

/* A largest message that cuts a group of so many bytes; else 0. */
static uint64_t cut_of(const struct group *group, uint64_t bytes) {
    return group->partition_bytes < bytes ? group->partition_bytes : 0;
}

static void note_parts(struct form *f, const struct strategy *made) {
    const struct strategy *s = f->strategy;
    uint32_t n = 0, kept = 0, last = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        if (!is_reduced(f, v))
            continue;
        const struct group *ours = group_of(s, v), *theirs = group_of(made, v);
        n += ours->sharded != theirs->sharded;
        last = ours->sharded != theirs->sharded ? v : last;
        kept += ours->sharded == theirs->sharded && ours->keeps_gathered != theirs->keeps_gathered;
    }
    if (n)
        form_note(f, EXPORT_LOSS_SHARDED, "of %u of %u variables it would shard something else: of \"%s\" %s, not %s",
                  n, s->n_variables, f->model->variables[last].name, sharded_name(group_of(made, last)->sharded),
                  sharded_name(group_of(s, last)->sharded));
    if (kept)
        form_note(f, EXPORT_LOSS_RESHARD,
                  "%u of %u variables would stay gathered where they are freed after the forward pass, or be freed",
                  kept, s->n_variables);
}

static void note_settings(struct form *f, const struct strategy *made) {
    const struct strategy *s = f->strategy;
    const uint64_t *bytes = form_group_bytes(f);
    uint32_t cut = 0;
    for (uint32_t v = 0; v < s->n_variables && bytes; v++)
        if (is_reduced(f, v))
            cut += cut_of(group_of(s, v), bytes[s->variables[v].group]) !=
                   cut_of(group_of(made, v), bytes[s->variables[v].group]);
    if (!form_same_groups(f, made))
        form_note(f, EXPORT_LOSS_GROUPS, "it makes %u groups, with other members than these %u", made->n_groups,
                  s->n_groups);
    else if (cut)
        form_note(f, EXPORT_LOSS_PARTITION, "messages of %u of %u variables are cut at another size", cut,
                  s->n_variables);
    note_parts(f, made);
    if (strategy_sharded_parameters(s) && strategy_sharded_parameters(made) &&
        (s->forward_prefetch != made->forward_prefetch || s->backward_prefetch != made->backward_prefetch))
        form_note(f, EXPORT_LOSS_PREFETCH,
                  "it gathers %u groups ahead in the forward pass and %u in the backward pass, not %u and %u",
                  made->forward_prefetch, made->backward_prefetch, s->forward_prefetch, s->backward_prefetch);
}

/* ---- memory ---- */

static enum status peak_of(const struct form *f, const struct strategy *s, uint64_t *out, struct error *err) {
    struct plan plan;
    struct memory memory;
    enum status st = plan_lower(f->model, f->cluster, s, &plan, err);
    if (st)
        return st;
    st = memory_of_plan(&plan, &memory, err);
    plan_release(&plan);
    *out = st ? 0 : memory.peak_bytes;
    return st;
}

/* Give what the settings make the rest that the form says: micro-batches, replicas, types. */
static enum status complete(const struct form *f, struct strategy *made, unsigned can, enum synchronize theirs,
                            struct error *err) {
    enum carried gathered, summed;
    const bool carries = form_carried(f, &gathered, &summed) && can & CAN_CARRY && !f->notes[EXPORT_LOSS_ENCODING];
    made->micro_batches = f->strategy->micro_batches;
    made->shard_ranks = can & CAN_REPLICATE ? f->strategy->shard_ranks : 0;
    made->synchronize = theirs == SYNCHRONIZE_last ? SYNCHRONIZE_last
                        : made->shard_ranks        ? SYNCHRONIZE_each_all_reduce_last /* takes the same memory */
                                                   : SYNCHRONIZE_each;
    for (uint32_t v = 0; v < made->n_variables && carries; v++) {
        struct group *group = &made->groups[made->variables[v].group];
        if (group->sharded == SHARDED_parameters && dtype_is_float(f->model->variables[v].dtype)) {
            group->gathered_as = gathered;
            group->summed_as = summed;
        }
    }
    return strategy_seal(made, f->model, f->cluster, err);
}

static enum status find_peaks(const struct form *f, struct strategy *made, unsigned can, enum synchronize theirs,
                              uint64_t *made_bytes, uint64_t *bytes, struct error *err) {
    enum status st = complete(f, made, can, theirs, err);
    *made_bytes = *bytes = 0;
    if (st || !strcmp(made->id.hex, f->strategy->id.hex))
        return st;
    st = peak_of(f, made, made_bytes, err);
    return st ? st : peak_of(f, f->strategy, bytes, err);
}

/* Differences up to 1% are left out: predictions of memory are not that exact. What has no plan (too many messages) is
 * not compared. */
static void note_memory(struct form *f, struct strategy *made, unsigned can, enum synchronize theirs) {
    char text[32], ours[32], most[80] = "";
    uint64_t made_bytes, bytes;
    struct error unused;
    const uint64_t room = memory_of_devices(f->cluster);
    const enum status st = find_peaks(f, made, can, theirs, &made_bytes, &bytes, &unused);
    f->no_memory |= st == ST_NO_MEMORY;
    if (st || made_bytes <= bytes + bytes / 100)
        return;
    f->out->over_memory = room && bytes <= room && made_bytes > room;
    if (f->out->over_memory)
        snprintf(most, sizeof most, ", and has %s", units_format_budget(room, text, sizeof text));
    form_note(f, EXPORT_LOSS_MEMORY, "a device would need %s, not %s%s",
              units_format_bytes_finely(made_bytes, text, sizeof text),
              units_format_bytes_finely(bytes, ours, sizeof ours), most);
}

void form_note_made(struct form *f, struct strategy *made, unsigned can, enum synchronize theirs) {
    note_settings(f, made);
    note_memory(f, made, can, theirs);
    strategy_release(made);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_BE_COMPARED | can);
}
