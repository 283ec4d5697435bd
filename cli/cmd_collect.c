/* syncopate collect: trials of strategies drawn over the whole space, for rankers to learn from. */
#include <unistd.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/runner_options.h"
#include "strategy/cost/transport.h"
#include "tuner/session/collection.h"
#include "tuner/session/runners.h"

static enum status collect(const struct inputs *inputs, const struct runner_options *words, const char *dataset,
                           enum collection_way way, bool allow_lossy, enum sharded sharded,
                           const struct collect_options *options, struct error *err) {
    struct runner runner;
    struct store *store;
    struct collection collection;
    struct space_options space = space_default_options();
    enum status st = runner_init(&runner, words, &inputs->model, &inputs->cluster, options->cancel, err);
    if (st)
        return st;
    space.algorithms = runner_algorithms(&runner);
    if (allow_lossy)
        space.encodings = transport_encodings(&inputs->cluster);
    space.sharded = space_sharded_up_to(sharded);
    space.min_partition_bytes = space.min_credit_bytes = 16 << 10;
    st = store_open(dataset, STORE_READ_WRITE, &store, err);
    if (!st) {
        st = collection_init(&collection, &inputs->model, &inputs->cluster, &space, err);
        if (!st) {
            const struct tune_runner run = runner_for_session(&runner);
            collection.only = way;
            st = collect_run(store, &collection, &run, options, err);
            progress_end();
            collection_release(&collection);
        }
        store_close(store);
    }
    runner_release(&runner);
    return st;
}

enum status cmd_collect(int argc, char **argv, struct error *err) {
    struct runner_options words = {.runner = "lab"};
    const char *dataset = DEFAULT_DATASET, *draw = "recipe";
    enum collection_way way = COLLECTION_BY_RECIPE;
    bool allow_lossy = false;
    const char *sharded_word = sharded_name(SHARDED_none);
    enum sharded sharded = SHARDED_none;
    struct collect_options o = {
        .trials = 100, .seed = 1, .trial_us = 1.5e6, .cancel = interrupt_flag(), .listen = progress_listen};
    const struct option options[] = {
        {"trials", OPTION_INTEGER, &o.trials, "N", "go on until the dataset has N of this seed (default 100)"},
        {"runner", OPTION_TEXT, &words.runner, RUNNER_NAMES, "where trials run (default lab)"},
        RUNNER_OPTIONS(words),
        {"logs", OPTION_TEXT, &words.logs, "DIR", "keep what the ranks of each trial say in a file there"},
        {"seed", OPTION_INTEGER, &o.seed, "K", "where every random choice comes from (default 1)"},
        {"draw", OPTION_TEXT, &draw, "recipe|guided|uniform|baseline|sizes|near|fast|balanced|adjacent|loose",
         "how to draw: recipe (default) mixes the next six; guided obeys AutoSync's two constraints, balanced and "
         "adjacent one of them each, loose none"},
        {"allow-lossy", OPTION_FLAG, &allow_lossy, NULL, "draw encodings of gradients that lose something, too"},
        {"allow-sharded", OPTION_TEXT, &sharded_word, "optimizer|gradients|parameters",
         "draw strategies too that keep only a part of this, and of what stands before it, on each device"},
        {"trial-time", OPTION_TIME, &o.trial_us, "T",
         "measure for about T in each trial (default 1.5s), 8 to 30 iterations"},
        {"dataset", OPTION_TEXT, &dataset, "FILE",
         "where measurements are kept, also postgresql://... (default " DEFAULT_DATASET ")"},
        {0}};
    const struct command_line line = {
        .usage = "collect MODEL CLUSTER [options]",
        .about = "Try strategies drawn over the whole space, good ones and bad ones, and record them: what a learned\n"
                 "ranker needs to be trained on (see train-ranker). Give a CLUSTER that was measured (see bench).\n"
                 "Strategy number i of a seed is always the same: a collection that was interrupted goes on when the\n"
                 "command is repeated.",
        .examples = "  syncopate collect cnn-small my-lab.json --trials 200 --dataset corpus.db",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    struct inputs inputs = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && (!o.trials || !(o.trial_us > 0)))
        st = error_set(err, ST_USAGE, "--trials and --trial-time must be more than 0");
    if (!st)
        st = collection_way_named(draw, &way, err);
    if (!st)
        st = sharded_named(sharded_word, &sharded, err);
    if (!st)
        st = inputs_read(arguments.items[0], arguments.items[1], &inputs, err);
    if (!st)
        st = collect(&inputs, &words, dataset, way, allow_lossy, sharded, &o, err);
    inputs_release(&inputs);
    return st;
}
