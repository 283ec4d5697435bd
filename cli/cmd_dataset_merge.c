/* syncopate dataset merge: another dataset's measurements, from a file or a service, into a file or a service. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_merge.h"
#include "dataset/store.h"

static void print_conflict(void *context, const struct merge_conflict *conflict) {
    (void)context;
    text_print(stdout, "%s: here %s, there %s\n", conflict->what, conflict->ours, conflict->theirs);
}

static void tell(const struct merge_report *report) {
    log_info("%lu descriptions, %lu sessions and %lu trials added", (unsigned long)report->objects,
             (unsigned long)report->sessions, (unsigned long)report->trials);
}

static enum status merge_file(const char *dataset, const char *other, struct error *err) {
    struct store *store;
    struct merge_report report;
    uint64_t conflicts;
    enum status st = store_open(dataset, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    st = merge_run(store, other, &report, err);
    if (st == ST_CONFLICT)
        (void)merge_conflicts(store, other, print_conflict, NULL, &conflicts, NULL);
    store_close(store);
    if (!st)
        tell(&report);
    return st;
}

static enum status merge_service(const char *dataset, const struct remote_options *remote, struct error *err) {
    struct client *client;
    struct merge_report report;
    enum status st = remote_open(remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (st)
        return st;
    st = remote_pull(client, dataset, print_conflict, NULL, &report, err);
    client_close(client);
    if (!st)
        tell(&report);
    return st;
}

static enum status send_file(const char *other, const struct remote_options *remote, struct error *err) {
    struct client *client;
    struct store *store;
    struct import_counts counts = {0};
    enum status st = store_open(other, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = remote_open(remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (!st) {
        st = remote_push(client, store, &counts, err);
        client_close(client);
    }
    store_close(store);
    if (!st || counts.trials)
        log_info("%lu descriptions, %lu sessions and %lu trials added; %lu trials were left: they or their sessions "
                 "still run%s",
                 (unsigned long)counts.objects, (unsigned long)counts.sessions, (unsigned long)counts.trials,
                 (unsigned long)counts.unfinished, st ? "; the same command goes on" : "");
    return st;
}

/* OTHER may be a service: *other is then NULL, and remote->server is the one to merge from. `typed`: --server was. */
static enum status find_service(const char **other, bool typed, struct remote_options *remote, struct error *err) {
    if (!*other || !strstr(*other, "://") || store_is_database(*other))
        return ST_OK;
    const bool two = remote->server && strcmp(remote->server, *other) != 0;
    if (two && typed)
        return error_set(err, ST_USAGE, "two services are named, %s and %s: give one of them", *other, remote->server);
    if (two)
        log_info("merging from %s, and not from %s", *other, remote->server);
    remote->server = *other;
    *other = NULL;
    return ST_OK;
}

enum status dataset_merge(int argc, char **argv, struct error *err) {
    const char *dataset = NULL;
    struct remote_options remote = {0};
    const struct option options[] = {
        {"dataset", OPTION_ONE_OF, &dataset, "FILE", "the dataset that grows (default: " DEFAULT_DATASET ")"},
        REMOTE_OPTIONS(remote),
        {0}};
    const struct command_line line = {
        .usage = "dataset merge [OTHER] [options]",
        .about =
            "Add what another dataset has and this one lacks; merging twice adds nothing. Commands of merged sessions\n"
            "do not run by themselves; tune --resume shows them. OTHER is a file, the address of a database\n"
            "(postgresql://...), or the URL of a service, which gives what the token may see. If the service goes\n"
            "away meanwhile, what was fetched is kept for the next try. With --server, the file OTHER goes into the "
            "service's dataset; this needs an administrator's\n"
            "token. --server without OTHER merges from that service.",
        .examples = "  syncopate dataset merge colleague.db\n"
                    "  syncopate dataset merge https://tuner.example:8642 --token-file ~/.syncopate-token\n"
                    "  syncopate dataset merge syncopate.db --server https://tuner.example:8642",
        .options = options,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    const char *other = !st && arguments.n ? arguments.items[0] : NULL;
    if (!st)
        st = find_service(&other, options_server_typed(argc, argv), &remote, err);
    if (st)
        return st;
    if (!other && !remote.server)
        return error_set(err, ST_USAGE, "usage: syncopate %s   (--help explains)", line.usage);
    if (!other)
        return merge_service(dataset ? dataset : DEFAULT_DATASET, &remote, err);
    if (!remote.server)
        return merge_file(dataset ? dataset : DEFAULT_DATASET, other, err);
    st = remote_or_here(&remote, dataset, err);
    return st ? st : send_file(other, &remote, err);
}
