/* All devices add in one order, so that all have the same sum. Sends and receives between two devices keep their order,
 * so that the two ways of a message, and those of the next iteration, need no tags of their own. */
#include "trial-runner/worker/mpi/encoded.h"

#include <string.h>

#include "trial-runner/worker/mpi/blocks.h"

/* Elements of the message from `begin` on, and where their blocks lie. */
struct part {
    uint64_t begin, n;
    uint64_t at, bytes;
};

static struct part part_of(const struct message *message, uint64_t k, uint64_t n) {
    const uint64_t elements = message_piece_bytes(message) / dtype_bytes(message->dtype);
    const uint64_t block = (uint64_t)message->figure, blocks = (elements + block - 1) / block;
    const uint64_t first = k * blocks / n, last = (k + 1) * blocks / n;
    struct part part = {.begin = first * block, .at = first * (block + sizeof(float))};
    part.n = (last < blocks ? last * block : elements) - part.begin;
    part.bytes = (last < blocks ? last * (block + sizeof(float)) : message->bytes) - part.at;
    return first < last ? part : (struct part){0};
}

static void post(struct encoded *e, const struct world *world, uint32_t m, uint32_t peer, char *out, uint64_t out_bytes,
                 char *in, uint64_t in_bytes, struct requests *requests) {
    const struct completion done = {.kind = DONE_ENCODED, .message = m};
    if (in_bytes > 0)
        MPI_Irecv(in, (int)in_bytes, MPI_BYTE, (int)peer, (int)m, world->workers, requests_add(requests, done));
    if (out_bytes > 0)
        MPI_Isend(out, (int)out_bytes, MPI_BYTE, (int)peer, (int)m, world->workers, requests_add(requests, done));
    e->pending += (uint32_t)(in_bytes > 0) + (uint32_t)(out_bytes > 0);
}

/* The peers, beginning behind the own place, so that not all send to the same at once. */
static uint32_t peer_of(const struct world *world, uint32_t i) {
    return (world->device + i) % world->cluster->n_devices;
}

void encoded_start(struct encoded *e, const float *gradients, const struct world *world, const struct plan *plan,
                   uint32_t m, struct pool *pool, struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = world->cluster->n_devices;
    const struct part own = part_of(message, world->device, n);
    *e = (struct encoded){.data = pool_take(pool, message->bytes), .incoming = pool_take(pool, n * own.bytes)};
    blocks_encode(e->data, gradients, message_piece_bytes(message) / dtype_bytes(message->dtype),
                  (size_t)message->figure);
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t peer = peer_of(world, i);
        const struct part theirs = part_of(message, peer, n);
        post(e, world, m, peer, e->data + theirs.at, theirs.bytes, e->incoming + peer * own.bytes, own.bytes, requests);
    }
}

/* Add the own parts of all devices, in `sum`, which has their place among the gradients; encode the sum. */
static void add_parts(struct encoded *e, float *sum, const struct part *own, const struct world *world, size_t block) {
    memset(sum, 0, own->n * sizeof *sum);
    for (uint32_t device = 0; device < world->cluster->n_devices; device++)
        blocks_add(sum, device == world->device ? e->data + own->at : e->incoming + device * own->bytes, own->n, block);
    blocks_encode(e->data + own->at, sum, own->n, block);
}

static void send_sum(struct encoded *e, const struct world *world, const struct message *message, uint32_t m,
                     struct requests *requests) {
    const uint32_t n = world->cluster->n_devices;
    const struct part own = part_of(message, world->device, n);
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t peer = peer_of(world, i);
        const struct part theirs = part_of(message, peer, n);
        post(e, world, m, peer, e->data + own.at, own.bytes, e->data + theirs.at, theirs.bytes, requests);
    }
}

bool encoded_goes_on(struct encoded *e, float *gradients, const struct world *world, const struct plan *plan,
                     uint32_t m, struct pool *pool, struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const struct part own = part_of(message, world->device, world->cluster->n_devices);
    const size_t block = (size_t)message->figure;
    if (e->pending > 0 && --e->pending > 0)
        return false;
    if (e->incoming) {
        add_parts(e, gradients + own.begin, &own, world, block);
        pool_give(pool, e->incoming);
        e->incoming = NULL;
        send_sum(e, world, message, m, requests);
        if (e->pending > 0)
            return false;
    }
    blocks_decode(gradients, e->data, message_piece_bytes(message) / dtype_bytes(message->dtype), block);
    pool_give(pool, e->data);
    e->data = NULL;
    return true;
}
