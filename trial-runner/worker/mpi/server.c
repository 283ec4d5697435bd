/* Pushes are taken as they come (MPI_Improbe), so nothing is posted for messages that are far off. The first of a
 * message's pushes becomes the accumulator and the others are added to it; after the last, the accumulator goes to all.
 * A worker that got its sum may push the next iteration's gradient while the others are still being answered, but not
 * two ahead: so a message has two slots, taken by the parity of the iteration. */
#include "trial-runner/worker/mpi/server.h"

#include <stdbool.h>
#include <stdlib.h>

#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

struct slot {
    char *sum;
    uint32_t arrived;
};

/* A sum on its way back. */
struct answer {
    char *sum;
    uint32_t unsent;
};

struct server {
    const struct plan *plan;
    const struct world *world;
    struct requests requests;
    struct pool pool;
    struct slot *slots;       /* [n_messages * 2] */
    uint8_t *parity;          /* [n_messages * world size] of a rank's next push */
    uint64_t answers_to_send; /* until the end */
};

/* The ranks that push a message: the workers, or one a node. */
static uint32_t source_count(const struct server *server, const struct message *message) {
    return message->local_reduction ? server->world->n_leaders : server->world->cluster->n_devices;
}

static int source_rank(const struct server *server, const struct message *message, uint32_t i) {
    return server->world->worker_rank[message->local_reduction ? server->world->leaders[i] : i];
}

static bool is_mine(const struct server *server, const struct message *message) {
    return message->kind == SYNC_PARAMETER_SERVER && message->server == server->world->node;
}

static void server_init(struct server *server, const struct plan *plan, const struct world *world,
                        uint32_t iterations) {
    *server = (struct server){.plan = plan, .world = world};
    server->slots = report_alloc((size_t)plan->n_messages * 2, sizeof *server->slots);
    server->parity = report_alloc((size_t)plan->n_messages * (size_t)world->size, 1);
    for (uint32_t i = 0; i < plan->n_messages; i++)
        if (is_mine(server, &plan->messages[i]))
            server->answers_to_send += (uint64_t)iterations * source_count(server, &plan->messages[i]);
}

/* Receive whatever is there. */
static bool take_arrivals(struct server *server) {
    bool any = false;
    for (;;) {
        int found;
        MPI_Message handle;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, server->world->pushes, &found, &handle, &status);
        if (!found)
            return any;
        any = true;
        const uint32_t m = (uint32_t)status.MPI_TAG;
        const struct message *message = &server->plan->messages[m];
        void *buffer = pool_take(&server->pool, message->bytes);
        struct completion what = {DONE_ARRIVAL, m, status.MPI_SOURCE, buffer};
        MPI_Imrecv(buffer, collective_count(message->bytes, message->dtype), collective_type(message->dtype), &handle,
                   requests_add(&server->requests, what));
    }
}

static void answer(struct server *server, uint32_t m, struct slot *slot) {
    const struct message *message = &server->plan->messages[m];
    struct answer *answer = report_alloc(1, sizeof *answer);
    *answer = (struct answer){slot->sum, slot->arrived};
    *slot = (struct slot){0};
    for (uint32_t i = 0; i < answer->unsent; i++)
        MPI_Isend(answer->sum, collective_count(message->bytes, message->dtype), collective_type(message->dtype),
                  source_rank(server, message, i), (int)m, server->world->pushes,
                  requests_add(&server->requests, (struct completion){DONE_ANSWER, m, 0, answer}));
}

static void add_arrival(struct server *server, const struct completion *done) {
    const struct message *message = &server->plan->messages[done->message];
    uint8_t *parity = &server->parity[(size_t)done->message * (size_t)server->world->size + (size_t)done->peer];
    struct slot *slot = &server->slots[done->message * 2 + *parity];
    *parity ^= 1;
    if (slot->arrived++ == 0) {
        slot->sum = done->buffer;
    } else {
        MPI_Reduce_local(done->buffer, slot->sum, collective_count(message->bytes, message->dtype),
                         collective_type(message->dtype), collective_sum(message->dtype));
        pool_give(&server->pool, done->buffer);
    }
    if (slot->arrived == source_count(server, message))
        answer(server, done->message, slot);
}

static void answer_sent(struct server *server, struct answer *answer) {
    server->answers_to_send--;
    if (--answer->unsent > 0)
        return;
    pool_give(&server->pool, answer->sum);
    free(answer);
}

static bool take_completions(struct server *server) {
    int n = requests_poll(&server->requests);
    for (int i = 0; i < n; i++) {
        struct completion done = server->requests.done[i];
        if (done.kind == DONE_ARRIVAL)
            add_arrival(server, &done);
        else
            answer_sent(server, done.buffer);
    }
    return n > 0;
}

void server_run(const struct plan *plan, const struct world *world, uint32_t iterations) {
    struct server server;
    server_init(&server, plan, world, iterations);
    while (server.answers_to_send > 0) {
        bool any = take_arrivals(&server);
        if (!take_completions(&server) && !any)
            pause_once();
    }
    requests_release(&server.requests);
    pool_release(&server.pool);
    free(server.parity);
    free(server.slots);
}
