/* A long short-term memory over a sequence, in either direction (Hochreiter and Schmidhuber 1997, with the forget gate
 * of Gers et al. 2000): with a = [i f g o] = Wx x_t + b + Wh h_before,
 *   c_t = logistic(f) c_before + logistic(i) tanh(g),   h_t = logistic(o) tanh(c_t),   h and c before the first are 0.
 * Forget biases start at 1, so that what is early is not lost at once (Jozefowicz et al. 2015).
 * Conventions as in simulator/learned/layers.h. */
#ifndef SIMULATOR_LEARNED_LSTM_H
#define SIMULATOR_LEARNED_LSTM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/rng.h"
#include "simulator/learned/layers.h"

/* Parameters: Wx, 4 hidden x in, b, 4 hidden, then Wh, 4 hidden x hidden. */
#define LSTM_PARAMETERS(in, hidden) (DENSE_PARAMETERS(in, 4 * (hidden)) + 4 * (hidden) * (hidden))

struct lstm {
    size_t in, hidden;
    bool falling; /* from the last place to the first */
};

/* What forward leaves for backward. */
struct lstm_trace {
    double *gates;  /* n x 4 hidden, after their functions */
    double *cells;  /* n x hidden */
    double *bounds; /* n x hidden, tanh of the cells */
};

void lstm_init(const struct lstm *lstm, double *parameters, struct rng *rng);

/* Room for n places; false when memory is out. */
bool lstm_trace_init(struct lstm_trace *trace, const struct lstm *lstm, size_t n, struct arena *arena);

/* x: n x in, h: n x hidden, by place in both directions. O(n hidden (in + hidden)): the inputs of all places are
 * projected by one matrix product, the steps are matrix by vector. */
void lstm_forward(const struct lstm *lstm, const double *parameters, size_t n, const double *x, double *h,
                  struct lstm_trace *trace);
/* dh: n x hidden; overwritten. scratch: 4 hidden (n + 1), any contents. dx: n x in; NULL: not wanted. */
void lstm_backward(const struct lstm *lstm, const double *parameters, size_t n, const double *x, const double *h,
                   const struct lstm_trace *trace, double *dh, double *scratch, double *gradient, double *dx);

#endif
