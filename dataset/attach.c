/* SQLite attaches another file. Otherwise the rows are copied: into temporary tables, where the dataset lies in
 * PostgreSQL, or from there into a temporary file, which is then attached. Numbers are copied exactly; of a real number
 * its 17 digits say which it is. Audiences are left out, since merge counts them anew. Cost: one look at each row of
 * the source, and its size in temporary space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/attach_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/sqlite_internal.h"
#include "dataset/store_internal.h"

/* What is copied, in an order in which references find what they refer to. The kinds of columns: i integer, r real, t
 * text, c a reason, which is made clean. X(table, columns, kinds) */
#define OBJECT_COLUMNS "row, id, name, content, created"
#define COPIED_TABLE(X)                                                                                                \
    X("models", OBJECT_COLUMNS, "itttt")                                                                               \
    X("clusters", OBJECT_COLUMNS, "itttt")                                                                             \
    X("strategies", OBJECT_COLUMNS, "itttt")                                                                           \
    X("environments", OBJECT_COLUMNS, "itttt")                                                                         \
    X("rankers", OBJECT_COLUMNS, "itttt")                                                                              \
    X("sessions",                                                                                                      \
      "rowid, id, model, cluster, seed, budget, options, state, reason, started, ended, team, shared, mode, origin",   \
      "itttitttctttttt")                                                                                               \
    X("trials",                                                                                                        \
      "id, uid, session, number, round, model, cluster, strategy, proposer, runner, predicted_us, seed, state,"        \
      " queued, started, ended, mean_us, median_us, low_us, high_us, reason, environment, team, shared, attempt,"      \
      " client, lease_until, lease_us, n_iterations",                                                                  \
      "ittiiiiittrittttrrrrcittittri")                                                                                 \
    X("iterations", "trial, number, time_us", "iir")                                                                   \
    X("holdings", "kind, object, team, name, shared, created", "titttt")

static const struct copied {
    const char *table, *select, *columns, *kinds;
} copied[] = {
#define X(table, columns, kinds) {table, "SELECT " columns " FROM " table " ORDER BY 1, 2", columns, kinds},
    COPIED_TABLE(X)
#undef X
};
enum { TABLES = sizeof copied / sizeof *copied, COLUMNS_MAX = 32 };

static enum status read_values(struct sql_statement *stmt, const char *kinds, struct sql_value *out,
                               struct error *err) {
    for (int i = 0; kinds[i]; i++) {
        const bool null = sql_column_is_null(stmt, i);
        if (kinds[i] == 'i')
            out[i] = null ? sql_no_integer() : sql_integer(sql_column_integer(stmt, i));
        else if (kinds[i] == 'r')
            out[i] = sql_real(sql_column_real(stmt, i));
        else
            out[i] = sql_text(sql_column_text(stmt, i));
        if (!null && out[i].type == SQL_TEXT && !out[i].text)
            return error_no_memory(err);
    }
    return ST_OK;
}

static enum status copy_rows(struct store *from, struct sql_statement *rows, const char *kinds, struct store *to,
                             struct sql_statement *insert, struct error *err) {
    struct sql_value values[COLUMNS_MAX];
    bool row = true, more;
    enum status status = ST_OK;
    while (!status) {
        status = sql_next(from, rows, &row, err);
        if (status || !row)
            break;
        status = read_values(rows, kinds, values, err);
        if (!status)
            status = sql_bind(to, insert, strlen(kinds), values, err);
        if (!status)
            status = sql_next(to, insert, &more, err);
    }
    return status;
}

/* "INSERT INTO source.models (row, ...) VALUES (?, ...)" */
static char *insertion(const struct copied *c, const char *prefix) {
    char marks[20 * COLUMNS_MAX] = "", *text;
    for (size_t i = 0; c->kinds[i]; i++) {
        strcat(marks, i ? ", " : "");
        strcat(marks, c->kinds[i] == 'c' ? "reason_kept(?)" : "?");
    }
    return asprintf(&text, "INSERT INTO %s%s (%s) VALUES (%s)", prefix, c->table, c->columns, marks) < 0 ? NULL : text;
}

static enum status copy_table(const struct copied *c, struct store *from, struct store *to, const char *prefix,
                              struct error *err) {
    struct sql_statement *rows = NULL, *insert = NULL;
    char *text = insertion(c, prefix);
    enum status status = text ? sql_prepare(from, c->select, &rows, err) : error_no_memory(err);
    if (!status)
        status = sql_prepare(to, text, &insert, err);
    if (!status)
        status = copy_rows(from, rows, c->kinds, to, insert, err);
    sql_finalize(rows);
    sql_finalize(insert);
    free(text);
    return status;
}

/* All of them as they are at one moment. */
static enum status copy_tables(struct store *from, struct store *to, const char *prefix, struct error *err) {
    bool began;
    enum status status = store_begin_read(from, &began, err);
    for (size_t i = 0; i < TABLES && !status; i++)
        status = copy_table(&copied[i], from, to, prefix, err);
    store_end_read(from, began);
    return status;
}

/* ---- into PostgreSQL ---- */

static const char make_tables[] = "BEGIN READ WRITE;"
#define X(table, columns, kinds) " CREATE TEMP TABLE source_" table " (LIKE " table ");"
    COPIED_TABLE(X)
#undef X
        " COMMIT";

static const char drop_tables[] = "BEGIN READ WRITE;"
#define X(table, columns, kinds) " DROP TABLE IF EXISTS source." table ";"
    COPIED_TABLE(X)
#undef X
        " COMMIT";

static const char gather_statistics[] = "ANALYZE source.models, source.clusters, source.strategies, source.sessions,"
                                        " source.trials, source.iterations";

static enum status copy_into_tables(struct store *store, struct store *source, struct error *err) {
    enum status status = sql_exec(store, make_tables, err);
    if (status)
        return status;
    status = sql_exec(store, "BEGIN", err);
    if (!status)
        status = copy_tables(source, store, "source.", err);
    if (!status)
        status = sql_exec(store, "COMMIT", err);
    if (!status)
        status = sql_exec(store, gather_statistics, err);
    if (!status)
        return ST_OK;
    if (store->engine->in_transaction(store))
        sql_exec(store, "ROLLBACK", NULL);
    sql_exec(store, drop_tables, NULL);
    return status;
}

/* ---- into a file ---- */

static void remove_folder(char *folder) {
    static const char *const names[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof names / sizeof *names && folder; i++) {
        char *path;
        if (asprintf(&path, "%s/source.db%s", folder, names[i]) < 0)
            break;
        unlink(path);
        free(path);
    }
    if (folder)
        rmdir(folder);
    free(folder);
}

static enum status fill_file(const char *path, struct store *source, struct error *err) {
    struct store *file;
    enum status status = store_open(path, STORE_READ_WRITE, &file, err);
    if (status)
        return status;
    status = store_begin(file, err);
    if (!status)
        status = store_end(file, copy_tables(source, file, "", err), err);
    store_close(file);
    return status;
}

static enum status make_folder(char **out, struct error *err) {
    const char *base = getenv("TMPDIR");
    if (asprintf(out, "%s/syncopate-merge-XXXXXX", base && *base ? base : "/tmp") < 0) {
        *out = NULL;
        return error_no_memory(err);
    }
    if (mkdtemp(*out))
        return ST_OK;
    enum status status = error_at(err, ST_ENVIRONMENT, *out, "cannot be made, for a copy of the other dataset");
    free(*out);
    *out = NULL;
    return status;
}

static enum status attach_uri(struct store *store, const char *uri, struct error *err) {
    struct sql_statement *stmt;
    bool row;
    enum status status = sql_prepare(store, "ATTACH ? AS source", &stmt, err);
    if (status)
        return status;
    status = sql_bind(store, stmt, SQL_VALUES(sql_text(uri)), err);
    if (!status)
        status = sql_next(store, stmt, &row, err);
    sql_finalize(stmt);
    return status;
}

static enum status attach_file(struct store *store, const char *path, bool immutable, struct error *err) {
    char *uri = sqlite_uri(path, immutable);
    enum status status = uri ? attach_uri(store, uri, err) : error_no_memory(err);
    free(uri);
    return status;
}

static enum status attach_copy(struct store *store, struct store *source, struct attached *out, struct error *err) {
    char *path;
    enum status status = make_folder(&out->folder, err);
    if (status)
        return status;
    if (asprintf(&path, "%s/source.db", out->folder) < 0)
        return error_no_memory(err);
    status = fill_file(path, source, err);
    if (!status)
        status = attach_file(store, path, false, err);
    free(path);
    return status;
}

/* ---- */

enum status attach(struct store *store, struct store *source, struct attached *out, struct error *err) {
    struct attached attached = {.source = source};
    enum status status;
    if (store->postgres)
        status = copy_into_tables(store, source, err);
    else if (source->postgres)
        status = attach_copy(store, source, &attached, err);
    else
        status =
            attach_file(store, source->copy ? source->copy : source->file, !source->copy && source->immutable, err);
    if (status)
        remove_folder(attached.folder);
    else
        *out = attached;
    return status;
}

/* The source stays open until now: closing it deletes the copy that is read in place of an older file. */
void detach(struct store *store, struct attached *attached) {
    sql_exec(store, store->postgres ? drop_tables : "DETACH source", NULL);
    store_close(attached->source);
    remove_folder(attached->folder);
}
