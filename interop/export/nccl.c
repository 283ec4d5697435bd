/* NCCL: environment variables, and a table of algorithms by size for our tuner plugin (nccl/plugin.c).
 *
 * This form says which algorithm an all-reduce uses and nothing else: groups, order and sizes are the framework's, so
 * it goes together with a framework's form, and notes algorithms and what moves by other ways than whole all-reduces. A
 * size that the strategy sends has the algorithm of its group; neighbouring sizes with one algorithm make one row;
 * sizes that the strategy does not send and groups that leave it open have no row. Where all sizes use one algorithm,
 * NCCL_ALGO is enough and the plugin is not needed (NCCL 2.24 and later, which know its form "allreduce:...").
 *
 * NCCL's tree is the double binary tree (Sanders, Speck and Träff 2009). It has neither recursive doubling nor
 * halving and doubling, and nothing that is our hierarchical. Protocols are NCCL's to choose.
 * Source: NCCL documentation, "Environment Variables"; ext-tuner. O(messages log messages). */
#include <stdlib.h>

#include "interop/export/export_internal.h"
#include "interop/export/nccl/table.h"
#include "strategy/plan.h"

enum { NO_ROW = -1 };

static int nccl_algorithm(enum algorithm algorithm) {
    switch (algorithm) {
    case ALGORITHM_ring:
        return NCCL_TABLE_ALGO_ring;
    case ALGORITHM_tree:
    case ALGORITHM_double_tree:
        return NCCL_TABLE_ALGO_tree;
    default:
        return NO_ROW;
    }
}

/* How many messages have this size and this algorithm of NCCL. */
struct sent {
    uint64_t bytes;
    int algorithm;
    uint32_t n;
};

static int by_bytes(const void *a, const void *b) {
    const struct sent *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->algorithm - y->algorithm;
}

/* Merge equal entries, then keep of each size the algorithm that most messages want; returns how many are left. */
static uint32_t merge_sizes(struct form *f, struct sent *sent, uint32_t n) {
    uint32_t merged = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (merged && !by_bytes(&sent[merged - 1], &sent[i]))
            sent[merged - 1].n++;
        else
            sent[merged++] = sent[i];
    for (uint32_t i = 0; i < merged; i++) {
        if (!kept || sent[kept - 1].bytes != sent[i].bytes) {
            sent[kept++] = sent[i];
            continue;
        }
        form_note(f, EXPORT_LOSS_ALGORITHM, "messages of %llu bytes use two algorithms, but a table has one for a size",
                  (unsigned long long)sent[i].bytes);
        if (sent[i].n > sent[kept - 1].n)
            sent[kept - 1] = sent[i];
    }
    return kept;
}

static uint32_t collect(const struct plan *plan, struct sent *sent) {
    uint32_t n = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (plan->messages[m].kind == SYNC_ALL_REDUCE && plan->messages[m].algorithm != ALGORITHM_all_gather &&
            !plan->messages[m].half && !plan->messages[m].encoder)
            sent[n++] = (struct sent){plan->messages[m].bytes, nccl_algorithm(plan->messages[m].algorithm), 1};
    return n;
}

static void write_table(struct form *f, const struct sent *sent, uint32_t n) {
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For libnccl-tuner-syncopate.so: SYNCOPATE_NCCL_TABLE names this file.");
    nccl_table_write_head(file);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sent[end].algorithm == sent[i].algorithm;)
            end++;
        if (sent[i].algorithm != NO_ROW)
            nccl_table_write_row(file, &(struct nccl_row){.collective = NCCL_TABLE_allreduce,
                                                          .algorithm = sent[i].algorithm,
                                                          .protocol = NCCL_TABLE_PROTO_any,
                                                          .channels = NCCL_TABLE_ANY,
                                                          .nodes = (int)form_workers(f),
                                                          .ranks = (int)f->cluster->n_devices,
                                                          .min_bytes = sent[i].bytes,
                                                          .max_bytes = sent[end - 1].bytes});
    }
    form_close(f, "nccl-tuner.csv", file);
}

/* The algorithm of all sizes, or NO_ROW; *any says whether some size has one. */
static int common_algorithm(const struct sent *sent, uint32_t n, bool *any) {
    int algorithm = n ? sent[0].algorithm : NO_ROW;
    *any = false;
    for (uint32_t i = 0; i < n; i++) {
        algorithm = sent[i].algorithm == algorithm ? algorithm : NO_ROW;
        *any = *any || sent[i].algorithm != NO_ROW;
    }
    return algorithm;
}

static void write_files(struct form *f, const struct sent *sent, uint32_t n) {
    bool any;
    const int one = common_algorithm(sent, n, &any);
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For every rank: set -a; . ./nccl.env; set +a");
    if (!any)
        fprintf(file, "# every algorithm is left to NCCL: nothing to set\n");
    else if (one != NO_ROW)
        fprintf(file,
                "# NCCL 2.24 and later; earlier ones take the plugin and the table as below\nNCCL_ALGO=allreduce:%s\n",
                one == NCCL_TABLE_ALGO_ring ? "ring" : "tree");
    if (any)
        fprintf(file, "%sNCCL_TUNER_PLUGIN=libnccl-tuner-syncopate.so\n%sSYNCOPATE_NCCL_TABLE=nccl-tuner.csv\n",
                one != NO_ROW ? "# " : "# give both files with the path that ranks find them at\n",
                one != NO_ROW ? "# " : "");
    form_close(f, "nccl.env", file);
    if (any)
        write_table(f, sent, n);
}

static void note_algorithms(struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t single = 0, none = 0;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        single += s->groups[g].algorithm == ALGORITHM_tree;
        none += s->groups[g].algorithm != ALGORITHM_auto && s->groups[g].algorithm != ALGORITHM_all_gather &&
                nccl_algorithm(s->groups[g].algorithm) == NO_ROW;
    }
    if (none)
        form_note(f, EXPORT_LOSS_ALGORITHM, "%u of %u groups want an algorithm that NCCL does not have", none,
                  s->n_groups);
    else if (single)
        form_note(f, EXPORT_LOSS_ALGORITHM, "%u of %u groups want a single tree; NCCL's is a double one", single,
                  s->n_groups);
}

/* Reduce-scatters, all-gathers, all-reduces among replicas and encoders have no row. */
static void note_other_ways(struct form *f) {
    const struct strategy *s = f->strategy;
    uint32_t sharded = 0;
    for (uint32_t g = 0; g < s->n_groups; g++)
        sharded += s->groups[g].sharded != SHARDED_none;
    if (sharded)
        form_note(f, EXPORT_LOSS_SHARDED,
                  "%u of %u groups are reduced, scattered and gathered, and the table has rows for all-reduces alone",
                  sharded, s->n_groups);
    form_note_rest(f, ~(unsigned)(CAN_REDUCE_LOCALLY | CAN_KEEP_PARTS | CAN_REPLICATE | CAN_RESHARD | CAN_CARRY));
}

enum status export_nccl(struct form *f, struct error *err) {
    struct plan plan = {0};
    enum status st = plan_lower(f->model, f->cluster, f->strategy, &plan, err);
    if (st)
        return st;
    struct sent *sent = arena_alloc(f->arena, plan.n_messages, sizeof *sent);
    if (sent) {
        uint32_t n = collect(&plan, sent);
        note_algorithms(f);
        note_other_ways(f);
        qsort(sent, n, sizeof *sent, by_bytes);
        n = merge_sizes(f, sent, n);
        write_files(f, sent, n);
    }
    plan_release(&plan);
    return sent ? ST_OK : error_no_memory(err);
}
