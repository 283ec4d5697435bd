/* The ways to search, where a strategy's time comes from a real trial: the methods of the replay (methods.h) on free
 * strategies in place of a pool.
 *
 * A player is asked for a strategy and told its time, in turn. What it does follows from its stage, its seed and what
 * it was told, so a play that was interrupted goes on when it is asked and told the same again. Functions end the
 * program when something fails. Threads: one; a player may use more inside. */
#ifndef TESTS_EVALUATE_LIVE_PLAYERS_H
#define TESTS_EVALUATE_LIVE_PLAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "strategy/strategy.h"
#include "tests/evaluate/live/stage.h"

enum { PLAY_TRIALS = 30 }; /* a play's most */

struct player {
    const char *name, *words;
    bool optuna; /* it is Optuna's: there is no such player without it */
    void *(*open)(const struct player *player, struct stage *stage, uint64_t seed);
    void (*ask)(void *state, struct strategy *out); /* sealed; the caller's. At most PLAY_TRIALS times */
    /* `us` is INFINITY for a trial that did not complete; the strategy is borrowed until close. */
    void (*tell)(void *state, const struct strategy *strategy, double us);
    void (*close)(void *state);
};

/* Points of a box of PLAYER_KNOBS knobs (players_knobs.c); strategies drawn and bred (players_drawn.c); the session
 * itself, whose trials these are (players_session.c). */
enum { PLAYER_KNOBS = 7 };
extern const struct player player_random, player_grid, player_momentum, player_bayes, player_optuna;
extern const struct player player_genetic, player_autosync_blind, player_autosync;
extern const struct player player_session;

#endif
