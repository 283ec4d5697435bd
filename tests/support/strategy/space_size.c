/* How many strategies there are.
 *
 * Let x be the settings of one merge group (algorithms × partition sizes × encodings), a_i the cuts of variable i,
 * and p_i the ways to put it on servers: cuts with ordered lists of at most `shards` distinct servers, times local
 * reduction, partition sizes and encodings. With m of the variables in groups there are T_m(x) = Σ_k S(m,k) x^k
 * ways to group them (Touchard polynomial over Stirling numbers), so the count is the sum over subsets A of
 * Π_{i not in A} p_i · Π_{i in A} a_i · T_|A|(x). Dobinski's formula T_m(x) = e^-x Σ_k k^m x^k / k! and linearity
 * turn the sum over subsets into
 *
 *     e^-x Σ_k x^k/k! Π_i (p_i + a_i k),
 *
 * one such factor a dtype, because groups do not mix dtypes, times the schedules. Pushes that variables share are left
 * out. Exact without encodings, sizes being counted in factors of two; encoded variables of different dtypes that could
 * share a group make it slightly low. Terms are summed in logarithms from k = 0 until they no longer matter, in strides
 * for large models. */
#include "tests/support/strategy/space_size.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static double log_add(double a, double b) {
    double high = a > b ? a : b;
    return isinf(high) ? high : high + log1p(exp((a > b ? b : a) - high));
}

/* Sizes in factors of two from min to max. */
static double count_sizes(uint64_t min, uint64_t max) {
    return floor(log2((double)max / (double)min)) + 1.0;
}

static double count_partitions(const struct space_options *o) {
    return o->whole_messages ? 1.0 : count_sizes(o->min_partition_bytes, o->max_partition_bytes) + 1.0;
}

static double count_credits(const struct space_options *o) {
    if (o->usual_credit)
        return (o->all_reduce ? 1.0 : 0.0) + (o->parameter_server ? 1.0 : 0.0);
    return count_sizes(o->min_credit_bytes, o->max_credit_bytes) + 2.0;
}

/* log_lists[s], s = 1..max_shards: ordered lists of 1..min(s, nodes) distinct nodes. */
static double *server_lists(const struct space *space) {
    uint32_t n = space->cluster->n_nodes, most = space->options.max_shards;
    double *lists = calloc((size_t)most + 1, sizeof *lists), arrangements = 0.0;
    if (!lists)
        return NULL;
    lists[0] = -INFINITY;
    for (uint32_t s = 1; s <= most; s++) {
        arrangements += s <= n ? log((double)(n - s + 1)) : 0.0;
        lists[s] = s <= n ? log_add(lists[s - 1], arrangements) : lists[s - 1];
    }
    for (uint32_t s = 2; s <= most; s++) /* now the sum over shard numbers 2..s: what one axis offers */
        lists[s] = s == 2 ? lists[2] : log_add(lists[s - 1], lists[s]);
    return lists;
}

struct choices {
    enum dtype dtype;
    double log_servers; /* log p_i */
    double cuts;        /* a_i */
    uint32_t times;     /* variables with these choices */
};

static double encodings_of(const struct space *space, const struct variable *v) {
    return space_may_encode(v) ? __builtin_popcount(space->options.encodings) : 1.0;
}

static struct choices choices_of(const struct space *space, const struct variable *v, const double *lists) {
    const struct space_options *o = &space->options;
    double sizes = count_partitions(o);
    double local = space->several_devices ? 2.0 : 1.0;
    struct choices c = {.dtype = v->dtype, .cuts = 1.0, .log_servers = lists[1], .times = 1};
    for (uint32_t a = 0; a < v->rank; a++) {
        uint32_t most = space_max_shards(space, v, a);
        c.cuts += most - 1;
        if (most > 1)
            c.log_servers = log_add(c.log_servers, lists[most]);
    }
    c.log_servers = o->parameter_server ? c.log_servers + log(sizes * local * encodings_of(space, v)) : -INFINITY;
    return c;
}

static int compare_choices(const void *a, const void *b) {
    const struct choices *x = a, *y = b;
    if (x->dtype != y->dtype)
        return x->dtype < y->dtype ? -1 : 1;
    if (x->cuts != y->cuts)
        return x->cuts < y->cuts ? -1 : 1;
    return (x->log_servers > y->log_servers) - (x->log_servers < y->log_servers);
}

/* Put equal choices together; returns how many different ones there are. */
static uint32_t fold_choices(struct choices *c, uint32_t n) {
    uint32_t kept = 0;
    qsort(c, n, sizeof *c, compare_choices);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && !compare_choices(&c[kept - 1], &c[i]))
            c[kept - 1].times++;
        else
            c[kept++] = c[i];
    }
    return kept;
}

static double log_term(const struct choices *c, uint32_t n, double x, double k) {
    double sum = k * log(x) - lgamma(k + 1.0) - x;
    for (uint32_t i = 0; i < n; i++)
        sum += c[i].times * log_add(c[i].log_servers, k > 0.0 ? log(c[i].cuts * k) : -INFINITY);
    return sum;
}

/* The sum over k for the variables of one dtype; terms rise to one peak and fall. */
static double log_count(const struct choices *c, uint32_t n, double x) {
    double sum = -INFINITY, peak = -INFINITY, variables = 0.0;
    for (uint32_t i = 0; i < n; i++)
        variables += c[i].times;
    double stride = floor(sqrt(variables + x) / 64.0) + 1.0;
    for (double k = 0.0;; k += stride) {
        double term = log_term(c, n, x, k) + log(stride);
        sum = log_add(sum, term);
        if (term < peak - 45.0 && k > x)
            return sum;
        peak = term > peak ? term : peak;
    }
}

static double log_servers_only(const struct choices *c, uint32_t n) {
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += c[i].times * c[i].log_servers;
    return sum;
}

static double log_schedules(const struct space_options *o) {
    return log(__builtin_popcount(o->policies) * count_credits(o) * (o->cross_iteration ? 2.0 : 1.0));
}

static double sum_dtypes(const struct space *space, const struct choices *c, uint32_t n) {
    const struct space_options *o = &space->options;
    double sum = log_schedules(o);
    double sizes = count_partitions(o);
    for (uint32_t i = 0, end; i < n; i = end) {
        struct variable like = {.dtype = c[i].dtype};
        double x = __builtin_popcount(o->algorithms) * sizes * encodings_of(space, &like);
        for (end = i + 1; end < n && c[end].dtype == c[i].dtype;)
            end++;
        sum += o->all_reduce ? log_count(c + i, end - i, x) : log_servers_only(c + i, end - i);
    }
    return sum;
}

enum status space_log10_size(const struct space *space, double *out, struct error *err) {
    uint32_t n = space->model->n_variables;
    double *lists = server_lists(space);
    struct choices *c = calloc(n, sizeof *c);
    if (lists && c) {
        for (uint32_t i = 0; i < n; i++)
            c[i] = choices_of(space, &space->model->variables[i], lists);
        *out = sum_dtypes(space, c, fold_choices(c, n)) / log(10.0);
    }
    enum status st = lists && c ? ST_OK : error_no_memory(err);
    free(lists);
    free(c);
    return st;
}
