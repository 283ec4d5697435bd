/* Predictions of memory on random models, clusters and strategies, against
 *   - a plain reading: at each place of an iteration, whether each thing lies there, found by walking from where it
 *     begins until what it waits for has come; sizes from the strategy, not from the plan's pieces;
 *   - the timeline: what a run of it holds at any moment is never more than the peak. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "simulator/timeline.h"
#include "strategy/encoder.h"
#include "strategy/memory.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"

/* Release builds alone run all. */
#ifdef NDEBUG
enum { INSTANCES = 1000, RUNS = 300 };
#else
enum { INSTANCES = 30, RUNS = 20 };
#endif
enum { MOST_TRANSFERS = 400, PASSES = 3 };
#define ROUNDING_US 1e-6

struct instance {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
};

static void draw(struct rng *rng, struct instance *i) {
    struct error err = {0};
    cJSON *json = random_model_json(rng);
    random_memory(rng, json);
    assert_ok(model_read(json, "random", &i->model, &err));
    cJSON_Delete(json);
    assert_ok(random_cluster(rng, &i->cluster, &err));
    assert_ok(any_strategy(rng, &i->model, &i->cluster, &i->strategy, &err));
    if (coin(rng, 0.2))
        any_accumulation(rng, &i->strategy);
    assert_ok(strategy_seal(&i->strategy, &i->model, &i->cluster, &err));
    assert_ok(plan_lower(&i->model, &i->cluster, &i->strategy, &i->plan, &err));
}

static void release(struct instance *i) {
    plan_release(&i->plan);
    strategy_release(&i->strategy);
    cluster_release(&i->cluster);
    model_release(&i->model);
}

/* ---- what a thing is worth ---- */

static uint32_t devices_in_widest_node(const struct cluster *cluster) {
    uint32_t most = 1;
    for (uint32_t n = 0; n < cluster->n_nodes; n++)
        most = cluster->nodes[n].devices > most ? cluster->nodes[n].devices : most;
    return most;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* strategy/optimizer.h in other words. */
static uint64_t plain_states(const struct optimizer *o, const struct variable *v, uint64_t elements) {
    static const struct {
        enum optimizer_kind kind;
        uint64_t states;
    } table[] = {{OPTIMIZER_sgd, 0},  {OPTIMIZER_momentum, 1}, {OPTIMIZER_adagrad, 1}, {OPTIMIZER_rmsprop, 1},
                 {OPTIMIZER_lion, 1}, {OPTIMIZER_adam, 2},     {OPTIMIZER_adamw, 2},   {OPTIMIZER_lamb, 2}};
    const bool copied = o->master_copy && dtype_bytes(v->dtype) == 2;
    const uint64_t width = copied ? 4 : dtype_bytes(v->dtype), copy = copied ? 4 * elements : 0;
    if (o->kind == OPTIMIZER_unknown)
        return 0;
    if (o->kind == OPTIMIZER_of_bytes)
        return (uint64_t)ceil(o->bytes_per_element * (double)elements);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == o->kind)
            return table[i].states * width * elements + copy;
    uint64_t factors = v->elements; /* adafactor */
    if (v->rank > 1) {
        uint64_t matrices = 1;
        for (uint32_t axis = 0; axis + 2 < v->rank; axis++)
            matrices *= v->shape[axis];
        factors = matrices * (v->shape[v->rank - 1] + v->shape[v->rank - 2]);
    }
    return divide_up(factors * width * elements, v->elements) + copy;
}

static const struct group *group_with_parts(const struct instance *i, const struct variable_sync *part) {
    const struct group *group = part->kind == SYNC_ALL_REDUCE ? &i->strategy.groups[part->group] : NULL;
    return group && group->sharded == SHARDED_parameters ? group : NULL;
}

static uint64_t width_of(enum carried carried, const struct variable *variable) {
    return carried == CARRIED_f32 ? 4 : carried ? 2 : dtype_bytes(variable->dtype);
}

/* Bytes of an element on its way to the sum. */
static uint64_t sum_width(const struct instance *i, uint32_t v, const struct variable_sync *part) {
    const struct group *group = group_with_parts(i, part);
    return group ? width_of(group->summed_as, &i->model.variables[v])
                 : dtype_bytes(strategy_wire_dtype(&i->model.variables[v], part));
}

/* And of a gradient as it is made, or where micro-batches are added up, as they are. */
static uint64_t gradient_width(const struct instance *i, uint32_t v, const struct variable_sync *part) {
    const struct group *group = group_with_parts(i, part);
    const bool adds_up = i->strategy.micro_batches > 1 && i->strategy.synchronize == SYNCHRONIZE_last;
    return width_of(!group ? CARRIED_own : adds_up ? group->summed_as : group->gathered_as, &i->model.variables[v]);
}

/* Bytes of the gradient of variable v in memory. */
static uint64_t plain_gradient(const struct instance *i, uint32_t v) {
    const struct variable *variable = &i->model.variables[v];
    const struct variable_sync *sync = &i->strategy.variables[v];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < sync_parts(sync); k++) {
        const uint64_t wire = plan_part_bytes(&i->strategy, variable, sync, k);
        bytes += wire / sum_width(i, v, sync_part(sync, k)) * gradient_width(i, v, sync_part(sync, k));
    }
    return bytes;
}

/* Of an encoder: whether what it reads must be made. */
static bool is_copied(const struct message *m) {
    return m->n_pieces > 1 || (m->encoder ? m->dtype != DTYPE_f32 : m->encoded_bytes > 0);
}

/* The run that a message is copied into, without what an encoder makes. NCCL's parts are equal. */
static uint64_t copy_of(const struct instance *i, const struct message *m) {
    const uint64_t width = dtype_bytes(m->dtype), elements = (m->encoder ? message_piece_bytes(m) : m->bytes) / width,
                   parts = m->ranks > 0 ? m->ranks : i->cluster.n_devices, equal = divide_up(elements, parts) * parts;
    if (m->half && equal > elements && cluster_transport(&i->cluster) == TRANSPORT_nccl)
        return equal * width;
    return !is_copied(m) ? 0 : m->encoder ? elements * sizeof(float) : m->bytes;
}

/* What an encoder makes of the message, and what comes in from all devices. Device k adds the blocks from k * blocks /
 * n on. */
static uint64_t encoded_of(const struct instance *i, const struct message *m) {
    if (m->encoder == ENCODING_topk)
        return i->cluster.n_devices * m->bytes;
    if (m->encoder == ENCODING_powersgd) {
        const uint64_t first = m->bytes - m->second_bytes, devices = i->cluster.n_devices;
        const uint64_t own = divide_up(first, 4 * devices), other = divide_up(m->second_bytes, 4 * devices);
        if (cluster_transport(&i->cluster) == TRANSPORT_nccl) /* all-reduced where it lies */
            return m->bytes;
        return m->bytes + devices * 4 * (own > other ? own : other);
    }
    const uint64_t elements = message_piece_bytes(m) / dtype_bytes(m->dtype), n = i->cluster.n_devices,
                   block = m->encoder ? (uint64_t)m->figure : 1, blocks = divide_up(elements, block);
    uint64_t most = 0;
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t own = (k + 1) * blocks / n - k * blocks / n;
        most = own > most ? own : most;
    }
    const uint64_t part = most * block < elements ? most * block : elements;
    const uint64_t parts = n * (part + divide_up(part, block) * sizeof(float));
    return !m->encoder ? 0 : parts + (cluster_transport(&i->cluster) == TRANSPORT_nccl ? parts : m->bytes);
}

/* The group that a message of an all-reduce, or of its halves, is of. */
static uint32_t group_of(const struct instance *i, const struct message *m) {
    const struct piece *piece = &i->plan.pieces[m->first_piece];
    const struct variable *variable = &i->model.variables[piece->variable];
    const struct variable_sync *sync = &i->strategy.variables[piece->variable];
    uint32_t k = 0;
    for (uint64_t end = 0; k < sync_parts(sync); k++) {
        end += plan_part_bytes(&i->strategy, variable, sync, k);
        if (piece->offset_bytes < end)
            break;
    }
    return sync_part(sync, k)->group;
}

static bool shards_parameters(const struct instance *i, const struct variable_sync *part) {
    return part->kind == SYNC_ALL_REDUCE && i->strategy.groups[part->group].sharded == SHARDED_parameters;
}

/* ---- micro-batches ---- */

static uint32_t pass_steps(const struct instance *i) {
    return i->plan.n_steps / i->strategy.micro_batches;
}

static uint32_t last_pass(const struct instance *i) {
    return i->strategy.micro_batches - 1;
}

/* In which micro-batch the message is ready. */
static uint32_t pass_of(const struct instance *i, const struct message *m) {
    return m->ready / pass_steps(i);
}

static bool sums_each(const struct instance *i) {
    return i->strategy.micro_batches > 1 && i->strategy.synchronize != SYNCHRONIZE_last;
}

/* When operator o ends in a micro-batch. */
static uint32_t step_in(const struct instance *i, uint32_t pass, uint32_t o) {
    return pass * pass_steps(i) + i->plan.step_of[o];
}

/* The step that makes the gradient of variable v in a micro-batch. */
static uint32_t made_in(const struct instance *i, uint32_t pass, uint32_t v) {
    return step_in(i, pass, i->model.variables[v].producer);
}

static bool is_of_parameters(const struct instance *i, const struct message *m, enum half half) {
    return m->half == half && i->strategy.groups[group_of(i, m)].sharded == SHARDED_parameters;
}

/* A reduce-scatter whose gradients nobody else needs, or after which nothing waits but the next sum or the update: it
 * takes gradients as it is packed. */
static bool takes_gradients(const struct instance *i, const struct message *m) {
    return m->half == HALF_scatter &&
           (i->strategy.groups[group_of(i, m)].sharded >= SHARDED_gradients || pass_of(i, m) < last_pass(i));
}

/* What was packed for the first half is the second's. */
static bool has_no_gradients(const struct instance *i, const struct message *m) {
    const enum sharded sharded = i->strategy.groups[group_of(i, m)].sharded;
    return m->half == HALF_replicas || (m->half == HALF_gather && (sharded == SHARDED_parameters ||
                                                                   (sharded == SHARDED_gradients && is_copied(m))));
}

static bool has_variable(const struct instance *i, const struct message *m, uint32_t v) {
    for (uint32_t k = 0; k < m->n_pieces; k++)
        if (i->plan.pieces[m->first_piece + k].variable == v)
            return true;
    return false;
}

/* Whether the gradients of all micro-batches of variable v are added up in one place: they are not if every device
 * keeps its part alone. */
static bool stays_whole(const struct instance *i, uint32_t v) {
    bool parts = sums_each(i);
    for (uint32_t m = 0; m < i->plan.n_messages && parts; m++)
        parts = i->plan.messages[m].half != HALF_none || !has_variable(i, &i->plan.messages[m], v);
    return !parts;
}

/* The first of the micro-batches whose sums a device's part of this one, of the last, is added to. */
static uint32_t first_of_sums(const struct instance *i, const struct message *m) {
    for (uint32_t k = 0; k < i->plan.n_messages && sums_each(i); k++) {
        const struct message *other = &i->plan.messages[k];
        if (pass_of(i, other) == 0 && other->half == HALF_scatter && other->first_piece == m->first_piece)
            return k;
    }
    return (uint32_t)(m - i->plan.messages);
}

static bool sums_in_nodes(const struct instance *i, const struct message *m) {
    return devices_in_widest_node(&i->cluster) > 1 &&
           (m->kind == SYNC_ALL_REDUCE ? m->algorithm == ALGORITHM_hierarchical : m->local_reduction);
}

/* How many devices share the message: all, or those that share the shards, or keep a group's parts between passes. */
static uint64_t sharers_of(const struct instance *i, const struct message *m) {
    const struct group *group = &i->strategy.groups[group_of(i, m)];
    const bool again = m->half == HALF_gather && m->gate % pass_steps(i) >= i->plan.n_forward_steps;
    if (group->sharded != SHARDED_parameters)
        return i->cluster.n_devices;
    if (again && group->reshard_ranks > 0)
        return group->reshard_ranks;
    return i->strategy.shard_ranks > 0 ? i->strategy.shard_ranks : i->cluster.n_devices;
}

static uint64_t part_of(const struct instance *i, const struct message *m) {
    return divide_up(m->bytes / dtype_bytes(m->dtype), sharers_of(i, m));
}

/* What comes in: of a reduce-scatter a part, among replicas a part of that. */
static uint64_t incoming_of(const struct instance *i, const struct message *m) {
    const uint64_t replicas = i->cluster.n_devices / sharers_of(i, m);
    return divide_up(part_of(i, m), m->half == HALF_replicas ? replicas : 1) * dtype_bytes(m->dtype);
}

/* Bytes of a device's part of a sum while it waits: in the model's type, but for replicas in the wider one. */
static uint64_t sum_of(const struct instance *i, const struct message *m) {
    const uint64_t own = dtype_bytes(i->model.variables[i->plan.pieces[m->first_piece].variable].dtype);
    const uint64_t sums = dtype_bytes(m->dtype);
    return part_of(i, m) * (sharers_of(i, m) < i->cluster.n_devices && sums > own ? sums : own);
}

static uint64_t shared_states(const struct instance *i, const struct message *m) {
    uint64_t states = 0;
    for (uint32_t k = 0; k < m->n_pieces; k++) {
        const struct piece *piece = &i->plan.pieces[m->first_piece + k];
        states += plain_states(&i->model.optimizer, &i->model.variables[piece->variable],
                               piece->bytes / dtype_bytes(m->dtype));
    }
    const uint64_t elements = m->bytes / dtype_bytes(m->dtype);
    return divide_up(states * part_of(i, m), elements);
}

/* ---- the plain reading ---- */

/* Walking from `from` to `place` in the cycle of places, is `gate` passed or reached? */
static bool over(uint32_t from, uint32_t place, uint32_t gate, uint32_t places) {
    for (uint32_t at = from;; at = (at + 1) % places) {
        if (at == gate)
            return true;
        if (at == place)
            return false;
    }
}

/* Even places are steps, and odd ones the moments after them. */
static uint32_t places_of(const struct instance *i) {
    return 2 * i->plan.n_steps;
}

/* Whether the message still needs what step `made` makes. */
static bool needs(const struct instance *i, const struct message *m, uint32_t made, uint32_t place) {
    if (has_no_gradients(i, m))
        return false;
    const bool goes_as_packed = takes_gradients(i, m) && is_copied(m);
    return !over(2 * made, place, goes_as_packed ? (2 * m->ready + 2) % places_of(i) : 2 * m->gate, places_of(i));
}

/* Whether the gradient that is there since micro-batch `pass` is needed by a message of micro-batch `travels`. */
static bool is_needed(const struct instance *i, uint32_t v, uint32_t pass, uint32_t travels, uint32_t place) {
    const uint32_t made = made_in(i, pass, v);
    bool needed = place == 2 * made;
    for (uint32_t m = 0; m < i->plan.n_messages && !needed; m++)
        needed = pass_of(i, &i->plan.messages[m]) == travels && has_variable(i, &i->plan.messages[m], v) &&
                 needs(i, &i->plan.messages[m], made, place);
    return needed;
}

static bool has_gradient(const struct instance *i, uint32_t v, uint32_t place) {
    if (stays_whole(i, v))
        return is_needed(i, v, 0, last_pass(i), place);
    for (uint32_t pass = 0; pass <= last_pass(i); pass++)
        if (is_needed(i, v, pass, pass, place))
            return true;
    return false;
}

/* Whether a device's part of the sum is there, apart from what the message brings. */
static bool has_sum(const struct instance *i, const struct message *m, uint32_t place) {
    const uint32_t since = 2 * i->plan.messages[first_of_sums(i, m)].gate;
    if (m->half != HALF_scatter || pass_of(i, m) != last_pass(i))
        return false;
    if (is_of_parameters(i, m, HALF_scatter))
        return place >= since && place + 1 < places_of(i);
    return sums_each(i) && !over(since, place, 2 * i->plan.messages[m->other].gate, places_of(i));
}

static uint64_t gradients_at(const struct instance *i, uint32_t place) {
    uint64_t sum = 0;
    for (uint32_t v = 0; v < i->model.n_variables; v++)
        sum += has_gradient(i, v, place) ? plain_gradient(i, v) : 0;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        sum += has_sum(i, message, place) ? sum_of(i, message) : 0;
    }
    return sum;
}

/* At any place. */
static uint64_t parameters_of(const struct instance *i) {
    uint64_t sum = i->model.bytes;
    for (uint32_t v = 0; v < i->model.n_variables; v++) {
        const struct variable_sync *sync = &i->strategy.variables[v];
        for (uint32_t k = 0; k < sync_parts(sync); k++)
            if (shards_parameters(i, sync_part(sync, k)))
                sum -= plan_part_bytes(&i->strategy, &i->model.variables[v], sync, k) /
                       sum_width(i, v, sync_part(sync, k)) * dtype_bytes(i->model.variables[v].dtype);
    }
    for (uint32_t m = 0; m < i->plan.n_messages; m++)
        if (is_of_parameters(i, &i->plan.messages[m], HALF_scatter) && pass_of(i, &i->plan.messages[m]) == last_pass(i))
            sum += part_of(i, &i->plan.messages[m]) *
                   dtype_bytes(i->model.variables[i->plan.pieces[i->plan.messages[m].first_piece].variable].dtype);
    return sum;
}

static bool reads(const struct operator* op, uint32_t v) {
    for (uint32_t r = 0; r < op->n_reads; r++)
        if (op->reads[r] == v)
            return true;
    return false;
}

static bool has_part_in(const struct instance *i, uint32_t v, uint32_t g) {
    const struct variable_sync *sync = &i->strategy.variables[v];
    for (uint32_t k = 0; k < sync_parts(sync); k++)
        if (shards_parameters(i, sync_part(sync, k)) && sync_part(sync, k)->group == g)
            return true;
    return false;
}

/* The last step that uses what the message gathers, until it is gathered again. */
static uint32_t last_use(const struct instance *i, const struct message *m) {
    const uint32_t g = group_of(i, m), pass = m->gate / pass_steps(i);
    uint32_t last = m->gate;
    if (m->gate % pass_steps(i) < i->plan.n_forward_steps && !i->strategy.groups[g].keeps_gathered) {
        for (uint32_t o = 0; o < i->model.n_operators; o++)
            for (uint32_t v = 0; v < i->model.n_variables; v++)
                if (step_in(i, pass, o) > last && reads(&i->model.operators[o], v) && has_variable(i, m, v))
                    last = step_in(i, pass, o);
        return last;
    }
    for (uint32_t v = 0; v < i->model.n_variables; v++)
        if (has_part_in(i, v, g) && made_in(i, pass, v) > last)
            last = made_in(i, pass, v);
    return last;
}

/* The last forward step that reads something of what message m gathers again, in the same micro-batch. */
static uint32_t last_forward_use(const struct instance *i, const struct message *m) {
    for (uint32_t k = 0; k < i->plan.n_messages; k++) {
        const struct message *first = &i->plan.messages[k];
        const struct piece *a = &i->plan.pieces[first->first_piece], *b = &i->plan.pieces[m->first_piece];
        if (is_of_parameters(i, first, HALF_gather) && first->gate / pass_steps(i) == m->gate / pass_steps(i) &&
            first->gate % pass_steps(i) < i->plan.n_forward_steps && a->variable == b->variable &&
            a->offset_bytes == b->offset_bytes)
            return last_use(i, first);
    }
    fail_msg("what is gathered again was not gathered");
    return 0;
}

/* Whether the device keeps its part among fewer devices, which gather it again later. */
static bool is_kept_between(const struct instance *i, const struct message *m, uint32_t place) {
    return m->gate % pass_steps(i) >= i->plan.n_forward_steps && i->strategy.groups[group_of(i, m)].reshard_ranks > 0 &&
           place > 2 * last_forward_use(i, m) && place < 2 * m->gate;
}

static void gathered_at(const struct instance *i, uint32_t place, uint64_t part[MEMORY_PARTS]) {
    const uint32_t places = places_of(i);
    for (uint32_t k = 0; k < i->plan.n_messages; k++) {
        const struct message *m = &i->plan.messages[k];
        if (!is_of_parameters(i, m, HALF_gather))
            continue;
        const uint32_t start = 2 * m->ready + 1, unpacked = is_copied(m) ? 2 * m->gate : start;
        part[MEMORY_gathered] += over(unpacked, place, 2 * last_use(i, m) + 1, places) ? 0 : m->bytes;
        part[MEMORY_gathered] += is_kept_between(i, m, place) ? part_of(i, m) * dtype_bytes(m->dtype) : 0;
        part[MEMORY_buffers] += over(start, place, 2 * m->gate + 1, places) ? 0 : copy_of(i, m);
    }
}

static uint64_t states_of_all(const struct instance *i) {
    uint64_t sum = 0;
    for (uint32_t v = 0; v < i->model.n_variables; v++) {
        uint64_t alone = i->model.variables[v].elements;
        for (uint32_t m = 0; m < i->plan.n_messages; m++)
            for (uint32_t k = 0; k < i->plan.messages[m].n_pieces; k++) {
                const struct piece *piece = &i->plan.pieces[i->plan.messages[m].first_piece + k];
                if (piece->variable == v && i->plan.messages[m].half == HALF_scatter &&
                    pass_of(i, &i->plan.messages[m]) == last_pass(i))
                    alone -= piece->bytes / dtype_bytes(i->plan.messages[m].dtype);
            }
        sum += plain_states(&i->model.optimizer, &i->model.variables[v], alone);
    }
    for (uint32_t m = 0; m < i->plan.n_messages; m++)
        if (i->plan.messages[m].half == HALF_scatter && pass_of(i, &i->plan.messages[m]) == last_pass(i))
            sum += shared_states(i, &i->plan.messages[m]);
    return sum;
}

static uint64_t activations_at(const struct instance *i, uint32_t place) {
    uint64_t sum = 0;
    for (uint32_t o = 0; o < i->model.n_operators; o++) {
        const struct operator* op = & i->model.operators[o];
        for (uint32_t pass = 0; pass <= last_pass(i); pass++)
            if (2 * step_in(i, pass, o) <= place && place <= 2 * step_in(i, pass, op->kept_for))
                sum += op->activation_bytes;
    }
    return sum;
}

static uint64_t temporary_at(const struct instance *i, uint32_t place) {
    uint64_t most = 0;
    for (uint32_t o = 0; o < i->model.n_operators; o++)
        for (uint32_t pass = 0; pass <= last_pass(i); pass++)
            if (place == 2 * step_in(i, pass, o) && i->model.operators[o].temporary_bytes > most)
                most = i->model.operators[o].temporary_bytes;
    return most;
}

/* Whether the message may be on its way at the place. */
static bool may_go(const struct instance *i, const struct message *m, uint32_t place) {
    return !over(2 * m->ready + 1, place, 2 * m->gate, places_of(i));
}

static void messages_at(const struct instance *i, uint32_t place, uint64_t part[MEMORY_PARTS]) {
    const uint64_t credit = i->plan.credit_bytes, n = i->cluster.n_devices,
                   others = devices_in_widest_node(&i->cluster) - 1;
    uint64_t plain = 0, encoded = 0, rows = 0, largest = 0, largest_rows = 0;
    for (uint32_t k = 0; k < i->plan.n_messages; k++) {
        const struct message *m = &i->plan.messages[k];
        const bool all_gather = m->kind == SYNC_ALL_REDUCE && m->algorithm == ALGORITHM_all_gather;
        const bool limited = m->kind == SYNC_ALL_REDUCE && !m->half && !sums_in_nodes(i, m) && !m->encoder;
        if (limited && is_copied(m))
            largest = m->bytes > largest ? m->bytes : largest;
        if (all_gather)
            largest_rows = m->bytes > largest_rows ? m->bytes : largest_rows;
        if (m->encoder == ENCODING_topk) /* what was never sent stays */
            part[MEMORY_encoding] += message_piece_bytes(m) / dtype_bytes(m->dtype) * sizeof(float);
        if (m->encoder == ENCODING_powersgd)
            part[MEMORY_encoding] += message_piece_bytes(m) / dtype_bytes(m->dtype) * sizeof(float) + m->second_bytes;
        if (m->half == HALF_gather || !may_go(i, m, place))
            continue;
        const uint64_t cast = m->encoder ? 0 : m->encoded_bytes;
        if (m->half == HALF_replicas) {
            part[MEMORY_buffers] += incoming_of(i, m);
            continue;
        }
        *(limited ? &plain : &part[MEMORY_buffers]) += copy_of(i, m) - cast;
        *(limited ? &encoded : &part[MEMORY_encoding]) += cast;
        part[MEMORY_encoding] += encoded_of(i, m);
        rows += all_gather ? m->bytes : 0;
        part[MEMORY_buffers] += sums_in_nodes(i, m) ? others * m->bytes : 0;
        part[MEMORY_buffers] += m->half ? incoming_of(i, m) : 0;
    }
    const uint64_t most = credit > largest ? credit : largest,
                   most_rows = credit > largest_rows ? credit : largest_rows;
    if (plain + encoded > most) {
        encoded = encoded < most ? encoded : most;
        plain = most - encoded;
    }
    part[MEMORY_encoding] += encoded;
    part[MEMORY_buffers] += plain + n * (rows < most_rows ? rows : most_rows);
}

static void check_against_plain_reading(const struct instance *i) {
    struct error err = {0};
    struct memory memory;
    assert_ok(memory_of_plan(&i->plan, &memory, &err));
    const uint64_t parameters = parameters_of(i), states = states_of_all(i);
    uint64_t peak = 0, buffers = 0, at_peak[MEMORY_PARTS] = {0};
    uint32_t peak_place = 0;
    for (uint32_t place = 0; place < places_of(i); place++) {
        uint64_t part[MEMORY_PARTS] = {[MEMORY_parameters] = parameters, [MEMORY_optimizer] = states}, sum = 0;
        part[MEMORY_gradients] = gradients_at(i, place);
        part[MEMORY_activations] = activations_at(i, place);
        part[MEMORY_temporary] = temporary_at(i, place);
        messages_at(i, place, part);
        gathered_at(i, place, part);
        for (int p = 0; p < MEMORY_PARTS; p++)
            sum += part[p];
        const uint64_t these = part[MEMORY_buffers] + part[MEMORY_encoding];
        buffers = these > buffers ? these : buffers;
        if (sum <= peak)
            continue;
        peak = sum;
        peak_place = place;
        memcpy(at_peak, part, sizeof part);
    }
    for (int p = 0; p < MEMORY_PARTS; p++)
        if (memory.part_bytes[p] != at_peak[p])
            fail_msg("%s: %llu, by a plain reading %llu", memory_part_name((enum memory_part)p),
                     (unsigned long long)memory.part_bytes[p], (unsigned long long)at_peak[p]);
    assert_int_equal(memory.peak_bytes, peak);
    assert_int_equal(memory.buffers_bytes, buffers);
    assert_int_equal(2 * memory.peak_step - memory.peak_between, peak_place);
    assert_int_equal(memory.knows_optimizer, i->model.optimizer.kind != OPTIMIZER_unknown);
}

static void the_peak_and_its_parts_are_those_of_a_plain_reading(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int n = 0; n < INSTANCES; n++) {
        struct instance i;
        draw(&rng, &i);
        check_against_plain_reading(&i);
        release(&i);
    }
}

/* ---- a run of the timeline ---- */

/* One node's run: when each step began and ended and each message began and ended, by iteration. */
struct run {
    const struct instance *of;
    uint32_t node;
    double (*step)[2][PASSES + 2], (*message)[2][PASSES + 2];
    uint32_t *n_step, *n_begun, *n_ended;
};

static void note(void *context, const struct interval *interval) {
    struct run *run = context;
    const uint32_t k = interval->index;
    if (interval->kind != INTERVAL_ALL_REDUCE && interval->node != run->node)
        return;
    if (interval->kind == INTERVAL_COMPUTE && run->n_step[k] < PASSES + 2) {
        run->step[k][0][run->n_step[k]] = interval->start_us;
        run->step[k][1][run->n_step[k]++] = interval->end_us;
    }
    if ((interval->kind == INTERVAL_ALL_REDUCE || interval->kind == INTERVAL_PUSH) && run->n_begun[k] < PASSES + 2)
        run->message[k][0][run->n_begun[k]++] = interval->start_us;
    if ((interval->kind == INTERVAL_ALL_REDUCE || interval->kind == INTERVAL_PULL) && run->n_ended[k] < PASSES + 2)
        run->message[k][1][run->n_ended[k]++] = interval->end_us;
}

/* `bytes` come or go. */
struct event {
    double at_us;
    int64_t bytes;
};

static int compare_events(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* what goes goes first */
}

struct events {
    struct event *items;
    size_t n;
};

/* What begins as something ends may have a time less by a rounding. */
static void add_span(struct events *events, double from_us, double until_us, uint64_t bytes) {
    events->items[events->n++] = (struct event){from_us + ROUNDING_US, (int64_t)bytes};
    events->items[events->n++] = (struct event){until_us, -(int64_t)bytes};
}

/* From the forward step's begin to the end of the backward step that comes next. */
static void add_activations(const struct run *run, uint32_t pass, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t o = 0; o < i->model.n_operators; o++) {
        const struct operator* op = & i->model.operators[o];
        const uint32_t first = step_in(i, pass, o), last = step_in(i, pass, op->kept_for);
        for (uint32_t n = 0; op->activation_bytes && n < run->n_step[first]; n++)
            for (uint32_t end = 0; end < run->n_step[last]; end++)
                if (run->step[last][1][end] >= run->step[first][1][n]) {
                    add_span(events, run->step[first][0][n], run->step[last][1][end], op->activation_bytes);
                    break;
                }
    }
}

static void add_temporary(const struct run *run, struct events *events) {
    for (uint32_t step = 0; step < run->of->plan.n_steps; step++)
        for (uint32_t n = 0; n < run->n_step[step]; n++)
            add_span(events, run->step[step][0][n], run->step[step][1][n], temporary_at(run->of, 2 * step));
}

/* Until when the n-th gradient of variable v is needed, which travels in that micro-batch; negative: the run ended
 * before. */
static double needed_until_us(const struct run *run, uint32_t v, uint32_t travels, uint32_t n) {
    const struct instance *i = run->of;
    double until_us = 0;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        if (!has_variable(i, message, v) || has_no_gradients(i, message) || pass_of(i, message) != travels)
            continue;
        const bool goes_as_packed = takes_gradients(i, message) && is_copied(message);
        if (n >= (goes_as_packed ? run->n_step[message->ready] : run->n_ended[m]))
            return -1;
        until_us = fmax(until_us, goes_as_packed ? run->step[message->ready][1][n] : run->message[m][1][n]);
    }
    return until_us;
}

static void add_gradients(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t v = 0; v < i->model.n_variables; v++)
        for (uint32_t pass = 0; pass <= (stays_whole(i, v) ? 0 : last_pass(i)); pass++) {
            const uint32_t made = made_in(i, pass, v), travels = stays_whole(i, v) ? last_pass(i) : pass;
            for (uint32_t n = 0; n < PASSES && n < run->n_step[made]; n++) {
                const double until_us = needed_until_us(run, v, travels, n);
                if (until_us >= 0)
                    add_span(events, run->step[made][0][n], until_us, plain_gradient(i, v));
            }
        }
}

/* When the step begins, or ends, for the first time at the moment or later; negative: the run ended before. */
static double next_us(const struct run *run, uint32_t step, int end, double from_us) {
    for (uint32_t n = 0; n < run->n_step[step]; n++)
        if (run->step[step][end][n] >= from_us)
            return run->step[step][end][n];
    return -1;
}

/* The part among fewer devices, from the last use in the forward pass until the all-gather's gate. */
static void add_between(const struct run *run, const struct message *m, double gate_us, struct events *events) {
    const uint32_t last = last_forward_use(run->of, m);
    double from_us = -1;
    for (uint32_t n = 0; n < run->n_step[last]; n++)
        if (run->step[last][1][n] <= gate_us)
            from_us = run->step[last][1][n];
    if (from_us >= 0)
        add_span(events, from_us, gate_us, part_of(run->of, m) * dtype_bytes(m->dtype));
}

/* What is gathered lies in a buffer until its gate, if it is copied, and is there until its last use has ended. */
static void add_gathered(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        for (uint32_t n = 0; n < run->n_ended[m] && is_of_parameters(i, message, HALF_gather); n++) {
            const double begin_us = run->message[m][0][n];
            const double gate_us = next_us(run, message->gate, 0, run->message[m][1][n]);
            const double end_us = gate_us < 0 ? -1 : next_us(run, last_use(i, message), 1, gate_us);
            if (end_us < 0)
                break;
            if (is_copied(message))
                add_span(events, begin_us, gate_us, message->bytes);
            add_span(events, is_copied(message) ? gate_us : begin_us, end_us, message->bytes);
            if (message->gate % pass_steps(i) >= i->plan.n_forward_steps &&
                i->strategy.groups[group_of(i, message)].reshard_ranks > 0)
                add_between(run, message, gate_us, events);
        }
    }
}

/* When the device's part of the n-th sum goes; negative: the run ended before. */
static double sum_until_us(const struct run *run, uint32_t m, uint32_t n) {
    const struct instance *i = run->of;
    const struct message *message = &i->plan.messages[m];
    if (is_of_parameters(i, message, HALF_scatter))
        return next_us(run, i->plan.n_steps - 1, 1, run->message[m][1][n]);
    return sums_each(i) && n < run->n_ended[message->other] ? run->message[message->other][1][n] : -1;
}

/* The device's part of each sum, from when it is there until the update. */
static void add_sums(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        const uint32_t first = first_of_sums(i, message);
        if (message->half != HALF_scatter || pass_of(i, message) != last_pass(i))
            continue;
        for (uint32_t n = 0; n < run->n_ended[m]; n++) {
            const double until_us = sum_until_us(run, m, n);
            if (until_us >= 0)
                add_span(events, run->message[first][1][n], until_us, sum_of(i, message));
        }
    }
}

/* Buffers of what is copied or encoded, and what comes in; a second half goes on in the buffer of the first. */
static void add_buffers(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        const uint32_t last = message_is_first_half(message) ? message->other : m;
        const uint64_t others = sums_in_nodes(i, message) ? devices_in_widest_node(&i->cluster) - 1 : 0;
        const bool follows = message->half == HALF_replicas;
        const uint64_t part = message->half ? incoming_of(i, message) : 0;
        if (message->half == HALF_gather)
            continue;
        for (uint32_t n = 0; n < PASSES && n < run->n_begun[m] && n < run->n_ended[last]; n++)
            add_span(events, run->message[m][0][n], run->message[last][1][n],
                     follows ? part : copy_of(i, message) + encoded_of(i, message) + others * message->bytes + part);
    }
}

/* The most that is there at any moment, beside what always is. */
static uint64_t peak_of(struct events *events, uint64_t always) {
    int64_t held = (int64_t)always, peak = held;
    qsort(events->items, events->n, sizeof *events->items, compare_events);
    for (size_t n = 0; n < events->n; n++) {
        held += events->items[n].bytes;
        peak = held > peak ? held : peak;
    }
    return (uint64_t)peak;
}

/* What the node's first device holds at most, and of that in buffers alone. */
struct held {
    uint64_t most, buffers;
};

static struct held most_held(const struct run *run) {
    const struct instance *i = run->of;
    const size_t made = (size_t)i->model.n_operators + i->model.n_variables,
                 spans = made * i->strategy.micro_batches + 3 * (size_t)i->plan.n_messages + i->plan.n_steps,
                 most = 2 * (PASSES + 2) * spans;
    struct events events = {calloc(most, sizeof *events.items), 0};
    struct held held;
    assert_non_null(events.items);
    add_buffers(run, &events);
    held.buffers = peak_of(&events, 0);
    for (uint32_t pass = 0; pass <= last_pass(i); pass++)
        add_activations(run, pass, &events);
    add_temporary(run, &events);
    add_gradients(run, &events);
    add_gathered(run, &events);
    add_sums(run, &events);
    held.most = peak_of(&events, parameters_of(i) + states_of_all(i));
    free(events.items);
    return held;
}

static struct held run_once(const struct instance *i) {
    struct error err = {0};
    struct cost cost;
    struct prediction prediction;
    struct timeline *tl = timeline_new();
    const uint32_t steps = i->plan.n_steps, messages = i->plan.n_messages;
    struct run run = {.of = i,
                      .step = calloc(steps, sizeof *run.step),
                      .message = calloc(messages, sizeof *run.message),
                      .n_step = calloc(steps, sizeof *run.n_step),
                      .n_begun = calloc(messages, sizeof *run.n_begun),
                      .n_ended = calloc(messages, sizeof *run.n_ended)};
    assert_true(tl && run.step && run.message && run.n_step && run.n_begun && run.n_ended);
    while (i->cluster.nodes[run.node].devices == 0)
        run.node++;
    assert_ok(cost_init(&cost, &i->cluster, &err));
    const struct timeline_options options = {.record = note, .context = &run, .passes = PASSES, .max_passes = PASSES};
    assert_ok(timeline_run(tl, &i->plan, &cost, &options, &prediction, &err));
    const struct held held = most_held(&run);
    cost_release(&cost);
    timeline_free(tl);
    free(run.step);
    free(run.message);
    free(run.n_step);
    free(run.n_begun);
    free(run.n_ended);
    return held;
}

static void a_run_of_the_timeline_never_holds_more(void **state) {
    (void)state;
    struct rng rng;
    int runs = 0, met = 0;
    double closest = 0;
    rng_seed(&rng, test_seed() + 1);
    while (runs < RUNS) {
        struct error err = {0};
        struct instance i;
        struct memory memory;
        draw(&rng, &i);
        if (i.plan.n_messages <= MOST_TRANSFERS) {
            assert_ok(memory_of_plan(&i.plan, &memory, &err));
            const struct held held = run_once(&i);
            if (held.most > memory.peak_bytes || held.buffers > memory.buffers_bytes)
                fail_msg("run %d holds %llu bytes, in buffers %llu; predicted at most %llu, in buffers %llu", runs,
                         (unsigned long long)held.most, (unsigned long long)held.buffers,
                         (unsigned long long)memory.peak_bytes, (unsigned long long)memory.buffers_bytes);
            closest = fmax(closest, (double)held.most / (double)memory.peak_bytes);
            met += held.most == memory.peak_bytes;
            runs++;
        }
        release(&i);
    }
    print_message("# of %d runs %d hold the peak exactly; the closest holds %.3f of it\n", runs, met, closest);
    assert_true(met > runs / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_and_its_parts_are_those_of_a_plain_reading),
        cmocka_unit_test(a_run_of_the_timeline_never_holds_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
