/* Where powersgd has the variables of a message (strategy/encoder.h): in the message, and in what its two all-reduces
 * add, which are first P of each matrix, and variables of one axis as they are; then Q of each matrix. */
#ifndef TRIAL_RUNNER_WORKER_THIN_H
#define TRIAL_RUNNER_WORKER_THIN_H

#include <stdint.h>

#include "strategy/encoder.h"
#include "strategy/plan.h"

/* One variable, and how many elements are before it. */
struct thin_place {
    uint32_t variable;
    struct encoder_matrix shape;
    uint64_t at, first, second; /* in the message, in the first all-reduce, in the second */
};

/* The first variable of message m, and the one behind `place`, which is number i of the message; behind the last one is
 * none. */
struct thin_place thin_first(const struct plan *plan, uint32_t m);
void thin_next(struct thin_place *place, const struct plan *plan, uint32_t m, uint32_t i);

#endif
