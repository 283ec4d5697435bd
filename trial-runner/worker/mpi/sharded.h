/* Sharded parameters on one device: what it brings to an all-gather, and the proof that it has got the rest, and its
 * part of the sums.
 *
 * `variables` is a struct gradients whose data are the variables as they are gathered. All bytes are zero but at the
 * layout's samples. Of those that lie in its own part (ring_part_of_device) the device writes its number, and zeros
 * elsewhere; after the all-gather every sample must have the number of the device that owns it, of those among which
 * the message is gathered. */
#ifndef TRIAL_RUNNER_WORKER_MPI_SHARDED_H
#define TRIAL_RUNNER_WORKER_MPI_SHARDED_H

#include "base/error.h"
#include "trial-runner/worker/mpi/gradients.h"

/* This device's part of the variables of message m, ready to be gathered. */
void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration);

/* Copy that part into a buffer of the whole message, where it belongs. */
void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, char *buffer);

/* Compare every sampled position of an all-gather with what its owner wrote. Fails: ST_TRIAL. */
enum status sharded_check_gathered(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration,
                                   struct error *err);

/* After a reduce-scatter in `buffer`, or an all-reduce among replicas of the part that is there: compare those sampled
 * positions that are in this device's part with the sum over the devices of its shard group, or over all. Fails:
 * ST_TRIAL. */
enum status sharded_check_sums(struct gradients *gradients, uint32_t m, const char *buffer, uint32_t device,
                               uint32_t iteration, struct error *err);

#endif
