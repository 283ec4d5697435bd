/* Horovod: environment variables, and exact groups where its own fusion does not make them.
 *
 * Its fusion (strategy/baselines/horovod.c) has two knobs, the threshold and the cycle. The rule compares sums of bytes
 * with the threshold. While it follows the groups of the strategy, these sums do not depend on the threshold. So one
 * pass over the groups gives the interval of all thresholds that make them in a given cycle. Where the interval is
 * empty for the default cycle and for every other that horovod-tuned tries, horovod-groups.json has
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
    const struct strategy *strategy;
    const struct variable_sync *syncs;
    const uint32_t *last; /* by group: the place of its last member in the queue */
    bool *fused;
    bool half;          /* gradients are compressed to f16 first */
    uint64_t low, high; /* thresholds that agree so far */
};

/* The bytes that Horovod gets of a gradient: all of them, or its f16 form when every gradient is compressed. */
static uint64_t bytes_of(const struct model *model, const struct variable_sync *sync, uint32_t v, bool half) {
    return half ? model->variables[v].elements * dtype_bytes(strategy_wire_dtype(&model->variables[v], sync))
                : model->variables[v].bytes;
}

static bool is_gathered(const struct strategy *s, uint32_t v) {
    return s->groups[s->variables[v].group].algorithm == ALGORITHM_all_gather;
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
    const bool gathers = is_gathered(p->strategy, q->variable[first]);
    uint64_t bytes = 0, passed = 0, stop = 0; /* a threshold below `stop` has ended the search before this entry */
    if (q->cycle[last] > q->cycle[first])
        return false;
    for (uint32_t i = first; i < q->n && q->cycle[i] <= q->cycle[first]; i++) {
        const struct variable_sync *sync = &p->syncs[q->variable[i]];
        if (p->fused[i])
            continue;
        const bool gathered = is_gathered(p->strategy, q->variable[i]);
        const uint64_t size = gathered ? horovod_counted_bytes(q, q->variable[i], true)
                                       : bytes_of(q->model, sync, q->variable[i], p->half);
        const bool same = gathered == gathers && (p->half || q->model->variables[q->variable[i]].dtype == dtype);
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

/* What of Horovod's knobs makes the groups. */
struct knobs {
    bool any;           /* something does */
    uint64_t low, high; /* the thresholds that do */
    double cycle_us;    /* in this cycle */
};

/* The thresholds that make the groups in out->cycle_us. Only for strategies that serve nothing. */
static enum status find_thresholds(struct form *f, bool half, struct knobs *out, struct error *err) {
    struct arena *arena = f->arena;
    struct horovod_queue queue;
    enum status st = horovod_queue_fill(f->model, f->cluster, out->cycle_us, arena, &queue, err);
    if (st)
        return st;
    uint32_t *last = arena_alloc(arena, f->strategy->n_groups, sizeof *last);
    struct pass pass = {.queue = &queue,
                        .strategy = f->strategy,
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
    out->any = true;
    for (uint32_t i = 0; i < queue.n && out->any; i++)
        out->any = pass.fused[i] || follow(&pass, i);
    out->low = pass.low;
    out->high = pass.high;
    return ST_OK;
}

/* The first cycle in which some threshold makes the groups; else the default cycle, and none. */
static enum status find_knobs(struct form *f, bool half, struct knobs *out, struct error *err) {
    for (size_t i = 0; i < HOROVOD_CYCLES; i++) {
        out->cycle_us = horovod_cycles_us[i];
        enum status st = find_thresholds(f, half, out, err);
        if (st || out->any)
            return st;
    }
    out->cycle_us = HOROVOD_CYCLE_US;
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

/* What becomes of sparse gradients is one switch for all. */
struct sparse_counts {
    uint32_t gathered, dense;
};

static struct sparse_counts count_sparse(const struct form *f) {
    struct sparse_counts n = {0, 0};
    for (uint32_t v = 0; v < f->strategy->n_variables; v++) {
        if (!f->model->variables[v].sparse_rows || f->strategy->variables[v].kind != SYNC_ALL_REDUCE)
            continue;
        const bool gathered = is_gathered(f->strategy, v);
        n.gathered += gathered;
        n.dense += !gathered;
    }
    return n;
}

static void write_environment(struct form *f, uint64_t threshold, const struct knobs *knobs, bool half) {
    const bool groups = !knobs->any;
    const struct sparse_counts sparse = count_sparse(f);
    FILE *file = form_open(f);
    if (!file)
        return;
    form_write_head(f, file, "For every Horovod process: set -a; . ./horovod.env; set +a");
    if (groups)
        fprintf(file, "# and DistributedOptimizer(..., groups=[[named[n] for n in g] for g in "
                      "json.load(open(\"horovod-groups.json\"))])\n# with named = dict(model.named_parameters())\n");
    if (half)
        fprintf(file, "# and DistributedOptimizer(..., compression=hvd.Compression.fp16)\n");
    if (sparse.dense && !sparse.gathered)
        fprintf(file, "# and DistributedOptimizer(..., sparse_as_dense=True)\n");
    fprintf(file, "HOROVOD_AUTOTUNE=0\nHOROVOD_FUSION_THRESHOLD=%llu\nHOROVOD_CYCLE_TIME=%g\n",
            (unsigned long long)threshold, knobs->cycle_us / 1000);
    if (groups)
        fprintf(file, "HOROVOD_DISABLE_GROUP_FUSION=1\n");
    if (form_algorithm(f) == ALGORITHM_hierarchical)
        fprintf(file, "HOROVOD_HIERARCHICAL_ALLREDUCE=1\n");
    form_close(f, "horovod.env", file);
}

enum status export_horovod(struct form *f, struct error *err) {
    const bool none = f->n_served == f->strategy->n_variables, half = form_encoding(f) == ENCODING_f16;
    struct knobs knobs = {.any = none, .low = 1, .high = UINT64_MAX, .cycle_us = HOROVOD_CYCLE_US};
    enum status st = f->n_served ? ST_OK : find_knobs(f, half, &knobs, err);
    if (st)
        return st;
    const int algorithm = form_algorithm(f);
    const uint64_t round = export_round(knobs.low, knobs.high, HOROVOD_FUSION_BYTES, 2);
    write_environment(f, knobs.any ? round : largest_group(f, half), &knobs, half);
    if (!knobs.any) {
        cJSON *groups = form_groups(f);
        form_add_json(f, "horovod-groups.json", groups, groups != NULL);
    }
    const struct sparse_counts sparse = count_sparse(f);
    if (sparse.gathered && sparse.dense)
        form_note(f, EXPORT_LOSS_ALGORITHM, "%u of %u sparse gradients are gathered; Horovod gathers all or none",
                  sparse.gathered, sparse.gathered + sparse.dense);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_GATHER | (algorithm == ALGORITHM_hierarchical ? CAN_ALGORITHM : 0u) |
                          (half ? CAN_CAST : 0u));
    return ST_OK;
}
