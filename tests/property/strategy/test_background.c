/* Flows in the background against a plain reading: at any time, from the list of all flows, each NIC's max-min share is
 * found by bisection. Random clusters, rates that change as well, and recordings that begin again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/cluster.h"
#include "strategy/weather.h"
#include "tests/support/check.h"

enum { NODES = 5, FLOWS = 40, CHANGES = 10, PORTS = NODES * DIRECTION_COUNT, INSTANCES = 400 };

struct instance {
    struct node nodes[NODES];
    struct background_flow flows[FLOWS];
    struct rate_change changes[CHANGES];
    struct cluster cluster;
};

static int by_time(const void *a, const void *b) {
    const struct background_flow *x = a, *y = b;
    return (x->at_us > y->at_us) - (x->at_us < y->at_us);
}

static void random_flows(struct rng *rng, struct instance *in) {
    struct background *b = &in->cluster.variability.background;
    b->trace_us = 1e6;
    b->n_flows = 1 + (uint32_t)rng_below(rng, FLOWS);
    for (uint32_t i = 0; i < b->n_flows; i++) {
        struct background_flow *flow = &in->flows[i];
        flow->from = (uint32_t)rng_below(rng, NODES);
        flow->to = (flow->from + 1 + (uint32_t)rng_below(rng, NODES - 1)) % NODES;
        flow->gbit_per_s = rng_below(rng, 3) ? rng_log_between(rng, 0.05, 1) : 0.5;
        flow->at_us = floor(rng_between(rng, 0, 9e5));
        flow->mbytes = rng_between(rng, 0.01, 1) * (b->trace_us - flow->at_us) * flow->gbit_per_s / 8e3;
    }
    qsort(in->flows, b->n_flows, sizeof *in->flows, by_time);
    b->flows = in->flows;
}

static void random_changes(struct rng *rng, struct instance *in) {
    struct variability *v = &in->cluster.variability;
    v->trace_us = 7e5;
    v->n_changes = (uint32_t)rng_below(rng, CHANGES);
    for (uint32_t i = 0; i < v->n_changes; i++)
        in->changes[i] = (struct rate_change){(i + 1) * 6e4, (uint32_t)rng_below(rng, NODES),
                                              (enum direction)rng_below(rng, 2), rng_log_between(rng, 0.1, 1)};
    v->changes = in->changes;
}

static void random_instance(struct rng *rng, struct instance *in) {
    *in = (struct instance){.cluster = {.n_nodes = NODES, .nodes = in->nodes, .variability = {.given = true}}};
    for (uint32_t i = 0; i < NODES; i++)
        in->nodes[i].nic_gbit_per_s = 1;
    random_flows(rng, in);
    random_changes(rng, in);
}

/* Of the NIC alone: the last change before `us`, of this round of the trace or of the one before. */
static double plain_nic(const struct instance *in, uint32_t port, double us) {
    const struct variability *v = &in->cluster.variability;
    double rate = 1;
    for (int round = 0; round * v->trace_us <= us; round++)
        for (uint32_t i = 0; i < v->n_changes; i++)
            if (round * v->trace_us + in->changes[i].at_us <= us &&
                port == in->changes[i].node * DIRECTION_COUNT + in->changes[i].direction)
                rate = in->changes[i].gbit_per_s;
    return rate;
}

static bool plain_on_way(const struct instance *in, const struct background_flow *flow, double us) {
    bool on_way = false;
    for (int round = 0; round * in->cluster.variability.background.trace_us <= us; round++) {
        const double at_us = round * in->cluster.variability.background.trace_us + flow->at_us;
        on_way = on_way || (at_us <= us && us < at_us + background_flow_us(flow->mbytes, flow->gbit_per_s));
    }
    return on_way;
}

/* What all take of the NIC when none has more than `share`, the job as much. */
static double plain_taken(const struct instance *in, uint32_t port, double us, double share) {
    double taken = share;
    for (uint32_t i = 0; i < in->cluster.variability.background.n_flows; i++) {
        const struct background_flow *flow = &in->flows[i];
        const bool here =
            port == flow->from * DIRECTION_COUNT + DIRECTION_OUT || port == flow->to * DIRECTION_COUNT + DIRECTION_IN;
        if (here && plain_on_way(in, flow, us))
            taken += fmin(share, flow->gbit_per_s);
    }
    return taken;
}

static double plain_left(const struct instance *in, uint32_t port, double us) {
    const double nic = plain_nic(in, port, us);
    double low = 0, high = nic;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (plain_taken(in, port, us, middle) > nic)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void check_rates(const struct instance *in, const struct weather *w, double us) {
    for (uint32_t port = 0; port < PORTS; port++)
        assert_close(w->gbit_per_s[port], plain_left(in, port, us), 1e-9);
}

/* In the middle between two changes, so that rounding of the times does not matter. */
static void what_is_left_is_the_max_min_share(void **state) {
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 1);
    size_t shared = 0;
    for (int i = 0; i < INSTANCES; i++) {
        struct instance in;
        double rates[NODES * WEATHER_NUMBERS], at_us = 0;
        random_instance(&rng, &in);
        struct weather w = {.cluster = &in.cluster, .seed = 1, .gbit_per_s = rates};
        for (weather_begin(&w); at_us < 2.5e6; weather_advance(&w)) {
            const double next_us = weather_next_us(&w);
            assert_true(next_us >= at_us);
            if (next_us - at_us > 1e-3)
                check_rates(&in, &w, (at_us + next_us) / 2);
            shared += w.n_flows > 1;
            at_us = next_us;
        }
    }
    assert_true(shared > 1000);
}

/* Drawn flows, written down, are a recording that leaves the same rates. */
static void a_recording_of_drawn_flows_is_the_same_weather(void **state) {
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 2);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct instance drawn, played;
        double a[NODES * WEATHER_NUMBERS], b[NODES * WEATHER_NUMBERS];
        uint32_t n = 0;
        random_instance(&rng, &drawn);
        struct background *d = &drawn.cluster.variability.background;
        *d = (struct background){.flows_per_s = 10, .mbytes = rng_between(&rng, 1, 40), .gbit_per_s = 0.7};
        played = drawn;
        played.cluster.nodes = played.nodes;
        played.cluster.variability.changes = played.changes;
        struct background *p = &played.cluster.variability.background;
        *p = (struct background){.trace_us = 1e12, .flows = played.flows};
        struct weather w = {.cluster = &drawn.cluster, .seed = seed, .gbit_per_s = a};
        struct weather again = {.cluster = &played.cluster, .seed = seed, .gbit_per_s = b};
        for (weather_begin(&w); n < FLOWS; weather_advance(&w))
            for (; n < w.n_started && n < FLOWS; n++) {
                const struct weather_flow *flow = &w.flows[w.n_flows - (w.n_started - n)];
                played.flows[n] = (struct background_flow){flow->start_us, flow->from, flow->to, d->mbytes, 0.7};
            }
        const double until_us = played.flows[FLOWS - 1].at_us;
        p->n_flows = FLOWS;
        weather_begin(&w);
        weather_begin(&again);
        while (weather_next_us(&w) < until_us) {
            assert_close(weather_next_us(&w), weather_next_us(&again), 1e-12);
            assert_memory_equal(a, b, sizeof a);
            weather_advance(&w);
            weather_advance(&again);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_the_max_min_share),
        cmocka_unit_test(a_recording_of_drawn_flows_is_the_same_weather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
