/* A dataset in PostgreSQL, as store_open and store_close see it. */
#ifndef DATASET_POSTGRES_OPEN_INTERNAL_H
#define DATASET_POSTGRES_OPEN_INTERNAL_H

#include "base/error.h"

struct store;

/* Open store->path, whose mode is set. Fails: ST_USAGE (no address, or with a password), ST_ENVIRONMENT (cannot be
 * reached), ST_NOT_FOUND, ST_INVALID. */
enum status postgres_open(struct store *store, struct error *err);
void postgres_close(struct store *store);

/* Says which command of PostgreSQL makes the copy: ST_USAGE. */
enum status postgres_refuse_backup(struct store *store, struct error *err);

#endif
