/* Two tables, each row written once and forgotten by its age. Cost: O(log n) a request. */
#include "dataset/requests.h"

#include <string.h>

#include "base/clock.h"
#include "dataset/store_internal.h"

enum { TRIM_EVERY = 64, LARGE_BYTES = 64 << 10 };

static enum status read_response(struct sql_statement *stmt, struct arena *arena, struct stored_response *out,
                                 struct error *err) {
    struct stored_response response = {.status = (int)sql_column_integer(stmt, 1)};
    enum status status = sql_copy_text(stmt, 2, arena, &response.content_type, err);
    if (!status)
        status = sql_copy_text(stmt, 4, arena, &response.created, err);
    if (status)
        return status;
    status = sql_copy_bytes(stmt, 3, arena, &response.length, &response.body, err);
    if (!status)
        *out = response;
    return status;
}

/* An owner is "token@team". Rows that are older than this have the token alone, or the team alone where there was no
 * token. */
static const char select_response[] =
    "SELECT fingerprint, status, content_type, body, created"
    " FROM idempotency"
    " WHERE token IN (?1, CASE instr(?1, '@') WHEN 0 THEN ?1"
    "                                         WHEN 1 THEN substr(?1, 2)"
    "                                         ELSE substr(?1, 1, instr(?1, '@') - 1) END)"
    "   AND key = ?2";

enum status response_find(struct store *store, const char *token, const char *key, const char *fingerprint,
                          struct arena *arena, enum response_match *match, struct stored_response *out,
                          struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status =
        sql_first(store, select_response, SQL_VALUES(sql_text(token), sql_text(key)), &stmt, &row, err);
    if (status)
        return status;
    if (!row) {
        *match = RESPONSE_NEW;
        return ST_OK;
    }
    const char *stored = sql_column_text(stmt, 0);
    const bool same = stored && !strcmp(stored, fingerprint);
    if (!stored)
        status = error_no_memory(err);
    else if (same)
        status = read_response(stmt, arena, out, err);
    sql_reset(stmt);
    if (!status)
        *match = same ? RESPONSE_SAME : RESPONSE_OTHER;
    return status;
}

static const char insert_response[] =
    "INSERT INTO idempotency (token, key, fingerprint, status, content_type, body, created)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
    " RETURNING rowid";

/* Counted from the newest, the first answer that is over the bound of number (?2) or of bytes (?3), and all older
 * ones. */
static const char trim_responses[] =
    "DELETE FROM idempotency"
    " WHERE token = ?1"
    "   AND rowid <= (SELECT rowid"
    "                 FROM (SELECT rowid,"
    "                              row_number() OVER (ORDER BY rowid DESC) AS n,"
    "                              sum(length(body) + 200) OVER (ORDER BY rowid DESC) AS size"
    "                       FROM idempotency"
    "                       WHERE token = ?1) x"
    "                 WHERE n > ?2 OR size > ?3"
    "                 ORDER BY rowid DESC"
    "                 LIMIT 1)";

enum status response_put(struct store *store, const char *token, const char *key, const char *fingerprint,
                         const struct stored_response *response, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    enum status status = store_begin(store, err);
    if (status)
        return status;
    int64_t number = 0;
    status = sql_insert(store, insert_response,
                        SQL_VALUES(sql_text(token), sql_text(key), sql_text(fingerprint), sql_integer(response->status),
                                   sql_text(response->content_type),
                                   sql_blob(response->length ? response->body : "", response->length), sql_text(now)),
                        &number, err);
    /* Not after every answer, only after every TRIM_EVERY-th and after each large one: meanwhile the bound is passed by
     * little. */
    if (!status && (number % TRIM_EVERY == 0 || response->length > LARGE_BYTES))
        status =
            sql_run(store, trim_responses,
                    SQL_VALUES(sql_text(token), sql_integer(RESPONSES_MAX), sql_integer(RESPONSES_MAX_BYTES)), err);
    return store_end(store, status, err);
}

/* Answers whose owner names no team are of an earlier version (dispatch.c), and were never charged. */
static const char credit_responses[] =
    "UPDATE usage"
    " SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size)"
    " FROM (SELECT substr(token, instr(token, '@') + 1) AS team, count(*) AS n, sum(200 + length(body)) AS size"
    "       FROM idempotency"
    "       WHERE instr(token, '@') > 0"
    "         AND rowid IN (SELECT rowid FROM idempotency WHERE created < ? LIMIT 1000)"
    "       GROUP BY team) x"
    " WHERE usage.team = x.team";

static const char delete_responses[] = "DELETE FROM idempotency"
                                       " WHERE rowid IN (SELECT rowid FROM idempotency WHERE created < ? LIMIT 1000)";

enum status response_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = sql_run(store, credit_responses, SQL_VALUES(sql_text(before)), err);
    if (!status)
        status = sql_step(store, delete_responses, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}

static const char insert_audit[] = "INSERT INTO audit (at, token, team, address, method, path, status, request_id)"
                                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

enum status audit_add(struct store *store, const struct audit_entry *entry, struct error *err) {
    char now[32];
    clock_utc(now, sizeof now);
    return sql_step(store, insert_audit,
                    SQL_VALUES(sql_text(now), sql_text(entry->token), sql_text(entry->team), sql_text(entry->address),
                               sql_text(entry->method), sql_text(entry->path), sql_integer(entry->status),
                               sql_text(entry->request_id)),
                    NULL, err);
}

static const char credit_audit[] = "UPDATE usage"
                                   " SET rows = max(0, rows - x.n), bytes = max(0, bytes - x.size)"
                                   " FROM (SELECT team, count(*) AS n, sum(150 + length(path)) AS size"
                                   "       FROM audit"
                                   "       WHERE id IN (SELECT id FROM audit WHERE at < ? LIMIT 1000)"
                                   "       GROUP BY team) x"
                                   " WHERE usage.team = x.team";

static const char delete_audit[] = "DELETE FROM audit"
                                   " WHERE id IN (SELECT id FROM audit WHERE at < ? LIMIT 1000)";

enum status audit_prune(struct store *store, const char *before, uint64_t *n, struct error *err) {
    enum status status = store_begin(store, err);
    if (status)
        return status;
    status = sql_run(store, credit_audit, SQL_VALUES(sql_text(before)), err);
    if (!status)
        status = sql_step(store, delete_audit, SQL_VALUES(sql_text(before)), n, err);
    return store_end(store, status, err);
}
