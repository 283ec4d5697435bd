/* A session's ranker: what is learned in the thread is what would be learned without one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tuner/learn/learner.h"

enum { N = 40, KNOWN = 20, TRIED = LEARNER_LEAST + 6 };

struct scene {
    struct model model;
    struct cluster cluster;
    struct predictor predictor;
    struct strategy strategies[N];
    struct features features[N];
    struct ranker_example examples[N];
    struct learner_trial trials[N];
    struct ranker *from; /* trained on the first KNOWN */
};

/* Times are the timeline's, longer the more messages there are. */
static void open_scene(struct scene *s) {
    struct error err;
    struct rng rng;
    struct space space;
    const struct space_options options = space_default_options();
    struct ranker_options o = ranker_default_options(RANKER_linear);
    rng_split(&rng, test_seed(), 1);
    *s = (struct scene){0};
    assert_ok(random_model(&rng, &s->model, &err));
    assert_ok(random_cluster(&rng, &s->cluster, &err));
    assert_ok(space_init(&space, &s->model, &s->cluster, &options, &err));
    assert_ok(predictor_init(&s->predictor, &s->model, &s->cluster, &err));
    s->predictor.brief = true;
    for (size_t i = 0; i < N; i++) {
        assert_ok(space_sample_guided(&space, &rng, &s->strategies[i], &err));
        assert_ok(predictor_features(&s->predictor, &s->strategies[i], &s->features[i], NULL, &err));
        double messages = s->features[i].global[FEATURE_GLOBAL_log2_messages];
        double us = s->features[i].timeline_us * exp(0.1 * messages + 0.01 * rng_normal(&rng));
        s->examples[i] = (struct ranker_example){&s->features[i], us, 0};
        s->trials[i] = (struct learner_trial){&s->strategies[i], us};
    }
    space_release(&space);
    o.residual = true;
    assert_ok(ranker_train(&o, KNOWN, s->examples, &s->from, NULL, &err));
}

static void close_scene(struct scene *s) {
    ranker_free(s->from);
    for (size_t i = 0; i < N; i++) {
        features_release(&s->features[i]);
        strategy_release(&s->strategies[i]);
    }
    predictor_release(&s->predictor);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

static void same_scores(const struct ranker *a, const struct ranker *b, const struct scene *s, bool same) {
    struct error err;
    size_t equal = 0;
    for (size_t i = 0; i < N; i++) {
        double x, y;
        assert_ok(ranker_score(a, &s->features[i], &x, &err));
        assert_ok(ranker_score(b, &s->features[i], &y, &err));
        equal += x == y;
    }
    assert_true(same ? equal == N : equal < N);
}

static void step_by_step_and_at_once_learn_the_same(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    struct learner steps, once;
    open_scene(&s);
    assert_ok(learner_init(&steps, s.from, &s.model, &s.cluster, 5, &err));
    assert_ok(learner_init(&once, s.from, &s.model, &s.cluster, 5, &err));
    for (size_t n = 1; n <= TRIED; n++) {
        assert_ok(learner_begin(&steps, n, s.trials, &err));
        learner_end(&steps);
    }
    assert_ok(learner_begin(&once, TRIED, s.trials, &err));
    learner_end(&once);
    assert_ptr_not_equal(learner_ranker(&steps), s.from);
    same_scores(learner_ranker(&steps), learner_ranker(&once), &s, true);
    same_scores(learner_ranker(&steps), s.from, &s, false);
    learner_release(&steps);
    learner_release(&once);
    close_scene(&s);
}

static void beginning_again_waits_for_what_still_runs(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    struct learner hurried, once;
    open_scene(&s);
    assert_ok(learner_init(&hurried, s.from, &s.model, &s.cluster, 5, &err));
    assert_ok(learner_init(&once, s.from, &s.model, &s.cluster, 5, &err));
    for (size_t n = LEARNER_LEAST; n <= TRIED; n++)
        assert_ok(learner_begin(&hurried, n, s.trials, &err));
    learner_end(&hurried);
    assert_ok(learner_begin(&once, TRIED, s.trials, &err));
    learner_end(&once);
    same_scores(learner_ranker(&hurried), learner_ranker(&once), &s, true);
    learner_release(&hurried);
    learner_release(&once);
    close_scene(&s);
}

static void too_little_leaves_the_ranker_of_before(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    struct learner learner;
    open_scene(&s);
    assert_ok(learner_init(&learner, s.from, &s.model, &s.cluster, 5, &err));
    assert_ok(learner_begin(&learner, LEARNER_LEAST - 1, s.trials, &err));
    learner_end(&learner);
    assert_ptr_equal(learner_ranker(&learner), s.from);
    for (size_t i = 0; i < LEARNER_LEAST; i++)
        s.trials[i].us = INFINITY;
    assert_ok(learner_begin(&learner, LEARNER_LEAST, s.trials, &err));
    learner_end(&learner);
    assert_ptr_equal(learner_ranker(&learner), s.from);
    learner_release(&learner);
    close_scene(&s);
}

static void session_without_a_ranker_has_none(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    struct learner learner;
    open_scene(&s);
    assert_ok(learner_init(&learner, NULL, &s.model, &s.cluster, 5, &err));
    assert_ok(learner_begin(&learner, N, s.trials, &err));
    learner_end(&learner);
    assert_null(learner_ranker(&learner));
    learner_release(&learner);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_by_step_and_at_once_learn_the_same),
        cmocka_unit_test(beginning_again_waits_for_what_still_runs),
        cmocka_unit_test(too_little_leaves_the_ranker_of_before),
        cmocka_unit_test(session_without_a_ranker_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
