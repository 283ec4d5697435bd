/* Memory of model states as others published it: what parameters, gradients and the optimizer take at the peak, of a
 * model of layers that are small beside the whole, on 64 devices. */
#include <stdio.h>
#include <stdlib.h>

#include "strategy/baselines/baselines.h"
#include "strategy/memory.h"
#include "tests/support/check.h"
#include "tests/unit/strategy/descriptions.h"

enum { LAYERS = 500, ROOM = 128 };
#define CLUSTER                                                                                                        \
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':8,'devices':8,'nic_gbit_per_s':100,"      \
    "'device_link_gbyte_per_s':100}]}"

/* 7.5 * 10^9 parameters, the model of ZeRO's figure 1. */
static void read_model(const char *dtype, const char *optimizer, struct model *out) {
    struct error err = {0};
    char *text = malloc((size_t)2 * LAYERS * ROOM);
    assert_non_null(text);
    int n = sprintf(text, "{'schema':'syncopate.model/1','name':'m','optimizer':%s,'variables':[", optimizer);
    for (int i = 0; i < LAYERS; i++)
        n += sprintf(text + n, "%s{'name':'w%d','shape':[15000000],'dtype':'%s'}", i ? "," : "", i, dtype);
    n += sprintf(text + n, "],'layers':[");
    for (int i = 0; i < LAYERS; i++)
        n += sprintf(text + n, "%s{'name':'l%d','forward_us':1,'backward_us':1,'variables':['w%d']}", i ? "," : "", i,
                     i);
    sprintf(text + n, "]}");
    assert_ok(quoted_model(text, out, &err));
    free(text);
}

/* In 10^9 bytes. */
static double states(const struct model *model, const char *baseline) {
    struct error err = {0};
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct memory memory;
    assert_ok(quoted_cluster(CLUSTER, &cluster, &err));
    assert_ok(baselines_build(baselines_find(baseline), model, &cluster, &strategy, &err));
    assert_ok(plan_lower(model, &cluster, &strategy, &plan, &err));
    assert_ok(memory_of_plan(&plan, &memory, &err));
    const uint64_t *bytes = memory.part_bytes;
    const uint64_t sum = bytes[MEMORY_parameters] + bytes[MEMORY_gradients] + bytes[MEMORY_optimizer];
    plan_release(&plan);
    strategy_release(&strategy);
    cluster_release(&cluster);
    return (double)sum / 1e9;
}

/* Rajbhandari et al., arXiv:1910.02054, figure 1: 2 + 2 + 12 bytes a parameter; 120 GB, 31.4 GB, 16.6 GB, 1.9 GB.
 * Of ZeRO-2 ours has the gradients of the last bucket too, which are still to be packed. Buckets are no states. */
static void states_are_those_of_zeros_figure_1(void **state) {
    (void)state;
    struct model model;
    read_model("bf16", "{'name':'adam','master_copy':true}", &model);
    assert_close(states(&model, "pytorch-ddp"), 120, 0.05);
    assert_close(states(&model, "zero-1"), 31.4, 0.05);
    assert_close(states(&model, "zero-2"), 16.6 + 0.8, 0.05);
    assert_close(states(&model, "zero-3"), 1.9, 0.05);
    model_release(&model);
}

/* Megatron Core's guide, "Distributed Optimizer": 16 bytes a parameter where parameters and gradients are f32, and 8 +
 * 8/d with the optimizer distributed over d ranks. */
static void states_are_those_of_megatrons_table(void **state) {
    (void)state;
    struct model model;
    read_model("f32", "'adam'", &model);
    assert_close(states(&model, "pytorch-ddp"), 7.5 * 16, 1e-3);
    assert_close(states(&model, "megatron-distributed-optimizer"), 7.5 * (8 + 8 / 64.0), 1e-3);
    model_release(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_zeros_figure_1),
        cmocka_unit_test(states_are_those_of_megatrons_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
