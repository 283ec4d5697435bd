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
#include "strategy/memory.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"

/* Release builds alone run all. */
#ifdef NDEBUG
enum { INSTANCES = 1000, RUNS = 300 };
#else
enum { INSTANCES = 200, RUNS = 60 };
#endif
enum { MOST_TRANSFERS = 400, PASSES = 3 };

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

/* Bytes of the gradient of variable v in memory. */
static uint64_t plain_gradient(const struct instance *i, uint32_t v) {
    const struct variable *variable = &i->model.variables[v];
    const struct variable_sync *sync = &i->strategy.variables[v];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < sync_parts(sync); k++) {
        const uint64_t wire = plan_part_bytes(&i->strategy, variable, sync, k);
        bytes += wire / dtype_bytes(strategy_wire_dtype(variable, sync_part(sync, k))) * dtype_bytes(variable->dtype);
    }
    return bytes;
}

static bool is_copied(const struct message *m) {
    return m->n_pieces > 1 || m->encoded_bytes > 0;
}

static bool sums_in_nodes(const struct instance *i, const struct message *m) {
    return devices_in_widest_node(&i->cluster) > 1 &&
           (m->kind == SYNC_ALL_REDUCE ? m->algorithm == ALGORITHM_hierarchical : m->local_reduction);
}

static uint64_t part_of(const struct instance *i, const struct message *m) {
    return divide_up(m->bytes / dtype_bytes(m->dtype), i->cluster.n_devices);
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

static uint64_t gradients_at(const struct instance *i, uint32_t place) {
    const uint32_t places = i->plan.n_steps + 1;
    uint64_t sum = 0;
    for (uint32_t v = 0; v < i->model.n_variables; v++) {
        const uint32_t made = i->plan.step_of[i->model.variables[v].producer];
        bool needed = place == made;
        for (uint32_t m = 0; m < i->plan.n_messages && !needed; m++)
            for (uint32_t k = 0; k < i->plan.messages[m].n_pieces; k++)
                if (i->plan.pieces[i->plan.messages[m].first_piece + k].variable == v)
                    needed |= !over(made, place, i->plan.messages[m].gate, places);
        sum += needed ? plain_gradient(i, v) : 0;
    }
    return sum;
}

static uint64_t states_of_all(const struct instance *i) {
    uint64_t sum = 0;
    for (uint32_t v = 0; v < i->model.n_variables; v++) {
        uint64_t alone = i->model.variables[v].elements;
        for (uint32_t m = 0; m < i->plan.n_messages; m++)
            for (uint32_t k = 0; k < i->plan.messages[m].n_pieces; k++) {
                const struct piece *piece = &i->plan.pieces[i->plan.messages[m].first_piece + k];
                if (piece->variable == v && i->plan.messages[m].half == HALF_scatter)
                    alone -= piece->bytes / dtype_bytes(i->plan.messages[m].dtype);
            }
        sum += plain_states(&i->model.optimizer, &i->model.variables[v], alone);
    }
    for (uint32_t m = 0; m < i->plan.n_messages; m++)
        if (i->plan.messages[m].half == HALF_scatter)
            sum += shared_states(i, &i->plan.messages[m]);
    return sum;
}

static uint64_t activations_at(const struct instance *i, uint32_t place) {
    uint64_t sum = 0;
    for (uint32_t o = 0; o < i->model.n_operators; o++) {
        const struct operator* op = & i->model.operators[o];
        if (i->plan.step_of[o] <= place && place <= i->plan.step_of[op->kept_for])
            sum += op->activation_bytes;
    }
    return sum;
}

/* Whether the message may be on its way at the place. */
static bool may_go(const struct instance *i, const struct message *m, uint32_t place) {
    const uint32_t places = i->plan.n_steps + 1;
    return m->ready != place && !over((m->ready + 1) % places, place, m->gate, places);
}

static void messages_at(const struct instance *i, uint32_t place, uint64_t part[MEMORY_PARTS]) {
    const uint64_t credit = i->plan.credit_bytes, n = i->cluster.n_devices,
                   others = devices_in_widest_node(&i->cluster) - 1;
    uint64_t plain = 0, encoded = 0, rows = 0, largest = 0, largest_rows = 0;
    for (uint32_t k = 0; k < i->plan.n_messages; k++) {
        const struct message *m = &i->plan.messages[k];
        const bool all_gather = m->kind == SYNC_ALL_REDUCE && m->algorithm == ALGORITHM_all_gather;
        const bool limited = m->kind == SYNC_ALL_REDUCE && !m->half && !sums_in_nodes(i, m);
        if (limited && is_copied(m))
            largest = m->bytes > largest ? m->bytes : largest;
        if (all_gather)
            largest_rows = m->bytes > largest_rows ? m->bytes : largest_rows;
        if (m->half == HALF_gather || !may_go(i, m, place))
            continue;
        if (is_copied(m)) {
            *(limited ? &plain : &part[MEMORY_buffers]) += m->bytes - m->encoded_bytes;
            *(limited ? &encoded : &part[MEMORY_encoding]) += m->encoded_bytes;
        }
        rows += all_gather ? m->bytes : 0;
        part[MEMORY_buffers] += sums_in_nodes(i, m) ? others * m->bytes : 0;
        part[MEMORY_buffers] += m->half ? part_of(i, m) * dtype_bytes(m->dtype) : 0;
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
    uint64_t peak = 0, at_peak[MEMORY_PARTS] = {0};
    uint32_t peak_place = 0;
    for (uint32_t place = 0; place <= i->plan.n_steps; place++) {
        uint64_t part[MEMORY_PARTS] = {[MEMORY_parameters] = i->model.bytes}, sum = 0;
        part[MEMORY_optimizer] = states_of_all(i);
        part[MEMORY_gradients] = gradients_at(i, place);
        part[MEMORY_activations] = activations_at(i, place);
        messages_at(i, place, part);
        for (int p = 0; p < MEMORY_PARTS; p++)
            sum += part[p];
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
    assert_int_equal(memory.peak_step, peak_place);
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

static void add_span(struct events *events, double from_us, double until_us, uint64_t bytes) {
    events->items[events->n++] = (struct event){from_us, (int64_t)bytes};
    events->items[events->n++] = (struct event){until_us, -(int64_t)bytes};
}

/* From the forward step's begin to the end of the backward step that comes next. */
static void add_activations(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t o = 0; o < i->model.n_operators; o++) {
        const struct operator* op = & i->model.operators[o];
        const uint32_t first = i->plan.step_of[o], last = i->plan.step_of[op->kept_for];
        for (uint32_t n = 0; op->activation_bytes && n < run->n_step[first]; n++)
            for (uint32_t end = 0; end < run->n_step[last]; end++)
                if (run->step[last][1][end] >= run->step[first][1][n]) {
                    add_span(events, run->step[first][0][n], run->step[last][1][end], op->activation_bytes);
                    break;
                }
    }
}

static void add_gradients(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t v = 0; v < i->model.n_variables; v++) {
        const uint32_t made = i->plan.step_of[i->model.variables[v].producer];
        for (uint32_t n = 0; n < PASSES; n++) {
            double until_us = 0;
            bool known = n < run->n_step[made];
            for (uint32_t m = 0; m < i->plan.n_messages && known; m++)
                for (uint32_t k = 0; k < i->plan.messages[m].n_pieces; k++)
                    if (i->plan.pieces[i->plan.messages[m].first_piece + k].variable == v) {
                        known = n < run->n_ended[m];
                        until_us = fmax(until_us, known ? run->message[m][1][n] : 0);
                    }
            if (known)
                add_span(events, run->step[made][0][n], until_us, plain_gradient(i, v));
        }
    }
}

/* Buffers of what is copied; a second half goes on in that of the first. */
static void add_buffers(const struct run *run, struct events *events) {
    const struct instance *i = run->of;
    for (uint32_t m = 0; m < i->plan.n_messages; m++) {
        const struct message *message = &i->plan.messages[m];
        const uint32_t last = message->half == HALF_scatter ? message->other : m;
        const uint64_t incoming = sums_in_nodes(i, message) ? devices_in_widest_node(&i->cluster) - 1 : 0;
        if (message->half == HALF_gather)
            continue;
        for (uint32_t n = 0; n < PASSES && n < run->n_begun[m] && n < run->n_ended[last]; n++)
            add_span(events, run->message[m][0][n], run->message[last][1][n],
                     (is_copied(message) + incoming) * message->bytes);
    }
}

/* The most that the node's first device holds at any moment. */
static uint64_t most_held(const struct run *run) {
    const struct instance *i = run->of;
    const size_t most = 2 * (PASSES + 2) * ((size_t)i->model.n_operators + i->model.n_variables + i->plan.n_messages);
    struct events events = {calloc(most, sizeof *events.items), 0};
    const int64_t always = (int64_t)(i->model.bytes + states_of_all(i));
    int64_t held = always, peak = always;
    assert_non_null(events.items);
    add_activations(run, &events);
    add_gradients(run, &events);
    add_buffers(run, &events);
    qsort(events.items, events.n, sizeof *events.items, compare_events);
    for (size_t n = 0; n < events.n; n++) {
        held += events.items[n].bytes;
        peak = held > peak ? held : peak;
    }
    free(events.items);
    return (uint64_t)peak;
}

static uint64_t run_once(const struct instance *i) {
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
    const uint64_t held = most_held(&run);
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
            const uint64_t held = run_once(&i);
            if (held > memory.peak_bytes)
                fail_msg("run %d holds %llu bytes, and %llu were predicted at most", runs, (unsigned long long)held,
                         (unsigned long long)memory.peak_bytes);
            closest = fmax(closest, (double)held / (double)memory.peak_bytes);
            met += held == memory.peak_bytes;
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
