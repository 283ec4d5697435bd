/* From a schedule in time to slices in bytes.
 *
 * A group's work is startup + per_byte * bytes; the start-up comes first. Let a slice [s, e) begin when d of the
 * group's work is done. It sends the bytes from (d - startup) / per_byte to (d + e - s - startup) / per_byte. A slice
 * that ends within the start-up sends nothing. It is left out, and the slices around it join. The schedule charges a
 * group's start-up once; an executor charges it for every slice, as the paper's would. */
#include "strategy/baselines/preemptive.h"

#include "strategy/baselines/builder.h"

enum { ALIGN_BYTES = 8 };

/* A group while its slices are cut. */
struct stream {
    uint64_t bytes, sent;
    double done_us;
};

struct problem {
    uint32_t n;
    struct gradient *gradients;
    struct cost_line line;
    struct fusion fusion;
    struct machine_job *jobs;
    struct machine_slice *times; /* the schedule, 2n */
    size_t n_times;
    struct stream *streams;
};

static void send(struct strategy *s, struct stream *streams, uint32_t group, uint64_t until) {
    struct stream *stream = &streams[group];
    if (until <= stream->sent)
        return;
    if (s->n_slices > 0 && s->slices[s->n_slices - 1].group == group)
        s->slices[s->n_slices - 1].bytes += until - stream->sent;
    else
        s->slices[s->n_slices++] = (struct slice){group, until - stream->sent};
    stream->sent = until;
}

/* How many of the stream's bytes are there after that much work. */
static uint64_t bytes_after(const struct stream *stream, const struct cost_line *line, double work) {
    double bytes = line->per_byte_us > 0 ? (work - line->startup_us) / line->per_byte_us : 0;
    if (bytes <= 0)
        return 0;
    return bytes >= (double)stream->bytes ? stream->bytes : (uint64_t)bytes / ALIGN_BYTES * ALIGN_BYTES;
}

/* What rounding left over goes with the group's last slice; groups that take no time go at the end. */
static void cut(const struct problem *p, struct strategy *s) {
    uint32_t n_groups = p->fusion.n_groups;
    for (uint32_t k = 0, i = 0; k < n_groups; k++)
        for (; i < p->fusion.ends[k]; i++) {
            p->streams[k].bytes += p->gradients[i].bytes;
            s->variables[p->gradients[i].variable].group = k;
        }
    for (size_t t = 0; t < p->n_times; t++) {
        const struct machine_slice *time = &p->times[t];
        struct stream *stream = &p->streams[time->job];
        stream->done_us += time->end - time->start;
        bool last = stream->done_us >= p->jobs[time->job].work * (1 - 1e-9);
        send(s, p->streams, time->job, last ? stream->bytes : bytes_after(stream, &p->line, stream->done_us));
    }
    for (uint32_t k = 0; k < n_groups; k++)
        send(s, p->streams, k, p->streams[k].bytes);
}

static enum status problem_init(struct problem *p, const struct model *model, const struct cost *cost,
                                struct arena *arena, struct error *err) {
    uint32_t n = model->n_variables;
    *p = (struct problem){.n = n,
                          .gradients = arena_alloc(arena, n, sizeof *p->gradients),
                          .line = cost_line_all_reduce(cost, model->bytes, NULL),
                          .fusion.ends = arena_alloc(arena, n, sizeof *p->fusion.ends),
                          .jobs = arena_alloc(arena, n, sizeof *p->jobs),
                          .times = arena_alloc(arena, 2 * (size_t)n, sizeof *p->times),
                          .streams = arena_alloc(arena, n, sizeof *p->streams)};
    if (!p->gradients || !p->fusion.ends || !p->jobs || !p->times || !p->streams)
        return error_no_memory(err);
    return gradients_list(model, cost->cluster->nodes[cost->slowest].compute_scale, WITH_UPDATES, p->gradients, err);
}

static enum status schedule(struct problem *p, fusion_rule *rule, struct arena *arena, struct error *err) {
    struct machine_job *copy = arena_alloc(arena, p->n, sizeof *copy);
    uint32_t *scratch = arena_alloc(arena, 2 * (size_t)p->n, sizeof *scratch);
    enum status st = copy && scratch ? ST_OK : error_no_memory(err);
    if (!st && p->n > 0)
        st = rule(p->n, p->gradients, &p->line, &p->fusion, err);
    if (st)
        return st;
    fusion_jobs(p->gradients, &p->line, p->fusion.n_groups, p->fusion.ends, p->jobs);
    one_machine_schedule(p->fusion.n_groups, p->jobs, copy, scratch, p->times, &p->n_times);
    return ST_OK;
}

static enum status prepare(struct strategy *s, uint32_t n, struct error *err) {
    s->policy = POLICY_preemptive;
    s->credit_bytes = 0;
    s->cross_iteration = true;
    s->slices = arena_alloc(&s->arena, 2 * (size_t)n, sizeof *s->slices);
    return s->slices ? ST_OK : error_no_memory(err);
}

enum status baseline_preemptive(const char *name, fusion_rule *rule, const struct model *model, const struct cost *cost,
                                struct strategy *out, struct error *err) {
    struct strategy s;
    struct problem p;
    struct arena arena = {0};
    enum status st = strategy_init(&s, name, model, model->n_variables, err);
    if (st)
        return st;
    st = prepare(&s, model->n_variables, err);
    if (!st)
        st = problem_init(&p, model, cost, &arena, err);
    if (!st)
        st = schedule(&p, rule, &arena, err);
    if (!st)
        cut(&p, &s);
    arena_release(&arena);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
