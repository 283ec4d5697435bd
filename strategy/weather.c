/* See weather.h. Every draw has its own stream, by what it is for: nothing depends on what was asked before. */
#include "strategy/weather.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "strategy/cluster.h"

enum purpose { FOR_RATES, FOR_SLOWNESS, PURPOSES };

/* A number in [0, 1) for one place of one purpose. */
static double drawn(uint64_t seed, enum purpose purpose, uint64_t round, uint64_t place) {
    struct rng rng;
    rng_split(&rng, seed + UINT64_C(0x9e3779b97f4a7c15) * (round + 1), place * PURPOSES + purpose);
    return rng_uniform(&rng);
}

double weather_device_slowness(const struct cluster *cluster, uint64_t seed, uint32_t device, uint64_t iteration) {
    const struct variability *v = &cluster->variability;
    bool slow = drawn(seed, FOR_SLOWNESS, v->slow_for_good ? 0 : iteration, device) < v->slow_share;
    return slow ? v->slow_factor : 1;
}

double weather_slowness(const struct cluster *cluster, uint64_t seed, uint32_t node, uint64_t iteration) {
    const struct node *where = &cluster->nodes[node];
    double slowest = 1;
    for (uint32_t d = 0; d < where->devices; d++)
        slowest = fmax(slowest, weather_device_slowness(cluster, seed, where->first_device + d, iteration));
    return slowest;
}

static double draw_rate(const struct variability *v, uint64_t seed, uint64_t period, uint32_t port) {
    double left = drawn(seed, FOR_RATES, period, port);
    uint32_t k = 0;
    while (k + 1 < v->n_rates && (left -= v->rates[k].share) >= 0)
        k++;
    return v->rates[k].gbit_per_s;
}

/* ---- the NICs' own rates ---- */

static uint32_t ports(const struct weather *w) {
    return w->cluster->n_nodes * DIRECTION_COUNT;
}

/* Of a NIC itself, without flows in the background. */
static double *own_rates(const struct weather *w) {
    return w->gbit_per_s + ports(w);
}

static void set_rate(struct weather *w, uint32_t port, double rate) {
    w->gbit_per_s[port] = own_rates(w)[port] = rate;
}

static void set_all(struct weather *w) {
    const struct cluster *cluster = w->cluster;
    const struct variability *v = &cluster->variability;
    for (uint32_t port = 0; port < ports(w); port++)
        set_rate(w, port,
                 v->n_rates > 0 ? draw_rate(v, w->seed, w->n, port)
                                : cluster->nodes[port / DIRECTION_COUNT].nic_gbit_per_s);
}

/* Of a trace: the change after n others. */
static const struct rate_change *change_at(const struct variability *v, uint64_t n) {
    return &v->changes[n % v->n_changes];
}

static double next_change_us(const struct weather *w) {
    const struct variability *v = &w->cluster->variability;
    if (v->n_rates > 0)
        return (double)(w->n + 1) * v->every_us;
    if (v->n_changes == 0)
        return INFINITY;
    return (double)(w->n / v->n_changes) * v->trace_us + change_at(v, w->n)->at_us;
}

static void change_rates(struct weather *w) {
    const struct variability *v = &w->cluster->variability;
    if (v->n_rates > 0) {
        w->n++;
        set_all(w);
        return;
    }
    const struct rate_change *change = change_at(v, w->n++);
    set_rate(w, change->node * DIRECTION_COUNT + change->direction, change->gbit_per_s);
}

/* ---- flows in the background ---- */

double background_flow_us(double mbytes, double gbit_per_s) {
    return mbytes * 8e3 / gbit_per_s;
}

/* Gaps of a Poisson process are exponential. */
static void draw_flow(struct weather *w) {
    const struct background *b = &w->cluster->variability.background;
    const uint32_t n = w->cluster->n_nodes;
    struct weather_flow *flow = &w->coming;
    flow->start_us -= log1p(-rng_uniform(&w->rng)) / b->flows_per_s * 1e6;
    flow->end_us = flow->start_us + background_flow_us(b->mbytes, b->gbit_per_s);
    flow->from = (uint32_t)rng_below(&w->rng, n);
    flow->to = (flow->from + 1 + (uint32_t)rng_below(&w->rng, n - 1)) % n;
    flow->gbit_per_s = b->gbit_per_s;
}

static void take_recorded_flow(struct weather *w) {
    const struct background *b = &w->cluster->variability.background;
    const struct background_flow *flow = &b->flows[w->n_started % b->n_flows];
    const double start_us = (double)(w->n_started / b->n_flows) * b->trace_us + flow->at_us;
    w->coming = (struct weather_flow){start_us, start_us + background_flow_us(flow->mbytes, flow->gbit_per_s),
                                      flow->from, flow->to, flow->gbit_per_s};
}

/* The flow that starts next. */
static void see_coming(struct weather *w) {
    const struct background *b = &w->cluster->variability.background;
    if (b->flows_per_s > 0)
        draw_flow(w);
    else if (b->n_flows > 0)
        take_recorded_flow(w);
    else
        w->coming.start_us = INFINITY;
}

static uint32_t port_out(const struct weather_flow *flow) {
    return flow->from * DIRECTION_COUNT + DIRECTION_OUT;
}

static uint32_t port_in(const struct weather_flow *flow) {
    return flow->to * DIRECTION_COUNT + DIRECTION_IN;
}

/* Max-min: flows that ask for no more than a share get what they ask for, the others and the job a share of the rest.
 * The share rises until none of the others asks for less. */
static double left_of(const struct weather *w, uint32_t port) {
    for (double share = 0;;) {
        double rest = own_rates(w)[port];
        uint32_t n = 1;
        for (uint32_t i = 0; i < w->n_flows; i++) {
            const bool small = w->flows[i].gbit_per_s <= share,
                       here = port_out(&w->flows[i]) == port || port_in(&w->flows[i]) == port;
            rest -= here && small ? w->flows[i].gbit_per_s : 0;
            n += here && !small;
        }
        if (rest / n <= share)
            return share;
        share = rest / n;
    }
}

/* Flows that are over leave their NICs to the others. */
static void end_flows(struct weather *w, double us) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_flows; i++) {
        const struct weather_flow *flow = &w->flows[i];
        const uint32_t out = port_out(flow), in = port_in(flow);
        if (flow->end_us > us) {
            w->flows[n++] = *flow;
            continue;
        }
        w->gbit_per_s[out] = own_rates(w)[out];
        w->gbit_per_s[in] = own_rates(w)[in];
    }
    w->n_flows = n;
}

static void start_flows(struct weather *w, double us) {
    for (; w->coming.start_us <= us; see_coming(w)) {
        w->n_started++;
        if (w->n_flows < BACKGROUND_MOST)
            w->flows[w->n_flows++] = w->coming;
    }
}

static void share_rates(struct weather *w) {
    for (uint32_t i = 0; i < w->n_flows; i++) {
        const uint32_t out = port_out(&w->flows[i]), in = port_in(&w->flows[i]);
        w->gbit_per_s[out] = left_of(w, out);
        w->gbit_per_s[in] = left_of(w, in);
    }
}

static double next_flow_us(const struct weather *w) {
    double us = w->coming.start_us;
    for (uint32_t i = 0; i < w->n_flows; i++)
        us = fmin(us, w->flows[i].end_us);
    return us;
}

/* ---- all of it ---- */

double weather_shows_us(const struct variability *v, double changes) {
    const struct background *b = &v->background;
    double us = v->n_rates > 0 ? changes * v->every_us : v->trace_us;
    if (b->flows_per_s > 0)
        us = fmax(us, changes * fmax(1e6 / b->flows_per_s, background_flow_us(b->mbytes, b->gbit_per_s)));
    return fmax(us, b->trace_us);
}

void weather_begin(struct weather *w) {
    w->n = w->n_started = 0;
    w->n_flows = 0;
    w->coming.start_us = 0;
    rng_split(&w->rng, w->seed, UINT64_MAX);
    see_coming(w);
    set_all(w);
    while (weather_next_us(w) <= 0)
        weather_advance(w);
}

double weather_next_us(const struct weather *w) {
    return fmin(next_change_us(w), next_flow_us(w));
}

void weather_advance(struct weather *w) {
    const double us = weather_next_us(w);
    if (next_change_us(w) <= us)
        change_rates(w);
    end_flows(w, us);
    start_flows(w, us);
    share_rates(w);
}

double weather_changes(const struct cluster *cluster, double until_us) {
    const struct variability *v = &cluster->variability;
    const struct background *b = &v->background;
    const double own = v->n_rates > 0     ? until_us / v->every_us * cluster->n_nodes * DIRECTION_COUNT
                       : v->n_changes > 0 ? (until_us / v->trace_us + 1) * v->n_changes
                                          : 0;
    return own + (b->n_flows > 0 ? (until_us / b->trace_us + 1) * b->n_flows * 4 : until_us / 1e6 * b->flows_per_s * 4);
}

/* Add what holds from from_us to to_us, counted from the first part's beginning, to the parts that it falls into. */
static void add_to_parts(const struct weather *w, double from_us, double to_us, size_t n, double part_us,
                         double *mean) {
    const size_t ports = (size_t)w->cluster->n_nodes * DIRECTION_COUNT;
    const size_t first = (size_t)fmin(from_us / part_us, (double)(n - 1));
    for (size_t k = first; k < n && (double)k * part_us < to_us; k++) {
        const double here = fmin(to_us, (double)(k + 1) * part_us) - fmax(from_us, (double)k * part_us);
        for (size_t port = 0; port < ports; port++)
            mean[port * n + k] += w->gbit_per_s[port] * fmax(here, 0) / part_us;
    }
}

enum status weather_means(const struct cluster *cluster, uint64_t seed, double from_us, double to_us, size_t n,
                          double *mean, struct error *err) {
    const size_t ports = (size_t)cluster->n_nodes * DIRECTION_COUNT;
    double *rates = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *rates);
    struct weather w = {.cluster = cluster, .seed = seed, .gbit_per_s = rates};
    if (!w.gbit_per_s)
        return error_no_memory(err);
    for (size_t i = 0; i < ports * n; i++)
        mean[i] = 0;
    weather_begin(&w);
    for (double at_us = 0; at_us < to_us;) {
        const double next_us = fmin(weather_next_us(&w), to_us);
        if (next_us > from_us)
            add_to_parts(&w, fmax(at_us - from_us, 0), next_us - from_us, n, (to_us - from_us) / (double)n, mean);
        at_us = next_us;
        if (at_us < to_us)
            weather_advance(&w);
    }
    free(w.gbit_per_s);
    return ST_OK;
}
