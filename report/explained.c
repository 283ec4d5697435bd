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

static const char *time_text(double us, char out[TIME_ROOM]) {
    return units_format_time(us, out, TIME_ROOM);
}

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
        rank, time_text(a->held_up_us, held), a->n_last, a->n_met, time_text(a->gap_us, by));
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
            time_text(e->most_won_us, most), e->iteration_us / least, time_text(least, left));
    if (floor->known)
        say(s, "On %s no strategy can hide %s of it (docs/lower-bound.md), which leaves at most %s to win.",
            floor->cluster, time_text(floor->exposed_us, left),
            time_text(fmax(e->most_won_us - floor->exposed_us, 0), most));
}

size_t explained_sentences(const struct explanation *e, const struct explained_floor *floor,
                           char out[EXPLAINED_SENTENCES][EXPLAINED_ROOM]) {
    struct sentences s = {.out = out};
    char time[TIME_ROOM];
    say(&s, "%zu rank%s, %zu iterations of %s in the mean, times of the %s.", e->n, e->n > 1 ? "s" : "",
        e->traces[0].n_steps, time_text(e->iteration_us, time), e->traces[0].on_device ? "device" : "processor");
    if (e->meetings.n)
        say(&s,
            e->meetings.one_clock
                ? "All ranks go by one host's clock; the ends of %zu collectives differ by %s in the median."
                : "Clocks are compared by the ends of %zu collectives, which differ by %s in the median.",
            e->meetings.n, time_text(e->meetings.clock_us, time));
    say_late(&s, e);
    say_limit(&s, e, floor);
    return s.n;
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
        markup_textf(m, "%s: %s", time_kind_words(cells[i]), time_text(cell_us * (double)(k - i), time));
        markup_end(m);
        markup_end(m);
    }
}

static double length_of(const struct explanation *e, size_t trace, size_t step) {
    return e->traces[trace].steps[step].end - e->traces[trace].steps[step].start;
}

static enum status put_rows(struct markup *m, const struct explanation *e, const size_t *steps, struct error *err) {
    const double bottom = HEAD + (ROW + GAP) * (double)e->n;
    struct svg_axis x = {0, 0, false, LEFT, RIGHT};
    enum status st = ST_OK;
    for (size_t t = 0; t < e->n; t++)
        x.high = fmax(x.high, length_of(e, t, steps[t]));
    x.high = x.high > 0 ? x.high : 1;
    const struct svg_unit unit = svg_time_unit(x.high);
    svg_begin(m, "iteration", "chart", WIDTH, bottom + AXIS, "What each rank does in an iteration",
              "A row for each rank: compute, exposed communication, waiting for a rank, idle.");
    put_legend(m);
    svg_axis_x(m, &x, unit.us, HEAD, bottom, 10, false);
    svg_text(m, "label", RIGHT, bottom + AXIS - 2, SVG_END, "%s", unit.word);
    for (size_t t = 0; t < e->n && !st; t++) {
        enum time_kind cells[CELLS];
        const double top = HEAD + (ROW + GAP) * (double)t;
        st = explanation_picture(e, t, steps[t], CELLS, cells, err);
        svg_text(m, "label", LEFT - 8, top + ROW - 4, SVG_END, "rank %ld", (long)e->traces[t].rank);
        if (!st)
            put_row(m, cells, &x, length_of(e, t, steps[t]) / CELLS, top);
    }
    markup_end(m);
    return st;
}

static enum status put_picture(struct markup *m, const struct explanation *e, struct error *err) {
    size_t *steps = calloc(e->n, sizeof *steps);
    enum status st = steps ? explained_steps(e, steps, err) : error_no_memory(err);
    if (!st) {
        char title[64];
        snprintf(title, sizeof title, "Iteration %ld", (long)e->traces[0].steps[steps[0]].number);
        html_section(m, "picture", title);
        st = put_rows(m, e, steps, err);
        markup_end(m);
    }
    free(steps);
    return st;
}

/* ---- tables ---- */

static void put_ranks(struct markup *m, const struct explanation *e) {
    static const char *const heads[] = {">rank",
                                        ">iteration",
                                        ">compute",
                                        ">exposed communication",
                                        ">waiting",
                                        ">idle",
                                        ">hidden communication",
                                        ">came last",
                                        ">by",
                                        ">held up others",
                                        NULL};
    struct html_table table;
    char time[TIME_ROOM];
    html_section(m, "ranks", "Ranks");
    html_table_begin(&table, m, "Means over the iterations", heads);
    for (size_t i = 0; i < e->n; i++) {
        const struct rank_account *a = &e->accounts[i];
        html_cellf(&table, "%ld", (long)e->traces[i].rank);
        html_cell(&table, time_text(a->iteration_us, time));
        for (int k = 0; k < TIME_COUNT; k++)
            html_cell(&table, time_text(a->us[k], time));
        html_cell(&table, time_text(a->hidden_us, time));
        html_cellf(&table, "%zu of %zu", a->n_last, a->n_met);
        html_cell(&table, a->n_last ? time_text(a->gap_us, time) : "-");
        html_cell(&table, time_text(a->held_up_us, time));
    }
    html_table_end(&table);
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
        html_cell(&table, time_text(p->time_us.median_us, time));
        html_cellf(&table, "%s..%s", time_text(p->time_us.low_us, low), time_text(p->time_us.high_us, high));
        html_cellf(&table, "%zu", p->time_us.n);
        html_cellf(&table, "%.0f%%", 100 * p->beside);
        html_cell(&table, p->alone ? "alone" : "beside others");
    }
    html_table_end(&table);
    markup_end(m);
}

enum status explained_page(const struct explanation *e, const struct explained_floor *floor, char **out, size_t *length,
                           struct error *err) {
    static const char title[] = "Where an iteration's time went";
    struct markup m = {0};
    char sentences[EXPLAINED_SENTENCES][EXPLAINED_ROOM];
    const size_t n = explained_sentences(e, floor, sentences);
    html_page_begin(&m, title, NULL);
    markup_begin(&m, "header");
    markup_leaf(&m, "h1", title);
    for (size_t i = 0; i < n; i++)
        markup_leaf(&m, "p", sentences[i]);
    markup_end(&m);
    enum status st = put_picture(&m, e, err);
    put_ranks(&m, e);
    put_costs(&m, e);
    html_page_end(&m);
    if (!st)
        return markup_take(&m, out, length, err);
    markup_release(&m);
    return st;
}
