/* What runs now. Who works on a session is known by its leases: a client that holds one works on a trial. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "dataset/leases.h"
#include "dataset/pages.h"
#include "report/html.h"
#include "service/http/pages/home.h"
#include "service/http/pages/page.h"

enum { SHOWN = 20, NAMED = 3, POLL_S = 5, IDLE_POLL_S = 30 };

/* A session that is open. */
struct run {
    const struct stored_session *session;
    size_t n_agents, n_leases;
    const char *agents[NAMED];
};

struct runs {
    size_t n, paused, agents;
    bool more; /* than are shown */
    struct run runs[2 * SHOWN];
};

void home_progress(struct markup *m, const struct findings *f, const struct stored_session *s) {
    if (!f || !f->outcome.budget_trials) {
        markup_textf(m, "%llu", f ? (unsigned long long)f->outcome.ended : (unsigned long long)s->complete);
        return;
    }
    markup_begin(m, "progress");
    markup_attributef(m, "max", "%llu", (unsigned long long)f->outcome.budget_trials);
    markup_attributef(m, "value", "%zu", f->outcome.ended);
    markup_attribute(m, "aria-label", "trials ended");
    markup_end(m);
    markup_textf(m, "%zu of %llu", f->outcome.ended, (unsigned long long)f->outcome.budget_trials);
}

/* ---- reading ---- */

static bool is_new(const struct lease *leases, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (!strcmp(leases[k].client, leases[i].client))
            return false;
    return true;
}

static enum status read_agents(struct request *rq, struct store *store, struct run *run, struct error *err) {
    struct lease *leases;
    enum status st = leases_list(store, run->session->id, &rq->arena, &run->n_leases, &leases, err);
    for (size_t i = 0; !st && i < run->n_leases; i++) {
        if (!is_new(leases, i))
            continue;
        if (run->n_agents < NAMED)
            run->agents[run->n_agents] = leases[i].client;
        run->n_agents++;
    }
    return st;
}

static enum status read_runs(struct request *rq, struct store *store, struct runs *out, struct error *err) {
    static const enum stored_session_state states[] = {STORED_SESSION_RUNNING, STORED_SESSION_PAUSED};
    *out = (struct runs){.n = 0};
    for (size_t k = 0; k < 2; k++) {
        const struct session_list list = {.viewer = request_viewer(rq), .state = &states[k]};
        struct stored_session *sessions;
        char next[PAGE_CURSOR_ROOM];
        size_t n;
        enum status st = page_sessions(store, &list, NULL, SHOWN, &rq->arena, &n, &sessions, next, err);
        for (size_t i = 0; !st && i < n; i++) {
            struct run *run = &out->runs[out->n++];
            run->session = &sessions[i];
            st = read_agents(rq, store, run, err);
            out->agents += run->n_agents;
            out->paused += k;
        }
        if (st)
            return st;
        out->more |= *next != '\0';
    }
    return ST_OK;
}

/* ---- writing ---- */

static void agents_words(struct markup *m, const struct run *run, size_t under_way) {
    const struct stored_session *s = run->session;
    const size_t waiting = under_way > run->n_leases ? under_way - run->n_leases : 0;
    if (s->mode == STORED_SESSION_OWN) {
        markup_text(m, "The service runs its trials.");
        return;
    }
    if (!run->n_agents) {
        markup_text(m, s->state == STORED_SESSION_PAUSED ? "Nobody works on it."
                                                         : "It waits for an agent: nobody works on it.");
    } else {
        markup_textf(m, "%zu %s: ", run->n_agents, run->n_agents == 1 ? "agent works" : "agents work");
        for (size_t i = 0; i < run->n_agents && i < NAMED; i++)
            markup_textf(m, "%s%.64s", i ? ", " : "", run->agents[i]);
        markup_text(m, run->n_agents > NAMED ? " and others." : ".");
    }
    if (waiting)
        markup_textf(m, " %zu %s for an agent.", waiting, waiting == 1 ? "trial waits" : "trials wait");
}

static void best_words(struct markup *m, const struct outcome *o) {
    char time[32];
    if (o->best == SIZE_MAX) {
        markup_text(m, "No trial has completed yet. ");
        return;
    }
    markup_textf(m, "Best so far %s an iteration", units_format_known_time(o->rows[o->best].us, "", time, sizeof time));
    if (o->baseline != SIZE_MAX && o->baseline != o->best && isfinite(o->speedup))
        markup_textf(m,
                     o->overlap ? ", within noise of the best baseline" : ", %.2f times as fast as the best baseline",
                     o->speedup);
    markup_text(m, ". ");
}

static enum status write_run(struct request *rq, struct store *store, struct markup *m, const struct run *run,
                             struct error *err) {
    const struct stored_session *s = run->session;
    struct findings f;
    enum status st = findings_gather(store, s->id, FINDINGS_FIGURES, &f, err);
    if (st == ST_NO_MEMORY)
        return st;
    const char *what = arena_printf(&rq->arena, "%s on %s", page_name(rq, store, STORE_MODEL, s->model),
                                    page_name(rq, store, STORE_CLUSTER, s->cluster));
    markup_begin(m, "li");
    html_begin(m, "div", "what");
    page_link(m, what ? what : "", "/sessions/%s", page_escape(rq, s->id));
    html_leaff(m, "span", arena_printf(&rq->arena, "state %s", stored_session_state_word(s->state)), "%s",
               stored_session_state_word(s->state));
    markup_end(m);
    html_begin(m, "div", "far");
    home_progress(m, st ? NULL : &f, s);
    markup_text(m, " trials");
    markup_end(m);
    html_begin(m, "div", "soft");
    if (!st)
        best_words(m, &f.outcome);
    agents_words(m, run, st ? 0 : f.outcome.under_way);
    markup_end(m);
    markup_end(m);
    if (!st)
        findings_release(&f);
    return ST_OK;
}

static const char *count_words(struct request *rq, const struct runs *r) {
    const size_t run = r->n - r->paused;
    if (!r->n)
        return "No session runs now.";
    const char *paused = r->paused ? arena_printf(&rq->arena, ", %zu paused", r->paused) : "";
    const char *text = arena_printf(&rq->arena, "%s%zu %s%s; %zu %s.", r->more ? "At least " : "", run,
                                    run == 1 ? "session runs" : "sessions run", paused ? paused : "", r->agents,
                                    r->agents == 1 ? "agent works" : "agents work");
    return text ? text : "";
}

enum status home_running(struct request *rq, struct store *store, struct markup *m, struct error *err) {
    struct runs runs;
    enum status st = read_runs(rq, store, &runs, err);
    if (st)
        return st;
    const char *words = count_words(rq, &runs);
    markup_begin(m, "div");
    markup_attribute(m, "id", "running");
    markup_attribute(m, "data-live", "");
    markup_attribute(m, "data-say", words);
    markup_attributef(m, "data-every", "%d", runs.n > runs.paused ? POLL_S : IDLE_POLL_S);
    markup_attribute(m, "data-from", "/live");
    html_section(m, "now", "What runs now");
    markup_leaf(m, "p", words);
    if (runs.n)
        html_begin(m, "ul", "runs");
    for (size_t i = 0; !st && i < runs.n; i++)
        st = write_run(rq, store, m, &runs.runs[i], err);
    if (runs.n)
        markup_end(m);
    markup_end(m);
    markup_end(m);
    return st;
}
