/* An explanation (interop/traces/explanation.h) for people, and as JSON. */
#ifndef CLI_EXPLAIN_OUTPUT_H
#define CLI_EXPLAIN_OUTPUT_H

#include "base/error.h"
#include "report/explained.h"

/* Sentences, the picture, a table of ranks and one of costs. Fails: ST_NO_MEMORY. */
enum status explain_print(const struct explanation *explanation, const struct explained_floor *floor,
                          struct error *err);

/* One line, {"schema": "syncopate.explanation/1", ...}; times in us, of an iteration where nothing else is said:
 *   "iteration_us"     mean over the ranks
 *   "most_won_us", "cannot_hide_us"   the latter where a cluster is given and its floor is known
 *   "late_rank"        or null
 *   "clock_us", "collectives", "unmatched", "partial"   of struct meetings
 *   "ranks"   for each "rank", "file", "iterations", "iteration_us", "compute_us", "exposed_us", "waiting_us",
 *             "idle_us", "hidden_us", "collectives" and "last" (how many it met in, and came last to), "last_by_us",
 *             "held_up_us"
 *   "costs"   for each "operation", "devices", "bytes", "time_us", "low_us", "high_us", "times", "alone",
 *             "beside_compute" (a share)
 * Fails: ST_NO_MEMORY. */
enum status explain_print_json(const struct explanation *explanation, const struct explained_floor *floor,
                               struct error *err);

#endif
