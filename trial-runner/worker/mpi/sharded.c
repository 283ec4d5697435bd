/* Parts are runs of elements of a message, whatever variables these are of. */
#include "trial-runner/worker/mpi/sharded.h"

#include <string.h>

#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/report.h"

void *sharded_alloc(const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    return message->converted_bytes == 0 ? NULL
                                         : report_alloc(part_elements(message, plan->cluster->n_devices),
                                                        dtype_bytes(layout_own_type(plan, message)));
}

void sharded_produce(struct gradients *variables, uint32_t m, uint32_t device, uint32_t iteration, void *shard) {
    const struct plan *plan = variables->plan;
    const struct message *message = &plan->messages[m];
    const struct part own = part_of_device(message, device, plan->cluster->n_devices);
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const bool is_own = part_is_brought(message, k, device, plan->cluster->n_devices);
        const uint32_t value = is_own ? gradients_value(variables, device, iteration, m, k) : 0;
        if (is_own && shard)
            gradients_store((char *)shard +
                                (layout_element(message, k) - own.begin) * dtype_bytes(layout_own_type(plan, message)),
                            layout_own_type(plan, message), value);
        else
            gradients_write_sample(variables, m, k, value);
    }
}

static void pack_variables(const struct gradients *variables, const struct message *message, const struct part *own,
                           char *buffer) {
    const uint64_t size = dtype_bytes(message->dtype), width = message_piece_width(message);
    const uint64_t begin = own->begin * size, end = own->end * size;
    const struct piece *piece = variables->plan->pieces + message->first_piece;
    for (uint64_t i = 0, at = 0, bytes = 0; i < message->n_pieces && at < end; at += bytes, i++) {
        bytes = piece[i].bytes / width * size;
        const uint64_t from = begin > at ? begin - at : 0;
        const uint64_t to = end - at < bytes ? end - at : bytes;
        if (from < to)
            memcpy(buffer + at + from, gradients_piece(variables, &piece[i]) + from, to - from);
    }
}

void sharded_pack(const struct gradients *variables, uint32_t m, uint32_t device, const void *shard, char *buffer) {
    const struct plan *plan = variables->plan;
    const struct message *message = &plan->messages[m];
    const struct part own = part_of_device(message, device, plan->cluster->n_devices);
    if (shard)
        convert_elements(buffer + own.begin * dtype_bytes(message->dtype), message->dtype, shard,
                         layout_own_type(plan, message), own.end - own.begin);
    else if (buffer != gradients_in_place(variables, m))
        pack_variables(variables, message, &own, buffer);
}

/* Where the part of which this device has the sum begins in the buffer of the message. */
static uint64_t first_in_buffer(const struct message *message, const struct part *own) {
    return message_is_of_replicas(message) ? own->begin : 0;
}

void sharded_keep(const struct plan *plan, uint32_t m, const char *buffer, uint32_t device, void *shard) {
    const struct message *message = &plan->messages[m];
    const struct part own = part_of_device(message, device, plan->cluster->n_devices);
    convert_elements(shard, layout_own_type(plan, message),
                     buffer + (own.begin - first_in_buffer(message, &own)) * dtype_bytes(message->dtype),
                     message->dtype, own.end - own.begin);
}

enum status sharded_check(struct gradients *place, uint32_t m, const char *buffer, const void *shard, uint32_t device,
                          uint32_t iteration, struct error *err) {
    const struct plan *plan = place->plan;
    const struct message *message = &plan->messages[m];
    const bool replicas = message_is_of_replicas(message);
    const struct part own = part_of_device(message, device, plan->cluster->n_devices);
    const enum dtype type = shard ? layout_own_type(plan, message) : message->dtype;
    const uint64_t first = shard ? own.begin : first_in_buffer(message, &own);
    const char *sums = shard ? shard : buffer;
    for (uint32_t k = 0; k < layout_sample_count(message); k++) {
        const struct kernel_devices wanted = part_wanted(message, k, device, plan->cluster->n_devices);
        if (wanted.n == 0)
            continue;
        const uint32_t value = gradients_sum(place, wanted, iteration, replicas ? message->other : m, k);
        if (message_gathers_parameters(message)
                ? !gradients_sample_is(place, m, k, value)
                : !gradients_is(sums + (layout_element(message, k) - first) * dtype_bytes(type), type, value))
            return part_wrong(plan, m, k, wanted, iteration, err);
        place->checked++;
    }
    return ST_OK;
}
