/* A service that answers as a test says, one connection an answer. Everything is static inline, because unit tests link
 * no sources of each other. */
#ifndef TESTS_UNIT_CLI_SCRIPTED_SERVICE_H
#define TESTS_UNIT_CLI_SCRIPTED_SERVICE_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/check.h"

enum { MOST_ANSWERS = 16, MOST_BYTES = 8192 };

/* NULL cuts the connection off when the request has come. */
struct script {
    int socket;
    char url[64];
    pthread_t thread;
    size_t n, served;
    const char *answers[MOST_ANSWERS];
    char requests[MOST_ANSWERS][MOST_BYTES];
};

/* Until the end of the body that Content-Length promises. */
static inline void read_request(int connection, char out[MOST_BYTES]) {
    size_t n = 0;
    while (n + 1 < MOST_BYTES) {
        ssize_t got = recv(connection, out + n, MOST_BYTES - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        out[n] = 0;
        const char *end = strstr(out, "\r\n\r\n"), *length = strcasestr(out, "\r\nContent-Length:");
        if (end && strlen(end + 4) >= (length && length < end ? strtoul(length + 17, NULL, 10) : 0))
            break;
    }
    out[n] = 0;
}

static inline void *serve(void *context) {
    struct script *s = context;
    for (; s->served < s->n; s->served++) {
        int connection = accept(s->socket, NULL, NULL);
        if (connection < 0)
            break;
        read_request(connection, s->requests[s->served]);
        const char *answer = s->answers[s->served];
        if (answer)
            (void)!send(connection, answer, strlen(answer), MSG_NOSIGNAL);
        close(connection);
    }
    return NULL;
}

static inline int listen_anywhere(unsigned *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s >= 0 && !bind(s, (struct sockaddr *)&address, sizeof address) && !listen(s, 16));
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return s;
}

static inline void script_start(struct script *s, size_t n, const char *const *answers) {
    unsigned port;
    memset(s, 0, sizeof *s);
    s->n = n;
    if (n)
        memcpy(s->answers, answers, n * sizeof *answers);
    s->socket = listen_anywhere(&port);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Every answer was asked for, and no more. */
static inline void script_end(struct script *s) {
    shutdown(s->socket, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->socket);
    assert_int_equal(s->served, s->n);
}

#define START(s, ...)                                                                                                  \
    script_start(&(s), sizeof(const char *[]){__VA_ARGS__} / sizeof(char *), (const char *const[]){__VA_ARGS__})

#define ANSWER(status, headers, type, body)                                                                            \
    "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Type: " type "\r\n" headers "\r\n" body
#define OK(body) ANSWER("200 OK", "", "application/json", body)
#define PROBLEM(status, c, more)                                                                                       \
    ANSWER(status, more, "application/problem+json",                                                                   \
           "{\"detail\":\"no luck\",\"code\":\"" c "\",\"request_id\":\"r7\"}")

#endif
