/* See measured_trace.h. */
#include "cli/measured_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/stream.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"

void measured_trace_release(struct measured_trace *trace) {
    free(trace->intervals);
    *trace = (struct measured_trace){0};
}

void measured_trace_take(void *context, const struct trial_interval *interval) {
    struct measured_trace *trace = context;
    if (GROW(&trace->intervals, &trace->room, trace->n + 1))
        trace->intervals[trace->n++] = *interval;
    else
        trace->no_memory = true;
}

static enum interval_kind kind_of(const struct trial_interval *t, const struct plan *plan) {
    if (!t->message)
        return INTERVAL_COMPUTE;
    return plan->messages[t->index].kind == SYNC_PARAMETER_SERVER ? INTERVAL_PUSH : INTERVAL_ALL_REDUCE;
}

/* Write the measured intervals as the simulator's into out[trace->n], and return how many there are. */
static size_t translate(const struct measured_trace *trace, const struct plan *plan, uint32_t node,
                        struct interval *out) {
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct trial_interval *t = &trace->intervals[i];
        if (t->index < (t->message ? plan->n_messages : plan->n_steps))
            out[n++] = (struct interval){kind_of(t, plan), node, t->index, t->start_us, t->end_us};
    }
    return n;
}

static uint32_t count_iterations(const struct measured_trace *trace) {
    uint32_t n = 0;
    for (size_t i = 0; i < trace->n; i++)
        n = trace->intervals[i].iteration + 1 > n ? trace->intervals[i].iteration + 1 : n;
    return n < TIMELINE_MAX_PASSES ? n : TIMELINE_MAX_PASSES;
}

static enum status write_text(const struct measured_trace *trace, const struct plan *plan, const struct cost *cost,
                              FILE *out, struct error *err) {
    struct interval *intervals = calloc(trace->n + 1, sizeof *intervals);
    struct timeline *timeline = timeline_new();
    enum status st = intervals && timeline && !trace->no_memory ? ST_OK : error_no_memory(err);
    if (!st) {
        size_t n = translate(trace, plan, cost->workers[0], intervals);
        st = trace_write_beside(out, timeline, plan, cost, count_iterations(trace), n, intervals, err);
    }
    timeline_free(timeline);
    free(intervals);
    return st;
}

static enum status write_file(const struct measured_trace *trace, const struct plan *plan, const struct cost *cost,
                              const char *path, struct error *err) {
    char *text;
    size_t size;
    FILE *memory = stream_open(&text, &size);
    enum status st = memory ? write_text(trace, plan, cost, memory, err) : ST_OK;
    return stream_save(memory, st, &text, &size, path, err);
}

enum status measured_trace_write(const struct measured_trace *trace, const struct inputs *inputs,
                                 const struct strategy *strategy, const char *path, struct error *err) {
    struct plan plan = {0};
    struct cost cost = {0};
    enum status st = plan_lower(&inputs->model, &inputs->cluster, strategy, &plan, err);
    if (st)
        return st;
    st = cost_init(&cost, &inputs->cluster, err);
    if (!st)
        st = write_file(trace, &plan, &cost, path, err);
    cost_release(&cost);
    plan_release(&plan);
    return st;
}
