/* The SQL of every schema version, as one would type it. PRAGMA user_version counts the versions that a file has been
 * through, application_id ("sYnc") tells our files from other programs' SQLite files. A version once released never
 * changes: a new one is appended. Indexes are not part of a version: they are made again at every opening for writing,
 * so that a file which lost one is slow only once. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataset/schema_internal.h"

enum { APPLICATION_ID = 0x73596e63 };

#define OBJECT_TABLE(table)                                                                                            \
    "CREATE TABLE " table " (\n"                                                                                       \
    "  id      TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),\n" /* SHA-256 of content */                          \
    "  name    TEXT NOT NULL,\n"                                                                                       \
    "  content TEXT NOT NULL CHECK (json_valid(content)),\n"                                                           \
    "  created TEXT NOT NULL\n"                                                                                        \
    ") STRICT;\n"

static const char *const versions[SCHEMA_VERSION] = {
    /* 1 */
    OBJECT_TABLE("models") OBJECT_TABLE("clusters") OBJECT_TABLE("strategies") OBJECT_TABLE(
        "environments") "CREATE TABLE sessions (\n"
                        "  id      TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),\n"
                        "  model   TEXT NOT NULL REFERENCES models (id),\n"
                        "  cluster TEXT NOT NULL REFERENCES clusters (id),\n"
                        "  seed    INTEGER NOT NULL,\n" /* the 64 bits of an unsigned number */
                        "  budget  TEXT NOT NULL CHECK (json_valid(budget)),\n"
                        "  options TEXT NOT NULL CHECK (json_valid(options)),\n"
                        "  state   TEXT NOT NULL CHECK (state IN ('running', 'done', 'stopped', 'failed')),\n"
                        "  reason  TEXT,\n"
                        "  started TEXT NOT NULL,\n"
                        "  ended   TEXT,\n"
                        "  CHECK ((state = 'running') = (ended IS NULL))\n"
                        ") STRICT;\n"
                        "CREATE TABLE trials (\n"
                        "  id           INTEGER NOT NULL PRIMARY KEY,\n"
                        "  uid          TEXT NOT NULL UNIQUE,\n" /* the same trial in every file it is merged into */
                        "  session      TEXT REFERENCES sessions (id),\n" /* NULL: a trial on its own */
                        "  number       INTEGER CHECK (number > 0),\n"    /* within the session */
                        "  round        INTEGER NOT NULL CHECK (round >= 0),\n"
                        "  model        TEXT NOT NULL REFERENCES models (id),\n"
                        "  cluster      TEXT NOT NULL REFERENCES clusters (id),\n"
                        "  strategy     TEXT NOT NULL REFERENCES strategies (id),\n"
                        "  proposer     TEXT NOT NULL,\n"
                        "  runner       TEXT NOT NULL,\n"
                        "  predicted_us REAL CHECK (predicted_us > 0),\n"
                        "  seed         INTEGER NOT NULL,\n"
                        "  state        TEXT NOT NULL\n"
                        "    CHECK (state IN ('waiting', 'running', 'complete', 'failed', 'infeasible', "
                        "'cancelled')),\n"
                        "  queued       TEXT NOT NULL,\n"
                        "  started      TEXT,\n"
                        "  ended        TEXT,\n"
                        "  mean_us      REAL CHECK (mean_us > 0),\n"
                        "  median_us    REAL CHECK (median_us > 0),\n"
                        "  low_us       REAL CHECK (low_us <= median_us),\n"
                        "  high_us      REAL CHECK (high_us >= median_us),\n"
                        "  reason       TEXT,\n"
                        "  environment  TEXT REFERENCES environments (id),\n"
                        "  UNIQUE (session, number),\n"
                        "  CHECK ((session IS NULL) = (number IS NULL)),\n"
                        "  CHECK ((state = 'complete') = (median_us IS NOT NULL AND mean_us IS NOT NULL AND "
                        "environment IS NOT NULL)),\n"
                        "  CHECK ((state IN ('failed', 'infeasible', 'cancelled')) = (reason IS NOT NULL)),\n"
                        "  CHECK ((state IN ('waiting', 'running')) = (ended IS NULL))\n"
                        ") STRICT;\n"
                        "CREATE TABLE iterations (\n"
                        "  trial   INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,\n"
                        "  number  INTEGER NOT NULL CHECK (number >= 0),\n"
                        "  time_us REAL NOT NULL CHECK (time_us > 0),\n"
                        "  PRIMARY KEY (trial, number)\n"
                        ") STRICT, WITHOUT ROWID;\n",

    /* 2: what an exact resumption and the learned rankers need */
    OBJECT_TABLE("rankers") "CREATE TABLE calibrations (\n"
                            "  session     TEXT NOT NULL REFERENCES sessions (id),\n"
                            "  after_trial INTEGER NOT NULL CHECK (after_trial >= 0),\n" /* a trial's number, 0 before
                                                                                            the first */
                            "  content     TEXT NOT NULL CHECK (json_valid(content)),\n"
                            "  created     TEXT NOT NULL,\n"
                            "  PRIMARY KEY (session, after_trial)\n"
                            ") STRICT;\n",
};

static const char indexes[] = "CREATE INDEX IF NOT EXISTS models_name ON models (name);\n"
                              "CREATE INDEX IF NOT EXISTS clusters_name ON clusters (name);\n"
                              "CREATE INDEX IF NOT EXISTS strategies_name ON strategies (name);\n"
                              "CREATE INDEX IF NOT EXISTS sessions_started ON sessions (started);\n"
                              "CREATE INDEX IF NOT EXISTS trials_session ON trials (session, state, median_us);\n"
                              "CREATE INDEX IF NOT EXISTS trials_problem ON trials (model, cluster, median_us);\n"
                              "CREATE INDEX IF NOT EXISTS trials_cluster ON trials (cluster);\n"
                              "CREATE INDEX IF NOT EXISTS trials_strategy ON trials (strategy, median_us);\n"
                              "CREATE INDEX IF NOT EXISTS trials_measured ON trials (median_us);\n"
                              "CREATE INDEX IF NOT EXISTS trials_queued ON trials (queued);\n";

enum status schema_read_version(struct store *store, int *version, struct error *err) {
    int64_t tables = 0, application = 0, user = 0;
    enum status status = sql_get_integer(store, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (status == ST_OK)
        status = sql_get_integer(store, "PRAGMA application_id", &application, err);
    if (status == ST_OK)
        status = sql_get_integer(store, "PRAGMA user_version", &user, err);
    if (status != ST_OK)
        return status;
    const bool empty = tables == 0 && application == 0 && user == 0;
    if (!empty && (application != APPLICATION_ID || user < 1))
        return error_set(err, ST_INVALID, "%s: not a dataset (an SQLite file of another program)", store->path);
    if (user > SCHEMA_VERSION)
        return error_set(err, ST_INVALID, "%s: of schema version %lld, this program knows %d; use a newer syncopate",
                         store->path, (long long)user, SCHEMA_VERSION);
    *version = (int)user;
    return ST_OK;
}

/* PATH.v1.backup, or the first of PATH.v1.backup.2, .3, ... that is free: an earlier copy is never overwritten. */
static enum status keep_copy(struct store *store, int version, struct error *err) {
    for (int i = 1;; i++) {
        char *path;
        int n = i == 1 ? asprintf(&path, "%s.v%d.backup", store->file, version)
                       : asprintf(&path, "%s.v%d.backup.%d", store->file, version, i);
        if (n < 0)
            return error_no_memory(err);
        const bool taken = access(path, F_OK) == 0;
        enum status status = taken ? ST_OK : backup_write(store, path, err);
        free(path);
        if (!taken)
            return status;
    }
}

static enum status migrate_to(struct store *store, int version, struct error *err) {
    char counters[128];
    snprintf(counters, sizeof counters, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
             (int)APPLICATION_ID);
    enum status status = sql_begin(store, err);
    if (status != ST_OK)
        return status;
    status = sql_exec(store, versions[version - 1], err);
    if (status == ST_OK)
        status = sql_exec(store, counters, err);
    status = sql_end(store, status, err);
    if (status != ST_OK)
        error_prefix(err, "to schema version %d", version);
    return status;
}

enum status schema_migrate(struct store *store, int version, struct error *err) {
    enum status status = ST_OK;
    if (version > 0 && version < SCHEMA_VERSION)
        status = keep_copy(store, version, err);
    while (status == ST_OK && version < SCHEMA_VERSION)
        status = migrate_to(store, ++version, err);
    if (status == ST_OK)
        status = sql_begin(store, err);
    if (status != ST_OK)
        return status;
    return sql_end(store, sql_exec(store, indexes, err), err);
}
