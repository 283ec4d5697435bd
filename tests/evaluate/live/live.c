/* Search methods against each other, live: as the table `search` of `make evaluate`, but each trial is a real run in
 * the lab.
 *
 *     live play CORPUS RECORDS [DOMAIN...]    play, and go on where it stopped
 *     live table RECORDS                      what came of it
 *
 * In each domain (MODEL-CLUSTER of the corpus) every player has PLAY_TRIALS trials a seed. The players of a domain and
 * a seed take turns, a trial each, so that what the machine does meets all alike. A trial whose first iterations are
 * all GIVE_UP times slower than the play's best is ended there, whoever asked for it.
 *
 * At the end what was measured fastest runs again, in rounds: in each domain the strategies within NEAR of the fastest,
 * at most MOST_NEAR, the fastest of each play, and whatever would be within CREDITED of the best repeated one by its
 * own trial alone. Of many noisy times the least is the luckiest; a repeat was not chosen for its time. The players are
 * functions of what they are told, so a run that was killed asks them again, tells them what the records say, and goes
 * on. Needs root. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/interrupt.h"
#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/live/players.h"
#include "tests/evaluate/live/records.h"
#include "tests/evaluate/live/table.h"

static const struct player *const players[] = {
    &player_random, &player_grid,           &player_momentum, &player_genetic, &player_bayes,
    &player_optuna, &player_autosync_blind, &player_autosync, &player_session,
};
enum { PLAYERS = sizeof players / sizeof *players, MOST_STAGES = 8, MOST_SEEDS = 20, MOST_NEAR = 24 };

static const double GIVE_UP = 1.5, NEAR = 1.08, CREDITED = 1.03, TRIAL_US = 1e6, REPEAT_US = 1.5e6;

struct settings {
    uint64_t seeds, trials, rounds;
    const char *lock;
    struct store *store; /* NULL: the records alone */
};

/* What a play has tried; players borrow the strategies. */
struct play {
    const struct player *player; /* NULL: not played */
    void *state;
    size_t n;
    struct strategy strategies[PLAY_TRIALS];
    double us[PLAY_TRIALS], best_us;
};

struct live {
    struct settings settings;
    struct records records;
    size_t n_stages;
    struct stage stages[MOST_STAGES];
    struct play *plays; /* [n_stages][seeds][PLAYERS] */
    double began_us;
    size_t ran; /* trials, by this process */
};

static struct play *play_of(const struct live *l, size_t stage, uint64_t seed, size_t player) {
    return &l->plays[(stage * l->settings.seeds + (seed - 1)) * PLAYERS + player];
}

/* ---- trials ---- */

/* A real one; false when the user interrupted. */
static bool run(struct live *l, struct stage *stage, const struct stage_trial *trial, uint64_t number,
                struct live_record *out) {
    struct stage_result result;
    if (!stage_run(stage, trial, &result))
        return false;
    *out = (struct live_record){.domain = stage->words,
                                .method = trial->method,
                                .seed = trial->seed,
                                .trial = number,
                                .strategy = trial->strategy->id.hex,
                                .iterations = result.n,
                                .us = result.us};
    records_append(&l->records, out);
    l->ran++;
    fprintf(stderr, "%5.0f s  %-18s %-20s seed %lu  trial %2lu  %8.1f ms\n", (clock_now_us() - l->began_us) * 1e-6,
            stage->words, trial->method, (unsigned long)trial->seed, (unsigned long)number, result.us * 1e-3);
    return true;
}

/* What the records say of the play's next trial; NULL when they end before it. */
static const struct live_record *known(const struct live *l, const struct stage *stage, const struct play *play,
                                       uint64_t seed) {
    const char *method = play->player->name;
    const struct live_record *record = records_find(&l->records, stage->words, method, seed, play->n + 1);
    struct error err;
    if (record && strcmp(record->strategy, play->strategies[play->n].id.hex) != 0) {
        error_set(
            &err, ST_CONFLICT,
            "%s, %s, seed %lu, trial %zu: the records have another strategy; they are of another version or corpus",
            stage->words, method, (unsigned long)seed, play->n + 1);
        fail(&err);
    }
    return record;
}

/* The player's next trial. */
static bool play_on(struct live *l, struct stage *stage, struct play *play, uint64_t seed) {
    struct strategy *strategy = &play->strategies[play->n];
    const struct live_record *before;
    struct live_record record;
    play->player->ask(play->state, strategy);
    const struct stage_trial trial = {.strategy = strategy,
                                      .measured_us = TRIAL_US,
                                      .give_up_us = isfinite(play->best_us) ? GIVE_UP * play->best_us : 0,
                                      .lock = l->settings.lock,
                                      .store = l->settings.store,
                                      .method = play->player->name,
                                      .seed = seed};
    if ((before = known(l, stage, play, seed)))
        record = *before;
    else if (!run(l, stage, &trial, play->n + 1, &record)) {
        strategy_release(strategy);
        return false;
    }
    play->us[play->n++] = record.us;
    play->best_us = fmin(play->best_us, record.us);
    play->player->tell(play->state, strategy, record.us);
    return true;
}

/* All players of a stage and a seed, in turns. */
static bool play_round(struct live *l, size_t s, uint64_t seed) {
    struct stage *stage = &l->stages[s];
    bool on = true;
    for (size_t p = 0; p < PLAYERS; p++) {
        struct play *play = play_of(l, s, seed, p);
        if (players[p]->optuna && !stage->optuna)
            continue;
        play->player = players[p];
        play->best_us = INFINITY;
        play->state = players[p]->open(players[p], stage, seed);
    }
    for (uint64_t t = 0; t < l->settings.trials && on; t++)
        for (size_t p = 0; p < PLAYERS && on; p++)
            if (play_of(l, s, seed, p)->player)
                on = play_on(l, stage, play_of(l, s, seed, p), seed);
    for (size_t p = 0; p < PLAYERS; p++)
        if (play_of(l, s, seed, p)->player)
            players[p]->close(play_of(l, s, seed, p)->state);
    return on;
}

/* ---- repeats ---- */

struct finalist {
    const struct strategy *strategy;
    double us; /* the least measured */
    bool won;  /* a play */
};

/* Once for each strategy. */
static size_t list_distinct(const struct live *l, size_t s, struct finalist *out) {
    size_t n = 0;
    for (size_t k = 0; k < l->settings.seeds * PLAYERS; k++) {
        const struct play *play = &l->plays[s * l->settings.seeds * PLAYERS + k];
        for (size_t i = 0; i < play->n; i++) {
            size_t j = 0;
            while (j < n && memcmp(&out[j].strategy->id, &play->strategies[i].id, sizeof out[j].strategy->id) != 0)
                j++;
            if (j == n)
                out[n++] = (struct finalist){.strategy = &play->strategies[i], .us = INFINITY};
            out[j].us = fmin(out[j].us, play->us[i]);
            out[j].won |= play->us[i] <= play->best_us;
        }
    }
    return n;
}

static int compare(const void *a, const void *b) {
    const struct finalist *x = a, *y = b;
    return (x->us > y->us) - (x->us < y->us);
}

/* Means of a strategy's repeats; INFINITY without. */
static double repeated_us(const struct live *l, size_t s, const struct strategy *strategy) {
    const struct live_record *r;
    double sum = 0;
    uint64_t round = 1;
    for (; (r = records_find_repeat(&l->records, l->stages[s].words, round, strategy->id.hex)); round++)
        sum += r->us;
    return round > 1 ? sum / (double)(round - 1) : INFINITY;
}

/* Those that run again, first; their number. */
static size_t list_finalists(const struct live *l, size_t s, struct finalist *out) {
    const size_t all = list_distinct(l, s, out);
    double best_us = INFINITY;
    size_t n = 0;
    if (all)
        qsort(out, all, sizeof *out, compare);
    for (size_t i = 0; i < all; i++)
        best_us = fmin(best_us, repeated_us(l, s, out[i].strategy));
    for (size_t i = 0; i < all; i++) {
        const bool near = i < MOST_NEAR && out[i].us <= NEAR * out[0].us;
        const bool credited = isfinite(best_us) && out[i].us <= CREDITED * best_us;
        const bool begun = isfinite(repeated_us(l, s, out[i].strategy));
        if (isfinite(out[i].us) && (out[i].won || near || credited || begun))
            out[n++] = out[i];
    }
    return n;
}

/* All rounds of these; what the records have is not run again. */
static bool repeat_each(struct live *l, size_t s, size_t n, const struct finalist *finalists) {
    bool on = true;
    for (uint64_t round = 1; round <= l->settings.rounds; round++)
        for (size_t i = 0; i < n && on; i++) {
            struct live_record ignored;
            const struct stage_trial trial = {.strategy = finalists[i].strategy,
                                              .measured_us = REPEAT_US,
                                              .lock = l->settings.lock,
                                              .store = l->settings.store,
                                              .method = RECORDS_REPEAT,
                                              .seed = round,
                                              .round = round};
            if (!records_find_repeat(&l->records, l->stages[s].words, round, trial.strategy->id.hex))
                on = run(l, &l->stages[s], &trial, i + 1, &ignored);
        }
    return on;
}

/* Until no other strategy would be credited for the luck of its one trial. */
static bool repeat(struct live *l, size_t s) {
    struct arena scratch = {0};
    struct finalist *finalists = allocate(&scratch, l->settings.seeds * PLAYERS * PLAY_TRIALS, sizeof *finalists);
    bool on = true;
    for (size_t n = 0, before = SIZE_MAX; on && l->settings.rounds && n != before;) {
        before = n;
        n = list_finalists(l, s, finalists);
        on = repeat_each(l, s, n, finalists);
    }
    arena_release(&scratch);
    return on;
}

/* ---- the program ---- */

static void play_all(struct live *l) {
    bool on = true;
    l->plays = allocate_heap(l->n_stages * l->settings.seeds * PLAYERS, sizeof *l->plays);
    for (uint64_t seed = 1; seed <= l->settings.seeds; seed++)
        for (size_t s = 0; s < l->n_stages && on; s++)
            on = play_round(l, s, seed);
    for (size_t s = 0; s < l->n_stages && on; s++)
        on = repeat(l, s);
    for (size_t k = 0; k < l->n_stages * l->settings.seeds * PLAYERS; k++)
        for (size_t i = 0; i < l->plays[k].n; i++)
            strategy_release(&l->plays[k].strategies[i]);
    free(l->plays);
}

static void load_corpus(const char *path, struct examples *out) {
    struct store *store;
    struct error err;
    check(store_open(path, STORE_READ_ONLY, &store, &err), &err);
    check(examples_load(store, &(struct query){0}, out, NULL, &err), &err);
    store_close(store);
}

static int play(struct settings settings, const char *dataset, const char *corpus_path, const char *records_path,
                size_t n, char *const *domains) {
    struct live l = {.settings = settings, .n_stages = n, .began_us = clock_now_us()};
    struct examples corpus;
    struct optuna optuna;
    struct error err;
    const atomic_int *cancel = interrupt_flag();
    const bool has_optuna = optuna_start(&optuna);
    if (!has_optuna)
        fprintf(stderr, "Optuna is not installed (Debian: python3-optuna): it does not play.\n");
    load_corpus(corpus_path, &corpus);
    if (dataset)
        check(store_open(dataset, STORE_READ_WRITE, &l.settings.store, &err), &err);
    records_open(&l.records, records_path, true);
    for (size_t s = 0; s < n; s++)
        stage_init(&l.stages[s], &corpus, domains[s], has_optuna ? &optuna : NULL, cancel);
    play_all(&l);
    for (size_t s = 0; s < n; s++)
        stage_release(&l.stages[s]);
    fprintf(stderr, "%zu trials in %.0f s; %zu in %s\n", l.ran, (clock_now_us() - l.began_us) * 1e-6, l.records.n,
            records_path);
    records_release(&l.records);
    store_close(l.settings.store);
    if (has_optuna)
        optuna_stop(&optuna);
    examples_release(&corpus);
    return *cancel ? status_exit_code(ST_CANCELLED) : 0;
}

static int print_usage(void) {
    fprintf(stderr, "usage: live play CORPUS RECORDS DOMAIN... [options]\n"
                    "       live table RECORDS\n"
                    "  --seeds N      plays of a method in a domain (2)\n"
                    "  --trials N     of a play, at most 30 (30)\n"
                    "  --rounds N     in which what was fastest runs again (3)\n"
                    "  --lock FILE    locked during each trial, for other programs that measure here\n"
                    "  --dataset DB   record the trials there too\n");
    return status_exit_code(ST_USAGE);
}

/* False for what makes no sense. */
static bool parse(int argc, char **argv, struct settings *out, const char **dataset) {
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 's'},   {"trials", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'},  {"lock", required_argument, NULL, 'l'},
        {"dataset", required_argument, NULL, 'd'}, {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 's':
            out->seeds = strtoul(optarg, NULL, 10);
            break;
        case 't':
            out->trials = strtoul(optarg, NULL, 10);
            break;
        case 'r':
            out->rounds = strtoul(optarg, NULL, 10);
            break;
        case 'l':
            out->lock = optarg;
            break;
        case 'd':
            *dataset = optarg;
            break;
        default:
            return false;
        }
    return out->seeds >= 1 && out->seeds <= MOST_SEEDS && out->trials >= 1 && out->trials <= PLAY_TRIALS &&
           out->rounds <= MOST_SEEDS;
}

int main(int argc, char **argv) {
    struct settings settings = {.seeds = 2, .trials = PLAY_TRIALS, .rounds = 3};
    const char *dataset = NULL;
    if (!parse(argc, argv, &settings, &dataset))
        return print_usage();
    const int n = argc - optind;
    char **words = argv + optind;
    if (n == 2 && !strcmp(words[0], "table")) {
        struct records records;
        records_open(&records, words[1], false);
        live_tables(&records);
        records_release(&records);
        return 0;
    }
    if (n < 4 || n > 3 + MOST_STAGES || strcmp(words[0], "play") != 0)
        return print_usage();
    return play(settings, dataset, words[1], words[2], (size_t)n - 3, words + 3);
}
