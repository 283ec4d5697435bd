/* Lines that are not JSON objects are not the worker's: they go to the log. What mpirun and srun say in such lines
 * about a rank that died is kept, because a rank's stack trace after it would push it out of
 * process_result.last_words. */
#include "trial-runner/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "trial-runner/hosts.h"
#include "trial-runner/lab.h"
#include "trial-runner/mpirun.h"
#include "trial-runner/passed.h"
#include "trial-runner/slurm.h"
#include "trial-runner/words.h"

enum { START_LIMIT_S = 60 };

/* ---- what is wanted ---- */

static const char *const launcher_names[] = {
#define X(name, word) word,
    LAUNCHER_TABLE(X)
#undef X
};

bool launcher_parse(const char *word, enum launcher_kind *out) {
    for (size_t i = 0; i < sizeof launcher_names / sizeof *launcher_names; i++) {
        if (strcmp(word, launcher_names[i]) != 0)
            continue;
        *out = (enum launcher_kind)i;
        return true;
    }
    return false;
}

const char *launcher_name(enum launcher_kind kind) {
    return launcher_names[kind];
}

const char *trial_worker_name(enum trial_worker worker) {
    return worker == TRIAL_WORKER_NCCL ? "nccl" : "mpi";
}

static bool has_gpus_only(const struct cluster *cluster) {
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0 && strcmp(cluster->nodes[i].device, "cpu") == 0)
            return false;
    return cluster->n_devices > 0;
}

static bool is_there(enum trial_worker worker) {
    struct arena arena = {0};
    const char *path;
    const struct launcher launcher = {.worker = worker};
    const bool there = !launch_worker_path(&launcher, &arena, &path, &(struct error){0});
    arena_release(&arena);
    return there;
}

/* A program at a path says by its name which it is. */
static bool is_for_nccl(const char *path) {
    static const char suffix[] = "-nccl";
    const size_t n = strlen(path), end = sizeof suffix - 1;
    return n >= end && !strcmp(path + n - end, suffix);
}

enum status launcher_choose(struct launcher *launcher, const char *word, const struct cluster *cluster,
                            struct error *err) {
    const bool remote = launcher->kind == LAUNCHER_MPIRUN || launcher->kind == LAUNCHER_SLURM;
    const char *variable = getenv("SYNCOPATE_WORKER");
    word = word ? word : variable && *variable ? variable : NULL;
    const bool path = word && strchr(word, '/'), said = word && !path;
    if (said && strcmp(word, "mpi") != 0 && strcmp(word, "nccl") != 0)
        return error_set(err, ST_USAGE, "--worker: \"%s\" is none of mpi, nccl, and no path of a program", word);
    const bool asked = said ? strcmp(word, "nccl") == 0 : launcher->share_gpu || (path && is_for_nccl(word));
    const bool for_gpus = !word && !asked && remote && has_gpus_only(cluster) && is_there(TRIAL_WORKER_NCCL);
    const enum trial_worker worker = asked || for_gpus ? TRIAL_WORKER_NCCL : TRIAL_WORKER_MPI;
    if (launcher->share_gpu && worker == TRIAL_WORKER_MPI)
        return error_set(err, ST_USAGE, "--share-gpu is for --worker nccl");
    launcher->worker = worker;
    launcher->for_gpus = for_gpus;
    launcher->program = path ? word : NULL;
    return ST_OK;
}

enum status launch_worker_path(const struct launcher *launcher, struct arena *arena, const char **out,
                               struct error *err) {
    const char *set = launcher->program;
    const bool nccl = launcher->worker == TRIAL_WORKER_NCCL;
    char self[4096] = "";
    if (!set && readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return error_set(err, ST_ENVIRONMENT,
                         "cannot read /proc/self/exe; name the worker by --worker or SYNCOPATE_WORKER");
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    const char *path = set ? arena_strdup(arena, set)
                           : arena_printf(arena, "%s/syncopate-worker-%s", self, trial_worker_name(launcher->worker));
    if (!path)
        return error_no_memory(err);
    if (access(path, X_OK) != 0)
        return error_set(
            err, ST_NOT_FOUND,
            "no worker program at %s; build it with %s installed, or name one by --worker or SYNCOPATE_WORKER", path,
            nccl ? "CUDA, NCCL and an MPI" : "an MPI");
    *out = path;
    return ST_OK;
}

const char *launch_scratch_parent(const struct launcher *launcher) {
    const char *temporary = getenv("TMPDIR");
    if (launcher->kind == LAUNCHER_LAB && temporary && lab_hides(temporary))
        return "/tmp";
    return launcher->kind == LAUNCHER_SLURM && access(".", W_OK) == 0 ? "." : NULL;
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
    *out = (struct lab_config){cluster->name, cluster->n_nodes, nodes, cluster->n_links, links, NULL, 0};
    return ST_OK;
}

/* ---- a run ---- */

struct launch {
    const struct launch_options *options;
    struct arena arena;
    size_t n_hosts;
    struct host *hosts;
    const char *const *argv;   /* the worker's */
    const char *const *export; /* variables, by name or as NAME=value */
    struct transcript transcript;
    struct launch_result result;
    bool refused; /* `said` tells why no run can start */
};

/* What mpirun, ssh and srun say. */
static const struct sign {
    const char *text;
    bool refused;  /* ranks cannot be started: not this strategy's fault */
    size_t before; /* so much of the sign is no part of the sentence */
} signs[] = {{"mpirun noticed that ", false, sizeof "mpirun noticed that " - 1},
             {"ssh: ", true, 0},
             {"Permission denied (", true, 0},
             {"not enough slots available", true, 0},
             {"could not find an executable", true, 0},
             {"unable to reliably start one or more daemons", true, 0},
             {"srun: error: Unable to ", true, 0},
             {"srun: fatal: ", true, 0},
             {"srun: unrecognized option", true, 0},
             {"srun: invalid option", true, 0},
             {" launch failed: ", true, 0},
             {"not built with SLURM's PMI support", true, 0},
             {": task", false, 0}}; /* "srun: error: n2: task 3: Killed" */

/* The first sentence is kept. A later one that says why nothing can start replaces one that does not. */
static void listen(struct launch *launch, const char *line) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *found = strstr(line, signs[i].text);
        if (!found || (i + 1 == sizeof signs / sizeof *signs && strncmp(line, "srun: error: ", 13) != 0))
            continue;
        if (*launch->result.said && (launch->refused || !signs[i].refused))
            return;
        snprintf(launch->result.said, sizeof launch->result.said, "%s",
                 signs[i].before ? found + signs[i].before : line);
        launch->refused = signs[i].refused;
        return;
    }
}

static bool take_event(const struct launch_options *options, const char *text, size_t n) {
    cJSON *line = cJSON_ParseWithLength(text, n);
    const char *event = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "event"));
    const bool go_on = event ? options->on_event(options->context, event, line) : true;
    cJSON_Delete(line);
    return go_on;
}

static bool take_line(void *context, enum process_stream stream, const char *text, size_t n) {
    struct launch *launch = context;
    const size_t label = launch->options->launcher->kind == LAUNCHER_SLURM ? slurm_label_length(text) : 0;
    if (stream == PROCESS_STDOUT && text[label] == '{')
        return take_event(launch->options, text + label, n - label);
    transcript_line(&launch->transcript, text, n);
    listen(launch, text);
    return true;
}

static enum status list_hosts(struct launch *launch, struct error *err) {
    const struct launcher *launcher = launch->options->launcher;
    const struct cluster *cluster = launch->options->cluster;
    const bool *serves = launch->options->serves;
    const bool remote = launcher->kind == LAUNCHER_MPIRUN || launcher->kind == LAUNCHER_SLURM;
    const char **names = NULL;
    launch->hosts = arena_alloc(&launch->arena, cluster->n_nodes, sizeof *launch->hosts);
    if (!launch->hosts)
        return error_no_memory(err);
    enum status status = ST_OK;
    if (remote && launcher->host_file)
        status = hosts_read_file(launcher->host_file, cluster->n_nodes, &launch->arena, &names, err);
    for (uint32_t i = 0; i < cluster->n_nodes && !status; i++) {
        const unsigned slots = cluster->nodes[i].devices + (serves && serves[i] ? 1 : 0);
        if (slots > 0 && remote && !names)
            status = hosts_check_name(cluster->nodes[i].name, err);
        if (slots > 0)
            launch->hosts[launch->n_hosts++] = (struct host){names ? names[i] : cluster->nodes[i].name, slots};
    }
    return status;
}

static enum status list_arguments(struct launch *launch, struct error *err) {
    struct words words = {.arena = &launch->arena};
    const char *path;
    enum status status = launch_worker_path(launch->options->launcher, &launch->arena, &path, err);
    if (status)
        return status;
    words_add(&words, path);
    for (const char *const *word = launch->options->arguments; *word; word++)
        words_add(&words, *word);
    if (launch->options->launcher->kind == LAUNCHER_LAB && launch->options->launcher->worker == TRIAL_WORKER_MPI)
        words_add(&words, "--sockets");
    launch->argv = words.items;
    return words.failed ? error_no_memory(err) : ST_OK;
}

/* Ranks on this host have our environment as it is. */
static enum status list_variables(struct launch *launch, struct error *err) {
    const struct launcher *launcher = launch->options->launcher;
    const char *const *names = NULL;
    struct words words = {.arena = &launch->arena};
    enum status status = ST_OK;
    if (launcher->kind == LAUNCHER_MPIRUN || launcher->kind == LAUNCHER_SLURM)
        status = passed_names(launcher->pass, &launch->arena, &names, err);
    for (; !status && names && *names; names++)
        words_add(&words, *names);
    if (launcher->share_gpu)
        words_add(&words, "SYNCOPATE_SHARE_GPU=1");
    launch->export = words.items;
    return !status && words.failed ? error_no_memory(err) : status;
}

/* The number of devices that every node with devices has; 0: they differ. */
static unsigned devices_of_each(const struct cluster *cluster) {
    unsigned devices = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const unsigned here = cluster->nodes[i].devices;
        if (here > 0 && devices > 0 && here != devices)
            return 0;
        devices = here > 0 ? here : devices;
    }
    return devices;
}

static struct process_options options_of(struct launch *launch) {
    const struct launch_options *options = launch->options;
    return (struct process_options){.timeout_s = options->time_limit_s,
                                    .first_line_timeout_s = START_LIMIT_S,
                                    .cancel = options->cancel,
                                    .on_line = take_line,
                                    .context = launch};
}

static enum status run_by_mpirun(struct launch *launch, enum mpirun_place place, struct error *err) {
    const struct launcher *launcher = launch->options->launcher;
    const struct mpirun_config config = {.place = place,
                                         .n_hosts = launch->n_hosts,
                                         .hosts = launch->hosts,
                                         .export = launch->export,
                                         .survives = launch->options->survives,
                                         .options = launcher->launch_options,
                                         .argv = launch->argv};
    const struct process_options process = options_of(launch);
    struct lab_config lab = {0};
    const char *const *command;
    enum status status = mpirun_command(&config, &launch->arena, &command, err);
    if (!status)
        status = launch_lab_of(launch->options->cluster, &launch->arena, &lab, err);
    if (!status && launch->options->weather) {
        lab.weather = launch->options->cluster;
        lab.seed = launch->options->weather;
    }
    if (status)
        return status;
    transcript_command(&launch->transcript, command);
    return mpirun_run(&config, command, &lab, &process, &launch->result.process, NULL, err);
}

static enum status run_by_slurm(struct launch *launch, struct error *err) {
    const struct launcher *launcher = launch->options->launcher;
    const unsigned devices = launcher->share_gpu ? 1 : devices_of_each(launch->options->cluster);
    const struct slurm_config config = {.n_hosts = launch->n_hosts,
                                        .hosts = launch->hosts,
                                        .allocated = slurm_allocated(),
                                        .gpus_per_node = launcher->worker == TRIAL_WORKER_NCCL ? devices : 0,
                                        .time_limit_s = launch->options->time_limit_s,
                                        .partition = launcher->partition,
                                        .account = launcher->account,
                                        .options = launcher->launch_options,
                                        .export = launch->export,
                                        .argv = launch->argv};
    struct process_options process = options_of(launch);
    const char *const *command;
    enum status status = slurm_command(&config, &launch->arena, &command, err);
    if (status)
        return status;
    transcript_command(&launch->transcript, command);
    return slurm_run(&config, command, &process, &launch->result.process, err);
}

static enum status run_by_kind(struct launch *launch, struct error *err) {
    switch (launch->options->launcher->kind) {
    case LAUNCHER_LOCAL:
        return run_by_mpirun(launch, MPIRUN_LOCAL, err);
    case LAUNCHER_LAB:
        return run_by_mpirun(launch, MPIRUN_LAB, err);
    case LAUNCHER_MPIRUN:
        return run_by_mpirun(launch, MPIRUN_HOSTS, err);
    case LAUNCHER_SLURM:
        break;
    }
    return run_by_slurm(launch, err);
}

static enum status run(struct launch *launch, struct error *err) {
    const struct launch_options *options = launch->options;
    enum status status = list_arguments(launch, err);
    if (!status)
        status = list_hosts(launch, err);
    if (!status)
        status = list_variables(launch, err);
    if (!status)
        status = transcript_open(&launch->transcript, options->launcher->logs, options->number,
                                 options->title ? options->title : "run", err);
    if (status)
        return status;
    status = run_by_kind(launch, err);
    const struct process_result *process = &launch->result.process;
    memcpy(launch->result.log, launch->transcript.path, sizeof launch->result.log);
    if (!status && launch->refused && process->ending == PROCESS_EXITED && process->exit_code != 0)
        status = error_set(err, ST_ENVIRONMENT, "no rank could be started on %s%s: %s", launch->hosts[0].name,
                           launch->n_hosts > 1 ? " and the other hosts" : "", launch->result.said);
    transcript_close(&launch->transcript);
    return status;
}

enum status launch_workers(const struct launch_options *options, struct launch_result *out, struct error *err) {
    struct launch launch = {.options = options};
    enum status status = run(&launch, err);
    if (!status)
        *out = launch.result;
    arena_release(&launch.arena);
    return status;
}

void launch_name_log(const struct launch_result *result, char *reason, size_t n) {
    const size_t needed = strlen(result->log) + sizeof " (log: )";
    if (!*result->log || needed > n / 2)
        return;
    const size_t have = strlen(reason), at = have + needed > n ? n - needed : have;
    snprintf(reason + at, n - at, " (log: %s)", result->log);
}

enum status launch_judge(const struct launch_result *result, const char *what, struct error *err) {
    struct error why = {.status = ST_OK};
    enum status status = process_judge(&result->process, what, &why);
    if (!status)
        return status;
    if (status == ST_TRIAL && *result->said)
        error_set(&why, ST_TRIAL, "%s failed: %s", what, result->said);
    if (status != ST_CANCELLED)
        launch_name_log(result, why.message, sizeof why.message);
    return error_pass(err, &why);
}
