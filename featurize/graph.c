/* The variable graph: operators pruned to those that produce gradients (AutoSync §3.1.2, for graph attention).
 *
 * One walk over the backward operators in execution order. Each operator passes on a set of places: a producer its own
 * last place, any other the union of the sets of the operators that it waits for. At a producer that union is its
 * incoming edges. Of a union only the FEATURE_FAN_IN latest places are kept. The order is total, so the latest of a
 * union are among the latest of its parts, and nothing is lost. Edges come out by their target, and a stable counting
 * sort brings them by their source. O(operators + dependencies + variables), each FEATURE_FAN_IN steps. */
#include <string.h>

#include "featurize/features.h"
#include "featurize/features_internal.h"

/* Places of producers, falling. */
struct fan {
    uint32_t n, places[FEATURE_FAN_IN];
};

static void merge(struct fan *into, const struct fan *from) {
    struct fan merged = {.n = 0};
    uint32_t i = 0, j = 0;
    while (merged.n < FEATURE_FAN_IN && (i < into->n || j < from->n)) {
        uint32_t a = i < into->n ? into->places[i] : 0, b = j < from->n ? from->places[j] : 0;
        bool take_a = j == from->n || (i < into->n && a >= b), take_b = i == into->n || (j < from->n && b >= a);
        merged.places[merged.n++] = take_a ? a : b;
        i += take_a;
        j += take_b;
    }
    *into = merged;
}

struct walk {
    const struct survey *survey;
    struct fan *fans;         /* by operator */
    uint32_t next;            /* first place in the ready order whose producer was not visited yet */
    size_t n;                 /* edges so far */
    struct feature_edge *all; /* by target */
};

static void add_edge(struct walk *walk, uint32_t from, uint32_t to) {
    walk->all[walk->n++] = (struct feature_edge){from, to};
}

/* `own` begins as what the operator would pass on if it produced nothing. */
static void visit_producer(struct walk *walk, const struct operator* op, struct fan *own) {
    uint32_t first = walk->next, last = first + op->n_produces - 1;
    for (uint32_t i = own->n; i-- > 0;)
        add_edge(walk, own->places[i], first);
    for (uint32_t place = first; place < last; place++)
        add_edge(walk, place, place + 1);
    walk->next = last + 1;
    *own = (struct fan){1, {last}};
}

static void visit(struct walk *walk, uint32_t at) {
    const struct operator* op = & walk->survey->plan->model->operators[at];
    struct fan *own = &walk->fans[at];
    for (uint32_t i = 0; i < op->n_after; i++)
        if (walk->fans[op->after[i]].n)
            merge(own, &walk->fans[op->after[i]]);
    if (op->n_produces)
        visit_producer(walk, op, own);
}

static enum status sort_by_source(const struct walk *walk, struct features *out, struct error *err) {
    struct arena scratch = {0};
    uint32_t n = out->n_variables;
    size_t *first = arena_alloc(&scratch, (size_t)n + 1, sizeof *first);
    struct feature_edge *edges = arena_alloc(&out->arena, walk->n, sizeof *edges);
    enum status status = first && edges ? ST_OK : error_no_memory(err);
    if (!status) {
        for (size_t i = 0; i < walk->n; i++)
            first[walk->all[i].from + 1]++;
        for (uint32_t v = 0; v < n; v++)
            first[v + 1] += first[v];
        for (size_t i = 0; i < walk->n; i++)
            edges[first[walk->all[i].from]++] = walk->all[i];
        out->edges = edges;
        out->n_edges = walk->n;
    }
    arena_release(&scratch);
    return status;
}

enum status features_of_graph(const struct survey *s, struct features *out, struct error *err) {
    const struct model *model = s->plan->model;
    struct arena scratch = {0};
    struct walk walk = {.survey = s};
    walk.fans = arena_alloc(&scratch, model->n_operators, sizeof *walk.fans);
    walk.all = arena_alloc(&scratch, (size_t)model->n_variables * (FEATURE_FAN_IN + 1), sizeof *walk.all);
    enum status status = walk.fans && walk.all ? ST_OK : error_no_memory(err);
    if (!status) {
        for (uint32_t i = model->n_forward; i < model->n_operators; i++)
            visit(&walk, model->order[i]);
        status = sort_by_source(&walk, out, err);
    }
    arena_release(&scratch);
    return status;
}
