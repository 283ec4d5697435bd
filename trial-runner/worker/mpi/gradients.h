/* One device's gradients: the bytes that messages move, and the proof that they were summed.
 *
 * Gradients lie in the element type of the model, or in that in which sharded parameters are gathered. What is cast is
 * converted as it is gathered, and back as it is scattered. What an encoder is to encode (mpi/encoded.h) is gathered as
 * f32.
 *
 * All bytes are zero except at the layout's samples, where each device writes a small integer that only it, the
 * iteration, the message and the position determine. After the message the sum over all devices must be there: exact
 * in every dtype, since the values are small (trial-runner/worker/elements.h; u8 modulo its range). What an encoder
 * loses of the values is known as well, since the values are (trial-runner/worker/proof.h). One message may
 * have numbers of its owner at its front, of which nothing is checked here. */
#ifndef TRIAL_RUNNER_WORKER_MPI_GRADIENTS_H
#define TRIAL_RUNNER_WORKER_MPI_GRADIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/layout.h"
#include "trial-runner/worker/proof.h"

struct gradients {
    const struct plan *plan;
    struct layout layout;
    struct proof proof; /* of messages with an encoder, which are checked in every iteration or in none */
    char *data;         /* layout.bytes */
    uint64_t checked;   /* positions found right so far */
    uint32_t reserved_message, reserved; /* elements at the front of this message are its owner's */
};

void gradients_init(struct gradients *gradients, const struct plan *plan);

/* What this device computes for the message in this iteration. */
void gradients_produce(struct gradients *gradients, uint32_t message, uint32_t device, uint32_t iteration);

/* What this device computes for it in one of the micro-batches whose gradients are added up before they travel: added
 * to what is there, if it is not the first. With the last one the sum is what gradients_produce writes. */
void gradients_accumulate(struct gradients *gradients, uint32_t message, uint32_t device, uint32_t iteration,
                          uint32_t micro_batch);

/* The bytes of a message that is gathered. */
uint64_t gradients_gathered_bytes(const struct message *message);

/* The message's bytes where they lie in one run as they would be gathered, or NULL when they must be. */
void *gradients_in_place(const struct gradients *gradients, uint32_t message);
void gradients_gather(const struct gradients *gradients, uint32_t message, void *buffer);
void gradients_scatter(struct gradients *gradients, uint32_t message, const void *buffer);

/* Compare every sampled position with the sum over devices. Fails: ST_TRIAL. */
enum status gradients_check(struct gradients *gradients, uint32_t message, uint32_t iteration, struct error *err);

/* For whoever checks in another way: what a device writes at sample k of a message, the sum over some devices, whether
 * a place or the sample holds a value, and where a piece lies. */
uint32_t gradients_value(const struct gradients *gradients, uint32_t device, uint32_t iteration, uint32_t message,
                         uint32_t k);
uint32_t gradients_sum(const struct gradients *gradients, struct kernel_devices devices, uint32_t iteration,
                       uint32_t message, uint32_t k);
bool gradients_is(const void *place, enum dtype dtype, uint32_t value);
void gradients_store(void *place, enum dtype dtype, uint32_t value);
bool gradients_sample_is(const struct gradients *gradients, uint32_t message, uint32_t k, uint32_t value);
void gradients_write_sample(struct gradients *gradients, uint32_t message, uint32_t k, uint32_t value);
char *gradients_piece(const struct gradients *gradients, const struct piece *piece);

/* Let the first n elements of a message, which has f32 or f64, be the owner's. Where they hold numbers: write them
 * after gradients_produce, and read their sums. */
void gradients_reserve(struct gradients *gradients, uint32_t message, uint32_t n);
void gradients_put(struct gradients *gradients, const double *numbers);
void gradients_get(const struct gradients *gradients, double *sums);

/* For tests of the check itself: make this device's part of the message wrong. */
void gradients_spoil(struct gradients *gradients, uint32_t message);

void gradients_release(struct gradients *gradients);

#endif
