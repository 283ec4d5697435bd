/* The table of exporters, and the frame of every export: the order of readiness before, the notes and the check of
 * memory after. */
#include "interop/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "interop/export/export_internal.h"
#include "strategy/space/ready_order.h"

static const struct exporter exporters[] = {
    {"pytorch-ddp",
     "arguments of DistributedDataParallel; exact groups for a communication hook where they do not fit",
     export_pytorch_ddp,
     false,
     EXPORT_PARTS_by_form,
     {"ddp.json", "ddp-groups.json"}},
    {"pytorch-hook",
     "groups, servers, messages, order, credit and barrier, for the communication hook of syncopate_torch",
     export_pytorch_hook,
     true,
     EXPORT_PARTS_by_form,
     {"pytorch-hook.json"}},
    {"fsdp2",
     "groups of fully_shard with their resharding and prefetch, for apply of syncopate_torch",
     export_fsdp2,
     false,
     EXPORT_PARTS_always,
     {"fsdp2.json"}},
    {"fsdp2-code",
     "the same as a page of plain PyTorch code",
     export_fsdp2_code,
     false,
     EXPORT_PARTS_always,
     {"fsdp2.py"}},
    {"horovod",
     "environment, and the groups of DistributedOptimizer",
     export_horovod,
     false,
     EXPORT_PARTS_by_form,
     {"horovod.env", "horovod-groups.json"}},
    {"deepspeed",
     "the zero_optimization part of its JSON configuration",
     export_deepspeed,
     false,
     EXPORT_PARTS_by_form,
     {"deepspeed.json"}},
    {"megatron",
     "arguments of Megatron-LM's command line",
     export_megatron,
     false,
     EXPORT_PARTS_by_form,
     {"megatron.args"}},
    {"torchtitan",
     "the parallelism part of its configuration",
     export_torchtitan,
     false,
     EXPORT_PARTS_by_form,
     {"torchtitan.toml"}},
    {"accelerate",
     "Hugging Face Accelerate's file for accelerate launch",
     export_accelerate,
     false,
     EXPORT_PARTS_by_form,
     {"accelerate.yaml"}},
    {"tensorflow",
     "tf.distribute.experimental.CommunicationOptions as JSON",
     export_tensorflow,
     false,
     EXPORT_PARTS_by_form,
     {"communication-options.json"}},
    {"xla", "flags for XLA's GPU compiler, as JAX uses it", export_xla, false, EXPORT_PARTS_by_program, {"xla.flags"}},
    {"byteps", "environment", export_byteps, false, EXPORT_PARTS_by_form, {"byteps.env"}},
    {"bytescheduler", "environment", export_bytescheduler, false, EXPORT_PARTS_by_form, {"bytescheduler.env"}},
    {"autodist",
     "its Strategy message, as JSON and as protobuf",
     export_autodist,
     true,
     EXPORT_PARTS_by_form,
     {"autodist.pb", "autodist.json"}},
    {"nccl",
     "environment, and a table for syncopate's NCCL tuner plugin",
     export_nccl,
     true,
     EXPORT_PARTS_beside,
     {"nccl.env", "nccl-tuner.csv"}},
};

const struct exporter *exporters_list(size_t *n) {
    *n = sizeof exporters / sizeof exporters[0];
    return exporters;
}

const struct exporter *exporters_find(const char *name) {
    for (size_t i = 0; i < sizeof exporters / sizeof exporters[0]; i++)
        if (!strcmp(exporters[i].name, name))
            return &exporters[i];
    return NULL;
}

static void take_notes(struct form *f) {
    struct export *out = f->out;
    for (int i = 0; i < EXPORT_LOSS_COUNT; i++)
        if (f->notes[i])
            out->notes[out->n_notes++] = (struct export_note){(enum export_loss)i, f->notes[i]};
}

uint32_t export_losses(const struct export *export) {
    uint32_t losses = 0;
    for (uint32_t i = 0; i < export->n_notes; i++)
        losses |= 1u << export->notes[i].loss;
    return losses;
}

/* Whether some part of the variable is served. */
static bool is_served(const struct variable_sync *sync) {
    bool served = false;
    for (uint32_t k = 0; k < sync_parts(sync); k++)
        served |= sync_part(sync, k)->kind == SYNC_PARAMETER_SERVER;
    return served;
}

static enum status write_form(const struct exporter *exporter, struct form *form, struct error *err) {
    for (uint32_t v = 0; v < form->strategy->n_variables; v++)
        form->n_served += is_served(&form->strategy->variables[v]);
    return exporter->write(form, err);
}

/* Write the strategy in which every shard is synchronized as the first one of its variable, under the same id. */
static enum status write_first_shards(const struct exporter *exporter, struct form *form, struct error *err) {
    const struct strategy *strategy = form->strategy;
    struct strategy alike;
    enum status st = strategy_copy(strategy, strategy->name, &alike, err);
    if (st)
        return st;
    for (uint32_t v = 0; v < alike.n_variables; v++)
        alike.variables[v].each = NULL;
    st = strategy_seal(&alike, form->model, form->cluster, err);
    alike.id = strategy->id;
    form->strategy = &alike;
    if (!st)
        st = write_form(exporter, form, err);
    form->strategy = strategy;
    strategy_release(&alike);
    return st;
}

static enum status write_any(const struct exporter *exporter, struct form *form, struct error *err) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < form->strategy->n_variables; v++)
        n += form->strategy->variables[v].each != NULL;
    if (!n || exporter->each_shard)
        return write_form(exporter, form, err);
    form_note(form, EXPORT_LOSS_SHARDS,
              "the shards of %u of %u variables are synchronized in several ways, and would all go as the first does",
              n, form->strategy->n_variables);
    return write_first_shards(exporter, form, err);
}

enum status export_build(const struct exporter *exporter, const struct strategy *strategy, const struct model *model,
                         const struct cluster *cluster, struct export *out, struct error *err) {
    if (!consistency_is_plain(&strategy->consistency))
        return error_set(err, ST_INFEASIBLE, "%s has a \"consistency\" (%s), which no framework here can be given",
                         strategy->name, consistency_name(strategy->consistency.kind));
    struct export built = {0};
    uint32_t *ready = arena_alloc(&built.arena, model->n_variables, sizeof *ready);
    struct form form = {
        .strategy = strategy, .model = model, .cluster = cluster, .ready = ready, .arena = &built.arena, .out = &built};
    enum status st = ready ? ready_order(model, ready, err) : error_no_memory(err);
    if (!st)
        st = write_any(exporter, &form, err);
    if (!st && form.no_memory)
        st = error_no_memory(err);
    if (st) {
        arena_release(&built.arena);
        return st;
    }
    take_notes(&form);
    built.changes_memory =
        built.over_memory || parts_change_memory(exporter->parts, export_losses(&built), strategy, model);
    *out = built;
    return ST_OK;
}

void export_release(struct export *export) {
    arena_release(&export->arena);
    *export = (struct export){0};
}

/* ---- files ---- */

FILE *form_open(struct form *f) {
    FILE *file = stream_open(&f->open_text, &f->open_size);
    f->no_memory |= !file;
    return file;
}

/* n bytes as they are. */
static void form_add_bytes(struct form *f, const char *name, const void *bytes, size_t n) {
    struct export *out = f->out;
    char *copy = arena_copy(&out->arena, bytes, n);
    if (copy)
        out->files[out->n_files++] = (struct export_file){name, copy, n};
    f->no_memory |= !copy;
}

void form_close(struct form *f, const char *name, FILE *file) {
    if (!file)
        return;
    if (stream_close(file, ST_OK, &f->open_text, NULL))
        f->no_memory = true;
    else
        form_add_bytes(f, name, f->open_text, f->open_size);
    free(f->open_text);
    f->open_text = NULL;
}

void form_write_head(const struct form *f, FILE *file, const char *use) {
    fprintf(file, "# syncopate: strategy %s (%.*s) for %s on %s\n# %s\n", f->strategy->name, ID_SHORT,
            f->strategy->id.hex, f->model->name, f->cluster->name, use);
}

void form_add_json(struct form *f, const char *name, cJSON *json, bool whole) {
    char *text = whole && json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    FILE *file = text ? form_open(f) : NULL;
    f->no_memory |= !text;
    if (file)
        fprintf(file, "%s\n", text);
    form_close(f, name, file);
    free(text);
}
