/* The tables of a dataset, and how a file of an older schema becomes one of this. */
#ifndef DATASET_SCHEMA_INTERNAL_H
#define DATASET_SCHEMA_INTERNAL_H

#include "base/error.h"

struct store;

enum { SCHEMA_VERSION = 7 };

/* The schema version of the open file, 0 when it is empty. Reads only. Fails: ST_INVALID (no SQLite file, another
 * program's, or of a newer schema). */
enum status schema_read_version(struct store *store, int *version, struct error *err);

/* From `version` to SCHEMA_VERSION, each step one transaction; a file that holds records is copied first, unless it is
 * itself a temporary copy (store->copy). */
enum status schema_migrate(struct store *store, int version, struct error *err);

/* Make this connection update the table of audiences with everything that it writes. */
enum status schema_follow(struct store *store, struct error *err);

/* A SELECT of every row that the table of audiences should have, computed from the other tables. */
extern const char schema_audiences[];

#endif
