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
#include "tuner/search/starts.h"

static void row_cells(struct table *table, const struct tune_row *row, const struct tuning *t) {
    char text[64], low[32], high[32];
    const struct summary *m = &row->measured;
    size_t index = (size_t)(row - t->rows);
    table_cell(table, "%s%s", index == t->best ? "* " : "  ", row->name);
    table_cell(table, "%s", isnan(row->predicted_us) ? "" : units_format_time(row->predicted_us, text, sizeof text));
    if (!m->n) {
        table_cell(table, "%s", record_state_word(row->state));
        table_cell(table, "%.60s", row->reason);
        table_cell(table, "%s", "");
        return;
    }
    table_cell(table, "%s", units_format_time(m->median_us, text, sizeof text));
    table_cell(table, "%s .. %s", units_format_time(m->low_us, low, sizeof low),
               units_format_time(m->high_us, high, sizeof high));
    table_cell(table, "%zu%s", m->n, row->final ? " final" : row->early ? " ended early" : "");
}

static void print_rows(const struct tuning *t) {
    enum { OTHERS = 5 };
    struct table table;
    size_t others = 0;
    table_init(&table,
               (const char *const[]){"  STRATEGY", ">PREDICTED", ">MEASURED", "95% INTERVAL", ">ITERATIONS", NULL});
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].baseline || others++ < OTHERS || i == t->best)
            row_cells(&table, &t->rows[i], t);
    table_print(&table, stdout);
    table_release(&table);
    if (others > OTHERS)
        text_print(stdout, "  and %zu more candidates\n", others - OTHERS);
    if (t->hopeless)
        text_print(stdout, "  %zu more baselines were predicted to take over %g times the fastest, and were not run\n",
                   t->hopeless, STARTS_HOPELESS);
}

/* The one sentence that somebody in a hurry reads. */
static void print_verdict(const struct tuning *t) {
    const struct tune_row *best = &t->rows[t->best];
    char text[32], bound[32];
    units_format_time(best->measured.median_us, text, sizeof text);
    if (t->best_baseline == SIZE_MAX)
        text_print(stdout, "\nUse %s: %s an iteration. No baseline completed to compare it with.\n", best->name, text);
    else if (t->best == t->best_baseline)
        text_print(stdout,
                   "\nNothing to gain: the baseline %s is the fastest of all that was tried, %s an iteration.\n",
                   best->name, text);
    else if (t->overlap)
        text_print(
            stdout,
            "\nNo measurable difference: %s (%s) and the baseline %s are within each other's noise. Keep what you "
            "have.\n",
            best->name, text, t->rows[t->best_baseline].name);
    else
        text_print(stdout, "\nUse %s: %s an iteration, %.2fx as fast as the best baseline, %s.\n", best->name, text,
                   t->speedup, t->rows[t->best_baseline].name);
    units_format_time(t->lower_bound_us, bound, sizeof bound);
    if (t->gap >= 0)
        text_print(stdout, "No strategy can take less than %s here; this one is %.0f%% above that.\n", bound,
                   t->gap * 100);
    else
        text_print(
            stdout,
            "By its description this cluster allows no less than %s: it is faster than described; bench it again.\n",
            bound);
}

static bool best_is_confirmed(const struct tuning *t) {
    return t->rows[t->best].final;
}

/* How far predictions were off, over all that completed. */
static void print_accuracy(const struct tuning *t) {
    double *off = calloc(t->n_rows, sizeof *off);
    size_t n = 0, pairs = 0, right = 0;
    for (size_t i = 0; off && i < t->n_rows; i++) {
        const struct tune_row *a = &t->rows[i];
        if (!a->measured.n || !(a->predicted_us > 0))
            continue;
        off[n++] = fabs(a->predicted_us / a->measured.median_us - 1);
        for (size_t j = 0; j < i; j++) {
            const struct tune_row *b = &t->rows[j];
            if (!b->measured.n || !(b->predicted_us > 0))
                continue;
            pairs++;
            right += (a->predicted_us < b->predicted_us) == (a->measured.median_us < b->measured.median_us);
        }
    }
    if (n > 1)
        text_print(
            stdout,
            "\nPredictions, made before each trial, were off by %.1f%% (median of %zu) and ordered %.0f%% of all pairs "
            "as measured.\n",
            median_of(n, off) * 100, n, 100 * (double)right / (double)pairs);
    free(off);
}

static void print_proposers(const struct tuning *t) {
    struct table table;
    table_init(&table, (const char *const[]){"  PROPOSER", ">TRIALS", ">RECORDS", "HOW", NULL});
    size_t rows = 0;
    for (enum proposer p = 0; p < PROPOSER_COUNT; p++) {
        const struct proposer_score *score = &t->proposers[p];
        if (!score->tried)
            continue;
        table_cell(&table, "  %s", proposer_name(p));
        table_cell(&table, "%lu", (unsigned long)score->tried);
        table_cell(&table, "%lu", (unsigned long)score->wins);
        table_cell(&table, "%s", proposer_words(p));
        rows++;
    }
    if (rows) {
        text_print(stdout, "\nWho earned the trials of the search (a record was faster than all before it):\n");
        table_print(&table, stdout);
    }
    table_release(&table);
}

/* The knobs by falling importance, as bars. */
static void print_importance(const struct tuning *t) {
    enum { BAR = 30 };
    bool shown[SKETCH_KNOBS] = {[SKETCH_TIMELINE] = true};
    if (!t->has_importance)
        return;
    text_print(stdout,
               "\nWhich knobs mattered (share of the variance of measured times that changes with the knob):\n");
    for (;;) {
        enum sketch_knob most = SKETCH_KNOBS;
        for (enum sketch_knob k = 0; k < SKETCH_KNOBS; k++)
            if (!shown[k] && t->importance[k] >= 0.005 &&
                (most == SKETCH_KNOBS || t->importance[k] > t->importance[most]))
                most = k;
        if (most == SKETCH_KNOBS)
            break;
        int filled = (int)(fmin(t->importance[most], 1) * BAR + 0.5);
        text_print(stdout, "  %3.0f%%  %-50s %.*s\n", t->importance[most] * 100, sketch_knob_words(most), filled,
                   "##############################");
        shown[most] = true;
    }
}

void tuning_print(const struct tuning *t, const struct inputs *inputs, const char *standing) {
    text_print(stdout, "%s on %s, session %s, %lu trials; %s\n\n", inputs->model.name, inputs->cluster.name, t->session,
               (unsigned long)t->trials, standing ? standing : tune_stop_words(t->stop));
    print_rows(t);
    print_verdict(t);
    if (!best_is_confirmed(t))
        text_print(stdout,
                   "Not confirmed: no final was run, or none of its trials completed; these are single runs.\n");
    print_accuracy(t);
    print_proposers(t);
    print_importance(t);
}

static bool add_best(cJSON *root, const struct tune_row *best) {
    cJSON *object = cJSON_AddObjectToObject(root, "best");
    return object && cJSON_AddStringToObject(object, "strategy", best->id.hex) &&
           cJSON_AddNumberToObject(object, "measured_us", best->measured.median_us) &&
           cJSON_AddNumberToObject(object, "low_us", best->measured.low_us) &&
           cJSON_AddNumberToObject(object, "high_us", best->measured.high_us);
}

static bool add_baselines(cJSON *root, const struct tuning *t) {
    cJSON *array = cJSON_AddArrayToObject(root, "baselines");
    bool ok = array;
    for (size_t i = 0; i < t->n_rows && ok; i++) {
        const struct tune_row *row = &t->rows[i];
        if (!row->baseline || !row->measured.n)
            continue;
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "name", row->name) &&
             cJSON_AddNumberToObject(object, "measured_us", row->measured.median_us);
    }
    return ok;
}

enum status tuning_print_json(const struct tuning *t, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.tuning/1") &&
              cJSON_AddStringToObject(root, "session", t->session) &&
              cJSON_AddNumberToObject(root, "trials", (double)t->trials) && add_best(root, &t->rows[t->best]) &&
              add_baselines(root, t) &&
              (isnan(t->speedup) ? (bool)cJSON_AddNullToObject(root, "speedup")
                                 : (bool)cJSON_AddNumberToObject(root, "speedup", t->speedup)) &&
              cJSON_AddNumberToObject(root, "lower_bound_us", t->lower_bound_us) &&
              cJSON_AddNumberToObject(root, "gap", t->gap);
    return output_line(root, ok, err);
}

enum status tuning_write_strategy(const struct tuning *t, const struct inputs *inputs, const char *path,
                                  struct error *err) {
    cJSON *json = strategy_write(&t->strategy, &inputs->model, &inputs->cluster);
    char *text = json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return st;
}
