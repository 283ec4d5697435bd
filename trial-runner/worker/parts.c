/* Closed forms: O(1) each. */
#include "trial-runner/worker/parts.h"

#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/layout.h"

static uint64_t elements_of(const struct message *message) {
    return message->bytes / dtype_bytes(message->dtype);
}

uint64_t part_elements(const struct message *message, uint32_t n_devices) {
    return (elements_of(message) + n_devices - 1) / n_devices;
}

struct part part_of_device(const struct message *message, uint32_t device, uint32_t n_devices) {
    const uint64_t elements = elements_of(message), size = part_elements(message, n_devices);
    const uint64_t begin = device * size < elements ? device * size : elements;
    return (struct part){begin, begin + size < elements ? begin + size : elements};
}

static uint32_t owner_of(const struct message *message, uint32_t k, uint32_t n_devices) {
    return (uint32_t)(layout_element(message, k) / part_elements(message, n_devices));
}

bool part_is_brought(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices) {
    return !message_gathers_parameters(message) || owner_of(message, k, n_devices) == device;
}

uint32_t part_wanted(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices) {
    if (!message_is_of_shards(message))
        return KERNEL_ALL;
    const uint32_t owner = owner_of(message, k, n_devices);
    return message->half == HALF_gather ? owner : owner == device ? (uint32_t)KERNEL_ALL : (uint32_t)KERNEL_NOBODY;
}

enum status part_wrong(const struct plan *plan, uint32_t m, uint32_t k, uint32_t wanted, uint32_t iteration,
                       struct error *err) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    if (wanted == KERNEL_ALL)
        return error_set(err, ST_TRIAL, "wrong sum: message %u (%llu bytes), sample %u of %u, iteration %u", m,
                         (unsigned long long)message->bytes, k, n, iteration);
    return error_set(err, ST_TRIAL,
                     "not gathered: message %u (%llu bytes), sample %u of %u, of device %u, iteration %u", m,
                     (unsigned long long)message->bytes, k, n, wanted, iteration);
}
