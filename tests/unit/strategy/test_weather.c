/* Weather: what a description of it may not say, and that a seed's weather is the same whatever asks for it, has the
 * shares that were asked for, and goes through a trace again and again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/weather.h"
#include "tests/support/check.h"
#include "tests/unit/strategy/descriptions.h"

#define VARIES(members)                                                                                                \
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':3,'devices':2,'nic_gbit_per_s':10,"       \
    "'device_link_gbyte_per_s':12}],'variability':{" members "}}"
#define RATES(every, rates)   VARIES("'network':{'every_us':" every ",'rates':[" rates "]}")
#define TRACE(until, changes) VARIES("'network':{'until_us':" until ",'changes':[" changes "]}")
#define FLOWS(members)        VARIES("'background':{" members "}")
#define RECORDED(until, list) FLOWS("'until_us':" until ",'flows':[" list "]")
#define FLOW(at, from, to, mbytes, rate)                                                                               \
    "{'at_us':" at ",'from':'" from "','to':'" to "','mbytes':" mbytes ",'gbit_per_s':" rate "}"
#define N1               "{'gbit_per_s':5,'share':0.1},{'gbit_per_s':10,'share':0.9}"
#define CHANGE(at, rate) "{'at_us':" at ",'node':'n2','direction':'in','gbit_per_s':" rate "}"

static const struct {
    const char *text, *says;
} refused[] = {
    {VARIES("'wind':{}"), "/variability/wind: unknown member"},
    {VARIES("'compute':{'share':0.1}"), "/variability/compute: the member \"factor\" is missing"},
    {VARIES("'compute':{'share':1.5,'factor':2}"), "/variability/compute/share: is 1.5"},
    {VARIES("'compute':{'share':0.5,'factor':0.5}"), "/variability/compute/factor: is 0.5"},
    {VARIES("'compute':{'share':0.5,'factor':2,'drawn_every':'day'}"), "/variability/compute/drawn_every: "},
    {RATES("5", "{'gbit_per_s':0,'share':1}"), "/network/rates/0/gbit_per_s: is 0"},
    {RATES("5", "{'gbit_per_s':11,'share':1}"), "/rates/0: 11 Gbit/s, but the NIC of \"n1\" has 10"},
    {RATES("5", "{'gbit_per_s':5,'share':0.5},{'gbit_per_s':10,'share':0.4}"), "/rates: the shares add up to 0.9, not"},
    {RATES("5", ""), "/rates: the shares add up to 0, not to 1"},
    {RATES("0", N1), "/network/every_us: is 0"},
    {VARIES("'network':{'every_us':5,'monitor_lag_us':5}"), "/network: the member \"rates\" is missing"},
    {VARIES("'network':{'monitor_lag_us':-5}"), "/network/monitor_lag_us: is -5"},
    {VARIES("'network':{'rates':[" N1 "]}"), "/network: the member \"every_us\" is missing"},
    {VARIES("'network':{'every_us':5,'rates':[" N1 "],'until_us':5}"), "/network/until_us: unknown member"},
    {TRACE("100", ""), "/changes: a trace without a change"},
    {TRACE("100", CHANGE("50", "5") "," CHANGE("40", "10")), "/changes/1: at 40 us, but the change before it is at 50"},
    {TRACE("100", CHANGE("100", "5")), "/changes/0: at 100 us, past the trace's end"},
    {TRACE("100", CHANGE("10", "0")), "/changes/0/gbit_per_s: is 0"},
    {TRACE("100", CHANGE("10", "20")), "/changes/0: 20 Gbit/s, but the NIC of \"n2\" has 10"},
    {TRACE("100", "{'at_us':1,'node':'m','direction':'in','gbit_per_s':1}"), "the cluster has no node \"m\""},
    {TRACE("100", "{'at_us':1,'node':'n1','direction':'up','gbit_per_s':1}"), "/changes/0/direction: "},
    {VARIES("'network':{'changes':[" CHANGE("1", "1") "]}"), "/network: the member \"until_us\" is missing"},
    {FLOWS("'flows_per_s':1,'mbytes':1"), "/variability/background: the member \"gbit_per_s\" is missing"},
    {FLOWS("'flows_per_s':1,'mbytes':1,'gbit_per_s':11"), "/background: 11 Gbit/s, but the NIC of \"n1\" has 10"},
    {FLOWS("'flows_per_s':-1,'mbytes':1,'gbit_per_s':1"), "/background/flows_per_s: is -1"},
    {FLOWS("'flows_per_s':1,'mbytes':0,'gbit_per_s':1"), "/background/mbytes: is 0"},
    {FLOWS("'flows_per_s':10,'mbytes':1000,'gbit_per_s':1"), "/background: 80 flows at a time on average; at most 32"},
    {FLOWS("'flows_per_s':1,'mbytes':1,'gbit_per_s':1,'until_us':1"), "/background/until_us: unknown member"},
    {RECORDED("100", ""), "/background/flows: no flow is in it"},
    {FLOWS("'flows':[" FLOW("0", "n1", "n2", "1", "1") "]"), "/background: the member \"until_us\" is missing"},
    {RECORDED("1e4", FLOW("0", "n1", "m", "1", "1")), "/flows/0: \"to\": the cluster has no node \"m\""},
    {RECORDED("1e4", FLOW("0", "n1", "n1", "1", "1")), "/flows/0: from a node to itself"},
    {RECORDED("1e4", FLOW("0", "n1", "n2", "1", "-1")), "/flows/0/gbit_per_s: is -1"},
    {RECORDED("1e4", FLOW("0", "n1", "n2", "1", "20")), "/flows/0: 20 Gbit/s, but the NIC of \"n1\" has 10"},
    {RECORDED("1e4", FLOW("9000", "n1", "n2", "1", "1")), "/flows/0: ends at 17000 us, past the end"},
    {RECORDED("1e5", FLOW("5", "n1", "n2", "1", "1") "," FLOW("4", "n1", "n2", "1", "1")),
     "/flows/1: at 4 us, but the flow before it is at 5"},
    {"{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','nic_gbit_per_s':10}],'variability':{"
     "'background':{'flows_per_s':1,'mbytes':1,'gbit_per_s':1}}}",
     "/background: flows go from node to node, and the cluster has one"},
};

static void weather_that_cannot_be_is_refused_at_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct error err = {0};
        struct cluster cluster;
        assert_fails(quoted_cluster(refused[i].text, &cluster, &err), ST_INVALID, refused[i].says);
    }
}

static void read_cluster(const char *text, struct cluster *out) {
    struct error err;
    assert_ok(quoted_cluster(text, out, &err));
}

static void a_description_is_written_as_it_was_read(void **state) {
    (void)state;
    const char *texts[] = {RATES("5000", N1),
                           TRACE("100", CHANGE("0", "5") "," CHANGE("40", "10")),
                           VARIES("'compute':{'share':0.1,'factor':4,'drawn_every':'run'}"),
                           VARIES(""),
                           FLOWS("'flows_per_s':0.5,'mbytes':100,'gbit_per_s':4"),
                           VARIES("'network':{'monitor_lag_us':7},"
                                  "'background':{'flows_per_s':0.5,'mbytes':100,'gbit_per_s':4}"),
                           RECORDED("5e4", FLOW("0", "n1", "n2", "10", "5") "," FLOW("10", "n3", "n2", "1", "10"))};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err;
        struct cluster first, second;
        read_cluster(texts[i], &first);
        cJSON *json = cluster_write(&first);
        assert_ok(cluster_read(json, "c.json", &second, &err));
        assert_string_equal(first.id.hex, second.id.hex);
        assert_close(first.variability.monitor_lag_us, second.variability.monitor_lag_us, 0);
        assert_non_null(cJSON_GetObjectItem(json, "variability"));
        cJSON_Delete(json);
        cluster_release(&first);
        cluster_release(&second);
    }
}

static void begin(const struct cluster *cluster, uint64_t seed, double *rates, struct weather *out) {
    *out = (struct weather){.cluster = cluster, .seed = seed, .gbit_per_s = rates};
    weather_begin(out);
}

/* 6 ports over 20,000 periods: the share of slow ones has a deviation of 0.0009 around 0.1. */
static void rates_have_their_shares_and_change_on_time(void **state) {
    (void)state;
    struct cluster cluster;
    struct weather w;
    double rates[12];
    int slow = 0, as_before = 0;
    read_cluster(RATES("5000", N1), &cluster);
    begin(&cluster, test_seed(), rates, &w);
    for (int period = 0; period < 20000; period++) {
        double before[12];
        memcpy(before, rates, sizeof before);
        for (int port = 0; port < 6; port++) {
            assert_true(rates[port] == 5 || rates[port] == 10);
            slow += rates[port] == 5;
        }
        assert_close(weather_next_us(&w), 5000.0 * (period + 1), 1e-12);
        weather_advance(&w);
        as_before += !memcmp(before, rates, sizeof before);
    }
    assert_true(fabs(slow / 120000.0 - 0.1) < 0.005);
    assert_true(fabs(as_before / 20000.0 - pow(0.82, 6)) < 0.02);
    cluster_release(&cluster);
}

static void a_seed_draws_the_same_weather_again_and_another_draws_other(void **state) {
    (void)state;
    struct cluster cluster;
    struct weather a, b, c;
    double rates[3][12];
    int others = 0;
    read_cluster(RATES("5000", N1), &cluster);
    begin(&cluster, 7, rates[0], &a);
    begin(&cluster, 7, rates[1], &b);
    begin(&cluster, 8, rates[2], &c);
    for (int i = 0; i < 200; i++) {
        assert_memory_equal(rates[0], rates[1], sizeof rates[0]);
        others += memcmp(rates[0], rates[2], sizeof rates[0]) != 0;
        weather_advance(&a);
        weather_slowness(&cluster, 7, 1, (uint64_t)i); /* asking for other things changes nothing */
        weather_advance(&b);
        weather_advance(&c);
    }
    assert_true(others > 50);
    cluster_release(&cluster);
}

static void a_trace_begins_again(void **state) {
    (void)state;
    struct cluster cluster;
    struct weather w;
    double rates[12];
    read_cluster(TRACE("100", CHANGE("0", "5") "," CHANGE("40", "2") "," CHANGE("70", "10")), &cluster);
    begin(&cluster, 1, rates, &w);
    static const double times[] = {0, 40, 70, 100, 140, 170, 200}, in[] = {5, 2, 10, 5, 2, 10, 5};
    const int port = 1 * DIRECTION_COUNT + DIRECTION_IN;
    for (int i = 0; i < 7; i++) {
        assert_close(rates[port], in[i], 0);
        for (int other = 0; other < 6; other++)
            assert_true(other == port || rates[other] == 10);
        if (i == 6)
            break;
        assert_close(weather_next_us(&w), times[i + 1], 1e-12);
        weather_advance(&w);
    }
    cluster_release(&cluster);
}

/* Means over parts, of windows that begin and end anywhere, against sums over many small steps. */
static void means_are_those_of_the_weather(void **state) {
    (void)state;
    enum { PARTS = 7, STEPS = 7000, PORTS = 3 * DIRECTION_COUNT };
    static const char *const texts[] = {RATES("300", N1), TRACE("1000", CHANGE("10", "5") "," CHANGE("710", "2"))};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 40; t++) {
        struct cluster cluster;
        struct error err;
        double mean[PORTS * PARTS], rates[3 * WEATHER_NUMBERS], sums[PORTS * PARTS] = {0};
        read_cluster(texts[t % 2], &cluster);
        const double from = t % 5 ? rng_between(&rng, 0, 3000) : 0, to = from + rng_between(&rng, 1, 4000);
        assert_ok(weather_means(&cluster, 9, from, to, PARTS, mean, &err));
        struct weather w = {.cluster = &cluster, .seed = 9, .gbit_per_s = rates};
        weather_begin(&w);
        for (int i = 0; i < STEPS; i++) {
            while (weather_next_us(&w) <= from + (i + 0.5) * (to - from) / STEPS)
                weather_advance(&w);
            for (int port = 0; port < PORTS; port++)
                sums[port * PARTS + i / (STEPS / PARTS)] += rates[port] * PARTS / STEPS;
        }
        for (int i = 0; i < PORTS * PARTS; i++)
            assert_true(fabs(mean[i] - sums[i]) < 0.05);
        cluster_release(&cluster);
    }
}

/* A trace that is written and read back is the weather that it was drawn from, and has no more changes than was said.
 */
static void a_seed_can_be_written_as_a_trace(void **state) {
    (void)state;
    struct cluster drawn, played;
    double rates[2][3 * WEATHER_NUMBERS];
    read_cluster(RATES("300", N1), &drawn);
    cJSON *json = cluster_write(&drawn), *trace = cJSON_CreateObject();
    struct error err;
    assert_true(weather_write(&drawn, 4, 30000, trace));
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(trace, "changes")) > 10);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(trace, "changes")) <= weather_changes(&drawn, 30000));
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(json, "variability"), "network", trace);
    assert_ok(cluster_read(json, "c", &played, &err));
    cJSON_Delete(json);
    struct weather w[2] = {{.cluster = &drawn, .seed = 4, .gbit_per_s = rates[0]},
                           {.cluster = &played, .seed = 1, .gbit_per_s = rates[1]}};
    for (int k = 0; k < 2; k++)
        weather_begin(&w[k]);
    for (double at = 150; at < 30000; at += 300) {
        for (int k = 0; k < 2; k++)
            while (weather_next_us(&w[k]) <= at)
                weather_advance(&w[k]);
        assert_memory_equal(rates[0], rates[1], sizeof rates[0]);
    }
    cluster_release(&drawn);
    cluster_release(&played);
}

static void without_a_network_no_rate_ever_changes(void **state) {
    (void)state;
    struct cluster cluster;
    struct weather w;
    double rates[12];
    read_cluster(VARIES("'compute':{'share':0.1,'factor':4}"), &cluster);
    begin(&cluster, 1, rates, &w);
    assert_true(isinf(weather_next_us(&w)) && rates[0] == 10 && rates[5] == 10);
    cluster_release(&cluster);
}

/* A node of two devices is slow when either is: 0.19 of the time. */
static void a_node_waits_for_its_slowest_device(void **state) {
    (void)state;
    struct cluster each, once;
    int slow = 0;
    read_cluster(VARIES("'compute':{'share':0.1,'factor':4}"), &each);
    read_cluster(VARIES("'compute':{'share':0.1,'factor':4,'drawn_every':'run'}"), &once);
    for (uint64_t i = 0; i < 20000; i++) {
        double factor = weather_slowness(&each, test_seed(), 1, i);
        assert_true(factor == 1 || factor == 4);
        slow += factor == 4;
        assert_true(weather_slowness(&once, 3, 2, i) == weather_slowness(&once, 3, 2, 0));
    }
    assert_true(fabs(slow / 20000.0 - 0.19) < 0.015);
    cluster_release(&each);
    cluster_release(&once);
}

/* On a NIC of 10 one flow of 6 leaves half and two leave a third, one of 1 beside one of 9 leaves half of 9. A megabyte
 * at 1 Gbit/s takes 8 ms. */
static void flows_leave_a_fair_share_of_the_nics_that_they_pass(void **state) {
    (void)state;
    struct cluster cluster;
    struct weather w;
    double rates[12];
    read_cluster(RECORDED("50000", FLOW("0", "n1", "n2", "6", "6") "," FLOW("1000", "n1", "n3", "6", "6") "," FLOW(
                                       "20000", "n1", "n2", "1", "1") "," FLOW("21000", "n3", "n2", "2.25", "9")),
                 &cluster);
    static const double times[] = {0, 1000, 8000, 9000, 20000, 21000, 23000, 28000, 50000, 51000};
    static const double out_of_1[] = {5, 10. / 3, 5, 10, 9, 9, 9, 10, 5, 10. / 3};
    static const double into_2[] = {5, 5, 10, 10, 9, 4.5, 9, 10, 5, 5},
                        into_3[] = {10, 5, 5, 10, 10, 10, 10, 10, 10, 5};
    begin(&cluster, 1, rates, &w);
    for (int i = 0; i < 10; i++) {
        assert_close(rates[0 * DIRECTION_COUNT + DIRECTION_OUT], out_of_1[i], 1e-12);
        assert_close(rates[1 * DIRECTION_COUNT + DIRECTION_IN], into_2[i], 1e-12);
        assert_close(rates[2 * DIRECTION_COUNT + DIRECTION_IN], into_3[i], 1e-12);
        assert_close(rates[0 * DIRECTION_COUNT + DIRECTION_IN], 10, 0);
        if (i == 9)
            break;
        assert_close(weather_next_us(&w), times[i + 1], 1e-12);
        weather_advance(&w);
    }
    cluster_release(&cluster);
}

/* 20 flows a second for 1000 s, each 0.2 s long: 20,000 with a deviation of 141, 4 at a time, between all pairs. */
static void flows_are_drawn_as_often_as_said_between_all_nodes(void **state) {
    (void)state;
    enum { SECONDS = 1000 };
    struct cluster cluster;
    struct weather w;
    double rates[12], busy_us = 0, at_us = 0;
    uint64_t pairs[3][3] = {{0}}, seen = 0;
    read_cluster(FLOWS("'flows_per_s':20,'mbytes':100,'gbit_per_s':4"), &cluster);
    for (begin(&cluster, test_seed(), rates, &w); at_us < SECONDS * 1e6; weather_advance(&w)) {
        for (; seen < w.n_started; seen++) {
            const struct weather_flow *flow = &w.flows[w.n_flows - (w.n_started - seen)];
            pairs[flow->from][flow->to]++;
            assert_close(flow->end_us - flow->start_us, 200000, 1e-6);
        }
        busy_us += w.n_flows * (weather_next_us(&w) - at_us);
        at_us = weather_next_us(&w);
    }
    assert_true(fabs((double)seen - 20 * SECONDS) < 5 * 141);
    assert_true(fabs(busy_us / at_us - 4) < 0.15);
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            assert_true(from == to ? pairs[from][to] == 0
                                   : fabs((double)pairs[from][to] / (double)seen - 1. / 6) < 0.02);
    cluster_release(&cluster);
}

/* What shows its kind: 20 changes of rates, 20 flows or their length, a whole recording; the longest of them. */
static void weather_shows_itself_in_a_known_time(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double us;
    } shown[] = {{VARIES("'compute':{'share':0.1,'factor':4}"), 0},
                 {RATES("5000", N1), 20 * 5000.},
                 {TRACE("100", CHANGE("0", "5")), 100},
                 {FLOWS("'flows_per_s':2,'mbytes':1,'gbit_per_s':1"), 20 * 500000.},
                 {FLOWS("'flows_per_s':2,'mbytes':1000,'gbit_per_s':8"), 20 * 1e6},
                 {RECORDED("5e4", FLOW("0", "n1", "n2", "1", "1")), 5e4}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct cluster cluster;
        read_cluster(shown[i].text, &cluster);
        assert_close(weather_shows_us(&cluster.variability, 20), shown[i].us, 1e-9);
        cluster_release(&cluster);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weather_that_cannot_be_is_refused_at_its_place),
        cmocka_unit_test(a_description_is_written_as_it_was_read),
        cmocka_unit_test(rates_have_their_shares_and_change_on_time),
        cmocka_unit_test(a_seed_draws_the_same_weather_again_and_another_draws_other),
        cmocka_unit_test(a_trace_begins_again),
        cmocka_unit_test(means_are_those_of_the_weather),
        cmocka_unit_test(a_seed_can_be_written_as_a_trace),
        cmocka_unit_test(without_a_network_no_rate_ever_changes),
        cmocka_unit_test(a_node_waits_for_its_slowest_device),
        cmocka_unit_test(flows_leave_a_fair_share_of_the_nics_that_they_pass),
        cmocka_unit_test(flows_are_drawn_as_often_as_said_between_all_nodes),
        cmocka_unit_test(weather_shows_itself_in_a_known_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
