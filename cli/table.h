/* A text table for people: columns as wide as their widest cell, numbers to the right. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

enum { TABLE_MAX_COLUMNS = 64 };

struct table {
    struct arena arena;
    unsigned n_columns;
    size_t n_rows, capacity;
    const char *heads[TABLE_MAX_COLUMNS]; /* a head that begins with '>' aligns its column to the right */
    const char **cells;                   /* row-major */
};

/* heads: NULL-terminated. */
void table_init(struct table *table, const char *const heads[]);

/* Append a cell to the current row, its texts as text_format (base/text.h) shows them; rows fill from left to right. A
 * cell that memory has no room for is left empty. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

void table_print(const struct table *table, FILE *to);
void table_release(struct table *table);

#endif
