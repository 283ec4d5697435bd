/* The trials of a service that fit a query: what dataset query and export ask for. */
#ifndef CLI_REMOTE_QUERY_H
#define CLI_REMOTE_QUERY_H

#include <stdio.h>

#include "cli/remote_records.h"
#include "dataset/export.h"

/* Write every condition of the query, and its own filter, as one `filter` of the interface (dataset/filter.h), in
 * `arena`.
 * Fails: ST_NO_MEMORY. */
enum status remote_query_filter(const struct query *query, struct arena *arena, const char **out, struct error *err);

/* Call `visit` with each in turn, within limit and offset. Fails: as client_call, and as `visit`. */
enum status remote_query_run(struct client *client, const struct query *query, remote_visit *visit, void *context,
                             struct error *err);

/* Write them to `out` as export_run does, to the byte; with `references` what they refer to comes before each page's
 * trials, each line once. *n (may be NULL) is how many trials. Fails: as client_text, ST_ENVIRONMENT when `out` does.
 */
enum status remote_query_export(struct client *client, const struct query *query, enum export_format format,
                                bool references, FILE *out, uint64_t *n, struct error *err);

#endif
