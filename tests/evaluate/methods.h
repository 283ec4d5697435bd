/* The ways to search a pool: what people do, what published systems do, and what a session does.
 *
 * A method is asked for the next entry to try until the play ends. Everything that it chooses by chance comes from
 * play->rng or play->seed, so a seed plays the same game again. Threads: one. */
#ifndef TESTS_EVALUATE_METHODS_H
#define TESTS_EVALUATE_METHODS_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/evaluate/pool.h"

struct method {
    const char *name, *words;
    bool chance;          /* false: every seed plays alike, if the pool is whole */
    bool slow;            /* GAMES_SLOW_SEEDS seeds have to do */
    const void *settings; /* the method's own */
    /* What it keeps during a play; NULL where it keeps nothing. */
    void *(*open)(const struct method *method, struct play *play);
    size_t (*next)(void *state, const struct method *method, struct play *play); /* an untried entry */
    void (*close)(void *state);
};

/* Searches without a model of what they search, and Bayesian optimization without a simulator (methods_plain.c). */
extern const struct method method_random, method_grid, method_momentum, method_genetic, method_bayes, method_bayes_wide,
    method_horovod;

/* AutoSync's candidates (§3.2), without a ranker and with one (methods_autosync.c). */
extern const struct method method_autosync_blind, method_autosync;

/* What a session's advisor does, and what it is without its parts (methods_ours.c). */
struct ours {
    bool baselines;        /* the framework defaults come first, as in a session */
    bool ranker;           /* one trained on all other domains is the prior; otherwise the timeline */
    enum ranker_kind kind; /* of the ranker */
    bool fine_tuned;       /* the ranker trains on with the play's trials */
    bool process;          /* a Gaussian process corrects the prior */
    bool blind;            /* the timeline never ran */
    double diversity;      /* times the advisor's default */
};

/* The next entry, by advisor_rank. *gain is what it expects to win over the best, relative (may be NULL); INFINITY
 * before it models. */
size_t ours_next(void *state, const struct method *method, struct play *play, double *gain);

/* `name` with these settings. */
struct method method_ours(const char *name, const char *words, const struct ours *settings);

#endif
