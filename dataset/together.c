/* Several rows in one insertion. PostgreSQL compiles a table's rules anew for each statement, which takes longer than
 * to insert one trial. So rows go by 64, by 8, and what is left by one; each size is a statement that is prepared once.
 * Cost: an exchange with the server for each statement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"

static const size_t sizes[] = {64, 8};

struct together {
    const char *sql; /* of one row */
    size_t rows;
    char *text;
};

/* The tuple of row i: parameter ?K is that of value i * n + K. */
static void put_tuple(const char *tuple, size_t length, size_t shift, FILE *out) {
    for (const char *at = tuple; at < tuple + length;) {
        char *end = (char *)(uintptr_t)at + 1;
        if (*at == '?')
            fprintf(out, "?%zu", strtoul(end, &end, 10) + shift);
        else
            putc(*at, out);
        at = end;
    }
}

/* From "(" to its ")". */
static size_t tuple_length(const char *tuple) {
    size_t n = 0, open = 0;
    do {
        open += tuple[n] == '(';
        open -= tuple[n] == ')';
        n++;
    } while (open > 0);
    return n;
}

static char *text_of(const char *sql, size_t rows, size_t n) {
    static const char values[] = " VALUES ";
    char *text = NULL;
    size_t bytes;
    const char *tuple = strstr(sql, values) + sizeof values - 1;
    const size_t length = tuple_length(tuple);
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fwrite(sql, 1, (size_t)(tuple - sql), out);
    for (size_t i = 0; i < rows; i++) {
        fputs(i ? ", " : "", out);
        put_tuple(tuple, length, i * n, out);
    }
    fprintf(out, "%s RETURNING id", tuple + length);
    const bool failed = ferror(out) != 0;
    if (!fclose(out) && !failed)
        return text;
    free(text);
    return NULL;
}

/* The statement of so many rows: the same text each time, by whose address it is found again. */
static const char *find_text(struct store *store, const char *sql, size_t rows, size_t n) {
    for (size_t i = 0; i < store->n_together; i++)
        if (store->together[i].sql == sql && store->together[i].rows == rows)
            return store->together[i].text;
    if (!GROW(&store->together, &store->together_room, store->n_together + 1))
        return NULL;
    struct together *last = &store->together[store->n_together];
    *last = (struct together){.sql = sql, .rows = rows, .text = text_of(sql, rows, n)};
    store->n_together += last->text != NULL;
    return last->text;
}

void sql_forget_together(struct store *store) {
    for (size_t i = 0; i < store->n_together; i++)
        free(store->together[i].text);
    free(store->together);
    store->together = NULL;
    store->n_together = store->together_room = 0;
}

static enum status insert(struct store *store, const char *text, size_t rows, size_t n, const struct sql_value *values,
                          bool *inserted, struct error *err) {
    struct sql_statement *stmt;
    bool row = true;
    size_t i = 0;
    memset(inserted, 0, rows * sizeof *inserted);
    enum status status = sql_start(store, text, rows * n, values, &stmt, err);
    while (!status && row) {
        status = sql_next(store, stmt, &row, err);
        while (!status && row && i < rows && values[i * n].integer != sql_column_integer(stmt, 0))
            i++;
        if (!status && row && i < rows)
            inserted[i] = true;
    }
    return status;
}

/* A failure leaves nothing of them. */
static enum status insert_together(struct store *store, const char *sql, size_t rows, size_t n,
                                   const struct sql_value *values, bool *inserted, struct error *err) {
    const char *text = find_text(store, sql, rows, n);
    enum status status = text ? store_begin(store, err) : error_no_memory(err);
    return !status ? store_end(store, insert(store, text, rows, n, values, inserted, err), err) : status;
}

static enum status insert_one(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              bool *inserted, struct error *err) {
    enum status status = sql_run(store, sql, n, values, err);
    *inserted = !status && sql_changes(store) > 0;
    return status;
}

static size_t how_many(const struct store *store, size_t rows) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && store->engine->rows_together; i++)
        if (rows >= sizes[i])
            return sizes[i];
    return 1;
}

enum status sql_insert_each(struct store *store, const char *sql, size_t rows, size_t n, const struct sql_value *values,
                            bool *inserted, size_t *done, struct error *err) {
    enum status status = ST_OK;
    size_t alone = 0; /* how many of the next ones are to go alone, to find the one that is refused */
    for (*done = 0; *done < rows && !status;) {
        const size_t k = alone > 0 ? 1 : how_many(store, rows - *done);
        const struct sql_value *first = values + *done * n;
        status = k > 1 ? insert_together(store, sql, k, n, first, inserted + *done, err)
                       : insert_one(store, sql, n, first, inserted + *done, err);
        const bool refused = status == ST_CONFLICT || status == ST_NOT_FOUND || status == ST_INVALID;
        alone = k > 1 && refused ? k : alone - (alone > 0);
        if (k > 1 && refused)
            status = ST_OK;
        else
            *done += status ? 0 : k;
    }
    return status;
}
