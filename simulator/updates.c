/* Workers, servers and the network of simulator/updates.h: a loop over the next thing that happens. */
#include "simulator/updates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/work.h"
#include "simulator/updates_internal.h"
#include "strategy/updates/replicate.h"

enum { MOST_ENDED = 50, MOST_STEPS_AT_ONE_TIME = 1000000 };
static const double WARM_UP = 10; /* a tenth of the updates does not count */

/* ---- what counts ---- */

static bool counts(const struct updates *u) {
    return isfinite(u->counts_from_us);
}

static void count_delay(struct updates *u, uint64_t delay, double share) {
    struct updates_prediction *out = u->out;
    u->applied += share;
    if (!counts(u))
        return;
    out->applied += share;
    out->delays[delay < UPDATES_DELAYS ? delay : UPDATES_DELAYS - 1] += share;
    out->delay_most = delay > out->delay_most ? delay : out->delay_most;
    out->delay_sum += (double)delay * share;
    out->delay_squares += (double)delay * (double)delay * share;
}

static bool serves(const struct updates *u, uint32_t node) {
    bool found = false;
    for (uint32_t s = 0; s < u->n_servers; s++)
        found = found || u->servers[s] == node;
    return found;
}

static void count_transfer(struct updates *u, const struct wire_transfer *t) {
    struct updates_prediction *out = u->out;
    const bool up = t->kind <= TRANSFER_SUM_OF_COPIES;
    if (!counts(u) || t->from == t->to)
        return;
    if (t->kind == TRANSFER_COPY || t->kind == TRANSFER_SUM_OF_COPIES) {
        out->replica_bytes += t->left;
    } else if (up && serves(u, t->to)) {
        out->in_bytes += t->left;
    } else if (!up && serves(u, t->from)) {
        out->out_bytes += t->left;
    } else {
        out->between_bytes += t->left;
        out->transfers++;
        out->slow_transfers +=
            u->wire.rates[t->to * DIRECTION_COUNT + DIRECTION_IN] < 0.5 * u->cost->nic_bytes_per_us[t->to];
    }
}

static void count_iteration(struct updates *u, double us) {
    if (!counts(u))
        return;
    u->out->iterations++;
    u->out->iteration_sum_us += us;
    if (u->options->iteration)
        u->options->iteration(u->options->context, us);
}

/* ---- what is recorded ---- */

static void record(const struct updates *u, struct updates_event event) {
    if (u->options->record)
        u->options->record(u->options->context, &event);
}

static void record_transfer(const struct updates *u, const struct wire_transfer *t) {
    static const char *const names[] = {[TRANSFER_PUSH] = "update",
                                        [TRANSFER_TO_AGGREGATOR] = "update",
                                        [TRANSFER_SUM] = "sum of updates",
                                        [TRANSFER_COPY] = "copy",
                                        [TRANSFER_SUM_OF_COPIES] = "sum of copies",
                                        [TRANSFER_PULL] = "model",
                                        [TRANSFER_TO_DISTRIBUTOR] = "model",
                                        [TRANSFER_TO_NODE] = "model"};
    const bool part = t->kind == TRANSFER_PUSH || t->kind == TRANSFER_PULL;
    record(u, (struct updates_event){.kind = UPDATES_TRANSFER,
                                     .what = names[t->kind],
                                     .worker = part ? t->what / u->n_servers : UINT32_MAX,
                                     .from = t->from,
                                     .to = t->to,
                                     .bytes = t->bytes,
                                     .start_us = t->began_us,
                                     .end_us = u->now_us});
}

static void record_rates(const struct updates *u) {
    for (uint32_t p = 0; p < u->cost->cluster->n_nodes * DIRECTION_COUNT; p++)
        record(u, (struct updates_event){.kind = UPDATES_RATE,
                                         .from = p / DIRECTION_COUNT,
                                         .direction = p % DIRECTION_COUNT,
                                         .gbit_per_s = u->weather.gbit_per_s[p],
                                         .start_us = u->now_us});
}

/* ---- sending ---- */

static enum status send(struct updates *u, struct wire_transfer t, struct error *err) {
    t.left = t.bytes;
    t.began_us = u->now_us;
    count_transfer(u, &t);
    return wire_add(&u->wire, t, err);
}

enum status updates_send(struct updates *u, enum transfer_kind kind, uint32_t what, uint32_t from, uint32_t to,
                         double bytes, uint64_t turn, struct error *err) {
    struct wire_transfer t = {.turn = turn, .from = from, .to = to, .bytes = bytes, .kind = kind, .what = what};
    return send(u, t, err);
}

enum status updates_send_model(struct updates *u, enum transfer_kind kind, uint32_t what, uint32_t from, uint32_t to,
                               uint64_t version, uint64_t turn, struct error *err) {
    struct wire_transfer t = {
        .turn = turn, .from = from, .to = to, .bytes = u->all_bytes, .kind = kind, .what = what, .version = version};
    return send(u, t, err);
}

static enum status land(struct updates *u, struct wire_transfer transfer, double us, struct error *err) {
    if (!GROW(&u->landings, &u->landing_room, u->n_landings + 1))
        return error_no_memory(err);
    u->landings[u->n_landings++] = (struct landing){us, transfer};
    return ST_OK;
}

/* ---- workers ---- */

static double compute_us(const struct updates *u, uint32_t worker) {
    const struct cluster *cluster = u->cost->cluster;
    double us = 0;
    for (uint32_t k = 0; k < u->plan->n_steps; k++)
        us += u->plan->step_us[k];
    us *= cluster->nodes[u->workers[worker].node].compute_scale;
    return u->options->weather
               ? us * weather_device_slowness(cluster, u->options->seed, worker, u->workers[worker].iteration)
               : us;
}

/* Copying the variables into the update, or the model out of what came. */
static double copy_us(const struct updates *u) {
    return u->plan->n_pieces > u->plan->n_messages ? u->all_bytes / u->cost->copy_bytes_per_us : 0;
}

static void begin_iteration(struct updates *u, uint32_t w) {
    struct worker *worker = &u->workers[w];
    double begins_us = u->now_us + copy_us(u);
    if (worker->iteration > 0)
        count_iteration(u, begins_us - worker->began_us);
    worker->state = WORKER_COMPUTES;
    worker->began_us = begins_us;
    worker->ready_us = begins_us + compute_us(u, w) + u->cost->runtime.message_us + copy_us(u);
}

static enum status push(struct updates *u, uint32_t w, struct error *err) {
    struct worker *worker = &u->workers[w];
    enum status st = ST_OK;
    worker->state = u->consistency->scheduled ? WORKER_WAITS : WORKER_PUSHES;
    worker->parts = u->n_servers;
    for (uint32_t s = 0; s < u->n_servers && !u->consistency->scheduled && !st; s++)
        st = updates_send(u, TRANSFER_PUSH, w * u->n_servers + s, worker->node, u->servers[s], u->bytes[s], u->turns++,
                          err);
    return st;
}

void updates_take_versions(struct updates *u, uint32_t w) {
    memcpy(u->workers[w].versions, u->version, u->n_servers * sizeof *u->version);
    u->workers[w].state = WORKER_PULLS;
}

static enum status answer(struct updates *u, uint32_t w, struct error *err) {
    struct worker *worker = &u->workers[w];
    enum status st = ST_OK;
    updates_take_versions(u, w);
    worker->parts = u->n_servers;
    for (uint32_t s = 0; s < u->n_servers && !st; s++)
        st = updates_send(u, TRANSFER_PULL, w * u->n_servers + s, u->servers[s], worker->node, u->bytes[s], u->turns++,
                          err);
    return st;
}

bool updates_may_have_model(const struct updates *u, uint32_t w) {
    uint64_t least = UINT64_MAX;
    if (u->consistency->kind == CONSISTENCY_synchronous)
        return u->in_version == 0;
    if (u->consistency->kind != CONSISTENCY_stale_synchronous)
        return true;
    for (uint32_t i = 0; i < u->n_workers; i++)
        least = u->workers[i].iteration < least ? u->workers[i].iteration : least;
    return u->workers[w].iteration <= least + u->consistency->staleness;
}

static enum status answer_those_who_may(struct updates *u, struct error *err) {
    enum status st = ST_OK;
    for (uint32_t w = 0; w < u->n_workers && !st; w++)
        if (u->workers[w].state == WORKER_ASKS && updates_may_have_model(u, w))
            st = answer(u, w, err);
    return st;
}

enum status updates_end(struct updates *u, uint32_t w, struct error *err) {
    u->workers[w].iteration++;
    u->workers[w].state = WORKER_ASKS;
    u->ended++;
    return u->consistency->distributors > 0 ? ST_OK : answer_those_who_may(u, err);
}

/* ---- servers ---- */

/* A part of a worker's update is there. */
static enum status apply(struct updates *u, uint32_t w, uint32_t s, struct error *err) {
    struct worker *worker = &u->workers[w];
    const uint64_t delay = u->version[s] - worker->versions[s];
    if (u->consistency->kind == CONSISTENCY_synchronous) {
        count_delay(u, 0, u->share[s]);
        u->in_version = (u->in_version + 1) % (u->n_workers * u->n_servers);
        u->version[s] += u->in_version == 0;
    } else if (u->consistency->delay_bound > 0 && delay > u->consistency->delay_bound) {
        u->out->late += counts(u) ? u->share[s] : 0;
        if (u->consistency->replicated)
            u->norms[worker->place] = 0;
    } else {
        count_delay(u, delay, u->share[s]);
        u->version[s]++;
    }
    if (s == 0) /* its version counts from now on */
        u->committed -= u->consistency->scheduled;
    return --worker->parts > 0 ? ST_OK : updates_end(u, w, err);
}

/* ---- arrivals ---- */

static double sum_us(const struct updates *u, double bytes) {
    return bytes / u->cost->sum_bytes_per_us;
}

static uint32_t server_at(const struct updates *u, uint32_t node) {
    uint32_t s = 0;
    while (u->servers[s] != node)
        s++;
    return s;
}

/* The bytes are there; what the transfer is for happens after its latency, and after the server's sums before it. */
static enum status arrive(struct updates *u, struct wire_transfer t, struct error *err) {
    const bool up = t.kind <= TRANSFER_SUM_OF_COPIES;
    double us =
        u->now_us + (up ? cost_push_latency_us(u->cost, t.from, t.to) : cost_pull_latency_us(u->cost, t.to, t.from));
    if (t.kind == TRANSFER_PUSH || t.kind == TRANSFER_SUM) {
        uint32_t s = server_at(u, t.to);
        us = fmax(us, u->busy_us[s]) + sum_us(u, u->bytes[s]);
        u->busy_us[s] = us;
    } else if (t.kind == TRANSFER_TO_AGGREGATOR) {
        us += sum_us(u, u->all_bytes);
    }
    return land(u, t, us, err);
}

/* An update is at its aggregator. */
static enum status add_to_group(struct updates *u, uint32_t g, struct error *err) {
    struct update_group *group = &u->groups[g];
    if (--group->missing > 0)
        return ST_OK;
    group->waits = false;
    if (group->copies)
        return updates_send(u, TRANSFER_SUM_OF_COPIES, g, group->node, group->to, u->all_bytes, group->turn, err);
    updates_sum_is_ready(u, g);
    return ST_OK;
}

/* ---- a replica ---- */

/* Whether the server may apply its next update: the replica is then within its bound. */
static bool may_apply_next(struct updates *u) {
    const struct consistency *c = u->consistency;
    double apart = replica_divergence((uint32_t)(u->next + 1 - u->replica_next), u->norms + u->replica_next,
                                      u->replica_step, c->momentum);
    if (apart > c->divergence * (1 + 1e-12))
        return false;
    u->out->divergence_most = fmax(u->out->divergence_most, apart);
    return true;
}

/* The server goes on as far as it may, and the replica follows as far as it has what the server has applied. */
static enum status go_on_in_sequence(struct updates *u, struct error *err) {
    enum status st = ST_OK;
    for (bool moved = true; moved && !st;) {
        moved = false;
        for (; u->replica_next < u->next && u->sequence[u->replica_next].at_replica; moved = true)
            u->replica_step = replica_step(u->replica_step, u->norms[u->replica_next++], u->consistency->momentum);
        if (u->next < u->n_sequence && u->sequence[u->next].here && may_apply_next(u)) {
            u->next++;
            st = apply(u, u->sequence[u->next - 1].worker, 0, err);
            moved = true;
        }
    }
    return st;
}

/* An update is at its server. */
static enum status take_update(struct updates *u, uint32_t w, uint32_t s, struct error *err) {
    if (!u->consistency->replicated)
        return apply(u, w, s, err);
    u->sequence[u->workers[w].place].here = true;
    return go_on_in_sequence(u, err);
}

static enum status take_sum(struct updates *u, const struct update_group *group, struct error *err) {
    enum status st = ST_OK;
    for (uint32_t i = 0; i < group->n && !st; i++)
        st = take_update(u, u->members[group->first + i], 0, err);
    return st;
}

static enum status take_sum_of_copies(struct updates *u, const struct update_group *group, struct error *err) {
    for (uint32_t i = 0; i < group->n; i++)
        u->sequence[u->members[group->first + i]].at_replica = true;
    return go_on_in_sequence(u, err);
}

static enum status take_copy(struct updates *u, uint32_t place, struct error *err) {
    u->sequence[place].at_replica = true;
    return go_on_in_sequence(u, err);
}

/* A version of the model is on a node: workers that wait for it, or for an older one, have it. */
static void give_model(struct updates *u, uint32_t node, uint64_t version) {
    for (uint32_t w = 0; w < u->n_workers; w++) {
        struct worker *worker = &u->workers[w];
        if (worker->node != node || worker->state != WORKER_PULLS || worker->versions[0] > version)
            continue;
        worker->versions[0] = version;
        begin_iteration(u, w);
    }
}

static enum status pass_model_on(struct updates *u, uint32_t g, struct error *err) {
    const struct update_group group = u->groups[g];
    enum status st = ST_OK;
    give_model(u, group.node, group.version);
    for (uint32_t i = 0; i < group.n && !st; i++) {
        uint32_t node = u->members[group.first + i];
        st = updates_send_model(u, TRANSFER_TO_NODE, node, group.node, node, group.version, group.turn, err);
    }
    return st;
}

static void take_part(struct updates *u, uint32_t w) {
    if (--u->workers[w].parts == 0)
        begin_iteration(u, w);
}

static enum status finish(struct updates *u, const struct wire_transfer *t, struct error *err) {
    struct update_group group;
    if (u->consistency->scheduled && (t->kind == TRANSFER_PUSH || t->kind == TRANSFER_SUM))
        updates_came(u, server_at(u, t->to), t->kind, t->what);
    switch ((enum transfer_kind)t->kind) {
    case TRANSFER_PUSH:
        return take_update(u, t->what / u->n_servers, t->what % u->n_servers, err);
    case TRANSFER_TO_AGGREGATOR:
        return add_to_group(u, t->what, err);
    case TRANSFER_SUM:
        group = u->groups[t->what]; /* the array may grow */
        return take_sum(u, &group, err);
    case TRANSFER_COPY:
        return take_copy(u, t->what, err);
    case TRANSFER_SUM_OF_COPIES:
        return take_sum_of_copies(u, &u->groups[t->what], err);
    case TRANSFER_PULL:
        take_part(u, t->what / u->n_servers);
        return ST_OK;
    case TRANSFER_TO_DISTRIBUTOR:
        return pass_model_on(u, t->what, err);
    case TRANSFER_TO_NODE:
        give_model(u, t->what, t->version);
    }
    return ST_OK;
}

/* ---- weather ---- */

/* Changes that have happened by now, and those that the monitor has reported by now. */
static void follow_weather(struct updates *u) {
    const uint32_t ports = u->cost->cluster->n_nodes * DIRECTION_COUNT;
    const double lag_us = u->cost->cluster->variability.monitor_lag_us;
    for (; weather_next_us(&u->weather) <= u->now_us; weather_advance(&u->weather))
        ;
    for (; weather_next_us(&u->reported) + lag_us <= u->now_us; weather_advance(&u->reported))
        ;
    for (uint32_t p = 0; p < ports; p++) {
        wire_set_rate(&u->wire, p, cost_nic_bytes_per_us(u->cost, p / DIRECTION_COUNT, u->weather.gbit_per_s[p]));
        u->reported_rates[p] = cost_nic_bytes_per_us(u->cost, p / DIRECTION_COUNT, u->reported.gbit_per_s[p]);
    }
    record_rates(u);
}

static double next_weather_us(const struct updates *u) {
    if (!u->options->weather)
        return INFINITY;
    return fmin(weather_next_us(&u->weather),
                weather_next_us(&u->reported) + u->cost->cluster->variability.monitor_lag_us);
}

/* ---- the loop ---- */

static double next_ready_us(const struct updates *u) {
    double us = INFINITY;
    for (uint32_t w = 0; w < u->n_workers; w++)
        if (u->workers[w].state == WORKER_COMPUTES)
            us = fmin(us, u->workers[w].ready_us);
    return us;
}

static double next_landing_us(const struct updates *u) {
    double us = INFINITY;
    for (size_t i = 0; i < u->n_landings; i++)
        us = fmin(us, u->landings[i].us);
    return us;
}

/* The scheduler's next turn: the end of this batch, or now if nobody can join it. */
static double next_schedule_us(const struct updates *u) {
    uint32_t waiting = 0, idle = 0;
    if (!u->consistency->scheduled)
        return INFINITY;
    for (uint32_t w = 0; w < u->n_workers; w++) {
        enum worker_state state = u->workers[w].state;
        bool asks = state == WORKER_ASKS && u->consistency->distributors > 0 && updates_may_have_model(u, w);
        waiting += state == WORKER_WAITS || asks;
        idle += state == WORKER_WAITS || state == WORKER_ASKS;
    }
    if (waiting == 0)
        return INFINITY;
    return idle == u->n_workers ? u->now_us
                                : (floor(u->now_us / u->consistency->batch_us) + 1) * u->consistency->batch_us;
}

static enum status take_transfers(struct updates *u, struct error *err) {
    struct wire_transfer t;
    enum status st = ST_OK;
    while (!st && wire_pop(&u->wire, &t)) {
        record_transfer(u, &t);
        st = arrive(u, t, err);
    }
    return st;
}

static enum status take_landings(struct updates *u, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < u->n_landings && !st;) {
        struct landing l = u->landings[i];
        if (l.us > u->now_us) {
            i++;
            continue;
        }
        u->landings[i] = u->landings[--u->n_landings];
        st = finish(u, &l.transfer, err);
    }
    return st;
}

static enum status take_ready(struct updates *u, struct error *err) {
    enum status st = ST_OK;
    for (uint32_t w = 0; w < u->n_workers && !st; w++)
        if (u->workers[w].state == WORKER_COMPUTES && u->workers[w].ready_us <= u->now_us) {
            record(u, (struct updates_event){.kind = UPDATES_COMPUTE,
                                             .worker = w,
                                             .from = u->workers[w].node,
                                             .start_us = u->workers[w].began_us,
                                             .end_us = u->workers[w].ready_us});
            st = push(u, w, err);
        }
    return st;
}

static enum status step(struct updates *u, double schedule_us, double us, struct error *err) {
    wire_go_on(&u->wire, us);
    u->now_us = us;
    if (next_weather_us(u) <= us)
        follow_weather(u);
    enum status st = take_transfers(u, err);
    if (!st)
        st = take_landings(u, err);
    if (!st)
        st = take_ready(u, err);
    if (!st && schedule_us <= us)
        st = updates_schedule(u, err);
    return !st && u->consistency->scheduled ? updates_set_out(u, err) : st;
}

/* So many rounds of applied updates are through; or next to all are dropped. */
static bool through(const struct updates *u, double rounds) {
    const double updates = rounds * u->n_workers;
    return u->applied >= updates * (1 - 1e-9) || (double)u->ended >= MOST_ENDED * updates;
}

/* Something counts, for some time, or next to all updates are dropped. */
static bool is_over(const struct updates *u, double rounds) {
    const bool some = u->out->applied > 0 && u->now_us > u->counts_from_us;
    return through(u, rounds) && u->now_us >= u->options->until_us &&
           (some || (double)u->ended >= MOST_ENDED * rounds * u->n_workers);
}

static enum status go_on(struct updates *u, uint32_t *still, struct error *err) {
    double schedule_us = next_schedule_us(u);
    double us = fmin(fmin(wire_next_us(&u->wire), next_landing_us(u)), fmin(next_ready_us(u), schedule_us));
    assert(isfinite(us)); /* somebody always computes, sends or waits for the scheduler */
    us = fmin(us, next_weather_us(u));
    *still = us > u->now_us ? 0 : *still + 1;
    if (*still > MOST_STEPS_AT_ONE_TIME)
        return error_set(err, ST_INVALID, "time stands still: neither an operator nor a transfer takes any");
    return step(u, schedule_us, us, err);
}

static enum status loop(struct updates *u, struct error *err) {
    const double rounds = u->options->rounds > 0 ? u->options->rounds : UPDATES_ROUNDS;
    enum status st = ST_OK;
    uint32_t still = 0;
    for (uint32_t w = 0; w < u->n_workers; w++)
        begin_iteration(u, w);
    for (uint64_t n = 0; !st && !is_over(u, rounds); n++) {
        st = n % 1024 ? ST_OK : work_check(err);
        if (!st)
            st = go_on(u, &still, err);
        if (!counts(u) && through(u, rounds / WARM_UP))
            u->counts_from_us = u->now_us;
    }
    return st;
}

/* ---- before and after ---- */

static void list_servers(struct updates *u) {
    for (uint32_t m = 0; m < u->plan->n_messages; m++) {
        const struct message *message = &u->plan->messages[m];
        uint32_t s = 0;
        while (s < u->n_servers && u->servers[s] != message->server)
            s++;
        u->servers[s] = message->server;
        u->n_servers += s == u->n_servers;
        u->bytes[s] += (double)message->bytes;
        u->all_bytes += (double)message->bytes;
    }
    for (uint32_t s = 0; s < u->n_servers; s++)
        u->share[s] = u->bytes[s] / u->all_bytes;
}

static bool take_memory(struct updates *u) {
    const struct cluster *cluster = u->cost->cluster;
    const size_t ports = (size_t)cluster->n_nodes * DIRECTION_COUNT, messages = u->plan->n_messages;
    const size_t numbers = (size_t)cluster->n_nodes * WEATHER_NUMBERS;
    u->n_workers = cluster->n_devices;
    u->workers = arena_alloc(&u->arena, u->n_workers, sizeof *u->workers);
    u->servers = arena_alloc(&u->arena, messages, sizeof *u->servers);
    u->bytes = arena_alloc(&u->arena, messages, sizeof *u->bytes);
    u->share = arena_alloc(&u->arena, messages, sizeof *u->share);
    u->version = arena_alloc(&u->arena, messages, sizeof *u->version);
    u->busy_us = arena_alloc(&u->arena, messages, sizeof *u->busy_us);
    u->weather.gbit_per_s = arena_alloc(&u->arena, numbers, sizeof *u->weather.gbit_per_s);
    u->reported.gbit_per_s = arena_alloc(&u->arena, numbers, sizeof *u->reported.gbit_per_s);
    u->reported_rates = arena_alloc(&u->arena, ports, sizeof *u->reported_rates);
    if (!u->workers || !u->servers || !u->bytes || !u->share || !u->version || !u->busy_us || !u->weather.gbit_per_s ||
        !u->reported.gbit_per_s || !u->reported_rates)
        return false;
    for (uint32_t w = 0; w < u->n_workers; w++) {
        u->workers[w].node = cluster_node_of_device(cluster, w);
        u->workers[w].versions = arena_alloc(&u->arena, messages, sizeof *u->workers[w].versions);
        if (!u->workers[w].versions)
            return false;
    }
    return true;
}

static enum status set_out(struct updates *u, struct error *err) {
    const struct cluster *cluster = u->cost->cluster;
    if (!take_memory(u))
        return error_no_memory(err);
    list_servers(u);
    u->due = arena_alloc(&u->arena, (size_t)u->n_servers * u->n_workers, sizeof *u->due);
    u->n_due = arena_alloc(&u->arena, u->n_servers, sizeof *u->n_due);
    if (!u->due || !u->n_due)
        return error_no_memory(err);
    for (uint32_t p = 0; p < cluster->n_nodes * DIRECTION_COUNT; p++)
        u->reported_rates[p] = u->cost->nic_bytes_per_us[p / DIRECTION_COUNT];
    const double spread = cluster_transport(cluster) == TRANSPORT_ideal ? 1 : WIRE_SPREAD_OF_CONNECTIONS;
    enum status st = wire_init(&u->wire, cluster->n_nodes, !u->consistency->scheduled, spread, u->reported_rates,
                               u->cost->device_link_bytes_per_us, err);
    u->weather.cluster = u->reported.cluster = cluster;
    u->weather.seed = u->reported.seed = u->options->seed;
    if (st || !u->options->weather)
        return st;
    weather_begin(&u->weather);
    weather_begin(&u->reported);
    follow_weather(u);
    return ST_OK;
}

static void release(struct updates *u) {
    wire_release(&u->wire);
    free(u->landings);
    free(u->groups);
    free(u->members);
    free(u->sequence);
    free(u->norms);
    arena_release(&u->arena);
}

static enum status check(const struct plan *plan, const struct cost *cost, struct error *err) {
    if (consistency_is_plain(&plan->consistency))
        return error_set(err, ST_INVALID, "a strategy without \"consistency\" has iterations, and no updates");
    if (cost->cluster->n_nodes > UPDATES_MAX_NODES)
        return error_set(err, ST_TOO_LARGE, "updates are simulated for at most %d nodes; \"%s\" has %u",
                         UPDATES_MAX_NODES, cost->cluster->name, cost->cluster->n_nodes);
    if (plan->n_messages == 0)
        return error_set(err, ST_INVALID, "model \"%s\" has no gradients to send", plan->model->name);
    return ST_OK;
}

enum status updates_run(const struct plan *plan, const struct cost *cost, const struct updates_options *options,
                        struct updates_prediction *out, struct error *err) {
    struct updates_prediction *prediction = calloc(1, sizeof *prediction);
    struct updates u = {.plan = plan,
                        .cost = cost,
                        .consistency = &plan->consistency,
                        .options = options,
                        .counts_from_us = INFINITY,
                        .out = prediction};
    enum status st = check(plan, cost, err);
    if (!st && !prediction)
        st = error_no_memory(err);
    if (!st)
        st = set_out(&u, err);
    if (!st)
        st = loop(&u, err);
    if (!st) {
        prediction->workers = u.n_workers;
        prediction->us = u.now_us - u.counts_from_us;
        *out = *prediction;
    }
    release(&u);
    free(prediction);
    return st;
}

double updates_round_us(const struct updates_prediction *p) {
    return p->us / p->applied * p->workers;
}

double updates_delay_mean(const struct updates_prediction *p) {
    return p->applied > 0 ? p->delay_sum / p->applied : 0;
}

double updates_delay_variance(const struct updates_prediction *p) {
    double mean = updates_delay_mean(p);
    return p->applied > 0 ? fmax(p->delay_squares / p->applied - mean * mean, 0) : 0;
}

double updates_share_dropped(const struct updates_prediction *p) {
    const double lost = p->dropped + p->late, all = p->applied + lost;
    return all > 0 ? lost / all : 0;
}

void updates_prediction_add(struct updates_prediction *sum, const struct updates_prediction *more) {
    sum->workers = more->workers;
    sum->us += more->us;
    sum->applied += more->applied;
    sum->dropped += more->dropped;
    sum->late += more->late;
    sum->delay_sum += more->delay_sum;
    sum->delay_squares += more->delay_squares;
    sum->delay_most = more->delay_most > sum->delay_most ? more->delay_most : sum->delay_most;
    for (int d = 0; d < UPDATES_DELAYS; d++)
        sum->delays[d] += more->delays[d];
    sum->iteration_sum_us += more->iteration_sum_us;
    sum->iterations += more->iterations;
    sum->in_bytes += more->in_bytes;
    sum->out_bytes += more->out_bytes;
    sum->replica_bytes += more->replica_bytes;
    sum->divergence_most = fmax(sum->divergence_most, more->divergence_most);
    sum->between_bytes += more->between_bytes;
    sum->transfers += more->transfers;
    sum->slow_transfers += more->slow_transfers;
}
