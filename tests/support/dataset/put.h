/* Objects with any content, for tests that fill datasets: the product puts models, clusters, strategies and rankers
 * that it has read (dataset/describe.h). */
#ifndef TESTS_SUPPORT_DATASET_PUT_H
#define TESTS_SUPPORT_DATASET_PUT_H

#include "dataset/store_internal.h"

/* Of no team and shared with all if it was not here; *id may be NULL. Fails: ST_INVALID when it is no JSON. */
static inline enum status put_object(struct store *store, enum store_kind kind, const char *name, const char *content,
                                     struct id *id, struct error *err) {
    struct id hash;
    enum status status = object_read_id(name, content, &hash, err);
    if (status == ST_OK)
        status = object_put_for_all(store, kind, &hash, name, content, err);
    if (status == ST_OK && id)
        *id = hash;
    return status;
}

#endif
