/* Opening and closing a dataset in PostgreSQL. It is one schema of one database: the first that exists of the
 * connection's search_path. Another schema is named in the address, by options=-csearch_path%3DNAME, and made where it
 * is missing.
 *
 * One process writes a dataset at a time, as with a file. It holds an advisory lock of its session, which the server
 * drops when the connection ends. Readers take no lock; a read-only store cannot write, whatever it is asked.
 * A connection that was lost is made anew at the next transaction (postgres.c). */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dataset/audiences_internal.h"
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
    return error_at(err, ST_ENVIRONMENT, store->path,
                    "PostgreSQL cannot be reached: %.*s; is it running, and is the "
                    "address right?",
                    (int)strcspn(message, "\n"), message);
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

/* ---- the lock ---- */

/* Locks are named by two numbers: "sYnc", and one that stands for the schema. They are of one database. */
#define LOCK "1937337955, hashtext(current_schema())"

enum { LOCK_TRIES = 20 };
static const double LOCK_PAUSE_US = 50e3;

static const char take[] = "SELECT pg_try_advisory_lock(" LOCK ")";

static const char holder[] =
    "SELECT coalesce(nullif(a.application_name, ''), 'another program'), a.pid"
    " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 1937337955 AND l.objsubid = 2"
    "   AND l.objid::bigint = (hashtext(current_schema())::bigint + 4294967296) % 4294967296"
    "   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

static enum status refuse(struct store *store, struct error *err) {
    PGresult *result;
    enum status status = postgres_query(store, holder, &result, err);
    if (status)
        return status;
    if (PQntuples(result) > 0)
        status = error_at(err, ST_CONFLICT, store->path,
                          "%.100s is writing it (PostgreSQL's process %s); one writer at a time",
                          PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    else
        status = error_at(err, ST_CONFLICT, store->path, "another program is writing it; one writer at a time");
    PQclear(result);
    return status;
}

static enum status try_lock(struct store *store, bool *taken, struct error *err) {
    PGresult *result;
    enum status status = postgres_query(store, take, &result, err);
    if (status)
        return status;
    *taken = *PQgetvalue(result, 0, 0) == 't';
    PQclear(result);
    return ST_OK;
}

/* The server takes a moment to notice that a writer was killed. */
static enum status take_lock(struct store *store, struct error *err) {
    bool taken = false;
    enum status status = try_lock(store, &taken, err);
    for (int i = 0; i < LOCK_TRIES && !taken && !status; i++) {
        clock_sleep_us(LOCK_PAUSE_US);
        status = try_lock(store, &taken, err);
    }
    return status || taken ? status : refuse(store, err);
}

/* The next who opens it shall not meet a lock that the server has yet to give up. */
static void give_up_lock(struct store *store) {
    PGconn *connection = store->postgres->connection;
    if (!store->read_only && PQstatus(connection) == CONNECTION_OK)
        PQclear(PQexec(connection, "SELECT pg_advisory_unlock_all()"));
}

/* ---- opening ---- */

/* What comes back reads as what was written. What was acknowledged is on the disk, whatever the database's own setting.
 * No transaction stays open idle for an hour. */
static const char settings[] = "SET extra_float_digits = 1; SET bytea_output = hex; SET client_min_messages = warning;"
                               " SET standard_conforming_strings = on;"
                               " SET idle_in_transaction_session_timeout = '1h';"
                               " SELECT set_config('synchronous_commit', 'on', false)"
                               " WHERE current_setting('synchronous_commit') = 'off'";

static const char read_only[] = "SET default_transaction_read_only = on";

static void ignore(void *context, const PGresult *result) {
    (void)context;
    (void)result;
}

static enum status set_up(struct store *store, struct error *err) {
    PQsetNoticeReceiver(store->postgres->connection, ignore, NULL);
    enum status status = postgres_query(store, settings, NULL, err);
    if (!status && store->read_only)
        status = postgres_query(store, read_only, NULL, err);
    return status;
}

enum status postgres_connect_again(struct store *store, struct error *err) {
    struct postgres *p = store->postgres;
    PQfinish(p->connection);
    p->connection = NULL;
    p->age++;
    audiences_forget(store); /* another process may have written meanwhile */
    enum status status = make_connection(store, err);
    if (!status)
        status = set_up(store, err);
    if (!status && !store->read_only)
        status = take_lock(store, err);
    if (status) { /* not to be used before the lock is there */
        PQfinish(p->connection);
        p->connection = NULL;
    }
    return status;
}

static enum status open_connected(struct store *store, struct error *err) {
    enum status status = set_up(store, err);
    if (!status)
        status = find_schema(store, err);
    if (!status && !store->read_only)
        status = take_lock(store, err);
    return !status ? postgres_migrate(store, err) : status;
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
    give_up_lock(store);
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
