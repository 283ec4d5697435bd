/* XLA, and so JAX: the flags with which its GPU compiler combines collectives (strategy/baselines/xla.h).
 *
 * Where nothing is sharded one threshold makes the groups of all-reduces. The program may still split them into
 * reduce-scatters and all-gathers, so those flags are given as well: the same for the gathered output, and divided by
 * the number of devices for the part that a reduce-scatter leaves.
 *
 * Where something is sharded each collective that the program then has gets the threshold that makes the groups from
 * its own sizes in its own order. XLA makes a group of the strategy only if it combines both the group's gathers and
 * its sums.
 * What is sharded, what is gathered twice and in which types are the program's to say, not the flags': noted.
 *
 * Source: openxla/xla, service/collective_combiner_utils.h (CombineInstructionsByKey) and debug_options_flags. Compiled
 * programs agree (tests/cli/xla.sh). */
#include "strategy/baselines/xla.h"

#include "interop/export/bucket_knob.h"
#include "strategy/space/ready_order.h"

struct threshold {
    struct bucket_knob knob;
    bool used; /* the program has such collectives */
    uint64_t bytes;
};

static void settle(struct form *f, struct threshold *t) {
    struct cap_range one = {1, UINT64_MAX};
    const bool fits = t->knob.fits && buckets_common(&t->knob.caps, &one);
    t->bytes = fits ? export_round(one.low, one.high, XLA_THRESHOLD_BYTES, 2) : t->knob.nearest;
    if (!fits)
        bucket_knob_note(f, &t->knob);
}

static enum status find_all_reduce(struct form *f, struct threshold out[XLA_COLLECTIVES], struct error *err) {
    struct threshold *t = &out[XLA_ALL_REDUCE];
    t->knob = (struct bucket_knob){.rule = BUCKET_COMBINED, .fits = true};
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, &t->knob, err) : ST_OK;
    if (st)
        return st;
    settle(f, t);
    out[XLA_ALL_GATHER].bytes = t->bytes;
    /* 1 is less than any gradient's part: nothing is combined, as at 0, which no reader takes. */
    const uint64_t part_bytes = t->bytes / f->cluster->n_devices;
    out[XLA_REDUCE_SCATTER].bytes = part_bytes > 0 ? part_bytes : 1;
    for (int c = 0; c < XLA_COLLECTIVES; c++)
        out[c].used = true;
    return ST_OK;
}

static enum status find_each(struct form *f, struct threshold out[XLA_COLLECTIVES], struct error *err) {
    const uint32_t n = f->model->n_variables;
    uint32_t *read = arena_alloc(f->arena, n, sizeof *read), *variables = arena_alloc(f->arena, n, sizeof *variables);
    struct bucket_item *items = arena_alloc(f->arena, n, sizeof *items);
    enum status st = read && variables && items ? read_order(f->model, read, err) : error_no_memory(err);
    for (int c = 0; c < XLA_COLLECTIVES && !st; c++) {
        struct threshold *t = &out[c];
        const uint32_t n_items =
            xla_items((enum xla_collective)c, f->strategy, f->model, f->cluster, f->ready, read, items, variables);
        t->knob = (struct bucket_knob){.rule = BUCKET_COMBINED};
        t->used = n_items > 0;
        if (t->used)
            st = bucket_knob_infer(f, &t->knob, n_items, items, err);
        if (t->used && !st)
            settle(f, t);
    }
    return st;
}

static void note_sharded(struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t sharded = 0, twice = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        const struct group *group = sync->kind == SYNC_ALL_REDUCE ? &s->groups[sync->group] : NULL;
        sharded += group && group->sharded;
        twice += group && group->sharded == SHARDED_parameters && !group->keeps_gathered;
    }
    form_note(f, EXPORT_LOSS_SHARDED,
              "%u of %u variables are sharded; the program says so by its shardings, no flag does", sharded,
              s->n_variables);
    if (twice)
        form_note(
            f, EXPORT_LOSS_RESHARD,
            "%u of %u variables are gathered again in the backward pass; the program says so by jax.checkpoint, no "
            "flag does",
            twice, s->n_variables);
    if (strategy_sharded_parameters(s) > 1)
        form_note(f, EXPORT_LOSS_PREFETCH, "how far ahead parameters are gathered is its scheduler's choice");
}

enum status export_xla(struct form *f, struct error *err) {
    struct threshold thresholds[XLA_COLLECTIVES] = {{.used = false}};
    const bool sharded = form_sharded(f) != SHARDED_none;
    enum status st = sharded ? find_each(f, thresholds, err) : find_all_reduce(f, thresholds, err);
    if (st)
        return st;
    FILE *file = form_open(f);
    if (file) {
        for (int c = 0; c < XLA_COLLECTIVES; c++)
            if (thresholds[c].used)
                fprintf(file, "--xla_gpu_%s_combine_threshold_bytes=%llu\n",
                        xla_collective_name((enum xla_collective)c), (unsigned long long)thresholds[c].bytes);
        form_close(f, "xla.flags", file);
    }
    if (sharded)
        note_sharded(f);
    form_note_rest(f, CAN_ALL_REDUCE);
    return ST_OK;
}
