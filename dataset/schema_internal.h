/* The tables of a dataset, and how a file of an older schema becomes one of this. */
#ifndef DATASET_SCHEMA_INTERNAL_H
#define DATASET_SCHEMA_INTERNAL_H

#include "base/error.h"

struct store;

enum { SCHEMA_VERSION = 7 };

/* X(name, table and columns, statistics). The statistics are fixed: how many rows, and how many of these share the
 * first column, the first two, ... They are of a dataset of a million trials, and make SQLite choose the same plan for
 * a query in every file; measured ones would change plans when nobody looks. */
#define SCHEMA_INDEX_TABLE(X)                                                                                          \
    X("models_name", "models (name)", "1000 10")                                                                       \
    X("clusters_name", "clusters (name)", "1000 10")                                                                   \
    X("strategies_name", "strategies (name)", "100000 1000")                                                           \
    X("holdings_team", "holdings (kind, team, name, created)", "100000 20000 2000 2 2")                                \
    X("holdings_name", "holdings (kind, name, object)", "100000 20000 10 1")                                           \
    X("sessions_open", "sessions (team) WHERE ended IS NULL", "1000 30")                                               \
    X("idempotency_token", "idempotency (token)", "100000 1000")                                                       \
    X("sessions_started", "sessions (started)", "10000 1")                                                             \
    X("trials_session", "trials (session, state, median_us) WHERE session IS NOT NULL", "1000000 1000 300 2")          \
    X("trials_problem", "trials (model, cluster, median_us)", "1000000 50000 20000 2")                                 \
    X("trials_pair", "trials (model, cluster)", "1000000 50000 20000")                                                 \
    X("trials_model", "trials (model)", "1000000 50000")                                                               \
    X("trials_cluster", "trials (cluster)", "1000000 60000")                                                           \
    X("trials_strategy", "trials (strategy, median_us)", "1000000 40 2")                                               \
    X("trials_queued", "trials (queued)", "1000000 5")                                                                 \
    X("trials_state", "trials (state)", "1000000 250000")                                                              \
    X("trials_team", "trials (team) WHERE team IS NOT NULL", "1000000 100000")                                         \
    X("events_session", "events (session)", "1000000 1000")                                                            \
    X("events_created", "events (created)", "1000000 5")                                                               \
    X("idempotency_created", "idempotency (created)", "100000 5")                                                      \
    X("operations_created", "operations (created)", "10000 1")                                                         \
    X("audit_at", "audit (at)", "1000000 5")

/* The schema version of the open file, 0 when it is empty. Reads only. Fails: ST_INVALID (no SQLite file, another
 * program's, or of a newer schema). */
enum status schema_read_version(struct store *store, int *version, struct error *err);

/* From `version` to SCHEMA_VERSION, each step one transaction; a file that holds records is copied first, unless it is
 * itself a temporary copy (store->copy). */
enum status schema_migrate(struct store *store, int version, struct error *err);

/* Make this connection update the table of audiences with everything that it writes. */
enum status schema_follow(struct store *store, struct error *err);

/* A SELECT of every row that the table of audiences should have, computed from the other tables. */
extern const char schema_audiences[];

#endif
