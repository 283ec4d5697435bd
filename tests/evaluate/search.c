/* What does finding a good strategy cost? Every method of methods.h plays the pools of the largest domains, and the
 * number of trials until it holds an entry within 2% of the pool's best is counted.
 *
 * The best of a pool is one noisy median, the luckiest of many; so 5% is counted too, and how many entries cannot be
 * told from the best. The whole pool is played first. There a method without chance plays one game a domain; so then
 * each seed plays a random half of each pool, with the best of that half to be found, which no method can know. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "tests/evaluate/games.h"
#include "tests/evaluate/methods.h"

static const struct ours order_only = {.diversity = 1};
static const struct ours process = {.process = true, .diversity = 1};
static const struct ours ranker_only = {.ranker = true, .kind = GAMES_RANKER, .diversity = 1};
static const struct ours ranker_process = {.ranker = true, .kind = GAMES_RANKER, .process = true, .diversity = 1};
static const struct ours tuned = {
    .ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .process = true, .diversity = 1};
static const struct ours session = {
    .baselines = true, .ranker = true, .kind = GAMES_RANKER, .fine_tuned = true, .process = true, .diversity = 1};
static const struct ours session_alone = {.baselines = true, .process = true, .diversity = 1};

enum { METHODS = 16 };

static void list_methods(struct method out[METHODS]) {
    const struct method all[METHODS] = {
        method_random,
        method_grid,
        method_momentum,
        method_genetic,
        method_horovod,
        method_bayes,
        method_bayes_wide,
        method_autosync_blind,
        method_autosync,
        method_ours("timeline", "in the order of the simulator's predictions", &order_only),
        method_ours("timeline + process", "its errors learned by the process", &process),
        method_ours("ranker", "in the order of a ranker of other domains", &ranker_only),
        method_ours("ranker + process", "its errors learned by the process", &ranker_process),
        method_ours("advisor", "the ranker also trained on as trials arrive", &tuned),
        method_ours("session, no ranker", "framework defaults first, then timeline + process", &session_alone),
        method_ours("session", "framework defaults first, then the advisor", &session),
    };
    memcpy(out, all, sizeof all);
}

static void print_pools(const struct games *games) {
    static const char *const heads[] = {"domain", ">strategies", ">best us",        ">worst/best", ">within 2%",
                                        ">5%",    ">10%",        ">tied with best", ">best/bound", NULL};
    struct table table;
    table_init(&table, heads);
    for (size_t p = 0; p < games->n; p++) {
        const struct pool *pool = &games->pools[p];
        size_t within[3] = {0}, tied = pool_tied(pool);
        double worst = 0;
        for (size_t i = 0; i < pool->n; i++) {
            const double ratio = pool->examples[i].us / pool->best_us;
            worst = fmax(worst, ratio);
            within[0] += ratio <= 1.02;
            within[1] += ratio <= 1.05;
            within[2] += ratio <= 1.1;
        }
        table_cell(&table, "%s%s", pool->words, p >= games->untouched ? " *" : "");
        table_cell(&table, "%zu", pool->n);
        table_cell(&table, "%.0f", pool->best_us);
        table_cell(&table, "%.1f", worst);
        for (size_t k = 0; k < 3; k++)
            table_cell(&table, "%zu", within[k]);
        table_cell(&table, "%zu", tied);
        table_cell(&table, "%.2f", pool->best_us / pool->bound_us);
    }
    table_print(&table, stdout);
    table_release(&table);
    printf("*: what the advisor's constants were chosen on, beside the domains that are not here.\n"
           "Tied: the 95%% interval of the two times' ratio, by the scatter of repeated trials, holds 1.\n\n");
}

static void play_all(struct games *games, enum subset subset, size_t n, const struct method *methods,
                     struct scores *scores) {
    for (size_t m = 0; m < n; m++)
        games_play(games, &methods[m], subset, &scores[m]);
    games_print_costs(games, n, methods, scores);
    games_print_regret(games, n, methods, scores);
}

void table_search(struct corpus *corpus) {
    struct games games;
    struct method methods[METHODS];
    struct scores scores[METHODS];
    games_init(&games, corpus);
    list_methods(methods);
    games_write(&games, getenv("EVALUATE_POOLS"));
    print_pools(&games);
    printf(
        "Trials until within 2%% of the best of the pool, medians over %d seeds (%d for methods that train as they "
        "play) and %zu domains.\nA play ends after %d trials. Quartiles over all plays; \"untouched\" leaves out the "
        "domains with *; the last columns are the domains' own medians.\n",
        GAMES_SEEDS, GAMES_SLOW_SEEDS, games.n, GAMES_TRIALS);
    for (size_t m = 0; m < METHODS; m++)
        printf("  %-20s %s\n", methods[m].name, methods[m].words);
    printf("\n");
    play_all(&games, SUBSET_ALL, METHODS, methods, scores);
    printf("The same when each seed plays a random half of each pool.\n\n");
    play_all(&games, SUBSET_HALF, METHODS, methods, scores);
    printf("The same without the eighth of each pool that our simulator chose (collect-fast), which favours it.\n\n");
    play_all(&games, SUBSET_DRAWN, METHODS, methods, scores);
    games_release(&games);
}
