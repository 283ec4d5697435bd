/* Ctrl-C and SIGTERM: a flag that long work looks at, so that it ends in order. A second one ends the process. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>
#include <stdatomic.h>

/* Install the handlers and return the flag, 0 until a signal came. */
const atomic_int *interrupt_flag(void);

#endif
