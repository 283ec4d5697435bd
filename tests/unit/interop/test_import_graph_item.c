/* Models from AutoDist's GraphItem: which variables are trained, their shapes and types, what is refused and where. */
#include <stdlib.h>

#include "tests/support/check.h"
#include "tests/unit/interop/graph_item_bytes.h"
#include "tests/unit/interop/imports.h"

static const struct import_settings settings = {.batch = 4, .positions = 10, .tflops = 1e-3};

/* In memory of exactly its length, so that a sanitizer sees one byte too far. */
static enum status import_bytes(const struct proto_bytes *item, size_t n, const struct import_settings *with,
                                struct model *out, struct error *err) {
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    cJSON *json = NULL;
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, item->data, n);
    const struct source source = {.name = "item", .text = copy, .n = n};
    enum status st = import_model(&source, "graph-item", with, &notes, &json, err);
    if (!st)
        st = model_read(json, "imported", out, err);
    cJSON_Delete(json);
    arena_release(&arena);
    free(copy);
    return st;
}

static void variables_with_gradients_are_trained(void **state) {
    (void)state;
    struct error err;
    struct model m;
    const struct proto_bytes item = graph_item_small();
    assert_ok(import_bytes(&item, item.n, &settings, &m, &err));
    assert_string_equal(m.name, "item-estimate");
    assert_int_equal(m.n_variables, 4);
    assert_int_equal(m.n_operators, 6);
    static const struct {
        const char *name;
        uint64_t bytes;
    } variables[] = {{"table", 4 * 50 * 8}, {"a/w", 2 * 8 * 16}, {"a/b", 2 * 16}, {"b/w", 2 * 16 * 4}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(m.variables[i].name, variables[i].name);
        assert_int_equal(m.variables[i].bytes, variables[i].bytes);
    }
    assert_int_equal(m.variables[1].dtype, DTYPE_f16);
    assert_int_equal(m.variables[3].dtype, DTYPE_bf16);
    assert_close(m.operators[m.order[0]].time_us, 0, 0); /* rows are looked up */
    assert_close(m.operators[m.order[1]].time_us, 2 * 8 * 16 * 4 * 10 / 1e3, 1e-12);
    assert_int_equal(m.operators[m.order[1]].n_reads, 2);
    model_release(&m);
}

static void an_attribute_may_stand_before_its_name(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0};
    put_variable_as(&graph, VALUE_FIRST, "w", "VarHandleOp", TENSORFLOW_HALF, (const int[]){8, 16, -1});
    struct proto_bytes item = graph_item(&graph);
    put_pair(&item, "g:0", "w:0");
    assert_ok(import_bytes(&item, item.n, &settings, &m, &err));
    assert_int_equal(m.variables[0].dtype, DTYPE_f16);
    assert_int_equal(m.variables[0].rank, 2);
    assert_int_equal(m.bytes, 2 * 8 * 16);
    model_release(&m);
}

static void its_contents_tell_the_kind(void **state) {
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    cJSON *json;
    const struct proto_bytes item = graph_item_small();
    const struct source source = source_of_bytes("item", &item);
    assert_ok(import_model(&source, NULL, &settings, &notes, &json, &err));
    cJSON_Delete(json);
    assert_fails(import_model(&source, NULL, &(struct import_settings){.batch = 1}, &notes, &json, &err), ST_USAGE,
                 "--tflops");
    arena_release(&arena);
}

static void refused(const struct proto_bytes *item, const char *part) {
    struct error err;
    struct model m;
    assert_fails(import_bytes(item, item->n, &settings, &m, &err), ST_INVALID, part);
}

static void bad_items_are_refused_with_their_place(void **state) {
    (void)state;
    struct proto_bytes graph = {.n = 0}, item = {.n = 0};
    refused(&item, "item: byte 0: no gradients in it");
    put_pair(&item, "g:0", "w:0");
    refused(&item, "a gradient is for \"w\", which no node makes");
    put_variable(&graph, "w", "VarHandleOp", 3, (const int[]){4, -1});
    item = graph_item(&graph);
    put_pair(&item, "g:0", "w:0");
    refused(&item, "item: byte 45: variable \"w\" is of TensorFlow's type 3");
    graph.n = 0;
    put_variable(&graph, "w", "VarHandleOp", TENSORFLOW_FLOAT, (const int[]){4, 0, -1});
    item = graph_item(&graph);
    put_pair(&item, "g:0", "w:0");
    refused(&item, "size 1 of variable \"w\" is not known");
    graph.n = 0;
    put_variable(&graph, "w", "VarHandleOp", TENSORFLOW_FLOAT, (const int[]){1, 1, 1, 1, 1, 1, 1, 1, 1, -1});
    item = graph_item(&graph);
    put_pair(&item, "g:0", "w:0");
    refused(&item, "more than 8 axes");
}

static void two_gradients_of_a_variable_are_one(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes item = graph_item_small();
    put_pair(&item, "again:0", "a/w:0");
    assert_ok(import_bytes(&item, item.n, &settings, &m, &err));
    assert_int_equal(m.n_variables, 4);
    model_release(&m);
}

/* The pairs stand behind the graph, so that a beginning may be whole: then it has fewer variables. */
static void every_beginning_is_refused_or_has_fewer_variables(void **state) {
    (void)state;
    const struct proto_bytes item = graph_item_small();
    uint32_t last = 0;
    for (size_t n = 0; n < item.n; n++) {
        struct error err = {0};
        struct model m;
        enum status st = import_bytes(&item, n, &settings, &m, &err);
        if (st) {
            assert_int_equal(st, ST_INVALID);
            assert_int_equal(strncmp(ERROR_TEXT(&err), "item: byte ", 11), 0);
            continue;
        }
        assert_int_equal(m.n_variables, ++last);
        model_release(&m);
    }
    assert_int_equal(last, 3);
}

static void every_wrong_byte_is_read_or_refused(void **state) {
    (void)state;
    struct proto_bytes item = graph_item_small();
    for (size_t i = 0; i < item.n; i++) {
        const char was = item.data[i];
        for (unsigned x = 0; x < 256; x += 51) {
            struct error err = {0};
            struct model m;
            item.data[i] = (char)x;
            const enum status st = import_bytes(&item, item.n, &settings, &m, &err);
            assert_true(!st || (st == ST_INVALID && !strncmp(ERROR_TEXT(&err), "item: ", 6)));
            if (!st)
                model_release(&m);
        }
        item.data[i] = was;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_with_gradients_are_trained),
        cmocka_unit_test(an_attribute_may_stand_before_its_name),
        cmocka_unit_test(its_contents_tell_the_kind),
        cmocka_unit_test(bad_items_are_refused_with_their_place),
        cmocka_unit_test(two_gradients_of_a_variable_are_one),
        cmocka_unit_test(every_beginning_is_refused_or_has_fewer_variables),
        cmocka_unit_test(every_wrong_byte_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
