/* Isotonic regression by pooling adjacent violators (Barlow, Bartholomew, Bremner and Brunk, Statistical Inference
 * under Order Restrictions, 1972, §1.2), on logarithms, in O(points). Points are read from the left. A point below the
 * pool before it joins that pool. A pool that falls below the one before it joins that one. This is done before gaps
 * are filled, and again after. A filled-in point lies between the ends of its gap, so the second time moves no measured
 * point.
 */
#include "strategy/cost/curve.h"

#include <math.h>
#include <stdbool.h>

#include "base/statistics.h"

/* The last of n >= 1 rising numbers that is at most x, but not the very last; 0 if there is none. */
static uint32_t place_below(uint32_t n, const double *rising, double x) {
    uint32_t low = 0, high = n - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(rising[middle] <= x ? &low : &high) = middle;
    }
    return low;
}

/* The straight piece from point i to the next. */
static double piece_us(const double *bytes, const double *time_us, uint32_t i, double x) {
    double part = (x - bytes[i]) / (bytes[i + 1] - bytes[i]);
    return part < 1 ? time_us[i] + part * (time_us[i + 1] - time_us[i]) : time_us[i + 1];
}

/* ---- points that never fall ---- */

struct pool {
    uint32_t n;
    double time_us;
};

static struct pool pool_joined(struct pool a, struct pool b) {
    double n = a.n + b.n;
    return (struct pool){a.n + b.n, pow(a.time_us, a.n / n) * pow(b.time_us, b.n / n)};
}

/* pools: [n] of scratch. */
static void make_monotone(uint32_t n, double *time_us, struct pool *pools) {
    uint32_t n_pools = 0, at = 0;
    for (uint32_t i = 0; i < n; i++) {
        pools[n_pools++] = (struct pool){1, time_us[i]};
        for (; n_pools > 1 && pools[n_pools - 2].time_us > pools[n_pools - 1].time_us; n_pools--)
            pools[n_pools - 2] = pool_joined(pools[n_pools - 2], pools[n_pools - 1]);
    }
    for (uint32_t p = 0; p < n_pools; p++)
        for (uint32_t k = 0; k < pools[p].n; k++)
            time_us[at++] = pools[p].time_us;
}

/* ---- gaps ---- */

/* The time at a size between own points i and i + 1 that follows from `other`; NAN when `other` lacks that size or does
 * not span the gap. */
static double likened_us(const struct curve_table *own, uint32_t i, const struct curve_table *other, double bytes) {
    double from = own->bytes[i], to = own->bytes[i + 1];
    if (other->n < 2 || other->bytes[0] > from || other->bytes[other->n - 1] < to)
        return NAN;
    uint32_t at = place_below(other->n, other->bytes, bytes);
    if (other->bytes[at] < bytes)
        return NAN;
    double part = log(bytes / from) / log(to / from);
    double at_from = piece_us(other->bytes, other->time_us, place_below(other->n, other->bytes, from), from);
    double at_to = piece_us(other->bytes, other->time_us, place_below(other->n, other->bytes, to), to);
    return other->time_us[at] * pow(own->time_us[i] / at_from, 1 - part) * pow(own->time_us[i + 1] / at_to, part);
}

/* The geometric mean of the times that follow from the other tables, kept between the ends of the gap; NAN when no
 * table has the size. */
static double filled_us(const struct curve_table *own, uint32_t i, uint32_t n_tables, const struct curve_table *tables,
                        uint32_t which, double bytes) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t t = 0; t < n_tables; t++) {
        double time_us = t != which ? likened_us(own, i, &tables[t], bytes) : NAN;
        if (isnan(time_us))
            continue;
        sum += log(time_us);
        n++;
    }
    return n ? fmin(fmax(exp(sum / n), own->time_us[i]), own->time_us[i + 1]) : NAN;
}

/* All sizes of all tables within the range of `which`, rising, each once. */
static uint32_t list_sizes(uint32_t n_tables, const struct curve_table *tables, uint32_t which, double *sizes) {
    const struct curve_table *own = &tables[which];
    uint32_t n = 0, unique = 0;
    for (uint32_t t = 0; t < n_tables; t++)
        for (uint32_t i = 0; i < tables[t].n; i++)
            if (tables[t].bytes[i] >= own->bytes[0] && tables[t].bytes[i] <= own->bytes[own->n - 1])
                sizes[n++] = tables[t].bytes[i];
    numbers_sort(n, sizes);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || sizes[i] > sizes[i - 1])
            sizes[unique++] = sizes[i];
    return unique;
}

/* Replace the list of sizes by the points of the curve: the table's own points, and those that fill its gaps. Returns
 * how many. */
static uint32_t join(const struct curve_table *own, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                     uint32_t n_sizes, double *sizes, double *time_us) {
    uint32_t n = 0, next = 0;
    for (uint32_t s = 0; s < n_sizes; s++) {
        bool measured = sizes[s] >= own->bytes[next];
        double time = measured ? own->time_us[next] : filled_us(own, next - 1, n_tables, tables, which, sizes[s]);
        next += measured;
        if (isnan(time))
            continue;
        sizes[n] = sizes[s];
        time_us[n++] = time;
    }
    return n;
}

/* ---- the curve ---- */

static double tail_of(uint32_t n, const double *bytes, const double *time_us) {
    uint32_t from = place_below(n, bytes, bytes[n - 1] / 2);
    double slope = n > 1 ? (time_us[n - 1] - time_us[from]) / (bytes[n - 1] - bytes[from]) : 0;
    return slope > 0 ? slope : time_us[n - 1] / bytes[n - 1];
}

static struct curve finished(uint32_t n, const double *bytes, const double *time_us) {
    struct curve curve = {.n = n, .bytes = bytes, .time_us = time_us, .tail_per_byte_us = tail_of(n, bytes, time_us)};
    curve.least_per_byte_us = curve.tail_per_byte_us;
    for (uint32_t i = 0; i < n; i++)
        curve.least_per_byte_us = fmin(curve.least_per_byte_us, time_us[i] / bytes[i]);
    return curve;
}

enum status curve_init(struct curve *out, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                       struct arena *arena, struct error *err) {
    size_t most = 0, n_own = tables[which].n;
    for (uint32_t t = 0; t < n_tables; t++)
        most += tables[t].n;
    if (n_own == 0) {
        *out = (struct curve){.n = 0};
        return ST_OK;
    }
    double *sizes = arena_alloc(arena, most, sizeof *sizes), *time_us = arena_alloc(arena, most, sizeof *time_us);
    double *own_us = arena_alloc(arena, n_own, sizeof *own_us);
    struct pool *pools = arena_alloc(arena, most, sizeof *pools);
    if (!sizes || !time_us || !own_us || !pools)
        return error_no_memory(err);
    struct curve_table own = {(uint32_t)n_own, tables[which].bytes, own_us};
    for (uint32_t i = 0; i < own.n; i++)
        own_us[i] = tables[which].time_us[i];
    make_monotone(own.n, own_us, pools);
    uint32_t n = join(&own, n_tables, tables, which, list_sizes(n_tables, tables, which, sizes), sizes, time_us);
    make_monotone(n, time_us, pools);
    *out = finished(n, sizes, time_us);
    return ST_OK;
}

double curve_us(const struct curve *curve, double bytes) {
    uint32_t last = curve->n - 1;
    if (bytes <= curve->bytes[0])
        return curve->time_us[0];
    if (bytes >= curve->bytes[last])
        return curve->time_us[last] + curve->tail_per_byte_us * (bytes - curve->bytes[last]);
    return piece_us(curve->bytes, curve->time_us, place_below(curve->n, curve->bytes, bytes), bytes);
}

uint32_t curve_point_below(const struct curve *curve, double bytes) {
    uint32_t last = curve->n - 1;
    return bytes >= curve->bytes[last] ? last : place_below(curve->n, curve->bytes, bytes);
}
