/* Each completion moves its message to the next stage; a stage posts the requests whose completion ends it. A buffer is
 * the gradients' own where a message is one piece, so that only fused messages pay for copies. */
#include "trial-runner/worker/mpi/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/mpi/sharded.h"
#include "trial-runner/worker/operations.h"
#include "trial-runner/worker/report.h"

static MPI_Datatype type_of(const struct message *message) {
    return collective_type(message->dtype);
}

static int count_of(const struct message *message) {
    return collective_count(message->bytes, message->dtype);
}

static MPI_Request *expect(struct exchange *x, enum completion_kind kind, uint32_t m, void *buffer) {
    return requests_add(&x->requests, (struct completion){.kind = kind, .message = m, .buffer = buffer});
}

void exchange_init(struct exchange *x, const struct plan *plan, const struct world *world, bool verify) {
    *x = (struct exchange){.plan = plan, .world = world, .verify = verify};
    x->transfers = report_alloc(plan->n_messages, sizeof *x->transfers);
    x->residuals = report_alloc(plan->n_messages, sizeof *x->residuals);
    x->between = report_alloc(plan->n_messages, sizeof *x->between);
    x->closed = report_alloc(plan->n_steps, sizeof *x->closed);
    x->opened_us = report_alloc(plan->n_steps, sizeof *x->opened_us);
    gradients_init(&x->gradients, plan);
    x->shards = report_alloc(plan->n_messages, sizeof *x->shards);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        x->shards[m] = sharded_alloc(plan, m);
    if (plan->ends_in_update)
        gradients_init(&x->variables, plan);
    schedule_init(&x->schedule, plan);
    schedule_init(&x->pulls, plan);
    x->eager_bytes = (uint64_t)operations_eager_bytes();
    x->unasked_bytes = plan->pulls_by_priority ? x->eager_bytes : 0;
    coordinator_init(&x->coordinator, plan, world, &x->requests, false, true);
}

/* Where what a message moves lies. */
static struct gradients *place_of(struct exchange *x, const struct message *message) {
    return message_gathers_parameters(message) ? &x->variables : &x->gradients;
}

static enum status check(struct exchange *x, uint32_t m, const char *buffer, struct error *err) {
    const struct message *message = &x->plan->messages[m];
    const uint32_t iteration = x->transfers[m].iteration;
    if (!message_is_of_shards(message) && !message_is_of_replicas(message))
        return gradients_check(&x->gradients, message_is_second_half(message) ? message->other : m, iteration, err);
    return sharded_check(place_of(x, message), m, buffer, x->shards[m], x->world->device, iteration, err);
}

static void begin_replicas(struct exchange *x, uint32_t m, char *buffer, bool copied);

/* What replicas add stays where it lies, as the parts of a reduce-scatter do. */
static bool is_scattered(const struct message *message) {
    return message->half == HALF_scatter || message_is_of_replicas(message);
}

static void finish(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    struct gradients *place = place_of(x, message);
    const bool copied = !gradients_in_place(place, m);
    struct error err;
    if (copied && !is_scattered(message))
        gradients_scatter(place, m, transfer->buffer);
    if (x->shards[m] && is_scattered(message))
        sharded_keep(x->plan, m, transfer->buffer, x->world->device, x->shards[m]);
    if (x->verify && check(x, m, transfer->buffer, &err))
        report_abort(err.status, "%s, device %u", ERROR_TEXT(&err), x->world->device);
    if (message->replicas > 0)
        begin_replicas(x, message->replicas, transfer->buffer, copied);
    if (copied && message_is_of_replicas(message))
        free(transfer->buffer);
    else if (copied)
        pool_give(&x->pool, transfer->buffer);
    transfer->buffer = NULL;
    descent_take(&x->descent, &x->gradients, message_is_second_half(message) ? message->other : m, transfer->iteration);
    transfer->end_us = clock_now_us();
    x->closed[message->gate]--;
    x->opened_us[message->gate] = transfer->end_us;
    x->n_live--;
    if (x->on_done)
        x->on_done(x->context, m, transfer);
}

/* Synchronous, so that the credit comes back when the server has taken the push and not when this host has buffered
 * it: "the sender keeps only one tensor unacknowledged" (ByteScheduler §4.2). */
static void push(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    MPI_Issend(x->transfers[m].buffer, count_of(message), type_of(message), x->world->server_rank[message->server],
               (int)m, x->world->pushes, expect(x, DONE_PUSH, m, NULL));
}

static void receive_announced(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    transfer->pull_us = clock_now_us();
    MPI_Imrecv(transfer->buffer, count_of(message), type_of(message), &transfer->sum, expect(x, DONE_PULL, m, NULL));
}

/* Once the sum is announced and the pushed buffer, into which it goes, is free. */
static void line_up_pull(struct exchange *x, uint32_t m) {
    struct transfer *transfer = &x->transfers[m];
    if (!transfer->pushed || !transfer->announced)
        return;
    transfer->queued = x->plan->messages[m].bytes > x->unasked_bytes;
    if (transfer->queued)
        schedule_ready(&x->pulls, m);
    else
        receive_announced(x, m);
}

/* Of sums. Nothing else is sent to a worker on this communicator. */
static bool take_announcements(struct exchange *x) {
    for (bool any = false;; any = true) {
        int found;
        MPI_Message handle;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, x->world->pushes, &found, &handle, &status);
        if (!found)
            return any;
        struct transfer *transfer = &x->transfers[status.MPI_TAG];
        transfer->sum = handle;
        transfer->announced = true;
        transfer->sum_us = clock_now_us();
        line_up_pull(x, (uint32_t)status.MPI_TAG);
    }
}

static bool pull_by_priority(struct exchange *x) {
    bool any = take_announcements(x);
    for (uint32_t m; schedule_next(&x->pulls, &m); any = true)
        receive_announced(x, m);
    return any;
}

/* The pull goes into the pushed buffer, which is free for it only now. */
static void pull(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    schedule_return(&x->schedule, m);
    if (x->plan->pulls_by_priority) {
        x->transfers[m].pushed = true;
        line_up_pull(x, m);
        return;
    }
    MPI_Irecv(x->transfers[m].buffer, count_of(message), type_of(message), x->world->server_rank[message->server],
              (int)m, x->world->pushes, expect(x, DONE_PULL, m, NULL));
}

/* Leaders start their collectives in the order in which the messages were started, not in that of local sums. */
static void start_between(struct exchange *x) {
    while (x->n_between > 0) {
        uint32_t m = x->between[x->first_between];
        const struct message *message = &x->plan->messages[m];
        if (!x->transfers[m].summed)
            return;
        x->first_between = (x->first_between + 1) % x->plan->n_messages;
        x->n_between--;
        collective_start(x->transfers[m].buffer, count_of(message), message->dtype, message->algorithm,
                         x->world->between, expect(x, DONE_ALL_REDUCE, m, NULL));
    }
}

static void node_summed(struct exchange *x, uint32_t m) {
    x->transfers[m].summed = true;
    if (x->plan->messages[m].kind == SYNC_PARAMETER_SERVER)
        push(x, m);
    else
        start_between(x);
}

/* Make the message's bytes one run: where they are, or gathered into a buffer. */
static void prepare(struct exchange *x, uint32_t m) {
    struct transfer *transfer = &x->transfers[m];
    const struct gradients *place = place_of(x, &x->plan->messages[m]);
    const bool in_place = (transfer->buffer = gradients_in_place(place, m));
    if (!in_place)
        transfer->buffer = pool_take(&x->pool, gradients_gathered_bytes(&x->plan->messages[m]));
    if (place == &x->variables)
        sharded_pack(place, m, x->world->device, x->shards[m], transfer->buffer);
    else if (!in_place)
        gradients_gather(place, m, transfer->buffer);
}

/* Receive the gradients of the node's other devices. Only at a leader, once its own gradient is ready. */
static void receive_in_node(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    const struct node *node = world_node(x->world);
    prepare(x, m);
    x->transfers[m].pending = node->devices - 1;
    for (uint32_t k = 1; k < node->devices; k++) {
        void *staging = pool_take(&x->pool, message->bytes);
        MPI_Irecv(staging, count_of(message), type_of(message), (int)(node->first_device + k), (int)m,
                  x->world->workers, expect(x, DONE_LOCAL_RECV, m, staging));
    }
}

/* Devices of a node may start pushes in different orders under priority. Suppose that a leader received only for
 * messages that it has started. Then it could wait for a message that another device has not started, because that
 * device's credit is held by a send that the leader does not receive. So the leader receives from the moment its own
 * gradient is ready. All-reduces start in one order everywhere. */
static bool listens_early(const struct exchange *x, const struct message *message) {
    return x->world->is_leader && message->kind == SYNC_PARAMETER_SERVER && world_sums_in_nodes(x->world, message);
}

static void start_in_node(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    transfer->started = true;
    if (!x->world->is_leader) {
        prepare(x, m);
        MPI_Isend(transfer->buffer, count_of(message), type_of(message), (int)world_node(x->world)->first_device,
                  (int)m, x->world->workers, expect(x, DONE_LOCAL_SEND, m, NULL));
        return;
    }
    if (message->kind == SYNC_ALL_REDUCE) {
        x->between[(x->first_between + x->n_between++) % x->plan->n_messages] = m;
        receive_in_node(x, m);
    }
    if (transfer->pending == 0)
        node_summed(x, m);
}

static void add_local(struct exchange *x, uint32_t m, void *staging) {
    const struct message *message = &x->plan->messages[m];
    MPI_Reduce_local(staging, x->transfers[m].buffer, count_of(message), type_of(message),
                     collective_sum(message->dtype));
    pool_give(&x->pool, staging);
    if (--x->transfers[m].pending == 0 && x->transfers[m].started)
        node_summed(x, m);
}

static void await_local_result(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    if (message->kind == SYNC_PARAMETER_SERVER)
        schedule_return(&x->schedule, m);
    MPI_Irecv(x->transfers[m].buffer, count_of(message), type_of(message), (int)world_node(x->world)->first_device,
              (int)m, x->world->workers, expect(x, DONE_LOCAL_RESULT, m, NULL));
}

/* The sum over all is at this worker: pass it on inside the node, or be done. */
static void sum_arrived(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    const struct node *node = world_node(x->world);
    if (message->kind == SYNC_ALL_REDUCE)
        schedule_return(&x->schedule, m);
    if (!world_sums_in_nodes(x->world, message) || node->devices == 1) {
        finish(x, m);
        return;
    }
    x->transfers[m].pending = node->devices - 1;
    for (uint32_t k = 1; k < node->devices; k++)
        MPI_Isend(x->transfers[m].buffer, count_of(message), type_of(message), (int)(node->first_device + k), (int)m,
                  x->world->workers, expect(x, DONE_LOCAL_RETURN, m, NULL));
}

static void pulled(struct exchange *x, uint32_t m) {
    if (x->transfers[m].queued)
        schedule_return(&x->pulls, m);
    sum_arrived(x, m);
}

static void local_result(struct exchange *x, uint32_t m) {
    if (x->plan->messages[m].kind == SYNC_ALL_REDUCE)
        schedule_return(&x->schedule, m);
    finish(x, m);
}

/* Every device sends its slice to all others. */
static void start_gather(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    void *slices = pool_take(&x->pool, x->world->cluster->n_devices * message->bytes);
    MPI_Iallgather(x->transfers[m].buffer, count_of(message), type_of(message), slices, count_of(message),
                   type_of(message), x->world->workers, expect(x, DONE_ALL_GATHER, m, slices));
}

/* All devices add the slices in one order, so that all have the same sum. */
static void add_slices(struct exchange *x, uint32_t m, char *slices) {
    const struct message *message = &x->plan->messages[m];
    char *sum = x->transfers[m].buffer;
    memcpy(sum, slices, message->bytes);
    for (uint32_t device = 1; device < x->world->cluster->n_devices; device++)
        MPI_Reduce_local(slices + device * message->bytes, sum, count_of(message), type_of(message),
                         collective_sum(message->dtype));
    pool_give(&x->pool, slices);
    sum_arrived(x, m);
}

static void encoded_moved(struct exchange *x, uint32_t m) {
    struct transfer *transfer = &x->transfers[m];
    if (encoded_goes_on(&transfer->encoded, (float *)(void *)transfer->buffer, x->residuals[m], x->world, x->plan, m,
                        &x->pool, &x->requests))
        sum_arrived(x, m);
}

static void start_encoded(struct exchange *x, uint32_t m) {
    struct transfer *transfer = &x->transfers[m];
    const uint64_t kept = layout_kept_bytes(&x->plan->messages[m]);
    if (kept && !x->residuals[m])
        x->residuals[m] = memset(pool_take(&x->pool, kept), 0, kept);
    encoded_begin(&transfer->encoded, (const float *)(const void *)transfer->buffer, x->residuals[m], x->world, x->plan,
                  m, x->eager_bytes, &x->pool);
    encoded_moved(x, m);
}

static void half_done(struct exchange *x, uint32_t m);

static void go_round(struct exchange *x, uint32_t m) {
    struct ring *ring = &x->transfers[m].ring;
    if (ring_goes_on(ring, &x->plan->messages[m]))
        ring_post(ring, x->world, x->plan, m, &x->pool, &x->requests);
    else
        half_done(x, m);
}

static void start_half(struct exchange *x, uint32_t m) {
    struct transfer *transfer = &x->transfers[m];
    ring_begin(&transfer->ring, x->world, &x->plan->messages[m], transfer->buffer, x->eager_bytes);
    go_round(x, m);
}

/* This device's part of a reduce-scatter is its gradient now; where it lies in a buffer, that may go. */
static void begin_replicas(struct exchange *x, uint32_t m, char *buffer, bool copied) {
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    const struct part part = part_of_device(message, x->world->device, x->world->cluster->n_devices);
    const uint64_t size = dtype_bytes(message->dtype), bytes = (part.end - part.begin) * size;
    transfer->buffer = buffer + part.begin * size;
    if (copied)
        transfer->buffer = memcpy(report_alloc(bytes, 1), transfer->buffer, bytes);
    transfer->ready_us = transfer->start_us = clock_now_us();
    start_half(x, m);
}

/* The second half goes on in the buffer of the first. It may be its turn already, by the word of device 0. */
static void first_half_done(struct exchange *x, uint32_t m) {
    struct transfer *first = &x->transfers[m];
    const uint32_t other = x->plan->messages[m].other;
    struct transfer *second = &x->transfers[other];
    first->end_us = clock_now_us();
    if (x->on_done)
        x->on_done(x->context, m, first);
    second->buffer = first->buffer;
    second->ready_us = first->end_us;
    second->has_part = true;
    first->buffer = NULL;
    if (second->started)
        start_half(x, other);
    else if (!coordinator_orders(&x->coordinator, other) || x->coordinator.leads)
        schedule_ready(&x->schedule, other);
}

static void half_done(struct exchange *x, uint32_t m) {
    if (!message_is_of_replicas(&x->plan->messages[m]))
        schedule_return(&x->schedule, m);
    if (message_is_first_half(&x->plan->messages[m]))
        first_half_done(x, m);
    else
        finish(x, m);
}

static void ring_moved(struct exchange *x, uint32_t m) {
    if (ring_came(&x->transfers[m].ring, x->world, x->plan, m, &x->pool))
        go_round(x, m);
}

static void start(void *context, uint32_t m) {
    struct exchange *x = context;
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    transfer->start_us = clock_now_us();
    if (message_is_second_half(message)) {
        transfer->started = true;
        if (transfer->has_part)
            start_half(x, m);
        return;
    }
    if (world_sums_in_nodes(x->world, message)) {
        start_in_node(x, m);
        return;
    }
    prepare(x, m);
    if (message->kind == SYNC_PARAMETER_SERVER)
        push(x, m);
    else if (message->encoder)
        start_encoded(x, m);
    else if (message->half)
        start_half(x, m);
    else if (message->algorithm == ALGORITHM_all_gather)
        start_gather(x, m);
    else
        collective_start(transfer->buffer, count_of(message), message->dtype, message->algorithm, x->world->workers,
                         expect(x, DONE_ALL_REDUCE, m, NULL));
}

/* Whether the message carries what all micro-batches up to its own have added up. */
static bool adds_up(const struct plan *plan, const struct message *message) {
    return plan->micro_batches > 1 && !plan->sums_each && !message_gathers_parameters(message);
}

static void produce(struct exchange *x, uint32_t m, uint32_t iteration) {
    const struct plan *plan = x->plan;
    const struct message *message = &plan->messages[m];
    if (place_of(x, message) == &x->variables)
        sharded_produce(&x->variables, m, x->world->device, iteration, x->shards[m]);
    else if (adds_up(plan, message))
        gradients_accumulate(&x->gradients, m, x->world->device, iteration, plan->micro_batches - 1);
    else
        gradients_produce(&x->gradients, m, x->world->device, iteration);
}

/* Step `step` is one of a micro-batch before that in which its gradients travel. */
static void accumulate(struct exchange *x, uint32_t iteration, uint32_t step) {
    const struct plan *plan = x->plan;
    const uint32_t pass = plan_pass_steps(plan), travels = plan->n_steps - pass + plan_step_in_pass(plan, step);
    if (step == travels)
        return;
    for (uint32_t i = plan->first_ready[travels]; i < plan->first_ready[travels + 1]; i++)
        if (adds_up(plan, &plan->messages[plan->by_ready[i]]))
            gradients_accumulate(&x->gradients, plan->by_ready[i], x->world->device, iteration, step / pass);
}

/* The update waits for what replicas add from now on. */
static void expect_replicas(struct exchange *x, uint32_t m, uint32_t iteration) {
    x->transfers[m] = (struct transfer){.iteration = iteration};
    x->closed[x->plan->messages[m].gate]++;
    x->n_live++;
}

static void message_ready(struct exchange *x, uint32_t m, uint32_t iteration, double now_us) {
    const struct message *message = &x->plan->messages[m];
    x->transfers[m] = (struct transfer){.iteration = iteration, .ready_us = now_us};
    if (message_is_first_half(message))
        x->transfers[message->other] = (struct transfer){.iteration = iteration};
    if (message->replicas > 0)
        expect_replicas(x, message->replicas, iteration);
    produce(x, m, iteration);
    descent_put(&x->descent, &x->gradients, m, iteration);
    x->closed[message->gate]++;
    x->n_live++;
    if (listens_early(x, message))
        receive_in_node(x, m);
    if (!coordinator_orders(&x->coordinator, m))
        schedule_ready(&x->schedule, m);
}

void exchange_step_done(struct exchange *x, uint32_t iteration, uint32_t step, double now_us) {
    accumulate(x, iteration, step);
    for (uint32_t i = x->plan->first_ready[step]; i < x->plan->first_ready[step + 1]; i++) {
        message_ready(x, x->plan->by_ready[i], iteration, now_us);
        if (coordinator_orders(&x->coordinator, x->plan->by_ready[i]))
            x->to_report = (uint64_t)iteration * x->plan->n_steps + step + 1;
    }
}

void exchange_spoil(struct exchange *x, uint32_t m) {
    gradients_spoil(place_of(x, &x->plan->messages[m]), m);
}

static void handle(struct exchange *x, struct completion done) {
    switch (done.kind) {
    case DONE_ALL_REDUCE:
        sum_arrived(x, done.message);
        break;
    case DONE_RING:
        ring_moved(x, done.message);
        break;
    case DONE_ENCODED:
        encoded_moved(x, done.message);
        break;
    case DONE_PULL:
        pulled(x, done.message);
        break;
    case DONE_ALL_GATHER:
        add_slices(x, done.message, done.buffer);
        break;
    case DONE_LOCAL_SEND:
        await_local_result(x, done.message);
        break;
    case DONE_LOCAL_RECV:
        add_local(x, done.message, done.buffer);
        break;
    case DONE_LOCAL_RESULT:
        local_result(x, done.message);
        break;
    case DONE_LOCAL_RETURN:
        if (--x->transfers[done.message].pending == 0)
            finish(x, done.message);
        break;
    case DONE_PUSH:
        pull(x, done.message);
        break;
    case DONE_REPORT:
        coordinator_hear(&x->coordinator, (uint32_t)done.peer, &x->schedule);
        break;
    case DONE_GO:
        coordinator_obey(&x->coordinator, &x->schedule, start, x);
        break;
    default: /* DONE_CONTROL_SEND; a server's completions never come here */
        free(done.buffer);
    }
}

bool exchange_progress(struct exchange *x) {
    if (x->to_report > 0)
        coordinator_report(&x->coordinator, x->to_report, &x->schedule);
    x->to_report = 0;
    bool any = coordinator_dispatch(&x->coordinator, &x->schedule, start, x);
    int n = requests_poll(&x->requests);
    for (int i = 0; i < n; i++)
        handle(x, x->requests.done[i]);
    if (x->plan->pulls_by_priority && pull_by_priority(x))
        any = true;
    return any || n > 0;
}

void exchange_release(struct exchange *x) {
    requests_end(&x->requests);
    coordinator_release(&x->coordinator);
    schedule_release(&x->schedule);
    schedule_release(&x->pulls);
    gradients_release(&x->gradients);
    if (x->plan->ends_in_update)
        gradients_release(&x->variables);
    for (uint32_t m = 0; m < x->plan->n_messages; m++) {
        pool_give(&x->pool, x->residuals[m]);
        free(x->shards[m]);
    }
    free(x->residuals);
    free(x->shards);
    pool_release(&x->pool);
    free(x->opened_us);
    free(x->closed);
    free(x->between);
    free(x->transfers);
    *x = (struct exchange){0};
}
