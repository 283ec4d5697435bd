/* Layers: forward against plain loops that share nothing with them, backward against central differences. */
#include <cblas.h>
#include <string.h>

#include "simulator/learned/attention.h"
#include "simulator/learned/lstm.h"
#include "tests/unit/simulator/gradient.h"

enum { ROUNDS = 20, MOST = 4096 };

/* A layer with its numbers: the sum of weigh . y is what the derivatives are of. */
struct subject {
    size_t n_parameters, n_x, n_y;
    double parameters[MOST], x[MOST], y[MOST], weigh[MOST];
    size_t n, in, out;
    struct lstm lstm;
    struct attention attention;
    struct attention_graph graph;
    struct pooling pooling;
    struct lstm_trace lstm_trace;
    struct attention_trace attention_trace;
    double scratch[MOST];
    struct arena arena;
    void (*forward)(struct subject *s);
    void (*backward)(struct subject *s, double *dy, double *gradient, double *dx);
};

static double weighed_sum(void *context) {
    struct subject *s = context;
    double sum = 0;
    s->forward(s);
    for (size_t i = 0; i < s->n_y; i++)
        sum += s->weigh[i] * s->y[i];
    return sum;
}

static void fill(struct subject *s, struct rng *rng) {
    assert_true(s->n_parameters <= MOST && s->n_x <= MOST && s->n_y <= MOST);
    random_numbers(rng, s->n_parameters, s->parameters, 0.7);
    random_numbers(rng, s->n_x, s->x, 1);
    random_numbers(rng, s->n_y, s->weigh, 1);
}

static void run_backward(struct subject *s, double *gradient, double *dx) {
    double dy[MOST];
    memcpy(dy, s->weigh, sizeof dy);
    s->forward(s);
    s->backward(s, dy, gradient, dx);
}

/* The derivatives are right, and a second call adds the same again. */
static void check_subject(struct subject *s, struct rng *rng) {
    static double gradient[MOST], dx[MOST];
    memset(gradient, 0, sizeof gradient);
    memset(dx, 0, sizeof dx);
    fill(s, rng);
    run_backward(s, gradient, dx);
    check_gradient(weighed_sum, s, s->n_parameters, s->parameters, gradient);
    check_gradient(weighed_sum, s, s->n_x, s->x, dx);
    double once = s->n_parameters > 0 ? gradient[s->n_parameters - 1] : dx[0];
    run_backward(s, gradient, dx);
    assert_close(s->n_parameters > 0 ? gradient[s->n_parameters - 1] : dx[0], 2 * once, 1e-12);
    arena_release(&s->arena);
}

static size_t size_between(struct rng *rng, size_t low, size_t high) {
    return low + rng_below(rng, high - low + 1);
}

/* ---- dense ---- */

static void dense_go(struct subject *s) {
    dense_forward(s->parameters, s->n, s->in, s->out, s->x, s->y);
}

static void dense_return(struct subject *s, double *dy, double *gradient, double *dx) {
    dense_backward(s->parameters, s->n, s->in, s->out, s->x, dy, gradient, dx);
}

static void make_dense(struct subject *s, struct rng *rng) {
    *s = (struct subject){.n = size_between(rng, 1, 7), .in = size_between(rng, 1, 9), .out = size_between(rng, 1, 6)};
    s->n_parameters = DENSE_PARAMETERS(s->in, s->out);
    s->n_x = s->n * s->in;
    s->n_y = s->n * s->out;
    s->forward = dense_go;
    s->backward = dense_return;
}

static void a_dense_layer_is_a_weighted_sum_and_a_bias(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    make_dense(&s, &rng);
    fill(&s, &rng);
    dense_go(&s);
    for (size_t i = 0; i < s.n; i++)
        for (size_t o = 0; o < s.out; o++) {
            double want = s.parameters[s.in * s.out + o];
            for (size_t k = 0; k < s.in; k++)
                want += s.parameters[o * s.in + k] * s.x[i * s.in + k];
            assert_true(fabs(s.y[i * s.out + o] - want) < 1e-12);
        }
}

static void the_gradient_of_a_dense_layer_is_the_numeric_one(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < ROUNDS; i++) {
        make_dense(&s, &rng);
        check_subject(&s, &rng);
    }
}

/* ---- tanh ---- */

static void tanh_go(struct subject *s) {
    memcpy(s->y, s->x, s->n_y * sizeof *s->y);
    tanh_forward(s->n_y, s->y);
}

static void tanh_return(struct subject *s, double *dy, double *gradient, double *dx) {
    (void)gradient;
    tanh_backward(s->n_y, s->y, dy);
    for (size_t i = 0; i < s->n_y; i++)
        dx[i] += dy[i];
}

static void tanh_and_the_logistic_function_are_the_librarys(void **state) {
    (void)state;
    for (int i = -4000; i <= 4000; i++) {
        const double x = i / 100.0;
        assert_true(fabs(layer_tanh(x) - tanh(x)) <= 4e-16);
        assert_close(layer_logistic(x), (double)(1 / (1 + expl(-(long double)x))), 1e-15);
    }
    assert_true(layer_tanh(1e4) == 1 && layer_tanh(-1e4) == -1 && layer_tanh(0) == 0);
    assert_true(layer_logistic(1e4) == 1 && layer_logistic(-1e4) == 0 && layer_logistic(0) == 0.5);
}

static void the_gradient_of_tanh_is_the_numeric_one(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    s = (struct subject){.n_x = 50, .n_y = 50, .forward = tanh_go, .backward = tanh_return};
    check_subject(&s, &rng);
}

/* ---- pooling ---- */

static void pooling_go(struct subject *s) {
    pooling_forward(&s->pooling, s->x, s->y);
}

static void pooling_return(struct subject *s, double *dy, double *gradient, double *dx) {
    (void)gradient;
    pooling_backward(&s->pooling, dy, dx);
}

static void a_place_gets_the_weighted_mean_and_the_maximum_of_its_rows(void **state) {
    (void)state;
    const double x[] = {1, -5, 4, -3, 10, 20}, weight[] = {1, 2, 7};
    const uint32_t place[] = {0, 0, 2};
    double share[3], y[12];
    uint32_t top[6];
    struct pooling p = {
        .n = 3, .width = 2, .n_places = 3, .place = place, .weight = weight, .share = share, .top = top};
    pooling_forward(&p, x, y);
    /* (1 + 2*4)/3 = 3, (-5 - 2*3)/3 = -11/3; maxima 4, -3; place 1 has no rows; place 2 has one. */
    const double want[] = {3, -11.0 / 3, 4, -3, 0, 0, 0, 0, 10, 20, 10, 20};
    for (size_t i = 0; i < 12; i++)
        assert_close(y[i], want[i], 1e-15);
    p = (struct pooling){.n = 3, .width = 2, .n_places = 1, .share = share, .top = top};
    pooling_forward(&p, x, y);
    assert_close(y[0], 5, 1e-15);
    assert_close(y[1], 4, 1e-15);
    assert_true(y[2] == 10 && y[3] == 20);
}

static void the_gradient_of_pooling_is_the_numeric_one(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t place[12], top[40];
        double weight[12], share[12];
        const size_t n = size_between(&rng, 1, 12), width = size_between(&rng, 1, 5),
                     n_places = size_between(&rng, 1, 8);
        for (size_t k = 0; k < n; k++) {
            place[k] = (uint32_t)(k * n_places / n);
            weight[k] = (double)size_between(&rng, 1, 4);
        }
        s = (struct subject){.n_x = n * width, .n_y = 2 * n_places * width};
        s.pooling = (struct pooling){n, width, n_places, place, weight, share, top};
        s.forward = pooling_go;
        s.backward = pooling_return;
        check_subject(&s, &rng);
    }
}

/* ---- LSTM ---- */

static void lstm_go(struct subject *s) {
    lstm_forward(&s->lstm, s->parameters, s->n, s->x, s->y, &s->lstm_trace);
}

static void lstm_return(struct subject *s, double *dy, double *gradient, double *dx) {
    lstm_backward(&s->lstm, s->parameters, s->n, s->x, s->y, &s->lstm_trace, dy, s->scratch, gradient, dx);
}

static void make_lstm(struct subject *s, struct rng *rng, size_t n) {
    *s = (struct subject){.n = n, .lstm = {size_between(rng, 1, 5), size_between(rng, 1, 4), rng_below(rng, 2)}};
    s->n_parameters = LSTM_PARAMETERS(s->lstm.in, s->lstm.hidden);
    s->n_x = n * s->lstm.in;
    s->n_y = n * s->lstm.hidden;
    s->forward = lstm_go;
    s->backward = lstm_return;
    assert_true(lstm_trace_init(&s->lstm_trace, &s->lstm, n, &s->arena));
    random_numbers(rng, MOST, s->scratch, 1);
}

/* A gate's sum: weights of the input, bias, weights of the output before. */
static double gate(const struct subject *s, size_t row, const double *x, const double *h) {
    const size_t in = s->lstm.in, hidden = s->lstm.hidden;
    const double *bias = s->parameters + 4 * hidden * in, *weights = bias + 4 * hidden;
    double sum = bias[row];
    for (size_t k = 0; k < in; k++)
        sum += s->parameters[row * in + k] * x[k];
    for (size_t k = 0; k < hidden; k++)
        sum += weights[row * hidden + k] * h[k];
    return sum;
}

static double logistic(double x) {
    return 0.5 + 0.5 * tanh(x / 2);
}

static void an_lstm_follows_its_equations_in_both_directions(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        double h[4] = {0}, c[4] = {0}, next[4];
        make_lstm(&s, &rng, size_between(&rng, 1, 6));
        fill(&s, &rng);
        lstm_go(&s);
        const size_t hidden = s.lstm.hidden;
        for (size_t step = 0; step < s.n; step++) {
            const size_t t = s.lstm.falling ? s.n - 1 - step : step;
            const double *x = s.x + t * s.lstm.in;
            for (size_t k = 0; k < hidden; k++) {
                c[k] = logistic(gate(&s, hidden + k, x, h)) * c[k] +
                       logistic(gate(&s, k, x, h)) * tanh(gate(&s, 2 * hidden + k, x, h));
                next[k] = logistic(gate(&s, 3 * hidden + k, x, h)) * tanh(c[k]);
            }
            memcpy(h, next, sizeof h);
            for (size_t k = 0; k < hidden; k++)
                assert_true(fabs(s.y[t * hidden + k] - h[k]) < 1e-13);
        }
        arena_release(&s.arena);
    }
}

static void the_gradient_of_an_lstm_is_the_numeric_one(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < ROUNDS; i++) {
        make_lstm(&s, &rng, i < 4 ? 1 : size_between(&rng, 2, 7));
        check_subject(&s, &rng);
    }
}

static void an_lstm_starts_with_open_forget_gates(void **state) {
    (void)state;
    const struct lstm lstm = {3, 2, false};
    double parameters[LSTM_PARAMETERS(3, 2)];
    struct rng rng;
    rng_seed(&rng, test_seed());
    lstm_init(&lstm, parameters, &rng);
    for (size_t k = 0; k < 8; k++)
        assert_true(parameters[24 + k] == (k == 2 || k == 3));
}

/* ---- attention ---- */

static void attention_go(struct subject *s) {
    attention_forward(&s->attention, s->parameters, &s->graph, s->x, s->y, &s->attention_trace);
}

static void attention_return(struct subject *s, double *dy, double *gradient, double *dx) {
    attention_backward(&s->attention, s->parameters, &s->graph, s->x, dy, &s->attention_trace, s->scratch, gradient,
                       dx);
}

enum { NODES = 7 };

/* edge[i][j]: from i to j; each pair i < j has one with this chance. */
static void make_attention(struct subject *s, struct rng *rng, size_t n, double chance, bool edge[NODES][NODES]) {
    struct feature_edge edges[NODES * NODES];
    size_t n_edges = 0;
    *s = (struct subject){.n = n, .attention = {size_between(rng, 1, 5), 2 * size_between(rng, 1, 2), 3}};
    const size_t row = s->attention.heads * s->attention.width;
    s->n_parameters = ATTENTION_PARAMETERS(s->attention.in, s->attention.heads, s->attention.width);
    s->n_x = n * s->attention.in;
    s->n_y = n * row;
    s->forward = attention_go;
    s->backward = attention_return;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            edge[i][j] = i < j && rng_uniform(rng) < chance;
            if (edge[i][j])
                edges[n_edges++] = (struct feature_edge){i, j};
        }
    assert_true(attention_graph_init(&s->graph, n, n_edges, edges, &s->arena));
    assert_true(attention_trace_init(&s->attention_trace, &s->attention, &s->graph, &s->arena));
    random_numbers(rng, MOST, s->scratch, 1);
}

/* The projection of node i at head k, then the parts of its logits. */
static void project(const struct subject *s, size_t i, size_t k, double z[3], double *to, double *from) {
    const size_t in = s->attention.in, row = s->attention.heads * 3;
    const double *bias = s->parameters + in * row, *logits = bias + row;
    *to = *from = 0;
    for (size_t d = 0; d < 3; d++) {
        z[d] = bias[k * 3 + d];
        for (size_t c = 0; c < in; c++)
            z[d] += s->parameters[(k * 3 + d) * in + c] * s->x[i * in + c];
        *to += logits[k * 3 + d] * z[d];
        *from += logits[row + k * 3 + d] * z[d];
    }
}

static void attend(const struct subject *s, size_t i, size_t k, bool edge[NODES][NODES], double out[3]) {
    double z[3], to, from, unused, total = 0, sum[3] = {0};
    project(s, i, k, z, &to, &unused);
    for (size_t j = 0; j < s->n; j++) {
        bool near = i == j || (k < s->attention.heads / 2 ? edge[j][i] : edge[i][j]);
        if (!near)
            continue;
        project(s, j, k, z, &unused, &from);
        double share = exp(to + from < 0 ? 0.2 * (to + from) : to + from);
        total += share;
        for (size_t d = 0; d < 3; d++)
            sum[d] += share * z[d];
    }
    for (size_t d = 0; d < 3; d++)
        out[d] = sum[d] / total;
}

static void attention_is_the_softmax_mean_over_neighbours_before_and_after(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    bool edge[NODES][NODES];
    rng_seed(&rng, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        double want[3];
        make_attention(&s, &rng, size_between(&rng, 1, NODES), rng_uniform(&rng), edge);
        fill(&s, &rng);
        attention_go(&s);
        for (size_t i = 0; i < s.n; i++)
            for (size_t k = 0; k < s.attention.heads; k++) {
                attend(&s, i, k, edge, want);
                for (size_t d = 0; d < 3; d++)
                    assert_true(fabs(s.y[(i * s.attention.heads + k) * 3 + d] - want[d]) < 1e-12);
            }
        arena_release(&s.arena);
    }
}

static void the_gradient_of_attention_is_the_numeric_one(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    bool edge[NODES][NODES];
    rng_seed(&rng, test_seed());
    for (int i = 0; i < ROUNDS; i++) {
        make_attention(&s, &rng, i < 3 ? 1 : size_between(&rng, 2, NODES), i < 6 ? 0 : rng_uniform(&rng), edge);
        check_subject(&s, &rng);
    }
}

static void large_logits_do_not_overflow_the_softmax(void **state) {
    (void)state;
    static struct subject s;
    struct rng rng;
    bool edge[NODES][NODES];
    rng_seed(&rng, test_seed());
    make_attention(&s, &rng, NODES, 1, edge);
    fill(&s, &rng);
    for (size_t i = 0; i < s.n_x; i++)
        s.x[i] *= 1e6;
    attention_go(&s);
    for (size_t i = 0; i < s.n_y; i++)
        assert_true(isfinite(s.y[i]));
    arena_release(&s.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_layer_is_a_weighted_sum_and_a_bias),
        cmocka_unit_test(the_gradient_of_a_dense_layer_is_the_numeric_one),
        cmocka_unit_test(tanh_and_the_logistic_function_are_the_librarys),
        cmocka_unit_test(the_gradient_of_tanh_is_the_numeric_one),
        cmocka_unit_test(a_place_gets_the_weighted_mean_and_the_maximum_of_its_rows),
        cmocka_unit_test(the_gradient_of_pooling_is_the_numeric_one),
        cmocka_unit_test(an_lstm_follows_its_equations_in_both_directions),
        cmocka_unit_test(the_gradient_of_an_lstm_is_the_numeric_one),
        cmocka_unit_test(an_lstm_starts_with_open_forget_gates),
        cmocka_unit_test(attention_is_the_softmax_mean_over_neighbours_before_and_after),
        cmocka_unit_test(the_gradient_of_attention_is_the_numeric_one),
        cmocka_unit_test(large_logits_do_not_overflow_the_softmax),
    };
    openblas_set_num_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
