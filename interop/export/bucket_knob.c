/* See interop/export/bucket_knob.h. */
#include "interop/export/bucket_knob.h"

#include <string.h>

static struct bucket_item item_of(const struct form *f, const struct bucket_knob *knob, uint32_t i) {
    const uint32_t n = f->model->n_variables, v = knob->reverse ? n - 1 - i : f->ready[i];
    const struct variable *variable = &f->model->variables[v];
    const struct variable_sync *sync = &f->strategy->variables[v];
    return (struct bucket_item){.kind = knob->one_kind ? 0 : variable->dtype,
                                .label = sync->kind == SYNC_ALL_REDUCE ? sync->group : BUCKET_ANY,
                                .size = knob->elements ? variable->elements : variable->bytes};
}

static uint32_t count_labels(uint32_t n, const struct bucket_item *items, uint32_t n_labels, bool *seen) {
    uint32_t count = 0;
    memset(seen, 0, n_labels * sizeof *seen);
    for (uint32_t i = 0; i < n; i++) {
        count += !seen[items[i].label];
        seen[items[i].label] = true;
    }
    return count;
}

enum status bucket_knob_infer(struct form *f, struct bucket_knob *knob, uint32_t n, struct bucket_item *items,
                              struct error *err) {
    const uint32_t n_labels = buckets_place(n, items, f->strategy->n_groups);
    bool *seen = arena_alloc(f->arena, (size_t)n_labels + 1, sizeof *seen);
    if (!seen)
        return error_no_memory(err);
    knob->n_groups = count_labels(n, items, n_labels, seen);
    enum status st = buckets_infer(knob->rule, n, items, n_labels, f->arena, &knob->caps, &knob->fits, err);
    if (st)
        return st;
    knob->nearest = buckets_nearest(knob->rule, n, items, knob->n_groups);
    knob->n_made = buckets_fill(knob->rule, n, items, 1, &knob->nearest);
    return ST_OK;
}

enum status bucket_knob_find(struct form *f, struct bucket_knob *knob, struct error *err) {
    const uint32_t n = f->model->n_variables;
    struct bucket_item *items = arena_alloc(f->arena, n, sizeof *items);
    if (!items)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        items[i] = item_of(f, knob, i);
    return bucket_knob_infer(f, knob, n, items, err);
}

void bucket_knob_note(struct form *f, const struct bucket_knob *knob) {
    form_note(f, EXPORT_LOSS_GROUPS,
              "no bucket size makes these %u groups; the one given makes %u messages of other members", knob->n_groups,
              knob->n_made);
}
