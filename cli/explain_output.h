/* An explanation (interop/traces/explanation.h) for people, and as JSON. */
#ifndef CLI_EXPLAIN_OUTPUT_H
#define CLI_EXPLAIN_OUTPUT_H

#include <stdbool.h>

#include "base/error.h"
#include "interop/traces/explanation.h"

/* What no strategy can hide on a cluster (simulator/bound.h). Zeroed: not known. */
struct explain_floor {
    bool known;
    char cluster[64];
    double exposed_us; /* of an iteration, communication that is exposed whatever the strategy */
};

/* The picture, a table of ranks, what tuning could win, a table of costs. Fails: ST_NO_MEMORY. */
enum status explain_print(const struct explanation *explanation, const struct explain_floor *floor, struct error *err);

/* {"schema": "syncopate.explanation/1", ...} on one line. Fails: ST_NO_MEMORY. */
enum status explain_print_json(const struct explanation *explanation, const struct explain_floor *floor,
                               struct error *err);

#endif
