/* Sharded parameters on one device: what it brings to an all-gather, and the proof that it has got the rest, and its
 * part of the sums (trial-runner/worker/parts.h).
 *
 * `variables` is a struct gradients whose data are the variables as they are gathered. All bytes are zero but at the
 * layout's samples: of those in its own part the device writes its number, and zeros elsewhere. */
#ifndef TRIAL_RUNNER_WORKER_MPI_SHARDED_H
#define TRIAL_RUNNER_WORKER_MPI_SHARDED_H

#include "base/error.h"
#include "trial-runner/worker/mpi/gradients.h"

/* This device's part of the variables of message m, ready to be gathered. */
void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration);

/* Copy that part into a buffer of the whole message, where it belongs. */
void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, char *buffer);

/* After message m of sharded parameters: compare the samples in `place` or, after a reduce-scatter, those of this
 * device's part in `buffer`, where an all-reduce among replicas has that part alone. Fails: ST_TRIAL. */
enum status sharded_check(struct gradients *place, uint32_t m, const char *buffer, uint32_t device, uint32_t iteration,
                          struct error *err);

#endif
