/* See interrupt.h. SA_RESETHAND makes the second signal the default one. */
#include "tuner/cli/interrupt.h"

#include <stddef.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
    interrupted = number;
}

const volatile sig_atomic_t *interrupt_flag(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}
