/* NCCL's figures, in microseconds and bytes per microsecond; strategy/cost/nccl.h has the rule and the source. */
#include "strategy/cost/nccl.h"

#include <math.h>

enum protocol { PROTOCOL_ll, PROTOCOL_ll128, PROTOCOL_simple, PROTOCOL_COUNT };
enum hop { HOP_nvlink, HOP_pcie, HOP_net, HOP_COUNT };

static const double RING_BASE_US[PROTOCOL_COUNT] = {6.6, 14, 8.4}, TREE_BASE_US[PROTOCOL_COUNT] = {6.8, 14, 0};
static const double RING_STEP_US[HOP_COUNT][PROTOCOL_COUNT] = {{0.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}};
static const double TREE_STEP_US[HOP_COUNT][PROTOCOL_COUNT] = {{0.6, 1.25, 28}, {1, 1.9, 28}, {5, 8.5, 28}};

/* The part of the rate that is left for data. A tree leaves 0.92 of what a ring reaches. */
static const double RING_RATE[PROTOCOL_COUNT] = {1 / 4.0, 0.92, 1};
static const double TREE_RATE[PROTOCOL_COUNT] = {0.92 / 3.8, 0.92 * 120 / 128, 0.92};
static const double TREE_RATE_LL128_ONE_NODE = 0.92 * 7 / 9;

/* Of all channels together; an Intel processor's between nodes. */
static const double LL_BYTES_PER_US = 20400, LL_BYTES_PER_US_TWO_NODES = 39000;

static const double POST_US[PROTOCOL_COUNT] = {1, 1, 3}; /* handing a step of a ring to the network */

static double step_between_us(const struct nccl_shape *s, const double step_us[PROTOCOL_COUNT], enum protocol p) {
    return step_us[p] + s->nic_latency_us * (p == PROTOCOL_simple ? 2 : 1); /* Simple flushes what has come */
}

static double rate_of(const struct nccl_shape *s, double part, enum protocol p) {
    double rate = s->narrowest_bytes_per_us * part;
    return p == PROTOCOL_ll ? fmin(rate, s->nodes > 2 ? LL_BYTES_PER_US : LL_BYTES_PER_US_TWO_NODES) : rate;
}

/* `steps` steps, `between` of them between nodes, that together move the bytes `times` times through every device. */
static struct all_reduce_line steps_line(const struct nccl_shape *s, enum protocol p, double steps, double between,
                                         double times) {
    double inside_us = RING_STEP_US[s->nvlink ? HOP_nvlink : HOP_pcie][p];
    if (s->nodes > 1)
        inside_us = fmax(inside_us, POST_US[p]);
    return (struct all_reduce_line){RING_BASE_US[p] + (steps - between) * inside_us +
                                        between * step_between_us(s, RING_STEP_US[HOP_net], p),
                                    times / rate_of(s, RING_RATE[p], p)};
}

static struct all_reduce_line ring_line(const struct nccl_shape *s, enum protocol p) {
    double steps = 2 * (s->ranks - 1), between = s->nodes > 1 ? fmin(2 * s->nodes, steps) : 0;
    return steps_line(s, p, steps, between, steps / s->ranks);
}

static struct all_reduce_line all_gather_line(const struct nccl_shape *s, enum protocol p) {
    return steps_line(s, p, s->ranks - 1, s->nodes - 1, s->ranks - 1);
}

static struct all_reduce_line tree_line(const struct nccl_shape *s, enum protocol p) {
    double inside = s->ranks / s->nodes - 1, between = s->nodes > 1 ? floor(log2(s->nodes)) : 0;
    double part = p == PROTOCOL_ll128 && s->nodes < 2 ? TREE_RATE_LL128_ONE_NODE : TREE_RATE[p];
    double up_us = inside * TREE_STEP_US[s->nvlink ? HOP_nvlink : HOP_pcie][p] +
                   between * step_between_us(s, TREE_STEP_US[HOP_net], p);
    return (struct all_reduce_line){TREE_BASE_US[p] + 2 * up_us, 2 / rate_of(s, part, p)};
}

struct all_reduce_lines nccl_lines(const struct nccl_shape *shape, enum algorithm algorithm) {
    struct all_reduce_lines lines = {0};
    struct all_reduce_line (*line)(const struct nccl_shape *, enum protocol) =
        algorithm == ALGORITHM_ring          ? ring_line
        : algorithm == ALGORITHM_double_tree ? tree_line
        : algorithm == ALGORITHM_all_gather  ? all_gather_line
                                             : NULL;
    for (int p = 0; p < PROTOCOL_COUNT && line; p++)
        if (p != PROTOCOL_ll128 || shape->nvlink)
            lines.line[lines.n++] = line(shape, (enum protocol)p);
    return lines;
}
