/* Multi-head graph attention (Veličković et al. 2018): head k projects every node, z = W x + b, weighs the neighbours j
 * of node i, itself included, by softmax over j of leaky(to_k . z_i + from_k . z_j), and gives i their mean under these
 * weights. The heads' outputs stand side by side.
 *
 * Edges have a direction, and the two ends of one do not play the same part: the first half of the heads reads the
 * neighbours before a node, the second half those after it. (The weights sum to 1, so b is a bias of the output as
 * well.)
 * Conventions as in simulator/learned/layers.h. */
#ifndef SIMULATOR_LEARNED_ATTENTION_H
#define SIMULATOR_LEARNED_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"
#include "featurize/features.h"
#include "simulator/learned/layers.h"

/* Parameters: W and b as a dense layer's, then to and from, heads x width each. */
#define ATTENTION_PARAMETERS(in, heads, width) (DENSE_PARAMETERS(in, (heads) * (width)) + 2 * (heads) * (width))

/* The neighbours of i are list[start[i]] .. list[start[i + 1] - 1], itself first. */
struct neighbours {
    const size_t *start; /* [n + 1] */
    const uint32_t *list;
};

struct attention_graph {
    size_t n;
    struct neighbours before, after;
};

/* Neighbours of n nodes by edges between them, in any order; false when memory is out. O(n + edges). */
bool attention_graph_init(struct attention_graph *graph, size_t n, size_t n_edges, const struct feature_edge *edges,
                          struct arena *arena);

struct attention {
    size_t in, heads, width; /* heads even */
};

/* What forward leaves for backward. */
struct attention_trace {
    double *z;         /* n x heads width */
    double *to, *from; /* n x heads: the two parts of the logits */
    double *share;     /* the softmax: a number for each entry of neighbours.list, head after head */
};

void attention_init(const struct attention *attention, double *parameters, struct rng *rng);

/* Room for a graph; false when memory is out. */
bool attention_trace_init(struct attention_trace *trace, const struct attention *attention,
                          const struct attention_graph *graph, struct arena *arena);

/* x: n x in, y: n x heads width. O(n in heads width + edges heads width). */
void attention_forward(const struct attention *attention, const double *parameters, const struct attention_graph *graph,
                       const double *x, double *y, struct attention_trace *trace);
/* dy: n x heads width. scratch: n heads (width + 2), any contents. dx: n x in; NULL: not wanted. */
void attention_backward(const struct attention *attention, const double *parameters,
                        const struct attention_graph *graph, const double *x, const double *dy,
                        const struct attention_trace *trace, double *scratch, double *gradient, double *dx);

#endif
