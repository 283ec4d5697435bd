/* A simulated plan as Chrome trace events, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open.
 *
 * One process a node; in it one row a device for compute and one for communication. Messages that overlap on a device
 * cannot share a row and spill into further ones ("communication 2", ...). Times are microseconds from the start of the
 * run (timeline_options.record says with which step); at least two iterations are shown. */
#ifndef SIMULATOR_TRACE_H
#define SIMULATOR_TRACE_H

#include <stdio.h>

#include "base/error.h"
#include "simulator/timeline.h"

/* Run the plan and write {"traceEvents": [...]} to `out`. Fails: as timeline_run, and ST_ENVIRONMENT when writing
 * fails. */
enum status trace_write(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                        struct error *err);

/* The first device with work, twice: as it is predicted over at least `passes` iterations, and as it was measured, both
 * from the same step on. `measured` are the n intervals of that device, used as scratch: times from any start, indexes
 * of the same plan, node the first with devices (or UINT32_MAX), a push lasting until its pull is done. Fails: as
 * trace_write. */
enum status trace_write_beside(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                               uint32_t passes, size_t n, struct interval *measured, struct error *err);

#endif
