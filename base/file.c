/* See base/file.h. Cost: one write, and two fsync (the file, its folder). */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status write_failed(const char *path, struct error *err) {
    const int code = errno;
    return error_at(err, ST_ENVIRONMENT, path, "cannot be written: %s", strerror(code));
}

static bool write_all(int fd, size_t n, const char *bytes) {
    while (n > 0) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return true;
}

/* `flags` are more flags for open(2). */
static enum status write_through(const char *path, int flags, size_t n, const char *bytes, struct error *err) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0666);
    if (fd < 0)
        return write_failed(path, err);
    const enum status status = write_all(fd, n, bytes) ? ST_OK : write_failed(path, err);
    if (close(fd) != 0 && !status)
        return write_failed(path, err);
    return status;
}

/* Put the folder of `path` on disk: only then does a rename in it outlast a crash. False, with errno. */
static bool sync_folder(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* EINVAL: that file system cannot */
    const int code = errno;
    if (fd >= 0)
        close(fd);
    errno = code;
    return synced;
}

/* Write the bytes to the open file, give it the mode, close it, and rename it to `target`. With mode 0 the file keeps
 * its mode. Returns false, with errno, when a step fails, and then removes the temporary file. */
static bool fill_and_rename(int fd, const char *temporary, const char *target, mode_t mode, size_t n,
                            const char *bytes) {
    bool done = (mode == 0 || fchmod(fd, mode) == 0) && write_all(fd, n, bytes) && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && done) {
        done = false;
        code = errno;
    }
    if (done && rename(temporary, target) != 0) {
        done = false;
        code = errno;
    }
    if (!done)
        unlink(temporary);
    errno = code;
    return done;
}

/* `target` is the file itself, `path` the name that the user knows. */
static enum status replace(const char *target, const char *path, mode_t mode, size_t n, const char *bytes,
                           struct error *err) {
    char temporary[PATH_MAX + 16];
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0; i++) {
        snprintf(temporary, sizeof temporary, "%s.%d-%d~", target, (int)getpid() % 1000000, i);
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0 || !fill_and_rename(fd, temporary, target, mode, n, bytes))
        return write_failed(path, err);
    sync_folder(target);
    return ST_OK;
}

enum status file_write(const char *path, size_t n, const char *bytes, struct error *err) {
    if (strcmp(path, "-") == 0) {
        fflush(stdout);
        return write_all(STDOUT_FILENO, n, bytes) ? ST_OK : write_failed("standard output", err);
    }
    struct stat file;
    char target[PATH_MAX];
    if (stat(path, &file) != 0) {
        if (errno != ENOENT || strlen(path) >= sizeof target)
            return write_failed(path, err);
        return replace(path, path, 0, n, bytes, err);
    }
    if (S_ISDIR(file.st_mode))
        return error_at(err, ST_ENVIRONMENT, path, "is a directory; name a file in it");
    if (!S_ISREG(file.st_mode))
        return write_through(path, 0, n, bytes, err);
    if (!realpath(path, target)) /* a symbolic link stays one */
        return write_failed(path, err);
    return replace(target, path, file.st_mode & 0777, n, bytes, err);
}

/* The temporary file has one name for all, so that what a crash left is written over by the next. */
enum status file_write_private(const char *path, size_t n, const char *bytes, struct error *err) {
    char temporary[PATH_MAX];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.new", path) >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return write_failed(path, err);
    }
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || !fill_and_rename(fd, temporary, path, 0600, n, bytes))
        return write_failed(path, err);
    if (sync_folder(path))
        return ST_OK;
    const int code = errno;
    return error_at(err, ST_ENVIRONMENT, path, "has changed, but may be as before after a crash: %s", strerror(code));
}

enum status file_write_plain(const char *path, size_t n, const char *bytes, struct error *err) {
    return write_through(path, O_CREAT | O_TRUNC, n, bytes, err);
}
