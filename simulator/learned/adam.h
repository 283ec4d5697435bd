/* Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019, AdamW).
 *
 * The decay draws towards `home`, not towards zero: a ranker that is trained on from another one stays near it where
 * its few examples say nothing.
 * Threads: a struct adam belongs to one thread at a time. */
#ifndef SIMULATOR_LEARNED_ADAM_H
#define SIMULATOR_LEARNED_ADAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct adam {
    size_t n;
    uint64_t steps;
    double *mean, *square; /* running moments of the gradient */
    const double *home;    /* [n] borrowed; NULL: zeros */
    double decay;
};

/* Memory from `arena`. Fails: ST_NO_MEMORY. */
enum status adam_init(struct adam *adam, size_t n, const double *home, double decay, struct arena *arena,
                      struct error *err);

/* One step of size `rate` against gradient[n]. */
void adam_step(struct adam *adam, double rate, const double *gradient, double *parameters);

#endif
