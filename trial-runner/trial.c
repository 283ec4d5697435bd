/* The plan is lowered here only to know which nodes serve, and to refuse what cannot run before anything starts. */
#include "trial-runner/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/statistics.h"
#include "trial-runner/scratch.h"

struct trial {
    const struct trial_request *request;
    struct trial_result result;
    uint32_t slower; /* iterations over the bound so far; all of them when it equals n */
    bool done, told; /* told: the worker gave the reason itself */
};

static double number(const cJSON *line, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void keep_environment(struct trial *trial, const cJSON *line) {
    cJSON *copy = cJSON_Duplicate(line, true);
    cJSON_DeleteItemFromObject(copy, "event");
    cJSON_AddStringToObject(copy, "runner", launcher_name(trial->request->launcher.kind));
    if (trial->request->weather)
        cJSON_AddNumberToObject(copy, "weather", (double)trial->request->weather);
    free(trial->result.environment);
    trial->result.environment = copy ? json_line(copy) : NULL;
    cJSON_Delete(copy);
}

static bool end_with(struct trial *trial, enum trial_ending ending, const char *reason) {
    trial->told = true;
    trial->result.ending = ending;
    snprintf(trial->result.reason, sizeof trial->result.reason, "%s", reason ? reason : "the worker gave no reason");
    return false;
}

/* A replica that takes over tells again what the server may have told. */
static bool take_iteration(struct trial *trial, double index, double time_us) {
    const struct trial_request *request = trial->request;
    struct trial_result *result = &trial->result;
    if (result->n == request->iterations || index < result->n)
        return true;
    result->time_us[result->n++] = time_us;
    if (request->on_iteration)
        request->on_iteration(request->context, result->n - 1, time_us);
    const double bound = request->stop_if_slower_than_us;
    trial->slower += bound > 0 && time_us > bound;
    if (trial->slower < TRIAL_HOPELESS_AFTER || trial->slower < result->n || result->n == request->iterations)
        return true;
    char reason[128];
    snprintf(reason, sizeof reason, "%u iterations, all slower than %.0f us", result->n, bound);
    return end_with(trial, TRIAL_STOPPED_EARLY, reason);
}

static void take_interval(struct trial *trial, const char *what, const cJSON *line) {
    const struct trial_request *request = trial->request;
    const struct trial_interval interval = {.message = strcmp(what, "message") == 0,
                                            .iteration = (uint32_t)number(line, "iteration"),
                                            .index = (uint32_t)number(line, what),
                                            .start_us = number(line, "start_us"),
                                            .sum_us = number(line, "sum_us"),
                                            .pull_us = number(line, "pull_us"),
                                            .end_us = number(line, "end_us")};
    if (request->on_interval)
        request->on_interval(request->context, &interval);
}

/* Where a rank may die without the others, MPI_Finalize or mpirun may wait for it when all is said. */
static bool is_over(struct trial *trial) {
    if (!trial->request->strategy->consistency.replicated || !trial->done)
        return false;
    if (trial->result.n < trial->request->iterations)
        return false;
    if (trial->request->training.task != TRAINING_NONE && !trial->result.training.given)
        return false;
    end_with(trial, TRIAL_COMPLETE, "");
    return true;
}

static bool take_event(void *context, const char *event, const cJSON *line) {
    struct trial *trial = context;
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "reason"));
    if (strcmp(event, "ready") == 0)
        keep_environment(trial, line);
    else if (strcmp(event, "iteration") == 0)
        return take_iteration(trial, number(line, "index"), number(line, "time_us"));
    else if (strcmp(event, "step") == 0 || strcmp(event, "message") == 0)
        take_interval(trial, event, line);
    else if (strcmp(event, "error") == 0)
        return end_with(trial, TRIAL_FAILED, reason);
    else if (strcmp(event, "infeasible") == 0)
        return end_with(trial, TRIAL_INFEASIBLE, reason);
    else if (strcmp(event, "done") == 0) {
        trial->done = true;
        trial->result.checked = (uint64_t)number(line, "checked");
        trial->result.buffers_bytes = (uint64_t)number(line, "buffers_bytes");
        trial->result.grown_bytes = (uint64_t)number(line, "grown_bytes");
    } else if (trial->result.updates)
        trial_updates_take(trial->result.updates, event, line);
    trial_training_take(&trial->result.training, event, line);
    return !is_over(trial);
}

enum status trial_find_median(struct trial_result *result, struct error *err) {
    uint32_t n = result->n;
    if (n == 0)
        return ST_OK;
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return error_no_memory(err);
    memcpy(sorted, result->time_us, n * sizeof *sorted);
    result->median_us = median_of(n, sorted);
    free(sorted);
    return ST_OK;
}

/* Say how the trial ended by the end of the processes, where the worker said nothing itself. */
static void judge(struct trial *trial, const struct launch_result *launch) {
    struct error why = {.status = ST_OK};
    trial->result.wall_s = launch->process.wall_s;
    if (trial->told) {
        if (trial->result.ending == TRIAL_FAILED)
            launch_name_log(launch, trial->result.reason, sizeof trial->result.reason);
        return;
    }
    enum status status = launch_judge(launch, "the trial", &why);
    if (status == ST_CANCELLED)
        end_with(trial, TRIAL_CANCELLED, ERROR_TEXT(&why));
    else if (status)
        end_with(trial, TRIAL_FAILED, ERROR_TEXT(&why));
    else if (!trial->done || trial->result.n != trial->request->iterations)
        end_with(trial, TRIAL_FAILED, "the workers ended before the last iteration");
    else if (trial->request->training.task != TRAINING_NONE && !trial->result.training.given)
        end_with(trial, TRIAL_FAILED, "the server died before it told what the workers learned");
}

/* The paths of the files that the workers read. */
struct inputs {
    char model[SCRATCH_FILE], cluster[SCRATCH_FILE], strategy[SCRATCH_FILE];
};

/* The worker's command line. */
struct arguments {
    const char *words[32];
    size_t n;
    char iterations[16], warmup[16], weather[32], rate[32], momentum[32], target[32];
};

static void say(struct arguments *a, const char *option, const char *value) {
    a->words[a->n++] = option;
    if (value)
        a->words[a->n++] = value;
}

static void list_arguments(struct arguments *a, const struct trial_request *request, const struct inputs *inputs) {
    const struct training_options *training = &request->training;
    *a = (struct arguments){0};
    snprintf(a->weather, sizeof a->weather, "%llu", (unsigned long long)request->weather);
    snprintf(a->iterations, sizeof a->iterations, "%u", request->iterations);
    snprintf(a->warmup, sizeof a->warmup, "%u", request->warmup);
    snprintf(a->rate, sizeof a->rate, "%.17g", training->rate);
    snprintf(a->momentum, sizeof a->momentum, "%.17g", training->momentum);
    snprintf(a->target, sizeof a->target, "%.17g", training->target);
    say(a, "run", NULL);
    say(a, "--model", inputs->model);
    say(a, "--cluster", inputs->cluster);
    say(a, "--strategy", inputs->strategy);
    say(a, "--iterations", a->iterations);
    say(a, "--warmup", a->warmup);
    say(a, "--verify", NULL);
    say(a, "--fault", request->fault ? request->fault : "none");
    if (request->weather)
        say(a, "--weather", a->weather);
    if (request->on_interval)
        say(a, "--trace", NULL);
    if (training->task == TRAINING_NONE)
        return;
    say(a, "--train", training_name(training->task));
    say(a, "--rate", a->rate);
    say(a, "--momentum", a->momentum);
    say(a, "--target", a->target);
}

static enum status launch(struct trial *trial, const struct inputs *inputs, const bool *serves, struct error *err) {
    const struct trial_request *request = trial->request;
    struct arguments arguments;
    list_arguments(&arguments, request, inputs);
    const struct launch_options launch = {.cluster = request->cluster,
                                          .serves = serves,
                                          .launcher = &request->launcher,
                                          .arguments = arguments.words,
                                          .weather = request->weather,
                                          .survives = request->strategy->consistency.replicated,
                                          .title = request->strategy->name,
                                          .number = request->number,
                                          .time_limit_s = request->time_limit_s,
                                          .cancel = request->cancel,
                                          .on_event = take_event,
                                          .context = trial};
    struct launch_result result;
    enum status status = launch_workers(&launch, &result, err);
    if (status)
        return status;
    judge(trial, &result);
    return trial_find_median(&trial->result, err);
}

static enum status write_and_run(struct trial *trial, const bool *serves, struct error *err) {
    const struct trial_request *q = trial->request;
    struct scratch scratch;
    struct inputs inputs;
    enum status status = scratch_init(&scratch, launch_scratch_parent(&q->launcher), err);
    if (status)
        return status;
    status = scratch_write(&scratch, "model.json", model_write(q->model), inputs.model, err);
    if (!status)
        status = scratch_write(&scratch, "cluster.json", cluster_write(q->cluster), inputs.cluster, err);
    if (!status)
        status = scratch_write(&scratch, "strategy.json", strategy_write(q->strategy, q->model, q->cluster),
                               inputs.strategy, err);
    if (!status)
        status = launch(trial, &inputs, serves, err);
    scratch_release(&scratch);
    return status;
}

/* The MPI worker alone trains and runs updates. No timeline of device 0 shows updates. */
static enum status check_consistency(const struct trial_request *request, struct error *err) {
    const struct consistency *c = &request->strategy->consistency;
    if (request->training.task != TRAINING_NONE && request->launcher.worker != TRIAL_WORKER_MPI)
        return error_set(err, ST_INVALID, "%s is learned by the MPI worker alone",
                         training_name(request->training.task));
    if (consistency_is_plain(c))
        return ST_OK;
    if (request->launcher.worker != TRIAL_WORKER_MPI)
        return error_set(err, ST_INVALID, "%s has a \"consistency\" (%s), which the MPI worker alone runs",
                         request->strategy->name, consistency_name(c->kind));
    if (request->on_interval)
        return error_set(err, ST_INVALID, "%s has a \"consistency\" (%s), whose trials are not traced",
                         request->strategy->name, consistency_name(c->kind));
    return ST_OK;
}

/* The bound holds for the momentum that it was worked out for. */
static bool learns_with_another_momentum(const struct trial_request *request) {
    return request->training.task != TRAINING_NONE &&
           fabs(request->training.momentum - request->strategy->consistency.momentum) > 1e-9;
}

/* A rank is a server, a replica or a relay; the replica follows one message, and gets copies from workers alone. */
static enum status check_replica(const struct trial_request *request, const struct plan *plan, struct error *err) {
    const struct consistency *c = &request->strategy->consistency;
    const char *name = c->replicated ? request->cluster->nodes[c->replica].name : "";
    bool aggregates = false;
    for (uint32_t i = 0; i < c->aggregators.n; i++)
        aggregates = aggregates || c->aggregators.nodes[i] == c->replica;
    const char *what = !c->replicated                           ? NULL
                       : plan->messages[0].server == c->replica ? "it is the server's node"
                       : aggregates                             ? "it is an aggregator"
                       : c->replica_aggregators.n > 0           ? "it has aggregators"
                       : c->distributors > 0                    ? "distributors pass models on"
                       : learns_with_another_momentum(request)  ? "its \"momentum\" is not the one of --momentum"
                       : plan->n_messages > 1                   ? "variables have several types"
                                                                : NULL;
    if (what)
        return error_set(err, ST_INVALID, "trials do not run %s with the replica \"%s\": %s", request->strategy->name,
                         name, what);
    return ST_OK;
}

/* Which nodes need a server's rank: [n_nodes], malloc'd. */
static enum status find_servers(const struct trial_request *request, bool **out, struct error *err) {
    const uint32_t n = request->cluster->n_nodes;
    struct plan plan;
    enum status status = check_consistency(request, err);
    if (!status)
        status = plan_lower(request->model, request->cluster, request->strategy, &plan, err);
    if (status)
        return status;
    status = training_place(request->training.task, &plan, &(uint32_t){0}, err);
    if (!status)
        status = check_replica(request, &plan, err);
    bool *serves = status ? NULL : calloc(n, sizeof *serves);
    for (uint32_t i = 0; serves && i < n; i++)
        serves[i] = plan_needs_server(&plan, i);
    plan_release(&plan);
    *out = serves;
    return status || serves ? status : error_no_memory(err);
}

enum status trial_check_weather(const struct cluster *cluster, const struct launcher *launcher, struct error *err) {
    if (launcher->kind != LAUNCHER_LAB || launcher->worker != TRIAL_WORKER_MPI)
        return error_set(err, ST_INVALID, "weather is played in the lab alone, with the MPI worker");
    if (cluster->n_links > 0)
        return error_set(err, ST_INVALID, "the lab plays no weather where \"links\" have rates of their own");
    return ST_OK;
}

/* Room for what the trial will tell. */
static enum status prepare_result(const struct trial_request *request, struct trial_result *out, struct error *err) {
    const bool updates = !consistency_is_plain(&request->strategy->consistency);
    out->time_us = calloc(request->iterations ? request->iterations : 1, sizeof(double));
    out->updates = updates ? trial_updates_new(request->cluster->n_devices) : NULL;
    return out->time_us && (out->updates || !updates) ? ST_OK : error_no_memory(err);
}

/* What updates did and workers learned is recorded with the environment, as the weather is. */
static enum status keep_findings(struct trial *trial, struct error *err) {
    const struct trial_request *q = trial->request;
    struct trial_result *result = &trial->result;
    const double applied = (double)(q->warmup + q->iterations) * q->cluster->n_devices;
    const bool updates = result->updates && result->updates->useful > 0;
    if (!result->environment || (!updates && !result->training.given))
        return ST_OK;
    cJSON *json = cJSON_Parse(result->environment);
    const bool took_over = updates && result->updates->takeover.given;
    const bool ok = json && (!updates || trial_updates_write(result->updates, json)) &&
                    (!took_over || trial_takeover_write(&result->updates->takeover, json)) &&
                    (!result->training.given || trial_training_write(&result->training, &q->training, applied, json));
    char *text = ok ? json_line(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    free(result->environment);
    result->environment = text;
    return ST_OK;
}

enum status trial_run(const struct trial_request *request, struct trial_result *out, struct error *err) {
    struct trial trial = {.request = request};
    struct error why = {.status = ST_OK};
    bool *serves = NULL;
    enum status status = request->weather ? trial_check_weather(request->cluster, &request->launcher, err) : ST_OK;
    if (status)
        return status;
    status = find_servers(request, &serves, &why);
    if (status == ST_INFEASIBLE) {
        end_with(&trial, TRIAL_INFEASIBLE, ERROR_TEXT(&why));
        *out = trial.result;
        return ST_OK;
    }
    if (status)
        return error_pass(err, &why);
    status = prepare_result(request, &trial.result, err);
    if (!status)
        status = write_and_run(&trial, serves, err);
    if (!status)
        status = keep_findings(&trial, err);
    free(serves);
    if (status) {
        trial_result_release(&trial.result);
        return status;
    }
    *out = trial.result;
    return ST_OK;
}

void trial_result_release(struct trial_result *result) {
    free(result->time_us);
    free(result->environment);
    trial_updates_free(result->updates);
    *result = (struct trial_result){0};
}
