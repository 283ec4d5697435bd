/* Sums by NIC of equation 2's terms; see simulator/closed_form.h. */
#include "simulator/closed_form.h"

#include <math.h>

#include "strategy/cost/transport.h"

static double link_bytes_per_us(const struct cost *cost, uint32_t from, uint32_t to) {
    const struct cluster *cluster = cost->cluster;
    double rate = fmin(cost->nic_bytes_per_us[from], cost->nic_bytes_per_us[to]);
    for (uint32_t i = 0; i < cluster->n_links; i++)
        if (cluster->links[i].from == from && cluster->links[i].to == to)
            rate = fmin(rate, transport_link_bytes_per_us(cluster, &cluster->links[i]));
    return rate;
}

/* Time that each NIC spends on one message, added to total[node]. */
static void add_served(const struct cost *cost, const struct message *message, double *received, double *sent) {
    const struct runtime *runtime = &cost->runtime;
    received[message->server] += runtime->message_us;
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t worker = cost->workers[i];
        if (worker == message->server)
            continue;
        double pushes = message->local_reduction ? 1 : cost->cluster->nodes[worker].devices;
        double rate = link_bytes_per_us(cost, worker, message->server);
        double time = pushes * ((double)message->bytes / rate + runtime->push_us);
        received[message->server] += time;
        sent[worker] += time + runtime->message_us;
    }
}

static double sync_us(const struct plan *plan, const struct cost *cost, double *received, double *sent) {
    double collective = 0, served = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        if (message->kind == SYNC_PARAMETER_SERVER) {
            add_served(cost, message, received, sent);
            continue;
        }
        struct all_reduce_cost c = cost_all_reduce(cost, message);
        collective += c.startup_us + c.transfer_us;
    }
    for (uint32_t i = 0; i < cost->cluster->n_nodes; i++)
        served = fmax(served, fmax(received[i], sent[i]));
    return collective + served;
}

enum status closed_form_run(const struct plan *plan, const struct cost *cost, struct prediction *out,
                            struct error *err) {
    if (!consistency_is_plain(&plan->consistency))
        return error_set(err, ST_INVALID, "AutoSync's equation is for strategies without \"consistency\"");
    struct arena arena = {0};
    size_t nodes = cost->cluster->n_nodes;
    double *totals = arena_alloc(&arena, 2 * nodes, sizeof *totals), compute = 0;
    if (!totals)
        return error_no_memory(err);
    for (uint32_t k = 0; k < plan->n_steps; k++)
        compute += plan->step_us[k];
    compute *= cost->cluster->nodes[cost->slowest].compute_scale;
    double sync = sync_us(plan, cost, totals, totals + nodes), iteration = fmax(compute, sync);
    arena_release(&arena);
    *out = (struct prediction){.iteration_us = iteration,
                               .compute_us = compute,
                               .exposed_us = iteration - compute,
                               .comm_busy_us = sync,
                               .messages = plan->n_messages,
                               .micro_batches = plan->micro_batches,
                               .lossy = plan->lossy,
                               .in_parts = plan->in_parts,
                               .converged = true};
    if (iteration > 0)
        out->samples_per_s = plan_samples(plan) / iteration * 1e6;
    return ST_OK;
}
