/* syncopate agent: runs a service's trials on a cluster that the service does not reach itself. It takes, runs and
 * reports one trial at a time. While there is none it waits, longer each time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/agent_bench.h"
#include "cli/client/retry.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/remote_records.h"
#include "cli/remote_session.h"
#include "cli/runner_options.h"
#include "trial-runner/bench.h"

static const double DEFAULT_BENCH_US = 40e6, MOST_BENCH_US = 1800e6, BENCH_START_US = 120e6;
static const double DEFAULT_LEASE_US = 60e6, LEAST_LEASE_US = 3e6, MOST_LEASE_US = 86400e6;
enum { CLIENT_NAME_MAX = 64 };

struct agent_options {
    struct remote_options remote;
    struct runner_options launch;
    struct job_options job;
    const char *session, *cluster, *name;
    double lease_us;
    double patience_us, idle_us; /* 0: for ever */
    double bench_us;             /* how long to measure a cluster that nobody measured; 0: it is not */
    bool once;
};

struct agent {
    const struct agent_options *words;
    struct client *client; /* to find work; ends what it does when we are to end */
    struct client *steady; /* to deliver */
    const atomic_int *interrupted;
    char name[CLIENT_NAME_MAX + 1];
    struct rng rng;
    char cluster[ID_LENGTH + 1]; /* whose sessions are served; empty: those of one session */
    struct cluster described;    /* it */
    char alike[ID_LENGTH + 1];   /* the last other description that is of the same cluster */
    struct agent_measured measured;
    /* What the runner is ready for. */
    bool ready;
    struct inputs inputs;
    struct job_setup setup;
    struct runner runner;
    char key[160]; /* of a suggestion that was asked for and not answered; or empty */
    uint64_t asked, ran, turn;
};

enum turn { TURN_NOTHING, TURN_RAN, TURN_MEASURED, TURN_OVER };

/* ---- readiness ---- */

static void let_go(struct agent *a) {
    if (a->ready) {
        runner_release(&a->runner);
        job_setup_release(&a->setup);
        inputs_release(&a->inputs);
    }
    a->ready = false;
}

/* Descriptions and runner for this session; kept from one trial to the next. */
static enum status get_ready(struct agent *a, const struct remote_session *s, struct error *err) {
    if (a->ready && !strcmp(a->inputs.model.id.hex, s->model) && !strcmp(a->inputs.cluster.id.hex, s->cluster))
        return ST_OK;
    let_go(a);
    enum status st = remote_inputs_of_ids(a->client, s->model, s->cluster, &a->inputs, err);
    if (st)
        return st;
    st = job_runner_init(&a->setup, &a->words->job, &a->words->launch, &a->inputs, NULL, &a->runner, err);
    if (st)
        inputs_release(&a->inputs);
    else if (!a->runner.job)
        runner_tell(&a->runner.place);
    a->ready = !st;
    if (!st && a->inputs.cluster.variability.given)
        st = runner_check_weather(&a->runner, err);
    if (st)
        let_go(a);
    return st;
}

/* ---- one trial of one session ---- */

/* When an answer was lost, ask for it again under the same key; otherwise its trial would wait until the lease runs
 * out. */
static enum status suggest(struct agent *a, const char *session, cJSON **out, struct error *err) {
    char path[128], key[96], algorithms[ALGORITHMS_ROOM] = "";
    cJSON *body = cJSON_CreateObject();
    double bench_s = 0;
    if (!a->runner.job) { /* of a job nothing is known */
        algorithms_write(runner_algorithms(&a->runner), algorithms);
        if (a->words->bench_us > 0 && bench_transport(&a->runner.place) == cluster_transport(&a->inputs.cluster))
            bench_s = (a->words->bench_us + BENCH_START_US) / 1e6;
    }
    const bool whole = body && cJSON_AddStringToObject(body, "client", a->name) &&
                       cJSON_AddNumberToObject(body, "lease_s", a->words->lease_us / 1e6) &&
                       remote_add_words(body, "algorithms", *algorithms ? algorithms : NULL) &&
                       (!(bench_s > 0) || cJSON_AddNumberToObject(body, "bench_s", bench_s));
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials:suggest", session);
    snprintf(key, sizeof key, "%.64s/", session);
    if (strncmp(a->key, key, strlen(key)) != 0)
        snprintf(a->key, sizeof a->key, "%s%lu/%08lx", key, (unsigned long)++a->asked,
                 (unsigned long)(rng_next(&a->rng) >> 32));
    const struct client_request request = {.method = "POST", .path = path, .body = body, .key = a->key};
    enum status st = whole ? client_call(a->client, &request, out, err) : error_no_memory(err);
    if (st != ST_UNREACHABLE && st != ST_CANCELLED)
        a->key[0] = 0;
    cJSON_Delete(body);
    return st;
}

/* Look again at a session that suggests nothing: it has ended, it is paused, or it tries what this runner cannot. */
static enum status look_again(struct agent *a, struct remote_session *s, enum turn *out, struct error *err) {
    const struct error why = *err;
    enum status st = remote_session_find(a->client, s->id, s, err);
    if (!st && !strcmp(s->state, "running"))
        log_warn("%s", ERROR_TEXT(&why));
    const bool on = !strcmp(s->state, "running") || !strcmp(s->state, "paused");
    *out = on ? TURN_NOTHING : TURN_OVER;
    return st;
}

static enum status serve_session(struct agent *a, struct remote_session *s, enum turn *out, struct error *err) {
    cJSON *answer = NULL;
    *out = TURN_NOTHING;
    enum status st = get_ready(a, s, err);
    if (st)
        return st;
    st = suggest(a, s->id, &answer, err);
    if (st == ST_CONFLICT)
        return look_again(a, s, out, err);
    if (st)
        return st;
    const struct agent_place place = {&a->words->remote,  a->steady,      a->name,    s->id,
                                      a->words->lease_us, a->interrupted, &a->inputs, &a->runner};
    const cJSON *trial = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "trials"), 0);
    const cJSON *bench = cJSON_GetObjectItemCaseSensitive(answer, "bench");
    if (bench) {
        st = agent_bench_run(&place, remote_count(bench, "attempt"), a->words->bench_us, &a->measured, err);
        *out = TURN_MEASURED;
    } else if (trial) {
        st = agent_trial_run(&place, trial, err);
        *out = TURN_RAN;
    } else if (!strcmp(remote_text(answer, "next"), "over")) {
        *out = TURN_OVER;
    }
    cJSON_Delete(answer);
    return st;
}

/* ---- the sessions of a cluster ---- */

enum { MOST_SESSIONS = 256 };

struct sessions {
    const struct agent *agent;
    size_t n;
    char ids[MOST_SESSIONS][64];
};

static enum status keep_session(void *context, const cJSON *item, bool *done, struct error *err) {
    struct sessions *s = context;
    (void)err;
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(item, "cluster");
    const bool may_be_ours = !strcmp(remote_text(cluster, "id"), s->agent->cluster) ||
                             !strcmp(remote_text(cluster, "name"), s->agent->described.name);
    if (!strcmp(remote_text(item, "mode"), "ask") && may_be_ours)
        snprintf(s->ids[s->n++], sizeof s->ids[0], "%s", remote_text(item, "id"));
    *done = s->n == MOST_SESSIONS;
    return ST_OK;
}

/* Whether the session belongs to another team. The next one may be ours. */
static bool is_forbidden(const struct agent *a, enum status st) {
    return st == ST_UNREACHABLE && client_last_status(a->client) == 403;
}

/* Whether the session is on this agent's cluster: by its description, or by one with other figures of a bench. */
static enum status is_here(struct agent *a, const struct remote_session *s, bool *here, struct error *err) {
    cJSON *json = NULL;
    struct cluster other;
    *here = !strcmp(s->cluster, a->cluster) || !strcmp(s->cluster, a->alike);
    if (*here)
        return ST_OK;
    enum status st = remote_get(a->client, &json, err, "/api/v1/clusters/%s", s->cluster);
    if (!st)
        st = cluster_read(json, "answer", &other, err);
    cJSON_Delete(json);
    if (st)
        return st;
    st = cluster_is_same_but_measured(&other, &a->described, here, err);
    cluster_release(&other);
    if (!st && *here)
        snprintf(a->alike, sizeof a->alike, "%s", s->cluster);
    return st;
}

/* Each in turn, so that none waits for another's end. */
static enum status serve_cluster(struct agent *a, enum turn *out, struct error *err) {
    struct sessions *open = calloc(1, sizeof *open);
    if (!open)
        return error_no_memory(err);
    open->agent = a;
    *out = TURN_NOTHING;
    enum status st = remote_each(a->client, "/api/v1/sessions?state=running", keep_session, open, err);
    for (size_t i = 0; i < open->n && !st && *out != TURN_RAN && *out != TURN_MEASURED && !*a->interrupted; i++) {
        struct remote_session s;
        bool here = false;
        st = remote_session_find(a->client, open->ids[a->turn++ % open->n], &s, err);
        if (!st)
            st = is_here(a, &s, &here, err);
        if (here)
            st = serve_session(a, &s, out, err);
        if (is_forbidden(a, st) && i + 1 < open->n)
            st = ST_OK;
    }
    free(open);
    return st;
}

/* ---- the agent ---- */

static enum status take_turn(struct agent *a, enum turn *out, struct error *err) {
    struct remote_session s;
    if (*a->cluster)
        return serve_cluster(a, out, err);
    enum status st = remote_session_find(a->client, a->words->session, &s, err);
    return st ? st : serve_session(a, &s, out, err);
}

/* Whether the service is there but grants this token nothing for now: its quota of a day is used up, or it asks too
 * often. */
static bool is_refused_for_now(const struct agent *a, enum status st) {
    return st == ST_UNREACHABLE && client_last_status(a->client) == 429;
}

/* A service that was there before and does not say no will come back. */
static bool is_away(const struct agent *a, enum status st) {
    const long status = client_last_status(a->client);
    return st == ST_UNREACHABLE && status != 401 && status != 403 && status != 429;
}

/* How long the agent has only waited, and for what. */
struct waiting {
    double away_us, idle_us; /* since when, on the monotonic clock; 0: not */
    unsigned turns;          /* in a row */
    bool refused;            /* for now, which was told */
};

static bool is_over(double since_us, double most_us) {
    return since_us > 0 && most_us > 0 && clock_now_us() - since_us >= most_us;
}

/* Wait for a service that is away, as *err says; this is logged once. Fails: with *err when the patience is used up;
 * ST_CANCELLED. */
static enum status wait_for_service(struct agent *a, struct waiting *w, struct error *err) {
    if (w->away_us <= 0) {
        log_warn("%s; trying again", ERROR_TEXT(err));
        w->away_us = clock_now_us();
    }
    w->idle_us = 0;
    if (is_over(w->away_us, a->words->patience_us))
        return err->status;
    return client_pause(a->client, retry_backoff(&a->rng, ++w->turns), err);
}

static enum status wait_for_work(struct agent *a, struct waiting *w, struct error *err) {
    w->idle_us = w->idle_us > 0 ? w->idle_us : clock_now_us();
    return client_pause(a->client, retry_backoff(&a->rng, ++w->turns), err);
}

static enum status wait_for_leave(struct agent *a, struct waiting *w, struct error *err) {
    if (!w->refused)
        log_warn("%s; waiting", ERROR_TEXT(err));
    w->refused = true;
    w->away_us = 0;
    return wait_for_work(a, w, err);
}

/* Until it is asked to end, its session is over, there is nothing to do for too long, or something goes wrong that does
 * not pass. */
static enum status work(struct agent *a, struct error *err) {
    enum status st = ST_OK;
    struct waiting waiting = {0};
    while (!st && !*a->interrupted && !is_over(waiting.idle_us, a->words->idle_us)) {
        enum turn turn = TURN_NOTHING;
        st = take_turn(a, &turn, err);
        if (is_away(a, st)) {
            st = wait_for_service(a, &waiting, err);
            continue;
        }
        if (is_refused_for_now(a, st)) {
            st = wait_for_leave(a, &waiting, err);
            continue;
        }
        waiting.away_us = 0;
        waiting.refused = false;
        a->ran += turn == TURN_RAN && !st;
        if (st || (turn == TURN_RAN ? a->words->once : turn == TURN_OVER && !*a->cluster))
            break;
        if (turn == TURN_RAN || turn == TURN_MEASURED)
            waiting = (struct waiting){0};
        else
            st = wait_for_work(a, &waiting, err);
    }
    return st;
}

/* Look up the session or cluster. The service must know it, and a session must be for agents. */
static enum status find_work_once(struct agent *a, struct error *err) {
    cJSON *json = NULL;
    struct remote_session s;
    const struct agent_options *w = a->words;
    enum status st = ST_OK;
    if (w->session) {
        st = remote_session_find(a->client, w->session, &s, err);
        if (!st && s.own)
            st = error_set(err, ST_CONFLICT, "session %s is not for agents: the service runs its trials", s.id);
        return st ? st : get_ready(a, &s, err);
    }
    char *escaped = client_escape(a->client, w->cluster);
    st = escaped ? remote_get(a->client, &json, err, "/api/v1/clusters/%s", escaped) : error_no_memory(err);
    free(escaped);
    if (!st)
        st = cluster_read(json, "answer", &a->described, err);
    cJSON_Delete(json);
    if (!st)
        snprintf(a->cluster, sizeof a->cluster, "%s", a->described.id.hex);
    return st;
}

/* The service will know the cluster once somebody adds it. Fails: with *err when the agent was idle for too long. */
static enum status wait_for_cluster(struct agent *a, struct waiting *w, struct error *err) {
    if (w->idle_us <= 0)
        log_warn("%s; waiting until it is added (syncopate clusters add)", ERROR_TEXT(err));
    w->away_us = 0;
    return is_over(w->idle_us, a->words->idle_us) ? err->status : wait_for_work(a, w, err);
}

/* Look up the session or cluster. The agent waits for a service that is not up, and for a cluster that the service does
 * not know. A wrong certificate is an error, and so is a server that is no syncopate service. */
static enum status find_work(struct agent *a, struct error *err) {
    struct waiting waiting = {0};
    for (;;) {
        enum status st = find_work_once(a, err);
        if (st == ST_NOT_FOUND && a->words->cluster)
            st = wait_for_cluster(a, &waiting, err);
        else if (st == ST_UNREACHABLE && client_may_come_back(a->client))
            st = wait_for_service(a, &waiting, err);
        else
            return st;
        if (st)
            return st;
    }
}

static void make_name(struct agent *a) {
    char host[CLIENT_NAME_MAX + 1] = "agent";
    gethostname(host, sizeof host - 1);
    if (a->words->name)
        snprintf(a->name, sizeof a->name, "%s", a->words->name);
    else
        snprintf(a->name, sizeof a->name, "%.40s-%ld-%06lx", host, (long)getpid(),
                 (unsigned long)(rng_next(&a->rng) & 0xffffff));
}

static enum status run_agent(const struct agent_options *words, struct error *err) {
    struct agent a = {.words = words, .interrupted = interrupt_flag()};
    rng_seed(&a.rng, (uint64_t)getpid() * 1000003u + (uint64_t)clock_now_us());
    make_name(&a);
    enum status st = remote_open(&words->remote, REMOTE_TRIES, a.interrupted, &a.client, err);
    if (!st)
        st = remote_open(&words->remote, 0, NULL, &a.steady, err);
    if (!st)
        st = find_work(&a, err);
    if (!st) {
        log_info("agent %s takes trials of %s %s", a.name, words->session ? "session" : "cluster",
                 words->session ? words->session : words->cluster);
        st = work(&a, err);
    }
    if (st == ST_CANCELLED && *a.interrupted)
        st = ST_OK;
    if (!st)
        log_info("agent %s ran %lu trials", a.name, (unsigned long)a.ran);
    let_go(&a);
    if (*a.cluster)
        cluster_release(&a.described);
    cJSON_Delete(a.measured.json);
    client_close(a.client);
    client_close(a.steady);
    return st;
}

static enum status check_options(const struct agent_options *w, struct error *err) {
    if (!w->session == !w->cluster)
        return error_set(err, ST_USAGE, "give either --session ID or --cluster NAME");
    if (!w->launch.runner == !w->job.command)
        return error_set(
            err, ST_USAGE,
            "either --runner says how trials are run here (lab, local, mpirun or slurm), or --command does");
    if (w->lease_us < LEAST_LEASE_US || w->lease_us > MOST_LEASE_US)
        return error_set(err, ST_USAGE, "--lease must be 3s to 24h");
    if (w->bench_us < 0 || w->bench_us > MOST_BENCH_US)
        return error_set(err, ST_USAGE, "--bench must be at most 30min");
    if (w->patience_us < 0 || w->idle_us < 0)
        return error_set(err, ST_USAGE, "--patience and --idle must not be negative");
    if (w->name && (!*w->name || strlen(w->name) > CLIENT_NAME_MAX || !strcmp(w->name, "service")))
        return error_set(err, ST_USAGE, "--name must have 1 to %d bytes, and not be \"service\"", CLIENT_NAME_MAX);
    return job_options_check(&w->job, err);
}

enum status cmd_agent(int argc, char **argv, struct error *err) {
    struct agent_options w = {.lease_us = DEFAULT_LEASE_US, .bench_us = DEFAULT_BENCH_US};
    const struct option options[] = {
        REMOTE_OPTIONS(w.remote),
        {"session", OPTION_TEXT, &w.session, "ID", "run trials of this session, until it is over"},
        {"cluster", OPTION_TEXT, &w.cluster, "CLUSTER",
         "or of every session on this cluster: its name or id at the service"},
        {"runner", OPTION_TEXT, &w.launch.runner, RUNNER_NAMES, "where they run"},
        RUNNER_OPTIONS(w.launch),
        JOB_OPTIONS(w.job),
        {"logs", OPTION_TEXT, &w.job.logs, "DIR", "keep what trials write, and what they were given, in folders there"},
        {"once", OPTION_FLAG, &w.once, NULL, "run one trial and end"},
        {"lease", OPTION_TIME, &w.lease_us, "T",
         "how long this agent may be silent before its trial goes to another (default 60s)"},
        {"bench", OPTION_TIME, &w.bench_us, "T",
         "before the first trial on a cluster that nobody measured, measure it for about T (default 40s; 0s: never)"},
        {"patience", OPTION_TIME, &w.patience_us, "T",
         "end, with status 4, when the service is away for T (default: never)"},
        {"idle", OPTION_TIME, &w.idle_us, "T", "end when there was nothing to run for T (default: never)"},
        {"name", OPTION_TEXT, &w.name, "NAME", "what the service calls this agent (default: host, process, chance)"},
        {0}};
    const struct command_line line = {
        .usage =
            "agent --server URL (--session ID | --cluster CLUSTER) (--runner RUNNER | --command COMMAND) [options]",
        .about =
            "Run a service's trials on the cluster that this machine belongs to: take one, run it, report it, and so\n"
            "on. It waits where nothing is on offer, for a service that is not up and for a cluster that is yet to be\n"
            "added, outlasts the service's restarts, and ends in order on SIGTERM: the trial that runs is given back.",
        .examples = "  syncopate agent --server https://tuner.example:8642 --token-file ~/.syncopate-token \\\n"
                    "      --cluster v100-16x10g --runner mpirun --hosts hosts",
        .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_required(&w.remote, "agent", err);
    if (!st)
        st = check_options(&w, err);
    return st ? st : run_agent(&w, err);
}
