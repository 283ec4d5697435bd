/* Curves of random tables: isotonic regression by its max-min formula, and what must hold whatever was measured. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "strategy/cost/curve.h"
#include "tests/support/check.h"

enum { TABLES = 3000, MOST = 24, FAMILY = 4, PROBES = 60 };

struct random_table {
    double bytes[MOST], time_us[MOST];
    struct curve_table table;
};

/* Sizes that share a grid with other tables, times that rise with noise, steps and flat stretches. */
static void random_table(struct rng *rng, uint32_t least, double noise, struct random_table *out) {
    uint32_t n = 0;
    double kept = rng_between(rng, 0.3, 1), time = rng_log_between(rng, 1, 1e4);
    for (uint32_t i = 0; i < MOST; i++) {
        time *= rng_uniform(rng) < 0.3 ? 1 : rng_log_between(rng, 1, rng_uniform(rng) < 0.1 ? 20 : 2);
        if (rng_uniform(rng) > kept && i + least < MOST + n)
            continue;
        out->bytes[n] = 64 * exp2(i);
        out->time_us[n++] = time * exp(noise * rng_normal(rng));
    }
    out->table = (struct curve_table){n, out->bytes, out->time_us};
}

static struct curve curve_of(struct arena *arena, uint32_t n, const struct curve_table *tables, uint32_t which) {
    struct error err;
    struct curve curve;
    assert_ok(curve_init(&curve, n, tables, which, arena, &err));
    return curve;
}

/* Least squares among those that never fall: at i the largest, over starts up to i, of the smallest mean from there to
 * an end from i on. O(n³) */
static double isotonic_at(const struct curve_table *table, uint32_t i) {
    double most = -INFINITY;
    for (uint32_t from = 0; from <= i; from++) {
        double sum = 0, least = INFINITY;
        for (uint32_t to = from; to < table->n; to++) {
            sum += log(table->time_us[to]);
            if (to >= i)
                least = fmin(least, sum / (to - from + 1));
        }
        most = fmax(most, least);
    }
    return exp(most);
}

static void points_are_the_isotonic_regression_of_relative_errors(void **state) {
    struct rng rng;
    uint32_t moved = 0, points = 0;
    (void)state;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < TABLES; t++) {
        struct arena arena = {0};
        struct random_table r;
        random_table(&rng, 1, t % 2 ? 0.5 : 0.02, &r);
        struct curve curve = curve_of(&arena, 1, &r.table, 0);
        assert_int_equal(curve.n, r.table.n);
        for (uint32_t i = 0; i < curve.n; i++) {
            assert_close(curve.time_us[i], isotonic_at(&r.table, i), 1e-9);
            assert_true(curve_us(&curve, curve.bytes[i]) == curve.time_us[i]);
            moved += fabs(curve.time_us[i] / r.table.time_us[i] - 1) > 1e-12;
        }
        points += curve.n;
        arena_release(&arena);
    }
    printf("%u of %u points fell and were pooled\n", moved, points);
    assert_true(moved > 0 && moved < points);
}

/* Between sizes one byte apart at most the steepest slope; never falling; the least time a byte is below all. */
static void check_shape(struct rng *rng, const struct curve *curve) {
    double steepest = curve->tail_per_byte_us, last = curve->bytes[curve->n - 1];
    for (uint32_t i = 0; i + 1 < curve->n; i++)
        steepest =
            fmax(steepest, (curve->time_us[i + 1] - curve->time_us[i]) / (curve->bytes[i + 1] - curve->bytes[i]));
    for (int p = 0; p < PROBES; p++) {
        double bytes = p % 3 ? rng_log_between(rng, 1, 10 * last) : curve->bytes[rng_below(rng, curve->n)];
        double step = bytes * 1e-6, here = curve_us(curve, bytes), on = curve_us(curve, bytes + step);
        double before = curve_us(curve, bytes - step);
        assert_true(before <= here && here <= on);
        assert_true(on - here <= steepest * step * (1 + 1e-6) + 1e-12 * on);
        assert_true(here - before <= steepest * step * (1 + 1e-6) + 1e-12 * here);
        assert_true(here >= curve->least_per_byte_us * bytes * (1 - 1e-12));
    }
    assert_true(curve_us(curve, curve->bytes[0] / 2) == curve->time_us[0]);
    assert_true(curve->tail_per_byte_us > 0);
    assert_close(curve_us(curve, 3 * last), curve->time_us[curve->n - 1] + 2 * last * curve->tail_per_byte_us, 1e-12);
}

static bool has_size(const struct curve_table *table, double bytes) {
    for (uint32_t i = 0; i < table->n; i++)
        if (table->bytes[i] >= bytes && table->bytes[i] <= bytes)
            return true;
    return false;
}

static void curves_of_a_family_keep_their_own_points_and_are_whole(void **state) {
    struct rng rng;
    uint32_t filled = 0;
    (void)state;
    rng_seed(&rng, test_seed() + 1);
    for (int t = 0; t < TABLES; t++) {
        struct arena arena = {0};
        struct random_table r[FAMILY];
        struct curve_table tables[FAMILY];
        for (int f = 0; f < FAMILY; f++) {
            random_table(&rng, f == 0, t % 2 ? 0.3 : 0, &r[f]);
            tables[f] = r[f].table;
        }
        struct curve alone = curve_of(&arena, 1, tables, 0), curve = curve_of(&arena, FAMILY, tables, 0);
        check_shape(&rng, &alone);
        check_shape(&rng, &curve);
        assert_true(curve.n >= alone.n && curve.bytes[0] <= alone.bytes[0]);
        for (uint32_t i = 0; i < alone.n; i++)
            assert_close(curve_us(&curve, alone.bytes[i]), alone.time_us[i], 1e-12);
        for (uint32_t i = 0; i < curve.n; i++) {
            bool known = has_size(&tables[0], curve.bytes[i]);
            for (int f = 1; f < FAMILY && !known; f++)
                known = has_size(&tables[f], curve.bytes[i]);
            assert_true(known);
        }
        filled += curve.n - alone.n;
        arena_release(&arena);
    }
    printf("%u gaps filled in %d curves\n", filled, TABLES);
    assert_true(filled > 0);
}

/* One law of sizes times any power of bytes: what a table lacks, another tells exactly. */
static void tables_of_one_shape_tell_each_other_everything(void **state) {
    struct rng rng;
    (void)state;
    rng_seed(&rng, test_seed() + 2);
    for (int t = 0; t < TABLES; t++) {
        struct arena arena = {0};
        struct random_table whole, part;
        random_table(&rng, MOST, 0, &whole);
        double factor = rng_log_between(&rng, 0.1, 10), power = rng_between(&rng, 0, 0.5);
        uint32_t n = 0;
        for (uint32_t i = 0; i < MOST; i++) {
            if (i > 0 && i + 1 < MOST && rng_below(&rng, 2))
                continue;
            part.bytes[n] = whole.bytes[i];
            part.time_us[n++] = factor * pow(whole.bytes[i], power) * whole.time_us[i];
        }
        const struct curve_table tables[] = {whole.table, {n, part.bytes, part.time_us}};
        struct curve curve = curve_of(&arena, 2, tables, 1);
        assert_int_equal(curve.n, MOST);
        for (uint32_t i = 0; i < MOST; i++)
            assert_close(curve.time_us[i], factor * pow(whole.bytes[i], power) * whole.time_us[i], 1e-9);
        arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_the_isotonic_regression_of_relative_errors),
        cmocka_unit_test(curves_of_a_family_keep_their_own_points_and_are_whole),
        cmocka_unit_test(tables_of_one_shape_tell_each_other_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
