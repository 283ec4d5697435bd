/* Backward goes against the steps: a step's dh is what its own output received and what the next step's gates pass back
 * through Wh; the cell's part is carried along. The gradients of Wx, Wh and x then are one product each over all
 * places. */
#include "simulator/learned/lstm.h"

#include <cblas.h>
#include <string.h>

static double *hidden_weights(const struct lstm *l, double *parameters) {
    return parameters + DENSE_PARAMETERS(l->in, 4 * l->hidden);
}

void lstm_init(const struct lstm *l, double *parameters, struct rng *rng) {
    double *bias = parameters + 4 * l->hidden * l->in;
    dense_init(parameters, l->in, 4 * l->hidden, rng);
    for (size_t k = 0; k < l->hidden; k++)
        bias[l->hidden + k] = 1;
    weights_init(4 * l->hidden * l->hidden, hidden_weights(l, parameters), l->hidden, l->hidden, rng);
}

bool lstm_trace_init(struct lstm_trace *trace, const struct lstm *l, size_t n, struct arena *arena) {
    const size_t states = n * l->hidden;
    double *memory = arena_alloc(arena, 6 * states, sizeof *memory);
    if (memory)
        *trace = (struct lstm_trace){memory, memory + 4 * states, memory + 5 * states};
    return memory != NULL;
}

/* The place of a step. */
static size_t place_of(const struct lstm *l, size_t n, size_t step) {
    return l->falling ? n - 1 - step : step;
}

/* ---- forward ---- */

/* `before` is the cell of the step before; NULL: zeros. */
static void advance(size_t hidden, double *gates, const double *before, double *cell, double *bound, double *h) {
    double *in = gates, *forget = gates + hidden, *update = gates + 2 * hidden, *out = gates + 3 * hidden;
    for (size_t k = 0; k < hidden; k++) {
        in[k] = layer_logistic(in[k]);
        forget[k] = layer_logistic(forget[k]);
        update[k] = layer_tanh(update[k]);
        out[k] = layer_logistic(out[k]);
        cell[k] = (before ? forget[k] * before[k] : 0) + in[k] * update[k];
        bound[k] = layer_tanh(cell[k]);
        h[k] = out[k] * bound[k];
    }
}

void lstm_forward(const struct lstm *l, const double *parameters, size_t n, const double *x, double *h,
                  struct lstm_trace *trace) {
    const size_t wide = l->hidden, gates = 4 * wide;
    const double *weights = parameters + DENSE_PARAMETERS(l->in, gates), *before = NULL;
    dense_forward(parameters, n, l->in, gates, x, trace->gates);
    for (size_t step = 0; step < n; step++) {
        const size_t t = place_of(l, n, step);
        if (step > 0)
            cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)gates, (int)wide, 1, weights, (int)wide,
                        h + place_of(l, n, step - 1) * wide, 1, 1, trace->gates + t * gates, 1);
        advance(wide, trace->gates + t * gates, before, trace->cells + t * wide, trace->bounds + t * wide,
                h + t * wide);
        before = trace->cells + t * wide;
    }
}

/* ---- backward ---- */

/* da from dh; dcell is the cell's part from the next step, and becomes that for the step before. */
static void retreat(size_t hidden, const double *gates, const double *before, const double *bound, const double *dh,
                    double *dcell, double *da) {
    const double *in = gates, *forget = gates + hidden, *update = gates + 2 * hidden, *out = gates + 3 * hidden;
    for (size_t k = 0; k < hidden; k++) {
        double dc = dcell[k] + dh[k] * out[k] * (1 - bound[k] * bound[k]);
        da[k] = dc * update[k] * in[k] * (1 - in[k]);
        da[hidden + k] = before ? dc * before[k] * forget[k] * (1 - forget[k]) : 0;
        da[2 * hidden + k] = dc * in[k] * (1 - update[k] * update[k]);
        da[3 * hidden + k] = dh[k] * bound[k] * out[k] * (1 - out[k]);
        dcell[k] = dc * forget[k];
    }
}

/* The gradient of Wh: every step but the first reads the output of the step before. */
static void add_hidden_gradient(const struct lstm *l, size_t n, const double *h, const double *da, double *gradient) {
    const int wide = (int)l->hidden, gates = 4 * wide;
    const double *later = da + (l->falling ? 0 : gates), *earlier = h + (l->falling ? wide : 0);
    if (n > 1)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, gates, wide, (int)n - 1, 1, later, gates, earlier, wide, 1,
                    hidden_weights(l, gradient), wide);
}

void lstm_backward(const struct lstm *l, const double *parameters, size_t n, const double *x, const double *h,
                   const struct lstm_trace *trace, double *dh, double *scratch, double *gradient, double *dx) {
    const size_t wide = l->hidden, gates = 4 * wide;
    const double *weights = parameters + DENSE_PARAMETERS(l->in, gates);
    double *da = scratch, *dcell = scratch + n * gates;
    memset(dcell, 0, wide * sizeof *dcell);
    for (size_t step = n; step-- > 0;) {
        const size_t t = place_of(l, n, step);
        const double *before = step > 0 ? trace->cells + place_of(l, n, step - 1) * wide : NULL;
        if (step + 1 < n)
            cblas_dgemv(CblasRowMajor, CblasTrans, (int)gates, (int)wide, 1, weights, (int)wide,
                        da + place_of(l, n, step + 1) * gates, 1, 1, dh + t * wide, 1);
        retreat(wide, trace->gates + t * gates, before, trace->bounds + t * wide, dh + t * wide, dcell, da + t * gates);
    }
    dense_backward(parameters, n, l->in, gates, x, da, gradient, dx);
    add_hidden_gradient(l, n, h, da, gradient);
}
