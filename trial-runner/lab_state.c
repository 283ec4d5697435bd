/* Labs that stay: one state file a lab under /run/syncopate, which dies with the machine as the labs do.
 *
 * A file names the lab's first process by pid and by start time, so that a recycled pid is not taken for it. Whoever
 * reads the folder removes files whose process is gone. A lock on the folder keeps two commands from making the same
 * lab. Signals go through a pidfd that is opened before the start time is compared, so that they reach the process that
 * was compared. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/stream.h"
#include "trial-runner/lab.h"
#include "trial-runner/lab_internal.h"

#define SCHEMA "syncopate.lab/1"

enum { DOWN_MS = 10000 };

struct state {
    const char *name;
    uint64_t pid, start_ticks;
    size_t n;
    const char **nodes;
};

static void state_path(const char *name, char *out, size_t n) {
    snprintf(out, n, LAB_STATE "/lab-%s.json", name);
}

/* When a process began, in clock ticks since boot; 0 when there is none. proc(5), field 22. */
static uint64_t start_ticks(pid_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* A pidfd for the lab's first process; -1 when the lab is gone. */
static int state_open_process(const struct state *state) {
    int pidfd = pidfd_open((pid_t)state->pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    if (pidfd >= 0 && start_ticks((pid_t)state->pid) == state->start_ticks && poll(&ended, 1, 0) == 0)
        return pidfd;
    if (pidfd >= 0)
        close(pidfd);
    return -1;
}

static enum status state_decode(const struct json_at *root, struct arena *arena, struct state *out, struct error *err) {
    static const char *const known[] = {"schema", "name", "pid", "start_ticks", "nodes", NULL};
    struct json_at nodes;
    enum status status = json_expect_object(root, known, err);
    if (!status)
        status = json_expect_schema(root, SCHEMA, err);
    if (!status)
        status = json_get_string(root, "name", JSON_REQUIRED, &out->name, err);
    if (!status)
        status = json_get_integer(root, "pid", JSON_REQUIRED, 2, INT32_MAX, &out->pid, err);
    if (!status)
        status = json_get_integer(root, "start_ticks", JSON_REQUIRED, 1, (uint64_t)1 << 52, &out->start_ticks, err);
    if (!status)
        status = json_array(root, "nodes", LAB_MAX_NODES, &nodes, &out->n, err);
    if (status)
        return status;
    out->nodes = arena_alloc(arena, out->n, sizeof *out->nodes);
    out->name = arena_strdup(arena, out->name);
    if (!out->nodes || !out->name)
        return error_no_memory(err);
    size_t i = 0;
    for (struct json_at e = json_first(&nodes); e.node && !status; e = json_next(&e), i++) {
        const char *name;
        status = json_string_at(&e, &name, err);
        if (!status && !(out->nodes[i] = arena_strdup(arena, name)))
            status = error_no_memory(err);
    }
    return status;
}

static enum status state_read(const char *path, struct arena *arena, struct state *out, struct error *err) {
    cJSON *json;
    enum status status = json_read_file(path, &json, err);
    if (status)
        return status;
    struct json_at root = json_root(json, path);
    status = state_decode(&root, arena, out, err);
    cJSON_Delete(json);
    return status;
}

static enum status state_write(const struct lab_config *config, pid_t pid, struct error *err) {
    cJSON *json = cJSON_CreateObject(), *nodes = NULL;
    bool ok = json && cJSON_AddStringToObject(json, "schema", SCHEMA) &&
              cJSON_AddStringToObject(json, "name", config->name) && cJSON_AddNumberToObject(json, "pid", pid) &&
              cJSON_AddNumberToObject(json, "start_ticks", (double)start_ticks(pid)) &&
              (nodes = cJSON_AddArrayToObject(json, "nodes"));
    for (size_t i = 0; ok && i < config->n; i++)
        ok = cJSON_AddItemToArray(nodes, cJSON_CreateString(config->nodes[i].name));
    char *text = ok ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    char path[128];
    state_path(config->name, path, sizeof path);
    enum status status = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return status;
}

/* The state of the lab that is up under this name, and its process. */
static enum status state_find(const char *name, struct arena *arena, struct state *out, int *pidfd, struct error *err) {
    enum status status = lab_validate_name("lab name", name, err);
    if (status)
        return status;
    char path[128];
    state_path(name, path, sizeof path);
    if (access(path, F_OK) == 0)
        status = state_read(path, arena, out, err);
    else
        return error_set(err, ST_NOT_FOUND, "no lab \"%s\" is up; syncopate lab status lists those that are", name);
    if (status)
        return status;
    *pidfd = state_open_process(out);
    if (*pidfd >= 0)
        return ST_OK;
    unlink(path);
    return error_set(err, ST_NOT_FOUND, "the lab \"%s\" is no longer up: its first process is gone", name);
}

static enum status folder_lock(int *lock, struct error *err) {
    if (mkdir(LAB_STATE, 0755) != 0 && errno != EEXIST)
        return error_set(err, ST_ENVIRONMENT, "cannot make %s: %s; a lab needs root", LAB_STATE, strerror(errno));
    *lock = open(LAB_STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot lock %s: %s", LAB_STATE, strerror(errno));
    return ST_OK;
}

/* ---- up ---- */

struct birth {
    bool failed;
    pid_t pid; /* as the host sees it */
    struct error error;
};

static void birth_send(int fd, const struct birth *birth) {
    ssize_t written = write(fd, birth, sizeof *birth); /* shorter than PIPE_BUF, so whole */
    (void)written;
}

static _Noreturn void live_on(int news, const struct lab_config *config) {
    struct birth birth = {0};
    birth.failed = lab_build(config, &birth.error);
    birth_send(news, &birth);
    close(news);
    if (birth.failed)
        _exit(1);
    sigset_t child_died;
    sigemptyset(&child_died);
    sigaddset(&child_died, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_died, NULL);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        sigwaitinfo(&child_died, NULL);
    }
}

/* Fork the lab's first process out of the caller's session and family. */
static _Noreturn void midwife(int news, const struct lab_config *config) {
    setsid();
    int high = fcntl(news, F_DUPFD_CLOEXEC, 64);
    dup2(high, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close_range(4, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    struct birth birth = {0};
    pid_t first = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
    if (first == 0)
        live_on(3, config);
    birth.failed = first < 0;
    birth.pid = first;
    if (birth.failed)
        error_set(&birth.error, ST_ENVIRONMENT, "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): %s",
                  strerror(errno));
    birth_send(3, &birth);
    _exit(0);
}

/* Two messages: the pid from the one that forks, and how the building went from the first process itself. */
static enum status birth_receive(int news, pid_t *pid, struct error *err) {
    struct birth birth;
    int heard = 0;
    while (heard < 2) {
        ssize_t n = read(news, &birth, sizeof birth);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof birth)
            return error_set(err, ST_ENVIRONMENT, "the lab's first process was killed; is memory short?");
        if (birth.failed)
            return error_pass(err, &birth.error);
        if (birth.pid > 0)
            *pid = birth.pid;
        heard++;
    }
    return ST_OK;
}

static enum status start(const struct lab_config *config, pid_t *pid, struct error *err) {
    int news[2];
    if (pipe2(news, O_CLOEXEC) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        midwife(news[1], config);
    close(news[1]);
    enum status status = child < 0 ? error_set(err, ST_ENVIRONMENT, "cannot start another process: %s", strerror(errno))
                                   : birth_receive(news[0], pid, err);
    close(news[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static enum status up_locked(const struct lab_config *config, struct error *err) {
    struct arena arena = {0};
    struct state old;
    struct error missing;
    int pidfd;
    enum status status = state_find(config->name, &arena, &old, &pidfd, &missing);
    arena_release(&arena);
    if (!status) {
        close(pidfd);
        return error_set(err, ST_CONFLICT, "a lab \"%s\" is up already; syncopate lab down %s ends it", config->name,
                         config->name);
    }
    pid_t pid = 0;
    status = start(config, &pid, err);
    if (!status)
        status = state_write(config, pid, err);
    if (status && pid > 0)
        kill(pid, SIGKILL);
    return status;
}

enum status lab_up(const struct lab_config *config, struct error *err) {
    enum status status = lab_validate_name("lab name", config->name, err);
    if (!status)
        status = lab_validate(config, err);
    if (status)
        return status;
    int lock = -1;
    status = folder_lock(&lock, err);
    if (status)
        return status;
    status = up_locked(config, err);
    close(lock);
    return status;
}

/* ---- down, list, exec ---- */

static enum status end_process(int pidfd, const char *name, struct error *err) {
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
        return error_set(err, ST_ENVIRONMENT, "cannot end the lab \"%s\": %s", name, strerror(errno));
    if (poll(&ended, 1, DOWN_MS) <= 0)
        return error_set(err, ST_TIMEOUT, "the lab \"%s\" has not ended after %d s", name, DOWN_MS / 1000);
    return ST_OK;
}

enum status lab_down(const char *name, struct error *err) {
    struct arena arena = {0};
    struct state state;
    int pidfd;
    enum status status = state_find(name, &arena, &state, &pidfd, err);
    if (!status) {
        status = end_process(pidfd, name, err);
        close(pidfd);
    }
    if (!status) {
        char path[128];
        state_path(name, path, sizeof path);
        unlink(path);
    }
    arena_release(&arena);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lab_info *)a)->name, ((const struct lab_info *)b)->name);
}

/* True when the folder's entry is a lab that is up. */
static bool info_read(const char *entry, struct arena *arena, struct lab_info *out) {
    char name[64];
    size_t n = strlen(entry);
    if (n < 10 || n - 9 >= sizeof name || strncmp(entry, "lab-", 4) != 0 || strcmp(entry + n - 5, ".json") != 0)
        return false;
    memcpy(name, entry + 4, n - 9);
    name[n - 9] = 0;
    struct state state;
    struct error err;
    int pidfd;
    if (state_find(name, arena, &state, &pidfd, &err))
        return false;
    close(pidfd);
    *out = (struct lab_info){
        .name = state.name, .pid = (pid_t)state.pid, .n = state.n, .nodes = (const char *const *)state.nodes};
    return true;
}

enum status lab_list(struct arena *arena, struct lab_info **out, size_t *n, struct error *err) {
    struct dirent **entries = NULL;
    int count = scandir(LAB_STATE, &entries, NULL, NULL);
    size_t found = 0, total = count > 0 ? (size_t)count : 0;
    struct lab_info *infos = arena_alloc(arena, total, sizeof *infos);
    for (size_t i = 0; i < total; i++) {
        if (infos && info_read(entries[i]->d_name, arena, &infos[found]))
            found++;
        free(entries[i]);
    }
    free(entries);
    if (!infos)
        return error_no_memory(err);
    qsort(infos, found, sizeof *infos, by_name);
    *out = infos;
    *n = found;
    return ST_OK;
}

/* Run the program in a child, because only a child of the process that entered is in the pid namespace. Does not
 * return: exits as a shell says how the program ended. */
static _Noreturn void run_program(const char *const *argv) {
    int status;
    pid_t program = fork();
    if (program == 0) {
        setenv("TMPDIR", LAB_TMPDIR, 1);
        execvp(argv[0], (char *const *)argv);
        fprintf(stderr, "syncopate: cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    while (program > 0 && waitpid(program, &status, 0) < 0)
        program = errno == EINTR ? program : -1;
    if (program < 0) {
        fprintf(stderr, "syncopate: cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(126);
    }
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Into the lab with a pidfd, and further through the agent when a node is meant. Does not return. The lab has mounts of
 * its own, and to enter them leads to "/": the command runs in the folder of the same name as where it was called. */
static _Noreturn void exec_inside(int pidfd, const char *const *argv) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder)) {
        fprintf(stderr, "syncopate: the folder that this was called in is gone: %s\n", strerror(errno));
        _exit(126);
    }
    if (setns(pidfd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) != 0) {
        fprintf(stderr, "syncopate: cannot enter the lab: %s\n", strerror(errno));
        _exit(126);
    }
    if (chdir(folder) != 0) {
        fprintf(stderr, "syncopate: the lab has no folder %s (%s); call the command in another one\n", folder,
                strerror(errno));
        _exit(126);
    }
    run_program(argv);
}

/* The words quoted for a shell, because the agent takes a command line as rsh does. */
static char *shell_line(const char *const *argv) {
    char *text;
    size_t n;
    FILE *out = stream_open(&text, &n);
    if (!out)
        return NULL;
    fputs("exec", out);
    for (; *argv; argv++) {
        fputs(" '", out);
        for (const char *c = *argv; *c; c++)
            if (*c == '\'')
                fputs("'\\''", out);
            else
                fputc(*c, out);
        fputc('\'', out);
    }
    stream_close(out, ST_OK, &text, NULL);
    return text;
}

static enum status exec_wait(int pidfd, const char *const *argv, int *exit_code, struct error *err) {
    pid_t child = fork();
    if (child < 0)
        return error_set(err, ST_ENVIRONMENT, "cannot start another process: %s", strerror(errno));
    if (child == 0)
        exec_inside(pidfd, argv);
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, ST_ENVIRONMENT, "lost a process: %s", strerror(errno));
    *exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return ST_OK;
}

static enum status exec_on_node(int pidfd, const struct state *state, const char *node, const char *const *argv,
                                int *exit_code, struct error *err) {
    size_t i = 0;
    while (i < state->n && strcmp(state->nodes[i], node) != 0)
        i++;
    if (i == state->n)
        return error_set(err, ST_NOT_FOUND, "the lab \"%s\" has no node \"%s\"", state->name, node);
    char *line = shell_line(argv);
    if (!line)
        return error_no_memory(err);
    const char *const agent[] = {LAB_AGENT, node, line, NULL};
    enum status status = exec_wait(pidfd, agent, exit_code, err);
    free(line);
    return status;
}

enum status lab_exec(const char *name, const char *node, const char *const *argv, int *exit_code, struct error *err) {
    struct arena arena = {0};
    struct state state;
    int pidfd;
    enum status status = state_find(name, &arena, &state, &pidfd, err);
    if (!status) {
        bool head = !node || strcmp(node, LAB_HEAD) == 0;
        status =
            head ? exec_wait(pidfd, argv, exit_code, err) : exec_on_node(pidfd, &state, node, argv, exit_code, err);
        close(pidfd);
    }
    arena_release(&arena);
    return status;
}
