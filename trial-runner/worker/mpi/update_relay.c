/* Groups are collected in the order in which they were given, one update at a time. */
#include "trial-runner/worker/mpi/update_relay.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

struct collection {
    struct collection *next;
    uint32_t n;
    struct update_member
        *members;     /* [n_messages * n] of each message, since its parts of a model have their versions */
    uint32_t came;    /* updates of which all messages are in the sum */
    uint32_t missing; /* messages of the update that was asked for; 0: none was */
    char **sums;      /* [n_messages] from the pool; NULL before the first update */
};

struct relay {
    const struct update_run *run;
    int server; /* its rank */
    struct requests requests;
    struct pool pool;
    struct collection *groups; /* the oldest first */
    bool over;
    uint32_t epoch; /* 1 after a takeover, else 0 */
    uint64_t passed;
    double beat_us;
};

static void tell(struct relay *r, int rank, const struct update_head *head) {
    requests_send_copy(&r->requests, head, sizeof *head, rank, r->run->control, r->run->world->pushes);
}

/* ---- what the scheduler says ---- */

static void add_group(struct relay *r, const struct update_head *head) {
    struct collection *group = report_alloc(1, sizeof *group), **end = &r->groups;
    const uint32_t n_messages = r->run->plan->n_messages, n = head->members;
    *group = (struct collection){.n = n,
                                 .members = report_alloc((size_t)n_messages * n, sizeof *group->members),
                                 .sums = report_alloc(n_messages, sizeof *group->sums)};
    for (uint32_t m = 0; m < n_messages; m++)
        memcpy(group->members + m * n, head + 1, n * sizeof *group->members);
    while (*end)
        end = &(*end)->next;
    *end = group;
}

static void send_sum(struct relay *r, struct collection *group, uint32_t m) {
    const struct update_form *form = &r->run->forms[m];
    char *sum = group->sums[m];
    *update_head_of(sum) =
        (struct update_head){.kind = UPDATE_SUM, .worker = group->members[0].worker, .members = group->n};
    memcpy(update_members(form, sum), group->members + m * group->n, group->n * sizeof *group->members);
    MPI_Isend(sum, form->units + update_member_units(group->n), r->run->unit, r->server, (int)m, r->run->world->pushes,
              requests_add(&r->requests, (struct completion){.kind = DONE_PUSH, .buffer = sum}));
}

static void free_group(struct collection *group) {
    free(group->members);
    free(group->sums);
    free(group);
}

/* Send the sum of the group that the worker names, and forget the group. */
static void send_group(struct relay *r, uint32_t worker) {
    struct collection **at = &r->groups;
    while (*at && (*at)->members[0].worker != worker)
        at = &(*at)->next;
    struct collection *group = *at;
    if (!group || group->came < group->n)
        report_abort(ST_TRIAL, "an aggregator was asked for a sum that it does not have");
    *at = group->next;
    for (uint32_t m = 0; m < r->run->plan->n_messages; m++)
        send_sum(r, group, m);
    free_group(group);
}

/* The dead server's groups are gone; their workers send their updates to the replica. */
static void follow_replica(struct relay *r) {
    requests_forget(&r->requests, DONE_PUSH);
    requests_forget(&r->requests, DONE_CONTROL_SEND);
    while (r->groups) {
        struct collection *next = r->groups->next;
        for (uint32_t m = 0; m < r->run->plan->n_messages; m++)
            pool_give(&r->pool, r->groups->sums[m]);
        free_group(r->groups);
        r->groups = next;
    }
    r->server = r->run->replica;
    r->epoch = 1;
}

static void take_control(struct relay *r, MPI_Message *handle, const MPI_Status *status) {
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    struct update_head *head = report_alloc((size_t)bytes, 1);
    MPI_Mrecv(head, bytes, MPI_BYTE, handle, MPI_STATUS_IGNORE);
    if (status->MPI_SOURCE != r->server && head->kind != UPDATE_TAKEOVER) /* a server that was taken for dead */
        ;
    else if (head->kind == UPDATE_GROUP)
        add_group(r, head);
    else if (head->kind == UPDATE_SEND)
        send_group(r, head->worker);
    else if (head->kind == UPDATE_TAKEOVER)
        follow_replica(r);
    else
        r->over = true;
    free(head);
}

/* ---- updates ---- */

/* The oldest group that is not whole. */
static struct collection *collecting(const struct relay *r) {
    struct collection *group = r->groups;
    while (group && group->came == group->n)
        group = group->next;
    return group;
}

static void ask(struct relay *r) {
    struct collection *group = collecting(r);
    if (!group || group->missing > 0)
        return;
    group->missing = r->run->plan->n_messages;
    tell(r, r->run->world->worker_rank[group->members[group->came].worker],
         &(struct update_head){.kind = UPDATE_GO, .to = r->run->world->rank, .epoch = r->epoch});
}

/* Every buffer has room for members behind its body; where none came UPDATE_NOBODY stands. */
static void receive(struct relay *r, MPI_Message *handle, const MPI_Status *status) {
    const uint32_t m = (uint32_t)status->MPI_TAG;
    const struct update_form *form = &r->run->forms[m];
    const int most = form->units + update_member_units(r->run->world->cluster->n_devices);
    char *buffer = pool_take(&r->pool, (uint64_t)most * UPDATE_UNIT);
    int units;
    MPI_Get_count(status, r->run->unit, &units);
    for (uint32_t i = 0; i < r->run->world->cluster->n_devices; i++)
        update_members(form, buffer)[i].worker = UPDATE_NOBODY;
    MPI_Imrecv(buffer, units, r->run->unit, handle,
               requests_add(&r->requests, (struct completion){DONE_ARRIVAL, m, status->MPI_SOURCE, buffer}));
}

static void add(struct relay *r, struct collection *group, uint32_t m, char *update) {
    const struct update_form *form = &r->run->forms[m];
    if (!group->sums[m]) {
        group->sums[m] = update;
        return;
    }
    update_sum(form, group->sums[m], update);
    pool_give(&r->pool, update);
}

/* The server checks the versions: it may have sent a worker parts of the model between parts of an update. */
static void take_update(struct relay *r, uint32_t m, char *update) {
    const struct update_head *head = update_head_of(update);
    struct collection *group = collecting(r);
    struct update_member *due = group ? &group->members[m * group->n + group->came] : NULL;
    const bool right = due && head->worker == due->worker && head->iteration == due->iteration;
    if (!right && r->epoch > 0) { /* it was on its way when the replica took over */
        pool_give(&r->pool, update);
        return;
    }
    if (!right)
        report_abort(ST_TRIAL,
                     "wrong update: message %u, iteration %u of device %u is not what its aggregator asked for", m,
                     head->iteration, head->worker);
    due->version = head->version;
    add(r, group, m, update);
    if (--group->missing > 0)
        return;
    if (++group->came == group->n)
        tell(r, r->server, &(struct update_head){.kind = UPDATE_COLLECTED, .worker = group->members[0].worker});
}

/* ---- models ---- */

/* A part of the model that is passed on. */
struct passing {
    char *buffer;
    uint32_t sending;
    struct update_member *lists; /* [n][n] one for each node that gets the model for several workers */
};

static uint32_t node_of(const struct relay *r, uint32_t worker) {
    return cluster_node_of_device(r->run->world->cluster, worker);
}

static MPI_Request *add_send(struct relay *r, struct passing *passing) {
    passing->sending++;
    return requests_add(&r->requests, (struct completion){.kind = DONE_ANSWER, .buffer = passing});
}

/* Members from `first` on that are on its node, into `list`; how many. */
static uint32_t list_node(const struct relay *r, uint32_t n, const struct update_member *members, uint32_t first,
                          struct update_member *list) {
    uint32_t found = 0;
    for (uint32_t i = first; i < n; i++)
        if (node_of(r, members[i].worker) == node_of(r, members[first].worker))
            list[found++] = members[i];
    return found;
}

/* Workers of one node are next to each other in the list. */
static void pass_on(struct relay *r, uint32_t m, char *model) {
    const struct world *world = r->run->world;
    const struct update_form *form = &r->run->forms[m];
    const struct update_member *members = update_members(form, model);
    const uint32_t room = (uint32_t)update_member_units(world->cluster->n_devices) * UPDATE_UNIT / sizeof *members;
    struct passing *passing = report_alloc(1, sizeof *passing);
    uint32_t n = 0;
    while (n < world->cluster->n_devices && members[n].worker != UPDATE_NOBODY)
        n++;
    *passing = (struct passing){.buffer = model, .lists = report_alloc((size_t)n * room, sizeof *members)};
    for (uint32_t i = 0, end; i < n; i = end) {
        struct update_member *list = passing->lists + (size_t)i * room;
        const uint32_t node = node_of(r, members[i].worker), here = list_node(r, n, members, i, list);
        end = node == world->node ? i + 1 : i + here;
        r->passed += node != world->node && update_is_measured(r->run, update_head_of(model)->updates) ? here : 0;
        if (end == i + 1)
            MPI_Isend(model, form->units, r->run->unit, world->worker_rank[members[i].worker], (int)m, world->pushes,
                      add_send(r, passing));
        else
            update_send_with_members(r->run, form, model, here, list, world->server_rank[node], add_send(r, passing));
    }
}

static void end_send(struct relay *r, struct passing *passing) {
    if (--passing->sending > 0)
        return;
    pool_give(&r->pool, passing->buffer);
    free(passing->lists);
    free(passing);
}

/* ---- the loop ---- */

static bool take_arrivals(struct relay *r) {
    for (bool any = false;; any = true) {
        int found;
        MPI_Message handle;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, r->run->world->pushes, &found, &handle, &status);
        if (!found)
            return any;
        if (status.MPI_TAG == r->run->control)
            take_control(r, &handle, &status);
        else
            receive(r, &handle, &status);
    }
}

static bool take_completions(struct relay *r) {
    const int n = requests_poll(&r->requests);
    for (int i = 0; i < n; i++) {
        const struct completion done = r->requests.done[i];
        if (done.kind == DONE_ARRIVAL && update_head_of(done.buffer)->kind == UPDATE_MODEL)
            pass_on(r, done.message, done.buffer);
        else if (done.kind == DONE_ARRIVAL)
            take_update(r, done.message, done.buffer);
        else if (done.kind == DONE_ANSWER)
            end_send(r, done.buffer);
        else if (done.kind == DONE_CONTROL_SEND)
            free(done.buffer);
        else
            pool_give(&r->pool, done.buffer);
    }
    return n > 0;
}

uint64_t update_relay_run(const struct update_run *run) {
    struct relay r = {.run = run, .server = run->server};
    MPI_Barrier(MPI_COMM_WORLD); /* servers and workers have their memory */
    while (!r.over || r.requests.n > 0) {
        const bool any = take_arrivals(&r), more = take_completions(&r);
        ask(&r);
        if (run->replica >= 0)
            update_beat(run, &r.requests, r.server, 0, 0, &r.beat_us);
        if (!any && !more)
            pause_once();
    }
    requests_release(&r.requests);
    pool_release(&r.pool);
    return r.passed;
}
