/* Arrivals, turns and models that go out; update_apply.c applies what came. */
#include "trial-runner/worker/mpi/update_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/worker/mpi/update_replica.h"
#include "trial-runner/worker/mpi/update_server_internal.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"

static void copy_end(struct update_server *s, struct copy *copy) {
    if (copy->newest || copy->sending > 0)
        return;
    pool_give(&s->pool, copy->buffer);
    free(copy);
}

/* What is kept for its step may become a sum, with members behind it. */
static uint64_t arrival_bytes(const struct update_server *s, const struct update_form *form) {
    const int members = s->sequence ? update_member_units(s->run->world->cluster->n_devices) : 0;
    return (uint64_t)(form->units + members) * UPDATE_UNIT;
}

/* In the beginning all workers push at once, and each is answered with a version of its own. Without this the first
 * updates would wait for memory. */
static void touch_buffers(struct update_server *s, const struct update_form *form) {
    const uint32_t n = 2 * s->run->world->cluster->n_devices;
    void **buffers = report_alloc(n, sizeof *buffers);
    for (uint32_t i = 0; i < n; i++)
        buffers[i] = pool_take(&s->pool, arrival_bytes(s, form));
    for (uint32_t i = 0; i < n; i++)
        pool_give(&s->pool, buffers[i]);
    free(buffers);
}

static bool is_replica(const struct update_run *run) {
    return run->world->rank == run->replica;
}

/* The scheduler is at the first server. */
static void begin_order(struct update_server *s) {
    const struct update_run *run = s->run;
    if (run->plan->consistency.scheduled && run->world->rank == run->server)
        s->schedule = update_schedule_new(run);
    if (run->replica < 0)
        return;
    s->sequence = report_alloc(1, sizeof *s->sequence);
    if (!is_replica(run))
        s->copies = update_copies_new(run, s->sequence, update_schedule_rates(s->schedule));
}

void update_server_init(struct update_server *s, const struct update_run *run, struct learned *learned) {
    const struct plan *plan = run->plan;
    *s = (struct update_server){.run = run, .learned = learned};
    s->parts = report_alloc(plan->n_messages, sizeof *s->parts);
    s->missing = report_alloc(run->world->cluster->n_devices, sizeof *s->missing);
    s->asks = report_alloc(run->world->cluster->n_devices, sizeof *s->asks);
    s->nodes = report_alloc(run->world->cluster->n_nodes, sizeof *s->nodes);
    s->heads = report_alloc(run->world->cluster->n_nodes, sizeof *s->heads);
    s->heard_us = report_alloc((size_t)run->world->size, sizeof *s->heard_us);
    begin_order(s);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        struct part *part = &s->parts[m];
        part->form = &run->forms[m];
        if (plan->messages[m].server != run->world->node && !is_replica(run))
            continue;
        part->model = update_server_copy(s, part->form);
        memset(part->model->buffer, 0, update_bytes(part->form));
        update_head_of(part->model->buffer)->kind = UPDATE_MODEL;
        part->clients = report_alloc(run->world->cluster->n_devices, sizeof *part->clients);
        touch_buffers(s, part->form);
        s->n_open++;
        s->n_parts++;
        s->number = is_replica(run) ? 0 : update_server_of(run, m);
        if (part->form->weights_bytes > 0)
            learned_init(learned, update_subject(run), update_weights(part->model->buffer));
    }
    for (uint32_t w = 0; w < run->world->cluster->n_devices; w++)
        s->missing[w] = s->n_parts;
}

void update_server_release(struct update_server *s) {
    for (uint32_t m = 0; m < s->run->plan->n_messages; m++) {
        free(s->parts[m].clients);
        if (!s->parts[m].model)
            continue;
        s->parts[m].model->newest = false;
        copy_end(s, s->parts[m].model);
    }
    free(s->parts);
    free(s->missing);
    free(s->asks);
    free(s->nodes);
    free(s->heads);
    free(s->heard_us);
    update_copies_free(s->copies);
    update_schedule_free(s->schedule);
    if (s->sequence)
        update_sequence_release(s->sequence, &s->pool);
    free(s->sequence);
    requests_release(&s->requests);
    pool_release(&s->pool);
}

/* ---- sending ---- */

static bool is_over(const struct update_server *s) {
    const struct part *largest = &s->parts[s->run->largest];
    return largest->model && head_of(largest)->updates >= update_target(s->run);
}

static void send_model(struct update_server *s, struct part *part, uint32_t worker) {
    const struct world *world = s->run->world;
    part->clients[worker].waits = false;
    part->clients[worker].version = head_of(part)->version;
    part->model->sending++;
    MPI_Isend(part->model->buffer, part->form->units, s->run->unit, world->worker_rank[worker], (int)part->form->number,
              world->pushes,
              requests_add(&s->requests, (struct completion){.kind = DONE_ANSWER, .buffer = part->model}));
}

/* Iterations that every worker has ended; those that left the run do not count. */
static uint32_t ended_by_all(const struct update_server *s, const struct part *part) {
    uint32_t least = UINT32_MAX;
    for (uint32_t w = 0; w < workers(s); w++)
        if (!part->clients[w].gone && part->clients[w].ended < least)
            least = part->clients[w].ended;
    return least;
}

static bool may_have_model(const struct update_server *s, const struct part *part, uint32_t worker) {
    const struct consistency *c = &s->run->plan->consistency;
    const struct client *client = &part->clients[worker];
    if (!client->waits || head_of(part)->updates % updates_in_version(s->run) != 0)
        return false;
    return c->kind != CONSISTENCY_stale_synchronous || is_over(s) ||
           client->ended <= (uint64_t)ended_by_all(s, part) + c->staleness;
}

/* Where there are distributors, the scheduler sends models. */
static void answer(struct update_server *s, struct part *part) {
    for (uint32_t w = 0; w < workers(s) && s->run->plan->consistency.distributors == 0; w++)
        if (may_have_model(s, part, w))
            send_model(s, part, w);
}

/* ---- arrivals ---- */

/* The worker asks for the model by being dropped. */
static void drop_here(struct update_server *s, uint32_t worker) {
    for (uint32_t m = 0; m < s->run->plan->n_messages; m++) {
        struct part *part = &s->parts[m];
        if (!part->model)
            continue;
        s->counts.dropped += update_is_measured(s->run, head_of(part)->updates);
        part->clients[worker].ended++;
        part->clients[worker].waits = true;
        answer(s, part);
    }
}

static void take_control(struct update_server *s, MPI_Message *handle, const MPI_Status *status) {
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    struct update_head *head = report_alloc((size_t)bytes, 1);
    MPI_Mrecv(head, bytes, MPI_BYTE, handle, MPI_STATUS_IGNORE);
    switch (head->kind) {
    case UPDATE_COLLECTED:
        update_schedule_collected(s->schedule, head->worker);
        break;
    case UPDATE_CAME:
        update_schedule_arrived(s->schedule, head->server, head->worker, head->version);
        break;
    case UPDATE_DROP:
        drop_here(s, head->worker);
        break;
    case UPDATE_READY:
        update_schedule_ready(s->schedule, head->worker, (const uint64_t *)(const void *)(head + 1));
        if (s->copies)
            update_copies_ready(s->copies, head->worker, head->norm);
        break;
    case UPDATE_HAS:
        update_copies_has(s->copies, head->worker, head->updates);
        update_server_go_on(s);
        break;
    case UPDATE_TAKEOVER:
        s->fenced = true;
        break;
    case UPDATE_BEAT:
        if (s->replica)
            update_replica_take(s, head);
        break;
    default:
        update_replica_take(s, head);
    }
    free(head);
}

static void receive(struct update_server *s, MPI_Message *handle, const MPI_Status *status) {
    const uint32_t m = (uint32_t)status->MPI_TAG;
    int units;
    MPI_Get_count(status, s->run->unit, &units);
    const uint64_t least = arrival_bytes(s, &s->run->forms[m]), bytes = (uint64_t)units * UPDATE_UNIT;
    char *buffer = pool_take(&s->pool, bytes > least ? bytes : least);
    MPI_Imrecv(buffer, units, s->run->unit, handle,
               requests_add(&s->requests, (struct completion){DONE_ARRIVAL, m, status->MPI_SOURCE, buffer}));
}

static bool take_arrivals(struct update_server *s) {
    const struct world *world = s->run->world;
    for (bool any = false;; any = true) {
        int found;
        MPI_Message handle;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, world->pushes, &found, &handle, &status);
        if (!found)
            return any;
        s->heard_us[status.MPI_SOURCE] = clock_now_us();
        if (status.MPI_TAG == s->run->control)
            take_control(s, &handle, &status);
        else
            receive(s, &handle, &status);
    }
}

/* The scheduler knows when all that the worker sends to this server has come. */
static void tell_scheduler(struct update_server *s, uint32_t worker) {
    if (--s->missing[worker] > 0)
        return;
    s->missing[worker] = s->n_parts;
    const uint64_t version = head_of(&s->parts[s->run->first_of[s->number]])->version;
    const struct update_head came = {.kind = UPDATE_CAME, .worker = worker, .version = version, .server = s->number};
    if (s->schedule)
        update_schedule_arrived(s->schedule, 0, worker, version);
    else
        update_server_tell(s, s->run->server, &came);
}

static void end_update(struct update_server *s, struct part *part, uint32_t worker) {
    part->clients[worker].ended++;
    part->clients[worker].waits = true;
    if (s->run->plan->consistency.scheduled && !s->sequence)
        tell_scheduler(s, worker);
}

/* ---- in sequence, where there is a replica ---- */

/* Server and replica, each to the other. */
static void beat(struct update_server *s) {
    const struct update_run *run = s->run;
    if (s->copies)
        update_beat(run, &s->requests, run->replica, update_copies_bound(s->copies), s->counts.dropped, &s->beat_us);
    else if (s->replica && s->epoch == 0)
        update_beat(run, &s->requests, run->server, 0, 0, &s->beat_us);
}

void update_server_go_on(struct update_server *s) {
    struct part *part = &s->parts[0];
    while (!s->halts && update_sequence_is_whole(s->sequence) && (!s->copies || update_copies_may_apply(s->copies))) {
        char *buffer = update_sequence_take(s->sequence, part->form, &s->pool);
        struct arrival a;
        update_server_open(part, buffer, &a);
        if (s->replica)
            update_replica_follows(s, a.n, a.members);
        update_server_apply(s, part, &a);
        for (uint32_t i = 0; i < a.n; i++)
            end_update(s, part, a.members[i].worker);
        pool_give(&s->pool, buffer);
        if (s->replica)
            update_replica_applied(s);
        beat(s);
    }
    if (!s->replica)
        answer(s, part);
}

static void keep(struct update_server *s, struct part *part, char *buffer) {
    struct arrival a;
    update_server_open(part, buffer, &a);
    for (uint32_t i = 0; i < a.n && s->schedule && !s->replica; i++)
        update_schedule_arrived(s->schedule, 0, a.members[i].worker, head_of(part)->version);
    const uint32_t worker = a.members[0].worker;
    update_sequence_keep(s->sequence, part->form, buffer);
    update_server_go_on(s);
    if (s->replica)
        update_replica_has(s, worker);
}

static void take_update(struct update_server *s, struct part *part, char *buffer) {
    const struct update_head *head = update_head_of(buffer);
    struct arrival a;
    if (s->sequence && head->kind != UPDATE_BYE) {
        keep(s, part, buffer);
        return;
    }
    update_server_open(part, buffer, &a);
    if (head->kind == UPDATE_BYE) {
        part->clients[head->worker].gone = true;
        s->n_open -= ++part->n_gone == workers(s);
    } else {
        update_server_apply(s, part, &a);
        for (uint32_t i = 0; i < a.n; i++)
            end_update(s, part, a.members[i].worker);
    }
    pool_give(&s->pool, buffer);
    answer(s, part);
}

static void end_delivery(struct update_server *s, struct delivery *d, uint32_t m) {
    d->copies[m]->sending--;
    copy_end(s, d->copies[m]);
    if (--d->sending > 0)
        return;
    if (d->node != s->run->world->node)
        update_schedule_model_left(s->schedule, d->node);
    free(d->workers);
    free(d->copies);
    free(d);
}

static bool take_completions(struct update_server *s) {
    const int n = requests_poll(&s->requests);
    for (int i = 0; i < n; i++) {
        const struct completion done = s->requests.done[i];
        if (done.kind == DONE_ARRIVAL) {
            take_update(s, &s->parts[done.message], done.buffer);
            continue;
        }
        if (done.kind == DONE_DELIVERY) {
            end_delivery(s, done.buffer, done.message);
            continue;
        }
        if (done.kind == DONE_CONTROL_SEND) {
            free(done.buffer);
            continue;
        }
        struct copy *copy = done.buffer;
        copy->sending--;
        copy_end(s, copy);
    }
    return n > 0;
}

/* ---- scheduling ---- */

void update_server_tell(struct update_server *s, int rank, const struct update_head *head) {
    requests_send_copy(&s->requests, head, sizeof *head, rank, s->run->control, s->run->world->pushes);
}

/* `to` is the rank that gets the update. */
static void tell_worker(struct update_server *s, uint32_t worker, enum update_kind kind, int to) {
    const struct update_head head = {.kind = kind, .to = to, .epoch = s->epoch};
    update_server_tell(s, s->run->world->worker_rank[worker], &head);
}

static void tell_relay(struct update_server *s, uint32_t node, enum update_kind kind, uint32_t worker) {
    update_server_tell(s, s->run->world->server_rank[node], &(struct update_head){.kind = kind, .worker = worker});
}

/* The head with the turn's members behind it. */
static void tell_members(struct update_server *s, int rank, struct update_head head, const struct update_turn *turn,
                         struct update_member *members) {
    const size_t bytes = sizeof head + turn->n * sizeof *members;
    struct update_head *message = report_alloc(bytes, 1);
    head.worker = turn->workers[0];
    head.members = turn->n;
    *message = head;
    memcpy(message + 1, members, turn->n * sizeof *members);
    requests_send_copy(&s->requests, message, bytes, rank, s->run->control, s->run->world->pushes);
    free(message);
}

/* The turn's updates, for the caller to free. */
static struct update_member *list_members(const struct update_server *s, const struct update_turn *turn) {
    struct update_member *members = report_alloc(turn->n, sizeof *members);
    for (uint32_t i = 0; i < turn->n; i++) {
        const struct client *client = &s->parts[s->run->largest].clients[turn->workers[i]];
        members[i] = (struct update_member){turn->workers[i], client->ended, client->version};
    }
    return members;
}

static void tell_group(struct update_server *s, const struct update_turn *turn) {
    struct update_member *members = list_members(s, turn);
    tell_members(s, s->run->world->server_rank[turn->via], (struct update_head){.kind = UPDATE_GROUP}, turn, members);
    free(members);
}

/* The replica is told of a step before anybody can have a model with it. */
static void add_step(struct update_server *s, const struct update_turn *turn) {
    struct update_member *members = list_members(s, turn);
    const double norm = update_copies_norm(s->copies, turn->n, members);
    update_sequence_add(s->sequence, turn->n, members, norm);
    update_copies_add(s->copies);
    tell_members(s, s->run->replica, (struct update_head){.kind = UPDATE_SEQUEL, .norm = norm}, turn, members);
    free(members);
}

static void ask_for_copies(struct update_server *s) {
    uint32_t worker, iteration;
    while (update_copies_take(s->copies, &worker, &iteration))
        update_server_tell(s, s->run->world->worker_rank[worker],
                           &(struct update_head){.kind = UPDATE_COPY, .iteration = iteration, .epoch = s->epoch});
}

static void drop(struct update_server *s, uint32_t worker) {
    const struct update_run *run = s->run;
    const struct update_head head = {.kind = UPDATE_DROP, .worker = worker};
    tell_worker(s, worker, UPDATE_DROP, run->world->rank);
    for (uint32_t i = 1; i < run->n_servers; i++)
        update_server_tell(s, run->world->server_rank[run->servers[i]], &head);
    drop_here(s, worker);
}

/* Workers that send nothing before they get a model, or any more. */
static uint32_t idle(const struct update_server *s) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < workers(s); w++)
        n += s->parts[s->run->largest].clients[w].waits || s->parts[s->run->largest].clients[w].gone;
    return n;
}

/* Workers that wait for the scheduler to send them the model, into s->asks, and their nodes but this one into s->nodes.
 */
static uint32_t find_asking(struct update_server *s, uint32_t *n_nodes) {
    const struct world *world = s->run->world;
    uint32_t asking = 0;
    *n_nodes = 0;
    for (uint32_t w = 0; w < workers(s); w++) {
        const uint32_t node = cluster_node_of_device(world->cluster, w);
        s->asks[w] = s->run->plan->consistency.distributors > 0;
        for (uint32_t m = 0; m < s->run->plan->n_messages && s->asks[w]; m++)
            s->asks[w] = may_have_model(s, &s->parts[m], w);
        asking += s->asks[w];
        if (s->asks[w] && node != world->node && (*n_nodes == 0 || s->nodes[*n_nodes - 1] != node))
            s->nodes[(*n_nodes)++] = node;
    }
    return asking;
}

static struct delivery *add_delivery(struct update_server *s, uint32_t node) {
    struct delivery *d = report_alloc(1, sizeof *d);
    *d = (struct delivery){.node = node,
                           .workers = report_alloc((size_t)update_member_units(workers(s)), UPDATE_UNIT),
                           .copies = report_alloc(s->run->plan->n_messages, sizeof(struct copy *))};
    for (uint32_t m = 0; m < s->run->plan->n_messages; m++) {
        d->copies[m] = s->parts[m].model;
        d->copies[m]->sending++;
    }
    if (s->first)
        s->last->next = d;
    else
        s->first = d;
    s->last = d;
    return d;
}

/* The worker has the versions of now, whenever they come. */
static void add_receiver(struct update_server *s, struct delivery *d, uint32_t worker) {
    d->workers[d->n++].worker = worker;
    for (uint32_t m = 0; m < s->run->plan->n_messages; m++) {
        s->parts[m].clients[worker].waits = false;
        s->parts[m].clients[worker].version = head_of(&s->parts[m])->version;
    }
}

/* Workers on this node get the model from here, and each of the others once. */
static void schedule_models(struct update_server *s, uint32_t n_nodes) {
    const struct world *world = s->run->world;
    struct delivery *d = NULL;
    for (uint32_t w = 0; w < workers(s); w++)
        if (s->asks[w] && cluster_node_of_device(world->cluster, w) == world->node)
            add_receiver(s, add_delivery(s, world->node), w);
    if (n_nodes > 0)
        update_schedule_models(s->schedule, n_nodes, s->nodes, s->heads);
    for (uint32_t i = 0; i < n_nodes; i++) {
        const struct node *node = &world->cluster->nodes[s->nodes[i]];
        if (s->heads[i])
            d = add_delivery(s, s->nodes[i]);
        for (uint32_t w = node->first_device; w < node->first_device + node->devices && d; w++)
            if (s->asks[w])
                add_receiver(s, d, w);
    }
}

static void deliver(struct update_server *s, struct delivery *d) {
    const struct world *world = s->run->world;
    d->sending = s->run->plan->n_messages;
    for (uint32_t m = 0; m < s->run->plan->n_messages; m++) {
        const struct update_form *form = &s->run->forms[m];
        MPI_Request *request =
            requests_add(&s->requests, (struct completion){.kind = DONE_DELIVERY, .message = m, .buffer = d});
        if (d->n == 1)
            MPI_Isend(d->copies[m]->buffer, form->units, s->run->unit, world->worker_rank[d->workers[0].worker], (int)m,
                      world->pushes, request);
        else
            update_send_with_members(s->run, form, d->copies[m]->buffer, d->n, d->workers, world->server_rank[d->node],
                                     request);
    }
}

/* In their order, one after another. */
static void send_models(struct update_server *s) {
    while (s->first &&
           (s->first->node == s->run->world->node || update_schedule_model_goes(s->schedule, s->first->node))) {
        struct delivery *d = s->first;
        s->first = d->next;
        deliver(s, d);
    }
}

/* Of the model, when what has come and waits for its step is in it. */
static uint64_t next_version(const struct update_server *s) {
    const uint32_t waiting = s->sequence ? s->sequence->n_waiting : 0;
    return head_of(&s->parts[s->run->largest])->version + waiting / updates_in_version(s->run);
}

/* Order what is ready, and send the model to who asks, when their time has come. */
static void order_batch(struct update_server *s) {
    uint32_t n_nodes, worker;
    const uint32_t asking = find_asking(s, &n_nodes);
    if (!update_schedule_is_due(s->schedule, idle(s), asking))
        return;
    update_schedule_order(s->schedule, next_version(s), s->copies);
    while (update_schedule_take_dropped(s->schedule, &worker))
        drop(s, worker);
    find_asking(s, &n_nodes); /* also who has just been dropped */
    schedule_models(s, n_nodes);
}

/* Of a server; after a takeover there is one, this. */
static int rank_of(const struct update_server *s, uint32_t server) {
    return server == 0 ? s->run->world->rank : s->run->world->server_rank[s->run->servers[server]];
}

/* Order what is ready, when its time has come, and tell everybody what to do. */
static void schedule(struct update_server *s) {
    const struct update_turn *turn;
    order_batch(s);
    while ((turn = update_schedule_take_group(s->schedule)))
        tell_group(s, turn);
    while ((turn = update_schedule_take_next(s->schedule, next_version(s)))) {
        if (s->copies)
            add_step(s, turn);
        if (turn->via == UPDATE_DIRECT)
            tell_worker(s, turn->workers[0], UPDATE_GO, rank_of(s, turn->server));
        else
            tell_relay(s, turn->via, UPDATE_SEND, turn->workers[0]);
    }
    if (s->copies)
        ask_for_copies(s);
    send_models(s);
}

bool update_server_misses(const struct update_server *s, int rank, double limit_us) {
    const double now_us = clock_now_us();
    return now_us > s->heard_us[rank] + limit_us && now_us < s->polled_us + UPDATE_GAP_US;
}

void update_server_watch(const struct update_server *s) {
    const struct world *world = s->run->world;
    for (int rank = 0; rank < world->size; rank++)
        if (rank != world->rank && rank != s->run->server && update_server_misses(s, rank, UPDATE_LOST_US))
            report_abort(ST_TRIAL, "rank %d has died: it was silent for %d s", rank, UPDATE_LOST_US / 1000000);
}

void update_server_begin_watch(struct update_server *s) {
    s->polled_us = clock_now_us();
    for (int rank = 0; rank < s->run->world->size; rank++)
        s->heard_us[rank] = s->polled_us;
}

/* The server's counts, since it may die before they are gathered. */
static void tell_end(struct update_server *s) {
    s->counts.copies = update_copies_taken(s->copies);
    s->counts.divergence_most = update_copies_divergence_most(s->copies);
    struct {
        struct update_head head;
        struct update_counts counts;
    } message = {{.kind = UPDATE_END, .updates = s->counts.copies}, s->counts};
    requests_send_copy(&s->requests, &message, sizeof message, s->run->replica, s->run->control, s->run->world->pushes);
}

static void end_others(struct update_server *s) {
    const struct world *world = s->run->world;
    for (uint32_t i = 0; i < world->cluster->n_nodes && s->schedule; i++)
        if (world->server_rank[i] >= 0 && world->server_rank[i] != s->run->replica && !plan_serves(s->run->plan, i))
            tell_relay(s, i, UPDATE_BYE, 0);
    if (s->copies)
        tell_end(s);
    if (s->replica)
        update_replica_releases(s);
    while (s->requests.n > 0)
        if (!take_completions(s))
            pause_once();
}

/* What others say meanwhile comes late. */
static void forgive_gap(struct update_server *s) {
    const double now_us = clock_now_us(), gap_us = now_us - s->polled_us;
    for (int rank = 0; rank < s->run->world->size && gap_us > UPDATE_GAP_US; rank++)
        s->heard_us[rank] += gap_us;
    s->polled_us = now_us;
}

bool update_server_poll(struct update_server *s) {
    forgive_gap(s);
    const bool any = take_arrivals(s), more = take_completions(s);
    return any || more;
}

void update_server_serve(struct update_server *s) {
    update_server_begin_watch(s);
    while (!s->fenced && (s->n_open > 0 || s->requests.n > 0)) {
        const bool any = update_server_poll(s);
        if (s->schedule)
            schedule(s);
        beat(s);
        if (s->run->replica >= 0 && !s->fenced)
            update_server_watch(s);
        if (!any)
            pause_once();
    }
    if (!s->fenced)
        end_others(s);
}

void update_server_answer(struct update_server *s) {
    answer(s, &s->parts[0]);
}

void update_server_run(const struct update_run *run, struct update_counts *out, struct learned *learned) {
    struct update_server s;
    update_server_init(&s, run, learned);
    MPI_Barrier(MPI_COMM_WORLD);
    s.parts[run->largest].began_us = learned->began_us = clock_now_us();
    update_server_serve(&s);
    *out = s.counts;
    if (s.fenced) { /* MPI may still have some of it; the replica tells what was learned */
        learned_release(learned);
        return;
    }
    update_server_release(&s);
}
