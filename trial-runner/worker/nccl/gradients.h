/* One device's gradients in GPU memory, and sharded parameters: the bytes that messages move, and the proof that they
 * were summed or gathered.
 *
 * All bytes are zero but for the layout's samples, where kernels write what only the device, the iteration, the message
 * and the place determine, and compare afterwards (trial-runner/worker/nccl/kernel_bodies.h). Where the message has an
 * encoder a kernel brings the samples to the host, which knows what the encoder leaves of them
 * (trial-runner/worker/proof.h). Of sharded parameters
 * every message has this device's part in a place of its own: an all-gather reads it there and brings the variables to
 * where they lie gathered, and a reduce-scatter writes it there. All-reduces among replicas sum it there. Messages that
 * move the same elements one after another, in several micro-batches or before both passes, share the place. A part
 * that travels in another type than the model's has a second place, its shard, in the model's type: there values are
 * made or found.
 *
 * A message in one run is moved where it lies. One of several runs, or of other gradients than f32 with an encoder, is
 * moved in a buffer: all collectives in the same one, since they follow each other on their stream; a pair of halves,
 * and a message to a server, in one of its own. NCCL's parts are equal, so a half or a message of shards is in a buffer
 * too, and padded, where the devices do not divide its elements. Everything here only puts work on streams. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_GRADIENTS_H
#define TRIAL_RUNNER_WORKER_NCCL_GRADIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"
#include "trial-runner/worker/layout.h"
#include "trial-runner/worker/nccl/kernels.h"
#include "trial-runner/worker/nccl/stream.h"
#include "trial-runner/worker/proof.h"

struct gradients {
    const struct plan *plan;
    struct layout layout;
    struct kernel_table table;   /* table.data: device memory of gradients, then variables as gathered, then parts */
    uint64_t data_bytes;         /* of it */
    uint64_t *part;              /* [n_messages] offset in data, of sharded parameters and among replicas */
    char *fused;                 /* device memory of all buffers */
    uint64_t fused_bytes;        /* of it */
    uint64_t *buffer;            /* [n_messages] offset in fused */
    struct kernel_chunk *chunks; /* device memory */
    uint32_t *first_chunk;       /* [2 * n_messages + 1]: of each message, none if it is in one run; of each shard */
    uint64_t *shard;             /* [n_messages] offset in data: the part in the model's type, if it goes in another */
    uint32_t *by_ready;          /* device memory: the plan's */
    uint32_t *first, *before;    /* [n_messages] of those that move the same elements: see find_same */
    uint8_t *verdicts;           /* [n_messages * KERNEL_SAMPLES] pinned */
    uint32_t *first_place;       /* [n_messages + 1] of `places`: none of a message without an encoder */
    uint64_t *places;            /* device memory: offsets in data of what the host compares */
    double *numbers;             /* pinned: what lies there */
    struct proof proof;          /* of messages with an encoder, which are checked in every iteration or in none */
    uint64_t checked;            /* samples found right so far */
};

void gradients_init(struct gradients *gradients, const struct plan *plan, uint32_t device);

/* What the device brings to the messages that step `step` makes ready; of those that micro-batches add up before they
 * travel the share of one micro-batch. Before the last one nothing but these shares is made. Spoilt: wrong, for tests
 * of the check. */
void gradients_produce(const struct gradients *gradients, uint32_t step, uint32_t iteration, uint32_t micro_batch,
                       bool spoilt, const struct stream *stream);

/* The message's bytes in one run; where that is a buffer gather puts them there, and scatter puts them back. And this
 * device's part of a half or of sharded parameters: in the run, or in its own place. */
void *gradients_run(const struct gradients *gradients, uint32_t message);
void *gradients_part(const struct gradients *gradients, uint32_t message);
void gradients_gather(const struct gradients *gradients, uint32_t message, const struct stream *stream);
void gradients_scatter(const struct gradients *gradients, uint32_t message, const struct stream *stream);

/* Where a device's part goes in another type than the model's: make it of the shard, before an all-gather, or the shard
 * of it, after a sum. */
void gradients_convert_part(const struct gradients *gradients, uint32_t message, const struct stream *stream);

/* Of halves the second is checked. gradients_check compares on the stream, or reads what is to be compared;
 * gradients_verdict takes the result once that is done. Fails: ST_TRIAL. */
void gradients_check(const struct gradients *gradients, uint32_t message, uint32_t iteration,
                     const struct stream *stream);
enum status gradients_verdict(struct gradients *gradients, uint32_t message, uint32_t iteration, struct error *err);

void gradients_release(struct gradients *gradients);

#endif
