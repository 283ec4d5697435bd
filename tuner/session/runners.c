/* runner_init turns options into a launcher, and checks at once that this machine has what the launcher needs. Each
 * trial is then one call of trial_run or job_run. */
#include "tuner/session/runners.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "trial-runner/hosts.h"
#include "trial-runner/lab.h"
#include "trial-runner/slurm.h"

/* A trial may take this many times its expected time, and START_S on top, before it counts as hung. */
static const double PATIENCE = 10, START_S = 60, JOB_START_S = 600;

/* With these, an update's delay of some versions costs softmax regression nothing, and synchronous training comes to
 * the target, a tenth of the way from the first loss to the least, in about 40 iterations of any number of workers. */
static const double LEARNING_STEP = 0.1, LEARNING_MOMENTUM = 0.9, LEARNING_TARGET = 0.1;

static enum status check_lab(const struct cluster *cluster, struct error *err) {
    struct arena arena = {0};
    struct lab_config lab;
    enum status st = launch_lab_of(cluster, &arena, &lab, err);
    if (!st)
        st = lab_validate(&lab, err);
    if (!st)
        st = lab_check(err);
    arena_release(&arena);
    return st;
}

enum status runner_check_hosts(enum launcher_kind place, const char *host_file, const struct cluster *cluster,
                               struct error *err) {
    const bool are_hosts = !host_file && (place == LAUNCHER_MPIRUN || place == LAUNCHER_SLURM);
    enum status st = ST_OK;
    for (uint32_t i = 0; i < cluster->n_nodes && !st && are_hosts; i++)
        st = hosts_check_name(cluster->nodes[i].name, err);
    return st;
}

/* Check that what the runner needs is here. */
static enum status check(const struct launcher *place, const struct cluster *cluster, struct error *err) {
    struct arena arena = {0};
    const char *path, **names;
    char version[64];
    enum status st = launch_worker_path(place, &arena, &path, err);
    if (!st && place->host_file)
        st = hosts_read_file(place->host_file, cluster->n_nodes, &arena, &names, err);
    if (!st)
        st = runner_check_hosts(place->kind, place->host_file, cluster, err);
    if (!st && place->logs)
        st = transcript_check_folder(place->logs, err);
    if (!st && place->kind == LAUNCHER_LAB)
        st = check_lab(cluster, err);
    if (!st && place->kind == LAUNCHER_SLURM)
        st = slurm_check(version, sizeof version, err);
    arena_release(&arena);
    return st;
}

/* Refuse an option that the runner would ignore. */
static enum status refuse_idle(const struct runner_options *options, enum launcher_kind place, struct error *err) {
    const bool remote = place == LAUNCHER_MPIRUN || place == LAUNCHER_SLURM;
    const struct {
        const char *option, *value, *runners;
        bool of_use;
    } particular[] = {{"partition", options->partition, "slurm", place == LAUNCHER_SLURM},
                      {"account", options->account, "slurm", place == LAUNCHER_SLURM},
                      {"launch-options", options->launch_options, "mpirun or slurm", remote},
                      {"pass", options->pass, "mpirun or slurm", remote}};
    for (size_t i = 0; i < sizeof particular / sizeof *particular; i++)
        if (particular[i].value && !particular[i].of_use)
            return error_set(err, ST_USAGE, "--%s is for --runner %s", particular[i].option, particular[i].runners);
    return ST_OK;
}

enum status runner_place(const struct runner_options *options, const struct cluster *cluster, struct launcher *out,
                         struct error *err) {
    struct launcher place = {.share_gpu = options->share_gpu,
                             .logs = options->logs,
                             .partition = options->partition,
                             .account = options->account,
                             .launch_options = options->launch_options,
                             .pass = options->pass};
    if (!launcher_parse(options->runner, &place.kind))
        return error_set(err, ST_USAGE, "--runner: \"%s\" is none of lab, local, mpirun, slurm", options->runner);
    if (place.kind == LAUNCHER_MPIRUN || place.kind == LAUNCHER_SLURM)
        place.host_file = options->hosts;
    enum status st = refuse_idle(options, place.kind, err);
    if (!st)
        st = launcher_choose(&place, options->worker, cluster, err);
    if (!st)
        st = check(&place, cluster, err);
    if (!st)
        *out = place;
    return st;
}

void runner_tell(const struct launcher *place) {
    const bool slurm = place->kind == LAUNCHER_SLURM;
    if (!slurm && place->kind != LAUNCHER_MPIRUN && place->worker == TRIAL_WORKER_MPI)
        return;
    const char *where = "";
    if (slurm)
        where = slurm_allocated() ? ", in this allocation" : ", an allocation of its own for each run";
    log_info("runner %s%s; worker %s%s%s", launcher_name(place->kind), where,
             place->program ? place->program : trial_worker_name(place->worker),
             place->for_gpus ? ", as the cluster's devices are GPUs (--worker mpi for others)" : "",
             place->share_gpu ? ", all ranks on one GPU" : "");
}

enum status runner_init(struct runner *out, const struct runner_options *options, const struct model *model,
                        const struct cluster *cluster, const atomic_int *cancel, struct error *err) {
    struct runner runner = {.model = model, .cluster = cluster, .cancel = cancel};
    enum status st = runner_place(options, cluster, &runner.place, err);
    if (!st)
        *out = runner;
    return st;
}

void runner_init_job(struct runner *out, struct job *job, double limit_s, const struct model *model,
                     const struct cluster *cluster, const atomic_int *cancel) {
    *out = (struct runner){.job = job, .job_limit_s = limit_s, .model = model, .cluster = cluster, .cancel = cancel};
}

struct training_options runner_session_training(const struct cluster *cluster) {
    return (struct training_options){.task = TRAINING_SOFTMAX,
                                     .rate = LEARNING_STEP / fmax(cluster->n_devices, 1),
                                     .momentum = LEARNING_MOMENTUM,
                                     .target = LEARNING_TARGET};
}

enum status runner_check_updates(const struct runner *runner, struct error *err) {
    if (runner->job)
        return error_set(err, ST_INVALID,
                         "a --command sends no whole updates; strategies with a \"consistency\" are run by the MPI "
                         "worker alone");
    if (runner->place.worker != TRIAL_WORKER_MPI)
        return error_set(err, ST_INVALID,
                         "the NCCL worker sends no whole updates; strategies with a \"consistency\" are run by the MPI "
                         "worker alone");
    return ST_OK;
}

enum status runner_check_weather(const struct runner *runner, struct error *err) {
    if (runner->job)
        return error_set(err, ST_INVALID, "weather is played in the lab alone: a --command runs on its own network");
    return trial_check_weather(runner->cluster, &runner->place, err);
}

void runner_release(struct runner *runner) {
    trial_result_release(&runner->last);
}

/* MPI has no double binary trees; of NCCL's algorithms a plan knows the ring and its only tree, the double one. */
uint32_t runner_algorithms(const struct runner *runner) {
    if (runner->job) /* --export-to says what a job cannot do */
        return (1u << ALGORITHM_COUNT) - 1;
    uint32_t set = 1u << ALGORITHM_ring | 1u << ALGORITHM_all_gather;
    if (runner->place.worker == TRIAL_WORKER_NCCL)
        set |= 1u << ALGORITHM_double_tree;
    else
        set |= 1u << ALGORITHM_tree | 1u << ALGORITHM_recursive_doubling | 1u << ALGORITHM_halving_doubling;
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

static double time_limit_s(const struct runner *runner, double expected_s) {
    if (!runner->job)
        return START_S + PATIENCE * expected_s;
    return runner->job_limit_s > 0 ? runner->job_limit_s : JOB_START_S + PATIENCE * expected_s;
}

static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    struct runner *runner = context;
    double expected_s = (double)(order->iterations + order->warmup) * order->expected_us / 1e6;
    const struct trial_request request = {.model = runner->model,
                                          .cluster = runner->cluster,
                                          .strategy = order->strategy,
                                          .launcher = runner->place,
                                          .iterations = (uint32_t)order->iterations,
                                          .warmup = (uint32_t)order->warmup,
                                          .number = order->number,
                                          .time_limit_s = time_limit_s(runner, expected_s),
                                          .stop_if_slower_than_us = order->give_up_us,
                                          .cancel = runner->cancel,
                                          .weather = order->weather,
                                          .training = order->learns ? runner_session_training(runner->cluster)
                                                                    : runner->training,
                                          .on_iteration = runner->on_iteration,
                                          .on_interval = runner->on_interval,
                                          .context = runner->context};
    trial_result_release(&runner->last);
    runner->last = (struct trial_result){0};
    enum status st = runner->job ? job_run(runner->job, &request, order->number, &runner->last, err)
                                 : trial_run(&request, &runner->last, err);
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
    return (struct tune_runner){runner->job ? RUNNER_COMMAND : launcher_name(runner->place.kind), runner, run};
}
