/* See compare_trials.h. */
#include "cli/compare_trials.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/table.h"

enum { ITERATIONS = 20, WARMUP = 2 };

/* Sums until finish(). */
static void add_updates(const struct trial_updates *u, struct compare_measured *m) {
    m->delay_mean += u->delay_mean;
    m->delay_largest = fmax(m->delay_largest, u->delay_largest);
    m->dropped += trial_updates_dropped(u);
}

/* *mean_us is NaN where the trial did not complete. */
static enum status run_one(struct runner *runner, const struct strategy *strategy, uint64_t round,
                           struct compare_measured *m, double *mean_us, struct error *err) {
    const struct tune_runner run = runner_for_session(runner);
    const struct tune_order order = {.strategy = strategy,
                                     .iterations = ITERATIONS,
                                     .warmup = WARMUP,
                                     .number = round,
                                     .weather = runner->cluster->variability.given ? round : 0};
    struct tune_outcome outcome;
    struct summary summary;
    *mean_us = NAN;
    enum status st = run.run(run.context, &order, &outcome, err);
    if (st)
        return st;
    m->trials++;
    if (outcome.state != RECORD_COMPLETE) {
        snprintf(m->reason, sizeof m->reason, "%s", outcome.reason ? outcome.reason : "");
        return ST_OK;
    }
    st = summary_of_copy(outcome.n, outcome.iterations_us, &summary, err);
    if (st)
        return st;
    m->complete++;
    m->mean_us += *mean_us = summary.mean_us;
    if (runner->last.updates)
        add_updates(runner->last.updates, m);
    return ST_OK;
}

/* Against the first strategy's trial of the same round. */
static void add_ratio(double us, double first_us, struct compare_measured *m) {
    const double log_ratio = log(us / first_us);
    if (isnan(log_ratio))
        return;
    m->pairs++;
    m->log_sum += log_ratio;
    m->log_squares += log_ratio * log_ratio;
}

static void finish(struct compare_measured *m) {
    const double n = m->complete ? (double)m->complete : NAN;
    m->mean_us /= n;
    m->delay_mean /= n;
    m->dropped /= n;
    m->ratio = outcome_ratio_of_logs(m->pairs, m->log_sum, m->log_squares);
}

static enum status check(const struct runner *runner, size_t n, const struct strategy *strategies, struct error *err) {
    enum status st = runner->cluster->variability.given ? runner_check_weather(runner, err) : ST_OK;
    for (size_t i = 0; i < n && !st; i++)
        if (!consistency_is_plain(&strategies[i].consistency))
            st = runner_check_updates(runner, err);
    return st;
}

enum status compare_trials_run(const struct inputs *inputs, const struct runner_options *launch, size_t n,
                               const struct strategy *strategies, uint64_t trials, struct compare_measured *out,
                               struct error *err) {
    struct runner runner;
    enum status st = runner_init(&runner, launch, &inputs->model, &inputs->cluster, interrupt_flag(), err);
    if (st)
        return st;
    st = check(&runner, n, strategies, err);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct compare_measured){.has_updates = !consistency_is_plain(&strategies[i].consistency)};
        snprintf(out[i].name, sizeof out[i].name, "%s", strategies[i].name);
    }
    double first_us = NAN, us;
    for (uint64_t round = 1; round <= trials && !st; round++)
        for (size_t i = 0; i < n && !st; i++) {
            st = run_one(&runner, &strategies[i], round, &out[i], &us, err);
            if (i == 0)
                first_us = us;
            else
                add_ratio(us, first_us, &out[i]);
            if (!st)
                log_info("round %lu of %lu: %s", (unsigned long)round, (unsigned long)trials, out[i].name);
        }
    for (size_t i = 0; i < n; i++)
        finish(&out[i]);
    runner_release(&runner);
    return st;
}

void compare_trials_print(size_t n, const struct compare_measured *measured) {
    struct table table;
    char text[32];
    table_init(&table, (const char *const[]){"MEASURED", ">TRIALS", ">MEAN", "OF THE FIRST'S", ">DELAY", ">MOST",
                                             ">DROPPED", "", NULL});
    for (size_t i = 0; i < n; i++) {
        const struct compare_measured *m = &measured[i];
        const bool known = m->has_updates && m->complete;
        table_cell(&table, "%s", m->name);
        table_cell(&table, "%zu", m->complete);
        table_cell(&table, "%s", m->complete ? units_format_time(m->mean_us, text, sizeof text) : "-");
        if (m->ratio.n < 2)
            table_cell(&table, "%s", "-");
        else
            table_cell(&table, "%.3f (%.3f .. %.3f)", m->ratio.mean, m->ratio.low, m->ratio.high);
        if (known) {
            table_cell(&table, "%.1f", m->delay_mean);
            table_cell(&table, "%.0f", m->delay_largest);
            table_cell(&table, "%.1f%%", m->dropped * 100);
        }
        for (int k = 0; k < 3 && !known; k++)
            table_cell(&table, "%s", "-");
        table_cell(&table, "%s", m->reason);
    }
    table_print(&table, stdout);
    table_release(&table);
    text_print(
        stdout,
        "\nMeans of the trials' iterations, or rounds of updates, and over the first strategy's of the same turn, "
        "with a 95%% interval; trials took turns.\n\n");
}

static bool add_row(cJSON *to, const struct compare_measured *m) {
    return cJSON_AddStringToObject(to, "name", m->name) && cJSON_AddNumberToObject(to, "trials", (double)m->trials) &&
           cJSON_AddNumberToObject(to, "complete", (double)m->complete) && json_add_known(to, "mean_us", m->mean_us) &&
           json_add_known(to, "ratio", m->ratio.n > 1 ? m->ratio.mean : NAN) &&
           json_add_known(to, "ratio_low", m->ratio.low) && json_add_known(to, "ratio_high", m->ratio.high) &&
           (!m->has_updates || (json_add_known(to, "delay_mean", m->delay_mean) &&
                                json_add_known(to, "delay_largest", m->complete ? m->delay_largest : NAN) &&
                                json_add_known(to, "dropped_share", m->dropped))) &&
           (!*m->reason || cJSON_AddStringToObject(to, "reason", m->reason));
}

bool compare_trials_write(size_t n, const struct compare_measured *measured, cJSON *to) {
    cJSON *rows = n ? cJSON_AddArrayToObject(to, "measured") : NULL;
    bool ok = !n || rows;
    for (size_t i = 0; i < n && ok; i++) {
        cJSON *row = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(rows, row) && add_row(row, &measured[i]);
    }
    return ok;
}
