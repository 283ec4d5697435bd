/* syncopate train-ranker: a learned ranker from the dataset's trials, kept there with where it comes from. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "trial-runner/launch.h"
#include "tuner/learn/examples.h"
#include "tuner/learn/ranker_fit.h"
#include "tuner/learn/rankers.h"

#define DEFAULT_KIND "trees"

struct request {
    const char *dataset, *kind, *name, *from;
    struct query query;
    uint64_t seed;
    double held_out;
    bool no_residual, list, json;
};

static const char *percent(double share, char *out, size_t n) {
    if (isnan(share))
        return "-";
    snprintf(out, n, "%.1f%%", share * 100);
    return out;
}

/* ---- --list ---- */

static void list_cells(struct table *table, const struct stored_ranker *s) {
    char text[16];
    const struct ranker_origin *o = &s->origin;
    const struct ranker_report *report = s->ranker ? ranker_report_of(s->ranker) : NULL;
    table_cell(table, "%s", s->name);
    table_cell(table, "%.12s", s->id.hex);
    table_cell(table, "%s%s", s->ranker ? ranker_kind_name(ranker_kind_of(s->ranker)) : "(of another version)",
               s->ranker && !ranker_residual(s->ranker) ? ", no residual" : "");
    table_cell(table, "%lu", (unsigned long)o->n_trials);
    if (o->n_domains == 1)
        table_cell(table, "%s on %s", o->domains->model_name, o->domains->cluster_name);
    else
        table_cell(table, "%zu", o->n_domains);
    table_cell(table, "%s", percent(report ? report->training_accuracy : NAN, text, sizeof text));
    table_cell(table, "%s", percent(report ? report->validation_accuracy : NAN, text, sizeof text));
    table_cell(table, "%s", percent(o->held_out_accuracy, text, sizeof text));
    table_cell(table, "%s", percent(o->timeline_accuracy, text, sizeof text));
    table_cell(table, "%.16s", s->created);
}

static void print_list(const struct stored_rankers *list) {
    struct table table;
    table_init(&table, (const char *const[]){"NAME", "ID", "KIND", ">TRIALS", "DOMAINS", ">TRAINING", ">VALIDATION",
                                             ">HELD OUT", ">TIMELINE", "CREATED", NULL});
    for (size_t i = 0; i < list->n; i++)
        list_cells(&table, &list->items[i]);
    table_print(&table, stdout);
    table_release(&table);
}

static enum status list_rankers(const struct request *r, struct error *err) {
    struct store *store;
    struct stored_rankers list;
    enum status st = store_open(r->dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = rankers_list(store, NULL, &list, err);
    if (!st) {
        for (size_t i = 0; i < list.n && r->json && !st; i++) {
            cJSON *json = ranker_describe(&list.items[i]);
            st = output_line(json, json, err);
        }
        if (!r->json && list.n)
            print_list(&list);
        else if (!r->json)
            log_info("%s has no rankers yet; \"syncopate train-ranker\" without --list makes one of its trials",
                     r->dataset);
        stored_rankers_release(&list);
    }
    store_close(store);
    return st;
}

/* ---- training ---- */

static void print_fit(const struct examples *e, const struct ranker_fit *fit) {
    struct table table;
    char text[16];
    table_init(&table, (const char *const[]){"MODEL", "CLUSTER", "RUNNER", ">TRAINED ON", ">HELD OUT", ">RANKER",
                                             ">TIMELINE", NULL});
    for (size_t d = 0; d < e->n_domains; d++) {
        const struct ranker_judgement *j = &fit->domains[d];
        table_cell(&table, "%s", e->domains[d].model.name);
        table_cell(&table, "%s", e->domains[d].cluster.name);
        table_cell(&table, "%s", e->domains[d].runner);
        table_cell(&table, "%zu", j->trained);
        table_cell(&table, "%zu", j->held_out);
        table_cell(&table, "%s", percent(j->ranker_accuracy, text, sizeof text));
        table_cell(&table, "%s", percent(j->timeline_accuracy, text, sizeof text));
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_words(const struct request *r, const struct examples *e, const struct ranker_fit *fit,
                        const struct stored_ranker *stored) {
    char a[16], b[16], time[32];
    const struct ranker_report *report = &fit->report;
    text_print(stdout, "%s ranker%s from %lu trials\n\n", ranker_kind_name(ranker_kind_of(stored->ranker)),
               ranker_residual(stored->ranker) ? ", correcting the timeline," : "",
               (unsigned long)fit->origin.n_trials);
    print_fit(e, fit);
    text_print(stdout,
               "\nPairs of strategies in the right order: %s in training (%zu strategies), %s in validation (%zu).\n",
               percent(report->training_accuracy, a, sizeof a), report->n_training,
               percent(report->validation_accuracy, b, sizeof b), report->n_validation);
    text_print(stdout, "The table is about those %s: %s in all", fit->all.held_out ? "held out" : "trained on",
               percent(fit->all.ranker_accuracy, a, sizeof a));
    text_print(stdout, ", the timeline alone %s.\n", percent(fit->all.timeline_accuracy, b, sizeof b));
    if (report->best_epoch == 0)
        text_print(stdout,
                   "Nothing was learned: no step did better on the validation than the start%s. Another --kind may.\n",
                   ranker_residual(stored->ranker) ? ", which is the timeline" : "");
    text_print(stdout, "Trained in %s; kept in %s as %s (%.12s).\n",
               units_format_time(report->seconds * 1e6, time, sizeof time), r->dataset, stored->name, stored->id.hex);
}

static enum status print_json(const struct ranker_fit *fit, size_t left_out, const struct stored_ranker *stored,
                              struct error *err) {
    cJSON *json = ranker_describe(stored);
    bool whole = json && cJSON_AddNumberToObject(json, "left_out", (double)left_out) &&
                 cJSON_AddNumberToObject(json, "seconds", fit->report.seconds);
    return output_line(json, whole, err);
}

/* Keep it, and read back what was kept, which is then shown. */
static enum status keep(struct store *store, const char *name, const struct ranker_fit *fit, struct stored_ranker *out,
                        struct error *err) {
    char made[RANKER_NAME_ROOM];
    struct id id;
    if (!name) {
        ranker_fit_name(fit, made, sizeof made);
        name = made;
    }
    enum status st = rankers_put(store, name, fit->ranker, &fit->origin, &id, err);
    if (!st)
        st = rankers_get(store, NULL, id.hex, out, err);
    if (!st && strcmp(out->name, name))
        log_warn("these trials and options had made this very ranker before: it keeps its name, %s; \"%s\" is not used",
                 out->name, name);
    return st;
}

static enum status fit_and_keep(struct store *store, const struct request *r, const struct examples *e, size_t left_out,
                                const struct ranker_fit_options *options, struct error *err) {
    struct ranker_fit fit;
    struct stored_ranker stored;
    progress_say("training on %zu strategies", e->n);
    enum status st = ranker_fit_run(e, options, &fit, err);
    progress_end();
    if (st)
        return st;
    st = keep(store, r->name, &fit, &stored, err);
    if (!st) {
        if (r->json)
            st = print_json(&fit, left_out, &stored, err);
        else
            print_words(r, e, &fit, &stored);
        stored_ranker_release(&stored);
    }
    ranker_fit_release(&fit);
    return st;
}

/* A dataset may hold trials of runners that this program does not know. */
static enum status check_runner(struct store *store, const struct request *r, struct error *err) {
    enum launcher_kind place;
    uint64_t n;
    if (!r->query.runner || launcher_parse(r->query.runner, &place))
        return ST_OK;
    enum status st = query_count(store, &(struct query){.runner = r->query.runner}, &n, err);
    if (st || n)
        return st;
    return error_set(
        err, ST_USAGE,
        "--runner: \"%s\" is none of lab, local, mpirun, slurm, and %s has no trials of a runner of that name",
        r->query.runner, r->dataset);
}

static enum status load_and_train(struct store *store, const struct request *r,
                                  const struct ranker_fit_options *options, struct error *err) {
    struct examples examples;
    uint64_t n;
    size_t left_out;
    enum status st = check_runner(store, r, err);
    if (!st)
        st = query_count(store, &r->query, &n, err);
    if (st)
        return st;
    progress_say("reading %zu trials", n);
    st = examples_load(store, &r->query, &examples, &left_out, err);
    progress_end();
    if (st)
        return st;
    if (left_out)
        log_warn("%zu trials are left out: their strategies cannot be predicted any more", left_out);
    st = fit_and_keep(store, r, &examples, left_out, options, err);
    examples_release(&examples);
    return st;
}

/* The options of the training. With --from the kind, the form and the options that belong to them are those of that
 * ranker. */
static struct ranker_options training_options(const struct request *r, enum ranker_kind kind, bool residual) {
    struct ranker_options o = ranker_default_options(kind);
    o.seed = r->seed;
    o.residual = residual;
    o.cancel = interrupt_flag();
    return o;
}

static enum status train(const struct request *r, enum ranker_kind kind, struct error *err) {
    struct store *store;
    struct stored_ranker from = {.ranker = NULL};
    struct ranker_fit_options options = {training_options(r, kind, !r->no_residual), NULL, r->held_out};
    if (!store_may_be_there(r->dataset))
        return error_at(err, ST_NOT_FOUND, r->dataset,
                        "no such dataset; --dataset names one with trials (tune, collect and \"trial --dataset\" "
                        "record them)");
    enum status st = store_open(r->dataset, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    if (r->from && !(st = rankers_get(store, NULL, r->from, &from, err))) {
        options.training = training_options(r, ranker_kind_of(from.ranker), ranker_residual(from.ranker));
        options.from = &from;
    }
    if (!st)
        st = load_and_train(store, r, &options, err);
    stored_ranker_release(&from);
    store_close(store);
    return st;
}

static enum status check_request(const struct request *r, enum ranker_kind *kind, struct error *err) {
    if (!ranker_kind_parse(r->kind ? r->kind : DEFAULT_KIND, kind))
        return error_set(err, ST_USAGE, "--kind: \"%s\" is none of linear, rnn, gat, trees", r->kind);
    if (r->from && (r->kind || r->no_residual))
        return error_set(err, ST_USAGE,
                         "--from goes on with a ranker, which keeps its kind and form: drop --kind and --no-residual");
    if (!(r->held_out >= 0 && r->held_out < 1))
        return error_set(err, ST_USAGE, "--holdout must be at least 0%% and below 100%%");
    if (r->name && !*r->name)
        return error_set(err, ST_USAGE, "--name is empty");
    return ST_OK;
}

enum status cmd_train_ranker(int argc, char **argv, struct error *err) {
    struct request r = {.dataset = DEFAULT_DATASET, .seed = 1};
    enum ranker_kind kind;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &r.dataset, "FILE",
         "where trials are, and rankers are kept (default " DEFAULT_DATASET ")"},
        {"kind", OPTION_TEXT, &r.kind, "trees|linear|rnn|gat", "what is trained (default trees); see above"},
        {"model", OPTION_TEXT, &r.query.model, "MODEL", "only trials of this model: a name or the beginning of an id"},
        {"cluster", OPTION_TEXT, &r.query.cluster, "CLUSTER", "only trials on this cluster"},
        {"runner", OPTION_TEXT, &r.query.runner, "lab|local|mpirun|slurm",
         "only trials of this runner, or of another that records name"},
        {"holdout", OPTION_PERCENT, &r.held_out, "P%", "keep this share of each domain from training, to judge by"},
        {"from", OPTION_TEXT, &r.from, "RANKER",
         "go on training this ranker, by name or id, instead of beginning anew"},
        {"no-residual", OPTION_FLAG, &r.no_residual, NULL,
         "learn from the features alone, instead of correcting the timeline"},
        {"name", OPTION_TEXT, &r.name, "NAME", "what to call it (default: its kind and what it was trained on)"},
        {"seed", OPTION_INTEGER, &r.seed, "K", "where every random choice comes from (default 1)"},
        {"list", OPTION_FLAG, &r.list, NULL, "show the rankers that are there and end"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one JSON object, with --list one a line"},
        {0}};
    const struct command_line line = {
        .usage = "train-ranker [options]",
        .about =
            "Train a ranker, which tells from a strategy's features whether it is faster than another, on the trials\n"
            "that the dataset has, and keep it there. Trials are compared within a domain: a model, a cluster and a\n"
            "runner. A ranker of one domain also ranks another (see rank), and can be trained on with its trials.\n"
            "\n"
            "Kinds: linear   a linear model of the whole strategy's features; trains in no time\n"
            "       rnn      a bidirectional LSTM over the variables (AutoSync)\n"
            "       gat      graph attention over the variable graph (AutoSync)\n"
            "       trees    boosted trees on the whole strategy's features (XGBoost)",
        .examples = "  syncopate train-ranker --dataset corpus.db --kind trees --holdout 20%\n"
                    "  syncopate train-ranker --model resnet50 --cluster my-lab --from trees-24-domains --name mine\n"
                    "  syncopate train-ranker --list",
        .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && r.list)
        return list_rankers(&r, err);
    if (!st)
        st = check_request(&r, &kind, err);
    return st ? st : train(&r, kind, err);
}
