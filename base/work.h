/* Work that may be ended before it is done: it has used its share of the processor, nobody waits for it any more, or
 * the program stops. Its memory may have a bound too.
 *
 * A thread enters a piece of work. Long loops in the functions that it then calls ask work_check() now and then, and
 * pass its failure on. Arenas ask work_take() for their blocks. Several threads may be in one piece of work; their
 * processor time and memory add up. A thread that has entered none is never ended.
 * Threads: any, for every function; work_enter and work_leave concern the calling thread alone. */
#ifndef BASE_WORK_H
#define BASE_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum work_end {
    WORK_GOES_ON,
    WORK_LEFT,    /* who asked for it has gone */
    WORK_STOPPED, /* the program stops */
    WORK_SPENT,   /* it has used its limit */
};

struct work {
    double limit_us;      /* processor time of all its threads; 0: no limit. Both limits are set before it is entered */
    uint64_t limit_bytes; /* of arenas; 0: no limit */
    atomic_int end;       /* enum work_end */
    atomic_uint_fast64_t used_ns;
    atomic_int_fast64_t held_bytes; /* negative when it freed more than it took */
    atomic_bool starved;            /* memory was refused: work that then fails with ST_NO_MEMORY is too large */
};

/* {0} is work without a limit. */

void work_enter(struct work *work); /* NULL: leave what was entered */
void work_leave(void);
struct work *work_current(void); /* what this thread has entered, or NULL */

/* End it: the next work_check() of each of its threads fails. The first reason stays. */
void work_stop(struct work *work, enum work_end reason);

/* Fails: ST_CANCELLED when the work has ended; work->end says why. A search that skips candidates which fail must not
 * skip on this status: it ends. A call costs one system call, so a loop may ask every few microseconds. */
enum status work_check(struct error *err);

/* May this thread's work hold `bytes` more? True for a thread without work. Freed memory is credited to the work that
 * frees it, even if another took it. */
bool work_take(size_t bytes);
void work_give(size_t bytes);

/* What its threads have used, as of their last checks. */
double work_used_us(const struct work *work);

#endif
