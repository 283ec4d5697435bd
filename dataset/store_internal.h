/* What the dataset's sources share: the open file, and the rows of its tables as structures. */
#ifndef DATASET_STORE_INTERNAL_H
#define DATASET_STORE_INTERNAL_H

#include <math.h>

#include "dataset/lock_internal.h"
#include "dataset/sql_internal.h"
#include "dataset/store.h"

struct claim;
struct engine;
struct kept_statement;
struct remembered;

struct store {
    const struct engine *engine;
    struct sqlite3 *db; /* one of these two */
    struct postgres *postgres;
    int64_t changes; /* how many rows the last statement changed */
    char *path;      /* as the caller wrote it, for messages */
    char *file;      /* absolute, without symbolic links */
    char *copy;      /* what is open in place of a file of an older schema; NULL: the file */
    bool read_only, immutable;
    unsigned depth;   /* of write steps that are open */
    unsigned bare;    /* how many of these are inner ones without a savepoint: nothing was written before them */
    int64_t written;  /* rows changed on this connection when the transaction began; -1: unknown */
    int64_t inserted; /* rows of things that stay, less those deleted, on this connection (usage.c) */
    int64_t apart_rows, apart_bytes; /* of these, events: charged to the session's team when they were added */
    bool again;      /* a statement of this step failed because of another program: tried again, the step may succeed */
    bool reading;    /* between store_begin_read and store_end_read, outside a write step */
    double ahead_us; /* by how much the server's clock is ahead of ours; 0 for a file */
    struct claim *claims;          /* claims.c */
    struct lock lock;              /* held when not read_only */
    struct remembered *remembered; /* of audiences (audiences.c); NULL until it is needed */
    struct kept_statement *kept;   /* statements that are prepared (sql.c) */
    size_t n_kept, kept_room;
};

/* How often a step is tried again that failed because of another program, and the pause before try i, from 1. */
enum { STEP_TRIES = 3 };
void step_pause(int i);

/* The time `us` from now, in UTC as clock_utc_after, by the clock that all who write the dataset share. */
void store_utc_after(const struct store *store, double us, char *out, size_t n);

/* Whether a team and whom something is shared with can be kept; each may be NULL. Fails: ST_INVALID. */
enum status check_team(const char *team, const char *shared, struct error *err);

/* Copy the open database into the empty file `path`. */
enum status backup_copy(struct store *store, const char *path, struct error *err);

/* See store_backup. */
enum status backup_write(struct store *store, const char *path, struct error *err);

/* The id of a text that nobody has looked at yet. Fails: ST_INVALID when it is no JSON; `name` stands for it there. */
enum status object_read_id(const char *name, const char *content, struct id *out, struct error *err);

/* Add an object without a transaction of its own. `content` is known to be JSON, and `id` to be its SHA-256: neither is
 * looked at again. `created` NULL is now. *added (may be NULL) says whether it was new. */
enum status object_put(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                       const char *content, const char *created, bool *added, struct error *err);

/* The same as a step of its own. What is new is then of no team and shared with all. */
enum status object_put_for_all(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                               const char *content, struct error *err);

/* holding_put, made at `created`; NULL is now. */
enum status holding_put_at(struct store *store, enum store_kind kind, const char *id, const char *team,
                           const char *name, const char *shared, const char *created, struct error *err);

/* A row of the columns id, name, created and, where it is asked for, content. */
enum status object_read(struct sql_statement *stmt, bool with_content, struct arena *arena, struct stored_object *out,
                        struct error *err);

/* The row that other tables know an object by, 0 when it is not here. */
enum status object_row(struct store *store, enum store_kind kind, const char *id, int64_t *out, struct error *err);

/* Column `i`, the state of `trial`. Fails: ST_INVALID. */
enum status column_state(struct sql_statement *stmt, int i, int64_t trial, enum record_state *out, struct error *err);

/* A new trial's uid, 32 hex digits. Fails: ST_ENVIRONMENT. */
enum { UID_ROOM = 33 };
enum status make_uid(char out[UID_ROOM], struct error *err);

/* Fails: ST_INVALID unless all are positive and finite. */
enum status check_times(size_t n, const double *times_us, struct error *err);
enum status insert_iterations(struct store *store, int64_t trial, size_t n, const double *times_us, struct error *err);

/* A row of `sessions s`, and the column behind these where a list asks for its row number as well. */
#define SESSION_COLUMNS                                                                                                \
    "s.id, s.model, s.cluster, s.seed, s.budget, s.options, s.state, s.reason, s.started, s.ended,"                    \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id),"                                                         \
    " (SELECT count(*) FROM trials t WHERE t.session = s.id AND t.state = 'complete'),"                                \
    " s.team, s.shared, s.mode, s.origin"
enum { SESSION_ROW = 16 };
enum status session_read(struct sql_statement *stmt, struct arena *arena, struct stored_session *out,
                         struct error *err);
/* Returns ST_NOT_FOUND, with a message about the object. */
enum status no_object(const struct store *store, enum store_kind kind, const char *id, struct error *err);
const char *object_table(enum store_kind kind);
const char *object_word(enum store_kind kind);

#endif
