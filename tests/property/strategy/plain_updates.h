/* MLfabric's algorithms as the paper has them, read plainly: a network is a list of reservations, every end is worked
 * out from all of them, every case is tried. What strategy/updates/ does must equal this. */
#ifndef TESTS_PROPERTY_STRATEGY_PLAIN_UPDATES_H
#define TESTS_PROPERTY_STRATEGY_PLAIN_UPDATES_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/updates/aggregate.h"
#include "strategy/updates/order.h"
#include "tests/support/check.h"

enum { PLAIN_PORTS = 24, PLAIN_MOST = 20000, PLAIN_UPDATES = 64 };

struct plain_reservation {
    double from_us, until_us, rate;
};

/* Ports as in struct calendar; of each its reservations, and of all together the ports, in their order. */
struct plain_network {
    const double *rates;
    double now_us;
    size_t n, of_port[PLAIN_PORTS];
    uint32_t ports[PLAIN_PORTS * PLAIN_MOST];
    struct plain_reservation list[PLAIN_PORTS][PLAIN_MOST];
};

static inline void plain_start(struct plain_network *net, const double *rates, double now_us) {
    net->rates = rates;
    net->now_us = now_us;
    net->n = 0;
    memset(net->of_port, 0, sizeof net->of_port);
}

static inline void plain_reserve(struct plain_network *net, uint32_t port, struct plain_reservation reservation) {
    assert_true(port < PLAIN_PORTS && net->of_port[port] < PLAIN_MOST);
    net->ports[net->n++] = port;
    net->list[port][net->of_port[port]++] = reservation;
}

/* Take back all but the first `n`. */
static inline void plain_back_to(struct plain_network *net, size_t n) {
    while (net->n > n)
        net->of_port[net->ports[--net->n]]--;
}

static inline bool plain_same(double a, double b) {
    return isfinite(a) && isfinite(b) && fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* What a port has free from `us` on, and until when that is so at least. */
static inline double plain_free(const struct plain_network *net, uint32_t port, double us, double *until_us) {
    double rate = net->rates[port];
    for (size_t i = 0; i < net->of_port[port]; i++) {
        const struct plain_reservation *r = &net->list[port][i];
        if (r->until_us <= us)
            continue;
        *until_us = fmin(*until_us, r->from_us > us ? r->from_us : r->until_us);
        rate -= r->from_us <= us ? r->rate : 0;
    }
    return rate > 1e-9 * net->rates[port] ? rate : 0;
}

/* Figure 4: the end of a transfer; with `reserve` it also takes its rates. */
static inline double plain_transfer(struct plain_network *net, uint32_t from, uint32_t to, double bytes,
                                    double available_us, bool reserve) {
    double us = fmax(available_us, net->now_us);
    if (from == to || bytes <= 0)
        return us;
    for (double left = bytes;;) {
        double until_us = INFINITY;
        double rate = fmin(plain_free(net, 2 * from, us, &until_us), plain_free(net, 2 * to + 1, us, &until_us));
        bool through = rate > 0 && us + left / rate <= until_us;
        double end_us = through ? us + left / rate : until_us;
        if (reserve && rate > 0) {
            plain_reserve(net, 2 * from, (struct plain_reservation){us, end_us, rate});
            plain_reserve(net, 2 * to + 1, (struct plain_reservation){us, end_us, rate});
        }
        if (through)
            return end_us;
        left -= rate * (end_us - us);
        us = end_us;
        if (left <= 1e-12 * bytes) /* what rounding leaves */
            return us;
    }
}

static inline double plain_update(struct plain_network *net, const struct update_servers *servers,
                                  const struct update *u, bool reserve) {
    size_t n = net->n;
    double end_us = 0;
    for (uint32_t s = 0; s < servers->n; s++)
        end_us = fmax(end_us, plain_transfer(net, u->node, servers->nodes[s], u->bytes * servers->share[s],
                                             u->available_us, true));
    if (!reserve)
        plain_back_to(net, n);
    return end_us;
}

/* ---- algorithms 1 and 2 ---- */

/* argmin of t_en over updates that are left, with deadlines in [first, last]; of equals the first; -1: none. */
static inline int plain_shortest(struct plain_network *net, const struct update_servers *servers, uint32_t n,
                                 const struct update *updates, const bool *processed, uint32_t first, uint32_t last,
                                 double *end_us) {
    double end[PLAIN_UPDATES], least = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        bool counts = !processed[i] && updates[i].deadline >= first && updates[i].deadline <= last;
        end[i] = counts ? plain_update(net, servers, &updates[i], false) : INFINITY;
        least = fmin(least, end[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(end[i]) && (end[i] == least || plain_same(end[i], least))) {
            *end_us = end[i];
            return (int)i;
        }
    return -1;
}

static inline int plain_due_or_shortest(struct plain_network *net, const struct update_servers *servers, uint32_t n,
                                        const struct update *updates, const bool *processed, uint32_t place,
                                        double *end_us) {
    int due = plain_shortest(net, servers, n, updates, processed, place, place, end_us);
    return due >= 0 ? due : plain_shortest(net, servers, n, updates, processed, place, UPDATE_ANY_PLACE, end_us);
}

/* Algorithm 2. An update whose deadline has passed is dropped. Returns how many are ordered. */
static inline uint32_t plain_order(struct plain_network *net, const struct update_servers *servers, uint32_t n,
                                   const struct update *updates, uint32_t *order, double *order_end_us) {
    bool processed[PLAIN_UPDATES] = {false};
    uint32_t ordered = 0;
    for (uint32_t place = 1; place <= n; place++) {
        double end_us, next_us = INFINITY;
        int now = plain_due_or_shortest(net, servers, n, updates, processed, place, &end_us);
        if (now < 0)
            continue;
        processed[now] = true;
        size_t before = net->n;
        end_us = plain_update(net, servers, &updates[now], true);
        int next = plain_due_or_shortest(net, servers, n, updates, processed, place + 1, &next_us);
        if (next >= 0 && end_us > next_us && !plain_same(end_us, next_us)) {
            plain_back_to(net, before);
            continue;
        }
        order_end_us[ordered] = end_us;
        order[ordered++] = (uint32_t)now;
    }
    return ordered;
}

/* ---- algorithm 3 ---- */

/* DetAgg with the first n straight to the server; groups may be NULL. */
static inline double plain_groups(struct plain_network *net, uint32_t server, uint32_t n, const uint32_t *order,
                                  const struct update *updates, uint32_t k, const uint32_t *aggregators,
                                  uint32_t direct, uint32_t *groups) {
    double t_max = net->now_us, bytes = 0, ready = 0;
    uint32_t g = 0, members = 0;
    for (uint32_t i = 0; i < direct; i++) {
        const struct update *u = &updates[order[i]];
        t_max = fmax(t_max, plain_transfer(net, u->node, server, u->bytes, u->available_us, true));
        groups[i] = TO_SERVER;
    }
    for (uint32_t i = direct; i <= n;) {
        const struct update *u = i < n ? &updates[order[i]] : NULL;
        double to_us = u ? plain_transfer(net, u->node, aggregators[g], u->bytes, u->available_us, false) : INFINITY;
        if (!u || (g + 1 < k && to_us > t_max && !plain_same(to_us, t_max))) {
            if (members)
                t_max = fmax(t_max, plain_transfer(net, aggregators[g], server, bytes, ready, true));
            if (!u)
                break;
            g++;
            members = 0;
            bytes = ready = 0;
            continue;
        }
        ready = fmax(ready, plain_transfer(net, u->node, aggregators[g], u->bytes, u->available_us, true));
        bytes = fmax(bytes, u->bytes);
        members++;
        groups[i++] = g;
    }
    return t_max;
}

/* All cases; the least n of the best. */
static inline double plain_aggregate(struct plain_network *net, uint32_t server, uint32_t n, const uint32_t *order,
                                     const struct update *updates, uint32_t k, const uint32_t *aggregators,
                                     uint32_t *direct, uint32_t *groups) {
    size_t before = net->n;
    double ends[PLAIN_UPDATES + 1], best = INFINITY;
    for (uint32_t d = 0; d <= n; d++) {
        ends[d] = d < n && k == 0 ? INFINITY : plain_groups(net, server, n, order, updates, k, aggregators, d, groups);
        plain_back_to(net, before);
        best = fmin(best, ends[d]);
    }
    *direct = 0;
    while (!plain_same(ends[*direct], best) && ends[*direct] != best)
        ++*direct;
    plain_groups(net, server, n, order, updates, k, aggregators, *direct, groups);
    return ends[*direct];
}

#endif
