/* Proposers' shares, and candidates on a small model and cluster. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tuner/search/proposals.h"

struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct predictor predictor;
    struct starts starts;
};

static void open_scene(struct scene *s, uint64_t stream) {
    struct error err;
    struct rng rng;
    const struct space_options options = space_default_options();
    rng_split(&rng, test_seed(), stream);
    assert_ok(random_model(&rng, &s->model, &err));
    assert_ok(random_cluster(&rng, &s->cluster, &err));
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &options, &err));
    assert_ok(predictor_init(&s->predictor, &s->model, &s->cluster, &err));
    assert_ok(starts_list(&s->predictor, &s->space, &s->starts, &err));
}

static void close_scene(struct scene *s) {
    starts_release(&s->starts);
    predictor_release(&s->predictor);
    space_release(&s->space);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

static struct search_context context_of(struct scene *s) {
    return (struct search_context){.space = &s->space, .predictor = &s->predictor, .starts = &s->starts};
}

static double sum_of_shares(const struct proposer_score scores[PROPOSER_COUNT]) {
    double sum = 0;
    for (int p = 0; p < PROPOSER_COUNT; p++) {
        assert_true(scores[p].share >= PROPOSER_LEAST);
        sum += scores[p].share;
    }
    return sum;
}

static void who_wins_gets_more(void **state) {
    (void)state;
    struct proposer_score scores[PROPOSER_COUNT];
    proposers_judge(0, NULL, scores);
    assert_close(sum_of_shares(scores), 1, 1e-12);
    for (int p = 0; p < PROPOSER_COUNT; p++)
        assert_close(scores[p].share, 1.0 / PROPOSER_COUNT, 1e-12);
    const struct tried tried[] = {{NULL, 100, "horovod", 0},
                                  {NULL, 90, "genetic", 0},
                                  {NULL, 95, "guided", 0},
                                  {NULL, 80, "genetic", 0},
                                  {NULL, INFINITY, "knobs", 0}};
    proposers_judge(5, tried, scores);
    assert_close(sum_of_shares(scores), 1, 1e-12);
    assert_int_equal(scores[PROPOSER_genetic].tried, 2);
    assert_int_equal(scores[PROPOSER_genetic].wins, 2);
    assert_int_equal(scores[PROPOSER_guided].wins, 0);
    assert_int_equal(scores[PROPOSER_knobs].tried, 1);
    assert_true(scores[PROPOSER_genetic].share > scores[PROPOSER_neighbour].share);
    assert_true(scores[PROPOSER_neighbour].share > scores[PROPOSER_guided].share);
}

static void candidates_are_new_distinct_valid_and_the_same_each_time(void **state) {
    (void)state;
    struct error err;
    for (uint64_t stream = 0; stream < 6; stream++) {
        struct scene s;
        struct rng rng;
        struct candidates a, b;
        open_scene(&s, stream);
        struct tried tried[3];
        size_t n = s.starts.n < 3 ? s.starts.n : 3;
        for (size_t i = 0; i < n; i++)
            tried[i] = (struct tried){&s.starts.items[i].strategy, s.starts.items[i].predicted_us, "horovod", 0};
        const struct search_context context = context_of(&s);
        rng_seed(&rng, 7);
        assert_ok(candidates_make(&context, 120, n, tried, &rng, &a, &err));
        rng_seed(&rng, 7);
        assert_ok(candidates_make(&context, 120, n, tried, &rng, &b, &err));
        assert_int_equal(a.n, b.n);
        assert_true(a.n >= s.starts.n - n);
        for (size_t i = 0; i < a.n; i++) {
            assert_string_equal(a.items[i].strategy.id.hex, b.items[i].strategy.id.hex);
            assert_ok(strategy_check(&a.items[i].strategy, &s.model, &s.cluster, &err));
            assert_true(isfinite(a.items[i].us));
            for (size_t t = 0; t < n; t++)
                assert_string_not_equal(a.items[i].strategy.id.hex, tried[t].strategy->id.hex);
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(a.items[i].strategy.id.hex, a.items[j].strategy.id.hex);
        }
        candidates_release(&a);
        candidates_release(&b);
        close_scene(&s);
    }
}

/* With nothing measured but the starts, and a predictor that is the truth, proposals soon beat them or equal them. */
static void proposals_improve_on_the_baselines(void **state) {
    (void)state;
    struct error err;
    size_t improved = 0, scenes = 0;
    for (uint64_t stream = 10; stream < 16; stream++) {
        struct scene s;
        struct tried tried[16];
        struct strategy made[8];
        const struct proposal_options options = {.evaluations = 150, .advisor = advisor_default_options()};
        size_t n = 0, n_made = 0;
        double best = INFINITY, found = INFINITY;
        open_scene(&s, stream);
        for (; n < 8 && n < s.starts.n; n++) {
            tried[n] = (struct tried){&s.starts.items[n].strategy, s.starts.items[n].predicted_us, "horovod", 0};
            best = fmin(best, tried[n].us);
        }
        for (; n && n_made < 5; n_made++) {
            struct rng rng;
            struct proposal proposal;
            rng_split(&rng, 3, n);
            const struct search_context context = context_of(&s);
            enum status st = proposal_next(&context, &s.predictor, &options, n, tried, &rng, &proposal, &err);
            if (st == ST_NOT_FOUND)
                break;
            assert_ok(st);
            assert_true(proposal.timeline_us > 0 && proposal.predicted_us > 0);
            made[n_made] = proposal.strategy;
            tried[n++] = (struct tried){&made[n_made], proposal.timeline_us, proposal.proposer, 0};
            found = fmin(found, proposal.timeline_us);
        }
        scenes += n_made > 0;
        improved += found <= best * 1.0001;
        for (size_t i = 0; i < n_made; i++)
            strategy_release(&made[i]);
        close_scene(&s);
    }
    assert_true(scenes >= 4);
    assert_true(improved + 1 >= scenes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_wins_gets_more),
        cmocka_unit_test(candidates_are_new_distinct_valid_and_the_same_each_time),
        cmocka_unit_test(proposals_improve_on_the_baselines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
