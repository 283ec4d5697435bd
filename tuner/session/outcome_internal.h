/* What the sources of an outcome share: outcome.c gathers it, outcome_stale.c adds what models that may be stale did.
 */
#ifndef TUNER_SESSION_OUTCOME_INTERNAL_H
#define TUNER_SESSION_OUTCOME_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

struct outcome;
struct outcome_ratio;
struct record;

/* The trial of the row in this round that has iterations; NULL: none. */
const struct record *outcome_trial(const struct outcome *o, size_t row, uint64_t round);

/* The last round of the final; 0: there was none. */
uint64_t outcome_last_round(const struct outcome *o);

/* How much longer row a takes than row b, by the mean of their iterations: of the rounds of the final that both
 * completed, or of their first trials. */
struct outcome_ratio outcome_compare(const struct outcome *o, size_t a, size_t b);

/* Fill in o->stale, but for `allowed`, from the trials of the rows. */
void outcome_find_stale(struct outcome *o, uint32_t n_workers);

#endif
