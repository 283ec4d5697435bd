/* Encoders: what descriptions say of them, which strategies are refused, the bytes of their messages, and what these
 * cost, worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cost/cost.h"
#include "strategy/encoder.h"
#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"
#include "tests/unit/strategy/descriptions.h"

#define EXACT 1e-12

static const char model_text[] =
    "{'schema':'syncopate.model/1','name':'m','variables':[{'name':'a','shape':[100,10]},{'name':'b','shape':[7]},"
    "{'name':'d','shape':[30],'dtype':'f64'},{'name':'i','shape':[8],'dtype':'i32'}],'layers':[{'name':'l',"
    "'forward_us':1,'backward_us':1,'variables':['a','b','d','i']}]}";
static const char cluster_text[] =
    "{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':4,'nic_gbit_per_s':1}]}";

#define HEAD           "{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'fifo'},"
#define IN(name, more) "{'name':'" name "','sync':{'kind':'all_reduce','group':0}" more "}"
#define OWN(name, g)   "{'name':'" name "','sync':{'kind':'all_reduce','group':" g "}}"
#define INT8           ",'encoding':{'kind':'int8','block_size':64}"
#define GROUPS(first)  "'groups':[{'id':0" first "},{'id':1},{'id':2},{'id':3}],"
/* a with `encoding`, in a group of its own. */
#define A(first, encoding)                                                                                             \
    HEAD GROUPS(first) "'variables':[" IN("a", encoding) "," OWN("b", "1") "," OWN("d", "2") "," OWN("i", "3") "]}"

static const struct {
    const char *text, *says;
} bad_strategies[] = {
    {A("", ",'encoding':{'kind':'int4'}"), "/variables/0/encoding/kind: \"int4\""},
    {A("", ",'encoding':{'block_size':64}"), "/variables/0/encoding: the member \"kind\" is missing"},
    {A("", ",'encoding':{'kind':'f16'}"), "/variables/0/encoding: f16 has no figures: write \"encoding\": \"f16\""},
    {A("", ",'encoding':{'kind':'int8','block':64}"), "/variables/0/encoding/block: unknown member"},
    {A("", ",'encoding':{'kind':'int8','block_size':0}"), "/variables/0/encoding/block_size: is 0"},
    {A("", ",'encoding':{'kind':'int8','block_size':7}"), "/variables/0/encoding/block_size: is 7"},
    {A("", ",'encoding':{'kind':'int8','block_size':65537}"), "/variables/0/encoding/block_size: is 65537"},
    {A("", ",'encoding':{'kind':'int8','block_size':8.5}"), "/variables/0/encoding/block_size: is 8.5"},
    {A("", ",'encoding':{'kind':'powersgd','rank':0}"), "/variables/0/encoding/rank: is 0"},
    {A("", ",'encoding':{'kind':'powersgd','rank':1.5}"), "/variables/0/encoding/rank: is 1.5"},
    {A("", ",'encoding':{'kind':'powersgd','rank':257}"), "/variables/0/encoding/rank: is 257"},
    {A("", ",'encoding':{'kind':'powersgd','rank':'2'}"), "/variables/0/encoding/rank: "},
    {A("", ",'encoding':{'kind':'powersgd','part':2}"), "/variables/0/encoding/part: unknown member"},
    {A("", ",'encoding':{'kind':'powersgd','rank':11}"),
     "/variables/0: variable \"a\" is a matrix of 100 rows of 10, which has no rank 11: lower \"rank\""},
    {A("", ",'partition':{'shards':3},'encoding':'powersgd'"),
     "/variables/0: variable \"a\" is cut into 3 shards and encoded as powersgd, which needs whole matrices"},
    {A(",'partition_bytes':2048", ",'encoding':'powersgd'"),
     "/variables/0: variable \"a\" is encoded as powersgd, which needs whole matrices, but group 0 has "
     "\"partition_bytes\": leave it away"},
    {A(",'sharded':'optimizer'", ",'encoding':'powersgd'"), "/variables/0: variable \"a\" is encoded, but group 0 has"},
    {HEAD GROUPS("") "'variables':[" OWN("a", "0") "," OWN("b", "1") "," OWN(
         "d", "2") ",{'name':'i','encoding':"
                   "'powersgd','sync':{'kind':'all_reduce','group':3}}]}",
     "/variables/3: variable \"i\" is i32: only f32 and f64 can be encoded"},
    {HEAD GROUPS("") "'variables':[" OWN("a", "0") "," OWN("b", "1") "," OWN(
         "d", "2") ",{'name':'i','encoding':'int8',"
                   "'sync':{'kind':'all_reduce','group':3}}]}",
     "/variables/3: variable \"i\" is i32: only f32 and f64 can be encoded"},
    {HEAD GROUPS("") "'variables':[" OWN("a", "0") "," OWN("b", "1") "," OWN(
         "d", "2") ",{'name':'i','encoding':'topk',"
                   "'sync':{'kind':'all_reduce','group':3}}]}",
     "/variables/3: variable \"i\" is i32: only f32 and f64 can be encoded"},
    {A("", ",'encoding':{'kind':'topk','part':0}"), "/variables/0/encoding/part: is 0"},
    {A("", ",'encoding':{'kind':'topk','part':0.6}"), "/variables/0/encoding/part: is 0.6"},
    {A("", ",'encoding':{'kind':'topk','block_size':64}"), "/variables/0/encoding/block_size: unknown member"},
    {A(",'algorithm':'all_gather'", ",'encoding':'topk'"), "/variables/0: variable \"a\" is dense, but group 0"},
    {HEAD GROUPS("") "'variables':[" IN("a", INT8) "," IN("b", ",'encoding':{'kind':'topk','part':0.02}") "," OWN(
         "d", "2") "," OWN("i", "3") "]}",
     "s.json: group 0 mixes \"a\" (int8 in blocks of 64) and \"b\" (topk of 2%): one encoder a merge group"},
    {A("", ",'encoding':8"), "/variables/0/encoding: must be a string"},
    {A(",'algorithm':'ring'", INT8),
     "/variables/0: variable \"a\" is encoded as int8, which goes its own way, but group 0 has \"algorithm\" ring: "
     "leave it away"},
    {A(",'sharded':'optimizer'", INT8), "/variables/0: variable \"a\" is encoded, but group 0 has \"sharded\""},
    {HEAD GROUPS("") "'variables':[{'name':'a','encoding':'int8','sync':{'kind':'parameter_server','servers':['n1']}}"
                     "," OWN("b", "1") "," OWN("d", "2") "," OWN("i", "3") "]}",
     "/variables/0: variable \"a\" is served and encoded as int8, which servers cannot add"},
    {HEAD GROUPS("") "'variables':[" OWN("a", "1") "," OWN("b", "1") "," OWN("d", "2") "," IN("i", INT8) "]}",
     "/variables/3: variable \"i\" is i32: only f32 and f64 can be encoded"},
    {HEAD GROUPS("") "'variables':[" IN("a", INT8) "," IN("b", "") "," OWN("d", "2") "," OWN("i", "3") "]}",
     "s.json: group 0 mixes \"a\" (int8 in blocks of 64) and \"b\" (none): one encoder a merge group"},
    {HEAD GROUPS("") "'variables':[" IN("a", INT8) "," IN("b", ",'encoding':'int8'") "," OWN("d", "2") "," OWN(
         "i", "3") "]}",
     "s.json: group 0 mixes \"a\" (int8 in blocks of 64) and \"b\" (int8 in blocks of 256)"},
    {"{'schema':'syncopate.strategy/1','name':'s','schedule':{'policy':'preemptive','slices':[{'group':0,'bytes':4000}"
     "]},'groups':[{'id':0}],'variables':[" IN("a", INT8) "]}",
     "/variables/0: variable \"a\" is encoded as int8, and policy preemptive slices bytes that can be added"},
};

struct world {
    struct model model;
    struct cluster cluster;
};

static int open_world(void **state) {
    struct error err;
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_ok(quoted_model(model_text, &w->model, &err));
    assert_ok(quoted_cluster(cluster_text, &w->cluster, &err));
    *state = w;
    return 0;
}

static int close_world(void **state) {
    struct world *w = *state;
    model_release(&w->model);
    cluster_release(&w->cluster);
    free(w);
    return 0;
}

static void bad_encoders_are_refused_with_the_place_and_the_reason(void **state) {
    const struct world *w = *state;
    for (size_t i = 0; i < sizeof bad_strategies / sizeof *bad_strategies; i++) {
        struct error err = {0};
        struct strategy s;
        assert_fails(quoted_strategy(bad_strategies[i].text, &w->model, &w->cluster, &s, &err), ST_INVALID,
                     bad_strategies[i].says);
        assert_null(strchr(err.message, '\n'));
    }
}

static void a_builder_that_gives_a_figure_outside_its_range_is_refused(void **state) {
    struct world *w = *state;
    const double figures[] = {0, 7, 8.5, 65537, NAN};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        struct error err = {0};
        struct strategy s;
        assert_ok(quoted_strategy(A("", INT8), &w->model, &w->cluster, &s, &err));
        s.variables[0].figure = figures[i];
        assert_fails(strategy_seal(&s, &w->model, &w->cluster, &err), ST_INVALID, "\"block_size\"");
        strategy_release(&s);
    }
}

/* 1000 elements are 13 blocks of 80, the last one of 40; four devices take at most 4 blocks each. */
static void parts_are_whole_blocks(void **state) {
    (void)state;
    assert_int_equal(encoder_part_bytes(ENCODING_int8, 80, 1000, 1), 1000 + 13 * 4);
    assert_int_equal(encoder_part_bytes(ENCODING_int8, 80, 1000, 4), 4 * 84);
    assert_int_equal(encoder_part_bytes(ENCODING_int8, 80, 1000, 13), 84);
    assert_int_equal(encoder_part_bytes(ENCODING_int8, 80, 1000, 99), 84);
    assert_int_equal(encoder_part_bytes(ENCODING_int8, 4096, 1000, 4), 1004);
}

/* The word stands for the usual figure; the text that the id is of says the figure. What is cast stays a word. */
static void an_encoder_is_written_with_its_figure_and_read_again(void **state) {
    const struct world *w = *state;
    static const char *const same[] = {A("", ",'encoding':'int8'"), A("", ",'encoding':{'kind':'int8'}"),
                                       A("", ",'encoding':{'block_size':256,'kind':'int8'}")};
    struct error err = {0};
    struct strategy first, s;
    assert_ok(quoted_strategy(same[0], &w->model, &w->cluster, &first, &err));
    assert_int_equal(first.variables[0].encoding, ENCODING_int8);
    assert_close(first.variables[0].figure, 256, 0);
    for (int i = 1; i < 3; i++) {
        assert_ok(quoted_strategy(same[i], &w->model, &w->cluster, &s, &err));
        assert_string_equal(s.id.hex, first.id.hex);
        strategy_release(&s);
    }
    assert_ok(quoted_strategy(A("", INT8), &w->model, &w->cluster, &s, &err));
    assert_string_not_equal(s.id.hex, first.id.hex);
    char *text = strategy_canonical(&first, &w->model, &w->cluster);
    assert_non_null(strstr(text, "\"encoding\":{\"block_size\":256,\"kind\":\"int8\"}"));
    free(text);
    cJSON *json = strategy_write(&s, &w->model, &w->cluster);
    struct strategy again;
    assert_ok(strategy_read(json, "again", &w->model, &w->cluster, &again, &err));
    assert_string_equal(again.id.hex, s.id.hex);
    cJSON_Delete(json);
    strategy_release(&again);
    strategy_release(&s);
    strategy_release(&first);
}

/* a and b together: 1007 elements, in blocks of 64 15 whole ones and one of 47. Cut at 1600 bytes: 400, 400, 207. */
static void messages_have_the_bytes_of_blocks_and_scales(void **state) {
    const struct world *w = *state;
    static const struct {
        const char *group;
        uint32_t n;
        uint64_t elements[3];
    } cases[] = {{"", 1, {1007}}, {",'partition_bytes':1600", 3, {400, 400, 207}}};
    for (size_t c = 0; c < 2; c++) {
        struct error err = {0};
        struct strategy s;
        struct plan plan;
        char text[1024];
        snprintf(text, sizeof text,
                 HEAD "'groups':[{'id':0%s},{'id':2},{'id':3}],'variables':[" IN("a", INT8) "," IN(
                     "b", INT8) ","
                                "{'name':'d','encoding':{'kind':'int8','block_size':8},'sync':{'kind':'all_reduce','"
                                "group':2}}," OWN("i", "3") "]}",
                 cases[c].group);
        assert_ok(quoted_strategy(text, &w->model, &w->cluster, &s, &err));
        assert_ok(plan_lower(&w->model, &w->cluster, &s, &plan, &err));
        assert_int_equal(plan.n_messages, cases[c].n + 2);
        assert_int_equal(plan.lossy, LOSSY_byte);
        for (uint32_t i = 0; i < cases[c].n; i++) {
            const struct message *m = &plan.messages[i];
            uint64_t blocks = 0;
            for (uint64_t at = 0; at < cases[c].elements[i]; at += 64)
                blocks++;
            assert_int_equal(m->encoder, ENCODING_int8);
            assert_close(m->figure, 64, 0);
            assert_int_equal(m->unencoded_bytes, 4 * cases[c].elements[i]);
            assert_int_equal(m->bytes, cases[c].elements[i] + 4 * blocks);
            assert_int_equal(m->encoded_bytes, m->bytes);
            assert_int_equal(message_piece_bytes(m), 4 * cases[c].elements[i]);
        }
        const struct message *d = &plan.messages[cases[c].n]; /* 30 of f64: 8, 8, 8, 6 */
        assert_int_equal(d->unencoded_bytes, 240);
        assert_int_equal(d->bytes, 30 + 4 * 4);
        assert_int_equal(plan.messages[cases[c].n + 1].encoder, ENCODING_none);
        assert_int_equal(message_piece_bytes(&plan.messages[cases[c].n + 1]), 32);
        plan_release(&plan);
        strategy_release(&s);
    }
}

/* 1% of 1000 elements are 10, of 1007 11; half of 7 are 4; and one is the least. */
static void messages_have_the_elements_that_are_picked_and_their_places(void **state) {
    const struct world *w = *state;
    static const char text[] = HEAD "'groups':[{'id':0},{'id':2},{'id':3}],'variables':[" IN(
        "a", ",'encoding':'topk'") ","
                                   "{'name':'b','encoding':{'kind':'topk','part':0.5},'sync':{'kind':'all_reduce','"
                                   "group':2}},"
                                   "{'name':'d','encoding':{'kind':'topk','part':0.001},'sync':{'kind':'all_reduce','"
                                   "group':3}},"
                                   "{'name':'i','sync':{'kind':'parameter_server','servers':['n1']}}]}";
    static const uint64_t bytes[] = {8 * 10, 8 * 4, 8 * 1}, unencoded[] = {4000, 28, 240};
    struct error err = {0};
    struct strategy s;
    struct plan plan;
    assert_ok(quoted_strategy(text, &w->model, &w->cluster, &s, &err));
    assert_ok(plan_lower(&w->model, &w->cluster, &s, &plan, &err));
    assert_int_equal(plan.lossy, LOSSY_any);
    assert_int_equal(plan.n_messages, 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(plan.messages[i].encoder, ENCODING_topk);
        assert_int_equal(plan.messages[i].bytes, bytes[i]);
        assert_int_equal(plan.messages[i].unencoded_bytes, unencoded[i]);
    }
    assert_int_equal(encoder_kept(0.01, 1007), 11);
    plan_release(&plan);
    strategy_release(&s);
}

/* A matrix of 100 rows of 10 has 3 columns of 100 and of 10; a vector goes with the first. */
static void messages_have_thin_matrices_and_vectors_as_they_are(void **state) {
    const struct world *w = *state;
    static const char three[] = ",'encoding':{'kind':'powersgd','rank':3}";
    static const char text[] = HEAD "'groups':[{'id':0},{'id':2},{'id':3}],'variables':[{'name':'a'%s,'sync':{'kind':"
                                    "'all_reduce','group':0}},{'name':'b'%s,'sync':{'kind':'all_reduce','group':0}},"
                                    "{'name':'d'%s,'sync':{'kind':'all_reduce','group':2}},"
                                    "{'name':'i','sync':{'kind':'all_reduce','group':3}}]}";
    char whole[1024];
    struct error err = {0};
    struct strategy s;
    struct plan plan;
    snprintf(whole, sizeof whole, text, three, three, three);
    assert_ok(quoted_strategy(whole, &w->model, &w->cluster, &s, &err));
    assert_ok(plan_lower(&w->model, &w->cluster, &s, &plan, &err));
    assert_int_equal(plan.lossy, LOSSY_any);
    assert_int_equal(plan.n_messages, 3);
    assert_int_equal(plan.messages[0].encoder, ENCODING_powersgd);
    assert_int_equal(plan.messages[0].bytes, 4 * (3 * 100 + 7 + 3 * 10));
    assert_int_equal(plan.messages[0].second_bytes, 4 * 3 * 10);
    assert_int_equal(plan.messages[0].unencoded_bytes, 4 * 1007);
    assert_int_equal(plan.messages[1].bytes, 4 * 30);
    assert_int_equal(plan.messages[1].second_bytes, 0);
    assert_int_equal(plan.messages[2].bytes, 4 * 8);
    assert_int_equal(plan.messages[2].second_bytes, 0);
    plan_release(&plan);
    strategy_release(&s);
}

/* All axes but the first are columns. */
static void a_gradient_of_any_shape_is_read_as_a_matrix(void **state) {
    (void)state;
    const uint64_t shape[] = {6, 5, 4, 3};
    const struct variable axes[] = {{.rank = 0, .shape = shape, .elements = 1},
                                    {.rank = 1, .shape = shape, .elements = 6},
                                    {.rank = 2, .shape = shape, .elements = 30},
                                    {.rank = 4, .shape = shape, .elements = 360}};
    const struct encoder_matrix want[] = {{1, 0}, {6, 0}, {6, 5}, {6, 60}};
    const uint64_t first[] = {1, 6, 12, 12}, second[] = {0, 0, 10, 120};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(encoder_matrix(&axes[i]).rows, want[i].rows);
        assert_int_equal(encoder_matrix(&axes[i]).columns, want[i].columns);
        assert_int_equal(encoder_first_elements(&axes[i], 2), first[i]);
        assert_int_equal(encoder_second_elements(&axes[i], 2), second[i]);
    }
}

static void open_eight(struct handmade *f, double nic_latency_us) {
    handmade_cluster(f, 8);
    for (int i = 0; i < 8; i++)
        f->nodes[i].nic_latency_us = nic_latency_us;
    handmade_number_devices(f);
}

/* Thin matrices of rank 2, 8000 and 16000 bytes. */
static const struct message THIN = {.bytes = 24000,
                                    .second_bytes = 16000,
                                    .encoder = ENCODING_powersgd,
                                    .figure = 2,
                                    .encoded_bytes = 24000,
                                    .unencoded_bytes = 420000,
                                    .n_pieces = 1};

/* 8 nodes, 1000 bytes a microsecond. 8000 and 16000 bytes go to and fro, 7 steps each way, with 7/8 of them; they are
 * added, and one of the three products lies between. At rank 2 all passes together are as fast as measured; at rank 5.5
 * they take twice as long. */
static void thin_matrices_are_added_one_after_the_other(void **state) {
    (void)state;
    struct error err;
    struct handmade f;
    struct cost cost;
    struct message message = THIN;
    open_eight(&f, 50);
    f.cluster.runtime =
        (struct runtime){.message_us = 7, .way_us = 30, .powersgd_gbyte_per_s = 2, .sum_gbyte_per_s = 8, .goodput = 1};
    f.cluster.transport = TRANSPORT_ideal;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    const struct all_reduce_cost c = cost_all_reduce(&cost, &message);
    const double between = 210 / 3.5 * 2 / 3; /* 210 us for 3.5 ranks; a third of the rank */
    assert_close(c.startup_us, 4 * 7 * 50 + 24000 / 8e3 + between, EXACT);
    assert_close(c.transfer_us, 2 * 7 / 8.0 * 24, EXACT);
    assert_close(c.hold_us, 2 * 7 / 8.0 * 24, EXACT);
    assert_close(cost_encode_us(&cost, &message) + cost_decode_us(&cost, &message) + between, 210, EXACT);
    assert_close(cost_later_us(&cost, &message), 4 * 30 - 7 + between + (210 - between) / 2, EXACT);
    message.figure = 5.5;
    assert_close(cost_encode_us(&cost, &message) + cost_decode_us(&cost, &message) + between / 2 * 5.5, 420, EXACT);
    cost_release(&cost);
}

/* By NCCL they are two all-reduces, whose algorithm it chooses. */
static void nccl_all_reduces_thin_matrices(void **state) {
    (void)state;
    struct error err;
    struct handmade f;
    struct cost cost;
    static const struct message first = {.bytes = 8000}, second = {.bytes = 16000};
    open_eight(&f, 5);
    f.cluster.runtime = (struct runtime){.message_us = 7, .way_us = 30, .powersgd_gbyte_per_s = 2};
    f.cluster.transport = TRANSPORT_nccl;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    const struct all_reduce_cost a = cost_all_reduce(&cost, &first), b = cost_all_reduce(&cost, &second),
                                 c = cost_all_reduce(&cost, &THIN);
    assert_close(c.startup_us, a.startup_us + b.startup_us + 210 / 3.5 * 2 / 3, EXACT);
    assert_close(c.transfer_us, a.transfer_us + b.transfer_us, EXACT);
    assert_close(c.hold_us, a.hold_us + b.hold_us, EXACT);
    assert_close(c.back_us, a.back_us + b.back_us, EXACT);
    assert_close(c.rest_us, a.rest_us + b.rest_us, EXACT);
    assert_close(cost_later_us(&cost, &THIN), 2 * 30 - 7 + 210 / 3.5 * (2 * 2 / 3.0 + 0.75), EXACT);
    assert_close(cost_later_us(&cost, &first), 0, 0);
    cost_release(&cost);
}

/* Each of 8 devices sends its 8000 bytes to 7 others. Then a device writes zeros and adds 8 times 1000 elements. */
static void picked_elements_of_all_devices_go_to_all(void **state) {
    (void)state;
    struct error err;
    struct handmade f;
    struct cost cost;
    struct message message = {.bytes = 8000,
                              .encoder = ENCODING_topk,
                              .figure = 0.01,
                              .encoded_bytes = 8000,
                              .unencoded_bytes = 400000,
                              .n_pieces = 1};
    open_eight(&f, 50);
    f.cluster.runtime =
        (struct runtime){.topk_gbyte_per_s = 2, .copy_gbyte_per_s = 4, .sum_gbyte_per_s = 8, .goodput = 1};
    f.cluster.transport = TRANSPORT_ideal;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    const struct all_reduce_cost c = cost_all_reduce(&cost, &message);
    assert_close(c.startup_us, 7 * 50, EXACT);
    assert_close(c.transfer_us, 7 * 8, EXACT);
    assert_close(cost_encode_us(&cost, &message), 400000 / 2e3, EXACT);
    assert_close(cost_decode_us(&cost, &message), 400000 / 4e3 + 8 * 8000 / 8e3, EXACT);
    /* One way, of which the launch is a part. */
    assert_close(cost_later_us(&cost, &message), cost_decode_us(&cost, &message), EXACT);
    message.n_pieces = 2; /* copied, each time */
    assert_close(cost_encode_us(&cost, &message), 400000 / 2e3 + 400000 / 4e3, EXACT);
    assert_close(cost_decode_us(&cost, &message), 2 * 400000 / 4e3 + 8 * 8000 / 8e3, EXACT);
    cost_release(&cost);
}

/* `later_us`: after the launch, on the processor. */
static void expect(const struct handmade *f, uint64_t bytes, uint64_t unencoded, double startup_us, double transfer_us,
                   double later_us) {
    struct error err;
    struct cost cost;
    const struct message message = {.bytes = bytes,
                                    .encoder = ENCODING_int8,
                                    .figure = 64,
                                    .encoded_bytes = bytes,
                                    .unencoded_bytes = unencoded,
                                    .n_pieces = 1};
    assert_ok(cost_init(&cost, &f->cluster, &err));
    const struct all_reduce_cost c = cost_all_reduce(&cost, &message);
    assert_close(c.startup_us, startup_us, EXACT);
    assert_close(c.transfer_us, transfer_us, EXACT);
    assert_close(c.hold_us, transfer_us, EXACT);
    assert_close(c.back_us + c.rest_us, 0, 0);
    assert_close(cost_later_us(&cost, &message), later_us, EXACT);
    cost_release(&cost);
}

/* Blocks of 64, each 256 bytes and then 68. A pass takes 0.128 us for each. */
enum { BLOCKS = 12800 };
static const double PASS_US = 0.128 * BLOCKS;

/* 8 nodes, 1000 bytes a microsecond: 7 steps each way, with 7/8 of the bytes. Then a device passes over 8 parts of an
 * eighth, and over the sum of one. */
static void an_exchange_takes_the_bytes_of_a_ring_and_two_passes_between(void **state) {
    (void)state;
    struct handmade f;
    open_eight(&f, 50);
    f.cluster.runtime.int8_gbyte_per_s = 2;
    f.cluster.transport = TRANSPORT_ideal;
    expect(&f, BLOCKS * 68, BLOCKS * 256, 2 * 7 * 50 + 9 / 8.0 * PASS_US, 2 * 7 / 8.0 * BLOCKS * 68e-3,
           17 / 8.0 * PASS_US);
    /* Three blocks on eight devices: all wait for those that have one. */
    expect(&f, 3 * 68, 3 * 256, 2 * 7 * 50 + 4 / 3.0 * 3 * 0.128, 2 * 7 * 68e-3, 7 / 3.0 * 3 * 0.128);
    f.cluster.transport = TRANSPORT_mpi;
    f.cluster.runtime.goodput = 0.5;
    f.cluster.runtime.message_us = 7; /* and so is each way */
    expect(&f, BLOCKS * 68, BLOCKS * 256, 2 * 7 * 50 + 9 / 8.0 * PASS_US, 2 * 7 / 8.0 * 2 * BLOCKS * 68e-3,
           7 + 17 / 8.0 * PASS_US);
}

/* 4 nodes of 2 devices: each device sends 6 of 8 parts out of its node, so the NIC has 12 eighths each way. A ring pays
 * its latency for two steps a node. */
static void devices_of_a_node_send_their_parts_through_one_nic(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 4);
    for (int i = 0; i < 4; i++) {
        f.nodes[i].devices = 2;
        f.nodes[i].nic_latency_us = 20;
        f.nodes[i].device_link_gbyte_per_s = 100;
    }
    handmade_number_devices(&f);
    f.cluster.runtime.int8_gbyte_per_s = 2;
    f.cluster.transport = TRANSPORT_mpi;
    f.cluster.runtime.goodput = 0.5;
    f.cluster.runtime.message_us = f.cluster.runtime.way_us = 7;
    expect(&f, BLOCKS * 68, BLOCKS * 256, 8 * 20 + 9 / 8.0 * PASS_US, 2 * 12 / 8.0 * 2 * BLOCKS * 68e-3,
           7 + 17 / 8.0 * PASS_US);
}

static void fixed_collectives_hold_for_both_ways_together_and_one_device_pays_nothing(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 4);
    handmade_number_devices(&f);
    f.cluster.runtime.int8_gbyte_per_s = 2;
    f.cluster.transport = TRANSPORT_mpi;
    handmade_fix(&f, 100, 0.01);
    expect(&f, BLOCKS * 68, BLOCKS * 256, 100 + 5 / 4.0 * PASS_US, BLOCKS * 0.68, 9 / 4.0 * PASS_US);
    handmade_cluster(&f, 1);
    handmade_number_devices(&f);
    expect(&f, BLOCKS * 68, BLOCKS * 256, 0, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_encoders_are_refused_with_the_place_and_the_reason, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_builder_that_gives_a_figure_outside_its_range_is_refused, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(an_encoder_is_written_with_its_figure_and_read_again, open_world, close_world),
        cmocka_unit_test_setup_teardown(messages_have_the_bytes_of_blocks_and_scales, open_world, close_world),
        cmocka_unit_test_setup_teardown(messages_have_the_elements_that_are_picked_and_their_places, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(messages_have_thin_matrices_and_vectors_as_they_are, open_world, close_world),
        cmocka_unit_test(a_gradient_of_any_shape_is_read_as_a_matrix),
        cmocka_unit_test(thin_matrices_are_added_one_after_the_other),
        cmocka_unit_test(nccl_all_reduces_thin_matrices),
        cmocka_unit_test(picked_elements_of_all_devices_go_to_all),
        cmocka_unit_test(parts_are_whole_blocks),
        cmocka_unit_test(an_exchange_takes_the_bytes_of_a_ring_and_two_passes_between),
        cmocka_unit_test(devices_of_a_node_send_their_parts_through_one_nic),
        cmocka_unit_test(fixed_collectives_hold_for_both_ways_together_and_one_device_pays_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
