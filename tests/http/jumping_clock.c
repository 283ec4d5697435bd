/* Preloaded into a service by faults.py: its wall clock is ahead by as many seconds as the file $JUMPING_CLOCK says, so
 * that the clock can be set while the service runs, without touching the machine's. The other clocks go on as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead_s(void) {
    const char *path = getenv("JUMPING_CLOCK");
    FILE *file = path ? fopen(path, "r") : NULL;
    long ahead = 0;
    if (file && fscanf(file, "%ld", &ahead) != 1)
        ahead = 0;
    if (file)
        fclose(file);
    return ahead;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += ahead_s();
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
