/* See tuning_output.h. */
#include "cli/tuning_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/table.h"
#include "strategy/baselines/baselines.h"
#include "tuner/search/starts.h"

/* The columns of a session in weather: measured and predicted mean and 95th percentile, and the quiet time. */
static const char *const weather_columns[] = {"  STRATEGY", ">PREDICTED",   ">95TH",       ">MEASURED", ">95TH",
                                              ">QUIET",     "95% INTERVAL", ">ITERATIONS", NULL};
static const char *const columns[] = {"  STRATEGY", ">PREDICTED", ">MEASURED", "95% INTERVAL", ">ITERATIONS", NULL};

static void time_cell(struct table *table, double us) {
    char text[64];
    table_cell(table, "%s", units_format_known_time(us, "", text, sizeof text));
}

/* What was measured of strategies of updates is no iteration. */
static const char *unit_of(const struct outcome_row *row) {
    return outcome_row_is_of_updates(row) ? " rounds" : "";
}

/* Empty where there is none. */
static void interval_cell(struct table *table, const struct outcome_row *row) {
    char low[32], high[32];
    if (outcome_row_has_interval(row))
        table_cell(table, "%s .. %s", units_format_time(row->measured.low_us, low, sizeof low),
                   units_format_time(row->measured.high_us, high, sizeof high));
    else
        table_cell(table, "%s", "");
}

static void weather_cells(struct table *table, const struct outcome *o, size_t place) {
    const struct outcome_row *row = &o->rows[place];
    const bool expected = row->expected.seeds > 0;
    table_cell(table, "%s%s", place == o->best ? "* " : "  ", row->name);
    time_cell(table, expected ? row->expected.mean_us : row->predicted_us);
    time_cell(table, expected ? row->expected.p95_us : NAN);
    if (row->measured.n)
        time_cell(table, row->us);
    else
        table_cell(table, "%s", record_state_word(row->state));
    time_cell(table, row->p95_us);
    time_cell(table, row->quiet_us);
    if (row->measured.n)
        interval_cell(table, row);
    else
        table_cell(table, "%.60s", row->reason ? row->reason : "");
    table_cell(table, "%zu%s%s", row->measured.n, unit_of(row), row->final ? " final" : "");
}

static void row_cells(struct table *table, const struct outcome *o, size_t place) {
    char text[64];
    const struct outcome_row *row = &o->rows[place];
    const struct summary *m = &row->measured;
    if (o->weather.seed) {
        weather_cells(table, o, place);
        return;
    }
    table_cell(table, "%s%s", place == o->best ? "* " : "  ", row->name);
    table_cell(table, "%s", isnan(row->predicted_us) ? "" : units_format_time(row->predicted_us, text, sizeof text));
    if (!m->n) {
        table_cell(table, "%s", record_state_word(row->state));
        table_cell(table, "%.60s", row->reason ? row->reason : "");
        table_cell(table, "%s", "");
        return;
    }
    table_cell(table, "%s", units_format_time(row->us, text, sizeof text));
    interval_cell(table, row);
    table_cell(table, "%zu%s%s", m->n, unit_of(row), row->final ? " final" : row->early ? " ended early" : "");
}

/* Whether a row is shown. A strategy without an ended trial is shown only while the session goes on. */
static bool is_shown(const struct outcome_row *row, bool goes_on) {
    const bool ended = row->state != RECORD_WAITING && row->state != RECORD_RUNNING && row->state != RECORD_CANCELLED;
    return ended || (goes_on && !outcome_row_is_void(row));
}

/* Baselines in the order of their trials, then the fastest of the others. */
static enum status print_rows(const struct outcome *o, bool goes_on, struct error *err) {
    enum { OTHERS = 5 };
    struct table table;
    size_t others = 0, *order = calloc(o->n_rows + 1, sizeof *order);
    if (!order)
        return error_no_memory(err);
    outcome_order(o, order);
    table_init(&table, o->weather.seed ? weather_columns : columns);
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->rows[i].baseline && is_shown(&o->rows[i], goes_on))
            row_cells(&table, o, i);
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *row = &o->rows[order[i]];
        if (!row->baseline && is_shown(row, goes_on) &&
            (others++ < OTHERS || order[i] == o->best || order[i] == o->weather.quiet || order[i] == o->stale.best))
            row_cells(&table, o, order[i]);
    }
    free(order);
    table_print(&table, stdout);
    table_release(&table);
    if (others > OTHERS)
        text_print(stdout, "  and %zu more candidates\n", others - OTHERS);
    if (o->hopeless)
        text_print(stdout, "  %zu more baselines were predicted to take over %g times the fastest, and were not run\n",
                   o->hopeless, STARTS_HOPELESS);
    return ST_OK;
}

/* The exact schedule that is the fastest, and faster than the best baseline; NULL: none. What it wins belongs to the
 * speed-up (docs/decisions.md), so it is no baseline. */
static const struct outcome_row *faster_exact(const struct outcome *o) {
    const struct outcome_row *found = NULL;
    for (size_t i = 0; i < o->n_rows && o->baseline != SIZE_MAX; i++) {
        const struct outcome_row *row = &o->rows[i];
        const struct baseline *exact = row->proposer ? baselines_find(row->proposer) : NULL;
        if (exact && exact->kind == BASELINE_EXACT && row->measured.n && row->us < o->rows[o->baseline].us &&
            (!found || row->us < found->us))
            found = row;
    }
    return found;
}

static void print_exact(const struct outcome *o) {
    const struct outcome_row *best = &o->rows[o->best], *exact = faster_exact(o);
    char text[32];
    if (exact == best)
        text_print(stdout, "It is an exact schedule, which counts as no baseline.\n");
    else if (exact)
        text_print(stdout, "%s, an exact schedule, which counts as no baseline, took %s: %.2fx as long.\n", exact->name,
                   units_format_time(exact->us, text, sizeof text), exact->us / best->us);
}

/* Print the one sentence that somebody in a hurry reads. */
static void print_verdict(const struct outcome *o) {
    const struct outcome_row *best = &o->rows[o->best];
    char text[32], bound[32];
    units_format_time(best->us, text, sizeof text);
    if (o->baseline == SIZE_MAX)
        text_print(stdout, "\nUse %s: %s an iteration. No baseline completed to compare it with.\n", best->name, text);
    else if (o->best == o->baseline)
        text_print(stdout, "\nNothing to gain: the baseline %s is %s of all that was tried, %s an iteration.\n",
                   best->name, outcome_fastest_words(o), text);
    else if (o->overlap)
        text_print(
            stdout,
            "\nNo measurable difference: %s (%s) and the baseline %s are within each other's noise. Keep what you "
            "have.\n",
            best->name, text, o->rows[o->baseline].name);
    else
        text_print(stdout, "\nUse %s: %s an iteration, %.2fx as fast as the best baseline, %s.\n", best->name, text,
                   o->speedup, o->rows[o->baseline].name);
    print_exact(o);
    units_format_time(o->lower_bound_us, bound, sizeof bound);
    if (o->gap >= 0)
        text_print(stdout, "No strategy can take less than %s here; this one is %.0f%% above that.\n", bound,
                   o->gap * 100);
    else
        text_print(
            stdout,
            "By its description this cluster allows no less than %s: it is faster than described; bench it again.\n",
            bound);
}

/* What the quiet network's best strategy loses here: why a session in weather was worth it. */
static void print_weather(const struct outcome *o) {
    const struct outcome_weather *w = &o->weather;
    const struct outcome_row *best = &o->rows[o->best], *quiet = w->quiet == SIZE_MAX ? NULL : &o->rows[w->quiet];
    char text[32], p95[32];
    text_print(stdout, "In this weather 95 of 100 iterations of it were shorter than %s",
               units_format_time(best->p95_us, p95, sizeof p95));
    if (best->expected.seeds)
        text_print(stdout, "; over %u seeds the simulator expects %s, 95 of 100 below %s", best->expected.seeds,
                   units_format_time(best->expected.mean_us, text, sizeof text),
                   units_format_time(best->expected.p95_us, p95, sizeof p95));
    text_print(stdout, ".\n");
    if (!quiet)
        return;
    units_format_time(quiet->quiet_us, text, sizeof text);
    if (quiet == best) {
        text_print(stdout, "It is also the best on the quiet network, at a predicted %s.\n", text);
        return;
    }
    text_print(stdout, "On the quiet network %s would be the best, at a predicted %s.", quiet->name, text);
    if (!isnan(w->loss.mean))
        text_print(stdout, " Here it takes %.3fx as long as %s", w->loss.mean, best->name);
    if (!isnan(w->loss.low))
        text_print(stdout, " (%.3f .. %.3f, %zu rounds in the same weather each)", w->loss.low, w->loss.high,
                   w->loss.n);
    if (quiet->expected.seeds && best->expected.seeds)
        text_print(stdout, "; predicted %.3fx", quiet->expected.mean_us / best->expected.mean_us);
    text_print(stdout, ".\n");
}

void tuning_print_stale(const struct outcome *o) {
    struct outcome_line lines[OUTCOME_LINES];
    const size_t n = outcome_stale_words(o, lines);
    text_print(stdout, n ? "\n" : "");
    for (size_t i = 0; i < n; i++)
        text_print(stdout, "%s%s\n", lines[i].listed ? "  " : "", lines[i].text);
}

/* In weather a round is one sample. */
static bool best_is_confirmed(const struct outcome *o) {
    const struct outcome_row *best = &o->rows[o->best];
    return best->final && (!o->weather.seed || outcome_row_has_interval(best));
}

/* Print how far predictions were off, over all trials that completed. */
static void print_accuracy(const struct outcome *o) {
    const struct outcome_accuracy *a = &o->accuracy;
    if (a->n > 1)
        text_print(
            stdout,
            "\nPredictions, made before each trial, were off by %.1f%% (median of %zu) and ordered %.0f%% of all pairs "
            "as measured.\n",
            a->off * 100, a->n, 100 * a->ordered);
}

static void print_proposers(const struct outcome *o) {
    struct table table;
    table_init(&table, (const char *const[]){"  PROPOSER", ">TRIALS", ">RECORDS", "HOW", NULL});
    size_t rows = 0;
    for (enum proposer p = 0; p < PROPOSER_COUNT; p++) {
        const struct proposer_score *score = &o->proposers[p];
        if (!score->tried)
            continue;
        table_cell(&table, "  %s", proposer_name(p));
        table_cell(&table, "%lu", (unsigned long)score->tried);
        table_cell(&table, "%lu", (unsigned long)score->wins);
        table_cell(&table, "%s", proposer_label(p));
        rows++;
    }
    if (rows) {
        text_print(stdout, "\nWho earned the trials of the search (a record was faster than all before it):\n");
        table_print(&table, stdout);
    }
    table_release(&table);
}

/* Print the knobs by falling importance, as bars. */
static void print_importance(const struct outcome *o) {
    enum { BAR = 30 };
    bool shown[SKETCH_KNOBS] = {[SKETCH_TIMELINE] = true};
    if (!o->has_importance)
        return;
    text_print(stdout,
               "\nWhich knobs mattered (share of the variance of measured times that changes with the knob):\n");
    for (;;) {
        enum sketch_knob most = SKETCH_KNOBS;
        for (enum sketch_knob k = 0; k < SKETCH_KNOBS; k++)
            if (!shown[k] && o->importance[k] >= 0.005 &&
                (most == SKETCH_KNOBS || o->importance[k] > o->importance[most]))
                most = k;
        if (most == SKETCH_KNOBS)
            break;
        int filled = (int)(fmin(o->importance[most], 1) * BAR + 0.5);
        text_print(stdout, "  %3.0f%%  %-50s %.*s\n", o->importance[most] * 100, sketch_knob_label(most), filled,
                   "##############################");
        shown[most] = true;
    }
}

enum status tuning_print(const struct outcome *o, const struct inputs *inputs, const char *standing,
                         struct error *err) {
    text_print(stdout, "%s on %s, session %s, %lu trials; %s\n\n", inputs->model.name, inputs->cluster.name,
               o->session.id, (unsigned long)o->ended, standing ? standing : tune_stop_label(o->stop));
    enum status st = print_rows(o, standing != NULL, err);
    if (st)
        return st;
    print_verdict(o);
    if (o->weather.seed)
        print_weather(o);
    if (!best_is_confirmed(o))
        text_print(stdout,
                   "Not confirmed: no final was run, or none of its trials completed; these are single runs.\n");
    tuning_print_stale(o);
    print_accuracy(o);
    print_proposers(o);
    print_importance(o);
    return ST_OK;
}

static bool add_best(cJSON *root, const struct outcome_row *best) {
    cJSON *object = cJSON_AddObjectToObject(root, "best");
    return object && cJSON_AddStringToObject(object, "strategy", best->strategy) &&
           cJSON_AddNumberToObject(object, "measured_us", best->us) && json_add_known(object, "p95_us", best->p95_us) &&
           (!best->expected.seeds || expectation_write(&best->expected, object)) &&
           outcome_write_interval(best, object);
}

static bool add_baselines(cJSON *root, const struct outcome *o) {
    cJSON *array = cJSON_AddArrayToObject(root, "baselines");
    bool ok = array;
    for (size_t i = 0; i < o->n_rows && ok; i++) {
        const struct outcome_row *row = &o->rows[i];
        if (!row->baseline || !row->measured.n)
            continue;
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "name", row->name) &&
             cJSON_AddNumberToObject(object, "measured_us", row->us);
    }
    return ok;
}

enum status tuning_print_json(const struct outcome *o, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.tuning/1") &&
              cJSON_AddStringToObject(root, "session", o->session.id) &&
              cJSON_AddNumberToObject(root, "trials", (double)o->ended) && add_best(root, &o->rows[o->best]) &&
              add_baselines(root, o) &&
              (isnan(o->speedup) ? (bool)cJSON_AddNullToObject(root, "speedup")
                                 : (bool)cJSON_AddNumberToObject(root, "speedup", o->speedup)) &&
              cJSON_AddNumberToObject(root, "lower_bound_us", o->lower_bound_us) &&
              cJSON_AddNumberToObject(root, "gap", o->gap) && outcome_write_weather(o, root) &&
              outcome_write_stale(o, root);
    return output_line(root, ok, err);
}

enum status tuning_write_strategy(const struct strategy *strategy, const struct inputs *inputs, const char *path,
                                  struct error *err) {
    cJSON *json = strategy_write(strategy, &inputs->model, &inputs->cluster);
    char *text = json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return st;
}
