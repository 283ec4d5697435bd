/* A message by int8 or topk, from gradients to their sum in place (strategy/encoder.h; powersgd: power.h):
 *
 *   int8  encode -> ncclSend and ncclRecv of all parts in a group -> decode and add the parts that came -> encode the
 *         sum -> ncclAllGather -> decode
 *   topk  add to what was not sent so far -> take the largest elements out of that -> ncclAllGather -> add
 *
 * Parts of int8 are runs of whole blocks, one for each device in order, and equal, as an all-gather of NCCL has them;
 * the last ones are shorter, or empty. All devices get one sum, since each part is added at one of them. Everything
 * here only puts work on a stream. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_ENCODED_H
#define TRIAL_RUNNER_WORKER_NCCL_ENCODED_H

#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/nccl/stream.h"

/* Device memory that encoded_sum needs beside the gradients, in bytes. */
uint64_t encoded_room_bytes(const struct message *message, uint32_t n_devices);

/* `run`: the message's gradients as f32, and their sum afterwards. `kept`: layout_kept_bytes, what this device has not
 * sent so far, zeros at first. `room`: what comes before on the stream needs it no more. */
void encoded_sum(struct network *network, const struct message *message, float *run, float *kept, char *room,
                 const struct stream *stream);

#endif
