/* torchtitan's configuration and Hugging Face Accelerate's file: how FSDP2 wraps and reshards
 * (strategy/baselines/fsdp.h).
 *
 * Of both, the scalars that matter are read line by line, "key = value" in two tables and "key: value";
 * whatever else TOML and YAML can say is passed over. What would make another kind of parallelism is refused. */
#include "strategy/baselines/fsdp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "interop/import/batches.h"
#include "interop/import/types.h"
#include "strategy/baselines/pytorch_ddp.h"

/* Cut "key<separator>value  # words" in place; quotes around the value go. False where it is no such line. */
static bool cut_line(char *line, char separator, char **key, char **value) {
    line[strcspn(line, "#")] = 0;
    char *at = strchr(line, separator);
    if (!at)
        return false;
    *at = 0;
    *key = text_trim(line);
    *value = text_trim(at + 1);
    const size_t n = strlen(*value);
    if (n >= 2 && (**value == '"' || **value == '\'') && (*value)[n - 1] == **value) {
        (*value)[n - 1] = 0;
        (*value)++;
    }
    return **key != 0;
}

/* A word of `words`, which ends with NULL, by its place. */
static enum status get_word(const struct lines *lines, const char *key, const char *value, const char *const *words,
                            int *out, struct error *err) {
    char known[80] = "";
    for (int i = 0; words[i]; i++) {
        if (!strcmp(value, words[i])) {
            *out = i;
            return ST_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", words[i]);
    }
    return lines_fail(lines, err, "%s is \"%.40s\"; known are%s", key, value, known);
}

static enum status get_type(const struct lines *lines, const char *key, const char *value, enum carried *out,
                            struct error *err) {
    return types_named(value, out) ? ST_OK
                                   : lines_fail(lines, err, "%s is \"%.40s\", and no type of floats", key, value);
}

/* ---- torchtitan ---- */

bool torchtitan_is(const struct source *source) {
    return strstr(source->text, "[parallelism]") != NULL;
}

struct titan {
    struct lines lines;
    uint64_t replicas, shards; /* shards: 0 is as many as there are devices */
    int policy;                /* of enum fsdp_keep, in the order of `policies` */
    struct batches batches;
    struct types types;
};

/* Of the table [training]. A global batch that is negative is one micro-batch. */
static enum status read_training_key(struct titan *t, const char *key, const char *value, struct error *err) {
    if (!strcmp(key, "mixed_precision_param"))
        return get_type(&t->lines, key, value, &t->types.gathered, err);
    if (!strcmp(key, "mixed_precision_reduce"))
        return get_type(&t->lines, key, value, &t->types.summed, err);
    if (!strcmp(key, "local_batch_size"))
        return lines_integer(&t->lines, key, value, 1, UINT64_C(1) << 32, &t->batches.micro_batch, err);
    if (!strcmp(key, "global_batch_size") && *value != '-')
        return lines_integer(&t->lines, key, value, 1, UINT64_C(1) << 32, &t->batches.global_batch, err);
    return ST_OK;
}

static enum status read_titan_key(struct titan *t, const char *key, const char *value, struct error *err) {
    static const char *const policies[] = {"default", "always", "never", NULL};
    static const char *const others[] = {"tensor_parallel_degree", "pipeline_parallel_degree",
                                         "context_parallel_degree", "expert_parallel_degree"};
    if (!strcmp(key, "fsdp_reshard_after_forward"))
        return get_word(&t->lines, key, value, policies, &t->policy, err);
    if (!strcmp(key, "data_parallel_replicate_degree"))
        return lines_integer(&t->lines, key, value, 1, 1000000, &t->replicas, err);
    if (!strcmp(key, "data_parallel_shard_degree") && strcmp(value, "-1") != 0)
        return lines_integer(&t->lines, key, value, 1, 1000000, &t->shards, err);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(key, others[i]) && strcmp(value, "1") != 0)
            return lines_fail(&t->lines, err, "%s is %.20s: only data parallelism is known here", key, value);
    return ST_OK;
}

static enum status read_titan(struct titan *t, struct error *err) {
    enum status (*read_key)(struct titan *, const char *, const char *, struct error *) = NULL;
    char *key, *value;
    for (char *line = lines_next(&t->lines); line; line = lines_next(&t->lines)) {
        while (isspace((unsigned char)*line))
            line++;
        if (*line == '[')
            read_key = !strncmp(line, "[parallelism]", 13) ? read_titan_key
                       : !strncmp(line, "[training]", 10)  ? read_training_key
                                                           : NULL;
        else if (read_key && cut_line(line, '=', &key, &value)) {
            enum status st = read_key(t, key, value, err);
            if (st)
                return st;
        }
    }
    return ST_OK;
}

static enum status build_titan(const struct titan *t, const struct strategy_for *wanted, struct strategy *out,
                               struct error *err) {
    static const enum fsdp_keep keeps[] = {FSDP_KEEP_last, FSDP_KEEP_none, FSDP_KEEP_all};
    const uint64_t devices = wanted->cluster->n_devices, shards = t->shards ? t->shards : devices / t->replicas;
    if (t->replicas * shards != devices)
        return lines_fail(&t->lines, err, "%lu replicas of %lu shards are not the %lu devices of %s",
                          (unsigned long)t->replicas, (unsigned long)shards, (unsigned long)devices,
                          wanted->cluster->name);
    if (shards == 1 && t->replicas > 1)
        return pytorch_ddp_build(wanted->model, wanted->cluster, UINT64_C(100) << 20, wanted->name, out, err);
    return fsdp_build_replicas(wanted->model, wanted->cluster, FSDP_WRAP_titan, keeps[t->policy],
                               t->replicas > 1 ? (uint32_t)shards : 0, wanted->name, out, err);
}

enum status torchtitan_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                            struct strategy *out, struct error *err) {
    struct arena arena = {0};
    struct titan t = {.replicas = 1};
    enum status st = lines_init(&t.lines, source, &arena) ? read_titan(&t, err) : error_no_memory(err);
    if (!st)
        st = build_titan(&t, wanted, out, err);
    if (!st)
        st = types_apply(&t.types, wanted, out, err);
    if (!st)
        st = batches_apply(&t.batches, SYNCHRONIZE_each, source->name, wanted, notes, out, err);
    arena_release(&arena);
    return st;
}

/* ---- Accelerate ---- */

bool accelerate_is(const struct source *source) {
    return strstr(source->text, "distributed_type:") != NULL;
}

struct accelerate {
    struct lines lines;
    int type; /* 0: FSDP, 1: MULTI_GPU; -1: not said */
    bool reshards;
    uint64_t version, processes;
    struct batches batches;
    struct types types;
};

static enum status read_accelerate_key(struct accelerate *a, const char *key, char *value, struct error *err) {
    static const char *const types[] = {"FSDP", "MULTI_GPU", NULL}, *const policies[] = {"TRANSFORMER_BASED_WRAP",
                                                                                         NULL};
    int policy;
    if (!strcmp(key, "distributed_type"))
        return get_word(&a->lines, key, value, types, &a->type, err);
    if (!strcmp(key, "num_processes"))
        return lines_integer(&a->lines, key, value, 1, 1000000, &a->processes, err);
    if (!strcmp(key, "gradient_accumulation_steps")) /* accumulate() sums in the last */
        return lines_integer(&a->lines, key, value, 1, STRATEGY_MAX_MICRO_BATCHES, &a->batches.micro_batches, err);
    if (!strcmp(key, "mixed_precision") && strcmp(value, "no") != 0) {
        enum status st = get_type(&a->lines, key, value, &a->types.gathered, err);
        a->types.summed = a->types.gathered;
        return st;
    }
    if (!strcmp(key, "fsdp_version"))
        return lines_integer(&a->lines, key, value, 1, 2, &a->version, err);
    if (!strcmp(key, "fsdp_auto_wrap_policy"))
        return get_word(&a->lines, key, value, policies, &policy, err);
    if (strcmp(key, "fsdp_reshard_after_forward") != 0)
        return ST_OK;
    *value = (char)tolower((unsigned char)*value); /* YAML has true and True */
    a->reshards = !strcmp(value, "true");
    return a->reshards || !strcmp(value, "false")
               ? ST_OK
               : lines_fail(&a->lines, err, "%s is \"%.40s\", not true or false", key, value);
}

static enum status read_accelerate(struct accelerate *a, struct error *err) {
    char *key, *value;
    for (char *line = lines_next(&a->lines); line; line = lines_next(&a->lines)) {
        enum status st = cut_line(line, ':', &key, &value) ? read_accelerate_key(a, key, value, err) : ST_OK;
        if (st)
            return st;
    }
    if (a->type < 0)
        return lines_fail(&a->lines, err, "no distributed_type in it");
    if (a->type == 0 && a->version != 2)
        return lines_fail(&a->lines, err, "no fsdp_version: 2 in it; FSDP1 is not known here");
    return ST_OK;
}

enum status accelerate_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                            struct strategy *out, struct error *err) {
    struct arena arena = {0};
    struct accelerate a = {.type = -1, .reshards = true, .version = 1};
    enum status st = lines_init(&a.lines, source, &arena) ? read_accelerate(&a, err) : error_no_memory(err);
    if (!st && a.processes && a.processes != wanted->cluster->n_devices &&
        !notes_add(notes, "num_processes is %lu; %s has %u devices", (unsigned long)a.processes, wanted->cluster->name,
                   wanted->cluster->n_devices))
        st = error_no_memory(err);
    if (!st && a.type == 0)
        st = fsdp_build(wanted->model, wanted->cluster, FSDP_WRAP_titan, a.reshards ? FSDP_KEEP_last : FSDP_KEEP_all,
                        wanted->name, out, err);
    else if (!st)
        st = pytorch_ddp_defaults(wanted->model, wanted->cluster, wanted->name, out, err);
    if (!st)
        st = types_apply(&a.types, wanted, out, err);
    if (!st)
        st = batches_apply(&a.batches, SYNCHRONIZE_last, source->name, wanted, notes, out, err);
    arena_release(&arena);
    return st;
}
