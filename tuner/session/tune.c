/* Each trial is in the dataset before it runs and after it ended, so a process that is killed loses one trial at most.
 */
#include "tuner/session/tune.h"

#include <stdio.h>

#include "dataset/claims.h"

static enum status say_how_to_resume(const char *session, struct store *store, struct error *err) {
    return error_set(err, ST_CANCELLED, "interrupted; go on with: syncopate tune --resume %s --dataset %s", session,
                     store_path(store));
}

static enum status open_session(struct store *store, struct session *s, const char *resume, struct error *err) {
    enum status st = resume ? store_claim_session(store, resume, 0, err) : session_begin(s, store, err);
    if (!resume)
        return st ? st : store_claim_session(store, session_id(s), 0, err);
    if (!st)
        st = session_resume(s, store, resume, err);
    if (!st)
        st = session_record_run(s, store, err);
    return st ? st : store_session_reconcile(store, resume, NULL, err);
}

struct tune {
    struct store *store;
    const struct model *model;
    const struct cluster *cluster;
    const struct tune_runner *runner;
    const struct tune_options *options;
    struct session *session;
};

/* The number that the next trial will have in its session. */
static enum status next_number(const struct tune *t, uint64_t *out, struct error *err) {
    struct arena arena = {0};
    struct record *last;
    size_t n = 0;
    const struct query query = {
        .session = session_id(t->session), .order = QUERY_BY_number, .descending = true, .limit = 1};
    enum status st = query_collect(t->store, &query, &arena, &n, &last, err);
    if (!st)
        *out = n ? last[0].number + 1 : 1;
    arena_release(&arena);
    return st;
}

static enum status run_trial(const struct tune *t, const struct suggestion *trial, struct error *err) {
    struct tune_outcome outcome = {0};
    struct tune_order order = trial->order;
    if (!store_has_claim(t->store, session_id(t->session))) /* the connection was lost, and another process goes on */
        return error_set(err, ST_CONFLICT, "another process runs session %s now", session_id(t->session));
    enum status st = next_number(t, &order.number, err);
    if (st)
        return st;
    const struct trial_start start = {.model = t->model,
                                      .cluster = t->cluster,
                                      .strategy = trial->order.strategy,
                                      .session = session_id(t->session),
                                      .number = order.number,
                                      .proposer = trial->proposer,
                                      .runner = t->runner->name,
                                      .round = trial->round,
                                      .seed = t->options->seed,
                                      .predicted_us = trial->predicted_us};
    int64_t row;
    st = trial_record_start(t->store, &start, &row, err);
    if (st)
        return st;
    st = t->runner->run(t->runner->context, &order, &outcome, err);
    if (st) {
        struct error ignored;
        store_trial_fail(t->store, row, RECORD_CANCELLED, err ? ERROR_TEXT(err) : NULL, &ignored);
        return st == ST_CANCELLED ? say_how_to_resume(session_id(t->session), t->store, err) : st;
    }
    st = trial_record_end(t->store, row, &outcome, err);
    return st ? st : session_report(t->session, trial, &outcome, err);
}

static enum status run_all(const struct tune *t, struct error *err) {
    enum session_step step = SESSION_TRIAL;
    enum status st = ST_OK;
    while (!st && step == SESSION_TRIAL) {
        struct suggestion trial;
        if (t->options->cancel && *t->options->cancel)
            return say_how_to_resume(session_id(t->session), t->store, err);
        st = session_suggest(t->session, &step, &trial, err);
        if (!st && step == SESSION_TRIAL)
            st = run_trial(t, &trial, err);
    }
    return st;
}

/* Record how the session stands in the dataset from now on. */
static void record_end(const struct tune *t, enum status st, const struct error *err) {
    struct error ignored;
    store_session_update(t->store, session_id(t->session),
                         !st                  ? STORED_SESSION_DONE
                         : st == ST_CANCELLED ? STORED_SESSION_STOPPED
                                              : STORED_SESSION_FAILED,
                         st && err ? ERROR_TEXT(err) : tune_stop_label(session_stop(t->session)), &ignored);
}

enum status tune_run(struct store *store, const struct model *model, const struct cluster *cluster,
                     const struct tune_runner *runner, const struct tune_options *options, const char *resume,
                     struct outcome *out, struct error *err) {
    struct tune_options with_runner = *options;
    struct tune t = {.store = store, .model = model, .cluster = cluster, .runner = runner, .options = &with_runner};
    with_runner.kept.launch.runner = runner->name;
    enum status st = session_prepare(model, cluster, &with_runner, &t.session, err);
    if (st)
        return st;
    st = open_session(store, t.session, resume, err);
    const bool is_ours = !st || !resume; /* a session that could not be resumed stays as it was */
    if (!st && !resume) {
        session_warn_of_budget(t.session);
        session_warn_of_encodings(t.session);
        session_warn_of_shards(t.session);
    }
    if (!st && !resume && options->opened)
        options->opened(options->context, session_id(t.session));
    if (!st)
        st = run_all(&t, err);
    if (!st)
        st = session_answer(t.session, store, out, err);
    if (is_ours && *session_id(t.session))
        record_end(&t, st, err);
    session_close(t.session);
    return st;
}
