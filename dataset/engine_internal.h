/* What a database engine does for this folder. There are two: SQLite (sqlite.c), one file, and PostgreSQL (postgres.c).
 * Everything above speaks to sql_internal.h alone. */
#ifndef DATASET_ENGINE_INTERNAL_H
#define DATASET_ENGINE_INTERNAL_H

#include "dataset/sql_internal.h"

/* A statement that is prepared. An engine's own structure begins with this one. */
struct sql_statement {
    struct store *store;
    const char *sql;
};

struct engine {
    const char *begin_writing, *begin_reading;  /* a transaction */
    const char *check_pages, *check_references; /* list what is damaged (check.c); NULL: nothing to ask */
    /* All iterations of a trial: ?1 the trial, ?2 the times with a space between two. NULL: one at a time is fast. */
    const char *add_iterations;
    /* Many rows of the table of audiences at once (audiences.c), for audience ?1. NULL: one at a time is fast.
     * note_trials: ?2 whether it is a team, ?3 strategies. add_to_counts: ?2 to ?5, for each row whether it is of a
     * model (0), a cluster (1) or a strategy (2), the object, reasons, own reasons. */
    const char *note_trials, *add_to_counts;
    const char *audiences; /* see schema_audiences */
    bool merges_medians;   /* no index has all medians in order, so that fastest.c merges those of the pairs */

    /* Rows for the statement `sql` of sql_insert_each, all or none: one that is there already fails with ST_CONFLICT,
     * and the caller undoes what failed. NULL: one at a time is fast. */
    enum status (*insert_rows)(struct store *store, const char *sql, size_t rows, size_t n,
                               const struct sql_value *values, struct error *err);

    /* How many bytes this dataset takes (usage.c); only differences count. */
    enum status (*size)(struct store *store, int64_t *bytes, struct error *err);

    /* Texts without results, one or several; *changed: how many rows the last of them changed. */
    enum status (*exec)(struct store *store, const char *sql, int64_t *changed, struct error *err);

    /* `kept`: it will run often, and `sql` lives as long as the statement; otherwise `sql` is copied. */
    enum status (*prepare)(struct store *store, const char *sql, bool kept, struct sql_statement **out,
                           struct error *err);
    /* The first of the values becomes number `first`, from 1. Texts must live until the statement is reset. */
    enum status (*bind)(struct sql_statement *statement, size_t first, size_t n, const struct sql_value *values,
                        struct error *err);
    /* *row: whether there is one more. *changed: after the last, how many rows the statement changed; not set by one
     * that only reads. */
    enum status (*step)(struct sql_statement *statement, bool *row, int64_t *changed, struct error *err);
    void (*reset)(struct sql_statement *statement);
    void (*finalize)(struct sql_statement *statement); /* NULL is allowed */

    /* Of the row that `step` came to. A text ends with a 0, is NULL where the column is, and where memory is out; it
     * lives until the next step. */
    int64_t (*integer)(struct sql_statement *statement, int i);
    double (*real)(struct sql_statement *statement, int i);
    const char *(*text)(struct sql_statement *statement, int i, size_t *bytes);
    bool (*is_null)(struct sql_statement *statement, int i);
    int (*columns)(struct sql_statement *statement);
    const char *(*name)(struct sql_statement *statement, int i);

    int64_t (*total_changes)(const struct store *store);
    bool (*in_transaction)(const struct store *store);
    /* As sql_hurry says. */
    void (*hurry)(struct store *store, const double *deadline_us);
};

extern const struct engine sqlite_engine, postgres_engine;

#endif
