/* Every allocation of a client fails once: a call, a page of text, a stream of events, a dataset that is sent. The
 * service is a thread that answers by what is asked for and allocates nothing. */
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/remote_merge.h"
#include "dataset/ingest.h"
#include "tests/support/check.h"
#include "tests/support/dataset/put.h"
#include "tests/support/torture.h"

#define ANSWER(type, headers, body)                                                                                    \
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " type "\r\n" headers "\r\n" body

static int listener;
static char url[64];
static pthread_t thread;

static const char *answer_to(const char *request) {
    if (strstr(request, "/events"))
        return ANSWER("text/event-stream", "", "id: 4\nevent: trial\ndata: {\"n\":1}\n\nid: 5\ndata: two\n\n");
    if (strstr(request, "/records?"))
        return ANSWER("application/jsonl", "Next-Page-Token: further\r\n", "{}\n");
    return ANSWER("application/json", "", "{\"objects\":3,\"trials\":2,\"list\":[1,\"two\"]}");
}

/* A request to its end: of its head, and of a body, which is an object. */
static void hear_request(int connection, char *to, size_t room) {
    size_t n = 0;
    ssize_t got;
    do {
        got = recv(connection, to + n, room - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
        to[n] = 0;
    } while (got > 0 && n + 1 < room && (!strstr(to, "\r\n\r\n") || (!strncmp(to, "POST", 4) && to[n - 1] != '}')));
}

static void *answer_all(void *context) {
    char request[65536];
    (void)context;
    for (int connection; (connection = accept(listener, NULL, NULL)) >= 0; close(connection)) {
        hear_request(connection, request, sizeof request);
        const char *answer = answer_to(request);
        (void)!send(connection, answer, strlen(answer), MSG_NOSIGNAL);
    }
    return NULL;
}

static int set_up(void **state) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    (void)state;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        return -1;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return pthread_create(&thread, NULL, answer_all, NULL);
}

static int tear_down(void **state) {
    (void)state;
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    return 0;
}

static enum status open_client(struct client **out, struct error *err) {
    const struct client_options options = {.url = url, .token = "syn_a_b", .ca_file = "ca.pem", .tries = 2};
    return client_open(&options, out, err);
}

static enum status call(void *arg, struct error *err) {
    struct client *client;
    cJSON *answer = NULL;
    enum status st = open_client(&client, err);
    if (st)
        return st;
    const struct client_request request = {.method = "POST", .path = "/x", .body = arg, .key = "k"};
    st = client_call(client, &request, &answer, err);
    if (!st && !cJSON_GetObjectItemCaseSensitive(answer, "objects"))
        st = error_set(err, ST_INVALID, "another answer");
    cJSON_Delete(answer);
    client_close(client);
    return st;
}

static enum status fetch_text(void *arg, struct error *err) {
    struct client *client;
    struct client_text text;
    (void)arg;
    enum status st = open_client(&client, err);
    if (st)
        return st;
    st = client_text(client, "/records?x", "application/jsonl", &text, err);
    if (!st && (strcmp(text.text, "{}\n") != 0 || strcmp(text.next_page, "further") != 0))
        st = error_set(err, ST_INVALID, "another text");
    if (!st)
        free(text.text);
    client_close(client);
    return st;
}

static bool until_five(void *context, const struct client_event *event) {
    snprintf(context, 8, "%s", event->id);
    return strcmp(event->id, "5") != 0;
}

static enum status hear(void *arg, struct error *err) {
    struct client *client;
    char last[8] = "";
    (void)arg;
    enum status st = open_client(&client, err);
    if (st)
        return st;
    st = client_listen(client, "/events", "3", 2, until_five, last, err);
    if (!st && strcmp(last, "5") != 0)
        st = error_set(err, ST_INVALID, "not all events");
    client_close(client);
    return st;
}

static enum status push(void *arg, struct error *err) {
    struct client *client;
    struct import_counts counts;
    enum status st = open_client(&client, err);
    if (st)
        return st;
    st = remote_push(client, arg, &counts, err);
    if (!st && counts.trials != 2)
        st = error_set(err, ST_INVALID, "another count");
    client_close(client);
    return st;
}

static void a_call_survives_every_failed_allocation(void **state) {
    (void)state;
    cJSON *body = cJSON_Parse("{\"a\":[1,2,{\"b\":\"c\"}]}");
    assert_non_null(body);
    assert_true(torture(call, body) > 10);
    cJSON_Delete(body);
}

static void a_page_of_text_does(void **state) {
    (void)state;
    assert_true(torture(fetch_text, NULL) > 4);
}

static void a_stream_of_events_does(void **state) {
    (void)state;
    assert_true(torture(hear, NULL) > 4);
}

/* Two trials, one of them in a session. */
static struct store *small_dataset(void) {
    struct error err = {0};
    struct store *store;
    struct id model, cluster, strategy;
    struct import_report report;
    char path[256];
    snprintf(path, sizeof path, "%s/small.db", test_dir());
    assert_ok(store_open(path, STORE_READ_WRITE, &store, &err));
    assert_ok(put_object(store, STORE_MODEL, "m", "{}", &model, &err));
    assert_ok(put_object(store, STORE_CLUSTER, "c", "{}", &cluster, &err));
    assert_ok(put_object(store, STORE_STRATEGY, "s", "{}", &strategy, &err));
    const struct stored_session session = {.id = "s1", .model = model.hex, .cluster = cluster.hex, .budget = "{}"};
    assert_ok(store_session_begin(store, &session, &err));
    assert_ok(store_session_update(store, "s1", STORED_SESSION_DONE, "done", &err));
    for (int i = 0; i < 2; i++) {
        const struct record record = {.session = i ? "s1" : NULL,
                                      .model = model.hex,
                                      .cluster = cluster.hex,
                                      .strategy = strategy.hex,
                                      .proposer = "p",
                                      .runner = "lab",
                                      .state = RECORD_FAILED,
                                      .reason = "r",
                                      .predicted_us = NAN,
                                      .mean_us = NAN,
                                      .median_us = NAN,
                                      .low_us = NAN,
                                      .high_us = NAN};
        assert_ok(store_trials_import(store, 1, &record, NULL, &report, &err));
    }
    return store;
}

static void sending_a_dataset_does(void **state) {
    (void)state;
    struct store *store = small_dataset();
    assert_true(torture(push, store) > 20);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_survives_every_failed_allocation),
        cmocka_unit_test(a_page_of_text_does),
        cmocka_unit_test(a_stream_of_events_does),
        cmocka_unit_test(sending_a_dataset_does),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
