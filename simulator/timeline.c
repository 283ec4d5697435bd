/* The event loop. Timers (ends of steps, starts of transfers) lie in a heap; ends of transfers come from the network.
 * All events of one instant are taken in before any queue is looked at. So messages that become ready at one instant
 * compete by rank, and rates are worked out once.
 *
 * Steady state. The run starts at `home`, the step after the last gate and before the first gradient, with nothing in
 * flight. With one chain the state at `home` is the same in every iteration, because the chain has waited for every
 * message: one pass is the exact period. With several chains one chain may wait while another goes on, and ports may
 * have saved more than at the start. Then passes are run until two in a row took the same time on every chain (MATCH),
 * which leaves the offsets between chains as they were. Some plans never get there: where many pushes compete, the
 * winners of one iteration decide who is first in the next. Then the mean is taken as soon as its standard error is
 * small. */
#include "simulator/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/work.h"
#include "simulator/timeline_internal.h"

/* Events closer than this are one instant: rounding must not decide who is first (us). */
static const double INSTANT_US = 1e-7;
static const double MATCH = 1e-9;
static const double MEAN_ERROR = 0.005, LARGE_MEAN_ERROR = 0.01;
enum { TURNS_A_CHECK = 32 }; /* one turn takes microseconds, or a millisecond among thousands of transfers */
enum { MEAN_PASSES = 8, LARGE_MEAN_PASSES = 2, LARGE_TRANSFERS = 100000 };

struct timeline *timeline_new(void) {
    return calloc(1, sizeof(struct timeline));
}

void timeline_free(struct timeline *tl) {
    if (!tl)
        return;
    arena_release(&tl->arena);
    free(tl);
}

size_t timeline_bytes(const struct timeline *tl) {
    return arena_bytes(&tl->arena);
}

/* ---- timers ---- */

static bool comes_before(const struct timer *a, const struct timer *b) {
    return a->time_us != b->time_us ? a->time_us < b->time_us : a->number < b->number;
}

static void timer_push(struct timeline *tl, struct timer timer) {
    struct timer *heap = tl->timers;
    size_t at = tl->n_timers++;
    timer.number = tl->timers_set++;
    for (; at > 0 && comes_before(&timer, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = timer;
}

static struct timer timer_pop(struct timeline *tl) {
    struct timer *heap = tl->timers, top = heap[0], last = heap[--tl->n_timers];
    size_t at = 0, n = tl->n_timers;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* ---- compute ---- */

static void emit(const struct timeline *tl, enum interval_kind kind, uint32_t node, uint32_t index, double start_us,
                 double end_us) {
    if (tl->options->record)
        tl->options->record(tl->options->context, &(struct interval){kind, node, index, start_us, end_us});
}

static double started_us(const struct chain *chain, uint32_t round) {
    return chain->started_us[round % 4];
}

/* Whether the last two iterations before the start of `round` took every chain the same time, and no port spends what
 * it had saved. Every chain has begun iteration `round`. */
static bool is_steady(const struct timeline *tl, uint32_t round) {
    const struct chain *first = &tl->chains[0];
    double period = started_us(first, round) - started_us(first, round - 1), slack = MATCH * fmax(period, 1);
    if (tl->spends)
        return false;
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        const struct chain *chain = &tl->chains[c];
        double last = started_us(chain, round) - started_us(chain, round - 1);
        double before = started_us(chain, round - 1) - started_us(chain, round - 2);
        if (fabs(last - period) > slack || fabs(before - period) > slack)
            return false;
    }
    return true;
}

static void finish(struct timeline *tl, double iteration_us, bool converged) {
    tl->iteration_us = iteration_us;
    tl->converged = converged;
    tl->done = true;
}

/* Welford's running mean and squares of the slowest node's iterations, without the very first, which starts from an
 * empty network. */
static void add_to_mean(struct timeline *tl, const struct chain *slowest) {
    if (tl->rounds < 2)
        return;
    double last = started_us(slowest, tl->rounds) - started_us(slowest, tl->rounds - 1);
    double off = last - tl->mean_us;
    tl->mean_us += off / (tl->rounds - 1);
    tl->squares += off * (last - tl->mean_us);
}

/* An iteration of very many transfers averages over them already, so fewer iterations are enough. */
static bool is_mean_good(const struct timeline *tl) {
    bool large = tl->n_transfers > LARGE_TRANSFERS;
    double n = tl->rounds - 1.0, error = large ? LARGE_MEAN_ERROR : MEAN_ERROR;
    return n >= (large ? LARGE_MEAN_PASSES : MEAN_PASSES) && sqrt(tl->squares / (n - 1) / n) <= error * tl->mean_us;
}

/* The mean of the chain that takes longest, over the iterations from the second on or, if there is none, the first. A
 * chain that is still getting ahead of the others would seem faster than it will be. */
static double longest_mean(const struct timeline *tl) {
    double longest = 0;
    uint32_t n = tl->rounds > 1 ? tl->rounds - 1 : 1;
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        const struct chain *chain = &tl->chains[c];
        double since = tl->rounds > 1 ? chain->second_us : started_us(chain, 0);
        longest = fmax(longest, (started_us(chain, tl->rounds) - since) / n);
    }
    return longest;
}

static uint64_t events(const struct timeline *tl) {
    return tl->timers_set + tl->network.new_rates;
}

static bool has_cost_enough(const struct timeline *tl) {
    return tl->options->most_events > 0 && events(tl) > tl->options->most_events;
}

/* In weather an iteration begins when the last worker does. */
static double latest_start_us(const struct timeline *tl, uint32_t round) {
    double latest = 0;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        latest = fmax(latest, started_us(&tl->chains[c], round));
    return latest;
}

static void end_iteration_in_weather(struct timeline *tl, uint32_t round) {
    double end = latest_start_us(tl, round);
    if (round == 0)
        return;
    if (tl->options->iteration)
        tl->options->iteration(tl->options->context, end - latest_start_us(tl, round - 1));
    if (end >= tl->options->until_us && round >= tl->options->passes)
        finish(tl, end / round, true);
    else if (tl->options->enough_us > 0 && tl->options->passes > 0 &&
             end > tl->options->enough_us * tl->options->passes)
        finish(tl, end / tl->options->passes, false);
    else if (has_cost_enough(tl))
        finish(tl, end / round, false);
}

static void end_round(struct timeline *tl, uint32_t round) {
    const struct chain *first = &tl->chains[0];
    tl->rounds = round;
    if (tl->options->weather) {
        end_iteration_in_weather(tl, round);
        return;
    }
    tl->spends = network_spends(&tl->network, tl->now_us);
    if (round == 0)
        return;
    add_to_mean(tl, &tl->chains[tl->slowest]);
    if (round < tl->options->passes)
        return;
    if ((tl->n_chains == 1 && tl->network.burst <= 0) || (round >= 2 && is_steady(tl, round)))
        finish(tl, started_us(first, round) - started_us(first, round - 1), true);
    else if (has_cost_enough(tl) || (round >= 2 && (is_mean_good(tl) || round >= tl->options->max_passes)))
        finish(tl, longest_mean(tl), false);
}

/* A chain is at most one iteration ahead of another, because its gates need the others' gradients. */
static void begin_iteration(struct timeline *tl, struct chain *chain, double start_us) {
    const struct cluster *cluster = tl->cost->cluster;
    uint32_t round = chain->arrivals++;
    chain->started_us[round % 4] = start_us;
    chain->launcher_us = fmin(chain->launcher_us, start_us); /* every message is decoded */
    if (tl->options->weather)
        chain->scale = cluster->nodes[chain->node].compute_scale *
                       weather_slowness(cluster, tl->options->seed, chain->node, round);
    if (round == 1)
        chain->second_us = start_us;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        if (tl->chains[c].arrivals <= round)
            return;
    end_round(tl, round);
}

/* ---- interference: computing and traffic slow each other ---- */

/* The share of its speed that computing keeps beside the chain's messages. */
static double computing_share(const struct timeline *tl, const struct chain *chain) {
    double starting = chain->starting > 0 ? tl->cost->in_startup.compute : 1;
    return fmin(starting, chain->moving > 0 ? tl->cost->in_transfer.compute : 1);
}

/* The step that runs goes on at the rate that holds from now on. */
static void pace_step(struct timeline *tl, struct chain *chain) {
    if (!chain->computes)
        return;
    chain->left_us = fmax(chain->left_us - chain->rate * (tl->now_us - chain->since_us), 0);
    chain->since_us = tl->now_us;
    chain->rate = computing_share(tl, chain);
    chain->wake_us = tl->now_us + chain->left_us / chain->rate;
}

/* Computing slows startups, and so do bytes that move. */
static void pace_startups(struct timeline *tl) {
    const struct interference *keeps = &tl->cost->in_startup;
    double beside_computing = tl->computing > 0 ? keeps->traffic : 1, beside_bytes = tl->moving > 0 ? keeps->beside : 1;
    network_set_timed_pace(&tl->network, beside_computing * beside_bytes, tl->now_us);
}

/* Begin or end `starting` startups and `moving` transfers of a chain. */
static void add_traffic(struct timeline *tl, struct chain *chain, int starting, int moving) {
    bool moved = tl->moving > 0;
    chain->starting += (uint32_t)starting;
    chain->moving += (uint32_t)moving;
    tl->moving += (uint32_t)moving;
    pace_step(tl, chain);
    if (moved != (tl->moving > 0))
        pace_startups(tl);
}

static void add_traffic_everywhere(struct timeline *tl, int starting, int moving) {
    for (uint32_t c = 0; c < tl->n_chains && tl->interferes; c++)
        add_traffic(tl, &tl->chains[c], starting, moving);
}

/* A node that computes lets less through its NIC. */
static void set_nic(struct timeline *tl, uint32_t node) {
    uint32_t c = tl->chain_of[node];
    double share = c != UINT32_MAX && tl->chains[c].computes ? tl->cost->in_transfer.traffic : 1;
    double out = timeline_nic_bytes_per_us(tl, node, DIRECTION_OUT, share);
    double in = timeline_nic_bytes_per_us(tl, node, DIRECTION_IN, share);
    network_set_capacity(&tl->network, tl->egress[node], out, tl->now_us);
    network_set_capacity(&tl->network, tl->ingress[node], in, tl->now_us);
}

/* A node has begun or ended to compute. An all-reduce, which all take part in, goes as fast as the slowest. */
static void pace_traffic(struct timeline *tl, const struct chain *chain) {
    const struct cost *cost = tl->cost;
    double slowest = tl->computing > 0 ? cost->in_transfer.traffic : 1;
    pace_startups(tl);
    if (!tl->network.flows) {
        network_set_pace(&tl->network, slowest);
        return;
    }
    for (uint32_t way = 0; way < (tl->two_way ? 2u : 1u); way++)
        network_set_capacity(&tl->network, tl->first_way + way, slowest * tl->all_reduce_unit, tl->now_us);
    if (tl->inside)
        network_set_capacity(&tl->network, tl->inside_way, slowest * tl->all_reduce_unit, tl->now_us);
    if (tl->n_servers == 0 && !tl->options->every_node && !tl->options->weather)
        return;
    set_nic(tl, chain->node);
}

static void set_computing(struct timeline *tl, struct chain *chain, bool computes) {
    chain->computes = computes;
    tl->computing += computes ? 1 : UINT32_MAX;
    pace_traffic(tl, chain);
}

static void step_done(struct timeline *tl, uint32_t c, double time_us);

/* The chain's step begins or ends. */
static void wake(struct timeline *tl, uint32_t c) {
    struct chain *chain = &tl->chains[c];
    double time_us = chain->wake_us;
    if (!chain->computes) {
        chain->since_us = tl->now_us;
        set_computing(tl, chain, true);
        pace_step(tl, chain);
        return;
    }
    chain->wake_us = INFINITY;
    set_computing(tl, chain, false);
    emit(tl, INTERVAL_COMPUTE, chain->node, chain->step, chain->began_us, time_us);
    step_done(tl, c, time_us);
}

/* The next time at which a chain wakes. */
static double next_wake_us(const struct timeline *tl) {
    double next = INFINITY;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        next = fmin(next, tl->chains[c].wake_us);
    return next;
}

/* ---- weather ---- */

/* The rates of the moment go to the NICs. */
static void change_weather(struct timeline *tl) {
    weather_advance(&tl->weather);
    for (uint32_t i = 0; i < tl->cost->cluster->n_nodes; i++)
        if (tl->egress[i] != UINT32_MAX)
            set_nic(tl, i);
}

/* When rates change next; INFINITY outside weather. */
static double next_change_us(const struct timeline *tl) {
    return tl->options->weather ? weather_next_us(&tl->weather) : INFINITY;
}

/* ---- steps ---- */

/* Run steps from `step` on, the one before having ended at `time_us`, up to a closed gate or a step that makes
 * gradients ready; where traffic slows steps, one step. */
static void run_steps(struct timeline *tl, uint32_t c, uint32_t step, double time_us) {
    const struct plan *plan = tl->plan;
    struct chain *chain = &tl->chains[c];
    for (chain->waiting = false;; step = step + 1 < plan->n_steps ? step + 1 : 0) {
        chain->step = step;
        if (chain->left[step] > 0) {
            chain->waiting = true;
            chain->time_us = time_us;
            return;
        }
        double start = fmax(time_us, chain->opened_us[step]);
        chain->left[step] = plan->first_gate[step + 1] - plan->first_gate[step];
        chain->opened_us[step] = 0;
        if (step == tl->home)
            begin_iteration(tl, chain, start);
        if (tl->done)
            return;
        if (tl->interferes) {
            chain->left_us = plan->step_us[step] * chain->scale;
            chain->began_us = chain->wake_us = start;
            return;
        }
        time_us = start + plan->step_us[step] * chain->scale;
        emit(tl, INTERVAL_COMPUTE, chain->node, step, start, time_us);
        if (plan->first_ready[step + 1] > plan->first_ready[step]) {
            timer_push(tl, (struct timer){.time_us = time_us, .chain = (uint16_t)c, .kind = TIMER_STEP});
            return;
        }
    }
}

static void open_gate(struct timeline *tl, uint32_t c, uint32_t m, double time_us) {
    struct chain *chain = &tl->chains[c];
    uint32_t gate = tl->plan->messages[m].gate;
    chain->opened_us[gate] = fmax(chain->opened_us[gate], time_us);
    if (--chain->left[gate] == 0 && chain->waiting && chain->step == gate)
        run_steps(tl, c, gate, chain->time_us);
}

/* ---- queues ---- */

static void enqueue(struct timeline *tl, uint32_t c, uint32_t m) {
    ready_set_add(&tl->chains[c].ready, m);
    tl->chains[c].dirty = true;
    tl->queued += tl->chains[c].count;
    tl->queue_us -= tl->now_us * tl->chains[c].count;
}

/* An all-reduce that every chain has ready. */
static void ready_everywhere(struct timeline *tl, uint32_t m) {
    for (uint32_t c = 0; c < (tl->coordinated ? 1 : tl->n_chains); c++)
        enqueue(tl, c, m);
}

static void step_done(struct timeline *tl, uint32_t c, double time_us) {
    const struct plan *plan = tl->plan;
    uint32_t step = tl->chains[c].step;
    for (uint32_t i = plan->first_ready[step]; i < plan->first_ready[step + 1]; i++) {
        uint32_t m = plan->by_ready[i];
        if (!tl->coordinated || plan->messages[m].kind != SYNC_ALL_REDUCE) {
            enqueue(tl, c, m);
        } else if (++tl->n_ready[m] == tl->n_chains) {
            tl->n_ready[m] = 0;
            ready_everywhere(tl, m);
        }
    }
    run_steps(tl, c, step + 1 < plan->n_steps ? step + 1 : 0, time_us);
}

static bool fits(const struct timeline *tl, const struct window *in_flight, uint64_t bytes) {
    uint64_t credit = tl->plan->credit_bytes;
    if (in_flight->messages == 0 || credit == CREDIT_UNLIMITED)
        return true;
    return in_flight->bytes <= credit && bytes <= credit - in_flight->bytes;
}

static void take_credit(struct window *in_flight, uint64_t bytes) {
    in_flight->messages++;
    in_flight->bytes += bytes;
}

static void return_credit(struct chain *chain, uint64_t bytes) {
    chain->in_flight.messages--;
    chain->in_flight.bytes -= bytes;
    chain->dirty = true;
}

/* ---- parts of pushes and pulls ---- */

static bool goes_back(unsigned kind) {
    return kind == TIMER_PUSH_ANSWER || kind == TIMER_PULL || kind == TIMER_PULL_REST;
}

/* Between the chain's node and the message's server. */
static double latency_us(const struct timeline *tl, uint32_t c, uint32_t m, bool back) {
    uint32_t node = tl->chains[c].node, server = tl->plan->messages[m].server;
    return back ? cost_pull_latency_us(tl->cost, node, server) : cost_push_latency_us(tl->cost, node, server);
}

/* The part may be sent from at_us on; it starts one latency later. */
static void set_timer(struct timeline *tl, uint32_t c, uint32_t m, enum timer_kind kind, double at_us,
                      double began_us) {
    timer_push(tl, (struct timer){.time_us = at_us + latency_us(tl, c, m, goes_back(kind)),
                                  .began_us = began_us,
                                  .message = m,
                                  .chain = (uint16_t)c,
                                  .kind = (uint16_t)kind});
}

/* ---- launches ---- */

static bool sums_in_node(const struct message *message, const struct chain *chain) {
    return message->kind == SYNC_PARAMETER_SERVER && message->local_reduction && chain->devices > 1;
}

/* Bringing gradients into the message, or out of it. What is encoded is converted on the way and needs no copy. */
static double pack_us(const struct timeline *tl, const struct message *message, bool back) {
    uint64_t copied = message->n_pieces > 1 ? message->bytes - message->encoded_bytes : 0;
    return (double)copied / tl->cost->copy_bytes_per_us +
           (back ? cost_decode_us(tl->cost, message) : cost_encode_us(tl->cost, message));
}

/* Time on the device link for the node's other devices, one after another. */
static double in_node_us(const struct timeline *tl, const struct chain *chain, uint64_t bytes) {
    return (chain->devices - 1) * (double)bytes / tl->cost->device_link_bytes_per_us[chain->node];
}

double timeline_launch_us(const struct timeline *tl, const struct chain *chain, const struct message *message) {
    double work = tl->cost->runtime.message_us;
    if (message_brings_gradients(message)) /* else each device's part lies in the message already */
        work += pack_us(tl, message, false);
    else if (message_gathers_parameters(message)) /* in another type it may be */
        work += cost_convert_us(tl->cost, message);
    if (sums_in_node(message, chain))
        work += in_node_us(tl, chain, message->bytes) +
                (chain->devices - 1) * (double)message->bytes / tl->cost->sum_bytes_per_us;
    return work;
}

/* When the chain's launching processor, asked at `at_us`, has launched the message. The processor's later work for an
 * encoder is charged at once. It delays the messages behind and not this one. */
static double occupy_launcher(struct timeline *tl, struct chain *chain, const struct message *message, double at_us) {
    double launched = fmax(chain->launcher_us, at_us) + timeline_launch_us(tl, chain, message);
    chain->launcher_us = launched + cost_later_us(tl->cost, message);
    return launched;
}

/* Keep the last cost: most messages of a plan are alike, and reading a measured curve takes long. */
struct all_reduce_cost timeline_message_cost(struct timeline *tl, const struct message *message) {
    if (message->bytes != tl->last_bytes || message->algorithm != tl->last_algorithm ||
        message->half != tl->last_half || message->encoder != tl->last_encoder ||
        message->unencoded_bytes != tl->last_unencoded || message->ranks != tl->last_ranks ||
        message->stride != tl->last_stride) {
        tl->last_cost = cost_all_reduce(tl->cost, message);
        tl->last_bytes = message->bytes;
        tl->last_algorithm = message->algorithm;
        tl->last_half = message->half;
        tl->last_encoder = message->encoder;
        tl->last_unencoded = message->unencoded_bytes;
        tl->last_ranks = message->ranks;
        tl->last_stride = message->stride;
    }
    return tl->last_cost;
}

/* All chains have joined; the startup passes, and then the bytes move. */
static void begin_all_reduce(struct timeline *tl, uint32_t m) {
    struct timer timer = {.time_us = fmax(tl->begin_us[m], tl->now_us), .message = m, .kind = TIMER_STARTUP};
    if (!tl->interferes) {
        timer.time_us += timeline_message_cost(tl, &tl->plan->messages[m]).startup_us;
        timer.kind = TIMER_ALL_REDUCE;
    }
    timer_push(tl, timer);
}

static struct line *line_of(struct timeline *tl, uint32_t m) {
    return &tl->lines[message_is_of_replicas(&tl->plan->messages[m])];
}

static void line_up(struct timeline *tl, uint32_t m) {
    struct line *line = line_of(tl, m);
    if (line->under_way)
        line->messages[(line->first + line->n++) % tl->plan->n_messages] = m;
    else
        begin_all_reduce(tl, m);
    line->under_way = true;
}

/* The one under way has ended. */
static void begin_next_in_line(struct timeline *tl, struct line *line) {
    line->under_way = line->n > 0;
    if (!line->under_way)
        return;
    const uint32_t m = line->messages[line->first];
    line->first = (line->first + 1) % tl->plan->n_messages;
    line->n--;
    begin_all_reduce(tl, m);
}

static void join(struct timeline *tl, uint32_t c, uint32_t m, double at_us) {
    const struct message *message = &tl->plan->messages[m];
    double joined = occupy_launcher(tl, &tl->chains[c], message, at_us);
    tl->begin_us[m] = fmax(tl->begin_us[m], joined);
    if (++tl->joined[m] < tl->n_chains)
        return;
    tl->joined[m] = 0;
    if (tl->cost->in_order)
        line_up(tl, m);
    else
        begin_all_reduce(tl, m);
}

static void launch(struct timeline *tl, uint32_t c, uint32_t m) {
    struct chain *chain = &tl->chains[c];
    const struct message *message = &tl->plan->messages[m];
    take_credit(&chain->in_flight, message->bytes);
    tl->queued -= chain->count;
    tl->queue_us += tl->now_us * chain->count;
    tl->active++;
    if (message->kind == SYNC_PARAMETER_SERVER) {
        double time = occupy_launcher(tl, chain, message, tl->now_us);
        set_timer(tl, c, m, TIMER_PUSH, time, time);
        return;
    }
    if (!tl->coordinated) {
        join(tl, c, m, tl->now_us);
        return;
    }
    for (uint32_t d = 0; d < tl->n_chains; d++) {
        if (d != c)
            take_credit(&tl->chains[d].in_flight, message->bytes);
        join(tl, d, m, tl->now_us + tl->cost->runtime.coordination_us);
    }
}

static void serve_queue(struct timeline *tl, uint32_t c) {
    struct chain *chain = &tl->chains[c];
    const struct plan *plan = tl->plan;
    bool fixed = plan->policy != POLICY_priority;
    chain->dirty = false;
    for (;;) {
        uint32_t m = fixed ? chain->next : ready_set_first(&chain->ready);
        if (m == UINT32_MAX || !ready_set_has(&chain->ready, m) ||
            !fits(tl, &chain->in_flight, plan->messages[m].bytes))
            return;
        ready_set_remove(&chain->ready, m);
        chain->next = m + 1 < plan->n_messages - plan->n_replicas ? m + 1 : 0;
        launch(tl, c, m);
    }
}

/* ---- pulls that wait for their turn ---- */

/* A pull of at most eager_bytes comes unasked and has no turn. Where eager_bytes is INFINITY every pull has one: over
 * gloo its receiver asks for it then. */
static bool waits_for_turn(const struct timeline *tl, const struct message *message) {
    double eager = tl->cost->eager_bytes;
    return tl->plan->pulls_by_priority && (!isfinite(eager) || (double)message->bytes > eager);
}

static bool has_request(const struct timeline *tl, const struct message *message, bool back) {
    return (double)message->bytes > tl->cost->eager_bytes ||
           (back && tl->cost->connected && waits_for_turn(tl, message));
}

static void return_pull_credit(struct chain *chain, uint64_t bytes) {
    chain->pulling.messages--;
    chain->pulling.bytes -= bytes;
    chain->pulls_dirty = true;
}

static void enqueue_pull(struct timeline *tl, uint32_t c, uint32_t m) {
    ready_set_add(&tl->chains[c].pulls, m);
    tl->chains[c].pulls_dirty = true;
}

static void serve_pulls(struct timeline *tl, uint32_t c) {
    struct chain *chain = &tl->chains[c];
    /* On connections the server has asked already, and its request waits for the answer. */
    enum timer_kind part = tl->cost->connected ? TIMER_PULL_ANSWER : TIMER_PULL;
    chain->pulls_dirty = false;
    for (uint32_t m; (m = ready_set_first(&chain->pulls)) != UINT32_MAX;) {
        uint64_t bytes = tl->plan->messages[m].bytes;
        if (!fits(tl, &chain->pulling, bytes))
            return;
        ready_set_remove(&chain->pulls, m);
        take_credit(&chain->pulling, bytes);
        set_timer(tl, c, m, part, tl->now_us, tl->now_us);
    }
}

/* ---- arrivals ---- */

static uint32_t copies_of(const struct message *message, const struct chain *chain) {
    return message->local_reduction ? 1 : chain->devices;
}

/* The replicas of each part go on, whatever else is in flight. */
static void begin_replicas(struct timeline *tl, uint32_t m) {
    tl->active += tl->n_chains;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        join(tl, c, m, tl->now_us);
}

static void all_reduce_done(struct timeline *tl, uint32_t m, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    /* Of a reduce-scatter each device keeps its part where it lies, and so of what replicas add. */
    const bool stays = message->half == HALF_scatter || message_is_of_replicas(message);
    double usable = tl->now_us + (stays ? cost_convert_us(tl->cost, message) : pack_us(tl, message, true));
    emit(tl, INTERVAL_ALL_REDUCE, UINT32_MAX, m, began_us, tl->now_us);
    tl->begin_us[m] = 0;
    if (tl->cost->in_order)
        begin_next_in_line(tl, line_of(tl, m));
    tl->active -= tl->coordinated ? 1 : tl->n_chains;
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        if (!message_is_of_replicas(message))
            return_credit(&tl->chains[c], message->bytes);
        if (!message_is_first_half(message))
            open_gate(tl, c, m, usable);
    }
    if (message->replicas > 0)
        begin_replicas(tl, message->replicas);
    if (message_is_first_half(message))
        ready_everywhere(tl, message->other);
}

static void push_done(struct timeline *tl, uint32_t c, uint32_t m, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    struct chain *chain = &tl->chains[c];
    emit(tl, INTERVAL_PUSH, chain->node, m, began_us, tl->now_us);
    tl->arrived[tl->n_arrived++] = (struct arrival){m, copies_of(message, chain) * chain->count};
}

static void pull_done(struct timeline *tl, uint32_t c, uint32_t m, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    struct chain *chain = &tl->chains[c];
    double usable = tl->now_us + pack_us(tl, message, true);
    if (sums_in_node(message, chain))
        usable += in_node_us(tl, chain, message->bytes);
    emit(tl, INTERVAL_PULL, chain->node, m, began_us, tl->now_us);
    tl->active--;
    if (waits_for_turn(tl, message))
        return_pull_credit(chain, message->bytes);
    open_gate(tl, c, m, usable);
}

/* Without connections pulls wait at the chain from the moment when the server has the sum. */
static void sum_done(struct timeline *tl, uint32_t m, double sum_us) {
    bool waits = tl->plan->pulls_by_priority && !tl->cost->connected;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        if (!waits)
            set_timer(tl, c, m, TIMER_PULL, sum_us, sum_us);
        else if (sum_us <= tl->now_us + INSTANT_US)
            enqueue_pull(tl, c, m);
        else
            timer_push(tl, (struct timer){.time_us = sum_us, .message = m, .chain = (uint16_t)c, .kind = TIMER_SUM});
}

/* The server adds a push to those before it; with the last one it answers. */
static void add_arrival(struct timeline *tl, const struct arrival *arrival) {
    uint32_t m = arrival->message;
    const struct message *message = &tl->plan->messages[m];
    double *free_us = &tl->server_us[message->server];
    uint32_t adds = arrival->copies - (tl->joined[m] == 0);
    *free_us = fmax(*free_us, tl->now_us) + adds * (double)message->bytes / tl->cost->sum_bytes_per_us;
    if (++tl->joined[m] < tl->n_chains)
        return;
    tl->joined[m] = 0;
    sum_done(tl, m, *free_us);
}

/* Take in the pushes of this instant in the plan's order, in whatever order the network found them. */
static void add_arrivals(struct timeline *tl) {
    for (size_t i = 1; i < tl->n_arrived; i++) {
        struct arrival arrival = tl->arrived[i];
        size_t at = i;
        for (; at > 0 && tl->arrived[at - 1].message > arrival.message; at--)
            tl->arrived[at] = tl->arrived[at - 1];
        tl->arrived[at] = arrival;
    }
    for (size_t i = 0; i < tl->n_arrived; i++)
        add_arrival(tl, &tl->arrived[i]);
    tl->n_arrived = 0;
}

/* ---- events ---- */

/* Send something of an all-reduce: all of it (way 0) or of one way of a tree (way 1 to the root, way 2 back). The
 * transfer keeps the way in `chain`. An answer goes against its way. */
static void send_all_reduce(struct timeline *tl, uint32_t m, uint32_t way, enum timer_kind kind, double began_us) {
    double hold_us = 0;
    if (kind == TIMER_ALL_REDUCE) {
        struct all_reduce_cost cost = timeline_message_cost(tl, &tl->plan->messages[m]);
        hold_us = way == 2 ? cost.back_us : cost.hold_us;
    }
    const bool inside = tl->inside && cost_stays_in_nodes(tl->cost, &tl->plan->messages[m]);
    uint32_t class = inside ? tl->inside_class : tl->all_reduce_class + (kind == TIMER_TREE_ANSWER ? 3 - way : way);
    struct transfer transfer = {
        .began_us = began_us, .message = m, .chain = (uint16_t)way, .kind = (uint16_t)kind, .weight = 1};
    network_add(&tl->network, class, hold_us * tl->all_reduce_unit, transfer, tl->now_us);
}

static void start_way(struct timeline *tl, uint32_t m, uint32_t way, double began_us) {
    bool asks = (double)tl->plan->messages[m].bytes > tl->cost->eager_bytes;
    send_all_reduce(tl, m, way, asks ? TIMER_TREE_REQUEST : TIMER_ALL_REDUCE, began_us);
}

static void start_all_reduce(struct timeline *tl, uint32_t m, double began_us) {
    struct all_reduce_cost cost = timeline_message_cost(tl, &tl->plan->messages[m]);
    if (cost.hold_us <= 0) {
        all_reduce_done(tl, m, began_us);
        return;
    }
    add_traffic_everywhere(tl, 0, 1);
    if (cost.back_us > 0)
        start_way(tl, m, 1, began_us);
    else
        send_all_reduce(tl, m, 0, TIMER_ALL_REDUCE, began_us);
}

static void tree_goes_on(struct timeline *tl, const struct transfer *sent, enum timer_kind kind, double after_us) {
    timer_push(tl, (struct timer){.time_us = tl->now_us + after_us,
                                  .began_us = sent->began_us,
                                  .message = sent->message,
                                  .kind = (uint16_t)kind});
}

/* What send_all_reduce sent has come. The root adds before it sends back, so requests that are there are answered
 * first. */
static void all_reduce_came(struct timeline *tl, const struct transfer *sent) {
    uint32_t m = sent->message, way = sent->chain;
    if (sent->kind == TIMER_TREE_REQUEST)
        send_all_reduce(tl, m, way, TIMER_TREE_ANSWER, sent->began_us);
    else if (sent->kind == TIMER_TREE_ANSWER)
        send_all_reduce(tl, m, way, TIMER_ALL_REDUCE, sent->began_us);
    else if (way == 1)
        tree_goes_on(tl, sent, TIMER_TREE_BACK, 0);
    else {
        double rest_us = way == 2 ? timeline_message_cost(tl, &tl->plan->messages[m]).rest_us : 0;
        add_traffic_everywhere(tl, 0, -1);
        if (rest_us > 0)
            tree_goes_on(tl, sent, TIMER_TREE_END, rest_us);
        else
            all_reduce_done(tl, m, sent->began_us);
    }
}

/* The startup passes as a timed transfer, which computing slows. */
static void begin_startup(struct timeline *tl, uint32_t m) {
    struct transfer startup = {.began_us = tl->now_us, .message = m, .kind = TIMER_STARTUP, .weight = 1};
    add_traffic_everywhere(tl, 1, 0);
    network_add(&tl->network, tl->network.timed, timeline_message_cost(tl, &tl->plan->messages[m]).startup_us, startup,
                tl->now_us);
}

/* ---- pushes and pulls, part by part ---- */

static bool is_answer(unsigned kind) {
    return kind == TIMER_PUSH_ANSWER || kind == TIMER_PULL_ANSWER;
}

/* A request or an answer takes no bytes worth counting; but it waits for what its connection carries before it. */
static double part_bytes(const struct timeline *tl, const struct message *message, unsigned kind) {
    if (is_answer(kind))
        return 0;
    bool first = kind == TIMER_PUSH || kind == TIMER_PULL;
    return first && has_request(tl, message, kind == TIMER_PULL) ? 0 : (double)message->bytes;
}

static void part_done(struct timeline *tl, uint32_t c, uint32_t m, enum timer_kind kind, double began_us);

static void start_part(struct timeline *tl, uint32_t c, uint32_t m, enum timer_kind kind, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    uint32_t class = timeline_class(tl, c, message->server, goes_back(kind));
    struct transfer transfer = {.began_us = began_us,
                                .message = m,
                                .chain = (uint16_t)c,
                                .kind = (uint16_t)kind,
                                .weight = copies_of(message, &tl->chains[c])};
    if (tl->first_use[class + 1] == tl->first_use[class]) {
        part_done(tl, c, m, kind, began_us);
        return;
    }
    if (tl->interferes)
        add_traffic(tl, &tl->chains[c], 0, !is_answer(kind));
    network_add(&tl->network, class, part_bytes(tl, message, kind), transfer, tl->now_us);
}

/* The first part of a push, which may be all of it. */
static void push_came(struct timeline *tl, uint32_t c, uint32_t m, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    if (tl->cost->connected)
        set_timer(tl, c, m, TIMER_PUSH_ANSWER, tl->now_us, began_us);
    else
        return_credit(&tl->chains[c], message->bytes);
    if (!has_request(tl, message, false))
        push_done(tl, c, m, began_us);
}

static void pull_came(struct timeline *tl, uint32_t c, uint32_t m, double began_us) {
    if (!has_request(tl, &tl->plan->messages[m], true))
        pull_done(tl, c, m, began_us);
    else if (tl->plan->pulls_by_priority)
        enqueue_pull(tl, c, m);
    else
        set_timer(tl, c, m, TIMER_PULL_ANSWER, tl->now_us, began_us);
}

/* A large push is out of its sender's hands once the rest may go: that is when MPI completes it. */
static void answered(struct timeline *tl, uint32_t c, uint32_t m, bool pull, double began_us) {
    const struct message *message = &tl->plan->messages[m];
    if (!pull)
        return_credit(&tl->chains[c], message->bytes);
    if (has_request(tl, message, pull))
        start_part(tl, c, m, pull ? TIMER_PULL_REST : TIMER_PUSH_REST, began_us);
}

static void part_done(struct timeline *tl, uint32_t c, uint32_t m, enum timer_kind kind, double began_us) {
    if (is_answer(kind))
        answered(tl, c, m, kind == TIMER_PULL_ANSWER, began_us);
    else if (kind == TIMER_PUSH)
        push_came(tl, c, m, began_us);
    else if (kind == TIMER_PULL)
        pull_came(tl, c, m, began_us);
    else if (kind == TIMER_PUSH_REST)
        push_done(tl, c, m, began_us);
    else
        pull_done(tl, c, m, began_us);
}

static void handle_timer(struct timeline *tl, struct timer timer) {
    enum timer_kind kind = timer.kind;
    if (kind == TIMER_STEP)
        step_done(tl, timer.chain, timer.time_us);
    else if (kind == TIMER_STARTUP)
        begin_startup(tl, timer.message);
    else if (kind == TIMER_TREE_END)
        all_reduce_done(tl, timer.message, timer.began_us);
    else if (kind == TIMER_TREE_BACK)
        start_way(tl, timer.message, 2, timer.began_us);
    else if (kind == TIMER_ALL_REDUCE)
        start_all_reduce(tl, timer.message,
                         tl->now_us - timeline_message_cost(tl, &tl->plan->messages[timer.message]).startup_us);
    else if (kind == TIMER_SUM)
        enqueue_pull(tl, timer.chain, timer.message);
    else
        start_part(tl, timer.chain, timer.message, kind, timer.began_us);
}

static bool is_of_all_reduce(unsigned kind) {
    return kind == TIMER_ALL_REDUCE || kind == TIMER_TREE_REQUEST || kind == TIMER_TREE_ANSWER;
}

static void handle_transfer(struct timeline *tl, const struct transfer *transfer) {
    if (transfer->kind == TIMER_STARTUP) {
        add_traffic_everywhere(tl, -1, 0);
        start_all_reduce(tl, transfer->message, transfer->began_us);
    } else if (is_of_all_reduce(transfer->kind))
        all_reduce_came(tl, transfer);
    else {
        if (tl->interferes)
            add_traffic(tl, &tl->chains[transfer->chain], 0, -!is_answer(transfer->kind));
        part_done(tl, transfer->chain, transfer->message, transfer->kind, transfer->began_us);
    }
}

static void advance(struct timeline *tl, double time_us) {
    if (time_us <= tl->now_us)
        return;
    if (tl->active > 0)
        tl->busy_us += time_us - tl->now_us;
    tl->now_us = time_us;
}

/* Whether any chain woke by then. */
static bool wake_chains(struct timeline *tl, double until_us) {
    bool any = false;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        while (tl->chains[c].wake_us <= until_us && !tl->done) {
            advance(tl, tl->chains[c].wake_us);
            wake(tl, c);
            any = true;
        }
    return any;
}

/* Take in everything that happens by `until_us`. */
static void take_instant(struct timeline *tl, double until_us) {
    struct transfer transfer;
    for (bool any = true; any && !tl->done;) {
        any = false;
        while (tl->n_timers > 0 && tl->timers[0].time_us <= until_us && !tl->done) {
            advance(tl, tl->timers[0].time_us);
            handle_timer(tl, timer_pop(tl));
            any = true;
        }
        if (tl->interferes && wake_chains(tl, until_us))
            any = true;
        while (!tl->done && network_pop(&tl->network, until_us, tl->now_us, &transfer)) {
            handle_transfer(tl, &transfer);
            any = true;
        }
    }
}

/* The iteration that the first chain is in has taken so long that its exact time does not matter. */
static void give_up(struct timeline *tl) {
    double taken_us = tl->now_us - started_us(&tl->chains[0], tl->chains[0].arrivals - 1);
    if (!tl->done && !tl->options->weather && tl->options->enough_us > 0 && taken_us > tl->options->enough_us)
        finish(tl, taken_us, false);
}

/* Fails: ST_INVALID when nothing is left to happen before the end (a cost is infinite, or the plan's parts contradict
 * each other), and as work_check. */
static enum status run(struct timeline *tl, struct error *err) {
    enum status status = work_check(err);
    const uint32_t pullers = tl->plan->pulls_by_priority ? tl->n_chains : 0;
    for (uint32_t c = 0; c < tl->n_chains && !tl->done; c++)
        run_steps(tl, c, tl->home, 0);
    for (uint32_t turn = 1; !status && !tl->done; turn++) {
        double next = network_next_us(&tl->network, tl->now_us);
        if (tl->interferes)
            next = fmin(next, next_wake_us(tl));
        if (tl->n_timers > 0)
            next = fmin(next, tl->timers[0].time_us);
        if (!isfinite(next))
            break;
        next = fmin(next, next_change_us(tl));
        advance(tl, next);
        for (uint32_t changes = 1; !status && next_change_us(tl) <= next; changes++) {
            change_weather(tl);
            if (changes % TURNS_A_CHECK == 0)
                status = work_check(err);
        }
        take_instant(tl, next + INSTANT_US);
        add_arrivals(tl);
        give_up(tl);
        if (tl->rounds == 0 && !tl->done && has_cost_enough(tl))
            return error_set(err, ST_TOO_LARGE, "one iteration takes more than %llu events",
                             (unsigned long long)tl->options->most_events);
        for (uint32_t c = 0; c < tl->n_chains; c++)
            if (tl->chains[c].dirty)
                serve_queue(tl, c);
        for (uint32_t c = 0; c < pullers; c++)
            if (tl->chains[c].pulls_dirty)
                serve_pulls(tl, c);
        if (turn % TURNS_A_CHECK == 0)
            status = work_check(err);
    }
    if (!status && !(tl->done && isfinite(tl->iteration_us)))
        status = error_set(err, ST_INVALID, "the plan never ends: a message is too large for this cluster's rates");
    return status;
}

/* Nothing to send: the slowest worker computes, in weather. Fails: as work_check. */
static enum status run_alone(struct timeline *tl, double compute_us, struct error *err) {
    const struct timeline_options *options = tl->options;
    enum status status = ST_OK;
    for (tl->now_us = 0; !status && !tl->done; tl->rounds++) {
        double us = compute_us * weather_slowness(tl->cost->cluster, options->seed, tl->cost->slowest, tl->rounds);
        tl->now_us += us;
        if (options->iteration)
            options->iteration(options->context, us);
        if ((tl->now_us >= options->until_us || us <= 0) && tl->rounds + 1 >= options->passes)
            finish(tl, tl->now_us / (tl->rounds + 1), true);
        status = work_check(err);
    }
    return status;
}

static void predict(const struct timeline *tl, double compute_us, struct prediction *out) {
    const struct plan *plan = tl->plan;
    double rounds = tl->rounds > 0 ? tl->rounds : 1;
    *out = (struct prediction){.iteration_us = tl->iteration_us,
                               .compute_us = compute_us,
                               .exposed_us = fmax(tl->iteration_us - compute_us, 0),
                               .comm_busy_us = tl->busy_us / rounds,
                               .queue_us = (tl->queue_us + (double)tl->queued * tl->now_us) / rounds,
                               .messages = plan->n_messages,
                               .micro_batches = plan->micro_batches,
                               .passes = tl->rounds,
                               .events = events(tl),
                               .lossy = plan->lossy,
                               .in_parts = plan->in_parts,
                               .converged = tl->converged};
    if (tl->iteration_us > 0)
        out->samples_per_s = plan_samples(plan) / tl->iteration_us * 1e6;
}

enum status timeline_run(struct timeline *tl, const struct plan *plan, const struct cost *cost,
                         const struct timeline_options *options, struct prediction *out, struct error *err) {
    struct timeline_options given = options ? *options : (struct timeline_options){0};
    double compute = 0;
    if (given.max_passes == 0)
        given.max_passes = TIMELINE_MAX_PASSES;
    enum status status = timeline_prepare(tl, plan, cost, &given, err);
    if (status)
        return status;
    for (uint32_t k = 0; k < plan->n_steps; k++)
        compute += plan->step_us[k];
    compute *= cost->cluster->nodes[cost->slowest].compute_scale;
    double load = given.enough_us > 0 && plan->any_server ? timeline_load_us(tl) : 0;
    if (plan->n_messages == 0 && given.weather)
        status = run_alone(tl, compute, err);
    else if (plan->n_messages == 0)
        finish(tl, compute, true);
    else if (load > given.enough_us)
        finish(tl, load, false);
    else
        status = run(tl, err);
    if (!status)
        predict(tl, compute, out);
    return status;
}
