/* Megatron-LM: arguments of its command line, a line each.
 *
 * Its buckets (strategy/baselines/megatron.h) have one knob, --ddp-bucket-size in elements. The distributed optimizer
 * is ZeRO-1. Its own sharding of gradients and parameters (--use-megatron-fsdp) groups by the modules of its own
 * models, which a strategy does not know, so it is not used here. Micro-batches follow from two sizes, and gradients
 * are summed in the last (schedules.py, no_sync_func). Source: Megatron-LM, training/arguments.py, core/distributed and
 * core/pipeline_parallel. */
#include "strategy/baselines/megatron.h"

#include "interop/export/bucket_knob.h"

static void write_arguments(struct form *f, const struct megatron_settings *settings) {
    FILE *file = form_open(f);
    uint64_t micro_batch, global_batch;
    if (!file)
        return;
    if (form_batches(f, SYNCHRONIZE_last, &micro_batch, &global_batch))
        fprintf(file, "--micro-batch-size %llu\n--global-batch-size %llu\n", (unsigned long long)micro_batch,
                (unsigned long long)global_batch);
    fprintf(file, "--overlap-grad-reduce\n");
    if (settings->distributed_optimizer)
        fprintf(file, "--use-distributed-optimizer\n");
    if (settings->overlap_param_gather)
        fprintf(file, "--overlap-param-gather\n");
    fprintf(file, "--ddp-bucket-size %llu\n", (unsigned long long)settings->bucket_size);
    form_close(f, "megatron.args", file);
}

enum status export_megatron(struct form *f, struct error *err) {
    struct bucket_knob knob = {.rule = BUCKET_REACHED, .elements = true, .fits = true};
    struct cap_range one = {1, UINT64_MAX};
    struct megatron_settings settings = {.distributed_optimizer = form_sharded(f) != SHARDED_none};
    struct strategy made;
    enum status st = f->n_served < f->strategy->n_variables ? bucket_knob_find(f, &knob, err) : ST_OK;
    if (st)
        return st;
    settings.overlap_param_gather = settings.distributed_optimizer && f->strategy->cross_iteration;
    settings.bucket_size = knob.fits && buckets_common(&knob.caps, &one)
                               ? export_round(one.low, one.high, megatron_bucket_size(f->cluster), 10)
                               : knob.nearest;
    st = megatron_build(f->model, f->cluster, &settings, "made", &made, err);
    if (st)
        return st;
    write_arguments(f, &settings);
    form_note_made(f, &made, CAN_ACCUMULATE | (settings.overlap_param_gather ? CAN_CROSS : 0u), SYNCHRONIZE_last);
    return ST_OK;
}
