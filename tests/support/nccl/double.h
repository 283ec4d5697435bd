/* Stand-ins for the CUDA runtime and NCCL, so that the NCCL worker runs where there is no GPU.
 *
 * What they are: streams are threads that do what was put on them in order, and there are no more of them than
 * CUDA_DEVICE_MAX_CONNECTIONS asks for; memory is cleared and filled on the default stream, for which the others do not
 * wait; events are places in a stream with a time, device memory is memory, kernels are kernel_bodies.h on the
 * processor, and communicators are mailboxes in a shared file between processes of one machine. As with the real ones,
 * calls return at once and work waits on its stream for what the stream waits for; an operation waits until every rank
 * of the communicator has come to it, and operations of a communicator on one stream are matched in the order of the
 * calls, so that ranks with different orders hang, or find another kind of operation and fail. Grouped sends and
 * receives go on together; NCCL would give them more blocks than a limit that is no power of two, so here there are
 * none with such a limit.
 *
 * What they are not: nothing of NCCL's algorithms, protocols, channels or speed, nor of a GPU's scheduling, memory
 * model and limits. That work on one stream may run beside another's is all that is the same.
 *
 * Environment: SYNCOPATE_DOUBLE_GPUS, how many there are (8); SYNCOPATE_DOUBLE_MULTIPROCESSORS, what each has (132);
 * SYNCOPATE_DOUBLE_ASYNC="RANK:N", the N-th all-reduce of that world rank never ends and its communicator tells of an
 * asynchronous error; SYNCOPATE_DOUBLE_WRONG=reduce-scatter, all-gather, all-reduce or send: such a call loses what
 * the last rank brings. With NCCL_COMM_BLOCKING=0, where NCCL's calls come back before their work is on the stream,
 * there are no communicators. */
#ifndef TESTS_SUPPORT_NCCL_DOUBLE_H
#define TESTS_SUPPORT_NCCL_DOUBLE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* Put a host function on the stream; it is called with `context`, which it owns, on the stream's thread. */
void double_enqueue(cudaStream_t stream, void (*run)(void *context), void *context);

/* A copy of `bytes` at `data`, for contexts. */
void *double_copy(const void *data, size_t bytes);

#endif
