/* A forked keeper makes the folder, and removes it when a stream ends that the caller holds open. scratch_release and
 * any death of the caller end that stream. Since the keeper itself makes the folder, no death of the caller leaves it.
 * The keeper does not use the heap, since the caller may have other threads. */
#include "trial-runner/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "trial-runner/cleanup.h"

/* How the keeper's attempt to make the folder went. */
struct answer {
    int failure; /* errno; 0: it is there */
    char folder[SCRATCH_FOLDER];
};

bool scratch_make_folder(const char *parent, size_t n, char out[]) {
    if ((size_t)snprintf(out, n, "%s/syncopate-XXXXXX", parent) < n)
        return mkdtemp(out) != NULL;
    errno = ENAMETOOLONG;
    return false;
}

/* Signals must not end the keeper before its work is done. It closes its other descriptors, since a reader of a pipe
 * waits until all copies of its other end are closed. */
_Noreturn static void keep(const char *parent, int stream) {
    char byte;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    struct answer answer = {0};
    answer.failure = scratch_make_folder(parent, sizeof answer.folder, answer.folder) ? 0 : errno;
    (void)!write(stream, &answer, sizeof answer); /* a caller that is gone does not need it */
    if (answer.failure || dup2(stream, STDIN_FILENO) < 0)
        _exit(1);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    while (read(STDIN_FILENO, &byte, 1) != 0 && errno == EINTR)
        continue;
    cleanup_folder(answer.folder);
    _exit(0);
}

static enum status start_keeper(struct scratch *scratch, const char *parent, struct error *err) {
    int ends[2];
    struct answer answer = {.failure = EIO};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot make a pair of sockets: %s", strerror(errno));
    scratch->keeper = fork();
    if (scratch->keeper == 0) {
        close(ends[0]);
        keep(parent, ends[1]);
    }
    const int failure = errno;
    close(ends[1]);
    scratch->lifeline = ends[0];
    if (scratch->keeper < 0) {
        close(ends[0]);
        return error_set(err, ST_ENVIRONMENT, "cannot fork: %s", strerror(failure));
    }
    while (recv(ends[0], &answer, sizeof answer, 0) < 0 && errno == EINTR)
        continue;
    if (answer.failure) {
        scratch_release(scratch);
        return error_at(err, ST_ENVIRONMENT, parent, "cannot make a folder here: %s", strerror(answer.failure));
    }
    memcpy(scratch->folder, answer.folder, sizeof scratch->folder);
    return ST_OK;
}

enum status scratch_init(struct scratch *scratch, const char *parent, struct error *err) {
    const char *temporary = getenv("TMPDIR");
    char root[PATH_MAX];
    if (!parent)
        parent = temporary && *temporary ? temporary : "/tmp";
    if (!realpath(parent, root))
        return error_at(err, ST_ENVIRONMENT, parent, "cannot make a folder here: %s", strerror(errno));
    return start_keeper(scratch, root, err);
}

enum status scratch_write(const struct scratch *scratch, const char *name, cJSON *json, char out[SCRATCH_FILE],
                          struct error *err) {
    char *text = json ? json_line(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    snprintf(out, SCRATCH_FILE, "%s/%.60s", scratch->folder, name);
    const enum status status = file_write_plain(out, strlen(text), text, err);
    free(text);
    return status;
}

void scratch_release(struct scratch *scratch) {
    close(scratch->lifeline);
    while (waitpid(scratch->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
}
