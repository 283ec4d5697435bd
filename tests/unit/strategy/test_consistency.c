/* Consistency: what is refused and in which words, reading and writing, copies, the baselines that have one. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/baselines/baselines.h"
#include "strategy/strategy.h"
#include "tests/support/check.h"
#include "tests/unit/strategy/descriptions.h"

static const char model_text[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[6,4]},{'name':'h','shape':[8],"
    "'dtype':'f16'},{'name':'e','shape':[100,2],'sparse_rows':5}],'layers':[{'name':'l','forward_us':1,"
    "'backward_us':1,'variables':['a','h','e']}]}";
static const char cluster_text[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'nic_gbit_per_s':1},"
    "{'name':'ps','devices':0,'nic_gbit_per_s':1}]}";

#define SERVED(name, more)                                                                                             \
    "{'name':'" name "','sync':{'kind':'parameter_server','servers':['ps'],'local_reduction':false" more "}}"
#define VARIABLES SERVED("a", "") "," SERVED("h", "") "," SERVED("e", ",'push':1")
#define SHARED    SERVED("a", ",'push':1") "," SERVED("h", "") "," SERVED("e", ",'push':1")
#define WITH(policy, consistency, variables)                                                                           \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{" policy "},'consistency':" consistency                   \
    ",'variables':[" variables "]}"
#define KIND(members)      WITH("'policy':'fifo'", "{" members "}", SHARED)
#define ASYNC(members)     KIND("'kind':'asynchronous'" members)
#define SCHEDULED(members) ASYNC(",'scheduler':{" members "}")

static const struct {
    const char *text, *says;
} bad[] = {
    {KIND(""), "/consistency: the member \"kind\" is missing"},
    {KIND("'kind':'async'"), "/consistency/kind: \"async\""},
    {KIND("'kind':'synchronous'"), "/consistency: synchronous without a \"scheduler\""},
    {KIND("'kind':'stale_synchronous'"), "/consistency: the member \"staleness\" is missing"},
    {KIND("'kind':'stale_synchronous','staleness':1001"), "/consistency/staleness: is 1001"},
    {KIND("'kind':'stale_synchronous','staleness':1,'delay_bound':3"),
     "/consistency/delay_bound: only asynchronous has a \"delay_bound\"; this one is stale_synchronous"},
    {ASYNC(",'staleness':1"),
     "/consistency/staleness: only stale_synchronous has a \"staleness\"; this one is asynchronous"},
    {ASYNC(",'delay_bound':0"), "/consistency/delay_bound: is 0; it must be from 1"},
    {ASYNC(",'k':2"), "/consistency/k: unknown member"},
    {SCHEDULED("'batch_us':0"), "/consistency/scheduler/batch_us: is 0"},
    {SCHEDULED("'order':'fifo'"), "/consistency/scheduler/order: \"fifo\""},
    {SCHEDULED("'aggregators':['n9']"), "/consistency/scheduler/aggregators/0: cluster \"c\" has no node \"n9\""},
    {SCHEDULED("'aggregators':['n1','n2','n1']"), "/consistency/scheduler/aggregators/2: \"n1\" is named twice"},
    {SCHEDULED("'distributors':65"), "/consistency/scheduler/distributors: is 65"},
    {SCHEDULED("'aggregators':['n1']"), "the gradient of \"e\" is sparse; aggregators add dense ones"},
    {ASYNC(",'replica':{'divergence':1}"), "/consistency/replica: the member \"node\" is missing"},
    {ASYNC(",'replica':{'node':'n1'}"), "/consistency/replica: the member \"divergence\" is missing"},
    {ASYNC(",'replica':{'node':'n1','divergence':0}"), "/consistency/replica/divergence: is 0"},
    {ASYNC(",'replica':{'node':'n1','divergence':1,'momentum':1}"), "/consistency/replica/momentum: is 1"},
    {ASYNC(",'replica':{'node':'n1','divergence':1,'copies':'late'}"), "/consistency/replica/copies: \"late\""},
    {ASYNC(",'scheduler':{},'replica':{'node':'n1','divergence':5,'momentum':0.9}"),
     "a replica within 5 is never within its bound: with momentum 0.9 one update parts it by 10"},
    {ASYNC(",'replica':{'node':'n1','divergence':1}"), "s.json: a \"replica\" needs the \"scheduler\""},
    {WITH("'policy':'fifo','credit_bytes':0", "{'kind':'asynchronous'}", SHARED),
     "s.json: with \"consistency\" the schedule is fifo, without credit_bytes or cross_iteration"},
    {WITH("'policy':'priority'", "{'kind':'asynchronous'}", SHARED), "the schedule is fifo"},
    {WITH("'policy':'fifo'", "{'kind':'asynchronous'}", VARIABLES),
     "\"a\" and \"e\" have one server and two pushes; with \"consistency\" they share one"},
};

struct world {
    struct model model;
    struct cluster cluster;
};

static int set_up(void **state) {
    static struct world w;
    struct error err;
    *state = &w;
    return quoted_model(model_text, &w.model, &err) || quoted_cluster(cluster_text, &w.cluster, &err);
}

static int tear_down(void **state) {
    struct world *w = *state;
    model_release(&w->model);
    cluster_release(&w->cluster);
    return 0;
}

static void each_bad_consistency_is_refused_at_its_place(void **state) {
    struct world *w = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        struct strategy s;
        assert_fails(quoted_strategy(bad[i].text, &w->model, &w->cluster, &s, &err), ST_INVALID, bad[i].says);
    }
}

/* Aggregators cannot be the server or the replica that they send to. */
static void who_adds_up_is_not_who_receives(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    const uint32_t server = 4, replica = 2;
    assert_ok(quoted_strategy(SCHEDULED("'order':'slots'"), &w->model, &w->cluster, &s, &err));
    struct model dense = w->model;
    struct variable variables[3];
    memcpy(variables, w->model.variables, sizeof variables);
    variables[2].sparse_rows = 0;
    dense.variables = variables;
    s.consistency.aggregators = (struct node_list){1, &server};
    assert_fails(strategy_check(&s, &dense, &w->cluster, &err), ST_INVALID,
                 "\"ps\" is the server and cannot be its aggregator");
    s.consistency.aggregators = (struct node_list){1, &replica};
    assert_ok(strategy_check(&s, &dense, &w->cluster, &err));
    s.consistency.replicated = true;
    s.consistency.replica = replica;
    s.consistency.divergence = 1;
    s.consistency.replica_aggregators = (struct node_list){1, &replica};
    assert_fails(strategy_check(&s, &dense, &w->cluster, &err), ST_INVALID,
                 "\"n3\" is the replica and cannot be its aggregator");
    strategy_release(&s);
}

static void what_is_written_reads_back_the_same(void **state) {
    struct world *w = *state;
    const char *const texts[] = {
        KIND("'kind':'stale_synchronous','staleness':0"),
        ASYNC(""),
        ASYNC(",'delay_bound':30"),
        KIND("'kind':'synchronous','scheduler':{}"),
        ASYNC(",'delay_bound':7,'scheduler':{'batch_us':5000,'order':'slots','distributors':3},"
              "'replica':{'node':'n2','divergence':50,'momentum':0.9}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = {0};
        struct strategy s, again, copy;
        assert_ok(quoted_strategy(texts[i], &w->model, &w->cluster, &s, &err));
        cJSON *json = strategy_write(&s, &w->model, &w->cluster);
        assert_non_null(json);
        assert_ok(strategy_read(json, "again", &w->model, &w->cluster, &again, &err));
        assert_ok(strategy_copy(&s, "copy", &copy, &err));
        assert_string_equal(s.id.hex, again.id.hex);
        assert_memory_equal(&s.consistency, &again.consistency, offsetof(struct consistency, aggregators));
        assert_int_equal(copy.consistency.kind, s.consistency.kind);
        assert_int_equal(copy.consistency.delay_bound, s.consistency.delay_bound);
        assert_close(again.consistency.momentum, s.consistency.momentum, 0);
        cJSON_Delete(json);
        strategy_release(&copy);
        strategy_release(&again);
        strategy_release(&s);
    }
}

/* All send one update, in as many pushes as there are element types, to the node without devices. */
static void baselines_by_name_send_whole_updates(void **state) {
    struct world *w = *state;
    size_t n;
    const struct baseline *rows = baselines_by_name(&n);
    size_t plain = 0;
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        struct strategy s;
        assert_ptr_equal(baselines_find(rows[i].name), &rows[i]);
        assert_ok(baselines_build(&rows[i], &w->model, &w->cluster, &s, &err));
        assert_string_equal(s.name, rows[i].name);
        if (consistency_is_plain(&s.consistency)) {
            plain++;
            strategy_release(&s);
            continue;
        }
        assert_int_equal(s.variables[0].servers[0], 4);
        assert_int_equal(s.variables[0].push, 1);
        assert_int_equal(s.variables[2].push, 1);
        assert_int_equal(s.variables[1].push, 0);
        assert_int_equal(s.consistency.aggregators.n, 0); /* the model is sparse */
        strategy_release(&s);
    }
    assert_int_equal(n, 15);
    assert_int_equal(plain, 11); /* tree-reduce, two in halves, eight sharded */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_consistency_is_refused_at_its_place),
        cmocka_unit_test(who_adds_up_is_not_who_receives),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(baselines_by_name_send_whole_updates),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
