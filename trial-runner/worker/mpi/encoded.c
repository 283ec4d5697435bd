/* All devices add in one order, so that all have the same sum. Sends and receives between two devices keep their order,
 * so that the two ways of a message, and those of the next iteration, need no tags of their own. */
#include "trial-runner/worker/mpi/encoded.h"

#include <string.h>

#include "trial-runner/worker/mpi/blocks.h"
#include "trial-runner/worker/mpi/chunks.h"
#include "trial-runner/worker/mpi/largest.h"
#include "trial-runner/worker/mpi/low_rank.h"
#include "trial-runner/worker/mpi/power.h"

/* int8: elements of the message from `begin` on; powersgd: n of what is added. And where what they are encoded to lies.
 */
struct part {
    uint64_t begin, n;
    uint64_t at, bytes;
};

static uint64_t elements_of(const struct message *message) {
    return message_piece_bytes(message) / dtype_bytes(message->dtype);
}

static bool is_topk(const struct message *message) {
    return message->encoder == ENCODING_topk;
}

static bool is_power(const struct message *message) {
    return message->encoder == ENCODING_powersgd;
}

static struct part part_of_sum(const struct encoded *e, const struct message *message, uint64_t k, uint64_t n) {
    const uint64_t start = e->second ? message->bytes - message->second_bytes : 0;
    const uint64_t all = (e->second ? message->second_bytes : message->bytes - message->second_bytes) / sizeof(float);
    const uint64_t first = k * all / n, last = (k + 1) * all / n;
    return (struct part){
        .n = last - first, .at = start + first * sizeof(float), .bytes = (last - first) * sizeof(float)};
}

static struct part part_of(const struct encoded *e, const struct message *message, uint64_t k, uint64_t n) {
    if (is_topk(message))
        return (struct part){.at = k * message->bytes, .bytes = message->bytes};
    if (is_power(message))
        return part_of_sum(e, message, k, n);
    const uint64_t elements = elements_of(message);
    const uint64_t block = (uint64_t)message->figure, blocks = (elements + block - 1) / block;
    const uint64_t first = k * blocks / n, last = (k + 1) * blocks / n;
    struct part part = {.begin = first * block, .at = first * (block + sizeof(float))};
    part.n = (last < blocks ? last * block : elements) - part.begin;
    part.bytes = (last < blocks ? last * (block + sizeof(float)) : message->bytes) - part.at;
    return first < last ? part : (struct part){0};
}

static size_t kept(const struct message *message) {
    return message->bytes / sizeof(struct largest);
}

static void take_largest(char *to, const float *gradients, float *residual, const struct message *message) {
    const uint64_t elements = elements_of(message);
    for (uint64_t i = 0; i < elements; i++)
        residual[i] += gradients[i];
    largest_take((struct largest *)(void *)to, residual, elements, kept(message));
}

/* There: make room for what comes in, unless one way is all. */
static void begin_way(struct encoded *e, const struct world *world, const struct message *message, struct pool *pool) {
    const uint32_t n = world->cluster->n_devices;
    e->incoming = is_topk(message) ? NULL : pool_take(pool, n * part_of(e, message, world->device, n).bytes);
    e->posted = false;
}

void encoded_begin(struct encoded *e, const float *gradients, float *residual, const struct world *world,
                   const struct plan *plan, uint32_t m, uint64_t eager_bytes, struct pool *pool) {
    const struct message *message = &plan->messages[m];
    const uint32_t n = world->cluster->n_devices;
    *e = (struct encoded){.data = pool_take(pool, is_topk(message) ? n * message->bytes : message->bytes),
                          .chunk = chunks_bytes(eager_bytes)};
    begin_way(e, world, message, pool);
    if (is_topk(message))
        take_largest(e->data + part_of(e, message, world->device, n).at, gradients, residual, message);
    else if (is_power(message))
        power_begin((float *)(void *)e->data, gradients, residual, plan, m);
    else
        blocks_encode(e->data, gradients, elements_of(message), (size_t)message->figure);
}

/* There: to each device its part, and the own part of each. Back: the own part to each, and theirs. A part without
 * blocks is not sent. */
static void post_step(struct encoded *e, uint32_t step, const struct world *world, const struct message *message,
                      uint32_t m, struct requests *requests) {
    const uint32_t n = world->cluster->n_devices, r = world->device;
    const uint32_t to = (r + step) % n, from = (r + n - step) % n;
    const struct part own = part_of(e, message, r, n), out = e->incoming ? part_of(e, message, to, n) : own;
    const struct part in = e->incoming ? own : part_of(e, message, from, n);
    char *place = e->incoming ? e->incoming + from * own.bytes : e->data + in.at;
    const struct completion done = {.kind = DONE_ENCODED, .message = m};
    const struct chunks_peer sender = {(int)from, (int)m, world->workers, done};
    const struct chunks_peer receiver = {(int)to, (int)m, world->workers, done};
    if (in.bytes > 0)
        e->pending += chunks_receive(place, in.bytes, e->chunk, &sender, requests);
    if (out.bytes > 0)
        e->pending += chunks_send(e->data + out.at, out.bytes, e->chunk, &receiver, requests);
}

/* Add the own parts of all devices, in `sum`, which has their place among the gradients; encode the sum. */
static void add_parts(struct encoded *e, float *sum, const struct part *own, const struct world *world, size_t block) {
    memset(sum, 0, own->n * sizeof *sum);
    for (uint32_t device = 0; device < world->cluster->n_devices; device++)
        blocks_add(sum, device == world->device ? e->data + own->at : e->incoming + device * own->bytes, own->n, block);
    blocks_encode(e->data + own->at, sum, own->n, block);
}

/* The same where parts are the numbers themselves. */
static void add_numbers(struct encoded *e, const struct part *own, const struct world *world) {
    float *sum = (float *)(void *)(e->data + own->at);
    for (uint32_t device = 0; device < world->cluster->n_devices; device++)
        if (device != world->device)
            low_rank_add(sum, (const float *)(const void *)(e->incoming + device * own->bytes), own->n, 1);
}

static void add_largest(float *sum, const char *all, const struct message *message, uint32_t n_devices) {
    memset(sum, 0, elements_of(message) * sizeof *sum);
    for (uint32_t device = 0; device < n_devices; device++)
        largest_add(sum, (const struct largest *)(const void *)(all + device * message->bytes), kept(message));
}

/* All steps of the present way, which are posted once. True when they are over. */
static bool way_is_over(struct encoded *e, const struct world *world, const struct message *message, uint32_t m,
                        struct requests *requests) {
    for (uint32_t step = 1; !e->posted && step < world->cluster->n_devices; step++)
        post_step(e, step, world, message, m, requests);
    e->posted = true;
    return e->pending == 0;
}

/* What came is added. */
static void turn_back(struct encoded *e, float *gradients, const struct world *world, const struct message *message,
                      struct pool *pool) {
    const struct part own = part_of(e, message, world->device, world->cluster->n_devices);
    if (is_power(message))
        add_numbers(e, &own, world);
    else
        add_parts(e, gradients + own.begin, &own, world, (size_t)message->figure);
    pool_give(pool, e->incoming);
    e->incoming = NULL;
    e->posted = false;
}

static void decode(struct encoded *e, float *gradients, float *residual, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    if (is_topk(message))
        add_largest(gradients, e->data, message, plan->cluster->n_devices);
    else if (is_power(message))
        power_end(gradients, (float *)(void *)e->data, residual, plan, m);
    else
        blocks_decode(gradients, e->data, elements_of(message), (size_t)message->figure);
}

bool encoded_goes_on(struct encoded *e, float *gradients, float *residual, const struct world *world,
                     const struct plan *plan, uint32_t m, struct pool *pool, struct requests *requests) {
    const struct message *message = &plan->messages[m];
    e->pending -= e->pending > 0;
    while (way_is_over(e, world, message, m, requests)) {
        if (e->incoming) {
            turn_back(e, gradients, world, message, pool);
        } else if (is_power(message) && !e->second) {
            power_turn((float *)(void *)e->data, residual, plan, m);
            e->second = true;
            begin_way(e, world, message, pool);
        } else {
            decode(e, gradients, residual, plan, m);
            pool_give(pool, e->data);
            e->data = NULL;
            return true;
        }
    }
    return false;
}
