/* The dataset: every model, cluster, strategy, session and trial, in one SQLite file that teams share, or in a schema
 * of a PostgreSQL database. Where a path of a file is asked for, the address "postgresql://user@host/database" may
 * stand.
 *
 * A function that writes returns ST_OK only after its transaction is on the disk (write-ahead log, synchronous=FULL):
 * what was acknowledged survives SIGKILL and power loss. One process writes a file at a time, any number read it. In
 * PostgreSQL any number write as well (claims.h).
 *
 * Models, clusters, strategies, environments and rankers are objects: canonical JSON named by its SHA-256, so putting
 * one twice is the same as once, and files merge without renaming. A strategy's text is the one that was hashed, which
 * leaves its name out; the name is kept beside it.
 * Times are microseconds (_us), NaN where there is none; stamps are UTC, "2026-11-21T08:41:17.123Z".
 * Errors that any function here may return: ST_ENVIRONMENT (disk full, read-only, input or output error), ST_INVALID
 * (the file is damaged), ST_NO_MEMORY, and ST_CONFLICT when a read-only store is written.
 * Teams: a trial or session may belong to a team. `shared` says who sees it: everybody ("*"), that team alone (""), or
 * that team and others ("|a|b|"). Functions that take a `viewer`, a team, find only what this team may see.
 *
 * Threads: a struct store belongs to one thread at a time. A reading thread opens a read-only store of its own, beside
 * the writer's in the same process as well as in another; opening one costs a fraction of a millisecond. writer.h lets
 * several threads write. */
#ifndef DATASET_STORE_H
#define DATASET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"

struct store; /* opaque */

enum store_mode { STORE_READ_ONLY, STORE_READ_WRITE };

/* The code (struct error) of a failure because the database is away, or others keep it: the same may succeed later. */
#define STORE_AWAY "database-away"

/* Open `path`. STORE_READ_ONLY reads a file of an older schema from a copy in TMPDIR, which is brought up to date and
 * goes away with the store [O(file)]. STORE_READ_WRITE creates it when it is not there, brings an older schema up to
 * date (after a copy to PATH.vN.backup), and holds PATH.lock while open. A failed open leaves the file as it was, and
 * none where none was. Fails: ST_CONFLICT (another process, which is named, has it open for writing), ST_NOT_FOUND,
 * ST_ENVIRONMENT, ST_INVALID (no SQLite file, another program's, of a newer schema).
 * In PostgreSQL the same holds of the schema that the address names, but any number of processes write it, one
 * transaction at a time. Fails also: ST_USAGE (no address, or one with a password). */
enum status store_open(const char *path, enum store_mode mode, struct store **out, struct error *err);
/* Whether `path` is the address of a database: "postgresql://...". */
bool store_is_database(const char *path);
/* Whether `path` is a file that is there, or the address of a database, which only store_open can ask. */
bool store_may_be_there(const char *path);
/* The name of a file that goes with a dataset: "PATH.tokens" for the ending "tokens". A database has no folder, so that
 * the file is in the working folder, and eight digits stand for the address: "syncopate-1a2b3c4d.tokens". Fails:
 * ST_USAGE when n bytes do not hold it. */
enum status store_beside(const char *path, const char *ending, char *out, size_t n, struct error *err);
/* NULL is allowed. When the last store of a file closes, the files PATH-wal and PATH-shm go. */
void store_close(struct store *store);
const char *store_path(const struct store *store);
/* Whether other processes may write it too: what was read before a transaction may no longer hold in it. */
bool store_is_shared(const struct store *store);

/* A consistent copy to `path`, one file without side files, whole or not at all. Fails: ST_CONFLICT when `path` is
 * there already, ST_USAGE in PostgreSQL, with the command that makes one. */
enum status store_backup(struct store *store, const char *path, struct error *err);

/* A transaction around several of the functions below: all of them are committed, or none. store_end commits when
 * `status` is ST_OK; otherwise it undoes everything since store_begin, and returns `status`. Pairs nest: an inner pair
 * that fails undoes its own part, and the outer pair may go on. Some errors make SQLite undo the whole transaction (a
 * full disk, no memory): then every later step of it fails, and so does the outermost store_end. Call no store_end
 * after a store_begin that failed. */
enum status store_begin(struct store *store, struct error *err);
enum status store_end(struct store *store, enum status status, struct error *err);

/* One consistent view for several reads, which is also cheaper than a view for each. Pairs nest. Hand *began to
 * store_end_read. */
enum status store_begin_read(struct store *store, bool *began, struct error *err);
void store_end_read(struct store *store, bool began);

/* Teams: 1 to 64 letters, digits and . _ - */
bool team_is_valid(const char *team);

/* Whether `team` is "all" or "team", the words of sharing.h. No new team may be called so; older datasets may have such
 * teams. */
bool team_is_word(const char *team);

/* "*", "", or "|a|b|" of valid teams. */
bool shared_is_valid(const char *shared);

/* Objects; describe.h and holdings.h put them. X(constant, table, word) */
#define STORE_KIND_TABLE(X)                                                                                            \
    X(STORE_MODEL, models, model)                                                                                      \
    X(STORE_CLUSTER, clusters, cluster)                                                                                \
    X(STORE_STRATEGY, strategies, strategy)                                                                            \
    X(STORE_ENVIRONMENT, environments, environment)                                                                    \
    X(STORE_RANKER, rankers, ranker)

enum store_kind {
#define X(constant, table, word) constant,
    STORE_KIND_TABLE(X)
#undef X
        STORE_KIND_COUNT
};

struct stored_object {
    struct id id;
    const char *name;
    const char *content; /* canonical JSON; NULL in lists */
    const char *created;
};

/* Texts are copied into `arena`. Fails: ST_NOT_FOUND. */
enum status store_get(struct store *store, enum store_kind kind, const char *id, struct arena *arena,
                      struct stored_object *out, struct error *err);

/* Whether it is there, by its whole id. Fails: ST_NOT_FOUND. */
enum status store_has(struct store *store, enum store_kind kind, const char *id, struct error *err);

/* The one object whose id begins with `word` (4 hex digits at least), or else whose name it is (the newest of one
 * name). Fails: ST_NOT_FOUND, ST_USAGE when the digits fit several. */
enum status store_find(struct store *store, enum store_kind kind, const char *word, struct id *out, struct error *err);

/* List all objects of a kind, oldest first, without their contents. */
enum status store_list(struct store *store, enum store_kind kind, struct arena *arena, size_t *n,
                       struct stored_object **out, struct error *err);

/* Sessions. X(constant, word) */
#define STORED_SESSION_TABLE(X)                                                                                        \
    X(STORED_SESSION_RUNNING, running)                                                                                 \
    X(STORED_SESSION_DONE, done)                                                                                       \
    X(STORED_SESSION_STOPPED, stopped)                                                                                 \
    X(STORED_SESSION_FAILED, failed)                                                                                   \
    X(STORED_SESSION_PAUSED, paused)                                                                                   \
    X(STORED_SESSION_CANCELLED, cancelled)

enum stored_session_state {
#define X(constant, word) constant,
    STORED_SESSION_TABLE(X)
#undef X
        STORED_SESSION_STATE_COUNT
};
const char *stored_session_state_word(enum stored_session_state state);
bool stored_session_state_parse(const char *word, enum stored_session_state *out);
bool stored_session_is_open(enum stored_session_state state); /* running or paused: it has not ended */

/* Who runs its trials: the process itself, or clients that ask for them and tell what they measured. */
enum stored_session_mode { STORED_SESSION_OWN, STORED_SESSION_ASK };
const char *stored_session_mode_word(enum stored_session_mode mode); /* own, ask */

struct stored_session {
    const char *id;              /* the caller's, short and readable */
    const char *model, *cluster; /* ids */
    uint64_t seed;
    const char *budget, *options; /* JSON objects */
    enum stored_session_state state;
    const char *reason; /* why it ended, or NULL */
    const char *started, *ended;
    uint64_t trials, complete; /* how many it has, and of these complete */
    const char *team;          /* NULL: of no team */
    const char *shared;        /* NULL when it begins: with all */
    enum stored_session_mode mode;
    /* NULL: the session was opened in this dataset, by its own tools. Otherwise it is foreign, and this says where it
     * came from. Nobody runs the commands of a foreign session unasked. */
    const char *origin;
};

/* The origin of sessions of a file from before version 5, whose schema did not say whether a session is foreign. */
#define SESSION_BEFORE "before version 5"

/* A session's id: 1 to 63 letters, digits and . _ - , the first a letter or a digit, so that no id is a path or an
 * option. */
enum { SESSION_ID_MAX = 63 };
bool session_id_is_valid(const char *id);

/* Record a new session, running, started now; reads id, model, cluster, seed, budget, options (NULL: "{}"), team,
 * shared, mode. Fails: ST_CONFLICT (the id is taken), ST_NOT_FOUND (model or cluster was not put), ST_INVALID. */
enum status store_session_begin(struct store *store, const struct stored_session *session, struct error *err);

/* Fails: ST_NOT_FOUND. */
enum status store_session_get(struct store *store, const char *id, struct arena *arena, struct stored_session *out,
                              struct error *err);

/* List sessions, newest first: at most `limit` (0: all), after the first `offset`. */
enum status store_session_list(struct store *store, size_t offset, size_t limit, struct arena *arena, size_t *n,
                               struct stored_session **out, struct error *err);

/* How many there are in each state. O(sessions). */
enum status store_session_counts(struct store *store, uint64_t counts[STORED_SESSION_STATE_COUNT], struct error *err);

/* Change the state; any but running and paused sets the end to now. `reason` may be NULL. Fails: ST_NOT_FOUND. */
enum status store_session_update(struct store *store, const char *id, enum stored_session_state state,
                                 const char *reason, struct error *err);

/* Replace its budget. Fails: ST_NOT_FOUND, ST_INVALID when it is no JSON. */
enum status store_session_budget(struct store *store, const char *id, const char *budget, struct error *err);

/* It is about this cluster from now on. It must not have trials. Fails: as store_session_budget, ST_CONFLICT (it has
 * trials). */
enum status store_session_move(struct store *store, const char *id, const char *cluster, struct error *err);

/* Replace its options. Fails: as store_session_budget. */
enum status store_session_options(struct store *store, const char *id, const char *options, struct error *err);

/* A foreign session becomes the dataset's own, with these options in place of its own. Fails: ST_NOT_FOUND, ST_INVALID
 * when they are no JSON. */
enum status store_session_adopt(struct store *store, const char *id, const char *options, struct error *err);

/* Share a session and all its trials anew. Fails: ST_NOT_FOUND, ST_INVALID. */
enum status store_session_share(struct store *store, const char *id, const char *shared, struct error *err);

/* Share one trial anew, by its uid. A trial of a session should be shared with its session (store_session_share). Fails
 * as store_session_share. */
enum status store_trial_share(struct store *store, const char *uid, const char *shared, struct error *err);

/* To be called before a session is resumed. This process has claimed it (claims.h), so trials that still say `running`
 * were left by a dead process: they become `cancelled`. Trials with a lease belong to clients and stay. The session
 * itself runs again. *cancelled (may be NULL) is how many there were. Fails: ST_NOT_FOUND. */
enum status store_session_reconcile(struct store *store, const char *id, uint64_t *cancelled, struct error *err);

/* Trials. X(constant, word) */
#define RECORD_STATE_TABLE(X)                                                                                          \
    X(RECORD_WAITING, waiting)                                                                                         \
    X(RECORD_RUNNING, running)                                                                                         \
    X(RECORD_COMPLETE, complete)                                                                                       \
    X(RECORD_FAILED, failed)                                                                                           \
    X(RECORD_INFEASIBLE, infeasible)                                                                                   \
    X(RECORD_CANCELLED, cancelled)

enum record_state {
#define X(constant, word) constant,
    RECORD_STATE_TABLE(X)
#undef X
        RECORD_STATE_COUNT
};
const char *record_state_word(enum record_state state);
bool record_state_parse(const char *word, enum record_state *out);

struct new_trial {
    const char *session;                    /* NULL: a trial on its own */
    uint64_t number;                        /* within the session, from 1; 0: the next one */
    uint64_t round;                         /* which repetition of its strategy this is, from 0 */
    const char *model, *cluster, *strategy; /* ids, put before */
    const char *strategy_name;              /* what its team calls the strategy; NULL: says nothing */
    const char *proposer;                   /* a baseline's name, "guided", "neighbour", ... */
    const char *runner;                     /* "lab", "local", "mpirun", ... */
    double predicted_us;
    uint64_t seed;
    bool waiting; /* queue it; else it runs from now */
    /* NULL: as its session, and without one of no team and shared with all. */
    const char *team, *shared;
};

struct finished_trial {
    double mean_us, median_us, low_us, high_us; /* of the iterations; low and high bound the median */
    size_t n_iterations;
    const double *iterations_us;
    const char *environment; /* canonical JSON: runner, host, kernel, mpi, ended_early, ... */
};

/* *trial names the row from now on. Fails: ST_NOT_FOUND (session or object), ST_CONFLICT (the number is taken),
 * ST_INVALID. */
enum status store_trial_begin(struct store *store, const struct new_trial *request, int64_t *trial, struct error *err);

/* Set what runs the trial, which must not have ended. Fails: ST_NOT_FOUND. */
enum status store_trial_ran_by(struct store *store, int64_t trial, const char *runner, struct error *err);

/* running -> complete: result, every iteration and the environment in one transaction. Fails: ST_NOT_FOUND,
 * ST_CONFLICT, ST_INVALID (no iterations, or a time that is not positive and finite). */
enum status store_trial_finish(struct store *store, int64_t trial, const struct finished_trial *result,
                               struct error *err);

/* waiting or running -> failed, infeasible or cancelled, with the reason. Fails as store_trial_finish. */
enum status store_trial_fail(struct store *store, int64_t trial, enum record_state state, const char *reason,
                             struct error *err);

#endif
