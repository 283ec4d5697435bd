/* Horovod: environment variables, and exact groups where its own fusion does not make them.
 *
 * Its fusion (strategy/baselines/horovod.c) has one knob, the threshold. The rule compares sums of bytes with the
 * threshold. While it follows the groups of the strategy, these sums do not depend on the threshold. So one pass over
 * the groups gives the interval of all thresholds that make them. Where the interval is empty, horovod-groups.json has
 * what DistributedOptimizer(groups=...) takes, as names. Horovod then reduces each group by itself
 * (HOROVOD_DISABLE_GROUP_FUSION), and needs a threshold that holds the largest group.
 *
 * One all-reduce at a time, in the order of readiness; the optimizer waits for all.
 * Source: Horovod documentation, "Tensor Fusion" and DistributedOptimizer; common/common.h for the names. */
#include "strategy/baselines/horovod.h"

#include "interop/export/export_internal.h"
#include "strategy/plan.h"

/* A pass over the strategy's groups as the rule would form them. */
struct pass {
    const struct horovod_queue *queue;
    const struct variable_sync *syncs;
    const uint32_t *last; /* by group: the place of its last member in the queue */
    bool *fused;
    bool half;          /* gradients are compressed to f16 first */
    uint64_t low, high; /* thresholds that agree so far */
};

/* The bytes that Horovod gets of a gradient: all of them, or its f16 form when every gradient is compressed. */
static uint64_t bytes_of(const struct model *model, const struct variable_sync *sync, uint32_t v, bool half) {
    return half ? plan_gradient_bytes(&model->variables[v], sync) : model->variables[v].bytes;
}

static void raise(struct pass *p, uint64_t low) {
    p->low = low > p->low ? low : p->low;
}

static void lower(struct pass *p, uint64_t high) {
    p->high = high < p->high ? high : p->high;
}

/* Narrow the thresholds to those that form the group whose first member is entry `first`; false when none does. No
 * entry after the last member may join: the threshold is too small for it, or has ended the search before it. */
static bool follow(struct pass *p, uint32_t first) {
    const struct horovod_queue *q = p->queue;
    const uint32_t group = p->syncs[q->variable[first]].group, last = p->last[group];
    const enum dtype dtype = q->model->variables[q->variable[first]].dtype;
    uint64_t bytes = 0, passed = 0, stop = 0; /* a threshold below `stop` has ended the search before this entry */
    if (q->cycle[last] > q->cycle[first])
        return false;
    for (uint32_t i = first; i < q->n && q->cycle[i] <= q->cycle[first]; i++) {
        const struct variable_sync *sync = &p->syncs[q->variable[i]];
        if (p->fused[i])
            continue;
        const uint64_t size = bytes_of(q->model, sync, q->variable[i], p->half);
        const bool same = p->half || q->model->variables[q->variable[i]].dtype == dtype;
        if (sync->group == group) {
            if (!same)
                return false;
            if (i > first)
                raise(p, bytes + size);
            p->fused[i] = true;
            bytes += size;
            continue;
        }
        if (stop > p->high)
            break;
        if (same)
            lower(p, (bytes + size > stop ? bytes + size : stop) - 1);
        passed += size;
        if (i < last)
            raise(p, bytes + passed);
        else
            stop = bytes + passed;
    }
    return p->low <= p->high;
}

/* The thresholds that make the groups; *any says whether there are some. Only for strategies that serve nothing. */
static enum status find_thresholds(struct form *f, bool half, uint64_t *low, uint64_t *high, bool *any,
                                   struct error *err) {
    struct arena *arena = f->arena;
    struct horovod_queue queue;
    enum status st = horovod_queue_fill(f->model, f->cluster, HOROVOD_CYCLE_US, arena, &queue, err);
    if (st)
        return st;
    uint32_t *last = arena_alloc(arena, f->strategy->n_groups, sizeof *last);
    struct pass pass = {.queue = &queue,
                        .syncs = f->strategy->variables,
                        .last = last,
                        .fused = arena_alloc(arena, queue.n, sizeof(bool)),
                        .half = half,
                        .low = 1,
                        .high = UINT64_MAX};
    if (!last || !pass.fused)
        return error_no_memory(err);
    for (uint32_t i = 0; i < queue.n; i++)
        last[pass.syncs[queue.variable[i]].group] = i;
    *any = true;
    for (uint32_t i = 0; i < queue.n && *any; i++)
        *any = pass.fused[i] || follow(&pass, i);
    *low = pass.low;
    *high = pass.high;
    return ST_OK;
}

static uint64_t largest_group(struct form *f, bool half) {
    uint64_t *bytes = arena_alloc(f->arena, f->strategy->n_groups, sizeof *bytes), most = 1;
    f->no_memory |= !bytes;
    for (uint32_t v = 0; v < f->strategy->n_variables && bytes; v++) {
        const struct variable_sync *sync = &f->strategy->variables[v];
        if (sync->kind != SYNC_ALL_REDUCE)
            continue;
        bytes[sync->group] += bytes_of(f->model, sync, v, half);
        most = bytes[sync->group] > most ? bytes[sync->group] : most;
    }
    return most;
}

static void write_environment(struct form *f, uint64_t threshold, bool groups, bool half) {
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For every Horovod process: set -a; . ./horovod.env; set +a");
    if (groups)
        fprintf(file, "# and DistributedOptimizer(..., groups=[[named[n] for n in g] for g in "
                      "json.load(open(\"horovod-groups.json\"))])\n# with named = dict(model.named_parameters())\n");
    if (half)
        fprintf(file, "# and DistributedOptimizer(..., compression=hvd.Compression.fp16)\n");
    fprintf(file, "HOROVOD_AUTOTUNE=0\nHOROVOD_FUSION_THRESHOLD=%llu\nHOROVOD_CYCLE_TIME=%g\n",
            (unsigned long long)threshold, HOROVOD_CYCLE_US / 1000);
    if (groups)
        fprintf(file, "HOROVOD_DISABLE_GROUP_FUSION=1\n");
    if (form_algorithm(f) == ALGORITHM_hierarchical)
        fprintf(file, "HOROVOD_HIERARCHICAL_ALLREDUCE=1\n");
    form_close(f, "horovod.env", file);
}

enum status export_horovod(struct form *f, struct error *err) {
    uint64_t low = 1, high = UINT64_MAX;
    const bool none = f->n_served == f->strategy->n_variables, half = form_encoding(f) == ENCODING_f16;
    bool any = none;
    enum status st = f->n_served ? ST_OK : find_thresholds(f, half, &low, &high, &any, err);
    if (st)
        return st;
    const int algorithm = form_algorithm(f);
    write_environment(f, any ? export_round(low, high, HOROVOD_FUSION_BYTES, 2) : largest_group(f, half), !any, half);
    if (!any) {
        cJSON *groups = form_groups(f);
        form_add_json(f, "horovod-groups.json", groups, groups != NULL);
    }
    form_note_rest(f, CAN_ALL_REDUCE | (algorithm == ALGORITHM_hierarchical ? CAN_ALGORITHM : 0u) |
                          (half ? CAN_ENCODE : 0u));
    return ST_OK;
}
