/* int8: the own part goes to itself by a copy, since NCCL would start a channel for it. topk: all devices add in one
 * order, so that all have the same sum. */
#include "trial-runner/worker/nccl/encoded.h"

#include "strategy/encoder.h"
#include "trial-runner/worker/nccl/kernels.h"

/* n elements of the run from `begin` on, and where what they are encoded to lies. */
struct encoded_part {
    uint64_t begin, n;
    uint64_t at, bytes;
};

/* Bytes from one part to the next. */
static uint64_t stride_of(const struct message *message, uint32_t n_devices) {
    return encoder_part_bytes(message->encoder, message->figure, message_elements(message), n_devices);
}

static struct encoded_part part_of_device(const struct message *message, uint32_t k, uint32_t n_devices) {
    const uint64_t elements = message_elements(message), block = (uint64_t)message->figure;
    const uint64_t each = ((elements + block - 1) / block + n_devices - 1) / n_devices * block;
    const uint64_t begin = k * each < elements ? k * each : elements, left = elements - begin;
    struct encoded_part part = {
        .begin = begin, .n = left < each ? left : each, .at = k * stride_of(message, n_devices)};
    part.bytes = part.n > 0 ? encoder_bytes(message->encoder, message->figure, part.n) : 0;
    return part;
}

/* topk: what all devices send, and behind it what the search counts. */
static uint64_t gathered_bytes(const struct message *message, uint32_t n_devices) {
    return n_devices * message->bytes;
}

uint64_t encoded_room_bytes(const struct message *message, uint32_t n_devices) {
    if (message->encoder == ENCODING_topk)
        return gathered_bytes(message, n_devices) + sizeof(struct kernel_largest);
    return 2 * n_devices * stride_of(message, n_devices);
}

/* To each other device its part, and from each the own part of its gradients. A part without elements is not sent. */
static void exchange_parts(struct network *network, const struct message *message, char *encoded, char *incoming,
                           const struct stream *stream) {
    const uint32_t n = network->world->cluster->n_devices, device = network->world->device;
    const struct encoded_part own = part_of_device(message, device, n);
    ncclComm_t comm = network_comm_of(network, message);
    network_check(network, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t step = 1; step < n; step++) {
        const uint32_t to = (device + step) % n, from = (device + n - step) % n;
        const struct encoded_part out = part_of_device(message, to, n);
        if (out.n > 0)
            network_check(network, ncclSend(encoded + out.at, out.bytes, ncclUint8, (int)to, comm, stream->cuda),
                          "ncclSend");
        if (own.n > 0)
            network_check(
                network,
                ncclRecv(incoming + from * stride_of(message, n), own.bytes, ncclUint8, (int)from, comm, stream->cuda),
                "ncclRecv");
    }
    network_check(network, ncclGroupEnd(), "ncclGroupEnd");
    device_check(cudaMemcpyAsync(incoming + device * stride_of(message, n), encoded + own.at, own.bytes,
                                 cudaMemcpyDeviceToDevice, stream->cuda),
                 "copying");
}

static void sum_blocks(struct network *network, const struct message *message, float *run, char *room,
                       const struct stream *stream) {
    const uint32_t n = network->world->cluster->n_devices, block = (uint32_t)message->figure;
    const uint64_t elements = message_elements(message), stride = stride_of(message, n);
    const struct encoded_part own = part_of_device(message, network->world->device, n);
    char *encoded = room, *incoming = room + n * stride;
    device_check(kernels_encode_blocks(encoded, run, elements, block, stream->cuda), "encoding");
    exchange_parts(network, message, encoded, incoming, stream);
    device_check(kernels_sum_blocks(run + own.begin, incoming, stride, n, own.n, block, stream->cuda), "summing");
    device_check(kernels_encode_blocks(encoded + own.at, run + own.begin, own.n, block, stream->cuda), "encoding");
    network_check(
        network,
        ncclAllGather(encoded + own.at, encoded, stride, ncclUint8, network_comm_of(network, message), stream->cuda),
        "ncclAllGather");
    device_check(kernels_sum_blocks(run, encoded, 0, 1, elements, block, stream->cuda), "decoding");
}

static void sum_largest(struct network *network, const struct message *message, float *run, float *kept, char *room,
                        const struct stream *stream) {
    const uint32_t n = network->world->cluster->n_devices;
    const uint64_t elements = message_elements(message), k = message->bytes / sizeof(struct largest);
    struct kernel_largest *work = (struct kernel_largest *)(void *)(room + gathered_bytes(message, n));
    struct largest *all = (struct largest *)(void *)room, *own = all + network->world->device * k;
    device_check(kernels_take_largest(own, work, kept, run, elements, (uint32_t)k, stream->cuda), "encoding");
    network_check(network,
                  ncclAllGather(own, all, message->bytes, ncclUint8, network_comm_of(network, message), stream->cuda),
                  "ncclAllGather");
    device_check(cudaMemsetAsync(run, 0, elements * sizeof *run, stream->cuda), "clearing");
    for (uint32_t device = 0; device < n; device++)
        device_check(kernels_add_largest(run, all + device * k, k, elements, stream->cuda), "summing");
}

void encoded_sum(struct network *network, const struct message *message, float *run, float *kept, char *room,
                 const struct stream *stream) {
    if (message->encoder == ENCODING_topk)
        sum_largest(network, message, run, kept, room, stream);
    else
        sum_blocks(network, message, run, room, stream);
}
