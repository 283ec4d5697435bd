/* Both formats come from one table of columns, so that neither can miss a field that the other has. Numbers are written
 * in the shortest form that reads back the same. */
#include "dataset/export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "dataset/names_internal.h"
#include "dataset/select_internal.h"
#include "dataset/sharing.h"
#include "dataset/store_internal.h"

/* X(column, kind, expression); the iterations stand between the first table and the second. */
#define COLUMN_TABLE(X)                                                                                                \
    X(trial, integer, (uint64_t)r->trial)                                                                              \
    X(uid, text, r->uid)                                                                                               \
    X(session, text, r->session)                                                                                       \
    X(number, positive, r->number)                                                                                     \
    X(round, integer, r->round)                                                                                        \
    X(model, text, r->model)                                                                                           \
    X(model_name, text, r->model_name)                                                                                 \
    X(cluster, text, r->cluster)                                                                                       \
    X(cluster_name, text, r->cluster_name)                                                                             \
    X(strategy, text, r->strategy)                                                                                     \
    X(strategy_name, text, r->strategy_name)                                                                           \
    X(proposer, text, r->proposer)                                                                                     \
    X(runner, text, r->runner)                                                                                         \
    X(seed, integer, r->seed)                                                                                          \
    X(state, text, record_state_word(r->state))                                                                        \
    X(predicted_us, number, r->predicted_us)                                                                           \
    X(mean_us, number, r->mean_us)                                                                                     \
    X(median_us, number, r->median_us)                                                                                 \
    X(low_us, number, r->low_us)                                                                                       \
    X(high_us, number, r->high_us)                                                                                     \
    X(queued, text, r->queued)                                                                                         \
    X(started, text, r->started)                                                                                       \
    X(ended, text, r->ended)                                                                                           \
    X(reason, text, r->reason)                                                                                         \
    X(environment, text, r->environment)

#define LATER_COLUMN_TABLE(X)                                                                                          \
    X(team, text, r->team)                                                                                             \
    X(shared, sharing, r->shared)                                                                                      \
    X(attempt, integer, r->attempt)                                                                                    \
    X(client, text, r->client)

static void put_number(double x, FILE *out) {
    char text[32];
    json_format_number(x, text);
    fputs(text, out);
}

static void put_times(const struct record *r, char between, FILE *out) {
    for (size_t i = 0; i < r->n_iterations; i++) {
        if (i)
            putc(between, out);
        put_number(r->iterations_us[i], out);
    }
}

static void csv_text(const char *text, FILE *out) {
    text_print_csv(out, text);
}

static void csv_number(double x, FILE *out) {
    if (!isnan(x))
        put_number(x, out);
}

static void csv_integer(uint64_t x, FILE *out) {
    fprintf(out, "%" PRIu64, x);
}

static void csv_positive(uint64_t x, FILE *out) {
    if (x)
        csv_integer(x, out);
}

static void csv_sharing(const char *shared, FILE *out) {
    if (shared)
        shared_print_words(shared, out);
}

void export_csv_header(FILE *out) {
#define X(column, kind, expression) fputs(#column ",", out);
    COLUMN_TABLE(X)
#undef X
    fputs("iterations_us", out);
#define X(column, kind, expression) fputs("," #column, out);
    LATER_COLUMN_TABLE(X)
#undef X
    fputs("\r\n", out);
}

void export_csv(const struct record *r, FILE *out) {
#define X(column, kind, expression)                                                                                    \
    csv_##kind(expression, out);                                                                                       \
    putc(',', out);
    COLUMN_TABLE(X)
#undef X
    put_times(r, ' ', out);
#define X(column, kind, expression)                                                                                    \
    putc(',', out);                                                                                                    \
    csv_##kind(expression, out);
    LATER_COLUMN_TABLE(X)
#undef X
    fputs("\r\n", out);
}

static void json_key(const char *key, FILE *out) {
    fprintf(out, ",\"%s\":", key);
}

/* How many bytes are written without an escape. */
static size_t plain_length(const char *text, size_t n) {
    size_t i = 0;
    while (i < n && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\')
        i++;
    return i;
}

/* One character that needs a look: where it is not clean it is written as an escape, which means the same. */
static size_t put_special(const char *text, size_t n, FILE *out) {
    char shown[TEXT_SHOWN];
    if ((unsigned char)*text < 0x20)
        snprintf(shown, sizeof shown, "\\u%04x", *text);
    else if (*text == '"' || *text == '\\')
        snprintf(shown, sizeof shown, "\\%c", *text);
    else
        n = text_show_json(text, n, shown);
    fputs(shown, out);
    return (unsigned char)*text < 0x80 ? 1 : n;
}

static void json_text(const char *key, const char *text, FILE *out) {
    if (!text)
        return;
    json_key(key, out);
    putc('"', out);
    for (size_t n = strlen(text); n;) {
        const size_t plain = plain_length(text, n);
        fwrite(text, 1, plain, out);
        text += plain;
        n -= plain;
        const size_t taken = n ? put_special(text, n, out) : 0;
        text += taken;
        n -= taken;
    }
    putc('"', out);
}

static void json_number(const char *key, double x, FILE *out) {
    if (isnan(x))
        return;
    json_key(key, out);
    put_number(x, out);
}

static void json_integer(const char *key, uint64_t x, FILE *out) {
    json_key(key, out);
    csv_integer(x, out);
}

static void json_positive(const char *key, uint64_t x, FILE *out) {
    if (x)
        json_integer(key, x, out);
}

static void json_sharing(const char *key, const char *shared, FILE *out) {
    if (!shared)
        return;
    json_key(key, out);
    shared_print_json(shared, out);
}

/* A value that is JSON already. */
static void json_raw(const char *key, const char *json, FILE *out) {
    json_key(key, out);
    text_print_json(out, json, strlen(json));
}

void export_json(const struct record *r, FILE *out) {
    fputs("{\"schema\":\"syncopate.record/1\"", out);
#define X(column, kind, expression) json_##kind(#column, expression, out);
    COLUMN_TABLE(X)
#undef X
    if (r->environment_json)
        json_raw("environment_details", r->environment_json, out);
    if (r->n_iterations) {
        fputs(",\"iterations_us\":[", out);
        put_times(r, ',', out);
        putc(']', out);
    }
#define X(column, kind, expression) json_##kind(#column, expression, out);
    LATER_COLUMN_TABLE(X)
#undef X
    putc('}', out);
}

static enum status cannot_write(struct error *err) {
    return error_set(err, ST_ENVIRONMENT, "cannot write the export: %s", strerror(errno));
}

/* Columns of a row as members of one line. Each is a text; a name that begins with * is JSON, written as it is; one
 * that begins with | is whom the row is shared with. */
static void put_line(struct sql_statement *stmt, const char *schema, const char *kind, FILE *out) {
    fprintf(out, "{\"schema\":\"%s\"", schema);
    if (kind)
        json_text("kind", kind, out);
    for (int i = 0; i < sql_column_count(stmt); i++) {
        const char *name = sql_column_name(stmt, i), *text = sql_column_text(stmt, i);
        if (*name == '|')
            json_sharing(name + 1, text, out);
        else if (*name != '*')
            json_text(name, text, out);
        else if (text)
            json_raw(name + 1, text, out);
    }
    fputs("}\n", out);
}

/* The rows of `head` that trials of the query name in `column`, then `tail`. */
static enum status put_rows(struct store *store, const struct query *query, const char *head, const char *column,
                            const char *tail, const char *schema, const char *kind, FILE *out, struct error *err) {
    struct select select = {0};
    struct sql_statement *stmt = NULL;
    bool row = true;
    select_add_with(&select, head, sql_text(query->viewer));
    select_add(&select, " IN (SELECT t.");
    select_add(&select, column);
    select_add(&select, " FROM trials t WHERE true");
    enum status status = query_conditions(store, &select, query, err);
    select_add(&select, tail);
    if (!status)
        status = select_prepare(store, &select, &stmt, err);
    while (!status) {
        status = sql_next(store, stmt, &row, err);
        if (status || !row)
            break;
        put_line(stmt, schema, kind, out);
    }
    sql_finalize(stmt);
    select_release(&select);
    return !status && ferror(out) ? cannot_write(err) : status;
}

#define OPTIONS "options"
#define SHARED_OPTIONS                                                                                                 \
    "CASE WHEN json_valid(options)"                                                                                    \
    " AND coalesce(json_extract(options, '$.job.command'), json_extract(options, '$.launch.launch_options'))"          \
    " IS NOT NULL THEN json_remove(options, '$.job.command', '$.launch.launch_options') ELSE options END"
#define SESSIONS(options)                                                                                              \
    "SELECT id, model, cluster, printf('%llu', seed) AS \"*seed\", budget AS \"*budget\", " options                    \
    " AS \"*options\", state, reason, started, ended, team, shared AS \"|shared\", mode FROM sessions WHERE id"

/* Objects under the names that the query's viewer sees; without a viewer, under the names that they came with. */
#define OBJECTS(name, created, table, join)                                                                            \
    "SELECT o.id, " name " AS name, " created " AS created, o.content AS \"*content\" FROM " table " o" join           \
    " WHERE o.row"
#define TOLD_OBJECTS(table, kind)                                                                                      \
    OBJECTS(TOLD_NAME("'" kind "'"), TOLD_CREATED("'" kind "'"), table, JOIN_NAMER("'" kind "'", "@", "false", "NULL"))
#define ALL_OBJECTS(table) OBJECTS("o.name", "o.created", table, "")

static enum status put_references(struct store *store, const struct query *query, bool shared, FILE *out,
                                  struct error *err) {
    static const enum store_kind kinds[] = {STORE_MODEL, STORE_CLUSTER, STORE_STRATEGY};
    static const char *const told[] = {TOLD_OBJECTS("models", "model"), TOLD_OBJECTS("clusters", "cluster"),
                                       TOLD_OBJECTS("strategies", "strategy")},
                             *const all[] = {ALL_OBJECTS("models"), ALL_OBJECTS("clusters"), ALL_OBJECTS("strategies")};
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !status; i++)
        status = put_rows(store, query, (query->viewer ? told : all)[i], object_word(kinds[i]), ") ORDER BY o.row",
                          "syncopate.object/1", object_word(kinds[i]), out, err);
    if (!status)
        status = put_rows(store, query, shared ? SESSIONS(SHARED_OPTIONS) : SESSIONS(OPTIONS), "session",
                          ") ORDER BY rowid", "syncopate.session/1", NULL, out, err);
    return status;
}

static enum status put_in_one_look(struct store *store, const struct query *query, bool shared, FILE *out,
                                   struct error *err) {
    bool began;
    enum status status = store_begin_read(store, &began, err);
    if (!status)
        status = put_references(store, query, shared, out, err);
    store_end_read(store, began);
    return status;
}

enum status export_references(struct store *store, const struct query *query, FILE *out, struct error *err) {
    return put_in_one_look(store, query, false, out, err);
}

enum status export_shared_references(struct store *store, const struct query *query, FILE *out, struct error *err) {
    return put_in_one_look(store, query, true, out, err);
}

struct writer {
    FILE *out;
    enum export_format format;
    uint64_t n;
};

static enum status write_record(void *context, const struct record *record, struct error *err) {
    struct writer *writer = context;
    if (writer->format == EXPORT_CSV) {
        export_csv(record, writer->out);
    } else {
        export_json(record, writer->out);
        putc('\n', writer->out);
    }
    writer->n++;
    return ferror(writer->out) ? cannot_write(err) : ST_OK;
}

enum status export_run(struct store *store, const struct query *query, enum export_format format, FILE *out,
                       uint64_t *n, struct error *err) {
    struct writer writer = {.out = out, .format = format};
    if (format == EXPORT_CSV)
        export_csv_header(out);
    enum status status = query_run(store, query, write_record, &writer, err);
    if (!status && (fflush(out) != 0 || ferror(out)))
        status = cannot_write(err);
    if (!status && n)
        *n = writer.n;
    return status;
}
