/* A message by powersgd, from gradients to their sum in place (strategy/encoder.h):
 *
 *   add to what was not sent so far, P = M Q -> ncclAllReduce of all P -> make P orthogonal, Q = M^T P ->
 *   ncclAllReduce of all Q -> P Q^T
 *
 * All devices have the same P and Q after an all-reduce, and compute the same from them. So nobody needs to send what
 * was made orthogonal, or what Q began with. A kernel has all matrices of a message. Everything here but power_init and
 * power_release only puts work on a stream. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_POWER_H
#define TRIAL_RUNNER_WORKER_NCCL_POWER_H

#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/nccl/kernels.h"
#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/nccl/stream.h"

struct power {
    const struct plan *plan;
    struct kernel_thin *messages;   /* [n_messages] of those by powersgd: what is the same in every iteration */
    struct kernel_matrix *matrices; /* device memory: of all of them */
};

void power_init(struct power *power, const struct plan *plan);

/* Device memory that power_sum needs beside the gradients, in bytes. */
uint64_t power_room_bytes(const struct message *message);

/* `run`, `kept` and `room` as of encoded_sum. */
void power_sum(const struct power *power, struct network *network, uint32_t m, float *run, float *kept, char *room,
               const struct stream *stream);

void power_release(struct power *power);

#endif
