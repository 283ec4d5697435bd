/* See onnx_work.h. A product of matrices takes 2 operations an element of the result and of the axis that is summed
 * over; a convolution is such a product at every place of its result (a transposed one: of its input), a recurrent
 * layer one at every step of its sequence. All else (activations, normalization, sums, look-ups) is limited by memory
 * and takes little beside these; it counts as 0. Source: the operators' definitions in ONNX's Operators.md. */
#include "strategy/import/onnx_work.h"

#include <math.h>
#include <string.h>

/* The tensor of input i as its shape is known; NULL: none. */
static const struct onnx_value *sized_input(const struct onnx_node *node, size_t i) {
    const struct onnx_value *value = i < node->n_inputs ? node->inputs[i] : NULL;
    return value && value->sized ? value : NULL;
}

static const struct onnx_value *sized_output(const struct onnx_node *node) {
    const struct onnx_value *value = node->n_outputs ? node->outputs[0] : NULL;
    return value && value->sized ? value : NULL;
}

/* Size of an axis counted from the last one, 0 when there is none. */
static double size_from_end(const struct onnx_value *value, uint32_t back) {
    return value && value->shape.rank > back ? (double)value->shape.sizes[value->shape.rank - 1 - back] : 0;
}

/* A convolution's kernel at one place: all elements but those of the axis of results (of inputs, transposed). */
static double convolution(const struct onnx_node *node, const struct onnx_value *places) {
    const struct onnx_value *kernel = sized_input(node, 1);
    if (!kernel || !kernel->shape.rank || !kernel->shape.sizes[0] || !places)
        return NAN;
    return 2 * places->elements * kernel->elements / (double)kernel->shape.sizes[0];
}

static double matrix_product(const struct onnx_node *node) {
    const struct onnx_value *a = sized_input(node, 0), *b = sized_input(node, 1), *out = sized_output(node);
    const double summed = a && a->shape.rank ? size_from_end(a, 0) : b ? size_from_end(b, b->shape.rank > 1) : 0;
    if (summed <= 0)
        return NAN;
    if (out)
        return 2 * out->elements * summed;
    /* Without the result's shape: each row of a with each column of a b of two axes. */
    return a && b && b->shape.rank <= 2 ? 2 * a->elements * (b->elements / summed) : NAN;
}

/* y = a b + c, where either may be transposed: the summed axis is what the weights have beside the result's. */
static double general_product(const struct onnx_node *node) {
    const struct onnx_value *a = sized_input(node, 0), *b = sized_input(node, 1), *out = sized_output(node);
    const double columns = size_from_end(out, 0);
    if (b && columns > 0)
        return 2 * out->elements * b->elements / columns;
    return a && b && size_from_end(a, 0) > 0 ? 2 * b->elements * a->elements / size_from_end(a, 0) : NAN;
}

/* Elements of a weight, also of one in another layout; 0 when input i is none. */
static double weight_elements(const struct onnx_node *node, size_t i) {
    const struct onnx_value *value = i < node->n_inputs ? node->inputs[i] : NULL;
    const struct onnx_value *weight = value && value->source ? value->source : value;
    return weight && weight->initializer ? weight->elements : 0;
}

/* Weights by the inputs and by the state before, at each step. */
static double recurrent_layer(const struct onnx_node *node) {
    const struct onnx_value *x = sized_input(node, 0);
    const double inputs = size_from_end(x, 0), weights = weight_elements(node, 1) + weight_elements(node, 2);
    return x && inputs > 0 && weights > 0 ? 2 * x->elements / inputs * weights : NAN;
}

static bool is(const struct onnx_node *node, const char *type) {
    return !strcmp(node->type, type);
}

static bool is_recurrent(const struct onnx_node *node) {
    return is(node, "LSTM") || is(node, "GRU") || is(node, "RNN");
}

double onnx_work(const struct onnx_node *node) {
    if (is(node, "Conv"))
        return convolution(node, sized_output(node));
    if (is(node, "ConvTranspose"))
        return convolution(node, sized_input(node, 0));
    if (is(node, "MatMul"))
        return matrix_product(node);
    if (is(node, "Gemm"))
        return general_product(node);
    return is_recurrent(node) ? recurrent_layer(node) : 0;
}

double onnx_weight_elements(const struct onnx_node *node) {
    if (is(node, "MatMul"))
        return fmax(weight_elements(node, 0), weight_elements(node, 1));
    return weight_elements(node, 1) + (is_recurrent(node) ? weight_elements(node, 2) : 0);
}
