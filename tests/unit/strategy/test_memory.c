/* Memory by hand: what lies where, budgets and their words, what optimizers keep, and how models say it. */
#include <stdio.h>
#include <string.h>

#include "strategy/memory.h"
#include "tests/support/check.h"
#include "tests/unit/strategy/descriptions.h"

#define CLUSTER_OF(transport, more) "{'schema':'syncopate.cluster/1','name':'c'," transport "'nodes':[" more "]}"
#define NODES(more)                 CLUSTER_OF("", more)
#define FOUR                        NODES("{'name':'n','count':4,'nic_gbit_per_s':1}")

/* Layers x and y; a is read by x, b and c by y. 4000, 2000 and 2000 bytes. Steps: x, y, y.grad, x.grad. */
#define TWO_LAYERS(more, x, y)                                                                                         \
    "{'schema':'syncopate.model/1','name':'two'," more "'variables':[{'name':'a','shape':[1000]},"                     \
    "{'name':'b','shape':[500]},{'name':'c','shape':[500]}],'layers':["                                                \
    "{'name':'x','forward_us':1,'backward_us':1,'variables':['a']" x "},"                                              \
    "{'name':'y','forward_us':1,'backward_us':1,'variables':['b','c']" y "}]}"
#define ADAM                 TWO_LAYERS("'optimizer':'adam',", ",'activation_bytes':100", ",'activation_bytes':50")
#define ADAM_TEMPORARY(x, y) TWO_LAYERS("'optimizer':'adam',", ",'activation_bytes':100" x, ",'activation_bytes':50" y)

#define STRATEGY(schedule, group, a, bc)                                                                               \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'" schedule "},"                            \
    "'groups':[{'id':0" group "},{'id':1" group "}],'variables':[{'name':'a'" a "},{'name':'b'" bc "},"                \
    "{'name':'c'" bc "}]}"
#define IN_GROUP(k)             ",'sync':{'kind':'all_reduce','group':" #k "}"
#define GROUPS(schedule, group) STRATEGY(schedule, group, IN_GROUP(0), IN_GROUP(1))

struct lowered {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct memory memory;
};

static void lower(struct lowered *l, const char *model, const char *cluster, const char *strategy) {
    struct error err = {0};
    assert_ok(quoted_model(model, &l->model, &err));
    assert_ok(quoted_cluster(cluster, &l->cluster, &err));
    assert_ok(quoted_strategy(strategy, &l->model, &l->cluster, &l->strategy, &err));
    assert_ok(plan_lower(&l->model, &l->cluster, &l->strategy, &l->plan, &err));
    assert_ok(memory_of_plan(&l->plan, &l->memory, &err));
}

static void release(struct lowered *l) {
    plan_release(&l->plan);
    strategy_release(&l->strategy);
    cluster_release(&l->cluster);
    model_release(&l->model);
}

/* The parts in the order of MEMORY_TABLE, and the place in words. */
static void assert_peak(const struct memory *m, const uint64_t want[MEMORY_PARTS], const char *place) {
    uint64_t sum = 0;
    for (int p = 0; p < MEMORY_PARTS; p++) {
        if (m->part_bytes[p] != want[p])
            fail_msg("%s: %llu bytes, not %llu", memory_part_name((enum memory_part)p),
                     (unsigned long long)m->part_bytes[p], (unsigned long long)want[p]);
        sum += want[p];
    }
    assert_int_equal(m->peak_bytes, sum);
    assert_string_equal(m->place, place);
}

static void assert_lowered(const char *model, const char *strategy, const uint64_t want[MEMORY_PARTS],
                           const char *place) {
    struct lowered l;
    lower(&l, model, FOUR, strategy);
    assert_peak(&l.memory, want, place);
    release(&l);
}

/* While x.grad runs: x's activations, all gradients, and the message of b and c, gathered into a buffer; a is a message
 * where it lies. */
static void all_reduces_need_their_gradients_and_buffers(void **state) {
    (void)state;
    assert_lowered(ADAM, GROUPS("", ""), (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 4000, 0, 100},
                   "backward step 2 of 2, x.grad");
}

/* A layer says it of its two operators. */
static void what_operators_need_while_they_run_counts_in_their_steps(void **state) {
    (void)state;
    const char *at_x = ADAM_TEMPORARY(",'temporary_bytes':70", ""),
               *at_y = ADAM_TEMPORARY("", ",'temporary_bytes':90000");
    assert_lowered(at_x, GROUPS("", ""), (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 4000, 0, 100, 70},
                   "backward step 2 of 2, x.grad");
    assert_lowered(at_y, GROUPS("", ""), (const uint64_t[MEMORY_PARTS]){8000, 4000, 16000, 0, 0, 0, 150, 90000},
                   "backward step 1 of 2, y.grad");
}

/* Without the barrier too; without activations the first of two equal places counts. */
static void what_a_model_does_not_say_is_not_counted(void **state) {
    (void)state;
    struct lowered l;
    const uint64_t want[MEMORY_PARTS] = {8000, 8000, 0, 0, 4000, 0, 0};
    lower(&l, TWO_LAYERS("", "", ""), FOUR, GROUPS(",'cross_iteration':true", ""));
    assert_peak(&l.memory, want, "backward step 2 of 2, x.grad");
    assert_false(l.memory.knows_optimizer || l.memory.knows_activations);
    release(&l);
    lower(&l, ADAM, FOUR, GROUPS("", ""));
    assert_true(l.memory.knows_optimizer && l.memory.knows_activations);
    release(&l);
}

/* After the last step both messages may be on their way: b and c in 4000 bytes, and what comes in at a device to be
 * added, a quarter of each message. */
static void halves_share_the_optimizer_out(void **state) {
    (void)state;
    assert_lowered(ADAM, GROUPS("", ",'sharded':'optimizer'"),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 4000, 0, 6000, 0, 0}, "the update");
}

/* The same with the sums shared out too: the gradients of b and c went as these were packed, after y.grad. a's message
 * is where its gradient lies. */
static void gradients_that_are_shared_out_go_as_they_are_packed(void **state) {
    (void)state;
    assert_lowered(ADAM, GROUPS("", ",'sharded':'gradients'"),
                   (const uint64_t[MEMORY_PARTS]){8000, 4000, 4000, 0, 6000, 0, 0}, "the update");
}

/* One message with all of it is ready after the last step, when the activations are gone. Encoded in halves of the
 * bytes. With a credit two messages of 2000 bytes go one after the other. */
static void buffers_of_encoded_messages_are_told_apart(void **state) {
    (void)state;
#define ENCODED(k) ",'encoding':'f16'" IN_GROUP(k)
    assert_lowered(ADAM, STRATEGY("", "", ENCODED(0), ENCODED(0)),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 0, 4000, 0}, "the update");
    assert_lowered(ADAM, STRATEGY("", "", ENCODED(0), ENCODED(1)),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 0, 4000, 0}, "the update");
    assert_lowered(ADAM, STRATEGY(",'credit_bytes':0", "", ENCODED(0), ENCODED(1)),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 0, 2000, 100}, "backward step 2 of 2, x.grad");
}

/* a is encoded where it lies, in ten blocks of 104 bytes. NCCL's parts are equal: three blocks for each of four
 * devices, and three from each. b and c, 1000 elements, are gathered into a run of f32 before. A credit of 0 changes
 * nothing. */
static void an_encoder_needs_what_it_makes_and_what_comes_in(void **state) {
    (void)state;
#define INT8(k) ",'encoding':{'kind':'int8','block_size':100}" IN_GROUP(k)
    const uint64_t encoded = 4 * 312 + 4 * 312;
    assert_lowered(ADAM, STRATEGY("", "", INT8(0), INT8(1)),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 4000, 2 * encoded, 0}, "the update");
    assert_lowered(ADAM, STRATEGY(",'credit_bytes':0", "", INT8(0), INT8(1)),
                   (const uint64_t[MEMORY_PARTS]){8000, 8000, 16000, 0, 4000, 2 * encoded, 0}, "the update");
}

/* a has 40 rows of 50 elements, which lie as they are. Of rank 3 it is 120 and 150 elements, which NCCL adds where they
 * lie. By MPI of the larger part 38 come from each of four devices. What did not travel stays, and Q. With b, a vector
 * of 10, it is gathered before. */
static void thin_matrices_need_what_stays_on_the_device_too(void **state) {
    (void)state;
#define MODEL                                                                                                          \
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[40,5,10]},{'name':'b','shape':[10]}]," \
    "'layers':[{'name':'x','forward_us':1,'backward_us':1,'variables':['a','b']}]}"
#define POWERSGD(g)                                                                                                    \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},'groups':[{'id':0},{'id':1}],"           \
    "'variables':[{'name':'a','encoding':{'kind':'powersgd','rank':3},'sync':{'kind':'all_reduce','group':0}},"        \
    "{'name':'b','encoding':{'kind':'powersgd','rank':3},'sync':{'kind':'all_reduce','group':" g "}}]}"
    const uint64_t a = 4 * (120 + 150) + 4 * (2000 + 150), b = 4 * 10 + 4 * 10;
    const uint64_t both = 4 * (120 + 150 + 10) + 4 * (2010 + 150);
    assert_lowered(MODEL, POWERSGD("1"), (const uint64_t[MEMORY_PARTS]){8040, 8040, 0, 0, 0, a + b, 0}, "the update");
    assert_lowered(MODEL, POWERSGD("0"), (const uint64_t[MEMORY_PARTS]){8040, 8040, 0, 0, 8040, both, 0}, "the update");
    struct lowered l;
    lower(&l, MODEL, CLUSTER_OF("'transport':'mpi',", "{'name':'n','count':4,'nic_gbit_per_s':1}"), POWERSGD("0"));
    assert_peak(&l.memory, (const uint64_t[MEMORY_PARTS]){8040, 8040, 0, 0, 8040, both + 4 * 4 * 38, 0}, "the update");
    release(&l);
}

/* a has 10 rows of 100 elements, of which 2 move: 2 * (400 + 8) bytes, from each of four devices. The row's indices lie
 * with the gradient. */
static void gathered_rows_come_from_all_devices(void **state) {
    (void)state;
    static const char model[] = "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[10,100],"
                                "'sparse_rows':2}],'layers':[{'name':'x','forward_us':1,'backward_us':1,"
                                "'variables':['a']}]}";
    static const char strategy[] = "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},"
                                   "'groups':[{'id':0,'algorithm':'all_gather'}],'variables':[{'name':'a','sync':"
                                   "{'kind':'all_reduce','group':0}}]}";
    assert_lowered(model, strategy, (const uint64_t[MEMORY_PARTS]){4000, 816, 0, 0, 4 * 816, 0, 0}, "the update");
}

/* The first device of a node of three takes in what the two others send: 2 * 8000 bytes. */
static void the_first_device_of_a_node_adds_up(void **state) {
    (void)state;
    struct lowered l;
    const uint64_t want[MEMORY_PARTS] = {8000, 8000, 16000, 0, 4000 + 16000, 0, 0};
    lower(&l, ADAM,
          NODES("{'name':'n','count':2,'devices':3,'nic_gbit_per_s':1,'device_link_gbyte_per_s':1},"
                "{'name':'m','nic_gbit_per_s':1}"),
          GROUPS("", ",'algorithm':'hierarchical'"));
    assert_peak(&l.memory, want, "the update");
    release(&l);
}

/* n1 serves a for four devices on three nodes: once a node with local_reduction. With a credit of 0 each device has one
 * push on its way, beside the sum. */
static void a_server_has_its_sums_and_the_pushes(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *local;
        uint64_t bytes;
    } cases[] = {{"", "true", 3 * 4000}, {"", "false", 4 * 4000}, {",'credit_bytes':0", "false", 4 * 4000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lowered l;
        char strategy[1024];
        snprintf(strategy, sizeof strategy,
                 STRATEGY("%s", "", ",'sync':{'kind':'parameter_server','servers':['n2'],'local_reduction':%s}",
                          IN_GROUP(0)),
                 cases[i].schedule, cases[i].local);
        lower(&l, ADAM,
              NODES("{'name':'n','count':2,'nic_gbit_per_s':1,'memory_gbyte':1e-5},{'name':'m','devices':2,"
                    "'nic_gbit_per_s':1,'device_link_gbyte_per_s':1}"),
              strategy);
        struct error err = {0};
        assert_int_equal(l.memory.server_bytes, cases[i].bytes);
        assert_int_equal(l.memory.server, 1);
        assert_fails(memory_check(&l.memory, &l.cluster, 0, &err), ST_INFEASIBLE,
                     "KiB for the server on node \"n2\", which has 9.8 KiB");
        release(&l);
    }
}

/* Sharded parameters as messages without other halves, of four devices: the plan of FSDP2 with a prefetch of one, its
 * update a step of its own. a is a message where it lies, b and c are packed into 4000 bytes. In y.grad both groups
 * are gathered, b and c unpacked from their buffer. After it these are free, and their gradients are packed into that
 * of the sums, of which a quarter comes in. */
static void sharded_parameters_are_gathered_and_freed(void **state) {
    (void)state;
    struct lowered l;
    struct error err = {0};
    enum { A, BC };
    static const struct {
        uint32_t group, ready, gate;
        enum half half;
    } from[] = {{A, 4, 0, HALF_gather},  {BC, 4, 1, HALF_gather}, {BC, 2, 4, HALF_scatter},
                {A, 3, 4, HALF_scatter}, {A, 1, 3, HALF_gather},  {BC, 1, 2, HALF_gather}};
    enum { ALL = sizeof from / sizeof *from, KEPT = ALL - 2 };
    static const struct piece pieces[] = {{0, 0, 4000}, {1, 0, 2000}, {2, 0, 2000}};
    struct message messages[ALL];
    lower(&l, ADAM, FOUR, GROUPS("", ""));
    struct plan plan = l.plan;
    for (int i = 0; i < ALL; i++)
        messages[i] = (struct message){.bytes = 4000,
                                       .ready = from[i].ready,
                                       .gate = from[i].gate,
                                       .half = from[i].half,
                                       .other = NO_MESSAGE,
                                       .dtype = DTYPE_f32,
                                       .first_piece = from[i].group == A ? 0 : 1,
                                       .n_pieces = from[i].group == A ? 1 : 2};
    plan.n_steps = 5;
    plan.micro_batches = 1;
    plan.ends_in_update = true;
    plan.messages = messages;
    plan.pieces = pieces;
    plan.n_pieces = 3;
    plan.n_messages = ALL;
    assert_ok(memory_of_plan(&plan, &l.memory, &err));
    assert_peak(&l.memory, (const uint64_t[MEMORY_PARTS]){2000, 4000, 4000, 8000, 4000, 0, 150},
                "backward step 1 of 2, y.grad");
    /* What was gathered for the forward pass stays: no second buffer, and more is there as b and c are packed, for
     * which their parameters have gone. */
    plan.n_messages = KEPT;
    assert_ok(memory_of_plan(&plan, &l.memory, &err));
    assert_peak(&l.memory, (const uint64_t[MEMORY_PARTS]){2000, 4000, 4000, 4000, 5000, 0, 100},
                "before backward step 2 of 2, x.grad");
    release(&l);
}

/* The same, gathered as 16 bits and summed as 32: gradients have 16 bits until they are packed, which converts them.
 * Before the update both sums may be on their way, and the gradient of a is just converted. Shards and states are as
 * they were. Summed as 16 bits too, y.grad needs most: gathered are all variables, b and c out
 * of their buffer. */
static void types_of_their_own_have_sharded_parameters_and_their_sums(void **state) {
    (void)state;
#define CARRIED(gathered, summed) ",'sharded':'parameters','gathered_as':'" gathered "','summed_as':'" summed "'"
    assert_lowered(ADAM, GROUPS("", CARRIED("bf16", "f32")),
                   (const uint64_t[MEMORY_PARTS]){2000, 2000, 4000, 0, 2000, 8000, 0}, "the update");
    assert_lowered(ADAM, GROUPS("", CARRIED("bf16", "bf16")),
                   (const uint64_t[MEMORY_PARTS]){2000, 2000, 4000, 4000, 2000, 0, 150},
                   "backward step 1 of 2, y.grad");
    assert_lowered(ADAM, GROUPS("", CARRIED("f32", "bf16")),
                   (const uint64_t[MEMORY_PARTS]){2000, 4000, 4000, 8000, 4000, 0, 150},
                   "backward step 1 of 2, y.grad");
}

/* b and c are sharded on four devices, and stay gathered; a, of the last backward step, is served. Before the update
 * the first device of a node takes in what the other one sends of a, 4000 bytes, while the sum of b and c may still be
 * on its way, in 4000 bytes, with a quarter that comes in, and stays. */
static void before_the_update_all_that_is_left_may_be_on_its_way(void **state) {
    (void)state;
    struct lowered l;
    const uint64_t want[MEMORY_PARTS] = {4000 + 1000, 4000, 10000, 0, 4000 + 5000, 0, 0};
    lower(&l, ADAM, NODES("{'name':'n','count':2,'devices':2,'nic_gbit_per_s':1,'device_link_gbyte_per_s':1}"),
          STRATEGY("", ",'sharded':'parameters','reshard_after_forward':false",
                   ",'sync':{'kind':'parameter_server','servers':['n1']}", IN_GROUP(1)));
    assert_peak(&l.memory, want, "the update");
    release(&l);
}

/* Layers of 8000, 400, 400 and 8000 bytes on two devices, each a group of one message where it lies. Between the
 * backward steps of b and c the sum of a may still be on its way (8000 bytes, with 4000 that come in, and
 * stay), that of b is (400 and 200), c is gathered, and d may be. Steps hold less: a's gradients have gone at c's,
 * and d is not there yet at b's. */
static void between_two_steps_a_sum_and_a_gather_may_meet(void **state) {
    (void)state;
#define LAYER(l)   "{'name':'" l "','forward_us':1,'backward_us':1,'variables':['" l "']}"
#define OF(k)      "{'id':" #k ",'sharded':'parameters'}"
#define IN(l, k)   "{'name':'" l "'" IN_GROUP(k) "}"
#define SIZE(l, n) "{'name':'" l "','shape':[" #n "]}"
    static const char model[] =
        "{'schema':'syncopate.model/1','name':'four','variables':[" SIZE("d", 2000) "," SIZE("c", 100) "," SIZE(
            "b", 100) "," SIZE("a", 2000) "],'layers':[" LAYER("d") "," LAYER("c") "," LAYER("b") "," LAYER("a") "]}";
    static const char strategy[] =
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},'groups':[" OF(0) "," OF(1) "," OF(
            2) "," OF(3) "],'variables':[" IN("d", 0) "," IN("c", 1) "," IN("b", 2) "," IN("a", 3) "]}";
    struct lowered l;
    lower(&l, model, NODES("{'name':'n','count':2,'nic_gbit_per_s':1}"), strategy);
    assert_peak(&l.memory, (const uint64_t[MEMORY_PARTS]){8400, 8400, 0, 8400, 4200, 0, 0},
                "before backward step 3 of 4, c.grad");
    release(&l);
}

/* Layers x and y, whose backward operators compute 700 and 500 bytes again. While y.grad runs: what x keeps, what y
 * keeps and what y.grad computed; then x's own, with the gradient of y and its message on their way. */
static void what_is_computed_again_lies_there_from_then_on(void **state) {
    (void)state;
#define AGAIN(l, after, bytes)                                                                                         \
    "{'name':'" l ".again','phase':'backward','time_us':1,'after':['" after "'],'activation_bytes':" #bytes            \
    ",'kept_for':'" l ".grad'},{'name':'" l ".grad','phase':'backward','time_us':1,'after':['" l ".again'],"           \
    "'produces':['" l "']}"
#define FORWARD(l, after)                                                                                              \
    "{'name':'" l ".f','phase':'forward','time_us':1,'after':[" after "],'reads':['" l "'],'activation_bytes':10,"     \
    "'kept_for':'" l ".grad'}"
    static const char model[] = "{'schema':'syncopate.model/1','name':'m','variables':[" SIZE("x", 1) "," SIZE(
        "y", 1) "],'operators':[" FORWARD("x", "") "," FORWARD("y", "'x.f'") "," AGAIN("y", "y.f",
                                                                                       700) "," AGAIN("x", "y.grad",
                                                                                                      500) "]}";
    static const char strategy[] = "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},"
                                   "'groups':[{'id':0},{'id':1}],'variables':[" IN("x", 0) "," IN("y", 1) "]}";
    assert_lowered(model, strategy, (const uint64_t[MEMORY_PARTS]){8, 4, 0, 0, 0, 0, 20 + 700},
                   "backward step 1 of 2, y.again");
}

static void a_budget_is_held_to_the_byte(void **state) {
    (void)state;
    struct lowered l;
    struct error err = {0};
    lower(&l, ADAM,
          NODES("{'name':'n','count':3,'nic_gbit_per_s':1,'device_memory_gbyte':2},"
                "{'name':'s','devices':0,'nic_gbit_per_s':1,'device_memory_gbyte':0.5},"
                "{'name':'m','nic_gbit_per_s':1,'device_memory_gbyte':1.5}"),
          GROUPS("", ""));
    assert_ok(memory_check(&l.memory, &l.cluster, 0, &err));
    assert_ok(memory_check(&l.memory, &l.cluster, 36100, &err));
    assert_fails(memory_check(&l.memory, &l.cluster, 36099, &err), ST_INFEASIBLE,
                 "needs 35.25 KiB on a device (backward step 2 of 2, x.grad), 1 B over the 35.25 KiB that it may have");
    assert_int_equal(memory_of_devices(&l.cluster), 1500000000);
    release(&l);
    lower(&l, ADAM, FOUR, GROUPS("", ""));
    assert_int_equal(memory_of_devices(&l.cluster), 0);
    release(&l);
}

static void updates_have_no_prediction(void **state) {
    (void)state;
    struct lowered l;
    struct error err = {0};
    lower(&l, ADAM, FOUR, GROUPS("", ""));
    l.plan.consistency.kind = CONSISTENCY_asynchronous;
    assert_fails(memory_of_plan(&l.plan, &l.memory, &err), ST_INFEASIBLE, "\"consistency\"");
    release(&l);
}

static void optimizers_keep_what_their_frameworks_allocate(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *dtype;
        uint64_t bytes; /* for the whole variable, 6 x 10 x 20 */
    } cases[] = {
        {"'sgd'", "f32", 0},
        {"'momentum'", "f32", 4800},
        {"'adagrad'", "f16", 2400},
        {"'rmsprop'", "f64", 9600},
        {"'lion'", "f32", 4800},
        {"'adam'", "bf16", 4800},
        {"'adamw'", "f32", 9600},
        {"'lamb'", "f32", 9600},
        {"'adafactor'", "f32", 6 * (10 + 20) * 4},
        {"{'name':'adam','master_copy':true}", "bf16", 1200 * 12},
        {"{'name':'adam','master_copy':true}", "f32", 9600},
        {"{'name':'sgd','master_copy':true}", "f16", 4800},
        {"{'bytes_per_element':2.5}", "u8", 3000},
        {"{'bytes_per_element':0}", "f32", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct model m;
        char text[512];
        snprintf(text, sizeof text,
                 "{'schema':'syncopate.model/1','name':'m','optimizer':%s,'variables':[{'name':'a','shape':[6,10,20],"
                 "'dtype':'%s'}],'layers':[{'name':'l','forward_us':1,'backward_us':1,'variables':['a']}]}",
                 cases[i].optimizer, cases[i].dtype);
        assert_ok(quoted_model(text, &m, &err));
        assert_int_equal(optimizer_bytes(&m.optimizer, &m.variables[0], 1200), cases[i].bytes);
        assert_int_equal(optimizer_bytes(&m.optimizer, &m.variables[0], 1), (cases[i].bytes + 1199) / 1200);
        model_release(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduces_need_their_gradients_and_buffers),
        cmocka_unit_test(what_operators_need_while_they_run_counts_in_their_steps),
        cmocka_unit_test(what_a_model_does_not_say_is_not_counted),
        cmocka_unit_test(halves_share_the_optimizer_out),
        cmocka_unit_test(gradients_that_are_shared_out_go_as_they_are_packed),
        cmocka_unit_test(buffers_of_encoded_messages_are_told_apart),
        cmocka_unit_test(an_encoder_needs_what_it_makes_and_what_comes_in),
        cmocka_unit_test(thin_matrices_need_what_stays_on_the_device_too),
        cmocka_unit_test(gathered_rows_come_from_all_devices),
        cmocka_unit_test(the_first_device_of_a_node_adds_up),
        cmocka_unit_test(a_server_has_its_sums_and_the_pushes),
        cmocka_unit_test(sharded_parameters_are_gathered_and_freed),
        cmocka_unit_test(types_of_their_own_have_sharded_parameters_and_their_sums),
        cmocka_unit_test(before_the_update_all_that_is_left_may_be_on_its_way),
        cmocka_unit_test(between_two_steps_a_sum_and_a_gather_may_meet),
        cmocka_unit_test(what_is_computed_again_lies_there_from_then_on),
        cmocka_unit_test(a_budget_is_held_to_the_byte),
        cmocka_unit_test(updates_have_no_prediction),
        cmocka_unit_test(optimizers_keep_what_their_frameworks_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
