/* Adding many trials at once that ended elsewhere: a batch is one transaction. */
#ifndef DATASET_INGEST_H
#define DATASET_INGEST_H

#include "dataset/query.h"

/* A trial's uid: 1 to 64 letters, digits and . _ - */
enum { RECORD_UID_MAX = 64 };
bool record_uid_is_valid(const char *uid);

/* A new one, for who must know it before the trial is added. Fails: ST_ENVIRONMENT. */
enum status record_uid_make(char out[RECORD_UID_MAX + 1], struct error *err);

struct import_options {
    /* Keep record.trial as the row number where it is larger than every row number here. Then an export that is
     * imported into an empty dataset is exported the same again. Otherwise trials get the next numbers. */
    bool keep_rows;
    /* What a record without a team belongs to and how it is shared; NULL: as its session, or of no team and with all.
     */
    const char *team, *shared;
    /* What a session that is added says of where it came from (store.h); NULL: "import". */
    const char *origin;
    /* A team: a uid of a trial that it may not see is refused in words that say nothing of that trial. NULL sees all.
     */
    const char *viewer;
    /* The rows of what the records refer to; NULL: none is known. */
    const struct record_rows *rows;
};

/* Rows of what a record refers to (seen_row in holdings.h), 0 where it is not known. */
struct record_rows {
    int64_t model, cluster, strategy;
};

struct import_report {
    uint64_t added;
    uint64_t duplicates; /* were there already, with the same content */
};

/* Add n finished trials, all in one transaction or none. Of a record are read: uid (NULL: a new one), session, number
 * (0: the next of its session), round, seed, model, cluster, strategy (whole ids, put before), state, proposer, runner,
 * reason, queued, started, ended (NULL: now), the times, environment_json (complete: NULL is "{}"), iterations (may be
 * none), team, shared, attempt (0: 1), client. Names must be clean (base/text.h); a reason is made so. A uid that is
 * here with the same content is a duplicate and changes nothing. Without median and mean, and with iterations, both
 * come from these. A trial of a session is shared with nobody from whom the session is hidden here. Fails: ST_CONFLICT
 * (a uid that is here with other content, or a number of a session that another trial has), ST_NOT_FOUND (session or
 * object), ST_INVALID; err->position counts the record from 1. */
enum status store_trials_import(struct store *store, size_t n, const struct record *records,
                                const struct import_options *options, struct import_report *out, struct error *err);

#endif
