/* The other dataset of a merge, where the statements of merge.c can read it. */
#ifndef DATASET_ATTACH_INTERNAL_H
#define DATASET_ATTACH_INTERNAL_H

#include "dataset/store.h"

/* What stands in for the other dataset until `detach`. */
struct attached {
    struct store *source; /* the other dataset, open for reading */
    char *folder;         /* of a file that stands in for one in PostgreSQL; NULL: none */
};

/* Make the tables of `source` readable by `store` as source.models, ... On success *out owns the source; on failure the
 * caller still does. Fails: as store_open, and as the reading of its rows. */
enum status attach(struct store *store, struct store *source, struct attached *out, struct error *err);
void detach(struct store *store, struct attached *attached);

#endif
