/* Which way of training at which memory: a form for the model, the cluster and the memories, and the answer. Each time
 * leads to the timeline of its iteration, which strategies.c draws. */
#include "tuner/predict/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/charts.h"
#include "report/html.h"
#include "service/http/api/references.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"

/* What is asked; `domain` is NULL where nothing is yet. */
struct question {
    const char *model, *cluster, *memory; /* as the query has them */
    struct id model_id, cluster_id;
    struct prepared_domain *domain;
    struct budgets budgets;
};

struct answer {
    struct advice advice;
    struct change changes[ADVICE_RATES];
};

/* ---- the form ---- */

static enum status form(struct request *rq, struct markup *m, const struct question *q, struct error *err) {
    bool begun;
    enum status st = page_domain_form_begin(rq, m, "/advice", q->domain ? q->model_id.hex : NULL,
                                            q->domain ? q->cluster_id.hex : NULL, &begun, err);
    if (st || !begun)
        return st;
    page_label_begin(m, "Memory of a device, one size or several");
    markup_begin(m, "input");
    markup_attribute(m, "name", "memory");
    markup_attribute(m, "placeholder", "24GB,80GB");
    markup_attribute(m, "value", q->memory ? q->memory : "");
    markup_end(m);
    markup_end(m);
    page_button(m, "Advise", NULL, NULL);
    markup_end(m);
    return ST_OK;
}

/* ---- the answer ---- */

/* A link to the iteration of a strategy; `factor` is that of its NICs' rates. */
static void link_timeline(struct markup *m, const struct question *q, const char *name, uint64_t wrapped_for,
                          double factor, const char *text) {
    char memory[40] = "", rate[40] = "";
    if (wrapped_for != UINT64_MAX)
        snprintf(memory, sizeof memory, "&memory=%llu", (unsigned long long)wrapped_for);
    if (factor < 1 || factor > 1)
        snprintf(rate, sizeof rate, "&nic_factor=%g", factor);
    page_link(m, text, "/advice/%s?model=%s&cluster=%s%s%s", name, q->model_id.hex, q->cluster_id.hex, memory, rate);
}

static void link_candidate(struct markup *m, const struct question *q, const struct advised *c, const char *text) {
    link_timeline(m, q, c->strategy.name, c->wrapped_for, 1, text);
}

static void time_cell(struct html_table *t, const struct question *q, const struct advised *c) {
    char text[32];
    html_cell_begin(t);
    link_candidate(t->m, q, c, units_format_time(advised_us(c), text, sizeof text));
    html_cell_end(t);
}

static void answers(struct markup *m, const struct question *q, const struct advice *a) {
    struct advice_sentence s;
    for (size_t i = 0; advice_sentence(a, &q->budgets, i, &s); i++) {
        markup_begin(m, "p");
        markup_text(m, s.before);
        if (s.of)
            link_candidate(m, q, s.of, s.figures);
        markup_text(m, s.after);
        markup_end(m);
    }
}

static void ways_table(struct markup *m, const struct question *q, const struct advice *a) {
    static const char *const heads[] = {"Way",         "Strategy", "Wrapped for", ">Iteration", ">Memory",
                                        ">Over bound", ">Groups",  "Limited by",  "Id",         NULL};
    struct html_table t;
    char text[64];
    html_table_begin(&t, m, "The fastest first; each time leads to its timeline", heads);
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (!advice_has_row(a, &q->budgets, c))
            continue;
        html_cell(&t, c->kind);
        html_cell(&t, c->strategy.name);
        html_cell(&t, advised_wrapped_for(c, &q->budgets, text, sizeof text));
        time_cell(&t, q, c);
        html_cell(&t, units_format_bytes_finely(advised_bytes(c), text, sizeof text));
        html_cellf(&t, "%.0f%%", advised_over_bound(a, c));
        html_cell(&t, front_groups(c->strategy.n_groups, text, sizeof text));
        html_cell(&t, advised_limit(c, text, sizeof text));
        html_cellf(&t, "%.12s", c->strategy.id.hex);
    }
    html_table_end(&t);
}

/* All candidates as a picture. */
static void front_picture(struct request *rq, struct markup *m, size_t n, const struct front_point *points) {
    struct chart_point drawn[MOST_CANDIDATES];
    for (size_t i = 0; i < n; i++) {
        const char *words = arena_printf(&rq->arena, "%s (%s)", points[i].way, points[i].strategy);
        drawn[i] = (struct chart_point){words ? words : "", (double)points[i].bytes, points[i].iteration_us};
    }
    markup_begin(m, "figure");
    html_begin(m, "div", "scroll");
    markup_attribute(m, "role", "region");
    markup_attribute(m, "tabindex", "0");
    markup_attribute(m, "aria-label", "time against memory");
    chart_front(m, "chart-front", n, drawn);
    markup_end(m);
    markup_leaf(m, "figcaption", "All ways, and FSDP wrapped for some memories between the smallest and the largest.");
    markup_end(m);
}

static void front_table(struct markup *m, const struct question *q, const struct advice *a, size_t n,
                        const struct front_point *points) {
    static const char *const heads[] = {">Memory", ">Iteration", "Way", "Strategy", ">Groups", "Id", NULL};
    struct html_table t;
    char text[64];
    html_table_begin(&t, m, "Nothing that needs less is as fast", heads);
    for (size_t i = 0; i < n; i++) {
        html_cell(&t, units_format_bytes_finely(points[i].bytes, text, sizeof text));
        time_cell(&t, q, advice_find(a, points[i].id));
        html_cell(&t, points[i].way);
        html_cell(&t, points[i].strategy);
        html_cell(&t, front_groups(points[i].n_groups, text, sizeof text));
        html_cellf(&t, "%.12s", points[i].id);
    }
    html_table_end(&t);
}

static void front(struct request *rq, struct markup *m, const struct question *q, const struct advice *a) {
    struct front_point points[MOST_CANDIDATES];
    const size_t n = advice_points(a, points);
    front_picture(rq, m, n, points);
    front_table(m, q, a, front_thin(front_keep(n, points), points), points);
}

static void change_cell(struct html_table *t, const struct question *q, const struct change *change, size_t i) {
    char time[32], text[96];
    html_cell_begin(t);
    if (isfinite(change->us[i])) {
        snprintf(text, sizeof text, "%s, %s", change->kind[i], units_format_time(change->us[i], time, sizeof time));
        link_timeline(t->m, q, change->name[i], change->wrapped_for[i], change->factor, text);
    } else {
        markup_text(t->m, "nothing fits");
    }
    html_cell_end(t);
}

static void changes_table(struct request *rq, struct markup *m, const struct question *q,
                          const struct change *changes) {
    const char *heads[MOST_BUDGETS + 3] = {">NICs", ">Gbit/s"};
    struct html_table t;
    char text[32];
    for (size_t i = 0; i < q->budgets.n; i++) {
        heads[i + 2] = arena_printf(&rq->arena, "With %s", q->budgets.of[i].words);
        heads[i + 2] = heads[i + 2] ? heads[i + 2] : "";
    }
    html_table_begin(&t, m, "The answer for each memory", heads);
    for (size_t r = 0; r < ADVICE_RATES; r++) {
        html_cellf(&t, "×%g", changes[r].factor);
        html_cell(&t, change_rates(&changes[r], text, sizeof text));
        for (size_t i = 0; i < q->budgets.n; i++)
            change_cell(&t, q, &changes[r], i);
    }
    html_table_end(&t);
}

static void write_answer(struct request *rq, struct markup *m, const struct question *q, const struct answer *a) {
    char bound[32];
    html_section(m, "answer", "The answer");
    answers(m, q, &a->advice);
    markup_end(m);
    html_section(m, "ways", "All ways");
    ways_table(m, q, &a->advice);
    html_leaff(
        m, "p", NULL,
        "Memory: the most that a device holds at once, however slow the network is. Over bound: how much longer it "
        "takes%s than %s, the least of the bounds of these ways, which none of them can beat.",
        advice_in_weather(&a->advice) ? " without weather" : "",
        units_format_time(advice_bound_us(&a->advice), bound, sizeof bound));
    markup_end(m);
    html_section(m, "front", "Time against memory");
    front(rq, m, q, &a->advice);
    markup_end(m);
    html_section(m, "rates", "At other rates of the NICs");
    changes_table(rq, m, q, a->changes);
    if (changes_caveat(&a->advice))
        markup_leaf(m, "p", changes_caveat(&a->advice));
    markup_end(m);
}

/* ---- the page ---- */

static enum status read_question(struct request *rq, struct question *q, struct error *err) {
    struct store *store;
    if (!q->model || !q->cluster)
        return ST_OK;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = reference_id(rq, STORE_MODEL, q->model, &q->model_id, err);
    if (!st)
        st = reference_id(rq, STORE_CLUSTER, q->cluster, &q->cluster_id, err);
    if (!st)
        st = prepared_domains_take(rq->service->domains, store, q->model_id.hex, q->cluster_id.hex, &q->domain, err);
    return st;
}

static enum status find_answer(struct question *q, struct answer *a, struct error *err) {
    const struct cluster *cluster = q->domain->cluster;
    enum status st = budgets_read(q->memory, cluster, &q->budgets, err);
    if (!st)
        st = advice_init(&a->advice, q->domain->model, cluster, &q->budgets, err);
    if (st)
        return st;
    st = advice_add_between(&a->advice, err);
    if (!st)
        st = advice_changes(&a->advice, &q->budgets, a->changes, err);
    if (st)
        advice_release(&a->advice);
    return st;
}

/* `why` is what is wrong with the memories; NULL: nothing. `answer` is NULL where nothing is asked yet. */
static enum status write_page(struct request *rq, const struct question *q, const struct error *why,
                              const struct answer *answer, struct response *rs, struct error *err) {
    static const char title[] = "DDP, ZeRO or FSDP";
    struct markup m = {0};
    char detail[ERROR_TEXT_ROOM];
    page_begin(rq, &m, title, PAGE_ADVICE);
    markup_begin(&m, "header");
    markup_leaf(&m, "h1", title);
    if (answer)
        html_leaff(&m, "p", "soft", "%s on %s: %u devices", q->domain->model->name, q->domain->cluster->name,
                   q->domain->cluster->n_devices);
    else
        markup_leaf(
            &m, "p",
            "Which way of training at which memory of a device. Each way is predicted: its time, the most memory "
            "that a device holds at once, and what limits it.");
    markup_end(&m);
    if (why)
        html_leaff(&m, "p", "trouble", "Memory: %s", problem_detail(why, detail));
    enum status st = form(rq, &m, q, err);
    if (!st && answer)
        write_answer(rq, &m, q, answer);
    if (!st)
        return page_answer(rq, &m, why ? 422 : 200, rs, err);
    markup_release(&m);
    return st;
}

enum status page_advice(struct request *rq, struct response *rs, struct error *err) {
    const char *memory = request_query(rq, "memory");
    struct question q = {.model = request_query(rq, "model"),
                         .cluster = request_query(rq, "cluster"),
                         .memory = memory && *memory ? memory : NULL};
    struct answer answer;
    struct error why = {0};
    enum status st = read_question(rq, &q, err);
    if (!st && !q.domain)
        return write_page(rq, &q, NULL, NULL, rs, err);
    if (st)
        return st;
    st = find_answer(&q, &answer, &why);
    if (st == ST_USAGE || st == ST_INVALID || st == ST_INFEASIBLE) {
        st = write_page(rq, &q, &why, NULL, rs, err);
    } else if (st) {
        st = error_pass(err, &why);
    } else {
        st = write_page(rq, &q, NULL, &answer, rs, err);
        advice_release(&answer.advice);
    }
    prepared_domain_drop(q.domain);
    return st;
}
