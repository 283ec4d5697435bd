/* Single operations, which the bench times. Each call returns when this rank's part is done. */
#ifndef TRIAL_RUNNER_WORKER_OPERATIONS_H
#define TRIAL_RUNNER_WORKER_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/cluster.h"
#include "strategy/plan.h"
#include "trial-runner/worker/world.h"

/* What a program's library has: its algorithms, the one that suits small messages, whether it moves halves of
 * all-reduces, what it encodes gradients as, a set of 1u << ENCODING_..., and how many bytes show the rate of copies
 * and sums. */
struct operations_kind {
    int n_algorithms;
    const enum algorithm *algorithms;
    enum algorithm small;
    bool halves;
    uint32_t encodings;
    uint64_t rate_bytes;
};
extern const struct operations_kind operations_kind;

struct operations;

/* Make buffers for messages of up to `bytes`. `peer` is the device that plays the server for device 0. Never NULL: ends
 * the job when memory is out. Collective over the workers. */
struct operations *operations_new(const struct world *world, uint32_t peer, uint64_t bytes);
void operations_free(struct operations *operations);

/* Sum `bytes` of f32 over all workers. */
void operations_all_reduce(struct operations *operations, uint64_t bytes, enum algorithm algorithm);

/* The reduce-scatter (HALF_scatter) or all-gather (HALF_gather) of a message of `bytes` of f32; not called where the
 * program does not move halves. */
void operations_half(struct operations *operations, uint64_t bytes, enum half half);

/* Device 0 pushes `there` bytes to its peer, which sends `back` bytes back; all other ranks return at once. */
void operations_push_and_pull(struct operations *operations, uint64_t there, uint64_t back);

/* In the memory of each rank alone: copy `bytes`, as gathering and scattering do, and add `bytes`. */
void operations_copy(struct operations *operations, uint64_t bytes);
void operations_sum(struct operations *operations, uint64_t bytes);

/* Encode `bytes` of f32 as f16, and decode them. This and the next three are not called for an encoding that the
 * program does not have. */
void operations_encode(struct operations *operations, uint64_t bytes);

/* Encode `bytes` of f32 as int8 in blocks of the usual size, and decode them. */
void operations_encode_blocks(struct operations *operations, uint64_t bytes);

/* Take the usual part of `bytes` of f32 out of them. */
void operations_take_largest(struct operations *operations, uint64_t bytes);

/* All passes of powersgd of rank 2 over `bytes` of f32. */
void operations_make_thin(struct operations *operations, uint64_t bytes);

/* What the transport between hosts sends before the receiver has answered; 0 where it is not known. */
double operations_eager_bytes(void);

#endif
