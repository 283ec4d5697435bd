/* The host enqueues compute ahead of the GPU and reads afterwards what happened.
 *
 * A step is a kernel that spins for its time, between two events. Before it the compute stream waits on the GPU for the
 * messages that gate it, so the host need not be there when they arrive. The host enqueues a step only after it has
 * enqueued these messages. A message of iteration i ends before iteration i + 1 ends, so events of three iterations are
 * kept. An iteration's time is what the GPU's clock says between two starts of the forward pass. */
#include "trial-runner/worker/execute.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/statistics.h"
#include "trial-runner/worker/nccl/exchange.h"
#include "trial-runner/worker/nccl/server.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/trace.h"

enum { MARK_BEGIN, MARK_END, KEPT = 3 };

/* A step of an iteration, in order. */
struct position {
    uint32_t iteration, step;
};

struct executor {
    const struct plan *plan;
    const struct world *world;
    const struct execute_options *options;
    struct exchange exchange;
    struct stream compute;
    cudaEvent_t origin;
    cudaEvent_t *begin[KEPT], *end[KEPT]; /* [n_steps] each */
    uint64_t *clock;                      /* device memory: see kernels_spin */
    bool waited;                          /* the stream has waited since the last spin, or there was no spin yet */
    double scale;
    uint64_t left_bytes; /* of the GPU's memory, before the first iteration */
    uint32_t total;
    struct position next; /* to enqueue; {total, 0} is the last */
    struct position seen; /* whose end has not been read */
    uint32_t begun;       /* forward passes whose start has been read */
    double *start_us;     /* [total + 1] of each forward pass, since origin */
    double *compute_us;   /* [total] what the steps of each iteration took together */
    struct trace trace;
};

static bool is_last_device(const struct executor *e) {
    return e->world->device + 1 == e->world->cluster->n_devices;
}

static bool prints_trace(const struct executor *e) {
    return e->options->trace && e->options->report && e->world->device == 0;
}

static void strike(const struct executor *e, uint32_t iteration) {
    if (iteration != 1 || !is_last_device(e))
        return;
    if (e->options->fault == FAULT_KILL)
        raise(SIGKILL);
    while (e->options->fault == FAULT_HANG)
        pause();
}

static void advance(const struct executor *e, struct position *at) {
    if (++at->step < e->plan->n_steps)
        return;
    at->step = 0;
    at->iteration++;
}

/* The iteration of what the step makes ready: after the update parameters are gathered for the next. */
static uint32_t made_for(const struct executor *e, struct position at) {
    return at.iteration + plan_is_update(e->plan, at.step);
}

/* A step of no time has no spin, but what it waited for counts for the next one that has. */
static void spin(struct executor *e, const struct position *at) {
    const double us = e->plan->step_us[at->step] * e->scale;
    e->waited = e->waited || e->plan->first_gate[at->step] < e->plan->first_gate[at->step + 1];
    if (us <= 0)
        return;
    device_check(kernels_spin(e->clock, us, !e->waited, e->compute.cuda), "spinning");
    e->waited = false;
}

/* Put the next step on the stream if its gate's messages are on streams. */
static bool enqueue(struct executor *e) {
    const struct position at = e->next;
    const uint32_t slot = at.iteration % KEPT;
    if (at.iteration > e->total || (at.iteration == e->total && at.step > 0) || at.iteration > e->seen.iteration + 1)
        return false;
    if (!exchange_is_enqueued(&e->exchange, at.iteration, at.step))
        return false;
    exchange_gate(&e->exchange, at.iteration, at.step, &e->compute);
    if (at.step == 0)
        stream_mark(&e->compute, e->begin[slot][0], MARK_BEGIN, at.iteration);
    else
        device_check(cudaEventRecord(e->begin[slot][at.step], e->compute.cuda), "recording an event");
    if (at.iteration < e->total) {
        const bool spoilt = e->options->fault == FAULT_SUM && at.iteration == 1 && is_last_device(e);
        spin(e, &at);
        exchange_produce(&e->exchange, made_for(e, at), at.step, spoilt, &e->compute);
        stream_mark(&e->compute, e->end[slot][at.step], MARK_END, at.step);
    }
    advance(e, &e->next);
    return true;
}

/* CUDA tells times between two events as a float, which is good for short ones. */
static double since_origin(const struct executor *e, uint32_t iteration, cudaEvent_t event) {
    return e->start_us[iteration] + event_elapsed_us(e->begin[iteration % KEPT][0], event);
}

static void forward_began(struct executor *e, uint32_t iteration) {
    const uint32_t warmup = e->options->warmup;
    cudaEvent_t begin = e->begin[iteration % KEPT][0];
    e->start_us[iteration] =
        iteration == 0 ? event_elapsed_us(e->origin, begin) : since_origin(e, iteration - 1, begin);
    e->begun = iteration + 1;
    strike(e, iteration);
    if (!e->options->report || e->world->device != 0 || iteration <= warmup)
        return;
    report_iteration(iteration - warmup - 1, e->start_us[iteration] - e->start_us[iteration - 1]);
}

static void step_ended(struct executor *e) {
    const struct position at = e->seen;
    const uint32_t slot = at.iteration % KEPT;
    const double took_us = event_elapsed_us(e->begin[slot][at.step], e->end[slot][at.step]);
    const double end_us = since_origin(e, at.iteration, e->end[slot][at.step]);
    e->compute_us[at.iteration] += took_us;
    trace_step(&e->trace, at.iteration, at.step, end_us - took_us, end_us);
    exchange_step_done(&e->exchange, made_for(e, at), at.step, end_us);
    advance(e, &e->seen);
}

static bool take_marks(struct executor *e) {
    struct mark mark;
    bool any = false;
    for (; stream_reached(&e->compute, &mark); any = true) {
        if (mark.kind == MARK_BEGIN)
            forward_began(e, mark.index);
        else
            step_ended(e);
    }
    return any;
}

/* An event of a message of `iteration`, which what is gathered after the update comes before. */
static double message_us(const struct executor *e, const struct message *message, uint32_t iteration,
                         cudaEvent_t event) {
    if (!plan_is_update(e->plan, message->ready))
        return since_origin(e, iteration, event);
    return iteration == 0 ? event_elapsed_us(e->origin, event) : since_origin(e, iteration - 1, event);
}

/* What is gathered after the last update has no iteration of its own any more. */
static void keep_message(void *context, uint32_t m, const struct transfer *t) {
    struct executor *e = context;
    const struct message *message = &e->plan->messages[m];
    struct trace_times times = {.ready_us = t->ready_us,
                                .start_us = message_us(e, message, t->iteration, t->start),
                                .end_us = message_us(e, message, t->iteration, t->done)};
    if (message_is_second_half(message) || message_is_of_replicas(message))
        times.ready_us = since_origin(e, t->iteration, e->exchange.transfers[message->other].done);
    if (t->iteration < e->total)
        trace_message(&e->trace, t->iteration, m, &times);
}

static void worker_run(struct executor *e) {
    while (e->begun <= e->total || e->exchange.n_live > 0) {
        bool any = take_marks(e);
        any |= exchange_progress(&e->exchange);
        while (enqueue(e))
            any = true;
        if (!any)
            device_rest(&e->exchange.network->device);
        network_watch(e->exchange.network);
    }
}

/* Of a GPU of this rank alone: by how much its memory shrank, without the gradients and variables. */
static void collect_memory(const struct executor *e, struct execute_result *out) {
    const uint64_t left = device_left_bytes(), before = e->left_bytes - e->exchange.gradients.data_bytes;
    const uint64_t grown = e->exchange.network->device.shared || left > before ? 0 : before - left;
    MPI_Reduce(&e->exchange.buffers_bytes, &out->buffers_bytes, 1, MPI_UINT64_T, MPI_MAX, 0, e->world->workers);
    MPI_Reduce(&grown, &out->grown_bytes, 1, MPI_UINT64_T, MPI_MAX, 0, e->world->workers);
}

static void collect(struct executor *e, struct execute_result *out) {
    const struct execute_options *options = e->options;
    const uint32_t n = options->iterations;
    uint64_t checked = e->exchange.gradients.checked;
    *out = (struct execute_result){.time_us = report_alloc(n, sizeof(double))};
    for (uint32_t i = 0; i < n; i++)
        out->time_us[i] = e->start_us[options->warmup + i + 1] - e->start_us[options->warmup + i];
    out->compute_us = median_of(n, e->compute_us + options->warmup);
    if (options->time_messages) {
        out->messages_us = report_alloc(options->iterations, sizeof(double));
        trace_messages_us(&e->trace, options->iterations, out->messages_us);
    }
    MPI_Reduce(&checked, &out->checked, 1, MPI_UINT64_T, MPI_SUM, 0, e->world->workers);
    collect_memory(e, out);
}

static void executor_init(struct executor *e, const struct plan *plan, const struct world *world,
                          const struct execute_options *options) {
    const uint32_t total = options->warmup + options->iterations;
    *e = (struct executor){.plan = plan, .world = world, .options = options, .total = total, .waited = true};
    e->trace = (struct trace){.on = prints_trace(e) || options->time_messages, .warmup = options->warmup};
    e->scale = world_node(world)->compute_scale;
    e->left_bytes = device_left_bytes();
    e->start_us = report_alloc(total + 1, sizeof *e->start_us);
    e->compute_us = report_alloc(total, sizeof *e->compute_us);
    for (int slot = 0; slot < KEPT; slot++) {
        e->begin[slot] = report_alloc(plan->n_steps, sizeof(cudaEvent_t));
        e->end[slot] = report_alloc(plan->n_steps, sizeof(cudaEvent_t));
        for (uint32_t step = 0; step < plan->n_steps; step++) {
            e->begin[slot][step] = event_new(true);
            e->end[slot][step] = event_new(true);
        }
    }
    e->origin = event_new(true);
    e->clock = device_alloc(sizeof *e->clock);
    stream_init(&e->compute, network_of(world)->device.idle);
    exchange_init(&e->exchange, plan, world, options->verify, e->trace.on);
    if (e->trace.on) {
        e->exchange.on_done = keep_message;
        e->exchange.context = e;
    }
}

static void executor_release(struct executor *e) {
    exchange_release(&e->exchange);
    stream_release(&e->compute);
    device_free(e->clock);
    device_check(cudaEventDestroy(e->origin), "ending an event");
    for (int slot = 0; slot < KEPT; slot++) {
        for (uint32_t step = 0; step < e->plan->n_steps; step++) {
            device_check(cudaEventDestroy(e->begin[slot][step]), "ending an event");
            device_check(cudaEventDestroy(e->end[slot][step]), "ending an event");
        }
        free(e->begin[slot]);
        free(e->end[slot]);
    }
    trace_release(&e->trace);
    free(e->compute_us);
    free(e->start_us);
}

void execute_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out) {
    struct executor e;
    if (world->is_server) {
        server_run(plan, world, options->warmup + options->iterations);
        return;
    }
    executor_init(&e, plan, world, options);
    if (plan->ends_in_update) {
        exchange_produce(&e.exchange, 0, plan->n_steps - 1, false, &e.compute);
        device_check(cudaStreamSynchronize(e.compute.cuda), "the GPU");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    device_check(cudaEventRecord(e.origin, e.compute.cuda), "recording an event");
    if (plan->ends_in_update) /* as if there had been an iteration before */
        exchange_step_done(&e.exchange, 0, plan->n_steps - 1, 0);
    worker_run(&e);
    MPI_Barrier(MPI_COMM_WORLD);
    collect(&e, out);
    if (prints_trace(&e))
        trace_print(&e.trace);
    executor_release(&e);
}
