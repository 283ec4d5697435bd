/* What the sources of the engine PostgreSQL share. */
#ifndef DATASET_POSTGRES_INTERNAL_H
#define DATASET_POSTGRES_INTERNAL_H

#include "dataset/store.h"

struct pg_conn; /* of libpq */
struct pg_result;

struct postgres {
    struct pg_conn *connection;
    char *schema;              /* where the tables are */
    unsigned age;              /* how often it was connected anew; what was prepared before is gone */
    unsigned names;            /* of statements and cursors that were given */
    int64_t changes;           /* rows, on all connections */
    int64_t bytes;             /* of the values that were written */
    const double *deadline_us; /* see sql_hurry; NULL: none */
};

/* The failure that `result` (NULL: the connection's) stands for, as one line about the dataset. */
enum status postgres_fail(struct store *store, const struct pg_result *result, struct error *err);

/* Send a text without parameters, and wait. *out (may be NULL) is the last result; PQclear it. */
enum status postgres_query(struct store *store, const char *sql, struct pg_result **out, struct error *err);

/* The connection was lost: connect once more, with everything that opening sets, and take the lock again. */
enum status postgres_connect_again(struct store *store, struct error *err);

/* A statement of this folder as PostgreSQL reads it; malloc'd, NULL when memory is out. *n is how many parameters it
 * has, and bit i of *reasons says that parameter i (from 0) is a reason to be made clean (validate_reason). */
char *postgres_translate(const char *sql, size_t *n, uint64_t *reasons);

/* Make the tables where there are none. Fails: ST_INVALID (of a newer schema, or another program's tables),
 * ST_NOT_FOUND (none, and the store is for reading only). */
enum status postgres_migrate(struct store *store, struct error *err);

extern const char postgres_audiences[], postgres_references[]; /* see struct engine */

#endif
