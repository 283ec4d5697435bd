/* Every chart has its numbers under it as a table. */
#include "report/report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/version.h"
#include "report/charts.h"
#include "report/html.h"
#include "report/traits.h"
#include "tuner/session/trials.h"

enum { RATES_LISTED = 12 }; /* of one NIC in a table; the picture has them all */

/* "2026-11-21T19:20:54.861Z" as "2026-11-21 19:20 UTC". */
static const char *stamp_text(const char *stamp, char out[32]) {
    if (stamp && strlen(stamp) >= 16)
        snprintf(out, 32, "%.10s %.5s UTC", stamp, stamp + 11);
    else
        snprintf(out, 32, "%.31s", stamp ? stamp : "");
    return out;
}

static void details_begin(struct markup *m, const char *summary) {
    markup_begin(m, "details");
    markup_leaf(m, "summary", summary);
}

/* ---- the answer ---- */

/* The fastest so far, of a session that still runs. */
static void verdict_so_far(struct markup *m, const struct findings *f) {
    char time[32];
    const struct outcome_row *best = &f->outcome.rows[f->outcome.best];
    units_format_known_time(best->us, "", time, sizeof time);
    if (f->outcome.baseline == SIZE_MAX || f->outcome.best == f->outcome.baseline)
        markup_textf(m, "So far: %s, %s an iteration. The session goes on.", best->name, time);
    else
        markup_textf(m, "So far: %s, %s an iteration, %.2f× as fast as the best baseline, %s. The session goes on.",
                     best->name, time, f->outcome.speedup, f->outcome.rows[f->outcome.baseline].name);
}

/* What a session in weather says of the quiet network's best. */
static void weather_words(struct markup *m, const struct findings *f) {
    const struct outcome *o = &f->outcome;
    char quiet[32];
    if (!o->weather.seed || o->best == SIZE_MAX || o->weather.quiet == SIZE_MAX)
        return;
    const struct outcome_row *row = &o->rows[o->weather.quiet];
    html_begin(m, "p", NULL);
    if (o->weather.quiet == o->best) {
        markup_textf(m, "It is also predicted to be the best on the quiet network, at %s.",
                     units_format_known_time(row->quiet_us, "", quiet, sizeof quiet));
    } else {
        markup_textf(m, "On the quiet network %s would be the best, at a predicted %s.", row->name,
                     units_format_known_time(row->quiet_us, "", quiet, sizeof quiet));
        if (!isnan(o->weather.loss.mean))
            markup_textf(m, " In the same weather it takes %.3f times as long as %s.", o->weather.loss.mean,
                         o->rows[o->best].name);
    }
    markup_end(m);
}

/* What a session that may try stale models says of them: a paragraph a line, and lists of the lines that are listed. */
static void stale_words(struct markup *m, const struct findings *f) {
    struct outcome_line lines[OUTCOME_LINES];
    const size_t n = outcome_stale_words(&f->outcome, lines);
    for (size_t i = 0; i < n; i++) {
        if (lines[i].listed && !lines[i - 1].listed)
            markup_begin(m, "ul");
        markup_leaf(m, lines[i].listed ? "li" : "p", lines[i].text);
        if (lines[i].listed && (i + 1 == n || !lines[i + 1].listed))
            markup_end(m);
    }
}

static void verdict(struct markup *m, const struct findings *f) {
    char time[32];
    html_begin(m, "p", "verdict");
    if (f->outcome.best == SIZE_MAX) {
        markup_text(m, "No trial has completed yet.");
    } else if (stored_session_is_open(f->outcome.session.state)) {
        verdict_so_far(m, f);
    } else {
        const struct outcome_row *best = &f->outcome.rows[f->outcome.best];
        units_format_known_time(best->us, "", time, sizeof time);
        if (f->outcome.baseline == SIZE_MAX)
            markup_textf(m, "Use %s: %s an iteration. No baseline was measured to compare it with.", best->name, time);
        else if (f->outcome.best == f->outcome.baseline)
            markup_textf(m, "Nothing to gain: the baseline %s is %s of all that was tried, %s an iteration.",
                         best->name, outcome_fastest_words(&f->outcome), time);
        else if (f->outcome.overlap)
            markup_textf(m,
                         "No measurable difference: %s (%s) and the baseline %s are within each other’s noise. Keep "
                         "what you have.",
                         best->name, time, f->outcome.rows[f->outcome.baseline].name);
        else
            markup_textf(m, "Use %s: %s an iteration, %.2f× as fast as the best baseline, %s.", best->name, time,
                         f->outcome.speedup, f->outcome.rows[f->outcome.baseline].name);
    }
    markup_end(m);
}

static void figure_begin(struct markup *m, const char *what) {
    markup_begin(m, "div");
    markup_leaf(m, "dt", what);
    markup_begin(m, "dd");
}

static void figure_end(struct markup *m, const char *note) {
    if (*note)
        markup_leaf(m, "small", note);
    markup_end(m);
    markup_end(m);
}

static void figure(struct markup *m, const char *what, const char *value, const char *note) {
    figure_begin(m, what);
    markup_text(m, value);
    figure_end(m, note);
}

static void best_figures(struct markup *m, const struct findings *f) {
    char value[64], note[96], low[32], high[32];
    const struct outcome_row *row = &f->outcome.rows[f->outcome.best];
    if (outcome_row_has_interval(row))
        snprintf(note, sizeof note, "%s to %s (95%%)",
                 units_format_known_time(row->measured.low_us, "", low, sizeof low),
                 units_format_known_time(row->measured.high_us, "", high, sizeof high));
    else
        snprintf(note, sizeof note, "measured once: no interval");
    figure(m, f->outcome.weather.seed ? "an iteration in weather, mean" : "an iteration",
           units_format_known_time(row->us, "", value, sizeof value), note);
    if (f->outcome.weather.seed)
        figure(m, "95th percentile", units_format_known_time(row->p95_us, "", value, sizeof value),
               "of its iterations in weather");
    if (f->outcome.baseline != SIZE_MAX && f->outcome.best != f->outcome.baseline) {
        snprintf(value, sizeof value, "%.2f×", f->outcome.speedup);
        if (isnan(f->outcome.speedup_low))
            snprintf(note, sizeof note, "one round in weather has no interval");
        else
            snprintf(note, sizeof note, "%.2f× to %.2f×", f->outcome.speedup_low, f->outcome.speedup_high);
        figure(m, "over the best baseline", value, note);
    }
    const double samples = f->model.batch_per_device * f->cluster.n_devices / row->us * 1e6;
    snprintf(value, sizeof value, samples < 1000 ? "%.1f" : "%.0f", samples);
    figure(m, "samples a second", value, "on all devices");
    if (f->outcome.gap >= 0)
        snprintf(value, sizeof value, "%.0f%%", f->outcome.gap * 100);
    else
        snprintf(value, sizeof value, "%.0f%% below", -f->outcome.gap * 100);
    snprintf(note, sizeof note, "no strategy takes less than %s",
             units_format_known_time(f->outcome.lower_bound_us, "", low, sizeof low));
    figure(m, "above the lower bound", value,
           f->outcome.gap >= 0 ? note : "the cluster is faster than described: bench it");
}

static void trial_figure(struct markup *m, const struct findings *f) {
    char value[64], note[64];
    if (f->outcome.budget_trials)
        snprintf(value, sizeof value, "%zu of %llu", f->outcome.ended, (unsigned long long)f->outcome.budget_trials);
    else
        snprintf(value, sizeof value, "%zu", f->outcome.ended);
    int at = snprintf(note, sizeof note, f->outcome.failed ? "%zu failed" : "none failed", f->outcome.failed);
    if (f->outcome.under_way)
        snprintf(note + at, sizeof note - (size_t)at, ", %zu under way", f->outcome.under_way);
    figure(m, "trials", value, note);
}

static void how_to_get_it(struct markup *m, const struct findings *f, const char *command) {
    const struct outcome_row *best = &f->outcome.rows[f->outcome.best];
    if (!best->final && !stored_session_is_open(f->outcome.session.state))
        html_leaff(m, "p", "soft", "Not confirmed: it was not repeated in a final, so this is a single run.");
    if (best->baseline)
        return;
    markup_leaf(m, "p", "Write it to a file that a training job can use:");
    html_command(m, "%s", command);
}

void report_answer(struct markup *m, const struct findings *f, const char *command) {
    const bool clear = f->outcome.baseline != SIZE_MAX && f->outcome.best != f->outcome.baseline && !f->outcome.overlap;
    html_begin(m, "div", clear ? "answer" : "answer open");
    verdict(m, f);
    weather_words(m, f);
    stale_words(m, f);
    html_begin(m, "dl", "figures");
    if (f->outcome.best != SIZE_MAX)
        best_figures(m, f);
    trial_figure(m, f);
    markup_end(m);
    if (f->outcome.best != SIZE_MAX)
        how_to_get_it(m, f, command);
    else if (f->outcome.n_trials && f->outcome.trials[f->outcome.n_trials - 1].reason)
        html_leaff(m, "p", "soft", "The last one: %s", f->outcome.trials[f->outcome.n_trials - 1].reason);
    markup_end(m);
}

/* ---- progress ---- */

/* Those trials that were faster than all before them: what the step line shows. */
static void records_table(struct markup *m, size_t n, const struct chart_trial *trials) {
    static const char *const heads[] = {">Trial", "Strategy", "Proposed by", ">Measured", NULL};
    struct html_table t;
    double best = INFINITY;
    char text[32];
    details_begin(m, "The steps as a table");
    html_table_begin(&t, m, "Trials that were faster than all before them", heads);
    for (size_t i = 0; i < n; i++) {
        if (trials[i].outcome != CHART_COMPLETE || trials[i].final || trials[i].updates ||
            !(trials[i].measured_us < best))
            continue;
        best = trials[i].measured_us;
        html_cellf(&t, "%llu", (unsigned long long)trials[i].number);
        html_cell(&t, trials[i].strategy);
        html_cell(&t, trials[i].proposer);
        html_cell(&t, units_format_known_time(best, "", text, sizeof text));
    }
    html_table_end(&t);
    markup_end(m);
}

/* A share that counts trials by how far they were off. */
static void offs_table(struct markup *m, size_t n, const struct chart_trial *trials) {
    static const char *const heads[] = {"Predictions off by", ">Trials", NULL};
    static const double limits[] = {0.05, 0.1, 0.2, 0.5, INFINITY};
    static const char *const words[] = {"up to 5%", "5 to 10%", "10 to 20%", "20 to 50%", "more"};
    struct html_table t;
    details_begin(m, "As a table");
    html_table_begin(&t, m, "How far predictions were off", heads);
    for (size_t k = 0; k < 5; k++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            const double off = fabs(trials[i].predicted_us / trials[i].measured_us - 1);
            count += trials[i].outcome == CHART_COMPLETE && off <= limits[k] && (!k || off > limits[k - 1]);
        }
        html_cell(&t, words[k]);
        html_cellf(&t, "%zu", count);
    }
    html_table_end(&t);
    markup_end(m);
}

static void accuracy_words(struct markup *m, const struct outcome_accuracy *a) {
    markup_begin(m, "figcaption");
    markup_textf(m, "Made before each trial. Off by %.1f%% (median of %zu strategies)", a->off * 100, a->n);
    if (a->n > 1)
        markup_textf(m, "; %.0f%% of all pairs were ordered as measured", a->ordered * 100);
    markup_text(m, ". The band is ±10%.");
    markup_end(m);
}

static void progress_words(struct markup *m, const struct findings *f, const struct chart_trial *trials) {
    bool updates = false;
    for (size_t i = 0; i < f->outcome.n_trials; i++)
        updates |= trials[i].updates;
    markup_begin(m, "figcaption");
    markup_text(m, f->outcome.weather.seed
                       ? "Mean iteration time of each trial, in the weather of its round. Repeats of the finalists are "
                         "small and dark; they decide."
                   : f->outcome.collection
                       ? "Median iteration time of each trial, of strategies drawn over the whole space."
                       : "Median iteration time of each trial. Repeats of the finalists are small and dark; they "
                         "decide.");
    if (updates)
        markup_text(m, " Of strategies of updates it is the time of a round; the line leaves them out.");
    markup_end(m);
}

void report_progress(struct markup *m, const struct findings *f, const struct chart_trial *trials) {
    struct chart_progress progress = {
        .n = f->outcome.n_trials, .trials = trials, .baseline_us = NAN, .bound_us = f->outcome.lower_bound_us};
    if (f->outcome.baseline != SIZE_MAX) {
        progress.baseline = f->outcome.rows[f->outcome.baseline].name;
        progress.baseline_us = f->outcome.rows[f->outcome.baseline].us;
    }
    html_section(m, "progress", "Trial by trial");
    html_begin(m, "div", "pair");
    markup_begin(m, "figure");
    chart_progress(m, "chart-progress", &progress);
    progress_words(m, f, trials);
    records_table(m, f->outcome.n_trials, trials);
    markup_end(m);
    if (f->outcome.accuracy.n) {
        markup_begin(m, "figure");
        chart_accuracy(m, "chart-accuracy", f->outcome.n_trials, trials);
        accuracy_words(m, &f->outcome.accuracy);
        offs_table(m, f->outcome.n_trials, trials);
        markup_end(m);
    }
    markup_end(m);
    markup_end(m);
}

/* ---- timelines ---- */

static double busy_us(const struct chart_lane *lane) {
    double sum = 0, until = 0;
    for (size_t i = 0; i < lane->n; i++) {
        if (lane->spans[i].kind == CHART_WAITING)
            continue;
        sum += fmax(lane->spans[i].end_us - fmax(lane->spans[i].start_us, until), 0);
        until = fmax(until, lane->spans[i].end_us);
    }
    return sum;
}

static void busy_table(struct markup *m, size_t n, const struct chart_timeline *timelines) {
    static const char *const heads[] = {"Strategy",          "Where",           "What", ">Busy",
                                        ">Of what is shown", ">Messages begun", NULL};
    struct html_table t;
    char text[32];
    html_table_begin(&t, m, "Busy time in what is shown", heads);
    for (size_t k = 0; k < n; k++)
        for (size_t l = 0; l < timelines[k].n_lanes; l++) {
            const struct chart_lane *lane = &timelines[k].lanes[l];
            const bool messages = lane->n && lane->spans[0].kind == CHART_MESSAGE;
            html_cell(&t, timelines[k].name);
            html_cell(&t, lane->node);
            html_cell(&t, lane->what);
            html_cell(&t, units_format_known_time(busy_us(lane), "", text, sizeof text));
            html_cellf(&t, "%.0f%%", 100 * busy_us(lane) / timelines[k].window_us);
            if (messages)
                html_cellf(&t, "%zu", lane->n - lane->before);
            else
                html_cell(&t, "");
        }
    html_table_end(&t);
}

/* From when on which rate. */
static void rates_table(struct markup *m, size_t n, const struct chart_timeline *timelines) {
    static const char *const heads[] = {"Strategy", "NIC of", "Direction", ">From", ">Gbit/s", ">Of its own", NULL};
    struct html_table t;
    char text[32];
    html_table_begin(&t, m, "The slowest NICs in what is shown", heads);
    for (size_t k = 0; k < n; k++)
        for (size_t l = 0; l < timelines[k].weather.n_rates; l++) {
            const struct chart_rates *rates = &timelines[k].weather.rates[l];
            for (size_t i = 0; i < rates->n && i < RATES_LISTED; i++) {
                html_cell(&t, timelines[k].name);
                html_cell(&t, rates->node);
                html_cell(&t, rates->direction);
                html_cell(&t, units_format_time(rates->rates[i].from_us, text, sizeof text));
                html_cellf(&t, rates->most_gbit_per_s < 100 ? "%.3g" : "%.0f", rates->rates[i].gbit_per_s);
                html_cellf(&t, "%.0f%%", 100 * rates->rates[i].gbit_per_s / rates->most_gbit_per_s);
            }
        }
    html_table_end(&t);
}

void report_lanes_table(struct markup *m, size_t n, const struct chart_timeline *timelines) {
    bool any_rates = false;
    for (size_t k = 0; k < n; k++)
        any_rates |= timelines[k].weather.n_rates > 0;
    details_begin(m, "As a table");
    busy_table(m, n, timelines);
    if (any_rates)
        rates_table(m, n, timelines);
    markup_end(m);
}

static void timelines_caption(struct markup *m, const struct findings *f) {
    char best[32], baseline[32];
    markup_begin(m, "figcaption");
    if (f->outcome.weather.seed)
        markup_textf(
            m,
            "Simulated in weather %llu, around the first change of a rate. Under the lanes: the rates of those "
            "NICs that are slowest there. Measured, in the mean: ",
            (unsigned long long)f->outcome.weather.seed);
    else
        markup_textf(m,
                     "Simulated, with the cluster’s fixed costs times %.2f and its costs by size times %.2f, as this "
                     "session’s trials suggest. Measured: ",
                     f->correction.startup, f->correction.transfer);
    if (f->n_timelines > 1)
        markup_textf(m, "%s and ",
                     units_format_known_time(f->outcome.rows[f->outcome.baseline].us, "", baseline, sizeof baseline));
    markup_textf(m, "%s.", units_format_known_time(f->outcome.rows[f->outcome.best].us, "", best, sizeof best));
    markup_end(m);
}

/* Words, picture and table of one or two; `caption` stands between the last two. */
static void timelines_figure(struct markup *m, const char *id, const char *label, size_t n,
                             const struct chart_timeline *timelines, const struct findings *f,
                             void (*caption)(struct markup *m, const struct findings *f)) {
    char words[CHART_WORDS];
    chart_timelines_words(n, timelines, words);
    html_leaff(m, "p", NULL, "In the simulation %s", words);
    markup_begin(m, "figure");
    html_begin(m, "div", "scroll");
    markup_attribute(m, "role", "region");
    markup_attribute(m, "tabindex", "0");
    markup_attribute(m, "aria-label", label);
    chart_timelines(m, id, n, timelines);
    markup_end(m);
    caption(m, f);
    report_lanes_table(m, n, timelines);
    markup_end(m);
}

static void stale_caption(struct markup *m, const struct findings *f) {
    const struct outcome_row *row = &f->outcome.rows[f->outcome.stale.best];
    char round[32];
    html_leaff(m, "figcaption", NULL, "Simulated. Measured, a round of updates in the mean: %s.",
               units_format_known_time(row->us, "", round, sizeof round));
}

void report_timelines(struct markup *m, const struct findings *f) {
    if (f->n_timelines) {
        html_section(m, "timelines",
                     f->n_timelines > 1 ? "Where the time goes: the best baseline and the best"
                                        : "Where the time goes");
        timelines_figure(m, "chart-timelines", "timelines", f->n_timelines, f->timelines, f, timelines_caption);
        markup_end(m);
    }
    if (f->has_stale) {
        html_section(m, "stale", "Where the time goes with models that may be stale");
        timelines_figure(m, "chart-stale", "timeline with stale models", 1, &f->stale, f, stale_caption);
        markup_end(m);
    }
}

/* ---- the strategy ---- */

static enum status describe(const struct findings *f, size_t k, char out[TRAITS][TRAIT_ROOM], struct error *err) {
    struct plan plan;
    enum status st = plan_lower(&f->model, &f->cluster, &f->strategies[k], &plan, err);
    if (st)
        return st;
    traits_of(&f->strategies[k], &plan, out);
    plan_release(&plan);
    return ST_OK;
}

enum status report_strategy(struct markup *m, const struct findings *f, struct error *err) {
    char traits[2][TRAITS][TRAIT_ROOM];
    struct html_table t;
    enum status st = ST_OK;
    const char *heads[4] = {"Knob"};
    for (size_t k = 0; k < f->n_timelines && !st; k++) {
        heads[k + 1] = f->timelines[k].name;
        st = describe(f, k, traits[k], err);
    }
    if (st || !f->n_timelines)
        return st;
    html_section(m, "strategy", f->n_timelines > 1 ? "What it does differently" : "What it does");
    html_table_begin(&t, m, f->n_timelines > 1 ? "Differences in bold" : "The best strategy", heads);
    for (enum trait trait = 0; trait < TRAITS; trait++) {
        if (!trait_is_shown(trait, f->n_timelines, traits))
            continue;
        const bool differs = f->n_timelines > 1 && strcmp(traits[0][trait], traits[1][trait]) != 0;
        t.row_class = differs ? "best" : NULL;
        html_cell(&t, trait_label(trait));
        for (size_t k = 0; k < f->n_timelines; k++)
            html_cell(&t, traits[k][trait]);
    }
    html_table_end(&t);
    markup_end(m);
    return ST_OK;
}

/* ---- lessons ---- */

static void importance(struct markup *m, const struct findings *f) {
    static const char *const heads[] = {"Knob", ">Share", NULL};
    struct chart_bar bars[SKETCH_KNOBS];
    char notes[SKETCH_KNOBS][16];
    struct html_table t;
    size_t n = 0;
    bool taken[SKETCH_KNOBS] = {[SKETCH_TIMELINE] = true};
    for (;;) {
        size_t most = SKETCH_KNOBS;
        for (size_t k = 0; k < SKETCH_KNOBS; k++)
            if (!taken[k] && f->outcome.importance[k] >= 0.005 &&
                (most == SKETCH_KNOBS || f->outcome.importance[k] > f->outcome.importance[most]))
                most = k;
        if (most == SKETCH_KNOBS)
            break;
        taken[most] = true;
        snprintf(notes[n], sizeof notes[n], "%.0f%%", f->outcome.importance[most] * 100);
        bars[n] =
            (struct chart_bar){sketch_knob_label((enum sketch_knob)most), f->outcome.importance[most], NAN, notes[n]};
        n++;
    }
    markup_begin(m, "figure");
    markup_leaf(m, "h3", "Which knobs mattered");
    chart_bars(m, "chart-importance", "Which knobs mattered", "Share of the variance of measured times by knob.", n,
               bars);
    markup_leaf(m, "figcaption",
                "The share of the variance of measured times that goes with a knob. Shares add up to more than 100% "
                "where knobs work together; with few trials they are a hint.");
    details_begin(m, "As a table");
    html_table_begin(&t, m, "Which knobs mattered", heads);
    for (size_t i = 0; i < n; i++) {
        html_cell(&t, bars[i].words);
        html_cell(&t, bars[i].note);
    }
    html_table_end(&t);
    markup_end(m);
    markup_end(m);
}

static void proposers(struct markup *m, const struct findings *f) {
    static const char *const heads[] = {"Proposer", ">Trials", ">Records", "How", NULL};
    struct chart_bar bars[PROPOSER_COUNT];
    char notes[PROPOSER_COUNT][64];
    struct html_table t;
    for (size_t p = 0; p < PROPOSER_COUNT; p++) {
        const struct proposer_score *score = &f->outcome.proposers[p];
        snprintf(notes[p], sizeof notes[p], "%llu, %llu won", (unsigned long long)score->tried,
                 (unsigned long long)score->wins);
        bars[p] =
            (struct chart_bar){proposer_name((enum proposer)p), (double)score->tried, (double)score->wins, notes[p]};
    }
    markup_begin(m, "figure");
    markup_leaf(m, "h3", "Who earned the trials");
    chart_bars(m, "chart-proposers", "Who earned the trials", "Trials of each proposer and how many of them won.",
               PROPOSER_COUNT, bars);
    markup_leaf(m, "figcaption", "Trials of each proposer; the dark part was faster than all before it.");
    details_begin(m, "As a table");
    html_table_begin(&t, m, "Who earned the trials", heads);
    for (size_t p = 0; p < PROPOSER_COUNT; p++) {
        html_cell(&t, bars[p].words);
        html_cellf(&t, "%.0f", bars[p].value);
        html_cellf(&t, "%.0f", bars[p].part);
        html_cell(&t, proposer_label((enum proposer)p));
    }
    html_table_end(&t);
    markup_end(m);
    markup_end(m);
}

static bool any_proposed(const struct findings *f) {
    for (size_t p = 0; p < PROPOSER_COUNT; p++)
        if (f->outcome.proposers[p].tried)
            return true;
    return false;
}

void report_lessons(struct markup *m, const struct findings *f) {
    if (!f->outcome.has_importance && !any_proposed(f))
        return;
    html_section(m, "lessons", "What the trials teach");
    html_begin(m, "div", "even");
    if (f->outcome.has_importance)
        importance(m, f);
    if (any_proposed(f))
        proposers(m, f);
    markup_end(m);
    markup_end(m);
}

/* ---- the trials ---- */

static void trial_note(struct html_table *t, const struct findings *f, const struct record *r) {
    if (r->state != RECORD_COMPLETE)
        html_cellf(t, "%s%s%s", record_state_word(r->state), r->reason ? ": " : "", r->reason ? r->reason : "");
    else
        html_cell(t, r->round && !f->outcome.collection ? "final"
                     : trial_ended_early(r)             ? "ended early, being too slow"
                                                        : "");
}

static void report_trials(struct markup *m, const struct findings *f) {
    static const char *const heads[] = {">Trial",    "Strategy",      "Id", "Proposed by", ">Predicted",
                                        ">Measured", ">95% interval", "",   NULL};
    struct html_table t;
    char text[32], low[32], high[32];
    html_section(m, "trials", "All trials");
    html_begin(m, "div", "tight");
    html_table_begin(&t, m,
                     f->outcome.weather.seed
                         ? "In the order in which they ran; times are means, the interval is of the median"
                         : "In the order in which they ran; times are medians of an iteration",
                     heads);
    for (size_t i = 0; i < f->outcome.n_trials; i++) {
        const struct record *r = &f->outcome.trials[i];
        const bool complete = r->state == RECORD_COMPLETE;
        t.row_class = f->outcome.best != SIZE_MAX && !strcmp(r->strategy, f->outcome.rows[f->outcome.best].strategy)
                          ? "best"
                      : complete ? NULL
                                 : "bad";
        html_cellf(&t, "%llu", (unsigned long long)r->number);
        html_cell(&t, r->strategy_name);
        html_cellf(&t, "%.12s", r->strategy);
        html_cell(&t, r->proposer);
        html_cell(&t, units_format_known_time(r->predicted_us, "", text, sizeof text));
        const bool by_mean = f->outcome.weather.seed || findings_is_of_updates(f, r);
        html_cell(&t,
                  complete ? units_format_known_time(by_mean ? r->mean_us : r->median_us, "", text, sizeof text) : "");
        html_cellf(&t, "%s%s%s", complete ? units_format_known_time(r->low_us, "", low, sizeof low) : "",
                   complete ? " to " : "", complete ? units_format_known_time(r->high_us, "", high, sizeof high) : "");
        trial_note(&t, f, r);
    }
    html_table_end(&t);
    markup_end(m);
    markup_end(m);
}

/* ---- where it comes from ---- */

static void fact(struct html_table *t, const char *what, const char *value) {
    html_cell(t, what);
    html_cell(t, value ? value : "");
}

static void environment_facts(struct html_table *t, const struct findings *f) {
    const char *text = NULL;
    for (size_t i = f->outcome.n_trials; i-- > 0 && !text;)
        text = f->outcome.trials[i].environment_json;
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    for (const cJSON *member = json ? json->child : NULL; member; member = member->next)
        if (cJSON_IsString(member))
            fact(t, member->string, member->valuestring);
        else if (cJSON_IsNumber(member)) {
            html_cell(t, member->string);
            html_cellf(t, "%.10g", member->valuedouble);
        }
    cJSON_Delete(json);
}

static void budget_fact(struct html_table *t, const struct findings *f) {
    char time[32];
    html_cell(t, "budget");
    html_cell_begin(t);
    if (f->outcome.budget_trials)
        markup_textf(t->m, "%llu trials", (unsigned long long)f->outcome.budget_trials);
    if (f->outcome.budget_trials && f->outcome.budget_us > 0)
        markup_text(t->m, ", ");
    if (f->outcome.budget_us > 0)
        markup_text(t->m, units_format_known_time(f->outcome.budget_us, "", time, sizeof time));
    if (f->outcome.collection)
        markup_text(t->m, "none: a collection");
    html_cell_end(t);
}

static void count_fact(struct html_table *t, const char *what, uint64_t count) {
    html_cell(t, what);
    html_cellf(t, "%llu", (unsigned long long)count);
}

/* What it might try, and what it was limited to: what was not asked for is left out. */
static void limits_facts(struct html_table *t, const struct session_options *o) {
    char text[32];
    if (o->memory_bytes)
        fact(t, "memory of a device, at most", units_format_bytes_finely(o->memory_bytes, text, sizeof text));
    if (o->allow_sharded != SHARDED_none)
        fact(t, "sharded, at most", sharded_name(o->allow_sharded));
    if (o->allow_lossy)
        fact(t, "gradients may lose precision", "yes");
    if (o->allow_stale)
        count_fact(t, "models may be stale by", o->allow_stale);
    if (o->job.export_to)
        fact(t, "can be exported to", o->job.export_to);
    if (o->job.accept)
        fact(t, "may be lost in that", o->job.accept);
    if (o->algorithms)
        fact(t, "algorithms of the runner", o->algorithms);
    count_fact(t, "repeats of a finalist", o->final_rounds);
    if (o->earlier)
        count_fact(t, "learns from earlier trials", o->earlier);
    if (o->ranker)
        fact(t, "ranker", o->ranker);
}

void report_provenance(struct markup *m, const struct findings *f) {
    static const char *const heads[] = {"", "", NULL};
    struct html_table t;
    char bound[32];
    html_section(m, "provenance", "Where this comes from");
    html_table_begin(&t, m, "Enough to repeat it", heads);
    fact(&t, "session", f->outcome.session.id);
    html_cell(&t, "state");
    html_cellf(&t, "%s%s%s", stored_session_state_word(f->outcome.session.state), f->outcome.session.reason ? ": " : "",
               f->outcome.session.reason ? f->outcome.session.reason : "");
    html_cell(&t, "model");
    html_cellf(&t, "%s (%.12s)", f->model.name, f->model.id.hex);
    html_cell(&t, "cluster");
    html_cellf(&t, "%s (%.12s), %u nodes, %u devices", f->cluster.name, f->cluster.id.hex, f->cluster.n_nodes,
               f->cluster.n_devices);
    html_cell(&t, "seed");
    html_cellf(&t, "%llu", (unsigned long long)f->outcome.session.seed);
    budget_fact(&t, f);
    if (!f->outcome.collection)
        limits_facts(&t, &f->options);
    fact(&t, "lower bound", units_format_known_time(f->outcome.lower_bound_us, "", bound, sizeof bound));
    fact(&t, "started", f->outcome.session.started);
    fact(&t, "ended", f->outcome.session.ended);
    fact(&t, "runner of the trials", f->runner);
    environment_facts(&t, f);
    fact(&t, "written by", "syncopate " SYNCOPATE_VERSION);
    html_table_end(&t);
    markup_end(m);
}

/* ---- the whole ---- */

static void head(struct markup *m, const struct findings *f) {
    char title[512], stamp[32];
    snprintf(title, sizeof title, "%.200s on %.200s", f->model.name, f->cluster.name);
    html_page_begin(m, title, NULL);
    markup_begin(m, "header");
    markup_leaf(m, "h1", title);
    html_leaff(m, "p", "soft", "syncopate session %s, %s%s%s", f->outcome.session.id,
               stored_session_state_word(f->outcome.session.state), f->outcome.session.ended ? " " : ", begun ",
               stamp_text(f->outcome.session.ended ? f->outcome.session.ended : f->outcome.session.started, stamp));
    markup_end(m);
}

enum status report_write(struct findings *f, const char *command, char **out, size_t *length, struct error *err) {
    struct markup m = {0};
    const struct chart_trial *trials = findings_trials(f);
    if (!trials)
        return error_no_memory(err);
    head(&m, f);
    report_answer(&m, f, command);
    if (f->outcome.n_trials)
        report_progress(&m, f, trials);
    report_timelines(&m, f);
    report_delays(&m, f->n_delays, f->delays);
    enum status st = report_strategy(&m, f, err);
    report_lessons(&m, f);
    if (f->outcome.n_trials)
        report_trials(&m, f);
    report_provenance(&m, f);
    html_page_end(&m);
    if (!st)
        return markup_take(&m, out, length, err);
    markup_release(&m);
    return st;
}
