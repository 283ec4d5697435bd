/* Trials as text for other programs: CSV (RFC 4180) or JSON Lines (syncopate.record/1). */
#ifndef DATASET_EXPORT_H
#define DATASET_EXPORT_H

#include <stdio.h>

#include "dataset/query.h"

enum export_format { EXPORT_CSV, EXPORT_JSON_LINES };

/* Write the trials that fit `query` to `out`; *n (may be NULL) is how many. CSV has a header line, CRLF line ends and
 * the same columns always; iterations are one field of numbers with blanks between. A JSON line is one object; numbers
 * and texts that a trial lacks are left out. Fails: ST_ENVIRONMENT when `out` does. */
enum status export_run(struct store *store, const struct query *query, enum export_format format, FILE *out,
                       uint64_t *n, struct error *err);

/* What the trials of `query` refer to, so that import_run can read the export into a dataset that has none of it: a
 * JSON line each model, cluster and strategy (syncopate.object/1) and session (syncopate.session/1). To be written
 * before the records; environments are part of them. */
enum status export_references(struct store *store, const struct query *query, FILE *out, struct error *err);

/* The same, to be given to others: sessions come without the command of their job and the options of their launcher
 * (options.job.command, options.launch.launch_options). These texts may hold secret keys, and only the session's own
 * dataset needs them to go on. */
enum status export_shared_references(struct store *store, const struct query *query, FILE *out, struct error *err);

/* One record as its JSON object, without a line end; as a line of CSV, and the line of names before it. */
void export_json(const struct record *record, FILE *out);
void export_csv(const struct record *record, FILE *out);
void export_csv_header(FILE *out);

#endif
