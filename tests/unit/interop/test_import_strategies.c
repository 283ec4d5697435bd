/* Settings of frameworks as strategies: what each makes, and what is refused, where and why. */
#include "base/json.h"
#include "strategy/baselines/fsdp.h"
#include "strategy/baselines/megatron.h"
#include "strategy/baselines/pytorch_ddp.h"
#include "strategy/baselines/xla.h"
#include "strategy/baselines/zero.h"
#include "tests/support/check.h"
#include "tests/unit/interop/imports.h"
#include "tests/unit/strategy/descriptions.h"

static const char decoder[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'e','shape':[900]},{'name':'h.0.w','shape':[500]},"
    "{'name':'h.1.w','shape':[600]},{'name':'n','shape':[40]}],'layers':["
    "{'name':'1','forward_us':1,'backward_us':1,'variables':['e']},"
    "{'name':'2','forward_us':1,'backward_us':1,'variables':['h.0.w']},"
    "{'name':'3','forward_us':1,'backward_us':1,'variables':['h.1.w']},"
    "{'name':'4','forward_us':1,'backward_us':1,'variables':['n']}]}";
static const char four_devices[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'nic_gbit_per_s':1}]}";

struct world {
    struct model model;
    struct cluster cluster;
};

static void world_open(struct world *w) {
    struct error err = {0};
    assert_ok(quoted_model(decoder, &w->model, &err));
    assert_ok(quoted_cluster(four_devices, &w->cluster, &err));
}

static void world_close(struct world *w) {
    cluster_release(&w->cluster);
    model_release(&w->model);
}

/* The settings make `want`, which is released; `note` is a part of a note, NULL: there is none. */
static void check_import(const struct world *w, const char *text, const char *note, struct strategy *want) {
    struct error err = {0};
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    const struct source source = source_of("folder/mine.json", text);
    struct strategy s;
    assert_ok(import_strategy(&source, NULL, &w->model, &w->cluster, &notes, &s, &err));
    assert_string_equal(s.id.hex, want->id.hex);
    assert_string_equal(s.name, "mine");
    assert_true(note ? noted(&notes, note) : !notes.first);
    strategy_release(&s);
    strategy_release(want);
    arena_release(&arena);
}

static void deepspeeds_settings_are_zeros(void **state) {
    (void)state;
    struct error err = {0};
    struct world w;
    struct strategy want;
    world_open(&w);
    struct zero_settings settings = zero_defaults(2);
    assert_ok(zero_build(&w.model, &w.cluster, &settings, "w", &want, &err));
    check_import(&w, "{\"fp16\":{},\"zero_optimization\":{\"stage\":2,\"overlap_comm\":true}}", NULL, &want);
    settings.reduce_bucket_size = 600;
    assert_ok(zero_build(&w.model, &w.cluster, &settings, "w", &want, &err));
    check_import(&w, "{\"zero_optimization\":{\"stage\":2,\"reduce_bucket_size\":6e2}}", "backward pass waits", &want);
    settings = zero_defaults(2);
    settings.overlap_comm = true;
    assert_ok(zero_build(&w.model, &w.cluster, &settings, "w", &want, &err));
    check_import(&w, "{\"zero_optimization\":{\"stage\":2,\"overlap_comm\":true,\"zero_hpz_partition_size\":2}}",
                 "\"zero_hpz_partition_size\" is passed over", &want);
    settings = (struct zero_settings){.stage = 3,
                                      .prefetch_bucket_size = 700,
                                      .persistence_threshold = 50,
                                      .max_live_parameters = 1500,
                                      .max_reuse_distance = 10};
    assert_ok(zero_build(&w.model, &w.cluster, &settings, "w", &want, &err));
    check_import(
        &w,
        "{\"zero_optimization\":{\"stage\":3,\"stage3_prefetch_bucket_size\":700,\"stage3_max_reuse_distance\":10,"
        "\"stage3_param_persistence_threshold\":50,\"stage3_max_live_parameters\":1500,\"sub_group_size\":1}}",
        "\"sub_group_size\" is passed over", &want);
    world_close(&w);
}

/* On four devices: which share the shards, and which keep them between the passes. */
static void deepspeeds_partitions_are_replicas_and_fewer_ranks(void **state) {
    (void)state;
    static const struct {
        const char *members, *note;
        uint32_t shard_ranks, kept_ranks;
    } cases[] = {
        {"\"zero_hpz_partition_size\":2", NULL, 0, 2},
        {"\"zero_hpz_partition_size\":1", NULL, 0, 0},
        {"\"zero_hpz_partition_size\":8", NULL, 0, 0},
        {"\"mics_shard_size\":2", NULL, 2, 0},
        {"\"mics_shard_size\":-1,\"zero_hpz_partition_size\":2", NULL, 0, 2},
        {"\"mics_shard_size\":4", NULL, 0, 0},
        {"\"mics_shard_size\":2,\"mics_hierarchical_params_gather\":true",
         "\"mics_hierarchical_params_gather\" is passed over", 2, 0},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct strategy want;
        char text[300];
        struct zero_settings settings = zero_defaults(3);
        settings.persistence_threshold = 0;
        settings.max_reuse_distance = 0;
        assert_ok(zero_build(&w.model, &w.cluster, &settings, "w", &want, &err));
        assert_int_equal(want.n_groups, 1);
        want.shard_ranks = cases[i].shard_ranks;
        want.groups[0].reshard_ranks = cases[i].kept_ranks;
        assert_ok(strategy_seal(&want, &w.model, &w.cluster, &err));
        snprintf(text, sizeof text,
                 "{\"zero_optimization\":{\"stage\":3,\"stage3_param_persistence_threshold\":0,"
                 "\"stage3_max_reuse_distance\":0,%s}}",
                 cases[i].members);
        check_import(&w, text, cases[i].note, &want);
    }
    world_close(&w);
}

/* There are no whole variables beside replicas: what persists is in a group that stays gathered. */
static void what_persists_beside_replicas_stays_gathered(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct strategy s;
    struct world w;
    world_open(&w);
    const struct source source = source_of("f", "{\"gradient_accumulation_steps\":3,\"zero_optimization\":{\"stage\":3,"
                                                "\"stage3_param_persistence_threshold\":550,\"mics_shard_size\":2,"
                                                "\"stage3_max_reuse_distance\":0}}");
    assert_ok(import_strategy(&source, NULL, &w.model, &w.cluster, &notes, &s, &err));
    assert_null(notes.first);
    assert_int_equal(s.shard_ranks, 2);
    assert_int_equal(s.n_groups, 2);
    const bool stays[] = {false, true, false, true}; /* 900, 500, 600 and 40 elements */
    for (uint32_t v = 0; v < s.n_variables; v++) {
        const struct group *group = &s.groups[s.variables[v].group];
        assert_int_equal(group->sharded, SHARDED_parameters);
        assert_int_equal(group->keeps_gathered, stays[v]);
    }
    assert_int_equal(s.micro_batches, 3);
    assert_int_equal(s.synchronize, SYNCHRONIZE_each_all_reduce_last);
    strategy_release(&s);
    arena_release(&arena);
    world_close(&w);
}

static void megatrons_arguments_are_buckets(void **state) {
    (void)state;
    static const struct {
        const char *text, *note;
        struct megatron_settings settings;
    } cases[] = {
        {"--overlap-grad-reduce", NULL, {false, false, 40000000}},
        {"torchrun \\\n  pretrain_gpt.py --lr 1 \\\n --overlap-grad-reduce --ddp-bucket-size 501",
         NULL,
         {false, false, 501}},
        {"ARGS=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size=9)",
         NULL,
         {true, true, 9}},
        {"--use-distributed-optimizer --ddp-bucket-size 9 # --overlap-grad-reduce",
         "counts with --overlap-grad-reduce alone",
         {true, false, UINT64_MAX}},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct strategy want;
        assert_ok(megatron_build(&w.model, &w.cluster, &cases[i].settings, "w", &want, &err));
        check_import(&w, cases[i].text, cases[i].note, &want);
    }
    world_close(&w);
}

static void xlas_thresholds_are_its_combiners(void **state) {
    (void)state;
    static const struct {
        const char *text, *note;
        struct xla_settings settings;
    } cases[] = {
        {"--xla_gpu_all_reduce_combine_threshold_bytes=500\n--xla_gpu_graph_level=0",
         "gradients are all-reduced",
         {SHARDED_none, {500, 1, 1}}},
        {"export XLA_FLAGS=\"--xla_gpu_all_gather_combine_threshold_bytes=4000 "
         "--xla_gpu_reduce_scatter_combine_threshold_bytes=1000\" # words",
         "parameters are sharded",
         {SHARDED_parameters, {1, 4000, 1000}}},
        {"XLA_FLAGS=--xla_gpu_reduce_scatter_combine_threshold_bytes=900 python3 train.py",
         "parameters are sharded",
         {SHARDED_parameters, {1, XLA_THRESHOLD_BYTES, 900}}},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct strategy want;
        assert_ok(xla_build(&w.model, &w.cluster, &cases[i].settings, "w", &want, &err));
        check_import(&w, cases[i].text, cases[i].note, &want);
    }
    world_close(&w);
}

static void fsdp2_is_wrapped_as_the_files_say(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum fsdp_keep keep;
    } cases[] = {
        {"[model]\nname = \"llama3\" # a comment\n[parallelism]\n", FSDP_KEEP_last},
        {"[parallelism]\r\ndata_parallel_shard_degree = 4\r\nfsdp_reshard_after_forward = 'never'\r\n", FSDP_KEEP_all},
        {"[parallelism]\n tensor_parallel_degree = 1\n fsdp_reshard_after_forward = \"always\" # words\n[training]\n"
         "fsdp_reshard_after_forward = \"never\"\n",
         FSDP_KEEP_none},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n", FSDP_KEEP_last},
        {"compute_environment: LOCAL_MACHINE\ndistributed_type: 'FSDP'\nnum_processes: 4\nfsdp_config:\n"
         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: False\n  fsdp_version: 2\n",
         FSDP_KEEP_all},
    };
    struct error err = {0};
    struct strategy want;
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(fsdp_build(&w.model, &w.cluster, FSDP_WRAP_titan, cases[i].keep, "w", &want, &err));
        check_import(&w, cases[i].text, NULL, &want);
    }
    assert_ok(fsdp_build_replicas(&w.model, &w.cluster, FSDP_WRAP_titan, FSDP_KEEP_last, 2, "w", &want, &err));
    assert_int_equal(want.shard_ranks, 2);
    check_import(&w, "[parallelism]\ndata_parallel_replicate_degree = 2\n", NULL, &want);
    assert_ok(pytorch_ddp_build(&w.model, &w.cluster, UINT64_C(100) << 20, "w", &want, &err));
    check_import(&w, "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n", NULL,
                 &want);
    assert_ok(pytorch_ddp_defaults(&w.model, &w.cluster, "w", &want, &err));
    check_import(&w, "distributed_type: MULTI_GPU\nnum_processes: 8\n", "num_processes is 8; c has 4 devices", &want);
    world_close(&w);
}

/* The model's variables are e, h.0.w, h.1.w and n; without words a group of one without a point stays gathered. */
static void our_file_says_groups_of_fully_shard(void **state) {
    (void)state;
#define REST "{\"variables\":[\"h.0.w\",\"h.1.w\"]},{\"variables\":[\"n\"],\"reshard_after_forward\":true}]"
    static const struct {
        const char *members, *first, *note;
        struct group group; /* of e */
        uint32_t shard_ranks, forward, micro_batches;
    } cases[] = {
        {"\"forward_prefetch\":1", "", NULL, {.keeps_gathered = true}, 0, 1, 1},
        {"\"forward_prefetch\":3,\"shard_ranks\":2", ",\"reshard_after_forward\":true", NULL, {0}, 2, 3, 1},
        {"\"forward_prefetch\":0,\"shard_ranks\":4",
         ",\"reshard_after_forward\":2,\"param_dtype\":\"f32\",\"reduce_dtype\":\"bf16\"",
         NULL,
         {.reshard_ranks = 2, .summed_as = CARRIED_bf16},
         0,
         0,
         1},
        {"\"forward_prefetch\":2,\"accumulation\":{\"micro_batches\":3}",
         ",\"reshard_after_forward\":1,\"param_dtype\":\"f16\"",
         NULL,
         {.keeps_gathered = true, .gathered_as = CARRIED_f16, .summed_as = CARRIED_f16},
         0,
         2,
         3},
        {"\"forward_prefetch\":1,\"strategy\":\"0123456789abcdef\"",
         ",\"reshard_after_forward\":4",
         "the file was made of strategy 0123456789ab, and says ",
         {0},
         0,
         1,
         1},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct strategy want;
        char text[500];
        assert_ok(strategy_init(&want, "w", &w.model, 3, &err));
        for (uint32_t g = 0; g < 3; g++)
            want.groups[g] = (struct group){.id = g, .sharded = SHARDED_parameters};
        want.groups[0] = cases[i].group;
        want.groups[0].sharded = SHARDED_parameters;
        want.variables[1].group = want.variables[2].group = 1;
        want.variables[3].group = 2;
        want.credit_bytes = 0;
        want.shard_ranks = cases[i].shard_ranks;
        want.forward_prefetch = cases[i].forward;
        want.micro_batches = cases[i].micro_batches;
        assert_ok(strategy_seal(&want, &w.model, &w.cluster, &err));
        snprintf(text, sizeof text, "{%s,\"groups\":[{\"variables\":[\"e\"]%s}," REST "}", cases[i].members,
                 cases[i].first);
        check_import(&w, text, cases[i].note, &want);
    }
    world_close(&w);
}

/* On four devices, with times of one sample. */
static void micro_batches_are_counted_from_what_the_files_say(void **state) {
    (void)state;
    static const struct {
        const char *text, *note;
        uint32_t micro_batches;
        enum synchronize synchronize;
    } cases[] = {
        {"{\"gradient_accumulation_steps\":6,\"zero_optimization\":{\"stage\":2,\"overlap_comm\":true}}", NULL, 6,
         SYNCHRONIZE_each},
        {"{\"gradient_accumulation_steps\":6,\"zero_optimization\":{\"stage\":1}}", NULL, 6, SYNCHRONIZE_last},
        {"{\"train_batch_size\":24,\"train_micro_batch_size_per_gpu\":2,\"zero_optimization\":{\"stage\":3}}",
         "a micro-batch has 2 samples", 3, SYNCHRONIZE_each},
        {"{\"gradient_accumulation_steps\":\"auto\",\"zero_optimization\":{\"stage\":1}}",
         "\"gradient_accumulation_steps\" is passed over", 1, SYNCHRONIZE_last},
        {"--overlap-grad-reduce --micro-batch-size 1 --global-batch-size=12", NULL, 3, SYNCHRONIZE_last},
        {"--overlap-grad-reduce --micro-batch-size 1", NULL, 1, SYNCHRONIZE_last},
        {"[training]\nlocal_batch_size = 1\nglobal_batch_size = 8\n[parallelism]\n", NULL, 2, SYNCHRONIZE_each},
        {"[parallelism]\n[training]\nlocal_batch_size = 1\nglobal_batch_size = -1\n", NULL, 1, SYNCHRONIZE_last},
        {"distributed_type: MULTI_GPU\ngradient_accumulation_steps: 5\n", NULL, 5, SYNCHRONIZE_last},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        const struct source source = source_of("f", cases[i].text);
        struct strategy s;
        assert_ok(import_strategy(&source, NULL, &w.model, &w.cluster, &notes, &s, &err));
        assert_int_equal(s.micro_batches, cases[i].micro_batches);
        assert_int_equal(s.synchronize, cases[i].synchronize);
        assert_true(cases[i].note ? noted(&notes, cases[i].note) : !notes.first);
        strategy_release(&s);
        arena_release(&arena);
    }
    world_close(&w);
}

static void what_cannot_be_read_is_refused_at_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"zero_optimization\":{}}", "f: /zero_optimization: the member \"stage\" is missing"},
        {"{\"zero_optimization\":{\"stage\":0}}", "f: /zero_optimization: stage 0 shards nothing"},
        {"{\"zero_optimization\":{\"stage\":4}}", "f: /zero_optimization/stage: "},
        {"{\"zero_optimization\":7}", "f: /zero_optimization: an object is needed"},
        {"{\"zero_optimization\":{\"stage\":3,\"stage3_prefetch_bucket_size\":\"auto\"}}",
         "f: /zero_optimization/stage3_prefetch_bucket_size: a number is needed"},
        {"{\"zero_optimization\":{\"stage\":3,\"zero_hpz_partition_size\":3}}",
         "f: /zero_optimization/zero_hpz_partition_size: is 3, which does not divide the 4 devices of c"},
        {"{\"zero_optimization\":{\"stage\":3,\"mics_shard_size\":3}}",
         "f: /zero_optimization/mics_shard_size: is 3, which does not divide"},
        {"{\"zero_optimization\":{\"stage\":3,\"mics_shard_size\":1}}", "f: /zero_optimization/mics_shard_size: is 1"},
        {"{\"zero_optimization\":{\"stage\":3,\"mics_shard_size\":2.5}}", "f: /zero_optimization/mics_shard_size: "},
        {"{\"zero_optimization\":{\"stage\":3,\"mics_shard_size\":2,\"zero_hpz_partition_size\":2}}",
         "DeepSpeed has one or the other"},
        {"{\"zero_optimization\":", "f:"},
        {"--overlap-grad-reduce\n--ddp-bucket-size many", "f:2: --ddp-bucket-size"},
        {"--overlap-grad-reduce --ddp-bucket-size", "f:1: --ddp-bucket-size without a number"},
        {"--overlap-grad-reduce --micro-batch-size 3 --global-batch-size 16",
         "f: 16 samples are no multiple of 3 on each of the 4 devices of c"},
        {"--overlap-grad-reduce --micro-batch-size 1 --global-batch-size 40000",
         "f: 10000 micro-batches; at most 4096"},
        {"{\"gradient_accumulation_steps\":0,\"zero_optimization\":{\"stage\":1}}",
         "f: /gradient_accumulation_steps: is 0"},
        {"--overlap-grad-reduce --overlap-param-gather", "needs --use-distributed-optimizer"},
        {"--use-distributed-optimizer --use-megatron-fsdp", "f:1: --use-megatron-fsdp shards"},
        {"[parallelism]\nfsdp_reshard_after_forward = \"often\"",
         "f:2: fsdp_reshard_after_forward is \"often\"; known are default always never"},
        {"[parallelism]\ntensor_parallel_degree = 2", "f:2: tensor_parallel_degree is 2"},
        {"[parallelism]\ndata_parallel_shard_degree = 8", "1 replicas of 8 shards are not the 4 devices of c"},
        {"[parallelism]\ndata_parallel_replicate_degree = 3", "3 replicas of 1 shards are not the 4 devices of c"},
        {"[parallelism]\ndata_parallel_shard_degree = 0", "f:2: data_parallel_shard_degree"},
        {"[parallelism]\ndata_parallel_replicate_degree = x", "f:2: data_parallel_replicate_degree"},
        {"--xla_gpu_all_reduce_combine_threshold_bytes",
         "f:1: --xla_gpu_all_reduce_combine_threshold_bytes without a number"},
        {"\n--xla_gpu_all_gather_combine_threshold_bytes=0", "f:2: all_gather"},
        {"--xla_gpu_reduce_scatter_combine_threshold_bytes=9x", "f:1: reduce_scatter"},
        {"distributed_type: TPU", "f:1: distributed_type is \"TPU\"; known are FSDP MULTI_GPU"},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 1", "FSDP1 is not known here"},
        {"distributed_type: FSDP\nfsdp_auto_wrap_policy: NO_WRAP", "f:2: fsdp_auto_wrap_policy is \"NO_WRAP\""},
        {"distributed_type: FSDP\nfsdp_reshard_after_forward: maybe", "f:2: fsdp_reshard_after_forward is \"maybe\""},
#define OURS(members, groups) "{\"forward_prefetch\":1" members ",\"groups\":[" groups "]}"
#define ALL                   "{\"variables\":[\"e\",\"h.0.w\",\"h.1.w\",\"n\"]}"
#define MOST                  "{\"variables\":[\"e\",\"h.0.w\",\"h.1.w\"]}"
        {OURS("", MOST), "f: /groups: no group has \"n\", a variable of model \"m\""},
        {OURS("", MOST ",{\"variables\":[\"n\",\"e\"]}"), "f: /groups/1/variables/1: \"e\" is in two groups"},
        {OURS("", "{\"variables\":[\"x\"]}"), "f: /groups/0/variables/0: model \"m\" has no variable \"x\""},
        {OURS("", ALL ",{\"variables\":[]}"), "f: /groups/1/variables: a group needs a variable"},
        {OURS("", "{\"variables\":[{\"name\":\"e\"}]}"), "f: /groups/0/variables/0: "},
        {OURS(",\"forward_prefech\":1", ALL), "f: /forward_prefech: "},
        {OURS(",\"backward_prefetch\":2", ALL), "f: /backward_prefetch: is 2"},
        {OURS(",\"shard_ranks\":3", ALL), "f: \"shard_ranks\" is 3, and cluster \"c\" has 4 devices"},
        {OURS(",\"shard_ranks\":1", ALL), "f: \"shard_ranks\" is 1"},
        {OURS(",\"accumulation\":{\"micro_batches\":0}", ALL), "f: /accumulation/micro_batches: is 0"},
        {OURS(",\"accumulation\":{\"synchronize\":\"never\"}", ALL), "f: /accumulation/synchronize: "},
        {OURS("", MOST ",{\"variables\":[\"n\"],\"reshard_after_forward\":3}"),
         "\"reshard_after_forward\" 3, and 4 devices share the shards"},
        {OURS("", MOST ",{\"variables\":[\"n\"],\"reshard_after_forward\":0}"),
         "f: /groups/1/reshard_after_forward: is 0"},
        {OURS("", MOST ",{\"variables\":[\"n\"],\"param_dtype\":\"f8\"}"), "f: /groups/1/param_dtype: "},
        {OURS("", MOST ",{\"variables\":[\"n\"],\"param_dtype\":\"f64\"}"),
         "f: /groups/1/param_dtype: is f64, which no strategy says of variables that are f32"},
        {"anything", "of no known kind; say which of deepspeed, torchtitan, accelerate, megatron, xla and fsdp2 it is"},
    };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        const struct source source = source_of("f", cases[i].text);
        struct strategy s;
        assert_int_equal(import_strategy(&source, NULL, &w.model, &w.cluster, &notes, &s, &err), ST_INVALID);
        assert_contains(ERROR_TEXT(&err), cases[i].says);
        arena_release(&arena);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepspeeds_settings_are_zeros),
        cmocka_unit_test(deepspeeds_partitions_are_replicas_and_fewer_ranks),
        cmocka_unit_test(what_persists_beside_replicas_stays_gathered),
        cmocka_unit_test(megatrons_arguments_are_buckets),
        cmocka_unit_test(xlas_thresholds_are_its_combiners),
        cmocka_unit_test(fsdp2_is_wrapped_as_the_files_say),
        cmocka_unit_test(our_file_says_groups_of_fully_shard),
        cmocka_unit_test(micro_batches_are_counted_from_what_the_files_say),
        cmocka_unit_test(what_cannot_be_read_is_refused_at_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
