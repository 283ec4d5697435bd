/* One turn of the event loop asks each stream about its oldest mark and MPI about notes; nothing here blocks. The check
 * of a sum has a stream of its own, off the way of the messages. */
#include "trial-runner/worker/nccl/exchange.h"

#include <stdlib.h>

#include "trial-runner/worker/nccl/encoded.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/report.h"

/* What the marks on the streams mean. */
enum { MARK_SUMMED, MARK_PUSHED, MARK_DONE, MARK_CHECKED };

static void check_call(const struct exchange *x, ncclResult_t result, const char *what) {
    network_check(x->network, result, what);
}

static uint64_t count_of(const struct message *message) {
    return message->bytes / dtype_bytes(message->dtype);
}

static void init_events(struct exchange *x) {
    x->transfers = report_alloc(x->plan->n_messages, sizeof *x->transfers);
    for (uint32_t m = 0; m < x->plan->n_messages; m++) {
        struct transfer *transfer = &x->transfers[m];
        transfer->start = event_new(x->timed);
        transfer->summed = event_new(false);
        transfer->done = event_new(x->timed);
        transfer->checked = event_new(false);
    }
    x->pushed = event_new(false);
}

static void init_streams(struct exchange *x) {
    const struct device *device = &x->network->device;
    stream_init(&x->collectives, device->urgent);
    stream_init(&x->push, device->urgent);
    stream_init(&x->pull, device->urgent);
    stream_init(&x->back, device->urgent);
    stream_init(&x->checks, device->idle);
}

static bool is_gathered(const struct message *message) {
    return message->kind == SYNC_ALL_REDUCE && message->algorithm == ALGORITHM_all_gather;
}

/* What the message needs of `slices`. */
static uint64_t slices_bytes(const struct exchange *x, const struct message *message) {
    const uint32_t n = x->world->cluster->n_devices;
    if (message->encoder == ENCODING_powersgd)
        return power_room_bytes(message);
    return message->encoder ? encoded_room_bytes(message, n) : is_gathered(message) ? message->bytes * n : 0;
}

static void init_kept(struct exchange *x) {
    x->kept = report_alloc(x->plan->n_messages, sizeof *x->kept);
    for (uint32_t m = 0; m < x->plan->n_messages; m++) {
        const uint64_t bytes = layout_kept_bytes(&x->plan->messages[m]);
        x->kept[m] = bytes > 0 ? device_alloc(bytes) : NULL;
        x->buffers_bytes += bytes;
    }
}

/* Returns the bytes. */
static uint64_t init_slices(struct exchange *x) {
    uint64_t most = 0;
    for (uint32_t m = 0; m < x->plan->n_messages; m++) {
        const uint64_t bytes = slices_bytes(x, &x->plan->messages[m]);
        most = bytes > most ? bytes : most;
    }
    x->slices = device_alloc(most);
    x->buffers_bytes = x->gradients.fused_bytes + most;
    return most;
}

void exchange_init(struct exchange *x, const struct plan *plan, const struct world *world, bool verify, bool timed) {
    *x =
        (struct exchange){.plan = plan, .network = network_of(world), .world = world, .verify = verify, .timed = timed};
    x->backlog.messages = report_alloc(plan->n_messages, sizeof *x->backlog.messages);
    init_events(x);
    init_streams(x);
    gradients_init(&x->gradients, plan, world->device);
    const uint64_t slices = init_slices(x);
    init_kept(x);
    power_init(&x->power, plan);
    schedule_init(&x->schedule, plan);
    coordinator_init(&x->coordinator, plan, world, &x->requests, world->n_leaders < world->cluster->n_devices, false);
    network_connect(x->network, plan, slices > x->gradients.data_bytes ? x->slices : x->gradients.table.data);
}

/* The event after which nobody reads or writes any more what the message moved. */
static cudaEvent_t last_event(const struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    return x->transfers[message_is_first_half(message) ? message->other : m].checked;
}

/* Two halves are one live message. */
static void complete(struct exchange *x, uint32_t m) {
    if (!message_is_first_half(&x->plan->messages[m]))
        x->n_live--;
    if (x->on_done)
        x->on_done(x->context, m, &x->transfers[m]);
}

/* Of two halves the second. */
static bool is_checked(const struct exchange *x, uint32_t m) {
    return x->verify && !message_is_first_half(&x->plan->messages[m]);
}

/* The message's last stages on the stream: the sum goes where it belongs, and the check is asked for. */
static void enqueue_end(struct exchange *x, uint32_t m, struct stream *stream) {
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    if (message->half == HALF_none || message->half == HALF_gather)
        gradients_scatter(&x->gradients, m, stream);
    else
        gradients_convert_part(&x->gradients, m, stream);
    stream_mark(stream, transfer->done, MARK_DONE, m);
    transfer->enqueued = transfer->iteration + 1;
    if (!is_checked(x, m))
        return;
    stream_await(&x->checks, transfer->done);
    gradients_check(&x->gradients, m, transfer->iteration, &x->checks);
    stream_mark(&x->checks, transfer->checked, MARK_CHECKED, m);
    if (message_gathers_parameters(message))
        x->gathered = transfer->checked;
}

/* Replicas add what the reduce-scatter has left of message m here, when that has been checked. Every device comes here
 * in the order in which collectives go. */
static void follow_with_replicas(struct exchange *x, uint32_t m) {
    const uint32_t r = x->plan->messages[m].replicas;
    const struct message *message = &x->plan->messages[r];
    void *part = gradients_part(&x->gradients, r);
    x->transfers[r].iteration = x->transfers[m].iteration;
    stream_await(&x->back, x->verify ? x->transfers[m].checked : x->transfers[m].done);
    device_check(cudaEventRecord(x->transfers[r].start, x->back.cuda), "recording an event");
    check_call(x,
               ncclAllReduce(part, part, part_elements(message, x->world->cluster->n_devices),
                             network_type(message->dtype), ncclSum, network_comm_of(x->network, message), x->back.cuda),
               "ncclAllReduce");
    enqueue_end(x, r, &x->back);
}

static void reduce_in_node(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    void *run = gradients_run(&x->gradients, m);
    ncclComm_t node = network_comm(x->network, NETWORK_NODE, ALGORITHM_auto);
    check_call(
        x, ncclReduce(run, run, count_of(message), network_type(message->dtype), ncclSum, 0, node, x->collectives.cuda),
        "ncclReduce");
}

static void broadcast(struct exchange *x, uint32_t m, ncclComm_t node, const struct stream *stream) {
    const struct message *message = &x->plan->messages[m];
    void *run = gradients_run(&x->gradients, m);
    check_call(x, ncclBroadcast(run, run, count_of(message), network_type(message->dtype), 0, node, stream->cuda),
               "ncclBroadcast");
}

static void all_reduce(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    const bool in_nodes = world_sums_in_nodes(x->world, message);
    void *run = gradients_run(&x->gradients, m);
    ncclComm_t comm = network_comm_of(x->network, message);
    if (in_nodes)
        reduce_in_node(x, m);
    if (comm)
        check_call(x,
                   ncclAllReduce(run, run, count_of(message), network_type(message->dtype), ncclSum, comm,
                                 x->collectives.cuda),
                   "ncclAllReduce");
    if (in_nodes)
        broadcast(x, m, network_comm(x->network, NETWORK_NODE, ALGORITHM_auto), &x->collectives);
}

/* All devices add the slices in one order, so that all have the same sum. */
static void all_gather(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    const cudaStream_t stream = x->collectives.cuda;
    char *run = gradients_run(&x->gradients, m), *slices = x->slices;
    ncclComm_t comm = network_comm_of(x->network, message);
    check_call(x, ncclAllGather(run, slices, count_of(message), network_type(message->dtype), comm, stream),
               "ncclAllGather");
    device_check(cudaMemcpyAsync(run, slices, message->bytes, cudaMemcpyDeviceToDevice, stream), "copying");
    for (uint32_t device = 1; device < x->world->cluster->n_devices; device++)
        device_check(kernels_sum(run, slices + device * message->bytes, count_of(message),
                                 (enum kernel_type)message->dtype, stream),
                     "summing");
}

/* A part of the sum to each device, or the parts from each to all. The variables of an all-gather may be those that the
 * check of the last one reads. */
static void move_half(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    const ncclDataType_t type = network_type(message->dtype);
    const uint64_t count = part_elements(message, x->world->cluster->n_devices);
    void *run = gradients_run(&x->gradients, m), *part = gradients_part(&x->gradients, m);
    ncclComm_t comm = network_comm_of(x->network, message);
    if (message->half == HALF_scatter) {
        check_call(x, ncclReduceScatter(run, part, count, type, ncclSum, comm, x->collectives.cuda),
                   "ncclReduceScatter");
        return;
    }
    if (message_gathers_parameters(message) && x->gathered)
        stream_await(&x->collectives, x->gathered);
    gradients_convert_part(&x->gradients, m, &x->collectives);
    check_call(x, ncclAllGather(part, run, count, type, comm, x->collectives.cuda), "ncclAllGather");
}

static void sum_encoded(struct exchange *x, uint32_t m) {
    const struct message *message = &x->plan->messages[m];
    float *run = gradients_run(&x->gradients, m);
    if (message->encoder == ENCODING_powersgd)
        power_sum(&x->power, x->network, m, run, x->kept[m], x->slices, &x->collectives);
    else
        encoded_sum(x->network, message, run, x->kept[m], x->slices, &x->collectives);
}

static void queue_push(struct exchange *x, uint32_t m) {
    x->backlog.messages[(x->backlog.first + x->backlog.n++) % x->plan->n_messages] = m;
}

static void start(void *context, uint32_t m) {
    struct exchange *x = context;
    const struct message *message = &x->plan->messages[m];
    struct transfer *transfer = &x->transfers[m];
    transfer->iteration = transfer->started++;
    transfer->ready_us = transfer->next_ready_us;
    if (message->kind == SYNC_PARAMETER_SERVER && !world_sums_in_nodes(x->world, message)) {
        queue_push(x, m);
        return;
    }
    device_check(cudaEventRecord(transfer->start, x->collectives.cuda), "recording an event");
    if (message->half != HALF_gather)
        gradients_gather(&x->gradients, m, &x->collectives);
    if (message->kind == SYNC_ALL_REDUCE) {
        if (message->half)
            move_half(x, m);
        else if (message->encoder)
            sum_encoded(x, m);
        else if (is_gathered(message))
            all_gather(x, m);
        else
            all_reduce(x, m);
        enqueue_end(x, m, &x->collectives);
        if (message->replicas > 0)
            follow_with_replicas(x, m);
    } else {
        reduce_in_node(x, m);
        stream_mark(&x->collectives, transfer->summed, MARK_SUMMED, m);
    }
}

static bool is_in_group(const struct exchange *x, uint32_t server) {
    for (uint32_t i = 0; i < x->n_pushing; i++)
        if (x->plan->messages[x->pushing[i]].server == server)
            return true;
    return false;
}

static void send_group(struct exchange *x) {
    check_call(x, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t i = 0; i < x->n_pushing; i++) {
        const struct message *message = &x->plan->messages[x->pushing[i]];
        const int server = x->world->server_rank[message->server];
        note_send(&x->requests, x->world, NOTE_PUSH, server, x->pushing[i]);
        check_call(x,
                   ncclSend(gradients_run(&x->gradients, x->pushing[i]), count_of(message),
                            network_type(message->dtype), server,
                            network_comm(x->network, NETWORK_PUSH, ALGORITHM_auto), x->push.cuda),
                   "ncclSend");
    }
    check_call(x, ncclGroupEnd(), "ncclGroupEnd");
    stream_mark(&x->push, x->pushed, MARK_PUSHED, 0);
}

/* The next group: in order, as many as go to different servers. */
static bool push_next(struct exchange *x) {
    if (x->n_pushing > 0 || x->backlog.n == 0)
        return false;
    while (x->n_pushing < NETWORK_GROUP && x->backlog.n > 0) {
        const uint32_t m = x->backlog.messages[x->backlog.first];
        const struct message *message = &x->plan->messages[m];
        if (is_in_group(x, message->server))
            break;
        if (!world_sums_in_nodes(x->world, message)) {
            device_check(cudaEventRecord(x->transfers[m].start, x->push.cuda), "recording an event");
            gradients_gather(&x->gradients, m, &x->push);
        }
        x->pushing[x->n_pushing++] = m;
        x->backlog.first = (x->backlog.first + 1) % x->plan->n_messages;
        x->backlog.n--;
    }
    send_group(x);
    return true;
}

static void group_pushed(struct exchange *x) {
    for (uint32_t i = 0; i < x->n_pushing; i++)
        schedule_return(&x->schedule, x->pushing[i]);
    x->n_pushing = 0;
}

static void enqueue_return(struct exchange *x, uint32_t m) {
    broadcast(x, m, network_comm(x->network, NETWORK_RETURN, ALGORITHM_auto), &x->back);
    enqueue_end(x, m, &x->back);
}

/* A server is sending the message's sum here. */
static void pull(struct exchange *x, const struct note *note) {
    const uint32_t m = note->message;
    const struct message *message = &x->plan->messages[m];
    const struct node *node = world_node(x->world);
    check_call(x,
               ncclRecv(gradients_run(&x->gradients, m), count_of(message), network_type(message->dtype), note->rank,
                        network_comm(x->network, NETWORK_PULL, ALGORITHM_auto), x->pull.cuda),
               "ncclRecv");
    if (!world_sums_in_nodes(x->world, message)) {
        enqueue_end(x, m, &x->pull);
        return;
    }
    device_check(cudaEventRecord(x->transfers[m].summed, x->pull.cuda), "recording an event");
    stream_await(&x->back, x->transfers[m].summed);
    for (uint32_t k = 1; k < node->devices; k++)
        note_send(&x->requests, x->world, NOTE_RETURN, x->world->worker_rank[node->first_device + k], m);
    enqueue_return(x, m);
}

static bool take_notes(struct exchange *x) {
    struct note note;
    bool any = false;
    while (x->plan->any_server && note_take(x->world, &note)) {
        any = true;
        if (note.kind == NOTE_SUM)
            pull(x, &note);
        else
            enqueue_return(x, note.message);
    }
    return any;
}

static void checked(struct exchange *x, uint32_t m) {
    struct error err;
    if (gradients_verdict(&x->gradients, m, x->transfers[m].iteration, &err))
        report_abort(err.status, "%s, device %u", ERROR_TEXT(&err), x->world->device);
    complete(x, m);
}

/* Where device 0 orders it, the others wait for its word. */
static void make_second_half_ready(struct exchange *x, uint32_t m) {
    if (!coordinator_orders(&x->coordinator, m) || x->coordinator.leads)
        schedule_ready(&x->schedule, m);
}

static void handle_mark(struct exchange *x, const struct mark *mark) {
    const uint32_t m = mark->index;
    const struct message *message = &x->plan->messages[m];
    switch (mark->kind) {
    case MARK_SUMMED:
        if (x->world->is_leader)
            queue_push(x, m);
        else
            schedule_return(&x->schedule, m);
        break;
    case MARK_PUSHED:
        group_pushed(x);
        break;
    case MARK_DONE:
        if (message->kind == SYNC_ALL_REDUCE && !message_is_of_replicas(message))
            schedule_return(&x->schedule, m);
        if (message_is_first_half(message))
            make_second_half_ready(x, message->other);
        if (!is_checked(x, m))
            complete(x, m);
        break;
    default:
        checked(x, m);
    }
}

static bool take_marks(struct exchange *x) {
    struct stream *streams[] = {&x->collectives, &x->push, &x->pull, &x->back, &x->checks};
    struct mark mark;
    bool any = false;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        for (; stream_reached(streams[i], &mark); any = true)
            handle_mark(x, &mark);
    return any;
}

static void handle_request(struct exchange *x, struct completion done) {
    switch (done.kind) {
    case DONE_REPORT:
        coordinator_hear(&x->coordinator, (uint32_t)done.peer, &x->schedule);
        break;
    case DONE_GO:
        coordinator_obey(&x->coordinator, &x->schedule, start, x);
        break;
    default: /* DONE_CONTROL_SEND */
        free(done.buffer);
    }
}

static bool take_requests(struct exchange *x) {
    int n = requests_poll(&x->requests);
    for (int i = 0; i < n; i++)
        handle_request(x, x->requests.done[i]);
    return n > 0;
}

void exchange_step_done(struct exchange *x, uint32_t iteration, uint32_t step, double now_us) {
    for (uint32_t i = x->plan->first_ready[step]; i < x->plan->first_ready[step + 1]; i++) {
        const uint32_t m = x->plan->by_ready[i];
        x->transfers[m].next_ready_us = now_us;
        x->n_live += x->plan->messages[m].replicas > 0 ? 2 : 1;
        if (coordinator_orders(&x->coordinator, m))
            x->to_report = (uint64_t)iteration * x->plan->n_steps + step + 1;
        else
            schedule_ready(&x->schedule, m);
    }
}

/* How often a message must have gone before the step of the iteration that it gates: it is ready before that step in
 * the same iteration, or was by the update of the one before; else it goes after that step. */
static uint32_t times_before(const struct plan *plan, const struct message *message, uint32_t iteration) {
    return iteration + (message->ready < message->gate || plan_is_update(plan, message->ready));
}

bool exchange_is_enqueued(const struct exchange *x, uint32_t iteration, uint32_t step) {
    for (uint32_t i = x->plan->first_gate[step]; i < x->plan->first_gate[step + 1]; i++) {
        const uint32_t m = x->plan->by_gate[i];
        if (x->transfers[m].enqueued < times_before(x->plan, &x->plan->messages[m], iteration))
            return false;
    }
    return true;
}

void exchange_gate(const struct exchange *x, uint32_t iteration, uint32_t step, const struct stream *stream) {
    for (uint32_t i = x->plan->first_gate[step]; i < x->plan->first_gate[step + 1]; i++) {
        const uint32_t m = x->plan->by_gate[i];
        if (times_before(x->plan, &x->plan->messages[m], iteration) > 0)
            stream_await(stream, x->transfers[m].done);
    }
}

/* What is written for message m has been read by its last check, and by that of the message which moved the same
 * gradients before it. Replicas have added what the last reduce-scatter left. */
static void await_last(const struct exchange *x, uint32_t m, uint32_t iteration, const struct stream *stream) {
    const struct message *message = &x->plan->messages[m];
    const uint32_t before = x->gradients.before[m];
    if (iteration > 0)
        stream_await(stream, last_event(x, m));
    if (before != m && (iteration > 0 || x->plan->messages[before].ready < message->ready))
        stream_await(stream, last_event(x, before));
    for (uint32_t i = m;; i = before) {
        const uint32_t replicas = x->plan->messages[i].replicas;
        if (iteration > 0 && replicas > 0)
            stream_await(stream, last_event(x, replicas));
        if (i == before)
            return;
    }
}

/* Write what messages of step `step` bring in a micro-batch. */
static void produce(const struct exchange *x, uint32_t iteration, uint32_t step, uint32_t micro_batch, bool spoilt,
                    const struct stream *stream) {
    for (uint32_t i = x->plan->first_ready[step]; i < x->plan->first_ready[step + 1]; i++)
        await_last(x, x->plan->by_ready[i], iteration, stream);
    gradients_produce(&x->gradients, step, iteration, micro_batch, spoilt, stream);
}

void exchange_produce(const struct exchange *x, uint32_t iteration, uint32_t step, bool spoilt,
                      const struct stream *stream) {
    const struct plan *plan = x->plan;
    const uint32_t pass = plan_pass_steps(plan), travels = plan->n_steps - pass + plan_step_in_pass(plan, step);
    if (!x->verify)
        return;
    produce(x, iteration, step, plan->micro_batches - 1, spoilt, stream);
    if (step != travels && !plan->sums_each)
        produce(x, iteration, travels, step / pass, false, stream);
}

/* Marks first: a message that starts anew records its events again, and before that its last iteration is taken in. */
bool exchange_progress(struct exchange *x) {
    const bool reached = take_marks(x);
    if (x->to_report > 0)
        coordinator_report(&x->coordinator, x->to_report, &x->schedule);
    x->to_report = 0;
    const bool started = coordinator_dispatch(&x->coordinator, &x->schedule, start, x);
    const bool asked = take_requests(x), noted = take_notes(x);
    return push_next(x) || started || asked || noted || reached;
}

static void release_events(struct exchange *x) {
    for (uint32_t m = 0; m < x->plan->n_messages; m++) {
        const cudaEvent_t events[] = {x->transfers[m].start, x->transfers[m].summed, x->transfers[m].done,
                                      x->transfers[m].checked};
        for (int i = 0; i < 4; i++)
            device_check(cudaEventDestroy(events[i]), "ending an event");
    }
    device_check(cudaEventDestroy(x->pushed), "ending an event");
}

void exchange_release(struct exchange *x) {
    struct stream *streams[] = {&x->collectives, &x->push, &x->pull, &x->back, &x->checks};
    requests_end(&x->requests);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        stream_release(streams[i]);
    device_free(x->slices);
    for (uint32_t m = 0; m < x->plan->n_messages; m++)
        device_free(x->kept[m]);
    free(x->kept);
    power_release(&x->power);
    release_events(x);
    coordinator_release(&x->coordinator);
    schedule_release(&x->schedule);
    gradients_release(&x->gradients);
    free(x->backlog.messages);
    free(x->transfers);
    *x = (struct exchange){0};
}
