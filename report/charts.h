/* The pictures of a session: plain numbers in, SVG out. Nothing here knows of the dataset or of JSON.
 *
 * Each function appends one svg element to `m`, described for those who do not see it; `id` is unique in its page.
 * Colours come from html_stylesheet(). Equal input gives equal bytes. Units: microseconds; NaN is not known. */
#ifndef REPORT_CHARTS_H
#define REPORT_CHARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/markup.h"

enum chart_outcome { CHART_COMPLETE, CHART_FAILED, CHART_UNDERWAY };

struct chart_trial {
    uint64_t number;      /* from 1 */
    const char *strategy; /* its name */
    const char *proposer;
    bool baseline, final; /* final: a repeat of a finalist */
    enum chart_outcome outcome;
    double predicted_us, measured_us;
};

/* Every trial in order: its time, the fastest so far, the best baseline and the lower bound. */
struct chart_progress {
    size_t n;
    const struct chart_trial *trials; /* by rising number */
    const char *baseline;             /* name of the best one, or NULL */
    double baseline_us, bound_us;
};
void chart_progress(struct markup *m, const char *id, const struct chart_progress *chart);

/* A dot for each complete trial, predicted against measured time, with the diagonal and a band of 10% around it. */
void chart_accuracy(struct markup *m, const char *id, size_t n, const struct chart_trial *trials);

/* Bars, in the order given: shares from 0 to 1 (larger ones are cut), or counts. */
struct chart_bar {
    const char *words;
    double value, part; /* part <= value is filled darker; NaN: none */
    const char *note;   /* what stands at the bar's end */
};
void chart_bars(struct markup *m, const char *id, const char *title, const char *description, size_t n,
                const struct chart_bar *bars);

/* One iteration: what each node computes and what travels. */
enum chart_span_kind { CHART_FORWARD, CHART_BACKWARD, CHART_WAITING, CHART_MESSAGE };
enum { CHART_SHADES = 5 };

struct chart_span {
    double start_us, end_us;
    enum chart_span_kind kind;
    unsigned shade;    /* of a message: 0 is what the next forward pass needs first, CHART_SHADES - 1 last */
    const char *label; /* what it is, or NULL */
};

struct chart_lane {
    const char *node, *what; /* "n1", "compute" */
    size_t n;
    const struct chart_span *spans; /* by rising start */
};

struct chart_timeline {
    const char *name; /* of the strategy */
    double iteration_us;
    double window_us;  /* what is shown: 0 .. window_us */
    double waiting_us; /* of the node whose lanes come first: how long it waits for communication */
    size_t n_lanes;
    const struct chart_lane *lanes;
    size_t hidden; /* nodes with devices that are not shown */
};

/* One timeline, or two on one axis with the reference first. O(spans * log of how much must be merged). */
void chart_timelines(struct markup *m, const char *id, size_t n, const struct chart_timeline *timelines);

/* A sentence or two about what chart_timelines shows, and for two timelines how they differ, into out[size]. */
void chart_timelines_words(size_t n, const struct chart_timeline *timelines, char *out, size_t size);

#endif
