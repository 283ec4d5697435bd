/* int8: the samples of one block share a scale, and its other elements are zero. The sums of a block are encoded once
 * more. */
#include "trial-runner/worker/mpi/proof.h"

#include <string.h>

#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/layout.h"
#include "trial-runner/worker/mpi/blocks.h"

static uint64_t block_of(const struct message *message, uint32_t n, uint32_t k) {
    const uint64_t elements = message_piece_bytes(message) / dtype_bytes(message->dtype);
    return layout_sample_element(elements, n, k) / (uint64_t)message->figure;
}

/* What is left of value k of those of samples first .. end - 1, which lie in one block. */
static float encoded_once(const float *values, uint32_t first, uint32_t end, uint32_t k) {
    float largest = 0;
    int32_t bits;
    for (uint32_t j = first; j < end; j++)
        largest = values[j] > largest ? values[j] : largest;
    memcpy(&bits, &largest, sizeof bits);
    const float scale = blocks_scale(bits);
    return blocks_value(blocks_code(values[k], blocks_inverse(scale)), scale);
}

float proof_of_sample(const struct plan *plan, uint32_t m, uint32_t iteration, uint32_t k) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = layout_sample_count(message), n_devices = plan->cluster->n_devices;
    float values[LAYOUT_SAMPLES], sums[LAYOUT_SAMPLES] = {0};
    uint32_t first = k, end = k + 1;
    while (first > 0 && block_of(message, n, first - 1) == block_of(message, n, k))
        first--;
    while (end < n && block_of(message, n, end) == block_of(message, n, k))
        end++;
    for (uint32_t device = 0; device < n_devices; device++) {
        for (uint32_t j = first; j < end; j++)
            values[j] = (float)kernel_value(device, n_devices, iteration, m, j, message->dtype);
        for (uint32_t j = first; j < end; j++)
            sums[j] += encoded_once(values, first, end, j);
    }
    return encoded_once(sums, first, end, k);
}
