/* Rankers on made-up strategies whose true order and times are known: what they learn, that the same seed gives the
 * same bytes, that what is saved scores bit for bit, and that validation examples decide nothing but when to stop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "simulator/learned/sample.h"
#include "tests/unit/simulator/ranker_fixture.h"

static struct ranker *train(const struct ranker_options *options, const struct made *made,
                            struct ranker_report *report) {
    struct error err;
    struct ranker *ranker = NULL;
    assert_ok(ranker_train(options, made->n, made->examples, &ranker, report, &err));
    return ranker;
}

/* Few epochs for what need not be learned well. */
static struct ranker_options quick_options(enum ranker_kind kind, bool residual) {
    struct ranker_options options = ranker_default_options(kind);
    options.residual = residual;
    options.epochs = 4;
    return options;
}

static void assert_same_scores(const struct ranker *a, const struct ranker *b, const struct made *made) {
    struct error err;
    for (size_t i = 0; i < made->n; i++) {
        double x, y;
        assert_ok(ranker_score(a, &made->features[i], &x, &err));
        assert_ok(ranker_score(b, &made->features[i], &y, &err));
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* ---- learning ---- */

/* Two of the features matter. */
static void a_planted_order_is_recovered_on_examples_never_seen(void **state) {
    (void)state;
    static const enum ranker_kind KINDS[] = {RANKER_linear, RANKER_trees};
    for (size_t k = 0; k < 2; k++) {
        struct made learned = make_examples(400, 2, test_seed()), unseen = make_examples(150, 2, test_seed() + 1);
        plant_order(&learned);
        plant_order(&unseen);
        struct ranker_options options = ranker_default_options(KINDS[k]);
        struct ranker_report report;
        options.residual = false;
        struct ranker *ranker = train(&options, &learned, &report);
        const double accuracy = accuracy_on(ranker, &unseen);
        printf("# %s: accuracy %.4f after %u rounds, %.2f s\n", ranker_kind_name(KINDS[k]), accuracy, report.epochs,
               report.seconds);
        assert_true(accuracy > 0.95);
        assert_true(report.validation_accuracy > 0.93 && report.training_accuracy >= report.validation_accuracy - 0.02);
        assert_true(report.n_training == 320 && report.n_validation == 80);
        ranker_free(ranker);
        free_examples(&learned);
        free_examples(&unseen);
    }
}

/* It learned the planted correction from 300 strategies, once for all tests; main frees it. */
static struct ranker *correction_rankers[RANKER_KIND_COUNT];

static const struct ranker *correction_ranker(enum ranker_kind kind) {
    if (!correction_rankers[kind]) {
        struct made made = make_examples(300, 1, test_seed());
        const struct ranker_options options = ranker_default_options(kind);
        plant_correction(&made);
        correction_rankers[kind] = train(&options, &made, NULL);
        free_examples(&made);
    }
    return correction_rankers[kind];
}

/* The timeline is off by a factor of 1.49 on average and between 0.9 and 2.5; what remains must be a few per cent. */
static void a_planted_correction_of_the_timeline_predicts_microseconds(void **state) {
    (void)state;
    static const struct {
        enum ranker_kind kind;
        double mean_error;
    } KINDS[] = {{RANKER_linear, 0.03}, {RANKER_trees, 0.05}};
    for (size_t k = 0; k < 2; k++) {
        struct made unseen = make_examples(100, 1, test_seed() + 1);
        struct error err;
        double sum = 0, score;
        plant_correction(&unseen);
        const struct ranker *ranker = correction_ranker(KINDS[k].kind);
        assert_true(ranker_residual(ranker) && ranker_kind_of(ranker) == KINDS[k].kind);
        for (size_t i = 0; i < unseen.n; i++) {
            assert_ok(ranker_score(ranker, &unseen.features[i], &score, &err));
            sum += fabs(score - log(unseen.examples[i].us));
        }
        printf("# %s: mean error of the time %.3f\n", ranker_kind_name(KINDS[k].kind), sum / (double)unseen.n);
        assert_true(sum / (double)unseen.n < KINDS[k].mean_error);
        assert_true(accuracy_on(ranker, &unseen) > 0.93);
        free_examples(&unseen);
    }
}

/* Eight domains, each with a bias of its own that features 40 to 45, constant in a domain, would let it recognise. */
static void biases_of_domains_do_not_spoil_the_order_in_a_new_domain(void **state) {
    (void)state;
    enum { DOMAINS = 10, TRAINED = 8 };
    struct made all = make_examples(500, DOMAINS, test_seed());
    struct rng rng;
    rng_seed(&rng, test_seed());
    double bias[DOMAINS], sign[DOMAINS];
    for (size_t d = 0; d < DOMAINS; d++) {
        bias[d] = 0.3 * rng_normal(&rng);
        sign[d] = 10 + 3 * rng_normal(&rng);
    }
    struct made learned = {0, all.features, calloc(all.n, sizeof *all.examples)};
    struct made unseen = {0, calloc(all.n, sizeof *all.features), calloc(all.n, sizeof *all.examples)};
    for (size_t i = 0; i < all.n; i++) {
        const size_t d = all.examples[i].domain - 7;
        struct features *f = &all.features[i];
        for (size_t k = 40; k < 46 && k < FEATURE_GLOBAL_COUNT; k++)
            f->global[k] = sign[(d + k) % DOMAINS];
        f->timeline_us = TIMELINE_US;
        all.examples[i].us = TIMELINE_US * exp(bias[d] + 0.3 * planted_correction(f));
        if (d < TRAINED) {
            learned.examples[learned.n++] = all.examples[i];
        } else {
            unseen.features[unseen.n] = *f;
            unseen.examples[unseen.n++] = all.examples[i];
        }
    }
    const struct ranker_options options = ranker_default_options(RANKER_linear);
    struct ranker *ranker = train(&options, &learned, NULL);
    const double accuracy = accuracy_on(ranker, &unseen);
    printf("# accuracy in unseen domains %.4f\n", accuracy);
    assert_true(accuracy > 0.9);
    ranker_free(ranker);
    free(learned.examples);
    free(unseen.features);
    free(unseen.examples);
    free_examples(&all);
}

/* The target's times are those of the source times a further 1.35. */
static void fine_tuning_takes_over_what_is_new_and_keeps_what_was_learned(void **state) {
    (void)state;
    static const enum ranker_kind KINDS[] = {RANKER_linear, RANKER_trees};
    for (size_t k = 0; k < 2; k++) {
        struct made target = make_examples(100, 1, test_seed() + 1);
        struct error err;
        struct ranker_options options = ranker_default_options(KINDS[k]);
        const struct ranker *from = correction_ranker(KINDS[k]);
        struct ranker *tuned;
        double before = 0, after = 0, score;
        plant_correction(&target);
        for (size_t i = 0; i < target.n; i++)
            target.examples[i].us *= 1.35;
        options.residual = false; /* and is from's all the same */
        assert_ok(ranker_fine_tune(from, &options, 10, target.examples, &tuned, NULL, &err));
        assert_true(ranker_residual(tuned));
        for (size_t i = 10; i < target.n; i++) {
            assert_ok(ranker_score(from, &target.features[i], &score, &err));
            before += fabs(score - log(target.examples[i].us)) / 90;
            assert_ok(ranker_score(tuned, &target.features[i], &score, &err));
            after += fabs(score - log(target.examples[i].us)) / 90;
        }
        printf("# %s: mean error of the time %.3f, after 10 trials %.3f\n", ranker_kind_name(KINDS[k]), before, after);
        assert_true(before > 0.25 && after < 0.08);
        assert_true(accuracy_on(tuned, &target) > accuracy_on(from, &target) - 0.02);
        ranker_free(tuned);
        free_examples(&target);
    }
}

/* Two strategies alike but for partitions, in many copies with times 2% apart: sigma turns their order around. */
static void sigma_prefers_fewer_partitions_among_close_times(void **state) {
    (void)state;
    struct made made = make_examples(80, 1, test_seed());
    struct error err;
    double few, many;
    for (size_t i = 0; i < made.n; i++) {
        const bool cut = i % 2;
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            made.features[i].global[k] = k == FIRST && cut ? 13 : 7;
        made.features[i].partitions = cut ? 8 : 1;
        made.examples[i].us = cut ? 980 : 1000;
    }
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind += RANKER_trees) {
        struct ranker_options options = ranker_default_options((enum ranker_kind)kind);
        options.residual = false;
        options.validation = 0;
        options.epochs = 20;
        for (int penalty = 0; penalty < 2; penalty++) {
            options.sigma_us = penalty ? 50 : 0;
            struct ranker *ranker = train(&options, &made, NULL);
            assert_ok(ranker_score(ranker, &made.features[0], &few, &err));
            assert_ok(ranker_score(ranker, &made.features[1], &many, &err));
            assert_true(penalty ? few < many : many < few);
            ranker_free(ranker);
        }
    }
    free_examples(&made);
}

/* ---- determinism and saving ---- */

static void the_same_seed_gives_the_same_bytes_and_another_seed_others(void **state) {
    (void)state;
    struct made made = make_examples(40, 2, test_seed());
    plant_correction(&made);
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        struct ranker_options options = quick_options((enum ranker_kind)kind, true);
        char *text[3];
        for (int i = 0; i < 3; i++) {
            options.seed = i < 2 ? UINT64_MAX : 5;
            struct ranker *ranker = train(&options, &made, NULL);
            text[i] = ranker_write(ranker);
            assert_non_null(text[i]);
            ranker_free(ranker);
        }
        assert_string_equal(text[0], text[1]);
        assert_string_not_equal(text[0], text[2]);
        for (int i = 0; i < 3; i++)
            free(text[i]);
    }
    free_examples(&made);
}

static void what_is_read_back_scores_bit_for_bit_and_writes_the_same_bytes(void **state) {
    (void)state;
    struct error err;
    struct made made = make_examples(60, 2, test_seed());
    plant_correction(&made);
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        for (int residual = 0; residual < 2; residual++) {
            const struct ranker_options options = quick_options((enum ranker_kind)kind, residual);
            struct ranker *ranker = train(&options, &made, NULL), *again;
            char *text = ranker_write(ranker), *twice;
            assert_ok(ranker_read(text, &again, &err));
            twice = ranker_write(again);
            assert_string_equal(text, twice);
            assert_same_scores(ranker, again, &made);
            assert_int_equal(ranker_report_of(again)->n_training, ranker_report_of(ranker)->n_training);
            assert_true(ranker_options_of(again)->learning_rate == options.learning_rate);
            free(text);
            free(twice);
            ranker_free(ranker);
            ranker_free(again);
        }
    }
    free_examples(&made);
}

/* `text` with its first `old` replaced; malloc'd. */
static char *replaced(const char *text, const char *old, const char *with) {
    const char *at = strstr(text, old);
    assert_non_null(at);
    char *out = calloc(1, strlen(text) + strlen(with) + 1);
    assert_non_null(out);
    memcpy(out, text, (size_t)(at - text));
    strcat(strcat(out, with), at + strlen(old));
    return out;
}

static void a_ranker_of_other_features_or_versions_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        enum ranker_kind kind;
        const char *old, *with, *says;
    } CASES[] = {
        {RANKER_linear, "syncopate.ranker/1", "syncopate.ranker/2", "syncopate.ranker/2"},
        {RANKER_linear, "\"log2_timeline_us\"", "\"log2_old_us\"", "/features/global/0"},
        {RANKER_linear, "\"kind\":\"linear\"", "\"kind\":\"forest\"", "/kind"},
        {RANKER_linear, "\"parameters\":[", "\"parameters\":[1,", "/parameters"},
        {RANKER_linear, "\"shift\":", "\"shft\":", "shft"},
        {RANKER_linear, "\"seed\":\"1\"", "\"seed\":\"1x\"", "/options/seed"},
        {RANKER_trees, "\"left\":[1,", "\"left\":[0,", "later node"},
        {RANKER_trees, "\"left\":[1,", "\"left\":[-1,", "two children or none"},
        {RANKER_trees, "\"left\":[1,", "\"left\":[", "nodes"},
        {RANKER_trees, "\"feature\":[", "\"feature\":[9999,", "/trees/0"},
    };
    struct error err;
    struct made made = make_examples(60, 1, test_seed());
    plant_correction(&made);
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct ranker_options options = quick_options(CASES[c].kind, true);
        options.validation = 0;
        struct ranker *ranker = train(&options, &made, NULL), *none = NULL;
        char *text = ranker_write(ranker), *bad = replaced(text, CASES[c].old, CASES[c].with);
        assert_fails(ranker_read(bad, &none, &err), ST_INVALID, CASES[c].says);
        assert_null(none);
        free(text);
        free(bad);
        ranker_free(ranker);
    }
    free_examples(&made);
}

/* ---- validation ---- */

/* Which examples judge depends on seed and domains alone, so their places are known. Their times, and a feature that
 * only they have, are then changed: nothing but the choice of the epoch may answer, and there is one epoch. */
static void validation_examples_never_reach_gradients_or_normalisation(void **state) {
    (void)state;
    struct error err;
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        struct made made = make_examples(60, 2, test_seed());
        struct sample sample;
        struct ranker_report report[2];
        struct ranker *ranker[2];
        struct ranker_options options = quick_options((enum ranker_kind)kind, true);
        options.validation = 0.3;
        options.epochs = 1;
        options.members = 1;
        plant_correction(&made);
        for (size_t i = 0; i < made.n; i++)
            made.features[i].global[FIRST + 1] = 4;
        assert_ok(sample_init(&sample, made.n, made.examples, options.validation, options.seed, &err));
        assert_int_equal(sample.validation.n, 18);
        for (int other = 0; other < 2; other++) {
            ranker[other] = train(&options, &made, &report[other]);
            for (size_t v = 0; v < sample.validation.n; v++) {
                made.examples[sample.validation.example[v]].us *= 1 + 0.001 * (double)v;
                made.features[sample.validation.example[v]].global[FIRST + 1] = 1000;
            }
        }
        assert_int_equal(report[0].best_epoch, report[1].best_epoch);
        assert_same_scores(ranker[0], ranker[1], &made);
        ranker_free(ranker[0]);
        ranker_free(ranker[1]);
        sample_release(&sample);
        free_examples(&made);
    }
}

static size_t in_group(const struct fold *fold, size_t group) {
    return fold->first[group + 1] - fold->first[group];
}

static void whole_domains_decide_where_there_are_five(void **state) {
    (void)state;
    struct error err;
    bool decided[6] = {false};
    struct made made = make_examples(60, 6, test_seed());
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct sample sample;
        assert_ok(sample_init(&sample, made.n, made.examples, 0.4, seed, &err));
        assert_int_equal(sample.validation.n, 20);
        assert_int_equal(sample.training.n, 40);
        for (size_t g = 0; g < 6; g++) {
            assert_true(in_group(&sample.validation, g) == 0 || in_group(&sample.training, g) == 0);
            decided[g] |= in_group(&sample.validation, g) > 0;
        }
        sample_release(&sample);
    }
    for (size_t g = 0; g < 6; g++)
        assert_true(decided[g]);
    free_examples(&made);
}

/* Of five domains with 12 examples none fits into a tenth of them; four are too few to give one away. */
static void domains_are_split_where_they_are_few_or_too_large(void **state) {
    (void)state;
    struct error err;
    for (uint32_t domains = 4; domains <= 5; domains++) {
        struct made made = make_examples(60, domains, test_seed());
        struct sample sample;
        assert_ok(sample_init(&sample, made.n, made.examples, domains == 4 ? 0.4 : 0.1, 1, &err));
        for (size_t g = 0; g < domains; g++)
            assert_int_equal(in_group(&sample.validation, g), domains == 4 ? 6 : 1);
        sample_release(&sample);
        free_examples(&made);
    }
}

/* Times drawn at random: nothing can be learned, so training must stop soon and what remains is an early epoch. */
static void training_stops_when_validation_no_longer_improves(void **state) {
    (void)state;
    struct made made = make_examples(80, 1, test_seed());
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < made.n; i++)
        made.examples[i].us = 1e4 * exp(rng_normal(&rng));
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind += RANKER_trees) {
        struct ranker_options options = ranker_default_options((enum ranker_kind)kind);
        struct ranker_report report;
        options.residual = false;
        options.epochs = 1000;
        options.patience = 10;
        ranker_free(train(&options, &made, &report));
        assert_true(report.epochs < 1000);
        assert_int_equal(report.epochs, report.best_epoch + 10);
    }
    free_examples(&made);
}

static void without_validation_all_epochs_run_and_the_last_remains(void **state) {
    (void)state;
    struct made made = make_examples(30, 1, test_seed());
    plant_order(&made);
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        struct ranker_options options = quick_options((enum ranker_kind)kind, false);
        struct ranker_report report;
        options.validation = 0;
        options.patience = 1;
        ranker_free(train(&options, &made, &report));
        assert_true(report.epochs == 4 && report.best_epoch == 4 && report.n_validation == 0);
        assert_true(isnan(report.validation_accuracy) && report.training_accuracy > 0.5);
    }
    free_examples(&made);
}

/* ---- the rest of the interface ---- */

static void pairwise_accuracy_is_that_of_brute_force_with_ties(void **state) {
    (void)state;
    enum { N = 12 };
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 200; round++) {
        double us[N], score[N], right = 0, pairs = 0;
        uint32_t domain[N];
        for (int i = 0; i < N; i++) {
            us[i] = 1 + (double)rng_below(&rng, 5);
            score[i] = (double)rng_below(&rng, 4);
            domain[i] = (uint32_t)rng_below(&rng, 3);
        }
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < i; j++) {
                if (domain[i] != domain[j] || us[i] == us[j])
                    continue;
                pairs++;
                const double agree = (us[i] - us[j]) * (score[i] - score[j]);
                right += agree > 0 ? 1 : agree == 0 ? 0.5 : 0;
            }
        }
        assert_close(pairwise_accuracy(N, us, score, domain), right / pairs, 1e-12);
    }
    assert_true(isnan(pairwise_accuracy(2, (double[]){1, 2}, (double[]){1, 2}, (uint32_t[]){1, 2})));
}

static void what_cannot_be_trained_on_is_refused(void **state) {
    (void)state;
    struct error err;
    struct made made = make_examples(10, 1, test_seed()), lonely = make_examples(4, 4, test_seed());
    struct ranker *ranker = NULL;
    struct ranker_options options = ranker_default_options(RANKER_linear);
    plant_correction(&made);
    assert_fails(ranker_train(&options, 4, lonely.examples, &ranker, NULL, &err), ST_INVALID, "two examples");
    assert_fails(ranker_train(&options, 0, NULL, &ranker, NULL, &err), ST_INVALID, "two examples");
    made.examples[3].us = -1;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "example 3 took -1 us");
    made.examples[3].us = INFINITY;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "example 3");
    made.examples[3].us = 5;
    made.features[2].timeline_us = 0;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "timeline");
    made.features[2].timeline_us = 5;
    made.features[1].global[0] = NAN;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "log2_timeline_us");
    made.features[1].global[0] = 1;
    options.validation = 0.6;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "validation");
    options.validation = 0;
    options.epochs = 0;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "epochs");
    options.epochs = 1;
    options.learning_rate = 0;
    assert_fails(ranker_train(&options, 10, made.examples, &ranker, NULL, &err), ST_INVALID, "learning rate");
    assert_null(ranker);
    free_examples(&made);
    free_examples(&lonely);
}

static void steps_that_overflow_end_in_a_numeric_error(void **state) {
    (void)state;
    struct error err;
    struct made made = make_examples(30, 1, test_seed());
    struct ranker *ranker = NULL;
    struct ranker_options options = ranker_default_options(RANKER_linear);
    plant_correction(&made);
    options.learning_rate = 1e308;
    assert_fails(ranker_train(&options, made.n, made.examples, &ranker, NULL, &err), ST_NUMERIC, "learning rate");
    assert_null(ranker);
    free_examples(&made);
}

static void a_set_flag_cancels_training(void **state) {
    (void)state;
    static const atomic_int set = 1;
    struct error err;
    struct made made = make_examples(20, 1, test_seed());
    plant_correction(&made);
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        struct ranker_options options = ranker_default_options((enum ranker_kind)kind);
        struct ranker *ranker = NULL;
        options.cancel = &set;
        assert_fails(ranker_train(&options, made.n, made.examples, &ranker, NULL, &err), ST_CANCELLED, "cancelled");
        assert_null(ranker);
    }
    free_examples(&made);
}

static void kinds_have_names_that_parse(void **state) {
    (void)state;
    enum ranker_kind kind;
    for (int k = 0; k < RANKER_KIND_COUNT; k++) {
        assert_true(ranker_kind_parse(ranker_kind_name((enum ranker_kind)k), &kind));
        assert_int_equal(kind, k);
    }
    assert_false(ranker_kind_parse("forest", &kind));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_order_is_recovered_on_examples_never_seen),
        cmocka_unit_test(a_planted_correction_of_the_timeline_predicts_microseconds),
        cmocka_unit_test(biases_of_domains_do_not_spoil_the_order_in_a_new_domain),
        cmocka_unit_test(fine_tuning_takes_over_what_is_new_and_keeps_what_was_learned),
        cmocka_unit_test(sigma_prefers_fewer_partitions_among_close_times),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes_and_another_seed_others),
        cmocka_unit_test(what_is_read_back_scores_bit_for_bit_and_writes_the_same_bytes),
        cmocka_unit_test(a_ranker_of_other_features_or_versions_is_refused_by_name),
        cmocka_unit_test(validation_examples_never_reach_gradients_or_normalisation),
        cmocka_unit_test(whole_domains_decide_where_there_are_five),
        cmocka_unit_test(domains_are_split_where_they_are_few_or_too_large),
        cmocka_unit_test(training_stops_when_validation_no_longer_improves),
        cmocka_unit_test(without_validation_all_epochs_run_and_the_last_remains),
        cmocka_unit_test(pairwise_accuracy_is_that_of_brute_force_with_ties),
        cmocka_unit_test(what_cannot_be_trained_on_is_refused),
        cmocka_unit_test(steps_that_overflow_end_in_a_numeric_error),
        cmocka_unit_test(a_set_flag_cancels_training),
        cmocka_unit_test(kinds_have_names_that_parse),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++)
        ranker_free(correction_rankers[kind]);
    return failed;
}
