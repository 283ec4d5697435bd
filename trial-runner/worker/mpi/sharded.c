/* Parts are runs of elements of a message, whatever variables these are of. */
#include "trial-runner/worker/mpi/sharded.h"

#include <string.h>

#include "trial-runner/worker/mpi/ring.h"

static const struct message *message_of(const struct gradients *gradients, uint32_t m) {
    return &gradients->plan->messages[m];
}

/* The number of sample k within its message. */
static uint64_t element_of(const struct message *message, uint32_t k) {
    return layout_sample_element(message->bytes / dtype_bytes(message->dtype), layout_sample_count(message), k);
}

static bool is_in(struct ring_part part, uint64_t element) {
    return element >= part.begin && element < part.end;
}

static struct ring_part part_of(const struct gradients *gradients, uint32_t m, uint32_t device) {
    return ring_part_of_device(message_of(gradients, m), device, gradients->plan->cluster->n_devices);
}

/* Of the devices among which it is gathered. */
static uint32_t owner_of(const struct gradients *gradients, uint32_t m, const struct ring_members *members,
                         uint64_t element) {
    uint32_t device = members->first;
    while (!is_in(part_of(gradients, m, device), element))
        device += members->stride;
    return device;
}

void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration) {
    const struct message *message = message_of(variables, m);
    const struct ring_part own = part_of(variables, m, device);
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const bool is_own = is_in(own, element_of(message, k));
        gradients_write_sample(variables, m, k, is_own ? gradients_value(variables, device, iteration, m, k) : 0);
    }
}

void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, char *buffer) {
    const struct message *message = message_of(variables, m);
    const struct ring_part own = part_of(variables, m, device);
    const uint64_t size = dtype_bytes(message->dtype), begin = own.begin * size, end = own.end * size;
    const struct piece *piece = variables->plan->pieces + message->first_piece;
    uint64_t at = 0;
    for (uint32_t i = 0; i < message->n_pieces && at < end; at += piece[i++].bytes) {
        const uint64_t from = begin > at ? begin - at : 0;
        const uint64_t to = end - at < piece[i].bytes ? end - at : piece[i].bytes;
        if (from < to)
            memcpy(buffer + at + from, gradients_piece(variables, &piece[i]) + from, to - from);
    }
}

static struct ring_members members_of(const struct gradients *gradients, uint32_t m, uint32_t device) {
    return ring_members_of(message_of(gradients, m), device, gradients->plan->cluster->n_devices);
}

enum status sharded_check_gathered(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration,
                                   struct error *err) {
    const struct message *message = message_of(variables, m);
    const struct ring_members members = members_of(variables, m, device);
    const uint32_t n = layout_sample_count(message);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t owner = owner_of(variables, m, &members, element_of(message, k));
        if (!gradients_sample_is(variables, m, k, gradients_value(variables, owner, iteration, m, k)))
            return error_set(err, ST_TRIAL,
                             "not gathered: message %u (%llu bytes), sample %u of %u, of device %u, iteration %u", m,
                             (unsigned long long)message->bytes, k, n, owner, iteration);
    }
    variables->checked += n;
    return ST_OK;
}

/* Over the devices among which m is reduce-scattered; over all once replicas have added theirs. */
static uint32_t sum_of(const struct gradients *gradients, uint32_t m, uint32_t device, uint32_t iteration, uint32_t k) {
    const struct message *message = message_of(gradients, m);
    const struct ring_members members = members_of(gradients, m, device);
    uint32_t sum = 0;
    if (message_is_of_replicas(message))
        return gradients_sum(gradients, iteration, message->other, k);
    for (uint32_t i = 0; i < members.n; i++)
        sum += gradients_value(gradients, members.first + i * members.stride, iteration, m, k);
    return sum;
}

enum status sharded_check_sums(struct gradients *gradients, uint32_t m, const char *buffer, uint32_t device,
                               uint32_t iteration, struct error *err) {
    const struct message *message = message_of(gradients, m);
    const struct ring_part own = part_of(gradients, m, device);
    const uint64_t first = message_is_of_replicas(message) ? own.begin : 0; /* in the buffer */
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const uint64_t element = element_of(message, k);
        if (!is_in(own, element))
            continue;
        if (!gradients_is(buffer + (element - first) * dtype_bytes(message->dtype), message->dtype,
                          sum_of(gradients, m, device, iteration, k)))
            return error_set(err, ST_TRIAL, "wrong sum: message %u (%llu bytes), sample %u, iteration %u", m,
                             (unsigned long long)message->bytes, k, iteration);
        gradients->checked++;
    }
    return ST_OK;
}
