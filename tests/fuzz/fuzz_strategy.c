/* Text into the strategy reader, for one model and cluster that have something of everything: a scalar, a sparse
 * gradient, several dtypes, tied weights, a node without devices. What is accepted is written, read and written again
 * without a change, and its plan keeps every rule. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/plan.h"
#include "tests/fuzz/require.h"
#include "tests/unit/strategy/plan_invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ' is read as ". */
static const char model_text[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[64,3,7]},{'name':'b','shape':[]},"
    "{'name':'e','shape':[1000,16],'sparse_rows':40},{'name':'h','shape':[513],'dtype':'f16'},"
    "{'name':'d','shape':[100],'dtype':'f64'}],"
    "'operators':[{'name':'f','phase':'forward','time_us':1,'reads':['e']},"
    "{'name':'g','phase':'forward','time_us':2,'after':['f'],'reads':['a','b']},"
    "{'name':'h','phase':'forward','time_us':3,'after':['g'],'reads':['e','d']},"
    "{'name':'i','phase':'backward','time_us':4,'after':['h'],'produces':['d','h']},"
    "{'name':'j','phase':'backward','time_us':5,'after':['i'],'produces':['a']},"
    "{'name':'k','phase':'backward','time_us':6,'after':['j'],'produces':['e','b']}]}";
static const char cluster_text[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'devices':2,'nic_gbit_per_s':1,"
    "'device_link_gbyte_per_s':10},{'name':'s','devices':0,'nic_gbit_per_s':1}]}";

static struct model model;
static struct cluster cluster;

static cJSON *parse(const char *text) {
    struct error err = {0};
    cJSON *json = NULL;
    char *copy = strdup(text);
    require(copy != NULL, "memory");
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    require(!json_parse(copy, strlen(copy), "text", &json, &err), ERROR_TEXT(&err));
    free(copy);
    return json;
}

static void read_world(void) {
    struct error err = {0};
    cJSON *m = parse(model_text), *c = parse(cluster_text);
    require(!model_read(m, "model", &model, &err), ERROR_TEXT(&err));
    require(!cluster_read(c, "cluster", &cluster, &err), ERROR_TEXT(&err));
    cJSON_Delete(m);
    cJSON_Delete(c);
}

static void check_round_trip(const struct strategy *strategy) {
    struct strategy again;
    struct error err = {0};
    cJSON *json = strategy_write(strategy, &model, &cluster);
    char *first = json_canonical(json);
    if (strategy_read(json, "again", &model, &cluster, &again, &err) != ST_OK)
        fprintf(stderr, "%s\n", ERROR_TEXT(&err));
    require(!err.status, "what is written can be read");
    cJSON_Delete(json);
    json = strategy_write(&again, &model, &cluster);
    char *second = json_canonical(json);
    require(first && second && strcmp(first, second) == 0, "and written again the same");
    require(strcmp(strategy->id.hex, again.id.hex) == 0, "with the same id");
    cJSON_Delete(json);
    free(first);
    free(second);
    strategy_release(&again);
}

/* The rules are those of one micro-batch. Thousands may have too many messages. */
static void check_lowering(const struct strategy *strategy) {
    struct error err = {0};
    struct plan plan = {0};
    struct strategy one = *strategy;
    one.micro_batches = 1;
    require(!plan_lower(&model, &cluster, &one, &plan, &err), ERROR_TEXT(&err));
    const char *broken = plan_broken(&plan, &one);
    require(!broken, broken);
    const uint32_t n_steps = plan.n_steps;
    const enum status status = plan_relower(&plan, &model, &cluster, strategy, &err);
    require(!status || status == ST_INFEASIBLE, ERROR_TEXT(&err));
    require(status || plan.n_steps == n_steps * strategy->micro_batches, "every micro-batch has all steps");
    plan_release(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct strategy strategy = {0};
    cJSON *json = NULL;
    if (!model.n_variables)
        read_world();
    if (json_parse((const char *)data, n, "input", &json, &err) != ST_OK)
        return 0;
    const enum status status = strategy_read(json, "input", &model, &cluster, &strategy, &err);
    cJSON_Delete(json);
    if (status != ST_OK) {
        require(status == ST_INVALID && err.status == status && !strncmp(ERROR_TEXT(&err), "input: ", 7),
                "a refusal says why");
        require(!strategy.arena.blocks, "nothing is written on failure");
        return 0;
    }
    check_round_trip(&strategy);
    check_lowering(&strategy);
    strategy_release(&strategy);
    return 0;
}
