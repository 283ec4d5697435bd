/* A growing array; printing waits until the run is over, so that it costs the run nothing. */
#include "trial-runner/worker/trace.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "trial-runner/worker/report.h"

struct trace_row {
    bool step;
    uint32_t iteration, index;
    struct trace_times times; /* of a step: start and end */
};

static void keep(struct trace *trace, const struct trace_row *row) {
    if (!trace->on || row->iteration < trace->warmup)
        return;
    if (!GROW(&trace->rows, &trace->capacity, trace->n + 1))
        report_abort(ST_NO_MEMORY, "out of memory for a trace of %zu lines", trace->n + 1);
    trace->rows[trace->n++] = *row;
}

void trace_step(struct trace *trace, uint32_t iteration, uint32_t step, double start_us, double end_us) {
    keep(trace, &(struct trace_row){true, iteration, step, {.start_us = start_us, .end_us = end_us}});
}

void trace_message(struct trace *trace, uint32_t iteration, uint32_t message, const struct trace_times *times) {
    keep(trace, &(struct trace_row){false, iteration, message, *times});
}

static void add_time(cJSON *line, const char *name, double time_us, double origin_us) {
    cJSON_AddNumberToObject(line, name, time_us - origin_us);
}

void trace_print(const struct trace *trace) {
    for (size_t i = 0; i < trace->n; i++) {
        const struct trace_row *row = &trace->rows[i];
        const char *what = row->step ? "step" : "message";
        cJSON *line = report_event(what);
        cJSON_AddNumberToObject(line, "iteration", row->iteration - trace->warmup);
        cJSON_AddNumberToObject(line, what, row->index);
        if (!row->step)
            add_time(line, "ready_us", row->times.ready_us, trace->origin_us);
        add_time(line, "start_us", row->times.start_us, trace->origin_us);
        if (row->times.pull_us > 0) {
            add_time(line, "sum_us", row->times.sum_us, trace->origin_us);
            add_time(line, "pull_us", row->times.pull_us, trace->origin_us);
        }
        add_time(line, "end_us", row->times.end_us, trace->origin_us);
        report_send(line);
    }
}

/* The rows of an iteration need not be together: a message may end after the next iteration has begun. */
void trace_messages_us(const struct trace *trace, uint32_t n, double *messages_us) {
    for (uint32_t i = 0; i < n; i++) {
        double start_us = INFINITY, end_us = -INFINITY;
        for (size_t k = 0; k < trace->n; k++) {
            const struct trace_row *row = &trace->rows[k];
            if (row->step || row->iteration - trace->warmup != i)
                continue;
            start_us = fmin(start_us, row->times.start_us);
            end_us = fmax(end_us, row->times.end_us);
        }
        messages_us[i] = fmax(end_us - start_us, 0);
    }
}

void trace_release(struct trace *trace) {
    free(trace->rows);
    *trace = (struct trace){0};
}
