/* What a framework's form leaves of the space: on random models and clusters, what a narrowed space draws loses nothing
 * but what no option of a space can rule out, and what the form says whole was not ruled out. */
#include <stdio.h>
#include <string.h>

#include "interop/export/limits.h"
#include "strategy/baselines/baselines.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"

enum { INSTANCES = 40, DRAWS = 12 };

struct instance {
    struct model model;
    struct cluster cluster;
};

static void open_instance(struct instance *i, uint64_t stream, struct rng *rng) {
    struct error err;
    rng_split(rng, test_seed(), stream);
    assert_ok(random_updated_model(rng, &i->model, &err));
    assert_ok(random_cluster(rng, &i->cluster, &err));
}

static void close_instance(struct instance *i) {
    cluster_release(&i->cluster);
    model_release(&i->model);
}

static uint32_t losses_of(const char *form, const struct instance *i, const struct strategy *strategy) {
    struct export export;
    struct error err;
    uint32_t losses = 0;
    assert_ok(export_build(exporters_find(form), strategy, &i->model, &i->cluster, &export, &err));
    for (uint32_t k = 0; k < export.n_notes; k++)
        losses |= 1u << export.notes[k].loss;
    export_release(&export);
    return losses;
}

/* Losses that no option of a space rules out. Options do not say which groups there are, and groups decide the memory.
 * Nor do they say which servers. BytePS's order depends on its credit, and its sizes on each other. */
static const uint32_t BEYOND_OPTIONS = 1u << EXPORT_LOSS_GROUPS | 1u << EXPORT_LOSS_PLACEMENT |
                                       1u << EXPORT_LOSS_LOCAL_REDUCTION | 1u << EXPORT_LOSS_SHARDS |
                                       1u << EXPORT_LOSS_PARTITION | 1u << EXPORT_LOSS_CREDIT |
                                       1u << EXPORT_LOSS_ORDER | 1u << EXPORT_LOSS_ALGORITHM | 1u << EXPORT_LOSS_MEMORY;

/* ByteScheduler has one architecture for all, and always crosses iterations. */
static uint32_t beyond_options(const char *form) {
    return strcmp(form, "bytescheduler") ? BEYOND_OPTIONS
                                         : BEYOND_OPTIONS | 1u << EXPORT_LOSS_ALL_REDUCE |
                                               1u << EXPORT_LOSS_PARAMETER_SERVER | 1u << EXPORT_LOSS_CROSS_ITERATION;
}

static void what_a_narrowed_space_draws_loses_only_what_options_cannot_rule_out(void **state) {
    (void)state;
    size_t n_forms;
    const struct exporter *forms = exporters_list(&n_forms);
    for (uint64_t k = 0; k < INSTANCES; k++) {
        struct instance i;
        struct rng rng;
        struct error err;
        open_instance(&i, k, &rng);
        const struct exporter *form = &forms[k % n_forms];
        struct export_limits limits;
        struct space_options options = space_default_options();
        assert_ok(export_limits_parse(form->name, NULL, &limits, &err));
        enum status st = export_limits_narrow(&limits, &i.model, &i.cluster, &options, &err);
        if (!strncmp(form->name, "fsdp2", 5)) { /* says sharded parameters alone, which nobody allowed */
            assert_int_equal(st, ST_INFEASIBLE);
            close_instance(&i);
            continue;
        }
        assert_ok(st);
        struct space space;
        assert_ok(space_init(&space, &i.model, &i.cluster, &options, &err));
        for (int d = 0; d < DRAWS; d++) {
            struct strategy strategy;
            assert_ok(d % 2 ? space_sample_guided(&space, &rng, &strategy, &err)
                            : space_sample_uniform(&space, &rng, &strategy, &err));
            const uint32_t losses = losses_of(form->name, &i, &strategy) & ~beyond_options(form->name);
            if (losses)
                fail_msg("%s loses %x of what was drawn (instance %d)", form->name, losses, (int)k);
            st = export_limits_check(&limits, &strategy, &i.model, &i.cluster, &err);
            assert_int_equal(st == ST_OK, !losses_of(form->name, &i, &strategy));
            assert_true(st == ST_OK || st == ST_INFEASIBLE);
            strategy_release(&strategy);
        }
        space_release(&space);
        close_instance(&i);
    }
}

/* Which kinds of sharding a form can say. */
static void sharding_is_left_where_the_form_says_it(void **state) {
    (void)state;
    static const struct {
        const char *form;
        uint32_t sharded;
    } cases[] = {{"fsdp2", 1u << SHARDED_none | 1u << SHARDED_parameters}, {"horovod", 1u << SHARDED_none}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct instance i;
        struct rng rng;
        struct error err;
        struct export_limits limits;
        struct space_options o = space_default_options();
        o.sharded = space_sharded_up_to(SHARDED_parameters);
        open_instance(&i, 200 + k, &rng);
        assert_ok(export_limits_parse(cases[k].form, NULL, &limits, &err));
        assert_ok(export_limits_narrow(&limits, &i.model, &i.cluster, &o, &err));
        assert_int_equal(o.sharded, cases[k].sharded);
        assert_true(o.all_reduce && !o.parameter_server);
        close_instance(&i);
    }
}

static bool can_be_cut(const struct model *model) {
    for (uint32_t v = 0; v < model->n_variables; v++)
        for (uint32_t a = 0; a < model->variables[v].rank; a++)
            if (model->variables[v].shape[a] > 1)
                return true;
    return false;
}

/* Frameworks that all-reduce one message at a time, in the order of readiness: nothing but groups is left to choose,
 * also from the named algorithms of a worker. */
static void plain_frameworks_leave_groups_alone(void **state) {
    (void)state;
    static const char *const plain[] = {"pytorch-ddp", "horovod", "deepspeed", "tensorflow"};
    for (size_t k = 0; k < 8; k++) {
        struct instance i;
        struct rng rng;
        struct error err;
        struct export_limits limits;
        struct space_options o = space_default_options();
        if (k >= 4)
            o.algorithms = 1u << ALGORITHM_ring | 1u << ALGORITHM_tree;
        open_instance(&i, 100 + k, &rng);
        assert_ok(export_limits_parse(plain[k % 4], NULL, &limits, &err));
        assert_ok(export_limits_narrow(&limits, &i.model, &i.cluster, &o, &err));
        assert_true(o.all_reduce && !o.parameter_server && !o.share_pushes && !o.cross_iteration);
        assert_int_equal(o.policies, 1u << POLICY_fifo);
        assert_true(o.algorithms >> ALGORITHM_auto & 1);
        assert_true(o.usual_credit);
        assert_int_equal(o.max_shards, can_be_cut(&i.model) ? 1 : 64);
        close_instance(&i);
    }
}

static void a_baseline_is_within_the_form_of_its_own_framework(void **state) {
    (void)state;
    static const char *const own[] = {"pytorch-ddp", "horovod", "byteps"};
    for (uint64_t k = 0; k < 30; k++) {
        struct instance i;
        struct rng rng;
        struct error err;
        struct export_limits limits;
        struct strategy strategy;
        open_instance(&i, 200 + k, &rng);
        const char *name = own[k % 3];
        assert_ok(export_limits_parse(name, NULL, &limits, &err));
        assert_ok(baselines_build(baselines_find(name), &i.model, &i.cluster, &strategy, &err));
        assert_ok(export_limits_check(&limits, &strategy, &i.model, &i.cluster, &err));
        strategy_release(&strategy);
        close_instance(&i);
    }
}

/* BytePS orders pushes alone, ByteScheduler pulls too. */
static void pulls_go_by_priority_where_the_framework_orders_them(void **state) {
    (void)state;
    static const char *const forms[] = {"byteps", "bytescheduler"};
    for (int orders = 0; orders < 2; orders++) {
        struct instance i;
        struct rng rng;
        struct error err;
        struct export_limits limits;
        struct space_options o = space_default_options();
        open_instance(&i, 400, &rng);
        assert_ok(export_limits_parse(forms[orders], NULL, &limits, &err));
        assert_ok(export_limits_narrow(&limits, &i.model, &i.cluster, &o, &err));
        assert_true(o.parameter_server && o.policies >> POLICY_priority & 1);
        assert_int_equal(o.order_pulls, orders);
        close_instance(&i);
    }
}

static void what_is_accepted_is_no_loss(void **state) {
    (void)state;
    struct instance i;
    struct rng rng;
    struct error err;
    struct export_limits strict, lenient;
    struct strategy strategy;
    open_instance(&i, 300, &rng);
    assert_ok(export_limits_parse("horovod", NULL, &strict, &err));
    assert_ok(export_limits_parse("horovod", "cross-iteration,credit,order,partition,parameter-server,shards,algorithm",
                                  &lenient, &err));
    assert_ok(baselines_build(baselines_find("bytescheduler-ps"), &i.model, &i.cluster, &strategy, &err));
    assert_fails(export_limits_check(&strict, &strategy, &i.model, &i.cluster, &err), ST_INFEASIBLE,
                 "parameter-server");
    assert_ok(export_limits_check(&lenient, &strategy, &i.model, &i.cluster, &err));
    struct space_options o = space_default_options();
    assert_ok(export_limits_narrow(&lenient, &i.model, &i.cluster, &o, &err));
    assert_true(o.parameter_server && o.cross_iteration && !o.usual_credit && !o.whole_messages);
    strategy_release(&strategy);
    close_instance(&i);
}

/* What is sharded is the framework's form's to say; NCCL's alone loses it. */
static void nccl_beside_a_form_need_not_say_what_is_sharded(void **state) {
    (void)state;
    struct instance i;
    struct rng rng;
    struct error err;
    struct export_limits alone, twice, beside, neither;
    struct strategy strategy;
    open_instance(&i, 401, &rng);
    assert_ok(export_limits_parse("nccl", NULL, &alone, &err));
    assert_ok(export_limits_parse("nccl,nccl", NULL, &twice, &err));
    assert_ok(export_limits_parse("pytorch-hook,nccl", NULL, &beside, &err));
    assert_ok(export_limits_parse("horovod,nccl", NULL, &neither, &err));
    assert_ok(baselines_build(baselines_find("dear"), &i.model, &i.cluster, &strategy, &err));
    assert_fails(export_limits_check(&alone, &strategy, &i.model, &i.cluster, &err), ST_INFEASIBLE, "sharded");
    assert_fails(export_limits_check(&twice, &strategy, &i.model, &i.cluster, &err), ST_INFEASIBLE, "sharded");
    assert_ok(export_limits_check(&beside, &strategy, &i.model, &i.cluster, &err));
    assert_fails(export_limits_check(&neither, &strategy, &i.model, &i.cluster, &err), ST_INFEASIBLE, "sharded");
    strategy_release(&strategy);
    close_instance(&i);
}

/* NCCL takes the algorithm where a framework's form has no word for it. */
static void nccl_lifts_the_loss_of_algorithms(void **state) {
    (void)state;
    struct instance i;
    struct rng rng;
    struct error err;
    struct export_limits alone, both;
    struct space_options one = space_default_options(), two = one;
    open_instance(&i, 400, &rng);
    assert_ok(export_limits_parse("pytorch-ddp", NULL, &alone, &err));
    assert_ok(export_limits_parse("pytorch-ddp,nccl", NULL, &both, &err));
    assert_ok(export_limits_narrow(&alone, &i.model, &i.cluster, &one, &err));
    assert_ok(export_limits_narrow(&both, &i.model, &i.cluster, &two, &err));
    assert_false(one.algorithms >> ALGORITHM_ring & 1);
    assert_true(two.algorithms >> ALGORITHM_ring & 1);
    assert_false(two.algorithms >> ALGORITHM_recursive_doubling & 1);
    assert_int_equal(two.policies, one.policies);
    close_instance(&i);
}

static void all_forms_can_be_named_at_once(void **state) {
    (void)state;
    struct export_limits limits;
    struct error err;
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    char all[512] = "", names[EXPORT_LIMITS_ROOM];
    for (size_t i = 0; i < n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "," : "", forms[i].name);
    assert_ok(export_limits_parse(all, "sharded", &limits, &err));
    assert_int_equal(limits.n, n);
    assert_string_equal(export_limits_names(&limits, names), all);
}

/* Of the forms named; one beside them says nothing of parts in any case. */
static void what_is_accepted_is_so_in_the_forms_named(void **state) {
    (void)state;
    struct export_limits limits;
    struct error err;
    uint32_t losses = 0;
    const uint32_t algorithm = 1u << EXPORT_LOSS_ALGORITHM;
    assert_ok(export_limits_parse("horovod", "sharded,groups", &limits, &err));
    assert_ok(export_losses_parse("sharded,groups", &losses, &err));
    assert_int_equal(losses, 1u << EXPORT_LOSS_SHARDED | 1u << EXPORT_LOSS_GROUPS);
    assert_int_equal(export_limits_accepted(&limits, exporters_find("horovod")), losses);
    assert_int_equal(export_limits_accepted(&limits, exporters_find("byteps")), 0);
    assert_int_equal(export_limits_accepted(&limits, exporters_find("nccl")), ~algorithm);
    assert_ok(export_limits_parse("horovod,nccl", NULL, &limits, &err));
    assert_int_equal(export_limits_accepted(&limits, exporters_find("horovod")), algorithm);
    assert_ok(export_limits_parse("nccl", NULL, &limits, &err));
    assert_int_equal(export_limits_accepted(&limits, exporters_find("nccl")), 0);
    assert_int_equal(export_limits_accepted(&(struct export_limits){0}, exporters_find("nccl")), 0);
}

static void words_that_are_none_are_refused(void **state) {
    (void)state;
    struct export_limits limits;
    struct error err;
    assert_fails(export_limits_parse("pytorch", NULL, &limits, &err), ST_USAGE, "\"pytorch\"");
    assert_fails(export_limits_parse("", NULL, &limits, &err), ST_USAGE, "at least one");
    assert_fails(export_limits_parse("horovod", "groups,colour", &limits, &err), ST_USAGE,
                 "no loss \"colour\"; losses are groups all-reduce parameter-server");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_narrowed_space_draws_loses_only_what_options_cannot_rule_out),
        cmocka_unit_test(sharding_is_left_where_the_form_says_it),
        cmocka_unit_test(plain_frameworks_leave_groups_alone),
        cmocka_unit_test(a_baseline_is_within_the_form_of_its_own_framework),
        cmocka_unit_test(pulls_go_by_priority_where_the_framework_orders_them),
        cmocka_unit_test(what_is_accepted_is_no_loss),
        cmocka_unit_test(nccl_beside_a_form_need_not_say_what_is_sharded),
        cmocka_unit_test(nccl_lifts_the_loss_of_algorithms),
        cmocka_unit_test(all_forms_can_be_named_at_once),
        cmocka_unit_test(what_is_accepted_is_so_in_the_forms_named),
        cmocka_unit_test(words_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
