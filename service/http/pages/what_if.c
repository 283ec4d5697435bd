/* "What if": a stored model on a stored cluster with other figures, and what each baseline is predicted to take then,
 * beside what it is predicted to take as things are. The numbers are fields of a form. assets/page.js adds a slider to
 * each, and asks for this page again when one moves. */
#include "tuner/predict/what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html.h"
#include "service/http/api/references.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"
#include "service/http/transport/server.h"
#include "strategy/baselines/baselines.h"

/* A page simulates at most so many gradients times nodes, and of each baseline so many events: some tenths of a
 * second. */
enum { WHAT_IF_WORK = 16384, MOST_EVENTS = 100000 };

struct question {
    struct id model, cluster;
    struct prepared_domain *as_is, *changed; /* equal where nothing changes; NULL: nothing is asked yet */
    struct what_if asked;
};

/* A time that a baseline is predicted to take; NaN: it cannot run there, or one iteration is too much to simulate. */
struct time {
    double us;
    bool about; /* the simulation was cut short before its steady state */
    enum status status;
    struct error error;
};

struct guess {
    const struct baseline *baseline;
    struct time as_is, changed;
};

struct guesses {
    const struct question *question;
    size_t n;
    struct guess *rows; /* the fastest first, after guess_all */
};

/* ---- predicting ---- */

/* On the quiet network, where the cluster has weather. */
static enum status predict(struct prepared_domain *d, const struct strategy *strategy, struct time *out,
                           struct error *err) {
    struct predictor *p;
    struct prediction prediction;
    enum status st = prepared_domain_take_predictor(d, &p, err);
    if (st)
        return st;
    p->most_events = MOST_EVENTS;
    st = predictor_run(p, strategy, &prediction, err);
    p->most_events = 0;
    prepared_domain_give_predictor(d, p);
    if (!st)
        *out = (struct time){.us = prediction.iteration_us, .about = prediction.events > MOST_EVENTS};
    return st;
}

static void guess_time(struct prepared_domain *d, const struct baseline *baseline, struct time *out) {
    struct strategy strategy;
    struct error err = {0};
    enum status st = work_check(&err);
    if (!st)
        st = baselines_build(baseline, d->model, d->cluster, &strategy, &err);
    if (!st) {
        st = predict(d, &strategy, out, &err);
        strategy_release(&strategy);
    }
    if (st)
        *out = (struct time){.us = NAN, .status = st, .error = err};
}

static void guess_row(void *context, size_t i) {
    struct guesses *g = context;
    struct guess *row = &g->rows[i];
    const struct question *q = g->question;
    guess_time(q->changed, row->baseline, &row->changed);
    if (q->changed == q->as_is)
        row->as_is = row->changed;
    else
        guess_time(q->as_is, row->baseline, &row->as_is);
}

/* A baseline that cannot run there has no time; all other faults end the request. */
static bool is_of_the_baseline(enum status st) {
    return !st || st == ST_INFEASIBLE || st == ST_INVALID || st == ST_TOO_LARGE;
}

/* Those without a time come last. */
static int compare_guesses(const void *a, const void *b) {
    const struct guess *x = a, *y = b;
    const double p = isnan(x->changed.us) ? INFINITY : x->changed.us;
    const double q = isnan(y->changed.us) ? INFINITY : y->changed.us;
    return p != q ? (p < q ? -1 : 1) : strcmp(x->baseline->name, y->baseline->name);
}

/* Baselines that are tuned need a search each, which takes too long for a slider. */
static enum status guess_all(struct request *rq, const struct question *q, struct guesses *out, struct error *err) {
    size_t n;
    const struct baseline *rows = baselines_list(&n);
    struct guesses g = {.question = q, .rows = arena_alloc(&rq->arena, n, sizeof *g.rows)};
    if (!g.rows)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind != BASELINE_TUNED)
            g.rows[g.n++] = (struct guess){.baseline = &rows[i]};
    thread_pool_each(server_pool(rq->server), rq->principal.team, g.n, guess_row, &g);
    for (size_t i = 0; i < g.n; i++) {
        const struct time *bad = is_of_the_baseline(g.rows[i].as_is.status) ? &g.rows[i].changed : &g.rows[i].as_is;
        if (!is_of_the_baseline(bad->status))
            return error_pass(err, &bad->error);
    }
    qsort(g.rows, g.n, sizeof *g.rows, compare_guesses);
    *out = g;
    return ST_OK;
}

/* ---- the forms ---- */

static enum status domain_form(struct request *rq, struct markup *m, const struct question *q, struct error *err) {
    bool begun;
    enum status st = page_domain_form_begin(rq, m, "/what-if", q->as_is ? q->model.hex : NULL,
                                            q->as_is ? q->cluster.hex : NULL, &begun, err);
    if (st || !begun)
        return st;
    page_button(m, q->as_is ? "Take these" : "Predict", NULL, NULL);
    markup_end(m);
    return ST_OK;
}

/* A number and what its slider may be: from `least` to `most`, in equal steps or, `log`, in equal ratios. */
struct slider {
    const char *name, *label, *unit;
    double value, as_is, least, most;
    bool log, whole;
};

static void slider(struct markup *m, const struct slider *s) {
    html_begin(m, "div", "figure");
    markup_begin(m, "label");
    html_leaff(m, "span", NULL, "%s (now %.4g)", s->label, s->as_is);
    markup_begin(m, "input");
    markup_attribute(m, "name", s->name);
    markup_attribute(m, "type", "number");
    markup_attribute(m, "min", s->whole ? "1" : "0.001");
    markup_attributef(m, "max", "%g", s->whole ? (double)WHAT_IF_MOST_NODES : 1e6);
    markup_attribute(m, "step", s->whole ? "1" : "any");
    markup_attributef(m, "value", "%.6g", s->value);
    markup_attributef(m, "data-least", "%.6g", s->least);
    markup_attributef(m, "data-most", "%.6g", s->most);
    markup_attribute(m, "data-unit", s->unit);
    if (s->log)
        markup_attribute(m, "data-log", "");
    markup_end(m);
    markup_end(m);
    markup_end(m);
}

static double most_nodes(const struct question *q, const struct what_if *now) {
    const double fit = floor((double)WHAT_IF_WORK / (double)q->as_is->model->n_variables);
    return fmax(fmin(fmax(fmin(fit, 64), 2), WHAT_IF_MOST_NODES), (double)now->nodes);
}

static void sliders(struct markup *m, const struct question *q) {
    const struct what_if now = what_if_of(q->as_is->model, q->as_is->cluster), *w = &q->asked;
    const double rate = now.gbit_per_s, batch = now.batch;
    page_form_begin(m, "get", "/what-if", "fields unified");
    markup_attribute(m, "data-redraws", "");
    page_hidden(m, "model", q->model.hex);
    page_hidden(m, "cluster", q->cluster.hex);
    slider(m, &(struct slider){"gbit_per_s", "NICs, Gbit/s", "Gbit/s", w->gbit_per_s > 0 ? w->gbit_per_s : rate, rate,
                               rate / 16, rate * 64, .log = true});
    slider(m, &(struct slider){"nodes", "Nodes with devices", "nodes", (double)(w->nodes > 0 ? w->nodes : now.nodes),
                               (double)now.nodes, 1, most_nodes(q, &now), .whole = true});
    slider(m, &(struct slider){"batch", "Batch of a device", "samples", w->batch > 0 ? w->batch : batch, batch,
                               fmax(batch / 16, 1), batch * 16, .log = true});
    page_button(m, "Predict", NULL, NULL);
    markup_end(m);
}

/* ---- the answer ---- */

/* How the time compares to that as things are, in words. */
static void change_cell(struct html_table *t, const struct guess *g) {
    const double ratio = g->as_is.us / g->changed.us;
    if (!isfinite(ratio))
        html_cell(t, "");
    else if (fabs(ratio - 1) < 0.005)
        html_cell(t, "the same");
    else if (ratio > 1)
        html_cellf(t, "%.2f times as fast", ratio);
    else
        html_cellf(t, "%.2f times as long", 1 / ratio);
}

static void bar_cell(struct html_table *t, double us, double most_us) {
    html_cell_begin(t);
    if (us > 0 && most_us > 0) {
        markup_begin(t->m, "progress");
        markup_attribute(t->m, "aria-hidden", "true");
        markup_attributef(t->m, "max", "%.6g", most_us);
        markup_attributef(t->m, "value", "%.6g", us);
        markup_end(t->m);
    }
    html_cell_end(t);
}

static void time_cell(struct html_table *t, const struct time *time) {
    char text[32];
    if (isnan(time->us))
        html_cell(t, time->status == ST_TOO_LARGE ? "too much to simulate here" : "cannot run");
    else
        html_cellf(t, "%s%s", time->about ? "about " : "", units_format_time(time->us, text, sizeof text));
}

static void guesses_table(struct markup *m, const struct guesses *g) {
    static const char *const heads[] = {"Baseline",  "Share of the slowest", ">Predicted",
                                        ">As it is", "Against as it is",     NULL};
    struct html_table t;
    double most = 0;
    for (size_t i = 0; i < g->n; i++)
        most = fmax(most, isnan(g->rows[i].changed.us) ? 0 : g->rows[i].changed.us);
    html_begin(m, "div", "rows");
    html_table_begin(&t, m, "An iteration of each baseline, the fastest first; all are predicted, none is measured",
                     heads);
    for (size_t i = 0; i < g->n; i++) {
        const struct guess *row = &g->rows[i];
        t.row_class = isnan(row->changed.us) ? "bad" : NULL;
        html_cell(&t, row->baseline->name);
        bar_cell(&t, row->changed.us, most);
        time_cell(&t, &row->changed);
        time_cell(&t, &row->as_is);
        change_cell(&t, row);
    }
    html_table_end(&t);
    markup_end(m);
}

static void caveats(struct markup *m, const struct question *q, const struct guesses *g) {
    bool about = false;
    for (size_t i = 0; i < g->n; i++)
        about |= g->rows[i].changed.about || g->rows[i].as_is.about;
    html_begin(m, "p", "soft");
    markup_text(m, "Baselines that a search tunes are left out: POST /api/v1/predictions has them.");
    if (what_if_drops_measurements(&q->asked, q->as_is->model, q->as_is->cluster))
        markup_text(m,
                    " What was measured of this cluster’s network holds for that network alone, so these predictions "
                    "are by formulas.");
    if (q->as_is->cluster->variability.given)
        markup_text(m, " Times are those of the quiet network, without the cluster’s weather.");
    if (about)
        markup_text(m, " “About” is the mean of the first iterations: more would take long to simulate.");
    markup_end(m);
}

/* The figures that are asked for, and what is the fastest then. It is also what a screen reader hears. */
static const char *sentence(struct request *rq, const struct question *q, const struct guess *best) {
    const struct what_if f = what_if_of(q->changed->model, q->changed->cluster);
    const double us = best->changed.us, samples = f.batch * q->changed->cluster->n_devices / us * 1e6;
    char time[32];
    if (isnan(us))
        return "No baseline can run there.";
    const char *text = arena_printf(
        &rq->arena,
        "With NICs of %g Gbit/s, %llu nodes and %g samples a device, %s is the fastest: %s an iteration, %.*f "
        "samples a second.",
        f.gbit_per_s, (unsigned long long)f.nodes, f.batch, best->baseline->name,
        units_format_time(us, time, sizeof time), samples < 100 ? 1 : 0, samples);
    return text ? text : "";
}

/* `why` is what is wrong with the figures; NULL: nothing. */
static void forecast(struct request *rq, struct markup *m, const struct question *q, const struct guesses *g,
                     const struct error *why) {
    char detail[ERROR_TEXT_ROOM];
    const char *said = why ? problem_detail(why, detail) : sentence(rq, q, &g->rows[0]);
    markup_begin(m, "div");
    markup_attribute(m, "id", "forecast");
    markup_attribute(m, "data-live", "");
    markup_attribute(m, "data-say", said);
    html_leaff(m, "p", why ? "trouble" : "verdict", "%s", said);
    if (!why) {
        guesses_table(m, g);
        caveats(m, q, g);
    }
    markup_end(m);
}

/* ---- the page ---- */

static enum status read_figures(struct request *rq, struct what_if *out, struct error *err) {
    double nodes;
    enum status st = page_query_number(rq, "gbit_per_s", 0, WHAT_IF_LEAST_RATE, &out->gbit_per_s, err);
    if (!st)
        st = page_query_number(rq, "batch", 0, WHAT_IF_LEAST_BATCH, &out->batch, err);
    if (!st)
        st = page_query_number(rq, "nodes", 0, 1, &nodes, err);
    if (!st && (nodes != floor(nodes) || nodes > WHAT_IF_MOST_NODES))
        st = error_set(err, ST_USAGE, "nodes: must be a whole number, at most %d", WHAT_IF_MOST_NODES);
    if (!st)
        out->nodes = (uint64_t)nodes;
    return st;
}

static enum status read_domain(struct request *rq, struct question *q, struct error *err) {
    const char *model = request_query(rq, "model"), *cluster = request_query(rq, "cluster");
    struct store *store;
    if (!model || !cluster)
        return ST_OK;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = reference_id(rq, STORE_MODEL, model, &q->model, err);
    if (!st)
        st = reference_id(rq, STORE_CLUSTER, cluster, &q->cluster, err);
    if (!st)
        st = prepared_domains_take(rq->service->domains, store, q->model.hex, q->cluster.hex, &q->as_is, err);
    return st;
}

/* `changed` is a reference of its own, to the same domain where nothing changes. */
static enum status change(struct request *rq, struct question *q, struct error *err) {
    const struct what_if now = what_if_of(q->as_is->model, q->as_is->cluster);
    struct store *store;
    if (q->asked.nodes > now.nodes && (double)q->asked.nodes > most_nodes(q, &now))
        return error_set(err, ST_USAGE,
                         "nodes: this page simulates at most %.0f of them; more is a question for "
                         "POST /api/v1/predictions",
                         most_nodes(q, &now));
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = prepared_domains_take(rq->service->domains, store, q->model.hex, q->cluster.hex, &q->changed, err);
    return st ? st : reference_what_if(&q->asked, &q->changed, err);
}

static enum status write_page(struct request *rq, const struct question *q, const struct guesses *g,
                              const struct error *why, struct response *rs, struct error *err) {
    static const char title[] = "What if";
    struct markup m = {0};
    page_begin(rq, &m, title, PAGE_WHAT_IF);
    markup_begin(&m, "header");
    markup_leaf(&m, "h1", title);
    if (q->as_is)
        html_leaff(&m, "p", "soft", "%s on %s", q->as_is->model->name, q->as_is->cluster->name);
    else
        markup_leaf(&m, "p",
                    "A model on a cluster with faster or slower NICs, more or fewer nodes, another batch: what each "
                    "baseline is predicted to take.");
    markup_end(&m);
    enum status st = domain_form(rq, &m, q, err);
    if (!st && q->as_is) {
        sliders(&m, q);
        forecast(rq, &m, q, g, why);
    }
    if (!st)
        return page_answer(rq, &m, why ? 422 : 200, rs, err);
    markup_release(&m);
    return st;
}

static enum status answer(struct request *rq, struct question *q, struct response *rs, struct error *err) {
    struct error why = {0};
    struct guesses g;
    enum status st = read_figures(rq, &q->asked, &why);
    if (!st)
        st = change(rq, q, &why);
    if (st == ST_USAGE || st == ST_INVALID || st == ST_INFEASIBLE || st == ST_TOO_LARGE)
        return write_page(rq, q, NULL, &why, rs, err);
    if (st)
        return error_pass(err, &why);
    st = guess_all(rq, q, &g, err);
    return st ? st : write_page(rq, q, &g, NULL, rs, err);
}

enum status page_what_if(struct request *rq, struct response *rs, struct error *err) {
    struct question q = {.as_is = NULL};
    enum status st = read_domain(rq, &q, err);
    if (st)
        return st;
    st = q.as_is ? answer(rq, &q, rs, err) : write_page(rq, &q, NULL, NULL, rs, err);
    prepared_domain_drop(q.changed);
    prepared_domain_drop(q.as_is);
    return st;
}
