/* Folders are read by getdents64(2) into the stack, since opendir allocates. */
#include "trial-runner/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_DEPTH = 64 }; /* of folders in folders: each has a descriptor and 4 KiB of the stack */

/* A folder that is being read. */
struct reading {
    int fd;
    ssize_t n, at; /* bytes, and of these used */
    alignas(struct dirent64) char bytes[4096];
};

/* The next entry's name, good until the next call; NULL at the end. */
static const char *next_entry(struct reading *r) {
    if (r->at >= r->n) {
        r->at = 0;
        r->n = getdents64(r->fd, r->bytes, sizeof r->bytes);
        if (r->n <= 0)
            return NULL;
    }
    const struct dirent64 *entry = (const void *)(r->bytes + r->at);
    r->at += entry->d_reclen;
    return entry->d_name;
}

/* ---- processes ---- */

static pid_t parent_of(int processes, const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "%.20s/stat", pid);
    int fd = openat(processes, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *after_name = strrchr(text, ')'); /* the name itself may hold anything */
    return after_name && strlen(after_name) > 4 ? (pid_t)strtol(after_name + 4, NULL, 10) : -1; /* ") S 123 " */
}

static void kill_children(pid_t self) {
    struct reading r = {.fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    for (const char *name; r.fd >= 0 && (name = next_entry(&r));)
        if (isdigit((unsigned char)*name) && parent_of(r.fd, name) == self)
            kill((pid_t)strtol(name, NULL, 10), SIGKILL);
    if (r.fd >= 0)
        close(r.fd);
}

/* A killed child hands its own children to us, so this ends when a generation leaves none. */
void cleanup_descendants(void) {
    pid_t self = getpid();
    for (;;) {
        kill_children(self);
        pid_t dead = waitpid(-1, NULL, 0);
        if (dead < 0 && errno == ECHILD)
            return;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

/* ---- folders ---- */

static bool is_on(int fd, dev_t device) {
    struct stat info;
    return !fstat(fd, &info) && info.st_dev == device;
}

static void empty(int fd, dev_t device, int depth) {
    struct reading r = {.fd = fd};
    for (const char *name; (name = next_entry(&r));) {
        if (!strcmp(name, ".") || !strcmp(name, "..") || !unlinkat(fd, name, 0) || (errno != EISDIR && errno != EPERM))
            continue;
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0 && depth < MOST_DEPTH && is_on(below, device))
            empty(below, device, depth + 1);
        if (below >= 0)
            close(below);
        unlinkat(fd, name, AT_REMOVEDIR); /* one that may not be read may be empty */
    }
}

void cleanup_folder(const char *path) {
    struct stat info;
    int fd = *path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (!fstat(fd, &info))
        empty(fd, info.st_dev, 0);
    close(fd);
    rmdir(path);
}
