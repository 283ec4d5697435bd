/* What a session says at its end: for people, for programs (syncopate.tuning/1), and the strategy as a file. */
#ifndef CLI_TUNING_OUTPUT_H
#define CLI_TUNING_OUTPUT_H

#include "base/error.h"
#include "cli/inputs.h"
#include "tuner/session/session.h"

/* `standing` says how the session stands; NULL: why it ended. */
void tuning_print(const struct tuning *tuning, const struct inputs *inputs, const char *standing);

/* One line. */
enum status tuning_print_json(const struct tuning *tuning, struct error *err);

enum status tuning_write_strategy(const struct tuning *tuning, const struct inputs *inputs, const char *path,
                                  struct error *err);

#endif
