/* Does the simulator tell the truth? Predicted against measured over real trials in emulated clusters.
 *
 *     accuracy [--sharded] DATASET TRIALS SEED MODEL=CLUSTER...   run TRIALS trials a pair, then print the table
 *     accuracy DATASET                                            print the table from the records alone
 *
 * Strategies are drawn, not chosen: all-reduce, parameter server and mixed in turn, each policy in turn, partitions
 * log-uniform from 64 KiB to 64 MiB, everything else by the guided sampler. With --sharded: all-reduces in halves and
 * sharded parameters in turn, in groups by the guided sampler. The prediction is made before the trial, from the
 * benched description of the cluster and nothing else. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/statistics.h"
#include "cli/inputs.h"
#include "dataset/query.h"
#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/runners.h"
#include "tuner/session/trials.h"

static void fail(const struct error *err) {
    fprintf(stderr, "accuracy: %s\n", ERROR_TEXT(err));
    exit(1);
}

/* ---- running ---- */

enum { KINDS = 3, LEAST_ITERATIONS = 4, MOST_ITERATIONS = 10, WARMUP = 3 };
static const double TRIAL_US = 20e6; /* long iterations are measured fewer times */
static const char *const kind_words[KINDS] = {"all-reduce", "server", "mixed"};

static bool is_mixed(const struct strategy *s) {
    bool reduced = false, served = false;
    for (uint32_t i = 0; i < s->n_variables; i++)
        *(s->variables[i].kind == SYNC_ALL_REDUCE ? &reduced : &served) = true;
    return reduced && served;
}

static void set_partition(struct strategy *s, uint64_t bytes) {
    for (uint32_t i = 0; i < s->n_groups; i++)
        s->groups[i].partition_bytes = bytes;
    for (uint32_t i = 0; i < s->n_variables; i++)
        if (s->variables[i].kind == SYNC_PARAMETER_SERVER)
            s->variables[i].partition_bytes = bytes;
}

static enum status draw(const struct inputs *in, unsigned index, const struct runner *runner, struct rng *rng,
                        struct strategy *out, struct error *err) {
    struct space_options o = space_default_options();
    struct space space;
    unsigned kind = index % KINDS, policy = index / KINDS % 2;
    char name[64];
    o.all_reduce = kind != 1;
    o.parameter_server = kind != 0;
    o.policies = 1u << (policy ? POLICY_priority : POLICY_fifo);
    o.algorithms = runner_algorithms(runner);
    enum status st = space_init(&space, &in->model, &in->cluster, &o, err);
    if (st)
        return st;
    for (;;) {
        st = space_sample_guided(&space, rng, out, err);
        if (st || kind != 2 || is_mixed(out))
            break;
        strategy_release(out);
    }
    space_release(&space);
    if (st)
        return st;
    set_partition(out, (uint64_t)rng_log_between(rng, 64 << 10, 64 << 20) / 4096 * 4096);
    snprintf(name, sizeof name, "%s-%s-%u", kind_words[kind], policy ? "priority" : "fifo", index);
    out->name = arena_strdup(&out->arena, name);
    return strategy_seal(out, &in->model, &in->cluster, err);
}

/* ---- what is sharded ---- */

static const struct sharding {
    const char *name;
    enum sharded sharded;
    bool cross_iteration, keeps_gathered;
    uint32_t prefetch;
} shardings[] = {
    {"optimizer", SHARDED_optimizer, true, false, 1},
    {"parameters", SHARDED_parameters, false, false, 1},
    {"optimizer-barrier", SHARDED_optimizer, false, false, 1},
    {"parameters-kept", SHARDED_parameters, false, true, 1},
    {"parameters-late", SHARDED_parameters, false, false, 0},
    {"parameters-early", SHARDED_parameters, false, false, 2},
};
enum { SHARDINGS = sizeof shardings / sizeof shardings[0] };

/* Groups of the guided sampler, one message at a time or all at once. */
static enum status draw_sharded(const struct inputs *in, unsigned index, struct rng *rng, struct strategy *out,
                                struct error *err) {
    const struct sharding *as = &shardings[index % SHARDINGS];
    struct space_options o = space_default_options();
    struct space space;
    char name[64];
    o.parameter_server = o.each_shard = false;
    o.whole_messages = true;
    o.policies = 1u << POLICY_fifo;
    o.algorithms = 1u << ALGORITHM_ring;
    enum status st = space_init(&space, &in->model, &in->cluster, &o, err);
    if (st)
        return st;
    st = space_sample_guided(&space, rng, out, err);
    space_release(&space);
    if (st)
        return st;
    out->cross_iteration = as->cross_iteration;
    out->credit_bytes = rng_below(rng, 3) ? 0 : CREDIT_UNLIMITED;
    for (uint32_t g = 0; g < out->n_groups; g++) {
        out->groups[g].sharded = as->sharded;
        out->groups[g].keeps_gathered = as->keeps_gathered;
    }
    out->forward_prefetch = out->backward_prefetch = as->prefetch < out->n_groups ? as->prefetch : 1;
    snprintf(name, sizeof name, "%s-%u", as->name, index);
    out->name = arena_strdup(&out->arena, name);
    return strategy_seal(out, &in->model, &in->cluster, err);
}

static bool sharded; /* --sharded */

static uint64_t iterations_for(double predicted_us) {
    return (uint64_t)fmax(LEAST_ITERATIONS, fmin(MOST_ITERATIONS, TRIAL_US / fmax(predicted_us, 1)));
}

static enum status run_one(struct store *store, const struct inputs *in, struct predictor *predictor,
                           struct runner *runner, unsigned index, struct rng *rng, struct error *err) {
    struct strategy s;
    struct prediction p;
    struct tune_outcome outcome;
    enum status st = sharded ? draw_sharded(in, index, rng, &s, err) : draw(in, index, runner, rng, &s, err);
    if (st)
        return st;
    st = predictor_run(predictor, &s, &p, err);
    const struct tune_order order = {.strategy = &s,
                                     .iterations = iterations_for(st ? 0 : p.iteration_us),
                                     .warmup = WARMUP,
                                     .expected_us = st ? 0 : p.iteration_us};
    const struct tune_runner run = runner_for_session(runner);
    const struct trial_start start = {.model = &in->model,
                                      .cluster = &in->cluster,
                                      .strategy = &s,
                                      .proposer = "accuracy",
                                      .runner = "lab",
                                      .predicted_us = st ? 0 : p.iteration_us};
    int64_t trial;
    if (!st)
        st = trial_record_start(store, &start, &trial, err);
    if (!st)
        st = run.run(run.context, &order, &outcome, err);
    if (!st)
        st = trial_record_end(store, trial, &outcome, err);
    if (!st)
        fprintf(stderr, "  %s %s %s: predicted %.1f ms\n", in->model.name, in->cluster.name, s.name,
                p.iteration_us / 1e3);
    strategy_release(&s);
    return st;
}

static void run_pair(struct store *store, char *pair, unsigned trials, uint64_t seed) {
    struct error err;
    struct inputs in;
    struct predictor predictor;
    struct runner runner;
    struct rng rng;
    char *equals = strchr(pair, '=');
    if (!equals) {
        fprintf(stderr, "accuracy: \"%s\" is not MODEL=CLUSTER\n", pair);
        exit(2);
    }
    *equals = 0;
    rng_split(&rng, seed, strlen(pair) * 131 + strlen(equals + 1));
    if (inputs_read(pair, equals + 1, &in, &err) || predictor_init(&predictor, &in.model, &in.cluster, &err) ||
        runner_init(&runner, &(struct runner_options){.runner = "lab"}, &in.model, &in.cluster, NULL, &err))
        fail(&err);
    for (unsigned i = 0; i < trials; i++)
        if (run_one(store, &in, &predictor, &runner, i, &rng, &err))
            fail(&err);
    runner_release(&runner);
    predictor_release(&predictor);
    inputs_release(&in);
}

/* ---- the table ---- */

static double error_of(const struct record *r) {
    return fabs(r->predicted_us - r->median_us) / r->median_us;
}

static bool same_domain(const struct record *a, const struct record *b) {
    return !strcmp(a->model, b->model) && !strcmp(a->cluster_name, b->cluster_name);
}

static int by_error(const void *a, const void *b) {
    double x = error_of(*(const struct record *const *)a), y = error_of(*(const struct record *const *)b);
    return (x < y) - (x > y);
}

/* Of the pairs within a domain: in how many does the prediction order them as the measurement does. */
static double ranking_accuracy(size_t n, struct record *const *rows, const struct record *domain) {
    size_t pairs = 0, right = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            if (!same_domain(rows[i], rows[j]) || (domain && !same_domain(rows[i], domain)))
                continue;
            pairs++;
            right += (rows[i]->predicted_us < rows[j]->predicted_us) == (rows[i]->median_us < rows[j]->median_us);
        }
    return pairs ? (double)right / (double)pairs : NAN;
}

static double median_error(size_t n, struct record *const *rows, const struct record *domain, size_t *count) {
    double *errors = malloc((n + 1) * sizeof *errors);
    *count = 0;
    for (size_t i = 0; errors && i < n; i++)
        if (!domain || same_domain(rows[i], domain))
            errors[(*count)++] = error_of(rows[i]);
    double m = errors && *count ? median_of(*count, errors) : NAN;
    free(errors);
    return m;
}

/* Of the pairs within a domain whose measured times are over 5% apart: how many there are, and are predicted so. */
static void print_far_pairs(size_t n, struct record *const *rows) {
    size_t pairs = 0, right = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const double a = rows[i]->median_us, b = rows[j]->median_us;
            if (!same_domain(rows[i], rows[j]) || fmax(a, b) <= 1.05 * fmin(a, b))
                continue;
            pairs++;
            right += (rows[i]->predicted_us < rows[j]->predicted_us) == (a < b);
        }
    printf("%zu of %zu pairs over 5%% apart are in order (%.1f%%)\n", right, pairs,
           pairs ? 100.0 * (double)right / (double)pairs : NAN);
}

static void print_row(const struct record *r) {
    printf("%-20s %-14s %-26s %10.1f %10.1f %+7.1f%%\n", r->model_name, r->cluster_name, r->strategy_name,
           r->predicted_us / 1e3, r->median_us / 1e3, (r->predicted_us / r->median_us - 1) * 100);
}

static void print_table(struct store *store) {
    struct error err;
    struct arena arena = {0};
    struct record *records;
    size_t n;
    const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.state = &complete, .proposer = "accuracy"};
    if (query_collect(store, &query, &arena, &n, &records, &err))
        fail(&err);
    struct record **rows = arena_alloc(&arena, n, sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = &records[i];
    printf("%-20s %-14s %-26s %10s %10s %8s\n", "MODEL", "CLUSTER", "STRATEGY", "PREDICTED", "MEASURED", "ERROR");
    for (size_t i = 0; i < n; i++)
        print_row(rows[i]);
    printf("\n%-20s %-14s %8s %14s %18s\n", "MODEL", "CLUSTER", "TRIALS", "MEDIAN ERROR", "RANKING ACCURACY");
    size_t count;
    for (size_t i = 0; i < n; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first &= !same_domain(rows[i], rows[j]);
        if (!first)
            continue;
        double m = median_error(n, rows, rows[i], &count);
        printf("%-20s %-14s %8zu %13.1f%% %18.3f\n", rows[i]->model_name, rows[i]->cluster_name, count, m * 100,
               ranking_accuracy(n, rows, rows[i]));
    }
    double m = median_error(n, rows, NULL, &count);
    printf("%-35s %8zu %13.1f%% %18.3f\n", "all", count, m * 100, ranking_accuracy(n, rows, NULL));
    qsort(rows, n, sizeof *rows, by_error);
    if (n)
        printf("90%% are below %.1f%%; ", 100 * error_of(rows[n / 10]));
    print_far_pairs(n, rows);
    printf("\nThe worst five:\n");
    for (size_t i = 0; i < n && i < 5; i++)
        print_row(rows[i]);
    arena_release(&arena);
}

int main(int argc, char **argv) {
    struct error err;
    struct store *store;
    if (argc > 1 && !strcmp(argv[1], "--sharded")) {
        sharded = true;
        argv++;
        argc--;
    }
    if (argc != 2 && argc < 5) {
        fprintf(stderr, "usage: accuracy [--sharded] DATASET [TRIALS SEED MODEL=CLUSTER...]\n");
        return 2;
    }
    if (store_open(argv[1], argc > 2 ? STORE_READ_WRITE : STORE_READ_ONLY, &store, &err))
        fail(&err);
    for (int i = 4; i < argc; i++)
        run_pair(store, argv[i], (unsigned)atoi(argv[2]), strtoull(argv[3], NULL, 10));
    print_table(store);
    store_close(store);
    return 0;
}
