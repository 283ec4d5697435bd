/* Does the simulator tell the truth? Predicted against measured over real trials in emulated clusters.
 *
 *     accuracy [--sharded] [--twice] DATASET TRIALS SEED MODEL=CLUSTER...
 *                                 run TRIALS trials a pair, then print the table
 *     accuracy DATASET            print the table from the records alone
 *
 * Strategies are drawn, not chosen: all-reduce, parameter server and mixed in turn, each policy in turn, partitions
 * log-uniform from 64 KiB to 64 MiB, everything else by the guided sampler. With --sharded: the rows of ways[] in turn,
 * in groups by the guided sampler; how many devices share and how many micro-batches there are is drawn too. The
 * prediction is made before the trial, from the benched description of the cluster and nothing else.
 *
 * With --twice every pair is run a second time with the same strategies. The table then says how far the second trials
 * are from the first: no prediction can do better.
 *
 * A trial that fails is in the records with its reason. The table names each, and the exit status is then 1. */
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

enum { KINDS = 3, LEAST_ITERATIONS = 4, MOST_ITERATIONS = 10, WARMUP = 2 };
static const double TRIAL_US = 20e6, SHARDED_US = 10e6; /* long iterations are measured fewer times */
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

enum { MOST_KINDS = 2, LEAST_BATCHES = 2, MOST_BATCHES = 3 };

static const struct way {
    const char *name;
    const char *kinds[MOST_KINDS]; /* under which it is counted in the summary */
    enum sharded sharded;
    bool cross_iteration, keeps_gathered;
    uint32_t prefetch;
    bool has_replicas; /* fewer devices than all share the shards ("shard_ranks") */
    bool keeps_parts;  /* "reshard_after_forward" is a number of devices */
    bool accumulates;  /* several micro-batches an update */
    enum synchronize synchronize;
} ways[] = {
    {"optimizer", {"halves"}, SHARDED_optimizer, .cross_iteration = true, .prefetch = 1},
    {"parameters", {"parameters"}, SHARDED_parameters, .prefetch = 1},
    {"optimizer-barrier", {"halves"}, SHARDED_optimizer, .prefetch = 1},
    {"parameters-kept", {"parameters"}, SHARDED_parameters, .keeps_gathered = true, .prefetch = 1},
    {"parameters-late", {"parameters"}, SHARDED_parameters, .prefetch = 0},
    {"parameters-early", {"parameters"}, SHARDED_parameters, .prefetch = 2},
    {"replicas", {"replicas"}, SHARDED_parameters, .prefetch = 1, .has_replicas = true},
    {"parts", {"parts"}, SHARDED_parameters, .prefetch = 1, .keeps_parts = true},
    {"parts-early", {"parts"}, SHARDED_parameters, .prefetch = 2, .keeps_parts = true},
    {"all-reduce-each", {"micro-batches"}, .prefetch = 1, .accumulates = true, .synchronize = SYNCHRONIZE_each},
    {"optimizer-last", {"micro-batches"}, SHARDED_optimizer, .prefetch = 1, .accumulates = true},
    {"parameters-each",
     {"micro-batches"},
     SHARDED_parameters,
     .prefetch = 1,
     .accumulates = true,
     .synchronize = SYNCHRONIZE_each},
    {"replicas-each",
     {"replicas", "micro-batches"},
     SHARDED_parameters,
     .prefetch = 1,
     .has_replicas = true,
     .accumulates = true,
     .synchronize = SYNCHRONIZE_each_all_reduce_last},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* Some of n devices, so many that they divide n: neither one nor all. 0 where n is a prime number. */
static uint32_t draw_divisor(uint32_t n, struct rng *rng) {
    uint32_t drawn = 0, seen = 0;
    for (uint32_t k = 2; k <= n / 2; k++)
        if (n % k == 0 && rng_below(rng, ++seen) == 0)
            drawn = k;
    return drawn;
}

static void follow_way(const struct way *way, uint32_t n_devices, struct rng *rng, struct strategy *s) {
    s->cross_iteration = way->cross_iteration;
    s->credit_bytes = rng_below(rng, 3) ? 0 : CREDIT_UNLIMITED;
    const uint32_t parts = way->keeps_parts ? draw_divisor(n_devices, rng) : 0;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].sharded = way->sharded;
        s->groups[g].keeps_gathered = way->keeps_gathered;
        s->groups[g].reshard_ranks = parts;
    }
    s->forward_prefetch = s->backward_prefetch = way->prefetch < s->n_groups ? way->prefetch : 1;
    s->shard_ranks = way->has_replicas ? draw_divisor(n_devices, rng) : 0;
    if (way->accumulates)
        s->micro_batches = LEAST_BATCHES + (uint32_t)rng_below(rng, MOST_BATCHES - LEAST_BATCHES + 1);
    s->synchronize = way->synchronize;
}

/* Groups of the guided sampler, one message at a time or all at once. */
static enum status draw_sharded(const struct inputs *in, unsigned index, struct rng *rng, struct strategy *out,
                                struct error *err) {
    const struct way *way = &ways[index % WAYS];
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
    follow_way(way, in->cluster.n_devices, rng, out);
    snprintf(name, sizeof name, "%s-%u", way->name, index);
    out->name = arena_strdup(&out->arena, name);
    return strategy_seal(out, &in->model, &in->cluster, err);
}

static bool sharded, twice; /* --sharded, --twice */
static const char *const proposers[] = {"accuracy", "accuracy again"};

static uint64_t iterations_for(double predicted_us) {
    const double trial_us = sharded ? SHARDED_US : TRIAL_US;
    return (uint64_t)fmax(LEAST_ITERATIONS, fmin(MOST_ITERATIONS, trial_us / fmax(predicted_us, 1)));
}

/* A strategy that cannot be drawn or recorded ends everything; a trial that fails is a record. */
static enum status run_one(struct store *store, const struct inputs *in, struct predictor *predictor,
                           struct runner *runner, unsigned index, const char *proposer, struct rng *rng,
                           struct error *err) {
    struct strategy s;
    struct prediction p = {.iteration_us = 0};
    struct tune_outcome outcome;
    struct error why;
    char reason[ERROR_TEXT_ROOM];
    int64_t trial;
    enum status st = sharded ? draw_sharded(in, index, rng, &s, err) : draw(in, index, runner, rng, &s, err);
    if (st)
        return st;
    enum status ran = predictor_run(predictor, &s, &p, &why);
    const struct tune_order order = {
        .strategy = &s, .iterations = iterations_for(p.iteration_us), .warmup = WARMUP, .expected_us = p.iteration_us};
    const struct tune_runner run = runner_for_session(runner);
    const struct trial_start start = {.model = &in->model,
                                      .cluster = &in->cluster,
                                      .strategy = &s,
                                      .proposer = proposer,
                                      .runner = "lab",
                                      .predicted_us = p.iteration_us};
    st = trial_record_start(store, &start, &trial, err);
    if (!st && !ran)
        ran = run.run(run.context, &order, &outcome, &why);
    if (ran)
        outcome = (struct tune_outcome){.state = RECORD_FAILED, .reason = error_text(&why, reason)};
    if (!st)
        st = trial_record_end(store, trial, &outcome, err);
    if (!st)
        fprintf(stderr, "  %s %s %s: predicted %.1f ms, %s\n", in->model.name, in->cluster.name, s.name,
                p.iteration_us / 1e3, record_state_word(outcome.state));
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
    struct rng any = rng;
    if (sharded && draw_divisor(in.cluster.n_devices, &any) == 0) {
        fprintf(stderr, "accuracy: cluster \"%s\" has %u devices, which cannot be parted into replicas\n",
                in.cluster.name, in.cluster.n_devices);
        exit(2);
    }
    for (unsigned round = 0; round <= twice; round++) {
        struct rng same = rng;
        for (unsigned i = 0; i < trials; i++)
            if (run_one(store, &in, &predictor, &runner, i, proposers[round], &same, &err))
                fail(&err);
    }
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

/* A strategy's name without its number: "parameters-kept" of "parameters-kept-3". */
static size_t stem_length(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash ? (size_t)(dash - name) : strlen(name);
}

static bool has_stem(const char *name, const char *stem) {
    return strlen(stem) == stem_length(name) && !strncmp(name, stem, strlen(stem));
}

/* Kind k of a drawn strategy, by its name: of ways[], else the first part of the name. False: it has no kind k. */
static bool kind_of(const struct record *r, unsigned k, char kind[64]) {
    for (size_t i = 0; i < WAYS; i++)
        if (has_stem(r->strategy_name, ways[i].name)) {
            const char *word = ways[i].kinds[k];
            snprintf(kind, 64, "%s", word ? word : "");
            return word;
        }
    snprintf(kind, 64, "%.*s", (int)stem_length(r->strategy_name), r->strategy_name);
    return k == 0;
}

static bool is_of_kind(const struct record *r, const char *kind) {
    char word[64];
    for (unsigned k = 0; k < MOST_KINDS; k++)
        if (kind_of(r, k, word) && !strcmp(word, kind))
            return true;
    return false;
}

/* Of the trials of a domain and a kind (NULL: of all): how many there are, and the median and 90% of their errors. */
struct errors {
    size_t n;
    double median, high;
};

static struct errors errors_of(size_t n, struct record *const *rows, const struct record *domain, const char *kind) {
    struct errors e = {0, NAN, NAN};
    double *errors = malloc((n + 1) * sizeof *errors);
    for (size_t i = 0; errors && i < n; i++)
        if ((!domain || same_domain(rows[i], domain)) && (!kind || is_of_kind(rows[i], kind)))
            errors[e.n++] = error_of(rows[i]);
    if (e.n) {
        e.median = median_of(e.n, errors);
        e.high = errors[e.n - 1 - e.n / 10];
    }
    free(errors);
    return e;
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

/* Of those that were tried twice: how far is the second trial from the first? */
static void print_again(size_t n, struct record *const *rows, size_t n_again, const struct record *again) {
    double *errors = malloc((n + 1) * sizeof *errors);
    size_t pairs = 0;
    for (size_t i = 0; errors && i < n; i++)
        for (size_t k = 0; k < n_again; k++)
            if (again[k].state == RECORD_COMPLETE && same_domain(rows[i], &again[k]) &&
                !strcmp(rows[i]->strategy, again[k].strategy)) {
                errors[pairs++] = fabs(again[k].median_us / rows[i]->median_us - 1);
                break;
            }
    if (pairs) {
        const double median = median_of(pairs, errors);
        printf("%-35s %8zu %13.1f%%   90%% are below %.1f%%\n", "a second trial, against the first", pairs,
               median * 100, errors[pairs - 1 - pairs / 10] * 100);
    }
    free(errors);
}

static void print_domains(size_t n, struct record *const *rows) {
    printf("\n%-20s %-14s %8s %14s %18s\n", "MODEL", "CLUSTER", "TRIALS", "MEDIAN ERROR", "RANKING ACCURACY");
    for (size_t i = 0; i < n; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first &= !same_domain(rows[i], rows[j]);
        if (!first)
            continue;
        const struct errors e = errors_of(n, rows, rows[i], NULL);
        printf("%-20s %-14s %8zu %13.1f%% %18.3f\n", rows[i]->model_name, rows[i]->cluster_name, e.n, e.median * 100,
               ranking_accuracy(n, rows, rows[i]));
    }
    const struct errors e = errors_of(n, rows, NULL, NULL);
    printf("%-35s %8zu %13.1f%% %18.3f\n", "all", e.n, e.median * 100, ranking_accuracy(n, rows, NULL));
    if (n)
        printf("90%% are below %.1f%%; ", e.high * 100);
    print_far_pairs(n, rows);
}

/* Why the trials of the rows sum to more than all. */
static void print_counted_twice(size_t n, struct record *const *rows) {
    for (size_t w = 0; w < WAYS; w++) {
        size_t trials = 0;
        for (size_t i = 0; i < n; i++)
            trials += has_stem(rows[i]->strategy_name, ways[w].name);
        if (ways[w].kinds[1] && trials)
            printf("Trials of %s count in two rows, %s and %s: %zu\n", ways[w].name, ways[w].kinds[0], ways[w].kinds[1],
                   trials);
    }
}

static void print_kinds(size_t n, struct record *const *rows) {
    char kind[64];
    printf("\n%-35s %8s %14s %18s\n", "KIND", "TRIALS", "MEDIAN ERROR", "90% ARE BELOW");
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < MOST_KINDS; k++) {
            bool first = kind_of(rows[i], k, kind);
            for (size_t j = 0; j < i && first; j++)
                first = !is_of_kind(rows[j], kind);
            if (!first)
                continue;
            const struct errors e = errors_of(n, rows, NULL, kind);
            printf("%-35s %8zu %13.1f%% %17.1f%%\n", kind, e.n, e.median * 100, e.high * 100);
        }
    print_counted_twice(n, rows);
}

/* How many trials failed. */
static size_t print_failed(size_t n, const struct record *records) {
    size_t failed = 0;
    for (size_t i = 0; i < n; i++)
        failed += records[i].state != RECORD_COMPLETE;
    printf("\n%zu of %zu trials failed%s\n", failed, n, failed ? ":" : ".");
    for (size_t i = 0; i < n; i++)
        if (records[i].state != RECORD_COMPLETE)
            printf("%-20s %-14s %-26s %s: %s\n", records[i].model_name, records[i].cluster_name,
                   records[i].strategy_name, record_state_word(records[i].state),
                   records[i].reason ? records[i].reason : "no reason is recorded");
    return failed;
}

static size_t print_table(struct store *store) {
    struct error err;
    struct arena arena = {0};
    struct record *records;
    size_t n_records, n = 0;
    struct record *again;
    size_t n_again;
    if (query_collect(store, &(struct query){.proposer = proposers[0]}, &arena, &n_records, &records, &err) ||
        query_collect(store, &(struct query){.proposer = proposers[1]}, &arena, &n_again, &again, &err))
        fail(&err);
    struct record **rows = arena_alloc(&arena, n_records, sizeof *rows);
    for (size_t i = 0; i < n_records; i++)
        if (records[i].state == RECORD_COMPLETE)
            rows[n++] = &records[i];
    printf("%-20s %-14s %-26s %10s %10s %8s\n", "MODEL", "CLUSTER", "STRATEGY", "PREDICTED", "MEASURED", "ERROR");
    for (size_t i = 0; i < n; i++)
        print_row(rows[i]);
    print_domains(n, rows);
    print_again(n, rows, n_again, again);
    print_kinds(n, rows);
    qsort(rows, n, sizeof *rows, by_error);
    printf("\nThe worst five:\n");
    for (size_t i = 0; i < n && i < 5; i++)
        print_row(rows[i]);
    const size_t failed = print_failed(n_records, records);
    arena_release(&arena);
    return failed;
}

int main(int argc, char **argv) {
    struct error err;
    struct store *store;
    for (; argc > 1 && !strncmp(argv[1], "--", 2); argv++, argc--) {
        if (!strcmp(argv[1], "--sharded"))
            sharded = true;
        else if (!strcmp(argv[1], "--twice"))
            twice = true;
        else
            break;
    }
    if (argc != 2 && argc < 5) {
        fprintf(stderr, "usage: accuracy [--sharded] [--twice] DATASET [TRIALS SEED MODEL=CLUSTER...]\n");
        return 2;
    }
    if (store_open(argv[1], argc > 2 ? STORE_READ_WRITE : STORE_READ_ONLY, &store, &err))
        fail(&err);
    for (int i = 4; i < argc; i++)
        run_pair(store, argv[i], (unsigned)atoi(argv[2]), strtoull(argv[3], NULL, 10));
    const size_t failed = print_table(store);
    store_close(store);
    return failed ? 1 : 0;
}
