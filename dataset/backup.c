/* A copy by SQLite's own backup interface, which sees one consistent state whoever writes meanwhile. It goes to a
 * temporary name beside the target and gets its own name only when it is whole and on the disk; link(2) refuses a name
 * that is taken, where rename(2) would overwrite it. Cost: O(pages). */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/sqlite_internal.h"
#include "dataset/store_internal.h"

enum status backup_copy(struct store *store, const char *temporary, struct error *err) {
    sqlite3 *to = NULL;
    int code =
        sqlite3_open_v2(temporary, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(to, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    sqlite3_backup *backup = code == SQLITE_OK ? sqlite3_backup_init(to, "main", store->db, "main") : NULL;
    if (backup) {
        sqlite3_backup_step(backup, -1);
        code = sqlite3_backup_finish(backup);
    } else if (code == SQLITE_OK) {
        code = sqlite3_extended_errcode(to);
    }
    /* Out of the write-ahead log, so that the copy is one file that also a read-only folder can hold. */
    if (code == SQLITE_OK)
        code = sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    enum status status = code == SQLITE_OK ? ST_OK : sqlite_fail(to, code, temporary, err);
    if (sqlite3_close(to) != SQLITE_OK && !status)
        status = error_at(err, ST_ENVIRONMENT, temporary, "cannot be closed");
    return status;
}

/* The name itself must reach the disk too. */
static enum status sync_folder(const char *path, struct error *err) {
    char *copy = strdup(path);
    if (!copy)
        return error_no_memory(err);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    enum status status = ST_OK;
    if (fd < 0 || fsync(fd) != 0)
        status = error_at(err, ST_ENVIRONMENT, path, "cannot sync its folder: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

static enum status give_name(const char *temporary, const char *path, struct error *err) {
    if (link(temporary, path) == 0)
        return sync_folder(path, err);
    if (errno == EEXIST)
        return error_at(err, ST_CONFLICT, path, "there already; give a new name");
    return error_at(err, ST_ENVIRONMENT, path, "cannot be made: %s", strerror(errno));
}

enum status backup_write(struct store *store, const char *path, struct error *err) {
    if (access(path, F_OK) == 0)
        return error_at(err, ST_CONFLICT, path, "there already; give a new name");
    char *temporary;
    if (asprintf(&temporary, "%s.part-%ld", path, (long)getpid()) < 0)
        return error_no_memory(err);
    unlink(temporary);
    enum status status = backup_copy(store, temporary, err);
    if (!status)
        status = give_name(temporary, path, err);
    unlink(temporary);
    free(temporary);
    return status;
}
