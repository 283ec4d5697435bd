/* Each measurement line of the worker, without its member "event", becomes an entry of the description. */
#include "trial-runner/bench.h"

#include <stdio.h>
#include <string.h>

#include "trial-runner/scratch.h"

struct bench {
    const struct bench_options *options;
    cJSON *measurements, *runtime;
    struct bench_agreement agreement;
    struct shares_rounds rounds;
    struct shares shares;
    bool done, no_memory;
    struct error reported; /* what the worker gave as reason, if it did */
};

static cJSON *without_event(struct bench *bench, const cJSON *line) {
    cJSON *copy = cJSON_Duplicate(line, true);
    bench->no_memory |= !copy;
    cJSON_DeleteItemFromObject(copy, "event");
    return copy;
}

static void tell(const struct bench *bench, const cJSON *line) {
    char what[96];
    const char *operation = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "operation"));
    const char *algorithm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "algorithm"));
    const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(line, "bytes");
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(line, "time_us");
    if (!bench->options->on_measurement || !operation || !bytes || !time)
        return;
    snprintf(what, sizeof what, "%s%s%s%s", operation, algorithm ? " " : "", algorithm ? algorithm : "",
             cJSON_HasObjectItem(line, "part") ? " beside computing" : "");
    bench->options->on_measurement(bench->options->context, what, (uint64_t)bytes->valuedouble, time->valuedouble);
}

static double number(const cJSON *line, const char *name) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, name);
    return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble < UINT32_MAX ? value->valuedouble : 0;
}

static bool take_event(void *context, const char *event, const cJSON *line) {
    struct bench *bench = context;
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "reason"));
    if (strcmp(event, "point") == 0) {
        tell(bench, line);
    } else if (strcmp(event, "interference") == 0) {
        tell(bench, line);
        shares_add(&bench->rounds, line);
    } else if (strcmp(event, "agreement") == 0) {
        bench->agreement = (struct bench_agreement){
            .points = (uint32_t)number(line, "points"),
            .redone = (uint32_t)number(line, "redone"),
            .unsettled = (uint32_t)number(line, "unsettled"),
            .difference = number(line, "difference"),
        };
    } else if (strcmp(event, "measurement") == 0) {
        cJSON_AddItemToArray(bench->measurements, without_event(bench, line));
    } else if (strcmp(event, "runtime") == 0) {
        cJSON_Delete(bench->runtime);
        bench->runtime = without_event(bench, line);
    } else if (strcmp(event, "done") == 0) {
        bench->done = true;
    } else if (reason) {
        error_set(&bench->reported, ST_TRIAL, "%s", reason);
    }
    return !bench->no_memory && !reason;
}

static enum status judge(const struct bench *bench, const struct cluster *cluster, double limit_s,
                         const struct launch_result *launch, struct error *err) {
    if (bench->no_memory)
        return error_no_memory(err);
    if (bench->reported.status)
        return error_pass(err, &bench->reported);
    enum status status = launch_judge(launch, "the measurement", err);
    if (!status && (!bench->done || !bench->runtime))
        return error_set(err, ST_TRIAL, "the workers ended before the last measurement");
    if (!status && cluster->n_devices > 1 && cJSON_GetArraySize(bench->measurements) == 0)
        return error_set(err, ST_TRIAL, "not one message was timed in %.3g s; give the bench longer", limit_s);
    return status;
}

static enum status launch(struct bench *bench, const struct cluster *cluster, const char *path, struct error *err) {
    enum { START_AND_END_S = 60 };
    const struct bench_options *options = bench->options;
    const double limit_s = options->time_limit_s > 0 ? options->time_limit_s : 40;
    char max_bytes[32], limit[32];
    snprintf(max_bytes, sizeof max_bytes, "%llu",
             (unsigned long long)(options->max_bytes ? options->max_bytes : UINT64_C(16) << 20));
    snprintf(limit, sizeof limit, "%.3f", limit_s);
    const char *const arguments[] = {"bench", "--cluster", path, "--max-bytes", max_bytes, "--time-limit", limit, NULL};
    const struct launch_options launch = {.cluster = cluster,
                                          .launcher = &options->launcher,
                                          .arguments = arguments,
                                          .title = "bench",
                                          .time_limit_s = limit_s + START_AND_END_S,
                                          .cancel = options->cancel,
                                          .on_event = take_event,
                                          .context = bench};
    struct launch_result result;
    enum status status = launch_workers(&launch, &result, err);
    return status ? status : judge(bench, cluster, limit_s, &result, err);
}

static enum status write_and_launch(struct bench *bench, const struct cluster *cluster, struct error *err) {
    struct scratch scratch;
    char path[SCRATCH_FILE];
    enum status status = scratch_init(&scratch, launch_scratch_parent(&bench->options->launcher), err);
    if (status)
        return status;
    status = scratch_write(&scratch, "cluster.json", cluster_write(cluster), path, err);
    if (!status)
        status = launch(bench, cluster, path, err);
    scratch_release(&scratch);
    return status;
}

enum transport bench_transport(const struct launcher *launcher) {
    return launcher->worker == TRIAL_WORKER_NCCL ? TRANSPORT_nccl : TRANSPORT_mpi;
}

/* What is not measured shall be typical of what did the measuring. */
static bool name_transport(const struct bench *bench, cJSON *cluster) {
    const enum transport transport = bench_transport(&bench->options->launcher);
    cJSON_DeleteItemFromObjectCaseSensitive(cluster, "transport");
    return cJSON_AddStringToObject(cluster, "transport", transport_name(transport)) != NULL;
}

/* Put the measurements, the runtime, the shares and the transport into a copy of the description, which takes them. */
static enum status merge(struct bench *bench, const cJSON *json, const char *name, cJSON **out, struct error *err) {
    cJSON *copy = cJSON_Duplicate(json, true);
    if (!copy)
        return error_no_memory(err);
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "measurements");
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "runtime");
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "interference");
    cJSON_AddItemToObject(copy, "measurements", bench->measurements);
    cJSON_AddItemToObject(copy, "runtime", bench->runtime);
    bench->measurements = bench->runtime = NULL;
    bench->shares = shares_fit(&bench->rounds);
    struct cluster check;
    enum status status =
        shares_write(&bench->shares, copy) && name_transport(bench, copy) ? ST_OK : error_no_memory(err);
    if (!status)
        status = cluster_read(copy, name, &check, err);
    if (status) {
        cJSON_Delete(copy);
        return status;
    }
    cluster_release(&check);
    *out = copy;
    return ST_OK;
}

enum status bench_run(const cJSON *json, const char *name, const struct bench_options *options, cJSON **out,
                      struct bench_findings *findings, struct error *err) {
    struct cluster cluster;
    enum status status = cluster_read(json, name, &cluster, err);
    if (status)
        return status;
    struct bench bench = {.options = options, .measurements = cJSON_CreateArray()};
    status = bench.measurements ? write_and_launch(&bench, &cluster, err) : error_no_memory(err);
    if (!status)
        status = merge(&bench, json, name, out, err);
    if (findings)
        *findings = (struct bench_findings){.agreement = bench.agreement, .shares = bench.shares};
    cJSON_Delete(bench.measurements);
    cJSON_Delete(bench.runtime);
    cluster_release(&cluster);
    return status;
}
