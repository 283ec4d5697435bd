/* What predictions say of memory (strategy/memory.h), for people. */
#ifndef CLI_MEMORY_OUTPUT_H
#define CLI_MEMORY_OUTPUT_H

#include <stdint.h>

#include "tuner/predict/simulation.h"

/* Print a table of the rows that have memory, and what it leaves out. Nothing where none has. */
void memory_output_print(const struct simulation *simulation, const struct row *rows, size_t n);

/* Say what memory is without, or estimated, since the model does not tell. */
void memory_output_print_unknown(const struct model *model);

/* Say that of some strategies none fits into budget_bytes, which of them needs least, and whether "fsdp-optimal" needs
 * less. Fails: ST_INFEASIBLE; ST_NO_MEMORY, as work_check. */
enum status memory_output_nothing_fits(const struct model *model, const struct cluster *cluster, uint64_t budget_bytes,
                                       const char *least, uint64_t least_bytes, struct error *err);

/* Whether any row fits, or none says anything of memory. Fails: ST_INFEASIBLE, with the least memory that would do. */
enum status memory_output_check(const struct simulation *simulation, const struct row *rows, size_t n,
                                struct error *err);

#endif
