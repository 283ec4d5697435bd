/* What device 0 did and when: kept in memory while a run is timed, printed afterwards. */
#ifndef TRIAL_RUNNER_WORKER_TRACE_H
#define TRIAL_RUNNER_WORKER_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_row;
struct trace {
    bool on;
    uint32_t warmup;  /* iterations that are not kept */
    double origin_us; /* subtracted from every time */
    struct trace_row *rows;
    size_t n, capacity;
};

/* Record an interval; does nothing while the trace is off. Out of memory ends the job. */
void trace_step(struct trace *trace, uint32_t iteration, uint32_t step, double start_us, double end_us);
void trace_message(struct trace *trace, uint32_t iteration, uint32_t message, double ready_us, double start_us,
                   double end_us);

/* {"event":"step" or "message",...} a row. */
void trace_print(const struct trace *trace);
void trace_release(struct trace *trace);

#endif
