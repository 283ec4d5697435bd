/* How long an event loop sleeps when nothing happened: long enough to leave the processor to the other ranks of an
 * emulated cluster, short enough to cost a message nothing that shows (Open MPI's rate over 1 Gbit/s links was the
 * same with sleeps of 50 us between tests as without). Where many ranks share a processor, their tests alone would use
 * it up, and the runner says a longer pause (trial-runner/launch.c). */
#ifndef TRIAL_RUNNER_WORKER_PAUSE_H
#define TRIAL_RUNNER_WORKER_PAUSE_H

enum { PAUSE_US = 50 };

/* The longest pause of this process from now on; PAUSE_US at first. Call it before there are threads. */
void pause_set_longest(double us);

void pause_once(void);        /* for the longest */
void pause_for_us(double us); /* at most for the longest */

#endif
