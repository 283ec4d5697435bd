/* A product of an m x k and a k x n matrix takes 2 m k n operations. A convolution is such a product at every place of
 * its result (a transposed one: of its input). A recurrent layer is such a product at every step of its sequence.
 * Attention is two such products: queries by keys, and their result by the values. All else (activations,
 * normalization, sums, look-ups) is limited by memory and takes little beside these; it counts as 0. Source: the
 * operators' definitions in ONNX's Operators.md, of ai.onnx up to version 24, and those of com.microsoft in ONNX
 * Runtime's ContribOperators.md that fuse or quantize one of them. */
#include "interop/import/onnx_work.h"

#include <math.h>
#include <string.h>

#include "interop/import/onnx_einsum.h"

/* Which inputs of a node are multiplied with each other. */
struct factors {
    size_t a, b;
};

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
static double kernel_at(const struct onnx_value *places, const struct onnx_value *kernel) {
    if (!kernel || !kernel->shape.rank || !kernel->shape.sizes[0] || !places)
        return NAN;
    return 2 * places->elements * kernel->elements / (double)kernel->shape.sizes[0];
}

static double convolution(const struct onnx_node *node, struct factors f) {
    return kernel_at(sized_output(node), sized_input(node, f.b));
}

static double transposed_convolution(const struct onnx_node *node, struct factors f) {
    return kernel_at(sized_input(node, f.a), sized_input(node, f.b));
}

static double matrix_product(const struct onnx_node *node, struct factors f) {
    const struct onnx_value *a = sized_input(node, f.a), *b = sized_input(node, f.b), *out = sized_output(node);
    const bool turned_a = node->transposed[0] && a && a->shape.rank > 1;
    const bool rows_of_b = b && b->shape.rank > 1 && !node->transposed[1];
    const double summed = a && a->shape.rank ? size_from_end(a, turned_a) : size_from_end(b, rows_of_b);
    if (summed <= 0)
        return NAN;
    if (out)
        return 2 * out->elements * summed;
    /* Without the result's shape: each row of a with each column of a b of two axes. */
    return a && b && b->shape.rank <= 2 ? 2 * a->elements * (b->elements / summed) : NAN;
}

/* y = a b + c, where a and b may be transposed. The axis that is summed over is the one of b that y lacks. */
static double general_product(const struct onnx_node *node, struct factors f) {
    const struct onnx_value *a = sized_input(node, f.a), *b = sized_input(node, f.b), *out = sized_output(node);
    const double columns = size_from_end(out, 0), summed = size_from_end(a, node->transposed[0]);
    if (b && columns > 0)
        return 2 * out->elements * b->elements / columns;
    return a && b && summed > 0 ? 2 * b->elements * a->elements / summed : NAN;
}

/* Elements of a weight, also of one in another layout; 0 when input i is none. */
static double weight_elements(const struct onnx_node *node, size_t i) {
    const struct onnx_value *value = i < node->n_inputs ? node->inputs[i] : NULL;
    const struct onnx_value *weight = value && value->source ? value->source : value;
    return weight && weight->initializer ? weight->elements : 0;
}

/* Weights by the inputs and by the state before, at each step. */
static double recurrent_layer(const struct onnx_node *node, struct factors f) {
    const struct onnx_value *x = sized_input(node, 0);
    const double inputs = size_from_end(x, 0), weights = weight_elements(node, f.a) + weight_elements(node, f.b);
    return x && inputs > 0 && weights > 0 ? 2 * x->elements / inputs * weights : NAN;
}

/* Of queries (a) and keys (b) with the heads in one axis or in two: the positions are the last axis but one. */
static double attention(const struct onnx_node *node, struct factors f) {
    const struct onnx_value *queries = sized_input(node, f.a), *keys = sized_input(node, f.b);
    const struct onnx_value *out = sized_output(node);
    const double positions = keys && keys->shape.rank <= 4 ? size_from_end(keys, 1) : 0;
    return queries && out && positions > 0 ? 2 * positions * (queries->elements + out->elements) : NAN;
}

static double einsum(const struct onnx_node *node, struct factors f) {
    (void)f;
    return onnx_einsum_work(node);
}

/* Kinds that multiply matrices. */
static const struct product {
    const char *type;
    double (*work)(const struct onnx_node *node, struct factors f);
    struct factors factors;
    bool is_ours; /* only as an operator of ai.onnx: other domains use the name for something else */
} products[] = {
    {"Attention", attention, {0, 1}, true},
    {"Conv", convolution, {0, 1}, false},
    {"ConvInteger", convolution, {0, 1}, false},
    {"ConvTranspose", transposed_convolution, {0, 1}, false},
    {"DeformConv", convolution, {0, 1}, false},
    {"DynamicQuantizeLSTM", recurrent_layer, {1, 2}, false},
    {"DynamicQuantizeMatMul", matrix_product, {0, 1}, false},
    {"Einsum", einsum, {0, 1}, false},
    {"FusedConv", convolution, {0, 1}, false},
    {"FusedGemm", general_product, {0, 1}, false},
    {"FusedMatMul", matrix_product, {0, 1}, false},
    {"GRU", recurrent_layer, {1, 2}, false},
    {"Gemm", general_product, {0, 1}, false},
    {"LSTM", recurrent_layer, {1, 2}, false},
    {"MatMul", matrix_product, {0, 1}, false},
    {"MatMulInteger", matrix_product, {0, 1}, false},
    {"MatMulIntegerToFloat", matrix_product, {0, 1}, false},
    {"MultiHeadAttention", attention, {0, 1}, false},
    {"QGemm", general_product, {0, 3}, false},
    {"QLinearConv", convolution, {0, 3}, false},
    {"QLinearMatMul", matrix_product, {0, 3}, false},
    {"RNN", recurrent_layer, {1, 2}, false},
    {"TransposeMatMul", matrix_product, {0, 1}, false},
};

/* Kinds that multiply none, a blank before and behind each. */
static const char others[] =
    " Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization "
    "Bernoulli BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu BitShift BitmaskDropout BitwiseAnd "
    "BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu CenterCropPad Clip Col2Im Compress "
    "Concat ConcatFromSequence Constant ConstantOfShape Cos Cosh CumSum DFT DepthToSpace DequantizeLinear Det "
    "Div Dropout DynamicQuantizeLinear Elu EmbedLayerNormalization Equal Erf Exp Expand EyeLike FastGelu Flatten "
    "Floor Gather GatherElements GatherND Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool Greater "
    "GreaterOrEqual GridSample GroupNorm GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish "
    "Hardmax Identity If ImageDecoder InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Less "
    "LessOrEqual Log LogSoftmax Loop LpNormalization LpPool Max MaxPool MaxRoiPool MaxUnpool Mean "
    "MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss "
    "NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow "
    "QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
    "QLinearReduceMean QLinearSigmoid QLinearSoftmax QuantizeLinear QuickGelu RMSNormalization RandomNormal "
    "RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
    "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu "
    "Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND "
    "Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
    "Shape Shrink Sigmoid Sign SimplifiedLayerNormalization Sin Sinh Size SkipGroupNorm SkipLayerNormalization "
    "SkipSimplifiedLayerNormalization Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split "
    "SplitToSequence Sqrt Squeeze StringConcat StringNormalizer StringSplit Sub Sum Swish Tan Tanh TensorScatter "
    "TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor ";

static bool is_ours(const struct onnx_node *node) {
    return !*node->domain || !strcmp(node->domain, "ai.onnx");
}

static const struct product *product_of(const struct onnx_node *node) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (!strcmp(products[i].type, node->type))
            return products[i].is_ours && !is_ours(node) ? NULL : &products[i];
    return NULL;
}

static bool is_other(const char *type) {
    const size_t n = strlen(type);
    for (const char *at = others; n && !strchr(type, ' ') && (at = strstr(at, type)); at += n)
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

bool onnx_is_known(const struct onnx_node *node) {
    return product_of(node) || is_other(node->type);
}

double onnx_work(const struct onnx_node *node) {
    const struct product *product = product_of(node);
    return product ? product->work(node, product->factors) : 0;
}

double onnx_weight_elements(const struct onnx_node *node) {
    const struct product *product = product_of(node);
    double most = 0;
    if (!product)
        return 0;
    if (product->work == recurrent_layer)
        return weight_elements(node, product->factors.a) + weight_elements(node, product->factors.b);
    if (product->work != matrix_product && product->work != einsum)
        return weight_elements(node, product->factors.b);
    for (size_t i = 0; i < (product->work == einsum ? node->n_inputs : product->factors.b + 1); i++)
        most = fmax(most, weight_elements(node, i));
    return most;
}
