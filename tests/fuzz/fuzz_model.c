/* Text into the model reader. What is accepted is written, read and written again without a change, and the plan of its
 * plainest strategy, one all-reduce a dtype, keeps every rule and has a peak of memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/memory.h"
#include "strategy/plan.h"
#include "tests/fuzz/require.h"
#include "tests/unit/strategy/plan_invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_round_trip(const struct model *model) {
    struct model again;
    struct error err = {0};
    cJSON *json = model_write(model);
    char *first = json_canonical(json);
    if (model_read(json, "again", &again, &err) != ST_OK)
        fprintf(stderr, "%s\n", ERROR_TEXT(&err));
    require(!err.status, "what is written can be read");
    cJSON_Delete(json);
    json = model_write(&again);
    char *second = json_canonical(json);
    require(first && second && strcmp(first, second) == 0, "and written again the same");
    require(strcmp(model->id.hex, again.id.hex) == 0, "with the same id");
    cJSON_Delete(json);
    free(first);
    free(second);
    model_release(&again);
}

static void check_lowering(const struct model *model) {
    static const char one_node[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\","
                                   "\"nodes\":[{\"name\":\"n\",\"nic_gbit_per_s\":1}]}";
    struct error err = {0};
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct memory memory;
    cJSON *json = NULL;
    require(!json_parse(one_node, sizeof one_node - 1, "c", &json, &err), "a cluster is JSON");
    require(!cluster_read(json, "c", &cluster, &err), "a cluster is read");
    cJSON_Delete(json);
    require(!strategy_init(&strategy, "s", model, DTYPE_COUNT, &err), "a strategy is made");
    for (uint32_t v = 0; v < model->n_variables; v++)
        strategy.variables[v].group = model->variables[v].dtype;
    strategy.policy = POLICY_priority;
    strategy.cross_iteration = true;
    require(!strategy_seal(&strategy, model, &cluster, &err), "a strategy is sealed");
    require(!plan_lower(model, &cluster, &strategy, &plan, &err), "a strategy is lowered");
    const char *broken = plan_broken(&plan, &strategy);
    require(!broken, broken);
    require(!memory_of_plan(&plan, &memory, &err), "its memory is known");
    require(memory.peak_bytes >= model->bytes, "and holds the variables");
    plan_release(&plan);
    strategy_release(&strategy);
    cluster_release(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct model model = {0};
    cJSON *json = NULL;
    if (json_parse((const char *)data, n, "input", &json, &err) != ST_OK)
        return 0;
    const enum status status = model_read(json, "input", &model, &err);
    cJSON_Delete(json);
    if (status != ST_OK) {
        require(status == ST_INVALID && err.status == status && !strncmp(ERROR_TEXT(&err), "input: ", 7),
                "a refusal says why");
        require(!model.arena.blocks, "nothing is written on failure");
        return 0;
    }
    check_round_trip(&model);
    check_lowering(&model);
    model_release(&model);
    return 0;
}
