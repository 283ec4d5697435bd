/* syncopate strategy export: a strategy in the form that a training framework takes, and the best strategy of a
 * service's session, as a file or in such a form. Words about what a form cannot say go to standard error. Nothing is
 * written when --strict makes them an error, or when the job would need other memory than the strategy promises, unless
 * --accept says that the job does that part by itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_session.h"
#include "cli/table.h"
#include "interop/export/export.h"
#include "interop/export/limits.h"

/* ---- writing ---- */

static bool is_folder(const char *path) {
    struct stat st;
    const size_t n = strlen(path);
    return (n && path[n - 1] == '/') || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

static bool is_among(const struct export *export, const char *name) {
    for (uint32_t i = 0; i < export->n_files; i++)
        if (!strcmp(export->files[i].name, name))
            return true;
    return false;
}

/* Remove from a form's own folder the files of earlier exports: all that it can have but those of `kept`, NULL: all. */
static enum status remove_others(const char *folder, const struct exporter *exporter, const struct export *kept,
                                 bool *removed, struct error *err) {
    static const struct export none;
    char path[4096];
    *removed = false;
    for (const char *const *name = exporter->files; *name; name++) {
        struct stat st;
        if (is_among(kept ? kept : &none, *name) ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, *name) >= sizeof path || lstat(path, &st))
            continue;
        if (unlink(path))
            return error_at(err, ST_ENVIRONMENT, path, "it is of an earlier export, and cannot be removed: %s",
                            strerror(errno));
        *removed = true;
    }
    if (*removed && !kept)
        (void)rmdir(folder); /* unless something else is there */
    return ST_OK;
}

static enum status write_into(const char *folder, const struct export *export, struct error *err) {
    char path[4096];
    enum status st = paths_make_folder(folder, err);
    for (uint32_t i = 0; i < export->n_files && !st; i++) {
        const size_t n = strlen(folder);
        snprintf(path, sizeof path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", export->files[i].name);
        st = file_write(path, export->files[i].n, export->files[i].text, err);
    }
    return st;
}

/* Write one file to `out` or to standard output, several into a folder. */
static enum status write_export(const char *out, const struct export *export, struct error *err) {
    const struct export_file *first = &export->files[0];
    if (out && (is_folder(out) || export->n_files > 1))
        return write_into(out, export, err);
    if (export->n_files > 1)
        return error_set(err, ST_USAGE, "this form has %u files, %s and others: give --out DIR", export->n_files,
                         first->name);
    return file_write(out ? out : "-", first->n, first->text, err);
}

/* ---- what gets lost ---- */

/* The words of losses without those `accepted`, or `none`. */
static void losses_text(const struct export *export, uint32_t accepted, const char *none, char *out, size_t size) {
    const uint32_t losses = export_unaccepted(export_losses(export), accepted);
    size_t used = 0;
    for (uint32_t i = 0; i < export->n_notes && used < size; i++)
        if (losses >> export->notes[i].loss & 1)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                     export_loss_word(export->notes[i].loss));
    if (!used)
        snprintf(out, size, "%s", none);
}

/* `refused`: why nothing was written, or NULL. */
static cJSON *export_json(const struct exporter *exporter, const struct export *export, const char *refused,
                          bool *whole) {
    cJSON *json = cJSON_CreateObject();
    *whole = cJSON_AddStringToObject(json, "to", exporter->name) &&
             (!refused || cJSON_AddStringToObject(json, "refused", refused)) && *whole;
    cJSON *files = cJSON_AddArrayToObject(json, "files"), *losses = cJSON_AddArrayToObject(json, "not_expressed");
    for (uint32_t i = 0; i < export->n_files && !refused; i++) {
        cJSON *name = cJSON_CreateString(export->files[i].name);
        *whole = cJSON_AddItemToArray(files, name) && *whole;
    }
    for (uint32_t i = 0; i < export->n_notes; i++) {
        cJSON *note = cJSON_CreateObject();
        *whole = cJSON_AddStringToObject(note, "what", export_loss_word(export->notes[i].loss)) &&
                 cJSON_AddStringToObject(note, "why", export->notes[i].text) && cJSON_AddItemToArray(losses, note) &&
                 *whole;
    }
    return json;
}

/* ---- one form, all forms ---- */

struct words {
    struct remote_options remote;
    const char *model, *cluster, *to, *out, *accept;
    uint32_t accepted; /* losses: a set of 1u << EXPORT_LOSS_... */
    uint64_t memory_bytes;
    bool strict, json;
};

/* A strategy with what it belongs to. */
struct subject {
    struct inputs inputs;
    struct strategy strategy;
    struct export_limits limits; /* of its session; n = 0: none */
};

/* The losses that refuse nothing in this form. */
static uint32_t accepted_in(const struct words *words, const struct subject *s, const struct exporter *form) {
    return words->accepted | export_limits_accepted(&s->limits, form);
}

static enum status export_one(const struct words *words, const struct subject *s, struct error *err) {
    const struct exporter *exporter = exporters_find(words->to);
    struct export export;
    char losses[512];
    if (!exporter)
        return error_set(err, ST_USAGE, "there is no form \"%s\"; see: syncopate strategy export --help", words->to);
    if (words->json && !words->out)
        return error_set(err, ST_USAGE, "--json tells about files: give --out as well");
    enum status st = export_build(exporter, &s->strategy, &s->inputs.model, &s->inputs.cluster, &export, err);
    if (st)
        return st;
    const uint32_t accepted = accepted_in(words, s, exporter);
    losses_text(&export, accepted, "", losses, sizeof losses);
    st = export_check_accepted(exporter, &export, accepted, &s->strategy, &s->inputs.model, &s->inputs.cluster, err);
    if (!st && words->strict && *losses)
        st = error_set(err, ST_INFEASIBLE, "%s cannot say everything that %s does: %s", exporter->name,
                       s->strategy.name, losses);
    else if (!st)
        st = write_export(words->out, &export, err);
    for (uint32_t i = 0; i < export.n_notes && !st; i++)
        log_warn("%s cannot say: %s: %s", exporter->name, export_loss_word(export.notes[i].loss), export.notes[i].text);
    if (!st && words->json) {
        bool whole = true;
        cJSON *json = export_json(exporter, &export, NULL, &whole);
        st = output_line(json, whole, err);
    }
    export_release(&export);
    return st;
}

/* Add what became of a form to the table and to the list. `refused`: as export_json. */
static enum status add_row(const struct exporter *exporter, const struct export *export, const char *refused,
                           struct table *table, cJSON *list, struct error *err) {
    char files[1024] = "-", losses[512];
    bool whole = true;
    losses_text(export, 0, "-", losses, sizeof losses);
    for (size_t at = 0, i = 0; i < export->n_files && !refused && at < sizeof files; i++)
        at += (size_t)snprintf(files + at, sizeof files - at, "%s%s", i ? " " : "", export->files[i].name);
    table_cell(table, "%s", exporter->name);
    table_cell(table, "%s", files);
    table_cell(table, "%s%s", losses, refused ? " (refused)" : "");
    cJSON *json = export_json(exporter, export, refused, &whole);
    if (whole && cJSON_AddItemToArray(list, json))
        return ST_OK;
    cJSON_Delete(json);
    return error_no_memory(err);
}

/* Write one form into a folder of its own, unless the form is refused. Files of earlier exports are removed from the
 * folder, so that nobody takes them for this strategy's. *removed: there were some. */
static enum status export_row(const struct words *words, const struct exporter *exporter, const struct subject *s,
                              struct table *table, cJSON *list, bool *removed, struct error *err) {
    const struct model *model = &s->inputs.model;
    const struct cluster *cluster = &s->inputs.cluster;
    struct export export;
    struct error why = {0};
    char folder[4000];
    *removed = false;
    enum status st = export_build(exporter, &s->strategy, model, cluster, &export, err);
    if (st)
        return st;
    snprintf(folder, sizeof folder, "%s/%s", words->out, exporter->name);
    const enum status given =
        export_check_accepted(exporter, &export, accepted_in(words, s, exporter), &s->strategy, model, cluster, &why);
    if (given && given != ST_INFEASIBLE)
        st = error_pass(err, &why);
    else
        st = remove_others(folder, exporter, given ? NULL : &export, removed, err);
    if (!st && !given)
        st = write_into(folder, &export, err);
    if (!st)
        st = add_row(exporter, &export, given ? ERROR_TEXT(&why) : NULL, table, list, err);
    export_release(&export);
    return st;
}

static enum status write_summary(const struct words *words, const struct subject *s, cJSON *summary,
                                 struct error *err) {
    char path[4096];
    const bool whole = cJSON_AddStringToObject(summary, "strategy", s->strategy.id.hex) &&
                       cJSON_AddStringToObject(summary, "model", s->inputs.model.id.hex) &&
                       cJSON_AddStringToObject(summary, "cluster", s->inputs.cluster.id.hex);
    char *text = whole ? json_pretty(summary) : NULL;
    snprintf(path, sizeof path, "%s/summary.json", words->out);
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return st;
}

static enum status export_all(const struct words *words, const struct subject *s, struct error *err) {
    struct table table;
    char cleared[EXPORT_LIMITS_ROOM] = ""; /* names of forms */
    size_t n;
    const struct exporter *rows = exporters_list(&n);
    if (!words->out || !strcmp(words->out, "-"))
        return error_set(err, ST_USAGE, "--to all writes many files: give --out DIR");
    if (words->strict)
        return error_set(err, ST_USAGE, "--strict is for one form; what each cannot say is in summary.json");
    enum status st = paths_make_folder(words->out, err);
    if (st)
        return st;
    cJSON *summary = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(summary, "exports");
    table_init(&table, (const char *const[]){"FORM", "FILES", "CANNOT SAY", NULL});
    for (size_t i = 0; i < n && !st; i++) {
        bool removed;
        st = export_row(words, &rows[i], s, &table, list, &removed, err);
        if (removed)
            snprintf(cleared + strlen(cleared), sizeof cleared - strlen(cleared), "%s%s", *cleared ? ", " : "",
                     rows[i].name);
    }
    if (*cleared)
        log_warn("removed from %s files of earlier exports, of the forms %s", words->out, cleared);
    if (!st)
        st = write_summary(words, s, summary, err);
    if (!st && words->json) {
        st = output_line(summary, true, err);
        summary = NULL;
    } else if (!st) {
        table_print(&table, stdout);
    }
    table_release(&table);
    cJSON_Delete(summary);
    return st;
}

static enum status export_subject(const struct words *words, const struct subject *s, struct error *err) {
    return strcmp(words->to, "all") ? export_one(words, s, err) : export_all(words, s, err);
}

/* ---- a file here ---- */

static enum status export_local(const struct words *words, const char *strategy, struct error *err) {
    struct subject s = {0};
    if (!words->to)
        return error_set(err, ST_USAGE,
                         "give --to FORM for a strategy here, or --server URL for a session of a service");
    if (!words->model || !words->cluster)
        return error_set(err, ST_USAGE, "give --model and --cluster: whose variables and nodes the strategy names");
    enum status st = inputs_read(words->model, words->cluster, &s.inputs, err);
    if (!st)
        st = inputs_strategy_word(&s.inputs, strategy, words->memory_bytes, &s.strategy, err);
    if (!st)
        st = export_subject(words, &s, err);
    strategy_release(&s.strategy);
    inputs_release(&s.inputs);
    return st;
}

/* ---- the best of a session ---- */

static enum status write_strategy(const char *out, const cJSON *strategy, struct error *err) {
    char *text = json_pretty(strategy);
    enum status st = text ? json_write_file(out ? out : "-", text, err) : error_no_memory(err);
    free(text);
    return st;
}

static enum status export_fetched(struct client *client, const struct words *words, const char *session,
                                  const cJSON *strategy, struct error *err) {
    struct remote_session found;
    struct subject s = {0};
    enum status st = remote_session_find(client, session, &found, err);
    s.limits = st ? s.limits : found.limits;
    if (!st)
        st = remote_inputs_of_ids(client, found.model, found.cluster, &s.inputs, err);
    if (!st)
        st = strategy_read(strategy, "best", &s.inputs.model, &s.inputs.cluster, &s.strategy, err);
    if (!st)
        st = export_subject(words, &s, err);
    strategy_release(&s.strategy);
    inputs_release(&s.inputs);
    return st;
}

static enum status export_best(const struct words *words, const char *session, struct error *err) {
    struct client *client;
    cJSON *json = NULL;
    if (words->model || words->cluster || words->memory_bytes)
        return error_set(err, ST_USAGE,
                         "the session knows its model, cluster and memory: drop --model, --cluster and --memory");
    enum status st = remote_open(&words->remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    char *escaped = client_escape(client, session);
    st = escaped ? remote_get(client, &json, err, "/api/v1/sessions/%s/best", escaped) : error_no_memory(err);
    const cJSON *strategy = cJSON_GetObjectItemCaseSensitive(json, "strategy");
    if (!st && !strategy)
        st = error_set(err, ST_UNREACHABLE, "the service's answer has no strategy");
    if (!st)
        st = words->to ? export_fetched(client, words, session, strategy, err)
                       : write_strategy(words->out, strategy, err);
    free(escaped);
    cJSON_Delete(json);
    client_close(client);
    return st;
}

enum status strategy_export(int argc, char **argv, struct error *err) {
    struct words words = {0};
    const struct option options[] = {
        REMOTE_OPTIONS(words.remote),
        {"model", OPTION_TEXT, &words.model, "MODEL", "the model that the strategy is for"},
        {"cluster", OPTION_TEXT, &words.cluster, "CLUSTER", "the cluster that it is for"},
        STRATEGY_MEMORY_OPTION(words.memory_bytes),
        {"to", OPTION_TEXT, &words.to,
         "all|pytorch-ddp|pytorch-hook|fsdp2|fsdp2-code|horovod|deepspeed|megatron|torchtitan|accelerate|tensorflow|"
         "xla|"
         "byteps|bytescheduler|autodist|nccl",
         "the form; all: every form that is not refused in a folder of its own, and summary.json"},
        {"out", OPTION_TEXT, &words.out, "PATH",
         "a file, or a folder for forms of several files (default: standard output)"},
        {"accept", OPTION_TEXT, &words.accept, "LOSS,...",
         "what the form cannot express and your job does by itself, such as sharded,groups: no reason to refuse"},
        {"strict", OPTION_FLAG, &words.strict, NULL, "fail, and write nothing, when the form cannot say everything"},
        {"json", OPTION_FLAG, &words.json, NULL, "print what was written and what could not be said as JSON"},
        {0}};
    const struct command_line line = {
        .usage = "strategy export STRATEGY [--model MODEL --cluster CLUSTER --to FORM | --server URL] [--out PATH]",
        .about =
            "A strategy in the form that a training framework takes: options, an environment file, groups. STRATEGY\n"
            "is a file or the name of a baseline; with --server it is a session of the service, and its best\n"
            "strategy so far is written in the form, or without --to as a file that every command takes.\n"
            "What of the strategy a form cannot say is told on standard error. A form in which devices would keep\n"
            "other parts than the strategy says (\"sharded\"), and need other memory, is refused, unless your job\n"
            "does that part by itself: --accept sharded. So is one with which a device would need more than CLUSTER\n"
            "says it has. Of a service's session its own --export-to and --accept count as well.\n"
            "A session here is written by: syncopate tune --resume SESSION --out FILE.\n"
            "--to all removes files of earlier exports from the folders of its forms.",
        .examples =
            "  syncopate strategy export best.json --model resnet50 --cluster lab-4x1g --to pytorch-ddp\n"
            "  syncopate strategy export best.json --model resnet50 --cluster lab-4x1g --to all --out exports\n"
            "  syncopate strategy export fsdp-optimal --model bert-large --cluster v100-16x10g --memory 500MB \\\n"
            "      --to fsdp2 --out wrapped.json\n"
            "  syncopate --server http://127.0.0.1:8642 strategy export 20261121-084117-3fa2n9kq4xw81d7v \\\n"
            "      --out best.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && words.accept && !words.to)
        st = error_set(err, ST_USAGE, "--accept is about --to: name the form");
    if (!st && words.accept)
        st = export_losses_parse(words.accept, &words.accepted, err);
    if (!st && words.out)
        st = output_check(words.out, err);
    if (st)
        return st;
    return words.remote.server ? export_best(&words, arguments.items[0], err)
                               : export_local(&words, arguments.items[0], err);
}
