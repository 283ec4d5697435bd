/* Pauses that end when a socket moves. A busy machine lengthens every pause, so these tests compare sums of many. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check.h"
#include "trial-runner/worker/pause.h"

/* The far end has a number that nobody looks at: it is as if another process had it. */
enum { FAR = 200 };

struct pair {
    int here, there;
};

static void pair_open(struct pair *pair) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof name;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &n), 0);
    pair->here = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(pair->here, (struct sockaddr *)&name, n), 0);
    const int accepted = accept(listener, NULL, NULL);
    pair->there = dup2(accepted, FAR);
    assert_int_equal(pair->there, FAR);
    close(accepted);
    close(listener);
}

static void pair_close(const struct pair *pair) {
    close(pair->here);
    close(pair->there);
}

/* So many pauses take 30 ms or more of 50 us each, and 300 ms of 500 us. Pauses that do not sleep take a few
 * microseconds each. */
enum { PAUSES = 600, TRIES = 20 };
static const double WATCHING_US = 250e3;

static double pauses_us(void) {
    const double began_us = clock_now_us();
    for (int i = 0; i < PAUSES; i++)
        pause_once();
    return clock_now_us() - began_us;
}

/* Once is enough: a busy machine may keep us from running. */
static bool stays_awake(void) {
    for (int i = 0; i < TRIES; i++)
        if (pauses_us() < WATCHING_US)
            return true;
    return false;
}

static void without_sockets_a_pause_sleeps(void **state) {
    (void)state;
    assert_true(pauses_us() >= PAUSES * PAUSE_US);
}

static void what_is_there_to_read_ends_pauses_until_it_is_read(void **state) {
    (void)state;
    struct pair pair;
    char byte = 1;
    pause_watch_sockets();
    assert_true(pauses_us() > WATCHING_US);
    pair_open(&pair);
    assert_true(pauses_us() > WATCHING_US);
    assert_int_equal(write(pair.there, &byte, 1), 1); /* it is found although it is new */
    assert_true(stays_awake());
    assert_int_equal(read(pair.here, &byte, 1), 1);
    assert_true(pauses_us() > WATCHING_US);
    pair_close(&pair);
}

static size_t fill(int fd) {
    static const char bytes[1 << 16];
    size_t n = 0;
    ssize_t more;
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while ((more = write(fd, bytes, sizeof bytes)) > 0)
        n += (size_t)more;
    assert_int_equal(errno, EAGAIN);
    return n;
}

static void drain(int fd, size_t n) {
    static char bytes[1 << 16];
    while (n > 0) {
        const ssize_t some = read(fd, bytes, n < sizeof bytes ? n : sizeof bytes);
        assert_true(some > 0);
        n -= (size_t)some;
    }
}

/* A socket that has room is no event, one that has it again is. */
static void room_ends_a_pause_once(void **state) {
    (void)state;
    bool seen = false;
    struct pair pair;
    pair_open(&pair);
    assert_true(pauses_us() > WATCHING_US);
    for (int i = 0; i < TRIES && !seen; i++) {
        const size_t n = fill(pair.here);
        assert_true(pauses_us() > WATCHING_US);
        drain(pair.there, n);
        const double began_us = clock_now_us();
        pause_once();
        seen = clock_now_us() - began_us < WATCHING_US / PAUSES;
        assert_true(pauses_us() > WATCHING_US);
    }
    assert_true(seen);
    pair_close(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_sockets_a_pause_sleeps),
        cmocka_unit_test(what_is_there_to_read_ends_pauses_until_it_is_read),
        cmocka_unit_test(room_ends_a_pause_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
