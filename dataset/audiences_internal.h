/* The audiences of models, clusters and strategies, as trials give them. Trials have no trigger (schema.c says why), so
 * whoever adds or shares trials calls these functions in the same transaction. `make lint` knows who adds trials; who
 * shares them is not checked. */
#ifndef DATASET_AUDIENCES_INTERNAL_H
#define DATASET_AUDIENCES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;

/* The trials of the rows `first` to `last` were just added [a look at each, and where its strategy is new to an
 * audience one row written; for models and clusters a row each for all these trials]. */
enum status audiences_add(struct store *store, int64_t first, int64_t last, struct error *err);

/* Share the trials of a session, or the one with a uid, with `shared`; *found is whether that one is here. Cost: where
 * trials were shared with all and shall not be, a walk through the other trials of their strategies, up to the first
 * that still is. */
enum status audiences_share_session(struct store *store, const char *session, const char *shared, struct error *err);
enum status audiences_share_trial(struct store *store, const char *uid, const char *shared, bool *found,
                                  struct error *err);

/* Forget the rows of the table that this store remembers: a failed step may have undone them. */
void audiences_forget(struct store *store);

#endif
