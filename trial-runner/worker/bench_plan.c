/* A model of layers without forward time is read, lowered and run as that of a trial, so that the bench times what
 * trials do. The backward pass takes the layers from the last to the first. */
#include "trial-runner/worker/bench_plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/statistics.h"
#include "strategy/encoder.h"
#include "trial-runner/worker/execute.h"

static void add_layer(cJSON *layers, const char *name, double backward_us, const char *variable) {
    cJSON *layer = cJSON_CreateObject();
    cJSON_AddStringToObject(layer, "name", name);
    cJSON_AddNumberToObject(layer, "forward_us", 0);
    cJSON_AddNumberToObject(layer, "backward_us", backward_us);
    if (variable)
        cJSON_AddItemToObject(layer, "variables", cJSON_CreateStringArray(&variable, 1));
    cJSON_AddItemToArray(layers, layer);
}

/* The first layer, the last of the backward pass, computes; each of the others has a variable. */
static cJSON *model_tree(const struct bench_plan_shape *shape) {
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddStringToObject(tree, "schema", "syncopate.model/1");
    cJSON_AddStringToObject(tree, "name", "bench");
    cJSON_AddNumberToObject(tree, "batch_per_device", 1);
    cJSON *variables = cJSON_AddArrayToObject(tree, "variables"), *layers = cJSON_AddArrayToObject(tree, "layers");
    if (shape->compute_us > 0)
        add_layer(layers, "compute", shape->compute_us, NULL);
    for (uint32_t i = 0; i < shape->messages; i++) {
        char name[32];
        const int length = (int)(shape->bytes / sizeof(float));
        snprintf(name, sizeof name, "v%u", i);
        cJSON *variable = cJSON_CreateObject();
        cJSON_AddStringToObject(variable, "name", name);
        cJSON_AddItemToObject(variable, "shape", cJSON_CreateIntArray(&length, 1));
        cJSON_AddStringToObject(variable, "dtype", dtype_name(DTYPE_f32));
        cJSON_AddItemToArray(variables, variable);
        add_layer(layers, name, 0, name);
    }
    return tree;
}

static enum status make_model(const struct bench_plan_shape *shape, struct model *out, struct error *err) {
    cJSON *tree = model_tree(shape);
    if (!tree)
        return error_no_memory(err);
    enum status status = model_read(tree, "bench model", out, err);
    cJSON_Delete(tree);
    return status;
}

static enum status lower(struct bench_plan *plan, const struct cluster *cluster, const struct bench_plan_shape *shape,
                         struct error *err) {
    struct strategy *strategy = &plan->strategy;
    enum status status = strategy_init(strategy, "bench", &plan->model, plan->model.n_variables, err);
    if (status)
        return status;
    strategy->policy = shape->policy;
    strategy->credit_bytes = shape->credit_bytes;
    for (uint32_t i = 0; i < strategy->n_groups; i++) {
        strategy->groups[i] = (struct group){.id = i, .algorithm = shape->algorithm};
        strategy->variables[i].group = i;
        strategy->variables[i].encoding = shape->encoding;
        if (encoding_is_encoder(shape->encoding))
            strategy->variables[i].figure = encoder_figure(shape->encoding)->usual;
    }
    status = strategy_seal(strategy, &plan->model, cluster, err);
    if (!status)
        status = plan_lower(&plan->model, cluster, strategy, &plan->plan, err);
    if (status)
        strategy_release(strategy);
    return status;
}

enum status bench_plan_init(struct bench_plan *plan, const struct cluster *cluster,
                            const struct bench_plan_shape *shape, struct error *err) {
    *plan = (struct bench_plan){0};
    enum status status = make_model(shape, &plan->model, err);
    if (status)
        return status;
    status = lower(plan, cluster, shape, err);
    if (status)
        model_release(&plan->model);
    return status;
}

void bench_plan_release(struct bench_plan *plan) {
    plan_release(&plan->plan);
    strategy_release(&plan->strategy);
    model_release(&plan->model);
}

enum status bench_plan_time(const struct world *world, const struct bench_plan_shape *shape, uint32_t iterations,
                            double *iteration_us, double *messages_us, struct error *err) {
    const struct execute_options options = {
        .iterations = iterations, .warmup = BENCH_PLAN_WARMUP, .time_messages = messages_us != NULL};
    struct bench_plan plan;
    struct execute_result result;
    enum status status = bench_plan_init(&plan, world->cluster, shape, err);
    if (status)
        return status;
    execute_run(&plan.plan, world, &options, &result);
    *iteration_us = median_of(iterations, result.time_us);
    if (messages_us)
        *messages_us = median_of(iterations, result.messages_us);
    free(result.messages_us);
    free(result.time_us);
    bench_plan_release(&plan);
    return ST_OK;
}
