/* Properties of the strategy space on random models, clusters and options: whatever is drawn or changed is a valid
 * strategy of the space and lowers to a plan that moves each gradient byte exactly once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/plan.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/strategy/similarity.h"
#include "tests/unit/strategy/any_strategy.h"
#include "tests/unit/strategy/plan_invariants.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 2000 };
#else
enum { INSTANCES = 600 };
#endif
enum { STEPS = 3 };

struct instance {
    struct model model;
    struct cluster cluster;
    struct space space;
};

static struct space_options random_options(struct rng *rng) {
    struct space_options o = space_default_options();
    uint64_t architecture = rng_below(rng, 4);
    o.all_reduce = architecture != 0;
    o.parameter_server = architecture != 1;
    o.cross_iteration = rng_below(rng, 4) != 0;
    o.algorithms = 1 + (uint32_t)rng_below(rng, (1u << ALL_REDUCE_COUNT) - 1);
    o.algorithms |= (uint32_t)rng_below(rng, 2) << ALGORITHM_all_gather;
    o.policies = 1 + (uint32_t)rng_below(rng, 3);
    if (rng_below(rng, 3) == 0)
        o.encodings |= (uint32_t)rng_below(rng, 1u << ENCODING_COUNT);
    if (rng_below(rng, 2) == 0)
        o.sharded |= (uint32_t)rng_below(rng, 1u << SHARDED_COUNT);
    o.whole_messages = rng_below(rng, 4) == 0;
    o.usual_credit = rng_below(rng, 4) == 0;
    o.share_pushes = rng_below(rng, 4) != 0;
    o.each_shard = rng_below(rng, 4) != 0;
    o.order_pulls = rng_below(rng, 4) != 0;
    o.max_shards = 1 + (uint32_t)rng_below(rng, 16);
    return o;
}

static void instance_open(struct instance *in, struct rng *rng) {
    struct error err = {0};
    struct space_options options = random_options(rng);
    assert_ok(random_updated_model(rng, &in->model, &err));
    assert_ok(random_cluster(rng, &in->cluster, &err));
    assert_ok(space_init(&in->space, &in->model, &in->cluster, &options, &err));
}

static void instance_close(struct instance *in) {
    space_release(&in->space);
    cluster_release(&in->cluster);
    model_release(&in->model);
}

static int compare_pieces(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

/* Sorted by variable and offset, the pieces of what sums gradients must be gapless and end where each gradient ends.
 */
static void check_cover(const struct plan *plan, const struct strategy *s) {
    struct piece *pieces = malloc((plan->n_pieces + 1) * sizeof *pieces);
    uint32_t n = 0, p = 0;
    assert_non_null(pieces);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        for (uint32_t i = 0; i < plan->messages[m].n_pieces && message_brings_gradients(&plan->messages[m]); i++)
            pieces[n++] = plan->pieces[plan->messages[m].first_piece + i];
    qsort(pieces, n, sizeof *pieces, compare_pieces);
    for (uint32_t v = 0; v < s->n_variables; v++) {
        uint64_t end = 0;
        for (; p < n && pieces[p].variable == v; p++) {
            assert_int_equal(pieces[p].offset_bytes, end);
            end += pieces[p].bytes;
        }
        assert_int_equal(end, plan_gradient_bytes(s, &plan->model->variables[v], &s->variables[v]));
    }
    assert_int_equal(p, n);
    free(pieces);
}

static void check_strategy(const struct instance *in, const struct strategy *s) {
    struct error err = {0};
    struct plan plan;
    assert_ok(strategy_check(s, &in->model, &in->cluster, &err));
    assert_true(space_contains(&in->space, s));
    assert_ok(plan_lower(&in->model, &in->cluster, s, &plan, &err));
    check_cover(&plan, s);
    plan_release(&plan);
}

static void check_walk(const struct instance *in, struct rng *rng, struct strategy *from) {
    struct error err = {0};
    for (int step = 0; step < STEPS; step++) {
        struct strategy next;
        assert_ok(space_neighbour(&in->space, from, rng, &next, &err));
        assert_string_not_equal(next.id.hex, from->id.hex);
        check_strategy(in, &next);
        strategy_release(from);
        *from = next;
    }
}

/* How often each was seen in a group; and sharded parameters that are kept, by all or by a node's devices, or gathered
 * another number of groups ahead. */
static uint32_t seen[SHARDED_COUNT], seen_kept, seen_in_nodes, seen_ahead, seen_carried;

static void count_sharded(const struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++) {
        seen[s->groups[g].sharded]++;
        seen_carried += s->groups[g].gathered_as || s->groups[g].summed_as;
        seen_kept += s->groups[g].keeps_gathered;
        seen_in_nodes += s->groups[g].reshard_ranks > 1;
    }
    seen_ahead += s->forward_prefetch != 1 || s->backward_prefetch != 1;
}

/* Samples each instance once by `sample`, checks it and a short walk from it. */
static void check_sampler(enum status (*sample)(const struct space *, struct rng *, struct strategy *,
                                                struct error *)) {
    struct error err = {0};
    memset(seen, 0, sizeof seen);
    seen_kept = seen_in_nodes = seen_ahead = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct instance in;
        struct strategy s;
        rng_split(&rng, test_seed(), i);
        instance_open(&in, &rng);
        assert_ok(sample(&in.space, &rng, &s, &err));
        check_strategy(&in, &s);
        check_walk(&in, &rng, &s);
        count_sharded(&s);
        strategy_release(&s);
        instance_close(&in);
    }
    assert_true(seen[SHARDED_none] && seen[SHARDED_optimizer] && seen[SHARDED_gradients] && seen[SHARDED_parameters] &&
                seen_kept && seen_in_nodes && seen_ahead);
}

static void uniform_samples_and_their_neighbours_are_valid_and_cover_each_byte_once(void **state) {
    (void)state;
    check_sampler(space_sample_uniform);
}

static void guided_samples_and_their_neighbours_are_valid_and_cover_each_byte_once(void **state) {
    (void)state;
    check_sampler(space_sample_guided);
}

static unsigned constraints;

static enum status sample_constrained(const struct space *space, struct rng *rng, struct strategy *out,
                                      struct error *err) {
    return space_sample_constrained(space, rng, constraints, out, err);
}

static void samples_with_one_constraint_or_none_are_valid_and_cover_each_byte_once(void **state) {
    (void)state;
    for (constraints = 0; constraints < (SPACE_BALANCED | SPACE_ADJACENT); constraints++)
        check_sampler(sample_constrained);
    assert_true(seen_carried > 0 || INSTANCES < 2000); /* by any sampler before */
}

/* Among the all-reduced variables of one type, a group met again after another one is not contiguous. Returns 1 if some
 * variables share a group and some do not. */
static uint32_t check_contiguous(const struct instance *in, const struct strategy *s) {
    uint32_t last[DTYPE_COUNT][ENCODING_COUNT];
    bool *closed = calloc((size_t)s->n_groups + 1, sizeof *closed);
    assert_non_null(closed);
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable_sync *sync = &s->variables[in->space.ready[i]];
        uint32_t *open = &last[in->model.variables[in->space.ready[i]].dtype][sync->encoding];
        if (sync->kind != SYNC_ALL_REDUCE || *open == sync->group)
            continue;
        if (s->groups[sync->group].algorithm == ALGORITHM_all_gather) { /* each by itself */
            assert_false(closed[sync->group]);
            closed[sync->group] = true;
            continue;
        }
        if (*open != UINT32_MAX)
            closed[*open] = true;
        assert_false(closed[sync->group]);
        *open = sync->group;
    }
    free(closed);
    return s->n_groups > 1 && s->n_groups < s->n_variables;
}

/* The sum of what `check` returns for guided strategies without encodings. */
static uint32_t check_guided(uint32_t (*check)(const struct instance *, const struct strategy *)) {
    struct error err = {0};
    uint32_t sum = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct instance in;
        struct strategy s;
        rng_split(&rng, test_seed(), INSTANCES + i);
        instance_open(&in, &rng);
        in.space.options.encodings = 1u << ENCODING_none;
        assert_ok(space_sample_guided(&in.space, &rng, &s, &err));
        sum += check(&in, &s);
        strategy_release(&s);
        instance_close(&in);
    }
    return sum;
}

static void guided_merge_groups_are_contiguous_in_the_order_of_readiness(void **state) {
    (void)state;
    assert_true(check_guided(check_contiguous) > INSTANCES / 10);
}

static bool is_served_whole(const struct strategy *s, uint32_t v) {
    return s->variables[v].kind == SYNC_PARAMETER_SERVER && s->variables[v].shards == 1;
}

/* Among the whole served variables of one type, a push met again after another one is not contiguous. Returns how many
 * variables share one. */
static uint32_t check_pushes(const struct instance *in, const struct strategy *s) {
    uint32_t open[DTYPE_COUNT] = {0}, n = 0;
    bool *closed = calloc((size_t)s->n_variables + 1, sizeof *closed);
    assert_non_null(closed);
    for (uint32_t i = 0; i < s->n_variables; i++) {
        uint32_t v = in->space.ready[i], push = s->variables[v].push, *last = &open[in->model.variables[v].dtype];
        if (!is_served_whole(s, v))
            continue;
        if (push != *last) {
            closed[*last] = true;
            assert_false(push && closed[push]);
        }
        *last = push;
        n += push > 0;
    }
    free(closed);
    return n;
}

static void guided_pushes_are_contiguous_in_the_order_of_readiness(void **state) {
    (void)state;
    assert_true(check_guided(check_pushes) > INSTANCES / 10);
}

/* The most that a server carries over its fair share; 0 where none carries anything. */
static double imbalance(const struct instance *in, const struct strategy *s) {
    double load[64] = {0}, total = 0, rates = 0, worst = 0;
    assert_true(in->cluster.n_nodes <= 64);
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        double shard = (double)plan_gradient_bytes(s, &in->model.variables[v], sync) / sync->shards;
        for (uint32_t k = 0; sync->kind == SYNC_PARAMETER_SERVER && k < sync->shards; k++) {
            load[sync->servers[k % sync->n_servers]] += shard;
            total += shard;
        }
    }
    for (uint32_t i = 0; i < in->cluster.n_nodes; i++)
        rates += in->space.rate[i];
    for (uint32_t i = 0; i < in->cluster.n_nodes && total > 0; i++)
        worst = fmax(worst, load[i] / in->space.rate[i] * rates / total);
    return worst;
}

/* How many pairs of variables that are neighbours in the order of readiness share a group, of those that share any. */
static double adjacency(const struct instance *in, const struct strategy *s) {
    double shared = 0, next = 0;
    for (uint32_t i = 0; i < s->n_variables; i++)
        for (uint32_t j = i + 1; j < s->n_variables; j++) {
            const struct variable_sync *a = &s->variables[in->space.ready[i]], *b = &s->variables[in->space.ready[j]];
            bool same = a->kind == SYNC_ALL_REDUCE && b->kind == SYNC_ALL_REDUCE && a->group == b->group;
            shared += same;
            next += same && j == i + 1;
        }
    return shared > 0 ? next / shared : 0;
}

static void each_constraint_does_what_it_says_whatever_the_other_does(void **state) {
    (void)state;
    struct error err = {0};
    double worst[4] = {0}, next[4] = {0};
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct instance in;
        rng_split(&rng, test_seed(), 2 * INSTANCES + i);
        instance_open(&in, &rng);
        for (unsigned c = 0; c < 4; c++) {
            struct strategy s;
            assert_ok(space_sample_constrained(&in.space, &rng, c, &s, &err));
            worst[c] += log(fmax(imbalance(&in, &s), 1)) / INSTANCES;
            next[c] += adjacency(&in, &s) / INSTANCES;
            strategy_release(&s);
        }
        instance_close(&in);
    }
    printf("# log imbalance %.3f %.3f %.3f %.3f, adjacency %.3f %.3f %.3f %.3f: neither, c_lb, c_am, both\n", worst[0],
           worst[1], worst[2], worst[3], next[0], next[1], next[2], next[3]);
    assert_true(fmax(worst[1], worst[3]) < 0.9 * fmin(worst[0], worst[2]));
    assert_true(fmin(next[2], next[3]) > 1.1 * fmax(next[0], next[1]));
}

static void both_constraints_draw_what_guided_sampling_draws(void **state) {
    (void)state;
    struct error err = {0};
    for (uint64_t i = 0; i < 100; i++) {
        struct rng rng, again;
        struct instance in;
        struct strategy a, b;
        rng_split(&rng, test_seed(), 3 * INSTANCES + i);
        instance_open(&in, &rng);
        again = rng;
        assert_ok(space_sample_guided(&in.space, &rng, &a, &err));
        assert_ok(space_sample_constrained(&in.space, &again, SPACE_BALANCED | SPACE_ADJACENT, &b, &err));
        assert_string_equal(a.id.hex, b.id.hex);
        strategy_release(&a);
        strategy_release(&b);
        instance_close(&in);
    }
}

static void similarity_is_symmetric_bounded_and_one_for_the_same_strategy(void **state) {
    (void)state;
    struct error err = {0};
    double near = 0.0, far = 0.0;
    for (uint64_t i = 0; i < INSTANCES / 4; i++) {
        struct rng rng;
        struct instance in;
        struct strategy a, b, c;
        double ab, ba, ac, aa;
        rng_split(&rng, test_seed(), 2 * INSTANCES + i);
        instance_open(&in, &rng);
        in.space.options.each_shard = false; /* neither this nor what is sharded is compared */
        in.space.options.sharded = 1u << SHARDED_none;
        assert_ok(space_sample_uniform(&in.space, &rng, &a, &err));
        assert_ok(space_sample_uniform(&in.space, &rng, &b, &err));
        assert_ok(space_neighbour(&in.space, &a, &rng, &c, &err));
        assert_ok(space_similarity(&in.space, &a, &b, &ab, &err));
        assert_ok(space_similarity(&in.space, &b, &a, &ba, &err));
        assert_ok(space_similarity(&in.space, &a, &c, &ac, &err));
        assert_ok(space_similarity(&in.space, &a, &a, &aa, &err));
        assert_close(ab, ba, 1e-12);
        assert_close(aa, 1.0, 1e-12);
        assert_true(ab >= 0.0 && ab <= 1.0 && ac >= 0.0 && ac < 1.0);
        near += ac;
        far += ab;
        strategy_release(&a);
        strategy_release(&b);
        strategy_release(&c);
        instance_close(&in);
    }
    assert_true(near > 1.3 * far);
}

/* As steps from it are valid, whatever it is: sharded in any way too. Parameters that are sharded in the beginning may
 * be so at the end, in the order and behind the barrier that they need. */
static void neighbours_of_any_strategy_are_valid(void **state) {
    (void)state;
    struct error err = {0};
    int sharded = 0, left = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct instance in;
        struct strategy s, next;
        struct plan plan;
        rng_split(&rng, test_seed() + 7, i);
        instance_open(&in, &rng);
        assert_ok(any_strategy(&rng, &in.model, &in.cluster, &s, &err));
        if (rng_below(&rng, 3) == 0)
            any_accumulation(&rng, &s);
        assert_ok(strategy_seal(&s, &in.model, &in.cluster, &err));
        const bool was = strategy_sharded_parameters(&s) > 0;
        for (int step = 0; step < 4 * STEPS; step++) {
            const enum status st = space_neighbour(&in.space, &s, &rng, &next, &err);
            if (st == ST_INFEASIBLE)
                break;
            assert_ok(st);
            strategy_release(&s);
            s = next;
        }
        s.micro_batches = 1; /* the rules are those of one */
        assert_ok(plan_lower(&in.model, &in.cluster, &s, &plan, &err));
        const char *broken = plan_broken(&plan, &s);
        if (broken)
            fail_msg("%s", broken);
        sharded += was;
        left += strategy_sharded_parameters(&s) > 0;
        plan_release(&plan);
        strategy_release(&s);
        instance_close(&in);
    }
    printf("%d walks from sharded parameters, %d end there\n", sharded, left);
    assert_true(sharded > INSTANCES / 40 && left > INSTANCES / 200);
}

static void the_same_seed_draws_the_same_strategies(void **state) {
    (void)state;
    struct error err = {0};
    for (uint64_t i = 0; i < INSTANCES / 4; i++) {
        char hex[2][3][ID_LENGTH + 1];
        for (int run = 0; run < 2; run++) {
            struct rng rng;
            struct instance in;
            struct strategy s[3];
            rng_split(&rng, test_seed(), 3 * INSTANCES + i);
            instance_open(&in, &rng);
            assert_ok(space_sample_uniform(&in.space, &rng, &s[0], &err));
            assert_ok(space_sample_guided(&in.space, &rng, &s[1], &err));
            assert_ok(space_neighbour(&in.space, &s[1], &rng, &s[2], &err));
            for (int k = 0; k < 3; k++) {
                strcpy(hex[run][k], s[k].id.hex);
                strategy_release(&s[k]);
            }
            instance_close(&in);
        }
        for (int k = 0; k < 3; k++)
            assert_string_equal(hex[0][k], hex[1][k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_samples_and_their_neighbours_are_valid_and_cover_each_byte_once),
        cmocka_unit_test(guided_samples_and_their_neighbours_are_valid_and_cover_each_byte_once),
        cmocka_unit_test(guided_merge_groups_are_contiguous_in_the_order_of_readiness),
        cmocka_unit_test(guided_pushes_are_contiguous_in_the_order_of_readiness),
        cmocka_unit_test(samples_with_one_constraint_or_none_are_valid_and_cover_each_byte_once),
        cmocka_unit_test(each_constraint_does_what_it_says_whatever_the_other_does),
        cmocka_unit_test(both_constraints_draw_what_guided_sampling_draws),
        cmocka_unit_test(similarity_is_symmetric_bounded_and_one_for_the_same_strategy),
        cmocka_unit_test(neighbours_of_any_strategy_are_valid),
        cmocka_unit_test(the_same_seed_draws_the_same_strategies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
