/* The NCCL worker: what it says of GPUs, and its network of communicators. */
#include "trial-runner/worker/backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/report.h"

static void add_versions(cJSON *line) {
    char text[32];
    int nccl = 0, cuda = 0;
    ncclGetVersion(&nccl);
    cudaRuntimeGetVersion(&cuda);
    snprintf(text, sizeof text, "%d.%d.%d", nccl / 10000, nccl / 100 % 100, nccl % 100);
    cJSON_AddStringToObject(line, "nccl", text);
    snprintf(text, sizeof text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    cJSON_AddStringToObject(line, "cuda", text);
}

enum status backend_probe(struct error *err) {
    int n;
    enum status status = device_look(&n, err);
    if (status)
        return status;
    cJSON *line = report_event("probe");
    cJSON *gpus = cJSON_AddArrayToObject(line, "gpus");
    add_versions(line);
    for (int i = 0; i < n; i++) {
        struct cudaDeviceProp properties;
        if (cudaGetDeviceProperties(&properties, i) == cudaSuccess)
            cJSON_AddItemToArray(gpus, cJSON_CreateString(properties.name));
    }
    cJSON_AddBoolToObject(line, "mps", device_has_mps());
    report_send(line);
    return ST_OK;
}

enum status backend_open(struct error *err) {
    int n;
    return device_agree(device_look(&n, err), err);
}

static enum status check_message(const struct plan *plan, uint32_t i, struct error *err) {
    const struct message *message = &plan->messages[i];
    if (plan->n_replicas > 0 && message->local_reduction)
        return error_set(err, ST_INFEASIBLE,
                         "message %u is pushed once a node, and beside replicas this worker does not do that; the MPI "
                         "worker does",
                         i);
    if (message->kind == SYNC_ALL_REDUCE && !network_has(message->algorithm))
        return error_set(err, ST_INFEASIBLE, "all-reduce algorithm %s is not in NCCL",
                         algorithm_name(message->algorithm));
    if (!message->encoder && message->bytes % dtype_bytes(message->dtype) != 0)
        return error_set(err, ST_INFEASIBLE, "message %u of %llu bytes is not whole %s elements", i,
                         (unsigned long long)message->bytes, dtype_name(message->dtype));
    return ST_OK;
}

enum status backend_check_plan(const struct plan *plan, struct error *err) {
    enum status status = ST_OK;
    if (!consistency_is_plain(&plan->consistency))
        return error_set(err, ST_INFEASIBLE,
                         "this worker runs no strategy with a \"consistency\"; the MPI worker does");
    for (uint32_t i = 0; i < plan->n_messages && !status; i++)
        status = check_message(plan, i, err);
    return status;
}

enum status backend_join(struct world *world, struct error *err) {
    struct network *network = report_alloc(1, sizeof *network);
    enum status status = network_open(network, world, err);
    if (status)
        free(network);
    return status;
}

void backend_leave(struct world *world) {
    network_close(world->backend);
    free(world->backend);
    world->backend = NULL;
}

void backend_describe(const struct world *world, cJSON *ready) {
    const struct device *device = &network_of(world)->device;
    add_versions(ready);
    cJSON_AddStringToObject(ready, "gpu", device->name);
    cJSON_AddBoolToObject(ready, "shared_gpu", device->shared);
    cJSON_AddBoolToObject(ready, "mps", device_has_mps());
    cJSON_AddNumberToObject(ready, "max_ctas", device->blocks);
}
