/* The table that tells NCCL which algorithm to use for which sizes: what `export --to nccl` writes and the tuner plugin
 * reads. Comma-separated lines, a row each, '#' begins a comment, one line that begins with "collective" may name the
 * columns:
 *
 *     collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks
 *     allreduce,0,65536,tree,any,-1,4,32
 *
 * A row holds for sizes from min_bytes to max_bytes, both included, and for communicators of so many nodes and ranks. A
 * -1 for nodes or ranks means any number; for channels it means NCCL's own choice. Protocol "any" is the one that NCCL
 * thinks fastest for the algorithm. The first row that matches counts; where none does, NCCL decides.
 *
 * Only the C library and base/error are used, since this goes into a training process. */
#ifndef INTEROP_EXPORT_NCCL_TABLE_H
#define INTEROP_EXPORT_NCCL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* X(name, NCCL's number) */
#define NCCL_COLLECTIVE_TABLE(X) X(broadcast, 0) X(reduce, 1) X(allgather, 2) X(reducescatter, 3) X(allreduce, 4)
#define NCCL_ALGORITHM_TABLE(X)                                                                                        \
    X(tree, 0) X(ring, 1) X(collnet_direct, 2) X(collnet_chain, 3) X(nvls, 4) X(nvls_tree, 5) X(pat, 6)
#define NCCL_PROTOCOL_TABLE(X) X(any, -1) X(ll, 0) X(ll128, 1) X(simple, 2)

enum nccl_table_numbers {
#define X(name, number) NCCL_TABLE_##name = number,
    NCCL_COLLECTIVE_TABLE(X)
#undef X
#define X(name, number) NCCL_TABLE_ALGO_##name = number,
        NCCL_ALGORITHM_TABLE(X)
#undef X
#define X(name, number) NCCL_TABLE_PROTO_##name = number,
            NCCL_PROTOCOL_TABLE(X)
#undef X
};

enum { NCCL_TABLE_ANY = -1, NCCL_TABLE_MAX_ROWS = 65536, NCCL_TABLE_MAX_BYTES = 8 << 20, NCCL_TABLE_MAX_CHANNELS = 64 };

struct nccl_row {
    int collective, algorithm, protocol;
    int channels, nodes, ranks; /* or NCCL_TABLE_ANY */
    uint64_t min_bytes, max_bytes;
};

struct nccl_table {
    uint32_t n;
    struct nccl_row *rows;
};

/* `name` stands for the text in messages, "NAME:LINE: ...". Fails: ST_INVALID, ST_NO_MEMORY. Release with
 * nccl_table_release. */
enum status nccl_table_read(const char *text, size_t n, const char *name, struct nccl_table *out, struct error *err);
enum status nccl_table_read_file(const char *path, struct nccl_table *out, struct error *err); /* and ST_NOT_FOUND */

/* The first row that matches, or NULL; borrowed. O(rows). */
const struct nccl_row *nccl_table_find(const struct nccl_table *table, int collective, uint64_t bytes, size_t nodes,
                                       size_t ranks);

/* The line that names the columns; one row. */
void nccl_table_write_head(FILE *file);
void nccl_table_write_row(FILE *file, const struct nccl_row *row);

void nccl_table_release(struct nccl_table *table); /* {0} is allowed */

#endif
