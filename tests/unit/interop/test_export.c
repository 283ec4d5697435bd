/* Exports of strategies made by hand: the files' texts, and the words for what each form cannot say. */
#include <string.h>

#include "interop/export/export.h"
#include "interop/export/limits.h"
#include "strategy/baselines/horovod.h"
#include "tests/support/check.h"
#include "tests/unit/strategy/descriptions.h"

/* Ready in the order c, b, a. */
static const char three_layers[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a:0','shape':[1000]},{'name':'b','shape':[4,1000]},"
    "{'name':'c','shape':[100]}],'layers':["
    "{'name':'1','forward_us':1,'backward_us':1,'variables':['a:0']},"
    "{'name':'2','forward_us':1,'backward_us':1,'variables':['b']},"
    "{'name':'3','forward_us':1,'backward_us':1,'variables':['c']}]}";
static const char two_nodes[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,'devices':2,'device':'v100',"
    "'nic_gbit_per_s':1,'device_link_gbyte_per_s':10}]}";

/* gloo, so that PyTorch's ranks can serve; n3 has no rank. */
static const char three_cpu_nodes[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,'devices':2,'device':'cpu',"
    "'nic_gbit_per_s':1,'device_link_gbyte_per_s':10},{'name':'n3','devices':0,'device':'cpu','nic_gbit_per_s':1}]}";

struct world {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct export export;
};

/* `optimizer`: the model's, or NULL. */
static void world_open_of(const char *optimizer, const char *cluster, struct world *w, const char *form,
                          const char *schedule, const char *groups, const char *variables) {
    struct error err = {0};
    char text[2048], model[2048];
    *w = (struct world){0};
    snprintf(model, sizeof model, "%.*s%s%s%s}", (int)strlen(three_layers) - 1, three_layers,
             optimizer ? ",'optimizer':'" : "", optimizer ? optimizer : "", optimizer ? "'" : "");
    snprintf(text, sizeof text,
             "{'schema':'syncopate.strategy/1','name':'s','schedule':{%s},'groups':[%s],'variables':[%s]}", schedule,
             groups, variables);
    assert_ok(quoted_model(model, &w->model, &err));
    assert_ok(quoted_cluster(cluster, &w->cluster, &err));
    assert_ok(quoted_strategy(text, &w->model, &w->cluster, &w->strategy, &err));
    assert_ok(export_build(exporters_find(form), &w->strategy, &w->model, &w->cluster, &w->export, &err));
}

static void world_open_on(const char *cluster, struct world *w, const char *form, const char *schedule,
                          const char *groups, const char *variables) {
    world_open_of(NULL, cluster, w, form, schedule, groups, variables);
}

static void world_open(struct world *w, const char *form, const char *schedule, const char *groups,
                       const char *variables) {
    world_open_on(two_nodes, w, form, schedule, groups, variables);
}

static void world_close(struct world *w) {
    export_release(&w->export);
    strategy_release(&w->strategy);
    cluster_release(&w->cluster);
    model_release(&w->model);
}

static const char *words_of(const struct export *export) {
    static char words[512];
    words[0] = 0;
    for (uint32_t i = 0; i < export->n_notes; i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? " " : "",
                 export_loss_word(export->notes[i].loss));
    return words;
}

#define FIFO     "'policy':'fifo','credit_bytes':0,'cross_iteration':false"
#define PRIORITY "'policy':'priority','credit_bytes':4096,'cross_iteration':true"
#define GROUP    "{'id':0,'algorithm':'auto'}"
/* Behind FIFO. */
#define LAST_OF_FOUR  ",'accumulation':{'micro_batches':4,'synchronize':'last'}"
#define REPLICAS_ONCE ",'accumulation':{'micro_batches':4,'synchronize':'each_all_reduce_last'}"
#define EACH_OF_FOUR  ",'accumulation':{'micro_batches':4,'synchronize':'each'}"
#define IN(g)         "'sync':{'kind':'all_reduce','group':" g "}"
#define ON(s)         "'sync':{'kind':'parameter_server','servers':[" s "],'local_reduction':true}"
#define A(sync)       "{'name':'a:0'," sync "},"
#define B(sync)       "{'name':'b'," sync "},"
#define C(sync)       "{'name':'c'," sync "}"
#define TOGETHER      A(IN("0")) B(IN("0")) C(IN("0"))
#define SERVED        A(ON("'n1'")) B(ON("'n1'")) C(ON("'n1'"))
#define SHARE         "'sync':{'kind':'parameter_server','servers':['n1'],'push':1}"
#define SHARED        A(SHARE) B(SHARE) C(ON("'n1'"))
#define EACH          "'partition':{'shards':2},'each_shard':[{" IN("0") "},{" ON("'n2'") "}]"
#define PARAMETERS    "{'id':0,'sharded':'parameters'}"
#define KEPT          "{'id':0,'sharded':'parameters','reshard_after_forward':false}"
#define FEWER         "{'id':0,'sharded':'parameters','reshard_after_forward':2}"
#define APART         "{'id':0,'algorithm':'auto'},{'id':1,'algorithm':'auto'}"

static const struct {
    const char *form, *schedule, *groups, *variables, *words;
} losses[] = {
    {"pytorch-ddp", FIFO, GROUP, TOGETHER, ""},
    {"horovod", FIFO, GROUP, TOGETHER, ""},
    {"deepspeed", FIFO, GROUP, TOGETHER, ""},
    {"tensorflow", FIFO, GROUP, TOGETHER, ""},
    {"xla", FIFO, GROUP, TOGETHER, ""},
    {"xla", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), ""}, /* b is above the threshold, and passed over */
    {"xla", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, "sharded"},
    {"xla", FIFO, KEPT, TOGETHER, "sharded"},
    {"xla", FIFO, PARAMETERS, TOGETHER, "sharded reshard"},
    {"xla", FIFO ",'shard_ranks':2", KEPT, TOGETHER, "sharded replicas"},
    {"autodist", FIFO, GROUP, TOGETHER, ""},
    {"pytorch-ddp", PRIORITY, GROUP, TOGETHER, "order credit cross-iteration"},
    {"autodist", PRIORITY, GROUP, TOGETHER, "order credit cross-iteration"},
    {"pytorch-hook", PRIORITY, "{'id':0,'partition_bytes':4096}", TOGETHER, ""},
    {"pytorch-hook", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), ""},
    {"pytorch-hook", FIFO, "{'id':0,'algorithm':'ring'}", TOGETHER, "algorithm"},
    {"pytorch-hook", FIFO, GROUP, A(IN("0")) B(ON("'n1'")) C("'partition':{'axis':0,'shards':4}," IN("0")),
     "parameter-server"},
    {"pytorch-ddp",
     "'policy':'preemptive','credit_bytes':0,'cross_iteration':false,'slices':["
     "{'group':0,'bytes':400},{'group':0,'bytes':20000}]",
     GROUP, TOGETHER, "preemption"},
    {"pytorch-ddp", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), "groups"},
    {"pytorch-ddp", FIFO, APART, A(IN("0")) B(IN("0")) C(IN("1")), ""},
    {"deepspeed", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), "groups"},
    {"tensorflow", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), "groups"},
    {"horovod", FIFO, APART, A(IN("0")) B(IN("1")) C(IN("0")), ""},
    {"bytescheduler", PRIORITY, APART, A(IN("0")) B(IN("0")) C(IN("1")), "groups"},
    {"pytorch-ddp", FIFO, GROUP, A(IN("0")) B(ON("'n1'")) C(IN("0")), "parameter-server"},
    {"pytorch-ddp", FIFO, GROUP, A(IN("0")) B("'partition':{'axis':0,'shards':4}," IN("0")) C(IN("0")), "shards"},
    {"autodist", FIFO, GROUP, A(IN("0")) B("'partition':{'axis':0,'shards':4}," IN("0")) C(IN("0")), ""},
    {"horovod", FIFO, GROUP, A(IN("0")) B(EACH) C(IN("0")), "shards"},
    {"pytorch-hook", FIFO, GROUP, A(IN("0")) B(EACH) C(IN("0")), "parameter-server"},
    {"byteps", "'policy':'fifo','cross_iteration':false", GROUP, A(ON("'n1'")) B(EACH) C(ON("'n1'")),
     "all-reduce shards"},
    {"autodist", FIFO, GROUP, A(IN("0")) B(EACH) C(IN("0")), ""},
    {"nccl", FIFO, GROUP, A(IN("0")) B(EACH) C(IN("0")), ""},
    {"horovod", FIFO, "{'id':0,'partition_bytes':4096}", TOGETHER, "partition"},
    {"horovod", FIFO, "{'id':0,'algorithm':'ring'}", TOGETHER, "algorithm"},
    {"horovod", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, "sharded"},
    {"pytorch-hook", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"pytorch-hook", PRIORITY, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"pytorch-hook", PRIORITY, "{'id':0,'sharded':'optimizer'},{'id':1}", A(IN("0")) B(IN("1")) C(IN("0")), "sharded"},
    {"pytorch-hook", FIFO, "{'id':0,'sharded':'optimizer'},{'id':1}", A(IN("0")) B(IN("1")) C(IN("0")), ""},
    {"pytorch-hook", FIFO, "{'id':0,'sharded':'optimizer'}",
     A(IN("0")) B("'partition':{'axis':0,'shards':4}," IN("0")) C(IN("0")), "sharded"},
    {"pytorch-hook", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "sharded"},
    {"pytorch-hook", FIFO, "{'id':0,'sharded':'parameters'}", TOGETHER, "sharded"},
    {"fsdp2", FIFO, "{'id':0,'sharded':'parameters'}", TOGETHER, ""},
    {"fsdp2", FIFO, "{'id':0,'sharded':'parameters','partition_bytes':4096}", TOGETHER, "partition"},
    {"fsdp2", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "sharded"},
    {"fsdp2", FIFO, GROUP, TOGETHER, "all-reduce"},
    {"fsdp2", FIFO, "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'parameters'}", A(IN("0")) B(IN("1")) C(IN("0")),
     "groups"},
    {"fsdp2", FIFO, "{'id':0,'sharded':'parameters'}", A(IN("0")) B(ON("'n1'")) C(IN("0")), "groups parameter-server"},
    {"fsdp2", FIFO EACH_OF_FOUR, PARAMETERS, TOGETHER, ""},
    {"fsdp2", FIFO LAST_OF_FOUR, PARAMETERS, TOGETHER, ""},
    {"fsdp2", FIFO ",'shard_ranks':2" LAST_OF_FOUR, PARAMETERS, TOGETHER, ""},
    {"fsdp2", FIFO ",'shard_ranks':2" REPLICAS_ONCE, PARAMETERS, TOGETHER, ""},
    {"torchtitan", FIFO ",'shard_ranks':2" REPLICAS_ONCE, PARAMETERS, TOGETHER, "accumulation"},
    {"fsdp2-code", FIFO, PARAMETERS, TOGETHER, ""},
    {"fsdp2-code", FIFO LAST_OF_FOUR, PARAMETERS, TOGETHER, "accumulation"},
    {"fsdp2-code", FIFO, GROUP, TOGETHER, "all-reduce"},
    {"deepspeed", FIFO LAST_OF_FOUR, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"deepspeed", FIFO EACH_OF_FOUR, "{'id':0,'sharded':'optimizer'}", TOGETHER, "accumulation"},
    {"deepspeed", FIFO EACH_OF_FOUR, PARAMETERS, TOGETHER, ""},
    {"deepspeed", FIFO LAST_OF_FOUR, PARAMETERS, TOGETHER, "accumulation"},
    {"deepspeed", FIFO EACH_OF_FOUR, GROUP, TOGETHER, ""},
    {"megatron", FIFO LAST_OF_FOUR, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"megatron", FIFO EACH_OF_FOUR, "{'id':0,'sharded':'optimizer'}", TOGETHER, "accumulation"},
    {"torchtitan", FIFO EACH_OF_FOUR, KEPT, TOGETHER, ""},
    {"torchtitan", FIFO LAST_OF_FOUR, KEPT, TOGETHER, "accumulation"},
    {"accelerate", FIFO LAST_OF_FOUR, KEPT, TOGETHER, "accumulation"},
    {"pytorch-hook", FIFO LAST_OF_FOUR, GROUP, TOGETHER, "accumulation"},
    {"horovod", FIFO, "{'id':0,'algorithm':'hierarchical'}", TOGETHER, ""},
    {"autodist", FIFO, "{'id':0,'algorithm':'ring'}", TOGETHER, ""},
    {"autodist", FIFO, "{'id':0,'algorithm':'tree'}", TOGETHER, "algorithm"},
    {"nccl", PRIORITY, "{'id':0,'algorithm':'ring'}", TOGETHER, ""},
    {"deepspeed", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"deepspeed", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, ""},
    {"deepspeed", FIFO, "{'id':0,'sharded':'gradients','partition_bytes':4096}", TOGETHER, "partition memory"},
    {"deepspeed", FIFO, "{'id':0,'sharded':'optimizer','partition_bytes':4096}", TOGETHER, ""},
    {"deepspeed", FIFO, PARAMETERS, TOGETHER, ""},
    {"deepspeed", FIFO, KEPT, TOGETHER, ""},
    {"deepspeed", FIFO, "{'id':0,'sharded':'optimizer'},{'id':1}", A(IN("1")) B(IN("0")) C(IN("0")), "sharded memory"},
    {"deepspeed", FIFO, "{'id':0,'sharded':'optimizer'},{'id':1,'sharded':'optimizer'}",
     A(IN("0")) B(IN("1")) C(IN("0")), "groups memory"},
    {"deepspeed", PRIORITY, "{'id':0,'sharded':'optimizer'}", TOGETHER, "order credit cross-iteration"},
    {"megatron", FIFO, GROUP, TOGETHER, ""},
    {"megatron", FIFO, "{'id':0,'partition_bytes':4096}", TOGETHER, "partition memory"},
    {"megatron", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, ""},
    {"megatron", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "sharded"},
    {"megatron", "'policy':'fifo','credit_bytes':0,'cross_iteration':true", "{'id':0,'sharded':'optimizer'}", TOGETHER,
     ""},
    {"megatron", "'policy':'fifo','credit_bytes':0,'cross_iteration':true", GROUP, TOGETHER, "cross-iteration"},
    {"megatron", FIFO, GROUP, SERVED, "parameter-server credit"},
    {"torchtitan", FIFO, GROUP, TOGETHER, ""},
    {"torchtitan", FIFO, APART, A(IN("0")) B(IN("0")) C(IN("1")), "groups"},
    {"torchtitan", FIFO, PARAMETERS, TOGETHER, ""},
    {"torchtitan", FIFO, KEPT, TOGETHER, ""},
    {"torchtitan", FIFO ",'forward_prefetch':0", KEPT, TOGETHER, "prefetch"},
    {"torchtitan", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "sharded"},
    {"accelerate", FIFO, GROUP, TOGETHER, ""},
    {"accelerate", FIFO, KEPT, TOGETHER, ""},
    {"accelerate", FIFO, PARAMETERS, TOGETHER, "reshard"},
    {"accelerate", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, "sharded"},
    {"horovod", FIFO, PARAMETERS, TOGETHER, "sharded"},
    {"fsdp2", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, ""},
    {"fsdp2", FIFO, FEWER, TOGETHER, ""},
    {"deepspeed", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, "replicas"},
    {"deepspeed", FIFO, FEWER, TOGETHER, ""},
    {"torchtitan", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, ""},
    {"torchtitan", FIFO, FEWER, TOGETHER, "reshard"},
    {"accelerate", FIFO ",'shard_ranks':2", KEPT, TOGETHER, "replicas"},
    {"horovod", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, "sharded replicas"},
    {"nccl", FIFO, "{'id':0,'algorithm':'tree'}", TOGETHER, "algorithm"},
    {"nccl", FIFO, "{'id':0,'algorithm':'halving_doubling'}", TOGETHER, "algorithm"},
    {"nccl", FIFO, "{'id':0,'sharded':'optimizer'}", TOGETHER, "sharded"},
    {"nccl", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, "sharded replicas"},
    {"nccl", FIFO, FEWER, TOGETHER, "sharded reshard"},
    {"byteps", FIFO, GROUP, TOGETHER, "all-reduce order"},
    {"byteps", "'policy':'fifo','cross_iteration':false", "", SERVED, ""}, /* by the first server alone */
    {"byteps", "'policy':'fifo','cross_iteration':false", "", A(ON("'n2'")) B(ON("'n2'")) C(ON("'n2'")), "placement"},
    {"byteps", "'policy':'fifo','cross_iteration':false", "", SHARED, "groups"},
    {"autodist", "'policy':'fifo','cross_iteration':false", "", SHARED, "groups"},
    {"horovod", FIFO, GROUP, A(SHARE) B(SHARE) C(IN("0")), "parameter-server"},
    {"byteps", "'policy':'priority','cross_iteration':true", "", SERVED, "order"},
    {"bytescheduler", "'policy':'priority','cross_iteration':false", "", SERVED, "placement cross-iteration"},
    {"bytescheduler", "'policy':'fifo','cross_iteration':true", "",
     A(ON("'n1'")) B(ON("'n2'")) C("'sync':{'kind':'parameter_server','servers':['n1'],'local_reduction':false}"),
     "local-reduction order"},
};

static void what_a_form_cannot_say_is_in_the_words_of_its_notes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        struct world w;
        world_open(&w, losses[i].form, losses[i].schedule, losses[i].groups, losses[i].variables);
        if (strcmp(words_of(&w.export), losses[i].words) != 0)
            fail_msg("case %zu, %s: \"%s\" instead of \"%s\"", i, losses[i].form, words_of(&w.export), losses[i].words);
        world_close(&w);
    }
}

/* What a form without parts does with what is sharded: the sentence of the loss "sharded". */
static void what_is_sharded_goes_as_the_form_sends_the_rest(void **state) {
    (void)state;
#define ZERO_1    "{'id':0,'sharded':'optimizer'}"
#define ZERO_1_3  "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'optimizer'}"
#define B_APART   A(IN("0")) B(IN("1")) C(IN("0"))
#define B_IN_PART A(ON("'n1'")) B(IN("0")) C(ON("'n1'"))
    static const struct {
        const char *form, *groups, *variables, *says;
    } cases[] = {
        {"horovod", ZERO_1, TOGETHER, "3 of 3 variables are updated in parts and gathered, and would be all-reduced"},
        {"byteps", ZERO_1, TOGETHER, "3 of 3 variables are updated in parts and gathered, and would be served"},
        {"bytescheduler", ZERO_1, TOGETHER,
         "3 of 3 variables are updated in parts and gathered, and would be all-reduced"},
        {"bytescheduler", ZERO_1, B_IN_PART,
         "1 of 3 variables (\"b\") are updated in parts and gathered, and would be served"},
        {"pytorch-hook", "{'id':0,'sharded':'gradients'},{'id':1,'sharded':'optimizer'}", B_APART,
         "the parameters or gradients of 2 of 3 variables (\"a:0\", ...) are kept in parts, and would be whole"},
        {"fsdp2", "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'optimizer'}", B_APART,
         "the parameters of 1 of 3 variables (\"b\") are whole, and would be sharded"},
        {"tensorflow", PARAMETERS, TOGETHER,
         "3 of 3 variables are kept in parts and gathered before use, and would be whole and all-reduced"},
        {"byteps", PARAMETERS, TOGETHER,
         "3 of 3 variables are kept in parts and gathered before use, and would be whole and served"},
        {"byteps", ZERO_1_3, B_APART,
         "3 of 3 variables are updated in parts, and 2 of these are kept in parts; all would be whole and served"},
        {"autodist", PARAMETERS, TOGETHER, "would be whole and all-reduced"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        const char *said = "nothing";
        world_open(&w, cases[i].form, FIFO, cases[i].groups, cases[i].variables);
        for (uint32_t k = 0; k < w.export.n_notes; k++)
            if (w.export.notes[k].loss == EXPORT_LOSS_SHARDED)
                said = w.export.notes[k].text;
        assert_contains(said, cases[i].says);
        world_close(&w);
    }
}

/* Under names by which a later export finds and removes them. */
static void assert_files_are_known(const struct exporter *form, const struct export *export) {
    for (uint32_t i = 0; i < export->n_files; i++) {
        bool known = false;
        for (const char *const *name = form->files; *name; name++)
            known |= !strcmp(*name, export->files[i].name);
        if (!known)
            fail_msg("%s has the file %s", form->name, export->files[i].name);
    }
}

/* Every form of strategies that keep something in parts, and of one that does not: which forms are given out, and what
 * the others are refused with. */
static void what_would_change_the_memory_of_the_job_is_refused(void **state) {
    (void)state;
#define WITHOUT_PARTS                                                                                                  \
    "pytorch-ddp pytorch-hook horovod deepspeed megatron torchtitan accelerate tensorflow xla byteps bytescheduler "   \
    "autodist nccl"
    static const struct {
        const char *optimizer, *schedule, *groups, *variables, *given; /* the forms, in the order of the table */
    } cases[] = {
        {NULL, FIFO, GROUP, TOGETHER, WITHOUT_PARTS},
        {"adam", FIFO, GROUP, TOGETHER, WITHOUT_PARTS},
        {NULL, FIFO, GROUP, SERVED, WITHOUT_PARTS},
        /* ZeRO-1 and DeAR, with states that are known, unknown and none */
        {"adam", FIFO, ZERO_1, TOGETHER, "pytorch-hook deepspeed megatron xla"},
        {NULL, FIFO, ZERO_1, TOGETHER, "pytorch-hook deepspeed megatron xla"},
        {NULL, PRIORITY, ZERO_1, TOGETHER, "pytorch-hook deepspeed megatron xla"},
        {"sgd", FIFO, ZERO_1, TOGETHER, WITHOUT_PARTS},
        {"sgd", PRIORITY, ZERO_1, TOGETHER, WITHOUT_PARTS},
        /* ZeRO-1 of some variables */
        {NULL, FIFO, ZERO_1 ",{'id':1}", B_APART, "pytorch-hook xla"},
        {NULL, PRIORITY, ZERO_1 ",{'id':1}", B_APART, "xla"},
        {"sgd", FIFO, ZERO_1 ",{'id':1}", B_APART, WITHOUT_PARTS},
        /* ZeRO-2 */
        {NULL, FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "deepspeed xla"},
        {"sgd", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER, "deepspeed xla"},
        /* ZeRO-3 and FSDP; the first with variables that persist */
        {NULL, FIFO, "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'gradients'}", A(IN("0")) B(IN("0")) C(IN("1")),
         "deepspeed xla"},
        {"sgd", FIFO, PARAMETERS, TOGETHER, "fsdp2 fsdp2-code deepspeed torchtitan accelerate xla"},
        {NULL, FIFO, KEPT, TOGETHER, "fsdp2 fsdp2-code deepspeed torchtitan accelerate xla"},
        {NULL, FIFO, FEWER, TOGETHER, "fsdp2 fsdp2-code deepspeed torchtitan accelerate xla"},
        {NULL, FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER, "fsdp2 fsdp2-code torchtitan xla"},
        {NULL, FIFO ",'shard_ranks':2" REPLICAS_ONCE, PARAMETERS, TOGETHER, "fsdp2 fsdp2-code torchtitan xla"},
        {NULL, FIFO, PARAMETERS ",{'id':1}", B_APART, "xla"},
        {NULL, FIFO, ZERO_1_3, B_APART, "xla"},
    };
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char given[256] = "";
        for (size_t k = 0; k < n; k++) {
            struct world w;
            world_open_of(cases[i].optimizer, two_nodes, &w, forms[k].name, cases[i].schedule, cases[i].groups,
                          cases[i].variables);
            struct error err = {0};
            const enum status st = export_check_memory(&forms[k], &w.export, &w.strategy, &w.model, &w.cluster, &err);
            assert_int_equal(st, w.export.changes_memory ? ST_INFEASIBLE : ST_OK);
            assert_true(w.export.n_files > 0);
            const uint32_t all = export_losses(&w.export);
            assert_ok(export_check_accepted(&forms[k], &w.export, all, &w.strategy, &w.model, &w.cluster, &err));
            assert_int_equal(export_check_accepted(&forms[k], &w.export, 0, &w.strategy, &w.model, &w.cluster, &err),
                             st);
            assert_files_are_known(&forms[k], &w.export);
            if (!st)
                snprintf(given + strlen(given), sizeof given - strlen(given), "%s%s", *given ? " " : "", forms[k].name);
            world_close(&w);
        }
        if (strcmp(given, cases[i].given) != 0)
            fail_msg("case %zu: \"%s\" instead of \"%s\"", i, given, cases[i].given);
    }
}

static void a_refusal_says_what_cannot_and_which_forms_can(void **state) {
    (void)state;
    static const struct {
        const char *form, *schedule, *groups, *variables, *says;
    } cases[] = {
        {"horovod", FIFO, ZERO_1, TOGETHER,
         "horovod would change the memory that s needs: 3 of 3 variables are updated in parts and gathered, and would "
         "be "
         "all-reduced; forms that keep to it: pytorch-hook, deepspeed, megatron"},
        {"nccl", FIFO, PARAMETERS, TOGETHER,
         "nccl would change the memory that s needs: 1 of 1 groups are reduced, scattered and gathered, and the table "
         "has rows for "
         "all-reduces alone; forms that keep to it: fsdp2, fsdp2-code, deepspeed, torchtitan, accelerate"},
        {"deepspeed", FIFO ",'shard_ranks':2", PARAMETERS, TOGETHER,
         "deepspeed would change the memory that s needs: 2 devices share the parameters, which have 2 replicas; forms "
         "that keep to it: "
         "fsdp2, fsdp2-code, torchtitan"},
        {"fsdp2", FIFO, ZERO_1, TOGETHER,
         "fsdp2 would change the memory that s needs: the parameters of 3 of 3 variables are whole, and would be "
         "sharded; forms that keep to it: "
         "pytorch-hook, deepspeed, megatron"},
        {"megatron", FIFO, "{'id':0,'sharded':'gradients'}", TOGETHER,
         "megatron would change the memory that s needs: of 3 of 3 variables it would shard something else: of \"c\" "
         "optimizer, not "
         "gradients; forms that keep to it: deepspeed"},
        {"autodist", PRIORITY, ZERO_1 ",{'id':1}", B_APART,
         "autodist would change the memory that s needs: 2 of 3 variables (\"a:0\", ...) are updated in parts and "
         "gathered, and "
         "would "
         "be all-reduced; no form keeps to it by itself"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct error err = {0};
        world_open(&w, cases[i].form, cases[i].schedule, cases[i].groups, cases[i].variables);
        assert_int_equal(
            export_check_memory(exporters_find(cases[i].form), &w.export, &w.strategy, &w.model, &w.cluster, &err),
            ST_INFEASIBLE);
        assert_string_equal(err.message, cases[i].says);
        world_close(&w);
    }
}

static void xla_has_a_threshold_for_each_collective_of_the_program(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *groups, *variables;
        bool has[3]; /* all_reduce, all_gather, reduce_scatter */
    } cases[] = {
        {FIFO, GROUP, TOGETHER, {true, true, true}},
        {FIFO, KEPT, TOGETHER, {false, true, true}},
        {FIFO ",'shard_ranks':2", KEPT, TOGETHER, {true, true, true}}, /* among replicas */
        {FIFO, "{'id':0,'sharded':'optimizer'},{'id':1}", A(IN("0")) B(IN("1")) C(IN("0")), {true, true, true}},
        {FIFO, "{'id':0,'sharded':'gradients'}", A(IN("0")) B(ON("'n1'")) C(IN("0")), {true, true, true}},
    };
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_open(&w, "xla", cases[i].schedule, cases[i].groups, cases[i].variables);
        for (size_t k = 0; k < 3; k++) {
            char flag[80];
            snprintf(flag, sizeof flag, "--xla_gpu_%s_combine_threshold_bytes=", names[k]);
            if ((strstr(w.export.files[0].text, flag) != NULL) != cases[i].has[k])
                fail_msg("case %zu, %s: %s", i, names[k], w.export.files[0].text);
        }
        world_close(&w);
    }
}

/* Four devices, a sample each. */
static void micro_batches_are_said_in_the_words_of_each_form(void **state) {
    (void)state;
    static const struct {
        const char *form, *schedule, *groups, *name, *says;
    } cases[] = {
        {"fsdp2", FIFO EACH_OF_FOUR, PARAMETERS, "fsdp2.json", "\"synchronize\": \"each\""},
        {"deepspeed", FIFO EACH_OF_FOUR, PARAMETERS, "deepspeed.json", "\"gradient_accumulation_steps\": 4,"},
        {"megatron", FIFO LAST_OF_FOUR, "{'id':0,'sharded':'optimizer'}", "megatron.args",
         "--micro-batch-size 1\n--global-batch-size 16\n"},
        {"torchtitan", FIFO EACH_OF_FOUR, KEPT, "torchtitan.toml",
         "[training]\nmixed_precision_param = \"float32\"\nmixed_precision_reduce = \"float32\"\n"
         "local_batch_size = 1\nglobal_batch_size = 16\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_open(&w, cases[i].form, cases[i].schedule, cases[i].groups, TOGETHER);
        assert_string_equal(w.export.files[0].name, cases[i].name);
        assert_contains(w.export.files[0].text, cases[i].says);
        world_close(&w);
    }
}

/* Read: a, b, c; two devices a node. */
static void sharded_forms_say_what_is_sharded(void **state) {
    (void)state;
    static const char *const apart[] = {
        "{'id':0,'sharded':'parameters','reshard_after_forward':false},{'id':1,'sharded':'gradients'}",
        A(IN("0")) B(IN("0")) C(IN("1"))};
    const struct {
        const char *form, *groups, *variables, *name, *text;
    } cases[] = {
        {"deepspeed", apart[0], apart[1], "deepspeed.json",
         "{\n  \"zero_optimization\": {\n    \"stage\": 3,\n    \"overlap_comm\": true,\n"
         "    \"stage3_prefetch_bucket_size\": 50000000,\n    \"stage3_param_persistence_threshold\": 100,\n"
         "    \"stage3_max_live_parameters\": 1000000000,\n    \"stage3_max_reuse_distance\": 1000000000\n  }\n}\n"},
        {"deepspeed", "{'id':0,'sharded':'gradients'},{'id':1,'sharded':'gradients'}", A(IN("0")) B(IN("1")) C(IN("1")),
         "deepspeed.json",
         "{\n  \"zero_optimization\": {\n    \"stage\": 2,\n    \"overlap_comm\": true,\n"
         "    \"reduce_bucket_size\": 5000,\n    \"allgather_bucket_size\": 5000\n  }\n}\n"},
        {"megatron", "{'id':0,'sharded':'optimizer'}", TOGETHER, "megatron.args",
         "--overlap-grad-reduce\n--use-distributed-optimizer\n--ddp-bucket-size 40000000\n"},
        {"torchtitan", KEPT, TOGETHER, "torchtitan.toml",
         "[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\n"
         "fsdp_reshard_after_forward = \"default\"\n"
         "[training]\nmixed_precision_param = \"float32\"\nmixed_precision_reduce = \"float32\"\n"},
        {"torchtitan", "{'id':0,'sharded':'parameters','reshard_after_forward':false,'gathered_as':'bf16'}", TOGETHER,
         "torchtitan.toml",
         "[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\n"
         "fsdp_reshard_after_forward = \"default\"\n"
         "[training]\nmixed_precision_param = \"bfloat16\"\nmixed_precision_reduce = \"float32\"\n"},
        {"torchtitan", GROUP, TOGETHER, "torchtitan.toml",
         "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n"},
        {"accelerate", KEPT, TOGETHER, "accelerate.yaml",
         "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 2\nnum_processes: 4\n"
         "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
         "  fsdp_reshard_after_forward: true\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_open(&w, cases[i].form, FIFO, cases[i].groups, cases[i].variables);
        const char *text = w.export.files[0].text;
        while (*text == '#')
            text = strchr(text, '\n') + 1;
        assert_string_equal(w.export.files[0].name, cases[i].name);
        assert_string_equal(text, cases[i].text);
        assert_string_equal(words_of(&w.export), "");
        world_close(&w);
    }
}

static void encodings_are_said_where_the_framework_has_them(void **state) {
    (void)state;
    static const char half[] = "'encoding':'f16','sync':{'kind':'all_reduce','group':0}";
    static const struct {
        const char *form, *words, *says;
    } cases[] = {{"horovod", "", "hvd.Compression.fp16"},
                 {"autodist", "", "HorovodCompressor"},
                 {"pytorch-hook", "", "\"encoding\": \"f16\""},
                 {"pytorch-ddp", "encoding", "{}"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        char variables[512];
        snprintf(variables, sizeof variables, "{'name':'a:0',%s},{'name':'b',%s},{'name':'c',%s}", half, half, half);
        world_open(&w, cases[i].form, FIFO, GROUP, variables);
        assert_string_equal(words_of(&w.export), cases[i].words);
        assert_contains(w.export.files[w.export.n_files - 1].text, cases[i].says);
        world_close(&w);
    }
}

/* Every form that moves gradients says that int8 is lost, and writes no word of it. */
static void no_form_has_encoders_and_each_says_so(void **state) {
    (void)state;
    static const char int8[] = "'encoding':'int8','sync':{'kind':'all_reduce','group':0}";
    static const char *const forms[] = {"horovod", "autodist", "pytorch-hook", "pytorch-ddp"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct world w;
        char variables[512];
        snprintf(variables, sizeof variables, "{'name':'a:0',%s},{'name':'b',%s},{'name':'c',%s}", int8, int8, int8);
        world_open(&w, forms[i], FIFO, GROUP, variables);
        assert_string_equal(words_of(&w.export), "encoding");
        for (size_t k = 0; k < w.export.n_files; k++)
            assert_null(strstr(w.export.files[k].text, "int8"));
        world_close(&w);
    }
}

static void groups_that_are_no_runs_go_into_a_file_for_the_hook(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "pytorch-ddp", FIFO,
               "{'id':0,'algorithm':'ring','partition_bytes':2048},{'id':1,'algorithm':'auto'}",
               A(IN("0")) B(IN("1")) C(IN("0")));
    assert_int_equal(w.export.n_files, 2);
    assert_string_equal(w.export.files[1].name, "ddp-groups.json");
    assert_contains(
        w.export.files[1].text,
        "{\"algorithm\": \"ring\", \"partition_bytes\": 2048, \"needed\": 0, \"variables\": [\"c\", \"a:0\"]}");
    assert_contains(w.export.files[1].text,
                    "{\"algorithm\": \"auto\", \"partition_bytes\": 0, \"needed\": 1, \"variables\": [\"b\"]}");
    world_close(&w);
}

/* Runs {c}, {b, a}: the first bucket's cap is at most its 400 bytes, the second's is more than b's 16,000. */
static void runs_that_no_one_cap_makes_get_a_list_of_caps(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "pytorch-ddp", FIFO, APART, A(IN("0")) B(IN("0")) C(IN("1")));
    assert_int_equal(w.export.n_files, 1);
    assert_string_equal(w.export.files[0].text, "{\"bucket_cap_mb_list\": [0.000244140625, 25]}\n"); /* 256 bytes */
    world_close(&w);
}

static void autodist_cuts_and_places_as_the_strategy_says(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "autodist", "'policy':'fifo','cross_iteration':false", "{'id':0,'algorithm':'ring'}",
               A("'partition':{'axis':0,'shards':2}," ON("'n2','n1'")) B("'partition':{'axis':1,'shards':2}," IN("0"))
                   C(ON("'n2'")));
    const char *text = w.export.files[1].text;
    assert_string_equal(w.export.files[0].name, "autodist.pb");
    assert_contains(text, "\"varName\": \"a:0\",\n      \"partitioner\": \"2\"");
    assert_contains(text, "\"varName\": \"a/part_0:0\"");
    assert_contains(text, "\"varName\": \"b/part_1\"");
    assert_contains(text, "\"partitioner\": \"1,2\"");
    assert_contains(text, "\"reductionDestination\": \"n2:CPU:0\"");
    assert_contains(text, "{\"spec\": \"RING\", \"compressor\": \"NoneCompressor\", \"group\": 0}");
    assert_contains(text, "[\"n1:GPU:0\", \"n1:GPU:1\", \"n2:GPU:0\", \"n2:GPU:1\"]");
    world_close(&w);
}

/* A synchronizer for each part; other forms get both halves as the first is, under the strategy's own id. */
static void each_shard_is_said_to_autodist_and_not_to_DDP(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "autodist", FIFO, GROUP, A(IN("0")) B(EACH) C(IN("0")));
    assert_contains(w.export.files[1].text, "\"varName\": \"b/part_0\",\n          \"AllReduceSynchronizer\"");
    assert_contains(w.export.files[1].text, "\"varName\": \"b/part_1\",\n          \"PSSynchronizer\"");
    world_close(&w);
    world_open(&w, "pytorch-ddp", FIFO, APART, A(IN("0")) B(EACH) C(IN("1")));
    assert_string_equal(w.export.files[0].text, "{\"bucket_cap_mb_list\": [0.000244140625, 25]}\n");
    assert_string_equal(w.export.notes[0].text, "the shards of 1 of 3 variables are synchronized in several ways, and "
                                                "would all go as the first does");
    world_close(&w);
}

/* Eight variables of 24 MiB at once: any threshold from 48 to 72 MiB fuses pairs, and 64 MiB is what people write. */
static void horovod_with_64_mib_is_exported_as_64_mib(void **state) {
    (void)state;
    struct error err = {0};
    struct model model;
    struct cluster cluster;
    struct strategy s;
    struct export export;
    char text[2048] = "{'schema':'syncopate.model/1','name':'m','variables':[";
    for (int i = 0; i < 8; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s{'name':'v%d','shape':[6291456]}", i ? "," : "",
                 i);
    strcat(text, "],'layers':[{'name':'l','forward_us':1,'backward_us':1,'variables':["
                 "'v0','v1','v2','v3','v4','v5','v6','v7']}]}");
    assert_ok(quoted_model(text, &model, &err));
    assert_ok(quoted_cluster(two_nodes, &cluster, &err));
    assert_ok(horovod_build(&model, &cluster, UINT64_C(64) << 20, HOROVOD_CYCLE_US, &s, &err));
    assert_ok(export_build(exporters_find("horovod"), &s, &model, &cluster, &export, &err));
    assert_contains(export.files[0].text, "\nHOROVOD_FUSION_THRESHOLD=67108864\n");
    assert_int_equal(export.n_files, 1);
    assert_int_equal(export.n_notes, 0);
    export_release(&export);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

static const char sparse_model[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'s','shape':[1000,10],'sparse_rows':5},"
    "{'name':'t','shape':[1000,10],'sparse_rows':5}],'layers':[{'name':'l','forward_us':1,'backward_us':1,"
    "'variables':['s','t']}]}";

/* s in group 0 and t in group 1, each by its algorithm; whether the form's first file asks for dense ones, and how many
 * notes. */
static void check_sparse(const char *form, enum algorithm s, enum algorithm t, bool dense, uint32_t notes) {
    struct error err = {0};
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct export export;
    assert_ok(quoted_model(sparse_model, &model, &err));
    assert_ok(quoted_cluster(two_nodes, &cluster, &err));
    assert_ok(strategy_init(&strategy, "s", &model, 2, &err));
    strategy.credit_bytes = 0;
    strategy.groups[0] = (struct group){.id = 0, .algorithm = s};
    strategy.groups[1] = (struct group){.id = 1, .algorithm = t};
    strategy.variables[1].group = 1;
    assert_ok(strategy_seal(&strategy, &model, &cluster, &err));
    assert_ok(export_build(exporters_find(form), &strategy, &model, &cluster, &export, &err));
    assert_int_equal(!!strstr(export.files[0].text, "sparse_as_dense=True"), dense);
    assert_int_equal(export.n_notes, notes);
    export_release(&export);
    strategy_release(&strategy);
    cluster_release(&cluster);
    model_release(&model);
}

static void horovod_gathers_all_sparse_gradients_or_none(void **state) {
    (void)state;
    const enum algorithm reduced = ALGORITHM_auto, gathered = ALGORITHM_all_gather;
    check_sparse("horovod", gathered, gathered, false, 0);
    check_sparse("horovod", reduced, reduced, true, 0);
    check_sparse("horovod", gathered, reduced, false, 1);
    check_sparse("nccl", gathered, gathered, false, 0);
    check_sparse("pytorch-ddp", gathered, gathered, false, 1);
}

static void nccl_sets_one_algorithm_and_tables_several(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "nccl", FIFO, "{'id':0,'algorithm':'ring'}", TOGETHER);
    assert_contains(w.export.files[0].text, "\nNCCL_ALGO=allreduce:ring\n");
    assert_contains(w.export.files[1].text, "\nallreduce,20400,20400,ring,any,-1,2,4\n");
    world_close(&w);
    world_open(&w, "nccl", FIFO,
               "{'id':0,'algorithm':'double_tree'},{'id':1,'algorithm':'ring'},{'id':2,'algorithm':'auto'}",
               A(IN("0")) B(IN("1")) C(IN("2")));
    assert_contains(w.export.files[0].text, "\nNCCL_TUNER_PLUGIN=libnccl-tuner-syncopate.so\n");
    assert_null(strstr(w.export.files[0].text, "NCCL_ALGO"));
    assert_contains(w.export.files[1].text,
                    "\nallreduce,4000,4000,tree,any,-1,2,4\nallreduce,16000,16000,ring,any,-1,2,4\n");
    world_close(&w);
}

static void the_hook_is_told_groups_order_and_credit(void **state) {
    (void)state;
    struct world w;
    world_open(&w, "pytorch-hook", PRIORITY, "{'id':0,'partition_bytes':4096},{'id':1}",
               A(IN("1")) B(IN("0")) C(IN("0")));
    cJSON *json = cJSON_Parse(w.export.files[0].text);
    assert_non_null(json);
    assert_string_equal(w.export.files[0].name, "pytorch-hook.json");
    assert_string_equal(cJSON_GetObjectItem(json, "policy")->valuestring, "priority");
    assert_int_equal(cJSON_GetObjectItem(json, "credit_bytes")->valueint, 4096);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "cross_iteration")));
    assert_null(cJSON_GetObjectItem(json, "slices"));
    char *groups = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "groups"));
    assert_string_equal(groups,
                        "[{\"algorithm\":\"auto\",\"partition_bytes\":0,\"needed\":0,\"variables\":[\"a:0\"]},"
                        "{\"algorithm\":\"auto\",\"partition_bytes\":4096,\"needed\":1,\"variables\":[\"c\",\"b\"]}]");
    cJSON_free(groups);
    cJSON_Delete(json);
    world_close(&w);
}

/* Text of one member of the hook's file, without spaces. */
static void assert_hook_says(const struct world *w, const char *member, const char *text) {
    cJSON *json = cJSON_Parse(w->export.files[0].text);
    char *said = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, member));
    assert_string_equal(said, text);
    cJSON_free(said);
    cJSON_Delete(json);
}

#define ON_HOOK(node, rank, local) "\"server\":{\"node\":\"" node "\",\"rank\":" rank ",\"local_reduction\":" local "}"
#define HOOK_GROUP(needed)         "{\"algorithm\":\"auto\",\"partition_bytes\":0,\"needed\":" needed ","

/* Nodes n1 and n2 have two ranks each, so n2's first is rank 2. */
static void the_hook_is_told_servers_and_shards(void **state) {
    (void)state;
    struct world w;
    world_open_on(three_cpu_nodes, &w, "pytorch-hook", PRIORITY ",'pulls':'priority'", GROUP,
                  A("'partition':{'shards':3}," ON("'n2','n1'"))
                      B("'partition':{'axis':1,'shards':2},'each_shard':[{" IN(
                          "0") "},{'sync':{'kind':'parameter_server',"
                               "'servers':['n2'],'local_reduction':false}}]") C(IN("0")));
    assert_hook_says(&w, "pulls", "\"priority\"");
    assert_hook_says(&w, "node_ranks", "[2,2,0]");
    assert_hook_says(
        &w, "groups",
        "[" HOOK_GROUP("1") "\"variables\":[\"c\",{\"name\":\"b\",\"axis\":1,\"from\":0,\"to\":500}]}," HOOK_GROUP("1")
            ON_HOOK("n2", "2",
                    "false") ",\"variables\":[{\"name\":\"b\",\"axis\":1,\"from\":500,\"to\":1000}]}," HOOK_GROUP("0")
                ON_HOOK("n2", "2",
                        "true") ",\"variables\":[{\"name\":\"a:0\",\"axis\":0,\"from\":0,\"to\":334}]}," HOOK_GROUP("0")
                    ON_HOOK("n1", "0", "true") ",\"variables\":[{\"name\":\"a:0\",\"axis\":0,\"from\":334,\"to\":667}]}"
                                               "," HOOK_GROUP("0") ON_HOOK(
                                                   "n2", "2", "true") ",\"variables\":[{\"name\":\"a:0\",\"axis\":0,"
                                                                      "\"from\":667,\"to\":1000}]}]");
    world_close(&w);
    world_open_on(three_cpu_nodes, &w, "pytorch-hook", FIFO, "", SHARED);
    assert_hook_says(&w, "groups",
                     "[" HOOK_GROUP("0") ON_HOOK("n1", "0", "true") ",\"variables\":[\"b\",\"a:0\"]}," HOOK_GROUP("2")
                         ON_HOOK("n1", "0", "true") ",\"variables\":[\"c\"]}]");
    assert_string_equal(words_of(&w.export), "");
    world_close(&w);
}

static void the_hook_needs_ranks_and_gloo_to_serve(void **state) {
    (void)state;
    struct world w;
    world_open_on(three_cpu_nodes, &w, "pytorch-hook", FIFO, GROUP, A(IN("0")) B(ON("'n3'")) C(IN("0")));
    assert_string_equal(words_of(&w.export), "placement");
    assert_contains(w.export.files[0].text, "\"server\": {\"node\": \"n3\", \"local_reduction\": true}");
    world_close(&w);
    world_open(&w, "pytorch-hook", FIFO, GROUP, A(IN("0")) B(ON("'n1'")) C(IN("0")));
    assert_string_equal(words_of(&w.export), "parameter-server");
    assert_hook_says(&w, "groups",
                     "[" HOOK_GROUP("0") "\"variables\":[\"c\",\"a:0\"]}," HOOK_GROUP("1") "\"variables\":[\"b\"]}]");
    world_close(&w);
}

static void the_hook_is_told_all_slices(void **state) {
    (void)state;
    struct world w;
    world_open(
        &w, "pytorch-hook",
        "'policy':'preemptive','cross_iteration':true,'slices':[{'group':0,'bytes':400},{'group':0,'bytes':20000}]",
        GROUP, TOGETHER);
    cJSON *json = cJSON_Parse(w.export.files[0].text);
    char *slices = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "slices"));
    assert_string_equal(slices, "[{\"group\":0,\"bytes\":400},{\"group\":0,\"bytes\":20000}]");
    assert_null(cJSON_GetObjectItem(json, "credit_bytes"));
    assert_string_equal(words_of(&w.export), "");
    cJSON_free(slices);
    cJSON_Delete(json);
    world_close(&w);
}

static void forms_are_found_by_name(void **state) {
    (void)state;
    size_t n;
    const struct exporter *rows = exporters_list(&n);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(exporters_find(rows[i].name), &rows[i]);
    assert_null(exporters_find("all"));
}

static enum status check_accepted(const struct world *w, const char *form, uint32_t accepted) {
    struct error unused;
    return export_check_accepted(exporters_find(form), &w->export, accepted, &w->strategy, &w->model, &w->cluster,
                                 &unused);
}

static void more_memory_counts_while_its_causes_do(void **state) {
    (void)state;
    const uint32_t groups = 1u << EXPORT_LOSS_GROUPS, prefetch = 1u << EXPORT_LOSS_PREFETCH,
                   sharded = 1u << EXPORT_LOSS_SHARDED, order = 1u << EXPORT_LOSS_ORDER,
                   memory = 1u << EXPORT_LOSS_MEMORY;
    assert_int_equal(export_unaccepted(groups | prefetch | memory, 0), groups | prefetch | memory);
    assert_int_equal(export_unaccepted(groups | prefetch | memory, groups), prefetch | memory);
    assert_int_equal(export_unaccepted(groups | prefetch | memory, groups | prefetch), 0);
    assert_int_equal(export_unaccepted(groups | order | memory, groups), order);
    assert_int_equal(export_unaccepted(groups | order | memory, order), groups | memory);
    assert_int_equal(export_unaccepted(groups | sharded | memory, sharded), groups);
    assert_int_equal(export_unaccepted(groups | memory, memory), groups);
    assert_int_equal(export_unaccepted(memory, sharded), memory);
}

/* What the form makes shards the integer too, which cannot be gathered as bf16. */
static void an_integer_beside_floats_that_are_cast_is_exported(void **state) {
    (void)state;
    struct world w = {0};
    struct error err = {0};
    assert_ok(quoted_model("{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[4000]},"
                           "{'name':'steps','shape':[1],'dtype':'i64'}],'layers':[{'name':'1','forward_us':1,"
                           "'backward_us':1,'variables':['a','steps']}]}",
                           &w.model, &err));
    assert_ok(quoted_cluster(two_nodes, &w.cluster, &err));
    assert_ok(quoted_strategy("{'schema':'syncopate.strategy/1','name':'s','schedule':{" FIFO "},'groups':[{'id':0,"
                              "'sharded':'parameters','gathered_as':'bf16'},{'id':1}],'variables':["
                              "{'name':'a','sync':{'kind':'all_reduce','group':0}},"
                              "{'name':'steps','sync':{'kind':'all_reduce','group':1}}]}",
                              &w.model, &w.cluster, &w.strategy, &err));
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    for (size_t i = 0; i < n; i++) {
        assert_ok(export_build(&forms[i], &w.strategy, &w.model, &w.cluster, &w.export, &err));
        export_release(&w.export);
    }
    world_close(&w);
}

/* Two groups where torchtitan has one: a warning, and refused where devices have less. */
static void more_memory_is_said_and_refused_where_devices_have_less(void **state) {
    (void)state;
    static const struct {
        const char *device_memory_gbyte;
        bool is_refused;
    } cases[] = {{NULL, false}, {"1", false}, {"0.00005", true}, {"0.00004", false}}; /* the last: nor would ours fit */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct error err = {0};
        char cluster[512];
        snprintf(cluster, sizeof cluster,
                 "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,'devices':1,"
                 "'device':'v100','nic_gbit_per_s':1%s%s}]}",
                 cases[i].device_memory_gbyte ? ",'device_memory_gbyte':" : "",
                 cases[i].device_memory_gbyte ? cases[i].device_memory_gbyte : "");
        world_open_on(cluster, &w, "torchtitan", FIFO,
                      "{'id':0,'sharded':'parameters'},{'id':1,'sharded':'parameters'}",
                      A(IN("0")) B(IN("1")) C(IN("0")));
        assert_string_equal(words_of(&w.export), "groups memory");
        assert_int_equal(w.export.changes_memory, cases[i].is_refused);
        assert_int_equal(
            export_check_memory(exporters_find("torchtitan"), &w.export, &w.strategy, &w.model, &w.cluster, &err),
            cases[i].is_refused ? ST_INFEASIBLE : ST_OK);
        const uint32_t groups = 1u << EXPORT_LOSS_GROUPS, memory = 1u << EXPORT_LOSS_MEMORY,
                       order = 1u << EXPORT_LOSS_ORDER;
        assert_int_equal(check_accepted(&w, "torchtitan", groups), ST_OK);
        assert_int_equal(check_accepted(&w, "torchtitan", memory), ST_OK);
        assert_int_equal(check_accepted(&w, "torchtitan", order), cases[i].is_refused ? ST_INFEASIBLE : ST_OK);
        if (cases[i].is_refused)
            assert_string_equal(err.message,
                                "torchtitan would change the memory that s needs: a device would need 59.77 KiB, "
                                "not 45.90 KiB, and has 50KB (48.83 KiB); no form keeps to it by itself");
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_form_cannot_say_is_in_the_words_of_its_notes),
        cmocka_unit_test(sharded_forms_say_what_is_sharded),
        cmocka_unit_test(what_is_sharded_goes_as_the_form_sends_the_rest),
        cmocka_unit_test(what_would_change_the_memory_of_the_job_is_refused),
        cmocka_unit_test(a_refusal_says_what_cannot_and_which_forms_can),
        cmocka_unit_test(more_memory_is_said_and_refused_where_devices_have_less),
        cmocka_unit_test(more_memory_counts_while_its_causes_do),
        cmocka_unit_test(an_integer_beside_floats_that_are_cast_is_exported),
        cmocka_unit_test(xla_has_a_threshold_for_each_collective_of_the_program),
        cmocka_unit_test(micro_batches_are_said_in_the_words_of_each_form),
        cmocka_unit_test(encodings_are_said_where_the_framework_has_them),
        cmocka_unit_test(no_form_has_encoders_and_each_says_so),
        cmocka_unit_test(groups_that_are_no_runs_go_into_a_file_for_the_hook),
        cmocka_unit_test(runs_that_no_one_cap_makes_get_a_list_of_caps),
        cmocka_unit_test(autodist_cuts_and_places_as_the_strategy_says),
        cmocka_unit_test(each_shard_is_said_to_autodist_and_not_to_DDP),
        cmocka_unit_test(horovod_with_64_mib_is_exported_as_64_mib),
        cmocka_unit_test(horovod_gathers_all_sparse_gradients_or_none),
        cmocka_unit_test(nccl_sets_one_algorithm_and_tables_several),
        cmocka_unit_test(the_hook_is_told_groups_order_and_credit),
        cmocka_unit_test(the_hook_is_told_servers_and_shards),
        cmocka_unit_test(the_hook_needs_ranks_and_gloo_to_serve),
        cmocka_unit_test(the_hook_is_told_all_slices),
        cmocka_unit_test(forms_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
