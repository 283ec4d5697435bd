/* Text into the reader of NCCL tables, which runs inside training processes. What is accepted is written and read again
 * without a change, and every row's own sizes find a row. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/export/nccl/table.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_round_trip(const struct nccl_table *table) {
    struct error err = {0};
    struct nccl_table again = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    require(file != NULL, "memory");
    nccl_table_write_head(file);
    for (uint32_t i = 0; i < table->n; i++)
        nccl_table_write_row(file, &table->rows[i]);
    fclose(file);
    require(!nccl_table_read(text, size, "again", &again, &err), ERROR_TEXT(&err));
    require(again.n == table->n && (!again.n || !memcmp(again.rows, table->rows, again.n * sizeof *again.rows)),
            "what is written reads back the same");
    free(text);
    nccl_table_release(&again);
}

static void check_rows(const struct nccl_table *table) {
    for (uint32_t i = 0; i < table->n && i < 100; i++) {
        const struct nccl_row *row = &table->rows[i];
        const size_t nodes = row->nodes > 0 ? (size_t)row->nodes : 3, ranks = row->ranks > 0 ? (size_t)row->ranks : 5;
        const struct nccl_row *found = nccl_table_find(table, row->collective, row->max_bytes, nodes, ranks);
        require(found && found <= row && found->min_bytes <= row->max_bytes, "a row's size finds it or one before");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct nccl_table table = {0};
    const enum status status = nccl_table_read((const char *)data, n, "input", &table, &err);
    if (status != ST_OK) {
        require(status == ST_INVALID && !strncmp(ERROR_TEXT(&err), "input:", 6), "a refusal says where");
        require(!table.rows, "nothing is written on failure");
        return 0;
    }
    check_round_trip(&table);
    check_rows(&table);
    nccl_table_release(&table);
    return 0;
}
