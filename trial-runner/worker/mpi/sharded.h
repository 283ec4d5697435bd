/* Sharded parameters on one device: what it brings to an all-gather, and the proof that it has got the rest, and its
 * part of the sums (trial-runner/worker/parts.h).
 *
 * `variables` is a struct gradients whose data are the variables as they are gathered. All bytes are zero but at the
 * layout's samples: of those in its own part the device writes its number, and zeros elsewhere.
 *
 * Where parameters are gathered or summed in another type than the model's, the device has its part of a message in the
 * model's type too, its shard, which is converted before an all-gather and after a sum. `shard` is NULL elsewhere. */
#ifndef TRIAL_RUNNER_WORKER_MPI_SHARDED_H
#define TRIAL_RUNNER_WORKER_MPI_SHARDED_H

#include "base/error.h"
#include "trial-runner/worker/mpi/gradients.h"

/* Memory for the shard of message m, zeros; NULL: it needs none. Ends the job when memory is out. */
void *sharded_alloc(const struct plan *plan, uint32_t m);

/* This device's part of the variables of message m, ready to be gathered. */
void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration, void *shard);

/* Bring that part into a buffer of the whole message, where it belongs, or from the shard into the variables where
 * `buffer` is their place. */
void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, const void *shard, char *buffer);

/* After a sum: this device's part in `buffer`, of which an all-reduce among replicas has that part alone, to the
 * shard. */
void sharded_keep(const struct plan *plan, uint32_t m, const char *buffer, uint32_t device, void *shard);

/* After message m of sharded parameters: compare the samples in `place` or, after a sum, those of this device's part in
 * its shard, or in `buffer` where there is none. Fails: ST_TRIAL. */
enum status sharded_check(struct gradients *place, uint32_t m, const char *buffer, const void *shard, uint32_t device,
                          uint32_t iteration, struct error *err);

#endif
