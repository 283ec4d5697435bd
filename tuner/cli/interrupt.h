/* Ctrl-C and SIGTERM: a flag that long work looks at, so that it ends in order. A second one ends the process. */
#ifndef TUNER_CLI_INTERRUPT_H
#define TUNER_CLI_INTERRUPT_H

#include <signal.h>

/* Install the handlers and return the flag, 0 until a signal came. */
const volatile sig_atomic_t *interrupt_flag(void);

#endif
