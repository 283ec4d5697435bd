/* Leader and followers: a thread that finds nobody writing takes the whole queue, its own step among it, and writes it
 * in one transaction, while the others wait and the next queue grows behind it. The longer a sync takes, the more steps
 * share the next one. Where the transaction itself fails (a full disk), each step is run again on its own, so that the
 * innocent are not punished. Cost: one sync for each leader's turn. */
#include "dataset/writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/work.h"

struct job {
    struct job *next;
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
    struct job *first, **last; /* the queue */
    bool writing;
    uint64_t steps, commits;
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

/* One step in a transaction or savepoint of its own. */
static void run_one(struct writer *writer, struct job *job) {
    job->err = (struct error){0};
    job->status = store_begin(writer->store, &job->err);
    if (job->status == ST_OK)
        job->status = store_end(writer->store, job->step(job->context, writer->store, &job->err), &job->err);
}

/* run_alone and run_together return how many transactions they made. */
static uint64_t run_alone(struct writer *writer, struct job *jobs) {
    uint64_t n = 0;
    for (struct job *job = jobs; job; job = job->next, n++)
        run_one(writer, job);
    return n;
}

static uint64_t run_together(struct writer *writer, struct job *jobs) {
    if (store_begin(writer->store, NULL) != ST_OK)
        return run_alone(writer, jobs);
    for (struct job *job = jobs; job; job = job->next)
        run_one(writer, job);
    return store_end(writer->store, ST_OK, NULL) == ST_OK ? 1 : run_alone(writer, jobs);
}

/* Called with the lock held, which is let go while the queue is written. */
static void lead(struct writer *writer) {
    struct job *jobs = writer->first;
    writer->first = NULL;
    writer->last = &writer->first;
    writer->writing = true;
    pthread_mutex_unlock(&writer->lock);
    struct work *work = work_current(); /* whose bounds are not those of the others' steps */
    work_leave();
    const uint64_t commits = jobs->next ? run_together(writer, jobs) : run_alone(writer, jobs);
    work_enter(work);
    pthread_mutex_lock(&writer->lock);
    writer->commits += commits;
    writer->writing = false;
    for (struct job *job = jobs, *next; job; job = next) {
        next = job->next; /* a job that is done belongs to its thread again */
        writer->steps++;
        job->done = true;
    }
    pthread_cond_broadcast(&writer->finished);
}

enum status writer_run(struct writer *writer, write_step *step, void *context, struct error *err) {
    struct job job = {.step = step, .context = context};
    pthread_mutex_lock(&writer->lock);
    *writer->last = &job;
    writer->last = &job.next;
    while (!job.done) {
        if (writer->writing)
            pthread_cond_wait(&writer->finished, &writer->lock);
        else
            lead(writer);
    }
    pthread_mutex_unlock(&writer->lock);
    if (job.status != ST_OK && err)
        *err = job.err;
    return job.status;
}

void writer_counts(struct writer *writer, uint64_t *steps, uint64_t *commits) {
    pthread_mutex_lock(&writer->lock);
    *steps = writer->steps;
    *commits = writer->commits;
    pthread_mutex_unlock(&writer->lock);
}
