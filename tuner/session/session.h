/* A tuning session: baselines and exact schedules, then rounds of propose, rank, try and learn, then a final between
 * the best (AutoSync figure 1).
 *
 * The session decides, and somebody else measures. session_suggest hands out the next trial, session_report takes its
 * times, and session_answer says what is best. Several trials may run at once. tune.h is the simplest way to measure.
 * The seed and the measurements determine all that a session does. So a session that was killed goes on from its
 * records: with one trial at a time exactly as if it had not been killed, with several at once equally well.
 * Units: microseconds. Threads: one at a time. */
#ifndef TUNER_SESSION_SESSION_H
#define TUNER_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/query.h"
#include "dataset/store.h"
#include "simulator/learned/ranker.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/space/space.h"
#include "strategy/strategy.h"
#include "tuner/search/candidates.h"
#include "tuner/session/outcome.h"
#include "tuner/session/session_options.h"
#include "tuner/session/trials.h"

enum tune_phase { TUNE_BASELINES, TUNE_SEARCH, TUNE_STALE, TUNE_FINAL };

/* What a listener gets, before a trial (outcome NULL) and after it. */
struct tune_event {
    enum tune_phase phase;
    uint64_t number, budget; /* of trials */
    const char *name, *proposer;
    double predicted_us;
    const struct tune_outcome *outcome;
    double median_us; /* of this trial, after it; in weather the mean */
    double best_us;   /* best of these so far; INFINITY before the first */
    double elapsed_us, left_us;
    bool recorded; /* from the dataset: a resumed session walks through its past */
};

struct tune_options {
    uint64_t trials; /* budget; 0 = no limit */
    double time_us;  /* budget of running time, without pauses between runs; 0 = no limit. One of the two budgets is
                        needed */
    double gap;      /* stop when the best is within this of the lower bound; 0 = never */
    uint64_t seed;
    struct session_options kept; /* in the dataset, for whoever resumes it */
    size_t evaluations;          /* predictions behind one proposal; 0 = candidates_evaluations() */
    const struct ranker *ranker; /* residual, learned elsewhere; borrowed. NULL: the timeline and a Gaussian process */
    struct space_options space;
    const struct export_limits *limits; /* try only what these forms can say; borrowed; NULL: all of the space */
    const char *team, *shared; /* whose it is and who may see it, as the dataset has them; NULL: nobody's, all */
    enum stored_session_mode mode;
    const atomic_int *cancel;
    void (*opened)(void *context, const char *session); /* tune_run recorded a new session; may be NULL */
    void (*listen)(void *context, const struct tune_event *event);
    void *context;
};

struct tune_options tune_default_options(void);

/* trial_us unless somebody says it: where the cluster has weather, long enough for a few changes of rates. */
double session_default_trial_us(const struct cluster *cluster);

/* A trial that was handed out. */
struct suggestion {
    struct tune_order order; /* order.strategy, entry and proposer are borrowed from the session */
    struct entry *entry;
    const char *proposer;
    uint64_t round; /* 0, or which repeat of the final this is */
    double predicted_us;
};

enum session_step {
    SESSION_TRIAL, /* run it */
    SESSION_WAIT,  /* nothing to do until a running trial is reported */
    SESSION_OVER
};

struct session; /* opaque */

/* Whether models may be stale here, if the options say so: session_prepare asks too. `limits` may be NULL. Fails:
 * ST_INVALID. */
enum status session_check_stale(const struct session_options *kept, const struct cluster *cluster,
                                const struct export_limits *limits, struct error *err);

/* Everything that needs no dataset: may take a second for a large model. `model`, `cluster` and what `options` points
 * to are borrowed. Then one of session_begin and session_resume. Fails: ST_NO_MEMORY, and as space_init and starts_list
 * (no strategy is possible here). */
enum status session_prepare(const struct model *model, const struct cluster *cluster,
                            const struct tune_options *options, struct session **out, struct error *err);
void session_close(struct session *s); /* NULL is allowed */

/* Record a new session in the dataset, with model and cluster. Fails: as the store. */
enum status session_begin(struct session *s, struct store *store, struct error *err);

/* Go on with session `id`: read its budget, its seed and the trials that ended. Nothing is written. The caller then
 * calls session_record_run, so that the pause does not count as time used. Trials that were running or waiting are left
 * as they are: the caller ends them by store_session_reconcile, or takes up each by session_take_up. Fails: as the
 * store, ST_CONFLICT (about another model or cluster; a collection). */
enum status session_resume(struct session *s, struct store *store, const char *id, struct error *err);
enum status session_take_up(struct session *s, struct store *store, const struct record *record, struct suggestion *out,
                            struct error *err);

/* A trial of the session that ended elsewhere and is in the dataset: learn of it, as a resumed session would. Its
 * strategy must be one of this model and cluster, without a "consistency", and a complete one has iterations. Fails: as
 * the store. */
enum status session_import(struct session *s, struct store *store, const struct record *record, struct error *err);

/* Warn where a budget leaves the search no trial beside those of stale models and the final. */
void session_warn_of_budget(const struct session *s);

/* Warn where gradients may be encoded and the model has none that can be. */
void session_warn_of_encodings(const struct session *s);

/* Whether --allow-sharded is given and the forms of --export-to or --export-env can say nothing that is sharded. */
bool session_shards_in_vain(const struct session *s);

/* Warn of that. */
void session_warn_of_shards(const struct session *s);

enum status session_record_run(struct session *s, struct store *store, struct error *err);

/* Change its budget (0 = no limit, as in struct tune_options). session_record_budget: in the dataset.
 * session_read_budget: in the session, from the dataset. Fails: ST_CONFLICT (more trials were handed out), as
 * session_budget_read and the store. */
enum status session_record_budget(struct session *s, struct store *store, uint64_t trials, double time_us, double gap,
                                  struct error *err);
enum status session_read_budget(struct session *s, const struct stored_session *stored, struct error *err);

/* What to do next; *out is set when that is SESSION_TRIAL. Takes about a second while searching. Fails: ST_NO_MEMORY,
 * ST_NUMERIC, and what predictions fail with. */
enum status session_suggest(struct session *s, enum session_step *step, struct suggestion *out, struct error *err);

/* Take the result of a suggestion. RECORD_CANCELLED: the trial was lost for good, and costs no budget. Fails:
 * ST_NO_MEMORY, and then the trial still runs. */
enum status session_report(struct session *s, const struct suggestion *suggestion, const struct tune_outcome *outcome,
                           struct error *err);

/* True when no trial runs and none will be suggested any more. Cheap. */
bool session_over(struct session *s);

const char *session_id(const struct session *s);
enum tune_stop session_stop(const struct session *s); /* once it is over */

/* ST_OK once a trial completed; else ST_INFEASIBLE, with why the first did not. */
enum status session_found(const struct session *s, struct error *err);

/* The results so far, from its records in `store`. Fails: ST_INFEASIBLE when no trial completed, as outcome_gather.
 * Release with outcome_release. */
enum status session_answer(const struct session *s, struct store *store, struct outcome *out, struct error *err);

#endif
