/* See memory.h. A short list of owners under one mutex: of bodies in memory and of answers, pieces below 64 KiB are not
 * counted (exchange.c), so that few requests come here. An upload comes here with each piece that is received. */
#include "service/http/transport/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct owner {
    struct owner *next;
    uint64_t held;
    char name[80];
};

struct memory {
    pthread_mutex_t mutex;
    uint64_t most, held;
    struct owner *owners;
};

struct memory *memory_new(uint64_t most_bytes) {
    struct memory *m = calloc(1, sizeof *m);
    if (m) {
        pthread_mutex_init(&m->mutex, NULL);
        m->most = most_bytes;
    }
    return m;
}

void memory_free(struct memory *m) {
    if (!m)
        return;
    for (struct owner *o = m->owners, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

uint64_t memory_share(const struct memory *m) {
    return m->most / 2;
}

/* The link to the owner of this name, or the one at the end, which is NULL. */
static struct owner **find(struct memory *m, const char *name) {
    struct owner **at = &m->owners;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool fits(struct memory *m, const char *name, uint64_t bytes) {
    const struct owner *o = *find(m, name);
    return m->held <= m->most && bytes <= m->most - m->held && (o ? o->held : 0) + bytes <= memory_share(m);
}

static bool add(struct memory *m, const char *name, uint64_t bytes) {
    struct owner **at = find(m, name);
    if (!*at && (*at = calloc(1, sizeof **at)))
        snprintf((*at)->name, sizeof(*at)->name, "%s", name);
    if (!*at)
        return false;
    (*at)->held += bytes;
    m->held += bytes;
    return true;
}

bool memory_take(struct memory *m, const char *name, uint64_t bytes) {
    pthread_mutex_lock(&m->mutex);
    const bool taken = fits(m, name, bytes) && add(m, name, bytes);
    pthread_mutex_unlock(&m->mutex);
    return taken;
}

bool memory_count(struct memory *m, const char *name, uint64_t bytes) {
    pthread_mutex_lock(&m->mutex);
    const bool counted = add(m, name, bytes);
    pthread_mutex_unlock(&m->mutex);
    return counted;
}

void memory_give(struct memory *m, const char *name, uint64_t bytes) {
    pthread_mutex_lock(&m->mutex);
    struct owner **at = find(m, name), *o = *at;
    m->held -= bytes;
    if (o && !(o->held -= bytes)) {
        *at = o->next;
        free(o);
    }
    pthread_mutex_unlock(&m->mutex);
}

uint64_t memory_held(struct memory *m) {
    pthread_mutex_lock(&m->mutex);
    const uint64_t held = m->held;
    pthread_mutex_unlock(&m->mutex);
    return held;
}
