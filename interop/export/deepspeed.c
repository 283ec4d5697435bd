/* DeepSpeed: the zero_optimization part of its configuration, for stages 1 and 2.
 *
 * Gradients enter a bucket in the order of readiness. The bucket is reduced when the next gradient would take it past
 * reduce_bucket_size, which counts elements. overlap_comm lets the reduction run beside the backward pass, as every
 * strategy here supposes; only stage 3 has it on by default. allgather_bucket_size, for the parameters after the step,
 * is given the same number. One bucket at a time; the optimizer waits for all.
 * Source: DeepSpeed documentation, "ZeRO Optimizations for FP16 Training"; Rajbhandari et al., SC 2020. */
#include "interop/export/bucket_knob.h"

static const uint64_t DEFAULT_ELEMENTS = 500000000;

static bool add_options(cJSON *json, uint64_t elements) {
    cJSON *zero = cJSON_AddObjectToObject(json, "zero_optimization");
    return zero && cJSON_AddTrueToObject(zero, "overlap_comm") &&
           cJSON_AddNumberToObject(zero, "reduce_bucket_size", (double)elements) &&
           cJSON_AddNumberToObject(zero, "allgather_bucket_size", (double)elements);
}

enum status export_deepspeed(struct form *f, struct error *err) {
    struct bucket_knob knob = {.rule = BUCKET_BEFORE, .elements = true, .fits = true};
    struct cap_range one = {1, UINT64_MAX};
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, &knob, err) : ST_OK;
    if (st)
        return st;
    const bool fits = knob.fits && buckets_common(&knob.caps, &one);
    cJSON *json = cJSON_CreateObject();
    const bool whole =
        json && add_options(json, fits ? export_round(one.low, one.high, DEFAULT_ELEMENTS, 10) : knob.nearest);
    form_add_json(f, "deepspeed.json", json, whole);
    if (!fits)
        bucket_knob_note(f, &knob);
    form_note_rest(f, CAN_ALL_REDUCE);
    return ST_OK;
}
