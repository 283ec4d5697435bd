/* Copies are counted by update, the replica's progress by step. */
#include "trial-runner/worker/mpi/update_copies.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "strategy/updates/replicate.h"
#include "trial-runner/worker/report.h"

struct gone {
    uint32_t worker, iteration;
    size_t step;
    double norm;
};

struct update_copies {
    const struct update_run *run;
    const struct consistency *consistency;
    const struct update_sequence *sequence;
    const double *rates;
    struct gone *list; /* [n] all updates that have gone, in order; the first `taken` were asked for */
    size_t n, room, taken, allowed;
    size_t arrived;      /* copies */
    double taken_step;   /* the replica's last step at most, if each update that was taken is one: for plans alone */
    size_t replica;      /* steps that it has applied */
    double replica_step; /* likewise, with these */
    double *norms;       /* of steps, as replica_divergence wants them */
    size_t norms_room;
    double *norm_of;  /* [n_devices] of the worker's last update */
    double typical;   /* norm */
    double most;      /* divergence so far, in typical norms */
    uint32_t n_known; /* norms that it is the mean of */
    uint32_t *flying; /* [n_nodes] copies on their way from the node */
};

struct update_copies *update_copies_new(const struct update_run *run, const struct update_sequence *sequence,
                                        const double *rates) {
    struct update_copies *c = report_alloc(1, sizeof *c);
    *c = (struct update_copies){.run = run,
                                .consistency = &run->plan->consistency,
                                .sequence = sequence,
                                .rates = rates,
                                .norm_of = report_alloc(run->world->cluster->n_devices, sizeof(double)),
                                .flying = report_alloc(run->world->cluster->n_nodes, sizeof(uint32_t))};
    return c;
}

void update_copies_free(struct update_copies *c) {
    if (!c)
        return;
    free(c->list);
    free(c->norms);
    free(c->norm_of);
    free(c->flying);
    free(c);
}

/* ---- norms ---- */

void update_copies_ready(struct update_copies *c, uint32_t worker, double norm) {
    c->norm_of[worker] = norm;
    if (c->n_known < c->run->world->cluster->n_devices)
        c->typical += (norm - c->typical) / ++c->n_known;
}

double update_copies_norm(const struct update_copies *c, uint32_t n, const struct update_member *members) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += c->norm_of[members[i].worker];
    return sum;
}

double update_copies_bound(const struct update_copies *c) {
    return c->consistency->divergence * c->typical * (1 + 1e-12);
}

/* ---- the order of copies ---- */

void update_copies_add(struct update_copies *c) {
    const size_t s = c->sequence->n - 1;
    const struct update_step *step = &c->sequence->steps[s];
    if (!GROW(&c->list, &c->room, c->n + step->n) || !GROW(&c->norms, &c->norms_room, s + 1))
        report_abort(ST_NO_MEMORY, "out of memory for %zu copies", c->n);
    c->norms[s] = step->norm;
    for (uint32_t i = 0; i < step->n; i++)
        c->list[c->n++] =
            (struct gone){step->members[i].worker, step->members[i].iteration, s, c->norm_of[step->members[i].worker]};
}

static uint32_t node_of(const struct update_copies *c, uint32_t worker) {
    return cluster_node_of_device(c->run->world->cluster, worker);
}

/* The updates of which no copy was asked for, those that have gone and then those that have not. */
static void list_updates(const struct update_copies *c, const uint32_t *workers, double now_us, uint32_t n,
                         struct update *updates, double *norms, uint32_t *order) {
    const size_t n_gone = c->n - c->taken;
    for (uint32_t i = 0; i < n; i++) {
        const struct gone *gone = i < n_gone ? &c->list[c->taken + i] : NULL;
        const uint32_t worker = gone ? gone->worker : workers[i - n_gone];
        updates[i] = (struct update){
            .node = node_of(c, worker), .bytes = (double)c->run->plan->messages[0].bytes, .available_us = now_us};
        norms[i] = gone ? gone->norm : c->norm_of[worker];
        order[i] = i;
    }
}

void update_copies_order(struct update_copies *c, struct calendar *calendar, uint32_t pending, const uint32_t *workers,
                         double now_us, double last_us) {
    const struct consistency *rule = c->consistency;
    const uint32_t n = (uint32_t)(c->n - c->taken) + pending;
    struct update *updates = report_alloc(n, sizeof *updates);
    double *norms = report_alloc(4 * (size_t)n, sizeof *norms); /* and three scratch rows */
    uint32_t *order = report_alloc(2 * (size_t)n, sizeof *order);
    struct replication out = {
        .aggregation = {
            .group = order + n, .arrival_us = norms + n, .sum_us = norms + 2 * n, .applied_us = norms + 3 * n}};
    struct error err = {.status = ST_OK};
    list_updates(c, workers, now_us, n, updates, norms, order);
    if (n > 0 && replicate_updates(calendar, rule->replica, n, order, updates, norms, c->taken_step, rule->momentum,
                                   update_copies_bound(c), rule->copies_when_due, last_us, 0, NULL, &out, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    if (c->taken + out.sent > c->allowed)
        c->allowed = c->taken + out.sent;
    free(updates);
    free(norms);
    free(order);
}

/* ---- copies ---- */

/* Whether the NICs of copies on their way leave some of the replica's free. What comes from its own node is there soon.
 */
static bool replica_is_free(const struct update_copies *c) {
    double taken = 0;
    for (uint32_t i = 0; i < c->run->world->cluster->n_nodes; i++)
        if (c->flying[i] > 0 && i != c->consistency->replica)
            taken += c->rates[i * DIRECTION_COUNT + DIRECTION_OUT];
    return taken < c->rates[c->consistency->replica * DIRECTION_COUNT + DIRECTION_IN];
}

/* A step is copied whole. */
static bool is_allowed(const struct update_copies *c, size_t i) {
    return i < c->n && (i < c->allowed || (i > 0 && i == c->taken && c->list[i - 1].step == c->list[i].step));
}

bool update_copies_take(struct update_copies *c, uint32_t *worker, uint32_t *iteration) {
    if (!is_allowed(c, c->taken) || !replica_is_free(c))
        return false;
    const struct gone *gone = &c->list[c->taken++];
    c->taken_step = replica_step(c->taken_step, gone->norm, c->consistency->momentum);
    c->flying[node_of(c, gone->worker)]++;
    *worker = gone->worker;
    *iteration = gone->iteration;
    return true;
}

void update_copies_has(struct update_copies *c, uint32_t worker, size_t steps) {
    if (worker != UPDATE_NOBODY) {
        c->flying[node_of(c, worker)]--;
        c->arrived++;
    }
    for (; c->replica < steps; c->replica++)
        c->replica_step = replica_step(c->replica_step, c->norms[c->replica], c->consistency->momentum);
}

bool update_copies_may_apply(struct update_copies *c) {
    const size_t next = c->sequence->next;
    if (next < c->replica)
        return true;
    const double apart = replica_divergence((uint32_t)(next + 1 - c->replica), c->norms + c->replica, c->replica_step,
                                            c->consistency->momentum);
    if (apart <= update_copies_bound(c)) {
        c->most = fmax(c->most, apart / c->typical);
        return true;
    }
    if (c->arrived == c->taken && !is_allowed(c, c->taken) && c->taken < c->n)
        c->allowed = c->taken + 1;
    return false;
}

size_t update_copies_taken(const struct update_copies *c) {
    return c->taken;
}

double update_copies_divergence_most(const struct update_copies *c) {
    return c->most;
}
