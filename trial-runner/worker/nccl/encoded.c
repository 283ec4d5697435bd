/* The own part goes to itself by a copy: NCCL would start a channel for it. */
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

uint64_t encoded_room_bytes(const struct message *message, uint32_t n_devices) {
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

void encoded_sum(struct network *network, const struct message *message, float *run, char *room,
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
