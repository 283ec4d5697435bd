/* A tensor's indices are a set of bits: 52 letters, and one bit for each axis under "...", counted from the last axis
 * as in broadcasting. More than two tensors are multiplied from the left, each product with the next tensor. An index
 * that neither the result nor a later tensor has is summed over as soon as possible; a sum within one tensor costs
 * nothing. Source: the definition of Einsum in ONNX's Operators.md. */
#include "interop/import/onnx_einsum.h"

#include <math.h>
#include <string.h>

enum { LETTERS = 52, INDICES = LETTERS + MODEL_MAX_RANK, MAX_TERMS = 16 };

/* One tensor's part of the equation, and the tensor as far as its shape is known. */
struct term {
    uint8_t index[MODEL_MAX_RANK]; /* of each letter, in order */
    size_t n, dots_at;             /* letters; how many of them stand before "..." */
    bool dots;
    const struct onnx_value *value; /* NULL: not known */
    uint64_t set;
};

struct equation {
    struct term terms[MAX_TERMS], result;
    size_t n, n_dots; /* n_dots: axes under "..." of the tensor that has most */
    double sizes[INDICES];
};

static uint64_t bit(size_t index) {
    return UINT64_C(1) << index;
}

static bool parse_term(const char *at, const char *end, struct term *out) {
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (end - at >= 3 && !memcmp(at, "...", 3) && !out->dots) {
            out->dots = true;
            out->dots_at = out->n;
            at += 2;
            continue;
        }
        const char letter = *at;
        if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) || out->n == MODEL_MAX_RANK)
            return false;
        out->index[out->n] = (uint8_t)(letter >= 'a' ? letter - 'a' : letter - 'A' + 26);
        out->set |= bit(out->index[out->n++]);
    }
    return true;
}

/* Without "->" the result has the indices that come once, and what "..." stands for. */
static void imply_result(struct equation *e) {
    uint64_t once = 0, again = 0;
    for (size_t t = 0; t < e->n; t++)
        for (size_t i = 0; i < e->terms[t].n; i++) {
            const uint64_t one = bit(e->terms[t].index[i]);
            again |= once & one;
            once |= one;
            e->result.dots |= e->terms[t].dots;
        }
    e->result.set = once & ~again;
}

static bool parse(const char *text, struct equation *out) {
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    bool ok = true;
    for (const char *at = text; ok && at <= end; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        ok = out->n < MAX_TERMS && parse_term(at, stop, &out->terms[out->n++]);
        at = stop;
    }
    if (!arrow)
        imply_result(out);
    return ok && (!arrow || parse_term(arrow + 2, arrow + strlen(arrow), &out->result));
}

/* Take the sizes of the indices from a tensor of known shape. Where one tensor has size 1, another may have more. */
static bool take_sizes(struct equation *e, struct term *term) {
    const struct onnx_value *value = term->value;
    if (!value || !value->sized)
        return true;
    const size_t rank = value->shape.rank, n_dots = rank - term->n;
    if (rank < term->n || (n_dots && !term->dots))
        return false;
    e->n_dots = n_dots > e->n_dots ? n_dots : e->n_dots;
    for (size_t axis = 0; axis < rank; axis++) {
        const size_t under = axis - term->dots_at; /* beyond n_dots: not under "..." */
        const bool dots = term->dots && axis >= term->dots_at && under < n_dots;
        const size_t letter = term->dots && axis >= term->dots_at ? axis - n_dots : axis;
        const size_t index = dots ? LETTERS + n_dots - 1 - under : term->index[letter];
        e->sizes[index] = fmax(e->sizes[index], (double)value->shape.sizes[axis]);
    }
    return true;
}

static bool read_equation(const struct onnx_node *node, struct equation *out) {
    if (!node->equation || !parse(node->equation, out) || out->n != node->n_inputs)
        return false;
    bool ok = true;
    for (size_t t = 0; t < out->n && ok; t++) {
        out->terms[t].value = node->inputs[t];
        ok = take_sizes(out, &out->terms[t]);
    }
    if (strstr(node->equation, "->") && node->n_outputs) {
        out->result.value = node->outputs[0];
        ok = ok && take_sizes(out, &out->result);
    }
    const uint64_t dots = (bit(out->n_dots) - 1) << LETTERS;
    for (size_t t = 0; t < out->n; t++)
        out->terms[t].set |= out->terms[t].dots ? dots : 0;
    out->result.set |= out->result.dots ? dots : 0;
    return ok;
}

/* Combinations of the indices; NaN when the size of one is not known. */
static double count(const struct equation *e, uint64_t set) {
    double n = 1;
    for (size_t i = 0; i < INDICES; i++)
        if (set & bit(i))
            n *= e->sizes[i] > 0 ? e->sizes[i] : NAN;
    return n;
}

double onnx_einsum_work(const struct onnx_node *node) {
    struct equation e = {.n = 0};
    double work = 0;
    if (!read_equation(node, &e))
        return NAN;
    uint64_t left = e.terms[0].set;
    for (size_t t = 1; t < e.n; t++) {
        const uint64_t right = e.terms[t].set;
        uint64_t later = e.result.set;
        for (size_t k = t + 1; k < e.n; k++)
            later |= e.terms[k].set;
        const uint64_t summed = left & right & ~later, used = (left | right) & (later | summed);
        if (summed)
            work += 2 * count(&e, used);
        left = used & later;
    }
    return work;
}
