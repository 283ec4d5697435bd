/* The lock is one on the open file description (F_OFD_SETLK): the kernel drops it when the process dies, however it
 * dies, so that nothing stale is left to clean up, and unlike a plain POSIX lock it also keeps apart two stores of one
 * process. It sits on a side file because closing any descriptor of the database itself would drop SQLite's own locks.
 * The side file goes away with the lock; who locked a file that was removed meanwhile sees another inode at the path
 * and tries again. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/lock_internal.h"

static enum status refuse(int fd, const char *name, struct error *err) {
    char text[16] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    long pid = strtol(text, NULL, 10);
    if (pid <= 0)
        return error_at(err, ST_CONFLICT, name, "another process is writing it; one writer at a time");
    return error_at(err, ST_CONFLICT, name, "process %ld is writing it; one writer at a time", pid);
}

/* Whether `path` still names what `fd` has open. */
static bool same_file(int fd, const char *path) {
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* ST_OK with *fd = -1: the file was removed meanwhile, try again. */
static enum status try_lock(const char *path, const char *name, int *fd, struct error *err) {
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return error_at(err, ST_ENVIRONMENT, name, "cannot make %s: %s", path, strerror(errno));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    enum status status = ST_OK;
    if (fcntl(*fd, F_OFD_SETLK, &whole) != 0)
        status = errno == EAGAIN || errno == EACCES
                     ? refuse(*fd, name, err)
                     : error_at(err, ST_ENVIRONMENT, name, "cannot lock %s: %s", path, strerror(errno));
    if (!status && same_file(*fd, path))
        return ST_OK;
    close(*fd);
    *fd = -1;
    return status;
}

/* The text is only for the message to a process that is refused, so a full disk is no failure here. */
static void sign(int fd) {
    if (ftruncate(fd, 0) == 0)
        (void)(dprintf(fd, "%ld\n", (long)getpid()) < 0);
}

enum status lock_take(const char *file, const char *name, struct lock *out, struct error *err) {
    char *path;
    if (asprintf(&path, "%s.lock", file) < 0)
        return error_no_memory(err);
    int fd = -1;
    enum status status = ST_OK;
    while (!status && fd < 0)
        status = try_lock(path, name, &fd, err);
    if (status) {
        free(path);
        return status;
    }
    sign(fd);
    *out = (struct lock){.fd = fd, .path = path};
    return ST_OK;
}

void lock_drop(struct lock *lock) {
    if (lock->fd >= 0) {
        unlink(lock->path);
        close(lock->fd);
    }
    free(lock->path);
    *lock = (struct lock){.fd = -1};
}
