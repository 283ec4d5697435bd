/* How unlike two domains are (tuner/learn/examples.h): about a dozen numbers describe each domain, in units in which a
 * difference of 1 is large. Sizes and times enter as logarithms: twice the bytes on twice the bandwidth changes little,
 * and ratios decide which strategies pay. */
#include <math.h>

#include "base/units.h"
#include "strategy/cost/transport.h"
#include "tuner/learn/examples.h"

/* X(name, difference that counts as 1): logarithms of base 2, so 2 is a factor of 4 */
#define DESCRIPTOR_TABLE(X)                                                                                            \
    X(bytes, 2)          /* of all variables */                                                                        \
    X(variables, 2)      /* how many */                                                                                \
    X(effective, 2)      /* the effective number of variables by bytes: 1 / sum of squared shares */                   \
    X(compute, 2)        /* microseconds of an iteration on the slowest device */                                      \
    X(devices, 1)        /* how many */                                                                                \
    X(bandwidth, 2)      /* Gbit/s of the slowest NIC */                                                               \
    X(communication, 1)  /* all bytes once through that NIC, over compute */                                           \
    X(startups, 1)       /* a launch and a latency a variable, over compute */                                         \
    X(nic_spread, 0.5)   /* fastest over slowest NIC */                                                                \
    X(speed_spread, 0.5) /* largest over smallest compute_scale */

enum descriptor {
#define X(name, unit) DESCRIPTOR_##name,
    DESCRIPTOR_TABLE(X)
#undef X
        DESCRIPTOR_COUNT
};

/* What the nodes have at least and at most; of compute_scale, those with devices. */
struct extremes {
    double slow_gbit, fast_gbit, fast_scale, slow_scale, latency_us;
};

static struct extremes extremes_of(const struct cluster *cluster) {
    struct extremes x = {INFINITY, 0, INFINITY, 0, 0};
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const struct node *node = &cluster->nodes[i];
        x.slow_gbit = fmin(x.slow_gbit, node->nic_gbit_per_s);
        x.fast_gbit = fmax(x.fast_gbit, node->nic_gbit_per_s);
        x.latency_us = fmax(x.latency_us, node->nic_latency_us);
        if (node->devices) {
            x.fast_scale = fmin(x.fast_scale, node->compute_scale);
            x.slow_scale = fmax(x.slow_scale, node->compute_scale);
        }
    }
    return x;
}

static double effective_variables(const struct model *model) {
    double squares = 0;
    for (uint32_t i = 0; i < model->n_variables; i++) {
        double share = (double)model->variables[i].bytes / (double)model->bytes;
        squares += share * share;
    }
    return 1 / squares;
}

static void describe(const struct domain *domain, double out[DESCRIPTOR_COUNT]) {
    const struct model *model = &domain->model;
    const struct cluster *cluster = &domain->cluster;
    const struct extremes x = extremes_of(cluster);
    const double bytes = (double)model->bytes, compute = (model->forward_us + model->backward_us) * x.slow_scale;
    const double transfer_us = bytes / units_gbit_per_s(x.slow_gbit);
    const double startups_us = model->n_variables * (transport_runtime(cluster).message_us + x.latency_us);
    out[DESCRIPTOR_bytes] = log2(bytes);
    out[DESCRIPTOR_variables] = log2(model->n_variables);
    out[DESCRIPTOR_effective] = log2(effective_variables(model));
    out[DESCRIPTOR_compute] = log2(1 + compute);
    out[DESCRIPTOR_devices] = log2(cluster->n_devices);
    out[DESCRIPTOR_bandwidth] = log2(x.slow_gbit);
    out[DESCRIPTOR_communication] = log2((1 + transfer_us) / (1 + compute));
    out[DESCRIPTOR_startups] = log2((1 + startups_us) / (1 + compute));
    out[DESCRIPTOR_nic_spread] = log2(x.fast_gbit / x.slow_gbit);
    out[DESCRIPTOR_speed_spread] = log2(x.slow_scale / x.fast_scale);
}

double domain_distance(const struct domain *a, const struct domain *b) {
    static const double units[DESCRIPTOR_COUNT] = {
#define X(name, unit) [DESCRIPTOR_##name] = unit,
        DESCRIPTOR_TABLE(X)
#undef X
    };
    double of_a[DESCRIPTOR_COUNT], of_b[DESCRIPTOR_COUNT], sum = 0;
    describe(a, of_a);
    describe(b, of_b);
    for (int i = 0; i < DESCRIPTOR_COUNT; i++) {
        double difference = (of_a[i] - of_b[i]) / units[i];
        sum += difference * difference;
    }
    return sqrt(sum / DESCRIPTOR_COUNT);
}
