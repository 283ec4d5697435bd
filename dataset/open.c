/* Opening and closing. The order matters: the lock first, then a look that changes nothing, and only when the file is
 * known to be ours does anything touch it. What this opening created goes away again when it fails. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/audiences_internal.h"
#include "dataset/claims_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/postgres_open_internal.h"
#include "dataset/schema_internal.h"
#include "dataset/sqlite_internal.h"
#include "dataset/store.h"
#include "dataset/store_internal.h"

enum { BUSY_MS = 5000 }; /* a writer only ever waits for SQLite's own recovery; a reader for a checkpoint */

static bool exists(const char *file) {
    return access(file, F_OK) == 0;
}

/* The absolute path of a file that need not be there, its folder must. */
static enum status resolve(const char *path, char **out, struct error *err) {
    char *file = realpath(path, NULL);
    if (!file && errno == ENOENT) {
        char *copy = strdup(path), *copy2 = strdup(path);
        char *folder = copy && copy2 ? realpath(dirname(copy), NULL) : NULL;
        if (folder && asprintf(&file, "%s/%s", folder, basename(copy2)) < 0)
            file = NULL;
        const int problem = folder ? ENOMEM : errno;
        free(folder);
        free(copy);
        free(copy2);
        errno = problem;
    }
    if (!file)
        return errno == ENOMEM   ? error_no_memory(err)
               : errno == ENOENT ? error_at(err, ST_NOT_FOUND, path, "its folder is not there")
                                 : error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
    *out = file;
    return ST_OK;
}

/* Set for the whole process, before SQLite is first used. Allocations are not counted, since counting takes a lock that
 * all threads share. What a step may have to undo stays in memory. (A limit from which on it goes to a temporary file
 * must be under 128 KiB: SQLite 3.40 writes no more than that at once, and takes the rest for a full disk.) */
static void configure(void) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1);
}

static void close_database(struct store *store) {
    sql_forget(store);
    sqlite3_close(store->db);
    store->db = NULL;
}

static enum status open_database(struct store *store, struct error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure);
    const bool reads = store->read_only && !store->copy;
    char *uri = reads ? sqlite_uri(store->file, store->immutable) : strdup(store->copy ? store->copy : store->file);
    if (!uri)
        return error_no_memory(err);
    const int flags = reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code =
        sqlite3_open_v2(uri, &store->db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    free(uri);
    if (code != SQLITE_OK)
        return sqlite_fail(store->db, code, store->path, err);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    /* Our files have no triggers and no views. A file from elsewhere may have some; these settings keep them from
     * running. The triggers of schema_follow are temporary ones of this connection; the settings do not concern them.
     */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    code = sqlite_add_functions(store->db);
    return code == SQLITE_OK ? ST_OK : sqlite_fail(store->db, code, store->path, err);
}

/* The cache: 64 MiB hold the pages that a batch of trials touches in a dataset of a million trials. The log: such a
 * dataset has some 17,000 pages of indexes, of which each trial changes two. In a log of 50,000 pages (200 MB) most of
 * them are changed several times and copied back once. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON;"
                               "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 50000";

static enum status open_for_writing(struct store *store, struct error *err) {
    int version = 0;
    enum status status = open_database(store, err);
    if (!status && sqlite3_db_readonly(store->db, "main") == 1)
        return error_at(err, ST_ENVIRONMENT, store->path, "read-only for this user");
    if (!status)
        status = schema_read_version(store, &version, err);
    if (!status)
        status = sql_exec(store, settings, err);
    if (!status)
        status = schema_migrate(store, version, err);
    return !status ? schema_follow(store, err) : status;
}

/* Bytes in the log; -1: there is no log. */
static long long wal_bytes(const char *file) {
    char *wal;
    struct stat at;
    if (asprintf(&wal, "%s-wal", file) < 0)
        return LLONG_MAX;
    const long long bytes = stat(wal, &at) ? -1 : at.st_size;
    free(wal);
    return bytes;
}

static enum status read_for_reading(struct store *store, int *version, struct error *err) {
    enum status status = open_database(store, err);
    return !status ? schema_read_version(store, version, err) : status;
}

static void remove_files(const char *file) {
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char *path;
        if (asprintf(&path, "%s%s", file, tails[i]) < 0)
            return;
        unlink(path);
        free(path);
    }
}

/* SQLite makes a log and its index for readers too. It removes them when the last connection closes, if that connection
 * may write. So a reader that leaves an empty log behind opens the file for writing and closes it. This writes nothing,
 * and where others have the file open, the log and its index stay. A log that is not empty is a writer's, and stays. */
static void remove_empty_log(const char *file) {
    sqlite3 *db = NULL;
    if (wal_bytes(file) != 0 || access(file, W_OK) != 0)
        return;
    if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    sqlite3_close(db);
}

/* An empty file with a name of its own, which nobody else can read. */
static enum status make_copy(char **out, struct error *err) {
    const char *folder = getenv("TMPDIR");
    if (asprintf(out, "%s/syncopate-XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
        *out = NULL;
        return error_no_memory(err);
    }
    const int fd = mkstemp(*out);
    if (fd >= 0) {
        close(fd);
        return ST_OK;
    }
    error_at(err, ST_ENVIRONMENT, *out, "cannot be made, for a copy of a dataset of an earlier version: %s",
             strerror(errno));
    free(*out);
    *out = NULL;
    return ST_ENVIRONMENT;
}

/* A file of an older schema stays as it is: a copy is brought up to date, and read. */
static enum status open_copy(struct store *store, int version, struct error *err) {
    static const char quick[] = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF";
    enum status status = make_copy(&store->copy, err);
    if (status)
        return status;
    status = backup_copy(store, store->copy, err);
    close_database(store);
    if (!store->immutable)
        remove_empty_log(store->file);
    store->read_only = false;
    if (!status)
        status = open_database(store, err);
    if (!status)
        status = sql_exec(store, quick, err);
    if (!status)
        status = schema_migrate(store, version, err);
    store->read_only = true;
    return status;
}

static enum status open_for_reading(struct store *store, struct error *err) {
    int version = 0;
    enum status status = read_for_reading(store, &version, err);
    /* The log's index needs a writable folder. Where there is none and the log is empty, nobody is writing, and SQLite
     * may take the file as it stands. */
    if (status == ST_ENVIRONMENT && exists(store->file) && wal_bytes(store->file) <= 0) {
        close_database(store);
        store->immutable = true;
        status = read_for_reading(store, &version, err);
    }
    if (!status && version == 0)
        return error_at(err, ST_INVALID, store->path, "an empty file, not a dataset");
    return !status && version < SCHEMA_VERSION ? open_copy(store, version, err) : status;
}

static void release(struct store *store) {
    lock_drop(&store->lock);
    audiences_forget(store);
    claims_forget(store);
    if (store->copy)
        remove_files(store->copy);
    free(store->copy);
    free(store->path);
    free(store->file);
    free(store);
}

static enum status open_locked(struct store *store, struct error *err) {
    if (exists(store->file) && access(store->file, W_OK) != 0)
        return error_at(err, ST_ENVIRONMENT, store->path, "read-only for this user: %s", strerror(errno));
    enum status status = lock_take(store->file, store->path, &store->lock, err);
    if (status)
        return status;
    const bool created = !exists(store->file);
    status = open_for_writing(store, err);
    if (status && created) {
        close_database(store);
        *store = (struct store){.engine = store->engine, .path = store->path, .file = store->file, .lock = store->lock};
        remove_files(store->file);
    }
    return status;
}

static enum status open_file(struct store *store, struct error *err) {
    enum status status = resolve(store->path, &store->file, err);
    if (!status && store->read_only && !exists(store->file))
        status = error_at(err, ST_NOT_FOUND, store->path, "no such dataset");
    if (!status)
        status = store->read_only ? open_for_reading(store, err) : open_locked(store, err);
    return status;
}

enum status store_beside(const char *path, const char *ending, char *out, size_t n, struct error *err) {
    char base[32] = "";
    struct id id;
    if (store_is_database(path)) {
        enum status status = id_of(path, strlen(path), &id, err);
        if (status)
            return status;
        snprintf(base, sizeof base, "syncopate-%.8s", id.hex);
    }
    if ((size_t)snprintf(out, n, "%s.%s", *base ? base : path, ending) >= n)
        return error_set(err, ST_USAGE, "%.200s...: the path is too long", path);
    return ST_OK;
}

bool store_may_be_there(const char *path) {
    return store_is_database(path) || exists(path);
}

enum status store_open(const char *path, enum store_mode mode, struct store **out, struct error *err) {
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return error_no_memory(err);
    store->lock.fd = -1;
    store->engine = &sqlite_engine;
    store->read_only = mode == STORE_READ_ONLY;
    store->path = strdup(path);
    enum status status = store->path ? ST_OK : error_no_memory(err);
    if (!status)
        status = store_is_database(path) ? postgres_open(store, err) : open_file(store, err);
    if (status) {
        store_close(store);
        return status;
    }
    *out = store;
    return ST_OK;
}

void store_close(struct store *store) {
    if (!store)
        return;
    const bool looked = store->db && store->read_only && !store->immutable && !store->copy;
    postgres_close(store);
    close_database(store);
    if (looked)
        remove_empty_log(store->file);
    release(store);
}

const char *store_path(const struct store *store) {
    return store->path;
}

enum status store_backup(struct store *store, const char *path, struct error *err) {
    return store->postgres ? postgres_refuse_backup(store, err) : backup_write(store, path, err);
}
