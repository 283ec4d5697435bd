/* Jackson's rule with a heap of the released jobs, longest tail on top; see strategy/exact/one_machine.h.
 *
 * Jobs lie in the order of release, so that positions settle ties, and time moves from one release or completion to the
 * next: at most 2n steps. A chain's jobs come sorted already, and are then not sorted again. */
#include "strategy/exact/one_machine.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_release(const void *a, const void *b) {
    const struct machine_job *x = a, *y = b;
    return (x->release > y->release) - (x->release < y->release);
}

static int by_release_of(const void *a, const void *b, void *context) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = by_release((const struct machine_job *)context + x, (const struct machine_job *)context + y);
    return order ? order : (x > y) - (x < y);
}

static bool sorted(size_t n, const struct machine_job *jobs) {
    for (size_t i = 1; i < n; i++)
        if (jobs[i].release < jobs[i - 1].release)
            return false;
    return true;
}

static bool goes_before(const struct machine_job *jobs, uint32_t x, uint32_t y) {
    return jobs[x].tail > jobs[y].tail || (jobs[x].tail == jobs[y].tail && x < y);
}

/* Heap of positions in jobs[]: who goes first is on top. */
static void heap_push(const struct machine_job *jobs, uint32_t *heap, size_t n, uint32_t item) {
    for (; n > 0 && goes_before(jobs, item, heap[(n - 1) / 2]); n = (n - 1) / 2)
        heap[n] = heap[(n - 1) / 2];
    heap[n] = item;
}

static void heap_pop(const struct machine_job *jobs, uint32_t *heap, size_t n) {
    uint32_t item = heap[--n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_before(jobs, heap[child + 1], heap[child]))
            child++;
        if (goes_before(jobs, item, heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

/* Where the slices go; order[k] is the caller's position of jobs[k]. */
struct record {
    struct machine_slice *slices;
    const uint32_t *order;
    size_t n;
};

static void add_slice(struct record *record, uint32_t job, double start, double end) {
    struct machine_slice *last = record->n ? &record->slices[record->n - 1] : NULL;
    if (end <= start)
        return;
    if (last && last->job == record->order[job] && last->end >= start)
        last->end = end;
    else
        record->slices[record->n++] = (struct machine_slice){record->order[job], start, end};
}

/* Jobs sorted by release; record may be NULL. */
static double run(size_t n, struct machine_job *jobs, uint32_t *heap, struct record *record) {
    double now = 0, value = 0;
    size_t waiting = 0, next = 0;
    while (waiting > 0 || next < n) {
        if (waiting == 0)
            now = fmax(now, jobs[next].release);
        for (; next < n && jobs[next].release <= now; next++)
            heap_push(jobs, heap, waiting++, (uint32_t)next);
        struct machine_job *job = &jobs[heap[0]];
        double until = next < n ? jobs[next].release : INFINITY, end = fmin(now + job->work, until);
        if (record)
            add_slice(record, heap[0], now, end);
        if (now + job->work > until) {
            job->work -= until - now;
        } else {
            value = fmax(value, end + job->tail);
            heap_pop(jobs, heap, waiting--);
        }
        now = end;
    }
    return value;
}

double one_machine_value(size_t n, struct machine_job *jobs, uint32_t *scratch) {
    if (!sorted(n, jobs))
        qsort(jobs, n, sizeof *jobs, by_release);
    return run(n, jobs, scratch, NULL);
}

double one_machine_schedule(size_t n, const struct machine_job *jobs, struct machine_job *copy, uint32_t *scratch,
                            struct machine_slice *slices, size_t *n_slices) {
    uint32_t *order = scratch + n;
    struct record record = {slices, order, 0};
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (!sorted(n, jobs))
        qsort_r(order, n, sizeof *order, by_release_of, (void *)(uintptr_t)jobs);
    for (size_t i = 0; i < n; i++)
        copy[i] = jobs[order[i]];
    double value = run(n, copy, scratch, &record);
    *n_slices = record.n;
    return value;
}
