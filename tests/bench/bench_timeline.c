/* How fast the timeline is: one BERT-large plan, whole strategies a second with lowering, the same with sharded
 * parameters, growth with the number of variables, parameter servers on few and many nodes, and that a run allocates
 * nothing. Medians of repeated runs on one core. argv[1] is the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"
#include "strategy/plan.h"
#include "tests/bench/bench.h"

enum { REPEATS = 201 };

/* Each variable whole or in 4 MB messages, needed-first, 8 MB credit, into the next forward pass. */
static void build_strategy(struct strategy *out, const struct model *model, const struct cluster *cluster,
                           bool server) {
    struct error err;
    uint32_t n = model->n_variables;
    bench_check(strategy_init(out, "bench", model, n, &err), &err);
    out->policy = POLICY_priority;
    out->credit_bytes = 8u << 20;
    out->cross_iteration = true;
    uint32_t *servers = arena_alloc(&out->arena, n, sizeof *servers);
    if (!servers)
        exit(1);
    for (uint32_t v = 0; v < n; v++) {
        out->groups[v] = (struct group){.id = v, .algorithm = ALGORITHM_ring, .partition_bytes = 4u << 20};
        out->variables[v].group = v;
        if (!server)
            continue;
        servers[v] = v % cluster->n_nodes;
        out->variables[v].kind = SYNC_PARAMETER_SERVER;
        out->variables[v].n_servers = 1;
        out->variables[v].servers = &servers[v];
        out->variables[v].partition_bytes = 4u << 20;
        out->variables[v].local_reduction = true;
    }
    bench_check(strategy_seal(out, model, cluster, &err), &err);
}

/* Every variable on one of the spare nodes, whole and at once as it is ready, or as P3: cut among all servers, in
 * messages of 160 kB, one after another. */
static void build_served(struct strategy *out, const struct model *model, const struct cluster *cluster, uint32_t spare,
                         bool p3) {
    struct error err;
    uint32_t n = spare > 0 ? spare : cluster->n_nodes, first = cluster->n_nodes - n;
    bench_check(strategy_init(out, "bench", model, 0, &err), &err);
    uint32_t *servers = arena_alloc(&out->arena, 2 * (size_t)n, sizeof *servers);
    if (!servers)
        exit(1);
    for (uint32_t i = 0; i < 2 * n; i++)
        servers[i] = first + i % n;
    out->policy = p3 ? POLICY_priority : POLICY_fifo;
    out->credit_bytes = p3 ? 0 : CREDIT_UNLIMITED;
    out->cross_iteration = p3;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        struct variable_sync *sync = &out->variables[v];
        bool cut = p3 && model->variables[v].shape[0] >= n && model->variables[v].bytes > 160000;
        sync->kind = SYNC_PARAMETER_SERVER;
        sync->n_servers = sync->shards = cut ? n : 1;
        sync->servers = servers + v % n;
        sync->partition_bytes = p3 ? 160000 : sync->partition_bytes;
        sync->local_reduction = true;
    }
    bench_check(strategy_seal(out, model, cluster, &err), &err);
}

struct subject {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct cost cost;
};

/* `nodes` alike nodes that work, and `spare` that only serve. */
static void read_cluster(struct cluster *out, uint32_t nodes, uint32_t devices, double gbit_per_s, uint32_t spare) {
    struct error err;
    char text[512];
    cJSON *json;
    int used = snprintf(text, sizeof text,
                        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"b\",\"nodes\":[{\"name\":\"n\",\"count\":%u,"
                        "\"devices\":%u,\"device\":\"v100\",\"nic_gbit_per_s\":%g,\"nic_latency_us\":20,"
                        "\"device_link_gbyte_per_s\":12}",
                        nodes, devices, gbit_per_s);
    if (spare > 0)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         ",{\"name\":\"s\",\"count\":%u,\"devices\":0,\"nic_gbit_per_s\":%g,\"nic_latency_us\":20}",
                         spare, gbit_per_s);
    used += snprintf(text + used, sizeof text - (size_t)used, "]}");
    bench_check(json_parse(text, (size_t)used, "bench", &json, &err), &err);
    bench_check(cluster_read(json, "bench", out, &err), &err);
    cJSON_Delete(json);
}

/* The strategy is there. */
static void build_sharded(struct strategy *strategy, const struct model *model, const struct cluster *cluster) {
    struct error err;
    bench_check(strategy_init(strategy, "sharded", model, model->n_variables, &err), &err);
    strategy->credit_bytes = 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        strategy->variables[v].group = v;
        strategy->groups[v].sharded = SHARDED_parameters;
    }
    bench_check(strategy_seal(strategy, model, cluster, &err), &err);
}

static void finish_subject(struct subject *s) {
    struct error err;
    bench_check(plan_lower(&s->model, &s->cluster, &s->strategy, &s->plan, &err), &err);
    bench_check(cost_init(&s->cost, &s->cluster, &err), &err);
}

static void release_subject(struct subject *s) {
    cost_release(&s->cost);
    plan_release(&s->plan);
    strategy_release(&s->strategy);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

/* A chain of n layers with one 100 kB variable each. */
static void synthetic_model(struct model *out, uint32_t n) {
    struct error err;
    cJSON *json;
    size_t room = 200 + (size_t)n * 160, used;
    char *text = malloc(room);
    if (!text)
        exit(1);
    used = (size_t)snprintf(text, room,
                            "{\"schema\":\"syncopate.model/1\",\"name\":\"s\",\"batch_per_device\":1,"
                            "\"variables\":[");
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, room - used, "%s{\"name\":\"v%u\",\"shape\":[25000],\"dtype\":\"f32\"}",
                                 i ? "," : "", i);
    used += (size_t)snprintf(text + used, room - used, "],\"layers\":[");
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, room - used,
                                 "%s{\"name\":\"l%u\",\"forward_us\":50,\"backward_us\":100,\"variables\":[\"v%u\"]}",
                                 i ? "," : "", i, i);
    used += (size_t)snprintf(text + used, room - used, "]}");
    bench_check(json_parse(text, used, "synthetic", &json, &err), &err);
    bench_check(model_read(json, "synthetic", out, &err), &err);
    cJSON_Delete(json);
    free(text);
}

static double timeline_us(struct timeline *tl, const struct subject *s, int repeats, struct prediction *out) {
    struct error err;
    double times[REPEATS];
    bench_check(timeline_run(tl, &s->plan, &s->cost, NULL, out, &err), &err);
    for (int i = 0; i < repeats; i++) {
        size_t before = bench_allocations;
        double start = clock_now_us();
        enum status status = timeline_run(tl, &s->plan, &s->cost, NULL, out, &err);
        times[i] = clock_now_us() - start;
        bench_check(status, &err);
        if (bench_allocations != before) {
            fprintf(stderr, "bench_timeline: a run made %zu allocations; it must make none\n",
                    bench_allocations - before);
            exit(1);
        }
    }
    return bench_median((size_t)repeats, times);
}

static double lowered_us(struct timeline *tl, struct subject *s) {
    struct error err;
    struct prediction prediction;
    double times[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double start = clock_now_us();
        bench_check(plan_relower(&s->plan, &s->model, &s->cluster, &s->strategy, &err), &err);
        bench_check(timeline_run(tl, &s->plan, &s->cost, NULL, &prediction, &err), &err);
        times[i] = clock_now_us() - start;
    }
    return bench_median(REPEATS, times);
}

static void report(const char *name, const struct subject *s, double us, const struct prediction *p) {
    printf("timeline %-24s %5u variables %5u steps %5u messages: %9.1f us a run, %u pass%s, iteration %.0f us\n", name,
           s->model.n_variables, s->plan.n_steps, s->plan.n_messages, us, p->passes, p->passes == 1 ? "" : "es",
           p->iteration_us);
}

static void bench_model(struct timeline *tl, const char *path, bool server) {
    struct error err;
    struct prediction p;
    struct subject s = {0};
    bench_check(model_read_file(path, &s.model, &err), &err);
    read_cluster(&s.cluster, 16, 1, 10, 0);
    build_strategy(&s.strategy, &s.model, &s.cluster, server);
    finish_subject(&s);
    double us = timeline_us(tl, &s, server ? 11 : REPEATS, &p);
    report(server ? "servers, 16 nodes" : "all-reduce, 16 nodes", &s, us, &p);
    if (!server) {
        double whole = lowered_us(tl, &s);
        printf("strategies a second, lowering and timeline: %.0f (%.1f us each)\n", 1e6 / whole, whole);
    }
    release_subject(&s);
}

/* Parameters sharded as FSDP does it, by the block, and every variable gathered alone: three messages each. */
static void bench_sharded(struct timeline *tl, const char *path, bool by_block) {
    struct error err;
    struct prediction p;
    struct subject s = {0};
    bench_check(model_read_file(path, &s.model, &err), &err);
    read_cluster(&s.cluster, 16, 1, 10, 0);
    if (by_block)
        bench_check(baselines_build(baselines_find("fsdp-per-block"), &s.model, &s.cluster, &s.strategy, &err), &err);
    else
        build_sharded(&s.strategy, &s.model, &s.cluster);
    finish_subject(&s);
    double us = timeline_us(tl, &s, REPEATS, &p);
    report(by_block ? "fsdp per block" : "sharded parameters", &s, us, &p);
    double whole = lowered_us(tl, &s);
    printf("sharded strategies a second, lowering and timeline: %.0f (%.1f us each)\n", 1e6 / whole, whole);
    release_subject(&s);
}

static void bench_growth(struct timeline *tl) {
    for (uint32_t n = 10; n <= 10000; n *= 10) {
        struct subject s = {0};
        struct prediction p;
        synthetic_model(&s.model, n);
        read_cluster(&s.cluster, 16, 1, 10, 0);
        build_strategy(&s.strategy, &s.model, &s.cluster, false);
        finish_subject(&s);
        double us = timeline_us(tl, &s, n > 1000 ? 21 : REPEATS, &p);
        report("growth", &s, us, &p);
        printf("  %.3f us a variable\n", us / n);
        release_subject(&s);
    }
}

enum served { LOAD_BALANCED, WHOLE, P3 };

struct site {
    const char *name;
    uint32_t nodes, devices, spare;
    double gbit_per_s;
    enum served how;
};

static const struct site SITES[] = {
    {"balanced, v100-16x10g", 4, 4, 0, 10, LOAD_BALANCED},
    {"balanced, lab-8x500m", 8, 1, 0, 0.5, LOAD_BALANCED},
    {"balanced, 64 nodes", 64, 8, 0, 3200, LOAD_BALANCED},
    {"p3, 16 nodes", 16, 1, 0, 10, P3},
    {"p3, 64 nodes", 64, 1, 0, 10, P3},
    {"whole, 2048 + 64 nodes", 2048, 1, 64, 10, WHOLE},
    {"whole, 2048 + 2048 nodes", 2048, 1, 2048, 10, WHOLE},
    {"p3, 2048 + 64 nodes", 2048, 1, 64, 10, P3},
};

static void bench_servers(struct timeline *tl, const char *path) {
    struct error err;
    for (size_t i = 0; i < sizeof SITES / sizeof *SITES; i++) {
        const struct site *site = &SITES[i];
        struct subject s = {0};
        struct prediction p;
        bench_check(model_read_file(path, &s.model, &err), &err);
        read_cluster(&s.cluster, site->nodes, site->devices, site->gbit_per_s, site->spare);
        if (site->how == LOAD_BALANCED)
            bench_check(baselines_build(baselines_find("ps-load-balanced"), &s.model, &s.cluster, &s.strategy, &err),
                        &err);
        else
            build_served(&s.strategy, &s.model, &s.cluster, site->spare, site->how == P3);
        finish_subject(&s);
        double us = timeline_us(tl, &s, site->nodes == 64 ? 1 : 5, &p);
        report(site->name, &s, us, &p);
        release_subject(&s);
    }
}

int main(int argc, char **argv) {
    struct timeline *tl = timeline_new();
    if (!tl || argc != 2)
        return 2;
    bench_model(tl, argv[1], false);
    bench_model(tl, argv[1], true);
    bench_sharded(tl, argv[1], true);
    bench_sharded(tl, argv[1], false);
    bench_growth(tl);
    bench_servers(tl, argv[1]);
    printf("allocations inside a run: 0\n");
    timeline_free(tl);
    return 0;
}
