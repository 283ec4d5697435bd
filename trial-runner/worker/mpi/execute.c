/* One thread a rank: the compute clock says what is ready, the exchange moves it, and between events the rank sleeps
 * for at most PAUSE_US and never past the end of a step. */
#include "trial-runner/worker/execute.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "strategy/weather.h"
#include "trial-runner/worker/mpi/exchange.h"
#include "trial-runner/worker/mpi/server.h"
#include "trial-runner/worker/mpi/updates.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/resident.h"
#include "trial-runner/worker/trace.h"

struct executor {
    const struct plan *plan;
    const struct world *world;
    const struct execute_options *options;
    struct exchange exchange;
    double scale; /* of this iteration */
    uint32_t total, iteration, step;
    uint64_t resident_bytes; /* before the first iteration, with all gradients */
    bool computing;
    double clock_us;  /* end of the step that runs, or of the last one */
    double *start_us; /* [total + 1] of each forward pass */
    struct trace trace;
};

/* What is gathered after the last update has no iteration of its own any more. */
static void keep_message(void *context, uint32_t message, const struct transfer *t) {
    struct executor *e = context;
    if (t->iteration < e->total)
        trace_message(&e->trace, t->iteration, message,
                      &(struct trace_times){t->ready_us, t->start_us, t->sum_us, t->pull_us, t->end_us});
}

static bool prints_trace(const struct executor *e) {
    return e->options->trace && e->options->report && e->world->device == 0;
}

static void strike(struct executor *e) {
    if (e->iteration != 1 || e->world->device + 1 != e->world->cluster->n_devices)
        return;
    if (e->options->fault == FAULT_KILL)
        raise(SIGKILL);
    while (e->options->fault == FAULT_HANG)
        pause();
}

static void spoil(struct executor *e) {
    if (e->options->fault == FAULT_SUM && e->iteration == 1 && e->world->device + 1 == e->world->cluster->n_devices)
        for (uint32_t i = e->plan->first_ready[e->step]; i < e->plan->first_ready[e->step + 1]; i++)
            exchange_spoil(&e->exchange, e->plan->by_ready[i]);
}

static void set_scale(struct executor *e) {
    const struct world *world = e->world;
    e->scale = world_node(world)->compute_scale;
    if (e->options->weather)
        e->scale *= weather_device_slowness(world->cluster, e->options->weather, world->device, e->iteration);
}

static void forward_starts(struct executor *e) {
    e->start_us[e->iteration] = e->clock_us;
    set_scale(e);
    strike(e);
    if (!e->options->report || e->world->device != 0 || e->iteration <= e->options->warmup)
        return;
    report_iteration(e->iteration - e->options->warmup - 1, e->clock_us - e->start_us[e->iteration - 1]);
}

/* Start the step if its gate is open. */
static bool step_start(struct executor *e) {
    if (e->exchange.closed[e->step] > 0)
        return false;
    e->clock_us = fmax(e->clock_us, e->exchange.opened_us[e->step]);
    if (e->step == 0)
        forward_starts(e);
    if (e->iteration == e->total)
        return false;
    e->clock_us += e->plan->step_us[e->step] * e->scale;
    e->computing = true;
    return true;
}

static void step_end(struct executor *e) {
    trace_step(&e->trace, e->iteration, e->step, e->clock_us - e->plan->step_us[e->step] * e->scale, e->clock_us);
    /* After the update parameters are gathered for the next iteration. */
    exchange_step_done(&e->exchange, e->iteration + plan_is_update(e->plan, e->step), e->step, e->clock_us);
    spoil(e);
    e->computing = false;
    if (++e->step == e->plan->n_steps) {
        e->step = 0;
        e->iteration++;
    }
}

/* Bring the compute stream up to now; how long until it wants to go on, INFINITY while it waits for a message. */
static double compute(struct executor *e) {
    while (e->iteration < e->total || e->start_us[e->total] == 0) {
        if (!e->computing && !step_start(e))
            return INFINITY;
        double left = e->clock_us - clock_now_us();
        if (left > 0)
            return left;
        step_end(e);
    }
    return INFINITY;
}

static void worker_run(struct executor *e) {
    while (e->start_us[e->total] == 0 || e->exchange.n_live > 0) {
        double left = compute(e);
        if (!exchange_progress(&e->exchange))
            pause_for_us(left);
    }
}

static void collect(struct executor *e, struct execute_result *out) {
    const struct execute_options *options = e->options;
    uint64_t checked = e->exchange.gradients.checked + e->exchange.variables.checked;
    *out = (struct execute_result){.time_us = report_alloc(options->iterations, sizeof(double))};
    for (uint32_t i = 0; i < options->iterations; i++)
        out->time_us[i] = e->start_us[options->warmup + i + 1] - e->start_us[options->warmup + i];
    if (options->time_messages) {
        out->messages_us = report_alloc(options->iterations, sizeof(double));
        trace_messages_us(&e->trace, options->iterations, out->messages_us);
    }
    MPI_Reduce(&checked, &out->checked, 1, MPI_UINT64_T, MPI_SUM, 0, e->world->workers);
    const uint64_t grown = resident_most_bytes();
    MPI_Reduce(&e->exchange.pool.most_bytes, &out->buffers_bytes, 1, MPI_UINT64_T, MPI_MAX, 0, e->world->workers);
    const uint64_t more = grown > e->resident_bytes ? grown - e->resident_bytes : 0;
    MPI_Reduce(&more, &out->grown_bytes, 1, MPI_UINT64_T, MPI_MAX, 0, e->world->workers);
}

static void worker_init(struct executor *e) {
    const struct execute_options *options = e->options;
    e->trace = (struct trace){.on = prints_trace(e) || options->time_messages, .warmup = options->warmup};
    e->start_us = report_alloc(e->total + 1, sizeof *e->start_us);
    exchange_init(&e->exchange, e->plan, e->world, options->verify);
    descent_init(&e->exchange.descent, &e->exchange.gradients, e->world, options);
    if (e->trace.on) {
        e->exchange.on_done = keep_message;
        e->exchange.context = e;
    }
}

static void worker_end(struct executor *e, struct execute_result *out) {
    collect(e, out);
    if (prints_trace(e))
        trace_print(&e->trace);
    descent_end(&e->exchange.descent);
    exchange_release(&e->exchange);
    trace_release(&e->trace);
    free(e->start_us);
}

void execute_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out) {
    uint32_t total = options->warmup + options->iterations;
    if (!consistency_is_plain(&plan->consistency)) {
        updates_run(plan, world, options, out);
        return;
    }
    if (world->is_server) {
        MPI_Barrier(MPI_COMM_WORLD);
        server_run(plan, world, total);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    struct executor e = {.plan = plan, .world = world, .options = options, .total = total};
    worker_init(&e);
    e.resident_bytes = resident_begin();
    MPI_Barrier(MPI_COMM_WORLD);
    e.trace.origin_us = e.clock_us = e.exchange.descent.learned.began_us = clock_now_us();
    if (plan->ends_in_update) /* as if there had been an iteration before */
        exchange_step_done(&e.exchange, 0, plan->n_steps - 1, e.clock_us);
    worker_run(&e);
    MPI_Barrier(MPI_COMM_WORLD);
    worker_end(&e, out);
}
