/* What a session says at its end: for people, for programs (syncopate.tuning/1), and the strategy as a file. */
#ifndef CLI_TUNING_OUTPUT_H
#define CLI_TUNING_OUTPUT_H

#include "base/error.h"
#include "cli/inputs.h"
#include "tuner/session/outcome.h"

/* `standing` says how the session stands; NULL: it has ended, and why is said. Fails: ST_NO_MEMORY. */
enum status tuning_print(const struct outcome *outcome, const struct inputs *inputs, const char *standing,
                         struct error *err);

/* What models that may be stale bring, and what they cost: speed, delays, and the loss that was measured. Nothing where
 * the session did not allow them. */
void tuning_print_stale(const struct outcome *outcome);

/* One line. */
enum status tuning_print_json(const struct outcome *outcome, struct error *err);

enum status tuning_write_strategy(const struct strategy *strategy, const struct inputs *inputs, const char *path,
                                  struct error *err);

#endif
