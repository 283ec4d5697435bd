/* See sign_ins.h. One array, searched from its beginning: it is small, and a request in a hundred carries a cookie. */
#include "service/sign_ins.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/id.h"

struct sign_in {
    struct id hash; /* of the cookie's value */
    char token[TOKEN_ID_LENGTH + 1];
    double began_us, used_us;
};

struct sign_ins {
    pthread_mutex_t mutex;
    double idle_us, whole_us;
    size_t n;
    struct sign_in rows[SIGN_INS_MOST];
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct sign_ins *sign_ins_new(double idle_us, double whole_us) {
    struct sign_ins *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->idle_us = idle_us;
    s->whole_us = whole_us;
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

void sign_ins_free(struct sign_ins *s) {
    if (!s)
        return;
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static bool has_ended(const struct sign_ins *s, const struct sign_in *row, double now) {
    return now - row->used_us >= s->idle_us || now - row->began_us >= s->whole_us;
}

/* Drop the sign-ins that have ended. Call with the mutex held. */
static void drop_ended(struct sign_ins *s, double now) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!has_ended(s, &s->rows[i], now))
            s->rows[kept++] = s->rows[i];
    s->n = kept;
}

/* Find the place of the next sign-in of this token: behind the others, or in place of the one that was used longest
 * ago. */
static struct sign_in *place_for(struct sign_ins *s, const char *token) {
    struct sign_in *oldest = NULL, *own = NULL;
    size_t of_token = 0;
    for (struct sign_in *row = s->rows; row < s->rows + s->n; row++) {
        const bool same = !strcmp(row->token, token);
        of_token += same;
        if (!oldest || row->used_us < oldest->used_us)
            oldest = row;
        if (same && (!own || row->used_us < own->used_us))
            own = row;
    }
    return of_token >= SIGN_INS_PER_TOKEN ? own : s->n < SIGN_INS_MOST ? &s->rows[s->n++] : oldest;
}

enum status sign_ins_begin(struct sign_ins *s, const char *token, char value[SIGN_IN_LENGTH + 1], struct error *err) {
    unsigned char bytes[SIGN_IN_LENGTH / 2];
    const double now = now_us();
    struct sign_in row = {.began_us = now, .used_us = now};
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, ST_ENVIRONMENT, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(value + 2 * i, 3, "%02x", bytes[i]);
    enum status st = id_of(value, SIGN_IN_LENGTH, &row.hash, err);
    if (st)
        return st;
    snprintf(row.token, sizeof row.token, "%s", token);
    pthread_mutex_lock(&s->mutex);
    drop_ended(s, now);
    *place_for(s, token) = row;
    pthread_mutex_unlock(&s->mutex);
    return ST_OK;
}

/* Find a sign-in; NULL: there is none. Call with the mutex held. */
static struct sign_in *find(struct sign_ins *s, const struct id *hash) {
    for (size_t i = 0; i < s->n; i++)
        if (!memcmp(s->rows[i].hash.hex, hash->hex, ID_LENGTH))
            return &s->rows[i];
    return NULL;
}

bool sign_ins_find(struct sign_ins *s, const char *value, char token[TOKEN_ID_LENGTH + 1]) {
    struct id hash;
    const double now = now_us();
    if (strlen(value) != SIGN_IN_LENGTH || id_of(value, SIGN_IN_LENGTH, &hash, NULL))
        return false;
    pthread_mutex_lock(&s->mutex);
    struct sign_in *row = find(s, &hash);
    const bool valid = row && !has_ended(s, row, now);
    if (valid) {
        row->used_us = now;
        memcpy(token, row->token, sizeof row->token);
    }
    pthread_mutex_unlock(&s->mutex);
    return valid;
}

bool sign_ins_holds(struct sign_ins *s, const char *value) {
    struct id hash;
    if (strlen(value) != SIGN_IN_LENGTH || id_of(value, SIGN_IN_LENGTH, &hash, NULL))
        return false;
    pthread_mutex_lock(&s->mutex);
    const struct sign_in *row = find(s, &hash);
    const bool holds = row && !has_ended(s, row, now_us());
    pthread_mutex_unlock(&s->mutex);
    return holds;
}

void sign_ins_end(struct sign_ins *s, const char *value) {
    struct id hash;
    if (strlen(value) != SIGN_IN_LENGTH || id_of(value, SIGN_IN_LENGTH, &hash, NULL))
        return;
    pthread_mutex_lock(&s->mutex);
    struct sign_in *row = find(s, &hash);
    if (row)
        *row = s->rows[--s->n];
    pthread_mutex_unlock(&s->mutex);
}
