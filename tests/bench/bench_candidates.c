/* What one step of a search finds in about a second, among servers alone and in the whole space: a large model on 16
 * nodes, beside the fastest baseline. Medians over seeds. argv[1] is the model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/bench/bench.h"
#include "tuner/search/candidates.h"
#include "tuner/search/starts.h"

enum { SEEDS = 5 };

static void read_cluster(struct cluster *out) {
    static const char text[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"b\",\"nodes\":[{\"name\":\"n\",\"count\":16,"
        "\"devices\":1,\"device\":\"v100\",\"nic_gbit_per_s\":10,\"nic_latency_us\":20,"
        "\"device_link_gbyte_per_s\":12}]}";
    struct error err;
    cJSON *json;
    bench_check(json_parse(text, strlen(text), "bench", &json, &err), &err);
    bench_check(cluster_read(json, "bench", out, &err), &err);
    cJSON_Delete(json);
}

/* The fastest that a proposer made; a start is proposed by a baseline. */
static double fastest_us(const struct candidates *candidates) {
    double fastest = INFINITY;
    for (size_t i = 0; i < candidates->n; i++)
        for (int p = 0; p < PROPOSER_COUNT; p++)
            if (!strcmp(candidates->items[i].proposer, proposer_name((enum proposer)p)))
                fastest = fmin(fastest, candidates->items[i].us);
    return fastest;
}

static double fastest_start_us(const struct starts *starts) {
    double fastest = INFINITY;
    for (size_t i = 0; i < starts->n; i++)
        fastest = fmin(fastest, starts->items[i].predicted_us);
    return fastest;
}

static void search(struct predictor *predictor, const struct starts *starts, const struct space *space,
                   const char *what) {
    const struct search_context context = {.space = space, .predictor = predictor, .starts = starts};
    double found_us[SEEDS], step_us[SEEDS];
    struct candidates *candidates = calloc(1, sizeof *candidates);
    if (!candidates)
        exit(1);
    for (int seed = 0; seed < SEEDS; seed++) {
        struct error err;
        struct rng rng;
        rng_seed(&rng, (uint64_t)seed);
        double start = clock_now_us();
        bench_check(
            candidates_make(&context, candidates_evaluations(predictor->model), 0, NULL, &rng, candidates, &err), &err);
        step_us[seed] = clock_now_us() - start;
        found_us[seed] = fastest_us(candidates);
        candidates_release(candidates);
    }
    free(candidates);
    printf("a step of the search, %s: %.0f ms, found %.1f ms an iteration (fastest baseline %.1f)\n", what,
           bench_median(SEEDS, step_us) / 1000, bench_median(SEEDS, found_us) / 1000, fastest_start_us(starts) / 1000);
}

int main(int argc, char **argv) {
    struct error err;
    struct model model;
    struct cluster cluster;
    struct predictor predictor;
    struct starts starts = {0};
    struct space space;
    struct space_options options = space_default_options();
    if (argc != 2)
        return 2;
    bench_check(model_read_file(argv[1], &model, &err), &err);
    read_cluster(&cluster);
    bench_check(predictor_init(&predictor, &model, &cluster, &err), &err);
    bench_check(starts_list(&predictor, &space, &starts, &err), &err);
    for (int servers_alone = 1; servers_alone >= 0; servers_alone--) {
        options.all_reduce = !servers_alone;
        bench_check(space_init(&space, &model, &cluster, &options, &err), &err);
        search(&predictor, &starts, &space, servers_alone ? "servers alone" : "whole space");
        space_release(&space);
    }
    starts_release(&starts);
    predictor_release(&predictor);
    cluster_release(&cluster);
    model_release(&model);
    return 0;
}
