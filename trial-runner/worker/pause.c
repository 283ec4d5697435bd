/* MPI keeps its sockets to itself, so they are looked for among the process's descriptors every few milliseconds (10
 * us). What there is to read is asked as a state, since MPI may leave some of it in the socket; room is asked as a
 * change, since there mostly is some. */
#include "trial-runner/worker/pause.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* What MPI does after an event, or after a call, may need more looks that no socket asks for, as when a collective's
 * next round begins. So the first LOOKS pauses do not sleep, and the others sleep for longer and longer, up to
 * LONGEST_US. A push of 1 KB took 520 us with pauses of 500 us from the start, and takes 63 us with these. */
enum { LOOKS = 2, LONGEST_US = 500 };

enum { FIND_EVERY_US = 5000, FIRST_FD = 3, CLOSED_FDS = 64 }; /* so many closed ones in a row are taken for the end */

static int readable = -1; /* epoll: sockets with something to read, and `roomy` */
static int roomy = -1;    /* epoll: sockets that have room again */
static double found_us;
static int looks; /* still to come without sleep */
static double sleep_us = PAUSE_US;

static void watch(int epoll, int fd, unsigned events) {
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = events, .data = {.fd = fd}});
}

void pause_watch_sockets(void) {
    roomy = epoll_create1(EPOLL_CLOEXEC);
    if (roomy < 0)
        return;
    readable = epoll_create1(EPOLL_CLOEXEC);
    if (readable >= 0)
        watch(readable, roomy, EPOLLIN);
}

/* Sets errno to EBADF where no such descriptor is open. */
static bool is_network_socket(int fd) {
    struct sockaddr_storage name;
    socklen_t n = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &n) == 0 &&
           (name.ss_family == AF_INET || name.ss_family == AF_INET6);
}

/* One that is watched already is refused and stays as it is. */
static void find_sockets(void) {
    const double now_us = clock_now_us();
    if (now_us < found_us + FIND_EVERY_US)
        return;
    found_us = now_us;
    for (int fd = FIRST_FD, closed = 0; closed < CLOSED_FDS; fd++)
        if (is_network_socket(fd)) {
            watch(readable, fd, EPOLLIN);
            watch(roomy, fd, EPOLLOUT | EPOLLET);
        } else
            closed = errno == EBADF ? closed + 1 : 0;
}

static void take_room(void) {
    enum { MOST = 16 };
    struct epoll_event events[MOST];
    while (epoll_wait(roomy, events, MOST, 0) == MOST)
        continue;
}

/* Whether a socket moved before the time was up. Stops watching where the kernel lacks epoll_pwait2. */
static bool wait_for_sockets(double us) {
    enum { MOST = 16 };
    struct epoll_event events[MOST];
    const struct timespec limit = {.tv_nsec = (long)(us * 1e3)};
    find_sockets();
    const int n = epoll_pwait2(readable, events, MOST, &limit, NULL);
    for (int i = 0; i < n; i++)
        if (events[i].data.fd == roomy)
            take_room();
    if (n < 0 && errno != EINTR)
        readable = -1;
    return n > 0;
}

static void watch_for_us(double us) {
    if (looks > 0) {
        looks--;
    } else if (wait_for_sockets(fmin(us, sleep_us)) || us < sleep_us) { /* the caller has something to do, too */
        looks = LOOKS;
        sleep_us = PAUSE_US;
    } else {
        sleep_us = fmin(2 * sleep_us, LONGEST_US);
    }
}

void pause_for_us(double us) {
    if (readable >= 0)
        watch_for_us(us);
    else
        clock_sleep_us(fmin(us, PAUSE_US));
}

void pause_once(void) {
    pause_for_us(INFINITY);
}
