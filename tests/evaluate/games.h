/* Plays of many methods over several pools, and what they cost.
 *
 * Functions end the program when something fails. Units: microseconds. Threads: one. */
#ifndef TESTS_EVALUATE_GAMES_H
#define TESTS_EVALUATE_GAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/evaluate/methods.h"
#include "tests/evaluate/pool.h"

enum {
    GAMES_MOST = 6,    /* domains, the largest */
    GAMES_TOUCHED = 2, /* the smallest of them, which chose the advisor's constants */
    GAMES_SEEDS = 20,
    GAMES_SLOW_SEEDS = 5, /* of slow methods; each counts four times */
    GAMES_TRIALS = 100,   /* a play that has not found the best by then ends */
    GAMES_MARKS = 6,
};
#define GAMES_RANKER RANKER_trees             /* what a session uses */
extern const size_t games_marks[GAMES_MARKS]; /* trials at which the best so far is kept */

struct games {
    size_t n, untouched; /* pools; those that chose nothing come first */
    struct pool pools[GAMES_MOST];
    char heads[GAMES_MOST][64]; /* of the pools' columns */
};

/* The GAMES_MOST domains with most examples, largest first, each with its GAMES_RANKER. */
void games_init(struct games *games, const struct corpus *corpus);
void games_release(struct games *games);

/* The pools as JSON for optuna_peer.py: {"domains": [{"name", "rows": [[knobs in 0..1]...], "us": [...]}]}. NULL: not
 * wanted. */
void games_write(const struct games *games, const char *path);

/* Entries of the pool that repeated trials could not tell from its best. */
size_t pool_tied(const struct pool *pool);

struct outcome {
    double trials_2, trials_5; /* until within 2% and 5%; INFINITY: not by the end */
    double regret[GAMES_MARKS];
};
struct scores {
    struct outcome of[GAMES_MOST][GAMES_SEEDS];
    double decision_us; /* mean time to choose a trial; GAMES_RANKER was trained before */
};
void games_play(struct games *games, const struct method *method, enum subset subset, struct scores *out);

/* A row a method: trials until within 2%, with quartiles and by domain, and within 5%. */
void games_print_costs(const struct games *games, size_t n, const struct method *methods, const struct scores *scores);
/* A row a method: how far the best so far is from the best after games_marks trials, medians. */
void games_print_regret(const struct games *games, size_t n, const struct method *methods, const struct scores *scores);

#endif
