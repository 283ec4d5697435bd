/* Steps of a ring; each waits for the one before, since it sends on what came. */
#include "trial-runner/worker/mpi/ring.h"

#include "trial-runner/worker/mpi/collective.h"

static uint64_t elements_of(const struct message *message) {
    return message->bytes / dtype_bytes(message->dtype);
}

/* Part k modulo n of these elements, where k may be as low as -n. */
static struct ring_part part_of(struct ring_part whole, int64_t k, uint32_t n) {
    const uint64_t elements = whole.end - whole.begin, at = (uint64_t)((k + (int64_t)n) % (int64_t)n);
    return (struct ring_part){whole.begin + at * elements / n, whole.begin + (at + 1) * elements / n};
}

static struct ring_part all_of(const struct message *message) {
    return (struct ring_part){0, elements_of(message)};
}

struct ring_members ring_members_of(const struct message *message, uint32_t device, uint32_t n_devices) {
    if (message->ranks == 0)
        return (struct ring_members){0, 1, n_devices};
    const uint32_t span = message->ranks * message->stride;
    return (struct ring_members){device / span * span + device % message->stride, message->stride, message->ranks};
}

static int64_t place_in(const struct ring_members *members, uint32_t device) {
    return (device - members->first) / members->stride;
}

struct ring_part ring_part_of_device(const struct message *message, uint32_t device, uint32_t n_devices) {
    const struct ring_members members = ring_members_of(message, device, n_devices);
    if (message_is_of_replicas(message))
        return part_of(all_of(message), (int64_t)members.first + 1, members.stride);
    return part_of(all_of(message), place_in(&members, device) + 1, members.n);
}

void ring_begin(struct ring *ring, const struct world *world, const struct message *message, char *data) {
    const uint32_t n = world->cluster->n_devices;
    *ring = (struct ring){.members = ring_members_of(message, world->device, n),
                          .whole = message_is_of_replicas(message) ? ring_part_of_device(message, world->device, n)
                                                                   : all_of(message),
                          .data = data,
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

static struct ring_part part_in(const struct ring *ring, const struct world *world) {
    const int64_t r = place_in(&ring->members, world->device), own = ring->adds ? r - 1 : r;
    return part_of(ring->whole, own - (int64_t)ring->step, ring->members.n);
}

static struct ring_part part_out(const struct ring *ring, const struct world *world) {
    const int64_t r = place_in(&ring->members, world->device), own = ring->adds ? r : r + 1;
    return part_of(ring->whole, own - (int64_t)ring->step, ring->members.n);
}

static uint64_t bytes_of(struct ring_part part, const struct message *message) {
    return (part.end - part.begin) * dtype_bytes(message->dtype);
}

static char *place_of(const struct ring *ring, struct ring_part part, const struct message *message) {
    return ring->data + (part.begin - ring->whole.begin) * dtype_bytes(message->dtype);
}

/* The device so many places on. */
static int neighbour(const struct ring *ring, const struct world *world, uint32_t places) {
    const struct ring_members *members = &ring->members;
    const uint32_t place = (uint32_t)place_in(members, world->device);
    return (int)(members->first + (place + places) % members->n * members->stride);
}

void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests) {
    const struct message *message = &plan->messages[m];
    const struct ring_part in = part_in(ring, world), out = part_out(ring, world);
    const struct completion done = {.kind = DONE_RING, .message = m};
    const MPI_Datatype type = collective_type(message->dtype);
    ring->incoming = ring->adds ? pool_take(pool, bytes_of(in, message)) : NULL;
    ring->pending = 2;
    MPI_Irecv(ring->adds ? ring->incoming : place_of(ring, in, message), (int)(in.end - in.begin), type,
              neighbour(ring, world, ring->members.n - 1), (int)m, world->workers, requests_add(requests, done));
    MPI_Isend(place_of(ring, out, message), (int)(out.end - out.begin), type, neighbour(ring, world, 1), (int)m,
              world->workers, requests_add(requests, done));
}

bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool) {
    const struct message *message = &plan->messages[m];
    if (--ring->pending > 0)
        return false;
    if (ring->incoming) {
        const struct ring_part in = part_in(ring, world);
        MPI_Reduce_local(ring->incoming, place_of(ring, in, message), (int)(in.end - in.begin),
                         collective_type(message->dtype), collective_sum(message->dtype));
        pool_give(pool, ring->incoming);
        ring->incoming = NULL;
    }
    ring->step++;
    return true;
}
