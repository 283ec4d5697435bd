/* One row an operation; its id begins with the time, so that newer ones sort later. Cost: O(log n). */
#include "dataset/operations.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

static const char *const words[] = {
#define X(constant, word) #word,
    OPERATION_STATE_TABLE(X)
#undef X
};

const char *operation_state_word(enum operation_state state) {
    return words[state];
}

static bool operation_state_parse(const char *word, enum operation_state *out) {
    for (unsigned i = 0; i < OPERATION_STATE_COUNT; i++)
        if (!strcmp(word, words[i])) {
            *out = (enum operation_state)i;
            return true;
        }
    return false;
}

static const char insert_operation[] = "INSERT INTO operations (id, kind, team, state, request, created)"
                                       " VALUES (?, ?, ?, 'running', ?, ?)";

enum status operation_begin(struct store *store, const char *kind, const char *team, const char *request,
                            char id[OPERATION_ID_ROOM], struct error *err) {
    char now[32], uid[UID_ROOM];
    clock_utc(now, sizeof now);
    enum status status = sql_check_json(request, "request", err);
    if (!status)
        status = make_uid(uid, err);
    if (!status)
        status = sql_step(store, insert_operation,
                          SQL_VALUES(sql_text(uid), sql_text(kind), sql_text(team), sql_text(request), sql_text(now)),
                          NULL, err);
    if (!status)
        snprintf(id, OPERATION_ID_ROOM, "%s", uid);
    return status;
}

static enum status read_operation(struct sql_statement *stmt, struct arena *arena, void *element, struct error *err) {
    struct stored_operation *operation = element;
    const char *state;
    const char **const at[] = {&operation->id,      &operation->kind,   &operation->team,    &state,
                               &operation->request, &operation->result, &operation->created, &operation->ended};
    enum status status = ST_OK;
    for (int i = 0; i < 8 && !status; i++)
        status = sql_copy_text(stmt, i, arena, at[i], err);
    if (status)
        return status;
    return operation_state_parse(state, &operation->state)
               ? ST_OK
               : error_set(err, ST_INVALID, "operation %s: no such state: %.40s", operation->id, state);
}

static const char select_operation[] = "SELECT id, kind, team, state, request, result, created, ended"
                                       " FROM operations"
                                       " WHERE id = ?";

enum status operation_get(struct store *store, const char *id, struct arena *arena, struct stored_operation *out,
                          struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    size_t n;
    enum status status = sql_start(store, select_operation, SQL_VALUES(sql_text(id)), &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_operation, sizeof *out, arena, &n, &rows, err);
    if (status)
        return status;
    if (n == 0)
        return error_at(err, ST_NOT_FOUND, store->path, "no operation %.64s", id);
    *out = *(const struct stored_operation *)rows;
    return ST_OK;
}

static const char end_operation[] = "UPDATE operations"
                                    " SET state = ?2, result = ?3, ended = ?4"
                                    " WHERE id = ?1 AND state = 'running'";

static enum status end(struct store *store, const char *id, enum operation_state state, const char *result,
                       struct error *err) {
    struct arena arena = {0};
    struct stored_operation operation;
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = operation_get(store, id, &arena, &operation, err);
    if (!status && operation.state != OPERATION_RUNNING)
        status = error_set(err, ST_CONFLICT, "operation %.64s is %s already", id, words[operation.state]);
    arena_release(&arena);
    if (status)
        return status;
    return sql_run(store, end_operation,
                   SQL_VALUES(sql_text(id), sql_text(words[state]), sql_text(result), sql_text(now)), err);
}

enum status operation_end(struct store *store, const char *id, enum operation_state state, const char *result,
                          struct error *err) {
    enum status status = sql_check_json(result, "result", err);
    if (!status && state == OPERATION_RUNNING)
        status = error_set(err, ST_CONFLICT, "an operation cannot end as running");
    if (!status)
        status = store_begin(store, err);
    return !status ? store_end(store, end(store, id, state, result, err), err) : status;
}

static const char list_operations[] = "SELECT id, kind, team, state, request, result, created, ended"
                                      " FROM operations"
                                      " WHERE (?1 IS NULL OR state = ?1)"
                                      "   AND (?2 IS NULL OR team = ?2)"
                                      "   AND (?3 IS NULL OR rowid < (SELECT rowid FROM operations WHERE id = ?3))"
                                      " ORDER BY rowid DESC"
                                      " LIMIT ?4";

enum status operation_list(struct store *store, const struct operation_query *q, size_t limit, struct arena *arena,
                           size_t *n, struct stored_operation **out, struct error *err) {
    struct sql_statement *stmt;
    void *rows;
    enum status status = sql_start(store, list_operations,
                                   SQL_VALUES(sql_text(q->state ? words[*q->state] : NULL), sql_text(q->team),
                                              sql_text(q->before), sql_integer(sql_limit(limit))),
                                   &stmt, err);
    if (!status)
        status = sql_collect(store, stmt, read_operation, sizeof **out, arena, n, &rows, err);
    if (!status)
        *out = rows;
    return status;
}

static const char fail_lost_operations[] = "UPDATE operations"
                                           " SET state = 'failed', result = ?1, ended = ?2"
                                           " WHERE state = 'running'";

enum status operation_reconcile(struct store *store, const char *result, uint64_t *n, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = sql_check_json(result, "result", err);
    return !status ? sql_step(store, fail_lost_operations, SQL_VALUES(sql_text(result), sql_text(now)), n, err)
                   : status;
}
