/* How long an event loop sleeps when nothing happened: long enough to leave the processor to the other ranks of an
 * emulated cluster, short enough to cost a message nothing that shows (Open MPI's rate over 1 Gbit/s links was the
 * same with sleeps of 50 us between tests as without). */
#ifndef TRIAL_RUNNER_WORKER_PAUSE_H
#define TRIAL_RUNNER_WORKER_PAUSE_H

#include "base/clock.h"

enum { PAUSE_US = 50 };

static inline void pause_for_us(double us) {
    clock_sleep_us(us < PAUSE_US ? us : PAUSE_US);
}

#endif
