/* PostgreSQL as the engine of a dataset, by libpq. A statement that is kept is prepared on the server when it first
 * runs, with the types of its first values. Other SELECTs inside a transaction are read through a cursor, some rows at
 * a time, so that a list of a million trials takes little memory; all others come whole. Numbers go and come as decimal
 * texts that read back exactly. Cost: one exchange with the server a statement, and three for a short list. */
#include <assert.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/work.h"
#include "dataset/audiences_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/postgres_internal.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

enum { OID_BOOL = 16, OID_BYTES = 17, OID_INTEGER = 20, OID_TEXT = 25, OID_REAL = 701, OID_INTEGERS = 1016 };
enum { FETCHED = 500, LOOK_AROUND_MS = 20 };

/* Values that were bound, as libpq takes them; NULL is NULL. */
struct parameters {
    size_t n;
    Oid *types;
    const char **values;
    int *lengths, *formats; /* of bytes */
    struct own_text {
        char number[40];
        char *made; /* a reason made clean, or an array */
    } * own;
};

struct statement {
    struct sql_statement common;
    bool kept;
    char *copy;    /* of common.sql, where that is not kept */
    char *text;    /* as PostgreSQL reads it */
    size_t n;      /* parameters in the text, */
    bool *reasons; /* and which of them are reasons */
    struct parameters with;
    Oid *prepared;      /* the types that it was prepared with, on the connection of age `age` */
    unsigned name, age; /* of what was prepared; name 0: nothing */
    unsigned cursor;    /* its name; 0: none is open */
    bool started, last; /* no more rows are to be fetched */
    PGresult *result;
    int row;
    unsigned char *bytes; /* of the last column of bytes that was read */
};

static struct statement *own(struct sql_statement *statement) {
    return (struct statement *)statement;
}

/* ---- failures ---- */

static const struct {
    const char *code; /* or its beginning */
    enum status status;
    const char *text; /* before the server's own words, if `told` */
    bool told;
} failures[] = {
    {"23503", ST_NOT_FOUND, "a model, cluster, strategy, environment or session that this refers to is not there",
     false},
    {"23505", ST_CONFLICT, "there already", true},
    {"23", ST_INVALID, "refused by a rule of the dataset", true},
    {"22P02", ST_INVALID, "refused by a rule of the dataset", true},
    {"22", ST_INVALID, "a value that PostgreSQL does not take", true},
    {"40001", ST_CONFLICT, "another program was in the way; try again", false},
    {"40P01", ST_CONFLICT, "another program was in the way; try again", false},
    {"55P03", ST_ENVIRONMENT, "another program has been writing for long; try again", false},
    {"57014", ST_TIMEOUT, "it took too long", false},
    {"25006", ST_ENVIRONMENT, "PostgreSQL takes no writes here (a standby?)", true},
    {"42501", ST_ENVIRONMENT, "this user may not do that", true},
    {"42P01", ST_INVALID, "a table of the dataset is missing; restore it from a backup", true},
    {"53100", ST_ENVIRONMENT, "PostgreSQL's disk is full; nothing of this step was written", false},
    {"53", ST_ENVIRONMENT, "PostgreSQL has no more room for this", true},
    {"XX00", ST_INVALID, "PostgreSQL found damage; restore it from a backup", true},
};

static enum status connection_lost(struct store *store, struct error *err) {
    const char *message = PQerrorMessage(store->postgres->connection);
    error_at(err, ST_ENVIRONMENT, store->path,
             "the connection to PostgreSQL was lost; nothing of this step was written; try again (%.*s)",
             (int)strcspn(message, "\n"), message);
    return error_code(err, ST_ENVIRONMENT, STORE_AWAY);
}

enum status postgres_fail(struct store *store, const PGresult *result, struct error *err) {
    const char *code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    if (PQstatus(store->postgres->connection) != CONNECTION_OK || !code)
        return connection_lost(store, err);
    const char *told = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    store->again = !strcmp(code, "40001") || !strcmp(code, "40P01");
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (strncmp(code, failures[i].code, strlen(failures[i].code)) != 0)
            continue;
        if (failures[i].told)
            error_at(err, failures[i].status, store->path, "%s: %s", failures[i].text, told ? told : code);
        else
            error_at(err, failures[i].status, store->path, "%s", failures[i].text);
        return strcmp(code, "55P03") != 0 ? failures[i].status : error_code(err, failures[i].status, STORE_AWAY);
    }
    return error_at(err, ST_ENVIRONMENT, store->path, "%s (PostgreSQL %s)", told ? told : "failed", code);
}

/* ---- exchanges with the server ---- */

static bool is_late(const struct postgres *p) {
    return clock_now_us() > *p->deadline_us || work_check(NULL);
}

/* Until an answer has come whole. What is late is cancelled, which makes it an answer too. */
static void wait_in_time(struct postgres *p) {
    bool cancelled = false;
    while (PQisBusy(p->connection)) {
        struct pollfd at = {.fd = PQsocket(p->connection), .events = POLLIN};
        if (!cancelled && is_late(p)) {
            char unused[256];
            PGcancel *cancel = PQgetCancel(p->connection);
            cancelled = true;
            if (cancel)
                PQcancel(cancel, unused, sizeof unused);
            PQfreeCancel(cancel);
        }
        if (poll(&at, 1, LOOK_AROUND_MS) > 0 && !PQconsumeInput(p->connection))
            return;
    }
}

/* The last result of what was sent; NULL: none came. */
static PGresult *take_result(struct postgres *p) {
    PGresult *last = NULL;
    for (;;) {
        if (p->deadline_us)
            wait_in_time(p);
        PGresult *next = PQgetResult(p->connection);
        if (!next)
            return last;
        PQclear(last);
        last = next;
    }
}

static bool is_good(const PGresult *result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

enum status postgres_answer(struct store *store, int sent, PGresult **out, struct error *err) {
    PGresult *result = sent ? take_result(store->postgres) : NULL;
    if (!result || !is_good(result)) {
        enum status status = postgres_fail(store, result, err);
        PQclear(result);
        return status;
    }
    *out = result;
    return ST_OK;
}

enum status postgres_query(struct store *store, const char *sql, PGresult **out, struct error *err) {
    PGresult *result;
    enum status status = postgres_answer(store, PQsendQuery(store->postgres->connection, sql), &result, err);
    if (status)
        return status;
    if (out)
        *out = result;
    else
        PQclear(result);
    return ST_OK;
}

/* How many rows a result says that it changed; -1: it is of a statement that only reads. */
static int64_t changed_by(PGresult *result) {
    const char *what = PQcmdStatus(result);
    if (strncmp(what, "INSERT", 6) != 0 && strncmp(what, "UPDATE", 6) != 0 && strncmp(what, "DELETE", 6) != 0)
        return -1;
    return strtoll(PQcmdTuples(result), NULL, 10);
}

static enum status exec(struct store *store, const char *sql, int64_t *changed, struct error *err) {
    size_t n;
    PGresult *result = NULL;
    char *text = postgres_translate(sql, &n, NULL);
    enum status status = text ? postgres_query(store, text, &result, err) : error_no_memory(err);
    free(text);
    if (status)
        return status;
    const int64_t rows = changed_by(result);
    *changed = rows > 0 ? rows : 0;
    store->postgres->changes += *changed;
    PQclear(result);
    return ST_OK;
}

/* ---- values ---- */

static bool resize(void *array, size_t n, size_t size) {
    void *larger = realloc(*(void **)array, n * size);
    if (larger)
        *(void **)array = larger;
    return larger != NULL;
}

/* Room for n values. A text need not have the last of them. */
static bool make_room(struct parameters *with, size_t n) {
    if (n <= with->n)
        return true;
    if (!resize(&with->types, n, sizeof *with->types) || !resize(&with->values, n, sizeof *with->values) ||
        !resize(&with->lengths, n, sizeof *with->lengths) || !resize(&with->formats, n, sizeof *with->formats) ||
        !resize(&with->own, n, sizeof *with->own))
        return false;
    for (; with->n < n; with->n++) {
        with->types[with->n] = OID_TEXT;
        with->values[with->n] = NULL;
        with->lengths[with->n] = with->formats[with->n] = 0;
        with->own[with->n] = (struct own_text){0};
    }
    return true;
}

static void free_values(struct parameters *with) {
    for (size_t i = 0; i < with->n; i++)
        free(with->own[i].made);
    free(with->types);
    free(with->values);
    free(with->lengths);
    free(with->formats);
    free(with->own);
}

static enum status clean(struct own_text *own, const char **text, struct error *err) {
    free(own->made);
    own->made = *text ? strdup(*text) : NULL;
    if (*text && !own->made)
        return error_no_memory(err);
    if (*text)
        validate_reason(own->made);
    *text = own->made;
    return ST_OK;
}

unsigned char *postgres_put_number(unsigned char *to, size_t bytes, uint64_t x) {
    for (size_t i = bytes; i-- > 0; x >>= 8)
        to[i] = (unsigned char)x;
    return to + bytes;
}

/* A bigint[] as array_recv in PostgreSQL's arrayfuncs.c reads it: dimensions, whether it has NULLs, the type; the
 * length of the one dimension and its first index; each element behind its length. */
static enum status bind_array(struct parameters *with, size_t i, const struct sql_value *value, struct error *err) {
    enum { HEAD = 20, ELEMENT = 12 };
    const size_t n = (size_t)value->integer;
    const uint64_t head[] = {1, 0, OID_INTEGER, n, 1};
    unsigned char *to = malloc(HEAD + n * ELEMENT);
    free(with->own[i].made);
    with->own[i].made = (char *)to;
    if (!to)
        return error_no_memory(err);
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
        to = postgres_put_number(to, 4, head[k]);
    for (size_t k = 0; k < n; k++)
        to = postgres_put_number(postgres_put_number(to, 4, 8), 8, (uint64_t)value->integers[k]);
    with->values[i] = with->own[i].made;
    with->lengths[i] = (int)(HEAD + n * ELEMENT);
    with->formats[i] = 1;
    return ST_OK;
}

static void bind_one(struct parameters *with, size_t i, const struct sql_value *value) {
    static const Oid types[] = {
        [SQL_INTEGER] = OID_INTEGER, [SQL_NO_INTEGER] = OID_INTEGER, [SQL_REAL] = OID_REAL,
        [SQL_TEXT] = OID_TEXT,       [SQL_BLOB] = OID_BYTES,         [SQL_INTEGERS] = OID_INTEGERS};
    char *number = with->own[i].number;
    with->types[i] = types[value->type];
    with->formats[i] = value->type == SQL_BLOB;
    with->lengths[i] = value->type == SQL_BLOB ? (int)value->integer : 0;
    with->values[i] = value->type == SQL_TEXT || value->type == SQL_BLOB ? value->text : NULL;
    if (value->type == SQL_INTEGER)
        snprintf(number, sizeof with->own->number, "%lld", (long long)value->integer);
    else if (value->type == SQL_REAL && !isnan(value->real))
        snprintf(number, sizeof with->own->number, "%.17g", value->real);
    else
        return;
    with->values[i] = number;
}

static enum status bind(struct sql_statement *statement, size_t first, size_t n, const struct sql_value *values,
                        struct error *err) {
    struct statement *s = own(statement);
    enum status status = ST_OK;
    if (!make_room(&s->with, first - 1 + n))
        return error_no_memory(err);
    for (size_t i = 0; i < n && !status; i++) {
        const size_t at = first - 1 + i;
        bind_one(&s->with, at, &values[i]);
        if (values[i].type == SQL_INTEGERS)
            status = bind_array(&s->with, at, &values[i], err);
        else if (at < s->n && s->reasons[at])
            status = clean(&s->with.own[at], &s->with.values[at], err);
    }
    return status;
}

static int64_t bytes_of(const struct parameters *with) {
    int64_t bytes = 0;
    for (size_t i = 0; i < with->n; i++)
        bytes += with->formats[i]             ? with->lengths[i]
                 : with->types[i] != OID_TEXT ? 8
                 : with->values[i]            ? (int64_t)strlen(with->values[i])
                                              : 0;
    return bytes;
}

/* ---- statements ---- */

static void finalize(struct sql_statement *statement);

static enum status prepare(struct store *store, const char *sql, bool kept, struct sql_statement **out,
                           struct error *err) {
    struct statement *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->kept = kept;
    s->copy = kept ? NULL : strdup(sql);
    s->common = (struct sql_statement){.store = store, .sql = kept ? sql : s->copy};
    s->text = postgres_translate(sql, &s->n, &s->reasons);
    if (!s->common.sql || !s->text || !make_room(&s->with, s->n)) {
        finalize(&s->common);
        return error_no_memory(err);
    }
    *out = &s->common;
    return ST_OK;
}

/* Whether the server has it, for values of these types, on this connection. */
static bool is_prepared(const struct statement *s, const struct postgres *p) {
    bool same = s->name && s->age == p->age;
    for (size_t i = 0; i < s->with.n && same; i++)
        same = s->prepared[i] == s->with.types[i];
    return same;
}

static enum status prepare_there(struct statement *s, struct error *err) {
    struct postgres *p = s->common.store->postgres;
    char name[24];
    PGresult *result;
    if (!resize(&s->prepared, s->with.n + 1, sizeof *s->prepared))
        return error_no_memory(err);
    snprintf(name, sizeof name, "s%u", ++p->names);
    enum status status = postgres_answer(
        s->common.store, PQsendPrepare(p->connection, name, s->text, (int)s->with.n, s->with.types), &result, err);
    if (status)
        return status;
    PQclear(result);
    for (size_t i = 0; i < s->with.n; i++)
        s->prepared[i] = s->with.types[i];
    s->name = p->names;
    s->age = p->age;
    return ST_OK;
}

static enum status run_prepared(struct statement *s, struct error *err) {
    struct postgres *p = s->common.store->postgres;
    char name[24];
    enum status status = is_prepared(s, p) ? ST_OK : prepare_there(s, err);
    if (status)
        return status;
    snprintf(name, sizeof name, "s%u", s->name);
    return postgres_answer(
        s->common.store,
        PQsendQueryPrepared(p->connection, name, (int)s->with.n, s->with.values, s->with.lengths, s->with.formats, 0),
        &s->result, err);
}

static enum status run_text(struct statement *s, const char *text, PGresult **out, struct error *err) {
    return postgres_answer(s->common.store,
                           PQsendQueryParams(s->common.store->postgres->connection, text, (int)s->with.n, s->with.types,
                                             s->with.values, s->with.lengths, s->with.formats, 0),
                           out, err);
}

static enum status fetch(struct statement *s, struct error *err) {
    char text[64];
    PQclear(s->result);
    s->result = NULL;
    snprintf(text, sizeof text, "FETCH %d FROM c%u", FETCHED, s->cursor);
    enum status status = postgres_query(s->common.store, text, &s->result, err);
    s->last = !status && PQntuples(s->result) < FETCHED;
    s->row = 0;
    return status;
}

static enum status open_cursor(struct statement *s, struct error *err) {
    struct postgres *p = s->common.store->postgres;
    char *text;
    PGresult *result;
    if (asprintf(&text, "DECLARE c%u NO SCROLL CURSOR FOR %s", p->names + 1, s->text) < 0)
        return error_no_memory(err);
    enum status status = run_text(s, text, &result, err);
    free(text);
    if (status)
        return status;
    PQclear(result);
    s->cursor = ++p->names;
    return fetch(s, err);
}

/* A transaction that writes waits here for its turn, and is told the server's time. Where the turn does not come, no
 * transaction is left open. */
static enum status begin_here(struct statement *s, struct error *err) {
    struct store *store = s->common.store;
    enum status status = postgres_query(store, s->text, &s->result, err);
    if (!status && PQntuples(s->result) > 0)
        store->ahead_us = strtod(PQgetvalue(s->result, 0, 0), NULL) * 1e6 - clock_real_us();
    else if (status && PQtransactionStatus(store->postgres->connection) == PQTRANS_INERROR)
        postgres_query(store, "ROLLBACK", NULL, NULL);
    return status;
}

/* BEGIN also looks whether the connection was lost meanwhile; nothing is lost with it then. */
static enum status begin(struct statement *s, struct error *err) {
    struct store *store = s->common.store;
    enum status status = PQstatus(store->postgres->connection) == CONNECTION_OK ? begin_here(s, err) : ST_ENVIRONMENT;
    if (!status || PQstatus(store->postgres->connection) == CONNECTION_OK)
        return status;
    status = postgres_connect_again(store, err);
    return !status ? begin_here(s, err) : status;
}

static bool starts(const char *text, const char *word) {
    return !strncmp(text, word, strlen(word));
}

/* A transaction in which something failed is undone by COMMIT, without an error. */
static enum status commit(struct statement *s, struct error *err) {
    const struct store *store = s->common.store;
    enum status status = run_text(s, s->text, &s->result, err);
    if (status && PQstatus(store->postgres->connection) != CONNECTION_OK) {
        error_at(err, ST_ENVIRONMENT, store->path,
                 "the connection to PostgreSQL was lost while it ended this step; look whether it was written");
        return error_code(err, ST_ENVIRONMENT, STORE_AWAY);
    }
    if (!status && starts(PQcmdStatus(s->result), "ROLLBACK"))
        status = error_at(err, ST_ENVIRONMENT, store->path, "the transaction was undone by an earlier failure in it");
    return status;
}

static enum status start(struct statement *s, struct error *err) {
    struct store *store = s->common.store;
    const PGconn *connection = store->postgres->connection;
    const bool reads = starts(s->text, "SELECT") || starts(s->text, "WITH");
    const bool writes = starts(s->text, "INSERT") || starts(s->text, "UPDATE") || starts(s->text, "DELETE");
    s->started = s->last = true;
    s->row = 0;
    if (PQstatus(connection) != CONNECTION_OK && !store->depth && !store->reading) {
        enum status status = postgres_connect_again(store, err);
        if (status)
            return status;
    }
    if (starts(s->text, "BEGIN"))
        return begin(s, err);
    if (starts(s->text, "COMMIT"))
        return commit(s, err);
    if (!s->kept && reads && PQtransactionStatus(connection) == PQTRANS_INTRANS)
        return open_cursor(s, err);
    return s->kept && (reads || writes) ? run_prepared(s, err) : run_text(s, s->text, &s->result, err);
}

static enum status step(struct sql_statement *statement, bool *row, int64_t *changed, struct error *err) {
    struct statement *s = own(statement);
    struct postgres *p = s->common.store->postgres;
    enum status status = ST_OK;
    if (p->deadline_us && is_late(p))
        return error_at(err, ST_TIMEOUT, s->common.store->path, "it took too long");
    if (!s->started)
        status = start(s, err);
    else if (++s->row >= PQntuples(s->result) && !s->last)
        status = fetch(s, err);
    if (status)
        return status;
    *row = s->row < PQntuples(s->result);
    const int64_t rows = *row ? -1 : changed_by(s->result);
    if (rows >= 0) {
        *changed = rows;
        p->changes += rows;
        p->bytes += rows ? bytes_of(&s->with) + 24 * rows : 0;
    }
    return ST_OK;
}

static void reset(struct sql_statement *statement) {
    struct statement *s = own(statement);
    struct postgres *p = s->common.store->postgres;
    PQclear(s->result);
    s->result = NULL;
    if (s->cursor && PQtransactionStatus(p->connection) == PQTRANS_INTRANS) {
        char text[32];
        snprintf(text, sizeof text, "CLOSE c%u", s->cursor);
        postgres_query(s->common.store, text, NULL, NULL);
    }
    s->cursor = 0;
    s->started = false;
}

static void finalize(struct sql_statement *statement) {
    struct statement *s = own(statement);
    if (!s)
        return;
    reset(statement);
    free_values(&s->with);
    free(s->prepared);
    free(s->reasons);
    PQfreemem(s->bytes);
    free(s->text);
    free(s->copy);
    free(s);
}

/* ---- rows ---- */

static const char *value_at(const struct statement *s, int i) {
    return PQgetvalue(s->result, s->row, i);
}

static int64_t integer_at(struct sql_statement *statement, int i) {
    const struct statement *s = own(statement);
    const char *value = value_at(s, i);
    return PQftype(s->result, i) == OID_BOOL ? *value == 't' : strtoll(value, NULL, 10);
}

static double real_at(struct sql_statement *statement, int i) {
    return strtod(value_at(own(statement), i), NULL);
}

static bool is_null(struct sql_statement *statement, int i) {
    const struct statement *s = own(statement);
    return PQgetisnull(s->result, s->row, i) != 0;
}

static const char *text_at(struct sql_statement *statement, int i, size_t *bytes) {
    struct statement *s = own(statement);
    *bytes = 0;
    if (is_null(statement, i))
        return NULL;
    if (PQftype(s->result, i) == OID_BYTES) {
        PQfreemem(s->bytes);
        s->bytes = PQunescapeBytea((const unsigned char *)value_at(s, i), bytes);
        return (const char *)s->bytes;
    }
    *bytes = (size_t)PQgetlength(s->result, s->row, i);
    return value_at(s, i);
}

static int columns(struct sql_statement *statement) {
    return PQnfields(own(statement)->result);
}

static const char *name_of(struct sql_statement *statement, int i) {
    return PQfname(own(statement)->result, i);
}

static int64_t total_changes(const struct store *store) {
    return store->postgres->changes;
}

static bool in_transaction(const struct store *store) {
    const PGTransactionStatusType status = PQtransactionStatus(store->postgres->connection);
    return status != PQTRANS_IDLE && status != PQTRANS_UNKNOWN;
}

static void hurry(struct store *store, const double *deadline_us) {
    store->postgres->deadline_us = deadline_us;
}

static enum status size_of(struct store *store, int64_t *bytes, struct error *err) {
    (void)err;
    *bytes = store->postgres->bytes;
    return ST_OK;
}

const struct engine postgres_engine = {
    /* One transaction writes at a time, in all processes: the lock goes with it. Its statements see what is committed,
     * from the one behind the lock on. */
    .begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED;"
                     " SELECT extract(epoch FROM clock_timestamp())::double precision"
                     " FROM pg_advisory_xact_lock(" POSTGRES_LOCK ") x",
    /* one view of the dataset for all its statements */
    .begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    .check_references = postgres_references,
    .add_iterations = "INSERT INTO iterations (trial, number, time_us)"
                      " SELECT ?1, i - 1, t FROM unnest(string_to_array(?2, ' ')::double precision[])"
                      " WITH ORDINALITY x (t, i)",
    /* the look at the table is a subquery, which PostgreSQL never turns into a walk through all of it */
    .note_trials = "INSERT INTO audiences (kind, audience, object, reasons, own, trials)"
                   " SELECT DISTINCT 'strategy', ?1, s, 1, ?2, 1 FROM unnest(?3) s"
                   " WHERE coalesce((SELECT a.trials FROM audiences a"
                   " WHERE a.kind = 'strategy' AND a.audience = ?1 AND a.object = s), 0) = 0"
                   " ON CONFLICT (kind, audience, object) DO UPDATE"
                   " SET reasons = audiences.reasons + 1, own = audiences.own + excluded.own, trials = 1",
    .add_to_counts = "INSERT INTO audiences (kind, audience, object, reasons, own)"
                     " SELECT (ARRAY['model', 'cluster', 'strategy'])[k + 1], ?1, o, r, w"
                     " FROM unnest(?2, ?3, ?4, ?5) x (k, o, r, w)"
                     " ON CONFLICT (kind, audience, object) DO UPDATE"
                     " SET reasons = audiences.reasons + excluded.reasons, own = audiences.own + excluded.own",
    .insert_rows = postgres_insert_rows,
    .audiences = postgres_audiences,
    .size = size_of,
    .exec = exec,
    .prepare = prepare,
    .bind = bind,
    .step = step,
    .reset = reset,
    .finalize = finalize,
    .integer = integer_at,
    .real = real_at,
    .text = text_at,
    .is_null = is_null,
    .columns = columns,
    .name = name_of,
    .total_changes = total_changes,
    .in_transaction = in_transaction,
    .hurry = hurry,
};
