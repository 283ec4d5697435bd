/* Adam: each parameter moves by about `rate`, whatever the scale of its gradient. The moments start at zero, and the
 * powers of their memories undo that bias. O(n) a step. */
#include "simulator/learned/adam.h"

#include <math.h>

static const double MEAN_MEMORY = 0.9, SQUARE_MEMORY = 0.999, TINY = 1e-8; /* the paper's */

enum status adam_init(struct adam *adam, size_t n, const double *home, double decay, struct arena *arena,
                      struct error *err) {
    double *mean = arena_alloc(arena, n, sizeof *mean), *square = arena_alloc(arena, n, sizeof *square);
    if (!mean || !square)
        return error_no_memory(err);
    *adam = (struct adam){.n = n, .mean = mean, .square = square, .home = home, .decay = decay};
    return ST_OK;
}

void adam_step(struct adam *adam, double rate, const double *gradient, double *parameters) {
    const double steps = (double)++adam->steps;
    const double mean_bias = 1 - pow(MEAN_MEMORY, steps), square_bias = 1 - pow(SQUARE_MEMORY, steps);
    for (size_t i = 0; i < adam->n; i++) {
        const double g = gradient[i], home = adam->home ? adam->home[i] : 0;
        adam->mean[i] = MEAN_MEMORY * adam->mean[i] + (1 - MEAN_MEMORY) * g;
        adam->square[i] = SQUARE_MEMORY * adam->square[i] + (1 - SQUARE_MEMORY) * g * g;
        const double step = adam->mean[i] / mean_bias / (sqrt(adam->square[i] / square_bias) + TINY);
        parameters[i] -= rate * (step + adam->decay * (parameters[i] - home));
    }
}
