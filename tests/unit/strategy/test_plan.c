/* Lowering: one plan worked out by hand, the rules that every plan keeps (plan_invariants.h) on random instances, and
 * the corners that random instances meet too seldom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"
#include "tests/unit/strategy/descriptions.h"
#include "tests/unit/strategy/plan_invariants.h"

#define CLUSTER "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'nic_gbit_per_s':1}]}"

/* Layers x, y, z; a is read by x, b and c by y, d by z. 4096, 2048, 1000 and 3000 bytes. */
static const char three_layers[] =
    "{'schema':'syncopate.model/1','name':'three','variables':[{'name':'a','shape':[1024]},"
    "{'name':'b','shape':[512]},{'name':'c','shape':[25,10]},{'name':'d','shape':[750]}],'layers':["
    "{'name':'x','forward_us':1,'backward_us':10,'variables':['a']},"
    "{'name':'y','forward_us':2,'backward_us':20,'variables':['b','c']},"
    "{'name':'z','forward_us':3,'backward_us':30,'variables':['d']}]}";

#define THREE_STRATEGY(schedule)                                                                                       \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':" schedule ","                                             \
    "'groups':[{'id':0,'algorithm':'ring','partition_bytes':2500},{'id':1,'algorithm':'tree'}],'variables':["          \
    "{'name':'a','sync':{'kind':'all_reduce','group':0}},{'name':'b','sync':{'kind':'all_reduce','group':1}},"         \
    "{'name':'c','partition':{'axis':0,'shards':3},'sync':{'kind':'parameter_server','servers':['n4','n2']}},"         \
    "{'name':'d','sync':{'kind':'all_reduce','group':0}}]}"

#define PUSHED "{'kind':'parameter_server','servers':['n3'],'partition_bytes':5000,'push':1}"

struct lowered {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
};

static void lower_texts(struct lowered *l, const char *model, const char *strategy) {
    struct error err = {0};
    assert_ok(quoted_model(model, &l->model, &err));
    assert_ok(quoted_cluster(CLUSTER, &l->cluster, &err));
    assert_ok(quoted_strategy(strategy, &l->model, &l->cluster, &l->strategy, &err));
    assert_ok(plan_lower(&l->model, &l->cluster, &l->strategy, &l->plan, &err));
    const char *broken = plan_broken(&l->plan, &l->strategy);
    if (broken)
        fail_msg("%s", broken);
}

static void release(struct lowered *l) {
    plan_release(&l->plan);
    strategy_release(&l->strategy);
    cluster_release(&l->cluster);
    model_release(&l->model);
}

struct want {
    uint64_t bytes;
    uint32_t ready, gate;
    enum sync_kind kind;
    enum algorithm algorithm;
    uint32_t server, fifo_rank, n_pieces;
    struct piece pieces[2];
};

static void assert_messages(const struct plan *p, const struct want *want, uint32_t n) {
    assert_int_equal(p->n_messages, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct message *m = &p->messages[i];
        assert_int_equal(m->bytes, want[i].bytes);
        assert_int_equal(m->ready, want[i].ready);
        assert_int_equal(m->gate, want[i].gate);
        assert_int_equal(m->kind, want[i].kind);
        assert_int_equal(m->dtype, DTYPE_f32);
        assert_int_equal(m->fifo_rank, want[i].fifo_rank);
        assert_int_equal(m->n_pieces, want[i].n_pieces);
        if (m->kind == SYNC_ALL_REDUCE)
            assert_int_equal(m->algorithm, want[i].algorithm);
        else
            assert_int_equal(m->server, want[i].server);
        assert_int_equal(m->local_reduction, m->kind == SYNC_PARAMETER_SERVER);
        for (uint32_t k = 0; k < m->n_pieces; k++) {
            const struct piece *piece = &p->pieces[m->first_piece + k];
            assert_int_equal(piece->variable, want[i].pieces[k].variable);
            assert_int_equal(piece->offset_bytes, want[i].pieces[k].offset_bytes);
            assert_int_equal(piece->bytes, want[i].pieces[k].bytes);
        }
    }
}

/* Steps x y z | z.grad y.grad x.grad. Group 0 is the stream d (3000 bytes), a (4096), cut every 2496 = 2500 rounded
 * down to 8: d[0,2496), d[2496,3000)+a[0,1992), a[1992,4096). Group 1 is b. c's 25 rows of 40 bytes are cut into 9, 8,
 * 8 on n4, n2, n4. By gate: a's and what holds a piece of it first. */
static void a_small_plan_is_the_one_worked_out_by_hand(void **state) {
    (void)state;
    static const struct want want[] = {
        {2496, 5, 0, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 5, 2, {{3, 2496, 504}, {0, 0, 1992}}},
        {2104, 5, 0, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 6, 1, {{0, 1992, 2104}}},
        {2048, 4, 1, SYNC_ALL_REDUCE, ALGORITHM_tree, 0, 1, 1, {{1, 0, 2048}}},
        {360, 4, 1, SYNC_PARAMETER_SERVER, 0, 3, 2, 1, {{2, 0, 360}}},
        {320, 4, 1, SYNC_PARAMETER_SERVER, 0, 1, 3, 1, {{2, 360, 320}}},
        {320, 4, 1, SYNC_PARAMETER_SERVER, 0, 3, 4, 1, {{2, 680, 320}}},
        {2496, 3, 2, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 0, 1, {{3, 0, 2496}}},
    };
    struct lowered l;
    lower_texts(&l, three_layers, THREE_STRATEGY("{'policy':'priority','credit_bytes':5000,'cross_iteration':true}"));
    const struct plan *p = &l.plan;
    assert_int_equal(p->n_steps, 6);
    assert_int_equal(p->n_forward_steps, 3);
    const double times[] = {1, 2, 3, 30, 20, 10};
    assert_memory_equal(p->step_us, times, sizeof times);
    assert_int_equal(p->credit_bytes, 5000);
    assert_true(p->cross_iteration && p->any_all_reduce && p->any_server);
    assert_messages(p, want, 7);
    assert_int_equal(p->bytes, 4096 + 2048 + 1000 + 3000);
    assert_int_equal(p->max_bytes, 2496);
    assert_int_equal(p->n_pieces, 8);
    const uint32_t first_ready[] = {0, 0, 0, 0, 1, 5, 7}, by_ready[] = {6, 2, 3, 4, 5, 0, 1};
    const uint32_t first_gate[] = {0, 2, 6, 7, 7, 7, 7}, by_gate[] = {0, 1, 2, 3, 4, 5, 6};
    assert_memory_equal(p->first_ready, first_ready, sizeof first_ready);
    assert_memory_equal(p->by_ready, by_ready, sizeof by_ready);
    assert_memory_equal(p->first_gate, first_gate, sizeof first_gate);
    assert_memory_equal(p->by_gate, by_gate, sizeof by_gate);
    release(&l);
}

/* a (4096 bytes), b (2048) and d (3000) share a push of at most 5000 bytes; c goes alone, by the same server. */
static void variables_that_share_a_push_travel_together(void **state) {
    (void)state;
    static const char strategy[] =
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'priority','cross_iteration':true},"
        "'variables':[{'name':'a','sync':" PUSHED "},{'name':'b','sync':" PUSHED "},{'name':'c','sync':"
        "{'kind':'parameter_server','servers':['n3']}},{'name':'d','sync':" PUSHED "}]}";
    static const struct want want[] = {
        {4144, 5, 0, SYNC_PARAMETER_SERVER, 0, 2, 2, 2, {{1, 2000, 48}, {0, 0, 4096}}},
        {5000, 4, 1, SYNC_PARAMETER_SERVER, 0, 2, 0, 2, {{3, 0, 3000}, {1, 0, 2000}}},
        {1000, 4, 1, SYNC_PARAMETER_SERVER, 0, 2, 1, 1, {{2, 0, 1000}}},
    };
    struct lowered l;
    lower_texts(&l, three_layers, strategy);
    assert_messages(&l.plan, want, 3);
    release(&l);
}

/* c's five rows in each of five shards, of 40 * 5 bytes: the first and the fourth are in group 1 with b and share no
 * message, the second is served, and so is the third, which travels as f16; the last is alone in group 2. */
static void each_shard_goes_its_own_way(void **state) {
    (void)state;
    static const char strategy[] =
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo','cross_iteration':true},"
        "'groups':[{'id':0},{'id':1,'algorithm':'tree'},{'id':2,'algorithm':'ring'}],'variables':["
        "{'name':'a','sync':{'kind':'all_reduce','group':0}},{'name':'b','sync':{'kind':'all_reduce','group':1}},"
        "{'name':'c','partition':{'shards':5},'each_shard':[{'sync':{'kind':'all_reduce','group':1}},"
        "{'sync':{'kind':'parameter_server','servers':['n4']}},"
        "{'encoding':'f16','sync':{'kind':'parameter_server','servers':['n2']}},"
        "{'sync':{'kind':'all_reduce','group':1}},{'sync':{'kind':'all_reduce','group':2}}]},"
        "{'name':'d','sync':{'kind':'all_reduce','group':0}}]}";
    static const struct {
        uint64_t bytes;
        struct piece last;
        enum sync_kind kind;
        uint32_t server;
        enum dtype dtype;
    } want[] = {
        {2248, {2, 0, 200}, SYNC_ALL_REDUCE, 0, DTYPE_f32},
        {200, {2, 500, 200}, SYNC_ALL_REDUCE, 0, DTYPE_f32},
        {200, {2, 700, 200}, SYNC_ALL_REDUCE, 0, DTYPE_f32},
        {200, {2, 200, 200}, SYNC_PARAMETER_SERVER, 3, DTYPE_f32},
        {100, {2, 400, 100}, SYNC_PARAMETER_SERVER, 1, DTYPE_f16},
        {7096, {0, 0, 4096}, SYNC_ALL_REDUCE, 0, DTYPE_f32},
    };
    struct lowered l;
    lower_texts(&l, three_layers, strategy);
    assert_int_equal(l.plan.n_messages, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const struct message *m = &l.plan.messages[i];
        assert_int_equal(m->bytes, want[i].bytes);
        assert_int_equal(m->kind, want[i].kind);
        assert_int_equal(m->server, want[i].server);
        assert_int_equal(m->dtype, want[i].dtype);
        assert_memory_equal(&l.plan.pieces[m->first_piece + m->n_pieces - 1], &want[i].last, sizeof want[i].last);
    }
    assert_int_equal(plan_gradient_bytes(&l.strategy, &l.model.variables[2], &l.strategy.variables[2]), 900);
    assert_int_equal(plan_part_bytes(&l.strategy, &l.model.variables[2], &l.strategy.variables[2], 2), 100);
    release(&l);
}

/* Group 0 is d (3000 bytes), then a (4096); group 1 is b (2048), then c (1000), which are ready together. */
static void a_slice_is_the_next_bytes_of_its_group(void **state) {
    (void)state;
    static const struct want want[] = {
        {1000, 3, 2, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 0, 1, {{3, 0, 1000}}},
        {2448, 4, 1, SYNC_ALL_REDUCE, ALGORITHM_tree, 0, 1, 2, {{1, 0, 2048}, {2, 0, 400}}},
        {2096, 5, 0, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 3, 2, {{3, 1000, 2000}, {0, 0, 96}}},
        {600, 4, 1, SYNC_ALL_REDUCE, ALGORITHM_tree, 0, 2, 1, {{2, 400, 600}}},
        {4000, 5, 0, SYNC_ALL_REDUCE, ALGORITHM_ring, 0, 4, 1, {{0, 96, 4000}}},
    };
    struct lowered l;
    lower_texts(
        &l, three_layers,
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'preemptive','credit_bytes':0,"
        "'cross_iteration':true,'slices':[{'group':0,'bytes':1000},{'group':1,'bytes':2448},"
        "{'group':0,'bytes':2096},{'group':1,'bytes':600},{'group':0,'bytes':4000}]},"
        "'groups':[{'id':0,'algorithm':'ring'},{'id':1,'algorithm':'tree'}],'variables':["
        "{'name':'a','sync':{'kind':'all_reduce','group':0}},{'name':'b','sync':{'kind':'all_reduce','group':1}},"
        "{'name':'c','sync':{'kind':'all_reduce','group':1}},"
        "{'name':'d','sync':{'kind':'all_reduce','group':0}}]}");
    assert_messages(&l.plan, want, 5);
    assert_int_equal(l.plan.policy, POLICY_preemptive);
    const uint32_t by_ready[] = {0, 1, 3, 2, 4}, by_gate[] = {2, 4, 1, 3, 0};
    assert_memory_equal(l.plan.by_ready, by_ready, sizeof by_ready);
    assert_memory_equal(l.plan.by_gate, by_gate, sizeof by_gate);
    release(&l);
}

static void with_the_barrier_every_message_gates_the_first_step(void **state) {
    (void)state;
    static const uint64_t bytes[] = {2496, 2048, 360, 320, 320, 2496, 2104};
    struct lowered l;
    lower_texts(&l, three_layers, THREE_STRATEGY("{'policy':'fifo'}"));
    assert_int_equal(l.plan.n_messages, 7);
    assert_true(l.plan.credit_bytes == CREDIT_UNLIMITED);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(l.plan.messages[i].bytes, bytes[i]);
        assert_int_equal(l.plan.messages[i].fifo_rank, i);
        assert_int_equal(l.plan.messages[i].gate, 0);
        assert_int_equal(l.plan.by_gate[i], i);
    }
    release(&l);
}

/* What of a message is its group's, and when it goes. */
struct want_turn {
    enum half half;
    uint32_t ready, gate, n_pieces, variable; /* the variable of its first piece */
    uint64_t bytes;
};

static void assert_turns(const struct plan *p, const struct want_turn *want, uint32_t n) {
    assert_int_equal(p->n_messages, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct message *m = &p->messages[i];
        assert_int_equal(m->half, want[i].half);
        assert_int_equal(m->ready, want[i].ready);
        assert_int_equal(m->gate, want[i].gate);
        assert_int_equal(m->n_pieces, want[i].n_pieces);
        assert_int_equal(p->pieces[m->first_piece].variable, want[i].variable);
        assert_int_equal(m->bytes, want[i].bytes);
    }
}

#define SHARDED      "'sharded':'parameters'"
#define IN(group)    "{'kind':'all_reduce','group':" group "}"
#define SERVED_BY(n) "{'kind':'parameter_server','servers':['" n "']}"
/* Members of the schedule and of three groups, and how a, b, c and d are synchronized. */
#define SHARDED_THREE(schedule, first, second, third, a, b, c, d)                                                      \
    "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'" schedule "},"                            \
    "'groups':[{'id':0," first "},{'id':1," second "},{'id':2," third "}],'variables':[{'name':'a','sync':" a "},"     \
    "{'name':'b','sync':" b "},{'name':'c','sync':" c "},{'name':'d','sync':" d "}]}"

/* Steps x y z | z.grad y.grad x.grad | update. The passes come to groups 0 1 2 and then 2 1 0, one ahead. So 0 and 1
 * are gathered after the update, 2 when the forward pass comes to 1; 2 and then 1 when the backward pass begins, 0 when
 * it comes to 1. A sum has until the next group's backward step has passed, the last two until the update. */
static void sharded_parameters_are_gathered_before_both_passes(void **state) {
    (void)state;
    static const struct want_turn want[] = {
        {HALF_gather, 6, 0, 1, 0, 4096}, {HALF_gather, 6, 1, 2, 1, 3048},  {HALF_gather, 0, 2, 1, 3, 3000},
        {HALF_gather, 2, 3, 1, 3, 3000}, {HALF_gather, 2, 4, 2, 1, 3048},  {HALF_scatter, 3, 5, 1, 3, 3000},
        {HALF_gather, 3, 5, 1, 0, 4096}, {HALF_scatter, 4, 6, 2, 1, 3048}, {HALF_scatter, 5, 6, 1, 0, 4096},
    };
    struct lowered l;
    lower_texts(&l, three_layers, SHARDED_THREE("", SHARDED, SHARDED, SHARDED, IN("0"), IN("1"), IN("1"), IN("2")));
    const struct plan *p = &l.plan;
    assert_turns(p, want, 9);
    assert_true(p->ends_in_update && p->any_all_reduce && !p->any_server);
    assert_int_equal(p->n_steps, 7);
    const double times[] = {1, 2, 3, 30, 20, 10, 0};
    assert_memory_equal(p->step_us, times, sizeof times);
    assert_int_equal(p->bytes, 4096 + 3048 + 3000);
    const uint32_t first_ready[] = {0, 1, 1, 3, 5, 6, 7, 9}, by_ready[] = {2, 3, 4, 5, 6, 7, 8, 0, 1};
    const uint32_t first_gate[] = {0, 1, 2, 3, 4, 5, 7, 9}, by_gate[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    assert_memory_equal(p->first_ready, first_ready, sizeof first_ready);
    assert_memory_equal(p->by_ready, by_ready, sizeof by_ready);
    assert_memory_equal(p->first_gate, first_gate, sizeof first_gate);
    assert_memory_equal(p->by_gate, by_gate, sizeof by_gate);
    release(&l);
}

/* Of groups 1 and 2 parameters are sharded, both gathered after the update; 2 keeps them, and 1 is gathered again when
 * the backward pass comes to it. The sums of a, in halves, and of c, served, are there before the update as well. */
static void beside_sharded_parameters_everything_ends_before_the_update(void **state) {
    (void)state;
    static const struct want_turn want[] = {
        {HALF_gather, 6, 1, 1, 1, 2048},  {HALF_gather, 6, 2, 1, 3, 3000},  {HALF_scatter, 3, 5, 1, 3, 3000},
        {HALF_gather, 3, 4, 1, 1, 2048},  {HALF_scatter, 4, 6, 1, 1, 2048}, {HALF_none, 4, 6, 1, 2, 1000},
        {HALF_scatter, 5, 6, 1, 0, 4096}, {HALF_gather, 5, 6, 1, 0, 4096},
    };
    struct lowered l;
    lower_texts(&l, three_layers,
                SHARDED_THREE(",'forward_prefetch':2,'backward_prefetch':0", "'sharded':'gradients'", SHARDED,
                              SHARDED ",'reshard_after_forward':false", IN("0"), IN("1"), SERVED_BY("n3"), IN("2")));
    assert_turns(&l.plan, want, 8);
    assert_true(l.plan.any_server && l.plan.messages[5].kind == SYNC_PARAMETER_SERVER);
    assert_int_equal(l.plan.messages[6].other, 7);
    assert_int_equal(l.plan.bytes, 4096 + 2048 + 1000 + 3000);
    assert_int_equal(plan_moved_bytes(&l.plan), 2 * 4096 + 3 * 2048 + 1000 + 2 * 3000);
    release(&l);
}

/* 4092 + 4 bytes fill the first message of 4096 exactly; the next begins with the third variable. */
static void a_message_is_filled_to_its_last_element(void **state) {
    (void)state;
    struct lowered l;
    lower_texts(
        &l,
        "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[1023]},{'name':'b','shape':[]},"
        "{'name':'c','shape':[3]}],'layers':[{'name':'l','forward_us':1,'backward_us':1,"
        "'variables':['a','b','c']}]}",
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},"
        "'groups':[{'id':0,'partition_bytes':4099}],'variables':[{'name':'a','sync':{'kind':'all_reduce','group':0}},"
        "{'name':'b','sync':{'kind':'all_reduce','group':0}},{'name':'c','sync':{'kind':'all_reduce','group':0}}]}");
    assert_int_equal(l.plan.n_messages, 2);
    assert_int_equal(l.plan.messages[0].bytes, 4096);
    assert_int_equal(l.plan.messages[0].n_pieces, 2);
    assert_int_equal(l.plan.messages[1].bytes, 12);
    release(&l);
}

static void operators_that_touch_no_variable_make_no_step(void **state) {
    (void)state;
    struct lowered l;
    lower_texts(
        &l,
        "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[3]},{'name':'u','shape':[]}],"
        "'operators':[{'name':'i','phase':'forward','time_us':1},"
        "{'name':'j','phase':'forward','time_us':2},{'name':'k','phase':'forward','time_us':4,'reads':['a']},"
        "{'name':'l','phase':'forward','time_us':8},{'name':'o','phase':'forward','time_us':16,'reads':['a']},"
        "{'name':'p','phase':'backward','time_us':32},"
        "{'name':'q','phase':'backward','time_us':64,'produces':['u','a']},"
        "{'name':'r','phase':'backward','time_us':128}]}",
        "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo','cross_iteration':true},"
        "'groups':[{'id':3}],'variables':[{'name':'a','sync':{'kind':'all_reduce','group':3}},"
        "{'name':'u','sync':{'kind':'parameter_server','servers':['n1'],'local_reduction':false}}]}");
    const double times[] = {3, 12, 16, 96, 128};
    assert_int_equal(l.plan.n_steps, 5);
    assert_int_equal(l.plan.n_forward_steps, 3);
    assert_memory_equal(l.plan.step_us, times, sizeof times);
    assert_int_equal(l.plan.n_messages, 2);
    assert_int_equal(l.plan.messages[0].bytes, 12);
    assert_int_equal(l.plan.messages[0].gate, 1);
    assert_int_equal(l.plan.messages[1].bytes, 4); /* a scalar */
    assert_int_equal(l.plan.messages[1].gate, 2);  /* read by nobody: the last forward step */
    assert_false(l.plan.messages[1].local_reduction);
    assert_int_equal(l.plan.messages[0].ready, 3);
    release(&l);
}

static void the_first_dim_mod_shards_have_one_more_row(void **state) {
    (void)state;
    const uint64_t want[] = {3, 3, 2, 2};
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(plan_shard_rows(10, 4, k), want[k]);
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 2000; round++) {
        uint64_t dim = 1 + rng_below(&rng, 5000), sum = 0;
        uint32_t shards = 1 + (uint32_t)rng_below(&rng, dim);
        for (uint32_t k = 0; k < shards; k++) {
            uint64_t rows = plan_shard_rows(dim, shards, k);
            assert_true(rows >= 1 && (k == 0 || rows <= plan_shard_rows(dim, shards, k - 1)));
            sum += rows;
        }
        assert_int_equal(sum, dim);
        assert_true(plan_shard_rows(dim, shards, 0) - plan_shard_rows(dim, shards, shards - 1) <= 1);
    }
}

static void sparse_and_encoded_gradients_have_the_bytes_that_travel(void **state) {
    (void)state;
    const uint64_t shape[] = {1000, 10};
    struct variable v = {.rank = 2, .shape = shape, .elements = 10000, .bytes = 40000, .sparse_rows = 7};
    struct variable_sync sync = {.shards = 1, .kind = SYNC_ALL_REDUCE};
    struct group group = {.algorithm = ALGORITHM_auto};
    const struct strategy s = {.n_groups = 1, .groups = &group};
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 40000); /* an all-reduce is dense */
    group.algorithm = ALGORITHM_all_gather;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 7 * (40 + 8)); /* an all-gather is not */
    sync.kind = SYNC_PARAMETER_SERVER;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 7 * (40 + 8));
    sync.encoding = ENCODING_bf16;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 7 * (20 + 8));
    sync.shards = 16; /* more shards than touched rows */
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 7 * (20 + 8));
    sync.axis = 1;
    sync.shards = 3; /* every shard names every row */
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 7 * (20 + 3 * 8));
    v.sparse_rows = 0;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 20000);
    v.dtype = DTYPE_f64;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 20000);
    sync.encoding = ENCODING_none;
    assert_int_equal(plan_gradient_bytes(&s, &v, &sync), 80000);
    struct variable scalar = {.elements = 1, .bytes = 4};
    assert_int_equal(plan_gradient_bytes(&s, &scalar, &(struct variable_sync){.axis = 5, .shards = 1}), 4);
}

/* b is f32 in a group of f16; d is f16 by itself. Order of readiness: d (3000 bytes), b (5120 of 10240). */
static void a_message_knows_what_of_it_is_encoded(void **state) {
    (void)state;
    static const char model[] =
        "{'schema':'syncopate.model/1','name':'two','variables':[{'name':'b','shape':[2560],'dtype':'f32'},"
        "{'name':'d','shape':[1500],'dtype':'f16'}],'layers':["
        "{'name':'x','forward_us':1,'backward_us':10,'variables':['b']},"
        "{'name':'y','forward_us':2,'backward_us':20,'variables':['d']}]}";
    static const char strategy[] = "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},"
                                   "'groups':[{'id':0,'algorithm':'ring','partition_bytes':4000}],'variables':["
                                   "{'name':'b','encoding':'f16','sync':{'kind':'all_reduce','group':0}},"
                                   "{'name':'d','sync':{'kind':'all_reduce','group':0}}]}";
    static const uint64_t want[][3] = {{4000, 1000, 2000}, {4000, 4000, 8000}, {120, 120, 240}};
    struct lowered l;
    lower_texts(&l, model, strategy);
    assert_int_equal(l.plan.n_messages, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(l.plan.messages[i].bytes, want[i][0]);
        assert_int_equal(l.plan.messages[i].encoded_bytes, want[i][1]);
        assert_int_equal(l.plan.messages[i].unencoded_bytes, want[i][2]);
    }
    assert_true(l.plan.lossy);
    release(&l);
}

static bool same_plan(const struct plan *a, const struct plan *b) {
    if (a->n_steps != b->n_steps || a->n_messages != b->n_messages || a->n_pieces != b->n_pieces ||
        a->bytes != b->bytes || a->max_bytes != b->max_bytes || a->n_forward_steps != b->n_forward_steps)
        return false;
    for (uint32_t i = 0; i < a->n_messages; i++) {
        const struct message *x = &a->messages[i], *y = &b->messages[i];
        if (x->bytes != y->bytes || x->ready != y->ready || x->gate != y->gate || x->kind != y->kind ||
            x->algorithm != y->algorithm || x->server != y->server || x->dtype != y->dtype ||
            x->fifo_rank != y->fifo_rank || x->first_piece != y->first_piece || x->n_pieces != y->n_pieces)
            return false;
    }
    for (uint32_t i = 0; i < a->n_pieces; i++)
        if (a->pieces[i].variable != b->pieces[i].variable || a->pieces[i].bytes != b->pieces[i].bytes ||
            a->pieces[i].offset_bytes != b->pieces[i].offset_bytes)
            return false;
    return !memcmp(a->step_us, b->step_us, a->n_steps * sizeof *a->step_us) &&
           !memcmp(a->by_ready, b->by_ready, a->n_messages * sizeof *a->by_ready) &&
           !memcmp(a->by_gate, b->by_gate, a->n_messages * sizeof *a->by_gate);
}

/* What the random instances must have met, so that a generator that grows tame does not hollow out the test. */
struct met {
    unsigned messages, servers, shared, cuts, ways, barriers, priorities, slices, sparse, gathered, scalars;
    unsigned halves, sharded, kept, carried; /* groups */
};

static void count_met(struct met *met, const struct strategy *s, const struct plan *p) {
    met->messages += p->n_messages;
    met->barriers += !s->cross_iteration;
    met->priorities += s->policy == POLICY_priority;
    met->slices += s->n_slices;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        met->halves += s->groups[g].sharded && s->groups[g].sharded != SHARDED_parameters;
        met->sharded += s->groups[g].sharded == SHARDED_parameters;
        met->kept += s->groups[g].keeps_gathered;
        met->carried += s->groups[g].gathered_as || s->groups[g].summed_as;
    }
    for (uint32_t v = 0; v < s->n_variables; v++) {
        met->servers += s->variables[v].kind == SYNC_PARAMETER_SERVER;
        met->shared += s->variables[v].push > 0;
        met->cuts += s->variables[v].shards > 1;
        met->ways += s->variables[v].each != NULL;
        met->sparse += s->variables[v].kind == SYNC_PARAMETER_SERVER && p->model->variables[v].sparse_rows;
        met->gathered += s->variables[v].kind == SYNC_ALL_REDUCE &&
                         s->groups[s->variables[v].group].algorithm == ALGORITHM_all_gather;
        met->scalars += !p->model->variables[v].rank;
    }
}

static void check_strategies(struct rng *rng, const struct model *m, const struct cluster *c, struct plan *reused,
                             struct met *met) {
    struct error err = {0};
    for (int k = 0; k < 3; k++) {
        struct strategy s;
        struct plan p;
        assert_ok(any_strategy(rng, m, c, &s, &err));
        assert_ok(strategy_seal(&s, m, c, &err));
        assert_ok(plan_lower(m, c, &s, &p, &err));
        const char *broken = plan_broken(&p, &s);
        if (broken) {
            char *text = json_pretty(strategy_write(&s, m, c));
            print_error("%s\n", text);
            free(text);
            fail_msg("%s", broken);
        }
        assert_ok(plan_relower(reused, m, c, &s, &err));
        assert_true(same_plan(&p, reused));
        count_met(met, &s, &p);
        plan_release(&p);
        strategy_release(&s);
    }
}

static void every_rule_holds_on_random_instances(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    struct plan reused = {0};
    struct met met = {0};
    rng_seed(&rng, test_seed() + 1);
    for (int round = 0; round < 1000; round++) {
        struct model m;
        struct cluster c;
        assert_ok(random_updated_model(&rng, &m, &err));
        assert_ok(random_cluster(&rng, &c, &err));
        check_strategies(&rng, &m, &c, &reused, &met);
        model_release(&m);
        cluster_release(&c);
    }
    plan_release(&reused);
    print_message(
        "# 3000 plans: %u messages (%u slices), %u served (%u in shared pushes), %u cut, %u sparse, %u gathered and %u "
        "scalar variables, %u with ways for each shard; %u groups in halves, %u with sharded parameters, %u of them "
        "kept\n",
        met.messages, met.slices, met.servers, met.shared, met.cuts, met.sparse, met.gathered, met.scalars, met.ways,
        met.halves, met.sharded, met.kept);
    assert_true(met.messages > 20000 && met.servers > 3000 && met.shared > 1000 && met.cuts > 3000 &&
                met.barriers > 300 && met.priorities > 300 && met.slices > 5000 && met.sparse > 100 &&
                met.gathered > 50 && met.scalars > 100 && met.ways > 300 && met.halves > 500 && met.sharded > 300 &&
                met.kept > 50 && met.carried > 50);
}

/* ---- micro-batches ---- */

/* A message of the plan of one micro-batch, in one of several. */
struct instance {
    const struct message *of;
    uint32_t pass, ready, gate;
};

/* A second half, or what replicas add. */
static bool is_second(const struct message *m) {
    return (m->half == HALF_gather && m->other != NO_MESSAGE) || m->half == HALF_replicas;
}

/* All-gathers of parameters go in each pass, updated variables and what replicas add in the last, and gradients as the
 * strategy says. */
static bool goes_in(const struct message *m, const struct strategy *s, uint32_t pass) {
    const bool last = pass + 1 == s->micro_batches;
    return m->half == HALF_gather && !is_second(m) ? true : is_second(m) ? last : last || s->synchronize;
}

/* The next step after `ready` at which a pass comes to the gate. */
static uint32_t next_gate(uint32_t ready, uint32_t gate, uint32_t pass_steps, uint32_t n_steps) {
    uint32_t step = ready;
    do
        step = (step + 1) % n_steps;
    while (step % pass_steps != gate);
    return step;
}

static uint32_t list_instances(const struct plan *one, const struct strategy *s, struct instance *out) {
    const uint32_t n_steps = one->n_steps * s->micro_batches;
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < s->micro_batches; pass++)
        for (uint32_t m = 0; m < one->n_messages; m++)
            if (goes_in(&one->messages[m], s, pass)) {
                const uint32_t ready = pass * one->n_steps + one->messages[m].ready;
                out[n++] = (struct instance){&one->messages[m], pass, ready,
                                             next_gate(ready, one->messages[m].gate, one->n_steps, n_steps)};
            }
    return n;
}

static uint64_t fifo_key(const struct instance *i, const struct plan *many) {
    const uint32_t turn = many->ends_in_update ? (i->ready + 1) % many->n_steps : i->ready;
    return ((uint64_t)(is_second(i->of) ? 1 + i->gate : 0) << 32) + turn;
}

/* By the rules of strategy/plan.h; what they leave open is as in one micro-batch. */
static bool goes_before(const struct instance *a, const struct instance *b, const struct plan *many) {
    if (many->policy == POLICY_preemptive)
        return a->pass != b->pass ? a->pass < b->pass : a->of < b->of;
    if (many->policy == POLICY_priority && a->gate != b->gate)
        return a->gate < b->gate;
    const uint64_t x = fifo_key(a, many), y = fifo_key(b, many);
    return x != y ? x < y : a->of < b->of;
}

static void sort_instances(struct instance *list, uint32_t n, const struct plan *many) {
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0 && goes_before(&list[j], &list[j - 1], many); j--) {
            const struct instance swapped = list[j];
            list[j] = list[j - 1];
            list[j - 1] = swapped;
        }
}

static void assert_instance(const struct plan *many, uint32_t m, const struct plan *one, const struct instance *want) {
    const struct message *got = &many->messages[m], *of = want->of;
    const bool alone = of->other == NO_MESSAGE || want->pass + 1 < many->micro_batches;
    assert_int_equal(got->ready, want->ready);
    assert_int_equal(got->gate, want->gate);
    assert_int_equal(got->bytes, of->bytes);
    /* What sharded parameters' gradients are converted to depends on where they are added up. */
    const bool converted = message_is_of_shards(of) || message_is_of_replicas(of);
    assert_true(got->kind == of->kind && got->algorithm == of->algorithm && got->half == of->half &&
                got->server == of->server && got->local_reduction == of->local_reduction && got->dtype == of->dtype &&
                got->encoder == of->encoder && (converted || got->encoded_bytes == of->encoded_bytes));
    assert_true(got->ranks == of->ranks && got->stride == of->stride);
    assert_int_equal(got->other == NO_MESSAGE, alone);
    if (!alone && of->half == HALF_replicas)
        assert_int_equal(many->messages[got->other].replicas, m);
    else if (!alone)
        assert_int_equal(many->messages[got->other].other, m);
    assert_int_equal(got->n_pieces, of->n_pieces);
    for (uint32_t k = 0; k < of->n_pieces; k++)
        assert_memory_equal(&many->pieces[got->first_piece + k], &one->pieces[of->first_piece + k],
                            sizeof *one->pieces);
}

/* Each message is where its step is, but second halves wait for no step, and no step waits for first ones. */
static void assert_listed(const struct plan *p) {
    uint32_t readies = 0, gates = 0;
    for (uint32_t k = 0; k < p->n_steps; k++) {
        for (uint32_t i = p->first_ready[k]; i < p->first_ready[k + 1]; i++, readies++)
            assert_true(p->messages[p->by_ready[i]].ready == k && !is_second(&p->messages[p->by_ready[i]]));
        for (uint32_t i = p->first_gate[k]; i < p->first_gate[k + 1]; i++, gates++)
            assert_true(p->messages[p->by_gate[i]].gate == k && !message_is_first_half(&p->messages[p->by_gate[i]]));
    }
    for (uint32_t m = 0; m < p->n_messages; m++) {
        readies += is_second(&p->messages[m]);
        gates += message_is_first_half(&p->messages[m]);
    }
    assert_int_equal(readies, p->n_messages);
    assert_int_equal(gates, p->n_messages);
}

/* Of a plan of one micro-batch. */
static double step_without_update(const struct plan *one, uint32_t step) {
    double us = 0;
    for (uint32_t i = 0; i < one->model->n_operators; i++)
        us += one->step_of[i] == step ? one->model->operators[i].time_us : 0;
    return us;
}

/* An update comes once: before the first pass, or after the last. */
static double update_in_step(const struct plan *one, const struct plan *many, uint32_t step) {
    const uint32_t pass = one->ends_in_update ? many->micro_batches - 1 : 0, in_pass = step % one->n_steps;
    return step / one->n_steps == pass ? one->step_us[in_pass] - step_without_update(one, in_pass) : 0;
}

static uint32_t check_micro_batches(const struct plan *one, const struct plan *many, const struct strategy *s) {
    struct instance *list = calloc((size_t)one->n_messages * s->micro_batches + 1, sizeof *list);
    assert_non_null(list);
    assert_int_equal(many->n_steps, one->n_steps * s->micro_batches);
    assert_true(many->update_us == one->update_us);
    for (uint32_t k = 0; k < many->n_steps; k++)
        assert_close(many->step_us[k], step_without_update(one, k % one->n_steps) + update_in_step(one, many, k), 1e-9);
    const uint32_t n = list_instances(one, s, list);
    assert_int_equal(many->n_messages, n);
    sort_instances(list, n, many);
    for (uint32_t m = 0; m < n; m++)
        assert_instance(many, m, one, &list[m]);
    assert_listed(many);
    free(list);
    return n;
}

static void micro_batches_repeat_the_plan_of_one(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    unsigned messages = 0, each = 0, sharded = 0, replicas = 0, slices = 0, priorities = 0;
    rng_seed(&rng, test_seed() + 5);
    for (int round = 0; round < 400; round++) {
        struct model m;
        struct cluster c;
        struct strategy s;
        struct plan one, many = {0};
        assert_ok(random_updated_model(&rng, &m, &err));
        assert_ok(random_cluster(&rng, &c, &err));
        assert_ok(any_strategy(&rng, &m, &c, &s, &err));
        assert_ok(plan_lower(&m, &c, &s, &one, &err));
        any_accumulation(&rng, &s);
        assert_ok(plan_relower(&many, &m, &c, &s, &err));
        if (one.n_messages < 400)
            messages += check_micro_batches(&one, &many, &s);
        each += many.sums_each;
        sharded += many.ends_in_update;
        replicas += many.n_replicas > 0;
        slices += s.n_slices;
        priorities += s.policy == POLICY_priority;
        plan_release(&one);
        plan_release(&many);
        strategy_release(&s);
        model_release(&m);
        cluster_release(&c);
    }
    print_message("# %u messages, %u slices; of 400 plans %u sum each micro-batch, %u with sharded parameters, %u "
                  "with replicas, %u by priority\n",
                  messages, slices, each, sharded, replicas, priorities);
    assert_true(messages > 5000 && each > 100 && sharded > 20 && replicas > 3 && slices > 500 && priorities > 50);
}

/* Sealing moves and drops groups, but the same bytes go the same way. To several groups with sharded parameters at one
 * step a pass comes in the order of their numbers, which sealing changes. */
static void sealing_changes_no_message(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 2);
    for (int round = 0; round < 300; round++) {
        struct model m;
        struct cluster c;
        struct strategy s;
        struct plan before, after;
        assert_ok(random_updated_model(&rng, &m, &err));
        assert_ok(random_cluster(&rng, &c, &err));
        assert_ok(any_strategy(&rng, &m, &c, &s, &err));
        assert_ok(plan_lower(&m, &c, &s, &before, &err));
        assert_ok(strategy_seal(&s, &m, &c, &err));
        assert_ok(plan_lower(&m, &c, &s, &after, &err));
        assert_int_equal(before.n_messages, after.n_messages);
        assert_int_equal(before.bytes, after.bytes);
        assert_int_equal(before.max_bytes, after.max_bytes);
        assert_int_equal(before.n_steps, after.n_steps);
        if (!before.ends_in_update) {
            const size_t size = (before.n_steps + 1) * sizeof *before.first_ready;
            assert_memory_equal(before.first_ready, after.first_ready, size);
            assert_memory_equal(before.first_gate, after.first_gate, size);
        }
        plan_release(&before);
        plan_release(&after);
        strategy_release(&s);
        model_release(&m);
        cluster_release(&c);
    }
}

static void what_cannot_be_lowered_is_refused_and_the_plan_can_be_used_again(void **state) {
    (void)state;
    struct error err = {0};
    struct model m, huge;
    struct cluster c;
    struct strategy s, t;
    struct plan p = {0}, untouched = {.n_steps = 77};
    assert_ok(quoted_model(three_layers, &m, &err));
    assert_ok(quoted_model("{'schema':'syncopate.model/1','name':'h','variables':[{'name':'v','shape':[1e12,256]}],"
                           "'layers':[{'name':'l','forward_us':1,'backward_us':1,'variables':['v']}]}",
                           &huge, &err));
    assert_ok(quoted_cluster(CLUSTER, &c, &err));
    assert_ok(strategy_init(&s, "s", &m, 1, &err));
    assert_ok(plan_relower(&p, &m, &c, &s, &err));
    s.policy = POLICY_preemptive;
    assert_fails(plan_relower(&p, &m, &c, &s, &err), ST_INVALID, "the slices of group 0 leave");
    assert_int_equal(p.n_messages, 0);
    s.policy = POLICY_fifo;
    s.variables[1].shards = 513;
    assert_fails(plan_lower(&m, &c, &s, &untouched, &err), ST_INVALID,
                 "\"b\" is cut into 513 shards but axis 0 has 512");
    assert_int_equal(untouched.n_steps, 77);
    s.variables[1].shards = 1;
    assert_ok(strategy_init(&t, "t", &huge, 1, &err));
    t.groups[0].partition_bytes = 1024;
    double start = computed_us();
    assert_fails(plan_relower(&p, &huge, &c, &t, &err), ST_INFEASIBLE, "more than 4000000 messages");
    assert_true(computed_us() - start < 5e6); /* 10^12 messages are not even counted */
    assert_fails(plan_lower(&huge, &c, &s, &untouched, &err), ST_INVALID, "a strategy for 4 variables");
    assert_ok(plan_relower(&p, &m, &c, &s, &err));
    assert_int_equal(p.n_messages, 1);
    plan_release(&p);
    plan_release(&p);
    strategy_release(&s);
    strategy_release(&t);
    model_release(&m);
    model_release(&huge);
    cluster_release(&c);
}

/* n variables of 64 KiB, in n / 4 layers. */
static void large_model(uint32_t n, struct model *out) {
    struct error err = {0};
    char *text = malloc(n * 96u + 256), *p = text;
    assert_non_null(text);
    p += sprintf(p, "{'schema':'syncopate.model/1','name':'large','variables':[");
    for (uint32_t i = 0; i < n; i++)
        p += sprintf(p, "%s{'name':'layer%u.weight','shape':[128,128]}", i ? "," : "", i);
    p += sprintf(p, "],'layers':[");
    for (uint32_t i = 0; i < n; i += 4)
        p += sprintf(p,
                     "%s{'name':'l%u','forward_us':1,'backward_us':2,'variables':['layer%u.weight',"
                     "'layer%u.weight','layer%u.weight','layer%u.weight']}",
                     i ? "," : "", i, i, i + 1, i + 2, i + 3);
    strcpy(p, "]}");
    assert_ok(quoted_model(text, out, &err));
    free(text);
}

static void time_lowering(uint32_t n, const struct cluster *c) {
    struct error err = {0};
    struct model m;
    struct strategy s;
    struct plan p = {0};
    double best_seal = 1e30, best_lower = 1e30;
    large_model(n, &m);
    assert_ok(strategy_init(&s, "s", &m, n / 8, &err));
    for (uint32_t v = 0; v < n; v++)
        s.variables[v].group = v / 8;
    for (uint32_t g = 0; g < n / 8; g++)
        s.groups[g].partition_bytes = 100000;
    s.policy = POLICY_priority;
    s.cross_iteration = true;
    for (int k = 0; k < (n > 1000 ? 5 : 50); k++) {
        double start = clock_now_us();
        assert_ok(strategy_seal(&s, &m, c, &err));
        double sealed = clock_now_us();
        assert_ok(plan_relower(&p, &m, c, &s, &err));
        double end = clock_now_us();
        best_seal = sealed - start < best_seal ? sealed - start : best_seal;
        best_lower = end - sealed < best_lower ? end - sealed : best_lower;
    }
    print_message("# %u variables: seal %.0f us, lower %.0f us (%u messages)\n", n, best_seal, best_lower,
                  p.n_messages);
    const char *broken = plan_broken(&p, &s);
    if (broken)
        fail_msg("%s", broken);
    plan_release(&p);
    strategy_release(&s);
    model_release(&m);
}

static void large_models_are_lowered_too(void **state) {
    (void)state;
    struct error err = {0};
    struct cluster c;
    assert_ok(quoted_cluster(CLUSTER, &c, &err));
    time_lowering(400, &c);
    time_lowering(10000, &c);
    cluster_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_plan_is_the_one_worked_out_by_hand),
        cmocka_unit_test(variables_that_share_a_push_travel_together),
        cmocka_unit_test(a_slice_is_the_next_bytes_of_its_group),
        cmocka_unit_test(each_shard_goes_its_own_way),
        cmocka_unit_test(with_the_barrier_every_message_gates_the_first_step),
        cmocka_unit_test(sharded_parameters_are_gathered_before_both_passes),
        cmocka_unit_test(beside_sharded_parameters_everything_ends_before_the_update),
        cmocka_unit_test(a_message_is_filled_to_its_last_element),
        cmocka_unit_test(operators_that_touch_no_variable_make_no_step),
        cmocka_unit_test(the_first_dim_mod_shards_have_one_more_row),
        cmocka_unit_test(sparse_and_encoded_gradients_have_the_bytes_that_travel),
        cmocka_unit_test(a_message_knows_what_of_it_is_encoded),
        cmocka_unit_test(every_rule_holds_on_random_instances),
        cmocka_unit_test(micro_batches_repeat_the_plan_of_one),
        cmocka_unit_test(sealing_changes_no_message),
        cmocka_unit_test(what_cannot_be_lowered_is_refused_and_the_plan_can_be_used_again),
        cmocka_unit_test(large_models_are_lowered_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
