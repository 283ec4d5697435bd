/* Reading, writing and searching the table. The reader goes line by line over a text that need not end in NUL, and
 * takes fields as pointer and length; it allocates only the rows. A table has tens of rows, so the search looks at them
 * in turn. */
#include "interop/export/nccl/table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *name;
    int number;
};

#define X(name, number) {#name, number},
static const struct word collectives[] = {NCCL_COLLECTIVE_TABLE(X){NULL, 0}};
static const struct word algorithms[] = {NCCL_ALGORITHM_TABLE(X){NULL, 0}};
static const struct word protocols[] = {NCCL_PROTOCOL_TABLE(X){NULL, 0}};
#undef X

static const char *const columns[] = {"collective", "min_bytes", "max_bytes", "algorithm",
                                      "protocol",   "channels",  "nodes",     "ranks"};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* A piece of the text. */
struct span {
    const char *at;
    size_t n;
};

/* Where the reader is. */
struct place {
    const char *name;
    uint32_t line;
    struct error *err;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s) {
    while (s.n && is_blank(s.at[0])) {
        s.at++;
        s.n--;
    }
    while (s.n && is_blank(s.at[s.n - 1]))
        s.n--;
    return s;
}

/* Cut off what stands before the first `stop`, and the stop itself. */
static struct span cut(struct span *rest, char stop) {
    const char *end = rest->n ? memchr(rest->at, stop, rest->n) : NULL;
    const struct span piece = {rest->at, end ? (size_t)(end - rest->at) : rest->n};
    const size_t used = piece.n + (end ? 1 : 0);
    rest->at += used;
    rest->n -= used;
    return piece;
}

static bool is_word(struct span s, const char *word) {
    return s.n == strlen(word) && !memcmp(s.at, word, s.n);
}

static enum status refuse(const struct place *place, int column, struct span field, const char *why) {
    return error_set(place->err, ST_INVALID, "%s:%u: %s \"%.*s\" %s", place->name, place->line, columns[column],
                     (int)(field.n < 40 ? field.n : 40), field.n ? field.at : "", why);
}

static enum status read_word(const struct place *place, int column, struct span field, const struct word *words,
                             int *out) {
    for (; words->name; words++)
        if (is_word(field, words->name)) {
            *out = words->number;
            return ST_OK;
        }
    return refuse(place, column, field, "is not one that NCCL has; see interop/export/README.md");
}

static enum status read_bytes(const struct place *place, int column, struct span field, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < field.n; i++) {
        if (field.at[i] < '0' || field.at[i] > '9')
            return refuse(place, column, field, "is not a whole number");
        const uint64_t digit = (uint64_t)(field.at[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return refuse(place, column, field, "is too large");
        value = value * 10 + digit;
    }
    if (!field.n)
        return refuse(place, column, field, "is missing");
    *out = value;
    return ST_OK;
}

/* 1 and more, or -1. */
static enum status read_count(const struct place *place, int column, struct span field, int most, int *out) {
    uint64_t value;
    if (is_word(field, "-1")) {
        *out = NCCL_TABLE_ANY;
        return ST_OK;
    }
    enum status st = read_bytes(place, column, field, &value);
    if (!st && (!value || value > (uint64_t)most))
        st = refuse(place, column, field, "is not -1 or a number within the limits");
    if (!st)
        *out = (int)value;
    return st;
}

static enum status read_row(const struct place *place, struct span line, struct nccl_row *out) {
    struct span f[COLUMNS];
    int n = 0;
    for (bool more = true; more; n++) {
        if (n == COLUMNS)
            return error_set(place->err, ST_INVALID, "%s:%u: more than %d fields", place->name, place->line, COLUMNS);
        const size_t before = line.n;
        f[n] = cut(&line, ',');
        more = f[n].n < before;
        f[n] = trim(f[n]);
    }
    if (n < COLUMNS)
        return error_set(place->err, ST_INVALID, "%s:%u: %d fields, where a row has %d", place->name, place->line, n,
                         COLUMNS);
    struct nccl_row row = {0};
    enum status st = read_word(place, 0, f[0], collectives, &row.collective);
    if (!st)
        st = read_bytes(place, 1, f[1], &row.min_bytes);
    if (!st)
        st = read_bytes(place, 2, f[2], &row.max_bytes);
    if (!st)
        st = read_word(place, 3, f[3], algorithms, &row.algorithm);
    if (!st)
        st = read_word(place, 4, f[4], protocols, &row.protocol);
    if (!st)
        st = read_count(place, 5, f[5], NCCL_TABLE_MAX_CHANNELS, &row.channels);
    if (!st)
        st = read_count(place, 6, f[6], INT32_MAX, &row.nodes);
    if (!st)
        st = read_count(place, 7, f[7], INT32_MAX, &row.ranks);
    if (!st && row.max_bytes < row.min_bytes)
        st = refuse(place, 2, f[2], "is less than min_bytes");
    if (!st)
        *out = row;
    return st;
}

static enum status append(struct nccl_table *table, const struct nccl_row *row, const struct place *place) {
    if (table->n == NCCL_TABLE_MAX_ROWS)
        return error_set(place->err, ST_INVALID, "%s:%u: more than %d rows", place->name, place->line,
                         NCCL_TABLE_MAX_ROWS);
    if (!(table->n & (table->n - 1))) {
        struct nccl_row *rows = realloc(table->rows, (table->n ? 2 * (size_t)table->n : 1) * sizeof *rows);
        if (!rows)
            return error_no_memory(place->err);
        table->rows = rows;
    }
    table->rows[table->n++] = *row;
    return ST_OK;
}

enum status nccl_table_read(const char *text, size_t n, const char *name, struct nccl_table *out, struct error *err) {
    struct nccl_table table = {0};
    struct place place = {name, 0, err};
    struct span rest = {text, n};
    enum status st = ST_OK;
    while (rest.n && !st) {
        struct span whole = cut(&rest, '\n'), line = trim(cut(&whole, '#')), head = line;
        struct nccl_row row;
        place.line++;
        if (!line.n || is_word(trim(cut(&head, ',')), columns[0]))
            continue;
        st = read_row(&place, line, &row);
        if (!st)
            st = append(&table, &row, &place);
    }
    if (st)
        nccl_table_release(&table);
    else
        *out = table;
    return st;
}

static enum status read_all(FILE *file, const char *path, struct nccl_table *out, struct error *err) {
    char *text = malloc(NCCL_TABLE_MAX_BYTES + 1);
    if (!text)
        return error_no_memory(err);
    const size_t n = fread(text, 1, NCCL_TABLE_MAX_BYTES + 1, file);
    enum status st = ST_OK;
    if (ferror(file))
        st = error_at(err, ST_INVALID, path, "cannot be read");
    else if (n > NCCL_TABLE_MAX_BYTES)
        st = error_at(err, ST_INVALID, path, "more than %d bytes", NCCL_TABLE_MAX_BYTES);
    else
        st = nccl_table_read(text, n, path, out, err);
    free(text);
    return st;
}

enum status nccl_table_read_file(const char *path, struct nccl_table *out, struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_at(err, ST_NOT_FOUND, path, "no such file, or it may not be read");
    enum status st = read_all(file, path, out, err);
    fclose(file);
    return st;
}

static bool matches(int wanted, size_t is) {
    return wanted == NCCL_TABLE_ANY || (size_t)wanted == is;
}

const struct nccl_row *nccl_table_find(const struct nccl_table *table, int collective, uint64_t bytes, size_t nodes,
                                       size_t ranks) {
    for (uint32_t i = 0; i < table->n; i++) {
        const struct nccl_row *row = &table->rows[i];
        if (row->collective == collective && bytes >= row->min_bytes && bytes <= row->max_bytes &&
            matches(row->nodes, nodes) && matches(row->ranks, ranks))
            return row;
    }
    return NULL;
}

static const char *name_of(const struct word *words, int number) {
    while (words->name && words->number != number)
        words++;
    return words->name;
}

void nccl_table_write_head(FILE *file) {
    for (int i = 0; i < COLUMNS; i++)
        fprintf(file, "%s%c", columns[i], i + 1 < COLUMNS ? ',' : '\n');
}

void nccl_table_write_row(FILE *file, const struct nccl_row *row) {
    fprintf(file, "%s,%" PRIu64 ",%" PRIu64 ",%s,%s,%d,%d,%d\n", name_of(collectives, row->collective), row->min_bytes,
            row->max_bytes, name_of(algorithms, row->algorithm), name_of(protocols, row->protocol), row->channels,
            row->nodes, row->ranks);
}

void nccl_table_release(struct nccl_table *table) {
    free(table->rows);
    *table = (struct nccl_table){0};
}
