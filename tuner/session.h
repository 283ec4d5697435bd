/* A tuning session: baselines and exact schedules, then rounds of propose, rank, try and learn, then a final between
 * the best (AutoSync figure 1).
 *
 * A session is a pure function of its seed and its measurements: what to try next follows from the list of strategies
 * tried and what was measured of them. So a session that was killed is resumed by reading that list from the dataset
 * and going on.
 * Units: microseconds. Threads: a session belongs to one thread. */
#ifndef TUNER_SESSION_H
#define TUNER_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"
#include "simulator/learned/ranker.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/space.h"
#include "strategy/strategy.h"
#include "tuner/search/candidates.h"
#include "tuner/search/sketch.h"
#include "tuner/statistics.h"
#include "tuner/trials.h"

/* What runs trials. The lab, mpirun, or a simulated cluster in tests. */
struct tune_order {
    const struct strategy *strategy;
    uint64_t iterations, warmup;
    double expected_us; /* an iteration; 0 = unknown */
    double give_up_us;  /* end early when clearly slower than this; 0 = never */
};

struct tune_runner {
    const char *name;
    void *context;
    /* *out is valid until the next call. An error (no permission, cancelled) ends the session; a trial that goes wrong
     * is an outcome. */
    enum status (*run)(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err);
};

enum tune_phase { TUNE_BASELINES, TUNE_SEARCH, TUNE_FINAL };

/* What a listener is told: before a trial (outcome NULL) and after it. */
struct tune_event {
    enum tune_phase phase;
    uint64_t number, budget; /* of trials */
    const char *name, *proposer;
    double predicted_us;
    const struct tune_outcome *outcome;
    double median_us; /* of this trial, after it */
    double best_us;   /* best median so far; INFINITY before the first */
    double elapsed_us, left_us;
    bool recorded; /* from the dataset: a resumed session walks through its past */
};

struct tune_options {
    uint64_t trials; /* budget; 0 = no limit */
    double time_us;  /* budget; 0 = no limit. One of the two is needed */
    double gap;      /* stop when the best is within this of the lower bound; 0 = never */
    uint64_t seed;
    uint64_t final_rounds; /* repeats of each finalist */
    double trial_us;       /* how long one trial should measure; iterations follow from the prediction */
    double least_gain;     /* stop when no candidate promises to be faster by this share; 0 = never */
    size_t evaluations;    /* predictions behind one proposal; 0 = candidates_evaluations() */
    size_t earlier;        /* learn from so many trials of earlier sessions on this model and cluster; 0 = from none */
    const struct ranker *ranker; /* residual, learned elsewhere; borrowed. NULL: the timeline and a Gaussian process */
    const char *ranker_id;       /* its id in the dataset, kept with the session; or NULL */
    struct space_options space;
    const char *hosts; /* the runner's host file, kept with the session; or NULL */
    const volatile sig_atomic_t *cancel;
    void (*listen)(void *context, const struct tune_event *event);
    void *context;
};

struct tune_options tune_default_options(void);

/* X(constant, word): why a session ended. */
#define TUNE_STOP_TABLE(X)                                                                                             \
    X(TUNE_STOP_TRIALS, "the trials are used up")                                                                      \
    X(TUNE_STOP_TIME, "the time is used up")                                                                           \
    X(TUNE_STOP_GAP, "the best is close enough to the lower bound")                                                    \
    X(TUNE_STOP_GAIN, "no candidate promises enough more")                                                             \
    X(TUNE_STOP_EXHAUSTED, "no new candidate was found")

enum tune_stop {
#define X(constant, word) constant,
    TUNE_STOP_TABLE(X)
#undef X
};
const char *tune_stop_words(enum tune_stop stop);

struct tune_row {
    char name[64];
    struct id id;
    const char *proposer; /* for a baseline its own name */
    bool baseline, final;
    enum record_state state;
    double predicted_us;
    struct summary measured; /* n = 0 when not complete */
    char reason[160];
};

struct tuning {
    char session[64];
    uint64_t trials;
    enum tune_stop stop;
    size_t n_rows;
    struct tune_row *rows;    /* baselines first, then the rest by measured time; malloc'd */
    size_t hopeless;          /* baselines that were predicted to be too slow to be worth a trial */
    size_t best;              /* row of the answer */
    size_t best_baseline;     /* row; SIZE_MAX when none completed */
    double speedup;           /* best baseline's median over the best's; NaN without a baseline */
    bool overlap;             /* their intervals overlap: no measurable difference */
    double lower_bound_us;    /* no strategy can be faster on this model and cluster as described */
    double gap;               /* best over lower bound, minus 1 */
    struct strategy strategy; /* the answer */
    struct proposer_score proposers[PROPOSER_COUNT]; /* who earned the trials of the search */
    bool has_importance;                             /* false: too few trials to tell */
    double importance[SKETCH_KNOBS];                 /* which knobs mattered: importance.h */
};

/* Start a session, or go on with `resume` (a session's id). Fails: ST_INFEASIBLE when no trial completed, ST_CANCELLED,
 * ST_CONFLICT (the session to resume is about another model or cluster), and what runner and store fail with. */
enum status tune_run(struct store *store, const struct model *model, const struct cluster *cluster,
                     const struct tune_runner *runner, const struct tune_options *options, const char *resume,
                     struct tuning *out, struct error *err);
void tuning_release(struct tuning *tuning);

#endif
