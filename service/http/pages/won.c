/* What was won so far. A time is compared only with times of the same session: they come from the same machines, runner
 * and days. Of the sessions of a model and a cluster the one with the fastest best speaks.
 *
 * The default is pytorch-ddp, what PyTorch does when nobody chooses. Where the session has not measured the default,
 * its predicted time stands in, and the words say so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "dataset/pages.h"
#include "report/html.h"
#include "service/http/pages/home.h"
#include "service/http/pages/page.h"
#include "simulator/tuned.h"

/* The newest sessions are looked at, and of each pair of model and cluster as many as this. */
enum { SESSIONS_READ = 200, PAIRS = 12, SESSIONS_A_PAIR = 3, SIMULATED_WORK = 2048 /* gradients times nodes */ };
#define DEFAULT_NAME "pytorch-ddp"

struct pair {
    const char *model, *cluster;
    bool in_weather;
    size_t n_read;
    const char *session, *strategy, *name; /* of the fastest; in the request's arena */
    double us;
    bool is_default, overlaps, measured; /* measured: the default was, in that session */
    double default_us;                   /* NaN: not known */
};

struct won {
    size_t n;
    struct pair pairs[PAIRS];
};

/* ---- the default's time ---- */

static double predict_default(struct request *rq, struct store *store, const struct stored_session *s,
                              bool in_weather) {
    const struct baseline *baseline = baselines_find(DEFAULT_NAME);
    struct prepared_domain *d;
    struct strategy strategy;
    struct outlook outlook;
    struct updates_prediction *updates = NULL;
    double us = NAN;
    if (prepared_domains_take(rq->service->domains, store, s->model, s->cluster, &d, NULL))
        return NAN;
    const bool quick = (uint64_t)d->model->n_variables * d->cluster->n_nodes <= SIMULATED_WORK;
    if (quick && baseline && !tuned_build(baseline, d->model, d->cluster, &strategy, NULL)) {
        if (!prepared_domain_predict(d, &strategy, &outlook, &updates, NULL))
            us = in_weather ? (outlook.expected.seeds ? outlook.expected.mean_us : NAN) : outlook.quiet.iteration_us;
        strategy_release(&strategy);
        free(updates);
    }
    prepared_domain_drop(d);
    return us;
}

static const struct outcome_row *default_row(const struct outcome *o) {
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->rows[i].baseline && !strcmp(o->rows[i].baseline->name, DEFAULT_NAME))
            return &o->rows[i];
    return NULL;
}

static bool overlap(const struct outcome_row *a, const struct outcome_row *b) {
    return outcome_row_has_interval(a) && outcome_row_has_interval(b) && a->measured.low_us <= b->measured.high_us &&
           b->measured.low_us <= a->measured.high_us;
}

/* ---- reading ---- */

static void compare(struct request *rq, struct store *store, const struct outcome *o, struct pair *pair) {
    const struct outcome_row *best = &o->rows[o->best], *by_default = default_row(o);
    pair->us = best->us;
    pair->session = arena_strdup(&rq->arena, o->session.id);
    pair->strategy = arena_strdup(&rq->arena, best->strategy);
    pair->name = arena_strdup(&rq->arena, best->name);
    pair->is_default = best == by_default;
    pair->measured = by_default && isfinite(by_default->us);
    pair->overlaps = pair->measured && overlap(best, by_default);
    pair->default_us = pair->measured ? by_default->us : predict_default(rq, store, &o->session, pair->in_weather);
}

/* The pair that the session is about; NULL where there are enough, of pairs or of its sessions. */
static struct pair *find_pair(struct won *won, const struct stored_session *s, bool in_weather) {
    for (size_t i = 0; i < won->n; i++) {
        struct pair *p = &won->pairs[i];
        if (!strcmp(p->model, s->model) && !strcmp(p->cluster, s->cluster) && p->in_weather == in_weather)
            return p->n_read < SESSIONS_A_PAIR ? p : NULL;
    }
    if (won->n == PAIRS)
        return NULL;
    won->pairs[won->n] = (struct pair){
        .model = s->model, .cluster = s->cluster, .in_weather = in_weather, .us = INFINITY, .default_us = NAN};
    return &won->pairs[won->n++];
}

/* Whether enough sessions of this model and cluster were read, whatever their weather. */
static bool is_full(const struct won *won, const struct stored_session *s) {
    size_t n = 0;
    for (size_t i = 0; i < won->n; i++)
        if (!strcmp(won->pairs[i].model, s->model) && !strcmp(won->pairs[i].cluster, s->cluster))
            n += won->pairs[i].n_read;
    return n >= 2 * SESSIONS_A_PAIR || (!n && won->n == PAIRS);
}

static enum status read_session(struct request *rq, struct store *store, const struct stored_session *s,
                                struct won *won, struct error *err) {
    struct findings f;
    if (!s->complete || is_full(won, s))
        return ST_OK;
    enum status st = findings_gather(store, s->id, FINDINGS_FIGURES, &f, err);
    if (st)
        return st == ST_NO_MEMORY ? st : ST_OK; /* its descriptions cannot be read any more */
    if (f.outcome.best != SIZE_MAX) {
        struct pair *pair = find_pair(won, s, f.outcome.weather.seed > 0);
        if (pair && f.outcome.rows[f.outcome.best].us < pair->us)
            compare(rq, store, &f.outcome, pair);
        if (pair)
            pair->n_read++;
    }
    findings_release(&f);
    return ST_OK;
}

/* ---- writing ---- */

static void words_cell(struct html_table *t, const struct pair *p) {
    const double ratio = p->default_us / p->us;
    if (p->is_default)
        html_cell(t, "nothing: the default is the fastest that was tried");
    else if (!isfinite(ratio))
        html_cell(t, "not known: the default was not measured");
    else if (p->overlaps)
        html_cell(t, "no measurable difference");
    else if (ratio < 1)
        html_cellf(t, p->measured ? "nothing: the default is faster" : "nothing, by what is predicted of the default");
    else if (p->measured)
        html_cellf(t, "%.2f times as fast", ratio);
    else
        html_cellf(t, "about %.2f times as fast as predicted of the default", ratio);
}

static void pair_row(struct request *rq, struct store *store, struct html_table *t, const struct pair *p) {
    char time[32];
    html_cellf(t, "%s on %s%s", page_name(rq, store, STORE_MODEL, p->model),
               page_name(rq, store, STORE_CLUSTER, p->cluster), p->in_weather ? ", in weather" : "");
    words_cell(t, p);
    html_cell_begin(t);
    markup_textf(t->m, "%s, ", units_format_known_time(p->us, "", time, sizeof time));
    page_link(t->m, p->name && *p->name ? p->name : "its strategy", "/strategies/%.16s?model=%.16s&cluster=%.16s",
              p->strategy ? p->strategy : "", p->model, p->cluster);
    html_cell_end(t);
    if (isfinite(p->default_us))
        html_cellf(t, "%s, %s", units_format_known_time(p->default_us, "", time, sizeof time),
                   p->measured ? "measured" : "predicted");
    else
        html_cell(t, "not known");
    html_cell_begin(t);
    page_link(t->m, "its session", "/sessions/%s", page_escape(rq, p->session ? p->session : ""));
    html_cell_end(t);
}

enum status home_won(struct request *rq, struct store *store, struct markup *m, struct error *err) {
    static const char *const heads[] = {"Model and cluster",          "Won",         "Best, measured",
                                        "Default (" DEFAULT_NAME ")", "Measured in", NULL};
    const struct session_list list = {.viewer = request_viewer(rq)};
    struct won won = {.n = 0};
    struct stored_session *sessions;
    struct html_table t;
    char next[PAGE_CURSOR_ROOM];
    size_t n;
    enum status st = page_sessions(store, &list, NULL, SESSIONS_READ, &rq->arena, &n, &sessions, next, err);
    for (size_t i = 0; !st && i < n; i++)
        st = read_session(rq, store, &sessions[i], &won, err);
    if (st || !won.n)
        return st;
    html_section(m, "won", "What was won so far");
    html_begin(m, "div", "rows");
    html_table_begin(
        &t, m, "The fastest iteration that a session measured, against what PyTorch does when nobody chooses", heads);
    for (size_t i = 0; i < won.n; i++)
        pair_row(rq, store, &t, &won.pairs[i]);
    html_table_end(&t);
    markup_end(m);
    markup_end(m);
    return ST_OK;
}
