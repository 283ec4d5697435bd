/* Models: what is refused and in which words, what is derived, and that the id is the content's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "strategy/model.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/descriptions.h"

#define HEAD            "{'schema':'syncopate.model/1','name':'m',"
#define AB              "'variables':[{'name':'a','shape':[4,3]},{'name':'b','shape':[]}],"
#define FA              "{'name':'f','phase':'forward','time_us':1,'reads':['a','b']}"
#define BA              "{'name':'g','phase':'backward','time_us':2,'after':['f'],'produces':['a','b']}"
#define GOOD            HEAD AB "'operators':[" FA "," BA "]}"
#define ONE_VARIABLE(v) HEAD "'variables':[" v "],'layers':[{'name':'l','forward_us':1,'backward_us':1}]}"
#define OPERATORS(ops)  HEAD AB "'operators':[" ops "]}"
#define LAYERS(layers)  HEAD AB "'layers':[" layers "]}"

static const struct {
    const char *text, *says;
} bad_models[] = {
    {"[]", "m.json: must be an object of schema \"syncopate.model/1\", not an array"},
    {"{'name':'m'}", "\"schema\" is missing"},
    {"{'schema':'syncopate.cluster/1'}", "m.json: /schema: is \"syncopate.cluster/1\""},
    {"{'schema':'syncopate.model/2'}", "/schema: \"syncopate.model/2\" is newer"},
    {"{'schema':'syncopate.model/0'}", "/schema: \"syncopate.model/0\" is a version that is no longer read"},
    {"{'schema':7}", "/schema: must be a string, not a number"},
    {HEAD "'batchsize':3}", "/batchsize: unknown member"},
    {HEAD "'batch_per_devise':3}", "did you mean \"batch_per_device\"?"},
    {HEAD "'name':'n'}", "twice"},
    {"{'schema':'syncopate.model/1','name':''}", "/name: must not be empty"},
    {"{'schema':'syncopate.model/1'}", "\"name\" is missing"},
    {HEAD "'batch_per_device':0}", "/batch_per_device: is 0"},
    {HEAD "'batch_per_device':-4}", "/batch_per_device: is -4"},
    {HEAD "'batch_per_device':1e300}", "/batch_per_device: is 1e300"},
    {HEAD "'layers':[]}", "\"variables\" is missing"},
    {HEAD "'variables':{}}", "/variables: must be an array, not an object"},
    {HEAD "'variables':[]}", "/variables: a model needs at least one variable"},
    {ONE_VARIABLE("3"), "/variables/0: must be an object, not a number"},
    {ONE_VARIABLE("{'shape':[1]}"), "/variables/0: the member \"name\" is missing"},
    {ONE_VARIABLE("{'name':'a'}"), "/variables/0: the member \"shape\" is missing"},
    {ONE_VARIABLE("{'name':'a','shape':4}"), "/variables/0/shape: must be an array, not a number"},
    {ONE_VARIABLE("{'name':'a','shape':[0]}"), "/variables/0/shape/0: is 0"},
    {ONE_VARIABLE("{'name':'a','shape':[2,-1]}"), "/variables/0/shape/1: is -1"},
    {ONE_VARIABLE("{'name':'a','shape':[1.5]}"), "/variables/0/shape/0: is 1.5; it must be a whole number"},
    {ONE_VARIABLE("{'name':'a','shape':[1e999]}"), "/variables/0/shape/0: a number too large"},
    {ONE_VARIABLE("{'name':'a','shape':[1e13]}"), "/variables/0/shape/0: is 10000000000000"},
    {ONE_VARIABLE("{'name':'a','shape':[1e9,1e9]}"), "/variables/0/shape: more than 2^48 elements"},
    {ONE_VARIABLE("{'name':'a','shape':['4']}"), "/variables/0/shape/0: must be a whole number, not a string"},
    {ONE_VARIABLE("{'name':'a','shape':[1,1,1,1,1,1,1,1,1]}"), "/variables/0/shape: has 9 elements; at most 8"},
    {ONE_VARIABLE("{'name':'a','shape':[1],'dtype':'float32'}"), "/variables/0/dtype: \"float32\""},
    {ONE_VARIABLE("{'name':'a','shape':[1],'dtype':'F32'}"), "did you mean \"f32\"?"},
    {ONE_VARIABLE("{'name':'a','shape':[9],'sparse_rows':10}"), "/variables/0/sparse_rows: is 10"},
    {ONE_VARIABLE("{'name':'a','shape':[9],'sparse_rows':0}"), "/variables/0/sparse_rows: is 0"},
    {ONE_VARIABLE("{'name':'a','shape':[],'sparse_rows':1}"), "/variables/0: \"sparse_rows\" needs an axis"},
    {ONE_VARIABLE("{'name':'a','shape':[1],'trainable':true}"), "/variables/0/trainable: unknown member"},
    {ONE_VARIABLE("{'name':'a','shape':[1]},{'name':'b','shape':[1]},{'name':'a','shape':[2]}"),
     "/variables/2: variable \"a\" is described twice"},
    {ONE_VARIABLE("{'name':'a','shape':[1]}"), "/variables/0: no backward operator produces variable \"a\""},
    {HEAD AB "'schedule':0}", "/schedule: unknown member"},
    {HEAD "'variables':[{'name':'a','shape':[1]}]}", "\"operators\" is missing"},
    {HEAD AB "'layers':[],'operators':[]}", "give \"operators\" or \"layers\", not both"},
    {LAYERS(""), "/layers: a model needs at least one layer"},
    {LAYERS("{'name':'l','forward_us':-1,'backward_us':1}"), "/layers/0/forward_us: is -1"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1e13}"),
     "/layers/0/backward_us: is 10000000000000; it must be from 0 to"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'time_us':1}"), "/layers/0/time_us: unknown member"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'variables':['a','c']}"),
     "/layers/0/variables/1: there is no variable \"c\""},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'variables':['a','b']},"
            "{'name':'k','forward_us':1,'backward_us':1,'variables':['a']}"),
     "/layers/1: variable \"a\" is already produced by \"l.grad\""},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'variables':['a','b']},"
            "{'name':'l','forward_us':1,'backward_us':1}"),
     "/layers: operator \"l\" is described twice"},
    {HEAD "'optimizer':'adamm'," AB "'layers':[]}", "/optimizer: \"adamm\""},
    {HEAD "'update_us':-1," AB "'layers':[]}", "/update_us: is -1"},
    {HEAD "'optimizer':3," AB "'layers':[]}", "/optimizer: must be a string, not a number"},
    {HEAD "'optimizer':{}," AB "'layers':[]}", "/optimizer: the member \"name\" is missing"},
    {HEAD "'optimizer':{'name':'adam','betas':1}," AB "'layers':[]}", "/optimizer/betas: unknown member"},
    {HEAD "'optimizer':{'name':'adam','master_copy':1}," AB "'layers':[]}", "/optimizer/master_copy: must be true or"},
    {HEAD "'optimizer':{'name':'adam','bytes_per_element':1}," AB "'layers':[]}",
     "/optimizer: \"bytes_per_element\" is"},
    {HEAD "'optimizer':{'bytes_per_element':-1}," AB "'layers':[]}", "/optimizer/bytes_per_element: is -1"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'activation_bytes':-1}"), "/layers/0/activation_bytes: is -1"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'temporary_bytes':-1}"), "/layers/0/temporary_bytes: is -1"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'activation_bytes':1e16}"),
     "/layers/0/activation_bytes: is 1e16"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'activation_bytes':9e15},"
            "{'name':'k','forward_us':1,'backward_us':1,'activation_bytes':9e15}"),
     "/layers/1: more than 2^53 bytes of activations"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'kept_for':'l.grad'}"), "/layers/0/kept_for: unknown member"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1,'activation_bytes':1},"
            "{'name':'k','forward_us':1,'backward_us':1}"),
     "/layers/1: \"activation_bytes\" is missing here and given before: give it to all or to none"},
    {LAYERS("{'name':'l','forward_us':1,'backward_us':1},"
            "{'name':'k','forward_us':1,'backward_us':1,'activation_bytes':0}"),
     "/layers/1: \"activation_bytes\" is given here and missing before"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'activation_bytes':1}," BA),
     "/operators/0: the member \"kept_for\" is missing"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'activation_bytes':1,'kept_for':'x'}," BA),
     "/operators/0: \"kept_for\": there is no operator \"x\""},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'activation_bytes':1,'kept_for':'f'}," BA),
     "/operators/0: \"kept_for\": \"f\" is no backward operator"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'activation_bytes':0,'kept_for':'g'}," BA),
     "/operators/0: \"kept_for\" belongs to \"activation_bytes\" above 0"},
    {OPERATORS(FA ",{'name':'h','phase':'backward','time_us':1,'after':['f'],'activation_bytes':1,'kept_for':'g'},"
                  "{'name':'g','phase':'backward','time_us':2,'after':['h'],'produces':['a','b']}"),
     "/operators/1: a backward operator has \"activation_bytes\" only where forward operators have them"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'reads':['a','b'],'activation_bytes':0}," BA
               ",{'name':'h','phase':'backward','time_us':1,'after':['g'],'activation_bytes':1,'kept_for':'g'}"),
     "/operators/2: \"kept_for\": \"g\" runs before \"h\" ends"},
    {HEAD "'activations_estimated':true," AB "'operators':[" FA "," BA "]}",
     "\"activations_estimated\" belongs to operators with \"activation_bytes\""},
    {HEAD "'activations_estimated':1," AB "'operators':[" FA "," BA "]}", "/activations_estimated: must be true or"},
    {OPERATORS(""), "no backward operator produces variable \"a\""},
    {OPERATORS("5"), "/operators/0: must be an object"},
    {OPERATORS("{'phase':'forward','time_us':1}"), "/operators/0: the member \"name\" is missing"},
    {OPERATORS("{'name':'f','phase':'sideways','time_us':1}"), "/operators/0/phase: \"sideways\""},
    {OPERATORS("{'name':'f','time_us':1}"), "/operators/0: the member \"phase\" is missing"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':-1}"), "/operators/0/time_us: is -1"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1e999}"), "/operators/0/time_us: a number too large"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':null}"), "/operators/0/time_us: must be a number, not null"},
    {OPERATORS("{'name':'f','phase':'forward'}"), "/operators/0: the member \"time_us\" is missing"},
    {OPERATORS(FA "," BA ",{'name':'f','phase':'forward','time_us':1}"), "/operators/2: operator \"f\" is described"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'after':['x']}"),
     "/operators/0/after/0: there is no operator \"x\""},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'reads':['b','c']}"),
     "/operators/0/reads/1: there is no variable \"c\""},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'reads':'b'}"), "/operators/0/reads: must be an array"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'produces':['a']}"),
     "/operators/0: a forward operator has no \"produces\""},
    {OPERATORS("{'name':'f','phase':'backward','time_us':1,'reads':['a']}"),
     "/operators/0: a backward operator has no \"reads\""},
    {OPERATORS("{'name':'f','phase':'backward','time_us':1,'produces':['a','a']}"),
     "/operators/0: variable \"a\" is already produced by \"f\""},
    {OPERATORS(FA "," BA ",{'name':'h','phase':'backward','time_us':1,'produces':['b']}"),
     "/operators/2: variable \"b\" is already produced by \"g\""},
    {OPERATORS(FA ",{'name':'g','phase':'backward','time_us':1,'produces':['a']}"),
     "/variables/1: no backward operator produces variable \"b\""},
    {OPERATORS("{'name':'g','phase':'backward','time_us':1,'produces':['a','b']}"),
     "needs at least one forward operator"},
    {OPERATORS("{'name':'f','phase':'forward','time_us':1,'after':['f']}," BA),
     "/operators/0: operators wait for each other in a cycle through \"f\" and \"f\""},
    {OPERATORS("{'name':'x','phase':'forward','time_us':1,'after':['y']},"
               "{'name':'y','phase':'forward','time_us':1,'after':['x']}," FA "," BA),
     "/operators/1: operators wait for each other in a cycle through \"y\" and \"x\""},
    {OPERATORS(FA ",{'name':'g','phase':'backward','time_us':1,'after':['h'],'produces':['a','b']},"
                  "{'name':'h','phase':'backward','time_us':1,'after':['g']}"),
     "cycle through \"h\" and \"g\""},
    {OPERATORS("{'name':'e','phase':'forward','time_us':1}," FA "," BA
               ",{'name':'z','phase':'forward','time_us':1,'after':['e','g']}"),
     "/operators/3: forward operator \"z\" waits for backward operator \"g\""},
};

static void each_bad_model_is_refused_at_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_models / sizeof *bad_models; i++) {
        struct error err = {0};
        struct model model = {.n_variables = 77};
        assert_fails(quoted_model(bad_models[i].text, &model, &err), ST_INVALID, bad_models[i].says);
        assert_contains(ERROR_TEXT(&err), "m.json: ");
        assert_int_equal(model.n_variables, 77); /* nothing is written on failure */
    }
}

static void each_bad_file_is_refused_with_a_reason(void **state) {
    (void)state;
    for (const struct bad_file *f = bad_files(); f->path; f++) {
        struct error err = {0};
        struct model model;
        double start = computed_us();
        assert_fails(model_read_file(f->path, &model, &err), f->status, f->says);
        assert_true(computed_us() - start < 1e6); /* 200 MB are refused by their size, not read */
    }
}

static void a_total_that_overflows_is_refused(void **state) {
    (void)state;
    enum { N = 9000 };
    struct error err = {0};
    struct model model;
    char *text = malloc(N * 64 + 256), *p = text;
    p += sprintf(p, "%s", HEAD "'layers':[{'name':'l','forward_us':1,'backward_us':1}],'variables':[");
    for (int i = 0; i < N; i++)
        p += sprintf(p, "%s{'name':'v%d','shape':[65536,65536,65536],'dtype':'f64'}", i ? "," : "", i);
    strcpy(p, "]}");
    assert_fails(quoted_model(text, &model, &err), ST_INVALID, "/variables: more than 2^53 bytes");
    free(text);
}

static void a_model_is_read_with_its_derived_numbers(void **state) {
    (void)state;
    struct error err = {0};
    struct model m;
    assert_ok(quoted_model(
        HEAD
        "'batch_per_device':32,'variables':[{'name':'conv1.weight','shape':[64,3,7,7]},"
        "{'name':'emb','shape':[30522,768],'dtype':'f16','sparse_rows':4096},{'name':'s','shape':[],'dtype':'f64'}],"
        "'operators':[{'name':'g','phase':'backward','time_us':2.5,'after':['h'],'produces':['conv1.weight']},"
        "{'name':'f','phase':'forward','time_us':1,'reads':['s','emb','emb']},"
        "{'name':'h','phase':'backward','time_us':4,'after':['f'],'produces':['s','emb']}]}",
        &m, &err));
    assert_string_equal(m.name, "m");
    assert_close(m.batch_per_device, 32, 0);
    assert_int_equal(m.n_variables, 3);
    assert_int_equal(m.variables[0].elements, 9408);
    assert_int_equal(m.variables[0].bytes, 37632);
    assert_int_equal(m.variables[0].dtype, DTYPE_f32);
    assert_int_equal(m.variables[1].elements, 23440896);
    assert_int_equal(m.variables[1].bytes, 46881792);
    assert_int_equal(m.variables[1].sparse_rows, 4096);
    assert_int_equal(m.variables[2].rank, 0);
    assert_int_equal(m.variables[2].bytes, 8);
    assert_int_equal(m.bytes, 37632 + 46881792 + 8);
    assert_int_equal(m.variables[0].producer, 0);
    assert_int_equal(m.variables[1].producer, 2);
    assert_int_equal(m.n_forward, 1);
    const uint32_t order[] = {1, 2, 0};
    assert_memory_equal(m.order, order, sizeof order);
    assert_close(m.forward_us, 1, 0);
    assert_close(m.backward_us, 6.5, 0);
    assert_int_equal(model_find_variable(&m, "emb"), 1);
    assert_int_equal(model_find_variable(&m, "em"), -1);
    model_release(&m);
    assert_null(m.arena.blocks);
}

static void element_sizes_are_those_of_the_formats(void **state) {
    (void)state;
    const struct {
        const char *name;
        uint64_t bytes;
    } want[DTYPE_COUNT] = {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8}, {"i32", 4}, {"i64", 8}, {"u8", 1}};
    for (int i = 0; i < DTYPE_COUNT; i++) {
        assert_string_equal(dtype_name((enum dtype)i), want[i].name);
        assert_int_equal(dtype_bytes((enum dtype)i), want[i].bytes);
    }
}

static void layers_are_the_chain_of_operators_that_they_stand_for(void **state) {
    (void)state;
    struct error err = {0};
    struct model layers, operators;
    assert_ok(quoted_model(LAYERS("{'name':'x','forward_us':1,'backward_us':4,'variables':['b']},"
                                  "{'name':'y','forward_us':2,'backward_us':5},"
                                  "{'name':'z','forward_us':3,'backward_us':6,'variables':['a']}"),
                           &layers, &err));
    assert_ok(quoted_model(OPERATORS("{'name':'x','phase':'forward','time_us':1,'reads':['b']},"
                                     "{'name':'y','phase':'forward','time_us':2,'after':['x']},"
                                     "{'name':'z','phase':'forward','time_us':3,'after':['y'],'reads':['a']},"
                                     "{'name':'z.grad','phase':'backward','time_us':6,'after':['z'],'produces':['a']},"
                                     "{'name':'y.grad','phase':'backward','time_us':5,'after':['z.grad']},"
                                     "{'name':'x.grad','phase':'backward','time_us':4,'after':['y.grad'],"
                                     "'produces':['b']}"),
                           &operators, &err));
    assert_string_equal(layers.id.hex, operators.id.hex);
    assert_int_equal(layers.n_forward, 3);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(layers.order[i], i);
    model_release(&layers);
    model_release(&operators);
}

static void activations_of_layers_are_kept_for_their_own_backward_operators(void **state) {
    (void)state;
    struct error err = {0};
    struct model layers, operators;
    assert_ok(quoted_model(HEAD "'optimizer':{'name':'adam','master_copy':false}," AB "'layers':["
                                "{'name':'x','forward_us':1,'backward_us':4,'variables':['b'],'activation_bytes':7},"
                                "{'name':'z','forward_us':3,'backward_us':6,'variables':['a'],'activation_bytes':0}]}",
                           &layers, &err));
    assert_ok(quoted_model(
        HEAD "'optimizer':'adam'," AB "'operators':["
             "{'name':'x','phase':'forward','time_us':1,'reads':['b'],'activation_bytes':7,'kept_for':'x.grad'},"
             "{'name':'z','phase':'forward','time_us':3,'after':['x'],'reads':['a'],'activation_bytes':0},"
             "{'name':'z.grad','phase':'backward','time_us':6,'after':['z'],'produces':['a']},"
             "{'name':'x.grad','phase':'backward','time_us':4,'after':['z.grad'],'produces':['b']}]}",
        &operators, &err));
    assert_string_equal(layers.id.hex, operators.id.hex);
    assert_true(layers.knows_activations);
    assert_int_equal(layers.operators[0].activation_bytes, 7);
    assert_int_equal(layers.operators[0].kept_for, 3);
    assert_int_equal(layers.operators[1].activation_bytes, 0);
    assert_int_equal(layers.optimizer.kind, OPTIMIZER_adam);
    model_release(&layers);
    model_release(&operators);
}

/* The place of each operator in the execution order. */
static uint32_t *places_of(const struct model *m) {
    uint32_t *place = malloc(m->n_operators * sizeof *place);
    assert_non_null(place);
    memset(place, 0xff, m->n_operators * sizeof *place);
    for (uint32_t i = 0; i < m->n_operators; i++) {
        assert_true(m->order[i] < m->n_operators);
        assert_int_equal(place[m->order[i]], UINT32_MAX);
        place[m->order[i]] = i;
    }
    return place;
}

static void check_order(const struct model *m) {
    uint32_t *place = places_of(m);
    bool sorted = true; /* every operator after those that it waits for, forward first */
    for (uint32_t i = 0; i < m->n_operators; i++) {
        const struct operator* op = & m->operators[i];
        assert_int_equal(op->backward, place[i] >= m->n_forward);
        for (uint32_t k = 0; k < op->n_after; k++) {
            assert_true(place[op->after[k]] < place[i]);
            sorted = sorted && op->after[k] < i;
        }
        sorted = sorted && (i == 0 || op->backward >= m->operators[i - 1].backward);
    }
    for (uint32_t i = 0; sorted && i < m->n_operators; i++)
        assert_int_equal(m->order[i], i); /* a file in order keeps it */
    free(place);
}

/* The same file, its operators listed in execution order. */
static void check_sorted_file(const struct model *m) {
    struct error err = {0};
    struct model again;
    cJSON *json = model_write(m), *operators = cJSON_GetObjectItem(json, "operators"), *sorted = cJSON_CreateArray();
    for (uint32_t i = 0; i < m->n_operators; i++)
        cJSON_AddItemToArray(sorted, cJSON_Duplicate(cJSON_GetArrayItem(operators, (int)m->order[i]), true));
    cJSON_ReplaceItemInObject(json, "operators", sorted);
    assert_ok(model_read(json, "sorted", &again, &err));
    for (uint32_t i = 0; i < m->n_operators; i++) {
        assert_int_equal(again.order[i], i);
        assert_string_equal(again.operators[i].name, m->operators[m->order[i]].name);
    }
    model_release(&again);
    cJSON_Delete(json);
}

static void the_order_respects_dependencies_and_keeps_the_order_of_the_file(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 500; round++) {
        struct model m;
        assert_ok(random_model(&rng, &m, &err));
        check_order(&m);
        check_sorted_file(&m);
        model_release(&m);
    }
}

static void an_operator_is_moved_only_to_follow_what_it_waits_for(void **state) {
    (void)state;
    struct error err = {0};
    struct model m;
    assert_ok(quoted_model(OPERATORS(BA ",{'name':'d','phase':'forward','time_us':1},"
                                        "{'name':'c','phase':'forward','time_us':1,'after':['d','f']},"
                                        "{'name':'e','phase':'forward','time_us':1}," FA),
                           &m, &err));
    const uint32_t order[] = {1, 4, 2, 3, 0};
    assert_memory_equal(m.order, order, sizeof order);
    model_release(&m);
}

/* Listed last first, so that the walk meets the whole chain at once. */
static void a_chain_of_200000_operators_needs_no_deep_stack(void **state) {
    (void)state;
    enum { N = 200000 };
    struct error err = {0};
    struct model m;
    char *text = malloc(N * 80 + 512), *p = text;
    assert_non_null(text);
    p += sprintf(p, "%s", HEAD AB "'operators':[" BA);
    for (int i = N; i > 0; i--)
        p +=
            sprintf(p, ",{'name':'o%d','phase':'forward','time_us':1,'after':['%s%.0d']}", i, i > 1 ? "o" : "f", i - 1);
    strcpy(p, "," FA "]}");
    double start = clock_now_us();
    assert_ok(quoted_model(text, &m, &err));
    print_message("# %d operators read in %.0f ms\n", N, (clock_now_us() - start) / 1e3);
    assert_int_equal(m.n_forward, N + 1);
    assert_int_equal(m.order[0], N + 1);
    for (uint32_t i = 1; i <= N; i++)
        assert_int_equal(m.order[i], N + 1 - i);
    assert_int_equal(m.order[N + 1], 0);
    model_release(&m);
    free(text);
}

static void check_round_trip(const struct model *m) {
    struct error err = {0};
    struct model again;
    cJSON *json = model_write(m);
    assert_non_null(json);
    char *first = json_canonical(json), *pretty = json_pretty(json);
    cJSON_Delete(json);
    assert_ok(json_parse(pretty, strlen(pretty), "again", &json, &err));
    assert_ok(model_read(json, "again", &again, &err));
    cJSON_Delete(json);
    json = model_write(&again);
    char *second = json_canonical(json);
    assert_string_equal(first, second);
    assert_string_equal(m->id.hex, again.id.hex);
    struct id id;
    assert_ok(id_of(first, strlen(first), &id, &err));
    assert_string_equal(id.hex, m->id.hex); /* as model.h says */
    model_release(&again);
    cJSON_Delete(json);
    free(first);
    free(second);
    free(pretty);
}

static void what_is_written_reads_back_the_same(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, test_seed() + 1);
    for (int round = 0; round < 300; round++) {
        struct model m;
        cJSON *json = random_model_json(&rng);
        if (round % 2)
            random_memory(&rng, json);
        assert_ok(model_read(json, "random", &m, &err));
        cJSON_Delete(json);
        check_round_trip(&m);
        model_release(&m);
    }
}

static void the_id_does_not_see_member_order_spaces_or_defaults(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    struct model plain, other;
    cJSON *json = NULL;
    rng_seed(&rng, test_seed() + 2);
    assert_ok(quoted_model(GOOD, &plain, &err));
    assert_ok(quoted_model(
        HEAD "\n\t'batch_per_device' : 1.0e0, 'variables':[{'name':'a','shape':[4.0,3],'dtype':'f32'},"
             "{'name':'b','shape':[],'dtype':'f32'}],'operators':[{'name':'f','phase':'forward','time_us':100e-2,"
             "'after':[],'reads':['a','b'],'produces':[]}," BA "]}",
        &other, &err));
    assert_string_equal(plain.id.hex, other.id.hex);
    model_release(&other);
    assert_ok(quoted_model("{'name':'\\u006d','schema':'syncopate.model/1'," AB "'operators':[" FA "," BA "]}", &other,
                           &err));
    assert_string_equal(plain.id.hex, other.id.hex);
    model_release(&other);
    for (int round = 0; round < 100; round++) {
        struct model m;
        json = random_model_json(&rng);
        if (round % 2)
            random_memory(&rng, json);
        assert_ok(model_read(json, "random", &m, &err));
        shuffle_members(&rng, json);
        assert_ok(model_read(json, "shuffled", &other, &err));
        assert_string_equal(m.id.hex, other.id.hex);
        model_release(&m);
        model_release(&other);
        cJSON_Delete(json);
    }
    model_release(&plain);
}

static void every_change_changes_the_id(void **state) {
    (void)state;
    struct error err = {0};
    struct rng rng;
    uint32_t changed = 0;
    rng_seed(&rng, test_seed() + 3);
    for (int round = 0; round < 60; round++) {
        struct model m, other;
        cJSON *drawn = random_model_json(&rng);
        random_memory(&rng, drawn);
        assert_ok(model_read(drawn, "random", &m, &err));
        cJSON_Delete(drawn);
        for (uint32_t k = 0;; k++) {
            uint32_t left = k;
            cJSON *json = model_write(&m), *node = leaf(json, &left);
            if (node)
                change_leaf(node);
            if (node && model_read(json, "changed", &other, &err) == ST_OK) {
                assert_string_not_equal(m.id.hex, other.id.hex);
                model_release(&other);
                changed++;
            }
            cJSON_Delete(json);
            if (!node)
                break;
        }
        model_release(&m);
    }
    print_message("# %u changes of one value\n", changed);
    assert_true(changed > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_model_is_refused_at_its_place),
        cmocka_unit_test(each_bad_file_is_refused_with_a_reason),
        cmocka_unit_test(a_total_that_overflows_is_refused),
        cmocka_unit_test(a_model_is_read_with_its_derived_numbers),
        cmocka_unit_test(element_sizes_are_those_of_the_formats),
        cmocka_unit_test(layers_are_the_chain_of_operators_that_they_stand_for),
        cmocka_unit_test(activations_of_layers_are_kept_for_their_own_backward_operators),
        cmocka_unit_test(the_order_respects_dependencies_and_keeps_the_order_of_the_file),
        cmocka_unit_test(an_operator_is_moved_only_to_follow_what_it_waits_for),
        cmocka_unit_test(a_chain_of_200000_operators_needs_no_deep_stack),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(the_id_does_not_see_member_order_spaces_or_defaults),
        cmocka_unit_test(every_change_changes_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
