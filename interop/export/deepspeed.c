/* DeepSpeed: the zero_optimization part of its configuration.
 *
 * Where nothing is sharded, its buckets for stage 1 or 2, and the stage is left to the user. Gradients enter a bucket
 * in the order of readiness. The bucket is reduced when the next gradient would take it past reduce_bucket_size, which
 * counts elements. overlap_comm lets the reduction run beside the backward pass, as every strategy here supposes; only
 * stage 3 has it on by default. allgather_bucket_size, for the parameters after the step, is given the same number. One
 * bucket at a time; the optimizer waits for all.
 *
 * With several micro-batches there is also gradient_accumulation_steps. Stages 0 and 1 sum in the last micro-batch,
 * stages 2 and 3 in each (reduce_ready_partitions_and_remove_grads; stage3.py).
 *
 * Where something is sharded, the stage is what is, and the settings are those that make the strategy by the rules of
 * strategy/baselines/zero.h. Each setting has an interval: DeepSpeed's default is taken if it lies there, else the
 * roundest number. Parts that fewer devices keep between the passes are the secondary partition of ZeRO++,
 * zero_hpz_partition_size. What the settings make is built, and what is different is noted. Replicas are always a loss:
 * DeepSpeed 0.19.8 refuses MiCS and its mics_shard_size.
 * Source: DeepSpeed documentation, "ZeRO Optimizations for FP16 Training"; Rajbhandari et al., SC 2020. */
#include "interop/export/bucket_knob.h"
#include "strategy/baselines/zero.h"
#include "strategy/space/ready_order.h"

static const uint64_t DEFAULT_ELEMENTS = 500000000;

static uint64_t round_to(uint64_t preferred, struct cap_range range) {
    return range.low > range.high ? range.low : export_round(range.low, range.high, preferred, 10);
}

static void raise(struct cap_range *range, uint64_t low) {
    range->low = low > range->low ? low : range->low;
}

static void lower(struct cap_range *range, uint64_t high) {
    range->high = high < range->high ? high : range->high;
}

/* ---- buckets of gradients ---- */

static enum status find_bucket(struct form *f, struct bucket_knob *knob, bool *fits, uint64_t *elements,
                               struct error *err) {
    struct cap_range one = {1, UINT64_MAX};
    *knob = (struct bucket_knob){.rule = BUCKET_BEFORE, .elements = true, .fits = true};
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, knob, err) : ST_OK;
    if (st)
        return st;
    *fits = knob->fits && buckets_common(&knob->caps, &one);
    *elements = *fits ? round_to(DEFAULT_ELEMENTS, one) : knob->nearest;
    return ST_OK;
}

static bool add_buckets(cJSON *zero, bool overlap, uint64_t elements) {
    return cJSON_AddBoolToObject(zero, "overlap_comm", overlap) &&
           cJSON_AddNumberToObject(zero, "reduce_bucket_size", (double)elements) &&
           cJSON_AddNumberToObject(zero, "allgather_bucket_size", (double)elements);
}

/* Of sharded parameters: "bf16" or "fp16" gathers them so, and "communication_data_type" sums their gradients. */
static bool add_types(struct form *f, cJSON *json) {
    enum carried gathered, summed;
    const enum dtype own = form_sharded_dtype(f);
    const bool alike = form_carried(f, &gathered, &summed) && (own != DTYPE_COUNT || summed || !gathered);
    if (!alike || (!gathered && !summed)) {
        if (!alike)
            form_note_carried(f);
        return true;
    }
    const enum dtype sums = carried_dtype(summed, own);
    const char *communicated = sums == DTYPE_bf16 ? "bfp16" : sums == DTYPE_f16 ? "fp16" : "fp32";
    cJSON *enabled = gathered && gathered != CARRIED_f32
                         ? cJSON_AddObjectToObject(json, gathered == CARRIED_bf16 ? "bf16" : "fp16")
                         : NULL;
    if (gathered == CARRIED_f32 || sums == DTYPE_f64)
        form_note_carried(f);
    return (!gathered || gathered == CARRIED_f32 || cJSON_AddTrueToObject(enabled, "enabled")) &&
           cJSON_AddStringToObject(json, "communication_data_type", communicated);
}

static void add_file(struct form *f, cJSON *zero, bool whole, uint32_t stage) {
    cJSON *json = cJSON_CreateObject();
    whole = json && add_types(f, json) && whole;
    if (f->strategy->micro_batches > 1)
        whole =
            json && cJSON_AddNumberToObject(json, "gradient_accumulation_steps", f->strategy->micro_batches) && whole;
    form_note_synchronize(f, stage < 2 ? SYNCHRONIZE_last : SYNCHRONIZE_each);
    if (!json || !zero || !cJSON_AddItemToObject(json, "zero_optimization", zero)) {
        cJSON_Delete(zero);
        whole = false;
    }
    form_add_json(f, "deepspeed.json", json, whole);
}

static enum status export_plain(struct form *f, struct error *err) {
    struct bucket_knob knob;
    bool fits;
    uint64_t elements;
    enum status st = find_bucket(f, &knob, &fits, &elements, err);
    if (st)
        return st;
    cJSON *zero = cJSON_CreateObject();
    add_file(f, zero, zero && add_buckets(zero, true, elements), f->strategy->synchronize == SYNCHRONIZE_each ? 2 : 1);
    if (!fits)
        bucket_knob_note(f, &knob);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_ACCUMULATE);
    return ST_OK;
}

/* ---- stage 1, behind the backward pass ---- */

/* The sizes that cut each group as it is cut. */
static struct cap_range cuts_of(struct form *f) {
    const uint64_t *bytes = form_group_bytes(f);
    struct cap_range range = {1, UINT64_MAX};
    for (uint32_t v = 0; v < f->strategy->n_variables && bytes; v++) {
        const uint32_t g = f->strategy->variables[v].group;
        const uint64_t width = dtype_bytes(f->model->variables[v].dtype), cut = f->strategy->groups[g].partition_bytes;
        const bool is_cut = cut && cut < bytes[g];
        raise(&range, (is_cut ? cut : bytes[g]) / width);
        if (is_cut)
            lower(&range, cut / width);
    }
    return range;
}

static enum status find_end(struct form *f, struct zero_settings *out, bool *fits, struct error *err) {
    struct zero_settings settings = zero_defaults(1);
    struct strategy made;
    settings.reduce_bucket_size = round_to(DEFAULT_ELEMENTS, cuts_of(f));
    enum status st = zero_build(f->model, f->cluster, &settings, "made", &made, err);
    if (st)
        return st;
    *fits = form_same_groups(f, &made);
    if (*fits)
        *out = settings;
    strategy_release(&made);
    return ST_OK;
}

/* ---- stage 3 ---- */

static bool is_gathered(const struct form *f, uint32_t v) {
    const struct variable_sync *sync = &f->strategy->variables[v];
    return sync->kind == SYNC_ALL_REDUCE && f->strategy->groups[sync->group].sharded == SHARDED_parameters;
}

static uint64_t threshold_of(const struct form *f) {
    struct cap_range range = {0, UINT64_MAX};
    for (uint32_t v = 0; v < f->model->n_variables; v++) {
        if (is_gathered(f, v))
            lower(&range, f->model->variables[v].elements - 1);
        else if (f->strategy->variables[v].kind == SYNC_ALL_REDUCE)
            raise(&range, f->model->variables[v].elements);
    }
    return range.low > range.high ? range.high : export_round(range.low, range.high, 100000, 10);
}

/* A group stays where the elements behind its last variable, twice, are fewer than the distance. */
static uint64_t distance_of(const struct form *f, uint32_t n, const struct bucket_item *items, bool *seen) {
    struct cap_range range = {0, UINT64_MAX};
    uint64_t later = 0;
    for (uint32_t i = n; i-- > 0;) {
        const struct group *group = &f->strategy->groups[items[i].label];
        if (!seen[items[i].label] && group->keeps_gathered)
            raise(&range, 2 * later + 1);
        else if (!seen[items[i].label])
            lower(&range, 2 * later);
        seen[items[i].label] = true;
        later += items[i].size;
    }
    return round_to(1000000000, range);
}

static uint64_t live_of(const struct form *f, uint64_t bucket) {
    const uint64_t depth = f->strategy->forward_prefetch, all = strategy_sharded_parameters(f->strategy);
    if (depth + 1 > UINT64_MAX / bucket)
        return UINT64_MAX;
    return round_to(1000000000,
                    (struct cap_range){depth * bucket, depth >= all ? UINT64_MAX : (depth + 1) * bucket - 1});
}

static enum status find_gathers(struct form *f, struct zero_settings *out, struct error *err) {
    const uint32_t n = f->model->n_variables, n_groups = f->strategy->n_groups;
    uint32_t *read = arena_alloc(f->arena, n, sizeof *read), n_items = 0;
    struct bucket_item *items = arena_alloc(f->arena, n, sizeof *items);
    bool *seen = arena_alloc(f->arena, n_groups, sizeof *seen), fits;
    struct bucket_caps caps;
    struct cap_range one;
    enum status st = read && items && seen ? read_order(f->model, read, err) : error_no_memory(err);
    for (uint32_t i = 0; i < n && !st; i++) {
        const struct variable *v = &f->model->variables[read[i]];
        if (is_gathered(f, read[i]))
            items[n_items++] = (struct bucket_item){
                .kind = v->dtype, .label = f->strategy->variables[read[i]].group, .size = v->elements};
    }
    if (!st)
        st = buckets_infer(BUCKET_REACHED, n_items, items, n_groups, f->arena, &caps, &fits, err);
    if (st)
        return st;
    out->persistence_threshold = threshold_of(f);
    out->max_reuse_distance = distance_of(f, n_items, items, seen);
    out->prefetch_bucket_size =
        fits && buckets_common(&caps, &one)
            ? round_to(50000000, one)
            : buckets_nearest(BUCKET_REACHED, n_items, items, strategy_sharded_parameters(f->strategy));
    out->max_live_parameters = live_of(f, out->prefetch_bucket_size);
    const uint32_t kept = form_reshard_ranks(f);
    out->kept_ranks = kept != UINT32_MAX ? kept : 0;
    return ST_OK;
}

/* ---- what is sharded ---- */

static enum status find_settings(struct form *f, struct zero_settings *out, struct error *err) {
    struct bucket_knob knob;
    bool fits = false;
    *out = zero_defaults((uint32_t)form_sharded(f));
    if (out->stage == 3)
        return find_gathers(f, out, err);
    out->overlap_comm = true;
    enum status st = out->stage == 1 ? find_end(f, out, &fits, err) : ST_OK;
    if (!st && !fits)
        st = find_bucket(f, &knob, &fits, &out->reduce_bucket_size, err);
    return st;
}

static bool add_settings(cJSON *zero, const struct zero_settings *s) {
    if (!cJSON_AddNumberToObject(zero, "stage", s->stage))
        return false;
    if (s->stage < 3)
        return add_buckets(zero, s->overlap_comm, s->reduce_bucket_size);
    return cJSON_AddTrueToObject(zero, "overlap_comm") &&
           cJSON_AddNumberToObject(zero, "stage3_prefetch_bucket_size", (double)s->prefetch_bucket_size) &&
           cJSON_AddNumberToObject(zero, "stage3_param_persistence_threshold", (double)s->persistence_threshold) &&
           cJSON_AddNumberToObject(zero, "stage3_max_live_parameters", (double)s->max_live_parameters) &&
           cJSON_AddNumberToObject(zero, "stage3_max_reuse_distance", (double)s->max_reuse_distance) &&
           (!s->kept_ranks || cJSON_AddNumberToObject(zero, "zero_hpz_partition_size", s->kept_ranks));
}

enum status export_deepspeed(struct form *f, struct error *err) {
    struct zero_settings settings;
    struct strategy made;
    if (!form_sharded(f))
        return export_plain(f, err);
    enum status st = find_settings(f, &settings, err);
    if (!st)
        st = zero_build(f->model, f->cluster, &settings, "made", &made, err);
    if (st)
        return st;
    cJSON *zero = cJSON_CreateObject();
    add_file(f, zero, zero && add_settings(zero, &settings), settings.stage);
    form_note_made(f, &made, CAN_ACCUMULATE | CAN_CARRY | (settings.kept_ranks ? CAN_RESHARD : 0u),
                   settings.stage < 2 ? SYNCHRONIZE_last : SYNCHRONIZE_each);
    return ST_OK;
}
