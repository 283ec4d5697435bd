/* See interrupt.h. SA_RESETHAND makes the second signal the default one. */
#include "cli/interrupt.h"

#include <stddef.h>

static atomic_int interrupted;

static void on_signal(int number) {
    interrupted = number;
}

const atomic_int *interrupt_flag(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}
