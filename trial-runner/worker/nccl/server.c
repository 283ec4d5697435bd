/* Workers announce by note_send what they send, so that receives are posted in the order of the sends on the workers'
 * streams. A group of receives is followed on its stream by the kernels that add what came; the first push of a message
 * goes straight into its sum. A worker that got its sum may push the next iteration's gradient while the others are
 * still being answered, but not two ahead: so a message has two sums, taken by the parity of the iteration. Answers go
 * one group at a time, for the reason that exchange.h gives: the oldest sum first or, where pulls go by priority, the
 * sum that goes first in the plan's order. */
#include "trial-runner/worker/nccl/server.h"

#include <stdbool.h>
#include <stdlib.h>

#include "trial-runner/worker/nccl/kernels.h"
#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/nccl/stream.h"
#include "trial-runner/worker/report.h"

enum { MARK_ADDED, MARK_ANSWERED, BATCHES = 64 };

struct slot {
    void *sum;        /* device memory */
    uint32_t arrived; /* or on their way on the stream */
};

/* A sum that goes to all who pushed; `sent` is to how many it was or is being sent. */
struct answer {
    uint32_t message, parity, sent;
};

/* Receives that were posted together; the messages that were then complete. */
struct batch {
    cudaEvent_t added;
    uint32_t n;
    struct answer complete[NETWORK_GROUP];
};

struct server {
    const struct plan *plan;
    const struct world *world;
    struct network *network;
    struct requests requests;
    struct stream push, pull;
    struct note held; /* taken, for the next group */
    bool holds;
    struct slot *slots;    /* [n_messages * 2] */
    uint8_t *parity;       /* [n_messages * world size] of a rank's next push */
    char *staging;         /* device memory: NETWORK_GROUP of stage_bytes */
    uint64_t stage_bytes;  /* of the largest message here */
    struct batch *batches; /* ring of BATCHES */
    uint32_t next_batch, n_batches;
    struct answer *answers; /* ring of n_messages * 2: the first is being sent */
    uint32_t first_answer, n_answers;
    bool answering;
    cudaEvent_t answered;
    uint64_t answers_to_send; /* until the end */
};

/* The ranks that push a message: the workers, or one a node. */
static uint32_t source_count(const struct server *server, const struct message *message) {
    return message->local_reduction ? server->world->n_leaders : server->world->cluster->n_devices;
}

static int source_rank(const struct server *server, const struct message *message, uint32_t i) {
    return server->world->worker_rank[message->local_reduction ? server->world->leaders[i] : i];
}

static uint64_t count_of(const struct message *message) {
    return message->bytes / dtype_bytes(message->dtype);
}

static void init_message(struct server *server, uint32_t m, uint32_t iterations) {
    const struct message *message = &server->plan->messages[m];
    if (message->kind != SYNC_PARAMETER_SERVER || message->server != server->world->node)
        return;
    for (uint32_t parity = 0; parity < 2; parity++)
        server->slots[m * 2 + parity].sum = device_alloc(message->bytes);
    server->stage_bytes = message->bytes > server->stage_bytes ? message->bytes : server->stage_bytes;
    server->answers_to_send += (uint64_t)iterations * source_count(server, message);
}

static void server_init(struct server *server, const struct plan *plan, const struct world *world,
                        uint32_t iterations) {
    *server = (struct server){.plan = plan, .world = world, .network = network_of(world)};
    server->slots = report_alloc((size_t)plan->n_messages * 2, sizeof *server->slots);
    server->parity = report_alloc((size_t)plan->n_messages * (size_t)world->size, 1);
    server->answers = report_alloc((size_t)plan->n_messages * 2, sizeof *server->answers);
    server->batches = report_alloc(BATCHES, sizeof *server->batches);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        init_message(server, m, iterations);
    server->stage_bytes = (server->stage_bytes + 255) / 256 * 256;
    server->staging = device_alloc(server->stage_bytes * NETWORK_GROUP);
    for (int i = 0; i < BATCHES; i++)
        server->batches[i].added = event_new(false);
    server->answered = event_new(false);
    stream_init(&server->push, server->network->device.urgent);
    stream_init(&server->pull, server->network->device.urgent);
    network_connect(server->network, plan, server->staging);
}

static bool next_note(struct server *server, struct note *out) {
    if (!server->holds)
        return note_take(server->world, out);
    *out = server->held;
    server->holds = false;
    return true;
}

/* Notes whose receives go together: one of each worker at most. */
static uint32_t take_notes(struct server *server, struct note *notes) {
    uint32_t n = 0;
    while (n < NETWORK_GROUP && next_note(server, &notes[n])) {
        for (uint32_t i = 0; i < n; i++) {
            if (notes[i].rank != notes[n].rank)
                continue;
            server->held = notes[n];
            server->holds = true;
            return n;
        }
        n++;
    }
    return n;
}

/* Post the receive of one push; returns where the push will lie. */
static void *receive(struct server *server, const struct note *note, struct slot *slot, uint32_t stage) {
    const struct message *message = &server->plan->messages[note->message];
    void *to = slot->arrived == 0 ? slot->sum : server->staging + stage * server->stage_bytes;
    slot->arrived++;
    network_check(server->network,
                  ncclRecv(to, count_of(message), network_type(message->dtype), note->rank,
                           network_comm(server->network, NETWORK_PUSH, ALGORITHM_auto), server->push.cuda),
                  "ncclRecv");
    return to;
}

static void add(struct server *server, struct batch *batch, const struct note *note, uint32_t parity,
                const void *from) {
    const struct message *message = &server->plan->messages[note->message];
    const struct slot *slot = &server->slots[note->message * 2 + parity];
    if (from != slot->sum)
        device_check(
            kernels_sum(slot->sum, from, count_of(message), (enum kernel_type)message->dtype, server->push.cuda),
            "summing");
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->complete[i].message == note->message && batch->complete[i].parity == parity)
            return;
    if (slot->arrived == source_count(server, message))
        batch->complete[batch->n++] = (struct answer){.message = note->message, .parity = parity};
}

static bool take_arrivals(struct server *server) {
    struct note notes[NETWORK_GROUP];
    uint32_t parity[NETWORK_GROUP];
    void *to[NETWORK_GROUP];
    const uint32_t n = server->n_batches < BATCHES ? take_notes(server, notes) : 0;
    if (n == 0)
        return false;
    struct batch *batch = &server->batches[server->next_batch];
    network_check(server->network, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *next = &server->parity[(size_t)notes[i].message * (size_t)server->world->size + (size_t)notes[i].rank];
        parity[i] = *next;
        *next ^= 1;
        to[i] = receive(server, &notes[i], &server->slots[notes[i].message * 2 + parity[i]], i);
    }
    network_check(server->network, ncclGroupEnd(), "ncclGroupEnd");
    batch->n = 0;
    for (uint32_t i = 0; i < n; i++)
        add(server, batch, &notes[i], parity[i], to[i]);
    stream_mark(&server->push, batch->added, MARK_ADDED, server->next_batch);
    server->next_batch = (server->next_batch + 1) % BATCHES;
    server->n_batches++;
    return true;
}

static void batch_added(struct server *server, const struct batch *batch) {
    server->n_batches--;
    for (uint32_t i = 0; i < batch->n; i++) {
        server->slots[batch->complete[i].message * 2 + batch->complete[i].parity].arrived = 0;
        server->answers[(server->first_answer + server->n_answers++) % (server->plan->n_messages * 2)] =
            batch->complete[i];
    }
}

static struct answer *answer_at(struct server *server, uint32_t i) {
    return &server->answers[(server->first_answer + i) % (server->plan->n_messages * 2)];
}

/* Put the waiting sum that goes first in the plan's order at the head of the ring. O(waiting sums). */
static void choose_answer(struct server *server) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < server->n_answers; i++)
        if (answer_at(server, i)->message < answer_at(server, first)->message)
            first = i;
    const struct answer chosen = *answer_at(server, first);
    for (; first > 0; first--)
        *answer_at(server, first) = *answer_at(server, first - 1);
    *answer_at(server, 0) = chosen;
}

/* Send the sum whose turn it is to as many workers as make a group. */
static bool answer_next(struct server *server) {
    if (server->answering || server->n_answers == 0)
        return false;
    if (server->plan->pulls_by_priority && answer_at(server, 0)->sent == 0)
        choose_answer(server);
    struct answer *answer = &server->answers[server->first_answer];
    const struct message *message = &server->plan->messages[answer->message];
    const uint32_t sources = source_count(server, message);
    const void *sum = server->slots[answer->message * 2 + answer->parity].sum;
    network_check(server->network, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t i = 0; i < NETWORK_GROUP && answer->sent < sources; i++, answer->sent++) {
        const int rank = source_rank(server, message, answer->sent);
        note_send(&server->requests, server->world, NOTE_SUM, rank, answer->message);
        network_check(server->network,
                      ncclSend(sum, count_of(message), network_type(message->dtype), rank,
                               network_comm(server->network, NETWORK_PULL, ALGORITHM_auto), server->pull.cuda),
                      "ncclSend");
    }
    network_check(server->network, ncclGroupEnd(), "ncclGroupEnd");
    stream_mark(&server->pull, server->answered, MARK_ANSWERED, 0);
    server->answering = true;
    return true;
}

static void group_answered(struct server *server) {
    const struct answer *answer = &server->answers[server->first_answer];
    const uint32_t sources = source_count(server, &server->plan->messages[answer->message]);
    server->answering = false;
    if (answer->sent < sources)
        return;
    server->answers_to_send -= sources;
    server->first_answer = (server->first_answer + 1) % (server->plan->n_messages * 2);
    server->n_answers--;
}

static bool take_marks(struct server *server) {
    struct mark mark;
    bool any = false;
    for (; stream_reached(&server->push, &mark); any = true)
        batch_added(server, &server->batches[mark.index]);
    for (; stream_reached(&server->pull, &mark); any = true)
        group_answered(server);
    return any;
}

static bool take_sent_notes(struct server *server) {
    const int n = requests_poll(&server->requests);
    for (int i = 0; i < n; i++)
        free(server->requests.done[i].buffer);
    return n > 0;
}

static void server_release(struct server *server) {
    while (server->requests.n > 0)
        take_sent_notes(server);
    requests_release(&server->requests);
    stream_release(&server->push);
    stream_release(&server->pull);
    for (int i = 0; i < BATCHES; i++)
        device_check(cudaEventDestroy(server->batches[i].added), "ending an event");
    device_check(cudaEventDestroy(server->answered), "ending an event");
    for (size_t i = 0; i < (size_t)server->plan->n_messages * 2; i++)
        device_free(server->slots[i].sum);
    device_free(server->staging);
    free(server->batches);
    free(server->answers);
    free(server->parity);
    free(server->slots);
}

void server_run(const struct plan *plan, const struct world *world, uint32_t iterations) {
    struct server server;
    server_init(&server, plan, world, iterations);
    MPI_Barrier(MPI_COMM_WORLD);
    while (server.answers_to_send > 0) {
        const bool arrived = take_arrivals(&server), reached = take_marks(&server), sent = take_sent_notes(&server);
        if (!answer_next(&server) && !arrived && !reached && !sent)
            device_rest(&server.network->device);
        network_watch(server.network);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    server_release(&server);
}
