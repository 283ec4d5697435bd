/* How fast does Bayesian optimization find the least of a noisy function? Regret curves on Branin, the six-hump camel
 * and Hartmann-6, and on ByteScheduler's surface of partition size and credit (surfaces.h), beside the searches that
 * ByteScheduler compares with (its §6.3 and figure 14) and Optuna's TPE.
 *
 * Each trial's value has noise of 5% of it, the same numbers for all methods. After n trials a method recommends one of
 * the points it tried, and regret is that point's value without noise over the least. What is recommended:
 *   bayes, random + process   the least posterior mean, by a process fitted to the trials (recommend.h); the second
 *                             tries the points of `random`, so it shows what choosing well is worth and what searching
 * is all others                the least value seen, as these methods have it On times all are told logarithms. `bayes
 * + simulator` has the simulator's prediction as prior mean where the truth has dearer start-ups and transfers.
 * Momentum's step was chosen on the transformer's surface as the simulator predicts it (reference.c), which favours it
 * there.
 *
 * Figure 14 counts searches until the best point of a grid is tried; here, trials until one within 2% of the least is
 * tried, whatever its noise said. Plays that do not get there count as 60 in means. */
#include "tuner/search/bayes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/table.h"
#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/optuna_functions.h"
#include "tests/evaluate/surfaces.h"
#include "tests/support/tuner/recommend.h"

enum { SEEDS = 20, TRIALS = 60, MARKS = 5, QUARTILES_MARK = 2 };
static const size_t marks[MARKS] = {5, 10, 20, 40, 60};
static const double NOISE = 0.05, WITHIN = 0.02;

enum source { SOURCE_BAYES, SOURCE_REFERENCE, SOURCE_OPTUNA };

struct method {
    const char *name;
    const char *reference; /* SOURCE_REFERENCE: its name in reference.h */
    enum source source;
    bool by_process; /* recommends by a process, not the least seen */
    bool prior;      /* the simulator's */
};

static const struct method methods[] = {
    {"bayes", NULL, SOURCE_BAYES, true, false},           {"bayes + simulator", NULL, SOURCE_BAYES, true, true},
    {"random", "random", SOURCE_REFERENCE, false, false}, {"random + process", "random", SOURCE_REFERENCE, true, false},
    {"grid", "grid", SOURCE_REFERENCE, false, false},     {"momentum", "momentum", SOURCE_REFERENCE, false, false},
    {"Optuna's TPE", NULL, SOURCE_OPTUNA, false, false},
};
enum { METHODS = sizeof methods / sizeof methods[0], BAYES = 0, MOMENTUM = 5 };

/* One method on one surface from one seed. */
struct play {
    const struct surface *surface;
    const struct method *method;
    struct rng rng;
    struct bayes_options options;
    struct bayes *bayes; /* NULL unless it chooses the points */
    struct searcher searcher;
    size_t n;
    double u[TRIALS][SURFACE_DIMENSIONS], value[TRIALS]; /* without noise */
    struct bayes_trial trials[TRIALS];
};

/* What became of a method's plays. */
struct curves {
    bool played;
    double regret[MARKS][SEEDS];
    double trials[SEEDS]; /* until within 2%; INFINITY */
    double decision_us;   /* a trial, mean */
};

/* ---- a play ---- */

static void play_start(struct play *play, const struct surface *surface, const struct method *method,
                       struct optuna *optuna, uint64_t seed) {
    const struct bayes_options options = {
        .seed = seed, .prior = method->prior ? surface_prior : NULL, .context = (void *)surface};
    struct error err;
    *play = (struct play){.surface = surface, .method = method, .options = options};
    rng_split(&play->rng, seed, 0);
    if (method->source == SOURCE_BAYES)
        check(bayes_new(surface->n, unit_box, &options, &play->bayes, &err), &err);
    if (method->source == SOURCE_REFERENCE)
        check(reference_find(method->reference)->open(surface->n, seed, &play->searcher, &err), &err);
    else if (method->source == SOURCE_OPTUNA)
        optuna_open(optuna, surface->n, seed, &play->searcher);
}

static void play_end(struct play *play) {
    bayes_free(play->bayes);
    if (play->searcher.close)
        play->searcher.close(play->searcher.state);
}

static struct bayes_history history_of(const struct play *play) {
    return (struct bayes_history){.n = play->n, .trials = play->trials};
}

static void choose_point(struct play *play, double *u) {
    const struct bayes_history history = history_of(play);
    struct bayes_advice advice;
    struct error err;
    if (play->method->source == SOURCE_BAYES)
        check(bayes_suggest(play->bayes, &history, 1, u, &advice, &err), &err);
    else
        play->searcher.ask(play->searcher.state, u);
}

static void try_point(struct play *play) {
    double *u = play->u[play->n];
    choose_point(play, u);
    const double value = surface_at(play->surface, u), seen = value * (1 + NOISE * rng_normal(&play->rng));
    const double y = play->surface->is_ratio ? log(seen) : seen;
    play->value[play->n] = value;
    play->trials[play->n++] = (struct bayes_trial){.x = u, .y = y};
    if (play->searcher.tell)
        play->searcher.tell(play->searcher.state, y);
}

static size_t least_seen(const struct play *play) {
    size_t least = 0;
    for (size_t i = 1; i < play->n; i++)
        if (play->trials[i].y < play->trials[least].y)
            least = i;
    return least;
}

static double recommended_regret(const struct play *play) {
    const struct bayes_history history = history_of(play);
    struct recommendation best = {.trial = least_seen(play)};
    struct error err;
    if (play->method->by_process)
        check(recommend(play->surface->n, unit_box, &play->options, &history, &best, &err), &err);
    return surface_regret(play->surface, play->value[best.trial]);
}

static double trials_until_within(const struct play *play) {
    for (size_t i = 0; i < play->n; i++)
        if (surface_regret(play->surface, play->value[i]) <= WITHIN)
            return (double)(i + 1);
    return INFINITY;
}

static void play_method(const struct surface *surface, const struct method *method, struct optuna *optuna,
                        struct curves *out) {
    static struct play play;
    const double start_us = clock_now_us();
    out->played = true;
    for (size_t s = 0; s < SEEDS; s++) {
        play_start(&play, surface, method, optuna, s + 1);
        for (size_t k = 0; k < MARKS; k++) {
            while (play.n < marks[k])
                try_point(&play);
            out->regret[k][s] = recommended_regret(&play);
        }
        out->trials[s] = trials_until_within(&play);
        play_end(&play);
    }
    out->decision_us = (clock_now_us() - start_us) / (SEEDS * TRIALS);
}

/* ---- tables ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A quartile by its number, 2 being the median: between the two values that it divides, SEEDS being a multiple of 4. */
static double quartile(const double *values, size_t number) {
    double sorted[SEEDS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, SEEDS, sizeof *sorted, compare);
    const size_t above = SEEDS * number / 4;
    return isfinite(sorted[above]) ? (sorted[above - 1] + sorted[above]) / 2 : INFINITY;
}

static double mean_trials(const double *trials) {
    double sum = 0;
    for (size_t s = 0; s < SEEDS; s++)
        sum += fmin(trials[s], TRIALS);
    return sum / SEEDS;
}

struct words {
    char text[24];
};

static struct words regret_words(const struct surface *surface, double regret) {
    struct words out;
    snprintf(out.text, sizeof out.text, surface->is_ratio ? "%.1f%%" : "%.2g", (surface->is_ratio ? 100 : 1) * regret);
    return out;
}

static struct words trials_words(double trials) {
    struct words out;
    if (isfinite(trials))
        snprintf(out.text, sizeof out.text, "%g", trials);
    else
        snprintf(out.text, sizeof out.text, ">%d", TRIALS);
    return out;
}

static void print_row(struct table *table, const struct surface *surface, const char *name, const struct curves *c) {
    table_cell(table, "%s", name);
    for (size_t k = 0; k < MARKS; k++)
        table_cell(table, "%s", regret_words(surface, quartile(c->regret[k], 2)).text);
    table_cell(table, "%s-%s", regret_words(surface, quartile(c->regret[QUARTILES_MARK], 1)).text,
               regret_words(surface, quartile(c->regret[QUARTILES_MARK], 3)).text);
    if (surface->is_ratio) {
        table_cell(table, "%s", trials_words(quartile(c->trials, 2)).text);
        table_cell(table, "%s-%s", trials_words(quartile(c->trials, 1)).text,
                   trials_words(quartile(c->trials, 3)).text);
        table_cell(table, "%.1f", mean_trials(c->trials));
    }
    table_cell(table, "%.1f", c->decision_us / 1e3);
}

static void print_curves(const struct surface *surface, const struct curves curves[METHODS]) {
    static const char *const plain[] = {"regret after trials", ">5",          ">10", ">20", ">40", ">60",
                                        ">20, quartiles",      ">ms a trial", NULL};
    static const char *const times[] = {
        "time over least, -1", ">5",         ">10",        ">20",   ">40",         ">60",
        ">20, quartiles",      ">within 2%", ">quartiles", ">mean", ">ms a trial", NULL};
    struct table table;
    table_init(&table, surface->is_ratio ? times : plain);
    for (size_t m = 0; m < METHODS; m++)
        if (curves[m].played)
            print_row(&table, surface, methods[m].name, &curves[m]);
    printf("%s\n", surface->name);
    table_print(&table, stdout);
    table_release(&table);
}

/* What noise leaves to be had: even of two points that a search already knows, with all n trials shared between them,
 * the mean of the worse comes out better with probability Phi(-WITHIN sqrt(n) / (2 NOISE)). */
static void print_limit(const struct surface *surface) {
    printf("Of two points %.0f%% apart, n trials shared between them name the worse one best in", 100 * WITHIN);
    for (size_t k = 1; k < MARKS; k++)
        printf("%s %.0f%% (n = %zu)", k > 1 ? "," : "",
               50 * erfc(WITHIN * sqrt((double)marks[k]) / (2 * NOISE) * M_SQRT1_2), marks[k]);
    printf(" of plays;\nand %.0f%% of the box lies within 4%% of the least.\n",
           100 * surface_share_within(surface, 0.04));
}

/* Beside what ByteScheduler says of its figure 14. */
static void print_published(const struct surface *surface, const struct curves curves[METHODS]) {
    const double ours = mean_trials(curves[BAYES].trials), theirs = mean_trials(curves[MOMENTUM].trials);
    const double share = surface_share_within(surface, WITHIN);
    printf("The least is %.0f us; %.0f%% of the box lies within 2%% of it, which trials at random find in %.1f on "
           "average.\n"
           "The point that the simulator believes to be best is %.1f%% above it.\n"
           "ByteScheduler §6.3 has its search typically done in 10 trials, in 28%% to 51%% fewer than momentum. Here, "
           "means: %.1f trials, %.0f%% %s.\n",
           surface->least, 100 * share, 1 / share, 100 * surface_belief_regret(surface), ours,
           100 * fabs(1 - ours / theirs), ours < theirs ? "fewer" : "more");
}

static void play_surface(const struct surface *surface, struct optuna *optuna) {
    static struct curves curves[METHODS];
    for (size_t m = 0; m < METHODS; m++) {
        curves[m].played = false;
        if ((!methods[m].prior || surface->belief) && (optuna || methods[m].source != SOURCE_OPTUNA))
            play_method(surface, &methods[m], optuna, &curves[m]);
    }
    print_curves(surface, curves);
    if (surface->is_ratio) {
        print_limit(surface);
        print_published(surface, curves);
    }
    printf("\n");
    fflush(stdout);
}

void table_bayes(struct corpus *corpus) {
    static const char *const models[] = {"transformer", "vgg16"};
    struct optuna optuna;
    struct surface surface;
    (void)corpus;
    const bool peer = optuna_start(&optuna);
    printf("Median regret of the point that is recommended after n trials with %.0f%% noise, %d seeds.\n", 100 * NOISE,
           SEEDS);
    if (peer)
        printf("Optuna %s.\n\n", optuna.version);
    else
        printf("Optuna is not installed (Debian: python3-optuna): its row is left out.\n\n");
    for (size_t i = 0; i < sizeof landscapes / sizeof landscapes[0]; i++) {
        surface_of_landscape(&surface, &landscapes[i]);
        play_surface(&surface, peer ? &optuna : NULL);
    }
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        surface_of_model(&surface, models[i]);
        play_surface(&surface, peer ? &optuna : NULL);
        surface_release(&surface);
    }
    if (peer)
        optuna_stop(&optuna);
}
