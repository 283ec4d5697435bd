/* NCCL tuner plugin: makes NCCL use a strategy's algorithms (libnccl-tuner-syncopate.so, loaded by NCCL_TUNER_PLUGIN).
 *
 * It reads the table that SYNCOPATE_NCCL_TABLE names (interop/export/nccl/table.h) once a communicator. For each
 * collective NCCL calls it with the costs of all pairs of algorithm and protocol. The plugin sets the cost of the pair
 * in the first matching row to 0, so that NCCL takes this pair, and the channels if the row has a number. It changes
 * nothing where no row matches or where NCCL cannot use the pair. If the table cannot be read, NCCL's log gets one
 * warning, whatever the number of communicators, and NCCL decides alone; training never fails because of it. Cost of a
 * collective: O(rows for this communicator's nodes and ranks). */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "interop/export/nccl/table.h"
#include "interop/export/nccl/tuner.h"

#define EXPORTED __attribute__((visibility("default")))

/* A communicator: the rows that match its nodes and ranks. */
struct tuner {
    struct nccl_table table;
    size_t n_nodes, n_ranks;
};

static void warn_once(tuner_log log, const char *message) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (log && !atomic_flag_test_and_set(&warned))
        log(TUNER_LOG_WARN, TUNER_LOG_TUNING, __FILE__, __LINE__, "syncopate: %s; NCCL decides alone", message);
}

static void keep_matching(struct nccl_table *table, size_t n_nodes, size_t n_ranks) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        const struct nccl_row *row = &table->rows[i];
        if ((row->nodes == NCCL_TABLE_ANY || (size_t)row->nodes == n_nodes) &&
            (row->ranks == NCCL_TABLE_ANY || (size_t)row->ranks == n_ranks))
            table->rows[n++] = *row;
    }
    table->n = n;
}

/* A context, or NULL when there is nothing to say. */
static struct tuner *open_tuner(size_t n_ranks, size_t n_nodes, tuner_log log) {
    struct error err = {0};
    const char *path = getenv("SYNCOPATE_NCCL_TABLE");
    struct tuner *tuner = path && *path ? calloc(1, sizeof *tuner) : NULL;
    if (!path || !*path) {
        warn_once(log, "SYNCOPATE_NCCL_TABLE names no table");
    } else if (!tuner) {
        warn_once(log, "out of memory");
    } else if (nccl_table_read_file(path, &tuner->table, &err)) {
        warn_once(log, ERROR_TEXT(&err));
        free(tuner);
        tuner = NULL;
    }
    if (!tuner)
        return NULL;
    tuner->n_nodes = n_nodes;
    tuner->n_ranks = n_ranks;
    keep_matching(&tuner->table, n_nodes, n_ranks);
    if (log)
        log(TUNER_LOG_INFO, TUNER_LOG_TUNING, __FILE__, __LINE__, "syncopate: %u rows of %s for %zu ranks on %zu nodes",
            tuner->table.n, path, n_ranks, n_nodes);
    return tuner;
}

static int init_v4(size_t n_ranks, size_t n_nodes, tuner_log log, void **context) {
    *context = open_tuner(n_ranks, n_nodes, log);
    return TUNER_SUCCESS;
}

static int init_v5(void **context, uint64_t communicator, size_t n_ranks, size_t n_nodes, tuner_log log, void *domains,
                   void *constants) {
    (void)communicator;
    (void)domains;
    (void)constants;
    return init_v4(n_ranks, n_nodes, log, context);
}

/* The usable protocol of least cost, or -1. `costs` are the algorithm's. */
static int fastest_protocol(const float *costs, int n_protocols) {
    int best = -1;
    for (int p = 0; p < n_protocols; p++)
        if (costs[p] >= 0 && (best < 0 || costs[p] < costs[best]))
            best = p;
    return best;
}

static int ask(void *context, int collective, size_t bytes, int pipelined_operations, float **costs, int n_algorithms,
               int n_protocols, int registered_buffer, int *n_channels) {
    const struct tuner *tuner = context;
    (void)pipelined_operations;
    (void)registered_buffer;
    const struct nccl_row *row =
        tuner ? nccl_table_find(&tuner->table, collective, bytes, tuner->n_nodes, tuner->n_ranks) : NULL;
    if (!row || !costs || row->algorithm >= n_algorithms || row->protocol >= n_protocols)
        return TUNER_SUCCESS;
    float *of_algorithm = (float *)(void *)costs + (ptrdiff_t)row->algorithm * n_protocols;
    const int protocol =
        row->protocol == NCCL_TABLE_PROTO_any ? fastest_protocol(of_algorithm, n_protocols) : row->protocol;
    if (protocol < 0 || !(of_algorithm[protocol] >= 0))
        return TUNER_SUCCESS;
    of_algorithm[protocol] = 0;
    if (row->channels != NCCL_TABLE_ANY && n_channels)
        *n_channels = row->channels;
    return TUNER_SUCCESS;
}

static int destroy(void *context) {
    struct tuner *tuner = context;
    if (tuner)
        nccl_table_release(&tuner->table);
    free(tuner);
    return TUNER_SUCCESS;
}

EXPORTED const struct tuner_v4 ncclTunerPlugin_v4 = {"syncopate", init_v4, ask, destroy};
EXPORTED const struct tuner_v5 ncclTunerPlugin_v5 = {"syncopate", init_v5, ask, destroy};
