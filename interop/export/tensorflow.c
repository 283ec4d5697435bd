/* TensorFlow: tf.distribute.experimental.CommunicationOptions as JSON, to be given as **options (to
 * MultiWorkerMirroredStrategy or to all_reduce).
 *
 * Gradients are packed in the reverse of their declaration; a pack is closed once it holds more than bytes_per_pack.
 * 0, the default, is one pack of everything. `implementation` is left to the user: it names a library, not a way to
 * synchronize. One pack at a time; the optimizer waits for all.
 * Source: TensorFlow, API documentation of CommunicationOptions; python/distribute/cross_device_utils. */
#include "interop/export/bucket_knob.h"

enum status export_tensorflow(struct form *f, struct error *err) {
    struct bucket_knob knob = {.rule = BUCKET_EXCEEDED, .reverse = true, .one_kind = true, .n_groups = 1, .fits = true};
    struct cap_range one = {1, UINT64_MAX};
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, &knob, err) : ST_OK;
    if (st)
        return st;
    const bool fits = knob.fits && buckets_common(&knob.caps, &one);
    uint64_t bytes = knob.n_groups == 1 ? 0 : fits ? export_round(one.low, one.high, 0, 2) : knob.nearest;
    cJSON *json = cJSON_CreateObject();
    const bool whole = json && cJSON_AddNumberToObject(json, "bytes_per_pack", (double)bytes);
    form_add_json(f, "communication-options.json", json, whole);
    if (!fits)
        bucket_knob_note(f, &knob);
    form_note_rest(f, CAN_ALL_REDUCE);
    return ST_OK;
}
