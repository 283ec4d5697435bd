/* A picture of some 850 pixels shows COLUMNS rates over time; what changes faster than that is a mean. Columns of one
 * rate become one piece. O(ports * (COLUMNS + changes)). */
#include "report/rates.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/weather.h"

enum { COLUMNS = 426 };
static const double SAME = 1e-6; /* relative */

enum status rates_first_change(const struct cluster *cluster, uint64_t seed, double *us, struct error *err) {
    struct weather w = {.cluster = cluster, .seed = seed};
    w.gbit_per_s = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *w.gbit_per_s);
    if (!w.gbit_per_s)
        return error_no_memory(err);
    weather_begin(&w);
    *us = weather_next_us(&w);
    free(w.gbit_per_s);
    return ST_OK;
}

/* Of the NIC's own rate. */
static double share_of(const struct cluster *cluster, const double *mean, size_t port) {
    double sum = 0;
    for (size_t k = 0; k < COLUMNS; k++)
        sum += mean[port * COLUMNS + k];
    return sum / COLUMNS / cluster->nodes[port / DIRECTION_COUNT].nic_gbit_per_s;
}

/* Insert the port where its share belongs; what falls off at the end is not shown. */
static void place(size_t port, double share, size_t ports[RATES_SHOWN], double shares[RATES_SHOWN], size_t *n) {
    size_t at = *n < RATES_SHOWN ? (*n)++ : RATES_SHOWN;
    for (; at > 0 && shares[at - 1] > share; at--)
        if (at < RATES_SHOWN) {
            shares[at] = shares[at - 1];
            ports[at] = ports[at - 1];
        }
    if (at < RATES_SHOWN) {
        shares[at] = share;
        ports[at] = port;
    }
}

static bool make_lane(const struct cluster *cluster, const double *mean, size_t port, double column_us,
                      struct arena *arena, struct chart_rates *out) {
    const struct node *node = &cluster->nodes[port / DIRECTION_COUNT];
    struct chart_rate *rates = arena_alloc(arena, COLUMNS, sizeof *rates);
    size_t n = 0;
    for (size_t k = 0; rates && k < COLUMNS; k++) {
        const double rate = mean[port * COLUMNS + k];
        if (!n || fabs(rate - rates[n - 1].gbit_per_s) > SAME * node->nic_gbit_per_s)
            rates[n++] = (struct chart_rate){(double)k * column_us, rate};
    }
    *out = (struct chart_rates){node->name, direction_name((enum direction)(port % DIRECTION_COUNT)),
                                node->nic_gbit_per_s, n, rates};
    return rates != NULL;
}

static enum status add_lanes(const struct cluster *cluster, const double *mean, struct arena *arena,
                             struct chart_timeline *t, struct error *err) {
    size_t ports[RATES_SHOWN], n = 0, slower = 0;
    double shares[RATES_SHOWN];
    for (size_t port = 0; port < (size_t)cluster->n_nodes * DIRECTION_COUNT; port++) {
        const double share = share_of(cluster, mean, port);
        if (share >= 1 - SAME)
            continue;
        slower++;
        place(port, share, ports, shares, &n);
    }
    struct chart_rates *lanes = arena_alloc(arena, n + 1, sizeof *lanes);
    for (size_t i = 0; i < n; i++)
        if (!lanes || !make_lane(cluster, mean, ports[i], t->window_us / COLUMNS, arena, &lanes[i]))
            return error_no_memory(err);
    t->weather.rates = lanes;
    t->weather.n_rates = n;
    t->weather.hidden = slower - n;
    return ST_OK;
}

enum status rates_add(const struct cluster *cluster, uint64_t seed, double from_us, struct arena *arena,
                      struct chart_timeline *t, struct error *err) {
    double *mean = calloc((size_t)cluster->n_nodes * DIRECTION_COUNT * COLUMNS, sizeof *mean);
    enum status st =
        mean ? weather_means(cluster, seed, from_us, from_us + t->window_us, COLUMNS, mean, err) : error_no_memory(err);
    t->weather.seed = seed;
    t->weather.from_us = from_us;
    if (!st)
        st = add_lanes(cluster, mean, arena, t, err);
    free(mean);
    return st;
}
