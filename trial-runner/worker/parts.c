/* Closed forms: O(1) each. */
#include "trial-runner/worker/parts.h"

#include "trial-runner/worker/layout.h"

static uint64_t divide_up(uint64_t elements, uint32_t n) {
    return (elements + n - 1) / n;
}

struct part part_of(struct part whole, uint32_t k, uint32_t n) {
    const uint64_t elements = whole.end - whole.begin, size = divide_up(elements, n);
    const uint64_t begin = k * size < elements ? k * size : elements;
    const uint64_t end = begin + size < elements ? begin + size : elements;
    return (struct part){whole.begin + begin, whole.begin + end};
}

struct kernel_devices part_group(const struct message *message, uint32_t device, uint32_t n_devices) {
    if (message->ranks == 0)
        return (struct kernel_devices){0, 1, n_devices};
    const uint32_t span = message->ranks * message->stride;
    return (struct kernel_devices){device / span * span + device % message->stride, message->stride, message->ranks};
}

uint32_t part_place(const struct kernel_devices *group, uint32_t device) {
    return (device - group->first) / group->stride;
}

struct part part_whole(const struct message *message) {
    return (struct part){0, message->bytes / dtype_bytes(message->dtype)};
}

uint32_t part_count(const struct message *message, uint32_t n_devices) {
    return message_is_of_replicas(message) ? message->stride : message->ranks > 0 ? message->ranks : n_devices;
}

uint64_t part_elements(const struct message *message, uint32_t n_devices) {
    return divide_up(part_whole(message).end, part_count(message, n_devices));
}

struct part part_of_device(const struct message *message, uint32_t device, uint32_t n_devices) {
    const struct kernel_devices group = part_group(message, device, n_devices);
    const uint32_t k = message_is_of_replicas(message) ? group.first : part_place(&group, device);
    return part_of(part_whole(message), k, part_count(message, n_devices));
}

static bool has_sample(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices) {
    const struct part part = part_of_device(message, device, n_devices);
    const uint64_t element = layout_element(message, k);
    return element >= part.begin && element < part.end;
}

bool part_is_brought(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices) {
    return !message_gathers_parameters(message) || has_sample(message, k, device, n_devices);
}

struct kernel_devices part_wanted(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices) {
    const struct kernel_devices group = part_group(message, device, n_devices);
    if (message_gathers_parameters(message)) {
        const uint32_t owner = (uint32_t)(layout_element(message, k) / part_elements(message, n_devices));
        return (struct kernel_devices){group.first + owner * group.stride, 1, 1};
    }
    const bool in_parts = message_is_of_shards(message) || message_is_of_replicas(message);
    if (in_parts && !has_sample(message, k, device, n_devices))
        return (struct kernel_devices){0, 1, 0};
    /* Replicas have added what each shard group had added before. */
    return message_is_of_shards(message) ? group : (struct kernel_devices){0, 1, n_devices};
}

enum status part_wrong(const struct plan *plan, uint32_t m, uint32_t k, struct kernel_devices wanted,
                       uint32_t iteration, struct error *err) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    if (!message_gathers_parameters(message))
        return error_set(err, ST_TRIAL, "wrong sum: message %u (%llu bytes), sample %u of %u, iteration %u", m,
                         (unsigned long long)message->bytes, k, n, iteration);
    return error_set(err, ST_TRIAL,
                     "not gathered: message %u (%llu bytes), sample %u of %u, of device %u, iteration %u", m,
                     (unsigned long long)message->bytes, k, n, wanted.first, iteration);
}
