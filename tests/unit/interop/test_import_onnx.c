/* Models from ONNX files: parameters, layers and their operations, what is refused and where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "interop/import/onnx_work.h"
#include "tests/support/check.h"
#include "tests/unit/interop/import_notes.h"
#include "tests/unit/interop/onnx_bytes.h"

/* One operation a nanosecond. */
static const struct import_settings plain = {.tflops = 1e-3};

static enum status import_file(const struct proto_bytes *file, const struct import_settings *settings,
                               struct model *out, struct error *err) {
    const struct source source = source_of_bytes("m.onnx", file);
    cJSON *json = NULL;
    enum status st = import_model(&source, NULL, settings, &notes, &json, err);
    if (!st)
        st = model_read(json, "imported", out, err);
    cJSON_Delete(json);
    return st;
}

static double forward_us(const struct model *m, const char *name) {
    for (uint32_t i = 0; i < m->n_operators; i++)
        if (!strcmp(m->operators[i].name, name))
            return m->operators[i].time_us;
    fail_msg("no operator %s", name);
    return 0;
}

static void parameters_and_layers_are_those_of_the_graph(void **state) {
    (void)state;
    struct error err;
    struct model m;
    const struct proto_bytes file = onnx_small();
    assert_ok(import_file(&file, &plain, &m, &err));
    assert_string_equal(m.name, "m-estimate");
    assert_close(m.batch_per_device, 2, 0);
    assert_int_equal(m.n_variables, 5);
    assert_int_equal(m.n_operators, 6);
    const struct variable *kernel = &m.variables[model_find_variable(&m, "c.w")];
    const uint64_t sizes[] = {4, 3, 3, 3};
    assert_memory_equal(kernel->shape, sizes, sizeof sizes);
    assert_int_equal(kernel->bytes, 2 * 108);
    assert_int_equal(m.variables[model_find_variable(&m, "g.w")].bytes, 2 * 2560);
    assert_int_equal(m.variables[model_find_variable(&m, "g.w")].dtype, DTYPE_bf16);
    assert_int_equal(m.variables[model_find_variable(&m, "g.b")].bytes, 80);
    assert_close(forward_us(&m, "c"), 2 * 27 * (2 * 4 * 8 * 8) / 1e3, 1e-12);
    assert_close(forward_us(&m, "n"), 0, 0);
    assert_close(forward_us(&m, "g"), 2 * 256 * (2 * 10) / 1e3, 1e-12);
    assert_close(m.backward_us, 2 * m.forward_us, 1e-12);
    assert_true(noted(&notes, "3 of 8 initializers are no parameters"));
    model_release(&m);
}

/* Which sizes would change with the batch is not in the file. */
static void a_fixed_batch_takes_no_other_label(void **state) {
    (void)state;
    struct error err;
    struct model m;
    const struct proto_bytes file = onnx_small();
    assert_fails(import_file(&file, &(struct import_settings){.tflops = 1e-3, .batch = 6}, &m, &err), ST_USAGE,
                 "m.onnx: its shapes are of a batch of 2 (the first size of \"x\"), which --batch cannot change; leave "
                 "--batch out, or export the file for a batch of 6");
    assert_ok(import_file(&file, &(struct import_settings){.tflops = 1e-3, .batch = 2}, &m, &err));
    assert_close(m.batch_per_device, 2, 0);
    assert_close(forward_us(&m, "c"), 2 * 27 * (2 * 4 * 8 * 8) / 1e3, 1e-12);
    model_release(&m);
}

/* x [batch, tokens, 8] times w [8, 5]. */
static struct proto_bytes product_of_names(bool shaped) {
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "MatMul", "p", "x,w", "y");
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(8, 5));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "N", SIZES(0, 7, 8));
    if (shaped)
        put_shape(&graph, ONNX_BYTES_OUTPUT, "y", "N", SIZES(0, 7, 5));
    return onnx_file(&graph);
}

static void a_batch_without_a_number_is_asked_for(void **state) {
    (void)state;
    struct error err;
    struct model m;
    for (int shaped = 0; shaped < 2; shaped++) { /* the result's shape follows from the factors' */
        const struct proto_bytes file = product_of_names(shaped);
        assert_fails(import_file(&file, &plain, &m, &err), ST_USAGE, "give --batch");
        assert_ok(import_file(&file, &(struct import_settings){.tflops = 1e-3, .batch = 3}, &m, &err));
        assert_close(forward_us(&m, "p"), 2 * 8 * 5 * 3 * 7 / 1e3, 1e-12);
        model_release(&m);
    }
    const struct proto_bytes file = product_of_names(true);
    assert_ok(import_file(&file, &(struct import_settings){.tflops = 1e-3, .batch = 2.5}, &m, &err));
    assert_close(forward_us(&m, "p"), 2 * 8 * 5 * 2.5 * 7 / 1e3, 1e-12);
    model_release(&m);
    assert_fails(import_file(&file, &(struct import_settings){.batch = 3}, &m, &err), ST_USAGE, "--tflops");
}

static void activations_of_unknown_size_take_positions(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "Transpose", "t", "w", "wt");
    put_node(&graph, "MatMul", "p", "h,wt", "y");
    put_node(&graph, "MatMul", "q", "y,y", "z");
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(5, 8));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(2, 7));
    const struct proto_bytes file = onnx_file(&graph);
    assert_fails(import_file(&file, &plain, &m, &err), ST_USAGE, "m.onnx: of 1 nodes");
    assert_ok(import_file(&file, &(struct import_settings){.tflops = 1e-3, .positions = 11}, &m, &err));
    assert_int_equal(m.n_operators, 2);
    assert_string_equal(m.variables[0].name, "w");
    assert_close(forward_us(&m, "p"), 2 * 40 * 2 * 11 / 1e3, 1e-12);
    assert_true(noted(&notes, "1 nodes with activations of unknown size"));
    assert_true(noted(&notes, "which take no time: 1"));
    model_release(&m);
}

static void put_tensor_attribute(struct proto_bytes *node, const char *name, uint64_t type) {
    struct proto_bytes attribute = {.n = 0}, tensor = {.n = 0};
    put_number(&tensor, 1, 1);
    put_number(&tensor, 2, type);
    put_message(&attribute, 5, &tensor);
    put_text(&attribute, 1, name);
    put_message(node, 5, &attribute);
}

/* `type` 0: the attribute is left out. */
static void put_constant(struct proto_bytes *graph, const char *shape, const char *output, uint64_t type) {
    struct proto_bytes node = {.n = 0};
    put_text(&node, 1, shape);
    put_text(&node, 2, output);
    put_text(&node, 4, "ConstantOfShape");
    if (type)
        put_tensor_attribute(&node, "value", type);
    put_message(graph, 1, &node);
}

/* As onnx.tools.replace_constants leaves a file: no large weights, but their shapes. */
static struct proto_bytes onnx_without_weights(bool raw) {
    struct proto_bytes graph = {.n = 0};
    put_constant(&graph, "c.w__SHAPE", "c.w", ONNX_FLOAT16);
    put_constant(&graph, "g.w__SHAPE", "g.w", 0);
    put_constant(&graph, "ids__SHAPE", "ids", ONNX_INT64);
    put_node(&graph, "Conv", "c", "x,c.w,c.b", "h1");
    put_node(&graph, "Flatten", "f", "h1", "h2");
    put_node(&graph, "Transpose", "t", "g.w", "g.w2");
    put_node(&graph, "MatMul", "g", "h2,g.w2", "y");
    put_node(&graph, "Gather", "l", "y,ids", "z");
    put_integers(&graph, "c.w__SHAPE", raw, SIZES(4, 3, 3, 3));
    put_integers(&graph, "g.w__SHAPE", raw, SIZES(300, 256));
    put_integers(&graph, "ids__SHAPE", raw, SIZES(7));
    put_initializer(&graph, "c.b", ONNX_FLOAT, SIZES(4));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(2, 3, 8, 8));
    put_shape(&graph, ONNX_BYTES_INFO, "h1", "", SIZES(2, 4, 8, 8));
    put_shape(&graph, ONNX_BYTES_OUTPUT, "y", "", SIZES(2, 300));
    return onnx_file(&graph);
}

static void weights_may_be_constants_of_stored_shapes(void **state) {
    (void)state;
    struct error err;
    struct model m;
    for (int raw = 0; raw < 2; raw++) {
        const struct proto_bytes file = onnx_without_weights(raw);
        assert_ok(import_file(&file, &plain, &m, &err));
        assert_int_equal(m.n_variables, 3);
        const struct variable *kernel = &m.variables[model_find_variable(&m, "c.w")];
        const uint64_t sizes[] = {4, 3, 3, 3};
        assert_int_equal(kernel->rank, 4);
        assert_memory_equal(kernel->shape, sizes, sizeof sizes);
        assert_int_equal(kernel->bytes, 2 * 108);
        assert_int_equal(m.variables[model_find_variable(&m, "g.w")].bytes, 4 * 300 * 256);
        assert_int_equal(m.variables[model_find_variable(&m, "c.b")].bytes, 16);
        assert_close(forward_us(&m, "c"), 2 * 27 * (2 * 4 * 8 * 8) / 1e3, 1e-12);
        assert_close(forward_us(&m, "g"), 2 * 256 * (2 * 300) / 1e3, 1e-12);
        assert_true(noted(&notes, "m.onnx: 2 of 3 parameters are a ConstantOfShape: their shapes are there"));
        model_release(&m);
    }
}

/* A shape that is computed tells nothing, and a recurrent layer's initial state is no parameter. */
static void other_constants_of_shape_are_no_weights(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "Shape", "", "x", "s");
    put_constant(&graph, "s", "computed", 0);
    put_constant(&graph, "h.s", "h0", 0);
    put_node(&graph, "Add", "a", "x,computed", "x2");
    put_node(&graph, "RNN", "r", "x2,w,r,,,h0", "y");
    put_integers(&graph, "h.s", true, SIZES(1, 3, 5));
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(1, 5, 12));
    put_initializer(&graph, "r", ONNX_FLOAT, SIZES(1, 5, 5));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(7, 3, 12));
    put_shape(&graph, ONNX_BYTES_INFO, "x2", "", SIZES(7, 3, 12));
    const struct proto_bytes file = onnx_file(&graph);
    assert_ok(import_file(&file, &plain, &m, &err));
    assert_int_equal(m.n_variables, 2);
    assert_close(forward_us(&m, "r"), 2.0 * 7 * 3 * (60 + 25) / 1e3, 1e-12);
    assert_false(noted(&notes, "ConstantOfShape"));
    model_release(&m);
}

static void products_whose_sizes_nobody_tells_make_no_model(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "Conv", "c", "x,w", "h"); /* w comes from nowhere */
    put_node(&graph, "Add", "a", "h,b", "y");
    put_initializer(&graph, "b", ONNX_FLOAT, SIZES(896));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(2, 3, 8, 8));
    const struct proto_bytes file = onnx_file(&graph);
    assert_fails(import_file(&file, &plain, &m, &err), ST_INVALID,
                 "m.onnx: byte 0: of none of 1 products the file tells the sizes, so all times would be 0");
}

/* A tensor with a type and no shape is of unknown size; one with a shape of no sizes is a number. */
static void a_tensor_without_a_shape_is_no_number(void **state) {
    (void)state;
    struct error err;
    struct model m;
    for (int shaped = 0; shaped < 2; shaped++) {
        struct proto_bytes graph = {.n = 0}, tensor = {.n = 0}, type = {.n = 0}, info = {.n = 0}, shape = {.n = 0};
        put_node(&graph, "MatMul", "p", "h,w", "y");
        put_initializer(&graph, "w", ONNX_FLOAT, SIZES(5, 8));
        put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(2, 7));
        put_number(&tensor, 1, ONNX_FLOAT);
        if (shaped)
            put_message(&tensor, 2, &shape);
        put_message(&type, 1, &tensor);
        put_text(&info, 1, "y");
        put_message(&info, 2, &type);
        put_message(&graph, ONNX_BYTES_INFO, &info);
        const struct proto_bytes file = onnx_file(&graph);
        if (shaped) {
            assert_ok(import_file(&file, &plain, &m, &err));
            assert_close(forward_us(&m, "p"), 2 * 5 / 1e3, 1e-12);
            model_release(&m);
        } else {
            assert_fails(import_file(&file, &plain, &m, &err), ST_USAGE, "m.onnx: of 1 nodes the file does not tell");
        }
    }
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "MatMul", "p", "h,w", "y");
    put_initializer(&graph, "w", 0, SIZES(5, 8));
    const struct proto_bytes file = onnx_file(&graph);
    assert_fails(import_file(&file, &plain, &m, &err), ST_INVALID, "an initializer without a type");
}

static void a_shared_parameter_belongs_to_its_first_reader(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "Gather", "", "emb,ids", "h");
    put_node(&graph, "Transpose", "", "emb", "t");
    put_node(&graph, "MatMul", "", "h,t", "y");
    put_node(&graph, "MatMul", "", "y,v", "z");
    put_initializer(&graph, "emb", ONNX_FLOAT, SIZES(50, 8));
    put_initializer(&graph, "v", ONNX_FLOAT, SIZES(50, 2));
    put_shape(&graph, ONNX_BYTES_INPUT, "ids", "", SIZES(4, 6));
    put_shape(&graph, ONNX_BYTES_INFO, "h", "", SIZES(4, 6, 8));
    put_shape(&graph, ONNX_BYTES_INFO, "y", "", SIZES(4, 6, 50));
    const struct proto_bytes file = onnx_file(&graph);
    assert_ok(import_file(&file, &plain, &m, &err));
    assert_int_equal(m.n_operators, 6);
    assert_string_equal(m.operators[m.order[0]].name, "Gather #1");
    assert_int_equal(m.operators[m.order[0]].n_reads, 1);
    assert_close(forward_us(&m, "Gather #1"), 0, 0);
    assert_close(forward_us(&m, "MatMul #2"), 2 * 8 * (4 * 6 * 50) / 1e3, 1e-12);
    assert_string_equal(m.variables[m.operators[m.order[5]].produces[0]].name, "emb");
    model_release(&m);
}

/* ---- operations, by counting them ---- */

static struct onnx_value tensor_of(size_t rank, const uint64_t *sizes) {
    struct onnx_value value = {.name = "v", .sized = true, .elements = 1, .shape = {.rank = (uint32_t)rank}};
    for (size_t i = 0; i < rank; i++) {
        value.shape.sizes[i] = sizes[i];
        value.elements *= (double)sizes[i];
    }
    return value;
}

static double work(const char *type, struct onnx_value *a, struct onnx_value *b, struct onnx_value *out) {
    struct onnx_value *inputs[] = {a, b}, *outputs[] = {out};
    return onnx_work(&(struct onnx_node){
        .type = type, .domain = "", .n_inputs = 2, .n_outputs = 1, .inputs = inputs, .outputs = outputs});
}

/* Every multiplication of a convolution without padding, one by one. */
static double count_convolution(uint64_t batch, uint64_t in, uint64_t out, uint64_t groups, uint64_t side,
                                uint64_t kernel, uint64_t stride) {
    double n = 0;
    for (uint64_t s = 0; s < batch; s++)
        for (uint64_t o = 0; o < out; o++)
            for (uint64_t y = 0; y + kernel <= side; y += stride)
                for (uint64_t x = 0; x + kernel <= side; x += stride)
                    for (uint64_t i = 0; i < in / groups; i++)
                        for (uint64_t k = 0; k < kernel * kernel; k++)
                            n += 2;
    return n;
}

static void convolutions_need_what_counting_finds(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 200; i++) {
        const uint64_t groups = 1 + rng_below(&rng, 2), in = groups * (1 + rng_below(&rng, 3));
        const uint64_t out = groups * (1 + rng_below(&rng, 3)), batch = 1 + rng_below(&rng, 3);
        const uint64_t kernel = 1 + rng_below(&rng, 3), stride = 1 + rng_below(&rng, 2);
        const uint64_t side = kernel + rng_below(&rng, 6), places = (side - kernel) / stride + 1;
        struct onnx_value x = tensor_of(4, (const uint64_t[]){batch, in, side, side});
        struct onnx_value w = tensor_of(4, (const uint64_t[]){out, in / groups, kernel, kernel});
        struct onnx_value y = tensor_of(4, (const uint64_t[]){batch, out, places, places});
        const double counted = count_convolution(batch, in, out, groups, side, kernel, stride);
        assert_close(work("Conv", &x, &w, &y), counted, 0);
        /* Transposed, the same places are the input's. */
        struct onnx_value v = tensor_of(4, (const uint64_t[]){out, in / groups, kernel, kernel});
        assert_close(work("ConvTranspose", &y, &v, NULL), counted, 0);
    }
}

static void products_need_what_counting_finds(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed() + 1);
    for (int i = 0; i < 200; i++) {
        const uint64_t heads = 1 + rng_below(&rng, 4), m = 1 + rng_below(&rng, 9), k = 1 + rng_below(&rng, 9);
        const uint64_t n = 1 + rng_below(&rng, 9);
        struct onnx_value a = tensor_of(3, (const uint64_t[]){heads, m, k}), b = tensor_of(2, (const uint64_t[]){k, n});
        struct onnx_value c = tensor_of(3, (const uint64_t[]){heads, m, n});
        struct onnx_value bs = tensor_of(3, (const uint64_t[]){heads, k, n});
        struct onnx_value unknown = {.name = "u"};
        const double counted = 2.0 * (double)(heads * m * n * k);
        assert_close(work("MatMul", &a, &b, &c), counted, 0);
        assert_close(work("MatMul", &a, &bs, &c), counted, 0);
        assert_close(work("MatMul", &a, &b, &unknown), counted, 1e-12);
        assert_close(work("MatMul", &unknown, &b, &c), counted, 0);
        assert_true(isnan(work("MatMul", &unknown, &b, &unknown)));
        struct onnx_value a2 = tensor_of(2, (const uint64_t[]){m, k}), bt = tensor_of(2, (const uint64_t[]){n, k});
        struct onnx_value c2 = tensor_of(2, (const uint64_t[]){m, n});
        assert_close(work("Gemm", &a2, &bt, &c2), 2.0 * (double)(m * n * k), 1e-12);
        assert_close(work("Gemm", &a2, &bt, NULL), 2.0 * (double)(m * n * k), 1e-12);
        assert_close(work("Relu", &a2, &bt, &c2), 0, 0);
    }
}

/* A quantized kind has scales between its factors; a fused one may turn them. */
static void fused_and_quantized_kinds_need_what_the_plain_one_does(void **state) {
    (void)state;
    struct onnx_value a = tensor_of(3, (const uint64_t[]){2, 3, 5}), turned = tensor_of(3, (const uint64_t[]){2, 5, 3});
    struct onnx_value b = tensor_of(2, (const uint64_t[]){5, 7}), c = tensor_of(3, (const uint64_t[]){2, 3, 7});
    struct onnx_value scale = tensor_of(0, NULL);
    struct onnx_value *inputs[] = {&a, &scale, &scale, &b, &scale, &scale, &scale, &scale}, *outputs[] = {&c};
    struct onnx_node node = {.type = "QLinearMatMul", .domain = "", .n_inputs = 8, .n_outputs = 1};
    node.inputs = inputs;
    node.outputs = outputs;
    assert_close(onnx_work(&node), 2 * 2 * 3 * 5 * 7, 0);
    assert_close(work("MatMulInteger", &a, &b, &c), 2 * 2 * 3 * 5 * 7, 0);
    inputs[0] = &turned;
    inputs[1] = &b;
    node.type = "FusedMatMul";
    node.n_inputs = 2;
    node.transposed[0] = true;
    assert_close(onnx_work(&node), 2 * 2 * 3 * 5 * 7, 0);
    outputs[0] = NULL;
    assert_close(onnx_work(&node), 2 * 2 * 3 * 5 * 7, 1e-12);

    struct onnx_value x = tensor_of(4, (const uint64_t[]){2, 3, 6, 6}),
                      w = tensor_of(4, (const uint64_t[]){4, 3, 3, 3});
    struct onnx_value y = tensor_of(4, (const uint64_t[]){2, 4, 4, 4});
    assert_close(work("ConvInteger", &x, &w, &y), work("Conv", &x, &w, &y), 0);
    node = (struct onnx_node){.type = "QLinearConv", .domain = "", .n_inputs = 8, .n_outputs = 1};
    node.inputs = (struct onnx_value *[]){&x, &scale, &scale, &w, &scale, &scale, &scale, &scale};
    node.outputs = (struct onnx_value *[]){&y};
    assert_close(onnx_work(&node), work("Conv", &x, &w, &y), 0);
}

/* Heads in an axis of their own, or in the last one. */
static void attention_needs_what_its_two_products_do(void **state) {
    (void)state;
    const double products = 2 * (2 * 3 * 5 * 7 * 4) + 2 * (2 * 3 * 5 * 7 * 6);
    struct onnx_value q = tensor_of(4, (const uint64_t[]){2, 3, 5, 4}),
                      k = tensor_of(4, (const uint64_t[]){2, 3, 7, 4});
    struct onnx_value y = tensor_of(4, (const uint64_t[]){2, 3, 5, 6});
    assert_close(work("Attention", &q, &k, &y), products, 0);
    q = tensor_of(3, (const uint64_t[]){2, 5, 12});
    k = tensor_of(3, (const uint64_t[]){2, 7, 12});
    y = tensor_of(3, (const uint64_t[]){2, 5, 18});
    assert_close(work("MultiHeadAttention", &q, &k, &y), products, 0);
    const struct onnx_node other = {.type = "Attention", .domain = "com.microsoft"};
    assert_false(onnx_is_known(&other));
}

static double einsum(const char *equation, size_t n, struct onnx_value **inputs, struct onnx_value *out) {
    return onnx_work(&(struct onnx_node){.type = "Einsum",
                                         .domain = "",
                                         .equation = equation,
                                         .n_inputs = n,
                                         .n_outputs = 1,
                                         .inputs = inputs,
                                         .outputs = (struct onnx_value *[]){out}});
}

/* Two tensors of random letters, a random part of which the result keeps: every combination of the letters that matter
 * is visited, one by one. */
static void einsum_needs_what_counting_finds(void **state) {
    (void)state;
    enum { LETTERS = 5 };
    struct rng rng;
    rng_seed(&rng, test_seed() + 2);
    for (int i = 0; i < 500; i++) {
        uint64_t sizes[LETTERS], shape[2][LETTERS];
        char equation[32] = "", result[LETTERS + 1] = "";
        size_t rank[2] = {0}, n_result = 0, combinations = 1, counted = 0;
        bool summed = false;
        for (size_t l = 0; l < LETTERS; l++)
            sizes[l] = 1 + rng_below(&rng, 4);
        uint64_t in[2] = {rng_below(&rng, 1 << LETTERS), rng_below(&rng, 1 << LETTERS)}, kept = rng_below(&rng, 32);
        for (size_t t = 0, at = 0; t < 2; t++) {
            for (size_t l = 0; l < LETTERS; l++)
                if (in[t] >> l & 1) {
                    shape[t][rank[t]++] = sizes[l];
                    equation[at++] = (char)('a' + l);
                }
            equation[at++] = t ? 0 : ',';
        }
        for (size_t l = 0; l < LETTERS; l++) {
            const bool both = in[0] >> l & in[1] >> l & 1, any = (in[0] | in[1]) >> l & 1, stays = any && kept >> l & 1;
            summed = summed || (both && !stays);
            combinations *= both || stays ? sizes[l] : 1;
            if (stays)
                result[n_result++] = (char)('a' + l);
        }
        for (size_t k = 0; summed && k < combinations; k++)
            counted += 2; /* a product and its sum */
        strcat(strcat(equation, "->"), result);
        struct onnx_value a = tensor_of(rank[0], shape[0]), b = tensor_of(rank[1], shape[1]);
        assert_close(einsum(equation, 2, (struct onnx_value *[]){&a, &b}, NULL), (double)counted, 0);
    }
}

static void einsum_reads_every_form_of_equation(void **state) {
    (void)state;
    struct onnx_value ij = tensor_of(2, (const uint64_t[]){2, 3}), jk = tensor_of(2, (const uint64_t[]){3, 5});
    struct onnx_value kl = tensor_of(2, (const uint64_t[]){5, 7}), ik = tensor_of(2, (const uint64_t[]){2, 5});
    struct onnx_value xij = tensor_of(4, (const uint64_t[]){4, 6, 2, 3}),
                      one = tensor_of(3, (const uint64_t[]){1, 3, 5});
    struct onnx_value unknown = {.name = "u"};
    struct onnx_value *pair[] = {&ij, &jk}, *three[] = {&ij, &jk, &kl}, *batches[] = {&xij, &one};
    assert_close(einsum("ij,jk->ik", 2, pair, NULL), 2 * 2 * 3 * 5, 0);
    assert_close(einsum(" i j , j k ", 2, pair, NULL), 2 * 2 * 3 * 5, 0);
    assert_close(einsum("Ij,jK", 2, pair, NULL), 2 * 2 * 3 * 5, 0);
    assert_close(einsum("ij,jk,kl->il", 3, three, NULL), 2 * 2 * 3 * 5 + 2 * 2 * 5 * 7, 0);
    assert_close(einsum("...ij,...jk->...ik", 2, batches, NULL), 2 * 4 * 6 * 2 * 3 * 5, 0);
    assert_close(einsum("...ij,...jk", 2, batches, NULL), 2 * 4 * 6 * 2 * 3 * 5, 0);
    assert_close(einsum("ij->ji", 1, pair, NULL), 0, 0);
    assert_close(einsum("ij,jk->ijk", 2, pair, NULL), 0, 0);
    pair[1] = &unknown; /* what one tensor does not tell, the result may */
    assert_true(isnan(einsum("ij,jk->ik", 2, pair, NULL)));
    assert_close(einsum("ij,jk->ik", 2, pair, &ik), 2 * 2 * 3 * 5, 0);
    static const char *const bad[] = {"",         "ij",        "ij,jk,kl->il", "ij,jkl->il",
                                      "ij,j1->i", "i..,jk->i", "i...j...,jk",  "ij,jk->abcdefghi"};
    pair[1] = &jk;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(isnan(einsum(bad[i], 2, pair, NULL)));
    assert_true(isnan(einsum(NULL, 2, pair, NULL)));
}

static void put_attribute_text(struct proto_bytes *node, const char *name, const char *text) {
    struct proto_bytes attribute = {.n = 0};
    put_text(&attribute, 4, text); /* before its name, as a writer may */
    put_text(&attribute, 1, name);
    put_message(node, 5, &attribute);
}

static void kinds_that_are_not_known_are_named(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0}, node = {.n = 0};
    put_text(&node, 1, "x");
    put_text(&node, 1, "w");
    put_text(&node, 2, "y");
    put_text(&node, 3, "e");
    put_text(&node, 4, "Einsum");
    put_attribute_text(&node, "equation", "bi,oi->bo");
    put_message(&graph, 1, &node);
    put_node(&graph, "Relu", "r", "y", "z");
    put_node(&graph, "Turbo", "t", "z", "u");
    put_node(&graph, "Turbo", "t2", "u", "v");
    put_node(&graph, "Ad", "a", "v", "v2"); /* a part of a known word */
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(5, 8));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(3, 8));
    const struct proto_bytes file = onnx_file(&graph);
    assert_ok(import_file(&file, &plain, &m, &err));
    assert_close(forward_us(&m, "e"), 2 * 3 * 5 * 8 / 1e3, 1e-12);
    assert_true(noted(&notes, "m.onnx: 3 of 5 nodes are of kinds that are not known here and take no time: Ad (1), "
                              "Turbo (2)"));
    model_release(&m);
}

/* ---- files over what is read ---- */

static void data_of_gigabytes_is_passed_over(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct source source;
    cJSON *json;
    const uint64_t hole = UINT64_C(3) << 30;
    struct proto_bytes node = {.n = 0}, head = {.n = 0}, tail = {.n = 0}, tensor = {.n = 0}, file = {.n = 0};
    put_node(&node, "Gemm", "g", "x,w", "y");
    put_number(&tensor, 1, 32768);
    put_number(&tensor, 1, 24576);
    put_number(&tensor, 2, ONNX_FLOAT);
    put_text(&tensor, 8, "w");
    put_raw_varint(&tensor, 9 << 3 | 2);
    put_raw_varint(&tensor, hole);
    put_raw_varint(&head, 5 << 3 | 2);
    put_raw_varint(&head, tensor.n + hole);
    put_shape(&tail, ONNX_BYTES_INPUT, "x", "", SIZES(2, 24576));
    put_shape(&tail, ONNX_BYTES_OUTPUT, "y", "", SIZES(2, 32768));
    put_number(&file, 1, 8);
    put_raw_varint(&file, 7 << 3 | 2);
    put_raw_varint(&file, node.n + head.n + tensor.n + hole + tail.n);
    char path[300];
    snprintf(path, sizeof path, "%s/large.onnx", test_dir());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    const struct proto_bytes *const parts[] = {&file, &node, &head, &tensor};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_int_equal(fwrite(parts[i]->data, 1, parts[i]->n, f), parts[i]->n);
    assert_int_equal(fseeko(f, (off_t)hole, SEEK_CUR), 0);
    assert_int_equal(fwrite(tail.data, 1, tail.n, f), tail.n);
    assert_int_equal(fclose(f), 0);
    assert_ok(source_read(path, &arena, &source, &err));
    assert_true(source.cut);
    assert_ok(import_model(&source, NULL, &plain, &notes, &json, &err));
    assert_ok(model_read(json, "m", &m, &err));
    assert_int_equal(m.bytes, hole);
    assert_close(forward_us(&m, "g"), 2.0 * 2 * 24576 * 32768 / 1e3, 1e-12);
    model_release(&m);
    cJSON_Delete(json);
    source.name = "standard input";
    assert_fails(import_model(&source, NULL, &plain, &notes, &json, &err), ST_TOO_LARGE, "give it as a file");
    unlink(path);
}

/* ---- malformed ---- */

/* In memory of exactly its length, so that a sanitizer sees one byte too far. */
static enum status import_exactly(const char *data, size_t n, struct error *err) {
    char *copy = malloc(n ? n : 1);
    cJSON *json = NULL;
    assert_non_null(copy);
    memcpy(copy, data, n);
    const struct source source = {.name = "m.onnx", .text = copy, .n = n};
    struct arena own = {0};
    struct notes own_notes = {.arena = &own};
    enum status st =
        import_model(&source, "onnx", &(struct import_settings){.tflops = 1e-3, .batch = 2}, &own_notes, &json, err);
    cJSON_Delete(json);
    arena_release(&own);
    free(copy);
    return st;
}

static void every_beginning_of_a_file_is_refused(void **state) {
    (void)state;
    struct error err;
    const struct proto_bytes file = onnx_small();
    for (size_t n = 0; n < file.n; n++)
        assert_fails(import_exactly(file.data, n, &err), ST_INVALID, "m.onnx: byte ");
}

static void every_wrong_byte_is_read_or_refused(void **state) {
    (void)state;
    struct proto_bytes file = onnx_small();
    static const unsigned char values[] = {0, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < file.n; i++) {
        const char was = file.data[i];
        for (size_t v = 0; v < sizeof values; v++) {
            struct error err = {0};
            file.data[i] = (char)values[v];
            const enum status st = import_exactly(file.data, file.n, &err);
            assert_true(!st || st == ST_USAGE || (st == ST_INVALID && !strncmp(ERROR_TEXT(&err), "m.onnx: ", 8)));
        }
        file.data[i] = was;
    }
}

static void refused(const struct proto_bytes *graph, const char *part) {
    struct error err;
    const struct proto_bytes file = onnx_file(graph);
    assert_fails(import_exactly(file.data, file.n, &err), ST_INVALID, part);
}

static void bad_graphs_are_refused_with_their_place(void **state) {
    (void)state;
    struct proto_bytes graph = {.n = 0};
    refused(&graph, "no node reads an initializer of floating-point numbers");
    struct proto_bytes body = {.n = 0}, attribute = {.n = 0}, loop = {.n = 0};
    put_initializer(&body, "w", ONNX_FLOAT, SIZES(4));
    put_text(&attribute, 1, "body");
    put_message(&attribute, 6, &body);
    put_text(&loop, 4, "Loop");
    put_message(&loop, 5, &attribute);
    put_message(&graph, 1, &loop);
    refused(&graph, "; graphs and functions inside are not looked into: inline them");
    graph.n = 0;
    put_number(&graph, 1, 5);
    refused(&graph, "m.onnx: byte 10: field 1 is of wire type 0, not 2");
    graph.n = 0;
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(4));
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(4));
    refused(&graph, "initializer \"w\" again; it stands at byte 10");
    graph.n = 0;
    put_initializer(&graph, "", ONNX_FLOAT, SIZES(4));
    refused(&graph, "m.onnx: byte 10: an initializer without a name");
    graph.n = 0;
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(1, 1, 1, 1, 1, 1, 1, 1, 1));
    refused(&graph, "\"w\" has 9 axes");
    graph.n = 0;
    put_data(&graph, 5, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01\x42\x01w", 16);
    refused(&graph, "size 0 of tensor \"w\" is out of range");
    graph.n = 0;
    put_data(&graph, 5, "\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
    refused(&graph, "m.onnx: byte 12: field 8 has 9223372036854775807 bytes where 0 are left");
    graph.n = 0;
    put_data(&graph, 5, "\x42\x02\xff\xfe", 4);
    refused(&graph, "m.onnx: byte 12: field 8 is not UTF-8 text");
    graph.n = 0;
    put_data(&graph, 5, "\x42\x02w\n", 4);
    refused(&graph, "m.onnx: byte 12: field 8 is a name with control characters");
    graph.n = 0;
    put_data(&graph, 1, "\x0b", 1);
    refused(&graph, "m.onnx: byte 12: there is no wire type 3");
    graph.n = 0;
    put_data(&graph, 1, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
    refused(&graph, "m.onnx: byte 12: field 1 ends early");
}

/* A shape inside a type inside a type ... 500 deep: sequences have no shape, so nothing goes down. */
static void deep_types_are_passed_over(void **state) {
    (void)state;
    struct error err;
    struct model m;
    struct proto_bytes graph = {.n = 0}, type = {.n = 0}, info = {.n = 0};
    for (int i = 0; i < 500; i++) {
        struct proto_bytes outer = {.n = 0};
        put_message(&outer, 4, &type);
        type = outer;
    }
    put_text(&info, 1, "x");
    put_message(&info, 2, &type);
    put_message(&graph, ONNX_BYTES_INPUT, &info);
    put_node(&graph, "Add", "a", "x,w", "a"); /* its own output as well: no loop is run into */
    put_node(&graph, "Identity", "i", "i", "i");
    put_initializer(&graph, "w", ONNX_FLOAT, SIZES(4));
    const struct proto_bytes file = onnx_file(&graph);
    assert_ok(import_file(&file, &(struct import_settings){.tflops = 1, .batch = 1}, &m, &err));
    assert_int_equal(m.n_variables, 1);
    model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_NOTES(parameters_and_layers_are_those_of_the_graph),
        WITH_NOTES(a_fixed_batch_takes_no_other_label),
        WITH_NOTES(a_batch_without_a_number_is_asked_for),
        WITH_NOTES(activations_of_unknown_size_take_positions),
        WITH_NOTES(weights_may_be_constants_of_stored_shapes),
        WITH_NOTES(other_constants_of_shape_are_no_weights),
        WITH_NOTES(products_whose_sizes_nobody_tells_make_no_model),
        WITH_NOTES(a_tensor_without_a_shape_is_no_number),
        WITH_NOTES(a_shared_parameter_belongs_to_its_first_reader),
        WITH_NOTES(convolutions_need_what_counting_finds),
        WITH_NOTES(products_need_what_counting_finds),
        WITH_NOTES(fused_and_quantized_kinds_need_what_the_plain_one_does),
        WITH_NOTES(attention_needs_what_its_two_products_do),
        WITH_NOTES(einsum_needs_what_counting_finds),
        WITH_NOTES(einsum_reads_every_form_of_equation),
        WITH_NOTES(kinds_that_are_not_known_are_named),
        WITH_NOTES(data_of_gigabytes_is_passed_over),
        WITH_NOTES(every_beginning_of_a_file_is_refused),
        WITH_NOTES(every_wrong_byte_is_read_or_refused),
        WITH_NOTES(bad_graphs_are_refused_with_their_place),
        WITH_NOTES(deep_types_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
