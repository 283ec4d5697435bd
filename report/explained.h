/* An explanation of traces (interop/traces/explanation.h) in sentences, as JSON, and as HTML.
 * Threads: any. */
#ifndef REPORT_EXPLAINED_H
#define REPORT_EXPLAINED_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "interop/traces/explanation.h"
#include "report/markup.h"

#define EXPLAINED_TITLE "Where an iteration's time went"

/* What no strategy can hide on a cluster (simulator/bound.h). Zeroed: not known. */
struct explained_floor {
    bool known;
    char cluster[64];
    double exposed_us; /* of an iteration, communication that is exposed whatever the strategy */
};

/* What was read, who is late, what tuning could win. Returns how many sentences there are. */
enum { EXPLAINED_SENTENCES = 6, EXPLAINED_ROOM = 256 };
size_t explained_sentences(const struct explanation *explanation, const struct explained_floor *floor,
                           char out[EXPLAINED_SENTENCES][EXPLAINED_ROOM]);

/* What a reader of the figures must know: what the traces do not tell. Returns how many sentences there are. */
enum { EXPLAINED_NOTES = 4 };
size_t explained_notes(const struct explanation *explanation, char out[EXPLAINED_NOTES][EXPLAINED_ROOM]);

/* The traces of which pictures and tables have a row, by rank: all of EXPLAINED_ROWS or fewer. Of more, those that
 * stand out and a typical one, and `why` says by what. Returns how many there are. */
enum { EXPLAINED_ROWS = 16 };
struct explained_row {
    size_t trace;
    const char *why; /* "late"; NULL: all are shown */
};
size_t explained_rows(const struct explanation *explanation, struct explained_row out[EXPLAINED_ROWS]);

/* Which iterations are shown of each rank: steps[t] is that of trace t, of the number of the typical one of the first
 * rank. Fails: ST_NO_MEMORY. */
enum status explained_steps(const struct explanation *explanation, size_t *steps, struct error *err);

/* {"schema": "syncopate.explanation/1", ...}; times in us, of an iteration where nothing else is said:
 *   "iteration_us"     mean over the ranks
 *   "most_won_us", "cannot_hide_us"   the latter where a cluster is given and its floor is known
 *   "late_rank"        or null
 *   "clock_us", "collectives", "unmatched", "partial"   of struct meetings
 *   "ranks"   for each "rank", "file", "iterations", "iteration_us", "compute_us", "exposed_us", "waiting_us",
 *             "idle_us", "hidden_us", "collectives" and "last" (how many it met in, and came last to), "last_by_us",
 *             "held_up_us"
 *   "costs"   for each "operation", "devices", "bytes", "time_us", "low_us", "high_us", "times", "alone",
 *             "beside_compute" (a share)
 * *whole says that nothing is missing for want of memory. */
cJSON *explained_json(const struct explanation *explanation, const struct explained_floor *floor, bool *whole);

/* Sentences, the picture and the tables, for the body of a page. Fails: ST_NO_MEMORY. */
enum status explained_write(struct markup *m, const struct explanation *explanation,
                            const struct explained_floor *floor, struct error *err);

/* The same as a page that needs nothing else; *out is malloc'd. Fails: ST_NO_MEMORY. */
enum status explained_page(const struct explanation *explanation, const struct explained_floor *floor, char **out,
                           size_t *length, struct error *err);

#endif
