/* A session that may try stale models (--allow-stale): after its search the family of strategies of updates
 * (strategy/baselines/updates.h) is predicted, all in the same weather where there is any, and those with the shortest
 * rounds get a trial in which workers learn a small task. The fastest comes into the final, and beside it synchronous
 * training as updates, which learns what the session's synchronous strategies would. outcome_stale.c compares them.
 *
 * Nothing of this depends on anything but the records before it, so a resumed session lists the same. Cost: a
 * simulation of each strategy of the family, once a session. */
#include <math.h>
#include <string.h>

#include "strategy/baselines/updates.h"
#include "tuner/session/session_internal.h"

enum { STALE_TRIED = 3 };

bool session_is_stale(const struct entry *e) {
    return !consistency_is_plain(&e->strategy.consistency);
}

bool session_is_in_step(const struct entry *e) {
    return session_is_stale(e) && e->strategy.consistency.kind == CONSISTENCY_synchronous;
}

enum status session_check_stale(const struct session_options *kept, const struct cluster *cluster,
                                const struct export_limits *limits, struct error *err) {
    if (!kept->allow_stale)
        return ST_OK;
    if (kept->allow_stale > CONSISTENCY_MAX_STALENESS)
        return error_set(err, ST_INVALID, "models may be stale by 1 to %d, not by %lu", CONSISTENCY_MAX_STALENESS,
                         (unsigned long)kept->allow_stale);
    if (cluster->n_devices < 2)
        return error_set(err, ST_INVALID, "models are stale where workers do not wait for each other; \"%s\" has %s",
                         cluster->name, cluster->n_devices ? "one device" : "no device");
    if (kept->memory_bytes > 0)
        return error_set(err, ST_INVALID,
                         "the memory of strategies whose models may be stale is not known: allow stale models, or give "
                         "a budget of memory");
    if (limits && limits->n)
        return error_set(err, ST_INVALID, "no form of export can say that models may be stale");
    return ST_OK;
}

uint64_t session_stale_trials(const struct session *s) {
    return s->options.kept.allow_stale ? STALE_TRIED + 1 : 0;
}

/* The shortest rounds so far, the shortest first. */
struct shortlist {
    size_t n;
    struct strategy strategies[STALE_TRIED];
    double us[STALE_TRIED];
};

/* Takes the strategy over. */
static void shortlist_offer(struct shortlist *list, struct strategy *strategy, double us) {
    size_t at = 0;
    while (at < list->n && list->us[at] <= us)
        at++;
    if (at == STALE_TRIED) {
        strategy_release(strategy);
        return;
    }
    if (list->n == STALE_TRIED)
        strategy_release(&list->strategies[--list->n]);
    memmove(&list->strategies[at + 1], &list->strategies[at], (list->n - at) * sizeof *strategy);
    memmove(&list->us[at + 1], &list->us[at], (list->n - at) * sizeof us);
    list->strategies[at] = *strategy;
    list->us[at] = us;
    list->n++;
}

static bool shortlist_has(const struct shortlist *list, const struct id *id) {
    for (size_t i = 0; i < list->n; i++)
        if (!memcmp(&list->strategies[i].id, id, sizeof *id))
            return true;
    return false;
}

static enum status predict_round(struct session *s, const struct strategy *strategy, double *us, struct error *err) {
    struct expectation expected;
    struct updates_prediction updates;
    enum status st = predictor_round(&s->predictor, strategy, &expected, &updates, err);
    if (!st)
        *us = expected.mean_us;
    return st;
}

/* A strategy that cannot run here is left out. */
static enum status offer(struct session *s, size_t i, struct shortlist *list, struct error *err) {
    struct strategy strategy;
    double us = INFINITY;
    enum status st =
        updates_family_build(s->model, s->cluster, (uint32_t)s->options.kept.allow_stale, i, &strategy, err);
    if (st)
        return st;
    if (!shortlist_has(list, &strategy.id))
        st = predict_round(s, &strategy, &us, err);
    if (!st && isfinite(us))
        shortlist_offer(list, &strategy, us);
    else
        strategy_release(&strategy);
    return outcome_leaves_out(st) ? ST_OK : st;
}

/* An entry for it, unless there is one; takes the strategy over. */
static enum status enter(struct session *s, struct strategy *strategy, double us, struct error *err) {
    if (session_find(s, &strategy->id)) {
        strategy_release(strategy);
        return ST_OK;
    }
    const bool in_step = strategy->consistency.kind == CONSISTENCY_synchronous;
    return session_add(s, strategy, in_step ? OUTCOME_IN_STEP : OUTCOME_STALE, us) ? ST_OK : error_no_memory(err);
}

static enum status enter_in_step(struct session *s, struct error *err) {
    struct strategy strategy;
    double us = 0;
    enum status st = updates_build_synchronous(s->model, s->cluster, &strategy, err);
    if (st)
        return st;
    st = predict_round(s, &strategy, &us, err);
    if (!st)
        return enter(s, &strategy, us, err);
    strategy_release(&strategy);
    return outcome_leaves_out(st) ? ST_OK : st;
}

static enum status list_family(struct session *s, struct error *err) {
    const size_t n = updates_family_size((uint32_t)s->options.kept.allow_stale);
    struct shortlist list = {0};
    enum status st = session_refit(s, err);
    for (size_t i = 0; i < n && !st; i++)
        st = offer(s, i, &list, err);
    if (!st && list.n > 0)
        st = enter_in_step(s, err);
    for (size_t i = 0; i < list.n; i++)
        if (st)
            strategy_release(&list.strategies[i]);
        else
            st = enter(s, &list.strategies[i], list.us[i], err);
    return st;
}

static struct entry *first_waiting(const struct session *s) {
    for (size_t i = 0; i < s->n && session_has_budget(s); i++) {
        struct entry *e = s->entries[i];
        if (session_is_stale(e) && e->state == RECORD_WAITING && !e->running)
            return e;
    }
    return NULL;
}

bool session_has_stale(const struct session *s) {
    return first_waiting(s) != NULL;
}

enum status session_next_stale(struct session *s, struct entry **out, struct error *err) {
    *out = NULL;
    if (!s->options.kept.allow_stale)
        return ST_OK;
    enum status st = s->stale_done || !session_has_budget(s) ? ST_OK : list_family(s, err);
    if (st)
        return st;
    s->stale_done = true;
    s->phase = TUNE_STALE;
    *out = first_waiting(s);
    return ST_OK;
}
