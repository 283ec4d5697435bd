/* syncopate dataset import: the inverse of export. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "dataset/import.h"
#include "tuner/cli/commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/paths.h"

enum status dataset_import(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct import_options keep = {.keep_rows = true};
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset that grows (default: " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {
        .usage = "dataset import FILE",
        .about = "Read what `dataset export --references` wrote (- is standard input), all or nothing. What is here\n"
                 "already is counted, not added again.",
        .examples = "  syncopate dataset export --references --iterations --out all.jsonl\n"
                    "  syncopate dataset import all.jsonl --dataset copy.db",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    struct import_counts counts;
    struct store *store;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    const char *path = arguments.items[0];
    FILE *in = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
    if (!in)
        return error_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT, "%s: %s", path, strerror(errno));
    if (!(st = store_open(dataset, STORE_READ_WRITE, &store, err))) {
        st = import_run(store, in, path, &keep, &counts, err);
        store_close(store);
    }
    if (in != stdin)
        fclose(in);
    if (!st)
        log_info("%lu descriptions, %lu sessions and %lu trials added; %lu were here already, %lu had not ended",
                 (unsigned long)counts.objects, (unsigned long)counts.sessions, (unsigned long)counts.trials,
                 (unsigned long)counts.duplicates, (unsigned long)counts.unfinished);
    return st;
}
