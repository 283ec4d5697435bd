/* Preloaded into a service by faults.py: a wall clock that can be set, and a disk that refuses, while the service runs
 * and without touching the machine's. The file $FAULTY_CLOCK has how many seconds the wall clock is ahead; the file
 * $FAULTY_DISK has the error that writing and syncing fail with, 0 being none. Both are read at each call. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out);
int gettimeofday(struct timeval *restrict out, void *restrict zone);
time_t time(time_t *out);

/* The number in the file that the environment names; 0 without one. */
static long number_in(const char *variable) {
    const char *path = getenv(variable);
    char text[32] = "";
    const int kept = errno, fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0)
            text[0] = '\0';
        close(fd);
    }
    errno = kept;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += number_in("FAULTY_CLOCK");
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now = {0};
    (void)zone;
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return result;
}

time_t time(time_t *out) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

/* The disk fails: errno says how. */
static int refuses(void) {
    const long why = number_in("FAULTY_DISK");
    errno = why ? (int)why : errno;
    return why != 0;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    return refuses() ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    return refuses() ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int fsync(int fd) {
    return refuses() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return refuses() ? -1 : (int)syscall(SYS_fdatasync, fd);
}
