/* See games.h. */
#include "tests/evaluate/games.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/table.h"
#include "tests/evaluate/quantile.h"

const size_t games_marks[GAMES_MARKS] = {1, 2, 5, 10, 20, 40};
enum { LAST_MARK = 40 };

/* ---- the pools ---- */

static size_t largest_free(const struct corpus *corpus, const bool *taken) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < corpus->examples.n_domains; i++)
        if (!taken[i] && (best == SIZE_MAX || corpus_domain(corpus, i)->n > corpus_domain(corpus, best)->n))
            best = i;
    return best;
}

void games_init(struct games *games, const struct corpus *corpus) {
    struct arena scratch = {0};
    bool *taken = allocate(&scratch, corpus->examples.n_domains, sizeof *taken);
    size_t next;
    *games = (struct games){0};
    while (games->n < GAMES_MOST && (next = largest_free(corpus, taken)) != SIZE_MAX) {
        struct pool *pool = &games->pools[games->n];
        taken[next] = true;
        pool_init(pool, corpus, next);
        (void)pool_ranker(pool, GAMES_RANKER);
        snprintf(games->heads[games->n], sizeof *games->heads, ">%s", pool->words);
        games->n++;
    }
    games->untouched = games->n > GAMES_TOUCHED ? games->n - GAMES_TOUCHED : games->n;
    arena_release(&scratch);
}

void games_release(struct games *games) {
    for (size_t i = 0; i < games->n; i++)
        pool_release(&games->pools[i]);
}

static void write_pool(const struct pool *pool, FILE *out) {
    fprintf(out, "{\"name\":\"%s\",\"rows\":[", pool->words);
    for (size_t i = 0; i < pool->n; i++)
        for (size_t k = 0; k < POOL_BOX; k++)
            fprintf(out, "%s%.6f%s",
                    k   ? ","
                    : i ? ",["
                        : "[",
                    pool->box[i * POOL_BOX + k], k + 1 < POOL_BOX ? "" : "]");
    fprintf(out, "],\"us\":[");
    for (size_t i = 0; i < pool->n; i++)
        fprintf(out, "%s%.3f", i ? "," : "", pool->examples[i].us);
    fprintf(out, "]}");
}

void games_write(const struct games *games, const char *path) {
    struct error err;
    if (!path)
        return;
    FILE *out = fopen(path, "w");
    check(out ? ST_OK : error_set(&err, ST_ENVIRONMENT, "%s cannot be written", path), &err);
    fprintf(out, "{\"domains\":[");
    for (size_t i = 0; i < games->n; i++) {
        fprintf(out, i ? ",\n" : "\n");
        write_pool(&games->pools[i], out);
    }
    fprintf(out, "]}\n");
    check(fclose(out) ? error_set(&err, ST_ENVIRONMENT, "%s cannot be written", path) : ST_OK, &err);
}

size_t pool_tied(const struct pool *pool) {
    size_t best = 0, tied = 0;
    for (size_t i = 0; i < pool->n; i++)
        if (pool->examples[i].us < pool->examples[best].us)
            best = i;
    for (size_t i = 0; i < pool->n; i++)
        tied += log(pool->examples[i].us / pool->best_us) <= 1.96 * sqrt(pool->variance[i] + pool->variance[best]);
    return tied;
}

/* ---- plays ---- */

static void keep(struct outcome *out, const struct play *play, double best) {
    const double regret = best / play->best_us - 1;
    if (regret <= 0.02 && !isfinite(out->trials_2))
        out->trials_2 = (double)play->n_tried;
    if (regret <= 0.05 && !isfinite(out->trials_5))
        out->trials_5 = (double)play->n_tried;
    for (size_t k = 0; k < GAMES_MARKS; k++)
        if (play->n_tried <= games_marks[k])
            out->regret[k] = regret;
}

/* Nothing more is to be learned from this play. */
static bool is_over(const struct play *play, const struct outcome *out, double best) {
    return play->n_left == 0 || play->n_tried >= GAMES_TRIALS || best <= play->best_us ||
           (isfinite(out->trials_2) && play->n_tried >= LAST_MARK);
}

static size_t play_out(struct pool *pool, const struct method *method, uint64_t seed, enum subset subset,
                       struct outcome *out) {
    struct play play;
    double best = INFINITY;
    *out = (struct outcome){INFINITY, INFINITY, {0}};
    play_init(&play, pool, seed, subset);
    void *state = method->open ? method->open(method, &play) : NULL;
    do {
        play_take(&play, method->next(state, method, &play));
        best = fmin(best, play_us(&play, play.n_tried - 1));
        keep(out, &play, best);
    } while (!is_over(&play, out, best));
    const size_t trials = play.n_tried;
    if (method->close)
        method->close(state);
    play_release(&play);
    return trials;
}

/* How many seeds play; the others repeat them. */
static size_t seeds_of(const struct method *method, enum subset subset) {
    if (subset != SUBSET_HALF && !method->chance)
        return 1;
    return method->slow ? GAMES_SLOW_SEEDS : GAMES_SEEDS;
}

void games_play(struct games *games, const struct method *method, enum subset subset, struct scores *out) {
    const size_t seeds = seeds_of(method, subset);
    size_t trials = 0;
    const double start_us = clock_now_us();
    for (size_t p = 0; p < games->n; p++)
        for (size_t s = 0; s < GAMES_SEEDS; s++)
            if (s >= seeds)
                out->of[p][s] = out->of[p][s % seeds];
            else
                trials += play_out(&games->pools[p], method, s + 1, subset, &out->of[p][s]);
    out->decision_us = (clock_now_us() - start_us) / (double)trials;
}

/* ---- what they cost ---- */

/* Quantile over the plays of pools [from, to). */
static double scores_trials(const struct scores *scores, size_t from, size_t to, double quantile, bool within_5) {
    double values[GAMES_MOST * GAMES_SEEDS];
    size_t n = 0;
    for (size_t p = from; p < to; p++)
        for (size_t s = 0; s < GAMES_SEEDS; s++)
            values[n++] = within_5 ? scores->of[p][s].trials_5 : scores->of[p][s].trials_2;
    return quantile_of(n, values, quantile);
}

/* The mean, plays that did not get there counting as GAMES_TRIALS. */
static double scores_mean(const struct scores *scores, size_t n) {
    double sum = 0;
    for (size_t p = 0; p < n; p++)
        for (size_t s = 0; s < GAMES_SEEDS; s++)
            sum += fmin(scores->of[p][s].trials_2, GAMES_TRIALS);
    return sum / (double)(n * GAMES_SEEDS);
}

static double scores_regret(const struct scores *scores, size_t from, size_t to, size_t mark) {
    double values[GAMES_MOST * GAMES_SEEDS];
    size_t n = 0;
    for (size_t p = from; p < to; p++)
        for (size_t s = 0; s < GAMES_SEEDS; s++)
            values[n++] = scores->of[p][s].regret[mark];
    return quantile_of(n, values, 0.5);
}

/* "12", "12.5", ">100" */
struct words {
    char text[16];
};
static struct words trials_words(double trials) {
    struct words out;
    if (!isfinite(trials))
        snprintf(out.text, sizeof out.text, ">%d", GAMES_TRIALS);
    else
        snprintf(out.text, sizeof out.text, fmod(trials, 1) > 0 ? "%.1f" : "%.0f", trials);
    return out;
}

/* ---- tables ---- */

void games_print_costs(const struct games *games, size_t n, const struct method *methods, const struct scores *scores) {
    struct table table;
    const char *heads[GAMES_MOST + 8] = {"method", ">within 2%", ">quartiles", ">mean", ">untouched", ">within 5%"};
    for (size_t p = 0; p < games->n; p++)
        heads[6 + p] = games->heads[p];
    heads[6 + games->n] = ">ms a trial";
    table_init(&table, heads);
    for (size_t m = 0; m < n; m++) {
        const struct scores *s = &scores[m];
        table_cell(&table, "%s", methods[m].name);
        table_cell(&table, "%s", trials_words(scores_trials(s, 0, games->n, 0.5, false)).text);
        table_cell(&table, "%s-%s", trials_words(scores_trials(s, 0, games->n, 0.25, false)).text,
                   trials_words(scores_trials(s, 0, games->n, 0.75, false)).text);
        table_cell(&table, "%.1f", scores_mean(s, games->n));
        table_cell(&table, "%s", trials_words(scores_trials(s, 0, games->untouched, 0.5, false)).text);
        table_cell(&table, "%s", trials_words(scores_trials(s, 0, games->n, 0.5, true)).text);
        for (size_t p = 0; p < games->n; p++)
            table_cell(&table, "%s", trials_words(scores_trials(s, p, p + 1, 0.5, false)).text);
        table_cell(&table, "%.1f", s->decision_us / 1e3);
    }
    table_print(&table, stdout);
    table_release(&table);
    printf("\n");
}

void games_print_regret(const struct games *games, size_t n, const struct method *methods,
                        const struct scores *scores) {
    struct table table;
    char words[GAMES_MARKS][16];
    const char *heads[GAMES_MARKS + 2] = {"best so far over best, -1, after trials"};
    for (size_t k = 0; k < GAMES_MARKS; k++) {
        snprintf(words[k], sizeof words[k], ">%zu", games_marks[k]);
        heads[1 + k] = words[k];
    }
    table_init(&table, heads);
    for (size_t m = 0; m < n; m++) {
        table_cell(&table, "%s", methods[m].name);
        for (size_t k = 0; k < GAMES_MARKS; k++)
            table_cell(&table, "%.1f%%", 100 * scores_regret(&scores[m], 0, games->n, k));
    }
    table_print(&table, stdout);
    table_release(&table);
    printf("\n");
}
