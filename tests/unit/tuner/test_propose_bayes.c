/* Bayesian optimization as a proposer: it learns from measured trials where the best of its box is, whatever the
 * simulator believes. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check.h"
#include "tuner/search/knobs.h"
#include "tuner/search/propose_bayes.h"

enum { TRIALS = 30 };

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[4096,4096],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[4096,2048],\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[4096],\"dtype\":\"f32\"}],\"layers\":["
    "{\"name\":\"l1\",\"forward_us\":20000,\"backward_us\":40000,\"variables\":[\"a\"]},"
    "{\"name\":\"l2\",\"forward_us\":20000,\"backward_us\":40000,\"variables\":[\"b\",\"c\"]}]}";

static const char CLUSTER[] =
    "{\"schema\":\"syncopate.cluster/"
    "1\",\"name\":\"four\",\"transport\":\"ideal\",\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1,"
    "\"nic_latency_us\":50}],\"runtime\":{\"message_us\":100,\"push_us\":200,\"coordination_us\":150}}";

/* A space with nothing to choose but sizes. */
struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct predictor predictor;
    struct starts starts;
    size_t n;
    struct strategy strategies[TRIALS];
    struct tried tried[TRIALS];
};

static cJSON *json_of(const char *text) {
    struct error err;
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    return json;
}

static void open_scene(struct scene *s) {
    struct error err;
    struct space_options o = space_default_options();
    cJSON *model = json_of(MODEL), *cluster = json_of(CLUSTER);
    *s = (struct scene){0};
    assert_ok(model_read(model, "model", &s->model, &err));
    assert_ok(cluster_read(cluster, "cluster", &s->cluster, &err));
    cJSON_Delete(model);
    cJSON_Delete(cluster);
    o.parameter_server = o.cross_iteration = false;
    o.algorithms = 1u << ALGORITHM_ring;
    o.policies = 1u << POLICY_priority;
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &o, &err));
    assert_ok(predictor_init(&s->predictor, &s->model, &s->cluster, &err));
    assert_ok(starts_list(&s->predictor, &s->space, &s->starts, &err));
}

static void close_scene(struct scene *s) {
    for (size_t i = 0; i < s->n; i++)
        strategy_release(&s->strategies[i]);
    starts_release(&s->starts);
    predictor_release(&s->predictor);
    space_release(&s->space);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

/* The true time, which the simulator does not know: least, 1000, with partitions of 1 MiB and a credit of 2 MiB. */
static double true_us(const struct strategy *s) {
    const uint64_t partition = s->groups[0].partition_bytes, credit = s->credit_bytes;
    const double p = partition ? log2((double)partition) : 27;
    const double c = !credit ? 15 : credit == CREDIT_UNLIMITED ? 27 : log2((double)credit);
    return 1000 * (1 + 0.03 * (p - 20) * (p - 20) + 0.02 * (c - 21) * (c - 21));
}

static struct pool pool_of(struct scene *s, const struct search_context *context) {
    return (struct pool){.context = context,
                         .space = &s->space,
                         .predictor = &s->predictor,
                         .most_work = INFINITY,
                         .n_tried = s->n,
                         .tried = s->tried,
                         .proposer = PROPOSER_bayes};
}

static void propose(struct scene *s, uint64_t stream, struct list *out) {
    struct error err;
    struct rng rng;
    const struct search_context context = {.space = &s->space, .predictor = &s->predictor, .starts = &s->starts};
    struct pool pool = pool_of(s, &context);
    rng_split(&rng, 5, stream);
    assert_ok(propose_bayes(&pool, 200, &rng, &err));
    *out = pool.lists[PROPOSER_bayes];
}

static void list_release(struct list *list) {
    while (list->n)
        strategy_release(&list->items[--list->n].strategy);
}

/* Keep one of the list as a trial, release the others. */
static void try_one(struct scene *s, struct list *list, size_t which, double us) {
    const struct candidate chosen = list->items[which];
    list->items[which] = list->items[--list->n];
    s->strategies[s->n] = chosen.strategy;
    s->tried[s->n] = (struct tried){&s->strategies[s->n], us, chosen.proposer, 0};
    s->n++;
    list_release(list);
}

/* The share of points of the box whose time is below `us`. */
static double share_below(const struct scene *s, double us) {
    enum { POINTS = 2000 };
    struct error err;
    struct rng rng;
    size_t below = 0;
    rng_seed(&rng, 11);
    for (size_t i = 0; i < POINTS; i++) {
        double u[KNOB_COUNT];
        struct strategy strategy;
        for (size_t k = 0; k < KNOB_COUNT; k++)
            u[k] = rng_uniform(&rng);
        const struct knobs knobs = knobs_from_unit(&s->space, u);
        assert_ok(knobs_strategy(&s->space, &knobs, &strategy, &err));
        below += true_us(&strategy) < us;
        strategy_release(&strategy);
    }
    return (double)below / POINTS;
}

static void it_finds_the_best_of_a_known_box(void **state) {
    (void)state;
    struct scene s;
    double best = INFINITY;
    open_scene(&s);
    for (uint64_t i = 0; i < TRIALS; i++) {
        struct list list;
        propose(&s, i, &list);
        assert_true(list.n > 0);
        assert_string_equal(list.items[0].proposer, "bayes");
        const size_t which = i % list.n;
        const double us = true_us(&list.items[which].strategy);
        try_one(&s, &list, which, us);
        best = fmin(best, us);
    }
    assert_true(best < 1030);
    assert_true(share_below(&s, best) < 0.01);
    close_scene(&s);
}

static void the_same_trials_and_seed_give_the_same_candidates(void **state) {
    (void)state;
    struct scene s;
    struct list a, b;
    open_scene(&s);
    for (uint64_t i = 0; i < 6; i++) {
        propose(&s, i, &a);
        try_one(&s, &a, 0, i == 3 ? INFINITY : true_us(&a.items[0].strategy));
    }
    s.tried[5].us = INFINITY; /* still runs */
    s.tried[5].expected_us = 1500;
    propose(&s, 6, &a);
    propose(&s, 6, &b);
    assert_true(a.n > 0);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        assert_string_equal(a.items[i].strategy.id.hex, b.items[i].strategy.id.hex);
        for (size_t t = 0; t < s.n; t++)
            assert_string_not_equal(a.items[i].strategy.id.hex, s.strategies[t].id.hex);
    }
    list_release(&a);
    list_release(&b);
    close_scene(&s);
}

/* The trials say that small partitions are fast, or that large ones are; the simulator says the same each time. */
static void what_was_measured_moves_the_candidates(void **state) {
    (void)state;
    double mean[2] = {0};
    for (int small = 0; small < 2; small++) {
        struct scene s;
        struct list list;
        open_scene(&s);
        for (uint64_t i = 0; i < 20; i++) {
            propose(&s, i, &list);
            const uint64_t bytes = list.items[i % list.n].strategy.groups[0].partition_bytes;
            const double size = bytes ? log2((double)bytes) : 27;
            try_one(&s, &list, i % list.n, 1000 * (small ? size : 43 - size));
        }
        propose(&s, 20, &list);
        for (size_t i = 0; i < list.n; i++) {
            const uint64_t bytes = list.items[i].strategy.groups[0].partition_bytes;
            mean[small] += (bytes ? log2((double)bytes) : 27) / (double)list.n;
        }
        list_release(&list);
        close_scene(&s);
    }
    print_message("# log2 of the mean partition: %.1f and %.1f\n", mean[0], mean[1]);
    assert_true(mean[1] < mean[0] - 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_finds_the_best_of_a_known_box),
        cmocka_unit_test(the_same_trials_and_seed_give_the_same_candidates),
        cmocka_unit_test(what_was_measured_moves_the_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
