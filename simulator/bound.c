/* Each part of the bound is a price list: what a gradient byte must cost at a weighted set of NICs. simulator/bound.h
 * says what is bounded, docs/lower-bound.md derives every list; the lemmas below are numbered as there. */
#include "simulator/bound.h"

#include <math.h>
#include <stdbool.h>

#include "simulator/timeline.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/one_machine.h"
#include "strategy/optimizer.h"

/* ---- the model ---- */

struct need {
    double ready_us, tail_us, forward_us; /* on a device of compute_scale 1 */
    double dense_bytes, served_bytes;     /* by all-reduce; by a push */
    bool sparse;                          /* may be gathered */
    bool picked;                          /* may have some elements gathered, in any number */
};

/* The fewest bytes of a variable that one device pushes, however the variable is cut. Shards of axis 0 move each row
 * and its index once; shards of another axis move the index of every row once a shard. */
static double least_served_bytes(const struct variable *v, double part) {
    enum { INDEX_BYTES = 8 };
    if (v->sparse_rows == 0)
        return part * (double)v->bytes;
    double row = part * (double)v->bytes / (double)v->shape[0];
    return (double)v->sparse_rows * (row + INDEX_BYTES);
}

static bool may_be_encoded(const struct variable *v) {
    return v->dtype == DTYPE_f32 || v->dtype == DTYPE_f64;
}

/* The time for which an encoder's all-to-all and all-gather hold the network, of that of an all-reduce of as many
 * bytes. They add nothing on their way. */
static double exchange_part(const struct cost *cost) {
    const double n = cost->cluster->n_devices, moved = 2 * (n - 1) / n;
    return fmin(1, cost->n_workers > 1
                       ? moved / cost->limit_all_reduce_wire
                       : moved / cost->limit_device_link_bytes_per_us / cost->limit_all_reduce_per_byte_us);
}

static void needs_of(const struct model *model, const struct gradient *gradients, const struct cost *cost,
                     enum lossiness lossy, double forward_us, struct need *needs) {
    const double exchange = exchange_part(cost);
    for (uint32_t i = 0; i < model->n_variables; i++) {
        const struct gradient *g = &gradients[i];
        const struct variable *v = &model->variables[g->variable];
        const double width = (double)dtype_bytes(v->dtype);
        const bool exchanged = lossy >= LOSSY_byte && may_be_encoded(v);
        const double part = lossy && may_be_encoded(v) ? 2 / width : 1;
        const double least = lossy == LOSSY_any ? 0 : exchange / width;
        needs[i] = (struct need){g->ready_us,
                                 g->tail_us,
                                 forward_us,
                                 (exchanged ? fmin(part, least) : part) * (double)g->bytes,
                                 least_served_bytes(v, part),
                                 v->sparse_rows > 0,
                                 exchanged && lossy == LOSSY_any};
    }
}

/* ---- the network ---- */

/* What a byte costs, and the factor of every release and tail. */
struct price {
    double dense, served; /* us a byte that is all-reduced / under a server */
    double scale;
    double served_lag_us; /* latency of a push and pull within the windows of this list */
};

/* What the price lists see of a cluster. */
struct shape {
    const struct cost *cost;
    double k;                     /* nodes with devices */
    double wire;                  /* bytes through each of their NICs, of each byte that is all-reduced */
    double work_rate, spare_rate; /* sums over nodes with and without devices, bytes per us */
    double work_scale;            /* sum of rate * compute_scale over nodes with devices */
    double least_scale, largest_scale;
    uint32_t narrowest, widest, slowest; /* nodes with devices; ties go to the slower one */
};

static double rate_of(const struct shape *s, uint32_t node) {
    return s->cost->limit_nic_bytes_per_us[node];
}

static double scale_of(const struct shape *s, uint32_t node) {
    return s->cost->cluster->nodes[node].compute_scale;
}

static bool is_narrower(const struct shape *s, uint32_t a, uint32_t b) {
    return rate_of(s, a) != rate_of(s, b) ? rate_of(s, a) < rate_of(s, b) : scale_of(s, a) > scale_of(s, b);
}

static void add_worker(struct shape *s, uint32_t node) {
    double rate = rate_of(s, node), scale = scale_of(s, node);
    s->work_rate += rate;
    s->work_scale += rate * scale;
    s->least_scale = fmin(s->least_scale, scale);
    s->largest_scale = fmax(s->largest_scale, scale);
    if (is_narrower(s, node, s->narrowest))
        s->narrowest = node;
    if (rate > rate_of(s, s->widest))
        s->widest = node;
    if (scale > scale_of(s, s->slowest) || (scale >= scale_of(s, s->slowest) && is_narrower(s, node, s->slowest)))
        s->slowest = node;
}

static struct shape shape_of(const struct cost *cost) {
    uint32_t first = cost->workers[0];
    struct shape s = {.cost = cost, .k = cost->n_workers, .narrowest = first, .widest = first, .slowest = first};
    s.least_scale = s.largest_scale = scale_of(&s, first);
    s.wire = cost->limit_all_reduce_wire;
    for (uint32_t i = 0; i < cost->n_workers; i++)
        add_worker(&s, cost->workers[i]);
    for (uint32_t i = 0; i < cost->cluster->n_nodes; i++)
        if (cost->cluster->nodes[i].devices == 0)
            s.spare_rate += rate_of(&s, i);
    return s;
}

/* ---- price lists ---- */

/* Latency before a node sends something of a served gradient: that of its own push, or of one within the server's node
 * and a pull by another. */
static double sending_lag_us(const struct cost *cost) {
    return fmin(cost->limit_push_us, cost->limit_local_us + cost->limit_pull_us);
}

/* Latency of a gradient within its server's node, where its own windows may carry nothing. */
static double local_lag_us(const struct cost *cost) {
    return fmin(sending_lag_us(cost), 2 * cost->limit_local_us);
}

/* Lemma 2, volume of one node. */
static struct price volume_of_one(const struct shape *s, uint32_t node) {
    return (struct price){s->wire / rate_of(s, node), 1 / rate_of(s, node), 0, 0};
}

/* Lemma 5, windows of one node. Two nodes need lemma 6 instead. */
static struct price windows_of_one(const struct shape *s, uint32_t node) {
    double scale = scale_of(s, node), lost = (scale - s->least_scale) / (s->k - 1);
    double local = local_lag_us(s->cost), lag = local + (sending_lag_us(s->cost) - local) / (s->k - 1);
    return (struct price){s->wire / rate_of(s, node), 1 / rate_of(s, node), scale - lost, lag};
}

/* Lemmas 2 and 4, all nodes, at prices at which every server costs the same. A server with devices costs `more` bytes
 * beyond the one that every node moves, a server without devices k. */
static struct price of_all(const struct shape *s, double more) {
    double spare = s->spare_rate * fmax(more, 0) / s->k, z = 1 / (s->work_rate + spare);
    double work_scale = (s->work_scale + s->work_rate * s->least_scale) / 2;
    double local = local_lag_us(s->cost), lag = (local + sending_lag_us(s->cost)) / 2;
    return (struct price){s->wire * s->k * z, (s->k + more) * z, (work_scale + spare * s->least_scale) * z,
                          spare > 0 ? local : lag};
}

/* Lemma 3, each node's own windows, summed over all nodes or (slowest_only) over those with the largest
 * compute_scale. */
static struct price own_windows(const struct shape *s, bool slowest_only) {
    double n = 0, rate = 0, scale = 0, widest = 0;
    for (uint32_t i = 0; i < s->cost->n_workers; i++) {
        uint32_t node = s->cost->workers[i];
        if (slowest_only && scale_of(s, node) < s->largest_scale)
            continue;
        n++;
        rate += rate_of(s, node);
        scale += rate_of(s, node) * scale_of(s, node);
        widest = fmax(widest, rate_of(s, node));
    }
    double between = s->cost->limit_push_us + s->cost->limit_pull_us;
    double lag_us = between + widest / rate * (local_lag_us(s->cost) - between);
    return (struct price){s->wire * n / rate, (n - 1) / rate, scale / rate, lag_us};
}

/* Lemma 6: the node that is last. Any node may be, so the widest NIC and the least compute_scale are taken. */
static struct price windows_of_last(const struct shape *s) {
    return (struct price){s->wire / rate_of(s, s->widest), 1 / rate_of(s, s->widest), s->least_scale,
                          sending_lag_us(s->cost)};
}

/* Both inequalities hold, so every weighted mean of them holds. */
static struct price mean_of(struct price a, struct price b, double part) {
    return (struct price){a.dense + part * (b.dense - a.dense), a.served + part * (b.served - a.served),
                          a.scale + part * (b.scale - a.scale),
                          a.served_lag_us + part * (b.served_lag_us - a.served_lag_us)};
}

enum { MEANS = BOUND_VOLUMES - 1, MAX_PRICES = 2 * (MEANS + 1) + 2 };

static uint32_t window_prices(const struct shape *s, struct price prices[MAX_PRICES]) {
    uint32_t n = 0;
    struct price all = of_all(s, (s->k - 3) / 2);
    prices[n++] = own_windows(s, false);
    prices[n++] = own_windows(s, true);
    if (s->k < 3) {
        prices[n++] = windows_of_last(s);
        prices[n++] = all;
        return n;
    }
    for (int i = 0; i <= MEANS; i++) {
        prices[n++] = mean_of(windows_of_one(s, s->narrowest), all, (double)i / MEANS);
        prices[n++] = mean_of(windows_of_one(s, s->slowest), all, (double)i / MEANS);
    }
    return n;
}

/* ---- the bound ---- */

struct work {
    uint32_t n;
    double earlier_us; /* of all micro-batches but the last, on a device with compute_scale 1 */
    struct gradient *gradients;
    struct need *needs;
    double *lags;
    struct machine_job *jobs;
    uint32_t *scratch;
};

static double cheaper(const struct need *need, const struct price *price) {
    return fmin(price->dense * need->dense_bytes, price->served * need->served_bytes);
}

static double volume_at(const struct work *work, const struct price *price) {
    double sum = 0;
    for (uint32_t v = 0; v < work->n; v++)
        sum += cheaper(&work->needs[v], price);
    return sum;
}

static void find_volume(const struct work *work, const struct shape *s, struct bound *bound) {
    const struct price one = volume_of_one(s, s->narrowest), all = of_all(s, s->k - 2);
    for (int i = 0; i < BOUND_VOLUMES; i++) {
        const struct price price = mean_of(one, all, (double)i / MEANS);
        bound->volumes[i].us = volume_at(work, &price);
        bound->volumes[i].byte_us = price.dense / s->wire;
        bound->volume_us = fmax(bound->volume_us, bound->volumes[i].us);
    }
}

/* Launch and latency before the network holds anything of a gradient, by the way that has the least: some of its shards
 * may go that way, however few. */
static double lag_us(const struct need *need, const struct price *price, const struct cost *cost) {
    double served = price->served_lag_us, reduced = cost->limit_all_reduce_startup_us;
    if (need->sparse)
        served = fmin(served, cost->limit_gather_startup_us);
    if (need->picked)
        reduced /= 2; /* half a ring */
    return cost->limit_message_us + fmin(reduced, served);
}

/* Of the gradients whose lag is at least lag. */
static double windows_with_lag(const struct work *work, const struct price *price, bool barrier, double lag) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < work->n; v++) {
        const struct need *need = &work->needs[v];
        double tail = work->earlier_us + (barrier ? need->forward_us : need->tail_us);
        if (work->lags[v] >= lag)
            work->jobs[n++] =
                (struct machine_job){need->ready_us * price->scale, cheaper(need, price), tail * price->scale};
    }
    return n > 0 ? lag + one_machine_value(n, work->jobs, work->scratch) : 0;
}

/* Few gradients with much lag, or all with the least. */
static double windows(const struct work *work, const struct price *price, const struct cost *cost, bool barrier) {
    double least = INFINITY, most = 0;
    for (uint32_t v = 0; v < work->n; v++) {
        work->lags[v] = lag_us(&work->needs[v], price, cost);
        least = fmin(least, work->lags[v]);
        most = fmax(most, work->lags[v]);
    }
    double all = windows_with_lag(work, price, barrier, least);
    return most > least ? fmax(all, windows_with_lag(work, price, barrier, most)) : all;
}

/* In a window a NIC can send what it has saved, on top of what its rate allows. A price list weighs NICs so that their
 * rates add up to 1, so the savings of all NICs are worth at most those of the narrowest. Over whole iterations savings
 * gain nothing: a byte that is saved was not sent before. */
static double burst_us(const struct cost *cost) {
    double narrowest = INFINITY;
    for (uint32_t i = 0; i < cost->cluster->n_nodes; i++)
        narrowest = fmin(narrowest, cost->limit_nic_bytes_per_us[i]);
    return cost->burst_bytes / narrowest;
}

static void bound_network(const struct work *work, const struct cost *cost, struct bound *bound) {
    struct shape shape = shape_of(cost);
    struct price prices[MAX_PRICES];
    uint32_t n = window_prices(&shape, prices);
    double saved_us = burst_us(cost);
    find_volume(work, &shape, bound);
    for (uint32_t i = 0; i < n; i++) {
        bound->windows_us = fmax(bound->windows_us, windows(work, &prices[i], cost, false) - saved_us);
        bound->barrier_windows_us = fmax(bound->barrier_windows_us, windows(work, &prices[i], cost, true) - saved_us);
    }
}

/* One node with several devices: all-reduces share one resource; a served gradient is summed by the launching processor
 * or crosses the device link once a device. Weights make all ways equally dear. Servers on spare nodes need no device
 * link. */
static void bound_one_node(const struct work *work, const struct cost *cost, struct bound *bound) {
    const uint32_t at = cost->workers[0];
    const struct node *node = &cost->cluster->nodes[at];
    const double link_us = 1 / cost->limit_device_link_bytes_per_us;
    const double dense = cost->limit_all_reduce_per_byte_us, served = node->devices * link_us / 2;
    if (node->devices < 2 || cost->cluster->n_nodes > 1)
        return;
    for (uint32_t v = 0; v < work->n; v++)
        if (work->needs[v].sparse)
            work->needs[v].served_bytes = 0; /* an all-gather may be cheaper than all of these */
    const double z = dense > 0 && served > 0 ? 1 / (1 / dense + 1 / served) : 0;
    const struct price price = {z, z, node->compute_scale, 2 * cost->limit_local_us};
    bound->windows_us = windows(work, &price, cost, false);
    bound->barrier_windows_us = windows(work, &price, cost, true);
}

static enum status take_work(struct work *work, const struct model *model, const struct cost *cost,
                             enum lossiness lossy, enum in_parts in_parts, struct arena *arena, struct error *err) {
    work->n = model->n_variables;
    work->gradients = arena_alloc(arena, work->n, sizeof *work->gradients);
    work->needs = arena_alloc(arena, work->n, sizeof *work->needs);
    work->lags = arena_alloc(arena, work->n, sizeof *work->lags);
    work->jobs = arena_alloc(arena, work->n, sizeof *work->jobs);
    work->scratch = arena_alloc(arena, work->n, sizeof *work->scratch);
    if (!work->gradients || !work->needs || !work->lags || !work->jobs || !work->scratch)
        return error_no_memory(err);
    const bool whole = in_parts == IN_PARTS_none;
    enum status status = gradients_list(model, 1, whole ? WITH_UPDATES : WITHOUT_UPDATES, work->gradients, err);
    if (!status)
        needs_of(model, work->gradients, cost, lossy, model->forward_us + (whole ? model->update_us : 0), work->needs);
    return status;
}

/* The least that replicas of shards of any size may take in place of all-reduces. */
static struct cost with_replicas(const struct cost *cost) {
    struct cost with = *cost;
    with.limit_all_reduce_wire = cost->limit_replicas_wire;
    with.limit_all_reduce_per_byte_us = cost->limit_replicas_per_byte_us;
    with.limit_all_reduce_startup_us = cost->limit_replicas_startup_us;
    return with;
}

enum status bound_of_micro_batches(const struct model *model, const struct cost *cost, enum lossiness lossy,
                                   enum in_parts in_parts, uint32_t micro_batches, struct bound *out,
                                   struct error *err) {
    const struct cost with = in_parts == IN_PARTS_replicas ? with_replicas(cost) : *cost;
    struct bound bound = {0};
    struct arena arena = {0};
    struct work work;
    enum status status = take_work(&work, model, &with, lossy, in_parts, &arena, err);
    if (!status) {
        const double pass_us = model->forward_us + model->backward_us;
        const double update_us = model->update_us / (in_parts == IN_PARTS_none ? 1 : cost->cluster->n_devices);
        work.earlier_us = (micro_batches - 1) * pass_us;
        bound.compute_us = (micro_batches * pass_us + update_us) * cost->cluster->nodes[cost->slowest].compute_scale;
        if (cost->n_workers > 1)
            bound_network(&work, &with, &bound);
        else
            bound_one_node(&work, &with, &bound);
        bound.iteration_us = fmax(bound.compute_us, fmax(bound.volume_us, bound.windows_us));
        bound.barrier_us = fmax(bound.iteration_us, bound.barrier_windows_us);
        *out = bound;
    }
    arena_release(&arena);
    return status;
}

enum status bound_iteration(const struct model *model, const struct cost *cost, enum lossiness lossy,
                            enum in_parts in_parts, struct bound *out, struct error *err) {
    return bound_of_micro_batches(model, cost, lossy, in_parts, 1, out, err);
}

/* ---- within a budget of memory ---- */

/* Bytes of parameters that a device can have between its forward and its backward pass. Then all activations are there,
 * and of the optimizer's states a part for each device or more. */
static double room_between_passes(const struct model *model, const struct cost *cost, uint64_t memory_bytes) {
    double room = (double)memory_bytes, states = 0;
    for (uint32_t i = 0; i < model->n_operators; i++)
        if (!model->operators[i].backward)
            room -= (double)model->operators[i].activation_bytes;
    for (uint32_t v = 0; v < model->n_variables; v++)
        states += (double)optimizer_bytes(&model->optimizer, &model->variables[v], model->variables[v].elements);
    return fmax(room - states / cost->cluster->n_devices, 0);
}

/* The least that a byte of parameters costs: it stays whole at the price, or a device keeps 1 / ranks of it, and
 * gathers it again. */
static double least_of_byte(const struct cost *cost, double price) {
    double least = price;
    for (uint32_t i = 0; i < cost->n_limit_gathers; i++)
        least = fmin(least, cost->limit_gathers[i].wire + price / cost->limit_gathers[i].ranks);
    return least;
}

/* Every price gives a bound (docs/lower-bound.md, lemma 7). The best is one at which two ways cost the same. */
double bound_again_bytes(const struct model *model, const struct cost *cost, uint64_t memory_bytes) {
    if (memory_bytes == 0 || cost->n_workers < 2)
        return 0;
    const double room = room_between_passes(model, cost, memory_bytes), bytes = (double)model->bytes;
    double most = 0;
    for (uint32_t i = 0; i < cost->n_limit_gathers; i++) {
        const struct gather_limit *a = &cost->limit_gathers[i];
        const double stays = a->wire / (1 - 1.0 / a->ranks);
        most = fmax(most, bytes * least_of_byte(cost, stays) - stays * room);
        for (uint32_t j = 0; j < i; j++) {
            const struct gather_limit *b = &cost->limit_gathers[j];
            const double price = (a->wire - b->wire) / (1.0 / b->ranks - 1.0 / a->ranks);
            if (price > 0 && isfinite(price))
                most = fmax(most, bytes * least_of_byte(cost, price) - price * room);
        }
    }
    return most;
}

void bound_within(struct bound *bound, const struct model *model, const struct cost *cost, uint64_t memory_bytes) {
    const double again = bound_again_bytes(model, cost, memory_bytes);
    for (int i = 0; i < BOUND_VOLUMES; i++)
        bound->iteration_us = fmax(bound->iteration_us, bound->volumes[i].us + again * bound->volumes[i].byte_us);
    bound->barrier_us = fmax(bound->barrier_us, bound->iteration_us);
}

enum status bounds_find(const struct model *model, const struct cost *cost, struct bounds *out, struct error *err) {
    struct bounds bounds = {.model = model, .cost = cost};
    enum status st = ST_OK;
    for (uint32_t i = 0; i < IN_PARTS_COUNT * LOSSINESS_COUNT && !st; i++) {
        const uint32_t in_parts = i % IN_PARTS_COUNT, lossy = i / IN_PARTS_COUNT;
        st = bound_iteration(model, cost, (enum lossiness)lossy, (enum in_parts)in_parts, &bounds.of[in_parts][lossy],
                             err);
    }
    if (!st)
        *out = bounds;
    return st;
}

enum status bounds_of(const struct bounds *bounds, const struct prediction *prediction, uint64_t memory_bytes,
                      double *us, struct error *err) {
    struct bound bound = bounds->of[prediction->in_parts][prediction->lossy];
    enum status st = ST_OK;
    if (prediction->micro_batches > 1)
        st = bound_of_micro_batches(bounds->model, bounds->cost, prediction->lossy, prediction->in_parts,
                                    prediction->micro_batches, &bound, err);
    if (!st && prediction->lossy == LOSSY_none)
        bound_within(&bound, bounds->model, bounds->cost, memory_bytes);
    *us = bound.iteration_us;
    return st;
}

bool bounds_is_plain(const struct bounds *bounds, const struct prediction *prediction) {
    const enum in_parts most = bounds->model->update_us > 0 ? IN_PARTS_none : IN_PARTS_updates;
    return prediction->in_parts <= most && prediction->lossy == LOSSY_none && prediction->micro_batches <= 1;
}
