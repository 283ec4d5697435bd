/* What a session in weather knows of the quiet network: which strategy would be the best there. That strategy gets a
 * trial and a place in the final, so that the answer can say what it loses in weather. Cost: some steps of a search,
 * once a session. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tuner/search/candidates.h"
#include "tuner/session/session_internal.h"

#define QUIET "quiet" /* the proposer of that strategy */
enum { QUIET_PASSES = 6 };

enum status session_predict(struct session *s, const struct strategy *strategy, double *us, struct error *err) {
    struct prediction prediction;
    enum status st = predictor_run(&s->predictor, strategy, &prediction, err);
    if (!st)
        *us = prediction.iteration_us;
    return st;
}

typedef enum status quiet_work(struct session *s, struct strategy *out, struct error *err);

/* Predict for the quiet network, by its description alone: trials change nothing there, so that a resumed session finds
 * the same. */
static enum status on_quiet_network(struct session *s, quiet_work *work, struct strategy *out, struct error *err) {
    const struct correction kept = s->predictor.correction;
    struct error ignored;
    s->predictor.weather = 0;
    enum status st = predictor_correct(&s->predictor, (struct correction){1, 1}, err);
    if (!st)
        st = work(s, out, err);
    s->predictor.weather = s->options.kept.weather;
    const enum status restored = predictor_correct(&s->predictor, kept, st ? &ignored : err);
    return st ? st : restored;
}

static enum status predict_entries(struct session *s, struct strategy *out, struct error *err) {
    enum status st = ST_OK;
    (void)out;
    for (size_t i = 0; i < s->n && !st; i++) {
        struct entry *e = s->entries[i];
        if (e->quiet_us > 0)
            continue;
        st = session_predict(s, &e->strategy, &e->quiet_us, err);
        if (outcome_leaves_out(st)) {
            e->quiet_us = INFINITY;
            st = ST_OK;
        }
    }
    return st;
}

/* The candidate that is fastest, out of a list. */
static enum status take_fastest(struct session *s, struct candidates *from, struct strategy *out, double *out_us,
                                struct error *err) {
    size_t best = SIZE_MAX;
    double least = INFINITY, us;
    for (size_t i = 0; i < from->n; i++) {
        enum status st = session_predict(s, &from->items[i].strategy, &us, err);
        if (st && !outcome_leaves_out(st))
            return st;
        if (!st && us < least) {
            best = i;
            least = us;
        }
    }
    if (best == SIZE_MAX)
        return error_set(err, ST_NOT_FOUND, "no strategy can be predicted on the quiet network");
    *out = from->items[best].strategy;
    *out_us = least;
    from->items[best] = from->items[--from->n];
    return ST_OK;
}

/* What a search would answer there, with predictions in the place of trials: in each pass the proposers climb from and
 * cross the best of those before. */
static enum status search_quietly(struct session *s, struct strategy *out, struct error *err) {
    struct strategy found[QUIET_PASSES] = {0};
    struct tried tried[QUIET_PASSES];
    struct candidates candidates;
    struct rng rng;
    const struct search_context context = {.space = &s->space, .predictor = &s->predictor, .starts = &s->starts};
    const size_t asked = s->options.evaluations;
    size_t best = 0;
    enum status st = ST_OK;
    rng_split(&rng, s->options.seed, UINT64_MAX);
    for (size_t k = 0; k < QUIET_PASSES && !st; k++) {
        st = candidates_make(&context, asked ? asked : candidates_evaluations(s->model), k, tried, &rng, &candidates,
                             err);
        if (st)
            break;
        st = take_fastest(s, &candidates, &found[k], &tried[k].us, err);
        candidates_release(&candidates);
        tried[k] = (struct tried){.strategy = &found[k], .us = tried[k].us, .proposer = QUIET};
        best = !st && tried[k].us < tried[best].us ? k : best;
    }
    for (size_t k = 0; k < QUIET_PASSES; k++)
        if (st || k != best)
            strategy_release(&found[k]);
    if (!st)
        *out = found[best];
    return st;
}

enum status session_next_quiet(struct session *s, struct entry **out, struct error *err) {
    struct strategy strategy = {0};
    char name[32];
    double predicted_us = 0;
    *out = NULL;
    for (size_t i = 0; i < s->n; i++)
        s->quiet_done |= !strcmp(s->entries[i]->proposer, QUIET);
    if (!s->options.kept.weather || s->quiet_done)
        return ST_OK;
    s->quiet_done = true;
    enum status st = on_quiet_network(s, search_quietly, &strategy, err);
    if (st) {
        strategy_release(&strategy);
        return st == ST_NOT_FOUND ? ST_OK : st;
    }
    snprintf(name, sizeof name, QUIET "-%lu", (unsigned long)(s->trials + s->running + 1));
    strategy.name = arena_strdup(&strategy.arena, name);
    st = strategy.name ? session_predict(s, &strategy, &predicted_us, err) : error_no_memory(err);
    if (st || session_find(s, &strategy.id)) {
        strategy_release(&strategy);
        return st;
    }
    *out = session_add(s, &strategy, QUIET, predicted_us);
    return *out ? ST_OK : error_no_memory(err);
}

enum status session_predict_quiet(struct session *s, struct error *err) {
    return on_quiet_network(s, predict_entries, NULL, err);
}
