/* Importing JSON Lines into a dataset: the inverse of export.h. */
#ifndef DATASET_IMPORT_H
#define DATASET_IMPORT_H

#include <stdio.h>

#include "dataset/ingest.h"

struct import_counts {
    uint64_t objects, sessions, trials; /* added */
    uint64_t duplicates;                /* lines that were here already */
    uint64_t unfinished;                /* trials still waiting or running, which are left out */
    uint64_t skipped;                   /* lines of syncopate.calibration/1, which no dataset keeps any more */
};

/* Read lines as export_run and export_references write them: records (syncopate.record/1), and the objects and sessions
 * that they need (syncopate.object/1, syncopate.session/1), objects before the records that need them, unless the
 * dataset has them. Errors begin with `name` and the line, unless `name` is ""; err->position is the line in both
 * cases. All or nothing: one transaction. Sessions that are added are foreign (store.h). Names, ids and the contents of
 * new objects must be valid and hold nothing that a terminal obeys (validate_internal.h): a line that breaks this is
 * refused. A reason is made clean. Fails: ST_INVALID with the line, ST_CONFLICT, ST_NOT_FOUND, ST_TOO_LARGE (a line
 * over 64 MiB). */
enum status import_run(struct store *store, FILE *in, const char *name, const struct import_options *options,
                       struct import_counts *out, struct error *err);

#endif
