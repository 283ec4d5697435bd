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
    bool updates;         /* its time is that of a round of updates, and never the fastest */
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

/* Shares of updates by their delay, and the share that was dropped: one or two series side by side. */
enum { CHART_DELAY_SERIES = 2 };
struct chart_delays {
    const char *title;
    size_t n;
    const char *const *labels; /* of each delay, or range of delays */
    size_t n_series;
    struct {
        const char *name;     /* "predicted" */
        const double *shares; /* [n], from 0 to 1 */
        double dropped;
    } series[CHART_DELAY_SERIES];
};
void chart_delays(struct markup *m, const char *id, const struct chart_delays *chart);

/* Time against memory: a dot for each strategy, and the front, those of which all that need no more are slower, as
 * steps. */
struct chart_point {
    const char *words; /* what it is */
    double bytes, us;
};
void chart_front(struct markup *m, const char *id, size_t n, const struct chart_point *points); /* by rising bytes */

/* One iteration, or a few: what each node computes and what travels. CHART_UPDATING is a step of updates alone,
 * CHART_WHOLE all of an iteration's computation, CHART_SLOW that of a worker that the weather slows down. */
enum chart_span_kind {
    CHART_FORWARD,
    CHART_BACKWARD,
    CHART_UPDATING,
    CHART_WHOLE,
    CHART_SLOW,
    CHART_WAITING,
    CHART_MESSAGE
};
enum { CHART_SHADES = 5 };

struct chart_span {
    double start_us, end_us;
    enum chart_span_kind kind;
    unsigned shade;    /* of a message: 0 is what the next forward pass needs first, CHART_SHADES - 1 last; of updates
                          enum chart_update */
    const char *label; /* what it is, or NULL */
};

struct chart_lane {
    const char *node, *what; /* "n1", "compute" */
    size_t n;
    const struct chart_span *spans; /* by rising start */
    size_t before;                  /* of messages: so many had begun before the window, and end in it */
};

/* What travels where whole updates do. */
enum chart_update { CHART_UPDATE, CHART_SUM, CHART_MODEL, CHART_COPY };

/* The rate of a NIC, in one direction, over the window. */
struct chart_rate {
    double from_us, gbit_per_s; /* the first is from 0 on, each holds until the next */
};
struct chart_rates {
    const char *node, *direction; /* "n1", "out" */
    double most_gbit_per_s;       /* the NIC's own */
    size_t n;
    const struct chart_rate *rates;
};

struct chart_timeline {
    const char *name;    /* of the strategy */
    double iteration_us; /* where several are shown, their mean */
    double predicted_us; /* where one is shown, of the steady state: their mean, from which this one may differ; 0: none
                            is known beside iteration_us */
    double window_us;    /* what is shown: 0 .. window_us */
    double waiting_us;   /* of the node whose lanes come first: how long it waits for communication */
    size_t n_lanes;
    const struct chart_lane *lanes;
    size_t hidden;          /* nodes with devices that are not shown */
    const char *updates_of; /* whole updates travel, and workers do not all wait for each other: iterations and waiting
                               are those of this node's worker; NULL: all have the same */
    size_t n_starts;
    const double *starts_us; /* of several iterations: when the first lane begins each but the first */
    struct {
        uint64_t seed;  /* 0: no weather */
        double from_us; /* when the window begins */
        size_t n_rates;
        const struct chart_rates *rates; /* drawn under the lanes */
        size_t hidden;                   /* NICs and directions that are not shown, though slower than their own rate */
    } weather;
};

/* One timeline, or two on one axis with the reference first; in weather with the rates of NICs under each. O(spans *
 * log of how much must be merged). */
void chart_timelines(struct markup *m, const char *id, size_t n, const struct chart_timeline *timelines);

/* A few sentences about what chart_timelines shows, and for two timelines how they differ. */
enum { CHART_WORDS = 1024 };
void chart_timelines_words(size_t n, const struct chart_timeline *timelines, char out[CHART_WORDS]);

#endif
