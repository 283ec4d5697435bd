/* Bring another team's dataset into this one. */
#ifndef DATASET_MERGE_H
#define DATASET_MERGE_H

#include "dataset/store.h"

struct merge_report {
    uint64_t objects, sessions, trials, calibrations; /* added */
    uint64_t updated;                                 /* sessions that have ended since they were merged before */
};

/* Add to `store` what it lacks of the dataset at `path`, in one transaction: objects by their id, sessions by theirs,
 * trials that have ended by their uid. Merging again adds nothing. The source is checked first and never written.
 * Fails: ST_CONFLICT (one session id or trial number means two different things), ST_INVALID (the source fails its
 * check, or is this very dataset), and as store_open. */
enum status merge_run(struct store *store, const char *path, struct merge_report *out, struct error *err);

#endif
