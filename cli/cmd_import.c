/* syncopate import: models, clusters and strategies from the files of other tools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "interop/import/import.h"

/* What both subcommands share. */
struct request {
    const char *kind, *out;
    struct import_settings settings;
    struct arguments arguments;
};

/* `words` and a line a kind; NULL when memory is out. Lives in `arena`. */
static const char *about(struct arena *arena, const char *words, const struct import_kind *kinds) {
    for (; words && kinds->name; kinds++)
        words = arena_printf(arena, "%s\n  %-16s %s", words, kinds->name, kinds->summary);
    return words;
}

static void say_notes(const struct notes *notes) {
    for (const struct note *note = notes->first; note; note = note->next)
        log_info("%s", note->text);
}

static enum status write_description(cJSON *json, const char *out, struct error *err) {
    char *text = json_pretty(json);
    enum status st = text ? json_write_file(out, text, err) : error_no_memory(err);
    free(text);
    return st;
}

static enum status parse(const struct command_line *line, int argc, char **argv, struct request *request,
                         struct error *err) {
    if (!line->about)
        return error_no_memory(err);
    enum status st = options_parse(line, argc, argv, &request->arguments, err);
    if (!st && strcmp(request->out, "-") != 0)
        st = output_check(request->out, err);
    return st;
}

static enum status read_sources(const struct request *request, struct arena *arena, struct source **out,
                                struct error *err) {
    struct source *sources = arena_alloc(arena, request->arguments.n, sizeof *sources);
    enum status st = sources ? ST_OK : error_no_memory(err);
    for (size_t i = 0; i < request->arguments.n && !st; i++)
        st = source_read(request->arguments.items[i], arena, &sources[i], err);
    *out = sources;
    return st;
}

static enum status import_and_write(const struct request *request, bool cluster, struct arena *arena,
                                    struct error *err) {
    struct notes notes = {.arena = arena};
    struct source *sources;
    cJSON *json = NULL;
    enum status st = read_sources(request, arena, &sources, err);
    if (!st)
        st = cluster
                 ? import_cluster(request->arguments.n, sources, request->kind, &request->settings, &notes, &json, err)
                 : import_model(sources, request->kind, &request->settings, &notes, &json, err);
    if (!st)
        st = write_description(json, request->out, err);
    if (!st)
        say_notes(&notes);
    cJSON_Delete(json);
    return st;
}

static enum status import_model_command(int argc, char **argv, struct error *err) {
    struct arena arena = {0};
    struct request request = {.out = "-"};
    struct import_settings *s = &request.settings;
    const struct option options[] = {
        {"from", OPTION_TEXT, &request.kind, "KIND", "what the file is (default: recognised by its contents)"},
        {"out", OPTION_TEXT, &request.out, "FILE", "where the model goes (default: standard output)"},
        {"name", OPTION_TEXT, &s->name, "NAME", "of the model (default: from the file's name)"},
        {"batch", OPTION_NUMBER, &s->batch, "N", "samples a device in an iteration"},
        {"forward-ratio", OPTION_NUMBER, &s->forward_ratio, "R", "espresso: forward / backward time (default: 0.5)"},
        {"tflops", OPTION_NUMBER, &s->tflops, "T", "safetensors, onnx, graph-item: what a device sustains"},
        {"positions", OPTION_NUMBER, &s->positions, "N", "the same: tokens or pixels of a sample"},
        {0}};
    const struct command_line line = {
        .usage = "import model FILE [options]",
        .about =
            about(&arena,
                  "A model from another tool's file. What had to be assumed is said on standard error, and a model\n"
                  "of estimated times is called NAME-estimate. Kinds:",
                  import_model_kinds()),
        .examples = "  syncopate import model vgg16.graph.txt --batch 64 --out vgg16.json\n"
                    "  syncopate import model gpt2.safetensors --batch 4 --positions 1024 --tflops 40\n"
                    "  syncopate import model resnet50.onnx --batch 32 --tflops 20\n"
                    "  gunzip -c trace.json.gz | syncopate import model - --batch 32 --name mine",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    enum status st = parse(&line, argc, argv, &request, err);
    if (!st)
        st = import_and_write(&request, false, &arena, err);
    arena_release(&arena);
    return st;
}

static enum status import_cluster_command(int argc, char **argv, struct error *err) {
    struct arena arena = {0};
    struct request request = {.out = "-"};
    struct import_settings *s = &request.settings;
    const struct option options[] = {
        {"from", OPTION_TEXT, &request.kind, "KIND", "what the files are (default: recognised by their contents)"},
        {"out", OPTION_TEXT, &request.out, "FILE", "where the cluster goes (default: standard output)"},
        {"name", OPTION_TEXT, &s->name, "NAME", "of the cluster (default: from the first file's name)"},
        {"devices", OPTION_INTEGER, &s->devices, "N", "nccl-tests, osu: of a measurement that does not tell"},
        {"nic-gbit-per-s", OPTION_NUMBER, &s->nic_gbit_per_s, "R", "what a node's NICs carry together"},
        {"nic-latency-us", OPTION_NUMBER, &s->nic_latency_us, "T", "of a message between nodes"},
        {"device-link-gbyte-per-s", OPTION_NUMBER, &s->device_link_gbyte_per_s, "R", "between devices of a node"},
        {0}};
    const struct command_line line = {
        .usage = "import cluster FILE... [options]",
        .about =
            about(&arena,
                  "One cluster from files that each tell a part of it: nodes, rates, measured all-reduce. What is\n"
                  "an estimate is said on standard error. Kinds:",
                  import_cluster_kinds()),
        .examples = "  syncopate import cluster all_reduce_perf.log --out cluster.json\n"
                    "  syncopate import cluster hosts all_reduce_perf.log --nic-gbit-per-s 100\n"
                    "  syncopate import cluster cluster.json all_reduce_perf.log --out measured.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = MAX_ARGUMENTS};
    enum status st = parse(&line, argc, argv, &request, err);
    if (!st)
        st = import_and_write(&request, true, &arena, err);
    arena_release(&arena);
    return st;
}

/* What a strategy is for beside the file, and where it goes. */
struct wish {
    const char *kind, *out, *model, *cluster;
};

static enum status import_for(const struct wish *wish, const char *path, const struct inputs *inputs,
                              struct arena *arena, struct error *err) {
    struct notes notes = {.arena = arena};
    struct source source;
    struct strategy strategy;
    enum status st = source_read(path, arena, &source, err);
    if (!st)
        st = import_strategy(&source, wish->kind, &inputs->model, &inputs->cluster, &notes, &strategy, err);
    if (st)
        return st;
    cJSON *json = strategy_write(&strategy, &inputs->model, &inputs->cluster);
    st = json ? write_description(json, wish->out, err) : error_no_memory(err);
    if (!st)
        say_notes(&notes);
    cJSON_Delete(json);
    strategy_release(&strategy);
    return st;
}

static enum status import_strategy_command(int argc, char **argv, struct error *err) {
    struct arena arena = {0};
    struct wish wish = {.out = "-"};
    struct arguments arguments;
    struct inputs inputs;
    const struct option options[] = {
        {"model", OPTION_TEXT, &wish.model, "MODEL", "the model that is trained with the settings"},
        {"cluster", OPTION_TEXT, &wish.cluster, "CLUSTER", "the cluster that it is trained on"},
        {"from", OPTION_TEXT, &wish.kind, "KIND", "what the file is (default: recognised by its contents)"},
        {"out", OPTION_TEXT, &wish.out, "FILE", "where the strategy goes (default: standard output)"},
        {0}};
    const struct command_line line = {
        .usage = "import strategy FILE --model MODEL --cluster CLUSTER [options]",
        .about = about(&arena,
                       "The strategy that a framework makes of its settings, for a model on a cluster: the way back\n"
                       "from strategy export. What the settings have beside is said on standard error. Kinds:",
                       import_strategy_kinds()),
        .examples = "  syncopate import strategy ds_config.json --model llama-8b --cluster h100-64x8-bf16\n"
                    "  syncopate import strategy train.toml --model llama-8b --cluster h100-64x8-bf16 --out now.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    enum status st = line.about ? options_parse(&line, argc, argv, &arguments, err) : error_no_memory(err);
    if (!st && !(wish.model && wish.cluster))
        st = error_set(err, ST_USAGE, "give --model and --cluster: which groups the settings make depends on both");
    if (!st && strcmp(wish.out, "-") != 0)
        st = output_check(wish.out, err);
    if (!st)
        st = inputs_read(wish.model, wish.cluster, &inputs, err);
    if (!st) {
        st = import_for(&wish, arguments.items[0], &inputs, &arena, err);
        inputs_release(&inputs);
    }
    arena_release(&arena);
    return st;
}

enum status cmd_import(int argc, char **argv, struct error *err) {
    static const struct command commands[] = {
        {"model", import_model_command, "a model from a profile, a trace, or a file of weights"},
        {"cluster", import_cluster_command,
         "a cluster from nccl-tests, OSU, AutoDist, Slurm, nvidia-smi or host files"},
        {"strategy", import_strategy_command,
         "a strategy from the settings of DeepSpeed, torchtitan, Accelerate, Megatron, XLA or fsdp2.json"},
        {0}};
    return commands_run(commands, "import", "Models, clusters and strategies from the files of other tools.", argc,
                        argv, err);
}
