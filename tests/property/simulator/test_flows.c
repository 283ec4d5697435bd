/* Max-min fairness by its definition: capacities hold, and every flow has a full resource on which none is faster. */
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "simulator/flows.h"
#include "simulator/ready_set.h"
#include "tests/support/check.h"

enum { INSTANCES = 20000, MAX_CLASSES = 12, MAX_RESOURCES = 10 };

struct instance {
    struct flows flows;
    double capacity[MAX_RESOURCES], weight[MAX_CLASSES], rate[MAX_CLASSES];
    uint32_t first[MAX_CLASSES + 1], uses[MAX_CLASSES * MAX_RESOURCES], active[MAX_CLASSES], n_active;
};

static void draw(struct rng *rng, struct instance *x) {
    uint32_t at = 0, n = 1 + (uint32_t)rng_below(rng, MAX_CLASSES), m = 1 + (uint32_t)rng_below(rng, MAX_RESOURCES);
    bool whole = rng_below(rng, 2);
    for (uint32_t r = 0; r < m; r++)
        x->capacity[r] = whole ? (double)(1 + rng_below(rng, 3)) : rng_log_between(rng, 0.01, 100);
    x->n_active = 0;
    for (uint32_t c = 0; c < n; c++) {
        x->first[c] = at;
        uint32_t must = (uint32_t)rng_below(rng, m);
        for (uint32_t r = 0; r < m; r++)
            if (r == must || rng_below(rng, 4) == 0)
                x->uses[at++] = r;
        x->weight[c] = (double)rng_below(rng, 5);
        x->rate[c] = -1;
        if (x->weight[c] > 0)
            x->active[x->n_active++] = c;
    }
    x->first[n] = at;
    x->flows = (struct flows){n, m, x->capacity, x->first, x->uses};
}

static double load_of(const struct instance *x, uint32_t resource, double *fastest) {
    double load = 0;
    *fastest = 0;
    for (uint32_t c = 0; c < x->flows.n_classes; c++)
        for (uint32_t i = x->first[c]; x->weight[c] > 0 && i < x->first[c + 1]; i++)
            if (x->uses[i] == resource) {
                load += x->weight[c] * x->rate[c];
                *fastest = fmax(*fastest, x->rate[c]);
            }
    return load;
}

static bool has_bottleneck(const struct instance *x, uint32_t class) {
    for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++) {
        double fastest, load = load_of(x, x->uses[i], &fastest);
        if (load >= x->capacity[x->uses[i]] * (1 - 1e-9) && x->rate[class] >= fastest * (1 - 1e-9))
            return true;
    }
    return false;
}

static void every_flow_has_a_full_resource_on_which_none_is_faster(void **state) {
    (void)state;
    struct rng rng;
    struct instance x;
    double scratch[2 * MAX_RESOURCES];
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        draw(&rng, &x);
        flows_fill(&x.flows, x.weight, x.n_active, x.active, x.rate, scratch);
        for (uint32_t r = 0; r < x.flows.n_resources; r++) {
            double fastest;
            assert_true(load_of(&x, r, &fastest) <= x.capacity[r] * (1 + 1e-9));
        }
        for (uint32_t c = 0; c < x.flows.n_classes; c++)
            assert_true(x.weight[c] > 0 ? x.rate[c] > 0 && has_bottleneck(&x, c) : x.rate[c] == -1);
    }
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
        cmocka_unit_test(a_ready_set_is_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
