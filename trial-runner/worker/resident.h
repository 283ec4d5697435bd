/* How large this process is, as the kernel counts the pages that it has. 0 where the kernel does not say. */
#ifndef TRIAL_RUNNER_WORKER_RESIDENT_H
#define TRIAL_RUNNER_WORKER_RESIDENT_H

#include <stdint.h>

uint64_t resident_begin(void);      /* forget what it was at most until now, and return what it is */
uint64_t resident_most_bytes(void); /* at most since then, or since its start where the kernel does not forget */

#endif
