/* torchtitan and Hugging Face Accelerate: which modules FSDP2 wraps, and which of them stay gathered.
 *
 * Neither has a setting for groups: each wraps blocks, the embedding, and the last norm with the head, as
 * strategy/baselines/fsdp.h builds it. So a strategy is compared with all that the setting for resharding makes. Where
 * nothing shards parameters, both train by DistributedDataParallel, with buckets that nobody can set: torchtitan's have
 * 100 MiB, Accelerate's those of PyTorch.
 *
 * The types in which parameters are gathered and gradients summed are one setting for all. torchtitan gathers f32 or
 * bf16 (mixed_precision_param) and sums in f32. Accelerate does both in one type (mixed_precision), and computes so.
 *
 * torchtitan: the table [parallelism] of its configuration, with replicas as data_parallel_replicate_degree; with
 * several micro-batches also two sizes in [training]. It sums gradients in each (train.py, train_step).
 * Accelerate: the file of `accelerate launch --config_file`. Which class a block is, it takes from the model
 * (_no_split_modules, as models of transformers have it), unless fsdp_transformer_layer_cls_to_wrap is added. Without
 * classes nothing but the embedding and the tail is wrapped; NO_WRAP does the same, so it has no use here.
 * Source: torchtitan, models/llama3/infra/parallelize.py; accelerate 1.15, utils/fsdp_utils.py (fsdp2_prepare_model)
 * and commands/config/config_args.py. */
#include "strategy/baselines/fsdp.h"

#include "interop/export/export_internal.h"
#include "strategy/baselines/pytorch_ddp.h"

struct way {
    enum fsdp_keep keep;
    const char *words; /* how the form says it */
};

/* How far the way is from the strategy: groups count before what stays gathered. */
static enum status distance_to(struct form *f, const struct way *way, uint64_t *out, struct error *err) {
    struct strategy made;
    enum status st = fsdp_build(f->model, f->cluster, FSDP_WRAP_titan, way->keep, "made", &made, err);
    if (st)
        return st;
    const uint64_t n = f->strategy->n_variables;
    *out = form_same_groups(f, &made) ? 0 : n + 1;
    for (uint32_t v = 0; v < n; v++)
        if (f->strategy->variables[v].kind == SYNC_ALL_REDUCE)
            *out += f->strategy->groups[f->strategy->variables[v].group].keeps_gathered !=
                    made.groups[made.variables[v].group].keeps_gathered;
    strategy_release(&made);
    return ST_OK;
}

/* The nearest of the ways, the first of equals. */
static enum status choose(struct form *f, size_t n, const struct way *ways, const struct way **out, struct error *err) {
    uint64_t best = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t distance;
        enum status st = distance_to(f, &ways[i], &distance, err);
        if (st)
            return st;
        *out = distance < best ? &ways[i] : *out;
        best = distance < best ? distance : best;
    }
    return ST_OK;
}

/* To be called after the file is written: writing notes the types. */
static enum status note_way(struct form *f, const struct way *way, unsigned can, enum synchronize theirs,
                            struct error *err) {
    struct strategy made;
    enum status st = fsdp_build(f->model, f->cluster, FSDP_WRAP_titan, way->keep, "made", &made, err);
    if (!st)
        form_note_made(f, &made, can, theirs);
    return st;
}

/* ---- torchtitan ---- */

/* What its types make of parameters that are f32 in the model; it would gather as bf16 where it is not told. */
static const char *titan_type(struct form *f) {
    enum carried gathered, summed;
    const enum dtype own = form_sharded_dtype(f);
    const bool alike = form_carried(f, &gathered, &summed), bf16 = gathered == CARRIED_bf16;
    if (!alike || gathered == CARRIED_f16 || summed || (gathered && own != DTYPE_f32))
        form_note_carried(f);
    return own != DTYPE_f32 ? NULL : bf16 ? "bfloat16" : "float32";
}

static void write_titan_training(struct form *f, FILE *file, const char *type) {
    uint64_t micro_batch, global_batch;
    const bool batches = form_batches(f, SYNCHRONIZE_each, &micro_batch, &global_batch);
    if (batches || type)
        fprintf(file, "[training]\n");
    if (type)
        fprintf(file, "mixed_precision_param = \"%s\"\nmixed_precision_reduce = \"float32\"\n", type);
    if (batches)
        fprintf(file, "local_batch_size = %llu\nglobal_batch_size = %llu\n", (unsigned long long)micro_batch,
                (unsigned long long)global_batch);
}

static void write_torchtitan(struct form *f, uint32_t replicas, int shards, const char *policy) {
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For torchtitan's configuration (--job.config_file)");
    fprintf(file, "[parallelism]\ndata_parallel_replicate_degree = %u\ndata_parallel_shard_degree = %d\n", replicas,
            shards);
    if (policy)
        fprintf(file, "fsdp_reshard_after_forward = \"%s\"\n", policy);
    write_titan_training(f, file, policy ? titan_type(f) : NULL);
    form_close(f, "torchtitan.toml", file);
}

enum status export_torchtitan(struct form *f, struct error *err) {
    static const struct way ways[] = {
        {FSDP_KEEP_last, "default"}, {FSDP_KEEP_none, "always"}, {FSDP_KEEP_all, "never"}};
    const struct way *way = NULL;
    struct strategy made;
    if (form_sharded(f) == SHARDED_parameters) {
        const uint32_t ranks = f->strategy->shard_ranks;
        enum status st = choose(f, sizeof ways / sizeof ways[0], ways, &way, err);
        if (st)
            return st;
        write_torchtitan(f, ranks ? f->cluster->n_devices / ranks : 1, ranks ? (int)ranks : -1, way->words);
        return note_way(f, way, CAN_REPLICATE | CAN_ACCUMULATE | CAN_CARRY, SYNCHRONIZE_each, err);
    }
    write_torchtitan(f, f->cluster->n_devices, 1, NULL);
    enum status st = pytorch_ddp_build(f->model, f->cluster, UINT64_C(100) << 20, "made", &made, err);
    if (!st)
        form_note_made(f, &made, CAN_ACCUMULATE, SYNCHRONIZE_each);
    return st;
}

/* ---- Accelerate ---- */

/* "bf16" or "fp16"; NULL: neither. */
static const char *accelerate_type(struct form *f) {
    enum carried gathered, summed;
    const bool alike = form_carried(f, &gathered, &summed) && gathered == summed;
    if (!alike || gathered == CARRIED_f32)
        form_note_carried(f);
    return !alike ? NULL : gathered == CARRIED_bf16 ? "bf16" : gathered == CARRIED_f16 ? "fp16" : NULL;
}

static void write_accelerate(struct form *f, const char *distributed, const struct way *way) {
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "accelerate launch --config_file accelerate.yaml train.py");
    fprintf(file, "compute_environment: LOCAL_MACHINE\ndistributed_type: %s\nnum_machines: %u\nnum_processes: %u\n",
            distributed, form_workers(f), f->cluster->n_devices);
    const char *type = way ? accelerate_type(f) : NULL;
    if (type)
        fprintf(file, "mixed_precision: %s\n", type);
    if (way)
        fprintf(file,
                "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                "  fsdp_reshard_after_forward: %s\n",
                way->words);
    form_close(f, "accelerate.yaml", file);
}

enum status export_accelerate(struct form *f, struct error *err) {
    static const struct way ways[] = {{FSDP_KEEP_last, "true"}, {FSDP_KEEP_all, "false"}};
    const struct way *way = NULL;
    struct strategy made;
    if (form_sharded(f) == SHARDED_parameters) {
        enum status st = choose(f, sizeof ways / sizeof ways[0], ways, &way, err);
        if (st)
            return st;
        write_accelerate(f, "FSDP", way);
        return note_way(f, way, CAN_CARRY, f->strategy->synchronize, err);
    }
    write_accelerate(f, "MULTI_GPU", NULL);
    enum status st = pytorch_ddp_defaults(f->model, f->cluster, "made", &made, err);
    if (!st)
        form_note_made(f, &made, 0, f->strategy->synchronize);
    return st;
}
