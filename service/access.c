/* See access.h. A thread's reader hangs on a pthread key, whose destructor closes it when the thread ends. */
#include "service/access.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "dataset/claims.h"
#include "dataset/events.h"
#include "dataset/requests.h"

static const double DAY_US = 86400e6;

enum kept { KEPT_ANSWERS, KEPT_AUDIT, KEPT_EVENTS, KEPT };

struct access {
    char *path;
    double keep_us[KEPT];
    struct store *store; /* the writer's */
    struct writer *writer;
    bool shared, alone;
    bool has_key;
    pthread_key_t reader;
};

static void close_reader(void *store) {
    store_close(store);
}

static enum status open_parts(struct access *a, struct error *err) {
    if (!a->path)
        return error_no_memory(err);
    a->has_key = !pthread_key_create(&a->reader, close_reader);
    if (!a->has_key)
        return error_set(err, ST_ENVIRONMENT, "no more thread keys");
    const mode_t mask = umask(077); /* a new dataset is for its owner alone: teams keep private things in it */
    enum status st = store_open(a->path, STORE_READ_WRITE, &a->store, err);
    umask(mask);
    if (!st)
        st = store_join(a->store, &a->alone, err);
    a->shared = !st && store_is_shared(a->store);
    return st ? st : writer_new(a->store, &a->writer, err);
}

enum status access_open(const struct access_options *options, struct access **out, struct error *err) {
    struct access *a = calloc(1, sizeof *a);
    if (!a)
        return error_no_memory(err);
    a->path = strdup(options->dataset);
    a->keep_us[KEPT_ANSWERS] = options->keep_answers_us > 0 ? options->keep_answers_us : DAY_US;
    a->keep_us[KEPT_AUDIT] = options->keep_audit_us > 0 ? options->keep_audit_us : 2 * 365 * DAY_US;
    a->keep_us[KEPT_EVENTS] = options->keep_events_us > 0 ? options->keep_events_us : INFINITY;
    enum status st = open_parts(a, err);
    if (st)
        access_close(a);
    else
        *out = a;
    return st;
}

void access_close(struct access *a) {
    if (!a)
        return;
    if (a->has_key) {
        store_close(pthread_getspecific(a->reader));
        pthread_key_delete(a->reader);
    }
    writer_free(a->writer);
    store_close(a->store);
    free(a->path);
    free(a);
}

const char *access_path(const struct access *a) {
    return a->path;
}

bool access_is_shared(const struct access *a) {
    return a->shared;
}

bool access_was_alone(const struct access *a) {
    return a->alone;
}

void access_hide_path(const struct access *a, struct error *err) {
    if (err && !strcmp(err->place, a->path))
        err->place[0] = '\0';
}

enum status access_read(struct access *a, struct store **out, struct error *err) {
    struct store *store = pthread_getspecific(a->reader);
    if (store) {
        *out = store;
        return ST_OK;
    }
    enum status st = store_open(a->path, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    if (pthread_setspecific(a->reader, store)) {
        store_close(store);
        return error_no_memory(err);
    }
    *out = store;
    return ST_OK;
}

enum status access_write(struct access *a, write_step *step, void *context, struct error *err) {
    return writer_run(a->writer, step, context, err);
}

struct forgetting {
    struct access *access;
    uint64_t n;
};

/* Deletes a thousand rows of each at most, so that others can write in between and a transaction stays small. */
static enum status forget(void *context, struct store *store, struct error *err) {
    static enum status (*const prune[KEPT])(struct store * store, const char *before, uint64_t *n,
                                            struct error *err) = {
        [KEPT_ANSWERS] = response_prune, [KEPT_AUDIT] = audit_prune, [KEPT_EVENTS] = event_prune};
    struct forgetting *f = context;
    enum status st = ST_OK;
    f->n = 0;
    for (enum kept kind = 0; kind < KEPT && !st; kind++) {
        char before[32];
        uint64_t n = 0;
        if (!isfinite(f->access->keep_us[kind]))
            continue;
        clock_utc_after(-f->access->keep_us[kind], before, sizeof before);
        st = prune[kind](store, before, &n, err);
        f->n += n;
    }
    return st;
}

enum status access_forget(struct access *a, bool *more, struct error *err) {
    struct forgetting f = {.access = a};
    enum status st = access_write(a, forget, &f, err);
    *more = !st && f.n;
    return st;
}
