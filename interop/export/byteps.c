/* BytePS: environment variables.
 *
 * Everything goes through servers in partitions of one size. Its credit counts partitions. With a credit, what the next
 * forward pass needs first goes first. A credit of 0, the default, turns scheduling off: nothing is held back and
 * nothing has priority. No knob says how BytePS cuts variables and hashes them to servers, so a strategy is compared
 * with what BytePS does with the same partition (strategy/baselines/byteps.c). The optimizer waits for every pull
 * unless the program uses byteps.torch.cross_barrier.
 * Source: BytePS documentation, docs/env.md; common/scheduled_queue.cc for the credit. */
#include "strategy/baselines/byteps.h"

#include <inttypes.h>

#include "interop/export/export_internal.h"
#include "strategy/plan.h"

/* The largest message without partitions. */
static uint64_t largest_shard(const struct form *f) {
    uint64_t most = 1024;
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        const uint64_t bytes = plan_shard_bytes(f->strategy, &f->model->variables[v], &f->strategy->variables[v], 0);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static uint64_t credit_in_partitions(const struct strategy *s, uint64_t partition) {
    if (s->credit_bytes == CREDIT_UNLIMITED)
        return 0;
    const uint64_t n = s->credit_bytes / partition + (s->credit_bytes % partition >= (partition + 1) / 2);
    return n ? n : 1;
}

/* Compare with what BytePS does with *n_servers: all that there are, else as many as the strategy uses, which is what
 * *n_servers then is. */
static enum status note_servers(struct form *f, uint64_t partition, uint32_t *n_servers, struct error *err) {
    const uint32_t tries[] = {byteps_servers(f->cluster), *n_servers};
    bool same_shards = false, same_servers = false;
    for (size_t i = 0; i < 2 && !same_servers; i++) {
        struct strategy theirs;
        const struct byteps_knobs knobs = {partition, 0, tries[i]};
        enum status st = byteps_build(f->model, f->cluster, &knobs, &theirs, err);
        if (st)
            return st;
        *n_servers = tries[i];
        same_shards = form_same_shards(f, &theirs);
        same_servers = form_same_servers(f, &theirs);
        strategy_release(&theirs);
    }
    if (!same_shards)
        form_note(f, EXPORT_LOSS_SHARDS,
                  "BytePS cuts variables by its partition size alone, not as this strategy does");
    else if (!same_servers)
        form_note(f, EXPORT_LOSS_PLACEMENT, "BytePS hashes partitions to other servers than this strategy names");
    return ST_OK;
}

static void note_credit(struct form *f, uint64_t partition, uint64_t credit) {
    const struct strategy *s = f->strategy;
    if (credit && s->credit_bytes && credit * partition != s->credit_bytes)
        form_note(f, EXPORT_LOSS_CREDIT, "%" PRIu64 " bytes are no whole number of partitions; %" PRIu64 " are set",
                  s->credit_bytes, credit * partition);
    if (credit && s->policy == POLICY_fifo)
        form_note(f, EXPORT_LOSS_ORDER,
                  "with a credit BytePS sends first what is needed first, not what is ready first");
    if (!credit && s->policy == POLICY_priority)
        form_note(f, EXPORT_LOSS_ORDER, "without a credit BytePS has no priorities");
    else if (s->pulls_by_priority)
        form_note(f, EXPORT_LOSS_ORDER, "BytePS orders pushes alone; pulls come as soon as the servers have the sums");
}

enum status export_byteps(struct form *f, struct error *err) {
    bool uniform;
    const uint64_t asked = form_partition(f, &uniform), partition = asked ? asked : largest_shard(f);
    const uint64_t credit = credit_in_partitions(f->strategy, partition);
    uint32_t servers = form_servers(f);
    servers = servers ? servers : 1;
    const bool half = form_encoding(f) == ENCODING_f16;
    enum status st = f->n_served ? note_servers(f, partition, &servers, err) : ST_OK;
    if (st)
        return st;
    FILE *file = form_open(f);
    if (file) {
        form_write_head(f, file, "For every BytePS process: set -a; . ./byteps.env; set +a");
        if (f->strategy->cross_iteration)
            fprintf(file, "# and byteps.torch.cross_barrier.CrossBarrier in place of DistributedOptimizer\n");
        if (half)
            fprintf(file, "# and DistributedOptimizer(..., compression=bps.Compression.fp16)\n");
        fprintf(file, "BYTEPS_PARTITION_BYTES=%llu\nBYTEPS_SCHEDULING_CREDIT=%llu\n", (unsigned long long)partition,
                (unsigned long long)credit);
        fprintf(file, "DMLC_NUM_WORKER=%u\nDMLC_NUM_SERVER=%u\n", form_workers(f), servers);
        form_close(f, "byteps.env", file);
    }
    if (!uniform)
        form_note(f, EXPORT_LOSS_PARTITION,
                  "groups have several partition sizes; BytePS gets the most common, %llu bytes",
                  (unsigned long long)partition);
    note_credit(f, partition, credit);
    form_note_rest(f, CAN_SERVE | CAN_SHARD | CAN_PARTITION | CAN_ORDER | CAN_CREDIT | CAN_CROSS | CAN_REDUCE_LOCALLY |
                          (half ? CAN_CAST : 0u));
    return ST_OK;
}
