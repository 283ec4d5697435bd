/* Reports are one number, since every device runs the same steps in the same order. Decisions of one turn of the event
 * loop go out together. O(devices) a report and a decision at device 0. */
#include "trial-runner/worker/coordinator.h"

#include <stdlib.h>

#include "trial-runner/worker/report.h"

bool coordinator_orders(const struct coordinator *c, uint32_t m) {
    const struct message *message = &c->plan->messages[m];
    return c->needed && (message->kind == SYNC_ALL_REDUCE || (c->local_sums && message->local_reduction));
}

/* Receive the leader's next decision into c->go. */
static void listen(struct coordinator *c) {
    MPI_Irecv(c->go, (COORDINATOR_BATCH + 1) * (int)sizeof *c->go, MPI_BYTE, 0, 0, c->world->control,
              requests_add(c->requests, (struct completion){.kind = DONE_GO}));
}

/* Under priority, and when there is anything to order. */
static bool is_needed(const struct plan *plan, bool local_sums) {
    bool any = plan->any_all_reduce;
    for (uint32_t i = 0; local_sums && !any && i < plan->n_messages; i++)
        any = plan->messages[i].local_reduction;
    return any && plan->policy == POLICY_priority && plan->cluster->n_devices > 1;
}

void coordinator_init(struct coordinator *c, const struct plan *plan, const struct world *world,
                      struct requests *requests, bool local_sums, bool encodes) {
    uint32_t n = world->cluster->n_devices;
    *c = (struct coordinator){.plan = plan,
                              .world = world,
                              .requests = requests,
                              .needed = is_needed(plan, local_sums),
                              .local_sums = local_sums,
                              .encodes = encodes,
                              .leads = world->device == 0};
    if (!c->needed)
        return;
    c->go = report_alloc(COORDINATOR_BATCH + 1, sizeof *c->go);
    if (!c->leads) {
        listen(c);
        return;
    }
    c->finished = report_alloc(n, sizeof *c->finished);
    c->incoming = report_alloc(n, sizeof *c->incoming);
    for (uint32_t d = 1; d < n; d++)
        MPI_Irecv(&c->incoming[d], sizeof *c->incoming, MPI_BYTE, (int)d, 0, world->control,
                  requests_add(requests, (struct completion){.kind = DONE_REPORT, .peer = (int)d}));
}

static uint64_t finished_everywhere(const struct coordinator *c) {
    uint64_t least = c->finished[0];
    for (uint32_t d = 1; d < c->world->cluster->n_devices; d++)
        least = c->finished[d] < least ? c->finished[d] : least;
    return least;
}

static void note(struct coordinator *c, uint32_t device, uint64_t steps, struct schedule *schedule) {
    const struct plan *plan = c->plan;
    c->finished[device] = steps;
    for (uint64_t least = finished_everywhere(c); c->everywhere < least; c->everywhere++) {
        uint32_t step = (uint32_t)(c->everywhere % plan->n_steps);
        for (uint32_t i = plan->first_ready[step]; i < plan->first_ready[step + 1]; i++)
            if (coordinator_orders(c, plan->by_ready[i]))
                schedule_ready(schedule, plan->by_ready[i]);
    }
}

void coordinator_report(struct coordinator *c, uint64_t steps, struct schedule *schedule) {
    if (c->leads)
        note(c, 0, steps, schedule);
    else
        requests_send_copy(c->requests, &steps, sizeof steps, 0, 0, c->world->control);
}

void coordinator_hear(struct coordinator *c, uint32_t device, struct schedule *schedule) {
    note(c, device, c->incoming[device], schedule);
    MPI_Irecv(&c->incoming[device], sizeof *c->incoming, MPI_BYTE, (int)device, 0, c->world->control,
              requests_add(c->requests, (struct completion){.kind = DONE_REPORT, .peer = (int)device}));
}

static void tell(struct coordinator *c) {
    if (!c->needed || !c->leads || c->go[0] == 0)
        return;
    for (uint32_t d = 1; d < c->world->cluster->n_devices; d++)
        requests_send_copy(c->requests, c->go, (c->go[0] + 1) * sizeof *c->go, (int)d, 0, c->world->control);
    c->go[0] = 0;
}

/* Encoding takes milliseconds. What is under way moves on before the next message begins. */
static bool takes_long(const struct coordinator *c, uint32_t m) {
    return c->encodes && c->plan->messages[m].encoder != ENCODING_none;
}

bool coordinator_dispatch(struct coordinator *c, struct schedule *schedule, coordinator_start *start, void *context) {
    uint32_t batch[COORDINATOR_BATCH], n = 0;
    for (bool more = true; more && n < COORDINATOR_BATCH && schedule_next(schedule, &batch[n]); n++) {
        if (coordinator_orders(c, batch[n]))
            c->go[++c->go[0]] = batch[n];
        more = !takes_long(c, batch[n]);
    }
    tell(c);
    for (uint32_t i = 0; i < n; i++)
        start(context, batch[i]);
    return n > 0;
}

void coordinator_obey(struct coordinator *c, struct schedule *schedule, coordinator_start *start, void *context) {
    for (uint32_t i = 1; i <= c->go[0]; i++) {
        schedule_take(schedule, c->go[i]);
        start(context, c->go[i]);
    }
    listen(c);
}

void coordinator_release(struct coordinator *c) {
    free(c->finished);
    free(c->incoming);
    free(c->go);
    *c = (struct coordinator){0};
}
