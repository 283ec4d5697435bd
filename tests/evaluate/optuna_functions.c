/* See optuna_functions.h and optuna_functions.py, which says what the lines are. */
#include "tests/evaluate/optuna_functions.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/evaluate/evaluate.h"

static const char PROGRAM[] = "tests/evaluate/optuna_functions.py";

static void __attribute__((noreturn)) fail_peer(const char *why) {
    struct error err;
    error_set(&err, ST_ENVIRONMENT, "%s %s", PROGRAM, why);
    fail(&err);
}

/* A peer that is gone is an error here, not a signal. */
static void __attribute__((format(printf, 2, 3))) send_line(const struct optuna *peer, const char *format, ...) {
    char line[64];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (send(peer->socket, line, (size_t)n, MSG_NOSIGNAL) != n)
        fail_peer("does not listen");
}

static void ask(void *state, double *x) {
    const struct optuna *peer = state;
    send_line(peer, "ask\n");
    for (size_t k = 0; k < peer->d; k++)
        if (fscanf(peer->answers, "%lf", &x[k]) != 1)
            fail_peer("does not answer");
}

static void tell(void *state, double value) {
    send_line(state, "tell %.17g\n", value);
}

static void forget(void *state) {
    (void)state;
}

void optuna_open(struct optuna *peer, size_t d, uint64_t seed, struct searcher *out) {
    peer->d = d;
    send_line(peer, "open %zu %lu\n", d, (unsigned long)seed);
    *out = (struct searcher){.state = peer, .ask = ask, .tell = tell, .close = forget};
}

/* Whether it runs, with `end` as its standard input and output. */
static bool spawn(struct optuna *out, int end) {
    char *const arguments[] = {(char *)PROGRAM, NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions))
        return false;
    const bool done = !posix_spawn_file_actions_adddup2(&actions, end, STDIN_FILENO) &&
                      !posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO) &&
                      !posix_spawn(&out->child, PROGRAM, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return done;
}

bool optuna_start(struct optuna *out) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    *out = (struct optuna){.socket = ends[0], .answers = fdopen(ends[0], "r")};
    const bool runs = out->answers && spawn(out, ends[1]);
    close(ends[1]);
    if (runs && fscanf(out->answers, "optuna %31s", out->version) == 1)
        return true;
    if (runs)
        waitpid(out->child, NULL, 0);
    if (out->answers)
        fclose(out->answers);
    else
        close(ends[0]);
    return false;
}

void optuna_stop(struct optuna *peer) {
    fclose(peer->answers);
    waitpid(peer->child, NULL, 0);
}
