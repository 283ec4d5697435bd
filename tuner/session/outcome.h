/* The results of a session, from its records alone: a row for each strategy, the best of them, the best baseline, how
 * the two compare, how good predictions were, what each proposer contributed, and which knobs mattered.
 *
 * `syncopate tune`, the service, reports and `sessions show` all show this. It may be read while the session runs,
 * after it has ended, and of a collection. (The result of one trial is struct tune_outcome in trials.h.)
 * Units: microseconds. Threads: one at a time. */
#ifndef TUNER_SESSION_OUTCOME_H
#define TUNER_SESSION_OUTCOME_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/statistics.h"
#include "dataset/query.h"
#include "dataset/store.h"
#include "simulator/expectation.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tuner/search/candidates.h"
#include "tuner/search/sketch.h"

/* X(constant, words): why a session ended. */
#define TUNE_STOP_TABLE(X)                                                                                             \
    X(TUNE_STOP_TRIALS, "the trials are used up")                                                                      \
    X(TUNE_STOP_SHARE, "the search's share of the trials is used up, and what follows it needed fewer")                \
    X(TUNE_STOP_TIME, "the time is used up")                                                                           \
    X(TUNE_STOP_GAP, "the best is close enough to the lower bound")                                                    \
    X(TUNE_STOP_GAIN, "no candidate promises enough more")                                                             \
    X(TUNE_STOP_EXHAUSTED, "no new candidate was found")                                                               \
    X(TUNE_STOP_ASKED, "it was stopped") /* only sessions of a service */

enum tune_stop {
#define X(constant, words) constant,
    TUNE_STOP_TABLE(X)
#undef X
        TUNE_STOP_COUNT
};
const char *tune_stop_label(enum tune_stop stop);
enum tune_stop tune_stop_of(const char *reason); /* TUNE_STOP_ASKED for other words, and NULL */

/* Who proposed what a session that may try stale models tries beside its search (session_stale.c): strategies whose
 * models may be stale, and synchronous training as updates. */
#define OUTCOME_STALE   "stale"
#define OUTCOME_IN_STEP "in-step"

/* A strategy and all that the session measured of it. */
struct outcome_row {
    const char *strategy, *name, *proposer; /* its id, its name, who proposed it first */
    const struct baseline *baseline;        /* NULL when it is not a baseline (an exact schedule is not) */
    size_t trials, complete;                /* complete: with iterations */
    bool stale, in_step;                    /* OUTCOME_STALE or OUTCOME_IN_STEP proposed it */
    bool final;                             /* it was repeated in the final */
    bool early;                             /* its only trial was ended early */
    enum record_state state;                /* complete, or that of its last trial */
    const char *reason;                     /* of the last trial; or NULL */
    double predicted_us;                    /* NaN: not predicted */
    double first_us;         /* median (in weather mean) of its first complete trial; INFINITY without one */
    struct summary measured; /* of the final where it was in it; n = 0 without a complete trial. In weather its interval
                                is that of the mean, by how rounds differ; of one round, which has none, the mean */
    double us;               /* what counts of it: the median, or in weather the mean; INFINITY without one */
    double p95_us;           /* in weather: 95% of its iterations were shorter; NaN elsewhere */
    /* With OUTCOME_WEATHER, by the description: what the quiet network would make of it (NaN: not known), and of the
     * best, the baseline and the quiet network's best what to expect in weather (no seeds: not known). */
    double quiet_us;
    struct expectation expected;
};

/* How many times as long one takes as another in the same weather; NaN: not known. */
struct outcome_ratio {
    size_t n;         /* rounds that both ran */
    double mean;      /* geometric, over the rounds */
    double low, high; /* its 95% interval; NaN of one round */
};

/* The geometric mean of n values and its interval (Student's t), from the sums of their logarithms and of the squares
 * of these. */
struct outcome_ratio outcome_ratio_of_logs(size_t n, double sum, double squares);

/* What a session in weather says besides. */
struct outcome_weather {
    uint64_t seed; /* of the first trials; the final's rounds have the next ones; 0: it is in no weather */
    size_t quiet;  /* row: of all that was tried, what is fastest on the quiet network; SIZE_MAX: not known */
    struct outcome_ratio loss; /* of that row, over the best one */
};
#define OUTCOME_NO_WEATHER                                                                                             \
    (struct outcome_weather) {                                                                                         \
        0, SIZE_MAX, {                                                                                                 \
            0, NAN, NAN, NAN                                                                                           \
        }                                                                                                              \
    }

/* What a learning run came to: of a row's trials that measure it. */
struct outcome_learning {
    size_t trials, reached; /* whose loss came to the target */
    double updates;         /* to the target, mean of those; NaN without one */
    double us;              /* the same of the time. Of synchronous training: what the best strategy takes for it */
    double last;            /* loss at the end, mean of all; NaN: not known, or no finite number */
};

/* What a session says of models that may be stale. */
struct outcome_stale {
    uint64_t allowed;                                          /* 0: they may not be */
    size_t best;                                               /* row: the shortest rounds; SIZE_MAX: none completed */
    struct outcome_ratio speedup;                              /* the best strategy's iteration over its round */
    double delay_mean, delay_variance, delay_largest, dropped; /* of its updates; NaN: not known */
    /* Workers learned a small task (trial-runner/training.h) in these trials: at this rate and momentum, to a target
     * loss, and until so many updates were applied. NaN: they did not. */
    double rate, momentum, first, least, target, updates;
    struct outcome_learning learning, in_step; /* in_step: of synchronous training */
    struct outcome_ratio gain;                 /* in time to the target: the time in step over that of the stale best */
};

#define OUTCOME_NO_LEARNING                                                                                            \
    { 0, 0, NAN, NAN, NAN }
#define OUTCOME_NO_RATIO                                                                                               \
    { 0, NAN, NAN, NAN }
#define OUTCOME_NO_STALE                                                                                               \
    (struct outcome_stale) {                                                                                           \
        0, SIZE_MAX, OUTCOME_NO_RATIO, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, OUTCOME_NO_LEARNING,          \
            OUTCOME_NO_LEARNING, OUTCOME_NO_RATIO                                                                      \
    }

/* How well trials were predicted before they ran. */
struct outcome_accuracy {
    size_t n;       /* strategies with a prediction and a measurement */
    double off;     /* median of |predicted / measured - 1|; NaN for n = 0 */
    double ordered; /* share of pairs that were measured in the order predicted; NaN for n < 2 */
};

struct outcome {
    struct arena arena; /* owns what the pointers show */
    struct stored_session session;
    uint64_t budget_trials; /* 0: none */
    double budget_us;       /* 0: none */
    bool collection;        /* no budget: its strategies were drawn, and nothing was searched for */
    enum tune_stop stop;    /* why it ended, by session.reason */
    size_t n_trials;
    struct record *trials;           /* by number, with their iterations */
    size_t ended, under_way, failed; /* trials; ended: with a result or failed, which costs budget */
    size_t n_rows;
    struct outcome_row *rows; /* in the order of their first trials */
    size_t hopeless;       /* baselines that were predicted too slow to be worth a trial; only session_answer knows */
    size_t best, baseline; /* rows: the best, the best baseline; SIZE_MAX: none completed */
    double lower_bound_us; /* no strategy that may be tried is faster, by the description of the cluster */
    double gap;            /* best over lower bound, minus 1; NaN without a best */
    double speedup, speedup_low, speedup_high; /* best baseline over best; NaN without both */
    bool overlap;                              /* their intervals overlap (in weather that of the speedup holds 1): no
                                                  measurable difference */
    struct outcome_weather weather;
    struct outcome_stale stale;
    struct outcome_accuracy accuracy;
    struct proposer_score proposers[PROPOSER_COUNT]; /* who earned the trials of the search */
    struct strategy strategy;                        /* with OUTCOME_STRATEGY: the best; {0} without one */
    struct strategy stale_strategy;                  /* likewise, of stale.best */
    bool has_importance;                             /* with OUTCOME_IMPORTANCE; false: too few trials to tell */
    double importance[SKETCH_KNOBS];                 /* which knobs mattered: tuner/search/importance.h */
};

/* What to compute beyond the figures from the records, which take milliseconds. */
enum {
    OUTCOME_STRATEGY = 1,  /* the best strategy */
    OUTCOME_WEATHER = 4,   /* what is predicted of a session in weather: a second or two */
    OUTCOME_IMPORTANCE = 2 /* which knobs mattered: up to a second for large models */
};

/* Gather the outcome of the session `id`, which is about this model and cluster; `parts` are joined by |. A strategy
 * that cannot be read or lowered any more is left out of the importance. Fails: ST_NOT_FOUND (no such session),
 * ST_INVALID (its budget or the best strategy is damaged), ST_NO_MEMORY, as work_check and the store. Release with
 * outcome_release. */
enum status outcome_gather(struct store *store, const char *id, const struct model *model,
                           const struct cluster *cluster, unsigned parts, struct outcome *out, struct error *err);
void outcome_release(struct outcome *outcome); /* {0} is allowed */

/* Whether this status means that a strategy of the dataset can no longer be simulated, and is to be left out. */
bool outcome_leaves_out(enum status st);

/* The baseline of this name; NULL where the proposer is not a baseline (an exact schedule is not). */
const struct baseline *outcome_baseline(const char *proposer);

/* The rows' places, fastest first; rows that never completed come last, in their order. order[0..n_rows). */
void outcome_order(const struct outcome *outcome, size_t *order);

/* What a best strategy is the fastest of: where stale models were tried, of the synchronous ones alone. */
const char *outcome_fastest_words(const struct outcome *outcome);

/* Its iterations are rounds of updates, of which the mean counts. It is never the best. */
bool outcome_row_is_of_updates(const struct outcome_row *row);

/* One round in weather or of updates, and one iteration, has no interval: its ends are the time that counts. */
bool outcome_row_has_interval(const struct outcome_row *row);

/* All of a row's trials were cancelled, and the session will not take them up again: as if it had never been tried. */
bool outcome_row_is_void(const struct outcome_row *row);

/* ---- in words ---- */

enum { OUTCOME_LINES = 8 };
struct outcome_line {
    bool listed; /* an item of a list, which the line before introduces */
    char text[640];
};

/* What models that may be stale bring, and what they cost: speed, delays, and the loss that was measured. Returns how
 * many lines; none where the session did not allow them or nothing completed. */
size_t outcome_stale_words(const struct outcome *outcome, struct outcome_line out[OUTCOME_LINES]);

/* ---- as JSON: Outcome in the service's interface ---- */

/* Add members to the object `to`; false when memory is out. outcome_write: how the strategies compare.
 * outcome_write_lessons: which knobs mattered, and what each proposer contributed. */
bool outcome_write(const struct outcome *outcome, cJSON *to);
bool outcome_write_weather(const struct outcome *outcome,
                           cJSON *to); /* "weather", of a session in weather; a part of it */
bool outcome_write_stale(const struct outcome *outcome, cJSON *to); /* "stale", where models may be; a part of it */
bool outcome_write_lessons(const struct outcome *outcome, cJSON *to);

/* "low_us" and "high_us" of a row that has an interval. */
bool outcome_write_interval(const struct outcome_row *row, cJSON *to);

/* Read an Outcome, which has both, the session and the best strategy. Texts are copied; what is not in it (the records,
 * most of `session`) is empty, and without a model and a cluster (NULL) the best strategy too. Fails: ST_INVALID, with
 * the place; ST_NO_MEMORY. Release with outcome_release. */
enum status outcome_read(const cJSON *json, const struct model *model, const struct cluster *cluster,
                         struct outcome *out, struct error *err);

/* The bound of all strategies that a session with these options may try. Fails: ST_NO_MEMORY. */
struct bound;
struct cost;
struct session_options;
enum status outcome_bound(const struct session_options *kept, const struct model *model, const struct cost *cost,
                          struct bound *out, struct error *err);

#endif
