/* The pushes and pulls of simulated plans, once more under SimGrid's max-min model (Casanova et al. 2014): does each
 * end when the timeline says, and how long do both take?
 *
 *     simgrid MODEL CLUSTER BASELINE
 *
 * The timeline says when each flow starts. SimGrid is told the starts, bytes and NICs, and nothing else: one actor a
 * flow, a link for each direction of a NIC, the model CM02 without corrections for TCP. Both then share NICs in their
 * own way. Only flows between nodes are compared, and only up to the moment at which the first node begins the last
 * iteration: what is on its way later is not recorded.
 * Prints flows, the largest difference in units of an iteration, and both times in microseconds. */
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xbt/config.h>

#include "base/clock.h"
#include "base/statistics.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"

enum { REPEATS = 5, ROOM = 4000000 };

struct flow {
    uint32_t from, to;
    double bytes, start_us, end_us, simgrid_us;
};

struct subject {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct cost cost;
    uint32_t home;
    double *begun_us; /* by node: its last start of `home` */
    struct flow *flows;
    size_t n;
};

static void check(enum status status, const struct error *err) {
    if (!status)
        return;
    fprintf(stderr, "simgrid: %s\n", ERROR_TEXT(err));
    exit(1);
}

static void *take(size_t n, size_t size) {
    void *memory = calloc(n, size);
    if (memory)
        return memory;
    fprintf(stderr, "simgrid: out of memory\n");
    exit(1);
}

/* ---- the timeline ---- */

static void add_interval(void *context, const struct interval *interval) {
    struct subject *s = context;
    bool pull = interval->kind == INTERVAL_PULL;
    if (interval->kind == INTERVAL_COMPUTE && interval->index == s->home)
        s->begun_us[interval->node] = interval->start_us;
    if (interval->kind == INTERVAL_COMPUTE || s->n == ROOM)
        return;
    const struct message *m = &s->plan.messages[interval->index];
    double latency = pull ? cost_pull_latency_us(&s->cost, interval->node, m->server)
                          : cost_push_latency_us(&s->cost, interval->node, m->server);
    s->flows[s->n++] = (struct flow){.from = pull ? m->server : interval->node,
                                     .to = pull ? interval->node : m->server,
                                     .bytes = (double)m->bytes,
                                     .start_us = interval->start_us + latency,
                                     .end_us = interval->end_us};
}

static void read_subject(char **argv, struct subject *s) {
    struct error err;
    check(model_read_file(argv[1], &s->model, &err), &err);
    check(cluster_read_file(argv[2], &s->cluster, &err), &err);
    check(baselines_build(baselines_find(argv[3]), &s->model, &s->cluster, &s->strategy, &err), &err);
    check(plan_lower(&s->model, &s->cluster, &s->strategy, &s->plan, &err), &err);
    check(cost_init(&s->cost, &s->cluster, &err), &err);
    for (uint32_t m = 0; m < s->plan.n_messages; m++)
        s->home = s->plan.messages[m].gate > s->home ? s->plan.messages[m].gate : s->home;
    s->flows = take(ROOM, sizeof *s->flows);
    s->begun_us = take(s->cluster.n_nodes, sizeof *s->begun_us);
}

/* Plans that the comparison does not cover: other kinds of messages, connections, flows that count more than once. */
static void refuse_others(const struct subject *s) {
    bool alike = !s->plan.any_all_reduce && isinf(s->cost.eager_bytes) && s->cost.burst_bytes <= 0;
    for (uint32_t i = 0; i < s->cluster.n_nodes; i++)
        alike = alike && s->cluster.nodes[i].devices <= 1;
    if (alike && s->cluster.n_links == 0)
        return;
    fprintf(stderr, "simgrid: compares server plans on unmeasured clusters of one device a node\n");
    exit(1);
}

/* Records the flows and returns the median time of a run that does not. */
static double run_timeline(struct subject *s, double *iteration_us) {
    struct error err;
    struct prediction p;
    struct timeline *tl = timeline_new();
    double times[REPEATS];
    struct timeline_options plain = {.every_node = true};
    check(timeline_run(tl, &s->plan, &s->cost, &(struct timeline_options){.record = add_interval, .context = s}, &p,
                       &err),
          &err);
    *iteration_us = p.iteration_us;
    for (int i = 0; i < REPEATS; i++) {
        double start = clock_now_us();
        check(timeline_run(tl, &s->plan, &s->cost, &plain, &p, &err), &err);
        times[i] = clock_now_us() - start;
    }
    timeline_free(tl);
    return median_of(REPEATS, times);
}

/* ---- SimGrid ---- */

/* Bytes a microsecond are megabytes a second. */
static void write_platform(const struct subject *s, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    uint32_t n = s->cluster.n_nodes;
    fprintf(file, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n");
    for (uint32_t i = 0; i < n; i++)
        fprintf(file, "<host id=\"h%u\" speed=\"1Gf\"/>\n", i);
    for (uint32_t i = 0; i < 2 * n; i++)
        fprintf(file, "<link id=\"%s%u\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", i % 2 ? "in" : "out", i / 2,
                s->cost.nic_bytes_per_us[i / 2] * 1e6);
    for (uint32_t i = 0; i < n * n; i++)
        if (i / n != i % n)
            fprintf(file,
                    "<route src=\"h%u\" dst=\"h%u\" symmetrical=\"NO\"><link_ctn id=\"out%u\"/><link_ctn id=\"in%u\"/>"
                    "</route>\n",
                    i / n, i % n, i / n, i % n);
    fprintf(file, "</zone></platform>\n");
    fclose(file);
}

static struct flow *flows; /* an actor gets words, not pointers */

static void send_flow(int argc, char **argv) {
    struct flow *f = &flows[strtoul(argv[argc - 1], NULL, 10)];
    char from[16], to[16];
    snprintf(from, sizeof from, "h%u", f->from);
    snprintf(to, sizeof to, "h%u", f->to);
    sg_actor_sleep_until(f->start_us / 1e6);
    sg_host_sendto(sg_host_by_name(from), sg_host_by_name(to), f->bytes);
    f->simgrid_us = simgrid_get_clock() * 1e6;
}

static void add_actor(size_t i) {
    char number[24], from[16];
    const char *words[] = {number, NULL};
    snprintf(number, sizeof number, "%zu", i);
    snprintf(from, sizeof from, "h%u", flows[i].from);
    sg_actor_create_(number, sg_host_by_name(from), send_flow, 1, words);
}

/* How long it takes. */
static double run_simgrid(struct subject *s) {
    int argc = 2;
    char *argv[] = {"simgrid", "--log=root.threshold:critical", NULL}, path[] = "/tmp/simgrid-XXXXXX.xml";
    int file = mkstemps(path, 4);
    if (file >= 0)
        close(file);
    write_platform(s, path);
    simgrid_init(&argc, argv);
    sg_cfg_set_string("network/model", "CM02");
    sg_cfg_set_double("network/TCP-gamma", 0);
    sg_cfg_set_boolean("network/crosstraffic", "no");
    sg_cfg_set_double("network/bandwidth-factor", 1);
    sg_cfg_set_double("network/weight-S", 0);
    sg_cfg_set_double("surf/precision", 1e-12);
    sg_cfg_set_double("maxmin/precision", 1e-9);
    sg_cfg_set_int("contexts/stack-size", 16);
    sg_cfg_set_int("contexts/guard-size", 0); /* guards of so many stacks are too many mappings */
    simgrid_load_platform(path);
    unlink(path);
    flows = s->flows;
    double start = clock_now_us();
    for (size_t i = 0; i < s->n; i++)
        if (flows[i].from != flows[i].to)
            add_actor(i);
    simgrid_run();
    return clock_now_us() - start;
}

int main(int argc, char **argv) {
    struct subject s = {0};
    double iteration_us, worst_us = 0, until_us = INFINITY;
    size_t compared = 0;
    if (argc != 4)
        return 2;
    read_subject(argv, &s);
    refuse_others(&s);
    double ours_us = run_timeline(&s, &iteration_us), theirs_us = run_simgrid(&s);
    for (uint32_t i = 0; i < s.cluster.n_nodes; i++)
        until_us = s.cluster.nodes[i].devices > 0 ? fmin(until_us, s.begun_us[i]) : until_us;
    for (size_t i = 0; i < s.n; i++) {
        if (s.flows[i].from == s.flows[i].to || s.flows[i].end_us > until_us)
            continue;
        worst_us = fmax(worst_us, fabs(s.flows[i].simgrid_us - s.flows[i].end_us));
        compared++;
    }
    printf("%zu %.3g %.0f %.0f\n", compared, worst_us / iteration_us, ours_us, theirs_us);
    return compared > 0 ? 0 : 1;
}
