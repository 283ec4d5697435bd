/* The networks: gradients against central differences, what they must and must not tell apart, and that they learn what
 * only their own layers can see. */
#include <cblas.h>
#include <stdlib.h>

#include "simulator/learned/frame.h"
#include "tests/unit/simulator/examples.h"

enum { MOST_PARAMETERS = 1 << 16, NETWORKS = 2 };

static const struct neural_network *const NETWORK[NETWORKS] = {&network_rnn, &network_gat};

/* A network at some parameters and an example. */
struct subject {
    const struct neural_network *network;
    const struct network_input *input;
    struct arena scratch;
    double parameters[MOST_PARAMETERS], gradient[MOST_PARAMETERS], direction[MOST_PARAMETERS], kept[MOST_PARAMETERS];
    double along;
};

/* `left` is for pass_back. */
static double pass(struct subject *s, void **left) {
    struct error err;
    double out;
    assert_ok(s->network->forward(s->parameters, s->input, &s->scratch, left, &out, &err));
    return out;
}

static void pass_back(struct subject *s, void *left, double slope) {
    struct error err;
    assert_ok(s->network->backward(s->parameters, s->input, &s->scratch, left, slope, s->gradient, &err));
}

static double score(void *context) {
    void *left;
    return pass(context, &left);
}

/* gradient += slope d score / d parameters; the score. */
static double differentiate(struct subject *s, double slope) {
    void *left;
    const double out = pass(s, &left);
    pass_back(s, left, slope);
    return out;
}

static void clear_gradient(struct subject *s) {
    memset(s->gradient, 0, sizeof s->gradient);
}

/* Far from the start, where the last layer would be too weak to see the others. */
static void start(struct subject *s, const struct neural_network *network, const struct example *e, struct rng *rng) {
    s->network = network;
    s->input = &e->input;
    assert_true(network->parameters <= MOST_PARAMETERS);
    network->init(s->parameters, rng);
    for (size_t i = 0; i < network->parameters; i++)
        s->parameters[i] += 0.2 * rng_normal(rng);
    clear_gradient(s);
}

static struct subject *new_subject(void) {
    struct subject *s = calloc(1, sizeof *s);
    assert_non_null(s);
    return s;
}

static void free_subject(struct subject *s) {
    arena_release(&s->scratch);
    free(s);
}

static void seed_here(struct rng *rng) {
    rng_seed(rng, test_seed());
}

/* ---- gradients ---- */

static double score_along(void *context) {
    struct subject *s = context;
    for (size_t i = 0; i < s->network->parameters; i++)
        s->parameters[i] = s->kept[i] + s->along * s->direction[i];
    return score(s);
}

/* A derivative along a random direction has every parameter in it. */
static void check_along(struct subject *s, struct rng *rng) {
    const size_t n = s->network->parameters;
    double want = 0, norm = 0;
    memcpy(s->kept, s->parameters, sizeof s->kept);
    random_numbers(rng, n, s->direction, 0.05);
    for (size_t i = 0; i < n; i++) {
        want += s->direction[i] * s->gradient[i];
        norm += s->gradient[i] * s->gradient[i];
    }
    s->along = 0;
    check_derivative(score_along, s, &s->along, 0, want, 0.05 * sqrt(norm));
    memcpy(s->parameters, s->kept, sizeof s->kept);
}

static void check_network(struct subject *s, const struct neural_network *network, const struct example *e,
                          struct rng *rng) {
    start(s, network, e, rng);
    differentiate(s, 1);
    const double floor = gradient_floor(network->parameters, s->gradient);
    for (int i = 0; i < 150; i++) {
        const size_t at = rng_below(rng, network->parameters);
        check_derivative(score, s, s->parameters, at, s->gradient[at], floor);
    }
    for (int i = 0; i < 10; i++)
        check_along(s, rng);
}

static void the_gradient_of_every_network_is_the_numeric_one(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    for (int i = 0; i < 12; i++) {
        /* One variable with one shard; no edges; then anything. */
        const uint32_t n = i < 2 ? 1 : 2 + (uint32_t)rng_below(&rng, EXAMPLE_VARIABLES - 1);
        example_random(&rng, &e, n, i < 4 ? 0 : rng_uniform(&rng));
        for (size_t k = 0; k < NETWORKS; k++)
            check_network(s, NETWORK[k], &e, &rng);
    }
    free_subject(s);
}

static void backward_adds_the_gradient_times_the_slope(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    example_random(&rng, &e, 6, 0.3);
    for (size_t k = 0; k < NETWORKS; k++) {
        start(s, NETWORK[k], &e, &rng);
        differentiate(s, 1);
        memcpy(s->kept, s->gradient, sizeof s->kept);
        differentiate(s, -2.5);
        for (size_t i = 0; i < NETWORK[k]->parameters; i++)
            assert_true(fabs(s->gradient[i] + 1.5 * s->kept[i]) <= 1e-12 * (1 + fabs(s->kept[i])));
    }
    free_subject(s);
}

/* ---- what a score is made of ---- */

static void an_untrained_network_scores_near_0_and_its_direct_weights_are_0(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    for (int i = 0; i < 40; i++) {
        start(s, NETWORK[i % NETWORKS], &e, &rng);
        s->network->init(s->parameters, &rng);
        example_random(&rng, &e, 1 + (uint32_t)rng_below(&rng, EXAMPLE_VARIABLES), 0.2);
        assert_true(fabs(score(s)) < 0.16);
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            assert_true(s->parameters[FRAME_AT_DIRECT + k] == 0);
    }
    free_subject(s);
}

static void the_global_features_alone_can_carry_a_linear_model(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    example_random(&rng, &e, 5, 0.5);
    for (size_t k = 0; k < NETWORKS; k++) {
        double want = 0.75;
        start(s, NETWORK[k], &e, &rng);
        memset(s->parameters + FRAME_AT_SUM, 0, FRAME_HIDDEN * sizeof *s->parameters);
        s->parameters[FRAME_AT_BIAS] = want;
        for (size_t i = 0; i < FEATURE_GLOBAL_COUNT; i++)
            want += s->parameters[FRAME_AT_DIRECT + i] * e.global[i];
        assert_close(score(s), want, 1e-12);
    }
    free_subject(s);
}

/* The score with weight 1 for number i of the last layer, and 0 for the others. */
static double score_of_hidden(struct subject *s, size_t i) {
    memset(s->parameters + FRAME_AT_SUM, 0, FRAME_HIDDEN * sizeof *s->parameters);
    s->parameters[FRAME_AT_SUM + i] = 1;
    return score(s);
}

static void the_score_sums_the_hidden_numbers_by_their_weights(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    example_random(&rng, &e, 5, 0.5);
    for (size_t k = 0; k < NETWORKS; k++) {
        double weights[FRAME_HIDDEN];
        start(s, NETWORK[k], &e, &rng);
        memcpy(weights, s->parameters + FRAME_AT_SUM, sizeof weights);
        double got = score(s), linear = s->parameters[FRAME_AT_BIAS];
        for (size_t i = 0; i < FEATURE_GLOBAL_COUNT; i++)
            linear += s->parameters[FRAME_AT_DIRECT + i] * e.global[i];
        double want = linear;
        for (size_t i = 0; i < FRAME_HIDDEN; i++)
            want += weights[i] * (score_of_hidden(s, i) - linear);
        assert_close(got, want, 1e-12);
    }
    free_subject(s);
}

static void scratch_that_served_another_example_changes_no_bit(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e, larger;
    struct rng rng;
    seed_here(&rng);
    example_random(&rng, &e, 4, 0.5);
    example_random(&rng, &larger, EXAMPLE_VARIABLES, 0.5);
    for (size_t k = 0; k < NETWORKS; k++) {
        start(s, NETWORK[k], &e, &rng);
        const double first = differentiate(s, 1);
        memcpy(s->kept, s->gradient, sizeof s->kept);
        s->input = &larger.input;
        assert_true(differentiate(s, 1) != first);
        s->input = &e.input;
        clear_gradient(s);
        assert_true(differentiate(s, 1) == first);
        assert_memory_equal(s->gradient, s->kept, sizeof s->kept);
    }
    free_subject(s);
}

/* ---- rows and weights ---- */

/* Every row of `from`, `weight` times with weight 1. */
static void spread(const struct example *from, struct example *to) {
    size_t n = 0;
    *to = *from;
    for (size_t i = 0; i < from->input.n_shards; i++)
        for (size_t k = 0; k < (size_t)from->weight[i]; k++) {
            assert_true(n < EXAMPLE_ROWS);
            memcpy(to->shards + n * FEATURE_SHARD_COUNT, from->shards + i * FEATURE_SHARD_COUNT,
                   FEATURE_SHARD_COUNT * sizeof *to->shards);
            to->variable[n] = from->variable[i];
            to->weight[n++] = 1;
        }
    example_finish(to, from->input.n_variables, n, from->input.n_edges);
}

static void a_row_of_weight_w_is_w_equal_rows(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e, many;
    struct rng rng;
    seed_here(&rng);
    for (int round = 0; round < 20; round++) {
        example_random(&rng, &e, 3, 0.5);
        spread(&e, &many);
        start(s, NETWORK[round % NETWORKS], &e, &rng);
        const double merged = differentiate(s, 1);
        memcpy(s->kept, s->gradient, sizeof s->kept);
        clear_gradient(s);
        s->input = &many.input;
        assert_close(differentiate(s, 1), merged, 1e-11);
        for (size_t i = 0; i < s->network->parameters; i++)
            assert_true(fabs(s->gradient[i] - s->kept[i]) <= 1e-11 * (1 + fabs(s->kept[i])));
        e.weight[0] += 1; /* and weights matter where rows differ */
        s->input = &e.input;
        if (e.variable[1] == 0)
            assert_true(fabs(score(s) - merged) > 1e-9);
    }
    free_subject(s);
}

/* ---- sequences ---- */

enum { RNN_PARTS = 4, RNN_PART = FRAME_READOUT / RNN_PARTS };

/* The last layer sees numbers [part RNN_PART, (part + 1) RNN_PART) of the read-out and nothing else. */
static void keep_part(struct subject *s, size_t part) {
    double *weights = s->parameters + FRAME_AT_HIDDEN;
    for (size_t i = 0; i < (size_t)FRAME_HIDDEN * FRAME_JOINED; i++)
        if (i % FRAME_JOINED / RNN_PART != part)
            weights[i] = 0;
}

static void every_part_of_an_rnns_read_out_has_seen_all_variables(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    for (size_t part = 0; part < RNN_PARTS; part++) {
        example_random(&rng, &e, 4, 0);
        start(s, &network_rnn, &e, &rng);
        keep_part(s, part);
        const double whole = score(s);
        for (size_t i = 0; i < e.input.n_shards; i++) {
            e.shards[i * FEATURE_SHARD_COUNT] += 1;
            assert_true(fabs(score(s) - whole) > 1e-10);
            e.shards[i * FEATURE_SHARD_COUNT] -= 1;
        }
    }
    free_subject(s);
}

/* ---- graphs ---- */

/* Variable i of `from` becomes to_place[i]. */
static void relabel(const struct example *from, const uint32_t *to_place, struct example *to) {
    size_t n = 0;
    *to = *from;
    for (uint32_t place = 0; place < from->input.n_variables; place++)
        for (size_t i = 0; i < from->input.n_shards; i++)
            if (to_place[from->variable[i]] == place) {
                memcpy(to->shards + n * FEATURE_SHARD_COUNT, from->shards + i * FEATURE_SHARD_COUNT,
                       FEATURE_SHARD_COUNT * sizeof *to->shards);
                to->variable[n] = place;
                to->weight[n++] = from->weight[i];
            }
    for (size_t k = 0; k < from->input.n_edges; k++)
        to->edges[k] = (struct feature_edge){to_place[from->edges[k].from], to_place[from->edges[k].to]};
    example_finish(to, from->input.n_variables, n, from->input.n_edges);
}

static void graph_attention_does_not_see_how_nodes_are_numbered(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e, renamed;
    struct rng rng;
    seed_here(&rng);
    for (int round = 0; round < 20; round++) {
        uint32_t to_place[EXAMPLE_VARIABLES];
        for (uint32_t i = 0; i < EXAMPLE_VARIABLES; i++)
            to_place[i] = i;
        rng_shuffle(&rng, EXAMPLE_VARIABLES, to_place);
        example_random(&rng, &e, EXAMPLE_VARIABLES, 0.3);
        relabel(&e, to_place, &renamed);
        start(s, &network_gat, &e, &rng);
        const double want = score(s);
        s->input = &renamed.input;
        assert_close(score(s), want, 1e-11);
        for (size_t i = 0; i < FRAME_HIDDEN; i++) {
            s->input = &e.input;
            const double hidden = score_of_hidden(s, i);
            s->input = &renamed.input;
            assert_true(fabs(score_of_hidden(s, i) - hidden) < 1e-11);
        }
    }
    free_subject(s);
}

static void graph_attention_sees_edges_and_their_direction(void **state) {
    (void)state;
    struct subject *s = new_subject();
    struct example e;
    struct rng rng;
    seed_here(&rng);
    for (int round = 0; round < 20; round++) {
        example_random(&rng, &e, 5, 0);
        start(s, &network_gat, &e, &rng);
        const double apart = score(s);
        e.edges[0] = (struct feature_edge){1, 3};
        e.input.n_edges = 1;
        const double joined = score(s);
        e.edges[0] = (struct feature_edge){3, 1};
        assert_true(fabs(joined - apart) > 1e-9 && fabs(score(s) - joined) > 1e-9);
    }
    free_subject(s);
}

/* ---- learning ---- */

enum { CHAIN = 8, STEPS = 500, MOST_WRONG = 2 };

/* Two marks on a chain of equal places. */
static void mark(struct example *e, uint32_t first, double first_mark, uint32_t second, double second_mark) {
    example_chain(e, CHAIN);
    e->shards[(size_t)first * FEATURE_SHARD_COUNT] = first_mark;
    e->shards[(size_t)second * FEATURE_SHARD_COUNT] = second_mark;
}

/* A step of gradient descent, never longer than 0.1. */
static void descend(struct subject *s) {
    double squares = 0;
    for (size_t i = 0; i < s->network->parameters; i++)
        squares += s->gradient[i] * s->gradient[i];
    for (size_t i = 0; i < s->network->parameters; i++)
        s->parameters[i] -= 0.1 / fmax(1, sqrt(squares)) * s->gradient[i];
}

/* The mean of (score - label)^2, down. */
static void teach(struct subject *s, size_t n, const struct example *lessons, const double *labels) {
    for (int step = 0; step < STEPS; step++) {
        clear_gradient(s);
        for (size_t i = 0; i < n; i++) {
            void *left;
            s->input = &lessons[i].input;
            const double missed = pass(s, &left) - labels[i];
            pass_back(s, left, 2 * missed / (double)n);
        }
        descend(s);
    }
}

static size_t count_right(struct subject *s, size_t n, const struct example *examples, const double *labels) {
    size_t right = 0;
    for (size_t i = 0; i < n; i++) {
        s->input = &examples[i].input;
        right += score(s) * labels[i] > 0;
    }
    return right;
}

typedef double lesson(struct example *e, uint32_t a, uint32_t b);

/* Every pair of places once, in any order; `make` gives the label. */
static size_t make_lessons(struct rng *rng, lesson *make, struct example *examples, double *labels) {
    uint32_t pairs[CHAIN * CHAIN];
    size_t n = 0;
    for (uint32_t i = 0; i < CHAIN * CHAIN; i++)
        if (i / CHAIN != i % CHAIN)
            pairs[n++] = i;
    rng_shuffle(rng, n, pairs);
    for (size_t i = 0; i < n; i++)
        labels[i] = make(&examples[i], pairs[i] / CHAIN, pairs[i] % CHAIN);
    return n;
}

/* Half of the lessons are taught and the other half asked. */
static void check_learns(const struct neural_network *network, lesson *make) {
    static struct example examples[CHAIN * CHAIN];
    double labels[CHAIN * CHAIN];
    struct subject *s = new_subject();
    struct rng rng;
    seed_here(&rng);
    const size_t n = make_lessons(&rng, make, examples, labels), half = n / 2;
    start(s, network, &examples[0], &rng);
    network->init(s->parameters, &rng);
    teach(s, half, examples, labels);
    const size_t right = count_right(s, n - half, examples + half, labels + half);
    print_message("# %zu of %zu right that it was not taught\n", right, n - half);
    assert_true(right + MOST_WRONG >= n - half);
    free_subject(s);
}

/* Which mark comes first; all else is the same, so that nothing that pools can tell. */
static double make_order(struct example *e, uint32_t up, uint32_t down) {
    mark(e, up, 1, down, -1);
    return up < down ? 1 : -1;
}

static void an_rnn_learns_the_order_of_variables(void **state) {
    (void)state;
    check_learns(&network_rnn, make_order);
}

/* Are the marked nodes neighbours? */
static double make_adjacency(struct example *e, uint32_t a, uint32_t b) {
    mark(e, a, 1, b, 1);
    return a + 1 == b || b + 1 == a ? 1 : -1;
}

static void graph_attention_learns_who_is_a_neighbour(void **state) {
    (void)state;
    check_learns(&network_gat, make_adjacency);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_every_network_is_the_numeric_one),
        cmocka_unit_test(backward_adds_the_gradient_times_the_slope),
        cmocka_unit_test(an_untrained_network_scores_near_0_and_its_direct_weights_are_0),
        cmocka_unit_test(the_global_features_alone_can_carry_a_linear_model),
        cmocka_unit_test(the_score_sums_the_hidden_numbers_by_their_weights),
        cmocka_unit_test(scratch_that_served_another_example_changes_no_bit),
        cmocka_unit_test(a_row_of_weight_w_is_w_equal_rows),
        cmocka_unit_test(every_part_of_an_rnns_read_out_has_seen_all_variables),
        cmocka_unit_test(graph_attention_does_not_see_how_nodes_are_numbered),
        cmocka_unit_test(graph_attention_sees_edges_and_their_direction),
        cmocka_unit_test(an_rnn_learns_the_order_of_variables),
        cmocka_unit_test(graph_attention_learns_who_is_a_neighbour),
    };
    openblas_set_num_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
