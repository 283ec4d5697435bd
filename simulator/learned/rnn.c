/* A bidirectional LSTM over the variables (AutoSync §3.1.2, "RNN"): it reads the places of the frame in the order in
 * which gradients become ready, and against it. Read out are the last state of each direction, which has seen all, and
 * the mean of each over the places, through which every place has a short way to the score.
 * O(shards + variables). */
#include <string.h>

#include "simulator/learned/frame.h"
#include "simulator/learned/lstm.h"
#include "simulator/learned/network.h"

enum {
    STATE = FRAME_READOUT / 4,
    STATE_PARAMETERS = LSTM_PARAMETERS(FRAME_PLACE, STATE),
    AT_RISING = FRAME_PARAMETERS,
    AT_FALLING = AT_RISING + STATE_PARAMETERS,
    PARAMETERS = AT_FALLING + STATE_PARAMETERS
};

/* A direction, in the order of its parts of parameters and read-out. */
static const struct lstm LSTM[2] = {{FRAME_PLACE, STATE, false}, {FRAME_PLACE, STATE, true}};
static const size_t AT[2] = {AT_RISING, AT_FALLING};

struct state {
    struct frame frame;
    struct lstm_trace trace[2];
    double *h[2]; /* n_variables x STATE */
};

static void init(double *parameters, struct rng *rng) {
    frame_init(parameters, rng);
    for (size_t d = 0; d < 2; d++)
        lstm_init(&LSTM[d], parameters + AT[d], rng);
}

/* ---- forward ---- */

static struct state *start(const struct network_input *input, struct arena *scratch) {
    const size_t n = input->n_variables;
    struct state *s = arena_alloc(scratch, 1, sizeof *s);
    if (!s || !frame_start(&s->frame, input, scratch))
        return NULL;
    for (size_t d = 0; d < 2; d++) {
        s->h[d] = arena_alloc(scratch, n * STATE, sizeof *s->h[d]);
        if (!s->h[d] || !lstm_trace_init(&s->trace[d], &LSTM[d], n, scratch))
            return NULL;
    }
    return s;
}

static size_t last_place(size_t direction, size_t n) {
    return LSTM[direction].falling ? 0 : n - 1;
}

/* out: the last state, then the mean. */
static void read_out(size_t n, const double *h, size_t last, double *out) {
    memcpy(out, h + last * STATE, STATE * sizeof *out);
    memset(out + STATE, 0, STATE * sizeof *out);
    for (size_t i = 0; i < n * STATE; i++)
        out[STATE + i % STATE] += h[i] / (double)n;
}

static enum status forward(const double *parameters, const struct network_input *input, struct arena *scratch,
                           void **state, double *score, struct error *err) {
    arena_clear(scratch);
    const size_t n = input->n_variables;
    struct state *s = start(input, scratch);
    if (!s)
        return error_no_memory(err);
    frame_encode(parameters, input, &s->frame);
    for (size_t d = 0; d < 2; d++) {
        lstm_forward(&LSTM[d], parameters + AT[d], n, s->frame.places, s->h[d], &s->trace[d]);
        read_out(n, s->h[d], last_place(d, n), s->frame.joined + d * 2 * STATE);
    }
    *score = frame_score(parameters, input, &s->frame);
    *state = s;
    return ST_OK;
}

/* ---- backward ---- */

static void read_out_backward(size_t n, const double *out, size_t last, double *dh) {
    for (size_t i = 0; i < n * STATE; i++)
        dh[i] = out[STATE + i % STATE] / (double)n;
    for (size_t k = 0; k < STATE; k++)
        dh[last * STATE + k] += out[k];
}

static enum status backward(const double *parameters, const struct network_input *input, struct arena *scratch,
                            void *state, double slope, double *gradient, struct error *err) {
    const struct state *s = state;
    const size_t n = input->n_variables;
    struct frame_slopes slopes;
    double *dh = arena_alloc(scratch, n * STATE, sizeof *dh);
    double *gates = arena_alloc(scratch, (n + 1) * 4 * STATE, sizeof *gates);
    if (!dh || !gates || !frame_slopes_start(&slopes, input, scratch))
        return error_no_memory(err);
    frame_score_backward(parameters, input, &s->frame, slope, gradient, &slopes);
    for (size_t d = 0; d < 2; d++) {
        read_out_backward(n, slopes.joined + d * 2 * STATE, last_place(d, n), dh);
        lstm_backward(&LSTM[d], parameters + AT[d], n, s->frame.places, s->h[d], &s->trace[d], dh, gates,
                      gradient + AT[d], slopes.places);
    }
    frame_encode_backward(parameters, input, &s->frame, gradient, &slopes);
    return ST_OK;
}

const struct neural_network network_rnn = {
    .kind = RANKER_rnn, .parameters = PARAMETERS, .init = init, .forward = forward, .backward = backward};
