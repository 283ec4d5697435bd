/* See stage.h. */
#include "tests/evaluate/live/stage.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "base/statistics.h"
#include "simulator/bound.h"
#include "tests/evaluate/evaluate.h"
#include "tuner/session/trials.h"

enum { WARMUP = 1 };

static size_t find_domain(const struct examples *corpus, const char *words) {
    char name[64];
    struct error err;
    for (size_t i = 0; i < corpus->n_domains; i++) {
        snprintf(name, sizeof name, "%s-%s", corpus->domains[i].model.name, corpus->domains[i].cluster.name);
        if (!strcmp(name, words))
            return i;
    }
    error_set(&err, ST_NOT_FOUND, "the corpus has no domain %s; give MODEL-CLUSTER by their names", words);
    fail(&err);
}

/* As a session's nearest one would be, had the dataset everything but this domain. */
static struct ranker *train_on_others(const struct examples *corpus, const struct domain *domain) {
    struct ranker_options options = ranker_default_options(RANKER_trees);
    const size_t n = corpus->n - domain->n;
    struct arena scratch = {0};
    struct ranker *ranker;
    struct error err;
    struct ranker_example *others = allocate(&scratch, n, sizeof *others);
    for (size_t i = 0; i < n; i++)
        others[i] = corpus->examples[i < domain->first ? i : i + domain->n];
    options.residual = true;
    check(ranker_train(&options, n, others, &ranker, NULL, &err), &err);
    arena_release(&scratch);
    return ranker;
}

void stage_init(struct stage *stage, const struct examples *corpus, const char *words, struct optuna *optuna,
                const atomic_int *cancel) {
    const size_t place = find_domain(corpus, words);
    const struct domain *domain = &corpus->domains[place];
    struct space_options options = space_default_options();
    struct bound bound;
    struct error err;
    *stage = (struct stage){.domain = domain, .number = place, .optuna = optuna};
    snprintf(stage->words, sizeof stage->words, "%s", words);
    check(runner_init(&stage->runner, &(struct runner_options){.runner = "lab"}, &domain->model, &domain->cluster,
                      cancel, &err),
          &err);
    options.algorithms = runner_algorithms(&stage->runner);
    check(space_init(&stage->space, &domain->model, &domain->cluster, &options, &err), &err);
    check(predictor_init(&stage->predictor, &domain->model, &domain->cluster, &err), &err);
    stage->predictor.brief = true;
    check(bound_iteration(&domain->model, &stage->predictor.cost, LOSSY_none, IN_PARTS_none, &bound, &err), &err);
    stage->bound_us = bound.iteration_us;
    stage->ranker = train_on_others(corpus, domain);
}

void stage_release(struct stage *stage) {
    ranker_free(stage->ranker);
    predictor_release(&stage->predictor);
    space_release(&stage->space);
    runner_release(&stage->runner);
}

static double predicted(struct stage *stage, const struct strategy *strategy) {
    struct prediction p;
    struct error err;
    return predictor_run(&stage->predictor, strategy, &p, &err) ? NAN : p.iteration_us;
}

/* A descriptor that holds the lock until it is closed; -1 without one. */
static int take_lock(const char *path) {
    struct error err;
    if (!path)
        return -1;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    check(file < 0 || flock(file, LOCK_EX) ? error_set(&err, ST_ENVIRONMENT, "%s cannot be locked", path) : ST_OK,
          &err);
    return file;
}

static void record_start(const struct stage *stage, const struct stage_trial *t, double us, int64_t *row) {
    const struct trial_start start = {.model = &stage->domain->model,
                                      .cluster = &stage->domain->cluster,
                                      .strategy = t->strategy,
                                      .proposer = t->method,
                                      .runner = "lab",
                                      .round = t->round,
                                      .seed = t->seed,
                                      .predicted_us = us};
    struct error err;
    if (t->store)
        check(trial_record_start(t->store, &start, row, &err), &err);
}

bool stage_run(struct stage *stage, const struct stage_trial *t, struct stage_result *out) {
    const struct tune_runner runner = runner_for_session(&stage->runner);
    const double us = predicted(stage, t->strategy);
    const double wanted = isfinite(us) ? t->measured_us / us : STAGE_LEAST;
    const struct tune_order order = {.strategy = t->strategy,
                                     .iterations = (uint64_t)fmin(fmax(wanted, STAGE_LEAST), STAGE_MOST),
                                     .warmup = WARMUP,
                                     .expected_us = isfinite(us) ? us : 0,
                                     .give_up_us = t->give_up_us};
    struct tune_outcome outcome = {0};
    struct summary summary = {0};
    struct error err;
    int64_t row;
    record_start(stage, t, us, &row);
    const int lock = take_lock(t->lock);
    const enum status st = runner.run(runner.context, &order, &outcome, &err);
    if (lock >= 0)
        close(lock);
    if (st && t->store)
        (void)store_trial_fail(t->store, row, RECORD_CANCELLED, ERROR_TEXT(&err), &(struct error){0});
    if (st == ST_CANCELLED)
        return false;
    check(st, &err);
    if (t->store)
        check(trial_record_end(t->store, row, &outcome, &err), &err);
    check(summary_of_copy(outcome.n, outcome.iterations_us, &summary, &err), &err);
    const bool complete = outcome.state == RECORD_COMPLETE && outcome.n;
    if (!complete)
        log_info("%s: a trial did not complete: %s", stage->words, outcome.reason);
    *out = (struct stage_result){complete ? summary.median_us : INFINITY, outcome.n};
    return true;
}
