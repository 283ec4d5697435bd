/* An explanation (interop/traces/explanation.h) on standard output: for people, and as JSON. */
#ifndef CLI_EXPLAIN_OUTPUT_H
#define CLI_EXPLAIN_OUTPUT_H

#include "base/error.h"
#include "report/explained.h"

/* Sentences, the picture, a table of ranks and one of costs. Fails: ST_NO_MEMORY. */
enum status explain_print(const struct explanation *explanation, const struct explained_floor *floor,
                          struct error *err);

/* explained_json in one line. Fails: ST_NO_MEMORY. */
enum status explain_print_json(const struct explanation *explanation, const struct explained_floor *floor,
                               struct error *err);

#endif
