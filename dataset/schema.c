/* The SQL of every schema version, as one would type it. PRAGMA user_version counts the versions that a file has been
 * through, application_id ("sYnc") tells our files from other programs' SQLite files. A version once released never
 * changes: a new one is appended. Indexes are not part of a version: they are made again at every opening for writing,
 * so that a file which lost one is slow only once. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataset/schema_internal.h"
#include "dataset/store_internal.h"

enum { APPLICATION_ID = 0x73596e63 };

#define OBJECT_TABLE(table)                                                                                            \
    "CREATE TABLE " table " (\n"                                                                                       \
    "  id      TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),\n" /* SHA-256 of content */                          \
    "  name    TEXT NOT NULL,\n"                                                                                       \
    "  content TEXT NOT NULL CHECK (json_valid(content)),\n"                                                           \
    "  created TEXT NOT NULL\n"                                                                                        \
    ") STRICT;\n"

/* With a row number that VACUUM keeps, for others to refer to. */
#define NUMBERED_TABLE(table)                                                                                          \
    "CREATE TABLE " table "_4 (\n"                                                                                     \
    "  row     INTEGER NOT NULL PRIMARY KEY,\n"                                                                        \
    "  id      TEXT NOT NULL UNIQUE CHECK (length(id) = 64),\n"                                                        \
    "  name    TEXT NOT NULL,\n"                                                                                       \
    "  content TEXT NOT NULL CHECK (json_valid(content)),\n"                                                           \
    "  created TEXT NOT NULL\n"                                                                                        \
    ") STRICT;\n"                                                                                                      \
    "INSERT INTO " table "_4 SELECT rowid, id, name, content, created FROM " table " ORDER BY rowid;\n"                \
    "DROP TABLE " table ";\n"                                                                                          \
    "ALTER TABLE " table "_4 RENAME TO " table ";\n"

/* Who sees a row with these values of team and shared, as a JSON array: its own team first, if it has one ("" for a
 * holding of no team), then "*" or the teams that it is shared with. */
#define SEEN_BY(row)                                                                                                   \
    "'[' || CASE WHEN " row ".team IS NULL THEN '' ELSE json_quote(" row ".team) || CASE " row                         \
    ".shared WHEN '' THEN '' ELSE ',' END END || CASE " row                                                            \
    ".shared WHEN '' THEN '' ELSE replace(json_quote(trim(" row ".shared, '|')), '|', '\",\"') END || ']'"
#define OWNS(row) "(a.key = 0 AND " row ".team IS NOT NULL)"

/* The reasons to see a model, cluster or strategy: holdings of it, and sessions and trials that are about it. Of a
 * strategy's trials only those that are shared with teams by name. */
/* clang-format off */
#define SHOWN                                                                                                          \
    "(SELECT 'model' AS kind, model AS object, team, shared, count(*) AS n FROM trials GROUP BY 2, 3, 4"               \
    " UNION ALL SELECT 'cluster', cluster, team, shared, count(*) FROM trials GROUP BY 2, 3, 4"                        \
    " UNION ALL SELECT 'strategy', strategy, NULL, shared, count(*) FROM trials WHERE shared NOT IN ('', '*')"         \
    " GROUP BY 2, 4"                                                                                                   \
    " UNION ALL SELECT 'model', o.row, x.team, x.shared, 1 FROM sessions x JOIN models o ON o.id = x.model"            \
    " UNION ALL SELECT 'cluster', o.row, x.team, x.shared, 1 FROM sessions x JOIN clusters o ON o.id = x.cluster"      \
    " UNION ALL SELECT kind, object, team, shared, 1 FROM holdings)"

/* All trials of a strategy by one team are one reason; all its trials that are shared with all are one more. */
#define TRIED                                                                                                          \
    "(SELECT DISTINCT team AS audience, strategy, 1 AS own FROM trials WHERE team NOT NULL"                            \
    " UNION ALL SELECT DISTINCT '*', strategy, 0 FROM trials WHERE shared = '*')"
#define AUDIENCES                                                                                                      \
    "SELECT kind, audience, object, sum(n) AS reasons, sum(n * own) AS own, max(trials) AS trials FROM ("              \
    "SELECT s.kind AS kind, a.value AS audience, s.object AS object, s.n AS n, " OWNS("s") " AS own, 0 AS trials"      \
    " FROM " SHOWN " s, json_each(" SEEN_BY("s") ") a"                                                                 \
    " UNION ALL SELECT 'strategy', audience, strategy, 1, own, 1 FROM " TRIED ") GROUP BY 1, 2, 3"
/* clang-format on */

/* clang-format off */
static const char *const versions[SCHEMA_VERSION] = {
    /* 1 */
    OBJECT_TABLE("models") OBJECT_TABLE("clusters") OBJECT_TABLE("strategies") OBJECT_TABLE("environments")
    "CREATE TABLE sessions (\n"
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
    "  number       INTEGER CHECK (number > 0),\n" /* within the session */
    "  round        INTEGER NOT NULL CHECK (round >= 0),\n"
    "  model        TEXT NOT NULL REFERENCES models (id),\n"
    "  cluster      TEXT NOT NULL REFERENCES clusters (id),\n"
    "  strategy     TEXT NOT NULL REFERENCES strategies (id),\n"
    "  proposer     TEXT NOT NULL,\n"
    "  runner       TEXT NOT NULL,\n"
    "  predicted_us REAL CHECK (predicted_us > 0),\n"
    "  seed         INTEGER NOT NULL,\n"
    "  state        TEXT NOT NULL\n"
    "    CHECK (state IN ('waiting', 'running', 'complete', 'failed', 'infeasible', 'cancelled')),\n"
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
    "  CHECK ((state = 'complete') = (median_us IS NOT NULL AND mean_us IS NOT NULL AND environment IS NOT NULL)),\n"
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
    OBJECT_TABLE("rankers")
    "CREATE TABLE calibrations (\n"
    "  session     TEXT NOT NULL REFERENCES sessions (id),\n"
    "  after_trial INTEGER NOT NULL CHECK (after_trial >= 0),\n" /* a trial's number; 0: before the first */
    "  content     TEXT NOT NULL CHECK (json_valid(content)),\n"
    "  created     TEXT NOT NULL,\n"
    "  PRIMARY KEY (session, after_trial)\n"
    ") STRICT;\n",

    /* 3: what a service needs. A CHECK cannot be changed in place, so sessions are copied into a new table. */
    "CREATE TABLE sessions_3 (\n"
    "  id      TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),\n"
    "  model   TEXT NOT NULL REFERENCES models (id),\n"
    "  cluster TEXT NOT NULL REFERENCES clusters (id),\n"
    "  seed    INTEGER NOT NULL,\n"
    "  budget  TEXT NOT NULL CHECK (json_valid(budget)),\n"
    "  options TEXT NOT NULL CHECK (json_valid(options)),\n"
    "  state   TEXT NOT NULL\n"
    "    CHECK (state IN ('running', 'done', 'stopped', 'failed', 'paused', 'cancelled')),\n"
    "  reason  TEXT,\n"
    "  started TEXT NOT NULL,\n"
    "  ended   TEXT,\n"
    "  team    TEXT,\n"
    "  shared  TEXT NOT NULL DEFAULT '*',\n" /* '*' with all, '' with its team alone, '|a|b|' with teams a and b */
    "  mode    TEXT NOT NULL DEFAULT 'own' CHECK (mode IN ('own', 'ask')),\n"
    "  CHECK ((state IN ('running', 'paused')) = (ended IS NULL))\n"
    ") STRICT;\n"
    "INSERT INTO sessions_3 SELECT id, model, cluster, seed, budget, options, state, reason, started, ended, NULL,\n"
    "  '*', 'own' FROM sessions ORDER BY rowid;\n"
    "DROP TABLE sessions;\n"
    "ALTER TABLE sessions_3 RENAME TO sessions;\n"
    "ALTER TABLE trials ADD COLUMN team TEXT;\n"
    "ALTER TABLE trials ADD COLUMN shared TEXT NOT NULL DEFAULT '*';\n"
    "ALTER TABLE trials ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1 CHECK (attempt > 0);\n"
    "ALTER TABLE trials ADD COLUMN client TEXT;\n"
    "ALTER TABLE trials ADD COLUMN lease_until TEXT CHECK (lease_until IS NULL OR state = 'running');\n"
    "ALTER TABLE trials ADD COLUMN lease_us REAL\n"
    "  CHECK ((lease_us IS NULL) = (lease_until IS NULL) AND (lease_us IS NULL OR lease_us > 0));\n"
    /* how many a complete trial was recorded with; NULL in those of older versions, which have at least one */
    "ALTER TABLE trials ADD COLUMN n_iterations INTEGER CHECK (n_iterations >= 0);\n"
    "CREATE TABLE events (\n"
    "  id      INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "  session TEXT,\n"
    "  kind    TEXT NOT NULL,\n"
    "  content TEXT NOT NULL CHECK (json_valid(content)),\n"
    "  created TEXT NOT NULL\n"
    ") STRICT;\n"
    "CREATE TABLE idempotency (\n"
    "  token        TEXT NOT NULL,\n"
    "  key          TEXT NOT NULL,\n"
    "  fingerprint  TEXT NOT NULL,\n" /* of the request */
    "  status       INTEGER NOT NULL,\n"
    "  content_type TEXT NOT NULL,\n"
    "  body         BLOB NOT NULL,\n"
    "  created      TEXT NOT NULL,\n"
    "  PRIMARY KEY (token, key)\n"
    ") STRICT;\n"
    "CREATE TABLE operations (\n"
    "  id      TEXT NOT NULL PRIMARY KEY,\n"
    "  kind    TEXT NOT NULL,\n"
    "  team    TEXT,\n"
    "  state   TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),\n"
    "  request TEXT NOT NULL CHECK (json_valid(request)),\n"
    "  result  TEXT CHECK (result IS NULL OR json_valid(result)),\n"
    "  created TEXT NOT NULL,\n"
    "  ended   TEXT,\n"
    "  CHECK ((state = 'running') = (ended IS NULL))\n"
    ") STRICT;\n"
    "CREATE TABLE audit (\n"
    "  id         INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "  at         TEXT NOT NULL,\n"
    "  token      TEXT,\n"
    "  team       TEXT,\n"
    "  address    TEXT,\n"
    "  method     TEXT NOT NULL,\n"
    "  path       TEXT NOT NULL,\n"
    "  status     INTEGER NOT NULL,\n"
    "  request_id TEXT\n"
    ") STRICT;\n",

    /* 4: trials refer to what they are about by row number. 64 digits in each of four columns, and again in their
     * indexes, were half of the file. */
    NUMBERED_TABLE("models") NUMBERED_TABLE("clusters") NUMBERED_TABLE("strategies") NUMBERED_TABLE("rankers")
    NUMBERED_TABLE("environments")
    "CREATE TABLE trials_4 (\n"
    "  id           INTEGER NOT NULL PRIMARY KEY,\n"
    "  uid          TEXT NOT NULL UNIQUE,\n"
    "  session      TEXT REFERENCES sessions (id),\n"
    "  number       INTEGER CHECK (number > 0),\n"
    "  round        INTEGER NOT NULL CHECK (round >= 0),\n"
    "  model        INTEGER NOT NULL REFERENCES models (row),\n"
    "  cluster      INTEGER NOT NULL REFERENCES clusters (row),\n"
    "  strategy     INTEGER NOT NULL REFERENCES strategies (row),\n"
    "  proposer     TEXT NOT NULL,\n"
    "  runner       TEXT NOT NULL,\n"
    "  predicted_us REAL CHECK (predicted_us > 0),\n"
    "  seed         INTEGER NOT NULL,\n"
    "  state        TEXT NOT NULL\n"
    "    CHECK (state IN ('waiting', 'running', 'complete', 'failed', 'infeasible', 'cancelled')),\n"
    "  queued       TEXT NOT NULL,\n"
    "  started      TEXT,\n"
    "  ended        TEXT,\n"
    "  mean_us      REAL CHECK (mean_us > 0),\n"
    "  median_us    REAL CHECK (median_us > 0),\n"
    "  low_us       REAL CHECK (low_us <= median_us),\n"
    "  high_us      REAL CHECK (high_us >= median_us),\n"
    "  reason       TEXT,\n"
    "  environment  INTEGER REFERENCES environments (row),\n"
    "  team         TEXT,\n"
    "  shared       TEXT NOT NULL DEFAULT '*',\n"
    "  attempt      INTEGER NOT NULL DEFAULT 1 CHECK (attempt > 0),\n"
    "  client       TEXT,\n"
    "  lease_until  TEXT CHECK (lease_until IS NULL OR state = 'running'),\n"
    "  lease_us     REAL CHECK ((lease_us IS NULL) = (lease_until IS NULL)\n"
    "    AND (lease_us IS NULL OR lease_us > 0)),\n"
    "  n_iterations INTEGER CHECK (n_iterations >= 0),\n"
    "  UNIQUE (session, number),\n"
    "  CHECK ((session IS NULL) = (number IS NULL)),\n"
    "  CHECK ((state = 'complete') = (median_us IS NOT NULL AND mean_us IS NOT NULL AND environment IS NOT NULL)),\n"
    "  CHECK ((state IN ('failed', 'infeasible', 'cancelled')) = (reason IS NOT NULL)),\n"
    "  CHECK ((state IN ('waiting', 'running')) = (ended IS NULL))\n"
    ") STRICT;\n"
    /* A reference to nothing becomes a NULL, which stops it all. */
    "INSERT INTO trials_4 SELECT t.id, uid, session, number, round, m.row, c.row, s.row, proposer,\n"
    "  runner, predicted_us, seed, state, queued, started, ended, mean_us, median_us, low_us,\n"
    "  high_us, reason, e.row, team, shared, attempt, client, lease_until, lease_us, n_iterations\n"
    "  FROM trials t LEFT JOIN models m ON m.id = t.model LEFT JOIN clusters c ON c.id = t.cluster\n"
    "  LEFT JOIN strategies s ON s.id = t.strategy LEFT JOIN environments e ON e.id = t.environment\n"
    "  ORDER BY t.id;\n"
    "DROP TABLE trials;\n"
    "ALTER TABLE trials_4 RENAME TO trials;\n",

    /* 5: `origin` says where a session came from; NULL: it was opened in this file. An older file does not say which of
     * its sessions were opened in it, so all of them get a word for "unknown". */
    "ALTER TABLE sessions ADD COLUMN origin TEXT;\n"
    "UPDATE sessions SET origin = '" SESSION_BEFORE "';\n",

    /* 6: who holds an object, and who may see it (holdings.h). `holdings` has a row for each team that put an object,
     * with the team's name for it. `audiences` counts, for each team and object, the reasons why the team may see it,
     * so that nobody has to search the trials. In an older file models, clusters and rankers become objects of no team
     * that are shared with all. A strategy becomes so too if no trial is about it. A strategy that trials are about is
     * held by the teams of these trials, and seen by whoever sees one of them. */
    "CREATE TABLE holdings (\n"
    "  kind    TEXT NOT NULL CHECK (kind IN ('model', 'cluster', 'strategy', 'environment', 'ranker')),\n"
    "  object  INTEGER NOT NULL,\n" /* the row in the kind's table */
    "  team    TEXT NOT NULL,\n" /* '' of no team */
    "  name    TEXT NOT NULL,\n"
    "  shared  TEXT NOT NULL,\n" /* as of sessions */
    "  created TEXT NOT NULL,\n"
    "  PRIMARY KEY (kind, object, team)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE audiences (\n"
    "  kind     TEXT NOT NULL,\n"
    "  audience TEXT NOT NULL,\n" /* a team, '*' for all, '' for objects of no team */
    "  object   INTEGER NOT NULL,\n"
    "  reasons  INTEGER NOT NULL,\n" /* for how many reasons this audience may see it, */
    "  own      INTEGER NOT NULL,\n" /* and how many of these are the audience's own */
    "  trials   INTEGER NOT NULL DEFAULT 0,\n" /* of a strategy; 1: its trials are one reason (audiences.c) */
    "  PRIMARY KEY (kind, audience, object)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "INSERT INTO holdings SELECT 'model', row, '', name, '*', created FROM models;\n"
    "INSERT INTO holdings SELECT 'cluster', row, '', name, '*', created FROM clusters;\n"
    "INSERT INTO holdings SELECT 'ranker', row, '', name, '*', created FROM rankers;\n"
    "INSERT INTO holdings SELECT 'strategy', row, '', name, '*', created FROM strategies s\n"
    "  WHERE s.row NOT IN (SELECT strategy FROM trials);\n"
    "INSERT INTO holdings (kind, object, team, name, shared, created)\n"
    "  SELECT DISTINCT 'strategy', s.row, t.team, s.name, '', s.created\n"
    "  FROM trials t JOIN strategies s ON s.row = t.strategy\n"
    "  WHERE t.team NOT NULL\n"
    "  ON CONFLICT DO NOTHING;\n"
    "INSERT INTO audiences " AUDIENCES ";\n"
    "CREATE TABLE usage (\n" /* what stays because of each team (usage.h) */
    "  team  TEXT NOT NULL PRIMARY KEY,\n"
    "  rows  INTEGER NOT NULL,\n"
    "  bytes INTEGER NOT NULL\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE pruned_events (\n"
    "  session TEXT NOT NULL PRIMARY KEY,\n"
    "  last    INTEGER NOT NULL\n" /* the newest event of it that was forgotten */
    ") STRICT, WITHOUT ROWID;\n",

    /* 7: no program reads or writes calibrations any more. The copy made before the upgrade still has them. */
    "DROP TABLE calibrations;\n",
};
/* clang-format on */

const char schema_audiences[] = AUDIENCES;

/* The triggers are of the connection, not of the file: a file from elsewhere brings none that act (open.c). Each row
 * counts `by` more for everyone who sees it. A row that has come down to no reasons stays, and counts for nothing.
 * Trials have no trigger: with one, SQLite keeps a journal of every single insertion, which takes longer than the
 * insertion (audiences_internal.h). */
/* clang-format off */
#define COUNT(row, by, objects)                                                                                        \
    "  INSERT INTO audiences (kind, audience, object, reasons, own)"                                                   \
    "  SELECT k.kind, a.value, k.object, " by ", " by " * " OWNS(row)                                                  \
    "  FROM json_each(" SEEN_BY(row) ") a, (" objects(row) ") k"                                                       \
    "  WHERE k.object NOT NULL"                                                                                        \
    "  ON CONFLICT DO UPDATE SET reasons = reasons + excluded.reasons, own = own + excluded.own;\n"
#define SESSION_OBJECTS(row)                                                                                           \
    "SELECT 'model' AS kind, (SELECT row FROM models WHERE id = " row ".model) AS object"                              \
    " UNION ALL SELECT 'cluster', (SELECT row FROM clusters WHERE id = " row ".cluster)"
#define HELD_OBJECT(row) "SELECT " row ".kind AS kind, " row ".object AS object"
#define FOLLOW(table, objects)                                                                                         \
    "CREATE TEMP TRIGGER " table "_added AFTER INSERT ON main." table " BEGIN\n"                                       \
    COUNT("new", "1", objects)                                                                                         \
    "END;\n"                                                                                                           \
    "CREATE TEMP TRIGGER " table "_changed AFTER UPDATE OF team, shared ON main." table                                \
    " WHEN new.team IS NOT old.team OR new.shared IS NOT old.shared BEGIN\n"                                           \
    COUNT("new", "1", objects)                                                                                         \
    COUNT("old", "-1", objects)                                                                                        \
    "END;\n"
/* clang-format on */

static const char followers[] = FOLLOW("sessions", SESSION_OBJECTS) FOLLOW("holdings", HELD_OBJECT);

enum status schema_follow(struct store *store, struct error *err) {
    return sql_exec(store, followers, err);
}

static const char indexes[] =
#define X(name, on, statistics) "CREATE INDEX IF NOT EXISTS " name " ON " on ";\n"
    SCHEMA_INDEX_TABLE(X)
#undef X
        "ANALYZE sqlite_schema;\n"; /* which makes the table of statistics and fills in none */

static const char fixed_statistics[] =
    "INSERT INTO sqlite_stat1 (tbl, idx, stat) SELECT i.tbl_name, i.name, v.column2 FROM (VALUES"
#define X(name, on, statistics) "('" name "', '" statistics "'),"
    SCHEMA_INDEX_TABLE(X)
#undef X
        "('sqlite_autoindex_trials_1', '1000000 1'), ('sqlite_autoindex_trials_2', '1000000 1000 1'),"
        /* a table without row numbers is the index of its key */
        " ('holdings', '100000 25000 1 1'), ('audiences', '200000 50000 2000 1')) v"
        " JOIN sqlite_schema i ON i.type IN ('index', 'table') AND i.name = v.column1"
        " WHERE NOT EXISTS (SELECT 1 FROM sqlite_stat1 s WHERE s.idx = i.name)";

static enum status make_indexes(struct store *store, struct error *err) {
    enum status status = sql_exec(store, indexes, err);
    if (!status)
        status = sql_exec(store, fixed_statistics, err);
    if (!status && sql_changes(store) > 0)
        status = sql_exec(store, "ANALYZE sqlite_schema", err); /* reads them */
    return status;
}

enum status schema_read_version(struct store *store, int *version, struct error *err) {
    int64_t tables = 0, application = 0, user = 0;
    enum status status = sql_first_integer(store, "SELECT count(*) FROM sqlite_schema", 0, NULL, &tables, err);
    if (!status)
        status = sql_first_integer(store, "PRAGMA application_id", 0, NULL, &application, err);
    if (!status)
        status = sql_first_integer(store, "PRAGMA user_version", 0, NULL, &user, err);
    if (status)
        return status;
    const bool empty = tables == 0 && application == 0 && user == 0;
    if (!empty && (application != APPLICATION_ID || user < 1))
        return error_at(err, ST_INVALID, store->path, "not a dataset (an SQLite file of another program)");
    if (user > SCHEMA_VERSION)
        return error_at(err, ST_INVALID, store->path,
                        "of schema version %lld, this program knows %d; use a newer syncopate", (long long)user,
                        SCHEMA_VERSION);
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

/* A table that others refer to can be replaced only while references are not enforced, which cannot be changed inside a
 * transaction. */
static enum status migrate_to(struct store *store, int version, struct error *err) {
    char counters[128];
    snprintf(counters, sizeof counters, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
             (int)APPLICATION_ID);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = sql_exec(store, versions[version - 1], err);
    if (!status)
        status = sql_exec(store, counters, err);
    status = store_end(store, status, err);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    if (status)
        error_prefix(err, status, "to schema version %d", version);
    return status;
}

enum status schema_migrate(struct store *store, int version, struct error *err) {
    enum status status = ST_OK;
    if (version > 0 && version < SCHEMA_VERSION && !store->copy)
        status = keep_copy(store, version, err);
    while (!status && version < SCHEMA_VERSION)
        status = migrate_to(store, ++version, err);
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    return store_end(store, make_indexes(store, err), err);
}
