/* Clusters: what is refused and in which words, expansion, defaults, and that the id is the content's. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/descriptions.h"

#define HEAD             "{'schema':'syncopate.cluster/1','name':'c',"
#define NODE             "{'name':'n','count':3,'nic_gbit_per_s':1}"
#define NODES(nodes)     HEAD "'nodes':[" nodes "]}"
#define WITH(members)    HEAD "'nodes':[" NODE "]," members "}"
#define LINKS(links)     WITH("'links':[" links "]")
#define MEASURED(points) WITH("'measurements':[" points "]")
#define POINT            "{'operation':'all_reduce','algorithm':'ring','devices':3,'bytes':1024,'time_us':9}"

static const struct {
    const char *text, *says;
} bad_clusters[] = {
    {"7", "c.json: must be an object of schema \"syncopate.cluster/1\", not a number"},
    {"{'schema':'syncopate.model/1'}", "/schema: is \"syncopate.model/1\", but \"syncopate.cluster/1\" is needed"},
    {"{'schema':'syncopate.cluster/9'}", "/schema: \"syncopate.cluster/9\" is newer"},
    {HEAD "'nodez':[]}", "/nodez: unknown member \"nodez\"; did you mean \"nodes\"?"},
    {"{'schema':'syncopate.cluster/1','nodes':[" NODE "]}", "\"name\" is missing"},
    {"{'schema':'syncopate.cluster/1','name':'c'}", "\"nodes\" is missing"},
    {HEAD "'nodes':{}}", "/nodes: must be an array, not an object"},
    {NODES(""), "/nodes: a cluster needs at least one node"},
    {NODES("'n1'"), "/nodes/0: must be an object, not a string"},
    {NODES("{'nic_gbit_per_s':1}"), "/nodes/0: the member \"name\" is missing"},
    {NODES("{'name':'n'}"), "/nodes/0: the member \"nic_gbit_per_s\" is missing"},
    {NODES("{'name':'n','nic_gbit_per_s':0}"), "/nodes/0/nic_gbit_per_s: is 0"},
    {NODES("{'name':'n','nic_gbit_per_s':-10}"), "/nodes/0/nic_gbit_per_s: is -10"},
    {NODES("{'name':'n','nic_gbit_per_s':1e9}"), "/nodes/0/nic_gbit_per_s: is 1000000000"},
    {NODES("{'name':'n','nic_gbit_per_s':1e999}"), "/nodes/0/nic_gbit_per_s: a number too large"},
    {NODES("{'name':'n','nic_gbit_per_s':'10'}"), "/nodes/0/nic_gbit_per_s: must be a number, not a string"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'nic_latency_us':-1}"), "/nodes/0/nic_latency_us: is -1"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'count':0}"), "/nodes/0/count: is 0"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'count':2.5}"), "/nodes/0/count: is 2.5; it must be a whole number"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'count':20000}"), "/nodes/0/count: is 20000"},
    {NODES("{'name':'a','nic_gbit_per_s':1,'count':9000},{'name':'b','nic_gbit_per_s':1,'count':9000}"),
     "/nodes: more than 16384 nodes"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'devices':-1}"), "/nodes/0/devices: is -1"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'devices':65}"), "/nodes/0/devices: is 65"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'devices':0}"), "/nodes: no node has a device"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'devices':2}"), "\"device_link_gbyte_per_s\" is missing"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'device_link_gbyte_per_s':0}"), "/device_link_gbyte_per_s: is 0"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'compute_scale':0}"), "/nodes/0/compute_scale: is 0"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'device_memory_gbyte':0}"), "/nodes/0/device_memory_gbyte: is 0"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'memory_gbyte':'80'}"), "/nodes/0/memory_gbyte: must be a number"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'device':7}"), "/nodes/0/device: must be a string"},
    {NODES("{'name':'n','nic_gbit_per_s':1,'gpus':8}"), "/nodes/0/gpus: unknown member"},
    {NODES("{'name':'n','nic_gbit_per_s':1},{'name':'n','nic_gbit_per_s':1}"), "/nodes: two nodes are called \"n\""},
    {NODES("{'name':'n2','nic_gbit_per_s':1}," NODE), "/nodes: two nodes are called \"n2\""},
    {WITH("'links':3"), "/links: must be an array"},
    {LINKS("{'to':'n1','gbit_per_s':1}"), "/links/0: the member \"from\" is missing"},
    {LINKS("{'from':'n1','to':'n','gbit_per_s':1}"), "/links/0: \"to\": the cluster has no node \"n\""},
    {LINKS("{'from':'n1','to':'n2','gbit_per_s':1},{'from':'x','to':'n2','gbit_per_s':1}"),
     "/links/1: \"from\": the cluster has no node \"x\""},
    {LINKS("{'from':'n1','to':'n1','gbit_per_s':1}"), "/links/0: a link from a node to itself"},
    {LINKS("{'from':'n1','to':'n2','gbit_per_s':0}"), "/links/0/gbit_per_s: is 0"},
    {LINKS("{'from':'n1','to':'n2'}"), "/links/0: the member \"gbit_per_s\" is missing"},
    {LINKS("{'from':'n1','to':'n2','gbit_per_s':1,'latency':1}"), "/links/0/latency: unknown member"},
    {LINKS("{'from':'n1','to':'n2','gbit_per_s':1},{'from':'n2','to':'n1','gbit_per_s':1},"
           "{'from':'n1','to':'n2','gbit_per_s':2}"),
     "/links: two links from \"n1\" to \"n2\""},
    {WITH("'collectives':[]"), "/collectives: must be an object"},
    {WITH("'collectives':{'allreduce':{}}"), "/collectives/allreduce: unknown member"},
    {WITH("'collectives':{'all_reduce':{'startup_us':1}}"), "/collectives/all_reduce: the member \"per_byte_ns\""},
    {WITH("'collectives':{'all_reduce':{'startup_us':-1,'per_byte_ns':1}}"),
     "/collectives/all_reduce/startup_us: is -1"},
    {MEASURED("{'operation':'reduce','devices':2,'bytes':1,'time_us':1}"), "/measurements/0/operation: \"reduce\""},
    {MEASURED("{'operation':'all_reduce','bytes':1,'time_us':1}"),
     "/measurements/0: the member \"devices\" is missing"},
    {MEASURED("{'operation':'all_reduce','algorithm':'rings','devices':2,'bytes':1,'time_us':1}"),
     "/measurements/0/algorithm: \"rings\""},
    {MEASURED("{'operation':'all_reduce','algorithm':'all_gather','devices':2,'bytes':1,'time_us':1}"),
     "/measurements/0: all_gather is no all-reduce"},
    {MEASURED("{'operation':'push','algorithm':'ring','bytes':1,'time_us':1}"),
     "/measurements/0: \"algorithm\" belongs to all_reduce only"},
    {MEASURED("{'operation':'reduce_scatter','algorithm':'ring','devices':2,'bytes':1,'time_us':1}"),
     "/measurements/0: \"algorithm\" belongs to all_reduce only"},
    {MEASURED("{'operation':'all_gather','bytes':1,'time_us':1}"),
     "/measurements/0: the member \"devices\" is missing"},
    {MEASURED("{'operation':'all_gather','devices':2,'bytes':8,'time_us':1},"
              "{'operation':'all_gather','devices':2,'bytes':8,'time_us':2}"),
     "/measurements: all_gather (auto) of 8 bytes on 2 devices is measured twice"},
    {MEASURED("{'operation':'push','bytes':0,'time_us':1}"), "/measurements/0/bytes: is 0"},
    {MEASURED("{'operation':'push','bytes':1,'time_us':0}"), "/measurements/0/time_us: is 0; it must be above 0"},
    {MEASURED("{'operation':'push','bytes':1,'time_us':-1}"), "/measurements/0/time_us: is -1"},
    {MEASURED(POINT ",{'operation':'push','bytes':1024,'time_us':9}," POINT),
     "/measurements: all_reduce (ring) of 1024 bytes on 3 devices is measured twice"},
    {WITH("'runtime':1"), "/runtime: must be an object"},
    {WITH("'runtime':{'message_ns':1}"), "/runtime/message_ns: unknown member"},
    {WITH("'runtime':{'goodput':0}"), "/runtime/goodput: is 0"},
    {WITH("'runtime':{'goodput':1.01}"), "/runtime/goodput: is 1.01"},
    {WITH("'runtime':{'push_us':-1}"), "/runtime/push_us: is -1"},
    {WITH("'runtime':{'eager_bytes':-1}"), "/runtime/eager_bytes: is -1"},
    {WITH("'interference':[]"), "/interference: must be an object"},
    {WITH("'interference':{'latency':{}}"), "/interference/latency: unknown member"},
    {WITH("'interference':{'startup':{'compute':0}}"), "/interference/startup/compute: is 0"},
    {WITH("'interference':{'transfer':{'traffic':1.5}}"), "/interference/transfer/traffic: is 1.5"},
    {WITH("'interference':{'startup':{'beside':2}}"), "/interference/startup/beside: is 2"},
    {WITH("'interference':{'transfer':{'beside':0.5}}"), "/interference/transfer/beside: unknown member"},
    {WITH("'runtime':{'encode_gbyte_per_s':-1}"), "/runtime/encode_gbyte_per_s: is -1"},
};

static void each_bad_cluster_is_refused_at_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_clusters / sizeof *bad_clusters; i++) {
        struct error err = {0};
        struct cluster cluster = {.n_nodes = 77};
        assert_fails(quoted_cluster(bad_clusters[i].text, &cluster, &err), ST_INVALID, bad_clusters[i].says);
        assert_contains(ERROR_TEXT(&err), "c.json: ");
        assert_int_equal(cluster.n_nodes, 77);
    }
}

static void each_bad_file_is_refused_with_a_reason(void **state) {
    (void)state;
    for (const struct bad_file *f = bad_files(); f->path; f++) {
        struct error err = {0};
        struct cluster cluster;
        assert_fails(cluster_read_file(f->path, &cluster, &err), f->status, f->says);
    }
}

static void a_cluster_is_read_expanded_and_with_defaults(void **state) {
    (void)state;
    struct error err = {0};
    struct cluster c;
    assert_ok(quoted_cluster(
        HEAD "'nodes':[{'name':'s','devices':0,'nic_gbit_per_s':25,'device':'cpu'},"
             "{'name':'n','count':3,'devices':4,'device':'v100','nic_gbit_per_s':10,'nic_latency_us':50,"
             "'device_link_gbyte_per_s':12,'compute_scale':1.5,'device_memory_gbyte':32,'memory_gbyte':256},{'name':'x'"
             ",'nic_gbit_per_s':1}],"
             "'links':[{'from':'x','to':'s','gbit_per_s':2},{'from':'n1','to':'n3','gbit_per_s':0.5}],"
             "'collectives':{'all_reduce':{'startup_us':972,'per_byte_ns':1.97}},"
             "'measurements':[{'operation':'all_gather','devices':13,'bytes':512,'time_us':7},"
             "{'operation':'reduce_scatter','devices':13,'bytes':512,'time_us':8,'low_us':6,'high_us':9},"
             "{'operation':'pull','bytes':4,'time_us':1},"
             "{'operation':'all_reduce','devices':8,'bytes':4096,'time_us':20}," POINT
             ",{'operation':'all_reduce','devices':8,'bytes':1024,'time_us':10}],'runtime':{'push_us':3,"
             "'encode_gbyte_per_s':6},"
             "'interference':{'startup':{'compute':0.25,'beside':0.125},'transfer':{'compute':0.75,'traffic':0.5}}}",
        &c, &err));
    assert_int_equal(c.n_nodes, 5);
    assert_int_equal(c.n_devices, 13);
    const char *const names[] = {"s", "n1", "n2", "n3", "x"};
    const uint32_t first[] = {0, 0, 4, 8, 12}, devices[] = {0, 4, 4, 4, 1};
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(c.nodes[i].name, names[i]);
        assert_int_equal(c.nodes[i].first_device, first[i]);
        assert_int_equal(c.nodes[i].devices, devices[i]);
        assert_int_equal(cluster_find_node(&c, names[i]), i);
        for (uint32_t d = 0; d < devices[i]; d++)
            assert_int_equal(cluster_node_of_device(&c, first[i] + d), i);
    }
    assert_int_equal(cluster_find_node(&c, "n"), -1);
    assert_close(c.nodes[2].compute_scale, 1.5, 0);
    assert_close(c.nodes[2].device_memory_gbyte, 32, 0);
    assert_close(c.nodes[2].memory_gbyte, 256, 0);
    assert_close(c.nodes[2].nic_latency_us, 50, 0);
    assert_close(c.nodes[2].device_link_gbyte_per_s, 12, 0);
    assert_string_equal(c.nodes[4].device, "gpu");
    assert_close(c.nodes[4].compute_scale, 1, 0);
    assert_true(c.nodes[4].device_memory_gbyte == 0 && c.nodes[4].memory_gbyte == 0);
    assert_int_equal(c.n_links, 2); /* sorted by node */
    assert_int_equal(c.links[0].from, 1);
    assert_int_equal(c.links[0].to, 3);
    assert_close(c.links[0].gbit_per_s, 0.5, 0);
    assert_true(c.fixed_all_reduce);
    assert_close(c.all_reduce_startup_us, 972, 0);
    assert_close(c.all_reduce_per_byte_ns, 1.97, 0);
    assert_int_equal(c.n_measurements, 6);
    const uint64_t bytes[] = {1024, 4096, 1024, 4, 512, 512};
    const double times[] = {10, 20, 9, 1, 8, 7};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(c.measurements[i].bytes, bytes[i]);
        assert_close(c.measurements[i].time_us, times[i], 0);
    }
    assert_int_equal(c.measurements[2].algorithm, ALGORITHM_ring);
    assert_int_equal(c.measurements[3].devices, 2);
    assert_int_equal(c.measurements[4].operation, OPERATION_reduce_scatter);
    assert_int_equal(c.measurements[4].devices, 13);
    assert_close(c.measurements[4].high_us, 9, 0);
    assert_int_equal(c.measurements[5].operation, OPERATION_all_gather);
    assert_close(c.runtime.push_us, 3, 0);
    assert_close(c.runtime.encode_gbyte_per_s, 6, 0);
    assert_close(c.runtime.goodput, 1, 0);
    assert_close(c.in_startup.compute, 0.25, 0);
    assert_close(c.in_startup.traffic, 0, 0); /* not measured */
    assert_close(c.in_startup.beside, 0.125, 0);
    assert_close(c.in_transfer.compute, 0.75, 0);
    assert_close(c.in_transfer.traffic, 0.5, 0);
    cluster_release(&c);
    assert_null(c.arena.blocks);
}

static void servers_without_devices_never_own_a_device(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 300; round++) {
        struct cluster c;
        uint32_t device = 0;
        assert_ok(random_cluster(&rng, &c, &err));
        for (uint32_t i = 0; i < c.n_nodes; i++)
            for (uint32_t d = 0; d < c.nodes[i].devices; d++)
                assert_int_equal(cluster_node_of_device(&c, device++), i);
        assert_int_equal(device, c.n_devices);
        cluster_release(&c);
    }
}

static void what_is_written_reads_back_the_same(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 1);
    for (int round = 0; round < 500; round++) {
        struct cluster c, again;
        assert_ok(random_cluster(&rng, &c, &err));
        cJSON *json = cluster_write(&c);
        char *first = json_canonical(json), *line = json_line(json);
        cJSON_Delete(json);
        assert_ok(json_parse(line, strlen(line), "again", &json, &err));
        assert_ok(cluster_read(json, "again", &again, &err));
        cJSON_Delete(json);
        json = cluster_write(&again);
        char *second = json_canonical(json);
        assert_string_equal(first, second);
        assert_string_equal(c.id.hex, again.id.hex);
        cJSON_Delete(json);
        free(first);
        free(line);
        free(second);
        cluster_release(&c);
        cluster_release(&again);
    }
}

static void assert_same_id(const char *a, const char *b, bool same) {
    struct error err = {0};
    struct cluster x, y;
    assert_ok(quoted_cluster(a, &x, &err));
    assert_ok(quoted_cluster(b, &y, &err));
    if (strcmp(x.id.hex, y.id.hex) != 0 && same)
        print_error("%s\n%s\n", a, b);
    assert_int_equal(strcmp(x.id.hex, y.id.hex) == 0, same);
    cluster_release(&x);
    cluster_release(&y);
}

static void the_id_is_that_of_the_expanded_cluster(void **state) {
    (void)state;
    const char *plain = NODES("{'name':'n','count':2,'nic_gbit_per_s':1}");
    assert_same_id(plain, NODES("{'name':'n1','nic_gbit_per_s':1},{'name':'n2','nic_gbit_per_s':1.0}"), true);
    assert_same_id(plain,
                   HEAD "'runtime':{'goodput':1,'message_us':-0.0,'eager_bytes':0,'encode_gbyte_per_s':0},'links':[],"
                        "'measurements':[],'collectives':{},'interference':{'startup':{}},"
                        "'nodes':[{'nic_gbit_per_s':1,'count':2,'devices':1,'device':'gpu','nic_latency_us':0,"
                        "'compute_scale':1,'name':'n'}]}",
                   true);
    assert_same_id(LINKS("{'from':'n1','to':'n2','gbit_per_s':1},{'from':'n2','to':'n1','gbit_per_s':2}"),
                   LINKS("{'from':'n2','to':'n1','gbit_per_s':2},{'from':'n1','to':'n2','gbit_per_s':1}"), true);
    assert_same_id(HEAD "'interference':{'transfer':{'compute':0.5}},'nodes':[{'name':'n','nic_gbit_per_s':1}]}",
                   HEAD "'interference':{'startup':{'compute':0.5}},'nodes':[{'name':'n','nic_gbit_per_s':1}]}", false);
    assert_same_id(plain, NODES("{'name':'n2','nic_gbit_per_s':1},{'name':'n1','nic_gbit_per_s':1}"), false);
    assert_same_id(plain, NODES("{'name':'n','count':2,'nic_gbit_per_s':1.0000000000000002}"), false);
    assert_same_id(LINKS("{'from':'n1','to':'n2','gbit_per_s':1}"), LINKS("{'from':'n2','to':'n1','gbit_per_s':1}"),
                   false);
}

static void every_change_changes_the_id(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    uint32_t changed = 0;
    rng_seed(&rng, test_seed() + 2);
    for (int round = 0; round < 90; round++) {
        struct cluster c, other;
        assert_ok(random_cluster(&rng, &c, &err));
        for (uint32_t k = 0;; k++) {
            uint32_t left = k;
            cJSON *json = cluster_write(&c), *node = leaf(json, &left);
            if (node)
                change_leaf(node);
            if (node && cluster_read(json, "changed", &other, &err) == ST_OK) {
                assert_string_not_equal(c.id.hex, other.id.hex);
                cluster_release(&other);
                changed++;
            }
            cJSON_Delete(json);
            if (!node)
                break;
        }
        cluster_release(&c);
    }
    print_message("# %u changes of one value\n", changed);
    assert_true(changed > 500);
}

/* Every set with an all-reduce comes back as it was. */
static void sets_of_algorithms_are_read_and_written(void **state) {
    (void)state;
    static const char *const wrong[] = {"", ",", "ring,", ",ring", "rings", "rin", "ring tree", "Ring", "all_gather"};
    struct error err;
    uint32_t set;
    char names[ALGORITHMS_ROOM];
    for (uint32_t in = 1; in < 1u << ALGORITHM_COUNT; in++) {
        algorithms_write(in, names);
        if (in == 1u << ALGORITHM_all_gather)
            continue;
        assert_ok(algorithms_parse(names, &set, &err));
        assert_int_equal(set, in);
    }
    assert_ok(algorithms_parse("tree,ring,tree", &set, &err));
    assert_int_equal(set, 1u << ALGORITHM_ring | 1u << ALGORITHM_tree);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(algorithms_parse(wrong[i], &set, &err), ST_INVALID);
}

/* What a bench measures does not count, and a transport counts by what it means. */
static void clusters_are_the_same_but_for_what_was_measured(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {NODES(NODE), NODES(NODE), true},
        {NODES(NODE), MEASURED(POINT), true},
        {NODES(NODE), WITH("'runtime':{'message_us':7},'interference':{'startup':{'compute':0.5}}"), true},
        {NODES(NODE), WITH("'transport':'nccl'"), true},
        {NODES(NODE), WITH("'transport':'mpi'"), false},
        {NODES(NODE), WITH("'transport':'ideal'"), false},
        {WITH("'transport':'mpi'"), WITH("'transport':'mpi','measurements':[" POINT "]"), true},
        {NODES(NODE), NODES("{'name':'n','count':4,'nic_gbit_per_s':1}"), false},
        {NODES(NODE), NODES("{'name':'n','count':3,'nic_gbit_per_s':2}"), false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct error err;
        struct cluster a, b;
        bool same[2];
        assert_ok(quoted_cluster(pairs[i].a, &a, &err));
        assert_ok(quoted_cluster(pairs[i].b, &b, &err));
        assert_ok(cluster_is_same_but_measured(&a, &b, &same[0], &err));
        assert_ok(cluster_is_same_but_measured(&b, &a, &same[1], &err));
        if (same[0] != pairs[i].same || same[1] != pairs[i].same)
            fail_msg("%s and %s", pairs[i].a, pairs[i].b);
        cluster_release(&a);
        cluster_release(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_cluster_is_refused_at_its_place),
        cmocka_unit_test(each_bad_file_is_refused_with_a_reason),
        cmocka_unit_test(a_cluster_is_read_expanded_and_with_defaults),
        cmocka_unit_test(servers_without_devices_never_own_a_device),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(the_id_is_that_of_the_expanded_cluster),
        cmocka_unit_test(every_change_changes_the_id),
        cmocka_unit_test(sets_of_algorithms_are_read_and_written),
        cmocka_unit_test(clusters_are_the_same_but_for_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
