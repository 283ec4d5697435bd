/* What a device did and when: kept in memory while a run is timed, printed or evaluated afterwards. */
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

/* A message's: its gradients were ready, it started, its sum was there. sum_us and pull_us only where pulls go by
 * priority, else 0: its server announced the sum, and it was asked for. */
struct trace_times {
    double ready_us, start_us, sum_us, pull_us, end_us;
};

/* Record an interval; does nothing while the trace is off. Out of memory ends the job. */
void trace_step(struct trace *trace, uint32_t iteration, uint32_t step, double start_us, double end_us);
void trace_message(struct trace *trace, uint32_t iteration, uint32_t message, const struct trace_times *times);

/* {"event":"step" or "message",...} a row. */
void trace_print(const struct trace *trace);

/* Of each of `n` iterations: from the start of the first message to the end of the last one. */
void trace_messages_us(const struct trace *trace, uint32_t n, double *messages_us);
void trace_release(struct trace *trace);

#endif
