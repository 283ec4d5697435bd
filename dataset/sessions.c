/* Sessions, and what a session that died left behind. */
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "dataset/audiences_internal.h"
#include "dataset/store_internal.h"

static const char *const words[] = {
#define X(constant, word) #word,
    STORED_SESSION_TABLE(X)
#undef X
};

const char *stored_session_state_word(enum stored_session_state state) {
    return words[state];
}

static const char *const modes[] = {"own", "ask"};

static bool parse_word(const char *word, size_t n, const char *const *list, unsigned *out) {
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(word, list[i])) {
            *out = i;
            return true;
        }
    return false;
}

bool stored_session_is_open(enum stored_session_state state) {
    return state == STORED_SESSION_RUNNING || state == STORED_SESSION_PAUSED;
}

bool stored_session_state_parse(const char *word, enum stored_session_state *out) {
    unsigned i;
    if (!parse_word(word, STORED_SESSION_STATE_COUNT, words, &i))
        return false;
    *out = (enum stored_session_state)i;
    return true;
}

const char *stored_session_mode_word(enum stored_session_mode mode) {
    return modes[mode];
}

static bool stored_session_mode_parse(const char *word, enum stored_session_mode *out) {
    unsigned i;
    if (!parse_word(word, sizeof modes / sizeof *modes, modes, &i))
        return false;
    *out = (enum stored_session_mode)i;
    return true;
}

bool session_id_is_valid(const char *id) {
    return text_is_word(id, SESSION_ID_MAX);
}

static enum status no_session(const struct store *store, const char *id, struct error *err) {
    return error_at(err, ST_NOT_FOUND, store->path, "no session %s", id);
}

static const char insert_session[] =
    "INSERT INTO sessions (id, model, cluster, seed, budget, options, state, started, team, shared, mode)"
    " VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)";

enum status store_session_begin(struct store *store, const struct stored_session *session, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    const char *budget = session->budget ? session->budget : "{}";
    const char *options = session->options ? session->options : "{}";
    enum status status = sql_check_json(budget, "budget", err);
    if (!status)
        status = sql_check_json(options, "options", err);
    if (!status)
        status = check_team(session->team, session->shared, err);
    if (status)
        return status;
    return sql_step(store, insert_session,
                    SQL_VALUES(sql_text(session->id), sql_text(session->model), sql_text(session->cluster),
                               sql_integer((int64_t)session->seed), sql_text(budget), sql_text(options), sql_text(now),
                               sql_text(session->team), sql_text(session->shared ? session->shared : "*"),
                               sql_text(modes[session->mode])),
                    NULL, err);
}

static enum status copy_texts(struct sql_statement *stmt, struct arena *arena, struct stored_session *out,
                              struct error *err) {
    const char **const at[] = {&out->id,      &out->model, &out->cluster, NULL,          &out->budget,
                               &out->options, NULL,        &out->reason,  &out->started, &out->ended};
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof at / sizeof *at && !status; i++)
        if (at[i])
            status = sql_copy_text(stmt, (int)i, arena, at[i], err);
    return status;
}

static enum status parse_words(const char *state, const char *mode, struct stored_session *session, struct error *err) {
    if (!state || !mode)
        return error_no_memory(err);
    if (!stored_session_state_parse(state, &session->state))
        return error_set(err, ST_INVALID, "session %s: no such state: %.40s", session->id, state);
    if (!stored_session_mode_parse(mode, &session->mode))
        return error_set(err, ST_INVALID, "session %s: no such mode: %.40s", session->id, mode);
    return ST_OK;
}

enum status session_read(struct sql_statement *stmt, struct arena *arena, struct stored_session *out,
                         struct error *err) {
    struct stored_session session = {0};
    enum status status = copy_texts(stmt, arena, &session, err);
    if (!status)
        status = sql_copy_text(stmt, 12, arena, &session.team, err);
    if (!status)
        status = sql_copy_text(stmt, 13, arena, &session.shared, err);
    if (!status)
        status = sql_copy_text(stmt, 15, arena, &session.origin, err);
    if (!status)
        status = parse_words(sql_column_text(stmt, 6), sql_column_text(stmt, 14), &session, err);
    if (status)
        return status;
    session.seed = (uint64_t)sql_column_integer(stmt, 3);
    session.trials = (uint64_t)sql_column_integer(stmt, 10);
    session.complete = (uint64_t)sql_column_integer(stmt, 11);
    *out = session;
    return ST_OK;
}

static const char select_session[] = "SELECT " SESSION_COLUMNS " FROM sessions s"
                                     " WHERE s.id = ?";

enum status store_session_get(struct store *store, const char *id, struct arena *arena, struct stored_session *out,
                              struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_first(store, select_session, SQL_VALUES(sql_text(id)), &stmt, &row, err);
    if (status)
        return status;
    if (!row)
        return no_session(store, id, err);
    status = session_read(stmt, arena, out, err);
    sql_reset(stmt);
    return status;
}

static const char list_sessions[] = "SELECT " SESSION_COLUMNS " FROM sessions s"
                                    " ORDER BY s.started DESC, s.rowid DESC"
                                    " LIMIT ? OFFSET ?";

static enum status read_row(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    return session_read(stmt, arena, element, err);
}

enum status store_session_list(struct store *store, size_t offset, size_t limit, struct arena *arena, size_t *n,
                               struct stored_session **out, struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    enum status status = sql_start(store, list_sessions,
                                   SQL_VALUES(sql_integer(sql_limit(limit)), sql_integer((int64_t)offset)), &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_row, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static const char count_sessions[] = "SELECT state, count(*)"
                                     " FROM sessions"
                                     " GROUP BY state";

enum status store_session_counts(struct store *store, uint64_t counts[STORED_SESSION_STATE_COUNT], struct error *err) {
    struct sql_statement *stmt;
    uint64_t found[STORED_SESSION_STATE_COUNT] = {0};
    bool row = true;
    enum status status = sql_start(store, count_sessions, 0, NULL, &stmt, err);
    while (!status) {
        enum stored_session_state state;
        status = sql_next(store, stmt, &row, err);
        if (status || !row)
            break;
        const char *word = sql_column_text(stmt, 0);
        if (word && stored_session_state_parse(word, &state))
            found[state] = (uint64_t)sql_column_integer(stmt, 1);
    }
    if (!status)
        memcpy(counts, found, sizeof found);
    return status;
}

static const char update_state[] = "UPDATE sessions"
                                   " SET state = ?2, reason = reason_kept(?3), ended = ?4"
                                   " WHERE id = ?1";

static enum status set_state(struct store *store, const char *id, enum stored_session_state state, const char *reason,
                             const char *now, struct error *err) {
    const char *ended = stored_session_is_open(state) ? NULL : now;
    enum status status = sql_run(
        store, update_state, SQL_VALUES(sql_text(id), sql_text(words[state]), sql_text(reason), sql_text(ended)), err);
    return !status && sql_changes(store) == 0 ? no_session(store, id, err) : status;
}

enum status store_session_update(struct store *store, const char *id, enum stored_session_state state,
                                 const char *reason, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = store_begin(store, err);
    return !status ? store_end(store, set_state(store, id, state, reason, now, err), err) : status;
}

/* The statement `sql` takes an id and a text of JSON. */
static enum status change_text(struct store *store, const char *sql, const char *id, const char *text, const char *name,
                               struct error *err) {
    enum status status = sql_check_json(text, name, err);
    if (!status)
        status = store_begin(store, err);
    if (status)
        return status;
    status = sql_run(store, sql, SQL_VALUES(sql_text(id), sql_text(text)), err);
    if (!status && sql_changes(store) == 0)
        status = no_session(store, id, err);
    return store_end(store, status, err);
}

static const char update_budget[] = "UPDATE sessions"
                                    " SET budget = ?2"
                                    " WHERE id = ?1";

enum status store_session_budget(struct store *store, const char *id, const char *budget, struct error *err) {
    return change_text(store, update_budget, id, budget, "budget", err);
}

static const char update_options[] = "UPDATE sessions"
                                     " SET options = ?2"
                                     " WHERE id = ?1";

enum status store_session_options(struct store *store, const char *id, const char *options, struct error *err) {
    return change_text(store, update_options, id, options, "options", err);
}

static const char adopt_session[] = "UPDATE sessions"
                                    " SET options = ?2, origin = NULL"
                                    " WHERE id = ?1";

enum status store_session_adopt(struct store *store, const char *id, const char *options, struct error *err) {
    return change_text(store, adopt_session, id, options, "options", err);
}

static const char show_session[] = "UPDATE sessions"
                                   " SET team = ?2, shared = ?3"
                                   " WHERE id = ?1";
static const char move_session[] = "UPDATE sessions"
                                   " SET cluster = ?2"
                                   " WHERE id = ?1";

static enum status show(struct store *store, const char *id, const char *team, const char *shared, struct error *err) {
    return sql_run(store, show_session, SQL_VALUES(sql_text(id), sql_text(team), sql_text(shared)), err);
}

/* Nobody sees it while it moves: so the triggers of audiences take its reasons from the one cluster, and give them to
 * the other. */
static enum status move(struct store *store, const char *id, const char *cluster, struct error *err) {
    struct arena arena = {0};
    struct stored_session session;
    enum status status = store_session_get(store, id, &arena, &session, err);
    if (!status && session.trials)
        status = error_set(err, ST_CONFLICT, "session %s has trials, and they are about its cluster", id);
    if (!status)
        status = show(store, id, NULL, "", err);
    if (!status)
        status = sql_run(store, move_session, SQL_VALUES(sql_text(id), sql_text(cluster)), err);
    if (!status)
        status = show(store, id, session.team, session.shared, err);
    arena_release(&arena);
    return status;
}

enum status store_session_move(struct store *store, const char *id, const char *cluster, struct error *err) {
    enum status status = store_begin(store, err);
    return !status ? store_end(store, move(store, id, cluster, err), err) : status;
}

static const char share_session[] = "UPDATE sessions"
                                    " SET shared = ?2"
                                    " WHERE id = ?1";

static enum status set_shared(struct store *store, const char *id, const char *shared, struct error *err) {
    enum status status = sql_run(store, share_session, SQL_VALUES(sql_text(id), sql_text(shared)), err);
    if (!status && sql_changes(store) == 0)
        return no_session(store, id, err);
    return !status ? audiences_share_session(store, id, shared, err) : status;
}

enum status store_session_share(struct store *store, const char *id, const char *shared, struct error *err) {
    enum status status = check_team(NULL, shared, err);
    if (!status)
        status = store_begin(store, err);
    return !status ? store_end(store, set_shared(store, id, shared, err), err) : status;
}

static enum status set_trial_shared(struct store *store, const char *uid, const char *shared, struct error *err) {
    bool found;
    enum status status = audiences_share_trial(store, uid, shared, &found, err);
    if (!status && !found)
        status = error_at(err, ST_NOT_FOUND, store->path, "no trial %s", uid);
    return status;
}

enum status store_trial_share(struct store *store, const char *uid, const char *shared, struct error *err) {
    enum status status = check_team(NULL, shared, err);
    if (!status)
        status = store_begin(store, err);
    return !status ? store_end(store, set_trial_shared(store, uid, shared, err), err) : status;
}

static const char cancel_lost_trials[] =
    "UPDATE trials"
    " SET state = 'cancelled', ended = ?2, reason = 'the process that ran it ended before it did'"
    " WHERE session = ?1 AND state = 'running' AND lease_until IS NULL";

enum status store_session_reconcile(struct store *store, const char *id, uint64_t *cancelled, struct error *err) {
    char now[32];
    uint64_t changed = 0;
    clock_utc(now, sizeof now);
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = set_state(store, id, STORED_SESSION_RUNNING, NULL, now, err);
    if (!status)
        status = sql_run(store, cancel_lost_trials, SQL_VALUES(sql_text(id), sql_text(now)), err);
    if (!status)
        changed = (uint64_t)sql_changes(store);
    status = store_end(store, status, err);
    if (!status && cancelled)
        *cancelled = changed;
    return status;
}
