/* Cost: loading walks the session's trials once; each other function reads and writes one trial. */
#include "tuner/session/assignments.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/leases.h"
#include "dataset/query.h"
#include "tuner/session/session_internal.h"

/* ---- what the dataset says ---- */

static void set_lease(struct assignment *a, size_t n, const struct lease *leases) {
    for (size_t i = 0; i < n; i++)
        if (leases[i].trial == a->row) {
            a->taken = true;
            a->lease_us = leases[i].length_us;
            snprintf(a->client, sizeof a->client, "%s", leases[i].client);
            snprintf(a->until, sizeof a->until, "%s", leases[i].until);
        }
}

/* Load a trial that has not ended: the engine learns it, and it is listed where the caller wants it. */
static enum status load_one(struct assignments *a, struct store *store, const struct record *r, bool listed, size_t n,
                            const struct lease *leases, struct error *err) {
    struct assignment one = {.number = r->number, .row = r->trial, .attempt = r->attempt};
    enum status st = session_take_up(a->engine, store, r, &one.suggestion, err);
    if (st || !listed || a->n == ASSIGNMENTS_MOST)
        return st;
    set_lease(&one, n, leases);
    a->list[a->n++] = one;
    return ST_OK;
}

enum status assignments_load(struct assignments *out, struct session *engine, struct store *store, bool taken,
                             struct error *err) {
    struct arena arena = {0};
    struct record *records;
    struct lease *leases;
    size_t n = 0, n_leases = 0;
    out->engine = engine;
    out->last_number = out->n = 0;
    enum status st = store_trials(store, engine->id, &arena, &n, &records, err);
    if (!st)
        st = leases_list(store, engine->id, &arena, &n_leases, &leases, err);
    for (size_t i = 0; i < n && !st; i++) {
        const struct record *r = &records[i];
        out->last_number = r->number > out->last_number ? r->number : out->last_number;
        if (r->state == RECORD_WAITING || r->state == RECORD_RUNNING)
            st = load_one(out, store, r, taken || r->state == RECORD_WAITING, n_leases, leases, err);
    }
    arena_release(&arena);
    return st;
}

/* ---- taking ---- */

size_t assignments_waiting(const struct assignments *a) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += !a->list[i].taken;
    return n;
}

enum status assignments_suggest(struct assignments *a, size_t count, enum session_step *step, struct error *err) {
    enum status st = ST_OK;
    *step = SESSION_TRIAL;
    while (!st && *step == SESSION_TRIAL && assignments_waiting(a) < count && a->n < ASSIGNMENTS_MOST) {
        struct assignment *next = &a->list[a->n];
        *next = (struct assignment){0};
        st = session_suggest(a->engine, step, &next->suggestion, err);
        a->n += !st && *step == SESSION_TRIAL;
    }
    return st;
}

static enum status write_waiting(const struct session *s, struct store *store, struct assignment *a,
                                 struct error *err) {
    const struct trial_start start = {.model = s->model,
                                      .cluster = s->cluster,
                                      .strategy = a->suggestion.order.strategy,
                                      .session = s->id,
                                      .number = a->number,
                                      .waiting = true,
                                      .proposer = a->suggestion.proposer,
                                      .runner = s->options.kept.launch.runner,
                                      .round = a->suggestion.round,
                                      .seed = s->options.seed,
                                      .predicted_us = a->suggestion.predicted_us};
    return trial_record_start(store, &start, &a->row, err);
}

static enum status take_one(const struct session *s, struct store *store, const char *client, double lease_us,
                            bool is_new, struct assignment *a, struct error *err) {
    enum status st = is_new ? write_waiting(s, store, a, err) : ST_OK;
    if (!st)
        st = lease_take(store, a->row, client, lease_us, &a->attempt, err);
    a->suggestion.order.number = a->number;
    a->taken = true;
    a->lease_us = lease_us;
    clock_utc_after(lease_us, a->until, sizeof a->until);
    snprintf(a->client, sizeof a->client, "%s", client);
    return st;
}

enum status assignments_take(const struct assignments *a, struct store *store, const char *client, size_t count,
                             double lease_us, struct assignment taken[ASSIGNMENTS_MOST], size_t *n, struct error *err) {
    uint64_t last = a->last_number;
    size_t done = 0;
    enum status st = ST_OK;
    for (size_t i = 0; i < a->n && done < count && !st; i++) {
        struct assignment *one = &taken[done];
        if (a->list[i].taken)
            continue;
        *one = a->list[i];
        one->place = i;
        one->number = one->number ? one->number : ++last;
        st = take_one(a->engine, store, client, lease_us, !a->list[i].number, one, err);
        done += !st;
    }
    if (!st)
        *n = done;
    return st;
}

void assignments_took(struct assignments *a, size_t n, const struct assignment *taken) {
    for (size_t i = 0; i < n; i++) {
        a->list[taken[i].place] = taken[i];
        a->last_number = taken[i].number > a->last_number ? taken[i].number : a->last_number;
    }
}

void assignments_forget(struct assignments *a, size_t place) {
    memmove(&a->list[place], &a->list[place + 1], (a->n - place - 1) * sizeof *a->list);
    a->n--;
}

enum stored_session_state session_end_state(struct session *engine, char reason[ERROR_TEXT_ROOM]) {
    struct error why;
    const bool failed = session_found(engine, &why);
    if (failed)
        error_text(&why, reason);
    else
        snprintf(reason, ERROR_TEXT_ROOM, "%s", tune_stop_label(session_stop(engine)));
    return failed ? STORED_SESSION_FAILED : STORED_SESSION_DONE;
}

/* ---- those that are taken ---- */

static enum status has_no_trial(struct store *store, const struct holder *h, struct arena *arena, struct error *err) {
    struct stored_session session;
    const enum status st = store_session_get(store, h->session, arena, &session, err);
    return st ? st
              : error_at(err, ST_NOT_FOUND, store_path(store), "session %s has no trial %lu: %lu were suggested so far",
                         h->session, (unsigned long)h->number, (unsigned long)session.trials);
}

static enum status read_trial(struct store *store, const struct holder *h, struct arena *arena, struct record **out,
                              struct error *err) {
    struct record *records = NULL;
    size_t n = 0;
    const struct query query = {.session = h->session, .number = h->number, .limit = 1};
    enum status st = h->number ? query_collect(store, &query, arena, &n, &records, err) : ST_OK; /* 0 would be any */
    if (!st && !n)
        st = has_no_trial(store, h, arena, err);
    *out = st ? NULL : records;
    return st;
}

/* Why the trial is not the holder's. */
static enum status refuse(const struct record *r, const struct holder *h, struct error *err) {
    const unsigned long number = (unsigned long)r->number, attempt = (unsigned long)r->attempt;
    if (r->state == RECORD_WAITING)
        return error_set(err, ST_CONFLICT,
                         "trial %lu is with nobody: its lease ran out, and it waits to be suggested as attempt %lu",
                         number, attempt);
    if (r->state != RECORD_RUNNING)
        return error_set(err, ST_CONFLICT, "trial %lu has ended: it is %s%s%s", number, record_state_word(r->state),
                         r->reason ? ", " : "", r->reason ? r->reason : "");
    if (!r->client || !r->lease_until)
        return error_set(err, ST_CONFLICT, "trial %lu is run by the process of its session", number);
    if (strcmp(r->client, h->client) != 0)
        return error_set(err, ST_CONFLICT,
                         "trial %lu is with client \"%s\", attempt %lu, until %s, and not with \"%s\"", number,
                         r->client, attempt, r->lease_until, h->client);
    return error_set(err, ST_CONFLICT, "trial %lu is in attempt %lu, until %s, and not in attempt %lu", number, attempt,
                     r->lease_until, (unsigned long)h->attempt);
}

enum status assignment_check(struct store *store, const struct holder *h, int64_t *row, struct error *err) {
    struct arena arena = {0};
    struct record *record = NULL;
    enum status st = h->row ? ST_OK : read_trial(store, h, &arena, &record, err);
    const int64_t trial = st ? 0 : h->row ? h->row : record->trial;
    if (!st)
        st = lease_check(store, trial, h->client, h->attempt, err);
    if (st == ST_CONFLICT && (record || !read_trial(store, h, &arena, &record, err)))
        st = refuse(record, h, err);
    if (!st)
        *row = trial;
    arena_release(&arena);
    return st;
}

enum status assignment_renew(struct store *store, const struct holder *holder, double lease_us, struct error *err) {
    int64_t row;
    enum status st = assignment_check(store, holder, &row, err);
    return st ? st : lease_renew(store, row, holder->client, holder->attempt, lease_us, err);
}

enum status assignment_end(struct store *store, const struct holder *holder, const char *runner,
                           const struct tune_outcome *outcome, struct error *err) {
    int64_t row;
    enum status st = assignment_check(store, holder, &row, err);
    if (!st && runner)
        st = store_trial_ran_by(store, row, runner, err);
    return st ? st : trial_record_end(store, row, outcome, err);
}

enum status assignment_expire(struct store *store, int64_t row, uint64_t attempt, enum record_state *state,
                              struct error *err) {
    return lease_expire(store, row, attempt, ASSIGNMENT_ATTEMPTS, state, err);
}
