/* See weather.h. Every draw has its own stream, by what it is for: nothing depends on what was asked before. */
#include "strategy/weather.h"

#include <math.h>

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

static void set_all(struct weather *w) {
    const struct cluster *cluster = w->cluster;
    const struct variability *v = &cluster->variability;
    for (uint32_t port = 0; port < cluster->n_nodes * DIRECTION_COUNT; port++)
        w->gbit_per_s[port] =
            v->n_rates > 0 ? draw_rate(v, w->seed, w->n, port) : cluster->nodes[port / DIRECTION_COUNT].nic_gbit_per_s;
}

/* Of a trace: the change after n others. */
static const struct rate_change *change_at(const struct variability *v, uint64_t n) {
    return &v->changes[n % v->n_changes];
}

void weather_begin(struct weather *w) {
    w->n = 0;
    set_all(w);
    while (weather_next_us(w) <= 0)
        weather_advance(w);
}

double weather_next_us(const struct weather *w) {
    const struct variability *v = &w->cluster->variability;
    if (v->n_rates > 0)
        return (double)(w->n + 1) * v->every_us;
    if (v->n_changes == 0)
        return INFINITY;
    return (double)(w->n / v->n_changes) * v->trace_us + change_at(v, w->n)->at_us;
}

void weather_advance(struct weather *w) {
    const struct variability *v = &w->cluster->variability;
    if (v->n_rates > 0) {
        w->n++;
        set_all(w);
        return;
    }
    const struct rate_change *change = change_at(v, w->n++);
    w->gbit_per_s[change->node * DIRECTION_COUNT + change->direction] = change->gbit_per_s;
}
