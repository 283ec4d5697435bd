/* Two tables of kinds; the first whose `is` accepts the contents reads the file, so kinds with plain marks stand before
 * those that would accept much. */
#include "interop/import/import.h"

#include <stdio.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"
#include "interop/import/model_kinds.h"
#include "interop/import/strategy_kinds.h"

enum { MAX_DEVICES = CLUSTER_MAX_NODES * CLUSTER_MAX_DEVICES_PER_NODE };

static const struct import_kind model_kinds[] = {
    {"pipedream", "PipeDream's graph.txt: layers with forward and backward times, bytes, edges", 0},
    {"espresso", "Espresso's tensor tables: times between gradients; forward times are estimated",
     IMPORT_FORWARD_RATIO},
    {"safetensors", "a safetensors file: shapes; times are estimated from --tflops, --batch, --positions",
     IMPORT_ESTIMATE},
    {"onnx", "an ONNX file: parameters and layers; times are estimated from --tflops and operations", IMPORT_ESTIMATE},
    {"torch-trace", "a PyTorch profiler's Chrome trace with record_shapes: times, shapes, order", 0},
    {"graph-item", "AutoDist's GraphItem: TensorFlow's variables; times as for safetensors", IMPORT_ESTIMATE},
    {NULL, NULL, 0},
};

static const struct {
    import_recognise *is;
    import_model_reader *read;
    bool binary; /* or UTF-8 text, and all of it read */
} model_readers[] = {{pipedream_is, pipedream_read, false},    {espresso_is, espresso_read, false},
                     {safetensors_is, safetensors_read, true}, {onnx_is, onnx_read, true},
                     {torch_trace_is, torch_trace_read, true}, {graph_item_is, graph_item_read, true}};

static const struct import_kind cluster_kinds[] = {
    {"syncopate", "a cluster file of ours, to which the others add measurements", 0},
    {"nccl-tests-json", "all_reduce_perf -J: measured all-reduce, and the nodes it ran on", IMPORT_DEVICES},
    {"nccl-tests", "the output of all_reduce_perf in any log: the same", IMPORT_DEVICES},
    {"osu", "osu_allreduce (with --devices): measured all-reduce; osu_latency, osu_bw: the NICs", IMPORT_DEVICES},
    {"resource-spec", "AutoDist's resource_spec.yml: nodes, GPUs, network bandwidth", 0},
    {"slurm", "scontrol show node: nodes and their GPUs; those out of service are left out", 0},
    {"topology", "nvidia-smi topo -m: GPUs a node and the NVLinks between them", 0},
    {"hostfile", "hosts and slots of mpirun, a slot being a device", 0},
    {NULL, NULL, 0},
};

static const struct {
    import_recognise_cluster *is;
    import_cluster_reader *read;
} cluster_readers[] = {{cluster_file_is, cluster_file_read},   {nccl_tests_json_is, nccl_tests_json_read},
                       {nccl_tests_is, nccl_tests_read},       {osu_is, osu_read},
                       {resource_spec_is, resource_spec_read}, {slurm_is, slurm_read},
                       {topology_is, topology_read},           {hostfile_is, hostfile_read}};

static const struct import_kind strategy_kinds[] = {
    {"deepspeed", "DeepSpeed's JSON configuration: zero_optimization of stages 1 to 3", 0},
    {"torchtitan", "torchtitan's TOML configuration: the table parallelism", 0},
    {"accelerate", "Hugging Face Accelerate's YAML file, of FSDP2 or replicas", 0},
    {"megatron", "Megatron-LM's command line, or a part of it", 0},
    {"xla", "XLA's flags on GPUs, as JAX uses them: thresholds up to which collectives are combined", 0},
    {"fsdp2", "fsdp2.json of strategy export --to fsdp2: groups of fully_shard", 0},
    {NULL, NULL, 0},
};

static const struct {
    import_recognise_strategy *is;
    import_strategy_reader *read;
} strategy_readers[] = {{deepspeed_is, deepspeed_read},
                        {torchtitan_is, torchtitan_read},
                        {accelerate_is, accelerate_read},
                        {megatron_is, megatron_read},
                        {xla_is, xla_read},
                        {fsdp2_is, fsdp2_read}};

const struct import_kind *import_strategy_kinds(void) {
    return strategy_kinds;
}

const struct import_kind *import_model_kinds(void) {
    return model_kinds;
}

const struct import_kind *import_cluster_kinds(void) {
    return cluster_kinds;
}

/* "a, b and c", of those that take `options`. */
static void list_kinds(const struct import_kind *kinds, unsigned options, char *out, size_t room) {
    size_t n = 0, left = 0;
    *out = 0;
    for (const struct import_kind *k = kinds; k->name; k++)
        left += (k->options & options) == options;
    for (const struct import_kind *k = kinds; k->name && n < room; k++) {
        if ((k->options & options) != options)
            continue;
        left--;
        n += (size_t)snprintf(out + n, room - n, "%s%s", !n ? "" : left ? ", " : " and ", k->name);
    }
}

/* The position of the kind called `name`. */
static enum status find_kind(const struct import_kind *kinds, const char *name, size_t *out, struct error *err) {
    char list[256];
    for (size_t i = 0; kinds[i].name; i++)
        if (!strcmp(kinds[i].name, name)) {
            *out = i;
            return ST_OK;
        }
    list_kinds(kinds, 0, list, sizeof list);
    return error_set(err, ST_USAGE, "there is no kind \"%s\" of files; known are %s", name, list);
}

/* Refuse a file that is no text and of a form that no reader takes, and say what to do with it; ST_OK: of none of
 * these forms. */
static enum status check_form(const struct source *source, const struct import_kind *kinds, struct error *err) {
    static const struct {
        const char *mark, *model, *cluster;
    } forms[] = {
        {"\x1f\x8b", "compressed; gunzip it first, \"-\" being standard input",
         "compressed; gunzip it first, \"-\" being standard input"},
        {"PAR1",
         "a Parquet table, which no kind is; of a table of tensors, write the columns tensor, elements and ready_us or "
         "ready_gap_us as CSV (kind espresso)",
         "a Parquet table, which no kind is; give the logs and host files that it was made from"},
        {"PK\3\4", "a zip archive, as torch.save writes; save the tensors by safetensors.torch.save_file instead",
         "a zip archive; unpack it first"}};
    if (text_valid_bytes(source->text, source->n) == source->n) /* a host may be called PAR1 */
        return ST_OK;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (source->n >= strlen(forms[i].mark) && !memcmp(source->text, forms[i].mark, strlen(forms[i].mark)))
            return error_at(err, ST_INVALID, source->name, "byte 0: %s",
                            kinds == model_kinds ? forms[i].model : forms[i].cluster);
    return ST_OK;
}

static enum status check_text(const struct source *source, const struct import_kind *kinds, struct error *err) {
    enum status st = check_form(source, kinds, err);
    return st ? st : source_check_text(source, err);
}

static enum status unknown(const struct source *source, const struct import_kind *kinds, struct error *err) {
    char list[256];
    enum status st = check_form(source, kinds, err);
    if (st)
        return st;
    list_kinds(kinds, 0, list, sizeof list);
    return error_at(err, ST_INVALID, source->name, "byte 0: of no known kind; say which of %s it is with --from", list);
}

static enum status refuse_own(const struct source *source, struct error *err) {
    return error_at(err, ST_INVALID, source->name, "a model file already; use it as it is");
}

static enum status check_settings(const struct import_settings *s, struct error *err) {
    const struct {
        const char *option;
        double value;
    } numbers[] = {{"batch", s->batch},
                   {"forward-ratio", s->forward_ratio},
                   {"tflops", s->tflops},
                   {"positions", s->positions},
                   {"nic-gbit-per-s", s->nic_gbit_per_s},
                   {"nic-latency-us", s->nic_latency_us},
                   {"device-link-gbyte-per-s", s->device_link_gbyte_per_s}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < 0)
            return error_set(err, ST_USAGE, "--%s %g: give a number above 0", numbers[i].option, numbers[i].value);
    return s->devices <= MAX_DEVICES ? ST_OK : error_set(err, ST_USAGE, "--devices: at most %d", MAX_DEVICES);
}

/* Refuse options that the file's kind does not take. `taken` are those that it takes, `kinds` the table of its kind. */
static enum status check_options(const struct source *source, const struct import_kind *kinds, unsigned taken,
                                 const struct import_settings *s, struct error *err) {
    const struct {
        const char *name;
        unsigned option;
        bool given;
    } options[] = {{"forward-ratio", IMPORT_FORWARD_RATIO, s->forward_ratio > 0},
                   {"tflops", IMPORT_TFLOPS, s->tflops > 0},
                   {"positions", IMPORT_POSITIONS, s->positions > 0},
                   {"devices", IMPORT_DEVICES, s->devices > 0}};
    char list[256];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].given || taken & options[i].option)
            continue;
        list_kinds(kinds, options[i].option, list, sizeof list);
        return error_at(err, ST_USAGE, source->name, "this kind of file takes no --%s; it is for %s", options[i].name,
                        list);
    }
    return ST_OK;
}

/* A description from standard input has no name of its own: note which one it got, and how to give another. */
static bool note_name(const struct source *source, const struct import_settings *settings, const cJSON *json,
                      struct notes *notes) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "name"));
    if (settings->name || !source_is_standard_input(source) || !name ||
        strncmp(name, SOURCE_NAMELESS, strlen(SOURCE_NAMELESS)) != 0)
        return true;
    return notes_add(notes, "standard input has no name: the description is called \"%s\"; --name gives another", name);
}

static enum status finish(const struct source *source, const struct import_settings *settings, cJSON *json,
                          struct notes *notes, cJSON **out, struct error *err) {
    if (!note_name(source, settings, json, notes)) {
        cJSON_Delete(json);
        return error_no_memory(err);
    }
    *out = json;
    return ST_OK;
}

enum status import_model(const struct source *source, const char *kind, const struct import_settings *settings,
                         struct notes *notes, cJSON **out, struct error *err) {
    const struct source text = source_behind_mark(source);
    size_t k = 0;
    cJSON *json = NULL;
    enum status st = check_settings(settings, err);
    if (!st && kind)
        st = find_kind(model_kinds, kind, &k, err);
    if (st)
        return st;
    if (!kind) {
        while (model_kinds[k].name && !model_readers[k].is(model_readers[k].binary ? source : &text))
            k++;
        if (!model_kinds[k].name)
            return strstr(source->text, "\"syncopate.model/") ? refuse_own(source, err)
                                                              : unknown(source, model_kinds, err);
    }
    st = check_options(source, model_kinds, model_kinds[k].options, settings, err);
    if (!st && !model_readers[k].binary)
        st = check_text(source, model_kinds, err);
    if (!st)
        st = model_readers[k].read(model_readers[k].binary ? source : &text, settings, notes, &json, err);
    return st ? st : finish(source, settings, json, notes, out, err);
}

/* *options grows by what the file's kind takes. */
static enum status add_source(const struct source *source, const char *kind, const struct import_settings *settings,
                              struct notes *notes, struct cluster_draft *draft, unsigned *options, struct error *err) {
    const struct source text = source_behind_mark(source);
    size_t k = 0;
    enum status st = check_text(source, cluster_kinds, err);
    if (!st && kind)
        st = find_kind(cluster_kinds, kind, &k, err);
    if (st)
        return st;
    while (!kind && cluster_kinds[k].name && !cluster_readers[k].is(&text))
        k++;
    *options |= cluster_kinds[k].options;
    return cluster_kinds[k].name ? cluster_readers[k].read(&text, settings, notes, draft, err)
                                 : unknown(source, cluster_kinds, err);
}

enum status import_cluster(size_t n, const struct source *sources, const char *kind,
                           const struct import_settings *settings, struct notes *notes, cJSON **out,
                           struct error *err) {
    struct cluster_draft draft;
    unsigned options = 0;
    cJSON *json = NULL;
    enum status st = check_settings(settings, err);
    cluster_draft_init(&draft, notes->arena);
    for (size_t i = 0; i < n && !st; i++)
        st = add_source(&sources[i], kind, settings, notes, &draft, &options, err);
    if (!st)
        st = check_options(&sources[0], cluster_kinds, options, settings, err);
    if (st) {
        cluster_draft_release(&draft);
        return st;
    }
    st = cluster_draft_finish(&draft, &sources[0], settings, notes, &json, err);
    return st ? st : finish(&sources[0], settings, json, notes, out, err);
}

enum status import_measurements(const struct source *cluster, size_t n, const struct measurement *measured,
                                struct notes *notes, cJSON **out, struct error *err) {
    const struct import_settings none = {0};
    struct cluster_draft draft;
    cluster_draft_init(&draft, notes->arena);
    enum status st = source_check_text(cluster, err);
    if (!st)
        st = cluster_file_read(cluster, &none, notes, &draft, err);
    for (size_t i = 0; i < n && !st; i++)
        st = cluster_draft_measurement(&draft, &measured[i]) ? ST_OK : error_no_memory(err);
    if (!st)
        return cluster_draft_finish(&draft, cluster, &none, notes, out, err);
    cluster_draft_release(&draft);
    return st;
}

enum status import_strategy(const struct source *source, const char *kind, const struct model *model,
                            const struct cluster *cluster, struct notes *notes, struct strategy *out,
                            struct error *err) {
    const struct source text = source_behind_mark(source);
    struct strategy_for wanted = {model, cluster, source_stem(source, notes->arena)};
    size_t k = 0;
    enum status st = wanted.name ? check_text(source, strategy_kinds, err) : error_no_memory(err);
    if (!st && kind)
        st = find_kind(strategy_kinds, kind, &k, err);
    if (st)
        return st;
    while (!kind && strategy_kinds[k].name && !strategy_readers[k].is(&text))
        k++;
    return strategy_kinds[k].name ? strategy_readers[k].read(&text, &wanted, notes, out, err)
                                  : unknown(source, strategy_kinds, err);
}
