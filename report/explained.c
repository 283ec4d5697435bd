/* The picture has a row a rank, each on its own clock from the beginning of its step; cells that are alike are one
 * rectangle. */
#include "report/explained.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "report/html.h"
#include "report/svg.h"

enum { TIME_ROOM = 32, CELLS = 400 };
static const double WIDTH = 1000, LEFT = 84, RIGHT = 984, HEAD = 34, ROW = 16, GAP = 6, AXIS = 30;

/* ---- sentences ---- */

struct sentences {
    char (*out)[EXPLAINED_ROOM];
    size_t n;
};

static void say(struct sentences *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentences *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vformat(s->out[s->n++], EXPLAINED_ROOM, format, args);
    va_end(args);
}

static void say_late(struct sentences *s, const struct explanation *e) {
    char by[TIME_ROOM], held[TIME_ROOM];
    if (e->late == e->n && e->n > 1 && e->meetings.n)
        say(s,
            "No rank is late: the others wait for none for more than 1%% of an iteration, by more than clocks tell.");
    if (e->late == e->n)
        return;
    const struct rank_account *a = &e->accounts[e->late];
    const long rank = (long)e->traces[e->late].rank;
    say(s,
        "Rank %ld is late: the others wait %s of an iteration for it; it comes last to %zu of %zu collectives, "
        "by %s in the median.",
        rank, units_format_time(a->held_up_us, held, sizeof held), a->n_last, a->n_met,
        units_format_time(a->gap_us, by, sizeof by));
    say(s, "No order of messages changes that: look for what rank %ld alone does, such as loading data or more work.",
        rank);
}

static void say_limit(struct sentences *s, const struct explanation *e, const struct explained_floor *floor) {
    const double least = e->iteration_us - e->most_won_us;
    char most[TIME_ROOM], left[TIME_ROOM];
    if (least > 0)
        say(s,
            "Tuning of communication can win at most %s of an iteration (%.2f times as fast): "
            "in the other %s the busiest rank computes or is idle.",
            units_format_time(e->most_won_us, most, sizeof most), e->iteration_us / least,
            units_format_time(least, left, sizeof left));
    if (floor->known)
        say(s, "On %s no strategy can hide %s of it (docs/lower-bound.md), which leaves at most %s to win.",
            floor->cluster, units_format_time(floor->exposed_us, left, sizeof left),
            units_format_time(fmax(e->most_won_us - floor->exposed_us, 0), most, sizeof most));
}

size_t explained_sentences(const struct explanation *e, const struct explained_floor *floor,
                           char out[EXPLAINED_SENTENCES][EXPLAINED_ROOM]) {
    struct sentences s = {.out = out};
    char time[TIME_ROOM];
    say(&s, "%zu rank%s, %zu iterations of %s in the mean, times of the %s.", e->n, e->n > 1 ? "s" : "",
        e->traces[0].n_steps, units_format_time(e->iteration_us, time, sizeof time),
        e->traces[0].on_device ? "device" : "processor");
    if (e->meetings.n)
        say(&s,
            e->meetings.one_clock
                ? "All ranks go by one host's clock; the ends of %zu collectives differ by %s in the median."
                : "Clocks are compared by the ends of %zu collectives, which differ by %s in the median.",
            e->meetings.n, units_format_time(e->meetings.clock_us, time, sizeof time));
    say_late(&s, e);
    say_limit(&s, e, floor);
    return s.n;
}

size_t explained_notes(const struct explanation *e, char out[EXPLAINED_NOTES][EXPLAINED_ROOM]) {
    const struct meetings *m = &e->meetings;
    struct sentences s = {.out = out};
    if (e->numbered && e->n > 1)
        say(&s, "the traces do not tell their ranks, which are numbered in the order given");
    if (e->n == 1)
        say(&s, "one rank's trace does not tell when the others came: waiting for them counts as exposed "
                "communication; give the traces of all ranks");
    else if (!m->n)
        say(&s, "no collective is in several of these traces; profile the same iterations on all ranks");
    if (m->n_unmatched)
        say(&s, "%zu collectives are missing in other ranks' traces and are left out of costs and waiting",
            m->n_unmatched);
    if (m->n_partial)
        say(&s,
            "%zu collectives had more ranks than there are traces: who came last is the last of those given, and "
            "costs are not taken from them",
            m->n_partial);
    if (m->n > m->n_partial && !m->n_points)
        say(&s,
            "the traces do not tell how large messages were; profile with record_shapes=True and a PyTorch that has "
            "Kineto");
    return s.n;
}

/* ---- which ranks ---- */

/* The larger it is, the more the rank stands out. */
typedef double measure(const struct explanation *e, size_t t);

static double by_late(const struct explanation *e, size_t t) {
    return t == e->late ? INFINITY : e->accounts[t].held_up_us;
}
static double by_length(const struct explanation *e, size_t t) {
    return e->accounts[t].iteration_us;
}
static double by_work(const struct explanation *e, size_t t) {
    return e->accounts[t].us[TIME_compute] + e->accounts[t].us[TIME_idle];
}
static double by_exposed(const struct explanation *e, size_t t) {
    return e->accounts[t].us[TIME_exposed];
}
static double by_waiting(const struct explanation *e, size_t t) {
    return e->accounts[t].us[TIME_waiting];
}
/* The nearest to the mean iteration. */
static double by_mean(const struct explanation *e, size_t t) {
    return -fabs(e->accounts[t].iteration_us - e->iteration_us);
}

/* The trace that stands out most among those that have no row yet. There are more traces than rows. */
static size_t most_of_others(const struct explanation *e, measure *by, size_t n, const struct explained_row *taken) {
    size_t best = e->n;
    for (size_t t = 0; t < e->n; t++) {
        size_t k = 0;
        while (k < n && taken[k].trace != t)
            k++;
        if (k == n && (best == e->n || by(e, t) > by(e, best)))
            best = t;
    }
    return best;
}

static int compare_rows(const void *a, const void *b) {
    const struct explained_row *x = a, *y = b;
    return (x->trace > y->trace) - (x->trace < y->trace);
}

size_t explained_rows(const struct explanation *e, struct explained_row out[EXPLAINED_ROWS]) {
    const struct {
        measure *by;
        const char *why;
    } ways[] = {{by_late, e->late < e->n ? "late" : "holds up most"},
                {by_length, "longest iteration"},
                {by_work, "busiest"},
                {by_exposed, "most exposed"},
                {by_waiting, "waits most"},
                {by_mean, "typical"}};
    size_t n = 0;
    for (; e->n <= EXPLAINED_ROWS && n < e->n; n++)
        out[n] = (struct explained_row){n, NULL};
    for (size_t i = 0; e->n > EXPLAINED_ROWS && i < sizeof ways / sizeof *ways; i++) {
        const size_t trace = most_of_others(e, ways[i].by, n, out);
        out[n++] = (struct explained_row){trace, ways[i].why};
    }
    qsort(out, n, sizeof *out, compare_rows);
    return n;
}

/* ---- the picture ---- */

/* The step of that number, or else that of the same place. */
static size_t step_like(const struct rank_trace *trace, int64_t number, size_t place) {
    for (size_t i = 0; i < trace->n_steps; i++)
        if (trace->steps[i].number == number)
            return i;
    return place < trace->n_steps ? place : trace->n_steps - 1;
}

enum status explained_steps(const struct explanation *e, size_t *steps, struct error *err) {
    size_t typical;
    enum status st = explanation_typical_step(&e->traces[0], &typical, err);
    for (size_t t = 0; t < e->n && !st; t++)
        steps[t] = step_like(&e->traces[t], e->traces[0].steps[typical].number, typical);
    return st;
}

static const char *class_of(enum time_kind kind) {
    static const char *const classes[TIME_COUNT] = {
        [TIME_compute] = "whole", [TIME_exposed] = "m1", [TIME_waiting] = "waiting", [TIME_idle] = "lane"};
    return classes[kind];
}

static void put_legend(struct markup *m) {
    double x = LEFT;
    for (int k = 0; k < TIME_COUNT; k++) {
        svg_rectangle_begin(m, class_of((enum time_kind)k), x, 8, 14, 10);
        markup_end(m);
        svg_text(m, "note", x + 20, 17, SVG_START, "%s", time_kind_words((enum time_kind)k));
        x += 190;
    }
}

static void put_row(struct markup *m, const enum time_kind *cells, const struct svg_axis *x, double cell_us,
                    double top) {
    char time[TIME_ROOM];
    for (size_t i = 0, k; i < CELLS; i = k) {
        for (k = i + 1; k < CELLS && cells[k] == cells[i];)
            k++;
        const double from = svg_axis_place(x, cell_us * (double)i), to = svg_axis_place(x, cell_us * (double)k);
        svg_rectangle_begin(m, class_of(cells[i]), from, top, to - from, ROW);
        markup_begin(m, "title");
        markup_textf(m, "%s: %s", time_kind_words(cells[i]),
                     units_format_time(cell_us * (double)(k - i), time, sizeof time));
        markup_end(m);
        markup_end(m);
    }
}

static double length_of(const struct explanation *e, size_t trace, size_t step) {
    return e->traces[trace].steps[step].end - e->traces[trace].steps[step].start;
}

static enum status put_rows(struct markup *m, const struct explanation *e, size_t rows, const struct explained_row *row,
                            const size_t *steps, struct error *err) {
    const double bottom = HEAD + (ROW + GAP) * (double)rows;
    struct svg_axis x = {0, 0, false, LEFT, RIGHT};
    enum status st = ST_OK;
    for (size_t i = 0; i < rows; i++)
        x.high = fmax(x.high, length_of(e, row[i].trace, steps[row[i].trace]));
    x.high = x.high > 0 ? x.high : 1;
    const struct svg_unit unit = svg_time_unit(x.high);
    svg_begin(m, "iteration", "chart timeline", WIDTH, bottom + AXIS, "What each rank does in an iteration",
              "A row for each rank: compute, exposed communication, waiting for a rank, idle.");
    put_legend(m);
    svg_axis_x(m, &x, unit.us, HEAD, bottom, 10, false);
    svg_text(m, "label", RIGHT, bottom + AXIS - 2, SVG_END, "%s", unit.word);
    for (size_t i = 0; i < rows && !st; i++) {
        enum time_kind cells[CELLS];
        const size_t t = row[i].trace;
        const double top = HEAD + (ROW + GAP) * (double)i;
        st = explanation_picture(e, t, steps[t], CELLS, cells, err);
        svg_text(m, "label", LEFT - 8, top + ROW - 4, SVG_END, "rank %ld", (long)e->traces[t].rank);
        if (!st)
            put_row(m, cells, &x, length_of(e, t, steps[t]) / CELLS, top);
    }
    markup_end(m);
    return st;
}

static enum status put_picture(struct markup *m, const struct explanation *e, size_t rows,
                               const struct explained_row *row, struct error *err) {
    size_t *steps = calloc(e->n, sizeof *steps);
    enum status st = steps ? explained_steps(e, steps, err) : error_no_memory(err);
    if (!st) {
        char title[64];
        snprintf(title, sizeof title, "Iteration %ld", (long)e->traces[0].steps[steps[0]].number);
        html_section(m, "picture", title);
        markup_begin(m, "figure");
        html_begin(m, "div", "scroll");
        markup_attribute(m, "role", "region");
        markup_attribute(m, "tabindex", "0");
        markup_attribute(m, "aria-label", "iteration");
        st = put_rows(m, e, rows, row, steps, err);
        markup_end(m);
        markup_end(m);
        markup_end(m);
    }
    free(steps);
    return st;
}

/* ---- tables ---- */

static void put_ranks(struct markup *m, const struct explanation *e, size_t rows, const struct explained_row *row) {
    const char *heads[] = {">rank",
                           ">iteration",
                           ">compute",
                           ">exposed communication",
                           ">waiting",
                           ">idle",
                           ">hidden communication",
                           ">came last",
                           ">by",
                           ">held up others",
                           row[0].why ? "shown as" : NULL,
                           NULL};
    struct html_table table;
    char time[TIME_ROOM];
    html_section(m, "ranks", "Ranks");
    html_table_begin(&table, m, "Means over the iterations", heads);
    for (size_t i = 0; i < rows; i++) {
        const struct rank_account *a = &e->accounts[row[i].trace];
        html_cellf(&table, "%ld", (long)e->traces[row[i].trace].rank);
        html_cell(&table, units_format_time(a->iteration_us, time, sizeof time));
        for (int k = 0; k < TIME_COUNT; k++)
            html_cell(&table, units_format_time(a->us[k], time, sizeof time));
        html_cell(&table, units_format_time(a->hidden_us, time, sizeof time));
        html_cellf(&table, "%zu of %zu", a->n_last, a->n_met);
        html_cell(&table, a->n_last ? units_format_time(a->gap_us, time, sizeof time) : "-");
        html_cell(&table, units_format_time(a->held_up_us, time, sizeof time));
        if (row[i].why)
            html_cell(&table, row[i].why);
    }
    html_table_end(&table);
    if (rows < e->n)
        html_leaff(m, "p", "soft", "%zu of %zu ranks are shown; syncopate explain --json has them all.", rows, e->n);
    markup_end(m);
}

static void put_costs(struct markup *m, const struct explanation *e) {
    static const char *const heads[] = {"collective", ">ranks",          ">bytes", ">time", ">95% within",
                                        ">times",     ">beside compute", "moved",  NULL};
    struct html_table table;
    char time[TIME_ROOM], low[TIME_ROOM], high[TIME_ROOM];
    if (!e->meetings.n_points)
        return;
    html_section(m, "costs", "What collectives cost");
    html_table_begin(&table, m, "From the coming of the last rank on", heads);
    for (size_t i = 0; i < e->meetings.n_points; i++) {
        const struct cost_point *p = &e->meetings.points[i];
        html_cell(&table, p->operation);
        html_cellf(&table, "%u", p->devices);
        html_cellf(&table, "%lu", (unsigned long)p->bytes);
        html_cell(&table, units_format_time(p->time_us.median_us, time, sizeof time));
        html_cellf(&table, "%s..%s", units_format_time(p->time_us.low_us, low, sizeof low),
                   units_format_time(p->time_us.high_us, high, sizeof high));
        html_cellf(&table, "%zu", p->time_us.n);
        html_cellf(&table, "%.0f%%", 100 * p->beside);
        html_cell(&table, p->alone ? "alone" : "beside others");
    }
    html_table_end(&table);
    markup_end(m);
}

enum status explained_write(struct markup *m, const struct explanation *e, const struct explained_floor *floor,
                            struct error *err) {
    char said[EXPLAINED_SENTENCES][EXPLAINED_ROOM], notes[EXPLAINED_NOTES][EXPLAINED_ROOM];
    struct explained_row row[EXPLAINED_ROWS];
    const size_t n = explained_sentences(e, floor, said), n_notes = explained_notes(e, notes),
                 rows = explained_rows(e, row);
    markup_begin(m, "header");
    markup_leaf(m, "h1", EXPLAINED_TITLE);
    for (size_t i = 0; i < n; i++)
        markup_leaf(m, "p", said[i]);
    for (size_t i = 0; i < n_notes; i++)
        html_leaff(m, "p", "soft", "Note: %s.", notes[i]);
    markup_end(m);
    enum status st = put_picture(m, e, rows, row, err);
    put_ranks(m, e, rows, row);
    put_costs(m, e);
    return st;
}

enum status explained_page(const struct explanation *e, const struct explained_floor *floor, char **out, size_t *length,
                           struct error *err) {
    struct markup m = {0};
    html_page_begin(&m, EXPLAINED_TITLE, NULL);
    enum status st = explained_write(&m, e, floor, err);
    html_page_end(&m);
    if (!st)
        return markup_take(&m, out, length, err);
    markup_release(&m);
    return st;
}

/* ---- JSON ---- */

static cJSON *rank_json(const struct explanation *e, size_t i, bool *ok) {
    static const char *const keys[TIME_COUNT] = {"compute_us", "exposed_us", "waiting_us", "idle_us"};
    const struct rank_account *a = &e->accounts[i];
    cJSON *json = cJSON_CreateObject();
    *ok = *ok && json && cJSON_AddNumberToObject(json, "rank", (double)e->traces[i].rank) &&
          cJSON_AddStringToObject(json, "file", e->traces[i].file) &&
          cJSON_AddNumberToObject(json, "iterations", (double)e->traces[i].n_steps) &&
          cJSON_AddNumberToObject(json, "iteration_us", a->iteration_us);
    for (int k = 0; k < TIME_COUNT; k++)
        *ok = *ok && cJSON_AddNumberToObject(json, keys[k], a->us[k]);
    *ok = *ok && cJSON_AddNumberToObject(json, "hidden_us", a->hidden_us) &&
          cJSON_AddNumberToObject(json, "collectives", (double)a->n_met) &&
          cJSON_AddNumberToObject(json, "last", (double)a->n_last) &&
          cJSON_AddNumberToObject(json, "last_by_us", a->gap_us) &&
          cJSON_AddNumberToObject(json, "held_up_us", a->held_up_us);
    return json;
}

static cJSON *cost_json(const struct cost_point *p, bool *ok) {
    cJSON *json = cJSON_CreateObject();
    *ok = *ok && json && cJSON_AddStringToObject(json, "operation", p->operation) &&
          cJSON_AddNumberToObject(json, "devices", p->devices) &&
          cJSON_AddNumberToObject(json, "bytes", (double)p->bytes) &&
          cJSON_AddNumberToObject(json, "time_us", p->time_us.median_us) &&
          cJSON_AddNumberToObject(json, "low_us", p->time_us.low_us) &&
          cJSON_AddNumberToObject(json, "high_us", p->time_us.high_us) &&
          cJSON_AddNumberToObject(json, "times", (double)p->time_us.n) &&
          cJSON_AddBoolToObject(json, "alone", p->alone) && cJSON_AddNumberToObject(json, "beside_compute", p->beside);
    return json;
}

cJSON *explained_json(const struct explanation *e, const struct explained_floor *floor, bool *whole) {
    cJSON *json = cJSON_CreateObject();
    bool ok = json && cJSON_AddStringToObject(json, "schema", "syncopate.explanation/1") &&
              cJSON_AddNumberToObject(json, "iteration_us", e->iteration_us) &&
              cJSON_AddNumberToObject(json, "most_won_us", e->most_won_us) &&
              (!floor->known || cJSON_AddNumberToObject(json, "cannot_hide_us", floor->exposed_us)) &&
              (e->late < e->n ? cJSON_AddNumberToObject(json, "late_rank", (double)e->traces[e->late].rank)
                              : cJSON_AddNullToObject(json, "late_rank")) &&
              cJSON_AddNumberToObject(json, "clock_us", e->meetings.clock_us) &&
              cJSON_AddNumberToObject(json, "collectives", (double)e->meetings.n) &&
              cJSON_AddNumberToObject(json, "unmatched", (double)e->meetings.n_unmatched) &&
              cJSON_AddNumberToObject(json, "partial", (double)e->meetings.n_partial);
    cJSON *ranks = ok ? cJSON_AddArrayToObject(json, "ranks") : NULL;
    cJSON *costs = ok ? cJSON_AddArrayToObject(json, "costs") : NULL;
    ok = ok && ranks && costs;
    for (size_t i = 0; i < e->n && ok; i++)
        ok = cJSON_AddItemToArray(ranks, rank_json(e, i, &ok)) && ok;
    for (size_t i = 0; i < e->meetings.n_points && ok; i++)
        ok = cJSON_AddItemToArray(costs, cost_json(&e->meetings.points[i], &ok)) && ok;
    *whole = ok;
    return json;
}
