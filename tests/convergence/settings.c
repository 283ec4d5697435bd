/* For each way to synchronize, the learning rate and momentum of a grid with which it comes to the target in the fewest
 * updates, on average over SEEDS runs that must all arrive: what convergence.py calls a strategy's own setting. The
 * seeds are others than those of the lab's runs. Prints them after some minutes.
 *
 * Workers are emulated: a worker computes (in one iteration of ten SLOW times as long, as in MLfabric's C2), its update
 * passes the server's NIC behind those that came before, and the model comes back. Updates then have delays like those
 * of the lab's runs. Whether updates of mlfabric-a have the same is not asked: it has the setting of bound-4. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "trial-runner/training.h"

enum {
    WORKERS = 4,
    MOST_WEIGHTS = 256,
    SEEDS = 16,
    FIRST_SEED = 1001,
    MOST_UPDATES = 240,
    ANY = 1 << 20,
    MOMENTA = 7,
    RATES = 7,
};
static const double COMPUTE_MS = 73, SLOW = 4, SHARE = 0.1, PUSH_MS = 32, PULL_MS = 32, TARGET = 0.05;
static const double momenta[MOMENTA] = {0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9};

struct way {
    const char *name;
    int together, lead, bound; /* updates in a version; iterations that a worker may be ahead; the largest delay */
};
static const struct way ways[] = {{"ring", WORKERS, 0, ANY},
                                  {"staleness-0", 1, 0, ANY},
                                  {"staleness-2", 1, 2, ANY},
                                  {"bound-4", 1, ANY, 4},
                                  {"asynchronous", 1, ANY, ANY}};

struct worker {
    double ready_ms; /* its update; INFINITY while it waits for its model */
    int ended, version;
    double weights[MOST_WEIGHTS]; /* of that version */
};

struct run {
    const struct training *training;
    const struct way *way;
    double rate, momentum, target;
    uint64_t seed;
    struct rng rng;
    double now_ms;
    struct worker workers[WORKERS];
    double weights[MOST_WEIGHTS], change[MOST_WEIGHTS], sum[MOST_WEIGHTS];
    int applied, version;
};

static void get_model(struct run *r, struct worker *w) {
    w->version = r->version;
    memcpy(w->weights, r->weights, sizeof w->weights);
    w->ready_ms = r->now_ms + PULL_MS + COMPUTE_MS * (rng_uniform(&r->rng) < SHARE ? SLOW : 1);
}

static void release_workers(struct run *r) {
    int least = ANY;
    for (int i = 0; i < WORKERS; i++)
        least = r->workers[i].ended < least ? r->workers[i].ended : least;
    for (int i = 0; i < WORKERS; i++)
        if (isinf(r->workers[i].ready_ms) && r->workers[i].ended <= least + r->way->lead &&
            r->applied % r->way->together == 0)
            get_model(r, &r->workers[i]);
}

/* MLfabric's equation 2, with what was added since the last version. */
static void make_version(struct run *r) {
    for (uint32_t k = 0; k < r->training->n_weights; k++) {
        r->change[k] = r->sum[k] + r->momentum * r->change[k];
        r->weights[k] += r->change[k];
        r->sum[k] = 0;
    }
    r->version++;
}

static void take_update(struct run *r, uint32_t i) {
    struct worker *w = &r->workers[i];
    double change[MOST_WEIGHTS];
    training_change(r->training, r->rate, r->seed, i, (uint32_t)w->ended++, w->weights, change);
    w->ready_ms = INFINITY;
    if (r->version - w->version > r->way->bound)
        return;
    for (uint32_t k = 0; k < r->training->n_weights; k++)
        r->sum[k] += change[k];
    if (++r->applied % r->way->together == 0)
        make_version(r);
}

static uint32_t first_ready(const struct run *r) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < WORKERS; i++)
        first = r->workers[i].ready_ms < r->workers[first].ready_ms ? i : first;
    return first;
}

/* Updates until the target; ANY when it did not get there. */
static int updates_to_target(struct run *r) {
    rng_split(&r->rng, r->seed, 0);
    training_begin(r->training, r->weights);
    for (int i = 0; i < WORKERS; i++)
        get_model(r, &r->workers[i]);
    while (r->applied < MOST_UPDATES) {
        const uint32_t next = first_ready(r);
        r->now_ms = fmax(r->now_ms, r->workers[next].ready_ms) + PUSH_MS;
        take_update(r, next);
        release_workers(r);
        if (r->applied % r->way->together == 0 && training_loss(r->training, 0, NULL, r->weights, NULL) <= r->target)
            return r->applied;
    }
    return ANY;
}

/* Mean over the seeds; INFINITY where some did not get there. */
static double mean_updates(const struct training *t, const struct way *way, double rate, double momentum,
                           double target) {
    double sum = 0;
    for (int s = 0; s < SEEDS; s++) {
        struct run run = {.training = t,
                          .way = way,
                          .rate = rate,
                          .momentum = momentum,
                          .target = target,
                          .seed = (uint64_t)(FIRST_SEED + s)};
        const int updates = updates_to_target(&run);
        if (updates == ANY)
            return INFINITY;
        sum += updates;
    }
    return sum / SEEDS;
}

/* The grid is one of rate / (1 - momentum): how far the weights go in the end by one gradient. */
static void print_best(const struct training *t, const struct way *way, double target) {
    double best = INFINITY, best_rate = 0, best_momentum = 0;
    for (int m = 0; m < MOMENTA; m++)
        for (int i = 0; i < RATES; i++) {
            const double rate = (t->task == TRAINING_SOFTMAX ? 0.6 : 0.2) * (1 - momenta[m]) * pow(1.4, i);
            const double mean = mean_updates(t, way, rate, momenta[m], target);
            if (mean >= best)
                continue;
            best = mean;
            best_rate = rate;
            best_momentum = momenta[m];
        }
    printf("%-10s %-13s rate %-6.2g momentum %-4g %.0f updates\n", training_name(t->task), way->name, best_rate,
           best_momentum, best);
}

int main(void) {
    static const enum training_task tasks[] = {TRAINING_TWO_LAYER, TRAINING_SOFTMAX};
    for (int i = 0; i < 2; i++) {
        struct training training;
        struct error err = {.status = ST_OK};
        double weights[MOST_WEIGHTS], least;
        if (training_init(&training, tasks[i], &err) || training_solve(&training, weights, &least, &err)) {
            fprintf(stderr, "settings: %s\n", err.message);
            return 1;
        }
        training_begin(&training, weights);
        const double first = training_loss(&training, 0, NULL, weights, NULL);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            print_best(&training, &ways[way], least + TARGET * (first - least));
        training_release(&training);
    }
    return 0;
}
