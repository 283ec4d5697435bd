/* Leader and followers: a thread that finds nobody writing takes the whole queue, its own step among it, and writes it
 * in one transaction, while the others wait and the next queue grows behind it. The longer a sync takes, the more steps
 * share the next one. Where the transaction itself fails (a full disk), each step is run again in a transaction of its
 * own, so that steps that could succeed do. Cost: one sync for each leader's turn. */
#include "dataset/writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/work.h"
#include "dataset/store_internal.h"

struct queued_step {
    struct queued_step *next;
    write_step *step;
    void *context;
    enum status status;
    struct error err;
    bool done;
};

struct writer {
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    struct queued_step *first, **last; /* the queue */
    bool writing;
};

enum status writer_new(struct store *store, struct writer **out, struct error *err) {
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err);
    writer->store = store;
    writer->last = &writer->first;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->finished, NULL);
    *out = writer;
    return ST_OK;
}

void writer_free(struct writer *writer) {
    if (!writer)
        return;
    pthread_cond_destroy(&writer->finished);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

/* Run the step in a transaction of its own, or in a savepoint if a transaction is open. */
static void run_one(struct writer *writer, struct queued_step *queued) {
    struct store *store = writer->store;
    for (int i = 0; i <= STEP_TRIES; i++) {
        step_pause(i);
        queued->err = (struct error){0};
        store->again = false;
        queued->status = store_begin(store, &queued->err);
        if (!queued->status)
            queued->status = store_end(store, queued->step(queued->context, store, &queued->err), &queued->err);
        if (!queued->status || !store->again)
            return;
    }
}

static void run_all(struct writer *writer, struct queued_step *queue) {
    for (struct queued_step *queued = queue; queued; queued = queued->next)
        run_one(writer, queued);
}

/* All in one transaction. False: nothing of it was kept. */
static bool run_together(struct writer *writer, struct queued_step *queue) {
    if (store_begin(writer->store, NULL))
        return false;
    run_all(writer, queue);
    return !store_end(writer->store, ST_OK, NULL);
}

/* Called with the lock held. The lock is released while the queue is written. */
static void lead(struct writer *writer) {
    struct queued_step *queue = writer->first;
    writer->first = NULL;
    writer->last = &writer->first;
    writer->writing = true;
    pthread_mutex_unlock(&writer->lock);
    struct work *work = work_current(); /* this thread's bounds, which do not hold for the others' steps */
    work_leave();
    if (!queue->next || !run_together(writer, queue))
        run_all(writer, queue);
    work_enter(work);
    pthread_mutex_lock(&writer->lock);
    writer->writing = false;
    for (struct queued_step *queued = queue, *next; queued; queued = next) {
        next = queued->next; /* read before `done` is set: a step that is done belongs to its thread again */
        queued->done = true;
    }
    pthread_cond_broadcast(&writer->finished);
}

enum status writer_run(struct writer *writer, write_step *step, void *context, struct error *err) {
    struct queued_step queued = {.step = step, .context = context};
    pthread_mutex_lock(&writer->lock);
    *writer->last = &queued;
    writer->last = &queued.next;
    while (!queued.done) {
        if (writer->writing)
            pthread_cond_wait(&writer->finished, &writer->lock);
        else
            lead(writer);
    }
    pthread_mutex_unlock(&writer->lock);
    if (queued.status && err)
        *err = queued.err;
    return queued.status;
}
