/* Features worked out by hand.
 *
 * The model is a chain of three layers, forward 10, 30, 50 us and backward 20, 40, 60 us, with a variable each: a and c
 * of 4000 bytes, b of 8000. Gradients are ready c, b, a at 60, 100, 120 us of a backward pass of 120 us; the forward
 * pass of 90 us needs a, b, c at 0, 10, 40 us. The cluster has n1 with two devices and n2 with one at 1000 bytes/us,
 * and s without devices at 500 bytes/us; an all-reduce takes 100 us + 0.01 us a byte, a push 5 us, a launch 3 us,
 * adding 1000 bytes 1 us, gathering 2000 bytes 1 us. */
#include "tests/support/feature_columns.h"
#include "tests/unit/featurize/instance.h"

#define MODEL                                                                                                          \
    "{'schema':'syncopate.model/1','name':'m','batch_per_device':8,'variables':["                                      \
    "{'name':'a','shape':[10,100],'dtype':'f32'},{'name':'b','shape':[2000],'dtype':'f32'},"                           \
    "{'name':'c','shape':[1000],'dtype':'f32'}],'layers':["                                                            \
    "{'name':'A','forward_us':10,'backward_us':20,'variables':['a']},"                                                 \
    "{'name':'B','forward_us':30,'backward_us':40,'variables':['b']},"                                                 \
    "{'name':'C','forward_us':50,'backward_us':60,'variables':['c']}]}"

/* One variable of 10 rows of 400 bytes; `sparse` may say that few of them are touched. */
#define TABLE(sparse)                                                                                                  \
    "{'schema':'syncopate.model/1','name':'m','batch_per_device':8,'variables':["                                      \
    "{'name':'a','shape':[10,100],'dtype':'f32'" sparse "}],'layers':["                                                \
    "{'name':'A','forward_us':1,'backward_us':2,'variables':['a']}]}"

#define CLUSTER                                                                                                        \
    "{'schema':'syncopate.cluster/1','name':'c','transport':'ideal','nodes':["                                         \
    "{'name':'n1','devices':2,'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':0,'device_link_gbyte_per_s':10},"     \
    "{'name':'n2','devices':1,'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':1,'device_link_gbyte_per_s':10},"     \
    "{'name':'s','devices':0,'device':'cpu','nic_gbit_per_s':4,'nic_latency_us':0,'device_link_gbyte_per_s':10}],"     \
    "'collectives':{'all_reduce':{'startup_us':100,'per_byte_ns':10}},"                                                \
    "'runtime':{'push_us':5,'message_us':3,'coordination_us':7,'sum_gbyte_per_s':4,'copy_gbyte_per_s':2}}"

#define STRATEGY(schedule, groups, variables)                                                                          \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{" schedule "},'groups':[" groups                          \
    "],'variables':[" variables "]}"

/* c all-reduced alone; b on s, pushed by every device in two halves; a on n2 after local reduction. */
#define MIXED                                                                                                          \
    STRATEGY("'policy':'fifo','credit_bytes':4000,'cross_iteration':true", "{'id':0,'algorithm':'ring'}",              \
             "{'name':'a','sync':{'kind':'parameter_server','servers':['n2'],'local_reduction':true}},"                \
             "{'name':'b','sync':{'kind':'parameter_server','servers':['s'],'local_reduction':false,'partition_bytes'" \
             ":4000}},"                                                                                                \
             "{'name':'c','sync':{'kind':'all_reduce','group':0}}")

/* b and c merged and cut into halves of 6000 bytes, c and the first 2000 bytes of b, then the rest; a for itself. */
#define MERGED(schedule)                                                                                               \
    STRATEGY(schedule, "{'id':0,'algorithm':'tree','partition_bytes':6000},{'id':1,'algorithm':'auto'}",               \
             "{'name':'a','sync':{'kind':'all_reduce','group':1}},"                                                    \
             "{'name':'b','sync':{'kind':'all_reduce','group':0}},"                                                    \
             "{'name':'c','sync':{'kind':'all_reduce','group':0}}")

enum { ROW_C, ROW_B, ROW_A };

/* a in four shards of 3, 3, 2 and 2 rows: two by all-reduce in one group, alike, then one served by n2 and one in
 * another group as f16. */
static void shards_with_ways_of_their_own_have_rows_of_their_own(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, TABLE(""), CLUSTER,
                  STRATEGY("'policy':'fifo'", "{'id':0,'algorithm':'ring'},{'id':1,'algorithm':'tree'}",
                           "{'name':'a','partition':{'shards':4},'each_shard':["
                           "{'sync':{'kind':'all_reduce','group':0}},{'sync':{'kind':'all_reduce','group':0}},"
                           "{'sync':{'kind':'parameter_server','servers':['n2']}},"
                           "{'encoding':'f16','sync':{'kind':'all_reduce','group':1}}]}"));
    assert_int_equal(in.features.n_shards, 3);
    assert_int_equal(in.features.partitions, 4);
    static const double weight[] = {2, 1, 1}, bytes[] = {1200, 800, 400}, served[] = {0, 1, 0}, half[] = {0, 0, 1};
    for (size_t row = 0; row < 3; row++) {
        assert_true(instance_weight(&in, row) == weight[row]);
        SHARD_COUNTS(&in, row, log2_bytes, bytes[row]);
        SHARD_IS(&in, row, server, served[row]);
        SHARD_IS(&in, row, encoding_f16, half[row]);
    }
    SHARD_IS(&in, 0, algorithm_ring, 1);
    SHARD_COUNTS(&in, 0, log2_group_bytes, 2400);
    SHARD_COUNTS(&in, 0, log2_group_members, 2);
    SHARD_IS(&in, 1, algorithm_ring, 0);
    SHARD_IS(&in, 2, algorithm_tree, 1);
    SHARD_COUNTS(&in, 2, log2_group_bytes, 400);
    GLOBAL_IS(&in, server_share, 0.2);
    GLOBAL_IS(&in, all_reduce_share, 0.8);
    GLOBAL_IS(&in, encoded_share, 0.2);
    GLOBAL_IS(&in, share_ring, 0.6);
    instance_close(&in);
}

static void equation_2_of_a_served_variable_adds_up_all_other_nodes(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    assert_int_equal(in.features.n_shards, 3);
    assert_int_equal(in.features.partitions, 3);
    /* b: two devices of n1 and one of n2 send 8000 bytes at 500 bytes/us: 3 * 16 us, in two messages each. */
    SHARD_COUNTS(&in, ROW_B, log2_ps_transfer_us, 48);
    SHARD_COUNTS(&in, ROW_B, log2_ps_overheads, 6);
    SHARD_COUNTS(&in, ROW_B, log2_ps_constants, 2);
    /* a: n1 sends its sum of 4000 bytes at 1000 bytes/us, n2 is the server's own node. */
    SHARD_COUNTS(&in, ROW_A, log2_ps_transfer_us, 4);
    SHARD_COUNTS(&in, ROW_A, log2_ps_overheads, 1);
    SHARD_COUNTS(&in, ROW_A, log2_ps_constants, 1);
    SHARD_IS(&in, ROW_C, log2_ps_transfer_us, 0.0);
    SHARD_IS(&in, ROW_C, log2_ps_constants, 0.0);
    GLOBAL_COUNTS(&in, log2_ps_transfer_max_us, 48);
    GLOBAL_COUNTS(&in, log2_ps_transfer_mean_us, 26);
    GLOBAL_COUNTS(&in, log2_ps_overheads_max, 6);
    GLOBAL_COUNTS(&in, log2_ps_overheads_mean, 3.5);
    GLOBAL_COUNTS(&in, log2_ps_constants_max, 2);
    GLOBAL_COUNTS(&in, log2_ps_constants_mean, 1.5);
    instance_close(&in);
}

static void an_all_reduced_variable_bears_its_share_of_its_messages(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'fifo'"));
    /* Both halves cost 100 + 60 us. c has 4000 of the first's 6000 bytes, b the rest and the second. */
    SHARD_COUNTS(&in, ROW_C, log2_cc_startup_us, 200.0 / 3);
    SHARD_COUNTS(&in, ROW_C, log2_cc_transfer_us, 40);
    SHARD_COUNTS(&in, ROW_C, log2_cc_messages, 2.0 / 3);
    SHARD_COUNTS(&in, ROW_B, log2_cc_startup_us, 400.0 / 3);
    SHARD_COUNTS(&in, ROW_B, log2_cc_transfer_us, 80);
    SHARD_COUNTS(&in, ROW_B, log2_cc_messages, 4.0 / 3);
    SHARD_COUNTS(&in, ROW_B, log2_messages, 2);
    SHARD_COUNTS(&in, ROW_A, log2_cc_startup_us, 100);
    SHARD_COUNTS(&in, ROW_A, log2_cc_transfer_us, 40);
    GLOBAL_COUNTS(&in, log2_cc_startup_max_us, 400.0 / 3);
    GLOBAL_COUNTS(&in, log2_cc_startup_mean_us, 100);
    GLOBAL_COUNTS(&in, log2_cc_transfer_max_us, 80);
    GLOBAL_COUNTS(&in, log2_cc_transfer_mean_us, 160.0 / 3);
    GLOBAL_COUNTS(&in, log2_cc_messages_max, 4.0 / 3);
    GLOBAL_COUNTS(&in, log2_cc_messages_mean, 1);
    GLOBAL_IS(&in, log2_ps_transfer_max_us, 0.0);
    instance_close(&in);
}

static void the_closed_form_takes_the_busiest_nic_and_all_all_reduces(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    /* s receives for 48 us of transfer, 6 pushes of 5 us and 2 launches of 3 us = 84 us; n1 sends 2 * (16 + 2 * 5) + 2
     * * 3 us to s and 4 + 5 + 3 us to n2 = 70 us. The all-reduce takes 100 + 40 us. Computation is 210 us. */
    GLOBAL_COUNTS(&in, log2_closed_sync_us, 84 + 140);
    GLOBAL_COUNTS(&in, log2_closed_form_us, 224);
    GLOBAL_IS(&in, log2_sync_over_compute, log2(225.0 / 211.0));
    GLOBAL_IS(&in, log2_timeline_over_closed, log2(401.0 / 225.0));
    instance_close(&in);
}

static void a_worker_that_sends_more_than_any_server_receives_decides(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo'", "{'id':0,'algorithm':'ring'}",
                           "{'name':'a','sync':{'kind':'parameter_server','servers':['s'],'local_reduction':false}},"
                           "{'name':'b','sync':{'kind':'parameter_server','servers':['n2'],'local_reduction':false}},"
                           "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    /* n1's two devices send a for 2 * (4000 / 500 + 5) + 3 us and b for 2 * (8000 / 1000 + 5) + 3 us = 58 us. s
     * receives for 3 * (8 + 5) + 3 = 42 us, n2 for 2 * (8 + 5) + 3 = 29 us. */
    GLOBAL_COUNTS(&in, log2_closed_sync_us, 58 + 140);
    /* n2 adds up n1's two pushes of b and its own: 24000 bytes at 4000 bytes/us; s three of 4000. */
    GLOBAL_COUNTS(&in, log2_sum_us, 6);
    instance_close(&in);
}

static void nics_carry_pushes_and_the_all_reduce(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    /* The all-reduce holds the narrowest NIC, 1000 bytes/us, for 40 us: 40000 bytes through n1 and n2. Pushes: n1 sends
     * 2 * 8000 + 4000, n2 sends 8000 and receives 4000, s receives 24000, which take it 48 us; n1's 60000 take 60 us.
     */
    GLOBAL_COUNTS(&in, log2_nic_bytes_max, 60000);
    GLOBAL_COUNTS(&in, log2_nic_bytes_mean, (60000 + 52000 + 24000) / 3.0);
    GLOBAL_IS(&in, log2_nic_imbalance, log2(60001.0 / (1 + 136000 / 3.0)));
    GLOBAL_COUNTS(&in, log2_nic_us, 60);
    GLOBAL_IS(&in, log2_nic_over_compute, log2(61.0 / 211.0));
    GLOBAL_COUNTS(&in, log2_pushes, 7);
    GLOBAL_COUNTS(&in, log2_sum_us, 6); /* 3 * 8000 bytes at 4000 bytes/us on s */
    /* Served: 8000 bytes at 500 bytes/us = 16 us on s, 4000 at 1000 = 4 us on n2, none on n1. */
    GLOBAL_COUNTS(&in, log2_servers, 2);
    GLOBAL_IS(&in, log2_server_imbalance, log2(16 * 3 / 20.0));
    SHARD_COUNTS(&in, ROW_B, log2_server_load, 16 * 3 / 20.0);
    SHARD_COUNTS(&in, ROW_A, log2_server_load, 4 * 3 / 20.0);
    SHARD_IS(&in, ROW_B, log2_server_rate, log2(500 * 3 / 2500.0));
    SHARD_COUNTS(&in, ROW_A, log2_server_devices, 1);
    SHARD_IS(&in, ROW_B, log2_server_devices, 0.0);
    instance_close(&in);
}

static void messages_are_counted_priced_and_placed(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'priority','credit_bytes':0,'cross_iteration':true"));
    GLOBAL_COUNTS(&in, log2_messages, 3);
    GLOBAL_COUNTS(&in, log2_all_reduces, 3);
    GLOBAL_COUNTS(&in, log2_messages_10k, 3);
    GLOBAL_IS(&in, log2_messages_100k, 0.0);
    GLOBAL_COUNTS(&in, log2_startup_us, 300);
    GLOBAL_COUNTS(&in, log2_transfer_us, 160);
    GLOBAL_COUNTS(&in, log2_launch_us, 3 * (3 + 7));
    GLOBAL_IS(&in, log2_startup_over_compute, log2(301 / 211.0));
    GLOBAL_IS(&in, log2_transfer_over_compute, log2(161 / 211.0));
    GLOBAL_IS(&in, log2_launch_over_compute, log2(31 / 211.0));
    /* Only the first half holds two gradients: 6000 bytes at 2000 bytes/us. */
    GLOBAL_COUNTS(&in, log2_copy_us, 3);
    GLOBAL_IS(&in, log2_window, 0.0);
    /* Both halves are ready with b at 100 of 120 us, a at 120; c's 4000 bytes wait 40 us. */
    GLOBAL_IS(&in, ready_share, (12000 * 100 + 4000 * 120) / (16000 * 120.0));
    GLOBAL_IS(&in, first_ready_share, 100 / 120.0);
    GLOBAL_IS(&in, wait_share, 4000 * 40 / (16000 * 120.0));
    SHARD_IS(&in, ROW_C, wait_share, 40 / 120.0);
    SHARD_IS(&in, ROW_B, wait_share, 0.0);
    /* Needed: both halves with b at 10 of 90 us, a at once. */
    GLOBAL_IS(&in, gate_share, 12000 * 10 / (16000 * 90.0));
    GLOBAL_COUNTS(&in, log2_last_bytes, 4000);
    instance_close(&in);
}

/* b and c share a group of sharded parameters: two gathers and a reduce-scatter of 12000 bytes, 50 + 60 us each. Only
 * the last of them carries gradients. */
static void of_sharded_parameters_the_sums_say_when_and_all_three_cost(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo'", "{'id':0,'sharded':'parameters'},{'id':1}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':1}},"
                           "{'name':'b','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    SHARD_COUNTS(&in, ROW_C, log2_bytes, 4000);
    SHARD_COUNTS(&in, ROW_C, log2_messages, 3);
    SHARD_COUNTS(&in, ROW_C, log2_message_bytes, 12000);
    SHARD_COUNTS(&in, ROW_C, log2_cc_messages, 1);
    SHARD_COUNTS(&in, ROW_C, log2_cc_startup_us, 50);
    SHARD_COUNTS(&in, ROW_C, log2_cc_transfer_us, 60);
    GLOBAL_COUNTS(&in, log2_all_reduces, 4);
    GLOBAL_COUNTS(&in, log2_startup_us, 3 * 50 + 100);
    GLOBAL_COUNTS(&in, log2_transfer_us, 3 * 60 + 40);
    /* The sum is ready with b at 100 of 120 us, a at 120; c's 4000 bytes wait 40 us. */
    GLOBAL_IS(&in, ready_share, (12000 * 100 + 4000 * 120) / (16000 * 120.0));
    GLOBAL_IS(&in, wait_share, 4000 * 40 / (16000 * 120.0));
    SHARD_IS(&in, ROW_C, wait_share, 40 / 120.0);
    SHARD_IS(&in, ROW_B, wait_share, 0.0);
    /* The forward pass needs what was gathered with b, at 10 of 90 us; before the update it is a that comes last. */
    GLOBAL_IS(&in, gate_share, 12000 * 10 / (16000 * 90.0));
    GLOBAL_COUNTS(&in, log2_last_bytes, 4000);
    instance_close(&in);
}

/* b and c are encoded together in blocks of 1600 elements: 3000 elements, 1 byte each, and two scales. */
static void an_encoded_message_is_shared_out_by_the_bytes_before(void **state) {
    (void)state;
    struct instance in;
    instance_open(
        &in, MODEL, CLUSTER,
        STRATEGY("'policy':'fifo'", "{'id':0},{'id':1}",
                 "{'name':'a','encoding':{'kind':'powersgd','rank':2},'sync':{'kind':'all_reduce','group':1}},"
                 "{'name':'b','sync':{'kind':'all_reduce','group':0}},"
                 "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    GLOBAL_IS(&in, encoded_share, 0.25);
    GLOBAL_IS(&in, powersgd_share, 0.25);
    SHARD_IS(&in, ROW_A, encoding_powersgd, 1);
    SHARD_IS(&in, ROW_A, encoding_none, 0);
    SHARD_IS(&in, ROW_C, encoding_powersgd, 0);
    instance_close(&in);
}

static void the_timeline_enters_as_times_and_as_parts_of_the_iteration(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    GLOBAL_COUNTS(&in, log2_timeline_us, 400);
    GLOBAL_COUNTS(&in, log2_compute_us, 210);
    GLOBAL_COUNTS(&in, log2_exposed_us, 190);
    GLOBAL_COUNTS(&in, log2_busy_us, 300);
    GLOBAL_COUNTS(&in, log2_queue_us, 80);
    GLOBAL_IS(&in, compute_share, 0.525);
    GLOBAL_IS(&in, exposed_share, 0.475);
    GLOBAL_IS(&in, busy_share, 0.75);
    GLOBAL_COUNTS(&in, log2_queue_share, 80 / (4 * 400.0)); /* four messages */
    assert_true(in.features.timeline_us == 400);
    instance_close(&in);
}

static void knobs_of_a_mixed_strategy(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    GLOBAL_IS(&in, server_share, 0.75);
    GLOBAL_IS(&in, all_reduce_share, 0.25);
    GLOBAL_IS(&in, share_ring, 0.25);
    GLOBAL_IS(&in, share_tree, 0.0);
    GLOBAL_IS(&in, local_reduction_share, 0.25);
    GLOBAL_COUNTS(&in, log2_groups, 1);
    GLOBAL_COUNTS(&in, log2_group_bytes, 4000);
    GLOBAL_COUNTS(&in, log2_message_bytes, 4000);
    GLOBAL_COUNTS(&in, log2_largest_message, 4000);
    GLOBAL_IS(&in, log2_partition, 0.5 * log2(4001) + 0.5 * log2(16001)); /* b's, and whole for a and c */
    GLOBAL_COUNTS(&in, log2_credit, 4000);
    GLOBAL_COUNTS(&in, log2_window, 1); /* beside the one in flight the credit holds one of mean size */
    GLOBAL_IS(&in, stop_and_wait, 0.0);
    GLOBAL_IS(&in, unlimited, 0.0);
    GLOBAL_IS(&in, fifo, 1.0);
    GLOBAL_IS(&in, priority, 0.0);
    GLOBAL_IS(&in, cross_iteration, 1.0);
    GLOBAL_IS(&in, cut_share, 0.0);
    instance_close(&in);
}

/* a in halves, b's parameters sharded and kept, c in blocks of int8: a quarter of the bytes, a half, a quarter. One
 * all-gather of a's variables and one of b's parameters. */
static void what_is_sharded_kept_gathered_ahead_and_encoded(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo','forward_prefetch':0",
                           "{'id':0,'sharded':'optimizer'},"
                           "{'id':1,'sharded':'parameters','reshard_after_forward':false},{'id':2}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'b','sync':{'kind':'all_reduce','group':1}},"
                           "{'name':'c','encoding':{'kind':'int8'},'sync':{'kind':'all_reduce','group':2}}"));
    GLOBAL_IS(&in, sharded_optimizer_share, 0.25);
    GLOBAL_IS(&in, sharded_gradients_share, 0);
    GLOBAL_IS(&in, sharded_parameters_share, 0.5);
    GLOBAL_IS(&in, kept_share, 0.5);
    GLOBAL_IS(&in, encoded_share, 0.25);
    GLOBAL_IS(&in, int8_share, 0.25);
    GLOBAL_IS(&in, topk_share, 0);
    GLOBAL_COUNTS(&in, log2_gathers, 2);
    GLOBAL_COUNTS(&in, log2_forward_prefetch, 0);
    GLOBAL_COUNTS(&in, log2_backward_prefetch, 1);
    GLOBAL_COUNTS(&in, log2_shard_group, 3);
    static const double halves[] = {0, 0, 1}, shards[] = {0, 1, 0}, int8[] = {1, 0, 0};
    for (size_t row = ROW_C; row <= ROW_A; row++) {
        SHARD_IS(&in, row, sharded_optimizer, halves[row]);
        SHARD_IS(&in, row, sharded_gradients, 0);
        SHARD_IS(&in, row, sharded_parameters, shards[row]);
        SHARD_IS(&in, row, kept, shards[row]);
        SHARD_IS(&in, row, encoding_int8, int8[row]);
        SHARD_IS(&in, row, encoding_none, 1 - int8[row]);
    }
    instance_close(&in);
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo'", "{'id':0,'sharded':'gradients'},{'id':1}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'b','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'c','encoding':{'kind':'topk'},'sync':{'kind':'all_reduce','group':1}}"));
    GLOBAL_IS(&in, sharded_gradients_share, 0.75);
    GLOBAL_IS(&in, topk_share, 0.25);
    GLOBAL_COUNTS(&in, log2_backward_prefetch, 0);
    SHARD_IS(&in, ROW_A, sharded_gradients, 1);
    SHARD_IS(&in, ROW_C, encoding_topk, 1);
    instance_close(&in);
    instance_open(
        &in, MODEL, CLUSTER,
        STRATEGY("'policy':'fifo'", "{'id':0},{'id':1}",
                 "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                 "{'name':'b','encoding':{'kind':'powersgd','rank':2},'sync':{'kind':'all_reduce','group':1}},"
                 "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    GLOBAL_IS(&in, encoded_share, 0.5);
    GLOBAL_IS(&in, powersgd_share, 0.5);
    SHARD_IS(&in, ROW_B, encoding_powersgd, 1);
    SHARD_IS(&in, ROW_B, encoding_none, 0);
    SHARD_IS(&in, ROW_C, encoding_powersgd, 0);
    instance_close(&in);
}

/* c all-reduced, b served in two messages, a in one. */
#define ACCUMULATED(how)                                                                                               \
    STRATEGY("'policy':'fifo'" how, "{'id':0,'algorithm':'ring'}",                                                     \
             "{'name':'a','sync':{'kind':'parameter_server','servers':['n2'],'local_reduction':true}},"                \
             "{'name':'b','sync':{'kind':'parameter_server','servers':['s'],'local_reduction':false,'partition_bytes'" \
             ":4000}},"                                                                                                \
             "{'name':'c','sync':{'kind':'all_reduce','group':0}}")

static void micro_batches_count_by_how_often_gradients_are_summed(void **state) {
    (void)state;
    static const enum feature_global alike[] = {
        FEATURE_GLOBAL_ready_share,        FEATURE_GLOBAL_first_ready_share,
        FEATURE_GLOBAL_wait_share,         FEATURE_GLOBAL_gate_share,
        FEATURE_GLOBAL_log2_message_bytes, FEATURE_GLOBAL_log2_server_imbalance,
        FEATURE_GLOBAL_log2_nic_imbalance, FEATURE_GLOBAL_log2_compute_over_network};
    struct instance one, in;
    instance_open(&one, MODEL, CLUSTER, ACCUMULATED(""));
    GLOBAL_COUNTS(&one, log2_micro_batches, 1);
    GLOBAL_IS(&one, sums_each, 0);
    for (int each = 0; each < 2; each++) {
        const double sums = each ? 3 : 1;
        instance_open(&in, MODEL, CLUSTER,
                      each ? ACCUMULATED(",'accumulation':{'micro_batches':3,'synchronize':'each'}")
                           : ACCUMULATED(",'accumulation':{'micro_batches':3}"));
        GLOBAL_COUNTS(&in, log2_micro_batches, 3);
        GLOBAL_IS(&in, sums_each, each);
        GLOBAL_COUNTS(&in, log2_messages, sums * 4);
        GLOBAL_COUNTS(&in, log2_all_reduces, sums);
        GLOBAL_COUNTS(&in, log2_startup_us, sums * 100);
        GLOBAL_COUNTS(&in, log2_closed_form_us,
                      fmax(3 * 210, exp2(in.features.global[FEATURE_GLOBAL_log2_closed_sync_us]) - 1));
        GLOBAL_IS(&in, log2_transfer_over_compute, log2((1 + sums * 40) / (1 + 3 * 210)));
        SHARD_COUNTS(&in, ROW_C, log2_cc_messages, sums);
        SHARD_COUNTS(&in, ROW_C, log2_cc_transfer_us, sums * 40);
        SHARD_COUNTS(&in, ROW_B, log2_messages, sums * 2);
        SHARD_COUNTS(&in, ROW_B, log2_ps_transfer_us, sums * 8000 * 3 / 500);
        SHARD_COUNTS(&in, ROW_B, log2_message_bytes, 4000);
        SHARD_IS(&in, ROW_A, wait_share, 0);
        for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
            assert_close(in.features.global[alike[i]], one.features.global[alike[i]], 1e-3);
        instance_close(&in);
    }
    instance_close(&one);
    /* Parameters are gathered before every forward and backward pass, and gradients summed once. */
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo','accumulation':{'micro_batches':3}", "{'id':0,'sharded':'parameters'}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'b','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    GLOBAL_COUNTS(&in, log2_gathers, 6);
    GLOBAL_COUNTS(&in, log2_all_reduces, 7);
    GLOBAL_IS(&in, gate_share, 0); /* a's group is needed at once */
    GLOBAL_IS(&in, ready_share, 1);
    SHARD_COUNTS(&in, ROW_B, log2_messages, 7);
    SHARD_COUNTS(&in, ROW_B, log2_cc_messages, 7 * 0.5);
    instance_close(&in);
}

static void a_credit_without_limit_is_that_of_the_whole_model(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'priority'"));
    GLOBAL_COUNTS(&in, log2_credit, 16000);
    GLOBAL_IS(&in, unlimited, 1.0);
    GLOBAL_COUNTS(&in, log2_window, 2);
    instance_close(&in);
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'priority','credit_bytes':99999999"));
    GLOBAL_COUNTS(&in, log2_credit, 16000);
    GLOBAL_IS(&in, unlimited, 0.0);
    instance_close(&in);
}

static void merging_past_a_neighbour_is_scattered(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'fifo'"));
    GLOBAL_IS(&in, scattered_share, 0.0);
    instance_close(&in);
    instance_open(&in, MODEL, CLUSTER,
                  STRATEGY("'policy':'fifo'", "{'id':0,'algorithm':'ring'},{'id':1,'algorithm':'ring'}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'b','sync':{'kind':'all_reduce','group':1}},"
                           "{'name':'c','sync':{'kind':'all_reduce','group':0}}"));
    GLOBAL_IS(&in, scattered_share, 0.5); /* a and c, with b between them */
    SHARD_IS(&in, ROW_A, group_place, 0.5);
    SHARD_COUNTS(&in, ROW_A, log2_group_members, 2);
    instance_close(&in);
}

static void raw_attributes_of_a_shard(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    SHARD_COUNTS(&in, ROW_A, log2_bytes, 4000);
    SHARD_IS(&in, ROW_A, rank, 2.0);
    SHARD_COUNTS(&in, ROW_A, log2_rows, 10);
    SHARD_COUNTS(&in, ROW_A, log2_columns, 100);
    SHARD_IS(&in, ROW_B, log2_columns, 0.0);
    SHARD_IS(&in, ROW_A, dtype_bytes, 4.0);
    SHARD_IS(&in, ROW_A, touched_share, 1.0);
    SHARD_IS(&in, ROW_A, server, 1.0);
    SHARD_IS(&in, ROW_A, local_reduction, 1.0);
    SHARD_IS(&in, ROW_B, local_reduction, 0.0);
    SHARD_IS(&in, ROW_C, server, 0.0);
    SHARD_IS(&in, ROW_C, algorithm_ring, 1.0);
    SHARD_IS(&in, ROW_B, algorithm_ring, 0.0);
    SHARD_IS(&in, ROW_C, encoding_none, 1.0);
    SHARD_COUNTS(&in, ROW_B, log2_partition, 4000);
    SHARD_COUNTS(&in, ROW_B, log2_message_bytes, 4000);
    SHARD_COUNTS(&in, ROW_B, log2_devices, 3);
    SHARD_IS(&in, ROW_B, ready_share, 100 / 120.0);
    SHARD_IS(&in, ROW_B, gate_share, 10 / 90.0);
    SHARD_IS(&in, ROW_B, slack_share, (20 + 10) / 210.0);
    instance_close(&in);
}

static void behind_the_barrier_every_gradient_is_needed_at_once(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MERGED("'policy':'fifo','cross_iteration':false"));
    SHARD_IS(&in, ROW_C, gate_share, 0.0);
    SHARD_IS(&in, ROW_C, slack_share, 60 / 210.0);
    GLOBAL_IS(&in, gate_share, 0.0);
    GLOBAL_IS(&in, cross_iteration, 0.0);
    instance_close(&in);
}

/* A table's rows cut into 4 shards of 3, 3, 2 and 2 on two servers by turns. */
#define TWO_SERVERS(second_nic)                                                                                        \
    "{'schema':'syncopate.cluster/1','name':'c','transport':'ideal','nodes':["                                         \
    "{'name':'w','devices':1,'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':0},"                                   \
    "{'name':'s1','devices':0,'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':0},"                                  \
    "{'name':'s2','devices':0,'device':'cpu','nic_gbit_per_s':" second_nic ",'nic_latency_us':0}]}"

#define CUT(servers)                                                                                                   \
    STRATEGY("'policy':'fifo'", "",                                                                                    \
             "{'name':'a','partition':{'axis':0,'shards':4},'sync':{'kind':'parameter_server','servers':[" servers     \
             "]}}")

static void shards_that_nothing_tells_apart_share_a_row(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, TABLE(""), TWO_SERVERS("8"), CUT("'s1','s2'"));
    assert_int_equal(in.features.partitions, 4);
    assert_int_equal(in.features.n_shards, 2);
    for (size_t row = 0; row < 2; row++) {
        assert_true(instance_weight(&in, row) == 2);
        SHARD_COUNTS(&in, row, log2_bytes, row ? 800 : 1200);
        SHARD_IS(&in, row, log2_shards, 2.0);
        SHARD_IS(&in, row, cut_axis, 1.0);
    }
    GLOBAL_COUNTS(&in, log2_ps_transfer_mean_us, 1.0); /* 2 * 1.2 us and 2 * 0.8 us over 4 shards */
    GLOBAL_IS(&in, cut_share, 1.0);
    GLOBAL_IS(&in, log2_shards, 2.0);
    instance_close(&in);
}

static void shards_on_unlike_servers_have_rows_of_their_own(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, TABLE(""), TWO_SERVERS("4"), CUT("'s1','s2'"));
    const double transfer[] = {1.2, 2.4, 0.8, 1.6};
    assert_int_equal(in.features.n_shards, 4);
    for (size_t row = 0; row < 4; row++) {
        assert_true(instance_weight(&in, row) == 1);
        SHARD_COUNTS(&in, row, log2_ps_transfer_us, transfer[row]);
    }
    instance_close(&in);
}

/* Two of a table's rows are touched, on two of four shards: each sends 100 * 4 + 8 bytes, the others nothing. */
static void shards_without_a_touched_row_are_counted_and_send_nothing(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, TABLE(",'sparse_rows':2"), CLUSTER, CUT("'s'"));
    assert_int_equal(in.features.n_shards, 2);
    SHARD_COUNTS(&in, 0, log2_bytes, 408);
    SHARD_IS(&in, 0, touched_share, 0.2);
    SHARD_IS(&in, 1, log2_bytes, 0.0);
    SHARD_IS(&in, 1, log2_messages, 0.0);
    SHARD_IS(&in, 1, log2_ps_constants, 0.0);
    assert_true(instance_weight(&in, 0) == 2 && instance_weight(&in, 1) == 2);
    GLOBAL_IS(&in, sparse_served_share, 1.0);
    GLOBAL_IS(&in, sparse_share, 1.0);
    instance_close(&in);
}

static void an_overridden_link_slows_its_pushes_only(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL,
                  "{'schema':'syncopate.cluster/1','name':'c','transport':'ideal','nodes':["
                  "{'name':'n','count':3,'devices':1,'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':0}],"
                  "'links':[{'from':'n1','to':'n3','gbit_per_s':2},{'from':'n3','to':'n2','gbit_per_s':1}]}",
                  STRATEGY("'policy':'fifo'", "{'id':0,'algorithm':'ring'}",
                           "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                           "{'name':'b','sync':{'kind':'parameter_server','servers':['n3']}},"
                           "{'name':'c','sync':{'kind':'parameter_server','servers':['n1']}}"));
    SHARD_COUNTS(&in, ROW_B, log2_ps_transfer_us, 8000 / 250.0 + 8000 / 1000.0);
    SHARD_COUNTS(&in, ROW_C, log2_ps_transfer_us, 4 + 4);
    instance_close(&in);
}

static void the_domain_is_described_by_ratios(void **state) {
    (void)state;
    struct instance in;
    instance_open(&in, MODEL, CLUSTER, MIXED);
    GLOBAL_COUNTS(&in, log2_devices, 3);
    GLOBAL_COUNTS(&in, log2_nodes, 2);
    GLOBAL_COUNTS(&in, log2_devices_per_node, 2);
    GLOBAL_COUNTS(&in, log2_variables, 3);
    GLOBAL_COUNTS(&in, log2_model_bytes, 16000);
    GLOBAL_IS(&in, largest_variable_share, 0.5);
    GLOBAL_IS(&in, forward_share, 90 / 210.0);
    GLOBAL_IS(&in, log2_compute_over_network, log2(211.0 / 17.0)); /* 16000 bytes at 1000 bytes/us */
    GLOBAL_IS(&in, log2_compute_scale, 0.0);
    GLOBAL_IS(&in, log2_nic_ratio, 1.0);
    GLOBAL_COUNTS(&in, log2_nic_rate, 500);
    GLOBAL_COUNTS(&in, log2_nic_latency_us, 1);
    GLOBAL_COUNTS(&in, log2_message_us, 3);
    GLOBAL_COUNTS(&in, log2_coordination_us, 7);
    GLOBAL_COUNTS(&in, log2_push_us, 5);
    instance_close(&in);
}

static void knobs_are_told_from_what_follows(void **state) {
    (void)state;
    assert_true(is_knob(FEATURE_GLOBAL_log2_credit));
    assert_true(is_knob(FEATURE_GLOBAL_scattered_share));
    assert_false(is_knob(FEATURE_GLOBAL_log2_timeline_us));
    assert_false(is_knob(FEATURE_GLOBAL_log2_devices));
    assert_int_equal(GLOBAL_KINDS[FEATURE_GLOBAL_log2_devices], FEATURE_KIND_domain);
    assert_string_equal(feature_global_name(0), "log2_timeline_us");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_with_ways_of_their_own_have_rows_of_their_own),
        cmocka_unit_test(equation_2_of_a_served_variable_adds_up_all_other_nodes),
        cmocka_unit_test(an_all_reduced_variable_bears_its_share_of_its_messages),
        cmocka_unit_test(the_closed_form_takes_the_busiest_nic_and_all_all_reduces),
        cmocka_unit_test(a_worker_that_sends_more_than_any_server_receives_decides),
        cmocka_unit_test(nics_carry_pushes_and_the_all_reduce),
        cmocka_unit_test(messages_are_counted_priced_and_placed),
        cmocka_unit_test(of_sharded_parameters_the_sums_say_when_and_all_three_cost),
        cmocka_unit_test(an_encoded_message_is_shared_out_by_the_bytes_before),
        cmocka_unit_test(the_timeline_enters_as_times_and_as_parts_of_the_iteration),
        cmocka_unit_test(knobs_of_a_mixed_strategy),
        cmocka_unit_test(what_is_sharded_kept_gathered_ahead_and_encoded),
        cmocka_unit_test(micro_batches_count_by_how_often_gradients_are_summed),
        cmocka_unit_test(a_credit_without_limit_is_that_of_the_whole_model),
        cmocka_unit_test(merging_past_a_neighbour_is_scattered),
        cmocka_unit_test(raw_attributes_of_a_shard),
        cmocka_unit_test(behind_the_barrier_every_gradient_is_needed_at_once),
        cmocka_unit_test(shards_that_nothing_tells_apart_share_a_row),
        cmocka_unit_test(shards_on_unlike_servers_have_rows_of_their_own),
        cmocka_unit_test(shards_without_a_touched_row_are_counted_and_send_nothing),
        cmocka_unit_test(an_overridden_link_slows_its_pushes_only),
        cmocka_unit_test(the_domain_is_described_by_ratios),
        cmocka_unit_test(knobs_are_told_from_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
