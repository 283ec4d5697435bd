/* Where PostgreSQL's SQL is not SQLite's: the one place that knows both. The statements of this folder are written for
 * both, with parameters as SQLite has them. Here stand the pieces that differ, side by side, and the functions that a
 * dataset in PostgreSQL has of its own (postgres_schema.c). What PostgreSQL does not know, it refuses; so a piece that
 * is forgotten here is an error and never a wrong answer. Cost: O(length) when a statement is prepared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/postgres_internal.h"

static const struct {
    const char *sqlite, *postgres;
} pieces[] = {
    /* advice to SQLite's planner */
    {" NOT INDEXED", ""},
    {" CROSS JOIN ", " JOIN "},

    {"instr(", "strpos("},
    {"max(0, ", "greatest(0, "},
    {"printf('%llu', ", "unsigned_text("},
    {"json_each(?1) k ", "json_array_elements_text($1::json) WITH ORDINALITY k (value, key) "},
    {"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')",
     "to_char(now() AT TIME ZONE 'UTC' + interval '1 day', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"},

    /* names_internal.h: SQLite's min() brings along the columns beside it */
    {"h.team AS team, min((h.team <> '') || h.created) ",
     "(array_agg(h.team ORDER BY h.team <> '', h.created))[1] AS team "},

    /* export.c: the command of a job is its team's alone */
    {"CASE WHEN json_valid(options)"
     " AND coalesce(json_extract(options, '$.job.command'), json_extract(options, '$.launch.launch_options')) IS NOT "
     "NULL"
     " THEN json_remove(options, '$.job.command', '$.launch.launch_options') ELSE options END",
     "CASE WHEN coalesce(options::json #>> '{job,command}', options::json #>> '{launch,launch_options}') IS NOT NULL"
     " THEN json_without(json_without(options::json, 'job', 'command'), 'launch', 'launch_options')::text"
     " ELSE options END"},

    /* merge.c: the other dataset is attached in SQLite, and copied into temporary tables here */
    {"main.", ""},
    {"source.", "pg_temp.source_"},
};

/* The piece that `sql` begins with; NULL: none. */
static const char *other_piece(const char *sql, size_t *n) {
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        *n = strlen(pieces[i].sqlite);
        if (!strncmp(sql, pieces[i].sqlite, *n))
            return pieces[i].postgres;
    }
    return NULL;
}

/* "?" is the parameter behind the largest so far, "?7" the seventh. Returns what is behind it. */
static const char *put_parameter(const char *at, size_t *n, FILE *out) {
    char *end = (char *)(uintptr_t)at + 1;
    size_t number = *n + 1;
    if (*end >= '0' && *end <= '9')
        number = strtoul(end, &end, 10);
    *n = number > *n ? number : *n;
    fprintf(out, "$%zu", number);
    return end;
}

static const char *put_quoted(const char *at, FILE *out) {
    const size_t n = strcspn(at + 1, "'") + 1;
    fprintf(out, "%.*s'", (int)n, at);
    return at + n + (at[n] == '\'');
}

static bool put_statement(const char *sql, size_t *n, FILE *out) {
    size_t length;
    while (*sql) {
        const char *other = other_piece(sql, &length);
        if (other) {
            fputs(other, out);
            sql += length;
        } else if (*sql == '\'') {
            sql = put_quoted(sql, out);
        } else if (*sql == '?') {
            sql = put_parameter(sql, n, out);
        } else {
            putc(*sql++, out);
        }
    }
    return ferror(out) == 0;
}

/* Of the n parameters of `text`. */
static bool *find_reasons(const char *text, size_t n) {
    static const char reason[] = "reason_kept($";
    bool *reasons = calloc(n + 1, sizeof *reasons);
    for (const char *at = text; reasons && (at = strstr(at, reason)); at++)
        reasons[strtoul(at + sizeof reason - 1, NULL, 10) - 1] = true;
    return reasons;
}

char *postgres_translate(const char *sql, size_t *n, bool **reasons) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    *n = 0;
    if (!out)
        return NULL;
    bool good = put_statement(sql, n, out);
    good = fclose(out) == 0 && good;
    if (good && reasons)
        good = (*reasons = find_reasons(text, *n)) != NULL;
    if (good)
        return text;
    free(text);
    return NULL;
}
