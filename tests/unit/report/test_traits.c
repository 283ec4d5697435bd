/* What is said of two strategies differs where they do. */
#include <stdio.h>
#include <string.h>

#include "report/traits.h"
#include "tests/unit/tuner/simulated_world.h"

/* The strategy that this JSON, with ' for ", says: every variable in group 0. */
static void say(struct world *w, const char *schedule, const char *group, char out[TRAITS][TRAIT_ROOM]) {
    struct error err;
    struct strategy s;
    struct plan plan;
    cJSON *json;
    char text[2048];
    int n =
        snprintf(text, sizeof text,
                 "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{\"policy\":\"fifo\"%s},\"groups\":["
                 "{\"id\":0%s}],\"variables\":[",
                 schedule, group);
    for (uint32_t v = 0; v < w->model.n_variables; v++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "%s{\"name\":\"%s\",\"sync\":{\"kind\":\"all_reduce\",\"group\":0}}", v ? "," : "",
                      w->model.variables[v].name);
    snprintf(text + n, sizeof text - (size_t)n, "]}");
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    read_text(text, &json);
    assert_ok(strategy_read(json, "s", &w->model, &w->cluster, &s, &err));
    cJSON_Delete(json);
    assert_ok(plan_lower(&w->model, &w->cluster, &s, &plan, &err));
    traits_of(&s, &plan, out);
    plan_release(&plan);
    strategy_release(&s);
}

#define PARAMETERS ",'sharded':'parameters'"
#define TWICE(how) ",'accumulation':{'micro_batches':2,'synchronize':'" how "'}"

static void what_differs_in_shards_or_accumulation_is_said_so(void **state) {
    static const struct {
        const char *schedule[2], *group[2];
        enum trait trait;
        const char *says[2];
    } cases[] = {
        {{"", ""}, {"", ",'sharded':'optimizer'"}, TRAIT_KEPT_ALONE, {"nothing", "optimizer’s states"}},
        {{"", ""}, {",'sharded':'gradients'", PARAMETERS}, TRAIT_KEPT_ALONE, {"gradients", "parameters"}},
        {{"", ""},
         {PARAMETERS, PARAMETERS ",'reshard_after_forward':false"},
         TRAIT_GATHERED,
         {"freed after it", "kept for the backward pass"}},
        {{"", ""},
         {PARAMETERS, PARAMETERS ",'reshard_after_forward':2"},
         TRAIT_GATHERED,
         {"freed after it", "kept in parts among 2 devices"}},
        {{"", ",'forward_prefetch':0"},
         {PARAMETERS, PARAMETERS},
         TRAIT_AHEAD,
         {"1 in the forward pass, 1 in the backward pass", "0 in the forward pass, 1 in the backward pass"}},
        {{"", ",'shard_ranks':2"},
         {PARAMETERS, PARAMETERS},
         TRAIT_SHARDS,
         {"all devices", "2 devices, with 2 replicas"}},
        {{"", ""},
         {PARAMETERS, PARAMETERS ",'gathered_as':'bf16'"},
         TRAIT_TYPES,
         {"gathered as the model’s, summed as the model’s", "gathered as bf16, summed as the model’s"}},
        {{"", ""}, {PARAMETERS, PARAMETERS ",'summed_as':'f16'"}, TRAIT_ENCODING, {"as computed", "16-bit floats"}},
        {{"", TWICE("last")}, {"", ""}, TRAIT_MICRO_BATCHES, {"one", "2, gradients summed in the last"}},
        {{TWICE("last"), TWICE("each")},
         {"", ""},
         TRAIT_MICRO_BATCHES,
         {"2, gradients summed in the last", "2, gradients summed in each"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char traits[2][TRAITS][TRAIT_ROOM];
        for (size_t k = 0; k < 2; k++) {
            say(*state, cases[i].schedule[k], cases[i].group[k], traits[k]);
            assert_string_equal(traits[k][cases[i].trait], cases[i].says[k]);
        }
        assert_true(trait_is_shown(cases[i].trait, 2, traits));
    }
}

/* Its rows are those that it had before there were shards. */
static void of_plain_strategies_nothing_is_said_about_shards(void **state) {
    static const enum trait left_out[] = {TRAIT_MICRO_BATCHES, TRAIT_KEPT_ALONE, TRAIT_SHARDS,
                                          TRAIT_GATHERED,      TRAIT_AHEAD,      TRAIT_TYPES};
    char traits[2][TRAITS][TRAIT_ROOM];
    size_t shown = 0;
    say(*state, "", "", traits[0]);
    say(*state, ",'credit_bytes':0", "", traits[1]);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        assert_false(trait_is_shown(left_out[i], 2, traits));
    for (enum trait trait = 0; trait < TRAITS; trait++)
        shown += trait_is_shown(trait, 2, traits);
    assert_int_equal(shown, TRAITS - sizeof left_out / sizeof *left_out);
    assert_string_equal(trait_label(TRAIT_CUT), "variables cut");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_differs_in_shards_or_accumulation_is_said_so, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(of_plain_strategies_nothing_is_said_about_shards, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
