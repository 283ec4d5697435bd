/* Every worker has at most one update, so a batch, and all that is on its way, has at most n_devices. */
#include "trial-runner/worker/mpi/update_schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "strategy/cost/cost.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"
#include "strategy/weather.h"
#include "trial-runner/lab.h"
#include "trial-runner/worker/report.h"

enum sender_state {
    SENDER_COMPUTES,
    SENDER_WAITS,   /* its update is ready */
    SENDER_DROPPED, /* its update is to be dropped */
    SENDER_QUEUES,  /* it has a place */
    SENDER_SENDS,
};

struct sender {
    enum sender_state state;
    uint64_t version; /* of the model that its update was computed from */
    double began_us;  /* to send */
};

struct update_schedule {
    const struct update_run *run;
    const struct consistency *consistency;
    uint32_t n, server; /* workers; node */
    struct sender *senders;
    double bytes; /* of an update */
    struct cost cost;
    struct weather reported;
    double *rates; /* [2 * n_nodes] bytes per microsecond, as the monitor has them */
    double began_us, weather_us, due_us;
    uint32_t waiting;
    uint32_t *queue; /* queue[first .. n_queue): workers that have a place and do not send yet, in order */
    uint32_t first, n_queue;
    uint32_t *batch, *order; /* [n]: workers; positions in the batch */
    struct update *updates;
    double *end_us;
    bool *dropped;
};

static void follow_weather(struct update_schedule *s, double now_us) {
    const struct cluster *cluster = s->run->world->cluster;
    const double seen_us = now_us - s->weather_us - cluster->variability.monitor_lag_us;
    while (weather_next_us(&s->reported) <= seen_us)
        weather_advance(&s->reported);
    for (uint32_t p = 0; p < cluster->n_nodes * DIRECTION_COUNT; p++) {
        const uint32_t node = p / DIRECTION_COUNT;
        s->rates[p] = s->cost.nic_bytes_per_us[node] * s->reported.gbit_per_s[p] / cluster->nodes[node].nic_gbit_per_s;
    }
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
    s->reported = (struct weather){.cluster = cluster,
                                   .seed = s->run->options->weather,
                                   .gbit_per_s = report_alloc(ports, sizeof *s->reported.gbit_per_s)};
    weather_begin(&s->reported);
}

struct update_schedule *update_schedule_new(const struct update_run *run) {
    struct update_schedule *s = report_alloc(1, sizeof *s);
    const uint32_t n = run->world->cluster->n_devices;
    *s = (struct update_schedule){.run = run,
                                  .consistency = &run->plan->consistency,
                                  .n = n,
                                  .server = run->world->node,
                                  .senders = report_alloc(n, sizeof *s->senders),
                                  .began_us = clock_now_us(),
                                  .queue = report_alloc(n, sizeof *s->queue),
                                  .batch = report_alloc(n, sizeof *s->batch),
                                  .order = report_alloc(n, sizeof *s->order),
                                  .updates = report_alloc(n, sizeof *s->updates),
                                  .end_us = report_alloc(n, sizeof *s->end_us),
                                  .dropped = report_alloc(n, sizeof *s->dropped)};
    for (uint32_t m = 0; m < run->plan->n_messages; m++)
        s->bytes += (double)run->plan->messages[m].bytes;
    begin_rates(s);
    return s;
}

void update_schedule_free(struct update_schedule *s) {
    if (!s)
        return;
    cost_release(&s->cost);
    free(s->senders);
    free(s->reported.gbit_per_s);
    free(s->rates);
    free(s->queue);
    free(s->batch);
    free(s->order);
    free(s->updates);
    free(s->end_us);
    free(s->dropped);
    free(s);
}

static uint32_t node_of(const struct update_schedule *s, uint32_t worker) {
    return cluster_node_of_device(s->run->world->cluster, worker);
}

/* ---- a batch ---- */

void update_schedule_ready(struct update_schedule *s, uint32_t worker, uint64_t version) {
    const double batch_us = s->consistency->batch_us;
    s->senders[worker] = (struct sender){.state = SENDER_WAITS, .version = version};
    if (s->waiting++ == 0)
        s->due_us = s->began_us + (floor((clock_now_us() - s->began_us) / batch_us) + 1) * batch_us;
}

bool update_schedule_is_due(const struct update_schedule *s, uint32_t idle) {
    return s->waiting > 0 && (s->waiting + idle == s->n || clock_now_us() >= s->due_us);
}

/* Equation 9, as simulator/updates_schedule.c: `next` is the version that the batch's first update would go into. */
static uint32_t deadline(const struct update_schedule *s, const struct sender *sender, uint64_t next) {
    const uint32_t bound = s->consistency->delay_bound;
    const uint64_t then = sender->version + bound + 1;
    if (bound == 0 || s->consistency->kind != CONSISTENCY_asynchronous)
        return UPDATE_ANY_PLACE;
    return then > next ? (uint32_t)(then - next) : 0;
}

/* Updates that have a place and are not in the model yet. */
static uint32_t committed(const struct update_schedule *s) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n; w++)
        n += s->senders[w].state == SENDER_QUEUES || s->senders[w].state == SENDER_SENDS;
    return n;
}

static uint32_t gather(struct update_schedule *s, uint64_t version, double now_us) {
    const uint64_t next = version + committed(s);
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n; w++) {
        if (s->senders[w].state != SENDER_WAITS)
            continue;
        s->updates[n] = (struct update){.node = node_of(s, w),
                                        .bytes = s->bytes,
                                        .available_us = now_us,
                                        .deadline = deadline(s, &s->senders[w], next)};
        s->batch[n++] = w;
    }
    return n;
}

static double rate_of(const struct update_schedule *s, uint32_t node, enum direction direction) {
    return s->rates[node * DIRECTION_COUNT + direction];
}

/* How much of what the worker sends has not come, as far as its NIC's rate tells. */
static double left_of(const struct update_schedule *s, uint32_t worker, double now_us) {
    const double sent = (now_us - s->senders[worker].began_us) * rate_of(s, node_of(s, worker), DIRECTION_OUT);
    return fmax(s->bytes - sent, 0);
}

/* The calendar begins with what is on its way, and then what has a place. */
static enum status begin_calendar(const struct update_schedule *s, double now_us, struct calendar *out,
                                  struct error *err) {
    enum status st = calendar_init(out, s->run->world->cluster->n_nodes, s->rates, now_us, err);
    for (uint32_t w = 0; w < s->n && !st; w++)
        if (s->senders[w].state == SENDER_SENDS)
            calendar_reserve(out, node_of(s, w), s->server, left_of(s, w, now_us), now_us);
    for (uint32_t i = s->first; i < s->n_queue && !st; i++)
        calendar_reserve(out, node_of(s, s->queue[i]), s->server, s->bytes, now_us);
    return st;
}

static void enqueue(struct update_schedule *s, const struct update_order *order) {
    uint32_t n = 0;
    for (uint32_t i = s->first; i < s->n_queue; i++)
        s->queue[n++] = s->queue[i];
    for (uint32_t i = 0; i < order->n; i++) {
        const uint32_t worker = s->batch[order->order[i]];
        s->senders[worker].state = SENDER_QUEUES;
        s->queue[n++] = worker;
    }
    s->first = 0;
    s->n_queue = n;
}

void update_schedule_order(struct update_schedule *s, uint64_t version) {
    const double share = 1, now_us = clock_now_us();
    const struct update_servers servers = {.n = 1, .nodes = &s->server, .share = &share};
    struct update_order order = {.order = s->order, .end_us = s->end_us, .dropped = s->dropped};
    struct calendar calendar = {0};
    struct error err = {.status = ST_OK};
    if (s->run->options->weather)
        follow_weather(s, now_us);
    const uint32_t n = gather(s, version, now_us);
    enum status st = begin_calendar(s, now_us, &calendar, &err);
    if (!st)
        st = order_updates(&calendar, &servers, n, s->updates, s->consistency->order, &order, &err);
    calendar_release(&calendar);
    if (st)
        report_abort(st, "%s", ERROR_TEXT(&err));
    for (uint32_t i = 0; i < n; i++)
        if (s->dropped[i])
            s->senders[s->batch[i]].state = SENDER_DROPPED;
    enqueue(s, &order);
    s->waiting = 0;
}

/* ---- turns ---- */

bool update_schedule_take_dropped(struct update_schedule *s, uint32_t *worker) {
    for (uint32_t w = 0; w < s->n; w++) {
        if (s->senders[w].state != SENDER_DROPPED)
            continue;
        s->senders[w].state = SENDER_COMPUTES;
        *worker = w;
        return true;
    }
    return false;
}

/* Whether the NICs of those that send leave some of the server's free. What comes from the server's own node is there
 * soon, so the others wait for it. */
static bool server_is_free(const struct update_schedule *s) {
    double taken = 0;
    for (uint32_t w = 0; w < s->n; w++)
        if (s->senders[w].state == SENDER_SENDS)
            taken += node_of(s, w) == s->server ? INFINITY : rate_of(s, node_of(s, w), DIRECTION_OUT);
    return taken < rate_of(s, s->server, DIRECTION_IN);
}

bool update_schedule_take_next(struct update_schedule *s, uint32_t *worker) {
    if (s->first == s->n_queue || !server_is_free(s))
        return false;
    *worker = s->queue[s->first++];
    s->senders[*worker].state = SENDER_SENDS;
    s->senders[*worker].began_us = clock_now_us();
    return true;
}

void update_schedule_arrived(struct update_schedule *s, uint32_t worker) {
    s->senders[worker].state = SENDER_COMPUTES;
}
