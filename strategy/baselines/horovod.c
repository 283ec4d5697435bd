/* Horovod with its defaults: HOROVOD_CYCLE_TIME 1 ms, HOROVOD_FUSION_THRESHOLD 128 MiB.
 *
 * A background thread wakes up every cycle and fuses what all ranks have ready into as few all-reduces as the threshold
 * allows. It takes the first waiting tensor and adds later tensors of the same dtype while they fit. It passes over the
 * others, and stops when the tensors taken and passed over are together larger than the threshold.
 *
 * Which tensors meet in a cycle is a matter of time; here it is taken from the model's operator times on the slowest
 * node (a tensor is ready when all ranks have it), with cycles counted from the start of the iteration. With NCCL the
 * all-reduce itself does not hold the thread up, so cycles go on at their pace while earlier ones run; with a blocking
 * MPI they would stretch and fuse more. Padding to 64 elements in the buffer is left out. One all-reduce at a time:
 * credit 0; the optimizer waits for all.
 *
 * Sparse gradients (tf.IndexedSlices, sparse tensors of PyTorch) are gathered, since sparse_as_dense is off by default.
 * Gathers fuse with gathers by the same rule, where what all ranks have together counts. Horovod gathers values and
 * indices apart; here an index travels with its row, so that one start-up a gather is left out.
 * Source: Sergeev and Del Balso, arXiv 1802.05799; Horovod documentation, "Tensor Fusion";
 * horovod/tensorflow/__init__.py (allreduce) and horovod/common/controller.cc (FuseResponses), 0.21. O(variables ·
 * dtypes) as long as a cycle's gradients fit one buffer. */
#include "strategy/baselines/horovod.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

const double horovod_cycles_us[HOROVOD_CYCLES] = {HOROVOD_CYCLE_US, 2e3, 5e3, 10e3, 25e3};

static double slowest_scale(const struct cluster *cluster) {
    double scale = 0.0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices && cluster->nodes[i].compute_scale > scale)
            scale = cluster->nodes[i].compute_scale;
    return scale;
}

/* Walk the operators in the order in which they run; a variable leaves the ready order when its producer has ended. */
static void fill_cycles(struct horovod_queue *q, double scale, double cycle_us) {
    double now_us = 0.0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < q->model->n_operators; i++) {
        uint32_t at = q->model->order[i];
        now_us += scale * q->model->operators[at].time_us;
        for (; next < q->n && q->model->variables[q->variable[next]].producer == at; next++)
            q->cycle[next] = (double)(uint64_t)(now_us / cycle_us);
    }
}

enum status horovod_queue_fill(const struct model *model, const struct cluster *cluster, double cycle_us,
                               struct arena *arena, struct horovod_queue *out, struct error *err) {
    struct horovod_queue q = {.model = model, .n = model->n_variables, .n_devices = cluster->n_devices};
    q.variable = arena_alloc(arena, q.n, sizeof *q.variable);
    q.cycle = arena_alloc(arena, q.n, sizeof *q.cycle);
    if (!q.variable || !q.cycle)
        return error_no_memory(err);
    enum status st = ready_order(model, q.variable, err);
    if (st)
        return st;
    fill_cycles(&q, slowest_scale(cluster), cycle_us);
    *out = q;
    return ST_OK;
}

uint64_t horovod_counted_bytes(const struct horovod_queue *queue, uint32_t variable, bool gathered) {
    enum { INDEX_BYTES = 8 };
    const struct variable *v = &queue->model->variables[variable];
    return gathered ? queue->n_devices * v->sparse_rows * (v->bytes / v->shape[0] + INDEX_BYTES) : v->bytes;
}

/* Put entry `first`, and what the rule adds to it from the same cycle, into one message. */
static void fuse(const struct horovod_queue *q, uint32_t first, uint64_t most, bool *fused, struct strategy *s,
                 uint32_t group) {
    const struct variable *head = &q->model->variables[q->variable[first]];
    uint64_t bytes = 0, passed = 0;
    for (uint32_t i = first; i < q->n && q->cycle[i] == q->cycle[first]; i++) {
        const struct variable *v = &q->model->variables[q->variable[i]];
        const uint64_t size = horovod_counted_bytes(q, q->variable[i], v->sparse_rows > 0);
        const bool alike = v->dtype == head->dtype && !v->sparse_rows == !head->sparse_rows;
        if (fused[i])
            continue;
        if (i == first || (alike && bytes + size <= most)) {
            s->variables[q->variable[i]].group = group;
            fused[i] = true;
            bytes += size;
        } else if (bytes + (passed += size) > most) {
            break;
        }
    }
    if (head->sparse_rows)
        s->groups[group].algorithm = ALGORITHM_all_gather;
}

enum status horovod_build(const struct model *model, const struct cluster *cluster, uint64_t fusion_bytes,
                          double cycle_us, struct strategy *out, struct error *err) {
    struct strategy s;
    struct horovod_queue q = {0};
    enum status st = strategy_init(&s, "horovod", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    bool *fused = arena_alloc(&s.arena, model->n_variables, sizeof *fused);
    st = fused ? horovod_queue_fill(model, cluster, cycle_us, &s.arena, &q, err) : error_no_memory(err);
    for (uint32_t i = 0, group = 0; i < s.n_variables && !st; i++)
        if (!fused[i])
            fuse(&q, i, fusion_bytes, fused, &s, group++);
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status baseline_horovod(const struct model *model, const struct cost *cost, struct strategy *out,
                             struct error *err) {
    return horovod_build(model, cost->cluster, HOROVOD_FUSION_BYTES, HOROVOD_CYCLE_US, out, err);
}
