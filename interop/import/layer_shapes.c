/* The parameters of torch.nn's Conv2d, Linear, BatchNorm, LayerNorm, Embedding and LSTM follow from their arguments.
 * The number of elements tells whether there is a bias, and whether the guess was wrong. */
#include "interop/import/layer_shapes.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static uint64_t shape_elements(const struct shape *shape) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(n, shape->sizes[i], &n))
            return 0;
    return n;
}

/* The tensors so far, up to those that make `elements` exactly. */
struct fit {
    struct layer_tensor *out;
    size_t n;
    uint64_t left; /* elements that no tensor has yet */
    bool wrong;
};

static void add(struct fit *fit, const char *name, uint32_t rank, ...) {
    struct layer_tensor *tensor = &fit->out[fit->n];
    va_list sizes;
    va_start(sizes, rank);
    *tensor = (struct layer_tensor){name, {.rank = rank}};
    for (uint32_t i = 0; i < rank; i++)
        tensor->shape.sizes[i] = va_arg(sizes, unsigned);
    va_end(sizes);
    const uint64_t elements = shape_elements(&tensor->shape);
    if (!fit->left) /* all elements have a tensor: the layer has no bias */
        return;
    fit->wrong = fit->wrong || !elements || elements > fit->left;
    if (fit->wrong)
        return;
    fit->left -= elements;
    fit->n++;
}

static unsigned argument(const char *words, const char *name, unsigned otherwise) {
    unsigned value;
    const char *at = strstr(words, name);
    return at && sscanf(at + strlen(name), "%u", &value) == 1 ? value : otherwise;
}

static void fit_convolution(struct fit *fit, const char *words) {
    unsigned in, out, height, width;
    const char *kernel = strstr(words, "kernel_size=(");
    const unsigned groups = argument(words, "groups=", 1);
    fit->wrong = sscanf(words, "Conv2d(%u, %u", &in, &out) != 2 || !kernel || !groups ||
                 sscanf(kernel, "kernel_size=(%u, %u", &height, &width) != 2;
    if (fit->wrong)
        return;
    add(fit, "weight", 4, out, in / groups, height, width);
    add(fit, "bias", 1, out);
}

static void fit_linear(struct fit *fit, const char *words) {
    const unsigned in = argument(words, "in_features=", 0), out = argument(words, "out_features=", 0);
    add(fit, "weight", 2, out, in);
    add(fit, "bias", 1, out);
}

static void fit_embedding(struct fit *fit, const char *words) {
    unsigned rows, columns;
    fit->wrong = sscanf(words, "Embedding(%u, %u", &rows, &columns) != 2;
    if (!fit->wrong)
        add(fit, "weight", 2, rows, columns);
}

static void fit_normalization(struct fit *fit, const char *words) {
    unsigned channels;
    const char *open = strchr(words, '(');
    fit->wrong = !open || sscanf(open + strspn(open, "("), "%u", &channels) != 1;
    if (fit->wrong)
        return;
    add(fit, "weight", 1, channels);
    add(fit, "bias", 1, channels);
}

static void fit_lstm(struct fit *fit, const char *words) {
    unsigned in, hidden;
    fit->wrong = sscanf(words, "LSTM(%u, %u)", &in, &hidden) != 2 || hidden > 1u << 28;
    if (fit->wrong)
        return;
    add(fit, "weight_ih", 2, 4 * hidden, in);
    add(fit, "weight_hh", 2, 4 * hidden, hidden);
    add(fit, "bias_ih", 1, 4 * hidden);
    add(fit, "bias_hh", 1, 4 * hidden);
}

size_t layer_tensors(const char *words, uint64_t elements, struct layer_tensor out[LAYER_MAX_TENSORS]) {
    static const struct {
        const char *start;
        void (*fit)(struct fit *fit, const char *words);
    } layers[] = {{"Conv2d(", fit_convolution},     {"Linear(", fit_linear},           {"Embedding(", fit_embedding},
                  {"BatchNorm", fit_normalization}, {"LayerNorm(", fit_normalization}, {"LSTM(", fit_lstm}};
    struct fit fit = {.out = out, .left = elements};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (!strncmp(words, layers[i].start, strlen(layers[i].start)))
            layers[i].fit(&fit, words);
    if (!fit.wrong && !fit.left)
        return fit.n;
    out[0] = (struct layer_tensor){"parameters", {.rank = 1, .sizes = {elements}}};
    return 1;
}
