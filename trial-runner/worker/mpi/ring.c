/* Steps of a ring; each waits for the one before, since it sends on what came. */
#include "trial-runner/worker/mpi/ring.h"

#include "trial-runner/worker/mpi/chunks.h"
#include "trial-runner/worker/mpi/collective.h"

static uint64_t elements_of(const struct message *message) {
    return message->bytes / dtype_bytes(message->dtype);
}

/* Part k modulo n, where k may be as low as -n. */
static struct ring_part part_of(const struct message *message, int64_t k, uint32_t n) {
    const uint64_t elements = elements_of(message), at = (uint64_t)((k + (int64_t)n) % (int64_t)n);
    return (struct ring_part){at * elements / n, (at + 1) * elements / n};
}

struct ring_part ring_part_of_device(const struct message *message, uint32_t device, uint32_t n) {
    return part_of(message, (int64_t)device + 1, n);
}

static struct ring_part part_in(const struct ring *ring, const struct world *world, const struct message *message) {
    const int64_t r = world->device, own = message->half == HALF_scatter ? r - 1 : r;
    return part_of(message, own - (int64_t)ring->step, world->cluster->n_devices);
}

static struct ring_part part_out(const struct ring *ring, const struct world *world, const struct message *message) {
    const int64_t r = world->device, own = message->half == HALF_scatter ? r : r + 1;
    return part_of(message, own - (int64_t)ring->step, world->cluster->n_devices);
}

static uint64_t bytes_of(struct ring_part part, const struct message *message) {
    return (part.end - part.begin) * dtype_bytes(message->dtype);
}

static char *place_of(const struct ring *ring, struct ring_part part, const struct message *message) {
    return ring->data + part.begin * dtype_bytes(message->dtype);
}

void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = world->cluster->n_devices, r = world->device;
    const struct ring_part in = part_in(ring, world, message), out = part_out(ring, world, message);
    const struct completion done = {.kind = DONE_RING, .message = m};
    const struct chunks_peer before = {(int)((r + n - 1) % n), (int)m, world->workers, done};
    const struct chunks_peer next = {(int)((r + 1) % n), (int)m, world->workers, done};
    const bool adds = message->half == HALF_scatter;
    ring->incoming = adds ? pool_take(pool, bytes_of(in, message)) : NULL;
    ring->pending = chunks_receive(adds ? ring->incoming : place_of(ring, in, message), bytes_of(in, message),
                                   ring->chunk, &before, requests);
    ring->pending += chunks_send(place_of(ring, out, message), bytes_of(out, message), ring->chunk, &next, requests);
}

bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool) {
    const struct message *message = &plan->messages[m];
    if (--ring->pending > 0)
        return false;
    if (ring->incoming) {
        const struct ring_part in = part_in(ring, world, message);
        MPI_Reduce_local(ring->incoming, place_of(ring, in, message), (int)(in.end - in.begin),
                         collective_type(message->dtype), collective_sum(message->dtype));
        pool_give(pool, ring->incoming);
        ring->incoming = NULL;
    }
    ring->step++;
    return true;
}
