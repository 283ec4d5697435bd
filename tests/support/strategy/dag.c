/* Windows by one pass over a topological order and one against it.
 *
 * Only predecessors are stored, so the order is a depth-first postorder along them; operators that are numbered
 * topologically, as dag_from_model's are, need no search. The pass against the order hands each operator's longest path
 * to the end down to its predecessors. */
#include "tests/support/strategy/dag.h"

#include <math.h>
#include <stdbool.h>

static enum status check_lists(const struct dag_lists *lists, uint32_t rows, uint32_t n_operators, bool some,
                               const char *what, struct error *err) {
    for (uint32_t i = 0; i < rows; i++) {
        if (lists->first[i + 1] < lists->first[i] || (some && lists->first[i + 1] == lists->first[i]))
            return error_set(err, ST_INVALID, "message %u has no %s; give it one", i, what);
        for (uint32_t k = lists->first[i]; k < lists->first[i + 1]; k++)
            if (lists->item[k] >= n_operators)
                return error_set(err, ST_INVALID, "the %s %u of %u is not an operator; there are %u", what,
                                 lists->item[k], i, n_operators);
    }
    return ST_OK;
}

static bool numbered_topologically(const struct dag *dag) {
    for (uint32_t i = 0; i < dag->n_operators; i++)
        for (uint32_t k = dag->before.first[i]; k < dag->before.first[i + 1]; k++)
            if (dag->before.item[k] >= i)
                return false;
    return true;
}

/* What a search has seen of an operator: nothing, all, or, in between, that many of its predecessors less one. */
static const uint32_t UNSEEN = 0, OPEN = 1, DONE = UINT32_MAX;

/* Postorder of everything that `root` comes after. The stack lies at the free end of order[]: what is done and what is
 * open together never exceed the operators. */
static enum status visit(const struct dag *dag, uint32_t root, uint32_t *order, uint32_t *n, uint32_t *seen,
                         struct error *err) {
    uint32_t top = dag->n_operators;
    order[--top] = root;
    seen[root] = OPEN;
    while (top < dag->n_operators) {
        uint32_t i = order[top], k = dag->before.first[i] + (seen[i] - OPEN);
        if (k == dag->before.first[i + 1]) {
            top++;
            seen[i] = DONE;
            order[(*n)++] = i;
            continue;
        }
        uint32_t before = dag->before.item[k];
        seen[i]++;
        if (seen[before] == DONE)
            continue;
        if (seen[before] != UNSEEN)
            return error_set(err, ST_INVALID, "operator %u comes after itself: the graph has a cycle", before);
        seen[before] = OPEN;
        order[--top] = before;
    }
    return ST_OK;
}

static enum status topological_order(const struct dag *dag, uint32_t *order, uint32_t *seen, struct error *err) {
    uint32_t n = 0;
    if (numbered_topologically(dag)) {
        for (; n < dag->n_operators; n++)
            order[n] = n;
        return ST_OK;
    }
    for (uint32_t i = 0; i < dag->n_operators; i++)
        seen[i] = UNSEEN;
    for (uint32_t i = 0; i < dag->n_operators; i++) {
        enum status st = seen[i] == UNSEEN ? visit(dag, i, order, &n, seen, err) : ST_OK;
        if (st)
            return st;
    }
    return ST_OK;
}

/* Lemma 1: no operator that makes a message waits, itself or through others, for one. */
static enum status check_makers(const struct dag *dag, const uint32_t *order, uint32_t *waits, struct error *err) {
    for (uint32_t i = 0; i < dag->n_operators; i++)
        waits[i] = UINT32_MAX;
    for (uint32_t m = 0; m < dag->n_messages; m++)
        for (uint32_t k = dag->readers.first[m]; k < dag->readers.first[m + 1]; k++)
            waits[dag->readers.item[k]] = m;
    for (uint32_t o = 0; o < dag->n_operators; o++) {
        uint32_t i = order[o];
        for (uint32_t k = dag->before.first[i]; k < dag->before.first[i + 1] && waits[i] == UINT32_MAX; k++)
            waits[i] = waits[dag->before.item[k]];
    }
    for (uint32_t m = 0; m < dag->n_messages; m++)
        for (uint32_t k = dag->makers.first[m]; k < dag->makers.first[m + 1]; k++)
            if (waits[dag->makers.item[k]] != UINT32_MAX)
                return error_set(err, ST_INVALID,
                                 "message %u lies before operator %u, which makes message %u; a message must not wait "
                                 "for another",
                                 waits[dag->makers.item[k]], dag->makers.item[k], m);
    return ST_OK;
}

/* ends[i]: longest path to the end of i; tails[i]: longest path from the start of i. Returns the longest of all. */
static double longest_paths(const struct dag *dag, const uint32_t *order, double *ends, double *tails) {
    double longest = 0;
    for (uint32_t o = 0; o < dag->n_operators; o++) {
        uint32_t i = order[o];
        double start = 0;
        for (uint32_t k = dag->before.first[i]; k < dag->before.first[i + 1]; k++)
            start = fmax(start, ends[dag->before.item[k]]);
        ends[i] = start + dag->time[i];
        tails[i] = 0;
        longest = fmax(longest, ends[i]);
    }
    for (uint32_t o = dag->n_operators; o-- > 0;) {
        uint32_t i = order[o];
        tails[i] += dag->time[i];
        for (uint32_t k = dag->before.first[i]; k < dag->before.first[i + 1]; k++)
            tails[dag->before.item[k]] = fmax(tails[dag->before.item[k]], tails[i]);
    }
    return longest;
}

static double largest(const struct dag_lists *lists, uint32_t row, const double *values) {
    double value = 0;
    for (uint32_t k = lists->first[row]; k < lists->first[row + 1]; k++)
        value = fmax(value, values[lists->item[k]]);
    return value;
}

enum status dag_windows(const struct dag *dag, uint32_t *scratch, double *times, struct machine_job *jobs, double *path,
                        struct error *err) {
    uint32_t n = dag->n_operators, *order = scratch, *marks = scratch + n;
    double *ends = times, *tails = times + n;
    enum status st = check_lists(&dag->before, n, n, false, "predecessor", err);
    if (!st)
        st = check_lists(&dag->makers, dag->n_messages, n, true, "maker", err);
    if (!st)
        st = check_lists(&dag->readers, dag->n_messages, n, true, "reader", err);
    if (!st)
        st = topological_order(dag, order, marks, err);
    if (!st)
        st = check_makers(dag, order, marks, err);
    if (st)
        return st;
    *path = longest_paths(dag, order, ends, tails);
    for (uint32_t m = 0; m < dag->n_messages; m++) {
        jobs[m].release = largest(&dag->makers, m, ends);
        jobs[m].tail = largest(&dag->readers, m, tails);
    }
    return ST_OK;
}

/* ---- from a model ---- */

/* The lists while they are filled. */
struct lists {
    uint32_t *first, *item;
};

static bool lists_init(struct lists *lists, struct arena *arena, size_t rows, size_t items) {
    lists->first = arena_alloc(arena, rows + 1, sizeof *lists->first);
    lists->item = arena_alloc(arena, items, sizeof *lists->item);
    return lists->first && lists->item;
}

struct builder {
    const struct model *model;
    enum dag_reading reading;
    uint32_t n, n_backward;
    uint32_t *place; /* of the model's operator in the graph */
    double *time;
    struct lists before, makers, readers;
};

static uint32_t place_of(const struct model *model, uint32_t i) {
    return i < model->n_forward ? model->n_operators - model->n_forward + i : i - model->n_forward;
}

/* One more operator than the model has: of no time, for the variables of a model without a forward pass. */
static bool builder_init(struct builder *b, const struct model *model, enum dag_reading reading, struct arena *arena) {
    size_t edges = model->n_operators, reads = model->n_variables;
    for (uint32_t i = 0; i < model->n_operators; i++) {
        edges += model->operators[i].n_after;
        reads += model->operators[i].n_reads;
    }
    *b = (struct builder){.model = model,
                          .reading = reading,
                          .n = model->n_operators + 1,
                          .n_backward = model->n_operators - model->n_forward,
                          .place = arena_alloc(arena, model->n_operators, sizeof *b->place),
                          .time = arena_alloc(arena, (size_t)model->n_operators + 1, sizeof *b->time)};
    return b->place && b->time && lists_init(&b->before, arena, b->n, edges) &&
           lists_init(&b->makers, arena, model->n_variables, model->n_variables) &&
           lists_init(&b->readers, arena, model->n_variables, reads);
}

/* Edges that the stream or the model's `after` gives to the operator at place `at`. */
static uint32_t add_edges(struct builder *b, uint32_t at, const struct operator* op, uint32_t n) {
    if (b->reading == DAG_ONE_STREAM) {
        if (at > 0)
            b->before.item[n++] = at - 1;
        return n;
    }
    for (uint32_t k = 0; k < op->n_after; k++)
        if (b->model->operators[op->after[k]].backward == op->backward)
            b->before.item[n++] = b->place[op->after[k]];
    return n;
}

static void add_operators(struct builder *b, double scale) {
    const struct model *model = b->model;
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_operators; i++)
        b->place[model->order[i]] = place_of(model, i);
    for (uint32_t at = 0; at < model->n_operators; at++) {
        uint32_t i = at < b->n_backward ? at + model->n_forward : at - b->n_backward;
        const struct operator* op = & model->operators[model->order[i]];
        b->time[at] = scale * op->time_us;
        n = add_edges(b, at, op, n);
        b->before.first[at + 1] = n;
    }
    b->before.first[b->n] = n;
}

/* Where a variable that no operator reads is waited for; the first forward operator when none reads any. */
static uint32_t last_reader(const struct builder *b) {
    for (uint32_t at = b->n - 1; at-- > b->n_backward;)
        if (b->model->operators[b->model->order[at - b->n_backward]].n_reads)
            return at;
    return b->n_backward;
}

/* first[v + 1] counts, then becomes where row v starts, then, filled, where it ends. */
static void add_messages(struct builder *b) {
    const struct model *model = b->model;
    uint32_t last = last_reader(b), *first = b->readers.first + 1, n = 0;
    for (uint32_t i = 0; i < model->n_forward; i++)
        for (uint32_t r = 0; r < model->operators[model->order[i]].n_reads; r++)
            first[model->operators[model->order[i]].reads[r]]++;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        uint32_t count = first[v];
        b->makers.first[v + 1] = v + 1;
        b->makers.item[v] = b->place[model->variables[v].producer];
        first[v] = n;
        if (count == 0)
            b->readers.item[first[v]++] = last;
        n += count ? count : 1;
    }
    for (uint32_t i = 0; i < model->n_forward; i++)
        for (uint32_t r = 0; r < model->operators[model->order[i]].n_reads; r++)
            b->readers.item[first[model->operators[model->order[i]].reads[r]]++] = b->n_backward + i;
}

enum status dag_from_model(const struct model *model, enum dag_reading reading, double scale, struct arena *arena,
                           struct dag *out, struct error *err) {
    struct builder b;
    if (!builder_init(&b, model, reading, arena))
        return error_no_memory(err);
    add_operators(&b, scale);
    add_messages(&b);
    *out = (struct dag){.n_operators = b.n,
                        .n_messages = model->n_variables,
                        .time = b.time,
                        .before = {b.before.first, b.before.item},
                        .makers = {b.makers.first, b.makers.item},
                        .readers = {b.readers.first, b.readers.item}};
    return ST_OK;
}
