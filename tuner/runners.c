/* See runners.h. */
#include "tuner/runners.h"

#include <string.h>

#include "trial-runner/lab.h"

/* A trial may take this many times its expected time, and START_S on top, before it counts as hung. */
static const double PATIENCE = 10, START_S = 60;

enum status runner_init(struct runner *out, const char *word, const char *hosts, const struct model *model,
                        const struct cluster *cluster, const volatile sig_atomic_t *cancel, struct error *err) {
    struct runner runner = {.model = model, .cluster = cluster, .cancel = cancel};
    if (!trial_runner_parse(word, &runner.place.place))
        return error_set(err, ST_USAGE, "--runner: \"%s\" is none of lab, local, mpirun", word);
    runner.place.host_file = hosts;
    struct arena arena = {0};
    const char *path;
    enum status st = launch_worker_path(&arena, &path, err);
    struct lab_config lab;
    if (!st && runner.place.place == TRIAL_LAB)
        st = launch_lab_of(cluster, &arena, &lab, err);
    if (!st && runner.place.place == TRIAL_LAB)
        st = lab_validate(&lab, err);
    if (!st && runner.place.place == TRIAL_LAB)
        st = lab_check(err);
    arena_release(&arena);
    if (!st)
        *out = runner;
    return st;
}

void runner_release(struct runner *runner) {
    trial_result_release(&runner->last);
}

/* MPI has no double binary trees. */
uint32_t runner_algorithms(const struct runner *runner) {
    uint32_t set = 1u << ALGORITHM_ring | 1u << ALGORITHM_tree | 1u << ALGORITHM_recursive_doubling |
                   1u << ALGORITHM_halving_doubling;
    for (uint32_t i = 0; i < runner->cluster->n_nodes; i++)
        if (runner->cluster->nodes[i].devices > 1)
            return set | 1u << ALGORITHM_hierarchical;
    return set;
}

static enum record_state state_of(enum trial_ending ending) {
    switch (ending) {
    case TRIAL_COMPLETE:
    case TRIAL_STOPPED_EARLY:
        return RECORD_COMPLETE;
    case TRIAL_INFEASIBLE:
        return RECORD_INFEASIBLE;
    case TRIAL_FAILED:
    case TRIAL_CANCELLED:
        break;
    }
    return RECORD_FAILED;
}

static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    struct runner *runner = context;
    double expected_s = (double)(order->iterations + order->warmup) * order->expected_us / 1e6;
    const struct trial_request request = {.model = runner->model,
                                          .cluster = runner->cluster,
                                          .strategy = order->strategy,
                                          .runner = runner->place,
                                          .iterations = (uint32_t)order->iterations,
                                          .warmup = (uint32_t)order->warmup,
                                          .time_limit_s = START_S + PATIENCE * expected_s,
                                          .stop_if_slower_than_us = order->give_up_us,
                                          .cancel = runner->cancel,
                                          .on_iteration = runner->on_iteration,
                                          .on_interval = runner->on_interval,
                                          .context = runner->context};
    trial_result_release(&runner->last);
    runner->last = (struct trial_result){0};
    enum status st = trial_run(&request, &runner->last, err);
    if (st)
        return st;
    if (runner->last.ending == TRIAL_CANCELLED)
        return error_set(err, ST_CANCELLED, "interrupted");
    *out = (struct tune_outcome){.state = state_of(runner->last.ending),
                                 .early = runner->last.ending == TRIAL_STOPPED_EARLY,
                                 .n = runner->last.n,
                                 .iterations_us = runner->last.time_us,
                                 .environment = runner->last.environment,
                                 .reason = runner->last.reason};
    return ST_OK;
}

struct tune_runner runner_for_session(struct runner *runner) {
    return (struct tune_runner){trial_runner_name(runner->place.place), runner, run};
}
