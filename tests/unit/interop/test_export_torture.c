/* Every allocation of every form fails once, and of reading an NCCL table. */
#include <string.h>

#include "interop/export/export.h"
#include "interop/export/nccl/table.h"
#include "tests/support/check.h"
#include "tests/support/torture.h"
#include "tests/unit/strategy/descriptions.h"

static const char model_text[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[1000]},{'name':'b','shape':[4,1000]},"
    "{'name':'c','shape':[100]}],'layers':["
    "{'name':'1','forward_us':1,'backward_us':1,'variables':['a']},"
    "{'name':'2','forward_us':1,'backward_us':1,'variables':['b']},"
    "{'name':'3','forward_us':1,'backward_us':1,'variables':['c']}]}";
static const char cluster_text[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,'nic_gbit_per_s':1}]}";
/* No runs of readiness, several algorithms: the forms that write the most. */
static const char reduced[] =
    "{'schema':'syncopate.strategy/"
    "1','name':'s','schedule':{'policy':'priority'},'groups':[{'id':0,'algorithm':'ring'},"
    "{'id':1,'algorithm':'double_tree'}],'variables':[{'name':'a','sync':{'kind':'all_reduce','group':0}},"
    "{'name':'b','sync':{'kind':'all_reduce','group':1}},{'name':'c','sync':{'kind':'all_reduce','group':0}}]}";
static const char served[] =
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'priority'},'groups':[],'variables':["
    "{'name':'a','sync':{'kind':'parameter_server','servers':['n1']}},"
    "{'name':'b','partition':{'axis':0,'shards':4},'sync':{'kind':'parameter_server','servers':['n1','n2']}},"
    "{'name':'c','sync':{'kind':'parameter_server','servers':['n2']}}]}";

/* Two ways, of which most forms can do neither: what refuses them. */
static const char sharded[] =
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo','credit_bytes':0},'groups':["
    "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'optimizer'}],'variables':["
    "{'name':'a','sync':{'kind':'all_reduce','group':0}},{'name':'b','sync':{'kind':'all_reduce','group':1}},"
    "{'name':'c','sync':{'kind':'all_reduce','group':0}}]}";

struct subject {
    const struct exporter *exporter;
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
};

static enum status export_it(void *arg, struct error *err) {
    const struct subject *s = arg;
    struct export export = {0};
    enum status st = export_build(s->exporter, &s->strategy, &s->model, &s->cluster, &export, err);
    if (st && export.arena.blocks)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    if (!st)
        st = export_check_memory(s->exporter, &export, &s->strategy, &s->model, &s->cluster, err);
    export_release(&export);
    return st == ST_INFEASIBLE ? ST_OK : st;
}

static void no_export_leaks_or_crashes_without_memory(void **state) {
    (void)state;
    static const char *const texts[] = {reduced, served, sharded};
    size_t n, failed = 0;
    const struct exporter *rows = exporters_list(&n);
    for (int t = 0; t < 3; t++) {
        struct error err = {0};
        struct subject s;
        assert_ok(quoted_model(model_text, &s.model, &err));
        assert_ok(quoted_cluster(cluster_text, &s.cluster, &err));
        assert_ok(quoted_strategy(texts[t], &s.model, &s.cluster, &s.strategy, &err));
        for (size_t i = 0; i < n; i++) {
            s.exporter = &rows[i];
            failed += torture(export_it, &s);
        }
        strategy_release(&s.strategy);
        cluster_release(&s.cluster);
        model_release(&s.model);
    }
    assert_true(failed > 100);
}

static enum status read_table(void *arg, struct error *err) {
    struct nccl_table table = {0};
    enum status st = nccl_table_read(arg, strlen(arg), "t.csv", &table, err);
    nccl_table_release(&table);
    return st;
}

static enum status read_table_file(void *arg, struct error *err) {
    struct nccl_table table = {0};
    enum status st = nccl_table_read_file(arg, &table, err);
    nccl_table_release(&table);
    return st;
}

static void no_table_leaks_or_crashes_without_memory(void **state) {
    (void)state;
    char text[1024] = "";
    for (int i = 0; i < 20; i++)
        strcat(text, "allreduce,0,1,ring,any,-1,-1,-1\n");
    assert_true(torture(read_table, text) >= 5);
    assert_true(torture(read_table_file, (char *)test_file("t.csv", text)) >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_export_leaks_or_crashes_without_memory),
        cmocka_unit_test(no_table_leaks_or_crashes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
