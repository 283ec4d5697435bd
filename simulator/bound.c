/* See bound.h for what is bounded and why it holds. */
#include "simulator/bound.h"

#include <math.h>
#include <stdbool.h>

#include "strategy/cost/all_reduce.h"
#include "strategy/exact/one_machine.h"

/* ---- the model ---- */

struct need {
    double release_us, tail_us;       /* on a device of compute_scale 1 */
    double dense_bytes, served_bytes; /* by all-reduce; by a push */
};

static double least_served_bytes(const struct variable *v) {
    enum { INDEX_BYTES = 8 };
    if (v->sparse_rows == 0)
        return (double)v->bytes;
    double row = (double)v->bytes / (double)v->shape[0];
    return (double)v->sparse_rows * (row + INDEX_BYTES);
}

static void needs_of(const struct model *model, struct need *needs) {
    double time = 0;
    for (uint32_t v = 0; v < model->n_variables; v++)
        needs[v] = (struct need){0, 0, (double)model->variables[v].bytes, least_served_bytes(&model->variables[v])};
    for (uint32_t i = model->n_forward; i < model->n_operators; i++) {
        const struct operator* op = & model->operators[model->order[i]];
        time += op->time_us;
        for (uint32_t p = 0; p < op->n_produces; p++)
            needs[op->produces[p]].release_us = time;
    }
    /* From the last forward operator to the first, so that the earliest reader's tail stays. */
    time = 0;
    for (uint32_t i = model->n_forward; i-- > 0;) {
        const struct operator* op = & model->operators[model->order[i]];
        time += op->time_us;
        for (uint32_t r = 0; r < op->n_reads; r++)
            needs[op->reads[r]].tail_us = time;
    }
}

/* ---- the network ---- */

/* A set of nodes with devices: mean time a byte through their NICs when each moves it, when each but the slowest does,
 * and the least compute_scale. */
struct members {
    uint32_t n;
    double sum, largest, scale;
};

static void add_member(struct members *set, double per_byte, double scale) {
    set->scale = set->n == 0 ? scale : fmin(set->scale, scale);
    set->sum += per_byte;
    set->largest = fmax(set->largest, per_byte);
    set->n++;
}

enum { ALL, NARROWEST, SLOWEST, N_SETS };

static void choose_sets(const struct cost *cost, struct members sets[N_SETS]) {
    const struct node *nodes = cost->cluster->nodes;
    double narrowest = INFINITY, slowest = nodes[cost->slowest].compute_scale;
    for (uint32_t i = 0; i < cost->n_workers; i++)
        narrowest = fmin(narrowest, cost->nic_bytes_per_us[cost->workers[i]]);
    for (int s = 0; s < N_SETS; s++)
        sets[s] = (struct members){0, 0, 0, 0};
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t node = cost->workers[i];
        double rate = cost->nic_bytes_per_us[node], scale = nodes[node].compute_scale;
        add_member(&sets[ALL], 1 / rate, scale);
        if (rate <= narrowest)
            add_member(&sets[NARROWEST], 1 / rate, scale);
        if (scale >= slowest)
            add_member(&sets[SLOWEST], 1 / rate, scale);
    }
}

/* Bytes through a NIC, at the network's narrowest rate, of each byte that is all-reduced. */
static double all_reduce_wire(const struct cost *cost) {
    return all_reduce_least_per_byte_us(&cost->all_reduce) * cost->narrowest_bytes_per_us;
}

static double volume(const struct need *needs, uint32_t n, const struct cost *cost, double per_byte) {
    double wire = all_reduce_wire(cost), bytes = 0;
    for (uint32_t v = 0; v < n; v++)
        bytes += fmin(wire * needs[v].dense_bytes, needs[v].served_bytes);
    return bytes * per_byte;
}

static double windows(const struct need *needs, uint32_t n, const struct cost *cost, const struct members *set,
                      struct job *jobs, uint32_t *scratch) {
    double every = set->sum / set->n * all_reduce_wire(cost), other = (set->sum - set->largest) / set->n;
    for (uint32_t v = 0; v < n; v++)
        jobs[v] = (struct job){needs[v].release_us * set->scale,
                               fmin(every * needs[v].dense_bytes, other * needs[v].served_bytes),
                               needs[v].tail_us * set->scale};
    return one_machine_value(n, jobs, scratch);
}

enum status bound_iteration(const struct model *model, const struct cost *cost, struct bound *out, struct error *err) {
    struct bound bound = {0};
    struct members sets[N_SETS];
    struct arena arena = {0};
    uint32_t n = model->n_variables;
    struct need *needs = arena_alloc(&arena, n, sizeof *needs);
    struct job *jobs = arena_alloc(&arena, n, sizeof *jobs);
    uint32_t *scratch = arena_alloc(&arena, n, sizeof *scratch);
    if (!needs || !jobs || !scratch) {
        arena_release(&arena);
        return error_no_memory(err);
    }
    for (uint32_t i = 0; i < model->n_operators; i++)
        bound.compute_us += model->operators[i].time_us;
    bound.compute_us *= cost->cluster->nodes[cost->slowest].compute_scale;
    if (cost->n_workers > 1) {
        needs_of(model, needs);
        choose_sets(cost, sets);
        bound.volume_us = volume(needs, n, cost, sets[ALL].largest);
        for (int s = 0; s < N_SETS; s++)
            bound.windows_us = fmax(bound.windows_us, windows(needs, n, cost, &sets[s], jobs, scratch));
    }
    bound.iteration_us = fmax(bound.compute_us, fmax(bound.volume_us, bound.windows_us));
    arena_release(&arena);
    *out = bound;
    return ST_OK;
}
