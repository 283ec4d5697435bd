/* XLA, and so JAX: the flags with which its GPU compiler combines collectives.
 *
 * An all-reduce of its own that is larger than the threshold stays alone. The others of a kind are combined in the
 * order of the program, up to the threshold and 256 of them. We take that order for the order of readiness.
 *
 * Sharded training splits the all-reduce into a reduce-scatter and an all-gather, which are combined by the same rule.
 * The bytes that count are those of the output. Each device gets its part alone from a reduce-scatter, so that
 * threshold is the others' divided by the number of devices.
 *
 * Source: openxla/xla, service/collective_combiner_utils.h (CombineInstructionsByKey) and debug_options_flags. Compiled
 * programs agree (tests/cli/xla.sh). */
#include "interop/export/bucket_knob.h"

static const uint64_t DEFAULT_BYTES = 30 * 1024 * 1024 + 7;

static void write_threshold(FILE *file, const char *collective, uint64_t bytes) {
    fprintf(file, "--xla_gpu_%s_combine_threshold_bytes=%llu\n", collective, (unsigned long long)bytes);
}

enum status export_xla(struct form *f, struct error *err) {
    struct bucket_knob knob = {.rule = BUCKET_COMBINED, .fits = true};
    struct cap_range one = {1, UINT64_MAX};
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, &knob, err) : ST_OK;
    if (st)
        return st;
    const bool fits = knob.fits && buckets_common(&knob.caps, &one);
    const uint64_t bytes = fits ? export_round(one.low, one.high, DEFAULT_BYTES, 2) : knob.nearest;
    FILE *file = form_open(f);
    if (file) {
        write_threshold(file, "all_reduce", bytes);
        write_threshold(file, "all_gather", bytes);
        write_threshold(file, "reduce_scatter", bytes / f->cluster->n_devices);
        form_close(f, "xla.flags", file);
    }
    if (!fits)
        bucket_knob_note(f, &knob);
    form_note_rest(f, CAN_ALL_REDUCE);
    return ST_OK;
}
