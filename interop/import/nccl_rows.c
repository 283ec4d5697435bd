/* Whether it was an all-reduce shows in busbw / algbw = 2 (n - 1) / n (nccl-tests, doc/PERFORMANCE.md), from which n
 * follows where no rank is listed. */
#include "interop/import/nccl_rows.h"

#include <math.h>
#include <string.h>

enum { MAX_RANKS = 1 << 20 };

uint64_t nccl_type_bytes(const char *word) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"int8", 1},   {"uint8", 1},  {"int32", 4},    {"uint32", 4},  {"int64", 8},
                 {"uint64", 8}, {"half", 2},   {"float", 4},    {"double", 8},  {"bfloat16", 2},
                 {"f8e4m3", 1}, {"f8e5m2", 1}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(word, types[i].name))
            return types[i].bytes;
    return 0;
}

bool nccl_is_sum(const char *redop) {
    return !strcmp(redop, "sum") || !strcmp(redop, "avg");
}

/* Half of the last digit of a rate that was printed in six columns. */
static double rounding(double rate) {
    return rate < 1e3 ? 0.005 : rate < 1e4 ? 0.05 : 0.5;
}

/* n from the largest rates, which are rounded least; 0: they are too rough to tell. */
static uint64_t ranks_of_rates(const struct nccl_tests_row *row) {
    const double da = rounding(row->alg), db = rounding(row->bus);
    const double low = 2 - (row->bus + db) / (row->alg - da), high = 2 - (row->bus - db) / (row->alg + da);
    if (row->alg < 1 || low <= 0)
        return 0;
    const double most = floor(2 / low), least = ceil(2 / high);
    return most == least && most >= 2 && most < MAX_RANKS ? (uint64_t)most : 0;
}

static bool is_all_reduce(const struct nccl_tests_row *row, uint64_t ranks) {
    const double factor = 2 * ((double)ranks - 1) / (double)ranks;
    const double da = rounding(row->alg), db = rounding(row->bus);
    return row->bus >= (row->alg - da) * factor - db && row->bus <= (row->alg + da) * factor + db;
}

/* Of the rows from *i on that are of one run, the one of the largest bus bandwidth; *i is then behind the run. */
static const struct nccl_tests_row *top_of_run(const struct nccl_rows *rows, size_t *i) {
    const struct nccl_tests_row *top = &rows->items[*i];
    for (const size_t run = top->run; *i < rows->n && rows->items[*i].run == run; ++*i)
        if (rows->items[*i].bus > top->bus)
            top = &rows->items[*i];
    return top;
}

enum status nccl_rows_check(const struct nccl_rows *rows, uint64_t said, const struct nccl_tests_row **best,
                            uint64_t *ranks, struct error *err) {
    const struct nccl_tests_row *top = NULL;
    if (!rows->n)
        return error_set(err, ST_INVALID, "no row of a sum with a time; give what all_reduce_perf printed");
    for (size_t i = 0; i < rows->n;) {
        const struct nccl_tests_row *one = top_of_run(rows, &i);
        top = top && top->bus >= one->bus ? top : one;
    }
    const uint64_t n = said ? said : rows->ranks ? rows->ranks : ranks_of_rates(top);
    if (!n)
        return error_set(
            err, ST_INVALID,
            "the ranks are not listed, and the rates do not tell them; give --devices, how many took part");
    for (size_t i = 0; i < rows->n;) {
        const struct nccl_tests_row *one = top_of_run(rows, &i);
        if (!is_all_reduce(one, n))
            return error_set(err, ST_INVALID,
                             "bus bandwidth %g is not 2(n-1)/n of %g for %lu ranks: no all-reduce among all of them",
                             one->bus, one->alg, (unsigned long)n);
    }
    *best = top;
    *ranks = n;
    return ST_OK;
}

bool nccl_rows_use(const struct nccl_rows *rows, const struct nccl_tests_row *best, uint64_t ranks,
                   struct cluster_draft *draft) {
    if (best->bus > draft->bus_gbyte_per_s) {
        draft->bus_gbyte_per_s = best->bus;
        draft->bus_devices = ranks;
    }
    for (size_t i = 0; i < rows->n; i++)
        if (!cluster_draft_all_reduce(draft, ranks, rows->items[i].bytes, rows->items[i].time_us))
            return false;
    return cluster_draft_take(draft, &rows->met.nodes, DRAFT_MET);
}
