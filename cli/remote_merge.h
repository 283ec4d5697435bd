/* Merging a dataset here with the dataset of a service, in either direction. A merge copies the trials that have
 * ended, and the models, clusters, strategies, environments and sessions that these trials refer to. It
 * skips what the other side has already, so a merge may be repeated. */
#ifndef CLI_REMOTE_MERGE_H
#define CLI_REMOTE_MERGE_H

#include <stdio.h>

#include "cli/client/client.h"
#include "dataset/import.h"
#include "dataset/merge.h"

/* Merge what the service shows this client into the dataset at `path`, which is made when it is not there. It is
 * fetched into a dataset beside it first, PATH.from-DIGITS, and then merged as merge_run does: all or nothing. Where
 * the service goes away, the client is cancelled, or another process has the dataset, that file stays, and the next
 * call goes on with it; otherwise it is removed. `visit` (may be NULL) is told each conflict. Fails: as client_text and
 * merge_run; ST_CONFLICT also when another process is fetching. */
enum status remote_pull(struct client *client, const char *path, merge_visit *visit, void *context,
                        struct merge_report *out, struct error *err);

/* Send the service what `store` has, in the order of its trials; what is larger than 15 MiB as lines comes in several
 * transactions. Sessions that have not ended stay out, and are counted as unfinished. Takes an administrator's token,
 * since teams are kept. *out is what the service added, also when it stopped half-way. Fails: as client_call. */
enum status remote_push(struct client *client, struct store *store, struct import_counts *out, struct error *err);

/* Send it the lines of `in` (dataset/import.h). The same otherwise. */
enum status remote_import(struct client *client, FILE *in, const char *name, struct import_counts *out,
                          struct error *err);

#endif
