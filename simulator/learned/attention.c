/* The projection of all nodes is one matrix product; the rest runs over the edges, a head at a time, in vectors of a
 * head's width. Softmax subtracts the largest logit first. */
#include "simulator/learned/attention.h"

#include <math.h>
#include <string.h>

/* The slope of the logits' leaky rectifier below 0, the paper's. */
static const double LEAK = 0.2;

/* ---- the graph ---- */

/* The neighbours of each node by edges that end at it (later_looks), or by edges that begin at it. */
static bool list_neighbours(struct neighbours *out, size_t n, size_t n_edges, const struct feature_edge *edges,
                            bool later_looks, struct arena *arena) {
    size_t *start = arena_alloc(arena, n + 1, sizeof *start), *next = arena_alloc(arena, n, sizeof *next);
    uint32_t *list = arena_alloc(arena, n + n_edges, sizeof *list);
    if (!start || !next || !list)
        return false;
    for (size_t e = 0; e < n_edges; e++)
        start[(later_looks ? edges[e].to : edges[e].from) + 1]++;
    for (size_t i = 0; i < n; i++) {
        next[i] = start[i];
        start[i + 1] += start[i] + 1;
        list[next[i]++] = (uint32_t)i;
    }
    for (size_t e = 0; e < n_edges; e++) {
        const uint32_t who = later_looks ? edges[e].to : edges[e].from;
        list[next[who]++] = later_looks ? edges[e].from : edges[e].to;
    }
    *out = (struct neighbours){start, list};
    return true;
}

bool attention_graph_init(struct attention_graph *graph, size_t n, size_t n_edges, const struct feature_edge *edges,
                          struct arena *arena) {
    graph->n = n;
    return list_neighbours(&graph->before, n, n_edges, edges, true, arena) &&
           list_neighbours(&graph->after, n, n_edges, edges, false, arena);
}

/* ---- a head ---- */

/* One head of a layer: where its part of each array begins. */
struct head {
    const struct neighbours *near;
    size_t n, width, row, heads; /* row: heads width */
    const double *z;
    double *to, *from, *share;
};

static struct head head_at(const struct attention *a, const struct attention_graph *graph,
                           const struct attention_trace *trace, size_t k) {
    const size_t half = a->heads / 2, first = graph->before.start[graph->n], second = graph->after.start[graph->n];
    const bool looks_before = k < half;
    return (struct head){.near = looks_before ? &graph->before : &graph->after,
                         .n = graph->n,
                         .width = a->width,
                         .row = a->heads * a->width,
                         .heads = a->heads,
                         .z = trace->z + k * a->width,
                         .to = trace->to + k,
                         .from = trace->from + k,
                         .share = trace->share + (looks_before ? k * first : half * first + (k - half) * second)};
}

static double dot(size_t n, const double *x, const double *y) {
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += x[k] * y[k];
    return sum;
}

static void add_scaled(size_t n, double scale, const double *x, double *y) {
    for (size_t k = 0; k < n; k++)
        y[k] += scale * x[k];
}

static double leaky(double x) {
    return x < 0 ? LEAK * x : x;
}

/* ---- forward ---- */

void attention_init(const struct attention *a, double *parameters, struct rng *rng) {
    const size_t row = a->heads * a->width;
    dense_init(parameters, a->in, row, rng);
    weights_init(2 * row, parameters + DENSE_PARAMETERS(a->in, row), a->width, 1, rng);
}

bool attention_trace_init(struct attention_trace *trace, const struct attention *a, const struct attention_graph *graph,
                          struct arena *arena) {
    const size_t n = graph->n, entries = a->heads / 2 * (graph->before.start[n] + graph->after.start[n]);
    trace->z = arena_alloc(arena, n * a->heads * a->width, sizeof *trace->z);
    trace->to = arena_alloc(arena, n * a->heads, sizeof *trace->to);
    trace->from = arena_alloc(arena, n * a->heads, sizeof *trace->from);
    trace->share = arena_alloc(arena, entries, sizeof *trace->share);
    return trace->z && trace->to && trace->from && trace->share;
}

static void attend(const struct head *h, size_t i, double *y) {
    double most = -INFINITY, sum = 0;
    for (size_t e = h->near->start[i]; e < h->near->start[i + 1]; e++) {
        h->share[e] = leaky(h->to[i * h->heads] + h->from[h->near->list[e] * h->heads]);
        most = fmax(most, h->share[e]);
    }
    for (size_t e = h->near->start[i]; e < h->near->start[i + 1]; e++)
        sum += h->share[e] = exp(h->share[e] - most);
    for (size_t e = h->near->start[i]; e < h->near->start[i + 1]; e++) {
        h->share[e] /= sum;
        add_scaled(h->width, h->share[e], h->z + h->near->list[e] * h->row, y);
    }
}

void attention_forward(const struct attention *a, const double *parameters, const struct attention_graph *graph,
                       const double *x, double *y, struct attention_trace *trace) {
    const size_t row = a->heads * a->width;
    const double *to = parameters + DENSE_PARAMETERS(a->in, row), *from = to + row;
    dense_forward(parameters, graph->n, a->in, row, x, trace->z);
    memset(y, 0, graph->n * row * sizeof *y);
    for (size_t k = 0; k < a->heads; k++) {
        const struct head h = head_at(a, graph, trace, k);
        for (size_t i = 0; i < h.n; i++) {
            h.to[i * h.heads] = dot(h.width, to + k * h.width, h.z + i * row);
            h.from[i * h.heads] = dot(h.width, from + k * h.width, h.z + i * row);
        }
        for (size_t i = 0; i < h.n; i++)
            attend(&h, i, y + i * row + k * h.width);
    }
}

/* ---- backward ---- */

/* What backward works out for a head: the gradients of z, to and from, laid out as these are. */
struct head_gradient {
    double *z, *to, *from;
};

/* dshare_j = dy . z_j and, through the softmax, dlogit_j = share_j (dshare_j - sum over l of share_l dshare_l). */
static void attend_backward(const struct head *h, size_t i, const double *dy, const struct head_gradient *d) {
    double mean = 0;
    for (size_t e = h->near->start[i]; e < h->near->start[i + 1]; e++)
        mean += h->share[e] * dot(h->width, dy, h->z + h->near->list[e] * h->row);
    for (size_t e = h->near->start[i]; e < h->near->start[i + 1]; e++) {
        const size_t j = h->near->list[e];
        double slope = h->to[i * h->heads] + h->from[j * h->heads] < 0 ? LEAK : 1;
        slope *= h->share[e] * (dot(h->width, dy, h->z + j * h->row) - mean);
        add_scaled(h->width, h->share[e], dy, d->z + j * h->row);
        d->to[i * h->heads] += slope;
        d->from[j * h->heads] += slope;
    }
}

/* The logits' parts are products of z with `weights`. */
static void add_logit_gradient(const struct head *h, const double *slope, const double *weights, double *gradient,
                               double *dz) {
    for (size_t i = 0; i < h->n; i++) {
        add_scaled(h->width, slope[i * h->heads], h->z + i * h->row, gradient);
        add_scaled(h->width, slope[i * h->heads], weights, dz + i * h->row);
    }
}

void attention_backward(const struct attention *a, const double *parameters, const struct attention_graph *graph,
                        const double *x, const double *dy, const struct attention_trace *trace, double *scratch,
                        double *gradient, double *dx) {
    const size_t n = graph->n, row = a->heads * a->width, logits = DENSE_PARAMETERS(a->in, row);
    const struct head_gradient d = {scratch, scratch + n * row, scratch + n * (row + a->heads)};
    memset(scratch, 0, n * (row + 2 * a->heads) * sizeof *scratch);
    for (size_t k = 0; k < a->heads; k++) {
        const struct head h = head_at(a, graph, trace, k);
        const struct head_gradient part = {d.z + k * h.width, d.to + k, d.from + k};
        const size_t to = logits + k * h.width, from = to + row;
        for (size_t i = 0; i < n; i++)
            attend_backward(&h, i, dy + i * row + k * h.width, &part);
        add_logit_gradient(&h, part.to, parameters + to, gradient + to, part.z);
        add_logit_gradient(&h, part.from, parameters + from, gradient + from, part.z);
    }
    dense_backward(parameters, n, a->in, row, x, d.z, gradient, dx);
}
