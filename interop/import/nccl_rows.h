/* Rows of all_reduce_perf, whether from its text or its JSON, and what follows from them.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_NCCL_ROWS_H
#define INTEROP_IMPORT_NCCL_ROWS_H

#include "interop/import/cluster_draft.h"

struct nccl_tests_row {
    uint64_t bytes;
    double time_us, alg, bus; /* rates in GB/s, as printed */
    size_t place;             /* line, or position in the JSON's results */
    size_t run;               /* of several in one log, which one; from 0 */
};

struct nccl_rows {
    struct nccl_tests_row *items; /* run by run */
    size_t n;
    uint64_t ranks;           /* 0: not listed */
    struct cluster_draft met; /* the nodes that the ranks are on */
};

/* Bytes of an element of a type as nccl-tests writes it, 0: no type. */
uint64_t nccl_type_bytes(const char *word);

/* Whether the operation sums or averages, as all-reduces of gradients do; other operations are left out. */
bool nccl_is_sum(const char *redop);

/* Find how many devices took part: the number `said` (0: none), or the listed ranks, or what the rates imply. Check
 * that the rates of each run are those of an all-reduce among them. *best is the row of the largest bus bandwidth.
 * Fails: ST_INVALID, with a message that has no place. */
enum status nccl_rows_check(const struct nccl_rows *rows, uint64_t said, const struct nccl_tests_row **best,
                            uint64_t *ranks, struct error *err);

/* Add the measurements and the nodes to a draft. False when memory is out. */
bool nccl_rows_use(const struct nccl_rows *rows, const struct nccl_tests_row *best, uint64_t ranks,
                   struct cluster_draft *draft);

#endif
