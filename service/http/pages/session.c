/* One session: what to use, trial by trial, where the time goes, what the trials teach, and every trial. Its sections
 * are those of the report (report/report.h). While the session runs, the parts that come from records alone are fetched
 * again after each event (page_session_live), which takes milliseconds. The parts that need a simulation stay until the
 * page is loaded again. Where a simulation takes long (up to a minute with thousands of devices), it runs only on
 * request (page_session_whole), so that looking at sessions does not keep the workers busy. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "interop/export/export.h"
#include "report/html.h"
#include "report/report.h"
#include "service/http/api/api.h"
#include "service/http/api/sessions.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"

enum { TRIALS_SHOWN = 100, QUICK_WORK = 4096 /* variables times nodes: a second or two at most */ };

enum page_depth { DEPTH_LIVE, DEPTH_QUICK, DEPTH_WHOLE };

/* ---- the head ---- */

static bool goes_on(const struct stored_session *s) {
    return stored_session_is_open(s->state);
}

/* Whether the reader gets the buttons: an administrator, or role run in the session's team. request_session decides
 * again when a button is pressed. */
static bool may_steer(const struct request *rq, const struct stored_session *s) {
    return rq->principal.role == ROLE_ADMIN ||
           (rq->principal.role >= ROLE_RUN && s->team && !strcmp(s->team, rq->principal.team));
}

static void steering(struct request *rq, struct markup *m, const struct stored_session *s) {
    if (!goes_on(s) || !may_steer(rq, s))
        return;
    const char *path = arena_printf(&rq->arena, "/sessions/%s/steer", page_escape(rq, s->id));
    page_form_begin(m, "post", path ? path : "", "acts");
    if (s->state == STORED_SESSION_PAUSED)
        page_button(m, "Resume", "verb", "resume");
    else
        page_button(m, "Pause", "verb", "pause");
    page_button(m, "Stop, and take the best so far", "verb", "stop");
    page_button(m, "Cancel", "verb", "cancel");
    markup_end(m);
}

static void state_line(struct request *rq, struct markup *m, const struct findings *f) {
    const struct stored_session *s = &f->outcome.session;
    char stamp[32];
    html_begin(m, "div", NULL);
    markup_attribute(m, "id", "state");
    markup_attribute(m, "data-live", "");
    if (!goes_on(s))
        markup_attribute(m, "data-ended", "");
    html_begin(m, "p", "soft");
    html_leaff(m, "span", arena_printf(&rq->arena, "state %s", stored_session_state_word(s->state)), "%s",
               stored_session_state_word(s->state));
    markup_textf(m, " %s%ssession %s, begun %s UTC", s->reason ? s->reason : "", s->reason ? "; " : "", s->id,
                 page_stamp(s->started, stamp));
    if (s->team)
        markup_textf(m, ", team %s", s->team);
    markup_end(m);
    steering(rq, m, s);
    markup_end(m);
}

static void head(struct request *rq, struct markup *m, const struct findings *f) {
    markup_begin(m, "header");
    markup_begin(m, "h1");
    markup_textf(m, "%s on %s", f->model.name, f->cluster.name);
    if (goes_on(&f->outcome.session)) {
        html_begin(m, "span", "live");
        markup_attribute(m, "id", "live-dot");
        markup_attribute(m, "role", "status");
        markup_attribute(m, "hidden", "");
        markup_end(m);
    }
    markup_end(m);
    state_line(rq, m, f);
    markup_end(m);
}

/* ---- what to do while nothing was tried ---- */

static void teach(struct request *rq, struct markup *m, const struct findings *f) {
    const char *origin = page_origin(rq), *id = f->outcome.session.id;
    if (f->outcome.n_trials || !goes_on(&f->outcome.session))
        return;
    html_begin(m, "div", "panel");
    if (f->outcome.session.mode == STORED_SESSION_OWN) {
        markup_leaf(m, "p", "The service runs the trials of this session itself; the first is about to begin.");
    } else {
        markup_leaf(m, "p", "Its trials wait for somebody who runs them. On the cluster, let an agent take them:");
        html_command(m, "syncopate agent --server %s --session %s --runner %s", origin, id,
                     f->outcome.weather.seed ? "lab" : "mpirun --hosts HOSTFILE");
        markup_leaf(m, "p", "or let a job of yours ask for one, run it, and tell what it measured:");
        html_command(m,
                     "%s -H 'Content-Type: application/json' --data '{\"client\":\"me\"}' "
                     "%s/api/v1/sessions/%s/trials:suggest",
                     page_curl(rq), origin, id);
    }
    markup_end(m);
}

/* ---- trials ---- */

static void strategy_link(struct markup *m, const struct findings *f, const struct record *r) {
    char words[96];
    snprintf(words, sizeof words, "%.80s", r->strategy_name && *r->strategy_name ? r->strategy_name : r->strategy);
    page_link(m, words, "/strategies/%.16s?model=%.16s&cluster=%.16s", r->strategy, f->outcome.session.model,
              f->outcome.session.cluster);
}

/* Link to the comparison of this trial with the best one, or of the best one with the best baseline. */
static void compare_link(struct markup *m, const struct findings *f, const struct record *r) {
    const size_t best = f->outcome.best;
    if (best == SIZE_MAX || r->state != RECORD_COMPLETE)
        return;
    const bool is_best = !strcmp(r->strategy, f->outcome.rows[best].strategy);
    if (is_best && (f->outcome.baseline == SIZE_MAX || f->outcome.baseline == best))
        return;
    page_link(m, is_best ? "against the baseline" : "against the best",
              "/compare?a=%.16s&b=%.16s&model=%.16s&cluster=%.16s",
              is_best ? f->outcome.rows[f->outcome.baseline].strategy : r->strategy, f->outcome.rows[best].strategy,
              f->outcome.session.model, f->outcome.session.cluster);
}

static void trial_row(struct html_table *t, const struct findings *f, const struct record *r) {
    char text[32], low[32], high[32];
    const bool complete = r->state == RECORD_COMPLETE, by_mean = f->outcome.weather.seed > 0;
    const bool has_interval = complete && !by_mean; /* one trial is one sample of weather */
    t->row_class = f->outcome.best != SIZE_MAX && !strcmp(r->strategy, f->outcome.rows[f->outcome.best].strategy)
                       ? "best"
                   : complete ? NULL
                              : "bad";
    html_cellf(t, "%llu", (unsigned long long)r->number);
    html_cell_begin(t);
    strategy_link(t->m, f, r);
    html_cell_end(t);
    html_cell(t, r->proposer ? r->proposer : "");
    html_cell(t, units_format_known_time(r->predicted_us, "", text, sizeof text));
    html_cell(t, complete ? units_format_known_time(by_mean ? r->mean_us : r->median_us, "", text, sizeof text) : "");
    html_cellf(t, "%s%s%s", has_interval ? units_format_known_time(r->low_us, "", low, sizeof low) : "",
               has_interval ? " to " : "",
               has_interval ? units_format_known_time(r->high_us, "", high, sizeof high) : "");
    html_cellf(t, "%s%s%.200s", complete ? (r->round ? "final" : "") : record_state_word(r->state),
               r->reason ? ": " : "", r->reason ? r->reason : "");
    html_cell_begin(t);
    compare_link(t->m, f, r);
    html_cell_end(t);
}

/* Link to the best strategy as a file for our commands, and in the form of each framework. A form that cannot be given
 * out leads to a page that says why. */
static void downloads(struct request *rq, struct markup *m, const struct findings *f) {
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    const char *id = page_escape(rq, f->outcome.session.id);
    html_begin(m, "p", "more");
    page_link(m, "Best strategy as a file", "/sessions/%s/export", id);
    markup_text(m, "or for ");
    for (size_t i = 0; i < n; i++)
        page_link(m, forms[i].name, "/sessions/%s/export?format=%s", id, forms[i].name);
    markup_end(m);
}

static void trials(struct request *rq, struct markup *m, const struct findings *f) {
    static const char *const heads[] = {">Trial",        "Strategy", "Proposed by", ">Predicted", ">Measured",
                                        ">95% interval", "State",    "Compare",     NULL};
    struct html_table t;
    const size_t first = f->outcome.n_trials > TRIALS_SHOWN ? f->outcome.n_trials - TRIALS_SHOWN : 0;
    html_section(m, "all-trials", first ? "The latest trials" : "All trials");
    html_begin(m, "div", "rows");
    html_table_begin(&t, m,
                     f->outcome.weather.seed ? "Newest first; times are means of an iteration"
                                             : "Newest first; times are medians of an iteration",
                     heads);
    for (size_t i = f->outcome.n_trials; i-- > first;)
        trial_row(&t, f, &f->outcome.trials[i]);
    html_table_end(&t);
    markup_end(m);
    const char *filter = page_escape(rq, arena_printf(&rq->arena, "session = %s", f->outcome.session.id));
    html_begin(m, "p", "more");
    page_link(m, "Compare with another session", "/compare/sessions?a=%s", page_escape(rq, f->outcome.session.id));
    page_link(m, "In the dataset", "/dataset?filter=%s&order=-recorded", filter);
    page_link(m, "CSV", "/api/v1/records?filter=%s&format=csv&page_size=1000", filter);
    page_link(m, "JSON Lines", "/api/v1/records?filter=%s&format=jsonl&page_size=1000&iterations=true", filter);
    markup_end(m);
    if (f->outcome.best != SIZE_MAX)
        downloads(rq, m, f);
    markup_end(m);
}

/* ---- the page ---- */

/* Begin a part of the page that is replaced while the session runs. */
static void live_begin(struct markup *m, const char *id) {
    markup_begin(m, "div");
    markup_attribute(m, "id", id);
    markup_attribute(m, "data-live", "");
}

static void answer_and_progress(struct request *rq, struct markup *m, const struct findings *f,
                                const struct chart_trial *charted) {
    char command[512], time[32];
    snprintf(command, sizeof command, "syncopate --server %s strategy export %s --out best.json", page_origin(rq),
             f->outcome.session.id);
    live_begin(m, "figures");
    markup_attributef(m, "data-say", "%zu trials ended%s%s", f->outcome.ended,
                      f->outcome.best == SIZE_MAX ? "" : "; the best so far takes ",
                      f->outcome.best == SIZE_MAX
                          ? ""
                          : units_format_known_time(f->outcome.rows[f->outcome.best].us, "", time, sizeof time));
    teach(rq, m, f);
    report_answer(m, f, command);
    if (f->outcome.n_trials)
        report_progress(m, f, charted);
    markup_end(m);
}

static void all_trials(struct request *rq, struct markup *m, const struct findings *f) {
    live_begin(m, "trials");
    if (f->outcome.n_trials)
        trials(rq, m, f);
    markup_end(m);
}

static void watched(struct request *rq, struct markup *m, const struct stored_session *s) {
    const char *id = page_escape(rq, s->id);
    markup_begin(m, "div");
    if (goes_on(s)) {
        markup_attributef(m, "data-from", "/sessions/%s/live", id);
        markup_attributef(m, "data-events", "/api/v1/sessions/%s/events", id);
    }
}

static bool is_quick(const struct findings *f) {
    return (uint64_t)f->model.n_variables * f->cluster.n_nodes <= QUICK_WORK;
}

static void simulated(struct request *rq, struct markup *m, const struct findings *f) {
    if (f->outcome.best == SIZE_MAX)
        return;
    html_section(m, "later", "Where the time goes, and what the trials teach");
    markup_begin(m, "p");
    markup_text(m, "Simulating this model on so many nodes may take a minute, so it is done when you ask for it: ");
    page_link(m, "simulate now", "/sessions/%s/whole", page_escape(rq, f->outcome.session.id));
    markup_text(m, ".");
    markup_end(m);
    markup_end(m);
}

static enum status deeper(struct request *rq, struct markup *m, const struct findings *f, enum page_depth depth,
                          struct error *err) {
    if (depth == DEPTH_LIVE)
        return ST_OK;
    if (depth == DEPTH_QUICK) {
        simulated(rq, m, f);
        return ST_OK;
    }
    report_timelines(m, f);
    report_delays(m, f->n_delays, f->delays);
    enum status st = report_strategy(m, f, err);
    report_lessons(m, f);
    return st;
}

static enum status write_page(struct request *rq, struct markup *m, struct findings *f, enum page_depth depth,
                              struct error *err) {
    char title[256];
    const struct chart_trial *charted = findings_trials(f);
    if (!charted)
        return error_no_memory(err);
    snprintf(title, sizeof title, "%.100s on %.100s", f->model.name, f->cluster.name);
    page_begin(rq, m, title, PAGE_SESSIONS);
    watched(rq, m, &f->outcome.session);
    head(rq, m, f);
    answer_and_progress(rq, m, f, charted);
    enum status st = deeper(rq, m, f, depth, err);
    all_trials(rq, m, f);
    if (depth != DEPTH_LIVE)
        report_provenance(m, f);
    markup_end(m);
    return st;
}

/* Gather as much as the request wants, and everything where that is quick. */
static enum status gather(struct store *store, const char *session, enum page_depth *depth, struct findings *out,
                          struct error *err) {
    if (*depth == DEPTH_WHOLE)
        return findings_gather(store, session, FINDINGS_ALL, out, err);
    enum status st = findings_gather(store, session, FINDINGS_FIGURES, out, err);
    if (st || *depth == DEPTH_LIVE || !is_quick(out))
        return st;
    findings_release(out);
    *depth = DEPTH_WHOLE;
    return findings_gather(store, session, FINDINGS_ALL, out, err);
}

static enum status answer(struct request *rq, enum page_depth depth, struct response *rs, struct error *err) {
    struct stored_session session;
    struct findings f;
    struct markup m = {0};
    struct store *store;
    enum status st = request_session(rq, false, &session, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = gather(store, session.id, &depth, &f, err);
    if (st)
        return st;
    st = write_page(rq, &m, &f, depth, err);
    findings_release(&f);
    if (!st)
        return page_answer(rq, &m, 200, rs, err);
    markup_release(&m);
    return st;
}

enum status page_session(struct request *rq, struct response *rs, struct error *err) {
    return answer(rq, DEPTH_QUICK, rs, err);
}

enum status page_session_whole(struct request *rq, struct response *rs, struct error *err) {
    return answer(rq, DEPTH_WHOLE, rs, err);
}

enum status page_session_live(struct request *rq, struct response *rs, struct error *err) {
    return answer(rq, DEPTH_LIVE, rs, err);
}

/* ---- steering ---- */

enum status page_session_steer(struct request *rq, struct response *rs, struct error *err) {
    static const struct {
        const char *word;
        route_handler *handler;
    } verbs[] = {{"pause", api_sessions_pause},
                 {"resume", api_sessions_resume},
                 {"stop", api_sessions_stop},
                 {"cancel", api_sessions_cancel}};
    const char *word = form_field(rq, "verb");
    for (size_t i = 0; word && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(word, verbs[i].word) != 0)
            continue;
        enum status st = verbs[i].handler(rq, rs, err);
        if (st || request_is_again(rq))
            return st;
        response_clear(rs);
        const char *to = arena_printf(&rq->arena, "/sessions/%s", page_escape(rq, request_parameter(rq, "session")));
        return to ? page_redirect(rs, to) : error_no_memory(err);
    }
    return problem_fail(err, PROBLEM_INVALID, "a session can be paused, resumed, stopped or cancelled");
}
