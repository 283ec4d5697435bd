/* int8: the samples of one block share a scale, and its other elements are zero. The sums of a block are encoded once
 * more.
 * topk: of a device's samples, and what it kept of them, the largest travel, the first of equal ones. Nothing else is
 * larger than zero. */
#include "trial-runner/worker/proof.h"

#include <stdlib.h>
#include <string.h>

#include "strategy/encoder.h"
#include "trial-runner/worker/block_codes.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/proof_matrices.h"
#include "trial-runner/worker/report.h"

void proof_init(struct proof *proof, const struct plan *plan) {
    proof->kept = report_alloc(plan->n_messages, sizeof *proof->kept);
    proof->matrices = report_alloc(plan->n_messages, sizeof *proof->matrices);
}

void proof_release(struct proof *proof, const struct plan *plan) {
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        free(proof->kept[m]);
        proof_matrices_free(proof->matrices[m]);
    }
    free(proof->matrices);
    free(proof->kept);
}

/* Sample k of a message by int8. */
static float of_blocks(const struct plan *plan, uint32_t m, uint32_t iteration, uint32_t k) {
    const struct message *message = &plan->messages[m];
    const struct layout_run same = layout_same_block(message, k);
    return blocks_sum_of_sample(plan->cluster->n_devices, iteration, m, k, same.first, same.end, message->dtype);
}

/* Move the largest of n values, `most` of them if there are as many, to the sums. */
static void send_largest(float *kept, uint32_t n, uint64_t most, float *sums) {
    for (uint64_t sent = 0; sent < most && sent < n; sent++) {
        uint32_t largest = 0;
        for (uint32_t k = 1; k < n; k++)
            largest = kept[k] > kept[largest] ? k : largest;
        sums[largest] += kept[largest];
        kept[largest] = 0;
    }
}

static void of_largest(struct proof *proof, const struct plan *plan, uint32_t m, uint32_t iteration, float *sums) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = layout_sample_count(message), n_devices = plan->cluster->n_devices;
    if (!proof->kept[m])
        proof->kept[m] = report_alloc((size_t)n_devices * LAYOUT_SAMPLES, sizeof **proof->kept);
    memset(sums, 0, LAYOUT_SAMPLES * sizeof *sums);
    for (uint32_t device = 0; device < n_devices; device++) {
        float *kept = proof->kept[m] + (size_t)device * LAYOUT_SAMPLES;
        for (uint32_t k = 0; k < n; k++)
            kept[k] += (float)kernel_value(device, n_devices, iteration, m, k, message->dtype);
        send_largest(kept, n, message->bytes / ENCODER_PLACED_BYTES, sums);
    }
}

void proof_next(struct proof *proof, const struct plan *plan, uint32_t m, uint32_t iteration,
                float samples[LAYOUT_SAMPLES]) {
    const struct message *message = &plan->messages[m];
    if (message->encoder == ENCODING_topk)
        of_largest(proof, plan, m, iteration, samples);
    else
        for (uint32_t k = 0; k < layout_sample_count(message); k++)
            samples[k] = of_blocks(plan, m, iteration, k);
}

uint32_t proof_find_wrong(struct proof *proof, const struct plan *plan, uint32_t m, uint32_t iteration,
                          double back[LAYOUT_SAMPLES][LAYOUT_SAMPLES]) {
    if (!proof->matrices[m])
        proof->matrices[m] = proof_matrices_new(plan, m);
    return proof_matrices_find_wrong(proof->matrices[m], iteration, back);
}
