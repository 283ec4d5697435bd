/* Slots follow the worker's rank arithmetic: on each node its devices and then, if it serves, one server. Lines that
 * are not JSON objects are not the worker's and are passed over. */
#include "trial-runner/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "trial-runner/lab.h"
#include "trial-runner/mpirun.h"

enum { START_LIMIT_S = 30, MAX_ARGUMENTS = 32 };

static const char *const place_names[] = {"local", "lab", "mpirun"};

bool trial_runner_parse(const char *word, enum trial_place *out) {
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, place_names[i]) != 0)
            continue;
        *out = (enum trial_place)i;
        return true;
    }
    return false;
}

const char *trial_runner_name(enum trial_place place) {
    return place_names[place];
}

enum status launch_worker_path(struct arena *arena, const char **out, struct error *err) {
    const char *set = getenv("SYNCOPATE_WORKER");
    char self[4096] = "";
    if (!set && readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return error_set(err, ST_ENVIRONMENT, "cannot read /proc/self/exe; set SYNCOPATE_WORKER");
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    const char *path = set ? arena_strdup(arena, set) : arena_printf(arena, "%s/syncopate-worker-mpi", self);
    if (!path)
        return error_no_memory(err);
    if (access(path, X_OK) != 0)
        return error_set(err, ST_NOT_FOUND,
                         "no worker program at %s; build it with an MPI installed, or set SYNCOPATE_WORKER", path);
    *out = path;
    return ST_OK;
}

/* The first word of each line of the host file, "#" beginning a comment: names[i] is where node i is. What the file
 * says of slots does not count, because how many ranks a node gets follows from the plan. */
static enum status read_host_file(const char *path, uint32_t n, struct arena *arena, const char ***out,
                                  struct error *err) {
    char line[1024], name[256];
    uint32_t found = 0;
    const char **names = arena_alloc(arena, n, sizeof *names);
    if (!names)
        return error_no_memory(err);
    FILE *file = fopen(path, "r");
    if (!file)
        return error_set(err, ST_NOT_FOUND, "%s: %m", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#")] = '\0';
        if (sscanf(line, "%255s", name) != 1)
            continue;
        if (found < n && !(names[found] = arena_strdup(arena, name)))
            break;
        found++;
    }
    fclose(file);
    if (found != n)
        return error_set(err, ST_INVALID,
                         "%s names %u hosts; the cluster has %u nodes: give one a line, in their order", path, found,
                         n);
    *out = names;
    return ST_OK;
}

static enum status list_hosts(const struct launch_options *options, struct arena *arena, struct mpirun_config *config,
                              struct error *err) {
    const struct cluster *cluster = options->cluster;
    struct mpirun_host *hosts = arena_alloc(arena, cluster->n_nodes, sizeof *hosts);
    if (!hosts)
        return error_no_memory(err);
    const char **names = NULL;
    if (options->runner->place == TRIAL_MPIRUN && options->runner->host_file) {
        enum status status = read_host_file(options->runner->host_file, cluster->n_nodes, arena, &names, err);
        if (status != ST_OK)
            return status;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        unsigned slots = cluster->nodes[i].devices + (options->serves && options->serves[i] ? 1 : 0);
        if (slots > 0)
            hosts[n++] = (struct mpirun_host){names ? names[i] : cluster->nodes[i].name, slots};
    }
    config->n_hosts = n;
    config->hosts = hosts;
    return ST_OK;
}

enum status launch_lab_of(const struct cluster *cluster, struct arena *arena, struct lab_config *out,
                          struct error *err) {
    struct lab_node *nodes = arena_alloc(arena, cluster->n_nodes, sizeof *nodes);
    struct lab_link *links = arena_alloc(arena, cluster->n_links, sizeof *links);
    if (!nodes || !links)
        return error_no_memory(err);
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        nodes[i] = (struct lab_node){cluster->nodes[i].name, cluster->nodes[i].nic_gbit_per_s};
    for (uint32_t i = 0; i < cluster->n_links; i++)
        links[i] = (struct lab_link){cluster->links[i].from, cluster->links[i].to, cluster->links[i].gbit_per_s};
    *out = (struct lab_config){cluster->name, cluster->n_nodes, nodes, cluster->n_links, links};
    return ST_OK;
}

static bool take_line(void *context, enum process_stream stream, const char *text, size_t n) {
    const struct launch_options *options = context;
    if (stream != PROCESS_STDOUT || n == 0 || text[0] != '{')
        return true;
    cJSON *line = cJSON_ParseWithLength(text, n);
    const char *event = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "event"));
    bool go_on = event ? options->on_event(options->context, event, line) : true;
    cJSON_Delete(line);
    return go_on;
}

static enum status command(const struct launch_options *options, struct arena *arena, struct mpirun_config *config,
                           struct error *err) {
    static const enum mpirun_place places[] = {MPIRUN_LOCAL, MPIRUN_LAB, MPIRUN_HOST_FILE};
    const char **argv = arena_alloc(arena, MAX_ARGUMENTS + 2, sizeof *argv);
    if (!argv)
        return error_no_memory(err);
    enum status status = launch_worker_path(arena, &argv[0], err);
    for (size_t i = 0; status == ST_OK && i < MAX_ARGUMENTS && options->arguments[i]; i++)
        argv[i + 1] = options->arguments[i];
    *config = (struct mpirun_config){
        .place = places[options->runner->place], .interface = options->runner->interface, .argv = argv};
    return status != ST_OK ? status : list_hosts(options, arena, config, err);
}

enum status launch_workers(const struct launch_options *options, struct process_result *out, struct error *err) {
    struct arena arena = {0};
    struct mpirun_config config;
    struct lab_config lab = {0};
    enum status status = command(options, &arena, &config, err);
    if (status == ST_OK)
        status = launch_lab_of(options->cluster, &arena, &lab, err);
    const struct process_options process = {
        .timeout_s = options->time_limit_s,
        .first_line_timeout_s = START_LIMIT_S,
        .cancel = options->cancel,
        .on_line = take_line,
        .context = (void *)options,
    };
    if (status == ST_OK)
        status = mpirun_run(&config, &lab, &process, out, NULL, err);
    arena_release(&arena);
    return status;
}

enum status launch_judge(const struct process_result *result, const char *what, struct error *err) {
    static const char sign[] = "mpirun noticed that ";
    const char *found = strstr(result->last_words, sign);
    enum status status = process_judge(result, what, err);
    if (status != ST_TRIAL || !found)
        return status;
    const char *sentence = found + sizeof sign - 1;
    return error_set(err, ST_TRIAL, "%s failed: %.*s", what, (int)strcspn(sentence, "\n"), sentence);
}
