/* Many rows into PostgreSQL at once, by COPY in its binary format (PostgreSQL's documentation, "COPY", "Binary
 * Format"): a head, then for each row the number of its fields and each field behind its length, -1 standing for NULL.
 * COPY compiles no statement for each row, reads no decimal numbers, and puts rows that share a page there together.
 * Cost: two exchanges with the server, and about half of an insertion's time for each row. */
#include <assert.h>
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dataset/engine_internal.h"
#include "dataset/postgres_internal.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

/* Which value each column gets. */
enum { MOST_FIELDS = 64, SENT_BYTES = 32 << 10 };
struct field {
    size_t value;
    bool reason; /* to be made clean (validate_reason) */
};
struct fields {
    size_t n;
    struct field at[MOST_FIELDS];
};

static const char values_word[] = " VALUES ", reason_word[] = "reason_kept(";

/* From "(?1, reason_kept(?2), ...)". */
static void read_fields(const char *sql, struct fields *out) {
    const size_t before = sizeof reason_word - 1;
    out->n = 0;
    for (const char *at = strstr(sql, values_word); (at = strchr(at + 1, '?'));) {
        assert(out->n < MOST_FIELDS);
        out->at[out->n++] = (struct field){.value = strtoul(at + 1, NULL, 10) - 1,
                                           .reason = !strncmp(at - before, reason_word, before)};
    }
}

/* "INSERT INTO table (id, ...) VALUES ..." becomes "COPY table (id, ...) FROM STDIN (FORMAT binary)". */
static char *copy_text(const char *sql) {
    static const char insert[] = "INSERT INTO ";
    char *text;
    sql += sizeof insert - 1;
    const int n = asprintf(&text, "COPY %.*s FROM STDIN (FORMAT binary)", (int)(strstr(sql, values_word) - sql), sql);
    return n < 0 ? NULL : text;
}

/* ---- bytes ---- */

struct bytes {
    unsigned char *at;
    size_t n, room;
    bool no_memory;
};

static void put(struct bytes *to, const void *bytes, size_t n) {
    to->no_memory = to->no_memory || !GROW(&to->at, &to->room, to->n + n);
    if (to->no_memory)
        return;
    memcpy(to->at + to->n, bytes, n);
    to->n += n;
}

static void put_number(struct bytes *to, size_t n, uint64_t x) {
    unsigned char bytes[8];
    postgres_put_number(bytes, n, x);
    put(to, bytes, n);
}

static void put_null(struct bytes *to) {
    put_number(to, 4, UINT32_MAX);
}

static void put_text(struct bytes *to, const char *text, size_t n) {
    put_number(to, 4, n);
    put(to, text, n);
}

static void put_reason(struct bytes *to, const char *reason) {
    char *clean = strdup(reason);
    to->no_memory = to->no_memory || !clean;
    if (clean) {
        validate_reason(clean);
        put_text(to, clean, strlen(clean));
    }
    free(clean);
}

static void put_value(struct bytes *to, const struct sql_value *value, bool reason) {
    uint64_t bits;
    const bool null = value->type == SQL_NO_INTEGER || (value->type == SQL_REAL && isnan(value->real)) ||
                      (value->type == SQL_TEXT && !value->text);
    assert(value->type <= SQL_TEXT);
    if (null) {
        put_null(to);
    } else if (value->type == SQL_TEXT) {
        if (reason)
            put_reason(to, value->text);
        else
            put_text(to, value->text, strlen(value->text));
    } else {
        memcpy(&bits, value->type == SQL_REAL ? (const void *)&value->real : &value->integer, sizeof bits);
        put_number(to, 4, sizeof bits);
        put_number(to, sizeof bits, bits);
    }
}

/* ---- the exchange ---- */

/* False: the connection was lost. */
static bool send_bytes(struct store *store, struct bytes *bytes) {
    const bool sent = PQputCopyData(store->postgres->connection, (const char *)bytes->at, (int)bytes->n) == 1;
    bytes->n = 0;
    return sent;
}

static enum status send_rows(struct store *store, const struct fields *fields, size_t rows, size_t n,
                             const struct sql_value *values, struct error *err) {
    static const char head[19] = "PGCOPY\n\377\r\n"; /* and a 0, two empty words */
    struct bytes bytes = {0};
    bool sent = true;
    put(&bytes, head, sizeof head);
    for (size_t i = 0; i < rows && sent && !bytes.no_memory; i++) {
        put_number(&bytes, 2, fields->n);
        for (size_t k = 0; k < fields->n; k++)
            put_value(&bytes, &values[i * n + fields->at[k].value], fields->at[k].reason);
        if (bytes.n >= SENT_BYTES)
            sent = send_bytes(store, &bytes);
    }
    put_number(&bytes, 2, UINT16_MAX);
    sent = sent && !bytes.no_memory && send_bytes(store, &bytes);
    free(bytes.at);
    PGresult *result = NULL;
    const int ended = PQputCopyEnd(store->postgres->connection, bytes.no_memory ? "the client has no memory" : NULL);
    enum status status = postgres_answer(store, ended == 1, &result, err);
    PQclear(status ? NULL : result);
    return bytes.no_memory ? error_no_memory(err) : status;
}

static enum status copy(struct store *store, const char *text, const struct fields *fields, size_t rows, size_t n,
                        const struct sql_value *values, struct error *err) {
    PGconn *connection = store->postgres->connection;
    PGresult *result = PQsendQuery(connection, text) ? PQgetResult(connection) : NULL;
    const bool begun = PQresultStatus(result) == PGRES_COPY_IN;
    enum status status = begun ? send_rows(store, fields, rows, n, values, err) : postgres_fail(store, result, err);
    PQclear(result);
    while (!begun && (result = PQgetResult(connection)))
        PQclear(result);
    return status;
}

static int64_t bytes_of(size_t n, const struct sql_value *values) {
    int64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += values[i].type != SQL_TEXT ? 8 : values[i].text ? (int64_t)strlen(values[i].text) : 0;
    return bytes;
}

enum status postgres_insert_rows(struct store *store, const char *sql, size_t rows, size_t n,
                                 const struct sql_value *values, struct error *err) {
    struct fields fields;
    char *text = copy_text(sql);
    if (!text)
        return error_no_memory(err);
    read_fields(sql, &fields);
    enum status status = copy(store, text, &fields, rows, n, values, err);
    free(text);
    if (status)
        return status;
    store->postgres->changes += (int64_t)rows;
    store->postgres->bytes += bytes_of(rows * n, values) + 24 * (int64_t)rows;
    return ST_OK;
}
