/* A forked keeper waits for the end of a pipe that only the caller holds open: it closes by scratch_release and by any
 * death of the caller. The keeper makes only async-signal-safe calls, since the caller may have other threads. */
#include "trial-runner/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "trial-runner/process.h"

/* Other signals must not end the keeper before its work is done; its descriptors must keep nobody else waiting. */
_Noreturn static void keep(const struct scratch *scratch, int lifeline) {
    char byte;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    if (dup2(lifeline, STDIN_FILENO) < 0)
        _exit(1);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    while (read(STDIN_FILENO, &byte, 1) != 0 && errno == EINTR)
        continue;
    for (int i = 0; i < SCRATCH_FILES; i++)
        unlink(scratch->file[i]);
    rmdir(scratch->folder);
    _exit(0);
}

static enum status start_keeper(struct scratch *scratch, struct error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
    scratch->keeper = fork();
    if (scratch->keeper == 0) {
        close(ends[1]);
        keep(scratch, ends[0]);
    }
    close(ends[0]);
    scratch->lifeline = ends[1];
    if (scratch->keeper > 0)
        return ST_OK;
    close(ends[1]);
    return error_set(err, ST_ENVIRONMENT, "cannot fork: %s", strerror(errno));
}

enum status scratch_init(struct scratch *scratch, const char *parent, const char *const names[SCRATCH_FILES],
                         struct error *err) {
    const char *temporary = getenv("TMPDIR");
    struct scratch made = {0};
    char folder[SCRATCH_PATH], whole[PATH_MAX];
    if (!parent)
        parent = temporary && *temporary ? temporary : "/tmp";
    if (!realpath(parent, whole))
        return error_set(err, ST_ENVIRONMENT, "no run can have files in %s: %s", parent, strerror(errno));
    int n = snprintf(folder, sizeof folder, "%s/syncopate-XXXXXX", whole);
    if (n >= SCRATCH_PATH)
        return error_set(err, ST_ENVIRONMENT, "the path of %s is too long", parent);
    if (!mkdtemp(folder))
        return error_set(err, ST_ENVIRONMENT, "cannot make a folder like %s: %s", folder, strerror(errno));
    for (int i = 0; i < SCRATCH_FILES; i++)
        snprintf(made.file[i], sizeof made.file[i], "%s/%.30s", folder, names[i]);
    memcpy(made.folder, folder, sizeof folder);
    enum status status = start_keeper(&made, err);
    if (status == ST_OK)
        *scratch = made;
    else
        rmdir(folder);
    return status;
}

enum status scratch_write(const struct scratch *scratch, int i, cJSON *json, struct error *err) {
    char *text = json ? json_line(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    enum status status = ST_OK;
    FILE *file = fopen(scratch->file[i], "wxe");
    if (!file || fputs(text, file) == EOF)
        status = error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", scratch->file[i], strerror(errno));
    if (file && fclose(file) != 0 && status == ST_OK)
        status = error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", scratch->file[i], strerror(errno));
    free(text);
    return status;
}

void scratch_release(struct scratch *scratch) {
    close(scratch->lifeline);
    while (waitpid(scratch->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
}
