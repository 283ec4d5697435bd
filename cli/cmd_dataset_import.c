/* syncopate dataset import: the inverse of export, into a file or a service. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_merge.h"

static void tell(const struct import_counts *counts, const char *end) {
    log_info("%lu descriptions, %lu sessions and %lu trials added; %lu were here already, %lu had not ended%s",
             (unsigned long)counts->objects, (unsigned long)counts->sessions, (unsigned long)counts->trials,
             (unsigned long)counts->duplicates, (unsigned long)counts->unfinished, end);
    if (counts->skipped)
        log_info("%lu calibrations skipped: datasets keep none any more", (unsigned long)counts->skipped);
}

static enum status import_here(const char *dataset, FILE *in, const char *path, struct error *err) {
    char origin[300];
    snprintf(origin, sizeof origin, "import of %.200s", path);
    const struct import_options keep = {.keep_rows = true, .origin = origin};
    struct import_counts counts;
    struct store *store;
    enum status st = store_open(dataset, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    st = import_run(store, in, path, &keep, &counts, err);
    store_close(store);
    if (!st)
        tell(&counts, "");
    return st;
}

static enum status import_there(const struct remote_options *remote, FILE *in, const char *path, struct error *err) {
    struct client *client;
    struct import_counts counts = {0};
    enum status st = remote_open(remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (st)
        return st;
    st = remote_import(client, in, path, &counts, err);
    client_close(client);
    if (!st || counts.trials)
        tell(&counts, st ? "; the same command goes on" : "");
    return st;
}

enum status dataset_import(int argc, char **argv, struct error *err) {
    const char *dataset = NULL;
    struct remote_options remote = {0};
    const struct option options[] = {
        {"dataset", OPTION_ONE_OF, &dataset, "FILE", "the dataset that grows (default: " DEFAULT_DATASET ")"},
        REMOTE_OPTIONS(remote),
        {0}};
    const struct command_line line = {
        .usage = "dataset import FILE",
        .about = "Read what \"dataset export --references\" wrote (- is standard input), all or nothing. What is here\n"
                 "already is counted, not added again. A service takes it by an administrator's token, 15 MiB at\n"
                 "a time, each all or nothing.",
        .examples = "  syncopate dataset export --references --iterations --out all.jsonl\n"
                    "  syncopate dataset import all.jsonl --dataset copy.db",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_or_here(&remote, dataset, err);
    if (st)
        return st;
    const char *path = arguments.items[0];
    FILE *in = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
    if (!in)
        return error_at(err, errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT, path, "%s", strerror(errno));
    st = remote.server ? import_there(&remote, in, path, err)
                       : import_here(dataset ? dataset : DEFAULT_DATASET, in, path, err);
    if (in != stdin)
        fclose(in);
    return st;
}
