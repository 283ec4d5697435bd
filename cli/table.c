/* See table.h. Widths count characters, not bytes, so that "µs" lines up. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"

void table_init(struct table *table, const char *const heads[]) {
    *table = (struct table){0};
    while (heads[table->n_columns] && table->n_columns < TABLE_MAX_COLUMNS) {
        char text[512];
        text_format(text, sizeof text, "%s", heads[table->n_columns]); /* it may be a strategy's name */
        const char *head = arena_strdup(&table->arena, text);
        table->heads[table->n_columns++] = head ? head : "";
    }
}

void table_cell(struct table *table, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    text_vformat(text, sizeof text, format, args);
    va_end(args);
    if (GROW(&table->cells, &table->capacity, table->n_rows + 1))
        table->cells[table->n_rows++] = arena_strdup(&table->arena, text);
}

static size_t width_of(const char *text) {
    return text ? text_columns(text, strlen(text)) : 0;
}

static void print_row(const struct table *table, const char *const *cells, size_t n, const size_t *widths, FILE *to) {
    for (size_t c = 0; c < n; c++) {
        const char *text = cells[c] ? cells[c] : "";
        bool right = table->heads[c][0] == '>', last = c + 1 == n;
        int pad = (int)(widths[c] - width_of(text));
        fprintf(to, "%*s%s%*s%s", right ? pad : 0, "", text, right || last ? 0 : pad, "", last ? "\n" : "  ");
    }
}

void table_print(const struct table *table, FILE *to) {
    const char *heads[TABLE_MAX_COLUMNS];
    size_t widths[TABLE_MAX_COLUMNS], n = table->n_columns;
    for (size_t c = 0; c < n; c++) {
        heads[c] = table->heads[c] + (table->heads[c][0] == '>');
        widths[c] = width_of(heads[c]);
    }
    for (size_t i = 0; i < table->n_rows; i++)
        if (width_of(table->cells[i]) > widths[i % n])
            widths[i % n] = width_of(table->cells[i]);
    print_row(table, heads, n, widths, to);
    for (size_t i = 0; i < table->n_rows; i += n)
        print_row(table, table->cells + i, i + n <= table->n_rows ? n : table->n_rows - i, widths, to);
}

void table_release(struct table *table) {
    arena_release(&table->arena);
    free(table->cells);
    *table = (struct table){0};
}
