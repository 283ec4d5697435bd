/* Graph attention over the variable graph (AutoSync §3.1.2, "GAT"): two attention layers with a tanh after each over
 * the places of the frame, then mean and maximum over the nodes. What a place says thus depends on the variables within
 * two edges of it, before and after, and on no order beyond that.
 * O(shards + variables + edges). */
#include <string.h>

#include "simulator/learned/attention.h"
#include "simulator/learned/frame.h"
#include "simulator/learned/network.h"

enum {
    LAYERS = 2,
    HEADS = 4,
    NODE = FRAME_READOUT / 2, /* numbers a node */
    WIDTH = NODE / HEADS,
    AT_FIRST = FRAME_PARAMETERS,
    AT_SECOND = AT_FIRST + ATTENTION_PARAMETERS(FRAME_PLACE, HEADS, WIDTH),
    PARAMETERS = AT_SECOND + ATTENTION_PARAMETERS(NODE, HEADS, WIDTH)
};

static const struct attention LAYER[LAYERS] = {{FRAME_PLACE, HEADS, WIDTH}, {NODE, HEADS, WIDTH}};
static const size_t AT[LAYERS] = {AT_FIRST, AT_SECOND};

struct state {
    struct frame frame;
    struct attention_graph graph;
    struct attention_trace trace[LAYERS];
    double *nodes[LAYERS]; /* n_variables x NODE: what each layer gives */
    struct pooling pooling;
};

static void init(double *parameters, struct rng *rng) {
    frame_init(parameters, rng);
    for (size_t l = 0; l < LAYERS; l++)
        attention_init(&LAYER[l], parameters + AT[l], rng);
}

/* ---- forward ---- */

static struct state *start(const struct network_input *input, struct arena *scratch) {
    const size_t n = input->n_variables;
    struct state *s = arena_alloc(scratch, 1, sizeof *s);
    if (!s || !frame_start(&s->frame, input, scratch) ||
        !attention_graph_init(&s->graph, n, input->n_edges, input->edges, scratch))
        return NULL;
    for (size_t l = 0; l < LAYERS; l++) {
        s->nodes[l] = arena_alloc(scratch, n * NODE, sizeof *s->nodes[l]);
        if (!s->nodes[l] || !attention_trace_init(&s->trace[l], &LAYER[l], &s->graph, scratch))
            return NULL;
    }
    s->pooling = (struct pooling){.n = n, .width = NODE, .n_places = 1};
    s->pooling.share = arena_alloc(scratch, n, sizeof *s->pooling.share);
    s->pooling.top = arena_alloc(scratch, NODE, sizeof *s->pooling.top);
    return s->pooling.share && s->pooling.top ? s : NULL;
}

static enum status forward(const double *parameters, const struct network_input *input, struct arena *scratch,
                           void **state, double *score, struct error *err) {
    arena_clear(scratch);
    struct state *s = start(input, scratch);
    if (!s)
        return error_no_memory(err);
    frame_encode(parameters, input, &s->frame);
    const double *x = s->frame.places;
    for (size_t l = 0; l < LAYERS; l++) {
        attention_forward(&LAYER[l], parameters + AT[l], &s->graph, x, s->nodes[l], &s->trace[l]);
        tanh_forward((size_t)input->n_variables * NODE, s->nodes[l]);
        x = s->nodes[l];
    }
    pooling_forward(&s->pooling, x, s->frame.joined);
    *score = frame_score(parameters, input, &s->frame);
    *state = s;
    return ST_OK;
}

/* ---- backward ---- */

static enum status backward(const double *parameters, const struct network_input *input, struct arena *scratch,
                            void *state, double slope, double *gradient, struct error *err) {
    const struct state *s = state;
    const size_t n = input->n_variables;
    struct frame_slopes slopes;
    double *nodes = arena_alloc(scratch, LAYERS * n * NODE, sizeof *nodes);
    double *room = arena_alloc(scratch, n * HEADS * (WIDTH + 2), sizeof *room);
    if (!nodes || !room || !frame_slopes_start(&slopes, input, scratch))
        return error_no_memory(err);
    frame_score_backward(parameters, input, &s->frame, slope, gradient, &slopes);
    pooling_backward(&s->pooling, slopes.joined, nodes + (LAYERS - 1) * n * NODE);
    for (size_t l = LAYERS; l-- > 0;) {
        const double *x = l > 0 ? s->nodes[l - 1] : s->frame.places;
        double *dy = nodes + l * n * NODE, *dx = l > 0 ? dy - n * NODE : slopes.places;
        tanh_backward(n * NODE, s->nodes[l], dy);
        attention_backward(&LAYER[l], parameters + AT[l], &s->graph, x, dy, &s->trace[l], room, gradient + AT[l], dx);
    }
    frame_encode_backward(parameters, input, &s->frame, gradient, &slopes);
    return ST_OK;
}

const struct neural_network network_gat = {
    .kind = RANKER_gat, .parameters = PARAMETERS, .init = init, .forward = forward, .backward = backward};
