/* DeepSpeed's configuration: "zero_optimization", of stages 1 to 3 (strategy/baselines/zero.h), and how many
 * micro-batches there are. Two of its three numbers of them make the third; "auto" is noted. Stage 1 sums gradients in
 * the last micro-batch, stages 2 and 3 in each. Of stage 3 "bf16" or "fp16" gathers parameters so, which then is the
 * type of the sums as well, unless "communication_data_type" says another. Of stage 3 there is ZeRO++'s
 * "zero_hpz_partition_size", and of versions before 0.19.8 "mics_shard_size", whose replicas all-reduce once an
 * iteration (mics.py, allreduce_mics_shard_grads). Whatever else there is is passed over, and members of
 * "zero_optimization" that are passed over are noted. */
#include <string.h>

#include "base/json.h"
#include "interop/import/batches.h"
#include "interop/import/strategy_kinds.h"
#include "interop/import/types.h"
#include "strategy/baselines/zero.h"

/* Larger numbers are no whole numbers in JSON. */
static const uint64_t MOST = UINT64_C(1) << 53;

bool deepspeed_is(const struct source *source) {
    return strstr(source->text, "\"zero_optimization\"") != NULL;
}

/* A size in elements. Transformers fills in what is "auto", from sizes of its model. */
static enum status get_elements(const struct json_at *zero, const char *key, uint64_t *out, struct error *err) {
    struct json_at at;
    if (json_has(zero, key, &at) && cJSON_IsString(at.node))
        return json_fail(&at, err, "a number is needed; what \"auto\" stands for, only Transformers knows");
    return json_get_integer(zero, key, JSON_OPTIONAL, 0, MOST, out, err);
}

/* Among how many devices something is shared, a part of the cluster's; 0: all, or the member is not there or turns it
 * off. */
static enum status get_ranks(const struct json_at *zero, const char *key, const struct cluster *cluster, uint32_t *out,
                             struct error *err) {
    struct json_at at;
    uint64_t ranks = 0;
    if (json_has(zero, key, &at) && !(cJSON_IsNumber(at.node) && at.node->valuedouble == -1)) {
        enum status st = json_integer_at(&at, 0, MOST, &ranks, err);
        if (st)
            return st;
    }
    if (ranks > 1 && ranks < cluster->n_devices && cluster->n_devices % ranks)
        return json_fail(&at, err, "is %lu, which does not divide the %u devices of %s", (unsigned long)ranks,
                         cluster->n_devices, cluster->name);
    *out = ranks > 1 && ranks < cluster->n_devices ? (uint32_t)ranks : 0;
    return ST_OK;
}

static enum status get_partitions(const struct json_at *zero, const struct cluster *cluster, struct zero_settings *out,
                                  struct error *err) {
    struct json_at at;
    enum status st = get_ranks(zero, "zero_hpz_partition_size", cluster, &out->kept_ranks, err);
    if (!st && json_has(zero, "mics_shard_size", &at) && cJSON_IsNumber(at.node) && at.node->valuedouble == 1)
        return json_fail(&at, err, "is 1, and each device would have all: take a stage below 3");
    if (!st)
        st = get_ranks(zero, "mics_shard_size", cluster, &out->shard_ranks, err);
    if (!st && out->kept_ranks && out->shard_ranks)
        return json_fail(zero, err, "mics_shard_size and zero_hpz_partition_size: DeepSpeed has one or the other");
    return st;
}

static enum status note_rest(const cJSON *zero, uint32_t stage, struct notes *notes, struct error *err) {
    static const char *const of_stage_3[] = {"mics_shard_size", "zero_hpz_partition_size"};
    static const char *const known[] = {"stage",
                                        "overlap_comm",
                                        "reduce_bucket_size",
                                        "allgather_bucket_size",
                                        "stage3_prefetch_bucket_size",
                                        "stage3_param_persistence_threshold",
                                        "stage3_max_live_parameters",
                                        "stage3_max_reuse_distance"};
    for (const cJSON *member = zero->child; member; member = member->next) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            is_known |= !strcmp(member->string, known[i]);
        for (size_t i = 0; i < sizeof of_stage_3 / sizeof of_stage_3[0] && stage == 3; i++)
            is_known |= !strcmp(member->string, of_stage_3[i]);
        if (!is_known && !notes_add(notes, "\"%.60s\" is passed over", member->string))
            return error_no_memory(err);
    }
    return ST_OK;
}

static enum status read_settings(const struct json_at *zero, const struct cluster *cluster, struct zero_settings *out,
                                 struct error *err) {
    uint64_t stage = 0;
    enum status st = json_get_integer(zero, "stage", JSON_REQUIRED, 0, 3, &stage, err);
    if (!st && !stage)
        return json_fail(zero, err, "stage 0 shards nothing; take the baseline single");
    if (st)
        return st;
    *out = zero_defaults((uint32_t)stage);
    st = json_get_bool(zero, "overlap_comm", JSON_OPTIONAL, &out->overlap_comm, err);
    if (!st)
        st = get_elements(zero, "reduce_bucket_size", &out->reduce_bucket_size, err);
    if (!st)
        st = get_elements(zero, "stage3_prefetch_bucket_size", &out->prefetch_bucket_size, err);
    if (!st)
        st = get_elements(zero, "stage3_param_persistence_threshold", &out->persistence_threshold, err);
    if (!st)
        st = get_elements(zero, "stage3_max_live_parameters", &out->max_live_parameters, err);
    if (!st)
        st = get_elements(zero, "stage3_max_reuse_distance", &out->max_reuse_distance, err);
    return st || stage < 3 ? st : get_partitions(zero, cluster, out, err);
}

/* A number of samples or micro-batches; 0: none. */
static enum status get_batch(const struct json_at *root, const char *key, struct notes *notes, uint64_t *out,
                             struct error *err) {
    struct json_at at;
    if (json_has(root, key, &at) && cJSON_IsString(at.node))
        return notes_add(notes, "\"%s\" is passed over: what \"auto\" stands for, only Transformers knows", key)
                   ? ST_OK
                   : error_no_memory(err);
    return json_get_integer(root, key, JSON_OPTIONAL, 1, MOST, out, err);
}

static enum status read_batches(const struct json_at *root, struct notes *notes, struct batches *out,
                                struct error *err) {
    enum status st = get_batch(root, "gradient_accumulation_steps", notes, &out->micro_batches, err);
    if (!st)
        st = get_batch(root, "train_micro_batch_size_per_gpu", notes, &out->micro_batch, err);
    return st ? st : get_batch(root, "train_batch_size", notes, &out->global_batch, err);
}

/* {"enabled": true}, or "auto". */
static enum status get_enabled(const struct json_at *root, const char *key, bool *out, struct error *err) {
    struct json_at at;
    *out = false;
    return json_has(root, key, &at) && cJSON_IsObject(at.node) &&
                   !cJSON_IsString(cJSON_GetObjectItem(at.node, "enabled"))
               ? json_get_bool(&at, "enabled", JSON_OPTIONAL, out, err)
               : ST_OK;
}

static enum status read_types(const struct json_at *root, struct types *out, struct error *err) {
    bool bf16 = false, f16 = false;
    const char *sums = NULL;
    enum status st = get_enabled(root, "bf16", &bf16, err);
    if (!st)
        st = get_enabled(root, "fp16", &f16, err);
    if (!st)
        st = json_get_string(root, "communication_data_type", JSON_OPTIONAL, &sums, err);
    out->gathered = out->summed = bf16 ? CARRIED_bf16 : f16 ? CARRIED_f16 : CARRIED_own;
    if (!st && sums && !types_named(sums, &out->summed))
        st = json_fail(root, err, "\"communication_data_type\" is \"%.40s\"; known are fp32, bfp16 and fp16", sums);
    return st;
}

static enum synchronize synchronize_of(const struct zero_settings *settings) {
    return settings->stage < 2          ? SYNCHRONIZE_last
           : settings->shard_ranks == 0 ? SYNCHRONIZE_each
                                        : SYNCHRONIZE_each_all_reduce_last;
}

enum status deepspeed_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                           struct strategy *out, struct error *err) {
    cJSON *json = NULL;
    struct json_at zero;
    struct zero_settings settings;
    struct batches batches = {0};
    struct types types = {CARRIED_own, CARRIED_own};
    enum status st = json_parse(source->text, source->n, source->name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, source->name);
    st = json_member(&root, "zero_optimization", &zero, err);
    if (!st && !cJSON_IsObject(zero.node))
        st = json_fail(&zero, err, "an object is needed");
    if (!st)
        st = read_settings(&zero, wanted->cluster, &settings, err);
    if (!st)
        st = note_rest(zero.node, settings.stage, notes, err);
    if (!st)
        st = read_batches(&root, notes, &batches, err);
    if (!st)
        st = read_types(&root, &types, err);
    if (!st && settings.stage == 2 && !settings.overlap_comm &&
        !notes_add(notes,
                   "without overlap_comm the backward pass waits while a bucket is summed, which no strategy says"))
        st = error_no_memory(err);
    if (!st)
        st = zero_build(wanted->model, wanted->cluster, &settings, wanted->name, out, err);
    if (!st)
        st = types_apply(&types, wanted, out, err);
    if (!st)
        st = batches_apply(&batches, synchronize_of(&settings), source->name, wanted, notes, out, err);
    cJSON_Delete(json);
    return st;
}
