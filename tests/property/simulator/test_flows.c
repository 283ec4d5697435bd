/* Max-min fairness by its definition, while flows come and go: capacities hold, and every flow has a full resource on
 * which none is faster. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/rng.h"
#include "simulator/flows.h"
#include "simulator/ready_set.h"
#include "tests/support/check.h"

enum { INSTANCES = 2000, CHANGES = 20, MAX_CLASSES = 12, MAX_RESOURCES = 10, MAX_USES = MAX_CLASSES * MAX_RESOURCES };

struct instance {
    struct flows flows;
    double capacity[MAX_RESOURCES], scratch[2 * MAX_CLASSES];
    uint32_t first[MAX_CLASSES + 1], uses[MAX_USES];
    struct flow_use use[MAX_USES];
    struct flow_member members[MAX_USES];
    struct flow_class class[MAX_CLASSES];
    struct flow_resource resource[MAX_RESOURCES];
    uint32_t touched[MAX_CLASSES], changed[MAX_CLASSES], queue[MAX_RESOURCES];
};

/* Half of them with few different capacities and alike classes, so that many resources are full at one level. */
static void draw(struct rng *rng, struct instance *x) {
    uint32_t at = 0, n = 1 + (uint32_t)rng_below(rng, MAX_CLASSES), m = 1 + (uint32_t)rng_below(rng, MAX_RESOURCES);
    bool whole = rng_below(rng, 2);
    for (uint32_t r = 0; r < m; r++)
        x->capacity[r] = whole ? (double)(1 + rng_below(rng, 3)) / 3 : rng_log_between(rng, 0.01, 100);
    for (uint32_t c = 0; c < n; c++) {
        x->first[c] = at;
        uint32_t must = (uint32_t)rng_below(rng, m);
        for (uint32_t r = 0; r < m; r++)
            if (r == must || rng_below(rng, 4) == 0) {
                x->use[at].times = rng_below(rng, 2) ? 1 : (double)(1 + rng_below(rng, 4));
                x->uses[at++] = r;
            }
    }
    x->first[n] = at;
    x->flows = (struct flows){.n_classes = n,
                              .n_resources = m,
                              .capacity = x->capacity,
                              .first = x->first,
                              .uses = x->uses,
                              .use = x->use,
                              .members = x->members,
                              .class = x->class,
                              .resource = x->resource,
                              .touched = x->touched,
                              .changed = x->changed,
                              .queue = x->queue,
                              .scratch = x->scratch};
    flows_clear(&x->flows);
}

static double load_of(const struct instance *x, uint32_t resource, double *fastest) {
    double load = 0;
    *fastest = 0;
    for (uint32_t c = 0; c < x->flows.n_classes; c++)
        for (uint32_t i = x->first[c]; x->class[c].weight > 0 && i < x->first[c + 1]; i++)
            if (x->uses[i] == resource) {
                load += x->class[c].weight * x->use[i].times * x->class[c].rate;
                *fastest = fmax(*fastest, x->class[c].rate);
            }
    return load;
}

static bool has_bottleneck(const struct instance *x, uint32_t class) {
    for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++) {
        double fastest, load = load_of(x, x->uses[i], &fastest);
        if (load >= x->capacity[x->uses[i]] * (1 - 1e-9) && x->class[class].rate >= fastest * (1 - 1e-9))
            return true;
    }
    return false;
}

static void assert_fair(const struct instance *x) {
    for (uint32_t r = 0; r < x->flows.n_resources; r++) {
        double fastest;
        assert_true(load_of(x, r, &fastest) <= x->capacity[r] * (1 + 1e-9));
    }
    for (uint32_t c = 0; c < x->flows.n_classes; c++)
        assert_true(x->class[c].weight > 0 ? x->class[c].rate > 0 && has_bottleneck(x, c) : x->class[c].rate == 0);
}

static void change_some(struct rng *rng, struct instance *x) {
    for (uint64_t k = 1 + rng_below(rng, 4); k > 0; k--) {
        uint32_t c = (uint32_t)rng_below(rng, x->flows.n_classes);
        double weight = rng_below(rng, 3) ? (double)rng_below(rng, 5) : 0;
        flows_add(&x->flows, c, weight - x->class[c].weight);
    }
}

static void every_flow_has_a_full_resource_on_which_none_is_faster(void **state) {
    (void)state;
    struct rng rng;
    struct instance x;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        draw(&rng, &x);
        for (int k = 0; k < CHANGES; k++) {
            change_some(&rng, &x);
            flows_settle(&x.flows);
            assert_fair(&x);
        }
    }
}

static void rates_that_changed_are_listed(void **state) {
    (void)state;
    struct rng rng;
    struct instance x;
    uint64_t same = 0, n = 0;
    rng_seed(&rng, test_seed() + 1);
    for (int i = 0; i < INSTANCES; i++) {
        draw(&rng, &x);
        for (int k = 0; k < CHANGES; k++) {
            double before[MAX_CLASSES];
            bool listed[MAX_CLASSES] = {false};
            for (uint32_t c = 0; c < x.flows.n_classes; c++)
                before[c] = x.class[c].rate;
            change_some(&rng, &x);
            flows_settle(&x.flows);
            for (uint32_t j = 0; j < x.flows.n_changed; j++)
                listed[x.changed[j]] = true;
            for (uint32_t c = 0; c < x.flows.n_classes; c++) {
                assert_true(listed[c] || x.class[c].weight == 0 || x.class[c].rate == before[c]);
                same += !listed[c];
                n++;
            }
        }
    }
    printf("%.0f%% of rates were left alone\n", 100 * (double)same / (double)n);
    assert_true(same > n / 4);
}

static void a_ready_set_is_a_set(void **state) {
    (void)state;
    struct rng rng;
    static uint64_t words[100000];
    static bool in[300000];
    rng_seed(&rng, test_seed());
    for (uint32_t n = 1; n <= 300000; n = n * 5 + 3) {
        struct ready_set set;
        uint32_t first = 0;
        assert_true(ready_set_words(n) <= sizeof words / sizeof *words);
        ready_set_init(&set, n, words);
        memset(in, 0, sizeof in);
        assert_true(ready_set_first(&set) == UINT32_MAX);
        for (int i = 0; i < 2000; i++) {
            uint32_t member = (uint32_t)rng_below(&rng, n);
            in[member] = !in[member];
            if (in[member])
                ready_set_add(&set, member);
            else
                ready_set_remove(&set, member);
            assert_true(ready_set_has(&set, member) == in[member]);
            if (i % 64)
                continue;
            for (first = 0; first < n && !in[first]; first++)
                ;
            assert_true(ready_set_first(&set) == (first < n ? first : UINT32_MAX));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flow_has_a_full_resource_on_which_none_is_faster),
        cmocka_unit_test(rates_that_changed_are_listed),
        cmocka_unit_test(a_ready_set_is_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
