/* What each team takes of the dataset, so that no team can fill the disk of all: the rows that were added for it, and
 * the bytes by which the file grew. Both are counted in the transaction of the write.
 *
 * A change of a row is not counted, for example a renewed lease. Nor are rows of the table of audiences. A team's own
 * name for an object that was here already is a row (holdings.h). Audits and answers are charged to the team that
 * asked, events to the team of their session. When these three are forgotten, their rows are credited, and their bytes
 * roughly. Errors and threads as in store.h. */
#ifndef DATASET_USAGE_H
#define DATASET_USAGE_H

#include "dataset/store.h"

struct usage {
    const char *team;
    int64_t rows, bytes;
};

/* Where the writer stands before a step. Take it inside the step's transaction. */
struct usage_mark {
    int64_t changes, rows, bytes;
};
enum status usage_mark(struct store *store, struct usage_mark *out, struct error *err);

/* Whether the step has changed any row since. */
bool usage_changed(struct store *store, const struct usage_mark *since);

/* Count what was written since for `team`. */
enum status usage_add(struct store *store, const struct usage_mark *since, const char *team, struct error *err);

/* What a team has taken in all; out->team borrows `team`. */
enum status usage_get(struct store *store, const char *team, struct usage *out, struct error *err);

/* List what one team or, with NULL, every team has taken, by name. */
enum status usage_list(struct store *store, const char *team, struct arena *arena, size_t *n, struct usage **out,
                       struct error *err);

/* How many sessions of the team are running or paused. O(log n + found). */
enum status usage_open_sessions(struct store *store, const char *team, uint64_t *out, struct error *err);

#endif
