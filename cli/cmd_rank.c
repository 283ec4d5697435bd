/* syncopate rank: strategies by a learned ranker, next to the timeline and to what was measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/table.h"
#include "dataset/query.h"
#include "simulator/learned/pairwise_accuracy.h"
#include "simulator/tuned.h"
#include "strategy/baselines/baselines.h"
#include "tuner/learn/examples.h"
#include "tuner/learn/rankers.h"

struct request {
    const char *dataset, *ranker, *runner;
    bool baselines, json;
};

struct candidate {
    char name[64];
    struct id id;
    double score, timeline_us, measured_us; /* measured: NaN when the dataset has no trial of it */
};

struct ranking {
    const struct inputs *inputs;
    const struct request *request;
    struct store *store;
    struct stored_ranker ranker;
    double distance; /* from the ranker's nearest domain; NaN when the user chose the ranker */
    struct featurizer *featurizer;
    size_t n;
    struct candidate *items;
};

/* ---- measuring up candidates ---- */

/* The median of the medians of its complete trials; NaN without any. */
static enum status find_measured(struct ranking *r, const struct strategy *strategy, double *out, struct error *err) {
    static const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.model = r->inputs->model.id.hex,
                                .cluster = r->inputs->cluster.id.hex,
                                .strategy = strategy->id.hex,
                                .runner = r->request->runner,
                                .state = &complete};
    struct arena arena = {0};
    struct record *records;
    size_t n;
    enum status st = query_collect(r->store, &query, &arena, &n, &records, err);
    double *medians = st ? NULL : arena_alloc(&arena, n, sizeof *medians);
    if (!st && !medians)
        st = error_no_memory(err);
    for (size_t i = 0; i < n && !st; i++)
        medians[i] = records[i].median_us;
    if (!st)
        *out = n ? median_of(n, medians) : NAN;
    arena_release(&arena);
    return st;
}

static enum status add_candidate(struct ranking *r, const struct strategy *strategy, struct error *err) {
    struct candidate *c = &r->items[r->n];
    struct features features;
    enum status st = featurizer_run(r->featurizer, strategy, &features, err);
    if (st)
        return st;
    snprintf(c->name, sizeof c->name, "%s", strategy->name);
    c->id = strategy->id;
    c->timeline_us = features.timeline_us;
    st = ranker_score(r->ranker.ranker, &features, &c->score, err);
    features_release(&features);
    if (!st)
        st = find_measured(r, strategy, &c->measured_us, err);
    if (!st)
        r->n++;
    return st;
}

static enum status add_word(struct ranking *r, const char *word, struct error *err) {
    struct strategy strategy;
    enum status st = inputs_strategy_word(r->inputs, word, 0, &strategy, err);
    if (st)
        return st;
    st = add_candidate(r, &strategy, err);
    strategy_release(&strategy);
    return st;
}

static bool has_strategy(const struct ranking *r, const struct id *id) {
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->items[i].id.hex, id->hex))
            return true;
    return false;
}

/* Add the baselines that can be built here, but none that is in the list already under another name. */
static enum status add_baselines(struct ranking *r, struct error *err) {
    size_t n;
    const struct baseline *rows = baselines_list(&n);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        struct strategy strategy;
        st = tuned_build(&rows[i], &r->inputs->model, &r->inputs->cluster, &strategy, err);
        if (!st) {
            if (!has_strategy(r, &strategy.id))
                st = add_candidate(r, &strategy, err);
            strategy_release(&strategy);
        }
        if (st == ST_INFEASIBLE || st == ST_TOO_LARGE) {
            log_info("%s: %s", rows[i].name, ERROR_TEXT(err));
            st = ST_OK;
        }
    }
    return st;
}

static enum status add_all(struct ranking *r, const struct arguments *words, struct error *err) {
    size_t n_baselines;
    enum status st = ST_OK;
    baselines_list(&n_baselines);
    r->items = calloc(words->n + n_baselines, sizeof *r->items);
    if (!r->items)
        return error_no_memory(err);
    for (size_t i = 2; i < words->n && !st; i++)
        st = add_word(r, words->items[i], err);
    return st || !r->request->baselines ? st : add_baselines(r, err);
}

static int by_score(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

/* ---- telling ---- */

static double predicted_us(const struct ranking *r, const struct candidate *c) {
    return ranker_residual(r->ranker.ranker) ? exp(c->score) : NAN;
}

static void print_table(const struct ranking *r) {
    struct table table;
    char text[32];
    const bool residual = ranker_residual(r->ranker.ranker);
    table_init(&table, (const char *const[]){"STRATEGY", "ID", residual ? ">RANKER" : ">SCORE", ">TIMELINE",
                                             ">MEASURED", NULL});
    for (size_t i = 0; i < r->n; i++) {
        const struct candidate *c = &r->items[i];
        table_cell(&table, "%s", c->name);
        table_cell(&table, "%.12s", c->id.hex);
        if (residual)
            table_cell(&table, "%s", units_format_known_time(predicted_us(r, c), "-", text, sizeof text));
        else
            table_cell(&table, "%.3f", c->score);
        table_cell(&table, "%s", units_format_known_time(c->timeline_us, "-", text, sizeof text));
        table_cell(&table, "%s", units_format_known_time(c->measured_us, "-", text, sizeof text));
    }
    table_print(&table, stdout);
    table_release(&table);
}

/* Shares of the pairs with different measured times that ranker and timeline have in the right order. */
static enum status print_accuracy(const struct ranking *r, struct error *err) {
    struct arena arena = {0};
    double *us = arena_alloc(&arena, r->n, sizeof *us), *score = arena_alloc(&arena, r->n, sizeof *score);
    double *timeline = arena_alloc(&arena, r->n, sizeof *timeline);
    uint32_t *domain = arena_alloc(&arena, r->n, sizeof *domain);
    bool whole = us && score && timeline && domain;
    for (size_t i = 0; i < r->n && whole; i++) {
        us[i] = r->items[i].measured_us;
        score[i] = r->items[i].score;
        timeline[i] = r->items[i].timeline_us;
    }
    double by_ranker = whole ? pairwise_accuracy(r->n, us, score, domain) : NAN;
    double by_timeline = whole ? pairwise_accuracy(r->n, us, timeline, domain) : NAN;
    if (!isnan(by_ranker))
        text_print(stdout,
                   "\nOf the pairs that were measured the ranker has %.1f%% in the right order, the timeline %.1f%%.\n",
                   by_ranker * 100, by_timeline * 100);
    arena_release(&arena);
    return whole ? ST_OK : error_no_memory(err);
}

static enum status print_words(const struct ranking *r, struct error *err) {
    const struct ranker_origin *o = &r->ranker.origin;
    text_print(stdout, "%s on %s by %s (%s, %lu trials of %zu domain%s", r->inputs->model.name, r->inputs->cluster.name,
               r->ranker.name, ranker_kind_name(ranker_kind_of(r->ranker.ranker)), (unsigned long)o->n_trials,
               o->n_domains, o->n_domains == 1 ? "" : "s");
    if (!isnan(r->distance))
        text_print(stdout, "; the nearest at a distance of %.2f", r->distance);
    text_print(stdout, ")\n\n");
    print_table(r);
    return print_accuracy(r, err);
}

static enum status print_json(const struct ranking *r, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < r->n && !st; i++) {
        const struct candidate *c = &r->items[i];
        cJSON *root = cJSON_CreateObject();
        bool whole =
            root && cJSON_AddStringToObject(root, "schema", "syncopate.ranking/1") &&
            cJSON_AddStringToObject(root, "model", r->inputs->model.name) &&
            cJSON_AddStringToObject(root, "cluster", r->inputs->cluster.name) &&
            json_add_named(root, "ranker", r->ranker.id.hex, r->ranker.name) &&
            json_add_named(root, "strategy", c->id.hex, c->name) && cJSON_AddNumberToObject(root, "score", c->score) &&
            json_add_known(root, "predicted_us", predicted_us(r, c)) &&
            json_add_known(root, "timeline_us", c->timeline_us) && json_add_known(root, "measured_us", c->measured_us);
        st = output_line(root, whole, err);
    }
    return st;
}

/* ---- the command ---- */

static enum status choose_ranker(struct ranking *r, struct error *err) {
    const struct request *request = r->request;
    const struct domain here = {.model = r->inputs->model, .cluster = r->inputs->cluster, .runner = ""};
    r->distance = NAN;
    enum status st = request->ranker ? rankers_get(r->store, NULL, request->ranker, &r->ranker, err)
                                     : rankers_nearest(r->store, NULL, &here, &r->ranker, &r->distance, err);
    if (st == ST_NOT_FOUND)
        return request->ranker
                   ? error_set(err, st, "%s has no ranker \"%s\"; \"syncopate train-ranker --list\" lists them",
                               request->dataset, request->ranker)
                   : error_set(err, st, "%s has no ranker that can be used; \"syncopate train-ranker\" makes one",
                               request->dataset);
    return st;
}

static enum status rank(struct ranking *r, const struct arguments *words, struct error *err) {
    enum status st = store_open(r->request->dataset, STORE_READ_ONLY, &r->store, err);
    if (!st)
        st = choose_ranker(r, err);
    if (!st)
        st = featurizer_new(&r->inputs->model, &r->inputs->cluster, &r->featurizer, err);
    if (!st)
        st = add_all(r, words, err);
    if (st)
        return st;
    qsort(r->items, r->n, sizeof *r->items, by_score);
    return r->request->json ? print_json(r, err) : print_words(r, err);
}

static enum status rank_inputs(const struct inputs *inputs, const struct request *request,
                               const struct arguments *words, struct error *err) {
    struct ranking r = {.inputs = inputs, .request = request};
    enum status st = rank(&r, words, err);
    free(r.items);
    featurizer_free(r.featurizer);
    stored_ranker_release(&r.ranker);
    store_close(r.store);
    return st;
}

enum status cmd_rank(int argc, char **argv, struct error *err) {
    struct request request = {.dataset = DEFAULT_DATASET};
    const struct option options[] = {
        {"ranker", OPTION_TEXT, &request.ranker, "RANKER",
         "rank with this one: a name or the beginning of an id (default: see above)"},
        {"baselines", OPTION_FLAG, &request.baselines, NULL, "rank every baseline as well"},
        {"runner", OPTION_TEXT, &request.runner, "lab|local|mpirun|slurm", "show only times of this runner"},
        {"dataset", OPTION_TEXT, &request.dataset, "FILE",
         "where rankers and trials are (default " DEFAULT_DATASET ")"},
        {"json", OPTION_FLAG, &request.json, NULL, "print one syncopate.ranking/1 object a line"},
        {0}};
    const struct command_line line = {
        .usage = "rank MODEL CLUSTER [STRATEGY...] [options]",
        .about = "Rank strategies with a learned ranker, the fastest first, next to the timeline's prediction and the\n"
                 "median that was measured, where the dataset has one. STRATEGY is a baseline's name or a file.\n"
                 "A ranker that corrects the timeline gives times; one that does not gives scores, the lower the\n"
                 "faster. Without --ranker it is the one that was trained on the most similar model and cluster, and\n"
                 "of several the one of most trials: train-ranker makes them, and train-ranker --list shows them.",
        .examples = "  syncopate rank resnet50 my-lab.json --baselines\n"
                    "  syncopate rank resnet50 my-lab.json best.json horovod --ranker trees-24-domains",
        .options = options,
        .min_arguments = 2,
        .max_arguments = MAX_ARGUMENTS};
    struct arguments arguments;
    struct inputs inputs = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && arguments.n == 2 && !request.baselines)
        st = error_set(err, ST_USAGE, "nothing to rank: name strategies (baselines or files), or give --baselines");
    if (!st)
        st = inputs_read(arguments.items[0], arguments.items[1], &inputs, err);
    if (!st)
        st = rank_inputs(&inputs, &request, &arguments, err);
    inputs_release(&inputs);
    return st;
}
