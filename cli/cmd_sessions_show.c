/* syncopate sessions show: what a session has found, on one screen; the same from a dataset here as from a service.
 */
#include "cli/cmd_sessions_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/session_findings.h"
#include "cli/table.h"
#include "cli/tuning_output.h"
#include "dataset/sharing.h"

/* ---- for people ---- */

static void print_head(const struct findings *f) {
    const struct stored_session *s = &f->outcome.session;
    text_print(stdout, "session %s is %s%s%s\n", s->id, stored_session_state_word(s->state), s->reason ? ": " : "",
               s->reason ? s->reason : "");
    text_print(stdout, "  %s on %s, trials run by %s, seed %llu\n", f->model.name, f->cluster.name,
               s->mode == STORED_SESSION_ASK ? "those who ask" : "its owner", (unsigned long long)s->seed);
    text_print(stdout, "  begun %.16s%s%.16s, %s%s%sshared with ", s->started, s->ended ? ", ended " : "",
               s->ended ? s->ended : "", s->team ? "team " : "", s->team ? s->team : "", s->team ? ", " : "");
    shared_print_words(s->shared, stdout);
    text_print(stdout, "\n  %lu trials, %lu complete", (unsigned long)s->trials, (unsigned long)s->complete);
    if (f->outcome.budget_trials)
        text_print(stdout, ", of %lu", (unsigned long)f->outcome.budget_trials);
    text_print(stdout, "\n");
    if (s->origin)
        text_print(stdout, "  not opened in this dataset: %s\n", s->origin);
}

static void print_best(const struct findings *f) {
    char median[32], low[32], high[32], bound[32];
    if (f->outcome.best == SIZE_MAX) {
        text_print(stdout, "no trial has completed; to see each: syncopate dataset query --session %s\n",
                   f->outcome.session.id);
        return;
    }
    const struct outcome_row *best = &f->outcome.rows[f->outcome.best];
    text_print(stdout, "best: %s (%.12s), %s an iteration", best->name, best->strategy,
               units_format_known_time(best->us, "", median, sizeof median));
    if (outcome_row_has_interval(best))
        text_print(stdout, ", %s to %s (95%%)", units_format_known_time(best->measured.low_us, "", low, sizeof low),
                   units_format_known_time(best->measured.high_us, "", high, sizeof high));
    text_print(stdout, "\n");
    if (f->outcome.weather.seed)
        text_print(stdout, "  in the mean over its weather, in which 95 of 100 iterations were shorter than %s\n",
                   units_format_known_time(best->p95_us, "", high, sizeof high));
    if (f->outcome.baseline != SIZE_MAX && f->outcome.baseline != f->outcome.best)
        text_print(stdout, "  %.2f times as fast as the best baseline, %s%s\n", f->outcome.speedup,
                   f->outcome.rows[f->outcome.baseline].name,
                   f->outcome.overlap ? "; their intervals overlap: no measurable difference" : "");
    text_print(stdout, "  no strategy takes less than %s\n",
               units_format_known_time(f->outcome.lower_bound_us, "", bound, sizeof bound));
}

static enum status print_strategies(struct findings *f, struct error *err) {
    struct table table;
    char text[32], low[32];
    size_t *places = arena_alloc(&f->arena, f->outcome.n_rows, sizeof *places);
    if (!places)
        return error_no_memory(err);
    outcome_order(&f->outcome, places);
    table_init(&table, (const char *const[]){"STRATEGY", "ID", "PROPOSED BY", ">TRIALS", ">PREDICTED", ">MEASURED",
                                             ">95%", "", NULL});
    for (size_t k = 0; k < f->outcome.n_rows; k++) {
        const struct outcome_row *i = &f->outcome.rows[places[k]];
        table_cell(&table, "%s", i->name);
        table_cell(&table, "%.12s", i->strategy);
        table_cell(&table, "%s", i->proposer ? i->proposer : "");
        table_cell(&table, "%zu", i->trials);
        table_cell(&table, "%s", units_format_known_time(i->predicted_us, "", text, sizeof text));
        table_cell(&table, "%s", i->complete ? units_format_known_time(i->us, "", text, sizeof text) : "");
        if (outcome_row_has_interval(i))
            table_cell(&table, "%s to %s", units_format_known_time(i->measured.low_us, "", low, sizeof low),
                       units_format_known_time(i->measured.high_us, "", text, sizeof text));
        else
            table_cell(&table, "%s", "");
        table_cell(&table, "%s%s%s", i->complete ? i->final ? "final" : "" : record_state_word(i->state),
                   !i->complete && i->reason ? ": " : "", !i->complete && i->reason ? i->reason : "");
    }
    table_print(&table, stdout);
    table_release(&table);
    return ST_OK;
}

static enum status print_session(struct findings *f, struct error *err) {
    print_head(f);
    print_best(f);
    enum status st = f->outcome.n_rows ? print_strategies(f, err) : ST_OK;
    if (!st)
        tuning_print_stale(&f->outcome);
    return st;
}

/* ---- for programs ---- */

static bool add_text(cJSON *to, const char *key, const char *text) {
    return !text || cJSON_AddStringToObject(to, key, text);
}

static bool add_number(cJSON *to, const char *key, double x) {
    return !isfinite(x) || cJSON_AddNumberToObject(to, key, x);
}

static bool add_head(cJSON *to, const struct findings *f) {
    const struct stored_session *s = &f->outcome.session;
    cJSON *shared = shared_json(s->shared);
    if (!shared || !cJSON_AddItemToObject(to, "shared", shared)) {
        cJSON_Delete(shared);
        return false;
    }
    return add_text(to, "schema", "syncopate.session-summary/1") && add_text(to, "session", s->id) &&
           add_text(to, "state", stored_session_state_word(s->state)) && add_text(to, "reason", s->reason) &&
           add_text(to, "mode", stored_session_mode_word(s->mode)) && add_text(to, "model", f->model.id.hex) &&
           add_text(to, "model_name", f->model.name) && add_text(to, "cluster", f->cluster.id.hex) &&
           add_text(to, "cluster_name", f->cluster.name) && add_text(to, "team", s->team) &&
           add_text(to, "started", s->started) && add_text(to, "ended", s->ended) &&
           add_number(to, "trials", (double)s->trials) && add_number(to, "complete", (double)s->complete) &&
           (!f->outcome.budget_trials || add_number(to, "budget_trials", (double)f->outcome.budget_trials)) &&
           add_number(to, "lower_bound_us", f->outcome.lower_bound_us);
}

static enum status print_json(const struct findings *f, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    const bool whole = root && add_head(root, f) && outcome_write(&f->outcome, root);
    return output_line(root, whole, err);
}

/* ---- the command ---- */

static enum status show(const struct remote_options *remote, const char *dataset, const char *session, bool json,
                        struct error *err) {
    struct findings f = {0};
    enum status st = remote->server ? session_findings_there(remote, session, FINDINGS_FIGURES, &f, err)
                                    : session_findings_here(dataset, session, FINDINGS_FIGURES, &f, err);
    if (!st)
        st = json ? print_json(&f, err) : print_session(&f, err);
    findings_release(&f);
    return st;
}

enum status sessions_show(int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    const char *dataset = NULL;
    bool json = false;
    const struct option options[] = {
        REMOTE_OPTIONS(remote),
        {"dataset", OPTION_ONE_OF, &dataset, "FILE", "the dataset that it is in (default " DEFAULT_DATASET ")"},
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object"},
        {0}};
    const struct command_line line = {
        .usage = "sessions show ID [options]",
        .about = "What a session of a dataset here, or of a service, has found: its state, the best strategy so far,\n"
                 "and every strategy that was tried, fastest first.",
        .examples = "  syncopate sessions show 20261121-084117-3fa2n9kq4xw81d7v\n"
                    "  syncopate sessions show 20261121-084117-3fa2n9kq4xw81d7v --server http://127.0.0.1:8642",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_or_here(&remote, dataset, err);
    return st ? st : show(&remote, dataset ? dataset : DEFAULT_DATASET, arguments.items[0], json, err);
}
