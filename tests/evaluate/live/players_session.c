/* See players.h. The session of tuner/session/session.h itself, with its default budget and the ranker of the stage, in
 * a thread: where it would run a trial it waits, and the play's trial is the answer. It is cancelled at the end of the
 * play, before its final. Its records go to a file that is gone afterwards. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/live/players.h"
#include "tuner/session/tune.h"

enum { FINAL_TRIALS = 10 }; /* of the budget, kept for a final that no play reaches */

enum turn { TURN_SESSION, TURN_PLAY, TURN_OVER };

struct state {
    const struct stage *stage;
    struct tune_options options;
    struct store *store;
    char folder[64], path[96];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    enum turn turn;
    const struct strategy *asked; /* TURN_PLAY */
    double us;
    bool cancelled;
    struct error err; /* TURN_OVER: why */
};

static void turn_to(struct state *s, enum turn turn) {
    s->turn = turn;
    pthread_cond_broadcast(&s->turned);
}

/* The session's runner, in its thread. */
static enum status hand_over(void *context, const struct tune_order *order, struct tune_outcome *out,
                             struct error *err) {
    struct state *s = context;
    pthread_mutex_lock(&s->lock);
    s->asked = order->strategy;
    turn_to(s, TURN_PLAY);
    while (s->turn == TURN_PLAY)
        pthread_cond_wait(&s->turned, &s->lock);
    const bool cancelled = s->cancelled;
    pthread_mutex_unlock(&s->lock);
    if (cancelled)
        return error_set(err, ST_CANCELLED, "the play is over");
    *out = isfinite(s->us) ? (struct tune_outcome){.state = RECORD_COMPLETE, .n = 1, .iterations_us = &s->us}
                           : (struct tune_outcome){.state = RECORD_FAILED, .reason = "did not complete"};
    return ST_OK;
}

static void *run_session(void *context) {
    struct state *s = context;
    const struct tune_runner runner = {"lab", s, hand_over};
    struct outcome tuning;
    const struct domain *d = s->stage->domain;
    const enum status st = tune_run(s->store, &d->model, &d->cluster, &runner, &s->options, NULL, &tuning, &s->err);
    if (!st)
        outcome_release(&tuning);
    pthread_mutex_lock(&s->lock);
    turn_to(s, TURN_OVER);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Until it asks for a trial; a session that ends before its play does is a failure. */
static void wait_for_turn(struct state *s) {
    pthread_mutex_lock(&s->lock);
    while (s->turn == TURN_SESSION)
        pthread_cond_wait(&s->turned, &s->lock);
    const bool over = s->turn == TURN_OVER;
    pthread_mutex_unlock(&s->lock);
    if (over)
        fail(&s->err);
}

static void open_store(struct state *s) {
    struct error err;
    const char *parent = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%.40s/live-XXXXXX", parent ? parent : "/tmp");
    check(mkdtemp(s->folder) ? ST_OK : error_set(&err, ST_ENVIRONMENT, "%s: cannot be made", s->folder), &err);
    snprintf(s->path, sizeof s->path, "%s/session.db", s->folder);
    check(store_open(s->path, STORE_READ_WRITE, &s->store, &err), &err);
}

static void remove_store(struct state *s) {
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    char path[128];
    store_close(s->store);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", s->path, suffixes[i]);
        unlink(path);
    }
    rmdir(s->folder);
}

static void *session_open(const struct player *player, struct stage *stage, uint64_t seed) {
    struct state *s = allocate_heap(1, sizeof *s);
    struct error err;
    (void)player;
    s->stage = stage;
    s->options = tune_default_options();
    s->options.trials = PLAY_TRIALS + FINAL_TRIALS;
    s->options.seed = seed;
    s->options.space = stage->space.options;
    s->options.ranker = stage->ranker;
    error_set(&s->err, ST_CONFLICT, "the session ended before its play");
    open_store(s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turned, NULL);
    check(pthread_create(&s->thread, NULL, run_session, s) ? error_set(&err, ST_ENVIRONMENT, "no thread") : ST_OK,
          &err);
    return s;
}

static void session_ask(void *state, struct strategy *out) {
    struct state *s = state;
    struct error err;
    wait_for_turn(s);
    check(strategy_copy(s->asked, s->asked->name, out, &err), &err);
    out->id = s->asked->id;
}

/* It thinks at once, so that it does not do so during somebody's trial. */
static void session_tell(void *state, const struct strategy *strategy, double us) {
    struct state *s = state;
    (void)strategy;
    pthread_mutex_lock(&s->lock);
    s->us = us;
    turn_to(s, TURN_SESSION);
    pthread_mutex_unlock(&s->lock);
    wait_for_turn(s);
}

static void close_session(void *state) {
    struct state *s = state;
    wait_for_turn(s);
    pthread_mutex_lock(&s->lock);
    s->cancelled = true;
    turn_to(s, TURN_SESSION);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    remove_store(s);
    pthread_cond_destroy(&s->turned);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct player player_session = {.name = "session",
                                      .words = "ours, its ranker trained on the other domains",
                                      .open = session_open,
                                      .ask = session_ask,
                                      .tell = session_tell,
                                      .close = close_session};
