/* The kernels: how a stream spends an operator's time, moves fused messages, sums, encodes, and makes and checks
 * gradients.
 *
 * Each call puts a kernel, or a few that follow each other, on the stream and returns; cudaSuccess says that they were
 * launched. Pointers are to device memory unless said otherwise. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNELS_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/nccl/kernel_bodies.h"
#include "trial-runner/worker/nccl/kernel_largest.h"
#include "trial-runner/worker/nccl/kernel_low_rank.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bring all kernels to the current GPU. CUDA would do so at the first launch of each, and might wait for kernels there
 * that wait for other ranks. */
cudaError_t kernels_load(void);

/* Occupy the stream for `us` with one thread, so that other kernels may run beside it. `clock` (one word, zeroed) holds
 * when the spin before this one should have ended: with `goes_on` the time counts from there, so that what launches
 * take does not add up; without it the time counts from the start of the kernel, because the stream had to wait for
 * something. */
cudaError_t kernels_spin(uint64_t *clock, double us, bool goes_on, cudaStream_t stream);

/* Gather `n` chunks from data into buffer, or scatter them back. */
cudaError_t kernels_copy(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer, bool scatter,
                         cudaStream_t stream);

/* to += from. */
cudaError_t kernels_sum(void *to, const void *from, uint64_t count, enum kernel_type type, cudaStream_t stream);

/* Encode n elements as int8 in blocks of `block`. And to = the sum of what n_parts runs of blocks, `stride` bytes
 * apart, decode to, n elements each. */
cudaError_t kernels_encode_blocks(char *to, const float *from, uint64_t n, uint32_t block, cudaStream_t stream);
cudaError_t kernels_sum_blocks(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                               uint32_t block, cudaStream_t stream);

/* Add `more` to n values and take the k largest of them out, in the order of their places: zero is left there. `work`
 * needs not be zeroed. 1 <= k <= n. */
cudaError_t kernels_take_largest(struct largest *to, struct kernel_largest *work, float *values, const float *more,
                                 uint64_t n, uint32_t k, cudaStream_t stream);

/* Add k elements to n of a sum. */
cudaError_t kernels_add_largest(float *sum, const struct largest *from, uint64_t k, uint64_t n, cudaStream_t stream);

/* A message by powersgd. At first: add the gradients to what is left, take the Q of the last iteration, its rows of
 * zeros drawn anew, and make P, to which vectors go as they are. Between the all-reduces: make P orthogonal, then Q. At
 * the end: the sum, and what is left. */
cudaError_t kernels_thin_begin(const struct kernel_thin *thin, cudaStream_t stream);
cudaError_t kernels_thin_turn(const struct kernel_thin *thin, cudaStream_t stream);
cudaError_t kernels_thin_end(const struct kernel_thin *thin, cudaStream_t stream);

/* Write what this device brings to `n` messages in a micro-batch; spoilt: a wrong value among each message's. */
cudaError_t kernels_produce(const struct kernel_table *table, const uint32_t *messages, uint32_t n, uint32_t iteration,
                            uint32_t micro_batch, bool spoilt, cudaStream_t stream);

/* Compare the message's samples with what is wanted: verdict[KERNEL_SAMPLES], pinned host memory, gets kernel_check's
 * word. */
cudaError_t kernels_check(const struct kernel_table *table, uint32_t message, uint32_t iteration, uint8_t *verdict,
                          cudaStream_t stream);

/* Clear n elements of `width` bytes at places in data, KERNEL_NOWHERE for none. */
cudaError_t kernels_clear(char *data, const uint64_t *places, uint32_t n, uint32_t width, cudaStream_t stream);

/* Copy n floats of a type from places in data, KERNEL_NOWHERE for none, to `out`, pinned host memory. */
cudaError_t kernels_read(double *out, const char *data, const uint64_t *places, uint32_t n, enum kernel_type type,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
