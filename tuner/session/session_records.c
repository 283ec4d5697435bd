/* A session in the dataset: its beginning, and how one that was interrupted finds its state again by walking through
 * its records.
 *
 * The time that a session has used is the time that it ran, proposals included, and not the pauses between its runs.
 * A run lasts from its beginning to its last sign of life: the end of a trial, the beginning of one that never ended,
 * or the record that the session was stopped. When a run begins, that moment and the time used until then are written
 * into the stored budget. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "tuner/session/session_internal.h"
#include "tuner/session/session_options.h"

enum { ID_LETTERS = 16 };

/* Session ids sort by time and can be typed; 80 random bits keep two apart and cannot be guessed. Crockford's base 32
 * has no letters that are easily mistaken for others. Fails: ST_ENVIRONMENT. */
static enum status make_id(char out[64], struct error *err) {
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    unsigned char bytes[ID_LETTERS];
    char stamp[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, ST_ENVIRONMENT, "getrandom: %s", strerror(errno));
    clock_utc(stamp, sizeof stamp);
    char *to = out + sprintf(out, "%.4s%.2s%.2s-%.2s%.2s%.2s-", stamp, stamp + 5, stamp + 8, stamp + 11, stamp + 14,
                             stamp + 17);
    for (size_t i = 0; i < sizeof bytes; i++)
        *to++ = letters[bytes[i] % 32];
    *to = '\0';
    return ST_OK;
}

/* The strategy of a record under the name that the record has for it. */
static enum status get_strategy(const struct session *s, struct store *store, const struct record *record,
                                struct strategy *out, struct error *err) {
    enum status st = store_get_strategy(store, record->strategy, s->model, s->cluster, out, err);
    if (st)
        return st;
    out->name = arena_strdup(&out->arena, record->strategy_name);
    if (out->name)
        return ST_OK;
    strategy_release(out);
    return error_no_memory(err);
}

/* Take one record in: trials of one strategy become their mean; a strategy that can no longer be lowered or predicted,
 * or does what this session may not, is left out. */
static enum status add_earlier(struct session *s, struct store *store, const struct record *record, size_t *counts,
                               struct error *err) {
    const double us = s->options.kept.weather ? record->mean_us : record->median_us;
    struct strategy *strategy = &s->earlier_strategies[s->n_earlier];
    struct prediction prediction;
    for (size_t i = 0; i < s->n_earlier; i++)
        if (!strcmp(s->earlier_strategies[i].id.hex, record->strategy)) {
            s->earlier[i].us += (us - s->earlier[i].us) / (double)++counts[i];
            s->earlier_measured[i].us = s->options.kept.weather ? s->earlier_measured[i].us : s->earlier[i].us;
            return ST_OK;
        }
    enum status st = get_strategy(s, store, record, strategy, err);
    if (!st && !space_permits(&s->space, strategy)) {
        strategy_release(strategy);
        return ST_OK;
    }
    if (!st && (st = predictor_run(&s->predictor, strategy, &prediction, err)))
        strategy_release(strategy);
    if (st)
        return st == ST_INVALID || st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
    counts[s->n_earlier] = 1;
    s->earlier_measured[s->n_earlier] = session_measured(s, strategy, us, record->n_iterations, record->iterations_us);
    s->earlier[s->n_earlier++] = (struct tried){.strategy = strategy, .us = us};
    return ST_OK;
}

static void forget_earlier(struct session *s) {
    for (size_t i = 0; i < s->n_earlier; i++)
        strategy_release(&s->earlier_strategies[i]);
    free(s->earlier_strategies);
    free(s->earlier_measured);
    free(s->earlier);
    s->earlier_strategies = NULL;
    s->earlier_measured = NULL;
    s->earlier = NULL;
    s->n_earlier = 0;
}

/* The fastest complete trials in this domain from before `began`, by the same runner and in the weather of the
 * session's first trials: those of other weather differ for another reason than their strategies. Later ones are left
 * out, so that a resumed session knows the same as before. */
static enum status load_earlier(struct session *s, struct store *store, const char *began, struct error *err) {
    struct arena arena = {0};
    struct record *records;
    size_t n = 0;
    const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.model = s->model->id.hex,
                                .cluster = s->cluster->id.hex,
                                .runner = s->options.kept.launch.runner,
                                .state = &complete,
                                .until = began,
                                .viewer = s->options.team,
                                .order = QUERY_BY_measured,
                                .iterations = s->options.kept.weather > 0,
                                .limit = s->options.kept.earlier};
    if (!s->options.kept.earlier)
        return ST_OK;
    forget_earlier(s); /* left by a session_begin that was undone */
    enum status st = query_collect(store, &query, &arena, &n, &records, err);
    s->earlier = calloc(n + 1, sizeof *s->earlier);
    s->earlier_strategies = calloc(n + 1, sizeof *s->earlier_strategies);
    s->earlier_measured = calloc(n + 1, sizeof *s->earlier_measured);
    size_t *counts = calloc(n + 1, sizeof *counts);
    if (!st && (!s->earlier || !s->earlier_strategies || !s->earlier_measured || !counts))
        st = error_no_memory(err);
    s->predictor.brief = true;
    for (size_t i = 0; i < n && !st; i++)
        if (strcmp(records[i].session ? records[i].session : "", s->id) &&
            trial_weather(&records[i]) == s->options.kept.weather)
            st = add_earlier(s, store, &records[i], counts, err);
    s->predictor.brief = false;
    free(counts);
    arena_release(&arena);
    return st;
}

static enum status load_earlier_of(struct session *s, struct store *store, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    enum status st = store_session_get(store, s->id, &arena, &stored, err);
    if (!st)
        st = load_earlier(s, store, stored.started, err);
    arena_release(&arena);
    return st;
}

enum status session_begin(struct session *s, struct store *store, struct error *err) {
    enum status st = make_id(s->id, err);
    if (st)
        return st;
    const struct session_budget begun = {.trials = s->options.trials,
                                         .time_us = s->options.time_us,
                                         .gap = s->options.gap,
                                         .used_us = clock_now_us() - s->started_us};
    char *budget = session_budget_write(&begun, NULL), *options = session_options_write(&s->options.kept, NULL);
    const struct stored_session session = {.id = s->id,
                                           .model = s->model->id.hex,
                                           .cluster = s->cluster->id.hex,
                                           .seed = s->options.seed,
                                           .budget = budget,
                                           .options = options,
                                           .team = s->options.team,
                                           .shared = s->options.shared,
                                           .mode = s->options.mode};
    st = budget && options ? store_put_model(store, s->model, err) : error_no_memory(err);
    if (!st)
        st = store_put_cluster(store, s->cluster, err);
    if (!st)
        st = store_session_begin(store, &session, err);
    free(budget);
    free(options);
    return st ? st : load_earlier_of(s, store, err);
}

static double stamp_us(const char *stamp) {
    struct tm tm = {0};
    const char *rest = stamp ? strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return rest ? (double)timegm(&tm) * 1e6 + strtod(rest, NULL) * 1e6 : NAN;
}

/* Restore the budget and options of the session's beginning, whatever this command line says. */
static enum status restore_options(struct session *s, const struct stored_session *stored, struct arena *arena,
                                   struct error *err) {
    struct session_options kept;
    enum status st = session_read_budget(s, stored, err);
    if (!st)
        st = session_options_read(stored, arena, &kept, err);
    if (st)
        return st;
    s->options.seed = stored->seed;
    s->options.kept.final_rounds = kept.final_rounds;
    s->options.kept.trial_us = kept.trial_us;
    s->options.kept.least_gain = kept.least_gain;
    s->options.kept.earlier = kept.earlier;
    if (s->options.trials || s->options.time_us > 0)
        return ST_OK;
    return error_set(err, ST_CONFLICT, "session %s has no budget: it is a collection; go on with: syncopate collect",
                     s->id);
}

/* The entry of a record's strategy, made when there is none. */
static enum status entry_of(struct session *s, struct store *store, const struct record *record, struct entry **out,
                            struct error *err) {
    struct id id;
    struct strategy strategy;
    snprintf(id.hex, sizeof id.hex, "%s", record->strategy);
    *out = session_find(s, &id);
    if (*out)
        return ST_OK;
    enum status st = get_strategy(s, store, record, &strategy, err);
    if (st)
        return st;
    *out = session_add(s, &strategy, record->proposer, record->predicted_us);
    return *out ? ST_OK : error_no_memory(err);
}

/* Interrupted trials are run again; lost ones are not, because the trial itself may have killed the clients that ran
 * it. */
static enum status replay(struct session *s, struct store *store, const struct record *record, struct error *err) {
    struct entry *e;
    if (record->state == RECORD_WAITING || record->state == RECORD_RUNNING ||
        (record->state == RECORD_CANCELLED && !trial_reason_is_lost(record->reason)))
        return ST_OK;
    enum status st = entry_of(s, store, record, &e, err);
    if (st)
        return st;
    const struct tune_outcome outcome = {
        .state = record->state, .early = trial_ended_early(record), .reason = record->reason};
    e->early |= outcome.early;
    e->repeats += record->round > 0;
    st = session_learn(s, e, record->round, record->state, record->n_iterations, record->iterations_us, record->reason,
                       err);
    if (!st)
        session_tell(s, e, &outcome, s->options.kept.weather ? record->mean_us : record->median_us, true);
    return st;
}

enum status session_import(struct session *s, struct store *store, const struct record *record, struct error *err) {
    return replay(s, store, record, err);
}

/* The time that the runs until now have used. */
static enum status used_us(const struct stored_session *stored, size_t n, const struct record *records, double *out,
                           struct error *err) {
    struct session_budget budget;
    enum status st = session_budget_read(stored, &budget, err);
    if (st)
        return st;
    const double began = stamp_us(*budget.resumed ? budget.resumed : stored->started);
    double last = fmax(began, stamp_us(stored->ended));
    for (size_t i = 0; i < n; i++)
        last = fmax(last, fmax(stamp_us(records[i].started), stamp_us(records[i].ended)));
    *out = budget.used_us + (isfinite(last - began) ? last - began : 0);
    return ST_OK;
}

/* The session's budget as the dataset has it; `text` is the arena's. */
static enum status get_budget(const struct session *s, struct store *store, struct arena *arena, const char **text,
                              struct session_budget *out, struct error *err) {
    struct stored_session stored;
    enum status st = store_session_get(store, s->id, arena, &stored, err);
    *text = st ? NULL : stored.budget;
    return st ? st : session_budget_read(&stored, out, err);
}

static enum status put_budget(const struct session *s, struct store *store, const struct session_budget *budget,
                              const char *before, struct error *err) {
    char *text = session_budget_write(budget, before);
    enum status st = text ? store_session_budget(store, s->id, text, err) : error_no_memory(err);
    free(text);
    return st;
}

enum status session_record_run(struct session *s, struct store *store, struct error *err) {
    struct arena arena = {0};
    struct session_budget budget;
    const char *before;
    enum status st = get_budget(s, store, &arena, &before, &budget, err);
    budget.used_us = s->earlier_us + clock_now_us() - s->started_us;
    clock_utc(budget.resumed, sizeof budget.resumed);
    if (!st)
        st = put_budget(s, store, &budget, before, err);
    arena_release(&arena);
    return st;
}

enum status session_record_budget(struct session *s, struct store *store, uint64_t trials, double time_us, double gap,
                                  struct error *err) {
    struct arena arena = {0};
    struct session_budget budget;
    const char *before;
    if (trials && trials < s->trials + s->running)
        return error_set(err, ST_CONFLICT, "%lu trials have been handed out already",
                         (unsigned long)(s->trials + s->running));
    enum status st = get_budget(s, store, &arena, &before, &budget, err);
    budget.trials = trials;
    budget.time_us = time_us;
    budget.gap = gap;
    if (!st)
        st = put_budget(s, store, &budget, before, err);
    arena_release(&arena);
    return st;
}

enum status session_read_budget(struct session *s, const struct stored_session *stored, struct error *err) {
    struct session_budget budget;
    enum status st = session_budget_read(stored, &budget, err);
    if (st)
        return st;
    s->options.trials = budget.trials;
    s->options.time_us = budget.time_us;
    s->options.gap = budget.gap;
    return ST_OK;
}

enum status session_resume(struct session *s, struct store *store, const char *id, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct record *records;
    size_t n = 0;
    enum status st = store_session_get(store, id, &arena, &stored, err);
    if (!st && (strcmp(stored.model, s->model->id.hex) || strcmp(stored.cluster, s->cluster->id.hex)))
        st = error_set(err, ST_CONFLICT, "session %s is about another model or cluster", id);
    if (!st) {
        snprintf(s->id, sizeof s->id, "%s", stored.id);
        st = restore_options(s, &stored, &arena, err);
    }
    if (!st)
        st = store_trials(store, s->id, &arena, &n, &records, err);
    if (!st)
        st = used_us(&stored, n, records, &s->earlier_us, err);
    for (size_t i = 0; i < n && !st; i++)
        st = replay(s, store, &records[i], err);
    arena_release(&arena);
    return st ? st : load_earlier_of(s, store, err);
}

enum status session_take_up(struct session *s, struct store *store, const struct record *record, struct suggestion *out,
                            struct error *err) {
    struct entry *e;
    enum status st = entry_of(s, store, record, &e, err);
    if (!st)
        session_adopt(s, e, record->round, out);
    return st;
}
