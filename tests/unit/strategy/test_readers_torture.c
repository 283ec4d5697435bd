/* Every allocation of reading, writing, copying and lowering descriptions fails once. */
#include <stdlib.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/memory.h"
#include "strategy/model.h"
#include "strategy/plan.h"
#include "strategy/strategy.h"
#include "tests/support/check.h"
#include "tests/support/torture.h"
#include "tests/unit/strategy/descriptions.h"

static const char operators[] =
    "{'schema':'syncopate.model/"
    "1','name':'m','optimizer':{'name':'adam','master_copy':true},'variables':[{'name':'a','shape':[6,4]},{'name':'b','"
    "shape':[8]}],"
    "'operators':[{'name':'f','phase':'forward','time_us':1,'reads':['a','b'],'activation_bytes':9,'kept_for':'g'},"
    "{'name':'g','phase':'backward','time_us':2,'after':['f'],'produces':['b','a']}]}";
static const char layers[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[6,4]},{'name':'b','shape':[8]}],"
    "'layers':[{'name':'x','forward_us':1,'backward_us':2,'variables':['a']},"
    "{'name':'y','forward_us':1,'backward_us':2,'variables':['b']}]}";
static const char cluster[] =
    "{'schema':'syncopate.cluster/"
    "1','name':'c','nodes':[{'name':'n','count':2,'nic_gbit_per_s':1,'device_memory_gbyte':8,'memory_gbyte':9}],"
    "'links':[{'from':'n1','to':'n2','gbit_per_s':2}],'collectives':{'all_reduce':{'startup_us':1,'per_byte_ns':1}},"
    "'measurements':[{'operation':'push','bytes':1,'time_us':1}],'runtime':{'push_us':1},"
    "'variability':{'network':{'every_us':5,'rates':[{'gbit_per_s':1,'share':1}]},'background':{'until_us':10000,"
    "'flows':[{'at_us':0,'from':'n1','to':'n2','mbytes':1,'gbit_per_s':1}]}}}";
static const char strategy[] =
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'priority'},'groups':[{'id':1}],'variables':["
    "{'name':'b','sync':{'kind':'all_reduce','group':1}},{'name':'a','partition':{'shards':2},"
    "'sync':{'kind':'parameter_server','servers':['n1','n2']}}]}";
static const char sliced[] =
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'preemptive','slices':[{'group':1,'bytes':32},"
    "{'group':2,'bytes':96}]},'groups':[{'id':1},{'id':2}],'variables':["
    "{'name':'b','sync':{'kind':'all_reduce','group':1}},{'name':'a','sync':{'kind':'all_reduce','group':2}}]}";

static const char sharded[] =
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo','forward_prefetch':2},'groups':["
    "{'id':1,'sharded':'parameters'},{'id':2,'sharded':'parameters','reshard_after_forward':false}],'variables':["
    "{'name':'b','sync':{'kind':'all_reduce','group':1}},{'name':'a','sync':{'kind':'all_reduce','group':2}}]}";

/* The parsed descriptions, so that parsing itself is not tortured again. */
struct texts {
    cJSON *operators, *layers, *cluster, *strategy, *sliced, *sharded;
    struct model model;
    struct cluster cluster_read;
    struct strategy strategy_read, sliced_read, sharded_read;
};
static struct texts texts;

static int parse_all(void **state) {
    struct error err = {0};
    assert_ok(parse_quoted(operators, "operators", &texts.operators, &err));
    assert_ok(parse_quoted(layers, "layers", &texts.layers, &err));
    assert_ok(parse_quoted(cluster, "cluster", &texts.cluster, &err));
    assert_ok(parse_quoted(strategy, "strategy", &texts.strategy, &err));
    assert_ok(model_read(texts.operators, "operators", &texts.model, &err));
    assert_ok(cluster_read(texts.cluster, "cluster", &texts.cluster_read, &err));
    assert_ok(strategy_read(texts.strategy, "strategy", &texts.model, &texts.cluster_read, &texts.strategy_read, &err));
    assert_ok(parse_quoted(sliced, "sliced", &texts.sliced, &err));
    assert_ok(strategy_read(texts.sliced, "sliced", &texts.model, &texts.cluster_read, &texts.sliced_read, &err));
    assert_ok(parse_quoted(sharded, "sharded", &texts.sharded, &err));
    assert_ok(strategy_read(texts.sharded, "sharded", &texts.model, &texts.cluster_read, &texts.sharded_read, &err));
    *state = NULL;
    return 0;
}

static int delete_all(void **state) {
    (void)state;
    cJSON_Delete(texts.operators);
    cJSON_Delete(texts.layers);
    cJSON_Delete(texts.cluster);
    cJSON_Delete(texts.strategy);
    cJSON_Delete(texts.sliced);
    cJSON_Delete(texts.sharded);
    strategy_release(&texts.sharded_read);
    strategy_release(&texts.sliced_read);
    strategy_release(&texts.strategy_read);
    cluster_release(&texts.cluster_read);
    model_release(&texts.model);
    return 0;
}

static enum status read_model(void *json, struct error *err) {
    struct model m = {0};
    enum status st = model_read(json, "m", &m, err);
    if (st && m.arena.blocks)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    model_release(&m);
    return st;
}

static enum status read_cluster(void *json, struct error *err) {
    struct cluster c = {0};
    enum status st = cluster_read(json, "c", &c, err);
    if (st && c.arena.blocks)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    cluster_release(&c);
    return st;
}

static enum status read_strategy(void *json, struct error *err) {
    struct strategy s = {0};
    enum status st = strategy_read(json, "s", &texts.model, &texts.cluster_read, &s, err);
    if (st && s.arena.blocks)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    strategy_release(&s);
    return st;
}

static enum status copy_strategy(void *from, struct error *err) {
    struct strategy s = {0};
    enum status st = strategy_copy(from, "copy", &s, err);
    strategy_release(&s);
    return st;
}

static enum status lower(void *from, struct error *err) {
    struct plan p = {0};
    enum status st = plan_lower(&texts.model, &texts.cluster_read, from, &p, err);
    if (st && p.arena.blocks)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    plan_release(&p);
    return st;
}

/* A plan whose relowering failed can be lowered again at once. */
static enum status lower_twice(void *from, struct error *err) {
    struct plan p = {0};
    enum status st = plan_relower(&p, &texts.model, &texts.cluster_read, from, err);
    if (st == ST_OK)
        st = plan_relower(&p, &texts.model, &texts.cluster_read, from, err);
    if (st && (p.n_messages || plan_relower(&p, &texts.model, &texts.cluster_read, from, NULL) || !p.n_messages))
        st = error_set(err, ST_CONFLICT, "the plan cannot be used again");
    plan_release(&p);
    return st;
}

static enum status find_memory(void *from, struct error *err) {
    struct plan p = {0};
    struct memory memory = {.peak_bytes = 7};
    enum status st = plan_lower(&texts.model, &texts.cluster_read, from, &p, err);
    if (st)
        return st;
    st = memory_of_plan(&p, &memory, err);
    plan_release(&p);
    if (st)
        return memory.peak_bytes == 7 ? st : error_set(err, ST_CONFLICT, "the output was written on failure");
    cJSON *root = cJSON_CreateObject();
    st = root && memory_write(&memory, &texts.cluster_read, root) ? ST_OK : error_no_memory(err);
    cJSON_Delete(root);
    return st;
}

static enum status write_each(void *what, struct error *err) {
    cJSON *a = model_write(&texts.model), *b = cluster_write(&texts.cluster_read);
    cJSON *c = strategy_write(what, &texts.model, &texts.cluster_read);
    char *d = strategy_canonical(what, &texts.model, &texts.cluster_read);
    enum status st = a && b && c && d ? ST_OK : error_no_memory(err);
    cJSON_Delete(a);
    cJSON_Delete(b);
    cJSON_Delete(c);
    free(d);
    return st;
}

static void reading_a_model_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(read_model, texts.operators) > 30);
    assert_true(torture(read_model, texts.layers) > 30);
}

static void reading_a_cluster_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(read_cluster, texts.cluster) > 30);
}

static void reading_a_strategy_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(read_strategy, texts.strategy) > 3);
    assert_true(torture(read_strategy, texts.sliced) > 4);
    assert_true(torture(read_strategy, texts.sharded) > 4);
}

static void writing_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(write_each, &texts.strategy_read) > 100);
    assert_true(torture(write_each, &texts.sliced_read) > 100);
    assert_true(torture(write_each, &texts.sharded_read) > 100);
}

static void lowering_and_copying_survive_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(copy_strategy, &texts.strategy_read) >= 1);
    assert_true(torture(lower, &texts.strategy_read) >= 2);
    assert_true(torture(lower_twice, &texts.strategy_read) >= 3);
    assert_true(torture(copy_strategy, &texts.sliced_read) >= 1);
    assert_true(torture(lower, &texts.sliced_read) >= 2);
    assert_true(torture(lower_twice, &texts.sharded_read) >= 2);
}

static void predicting_memory_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(find_memory, &texts.strategy_read) > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_a_model_survives_each_failed_allocation),
        cmocka_unit_test(reading_a_cluster_survives_each_failed_allocation),
        cmocka_unit_test(reading_a_strategy_survives_each_failed_allocation),
        cmocka_unit_test(writing_survives_each_failed_allocation),
        cmocka_unit_test(lowering_and_copying_survive_each_failed_allocation),
        cmocka_unit_test(predicting_memory_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, parse_all, delete_all);
}
