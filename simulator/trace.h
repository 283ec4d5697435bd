/* A simulated plan as Chrome trace events, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open.
 *
 * One process a node; in it one row a device for compute and one for communication. Messages that overlap on a device
 * cannot share a row and spill into further ones ("communication 2", ...). Times are microseconds from the start of the
 * run, which begins with a backward pass; at least two iterations are shown. */
#ifndef SIMULATOR_TRACE_H
#define SIMULATOR_TRACE_H

#include <stdio.h>

#include "base/error.h"
#include "simulator/timeline.h"

/* Run the plan and write {"traceEvents": [...]} to `out`. Fails: as timeline_run, and ST_ENVIRONMENT when writing
 * fails. */
enum status trace_write(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                        struct error *err);

#endif
