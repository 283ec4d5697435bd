/* What an iteration of the plan asks of each processor and NIC, in whatever order. See timeline_load_us. */
#include <math.h>
#include <string.h>

#include "simulator/timeline_internal.h"

/* Over all messages. Bytes are pushed once by every node ("reduced") or once by every device ("raw"). */
struct sums {
    double launch_us; /* on the first chain, and what encoders do there later */
    double later_us;  /* the most that one of them does */
    double reduced, raw;
    double all_reduced; /* bytes for which all-reduces hold both directions of every worker's NIC */
};

static void add_message(struct timeline *tl, const struct message *message, struct sums *sums) {
    double later_us = cost_later_us(tl->cost, message);
    sums->launch_us += timeline_launch_us(tl, &tl->chains[0], message) + later_us;
    sums->later_us = fmax(sums->later_us, later_us);
    if (message->kind == SYNC_PARAMETER_SERVER) {
        (message->local_reduction ? tl->reduced : tl->raw)[message->server] += (double)message->bytes;
        *(message->local_reduction ? &sums->reduced : &sums->raw) += (double)message->bytes;
    } else if (isfinite(tl->cost->narrowest_bytes_per_us)) {
        struct all_reduce_cost cost = timeline_message_cost(tl, message);
        sums->all_reduced += cost.back_us > 0 ? 0 : cost.hold_us * tl->cost->narrowest_bytes_per_us;
    }
}

/* The NIC and, of a server, the processor that sums. What goes out of a node also comes in: a push is answered by a
 * pull. */
static double node_us(const struct timeline *tl, uint32_t node, const struct sums *sums) {
    const struct cost *cost = tl->cost;
    double devices = cost->cluster->nodes[node].devices, works = devices > 0;
    double pushed = works * (sums->reduced - tl->reduced[node]) + devices * (sums->raw - tl->raw[node]);
    double others = cost->n_workers - works, other_devices = cost->cluster->n_devices - devices;
    double served = others * tl->reduced[node] + other_devices * tl->raw[node];
    double summed = (cost->n_workers - 1.0) * tl->reduced[node] + (cost->cluster->n_devices - 1.0) * tl->raw[node];
    return fmax((pushed + served + works * sums->all_reduced) / cost->nic_bytes_per_us[node],
                summed / cost->sum_bytes_per_us);
}

double timeline_load_us(struct timeline *tl) {
    uint32_t n = tl->cost->cluster->n_nodes;
    struct sums sums = {0};
    memset(tl->reduced, 0, n * sizeof *tl->reduced);
    memset(tl->raw, 0, n * sizeof *tl->raw);
    for (uint32_t m = 0; m < tl->plan->n_messages; m++)
        add_message(tl, &tl->plan->messages[m], &sums);
    double most = sums.launch_us - sums.later_us; /* no message waits for what the last one does later */
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, node_us(tl, i, &sums));
    return most;
}
