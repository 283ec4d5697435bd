/* What all devices must do alike with the thin matrices of powersgd (strategy/encoder.h). The same text for nvcc and
 * for a C compiler. */
#ifndef TRIAL_RUNNER_WORKER_LOW_RANK_RULES_H
#define TRIAL_RUNNER_WORKER_LOW_RANK_RULES_H

#include <stdint.h>

#include "trial-runner/worker/elements.h"

/* A column of P of which less than this part of its length is left, without what it shares with the columns before it,
 * counts as dependent on them: rounding would decide where what is left points to. */
#define LOW_RANK_LEAST 1e-3

/* Element j of row k of Q where that row is drawn: between -1 and 1, the same on every device. */
KERNEL_BODY float low_rank_drawn(uint32_t variable, uint64_t k, uint64_t j) {
    uint32_t mixed = variable * 2654435761u ^ (uint32_t)k * 2246822519u ^ (uint32_t)j * 3266489917u;
    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    mixed = (mixed ^ mixed >> 13) * 3266489917u;
    return (float)(mixed >> 8) / (1 << 23) - 1;
}

#endif
