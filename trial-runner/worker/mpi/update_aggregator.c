/* Groups are collected in the order in which they were given, one update at a time. */
#include "trial-runner/worker/mpi/update_aggregator.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

struct collection {
    struct collection *next;
    uint32_t n;
    struct update_member *members;
    uint32_t came;    /* updates of which all messages are in the sum */
    uint32_t missing; /* messages of the update that was asked for; 0: none was */
    char **sums;      /* [n_messages] from the pool; NULL before the first update */
};

struct aggregator {
    const struct update_run *run;
    int server; /* its rank */
    struct requests requests;
    struct pool pool;
    struct collection *groups; /* the oldest first */
    bool over;
};

static void tell(struct aggregator *a, int rank, const struct update_head *head) {
    requests_send_copy(&a->requests, head, sizeof *head, rank, a->run->control, a->run->world->pushes);
}

/* ---- what the scheduler says ---- */

static void add_group(struct aggregator *a, const struct update_head *head) {
    struct collection *group = report_alloc(1, sizeof *group), **end = &a->groups;
    *group = (struct collection){.n = head->members,
                                 .members = report_alloc(head->members, sizeof *group->members),
                                 .sums = report_alloc(a->run->plan->n_messages, sizeof *group->sums)};
    memcpy(group->members, head + 1, head->members * sizeof *group->members);
    while (*end)
        end = &(*end)->next;
    *end = group;
}

static void send_sum(struct aggregator *a, struct collection *group, uint32_t m) {
    const struct update_form *form = &a->run->forms[m];
    char *sum = group->sums[m];
    *update_head_of(sum) =
        (struct update_head){.kind = UPDATE_SUM, .worker = group->members[0].worker, .members = group->n};
    memcpy(update_members(form, sum), group->members, group->n * sizeof *group->members);
    MPI_Isend(sum, form->units + update_member_units(group->n), a->run->unit, a->server, (int)m, a->run->world->pushes,
              requests_add(&a->requests, (struct completion){.kind = DONE_PUSH, .buffer = sum}));
}

/* Send the sum of the group that the worker names, and forget the group. */
static void send_group(struct aggregator *a, uint32_t worker) {
    struct collection **at = &a->groups;
    while (*at && (*at)->members[0].worker != worker)
        at = &(*at)->next;
    struct collection *group = *at;
    if (!group || group->came < group->n)
        report_abort(ST_TRIAL, "an aggregator was asked for a sum that it does not have");
    *at = group->next;
    for (uint32_t m = 0; m < a->run->plan->n_messages; m++)
        send_sum(a, group, m);
    free(group->members);
    free(group->sums);
    free(group);
}

static void take_control(struct aggregator *a, MPI_Message *handle, const MPI_Status *status) {
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    struct update_head *head = report_alloc((size_t)bytes, 1);
    MPI_Mrecv(head, bytes, MPI_BYTE, handle, MPI_STATUS_IGNORE);
    if (head->kind == UPDATE_GROUP)
        add_group(a, head);
    else if (head->kind == UPDATE_SEND)
        send_group(a, head->worker);
    else
        a->over = true;
    free(head);
}

/* ---- updates ---- */

/* The oldest group that is not whole. */
static struct collection *collecting(const struct aggregator *a) {
    struct collection *group = a->groups;
    while (group && group->came == group->n)
        group = group->next;
    return group;
}

static void ask(struct aggregator *a) {
    struct collection *group = collecting(a);
    if (!group || group->missing > 0)
        return;
    group->missing = a->run->plan->n_messages;
    tell(a, a->run->world->worker_rank[group->members[group->came].worker],
         &(struct update_head){.kind = UPDATE_GO, .to = a->run->world->rank});
}

/* Every buffer has room for the members behind its body. */
static void receive(struct aggregator *a, MPI_Message *handle, const MPI_Status *status) {
    const uint32_t m = (uint32_t)status->MPI_TAG;
    const struct update_form *form = &a->run->forms[m];
    const int most = form->units + update_member_units(a->run->world->cluster->n_devices);
    char *buffer = pool_take(&a->pool, (uint64_t)most * UPDATE_UNIT);
    MPI_Imrecv(buffer, form->units, a->run->unit, handle,
               requests_add(&a->requests, (struct completion){DONE_ARRIVAL, m, status->MPI_SOURCE, buffer}));
}

static void add(struct aggregator *a, struct collection *group, uint32_t m, char *update) {
    const struct update_form *form = &a->run->forms[m];
    if (!group->sums[m]) {
        group->sums[m] = update;
        return;
    }
    double *sum = update_weights(group->sums[m]), *more = update_weights(update);
    for (uint64_t k = 0; k < form->weights_bytes / sizeof(double); k++)
        sum[k] += more[k];
    update_add(form, group->sums[m], update);
    pool_give(&a->pool, update);
}

static void take_update(struct aggregator *a, uint32_t m, char *update) {
    const struct update_head *head = update_head_of(update);
    struct collection *group = collecting(a);
    const struct update_member *due = group ? &group->members[group->came] : NULL;
    if (!due || head->worker != due->worker || head->iteration != due->iteration || head->version != due->version)
        report_abort(ST_TRIAL,
                     "wrong update: message %u, iteration %u of device %u is not what its aggregator asked for", m,
                     head->iteration, head->worker);
    add(a, group, m, update);
    if (--group->missing > 0)
        return;
    if (++group->came == group->n)
        tell(a, a->server, &(struct update_head){.kind = UPDATE_COLLECTED, .worker = group->members[0].worker});
}

/* ---- the loop ---- */

static bool take_arrivals(struct aggregator *a) {
    for (bool any = false;; any = true) {
        int found;
        MPI_Message handle;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, a->run->world->pushes, &found, &handle, &status);
        if (!found)
            return any;
        if (status.MPI_TAG == a->run->control)
            take_control(a, &handle, &status);
        else
            receive(a, &handle, &status);
    }
}

static bool take_completions(struct aggregator *a) {
    const int n = requests_poll(&a->requests);
    for (int i = 0; i < n; i++) {
        const struct completion done = a->requests.done[i];
        if (done.kind == DONE_ARRIVAL)
            take_update(a, done.message, done.buffer);
        else if (done.kind == DONE_CONTROL_SEND)
            free(done.buffer);
        else
            pool_give(&a->pool, done.buffer);
    }
    return n > 0;
}

void update_aggregator_run(const struct update_run *run) {
    struct aggregator a = {.run = run, .server = run->world->server_rank[run->plan->messages[run->largest].server]};
    MPI_Barrier(MPI_COMM_WORLD); /* servers and workers have their memory */
    while (!a.over || a.requests.n > 0) {
        const bool any = take_arrivals(&a), more = take_completions(&a);
        ask(&a);
        if (!any && !more)
            pause_for_us(PAUSE_US);
    }
    requests_release(&a.requests);
    pool_release(&a.pool);
}
