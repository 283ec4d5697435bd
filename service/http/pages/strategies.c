/* A strategy's iteration, simulated: what each node computes and what travels, what it does in words, and what was
 * measured of it; and two of them on one time axis. A strategy is stored, or is one that advice.c named. It belongs to
 * a model and a cluster: the query names them, or they are those of a trial of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "report/charts.h"
#include "report/delays.h"
#include "report/html.h"
#include "report/lanes.h"
#include "report/report.h"
#include "report/traits.h"
#include "service/http/api/references.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"
#include "strategy/memory.h"
#include "tuner/predict/advice.h"
#include "tuner/predict/sweep.h"

enum { COMPARED_NODES = 2, MEASURED_SHOWN = 20, MEASURED_COUNTED = 200, CHOICES = 200 };

/* One or two strategies of one domain. */
struct view {
    struct store *store;
    struct id model, cluster, ids[2];
    struct prepared_domain *domain;
    const char *names[2];
    double nic_factor; /* each NIC's rate is multiplied by it */
    const char *way;   /* of advice.c, which is built again; NULL: a stored one */
    uint64_t wrapped_for;
    struct memory memory; /* of it */
    size_t n, read;
    struct strategy strategies[2]; /* `read` of them */
    struct chart_timeline timelines[2];
    size_t n_delays;
    struct delays delays[2]; /* of those with a "consistency" */
    char traits[2][TRAITS][TRAIT_ROOM];
};

static void release(struct view *v) {
    for (size_t i = 0; i < v->read; i++)
        strategy_release(&v->strategies[i]);
    prepared_domain_drop(v->domain);
}

/* ---- which ---- */

static enum status find_domain(struct request *rq, struct view *v, struct error *err) {
    const char *model = request_query(rq, "model"), *cluster = request_query(rq, "cluster");
    const struct query query = {.strategy = v->ids[0].hex, .limit = 1, .viewer = request_viewer(rq)};
    if (!model || !cluster) {
        struct record *records;
        size_t n;
        enum status st = query_collect(v->store, &query, &rq->arena, &n, &records, err);
        if (st)
            return st;
        if (!n)
            return error_set(err, ST_USAGE, "nobody has tried this strategy: add ?model=NAME&cluster=NAME");
        model = model ? model : records[0].model;
        cluster = cluster ? cluster : records[0].cluster;
    }
    enum status st = reference_id(rq, STORE_MODEL, model, &v->model, err);
    if (!st)
        st = reference_id(rq, STORE_CLUSTER, cluster, &v->cluster, err);
    if (!st)
        st = prepared_domains_take(rq->service->domains, v->store, v->model.hex, v->cluster.hex, &v->domain, err);
    return st == ST_NOT_FOUND ? error_set(err, st, "there is no such model or cluster") : st;
}

/* Read the complete trials of a strategy, the fastest first. */
static enum status measured(struct request *rq, struct view *v, size_t k, size_t limit, size_t *n, struct record **out,
                            struct error *err) {
    static const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.strategy = v->ids[k].hex,
                                .model = v->model.hex,
                                .cluster = v->cluster.hex,
                                .state = &complete,
                                .order = QUERY_BY_measured,
                                .limit = limit,
                                .viewer = request_viewer(rq)};
    return query_collect(v->store, &query, &rq->arena, n, out, err);
}

static const char *name_of(struct view *v, size_t k) {
    return *v->strategies[k].name ? v->strategies[k].name : v->ids[k].hex;
}

/* What is predicted of its updates, and what trials have measured. */
static enum status add_delays(struct request *rq, struct view *v, struct predictor *p, size_t k, struct error *err) {
    struct delays *delays = &v->delays[v->n_delays];
    struct record *records;
    size_t n;
    if (consistency_is_plain(&v->strategies[k].consistency))
        return ST_OK;
    *delays = (struct delays){.name = name_of(v, k)};
    enum status st = delays_predict(p, &v->strategies[k], &delays->predicted, err);
    if (!st)
        st = measured(rq, v, k, MEASURED_COUNTED, &n, &records, err);
    if (st)
        return st;
    for (size_t i = 0; i < n; i++)
        delays->trials += delays_add_record(&records[i], &delays->measured);
    v->n_delays++;
    return ST_OK;
}

static enum status simulate(struct request *rq, struct view *v, struct predictor *p, size_t k, struct error *err) {
    struct strategy *strategy = &v->strategies[k];
    enum status st = v->way
                         ? advice_strategy(v->way, v->wrapped_for, v->domain->model, v->domain->cluster, strategy, err)
                         : reference_stored(rq, v->domain, &v->ids[k], v->names[k], strategy, err);
    if (st == ST_NOT_FOUND && !v->way)
        return error_set(err, st, "there is no strategy %.64s", v->ids[k].hex);
    if (st)
        return st;
    v->read++;
    v->ids[k] = strategy->id;
    st = lanes_of(p, strategy, v->n > 1 ? COMPARED_NODES : LANES_NODES, &rq->arena, &v->timelines[k], err);
    if (!st)
        st = add_delays(rq, v, p, k, err);
    if (!st)
        st = plan_relower(&p->plan, v->domain->model, v->domain->cluster, strategy, err);
    if (!st)
        traits_of(strategy, &p->plan, v->traits[k]);
    if (!st && v->way)
        st = memory_of_plan(&p->plan, &v->memory, err);
    return st;
}

static bool other_rates(const struct view *v) {
    return v->nic_factor > 0 && (v->nic_factor < 1 || v->nic_factor > 1);
}

/* In place of the domain one of this request alone. */
static enum status at_other_rates(struct view *v, struct error *err) {
    const struct sweep sweep = {.axis = SWEEP_BANDWIDTH, .relative = true, .n = 1, .values = {v->nic_factor}};
    struct sweep_point point;
    enum status st =
        sweep_apply(&sweep, v->nic_factor, ALGORITHM_auto, v->domain->model, v->domain->cluster, &point, err);
    if (st)
        return st;
    prepared_domain_drop(v->domain);
    v->domain = NULL;
    return prepared_domain_new(&point.model, &point.cluster, &v->domain, err);
}

static enum status look(struct request *rq, struct view *v, const char *const words[2], struct error *err) {
    struct predictor *p = NULL;
    enum status st = request_reader(rq, &v->store, err);
    for (size_t k = 0; k < v->n && !st && !v->way; k++)
        st = reference_name(rq, STORE_STRATEGY, words[k], &v->ids[k], &v->names[k], err);
    if (!st)
        st = find_domain(rq, v, err);
    if (!st && other_rates(v))
        st = at_other_rates(v, err);
    if (!st)
        st = prepared_domain_take_predictor(v->domain, &p, err);
    if (p && v->domain->cluster->variability.given)
        p->weather = PREPARED_WEATHER;
    for (size_t k = 0; k < v->n && !st; k++)
        st = simulate(rq, v, p, k, err);
    if (p) {
        p->weather = 0;
        prepared_domain_give_predictor(v->domain, p);
    }
    return st;
}

/* ---- parts ---- */

static const char *caption_of(const struct view *v) {
    if (v->domain->cluster->variability.given)
        return "Around the first change of a rate, by the cluster’s description. Under the lanes: the rates of those "
               "NICs "
               "that are slowest there.";
    return v->n_delays ? "A few iterations, by the cluster’s description."
                       : "Compute and communication of an iteration in the steady state, by the cluster’s description.";
}

static void timeline(struct markup *m, const struct view *v) {
    char words[CHART_WORDS];
    chart_timelines_words(v->n, v->timelines, words);
    const bool several = v->n_delays || v->domain->cluster->variability.given;
    html_section(m, "timeline", v->n > 1 ? "On one time axis" : several ? "A few iterations" : "One iteration");
    html_leaff(m, "p", NULL, "In the simulation %s", words);
    markup_begin(m, "figure");
    html_begin(m, "div", "scroll");
    markup_attribute(m, "role", "region");
    markup_attribute(m, "tabindex", "0");
    markup_attribute(m, "aria-label", "timeline");
    chart_timelines(m, "chart-timeline", v->n, v->timelines);
    markup_end(m);
    markup_leaf(m, "figcaption", caption_of(v));
    report_lanes_table(m, v->n, v->timelines);
    markup_end(m);
    markup_end(m);
    report_delays(m, v->n_delays, v->delays);
}

static void traits(struct markup *m, struct view *v) {
    const char *heads[4] = {"Knob", name_of(v, 0), v->n > 1 ? name_of(v, 1) : NULL, NULL};
    struct html_table t;
    size_t same = 0, shown = 0;
    html_section(m, "knobs", v->n > 1 ? "What they do differently" : "What it does");
    html_table_begin(&t, m, v->n > 1 ? "Only what differs" : "In words", heads);
    for (enum trait trait = 0; trait < TRAITS; trait++) {
        if (!trait_is_shown(trait, v->n, v->traits))
            continue;
        shown++;
        if (v->n > 1 && !strcmp(v->traits[0][trait], v->traits[1][trait])) {
            same++;
            continue;
        }
        html_cell(&t, trait_label(trait));
        for (size_t k = 0; k < v->n; k++)
            html_cell(&t, v->traits[k][trait]);
    }
    html_table_end(&t);
    if (same)
        html_leaff(m, "p", "soft", "The other %zu of %zu knobs are the same.", same, shown);
    markup_end(m);
}

static enum status measurements(struct request *rq, struct markup *m, struct view *v, struct error *err) {
    static const char *const heads[] = {
        ">Measured", ">95% interval", ">Predicted before", "Runner", "Session", "When (UTC)", NULL};
    struct record *records;
    struct html_table t;
    size_t n;
    char text[32], other[32];
    enum status st = measured(rq, v, 0, MEASURED_SHOWN, &n, &records, err);
    if (st)
        return st;
    html_section(m, "measured", "Measured");
    if (!n)
        markup_leaf(m, "p", "No trial of it has completed.");
    else {
        html_begin(m, "div", "rows");
        html_table_begin(&t, m, "The fastest of its trials first; medians of an iteration", heads);
        for (size_t i = 0; i < n; i++) {
            html_cell(&t, units_format_known_time(records[i].median_us, "", text, sizeof text));
            html_cellf(&t, "%s to %s", units_format_known_time(records[i].low_us, "", text, sizeof text),
                       units_format_known_time(records[i].high_us, "", other, sizeof other));
            html_cell(&t, units_format_known_time(records[i].predicted_us, "", text, sizeof text));
            html_cell(&t, records[i].runner ? records[i].runner : "");
            html_cell_begin(&t);
            if (records[i].session)
                page_link(m, records[i].session, "/sessions/%s", page_escape(rq, records[i].session));
            html_cell_end(&t);
            html_cell(&t, page_stamp(records[i].ended, text));
        }
        html_table_end(&t);
        markup_end(m);
    }
    markup_end(m);
    return ST_OK;
}

static bool is_among(const char *strategy, size_t n, const struct record *records) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(records[i].strategy, strategy))
            return true;
    return false;
}

/* Write a select of the strategies that were measured in this domain, without the strategy `without`. The one that is
 * shown, `chosen` (NULL: none), is in it even if it was not measured. */
static void choice(struct markup *m, const char *words, const char *name, size_t n, const struct record *records,
                   const char *chosen, const char *chosen_name, const char *without) {
    char text[160], time[32];
    page_label_begin(m, words);
    markup_begin(m, "select");
    markup_attribute(m, "name", name);
    if (chosen && !is_among(chosen, n, records))
        page_option(m, chosen, chosen_name, true);
    for (size_t i = 0; i < n; i++) {
        const char *id = records[i].strategy;
        if ((without && !strcmp(id, without)) || is_among(id, i, records))
            continue;
        snprintf(text, sizeof text, "%.100s, %s", records[i].strategy_name ? records[i].strategy_name : "",
                 units_format_known_time(records[i].median_us, "", time, sizeof time));
        page_option(m, id, text, chosen && !strcmp(chosen, id));
    }
    markup_end(m);
    markup_end(m);
}

static enum status comparer(struct request *rq, struct markup *m, struct view *v, struct error *err) {
    static const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.model = v->model.hex,
                                .cluster = v->cluster.hex,
                                .state = &complete,
                                .order = QUERY_BY_measured,
                                .limit = CHOICES,
                                .viewer = request_viewer(rq)};
    struct record *records;
    size_t n;
    bool others = false;
    enum status st = query_collect(v->store, &query, &rq->arena, &n, &records, err);
    for (size_t i = 0; !st && i < n; i++)
        others |= strcmp(records[i].strategy, v->ids[0].hex) != 0;
    if (st || !others)
        return st;
    page_form_begin(m, "get", "/compare", "fields unified");
    if (v->n > 1) {
        choice(m, "First", "a", n, records, v->ids[0].hex, name_of(v, 0), NULL);
        choice(m, "Second", "b", n, records, v->ids[1].hex, name_of(v, 1), NULL);
    } else {
        page_hidden(m, "a", v->ids[0].hex);
        choice(m, "Compare with", "b", n, records, NULL, NULL, v->ids[0].hex);
    }
    page_hidden(m, "model", v->model.hex);
    page_hidden(m, "cluster", v->cluster.hex);
    page_button(m, "Compare", NULL, NULL);
    markup_end(m);
    return ST_OK;
}

/* The prediction, and how long the devices wait. The iteration of the picture may take another time than the mean. */
static void predicted(struct markup *m, const struct chart_timeline *t) {
    char time[32], shown[32];
    units_format_known_time(t->predicted_us > 0 ? t->predicted_us : t->iteration_us, "", time, sizeof time);
    units_format_known_time(t->iteration_us, "", shown, sizeof shown);
    markup_textf(m, "; predicted %s an iteration%s", time, t->weather.seed ? " of those shown" : "");
    if (strcmp(time, shown) != 0)
        markup_textf(m, "; the picture is of one iteration, of %s", shown);
    markup_textf(m, ", waiting for communication %.0f%% of it", 100 * t->waiting_us / t->iteration_us);
}

static void figures(struct markup *m, const struct view *v) {
    char time[32];
    html_begin(m, "p", "soft");
    markup_textf(m, "%s on %s", v->domain->model->name, v->domain->cluster->name);
    if (v->n == 1)
        predicted(m, &v->timelines[0]);
    if (other_rates(v))
        markup_textf(m, "; with %g times the rate of each NIC", v->nic_factor);
    if (v->way)
        markup_textf(m, "; a device holds at most %s (%s)", units_format_bytes(v->memory.peak_bytes, time, sizeof time),
                     v->memory.place);
    markup_end(m);
}

/* ---- pages ---- */

static enum status write_strategy(struct request *rq, struct markup *m, struct view *v, struct error *err) {
    page_begin(rq, m, name_of(v, 0), PAGE_ELSEWHERE);
    markup_begin(m, "header");
    markup_leaf(m, "h1", name_of(v, 0));
    figures(m, v);
    markup_end(m);
    timeline(m, v);
    traits(m, v);
    enum status st = measurements(rq, m, v, err);
    if (!st)
        st = comparer(rq, m, v, err);
    if (st || v->way)
        return st;
    html_begin(m, "p", "more");
    page_link(m, "The strategy as JSON", "/api/v1/strategies/%s", v->ids[0].hex);
    markup_end(m);
    return st;
}

/* Compare the fastest trials of the two strategies in a sentence. */
static enum status verdict(struct request *rq, struct markup *m, struct view *v, struct error *err) {
    double us[2] = {NAN, NAN};
    char a[32], b[32];
    for (size_t k = 0; k < 2; k++) {
        struct record *records;
        size_t n;
        enum status st = measured(rq, v, k, 1, &n, &records, err);
        if (st)
            return st;
        if (n)
            us[k] = records[0].median_us;
    }
    if (isfinite(us[0]) && isfinite(us[1]))
        html_leaff(m, "p", NULL,
                   "Measured, the fastest trial of each: %s and %s; the second takes %.2f of the first’s time.",
                   units_format_known_time(us[0], "", a, sizeof a), units_format_known_time(us[1], "", b, sizeof b),
                   us[1] / us[0]);
    return ST_OK;
}

static enum status write_comparison(struct request *rq, struct markup *m, struct view *v, struct error *err) {
    page_begin(rq, m, "Two strategies", PAGE_ELSEWHERE);
    markup_begin(m, "header");
    markup_begin(m, "h1");
    for (size_t k = 0; k < 2; k++) {
        if (k)
            markup_text(m, " and ");
        page_link(m, name_of(v, k), "/strategies/%s?model=%s&cluster=%s", v->ids[k].hex, v->model.hex, v->cluster.hex);
    }
    markup_end(m);
    figures(m, v);
    markup_end(m);
    enum status st = verdict(rq, m, v, err);
    timeline(m, v);
    traits(m, v);
    return st ? st : comparer(rq, m, v, err);
}

static enum status answer(struct request *rq, struct view *v, const char *const words[2], struct response *rs,
                          struct error *err) {
    struct markup m = {0};
    enum status st = look(rq, v, words, err);
    if (!st)
        st = v->n > 1 ? write_comparison(rq, &m, v, err) : write_strategy(rq, &m, v, err);
    release(v);
    if (!st)
        return page_answer(rq, &m, 200, rs, err);
    markup_release(&m);
    return st;
}

enum status page_strategy(struct request *rq, struct response *rs, struct error *err) {
    return answer(rq, &(struct view){.n = 1}, (const char *const[2]){request_parameter(rq, "id"), NULL}, rs, err);
}

enum status page_way(struct request *rq, struct response *rs, struct error *err) {
    struct view v = {.n = 1, .way = request_parameter(rq, "way"), .wrapped_for = UINT64_MAX};
    double memory;
    enum status st = page_query_number(rq, "memory", -1, 0, &memory, err);
    if (!st)
        st = page_query_number(rq, "nic_factor", 1, 1e-6, &v.nic_factor, err);
    if (!st && (!request_query(rq, "model") || !request_query(rq, "cluster")))
        st = error_set(err, ST_USAGE, "say for what: ?model=NAME&cluster=NAME");
    if (st)
        return st;
    if (memory >= 0 && memory < 0x1p63)
        v.wrapped_for = (uint64_t)memory;
    return answer(rq, &v, (const char *const[2]){0}, rs, err);
}

enum status page_compare(struct request *rq, struct response *rs, struct error *err) {
    const char *const words[2] = {request_query(rq, "a"), request_query(rq, "b")};
    if (!words[0] || !words[1])
        return error_set(err, ST_USAGE, "say which two: /compare?a=STRATEGY&b=STRATEGY");
    return answer(rq, &(struct view){.n = 2}, words, rs, err);
}
