/* How a lab is made, and why nothing of it can be left.
 *
 * The guard of trial-runner/process.c gets a new pid namespace for its children and forks the lab's first process,
 * which dies with the guard. That process takes new mount, network, host name and IPC namespaces, makes every mount
 * private, puts empty memory file systems over /run and /dev/shm, builds the network, and forks the program; from then
 * on it reaps. Nothing outside refers to any of these namespaces, so the death of the first process (pid_namespaces(7))
 * is the end of them all: there is no clean-up code that could be skipped. Cost: see trial-runner/lab_network.c; the
 * rest is about 5 ms. */
#include "trial-runner/lab.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/stream.h"
#include "trial-runner/lab_internal.h"

/* Without a host name and a TMPDIR of their own the daemons of Open MPI take each other's session folder, and one start
 * in four hangs. */
static const char agent_script[] =
    "#!/bin/sh\n"
    "# agent NODE COMMAND...: run the command on a node, as rsh would.\n"
    "node=$1\n"
    "shift\n"
    "export TMPDIR=" LAB_TMPDIR "/$node\n"
    "exec ip netns exec \"$node\" unshare --uts \\\n"
    "    sh -c 'echo \"$0\" >/proc/sys/kernel/hostname && exec sh -c \"$1\"' \"$node\" \"$*\"\n";

enum status lab_validate_name(const char *what, const char *name, struct error *err) {
    size_t n = name ? strlen(name) : 0;
    bool ok = n > 0 && n < 64 && name[0] != '-';
    for (size_t i = 0; i < n && ok; i++)
        ok = isalnum((unsigned char)name[i]) || name[i] == '-';
    if (!ok)
        return error_set(err, ST_INVALID, "%s \"%.80s\" must be 1 to 63 letters, digits and '-'", what,
                         name ? name : "");
    return ST_OK;
}

static enum status validate_rate(const char *what, const char *name, double gbit_per_s, struct error *err) {
    if (!(gbit_per_s >= 1e-4 && gbit_per_s <= 1000))
        return error_set(err, ST_INVALID, "%s %s: a lab needs a rate from 0.0001 to 1000 Gbit/s, not %g", what, name,
                         gbit_per_s);
    return ST_OK;
}

static enum status validate_node(const struct lab_config *config, size_t node, struct error *err) {
    const char *name = config->nodes[node].name;
    enum status status = lab_validate_name("node name", name, err);
    if (status)
        return status;
    bool taken = strcmp(name, LAB_HEAD) == 0 || strcmp(name, "localhost") == 0;
    for (size_t i = 0; i < node; i++)
        taken = taken || strcmp(name, config->nodes[i].name) == 0;
    if (taken)
        return error_set(err, ST_INVALID, "node name \"%s\" is taken", name);
    return validate_rate("node", name, config->nodes[node].gbit_per_s, err);
}

enum status lab_validate(const struct lab_config *config, struct error *err) {
    if (config->n < 1 || config->n > LAB_MAX_NODES)
        return error_set(err, ST_INVALID, "a lab has 1 to %d nodes, not %zu", LAB_MAX_NODES, config->n);
    enum status status = ST_OK;
    for (size_t i = 0; i < config->n && !status; i++)
        status = validate_node(config, i, err);
    for (size_t i = 0; i < config->n_links && !status; i++) {
        const struct lab_link *link = &config->links[i];
        if (link->from >= config->n || link->to >= config->n || link->from == link->to)
            return error_set(err, ST_INVALID, "link %zu does not join two nodes", i);
        status = validate_rate("link from", config->nodes[link->from].name, link->gbit_per_s, err);
    }
    return status;
}

static enum status lab_write(const char *path, const char *text, mode_t mode, struct error *err) {
    const enum status status = file_write_plain(path, strlen(text), text, err);
    if (!status && chmod(path, mode) != 0)
        return error_at(err, ST_ENVIRONMENT, path, "its mode cannot be set: %s", strerror(errno));
    return status;
}

static enum status cannot(const char *what, struct error *err) {
    return error_set(err, ST_ENVIRONMENT, "the lab cannot %s: %s", what, strerror(errno));
}

/* The lab has empty memory file systems of its own in these places. */
static const struct own_files {
    const char *path, *options;
} own_files[] = {{"/run", "mode=755"}, {"/dev/shm", "mode=1777"}};

bool lab_hides(const char *path) {
    char real[PATH_MAX];
    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    for (size_t i = 0; i < sizeof own_files / sizeof *own_files; i++) {
        const size_t n = strlen(own_files[i].path);
        if (strncmp(real, own_files[i].path, n) == 0 && (real[n] == '/' || real[n] == '\0'))
            return true;
    }
    return false;
}

static enum status own_files_mount(struct error *err) {
    for (size_t i = 0; i < sizeof own_files / sizeof *own_files; i++) {
        const struct own_files *own = &own_files[i];
        if (access(own->path, F_OK) == 0 && mount("lab", own->path, "tmpfs", MS_NOSUID | MS_NODEV, own->options) != 0)
            return error_set(err, ST_ENVIRONMENT, "the lab cannot mount %s: %s", own->path, strerror(errno));
    }
    return ST_OK;
}

static enum status files_mount(struct error *err) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return cannot("make its mounts private", err);
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) != 0)
        return cannot("mount /proc", err);
    const enum status status = own_files_mount(err);
    if (status)
        return status;
    if (mkdir("/run/lab", 0755) != 0 || mkdir(LAB_TMPDIR, 0755) != 0)
        return cannot("make its folders", err);
    return ST_OK;
}

static enum status hosts_write(const struct lab_config *config, struct error *err) {
    char *text;
    size_t n;
    FILE *hosts = stream_open(&text, &n);
    if (!hosts)
        return error_no_memory(err);
    fprintf(hosts, "127.0.0.1 localhost\n198.18.0.1 " LAB_HEAD "\n");
    for (size_t i = 0; i < config->n; i++)
        fprintf(hosts, "198.18.1.%zu %s\n", i + 1, config->nodes[i].name);
    enum status status = stream_close(hosts, ST_OK, &text, err);
    if (!status)
        status = lab_write("/run/lab/hosts", text, 0644, err);
    free(text);
    if (!status && mount("/run/lab/hosts", "/etc/hosts", NULL, MS_BIND, NULL) != 0)
        return cannot("put its own /etc/hosts in place", err);
    return status;
}

static enum status node_folders(const struct lab_config *config, struct error *err) {
    for (size_t i = 0; i < config->n; i++) {
        char path[128];
        snprintf(path, sizeof path, LAB_TMPDIR "/%s", config->nodes[i].name);
        if (mkdir(path, 0755) != 0)
            return cannot("make a node's folder", err);
    }
    return ST_OK;
}

enum status lab_build(const struct lab_config *config, struct error *err) {
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
        return cannot("make namespaces", err);
    if (sethostname(LAB_HEAD, strlen(LAB_HEAD)) != 0)
        return cannot("set its host name", err);
    enum status status = files_mount(err);
    if (!status)
        status = hosts_write(config, err);
    if (!status)
        status = node_folders(config, err);
    if (!status)
        status = lab_write(LAB_AGENT, agent_script, 0755, err);
    if (!status)
        status = lab_network_build(config, err);
    if (!status && setenv("TMPDIR", LAB_TMPDIR, 1) != 0)
        return error_no_memory(err);
    return status;
}

static enum status take_pid_namespace(void *context, struct error *err) {
    (void)context;
    if (unshare(CLONE_NEWPID) == 0)
        return ST_OK;
    if (errno == EPERM)
        return error_set(err, ST_ENVIRONMENT,
                         "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run as root, in a "
                         "container with --privileged, or choose the runner \"local\"");
    return cannot("make a pid namespace", err);
}

/* The lab's first process, from the moment that the program runs. The player of the weather, if there is one, ends only
 * when it fails, and that ends the lab. */
static _Noreturn void reap_until(pid_t program, pid_t player) {
    for (;;) {
        int status;
        pid_t dead = waitpid(-1, &status, 0);
        if (dead != program && dead != player && (dead > 0 || errno == EINTR))
            continue;
        if (dead > 0)
            process_report(status);
        _exit(0);
    }
}

static enum status say_when_weather_begins(double us, struct error *err) {
    char text[32];
    snprintf(text, sizeof text, "%.0f", us);
    return setenv(LAB_WEATHER_BEGAN, text, 1) ? cannot("set " LAB_WEATHER_BEGAN, err) : ST_OK;
}

static enum status become_lab(void *context, struct error *err) {
    const struct lab_config *config = context;
    enum status status = lab_build(context, err);
    const double now_us = clock_now_us();
    if (!status && config->weather)
        status = say_when_weather_begins(now_us, err);
    if (status)
        return status;
    pid_t program = _Fork(); /* as in trial-runner/process.c */
    if (program < 0)
        return cannot("start another process", err);
    if (program == 0)
        return ST_OK;
    pid_t player = config->weather ? _Fork() : 0;
    if (player < 0)
        return cannot("start another process", err);
    if (player == 0 && config->weather)
        lab_weather_play(config, now_us);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    reap_until(program, player);
}

enum status lab_run(const struct lab_config *config, const struct process_options *options, struct process_result *out,
                    struct error *err) {
    enum status status = lab_validate(config, err);
    if (status)
        return status;
    struct lab_config copy = *config;
    struct process_hook hook = {.before_fork = take_pid_namespace, .in_child = become_lab, .context = &copy};
    struct process_options inside = *options;
    inside.hook = &hook;
    inside.scratch = false; /* the lab's own TMPDIR vanishes with it */
    return process_run(&inside, out, err);
}

enum status lab_check(struct error *err) {
    struct lab_node nodes[] = {{"n1", 1.0}, {"n2", 1.0}};
    struct lab_link slow = {.from = 0, .to = 1, .gbit_per_s = 0.5};
    struct lab_config config = {.name = "check", .n = 2, .nodes = nodes, .n_links = 1, .links = &slow};
    const char *const argv[] = {LAB_AGENT, "n1", "true", NULL};
    struct process_options options = {.argv = argv, .timeout_s = 60};
    struct process_result result;
    enum status status = lab_run(&config, &options, &result, err);
    if (status)
        return status;
    status = process_judge(&result, "a command in the lab", err);
    if (err && status)
        err->status = ST_ENVIRONMENT;
    return !status ? ST_OK : ST_ENVIRONMENT;
}
