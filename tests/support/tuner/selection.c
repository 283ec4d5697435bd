/* See selection.h. Candidates lie in a heap by a lower bound of what choosing them would add: their score and the
 * similarities worked out so far. The one on top is brought up to date; if it stays on top it is the next choice
 * (Minoux's lazy greedy algorithm). */
#include "tests/support/tuner/selection.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/strategy/similarity.h"

struct candidate {
    double bound, nearest; /* nearest: greatest similarity to the first `seen` references */
    size_t index, seen;
};

struct queue {
    size_t n;
    struct candidate *items; /* a binary heap, the least bound on top, the first of equals */
};

static bool goes_first(const struct candidate *a, const struct candidate *b) {
    return a->bound < b->bound || (a->bound <= b->bound && a->index < b->index);
}

static void sift_down(struct queue *q, size_t at) {
    struct candidate item = q->items[at];
    for (size_t child; (child = 2 * at + 1) < q->n; at = child) {
        if (child + 1 < q->n && goes_first(&q->items[child + 1], &q->items[child]))
            child++;
        if (!goes_first(&q->items[child], &item))
            break;
        q->items[at] = q->items[child];
    }
    q->items[at] = item;
}

static void queue_fill(struct queue *q, const struct selection *s) {
    q->n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->scores[i]))
            q->items[q->n++] = (struct candidate){.bound = s->scores[i], .index = i};
    for (size_t i = q->n / 2; i-- > 0;)
        sift_down(q, i);
}

/* References are what was tried, then what was chosen. */
static size_t reference(const struct selection *s, const size_t *chosen, size_t r) {
    return r < s->n_tried ? s->n + r : chosen[r - s->n_tried];
}

static enum status bring_up_to_date(const struct selection *s, const size_t *chosen, size_t references,
                                    struct candidate *c, struct error *err) {
    for (; c->seen < references; c->seen++) {
        double similarity;
        enum status st = s->similarity(s->context, c->index, reference(s, chosen, c->seen), &similarity, err);
        if (st)
            return st;
        c->nearest = fmax(c->nearest, similarity);
    }
    c->bound = s->scores[c->index] + s->weight * c->nearest;
    return ST_OK;
}

static enum status choose_greedily(const struct selection *s, struct queue *q, size_t k, size_t *chosen, double *cost,
                                   struct error *err) {
    size_t count = 0;
    *cost = 0;
    while (count < k) {
        struct candidate *top = &q->items[0];
        size_t references = s->weight > 0 ? s->n_tried + count : 0;
        if (top->seen < references) {
            enum status st = bring_up_to_date(s, chosen, references, top, err);
            if (st)
                return st;
        } else {
            chosen[count++] = top->index;
            *cost += top->bound;
            *top = q->items[--q->n];
        }
        if (q->n)
            sift_down(q, 0);
    }
    return ST_OK;
}

static void choose_best_scores(const struct selection *s, struct queue *q, size_t k, size_t *chosen) {
    queue_fill(q, s);
    for (size_t i = 0; i < k; i++) {
        chosen[i] = q->items[0].index;
        q->items[0] = q->items[--q->n];
        if (q->n)
            sift_down(q, 0);
    }
}

enum status selection_cost(const struct selection *s, size_t count, const size_t *chosen, double *out,
                           struct error *err) {
    double cost = 0;
    for (size_t i = 0; i < count; i++) {
        struct candidate c = {.index = chosen[i]};
        enum status st = bring_up_to_date(s, chosen, s->weight > 0 ? s->n_tried + i : 0, &c, err);
        if (st)
            return st;
        cost += c.bound;
    }
    *out = cost;
    return ST_OK;
}

/* Both ways to choose count candidates; the cheaper one ends up in greedy[]. */
static enum status choose(const struct selection *s, struct queue *q, size_t count, size_t *greedy, size_t *plain,
                          struct error *err) {
    double greedy_cost, plain_cost;
    enum status st = choose_greedily(s, q, count, greedy, &greedy_cost, err);
    if (st)
        return st;
    choose_best_scores(s, q, count, plain);
    st = selection_cost(s, count, plain, &plain_cost, err);
    if (!st && plain_cost < greedy_cost)
        memcpy(greedy, plain, count * sizeof *greedy);
    return st;
}

enum status selection_choose(const struct selection *s, size_t k, size_t *chosen, size_t *count, struct error *err) {
    if (!(s->weight >= 0) || !isfinite(s->weight))
        return error_set(err, ST_INVALID, "the weight of similarity is %g; it must be 0 or more", s->weight);
    struct queue q = {.items = calloc(s->n + 1, sizeof *q.items)};
    size_t *picks = calloc(2 * (s->n + 1), sizeof *picks);
    enum status st = q.items && picks ? ST_OK : error_no_memory(err);
    if (!st) {
        queue_fill(&q, s);
        size_t n = q.n < k ? q.n : k;
        st = choose(s, &q, n, picks, picks + n, err);
        if (!st) {
            memcpy(chosen, picks, n * sizeof *chosen);
            *count = n;
        }
    }
    free(q.items);
    free(picks);
    return st;
}

/* ---- ranks ---- */

struct ranked {
    double score;
    size_t index;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

enum status selection_ranks(size_t n, const double *scores, double *ranks, struct error *err) {
    struct ranked *sorted = calloc(n + 1, sizeof *sorted);
    size_t m = 0;
    if (!sorted)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        ranks[i] = INFINITY;
        if (isfinite(scores[i]))
            sorted[m++] = (struct ranked){scores[i], i};
    }
    qsort(sorted, m, sizeof *sorted, compare_ranked);
    for (size_t i = 0, end; i < m; i = end) {
        for (end = i + 1; end < m && sorted[end].score <= sorted[i].score;)
            end++;
        double rank = m > 1 ? 0.5 * (double)(i + end - 1) / (double)(m - 1) : 0;
        for (size_t j = i; j < end; j++)
            ranks[sorted[j].index] = rank;
    }
    free(sorted);
    return ST_OK;
}

/* ---- similarities ---- */

enum status selection_similarity_of_strategies(const void *context, size_t a, size_t b, double *out,
                                               struct error *err) {
    const struct selection_strategies *s = context;
    return space_similarity(s->space, s->items[a], s->items[b], out, err);
}
