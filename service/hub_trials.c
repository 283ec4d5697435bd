/* See hub.h: how trials are offered, taken, reported and lost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/claims.h"
#include "dataset/leases.h"
#include "dataset/query.h"
#include "service/hub_internal.h"
#include "trial-runner/trial.h"
#include "tuner/session/session_options.h"
#include "tuner/session/trials.h"

/* ---- what the dataset says ---- */

static void count_end(struct hub *hub, const struct record *record) {
    const enum hub_end end = record->state == RECORD_COMPLETE       ? HUB_COMPLETE
                             : record->state == RECORD_FAILED       ? HUB_FAILED
                             : record->state == RECORD_INFEASIBLE   ? HUB_INFEASIBLE
                             : trial_reason_is_lost(record->reason) ? HUB_LOST
                                                                    : HUB_CANCELLED;
    atomic_fetch_add(&hub->ends[end], 1);
}

/* Tell the engine that the trial has ended. */
static enum status learn(struct hub_session *s, size_t place, const struct record *record, struct error *err) {
    const struct tune_outcome outcome = {.state = record->state,
                                         .early = trial_ended_early(record),
                                         .n = record->n_iterations,
                                         .iterations_us = record->iterations_us,
                                         .reason = record->reason};
    enum status st = session_report(s->engine, &s->open.list[place].suggestion, &outcome, err);
    if (st)
        return st;
    count_end(s->hub, record);
    assignments_forget(&s->open, place);
    return ST_OK;
}

/* *gone: it left the list. */
static enum status compare(struct hub_session *s, size_t place, const struct record *record, bool *gone,
                           struct error *err) {
    struct assignment *o = &s->open.list[place];
    *gone = false;
    if (record->state == RECORD_RUNNING && record->client && record->lease_until) {
        o->taken = true; /* also by another service */
        o->attempt = record->attempt;
        snprintf(o->client, sizeof o->client, "%s", record->client);
    } else if (record->state == RECORD_WAITING) {
        if (o->taken)
            atomic_fetch_add(&s->hub->ends[HUB_RETURNED], 1);
        o->taken = false;
        o->attempt = record->attempt;
    } else if (record->state != RECORD_RUNNING) {
        *gone = true;
        return learn(s, place, record, err);
    }
    return ST_OK;
}

/* End the own thread of a session that has ended, and forget the offers that nobody took. */
static void end_all(struct hub_session *s) {
    hub_session_cancel(s);
    for (size_t i = 0; i < s->open.n;)
        if (s->open.list[i].number)
            i++;
        else
            assignments_forget(&s->open, i);
}

static enum status state_of(struct hub_session *s, struct store *reader, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    enum status st = store_session_get(reader, s->id, &arena, &stored, err);
    if (!st) {
        s->state = stored.state;
        st = hub_follow_cluster(s, reader, stored.cluster, err);
        if (!st && s->engine)
            st = session_read_budget(s->engine, &stored, err);
        if (!stored_session_is_open(s->state))
            end_all(s);
    }
    arena_release(&arena);
    return st;
}

struct ending {
    struct hub_session *session;
    enum stored_session_state state;
    const char *reason;
};

static enum status end_step(void *context, struct store *store, struct error *err) {
    const struct ending *e = context;
    enum status st = hub_check_whole(e->session, store, err);
    return st ? st : hub_set_state(e->session, store, e->state, e->reason, err);
}

/* Write the end of a session of which nothing runs and nothing more will be suggested. Call with the session locked. */
static enum status finish_if_over(struct hub_session *s, struct error *err) {
    if (s->state != STORED_SESSION_RUNNING || s->open.n || !session_over(s->engine))
        return ST_OK;
    char reason[ERROR_TEXT_ROOM];
    struct ending ending = {s, session_end_state(s->engine, reason), reason};
    enum status st = hub_commit(s->hub, end_step, &ending, err);
    if (!st)
        s->state = ending.state;
    return s->behind ? ST_OK : st; /* whoever took trials meanwhile ends it */
}

enum status hub_check_whole(struct hub_session *s, struct store *store, struct error *err) {
    struct arena arena = {0};
    struct record *last;
    struct stored_session stored;
    size_t n = 0;
    const struct query query = {.session = s->id, .order = QUERY_BY_number, .descending = true, .limit = 1};
    if (!access_is_shared(s->hub->access))
        return ST_OK;
    enum status st = query_collect(store, &query, &arena, &n, &last, err);
    if (!st)
        st = store_session_get(store, s->id, &arena, &stored, err);
    s->behind = !st && ((n && last[0].number > s->open.last_number) || stored.state != s->state ||
                        strcmp(stored.cluster, s->cluster.id.hex) != 0);
    if (!st && s->behind)
        st = error_set(err, ST_UNREACHABLE, "another service changed session %s meanwhile; ask again", s->id);
    arena_release(&arena);
    return st == ST_UNREACHABLE ? error_code(err, st, "overloaded") : st;
}

static const double LOOK_AGAIN_US = 40e3;
enum { LOOKS = 25 };

struct search {
    char name[80]; /* of the claim */
    bool taken;
};

static void name_search(const struct hub_session *s, struct search *out) {
    snprintf(out->name, sizeof out->name, "search %s", s->id);
    out->taken = false;
}

static enum status claim_step(void *context, struct store *store, struct error *err) {
    struct search *search = context;
    return store_claim(store, search->name, 0, &search->taken, err);
}

static enum status unclaim_step(void *context, struct store *store, struct error *err) {
    const struct search *search = context;
    (void)err;
    store_unclaim(store, search->name);
    return ST_OK;
}

enum status hub_search(struct hub_session *s, struct error *err) {
    struct search search;
    name_search(s, &search);
    if (!access_is_shared(s->hub->access) || s->searches)
        return ST_OK;
    enum status st = hub_commit(s->hub, claim_step, &search, err);
    for (int i = 0; i < LOOKS && !st && !search.taken; i++) {
        clock_sleep_us(LOOK_AGAIN_US);
        st = hub_commit(s->hub, claim_step, &search, err);
    }
    if (!st && !search.taken)
        st = error_code(err, error_set(err, ST_UNREACHABLE, "another service is at session %s; ask again", s->id),
                        "overloaded");
    s->searches = !st;
    return st ? st : hub_look(s, err);
}

void hub_end_search(struct hub_session *s) {
    struct search search;
    name_search(s, &search);
    if (s->searches)
        hub_commit(s->hub, unclaim_step, &search, NULL);
    s->searches = false;
}

enum status hub_look(struct hub_session *s, struct error *err) {
    struct store *reader;
    if (!access_is_shared(s->hub->access) || !s->engine)
        return ST_OK;
    enum status st = access_read(s->hub->access, &reader, err);
    if (!st)
        st = hub_catch_up(s, err);
    if (!st)
        st = hub_check_whole(s, reader, err);
    if (!s->behind)
        return st;
    hub_forget_engine(s);
    return ST_OK;
}

enum status hub_catch_up(struct hub_session *s, struct error *err) {
    struct store *reader;
    enum status st = access_read(s->hub->access, &reader, err);
    if (!st)
        st = state_of(s, reader, err);
    for (size_t i = 0; i < s->open.n && !st;) {
        struct arena arena = {0};
        struct record *records;
        size_t n = 0;
        bool gone = false;
        const struct query query = {.session = s->id, .number = s->open.list[i].number, .iterations = true};
        if (query.number) /* 0: not written yet */
            st = query_collect(reader, &query, &arena, &n, &records, err);
        if (!st && n)
            st = compare(s, i, &records[0], &gone, err);
        arena_release(&arena);
        i += !gone;
    }
    if (!st && s->engine)
        st = finish_if_over(s, err);
    hub_stir(s);
    hub_notify(s);
    return st;
}

/* ---- what the clients can do ---- */

struct narrowing {
    struct hub_session *session;
    uint32_t algorithms;
};

static enum status write_algorithms(struct store *store, const char *id, uint32_t algorithms, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct session_options kept;
    char names[ALGORITHMS_ROOM];
    enum status st = store_session_get(store, id, &arena, &stored, err);
    if (!st)
        st = session_options_read(&stored, &arena, &kept, err);
    if (!st) {
        algorithms_write(algorithms, names);
        kept.algorithms = names;
        char *text = session_options_write(&kept, stored.options);
        st = text ? store_session_options(store, id, text, err) : error_no_memory(err);
        free(text);
    }
    arena_release(&arena);
    return st;
}

static enum status narrow_step(void *context, struct store *store, struct error *err) {
    const struct narrowing *n = context;
    return write_algorithms(store, n->session->id, n->algorithms, err);
}

static bool waits_in_vain(const struct assignment *a, uint32_t algorithms) {
    return a->number && !a->taken && strategy_algorithms(a->suggestion.order.strategy) & ~algorithms;
}

static enum status cancel_step(void *context, struct store *store, struct error *err) {
    const struct narrowing *n = context;
    const struct assignments *open = &n->session->open;
    enum status st = ST_OK;
    for (size_t i = 0; i < open->n && !st; i++)
        if (waits_in_vain(&open->list[i], n->algorithms))
            st = store_trial_fail(store, open->list[i].row, RECORD_CANCELLED,
                                  "not everybody who asks for trials can execute its algorithm", err);
    return st;
}

/* Trials that came back after the session was narrowed. */
static enum status cancel_unable(struct hub_session *s, struct error *err) {
    struct narrowing n = {.session = s};
    bool any = false;
    if (!s->algorithms)
        return ST_OK;
    enum status st = algorithms_parse(s->algorithms, &n.algorithms, err);
    for (size_t i = 0; i < s->open.n; i++)
        any |= waits_in_vain(&s->open.list[i], n.algorithms);
    if (st || !any)
        return st;
    st = hub_commit(s->hub, cancel_step, &n, err);
    return st ? st : hub_catch_up(s, err);
}

enum status hub_narrow(struct hub_session *s, uint32_t algorithms, struct error *err) {
    uint32_t have = (1u << ALGORITHM_COUNT) - 1;
    enum status st = s->algorithms ? algorithms_parse(s->algorithms, &have, err) : ST_OK;
    struct narrowing n = {s, have & algorithms};
    if (st || n.algorithms == have || !stored_session_is_open(s->state))
        return st;
    if (!(n.algorithms & ((1u << ALL_REDUCE_COUNT) - 1)))
        return error_set(err, ST_CONFLICT, "session %s tries %s alone, for those who asked before", s->id,
                         s->algorithms);
    st = hub_commit(s->hub, narrow_step, &n, err);
    if (!st)
        hub_forget_engine(s); /* hub_wake makes it anew, in the space that is left */
    return st;
}

/* ---- offering and taking ---- */

static enum status check_running(const struct hub_session *s, struct error *err) {
    if (s->state == STORED_SESSION_RUNNING)
        return ST_OK;
    return error_set(err, ST_CONFLICT, "session %s is %s", s->id, stored_session_state_word(s->state));
}

enum status hub_make_ready(struct hub_session *s, size_t count, size_t *ready, enum session_step *step,
                           struct error *err) {
    enum status st = check_running(s, err);
    *step = SESSION_TRIAL;
    if (!st)
        st = cancel_unable(s, err);
    if (!st && !s->engine)
        st = error_code(err, error_set(err, ST_UNREACHABLE, "session %s changed meanwhile; ask again", s->id),
                        "overloaded");
    if (!st)
        st = assignments_suggest(&s->open, count, step, err);
    *ready = st ? 0 : assignments_waiting(&s->open);
    if (!st && *step == SESSION_OVER)
        st = finish_if_over(s, err);
    return st;
}

static enum status tell_trial(struct hub_session *s, struct store *store, const char *kind, uint64_t number,
                              uint64_t attempt, const char *client, struct error *err) {
    cJSON *content = cJSON_CreateObject();
    const bool whole = cJSON_AddNumberToObject(content, "number", (double)number) &&
                       cJSON_AddNumberToObject(content, "attempt", (double)attempt) &&
                       (!client || cJSON_AddStringToObject(content, "client", client));
    return hub_tell(s, store, kind, content, whole, err);
}

enum status hub_take(struct hub_session *s, struct store *store, const char *client, size_t count, double lease_us,
                     struct assignment taken[ASSIGNMENTS_MOST], size_t *n, struct error *err) {
    const double length_us = lease_us > 0 ? lease_us : s->hub->options.lease_us;
    size_t done = 0;
    enum status st = hub_check_whole(s, store, err);
    if (!st)
        st = assignments_take(&s->open, store, client, count, length_us, taken, &done, err);
    for (size_t i = 0; i < done && !st; i++)
        st = tell_trial(s, store, "trial-taken", taken[i].number, taken[i].attempt, client, err);
    if (!st)
        *n = done;
    return st;
}

void hub_taken(struct hub_session *s, size_t n, const struct assignment *taken) {
    assignments_took(&s->open, n, taken);
    for (size_t i = 0; i < n; i++)
        s->open.list[taken[i].place].deadline_us = clock_boot_us() + taken[i].lease_us;
}

/* ---- those that are taken ---- */

/* Refuse a trial that is not the holder's. The error says why, as the dataset has it. */
static enum status refuse(struct hub_session *s, struct store *store, const struct holder *holder, struct error *err) {
    struct holder here = *holder;
    struct error why;
    int64_t row;
    here.session = s->id;
    const enum status st = assignment_check(store, &here, &row, &why);
    if (st && st != ST_CONFLICT)
        return error_pass(err, &why);
    return error_set(err, ST_CONFLICT, "trial %lu is no longer with client \"%s\", attempt %lu: %s",
                     (unsigned long)holder->number, holder->client, (unsigned long)holder->attempt,
                     st ? why.message : "the session is not up to date");
}

/* Find the trial that the holder has. *out is NULL where only the dataset knows it, from another service. */
static enum status find_held(struct hub_session *s, struct store *store, const struct holder *holder,
                             struct assignment **out, struct error *err) {
    struct holder here = *holder;
    *out = NULL;
    here.session = s->id;
    here.row = 0;
    for (size_t i = 0; i < s->open.n; i++) {
        struct assignment *a = &s->open.list[i];
        if (a->number == holder->number && a->taken && a->attempt == holder->attempt &&
            !strcmp(a->client, holder->client)) {
            *out = a;
            return ST_OK;
        }
    }
    int64_t row;
    if (access_is_shared(s->hub->access) && !assignment_check(store, &here, &row, NULL))
        return hub_weather(s) ? hub_check_whole(s, store, err) : ST_OK;
    return refuse(s, store, holder, err);
}

/* How long the lease was made for the last time; 0: not known. Another service may have given it another length. */
static enum status lease_length(struct hub_session *s, struct store *store, uint64_t number, const struct assignment *a,
                                double *length_us, struct error *err) {
    struct arena arena = {0};
    struct lease *leases;
    size_t n = 0;
    *length_us = a ? a->lease_us : 0;
    if (!access_is_shared(s->hub->access))
        return ST_OK;
    enum status st = leases_list(store, s->id, &arena, &n, &leases, err);
    for (size_t i = 0; i < n && !st; i++)
        if (leases[i].number == number)
            *length_us = leases[i].length_us;
    arena_release(&arena);
    return st;
}

enum status hub_renew(struct hub_session *s, struct store *store, const struct holder *holder, double lease_us,
                      double *length_us, struct error *err) {
    struct assignment *a;
    enum status st = find_held(s, store, holder, &a, err);
    if (st)
        return st;
    const struct holder known = {s->id, holder->client, holder->number, holder->attempt, a ? a->row : 0};
    double length = lease_us;
    if (!(length > 0))
        st = lease_length(s, store, holder->number, a, &length, err);
    if (!st && !(length > 0))
        length = s->hub->options.lease_us;
    if (!st)
        st = assignment_renew(store, &known, length, err);
    if (st)
        return st;
    *length_us = length;
    if (a) {
        a->lease_us = length; /* a lease that lasts longer than the dataset says does no harm */
        a->deadline_us = clock_boot_us() + length;
    }
    return ST_OK;
}

enum status hub_judge(struct hub_session *s, struct store *store, const struct holder *holder, size_t n,
                      const double *iterations_us, bool *stop, struct error *err) {
    struct assignment *a;
    enum status st = find_held(s, store, holder, &a, err);
    if (st)
        return st;
    const double give_up_us = a ? a->suggestion.order.give_up_us : 0; /* whoever suggested it can judge it */
    *stop = n >= TRIAL_HOPELESS_AFTER && give_up_us > 0;
    for (size_t i = 0; i < n && *stop; i++)
        *stop = iterations_us[i] > give_up_us;
    return ST_OK;
}

static enum status tell_end(struct hub_session *s, struct store *store, const struct holder *holder,
                            const struct tune_outcome *outcome, struct error *err) {
    struct summary summary = {0};
    enum status st = outcome->n ? summary_of_copy(outcome->n, outcome->iterations_us, &summary, err) : ST_OK;
    if (st)
        return st;
    const double us = hub_weather(s) ? summary.mean_us : summary.median_us;
    cJSON *content = cJSON_CreateObject();
    const bool has_reason = outcome->reason && *outcome->reason;
    const bool whole = cJSON_AddNumberToObject(content, "number", (double)holder->number) &&
                       cJSON_AddNumberToObject(content, "attempt", (double)holder->attempt) &&
                       cJSON_AddStringToObject(content, "state", record_state_word(outcome->state)) &&
                       (!outcome->n || cJSON_AddNumberToObject(content, "measured_us", us)) &&
                       (!has_reason || cJSON_AddStringToObject(content, "reason", outcome->reason));
    return hub_tell(s, store, "trial-ended", content, whole, err);
}

/* Trials of a round are compared because all of them met the same weather, so each must say that it did. */
static enum status check_weather(const struct assignment *a, const struct tune_outcome *outcome, struct error *err) {
    const double in_json = (double)a->suggestion.order.weather; /* which has fewer digits than the largest seeds */
    const unsigned long wanted = (unsigned long)in_json;
    if (outcome->state != RECORD_COMPLETE || !wanted || trial_weather_said(outcome->environment) == wanted)
        return ST_OK;
    return error_set(err, ST_INVALID,
                     "trial %lu is in weather %lu, and its environment must say so: {\"weather\":%lu}; a client that "
                     "cannot play the weather reports the trial as failed",
                     (unsigned long)a->number, wanted, wanted);
}

enum status hub_end_trial(struct hub_session *s, struct store *store, const struct holder *holder, const char *runner,
                          const struct tune_outcome *outcome, struct error *err) {
    struct assignment *a;
    enum status st = find_held(s, store, holder, &a, err);
    if (st)
        return st;
    const struct holder known = {s->id, holder->client, holder->number, holder->attempt, a ? a->row : 0};
    st = a ? check_weather(a, outcome, err) : ST_OK;
    if (!st)
        st = assignment_end(store, &known, runner, outcome, err);
    return st ? st : tell_end(s, store, holder, outcome, err);
}

/* ---- those that ended elsewhere ---- */

enum status hub_can_import(const struct hub_session *s, struct error *err) {
    return s->state == STORED_SESSION_PAUSED ? ST_OK : check_running(s, err);
}

enum status hub_tell_import(struct hub_session *s, struct store *store, uint64_t added, struct error *err) {
    cJSON *content = cJSON_CreateObject();
    const bool whole = cJSON_AddNumberToObject(content, "added", (double)added) != NULL;
    return hub_tell(s, store, "trials-imported", content, whole, err);
}

/* Nobody else adds trials while the session is locked, so the imported trials are those after the last known number. */
enum status hub_learn_imported(struct hub_session *s, struct error *err) {
    struct arena arena = {0};
    struct record *records;
    struct store *reader;
    size_t n = 0;
    char filter[48];
    const struct query query = {.session = s->id, .filter = filter, .order = QUERY_BY_number, .iterations = true};
    if (access_is_shared(s->hub->access)) { /* there may be others' trials among them: the records say all */
        hub_forget_engine(s);
        return hub_catch_up(s, err);
    }
    snprintf(filter, sizeof filter, "number > %lu", (unsigned long)s->open.last_number);
    enum status st = access_read(s->hub->access, &reader, err);
    if (!st)
        st = query_collect(reader, &query, &arena, &n, &records, err);
    for (size_t i = 0; i < n && !st; i++) {
        st = session_import(s->engine, reader, &records[i], err);
        s->open.last_number = st ? s->open.last_number : records[i].number;
    }
    arena_release(&arena);
    return st ? st : hub_catch_up(s, err);
}

/* ---- lost ones ---- */

struct expiry {
    struct hub_session *session;
    const struct assignment *trial;
};

static enum status expire_step(void *context, struct store *store, struct error *err) {
    const struct expiry *e = context;
    enum record_state state;
    enum status st = assignment_expire(store, e->trial->row, e->trial->attempt, &state, err);
    return st ? st
              : tell_trial(e->session, store, state == RECORD_WAITING ? "trial-returned" : "trial-lost",
                           e->trial->number, e->trial->attempt, e->trial->client, err);
}

enum status hub_expire(struct hub_session *s, struct error *err) {
    const double now = clock_boot_us();
    bool any = false;
    enum status st = ST_OK;
    for (size_t i = 0; i < s->open.n && !st; i++)
        if (s->open.list[i].taken && s->open.list[i].deadline_us <= now) {
            st = hub_commit(s->hub, expire_step, &(struct expiry){s, &s->open.list[i]}, err);
            any = true;
        }
    return st || !any ? st : hub_catch_up(s, err);
}

static enum status expire_all_step(void *context, struct store *store, struct error *err) {
    struct arena arena = {0};
    struct lease *leases;
    struct hub_session names = {.hub = context};
    size_t n = 0;
    enum status st = leases_expired(store, NULL, &arena, &n, &leases, err);
    for (size_t i = 0; i < n && !st; i++) {
        enum record_state state;
        st = assignment_expire(store, leases[i].trial, leases[i].attempt, &state, err);
        if (st || !leases[i].session)
            continue;
        snprintf(names.id, sizeof names.id, "%s", leases[i].session);
        st = tell_trial(&names, store, state == RECORD_WAITING ? "trial-returned" : "trial-lost", leases[i].number,
                        leases[i].attempt, leases[i].client, err);
    }
    arena_release(&arena);
    return st;
}

enum status hub_expire_all(struct hub *hub, struct error *err) {
    return hub_commit(hub, expire_all_step, hub, err);
}

/* ---- steering ---- */

static enum status cancel_trials(struct hub_session *s, struct store *store, const char *reason, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < s->open.n && !st; i++)
        if (s->open.list[i].number)
            st = store_trial_fail(store, s->open.list[i].row, RECORD_CANCELLED, reason, err);
    return st;
}

enum status hub_steer(struct hub_session *s, struct store *store, enum hub_verb verb, struct error *err) {
    static const struct {
        enum stored_session_state from, to;
        const char *reason;
    } verbs[] = {[HUB_PAUSE] = {STORED_SESSION_RUNNING, STORED_SESSION_PAUSED, NULL},
                 [HUB_RESUME] = {STORED_SESSION_PAUSED, STORED_SESSION_RUNNING, NULL},
                 [HUB_STOP] = {STORED_SESSION_RUNNING, STORED_SESSION_STOPPED, "it was stopped"},
                 [HUB_CANCEL] = {STORED_SESSION_RUNNING, STORED_SESSION_CANCELLED, "it was cancelled"}};
    const bool ends = verb == HUB_STOP || verb == HUB_CANCEL;
    if (s->state != verbs[verb].from && !(ends && s->state == STORED_SESSION_PAUSED))
        return error_set(err, ST_CONFLICT, "session %s is %s", s->id, stored_session_state_word(s->state));
    if (verb == HUB_RESUME && s->mode == STORED_SESSION_OWN && !s->runner)
        return error_set(err, ST_CONFLICT, HUB_NO_LAUNCHER);
    enum status st = hub_check_whole(s, store, err);
    if (!st && ends)
        st = cancel_trials(s, store, verbs[verb].reason, err);
    return st ? st : hub_set_state(s, store, verbs[verb].to, verbs[verb].reason, err);
}

static bool is_same(double a, double b) {
    return !(a < b) && !(a > b);
}

static enum status is_budget(struct hub_session *s, struct store *store, uint64_t trials, double time_us, double gap,
                             bool *same, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct session_budget now;
    enum status st = store_session_get(store, s->id, &arena, &stored, err);
    if (!st)
        st = session_budget_read(&stored, &now, err);
    *same = !st && now.trials == trials && is_same(now.time_us, time_us) && is_same(now.gap, gap);
    arena_release(&arena);
    return st;
}

enum status hub_set_budget(struct hub_session *s, struct store *store, uint64_t trials, double time_us, double gap,
                           struct error *err) {
    bool same;
    if (!stored_session_is_open(s->state))
        return error_set(err, ST_CONFLICT, "session %s is %s", s->id, stored_session_state_word(s->state));
    enum status st = is_budget(s, store, trials, time_us, gap, &same, err);
    if (!st && !same)
        st = session_record_budget(s->engine, store, trials, time_us, gap, err);
    if (st || same)
        return st;
    cJSON *content = cJSON_CreateObject();
    const bool whole = cJSON_AddNumberToObject(content, "trials", (double)trials) &&
                       cJSON_AddNumberToObject(content, "time_us", time_us) &&
                       cJSON_AddNumberToObject(content, "gap", gap);
    return hub_tell(s, store, "budget", content, whole, err);
}
