/* Jackson's rule with a heap of the released jobs, longest tail on top; see one_machine.h. */
#include "strategy/exact/one_machine.h"

#include <math.h>
#include <stdlib.h>

static int by_release(const void *a, const void *b) {
    const struct job *x = a, *y = b;
    return (x->release > y->release) - (x->release < y->release);
}

/* Heap of positions in jobs[], longest tail on top. */
static void heap_push(const struct job *jobs, uint32_t *heap, size_t n, uint32_t item) {
    for (; n > 0 && jobs[item].tail > jobs[heap[(n - 1) / 2]].tail; n = (n - 1) / 2)
        heap[n] = heap[(n - 1) / 2];
    heap[n] = item;
}

static void heap_pop(const struct job *jobs, uint32_t *heap, size_t n) {
    uint32_t item = heap[--n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && jobs[heap[child + 1]].tail > jobs[heap[child]].tail)
            child++;
        if (jobs[heap[child]].tail <= jobs[item].tail)
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

double one_machine_value(size_t n, struct job *jobs, uint32_t *scratch) {
    double now = 0, value = 0;
    size_t waiting = 0, next = 0;
    qsort(jobs, n, sizeof *jobs, by_release);
    while (waiting > 0 || next < n) {
        if (waiting == 0)
            now = fmax(now, jobs[next].release);
        for (; next < n && jobs[next].release <= now; next++)
            heap_push(jobs, scratch, waiting++, (uint32_t)next);
        struct job *job = &jobs[scratch[0]];
        double until = next < n ? jobs[next].release : INFINITY;
        if (now + job->work > until) {
            job->work -= until - now;
            now = until;
            continue;
        }
        now += job->work;
        value = fmax(value, now + job->tail);
        heap_pop(jobs, scratch, waiting--);
    }
    return value;
}
