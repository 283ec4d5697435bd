/* What a message with an encoder costs (strategy/encoder.h).
 *
 * int8. An all-to-all and an all-gather of the encoded bytes: each device sends one n-th of them to each other. Both
 * ways start up like halves of a ring. Where nodes have one device, each NIC also carries as many bytes as in a ring.
 * Where a node has d of n devices, each device sends n - d parts out of the node, and no ring carries those parts. The
 * same holds for the all-gather outside of NCCL, whose all-gather is a ring. Nothing is added on the way. Between both
 * ways a device decodes n parts, adds them, and encodes one. topk has the all-gather alone. With "collectives" that are
 * fixed, both ways are halves of an all-reduce, as these say.
 *
 * powersgd goes these two ways twice; by NCCL it has two all-reduces. A product of a gradient and a thin matrix takes
 * time in proportion to the rank. What reads and writes gradients beside it, the sum before the first product and what
 * is left after the last, takes as long as POWERSGD_BESIDE ranks: 4096 x 512 elements took 0.36, 0.55, 0.66, 0.85
 * and 1.6 ns each at ranks 1, 2, 3, 4 and 8. */
#include <math.h>

#include "strategy/cost/cost.h"
#include "strategy/encoder.h"
#include "strategy/plan.h"

double cost_direct_per_byte_us(const struct cost *cost) {
    const double n = cost->cluster->n_devices;
    double most = 0;
    for (uint32_t i = 0; i < cost->n_workers && cost->n_workers > 1; i++) {
        const double d = cost->cluster->nodes[cost->workers[i]].devices;
        most = fmax(most, d * (n - d) / n / cost->nic_bytes_per_us[cost->workers[i]]);
    }
    return most;
}

#define POWERSGD_BESIDE        1.5
#define POWERSGD_MEASURED_RANK 2

/* So many of the three products over all that is encoded, and this part of what is beside them. */
static double products_us(const struct cost *cost, const struct message *message, double products, double beside) {
    const double ranks = products / 3 * message->figure + beside * POWERSGD_BESIDE;
    return (double)message->unencoded_bytes / cost->powersgd_bytes_per_us * ranks /
           (POWERSGD_MEASURED_RANK + POWERSGD_BESIDE);
}

/* One pass over all that is encoded. */
static double pass_us(const struct cost *cost, const struct message *message) {
    if (message->encoder == ENCODING_powersgd)
        return products_us(cost, message, 1, 0.5);
    const double rate = message->encoder == ENCODING_topk   ? cost->topk_bytes_per_us
                        : message->encoder == ENCODING_int8 ? cost->int8_bytes_per_us
                                                            : cost->encode_bytes_per_us;
    return (double)message->unencoded_bytes / rate;
}

/* What an encoder encodes runs across gradients, which are copied into one run before. A cast needs no copy. */
static double copy_us(const struct cost *cost, const struct message *message) {
    const bool copies = message->encoder && message->n_pieces > 1;
    return copies ? (double)message->unencoded_bytes / cost->copy_bytes_per_us : 0;
}

double cost_encode_us(const struct cost *cost, const struct message *message) {
    return pass_us(cost, message) + copy_us(cost, message);
}

double cost_convert_us(const struct cost *cost, const struct message *message) {
    return (double)message->converted_bytes / cost->encode_bytes_per_us;
}

static double largest_part(const struct cost *cost, const struct message *message) {
    return (double)encoder_part_bytes(message->encoder, message->figure, message_elements(message),
                                      cost->cluster->n_devices);
}

/* What a device computes between the two ways. With int8: n parts are decoded, and their sum is encoded. Parts are
 * whole blocks: all wait for who has most of them. */
static double between_us(const struct cost *cost, const struct message *message) {
    if (message->encoder == ENCODING_powersgd)
        return products_us(cost, message, 1, 0);
    return message->encoder == ENCODING_int8
               ? (1 + largest_part(cost, message) / (double)message->bytes) * pass_us(cost, message)
               : 0;
}

/* With topk: zeros, to which the elements of all devices are added. */
double cost_decode_us(const struct cost *cost, const struct message *message) {
    if (message->encoder != ENCODING_topk)
        return cost_encode_us(cost, message);
    return (double)message->unencoded_bytes / cost->copy_bytes_per_us + copy_us(cost, message) +
           cost->cluster->n_devices * (double)message->bytes / cost->sum_bytes_per_us;
}

static double ways(const struct cost *cost, const struct message *message) {
    if (message->encoder == ENCODING_powersgd)
        return cluster_transport(cost->cluster) == TRANSPORT_nccl ? 2 : 4;
    return message->encoder == ENCODING_topk ? 1 : 2;
}

/* The launch is a part of the first way. Adding what is thin, between powersgd's ways, is left out. */
double cost_later_us(const struct cost *cost, const struct message *message) {
    if (!message->encoder)
        return 0;
    const double moving_us = ways(cost, message) * cost->runtime.way_us - cost->runtime.message_us;
    return fmax(moving_us, 0) + between_us(cost, message) + cost_decode_us(cost, message);
}

/* All devices send a part of `bytes` to each other device. */
static struct all_reduce_cost parts_to_all(const struct cost *cost, double bytes, bool by_ring) {
    struct all_reduce_cost c = all_reduce_gather_cost(&cost->all_reduce, bytes / cost->cluster->n_devices);
    const double least = cost->all_reduce.fixed || by_ring ? 0 : cost->direct_per_byte_us * bytes;
    c.startup_us = all_reduce_half_cost(&cost->all_reduce, HALF_gather, (uint64_t)bytes).startup_us;
    c.transfer_us = fmax(c.transfer_us, least);
    c.hold_us = fmax(c.hold_us, least);
    return c;
}

/* All devices add `bytes` of f32, by parts to all and sums to all. */
static struct all_reduce_cost added_directly(const struct cost *cost, double bytes) {
    struct all_reduce_cost there = parts_to_all(cost, bytes, false);
    const struct all_reduce_cost back = parts_to_all(cost, bytes, false);
    there.startup_us += back.startup_us + bytes / cost->sum_bytes_per_us;
    there.transfer_us += back.transfer_us;
    there.hold_us += back.hold_us;
    return there;
}

/* All devices add `bytes` of f32 in powersgd: by NCCL in an all-reduce. */
static struct all_reduce_cost added(const struct cost *cost, uint64_t bytes) {
    if (cluster_transport(cost->cluster) == TRANSPORT_nccl)
        return bytes > 0 ? all_reduce_cost(&cost->all_reduce, ALGORITHM_auto, bytes) : (struct all_reduce_cost){0};
    return added_directly(cost, (double)bytes);
}

static struct all_reduce_cost cost_powersgd(const struct cost *cost, const struct message *message) {
    const struct all_reduce_cost first = added(cost, message->bytes - message->second_bytes),
                                 second = added(cost, message->second_bytes);
    return (struct all_reduce_cost){.startup_us = first.startup_us + second.startup_us + between_us(cost, message),
                                    .transfer_us = first.transfer_us + second.transfer_us,
                                    .hold_us = first.hold_us + second.hold_us,
                                    .back_us = first.back_us + second.back_us,
                                    .rest_us = first.rest_us + second.rest_us};
}

struct all_reduce_cost cost_encoded(const struct cost *cost, const struct message *message) {
    const double n = cost->cluster->n_devices, bytes = (double)message->bytes;
    if (n < 2)
        return (struct all_reduce_cost){0};
    const bool by_ring = cluster_transport(cost->cluster) == TRANSPORT_nccl;
    if (message->encoder == ENCODING_powersgd)
        return cost_powersgd(cost, message);
    if (message->encoder == ENCODING_topk)
        return parts_to_all(cost, n * bytes, by_ring);
    const double largest = largest_part(cost, message);
    const struct all_reduce_cost there = parts_to_all(cost, n * largest, false);
    const struct all_reduce_cost back = parts_to_all(cost, n * largest, by_ring);
    return (struct all_reduce_cost){.startup_us = there.startup_us + back.startup_us + between_us(cost, message),
                                    .transfer_us = there.transfer_us + back.transfer_us,
                                    .hold_us = there.hold_us + back.hold_us};
}
