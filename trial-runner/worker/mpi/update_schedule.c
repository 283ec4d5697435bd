/* Every worker has at most one update, so a batch, and all that is on its way, has at most n_devices. */
#include "trial-runner/worker/mpi/update_schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "strategy/cost/cost.h"
#include "strategy/updates/aggregate.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"
#include "strategy/updates/spread.h"
#include "strategy/updates/turns.h"
#include "strategy/weather.h"
#include "trial-runner/lab.h"
#include "trial-runner/worker/report.h"

enum sender_state {
    SENDER_IS_BUSY,
    SENDER_WAITS,   /* its update is ready */
    SENDER_DROPPED, /* its update is to be dropped */
};

struct sender {
    enum sender_state state;
    uint64_t *versions; /* [n_servers] of the models that its update was computed from */
};

/* What a turn is for. */
struct trip {
    struct update_turn what;
    bool taken;       /* of a group: its aggregator knows it */
    double began_us;  /* to go */
    uint32_t missing; /* updates that have not come */
};

/* What is to come to a server. */
struct queue {
    struct turn *turns; /* [n_turns] that have not all come, in order; `what`: the first worker */
    struct trip *trips; /* [n] by the first worker */
    uint32_t n_turns;
    uint64_t version; /* of its model, as far as this rank knows */
};

struct update_schedule {
    const struct update_run *run;
    const struct consistency *consistency;
    uint32_t n;        /* workers */
    uint32_t *servers; /* [n_servers] nodes: run->servers, but that this rank is the first, also after a takeover */
    struct sender *senders;
    struct queue *queues;         /* [n_servers] */
    double bytes, *parts, *share; /* of an update; of its parts [n_servers], and over all of it */
    struct cost cost;
    struct weather reported;
    double *rates; /* [2 * n_nodes] bytes per microsecond, as the monitor has them */
    double began_us, weather_us, due_us;
    uint32_t waiting;
    uint32_t *leaving;               /* [n_nodes] models on their way from the server to the node */
    double *reversed;                /* scratch: rates with all directions reversed */
    uint32_t *batch, *order, *group; /* [n]: workers; positions in the batch; of the next two */
    uint32_t *aggregators;           /* nodes, the fastest first */
    struct update *updates;
    double *end_us, *arrival_us, *sum_us;
    bool *dropped;
};

static void follow_weather(struct update_schedule *s) {
    const struct cluster *cluster = s->run->world->cluster;
    const double seen_us = clock_now_us() - s->weather_us - cluster->variability.monitor_lag_us;
    if (!s->run->options->weather)
        return;
    while (weather_next_us(&s->reported) <= seen_us)
        weather_advance(&s->reported);
    for (uint32_t p = 0; p < cluster->n_nodes * DIRECTION_COUNT; p++)
        s->rates[p] = cost_nic_bytes_per_us(&s->cost, p / DIRECTION_COUNT, s->reported.gbit_per_s[p]);
}

/* Before the first report, and without weather, rates are those of the description. */
static void begin_rates(struct update_schedule *s) {
    const struct cluster *cluster = s->run->world->cluster;
    const char *began = getenv(LAB_WEATHER_BEGAN);
    const uint32_t ports = cluster->n_nodes * DIRECTION_COUNT;
    struct error err = {.status = ST_OK};
    if (cost_init(&s->cost, cluster, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    s->rates = report_alloc(ports, sizeof *s->rates);
    for (uint32_t p = 0; p < ports; p++)
        s->rates[p] = s->cost.nic_bytes_per_us[p / DIRECTION_COUNT];
    if (!s->run->options->weather)
        return;
    s->weather_us = began ? strtod(began, NULL) : s->began_us;
    s->reported = (struct weather){
        .cluster = cluster,
        .seed = s->run->options->weather,
        .gbit_per_s = report_alloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *s->reported.gbit_per_s)};
    weather_begin(&s->reported);
}

static void begin_parts(struct update_schedule *s) {
    const struct update_run *run = s->run;
    memcpy(s->servers, run->servers, run->n_servers * sizeof *s->servers);
    s->servers[0] = run->world->node;
    for (uint32_t m = 0; m < run->plan->n_messages; m++) {
        s->parts[update_server_of(run, m)] += (double)run->plan->messages[m].bytes;
        s->bytes += (double)run->plan->messages[m].bytes;
    }
    for (uint32_t i = 0; i < run->n_servers; i++) {
        s->share[i] = s->parts[i] / s->bytes;
        s->queues[i] = (struct queue){.turns = report_alloc(s->n, sizeof(struct turn)),
                                      .trips = report_alloc(s->n, sizeof(struct trip))};
    }
    for (uint32_t w = 0; w < s->n; w++)
        s->senders[w].versions = report_alloc(run->n_servers, sizeof *s->senders[w].versions);
}

struct update_schedule *update_schedule_new(const struct update_run *run) {
    struct update_schedule *s = report_alloc(1, sizeof *s);
    const uint32_t n = run->world->cluster->n_devices, nodes = run->world->cluster->n_nodes;
    *s = (struct update_schedule){.run = run,
                                  .consistency = &run->plan->consistency,
                                  .n = n,
                                  .servers = report_alloc(run->n_servers, sizeof *s->servers),
                                  .senders = report_alloc(n, sizeof *s->senders),
                                  .began_us = clock_now_us(),
                                  .due_us = INFINITY,
                                  .leaving = report_alloc(nodes, sizeof *s->leaving),
                                  .reversed = report_alloc(nodes * DIRECTION_COUNT, sizeof *s->reversed),
                                  .queues = report_alloc(run->n_servers, sizeof(struct queue)),
                                  .parts = report_alloc(run->n_servers, sizeof *s->parts),
                                  .share = report_alloc(run->n_servers, sizeof *s->share),
                                  .batch = report_alloc(n, sizeof *s->batch),
                                  .order = report_alloc(n, sizeof *s->order),
                                  .group = report_alloc(n, sizeof *s->group),
                                  .aggregators = report_alloc(nodes, sizeof *s->aggregators),
                                  .updates = report_alloc(n, sizeof *s->updates),
                                  .end_us = report_alloc(n, sizeof *s->end_us),
                                  .arrival_us = report_alloc(n, sizeof *s->arrival_us),
                                  .sum_us = report_alloc(nodes, sizeof *s->sum_us),
                                  .dropped = report_alloc(n, sizeof *s->dropped)};
    begin_parts(s);
    begin_rates(s);
    return s;
}

static struct trip *trip_of(const struct queue *q, uint32_t t) {
    return &q->trips[q->turns[t].what];
}

static void queue_release(struct queue *q) {
    for (uint32_t t = 0; t < q->n_turns; t++)
        free(trip_of(q, t)->what.workers);
    free(q->turns);
    free(q->trips);
}

void update_schedule_free(struct update_schedule *s) {
    if (!s)
        return;
    cost_release(&s->cost);
    for (uint32_t w = 0; w < s->n; w++)
        free(s->senders[w].versions);
    free(s->senders);
    for (uint32_t i = 0; i < s->run->n_servers; i++)
        queue_release(&s->queues[i]);
    free(s->queues);
    free(s->servers);
    free(s->parts);
    free(s->share);
    free(s->reported.gbit_per_s);
    free(s->rates);
    free(s->leaving);
    free(s->reversed);
    free(s->batch);
    free(s->order);
    free(s->group);
    free(s->aggregators);
    free(s->updates);
    free(s->end_us);
    free(s->arrival_us);
    free(s->sum_us);
    free(s->dropped);
    free(s);
}

static uint32_t node_of(const struct update_schedule *s, uint32_t worker) {
    return cluster_node_of_device(s->run->world->cluster, worker);
}

/* ---- a batch ---- */

void update_schedule_ready(struct update_schedule *s, uint32_t worker, const uint64_t *versions) {
    s->senders[worker].state = SENDER_WAITS;
    memcpy(s->senders[worker].versions, versions, s->run->n_servers * sizeof *versions);
    s->waiting++;
}

bool update_schedule_is_due(struct update_schedule *s, uint32_t idle, uint32_t asking) {
    const double batch_us = s->consistency->batch_us, now_us = clock_now_us();
    if (s->waiting + asking == 0)
        return false;
    if (isinf(s->due_us))
        s->due_us = s->began_us + (floor((now_us - s->began_us) / batch_us) + 1) * batch_us;
    return s->waiting + idle == s->n || now_us >= s->due_us;
}

/* The version of the model when all that has a turn is in it: the same at every server, since all have the same turns.
 */
static uint64_t next_version(const struct update_schedule *s, uint64_t version) {
    for (uint32_t t = 0; t < s->queues[0].n_turns; t++)
        version += s->queues[0].turns[t].n;
    return version;
}

/* Of the parts of the model that the worker computed from. */
static uint64_t oldest_version(const struct update_schedule *s, uint32_t worker) {
    uint64_t oldest = s->senders[worker].versions[0];
    for (uint32_t i = 1; i < s->run->n_servers; i++)
        oldest = s->senders[worker].versions[i] < oldest ? s->senders[worker].versions[i] : oldest;
    return oldest;
}

static uint32_t gather(struct update_schedule *s, uint64_t version, double now_us) {
    const uint64_t next = next_version(s, version);
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n; w++) {
        if (s->senders[w].state != SENDER_WAITS)
            continue;
        s->updates[n] =
            (struct update){.node = node_of(s, w),
                            .bytes = s->bytes,
                            .available_us = now_us,
                            .deadline = update_deadline(oldest_version(s, w), s->consistency->delay_bound, next)};
        s->batch[n++] = w;
    }
    return n;
}

static double rate_of(const struct update_schedule *s, uint32_t node, enum direction direction) {
    return s->rates[node * DIRECTION_COUNT + direction];
}

/* How much of it has not come, as far as its NIC's rate tells. */
static double left_of(const struct update_schedule *s, uint32_t server, uint32_t t, double now_us) {
    const struct queue *q = &s->queues[server];
    const double rate = rate_of(s, q->turns[t].node, DIRECTION_OUT), bytes = s->parts[server];
    return q->turns[t].goes ? fmax(bytes - (now_us - trip_of(q, t)->began_us) * rate, 0) : bytes;
}

static void reserve_turn(const struct update_schedule *s, uint32_t server, uint32_t t, double now_us,
                         struct calendar *out) {
    const struct turn *turn = &s->queues[server].turns[t];
    const struct update_turn *what = &trip_of(&s->queues[server], t)->what;
    double ready_us = now_us;
    for (uint32_t k = 0; k < what->n && !turn->ready; k++)
        ready_us = fmax(ready_us, calendar_reserve(out, node_of(s, what->workers[k]), what->via, s->bytes, now_us));
    calendar_reserve(out, turn->node, s->servers[server], left_of(s, server, t, now_us), ready_us);
}

/* The calendar begins with what has a turn. */
static enum status begin_calendar(const struct update_schedule *s, double now_us, struct calendar *out,
                                  struct error *err) {
    enum status st = calendar_init(out, s->run->world->cluster->n_nodes, s->rates, now_us, err);
    for (uint32_t i = 0; i < s->run->n_servers && !st; i++)
        for (uint32_t t = 0; t < s->queues[i].n_turns; t++)
            reserve_turn(s, i, t, now_us, out);
    return st;
}

/* The turn of order[first .. first + n) at a server. */
static void add_turn(struct update_schedule *s, uint32_t server, uint32_t via, uint32_t first, uint32_t n) {
    struct queue *q = &s->queues[server];
    const uint32_t bound = s->consistency->delay_bound, names = s->batch[s->order[first]];
    struct turn turn = {.node = via == UPDATE_DIRECT ? node_of(s, names) : via,
                        .n = n,
                        .last = TURN_ANY_VERSION,
                        .ready = via == UPDATE_DIRECT,
                        .what = names};
    uint32_t *workers = report_alloc(n, sizeof *workers);
    for (uint32_t i = 0; i < n; i++) {
        struct sender *sender = &s->senders[workers[i] = s->batch[s->order[first + i]]];
        const uint64_t last = sender->versions[server] + bound - i;
        turn.last = bound > 0 && last < turn.last ? last : turn.last;
        sender->state = SENDER_IS_BUSY;
    }
    q->trips[names] = (struct trip){.what = {.server = server, .via = via, .n = n, .workers = workers}, .missing = n};
    q->turns[q->n_turns++] = turn;
}

static void list_fastest_first(struct update_schedule *s, uint32_t n, const uint32_t *nodes) {
    for (uint32_t i = 0; i < n; i++)
        s->aggregators[i] = nodes[i];
    nodes_fastest_first(n, s->aggregators, s->rates);
}

/* Without aggregators every part has a turn of its own. With them there is one server, and a group's updates are next
 * to each other in the order. */
static enum status add_turns(struct update_schedule *s, uint32_t n, struct calendar *calendar, double *last_us,
                             struct error *err) {
    struct aggregation groups = {
        .direct = n, .group = s->group, .arrival_us = s->arrival_us, .sum_us = s->sum_us, .applied_us = s->end_us};
    enum status st = ST_OK;
    list_fastest_first(s, s->consistency->aggregators.n, s->consistency->aggregators.nodes);
    if (s->consistency->aggregators.n > 0)
        st = aggregate_updates(calendar, s->servers[0], n, s->order, s->updates, s->consistency->aggregators.n,
                               s->aggregators, &groups, err);
    *last_us = s->consistency->aggregators.n > 0 ? groups.end_us : n > 0 ? s->end_us[n - 1] : calendar->now_us;
    for (uint32_t i = 0; i < groups.direct && !st; i++)
        for (uint32_t server = 0; server < s->run->n_servers; server++)
            add_turn(s, server, UPDATE_DIRECT, i, 1);
    for (uint32_t i = groups.direct, end; i < n && !st; i = end) {
        for (end = i + 1; end < n && s->group[end] == s->group[i]; end++)
            ;
        add_turn(s, 0, s->aggregators[s->group[i]], i, end - i);
    }
    return st;
}

/* Fails: ST_NO_MEMORY. */
static enum status order_batch(struct update_schedule *s, uint64_t version, struct calendar *calendar, double *last_us,
                               struct error *err) {
    const double now_us = clock_now_us();
    const struct update_servers servers = {.n = s->run->n_servers, .nodes = s->servers, .share = s->share};
    struct update_order order = {.order = s->order, .end_us = s->end_us, .dropped = s->dropped};
    const uint32_t n = gather(s, version, now_us);
    enum status st = begin_calendar(s, now_us, calendar, err);
    const size_t mark = calendar_mark(calendar);
    if (!st)
        st = order_updates(calendar, &servers, n, s->updates, s->consistency->order, &order, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < n; i++)
        if (s->dropped[i])
            s->senders[s->batch[i]].state = SENDER_DROPPED;
    calendar_back_to(calendar, mark);
    return add_turns(s, order.n, calendar, last_us, err);
}

/* Behind the batch, with what has a turn and has not gone. */
static void order_copies(const struct update_schedule *s, struct update_copies *copies, struct calendar *calendar,
                         double last_us) {
    const struct queue *q = &s->queues[0];
    uint32_t *workers = report_alloc(s->n, sizeof *workers), n = 0;
    for (uint32_t t = 0; t < q->n_turns; t++)
        for (uint32_t k = 0; k < q->turns[t].n && !q->turns[t].goes; k++)
            workers[n++] = trip_of(q, t)->what.workers[k];
    update_copies_order(copies, calendar, n, workers, calendar->now_us, last_us);
    free(workers);
}

void update_schedule_order(struct update_schedule *s, uint64_t version, struct update_copies *copies) {
    struct calendar calendar = {0};
    struct error err = {.status = ST_OK};
    double last_us;
    follow_weather(s);
    s->due_us = INFINITY;
    if (s->waiting > 0 && order_batch(s, version, &calendar, &last_us, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    if (s->waiting > 0 && copies)
        order_copies(s, copies, &calendar, last_us);
    calendar_release(&calendar);
    s->waiting = 0;
}

const double *update_schedule_rates(const struct update_schedule *s) {
    return s->rates;
}

/* ---- turns ---- */

bool update_schedule_take_dropped(struct update_schedule *s, uint32_t *worker) {
    for (uint32_t w = 0; w < s->n; w++) {
        if (s->senders[w].state != SENDER_DROPPED)
            continue;
        s->senders[w].state = SENDER_IS_BUSY;
        *worker = w;
        return true;
    }
    return false;
}

const struct update_turn *update_schedule_take_group(struct update_schedule *s) {
    for (uint32_t i = 0; i < s->queues[0].n_turns; i++) {
        struct trip *trip = trip_of(&s->queues[0], i);
        if (trip->what.via == UPDATE_DIRECT || trip->taken)
            continue;
        trip->taken = true;
        return &trip->what;
    }
    return NULL;
}

const struct update_turn *update_schedule_take_next(struct update_schedule *s, uint64_t version) {
    s->queues[0].version = version;
    for (uint32_t i = 0; i < s->run->n_servers; i++) {
        struct queue *q = &s->queues[i];
        if (q->n_turns == 0)
            continue;
        follow_weather(s);
        const uint32_t t = turns_next(q->n_turns, q->turns, s->servers[i], q->version, s->rates);
        if (t == q->n_turns)
            continue;
        q->turns[t].goes = true;
        trip_of(q, t)->began_us = clock_now_us();
        return &trip_of(q, t)->what;
    }
    return NULL;
}

/* The turn in which the worker's update is. */
static uint32_t turn_of(const struct queue *q, uint32_t worker) {
    for (uint32_t t = 0; t < q->n_turns; t++)
        for (uint32_t k = 0; k < trip_of(q, t)->what.n; k++)
            if (trip_of(q, t)->what.workers[k] == worker)
                return t;
    report_abort(ST_TRIAL, "the update of device %u came without a turn", worker);
}

void update_schedule_collected(struct update_schedule *s, uint32_t worker) {
    s->queues[0].turns[turn_of(&s->queues[0], worker)].ready = true;
}

void update_schedule_arrived(struct update_schedule *s, uint32_t server, uint32_t worker, uint64_t version) {
    struct queue *q = &s->queues[server];
    const uint32_t t = turn_of(q, worker);
    q->version = version;
    if (--trip_of(q, t)->missing > 0)
        return;
    free(trip_of(q, t)->what.workers);
    q->n_turns--;
    for (uint32_t i = t; i < q->n_turns; i++)
        q->turns[i] = q->turns[i + 1];
}

/* ---- models ---- */

/* The calendar begins with the models that are on their way. Fails: ST_NO_MEMORY. */
static enum status begin_reversed(struct update_schedule *s, struct calendar *out, struct error *err) {
    const uint32_t n_nodes = s->run->world->cluster->n_nodes;
    const double now_us = clock_now_us();
    for (uint32_t p = 0; p < n_nodes * DIRECTION_COUNT; p++)
        s->reversed[p] = s->rates[p ^ 1u];
    enum status st = calendar_init(out, n_nodes, s->reversed, now_us, err);
    for (uint32_t node = 0; node < n_nodes && !st; node++)
        for (uint32_t i = 0; i < s->leaving[node]; i++)
            calendar_reserve(out, node, s->servers[0], s->bytes, now_us);
    return st;
}

void update_schedule_models(struct update_schedule *s, uint32_t n, uint32_t *nodes, bool *first) {
    struct calendar calendar = {0};
    struct error err = {.status = ST_OK};
    if (begin_reversed(s, &calendar, &err) ||
        spread_model(&calendar, s->servers[0], s->bytes, n, nodes, first, s->consistency->distributors, s->rates, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    calendar_release(&calendar);
}

bool update_schedule_model_goes(struct update_schedule *s, uint32_t node) {
    double taken = 0;
    for (uint32_t i = 0; i < s->run->world->cluster->n_nodes; i++)
        taken += s->leaving[i] * rate_of(s, i, DIRECTION_IN);
    if (taken >= rate_of(s, s->servers[0], DIRECTION_OUT))
        return false;
    s->leaving[node]++;
    return true;
}

void update_schedule_model_left(struct update_schedule *s, uint32_t node) {
    s->leaving[node]--;
}
