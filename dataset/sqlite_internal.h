/* What opening, copying and merging files of SQLite share. */
#ifndef DATASET_SQLITE_INTERNAL_H
#define DATASET_SQLITE_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"

struct sqlite3;

/* The failure that `db` just met, as one line about the file `path`. `code` is SQLite's extended result. */
enum status sqlite_fail(struct sqlite3 *db, int code, const char *path, struct error *err);

/* What our statements call beside SQLite's own functions: shared_narrow (sharing.h), where NULL is no bound, and
 * reason_kept (validate_internal.h). Returns a result code of SQLite. */
int sqlite_add_functions(struct sqlite3 *db);

/* "file:/the%20path?mode=ro" for the file of a read-only store, or any other; malloc'd, NULL when memory is out. */
char *sqlite_uri(const char *file, bool immutable);

#endif
