/* Lanes of boxes over time. Messages that overlap in a lane take the first of a few thin rows that is free, or the one
 * that becomes free first. A picture of a thousand pixels cannot show ten thousand messages: two that are less than
 * `grain` pixels apart become one box if both are thin, or if they have one colour and one of them is thin. The grain
 * doubles until at most BOXES are left. A box has the colour of most of its time. Computation is merged only across
 * gaps of less than a fraction of a pixel, so that waiting time is shown as it is. Rates of NICs are steps under the
 * lanes, as high as their share of the NIC's own rate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/charts.h"
#include "report/svg.h"

enum { BOXES = 800, TITLED = 120, ROWS = 4, CLASSES = CHART_MESSAGE + CHART_SHADES, NAMES = 48, LEGENDS = 12 };
static const double WIDTH = 1000, LEFT = 132, RIGHT = 984, HEAD = 38, COMPUTE_ROW = 16, MESSAGE_ROW = 9, RATE_ROW = 15,
                    LANE_GAP = 7, NODE_GAP = 8, FOOT = 22, AXIS = 44, LEGEND = 20, LEAST_TITLED = 3, THIN = 3,
                    FINEST = 0.4, LEAST_END = 190;

struct box {
    const struct chart_span *span; /* the first in it */
    double end_us;
    size_t n;        /* spans in it */
    double majority; /* time of its class, less that of others */
    unsigned row, class;
};

struct strip { /* a lane, laid out */
    const struct chart_lane *lane;
    unsigned *rows; /* of each span */
    unsigned n_rows;
    double top;
};

struct legend {
    const char *const *classes;
    unsigned n; /* classes, which stand side by side */
    const char *words;
    double x, y; /* y from the first row on */
};

struct picture {
    size_t n;
    const struct chart_timeline *timelines;
    double px_per_us, grain, titled; /* titled: pixels from which on a box has a title */
    struct strip *strips;            /* of all timelines, one after another */
    struct box *boxes;               /* of one lane; as many as the longest has spans */
    size_t n_legends;
    struct legend legends[LEGENDS];
    double bottom, height; /* bottom: where the last timeline ends */
};

static const char *const class_names[CLASSES] = {"forward", "backward", "updating", "whole", "slow", "waiting",
                                                 "m0",      "m1",       "m2",       "m3",    "m4"};
static const char *const rate_class[] = {"rate"};

static unsigned class_of(const struct chart_span *span) {
    return span->kind == CHART_MESSAGE ? CHART_MESSAGE + (span->shade < CHART_SHADES ? span->shade : CHART_SHADES - 1)
                                       : (unsigned)span->kind;
}

static bool has_messages(const struct chart_lane *lane) {
    return lane->n && lane->spans[0].kind == CHART_MESSAGE;
}

/* ---- laying out ---- */

static void take_rows(struct strip *strip) {
    double free_us[ROWS] = {0};
    for (size_t i = 0; i < strip->lane->n; i++) {
        const struct chart_span *span = &strip->lane->spans[i];
        unsigned row = 0;
        for (unsigned r = 1; r < strip->n_rows && free_us[row] > span->start_us + 1e-6; r++)
            if (free_us[r] <= span->start_us + 1e-6 || free_us[r] < free_us[row])
                row = r;
        if (strip->n_rows < ROWS && (!strip->n_rows || free_us[row] > span->start_us + 1e-6))
            row = strip->n_rows++;
        free_us[row] = fmax(free_us[row], span->end_us);
        strip->rows[i] = row;
    }
}

static bool is_one(const struct picture *p, const struct chart_span *span, unsigned class, const struct box *box) {
    const double grain_us = (class < CHART_MESSAGE ? FINEST : p->grain) / p->px_per_us;
    const double thin_us = grain_us * (class < CHART_MESSAGE ? 1 : THIN);
    const bool first = box->end_us - box->span->start_us < thin_us, second = span->end_us - span->start_us < thin_us;
    if (span->start_us - box->end_us >= grain_us)
        return false;
    return class == box->class ? class < CHART_MESSAGE || first || second : first && second;
}

/* The class of most of the time, by a weighted majority vote. */
static void extend(struct box *box, const struct chart_span *span, unsigned class) {
    const double us = span->end_us - span->start_us;
    box->majority += class == box->class ? us : -us;
    if (box->majority < 0) {
        box->class = class;
        box->majority = -box->majority;
    }
    box->end_us = fmax(box->end_us, span->end_us);
    box->n++;
}

/* The boxes of a lane into p->boxes; returns how many. */
static size_t merge(const struct picture *p, const struct strip *strip) {
    size_t n = 0, last[ROWS] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < strip->lane->n; i++) {
        const struct chart_span *span = &strip->lane->spans[i];
        const unsigned row = strip->rows[i], class = class_of(span);
        if (last[row] != SIZE_MAX && is_one(p, span, class, &p->boxes[last[row]])) {
            extend(&p->boxes[last[row]], span, class);
            continue;
        }
        last[row] = n;
        p->boxes[n++] = (struct box){span, span->end_us, 1, span->end_us - span->start_us, row, class};
    }
    return n;
}

static size_t count_strips(const struct picture *p) {
    size_t n = 0;
    for (size_t t = 0; t < p->n; t++)
        n += p->timelines[t].n_lanes;
    return n;
}

static bool is_titled(const struct picture *p, const struct box *box) {
    return (box->end_us - box->span->start_us) * p->px_per_us >= p->titled;
}

/* How many boxes there are, or how many with a title. */
static size_t count_boxes(const struct picture *p, bool titled) {
    const size_t n_strips = count_strips(p);
    size_t n = 0;
    for (size_t s = 0; s < n_strips; s++) {
        const size_t its = merge(p, &p->strips[s]);
        for (size_t i = 0; i < its; i++)
            n += !titled || is_titled(p, &p->boxes[i]);
    }
    return n;
}

static void choose_grain(struct picture *p) {
    p->grain = FINEST;
    p->titled = LEAST_TITLED;
    while (p->grain < WIDTH && count_boxes(p, false) > BOXES * p->n)
        p->grain *= 2;
    while (p->titled < WIDTH && count_boxes(p, true) > TITLED * p->n)
        p->titled *= 1.5;
}

static double height_of(const struct strip *strip) {
    if (!has_messages(strip->lane))
        return COMPUTE_ROW;
    return MESSAGE_ROW * (strip->n_rows ? strip->n_rows : 1);
}

/* Of the rates under the lanes. */
static double height_of_rates(const struct chart_timeline *t) {
    return t->weather.n_rates ? NODE_GAP + (RATE_ROW + LANE_GAP) * (double)t->weather.n_rates : 0;
}

/* Where each lane begins; returns where the timeline ends. */
static double place_strips(const struct chart_timeline *t, struct strip *strips, double top) {
    double y = top + HEAD;
    for (size_t l = 0; l < t->n_lanes; l++) {
        if (l && strcmp(t->lanes[l].node, t->lanes[l - 1].node) != 0)
            y += NODE_GAP;
        strips[l].top = y;
        y += height_of(&strips[l]) + LANE_GAP;
    }
    return y + height_of_rates(t) + FOOT;
}

/* Which classes there are in timelines with whole updates, or in the others. */
static void find_classes(const struct picture *p, bool updates, bool found[CLASSES]) {
    const struct strip *strip = p->strips;
    memset(found, 0, CLASSES * sizeof *found);
    for (size_t t = 0; t < p->n; t++)
        for (size_t l = 0; l < p->timelines[t].n_lanes; l++, strip++)
            for (size_t i = 0; i < strip->lane->n && (p->timelines[t].updates_of != NULL) == updates; i++)
                found[class_of(&strip->lane->spans[i])] = true;
}

static bool any_rates(const struct picture *p) {
    bool any = false;
    for (size_t t = 0; t < p->n; t++)
        any |= p->timelines[t].weather.n_rates > 0;
    return any;
}

static void add_legend(struct picture *p, const char *const *classes, unsigned n, const char *words) {
    p->legends[p->n_legends++] = (struct legend){.classes = classes, .n = n, .words = words};
}

/* From left to right, on as many rows as it takes; returns their height. */
static double place_legends(struct picture *p) {
    double x = LEFT, y = LEGEND;
    for (size_t i = 0; i < p->n_legends; i++) {
        const double width = 16 * p->legends[i].n + 6.2 * (double)strlen(p->legends[i].words) + 22;
        if (x > LEFT && x + width > WIDTH) {
            x = LEFT;
            y += LEGEND;
        }
        p->legends[i].x = x;
        p->legends[i].y = y;
        x += width;
    }
    return y + 10;
}

/* Only what is drawn; returns the height. */
static double choose_legends(struct picture *p) {
    static const char *const words[] = {
        "forward", "backward", "update of parameters", "computing", "slowed down", "waiting for messages", "waiting"};
    static const char *const travelling[] = {"update", "sum of updates", "model", "copies for the replica"};
    bool plain[CLASSES], updates[CLASSES], messages = false;
    find_classes(p, false, plain);
    find_classes(p, true, updates);
    for (unsigned kind = 0; kind < CHART_MESSAGE; kind++)
        if (plain[kind] || updates[kind])
            add_legend(p, class_names + kind, 1, words[kind == CHART_WAITING && !plain[kind] ? CHART_MESSAGE : kind]);
    for (unsigned shade = 0; shade < CHART_SHADES; shade++)
        messages |= plain[CHART_MESSAGE + shade];
    if (messages)
        add_legend(p, class_names + CHART_MESSAGE, CHART_SHADES,
                   "messages: needed first by the next forward pass … last");
    for (unsigned what = 0; what <= CHART_COPY; what++)
        if (updates[CHART_MESSAGE + what])
            add_legend(p, class_names + CHART_MESSAGE + what, 1, travelling[what]);
    if (any_rates(p))
        add_legend(p, rate_class, 1, "rate of a NIC, of its own rate");
    return place_legends(p);
}

static void picture_release(struct picture *p) {
    for (size_t s = 0; p->strips && s < count_strips(p); s++)
        free(p->strips[s].rows);
    free(p->strips);
    free(p->boxes);
}

static bool picture_init(struct picture *p, size_t n, const struct chart_timeline *timelines) {
    double window_us = 0, y = 0;
    size_t most = 0, s = 0;
    *p = (struct picture){.n = n, .timelines = timelines};
    p->strips = calloc(count_strips(p) + 1, sizeof *p->strips);
    for (size_t t = 0; p->strips && t < n; t++) {
        window_us = fmax(window_us, timelines[t].window_us);
        for (size_t l = 0; l < timelines[t].n_lanes; l++, s++) {
            p->strips[s].lane = &timelines[t].lanes[l];
            most = most > timelines[t].lanes[l].n ? most : timelines[t].lanes[l].n;
            if (!(p->strips[s].rows = calloc(timelines[t].lanes[l].n + 1, sizeof *p->strips[s].rows)))
                return false;
            take_rows(&p->strips[s]);
        }
        y = place_strips(&timelines[t], p->strips + s - timelines[t].n_lanes, y);
    }
    p->boxes = calloc(most + 1, sizeof *p->boxes);
    p->px_per_us = window_us > 0 ? (RIGHT - LEFT) / window_us : 1;
    if (!p->strips || !p->boxes)
        return false;
    p->bottom = y;
    p->height = y + AXIS + choose_legends(p);
    choose_grain(p);
    return true;
}

/* ---- drawing ---- */

static void rectangle(struct markup *m, double left, double top, double right, double bottom) {
    svg_path_to(m, 'M', left, top);
    svg_path_to(m, 'H', right, 0);
    svg_path_to(m, 'V', bottom, 0);
    svg_path_to(m, 'H', left, 0);
    svg_path_to(m, 'Z', 0, 0);
}

static void box_path(struct markup *m, const struct picture *p, const struct strip *strip, const struct box *box) {
    const double step = has_messages(strip->lane) ? MESSAGE_ROW : COMPUTE_ROW;
    const double left = LEFT + box->span->start_us * p->px_per_us, top = strip->top + step * box->row;
    const double right = LEFT + box->end_us * p->px_per_us, gap = box->class < CHART_MESSAGE ? 0 : 0.5;
    rectangle(m, left, top, fmax(right - gap, left + 0.5), top + step - 1);
}

static void box_title(struct markup *m, const struct box *box) {
    static const char *const words[] = {"forward", "backward", "updates", "computes", "computes, slowed down",
                                        "waits",   "message"};
    char from[32], took[32];
    markup_begin(m, "title");
    if (box->span->label)
        markup_text(m, box->span->label);
    else
        markup_text(m, words[box->class < CHART_MESSAGE ? box->class : CHART_MESSAGE]);
    if (box->n > 1)
        markup_textf(m, " and %zu more", box->n - 1);
    markup_textf(m, ": %s from %s on", units_format_time(box->end_us - box->span->start_us, took, sizeof took),
                 units_format_time(box->span->start_us, from, sizeof from));
    markup_end(m);
}

/* Boxes with a title one by one, the rest as one path a colour. */
static void draw_strip(struct markup *m, const struct picture *p, const struct strip *strip) {
    const size_t n = merge(p, strip);
    for (unsigned class = 0; class < CLASSES; class ++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            if (p->boxes[i].class != class || is_titled(p, &p->boxes[i]))
                continue;
            if (!any)
                svg_path_begin(m, class_names[class]);
            any = true;
            box_path(m, p, strip, &p->boxes[i]);
        }
        if (any) {
            svg_path_end(m);
            markup_end(m);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_titled(p, &p->boxes[i]))
            continue;
        svg_path_begin(m, class_names[p->boxes[i].class]);
        box_path(m, p, strip, &p->boxes[i]);
        svg_path_end(m);
        box_title(m, &p->boxes[i]);
        markup_end(m);
    }
}

/* ---- rates ---- */

/* Until when the i-th rate holds. */
static double rate_end_us(const struct chart_timeline *t, const struct chart_rates *rates, size_t i) {
    return i + 1 < rates->n ? rates->rates[i + 1].from_us : t->window_us;
}

static double mean_rate(const struct chart_timeline *t, const struct chart_rates *rates) {
    double sum = 0;
    for (size_t i = 0; i < rates->n; i++)
        sum += rates->rates[i].gbit_per_s * (rate_end_us(t, rates, i) - rates->rates[i].from_us);
    return sum / t->window_us;
}

static const char *rate_text(double gbit_per_s, char out[32]) {
    snprintf(out, 32, gbit_per_s < 100 ? "%.3g" : "%.0f", gbit_per_s);
    return out;
}

static void draw_rate(struct markup *m, const struct picture *p, const struct chart_timeline *t,
                      const struct chart_rates *rates, size_t i, double top) {
    const struct chart_rate *rate = &rates->rates[i];
    const double left = LEFT + rate->from_us * p->px_per_us, right = LEFT + rate_end_us(t, rates, i) * p->px_per_us;
    const double share = fmin(rate->gbit_per_s / rates->most_gbit_per_s, 1);
    char from[32], now[32], most[32];
    svg_path_begin(m, rate_class[0]);
    rectangle(m, left, top + RATE_ROW * (1 - share), fmax(right, left + 0.5), top + RATE_ROW);
    svg_path_end(m);
    markup_begin(m, "title");
    markup_textf(m, "%s %s: %s of %s Gbit/s from %s on", rates->node, rates->direction,
                 rate_text(rate->gbit_per_s, now), rate_text(rates->most_gbit_per_s, most),
                 units_format_time(rate->from_us, from, sizeof from));
    markup_end(m);
    markup_end(m);
}

static void draw_rates(struct markup *m, const struct picture *p, const struct chart_timeline *t, double top) {
    for (size_t l = 0; l < t->weather.n_rates; l++) {
        const struct chart_rates *rates = &t->weather.rates[l];
        const double y = top + NODE_GAP + (RATE_ROW + LANE_GAP) * (double)l;
        svg_text(m, "node", 0, y + RATE_ROW / 2 + 4, SVG_START, "%.12s", rates->node);
        svg_text(m, "note", LEFT - 8, y + RATE_ROW / 2 + 4, SVG_END, "%s", rates->direction);
        svg_rectangle_begin(m, "lane", LEFT, y, t->window_us * p->px_per_us, RATE_ROW);
        markup_end(m);
        for (size_t i = 0; i < rates->n; i++)
            draw_rate(m, p, t, rates, i, y);
    }
}

/* ---- a timeline ---- */

static void heading(struct markup *m, const struct chart_timeline *t, double top) {
    char each[32], waiting[32], from[32], weather[96] = "";
    if (t->weather.seed)
        snprintf(weather, sizeof weather, "; weather %llu from %s on", (unsigned long long)t->weather.seed,
                 units_format_time(t->weather.from_us, from, sizeof from));
    svg_text(m, "heading", 0, top + 24, SVG_START, "%.*s: %s an iteration%s%.20s, %s of it waiting%s", NAMES, t->name,
             units_format_time(t->iteration_us, each, sizeof each), t->updates_of ? " on " : "",
             t->updates_of ? t->updates_of : "", units_format_time(t->waiting_us, waiting, sizeof waiting), weather);
    if (t->hidden)
        svg_text(m, "note", RIGHT, top + 24, SVG_END, "%zu more node%s", t->hidden, t->hidden > 1 ? "s" : "");
}

static void draw_lanes(struct markup *m, const struct picture *p, const struct chart_timeline *t,
                       const struct strip *strips) {
    for (size_t l = 0; l < t->n_lanes; l++) {
        const double middle = strips[l].top + height_of(&strips[l]) / 2 + 4;
        if (!l || strcmp(t->lanes[l].node, t->lanes[l - 1].node) != 0)
            svg_text(m, "node", 0, middle, SVG_START, "%.12s", t->lanes[l].node);
        svg_text(m, "note", LEFT - 8, middle, SVG_END, "%s", t->lanes[l].what);
        svg_rectangle_begin(m, "lane", LEFT, strips[l].top - 1, RIGHT - LEFT, height_of(&strips[l]) + 1);
        markup_end(m);
        draw_strip(m, p, &strips[l]);
    }
}

/* Where iterations begin: the next one, or each of several. */
static void draw_starts(struct markup *m, const struct picture *p, const struct chart_timeline *t, double top,
                        double bottom) {
    char text[32];
    for (size_t i = 0; i < t->n_starts; i++) {
        const double x = LEFT + t->starts_us[i] * p->px_per_us;
        svg_line(m, "start", x, top + HEAD - 6, x, bottom - FOOT + 2);
    }
    if (t->n_starts || t->updates_of)
        return;
    const double end = LEFT + fmin(t->iteration_us, t->window_us) * p->px_per_us;
    svg_line(m, "end", end, top + HEAD - 6, end, bottom - FOOT + 2);
    svg_text(m, "end", fmax(end, LEFT + LEAST_END), bottom - FOOT + 14, SVG_END, "next iteration at %s",
             units_format_time(t->iteration_us, text, sizeof text));
}

static void draw_timeline(struct markup *m, const struct picture *p, const struct chart_timeline *t,
                          const struct strip *strips, double top, double bottom) {
    heading(m, t, top);
    draw_lanes(m, p, t, strips);
    draw_rates(m, p, t, bottom - FOOT - height_of_rates(t));
    draw_starts(m, p, t, top, bottom);
}

static void draw_legends(struct markup *m, const struct picture *p, double top) {
    for (size_t i = 0; i < p->n_legends; i++) {
        const struct legend *legend = &p->legends[i];
        double x = legend->x;
        for (unsigned k = 0; k < legend->n; k++, x += 16) {
            svg_path_begin(m, legend->classes[k]);
            rectangle(m, x, top + legend->y - 10, x + 14, top + legend->y);
            svg_path_end(m);
            markup_end(m);
        }
        svg_text(m, "note", x + 4, top + legend->y, SVG_START, "%s", legend->words);
    }
}

static void draw_all(struct markup *m, const struct picture *p) {
    const double bottom = p->bottom;
    const struct svg_axis axis = {0, (RIGHT - LEFT) / p->px_per_us, false, LEFT, RIGHT};
    const struct svg_unit unit = svg_time_unit(axis.high);
    const struct strip *strips = p->strips;
    double top = 0;
    svg_axis_x(m, &axis, unit.us, HEAD - 6, bottom, 11, false);
    svg_text(m, "label", LEFT - 8, bottom + 18, SVG_END, "%s", unit.word);
    for (size_t t = 0; t < p->n; t++) {
        double end = top + HEAD;
        if (p->timelines[t].n_lanes) {
            const struct strip *last = strips + p->timelines[t].n_lanes - 1;
            end = last->top + height_of(last) + LANE_GAP;
        }
        end += height_of_rates(&p->timelines[t]);
        draw_timeline(m, p, &p->timelines[t], strips, top, end + FOOT);
        strips += p->timelines[t].n_lanes;
        top = end + FOOT;
    }
    draw_legends(m, p, bottom + AXIS);
}

/* What the NICs do in the window; nothing without weather. */
static size_t weather_words(const struct chart_timeline *t, char *out, size_t size) {
    char from[32], mean[32], most[32], others[64] = "";
    const struct chart_rates *slowest = t->weather.rates;
    if (!t->weather.seed)
        return 0;
    units_format_time(t->weather.from_us, from, sizeof from);
    if (!t->weather.n_rates)
        return (size_t)snprintf(out, size, " In weather %llu, from %s on, all NICs keep their rates.",
                                (unsigned long long)t->weather.seed, from);
    if (t->weather.hidden)
        snprintf(others, sizeof others, " %zu more NICs have less than their own rate.", t->weather.hidden);
    return (size_t)snprintf(
        out, size, " In weather %llu, from %s on, %.20s has the slowest NIC: %s of %s Gbit/s %s on average.%s",
        (unsigned long long)t->weather.seed, from, slowest->node, rate_text(mean_rate(t, slowest), mean),
        rate_text(slowest->most_gbit_per_s, most), slowest->direction, others);
}

/* An iteration's mean where it is known, and not only that of the one that is shown. */
static double mean_us(const struct chart_timeline *t) {
    return t->predicted_us > 0 ? t->predicted_us : t->iteration_us;
}

static size_t one_in_words(const struct chart_timeline *t, char *out, size_t size) {
    char each[32], shown[32], waiting[32];
    units_format_time(mean_us(t), each, sizeof each);
    units_format_time(t->iteration_us, shown, sizeof shown);
    units_format_time(t->waiting_us, waiting, sizeof waiting);
    if (strcmp(each, shown) != 0)
        return (size_t)snprintf(out, size,
                                "%.*s takes %s an iteration. The one that is shown takes %s; %s of it the devices wait "
                                "for gradients.",
                                NAMES, t->name, each, shown, waiting);
    if (t->updates_of)
        return (size_t)snprintf(out, size, "%.*s takes %s an iteration on %.20s, whose worker waits %s of it.", NAMES,
                                t->name, each, t->updates_of, waiting);
    return (size_t)snprintf(out, size, "%.*s takes %s an iteration; %s of it the devices wait for gradients.", NAMES,
                            t->name, each, waiting);
}

static size_t two_in_words(const struct chart_timeline *first, const struct chart_timeline *second, char *out,
                           size_t size) {
    char a[32], b[32], less[32], x[32], y[32], difference[64] = "no difference";
    const double gain = mean_us(first) - mean_us(second), percent = 100 * fabs(gain) / mean_us(first);
    units_format_time(fabs(gain), less, sizeof less);
    if (percent >= 0.05)
        snprintf(difference, sizeof difference, "%s %s (%.1f%%)", less, gain >= 0 ? "less" : "more", percent);
    return (size_t)snprintf(
        out, size, "%.*s takes %s an iteration and %.*s %s: %s. The devices wait for gradients %s and %s of it.", NAMES,
        first->name, units_format_time(mean_us(first), a, sizeof a), NAMES, second->name,
        units_format_time(mean_us(second), b, sizeof b), difference, units_format_time(first->waiting_us, x, sizeof x),
        units_format_time(second->waiting_us, y, sizeof y));
}

void chart_timelines_words(size_t n, const struct chart_timeline *timelines, char out[CHART_WORDS]) {
    size_t at = 0;
    if (n > 1 && !timelines[0].updates_of && !timelines[1].updates_of) {
        at = two_in_words(&timelines[0], &timelines[1], out, CHART_WORDS);
    } else {
        at = one_in_words(&timelines[0], out, CHART_WORDS);
        if (n > 1) {
            out[at++] = ' ';
            at += one_in_words(&timelines[1], out + at, CHART_WORDS - at);
        }
    }
    for (size_t t = 0; t < n; t++)
        at += weather_words(&timelines[t], out + at, CHART_WORDS - at);
}

void chart_timelines(struct markup *m, const char *id, size_t n, const struct chart_timeline *timelines) {
    struct picture p;
    char words[CHART_WORDS];
    if (picture_init(&p, n, timelines)) {
        chart_timelines_words(n, timelines, words);
        svg_begin(m, id, "chart timeline", WIDTH, p.height,
                  n > 1                                          ? "Two strategies on one time axis"
                  : timelines->n_starts || timelines->updates_of ? "A few iterations of the strategy"
                                                                 : "One iteration of the strategy",
                  words);
        draw_all(m, &p);
        markup_end(m);
    } else {
        m->failed = true;
    }
    picture_release(&p);
}
