/* The source is attached read-only (attach.c) and SQL does the rest: what is content-addressed is inserted or ignored,
 * what has an identity of its own (session id, trial uid) is inserted where that is new. Trials still waiting or
 * running stay out, so that a trial, once merged, never changes. Cost: O(n log n) in the source. */
#include "dataset/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/attach_internal.h"
#include "dataset/audiences_internal.h"
#include "dataset/check.h"
#include "dataset/store_internal.h"

#define TRIAL_COLUMNS                                                                                                  \
    "uid, session, number, round, proposer, runner, predicted_us, seed, state, queued, started, ended, mean_us,"       \
    " median_us, low_us, high_us, team, attempt, client, n_iterations"

/* clang-format off */
/* SQL: the row number in this file of the object that has the number `row` in the other file; NULL where this file
 * lacks the object. */
#define ROW_HERE(table, row)                                                                                           \
    "(SELECT o.row FROM source." table " p JOIN main." table " o ON o.id = p.id WHERE p.row = " row ")"

/* SQL: whether the session of the row a has trials here, and that of the row b has some there that have ended. */
#define TRIALS_HERE "EXISTS (SELECT 1 FROM main.trials t WHERE t.session = a.id)"
#define TRIALS_THERE "EXISTS (SELECT 1 FROM source.trials t WHERE t.session = b.id AND t.ended IS NOT NULL)"

/* Each row is a contradiction between the files: the subject, its value here, its value there. The cluster of a session
 * is one only where both have trials of it: before its first trial it may move to another one. */
static const char *const clashes[] = {
    "SELECT 'session ' || a.id,"
    "       'model ' || substr(a.model, 1, 12) || ', cluster ' || substr(a.cluster, 1, 12)"
    "         || ', seed ' || printf('%llu', a.seed),"
    "       'model ' || substr(b.model, 1, 12) || ', cluster ' || substr(b.cluster, 1, 12)"
    "         || ', seed ' || printf('%llu', b.seed)"
    " FROM main.sessions a JOIN source.sessions b ON b.id = a.id"
    " WHERE a.model <> b.model OR a.seed <> b.seed OR (a.cluster <> b.cluster AND " TRIALS_HERE " AND " TRIALS_THERE ")"
    " ORDER BY a.id",

    "SELECT 'session ' || a.session || ' trial ' || a.number, 'uid ' || a.uid, 'uid ' || b.uid"
    " FROM source.trials b JOIN main.trials a ON a.session = b.session AND a.number = b.number"
    " WHERE a.uid <> b.uid AND b.ended IS NOT NULL"
    " ORDER BY a.session, a.number",

    "SELECT 'uid ' || a.uid,"
    "       'trial ' || a.id || ' (' || a.state || coalesce(', median ' || a.median_us, '') || ')',"
    "       'trial ' || b.id || ' (' || b.state || coalesce(', median ' || b.median_us, '') || ')'"
    " FROM source.trials b JOIN main.trials a ON a.uid = b.uid"
    " WHERE b.ended IS NOT NULL"
    "   AND (a.session IS DISTINCT FROM b.session OR a.number IS DISTINCT FROM b.number"
    "     OR a.model IS DISTINCT FROM " ROW_HERE("models", "b.model")
    "     OR a.cluster IS DISTINCT FROM " ROW_HERE("clusters", "b.cluster")
    "     OR a.strategy IS DISTINCT FROM " ROW_HERE("strategies", "b.strategy")
    "     OR a.round <> b.round OR a.seed <> b.seed"
    "     OR (a.ended IS NOT NULL"
    "       AND (a.state <> b.state OR a.median_us IS DISTINCT FROM b.median_us"
    "         OR a.mean_us IS DISTINCT FROM b.mean_us)))"
    " ORDER BY b.id",
};

/* All merged sessions are foreign here, also those that were opened in the source. */
static const char add_sessions[] =
    "INSERT INTO main.sessions (id, model, cluster, seed, budget, options, state, reason, started, ended, team, shared,"
    "                           mode, origin)"
    " SELECT id, model, cluster, seed, budget, options, state, reason_kept(reason), started, ended, team, shared, mode,"
    "        coalesce(origin, 'merge')"
    " FROM source.sessions b"
    " WHERE NOT EXISTS (SELECT 1 FROM main.sessions a WHERE a.id = b.id)"
    " ORDER BY b.rowid";

static const char update_sessions[] =
    "UPDATE main.sessions AS a"
    " SET state = b.state, reason = reason_kept(b.reason), ended = b.ended"
    " FROM source.sessions b"
    " WHERE b.id = a.id AND a.ended IS NULL AND (b.ended IS NOT NULL OR a.state = 'running') AND b.state <> a.state";

/* Sessions that moved to another cluster since they were merged, and where to. Trials tell which file is behind. While
 * there are none at all, it is the one in which the session was not opened. */
static const char moved_sessions[] =
    "SELECT a.id, b.cluster"
    " FROM main.sessions a JOIN source.sessions b ON b.id = a.id"
    " WHERE a.cluster <> b.cluster AND NOT " TRIALS_HERE
    "   AND (" TRIALS_THERE " OR (a.origin IS NOT NULL AND b.origin IS NULL))"
    " ORDER BY a.id";

/* A trial of a session is shared as the session is here, or with fewer. */
static const char add_trials[] =
    "INSERT INTO main.trials (model, cluster, strategy, environment, shared, reason, " TRIAL_COLUMNS ")"
    " SELECT " ROW_HERE("models", "b.model") ","
    "        " ROW_HERE("clusters", "b.cluster") ","
    "        " ROW_HERE("strategies", "b.strategy") ","
    "        " ROW_HERE("environments", "b.environment") ","
    "        shared_narrow(b.shared, (SELECT a.shared FROM main.sessions a WHERE a.id = b.session)),"
    "        reason_kept(b.reason), " TRIAL_COLUMNS
    " FROM source.trials b"
    " WHERE b.ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM main.trials a WHERE a.uid = b.uid)"
    " ORDER BY b.id";

/* Iterations of a trial came with it, all or none. */
static const char add_iterations[] =
    "INSERT INTO main.iterations"
    " SELECT a.id, i.number, i.time_us"
    " FROM source.trials b JOIN main.trials a ON a.uid = b.uid JOIN source.iterations i ON i.trial = b.id"
    " WHERE a.state = 'complete' AND coalesce(a.n_iterations, 1) > 0"
    "   AND NOT EXISTS (SELECT 1 FROM main.iterations o WHERE o.trial = a.id)"
    " ORDER BY a.id, i.number";
/* clang-format on */

static void keep_first(void *context, const char *problem) {
    char *line = context;
    if (!*line)
        snprintf(line, 256, "%s", problem);
}

/* The source, once it is known to be a sound dataset and another one. Its audiences are not copied, and may be wrong.
 */
static enum status inspect(struct store *store, const char *path, struct store **out, struct error *err) {
    struct store *source;
    struct check_report report;
    char first[256] = "";
    enum status status = store_open(path, STORE_READ_ONLY, &source, err);
    if (status)
        return status;
    status = check_run(source, keep_first, first, &report, err);
    if (!status && report.problems > 0 && !report.audiences)
        status = error_at(err, ST_INVALID, path, "fails its check (%llu problems; the first: %s)",
                          (unsigned long long)report.problems, first);
    if (!status && !strcmp(source->file, store->file))
        status = error_at(err, ST_INVALID, path, "cannot be merged into itself");
    if (!status)
        *out = source;
    else
        store_close(source);
    return status;
}

static enum status open_source(struct store *store, const char *path, struct attached *out, struct error *err) {
    struct store *source;
    enum status status = inspect(store, path, &source, err);
    if (status)
        return status;
    status = attach(store, source, out, err);
    if (status)
        store_close(source);
    return status;
}

struct finding {
    merge_visit *visit;
    void *context;
    uint64_t n;
    char first[256];
};

static enum status find_clashes(struct store *store, const char *sql, struct finding *finding, struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    enum status status = sql_prepare(store, sql, &stmt, err);
    if (status)
        return status;
    while (!status) {
        status = sql_next(store, stmt, &row, err);
        if (status || !row)
            break;
        const struct merge_conflict conflict = {
            .what = sql_column_text(stmt, 0), .ours = sql_column_text(stmt, 1), .theirs = sql_column_text(stmt, 2)};
        if (!conflict.what || !conflict.ours || !conflict.theirs) {
            status = error_no_memory(err);
            break;
        }
        if (finding->n++ == 0)
            snprintf(finding->first, sizeof finding->first, "%s: here %s, there %s", conflict.what, conflict.ours,
                     conflict.theirs);
        if (finding->visit)
            finding->visit(finding->context, &conflict);
    }
    sql_finalize(stmt);
    return status;
}

static enum status find_all_clashes(struct store *store, struct finding *finding, struct error *err) {
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes && !status; i++)
        status = find_clashes(store, clashes[i], finding, err);
    return status;
}

static enum status refuse_clashes(struct store *store, struct error *err) {
    struct finding finding = {.n = 0};
    enum status status = find_all_clashes(store, &finding, err);
    if (!status && finding.n > 0)
        status = error_at(err, ST_CONFLICT, store->path, "the two datasets disagree about %s (%llu conflict%s)",
                          finding.first, (unsigned long long)finding.n, finding.n == 1 ? "" : "s");
    return status;
}

static enum status add(struct store *store, const char *sql, uint64_t *n, struct error *err) {
    enum status status = sql_exec(store, sql, err);
    if (!status)
        *n += (uint64_t)sql_changes(store);
    return status;
}

static enum status add_objects(struct store *store, uint64_t *n, struct error *err) {
    enum status status = ST_OK;
    for (enum store_kind kind = 0; kind < STORE_KIND_COUNT && !status; kind++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "INSERT INTO main.%s (id, name, content, created) SELECT id, name, content, created FROM source.%s"
                 " WHERE true ORDER BY row ON CONFLICT DO NOTHING",
                 object_table(kind), object_table(kind));
        status = add(store, sql, n, err);
    }
    return status;
}

/* Holdings come with the name and the sharing that they have in the source. A holding that is here already stays as it
 * is. */
static enum status add_holdings(struct store *store, struct error *err) {
    enum status status = ST_OK;
    for (enum store_kind kind = 0; kind < STORE_KIND_COUNT && !status; kind++) {
        char sql[512];
        snprintf(sql, sizeof sql,
                 "INSERT INTO main.holdings (kind, object, team, name, shared, created)"
                 " SELECT h.kind, o.row, h.team, h.name, h.shared, h.created FROM source.holdings h"
                 " JOIN source.%s p ON p.row = h.object JOIN main.%s o ON o.id = p.id WHERE h.kind = '%s'"
                 " ON CONFLICT DO NOTHING",
                 object_table(kind), object_table(kind), object_word(kind));
        status = sql_exec(store, sql, err);
    }
    return status;
}

struct moved {
    const char *session, *cluster;
};

static enum status read_moved(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct moved *moved = element;
    enum status status = sql_copy_text(stmt, 0, arena, &moved->session, err);
    return !status ? sql_copy_text(stmt, 1, arena, &moved->cluster, err) : status;
}

static enum status move_sessions(struct store *store, struct error *err) {
    struct arena arena = {0};
    struct sql_statement *stmt;
    void *rows;
    size_t n;
    enum status status = sql_prepare(store, moved_sessions, &stmt, err);
    if (status)
        return status;
    status = sql_collect(store, stmt, read_moved, sizeof(struct moved), &arena, &n, &rows, err);
    sql_finalize(stmt);
    const struct moved *moved = !status ? rows : NULL;
    for (size_t i = 0; !status && i < n; i++)
        status = store_session_move(store, moved[i].session, moved[i].cluster, err);
    arena_release(&arena);
    return status;
}

/* The newest rows are those that were added. */
static enum status add_and_count_trials(struct store *store, uint64_t *n, struct error *err) {
    int64_t last;
    enum status status = sql_first_integer(store, "SELECT max(id) FROM main.trials", 0, NULL, &last, err);
    if (!status)
        status = add(store, add_trials, n, err);
    return !status ? audiences_add(store, last + 1, INT64_MAX, err) : status;
}

static enum status add_all(struct store *store, struct merge_report *report, struct error *err) {
    uint64_t iterations = 0;
    enum status status = refuse_clashes(store, err);
    if (!status)
        status = add_objects(store, &report->objects, err);
    if (!status)
        status = add_holdings(store, err);
    if (!status)
        status = add(store, add_sessions, &report->sessions, err);
    if (!status)
        status = add(store, update_sessions, &report->updated, err);
    if (!status)
        status = move_sessions(store, err);
    if (!status)
        status = add_and_count_trials(store, &report->trials, err);
    if (!status)
        status = add(store, add_iterations, &iterations, err);
    return status;
}

enum status merge_run(struct store *store, const char *path, struct merge_report *out, struct error *err) {
    struct attached source;
    struct merge_report report = {0};
    if (store->read_only)
        return error_at(err, ST_CONFLICT, store->path, "opened for reading only");
    enum status status = open_source(store, path, &source, err);
    if (status)
        return status;
    status = store_begin(store, err);
    if (!status)
        status = store_end(store, add_all(store, &report, err), err);
    detach(store, &source);
    if (!status)
        *out = report;
    return status;
}

enum status merge_conflicts(struct store *store, const char *path, merge_visit *visit, void *context, uint64_t *n,
                            struct error *err) {
    struct attached source;
    bool began;
    struct finding finding = {.visit = visit, .context = context};
    enum status status = open_source(store, path, &source, err);
    if (status)
        return status;
    status = store_begin_read(store, &began, err);
    if (!status)
        status = find_all_clashes(store, &finding, err);
    store_end_read(store, began);
    detach(store, &source);
    if (!status)
        *n = finding.n;
    return status;
}
