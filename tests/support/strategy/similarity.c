/* How alike two strategies are, for choosing candidates that are good and different (AutoSync §3.2).
 *
 * Group numbers mean nothing across strategies, so two merge groups are compared by their members: Jaccard's index
 * |A ∩ B| / |A ∪ B|, found for all pairs of groups at once by sorting the variables by (group in a, group in b).
 * Sizes are compared by their ratio: equal is 1, a factor of 2^10 or more, or on against off, is 0. Of variables whose
 * shards differ only the first shard is compared. */
#include "tests/support/strategy/similarity.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static double size_likeness(uint64_t a, uint64_t b) {
    if (a == b)
        return 1.0;
    if (!a || !b || a == CREDIT_UNLIMITED || b == CREDIT_UNLIMITED)
        return 0.0;
    double likeness = 1.0 - fabs(log2((double)a / (double)b)) / 10.0;
    return likeness > 0.0 ? likeness : 0.0;
}

static double schedule_likeness(const struct strategy *a, const struct strategy *b) {
    double policy = a->policy == b->policy ? size_likeness(a->n_slices, b->n_slices) : 0.0;
    if (a->pulls_by_priority != b->pulls_by_priority)
        policy /= 2;
    return (policy + (a->cross_iteration == b->cross_iteration) + size_likeness(a->credit_bytes, b->credit_bytes)) /
           3.0;
}

static bool same_cut(const struct variable_sync *a, const struct variable_sync *b) {
    return a->shards == b->shards && (a->shards == 1 || a->axis == b->axis);
}

static double server_likeness(const struct variable_sync *a, const struct variable_sync *b) {
    uint32_t same = 0, most = a->n_servers > b->n_servers ? a->n_servers : b->n_servers;
    for (uint32_t k = 0; k < a->n_servers && k < b->n_servers; k++)
        same += a->servers[k] == b->servers[k];
    return 0.25 * same_cut(a, b) + 0.3 * same / most + 0.1 * (a->push == b->push) +
           0.1 * (a->local_reduction == b->local_reduction) +
           0.15 * size_likeness(a->partition_bytes, b->partition_bytes) +
           0.1 * (a->encoding == b->encoding && a->figure == b->figure);
}

/* A variable that both strategies all-reduce. */
struct pair {
    uint32_t a, b, variable;
};

static int compare_pairs(const void *x, const void *y) {
    const struct pair *p = x, *q = y;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

static double group_likeness(const struct strategy *a, const struct strategy *b, const struct pair *p, double jaccard) {
    const struct variable_sync *x = &a->variables[p->variable], *y = &b->variables[p->variable];
    const struct group *g = &a->groups[p->a], *h = &b->groups[p->b];
    return 0.5 * jaccard + 0.15 * (g->algorithm == h->algorithm) +
           0.15 * size_likeness(g->partition_bytes, h->partition_bytes) + 0.1 * same_cut(x, y) +
           0.1 * (x->encoding == y->encoding && x->figure == y->figure);
}

/* Members a group, counted for both strategies; calloc'd. */
static uint32_t *count_members(const struct strategy *s) {
    uint32_t *count = calloc((size_t)s->n_groups + 1, sizeof *count);
    for (uint32_t v = 0; count && v < s->n_variables; v++)
        if (s->variables[v].kind == SYNC_ALL_REDUCE)
            count[s->variables[v].group]++;
    return count;
}

static double sum_groups(const struct strategy *a, const struct strategy *b, const struct pair *pairs, uint32_t n,
                         const uint32_t *in_a, const uint32_t *in_b) {
    double sum = 0.0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !compare_pairs(&pairs[i], &pairs[end]);)
            end++;
        double both = end - i, jaccard = both / (in_a[pairs[i].a] + in_b[pairs[i].b] - both);
        for (uint32_t k = i; k < end; k++)
            sum += group_likeness(a, b, &pairs[k], jaccard);
    }
    return sum;
}

enum status space_similarity(const struct space *space, const struct strategy *a, const struct strategy *b, double *out,
                             struct error *err) {
    uint32_t n = space->model->n_variables, n_pairs = 0;
    struct pair *pairs = calloc(n, sizeof *pairs);
    uint32_t *in_a = count_members(a), *in_b = count_members(b);
    double sum = 0.0;
    enum status st = pairs && in_a && in_b ? ST_OK : error_no_memory(err);
    for (uint32_t v = 0; v < n && !st; v++) {
        const struct variable_sync *x = &a->variables[v], *y = &b->variables[v];
        if (x->kind != y->kind)
            continue;
        if (x->kind == SYNC_PARAMETER_SERVER)
            sum += server_likeness(x, y);
        else
            pairs[n_pairs++] = (struct pair){x->group, y->group, v};
    }
    if (!st) {
        qsort(pairs, n_pairs, sizeof *pairs, compare_pairs);
        sum += sum_groups(a, b, pairs, n_pairs, in_a, in_b);
        *out = 0.75 * sum / n + 0.25 * schedule_likeness(a, b);
    }
    free(pairs);
    free(in_a);
    free(in_b);
    return st;
}
