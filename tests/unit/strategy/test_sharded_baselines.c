/* Baselines that shard parameters, gradients or the optimizer, against groups worked out by hand; on random instances
 * against the rules of FSDP2 and DeepSpeed, written down here once more. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/blocks.h"
#include "strategy/baselines/fsdp.h"
#include "strategy/baselines/zero.h"
#include "strategy/plan.h"
#include "strategy/space/ready_order.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/descriptions.h"

static const char on_nccl[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':3,'devices':1,'nic_gbit_per_s':10}]}";
static const char on_gloo[] = "{'schema':'syncopate.cluster/1','name':'c','transport':'gloo','nodes':[{'name':'n',"
                              "'count':3,'devices':1,'nic_gbit_per_s':10}]}";

/* An embedding, two blocks (one of which has a variable in f16), a norm and a head; the file has them in another order
 * than the forward pass. */
static const char decoder[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'head','shape':[700]},"
    "{'name':'h.0.a.0.w','shape':[10]},{'name':'h.0.b','shape':[20]},{'name':'h.10.a','shape':[30]},"
    "{'name':'h.10.b','shape':[40],'dtype':'f16'},{'name':'ln.w','shape':[5]},{'name':'embed.w','shape':[600]}],"
    "'layers':[{'name':'1','forward_us':1,'backward_us':1,'variables':['embed.w']},"
    "{'name':'2','forward_us':1,'backward_us':1,'variables':['h.0.a.0.w','h.0.b']},"
    "{'name':'3','forward_us':1,'backward_us':1,'variables':['h.10.a','h.10.b']},"
    "{'name':'4','forward_us':1,'backward_us':1,'variables':['ln.w','head']}]}";

struct world {
    struct model model;
    struct cluster cluster;
};

static void world_open(struct world *w, const char *model, const char *cluster) {
    struct error err = {0};
    assert_ok(quoted_model(model, &w->model, &err));
    assert_ok(quoted_cluster(cluster, &w->cluster, &err));
}

static void world_close(struct world *w) {
    cluster_release(&w->cluster);
    model_release(&w->model);
}

/* A strategy as a line: the group of each variable; of each group p, g or o for what is sharded, P where it stays
 * gathered; prefetch; the number of messages. */
static void check_strategy(const struct world *w, const struct strategy *s, const char *want) {
    struct error err = {0};
    struct plan plan;
    char got[160] = "";
    for (uint32_t v = 0; v < s->n_variables; v++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u", s->variables[v].group);
    snprintf(got + strlen(got), sizeof got - strlen(got), " ");
    for (uint32_t g = 0; g < s->n_groups; g++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%c",
                 s->groups[g].keeps_gathered ? 'P' : "-ogp"[s->groups[g].sharded]);
    assert_ok(plan_lower(&w->model, &w->cluster, s, &plan, &err));
    snprintf(got + strlen(got), sizeof got - strlen(got), " %u/%u %u", s->forward_prefetch, s->backward_prefetch,
             plan.n_messages);
    assert_string_equal(got, want);
    assert_int_equal(s->policy, POLICY_fifo);
    assert_int_equal(s->credit_bytes, 0);
    assert_false(s->cross_iteration);
    plan_release(&plan);
}

static void check_baseline(const char *name, const char *model, const char *cluster, const char *want) {
    struct error err = {0};
    struct world w;
    struct strategy s;
    world_open(&w, model, cluster);
    assert_non_null(baselines_find(name));
    assert_ok(baselines_build(baselines_find(name), &w.model, &w.cluster, &s, &err));
    assert_string_equal(s.name, name);
    check_strategy(&w, &s, want);
    strategy_release(&s);
    world_close(&w);
}

static void a_block_is_the_path_up_to_its_first_number(void **state) {
    (void)state;
    static const struct {
        const char *name, *block;
    } cases[] = {{"model.layers.3.mlp.up_proj.weight", "model.layers.3"},
                 {"layer4.1.downsample.0.weight", "layer4.1"},
                 {"h.12.experts.7.w", "h.12"},
                 {"0.weight", "0"},
                 {"model.embed_tokens.weight", ""},
                 {"conv1.weight", ""},
                 {"features.denseblock1.denselayer2.conv1.weight", ""},
                 {"scales.3", ""},
                 {"encoder..weight", ""},
                 {"h.3a.w", ""},
                 {"12", ""},
                 {".", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char got[80];
        snprintf(got, sizeof got, "%.*s", (int)block_length(cases[i].name), cases[i].name);
        assert_string_equal(got, cases[i].block);
    }
}

/* head, h.0 twice, h.10 in f32 and f16, ln and embedding. All-gathers: 3 blocks' groups twice, the root's once. */
static void fsdp_per_block_keeps_the_root(void **state) {
    (void)state;
    check_baseline("fsdp-per-block", decoder, on_nccl, "0112300 Pppp 2/1 11");
}

/* As fsdp-per-block, with an all-reduce among replicas for each of the 4 groups; shards among as many devices as divide
 * those of every node. */
static void hsdp_shards_within_nodes(void **state) {
    (void)state;
    static const struct {
        const char *nodes;
        uint32_t ranks;
        const char *want;
    } cases[] = {
        {"{'name':'n','count':4,'devices':8,'nic_gbit_per_s':100,'device_link_gbyte_per_s':100}", 8,
         "0112300 Pppp 2/1 15"},
        {"{'name':'a','devices':4,'nic_gbit_per_s':100,'device_link_gbyte_per_s':100},"
         "{'name':'b','devices':6,'nic_gbit_per_s':100,'device_link_gbyte_per_s':100}",
         2, "0112300 Pppp 2/1 15"},
        {"{'name':'n','count':4,'nic_gbit_per_s':100}", 0, "0112300 Pppp 2/1 11"},
        {"{'name':'n','devices':8,'nic_gbit_per_s':100,'device_link_gbyte_per_s':100}", 0, "0112300 Pppp 2/1 11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char cluster[400];
        struct error err = {0};
        struct world w;
        struct strategy s;
        snprintf(cluster, sizeof cluster, "{'schema':'syncopate.cluster/1','name':'c','nodes':[%s]}", cases[i].nodes);
        world_open(&w, decoder, cluster);
        assert_ok(baselines_build(baselines_find("hsdp"), &w.model, &w.cluster, &s, &err));
        assert_int_equal(s.shard_ranks, cases[i].ranks);
        check_strategy(&w, &s, cases[i].want);
        strategy_release(&s);
        world_close(&w);
    }
}

static void on_gloo_nothing_is_gathered_ahead(void **state) {
    (void)state;
    check_baseline("fsdp-per-block", decoder, on_gloo, "0112300 Pppp 0/0 11");
}

static void fsdp_whole_is_one_group_a_dtype(void **state) {
    (void)state;
    check_baseline("fsdp-whole", decoder, on_nccl, "0000100 PP 2/1 4");
}

/* The embedding reshards; the last norm and the head stay. */
static void torchtitan_wraps_the_embedding_alone_and_keeps_the_head(void **state) {
    (void)state;
    check_baseline("torchtitan", decoder, on_nccl, "0112304 Ppppp 2/1 14");
}

/* Read first and last. */
static const char tied[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'e','shape':[9]},{'name':'p','shape':[8]},"
    "{'name':'h.0.w','shape':[7]},{'name':'n','shape':[6]}],'operators':["
    "{'name':'1','phase':'forward','time_us':1,'reads':['e','p']},"
    "{'name':'2','phase':'forward','time_us':1,'after':['1'],'reads':['h.0.w']},"
    "{'name':'3','phase':'forward','time_us':1,'after':['2'],'reads':['n','e']},"
    "{'name':'3b','phase':'backward','time_us':1,'after':['3'],'produces':['n']},"
    "{'name':'2b','phase':'backward','time_us':1,'after':['3b'],'produces':['h.0.w']},"
    "{'name':'1b','phase':'backward','time_us':1,'after':['2b'],'produces':['e','p']}]}";

static void a_tied_embedding_is_wrapped_with_the_head(void **state) {
    (void)state;
    check_baseline("torchtitan", tied, on_nccl, "0010 Pp 2/1 5");
}

static const char plain[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[60000000]},{'name':'b','shape':[20]},"
    "{'name':'c','shape':[300000000]},{'name':'d','shape':[150000]},{'name':'e','shape':[200000000]},"
    "{'name':'f','shape':[30],'dtype':'f16'}],"
    "'layers':[{'name':'1','forward_us':1,'backward_us':1,'variables':['a']},"
    "{'name':'2','forward_us':1,'backward_us':1,'variables':['b','c']},"
    "{'name':'3','forward_us':1,'backward_us':1,'variables':['d','f']},"
    "{'name':'4','forward_us':1,'backward_us':1,'variables':['e']}]}";

static void a_model_without_blocks_is_one_group(void **state) {
    (void)state;
    check_baseline("fsdp-per-block", plain, on_nccl, "000001 PP 2/1 4");
    check_baseline("torchtitan", plain, on_nccl, "000001 PP 2/1 4");
}

/* 560,150,020 elements in f32 are two messages of at most 500,000,000; each is two halves. */
static void zero_1_sums_behind_the_backward_pass(void **state) {
    (void)state;
    check_baseline("zero-1", plain, on_nccl, "000001 oo 1/1 6");
}

/* Ready: e, d and f, b, c, a. 200,150,020 elements and then c would be above 500 million; c and a. */
static void zero_2_closes_a_bucket_before_it_is_too_large(void **state) {
    (void)state;
    check_baseline("zero-2", plain, on_nccl, "010112 ggg 1/1 6");
}

/* Read: a, which is a bucket by itself; c; d and e. b and f are not sharded. Behind a come 500,150,000 elements, too
 * many to keep it. */
static void zero_3_gathers_in_the_order_of_use(void **state) {
    (void)state;
    check_baseline("zero-3", plain, on_nccl, "012334 pgPPg 3/3 11");
}

static void zeros_settings_change_what_it_does(void **state) {
    (void)state;
    static const struct {
        struct zero_settings settings;
        const char *want;
    } cases[] = {
        {{.stage = 1, .overlap_comm = true, .reduce_bucket_size = 500000000}, "010112 ooo 1/1 6"},
        {{.stage = 1, .reduce_bucket_size = UINT64_MAX}, "000001 oo 1/1 4"},
        {{.stage = 2, .reduce_bucket_size = UINT64_MAX}, "000001 gg 1/1 4"},
        {{.stage = 2, .reduce_bucket_size = 1}, "012345 gggggg 1/1 12"},
        {{.stage = 3, .prefetch_bucket_size = 1}, "012345 pppppp 0/0 18"},
        {{.stage = 3, .prefetch_bucket_size = 0}, "012345 pppppp 0/0 18"},
        {{.stage = 3, .prefetch_bucket_size = 1, .max_live_parameters = 2}, "012345 pppppp 2/2 18"},
        {{.stage = 3, .prefetch_bucket_size = UINT64_MAX, .max_live_parameters = UINT64_MAX}, "000001 pp 1/1 6"},
        {{.stage = 3, .prefetch_bucket_size = 1, .persistence_threshold = 150000, .max_reuse_distance = 1},
         "012134 pgpPg 0/0 12"},
    };
    struct world w;
    world_open(&w, plain, on_nccl);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct strategy s;
        assert_ok(zero_build(&w.model, &w.cluster, &cases[i].settings, "mine", &s, &err));
        check_strategy(&w, &s, cases[i].want);
        strategy_release(&s);
    }
    world_close(&w);
}

/* ---- random instances ---- */

static void random_world(uint64_t number, struct rng *rng, struct world *w) {
    struct error err = {0};
    rng_split(rng, test_seed(), number);
    assert_ok(random_model(rng, &w->model, &err));
    assert_ok(random_cluster(rng, &w->cluster, &err));
}

static uint32_t first_read(const struct model *model, uint32_t v) {
    for (uint32_t i = 0; i < model->n_forward; i++)
        for (uint32_t r = 0; r < model->operators[model->order[i]].n_reads; r++)
            if (model->operators[model->order[i]].reads[r] == v)
                return i;
    return UINT32_MAX;
}

static void variables_come_in_the_order_of_their_first_use(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        struct error err = {0};
        struct rng rng;
        struct world w;
        random_world(i, &rng, &w);
        uint32_t order[64];
        bool seen[64] = {false};
        assert_true(w.model.n_variables <= 64);
        assert_ok(read_order(&w.model, order, &err));
        for (uint32_t k = 0; k < w.model.n_variables; k++) {
            assert_false(seen[order[k]]);
            seen[order[k]] = true;
            const uint32_t now = first_read(&w.model, order[k]), before = k ? first_read(&w.model, order[k - 1]) : 0;
            assert_true(k == 0 || before < now || (before == now && order[k - 1] < order[k]));
        }
        world_close(&w);
    }
}

static void every_sharded_baseline_can_be_lowered(void **state) {
    (void)state;
    static const char *const names[] = {"fsdp-per-block", "fsdp-whole", "torchtitan", "zero-1", "zero-2", "zero-3"};
    for (uint64_t i = 0; i < 300; i++) {
        struct rng rng;
        struct world w;
        random_world(i, &rng, &w);
        for (size_t b = 0; b < sizeof names / sizeof names[0]; b++) {
            struct error err = {0};
            struct strategy s;
            struct plan plan;
            assert_ok(baselines_build(baselines_find(names[b]), &w.model, &w.cluster, &s, &err));
            assert_ok(plan_lower(&w.model, &w.cluster, &s, &plan, &err));
            for (uint32_t g = 0; g < s.n_groups; g++)
                assert_int_not_equal(s.groups[g].sharded, SHARDED_none);
            plan_release(&plan);
            strategy_release(&s);
        }
        world_close(&w);
    }
}

/* What stage 3 gathers, plainly: variables leave a queue in the order of use until what has left reaches the bucket's
 * size; each dtype has a queue. Both uses of variable v are as far apart as the variables behind its bucket, twice. */
static void check_zero_3(const struct world *w, const struct zero_settings *settings, const struct strategy *s) {
    const struct model *model = &w->model;
    struct error err = {0};
    uint32_t order[64], n_parameters = 0;
    bool counted[64] = {false};
    assert_ok(read_order(model, order, &err));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        uint64_t left = 0;
        uint32_t group = UINT32_MAX;
        for (uint32_t i = 0; i < model->n_variables; i++) {
            const struct variable *v = &model->variables[order[i]];
            const struct group *mine = &s->groups[s->variables[order[i]].group];
            if ((int)v->dtype != dtype)
                continue;
            assert_int_equal(mine->sharded,
                             v->elements <= settings->persistence_threshold ? SHARDED_gradients : SHARDED_parameters);
            if (mine->sharded == SHARDED_gradients)
                continue;
            const uint32_t g = s->variables[order[i]].group;
            assert_int_equal(g == group, group != UINT32_MAX && left < settings->prefetch_bucket_size);
            assert_true(g == group || !counted[g]);
            left = (g == group ? left : 0) + v->elements;
            group = g;
            n_parameters += !counted[g];
            counted[g] = true;
            uint64_t behind = 0;
            for (uint32_t k = model->n_variables; k-- > 0 && s->variables[order[k]].group != g;)
                behind += model->variables[order[k]].elements > settings->persistence_threshold
                              ? model->variables[order[k]].elements
                              : 0;
            assert_int_equal(mine->keeps_gathered, 2 * behind < settings->max_reuse_distance);
        }
    }
    const uint64_t ahead = settings->max_live_parameters / settings->prefetch_bucket_size;
    const uint64_t want = !n_parameters ? 1 : ahead < n_parameters ? ahead : n_parameters;
    assert_int_equal(s->forward_prefetch, want);
    assert_int_equal(s->backward_prefetch, want);
}

static void zero_3_gathers_as_deepspeed_does_with_any_setting(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        struct error err = {0};
        struct rng rng;
        struct world w;
        struct strategy s;
        random_world(i, &rng, &w);
        const double most = (double)w.model.bytes + 2;
        const struct zero_settings settings = {
            .stage = 3,
            .prefetch_bucket_size = (uint64_t)rng_log_between(&rng, 1, most),
            .persistence_threshold = rng_below(&rng, 2) ? (uint64_t)rng_log_between(&rng, 1, most / 4) : 0,
            .max_live_parameters = (uint64_t)rng_log_between(&rng, 1, 2 * most),
            .max_reuse_distance = (uint64_t)rng_log_between(&rng, 1, 2 * most)};
        assert_ok(zero_build(&w.model, &w.cluster, &settings, "s", &s, &err));
        check_zero_3(&w, &settings, &s);
        strategy_release(&s);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_the_path_up_to_its_first_number),
        cmocka_unit_test(fsdp_per_block_keeps_the_root),
        cmocka_unit_test(hsdp_shards_within_nodes),
        cmocka_unit_test(on_gloo_nothing_is_gathered_ahead),
        cmocka_unit_test(fsdp_whole_is_one_group_a_dtype),
        cmocka_unit_test(torchtitan_wraps_the_embedding_alone_and_keeps_the_head),
        cmocka_unit_test(a_tied_embedding_is_wrapped_with_the_head),
        cmocka_unit_test(a_model_without_blocks_is_one_group),
        cmocka_unit_test(zero_1_sums_behind_the_backward_pass),
        cmocka_unit_test(zero_2_closes_a_bucket_before_it_is_too_large),
        cmocka_unit_test(zero_3_gathers_in_the_order_of_use),
        cmocka_unit_test(zeros_settings_change_what_it_does),
        cmocka_unit_test(variables_come_in_the_order_of_their_first_use),
        cmocka_unit_test(every_sharded_baseline_can_be_lowered),
        cmocka_unit_test(zero_3_gathers_as_deepspeed_does_with_any_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
