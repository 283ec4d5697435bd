/* The timeline of a real run next to the predicted one, as a file that Perfetto opens.
 *
 * Intervals are taken while a trial runs and written after it. Both timelines begin with the same step of the plan.
 * Threads: one at a time. */
#ifndef CLI_MEASURED_TRACE_H
#define CLI_MEASURED_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/inputs.h"
#include "strategy/strategy.h"
#include "trial-runner/trial.h"

struct measured_trace {
    size_t n, room;
    struct trial_interval *intervals;
    bool no_memory;
};
void measured_trace_release(struct measured_trace *trace); /* a zeroed one is allowed */

/* A trial_request.on_interval; `context` is a struct measured_trace. */
void measured_trace_take(void *context, const struct trial_interval *interval);

/* Fails: ST_NO_MEMORY, ST_ENVIRONMENT (the file cannot be written), and as plan_lower and timeline_run. */
enum status measured_trace_write(const struct measured_trace *trace, const struct inputs *inputs,
                                 const struct strategy *strategy, const char *path, struct error *err);

#endif
