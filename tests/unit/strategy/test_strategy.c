/* Strategies: what is refused and in which words, the one sealed form, ids, copies and round trips. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/strategy.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"
#include "tests/unit/strategy/descriptions.h"

static const char model_text[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[6,4]},{'name':'h','shape':[8],"
    "'dtype':'f16'},{'name':'s','shape':[]}],'layers':[{'name':'l','forward_us':1,'backward_us':1,"
    "'variables':['a','h','s']}]}";
static const char cluster_text[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'nic_gbit_per_s':1}]}";

#define HEAD                 "{'schema':'syncopate.strategy/1','name':'s',"
#define FIFO                 "'schedule':{'policy':'fifo'},"
#define GROUPS               "'groups':[{'id':0},{'id':7}],"
#define REDUCED(name, group) "{'name':'" name "','sync':{'kind':'all_reduce','group':" group "}}"
#define H                    REDUCED("h", "7")
#define S                    REDUCED("s", "0")
#define SCHEDULE(schedule)   HEAD "'schedule':" schedule "," GROUPS "'variables':[]}"
#define GROUPED(groups)      HEAD FIFO "'groups':[" groups "],'variables':[]}"
#define VARIABLES(variables) HEAD FIFO GROUPS "'variables':[" variables "]}"
#define A(members)           VARIABLES("{'name':'a'," members "}," H "," S)
#define SYNC_A(members)      A("'sync':{" members "}")
#define CUT_A(members)       A("'partition':{" members "},'sync':{'kind':'all_reduce','group':0}")
#define SERVED_A(shards, servers)                                                                                      \
    "'partition':{'shards':" shards "},'sync':{'kind':'parameter_server','servers':[" servers "]}"

#define SERVED(name, members) "{'name':'" name "','sync':{'kind':'parameter_server','servers':[" members "}}"
#define PUSHED(a, s)          VARIABLES(SERVED("a", "'n1']," a) "," H "," SERVED("s", s))

/* a cut in two, an entry for each half. */
#define EACH_A(entries) A("'partition':{'shards':2},'each_shard':[" entries "]")
#define IN(group)       "{'sync':{'kind':'all_reduce','group':" group "}}"
#define ON(server)      "{'sync':{'kind':'parameter_server','servers':[" server "]}}"

/* Group 0 is a and s, 100 bytes of f32; group 7 is h, 16 bytes of f16. */
#define SLICED_AS(slices, groups, variables)                                                                           \
    HEAD "'schedule':{'policy':'preemptive','slices':[" slices "]}," groups "'variables':[" variables "]}"
#define SLICED(slices)      SLICED_AS(slices, GROUPS, REDUCED("a", "0") "," H "," S)
#define SLICE(group, bytes) "{'group':" group ",'bytes':" bytes "}"
#define SLICES              SLICE("0", "60") "," SLICE("7", "16") "," SLICE("0", "40")

/* Group 0, which holds a and s, has these members. */
#define SHARDED_AS(schedule, members)                                                                                  \
    HEAD "'schedule':{" schedule "},'groups':[{'id':0," members                                                        \
         "},{'id':7}],'variables':[" REDUCED("a", "0") "," H "," S "]}"

static const struct {
    const char *text, *says;
} bad_strategies[] = {
    {"[]", "s.json: must be an object of schema \"syncopate.strategy/1\""},
    {"{'schema':'syncopate.strategy/2'}", "/schema: \"syncopate.strategy/2\" is newer"},
    {"{'schema':'syncopate.model/1'}", "/schema: is \"syncopate.model/1\""},
    {HEAD "'scheduler':{}}", "/scheduler: unknown member \"scheduler\"; did you mean \"schedule\"?"},
    {HEAD GROUPS "'variables':[]}", "\"schedule\" is missing"},
    {HEAD FIFO "'variables':{}}", "/variables: must be an array"},
    {HEAD FIFO GROUPS "'name':'t'}", "twice"},
    {HEAD FIFO "'groups':[]}", "\"variables\" is missing"},
    {SCHEDULE("'fifo'"), "/schedule: must be an object"},
    {SCHEDULE("{}"), "/schedule: the member \"policy\" is missing"},
    {SCHEDULE("{'policy':'lifo'}"), "/schedule/policy: \"lifo\""},
    {SCHEDULE("{'policy':'priorities'}"), "did you mean \"priority\"?"},
    {SCHEDULE("{'policy':'fifo','credit':1}"), "/schedule/credit: unknown member"},
    {SCHEDULE("{'policy':'fifo','credit_bytes':-1}"), "/schedule/credit_bytes: is -1"},
    {SCHEDULE("{'policy':'fifo','credit_bytes':1e15}"), "/schedule/credit_bytes: is 1000000000000000"},
    {SCHEDULE("{'policy':'fifo','credit_bytes':0.5}"), "/schedule/credit_bytes: is 0.5; it must be a whole number"},
    {SCHEDULE("{'policy':'fifo','cross_iteration':1}"), "/schedule/cross_iteration: must be true or false"},
    {SCHEDULE("{'policy':'priority','pulls':'first'}"), "/schedule/pulls: \"first\""},
    {SCHEDULE("{'policy':'fifo','accumulation':4}"), "/schedule/accumulation: must be an object"},
    {SCHEDULE("{'policy':'fifo','accumulation':{}}"), "the member \"micro_batches\" is missing"},
    {SCHEDULE("{'policy':'fifo','accumulation':{'micro_batches':4097}}"),
     "/schedule/accumulation/micro_batches: is 4097; it must be from 1 to 4096"},
    {SCHEDULE("{'policy':'fifo','accumulation':{'micro_batches':2,'steps':2}}"), "/accumulation/steps: unknown member"},
    {SCHEDULE("{'policy':'fifo','accumulation':{'micro_batches':2,'synchronize':'first'}}"),
     "/schedule/accumulation/synchronize: \"first\""},
    {SCHEDULE("{'policy':'fifo','pulls':'priority'}"),
     "/schedule: \"pulls\" by priority need \"policy\" priority, not fifo"},
    {GROUPED("3"), "/groups/0: must be an object"},
    {GROUPED("{}"), "/groups/0: the member \"id\" is missing"},
    {GROUPED("{'id':-1}"), "/groups/0/id: is -1"},
    {GROUPED("{'id':1e10}"), "/groups/0/id: is 10000000000"},
    {GROUPED("{'id':0,'algorithm':'butterfly'}"), "/groups/0/algorithm: \"butterfly\""},
    {GROUPED("{'id':0,'partition_bytes':1023}"), "/groups/0/partition_bytes: is 1023; it must be from 1024"},
    {GROUPED("{'id':0,'partition_bytes':0}"), "/groups/0/partition_bytes: is 0"},
    {GROUPED("{'id':0,'partition':4096}"), "/groups/0/partition: unknown member"},
    {GROUPED("{'id':0,'sharded':'gradient'}"), "did you mean \"gradients\"?"},
    {GROUPED("{'id':0,'sharded':'optimizer','algorithm':'tree'}"),
     "/groups/0: group 0 has \"sharded\" optimizer, whose halves are a ring's, but \"algorithm\" tree"},
    {GROUPED("{'id':0,'sharded':'parameters','algorithm':'tree'}"),
     "/groups/0: group 0 has \"sharded\" parameters, whose halves are a ring's, but \"algorithm\" tree"},
    {SHARDED_AS("'policy':'priority'", "'sharded':'parameters'"),
     "/groups/0: group 0 has \"sharded\" parameters, which are gathered in order: policy fifo, not priority"},
    {SHARDED_AS("'policy':'fifo','cross_iteration':true", "'sharded':'parameters'"),
     "/groups/0: group 0 has \"sharded\" parameters, which are gathered after the update: \"cross_iteration\" false"},
    {SHARDED_AS("'policy':'fifo','forward_prefetch':2", "'sharded':'parameters'"),
     "\"forward_prefetch\" is 2, and 1 group has \"sharded\" parameters"},
    {SHARDED_AS("'policy':'fifo','backward_prefetch':2", "'sharded':'gradients'"),
     "\"backward_prefetch\" is 2, and 0 groups have \"sharded\" parameters"},
    {SHARDED_AS("'policy':'fifo','forward_prefetch':-1", "'sharded':'parameters'"),
     "/schedule/forward_prefetch: is -1"},
    {SHARDED_AS("'policy':'fifo','backward_prefetch':true", "'sharded':'parameters'"),
     "/schedule/backward_prefetch: must be a whole number, not a boolean"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':'no'"),
     "/groups/0/reshard_after_forward: must be true, false or a number of devices"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':0"),
     "/groups/0/reshard_after_forward: is 0"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':3"),
     "group 0 has \"reshard_after_forward\" 3, and 4 devices share the shards: it must divide them"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':2", "'sharded':'parameters','reshard_after_forward':4"),
     "group 0 has \"reshard_after_forward\" 4, and 2 devices share the shards: it must divide them"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'gradients','reshard_after_forward':2"),
     "/groups/0/reshard_after_forward: it says when gathered parameters are freed; \"sharded\" is gradients"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','gathered_as':'int8'"), "/groups/0/gathered_as"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','summed_as':16"), "/groups/0/summed_as"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'gradients','summed_as':'bf16'"),
     "/groups/0: group 0 has \"summed_as\", which is of \"sharded\" parameters, but \"sharded\" gradients"},
    {SHARDED_AS("'policy':'fifo'", "'gathered_as':'f32'"),
     "group 0 has \"gathered_as\", which is of \"sharded\" parameters, but \"sharded\" none"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':3", "'sharded':'parameters'"),
     "\"shard_ranks\" is 3, and cluster \"c\" has 4 devices: it must divide them and be at least 2"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':8", "'sharded':'parameters'"),
     "\"shard_ranks\" is 8, and cluster \"c\" has 4 devices"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':2,'accumulation':{'micro_batches':2,'synchronize':'each'}",
                "'sharded':'parameters'"),
     "\"synchronize\" is each, and with \"shard_ranks\" 2 replicas add their sums up once an iteration: it must be "
     "each_all_reduce_last, or last"},
    {SHARDED_AS("'policy':'fifo','accumulation':{'micro_batches':2,'synchronize':'each_all_reduce_last'}",
                "'sharded':'parameters'"),
     "tells replicas of shards when to all-reduce, and there are none"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':1", "'sharded':'parameters'"), "/schedule/shard_ranks: is 1"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':2", "'sharded':'optimizer'"),
     "\"shard_ranks\" is of \"sharded\" parameters, but group 0 has optimizer: leave one of them away"},
    {SHARDED_AS("'policy':'fifo','shard_ranks':2", "'algorithm':'ring'"),
     "\"shard_ranks\" is 2, and no group has \"sharded\" parameters"},
    {SHARDED_AS("'policy':'fifo'", "'sharded':'gradients','reshard_after_forward':false"),
     "/groups/0/reshard_after_forward: it says when gathered parameters are freed; \"sharded\" is gradients"},
    {GROUPED("{'id':4},{'id':4}"), "/groups/1: group ids must rise: 4 comes after 4"},
    {GROUPED("{'id':4},{'id':1}"), "/groups/1: group ids must rise: 1 comes after 4"},
    {VARIABLES(""), "/variables: variable \"a\" of model \"m\" is missing"},
    {VARIABLES(REDUCED("a", "0") "," S), "/variables: variable \"h\" of model \"m\" is missing"},
    {VARIABLES("'a'"), "/variables/0: must be an object"},
    {VARIABLES("{}"), "/variables/0: the member \"name\" is missing"},
    {VARIABLES(REDUCED("fc.weight", "0")),
     "/variables/0: model \"m\" has no variable \"fc.weight\"; is this a strategy for another model?"},
    {VARIABLES(REDUCED("a", "0") "," REDUCED("a", "0")), "/variables/1: variable \"a\" is described twice"},
    {A("'group':0"), "/variables/0/group: unknown member"},
    {A("'encoding':'none'"), "/variables/0: the member \"sync\" is missing"},
    {A("'encoding':'fp16','sync':{}"), "/variables/0/encoding: \"fp16\""},
    {SYNC_A("'kind':'ps'"), "/variables/0/sync/kind: \"ps\""},
    {SYNC_A("'group':0"), "/variables/0/sync: the member \"kind\" is missing"},
    {SYNC_A("'kind':'all_reduce'"), "/variables/0/sync: the member \"group\" is missing"},
    {SYNC_A("'kind':'all_reduce','group':1"), "/variables/0/sync: group 1 is not in \"groups\""},
    {SYNC_A("'kind':'all_reduce','group':0,'servers':['n1']"), "/variables/0/sync/servers: unknown member"},
    {SYNC_A("'kind':'parameter_server','servers':['n1'],'group':0"), "/variables/0/sync/group: unknown member"},
    {SYNC_A("'kind':'parameter_server'"), "/variables/0/sync: the member \"servers\" is missing"},
    {SYNC_A("'kind':'parameter_server','servers':[]"), "/variables/0/sync/servers: a parameter server needs at least"},
    {SYNC_A("'kind':'parameter_server','servers':'n1'"), "/variables/0/sync/servers: must be an array"},
    {SYNC_A("'kind':'parameter_server','servers':['n5']"),
     "/variables/0/sync/servers/0: cluster \"c\" has no node \"n5\""},
    {SYNC_A("'kind':'parameter_server','servers':['n1'],'partition_bytes':7"),
     "/variables/0/sync/partition_bytes: is 7"},
    {SYNC_A("'kind':'all_reduce','group':0,'push':1"), "/variables/0/sync/push: unknown member"},
    {SYNC_A("'kind':'parameter_server','servers':['n1'],'push':0"), "/variables/0/sync/push: is 0"},
    {SYNC_A("'kind':'parameter_server','servers':['n1'],'push':4"),
     "/variables/0: variable \"a\" is in push 4; it must be from 1 to 3, or 0 (alone)"},
    {A("'partition':{'shards':2},'sync':{'kind':'parameter_server','servers':['n1'],'push':1}"),
     "/variables/0: variable \"a\" is cut into 2 shards: only whole variables share a push"},
    {PUSHED("'push':2", "'n2'],'push':2"),
     "/variables/2: push 2 holds \"a\" and \"s\", which differ in server: give them two pushes"},
    {PUSHED("'push':2", "'n1'],'push':2,'local_reduction':false"),
     "/variables/2: push 2 holds \"a\" and \"s\", which differ in local_reduction"},
    {PUSHED("'push':2", "'n1'],'push':2,'partition_bytes':2048"),
     "/variables/2: push 2 holds \"a\" and \"s\", which differ in partition_bytes"},
    {VARIABLES(SERVED("a", "'n1'],'push':3") "," SERVED("h", "'n1'],'push':3") "," S),
     "/variables/1: push 3 holds \"a\" and \"h\", which differ in element type"},
    {SYNC_A("'kind':'parameter_server','servers':['n1','n2']"),
     "/variables/0: variable \"a\" has 2 servers but 1 shard: each server needs a shard"},
    {A(SERVED_A("2", "'n1','n2','n3'")), "/variables/0: variable \"a\" has 3 servers but 2 shards"},
    {A(SERVED_A("2", "'n1','n1'")), "/variables/0: variable \"a\" names server \"n1\" twice"},
    {CUT_A("'shards':7"), "/variables/0: variable \"a\" is cut into 7 shards but axis 0 has 6 rows"},
    {CUT_A("'axis':1,'shards':5"), "/variables/0: variable \"a\" is cut into 5 shards but axis 1 has 4 rows"},
    {CUT_A("'axis':2,'shards':2"), "/variables/0: variable \"a\" is cut along axis 2 but has 2 axes"},
    {CUT_A("'axis':8,'shards':2"), "/variables/0/partition/axis: is 8"},
    {CUT_A("'axis':0"), "/variables/0/partition: the member \"shards\" is missing"},
    {CUT_A("'shards':0"), "/variables/0/partition/shards: is 0"},
    {CUT_A("'shards':-2"), "/variables/0/partition/shards: is -2"},
    {CUT_A("'shards':2,'axes':[0,1]"), "/variables/0/partition/axes: unknown member"},
    {VARIABLES(REDUCED("a", "0") "," H ",{'name':'s','partition':{'shards':2},'sync':{'kind':'all_reduce','group':0}}"),
     "/variables/2: variable \"s\" is cut along axis 0 but has 0 axes"},
    {VARIABLES(REDUCED("a", "0") "," REDUCED("h", "0") "," S),
     "s.json: group 0 mixes \"a\" (f32) and \"h\" (f16): one dtype a merge group"},
    {VARIABLES("{'name':'a','encoding':'f16','sync':{'kind':'all_reduce','group':0}}," H "," S),
     "s.json: group 0 mixes \"a\" (f16) and \"s\" (f32)"},
    {VARIABLES(REDUCED("a", "0") "," S ",{'name':'h','encoding':'bf16','sync':{'kind':'all_reduce','group':7}}"),
     "/variables/2: variable \"h\" is f16: only f32 and f64 can be encoded"},
    {EACH_A("3," IN("0")), "/variables/0/each_shard/0: must be an object"},
    {EACH_A(IN("0")), "/variables/0/each_shard: 1 entries for 2 shards: \"partition\" says how many there are"},
    {EACH_A(IN("0") "," IN("0") "," IN("0")), "/variables/0/each_shard: 3 entries for 2 shards"},
    {EACH_A("{'encoding':'f16'}," IN("0")), "/variables/0/each_shard/0: the member \"sync\" is missing"},
    {EACH_A("{'shards':2,'sync':{}}," IN("0")), "/variables/0/each_shard/0/shards: unknown member"},
    {EACH_A(IN("0") "," IN("3")), "/variables/0/each_shard/1/sync: group 3 is not in \"groups\""},
    {EACH_A(IN("0") "," ON("'n9'")), "/variables/0/each_shard/1/sync/servers/0: cluster \"c\" has no node \"n9\""},
    {EACH_A(IN("0") "," ON("'n1','n2'")), "/variables/0: shard 1: variable \"a\" has 2 servers for one shard"},
    {EACH_A(IN("0") ",{'sync':{'kind':'parameter_server','servers':['n1'],'push':1}}"),
     "/variables/0: shard 1: variable \"a\" is cut: only whole variables share a push"},
    {A("'partition':{'shards':2},'encoding':'f16','each_shard':[" IN("0") "," IN("0") "]"),
     "/variables/0/encoding: it stands beside \"each_shard\", which says it for every shard"},
    {A("'each_shard':[" IN("0") "]"), "/variables/0: variable \"a\" is not cut, and has an entry for each shard"},
    {EACH_A("{'encoding':'f16','sync':{'kind':'all_reduce','group':0}}," IN("0")),
     "s.json: group 0 mixes \"a\" (f16) and \"a\" (f32): one dtype a merge group"},
    {EACH_A(IN("7") "," ON("'n1'")), "s.json: group 7 mixes \"a\" (f32) and \"h\" (f16)"},
    {HEAD FIFO "'groups':[{'id':0},{'id':7},{'id':8,'algorithm':'all_gather'}],'variables':[{'name':'a','partition':"
               "{'shards':2},'each_shard':[" IN("0") "," IN("8") "]}," H "," S "]}",
     "/variables/0: shard 1: variable \"a\" is dense, but group 8 is gathered"},
    {SLICED_AS(SLICES, GROUPS,
               "{'name':'a','partition':{'shards':2},'each_shard':[" IN("0") "," ON("'n1'") "]}," H "," S),
     "/variables/0: variable \"a\" is cut into 2 shards, but under policy preemptive slices cut"},
    {HEAD FIFO "'groups':[{'id':0,'algorithm':'all_gather'},{'id':7}],'variables':[" REDUCED("a", "0") "," H "," S "]}",
     "/variables/0: variable \"a\" is dense, but group 0 is gathered: give it another group"},
    {SLICED_AS(SLICES, "'groups':[{'id':0},{'id':7,'algorithm':'all_gather'}],", REDUCED("a", "0") "," H "," S),
     "/groups/1: group 7 is gathered: policy preemptive orders all-reduces only"},
    {HEAD "'schedule':{'policy':'preemptive'}," GROUPS "'variables':[" REDUCED("a", "0") "," H "," S "]}",
     "s.json: /schedule: the member \"slices\" is missing"},
    {HEAD "'schedule':{'policy':'priority','slices':[]}," GROUPS "'variables':[" REDUCED("a", "0") "," H "," S "]}",
     "s.json: /schedule/slices: only policy preemptive has slices; this one is priority"},
    {SLICED(""), "/schedule/slices: the slices of group 0 leave 100 of its 100 bytes"},
    {SLICED(SLICE("0", "60") "," SLICE("7", "16")),
     "/schedule/slices: the slices of group 0 leave 40 of its 100 bytes"},
    {SLICED(SLICES "," SLICE("7", "2")),
     "/schedule/slices: slice 3 takes 2 bytes of group 7, which has 0 of its 16 left"},
    {SLICED(SLICE("0", "104") "," SLICE("7", "16")),
     "slice 0 takes 104 bytes of group 0, which has 100 of its 100 left"},
    {SLICED(SLICE("0", "58") "," SLICE("7", "16") "," SLICE("0", "42")),
     "/schedule/slices: slice 0 takes 58 bytes of group 0, whose elements have 4: none is cut"},
    {SLICED(SLICES "," SLICE("0", "0")), "/schedule/slices/3/bytes: is 0"},
    {SLICED(SLICES "," SLICE("0", "1.5")), "/schedule/slices/3/bytes: is 1.5"},
    {SLICED(SLICES "," SLICE("3", "4")), "/schedule/slices/3: group 3 is not in \"groups\""},
    {SLICED(SLICES ",{'group':0}"), "/schedule/slices/3: the member \"bytes\" is missing"},
    {SLICED(SLICES ",{'group':0,'byte':1}"), "/schedule/slices/3/byte: unknown member"},
    {SLICED_AS(SLICES "," SLICE("8", "4"), "'groups':[{'id':0},{'id':7},{'id':8}],", REDUCED("a", "0") "," H "," S),
     "/schedule/slices: slice 3 takes 4 bytes of group 8, which has 0 of its 0 left"},
    {SLICED_AS(SLICES, "'groups':[{'id':0},{'id':7,'partition_bytes':1024}],", REDUCED("a", "0") "," H "," S),
     "/groups/1: group 7 has \"partition_bytes\", but under policy preemptive slices cut"},
    {SLICED_AS(SLICES, GROUPS, "{'name':'a','partition':{'shards':2},'sync':{'kind':'all_reduce','group':0}}," H "," S),
     "/variables/0: variable \"a\" is cut into 2 shards, but under policy preemptive slices cut"},
    {SLICED_AS(SLICES, GROUPS, "{'name':'a','sync':{'kind':'parameter_server','servers':['n1']}}," H "," S),
     "/variables/0: variable \"a\" is served: policy preemptive orders all-reduces only"},
};

struct world {
    struct model model;
    struct cluster cluster;
};

static int make_world(void **state) {
    static struct world world;
    struct error err = {0};
    assert_ok(quoted_model(model_text, &world.model, &err));
    assert_ok(quoted_cluster(cluster_text, &world.cluster, &err));
    *state = &world;
    return 0;
}

static int end_world(void **state) {
    struct world *w = *state;
    model_release(&w->model);
    cluster_release(&w->cluster);
    return 0;
}

static void each_bad_strategy_is_refused_at_its_place(void **state) {
    struct world *w = *state;
    for (size_t i = 0; i < sizeof bad_strategies / sizeof *bad_strategies; i++) {
        struct error err = {0};
        struct strategy s = {.n_groups = 77};
        assert_fails(quoted_strategy(bad_strategies[i].text, &w->model, &w->cluster, &s, &err), ST_INVALID,
                     bad_strategies[i].says);
        assert_contains(ERROR_TEXT(&err), "s.json: ");
        assert_int_equal(s.n_groups, 77);
    }
}

static void each_bad_file_is_refused_with_a_reason(void **state) {
    struct world *w = *state;
    for (const struct bad_file *f = bad_files(); f->path; f++) {
        struct error err = {0};
        struct strategy s;
        assert_fails(strategy_read_file(f->path, &w->model, &w->cluster, &s, &err), f->status, f->says);
    }
}

static void a_strategy_is_read_in_its_one_form(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(
        HEAD "'schedule':{'policy':'priority','credit_bytes':0,'cross_iteration':true},"
             "'groups':[{'id':2,'algorithm':'tree'},{'id':5},{'id':9,'algorithm':'ring','partition_bytes':4096}],"
             "'variables':[{'name':'s','partition':{'axis':3,'shards':1},'sync':{'kind':'all_reduce','group':2}},"
             "{'name':'h','sync':{'kind':'all_reduce','group':9}},"
             "{'name':'a','partition':{'axis':1,'shards':3},'encoding':'bf16',"
             "'sync':{'kind':'parameter_server','servers':['n3','n1'],'partition_bytes':2048}}]}",
        &w->model, &w->cluster, &s, &err));
    assert_string_equal(s.name, "s");
    assert_int_equal(s.policy, POLICY_priority);
    assert_int_equal(s.credit_bytes, 0);
    assert_true(s.cross_iteration);
    assert_int_equal(s.n_variables, 3);
    assert_int_equal(s.n_groups, 2); /* 5 has no member; h, the model's first reduced variable, makes 9 the first */
    assert_int_equal(s.groups[0].id, 0);
    assert_int_equal(s.groups[0].algorithm, ALGORITHM_ring);
    assert_int_equal(s.groups[0].partition_bytes, 4096);
    assert_int_equal(s.groups[1].id, 1);
    assert_int_equal(s.groups[1].algorithm, ALGORITHM_tree);
    const struct variable_sync *a = &s.variables[0];
    assert_int_equal(a->kind, SYNC_PARAMETER_SERVER);
    assert_int_equal(a->axis, 1);
    assert_int_equal(a->shards, 3);
    assert_int_equal(a->encoding, ENCODING_bf16);
    assert_int_equal(a->n_servers, 2);
    assert_int_equal(a->servers[0], 2);
    assert_int_equal(a->servers[1], 0);
    assert_true(a->local_reduction);
    assert_int_equal(a->partition_bytes, 2048);
    assert_int_equal(s.variables[1].group, 0);
    assert_int_equal(s.variables[2].group, 1);
    assert_int_equal(s.variables[2].axis, 0); /* not cut: the axis says nothing */
    strategy_release(&s);
}

/* Numbered anew with their groups, and in the same order. */
static void slices_are_read_in_their_order(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(SLICED_AS(SLICE("9", "60") "," SLICE("3", "16") "," SLICE("9", "36") "," SLICE("9", "4"),
                                        "'groups':[{'id':3},{'id':5},{'id':9}],",
                                        REDUCED("a", "9") "," REDUCED("h", "3") "," REDUCED("s", "9")),
                              &w->model, &w->cluster, &s, &err));
    static const struct slice want[] = {{0, 60}, {1, 16}, {0, 36}, {0, 4}};
    assert_int_equal(s.policy, POLICY_preemptive);
    assert_int_equal(s.n_groups, 2);
    assert_int_equal(s.n_slices, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(s.slices[i].group, want[i].group);
        assert_int_equal(s.slices[i].bytes, want[i].bytes);
    }
    strategy_release(&s);
}

static void assert_same_id(struct world *w, const char *a, const char *b, bool same) {
    struct error err = {0};
    struct strategy x, y;
    assert_ok(quoted_strategy(a, &w->model, &w->cluster, &x, &err));
    assert_ok(quoted_strategy(b, &w->model, &w->cluster, &y, &err));
    if ((strcmp(x.id.hex, y.id.hex) == 0) != same)
        fail_msg("%s\n%s", a, b);
    strategy_release(&x);
    strategy_release(&y);
}

/* Numbered anew, without those of one variable. */
static void pushes_are_read_in_their_one_form(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(PUSHED("'push':3", "'n1'],'push':3"), &w->model, &w->cluster, &s, &err));
    assert_int_equal(s.variables[0].push, 1);
    assert_int_equal(s.variables[1].push, 0);
    assert_int_equal(s.variables[2].push, 1);
    strategy_release(&s);
    assert_same_id(w, PUSHED("'push':3", "'n1'],'push':3"), PUSHED("'push':1", "'n1'],'push':1"), true);
    assert_same_id(w, PUSHED("'push':3", "'n1'],'push':2"), PUSHED("'local_reduction':true", "'n1']"), true);
    assert_same_id(w, PUSHED("'push':3", "'n1'],'push':3"), PUSHED("'local_reduction':true", "'n1']"), false);
}

/* What does not matter, or is the default, has no other form. */
static void sharded_parameters_are_read_in_their_one_form(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(
        SHARDED_AS("'policy':'fifo','forward_prefetch':0", "'sharded':'parameters','reshard_after_forward':false"),
        &w->model, &w->cluster, &s, &err));
    assert_int_equal(s.groups[0].sharded, SHARDED_parameters);
    assert_int_equal(s.groups[1].sharded, SHARDED_none);
    assert_true(s.groups[0].keeps_gathered && s.forward_prefetch == 0 && s.backward_prefetch == 1);
    strategy_release(&s);
    const char *plain = SHARDED_AS("'policy':'fifo'", "'sharded':'parameters'");
    assert_same_id(w, plain,
                   SHARDED_AS("'policy':'fifo','forward_prefetch':1,'backward_prefetch':1",
                              "'sharded':'parameters','reshard_after_forward':true"),
                   true);
    assert_same_id(w, plain, /* one of its two groups has no members */
                   HEAD
                   "'schedule':{'policy':'fifo','forward_prefetch':2,'backward_prefetch':2},'groups':["
                   "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'parameters'},{'id':7}],'variables':[" REDUCED(
                       "a", "0") "," H "," S "]}",
                   true);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo','forward_prefetch':0", "'sharded':'parameters'"), false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo','backward_prefetch':0", "'sharded':'parameters'"), false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':false"),
                   false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'gradients'"), false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo','shard_ranks':4", "'sharded':'parameters'"), true);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo','shard_ranks':2", "'sharded':'parameters'"), false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':4"), true);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':2"), false);
    assert_same_id(w, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':1"),
                   SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','reshard_after_forward':false"), true);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','gathered_as':'f32'"), true);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','gathered_as':'bf16'"), false);
    assert_same_id(w, plain, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','summed_as':'f32'"), true);
    assert_same_id(w, SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','gathered_as':'bf16'"),
                   SHARDED_AS("'policy':'fifo'", "'sharded':'parameters','summed_as':'bf16'"), false);
    assert_same_id(w, SHARDED_AS("'policy':'fifo','forward_prefetch':0", "'sharded':'gradients'"),
                   SHARDED_AS("'policy':'fifo'", "'sharded':'gradients'"), true);
}

/* One micro-batch is what a strategy without "accumulation" has, whenever that would be summed. */
static void micro_batches_are_read_in_their_one_form(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
#define ACCUMULATED(how) SHARDED_AS("'policy':'fifo','accumulation':{'micro_batches':" how "}", "'sharded':'gradients'")
#define OF_REPLICAS(ranks, how)                                                                                        \
    SHARDED_AS("'policy':'fifo','shard_ranks':" ranks ",'accumulation':{'micro_batches':2,'synchronize':'" how "'}",   \
               "'sharded':'parameters'")
    const char *one = SHARDED_AS("'policy':'fifo'", "'sharded':'gradients'");
    assert_ok(quoted_strategy(ACCUMULATED("3,'synchronize':'each'"), &w->model, &w->cluster, &s, &err));
    assert_true(s.micro_batches == 3 && s.synchronize == SYNCHRONIZE_each);
    char *text = strategy_canonical(&s, &w->model, &w->cluster);
    assert_contains(text, "\"accumulation\":{\"micro_batches\":3,\"synchronize\":\"each\"}");
    free(text);
    strategy_release(&s);
    assert_same_id(w, one, ACCUMULATED("1"), true);
    assert_same_id(w, one, ACCUMULATED("1,'synchronize':'each'"), true);
    assert_same_id(w, one, ACCUMULATED("2"), false);
    assert_same_id(w, ACCUMULATED("2"), ACCUMULATED("2,'synchronize':'last'"), true);
    assert_same_id(w, ACCUMULATED("2"), ACCUMULATED("2,'synchronize':'each'"), false);
    assert_same_id(w, ACCUMULATED("2"), ACCUMULATED("3"), false);
    assert_same_id(w, OF_REPLICAS("2", "last"), OF_REPLICAS("2", "each_all_reduce_last"), false);
    assert_same_id(w, OF_REPLICAS("4", "each"), OF_REPLICAS("4", "each_all_reduce_last"), true); /* 4 are all */
}

/* The halves of a: the first in group 0, the second as f16 on n3. */
static void shards_are_read_each_in_its_way(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(EACH_A(IN("0") ",{'encoding':'f16','sync':{'kind':'parameter_server','servers':['n3'],"
                                             "'local_reduction':false,'partition_bytes':2048}}"),
                              &w->model, &w->cluster, &s, &err));
    const struct variable_sync *a = &s.variables[0];
    assert_int_equal(sync_parts(a), 2);
    assert_int_equal(sync_parts(&s.variables[1]), 1);
    assert_int_equal(sync_part(a, 0)->kind, SYNC_ALL_REDUCE);
    assert_int_equal(sync_part(a, 0)->group, 0);
    assert_int_equal(sync_part(a, 1)->kind, SYNC_PARAMETER_SERVER);
    assert_int_equal(sync_part(a, 1)->encoding, ENCODING_f16);
    assert_int_equal(sync_part(a, 1)->servers[0], 2);
    assert_int_equal(sync_part(a, 1)->partition_bytes, 2048);
    assert_false(sync_part(a, 1)->local_reduction);
    assert_true(a->kind == SYNC_ALL_REDUCE && a->group == 0 && a->shards == 2); /* as the first shard */
    strategy_release(&s);
}

/* What one entry says of all shards has no other form. */
static void shards_that_are_alike_are_said_once(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_same_id(w, EACH_A(IN("0") "," IN("0")), CUT_A("'shards':2"), true);
    assert_same_id(w, EACH_A(ON("'n2'") "," ON("'n1'")), A(SERVED_A("2", "'n2','n1'")), true);
    assert_same_id(w, EACH_A(ON("'n2'") "," ON("'n2'")), A(SERVED_A("2", "'n2'")), true);
    assert_same_id(w, EACH_A(ON("'n2'") "," IN("0")), EACH_A(IN("0") "," ON("'n2'")), false);
#define THREE(x, y, z)                                                                                                 \
    A("'partition':{'shards':3},'each_shard':[" ON("'" x "'") "," ON("'" y "'") "," ON("'" z "'") "]")
    assert_same_id(w, THREE("n2", "n1", "n2"), A(SERVED_A("3", "'n2','n1'")), true);
    assert_same_id(w, THREE("n3", "n1", "n2"), A(SERVED_A("3", "'n3','n1','n2'")), true);
    assert_ok(quoted_strategy(THREE("n2", "n1", "n1"), &w->model, &w->cluster, &s, &err));
    assert_non_null(s.variables[0].each); /* no list of servers, taken in turn, comes to this */
    strategy_release(&s);
    assert_ok(quoted_strategy(THREE("n2", "n2", "n1"), &w->model, &w->cluster, &s, &err));
    assert_non_null(s.variables[0].each);
    strategy_release(&s);
}

#define PULLED(schedule, a) HEAD "'schedule':{'policy':" schedule "}," GROUPS "'variables':[" a "," H "," S "]}"
#define PULLED_A            "{'name':'a'," SERVED_A("2", "'n1'") "}"
#define LIMITED             "'priority','credit_bytes':0"

/* A strategy without "pulls" is what it was before. */
static void pulls_by_priority_are_another_strategy_where_they_can_wait(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(quoted_strategy(PULLED(LIMITED ",'pulls':'priority'", PULLED_A), &w->model, &w->cluster, &s, &err));
    assert_true(s.pulls_by_priority && strategy_orders_pulls(&s));
    strategy_release(&s);
    assert_same_id(w, PULLED(LIMITED, PULLED_A), PULLED(LIMITED ",'pulls':'priority'", PULLED_A), false);
    assert_same_id(w, PULLED(LIMITED, PULLED_A), PULLED(LIMITED ",'pulls':'at_once'", PULLED_A), true);
    assert_same_id(w, PULLED("'priority'", PULLED_A), PULLED("'priority','pulls':'priority'", PULLED_A), true);
    assert_same_id(w, PULLED(LIMITED, REDUCED("a", "0")), PULLED(LIMITED ",'pulls':'priority'", REDUCED("a", "0")),
                   true);
}

static void the_id_says_what_is_done_and_not_what_it_is_called(void **state) {
    struct world *w = *state;
    const char *plain = VARIABLES(REDUCED("a", "0") "," H "," S);
    assert_same_id(w, plain,
                   "{'name':'t','schema':'syncopate.strategy/1'," FIFO GROUPS "'variables':[" S "," H
                   "," REDUCED("a", "0") "]}",
                   true);
    assert_same_id(w, plain,
                   HEAD FIFO "'groups':[{'id':1,'algorithm':'auto'},{'id':2},{'id':3}],'variables':[" REDUCED(
                       "a", "3") "," REDUCED("h", "1") "," REDUCED("s", "3") "]}",
                   true);
    assert_same_id(w, plain,
                   HEAD "'schedule':{'policy':'fifo','cross_iteration':false}," GROUPS "'variables':["
                        "{'name':'a','encoding':'none','partition':{'axis':1,'shards':1},"
                        "'sync':{'kind':'all_reduce','group':0}}," H "," S "]}",
                   true);
    assert_same_id(w, plain,
                   HEAD "'schedule':{'policy':'priority'}," GROUPS "'variables':[" REDUCED("a", "0") "," H "," S "]}",
                   false);
    assert_same_id(w, plain,
                   HEAD "'schedule':{'policy':'fifo','credit_bytes':0}," GROUPS
                        "'variables':[" REDUCED("a", "0") "," H "," S "]}",
                   false);
    assert_same_id(w, plain,
                   HEAD FIFO
                   "'groups':[{'id':0},{'id':7},{'id':8}],'variables':[" REDUCED("a", "0") "," H
                                                                                           "," REDUCED("s", "8") "]}",
                   false);
    assert_same_id(w, A(SERVED_A("2", "'n1','n2'")), A(SERVED_A("2", "'n2','n1'")), false);
    assert_same_id(w, A(SERVED_A("2", "'n1'")), A(SERVED_A("2", "'n1','n2'")), false);
    assert_same_id(w, A(SERVED_A("2", "'n1'")), A(SERVED_A("3", "'n1'")), false);
    assert_same_id(w, SLICED(SLICES), SLICED(SLICE("7", "16") "," SLICE("0", "60") "," SLICE("0", "40")), false);
    assert_same_id(w, SLICED(SLICES), SLICED(SLICE("0", "40") "," SLICE("7", "16") "," SLICE("0", "60")), false);
    assert_same_id(w, SLICED(SLICES),
                   SLICED_AS(SLICE("2", "60") "," SLICE("1", "16") "," SLICE("2", "40"),
                             "'groups':[{'id':1},{'id':2}],",
                             REDUCED("s", "2") "," REDUCED("h", "1") "," REDUCED("a", "2")),
                   true);
}

/* A random model, cluster and strategy, sealed. */
struct trio {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
};

static void draw_trio(struct rng *rng, struct trio *t) {
    struct error err = {0};
    assert_ok(random_model(rng, &t->model, &err));
    assert_ok(random_cluster(rng, &t->cluster, &err));
    assert_ok(any_strategy(rng, &t->model, &t->cluster, &t->strategy, &err));
    assert_ok(strategy_seal(&t->strategy, &t->model, &t->cluster, &err));
}

static void release_trio(struct trio *t) {
    strategy_release(&t->strategy);
    model_release(&t->model);
    cluster_release(&t->cluster);
}

static char *written(const struct trio *t, const struct strategy *s) {
    cJSON *json = strategy_write(s, &t->model, &t->cluster);
    assert_non_null(json);
    char *text = json_pretty(json);
    assert_non_null(text);
    cJSON_Delete(json);
    return text;
}

static void what_is_written_reads_back_the_same(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 500; round++) {
        struct trio t;
        struct strategy again;
        cJSON *json = NULL;
        draw_trio(&rng, &t);
        char *first = written(&t, &t.strategy);
        assert_ok(json_parse(first, strlen(first), "again", &json, &err));
        shuffle_members(&rng, json);
        assert_ok(strategy_read(json, "again", &t.model, &t.cluster, &again, &err));
        char *second = written(&t, &again);
        assert_string_equal(first, second);
        assert_string_equal(t.strategy.id.hex, again.id.hex);
        cJSON_Delete(json);
        free(first);
        free(second);
        strategy_release(&again);
        release_trio(&t);
    }
}

static void the_id_is_the_hash_of_the_description_without_its_name(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 1);
    for (int round = 0; round < 200; round++) {
        struct trio t;
        struct id id;
        draw_trio(&rng, &t);
        cJSON *json = strategy_write(&t.strategy, &t.model, &t.cluster);
        cJSON_DeleteItemFromObject(json, "name");
        char *want = json_canonical(json), *got = strategy_canonical(&t.strategy, &t.model, &t.cluster);
        assert_string_equal(got, want);
        assert_ok(id_of(want, strlen(want), &id, &err));
        assert_string_equal(t.strategy.id.hex, id.hex);
        free(want);
        free(got);
        cJSON_Delete(json);
        release_trio(&t);
    }
}

/* Give every group another number: the groups in a random order, with gaps. */
static void renumber(struct rng *rng, struct strategy *s) {
    uint32_t n = s->n_groups, to[256];
    struct group *groups = arena_alloc(&s->arena, n + 3, sizeof *groups);
    assert_true(groups && n + 3 < 256);
    for (uint32_t g = 0; g < n + 3; g++)
        to[g] = g;
    rng_shuffle(rng, n + 3, to);
    for (uint32_t g = 0; g < n; g++)
        groups[to[g]] = s->groups[g];
    for (uint32_t g = 0; g < n + 3; g++)
        groups[g].id = 10 * g;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (sync_part(&s->variables[v], k)->kind == SYNC_ALL_REDUCE)
                sync_edit_part(&s->variables[v], k)->group = to[sync_part(&s->variables[v], k)->group];
    for (uint32_t i = 0; i < s->n_slices; i++)
        s->slices[i].group = to[s->slices[i].group];
    s->groups = groups;
    s->n_groups = n + 3;
}

static void sealing_forgets_group_numbers_and_empty_groups(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 2);
    for (int round = 0; round < 300; round++) {
        struct trio t;
        struct strategy other;
        bool used[256] = {false};
        draw_trio(&rng, &t);
        assert_ok(strategy_copy(&t.strategy, "other", &other, &err));
        renumber(&rng, &other);
        assert_ok(strategy_seal(&other, &t.model, &t.cluster, &err));
        assert_string_equal(t.strategy.id.hex, other.id.hex);
        assert_int_equal(t.strategy.n_groups, other.n_groups);
        for (uint32_t v = 0, next = 0; v < other.n_variables; v++)
            for (uint32_t k = 0; k < sync_parts(&other.variables[v]); k++) {
                const struct variable_sync *part = sync_part(&other.variables[v], k);
                if (part->kind != SYNC_ALL_REDUCE)
                    continue;
                assert_true(part->group <= next); /* numbered by first member */
                next += part->group == next;
                used[part->group] = true;
            }
        for (uint32_t g = 0; g < other.n_groups; g++)
            assert_true(used[g] && other.groups[g].id == g);
        strategy_release(&other);
        release_trio(&t);
    }
}

static void a_copy_shares_nothing_with_its_original(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 3);
    for (int round = 0; round < 200; round++) {
        struct trio t;
        struct strategy copy;
        draw_trio(&rng, &t);
        assert_ok(strategy_copy(&t.strategy, t.strategy.name, &copy, &err));
        assert_string_equal(copy.id.hex, t.strategy.id.hex);
        char *before = written(&t, &t.strategy), *same = written(&t, &copy);
        assert_string_equal(before, same);
        for (uint32_t g = 0; g < copy.n_groups; g++)
            copy.groups[g].partition_bytes += 4096;
        for (uint32_t i = 0; i < copy.n_slices; i++)
            copy.slices[i].bytes = 1;
        for (uint32_t v = 0; v < copy.n_variables; v++) {
            for (uint32_t k = 0; k < copy.variables[v].n_servers; k++)
                ((uint32_t *)copy.variables[v].servers)[k] = 0;
            for (uint32_t k = 0; copy.variables[v].each && k < copy.variables[v].shards; k++) {
                struct variable_sync *part = &copy.variables[v].each[k];
                for (uint32_t i = 0; i < part->n_servers; i++)
                    ((uint32_t *)part->servers)[i] = 0;
                part->kind = SYNC_ALL_REDUCE;
            }
            copy.variables[v].shards = 1;
        }
        char *after = written(&t, &t.strategy);
        assert_string_equal(before, after);
        strategy_release(&t.strategy);
        for (uint32_t v = 0; v < copy.n_variables; v++) /* still there: ASan would tell */
            for (uint32_t k = 0; k < copy.variables[v].n_servers; k++)
                assert_int_equal(copy.variables[v].servers[k], 0);
        assert_string_equal(copy.name, "any");
        free(before);
        free(same);
        free(after);
        strategy_release(&copy);
        release_trio(&t);
    }
}

static void every_change_changes_the_id(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    uint32_t changed = 0;
    rng_seed(&rng, test_seed() + 4);
    for (int round = 0; round < 90; round++) {
        struct trio t;
        struct strategy other;
        draw_trio(&rng, &t);
        for (uint32_t k = 2;; k++) { /* after schema and name */
            uint32_t left = k;
            cJSON *json = strategy_write(&t.strategy, &t.model, &t.cluster), *node = leaf(json, &left);
            if (node)
                change_leaf(node);
            bool group_id = node && strcmp(node->string ? node->string : "", "id") == 0;
            if (node && !group_id && strategy_read(json, "changed", &t.model, &t.cluster, &other, &err) == ST_OK) {
                assert_string_not_equal(t.strategy.id.hex, other.id.hex);
                strategy_release(&other);
                changed++;
            }
            cJSON_Delete(json);
            if (!node)
                break;
        }
        release_trio(&t);
    }
    print_message("# %u changes of one value\n", changed);
    assert_true(changed > 300);
}

static void a_new_strategy_is_one_whole_all_reduce(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    assert_ok(strategy_init(&s, "new", &w->model, 2, &err));
    assert_int_equal(s.policy, POLICY_fifo);
    assert_true(s.credit_bytes == CREDIT_UNLIMITED && !s.cross_iteration);
    for (uint32_t v = 0; v < 3; v++) {
        assert_int_equal(s.variables[v].kind, SYNC_ALL_REDUCE);
        assert_int_equal(s.variables[v].group, 0);
        assert_int_equal(s.variables[v].shards, 1);
    }
    assert_fails(strategy_seal(&s, &w->model, &w->cluster, &err), ST_INVALID, "mixes \"a\" (f32) and \"h\" (f16)");
    s.variables[1].group = 1;
    assert_ok(strategy_seal(&s, &w->model, &w->cluster, &err));
    assert_int_equal(s.n_groups, 2);
    strategy_release(&s);
    assert_null(s.arena.blocks);
}

static void sealing_clears_what_belongs_to_the_other_kind(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    const uint32_t servers[] = {2};
    assert_ok(strategy_init(&s, "built", &w->model, 2, &err));
    s.variables[0] = (struct variable_sync){.axis = 9,
                                            .shards = 1,
                                            .n_servers = 1,
                                            .servers = servers,
                                            .local_reduction = true,
                                            .partition_bytes = 4096,
                                            .push = 9};
    s.variables[1] = (struct variable_sync){.shards = 1,
                                            .kind = SYNC_PARAMETER_SERVER,
                                            .group = 1,
                                            .n_servers = 1,
                                            .servers = servers,
                                            .local_reduction = true,
                                            .partition_bytes = 4096};
    assert_ok(strategy_seal(&s, &w->model, &w->cluster, &err));
    const struct variable_sync *a = &s.variables[0], *h = &s.variables[1];
    assert_int_equal(a->push, 0);
    assert_true(a->axis == 0 && a->n_servers == 0 && !a->servers && !a->local_reduction && a->partition_bytes == 0);
    assert_true(h->group == 0 && h->n_servers == 1 && h->local_reduction && h->partition_bytes == 4096);
    assert_int_equal(s.n_groups, 1);
    strategy_release(&s);
}

/* What a builder can get wrong although no file can say it. */
static void a_badly_built_strategy_is_refused(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct strategy s;
    const uint32_t nobody[] = {4};
    assert_ok(strategy_init(&s, "built", &w->model, 2, &err));
    s.variables[1].group = 1;
    assert_ok(strategy_check(&s, &w->model, &w->cluster, &err));
    struct variable_sync *a = &s.variables[0], good = *a;
    a->shards = 0;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"a\" is cut into 0 shards");
    *a = good;
    a->group = 2;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"a\" is in group 2 of 2");
    *a = good;
    a->kind = SYNC_PARAMETER_SERVER;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"a\" has no server");
    a->servers = nobody;
    a->n_servers = 1;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "server 4 but the cluster has 4 nodes");
    a->partition_bytes = 5;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"partition_bytes\" is 5");
    *a = good;
    a->shards = 2;
    struct variable_sync each[2] = {*a, *a};
    a->each = each;
    assert_ok(strategy_check(&s, &w->model, &w->cluster, &err));
    each[1].axis = 1;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID,
                 "shard 1: variable \"a\" is cut in one way, and its entry in another");
    each[1] = each[0];
    each[1].group = 2;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"a\" is in group 2 of 2");
    *a = good;
    s.groups[1].partition_bytes = 1000;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"partition_bytes\" is 1000");
    s.groups[1].partition_bytes = UINT64_MAX;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID,
                 "\"partition_bytes\" is 18446744073709551615");
    s.groups[1].partition_bytes = 0;
    s.credit_bytes = UINT64_C(1) << 60;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "a credit of 1152921504606846976 bytes");
    s.credit_bytes = UINT64_C(1) << 48;
    assert_ok(strategy_check(&s, &w->model, &w->cluster, &err));
    struct slice slices[] = {{0, 100}, {1, 16}};
    s.slices = slices;
    s.n_slices = 2;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "2 slices under policy fifo");
    s.policy = POLICY_preemptive;
    assert_ok(strategy_check(&s, &w->model, &w->cluster, &err));
    slices[1].group = 2;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "slice 1 is of group 2 of 2");
    slices[1] = (struct slice){1, 0};
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "slice 1 of group 1 is empty");
    slices[1].bytes = UINT64_MAX;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "takes 18446744073709551615 bytes");
    s.n_slices = STRATEGY_MAX_SLICES + 1;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID, "4000001 slices; at most 4000000");
    s.policy = POLICY_fifo;
    s.n_slices = 0;
    s.n_variables = 2;
    assert_fails(strategy_check(&s, &w->model, &w->cluster, &err), ST_INVALID,
                 "for 2 variables, but model \"m\" has 3");
    strategy_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_strategy_is_refused_at_its_place),
        cmocka_unit_test(each_bad_file_is_refused_with_a_reason),
        cmocka_unit_test(a_strategy_is_read_in_its_one_form),
        cmocka_unit_test(pushes_are_read_in_their_one_form),
        cmocka_unit_test(slices_are_read_in_their_order),
        cmocka_unit_test(sharded_parameters_are_read_in_their_one_form),
        cmocka_unit_test(micro_batches_are_read_in_their_one_form),
        cmocka_unit_test(shards_are_read_each_in_its_way),
        cmocka_unit_test(shards_that_are_alike_are_said_once),
        cmocka_unit_test(pulls_by_priority_are_another_strategy_where_they_can_wait),
        cmocka_unit_test(the_id_says_what_is_done_and_not_what_it_is_called),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(the_id_is_the_hash_of_the_description_without_its_name),
        cmocka_unit_test(sealing_forgets_group_numbers_and_empty_groups),
        cmocka_unit_test(a_copy_shares_nothing_with_its_original),
        cmocka_unit_test(every_change_changes_the_id),
        cmocka_unit_test(a_new_strategy_is_one_whole_all_reduce),
        cmocka_unit_test(sealing_clears_what_belongs_to_the_other_kind),
        cmocka_unit_test(a_badly_built_strategy_is_refused),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
