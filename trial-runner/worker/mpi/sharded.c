/* Parts are runs of elements of a message, whatever variables these are of. */
#include "trial-runner/worker/mpi/sharded.h"

#include <string.h>

#include "trial-runner/worker/parts.h"

void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration) {
    const struct plan *plan = variables->plan;
    const struct message *message = &plan->messages[m];
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const bool is_own = part_is_brought(message, k, device, plan->cluster->n_devices);
        gradients_write_sample(variables, m, k, is_own ? gradients_value(variables, device, iteration, m, k) : 0);
    }
}

void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, char *buffer) {
    const struct plan *plan = variables->plan;
    const struct message *message = &plan->messages[m];
    const struct part own = part_of_device(message, device, plan->cluster->n_devices);
    const uint64_t size = dtype_bytes(message->dtype), begin = own.begin * size, end = own.end * size;
    const struct piece *piece = plan->pieces + message->first_piece;
    uint64_t at = 0;
    for (uint32_t i = 0; i < message->n_pieces && at < end; at += piece[i++].bytes) {
        const uint64_t from = begin > at ? begin - at : 0;
        const uint64_t to = end - at < piece[i].bytes ? end - at : piece[i].bytes;
        if (from < to)
            memcpy(buffer + at + from, gradients_piece(variables, &piece[i]) + from, to - from);
    }
}

enum status sharded_check(struct gradients *place, uint32_t m, const char *buffer, uint32_t device, uint32_t iteration,
                          struct error *err) {
    const struct plan *plan = place->plan;
    const struct message *message = &plan->messages[m];
    const bool replicas = message_is_of_replicas(message);
    const uint64_t first =
        replicas ? part_of_device(message, device, plan->cluster->n_devices).begin : 0; /* in buffer */
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const struct kernel_devices wanted = part_wanted(message, k, device, plan->cluster->n_devices);
        if (wanted.n == 0)
            continue;
        const uint32_t value = gradients_sum(place, wanted, iteration, replicas ? message->other : m, k);
        const char *in_buffer = buffer + (layout_element(message, k) - first) * dtype_bytes(message->dtype);
        if (message_gathers_parameters(message) ? !gradients_sample_is(place, m, k, value)
                                                : !gradients_is(in_buffer, message->dtype, value))
            return part_wrong(plan, m, k, wanted, iteration, err);
        place->checked++;
    }
    return ST_OK;
}
