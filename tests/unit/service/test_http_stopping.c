/* A server that is stopped, again and again, in the middle of requests that libmicrohttpd refuses by itself. 0.9.75
 * ends the process when it is stopped just while it makes such an answer. A client's thread asserts nothing. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/service/http_site.h"

enum { CLIENTS = 6, ROUNDS = 40 };
static const double ROUND_US = 15e3;

static atomic_uint port;
static atomic_bool over;
static atomic_uint refused;

/* What the library answers without asking us: a version, a length and a chunk's size that are none. */
static const char *const frames[] = {
    "GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n",
    "POST /sign-in HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST /sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    "Transfer-Encoding: chunked\r\n\r\ng\r\nx\r\n0\r\n\r\n",
};

static void *offend(void *context) {
    const char *frame = context;
    char answer[1024];
    while (!atomic_load(&over)) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atomic_load(&port))};
        inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof at) && site_say(fd, frame))
            atomic_fetch_add(&refused, recv(fd, answer, sizeof answer, 0) > 0);
        else
            clock_sleep_us(500); /* it is being started again */
        close(fd);
    }
    return NULL;
}

static void a_server_stops_among_refusals(void **state) {
    (void)state;
    struct site site = {.service_options.open = true};
    struct error err = {0};
    pthread_t clients[CLIENTS];
    site_start(&site, "stopping");
    atomic_store(&port, site_port(&site));
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, offend, (void *)frames[i % 3]), 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        clock_sleep_us(ROUND_US);
        server_stop(site.server, 0);
        assert_ok(http_start(&site.options, site.service, &site.server, &err));
        atomic_store(&port, site_port(&site));
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    site_stop(&site);
    assert_true(atomic_load(&refused) > ROUNDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_server_stops_among_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
