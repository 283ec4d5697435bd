/* Knobs on random models, clusters and options: every point of the cube is a strategy, and means what it says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tuner/search/knobs.h"

enum { INSTANCES = 600 };

struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct knob_dimension dimensions[KNOB_COUNT];
    size_t d;
};

static struct space_options random_options(struct rng *rng) {
    struct space_options o = space_default_options();
    uint64_t architecture = rng_below(rng, 4);
    o.all_reduce = architecture != 0;
    o.parameter_server = architecture != 1;
    o.cross_iteration = rng_below(rng, 3) != 0;
    o.algorithms = 1 + (uint32_t)rng_below(rng, (1u << ALL_REDUCE_COUNT) - 1);
    o.algorithms |= (uint32_t)rng_below(rng, 2) << ALGORITHM_all_gather;
    o.policies = 1 + (uint32_t)rng_below(rng, 3);
    o.sharded |= (uint32_t)rng_below(rng, 2) * (uint32_t)rng_below(rng, 1u << SHARDED_COUNT);
    o.max_shards = 1 + (uint32_t)rng_below(rng, 16);
    o.min_partition_bytes = SPACE_MIN_BYTES + rng_below(rng, 100000);
    o.max_partition_bytes = o.min_partition_bytes + (rng_below(rng, 4) ? rng_below(rng, 1 << 28) : 0);
    o.min_credit_bytes = SPACE_MIN_BYTES + rng_below(rng, 100000);
    o.max_credit_bytes = o.min_credit_bytes + (rng_below(rng, 4) ? rng_below(rng, 1 << 28) : 0);
    return o;
}

static void open_scene(struct scene *s, uint64_t number, const struct space_options *options, struct rng *rng) {
    struct error err;
    rng_split(rng, test_seed(), number);
    struct space_options o = options ? *options : random_options(rng);
    assert_ok(random_model(rng, &s->model, &err));
    assert_ok(random_cluster(rng, &s->cluster, &err));
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &o, &err));
    s->d = knobs_dimensions(&s->space, s->dimensions);
}

static void close_scene(struct scene *s) {
    space_release(&s->space);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

/* Walls and the ends of the cells of a size are met more often than chance would. */
static void random_point(struct rng *rng, size_t d, double *u) {
    static const double special[] = {0, 0.125, 0.5, 0.875, 1};
    for (size_t i = 0; i < d; i++)
        u[i] = rng_below(rng, 3) ? rng_uniform(rng) : special[rng_below(rng, 5)];
}

static struct knobs random_knobs(const struct scene *s, struct rng *rng) {
    double u[KNOB_COUNT];
    random_point(rng, s->d, u);
    return knobs_from_unit(&s->space, u);
}

static void assert_same_knobs(const struct knobs *a, const struct knobs *b) {
    assert_int_equal(a->architecture, b->architecture);
    assert_true(a->merge_bytes == b->merge_bytes && a->partition_bytes == b->partition_bytes);
    assert_true(a->credit_bytes == b->credit_bytes && a->served_bytes == b->served_bytes);
    assert_true(a->policy == b->policy && a->algorithm == b->algorithm);
    assert_true(a->sharding == b->sharding && a->cross_iteration == b->cross_iteration && a->n_servers == b->n_servers);
}

static void every_point_of_the_cube_is_a_strategy_of_the_space(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        struct plan plan;
        open_scene(&s, i, NULL, &rng);
        struct knobs knobs = random_knobs(&s, &rng);
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        assert_ok(strategy_check(&strategy, &s.model, &s.cluster, &err));
        assert_true(space_contains(&s.space, &strategy));
        assert_ok(plan_lower(&s.model, &s.cluster, &strategy, &plan, &err));
        plan_release(&plan);
        strategy_release(&strategy);
        close_scene(&s);
    }
}

static void knobs_come_back_from_their_place_in_the_cube(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        double u[KNOB_COUNT];
        open_scene(&s, i, NULL, &rng);
        for (int k = 0; k < 20; k++) {
            struct knobs knobs = random_knobs(&s, &rng);
            knobs_to_unit(&s.space, &knobs, u);
            for (size_t j = 0; j < s.d; j++)
                assert_true(u[j] >= 0 && u[j] <= 1);
            struct knobs again = knobs_from_unit(&s.space, u);
            assert_same_knobs(&knobs, &again);
        }
        close_scene(&s);
    }
}

static void knobs_come_back_from_their_strategy(void **state) {
    (void)state;
    struct error err;
    size_t same = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy, again;
        open_scene(&s, i, NULL, &rng);
        struct knobs knobs = random_knobs(&s, &rng), back;
        double u[KNOB_COUNT];
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        assert_ok(knobs_of(&s.space, &strategy, &back, &err));
        assert_int_equal(back.credit_bytes, strategy.credit_bytes);
        assert_true(back.n_servers <= knobs.n_servers || knobs.architecture == KNOB_ARCHITECTURE_all_reduce);
        knobs_to_unit(&s.space, &back, u);
        back = knobs_from_unit(&s.space, u);
        assert_ok(knobs_strategy(&s.space, &back, &again, &err));
        const bool is_same = !strcmp(again.id.hex, strategy.id.hex);
        assert_true(is_same || back.n_servers < knobs.n_servers);
        same += is_same;
        strategy_release(&strategy);
        strategy_release(&again);
        close_scene(&s);
    }
    assert_true(same > INSTANCES * 9 / 10);
}

static void coordinates_outside_the_cube_are_taken_to_its_walls(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES / 10; i++) {
        struct rng rng;
        struct scene s;
        double outside[KNOB_COUNT], wall[KNOB_COUNT];
        open_scene(&s, i, NULL, &rng);
        for (size_t j = 0; j < s.d; j++) {
            bool above = rng_below(&rng, 2);
            outside[j] = above ? 1 + 10 * rng_uniform(&rng) : -10 * rng_uniform(&rng);
            wall[j] = above;
        }
        struct knobs a = knobs_from_unit(&s.space, outside), b = knobs_from_unit(&s.space, wall);
        assert_same_knobs(&a, &b);
        close_scene(&s);
    }
}

static bool has(const struct scene *s, enum knob knob) {
    for (size_t i = 0; i < s->d; i++)
        if (s->dimensions[i].knob == knob)
            return true;
    return false;
}

static void a_knob_without_a_choice_is_no_dimension(void **state) {
    (void)state;
    struct rng rng;
    struct scene s;
    struct space_options o = space_default_options();
    open_scene(&s, 1, &o, &rng);
    assert_true(has(&s, KNOB_architecture) && has(&s, KNOB_merge_bytes) && has(&s, KNOB_algorithm));
    assert_true(has(&s, KNOB_policy) && has(&s, KNOB_cross_iteration) && has(&s, KNOB_partition_bytes));
    close_scene(&s);
    o.parameter_server = o.cross_iteration = false;
    o.algorithms = 1u << ALGORITHM_ring;
    o.policies = 1u << POLICY_fifo;
    open_scene(&s, 1, &o, &rng);
    assert_int_equal(s.d, 3);
    assert_true(has(&s, KNOB_merge_bytes) && has(&s, KNOB_partition_bytes) && has(&s, KNOB_credit_bytes));
    close_scene(&s);
}

/* A change of a knob that has an effect changes the strategy. */
static void effective_knobs_give_different_strategies(void **state) {
    (void)state;
    struct error err;
    const struct space_options o = space_default_options();
    for (uint64_t i = 0; i < INSTANCES / 4; i++) {
        struct rng rng;
        struct scene s;
        struct strategy a, b;
        open_scene(&s, i, &o, &rng);
        struct knobs x = random_knobs(&s, &rng), y = x;
        x.architecture = y.architecture = rng_below(&rng, 2) ? KNOB_ARCHITECTURE_all_reduce : KNOB_ARCHITECTURE_server;
        switch (rng_below(&rng, 5)) {
        case 0:
            y.architecture =
                x.architecture == KNOB_ARCHITECTURE_server ? KNOB_ARCHITECTURE_all_reduce : KNOB_ARCHITECTURE_server;
            break;
        case 1:
            y.partition_bytes = x.partition_bytes ? 0 : 65536;
            break;
        case 2:
            y.credit_bytes = x.credit_bytes == 131072 ? 135168 : 131072;
            break;
        case 3:
            y.policy = x.policy == POLICY_fifo ? POLICY_priority : POLICY_fifo;
            break;
        default:
            y.cross_iteration = !x.cross_iteration;
        }
        assert_ok(knobs_strategy(&s.space, &x, &a, &err));
        assert_ok(knobs_strategy(&s.space, &y, &b, &err));
        assert_string_not_equal(a.id.hex, b.id.hex);
        strategy_release(&a);
        strategy_release(&b);
        close_scene(&s);
    }
}

/* Walks the order of readiness with the groups as they are: one closes when the next of its type does not fit. */
static void check_merging(const struct scene *s, const struct knobs *knobs, const struct strategy *strategy) {
    uint32_t last[DTYPE_COUNT];
    uint64_t *bytes = calloc((size_t)strategy->n_groups + 1, sizeof *bytes);
    assert_non_null(bytes);
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < s->model.n_variables; i++) {
        const struct variable *v = &s->model.variables[s->space.ready[i]];
        uint32_t group = strategy->variables[s->space.ready[i]].group, before = last[v->dtype];
        assert_true(bytes[group] == 0 || group == before);
        if (before != UINT32_MAX && group != before)
            assert_true(bytes[before] + v->bytes > knobs->merge_bytes);
        assert_true(bytes[group] == 0 || bytes[group] + v->bytes <= knobs->merge_bytes);
        bytes[group] += v->bytes;
        last[v->dtype] = group;
    }
    free(bytes);
}

static void groups_are_filled_in_the_order_of_readiness_up_to_the_merge_size(void **state) {
    (void)state;
    struct error err;
    const struct space_options o = space_default_options();
    uint32_t merged = 0;
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        open_scene(&s, i, &o, &rng);
        struct knobs knobs = random_knobs(&s, &rng);
        knobs.architecture = KNOB_ARCHITECTURE_all_reduce;
        if (i % 2) /* a group that fits to the byte */
            knobs.merge_bytes = s.model.variables[s.space.ready[0]].bytes +
                                (s.model.n_variables > 1 ? s.model.variables[s.space.ready[1]].bytes : 0);
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        check_merging(&s, &knobs, &strategy);
        if (!knobs.merge_bytes)
            assert_int_equal(strategy.n_groups, s.model.n_variables);
        merged += strategy.n_groups > 1 && strategy.n_groups < s.model.n_variables;
        strategy_release(&strategy);
        close_scene(&s);
    }
    assert_true(merged > INSTANCES / 20);
}

static void those_are_served_that_the_architecture_says(void **state) {
    (void)state;
    struct error err;
    const struct space_options o = space_default_options();
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        open_scene(&s, i, &o, &rng);
        struct knobs knobs = random_knobs(&s, &rng);
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        for (uint32_t v = 0; v < s.model.n_variables; v++) {
            const struct variable *variable = &s.model.variables[v];
            const bool served[KNOB_ARCHITECTURE_COUNT] = {false, true, variable->bytes >= knobs.served_bytes,
                                                          variable->sparse_rows > 0};
            assert_int_equal(strategy.variables[v].kind == SYNC_PARAMETER_SERVER, served[knobs.architecture]);
        }
        strategy_release(&strategy);
        close_scene(&s);
    }
}

static void fewer_servers_are_those_without_devices_and_then_the_fastest(void **state) {
    (void)state;
    struct error err;
    const struct space_options o = space_default_options();
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        bool used[8] = {false};
        open_scene(&s, i, &o, &rng);
        struct knobs knobs = random_knobs(&s, &rng);
        knobs.architecture = KNOB_ARCHITECTURE_server;
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        assert_true(s.cluster.n_nodes <= 8);
        for (uint32_t v = 0; v < s.model.n_variables; v++)
            for (uint32_t k = 0; k < strategy.variables[v].n_servers; k++)
                used[strategy.variables[v].servers[k]] = true;
        uint32_t n_used = 0;
        for (uint32_t a = 0; a < s.cluster.n_nodes; a++) {
            uint32_t better = 0;
            n_used += used[a];
            for (uint32_t b = 0; b < s.cluster.n_nodes; b++) {
                bool computes_a = s.cluster.nodes[a].devices, computes_b = s.cluster.nodes[b].devices;
                better += computes_a != computes_b ? computes_a : s.space.rate[b] > s.space.rate[a];
            }
            assert_true(!used[a] || better < knobs.n_servers);
        }
        assert_true(n_used <= knobs.n_servers);
        strategy_release(&strategy);
        close_scene(&s);
    }
}

/* The time at which the last server is done, when each variable is whole on one. */
static double makespan(const struct scene *s, const double *bytes, const uint32_t *server) {
    double load[3] = {0}, last = 0;
    for (uint32_t v = 0; v < s->model.n_variables; v++) {
        load[server[v]] += bytes[v] / s->space.rate[server[v]];
        last = fmax(last, load[server[v]]);
    }
    return last;
}

static double least_makespan(const struct scene *s, const double *bytes) {
    uint32_t server[7] = {0}, n = s->model.n_variables, v;
    double least = INFINITY;
    do {
        least = fmin(least, makespan(s, bytes, server));
        for (v = 0; v < n && ++server[v] == s->cluster.n_nodes; v++)
            server[v] = 0;
    } while (v < n);
    return least;
}

/* Each is where it would be done first, given those that are larger. */
static void check_longest_first(const struct scene *s, const double *bytes, const uint32_t *server) {
    for (uint32_t v = 0; v < s->model.n_variables; v++) {
        double done[3] = {0};
        for (uint32_t j = 0; j < s->cluster.n_nodes; j++) {
            for (uint32_t w = 0; w < s->model.n_variables; w++)
                done[j] += server[w] == j && (bytes[w] > bytes[v] || (w < v && bytes[w] >= bytes[v])) ? bytes[w] : 0;
            done[j] = (done[j] + bytes[v]) / s->space.rate[j];
        }
        for (uint32_t j = 0; j < s->cluster.n_nodes; j++)
            assert_true(done[server[v]] <= done[j] * (1 + 1e-12));
    }
}

/* Longest first on m uniform machines is within 2m / (m + 1) of the best (Gonzalez, Ibarra and Sahni 1977). */
static void whole_variables_are_balanced_by_bandwidth(void **state) {
    (void)state;
    struct error err;
    const struct space_options o = space_default_options();
    uint32_t n = 0;
    for (uint64_t i = 0; i < 3 * (uint64_t)INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        double bytes[7];
        uint32_t server[7];
        open_scene(&s, i, &o, &rng);
        if (s.model.n_variables <= 7 && s.cluster.n_nodes <= 3) {
            struct knobs knobs = random_knobs(&s, &rng);
            knobs.architecture = KNOB_ARCHITECTURE_server;
            knobs.partition_bytes = 0;
            knobs.n_servers = s.cluster.n_nodes;
            assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
            for (uint32_t v = 0; v < s.model.n_variables; v++) {
                assert_int_equal(strategy.variables[v].n_servers, 1);
                server[v] = strategy.variables[v].servers[0];
                bytes[v] = (double)plan_gradient_bytes(&strategy, &s.model.variables[v], &strategy.variables[v]);
            }
            check_longest_first(&s, bytes, server);
            double m = s.cluster.n_nodes, ratio = makespan(&s, bytes, server) / least_makespan(&s, bytes);
            assert_true(ratio <= 2 * m / (m + 1) * (1 + 1e-12));
            strategy_release(&strategy);
            n++;
        }
        close_scene(&s);
    }
    assert_true(n > 50);
}

static void shards_are_no_larger_than_the_partition_where_the_options_allow(void **state) {
    (void)state;
    struct error err;
    struct space_options o = space_default_options();
    o.max_shards = SPACE_MAX_SHARDS;
    uint32_t cut = 0;
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct scene s;
        struct strategy strategy;
        open_scene(&s, i, &o, &rng);
        struct knobs knobs = random_knobs(&s, &rng);
        knobs.architecture = KNOB_ARCHITECTURE_server;
        knobs.partition_bytes = 65536;
        assert_ok(knobs_strategy(&s.space, &knobs, &strategy, &err));
        for (uint32_t v = 0; v < s.model.n_variables; v++) {
            const struct variable *variable = &s.model.variables[v];
            uint32_t shards = strategy.variables[v].shards;
            uint64_t rows = variable->rank ? variable->shape[0] : 1;
            assert_true(shards == rows || shards == SPACE_MAX_SHARDS ||
                        (variable->bytes <= 65536 * (uint64_t)shards &&
                         (shards == 1 || variable->bytes > 65536 * (uint64_t)(shards - 1))));
            cut += shards > 1;
        }
        strategy_release(&strategy);
        close_scene(&s);
    }
    assert_true(cut > INSTANCES / 2);
}

static void knobs_outside_the_options_are_refused(void **state) {
    (void)state;
    struct rng rng;
    struct scene s;
    struct error err;
    struct strategy strategy;
    struct space_options o = space_default_options();
    o.parameter_server = false;
    o.algorithms = 1u << ALGORITHM_ring;
    open_scene(&s, 3, &o, &rng);
    double u[KNOB_COUNT] = {0};
    const struct knobs good = knobs_from_unit(&s.space, u);
    struct knobs bad = good;
    bad.architecture = KNOB_ARCHITECTURE_server;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "architecture");
    bad = good;
    bad.algorithm = ALGORITHM_tree;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "algorithm");
    bad = good;
    bad.policy = POLICY_preemptive;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "policy");
    bad = good;
    bad.n_servers = 0;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "n_servers");
    bad = good;
    bad.partition_bytes = o.max_partition_bytes + 1;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "partition_bytes");
    bad = good;
    bad.credit_bytes = o.min_credit_bytes - 1;
    assert_fails(knobs_strategy(&s.space, &bad, &strategy, &err), ST_INVALID, "credit_bytes");
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_of_the_cube_is_a_strategy_of_the_space),
        cmocka_unit_test(knobs_come_back_from_their_place_in_the_cube),
        cmocka_unit_test(knobs_come_back_from_their_strategy),
        cmocka_unit_test(coordinates_outside_the_cube_are_taken_to_its_walls),
        cmocka_unit_test(a_knob_without_a_choice_is_no_dimension),
        cmocka_unit_test(effective_knobs_give_different_strategies),
        cmocka_unit_test(groups_are_filled_in_the_order_of_readiness_up_to_the_merge_size),
        cmocka_unit_test(those_are_served_that_the_architecture_says),
        cmocka_unit_test(fewer_servers_are_those_without_devices_and_then_the_fastest),
        cmocka_unit_test(whole_variables_are_balanced_by_bandwidth),
        cmocka_unit_test(shards_are_no_larger_than_the_partition_where_the_options_allow),
        cmocka_unit_test(knobs_outside_the_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
