/* Workers that send whole updates (simulator/updates.h) as Chrome trace events, which Perfetto draws: a process for
 * each node, with rows for its workers, for what it sends and for what it receives, and in weather the rates of its
 * NIC. */
#ifndef SIMULATOR_UPDATES_TRACE_H
#define SIMULATOR_UPDATES_TRACE_H

#include <stdio.h>

#include "base/error.h"
#include "simulator/updates.h"

/* So many rounds are enough to see what happens. */
enum { UPDATES_TRACE_ROUNDS = 5 };

/* Simulate with these options (record and context are ours) and write what happened. Fails: as updates_run;
 * ST_ENVIRONMENT. */
enum status updates_trace_write(FILE *out, const struct plan *plan, const struct cost *cost,
                                const struct updates_options *options, struct error *err);

#endif
