/* What are AutoSync's constraints (its §3.2) worth, one by one? c_lb: servers carry load in proportion to their
 * bandwidth; c_am: only gradients that become ready one after another are merged. Strategies are drawn with both, with
 * one and with none; all else is drawn in the same way (strategy/space/space.h, space_sample_constrained).
 *
 * Simulated: DRAWS of each kind in every domain that has trials enough, by the timeline without correction, over the
 * fastest predicted of all that was drawn or tried there. Measured: the trials of `collect --draw`, over the fastest of
 * these in the domain. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "cli/table.h"
#include "dataset/query.h"
#include "strategy/space/space.h"
#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/quantile.h"
#include "tuner/predict/predictor.h"

enum { WAYS = 4, DRAWS = 200, FEW = 20, BLOCKS = DRAWS / FEW, MOST_DOMAINS = 64 };
static const struct {
    const char *words, *proposer;
    unsigned constraints;
} ways[WAYS] = {{"c_lb and c_am", "collect-guided", SPACE_BALANCED | SPACE_ADJACENT},
                {"c_lb alone", "collect-balanced", SPACE_BALANCED},
                {"c_am alone", "collect-adjacent", SPACE_ADJACENT},
                {"neither", "collect-loose", 0}};

/* ---- simulated ---- */

/* Ratios to the domain's best. */
struct drawn {
    size_t n, n_blocks, within_10;
    double ratio[MOST_DOMAINS * DRAWS], best_of_few[MOST_DOMAINS * BLOCKS];
    double best[MOST_DOMAINS]; /* of DRAWS, a domain each */
};

/* Predicted times of DRAWS strategies; what cannot be predicted is drawn again. */
static void predict_draws(const struct space *space, struct predictor *predictor, unsigned constraints, uint64_t seed,
                          double us[DRAWS]) {
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < DRAWS;) {
        struct strategy strategy;
        struct prediction prediction;
        struct error err;
        check(space_sample_constrained(space, &rng, constraints, &strategy, &err), &err);
        const enum status status = predictor_run(predictor, &strategy, &prediction, &err);
        strategy_release(&strategy);
        if (status != ST_OK && status != ST_TOO_LARGE)
            fail(&err);
        if (status == ST_OK)
            us[i++] = prediction.iteration_us;
    }
}

static void add_draws(struct drawn *drawn, size_t domain, const double us[DRAWS], double best_us) {
    double best = INFINITY;
    for (size_t block = 0; block < BLOCKS; block++) {
        double of_few = INFINITY;
        for (size_t i = block * FEW; i < (block + 1) * FEW; i++) {
            drawn->ratio[drawn->n++] = us[i] / best_us;
            drawn->within_10 += us[i] <= 1.1 * best_us;
            of_few = fmin(of_few, us[i] / best_us);
        }
        drawn->best_of_few[drawn->n_blocks++] = of_few;
        best = fmin(best, of_few);
    }
    drawn->best[domain] = best;
}

static void draw_domain(const struct corpus *corpus, size_t place, size_t domain, struct drawn all[WAYS]) {
    static double us[WAYS][DRAWS];
    const struct domain *d = corpus_domain(corpus, place);
    const struct space_options options = space_default_options();
    struct space space;
    struct predictor predictor;
    struct error err;
    double best_us = INFINITY;
    check(space_init(&space, &d->model, &d->cluster, &options, &err), &err);
    check(predictor_init(&predictor, &d->model, &d->cluster, &err), &err);
    predictor.brief = true;
    for (size_t w = 0; w < WAYS; w++) {
        predict_draws(&space, &predictor, ways[w].constraints, place + 1, us[w]);
        for (size_t i = 0; i < DRAWS; i++)
            best_us = fmin(best_us, us[w][i]);
    }
    for (size_t i = 0; i < d->n; i++)
        best_us = fmin(best_us, corpus->examples.features[d->first + i].timeline_us);
    for (size_t w = 0; w < WAYS; w++)
        add_draws(&all[w], domain, us[w], best_us);
    predictor_release(&predictor);
    space_release(&space);
}

static void print_simulated(const struct corpus *corpus) {
    static struct drawn all[WAYS];
    static const char *const heads[] = {"drawn by",     ">median over best", ">best of 20",
                                        ">best of 200", ">within 10%",       NULL};
    struct table table;
    size_t domains = 0;
    memset(all, 0, sizeof all);
    for (size_t i = 0; i < corpus->examples.n_domains && domains < MOST_DOMAINS; i++)
        if (domain_is_enough(corpus, i))
            draw_domain(corpus, i, domains++, all);
    printf("What are the constraints worth? Simulated: %d strategies drawn by each in each of %zu domains, over the "
           "fastest known there; medians.\n\n",
           DRAWS, domains);
    table_init(&table, heads);
    for (size_t w = 0; w < WAYS && domains; w++) {
        struct drawn *drawn = &all[w];
        table_cell(&table, "%s", ways[w].words);
        table_cell(&table, "%.2f", quantile_of(drawn->n, drawn->ratio, 0.5));
        table_cell(&table, "%.3f", quantile_of(drawn->n_blocks, drawn->best_of_few, 0.5));
        table_cell(&table, "%.3f", quantile_of(domains, drawn->best, 0.5));
        table_cell(&table, "%.1f%%", 100 * (double)drawn->within_10 / (double)drawn->n);
    }
    table_print(&table, stdout);
    table_release(&table);
    printf("\n");
}

/* ---- measured ---- */

/* A strategy that several ways drew was tried once for each, so trials are counted, not strategies. */
struct drawn_trial {
    size_t way;
    const char *model, *cluster; /* ids */
    double us;
};

/* Whether its session drew in one way only. Those of the four ways are collected together; what the recipe drew was
 * measured at other times, on a machine that was busy or idle with other things. */
static bool is_alone(const struct record *record) {
    return record->proposer && record->session && strncmp(record->session, "collect-", 8) != 0;
}

void constraints_load(struct corpus *corpus, struct store *store) {
    struct arena scratch = {0};
    struct record *records;
    struct error err;
    size_t n;
    const enum record_state complete = RECORD_COMPLETE;
    check(query_collect(store, &(struct query){.state = &complete}, &scratch, &n, &records, &err), &err);
    corpus->drawn = allocate(&corpus->arena, n, sizeof *corpus->drawn);
    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; w < WAYS; w++)
            if (is_alone(&records[i]) && strcmp(records[i].proposer, ways[w].proposer) == 0)
                corpus->drawn[corpus->n_drawn++] =
                    (struct drawn_trial){.way = w,
                                         .model = arena_strdup(&corpus->arena, records[i].model),
                                         .cluster = arena_strdup(&corpus->arena, records[i].cluster),
                                         .us = records[i].median_us};
    arena_release(&scratch);
}

static bool is_of(const struct drawn_trial *trial, const struct domain *d, size_t way) {
    return trial->way == way && trial->model && trial->cluster && strcmp(trial->model, d->model.id.hex) == 0 &&
           strcmp(trial->cluster, d->cluster.id.hex) == 0;
}

/* Times over `best` of what a way drew in a domain into out; how many. */
static size_t ratios_of(const struct corpus *corpus, const struct domain *d, size_t way, double best, double *out) {
    size_t n = 0;
    for (size_t i = 0; i < corpus->n_drawn; i++)
        if (is_of(&corpus->drawn[i], d, way))
            out[n++] = corpus->drawn[i].us / best;
    return n;
}

static double best_drawn(const struct corpus *corpus, const struct domain *d) {
    double best = INFINITY;
    for (size_t i = 0; i < corpus->n_drawn; i++)
        for (size_t w = 0; w < WAYS; w++)
            if (is_of(&corpus->drawn[i], d, w))
                best = fmin(best, corpus->drawn[i].us);
    return best;
}

static void print_way(struct table *table, size_t way, size_t n, double *ratio) {
    table_cell(table, "%s", ways[way].words);
    table_cell(table, "%zu", n);
    table_cell(table, "%.2f", quantile_of(n, ratio, 0.5));
    table_cell(table, "%.2f-%.2f", quantile_of(n, ratio, 0.25), quantile_of(n, ratio, 0.75));
    table_cell(table, "%.3f", quantile_of(n, ratio, 0));
}

/* Nothing for a domain in which some way was not tried. */
static void print_domain(const struct corpus *corpus, size_t place) {
    static const char *const heads[] = {"drawn by", ">trials", ">median over best", ">quartiles", ">best", NULL};
    const struct domain *d = corpus_domain(corpus, place);
    const double best = best_drawn(corpus, d);
    struct arena scratch = {0};
    struct table table;
    double *ratio = allocate(&scratch, corpus->n_drawn + 1, sizeof *ratio);
    bool complete = true;
    for (size_t w = 0; w < WAYS; w++)
        complete &= ratios_of(corpus, d, w, best, ratio) > 0;
    if (complete) {
        table_init(&table, heads);
        for (size_t w = 0; w < WAYS; w++)
            print_way(&table, w, ratios_of(corpus, d, w, best, ratio), ratio);
        printf("Measured, %s on %s:\n", d->model.name, d->cluster.name);
        table_print(&table, stdout);
        table_release(&table);
        printf("\n");
    }
    arena_release(&scratch);
}

void print_constraints(const struct corpus *corpus) {
    print_simulated(corpus);
    for (size_t i = 0; i < corpus->examples.n_domains; i++)
        print_domain(corpus, i);
}
