/* A real server on 127.0.0.1 within the test, and clients that speak to it over sockets, byte for byte. Everything is
 * static inline, because unit tests link no sources of each other. */
#ifndef TESTS_UNIT_SERVICE_HTTP_SITE_H
#define TESTS_UNIT_SERVICE_HTTP_SITE_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "service/http/http.h"
#include "service/service.h"
#include "tests/support/check.h"
#include "tests/support/dataset/place.h"

/* A model, which is called toy, and a cluster, which is called four. */
#define SITE_MODEL                                                                                                     \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["                        \
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,256],\"dtype\":\"f32\"}],"    \
    "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"                    \
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]}]}"
#define SITE_CLUSTER                                                                                                   \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"four\",\"nodes\":[{\"name\":\"n\",\"count\":4,"                    \
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}]}"

/* A server's test sets `options` and `open` before site_start, or leaves them. */
struct site {
    struct service_options service_options;
    struct server_options options;
    struct service *service;
    struct server *server;
    char dataset[512];
};

/* Every site has a dataset of its own; `name` is of its file. The tokens of one in PostgreSQL lie in the working
 * folder. */
static inline void site_place(struct site *site, const char *name) {
    snprintf(site->dataset, sizeof site->dataset, "%s", dataset_path("%s.db", name));
    if (test_database())
        assert_int_equal(chdir(test_dir()), 0);
}

static inline void site_start(struct site *site, const char *name) {
    struct error err = {0};
    site_place(site, name);
    site->service_options.access.dataset = site->dataset;
    if (!site->options.threads)
        site->options.threads = 2;
    if (!site->options.workers)
        site->options.workers = 2;
    assert_ok(service_open(&site->service_options, &site->service, &err));
    assert_ok(http_start(&site->options, site->service, &site->server, &err));
}

static inline uint16_t site_port(const struct site *site) {
    return (uint16_t)strtoul(strrchr(server_url(site->server), ':') + 1, NULL, 10);
}

static inline void site_stop(struct site *site) {
    server_stop(site->server, 5);
    service_close(site->service);
    site->server = NULL;
    site->service = NULL;
}

/* The file of its tokens. */
static inline void site_tokens(const struct site *site, char path[600]) {
    struct error err;
    assert_ok(store_beside(site->dataset, "tokens", path, 600, &err));
}

/* A token for the site of this dataset, before it starts or while it runs. */
static inline void site_token(const struct site *site, const struct token *wanted, char secret[TOKEN_LENGTH + 1]) {
    struct error err;
    struct token made;
    char path[600];
    site_tokens(site, path);
    assert_ok(tokens_create(path, wanted, &made, secret, &err));
}

/* A connection. */
static inline int site_connect(const struct site *site) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(site_port(site))};
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* False when the peer has closed. */
static inline bool site_send(int fd, const char *bytes, size_t n) {
    while (n) {
        ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static inline bool site_say(int fd, const char *text) {
    return site_send(fd, text, strlen(text));
}

/* What comes until `part` has come (NULL: until the peer closes), or `wait_s` without it; NUL-terminated in to[n].
 * *closed (may be NULL) says whether the peer closed. */
static inline size_t site_hear(int fd, const char *part, double wait_s, char *to, size_t n, bool *closed) {
    const double until = clock_now_us() + wait_s * 1e6;
    size_t used = 0;
    bool end = false;
    to[0] = '\0';
    while (used + 1 < n && !(part && strstr(to, part))) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        const double left = until - clock_now_us();
        if (left <= 0 || poll(&poller, 1, (int)(left / 1000) + 1) <= 0)
            break;
        ssize_t got = recv(fd, to + used, n - 1 - used, 0);
        if (got <= 0) {
            end = true;
            break;
        }
        used += (size_t)got;
        to[used] = '\0';
    }
    if (closed)
        *closed = end;
    return used;
}

/* One request on a connection of its own. */
struct reply {
    int status;
    char *head, *body; /* in `text` */
    char text[1 << 18];
};

static inline void site_parse(struct reply *reply) {
    char *end = strstr(reply->text, "\r\n\r\n");
    reply->status = 0;
    sscanf(reply->text, "HTTP/1.1 %d", &reply->status);
    reply->head = reply->text;
    reply->body = end ? end + 4 : reply->text + strlen(reply->text);
    if (end)
        *end = '\0';
}

/* `headers` are whole lines with their ends, or "". */
static inline struct reply *site_ask(const struct site *site, const char *method, const char *path, const char *headers,
                                     const char *body) {
    static struct reply reply;
    char head[4096];
    int fd = site_connect(site);
    int n =
        body ? snprintf(head, sizeof head,
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n%s%sContent-Length: %zu\r\n\r\n",
                        method, path, site_port(site),
                        strstr(headers, "Content-Type") ? "" : "Content-Type: application/json\r\n", headers,
                        strlen(body))
             : snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n%s\r\n",
                        method, path, site_port(site), headers);
    assert_true(n > 0 && (size_t)n < sizeof head);
    site_send(fd, head, (size_t)n);
    if (body)
        site_say(fd, body);
    site_hear(fd, NULL, 60, reply.text, sizeof reply.text, NULL);
    close(fd);
    site_parse(&reply);
    return &reply;
}

static inline struct reply *site_get(const struct site *site, const char *path) {
    return site_ask(site, "GET", path, "", NULL);
}

static inline struct reply *site_post(const struct site *site, const char *path, const char *body) {
    return site_ask(site, "POST", path, "", body);
}

/* To what stands below a session's path. */
static inline struct reply *site_post_to(const struct site *site, const char *session, const char *tail,
                                         const char *body) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", session, tail);
    return site_post(site, path, body);
}

/* The value of a header, in a buffer that the next call uses again; NULL when it is not there. */
static inline const char *reply_header(const struct reply *reply, const char *name) {
    static char value[1024];
    const size_t n = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (!strncasecmp(line + 2, name, n) && line[2 + n] == ':') {
            const char *from = line + 3 + n;
            from += strspn(from, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
            return value;
        }
    return NULL;
}

/* What a reply of this status says; the caller's. */
static inline cJSON *reply_json(const struct reply *reply, int status) {
    struct error err = {0};
    cJSON *json = NULL;
    if (reply->status != status)
        print_error("%s\n%s\n", reply->head, reply->body);
    assert_int_equal(reply->status, status);
    assert_ok(json_parse(reply->body, strlen(reply->body), "reply", &json, &err));
    return json;
}

/* The reply is a problem of this status and code, with everything that a problem has. */
static inline void assert_problem(const struct reply *reply, int status, const char *code) {
    struct error err = {0};
    cJSON *json = reply_json(reply, status);
    assert_string_equal(reply_header(reply, "Content-Type"), "application/problem+json");
    struct json_at at = json_root(json, "problem");
    const char *word, *id;
    uint64_t number;
    assert_ok(json_get_string(&at, "code", JSON_REQUIRED, &word, &err));
    assert_string_equal(word, code);
    assert_ok(json_get_integer(&at, "status", JSON_REQUIRED, 400, 599, &number, &err));
    assert_int_equal(number, status);
    assert_ok(json_get_string(&at, "type", JSON_REQUIRED, &word, &err));
    assert_contains(word, code);
    assert_ok(json_get_string(&at, "detail", JSON_REQUIRED, &word, &err));
    assert_ok(json_get_string(&at, "request_id", JSON_REQUIRED, &id, &err));
    assert_string_equal(id, reply_header(reply, "X-Request-Id"));
    cJSON_Delete(json);
}

#endif
