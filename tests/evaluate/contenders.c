/* The rows of the tables: what ranks strategies, how it is trained, how it scores. Rankers run with the defaults of
 * their kind; what these stop by is a part of the training examples. */
#include <math.h>
#include <stdlib.h>

#include "simulator/closed_form.h"
#include "tests/evaluate/evaluate.h"
#include "tuner/predict/predictor.h"

const struct contender timeline = {.name = "timeline", .kind = CONTENDER_TIMELINE};
const struct contender closed_form = {.name = "AutoSync's closed form", .kind = CONTENDER_CLOSED_FORM};
const struct contender corrected = {.name = "timeline, two factors fitted", .kind = CONTENDER_CORRECTED};

const struct contender learned[LEARNED] = {
#define X(word) {.name = #word " on the timeline", .kind = CONTENDER_RANKER, .ranker = RANKER_##word, .residual = true},
    RANKER_KIND_TABLE(X)
#undef X
#define X(word) {.name = #word " alone", .kind = CONTENDER_RANKER, .ranker = RANKER_##word},
        RANKER_KIND_TABLE(X)
#undef X
};

struct ranker *contender_train(const struct corpus *corpus, const struct contender *contender, struct places training,
                               uint64_t seed, struct ranker_report *report) {
    struct error err;
    struct arena arena = {0};
    struct ranker *ranker;
    struct ranker_options options = ranker_default_options(contender->ranker);
    struct ranker_example *examples = allocate(&arena, training.n, sizeof *examples);
    for (size_t i = 0; i < training.n; i++)
        examples[i] = corpus->examples.examples[training.place[i]];
    options.residual = contender->residual;
    options.seed = seed;
    check(ranker_train(&options, training.n, examples, &ranker, report, &err), &err);
    arena_release(&arena);
    return ranker;
}

void ranker_scores(const struct corpus *corpus, const struct ranker *ranker, struct places places, double *score) {
    struct error err;
    for (size_t i = 0; i < places.n; i++)
        check(ranker_score(ranker, &corpus->examples.features[places.place[i]], &score[i], &err), &err);
}

void closed_form_all(struct corpus *corpus) {
    struct error err;
    corpus->closed_us = allocate(&corpus->arena, corpus->examples.n, sizeof *corpus->closed_us);
    for (size_t d = 0; d < corpus->examples.n_domains; d++) {
        const struct domain *domain = corpus_domain(corpus, d);
        struct predictor predictor;
        check(predictor_init(&predictor, &domain->model, &domain->cluster, &err), &err);
        predictor.brief = true;
        for (size_t i = domain->first; i < domain->first + domain->n; i++) {
            struct prediction p;
            check(predictor_run(&predictor, &corpus->examples.strategies[i], &p, &err), &err);
            check(closed_form_run(&predictor.plan, &predictor.cost, &p, &err), &err);
            corpus->closed_us[i] = p.iteration_us;
        }
        predictor_release(&predictor);
    }
}

static void correct(const struct corpus *corpus, struct predictor *predictor, struct places training) {
    struct error err;
    struct arena arena = {0};
    struct measured *measured = allocate(&arena, training.n, sizeof *measured);
    for (size_t i = 0; i < training.n; i++)
        measured[i] = (struct measured){.strategy = &corpus->examples.strategies[training.place[i]],
                                        .us = corpus->examples.examples[training.place[i]].us};
    check(predictor_fit(predictor, training.n, measured, &err), &err);
    arena_release(&arena);
}

static void score_corrected(const struct corpus *corpus, struct places training, struct places places, double *score) {
    struct error err;
    struct predictor predictor;
    const struct domain *domain = corpus_domain(corpus, corpus->examples.examples[training.place[0]].domain);
    check(predictor_init(&predictor, &domain->model, &domain->cluster, &err), &err);
    correct(corpus, &predictor, training);
    for (size_t i = 0; i < places.n; i++) {
        struct prediction p;
        check(predictor_run(&predictor, &corpus->examples.strategies[places.place[i]], &p, &err), &err);
        score[i] = p.iteration_us;
    }
    predictor_release(&predictor);
}

void contender_scores(const struct corpus *corpus, const struct contender *contender, struct places training,
                      struct places places, double *score) {
    if (contender->kind == CONTENDER_CORRECTED) {
        score_corrected(corpus, training, places, score);
        return;
    }
    for (size_t i = 0; i < places.n; i++) {
        const uint32_t place = places.place[i];
        score[i] = contender->kind == CONTENDER_CLOSED_FORM ? corpus->closed_us[place]
                                                            : corpus->examples.features[place].timeline_us;
    }
}
