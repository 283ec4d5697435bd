/* Steps of a ring; each waits for the one before, since it sends on what came. */
#include "trial-runner/worker/mpi/ring.h"

#include "trial-runner/worker/mpi/chunks.h"
#include "trial-runner/worker/mpi/collective.h"

/* Part k modulo n of what the ring moves, where k may be as low as -n. */
static struct part part_at(const struct ring *ring, int64_t k) {
    const int64_t n = ring->members.n;
    return part_of(ring->whole, (uint32_t)((k + n) % n), ring->members.n);
}

void ring_begin(struct ring *ring, const struct world *world, const struct message *message, char *data,
                uint64_t eager_bytes) {
    const uint32_t n = world->cluster->n_devices;
    *ring = (struct ring){.members = part_group(message, world->device, n),
                          .whole = message_is_of_replicas(message) ? part_of_device(message, world->device, n)
                                                                   : part_whole(message),
                          .data = data,
                          .chunk = chunks_bytes(eager_bytes),
                          .adds = message->half != HALF_gather};
}

bool ring_goes_on(struct ring *ring, const struct message *message) {
    if (ring->step + 1 < ring->members.n)
        return true;
    if (!message_is_of_replicas(message) || !ring->adds)
        return false;
    ring->adds = false;
    ring->step = 0;
    return true;
}

static struct part part_in(const struct ring *ring, const struct world *world) {
    const int64_t r = part_place(&ring->members, world->device);
    return part_at(ring, (ring->adds ? r - 2 : r - 1) - (int64_t)ring->step);
}

static struct part part_out(const struct ring *ring, const struct world *world) {
    const int64_t r = part_place(&ring->members, world->device);
    return part_at(ring, (ring->adds ? r - 1 : r) - (int64_t)ring->step);
}

static uint64_t bytes_of(struct part part, const struct message *message) {
    return (part.end - part.begin) * dtype_bytes(message->dtype);
}

static char *place_of(const struct ring *ring, struct part part, const struct message *message) {
    return ring->data + (part.begin - ring->whole.begin) * dtype_bytes(message->dtype);
}

/* The device so many places on. */
static int neighbour(const struct ring *ring, const struct world *world, uint32_t places) {
    const struct kernel_devices *members = &ring->members;
    const uint32_t place = part_place(members, world->device);
    return (int)(members->first + (place + places) % members->n * members->stride);
}

void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const struct part in = part_in(ring, world), out = part_out(ring, world);
    const struct completion done = {.kind = DONE_RING, .message = m};
    const struct chunks_peer before = {neighbour(ring, world, ring->members.n - 1), (int)m, world->workers, done};
    const struct chunks_peer next = {neighbour(ring, world, 1), (int)m, world->workers, done};
    ring->incoming = ring->adds ? pool_take(pool, bytes_of(in, message)) : NULL;
    ring->pending = chunks_receive(ring->adds ? ring->incoming : place_of(ring, in, message), bytes_of(in, message),
                                   ring->chunk, &before, requests);
    ring->pending += chunks_send(place_of(ring, out, message), bytes_of(out, message), ring->chunk, &next, requests);
}

bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool) {
    const struct message *message = &plan->messages[m];
    if (--ring->pending > 0)
        return false;
    if (ring->incoming) {
        const struct part in = part_in(ring, world);
        MPI_Reduce_local(ring->incoming, place_of(ring, in, message), (int)(in.end - in.begin),
                         collective_type(message->dtype), collective_sum(message->dtype));
        pool_give(pool, ring->incoming);
        ring->incoming = NULL;
    }
    ring->step++;
    return true;
}
