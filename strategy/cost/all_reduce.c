/* All-reduce costs: MG-WFBP's table 2, measured curves, and a fixed line.
 *
 * Table 2 gives a + b * M for N devices with latency alpha, time a byte beta and summing time a byte gamma. Its row for
 * double binary trees prints a = 2 log N without alpha; we read 2 alpha log N, as its figure 11 needs. It assumes one
 * device a node and N a power of two. Beyond that:
 *   - alpha is the largest NIC latency and counts in rounds between nodes only: K nodes with devices instead of N
 *     devices, except in the ring, where each of the 2(N-1) steps has some pair that crosses a NIC;
 *   - ring and trees laid out node by node cross each NIC once a step, so beta is the slower of a NIC hop and a hop
 *     between devices of a node;
 *   - recursive doubling has every device of a node cross the NIC in each of the log K rounds between nodes;
 *   - with N not a power of two, recursive algorithms first fold the rest in and at last send them the result: two
 *     more rounds;
 *   - hierarchical: every node sums its d devices' gradients at one of them, d - 1 times M over the device link; those
 *     run the ring among K nodes; then d - 1 copies go back. Nodes work at once: the slowest counts;
 *   - all_gather is the ring's second half: N - 1 steps, in each of which M crosses every hop.
 *
 * `auto` is what the library chooses; measurements do not say what that is. At each point `auto` is taken for the
 * algorithm whose measured curve is nearest; from this follows how many parts it has. A query is O(log points). */
#include "strategy/cost/all_reduce.h"

#include <math.h>
#include <stddef.h>

#include "base/units.h"
#include "strategy/cost/nccl.h"
#include "strategy/cost/transport.h"
#include "strategy/cost/wire.h"

/* What the formulas see of a cluster. */
struct shape {
    double n, k;                          /* devices; nodes with devices */
    double widest;                        /* most devices on one node */
    double alpha, beta, beta_link, gamma; /* us; us a byte: NIC, device link (slowest), sum */
    double inside;                        /* us a byte of summing within a node and copying back */
    bool nvlink;                          /* between all devices of a node */
};

static double inverse(double rate) {
    return rate > 0 ? 1 / rate : 0;
}

double all_reduce_narrowest_bytes_per_us(const struct cluster *cluster) {
    double least = INFINITY;
    uint32_t workers = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        if (cluster->nodes[i].devices == 0)
            continue;
        workers++;
        least = fmin(least, transport_nic_bytes_per_us(cluster, i));
    }
    for (uint32_t i = 0; i < cluster->n_links; i++) {
        const struct link *link = &cluster->links[i];
        if (cluster->nodes[link->from].devices > 0 && cluster->nodes[link->to].devices > 0)
            least = fmin(least, transport_link_bytes_per_us(cluster, link));
    }
    return workers < 2 ? INFINITY : least;
}

static struct shape shape_of(const struct cluster *cluster) {
    const struct runtime runtime = transport_runtime(cluster);
    struct shape s = {
        .n = cluster->n_devices, .gamma = inverse(units_gbyte_per_s(runtime.sum_gbyte_per_s)), .nvlink = true};
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const struct node *node = &cluster->nodes[i];
        if (node->devices == 0)
            continue;
        double link = node->devices > 1 ? 1 / transport_device_link_bytes_per_us(cluster, i) : 0;
        s.k++;
        s.widest = fmax(s.widest, node->devices);
        s.alpha = fmax(s.alpha, transport_nic_latency_us(cluster, i));
        s.nvlink = s.nvlink && (node->devices < 2 || transport_has_nvlink(node));
        s.beta_link = fmax(s.beta_link, link);
        s.inside = fmax(s.inside, (node->devices - 1) * (2 * link + s.gamma));
    }
    s.beta = s.k > 1 ? 1 / all_reduce_narrowest_bytes_per_us(cluster) : 0;
    if (s.k < 2)
        s.alpha = 0;
    return s;
}

static double rounds_of_tree(double n) {
    return ceil(log2(n));
}

static double rounds_recursive(double n) {
    double whole = floor(log2(n));
    return exp2(whole) < n ? whole + 2 : whole;
}

static struct all_reduce_line ring_line(double n, double alpha, double beta, double gamma) {
    return (struct all_reduce_line){2 * (n - 1) * alpha, (n - 1) / n * (2 * beta + gamma)};
}

static struct all_reduce_line recursive_doubling_line(const struct shape *s) {
    double between = rounds_recursive(s->k), inside = fmax(rounds_recursive(s->n) - between, 0);
    return (struct all_reduce_line){s->alpha * between,
                                    between * (s->widest * s->beta + s->gamma) + inside * (s->beta_link + s->gamma)};
}

static struct all_reduce_line halving_doubling_line(const struct shape *s, double hop) {
    bool folded = exp2(floor(log2(s->n))) < s->n;
    double n = exp2(floor(log2(s->n))), b = 2 * hop - (2 * hop + s->gamma) / n + s->gamma;
    return (struct all_reduce_line){s->alpha * (2 * floor(log2(s->k)) + (folded ? 2 : 0)),
                                    b + (folded ? 2 * hop + s->gamma : 0)};
}

static struct all_reduce_line line_of(const struct shape *s, enum algorithm algorithm) {
    double hop = fmax(s->beta, s->beta_link);
    struct all_reduce_line line = {0, 0};
    if (s->n < 2)
        return line;
    switch (algorithm) {
    case ALGORITHM_ring:
        return ring_line(s->n, s->alpha, hop, s->gamma);
    case ALGORITHM_tree:
        return (struct all_reduce_line){2 * s->alpha * rounds_of_tree(s->k),
                                        (2 * hop + s->gamma) * rounds_of_tree(s->n)};
    case ALGORITHM_double_tree:
        return (struct all_reduce_line){2 * s->alpha * rounds_of_tree(s->k), hop + s->gamma};
    case ALGORITHM_recursive_doubling:
        return recursive_doubling_line(s);
    case ALGORITHM_halving_doubling:
        return halving_doubling_line(s, hop);
    case ALGORITHM_hierarchical:
        line = ring_line(s->k, s->alpha, s->beta, s->gamma);
        line.per_byte_us += s->inside;
        return line;
    case ALGORITHM_all_gather:
        return (struct all_reduce_line){(s->n - 1) * s->alpha, (s->n - 1) * hop};
    case ALGORITHM_auto:
    case ALGORITHM_COUNT:
        break;
    }
    return line;
}

struct all_reduce_line all_reduce_line(const struct cluster *cluster, enum algorithm algorithm) {
    const struct shape s = shape_of(cluster);
    return line_of(&s, algorithm);
}

/* ---- what a transport does ---- */

static struct all_reduce_lines lines_of(const struct cluster *cluster, const struct shape *s,
                                        enum algorithm algorithm) {
    const enum transport transport = cluster_transport(cluster);
    struct all_reduce_lines lines = {0};
    if (transport == TRANSPORT_nccl) {
        const double startup = cluster->startup > 0 ? cluster->startup : 1; /* of NCCL's own costs too */
        const struct nccl_shape shape = {s->n, s->k, s->alpha / startup, 1 / fmax(s->beta, s->beta_link), s->nvlink};
        lines = nccl_lines(&shape, algorithm);
        for (uint32_t i = 0; i < lines.n; i++)
            lines.line[i].startup_us *= startup;
    }
    if (lines.n > 0)
        return lines;
    lines = (struct all_reduce_lines){1, {line_of(s, algorithm)}};
    if (algorithm == ALGORITHM_ring && transport != TRANSPORT_ideal)
        lines.line[0].startup_us = s->alpha * fmin(2 * s->k, 2 * (s->n - 1));
    if (algorithm == ALGORITHM_all_gather && transport != TRANSPORT_ideal)
        lines.line[0].startup_us = s->alpha * (transport == TRANSPORT_mpi ? 1 : fmin(s->k, s->n - 1));
    return lines;
}

/* How long a device takes to add a byte. */
static double adding_us(const struct cluster *cluster) {
    const enum transport transport = cluster_transport(cluster);
    const struct runtime runtime = transport_runtime(cluster);
    const bool gpu = transport == TRANSPORT_nccl || transport == TRANSPORT_ps_lite;
    if (gpu && cluster->runtime.sum_gbyte_per_s <= 0) /* the profile's figure is of a server's processor */
        return 1.5 * inverse(units_gbyte_per_s(runtime.copy_gbyte_per_s));
    return inverse(units_gbyte_per_s(runtime.sum_gbyte_per_s));
}

/* libnbc's MPI_Iallgather is linear: every device sends to every other by itself, and a node takes each slice once a
 * device. */
static struct gather gather_of(const struct cluster *cluster, const struct shape *s) {
    const bool linear = cluster_transport(cluster) == TRANSPORT_mpi;
    if (s->n < 2)
        return (struct gather){.devices = s->n};
    return (struct gather){s->n, (linear ? s->widest * (s->n - s->widest) : s->n - 1) * s->beta,
                           s->n * adding_us(cluster)};
}

/* Open MPI's libnbc, as trial-runner/worker/mpi/collective.c has it. */
enum { MPI_RING_BYTES = 65536, MPI_RING_RANKS = 4 };

static void set_choice(struct all_reduce_table *table, const struct cluster *cluster) {
    const enum transport transport = cluster_transport(cluster);
    table->choice[ALGORITHM_ring] = true;
    if (cluster->fixed_all_reduce || cluster->n_devices < 2)
        return; /* all lines are one */
    table->choice[ALGORITHM_double_tree] = transport == TRANSPORT_nccl;
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT && transport == TRANSPORT_ideal; a++)
        table->choice[a] = true;
    table->small = ALGORITHM_tree;
    if (transport == TRANSPORT_mpi)
        table->small_bytes = cluster->n_devices < MPI_RING_RANKS ? UINT64_MAX : MPI_RING_BYTES;
}

/* ---- curves ---- */

/* What a curve is of. The algorithm of a half is auto. */
struct timed {
    enum operation operation;
    enum algorithm algorithm;
};

static bool is_point_of(const struct measurement *m, struct timed timed, uint32_t devices) {
    return m->operation == timed.operation && m->algorithm == timed.algorithm && m->devices == devices && m->bytes > 0;
}

/* Write what was measured of it into arrays that have room for all measurements. Returns how many points. */
static uint32_t list_points(const struct cluster *cluster, struct timed timed, double *bytes, double *time_us) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < cluster->n_measurements; i++) {
        const struct measurement *m = &cluster->measurements[i];
        if (!is_point_of(m, timed, cluster->n_devices))
            continue;
        bytes[n] = (double)m->bytes;
        time_us[n++] = m->time_us;
    }
    return n;
}

/* One family of curves, of what `timed` says each. *any: whether one of them was measured. */
static enum status measured_family(const struct cluster *cluster, uint32_t n_curves, const struct timed *timed,
                                   struct all_reduce_curve *curves, bool *any, struct arena *arena, struct error *err) {
    struct curve_table measured[ALL_REDUCE_COUNT];
    size_t most = cluster->n_measurements, n = 0;
    double *bytes = arena_alloc(arena, most, sizeof *bytes), *time_us = arena_alloc(arena, most, sizeof *time_us);
    enum status st = bytes && time_us ? ST_OK : error_no_memory(err);
    for (uint32_t i = 0; i < n_curves && !st; i++) {
        uint32_t points = list_points(cluster, timed[i], bytes + n, time_us + n);
        measured[i] = (struct curve_table){points, bytes + n, time_us + n};
        n += points;
    }
    for (uint32_t i = 0; i < n_curves && !st && n > 0; i++)
        st = curve_init(&curves[i].measured, n_curves, measured, i, arena, err);
    *any = n > 0;
    return st;
}

static enum status measured_curves(struct all_reduce_table *table, const struct cluster *cluster, struct arena *arena,
                                   struct error *err) {
    const struct timed halves[HALVES] = {{OPERATION_reduce_scatter, ALGORITHM_auto},
                                         {OPERATION_all_gather, ALGORITHM_auto}};
    struct timed whole[ALL_REDUCE_COUNT];
    for (int a = 0; a < ALL_REDUCE_COUNT; a++)
        whole[a] = (struct timed){OPERATION_all_reduce, (enum algorithm)a};
    enum status st = measured_family(cluster, ALL_REDUCE_COUNT, whole, table->curves, &table->any_curve, arena, err);
    return st ? st : measured_family(cluster, HALVES, halves, table->halves, &table->any_half, arena, err);
}

/* ---- bursts ---- */

/* The measured algorithm whose curve passes nearest; auto when there is none. */
static enum algorithm likest(const struct all_reduce_table *table, double bytes, double time_us) {
    enum algorithm likest = ALGORITHM_auto;
    double nearest = INFINITY;
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT; a++) {
        const struct curve *curve = &table->curves[a].measured;
        double off = curve->n > 0 ? fabs(log(curve_us(curve, bytes) / time_us)) : INFINITY;
        if (off < nearest) {
            nearest = off;
            likest = (enum algorithm)a;
        }
    }
    return likest;
}

/* What an algorithm must move, in microseconds a byte. */
struct must {
    double hold, back; /* back: over hold; 0 without a way back */
};

static double ways(struct must must) {
    return must.back > 0 ? 2 : 1;
}

/* By how much a burst shortens a way: the most by which a point lies below a line through the smallest message. The
 * line's slope is what the algorithm must move, or the curve's last slope if that is less. A straight curve shows no
 * burst. */
static double curve_burst_us(const struct curve *curve, struct must must) {
    double most = 0, hold = fmin(must.hold * (1 + must.back), curve->tail_per_byte_us);
    for (uint32_t i = 1; i < curve->n; i++)
        most = fmax(most, hold * (curve->bytes[i] - curve->bytes[0]) - (curve->time_us[i] - curve->time_us[0]));
    return most / ways(must);
}

static double burst_us(const struct all_reduce_table *table, const struct must *must) {
    double most = 0;
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT; a++)
        most = fmax(most, curve_burst_us(&table->curves[a].measured, must[a]));
    return most;
}

/* How long an all-reduce at most holds the network towards the root, in microseconds a byte, by the time of point i. */
static double hold_seen(const struct curve *curve, uint32_t i, struct must must, double burst_us) {
    double time = curve->time_us[i], latency = curve->time_us[0];
    return fmin(time, (time - latency + ways(must) * burst_us) / (1 + must.back)) / curve->bytes[i];
}

/* The same, with the limit of the header: at least what the algorithm must move; just that within the latency, and of a
 * tree. */
static double hold_at(const struct curve *curve, uint32_t i, struct must must, double burst_us) {
    double least = fmin(must.hold, hold_seen(curve, curve->n - 1, must, burst_us));
    bool within_latency = least * curve->bytes[i] <= curve->time_us[0];
    return within_latency || must.back > 0 ? least : fmax(least, hold_seen(curve, i, must, burst_us));
}

/* must: by algorithm; the curve is of this one. */
static enum status curve_hold(const struct all_reduce_table *table, struct all_reduce_curve *of,
                              enum algorithm algorithm, const struct must *must, struct arena *arena,
                              struct error *err) {
    const struct curve *curve = &of->measured;
    if (curve->n == 0)
        return ST_OK;
    double *hold = arena_alloc(arena, curve->n, sizeof *hold);
    double *exponent = arena_alloc(arena, curve->n, sizeof *exponent);
    double *back = arena_alloc(arena, curve->n, sizeof *back);
    if (!hold || !exponent || !back)
        return error_no_memory(err);
    for (uint32_t i = 0; i < curve->n; i++) {
        enum algorithm as = algorithm;
        if (algorithm == ALGORITHM_auto)
            as = likest(table, curve->bytes[i], curve->time_us[i]);
        back[i] = must[as].back;
        hold[i] = hold_at(curve, i, must[as], table->burst_us);
    }
    for (uint32_t i = 0; i + 1 < curve->n; i++)
        exponent[i] = hold[i] > 0 ? log(hold[i + 1] / hold[i]) / log(curve->bytes[i + 1] / curve->bytes[i]) : 0;
    of->hold_per_byte_us = hold;
    of->hold_exponent = exponent;
    of->back = back;
    return ST_OK;
}

static enum status hold_curves(struct all_reduce_table *table, const struct cluster *cluster, struct arena *arena,
                               struct error *err) {
    double wire[ALGORITHM_COUNT], tree_back;
    struct must must[ALGORITHM_COUNT] = {0};
    if ((!table->any_curve && !table->any_half) || !isfinite(all_reduce_narrowest_bytes_per_us(cluster)))
        return ST_OK;
    enum status st = wire_per_byte_us(cluster, wire, &tree_back, err);
    for (int a = 0; a < ALL_REDUCE_COUNT && !st; a++)
        must[a] = (struct must){wire[a], a == ALGORITHM_tree ? tree_back / wire[a] : 0};
    if (!st)
        table->burst_us = fmax(table->burst_us, burst_us(table, must));
    for (int a = 0; a < ALL_REDUCE_COUNT && !st && table->burst_us > 0; a++)
        st = curve_hold(table, &table->curves[a], (enum algorithm)a, must, arena, err);
    must[ALGORITHM_ring].hold /= 2;
    for (int h = 0; h < HALVES && !st && table->burst_us > 0; h++)
        st = curve_hold(table, &table->halves[h], ALGORITHM_ring, must, arena, err);
    return st;
}

/* A ring lets n - 1 of n parts through each NIC, whatever is on its way from device to device of a node. */
static double half_least_per_byte_us(const struct cluster *cluster, const struct shape *s) {
    return s->n < 2 || cluster->fixed_all_reduce ? 0 : (s->n - 1) / s->n * s->beta;
}

enum status all_reduce_init(struct all_reduce_table *table, const struct cluster *cluster, double burst_us,
                            struct arena *arena, struct error *err) {
    const struct shape shape = shape_of(cluster);
    struct all_reduce_table built = {.burst_us = burst_us,
                                     .fixed = cluster->fixed_all_reduce,
                                     .gather = gather_of(cluster, &shape),
                                     .half_least_per_byte_us = half_least_per_byte_us(cluster, &shape)};
    struct all_reduce_line fixed = {cluster->all_reduce_startup_us, cluster->all_reduce_per_byte_ns / 1000};
    for (int a = 0; a < ALGORITHM_COUNT; a++) {
        built.lines[a].n = 1; /* free, on one device */
        if (cluster->n_devices > 1)
            built.lines[a] = cluster->fixed_all_reduce ? (struct all_reduce_lines){1, {fixed}}
                                                       : lines_of(cluster, &shape, (enum algorithm)a);
    }
    set_choice(&built, cluster);
    enum status st = ST_OK;
    if (cluster->n_devices > 1 && !cluster->fixed_all_reduce && cluster->n_measurements > 0)
        st = measured_curves(&built, cluster, arena, err);
    if (!st)
        st = hold_curves(&built, cluster, arena, err);
    if (!st)
        *table = built;
    return st;
}

enum status all_reduce_init_limits(struct all_reduce_table *table, const struct cluster *cluster, double burst_us,
                                   struct arena *arena, struct error *err) {
    struct cluster bare = *cluster;
    bare.transport = TRANSPORT_ideal;
    enum status st = all_reduce_init(table, &bare, burst_us, arena, err);
    if (!st && cluster_transport(cluster) == TRANSPORT_nccl && cluster->n_devices > 1 && !cluster->fixed_all_reduce) {
        const struct shape s = shape_of(&bare);
        table->lines[ALGORITHM_double_tree].line[0].per_byte_us = 2 * fmax(s.beta, s.beta_link);
    }
    return st;
}

static struct all_reduce_cost in_one_part(double startup_us, double transfer_us) {
    return (struct all_reduce_cost){.startup_us = startup_us, .transfer_us = transfer_us, .hold_us = transfer_us};
}

static struct all_reduce_cost cheapest_line(const struct all_reduce_lines *lines, double bytes) {
    struct all_reduce_cost best = in_one_part(0, 0);
    for (uint32_t i = 0; i < lines->n; i++) {
        struct all_reduce_cost c = in_one_part(lines->line[i].startup_us, lines->line[i].per_byte_us * bytes);
        if (i == 0 || c.startup_us + c.transfer_us < best.startup_us + best.transfer_us)
            best = c;
    }
    return best;
}

static struct all_reduce_cost cost_with_bursts(const struct all_reduce_curve *with, double bytes, double burst_us) {
    const struct curve *curve = &with->measured;
    uint32_t at = curve_point_below(curve, bytes);
    double latency = curve->time_us[0], hold = with->hold_per_byte_us[at] * bytes;
    if (at + 1 < curve->n && bytes > curve->bytes[0])
        hold *= pow(bytes / curve->bytes[at], with->hold_exponent[at]);
    struct all_reduce_cost cost = {latency, curve_us(curve, bytes) - latency, hold, hold * with->back[at], 0};
    if (cost.back_us > 0)
        cost.rest_us = fmax(cost.transfer_us - fmax(hold - burst_us, 0) - fmax(cost.back_us - burst_us, 0), 0);
    return cost;
}

static struct all_reduce_cost curve_cost(const struct all_reduce_curve *with, double bytes, double burst_us) {
    const struct curve *curve = &with->measured;
    if (with->hold_per_byte_us)
        return cost_with_bursts(with, bytes, burst_us);
    double time = curve_us(curve, bytes);
    double transfer = fmax(time - curve->time_us[0], curve->least_per_byte_us * bytes);
    return in_one_part(fmax(time - transfer, 0), transfer);
}

static struct all_reduce_cost cost_of(const struct all_reduce_table *table, enum algorithm algorithm, double bytes) {
    const struct all_reduce_curve *curve = &table->curves[algorithm];
    return curve->measured.n > 0 ? curve_cost(curve, bytes, table->burst_us)
                                 : cheapest_line(&table->lines[algorithm], bytes);
}

static struct all_reduce_cost cheapest(const struct all_reduce_table *table, double bytes) {
    struct all_reduce_cost best = in_one_part(INFINITY, 0);
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT; a++) {
        if (table->any_curve ? table->curves[a].measured.n == 0 : !table->choice[a])
            continue;
        struct all_reduce_cost cost = cost_of(table, (enum algorithm)a, bytes);
        if (cost.startup_us + cost.transfer_us < best.startup_us + best.transfer_us)
            best = cost;
    }
    return best;
}

/* Half of a ring all-reduce of `bytes`, what all devices have together. */
static struct all_reduce_cost half_of_ring(const struct all_reduce_table *table, double bytes) {
    struct all_reduce_cost c;
    if (table->fixed || !table->any_curve || table->curves[ALGORITHM_ring].measured.n > 0)
        c = cost_of(table, ALGORITHM_ring, bytes);
    else if (table->curves[ALGORITHM_auto].measured.n > 0)
        c = cost_of(table, ALGORITHM_auto, bytes);
    else
        c = cheapest(table, bytes);
    return (struct all_reduce_cost){
        .startup_us = c.startup_us / 2, .transfer_us = c.transfer_us / 2, .hold_us = c.hold_us / 2};
}

/* It holds the network for so long at least. */
static struct all_reduce_cost at_least(double least_us, struct all_reduce_cost cost) {
    cost.transfer_us = fmax(cost.transfer_us, least_us);
    cost.hold_us = fmax(cost.hold_us, least_us);
    return cost;
}

struct all_reduce_cost all_reduce_gather_cost(const struct all_reduce_table *table, double bytes) {
    const struct gather *gather = &table->gather;
    return at_least(gather->least_per_byte_us * bytes, table->fixed || table->any_curve
                                                           ? half_of_ring(table, gather->devices * bytes)
                                                           : cheapest_line(&table->lines[ALGORITHM_all_gather], bytes));
}

static struct all_reduce_cost gather_and_sum_cost(const struct all_reduce_table *table, double bytes) {
    struct all_reduce_cost c = all_reduce_gather_cost(table, bytes);
    c.startup_us += table->gather.sum_per_byte_us * bytes;
    return c;
}

struct all_reduce_cost all_reduce_half_cost(const struct all_reduce_table *table, enum half half, uint64_t bytes) {
    const struct all_reduce_curve *curve = &table->halves[half == HALF_gather];
    if (curve->measured.n > 0)
        return curve_cost(curve, (double)bytes, table->burst_us);
    return at_least(table->half_least_per_byte_us * (double)bytes, half_of_ring(table, (double)bytes));
}

struct all_reduce_cost all_reduce_cost(const struct all_reduce_table *table, enum algorithm algorithm, uint64_t bytes) {
    if (algorithm == ALGORITHM_all_gather)
        return gather_and_sum_cost(table, (double)bytes);
    if (algorithm != ALGORITHM_auto || table->curves[ALGORITHM_auto].measured.n > 0)
        return cost_of(table, algorithm, (double)bytes);
    if (!table->any_curve && bytes < table->small_bytes)
        return cost_of(table, table->small, (double)bytes);
    return cheapest(table, (double)bytes);
}

static double curve_least_per_byte_us(const struct all_reduce_curve *curve) {
    double least = INFINITY;
    for (uint32_t i = 0; curve->hold_per_byte_us && i < curve->measured.n; i++)
        least = fmin(least, curve->hold_per_byte_us[i]);
    return curve->hold_per_byte_us ? least : curve->measured.least_per_byte_us;
}

/* A half that was not measured takes at least half of a whole one. */
static double halves_least_per_byte_us(const struct all_reduce_table *table, double whole) {
    double sum = 0;
    for (int h = 0; h < HALVES; h++)
        sum += table->halves[h].measured.n > 0 ? curve_least_per_byte_us(&table->halves[h]) : whole / 2;
    return sum;
}

static double algorithm_least_per_byte_us(const struct all_reduce_table *table, int a) {
    const struct all_reduce_lines *lines = &table->lines[a];
    double least = INFINITY;
    if (table->curves[a].measured.n > 0)
        return curve_least_per_byte_us(&table->curves[a]);
    for (uint32_t i = 0; i < lines->n && a != ALGORITHM_auto; i++)
        least = fmin(least, lines->line[i].per_byte_us);
    return least;
}

static double whole_least_per_byte_us(const struct all_reduce_table *table) {
    double least = INFINITY;
    for (int a = 0; a < ALL_REDUCE_COUNT; a++)
        least = fmin(least, algorithm_least_per_byte_us(table, a));
    return least;
}

double all_reduce_least_per_byte_us(const struct all_reduce_table *table) {
    const double whole = whole_least_per_byte_us(table);
    return fmin(whole, halves_least_per_byte_us(table, whole));
}

double all_reduce_least_half_gather_per_byte_us(const struct all_reduce_table *table) {
    const struct all_reduce_curve *gather = &table->halves[1];
    if (gather->measured.n > 0)
        return curve_least_per_byte_us(gather);
    const bool of_ring = table->fixed || !table->any_curve || table->curves[ALGORITHM_ring].measured.n > 0;
    return (of_ring ? algorithm_least_per_byte_us(table, ALGORITHM_ring) : whole_least_per_byte_us(table)) / 2;
}

/* The least, over sizes, of a measured time less what its bytes take at the best rate. Between two measured sizes the
 * time is a straight line, so no size between them has less than both. */
static double curve_least_startup_us(const struct all_reduce_curve *with) {
    const struct curve *curve = &with->measured;
    double least = curve->time_us[0];
    for (uint32_t i = 0; !with->hold_per_byte_us && i < curve->n; i++)
        least = fmin(least, fmax(curve->time_us[i] - curve->least_per_byte_us * curve->bytes[i], 0));
    return least;
}

static double lines_least_startup_us(const struct all_reduce_lines *lines) {
    double least = INFINITY;
    for (uint32_t i = 0; i < lines->n; i++)
        least = fmin(least, lines->line[i].startup_us);
    return least;
}

static double least_whole_startup_us(const struct all_reduce_table *table) {
    double least = INFINITY;
    for (int a = 0; a < ALL_REDUCE_COUNT; a++) {
        if (table->curves[a].measured.n > 0)
            least = fmin(least, curve_least_startup_us(&table->curves[a]));
        else if (a != ALGORITHM_auto)
            least = fmin(least, lines_least_startup_us(&table->lines[a]));
    }
    return least;
}

double all_reduce_least_startup_us(const struct all_reduce_table *table) {
    const double whole = least_whole_startup_us(table);
    double least = whole / 2;
    if (!table->fixed && !table->any_curve)
        least = fmin(whole, lines_least_startup_us(&table->lines[ALGORITHM_ring]) / 2);
    for (int h = 0; h < HALVES; h++)
        if (table->halves[h].measured.n > 0)
            least = fmin(least, curve_least_startup_us(&table->halves[h]));
    return least;
}

double all_reduce_least_gather_startup_us(const struct all_reduce_table *table) {
    if (table->fixed || table->any_curve)
        return least_whole_startup_us(table) / 2;
    return lines_least_startup_us(&table->lines[ALGORITHM_all_gather]);
}
