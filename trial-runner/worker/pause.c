/* One figure for the whole process, since every event loop of it shares the processors with the same ranks. */
#include "trial-runner/worker/pause.h"

#include <math.h>

#include "base/clock.h"

static double longest_us = PAUSE_US;

void pause_set_longest(double us) {
    longest_us = us;
}

void pause_once(void) {
    clock_sleep_us(longest_us);
}

void pause_for_us(double us) {
    clock_sleep_us(fmin(us, longest_us));
}
