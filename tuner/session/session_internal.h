/* What the sources of a session share: session.c decides what to try, session_records.c begins and resumes it. */
#ifndef TUNER_SESSION_SESSION_INTERNAL_H
#define TUNER_SESSION_SESSION_INTERNAL_H

#include "simulator/learned/ranker.h"
#include "tuner/learn/learner.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/starts.h"
#include "tuner/session/session.h"

enum { MAX_ROUNDS = 32, MAX_FINALISTS = 6, MOST_ITERATIONS = 60, MOST_ITERATIONS_IN_WEATHER = 1000 };

/* A distinct strategy and all that was measured of it. Round 0 is its first trial, later ones are the final's. */
struct entry {
    struct strategy strategy;
    char proposer[32];
    const struct baseline *baseline;
    double predicted_us;
    enum record_state state; /* of the last trial */
    bool early;              /* the first trial was ended early */
    char reason[160];
    size_t n_rounds, counts[MAX_ROUNDS];
    double *rounds[MAX_ROUNDS];
    double us;                /* of round 0, the median, or in weather the mean; INFINITY when it did not complete */
    struct measured measured; /* round 0 as the predictor learns it */
    uint64_t repeats;         /* in the final, all that were handed out */
    uint64_t running;         /* that were handed out and have not ended */
    double quiet_us; /* of a session in weather: predicted on the quiet network; 0: not yet; INFINITY: it cannot be */
};

struct session {
    const struct model *model;
    const struct cluster *cluster;
    struct tune_options options;
    char id[64];
    struct space space;
    struct predictor predictor;
    struct learner learner;
    size_t learned; /* entries that the learner was given last */
    struct starts starts;
    size_t n, capacity;
    struct entry **entries; /* each allocated alone, so that pointers to entries stay valid */
    size_t n_earlier;       /* measured in this domain before the session began */
    struct strategy *earlier_strategies;
    struct measured *earlier_measured;
    struct tried *earlier;
    uint64_t trials;                               /* that ended; counted against the budget */
    uint64_t running;                              /* that were handed out and have not */
    double lower_bound_us, started_us, earlier_us; /* earlier_us: of its earlier runs */
    enum tune_phase phase;
    enum tune_stop stop;
    bool searched;   /* the search is over */
    bool quiet_done; /* in weather: the quiet network's best was looked for */
    bool stale_done; /* with allow_stale: the strategies of updates that get a trial are among the entries */
    bool fitted;     /* the predictor knows all entries */
};

/* The entry of that strategy, or NULL. */
struct entry *session_find(struct session *s, const struct id *id);

/* What the predictor learns from these iterations of a trial, in their order. */
struct measured session_measured(const struct session *s, const struct strategy *strategy, double us, size_t n,
                                 const double *iterations_us);

/* A new entry; takes the strategy over. NULL when memory is out; the strategy is then released. */
struct entry *session_add(struct session *s, struct strategy *strategy, const char *proposer, double predicted_us);

/* A trial of the entry has ended. Of several trials outside the final the first that completed counts. Fails:
 * ST_NO_MEMORY. */
enum status session_learn(struct session *s, struct entry *e, uint64_t round, enum record_state state, size_t n,
                          const double *iterations_us, const char *reason, struct error *err);

/* Tell the listener: before a trial (outcome NULL) and after it. */
void session_tell(const struct session *s, const struct entry *e, const struct tune_outcome *outcome, double median_us,
                  bool recorded);

/* What was tried, in the order of the trials; malloc'd. */
struct tried *session_tried(const struct session *s);

/* Predict a strategy as the predictor is now. Fails: as predictor_run. */
enum status session_predict(struct session *s, const struct strategy *strategy, double *us, struct error *err);

/* In weather: an entry for what is predicted to be the best on the quiet network. *out is NULL when there was one, and
 * out of weather. Fails: as candidates_make and predictions. */
enum status session_next_quiet(struct session *s, struct entry **out, struct error *err);

/* In weather: fill in quiet_us of all entries. Fails: as predictions do for other reasons than the strategy's. */
enum status session_predict_quiet(struct session *s, struct error *err);

/* With allow_stale (session_stale.c). What such a session tries beside its search are strategies with a "consistency":
 * those whose models may be stale, and synchronous training as updates, with which they are compared. */
bool session_is_stale(const struct entry *e);           /* one of either */
bool session_is_in_step(const struct entry *e);         /* the second */
uint64_t session_stale_trials(const struct session *s); /* how many the budget keeps for them, before the final */
bool session_has_stale(const struct session *s);        /* an entry of them waits for its trial */

/* The next of them that gets a trial; *out is NULL when all had theirs, and without allow_stale. No other trial runs.
 * Fails: as predictions do for other reasons than the strategy's. */
enum status session_next_stale(struct session *s, struct entry **out, struct error *err);

/* Whether neither the trials nor the time are used up. */
bool session_has_budget(const struct session *s);

/* Fit the predictor to what was measured. Fails: as predictor_fit. */
enum status session_refit(struct session *s, struct error *err);

/* One more trial of `e` runs. */
void session_adopt(struct session *s, struct entry *e, uint64_t round, struct suggestion *out);

#endif
