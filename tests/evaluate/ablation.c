/* What is each part of the search worth? The advisor without one of its parts plays the pools; the corpus tells what
 * each way of drawing strategies brings; and plays that are ended early tell what a stopping rule saves and loses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/statistics.h"
#include "cli/table.h"
#include "tests/evaluate/games.h"
#include "tests/evaluate/methods.h"
#include "tuner/search/advisor.h"

/* ---- the advisor's parts ---- */

static const struct ours whole = {
    .ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .process = true, .diversity = 1};
static const struct ours no_process = {.ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .diversity = 1};
static const struct ours no_ranker = {.process = true, .diversity = 1};
static const struct ours no_tuning = {.ranker = true, .kind = GAMES_RANKER, .process = true, .diversity = 1};
static const struct ours no_diversity = {.ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .process = true};
static const struct ours more_diversity = {
    .ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .process = true, .diversity = 4};
static const struct ours no_timeline = {.process = true, .diversity = 1, .blind = true};
static const struct ours by_linear = {
    .ranker = true, .kind = RANKER_linear, .fine_tuned = true, .process = true, .diversity = 1};

enum { VARIANTS = 8 };

static void print_parts(struct games *games) {
    const struct method methods[VARIANTS] = {
        method_ours("advisor", "", &whole),
        method_ours("- process", "", &no_process),
        method_ours("- ranker", "", &no_ranker),
        method_ours("- training on", "", &no_tuning),
        method_ours("- diversity", "", &no_diversity),
        method_ours("diversity x 4", "", &more_diversity),
        method_ours("- ranker, timeline", "", &no_timeline),
        method_ours("ranker: linear", "", &by_linear),
    };
    static struct scores scores[VARIANTS];
    printf("The advisor and what it is without its parts: trials until within 2%%, %d seeds, "
           "each playing a random half of each pool.\n\n",
           GAMES_SEEDS);
    for (size_t m = 0; m < VARIANTS; m++)
        games_play(games, &methods[m], SUBSET_HALF, &scores[m]);
    games_print_costs(games, VARIANTS, methods, scores);
    games_print_regret(games, VARIANTS, methods, scores);
}

/* ---- what trials teach ---- */

enum { LEARNERS = 4, AFTERS = 4 };
static const size_t afters[AFTERS] = {4, 8, 16, 24};

struct learned_so_far {
    size_t n, covered;
    double error; /* sum over candidates of |log(expected / measured)| */
};

/* Expectations of all untried entries after `after` trials drawn at random. */
static void expect(struct pool *pool, uint64_t seed, size_t after, bool by_ranker, bool by_process,
                   struct learned_so_far *out) {
    struct advisor_options options = advisor_default_options();
    struct arena scratch = {0};
    struct error err;
    struct play play;
    size_t first;
    play_init(&play, pool, seed, SUBSET_ALL);
    while (play.n_tried < after)
        play_take(&play, play_random(&play));
    struct advisor_observation *observed = allocate(&scratch, after, sizeof *observed);
    const struct features **candidates = allocate(&scratch, play.n_left, sizeof *candidates);
    struct advice *advice = allocate(&scratch, play.n_left, sizeof *advice);
    size_t *left = allocate(&scratch, play.n_left, sizeof *left);
    options.ranker = by_ranker ? pool_ranker(pool, GAMES_RANKER) : NULL;
    options.process = by_process;
    for (size_t i = 0; i < after; i++)
        observed[i] = (struct advisor_observation){pool->examples[play.tried[i]].features, play_us(&play, i)};
    play_untried(&play, left);
    for (size_t i = 0; i < play.n_left; i++)
        candidates[i] = pool->examples[left[i]].features;
    check(advisor_rank(&options, after, observed, play.n_left, candidates, 1, &first, advice, NULL, &err), &err);
    for (size_t i = 0; i < play.n_left; i++) {
        const double off = fabs(log(advice[i].mean_us / pool->examples[left[i]].us));
        out->n++;
        out->error += off;
        out->covered += off <= 1.96 * sqrt(advice[i].deviation * advice[i].deviation + pool->variance[left[i]]);
    }
    arena_release(&scratch);
    play_release(&play);
}

static void print_learning(struct games *games) {
    static const struct {
        const char *words;
        bool ranker, process;
    } learners[LEARNERS] = {{"timeline, moved by its mean error", false, false},
                            {"timeline + process", false, true},
                            {"ranker, moved by its mean error", true, false},
                            {"ranker + process", true, true}};
    static const char *const heads[] = {"mean error after random trials", ">4", ">8", ">16", ">24",
                                        ">in its 95% interval after 24",  NULL};
    struct table table;
    table_init(&table, heads);
    for (size_t k = 0; k < LEARNERS; k++) {
        struct learned_so_far all[AFTERS] = {0};
        table_cell(&table, "%s", learners[k].words);
        for (size_t a = 0; a < AFTERS; a++) {
            for (size_t p = 0; p < games->n; p++)
                for (uint64_t s = 1; s <= GAMES_SEEDS && games->pools[p].n > afters[a]; s++)
                    expect(&games->pools[p], s, afters[a], learners[k].ranker, learners[k].process, &all[a]);
            table_cell(&table, "%.1f%%", 100 * all[a].error / (double)all[a].n);
        }
        const struct learned_so_far *last = &all[AFTERS - 1];
        if (learners[k].process)
            table_cell(&table, "%.0f%%", 100 * (double)last->covered / (double)last->n);
        else
            table_cell(&table, "-");
    }
    printf(
        "What trials teach: how far expected times are from measured ones, mean of |log ratio| over the untried.\n\n");
    table_print(&table, stdout);
    table_release(&table);
    printf("\n");
}

/* ---- what draws strategies ---- */

struct worth {
    const char *proposer;
    size_t n, within_2, within_10, wins;
    double best, *ratios; /* [n] time over the domain's best */
};

static void count(struct worth *worth, const struct corpus *corpus, const struct domain *domain) {
    const struct ranker_example *examples = corpus->examples.examples + domain->first;
    size_t best = 0;
    for (size_t i = 1; i < domain->n; i++)
        if (examples[i].us < examples[best].us)
            best = i;
    for (size_t i = 0; i < domain->n; i++) {
        const double ratio = examples[i].us / examples[best].us;
        if (strcmp(corpus->examples.proposers[domain->first + i], worth->proposer) != 0)
            continue;
        worth->ratios[worth->n++] = ratio;
        worth->within_2 += ratio <= 1.02;
        worth->within_10 += ratio <= 1.1;
        worth->wins += i == best;
        worth->best = fmin(worth->best, ratio);
    }
}

static void print_proposers(const struct corpus *corpus) {
    static const char *const proposers[] = {"collect-uniform", "collect-guided", "collect-sizes",
                                            "collect-near",    "collect-fast",   "collect-baseline"};
    static const char *const heads[] = {"drawn",       ">trials",    ">median over best", ">best",
                                        ">within 10%", ">within 2%", ">domains' bests",   NULL};
    struct arena scratch = {0};
    struct table table;
    table_init(&table, heads);
    for (size_t k = 0; k < sizeof proposers / sizeof *proposers; k++) {
        struct worth w = {.proposer = proposers[k],
                          .best = INFINITY,
                          .ratios = allocate(&scratch, corpus->examples.n, sizeof *w.ratios)};
        for (size_t d = 0; d < corpus->examples.n_domains; d++)
            if (domain_is_enough(corpus, d))
                count(&w, corpus, corpus_domain(corpus, d));
        if (!w.n)
            continue;
        table_cell(&table, "%s", w.proposer);
        table_cell(&table, "%zu", w.n);
        table_cell(&table, "%.2f", median_of(w.n, w.ratios));
        table_cell(&table, "%.3f", w.best);
        table_cell(&table, "%.0f%%", 100 * (double)w.within_10 / (double)w.n);
        table_cell(&table, "%.0f%%", 100 * (double)w.within_2 / (double)w.n);
        table_cell(&table, "%zu", w.wins);
    }
    printf("How good is what each way of drawing brings, over all domains with %d strategies or more? Uniform: every "
           "variable on its own.\nGuided: by AutoSync's constraints c_lb and c_am. Sizes: guided, with one partition "
           "size and a credit. Near: 1 to 4 changes of a baseline.\nFast: the fastest predicted of 60 guided ones and "
           "changes of them.\n\n",
           LEAST_TRIALS);
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&scratch);
    printf("\n");
}

/* ---- stopping ---- */

enum { STOP_GAIN, STOP_BOUND, STOP_NUMBER };
static const struct {
    int kind;
    double limit;
    size_t least; /* trials before the rule counts */
} rules[] = {{STOP_GAIN, 0.05, 1},   {STOP_GAIN, 0.01, 1}, {STOP_GAIN, 0.05, 10}, {STOP_GAIN, 0.01, 10},
             {STOP_GAIN, 0.003, 10}, {STOP_BOUND, 0.5, 1}, {STOP_BOUND, 0.2, 1},  {STOP_NUMBER, 5, 1},
             {STOP_NUMBER, 10, 1},   {STOP_NUMBER, 20, 1}};
enum { RULES = sizeof rules / sizeof *rules, STOP_MOST = 60 };

struct ended {
    size_t n, never; /* never: plays that the rule does not end within STOP_MOST trials */
    double trials[GAMES_MOST * GAMES_SEEDS], regret[GAMES_MOST * GAMES_SEEDS];
};

static bool ends(size_t rule, const struct play *play, double best, double gain) {
    if (play->n_tried < rules[rule].least)
        return false;
    switch (rules[rule].kind) {
    case STOP_GAIN:
        return gain < rules[rule].limit;
    case STOP_BOUND:
        return best <= play->pool->bound_us * (1 + rules[rule].limit);
    default:
        return (double)play->n_tried >= rules[rule].limit;
    }
}

/* The gain is what the advisor expects of the next trial, so it is known before that is taken. */
static void play_stopping(struct pool *pool, uint64_t seed, struct ended out[RULES]) {
    const struct method method = method_ours("advisor", "", &no_tuning);
    struct play play;
    bool stopped[RULES] = {0};
    double best = INFINITY, gain;
    play_init(&play, pool, seed, SUBSET_HALF);
    void *state = method.open(&method, &play);
    while (play.n_left) {
        const size_t next = ours_next(state, &method, &play, &gain);
        const bool last = play.n_tried >= STOP_MOST || play.n_left == 1;
        for (size_t r = 0; r < RULES && play.n_tried; r++)
            if (!stopped[r] && (last || ends(r, &play, best, gain))) {
                stopped[r] = true;
                out[r].never += !ends(r, &play, best, gain);
                out[r].trials[out[r].n] = (double)play.n_tried;
                out[r].regret[out[r].n++] = best / play.best_us - 1;
            }
        if (last)
            break;
        play_take(&play, next);
        best = fmin(best, play_us(&play, play.n_tried - 1));
    }
    method.close(state);
    play_release(&play);
}

static void print_stopping(struct games *games) {
    static const char *const heads[] = {"the session ends when", ">trials", ">best so far over best, -1",
                                        ">its 9th decile",       ">never",  NULL};
    static const char *const words[] = {"expected gain below %.1f%%, %zu or more trials", "within %.0f%% of the bound",
                                        "%.0f trials were made"};
    static struct ended all[RULES];
    struct table table;
    memset(all, 0, sizeof all);
    for (size_t p = 0; p < games->n; p++)
        for (uint64_t s = 1; s <= GAMES_SEEDS; s++)
            play_stopping(&games->pools[p], s, all);
    table_init(&table, heads);
    for (size_t r = 0; r < RULES; r++) {
        struct ended *e = &all[r];
        table_cell(&table, words[rules[r].kind], (rules[r].kind == STOP_NUMBER ? 1 : 100) * rules[r].limit,
                   rules[r].least);
        table_cell(&table, "%.1f", median_of(e->n, e->trials));
        table_cell(&table, "%.2f%%", 100 * median_of(e->n, e->regret));
        table_cell(&table, "%.1f%%", 100 * e->regret[(e->n - 1) * 9 / 10]);
        table_cell(&table, "%zu of %zu", e->never, e->n);
    }
    printf("What stopping saves and loses: plays of random halves by the advisor without training on, ended by each "
           "rule (or after %d trials).\n\n",
           STOP_MOST);
    table_print(&table, stdout);
    table_release(&table);
}

void table_ablation(struct corpus *corpus) {
    struct games games;
    games_init(&games, corpus);
    print_parts(&games);
    print_learning(&games);
    print_proposers(corpus);
    print_constraints(corpus);
    print_stopping(&games);
    games_release(&games);
}
