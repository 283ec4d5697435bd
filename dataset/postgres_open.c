/* Opening and closing a dataset in PostgreSQL. It is one schema of one database: the first that exists of the
 * connection's search_path. Another schema is named in the address, by options=-csearch_path%3DNAME, and made where it
 * is missing.
 *
 * Any number of processes write a dataset, one transaction at a time: each takes an advisory lock as it begins
 * (postgres.c). Readers take no lock; a read-only store cannot write, whatever it is asked. A connection that was lost
 * is made anew at the next transaction. */
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dataset/audiences_internal.h"
#include "dataset/claims_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/postgres_internal.h"
#include "dataset/postgres_open_internal.h"
#include "dataset/store_internal.h"

enum { OLDEST_SERVER = 150000, NAME_ROOM = 64 };

bool store_is_database(const char *path) {
    return !strncmp(path, "postgresql://", 13) || !strncmp(path, "postgres://", 11);
}

/* An address with a password would stand in the list of processes, in histories and in messages. */
static enum status check_address(const char *address, struct error *err) {
    static const char shown[] = "postgresql://";
    char *message = NULL;
    enum status status = ST_OK;
    PQconninfoOption *options = PQconninfoParse(address, &message);
    if (!options && !message)
        return error_no_memory(err);
    if (!options)
        status = error_at(err, ST_USAGE, shown,
                          "no address of a PostgreSQL database; it looks like "
                          "postgresql://user@host:5432/database");
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if ((!strcmp(o->keyword, "password") || !strcmp(o->keyword, "sslpassword")) && o->val)
            status = error_at(err, ST_USAGE, shown,
                              "a password does not belong into an address, where others see it; "
                              "put it into ~/.pgpass or PGPASSWORD");
    PQfreemem(message);
    PQconninfoFree(options);
    return status;
}

static enum status cannot_connect(struct store *store, struct error *err) {
    const char *message = PQerrorMessage(store->postgres->connection);
    error_at(err, ST_ENVIRONMENT, store->path,
             "PostgreSQL cannot be reached: %.*s; is it running, and is the "
             "address right?",
             (int)strcspn(message, "\n"), message);
    return error_code(err, ST_ENVIRONMENT, STORE_AWAY);
}

static enum status make_connection(struct store *store, struct error *err) {
    char host[NAME_ROOM] = "", program[2 * NAME_ROOM];
    gethostname(host, sizeof host - 1);
    snprintf(program, sizeof program, "syncopate, process %ld on %s", (long)getpid(), host);
    /* What stands before the address gives way to it. */
    const char *const keys[] = {"connect_timeout", "fallback_application_name", "tcp_user_timeout",
                                "dbname",          "client_encoding",           NULL};
    const char *const values[] = {"10", program, "60000", store->file, "UTF8", NULL};
    store->postgres->connection = PQconnectdbParams(keys, values, 1);
    if (!store->postgres->connection)
        return error_no_memory(err);
    return PQstatus(store->postgres->connection) == CONNECTION_OK ? ST_OK : cannot_connect(store, err);
}

/* ---- the schema ---- */

static const char look[] = "SELECT coalesce(current_schema(), ''), current_setting('search_path'),"
                           " current_setting('server_encoding')";

static enum status check_server(struct store *store, const char *encoding, struct error *err) {
    const int version = PQserverVersion(store->postgres->connection);
    if (version < OLDEST_SERVER)
        return error_at(err, ST_INVALID, store->path, "this is PostgreSQL %d; 15 or later is needed", version / 10000);
    if (strcmp(encoding, "UTF8") != 0)
        return error_at(err, ST_INVALID, store->path,
                        "the database keeps texts as %.40s; make one with ENCODING 'UTF8' TEMPLATE template0",
                        encoding);
    return ST_OK;
}

/* The only name of a search_path, without its quotes; NULL where there are several. */
static char *only_name(const char *search_path) {
    const size_t n = strlen(search_path);
    const bool quoted = n >= 2 && *search_path == '"' && search_path[n - 1] == '"';
    if (!n || strpbrk(search_path, ",$"))
        return NULL;
    return quoted ? strndup(search_path + 1, n - 2) : strdup(search_path);
}

static enum status make_schema(struct store *store, const char *search_path, struct error *err) {
    PGconn *connection = store->postgres->connection;
    char *name = only_name(search_path), *quoted = name ? PQescapeIdentifier(connection, name, strlen(name)) : NULL;
    char *sql = NULL;
    enum status status = ST_OK;
    if (!quoted)
        status = error_at(err, ST_NOT_FOUND, store->path, "no schema of its search_path is there (%.80s)", search_path);
    else if (store->read_only)
        status = error_at(err, ST_NOT_FOUND, store->path, "no such dataset (no schema %s)", quoted);
    else if (asprintf(&sql, "CREATE SCHEMA IF NOT EXISTS %s", quoted) < 0)
        status = error_no_memory(err);
    else
        status = postgres_query(store, sql, NULL, err);
    free(sql);
    PQfreemem(quoted);
    if (!status)
        store->postgres->schema = name;
    else
        free(name);
    return status;
}

static enum status find_schema(struct store *store, struct error *err) {
    PGresult *result;
    enum status status = postgres_query(store, look, &result, err);
    if (status)
        return status;
    const char *schema = PQgetvalue(result, 0, 0);
    status = check_server(store, PQgetvalue(result, 0, 2), err);
    if (!status && *schema && !(store->postgres->schema = strdup(schema)))
        status = error_no_memory(err);
    else if (!status && !*schema)
        status = make_schema(store, PQgetvalue(result, 0, 1), err);
    PQclear(result);
    return status;
}

/* ---- claims ---- */

/* A claim is an advisory lock of the connection, so that the server drops it when the process dies. Its numbers stand
 * for "sYnd", and for the schema with the claim's name. That two names share a number is rare, and then one waits for
 * the other. */
static enum status lock_name(struct store *store, const char *function, const char *name, bool *taken,
                             struct error *err) {
    PGconn *connection = store->postgres->connection;
    char *quoted = PQescapeLiteral(connection, name, strlen(name)), *sql = NULL;
    PGresult *result;
    if (!quoted ||
        asprintf(&sql, "SELECT %s(1937337956, hashtext(current_schema() || '/' || %s))", function, quoted) < 0)
        sql = NULL;
    PQfreemem(quoted);
    if (!sql)
        return error_no_memory(err);
    enum status status = postgres_query(store, sql, &result, err);
    free(sql);
    if (status)
        return status;
    *taken = *PQgetvalue(result, 0, 0) == 't';
    PQclear(result);
    return ST_OK;
}

enum status postgres_claim(struct store *store, const char *name, bool together, bool *taken, struct error *err) {
    return lock_name(store, together ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock", name, taken, err);
}

void postgres_unclaim(struct store *store, const char *name, bool together) {
    bool given;
    if (PQstatus(store->postgres->connection) == CONNECTION_OK)
        lock_name(store, together ? "pg_advisory_unlock_shared" : "pg_advisory_unlock", name, &given, NULL);
}

/* The next who opens it shall not meet a lock that the server has yet to give up. */
static void give_up_locks(struct store *store) {
    PGconn *connection = store->postgres->connection;
    if (!store->read_only && PQstatus(connection) == CONNECTION_OK)
        PQclear(PQexec(connection, "SELECT pg_advisory_unlock_all()"));
}

/* ---- opening ---- */

/* What comes back reads as what was written. What was acknowledged is on the disk, whatever the database's own setting.
 * Who was lost in the network is noticed within a minute. */
static const char settings[] = "SET extra_float_digits = 1; SET bytea_output = hex; SET client_min_messages = warning;"
                               " SET standard_conforming_strings = on;"
                               " SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10;"
                               " SET tcp_keepalives_count = 3; SET lock_timeout = '20s';"
                               " SET idle_in_transaction_session_timeout = '1h';"
                               " SELECT set_config('synchronous_commit', 'on', false)"
                               " WHERE current_setting('synchronous_commit') = 'off'";

/* Others wait while a transaction writes, so that none may be idle for long. */
static const char writes[] = "SET idle_in_transaction_session_timeout = '2min'";

static const char read_only[] = "SET default_transaction_read_only = on";

static void ignore(void *context, const PGresult *result) {
    (void)context;
    (void)result;
}

static enum status set_up(struct store *store, struct error *err) {
    PQsetNoticeReceiver(store->postgres->connection, ignore, NULL);
    enum status status = postgres_query(store, settings, NULL, err);
    return !status ? postgres_query(store, store->read_only ? read_only : writes, NULL, err) : status;
}

enum { FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 5000 };

/* From the second failure on there is a pause, which doubles. */
static void wait_before_next(struct postgres *p) {
    const unsigned doublings = p->tries < 6 ? p->tries : 6;
    const double pause_ms = p->tries ? fmin(FIRST_PAUSE_MS << doublings, LONGEST_PAUSE_MS) : 0;
    p->next_try_us = clock_now_us() + pause_ms * 1e3;
    p->tries++;
}

enum status postgres_connect_again(struct store *store, struct error *err) {
    struct postgres *p = store->postgres;
    if (clock_now_us() < p->next_try_us) {
        error_at(err, ST_ENVIRONMENT, store->path, "PostgreSQL could not be reached a moment ago; try again soon");
        return error_code(err, ST_ENVIRONMENT, STORE_AWAY);
    }
    PQfinish(p->connection);
    p->connection = NULL;
    p->age++;
    audiences_forget(store); /* another process may have written meanwhile */
    enum status status = make_connection(store, err);
    if (!status)
        status = set_up(store, err);
    if (!status)
        status = claims_take_again(store, err);
    if (status) { /* not to be used before the claims are there */
        PQfinish(p->connection);
        p->connection = NULL;
        wait_before_next(p);
    } else {
        p->tries = 0;
    }
    return status;
}

/* Two processes that open a dataset at once shall not both make its tables. */
static const char take_turn[] = "SELECT pg_advisory_lock(1937337957, 0)";
static const char end_turn[] = "SELECT pg_advisory_unlock(1937337957, 0)";

static enum status open_connected(struct store *store, struct error *err) {
    enum status status = set_up(store, err);
    if (!status && !store->read_only)
        status = postgres_query(store, take_turn, NULL, err);
    if (!status)
        status = find_schema(store, err);
    if (!status)
        status = postgres_migrate(store, err);
    return !status && !store->read_only ? postgres_query(store, end_turn, NULL, err) : status;
}

enum status postgres_open(struct store *store, struct error *err) {
    store->engine = &postgres_engine;
    enum status status = check_address(store->path, err);
    if (status)
        return status;
    store->postgres = calloc(1, sizeof *store->postgres);
    store->file = strdup(store->path);
    if (!store->postgres || !store->file)
        return error_no_memory(err);
    status = make_connection(store, err);
    return !status ? open_connected(store, err) : status;
}

void postgres_close(struct store *store) {
    if (!store->postgres)
        return;
    sql_forget(store);
    give_up_locks(store);
    PQfinish(store->postgres->connection);
    free(store->postgres->schema);
    free(store->postgres);
    store->postgres = NULL;
}

enum status postgres_refuse_backup(struct store *store, struct error *err) {
    return error_at(err, ST_USAGE, store->path,
                    "PostgreSQL makes its own backups: pg_dump --format=custom --schema='\"%s\"' --file=FILE '%s'",
                    store->postgres->schema, store->path);
}
