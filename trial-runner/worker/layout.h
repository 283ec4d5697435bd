/* Where a plan's gradients lie in one device's memory, and which of their elements prove that they were summed.
 *
 * Every variable has a contiguous run of what the plan moves of it: `wide`, and where devices keep parts, in the
 * element type in which the device has it, which mostly is the model's; else in the type in which it travels. A message
 * is proved at up to LAYOUT_SAMPLES elements: the first, the last and evenly between. */
#ifndef TRIAL_RUNNER_WORKER_LAYOUT_H
#define TRIAL_RUNNER_WORKER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"

enum { LAYOUT_SAMPLES = 16, LAYOUT_ALIGN = 64 };

struct layout {
    bool wide;
    uint64_t bytes;    /* of all variables */
    uint64_t *offset;  /* [n_variables] of each */
    uint8_t *widening; /* [n_variables] bytes of room for each byte that travels */
    uint64_t *samples; /* [n_messages * LAYOUT_SAMPLES] offsets of the sampled elements */
    uint8_t *types;    /* [n_messages * LAYOUT_SAMPLES] their enum dtype */
};

/* O(pieces). Ends the job when memory is out. */
void layout_init(struct layout *layout, const struct plan *plan, bool wide);

/* How many elements of the message are sampled. */
uint32_t layout_sample_count(const struct message *message);

/* The number within the message of the element that is sample k. */
uint64_t layout_element(const struct message *message, uint32_t k);

/* What a message's encoder keeps on a device from iteration to iteration (strategy/encoder.h), zeros at first: topk and
 * powersgd an f32 for each element, of what was not sent so far, and powersgd all Q behind them. */
uint64_t layout_kept_bytes(const struct message *message);

/* int8: the samples first .. end - 1 that lie in one block with sample k, which is one of them. */
struct layout_run {
    uint32_t first, end;
};
struct layout_run layout_same_block(const struct message *message, uint32_t k);

/* The model's type of what the message brings. All variables of a half or of sharded parameters have the same. */
enum dtype layout_own_type(const struct plan *plan, const struct message *message);

/* A message's samples pass through several types: that in which it travels, and those in which a half is used and kept.
 * This is the one with the fewest exact whole numbers, so sums of samples are exact in all of them. */
enum dtype layout_narrowest(const struct plan *plan, const struct message *message);

static inline uint64_t layout_of_piece(const struct layout *layout, const struct piece *piece) {
    return layout->offset[piece->variable] + piece->offset_bytes * layout->widening[piece->variable];
}

void layout_release(struct layout *layout);

#endif
