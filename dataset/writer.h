/* One writing store for many threads, with group commit. Steps that wait at the same time are written in one
 * transaction, which is synced once. Each step has a savepoint of its own, so that a step that fails undoes only
 * itself. */
#ifndef DATASET_WRITER_H
#define DATASET_WRITER_H

#include "dataset/store.h"

struct writer; /* opaque */

/* `store`, opened for writing, belongs to the writer until writer_free. */
enum status writer_new(struct store *store, struct writer **out, struct error *err);

/* No thread may be in writer_run. Does not close the store; NULL is allowed. */
void writer_free(struct writer *writer);

/* What one thread wants written. It runs between store_begin and store_end, in any of the waiting threads. Its first
 * run may be undone; then it runs a second time, and must do the same. */
typedef enum status write_step(void *context, struct store *store, struct error *err);

/* Run `step`; on ST_OK it is committed and on the disk. A step that fails is undone and its status returned.
 * Threads: any, at the same time. */
enum status writer_run(struct writer *writer, write_step *step, void *context, struct error *err);

#endif
