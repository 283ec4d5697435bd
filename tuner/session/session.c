/* What to do next is decided from the entries alone (the distinct strategies, and what was measured or
 * is being measured of them), never from how the process came to know them; the number of trials so far, those that
 * still run included, names the random stream of the next proposal. That makes resuming the same as going on.
 *
 * The answer is decided in the final: each finalist is run again `final_rounds` times, interleaved with the best
 * baseline so that drift of the machine meets all alike. outcome.c says why only those rounds are reported. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "simulator/bound.h"
#include "strategy/cost/transport.h"
#include "strategy/weather.h"
#include "tuner/search/proposals.h"
#include "tuner/session/session_internal.h"

enum { LEAST_ITERATIONS = 6, LEARNING_ROUNDS = 60, WARMUP = 2, PUBLISHED_STARTS = 2, EARLIER = 120 };
enum { CHANGES_A_TRIAL = 3 };
static const double DEFAULT_TRIAL_US = 4e6, MOST_TRIAL_US = 60e6; /* the second is of the default in weather */

/* A trial this much slower than the best is ended early. */
static const double HOPELESS = 1.5;

struct tune_options tune_default_options(void) {
    return (struct tune_options){.trials = 40,
                                 .kept = {.earlier = EARLIER, .final_rounds = 3, .trial_us = DEFAULT_TRIAL_US},
                                 .seed = 1,
                                 .space = space_default_options()};
}

double session_default_trial_us(const struct cluster *cluster) {
    const double varies_us = weather_shows_us(&cluster->variability, CHANGES_A_TRIAL);
    return fmin(fmax(varies_us, DEFAULT_TRIAL_US), MOST_TRIAL_US);
}

/* ---- entries ---- */

struct entry *session_find(struct session *s, const struct id *id) {
    for (size_t i = 0; i < s->n; i++)
        if (!memcmp(&s->entries[i]->strategy.id, id, sizeof *id))
            return s->entries[i];
    return NULL;
}

/* An exact schedule is no baseline: its gain over the published systems counts as the session's speed-up. */
static const struct baseline *baseline_called(const char *name) {
    const struct baseline *row = baselines_find(name);
    return row && row->kind != BASELINE_EXACT ? row : NULL;
}

struct entry *session_add(struct session *s, struct strategy *strategy, const char *proposer, double predicted) {
    struct entry *e = GROW(&s->entries, &s->capacity, s->n + 1) ? malloc(sizeof *e) : NULL;
    if (!e)
        goto fail;
    s->entries[s->n++] = e;
    *e = (struct entry){.strategy = *strategy,
                        .baseline = baseline_called(proposer),
                        .predicted_us = predicted,
                        .state = RECORD_WAITING,
                        .us = INFINITY};
    snprintf(e->proposer, sizeof e->proposer, "%s", proposer);
    return e;
fail:
    strategy_release(strategy);
    return NULL;
}

/* What counts of a trial: in weather iterations differ for a reason, as rounds of updates do, and people wait for their
 * sum. Sorts the times. */
static double typical_us(const struct session *s, const struct entry *e, size_t n, double *iterations_us) {
    const struct summary m = summary_of(n, iterations_us);
    return s->options.kept.weather || session_is_stale(e) ? m.mean_us : m.median_us;
}

struct measured session_measured(const struct session *s, const struct strategy *strategy, double us, size_t n,
                                 const double *iterations_us) {
    const size_t part = n < PREDICTOR_MEASURED ? n : PREDICTOR_MEASURED;
    struct measured m = {.strategy = strategy, .us = us};
    if (!s->options.kept.weather || !part)
        return m;
    m.us = 0;
    for (size_t i = 0; i < part; i++)
        m.us += iterations_us[i] / (double)part;
    m.warmup = WARMUP;
    m.iterations = (uint32_t)part;
    return m;
}

enum status session_learn(struct session *s, struct entry *e, uint64_t round, enum record_state state, size_t n,
                          const double *iterations_us, const char *reason, struct error *err) {
    /* An imported trial that has a median alone (n = 0) adds no round. */
    bool counts = state == RECORD_COMPLETE && n && e->n_rounds < MAX_ROUNDS && (round || !e->n_rounds);
    double *copy = counts ? malloc(n * sizeof *copy) : NULL;
    if (counts && !copy)
        return error_no_memory(err);
    e->state = state;
    s->trials += state != RECORD_CANCELLED; /* what was lost costs no budget */
    s->fitted = false;
    snprintf(e->reason, sizeof e->reason, "%s", reason ? reason : "");
    if (!counts)
        return ST_OK;
    memcpy(copy, iterations_us, n * sizeof *copy);
    if (!e->n_rounds) {
        e->us = typical_us(s, e, n, copy);
        e->measured = session_measured(s, &e->strategy, e->us, n, iterations_us);
    }
    e->counts[e->n_rounds] = n;
    e->rounds[e->n_rounds++] = copy;
    return ST_OK;
}

/* Of those that compute what synchronous training computes. */
static double best_so_far(const struct session *s) {
    double best = INFINITY;
    for (size_t i = 0; i < s->n; i++)
        if (!session_is_stale(s->entries[i]))
            best = fmin(best, s->entries[i]->us);
    return best;
}

/* ---- one trial ---- */

static double elapsed(const struct session *s) {
    return s->earlier_us + clock_now_us() - s->started_us;
}

bool session_has_budget(const struct session *s) {
    const struct tune_options *o = &s->options;
    return (!o->trials || s->trials + s->running < o->trials) && (!(o->time_us > 0) || elapsed(s) < o->time_us);
}

/* Estimated time left, by whichever budget runs out first at the pace so far. */
static double time_left(const struct session *s) {
    double by_time = s->options.time_us > 0 ? s->options.time_us - elapsed(s) : INFINITY, by_trials = INFINITY;
    if (s->options.trials && s->trials)
        by_trials = elapsed(s) / (double)s->trials * (double)(s->options.trials - s->trials);
    double left = fmin(by_time, by_trials);
    return left > 0 ? left : 0;
}

void session_tell(const struct session *s, const struct entry *e, const struct tune_outcome *outcome, double median_us,
                  bool recorded) {
    if (!s->options.listen)
        return;
    const struct tune_event event = {.phase = s->phase,
                                     .number = outcome ? s->trials : s->trials + 1,
                                     .budget = s->options.trials,
                                     .name = e->strategy.name,
                                     .proposer = e->proposer,
                                     .predicted_us = e->predicted_us,
                                     .outcome = outcome,
                                     .median_us = median_us,
                                     .best_us = best_so_far(s),
                                     .elapsed_us = elapsed(s),
                                     .left_us = time_left(s),
                                     .recorded = recorded};
    s->options.listen(s->options.context, &event);
}

/* In weather trials last equally long, so that they meet the same weather. Of strategies of updates all run the same
 * number of rounds, so that their losses can be compared, and as many as learning needs. */
static uint64_t iterations_for(const struct session *s, const struct entry *e) {
    const bool stale = session_is_stale(e);
    double per_iteration = stale ? best_so_far(s) : isfinite(e->us) ? e->us : e->predicted_us;
    double most = s->options.kept.weather ? MOST_ITERATIONS_IN_WEATHER : MOST_ITERATIONS;
    double n = per_iteration > 0 ? s->options.kept.trial_us / per_iteration : most;
    return (uint64_t)fmin(fmax(n, stale ? LEARNING_ROUNDS : LEAST_ITERATIONS), most);
}

/* How many entries the search knows: those of strategies of updates come after it. */
static size_t searched(const struct session *s) {
    size_t n = 0;
    while (n < s->n && !session_is_stale(s->entries[n]))
        n++;
    return n;
}

/* Train the ranker further with all entries of the search but its last, whose trial begins or has just ended. */
static enum status begin_learning(struct session *s, struct error *err) {
    const size_t known = searched(s), n = known ? known - 1 : 0;
    if (!s->options.ranker || n <= s->learned)
        return ST_OK;
    struct learner_trial *trials = calloc(n, sizeof *trials);
    if (!trials)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        trials[i] = (struct learner_trial){&s->entries[i]->strategy, s->entries[i]->us};
    enum status st = learner_begin(&s->learner, n, trials, err);
    free(trials);
    s->learned = n;
    return st;
}

/* In weather a few slow iterations say nothing of the others, and a strategy of updates has a loss to tell at its end.
 */
static double give_up_us(const struct session *s, const struct entry *e, uint64_t round) {
    double best = best_so_far(s);
    return round || isinf(best) || s->options.kept.weather || session_is_stale(e) ? 0 : HOPELESS * best;
}

void session_adopt(struct session *s, struct entry *e, uint64_t round, struct suggestion *out) {
    e->running++;
    e->repeats += round > 0;
    s->running++;
    const uint64_t weather = s->options.kept.weather;
    *out = (struct suggestion){.entry = e, .proposer = e->proposer, .round = round, .predicted_us = e->predicted_us};
    out->order = (struct tune_order){.strategy = &e->strategy,
                                     .iterations = iterations_for(s, e),
                                     .warmup = WARMUP,
                                     .expected_us = isfinite(e->predicted_us) ? e->predicted_us : 0,
                                     .give_up_us = give_up_us(s, e, round),
                                     .learns = session_is_stale(e),
                                     .weather = weather ? weather + round : 0};
}

/* Hand out one more trial of `e`. The ranker learns while it runs. */
static enum status hand_out(struct session *s, struct entry *e, uint64_t round, struct suggestion *out,
                            struct error *err) {
    enum status st = begin_learning(s, err);
    if (st)
        return st;
    session_tell(s, e, NULL, 0, false);
    session_adopt(s, e, round, out);
    return ST_OK;
}

enum status session_report(struct session *s, const struct suggestion *suggestion, const struct tune_outcome *outcome,
                           struct error *err) {
    struct entry *e = suggestion->entry;
    struct summary summary = {.median_us = NAN, .mean_us = NAN};
    enum status st = outcome->n ? summary_of_copy(outcome->n, outcome->iterations_us, &summary, err) : ST_OK;
    if (!st)
        st = session_learn(s, e, suggestion->round, outcome->state, outcome->n, outcome->iterations_us, outcome->reason,
                           err);
    if (st)
        return st;
    e->early |= outcome->early;
    e->running--;
    s->running--;
    session_tell(s, e, outcome, s->options.kept.weather || session_is_stale(e) ? summary.mean_us : summary.median_us,
                 false);
    return ST_OK;
}

/* ---- phases ---- */

enum status session_refit(struct session *s, struct error *err) {
    if (s->fitted)
        return ST_OK;
    struct measured *measured = calloc(s->n + s->n_earlier + 1, sizeof *measured);
    if (!measured)
        return error_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < s->n_earlier; i++)
        measured[n++] = s->earlier_measured[i];
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->entries[i]->us) && !session_is_stale(s->entries[i]))
            measured[n++] = s->entries[i]->measured;
    enum status st = predictor_fit(&s->predictor, n, measured, err);
    free(measured);
    s->fitted = !st;
    return st;
}

/* Of the search. In weather the quiet network's best is one more. */
static size_t searched_finalists(const struct session *s) {
    return s->options.kept.weather ? 4 : 3;
}

/* Where models may be stale, the fastest such strategy and synchronous training as updates are two more. */
static size_t finalists_limit(const struct session *s) {
    return searched_finalists(s) + (s->options.kept.allow_stale ? 2 : 0);
}

/* Trials that the final will need. They may be a third of all; where there are more finalists than usual, or a round is
 * one sample of weather, half. */
static uint64_t final_trials(const struct session *s) {
    const uint64_t each = finalists_limit(s), wanted = s->options.kept.final_rounds * each;
    const uint64_t most = s->options.trials / (s->options.kept.weather || s->options.kept.allow_stale ? 2 : 3);
    return s->options.trials && wanted > most ? most / each * each : wanted;
}

/* Trials that come after the search. */
static uint64_t reserve(const struct session *s) {
    const uint64_t n = final_trials(s) + session_stale_trials(s);
    return s->options.trials && n > s->options.trials ? s->options.trials : n;
}

/* How many of the starts are tried however slow they are predicted, because the speed-up is over the best baseline
 * measured: the framework defaults and the two others (published or tuned systems, exact schedules) that are predicted
 * fastest. They get at most half of the trials that the final leaves, so a small budget does not reach all defaults.
 * The other starts are candidates. */
static size_t starts_limit(const struct session *s) {
    size_t n = PUBLISHED_STARTS;
    for (size_t i = 0; i < s->starts.n; i++)
        n += start_is_default(&s->starts.items[i]);
    uint64_t half = s->options.trials ? (s->options.trials - reserve(s) + 1) / 2 : n;
    n = n < half ? n : (size_t)half;
    return n < s->starts.n ? n : s->starts.n;
}

/* Sharded parameters may still be gathered and summed in fewer bits. */
void session_warn_of_encodings(const struct session *s) {
    bool any = !s->options.kept.allow_lossy;
    for (uint32_t v = 0; v < s->model->n_variables; v++)
        any |= s->model->variables[v].dtype == DTYPE_f32 || s->model->variables[v].dtype == DTYPE_f64;
    if (!any)
        log_warn("nothing of this model can be encoded: only f32 and f64 can, and its variables are all of other "
                 "types");
}

bool session_shards_in_vain(const struct session *s) {
    return s->options.limits && s->options.kept.allow_sharded != SHARDED_none &&
           s->options.space.sharded == space_sharded_up_to(SHARDED_none);
}

void session_warn_of_shards(const struct session *s) {
    char forms[EXPORT_LIMITS_ROOM];
    if (session_shards_in_vain(s))
        log_warn("--allow-sharded does nothing here: %s cannot say what is sharded",
                 export_limits_names(s->options.limits, forms));
}

void session_warn_of_budget(const struct session *s) {
    const uint64_t kept = reserve(s), trials = s->options.trials;
    if (s->options.kept.allow_stale && trials && trials - kept <= starts_limit(s))
        log_warn("of %lu trials %lu are kept for stale models and the final; beside the baselines none is left for the "
                 "search: give more --trials",
                 (unsigned long)trials, (unsigned long)kept);
}

/* The first of the starts that was not tried; *out is NULL when all were. */
static enum status next_start(struct session *s, struct entry **out, struct error *err) {
    *out = NULL;
    for (size_t i = 0; i < starts_limit(s); i++) {
        const struct start *start = &s->starts.items[i];
        struct strategy strategy;
        if (session_find(s, &start->strategy.id))
            continue;
        enum status st = strategy_copy(&start->strategy, start->strategy.name, &strategy, err);
        if (st)
            return st;
        strategy.id = start->strategy.id;
        double predicted_us = start->predicted_us;
        if (s->options.kept.weather && (st = session_predict(s, &strategy, &predicted_us, err))) {
            strategy_release(&strategy);
            return st;
        }
        *out = session_add(s, &strategy, start->baseline->name, predicted_us);
        return *out ? ST_OK : error_no_memory(err);
    }
    return ST_OK;
}

struct tried *session_tried(const struct session *s) {
    struct tried *tried = calloc(s->n ? s->n : 1, sizeof *tried);
    for (size_t i = 0; tried && i < s->n; i++) {
        const struct entry *e = s->entries[i];
        bool running = e->running && isinf(e->us);
        tried[i] = (struct tried){&e->strategy, e->us, e->proposer, running ? e->predicted_us : 0};
    }
    return tried;
}

static enum status propose(struct session *s, struct proposal *out, struct error *err) {
    struct rng rng;
    struct proposal_options options = {.evaluations = s->options.evaluations, .advisor = advisor_default_options()};
    const struct search_context context = {.space = &s->space,
                                           .predictor = &s->predictor,
                                           .starts = &s->starts,
                                           .n_earlier = s->n_earlier,
                                           .earlier = s->earlier};
    enum status st = session_refit(s, err);
    if (!st)
        st = begin_learning(s, err); /* for a session that was resumed; otherwise it was done during the trial */
    learner_end(&s->learner);
    struct tried *tried = st ? NULL : session_tried(s);
    if (!st && !tried)
        st = error_no_memory(err);
    options.advisor.ranker = learner_ranker(&s->learner);
    rng_split(&rng, s->options.seed, s->trials + s->running);
    if (!st)
        st = proposal_next(&context, &s->learner.described, &options, s->n, tried, &rng, out, err);
    free(tried);
    return st;
}

/* *out is NULL, and the search is over, when nothing new was found or the best candidate's expected gain is too
 * small. */
static enum status next_candidate(struct session *s, struct entry **out, struct error *err) {
    struct proposal proposal;
    char name[32];
    *out = NULL;
    enum status st = propose(s, &proposal, err);
    if (st == ST_NOT_FOUND) {
        s->stop = TUNE_STOP_EXHAUSTED;
        s->searched = true;
        return ST_OK;
    }
    if (st)
        return st;
    if (proposal.gain < s->options.kept.least_gain) {
        strategy_release(&proposal.strategy);
        s->stop = TUNE_STOP_GAIN;
        s->searched = true;
        return ST_OK;
    }
    if (!baselines_find(proposal.proposer)) {
        snprintf(name, sizeof name, "%s-%lu", proposal.proposer, (unsigned long)(s->trials + s->running + 1));
        proposal.strategy.name = arena_strdup(&proposal.strategy.arena, name);
    }
    if (!proposal.strategy.name) {
        strategy_release(&proposal.strategy);
        return error_no_memory(err);
    }
    /* In weather the advisor's time is that of the weather of the first seed. */
    const double predicted_us = s->options.kept.weather ? proposal.timeline_us : proposal.predicted_us;
    *out = session_add(s, &proposal.strategy, proposal.proposer, predicted_us);
    return *out ? ST_OK : error_no_memory(err);
}

enum finalist { FINAL_BASELINE, FINAL_QUIET, FINAL_FASTEST, FINAL_STALE, FINAL_IN_STEP };

/* By what the finalist of this kind is chosen: the least wins; INFINITY: it cannot be one. */
static double rank_of(const struct entry *e, enum finalist kind) {
    if (isinf(e->us) || (kind == FINAL_BASELINE && !e->baseline) || session_is_stale(e) != (kind >= FINAL_STALE))
        return INFINITY;
    if (kind >= FINAL_STALE)
        return session_is_in_step(e) == (kind == FINAL_IN_STEP) ? e->us : INFINITY;
    return kind != FINAL_QUIET ? e->us : e->quiet_us > 0 ? e->quiet_us : INFINITY;
}

static size_t best_left(const struct session *s, enum finalist kind, size_t n, const size_t *taken) {
    size_t best = SIZE_MAX;
    double least = INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        bool is_taken = false;
        for (size_t k = 0; k < n && kind == FINAL_FASTEST; k++)
            is_taken |= taken[k] == i;
        if (is_taken || rank_of(s->entries[i], kind) >= least)
            continue;
        best = i;
        least = rank_of(s->entries[i], kind);
    }
    return best;
}

/* The fastest strategy whose models may be stale, and what it is compared with. */
static size_t add_stale_finalists(const struct session *s, size_t n, size_t out[MAX_FINALISTS]) {
    const size_t stale = best_left(s, FINAL_STALE, n, out), in_step = best_left(s, FINAL_IN_STEP, n, out);
    if (stale != SIZE_MAX)
        out[n++] = stale;
    if (stale != SIZE_MAX && in_step != SIZE_MAX)
        out[n++] = in_step;
    return n;
}

/* The best baseline, in weather the quiet network's best, and the best others, by their first trials. */
static size_t finalists(const struct session *s, size_t out[MAX_FINALISTS]) {
    const size_t most[] = {[FINAL_BASELINE] = 1, [FINAL_QUIET] = 2, [FINAL_FASTEST] = searched_finalists(s)};
    size_t n = 0;
    for (enum finalist kind = FINAL_BASELINE; kind <= FINAL_FASTEST; kind++)
        while (n < most[kind]) {
            const size_t best = best_left(s, kind, n, out);
            if (best == SIZE_MAX || (kind == FINAL_QUIET && n && best == out[0]))
                break;
            out[n++] = best;
            if (kind == FINAL_QUIET)
                break;
        }
    return add_stale_finalists(s, n, out);
}

static bool in_final(const struct session *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i]->repeats)
            return true;
    return false;
}

/* Time that the trials after the search will take, by those before them. Those in which workers learn take longer. */
static double reserve_us(const struct session *s, double per_trial_us) {
    const uint64_t rounds = final_trials(s) / finalists_limit(s);
    const uint64_t learning = s->options.kept.allow_stale ? session_stale_trials(s) + 2 * rounds : 0;
    const double best = best_so_far(s), least_us = isfinite(best) ? (LEARNING_ROUNDS + WARMUP) * best : 0;
    const uint64_t all = reserve(s), others = all > learning ? all - learning : 0;
    return (double)others * per_trial_us + (double)learning * fmax(per_trial_us, least_us);
}

/* Whether the budget of the search is spent, and why. */
static bool budget_spent(struct session *s) {
    double per_trial = s->trials ? elapsed(s) / (double)s->trials : 0;
    if (s->options.trials && s->trials + s->running + reserve(s) >= s->options.trials) {
        s->stop = TUNE_STOP_TRIALS;
        return true;
    }
    if (s->options.time_us > 0 && elapsed(s) + reserve_us(s, per_trial) + per_trial > s->options.time_us) {
        s->stop = TUNE_STOP_TIME;
        return true;
    }
    if (s->options.gap > 0 && best_so_far(s) <= s->lower_bound_us * (1 + s->options.gap)) {
        s->stop = TUNE_STOP_GAP;
        return true;
    }
    return false;
}

/* The next strategy of the search, or NULL when it is over: the starts, then candidates. */
static enum status next_of_search(struct session *s, struct entry **out, struct error *err) {
    *out = NULL;
    s->searched = s->searched || in_final(s) || searched(s) < s->n || (s->trials + s->running && budget_spent(s));
    if (s->searched)
        return ST_OK;
    s->phase = TUNE_BASELINES;
    enum status st = next_start(s, out, err);
    if (st || *out)
        return st;
    s->phase = TUNE_SEARCH;
    st = session_next_quiet(s, out, err);
    return st || *out ? st : next_candidate(s, out, err);
}

/* The next repeat of the final, or NULL when all were handed out. Where workers learn, which takes long, no further
 * round begins once the budget is used up. */
static struct entry *next_of_final(struct session *s, uint64_t *round) {
    size_t who[MAX_FINALISTS], n = finalists(s, who);
    uint64_t rounds = n ? final_trials(s) / finalists_limit(s) : 0;
    s->phase = TUNE_FINAL;
    for (*round = 1; *round <= rounds && *round < MAX_ROUNDS; ++*round)
        for (size_t k = 0; k < n; k++)
            if (s->entries[who[k]]->repeats < *round)
                return k == 0 && *round > 1 && s->options.kept.allow_stale && !session_has_budget(s)
                           ? NULL
                           : s->entries[who[k]];
    return NULL;
}

enum status session_suggest(struct session *s, enum session_step *step, struct suggestion *out, struct error *err) {
    struct entry *e;
    uint64_t round = 0;
    enum status st = next_of_search(s, &e, err);
    if (st)
        return st;
    if (!e && s->running && !in_final(s)) { /* the final needs the results of all trials of the search */
        *step = SESSION_WAIT;
        return ST_OK;
    }
    if (!e && !in_final(s))
        st = session_next_stale(s, &e, err);
    if (!st && !e && s->options.kept.weather)
        st = session_predict_quiet(s, err);
    if (st)
        return st;
    if (!e)
        e = next_of_final(s, &round);
    *step = e ? SESSION_TRIAL : s->running ? SESSION_WAIT : SESSION_OVER;
    return e ? hand_out(s, e, round, out, err) : ST_OK;
}

bool session_over(struct session *s) {
    uint64_t round;
    bool search_over = s->searched || in_final(s) || (s->trials && !s->running && budget_spent(s));
    bool stale_over = !s->options.kept.allow_stale || s->stale_done || in_final(s);
    return search_over && stale_over && !s->running && !session_has_stale(s) && !next_of_final(s, &round);
}

void session_close(struct session *s) {
    if (!s)
        return;
    learner_release(&s->learner);
    for (size_t i = 0; i < s->n; i++) {
        strategy_release(&s->entries[i]->strategy);
        for (size_t r = 0; r < s->entries[i]->n_rounds; r++)
            free(s->entries[i]->rounds[r]);
        free(s->entries[i]);
    }
    free(s->entries);
    for (size_t i = 0; i < s->n_earlier; i++)
        strategy_release(&s->earlier_strategies[i]);
    free(s->earlier_strategies);
    free(s->earlier_measured);
    free(s->earlier);
    starts_release(&s->starts);
    space_release(&s->space);
    predictor_release(&s->predictor);
    free(s);
}

static enum status lower_bound(struct session *s, struct error *err) {
    struct bound bound;
    enum status st = outcome_bound(&s->options.kept, s->model, &s->predictor.cost, &bound, err);
    if (!st)
        s->lower_bound_us = bound.iteration_us;
    return st;
}

/* Those that nobody who runs its trials can execute; auto, which is whatever their library does, where nothing else
 * would be left. */
static enum status leave_out_algorithms(const struct session_options *kept, struct space_options *space,
                                        struct error *err) {
    uint32_t can;
    if (!kept->algorithms)
        return ST_OK;
    const enum status st = algorithms_parse(kept->algorithms, &can, err);
    if (st)
        return st;
    struct space_options left = *space;
    left.algorithms &= can;
    if (!space_all_reduces(&left))
        left.algorithms = space->algorithms & (can | 1u << ALGORITHM_auto);
    if (space_all_reduces(&left))
        *space = left;
    return ST_OK;
}

enum status session_prepare(const struct model *model, const struct cluster *cluster,
                            const struct tune_options *options, struct session **out, struct error *err) {
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    *s = (struct session){.model = model, .cluster = cluster, .options = *options, .started_us = clock_now_us()};
    if (options->kept.weather && options->ranker) {
        free(s);
        return error_set(err, ST_INVALID, "rankers know no weather: a session in weather has none");
    }
    enum status st = session_check_stale(&options->kept, cluster, options->limits, err);
    if (st) {
        free(s);
        return st;
    }
    if (options->kept.allow_lossy)
        s->options.space.encodings = transport_encodings(cluster);
    s->options.space.sharded = space_sharded_up_to(options->kept.allow_sharded);
    st = options->limits ? export_limits_narrow(options->limits, model, cluster, &s->options.space, err) : ST_OK;
    if (!st)
        st = leave_out_algorithms(&options->kept, &s->options.space, err);
    if (!st)
        st = space_init(&s->space, model, cluster, &s->options.space, err);
    if (!st)
        st = options->kept.weather
                 ? predictor_init_in_weather(&s->predictor, model, cluster, options->kept.weather, err)
                 : predictor_init(&s->predictor, model, cluster, err);
    s->predictor.limits = options->limits;
    if (!st)
        predictor_set_memory(&s->predictor, options->kept.memory_bytes);
    if (!st)
        st = learner_init(&s->learner, options->ranker, model, cluster, options->seed, err);
    s->learner.cancel = options->cancel;
    if (!st)
        st = lower_bound(s, err);
    s->predictor.brief = options->kept.weather > 0; /* next_start predicts those that are tried to the end */
    if (!st)
        st = starts_list(&s->predictor, &s->space, &s->starts, err);
    if (!st)
        st = starts_check_memory(&s->starts, &s->predictor, err);
    s->predictor.brief = false;
    if (st)
        session_close(s);
    else
        *out = s;
    return st;
}

const char *session_id(const struct session *s) {
    return s->id;
}

enum tune_stop session_stop(const struct session *s) {
    const bool left = s->stop == TUNE_STOP_TRIALS && s->trials < s->options.trials;
    return left ? TUNE_STOP_SHARE : s->stop;
}

enum status session_found(const struct session *s, struct error *err) {
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i]->n_rounds && !session_is_stale(s->entries[i]))
            return ST_OK;
    return error_set(err, ST_INFEASIBLE, "no trial of session %s completed; the first: %s", s->id,
                     s->n ? s->entries[0]->reason : "none was run");
}

enum status session_answer(const struct session *s, struct store *store, struct outcome *out, struct error *err) {
    enum status st = session_found(s, err);
    if (!st)
        st = outcome_gather(store, s->id, s->model, s->cluster, OUTCOME_STRATEGY | OUTCOME_IMPORTANCE | OUTCOME_WEATHER,
                            out, err);
    if (st)
        return st;
    out->hopeless = s->starts.hopeless;
    out->stop = session_stop(s);
    return ST_OK;
}
