/* See keeper.h. When the service is away the thread tries again every second: after a restart leases begin anew, so
 * that nothing is lost as long as the service comes back. */
#include "cli/keeper.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"

static const double TICK_US = 0.1e6, REPORT_US = 2e6, AGAIN_US = 1e6;

struct keeper {
    struct keeper_options options;
    struct client *client;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_int flag, ended;       /* ended: also ends a request that is under way */
    enum keeper_verdict verdict;  /* the thread's own until it has ended */
    size_t n, capacity, reported; /* n, capacity and times: under the mutex */
    double *times_us;
};

const char *keeper_label(enum keeper_verdict verdict) {
    static const char *const words[] = {
#define X(constant, text) text,
        KEEPER_TABLE(X)
#undef X
    };
    return words[verdict];
}

const atomic_int *keeper_flag(const struct keeper *k) {
    return &k->flag;
}

void keeper_add(struct keeper *k, double time_us) {
    pthread_mutex_lock(&k->mutex);
    if (GROW(&k->times_us, &k->capacity, k->n + 1)) /* without memory it is missing in reports, not at the end */
        k->times_us[k->n++] = time_us;
    pthread_mutex_unlock(&k->mutex);
}

static void end_run(struct keeper *k, enum keeper_verdict verdict) {
    if (k->verdict == KEEPER_GO_ON)
        k->verdict = verdict;
    k->flag = 1;
}

/* ---- one word with the service ---- */

/* Make the body of a heartbeat, with the times if there are any. *n is their number. */
static cJSON *body_of(struct keeper *k, size_t *n, bool *whole) {
    cJSON *root = cJSON_CreateObject(), *times = NULL;
    *whole = root && cJSON_AddStringToObject(root, "client", k->options.client) &&
             cJSON_AddNumberToObject(root, "attempt", (double)k->options.attempt);
    pthread_mutex_lock(&k->mutex);
    *n = k->n;
    if (*whole && k->n) {
        times = cJSON_CreateDoubleArray(k->times_us, (int)k->n);
        *whole = times != NULL;
    }
    pthread_mutex_unlock(&k->mutex);
    if (times)
        cJSON_AddItemToObject(root, "iterations_us", times);
    return root;
}

/* False when the service could not be asked. */
static bool speak(struct keeper *k) {
    const struct keeper_options *o = &k->options;
    char path[160];
    struct error err = {0};
    cJSON *answer = NULL;
    bool whole;
    size_t n;
    cJSON *body = body_of(k, &n, &whole);
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/%lu:%s", o->session, (unsigned long)o->number,
             n ? "report" : "heartbeat");
    const struct client_request request = {
        .method = "POST", .path = path, .body = body, .deadline_us = o->lease_us / 3};
    enum status st = whole ? client_call(k->client, &request, &answer, &err) : error_no_memory(&err);
    if (st == ST_CONFLICT || st == ST_NOT_FOUND)
        end_run(k, KEEPER_LOST);
    else if (!st && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "stop")))
        end_run(k, KEEPER_STOP);
    if (!st)
        k->reported = n;
    else
        log_debug("trial %lu: %s", (unsigned long)o->number, ERROR_TEXT(&err));
    cJSON_Delete(answer);
    cJSON_Delete(body);
    return !st;
}

/* ---- the thread ---- */

/* False: the keeper is to end. */
static bool nap(struct keeper *k, size_t *n) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(TICK_US * 1e3);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&k->mutex);
    if (!k->ended)
        pthread_cond_timedwait(&k->wake, &k->mutex, &until);
    *n = k->n;
    const bool on = !k->ended;
    pthread_mutex_unlock(&k->mutex);
    return on;
}

static void *keep(void *context) {
    struct keeper *k = context;
    const double beat_us = k->options.lease_us / 3;
    double said_us = clock_now_us(), not_before_us = 0;
    size_t n;
    while (nap(k, &n)) {
        const double now = clock_now_us();
        const bool due = now - said_us >= beat_us || (n > k->reported && now - said_us >= REPORT_US);
        if (*k->options.interrupted)
            end_run(k, KEEPER_INTERRUPTED);
        if (k->flag || !due || now < not_before_us)
            continue;
        if (speak(k))
            said_us = clock_now_us();
        else
            not_before_us = clock_now_us() + AGAIN_US;
    }
    return NULL;
}

static void release(struct keeper *k) {
    client_close(k->client);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->mutex);
    free(k->times_us);
    free(k);
}

enum status keeper_start(const struct keeper_options *options, struct keeper **out, struct error *err) {
    pthread_condattr_t steady;
    struct keeper *k = calloc(1, sizeof *k);
    if (!k)
        return error_no_memory(err);
    k->options = *options;
    pthread_mutex_init(&k->mutex, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &steady);
    pthread_condattr_destroy(&steady);
    enum status st = remote_open(options->remote, 1, &k->ended, &k->client, err);
    if (!st && pthread_create(&k->thread, NULL, keep, k))
        st = error_set(err, ST_ENVIRONMENT, "no thread can be had to keep a trial's lease");
    if (st)
        release(k);
    else
        *out = k;
    return st;
}

enum keeper_verdict keeper_stop(struct keeper *k) {
    pthread_mutex_lock(&k->mutex);
    k->ended = 1;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->mutex);
    pthread_join(k->thread, NULL);
    const enum keeper_verdict verdict = k->verdict;
    release(k);
    return verdict;
}
