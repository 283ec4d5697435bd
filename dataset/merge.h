/* Bring another team's dataset into this one. */
#ifndef DATASET_MERGE_H
#define DATASET_MERGE_H

#include "dataset/store.h"

struct merge_report {
    uint64_t objects, sessions, trials; /* added */
    uint64_t updated;                   /* sessions that have ended since they were merged before */
};

/* A contradiction between two datasets: what it is about, and what each of them says. Texts live until the call
 * returns. */
struct merge_conflict {
    const char *what;          /* "session s", "session s trial 3", "uid 0192..." */
    const char *ours, *theirs; /* "uid 0192...", "model 44136fa355b3, cluster ..., seed 7", ... */
};

typedef void merge_visit(void *context, const struct merge_conflict *conflict);

/* Hands `visit` (may be NULL) every contradiction for which merge_run would refuse `path`. *n is how many there are.
 * Writes nothing. */
enum status merge_conflicts(struct store *store, const char *path, merge_visit *visit, void *context, uint64_t *n,
                            struct error *err);

/* Add to `store` what it lacks of the dataset at `path`, in one transaction: objects by their id, sessions by theirs,
 * trials that have ended by their uid. A session without trials here follows one that moved to another cluster there.
 * Merging again adds nothing. The source is checked first and never written.
 * Fails: ST_CONFLICT (the two contradict each other: the message names the first contradiction and says how many there
 * are), ST_INVALID (the source fails its check, or is this very dataset), and as store_open. */
enum status merge_run(struct store *store, const char *path, struct merge_report *out, struct error *err);

#endif
