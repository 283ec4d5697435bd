/* Steps of a ring; each waits for the one before, since it sends on what came. */
#include "trial-runner/worker/mpi/ring.h"

#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/parts.h"

/* Part k modulo n, where k may be as low as -n. */
static struct part part_of(const struct message *message, int64_t k, uint32_t n) {
    return part_of_device(message, (uint32_t)((k + (int64_t)n) % (int64_t)n), n);
}

static struct part part_in(const struct ring *ring, const struct world *world, const struct message *message) {
    const int64_t r = world->device, own = message->half == HALF_scatter ? r - 2 : r - 1;
    return part_of(message, own - (int64_t)ring->step, world->cluster->n_devices);
}

static struct part part_out(const struct ring *ring, const struct world *world, const struct message *message) {
    const int64_t r = world->device, own = message->half == HALF_scatter ? r - 1 : r;
    return part_of(message, own - (int64_t)ring->step, world->cluster->n_devices);
}

static uint64_t bytes_of(struct part part, const struct message *message) {
    return (part.end - part.begin) * dtype_bytes(message->dtype);
}

static char *place_of(const struct ring *ring, struct part part, const struct message *message) {
    return ring->data + part.begin * dtype_bytes(message->dtype);
}

void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = world->cluster->n_devices, r = world->device;
    const struct part in = part_in(ring, world, message), out = part_out(ring, world, message);
    const struct completion done = {.kind = DONE_RING, .message = m};
    const MPI_Datatype type = collective_type(message->dtype);
    const bool adds = message->half == HALF_scatter;
    ring->incoming = adds ? pool_take(pool, bytes_of(in, message)) : NULL;
    ring->pending = 2;
    MPI_Irecv(adds ? ring->incoming : place_of(ring, in, message), (int)(in.end - in.begin), type,
              (int)((r + n - 1) % n), (int)m, world->workers, requests_add(requests, done));
    MPI_Isend(place_of(ring, out, message), (int)(out.end - out.begin), type, (int)((r + 1) % n), (int)m,
              world->workers, requests_add(requests, done));
}

bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool) {
    const struct message *message = &plan->messages[m];
    if (--ring->pending > 0)
        return false;
    if (ring->incoming) {
        const struct part in = part_in(ring, world, message);
        MPI_Reduce_local(ring->incoming, place_of(ring, in, message), (int)(in.end - in.begin),
                         collective_type(message->dtype), collective_sum(message->dtype));
        pool_give(pool, ring->incoming);
        ring->incoming = NULL;
    }
    ring->step++;
    return true;
}
