/* ByteScheduler: environment variables. Its partition and credit count elements ("parameters"), not bytes.
 *
 * Tensors are never merged, and each is cut on its own. What the next forward pass needs first goes first, and that
 * pass waits layer by layer. On all-reduce a message has at most the partition's elements. On parameter servers a
 * tensor of e elements has min(rows, ceil(e / partition)) parts, so the number of parts gives an interval of
 * partitions. It makes one task of a part's push and pull, so it knows no other order of pulls. Its own tuning of the
 * credit, on by default, is turned off.
 * Source: Peng et al., SOSP 2019; ByteScheduler, common/bytecore.py; strategy/baselines/bytescheduler*.c. */
#include "strategy/baselines/bytescheduler.h"

#include "interop/export/export_internal.h"
#include "strategy/plan.h"

/* Partitions, in elements, that agree with the strategy. */
struct sizes {
    uint64_t low, high;
};

static void raise(struct sizes *s, uint64_t low) {
    s->low = low > s->low ? low : s->low;
}

static void lower(struct sizes *s, uint64_t high) {
    s->high = high < s->high ? high : s->high;
}

/* The elements of the largest message of an all-reduced variable's group; 0: no limit. */
static uint64_t asked_elements(const struct form *f, uint32_t v) {
    const struct variable_sync *sync = &f->strategy->variables[v];
    return f->strategy->groups[sync->group].partition_bytes / dtype_bytes(f->model->variables[v].dtype);
}

/* All-reduced: cut exactly at the group's partition, or whole. */
static struct sizes reduced_sizes(const struct form *f) {
    struct sizes sizes = {1, UINT64_MAX};
    uint64_t asked = 0;
    bool same = true, first = true;
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        if (f->strategy->variables[v].kind != SYNC_ALL_REDUCE)
            continue;
        const uint64_t elements = f->model->variables[v].elements, size = asked_elements(f, v);
        same = same && (first || size == asked);
        asked = size;
        first = false;
        raise(&sizes, size && size < elements ? size : elements);
        if (size && size < elements)
            lower(&sizes, size);
    }
    return same && asked ? (struct sizes){asked, asked} : sizes;
}

/* Served: the number of parts of axis 0. */
static struct sizes served_sizes(const struct form *f) {
    struct sizes sizes = {1, UINT64_MAX};
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        const struct variable *variable = &f->model->variables[v];
        const struct variable_sync *sync = &f->strategy->variables[v];
        const uint64_t parts = sync->shards, rows = variable->rank ? variable->shape[0] : 1;
        if (sync->kind != SYNC_PARAMETER_SERVER || !parts)
            continue;
        if (parts < rows)
            raise(&sizes, (variable->elements + parts - 1) / parts);
        if (parts > 1)
            lower(&sizes, (variable->elements - 1) / (parts - 1));
    }
    return sizes;
}

static bool parts_are_cut_again(const struct form *f) {
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        const struct variable_sync *sync = &f->strategy->variables[v];
        if (sync->kind == SYNC_PARAMETER_SERVER && sync->partition_bytes &&
            sync->partition_bytes < plan_shard_bytes(f->strategy, &f->model->variables[v], sync, 0))
            return true;
    }
    return false;
}

static bool merges(const struct form *f) {
    return f->strategy->n_groups < f->strategy->n_variables - f->n_served;
}

/* The credit in elements of the model's mean width: all elements of the model when there is no limit, 1 for one message
 * at a time. */
static uint64_t credit_elements(const struct form *f) {
    double elements = 0;
    for (uint32_t v = 0; v < f->model->n_variables; v++)
        elements += (double)f->model->variables[v].elements;
    if (f->strategy->credit_bytes == CREDIT_UNLIMITED)
        return (uint64_t)elements;
    const double credit = (double)f->strategy->credit_bytes * (elements / (double)f->model->bytes);
    return credit < 1 ? 1 : (uint64_t)(credit + 0.5);
}

static enum status note_placement(struct form *f, uint64_t partition, struct error *err) {
    struct strategy theirs;
    enum status st = bytescheduler_ps_build(f->model, f->cluster, partition, BYTESCHEDULER_CREDIT, &theirs, err);
    if (st)
        return st;
    if (!form_same_shards(f, &theirs))
        form_note(f, EXPORT_LOSS_SHARDS, "no partition size cuts the variables as this strategy does");
    else if (!form_same_servers(f, &theirs))
        form_note(f, EXPORT_LOSS_PLACEMENT, "parts go to the servers in turn, not to those that this strategy names");
    strategy_release(&theirs);
    return ST_OK;
}

static void write_environment(struct form *f, uint64_t partition, uint64_t credit) {
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For every worker: set -a; . ./bytescheduler.env; set +a");
    fprintf(file, "# partition and credit are numbers of elements\nUSE_BYTESCHEDULER=1\nBYTESCHEDULER_PARTITION=%llu\n",
            (unsigned long long)partition);
    fprintf(file, "BYTESCHEDULER_CREDIT=%llu\nBYTESCHEDULER_CREDIT_TUNING=0\nBYTESCHEDULER_PARTITION_TUNING=0\n",
            (unsigned long long)credit);
    form_close(f, "bytescheduler.env", file);
}

static void note_schedule(struct form *f) {
    if (f->strategy->policy == POLICY_fifo)
        form_note(f, EXPORT_LOSS_ORDER, "ByteScheduler sends first what is needed first, not what is ready first");
    if (!f->strategy->cross_iteration)
        form_note(f, EXPORT_LOSS_CROSS_ITERATION,
                  "messages run on into the next forward pass, where this strategy "
                  "waits for all");
    if (merges(f))
        form_note(f, EXPORT_LOSS_GROUPS, "tensors are never merged; %u groups hold %u variables", f->strategy->n_groups,
                  f->strategy->n_variables - f->n_served);
}

enum status export_bytescheduler(struct form *f, struct error *err) {
    const bool served = 2 * (uint64_t)f->n_served > f->strategy->n_variables;
    const struct sizes sizes = served ? served_sizes(f) : reduced_sizes(f);
    const bool fits = sizes.low <= sizes.high;
    const uint64_t partition = fits ? export_round(sizes.low, sizes.high, BYTESCHEDULER_PARTITION, 10) : sizes.high;
    write_environment(f, partition, credit_elements(f));
    enum status st = served ? note_placement(f, partition, err) : ST_OK;
    if (st)
        return st;
    if (served ? parts_are_cut_again(f) : !fits)
        form_note(f, EXPORT_LOSS_PARTITION, "groups have several partition sizes; ByteScheduler gets %llu elements",
                  (unsigned long long)partition);
    note_schedule(f);
    form_note_rest(f, CAN_PARTITION | CAN_ORDER | CAN_CREDIT | CAN_CROSS |
                          (served ? CAN_SERVE | CAN_SHARD | CAN_REDUCE_LOCALLY : CAN_ALL_REDUCE));
    return ST_OK;
}
