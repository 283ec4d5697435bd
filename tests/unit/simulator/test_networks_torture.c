/* Every allocation of a network fails once, forward and backward. */
#include <cblas.h>

#include "tests/support/torture.h"
#include "tests/unit/simulator/examples.h"

enum { MOST_PARAMETERS = 1 << 16 };

static struct job {
    const struct neural_network *network;
    struct example example;
    double parameters[MOST_PARAMETERS], gradient[MOST_PARAMETERS];
} job;

/* An output that is not written keeps this. */
static const double UNTOUCHED = -12345;

static enum status there_and_back(void *arg, struct error *err) {
    struct job *j = arg;
    struct arena scratch = {0};
    void *left = j;
    double score = UNTOUCHED;
    enum status status = j->network->forward(j->parameters, &j->example.input, &scratch, &left, &score, err);
    if (status == ST_OK)
        status = j->network->backward(j->parameters, &j->example.input, &scratch, left, 1, j->gradient, err);
    else
        assert_true(left == j && score == UNTOUCHED);
    arena_release(&scratch);
    return status;
}

static void check_network(const struct neural_network *network) {
    struct rng rng;
    rng_seed(&rng, test_seed());
    job.network = network;
    assert_true(network->parameters <= MOST_PARAMETERS);
    network->init(job.parameters, &rng);
    example_random(&rng, &job.example, EXAMPLE_VARIABLES, 0.5);
    assert_true(torture(there_and_back, &job) >= 3);
}

static void an_rnn_survives_every_failed_allocation(void **state) {
    (void)state;
    check_network(&network_rnn);
}

static void graph_attention_survives_every_failed_allocation(void **state) {
    (void)state;
    check_network(&network_gat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_rnn_survives_every_failed_allocation),
        cmocka_unit_test(graph_attention_survives_every_failed_allocation),
    };
    openblas_set_num_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
