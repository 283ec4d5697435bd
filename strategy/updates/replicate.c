/* See replicate.h. */
#include "strategy/updates/replicate.h"

#include "base/arena.h"

/* From the newest update back: its factor is 1, the one before it has 1 + g, and so on; h has that of one more, less 1.
 */
double replica_divergence(uint32_t n, const double *norms, double step, double momentum) {
    double sum = 0, factor = 0, power = 1;
    for (uint32_t i = n; i-- > 0; power *= momentum) {
        factor += power;
        sum += factor * norms[i];
    }
    return sum + (factor + power - 1) * step * (n > 0);
}

double replica_step(double step, double norm, double momentum) {
    return momentum * step + norm;
}

/* The fewest updates that the replica must have when the server has all n. */
static enum status find_fewest(uint32_t n, const uint32_t *order, const double *norms, double step, double momentum,
                               double bound, uint32_t *out, struct error *err) {
    struct arena arena = {0};
    double *in_order = arena_alloc(&arena, n, sizeof *in_order);
    uint32_t r = 0;
    for (uint32_t i = 0; in_order && i < n; i++)
        in_order[i] = norms[order[i]];
    for (; in_order && r < n && replica_divergence(n - r, in_order + r, step, momentum) > bound; r++)
        step = replica_step(step, in_order[r], momentum);
    *out = r;
    arena_release(&arena);
    return in_order ? ST_OK : error_no_memory(err);
}

enum status replicate_updates(struct calendar *calendar, uint32_t replica, uint32_t n, const uint32_t *order,
                              const struct update *updates, const double *norms, double step, double momentum,
                              double bound, bool when_due, double last_us, uint32_t n_aggregators,
                              const uint32_t *aggregators, struct replication *out, struct error *err) {
    uint32_t least = 0, sent = 0;
    enum status st = find_fewest(n, order, norms, step, momentum, bound, &least, err);
    out->sent = 0;
    if (!st && when_due && least == 0)
        return ST_OK;
    if (!st)
        st =
            aggregate_updates(calendar, replica, n, order, updates, n_aggregators, aggregators, &out->aggregation, err);
    if (st)
        return st;
    const double *applied_us = out->aggregation.applied_us;
    while (!when_due && sent < n && applied_us[sent] <= last_us)
        sent++;
    sent = sent > least ? sent : least;
    if (when_due)
        sent = n;
    while (sent > 0 && sent < n && applied_us[sent] <= applied_us[sent - 1]) /* a sum goes whole */
        sent++;
    out->sent = sent;
    return ST_OK;
}
