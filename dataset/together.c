/* Several rows in one insertion. For PostgreSQL a statement costs far more than a row, so that it gets many rows at
 * once, all or none. Where one of them is refused or there already, they go one by one, which tells which one that is.
 */
#include <stdlib.h>
#include <string.h>

#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"

enum { LEAST_TOGETHER = 4 };

/* A failure leaves nothing of them. */
static enum status insert_together(struct store *store, const char *sql, size_t rows, size_t n,
                                   const struct sql_value *values, struct error *err) {
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = store_end(store, store->engine->insert_rows(store, sql, rows, n, values, err), err);
    if (!status)
        store->inserted += (int64_t)rows;
    return status;
}

static enum status insert_one(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              bool *inserted, struct error *err) {
    enum status status = sql_run(store, sql, n, values, err);
    *inserted = !status && sql_changes(store) > 0;
    return status;
}

enum status sql_insert_each(struct store *store, const char *sql, size_t rows, size_t n, const struct sql_value *values,
                            bool *inserted, size_t *done, struct error *err) {
    enum status status = ST_OK;
    *done = 0;
    if (store->engine->insert_rows && rows >= LEAST_TOGETHER) {
        status = insert_together(store, sql, rows, n, values, err);
        *done = status ? 0 : rows;
        memset(inserted, true, *done * sizeof *inserted);
        if (status == ST_CONFLICT || status == ST_NOT_FOUND || status == ST_INVALID)
            status = ST_OK;
    }
    for (; *done < rows && !status; *done += !status)
        status = insert_one(store, sql, n, values + *done * n, inserted + *done, err);
    return status;
}
