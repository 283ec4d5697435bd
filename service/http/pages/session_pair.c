/* Two sessions side by side: what each was asked, how far it is, what it found, and whether the two bests differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "dataset/pages.h"
#include "report/charts.h"
#include "report/findings.h"
#include "report/html.h"
#include "service/http/api/sessions.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"

enum { OFFERED = 100 };

static const char *const letters[2] = {"A", "B"};

/* ---- choosing ---- */

static void session_choice(struct request *rq, struct markup *m, struct store *store, const char *label,
                           const char *name, size_t n, const struct stored_session *sessions, const char *chosen) {
    bool listed = false;
    page_label_begin(m, label);
    markup_begin(m, "select");
    markup_attribute(m, "name", name);
    for (size_t i = 0; i < n; i++) {
        const struct stored_session *s = &sessions[i];
        const bool is = chosen && !strcmp(s->id, chosen);
        char stamp[32];
        const char *text =
            arena_printf(&rq->arena, "%s on %s, %s, %s", page_name(rq, store, STORE_MODEL, s->model),
                         page_name(rq, store, STORE_CLUSTER, s->cluster), page_stamp(s->started, stamp), s->id);
        page_option(m, s->id, text ? text : s->id, is);
        listed |= is;
    }
    if (chosen && !listed)
        page_option(m, chosen, chosen, true);
    markup_end(m);
    markup_end(m);
}

static enum status chooser(struct request *rq, struct markup *m, struct store *store, const char *const ids[2],
                           struct error *err) {
    const struct session_list list = {.viewer = request_viewer(rq)};
    struct stored_session *sessions;
    char next[PAGE_CURSOR_ROOM];
    size_t n;
    enum status st = page_sessions(store, &list, NULL, OFFERED, &rq->arena, &n, &sessions, next, err);
    if (st)
        return st;
    if (n < 2) {
        markup_leaf(m, "p", "There are not two sessions yet.");
        return ST_OK;
    }
    page_form_begin(m, "get", "/compare/sessions", "fields unified");
    session_choice(rq, m, store, "Session A", "a", n, sessions, ids[0]);
    session_choice(rq, m, store, "Session B", "b", n, sessions, ids[1] ? ids[1] : sessions[1].id);
    page_button(m, "Compare", NULL, NULL);
    markup_end(m);
    return ST_OK;
}

/* ---- in a sentence ---- */

static const struct outcome_row *best_of(const struct findings *f) {
    return f->outcome.best == SIZE_MAX ? NULL : &f->outcome.rows[f->outcome.best];
}

static bool are_alike(const struct findings f[2]) {
    return !strcmp(f[0].outcome.session.model, f[1].outcome.session.model) &&
           !strcmp(f[0].outcome.session.cluster, f[1].outcome.session.cluster) &&
           !f[0].outcome.weather.seed == !f[1].outcome.weather.seed;
}

static void verdict(struct markup *m, const struct findings f[2]) {
    const struct outcome_row *a = best_of(&f[0]), *b = best_of(&f[1]);
    char slow[32], fast[32];
    if (!are_alike(f)) {
        markup_leaf(
            m, "p",
            "They are about different models, clusters or weather, so their times do not compare. How many times "
            "as fast each best is as the best baseline of its own session does.");
        return;
    }
    if (!a || !b) {
        markup_leaf(m, "p", "One of them has no complete trial yet.");
        return;
    }
    const bool intervals = outcome_row_has_interval(a) && outcome_row_has_interval(b);
    const size_t won = b->us < a->us;
    units_format_known_time(won ? b->us : a->us, "", fast, sizeof fast);
    units_format_known_time(won ? a->us : b->us, "", slow, sizeof slow);
    if (!strcmp(a->strategy, b->strategy))
        html_leaff(m, "p", "verdict", "Both found %s: %s and %s an iteration.", a->name, won ? slow : fast,
                   won ? fast : slow);
    else if (intervals && a->measured.low_us <= b->measured.high_us && b->measured.low_us <= a->measured.high_us)
        html_leaff(m, "p", "verdict",
                   "No measurable difference: %s an iteration in %s and %s in %s are within each other’s noise.", fast,
                   letters[won], slow, letters[!won]);
    else
        html_leaff(m, "p", "verdict", "%s found what is %.2f times as fast: %s an iteration, and %s in %s.",
                   letters[won], won ? a->us / b->us : b->us / a->us, fast, slow, letters[!won]);
    html_leaff(m, "p", "soft", "Each was measured in its own session, maybe on different days.");
}

/* ---- side by side ---- */

static void time_cells(struct html_table *t, const char *what, const struct findings f[2], bool baseline) {
    char time[32];
    html_cell(t, what);
    for (size_t k = 0; k < 2; k++) {
        const struct outcome *o = &f[k].outcome;
        const size_t at = baseline ? o->baseline : o->best;
        if (at == SIZE_MAX)
            html_cell(t, "none yet");
        else
            html_cellf(t, "%s, %s", units_format_known_time(o->rows[at].us, "", time, sizeof time), o->rows[at].name);
    }
}

static void trial_cells(struct html_table *t, const struct findings f[2]) {
    html_cell(t, "Trials");
    for (size_t k = 0; k < 2; k++) {
        const struct outcome *o = &f[k].outcome;
        if (o->budget_trials)
            html_cellf(t, "%zu of %llu, %zu failed", o->ended, (unsigned long long)o->budget_trials, o->failed);
        else
            html_cellf(t, "%zu, %zu failed", o->ended, o->failed);
    }
}

static void ratio_cells(struct html_table *t, const struct findings f[2]) {
    html_cell(t, "Best against its best baseline");
    for (size_t k = 0; k < 2; k++) {
        const struct outcome *o = &f[k].outcome;
        if (o->best == SIZE_MAX || o->baseline == SIZE_MAX)
            html_cell(t, "");
        else if (o->best == o->baseline)
            html_cell(t, "the baseline is the best");
        else
            html_cellf(t, "%.2f times as fast%s", o->speedup, o->overlap ? ", within noise" : "");
    }
}

static void share_cells(struct html_table *t, const struct findings f[2]) {
    html_cell(t, "Above the lower bound");
    for (size_t k = 0; k < 2; k++)
        if (f[k].outcome.best == SIZE_MAX)
            html_cell(t, "");
        else
            html_cellf(t, "%.0f%%", f[k].outcome.gap * 100);
    html_cell(t, "Predictions were off by");
    for (size_t k = 0; k < 2; k++)
        if (f[k].outcome.accuracy.n)
            html_cellf(t, "%.1f%% (median of %zu)", f[k].outcome.accuracy.off * 100, f[k].outcome.accuracy.n);
        else
            html_cell(t, "");
}

static void word_cells(struct html_table *t, const char *what, const char *a, const char *b) {
    html_cell(t, what);
    html_cell(t, a ? a : "");
    html_cell(t, b ? b : "");
}

static void head_cells(struct request *rq, struct html_table *t, const struct findings f[2]) {
    html_cell(t, "Session");
    for (size_t k = 0; k < 2; k++) {
        html_cell_begin(t);
        page_link(t->m, f[k].outcome.session.id, "/sessions/%s", page_escape(rq, f[k].outcome.session.id));
        html_cell_end(t);
    }
}

static void table(struct request *rq, struct markup *m, const struct findings f[2]) {
    static const char *const heads[] = {"What", "A", "B", NULL};
    const struct stored_session *a = &f[0].outcome.session, *b = &f[1].outcome.session;
    char begun[2][32];
    struct html_table t;
    html_section(m, "sides", "Side by side");
    html_table_begin(&t, m, "Times are of an iteration", heads);
    head_cells(rq, &t, f);
    word_cells(&t, "Model", f[0].model.name, f[1].model.name);
    word_cells(&t, "Cluster", f[0].cluster.name, f[1].cluster.name);
    word_cells(&t, "State", stored_session_state_word(a->state), stored_session_state_word(b->state));
    word_cells(&t, "Begun (UTC)", page_stamp(a->started, begun[0]), page_stamp(b->started, begun[1]));
    word_cells(&t, "Team", a->team, b->team);
    word_cells(&t, "Run by", f[0].runner, f[1].runner);
    trial_cells(&t, f);
    time_cells(&t, "Best", f, false);
    time_cells(&t, "Best baseline", f, true);
    ratio_cells(&t, f);
    share_cells(&t, f);
    html_table_end(&t);
    markup_end(m);
}

static enum status progress(struct markup *m, struct findings f[2], struct error *err) {
    static const char *const ids[2] = {"chart-progress-a", "chart-progress-b"};
    html_section(m, "both", "Trial by trial");
    html_begin(m, "div", "even");
    for (size_t k = 0; k < 2; k++) {
        const struct outcome *o = &f[k].outcome;
        struct chart_progress chart = {
            .n = o->n_trials, .trials = findings_trials(&f[k]), .baseline_us = NAN, .bound_us = o->lower_bound_us};
        if (!chart.trials)
            return error_no_memory(err);
        if (o->baseline != SIZE_MAX) {
            chart.baseline = o->rows[o->baseline].name;
            chart.baseline_us = o->rows[o->baseline].us;
        }
        markup_begin(m, "figure");
        if (o->n_trials)
            chart_progress(m, ids[k], &chart);
        html_leaff(m, "figcaption", NULL, "%s: %s", letters[k], o->n_trials ? o->session.id : "no trial yet");
        markup_end(m);
    }
    markup_end(m);
    markup_end(m);
    return ST_OK;
}

static void strategies_link(struct markup *m, const struct findings f[2]) {
    const struct outcome_row *a = best_of(&f[0]), *b = best_of(&f[1]);
    if (!are_alike(f) || !a || !b || !strcmp(a->strategy, b->strategy))
        return;
    html_begin(m, "p", "more");
    page_link(m, "The two best strategies on one time axis", "/compare?a=%.16s&b=%.16s&model=%.16s&cluster=%.16s",
              a->strategy, b->strategy, f[0].outcome.session.model, f[0].outcome.session.cluster);
    markup_end(m);
}

/* ---- the page ---- */

/* Both, as the asker may see them. */
static enum status gather(struct request *rq, struct store *store, const char *const ids[2], struct findings f[2],
                          struct error *err) {
    for (size_t k = 0; k < 2; k++) {
        struct stored_session session;
        enum status st = request_session_of(rq, ids[k], &session, err);
        if (!st)
            st = findings_gather(store, session.id, FINDINGS_FIGURES, &f[k], err);
        if (st)
            return st;
    }
    return ST_OK;
}

static enum status write_page(struct request *rq, struct markup *m, struct store *store, const char *const ids[2],
                              struct findings f[2], struct error *err) {
    static const char title[] = "Two sessions";
    page_begin(rq, m, title, PAGE_ELSEWHERE);
    markup_begin(m, "header");
    markup_leaf(m, "h1", title);
    if (f)
        verdict(m, f);
    markup_end(m);
    enum status st = ST_OK;
    if (f) {
        table(rq, m, f);
        st = progress(m, f, err);
        strategies_link(m, f);
    }
    return st ? st : chooser(rq, m, store, ids, err);
}

enum status page_compare_sessions(struct request *rq, struct response *rs, struct error *err) {
    const char *const ids[2] = {request_query(rq, "a"), request_query(rq, "b")};
    const bool both = ids[0] && ids[1];
    struct findings f[2] = {0};
    struct markup m = {0};
    struct store *store;
    enum status st = request_reader(rq, &store, err);
    if (!st && both)
        st = gather(rq, store, ids, f, err);
    if (!st)
        st = write_page(rq, &m, store, ids, both ? f : NULL, err);
    findings_release(&f[0]);
    findings_release(&f[1]);
    if (!st)
        return page_answer(rq, &m, 200, rs, err);
    markup_release(&m);
    return st;
}
