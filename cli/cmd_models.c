/* syncopate models and syncopate clusters: what a service has of either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_records.h"
#include "cli/table.h"

/* A service's collection; word: the singular. */
struct kind {
    const char *command, *word, *example;
};
static const struct kind models = {"models", "model", "resnet50"}, clusters = {"clusters", "cluster", "lab-4x1g"};

/* ---- list ---- */

struct listing {
    struct table table;
    bool json;
    uint64_t n;
};

static enum status list_item(void *context, const cJSON *item, bool *done, struct error *err) {
    struct listing *l = context;
    (void)done;
    l->n++;
    if (l->json) {
        cJSON *copy = cJSON_Duplicate(item, true);
        return output_line(copy, copy != NULL, err);
    }
    table_cell(&l->table, "%s", remote_text(item, "name"));
    table_cell(&l->table, "%.12s", remote_text(item, "id"));
    table_cell(&l->table, "%.16s", remote_text(item, "created"));
    return ST_OK;
}

static enum status list_objects(const struct kind *kind, const struct remote_options *remote, bool json,
                                struct error *err) {
    struct client *client;
    struct listing listing = {.json = json};
    char path[64];
    enum status st = remote_open(remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    table_init(&listing.table, (const char *const[]){"NAME", "ID", "ADDED", NULL});
    snprintf(path, sizeof path, "/api/v1/%s?page_size=1000", kind->command);
    st = remote_each(client, path, list_item, &listing, err);
    if (!st && !json && listing.n)
        table_print(&listing.table, stdout);
    if (!st && !listing.n)
        log_info("no %s yet; add one: syncopate %s add %s", kind->command, kind->command, kind->example);
    table_release(&listing.table);
    client_close(client);
    return st;
}

static enum status list_command(const struct kind *kind, int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    bool json = false;
    char usage[64], about[64];
    const struct option options[] = {
        REMOTE_OPTIONS(remote), {"json", OPTION_FLAG, &json, NULL, "print one JSON object a line"}, {0}};
    snprintf(usage, sizeof usage, "%s list [options]", kind->command);
    snprintf(about, sizeof about, "The %s that a service has, oldest first.", kind->command);
    const struct command_line line = {.usage = usage, .about = about, .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_required(&remote, kind->command, err);
    return st ? st : list_objects(kind, &remote, json, err);
}

/* ---- show ---- */

/* Members come sorted; people look for these first. */
static void names_first(cJSON *json) {
    static const char *const first[] = {"name", "schema"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(json, first[i]);
        if (member)
            cJSON_InsertItemInArray(json, 0, member);
    }
}

static enum status show_object(const struct kind *kind, const struct remote_options *remote, const char *word,
                               const char *out, struct error *err) {
    struct client *client;
    cJSON *json = NULL;
    enum status st = remote_open(remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    char *escaped = client_escape(client, word);
    st = escaped ? remote_get(client, &json, err, "/api/v1/%s/%s", kind->command, escaped) : error_no_memory(err);
    names_first(json);
    char *text = st ? NULL : json_pretty(json);
    if (!st)
        st = text ? json_write_file(out, text, err) : error_no_memory(err);
    free(text);
    free(escaped);
    cJSON_Delete(json);
    client_close(client);
    return st;
}

static enum status show_command(const struct kind *kind, int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    const char *out = "-";
    char usage[64], about[96];
    const struct option options[] = {
        REMOTE_OPTIONS(remote), {"out", OPTION_TEXT, &out, "FILE", "where to (default: standard output)"}, {0}};
    snprintf(usage, sizeof usage, "%s show NAME [options]", kind->command);
    snprintf(about, sizeof about, "Print a service's description of a %s, as a file that every command reads.",
             kind->word);
    const struct command_line line = {
        .usage = usage, .about = about, .options = options, .min_arguments = 1, .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_required(&remote, kind->command, err);
    if (!st)
        st = output_check(out, err);
    return st ? st : show_object(kind, &remote, arguments.items[0], out, err);
}

/* ---- add ---- */

/* Checked here first, so that the place of a mistake is one in the file. */
static enum status read_checked(const struct kind *kind, const char *path, cJSON **out, struct error *err) {
    struct model model;
    struct cluster cluster;
    enum status st = kind == &models ? model_read_file(path, &model, err) : cluster_read_file(path, &cluster, err);
    if (st)
        return st;
    *out = kind == &models ? model_write(&model) : cluster_write(&cluster);
    if (kind == &models)
        model_release(&model);
    else
        cluster_release(&cluster);
    return *out ? ST_OK : error_no_memory(err);
}

static enum status add_object(const struct kind *kind, const struct remote_options *remote, const char *word,
                              struct error *err) {
    struct client *client;
    cJSON *json = NULL, *answer = NULL;
    char path[4096], collection[32];
    enum status st = inputs_find(word, kind->command, path, sizeof path, err);
    if (!st)
        st = read_checked(kind, path, &json, err);
    if (!st)
        st = remote_open(remote, REMOTE_TRIES, NULL, &client, err);
    if (st) {
        cJSON_Delete(json);
        return st;
    }
    snprintf(collection, sizeof collection, "/api/v1/%s", kind->command);
    st = remote_post(client, collection, json, true, &answer, err);
    if (!st)
        text_print(stdout, "%s\n", remote_text(answer, "id"));
    cJSON_Delete(answer);
    client_close(client);
    return st;
}

static enum status add_command(const struct kind *kind, int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    char usage[64], about[192];
    const struct option options[] = {REMOTE_OPTIONS(remote), {0}};
    snprintf(usage, sizeof usage, "%s add FILE [options]", kind->command);
    snprintf(about, sizeof about,
             "Give a service the description of a %s, from a file or by the name of one that comes with\n"
             "syncopate, and print its id. One that it has already is the same one.",
             kind->word);
    const struct command_line line = {
        .usage = usage, .about = about, .options = options, .min_arguments = 1, .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_required(&remote, kind->command, err);
    return st ? st : add_object(kind, &remote, arguments.items[0], err);
}

/* ---- the two ---- */

static enum status models_list(int argc, char **argv, struct error *err) {
    return list_command(&models, argc, argv, err);
}
static enum status models_show(int argc, char **argv, struct error *err) {
    return show_command(&models, argc, argv, err);
}
static enum status models_add(int argc, char **argv, struct error *err) {
    return add_command(&models, argc, argv, err);
}
static enum status clusters_list(int argc, char **argv, struct error *err) {
    return list_command(&clusters, argc, argv, err);
}
static enum status clusters_show(int argc, char **argv, struct error *err) {
    return show_command(&clusters, argc, argv, err);
}
static enum status clusters_add(int argc, char **argv, struct error *err) {
    return add_command(&clusters, argc, argv, err);
}

enum status cmd_models(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {{"list", models_list, "list every model, oldest first"},
                                          {"show", models_show, "print a model's description"},
                                          {"add", models_add, "give the service a model"},
                                          {0}};
    return commands_run(rows, "models", "The models that a service has.", argc, argv, err);
}

enum status cmd_clusters(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {{"list", clusters_list, "list every cluster, oldest first"},
                                          {"show", clusters_show, "print a cluster's description"},
                                          {"add", clusters_add, "give the service a cluster"},
                                          {0}};
    return commands_run(rows, "clusters", "The clusters that a service has.", argc, argv, err);
}
