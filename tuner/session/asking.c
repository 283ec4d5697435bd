/* See asking.h. Each change is one transaction, so a process that dies in the middle of one has changed nothing. Cost
 * of a call: the session's records are replayed, which takes milliseconds; new suggestions take what they take. */
#include "tuner/session/asking.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "dataset/describe.h"
#include "trial-runner/job.h"
#include "tuner/session/runners.h"

static const double LOOK_AGAIN_US = 50e3;

enum status asking_open(const char *path, double patience_us, const atomic_int *cancel, struct store **out,
                        struct error *err) {
    const double end_us = clock_now_us() + patience_us;
    struct rng rng;
    rng_seed(&rng, (uint64_t)clock_now_us());
    struct store *reader;
    enum status st = store_open(path, STORE_READ_ONLY, &reader, err);
    if (st == ST_NOT_FOUND)
        return st;
    if (!st)
        store_close(reader);
    for (;;) {
        st = store_open(path, STORE_READ_WRITE, out, err);
        if (st != ST_CONFLICT || clock_now_us() > end_us)
            return st;
        if (cancel && *cancel)
            return error_set(err, ST_CANCELLED, "interrupted");
        clock_sleep_us(LOOK_AGAIN_US * (0.5 + rng_uniform(&rng)));
    }
}

enum status asking_find(struct store *store, const char *session, struct arena *arena, struct stored_session *out,
                        struct error *err) {
    const enum status st = store_session_get(store, session, arena, out, err);
    if (st != ST_NOT_FOUND)
        return st;
    return error_set(err, ST_NOT_FOUND,
                     "%s has no session %.80s; \"syncopate dataset sessions --dataset %s\" lists them",
                     store_path(store), session, store_path(store));
}

/* ---- leases that have run out ---- */

enum status asking_expire(struct store *store, const char *session, struct error *err) {
    struct arena arena = {0};
    struct lease *leases;
    size_t n = 0;
    char now[32];
    clock_utc(now, sizeof now);
    enum status st = leases_list(store, session, &arena, &n, &leases, err);
    for (size_t i = 0; i < n && !st; i++)
        if (strcmp(leases[i].until, now) < 0)
            st = lease_expire(store, leases[i].trial, leases[i].attempt, ASKING_MAX_ATTEMPTS, NULL, err);
    arena_release(&arena);
    return st;
}

/* ---- the session from its records ---- */

static const char *member(const cJSON *json, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

/* What the session was opened with, as session_prepare must know it. */
static enum status read_options(struct asking *a, const cJSON *json, const char **ranker, struct error *err) {
    const cJSON *job = cJSON_GetObjectItemCaseSensitive(json, "job");
    char *text = job ? cJSON_PrintUnformatted(job) : NULL;
    const char *runner = member(json, "runner"), *word = member(json, "ranker");
    a->options = tune_default_options();
    a->options.job = text ? arena_strdup(&a->arena, text) : NULL;
    a->options.runner = arena_strdup(&a->arena, runner ? runner : "ask");
    *ranker = arena_strdup(&a->arena, word ? word : "none");
    const bool whole = (a->options.job || !job) && a->options.runner && *ranker;
    cJSON_free(text);
    return whole ? ST_OK : error_no_memory(err);
}

static enum status prepare(struct asking *a, asking_limits *limits, void *context, struct error *err) {
    const struct domain here = {.model = a->model, .cluster = a->cluster};
    const char *ranker = "none";
    enum trial_place place;
    cJSON *json = cJSON_Parse(a->stored.options);
    enum status st = json ? read_options(a, json, &ranker, err)
                          : error_set(err, ST_INVALID, "session %s: damaged options", a->stored.id);
    cJSON_Delete(json);
    if (!st && limits && a->options.job)
        st = limits(context, a->options.job, &a->model, &a->cluster, &a->options.limits, err);
    if (!st)
        st = rankers_for_session(a->store, NULL, &here, ranker, &a->ranker, err);
    a->options.ranker = st ? NULL : a->ranker.ranker;
    if (!st && trial_runner_parse(a->options.runner, &place)) /* of other runners nothing is known */
        a->options.space.algorithms = runner_algorithms(&(struct runner){.cluster = &a->cluster});
    return st ? st : session_prepare(&a->model, &a->cluster, &a->options, &a->engine, err);
}

/* What has not ended is out: it waits to be taken again, or somebody has it. */
static enum status take_up(struct asking *a, struct error *err) {
    struct arena arena = {0};
    struct record *records;
    size_t n = 0;
    enum status st = store_trials(a->store, a->stored.id, &arena, &n, &records, err);
    for (size_t i = 0; i < n && !st; i++) {
        struct suggestion suggestion;
        const struct record *r = &records[i];
        if (r->state != RECORD_WAITING && r->state != RECORD_RUNNING)
            continue;
        st = session_take_up(a->engine, a->store, r, &suggestion, err);
        if (st || r->state != RECORD_WAITING || a->n_ready == ASKING_MOST)
            continue;
        a->ready[a->n_ready].suggestion = suggestion;
        a->ready[a->n_ready].number = r->number;
        a->ready[a->n_ready++].row = r->trial;
    }
    arena_release(&arena);
    return st;
}

static enum status read_stored(struct asking *a, const char *session, struct error *err) {
    enum status st = asking_find(a->store, session, &a->arena, &a->stored, err);
    if (!st && a->stored.mode != STORED_SESSION_ASK)
        st = error_set(err, ST_CONFLICT,
                       "session %s runs its trials itself; go on with: syncopate tune --resume %s --dataset %s",
                       session, session, store_path(a->store));
    if (!st)
        st = store_get_model(a->store, a->stored.model, &a->model, err);
    return st ? st : store_get_cluster(a->store, a->stored.cluster, &a->cluster, err);
}

enum status asking_load(struct asking *out, struct store *store, const char *session, asking_limits *limits,
                        void *context, struct error *err) {
    *out = (struct asking){.store = store};
    enum status st = read_stored(out, session, err);
    if (!st)
        st = prepare(out, limits, context, err);
    if (!st)
        st = session_resume(out->engine, store, session, err);
    if (!st)
        st = take_up(out, err);
    if (st)
        asking_release(out);
    return st;
}

void asking_release(struct asking *a) {
    session_close(a->engine);
    stored_ranker_release(&a->ranker);
    model_release(&a->model);
    cluster_release(&a->cluster);
    arena_release(&a->arena);
    *a = (struct asking){0};
}

/* ---- taking ---- */

/* The next trial and the row that it has or gets; step is SESSION_TRIAL when there is one. */
static enum status next(struct asking *a, struct suggestion *out, uint64_t *number, int64_t *row, struct error *err) {
    a->step = SESSION_TRIAL;
    if (a->n_ready) {
        *out = a->ready[0].suggestion;
        *number = a->ready[0].number;
        *row = a->ready[0].row;
        memmove(&a->ready[0], &a->ready[1], --a->n_ready * sizeof a->ready[0]);
        return ST_OK;
    }
    enum status st = session_suggest(a->engine, &a->step, out, err);
    if (st || a->step != SESSION_TRIAL)
        return st;
    const struct trial_start start = {.model = &a->model,
                                      .cluster = &a->cluster,
                                      .strategy = out->order.strategy,
                                      .session = a->stored.id,
                                      .number = *number,
                                      .waiting = true,
                                      .proposer = out->proposer,
                                      .runner = a->options.runner,
                                      .round = out->round,
                                      .seed = a->stored.seed,
                                      .predicted_us = out->predicted_us};
    return trial_record_start(a->store, &start, row, err);
}

static enum status last_number(struct asking *a, uint64_t *out, struct error *err) {
    struct arena arena = {0};
    struct record *last;
    size_t n = 0;
    const struct query query = {.session = a->stored.id, .order = QUERY_BY_number, .descending = true, .limit = 1};
    enum status st = query_collect(a->store, &query, &arena, &n, &last, err);
    if (!st)
        *out = n ? last[0].number : 0;
    arena_release(&arena);
    return st;
}

static enum status take_one(struct asking *a, const char *client, double lease_us, uint64_t *last, struct error *err) {
    struct suggestion *given = &a->given[a->n];
    struct asked *asked = &a->trials[a->n];
    uint64_t number = *last + 1;
    int64_t row;
    enum status st = next(a, given, &number, &row, err);
    if (st || a->step != SESSION_TRIAL)
        return st;
    *asked = (struct asked){.number = number,
                            .round = given->round,
                            .proposer = given->proposer,
                            .order = &given->order,
                            .predicted_us = given->predicted_us};
    given->order.number = number;
    *last = number > *last ? number : *last;
    clock_utc_after(lease_us, asked->until, sizeof asked->until);
    st = lease_take(a->store, row, client, lease_us, &asked->attempt, err);
    a->n += !st;
    return st;
}

/* It is over: that is written, with the reason. */
static enum status finish(struct asking *a, struct error *err) {
    struct error why = {.status = ST_OK};
    char text[ERROR_TEXT_ROOM];
    enum stored_session_state state = STORED_SESSION_DONE;
    const char *reason = tune_stop_words(session_stop(a->engine));
    if (session_found(a->engine, &why)) {
        state = STORED_SESSION_FAILED;
        reason = error_text(&why, text);
    }
    return store_session_update(a->store, a->stored.id, state, reason, err);
}

enum status asking_take(struct asking *a, const char *client, size_t count, double lease_us, struct error *err) {
    uint64_t last = 0;
    a->step = a->stored.state == STORED_SESSION_PAUSED ? SESSION_WAIT : SESSION_OVER;
    if (a->stored.state != STORED_SESSION_RUNNING)
        return error_set(err, ST_CONFLICT, "session %s is %s%s%s", a->stored.id,
                         stored_session_state_word(a->stored.state), a->stored.reason ? ": " : "",
                         a->stored.reason ? a->stored.reason : "");
    a->step = SESSION_TRIAL;
    enum status st = store_begin(a->store, err);
    if (st)
        return st;
    st = last_number(a, &last, err);
    while (!st && a->step == SESSION_TRIAL && a->n < count && a->n < ASKING_MOST)
        st = take_one(a, client, lease_us, &last, err);
    if (!st && a->step == SESSION_OVER && !a->n)
        st = finish(a, err);
    st = store_end(a->store, st, err);
    a->n = st ? 0 : a->n;
    return st;
}

/* ---- telling ---- */

enum status asking_samples(struct store *store, const char *session, double *out, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct model model = {0};
    struct cluster cluster = {0};
    enum status st = asking_find(store, session, &arena, &stored, err);
    if (!st)
        st = store_get_model(store, stored.model, &model, err);
    if (!st)
        st = store_get_cluster(store, stored.cluster, &cluster, err);
    if (!st)
        *out = job_samples(&model, &cluster);
    model_release(&model);
    cluster_release(&cluster);
    arena_release(&arena);
    return st;
}

static enum status read_trial(struct store *store, const struct asker *asker, struct arena *arena, struct record **out,
                              struct error *err) {
    struct record *records;
    struct stored_session session;
    size_t n = 0;
    const struct query query = {.session = asker->session, .number = asker->number};
    enum status st = asking_find(store, asker->session, arena, &session, err);
    if (!st)
        st = query_collect(store, &query, arena, &n, &records, err);
    if (!st && !n)
        st = error_at(err, ST_NOT_FOUND, store_path(store), "session %s has no trial %lu: %lu were suggested so far",
                      asker->session, (unsigned long)asker->number, (unsigned long)session.trials);
    if (!st)
        *out = records;
    return st;
}

/* Why the trial is not the asker's. */
static enum status refuse(const struct record *r, const struct asker *asker, struct error *err) {
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
    if (strcmp(r->client, asker->client) != 0)
        return error_set(err, ST_CONFLICT,
                         "trial %lu is with client \"%s\", attempt %lu, until %s, and not with \"%s\"", number,
                         r->client, attempt, r->lease_until, asker->client);
    return error_set(err, ST_CONFLICT, "trial %lu is in attempt %lu, until %s, and not in attempt %lu", number, attempt,
                     r->lease_until, (unsigned long)asker->attempt);
}

/* The row of a trial that the asker has, after leases that have run out are ended. */
static enum status held_row(struct store *store, const struct asker *asker, int64_t *out, struct error *err) {
    struct arena arena = {0};
    struct record *record = NULL;
    enum status st = asking_expire(store, asker->session, err);
    if (!st)
        st = read_trial(store, asker, &arena, &record, err);
    if (!st)
        st = lease_check(store, record->trial, asker->client, asker->attempt, err);
    if (st == ST_CONFLICT && record)
        st = refuse(record, asker, err);
    if (!st)
        *out = record->trial;
    arena_release(&arena);
    return st;
}

enum status asking_renew(struct store *store, const struct asker *asker, double lease_us, char *until,
                         struct error *err) {
    int64_t row;
    enum status st = held_row(store, asker, &row, err);
    clock_utc_after(lease_us, until, 32);
    return st ? st : lease_renew(store, row, asker->client, asker->attempt, lease_us, err);
}

enum status asking_end(struct store *store, const struct asker *asker, const struct tune_outcome *outcome,
                       struct error *err) {
    int64_t row;
    enum status st = held_row(store, asker, &row, err);
    if (!st && outcome->state == RECORD_COMPLETE && outcome->n < JOB_LEAST)
        st = error_set(err, ST_INVALID,
                       "a trial is of %d iterations and more, and this one has %zu: a median of fewer tells little",
                       JOB_LEAST, outcome->n);
    return st ? st : trial_record_end(store, row, outcome, err);
}
