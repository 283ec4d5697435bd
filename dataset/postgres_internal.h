/* What the sources of the engine PostgreSQL share. */
#ifndef DATASET_POSTGRES_INTERNAL_H
#define DATASET_POSTGRES_INTERNAL_H

#include "dataset/sql_internal.h"
#include "dataset/store.h"

struct pg_conn; /* of libpq */
struct pg_result;

/* The lock that each transaction that writes takes, by two numbers: "sYnc", and one that stands for the schema. Locks
 * are of one database. */
#define POSTGRES_LOCK_OF(schema) "1937337955, hashtext(" schema ")"
#define POSTGRES_LOCK            POSTGRES_LOCK_OF("current_schema()")

struct postgres {
    struct pg_conn *connection;
    char *schema;              /* where the tables are */
    unsigned age;              /* how often it was connected anew; what was prepared before is gone */
    unsigned names;            /* of statements and cursors that were given */
    int64_t changes;           /* rows, on all connections */
    int64_t bytes;             /* of the values that were written */
    const double *deadline_us; /* see sql_hurry; NULL: none */
    double next_try_us;        /* before this no connection is tried again, by clock_now_us */
    unsigned tries;            /* that failed, one after the other */
};

/* The failure that `result` (NULL: the connection's) stands for, as one line about the dataset. */
enum status postgres_fail(struct store *store, const struct pg_result *result, struct error *err);

/* The answer to what was just sent; `sent` is what libpq said to that. PQclear it. */
enum status postgres_answer(struct store *store, int sent, struct pg_result **out, struct error *err);

/* Send a text without parameters, and wait. *out (may be NULL) is the last result; PQclear it. */
enum status postgres_query(struct store *store, const char *sql, struct pg_result **out, struct error *err);

/* As insert_rows in engine_internal.h says. */
enum status postgres_insert_rows(struct store *store, const char *sql, size_t rows, size_t n,
                                 const struct sql_value *values, struct error *err);

/* Write the low bytes of x, the highest of them first; returns what is behind them. */
unsigned char *postgres_put_number(unsigned char *to, size_t bytes, uint64_t x);

/* The connection was lost: connect once more, with everything that opening sets, and take the claims again. After a
 * failure the next try has to wait, and until then this fails at once. */
enum status postgres_connect_again(struct store *store, struct error *err);

/* Take a claim (claims.h) on this connection, alone or `together` with others; *taken says whether nobody is in the
 * way. A claim that is taken twice is to be given back twice. */
enum status postgres_claim(struct store *store, const char *name, bool together, bool *taken, struct error *err);
void postgres_unclaim(struct store *store, const char *name, bool together);

/* A statement of this folder as PostgreSQL reads it; malloc'd, NULL when memory is out. *n is how many parameters it
 * has, and (*reasons)[i], malloc'd too, says that parameter i (from 0) is a reason to be made clean (validate_reason);
 * `reasons` may be NULL. */
char *postgres_translate(const char *sql, size_t *n, bool **reasons);

/* Make the tables where there are none. Fails: ST_INVALID (of a newer schema, or another program's tables),
 * ST_NOT_FOUND (none, and the store is for reading only). */
enum status postgres_migrate(struct store *store, struct error *err);

extern const char postgres_audiences[], postgres_references[]; /* see struct engine */

#endif
