/* The work of a thread is a thread-local variable. A parameter would have to pass through every function between a
 * request and the innermost loop, and none of these functions uses it. */
#include "base/work.h"

#include <time.h>

static _Thread_local struct work *current;
static _Thread_local uint64_t counted_ns; /* of this thread's clock */

static uint64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void count(struct work *work) {
    const uint64_t now = processor_ns();
    atomic_fetch_add_explicit(&work->used_ns, now - counted_ns, memory_order_relaxed);
    counted_ns = now;
}

void work_enter(struct work *work) {
    work_leave();
    if (!work)
        return;
    current = work;
    counted_ns = processor_ns();
}

void work_leave(void) {
    if (current)
        count(current);
    current = NULL;
}

struct work *work_current(void) {
    return current;
}

void work_stop(struct work *work, enum work_end reason) {
    int none = WORK_GOES_ON;
    atomic_compare_exchange_strong(&work->end, &none, reason);
}

double work_used_us(const struct work *work) {
    return (double)atomic_load_explicit(&work->used_ns, memory_order_relaxed) / 1e3;
}

static const char *reason_of(int end) {
    return end == WORK_LEFT      ? "whoever asked has gone"
           : end == WORK_STOPPED ? "stopped before it was done; try again soon"
                                 : "it takes more processor time than it may";
}

enum status work_check(struct error *err) {
    struct work *work = current;
    if (!work)
        return ST_OK;
    int end = atomic_load_explicit(&work->end, memory_order_relaxed);
    if (end == WORK_GOES_ON) {
        count(work);
        if (!(work->limit_us > 0) || work_used_us(work) <= work->limit_us)
            return ST_OK;
        work_stop(work, WORK_SPENT);
        end = atomic_load(&work->end);
    }
    return error_set(err, ST_CANCELLED, "%s", reason_of(end));
}

bool work_take(size_t bytes) {
    struct work *work = current;
    if (!work || !work->limit_bytes)
        return true;
    const int_fast64_t held = atomic_fetch_add_explicit(&work->held_bytes, (int_fast64_t)bytes, memory_order_relaxed);
    if (bytes <= work->limit_bytes && (held < 0 || (uint64_t)held <= work->limit_bytes - bytes))
        return true;
    work_give(bytes);
    atomic_store(&work->starved, true);
    return false;
}

void work_give(size_t bytes) {
    if (current)
        atomic_fetch_sub_explicit(&current->held_bytes, (int_fast64_t)bytes, memory_order_relaxed);
}
