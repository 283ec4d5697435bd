/* How an event loop waits when nothing happened.
 *
 * By default it sleeps for PAUSE_US and looks again. In the lab the ranks of all nodes share a few processors, and
 * their looks alone would use them up. There it sleeps until a socket of its process has something to read, or has room
 * again, since all that ranks tell each other goes over sockets. */
#ifndef TRIAL_RUNNER_WORKER_PAUSE_H
#define TRIAL_RUNNER_WORKER_PAUSE_H

enum { PAUSE_US = 50 };

/* From now on pauses end when a socket of this process moves. Call it before there are threads. Where the kernel cannot
 * do that, pauses stay as they are. */
void pause_watch_sockets(void);

void pause_once(void);        /* for the longest pause */
void pause_for_us(double us); /* at most for the longest pause */

#endif
