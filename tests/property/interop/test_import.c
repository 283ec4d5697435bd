/* Random tables written in another tool's format are read back with the same numbers: PipeDream profiles, tensor
 * tables, rows of nccl-tests in each of its versions, host files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/interop/imports.h"

enum { INSTANCES = 120, MAX_ITEMS = 40, TEXT = 1 << 16 };

struct text {
    char bytes[TEXT];
    size_t n;
};

static void append(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->n += (size_t)vsnprintf(t->bytes + t->n, TEXT - t->n, format, args);
    va_end(args);
    assert_true(t->n < TEXT);
}

/* What was written. */
struct item {
    uint64_t elements;
    double forward_us, backward_us;
};

static size_t draw_items(struct rng *rng, struct item *items) {
    const size_t n = 1 + rng_below(rng, MAX_ITEMS);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct item){1 + rng_below(rng, 1000000), (double)rng_below(rng, 1000000),
                                 (double)rng_below(rng, 1000000)};
    return n;
}

/* Layer i feeds layer i + 1, and perhaps a later one too; lines come in any order. */
static void write_profile(struct text *t, struct rng *rng, size_t n, const struct item *items, bool *skips) {
    uint32_t order[MAX_ITEMS];
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(rng, n, order);
    for (size_t k = 0; k < n; k++) {
        const struct item *x = &items[order[k]];
        append(t,
               "node%u -- L(%u) -- forward_compute_time=%.3f, backward_compute_time=%.3f, activation_size=1.0, "
               "parameter_size=%.3f\n",
               order[k] + 1, order[k], x->forward_us / 1e3, x->backward_us / 1e3, (double)(4 * x->elements));
    }
    for (size_t k = 0; k < n; k++) {
        const uint32_t i = order[k];
        skips[i] = i + 2 < n && rng_below(rng, 3) == 0;
        if (i + 1 < n)
            append(t, "\tnode%u -- node%u\n", i + 1, i + 2);
        if (skips[i])
            append(t, "\tnode%u -- node%u\n", i + 1, i + 3);
    }
}

static void check_profile(const struct model *m, size_t n, const struct item *items, const bool *skips) {
    assert_int_equal(m->n_operators, 2 * n);
    assert_int_equal(m->n_variables, n);
    for (size_t i = 0; i < n; i++) {
        char name[64];
        const struct operator* forward = & m->operators[m->order[i]],
                               *backward = &m->operators[m->order[2 * n - 1 - i]];
        snprintf(name, sizeof name, "node%zu.parameters", i + 1);
        const int64_t v = model_find_variable(m, name);
        assert_true(v >= 0);
        assert_int_equal(m->variables[v].elements, items[i].elements);
        assert_close(forward->time_us, items[i].forward_us, 0);
        assert_close(backward->time_us, items[i].backward_us, 0);
        assert_int_equal(backward->produces[0], v);
        assert_int_equal(forward->n_after, (i > 0) + (i > 1 && skips[i - 2]));
        assert_int_equal(backward->n_after, (i + 1 < n) + skips[i]);
    }
}

static void profiles_are_read_back(void **state) {
    (void)state;
    static struct text t;
    for (uint64_t k = 0; k < INSTANCES; k++) {
        struct rng rng;
        struct item items[MAX_ITEMS];
        bool skips[MAX_ITEMS];
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        struct model m;
        struct error err;
        rng_split(&rng, test_seed(), k);
        t.n = 0;
        const size_t n = draw_items(&rng, items);
        write_profile(&t, &rng, n, items, skips);
        assert_ok(import_model_text(t.bytes, &(struct import_settings){.batch = 1}, &notes, &m, &err));
        check_profile(&m, n, items, skips);
        model_release(&m);
        arena_release(&arena);
    }
}

static void tensor_tables_are_read_back(void **state) {
    (void)state;
    static struct text t;
    for (uint64_t k = 0; k < INSTANCES; k++) {
        struct rng rng;
        struct item items[MAX_ITEMS];
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        struct model m;
        struct error err;
        double ready = 0;
        rng_split(&rng, test_seed(), INSTANCES + k);
        t.n = 0;
        const size_t n = draw_items(&rng, items);
        append(&t, "index,tensor,elements,bytes_fp32,ready_gap_us,ready_us\n");
        for (size_t i = 0; i < n; i++) {
            ready += items[i].backward_us;
            append(&t, "%zu,t%zu,%lu,%lu,%.0f,%.0f\n", i, i, (unsigned long)items[i].elements,
                   (unsigned long)(4 * items[i].elements), items[i].backward_us, ready);
        }
        assert_ok(import_model_text(t.bytes, &(struct import_settings){.batch = 1}, &notes, &m, &err));
        assert_int_equal(m.n_operators, 2 * n);
        for (size_t i = 0; i < n; i++) {
            const struct operator* backward = & m.operators[m.order[n + i]];
            assert_close(backward->time_us, items[i].backward_us, 0);
            assert_close(m.operators[m.order[n - 1 - i]].time_us, items[i].backward_us / 2, 1e-12);
            assert_int_equal(m.variables[backward->produces[0]].elements, items[i].elements);
        }
        model_release(&m);
        arena_release(&arena);
    }
}

/* As nccl-tests: seven columns, two digits where they fit. */
static void append_time(struct text *t, double us) {
    append(t, us < 1e4 ? " %7.2f" : us < 1e5 ? " %7.1f" : " %7.0f", us);
}

enum style { STYLE_OLD, STYLE_ROOT, STYLE_ITERATIONS, STYLE_COUNT };

static void append_part(struct text *t, enum style style, double us, uint64_t bytes, uint64_t ranks) {
    const double alg = (double)bytes / us / 1e3;
    append_time(t, us);
    append(t, " %6.2f %6.2f %s", alg, alg * 2 * ((double)ranks - 1) / (double)ranks,
           style == STYLE_OLD ? "2e-07" : "0");
    if (style == STYLE_ITERATIONS)
        append(t, " 1.00 2.00 3.00 4.00");
}

static void append_noise(struct text *t, struct rng *rng) {
    static const char *const noise[] = {"host:7:7 [0] NCCL INFO Channel 00/02 : 0 1 2 3\n", "# a comment\n", "\n",
                                        "[1,3]<stderr>:host:7:7 [0] NCCL INFO comm 0x1 rank 3 nranks 4\n"};
    if (rng_below(rng, 4) == 0)
        append(t, "%s", noise[rng_below(rng, 4)]);
}

static double printed(double us) { /* what append_time leaves of a time */
    const double step = us < 1e4 ? 100 : us < 1e5 ? 10 : 1;
    return round(us * step) / step;
}

static void rows_of_every_version_are_read_back(void **state) {
    (void)state;
    static struct text t;
    for (uint64_t k = 0; k < INSTANCES; k++) {
        struct rng rng;
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        struct cluster c;
        struct error err;
        double times[MAX_ITEMS];
        rng_split(&rng, test_seed(), 2 * INSTANCES + k);
        const enum style style = (enum style)rng_below(&rng, STYLE_COUNT);
        const uint64_t ranks = 2 + rng_below(&rng, 30), n = 1 + rng_below(&rng, 30);
        const bool prefix = rng_below(&rng, 2), stamp = rng_below(&rng, 2) && style != STYLE_OLD;
        t.n = 0;
        for (uint64_t r = 0; r < ranks; r++)
            append(&t, "#  Rank %2lu Pid %lu on host%lu device 0 [0x%lx] X 1\n", (unsigned long)r,
                   (unsigned long)r + 100, (unsigned long)r, (unsigned long)r);
        append(&t, "# size count time algbw busbw\n");
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t bytes = UINT64_C(4) << i;
            times[i] = rng_log_between(&rng, 5, 1e6);
            append_noise(&t, &rng);
            append(&t, "%s %12lu %12lu float sum%s", prefix ? "[1,0]<stdout>:" : "", (unsigned long)bytes,
                   (unsigned long)bytes / 4, style == STYLE_OLD ? "" : "     -1");
            append_part(&t, style, 1.5 * times[i], bytes, ranks);
            append_part(&t, style, times[i], bytes, ranks);
            append(&t, "%s\n", stamp ? "  2025-02-03 04:05:06" : "");
        }
        const char *const texts[] = {t.bytes, NULL};
        assert_ok(import_cluster_texts(texts, &(struct import_settings){.nic_gbit_per_s = 1}, &notes, &c, &err));
        assert_int_equal(c.n_nodes, ranks);
        assert_int_equal(c.n_measurements, n);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_equal(c.measurements[i].bytes, UINT64_C(4) << i);
            assert_int_equal(c.measurements[i].devices, ranks);
            assert_close(c.measurements[i].time_us, printed(times[i]), 1e-12);
        }
        cluster_release(&c);
        arena_release(&arena);
    }
}

static void host_files_are_read_back(void **state) {
    (void)state;
    static struct text t;
    for (uint64_t k = 0; k < INSTANCES; k++) {
        struct rng rng;
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        struct cluster c;
        struct error err;
        uint64_t slots[MAX_ITEMS];
        rng_split(&rng, test_seed(), 3 * INSTANCES + k);
        const size_t n = 1 + rng_below(&rng, MAX_ITEMS);
        t.n = 0;
        for (size_t i = 0; i < n; i++) {
            slots[i] = 1 + rng_below(&rng, 64);
            append(&t, rng_below(&rng, 2) ? "h-%zu slots=%lu\n" : "h-%zu:%lu   # a host\n", i, (unsigned long)slots[i]);
        }
        const char *const texts[] = {t.bytes, NULL};
        const struct import_settings settings = {.nic_gbit_per_s = 1, .device_link_gbyte_per_s = 1};
        assert_ok(import_cluster_texts(texts, &settings, &notes, &c, &err));
        assert_int_equal(c.n_nodes, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(c.nodes[i].devices, slots[i]);
        cluster_release(&c);
        arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_read_back),
        cmocka_unit_test(tensor_tables_are_read_back),
        cmocka_unit_test(rows_of_every_version_are_read_back),
        cmocka_unit_test(host_files_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
