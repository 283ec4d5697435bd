/* An explanation of traces (interop/traces/explanation.h) in sentences, and as one HTML file that needs nothing else.
 * Threads: any. */
#ifndef REPORT_EXPLAINED_H
#define REPORT_EXPLAINED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "interop/traces/explanation.h"

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

/* Which iterations are shown of each rank: steps[t] is that of trace t, of the number of the typical one of the first
 * rank. Fails: ST_NO_MEMORY. */
enum status explained_steps(const struct explanation *explanation, size_t *steps, struct error *err);

/* The page; *out is malloc'd. Fails: ST_NO_MEMORY. */
enum status explained_page(const struct explanation *explanation, const struct explained_floor *floor, char **out,
                           size_t *length, struct error *err);

#endif
