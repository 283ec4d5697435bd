/* Which process runs what, where several write one dataset in PostgreSQL: the trials of a session, work that is asked
 * for by name. A claim lasts until it is given up, the store is closed, or the connection is lost, which the death of
 * the process is. A connection that is made anew takes its claims again; one that another process has got meanwhile is
 * lost. A file has one writer, who has every claim. Threads: as the store. */
#ifndef DATASET_CLAIMS_H
#define DATASET_CLAIMS_H

#include "dataset/store.h"

/* Claim `name`, of at most 255 bytes, waiting for `patience_us` where another process has it. *taken: it is ours now; a
 * second claim of what is ours is one. Fails: as the store. */
enum status store_claim(struct store *store, const char *name, double patience_us, bool *taken, struct error *err);

/* The same for a session: another process must not run it. Fails: ST_CONFLICT (another process does). */
enum status store_claim_session(struct store *store, const char *session, double patience_us, struct error *err);

/* Whether it was claimed and has not been lost since. What must not happen twice asks within its transaction. */
bool store_has_claim(const struct store *store, const char *name);
void store_unclaim(struct store *store, const char *name);

/* Say that this process serves the dataset, for as long as it is open. *alone: no other process did. Fails: as the
 * store. */
enum status store_join(struct store *store, bool *alone, struct error *err);

#endif
